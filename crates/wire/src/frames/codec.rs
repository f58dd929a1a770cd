//! Encoding of numbers, strings and lists, little-endian. Lengths are not trusted: they are compared with the
//! available bytes before anything is read, and nothing is allocated in advance.

use array::{Error, ErrorKind, Priority, Result, Retry};
use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::limits::MAX_STR_BYTES;

/// Decoder that takes fields from the front of a frame or body. Each method gets the field's name, for the
/// error.
#[derive(Clone, Debug)]
pub struct ByteReader(Bytes);

macro_rules! numbers {
    ($($name:ident: $get:ident, $put:ident;)*) => {
        impl ByteReader {
            $(
                #[doc = concat!("One `", stringify!($name), "`.")]
                ///
                /// # Errors
                /// `Corrupt` when the bytes end before.
                pub fn $name(&mut self, field: &str) -> Result<$name> {
                    self.need(size_of::<$name>(), field)?;
                    Ok(self.0.$get())
                }
            )*
        }
        impl ByteWriter {
            $(
                #[doc = concat!("Appends one `", stringify!($name), "`.")]
                pub fn $name(&mut self, value: $name) -> &mut Self {
                    self.0.$put(value);
                    self
                }
            )*
        }
    };
}

numbers! {
    u8: get_u8, put_u8;
    u16: get_u16_le, put_u16_le;
    u32: get_u32_le, put_u32_le;
    u64: get_u64_le, put_u64_le;
    u128: get_u128_le, put_u128_le;
    i64: get_i64_le, put_i64_le;
    f32: get_f32_le, put_f32_le;
    f64: get_f64_le, put_f64_le;
}

impl ByteReader {
    /// Creates a decoder for `bytes`.
    #[must_use]
    pub fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    fn need(&self, size_bytes: usize, field: &str) -> Result<()> {
        if self.0.len() >= size_bytes {
            return Ok(());
        }
        Err(Error::corrupt(format!("expected {size_bytes} bytes of `{field}`, found {}", self.0.len())))
    }

    /// Reads a string of at most `max_bytes`.
    ///
    /// # Errors
    /// `Corrupt` when it is longer, truncated, or not UTF-8.
    pub fn str(&mut self, field: &str, max_bytes: usize) -> Result<String> {
        let size_bytes = usize::from(self.u16(field)?);
        at_most(size_bytes, max_bytes, field)?;
        self.need(size_bytes, field)?;
        String::from_utf8(self.0.split_to(size_bytes).into())
            .map_err(|_| Error::corrupt(format!("expected UTF-8 in `{field}`, found other bytes")))
    }

    /// Reads at most `max_bytes` bytes, sharing the frame's memory.
    ///
    /// # Errors
    /// `Corrupt` when there are more, or they are truncated.
    pub fn bytes(&mut self, field: &str, max_bytes: usize) -> Result<Bytes> {
        let size_bytes = self.u32(field)? as usize;
        at_most(size_bytes, max_bytes, field)?;
        self.need(size_bytes, field)?;
        Ok(self.0.split_to(size_bytes))
    }

    /// Reads at most `max_count` strings of at most `max_bytes` each.
    ///
    /// # Errors
    /// `Corrupt` when there are more, or one of them is invalid.
    pub fn list(&mut self, field: &str, max_count: usize, max_bytes: usize) -> Result<Vec<String>> {
        let count = usize::from(self.u16(field)?);
        if count > max_count {
            return Err(Error::corrupt(format!(
                "expected at most {max_count} entries of `{field}`, found {count}"
            )));
        }
        (0..count).map(|_| self.str(field, max_bytes)).collect()
    }

    /// Reads a number of up to 64 bits in groups of seven, the lowest first (LEB128).
    ///
    /// # Errors
    /// `Corrupt` when it is truncated, or has more than 64 bits.
    pub fn varint(&mut self, field: &str) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8(field)?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::corrupt(format!("expected a number of at most 64 bits in `{field}`, found more")))
    }

    /// Reads a [`varint`](Self::varint) that fits into 32 bits.
    ///
    /// # Errors
    /// The errors of `varint`, and `Corrupt` when it does not fit.
    pub fn varint_u32(&mut self, field: &str) -> Result<u32> {
        let value = self.varint(field)?;
        u32::try_from(value)
            .map_err(|_| Error::corrupt(format!("expected at most 32 bits in `{field}`, found {value}")))
    }

    /// Reads a [`varint`](Self::varint) that is a length in memory.
    ///
    /// # Errors
    /// The errors of `varint`, and `Corrupt` when it does not fit.
    pub fn varint_usize(&mut self, field: &str) -> Result<usize> {
        self.varint_u32(field).map(|value| value as usize)
    }

    /// Reads at most `max_bytes` bytes after their length as a [`varint`](Self::varint), sharing the frame's
    /// memory.
    ///
    /// # Errors
    /// `Corrupt` when there are more, or they are truncated.
    pub fn short(&mut self, field: &str, max_bytes: usize) -> Result<Bytes> {
        let size_bytes = self.varint_usize(field)?;
        at_most(size_bytes, max_bytes, field)?;
        self.take(size_bytes, field)
    }

    /// Takes the next bytes, sharing the frame's memory.
    ///
    /// # Errors
    /// `Corrupt` when there are fewer.
    pub fn take(&mut self, size_bytes: usize, field: &str) -> Result<Bytes> {
        self.need(size_bytes, field)?;
        Ok(self.0.split_to(size_bytes))
    }

    /// Fills `into` with the next bytes.
    ///
    /// # Errors
    /// `Corrupt` when they are fewer.
    pub fn copy_to(&mut self, into: &mut [u8], field: &str) -> Result<()> {
        self.need(into.len(), field)?;
        self.0.copy_to_slice(into);
        Ok(())
    }

    /// True when nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a priority: tier and weight.
    ///
    /// # Errors
    /// `Corrupt` when it is truncated.
    pub fn priority(&mut self) -> Result<Priority> {
        Ok(Priority { tier: self.u8("tier")?, weight: self.f32("weight")? })
    }

    /// Reads an error as the peer sent it. Unknown kinds become `Internal`; long texts are cut.
    ///
    /// # Errors
    /// `Corrupt` when it is truncated or a text is not UTF-8.
    pub fn error(&mut self) -> Result<Error> {
        let kind = ErrorKind::from_code(self.u16("error kind")?);
        let retry = if self.u8("retry")? == 1 { Retry::MayHelp } else { Retry::Never };
        let message = self.str("error message", MAX_STR_BYTES)?;
        let places = self.list("error context", Error::MAX_CONTEXT, MAX_STR_BYTES)?;
        let error = Error::new(kind, message).with_retry(retry);
        Ok(places.into_iter().fold(error, Error::context))
    }

    /// Takes all remaining bytes.
    #[must_use]
    pub fn rest(self) -> Bytes {
        self.0
    }
}

fn at_most(size_bytes: usize, max_bytes: usize, field: &str) -> Result<()> {
    if size_bytes <= max_bytes {
        return Ok(());
    }
    Err(Error::corrupt(format!("expected at most {max_bytes} bytes of `{field}`, found {size_bytes}")))
}

/// Encoder that appends fields to a frame or body.
///
/// Callers check the limits of a message first. Fields that are too long nevertheless are cut, so that the
/// peer can still read the frame.
#[derive(Clone, Debug, Default)]
pub struct ByteWriter(BytesMut);

impl ByteWriter {
    /// Creates an empty encoder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a string, cut at [`MAX_STR_BYTES`].
    pub fn str(&mut self, text: &str) -> &mut Self {
        let mut end = text.len().min(MAX_STR_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.u16(u16::try_from(end).unwrap_or(u16::MAX));
        self.raw(&text.as_bytes()[..end])
    }

    /// Appends bytes with their length.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let size_bytes = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.u32(size_bytes).raw(&bytes[..size_bytes as usize])
    }

    /// Appends strings, cut at 65,535 of them.
    pub fn list(&mut self, entries: &[String]) -> &mut Self {
        let count = u16::try_from(entries.len()).unwrap_or(u16::MAX);
        self.u16(count);
        entries.iter().take(usize::from(count)).for_each(|entry| {
            self.str(entry);
        });
        self
    }

    /// Appends a number in groups of seven bits, the lowest first (LEB128).
    pub fn varint(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.u8((value & 0x7F) as u8 | 0x80);
            value >>= 7;
        }
        self.u8((value & 0x7F) as u8)
    }

    /// Appends bytes with their length as a [`varint`](Self::varint).
    pub fn short(&mut self, bytes: &[u8]) -> &mut Self {
        self.varint(bytes.len() as u64).raw(bytes)
    }

    /// Appends a priority.
    pub fn priority(&mut self, priority: Priority) -> &mut Self {
        self.u8(priority.tier).f32(priority.weight)
    }

    /// Appends an error.
    pub fn error(&mut self, error: &Error) -> &mut Self {
        self.u16(error.kind().code());
        self.u8(u8::from(error.retry() == Retry::MayHelp));
        self.str(error.message());
        self.list(error.places())
    }

    /// Appends bytes without their length.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.put_slice(bytes);
        self
    }

    /// Returns all bytes that were written.
    #[must_use]
    pub fn finish(self) -> Bytes {
        self.0.freeze()
    }

    /// Returns all bytes that were written, with the first four replaced.
    pub(crate) fn finish_with_prefix(mut self, prefix: [u8; 4]) -> Bytes {
        self.0[..4].copy_from_slice(&prefix);
        self.0.freeze()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
