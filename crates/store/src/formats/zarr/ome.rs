//! OME-Zarr: multiscale images, their axes and positions in space, and labels; versions 0.1 to 0.5.
//!
//! Only JSON is read here. `describe` checks that the paths exist, and their shapes.

use array::{Affine, Axis, AxisKind, Coordinates};
use serde_json::{Map, Value};

use crate::formats::common::describe;

/// Most OME multiscale images of one group.
const MAX_PYRAMIDS: usize = 16;
/// Most levels of one OME multiscale image.
const MAX_LEVELS: usize = array::MAX_LEVELS;

/// Multiscale image of the attributes of a group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Multiscale {
    pub(super) name: Option<String>,
    axes: Vec<OmeAxis>,
    pub(super) levels: Vec<OmeLevel>,
}

#[derive(Clone, Debug, PartialEq)]
struct OmeAxis {
    name: String,
    kind: Option<String>,
    units: String,
}

/// One resolution: `world = scale * index + translation` per axis, if the file has a transform.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OmeLevel {
    /// Path below the group.
    pub(super) path: String,
    transform: Option<CoordinateTransform>,
}

/// Scale and translation per axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CoordinateTransform {
    pub(super) scale: Vec<f64>,
    pub(super) translation: Vec<f64>,
}

/// Returns the attributes of OME: version 0.5 put them under one name.
fn root(attributes: &Map<String, Value>) -> &Map<String, Value> {
    attributes.get("ome").and_then(Value::as_object).unwrap_or(attributes)
}

/// Whether a group holds labels.
pub(super) fn is_label(attributes: &Map<String, Value>) -> bool {
    root(attributes).contains_key("image-label")
}

/// Metadata of a group's image or labels beside their levels.
pub(super) fn besides(attributes: &Map<String, Value>) -> impl Iterator<Item = (&'static str, &Value)> {
    let all = root(attributes);
    ["omero", "image-label"].into_iter().filter_map(|name| Some((name, all.get(name)?)))
}

/// Names of channels, empty for those without; none at all where no channel has one.
pub(super) fn channels(attributes: &Map<String, Value>) -> Vec<String> {
    let channels = root(attributes).get("omero").and_then(|o| o.get("channels")).and_then(Value::as_array);
    let label = |channel: &Value| channel.get("label").and_then(Value::as_str).unwrap_or_default().to_owned();
    let labels: Vec<String> = channels.into_iter().flatten().map(label).collect();
    if labels.iter().all(String::is_empty) { Vec::new() } else { labels }
}

/// The pyramids of a group.
pub(super) fn pyramids(attributes: &Map<String, Value>) -> Vec<Multiscale> {
    let listed = root(attributes).get("multiscales").and_then(Value::as_array);
    listed.into_iter().flatten().take(MAX_PYRAMIDS).filter_map(pyramid).collect()
}

fn pyramid(value: &Value) -> Option<Multiscale> {
    let whole = value.get("coordinateTransformations").and_then(transform);
    let levels = value.get("datasets")?.as_array()?.iter().take(MAX_LEVELS).filter_map(|dataset| {
        let path = dataset.get("path")?.as_str()?.trim_matches('/').to_owned();
        let own = dataset.get("coordinateTransformations").and_then(transform);
        Some(OmeLevel { path, transform: combine(own, whole.as_ref()) })
    });
    let axes = value.get("axes").and_then(Value::as_array).into_iter().flatten().map(axis);
    Some(Multiscale {
        name: value.get("name").and_then(Value::as_str).filter(|n| !n.is_empty()).map(str::to_owned),
        axes: axes.collect(),
        levels: levels.collect(),
    })
}

/// Version 0.3 has names only; 0.4 and later have objects.
fn axis(value: &Value) -> OmeAxis {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    OmeAxis {
        name: value.as_str().map(str::to_owned).or_else(|| text("name")).unwrap_or_default(),
        kind: text("type"),
        units: text("unit").unwrap_or_default(),
    }
}

fn transform(value: &Value) -> Option<CoordinateTransform> {
    let steps = value.as_array()?;
    let numbers = |kind: &str| -> Option<Vec<f64>> {
        let step = steps.iter().find(|s| s.get("type").and_then(Value::as_str) == Some(kind))?;
        step.get(kind)?.as_array()?.iter().map(Value::as_f64).collect()
    };
    let scale = numbers("scale")?;
    let translation = numbers("translation").unwrap_or_else(|| vec![0.0; scale.len()]);
    let usable =
        scale.iter().all(|s| s.is_finite() && *s != 0.0) && translation.iter().all(|t| t.is_finite());
    (usable && translation.len() == scale.len()).then_some(CoordinateTransform { scale, translation })
}

/// The level's own map, then that of the whole pyramid.
fn combine(
    own: Option<CoordinateTransform>,
    whole: Option<&CoordinateTransform>,
) -> Option<CoordinateTransform> {
    match (own, whole) {
        (Some(mut own), Some(whole)) if own.scale.len() == whole.scale.len() => {
            for axis in 0..own.scale.len() {
                own.scale[axis] *= whole.scale[axis];
                own.translation[axis] = own.translation[axis] * whole.scale[axis] + whole.translation[axis];
            }
            Some(own)
        }
        (own, whole) => own.or_else(|| whole.cloned()),
    }
}

impl Multiscale {
    /// The axes of the finest array with `count` of them; versions without axes have the last of t, c, z, y, x.
    pub(super) fn axes(&self, count: usize) -> Vec<Axis> {
        self.axes_of(self.levels.first(), count)
    }

    /// The axes of a level.
    pub(super) fn axes_of(&self, level: Option<&OmeLevel>, count: usize) -> Vec<Axis> {
        const IMPLIED: [&str; 5] = ["t", "c", "z", "y", "x"];
        let implied = |axis: usize| OmeAxis {
            name: (axis + IMPLIED.len())
                .checked_sub(count)
                .and_then(|i| IMPLIED.get(i))
                .map_or_else(|| format!("dim{axis}"), |n| (*n).to_owned()),
            kind: None,
            units: String::new(),
        };
        let known = self.axes.len() == count;
        let listed = (0..count).map(|i| if known { self.axes[i].clone() } else { implied(i) });
        let own = level.and_then(|l| l.transform.as_ref()).filter(|t| t.scale.len() == count);
        listed
            .enumerate()
            .map(|(number, axis)| Axis {
                kind: kind(&axis),
                coordinates: own.map_or(Coordinates::Index, |t| Coordinates::Regular {
                    origin: t.translation[number],
                    step: t.scale[number],
                }),
                name: axis.name,
                units: axis.units,
            })
            .collect()
    }
}

fn kind(axis: &OmeAxis) -> AxisKind {
    match (axis.kind.as_deref(), axis.name.to_ascii_lowercase().as_str()) {
        (Some("time"), _) | (None, "t" | "time") => AxisKind::Time,
        (Some("channel"), _) | (None, "c" | "channel") => AxisKind::Channel,
        (Some("space") | None, "z") => AxisKind::Z,
        (Some("space") | None, "y") => AxisKind::Y,
        (Some("space") | None, "x") => AxisKind::X,
        _ => AxisKind::Other,
    }
}

/// Position of a level in space, and its factors relative to the first level: both from the transforms of the file, else from the shapes
/// alone.
pub(super) fn level_geometry(
    level: &OmeLevel,
    first: &OmeLevel,
    shape: &[u64],
    first_shape: &[u64],
    axes: &[Axis],
) -> (Vec<f64>, Affine) {
    let fits = |level: &OmeLevel| level.transform.clone().filter(|t| t.scale.len() == shape.len());
    if let (Some(own), Some(base)) = (fits(level), fits(first)) {
        let factor = own.scale.iter().zip(&base.scale).map(|(a, b)| (a / b).abs()).collect();
        return (factor, coarser(&affine(&base, axes), &base, &own, axes));
    }
    #[expect(clippy::cast_precision_loss, reason = "sizes of axes are far below 2^53")]
    let factor: Vec<f64> =
        first_shape.iter().zip(shape).map(|(&a, &b)| (a.max(1) as f64) / (b.max(1) as f64)).collect();
    // The center of the first coarse voxel is the center of the fine ones that it covers.
    let translation = factor.iter().map(|f| (f - 1.0) / 2.0).collect();
    let map = affine(&CoordinateTransform { scale: factor.clone(), translation }, axes);
    (factor, map)
}

/// Map of a level, made of the first level's map: an axis that is not to scale there is not to scale here.
fn coarser(first: &Affine, base: &CoordinateTransform, own: &CoordinateTransform, axes: &[Axis]) -> Affine {
    let (mut scale, mut shift) = ([1.0; 3], [0.0; 3]);
    for (place, number) in in_space(axes).into_iter().enumerate() {
        let Some(number) = number else { continue };
        scale[place] = own.scale[number] / base.scale[number];
        shift[place] = (own.translation[number] - base.translation[number]) / base.scale[number];
    }
    first.coarsened(scale, shift)
}

fn affine(transform: &CoordinateTransform, axes: &[Axis]) -> Affine {
    let axis = |number: usize| (&axes[number], transform.translation[number], transform.scale[number]);
    describe::world_of(in_space(axes).map(|number| number.map(axis))).world_from_voxel
}

/// Numbers of the axes x, y, z.
fn in_space(axes: &[Axis]) -> [Option<usize>; 3] {
    [AxisKind::X, AxisKind::Y, AxisKind::Z].map(|kind| axes.iter().position(|axis| axis.kind == kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Multiscale {
        let value: Value = serde_json::from_str(text).unwrap();
        pyramids(value.as_object().unwrap()).remove(0)
    }

    #[test]
    fn scales_and_translations_compose() {
        let pyramid = parse(
            r#"{"ome": {"multiscales": [{"axes": [{"name": "y", "type": "space", "unit": "um"}, {"name": "x", "type": "space", "unit": "um"}],
            "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 2]}]},
                         {"path": "1", "coordinateTransformations": [{"type": "scale", "scale": [2, 4]}, {"type": "translation", "translation": [0.5, 1]}]}],
            "coordinateTransformations": [{"type": "scale", "scale": [10, 10]}]}]}}"#,
        );
        let axes = pyramid.axes(2);
        assert_eq!(axes[1].coordinates, Coordinates::Regular { origin: 0.0, step: 20.0 });
        let (factor, map) = level_geometry(&pyramid.levels[1], &pyramid.levels[0], &[5, 5], &[10, 10], &axes);
        assert_eq!(factor, [2.0, 2.0]);
        assert_eq!(map, Affine::from_spacing([40.0, 20.0, 1.0], [10.0, 5.0, 0.0]));
        assert_eq!(describe::world_from_axes(&axes).units, "um");
    }

    #[test]
    fn old_versions_imply_axes_and_scales() {
        let pyramid = parse(r#"{"multiscales": [{"datasets": [{"path": "0"}, {"path": "1"}]}]}"#);
        let axes = pyramid.axes(5);
        let kinds: Vec<AxisKind> = axes.iter().map(|a| a.kind).collect();
        assert_eq!(kinds, [AxisKind::Time, AxisKind::Channel, AxisKind::Z, AxisKind::Y, AxisKind::X]);
        let (factor, map) = level_geometry(
            &pyramid.levels[1],
            &pyramid.levels[0],
            &[1, 1, 4, 5, 5],
            &[1, 1, 8, 10, 10],
            &axes,
        );
        assert_eq!(factor, [1.0, 1.0, 2.0, 2.0, 2.0]);
        assert_eq!(map, Affine::from_spacing([2.0; 3], [0.5; 3]));
        let three = parse(r#"{"multiscales": [{"axes": ["t", "y", "x"], "datasets": [{"path": "0"}]}]}"#);
        assert_eq!(three.axes(3)[0].kind, AxisKind::Time);
    }

    #[test]
    fn axes_of_other_units_are_not_on_the_scale_of_space() {
        let level = |scale: &str| {
            format!(
                r#"{{"path": "0", "coordinateTransformations": [{{"type": "scale", "scale": {scale}}}]}}"#
            )
        };
        let pyramid = parse(&format!(
            r#"{{"multiscales": [{{"axes": [{{"name": "z", "type": "space", "unit": "micrometer"}}, {{"name": "y", "type": "space", "unit": "hPa"}},
            {{"name": "x", "type": "space", "unit": "nanometer"}}], "datasets": [{}, {}]}}]}}"#,
            level("[0.002, 850, 8]"),
            level("[0.002, 1700, 16]")
        ));
        let axes = pyramid.axes(3);
        let place = |n: usize| {
            level_geometry(&pyramid.levels[n], &pyramid.levels[0], &[4; 3], &[4; 3], &axes).1.spacing()
        };
        let rounded = |spacing: [f64; 3]| spacing.map(|s| (s * 1e6).round() / 1e6);
        assert_eq!((rounded(place(0)), rounded(place(1))), ([8.0, 4.0, 2.0], [16.0, 8.0, 2.0]));
    }

    #[test]
    fn nonsense_is_no_transform() {
        let zero: Value = serde_json::from_str(r#"[{"type": "scale", "scale": [0, 1]}]"#).unwrap();
        assert_eq!(transform(&zero), None);
        let text: Value = serde_json::from_str(r#"[{"type": "scale", "scale": ["a"]}]"#).unwrap();
        assert_eq!(transform(&text), None);
    }
}
