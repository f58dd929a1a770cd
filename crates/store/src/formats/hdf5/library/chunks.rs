//! Chunks of a data set: which ones are stored, and their locations.
//!
//! The library reports chunks in two ways. The list of all of them is quick, but counts the chunks of an extensible array in the
//! wrong order of axes (at least in all versions up to 2.2), which [`Object::chunks`] corrects. The look-up of one chunk is used by
//! the library's own reads; [`Object::chunk_place`] calls it, and the list is compared with it.
#![expect(unsafe_code, reason = "HDF5 is a C library")]

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::NonNull;

use array::{Error, Result};
use hdf5_metno_sys::h5::{haddr_t, hsize_t};
use hdf5_metno_sys::h5d::{H5D_chunk_index_t, H5Dchunk_iter, H5Dget_chunk_index_type, H5Dread_chunk2};
use hdf5_metno_sys::h5p::H5P_DEFAULT;

use super::calls::{check, locked};
use super::dataset::{UNLIMITED, extents};
use super::{Object, driver};

/// The number of the index that is an extensible array: used where one axis is unlimited.
const EXTENSIBLE_ARRAY: c_int = 4;
/// Address by which the library marks a chunk that was never written.
const NOT_STORED: [&str; 3] =
    ["chunk address isn't defined", "storage is not initialized", "chunk storage is not allocated"];

/// Location of one chunk in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct ChunkLocation {
    /// Byte in the file.
    pub(in super::super) offset: u64,
    pub(in super::super) size_bytes: u64,
    /// Bit i set: filter i was not applied.
    pub(in super::super) skipped_filters: u32,
}

impl Object {
    /// Calls `each` with the place in the grid and in the file of every stored chunk until it answers `false`. Chunks
    /// are of `chunk` elements; some may lie outside of the present shape.
    pub(in super::super) fn chunks(
        &self,
        chunk: &[u64],
        each: &mut dyn FnMut(&[u64], ChunkLocation) -> bool,
    ) -> Result<()> {
        let order = self.listing_order(chunk)?;
        let mut visit = ChunkListing { chunk, order, position: vec![0; chunk.len()], each, is_odd: false };
        // SAFETY: a valid data set; the callback gets the pointer to `visit`, which outlives the call.
        check("list the chunks", || unsafe {
            let data = std::ptr::from_mut(&mut visit).cast();
            H5Dchunk_iter(self.handle.0, H5P_DEFAULT, Some(visit_chunk), data)
        })?;
        if visit.is_odd {
            return Err(Error::corrupt(format!("expected chunks of {chunk:?} to begin on their grid")));
        }
        Ok(())
    }

    /// Looks up the chunk at `position` in the grid of chunks as the library's own reads do; `None` if nothing is stored. Reads no elements.
    pub(in super::super) fn chunk_place(
        &self,
        position: &[u64],
        chunk: &[u64],
    ) -> Result<Option<ChunkLocation>> {
        let start: Vec<u64> = position.iter().zip(chunk).map(|(&p, &c)| p.saturating_mul(c)).collect();
        let mut skipped_filters = 0;
        let mut room = usize::MAX;
        let probed = locked(|| {
            driver::probing(|| {
                // SAFETY: a valid data set and as many indices as it has axes. Nothing is written through the pointer:
                // while probing, the driver records the requested range and writes nothing.
                check("look up a chunk", || unsafe {
                    let nowhere: *mut c_void = NonNull::<u64>::dangling().as_ptr().cast();
                    let (filters, room) = (&raw mut skipped_filters, &raw mut room);
                    H5Dread_chunk2(self.handle.0, H5P_DEFAULT, start.as_ptr(), filters, nowhere, room)
                })
            })
        });
        match probed {
            (Ok(_), Some((offset, size_bytes))) => {
                Ok(Some(ChunkLocation { offset, size_bytes, skipped_filters }))
            }
            (Ok(_), None) => Ok(None),
            (Err(e), _) if NOT_STORED.iter().any(|text| e.message().contains(text)) => Ok(None),
            (Err(e), _) => Err(e),
        }
    }

    /// Returns the axis order of the list of chunks.
    fn listing_order(&self, chunk: &[u64]) -> Result<ListingOrder> {
        let mut kind: c_int = -1;
        // SAFETY: a valid data set; the kind is written as a plain number, valid whatever it is.
        check("tell its kind of chunk index", || unsafe {
            H5Dget_chunk_index_type(self.handle.0, (&raw mut kind).cast::<H5D_chunk_index_t>())
        })?;
        if kind != EXTENSIBLE_ARRAY {
            return Ok(ListingOrder::Plain);
        }
        let (_, largest) = extents(&self.space()?)?;
        let Some(unlimited) = largest.iter().position(|&n| n == UNLIMITED) else {
            return Ok(ListingOrder::Plain);
        };
        let counts = largest.iter().zip(chunk).map(|(n, c)| n.div_ceil((*c).max(1))).collect();
        Ok(ListingOrder::Swizzled { unlimited, counts })
    }
}

/// Axis order of a list of chunks.
#[derive(Debug)]
enum ListingOrder {
    /// Axis order of the data set.
    Plain,
    /// Stored with the unlimited axis slowest, but counted in the order of the axes.
    Swizzled {
        unlimited: usize,
        /// Most chunks per axis; not of use for the unlimited one.
        counts: Vec<u64>,
    },
}

impl ListingOrder {
    /// Converts a position of the list to one of the data set; `None` if it is impossible.
    fn restore(&self, position: &mut [u64]) -> Option<()> {
        let Self::Swizzled { unlimited, counts } = self else { return Some(()) };
        // The library counts up in C order, and never gets to the axes in front of the unlimited one.
        let (before, after) = position.split_at_checked(*unlimited)?;
        let (first, rest) = after.split_first()?;
        if before.iter().any(|&p| p != 0) {
            return None;
        }
        let mut index = *first;
        for (p, count) in rest.iter().zip(counts.get(unlimited + 1..)?) {
            index = index.checked_mul(*count)?.checked_add(*p)?;
        }
        // The chunk of this index lies where the unlimited axis is the slowest.
        for (axis, p) in position.iter_mut().enumerate().rev().filter(|(axis, _)| axis != unlimited) {
            let count = *counts.get(axis)?;
            *p = index.checked_rem(count)?;
            index /= count;
        }
        *position.get_mut(*unlimited)? = index;
        Some(())
    }
}

struct ChunkListing<'a> {
    chunk: &'a [u64],
    order: ListingOrder,
    position: Vec<u64>,
    each: &'a mut dyn FnMut(&[u64], ChunkLocation) -> bool,
    is_odd: bool,
}

impl ChunkListing<'_> {
    /// Whether to go on.
    fn chunk(&mut self, start: &[u64], place: ChunkLocation) -> bool {
        for ((p, &start), &size) in self.position.iter_mut().zip(start).zip(self.chunk) {
            self.is_odd |= size == 0 || !start.is_multiple_of(size);
            *p = start / size.max(1);
        }
        self.is_odd |= self.order.restore(&mut self.position).is_none();
        !self.is_odd && (self.each)(&self.position, place)
    }
}

unsafe extern "C" fn visit_chunk(
    start: *const hsize_t,
    filter_mask: c_uint,
    address: haddr_t,
    size: hsize_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the library passes one index per axis; `data` is the `ChunkListing` given to the call.
    let (visit, start) = unsafe {
        let visit = &mut *data.cast::<ChunkListing<'_>>();
        let start = std::slice::from_raw_parts(start, visit.chunk.len());
        (visit, start)
    };
    let place = ChunkLocation { offset: address, size_bytes: size, skipped_filters: filter_mask };
    c_int::from(!visit.chunk(start, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unlimited_axis_is_the_slowest_of_an_extensible_array() {
        // Axes of 3, any number and 2 chunks: what is counted is (0, index / 2, index % 2).
        let order = ListingOrder::Swizzled { unlimited: 1, counts: vec![3, u64::MAX, 2] };
        let mut index = 0;
        for unlimited in 0..4 {
            for first in 0..3 {
                for last in 0..2 {
                    let mut position = [0, index / 2, index % 2];
                    order.restore(&mut position).unwrap();
                    assert_eq!(position, [first, unlimited, last]);
                    index += 1;
                }
            }
        }
        assert_eq!(order.restore(&mut [1, 0, 0]), None);
        let empty = ListingOrder::Swizzled { unlimited: 0, counts: vec![u64::MAX, 0] };
        assert_eq!(empty.restore(&mut [1, 0]), None);
    }
}
