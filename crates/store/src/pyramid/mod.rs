//! Coarser levels that a format does not store: made on demand, block by block, kept in the side cache.
//!
//! [`Levels`] is a source over a [`FormatSource`]. Stored levels pass through. After the coarsest stored one it adds levels of half
//! the size along the axes of space, until none of these is longer than 64 voxels: means, or the most frequent label (`halve.rs` has
//! the rules). For uncompressed arrays it also offers *sampled* levels of the same factors: every n-th voxel, one strided read per
//! block, described as sampled, so that a first picture of a large file is cheap. The *corners* level of a mesh, if a format gives
//! one, comes last, after these. Nothing is made before it is wanted; to have all levels made, want the blocks of the coarsest one
//! with low priority.

mod halve;
mod level_maker;
mod plan;
mod slots;
mod tally;

use std::sync::Arc;

use array::{
    Block, BlockInfo, Completion, Completions, Dataset, PackedChunk, ReadEnds, ReadRequest, Region, Result,
    Source, Target, Want, gather,
};
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;

use crate::{FormatSource, OpenOptions, Scratch};
use level_maker::{BlockWaiter, LevelMaker, needed_bytes};
use plan::{BlockOrigin, PyramidPlan};
use slots::WorkSlots;

pub use level_maker::{BLOCKS_AT_ONCE, PIECE_BYTES, PIECES_AT_ONCE};
pub use plan::{COARSEST_SIDE, KEPT_PERCENT};

/// Blocks of sampled levels that are read at a time.
const SAMPLED_AT_ONCE: usize = 8;

/// A source with coarser levels; see the module's text.
#[derive(Clone)]
pub struct Levels {
    inner: FormatSource,
    maker: Arc<LevelMaker>,
    making: WorkSlots,
    sampling: WorkSlots,
    scratch: Scratch,
    plan: Arc<Mutex<Arc<PyramidPlan>>>,
}

impl Levels {
    /// Adds levels to the description of `inner`. Without a side cache, made blocks are not kept.
    #[must_use]
    pub fn new(inner: FormatSource, options: &OpenOptions) -> Self {
        let plan = Arc::new(plan_for(&inner, &inner.format().dataset()));
        let maker = LevelMaker::new(Arc::new(inner.clone()), options);
        Self {
            inner,
            maker,
            making: WorkSlots::new(BLOCKS_AT_ONCE),
            sampling: WorkSlots::new(SAMPLED_AT_ONCE),
            scratch: options.scratch.clone(),
            plan: Arc::new(Mutex::new(plan)),
        }
    }

    /// Returns the peak of the bytes of blocks being made and their sources.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.maker.peak_bytes()
    }

    /// Returns the plan for the current description of the format.
    fn plan(&self) -> Arc<PyramidPlan> {
        let stored = self.inner.format().dataset();
        let mut plan = self.plan.lock();
        if !Arc::ptr_eq(&plan.stored, &stored) && plan.stored != stored {
            *plan = Arc::new(plan_for(&self.inner, &stored));
        }
        Arc::clone(&plan)
    }

    async fn made(self, plan: Arc<PyramidPlan>, want: Arc<Want>) -> Result<Arc<Block>> {
        let key = want.key();
        if let Some(block) = self.maker.kept(&plan, key, want.urgency().priority).await? {
            return Ok(block);
        }
        let _slot = self.making.acquire(&want).await?;
        let _room = self.scratch.reserve_for_level(needed_bytes(&plan, key)?).await?;
        self.maker.made(&plan, key, BlockWaiter::Want(want)).await
    }

    async fn sampled(self, plan: Arc<PyramidPlan>, want: Arc<Want>) -> Result<Arc<Block>> {
        let _slot = self.sampling.acquire(&want).await?;
        let key = want.key();
        if let Some(block) = self.maker.kept(&plan, key, want.urgency().priority).await? {
            return Ok(block);
        }
        let BlockInfo { array, selection, .. } = plan.dataset.block(key)?;
        let (target, region) = Target::new(&selection.shape(), array.dtype.size_bytes())?;
        let priority = want.urgency().priority;
        let request = ReadRequest { array: key.array, level: key.level, selection, priority };
        self.inner.read(as_stored(&plan, request)?, region).await?;
        self.maker.finish(&plan, key, target.into_vec()?, priority).await
    }

    /// The answer to one want; `None` when it is withdrawn first.
    fn answer(&self, plan: &Arc<PyramidPlan>, want: Want) -> BoxFuture<'static, Option<Completion>> {
        let (this, plan, want) = (self.clone(), Arc::clone(plan), Arc::new(want));
        let key = want.key();
        async move {
            let work = match plan.origin(key.array, key.level) {
                BlockOrigin::Sampled(_) => this.sampled(Arc::clone(&plan), Arc::clone(&want)).boxed(),
                _ => this.made(Arc::clone(&plan), Arc::clone(&want)).boxed(),
            };
            // The maker reads its urgency itself.
            let result = want.drive(work, |_| ()).await?;
            Some(Completion { key, result })
        }
        .boxed()
    }
}

fn plan_for(inner: &FormatSource, stored: &Arc<Dataset>) -> PyramidPlan {
    PyramidPlan::new(stored, |array| inner.format().access(array))
}

/// Converts a read of a sampled level to one of the format's level.
fn as_stored(plan: &PyramidPlan, request: ReadRequest) -> Result<ReadRequest> {
    match plan.origin(request.array, request.level) {
        BlockOrigin::Sampled(samples) => {
            let (level, selection) = samples.stored(&request.selection)?;
            Ok(ReadRequest { level, selection, ..request })
        }
        _ => Ok(request),
    }
}

impl Source for Levels {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        std::future::ready(Ok(Arc::clone(&self.plan().dataset))).boxed()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let plan = self.plan();
        let mut stored = Vec::new();
        let mut refused = Vec::new();
        let added = FuturesUnordered::new();
        for want in wants {
            let key = want.key();
            match plan.dataset.block(key) {
                Err(error) => refused.push(Completion { key, result: Err(error) }),
                Ok(_) if matches!(plan.origin(key.array, key.level), BlockOrigin::Stored) => {
                    stored.push(want)
                }
                Ok(_) => added.push(self.answer(&plan, want)),
            }
        }
        let added = futures::stream::iter(refused).chain(added.filter_map(std::future::ready));
        if stored.is_empty() {
            return added.boxed();
        }
        futures::stream::select(self.inner.blocks(stored), added).boxed()
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        let plan = self.plan();
        let this = self.clone();
        async move {
            request.check(&plan.dataset, &into)?;
            match plan.origin(request.array, request.level) {
                BlockOrigin::Made { .. } => gather(Arc::new(this), request, into).await,
                BlockOrigin::Stored => this.inner.read(request, into).await,
                BlockOrigin::Sampled(_) => this.inner.read(as_stored(&plan, request)?, into).await,
            }
        }
        .boxed()
    }

    fn packed(&self, request: &ReadRequest) -> BoxFuture<'static, Result<Option<PackedChunk>>> {
        match self.plan().origin(request.array, request.level) {
            BlockOrigin::Stored => self.inner.packed(request),
            BlockOrigin::Made { .. } | BlockOrigin::Sampled(_) => std::future::ready(Ok(None)).boxed(),
        }
    }

    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        let plan = self.plan();
        let is_stored = |(request, into): &(ReadRequest, Region)| {
            request.check(&plan.dataset, into).is_ok()
                && matches!(plan.origin(request.array, request.level), BlockOrigin::Stored)
        };
        if reads.iter().all(is_stored) {
            return self.inner.read_many(reads);
        }
        let each = reads.into_iter().enumerate();
        each.map(|(number, (request, into))| self.read(request, into).map(move |end| (number, end)))
            .collect::<FuturesUnordered<_>>()
            .boxed()
    }
}

#[cfg(test)]
mod tests;
