//! Arrays as they are drawn: uneven axes and curvilinear grids on even grids, and color images.
//!
//! Casters draw evenly spaced voxels of one value each. Before a data set is drawn it is therefore wrapped in
//! a [`Regridded`]: arrays with uneven axes (pressure levels, stretched grids) or with two-dimensional
//! latitudes and longitudes get an even grid, all others stay unchanged. Nothing is interpolated: each voxel
//! of an even grid takes the value of the source cell that contains its center, so that values in pictures
//! are values of the file. Blocks are made on demand from blocks of the same level of the source, so that
//! caches behind this source hold each block once. Voxels outside all cells are missing. Color images get a
//! second array, of packed colors, which the casters draw as labels with the color of their number.
//!
//! This source is for drawing only: readers of arrays use the wrapped source.
//!
//! | file | contents |
//! |---|---|
//! | `coordinates.rs` | coordinate arrays: bounds, latitudes, longitudes |
//! | `even_axis.rs` | even axis for an uneven one |
//! | `lat_lon_grid.rs` | even longitude-latitude grid for a curvilinear one |
//! | `colors.rs` | packed colors for channels and labels with colors |
//! | `plan.rs` | description on even grids, and maps from it to the source |
//! | `gather.rs` | copies of the elements of a block |
//! | `stored_place.rs` | stored elements behind a drawn voxel |

mod colors;
mod coordinates;
mod even_axis;
mod gather;
mod lat_lon_grid;
mod plan;
mod stored_place;

use std::sync::{Arc, Mutex, PoisonError};

use array::{
    ArrayInfo, Block, BlockInfo, BlockKey, Completion, Completions, Content, Dataset, Error, PackedChunk,
    ReadRequest, Region, Result, Source, WINDOW_BLOCKS, Want, gather as gather_blocks, values::stats, want,
};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{FuturesUnordered, StreamExt};
use session::DrawnArray;

use crate::loading::vectors::{VectorLengths, VectorNames};

use self::colors::PackedColors;
use self::gather::block_copies;
pub(crate) use self::plan::resampling;
use self::plan::{EvenGrid, RegridBlockOrigin, RegridPlan};
pub(crate) use self::stored_place::{StoredChannels, StoredPlace, StoredPlaces};

/// Source whose arrays all lie on even grids; see the module. Levels keep their numbers, and time and other
/// non-spatial axes their indices. The data set has its own identity if an array differs from the source's.
#[derive(Clone)]
pub struct Regridded {
    inner: Arc<RegridState>,
}

struct RegridState {
    /// Source whose last arrays are lengths of vectors.
    source: Arc<VectorLengths>,
    /// Plan for the newest description of the source.
    plan: Mutex<Arc<RegridPlan>>,
}

impl Regridded {
    /// Describes `source` and reads the coordinates of uneven and curvilinear grids; reads nothing for other
    /// data sets.
    ///
    /// Call it within a tokio runtime.
    ///
    /// # Errors
    /// Those of describing. Coordinates that cannot be read only leave a note.
    pub async fn open(source: Arc<dyn Source>) -> Result<Self> {
        let source = Arc::new(VectorLengths::open(source).await?);
        let described = source.describe().await?;
        let plan = Arc::new(RegridPlan::of(&*source, described).await);
        Ok(Self { inner: Arc::new(RegridState { source, plan: Mutex::new(plan) }) })
    }

    /// Returns the arrays whose axes or notes differ from the source's, and the added ones.
    #[must_use]
    pub fn differing(&self) -> Vec<DrawnArray> {
        let plan = self.inner.plan();
        let sources = &plan.source.arrays;
        let drawn = |(number, array): (u32, &ArrayInfo)| {
            let vector = self.inner.source.names(number);
            let is_new = vector.is_some() || sources.len() <= number as usize;
            if !is_new && sources.get(number as usize) == Some(array) {
                return None;
            }
            let VectorNames { arrays: components, axis: component_axis } = vector.unwrap_or_default();
            Some(DrawnArray {
                name: array.name.clone(),
                axes: array.axes.clone(),
                levels: array.levels.clone(),
                world_units: array.world_units.clone(),
                notes: array.notes.clone(),
                meaning: is_new.then_some(array.meaning),
                dtype: is_new.then_some(array.dtype),
                units: is_new.then(|| array.units.clone()).filter(|units| !units.is_empty()),
                components,
                component_axis,
            })
        };
        (0..).zip(&plan.dataset.arrays).filter_map(drawn).collect()
    }

    /// Returns the voxel of level 0 in which index `index` of the source is drawn, along axis `axis` of array
    /// `array`. This is `index` itself for unchanged axes and for the axes of curvilinear grids.
    ///
    /// # Errors
    /// `Invalid` for an index outside an uneven axis.
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    pub fn voxel_of(&self, array: u32, axis: usize, index: f64) -> Result<f64> {
        let plan = self.inner.plan();
        let grid = plan.grids.get(array as usize).and_then(Option::as_ref);
        let level = grid.and_then(|grid| grid.levels.first());
        let Some(voxel) = level.and_then(|level| level.voxel_of(axis, index)) else { return Ok(index) };
        let source = plan.source.array(array)?;
        let last = source.shape()[axis].saturating_sub(1);
        if (0.0..=last as f64).contains(&index) {
            return Ok(voxel);
        }
        let name = &source.axes[axis].name;
        Err(Error::invalid(format!("axis `{name}` has indices from 0 to {last}; found {index}")))
    }
}

impl RegridState {
    fn plan(&self) -> Arc<RegridPlan> {
        Arc::clone(&self.plan.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn describe(&self) -> Result<Arc<Dataset>> {
        let described = self.source.describe().await?;
        let known = self.plan();
        if Arc::ptr_eq(&known.source, &described) || known.source == described {
            return Ok(Arc::clone(&known.dataset));
        }
        let plan = Arc::new(RegridPlan::of(&*self.source, described).await);
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&plan);
        Ok(Arc::clone(&plan.dataset))
    }

    /// Answers one want; `None` if no request waits for it any more.
    async fn answer(&self, plan: &RegridPlan, want: &Want) -> Option<Completion> {
        let key = want.key();
        let block = match plan.dataset.block(key) {
            Err(error) => Err(error),
            Ok(info) => match plan.block_origin(key.array) {
                RegridBlockOrigin::Even(grid) => self.make(plan, grid, &info, want).await?,
                RegridBlockOrigin::PackedColors(colors) => self.paint(plan, colors, &info, want).await?,
                RegridBlockOrigin::AsIs => self.forward(plan, want).await?,
            },
        };
        Some(Completion { key, result: block.map(Arc::new) })
    }

    /// Returns a block of an array that is the same in the source.
    async fn forward(&self, plan: &RegridPlan, want: &Want) -> Option<Result<Block>> {
        let (mut content, index) = (None, [want.key().index]);
        let taken = self.fetch(plan, want.key().array, want, &index, |_, found| {
            content = Some(found.clone());
            Ok(())
        });
        let taken = taken.await?;
        let content = content.ok_or_else(|| Error::internal("the source answered without a block"));
        Some(taken.and(content).map(|content| Block { key: want.key(), content }))
    }

    /// Makes a block of an even grid.
    async fn make(
        &self,
        plan: &RegridPlan,
        grid: &EvenGrid,
        info: &BlockInfo<'_>,
        want: &Want,
    ) -> Option<Result<Block>> {
        let key = want.key();
        let mut builder = match EvenBlockBuilder::new(plan, grid, info, key) {
            Ok(builder) => builder,
            Err(error) => return Some(Err(error)),
        };
        let indices: Vec<u64> = builder.block_copies.iter().map(|take| take.index).collect();
        let taken = self
            .fetch_data(plan, key.array, want, &indices, |number, bytes| builder.draw(number, bytes))
            .await?;
        let content = |is_covered| if is_covered { builder.finish() } else { Content::NotCovered };
        Some(taken.map(|is_covered| Block { key, content: content(is_covered) }))
    }

    /// Makes a block of packed colors.
    async fn paint(
        &self,
        plan: &RegridPlan,
        colors: &PackedColors,
        info: &BlockInfo<'_>,
        want: &Want,
    ) -> Option<Result<Block>> {
        let key = want.key();
        let start: Vec<u64> = info.selection.ranges().iter().map(|range| range.start).collect();
        let shape = info.selection.shape();
        let prepared = || {
            let array = plan.source.array(colors.source)?;
            let block_copies = colors.block_copies(array.level(key.level)?, &start, &shape)?;
            let item_bytes = array.dtype.size_bytes();
            Ok((array, block_copies, item_bytes, vec![0; colors.source_elements(&shape)? * item_bytes]))
        };
        let (array, block_copies, item_bytes, mut stored) = match prepared() {
            Ok(prepared) => prepared,
            Err(error) => return Some(Err(error)),
        };
        let indices: Vec<u64> = block_copies.iter().map(|take| take.index).collect();
        let take = |number: usize, bytes: &[u8]| block_copies[number].copy(bytes, &mut stored, item_bytes);
        let taken = self.fetch_data(plan, colors.source, want, &indices, take).await?;
        let packed = |is_covered: bool| {
            if !is_covered {
                return Ok(Block { key, content: Content::NotCovered });
            }
            let bytes = colors.pack(&stored, array, &shape)?;
            let range = stats::value_range(&bytes, info.array.dtype, &info.array.decoding);
            Ok(Block { key, content: Content::Data { bytes: Bytes::from(bytes), range } })
        };
        Some(taken.and_then(packed))
    }

    /// Fetches blocks as [`RegridState::fetch`] does, and passes the elements of each to `take`; returns
    /// false if some block is not covered.
    async fn fetch_data(
        &self,
        plan: &RegridPlan,
        array: u32,
        for_want: &Want,
        indices: &[u64],
        mut take: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Option<Result<bool>> {
        let mut is_covered = true;
        let taken = self.fetch(plan, array, for_want, indices, |number, content| match content {
            Content::Data { bytes, .. } => take(number, bytes),
            Content::NotCovered => {
                is_covered = false;
                Ok(())
            }
        });
        let taken = taken.await?;
        Some(taken.map(|()| is_covered))
    }

    /// Fetches source blocks with these indices, of an array of the source and the level and urgency of a
    /// want, and passes each to `take` with its position in the list. Returns `None` when nobody waits any
    /// more.
    async fn fetch(
        &self,
        plan: &RegridPlan,
        array: u32,
        for_want: &Want,
        indices: &[u64],
        mut take: impl FnMut(usize, &Content) -> Result<()>,
    ) -> Option<Result<()>> {
        let Dataset { id: dataset, generation, .. } = *plan.source;
        let key = BlockKey { dataset, generation, array, ..for_want.key() };
        for (window, some) in indices.chunks(WINDOW_BLOCKS).enumerate() {
            let pairs = some.iter().map(|&index| want(BlockKey { index, ..key }, for_want.urgency()));
            let (wants, handles): (Vec<_>, Vec<_>) = pairs.unzip();
            let mut answers = self.source.blocks(wants);
            let taking = async {
                for _ in some {
                    let Some(Completion { key, result }) = answers.next().await else {
                        let what = "the source ended its answers without answering every want";
                        return Err(Error::internal(what));
                    };
                    let place = some.iter().position(|&index| index == key.index);
                    match (result, place) {
                        (Ok(block), Some(place)) => take(window * WINDOW_BLOCKS + place, &block.content)?,
                        (Ok(_), None) => {
                            return Err(Error::internal(
                                "the source answered a block that was not requested",
                            ));
                        }
                        (Err(error), _) => return Err(error),
                    }
                }
                Ok(())
            };
            let adjust = |urgency| handles.iter().for_each(|handle| handle.adjust(urgency));
            if let Err(error) = for_want.drive(taking, adjust).await? {
                return Some(Err(error));
            }
        }
        Some(Ok(()))
    }
}

/// Block that is being made.
struct EvenBlockBuilder<'a> {
    grid: &'a EvenGrid,
    info: &'a BlockInfo<'a>,
    /// Copies from each source block.
    block_copies: Vec<gather::BlockCopy>,
    /// Bytes of one element of the source.
    item_bytes: usize,
    bytes: Vec<u8>,
    /// Mask of elements with a value, 1 or 0; empty if the others are marked in `bytes` already.
    has_value: Vec<u8>,
}

impl<'a> EvenBlockBuilder<'a> {
    fn new(plan: &RegridPlan, grid: &'a EvenGrid, info: &'a BlockInfo<'a>, key: BlockKey) -> Result<Self> {
        let array = plan.source.array(key.array)?;
        let source = array.level(key.level)?;
        let level = grid.levels.get(usize::from(key.level));
        let level = level.ok_or_else(|| Error::internal("a level has no map to the source"))?;
        let start: Vec<u64> = info.selection.ranges().iter().map(|range| range.start).collect();
        let shape = info.selection.shape();
        let block_copies = block_copies(source, [&start, &shape], &level.indices(), level.pixels().as_ref())?;
        let (elements, item_bytes) = (gather::count_of(&shape)?, array.dtype.size_bytes());
        let bytes = match &grid.missing {
            Some(missing) if missing.wider.is_none() => missing.element.repeat(elements),
            _ => vec![0; elements * item_bytes],
        };
        let is_wider = grid.missing.as_ref().is_some_and(|missing| missing.wider.is_some());
        let has_value = if is_wider { vec![0; elements] } else { Vec::new() };
        Ok(Self { grid, info, block_copies, item_bytes, bytes, has_value })
    }

    /// Copies the needed elements of a source block.
    fn draw(&mut self, number: usize, from: &[u8]) -> Result<()> {
        let take = &self.block_copies[number];
        take.copy(from, &mut self.bytes, self.item_bytes)?;
        if !self.has_value.is_empty() {
            let all = vec![1; from.len() / self.item_bytes];
            take.copy(&all, &mut self.has_value, 1)?;
        }
        Ok(())
    }

    fn finish(self) -> Content {
        let array = self.info.array;
        let mut bytes = self.bytes;
        if let Some((missing, wider)) =
            self.grid.missing.as_ref().and_then(|m| m.wider.map(|wider| (m, wider)))
        {
            bytes = wider.convert(&bytes);
            for (element, _) in bytes
                .chunks_exact_mut(missing.element.len())
                .zip(&self.has_value)
                .filter(|(_, has)| **has == 0)
            {
                element.copy_from_slice(&missing.element);
            }
        }
        let range = stats::value_range(&bytes, array.dtype, &array.decoding);
        Content::Data { bytes: Bytes::from(bytes), range }
    }
}

impl Source for Regridded {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        let inner = Arc::clone(&self.inner);
        async move { inner.describe().await }.boxed()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let plan = self.inner.plan();
        if plan.is_plain() {
            return self.inner.source.blocks(wants);
        }
        let answer = |want: Want| {
            let (inner, plan) = (Arc::clone(&self.inner), Arc::clone(&plan));
            async move { inner.answer(&plan, &want).await }.boxed()
        };
        let answers: FuturesUnordered<_> = wants.into_iter().map(answer).collect();
        answers.filter_map(ready).boxed()
    }

    /// Reads elements of the even grid or of packed colors if the array has them.
    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        let plan = self.inner.plan();
        match plan.block_origin(request.array) {
            RegridBlockOrigin::AsIs => self.inner.source.read(request, into),
            RegridBlockOrigin::Even(_) | RegridBlockOrigin::PackedColors(_) => {
                gather_blocks(Arc::new(self.clone()), request, into)
            }
        }
    }

    /// Returns no packed chunk for even grids and packed colors: the source does not store them in this form.
    fn packed(&self, request: &ReadRequest) -> BoxFuture<'static, Result<Option<PackedChunk>>> {
        let plan = self.inner.plan();
        match plan.block_origin(request.array) {
            RegridBlockOrigin::AsIs => self.inner.source.packed(request),
            RegridBlockOrigin::Even(_) | RegridBlockOrigin::PackedColors(_) => ready(Ok(None)).boxed(),
        }
    }
}

#[cfg(test)]
mod tests;
