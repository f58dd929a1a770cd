//! Rust types of the element types, for kernels that run over every element of a block.
//!
//! [`with_element!`](crate::with_element) turns an [`ElementType`] known at run time into a Rust type once per block, so that the loop
//! over the elements is compiled for that type. Booleans are bytes here.

use half::f16;

use crate::{ByteOrder, ElementType, Scalar};

/// A Rust type that stores one element.
pub trait Element: Copy + PartialEq + PartialOrd + Send + Sync + 'static {
    /// Element type of this Rust type.
    const TYPE: ElementType;

    /// Size of one element, bytes.
    const SIZE_BYTES: usize = Self::TYPE.size_bytes();

    /// Reads the element at the start of `raw`.
    ///
    /// # Panics
    /// Panics if `raw` is not [`Element::SIZE_BYTES`] long.
    fn read(raw: &[u8], order: ByteOrder) -> Self;

    /// Writes the element over `raw`.
    ///
    /// # Panics
    /// Panics if `raw` is not [`Element::SIZE_BYTES`] long.
    fn write(self, raw: &mut [u8], order: ByteOrder);

    /// The exact value.
    fn to_scalar(self) -> Scalar;

    /// The value as a double; integers beyond 2^53 are rounded to the nearest.
    #[inline]
    fn to_f64(self) -> f64 {
        self.to_scalar().as_f64()
    }

    /// The value in single precision, rounded once to the nearest.
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "documented rounding")]
    fn to_f32(self) -> f32 {
        match self.to_scalar() {
            Scalar::Unsigned(v) => v as f32,
            Scalar::Signed(v) => v as f32,
            Scalar::Float(v) => v as f32,
        }
    }

    /// True for a float that is not a number.
    #[inline]
    fn is_nan(self) -> bool {
        matches!(self.to_scalar(), Scalar::Float(v) if v.is_nan())
    }
}

macro_rules! element {
    ($($type:ty, $kind:ident, $scalar:ident;)*) => {$(
        impl Element for $type {
            const TYPE: ElementType = ElementType::$kind;

            #[inline]
            fn read(raw: &[u8], order: ByteOrder) -> Self {
                let mut bytes = [0; size_of::<Self>()];
                bytes.copy_from_slice(raw);
                match order {
                    ByteOrder::Little => Self::from_le_bytes(bytes),
                    ByteOrder::Big => Self::from_be_bytes(bytes),
                }
            }

            #[inline]
            fn write(self, raw: &mut [u8], order: ByteOrder) {
                raw.copy_from_slice(&match order {
                    ByteOrder::Little => self.to_le_bytes(),
                    ByteOrder::Big => self.to_be_bytes(),
                });
            }

            #[inline]
            fn to_scalar(self) -> Scalar {
                Scalar::$scalar(self.into())
            }
        }
    )*};
}

element! {
    u8, U8, Unsigned;
    u16, U16, Unsigned;
    u32, U32, Unsigned;
    u64, U64, Unsigned;
    i8, I8, Signed;
    i16, I16, Signed;
    i32, I32, Signed;
    i64, I64, Signed;
    f16, F16, Float;
    f32, F32, Float;
    f64, F64, Float;
}

/// The elements of `bytes`; a rest shorter than one element is left out.
#[inline]
pub fn elements<T: Element>(bytes: &[u8], order: ByteOrder) -> impl ExactSizeIterator<Item = T> + '_ {
    bytes.chunks_exact(T::SIZE_BYTES).map(move |raw| T::read(raw, order))
}

/// Evaluates an expression with a type name bound to the Rust type of an [`ElementType`]
/// (`u8` for booleans).
///
/// ```
/// use corridor_array::{DType, Element, elements, with_element};
/// fn sum(bytes: &[u8], dtype: DType) -> f64 {
///     with_element!(dtype.element(), T =>
///         elements::<T>(bytes, dtype.order()).map(Element::to_f64).sum())
/// }
/// assert_eq!(sum(&[0, 1, 0, 2], ">i2".parse().unwrap()), 3.0);
/// ```
#[macro_export]
macro_rules! with_element {
    ($element:expr, $T:ident => $body:expr) => {
        match $element {
            $crate::ElementType::Bool | $crate::ElementType::U8 => {
                type $T = u8;
                $body
            }
            $crate::ElementType::U16 => {
                type $T = u16;
                $body
            }
            $crate::ElementType::U32 => {
                type $T = u32;
                $body
            }
            $crate::ElementType::U64 => {
                type $T = u64;
                $body
            }
            $crate::ElementType::I8 => {
                type $T = i8;
                $body
            }
            $crate::ElementType::I16 => {
                type $T = i16;
                $body
            }
            $crate::ElementType::I32 => {
                type $T = i32;
                $body
            }
            $crate::ElementType::I64 => {
                type $T = i64;
                $body
            }
            $crate::ElementType::F16 => {
                type $T = $crate::F16;
                $body
            }
            $crate::ElementType::F32 => {
                type $T = f32;
                $body
            }
            $crate::ElementType::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}
