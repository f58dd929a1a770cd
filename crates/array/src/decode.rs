//! Decoding: from elements as stored to the values that are meant.
//!
//! What the format's own library does (`stored * scale + offset`, missing values become NaN), in the
//! precision of [`Decoding::output`]: single precision arithmetic where the output is single or half,
//! double otherwise, multiplication and addition rounded one after the other, as numpy does. It never
//! decompresses: that is the format's work.

use half::f16;

use crate::{ByteOrder, DType, Decoding, Element, ElementType, Error, Result, elements, with_element};

/// Decodes `stored` elements of `dtype` into elements of `decoding.output`, in the host's byte order.
///
/// # Errors
/// `Corrupt` when `stored` is no whole number of elements; `Invalid` when the output is an integer type
/// although the values change; `TooLarge` when the memory cannot be had.
pub fn decode(stored: &[u8], dtype: DType, decoding: &Decoding) -> Result<Vec<u8>> {
    let count = stored.len() / dtype.size_bytes();
    if count * dtype.size_bytes() != stored.len() {
        return Err(Error::corrupt(format!(
            "expected a whole number of `{dtype}` elements, found {} bytes",
            stored.len()
        )));
    }
    let output = decoding.output.element();
    if output == dtype.element() && decoding.is_identity() {
        let mut bytes = stored.to_vec();
        dtype.to_native(&mut bytes);
        return Ok(bytes);
    }
    let mut out = Vec::new();
    let size_bytes = count.saturating_mul(output.size_bytes());
    out.try_reserve_exact(size_bytes)
        .map_err(|_| Error::too_large(format!("expected {size_bytes} bytes of memory, found less")))?;
    with_element!(dtype.element(), T => decode_elements::<T>(stored, dtype.order(), decoding, &mut out))?;
    Ok(out)
}

fn decode_elements<T: Element>(
    stored: &[u8],
    order: ByteOrder,
    decoding: &Decoding,
    out: &mut Vec<u8>,
) -> Result<()> {
    let values = elements::<T>(stored, order);
    match decoding.output.element() {
        ElementType::F64 => {
            let line = Line { scale: decoding.scale, offset: decoding.offset };
            push(values, decoding, f64::NAN, |v| line.at(v.to_f64()), out);
        }
        ElementType::F32 => {
            let line = Line::single(decoding);
            push(values, decoding, f32::NAN, |v| line.at(v.to_f32()), out);
        }
        ElementType::F16 => {
            let line = Line::single(decoding);
            push(values, decoding, f16::NAN, |v| f16::from_f32(line.at(v.to_f32())), out);
        }
        other => {
            return Err(Error::invalid(format!(
                "expected decoded values to be floats, found `{}` for stored `{}`",
                other.name(),
                T::TYPE.name()
            )));
        }
    }
    Ok(())
}

fn push<T: Element, O: Element>(
    values: impl Iterator<Item = T>,
    decoding: &Decoding,
    nan: O,
    meant: impl Fn(T) -> O,
    out: &mut Vec<u8>,
) {
    let every_value_exists = decoding.missing.is_empty() && decoding.valid.is_none();
    let mut raw = [0u8; 8];
    let raw = &mut raw[..O::SIZE_BYTES];
    for value in values {
        let exists = every_value_exists || !decoding.is_missing(value.to_scalar());
        (if exists { meant(value) } else { nan }).write(raw, ByteOrder::NATIVE);
        out.extend_from_slice(raw);
    }
}

/// A straight line in one precision; absent steps are left out, so that they change no bit.
struct Line<F> {
    scale: F,
    offset: F,
}

impl Line<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "the arithmetic is in single precision")]
    fn single(decoding: &Decoding) -> Self {
        Self { scale: decoding.scale as f32, offset: decoding.offset as f32 }
    }
}

macro_rules! line {
    ($($float:ty)*) => {$(
        impl Line<$float> {
            #[inline]
            #[expect(clippy::float_cmp, reason = "exactly 1 and 0 mean absent")]
            fn at(&self, value: $float) -> $float {
                let scaled = if self.scale == 1.0 { value } else { value * self.scale };
                if self.offset == 0.0 { scaled } else { scaled + self.offset }
            }
        }
    )*};
}
line!(f32 f64);
