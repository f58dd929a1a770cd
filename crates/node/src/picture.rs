//! `render`: what a person wrote on the command line becomes a view, and the view a picture.

use std::path::Path;
use std::sync::Arc;

use array::stats::Histogram;
use array::{AxisRange, Dataset, Error, Priority, Result, Selection, Urgency};
use render::{Background, ImageSize, VolumeView};
use serde_json::{Map, Value};
use session::{Transfer, Truth, View};
use stream::{StillRequest, render_still};
use wire::ops::{BlockPlace, StatsRequest};

use crate::assemble::Stack;
use crate::output::Draft;
use crate::statistics::MOST_BYTES;

/// Bins of the histogram that a transfer function is chosen from.
const BINS: u16 = 256;

/// What to draw.
#[derive(Clone, Debug, Default)]
pub struct PictureRequest {
    /// A whole view as JSON; the other fields replace parts of it.
    pub view: Option<String>,
    /// The array.
    pub array: Option<String>,
    /// JSON as in a view, or the name of a side.
    pub camera: Option<String>,
    /// JSON as in a view, or the name of a colour map.
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
    let view = match &request.transfer {
        Some(text) => with_transfer(text, view, stack, &dataset).await?,
        None => view,
    };
    let still = StillRequest { view: Some(view), size, memory_bytes };
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

/// JSON is taken as it is; for the name of a colour map the rest is chosen from how the values are spread.
async fn with_transfer(text: &str, view: View, stack: &Stack, dataset: &Dataset) -> Result<View> {
    let value = if text.trim_start().starts_with('{') {
        parse_json(text, "a transfer function")?
    } else if render::colour_map_table(text).is_some() {
        let transfer = Transfer { map: text.to_owned(), ..sensible(&view, stack, dataset).await? };
        serde_json::to_value(transfer)
            .map_err(|e| Error::internal(format!("a transfer function in JSON: {e}")))?
    } else {
        let names = render::colour_map_names();
        return Err(Error::invalid(format!(
            "expected JSON or one of the colour maps {names:?}, found `{text}`"
        )));
    };
    view.merged(&Map::from_iter([("transfer".to_owned(), value)]))
}

/// From the values of the coarsest level at the view's place.
async fn sensible(view: &View, stack: &Stack, dataset: &Dataset) -> Result<Transfer> {
    let (number, array, position) = view.place_in(dataset)?;
    let coarsest = (0..array.levels.len())
        .min_by_key(|&l| array.levels[l].shape.iter().fold(1u64, |n, &s| n.saturating_mul(s)))
        .unwrap_or(0);
    let level = &array.levels[coarsest];
    let spatial: Vec<usize> = array.spatial_axes().into_iter().flatten().collect();
    let range = |(axis, &n): (usize, &u64)| {
        if spatial.contains(&axis) || spatial.is_empty() {
            AxisRange::contiguous(0, n)
        } else {
            AxisRange::contiguous(position.get(axis).copied().unwrap_or(0).min(n.saturating_sub(1)), 1)
        }
    };
    let request = StatsRequest {
        place: BlockPlace {
            dataset: dataset.id,
            generation: dataset.generation,
            array: number,
            level: u8::try_from(coarsest).unwrap_or(0),
        },
        bins: BINS,
        selection: Some(Selection::new(level.shape.iter().enumerate().map(range).collect())?),
    };
    let found = stack.stats(&request, Urgency::of(Priority::INTERACTIVE), MOST_BYTES).await?.histogram;
    let histogram = Histogram { low: found.low, high: found.high, counts: found.counts };
    let longest = spatial.iter().map(|&a| array.shape()[a]).max().unwrap_or(1);
    Ok(Transfer::sensible(&histogram, array.meaning, longest))
}
