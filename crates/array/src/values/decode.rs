//! Decoding of stored elements to their values.
//!
//! The steps are those of xarray's `decode_cf`, so that every value is the same to the last bit: the stored element is cast to the output
//! type, compared with the missing values (which may be of any type), multiplied by the scale, and added to the offset; after each step it
//! is rounded to the output type. netCDF4 gives the same values except those that it masks by default (its default fill values, the valid
//! range), which are values here. Decompression is the work of the format.

use half::f16;

use crate::{ByteOrder, DType, Decoding, Element, ElementType, Error, Result, elements, with_element};

/// Decodes `stored` elements of `dtype` into elements of `decoding.output`, in the host's byte order.
///
/// # Errors
/// `Unsupported` where the file's decoding attributes cannot be used ([`Decoding::obstacle`]); `Corrupt` when `stored` is no whole number of
/// elements; `Invalid` when the output is an integer type that cannot hold the values; `TooLarge` when the memory cannot be
/// had.
pub fn decode(stored: &[u8], dtype: DType, decoding: &Decoding) -> Result<Vec<u8>> {
    if let Some(obstacle) = &decoding.obstacle {
        return Err(Error::unsupported(format!(
            "stored values cannot be decoded: {obstacle}; read them as they are stored"
        )));
    }
    let count = stored.len() / dtype.size_bytes();
    if count * dtype.size_bytes() != stored.len() {
        return Err(Error::corrupt(format!(
            "expected a whole number of `{dtype}` elements, found {} bytes",
            stored.len()
        )));
    }
    let dtype = decoding.meant(dtype);
    let output = decoding.output.element();
    if output == dtype.element() && decoding.keeps_values() {
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
        ElementType::F64 => push::<T, f64>(values, decoding, out),
        ElementType::F32 => push::<T, f32>(values, decoding, out),
        ElementType::F16 => push::<T, f16>(values, decoding, out),
        other => return push_integers(values, decoding, other, out),
    }
    Ok(())
}

/// A float that values are decoded to.
trait FloatOutput: Element {
    const NAN: Self;
    fn cast<T: Element>(stored: T) -> Self;
    fn rounded(value: f64) -> Self;
}

impl FloatOutput for f64 {
    const NAN: Self = Self::NAN;

    #[inline]
    fn cast<T: Element>(stored: T) -> Self {
        stored.to_f64()
    }

    #[inline]
    fn rounded(value: f64) -> Self {
        value
    }
}

impl FloatOutput for f32 {
    const NAN: Self = Self::NAN;

    #[inline]
    fn cast<T: Element>(stored: T) -> Self {
        stored.to_f32()
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the arithmetic is in single precision")]
    fn rounded(value: f64) -> Self {
        value as Self
    }
}

impl FloatOutput for f16 {
    const NAN: Self = Self::NAN;

    #[inline]
    fn cast<T: Element>(stored: T) -> Self {
        Self::from_f32(stored.to_f32())
    }

    #[inline]
    fn rounded(value: f64) -> Self {
        Self::from_f64(value)
    }
}

/// Decodes floats. Each step is computed in double precision and rounded to the output's type. Where the factor fits that
/// type, the result is that of arithmetic in the type itself: a product of two singles is exact in double precision, and
/// rounding a sum twice changes nothing.
#[expect(clippy::float_cmp, reason = "exactly 1 and 0 mean absent, and a fill value is a bit pattern")]
fn push<T: Element, O: FloatOutput>(values: impl Iterator<Item = T>, decoding: &Decoding, out: &mut Vec<u8>) {
    let missing: Vec<f64> = decoding.missing.iter().map(|m| m.as_f64()).filter(|m| !m.is_nan()).collect();
    let Decoding { scale, offset, .. } = *decoding;
    let mut raw = [0u8; 8];
    let raw = &mut raw[..O::SIZE_BYTES];
    for stored in values {
        let mut value = O::cast(stored);
        if missing.contains(&value.to_f64()) {
            value = O::NAN;
        }
        if scale != 1.0 {
            value = O::rounded(value.to_f64() * scale);
        }
        if offset != 0.0 {
            value = O::rounded(value.to_f64() + offset);
        }
        value.write(raw, ByteOrder::NATIVE);
        out.extend_from_slice(raw);
    }
}

/// Multiplies integers by an integer, modulo 2 to the power of the output's bits.
fn push_integers<T: Element>(
    values: impl Iterator<Item = T>,
    decoding: &Decoding,
    output: ElementType,
    out: &mut Vec<u8>,
) -> Result<()> {
    let can_be = T::TYPE.is_integer()
        && output.is_integer()
        && decoding.missing.is_empty()
        && decoding.scale.fract() == 0.0
        && decoding.offset == 0.0;
    if !can_be {
        return Err(Error::invalid(format!(
            "expected decoded values to be floats, found `{}` for stored `{}`",
            output.name(),
            T::TYPE.name()
        )));
    }
    #[expect(clippy::cast_possible_truncation, reason = "factors of such types are whole")]
    let scale = decoding.scale as i128;
    let size_bytes = output.size_bytes();
    for stored in values {
        // Stored integers have at most 64 bits: the lowest bits of the product are correct although higher ones are lost.
        let product = stored.to_scalar().integer().unwrap_or_default().wrapping_mul(scale);
        let bytes = product.to_le_bytes();
        let start = out.len();
        out.extend_from_slice(&bytes[..size_bytes]);
        if ByteOrder::NATIVE == ByteOrder::Big {
            out[start..].reverse();
        }
    }
    Ok(())
}
