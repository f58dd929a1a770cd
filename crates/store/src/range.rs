//! Smallest and largest stored value of a piece of data, leaving out NaN and missing values.

use array::{ByteOrder, DType, Decoding, ElementType, Scalar, ValueRange};

/// The range of the values present in `bytes` (elements of `dtype`); `None` when every one is NaN or missing.
///
/// A trailing partial element is not looked at.
#[must_use]
pub fn value_range(bytes: &[u8], dtype: DType, decoding: &Decoding) -> Option<ValueRange> {
    match dtype.element() {
        ElementType::Bool | ElementType::U8 => of::<u8, 1>(bytes, dtype, decoding),
        ElementType::U16 => of::<u16, 2>(bytes, dtype, decoding),
        ElementType::U32 => of::<u32, 4>(bytes, dtype, decoding),
        ElementType::U64 => of::<u64, 8>(bytes, dtype, decoding),
        ElementType::I8 => of::<i8, 1>(bytes, dtype, decoding),
        ElementType::I16 => of::<i16, 2>(bytes, dtype, decoding),
        ElementType::I32 => of::<i32, 4>(bytes, dtype, decoding),
        ElementType::I64 => of::<i64, 8>(bytes, dtype, decoding),
        ElementType::F16 => of::<half::f16, 2>(bytes, dtype, decoding),
        ElementType::F32 => of::<f32, 4>(bytes, dtype, decoding),
        ElementType::F64 => of::<f64, 8>(bytes, dtype, decoding),
    }
}

/// A number of `N` bytes.
trait Element<const N: usize>: Copy + PartialOrd {
    /// What `min` starts from and what `max` starts from: the far ends of the type.
    const ENDS: (Self, Self);
    fn from_little(raw: [u8; N]) -> Self;
    fn from_big(raw: [u8; N]) -> Self;
    fn scalar(self) -> Scalar;
    fn to_f64(self) -> f64;
}

macro_rules! element {
    ($type:ty, $size:literal, $low:expr, $high:expr, $variant:ident, $wide:ty) => {
        impl Element<$size> for $type {
            const ENDS: (Self, Self) = ($high, $low);
            fn from_little(raw: [u8; $size]) -> Self {
                Self::from_le_bytes(raw)
            }
            fn from_big(raw: [u8; $size]) -> Self {
                Self::from_be_bytes(raw)
            }
            fn scalar(self) -> Scalar {
                Scalar::$variant(<$wide>::from(self))
            }
            fn to_f64(self) -> f64 {
                self.scalar().as_f64()
            }
        }
    };
}

element!(u8, 1, Self::MIN, Self::MAX, Unsigned, u64);
element!(u16, 2, Self::MIN, Self::MAX, Unsigned, u64);
element!(u32, 4, Self::MIN, Self::MAX, Unsigned, u64);
element!(u64, 8, Self::MIN, Self::MAX, Unsigned, u64);
element!(i8, 1, Self::MIN, Self::MAX, Signed, i64);
element!(i16, 2, Self::MIN, Self::MAX, Signed, i64);
element!(i32, 4, Self::MIN, Self::MAX, Signed, i64);
element!(i64, 8, Self::MIN, Self::MAX, Signed, i64);
element!(half::f16, 2, Self::NEG_INFINITY, Self::INFINITY, Float, f64);
element!(f32, 4, Self::NEG_INFINITY, Self::INFINITY, Float, f64);
element!(f64, 8, Self::NEG_INFINITY, Self::INFINITY, Float, f64);

fn of<T: Element<N>, const N: usize>(bytes: &[u8], dtype: DType, decoding: &Decoding) -> Option<ValueRange> {
    let (elements, _) = bytes.as_chunks::<N>();
    let big = dtype.order() == ByteOrder::Big;
    let values = elements.iter().map(|&raw| if big { T::from_big(raw) } else { T::from_little(raw) });
    if decoding.missing.is_empty() && decoding.valid.is_none() {
        return extremes(values);
    }
    // Missing values as this type writes them; one that it cannot hold occurs nowhere.
    let missing: Vec<f64> = decoding.missing.iter().map(|m| m.as_f64()).collect();
    let valid = decoding.valid.map(|(low, high)| (low.as_f64(), high.as_f64()));
    extremes(values.filter(|v| {
        let value = v.to_f64();
        let suspect =
            missing.contains(&value) || valid.is_some_and(|(low, high)| value < low || value > high);
        // Doubles round 64-bit integers: let the exact rule decide on a match.
        !suspect || !decoding.decode(v.scalar()).is_nan()
    }))
}

/// Comparisons with NaN are false, so NaN never becomes an extreme; written without branches so that
/// compilers turn it into vector code.
fn extremes<T: Element<N>, const N: usize>(values: impl Iterator<Item = T>) -> Option<ValueRange> {
    let (mut min, mut max) = T::ENDS;
    let mut any = false;
    for v in values {
        min = if v < min { v } else { min };
        max = if v > max { v } else { max };
        #[expect(clippy::eq_op, reason = "false for NaN only")]
        {
            any |= v == v;
        }
    }
    any.then(|| ValueRange { min: min.scalar(), max: max.scalar() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_be_bytes()).collect()
    }

    #[test]
    fn leaves_out_nan_and_missing() {
        let dtype: DType = ">f4".parse().unwrap();
        let mut decoding = Decoding::identity(dtype);
        let bytes = floats(&[f32::NAN, 3.0, -1.0, 1e34]);
        let range = |d: &Decoding| value_range(&bytes, dtype, d).map(|r| (r.min.as_f64(), r.max.as_f64()));
        assert_eq!(range(&decoding), Some((-1.0, f64::from(1e34f32))));
        decoding.missing = vec![Scalar::Float(f64::from(1e34f32))];
        assert_eq!(range(&decoding), Some((-1.0, 3.0)));
        decoding.valid = Some((Scalar::Float(4.0), Scalar::Float(5.0)));
        assert_eq!(range(&decoding), None);
    }

    #[test]
    fn all_nan_has_no_range_and_infinity_counts() {
        let dtype: DType = ">f4".parse().unwrap();
        let decoding = Decoding::identity(dtype);
        assert_eq!(value_range(&floats(&[f32::NAN; 3]), dtype, &decoding), None);
        let one = value_range(&floats(&[f32::INFINITY]), dtype, &decoding).unwrap();
        assert_eq!((one.min, one.max), (Scalar::Float(f64::INFINITY), Scalar::Float(f64::INFINITY)));
    }

    #[test]
    fn wide_integers_are_compared_exactly() {
        let dtype: DType = "<u8".parse().unwrap();
        let mut decoding = Decoding::identity(dtype);
        decoding.missing = vec![Scalar::Unsigned(u64::MAX)];
        let bytes: Vec<u8> = [u64::MAX - 1, u64::MAX].iter().flat_map(|v| v.to_le_bytes()).collect();
        let range = value_range(&bytes, dtype, &decoding).unwrap();
        assert_eq!(range.max, Scalar::Unsigned(u64::MAX - 1));
    }
}
