//! Transition at the beginning of a block beside a coarser one: over the block's first voxel, the coarser
//! level's values are blended into its own, so that the border is invisible.
//!
//! Only needed while blocks are missing that the picture wants, so it is written to be short, not fast. At a
//! block's upper faces the ghost voxels do the same (`ghost.rs`). Labels are not interpolated and do not fade.

use glam::{BVec3, DVec3};

use crate::blocks::BlockTable;
use crate::blocks::resident::Resident;
use crate::blocks::voxel::Voxel;
use crate::scene::frustum::Frustum;

/// Axes x, y, z along which a block begins beside a coarser one.
pub(crate) type Fade = BVec3;

/// Extent of the transition, voxels.
pub(crate) const REACH: f64 = 1.0;

impl<T: Voxel> BlockTable<T> {
    /// Returns the axes along which a block has no lower neighbor of its own level, although the volume
    /// continues there within the visible part.
    pub(crate) fn fade_of(&self, block: &Resident<T>, frustum: &Frustum) -> Fade {
        let coarser = block.level_index + 1..self.view.levels.len();
        // Labels are not interpolated: their borders are meant to be sharp.
        if !self.view.meaning.is_continuous()
            || !coarser.clone().any(|level_index| self.count_at(level_index) > 0)
        {
            return Fade::FALSE;
        }
        let begins_alone = |axis: usize| {
            let mut lower = block.at;
            block.at[axis].checked_sub(1).is_some_and(|before| {
                lower[axis] = before;
                let level = &self.view.levels[block.level_index];
                let is_missing = self.slot_of(block.level_index, lower).is_none();
                is_missing && frustum.part_seen(level, lower, lower.map(|n| n + 1)).is_some()
            })
        };
        Fade::new(begins_alone(2), begins_alone(1), begins_alone(0))
    }

    /// Returns the value of one sample in the transition: at `local` in the block's voxels, `volume` in
    /// volume space; `None` if some of it is missing.
    pub(crate) fn faded(&self, block: &Resident<T>, fade: Fade, local: DVec3, volume: DVec3) -> Option<f64> {
        let own = block.value_at(local, &self.missing)?;
        let share = DVec3::select(fade, local / REACH, DVec3::ONE).min_element().clamp(0.0, 1.0);
        let coarser = self.coarser_value(block.level_index + 1, volume);
        Some(coarser.map_or(own, |coarser| coarser + (own - coarser) * share))
    }

    /// Returns the value at a volume position in the finest resident level from `level_index` on; `None` if
    /// some of it is missing.
    fn coarser_value(&self, level_index: usize, volume: DVec3) -> Option<f64> {
        let (_, block, local) = self.finest_from(level_index, volume)?;
        block.value_at(local, &self.missing)
    }
}

/// True for positions in a block's voxels that lie in the transition.
pub(crate) fn holds(fade: Fade, local: DVec3) -> bool {
    (fade & local.cmplt(DVec3::splat(REACH))).any()
}

/// Returns the samples of `0..count` from `local` on that lie outside the transition: those before begin in
/// it, those behind end in it.
#[expect(clippy::cast_possible_truncation, reason = "clamped to the count")]
pub(crate) fn outside(fade: Fade, local: DVec3, step: DVec3, count: i64) -> std::ops::Range<i64> {
    let (mut first, mut end) = (0.0f64, count as f64);
    for axis in (0..3).filter(|&axis| fade.test(axis)) {
        let at = (REACH - local[axis]) / step[axis];
        match step[axis] {
            along if along > 0.0 => first = first.max(at.ceil()),
            along if along < 0.0 => end = end.min(at.floor() + 1.0),
            // Completely beside the transition or in it.
            _ if local[axis] < REACH => first = count as f64,
            _ => {}
        }
    }
    let first = first.clamp(0.0, count as f64);
    first as i64..end.clamp(first, count as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_is_one_run_of_samples() {
        let x = Fade::new(true, false, false);
        let xy = Fade::new(true, true, false);
        let at = DVec3::new(0.25, 7.5, 3.0);
        let step = |x: f64, y: f64| DVec3::new(x, y, 0.5);
        for (fade, step, expected) in [
            (Fade::FALSE, step(0.5, 0.0), 0..20),
            (x, step(0.5, 0.0), 2..20),
            (x, step(-0.5, 0.0), 20..20),
            (x, step(0.0, 0.5), 20..20),
            (xy, step(0.5, -0.5), 2..14),
            (xy, step(0.01, -0.5), 20..20),
        ] {
            let found = outside(fade, at, step, 20);
            if found.is_empty() {
                assert!(expected.is_empty(), "{fade} {step}");
                continue;
            }
            assert_eq!(found, expected, "{fade} {step}");
            for i in 0..20 {
                let p = at + step * f64::from(i);
                let is_inside = DVec3::select(fade, p, DVec3::splat(9.0)).min_element() < REACH;
                assert_eq!(found.contains(&i64::from(i)), !is_inside, "{i} of {fade} {step}");
            }
        }
    }
}
