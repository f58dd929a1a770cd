//! Blocks that each rank fetches for a picture: its share, also of the array that gives the colors; and the
//! blocks that rank 0 fetches first.

use std::collections::BTreeSet;
use std::sync::Arc;

use array::{BlockKey, Result};
use compose::KdTree;
use render::{Demand, Demanded, VolumeView};
use session::ParticipantId;

use crate::viewer::shared::SharedState;
use crate::viewer::view_plan::ViewPlan;

/// Share of a rank in the demand of a picture.
pub(crate) struct ShareDemand {
    own: Demand,
    /// Share of the array that gives the colors.
    color_by: Option<Demand>,
}

impl ShareDemand {
    /// # Errors
    /// `Invalid` for an invalid transfer function.
    pub(crate) fn of(view_plan: &ViewPlan, tree: &KdTree, rank: usize) -> Result<Self> {
        let (scene, share) = (view_plan.scene(&view_plan.view)?, tree.share(rank));
        let color_by =
            view_plan.color_by.as_ref().map(|color_by| share.demand_of_color_by(&scene, &color_by.demand));
        Ok(Self { own: share.demand(&scene, &view_plan.demand), color_by })
    }

    /// Returns rank 0's demand: its share, and the whole coarsest level if that fits, by which it chooses a
    /// transfer function and colors and estimates the work of all ranks.
    ///
    /// # Errors
    /// Those of [`ShareDemand::of`].
    pub(crate) fn first(view_plan: &ViewPlan, tree: &KdTree) -> Result<Self> {
        let Self { own, color_by } = Self::of(view_plan, tree, 0)?;
        let wider = |view: &VolumeView, whole: &Demand, own: Demand| {
            let is_own: BTreeSet<BlockKey> = own.blocks.iter().map(|block| block.key).collect();
            let is_coarsest = coarsest(view, whole);
            let wider = some_of(view, whole, |block| is_own.contains(&block.key) || is_coarsest(block));
            if wider.pool_bytes <= view_plan.share_bytes { wider } else { own }
        };
        let own = wider(&view_plan.subscription.volume.view, &view_plan.demand, own);
        let color_by =
            view_plan.color_by_demand().zip(color_by).map(|((view, whole), own)| wider(view, whole, own));
        Ok(Self { own, color_by })
    }

    /// Returns the number of blocks.
    pub(crate) fn blocks(&self) -> u64 {
        (self.own.blocks.len() + self.color_by.as_ref().map_or(0, |color_by| color_by.blocks.len())) as u64
    }

    /// Returns the most memory that it takes in a pool, bytes, for the array shown and for the one that gives
    /// the colors.
    pub(crate) fn pool_bytes(&self) -> [usize; 2] {
        [self.own.pool_bytes, self.color_by.as_ref().map_or(0, |color_by| color_by.pool_bytes)]
    }

    /// Requests the missing blocks. Blocks the thread.
    pub(crate) fn request_blocks(self, shared: &SharedState, who: ParticipantId, view_plan: &ViewPlan) {
        let (own, color_by) = (Arc::new(self.own), self.color_by.map(Arc::new));
        shared.feed.request(who, || view_plan.subscription.set_demands(&own, color_by.as_ref(), &[]));
    }
}

/// Returns the demand of rank 0 before anything is loaded: as much of the coarsest level as its memory can
/// hold, also of the array that gives the colors.
pub(crate) fn coarsest_demand(view_plan: &ViewPlan) -> (Demand, Option<Demand>) {
    let coarsest_blocks = |view: &VolumeView, whole: &Demand| {
        let (is_coarsest, mut sum) = (coarsest(view, whole), 0);
        some_of(view, whole, |block| {
            let bytes = if is_coarsest(block) { view.pool_bytes(&block.key) } else { return false };
            sum += bytes;
            sum <= view_plan.share_bytes
        })
    };
    (
        coarsest_blocks(&view_plan.subscription.volume.view, &view_plan.demand),
        view_plan.color_by_demand().map(|(view, whole)| coarsest_blocks(view, whole)),
    )
}

/// Returns a predicate for blocks of the coarsest level of a demand.
fn coarsest(view: &VolumeView, whole: &Demand) -> impl Fn(&Demanded) -> bool {
    let rank = |block: &Demanded| view.level_index_of(block.key.level).unwrap_or(0);
    let coarsest = whole.blocks.iter().map(rank).max();
    move |block| Some(rank(block)) == coarsest
}

/// Returns the demand for the chosen blocks of a picture.
fn some_of(view: &VolumeView, whole: &Demand, mut is_chosen: impl FnMut(&Demanded) -> bool) -> Demand {
    let blocks: Vec<Demanded> = whole.blocks.iter().filter(|block| is_chosen(block)).copied().collect();
    let pool_bytes = blocks.iter().map(|block| view.pool_bytes(&block.key)).sum();
    Demand { blocks, pool_bytes, ..whole.clone() }
}
