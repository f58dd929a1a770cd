//! Attributes of objects.
#![expect(unsafe_code, reason = "HDF5 is a C library")]

use std::ffi::{CStr, CString, c_char, c_void};

use array::{DType, Error, Result};
use hdf5_metno_sys::h5::{H5_index_t, H5_iter_order_t, herr_t};
use hdf5_metno_sys::h5a::{H5A_info_t, H5Aexists, H5Aget_space, H5Aget_type, H5Aiterate2, H5Aopen, H5Aread};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::{H5S_class_t, H5Sget_simple_extent_npoints, H5Sget_simple_extent_type};
use hdf5_metno_sys::h5t::{H5Treclaim, hvl_t};
use serde::{Deserialize, Serialize};

use super::super::hexadecimal;
use super::Object;
use super::calls::{Handle, check, locked};
use super::dataset::{split_fixed_text, trim_text};
use super::datatype::{Datatype, TextEnd};

/// Most elements of an HDF5 attribute that are read.
const MAX_ATTRIBUTE_ELEMENTS: usize = 65_536;
/// Most bytes of an HDF5 attribute that are read.
const MAX_ATTRIBUTE_BYTES: usize = 1 << 20;
/// Most references in one reference list of an HDF5 attribute.
const MAX_LIST: usize = 64;

/// Value of an attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in super::super) enum AttributeValue {
    /// Numbers as stored.
    Numbers {
        dtype: DType,
        #[serde(with = "hexadecimal")]
        bytes: Vec<u8>,
    },
    /// Strings.
    Texts(Vec<String>),
    /// Addresses of objects.
    References(Vec<u64>),
    /// Lists of addresses of objects.
    ReferenceLists(Vec<Vec<u64>>),
    /// Description of a value of another type, which is not read.
    Other(String),
}

impl Object {
    /// Names of its attributes, at most `limit`, in the file's order.
    pub(in super::super) fn attribute_names(&self, limit: usize) -> Result<Vec<CString>> {
        let mut found = AttributeNames { names: Vec::new(), limit };
        // SAFETY: a valid object; the callback gets the pointer to `found`, which outlives the call.
        check("list the attributes", || unsafe {
            let (index, order) = (H5_index_t::H5_INDEX_NAME, H5_iter_order_t::H5_ITER_NATIVE);
            let data = std::ptr::from_mut(&mut found).cast();
            H5Aiterate2(self.handle.0, index, order, std::ptr::null_mut(), Some(collect), data)
        })?;
        Ok(found.names)
    }

    /// The attribute of this name, if there is one.
    pub(in super::super) fn attribute(&self, name: &CStr) -> Result<Option<AttributeValue>> {
        // SAFETY: a valid object and a NUL-terminated name.
        let exists = check("look for an attribute", || unsafe { H5Aexists(self.handle.0, name.as_ptr()) })?;
        if exists == 0 {
            return Ok(None);
        }
        // SAFETY: as above; then a valid attribute.
        let attribute = Handle::new("open an attribute", || unsafe {
            H5Aopen(self.handle.0, name.as_ptr(), H5P_DEFAULT)
        })?;
        // SAFETY: a valid attribute.
        let datatype = Handle::new("type an attribute", || unsafe { H5Aget_type(attribute.0) })?;
        // SAFETY: a valid attribute.
        let space = Handle::new("size an attribute", || unsafe { H5Aget_space(attribute.0) })?;
        OpenAttribute { attribute, datatype, space }.value().map(Some)
    }
}

struct AttributeNames {
    names: Vec<CString>,
    limit: usize,
}

unsafe extern "C" fn collect(
    _object: hid_t,
    name: *const c_char,
    _info: *const H5A_info_t,
    data: *mut c_void,
) -> herr_t {
    // SAFETY: the library passes a valid name; `data` is the `AttributeNames` given to the call.
    let (found, name) = unsafe { (&mut *data.cast::<AttributeNames>(), CStr::from_ptr(name)) };
    if found.names.len() >= found.limit {
        return 1;
    }
    found.names.push(name.to_owned());
    0
}

struct OpenAttribute {
    attribute: Handle,
    datatype: Handle,
    space: Handle,
}

impl OpenAttribute {
    fn value(&self) -> Result<AttributeValue> {
        let count = self.count();
        if count > MAX_ATTRIBUTE_ELEMENTS {
            return Ok(AttributeValue::Other(format!("{count} elements")));
        }
        match Datatype::of(&self.datatype) {
            _ if count == 0 => Ok(AttributeValue::Other("empty".into())),
            Datatype::Number(dtype) | Datatype::Enumeration { dtype, .. } => {
                Ok(AttributeValue::Numbers { dtype, bytes: self.bytes(count, dtype.size_bytes())? })
            }
            Datatype::FixedText { size_bytes, end } => {
                let has_spaces = end == TextEnd::Spaces;
                Ok(AttributeValue::Texts(split_fixed_text(
                    &self.bytes(count, size_bytes)?,
                    size_bytes,
                    has_spaces,
                )))
            }
            Datatype::VariableText => Ok(AttributeValue::Texts(self.variable_texts(count)?)),
            Datatype::Reference => Ok(AttributeValue::References(addresses(&self.bytes(count, 8)?))),
            Datatype::ReferenceList => Ok(AttributeValue::ReferenceLists(self.reference_lists(count)?)),
            other => Ok(AttributeValue::Other(other.to_string())),
        }
    }

    fn count(&self) -> usize {
        locked(|| {
            // SAFETY: a valid data space.
            let (class, points) = unsafe {
                (H5Sget_simple_extent_type(self.space.0), H5Sget_simple_extent_npoints(self.space.0))
            };
            match class {
                H5S_class_t::H5S_SCALAR => 1,
                H5S_class_t::H5S_SIMPLE => usize::try_from(points).unwrap_or(usize::MAX),
                _ => 0,
            }
        })
    }

    fn bytes(&self, count: usize, size: usize) -> Result<Vec<u8>> {
        let total = count.checked_mul(size).filter(|&n| n <= MAX_ATTRIBUTE_BYTES).ok_or_else(|| {
            Error::too_large(format!(
                "expected an attribute of at most {MAX_ATTRIBUTE_BYTES} bytes, found {count} times {size}"
            ))
        })?;
        let mut bytes = vec![0; total];
        // SAFETY: the stored type is the memory type, so exactly `count * size` bytes are written.
        check("read an attribute", || unsafe {
            H5Aread(self.attribute.0, self.datatype.0, bytes.as_mut_ptr().cast())
        })?;
        Ok(bytes)
    }

    fn variable_texts(&self, count: usize) -> Result<Vec<String>> {
        let mut pointers = vec![std::ptr::null_mut::<c_char>(); count];
        self.with_variable(pointers.as_mut_ptr().cast(), || {
            // SAFETY: the library gave NUL-terminated strings or null; they live until reclaimed.
            let text = |p: *mut c_char| unsafe { trim_text(CStr::from_ptr(p).to_bytes(), false) };
            pointers.iter().map(|&p| if p.is_null() { String::new() } else { text(p) }).collect()
        })
    }

    fn reference_lists(&self, count: usize) -> Result<Vec<Vec<u64>>> {
        let mut lists: Vec<hvl_t> = (0..count).map(|_| hvl_t::default()).collect();
        self.with_variable(lists.as_mut_ptr().cast(), || {
            lists
                .iter()
                .map(|list| {
                    if list.p.is_null() {
                        return Vec::new();
                    }
                    // SAFETY: the library allocated `len` references of eight bytes at `p`.
                    let bytes = unsafe {
                        std::slice::from_raw_parts(list.p.cast::<u8>(), list.len.min(MAX_LIST) * 8)
                    };
                    addresses(bytes)
                })
                .collect()
        })
    }

    /// Reads elements of variable length into `buffer`, lets `take` copy them, and frees them.
    fn with_variable<T>(&self, buffer: *mut c_void, take: impl FnOnce() -> T) -> Result<T> {
        // SAFETY: `buffer` holds one pointer (or list) per element, all null at first.
        let read =
            check("read an attribute", || unsafe { H5Aread(self.attribute.0, self.datatype.0, buffer) });
        let taken = read.map(|_| take());
        locked(|| {
            // SAFETY: what a failed read left behind is null or was allocated by the library.
            unsafe { H5Treclaim(self.datatype.0, self.space.0, H5P_DEFAULT, buffer) };
        });
        taken
    }
}

fn addresses(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|raw| u64::from_le_bytes(*raw)).collect()
}
