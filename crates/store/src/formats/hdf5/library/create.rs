//! New files with one array: everything except the elements, which the caller writes at the returned offset.
//!
//! The data set is contiguous and its space is allocated, so its elements are one range of the file: they are written without the
//! library, in any order and from several threads.
#![expect(unsafe_code, reason = "HDF5 is a C library")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use array::{Attribute, Attributes, ElementType, Error, ErrorKind, Result, Scalar};
use hdf5_metno_sys::h5a::{H5Acreate2, H5Awrite};
use hdf5_metno_sys::h5d::{H5D_alloc_time_t, H5D_fill_time_t, H5Dcreate2, H5Dget_offset};
use hdf5_metno_sys::h5f::{H5F_ACC_EXCL, H5F_LIBVER_LATEST, H5F_libver_t, H5F_scope_t, H5Fcreate, H5Fflush};
use hdf5_metno_sys::h5p::{
    H5P_CLS_DATASET_CREATE, H5P_CLS_FILE_ACCESS, H5P_CLS_LINK_CREATE, H5P_DEFAULT, H5Pcreate,
    H5Pset_alloc_time, H5Pset_char_encoding, H5Pset_create_intermediate_group, H5Pset_fill_time,
    H5Pset_libver_bounds,
};
use hdf5_metno_sys::h5s::H5Screate_simple;
use hdf5_metno_sys::h5t::{
    H5T_C_S1, H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, H5T_NATIVE_INT64, H5T_NATIVE_UINT64,
    H5T_STD_I8LE, H5T_STD_I16LE, H5T_STD_I32LE, H5T_STD_I64LE, H5T_STD_U8LE, H5T_STD_U16LE, H5T_STD_U32LE,
    H5T_STD_U64LE, H5T_VARIABLE, H5T_cset_t, H5Tcopy, H5Tenum_create, H5Tenum_insert, H5Tset_cset,
    H5Tset_ebias, H5Tset_fields, H5Tset_size,
};

use super::calls::{Handle, check, locked};

/// Attribute from which h5py and netCDF read the names of axes.
const LABELS: &str = "DIMENSION_LABELS";
/// The attribute that must have the type of the array's elements.
const FILL_VALUE: &str = "_FillValue";

/// Description of the one array of a new file.
#[derive(Clone, Copy, Debug)]
pub struct NewHdf5<'a> {
    /// Name or path in the file; groups of the path are created.
    pub name: &'a str,
    /// Type of the elements, which are little-endian.
    pub element: ElementType,
    /// Elements per axis.
    pub shape: &'a [u64],
    /// Names of the axes.
    pub axes: &'a [String],
    /// Further attributes of the array.
    pub attributes: &'a Attributes,
}

/// Makes the file `path`, which must not exist, without elements. Gives the byte where they belong: C order,
/// little-endian, no gaps. The file has its full size already (on most systems without taking the space).
///
/// # Errors
/// `Io` when the file cannot be written, `Invalid` for names that cannot be.
pub fn create_hdf5(path: &Path, new: &NewHdf5<'_>) -> Result<u64> {
    create(path, new).map_err(|e| match e.kind() {
        // A refusal of the library to write does not mean a corrupt file.
        ErrorKind::Corrupt => Error::new(ErrorKind::Io, e.to_string()),
        _ => e,
    })
}

fn create(path: &Path, new: &NewHdf5<'_>) -> Result<u64> {
    let file = file(path)?;
    let datatype = datatype(new.element)?;
    let dataset = dataset(&file, &datatype, new)?;
    for (name, value) in new.attributes.iter().filter(|(name, _)| *name != LABELS) {
        let stored = (name == FILL_VALUE && new.element != ElementType::Bool).then_some(&datatype);
        write_attribute(&dataset, name, value, stored)?;
    }
    if !new.axes.is_empty() {
        write_attribute(&dataset, LABELS, &Attribute::Texts(new.axes.to_vec()), None)?;
    }
    // SAFETY: a valid data set.
    let offset = locked(|| unsafe { H5Dget_offset(dataset.0) });
    // SAFETY: a valid file. What closing could not write would go unnoticed; this notices.
    check("write the file", || unsafe { H5Fflush(file.0, H5F_scope_t::H5F_SCOPE_GLOBAL) })?;
    // An array without elements has no offset.
    Ok(if new.shape.contains(&0) { 0 } else { offset })
}

fn file(path: &Path) -> Result<Handle> {
    let name = c_string(path.as_os_str().as_bytes())?;
    // SAFETY: the class identifier is valid once the library is open, which reading it ensures.
    let access = Handle::new("make access properties", || unsafe { H5Pcreate(*H5P_CLS_FILE_ACCESS) })?;
    // SAFETY: valid properties. Formats since 1.8 take attributes of any size.
    check("choose the format", || unsafe {
        H5Pset_libver_bounds(access.0, H5F_libver_t::H5F_LIBVER_V18, H5F_LIBVER_LATEST)
    })?;
    // SAFETY: a NUL-terminated name and valid properties, alive during the call.
    Handle::new("make the file", || unsafe { H5Fcreate(name.as_ptr(), H5F_ACC_EXCL, H5P_DEFAULT, access.0) })
}

fn dataset(file: &Handle, datatype: &Handle, new: &NewHdf5<'_>) -> Result<Handle> {
    let name = match new.name.trim_matches('/') {
        "" => "data",
        name => name,
    };
    let name = c_string(name.as_bytes())?;
    let space = space(new.shape)?;
    // SAFETY: as in `file`.
    let link = Handle::new("make link properties", || unsafe { H5Pcreate(*H5P_CLS_LINK_CREATE) })?;
    // SAFETY: valid properties.
    check("name the array", || unsafe {
        H5Pset_char_encoding(link.0, H5T_cset_t::H5T_CSET_UTF8)
            .min(H5Pset_create_intermediate_group(link.0, 1))
    })?;
    // SAFETY: as in `file`.
    let layout = Handle::new("make properties", || unsafe { H5Pcreate(*H5P_CLS_DATASET_CREATE) })?;
    // SAFETY: valid properties. Every element is written by the caller, so none is filled before.
    check("reserve space", || unsafe {
        H5Pset_alloc_time(layout.0, H5D_alloc_time_t::H5D_ALLOC_TIME_EARLY)
            .min(H5Pset_fill_time(layout.0, H5D_fill_time_t::H5D_FILL_TIME_NEVER))
    })?;
    // SAFETY: a NUL-terminated name and valid identifiers, alive during the call.
    Handle::new("make the array", || unsafe {
        H5Dcreate2(file.0, name.as_ptr(), datatype.0, space.0, link.0, layout.0, H5P_DEFAULT)
    })
}

/// A data space; no axes make a scalar.
fn space(shape: &[u64]) -> Result<Handle> {
    let rank = c_int::try_from(shape.len()).unwrap_or(c_int::MAX);
    // SAFETY: `rank` sizes, alive during the call.
    Handle::new("make a data space", || unsafe { H5Screate_simple(rank, shape.as_ptr(), std::ptr::null()) })
}

fn datatype(element: ElementType) -> Result<Handle> {
    // SAFETY: types of the library, valid once it is open, which reading them ensures; copies are ours.
    Handle::new("copy a type", || unsafe {
        match element {
            ElementType::I8 => H5Tcopy(*H5T_STD_I8LE),
            ElementType::I16 => H5Tcopy(*H5T_STD_I16LE),
            ElementType::I32 => H5Tcopy(*H5T_STD_I32LE),
            ElementType::I64 => H5Tcopy(*H5T_STD_I64LE),
            ElementType::U8 => H5Tcopy(*H5T_STD_U8LE),
            ElementType::U16 => H5Tcopy(*H5T_STD_U16LE),
            ElementType::U32 => H5Tcopy(*H5T_STD_U32LE),
            ElementType::U64 => H5Tcopy(*H5T_STD_U64LE),
            ElementType::F32 | ElementType::F16 => H5Tcopy(*H5T_IEEE_F32LE),
            ElementType::F64 => H5Tcopy(*H5T_IEEE_F64LE),
            ElementType::Bool => H5Tenum_create(*H5T_STD_I8LE),
        }
    })
    .and_then(|datatype| match element {
        ElementType::F16 => half(&datatype).map(|()| datatype),
        ElementType::Bool => truth(&datatype).map(|()| datatype),
        _ => Ok(datatype),
    })
}

/// Makes a 32-bit float one of 16 bits, as h5py does.
fn half(datatype: &Handle) -> Result<()> {
    // SAFETY: a type of our own that can be changed.
    check("make a type of 16 bits", || unsafe {
        H5Tset_fields(datatype.0, 15, 10, 5, 0, 10)
            .min(H5Tset_size(datatype.0, 2))
            .min(H5Tset_ebias(datatype.0, 15))
    })
    .map(drop)
}

/// The two members that h5py gives its `bool`.
fn truth(datatype: &Handle) -> Result<()> {
    for (name, value) in [(c"FALSE", 0i8), (c"TRUE", 1)] {
        // SAFETY: an enumeration of our own over bytes; name and value are alive during the call.
        check("make a type for truth values", || unsafe {
            H5Tenum_insert(datatype.0, name.as_ptr(), (&raw const value).cast())
        })?;
    }
    Ok(())
}

/// Writes one attribute; as `stored` if that is given, else as of its own type, else as the library's widest of its kind.
fn write_attribute(owner: &Handle, name: &str, value: &Attribute, stored: Option<&Handle>) -> Result<()> {
    match value {
        Attribute::Text(text) => write_texts(owner, name, std::slice::from_ref(text), &[]),
        Attribute::Texts(texts) => write_texts(owner, name, texts, &[texts.len() as u64]),
        Attribute::Number(number, element) => write_numbers(owner, name, (&[*number], *element), &[], stored),
        Attribute::Numbers(list, element) => {
            write_numbers(owner, name, (list, *element), &[list.len() as u64], stored)
        }
        Attribute::Json(serde_json::Value::Bool(truth)) => {
            let number = Scalar::Unsigned(u64::from(*truth));
            write_numbers(owner, name, (&[number], Some(ElementType::Bool)), &[], stored)
        }
        // The format has no maps: they are written as their text.
        Attribute::Json(value) => write_texts(owner, name, &[value.to_string()], &[]),
    }
    .map_err(|e| e.context(format!("attribute `{name}`")))
}

fn write_texts(owner: &Handle, name: &str, texts: &[String], shape: &[u64]) -> Result<()> {
    let texts = texts.iter().map(|t| c_string(t.as_bytes())).collect::<Result<Vec<CString>>>()?;
    let pointers: Vec<*const c_char> = texts.iter().map(|t| t.as_ptr()).collect();
    // SAFETY: a type of the library; the copy is ours.
    let datatype = Handle::new("copy a type", || unsafe { H5Tcopy(*H5T_C_S1) })?;
    // SAFETY: a type of our own that can be changed.
    check("make a type for text", || unsafe {
        H5Tset_size(datatype.0, H5T_VARIABLE).min(H5Tset_cset(datatype.0, H5T_cset_t::H5T_CSET_UTF8))
    })?;
    write(owner, name, &datatype, &datatype, shape, pointers.as_ptr().cast())
}

fn write_numbers(
    owner: &Handle,
    name: &str,
    (numbers, element): (&[Scalar], Option<ElementType>),
    shape: &[u64],
    stored: Option<&Handle>,
) -> Result<()> {
    let is_float = numbers.iter().any(|n| matches!(n, Scalar::Float(_)));
    let is_unsigned = numbers.iter().any(|n| matches!(n, Scalar::Unsigned(v) if i64::try_from(*v).is_err()));
    if let (None, Some(ElementType::Bool)) = (stored, element) {
        let truths: Vec<i8> = numbers.iter().map(|n| i8::from(n.as_f64() != 0.0)).collect();
        let truth = datatype(ElementType::Bool)?;
        return write(owner, name, &truth, &truth, shape, truths.as_ptr().cast());
    }
    let own = element.filter(|element| *element != ElementType::Bool).map(datatype).transpose()?;
    let stored = stored.or(own.as_ref());
    // SAFETY: types of the library, valid once it is open, which reading them ensures; copies are ours.
    let native = Handle::new("copy a type", || unsafe {
        match (is_float, is_unsigned) {
            (true, _) => H5Tcopy(*H5T_NATIVE_DOUBLE),
            (_, true) => H5Tcopy(*H5T_NATIVE_UINT64),
            _ => H5Tcopy(*H5T_NATIVE_INT64),
        }
    })?;
    let bytes = |number: &Scalar| match *number {
        _ if is_float => number.as_f64().to_ne_bytes(),
        Scalar::Signed(v) => v.to_ne_bytes(),
        Scalar::Unsigned(v) => v.to_ne_bytes(),
        Scalar::Float(v) => v.to_ne_bytes(),
    };
    let values: Vec<[u8; 8]> = numbers.iter().map(bytes).collect();
    write(owner, name, stored.unwrap_or(&native), &native, shape, values.as_ptr().cast())
}

/// Writes the elements at `data`, as many as `shape` has and of the type `given`, into a new attribute of type `stored`.
fn write(
    owner: &Handle,
    name: &str,
    stored: &Handle,
    given: &Handle,
    shape: &[u64],
    data: *const c_void,
) -> Result<()> {
    let name = c_string(name.as_bytes())?;
    let space = space(shape)?;
    // SAFETY: a NUL-terminated name and valid identifiers, alive during the call.
    let attribute = Handle::new("make an attribute", || unsafe {
        H5Acreate2(owner.0, name.as_ptr(), stored.0, space.0, H5P_DEFAULT, H5P_DEFAULT)
    })?;
    // SAFETY: the callers give as many elements of the type `given` as `shape` has.
    check("write an attribute", || unsafe { H5Awrite(attribute.0, given.0, data) }).map(drop)
}

/// Text up to its first zero byte, which C takes for the end.
fn c_string(text: &[u8]) -> Result<CString> {
    let text = text.split(|&b| b == 0).next().unwrap_or_default();
    CString::new(text).map_err(|_| Error::internal("a text without zero bytes has none"))
}
