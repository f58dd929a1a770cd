//! Element types: the type of one value and its byte order.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, Result, float_of_text, float_text, same_float};

/// Type of one element, without its byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElementType {
    /// One byte, zero or one.
    Bool,
    /// Unsigned integers.
    U8,
    /// Unsigned, 16 bit.
    U16,
    /// Unsigned, 32 bit.
    U32,
    /// Unsigned, 64 bit.
    U64,
    /// Signed integers.
    I8,
    /// Signed, 16 bit.
    I16,
    /// Signed, 32 bit.
    I32,
    /// Signed, 64 bit.
    I64,
    /// IEEE 754 half precision.
    F16,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
}

use ElementType::{Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};

impl ElementType {
    /// All element types.
    pub const ALL: [Self; 12] = [Bool, U8, U16, U32, U64, I8, I16, I32, I64, F16, F32, F64];

    /// Size of one element, bytes.
    #[must_use]
    pub const fn size_bytes(self) -> usize {
        match self {
            Bool | U8 | I8 => 1,
            U16 | I16 | F16 => 2,
            U32 | I32 | F32 => 4,
            U64 | I64 | F64 => 8,
        }
    }

    /// True for the floating-point types.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, F16 | F32 | F64)
    }

    /// True for the integer types, booleans aside.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        !matches!(self, Bool | F16 | F32 | F64)
    }

    /// True for the signed integers.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, I8 | I16 | I32 | I64)
    }

    /// The unsigned integer type of the same size; other types stay as they are.
    #[must_use]
    pub const fn unsigned(self) -> Self {
        match self {
            I8 => U8,
            I16 => U16,
            I32 => U32,
            I64 => U64,
            other => other,
        }
    }

    /// The signed integer type of the same size; other types stay as they are.
    #[must_use]
    pub const fn signed(self) -> Self {
        match self {
            U8 => I8,
            U16 => I16,
            U32 => I32,
            U64 => I64,
            other => other,
        }
    }

    /// Smallest and largest integer of the type; zero and one for types that are no integers.
    #[must_use]
    pub const fn limits(self) -> (i128, i128) {
        let bits = self.size_bytes() * 8;
        match self {
            _ if self.is_signed() => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            _ if self.is_integer() => (0, (1 << bits) - 1),
            _ => (0, 1),
        }
    }

    /// numpy's name: `bool`, `uint8`, ..., `float64`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "uint8",
            U16 => "uint16",
            U32 => "uint32",
            U64 => "uint64",
            I8 => "int8",
            I16 => "int16",
            I32 => "int32",
            I64 => "int64",
            F16 => "float16",
            F32 => "float32",
            F64 => "float64",
        }
    }

    /// numpy's letter and size without the order mark: `b1`, `u1`, ..., `f8`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Bool => "b1",
            U8 => "u1",
            U16 => "u2",
            U32 => "u4",
            U64 => "u8",
            I8 => "i1",
            I16 => "i2",
            I32 => "i4",
            I64 => "i8",
            F16 => "f2",
            F32 => "f4",
            F64 => "f8",
        }
    }
}

/// Order of the bytes within an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// This host's order.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };
}

/// Element type and byte order; written as numpy does: `|u1`, `<f4`, `>i2`.
///
/// One-byte types always carry `Little`, so that equal types compare equal.
///
/// ```
/// use corridor_array::DType;
/// let t: DType = ">u2".parse().unwrap();
/// assert_eq!(t.to_string(), ">u2");
/// assert_eq!(t.size_bytes(), 2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct DType {
    element: ElementType,
    order: ByteOrder,
}

impl DType {
    /// `element` stored in `order`.
    #[must_use]
    pub const fn new(element: ElementType, order: ByteOrder) -> Self {
        let order = if element.size_bytes() == 1 { ByteOrder::Little } else { order };
        Self { element, order }
    }

    /// `element` in this host's order.
    #[must_use]
    pub const fn native(element: ElementType) -> Self {
        Self::new(element, ByteOrder::NATIVE)
    }

    /// The element type.
    #[must_use]
    pub const fn element(self) -> ElementType {
        self.element
    }

    /// The byte order.
    #[must_use]
    pub const fn order(self) -> ByteOrder {
        self.order
    }

    /// Size of one element, bytes.
    #[must_use]
    pub const fn size_bytes(self) -> usize {
        self.element.size_bytes()
    }

    /// True where the stored order is not this host's.
    #[must_use]
    pub fn is_swapped(self) -> bool {
        self.size_bytes() > 1 && self.order != ByteOrder::NATIVE
    }

    /// Converts elements of this type in `bytes` to the byte order of the host, in place.
    pub fn to_native(self, bytes: &mut [u8]) {
        if self.is_swapped() {
            for element in bytes.chunks_exact_mut(self.size_bytes()) {
                element.reverse();
            }
        }
    }

    /// The element at `index` of `bytes` as a scalar; `None` beyond the end.
    #[must_use]
    pub fn scalar_at(self, bytes: &[u8], index: usize) -> Option<Scalar> {
        let size = self.size_bytes();
        let start = index.checked_mul(size)?;
        let mut raw = [0u8; 8];
        let found = bytes.get(start..start.checked_add(size)?)?;
        raw[..size].copy_from_slice(found);
        if self.order == ByteOrder::Big {
            raw[..size].reverse();
        }
        Some(Scalar::from_little_endian(self.element, raw))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match (self.size_bytes(), self.order) {
            (1, _) => '|',
            (_, ByteOrder::Little) => '<',
            (_, ByteOrder::Big) => '>',
        };
        write!(f, "{mark}{}", self.element.code())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for DType {
    type Err = Error;

    /// Reads `<f4`, `|u1`, `f4` (native), or a name such as `float32` or `u8`'s long form `uint8`.
    fn from_str(text: &str) -> Result<Self> {
        let (order, code) = match text.as_bytes().first() {
            Some(b'<') => (ByteOrder::Little, &text[1..]),
            Some(b'>') => (ByteOrder::Big, &text[1..]),
            Some(b'|' | b'=') => (ByteOrder::NATIVE, &text[1..]),
            _ => (ByteOrder::NATIVE, text),
        };
        ElementType::ALL
            .into_iter()
            .find(|e| e.code() == code || e.name() == code)
            .map(|element| Self::new(element, order))
            .ok_or_else(|| {
                Error::unsupported(format!(
                    "expected an element type such as `u1`, `<f4` or `float32`, found `{text}`"
                ))
            })
    }
}

impl From<DType> for String {
    fn from(t: DType) -> Self {
        t.to_string()
    }
}

impl TryFrom<String> for DType {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

/// Value of any element type, exact.
///
/// In JSON: a number where JSON can hold it exactly in double precision, else a string
/// (`"NaN"`, `"Infinity"`, `"-Infinity"`, or a decimal integer beyond 2^53).
///
/// Integers are equal by value, signed or unsigned (JSON does not distinguish them). Floats compare by
/// [`same_float`](crate::same_float): NaN equals itself, so that descriptions with NaN can be compared.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(into = "JsonScalar", try_from = "JsonScalar")]
pub enum Scalar {
    /// Unsigned integers and booleans.
    Unsigned(u64),
    /// Signed integers.
    Signed(i64),
    /// Floats.
    Float(f64),
}

impl PartialEq for Scalar {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self.integer(), other.integer()) {
            (Some(a), Some(b)) => a == b,
            (None, None) => same_float(self.as_f64(), other.as_f64()),
            _ => false,
        }
    }
}

impl Eq for Scalar {}

impl Scalar {
    /// The value of an integer.
    #[must_use]
    #[inline]
    pub fn integer(self) -> Option<i128> {
        match self {
            Self::Unsigned(v) => Some(v.into()),
            Self::Signed(v) => Some(v.into()),
            Self::Float(_) => None,
        }
    }

    /// Whether this is the smaller number, exactly for integers; false where one is NaN.
    #[must_use]
    #[inline]
    pub fn is_less_than(self, other: Self) -> bool {
        match (self.integer(), other.integer()) {
            (Some(a), Some(b)) => a < b,
            _ => self.as_f64() < other.as_f64(),
        }
    }

    /// The value as a double; integers beyond 2^53 are rounded.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "documented rounding")]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Unsigned(v) => v as f64,
            Self::Signed(v) => v as f64,
            Self::Float(v) => v,
        }
    }

    /// Converts to a type; `None` where the type does not have exactly this number.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "compared afterwards")]
    pub fn exactly(self, element: ElementType) -> Option<Self> {
        let value = self.as_f64();
        let is_same = |other: f64| {
            self.integer().map_or(value.to_bits() == other.to_bits(), |own| own == other as i128)
        };
        match element {
            _ if element.is_float() && value.is_nan() => Some(Self::Float(value)),
            F64 => is_same(value).then_some(Self::Float(value)),
            F32 => Some(f64::from(value as f32)).filter(|&v| is_same(v)).map(Self::Float),
            F16 => Some(f64::from(half::f16::from_f64(value))).filter(|&v| is_same(v)).map(Self::Float),
            _ => {
                let whole = self.whole()?;
                let (low, high) = element.limits();
                (low..=high).contains(&whole).then(|| Self::of_whole(whole, element))
            }
        }
    }

    /// The whole number modulo 2 to the power of an integer type's bits, as C and numpy cast; `None` for fractions and for
    /// types of no integers.
    #[must_use]
    pub fn wrapped(self, element: ElementType) -> Option<Self> {
        let bits = element.size_bytes() * 8;
        let whole = self.whole().filter(|_| element.is_integer())?.rem_euclid(1 << bits);
        let (_, high) = element.limits();
        Some(Self::of_whole(if whole > high { whole - (1 << bits) } else { whole }, element))
    }

    /// The value as an integer; `None` for fractions, and for floats beyond 1e30.
    #[expect(clippy::cast_possible_truncation, reason = "far below 2^127")]
    fn whole(self) -> Option<i128> {
        match self {
            Self::Float(v) if v.fract() == 0.0 && v.abs() < 1e30 => Some(v as i128),
            Self::Float(_) => None,
            other => other.integer(),
        }
    }

    /// Makes a scalar of an integer type, whose limits the number must respect.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the type's limits")]
    fn of_whole(whole: i128, element: ElementType) -> Self {
        if element.is_signed() { Self::Signed(whole as i64) } else { Self::Unsigned(whole as u64) }
    }

    /// Returns one element of a type, little-endian, rounded or truncated to the type: the inverse of
    /// [`Scalar::from_little_endian`] if the type represents the number.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "documented")]
    pub fn to_little_endian(self, element: ElementType) -> Vec<u8> {
        match element {
            F16 => half::f16::from_f64(self.as_f64()).to_le_bytes().to_vec(),
            F32 => (self.as_f64() as f32).to_le_bytes().to_vec(),
            F64 => self.as_f64().to_le_bytes().to_vec(),
            _ => self.whole().unwrap_or_default().to_le_bytes()[..element.size_bytes()].to_vec(),
        }
    }

    /// Interprets the first `size_bytes` of `raw`, little-endian, as `element`.
    #[must_use]
    pub fn from_little_endian(element: ElementType, raw: [u8; 8]) -> Self {
        let [a, b, c, d, ..] = raw;
        match element {
            Bool | U8 => Self::Unsigned(u64::from(a)),
            U16 => Self::Unsigned(u64::from(u16::from_le_bytes([a, b]))),
            U32 => Self::Unsigned(u64::from(u32::from_le_bytes([a, b, c, d]))),
            U64 => Self::Unsigned(u64::from_le_bytes(raw)),
            I8 => Self::Signed(i64::from(i8::from_le_bytes([a]))),
            I16 => Self::Signed(i64::from(i16::from_le_bytes([a, b]))),
            I32 => Self::Signed(i64::from(i32::from_le_bytes([a, b, c, d]))),
            I64 => Self::Signed(i64::from_le_bytes(raw)),
            F16 => Self::Float(f64::from(half::f16::from_le_bytes([a, b]))),
            F32 => Self::Float(f64::from(f32::from_le_bytes([a, b, c, d]))),
            F64 => Self::Float(f64::from_le_bytes(raw)),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum JsonScalar {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
}

const EXACT_IN_DOUBLE: u64 = 1 << 53;

impl From<Scalar> for JsonScalar {
    fn from(s: Scalar) -> Self {
        match s {
            Scalar::Unsigned(v) if v <= EXACT_IN_DOUBLE => Self::Unsigned(v),
            Scalar::Unsigned(v) => Self::Text(v.to_string()),
            Scalar::Signed(v) if v.unsigned_abs() <= EXACT_IN_DOUBLE => Self::Signed(v),
            Scalar::Signed(v) => Self::Text(v.to_string()),
            Scalar::Float(v) => float_text(v).map_or(Self::Float(v), |text| Self::Text(text.into())),
        }
    }
}

impl TryFrom<JsonScalar> for Scalar {
    type Error = Error;
    fn try_from(s: JsonScalar) -> Result<Self> {
        let text = match s {
            JsonScalar::Unsigned(v) => return Ok(Self::Unsigned(v)),
            JsonScalar::Signed(v) => return Ok(Self::Signed(v)),
            JsonScalar::Float(v) => return Ok(Self::Float(v)),
            JsonScalar::Text(text) => text,
        };
        if let Some(v) = float_of_text(&text) {
            return Ok(Self::Float(v));
        }
        if let Ok(v) = text.parse::<u64>() {
            return Ok(Self::Unsigned(v));
        }
        text.parse::<i64>()
            .map(Self::Signed)
            .map_err(|_| Error::corrupt(format!("expected a number or `NaN`, `Infinity`, found `{text}`")))
    }
}
