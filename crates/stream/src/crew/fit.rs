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

/// Cuts the volume for the picture of an aim, or keeps a tree that is `known` where its shares fit, and has the aim demand a
/// coarser level as long as a share does not fit one rank's memory: shares have as much work, not as many blocks. Blocks the thread.
///
/// # Errors
/// Those of [`Balance::cut`] and [`render::demand`].
pub(crate) fn fit(aim: &mut Aim, ranks: usize, balance: &mut Balance, known: Option<Tree>) -> Result<Tree> {
    let transfer = aim.view.transfer.clone().unwrap_or_else(any_transfer);
    let volume = Arc::clone(&aim.watching.volume);
    let mut known = known;
    for attempt in 1.. {
        let scene = scene_of(aim, &transfer)?;
        let (tree, is_known) = match known.take() {
            Some(tree) => (tree, true),
            None => (volume.cut(balance, &scene, &aim.demand, ranks)?, false),
        };
        let largest_bytes = largest_share(aim, &scene, &tree);
        if largest_bytes <= aim.share_bytes || attempt == ATTEMPTS {
            return Ok(tree);
        }
        // Of a tree for another view that says nothing: it is cut anew first.
        if !is_known {
            let bytes = aim.demand.pool_bytes.min(aim.most_bytes);
            aim.demand_within(affordable(bytes, aim.share_bytes, largest_bytes))?;
        }
    }
    unreachable!("the last attempt returns")
}

/// How many of so many bytes all ranks can have together, where the largest share of them takes `largest` and may take `share`.
fn affordable(bytes: usize, share: usize, largest: usize) -> usize {
    let all = bytes as u128 * share as u128 / largest.max(1) as u128;
    usize::try_from(all).unwrap_or(usize::MAX)
}

/// What the blocks of the largest share take of one rank's memory, bytes.
fn largest_share(aim: &Aim, scene: &Scene, tree: &Tree) -> usize {
    let share_bytes = |rank| tree.share(rank).demand(scene, &aim.demand).pool_bytes;
    (0..tree.ranks()).map(share_bytes).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_can_have_is_in_proportion() {
        assert_eq!(affordable(100, 50, 60), 83);
        assert_eq!(affordable(100, 50, 0), 5000);
        assert_eq!(affordable(usize::MAX, usize::MAX, 1), usize::MAX);
        assert_eq!(affordable(usize::MAX, usize::MAX / 2, usize::MAX), usize::MAX / 2);
    }
}
