//! `render`: what a person wrote on the command line becomes a view, and the view a picture. Files of pictures, and films, are
//! [`film`](crate::film)'s.

use std::sync::Arc;

use array::{ArrayInfo, AxisKind, Dataset, Error, Result, Source};
use render::{ImageSize, VolumeView, stereo};
use serde_json::{Map, Value, json};
use stream::{ColourRange, Film, FilmRequest, Means, Pixels, Regridded, SlabWish, Still};
use view::{MAX_PARALLAX, Mode as ViewMode, SpaceAxis, View};

/// Request for a picture, as a person writes it on the command line.
#[derive(Clone, Debug, Default)]
pub struct PictureRequest {
    /// A whole view as JSON; the other fields replace parts of it.
    pub view: Option<String>,
    /// The array.
    pub array: Option<String>,
    /// JSON as in a view, or the name of a side.
    pub camera: Option<String>,
    /// JSON as in a view, or the name of a colour map: the rest is then as in the view, or chosen. Where another array gives the
    /// colours, the map is for those.
    pub transfer: Option<String>,
    /// Another array that gives the colours: its name, or JSON as in a view.
    pub color_by: Option<String>,
    /// Isosurfaces, instead of those in the view; see [`parse_surface`].
    pub surfaces: Vec<SurfaceRequest>,
    /// Slices, instead of those in the view; see [`parse_slice`].
    pub slices: Vec<SliceRequest>,
    /// Drawing of the volume besides surfaces and slices.
    pub mode: Option<ViewMode>,
    /// Light what the transfer function shows.
    pub shading: Option<bool>,
    /// The grids of an adaptive mesh as lines.
    pub grids: Option<bool>,
    /// A stereo pair with eyes so far apart, as a share of the distance to what they look at; see [`parse_parallax`].
    pub stereo: Option<f64>,
    /// Index on the time axis.
    pub time: Option<u64>,
    /// This level and no other.
    pub level: Option<u8>,
    /// Which values colours are spread over, where neither the view nor `transfer` says it.
    pub range: ColourRange,
}

/// An isosurface as a person asks for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfaceRequest {
    /// Decoded value.
    pub value: f64,
    /// sRGB; `None` for a colour of its own.
    pub colour: Option<[u8; 3]>,
    /// 0 to 1.
    pub opacity: f64,
}

/// Reads `VALUE[:COLOUR[:OPACITY]]`, such as `0.5`, `-3:#c03020` or `1e-3:#c03020:0.4`.
///
/// # Errors
/// `Invalid`.
pub fn parse_surface(text: &str) -> Result<SurfaceRequest> {
    let bad = || {
        Error::invalid(format!(
            "expected an isosurface such as `0.5`, `0.5:#c03020` or `0.5:#c03020:0.4`, found `{text}`"
        ))
    };
    let mut parts = text.split(':').map(str::trim);
    let value: f64 = parts.next().and_then(|v| v.parse().ok()).ok_or_else(bad)?;
    let colour = parts.next().map(|c| hex_colour(c).ok_or_else(bad)).transpose()?;
    let opacity = parts.next().map_or(Ok(1.0), |o| o.parse().map_err(|_| bad()))?;
    let is_legal = value.is_finite() && (0.0..=1.0).contains(&opacity) && parts.next().is_none();
    if is_legal { Ok(SurfaceRequest { value, colour, opacity }) } else { Err(bad()) }
}

/// A slice as a person asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceRequest {
    /// `x`, `y` or `z`, or what the array calls it.
    pub axis: String,
    /// Position on the axis.
    pub at: SliceAt,
}

/// Position of a slice on its axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SliceAt {
    /// At an index of level 0.
    Index(f64),
    /// A share of the way from the first index to the last one.
    Share(f64),
}

/// Reads `AXIS=INDEX` or `AXIS=SHARE%`, such as `z=40`, `y=12.5` or `lat=50%`.
///
/// # Errors
/// `Invalid`.
pub fn parse_slice(text: &str) -> Result<SliceRequest> {
    let bad =
        || Error::invalid(format!("expected a slice such as `z=40`, `y=12.5` or `lat=50%`, found `{text}`"));
    let (axis, place) = text.split_once('=').ok_or_else(bad)?;
    let number = |text: &str| text.trim().parse().ok().filter(|v: &f64| v.is_finite());
    let at = match place.trim().strip_suffix('%') {
        Some(share) => number(share).map(|share| SliceAt::Share(share / 100.0)),
        None => number(place).map(SliceAt::Index),
    };
    Ok(SliceRequest { axis: axis.trim().to_owned(), at: at.ok_or_else(bad)? })
}

/// A slice of a view; indices are those of the file, also where the array is drawn on an even grid.
fn slice_field(slice: &SliceRequest, number: u32, array: &ArrayInfo, drawn: &Regridded) -> Result<Value> {
    const AXES: [(&str, AxisKind, SpaceAxis); 3] = [
        ("x", AxisKind::X, SpaceAxis::X),
        ("y", AxisKind::Y, SpaceAxis::Y),
        ("z", AxisKind::Z, SpaceAxis::Z),
    ];
    let own = array.axes.iter().find(|axis| axis.name == slice.axis);
    let is_meant = |&(name, kind, _): &(&str, AxisKind, SpaceAxis)| match own {
        Some(own) if own.kind.is_spatial() => own.kind == kind,
        _ => name == slice.axis,
    };
    let (_, kind, axis) = AXES.into_iter().find(is_meant).ok_or_else(|| {
        let names: Vec<&str> =
            array.axes.iter().filter(|a| a.kind.is_spatial()).map(|a| a.name.as_str()).collect();
        Error::invalid(format!(
            "expected a slice across x, y or z, or one of the axes {names:?}, found `{}`",
            slice.axis
        ))
    })?;
    let at = match slice.at {
        SliceAt::Index(index) => match array.axes.iter().position(|axis| axis.kind == kind) {
            Some(axis) => drawn.voxel_of(number, axis, index)?,
            None => index,
        },
        SliceAt::Share(share) => share * axis.size_in(array).saturating_sub(1) as f64,
    };
    Ok(json!({"axis": axis, "at": at}))
}

fn hex_colour(text: &str) -> Option<[u8; 3]> {
    let digits =
        text.strip_prefix('#').filter(|d| d.len() == 6 && d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let [_, r, g, b] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some([r, g, b])
}

/// A surface of a view; the `number`-th of those without a colour gets one that is not the others'.
fn surface_field(number: usize, surface: &SurfaceRequest) -> Value {
    // A light one first; the others keep apart from it and each other, also for most colour-blind eyes.
    const COLOURS: [[u8; 3]; 6] =
        [[230, 200, 160], [86, 180, 233], [213, 94, 0], [0, 158, 115], [204, 121, 167], [240, 228, 66]];
    let colour = surface.colour.unwrap_or(COLOURS[number % COLOURS.len()]);
    json!({"value": surface.value, "color": colour, "opacity": surface.opacity})
}

/// Reads which values colours are spread over: `usual`, `full`, or `LOW,HIGH`.
///
/// # Errors
/// `Invalid`.
pub fn parse_range(text: &str) -> Result<ColourRange> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|v| v.is_finite());
    let given = || {
        let (low, high) = text.split_once(',')?;
        let range = [number(low)?, number(high)?];
        (range[0] < range[1]).then_some(ColourRange::Of(range))
    };
    let named = match text.trim() {
        "usual" => Some(ColourRange::Usual),
        "full" => Some(ColourRange::Full),
        _ => given(),
    };
    named.ok_or_else(|| {
        Error::invalid(format!(
            "expected a range such as `usual`, `full` or `-5,12.5`, the low end first, found `{text}`"
        ))
    })
}

/// Reads `1024x800`.
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
    size.check()?;
    Ok(size)
}

/// Reads the name of a mode, such as `maximum`.
///
/// # Errors
/// `Invalid`.
pub fn parse_mode(text: &str) -> Result<ViewMode> {
    serde_json::from_value(json!(text)).map_err(|_| {
        Error::invalid(format!(
            "expected one of the modes composite, surfaces, maximum, minimum, found `{text}`"
        ))
    })
}

/// Reads how far the eyes of a stereo pair are apart: `0.04` or `1/25`.
///
/// # Errors
/// `Invalid`.
pub fn parse_parallax(text: &str) -> Result<f64> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let share = match text.split_once('/') {
        Some((one, many)) => number(one).zip(number(many)).map(|(one, many)| one / many),
        None => number(text),
    };
    share.filter(|&share| share > 0.0 && share <= MAX_PARALLAX).ok_or_else(|| {
        Error::invalid(format!(
            "expected the distance of the eyes as a share of that to what they look at, above 0 and up to {MAX_PARALLAX}, such as \
             `1/30` or `0.04`, found `{text}`"
        ))
    })
}

/// Draws one finished picture, with slabs beside it where they are wanted. `progress` hears blocks present and wanted.
///
/// # Errors
/// What does not fit in the view, blocks that cannot be had; `Unsupported` for what has no slabs: stereo pairs, isosurfaces,
/// slices, extreme values.
pub async fn still(
    source: &Arc<dyn Source>,
    request: &PictureRequest,
    size: ImageSize,
    means: Means,
    slabs: Option<SlabWish>,
    progress: impl FnMut(u64, u64),
) -> Result<Still> {
    let source = Regridded::open(Arc::clone(source)).await?;
    let dataset = source.describe().await?;
    let views = vec![view_of(request, size, &dataset, &source)?];
    let request = FilmRequest {
        views,
        colour_map: colour_map(request)?,
        range: request.range,
        size,
        means,
        slabs,
        company: None,
        pixels: Pixels::default(),
    };
    let still = Film::open(Arc::new(source), request).await?.next(progress).await?;
    still.ok_or_else(|| Error::internal("expected a picture of one view, found none"))
}

/// The view that is asked for, of what `drawn` describes.
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
    if let Some(name) = &request.array {
        let (_, array) = dataset.find(name)?;
        view.array.clone_from(&array.name);
    }
    view.merged(&fields(request, size, &view, dataset, drawn)?)
}

/// The fields that options replace.
fn fields(
    request: &PictureRequest,
    size: ImageSize,
    view: &View,
    dataset: &Dataset,
    drawn: &Regridded,
) -> Result<Map<String, Value>> {
    let mut fields = Map::new();
    if let Some(time) = request.time {
        let (_, array) = dataset.find(&view.array)?;
        if array.time_axis().is_none() {
            let what = format!(
                "expected no time step for `{}`, which has no axis of time, found {time}",
                array.name
            );
            return Err(Error::invalid(what));
        }
        fields.insert("time".into(), time.into());
    }
    if let Some(level) = request.level {
        fields.insert("level".into(), level.into());
    }
    if !request.surfaces.is_empty() {
        let surfaces = request.surfaces.iter().enumerate().map(|(i, s)| surface_field(i, s)).collect();
        fields.insert("surfaces".into(), Value::Array(surfaces));
    }
    if !request.slices.is_empty() {
        let (number, array) = dataset.find(&view.array)?;
        let slices = request.slices.iter().map(|slice| slice_field(slice, number, array, drawn));
        let slices = slices.collect::<Result<_>>()?;
        fields.insert("slices".into(), Value::Array(slices));
    }
    if let Some(text) = &request.color_by {
        fields.insert("color_by".into(), color_by_field(text, request, view)?);
    }
    // Slices need a transfer function, so that one is given says nothing of the volume; nor does a map for another array's values.
    let has_map_alone =
        request.color_by.is_some() && request.transfer.as_deref().is_some_and(|t| !is_json(t));
    let is_volume_meant = request.slices.is_empty()
        && (request.surfaces.is_empty() || request.transfer.is_some() && !has_map_alone);
    let hides_volume = request.view.is_none() && !is_volume_meant;
    if let Some(mode) = request.mode.or(hides_volume.then_some(ViewMode::Surfaces)) {
        fields.insert("mode".into(), json!(mode));
    }
    if let Some(shading) = request.shading {
        fields.insert("shading".into(), shading.into());
    }
    if let Some(grids) = request.grids {
        let (_, array) = dataset.find(&view.array)?;
        if grids && dataset.grids_of(array).is_none() {
            return Err(Error::not_found(format!(
                "expected a field of an adaptive mesh to draw the grids of, found `{}`, which has none",
                array.name
            )));
        }
        fields.insert("grids".into(), grids.into());
    }
    if let Some(parallax) = request.stereo {
        fields.insert("stereo".into(), parallax.into());
    }
    let is_pair = request.stereo.or(view.stereo).is_some();
    let size = if is_pair { stereo::size_of_eye(size) } else { size };
    if let Some(camera) = &request.camera {
        let value = match side(camera) {
            Some(direction) => camera_from(direction, size, view, dataset)?,
            None if is_json(camera) => parse_json(camera, "a camera")?,
            None => {
                return Err(Error::invalid(format!(
                    "expected one of the cameras `{}`, or JSON as in a view, found `{camera}`",
                    SIDES.join(" ")
                )));
            }
        };
        fields.insert("camera".into(), value);
    }
    if let Some(text) = request.transfer.as_deref().filter(|text| is_json(text)) {
        fields.insert("transfer".into(), parse_json(text, "a transfer function")?);
    }
    Ok(fields)
}

/// Colours by an array as a person asks for them; by the one that is drawn, where JSON names none.
fn color_by_field(text: &str, request: &PictureRequest, view: &View) -> Result<Value> {
    if !is_json(text) {
        return Ok(json!({"array": text}));
    }
    let mut by = parse_json(text, "colours by an array")?;
    let map = by.get("map").filter(|map| !map.is_null());
    if let Some((map, other)) = map.zip(request.transfer.as_deref().filter(|text| !is_json(text))) {
        return Err(Error::invalid(format!(
            "expected one map for the colours by an array, found {map} with them and `{other}` as the transfer function"
        )));
    }
    if let Value::Object(by) = &mut by {
        by.entry("array").or_insert_with(|| view.array.clone().into());
    }
    Ok(by)
}

/// The names that [`side`] knows.
const SIDES: [&str; 6] = ["front", "back", "left", "right", "top", "bottom"];

/// Line of sight from a side of the volume, in world space: x to the right, y away, z up.
fn side(name: &str) -> Option<[f64; 3]> {
    Some(match name {
        "front" => [0.0, 1.0, 0.0],
        "back" => [0.0, -1.0, 0.0],
        "left" => [1.0, 0.0, 0.0],
        "right" => [-1.0, 0.0, 0.0],
        "top" => [0.0, 0.0, -1.0],
        "bottom" => [0.0, 0.0, 1.0],
        _ => return None,
    })
}

fn camera_from(direction: [f64; 3], size: ImageSize, view: &View, dataset: &Dataset) -> Result<Value> {
    let (array, _, position) = view.place_in(dataset)?;
    let bounds = VolumeView::new(dataset, array, &position)?.bounds();
    let camera = render::Camera::framing(&bounds, direction).widened(size);
    serde_json::to_value(camera).map_err(|e| Error::internal(format!("a camera in JSON: {e}")))
}

fn parse_json(text: &str, what: &str) -> Result<Value> {
    serde_json::from_str(text)
        .map_err(|e| Error::invalid(format!("expected {what} in JSON, found `{text}`: {e}")))
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// The colour map that is asked for by its name.
pub(crate) fn colour_map(request: &PictureRequest) -> Result<Option<String>> {
    let Some(name) = request.transfer.as_deref().filter(|text| !is_json(text)) else { return Ok(None) };
    if render::color_map_table(name).is_none() {
        let names = render::color_map_names();
        return Err(Error::invalid(format!(
            "expected JSON or one of the colour maps {names:?}, found `{name}`"
        )));
    }
    Ok(Some(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_that_errors_name_is_one() {
        assert!(SIDES.iter().all(|name| side(name).is_some()));
        assert!(side("side").is_none());
    }

    #[test]
    fn slices_are_read_as_people_write_them() {
        let slice = |axis: &str, at| SliceRequest { axis: axis.into(), at };
        for (text, expected) in [
            ("z=40", slice("z", SliceAt::Index(40.0))),
            ("lat = 12.5", slice("lat", SliceAt::Index(12.5))),
            ("y=50%", slice("y", SliceAt::Share(0.5))),
        ] {
            assert_eq!(parse_slice(text).unwrap(), expected);
        }
        for bad in ["z", "z=", "=", "z=a", "z=nan", "z=1e999", "z=%", "z=4%%"] {
            assert!(parse_slice(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn distances_of_eyes_are_read_as_people_write_them() {
        assert_eq!([parse_parallax("0.04").unwrap(), parse_parallax("1 / 25").unwrap()], [0.04; 2]);
        for bad in ["", "0", "-0.1", "1/0", "0/0", "0.6", "wide", "1/30/2"] {
            let error = parse_parallax(bad).unwrap_err().to_string();
            assert!(error.contains(&format!("found `{bad}`")), "{error}");
        }
    }

    #[test]
    fn isosurfaces_are_read_as_people_write_them() {
        let read = |text: &str| parse_surface(text).unwrap();
        assert_eq!(read("0.5"), SurfaceRequest { value: 0.5, colour: None, opacity: 1.0 });
        let both = SurfaceRequest { value: -1e-3, colour: Some([192, 48, 32]), opacity: 0.4 };
        assert_eq!(read("-1e-3:#C03020:0.4"), both);
        for wrong in
            ["", "x", "nan", "1:red", "1:#12345", "1:#1234567", "1:#00000g", "1:#000000:2", "1:#000000:1:1"]
        {
            let error = parse_surface(wrong).unwrap_err().to_string();
            assert!(error.contains(&format!("found `{wrong}`")), "{error}");
        }
    }
}
