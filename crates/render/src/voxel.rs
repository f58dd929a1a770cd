//! Element types as the caster sees them: reading from bytes, ordering, conversion.
//!
//! Voxels stay in their own type in memory; they become `f32` one sample at a time.

use array::{ByteOrder, Decoding, Scalar};

/// One stored element in the host's byte order.
pub(crate) trait Voxel: Copy + PartialOrd + Send + Sync + 'static {
    /// Size in memory and in the file.
    const BYTES: usize;
    /// True where `f32` cannot hold every value: such values are mapped to the table in `f64`.
    const WIDE: bool;
    /// What a search for the smallest value starts from.
    const HIGHEST: Self;
    /// What a search for the largest value starts from.
    const LOWEST: Self;

    /// Reads one element; `bytes` holds exactly [`Voxel::BYTES`].
    fn read(bytes: &[u8], order: ByteOrder) -> Self;
    /// The value; rounded where [`Voxel::WIDE`].
    fn to_f32(self) -> f32;
    /// The value; integers beyond 2^53 are rounded.
    fn to_f64(self) -> f64;
    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// The same value in this type, if it has it.
    fn from_scalar(value: Scalar) -> Option<Self>;
    /// The value modulo 256: the colour of a label.
    fn label(self) -> u8;
    /// False for NaN and infinities.
    fn is_finite(self) -> bool;
}

/// [`Voxel::read`] for whatever type it stands in; integers and floats spell it alike, without a trait for it.
macro_rules! read_by_order {
    () => {
        #[inline]
        fn read(bytes: &[u8], order: ByteOrder) -> Self {
            let mut raw = [0; size_of::<Self>()];
            raw.copy_from_slice(bytes);
            match order {
                ByteOrder::Little => Self::from_le_bytes(raw),
                ByteOrder::Big => Self::from_be_bytes(raw),
            }
        }
    };
}

macro_rules! integer {
    ($type:ty, $wide:expr) => {
        #[expect(clippy::allow_attributes, reason = "which casts lose something differs from type to type")]
        #[allow(clippy::cast_possible_truncation, clippy::cast_lossless, clippy::cast_precision_loss)]
        #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)]
        impl Voxel for $type {
            const BYTES: usize = size_of::<Self>();
            const WIDE: bool = $wide;
            const HIGHEST: Self = Self::MAX;
            const LOWEST: Self = Self::MIN;

            read_by_order!();

            #[inline]
            fn to_f32(self) -> f32 {
                self as f32
            }

            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }

            fn from_f64(value: f64) -> Self {
                value.round() as Self
            }

            fn from_scalar(value: Scalar) -> Option<Self> {
                match value {
                    Scalar::Unsigned(v) => Self::try_from(v).ok(),
                    Scalar::Signed(v) => Self::try_from(v).ok(),
                    Scalar::Float(v) => Some(v as Self).filter(|&own| own as f64 == v),
                }
            }

            #[inline]
            fn label(self) -> u8 {
                self as u8
            }

            #[inline]
            fn is_finite(self) -> bool {
                true
            }
        }
    };
}

integer!(u8, false);
integer!(i8, false);
integer!(u16, false);
integer!(i16, false);
integer!(u32, true);
integer!(i32, true);
integer!(u64, true);
integer!(i64, true);

macro_rules! float {
    ($type:ty, $wide:expr, $highest:expr, $lowest:expr) => {
        #[expect(clippy::allow_attributes, reason = "which casts lose something differs from type to type")]
        #[allow(clippy::cast_possible_truncation, clippy::cast_lossless, clippy::cast_sign_loss)]
        #[allow(clippy::unnecessary_cast, clippy::float_cmp, clippy::useless_conversion)]
        impl Voxel for $type {
            const BYTES: usize = size_of::<Self>();
            const WIDE: bool = $wide;
            const HIGHEST: Self = $highest;
            const LOWEST: Self = $lowest;

            read_by_order!();

            #[inline]
            fn to_f32(self) -> f32 {
                f64::from(self) as f32
            }

            #[inline]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            fn from_f64(value: f64) -> Self {
                FromF64::from_f64(value)
            }

            fn from_scalar(value: Scalar) -> Option<Self> {
                let value = value.as_f64();
                Some(<Self as Voxel>::from_f64(value)).filter(|own| own.to_f64() == value)
            }

            #[inline]
            fn label(self) -> u8 {
                f64::from(self) as i64 as u8
            }

            #[inline]
            fn is_finite(self) -> bool {
                self.is_finite()
            }
        }
    };
}

/// Rounding to a narrower float; `half` and the language spell it differently.
trait FromF64 {
    fn from_f64(value: f64) -> Self;
}

impl FromF64 for half::f16 {
    fn from_f64(value: f64) -> Self {
        Self::from_f64(value)
    }
}

impl FromF64 for f32 {
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what it is for")]
    fn from_f64(value: f64) -> Self {
        value as Self
    }
}

impl FromF64 for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
}

float!(half::f16, false, half::f16::INFINITY, half::f16::NEG_INFINITY);
float!(f32, false, f32::INFINITY, f32::NEG_INFINITY);
float!(f64, true, f64::INFINITY, f64::NEG_INFINITY);

/// Which stored values mean that nothing is there. NaN always does; infinities cannot be interpolated and
/// are left out too.
#[derive(Clone, Debug)]
pub(crate) struct Missing<T> {
    values: Vec<T>,
    valid: Option<(f64, f64)>,
}

impl<T: Voxel> Missing<T> {
    pub(crate) fn new(decoding: &Decoding) -> Self {
        Self {
            values: decoding.missing.iter().filter_map(|&v| T::from_scalar(v)).collect(),
            valid: decoding.valid.map(|(low, high)| (low.as_f64(), high.as_f64())),
        }
    }

    #[inline]
    pub(crate) fn is_missing(&self, value: T) -> bool {
        !value.is_finite()
            || self.values.contains(&value)
            || self.valid.is_some_and(|(low, high)| value.to_f64() < low || value.to_f64() > high)
    }

    pub(crate) fn any(&self, values: &[T]) -> bool {
        let integers_all_meant = T::HIGHEST.is_finite() && self.values.is_empty() && self.valid.is_none();
        !integers_all_meant && values.iter().any(|&v| self.is_missing(v))
    }
}

#[cfg(test)]
mod tests {
    use array::DType;

    use super::*;

    #[test]
    fn missing_values_are_recognised_exactly() {
        let mut decoding = Decoding::identity("<i2".parse::<DType>().unwrap());
        decoding.missing = vec![Scalar::Float(-32768.0), Scalar::Unsigned(70_000), Scalar::Float(1.5)];
        decoding.valid = Some((Scalar::Signed(-100), Scalar::Signed(100)));
        let missing = Missing::<i16>::new(&decoding);
        for (value, expected) in [(-32768, true), (1, false), (100, false), (101, true), (-101, true)] {
            assert_eq!(missing.is_missing(value), expected, "{value}");
        }
        let identity = Decoding::identity("<f4".parse::<DType>().unwrap());
        let missing = Missing::<f32>::new(&identity);
        assert!(missing.any(&[0.0, f32::NAN]) && missing.any(&[f32::INFINITY]) && !missing.any(&[1e38]));
    }

    #[test]
    fn both_byte_orders_read_the_same_value() {
        assert_eq!(<i16 as Voxel>::read(&[0x01, 0xFE], ByteOrder::Big), 0x01FE);
        assert_eq!(<i16 as Voxel>::read(&[0xFE, 0x01], ByteOrder::Little), 0x01FE);
        let pi = 3.25f64;
        assert_eq!(<f64 as Voxel>::read(&pi.to_be_bytes(), ByteOrder::Big).to_bits(), pi.to_bits());
    }
}
