//! The header of numpy's `.npy` files, version 1.0.

use array::{Error, Result};

use super::ArrayHeader;

/// Number of bytes before the text: magic, version, length.
const PREFIX_BYTES: usize = 10;
/// Alignment of the end of the header, as numpy writes it, in bytes.
const ALIGNMENT: usize = 64;

/// Returns the header.
///
/// # Errors
/// `TooLarge` if the text exceeds the maximum of version 1.0 (never with 16 axes).
pub(crate) fn header(what: &ArrayHeader) -> Result<Vec<u8>> {
    let sizes: Vec<String> = what.shape.iter().map(u64::to_string).collect();
    let shape = match sizes.as_slice() {
        [one] => format!("({one},)"),
        sizes => format!("({})", sizes.join(", ")),
    };
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': {shape}, }}", what.dtype);
    let unpadded = PREFIX_BYTES + text.len() + 1;
    text.push_str(&" ".repeat(unpadded.next_multiple_of(ALIGNMENT) - unpadded));
    text.push('\n');
    let length =
        u16::try_from(text.len()).map_err(|_| Error::too_large("the header of the .npy file is too long"))?;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend(length.to_le_bytes());
    header.extend(text.bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_that_of_numpy() {
        let mut what = ArrayHeader {
            name: "u".into(),
            axes: vec!["z".into(), "y".into()],
            shape: vec![3, 4],
            dtype: "<f4".parse().unwrap(),
            attributes: array::Attributes::new(),
        };
        let text = String::from_utf8_lossy(&header(&what).unwrap()[PREFIX_BYTES..]).into_owned();
        assert_eq!(text.trim_end(), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
        assert_eq!(header(&what).unwrap().len() % ALIGNMENT, 0);
        what.shape = vec![5];
        assert!(String::from_utf8_lossy(&header(&what).unwrap()).contains("(5,)"));
        what.shape = vec![];
        assert!(String::from_utf8_lossy(&header(&what).unwrap()).contains("'shape': ()"));
    }
}
