//! Cutting a volume so that each rank's share fits its memory.

use std::sync::Arc;

use array::Result;
use compose::{Balance, Tree};
use render::Scene;

use crate::aim::Aim;
use crate::film::scene_of;
use crate::picture::any_transfer;

/// How often a coarser level is tried because shares do not fit the memory of one rank.
const ATTEMPTS: u32 = 8;

/// Cuts the volume for the picture of an aim, or keeps a tree that is `known`, and has the aim demand a coarser level as long as
/// a share does not fit one rank's memory: shares have as much work, not as many blocks. Blocks the thread.
///
/// # Errors
/// Those of [`Balance::cut`] and [`render::demand`].
pub(crate) fn fit(aim: &mut Aim, ranks: usize, balance: &mut Balance, known: Option<Tree>) -> Result<Tree> {
    let transfer = aim.view.transfer.clone().unwrap_or_else(any_transfer);
    let volume = Arc::clone(&aim.watching.volume);
    let mut all_bytes = aim.share_bytes.saturating_mul(ranks);
    let mut known = known;
    for attempt in 1.. {
        let scene = scene_of(aim, &transfer)?;
        let tree = match known.take() {
            Some(tree) => tree,
            None => volume.cut(balance, &scene, &aim.demand, ranks)?,
        };
        let most_bytes = largest_share(aim, &scene, &tree);
        if most_bytes <= aim.share_bytes || attempt == ATTEMPTS {
            return Ok(tree);
        }
        all_bytes = aim.demand.pool_bytes.min(all_bytes) / most_bytes.max(1) * aim.share_bytes;
        let demand =
            render::demand(&volume.view, &aim.camera, aim.size, &aim.portion, aim.view.level, all_bytes)?;
        aim.demand = Arc::new(demand);
    }
    unreachable!("the last attempt returns")
}

/// What the blocks of the largest share take of one rank's memory, bytes.
fn largest_share(aim: &Aim, scene: &Scene, tree: &Tree) -> usize {
    let share_bytes = |rank| tree.share(rank).demand(scene, &aim.demand).pool_bytes;
    (0..tree.ranks()).map(share_bytes).max().unwrap_or(0)
}
