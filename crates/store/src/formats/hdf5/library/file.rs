//! Files, groups and links.
#![expect(unsafe_code, reason = "HDF5 is a C library")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use array::{Error, Result};
use hdf5_metno_sys::h5::{H5_index_t, H5_iter_order_t, herr_t};
use hdf5_metno_sys::h5f::{H5F_ACC_RDONLY, H5Fopen};
use hdf5_metno_sys::h5i::{H5I_type_t, H5Iget_type, hid_t};
use hdf5_metno_sys::h5l::{H5L_info2_t, H5Lget_info2, H5Lget_val, H5Literate2};
use hdf5_metno_sys::h5o::{
    H5O_INFO_BASIC, H5O_info2_t, H5O_token_t, H5Oget_info3, H5Oopen, H5Oopen_by_token,
};
use hdf5_metno_sys::h5p::{H5P_CLS_FILE_ACCESS, H5P_DEFAULT, H5Pcreate};
use serde::{Deserialize, Serialize};

use super::calls::{Handle, check};
use super::driver;
use crate::FileBytes;

/// Longest target of a soft or external link of HDF5 that is followed, bytes.
const MAX_LINK_BYTES: usize = 4096;

/// An open file.
#[derive(Debug)]
pub(in super::super) struct Hdf5File(Handle);

/// Names an object of one file; stays valid while the file is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in super::super) struct ObjectToken([u8; 16]);

impl ObjectToken {
    /// The address that a stored object reference holds.
    pub(in super::super) fn address(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

/// A group, a data set or something else in a file.
#[derive(Debug)]
pub(in super::super) struct Object {
    pub(super) handle: Handle,
}

/// Kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ObjectKind {
    Group,
    Dataset,
    Other,
}

/// A name in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct GroupLink {
    pub(in super::super) name: String,
    pub(in super::super) target: LinkTarget,
}

/// Target of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum LinkTarget {
    /// An object of this file.
    Object(ObjectToken),
    /// A path within this file, seen from the group that holds it.
    Soft(String),
    /// A path in another file.
    External { file: String, path: String },
    /// A kind of link that the library does not know.
    Other,
}

impl Hdf5File {
    /// Opens a file for reading; all its bytes come from `file`.
    pub(in super::super) fn open(file: &Arc<FileBytes>) -> Result<Self> {
        let name = CString::new(file.path().as_os_str().as_bytes())
            .map_err(|_| Error::invalid("expected a path without a zero byte"))?;
        // SAFETY: the class identifier is valid once the library is open, which reading it ensures.
        let access = Handle::new("make access properties", || unsafe { H5Pcreate(*H5P_CLS_FILE_ACCESS) })?;
        driver::choose(&access)?;
        // SAFETY: a NUL-terminated name and a valid property list, both alive during the call.
        let open = || unsafe { H5Fopen(name.as_ptr(), H5F_ACC_RDONLY, access.0) };
        Ok(Self(driver::opening(file, || Handle::new("open the file", open))?))
    }

    /// The root group.
    pub(in super::super) fn root(&self) -> Result<Object> {
        // SAFETY: a valid file and a constant name.
        let open = || unsafe { H5Oopen(self.0.0, c"/".as_ptr(), H5P_DEFAULT) };
        Ok(Object { handle: Handle::new("open the root group", open)? })
    }

    /// The object a link named.
    pub(in super::super) fn object(&self, token: ObjectToken) -> Result<Object> {
        // SAFETY: `H5O_token_t` is a C struct of just these sixteen bytes.
        let token = unsafe { std::mem::transmute::<[u8; 16], H5O_token_t>(token.0) };
        // SAFETY: a valid file; the token came from this file.
        let open = || unsafe { H5Oopen_by_token(self.0.0, token) };
        Ok(Object { handle: Handle::new("open an object", open)? })
    }
}

impl Object {
    pub(in super::super) fn kind(&self) -> ObjectKind {
        // SAFETY: a valid identifier.
        match super::calls::locked(|| unsafe { H5Iget_type(self.handle.0) }) {
            H5I_type_t::H5I_GROUP => ObjectKind::Group,
            H5I_type_t::H5I_DATASET => ObjectKind::Dataset,
            _ => ObjectKind::Other,
        }
    }

    /// Returns the token of the object.
    pub(in super::super) fn token(&self) -> Result<ObjectToken> {
        let mut info = std::mem::MaybeUninit::<H5O_info2_t>::uninit();
        // SAFETY: a valid object and room for the result.
        check("describe an object", || unsafe {
            H5Oget_info3(self.handle.0, info.as_mut_ptr(), H5O_INFO_BASIC)
        })?;
        // SAFETY: the call succeeded, so the token was written; its sixteen bytes are plain data.
        Ok(ObjectToken(unsafe { (&raw const (*info.as_ptr()).token).cast::<[u8; 16]>().read() }))
    }

    /// Lists the names in this group, at most `limit` of them, in order of creation if the file keeps it, else by name. The second value
    /// is true if some were left out.
    pub(in super::super) fn links(&self, limit: usize) -> Result<(Vec<GroupLink>, bool)> {
        self.links_by(H5_index_t::H5_INDEX_CRT_ORDER, limit)
            .or_else(|_| self.links_by(H5_index_t::H5_INDEX_NAME, limit))
    }

    /// Looks up one name in this group; `None` if it does not exist.
    pub(in super::super) fn link(&self, name: &str) -> Option<LinkTarget> {
        let name = CString::new(name).ok()?;
        let mut info = std::mem::MaybeUninit::<H5L_info2_t>::uninit();
        // SAFETY: a valid group, a NUL-terminated name and room for the result, which is looked at only if it was written.
        let told = check("look up a name", || unsafe {
            H5Lget_info2(self.handle.0, name.as_ptr(), info.as_mut_ptr(), H5P_DEFAULT)
        });
        told.ok()?;
        // SAFETY: written by the call above.
        Some(super::calls::locked(|| unsafe { target(self.handle.0, &name, info.as_ptr()) }))
    }

    fn links_by(&self, index: H5_index_t, limit: usize) -> Result<(Vec<GroupLink>, bool)> {
        let mut found = CollectedLinks { links: Vec::new(), limit, more: false };
        // SAFETY: a valid group; the callback gets the pointer to `found`, which outlives the call.
        check("list a group", || unsafe {
            let data = std::ptr::from_mut(&mut found).cast();
            let start = std::ptr::null_mut();
            H5Literate2(self.handle.0, index, H5_iter_order_t::H5_ITER_INC, start, Some(collect), data)
        })?;
        Ok((found.links, found.more))
    }
}

struct CollectedLinks {
    links: Vec<GroupLink>,
    limit: usize,
    more: bool,
}

/// Kinds of links as numbers: user-defined ones are not members of the enumeration of the bindings.
const HARD: c_int = 0;
const SOFT: c_int = 1;
const EXTERNAL: c_int = 64;

unsafe extern "C" fn collect(
    group: hid_t,
    name: *const c_char,
    info: *const H5L_info2_t,
    data: *mut c_void,
) -> herr_t {
    // SAFETY: the library passes a valid name; `data` is the `CollectedLinks` given to the call.
    let (found, text) = unsafe { (&mut *data.cast::<CollectedLinks>(), CStr::from_ptr(name)) };
    if found.links.len() >= found.limit {
        found.more = true;
        return 1;
    }
    // SAFETY: the library passes a valid record of this name in the group.
    let target = unsafe { target(group, text, info) };
    found.links.push(GroupLink { name: text.to_string_lossy().into_owned(), target });
    0
}

/// Target of a name in a group.
///
/// # Safety
/// `info` is a valid record of the link `name` in the valid group `group`; the lock is held.
unsafe fn target(group: hid_t, name: &CStr, info: *const H5L_info2_t) -> LinkTarget {
    // SAFETY: the kind is read as a plain number, valid for whatever the file holds. Of a hard link the union
    // holds the token, sixteen plain bytes, else the length of the target.
    let (kind, token, size) = unsafe {
        (
            (&raw const (*info).type_).cast::<c_int>().read(),
            (&raw const (*info).u).cast::<[u8; 16]>().read_unaligned(),
            (&raw const (*info).u).cast::<usize>().read_unaligned(),
        )
    };
    match kind {
        HARD => LinkTarget::Object(ObjectToken(token)),
        SOFT | EXTERNAL if size > MAX_LINK_BYTES => LinkTarget::Other,
        SOFT => LinkTarget::Soft(first_text(&value(group, name, size))),
        EXTERNAL => {
            // Flags, then the file and the path in it, each ended by a zero.
            let value = value(group, name, size);
            let mut texts = value.get(1..).unwrap_or_default().splitn(3, |&b| b == 0);
            let mut next = || String::from_utf8_lossy(texts.next().unwrap_or_default()).into_owned();
            LinkTarget::External { file: next(), path: next() }
        }
        _ => LinkTarget::Other,
    }
}

/// The bytes of a soft or external link.
fn value(group: hid_t, name: &CStr, size: usize) -> Vec<u8> {
    let mut value = vec![0u8; size];
    // SAFETY: a valid group and name; the library writes at most the given number of bytes.
    let read =
        unsafe { H5Lget_val(group, name.as_ptr(), value.as_mut_ptr().cast(), value.len(), H5P_DEFAULT) };
    if read < 0 { Vec::new() } else { value }
}

fn first_text(bytes: &[u8]) -> String {
    let text = bytes.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}
