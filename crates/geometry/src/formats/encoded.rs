//! Arrays of numbers inside XML: base64, zlib, text.

use std::io::Read;

use array::{Error, Result};
use base64::Engine as _;
use base64::engine::general_purpose::GeneralPurposeConfig;
use base64::engine::{DecodePaddingMode, GeneralPurpose};
use flate2::read::ZlibDecoder;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::model::excerpt;
use crate::{MAX_DECODED_BYTES, MAX_FILE_BYTES};

/// Deepest nesting of elements in XML: the parser keeps the names of all that are open.
const MAX_XML_DEPTH: usize = 128;

/// XML of a bounded depth.
pub(crate) struct XmlReader<'a> {
    reader: Reader<&'a [u8]>,
    depth: usize,
}

impl<'a> XmlReader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { reader: Reader::from_str(text), depth: 0 }
    }

    pub(crate) fn next_event(&mut self) -> Result<Event<'a>> {
        let event = self.reader.read_event().map_err(|e| xml_error(&e))?;
        match event {
            Event::Start(_) => self.depth += 1,
            Event::End(_) => self.depth -= 1,
            _ => {}
        }
        if self.depth > MAX_XML_DEPTH {
            return Err(Error::too_large(format!(
                "expected at most {MAX_XML_DEPTH} levels of elements in XML, found {}",
                self.depth
            )));
        }
        Ok(event)
    }
}

/// Bytes that the arrays of a file may still take. Arrays may share bytes of the file, so that both are counted.
pub(crate) struct DecodeBudget {
    /// Bytes that they may decode to.
    decoded: usize,
    /// Compressed bytes that they may be decoded from.
    compressed: u64,
}

impl Default for DecodeBudget {
    fn default() -> Self {
        Self { decoded: MAX_DECODED_BYTES, compressed: MAX_FILE_BYTES }
    }
}

impl DecodeBudget {
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<()> {
        self.decoded = self.decoded.checked_sub(bytes).ok_or_else(|| {
            Error::too_large(format!(
                "expected arrays of at most {MAX_DECODED_BYTES} bytes in a geometry, found more"
            ))
        })?;
        Ok(())
    }

    /// Inflates zlib data of at most the bytes that are left.
    pub(crate) fn inflate(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        self.compressed = self.compressed.checked_sub(bytes.len() as u64).ok_or_else(|| {
            Error::too_large(format!(
                "expected at most {MAX_FILE_BYTES} compressed bytes in the arrays of a geometry, found more"
            ))
        })?;
        let mut inflated = Vec::new();
        ZlibDecoder::new(bytes)
            .take(self.decoded as u64 + 1)
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
        let count = text.split_ascii_whitespace().count();
        self.spend(count.saturating_mul(size_of::<f64>()))?;
        let mut numbers = Vec::with_capacity(count);
        for word in text.split_ascii_whitespace() {
            let number = word
                .parse()
                .map_err(|_| Error::corrupt(format!("expected a number, found `{}`", excerpt(word))))?;
            numbers.push(number);
        }
        Ok(numbers)
    }
}

fn xml_error(error: &dyn std::fmt::Display) -> Error {
    Error::corrupt(format!("expected XML, found a mistake in it: {error}"))
}

/// Returns an attribute of an element; empty if it is missing.
pub(crate) fn attribute(element: &BytesStart<'_>, name: &str) -> Result<String> {
    let found = element.try_get_attribute(name).map_err(|e| xml_error(&e))?;
    Ok(match found {
        Some(attribute) => attribute
            .normalized_value(quick_xml::XmlVersion::Implicit1_0)
            .map_err(|e| xml_error(&e))?
            .into_owned(),
        None => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_bytes_that_many_arrays_share_are_counted_for_each() {
        let mut budget = DecodeBudget { decoded: 100, compressed: 20 };
        // An empty stored block behind the header of zlib: no output.
        let empty = [0x78, 0x01, 1, 0, 0, 0xFF, 0xFF, 0, 0, 0, 1];
        assert!(budget.inflate(&empty).unwrap().is_empty());
        let error = budget.inflate(&empty).unwrap_err();
        assert_eq!(error.kind(), array::ErrorKind::TooLarge, "{error}");
    }
}
