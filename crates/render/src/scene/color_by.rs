//! Array that gives a picture its colors.

use std::sync::Arc;

use array::{Error, Result};
use view::Mode;

use crate::{OpacityPoint, TransferFunction, VolumeView};

/// Array that gives the colors of a picture, and its color map. Where it has no value, nothing is drawn.
#[derive(Clone, Debug)]
pub struct ColorByArray {
    /// The array, seen as a volume whose voxels lie at the positions of those of the scene's view.
    pub view: Arc<VolumeView>,
    /// Name of the color map; see [`color_map_names`](crate::color_map_names).
    pub color_map: String,
    /// Decoded values at the ends of the color map, the low one first.
    pub range: [f64; 2],
    /// Number of the finest level to use, as in [`Demand::wanted`](crate::Demand::wanted).
    pub finest_level: u8,
}

impl ColorByArray {
    /// Returns the colors as a transfer function, whose opacity is not used.
    pub(crate) fn transfer(&self) -> TransferFunction {
        TransferFunction {
            color_map: self.color_map.clone(),
            reversed: false,
            scale: view::ValueScale::Linear,
            range: self.range,
            opacity: vec![OpacityPoint { value: self.range[0], opacity: 1.0 }],
        }
    }

    /// Checks that the array can color a scene of a view.
    ///
    /// # Errors
    /// `Invalid`, with a message that names the cause.
    pub fn check_of(&self, view: &VolumeView, mode: Mode) -> Result<()> {
        self.transfer().check()?;
        self.view.level_index_of(self.finest_level)?;
        if mode.is_extreme() {
            return Err(Error::invalid(
                "expected no other array's colors for extreme values, which show their own",
            ));
        }
        let place = |view: &VolumeView| (view.levels[0].shape, view.world_from_volume);
        if place(view) != place(&self.view) {
            return Err(Error::invalid(format!(
                "expected colors by an array whose voxels lie where the scene's do, found {:?} and {:?} voxels, or other places",
                self.view.levels[0].shape, view.levels[0].shape
            )));
        }
        Ok(())
    }
}
