//! Arrays of numbers inside XML: base64, zlib, text.

use std::io::Read;

use array::{Error, Result};
use base64::Engine as _;
use base64::engine::general_purpose::GeneralPurposeConfig;
use base64::engine::{DecodePaddingMode, GeneralPurpose};
use flate2::read::ZlibDecoder;

use crate::MAX_DECODED_BYTES;
use crate::model::excerpt;

/// Bytes that the arrays of a file may still decode to.
pub(crate) struct DecodeBudget(usize);

impl Default for DecodeBudget {
    fn default() -> Self {
        Self(MAX_DECODED_BYTES)
    }
}

impl DecodeBudget {
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<()> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(|| {
            Error::too_large(format!(
                "expected arrays of at most {MAX_DECODED_BYTES} bytes in a geometry, found more"
            ))
        })?;
        Ok(())
    }

    /// Inflates zlib data of at most the bytes that are left.
    pub(crate) fn inflate(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut inflated = Vec::new();
        ZlibDecoder::new(bytes)
            .take(self.0 as u64 + 1)
            .read_to_end(&mut inflated)
            .map_err(|e| Error::corrupt(format!("expected data compressed by zlib, found others: {e}")))?;
        self.spend(inflated.len())?;
        Ok(inflated)
    }

    /// Decodes base64, in which white space is ignored.
    pub(crate) fn base64(&mut self, text: &[u8]) -> Result<Vec<u8>> {
        self.spend(text.len() / 4 * 3)?;
        let compact: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        GeneralPurpose::new(&base64::alphabet::STANDARD, config)
            .decode(compact)
            .map_err(|e| Error::corrupt(format!("expected base64, found other text: {e}")))
    }

    /// Reads numbers in text.
    pub(crate) fn numbers(&mut self, text: &str) -> Result<Vec<f64>> {
        let mut numbers = Vec::new();
        for word in text.split_ascii_whitespace() {
            let number = word
                .parse()
                .map_err(|_| Error::corrupt(format!("expected a number, found `{}`", excerpt(word))))?;
            numbers.push(number);
        }
        self.spend(numbers.len() * size_of::<f64>())?;
        Ok(numbers)
    }
}

pub(crate) fn xml_error(error: &dyn std::fmt::Display) -> Error {
    Error::corrupt(format!("expected XML, found a mistake in it: {error}"))
}

/// Returns an attribute of an element; empty if it is missing.
pub(crate) fn attribute(element: &quick_xml::events::BytesStart<'_>, name: &str) -> Result<String> {
    let found = element.try_get_attribute(name).map_err(|e| xml_error(&e))?;
    Ok(match found {
        Some(attribute) => attribute
            .normalized_value(quick_xml::XmlVersion::Implicit1_0)
            .map_err(|e| xml_error(&e))?
            .into_owned(),
        None => String::new(),
    })
}
