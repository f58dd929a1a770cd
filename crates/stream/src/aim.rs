//! Aiming: from a view to the blocks that its picture wants, within one participant's share of memory.

use std::sync::Arc;

use array::{Priority, Result};
use render::{Bounds, Camera, Demand, Demanded, ImageSize, Limit, VolumeView};
use session::{ParticipantId, View};

use crate::host::Host;
use crate::picture::{camera_of, clip_of, volume_of};
use crate::volume::Watching;

/// What the pool adds to a block's own bytes, as a share and as a sum: aprons, ranges, book-keeping.
const POOL_OVERHEAD: (usize, usize) = (4, 2048);
/// Most blocks of a level that is forced.
const MAX_FORCED_BLOCKS: u64 = 1 << 18;

/// A view made ready for drawing.
pub(crate) struct Aim {
    pub(crate) view: Arc<View>,
    pub(crate) size: ImageSize,
    /// What this participant may spend, bytes.
    pub(crate) share_bytes: usize,
    pub(crate) watching: Watching,
    pub(crate) demand: Arc<Demand>,
    pub(crate) camera: Camera,
    pub(crate) clip: Option<Bounds>,
}

impl Aim {
    /// Aims `who` at `view` and wishes for what is lacking; `old` is what they looked at so far. Blocks the thread.
    ///
    /// # Errors
    /// When the view does not fit the data set.
    pub(crate) fn new(
        host: &Host,
        who: ParticipantId,
        view: Arc<View>,
        size: ImageSize,
        old: Option<Self>,
    ) -> Result<Self> {
        let volume = volume_of(&view, &host.dataset)?;
        let camera = camera_of(&view, &volume)?;
        let clip = clip_of(&view, &volume);
        let watching = match old.map(|aim| aim.watching) {
            Some(same) if *same.volume.view == *volume => same,
            // The old guard is dropped after the new one is there: others see no change in between.
            _other => host.volumes.look(who, Arc::clone(&volume))?,
        };
        let share_bytes = host.volumes.share_out();
        let demand = demand(&volume, view.level, &camera, size, clip.as_ref(), share_bytes)?;
        let demand = Arc::new(demand);
        host.feed.wish(who, || watching.want(&demand));
        Ok(Self { view, size, share_bytes, watching, demand, camera, clip })
    }

    /// True when this is still the right aim for another view and size: the same blocks from the same place.
    pub(crate) fn serves(&self, view: &View, size: ImageSize) -> bool {
        let old = &*self.view;
        self.size == size
            && (&old.array, old.time, &old.at, old.level) == (&view.array, view.time, &view.at, view.level)
            && (&old.camera, &old.clip) == (&view.camera, &view.clip)
    }
}

/// What a picture wants; a forced level wins over what the screen could show, but not over memory.
fn demand(
    volume: &VolumeView,
    forced: Option<u8>,
    camera: &Camera,
    size: ImageSize,
    clip: Option<&Bounds>,
    max_bytes: usize,
) -> Result<Demand> {
    let automatic = render::demand(volume, camera, size, clip, max_bytes)?;
    let Some(forced) = forced.filter(|&level| level != automatic.wanted) else { return Ok(automatic) };
    let rank = volume.rank_of(forced)?;
    let coarsest = volume.levels.len() - 1;
    let steps = if rank == coarsest { vec![rank] } else { vec![coarsest, rank] };
    let Some(pool_bytes) = steps.iter().try_fold(0usize, |sum, &r| sum.checked_add(cost(volume, r)?)) else {
        return Ok(Demand { limit: Limit::Memory, ..automatic });
    };
    if pool_bytes > max_bytes {
        return Ok(Demand { limit: Limit::Memory, ..automatic });
    }
    let tiers = [Priority::INTERACTIVE, Priority::NORMAL];
    let blocks = steps.iter().zip(tiers).flat_map(|(&rank, priority)| {
        let [nz, ny, nx] = volume.levels[rank].grid;
        let places = (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [z, y, x])));
        places.map(move |at| Demanded { key: volume.key(rank, at), priority })
    });
    let limit = if rank == 0 { Limit::Finest } else { Limit::Screen };
    Ok(Demand { wanted: forced, limit, blocks: blocks.collect(), pool_bytes })
}

/// What all blocks of a rank cost in the pool at most, bytes; `None` when they are too many.
fn cost(volume: &VolumeView, rank: usize) -> Option<usize> {
    let level = &volume.levels[rank];
    let count =
        level.grid.iter().try_fold(1u64, |n, &g| n.checked_mul(g)).filter(|&n| n <= MAX_FORCED_BLOCKS)?;
    let bytes = usize::try_from(level.size_bytes(volume.dtype)).ok()?;
    let (share, each) = POOL_OVERHEAD;
    bytes.checked_add(bytes / share)?.checked_add(usize::try_from(count).ok()?.checked_mul(each)?)
}
