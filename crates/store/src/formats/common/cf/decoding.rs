//! Decoding of stored values as in xarray (`decode_cf` without times): `_FillValue`, `missing_value`, `scale_factor`,
//! `add_offset`, `_Unsigned`; values and types equal xarray's to the last bit.
//!
//! Differences to netCDF4 (`set_auto_maskandscale(True)`), where xarray is followed:
//!
//! - values outside `valid_range`, `valid_min`, `valid_max`, and the library's default fill values if the file names none, are
//!   values. Pictures, levels and statistics ignore them ([`Decoding::is_missing`]);
//! - `_Unsigned` does not change `missing_value`, only `_FillValue`; `_Unsigned` is `true` or `false`, in lower case;
//! - integers of 8 and 16 bits with missing values become single, not double precision;
//! - a single-precision factor without an offset gives single precision, also for integers of any size.
//!
//! xarray is not followed if it fails or truncates: an integer factor of floats, or of values with missing ones, gives double
//! precision. A text instead of a number (`scale_factor = "0.1"`) is not a number for either library: such a variable is not
//! decoded, and its stored values are served.

use array::{DType, Decoding, Element, ElementType, Scalar};

use super::{CfAttributes, CfValue, text};

/// Whether the library's own fill value counts as unset where the file names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultFill {
    /// It counts as unset, for bytes too (-127 and 255), unless `_Unsigned` reinterprets the bits.
    Missing,
    /// It is a value: the variable was not filled with it, or is of bytes and was written without filling.
    Ordinary,
}

/// Whether `_Unsigned` reinterprets the bits of integers of this type as unsigned (or signed).
fn reinterpreted(element: ElementType, values: &CfAttributes) -> Option<bool> {
    match text(values, "_Unsigned")? {
        "true" if element.is_signed() => Some(true),
        "false" if element.is_integer() && !element.is_signed() => Some(false),
        _ => None,
    }
}

/// Returns the decoding of stored values of `dtype`.
pub(crate) fn decoding(dtype: DType, values: &CfAttributes, fill: DefaultFill) -> Decoding {
    let mut decoding = Decoding::identity(dtype);
    decoding.unsigned = reinterpreted(dtype.element(), values);
    let element = decoding.meant(dtype).element();
    let named = FillValues::of(dtype.element(), element, values);
    decoding.missing.clone_from(&named.missing);
    if fill == DefaultFill::Missing && decoding.unsigned.is_none() && !values.contains_key("_FillValue") {
        decoding.unset.extend(default_fill_of(element));
    }
    decoding.valid = valid(element, values, decoding.unsigned.is_some());
    let (scale, offset) = (ScaleFactor::of(values, "scale_factor"), ScaleFactor::of(values, "add_offset"));
    decoding.obstacle = scale.obstacle().or_else(|| offset.obstacle()).cloned();
    if decoding.obstacle.is_none() {
        (decoding.scale, decoding.offset) = (scale.value().unwrap_or(1.0), offset.value().unwrap_or(0.0));
    }
    let output = match (scale.element(), offset.element()) {
        _ if decoding.obstacle.is_some() => element,
        (None, None) if named.masks => promoted(element),
        (None, None) => element,
        // A fill value of NaN: xarray masks nothing, and leaves floats unchanged.
        _ if named.is_said && !named.masks => element,
        (scale, offset) => float_of(element, scale, offset, named.masks),
    };
    decoding.output = DType::native(output);
    decoding
}

/// Positions of the samples of a coordinate: the decoded values of elements of `dtype`, NaN for missing ones.
pub(crate) fn decoded(bytes: &[u8], dtype: DType, values: &CfAttributes, fill: DefaultFill) -> Vec<f64> {
    let decoding = decoding(dtype, values, fill);
    if decoding.obstacle.is_some() {
        return Vec::new();
    }
    let dtype = decoding.meant(dtype);
    let stored = (0..bytes.len() / dtype.size_bytes()).filter_map(|i| dtype.scalar_at(bytes, i));
    stored.map(|one| decoding.decode(one)).collect()
}

/// Values of the attributes `_FillValue` and `missing_value`.
struct FillValues {
    missing: Vec<Scalar>,
    /// Whether a missing value other than NaN is named, so that values must be compared.
    masks: bool,
    /// Whether one of the attributes is present.
    is_said: bool,
}

impl FillValues {
    fn of(stored: ElementType, meant: ElementType, values: &CfAttributes) -> Self {
        let mut named = Self { missing: Vec::new(), masks: false, is_said: false };
        let is_number = |n: &Scalar| !n.as_f64().is_nan();
        let fills = numbers(values, "_FillValue");
        let turned = |n: Scalar| if stored == meant { n } else { n.wrapped(meant).unwrap_or(n) };
        let others = numbers(values, "missing_value").iter().copied();
        // Where `_Unsigned` turns the fill value, xarray forgets a missing value that is the same.
        let others = others.filter(|other| stored == meant || !fills.contains(other));
        for number in fills.iter().copied().map(turned).chain(others) {
            // NaN is no integer: the attribute is ignored.
            if is_number(&number) || stored.is_float() {
                named.masks |= is_number(&number);
                named.is_said = true;
                if !named.missing.contains(&number) {
                    named.missing.push(number);
                }
            }
        }
        // A text is compared too, and is no number.
        let is_text = |name| matches!(values.get(name), Some(CfValue::Text(_) | CfValue::Texts(_)));
        if is_text("_FillValue") || is_text("missing_value") {
            (named.masks, named.is_said) = (true, true);
        }
        named
    }
}

/// The numbers of an attribute; none where it is none or text.
fn numbers<'a>(values: &'a CfAttributes, name: &str) -> &'a [Scalar] {
    super::numbers(values, name).map_or(&[], |(_, numbers)| numbers)
}

/// A factor or an offset.
enum ScaleFactor {
    Absent,
    Number(ElementType, f64),
    /// There is one that is no number; why.
    Obstacle(String),
}

impl ScaleFactor {
    fn of(values: &CfAttributes, name: &str) -> Self {
        match values.get(name) {
            None => Self::Absent,
            Some(CfValue::Numbers(element, numbers)) => match numbers[..] {
                [one] if one.as_f64().is_finite() => Self::Number(*element, one.as_f64()),
                [one] => Self::Obstacle(format!("its `{name}` is {}", one.as_f64())),
                _ => Self::Obstacle(format!("its `{name}` has {} values", numbers.len())),
            },
            Some(CfValue::Text(text)) => {
                Self::Obstacle(format!("its `{name}` is text, `{}`", shortened(text)))
            }
            Some(CfValue::Texts(_)) => Self::Obstacle(format!("its `{name}` is text")),
        }
    }

    fn element(&self) -> Option<ElementType> {
        match self {
            Self::Number(element, _) => Some(*element),
            _ => None,
        }
    }

    fn value(&self) -> Option<f64> {
        match self {
            Self::Number(_, value) => Some(*value),
            _ => None,
        }
    }

    fn obstacle(&self) -> Option<&String> {
        match self {
            Self::Obstacle(why) => Some(why),
            _ => None,
        }
    }
}

/// Shortens a text to the length that an error shows.
fn shortened(text: &str) -> String {
    const MAX_SHOWN: usize = 40;
    text.chars().take(MAX_SHOWN).collect()
}

/// xarray's type for values among which some are missing, and nothing is scaled.
fn promoted(element: ElementType) -> ElementType {
    match element.size_bytes() {
        _ if element.is_float() => element,
        1 | 2 => ElementType::F32,
        _ => ElementType::F64,
    }
}

/// xarray's type for scaled values.
fn float_of(
    stored: ElementType,
    scale: Option<ElementType>,
    offset: Option<ElementType>,
    masks: bool,
) -> ElementType {
    use ElementType::{F32, F64};
    match (scale, offset) {
        (Some(F32), Some(F32)) if stored.is_integer() && stored.size_bytes() == 4 => F64,
        (Some(F32), Some(F32)) => F32,
        (Some(to), None) if to.is_float() || (stored.is_integer() && to.is_integer() && !masks) => to,
        _ => F64,
    }
}

/// Bounds of the values that are drawn, in the type of the values; the file may write them in either signedness if they are
/// `turned`.
fn valid(element: ElementType, values: &CfAttributes, turned: bool) -> Option<(Scalar, Scalar)> {
    let bound = |n: Scalar| match n {
        _ if element.is_float() => (!n.as_f64().is_nan()).then(|| Scalar::Float(n.as_f64())),
        _ if turned => n.wrapped(element),
        _ => n.exactly(element),
    };
    let (low, high) = match numbers(values, "valid_range") {
        &[low, high] => (bound(low), bound(high)),
        _ => {
            let one = |name| numbers(values, name).first().copied().and_then(bound);
            (one("valid_min"), one("valid_max"))
        }
    };
    let (lowest, highest) = ends(element);
    (low.is_some() || high.is_some()).then(|| (low.unwrap_or(lowest), high.unwrap_or(highest)))
}

fn ends(element: ElementType) -> (Scalar, Scalar) {
    let bits = element.size_bytes() * 8;
    if element.is_float() {
        (Scalar::Float(f64::NEG_INFINITY), Scalar::Float(f64::INFINITY))
    } else if element.is_signed() {
        (Scalar::Signed(i64::MIN >> (64 - bits)), Scalar::Signed(i64::MAX >> (64 - bits)))
    } else {
        (Scalar::Unsigned(0), Scalar::Unsigned(u64::MAX >> (64 - bits)))
    }
}

/// Returns the library's default fill value as a stored element; `None` for types without one.
pub(crate) fn default_fill(dtype: DType) -> Option<Vec<u8>> {
    let mut bytes = vec![0; dtype.size_bytes()];
    let fill = default_fill_of(dtype.element())?;
    array::with_element!(dtype.element(), T => {
        let native: Vec<u8> = fill.to_little_endian(dtype.element());
        T::read(&native, array::ByteOrder::Little).write(&mut bytes, dtype.order());
    });
    Some(bytes)
}

/// Value that the netCDF library writes where nothing was written.
fn default_fill_of(element: ElementType) -> Option<Scalar> {
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
