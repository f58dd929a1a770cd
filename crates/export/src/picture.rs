//! `render`: converts the options of the command line to a view, and the view to a picture. Files of pictures, and
//! films, are written by [`film`](crate::film).

use std::sync::Arc;

use array::{ArrayInfo, AxisKind, Dataset, Error, Result, Source};
use render::{Camera, ImageSize, VolumeView, stereo};
use serde_json::{Map, Value, json};
use stream::{
    ColorRange, DrawResources, Film, FilmRequest, FilmSlabs, PixelPrecision, Regridded, Still, camera_in,
};
use view::{Mode, SpaceAxis, TransferChoice, View, ViewRequest, share, side, side_of_person};

/// Longest side of a picture that is drawn only to know the values, in pixels.
const VALUES_SIDE: u32 = 64;

/// Request for a picture, in the form of the command line.
#[derive(Clone, Debug, Default)]
pub struct PictureRequest {
    /// A whole view as JSON; the other fields replace parts of it.
    pub view: Option<String>,
    /// Fields of the view. Isosurfaces and slices replace those of the view. A transfer function that is the name of a
    /// color map leaves the rest as in the view, or as chosen automatically; if another array gives the colors, the map
    /// is for those.
    pub fields: ViewRequest,
    /// Range of values that colors are spread over, unless the view or its fields contain it.
    pub range: ColorRange,
}

/// Returns the slices of a view; indices are those of the file, also if the array is drawn on an even grid.
fn slices_field(asked: &Value, view: &View, dataset: &Dataset, drawn: &Regridded) -> Result<Value> {
    let (number, array) = dataset.find(&view.array)?;
    let slices = asked.as_array().into_iter().flatten();
    slices.map(|slice| slice_field(slice, number, array, drawn)).collect()
}

fn slice_field(slice: &Value, number: u32, array: &ArrayInfo, drawn: &Regridded) -> Result<Value> {
    const AXES: [(&str, AxisKind, SpaceAxis); 3] = [
        ("x", AxisKind::X, SpaceAxis::X),
        ("y", AxisKind::Y, SpaceAxis::Y),
        ("z", AxisKind::Z, SpaceAxis::Z),
    ];
    let name = slice["axis"].as_str().unwrap_or_default();
    let own = array.axes.iter().find(|axis| axis.name == name);
    let is_named = |&(letter, kind, _): &(&str, AxisKind, SpaceAxis)| match own {
        Some(own) if own.kind.is_spatial() => own.kind == kind,
        _ => letter == name,
    };
    let (_, kind, axis) = AXES.into_iter().find(is_named).ok_or_else(|| {
        let names: Vec<&str> =
            array.axes.iter().filter(|a| a.kind.is_spatial()).map(|a| a.name.as_str()).collect();
        Error::invalid(format!(
            "expected a slice across x, y or z, or one of the axes {names:?}, found `{name}`"
        ))
    })?;
    let percent = slice["at"].as_str().and_then(|text| text.strip_suffix('%')?.parse::<f64>().ok());
    let at = match (percent, slice["at"].as_f64()) {
        (Some(percent), _) => json!(percent / 100.0 * axis.size_in(array).saturating_sub(1) as f64),
        (None, Some(index)) => match array.axes.iter().position(|axis| axis.kind == kind) {
            Some(axis) => json!(drawn.voxel_of(number, axis, index)?),
            None => json!(index),
        },
        // The view reports the error.
        (None, None) => slice["at"].clone(),
    };
    let mut slice = slice.clone();
    slice["axis"] = json!(axis);
    slice["at"] = at;
    Ok(slice)
}

/// Parses the range of values that colors are spread over: `usual`, `full`, or `LOW,HIGH`.
///
/// # Errors
/// `Invalid`.
pub fn parse_range(text: &str) -> Result<ColorRange> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|v| v.is_finite());
    let given = || {
        let (low, high) = text.split_once(',')?;
        let range = [number(low)?, number(high)?];
        (range[0] < range[1]).then_some(ColorRange::Of(range))
    };
    let named = match text.trim() {
        "usual" => Some(ColorRange::Usual),
        "full" => Some(ColorRange::Full),
        _ => given(),
    };
    named.ok_or_else(|| {
        Error::invalid(format!(
            "expected a range such as `usual`, `full` or `-5,12.5`, the low end first, found `{text}`"
        ))
    })
}

/// Parses a size such as `1024x800`.
///
/// # Errors
/// `Invalid`.
pub fn parse_size(text: &str) -> Result<ImageSize> {
    let bad = || Error::invalid(format!("expected a size such as `1024x800`, found `{text}`"));
    let (width, height) = text.split_once('x').ok_or_else(bad)?;
    let size = ImageSize {
        width: width.trim().parse().map_err(|_| bad())?,
        height: height.trim().parse().map_err(|_| bad())?,
    };
    size.check_sides()?;
    Ok(size)
}

/// Draws one finished picture, with slabs beside it if requested. `progress` is called with the blocks present and
/// requested.
///
/// # Errors
/// The errors of the view, and of blocks that cannot be fetched; `Unsupported` for pictures without slabs: stereo
/// pairs, isosurfaces, slices, extreme values.
pub async fn still(
    source: &Arc<dyn Source>,
    request: &PictureRequest,
    size: ImageSize,
    resources: DrawResources,
    slabs: Option<FilmSlabs>,
    progress: impl FnMut(u64, u64),
) -> Result<Still> {
    let request = with_isovalues(source, request, size, &resources).await?;
    resolved_still(source, &request, size, resources, slabs, progress).await
}

/// Draws a picture whose isosurfaces have values.
async fn resolved_still(
    source: &Arc<dyn Source>,
    request: &PictureRequest,
    size: ImageSize,
    resources: DrawResources,
    slabs: Option<FilmSlabs>,
    progress: impl FnMut(u64, u64),
) -> Result<Still> {
    let source = Regridded::open(Arc::clone(source)).await?;
    let dataset = source.describe().await?;
    let views = vec![view_of(request, size, &dataset, &source)?];
    let request = FilmRequest {
        views,
        choice: transfer_choice(request)?,
        range: request.range,
        size,
        resources,
        slabs,
        rank_group: None,
        pixels: PixelPrecision::default(),
    };
    let still = Film::open(Arc::new(source), request).await?.next(progress).await?;
    still.ok_or_else(|| Error::internal("expected a picture of one view, found none"))
}

/// Returns the requested view, with everything that depends on the data set filled in; the camera and the transfer function may be
/// left out. A color map by name and a range need the values, so a small picture is drawn for them.
///
/// # Errors
/// As [`still`].
pub async fn view(
    source: &Arc<dyn Source>,
    request: &PictureRequest,
    size: ImageSize,
    resources: impl Future<Output = Result<DrawResources>>,
) -> Result<View> {
    let shares = has_isovalue_shares(request);
    let has_range = request.range != ColorRange::default();
    if !shares && !has_range && transfer_choice(request)?.is_none() {
        let drawn = Regridded::open(Arc::clone(source)).await?;
        return view_of(request, size, &*drawn.describe().await?, &drawn);
    }
    let resources = resources.await?;
    let request = &with_isovalues(source, request, size, &resources).await?;
    let drawn = Regridded::open(Arc::clone(source)).await?;
    let dataset = drawn.describe().await?;
    let view = view_of(request, size, &dataset, &drawn)?;
    if transfer_choice(request)?.is_none() && (!has_range || view.transfer.is_some()) {
        return Ok(view);
    }
    let still = resolved_still(source, request, small(size), resources, None, |_, _| ()).await?;
    Ok(View { transfer: still.view.transfer, color_by: still.view.color_by, ..view })
}

/// Returns the size of a picture that is drawn only to know the values.
fn small(size: ImageSize) -> ImageSize {
    ImageSize { width: size.width.min(VALUES_SIDE), height: size.height.min(VALUES_SIDE) }
}

/// Returns whether isosurfaces are requested at shares of the range.
fn has_isovalue_shares(request: &PictureRequest) -> bool {
    let surfaces = request.fields.get("surfaces").and_then(Value::as_array);
    surfaces.into_iter().flatten().any(|surface| surface["value"].is_string())
}

/// Returns the request with isosurfaces at shares of the range of the colors, such as `50%`, at their values. A small picture of the
/// volume is drawn to know the range.
///
/// # Errors
/// `Invalid` for a text that is no share; the errors of drawing.
pub(crate) async fn with_isovalues(
    source: &Arc<dyn Source>,
    request: &PictureRequest,
    size: ImageSize,
    resources: &DrawResources,
) -> Result<PictureRequest> {
    if !has_isovalue_shares(request) {
        return Ok(request.clone());
    }
    let volume = PictureRequest { fields: request.fields.with("surfaces", None), ..request.clone() };
    let still = resolved_still(source, &volume, small(size), resources.clone(), None, |_, _| ()).await?;
    let [low, high] = still.view.transfer.map_or([0.0, 1.0], |transfer| transfer.range);
    let at_value = |surface: &Value| {
        let mut surface = surface.clone();
        if let Some(text) = surface["value"].as_str() {
            let share = share(text).ok_or_else(|| {
                Error::invalid(format!(
                    "expected an isosurface from `0%` to `100%` of the range, found `{text}`"
                ))
            })?;
            surface["value"] = json!(low + share * (high - low));
        }
        Ok(surface)
    };
    let surfaces = request.fields.get("surfaces").and_then(Value::as_array);
    let surfaces = surfaces.into_iter().flatten().map(at_value).collect::<Result<Vec<Value>>>()?;
    let fields = request.fields.with("surfaces", Some(Value::Array(surfaces)));
    Ok(PictureRequest { fields, ..request.clone() })
}

/// Returns the requested view of the data that `drawn` describes.
pub(crate) fn view_of(
    request: &PictureRequest,
    size: ImageSize,
    dataset: &Dataset,
    drawn: &Regridded,
) -> Result<View> {
    let mut view = match &request.view {
        Some(text) => View::parse(text)?,
        None => View::first_of(dataset)?,
    };
    // What is drawn is written with the picture, so it has its full name.
    let named = request.fields.text("array").map_or_else(|| view.array.clone(), str::to_owned);
    let (_, array) = dataset.find(&named)?;
    view.array.clone_from(&array.name);
    view.merged(&fields(request, size, &view, dataset, drawn)?)
}

/// Zoom by which a flat picture is made smaller, so that its annotations lie beside it.
const MARGIN: f64 = 0.8;

/// Returns the requested view with a camera that leaves room for annotations, if the picture has some and the view has
/// no camera.
pub(crate) fn framed_view(
    request: &PictureRequest,
    is_annotated: bool,
    size: ImageSize,
    dataset: &Dataset,
    drawn: &Regridded,
) -> Result<View> {
    let mut view = view_of(request, size, dataset, drawn)?;
    if is_annotated && view.camera.is_none() {
        view.camera = with_margin(&view, size, dataset)?;
    }
    Ok(view)
}

/// Returns a camera that leaves room for annotations around a flat volume, which else fills the picture; `None` for others.
fn with_margin(view: &View, size: ImageSize, dataset: &Dataset) -> Result<Option<view::ViewCamera>> {
    let (array, _, position) = view.place_in(dataset)?;
    if !VolumeView::new(dataset, array, &position)?.is_flat() {
        return Ok(None);
    }
    let Camera { eye, target, up, projection, .. } = camera_in(view, dataset, size)?.zoom(MARGIN);
    Ok(Some(view::ViewCamera { eye, target, up, projection, other: Map::new() }))
}

/// Returns the requested fields, in the form of the view of this data set.
fn fields(
    request: &PictureRequest,
    size: ImageSize,
    view: &View,
    dataset: &Dataset,
    drawn: &Regridded,
) -> Result<Map<String, Value>> {
    let asked = &request.fields;
    check_fits(asked, view, dataset)?;
    let mut fields = asked.fields().clone();
    // The view has the array's full name.
    fields.remove("array");
    if let Some(slices) = asked.get("slices") {
        fields.insert("slices".into(), slices_field(slices, view, dataset, drawn)?);
    }
    if let Some(by) = asked.get("color_by") {
        fields.insert("color_by".into(), color_by_field(by, asked, view)?);
    }
    if !fields.contains_key("mode") && request.view.is_none() && !draws_volume(asked) {
        fields.insert("mode".into(), json!(Mode::Surfaces));
    }
    let is_pair = asked.get("stereo").is_some() || view.stereo.is_some();
    let size = if is_pair { stereo::size_of_eye(size) } else { size };
    let (_, array) = dataset.find(&view.array)?;
    let side = if array.is_anatomical() { side_of_person } else { side };
    if let Some(direction) = asked.text("camera").and_then(side) {
        fields.insert("camera".into(), camera_from(direction, size, view, dataset)?);
    }
    // A name, or some members, are not a whole transfer function.
    if transfer_choice(request)?.is_some() {
        fields.remove("transfer");
    }
    Ok(fields)
}

/// Checks that the array supports the request.
fn check_fits(asked: &ViewRequest, view: &View, dataset: &Dataset) -> Result<()> {
    if let Some(time) = asked.get("time") {
        let (_, array) = dataset.find(&view.array)?;
        if array.time_axis().is_none() {
            let what =
                format!("expected no time step for `{}`, which has no time axis, found {time}", array.name);
            return Err(Error::invalid(what));
        }
    }
    if asked.get("grids") == Some(&Value::Bool(true)) {
        let (_, array) = dataset.find(&view.array)?;
        if dataset.grids_of(array).is_none() {
            return Err(Error::not_found(format!(
                "expected an array of an adaptive mesh, whose grids can be drawn, found `{}`, which has none",
                array.name
            )));
        }
    }
    Ok(())
}

/// Returns whether the volume is drawn in addition to isosurfaces and slices, if the request does not state it. Slices
/// need a transfer function, so its presence implies nothing about the volume; nor does a map for another array's
/// values.
fn draws_volume(asked: &ViewRequest) -> bool {
    let is_asked =
        |name: &str| asked.get(name).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let has_map_alone = asked.get("color_by").is_some() && asked.text("transfer").is_some();
    let has_transfer = asked.get("transfer").is_some() && !has_map_alone;
    !is_asked("slices") && (!is_asked("surfaces") || has_transfer)
}

/// Returns the field for coloring by an array; by the array that is drawn, if none is named.
fn color_by_field(by: &Value, asked: &ViewRequest, view: &View) -> Result<Value> {
    let map = by.get("map").filter(|map| !map.is_null());
    if let Some((map, other)) = map.zip(asked.text("transfer")) {
        return Err(Error::invalid(format!(
            "expected one color map for the colors by an array, found {map} in `color_by` and `{other}` as the transfer function"
        )));
    }
    let mut by = by.clone();
    if let Value::Object(by) = &mut by {
        by.entry("array").or_insert_with(|| view.array.clone().into());
    }
    Ok(by)
}

fn camera_from(direction: [f64; 3], size: ImageSize, view: &View, dataset: &Dataset) -> Result<Value> {
    let (array, _, position) = view.place_in(dataset)?;
    let bounds = VolumeView::new(dataset, array, &position)?.bounds();
    let camera = Camera::enclosing(&bounds, direction, size);
    serde_json::to_value(camera).map_err(|e| Error::internal(format!("a camera in JSON: {e}")))
}

/// Returns the requested transfer function, if it is given by a name or by some of its members.
pub(crate) fn transfer_choice(request: &PictureRequest) -> Result<Option<TransferChoice>> {
    let Some(written) = request.fields.get("transfer") else { return Ok(None) };
    TransferChoice::of(written, render::color_map_names(), |name| render::color_map_table(name).is_some())
}
