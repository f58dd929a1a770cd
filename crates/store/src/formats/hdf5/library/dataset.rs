//! Data sets: their properties, the locations of their bytes, and reading through the library.
#![expect(unsafe_code, reason = "HDF5 is a C library")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use array::{DType, ElementType, Error, MAX_TEXT_BYTES, Result, Selection};
use hdf5_metno_sys::h5::{H5allocate_memory, H5free_memory};
use hdf5_metno_sys::h5d::{
    H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS, H5D_fill_time_t, H5D_fill_value_t, H5D_layout_t,
    H5D_space_status_t, H5Dget_create_plist, H5Dget_offset, H5Dget_space, H5Dget_space_status, H5Dget_type,
    H5Dread,
};
use hdf5_metno_sys::h5p::{
    H5P_CLS_DATASET_XFER, H5P_DEFAULT, H5Pcreate, H5Pfill_value_defined, H5Pget_chunk, H5Pget_chunk_opts,
    H5Pget_external_count, H5Pget_fill_time, H5Pget_fill_value, H5Pget_filter2, H5Pget_layout,
    H5Pget_nfilters, H5Pset_vlen_mem_manager,
};
use hdf5_metno_sys::h5s::{
    H5S_ALL, H5S_class_t, H5S_seloper_t, H5Screate_simple, H5Sget_simple_extent_dims,
    H5Sget_simple_extent_ndims, H5Sget_simple_extent_npoints, H5Sget_simple_extent_type, H5Sselect_hyperslab,
};
use hdf5_metno_sys::h5t::H5Treclaim;
use hdf5_metno_sys::h5z::H5Zfilter_avail;
use serde::{Deserialize, Serialize};

use super::Object;
use super::calls::{Handle, check, locked};
use super::datatype::{Datatype, PaddedBits, TextEnd};

/// Most axes of an HDF5 data set; HDF5's own limit.
pub(super) const MAX_RANK: usize = 32;
/// Most filters of an HDF5 pipeline; HDF5's own limit.
const MAX_PIPELINE_FILTERS: usize = 32;
/// Most parameters of an HDF5 filter that are kept.
const MAX_FILTER_PARAMETERS: usize = 32;
/// Largest element whose fill value is kept, bytes: the description of an HDF5 file holds one for each data set.
const MAX_ELEMENT_BYTES: u64 = MAX_TEXT_BYTES;
/// The largest size of an axis that may grow without end.
pub(in super::super) const UNLIMITED: u64 = u64::MAX;
/// One byte of a text.
const BYTE: DType = DType::native(ElementType::U8);
/// Address of data without storage in the file (`HADDR_UNDEF`).
const UNDEFINED_ADDRESS: u64 = u64::MAX;

/// Storage layout of a data set (HDF5's `H5D_layout_t`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) enum DatasetLayout {
    /// Within the object header.
    Compact,
    /// Contiguous in the file.
    Contiguous,
    /// In external files.
    External,
    /// In chunks of this many elements per axis.
    Chunked(Vec<u64>),
    /// Virtual data set: mapped from other data sets.
    Virtual,
}

/// Storage of the strings of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) enum TextForm {
    /// Strings of one length, with the bytes of a string along an axis that the file does not have.
    Fixed(TextEnd),
    /// Characters along the last axis of the data set.
    Characters,
    /// Strings of any length.
    Variable,
}

/// One step of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct PipelineFilter {
    /// The registered number: 1 deflate, 2 shuffle, 3 Fletcher 32, ...
    pub(in super::super) id: i32,
    pub(in super::super) parameters: Vec<u32>,
    /// The library can undo it.
    pub(in super::super) available: bool,
}

/// Properties of a data set; reading them reads no elements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct DatasetInfo {
    pub(in super::super) element: Datatype,
    /// `None`: declared to hold nothing.
    pub(in super::super) shape: Option<Vec<u64>>,
    pub(in super::super) layout: DatasetLayout,
    pub(in super::super) filters: Vec<PipelineFilter>,
    /// Chunks that reach beyond the shape are stored unfiltered.
    pub(in super::super) partial_unfiltered: bool,
    /// Fill value as a stored element; empty for all types except numbers.
    pub(in super::super) fill: Vec<u8>,
    /// Elements of fewer bits than their bytes have.
    pub(in super::super) padded: Option<PaddedBits>,
    /// Elements are texts; those of one length are described as bytes, along one more axis.
    pub(in super::super) text: Option<TextForm>,
    /// Number of axes at the end of the shape that lie within one element of the file (array data types and fixed strings).
    pub(in super::super) inner_axes: usize,
    /// Size of the file's element and offset of the member, for members of compounds.
    pub(in super::super) within: Option<(usize, usize)>,
    /// The program that wrote it chose a fill value, used or not.
    pub(in super::super) has_fill: bool,
    /// Axes that may grow without end.
    pub(in super::super) unlimited: Vec<usize>,
}

impl Object {
    pub(in super::super) fn facts(&self) -> Result<DatasetInfo> {
        // SAFETY: a valid data set.
        let properties =
            Handle::new("give creation properties", || unsafe { H5Dget_create_plist(self.handle.0) })?;
        // SAFETY: a valid data set.
        let datatype = Handle::new("give the element type", || unsafe { H5Dget_type(self.handle.0) })?;
        let element = Datatype::of(&datatype);
        let layout = layout(&properties)?;
        // The files that a virtual data set names are not opened by that: our driver opens none by itself.
        let mut shape = self.shape()?;
        let mut layout = layout;
        let fill = fill(&properties, &datatype, &element)?;
        let inner = match &element {
            Datatype::Array(_, inner) => inner.clone(),
            Datatype::FixedText { size_bytes, .. } => vec![*size_bytes as u64],
            _ => Vec::new(),
        };
        // Axes of an element follow those of the data set.
        if let Some(shape) = &mut shape {
            shape.extend(&inner);
        }
        if let DatasetLayout::Chunked(chunk) = &mut layout {
            chunk.extend(&inner);
        }
        let text = match &element {
            Datatype::FixedText { end, .. } => Some(TextForm::Fixed(*end)),
            Datatype::VariableText => Some(TextForm::Variable),
            _ => None,
        };
        let (element, padded) = match element {
            Datatype::Array(dtype, _) => (Datatype::Number(dtype), None),
            Datatype::FixedText { .. } => (Datatype::Number(BYTE), None),
            Datatype::Padded(padded) => (Datatype::Number(padded.dtype), Some(padded)),
            other => (other, None),
        };
        let mut options: c_uint = 0;
        if matches!(layout, DatasetLayout::Chunked(_)) {
            // SAFETY: a valid property list and place for the result.
            check("give chunk options", || unsafe { H5Pget_chunk_opts(properties.0, &raw mut options) })?;
        }
        Ok(DatasetInfo {
            fill,
            padded,
            text,
            inner_axes: inner.len(),
            within: None,
            has_fill: has_fill(&properties)?,
            filters: filters(&properties)?,
            partial_unfiltered: options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS != 0,
            unlimited: if matches!(layout, DatasetLayout::Chunked(_)) {
                self.unlimited()?
            } else {
                Vec::new()
            },
            element,
            shape,
            layout,
        })
    }

    fn shape(&self) -> Result<Option<Vec<u64>>> {
        let space = self.space()?;
        locked(|| {
            // SAFETY: a valid data space.
            match unsafe { H5Sget_simple_extent_type(space.0) } {
                H5S_class_t::H5S_SCALAR => Ok(Some(Vec::new())),
                H5S_class_t::H5S_SIMPLE => extent(&space).map(Some),
                _ => Ok(None),
            }
        })
    }

    fn unlimited(&self) -> Result<Vec<usize>> {
        let (_, largest) = extents(&self.space()?)?;
        Ok((0..largest.len()).filter(|&axis| largest[axis] == UNLIMITED).collect())
    }

    pub(super) fn space(&self) -> Result<Handle> {
        // SAFETY: a valid data set.
        Handle::new("give the shape", || unsafe { H5Dget_space(self.handle.0) })
    }

    /// Returns the byte of the file at which a contiguous data set begins; `None` when nothing was written.
    pub(in super::super) fn contiguous_offset(&self) -> Result<Option<u64>> {
        let mut status = H5D_space_status_t::H5D_SPACE_STATUS_NOT_ALLOCATED;
        // SAFETY: a valid data set and place for the result.
        check("tell whether it has space", || unsafe {
            H5Dget_space_status(self.handle.0, &raw mut status)
        })?;
        // The library adds the size of the user block to addresses, to the undefined one too.
        if status == H5D_space_status_t::H5D_SPACE_STATUS_NOT_ALLOCATED {
            return Ok(None);
        }
        // SAFETY: a valid data set.
        let offset = locked(|| unsafe { H5Dget_offset(self.handle.0) });
        Ok((offset != UNDEFINED_ADDRESS).then_some(offset))
    }

    /// Reads a selection through the library: elements as stored, C order. `into` must be of just that size.
    pub(in super::super) fn read(
        &self,
        selection: &Selection,
        item_bytes: usize,
        into: &mut [u8],
    ) -> Result<()> {
        let expected = selection.len().and_then(|n| n.checked_mul(item_bytes as u64));
        if expected != Some(into.len() as u64) {
            return Err(Error::internal(format!(
                "expected a buffer of {expected:?} bytes, found {}",
                into.len()
            )));
        }
        let space = self.space()?;
        if extent(&space)?.len() != selection.ranges().len() {
            return Err(Error::corrupt("expected the number of axes found at opening"));
        }
        // SAFETY: a valid data set.
        let datatype = Handle::new("give the element type", || unsafe { H5Dget_type(self.handle.0) })?;
        if element_size(&datatype) != item_bytes {
            return Err(Error::corrupt("expected the element type found at opening"));
        }
        let memory = select(&space, selection)?;
        // SAFETY: the memory type is the stored one, and the memory space has as many elements as the
        // selection, which is what `into` has room for (checked above).
        check("read elements", || unsafe {
            H5Dread(self.handle.0, datatype.0, memory.0, space.0, H5P_DEFAULT, into.as_mut_ptr().cast())
        })?;
        Ok(())
    }

    /// The bytes of the strings of a data set of at most `limit` of them, those of any length without their end.
    pub(in super::super) fn texts(&self, limit: usize) -> Result<Vec<Vec<u8>>> {
        let space = self.space()?;
        // SAFETY: a valid data space.
        let count = locked(|| unsafe { H5Sget_simple_extent_npoints(space.0) });
        let count = usize::try_from(count).ok().filter(|&n| n <= limit);
        let count = count.ok_or_else(|| Error::too_large(format!("expected at most {limit} strings")))?;
        // SAFETY: a valid data set.
        let datatype = Handle::new("give the element type", || unsafe { H5Dget_type(self.handle.0) })?;
        match Datatype::of(&datatype) {
            Datatype::FixedText { size_bytes, .. } if is_within(count, size_bytes) => {
                let mut bytes = vec![0; count * size_bytes];
                // SAFETY: the memory type is the stored one: `count` strings of `size_bytes` each.
                check("read strings", || unsafe {
                    H5Dread(
                        self.handle.0,
                        datatype.0,
                        H5S_ALL,
                        H5S_ALL,
                        H5P_DEFAULT,
                        bytes.as_mut_ptr().cast(),
                    )
                })?;
                Ok(bytes.chunks(size_bytes.max(1)).map(<[u8]>::to_vec).collect())
            }
            Datatype::VariableText => self.variable_texts(&datatype, &space, count),
            _ => Err(Error::unsupported("expected short strings")),
        }
    }

    fn variable_texts(&self, datatype: &Handle, space: &Handle, count: usize) -> Result<Vec<Vec<u8>>> {
        // SAFETY: the class identifier is valid once the library is open.
        let transfer =
            Handle::new("make transfer properties", || unsafe { H5Pcreate(*H5P_CLS_DATASET_XFER) })?;
        let left_bytes = AtomicUsize::new(usize::try_from(MAX_TEXT_BYTES).unwrap_or(usize::MAX));
        // SAFETY: both functions are of the kind the library expects; the number outlives all uses of `transfer`.
        check("bound its memory", || unsafe {
            let left: *mut c_void = (&raw const left_bytes).cast_mut().cast();
            H5Pset_vlen_mem_manager(transfer.0, Some(allocate_bounded), left, Some(release), left)
        })?;
        let mut pointers = vec![std::ptr::null_mut::<c_char>(); count];
        let buffer: *mut c_void = pointers.as_mut_ptr().cast();
        // SAFETY: one pointer per string, all null at first.
        let read = check("read strings", || unsafe {
            H5Dread(self.handle.0, datatype.0, H5S_ALL, H5S_ALL, transfer.0, buffer)
        });
        let texts = read.map(|_| {
            // SAFETY: the library gave NUL-terminated strings or null; they live until reclaimed.
            let text = |p: *mut c_char| unsafe { CStr::from_ptr(p).to_bytes().to_vec() };
            pointers.iter().map(|&p| if p.is_null() { Vec::new() } else { text(p) }).collect()
        });
        locked(|| {
            // SAFETY: what the read left behind is null or came from `allocate_bounded`.
            unsafe { H5Treclaim(datatype.0, space.0, transfer.0, buffer) };
        });
        texts
    }
}

/// Whether this number of strings of this size may be read at once.
fn is_within(count: usize, size_bytes: usize) -> bool {
    count.checked_mul(size_bytes).is_some_and(|n| n as u64 <= MAX_TEXT_BYTES)
}

/// `left`: an `AtomicUsize`, the bytes that may still be given.
unsafe extern "C" fn allocate_bounded(size: usize, left: *mut c_void) -> *mut c_void {
    // SAFETY: the number that was given with this function, which is alive while it reads.
    let left_bytes = unsafe { &*left.cast::<AtomicUsize>() };
    let take = |left: usize| left.checked_sub(size);
    if left_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
        return std::ptr::null_mut();
    }
    // SAFETY: a plain allocation by the library.
    unsafe { H5allocate_memory(size, 1) }
}

unsafe extern "C" fn release(memory: *mut c_void, _info: *mut c_void) {
    // SAFETY: memory of `allocate_bounded`, or null.
    unsafe { H5free_memory(memory) };
}

fn element_size(datatype: &Handle) -> usize {
    // SAFETY: a valid data type.
    locked(|| unsafe { hdf5_metno_sys::h5t::H5Tget_size(datatype.0) })
}

fn extent(space: &Handle) -> Result<Vec<u64>> {
    extents(space).map(|(shape, _)| shape)
}

/// Sizes of the axes, and the largest they may have ([`UNLIMITED`] for any).
pub(super) fn extents(space: &Handle) -> Result<(Vec<u64>, Vec<u64>)> {
    let (mut shape, mut largest) = ([0; MAX_RANK], [0; MAX_RANK]);
    // SAFETY: a valid data space.
    let rank = check("give the rank", || unsafe { H5Sget_simple_extent_ndims(space.0) })?;
    let rank = usize::try_from(rank).ok().filter(|&n| n <= MAX_RANK);
    let rank = rank.ok_or_else(|| Error::corrupt(format!("expected at most {MAX_RANK} axes")))?;
    // SAFETY: room for as many sizes as there are axes.
    check("give the shape", || unsafe {
        H5Sget_simple_extent_dims(space.0, shape.as_mut_ptr(), largest.as_mut_ptr())
    })?;
    Ok((shape[..rank].to_vec(), largest[..rank].to_vec()))
}

/// Marks `selection` in `space`; gives a memory space of its shape.
fn select(space: &Handle, selection: &Selection) -> Result<Handle> {
    let ranges = selection.ranges();
    let of = |f: fn(&array::AxisRange) -> u64| ranges.iter().map(f).collect::<Vec<u64>>();
    let (start, step, count) = (of(|r| r.start), of(|r| r.step), of(|r| r.count));
    if !ranges.is_empty() {
        // SAFETY: as many starts, steps and counts as the space has axes (checked by the caller).
        check("select elements", || unsafe {
            let (start, step, count) = (start.as_ptr(), step.as_ptr(), count.as_ptr());
            H5Sselect_hyperslab(space.0, H5S_seloper_t::H5S_SELECT_SET, start, step, count, std::ptr::null())
        })?;
    }
    let rank = c_int::try_from(ranges.len()).unwrap_or(c_int::MAX);
    // SAFETY: `rank` sizes; a rank of zero makes a scalar.
    Handle::new("make a memory space", || unsafe { H5Screate_simple(rank, count.as_ptr(), std::ptr::null()) })
}

fn layout(properties: &Handle) -> Result<DatasetLayout> {
    // SAFETY: valid creation properties of a data set.
    let (layout, outside) =
        locked(|| unsafe { (H5Pget_layout(properties.0), H5Pget_external_count(properties.0)) });
    Ok(match layout {
        H5D_layout_t::H5D_COMPACT => DatasetLayout::Compact,
        H5D_layout_t::H5D_CONTIGUOUS if outside == 0 => DatasetLayout::Contiguous,
        H5D_layout_t::H5D_CONTIGUOUS => DatasetLayout::External,
        H5D_layout_t::H5D_CHUNKED => DatasetLayout::Chunked(chunk(properties)?),
        H5D_layout_t::H5D_VIRTUAL => DatasetLayout::Virtual,
        _ => return Err(Error::corrupt("expected a known storage layout")),
    })
}

fn chunk(properties: &Handle) -> Result<Vec<u64>> {
    let mut chunk = [0; MAX_RANK];
    let most = c_int::try_from(MAX_RANK).unwrap_or(c_int::MAX);
    // SAFETY: room for `most` sizes.
    let rank =
        check("give the chunk shape", || unsafe { H5Pget_chunk(properties.0, most, chunk.as_mut_ptr()) })?;
    Ok(chunk.iter().copied().take(usize::try_from(rank).unwrap_or(0)).collect())
}

fn filters(properties: &Handle) -> Result<Vec<PipelineFilter>> {
    // SAFETY: valid creation properties of a data set.
    let count = check("count the filters", || unsafe { H5Pget_nfilters(properties.0) })?;
    let count = c_uint::try_from(count).unwrap_or(0);
    if count as usize > MAX_PIPELINE_FILTERS {
        return Err(Error::corrupt(format!(
            "expected at most {MAX_PIPELINE_FILTERS} filters, found {count}"
        )));
    }
    (0..count).map(|number| filter(properties, number)).collect()
}

fn filter(properties: &Handle, number: c_uint) -> Result<PipelineFilter> {
    let (mut flags, mut config): (c_uint, c_uint) = (0, 0);
    let mut parameters = [0; MAX_FILTER_PARAMETERS];
    let mut count = parameters.len();
    // SAFETY: `count` says how many parameters there is room for; no name is asked for.
    let id = check("give a filter", || unsafe {
        let (flags, config) = (&raw mut flags, &raw mut config);
        let (values, none) = (parameters.as_mut_ptr(), std::ptr::null_mut());
        H5Pget_filter2(properties.0, number, flags, &raw mut count, values, 0, none, config)
    })?;
    // SAFETY: a plain question.
    let available = locked(|| unsafe { H5Zfilter_avail(id) }) > 0;
    let parameters = parameters.iter().copied().take(count).collect();
    Ok(PipelineFilter { id, parameters, available })
}

fn never_filled(properties: &Handle) -> Result<bool> {
    let mut time = H5D_fill_time_t::H5D_FILL_TIME_IFSET;
    // SAFETY: valid creation properties and place for the result.
    check("say when it fills", || unsafe { H5Pget_fill_time(properties.0, &raw mut time) })?;
    Ok(time == H5D_fill_time_t::H5D_FILL_TIME_NEVER)
}

fn has_fill(properties: &Handle) -> Result<bool> {
    let mut defined = H5D_fill_value_t::H5D_FILL_VALUE_UNDEFINED;
    // SAFETY: valid creation properties and place for the result.
    check("say whether there is a fill value", || unsafe {
        H5Pfill_value_defined(properties.0, &raw mut defined)
    })?;
    Ok(defined == H5D_fill_value_t::H5D_FILL_VALUE_USER_DEFINED)
}

/// Returns the fill value as stored; zeros if the file has none or disables filling.
fn fill(properties: &Handle, datatype: &Handle, element: &Datatype) -> Result<Vec<u8>> {
    let file_bytes = element_size(datatype);
    let (size, count) = match element {
        Datatype::Number(dtype) | Datatype::Enumeration { dtype, .. } => (dtype.size_bytes(), 1),
        Datatype::Padded(padded) => (padded.dtype.size_bytes(), 1),
        Datatype::Array(dtype, _) => (dtype.size_bytes(), file_bytes / dtype.size_bytes()),
        Datatype::FixedText { .. } => (1, file_bytes),
        Datatype::Compound { size_bytes, .. } => (*size_bytes, 1),
        _ => return Ok(Vec::new()),
    };
    // Texts and arrays keep one number as their fill value; that of a compound is kept whole.
    if size as u64 > MAX_ELEMENT_BYTES {
        return Err(Error::too_large(format!(
            "expected elements of at most {MAX_ELEMENT_BYTES} bytes, found {size}"
        )));
    }
    // The library's own default is zeros.
    let is_set = has_fill(properties)? && !never_filled(properties)?;
    if !is_set || file_bytes != size * count {
        return Ok(vec![0; size]);
    }
    if file_bytes as u64 > MAX_ELEMENT_BYTES {
        return Err(Error::too_large(format!(
            "expected a fill value of at most {MAX_ELEMENT_BYTES} bytes, found {file_bytes}"
        )));
    }
    let mut value = vec![0; file_bytes];
    // SAFETY: room for one element of the given type.
    check("give the fill value", || unsafe {
        H5Pget_fill_value(properties.0, datatype.0, value.as_mut_ptr().cast())
    })?;
    // Elements that are arrays are filled number by number.
    let first = value.get(..size).unwrap_or_default().to_vec();
    if value.chunks(size.max(1)).any(|part| part != first) {
        return Err(Error::unsupported("fill values that differ within an element"));
    }
    Ok(first)
}

/// Cuts fixed-size strings apart.
pub(super) fn split_fixed_text(bytes: &[u8], size_bytes: usize, spaces: bool) -> Vec<String> {
    bytes.chunks(size_bytes.max(1)).map(|text| trim_text(text, spaces)).collect()
}

/// Text up to its first zero, without padding.
pub(in super::super) fn trim_text(bytes: &[u8], spaces: bool) -> String {
    let text = bytes.split(|&b| b == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    if spaces { text.trim_end_matches(' ').to_owned() } else { text.into_owned() }
}
