//! Data types of the elements of data sets and attributes.
#![expect(unsafe_code, reason = "HDF5 is a C library")]

use std::ffi::{CStr, c_uint, c_void};
use std::fmt;

use array::{ByteOrder, DType, ElementType};
use hdf5_metno_sys::h5::H5free_memory;
use hdf5_metno_sys::h5t::{
    H5T_class_t, H5T_order_t, H5T_sign_t, H5T_str_t, H5Tget_array_dims2, H5Tget_array_ndims, H5Tget_class,
    H5Tget_ebias, H5Tget_fields, H5Tget_member_name, H5Tget_member_offset, H5Tget_member_type,
    H5Tget_member_value, H5Tget_nmembers, H5Tget_offset, H5Tget_order, H5Tget_precision, H5Tget_sign,
    H5Tget_size, H5Tget_strpad, H5Tget_super, H5Tis_variable_str,
};
use serde::{Deserialize, Serialize};

use super::super::hexadecimal;
use super::calls::{Handle, locked};

/// Most members of an HDF5 compound that are read; members of nested compounds count too.
const MAX_COMPOUND_MEMBERS: usize = 256;
/// Deepest nesting of HDF5 compounds.
const MAX_NESTED: usize = 8;

/// Member of a compound that is a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct CompoundMember {
    /// Names of compounds within compounds are joined by dots.
    pub(in super::super) name: String,
    /// Bytes from the start of the compound.
    pub(in super::super) offset: usize,
    pub(in super::super) dtype: DType,
}

/// Position of the bits of an integer in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct PaddedBits {
    /// Type after [`widen`](Self::widen): all bytes, little-endian.
    pub(in super::super) dtype: DType,
    bits: usize,
    offset: usize,
    is_signed: bool,
    is_big: bool,
}

impl PaddedBits {
    /// Makes integers of all their bytes of stored ones.
    pub(in super::super) fn widen(self, elements: &mut [u8]) {
        let size = self.dtype.size_bytes();
        let mask = u64::MAX >> (u64::BITS as usize - self.bits);
        for element in elements.chunks_exact_mut(size) {
            let mut wide = [0; 8];
            if self.is_big {
                element.reverse();
            }
            wide[..size].copy_from_slice(element);
            let mut value = u64::from_le_bytes(wide) >> self.offset & mask;
            if self.is_signed && value >> (self.bits - 1) & 1 == 1 {
                value |= !mask;
            }
            element.copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
}

/// End of a string within its fixed number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) enum TextEnd {
    /// The last byte: the string is padded by zeros.
    Last,
    /// The first zero, as in C: the bytes after it are arbitrary.
    FirstZero,
    /// The last byte that is no space, as in Fortran.
    Spaces,
}

impl TextEnd {
    /// Sets all bytes behind the end of a string to zero.
    pub(in super::super) fn clear_rest(self, text: &mut [u8]) {
        let end = match self {
            Self::Last => text.len(),
            Self::FirstZero => text.iter().position(|&byte| byte == 0).unwrap_or(text.len()),
            Self::Spaces => text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1),
        };
        text[end..].fill(0);
    }
}

/// Data type of one element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) enum Datatype {
    /// A number whose stored form is an IEEE 754 or two's complement one without padding.
    Number(DType),
    /// An integer of fewer bits than its bytes have.
    Padded(PaddedBits),
    /// An enumeration, as its integers: names, and their values one after another.
    Enumeration {
        dtype: DType,
        names: Vec<String>,
        #[serde(with = "hexadecimal")]
        values: Vec<u8>,
    },
    /// Numbers in an array of this shape, C order.
    Array(DType, Vec<u64>),
    /// Numbers of several types. `others` are the other members, with descriptions of their types.
    Compound { size_bytes: usize, members: Vec<CompoundMember>, others: Vec<(String, String)> },
    /// Strings of a fixed size in bytes.
    FixedText { size_bytes: usize, end: TextEnd },
    /// Strings of any length.
    VariableText,
    /// References to objects of the file.
    Reference,
    /// Lists of references, as netCDF-4 writes them for dimensions.
    ReferenceList,
    /// Description of any other type.
    Other(String),
}

impl Datatype {
    pub(super) fn of(datatype: &Handle) -> Self {
        locked(|| {
            // SAFETY: a valid data type identifier, under the lock.
            let (class, size) = unsafe { (H5Tget_class(datatype.0), H5Tget_size(datatype.0)) };
            match class {
                H5T_class_t::H5T_INTEGER => integer(datatype, size),
                H5T_class_t::H5T_FLOAT => float(datatype, size),
                H5T_class_t::H5T_BITFIELD => number(datatype, size, false),
                H5T_class_t::H5T_ENUM => enumeration(datatype),
                H5T_class_t::H5T_STRING => text(datatype, size),
                H5T_class_t::H5T_REFERENCE if size == size_of::<u64>() => Self::Reference,
                H5T_class_t::H5T_VLEN => list(datatype),
                H5T_class_t::H5T_TIME => Self::Other("time".into()),
                H5T_class_t::H5T_OPAQUE => Self::Other(format!("opaque of {size} bytes")),
                H5T_class_t::H5T_COMPOUND => compound(datatype, size),
                H5T_class_t::H5T_REFERENCE => Self::Other("region reference".into()),
                H5T_class_t::H5T_ARRAY => array_of(datatype),
                H5T_class_t::H5T_COMPLEX => complex(datatype, size),
                _ => Self::Other("unknown element type".into()),
            }
        })
    }
}

fn order(datatype: &Handle) -> Option<ByteOrder> {
    // SAFETY: a valid data type identifier; the caller holds the lock.
    match unsafe { H5Tget_order(datatype.0) } {
        H5T_order_t::H5T_ORDER_LE => Some(ByteOrder::Little),
        H5T_order_t::H5T_ORDER_BE => Some(ByteOrder::Big),
        _ => None,
    }
}

fn integer(datatype: &Handle, size: usize) -> Datatype {
    // SAFETY: as in `order`.
    let signed = unsafe { H5Tget_sign(datatype.0) } == H5T_sign_t::H5T_SGN_2;
    number(datatype, size, signed)
}

fn number(datatype: &Handle, size: usize, signed: bool) -> Datatype {
    // SAFETY: as in `order`.
    let (precision, offset) = unsafe { (H5Tget_precision(datatype.0), H5Tget_offset(datatype.0)) };
    let element = match (size, signed) {
        (1, false) => ElementType::U8,
        (2, false) => ElementType::U16,
        (4, false) => ElementType::U32,
        (8, false) => ElementType::U64,
        (1, true) => ElementType::I8,
        (2, true) => ElementType::I16,
        (4, true) => ElementType::I32,
        (8, true) => ElementType::I64,
        _ => return Datatype::Other(format!("integer of {size} bytes")),
    };
    let at = usize::try_from(offset).unwrap_or(usize::MAX);
    match order(datatype) {
        Some(order) if precision == 8 * size && offset == 0 => Datatype::Number(DType::new(element, order)),
        Some(order) if precision > 0 && at.checked_add(precision).is_some_and(|end| end <= 8 * size) => {
            Datatype::Padded(PaddedBits {
                dtype: DType::new(element, ByteOrder::Little),
                bits: precision,
                offset: at,
                is_signed: signed,
                is_big: order == ByteOrder::Big,
            })
        }
        _ => Datatype::Other(format!("integer of {precision} bits in {size} bytes")),
    }
}

/// Bit positions and widths of sign, exponent and mantissa, and the bias of the exponent.
#[derive(Default, PartialEq, Eq)]
struct FloatLayout {
    sign_at: usize,
    exponent_at: usize,
    exponent_bits: usize,
    mantissa_at: usize,
    mantissa_bits: usize,
    bias: usize,
}

impl FloatLayout {
    const fn ieee(exponent_bits: usize, mantissa_bits: usize) -> Self {
        Self {
            sign_at: exponent_bits + mantissa_bits,
            exponent_at: mantissa_bits,
            exponent_bits,
            mantissa_at: 0,
            mantissa_bits,
            bias: (1 << (exponent_bits - 1)) - 1,
        }
    }
}

fn float(datatype: &Handle, size: usize) -> Datatype {
    let mut found = FloatLayout::default();
    // SAFETY: a valid data type identifier and valid places for the results; the caller holds the lock.
    let known = unsafe {
        found.bias = H5Tget_ebias(datatype.0);
        H5Tget_fields(
            datatype.0,
            &raw mut found.sign_at,
            &raw mut found.exponent_at,
            &raw mut found.exponent_bits,
            &raw mut found.mantissa_at,
            &raw mut found.mantissa_bits,
        )
    };
    let element = match size {
        2 if found == FloatLayout::ieee(5, 10) => Some(ElementType::F16),
        4 if found == FloatLayout::ieee(8, 23) => Some(ElementType::F32),
        8 if found == FloatLayout::ieee(11, 52) => Some(ElementType::F64),
        _ => None,
    };
    match (element, order(datatype)) {
        (Some(element), Some(order)) if known >= 0 => Datatype::Number(DType::new(element, order)),
        _ => Datatype::Other(format!("float of {size} bytes that is not IEEE 754")),
    }
}

/// Returns a boolean (as h5py writes it) or the integers of the enumeration.
fn enumeration(datatype: &Handle) -> Datatype {
    // SAFETY: a valid data type identifier; the caller holds the lock.
    let Ok(base) = Handle::new("give the base of an enumeration", || unsafe { H5Tget_super(datatype.0) })
    else {
        return Datatype::Other("enumeration".into());
    };
    // SAFETY: as above.
    let (members, size) = unsafe { (H5Tget_nmembers(datatype.0), H5Tget_size(base.0)) };
    let names = |n: c_uint| (0..n).map(|i| member_name(datatype, i)).collect::<Vec<_>>();
    if members == 2 && size == 1 {
        let mut values = [0u8; 2];
        for (number, value) in (0..).zip(&mut values) {
            // SAFETY: a valid enumeration over one byte, a number below its count, and room for one value.
            unsafe { H5Tget_member_value(datatype.0, number, std::ptr::from_mut(value).cast()) };
        }
        if is_boolean(&names(2), values) {
            return Datatype::Number(DType::native(ElementType::Bool));
        }
    }
    let Datatype::Number(dtype) = Datatype::of(&base) else { return Datatype::of(&base) };
    let count = usize::try_from(members).unwrap_or(0).min(MAX_COMPOUND_MEMBERS);
    let mut values = vec![0; count * size];
    for (number, value) in (0..).zip(values.chunks_exact_mut(size.max(1))) {
        // SAFETY: a valid enumeration, a number below its count, and room for one value of the base.
        unsafe { H5Tget_member_value(datatype.0, number, value.as_mut_ptr().cast()) };
    }
    let names = names(c_uint::try_from(count).unwrap_or(0));
    Datatype::Enumeration { dtype, names, values }
}

/// Whether the members of an enumeration over one byte are those of h5py's `bool`, in either order.
fn is_boolean(names: &[String], values: [u8; 2]) -> bool {
    match names {
        [first, second] if first == "FALSE" && second == "TRUE" => values == [0, 1],
        [first, second] if first == "TRUE" && second == "FALSE" => values == [1, 0],
        _ => false,
    }
}

fn member_name(datatype: &Handle, member: c_uint) -> String {
    // SAFETY: the library gives a NUL-terminated string that the caller frees, or null.
    unsafe {
        let name = H5Tget_member_name(datatype.0, member);
        if name.is_null() {
            return String::new();
        }
        let text = CStr::from_ptr(name).to_string_lossy().into_owned();
        H5free_memory(name.cast::<c_void>());
        text
    }
}

fn compound(datatype: &Handle, size_bytes: usize) -> Datatype {
    let (mut members, mut others) = (Vec::new(), Vec::new());
    add_members(datatype, "", 0, 0, &mut members, &mut others);
    // A member that reaches beyond its compound comes from damage.
    members.retain(|m: &CompoundMember| {
        m.offset.checked_add(m.dtype.size_bytes()).is_some_and(|end| end <= size_bytes)
    });
    Datatype::Compound { size_bytes, members, others }
}

fn add_members(
    datatype: &Handle,
    prefix: &str,
    offset: usize,
    depth: usize,
    members: &mut Vec<CompoundMember>,
    others: &mut Vec<(String, String)>,
) {
    // SAFETY: a valid data type identifier; the caller holds the lock.
    let count = c_uint::try_from(unsafe { H5Tget_nmembers(datatype.0) }).unwrap_or(0);
    for number in 0..count {
        if members.len() + others.len() >= MAX_COMPOUND_MEMBERS {
            return;
        }
        let name = format!("{prefix}{}", member_name(datatype, number));
        // SAFETY: a valid compound, and a number below its count.
        let at = offset.saturating_add(unsafe { H5Tget_member_offset(datatype.0, number) });
        // SAFETY: as above.
        let of = Handle::new("give a member", || unsafe { H5Tget_member_type(datatype.0, number) });
        let Ok(of) = of else { continue };
        // SAFETY: a valid data type identifier.
        if unsafe { H5Tget_class(of.0) } == H5T_class_t::H5T_COMPOUND && depth < MAX_NESTED {
            add_members(&of, &format!("{name}."), at, depth + 1, members, others);
            continue;
        }
        match Datatype::of(&of) {
            Datatype::Number(dtype) | Datatype::Enumeration { dtype, .. } => {
                members.push(CompoundMember { name, offset: at, dtype });
            }
            other => others.push((name, other.to_string())),
        }
    }
}

/// Describes a complex number as a compound of a real and an imaginary part.
fn complex(datatype: &Handle, size_bytes: usize) -> Datatype {
    // SAFETY: as in `enumeration`.
    let base = Handle::new("give the parts of complex numbers", || unsafe { H5Tget_super(datatype.0) });
    match base.as_ref().map(Datatype::of) {
        Ok(Datatype::Number(dtype)) if 2 * dtype.size_bytes() == size_bytes => {
            let part = |name: &str, offset| CompoundMember { name: name.into(), offset, dtype };
            let members = vec![part("r", 0), part("i", dtype.size_bytes())];
            Datatype::Compound { size_bytes, members, others: Vec::new() }
        }
        _ => Datatype::Other("complex".into()),
    }
}

fn array_of(datatype: &Handle) -> Datatype {
    const MOST_AXES: usize = 32;
    let mut sizes = [0u64; MOST_AXES];
    // SAFETY: a valid array type, which has at most as many axes as there is room for; the caller holds the lock.
    let count = unsafe { H5Tget_array_ndims(datatype.0) };
    let count = usize::try_from(count).ok().filter(|&n| (1..=MOST_AXES).contains(&n));
    // SAFETY: as above.
    let base = Handle::new("give the base of an array", || unsafe { H5Tget_super(datatype.0) });
    match (count, base.as_ref().map(Datatype::of)) {
        (Some(count), Ok(Datatype::Number(dtype))) => {
            // SAFETY: as above.
            unsafe { H5Tget_array_dims2(datatype.0, sizes.as_mut_ptr()) };
            Datatype::Array(dtype, sizes[..count].to_vec())
        }
        _ => Datatype::Other("array of something else than numbers as element".into()),
    }
}

/// Describes the type in error messages.
impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(dtype) | Self::Enumeration { dtype, .. } => write!(f, "{dtype}"),
            Self::Padded(padded) => write!(f, "{} of fewer bits", padded.dtype),
            Self::Array(dtype, sizes) => write!(f, "array of {dtype} of shape {sizes:?}"),
            Self::Compound { members, others, .. } => {
                let numbers: Vec<&str> = members.iter().map(|m| m.name.as_str()).collect();
                if numbers == ["r", "i"] && others.is_empty() {
                    return f.write_str("complex");
                }
                let names = numbers.into_iter().chain(others.iter().map(|(name, _)| name.as_str()));
                write!(f, "compound of {}", names.take(8).collect::<Vec<_>>().join(", "))
            }
            Self::FixedText { .. } | Self::VariableText => f.write_str("string"),
            Self::Reference => f.write_str("reference"),
            Self::ReferenceList => f.write_str("list of references"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

fn text(datatype: &Handle, size: usize) -> Datatype {
    // SAFETY: a valid data type identifier; the caller holds the lock.
    let (variable, pad) = unsafe { (H5Tis_variable_str(datatype.0), H5Tget_strpad(datatype.0)) };
    if variable > 0 {
        return Datatype::VariableText;
    }
    let end = match pad {
        H5T_str_t::H5T_STR_NULLTERM => TextEnd::FirstZero,
        H5T_str_t::H5T_STR_SPACEPAD => TextEnd::Spaces,
        _ => TextEnd::Last,
    };
    Datatype::FixedText { size_bytes: size, end }
}

fn list(datatype: &Handle) -> Datatype {
    // SAFETY: as in `enumeration`.
    let base = Handle::new("give the base of a list", || unsafe { H5Tget_super(datatype.0) });
    match base.as_ref().map(Datatype::of) {
        Ok(Datatype::Reference) => Datatype::ReferenceList,
        Ok(Datatype::Number(dtype)) => Datatype::Other(format!("lists of {dtype}")),
        _ => Datatype::Other("lists".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_enumeration_is_a_boolean_by_its_names_and_values() {
        let is_bool = |names: [&str; 2], values| is_boolean(&names.map(str::to_owned), values);
        assert!(is_bool(["FALSE", "TRUE"], [0, 1]));
        assert!(is_bool(["TRUE", "FALSE"], [1, 0]));
        assert!(!is_bool(["FALSE", "TRUE"], [1, 0]));
        assert!(!is_bool(["FALSE", "TRUE"], [0, 255]));
        assert!(!is_bool(["OFF", "ON"], [0, 1]));
    }

    #[test]
    fn what_follows_the_end_of_a_string_is_cleared() {
        // As h5py reads strings of these kinds.
        for (end, stored, expected) in [
            (TextEnd::Last, b"ab\0garb ", b"ab\0garb "),
            (TextEnd::FirstZero, b"ab\0garb ", b"ab\0\0\0\0\0\0"),
            (TextEnd::FirstZero, b"ab      ", b"ab      "),
            (TextEnd::Spaces, b"ab      ", b"ab\0\0\0\0\0\0"),
            (TextEnd::Spaces, b"ab\0garb ", b"ab\0garb\0"),
            (TextEnd::Spaces, b"        ", b"\0\0\0\0\0\0\0\0"),
            (TextEnd::FirstZero, b"12345678", b"12345678"),
        ] {
            let mut text = *stored;
            end.clear_rest(&mut text);
            assert_eq!(&text, expected, "{end:?} of {stored:?}");
        }
    }
}
