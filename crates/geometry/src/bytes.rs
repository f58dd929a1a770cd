//! Numbers in foreign bytes.

use array::{Error, Result};

/// Type of a number in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberType {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl NumberType {
    pub(crate) fn size_bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Decodes one number of exactly its size; numbers beyond 2^53 are rounded.
    fn decode(self, bytes: &[u8], is_big: bool) -> f64 {
        let mut word = [0; 8];
        let size = self.size_bytes().min(bytes.len());
        for (place, &byte) in bytes[..size].iter().enumerate() {
            word[if is_big { size - 1 - place } else { place }] = byte;
        }
        let [a, b, c, d, ..] = word;
        match self {
            Self::I8 => i8::from_le_bytes([a]).into(),
            Self::U8 => a.into(),
            Self::I16 => i16::from_le_bytes([a, b]).into(),
            Self::U16 => u16::from_le_bytes([a, b]).into(),
            Self::I32 => i32::from_le_bytes([a, b, c, d]).into(),
            Self::U32 => u32::from_le_bytes([a, b, c, d]).into(),
            Self::F32 => f32::from_le_bytes([a, b, c, d]).into(),
            Self::I64 => i64::from_le_bytes(word) as f64,
            Self::U64 => u64::from_le_bytes(word) as f64,
            Self::F64 => f64::from_le_bytes(word),
        }
    }

    /// Decodes all numbers of an array; an incomplete one at its end is left out.
    pub(crate) fn decode_all(self, bytes: &[u8], is_big: bool) -> Vec<f64> {
        bytes.chunks_exact(self.size_bytes()).map(|number| self.decode(number, is_big)).collect()
    }
}

/// Bytes of a file that are still to be read.
pub(crate) struct FileReader<'a> {
    rest: &'a [u8],
    is_big: bool,
}

impl<'a> FileReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], is_big: bool) -> Self {
        Self { rest: bytes, is_big }
    }

    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn with_order(self, is_big: bool) -> Self {
        Self { is_big, ..self }
    }

    /// Takes `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(ends_early(count, self.rest.len()));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Takes bytes up to and including a line feed; returns the line without its end.
    pub(crate) fn line(&mut self, longest: usize) -> Result<&'a [u8]> {
        let end = self.rest.iter().take(longest).position(|&byte| byte == b'\n');
        let Some(end) = end else { return Err(Error::corrupt("expected a line of text, found none")) };
        let line = self.take(end + 1)?;
        Ok(line[..end].strip_suffix(b"\r").unwrap_or(&line[..end]))
    }

    pub(crate) fn number(&mut self, number_type: NumberType) -> Result<f64> {
        let is_big = self.is_big;
        Ok(number_type.decode(self.take(number_type.size_bytes())?, is_big))
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        let bytes = self.take(4)?.try_into().unwrap_or_default();
        Ok(if self.is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Takes `count` numbers; memory is reserved only if the bytes are there.
    pub(crate) fn numbers(&mut self, number_type: NumberType, count: usize) -> Result<Vec<f64>> {
        let bytes =
            count.checked_mul(number_type.size_bytes()).ok_or_else(|| ends_early(count, self.left()))?;
        let is_big = self.is_big;
        Ok(number_type.decode_all(self.take(bytes)?, is_big))
    }
}

fn ends_early(expected: usize, found: usize) -> Error {
    Error::corrupt(format!(
        "expected {expected} more bytes, found {found}: the file is incomplete or damaged"
    ))
}

/// Converts a number to a count or an index.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
pub(crate) fn index(number: f64) -> Result<u32> {
    if number >= 0.0 && number <= f64::from(u32::MAX) && number.fract() == 0.0 {
        Ok(number as u32)
    } else {
        Err(Error::corrupt(format!("expected the number of a vertex, found {number}")))
    }
}
