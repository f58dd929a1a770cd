//! The levels of an array as OME-Zarr 0.5 multiscales.

use array::{Affine, ArrayInfo, Attribute, Axis, AxisKind, Coordinates, Dataset, Level, Result};
use serde_json::{Value, json};

use super::tree::{labels_of, path_of, pyramid};
use super::world;

/// Returns the document of the group with an array's levels.
///
/// # Errors
/// `NotFound` if there is no such array.
pub(super) fn group(dataset: &Dataset, number: u32) -> Result<Value> {
    let array = dataset.array(number)?;
    let first = array.level(0)?;
    let levels: Vec<Value> = pyramid(array)
        .into_iter()
        .enumerate()
        .map(|(place, (_, level))| {
            let (scale, translation) = transform(array, first, level);
            json!({
                "path": place.to_string(),
                "coordinateTransformations": [
                    {"type": "scale", "scale": scale},
                    {"type": "translation", "translation": translation},
                ],
            })
        })
        .collect();
    let axes: Vec<Value> = array.axes.iter().map(|a| axis(a, &array.world_units)).collect();
    let image = json!({"name": path_of(array), "axes": axes, "datasets": levels});
    let mut ome = json!({"version": "0.5", "multiscales": [image]});
    for name in ["omero", "image-label"] {
        if let Some(Value::Object(mut document)) = array.attributes.get(name).map(Attribute::to_json) {
            // Version 0.5 states the version once.
            document.remove("version");
            ome[name] = document.into();
        }
    }
    let mut attributes = json!({"ome": ome});
    if world::has_maps(dataset) {
        // Also for rotated and mirrored grids.
        for (name, value) in world::attributes(array, first) {
            attributes[name] = value;
        }
    }
    Ok(json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}))
}

/// Returns the document of the group that lists an image's labels.
pub(super) fn labels(dataset: &Dataset, number: u32) -> Value {
    let names: Vec<&str> = labels_of(dataset, number).into_iter().map(|(name, _)| name).collect();
    let attributes = json!({"ome": {"version": "0.5", "labels": names}});
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

fn axis(axis: &Axis, world_units: &str) -> Value {
    let (kind, units) = match axis.kind {
        AxisKind::Z | AxisKind::Y | AxisKind::X => ("space", world_units),
        AxisKind::Time => ("time", axis.units.as_str()),
        AxisKind::Channel => ("channel", ""),
        AxisKind::Other => return json!({"name": axis.name}),
    };
    let mut value = json!({"name": axis.name, "type": kind});
    if let Some(unit) = unit(units) {
        value["unit"] = unit.into();
    }
    value
}

/// Returns the long name of a unit in UDUNITS, which OME-Zarr requires; `None` for unknown units.
fn unit(text: &str) -> Option<&'static str> {
    Some(match text {
        "nm" | "nanometer" => "nanometer",
        "um" | "\u{b5}m" | "\u{3bc}m" | "micron" | "micrometer" => "micrometer",
        "mm" | "millimeter" => "millimeter",
        "cm" | "centimeter" => "centimeter",
        "m" | "meter" | "metre" => "meter",
        "km" | "kilometer" => "kilometer",
        "ms" | "millisecond" => "millisecond",
        "s" | "sec" | "second" | "seconds" => "second",
        "h" | "hour" | "hours" => "hour",
        "d" | "day" | "days" => "day",
        _ => return None,
    })
}

/// Returns the size of a voxel, and the center of the first one, per axis: in world coordinates if the array's axes are
/// parallel to the world's. Scales and translations cannot express rotations: for rotated and mirrored grids the center
/// is relative to that of level 0, along the array's own axes, so that all levels are aligned.
fn transform(array: &ArrayInfo, first: &Level, level: &Level) -> (Vec<f64>, Vec<f64>) {
    let (spacing, finest) = (level.world_from_voxel.spacing(), first.world_from_voxel.spacing());
    let shift = if world::is_upright(&first.world_from_voxel) {
        level.world_from_voxel.0.map(|row| row[3])
    } else {
        shift(&first.world_from_voxel, &level.world_from_voxel, finest)
    };
    let along = |kind: AxisKind| match kind {
        AxisKind::X => Some(0),
        AxisKind::Y => Some(1),
        AxisKind::Z => Some(2),
        _ => None,
    };
    // Steps of time and of other axes with steps.
    let own = |axis: &Axis| match axis.coordinates {
        Coordinates::Regular { origin, step } => (step, origin),
        _ => (1.0, 0.0),
    };
    let scale = array.axes.iter().zip(&level.factor);
    let scale = scale.map(|(axis, &f)| along(axis.kind).map_or_else(|| f * own(axis).0, |a| spacing[a]));
    let scale = scale.collect();
    let moved =
        array.axes.iter().map(|axis| along(axis.kind).map_or_else(|| own(axis).1, |a| shift[a])).collect();
    (scale, moved)
}

/// Returns the distance between two origins along each axis of the finer grid (orthogonal in all supported formats).
fn shift(finer: &Affine, coarser: &Affine, spacing: [f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|axis| {
        let between =
            (0..3).map(|row| (coarser.0[row][3] - finer.0[row][3]) * finer.0[row][axis]).sum::<f64>();
        if spacing[axis] > 0.0 { between / spacing[axis] } else { 0.0 }
    })
}
