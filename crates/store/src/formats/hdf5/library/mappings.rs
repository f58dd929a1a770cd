//! Mappings of virtual data sets: the selections of other data sets of which they consist.
#![expect(unsafe_code, reason = "HDF5 is a C library")]

use std::ffi::{c_char, c_int};

use array::{Error, Result};
use hdf5_metno_sys::h5d::H5Dget_create_plist;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{
    H5Pget_virtual_count, H5Pget_virtual_dsetname, H5Pget_virtual_filename, H5Pget_virtual_srcspace,
    H5Pget_virtual_vspace,
};
use hdf5_metno_sys::h5s::{H5Sget_regular_hyperslab, H5Sget_select_type, H5Sis_regular_hyperslab};

use super::Object;
use super::calls::{Handle, check, locked};
use super::dataset::{MAX_RANK, extents};

/// Longest name of a source file or data set of a virtual data set, bytes.
const MAX_SOURCE_NAME_BYTES: usize = 4096;

/// Elements that are picked on one axis: `count` times `block` elements, `stride` apart. One of both may be
/// [`UNLIMITED`](super::dataset::UNLIMITED).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct HyperslabAxis {
    pub(in super::super) start: u64,
    pub(in super::super) stride: u64,
    pub(in super::super) count: u64,
    pub(in super::super) block: u64,
}

/// Selection of elements of a data set (HDF5's dataspace selection).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum DataspaceSelection {
    All,
    None,
    Regular(Vec<HyperslabAxis>),
    /// Points, or boxes that differ.
    Irregular,
}

/// Mapping of a virtual data set: target selection, source file, source data set and source selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct VirtualMapping {
    pub(in super::super) target: DataspaceSelection,
    /// Name of the file, `.` for the same; may count blocks by `%b`, as the data set's.
    pub(in super::super) file: String,
    pub(in super::super) dataset: String,
    pub(in super::super) source: DataspaceSelection,
}

impl Object {
    /// Lists the parts of a virtual data set and their sources. Opens no other file.
    pub(in super::super) fn mappings(&self, limit: usize) -> Result<Vec<VirtualMapping>> {
        // SAFETY: a valid data set.
        let properties =
            Handle::new("give creation properties", || unsafe { H5Dget_create_plist(self.handle.0) })?;
        let mut count = 0;
        // SAFETY: valid properties and place for the result.
        check("count the sources", || unsafe { H5Pget_virtual_count(properties.0, &raw mut count) })?;
        if count > limit {
            return Err(Error::too_large(format!("expected at most {limit} sources, found {count}")));
        }
        let mapping = |number| {
            // SAFETY: valid properties, and a number below the count.
            let target =
                Handle::new("give a part", || unsafe { H5Pget_virtual_vspace(properties.0, number) })?;
            // SAFETY: as above.
            let source =
                Handle::new("give a source", || unsafe { H5Pget_virtual_srcspace(properties.0, number) })?;
            Ok(VirtualMapping {
                target: picked(&target)?,
                file: name(&properties, number, H5Pget_virtual_filename)?,
                dataset: name(&properties, number, H5Pget_virtual_dsetname)?,
                source: picked(&source)?,
            })
        };
        (0..count).map(mapping).collect()
    }

    /// The present shape and the largest one. Opens no other file, so axes that follow their sources are not up to date.
    pub(in super::super) fn extents(&self) -> Result<(Vec<u64>, Vec<u64>)> {
        extents(&self.space()?)
    }
}

type GetName = unsafe extern "C" fn(hid_t, usize, *mut c_char, usize) -> isize;

fn name(properties: &Handle, number: usize, get: GetName) -> Result<String> {
    let mut text = vec![0u8; MAX_SOURCE_NAME_BYTES + 1];
    // SAFETY: valid properties, and room for the given number of bytes.
    let len = check("name a source", || unsafe {
        get(properties.0, number, text.as_mut_ptr().cast(), text.len())
    })?;
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    match text.get(..len) {
        Some(text) if len <= MAX_SOURCE_NAME_BYTES => Ok(String::from_utf8_lossy(text).into_owned()),
        _ => Err(Error::too_large(format!("expected a name of at most {MAX_SOURCE_NAME_BYTES} bytes"))),
    }
}

/// Kinds of selections as numbers.
const NONE: c_int = 0;
const HYPERSLABS: c_int = 2;
const ALL: c_int = 3;

fn picked(space: &Handle) -> Result<DataspaceSelection> {
    // SAFETY: a valid data space; the kind is taken as a plain number.
    let kind = locked(|| unsafe { H5Sget_select_type(space.0) as c_int });
    if kind == ALL || kind == NONE {
        return Ok(if kind == ALL { DataspaceSelection::All } else { DataspaceSelection::None });
    }
    // SAFETY: a valid data space.
    if kind != HYPERSLABS || locked(|| unsafe { H5Sis_regular_hyperslab(space.0) }) <= 0 {
        return Ok(DataspaceSelection::Irregular);
    }
    let rank = extents(space)?.0.len();
    let [mut start, mut stride, mut count, mut block] = [[0u64; MAX_RANK]; 4];
    // SAFETY: a regular hyperslab, and room for as many axes as any space has.
    check("give a part", || unsafe {
        let (start, stride) = (start.as_mut_ptr(), stride.as_mut_ptr());
        H5Sget_regular_hyperslab(space.0, start, stride, count.as_mut_ptr(), block.as_mut_ptr())
    })?;
    let axis =
        |n: usize| HyperslabAxis { start: start[n], stride: stride[n], count: count[n], block: block[n] };
    Ok(DataspaceSelection::Regular((0..rank).map(axis).collect()))
}
