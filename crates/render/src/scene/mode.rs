//! Drawing modes of a volume: their step lengths, and the volumes that allow them.

use array::{Error, Result};
use view::Mode;

use crate::VolumeView;

/// Factor by which steps are shorter than those of other pictures. A ray's extreme value is a peak, which
/// samples may miss: with one sample per voxel rings are visible, with two hardly.
pub(crate) fn step_of(mode: Mode) -> f64 {
    if mode.is_extreme() { 0.5 } else { 1.0 }
}

/// Checks that a volume can be drawn in a mode.
///
/// # Errors
/// `Invalid` for extreme values of labels and packed colors, which have no order.
pub(crate) fn check_mode(mode: Mode, view: &VolumeView) -> Result<()> {
    if view.meaning == array::Meaning::Colors && mode.is_extreme() {
        return Err(Error::invalid(
            "colors of several channels have no largest value: choose another mode, or the array itself, without \
             `(color)` at the end of its name, of which one channel is drawn at a time",
        ));
    }
    if !view.meaning.is_continuous() && mode.is_extreme() {
        return Err(Error::invalid(
            "expected an array of intensities to draw extreme values of, found labels: choose another mode",
        ));
    }
    Ok(())
}
