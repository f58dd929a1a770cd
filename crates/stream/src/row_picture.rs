//! Picture whose blocks are loaded and that is drawn in rows, from the top down, so that its size is not limited by memory.

use std::ops::Range;
use std::sync::Arc;

use array::Result;
use render::{Cancel, Image, ROW_UNIT, SampleTally, Scene};
use session::{FidelityBadge, ValueSummary};
use view::View;

use crate::film::drawn_facts;
use crate::loading::drawable::Drawable;
use crate::viewer::grid_boxes::GridBoxes;
use crate::viewer::shared::SharedState;
use crate::viewer::view_plan::ViewPlan;

/// Pixels that are drawn together: 8 MiB, so that a viewer's picture waits for a tenth of a second at most.
pub const BAND_PIXELS: u64 = 512 << 10;

/// Picture that is drawn in rows. The blocks that it is drawn from stay in memory until it is dropped.
pub struct RowPicture {
    shared: Arc<SharedState>,
    view_plan: ViewPlan,
    drawable: Drawable,
    view: View,
    scene: Scene,
    boxes: Arc<GridBoxes>,
    tally: SampleTally,
}

impl RowPicture {
    pub(crate) fn new(
        shared: Arc<SharedState>,
        view_plan: ViewPlan,
        view: View,
        scene: Scene,
        boxes: Arc<GridBoxes>,
    ) -> Self {
        let drawable = view_plan.subscription.drawable();
        Self { shared, view_plan, drawable, view, scene, boxes, tally: SampleTally::default() }
    }

    /// Returns the view with all omitted fields filled in.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Returns the rows to draw one after the other.
    pub fn bands(&self) -> impl Iterator<Item = Range<u32>> + use<> {
        let (height, rows) = (self.scene.size.height, rows_together(self.scene.size.width));
        (0..height).step_by(rows as usize).map(move |top| top..height.min(top + rows))
    }

    /// Draws rows, which begin at a multiple of [`ROW_UNIT`] as those of [`bands`](Self::bands) do. Blocks the thread.
    ///
    /// # Errors
    /// `Cancelled` if the flag was set; `Invalid` for rows that are not in the picture.
    pub fn draw(&mut self, rows: Range<u32>, cancel: &Cancel) -> Result<Image> {
        let painter = &self.shared.painter;
        let drawn = self.drawable.cast_rows(painter, &self.scene, self.view.stereo, rows, cancel)?;
        self.tally.add(&drawn.tally);
        Ok(drawn.image)
    }

    /// Returns the badge of the rows drawn so far, and statistics of the values that they show.
    ///
    /// # Errors
    /// `Invalid` if the level that was drawn is gone.
    pub fn facts(&self) -> Result<(FidelityBadge, Option<ValueSummary>)> {
        let drawn = self.tally.fidelity(&self.scene)?;
        Ok(drawn_facts(&self.shared, &self.view_plan, &self.view, drawn, &self.boxes))
    }
}

/// Returns the number of rows that are drawn together in a picture of this width.
fn rows_together(width: u32) -> u32 {
    let rows = BAND_PIXELS / u64::from(width.max(1)) / u64::from(ROW_UNIT);
    u32::try_from(rows.max(1)).unwrap_or(1).saturating_mul(ROW_UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_have_a_bounded_number_of_pixels_and_begin_at_tiles() {
        for width in [1, 31, 640, 1024, 5000, 16_384] {
            let rows = rows_together(width);
            assert!(rows.is_multiple_of(ROW_UNIT) && rows > 0, "{width}: {rows}");
            assert!(u64::from(rows) * u64::from(width) <= BAND_PIXELS, "{width}: {rows}");
        }
    }
}
