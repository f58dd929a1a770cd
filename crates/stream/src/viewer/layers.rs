//! Layers of a view: the volumes of their arrays, and their colors.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{Dataset, Error, Meaning, Result};
use render::{ArrayLayer, Portion, VolumeView};
use view::{LayerLabels, View, ViewLayer};

use crate::viewer::scene::{any_colors, transfer_of};

/// Volume of the array of a layer.
#[derive(Clone, Debug)]
pub(crate) struct LayerVolume {
    /// Index of the layer in the view.
    pub(crate) layer: usize,
    pub(crate) view: Arc<VolumeView>,
}

/// Returns the volumes of the layers that a view shows, in their order.
///
/// # Errors
/// Those of [`View::layers_in`] and [`VolumeView::new`]; `Invalid` for an array that lies beside the view's own.
pub(crate) fn layer_volumes_of(view: &View, own: &VolumeView, dataset: &Dataset) -> Result<Vec<LayerVolume>> {
    let volume = |placed: view::PlacedLayer<'_>| {
        let layer = &view.layers[placed.layer];
        let volume = VolumeView::new(dataset, placed.number, &placed.indices)
            .map_err(|e| e.context(format!("layer `{}`", layer.title())))?;
        let volume = if layer.labels.is_some() { volume.as_labels() } else { volume };
        if !meet(own, &volume) {
            return Err(Error::invalid(format!(
                "the layer `{}` lies beside `{}`, so nothing of it could be seen: it is at {}, the array at {}",
                layer.title(),
                view.array,
                place_text(&volume),
                place_text(own)
            )));
        }
        Ok(LayerVolume { layer: placed.layer, view: Arc::new(volume) })
    };
    view.layers_in(dataset)?.into_iter().map(volume).collect()
}

/// Returns true if the boxes around two volumes in world space meet.
fn meet(a: &VolumeView, b: &VolumeView) -> bool {
    let (a, b) = (a.bounds(), b.bounds());
    (0..3).all(|axis| a.min[axis] < b.max[axis] && b.min[axis] < a.max[axis])
}

fn place_text(volume: &VolumeView) -> String {
    let bounds = volume.bounds();
    let range = |axis: usize| format!("{:.6} to {:.6}", bounds.min[axis], bounds.max[axis]);
    format!("x {}, y {}, z {}", range(0), range(1), range(2))
}

/// Returns the layer of a scene, with the number of the finest level to use. A layer whose colors are not yet
/// chosen is transparent.
///
/// # Errors
/// `Invalid`, for example for an unknown color map.
pub(crate) fn array_layer_of(
    layer: &ViewLayer,
    volume: &Arc<VolumeView>,
    finest_level: u8,
) -> Result<ArrayLayer> {
    let (transfer, opacity) = match &layer.transfer {
        Some(transfer) => (transfer_of(transfer), layer.opacity),
        None => (transfer_of(&any_colors(volume.meaning)), known_opacity(volume.meaning, layer.opacity)),
    };
    Ok(ArrayLayer {
        view: Arc::clone(volume),
        transfer: transfer.map_err(|e| e.context(format!("layer `{}`", layer.title())))?,
        opacity,
        is_outlined: layer.labels == Some(LayerLabels::Outlined),
        finest_level,
    })
}

/// Returns the opacity of a layer without a transfer function: that of labels and colors needs no values.
fn known_opacity(meaning: Meaning, opacity: f64) -> f64 {
    if meaning.is_continuous() { 0.0 } else { opacity }
}

/// Returns the part that a picture shows of the volume of a layer.
pub(crate) fn layer_portion(portion: &Portion, own: &VolumeView, layer: &VolumeView) -> Portion {
    let slices = portion.slices.as_ref();
    let mapped = slices.map(|slices| slices.iter().filter_map(|slice| slice.in_view(own, layer)).collect());
    Portion { clip: portion.clip, slices: mapped }
}

/// Identifies the data of a layer, on which the blocks of a picture depend.
#[derive(PartialEq)]
pub(crate) struct LayerData<'a> {
    array: &'a str,
    at: &'a BTreeMap<String, u64>,
    is_labels: bool,
}

/// Returns the data of the layers that a view shows.
pub(crate) fn layer_data(view: &View) -> Vec<(usize, LayerData<'_>)> {
    let shown = view.layers.iter().enumerate().filter(|(_, layer)| layer.is_shown());
    let data = shown.filter_map(|(number, layer)| {
        let array = layer.array.as_deref()?;
        Some((number, LayerData { array, at: &layer.at, is_labels: layer.labels.is_some() }))
    });
    data.collect()
}
