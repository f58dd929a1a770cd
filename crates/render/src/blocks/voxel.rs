//! Element types of the caster: reading from bytes, ordering, conversion.
//!
//! Voxels of `u8`, `u16`, `i16`, `f32` and `f64` stay in their own type in memory; they become `f32` one
//! sample at a time. Other types are converted when they enter the pool, to the smallest of these that holds
//! their values (integers of 64 bits become `f64`: beyond 2^53 they are rounded).

#![expect(unsafe_code, reason = "offsets of voxels are checked by whoever makes them")]

use array::{ByteOrder, DType, Decoding, ElementType, Meaning, Scalar};

use crate::device::VoxelFormat;
use crate::scene::color_map::{label_of, signed_label, unsigned_label};
use crate::simd::{FAR, LANES, PairOffsets, Simd};

/// Element of a block in the pool. See the module.
pub(crate) trait Voxel: bytemuck::Pod + PartialOrd + Send + Sync {
    /// Size in memory.
    const BYTES: usize;
    /// True if `f32` cannot hold every value: such values are mapped to the table in `f64`.
    const WIDE: bool;
    /// Format of these voxels on another device.
    const FORMAT: VoxelFormat;
    /// Start value of a search for the smallest value.
    const HIGHEST: Self;
    /// Start value of a search for the largest value.
    const LOWEST: Self;

    /// Reads an element of the same type; `bytes` holds exactly [`Voxel::BYTES`].
    fn read(bytes: &[u8], order: ByteOrder) -> Self;
    /// Returns the value; rounded if [`Voxel::WIDE`].
    fn to_f32(self) -> f32;
    /// Returns the value; integers beyond 2^53 are rounded.
    fn to_f64(self) -> f64;
    /// Returns the nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// Converts a scalar to this type; `None` if this type does not have its value.
    fn from_scalar(value: Scalar) -> Option<Self>;
    /// Returns the value as a label, by which its color is found.
    fn label(self) -> u32;
    /// Returns false for NaN and infinities.
    fn is_finite(self) -> bool;

    /// Loads the elements at every offset and those after them, in the form that is interpolated: see
    /// [`PlaceScale::load`].
    ///
    /// # Safety
    /// `data` can be read from every offset on for [`crate::simd::READ_AHEAD`] elements.
    unsafe fn pairs<S: Simd>(simd: S, data: *const Self, at: &PairOffsets, scale: &PlaceScale) -> [S::F; 2];
}

/// Returns the memory of an element of a type in the pool, bytes.
pub(crate) fn voxel_bytes(element: ElementType) -> usize {
    match element {
        ElementType::Bool | ElementType::U8 => u8::BYTES,
        ElementType::I8 | ElementType::I16 => i16::BYTES,
        ElementType::U16 => u16::BYTES,
        ElementType::F16 | ElementType::F32 => f32::BYTES,
        ElementType::I32 | ElementType::U32 | ElementType::I64 | ElementType::U64 | ElementType::F64 => {
            f64::BYTES
        }
    }
}

/// Reads elements that lie `stride` bytes apart.
pub(crate) fn read_run<T: Voxel>(dtype: DType, from: &[u8], stride: usize, to: &mut [T]) {
    let order = dtype.order();
    match dtype.element() {
        ElementType::I8 => convert(from, stride, to, |[b]: [u8; 1]| f64::from(b.cast_signed())),
        ElementType::F16 => {
            convert(from, stride, to, |raw| half::f16::from_bits(read_u16(raw, order)).to_f64())
        }
        ElementType::I32 => convert(from, stride, to, |raw| f64::from(read_u32(raw, order).cast_signed())),
        ElementType::U32 => convert(from, stride, to, |raw| f64::from(read_u32(raw, order))),
        ElementType::I64 => convert(from, stride, to, |raw| read_u64(raw, order).cast_signed() as f64),
        ElementType::U64 => convert(from, stride, to, |raw| read_u64(raw, order) as f64),
        ElementType::Bool
        | ElementType::U8
        | ElementType::U16
        | ElementType::I16
        | ElementType::F32
        | ElementType::F64 => {
            for (i, voxel) in to.iter_mut().enumerate() {
                *voxel = T::read(&from[i * stride..i * stride + T::BYTES], order);
            }
        }
    }
}

/// Reads labels as [`read_run`] reads values, but labels of 64 bits by [`unsigned_label`] and
/// [`signed_label`].
pub(crate) fn read_labels<T: Voxel>(dtype: DType, from: &[u8], stride: usize, to: &mut [T]) {
    let order = dtype.order();
    match dtype.element() {
        ElementType::U64 => convert(from, stride, to, |raw| unsigned_label(read_u64(raw, order))),
        ElementType::I64 => convert(from, stride, to, |raw| signed_label(read_u64(raw, order).cast_signed())),
        _ => read_run(dtype, from, stride, to),
    }
}

fn convert<T: Voxel, const N: usize>(
    from: &[u8],
    stride: usize,
    to: &mut [T],
    value: impl Fn([u8; N]) -> f64,
) {
    for (i, voxel) in to.iter_mut().enumerate() {
        let mut raw = [0; N];
        raw.copy_from_slice(&from[i * stride..i * stride + N]);
        *voxel = T::from_f64(value(raw));
    }
}

macro_rules! read_bits {
    ($($name:ident: $type:ty;)*) => {
        $(
            fn $name(raw: [u8; size_of::<$type>()], order: ByteOrder) -> $type {
                match order {
                    ByteOrder::Little => <$type>::from_le_bytes(raw),
                    ByteOrder::Big => <$type>::from_be_bytes(raw),
                }
            }
        )*
    };
}

read_bits! {
    read_u16: u16;
    read_u32: u32;
    read_u64: u64;
}

/// Map from stored values to places in the table of a transfer function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaceScale {
    /// Place = `(stored - origin) * gain`.
    pub(crate) origin: f64,
    pub(crate) gain: f64,
    /// Values of `origin` and `gain`, rounded.
    narrow: [f32; 2],
}

#[expect(clippy::cast_possible_truncation, reason = "cut off; places in the table are f32")]
impl PlaceScale {
    pub(crate) fn new(origin: f64, gain: f64) -> Self {
        Self { origin, gain, narrow: [origin as f32, gain as f32] }
    }

    /// Returns the place of a stored value.
    #[inline(always)]
    pub(crate) fn place(&self, stored: f64) -> f32 {
        ((stored - self.origin) * self.gain).clamp(-FAR, FAR) as f32
    }

    /// Returns the stored value of a place: the reverse of [`PlaceScale::place`].
    pub(crate) fn stored(&self, place: f32) -> f64 {
        f64::from(place) / self.gain + self.origin
    }

    /// Returns the number that is interpolated: the stored value, or its place if `f32` cannot hold the
    /// stored value.
    #[inline(always)]
    pub(crate) fn load<T: Voxel>(&self, value: T) -> f32 {
        if T::WIDE { self.place(value.to_f64()) } else { value.to_f32() }
    }

    /// Returns the change of places when a loaded number of type `T` changes by one.
    #[inline(always)]
    pub(crate) fn gain_of_loaded<T: Voxel>(&self) -> f32 {
        if T::WIDE { 1.0 } else { self.gain as f32 }
    }

    /// Converts a place back to the interpolated number: the reverse of [`PlaceScale::places`].
    #[inline(always)]
    pub(crate) fn loaded<T: Voxel, S: Simd>(&self, simd: S, place: S::F) -> S::F {
        if T::WIDE {
            return place;
        }
        simd.mul_add(place, simd.splat(self.gain.recip() as f32), simd.splat(self.origin as f32))
    }

    /// Returns the places of numbers interpolated between loaded values of type `T`.
    #[inline(always)]
    pub(crate) fn places<T: Voxel, S: Simd>(&self, simd: S, interpolated: S::F) -> S::F {
        if T::WIDE {
            return interpolated;
        }
        let [origin, gain] = self.narrow;
        let place = simd.mul(simd.sub(interpolated, simd.splat(origin)), simd.splat(gain));
        // Finite, so that the difference of two places is finite too.
        let far = FAR as f32;
        simd.max(simd.min(place, simd.splat(far)), simd.splat(-far))
    }
}

/// [`Voxel::read`] for any element type; a macro, because integers and floats have no common trait with these
/// functions.
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

/// [`Voxel::pairs`] for types that the processor loads in a way of its own.
macro_rules! native_pairs {
    ($method:ident $(, $part:ident)*) => {
        #[inline(always)]
        unsafe fn pairs<S: Simd>(simd: S, data: *const Self, at: &PairOffsets, _scale: &PlaceScale) -> [S::F; 2] {
            // SAFETY: as the caller says.
            unsafe { simd.$method(data, at $(, _scale.$part)*) }
        }
    };
}

macro_rules! integer {
    ($type:ty, $format:ident, $native:ident) => {
        #[expect(clippy::allow_attributes, reason = "which casts lose something differs from type to type")]
        #[allow(clippy::cast_possible_truncation, clippy::cast_lossless, clippy::cast_precision_loss)]
        #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)]
        impl Voxel for $type {
            const BYTES: usize = size_of::<Self>();
            const WIDE: bool = false;
            const FORMAT: VoxelFormat = VoxelFormat::$format;
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
            fn label(self) -> u32 {
                i32::from(self).cast_unsigned()
            }

            #[inline]
            fn is_finite(self) -> bool {
                true
            }

            native_pairs!($native);
        }
    };
}

integer!(u8, U8, pairs_u8);
integer!(u16, U16, pairs_u16);
integer!(i16, I16, pairs_i16);

macro_rules! float {
    ($type:ty, $wide:expr, $format:ident, $native:ident $(, $part:ident)*) => {
        #[expect(clippy::allow_attributes, reason = "which casts lose something differs from type to type")]
        #[allow(clippy::cast_possible_truncation, clippy::cast_lossless, clippy::cast_sign_loss)]
        #[allow(clippy::unnecessary_cast, clippy::float_cmp, clippy::useless_conversion)]
        impl Voxel for $type {
            const BYTES: usize = size_of::<Self>();
            const WIDE: bool = $wide;
            const FORMAT: VoxelFormat = VoxelFormat::$format;
            const HIGHEST: Self = Self::INFINITY;
            const LOWEST: Self = Self::NEG_INFINITY;

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
            fn label(self) -> u32 {
                label_of(f64::from(self))
            }

            #[inline]
            fn is_finite(self) -> bool {
                self.is_finite()
            }

            native_pairs!($native $(, $part)*);
        }
    };
}

/// Rounding to a narrower float.
trait FromF64 {
    fn from_f64(value: f64) -> Self;
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

float!(f32, false, F32, pairs_f32);
float!(f64, true, Relative, pairs_f64, origin, gain);

/// Stored values that stand for missing data. NaN always does; infinities cannot be interpolated and count as
/// missing too.
#[derive(Clone, Debug)]
pub(crate) struct MissingValues<T> {
    pub(crate) values: Vec<T>,
    pub(crate) valid: Option<(f64, f64)>,
}

impl<T: Voxel> MissingValues<T> {
    pub(crate) fn new(decoding: &Decoding, meaning: Meaning) -> Self {
        // In the same form as `read_labels` reads them.
        let pooled = |&value: &Scalar| match value {
            Scalar::Unsigned(v) if meaning == Meaning::Labels => Scalar::Float(unsigned_label(v)),
            Scalar::Signed(v) if meaning == Meaning::Labels => Scalar::Float(signed_label(v)),
            other => other,
        };
        let values = decoding.missing.iter().chain(&decoding.unset);
        Self {
            values: values.filter_map(|value| T::from_scalar(pooled(value))).collect(),
            valid: decoding.valid.map(|(low, high)| (low.as_f64(), high.as_f64())),
        }
    }

    #[inline]
    pub(crate) fn is_missing(&self, value: T) -> bool {
        !value.is_finite()
            || self.values.contains(&value)
            || self.valid.is_some_and(|(low, high)| value.to_f64() < low || value.to_f64() > high)
    }

    /// Returns for each lane whether a loaded value is present. For types that are [`Voxel::WIDE`], places
    /// are loaded, and NaN where a value is missing: see [`MissingValues::pairs`].
    #[inline(always)]
    fn present<S: Simd>(&self, simd: S, loaded: S::F) -> S::M {
        // False for NaN and infinities.
        let mut present = simd.eq(simd.sub(loaded, loaded), simd.splat(0.0));
        if T::WIDE {
            return present;
        }
        for value in &self.values {
            let other = simd.splat(value.to_f32());
            present = simd.and(present, simd.or(simd.lt(loaded, other), simd.lt(other, loaded)));
        }
        if let Some((low, high)) = self.valid {
            let inside =
                simd.and(simd.ge(loaded, simd.splat(above(low))), simd.ge(simd.splat(below(high)), loaded));
            present = simd.and(present, inside);
        }
        present
    }

    /// Returns [`Voxel::pairs`] and masks of the values that are present.
    ///
    /// # Safety
    /// As [`Voxel::pairs`].
    #[inline(always)]
    pub(crate) unsafe fn pairs<S: Simd>(
        &self,
        simd: S,
        data: *const T,
        at: &PairOffsets,
        scale: &PlaceScale,
    ) -> [(S::F, S::M); 2] {
        let loaded = if T::WIDE {
            let load = |value: T| if self.is_missing(value) { f32::NAN } else { scale.load(value) };
            // SAFETY: as the caller says.
            let read = |i: usize| load(unsafe { data.add(i).read() });
            let mut pairs = [[0.0; LANES]; 2];
            for lane in 0..LANES {
                pairs[0][lane] = read(at[lane] as usize);
                pairs[1][lane] = read(at[lane] as usize + 1);
            }
            [simd.load(&pairs[0]), simd.load(&pairs[1])]
        } else {
            // SAFETY: as the caller says.
            unsafe { T::pairs(simd, data, at, scale) }
        };
        [(loaded[0], self.present(simd, loaded[0])), (loaded[1], self.present(simd, loaded[1]))]
    }

    pub(crate) fn any(&self, values: &[T]) -> bool {
        let integers_all_meant = T::HIGHEST.is_finite() && self.values.is_empty() && self.valid.is_none();
        !integers_all_meant && values.iter().any(|&v| self.is_missing(v))
    }
}

/// Returns the smallest `f32` that is not below.
#[expect(clippy::cast_possible_truncation, reason = "rounded right after")]
pub(crate) fn above(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

/// Returns the largest `f32` that is not above.
#[expect(clippy::cast_possible_truncation, reason = "rounded right after")]
pub(crate) fn below(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) > value { near.next_down() } else { near }
}

#[cfg(test)]
mod tests {
    use array::DType;

    use super::*;

    #[test]
    fn missing_values_are_recognized_exactly() {
        let mut decoding = Decoding::identity("<i2".parse::<DType>().unwrap());
        decoding.missing = vec![Scalar::Float(-32768.0), Scalar::Unsigned(70_000), Scalar::Float(1.5)];
        decoding.valid = Some((Scalar::Signed(-100), Scalar::Signed(100)));
        let missing = MissingValues::<i16>::new(&decoding, Meaning::Intensity);
        for (value, expected) in [(-32768, true), (1, false), (100, false), (101, true), (-101, true)] {
            assert_eq!(missing.is_missing(value), expected, "{value}");
        }
        let identity = Decoding::identity("<f4".parse::<DType>().unwrap());
        let missing = MissingValues::<f32>::new(&identity, Meaning::Intensity);
        assert!(missing.any(&[0.0, f32::NAN]) && missing.any(&[f32::INFINITY]) && !missing.any(&[1e38]));
    }

    #[test]
    fn labels_too_large_for_doubles_are_missing_where_they_are_the_fill_value() {
        let dtype: DType = "<u8".parse().unwrap();
        let decoding = Decoding { missing: vec![Scalar::Unsigned(u64::MAX)], ..Decoding::identity(dtype) };
        let missing = MissingValues::<f64>::new(&decoding, Meaning::Labels);
        let bytes: Vec<u8> = [u64::MAX, u64::MAX - 1, 7].into_iter().flat_map(u64::to_le_bytes).collect();
        let mut labels = [0.0; 3];
        read_labels(dtype, &bytes, 8, &mut labels);
        assert_eq!(labels.map(|label| missing.is_missing(label)), [true, false, false]);
    }

    #[test]
    fn both_byte_orders_read_the_same_value() {
        assert_eq!(<i16 as Voxel>::read(&[0x01, 0xFE], ByteOrder::Big), 0x01FE);
        assert_eq!(<i16 as Voxel>::read(&[0xFE, 0x01], ByteOrder::Little), 0x01FE);
        let pi = 3.25f64;
        assert_eq!(<f64 as Voxel>::read(&pi.to_be_bytes(), ByteOrder::Big).to_bits(), pi.to_bits());
    }
}
