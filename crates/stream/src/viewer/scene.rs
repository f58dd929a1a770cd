//! Conversion of a view, which participants share, to a scene, which can be drawn.

use std::sync::Arc;

use array::{Dataset, Meaning, Result, ValueSample};
use render::{
    Bounds, Camera, ColorByArray, ImageSize, Isosurface, ObliquePlane, OpacityPoint, Portion, Slice,
    TransferFunction, VolumeView, first_camera, stereo,
};
use session::PictureSize;
use view::{ColorBy, Transfer, View, ViewSlice};

/// Returns the volume that a view shows.
///
/// # Errors
/// Those of [`View::place_in`] and [`VolumeView::new`].
pub(crate) fn volume_of(view: &View, dataset: &Dataset) -> Result<Arc<VolumeView>> {
    let (array, _, position) = view.place_in(dataset)?;
    Ok(Arc::new(VolumeView::new(dataset, array, &position)?))
}

/// Returns the volume that gives a view its colors, if that is another array.
///
/// # Errors
/// Those of [`View::colors_in`] and [`VolumeView::new`].
pub(crate) fn color_by_volume_of(view: &View, dataset: &Dataset) -> Result<Option<Arc<VolumeView>>> {
    let Some((array, _, position)) = view.colors_in(dataset)? else { return Ok(None) };
    Ok(Some(Arc::new(VolumeView::new(dataset, array, &position)?)))
}

/// Returns the colors of a view by another array, with the number of the finest level to use.
pub(crate) fn color_by_of(by: &ColorBy, volume: &Arc<VolumeView>, finest_level: u8) -> ColorByArray {
    let any = any_colors(volume.meaning);
    ColorByArray {
        view: Arc::clone(volume),
        color_map: by.map.clone().unwrap_or(any.map),
        range: by.range.unwrap_or(any.range),
        finest_level,
    }
}

/// Returns the camera of a view; by default one that shows the whole volume in a square picture.
///
/// # Errors
/// `Invalid` for an invalid camera.
pub(crate) fn camera_of(view: &View, volume: &VolumeView) -> Result<Camera> {
    camera_for(view, volume, ImageSize { width: 1, height: 1 })
}

/// Returns the camera of a view in a picture of this size; by default one that shows the whole volume.
///
/// # Errors
/// `Invalid` for an invalid camera.
pub(crate) fn camera_for(view: &View, volume: &VolumeView, size: ImageSize) -> Result<Camera> {
    let Some(camera) = &view.camera else { return Ok(first_camera(volume, size_of_eye(view, size))) };
    let view::ViewCamera { eye, target, up, projection, .. } = *camera;
    let camera = Camera { eye, target, up, projection, aside: 0.0 };
    camera.check()?;
    Ok(camera)
}

/// Returns the camera of a picture of this size: the view's own, or by default one that shows the whole
/// volume.
///
/// # Errors
/// `Invalid` and others for a view that does not fit the data set.
pub fn camera_in(view: &View, dataset: &Dataset, size: ImageSize) -> Result<Camera> {
    camera_for(view, &*volume_of(view, dataset)?, size)
}

/// Returns the size of the picture for one eye: of the whole picture, or of half of a stereo pair.
pub(crate) fn size_of_eye(view: &View, size: ImageSize) -> ImageSize {
    if view.stereo.is_some() { stereo::size_of_eye(size) } else { size }
}

/// Converts a camera to that of a view.
pub(crate) fn shared_camera(camera: &Camera) -> view::ViewCamera {
    let &Camera { eye, target, up, projection, .. } = camera;
    view::ViewCamera { eye, target, up, projection, other: serde_json::Map::new() }
}

/// Converts a transfer function to that of the renderer.
///
/// # Errors
/// `Invalid`, for example for an unknown color map.
pub(crate) fn transfer_of(transfer: &Transfer) -> Result<TransferFunction> {
    let point = |&[value, opacity]: &[f64; 2]| OpacityPoint { value, opacity };
    let function = TransferFunction {
        color_map: transfer.map.clone(),
        reversed: transfer.reversed,
        scale: transfer.scale,
        range: transfer.range,
        opacity: transfer.opacity.iter().map(point).collect(),
    };
    function.check()?;
    Ok(function)
}

/// Returns the isosurfaces of a view.
#[expect(clippy::cast_possible_truncation, reason = "opacities are drawn in f32")]
pub(crate) fn surfaces_of(view: &View) -> Vec<Isosurface> {
    let surface = |s: &view::Surface| Isosurface {
        value: s.value,
        color: s.color.map(|c| f32::from(c) / 255.0),
        opacity: s.opacity as f32,
    };
    view.surfaces.iter().map(surface).collect()
}

/// Returns the slices of a view that are drawn.
pub(crate) fn slices_of(view: &View, volume: &VolumeView) -> Vec<Slice> {
    numbered_slices_of(view, volume).into_iter().map(|(_, slice)| slice).collect()
}

/// Returns the slices of a view that are drawn, in the order of [`slices_of`], with their numbers in the view.
pub(crate) fn numbered_slices_of(view: &View, volume: &VolumeView) -> Vec<(usize, Slice)> {
    let slice = |(number, slice): (usize, &ViewSlice)| {
        // A plane that has no direction in the volume is not drawn.
        let oblique = match slice.oblique() {
            Some((normal, point)) => Some(ObliquePlane::in_volume(volume, normal, point)?),
            None => None,
        };
        Some((number, Slice { axis: slice.axis, at: slice.at, oblique, nearest: slice.nearest }))
    };
    view.slices.iter().enumerate().filter(|(_, slice)| !slice.hidden).filter_map(slice).collect()
}

/// Returns the part of the volume that a view shows.
pub(crate) fn portion_of(view: &View, volume: &VolumeView) -> Portion {
    Portion::of(clip_of(view, volume), view.mode, &surfaces_of(view), slices_of(view, volume))
}

/// Returns the clip box in world space; the view has fractions of the box around the volume.
fn clip_of(view: &View, volume: &VolumeView) -> Option<Bounds> {
    let [low, high] = view.clip?;
    let Bounds { min, max } = volume.bounds();
    let at = |share: [f64; 3]| [0, 1, 2].map(|a| min[a] + share[a] * (max[a] - min[a]));
    Some(Bounds { min: at(low), max: at(high) })
}

pub(crate) fn image_size(size: PictureSize) -> ImageSize {
    ImageSize { width: size.width(), height: size.height() }
}

/// Returns a transfer function for a picture in which no part of the volume is visible.
pub(crate) fn any_transfer() -> Transfer {
    any_colors(Meaning::Intensity)
}

/// Returns the default transfer function for values of any meaning, for its colors.
pub(crate) fn any_colors(meaning: Meaning) -> Transfer {
    Transfer::sensible(&ValueSample::default(), meaning, [256; 3])
}
