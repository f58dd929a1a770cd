//! A selection read part by part in bounded memory, for computations next to the data. The computation runs on threads
//! for blocking work, one part at a time, while the next parts are being read.

use std::sync::Arc;

use array::{
    ArrayInfo, AxisRange, Dataset, Error, Priority, ReadRequest, Result, Selection, Source, Target, decode,
    elements, with_element,
};
use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use wire::ops::BlockPlace;

use crate::read_slabs::{ReadSlab, slabs};

/// Number of parts that are read concurrently.
const PARTS_IN_FLIGHT: usize = 2;
/// Number of parts in memory: those being read, and one in computation.
pub const PARTS_IN_MEMORY: u64 = 3;
/// Maximum size of a part, in bytes; larger parts are not faster.
pub const MAX_PART_BYTES: u64 = 8 << 20;

/// A selection of one level of an array, to be read part by part.
#[derive(Clone)]
pub struct Scan {
    source: Arc<dyn Source>,
    dataset: Arc<Dataset>,
    array: u32,
    level: u8,
    selection: Selection,
    priority: Priority,
}

/// Some of the elements of a selection, as stored, in C order.
#[derive(Clone, Debug)]
pub struct ScanPart {
    /// First element, per axis, relative to the whole selection.
    pub start: Vec<u64>,
    /// Selected elements of the array, including those that overlap with the next part.
    pub selection: Selection,
    /// The elements, as stored.
    pub bytes: Vec<u8>,
}

impl ScanPart {
    /// Returns the decoded values as doubles; NaN for missing values.
    ///
    /// # Errors
    /// The errors of [`decode`].
    pub fn values(&self, array: &ArrayInfo) -> Result<Vec<f64>> {
        let decoded = decode(&self.bytes, array.dtype, &array.decoding)?;
        let output = array.decoding.output;
        Ok(with_element!(output.element(), T =>
            elements::<T>(&decoded, output.order()).map(array::Element::to_f64).collect()))
    }
}

impl Scan {
    /// Creates a scan of the elements of `selection` at a place, or of all elements.
    ///
    /// # Errors
    /// `Invalid` for an array, level or selection that does not exist.
    pub fn new(
        source: Arc<dyn Source>,
        dataset: Arc<Dataset>,
        place: &BlockPlace,
        selection: Option<Selection>,
        priority: Priority,
    ) -> Result<Self> {
        let BlockPlace { array, level, .. } = *place;
        let shape = &dataset.array(array)?.level(level)?.shape;
        let selection = selection.unwrap_or_else(|| Selection::all(shape));
        selection.check(shape)?;
        Ok(Self { source, dataset, array, level, selection, priority })
    }

    /// Returns the array.
    ///
    /// # Errors
    /// None: it was looked up before.
    pub fn array(&self) -> Result<&ArrayInfo> {
        self.dataset.array(self.array)
    }

    /// Returns the selection.
    #[must_use]
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Returns the number of elements in the selection, saturating.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.selection.len().unwrap_or(u64::MAX)
    }

    /// Returns the box that a stored chunk covers, in elements of the selection per axis; `None` if there are no
    /// chunks.
    ///
    /// # Errors
    /// None: array and level were looked up before.
    pub fn grain(&self) -> Result<Option<Vec<u64>>> {
        let grain = self.array()?.level(self.level)?.grain();
        let steps = self.selection.ranges().iter().map(|r| r.step);
        Ok(grain.map(|grain| grain.iter().zip(steps).map(|(&g, step)| g.div_ceil(step)).collect()))
    }

    /// Returns the scan of a box of this selection, with `start` and `count` in its elements.
    ///
    /// # Errors
    /// `Invalid` if the box lies outside.
    pub fn of_box(&self, start: &[u64], count: &[u64]) -> Result<Self> {
        let part = |((r, &start), &count): ((&AxisRange, &u64), &u64)| {
            let lies_inside = start.checked_add(count).is_some_and(|end| end <= r.count);
            lies_inside.then(|| AxisRange { start: r.index(start), count, step: r.step })
        };
        let ranges: Option<Vec<_>> = self.selection.ranges().iter().zip(start).zip(count).map(part).collect();
        let ranges = ranges.ok_or_else(|| Error::invalid("expected a box inside the selection"))?;
        Ok(Self { selection: Selection::new(ranges)?, ..self.clone() })
    }

    /// Returns the parts, in C order of the grid of stored chunks, of at most `part_bytes` each (but at least one
    /// element). With `overlap` for an axis, a part has one more element along the axis, the first one of the next
    /// part.
    ///
    /// # Errors
    /// None: array and level were looked up before.
    pub fn parts<'a>(
        &'a self,
        part_bytes: u64,
        overlap: &'a [bool],
    ) -> Result<impl Stream<Item = Result<ScanPart>> + Send + 'a> {
        let array = self.array()?;
        let item_bytes = array.dtype.size_bytes();
        let part_bytes = part_bytes.min(MAX_PART_BYTES);
        let parts = slabs(&self.selection, item_bytes, array.level(self.level)?.grain(), part_bytes);
        let read = move |slab| self.read(slab, overlap, item_bytes);
        Ok(stream::iter(parts).map(read).buffered(PARTS_IN_FLIGHT))
    }

    async fn read(&self, slab: ReadSlab, overlap: &[bool], item_bytes: usize) -> Result<ScanPart> {
        let ReadSlab { start, selection } = slab;
        let wider = |(axis, part): (usize, &AxisRange)| {
            let ends = start[axis].saturating_add(part.count);
            let more = overlap.get(axis) == Some(&true) && ends < self.selection.ranges()[axis].count;
            AxisRange { count: part.count + u64::from(more), ..*part }
        };
        let selection = Selection::new(selection.ranges().iter().enumerate().map(wider))?;
        let (target, region) = Target::new(&selection.shape(), item_bytes)?;
        let request = ReadRequest {
            array: self.array,
            level: self.level,
            selection: selection.clone(),
            priority: self.priority,
        };
        self.source.read(request, region).await?;
        Ok(ScanPart { start, selection, bytes: target.into_vec()? })
    }

    /// Calls `add` with the total so far and each part, in order; returns the total. Calls `on_part` after each part
    /// with the number of elements read so far.
    ///
    /// # Errors
    /// The errors of the source, or of `add`.
    ///
    /// # Cancel safety
    /// Dropping the future stops reading; a call of `add` in progress runs to its end.
    pub async fn fold<T: Send + 'static>(
        &self,
        part_bytes: u64,
        overlap: &[bool],
        mut total: T,
        add: impl Fn(&mut T, &ScanPart, &ArrayInfo) -> Result<()> + Send + Sync + 'static,
        mut on_part: impl FnMut(u64) + Send,
    ) -> Result<T> {
        let add = Arc::new(add);
        let mut parts = std::pin::pin!(self.parts(part_bytes, overlap)?);
        let mut done = 0;
        while let Some(part) = parts.try_next().await? {
            done += part.selection.len().unwrap_or_default();
            let (add, dataset, number) = (Arc::clone(&add), Arc::clone(&self.dataset), self.array);
            let work = move || {
                add(&mut total, &part, dataset.array(number)?)?;
                Ok::<_, Error>(total)
            };
            total = tokio::task::spawn_blocking(work)
                .await
                .map_err(|e| Error::internal(format!("the computation of a part panicked: {e}")))??;
            on_part(done);
        }
        Ok(total)
    }
}
