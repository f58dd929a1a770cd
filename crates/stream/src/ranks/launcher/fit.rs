//! Division of a volume such that each rank's share fits its memory.

use array::Result;
use compose::{Balance, KdTree};

use super::share::ShareDemand;
use crate::viewer::view_plan::ViewPlan;

/// Attempts with coarser levels if shares do not fit the memory of one rank.
const ATTEMPTS: u32 = 8;

/// Divides the volume for the picture of a view plan, or keeps the `known` tree if its shares fit; demands
/// coarser levels as long as a share does not fit one rank's memory, since shares have equal work, not equal
/// numbers of blocks. Blocks the thread.
///
/// # Errors
/// Those of [`Balance::cut`] and [`render::demand`].
pub(crate) fn fit(
    view_plan: &mut ViewPlan,
    ranks: usize,
    balance: &mut Balance,
    known: Option<KdTree>,
) -> Result<KdTree> {
    let drawable = view_plan.subscription.drawable();
    let mut known = known;
    for attempt in 1.. {
        let (tree, is_known) = match known.take() {
            Some(tree) => (tree, true),
            None => {
                (drawable.cut(balance, &view_plan.scene(&view_plan.view)?, &view_plan.demand, ranks)?, false)
            }
        };
        let [own_bytes, color_by_bytes] = largest_share(view_plan, &tree)?;
        let [own_fits, color_by_fits] =
            [own_bytes, color_by_bytes].map(|bytes| bytes <= view_plan.share_bytes);
        if own_fits && color_by_fits || attempt == ATTEMPTS {
            return Ok(tree);
        }
        if let Some(color_by) = view_plan.color_by.as_ref().filter(|_| !color_by_fits) {
            let bytes = color_by.demand.pool_bytes.min(color_by.most_bytes);
            view_plan.demand_color_by_within(affordable(bytes, view_plan.share_bytes, color_by_bytes))?;
        }
        if own_fits {
            known = Some(tree);
        } else if !is_known {
            // The known tree may be of another view: divide anew before demanding coarser levels.
            let bytes = view_plan.demand.pool_bytes.min(view_plan.most_bytes);
            view_plan.demand_within(affordable(bytes, view_plan.share_bytes, own_bytes))?;
        }
    }
    unreachable!("the last attempt returns")
}

/// Returns the bytes that all ranks can have together, if the largest share of `bytes` takes `largest` and
/// may take `share`.
fn affordable(bytes: usize, share: usize, largest: usize) -> usize {
    let all = bytes as u128 * share as u128 / largest.max(1) as u128;
    usize::try_from(all).unwrap_or(usize::MAX)
}

/// Returns the largest memory that one rank needs for the blocks of its share, bytes: for the array shown,
/// and for the one that gives the colors.
fn largest_share(view_plan: &ViewPlan, tree: &KdTree) -> Result<[usize; 2]> {
    (0..tree.ranks()).try_fold([0; 2], |[own, color_by], rank| {
        let [other, other_color_by] = ShareDemand::of(view_plan, tree, rank)?.pool_bytes();
        Ok([own.max(other), color_by.max(other_color_by)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_affordable_memory_is_in_proportion_to_the_largest_share() {
        assert_eq!(affordable(100, 50, 60), 83);
        assert_eq!(affordable(100, 50, 0), 5000);
        assert_eq!(affordable(usize::MAX, usize::MAX, 1), usize::MAX);
        assert_eq!(affordable(usize::MAX, usize::MAX / 2, usize::MAX), usize::MAX / 2);
    }
}
