//! Element types of data sets and attributes, as far as they are told apart.
#![expect(unsafe_code, reason = "HDF5 is a C library")]

use std::ffi::{CStr, c_uint, c_void};

use array::{ByteOrder, DType, ElementType};
use hdf5_metno_sys::h5::H5free_memory;
use hdf5_metno_sys::h5t::{
    H5T_class_t, H5T_order_t, H5T_sign_t, H5T_str_t, H5Tget_class, H5Tget_ebias, H5Tget_fields,
    H5Tget_member_name, H5Tget_nmembers, H5Tget_offset, H5Tget_order, H5Tget_precision, H5Tget_sign,
    H5Tget_size, H5Tget_strpad, H5Tget_super, H5Tis_variable_str,
};
use serde::{Deserialize, Serialize};

use super::{Handle, locked};

/// What one element is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) enum Element {
    /// A number whose stored form is an IEEE 754 or two's complement one without padding.
    Number(DType),
    /// Strings of a fixed size in bytes.
    FixedText {
        size_bytes: usize,
        /// Padded with spaces rather than zeros.
        spaces: bool,
    },
    /// Strings of any length.
    VariableText,
    /// References to objects of the file.
    Reference,
    /// Lists of references, as netCDF-4 writes them for dimensions.
    ReferenceList,
    /// Anything else, named for people.
    Other(String),
}

impl Element {
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
                H5T_class_t::H5T_COMPOUND => Self::Other(compound(datatype)),
                H5T_class_t::H5T_REFERENCE => Self::Other("region reference".into()),
                H5T_class_t::H5T_ARRAY => Self::Other("array as element".into()),
                H5T_class_t::H5T_COMPLEX => Self::Other("complex".into()),
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

fn integer(datatype: &Handle, size: usize) -> Element {
    // SAFETY: as in `order`.
    let signed = unsafe { H5Tget_sign(datatype.0) } == H5T_sign_t::H5T_SGN_2;
    number(datatype, size, signed)
}

fn number(datatype: &Handle, size: usize, signed: bool) -> Element {
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
        _ => return Element::Other(format!("integer of {size} bytes")),
    };
    match order(datatype) {
        Some(order) if precision == 8 * size && offset == 0 => Element::Number(DType::new(element, order)),
        _ => Element::Other(format!("integer of {precision} bits in {size} bytes")),
    }
}

/// Where sign, exponent and mantissa lie, in bits.
#[derive(Default, PartialEq, Eq)]
struct Fields {
    sign_at: usize,
    exponent_at: usize,
    exponent_bits: usize,
    mantissa_at: usize,
    mantissa_bits: usize,
    bias: usize,
}

impl Fields {
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

fn float(datatype: &Handle, size: usize) -> Element {
    let mut found = Fields::default();
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
        2 if found == Fields::ieee(5, 10) => Some(ElementType::F16),
        4 if found == Fields::ieee(8, 23) => Some(ElementType::F32),
        8 if found == Fields::ieee(11, 52) => Some(ElementType::F64),
        _ => None,
    };
    match (element, order(datatype)) {
        (Some(element), Some(order)) if known >= 0 => Element::Number(DType::new(element, order)),
        _ => Element::Other(format!("float of {size} bytes that is not IEEE 754")),
    }
}

/// Two members `FALSE` and `TRUE` over one byte are a boolean (h5py's way); others are their integers.
fn enumeration(datatype: &Handle) -> Element {
    // SAFETY: a valid data type identifier; the caller holds the lock.
    let Ok(base) = Handle::new("give the base of an enumeration", || unsafe { H5Tget_super(datatype.0) })
    else {
        return Element::Other("enumeration".into());
    };
    // SAFETY: as above.
    let (members, size) = unsafe { (H5Tget_nmembers(datatype.0), H5Tget_size(base.0)) };
    let names = |n: c_uint| (0..n).map(|i| member_name(datatype, i)).collect::<Vec<_>>();
    if members == 2 && size == 1 && names(2) == ["FALSE", "TRUE"] {
        return Element::Number(DType::native(ElementType::Bool));
    }
    Element::of(&base)
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

fn compound(datatype: &Handle) -> String {
    const MOST_NAMES: c_uint = 8;
    // SAFETY: a valid data type identifier; the caller holds the lock.
    let members = c_uint::try_from(unsafe { H5Tget_nmembers(datatype.0) }).unwrap_or(0);
    let mut names: Vec<String> = (0..members.min(MOST_NAMES)).map(|i| member_name(datatype, i)).collect();
    if members == 2 && names.iter().map(String::as_str).eq(["r", "i"]) {
        return "complex".into();
    }
    if members > MOST_NAMES {
        names.push("...".into());
    }
    format!("compound of {}", names.join(", "))
}

fn text(datatype: &Handle, size: usize) -> Element {
    // SAFETY: a valid data type identifier; the caller holds the lock.
    let (variable, pad) = unsafe { (H5Tis_variable_str(datatype.0), H5Tget_strpad(datatype.0)) };
    if variable > 0 {
        return Element::VariableText;
    }
    Element::FixedText { size_bytes: size, spaces: pad == H5T_str_t::H5T_STR_SPACEPAD }
}

fn list(datatype: &Handle) -> Element {
    // SAFETY: as in `enumeration`.
    let base = Handle::new("give the base of a list", || unsafe { H5Tget_super(datatype.0) });
    match base.as_ref().map(Element::of) {
        Ok(Element::Reference) => Element::ReferenceList,
        Ok(Element::Number(dtype)) => Element::Other(format!("lists of {dtype}")),
        _ => Element::Other("lists".into()),
    }
}
