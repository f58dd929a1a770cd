//! Conversion of values between 0 and 1 to stored elements of any type.

use array::{ByteOrder, DType, ElementType};

/// Adding this to a number from 0 to 2^22 leaves its rounded value in the low bits of the float: a rounding
/// that compilers turn into vector code, unlike a saturating cast.
const ROUNDING: f32 = 8_388_608.0;

/// Appends `values` as elements of `dtype`: integers over their whole range, floats unchanged.
pub(super) fn append(values: &[f32], dtype: DType, bytes: &mut Vec<u8>) {
    let big = dtype.order() == ByteOrder::Big;
    match dtype.element() {
        ElementType::U8 => bytes.extend(values.iter().map(|&v| byte(v))),
        ElementType::I8 => bytes.extend(values.iter().map(|&v| byte(v) ^ 0x80)),
        ElementType::Bool => bytes.extend(values.iter().map(|&v| u8::from(v >= 0.5))),
        ElementType::U16 => put(values, bytes, |v| in_order(short(v).to_le_bytes(), big)),
        ElementType::I16 => put(values, bytes, |v| in_order((short(v) ^ 0x8000).to_le_bytes(), big)),
        ElementType::U32 => put(values, bytes, |v| in_order(word(v).to_le_bytes(), big)),
        ElementType::I32 => put(values, bytes, |v| in_order((word(v) ^ (1 << 31)).to_le_bytes(), big)),
        ElementType::U64 => put(values, bytes, |v| in_order(long(v).to_le_bytes(), big)),
        ElementType::I64 => put(values, bytes, |v| in_order((long(v) ^ (1 << 63)).to_le_bytes(), big)),
        ElementType::F16 => put(values, bytes, |v| in_order(half::f16::from_f32(v).to_le_bytes(), big)),
        ElementType::F32 => put(values, bytes, |v| in_order(v.to_le_bytes(), big)),
        ElementType::F64 => put(values, bytes, |v| in_order(f64::from(v).to_le_bytes(), big)),
    }
}

fn put<const N: usize>(values: &[f32], bytes: &mut Vec<u8>, element: impl Fn(f32) -> [u8; N]) {
    bytes.extend(values.iter().flat_map(|&v| element(v)));
}

fn in_order<const N: usize>(mut little: [u8; N], big: bool) -> [u8; N] {
    if big {
        little.reverse();
    }
    little
}

#[expect(clippy::cast_possible_truncation, reason = "only the low byte is needed")]
fn byte(v: f32) -> u8 {
    (v.clamp(0.0, 1.0) * 255.0 + ROUNDING).to_bits() as u8
}

#[expect(clippy::cast_possible_truncation, reason = "only the low bits are needed")]
fn short(v: f32) -> u16 {
    (v.clamp(0.0, 1.0) * 65_535.0 + ROUNDING).to_bits() as u16
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating casts of values from 0 on"
)]
fn word(v: f32) -> u32 {
    (f64::from(v) * f64::from(u32::MAX)).round() as u32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "saturating casts of values from 0 on"
)]
fn long(v: f32) -> u64 {
    (f64::from(v) * u64::MAX as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_every_type_are_reached() {
        for element in ElementType::ALL {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let dtype = DType::new(element, order);
                let mut bytes = Vec::new();
                append(&[0.0, 1.0, 0.25], dtype, &mut bytes);
                assert_eq!(bytes.len(), 3 * dtype.size_bytes());
                let value = |i| dtype.scalar_at(&bytes, i).unwrap().as_f64();
                let bits = i32::try_from(dtype.size_bytes() * 8).unwrap();
                let span = if element.is_float() || element == ElementType::Bool {
                    1.0
                } else {
                    2f64.powi(bits) - 1.0
                };
                assert!(
                    (value(1) - value(0) - span).abs() <= span * 1e-9,
                    "{dtype}: {} {}",
                    value(0),
                    value(1)
                );
                assert!(value(2) >= value(0) && value(2) < value(1), "{dtype}");
            }
        }
    }
}
