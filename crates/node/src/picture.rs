//! `render`: what a person wrote on the command line becomes a view, and the view a picture.

use std::path::Path;
use std::sync::Arc;

use array::{Dataset, Error, Result};
use render::{Background, ImageSize, VolumeView};
use serde_json::{Map, Value};
use session::{Truth, View};
use stream::{StillRequest, render_still};

use crate::assemble::Stack;
use crate::output::Draft;

/// What to draw.
#[derive(Clone, Debug, Default)]
pub struct PictureRequest {
    /// A whole view as JSON; the other fields replace parts of it.
    pub view: Option<String>,
    /// The array.
    pub array: Option<String>,
    /// JSON as in a view, or the name of a side.
    pub camera: Option<String>,
    /// JSON as in a view, or the name of a colour map: the rest is then as in the view, or chosen.
    pub transfer: Option<String>,
    /// Index on the time axis.
    pub time: Option<u64>,
    /// This level and no other.
    pub level: Option<u8>,
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

/// Draws one finished picture into a PNG file. `progress` hears blocks present and wanted.
///
/// # Errors
/// What does not fit in the view, blocks that cannot be had, `Io`.
pub async fn draw(
    stack: &Stack,
    request: &PictureRequest,
    size: ImageSize,
    memory_bytes: u64,
    output: &Path,
    progress: impl FnMut(u64, u64),
) -> Result<Truth> {
    let dataset = stack.source.describe().await?;
    let mut view = match &request.view {
        Some(text) => View::parse(text)?,
        None => View::first_of(&dataset)?,
    };
    if let Some(name) = &request.array {
        let (_, array) = dataset.find(name)?;
        view.array.clone_from(&array.name);
    }
    let view = view.merged(&fields(request, size, &view, &dataset)?)?;
    let still = StillRequest { view: Some(view), colour_map: colour_map(request)?, size, memory_bytes };
    let still = render_still(Arc::clone(&stack.source), still, progress).await?;
    let background = still.view.background.map(|c| f32::from(c) / 255.0);
    let png = still.image.to_png(Background::Colour(background))?;
    let draft = Draft::beside(output)?;
    std::fs::write(&draft.path, &png)
        .map_err(|e| Error::from(e).context(format!("write `{}`", output.display())))?;
    draft.keep()?;
    Ok(still.truth)
}

/// The fields that options replace.
fn fields(
    request: &PictureRequest,
    size: ImageSize,
    view: &View,
    dataset: &Dataset,
) -> Result<Map<String, Value>> {
    let mut fields = Map::new();
    if let Some(time) = request.time {
        fields.insert("time".into(), time.into());
    }
    if let Some(level) = request.level {
        fields.insert("level".into(), level.into());
    }
    if let Some(camera) = &request.camera {
        let value = match side(camera) {
            Some(direction) => camera_from(direction, size, view, dataset)?,
            None => parse_json(camera, "one of `front back left right top bottom`, or a camera")?,
        };
        fields.insert("camera".into(), value);
    }
    if let Some(text) = request.transfer.as_deref().filter(|text| is_json(text)) {
        fields.insert("transfer".into(), parse_json(text, "a transfer function")?);
    }
    Ok(fields)
}

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
fn colour_map(request: &PictureRequest) -> Result<Option<String>> {
    let Some(name) = request.transfer.as_deref().filter(|text| !is_json(text)) else { return Ok(None) };
    if render::colour_map_table(name).is_none() {
        let names = render::colour_map_names();
        return Err(Error::invalid(format!(
            "expected JSON or one of the colour maps {names:?}, found `{name}`"
        )));
    }
    Ok(Some(name.to_owned()))
}
