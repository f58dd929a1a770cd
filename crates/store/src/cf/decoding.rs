//! What netCDF4-python makes of stored values by default: `_FillValue`, `missing_value`, valid ranges,
//! `scale_factor`, `add_offset`, `_Unsigned`.

use array::{DType, Decoding, ElementType, Scalar};

use super::{Values, numbers, text};

/// Whether the library's own fill value counts as missing where the file names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultFill {
    /// It does, for bytes too: -127 and 255 are masked as netCDF4-python masks them. Not where
    /// `_Unsigned` says that every bit pattern is meant.
    Missing,
    /// The file was written without filling.
    Ordinary,
}

/// Whether signed integers are meant unsigned.
pub(super) fn is_unsigned(values: &Values) -> bool {
    matches!(text(values, "_Unsigned"), Some("true" | "True"))
}

/// The type in which values are given: the unsigned one of the same size where `_Unsigned` says so.
pub(crate) fn stored_dtype(dtype: DType, values: &Values) -> DType {
    use ElementType::{I8, I16, I32, I64, U8, U16, U32, U64};
    let element = match dtype.element() {
        I8 => U8,
        I16 => U16,
        I32 => U32,
        I64 => U64,
        _ => return dtype,
    };
    if is_unsigned(values) { DType::new(element, dtype.order()) } else { dtype }
}

/// How stored values of `dtype` (after [`stored_dtype`]) become the meant ones.
pub(crate) fn decoding(dtype: DType, values: &Values, fill: DefaultFill) -> Decoding {
    let element = dtype.element();
    let one = |name: &str| number(values, name, element, is_unsigned(values));
    let mut missing: Vec<Scalar> =
        list(values, "missing_value", element, is_unsigned(values)).unwrap_or_default();
    match one("_FillValue") {
        Some(value) => missing.push(value),
        None if values.contains_key("_FillValue") || is_unsigned(values) => {}
        None if fill == DefaultFill::Missing => missing.extend(default_fill(element)),
        None => {}
    }
    missing.dedup_by(|a, b| a == b);
    let range = list(values, "valid_range", element, is_unsigned(values)).filter(|r| r.len() == 2);
    let (low, high) = match range.as_deref() {
        Some(&[low, high]) => (Some(low), Some(high)),
        _ => (one("valid_min"), one("valid_max")),
    };
    let ends = ends(element);
    let valid = (low.is_some() || high.is_some()).then(|| (low.unwrap_or(ends.0), high.unwrap_or(ends.1)));
    let (scale, offset) = (factor(values, "scale_factor"), factor(values, "add_offset"));
    let mut decoding = Decoding {
        scale: scale.map_or(1.0, |(_, v)| v),
        offset: offset.map_or(0.0, |(_, v)| v),
        missing,
        valid,
        output: dtype,
    };
    decoding.output = DType::native(output(element, scale, offset, &decoding));
    decoding
}

/// The meant values of elements of `dtype` (before [`stored_dtype`]).
pub(crate) fn decoded(bytes: &[u8], dtype: DType, values: &Values, fill: DefaultFill) -> Vec<f64> {
    let dtype = stored_dtype(dtype, values);
    let decoding = decoding(dtype, values, fill);
    let stored = (0..bytes.len() / dtype.size_bytes()).filter_map(|i| dtype.scalar_at(bytes, i));
    stored.map(|one| decoding.decode(one)).collect()
}

/// The type that numpy gives to `stored * scale + offset`, where all have types.
fn output(
    stored: ElementType,
    scale: Option<(ElementType, f64)>,
    offset: Option<(ElementType, f64)>,
    decoding: &Decoding,
) -> ElementType {
    let changes = |step: Option<(ElementType, f64)>, neutral: f64| {
        step.is_some_and(|(_, v)| v.to_bits() != neutral.to_bits())
    };
    let element = match (scale, offset) {
        // Both there and neutral: netCDF4 converts to the factor's type all the same.
        (Some((to, _)), Some(_)) if !changes(scale, 1.0) && !changes(offset, 0.0) => {
            if to.is_float() {
                to
            } else {
                stored
            }
        }
        (Some((a, _)), Some((b, _))) => promoted(promoted(stored, a), b),
        (Some((a, _)), None) if changes(scale, 1.0) => promoted(stored, a),
        (None, Some((b, _))) if changes(offset, 0.0) => promoted(stored, b),
        _ => stored,
    };
    // Missing values are said as NaN, and scaled integers by integers are floats here too.
    if decoding.is_identity() { element } else { element.decoded() }
}

/// numpy's common type of an array and a factor, as far as floats are concerned.
fn promoted(array: ElementType, factor: ElementType) -> ElementType {
    use ElementType::{F32, F64};
    let exact_in_single = |e: ElementType| e.size_bytes() <= 2;
    match (array, factor) {
        (F64, _) | (_, F64) => F64,
        (F32, F32) => F32,
        (F32, other) | (other, F32) if exact_in_single(other) => F32,
        _ => F64,
    }
}

/// A factor that is a single number.
fn factor(values: &Values, name: &str) -> Option<(ElementType, f64)> {
    match numbers(values, name)? {
        (element, &[one]) => Some((element, one.as_f64())).filter(|(_, v)| v.is_finite()),
        _ => None,
    }
}

fn number(values: &Values, name: &str, element: ElementType, unsigned: bool) -> Option<Scalar> {
    list(values, name, element, unsigned)?.first().copied()
}

/// The numbers of an attribute in the variable's type; `None` unless every one is representable.
fn list(values: &Values, name: &str, element: ElementType, unsigned: bool) -> Option<Vec<Scalar>> {
    let (_, numbers) = numbers(values, name)?;
    numbers.iter().map(|&n| cast(n, element, unsigned)).collect()
}

/// The same value in another type, if there is one. With `unsigned`, the attribute is written in the signed
/// type, as the variable is.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before each cast")]
fn cast(value: Scalar, element: ElementType, unsigned: bool) -> Option<Scalar> {
    if element == ElementType::F32 {
        let single = f64::from(value.as_f64() as f32);
        let same = single.to_bits() == value.as_f64().to_bits() || single.is_nan();
        return same.then_some(Scalar::Float(single));
    }
    if element.is_float() {
        return Some(Scalar::Float(value.as_f64()));
    }
    let whole = match value {
        Scalar::Unsigned(v) => i128::from(v),
        Scalar::Signed(v) => i128::from(v),
        Scalar::Float(v) if v.fract() == 0.0 && v.abs() < 1.9e19 => v as i128,
        Scalar::Float(_) => return None,
    };
    let bits = element.size_bytes() * 8;
    let (low, high) = if is_signed(element) || unsigned {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    if !(low..=high).contains(&whole) {
        return None;
    }
    Some(match (is_signed(element), whole < 0) {
        (true, _) => Scalar::Signed(whole as i64),
        (false, true) => Scalar::Unsigned((whole + (1i128 << bits)) as u64),
        (false, false) => Scalar::Unsigned(whole as u64),
    })
}

fn is_signed(element: ElementType) -> bool {
    use ElementType::{I8, I16, I32, I64};
    matches!(element, I8 | I16 | I32 | I64)
}

fn ends(element: ElementType) -> (Scalar, Scalar) {
    let bits = element.size_bytes() * 8;
    if element.is_float() {
        (Scalar::Float(f64::NEG_INFINITY), Scalar::Float(f64::INFINITY))
    } else if is_signed(element) {
        (Scalar::Signed(i64::MIN >> (64 - bits)), Scalar::Signed(i64::MAX >> (64 - bits)))
    } else {
        (Scalar::Unsigned(0), Scalar::Unsigned(u64::MAX >> (64 - bits)))
    }
}

/// What the library writes where nothing was written.
fn default_fill(element: ElementType) -> Option<Scalar> {
    use ElementType::{Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    match element {
        Bool | F16 => None,
        I8 => Some(Scalar::Signed(-127)),
        U8 => Some(Scalar::Unsigned(255)),
        I16 => Some(Scalar::Signed(-32_767)),
        U16 => Some(Scalar::Unsigned(65_535)),
        I32 => Some(Scalar::Signed(-2_147_483_647)),
        U32 => Some(Scalar::Unsigned(4_294_967_295)),
        I64 => Some(Scalar::Signed(-9_223_372_036_854_775_806)),
        U64 => Some(Scalar::Unsigned(18_446_744_073_709_551_614)),
        F32 | F64 => Some(Scalar::Float(9.969_209_968_386_869e36)),
    }
}
