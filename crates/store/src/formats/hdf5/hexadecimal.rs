//! Bytes as text of two hexadecimal digits each, which is half as long as a JSON list of numbers.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect::<String>().serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return Err(D::Error::custom("expected two digits for each byte"));
    };
    let byte = |&[high, low]: &[u8; 2]| Some(digit(high)? << 4 | digit(low)?);
    pairs.iter().map(byte).collect::<Option<_>>().ok_or_else(|| D::Error::custom("expected digits"))
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use crate::formats::hdf5::hexadecimal;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Held(#[serde(with = "hexadecimal")] Vec<u8>);

    #[test]
    fn bytes_come_back_and_other_text_is_refused() {
        let held = Held((0..=255).collect());
        let text = serde_json::to_string(&held).unwrap();
        assert_eq!((text.len(), serde_json::from_str::<Held>(&text).unwrap()), (514, held));
        for bad in ["\"0\"", "\"0g\"", "\"é\"", "7"] {
            assert!(serde_json::from_str::<Held>(bad).is_err(), "{bad}");
        }
    }
}
