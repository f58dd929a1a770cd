//! Elements written as text: numbers, or bytes of two hexadecimal digits each.

use std::io::{BufReader, Read};

use array::{ByteOrder, DType, ElementType, Error, Result};

use super::data::next_byte;

/// Longest number in NRRD data of ASCII encoding, characters.
const MAX_WORD: usize = 512;

/// Numbers between blanks or commas, as elements of `dtype` in its order of bytes, until there are `size` bytes of them.
pub(super) fn numbers(input: &mut dyn Read, dtype: DType, size: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut word = String::new();
    let mut bytes = BufReader::new(input).bytes();
    while out.len() < size {
        let byte = next_byte(&mut bytes)?;
        match byte {
            Some(byte) if !byte.is_ascii_whitespace() && byte != b',' => {
                word.push(char::from(byte));
                if word.len() > MAX_WORD {
                    return Err(Error::corrupt(format!(
                        "expected numbers of at most {MAX_WORD} characters, found more"
                    )));
                }
            }
            _ => {
                if !word.is_empty() {
                    write(&word, dtype, &mut out)?;
                    word.clear();
                }
                if byte.is_none() {
                    break;
                }
            }
        }
    }
    if out.len() < size {
        let (expected, found) = (size / dtype.size_bytes(), out.len() / dtype.size_bytes());
        return Err(Error::corrupt(format!("expected {expected} numbers, found {found}")));
    }
    Ok(out)
}

/// Appends one number. A whole one may be written as a float of the same value; one that the type has not is refused.
fn write(word: &str, dtype: DType, out: &mut Vec<u8>) -> Result<()> {
    use ElementType::{Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    let wrong =
        || Error::corrupt(format!("expected numbers of the type {}, found `{word}`", dtype.element().name()));
    let float = || word.parse::<f64>().map_err(|_| wrong());
    let whole = || -> Result<i128> {
        if let Ok(value) = word.parse::<i128>() {
            return Ok(value);
        }
        #[expect(clippy::cast_possible_truncation, reason = "whole, and far below the type's end")]
        float().ok().filter(|v| v.fract() == 0.0 && v.abs() < 1e30).map(|v| v as i128).ok_or_else(wrong)
    };
    macro_rules! integer {
        ($t:ty) => {
            push(&<$t>::try_from(whole()?).map_err(|_| wrong())?.to_le_bytes(), dtype, out)
        };
    }
    match dtype.element() {
        Bool | U8 => integer!(u8),
        U16 => integer!(u16),
        U32 => integer!(u32),
        U64 => integer!(u64),
        I8 => integer!(i8),
        I16 => integer!(i16),
        I32 => integer!(i32),
        I64 => integer!(i64),
        F16 => push(&half::f16::from_f64(float()?).to_le_bytes(), dtype, out),
        F32 => push(&word.parse::<f32>().map_err(|_| wrong())?.to_le_bytes(), dtype, out),
        F64 => push(&float()?.to_le_bytes(), dtype, out),
    }
    Ok(())
}

fn push(little: &[u8], dtype: DType, out: &mut Vec<u8>) {
    match dtype.order() {
        ByteOrder::Little => out.extend(little),
        ByteOrder::Big => out.extend(little.iter().rev()),
    }
}

/// Bytes of two digits, with blanks anywhere, until there are `size`.
pub(super) fn hex(input: &mut dyn Read, size: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut high = None;
    let mut bytes = BufReader::new(input).bytes();
    while out.len() < size {
        let Some(byte) = next_byte(&mut bytes)? else {
            return Err(Error::corrupt(format!("expected {size} bytes of two digits, found {}", out.len())));
        };
        if byte.is_ascii_whitespace() {
            continue;
        }
        let digit =
            char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).ok_or_else(|| {
                Error::corrupt(format!("expected hexadecimal digits, found the byte {byte:#04x}"))
            })?;
        high = match high {
            None => Some(digit),
            Some(high) => {
                out.push(high << 4 | digit);
                None
            }
        };
    }
    Ok(out)
}
