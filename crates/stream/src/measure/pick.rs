//! Picking: the parts of the data at positions in a picture, and the values there.

use std::sync::Arc;

use array::{ArrayInfo, Error, Result, Scalar};
use futures::future::try_join_all;
use render::{
    ArrayLayer, LightShares, Pick, PickTarget, Quality, Scene, SceneGeometry, VolumeView, stereo,
    volume_of_world, voxel_of_world,
};
use serde::Serialize;
use session::ParticipantId;

use super::element::{AxisPosition, ElementValue, channel_name, positions};
use super::gather::read_element;
use super::nearby;
use super::request::PickRequest;
use super::subject::{DrawnVoxels, Subject};
use crate::loading::drawable::Drawable;
use crate::loading::regrid::StoredPlace;
use crate::loading::volume::Volume;
use crate::tasks::blocking;
use crate::viewer::layers::{array_layer_of, layer_volumes_of};
use crate::viewer::scene::{
    any_transfer, camera_for, color_by_volume_of, numbered_slices_of, portion_of, slices_of, surfaces_of,
    transfer_of,
};
use crate::viewer::shared::SharedState;

/// Answer to a [`PickRequest`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PickAnswer {
    /// Answer for each position, in the order of the request.
    pub picks: Vec<PickedPlace>,
}

/// Thing that a position in a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PickedThing {
    /// Nothing.
    Nothing,
    /// The volume, as the transfer function shows it.
    Volume,
    /// The largest or smallest value along the ray.
    Extreme,
    /// An isosurface.
    Surface,
    /// A slice.
    Slice,
    /// An image or map: an array of one layer.
    Image,
}

/// Answer for a position in a picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PickedPlace {
    /// Thing that is there.
    pub hit: PickedThing,
    /// Number of the isosurface or slice in the view.
    pub number: Option<usize>,
    /// Place in world space.
    pub world: Option<[f64; 3]>,
    /// Units of world space.
    pub world_units: String,
    /// Value there; `None` if nothing is there.
    pub value: Option<PickedValue>,
    /// Value of the array that gives the colors, if that is another one.
    pub color_by: Option<PickedValue>,
    /// Values of the layers that are shown, from the first to the last; those that do not reach the place are left out.
    pub layers: Vec<PickedLayer>,
}

/// Value of a layer at a place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PickedLayer {
    /// Index of the layer in the view.
    pub layer: usize,
    /// Value.
    pub value: PickedValue,
}

/// Value of an array at a place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PickedValue {
    /// Name of the stored array.
    pub array: String,
    /// Type of the stored elements.
    pub dtype: String,
    /// Units of the decoded values.
    pub units: String,
    /// Position on the axes of the stored array.
    pub axes: Vec<AxisPosition>,
    /// Further coordinates of the element: latitude and longitude of a curvilinear grid.
    pub coordinates: Vec<PlaceCoordinate>,
    /// Level that the values are of: 0, unless the source could not be read.
    pub level: u8,
    /// The stored element, or one for each channel that is drawn as a color. Empty if the source could not be read.
    pub elements: Vec<PickedElement>,
    /// Value that the picture shows there, interpolated, and its level; `None` for colors.
    pub drawn: Option<DrawnNumber>,
    /// Reason why there are no elements.
    pub note: Option<String>,
}

/// Stored element at a place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PickedElement {
    /// Name of the channel, if it is one of several and has a name.
    pub channel: Option<String>,
    /// Value.
    #[serde(flatten)]
    pub value: ElementValue,
}

/// Coordinate that belongs to an element rather than to an axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlaceCoordinate {
    /// Name of the array of coordinates.
    pub name: String,
    /// Coordinate.
    pub coordinate: Scalar,
    /// Units of the coordinate.
    pub units: String,
}

/// Value that a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DrawnNumber {
    /// Number of the level.
    pub level: u8,
    /// Decoded value.
    pub value: f64,
}

/// Finds what the positions of a request show. Uses up to `memory_bytes` if no picture of the view is loaded.
///
/// # Errors
/// `Invalid` and others for a view that does not fit the data set, `Busy` while nothing of it is loaded.
///
/// # Cancel safety
/// Dropping the future stops reading.
pub(crate) async fn pick(
    shared: &Arc<SharedState>,
    request: &PickRequest,
    memory_bytes: usize,
) -> Result<PickAnswer> {
    let subject = Subject::of(shared, &request.view)?;
    let mut picks = Vec::with_capacity(request.at.len());
    for &position in &request.at {
        let found = find(shared, &subject, request, position, memory_bytes).await?;
        picks.push(place(&subject, found).await?);
    }
    Ok(PickAnswer { picks })
}

/// Returns the scene that a position in a picture belongs to, and the position in its picture: that of one eye for a
/// stereo pair.
fn scene_at(subject: &Subject, request: &PickRequest, [column, row]: [f64; 2]) -> Result<(Scene, [f64; 2])> {
    let (view, volume, size) = (&subject.view, &subject.volume, request.size());
    let scene = Scene {
        view: Arc::clone(volume),
        camera: camera_for(view, volume, size)?,
        transfer: transfer_of(view.transfer.as_ref().unwrap_or(&any_transfer()))?,
        color_by: None,
        layers: Vec::new(),
        surfaces: surfaces_of(view),
        slices: slices_of(view, volume),
        wires: Arc::default(),
        geometry: SceneGeometry::default(),
        mode: view.mode,
        is_lit: false,
        light: LightShares::new(view.lighting, view.occlusion, view.depth_cue),
        size,
        clip: portion_of(view, volume).clip,
        quality: Quality::STILL,
        finest_level: volume.levels[0].number,
    };
    let Some(parallax) = view.stereo else { return Ok((scene, [column, row])) };
    let [left, right] = stereo::scenes(&scene, parallax)?;
    let width = f64::from(left.size.width);
    Ok(if column < width { (left, [column, row]) } else { (right, [column - width, row]) })
}

async fn find(
    shared: &Arc<SharedState>,
    subject: &Subject,
    request: &PickRequest,
    position: [f64; 2],
    memory_bytes: usize,
) -> Result<Option<Pick>> {
    let (mut scene, position) = scene_at(subject, request, position)?;
    // With several ranks this one has a share of the blocks only.
    let shown = shared.volumes.find(&subject.volume).filter(|_| shared.launcher.is_none());
    let wanted = shown.as_ref().and_then(|volume| volume.wanted_level(request.view.participant));
    let drawable = match shown.zip(wanted) {
        Some((volume, wanted)) => {
            scene.finest_level = wanted;
            let layers = loaded_layers(shared, subject, request.view.participant)?;
            let (layers, volumes) = layers.into_iter().unzip();
            scene.layers = layers;
            Drawable::new(volume, None, volumes)
        }
        None => {
            let source = shared.source();
            let loaded = nearby::load(&*source, subject, &scene, position, memory_bytes).await?;
            let Some((drawable, wanted)) = loaded else { return Ok(None) };
            scene.finest_level = wanted;
            drawable
        }
    };
    blocking(move || drawable.pick(&scene, position)).await?
}

/// Returns the layers of a view whose blocks are loaded, with their volumes.
fn loaded_layers(
    shared: &SharedState,
    subject: &Subject,
    participant: Option<ParticipantId>,
) -> Result<Vec<(ArrayLayer, Arc<Volume>)>> {
    let mut loaded = Vec::new();
    for layer in layer_volumes_of(&subject.view, &subject.volume, &subject.dataset)? {
        let Some(volume) = shared.volumes.find(&layer.view) else { continue };
        let Some(wanted) = volume.wanted_level(participant) else { continue };
        let own = array_layer_of(&subject.view.layers[layer.layer], &volume.view, wanted)?;
        loaded.push((own, volume));
    }
    Ok(loaded)
}

/// Describes a place, with the values there.
async fn place(subject: &Subject, found: Option<Pick>) -> Result<PickedPlace> {
    let nothing = PickedPlace {
        hit: PickedThing::Nothing,
        number: None,
        world: None,
        world_units: subject.dataset.array(subject.volume.key(0, [0; 3]).array)?.world_units.clone(),
        value: None,
        color_by: None,
        layers: Vec::new(),
    };
    let Some(found) = found else { return Ok(nothing) };
    let Some(stored) = subject.stored(found.voxel) else { return Ok(nothing) };
    let (hit, number) = match found.target {
        PickTarget::Volume => (PickedThing::Volume, None),
        PickTarget::Extreme => (PickedThing::Extreme, None),
        PickTarget::Surface(number) => (PickedThing::Surface, Some(number)),
        PickTarget::Slice(drawn) => (PickedThing::Slice, slice_number(subject, drawn)),
        PickTarget::Layer => (PickedThing::Image, None),
    };
    let color_by = match color_by_volume_of(&subject.view, &subject.dataset)? {
        Some(volume) => colors_at(subject, &volume, found.voxel).await?,
        None => None,
    };
    let layers = layers_at(subject, found.world).await?;
    let has_number = subject.volume.meaning != array::Meaning::Colors;
    let drawn = found.drawn.filter(|_| has_number);
    let drawn = drawn.map(|drawn| DrawnNumber { level: drawn.level, value: drawn.value });
    let value = value_at(&subject.drawn, &stored, drawn).await?;
    Ok(PickedPlace { hit, number, world: Some(found.world), value: Some(value), color_by, layers, ..nothing })
}

/// Returns the number in the view of a slice that is drawn: hidden ones, and those that have no direction in the volume,
/// are not.
fn slice_number(subject: &Subject, drawn: usize) -> Option<usize> {
    let slices = numbered_slices_of(&subject.view, &subject.volume);
    slices.get(drawn).map(|&(number, _)| number)
}

async fn colors_at(subject: &Subject, volume: &VolumeView, voxel: [u64; 3]) -> Result<Option<PickedValue>> {
    let voxels = subject.voxels_of(volume);
    let Some(stored) = voxels.stored(volume, voxel) else { return Ok(None) };
    value_at(&voxels, &stored, None).await.map(Some)
}

/// Reads the values of the layers at a place in world space.
async fn layers_at(subject: &Subject, world: [f64; 3]) -> Result<Vec<PickedLayer>> {
    let mut found = Vec::new();
    for layer in layer_volumes_of(&subject.view, &subject.volume, &subject.dataset)? {
        if !reaches(&layer.view, world) {
            continue;
        }
        let voxel = voxel_of_world(&layer.view, world);
        let voxels = subject.voxels_of(&layer.view);
        let Some(stored) = voxels.stored(&layer.view, voxel) else { continue };
        let value = value_at(&voxels, &stored, None).await?;
        found.push(PickedLayer { layer: layer.layer, value });
    }
    Ok(found)
}

/// Returns true if a place in world space lies in a voxel of a volume.
fn reaches(volume: &VolumeView, world: [f64; 3]) -> bool {
    let sides = volume.levels[0].shape;
    let at = volume_of_world(volume, world);
    // Sides are in the order z, y, x.
    at.iter().zip(sides.iter().rev()).all(|(&at, &side)| (-0.5..side as f64 - 0.5).contains(&at))
}

/// Reads the values of a stored place; if they cannot be read, the value drawn remains.
async fn value_at(
    voxels: &DrawnVoxels,
    place: &StoredPlace,
    drawn: Option<DrawnNumber>,
) -> Result<PickedValue> {
    let (places, info) = (&voxels.places, voxels.info()?);
    let elements = elements_at(voxels, info, place);
    let coordinates = coordinates_at(voxels, place);
    let (elements, coordinates) = futures::join!(elements, coordinates);
    let (elements, note) = match elements {
        Ok(elements) => (elements, None),
        Err(error) => (Vec::new(), Some(format!("the value at full resolution cannot be read: {error}"))),
    };
    Ok(PickedValue {
        array: info.name.clone(),
        dtype: info.dtype.to_string(),
        units: info.units.clone(),
        axes: positions(&places.dataset, info, &place.index),
        coordinates,
        level: if note.is_none() { 0 } else { drawn.map_or(0, |drawn| drawn.level) },
        elements,
        drawn,
        note,
    })
}

async fn elements_at(
    voxels: &DrawnVoxels,
    info: &ArrayInfo,
    place: &StoredPlace,
) -> Result<Vec<PickedElement>> {
    let channel_axis = voxels.channels().map(|channels| channels.axis);
    let reads = voxels.elements(place).into_iter().map(|index| async move {
        let source = &*voxels.places.source;
        let bytes = read_element(source, place.array, info.dtype.size_bytes(), &index).await?;
        let channel = channel_axis.and_then(|axis| channel_name(info, index[axis]));
        Ok::<_, Error>(PickedElement { channel, value: ElementValue::of(info, index, &bytes)? })
    });
    try_join_all(reads).await
}

/// Reads latitude and longitude of an element of a curvilinear grid; those that cannot be read are left out.
async fn coordinates_at(voxels: &DrawnVoxels, place: &StoredPlace) -> Vec<PlaceCoordinate> {
    let places = &voxels.places;
    let Some((axes, arrays)) = places.latitude_longitude(place.array) else { return Vec::new() };
    let index = axes.map(|axis| place.index[axis]);
    let mut found = Vec::new();
    for number in arrays {
        let Ok(info) = places.dataset.array(number) else { continue };
        let read = read_element(&*places.source, number, info.dtype.size_bytes(), &index).await;
        let value = read.and_then(|bytes| ElementValue::of(info, index.to_vec(), &bytes));
        if let Ok(ElementValue { decoded: Some(coordinate), .. }) = value {
            found.push(PlaceCoordinate { name: info.name.clone(), coordinate, units: info.units.clone() });
        }
    }
    found
}
