//! Fidelity badge: what a picture shows and what it lacks, as fields and as one sentence for users.
//!
//! This module counts nothing itself: it describes the counts of other modules. Strided samples are always named as such.

use array::{LevelOrigin, WorkProgress};
use session::{FidelityBadge, FidelityLimit, FidelityState};

use crate::loading::loader::FailedBlocks;
use crate::loading::regrid::resampling;
use crate::viewer::view_plan::ViewPlan;

/// Facts about a picture, from which its fidelity badge is made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PictureFacts {
    /// Finest level that covers all that is drawn; `None` before the first block.
    pub(crate) level_drawn: Option<u8>,
    /// True if something visible is not drawn, because no level has its block yet.
    pub(crate) has_gaps: bool,
    /// True if the picture shows the wanted level wherever the source has it.
    pub(crate) is_whole: bool,
    pub(crate) level_wanted: u8,
    /// Number of levels of the array.
    pub(crate) levels: usize,
    /// Origin of the values of the level drawn.
    pub(crate) origin: LevelOrigin,
    /// Level with the resolution of the one drawn that is not sampled.
    pub(crate) as_fine_as: u8,
    pub(crate) limit: FidelityLimit,
    /// True if the view requests its level by number.
    pub(crate) is_forced: bool,
    pub(crate) blocks_present: u64,
    pub(crate) blocks_total: u64,
    pub(crate) failed_blocks: FailedBlocks,
    /// Blocks of generated levels, while some are being generated.
    pub(crate) levels_made: Option<WorkProgress>,
    /// Bytes of a compressed file that have been indexed, while it is being indexed.
    pub(crate) indexed: Option<WorkProgress>,
    pub(crate) is_moving: bool,
    /// True if drawn and encoded without loss, at full resolution and quality.
    pub(crate) is_lossless: bool,
    /// True when the window has more pixels than pictures may have.
    pub(crate) is_enlarged: bool,
    /// Memory for blocks of this view, bytes.
    pub(crate) memory_bytes: u64,
    /// Level and number of levels of the array that gives the colors, if its level is limited by memory.
    pub(crate) coarse_colors: Option<(u8, usize)>,
    /// True if the wanted level of that array is sampled.
    pub(crate) sampled_colors: bool,
    /// How values are resampled for drawing, if they are; part of a sentence.
    pub(crate) resampling: Option<String>,
    /// Number of layers of geometry that are still coming.
    pub(crate) arriving_layers: usize,
}

impl PictureFacts {
    /// Collects the facts of a view plan from the number of its missing blocks, the failures, and the
    /// fidelity of the last picture.
    pub(crate) fn of(
        view_plan: &ViewPlan,
        (lacking, failed_blocks): (u64, FailedBlocks),
        picture: Option<render::Fidelity>,
    ) -> Self {
        let blocks_total = view_plan.blocks_total();
        let facts = Self {
            level_drawn: None,
            has_gaps: false,
            is_whole: false,
            level_wanted: view_plan.demand.wanted,
            levels: view_plan.subscription.volume.view.levels.len(),
            origin: LevelOrigin::Stored,
            as_fine_as: view_plan.demand.wanted,
            limit: match view_plan.demand.limit {
                render::LevelLimit::Screen => FidelityLimit::Screen,
                render::LevelLimit::Memory => FidelityLimit::Memory,
                render::LevelLimit::Finest => FidelityLimit::Finest,
            },
            is_forced: view_plan.view.level == Some(view_plan.demand.wanted),
            blocks_present: blocks_total.saturating_sub(lacking),
            blocks_total,
            failed_blocks,
            levels_made: None,
            indexed: None,
            is_moving: false,
            is_lossless: false,
            is_enlarged: false,
            memory_bytes: view_plan.share_bytes as u64,
            coarse_colors: coarse_colors(view_plan),
            sampled_colors: has_sampled_colors(view_plan),
            resampling: view_plan
                .dataset
                .find(&view_plan.view.array)
                .ok()
                .and_then(|(_, array)| resampling(array)),
            arriving_layers: 0,
        };
        facts.showing(view_plan, picture)
    }

    /// Replaces the facts that depend on the picture by the fidelity of a drawn `picture`.
    pub(crate) fn showing(mut self, view_plan: &ViewPlan, picture: Option<render::Fidelity>) -> Self {
        self.is_whole = picture.is_some_and(|p| p.is_complete());
        self.has_gaps = !self.is_whole && picture.is_some_and(|p| p.share_uncovered > 0.0);
        // Where the source does not have the wanted level, its ancestor is the best there is.
        let level = picture.and_then(|p| if self.is_whole { Some(p.wanted_level) } else { p.coarsest_shown });
        let drawn = level.unwrap_or(self.level_wanted);
        let levels = &view_plan.subscription.volume.view.levels;
        self.level_drawn = level;
        if let Some(found) = levels.iter().find(|l| l.number == drawn) {
            self.origin = found.origin;
            // Of two levels with the same resolution the sampled one comes last.
            let twin = levels.iter().find(|l| l.factor.abs_diff_eq(found.factor, 1e-6));
            self.as_fine_as = twin.map_or(drawn, |l| l.number);
        }
        self
    }

    /// Returns true if every wanted block is loaded.
    pub(crate) fn is_complete(&self) -> bool {
        self.blocks_present >= self.blocks_total
    }

    /// Returns true if no further block will arrive.
    pub(crate) fn is_settled(&self) -> bool {
        self.blocks_present + self.failed_blocks.failed >= self.blocks_total
    }

    fn state(&self) -> FidelityState {
        if self.is_moving {
            FidelityState::Moving
        } else if self.is_complete() && !self.has_gaps && self.arriving_layers == 0 {
            FidelityState::Complete
        } else if self.is_settled() && !self.is_complete() {
            FidelityState::Failed
        } else {
            FidelityState::Loading
        }
    }

    /// Returns the finest level that covers everything; for a picture in which nothing is visible the wanted
    /// level, once it is loaded.
    fn level_shown(&self) -> Option<u8> {
        let level = self.level_drawn.or_else(|| self.is_complete().then_some(self.level_wanted));
        level.filter(|_| !self.has_gaps)
    }

    /// Returns the badge.
    pub(crate) fn fidelity(&self) -> FidelityBadge {
        FidelityBadge {
            level_shown: self.level_shown(),
            level_wanted: self.level_wanted,
            origin: self.origin,
            limit: self.limit,
            blocks_present: self.blocks_present,
            blocks_total: self.blocks_total,
            state: self.state(),
            exact: self.is_lossless
                && !self.is_enlarged
                && self.is_whole
                && self.is_complete()
                && self.arriving_layers == 0
                && !self.is_moving,
            levels_made: self.levels_made.map(|share| [share.done, share.total].map(shown_number)),
            resampled: self.resampling.is_some(),
            text: self.sentence(),
        }
    }

    fn sentence(&self) -> String {
        let mut text = match self.state() {
            FidelityState::Complete => self.complete(),
            FidelityState::Loading => self.loading(),
            FidelityState::Moving => self.moving(),
            FidelityState::Failed => self.failed(),
        };
        if self.has_gaps {
            text.push_str("; parts of the visible volume are not shown yet");
        }
        match self.arriving_layers {
            0 => {}
            1 => text.push_str("; a layer of geometry is still being fetched"),
            layers => text.push_str(&format!("; {layers} layers of geometry are still being fetched")),
        }
        match self.origin {
            _ if self.level_drawn.is_none() => {}
            LevelOrigin::Sampled => text.push_str("; preview of single voxels, not of means"),
            LevelOrigin::Corners => text.push_str("; preview of the corners of blocks only"),
            LevelOrigin::Stored | LevelOrigin::Mean | LevelOrigin::Mode => {}
        }
        if let Some(resampling) = self.resampling.as_ref().filter(|_| self.level_drawn.is_some()) {
            text.push_str(&format!("; {resampling}"));
        }
        if self.is_enlarged {
            text.push_str("; enlarged, because the window has more pixels than a picture may have");
        }
        if let Some((level, levels)) = self.coarse_colors {
            text.push_str(&format!("; colors are limited by memory: level {level} of {}", span_of(levels)));
        }
        if self.sampled_colors {
            text.push_str("; colors are those of single voxels, not of means");
        }
        text.push('.');
        text
    }

    fn complete(&self) -> String {
        if self.blocks_total == 0 {
            return "No part of the volume is in view".into();
        }
        let wanted = self.level_wanted;
        match self.limit {
            FidelityLimit::Finest | FidelityLimit::Screen if self.is_forced => {
                format!("Complete at the requested level {wanted} of {}", self.span())
            }
            FidelityLimit::Finest => "Complete at full resolution".into(),
            FidelityLimit::Screen => {
                format!(
                    "Complete at the resolution of the screen (level {wanted} of {}); zoom in for more detail",
                    self.span()
                )
            }
            FidelityLimit::Memory => format!("{}; waiting will not help", self.by_memory("Limited")),
        }
    }

    fn loading(&self) -> String {
        let counts = format!("{} of {} blocks are loaded", self.blocks_present, self.blocks_total);
        let progress = match self.level_drawn {
            None => format!("Loading: {counts}"),
            Some(_) if self.origin == LevelOrigin::Sampled && self.as_fine_as == self.level_wanted => {
                format!(
                    "Loading: {counts}, samples are shown until the means of level {} are made",
                    self.level_wanted
                )
            }
            Some(_) if self.origin == LevelOrigin::Sampled => {
                format!(
                    "Loading: {counts}, samples of level {} are shown instead of level {}",
                    self.as_fine_as, self.level_wanted
                )
            }
            Some(shown) if shown != self.level_wanted => {
                format!("Loading: {counts}, level {shown} is shown instead of level {}", self.level_wanted)
            }
            Some(_) => format!("Loading: {counts}"),
        };
        let progress = match self.indexed {
            Some(WorkProgress { done, total }) if total > 0 => {
                format!("{progress}; the compressed file is being indexed, once ({} %)", done * 100 / total)
            }
            _ => progress,
        };
        let mut text = match &self.failed_blocks.reason {
            Some(reason) if self.failed_blocks.retrying > 0 => {
                format!("{progress}; {} are retried ({reason})", self.failed_blocks.retrying)
            }
            _ => format!("{progress}; waiting will help"),
        };
        if self.failed_blocks.failed > 0 {
            text.push_str(&format!("; {} cannot be loaded", self.failed_blocks.failed));
        }
        if self.limit == FidelityLimit::Memory {
            text.push_str(&format!("; {}", self.by_memory("limited")));
        }
        text
    }

    fn moving(&self) -> String {
        let counts = format!("{} of {} blocks are loaded", self.blocks_present, self.blocks_total);
        format!("Moving: {counts}; it becomes sharp when the view stops changing")
    }

    fn failed(&self) -> String {
        let reason =
            self.failed_blocks.reason.as_ref().map_or_else(|| "no reason given".into(), ToString::to_string);
        let outlook = match self.failed_blocks.given_up {
            0 => "they are requested again at intervals",
            n if n < self.failed_blocks.failed => "some of them are requested again at intervals",
            _ => "waiting will not help",
        };
        format!(
            "{} of {} blocks cannot be loaded ({reason}); {outlook}",
            self.blocks_total - self.blocks_present,
            self.blocks_total
        )
    }

    fn by_memory(&self, limited: &str) -> String {
        let memory = memory_text(self.memory_bytes);
        format!("{limited} by memory: level {} of {} fits {memory}", self.level_wanted, self.span())
    }

    /// Returns the range of levels: `0 to 6`.
    fn span(&self) -> String {
        span_of(self.levels)
    }
}

fn span_of(levels: usize) -> String {
    format!("0 to {}", levels.saturating_sub(1))
}

/// Computes [`PictureFacts::sampled_colors`].
fn has_sampled_colors(view_plan: &ViewPlan) -> bool {
    view_plan.color_by_demand().is_some_and(|(volume, demand)| {
        volume.levels.iter().any(|l| l.number == demand.wanted && l.origin.is_quick_look())
    })
}

/// Computes [`PictureFacts::coarse_colors`].
fn coarse_colors(view_plan: &ViewPlan) -> Option<(u8, usize)> {
    let (volume, demand) = view_plan.color_by_demand()?;
    (demand.limit == render::LevelLimit::Memory).then(|| (demand.wanted, volume.levels.len()))
}

fn shown_number(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Formats a size in binary units: `512 MiB`.
fn memory_text(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = UNITS.into_iter().find(|(_, size)| bytes >= *size);
    unit.map_or_else(|| format!("{bytes} bytes"), |(name, size)| format!("{} {name}", bytes / size))
}

#[cfg(test)]
mod tests {
    use array::Error;

    use super::*;

    fn facts() -> PictureFacts {
        PictureFacts {
            level_drawn: Some(3),
            has_gaps: false,
            is_whole: false,
            level_wanted: 1,
            levels: 7,
            origin: LevelOrigin::Mean,
            as_fine_as: 3,
            limit: FidelityLimit::Screen,
            is_forced: false,
            blocks_present: 12,
            blocks_total: 80,
            failed_blocks: FailedBlocks::default(),
            levels_made: None,
            indexed: None,
            is_moving: false,
            is_lossless: false,
            is_enlarged: false,
            memory_bytes: 512 << 20,
            coarse_colors: None,
            sampled_colors: false,
            resampling: None,
            arriving_layers: 0,
        }
    }

    fn complete() -> PictureFacts {
        PictureFacts { level_drawn: Some(1), is_whole: true, blocks_present: 80, ..facts() }
    }

    fn check(facts: &PictureFacts, state: FidelityState, text: &str) {
        let fidelity = facts.fidelity();
        assert_eq!((fidelity.state, fidelity.text.as_str()), (state, text));
    }

    #[test]
    fn a_picture_without_anything_visible_does_not_claim_the_wanted_level() {
        let empty = PictureFacts { level_drawn: None, ..facts() };
        assert_eq!(empty.fidelity().level_shown, None);
        assert_eq!(PictureFacts { level_drawn: None, ..complete() }.fidelity().level_shown, Some(1));
    }

    #[test]
    fn a_picture_with_gaps_shows_no_level_and_is_not_complete() {
        let first = PictureFacts { level_drawn: Some(1), has_gaps: true, ..facts() };
        assert_eq!((first.fidelity().level_shown, first.fidelity().level_wanted), (None, 1));
        check(
            &first,
            FidelityState::Loading,
            "Loading: 12 of 80 blocks are loaded; waiting will help; parts of the visible volume are not shown yet.",
        );
        let all_came_since = PictureFacts { blocks_present: 80, is_lossless: true, ..first };
        assert_eq!(
            (all_came_since.fidelity().state, all_came_since.fidelity().exact),
            (FidelityState::Loading, false)
        );
    }

    #[test]
    fn a_picture_that_lacks_geometry_is_not_complete() {
        let lacking = PictureFacts { arriving_layers: 1, is_lossless: true, ..complete() };
        check(
            &lacking,
            FidelityState::Loading,
            "Loading: 80 of 80 blocks are loaded; waiting will help; a layer of geometry is still being fetched.",
        );
        assert!(!lacking.fidelity().exact);
        assert!(PictureFacts { arriving_layers: 0, ..lacking }.fidelity().exact);
    }

    #[test]
    fn the_sentence_names_what_is_missing_why_and_whether_waiting_helps() {
        check(
            &facts(),
            FidelityState::Loading,
            "Loading: 12 of 80 blocks are loaded, level 3 is shown instead of level 1; waiting will help.",
        );
        check(
            &PictureFacts { level_drawn: None, blocks_present: 0, ..facts() },
            FidelityState::Loading,
            "Loading: 0 of 80 blocks are loaded; waiting will help.",
        );
        check(
            &complete(),
            FidelityState::Complete,
            "Complete at the resolution of the screen (level 1 of 0 to 6); zoom in for more detail.",
        );
        check(
            &PictureFacts { limit: FidelityLimit::Finest, ..complete() },
            FidelityState::Complete,
            "Complete at full resolution.",
        );
        check(
            &PictureFacts { limit: FidelityLimit::Memory, ..complete() },
            FidelityState::Complete,
            "Limited by memory: level 1 of 0 to 6 fits 512 MiB; waiting will not help.",
        );
        check(
            &PictureFacts { limit: FidelityLimit::Memory, level_drawn: None, ..facts() },
            FidelityState::Loading,
            "Loading: 12 of 80 blocks are loaded; waiting will help; limited by memory: level 1 of 0 to 6 fits 512 MiB.",
        );
        check(
            &PictureFacts { limit: FidelityLimit::Finest, coarse_colors: Some((2, 5)), ..complete() },
            FidelityState::Complete,
            "Complete at full resolution; colors are limited by memory: level 2 of 0 to 4.",
        );
        check(
            &PictureFacts { is_forced: true, ..complete() },
            FidelityState::Complete,
            "Complete at the requested level 1 of 0 to 6.",
        );
        check(
            &PictureFacts { is_moving: true, ..facts() },
            FidelityState::Moving,
            "Moving: 12 of 80 blocks are loaded; it becomes sharp when the view stops changing.",
        );
        check(
            &PictureFacts { blocks_present: 0, blocks_total: 0, ..facts() },
            FidelityState::Complete,
            "No part of the volume is in view.",
        );
    }

    #[test]
    fn resampled_values_are_not_called_complete_without_a_word() {
        let mut array =
            array::conformance::one_array("<f4".parse().unwrap(), &[4, 5], &[4, 5]).arrays.remove(0);
        assert_eq!(resampling(&array), None);
        array.notes = vec![
            "curvilinear grid: drawn at its true latitudes and longitudes on an even grid of 9 x 9; 7 % of its cells are \
             narrower than that and not drawn"
                .into(),
        ];
        let badge =
            PictureFacts { limit: FidelityLimit::Finest, resampling: resampling(&array), ..complete() };
        assert!(badge.fidelity().resampled);
        check(
            &badge,
            FidelityState::Complete,
            "Complete at full resolution; each voxel of an even grid has the value of the cell at its center; \
             7 % of its cells are narrower than that and not drawn.",
        );
        let empty = PictureFacts { blocks_present: 0, blocks_total: 0, level_drawn: None, ..badge };
        check(&empty, FidelityState::Complete, "No part of the volume is in view.");
    }

    #[test]
    fn failures_are_counted_with_their_reason() {
        let reason = Some(Error::corrupt("bad checksum"));
        let retrying = FailedBlocks { retrying: 2, reason: reason.clone(), ..FailedBlocks::default() };
        check(
            &PictureFacts { failed_blocks: retrying, level_drawn: Some(1), ..facts() },
            FidelityState::Loading,
            "Loading: 12 of 80 blocks are loaded; 2 are retried (bad checksum).",
        );
        let unreachable =
            FailedBlocks { failed: 3, given_up: 0, reason: reason.clone(), ..FailedBlocks::default() };
        check(
            &PictureFacts { failed_blocks: unreachable, blocks_present: 77, ..facts() },
            FidelityState::Failed,
            "3 of 80 blocks cannot be loaded (bad checksum); they are requested again at intervals.",
        );
        let failed = FailedBlocks { failed: 3, given_up: 3, reason, ..FailedBlocks::default() };
        check(
            &PictureFacts { failed_blocks: failed, blocks_present: 77, ..facts() },
            FidelityState::Failed,
            "3 of 80 blocks cannot be loaded (bad checksum); waiting will not help.",
        );
    }

    #[test]
    fn progress_of_long_work_is_shown() {
        let share = Some(WorkProgress { done: 30, total: 120 });
        assert_eq!(PictureFacts { levels_made: share, ..facts() }.fidelity().levels_made, Some([30, 120]));
        check(
            &PictureFacts { indexed: share, level_drawn: None, blocks_present: 0, ..facts() },
            FidelityState::Loading,
            "Loading: 0 of 80 blocks are loaded; the compressed file is being indexed, once (25 %); waiting will help.",
        );
    }

    #[test]
    fn samples_are_called_samples() {
        let text = PictureFacts { origin: LevelOrigin::Sampled, ..complete() }.fidelity().text;
        assert!(text.ends_with("preview of single voxels, not of means."), "{text}");
        let text =
            PictureFacts { level_drawn: Some(4), origin: LevelOrigin::Corners, ..facts() }.fidelity().text;
        assert!(text.ends_with("; preview of the corners of blocks only."), "{text}");
        let coarse =
            PictureFacts { level_drawn: Some(9), as_fine_as: 3, origin: LevelOrigin::Sampled, ..facts() };
        let text = coarse.fidelity().text;
        assert!(
            text.contains("12 of 80 blocks are loaded, samples of level 3 are shown instead of level 1;"),
            "{text}"
        );
        let text = PictureFacts { as_fine_as: 1, ..coarse }.fidelity().text;
        assert!(
            text.contains("samples are shown until the means of level 1 are made; waiting will help"),
            "{text}"
        );
    }

    #[test]
    fn only_a_complete_lossless_picture_is_exact() {
        assert!(!complete().fidelity().exact);
        assert!(PictureFacts { is_lossless: true, ..complete() }.fidelity().exact);
        assert!(!PictureFacts { is_lossless: true, ..facts() }.fidelity().exact);
        let cast_too_early = PictureFacts { is_lossless: true, is_whole: false, ..complete() };
        assert!(
            !cast_too_early.fidelity().exact,
            "blocks that arrived after the cast are not in the picture"
        );
        assert!(!PictureFacts { is_lossless: true, is_moving: true, ..complete() }.fidelity().exact);
        let enlarged = PictureFacts { is_lossless: true, is_enlarged: true, ..complete() }.fidelity();
        assert!(!enlarged.exact && enlarged.text.contains("enlarged"), "{}", enlarged.text);
    }

    #[test]
    fn sizes_are_readable() {
        assert_eq!(memory_text(512 << 20), "512 MiB");
        assert_eq!(memory_text(3 << 30), "3 GiB");
        assert_eq!(memory_text(100), "100 bytes");
    }
}
