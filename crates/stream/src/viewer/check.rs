//! Checks that a view can be drawn.

use array::{Dataset, Result};
use render::Isosurface;
use view::View;

use crate::viewer::layers::{array_layer_of, layer_volumes_of};
use crate::viewer::scene::{camera_of, color_by_of, color_by_volume_of, surfaces_of, transfer_of, volume_of};

/// Checks that a view fits the data set and can be drawn.
///
/// # Errors
/// `Invalid` and others for a view that does not fit the data set.
pub(crate) fn check(view: &View, dataset: &Dataset) -> Result<()> {
    let volume = volume_of(view, dataset)?;
    camera_of(view, &volume)?;
    Isosurface::check_of(&surfaces_of(view), &volume)?;
    if let Some((by, color_by)) = view.color_by.as_ref().zip(color_by_volume_of(view, dataset)?) {
        color_by_of(by, &color_by, color_by.levels[0].number).check_of(&volume, view.mode)?;
    }
    for layer in layer_volumes_of(view, &volume, dataset)? {
        array_layer_of(&view.layers[layer.layer], &layer.view, layer.view.levels[0].number)?;
    }
    view.transfer.as_ref().map_or(Ok(()), |t| transfer_of(t).map(|_| ()))
}
