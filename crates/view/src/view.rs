//! View, schema 1: everything that determines what a picture shows.
//!
//! A valid [`View`] has finite numbers, bounded lists and a valid camera. [`View::place_in`] checks it
//! against a data set. This file contains no rendering mathematics.

use std::collections::BTreeMap;

use array::{ArrayInfo, AxisKind, Dataset, Error, MAX_AXES, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::camera::{Projection, ViewCamera};
use crate::color::DEFAULT_BACKGROUND;
use crate::fields::FIELDS;
use crate::fields::field::FieldType;
use crate::fields::validate::{SCHEMA, check_fields, parse_fields};
use crate::first::first_array;
use crate::layout::{ViewGrid, ViewLayout};
use crate::sides::{shows_all_layers, thick_sides};
use crate::{ColorBy, Mode, SpaceAxis, Surface, Transfer, ViewLayer, ViewSlice};

/// Largest view as JSON text, including fields unknown to this version, bytes.
pub const MAX_VIEW_BYTES: usize = 64 << 10;
/// Longest name of an array or axis in a view, bytes.
const MAX_NAME_IN_VIEW_BYTES: usize = 4096;

/// Complete description of a picture. With `None` for camera or transfer function the viewer chooses a
/// default.
///
/// ```
/// use corridor_view::View;
/// let view = View::default();
/// let patch = serde_json::json!({"time": 3, "from_the_future": true});
/// let changed = view.merged(patch.as_object().unwrap()).unwrap();
/// assert_eq!((changed.time, changed.background), (3, view.background));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Version of the schema.
    #[serde(default = "schema")]
    pub v: u32,
    /// Name of the array; may be empty if the data set has only one.
    #[serde(default)]
    pub array: String,
    /// Index on the time axis.
    #[serde(default)]
    pub time: u64,
    /// Index on axes that are neither space nor time, by name; 0 by default.
    #[serde(default)]
    pub at: BTreeMap<String, u64>,
    /// Number of the only level to draw; with `None` the viewer chooses.
    #[serde(default)]
    pub level: Option<u8>,
    /// Camera; with `None` the viewer chooses one.
    #[serde(default)]
    pub camera: Option<ViewCamera>,
    /// Transfer function: colors and opacities of values.
    #[serde(default)]
    pub transfer: Option<Transfer>,
    /// Another array that gives the colors.
    #[serde(default, alias = "colour_by")]
    pub color_by: Option<ColorBy>,
    /// Isosurfaces, at most [`crate::MAX_SURFACES`].
    #[serde(default)]
    pub surfaces: Vec<Surface>,
    /// Slices, at most [`crate::MAX_SLICES`].
    #[serde(default)]
    pub slices: Vec<ViewSlice>,
    /// Layers over the array, in the order in which they are drawn, at most [`crate::MAX_LAYERS`].
    #[serde(default)]
    pub layers: Vec<ViewLayer>,
    /// Rendering mode of the volume, in addition to isosurfaces and slices.
    #[serde(default)]
    pub mode: Mode,
    /// Shading of the volume by the gradient of the values; surfaces are always shaded. With `None` the viewer
    /// chooses, as [`View::is_shaded`] does.
    #[serde(default)]
    pub shading: Option<bool>,
    /// Strength of the light on surfaces, and on the volume with `shading`: from 0, flat colors, to 1.
    #[serde(default = "full_strength")]
    pub lighting: f64,
    /// Ambient occlusion of the volume with `shading`: share of the light that places lose which opaque surroundings enclose,
    /// from 0 to 1.
    #[serde(default = "default_occlusion")]
    pub occlusion: f64,
    /// Depth cue of isosurfaces, and of the volume with `shading`: share of the light that the farthest places lose, from 0 to 1.
    #[serde(default = "default_depth_cue")]
    pub depth_cue: f64,
    /// Grids of an adaptive mesh as lines.
    #[serde(default)]
    pub grids: bool,
    /// Stereo pair, side by side, left eye on the left: the distance of the eyes as a share of that to the
    /// camera's target, above 0 and up to [`crate::MAX_PARALLAX`]. For perspective cameras only.
    #[serde(default)]
    pub stereo: Option<f64>,
    /// Part of the volume that is drawn: lowest and highest corner `[x, y, z]`, fractions from 0 to 1.
    #[serde(default)]
    pub clip: Option<[[f64; 3]; 2]>,
    /// Background color, sRGB.
    #[serde(default = "default_background")]
    pub background: [u8; 3],
    /// Arrangement of the pictures in a viewer; with `None` the viewer chooses. Pictures do not depend on it.
    #[serde(default)]
    pub layout: Option<ViewLayout>,
    /// Several pictures in a grid; with `None` there is one. Pictures do not depend on it.
    #[serde(default)]
    pub grid: Option<ViewGrid>,
    /// Fields of a later version: preserved but ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

fn schema() -> u32 {
    SCHEMA
}

fn full_strength() -> f64 {
    1.0
}

fn default_occlusion() -> f64 {
    0.7
}

fn default_depth_cue() -> f64 {
    0.4
}

fn default_background() -> [u8; 3] {
    DEFAULT_BACKGROUND
}

impl Default for View {
    fn default() -> Self {
        Self {
            v: SCHEMA,
            array: String::new(),
            time: 0,
            at: BTreeMap::new(),
            level: None,
            camera: None,
            transfer: None,
            color_by: None,
            surfaces: Vec::new(),
            slices: Vec::new(),
            layers: Vec::new(),
            mode: Mode::default(),
            shading: None,
            lighting: full_strength(),
            occlusion: default_occlusion(),
            depth_cue: default_depth_cue(),
            grids: false,
            stereo: None,
            clip: None,
            background: DEFAULT_BACKGROUND,
            layout: None,
            grid: None,
            other: Map::new(),
        }
    }
}

impl View {
    /// Returns a view of the default array.
    ///
    /// # Errors
    /// `Unsupported`, listing the arrays, if none can be drawn.
    pub fn first_of(dataset: &Dataset) -> Result<Self> {
        Ok(Self { array: first_array(dataset)?.name.clone(), ..Self::default() })
    }

    /// Parses a view from JSON text.
    ///
    /// # Errors
    /// `Invalid` for text that is not JSON of this schema, too long, or invalid; `Unsupported` for another
    /// version.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > MAX_VIEW_BYTES {
            return Err(too_long(text.len()));
        }
        Self::default().merged(&parse_fields(text)?)
    }

    /// Returns this view with the given fields replaced; null resets a field to its default.
    ///
    /// # Errors
    /// Those of [`View::parse`].
    pub fn merged(&self, fields: &Map<String, Value>) -> Result<Self> {
        if let Some(v) = fields.get("v")
            && v.as_u64() != Some(u64::from(SCHEMA))
        {
            return Err(Error::unsupported(format!("expected a view of version {SCHEMA}, found {v}")));
        }
        let Ok(Value::Object(mut all)) = serde_json::to_value(self) else {
            return Err(Error::internal("a view is always a JSON object"));
        };
        for (name, value) in with_present_names(fields) {
            if value.is_null() {
                all.remove(&name);
            } else {
                all.insert(name, value);
            }
        }
        check_fields(&all)?;
        let view: Self = serde_json::from_value(Value::Object(all)).map_err(not_a_view)?;
        view.check()?;
        Ok(view)
    }

    /// Returns the fields to merge when `fields` are requested: if they name another array, fields that only
    /// made sense for the old one are reset, unless they are given too. Colors by another array, and each layer
    /// of an array, are removed if they do not fit any more.
    #[must_use]
    pub fn with_consequences(&self, fields: &Map<String, Value>, dataset: &Dataset) -> Map<String, Value> {
        let mut all = self.with_consequences_of_array(&with_present_names(fields), dataset);
        let keeps_colors = || self.merged(&all).is_ok_and(|view| view.colors_in(dataset).is_ok());
        if self.color_by.is_some() && !all.contains_key("color_by") && !keeps_colors() {
            all.insert("color_by".into(), Value::Null);
        }
        if !self.layers.is_empty() && !all.contains_key("layers") {
            // Fields that make no view are refused later, with the reason.
            let view = self.merged(&all).ok();
            let fits = |layer: &ViewLayer| {
                let alone = |view: &Self| Self { layers: vec![layer.clone()], ..view.clone() };
                view.as_ref().is_none_or(|view| alone(view).layers_in(dataset).is_ok())
            };
            let kept: Vec<&ViewLayer> = self.layers.iter().filter(|layer| fits(layer)).collect();
            if kept.len() < self.layers.len() {
                all.insert("layers".into(), serde_json::to_value(&kept).unwrap_or_default());
            }
        }
        all
    }

    /// Returns the fields to merge when the data set `old` has become `new`. If the array of the view is
    /// gone, they name the default array of `new` and reset what does not fit it; if the array has another
    /// meaning now, they reset its colors and isosurfaces.
    #[must_use]
    pub fn in_changed(&self, old: &Dataset, new: &Dataset) -> Map<String, Value> {
        let mut fields = Map::new();
        let meaning_in = |dataset: &Dataset| dataset.find(&self.array).ok().map(|(_, array)| array.meaning);
        match (meaning_in(old), meaning_in(new)) {
            (_, None) => fields = self.moved_to_first(old, new),
            (Some(before), Some(after)) if before != after => {
                for name in ["transfer", "surfaces", "color_by"] {
                    fields.insert(name.into(), Value::Null);
                }
                if !after.is_continuous() && self.mode.is_extreme() {
                    fields.insert("mode".into(), Value::Null);
                }
            }
            _ => {}
        }
        self.with_consequences(&fields, new)
    }

    /// Returns the fields to merge if `new` does not have the array of this view any more; none if there is
    /// nothing else to draw.
    fn moved_to_first(&self, old: &Dataset, new: &Dataset) -> Map<String, Value> {
        let Ok(first) = first_array(new) else { return Map::new() };
        let before = old.find(&self.array).ok().map(|(_, array)| array);
        let mut fields = Map::new();
        fields.insert("array".into(), first.name.clone().into());
        fields.extend(self.outdated(before, first).into_iter().map(|name| (name.to_owned(), Value::Null)));
        fields
    }

    /// Returns `fields`; if they name another array, adds null for each field to reset, except `color_by`.
    fn with_consequences_of_array(
        &self,
        fields: &Map<String, Value>,
        dataset: &Dataset,
    ) -> Map<String, Value> {
        let mut all = fields.clone();
        let old = dataset.find(&self.array).ok();
        let new = fields.get("array").and_then(Value::as_str).and_then(|name| dataset.find(name).ok());
        let (Some((old_number, old)), Some((new_number, new))) = (old, new) else { return all };
        if old_number == new_number {
            return all;
        }
        for name in self.outdated(Some(old), new) {
            all.entry(name).or_insert(Value::Null);
        }
        // Without the surfaces and slices of the old array, nothing but these would be nothing at all.
        let is_bare = |view: &Self| view.surfaces.is_empty() && view.slices.is_empty();
        let loses_all = !is_bare(self) && self.merged(&all).is_ok_and(|view| is_bare(&view));
        if self.mode == Mode::Surfaces && loses_all {
            all.entry("mode").or_insert(Value::Null);
        }
        all
    }

    /// Returns whether the volume of an array is shaded: by default volumes of continuous values are, but not images,
    /// maps, labels and colors.
    #[must_use]
    pub fn is_shaded(&self, array: &ArrayInfo) -> bool {
        self.shading.unwrap_or_else(|| array.meaning.is_continuous() && !shows_all_layers(array))
    }

    /// Returns the names of the fields, except `color_by`, that only made sense for `old`, which may be
    /// unknown, if the view shows `new` now.
    fn outdated(&self, old: Option<&ArrayInfo>, new: &ArrayInfo) -> Vec<&'static str> {
        let mut forget = vec!["transfer", "surfaces", "at", "level"];
        if old.is_none_or(|old| !is_same_space(old, new)) {
            forget.extend(["camera", "clip", "slices"]);
        }
        let by_default = Self::default();
        if old.is_none_or(|old| by_default.is_shaded(old) != by_default.is_shaded(new)) {
            forget.push("shading");
        }
        let has_time = |a: &ArrayInfo| a.time_axis().is_none_or(|axis| self.time < a.shape()[axis]);
        if !has_time(new) {
            forget.push("time");
        }
        // The order of labels and colors has no meaning, so they have no extreme values.
        if !new.meaning.is_continuous() && self.mode.is_extreme() {
            forget.push("mode");
        }
        forget
    }

    /// Checks constraints beyond the types: finite numbers, bounded lists, a valid camera.
    ///
    /// # Errors
    /// `Invalid`, naming the field.
    pub fn check(&self) -> Result<()> {
        let colors = self.color_by.as_ref();
        let named = self.at.len().max(colors.map_or(0, |by| by.at.len()));
        if named > MAX_AXES {
            return Err(Error::invalid(format!("expected at most {MAX_AXES} axes in `at`, found {named}")));
        }
        let others = colors.into_iter().flat_map(|by| by.at.keys().chain([&by.array]));
        for name in self.at.keys().chain([&self.array]).chain(others) {
            if name.len() > MAX_NAME_IN_VIEW_BYTES {
                return Err(Error::invalid(format!(
                    "expected names up to {MAX_NAME_IN_VIEW_BYTES} bytes in a view, found {}",
                    name.len()
                )));
            }
        }
        if let Some(camera) = &self.camera {
            camera.check()?;
        }
        if let Some(transfer) = &self.transfer {
            transfer.check()?;
        }
        if let Some(by) = colors {
            by.check(self.mode)?;
        }
        Surface::check_all(&self.surfaces)?;
        ViewSlice::check_all(&self.slices)?;
        ViewLayer::check_all(&self.layers)?;
        self.grid.as_ref().map_or(Ok(()), ViewGrid::check)?;
        if let Some(clip) = &self.clip {
            check_clip(clip)?;
        }
        if self.stereo.is_some() {
            check_stereo(self.camera.as_ref())?;
        }
        // Lists are short here, so serializing is cheap; this bounds the fields of later versions.
        let written = serde_json::to_value(self).map_err(not_a_view)?;
        let size = written.to_string().len();
        if size > MAX_VIEW_BYTES { Err(too_long(size)) } else { check_numbers(&written) }
    }

    /// Returns the array that this view shows and the index per axis that is not spatial (0 on spatial ones).
    ///
    /// # Errors
    /// `NotFound` for an unknown array or axis, `Unsupported` for an array that cannot be drawn, `Invalid`
    /// for an index or level out of range.
    pub fn place_in<'a>(&self, dataset: &'a Dataset) -> Result<(u32, &'a ArrayInfo, Vec<u64>)> {
        let (number, info) = dataset.find(&self.array)?;
        if thick_sides(info) == 0 {
            let is_empty = info.shape().contains(&0);
            let what = if is_empty { "elements" } else { "several voxels along an axis of space (z, y, x)" };
            return Err(Error::unsupported(format!(
                "expected an array with {what} to draw, found shape {:?} of `{}`",
                info.shape(),
                info.name
            )));
        }
        if let Some(level) = self.level {
            info.level(level)?;
        }
        self.slices.iter().try_for_each(|slice| slice.check_in(info))?;
        Ok((number, info, indices(info, self.time, &self.at)?))
    }
}

/// Returns the index per axis of an array at a time and along axes that are neither space nor time; 0 on
/// spatial ones.
///
/// # Errors
/// `NotFound` for an unknown axis, `Invalid` for an index out of range.
pub(crate) fn indices(info: &ArrayInfo, time: u64, at: &BTreeMap<String, u64>) -> Result<Vec<u64>> {
    let known = |name: &str| info.axes.iter().any(|a| a.name == name);
    if let Some(unknown) = at.keys().find(|name| !known(name)) {
        let names: Vec<&str> = info.axes.iter().map(|a| a.name.as_str()).collect();
        return Err(Error::not_found(format!("expected one of the axes {names:?}, found `{unknown}`")));
    }
    let indices = info.axes.iter().zip(info.shape()).map(|(axis, &n)| {
        let index = match axis.kind {
            AxisKind::Time => time,
            kind if kind.is_spatial() => 0,
            _ => at.get(&axis.name).copied().unwrap_or(0),
        };
        if index < n {
            return Ok(index);
        }
        Err(Error::invalid(format!("expected an index below {n} on axis `{}`, found {index}", axis.name)))
    });
    indices.collect()
}

/// Returns true if the voxels of two arrays lie at the same positions.
pub(crate) fn is_same_space(a: &ArrayInfo, b: &ArrayInfo) -> bool {
    let sides = |i: &ArrayInfo| [SpaceAxis::X, SpaceAxis::Y, SpaceAxis::Z].map(|axis| axis.size_in(i));
    let map = |i: &ArrayInfo| i.levels.first().map(|l| l.world_from_voxel);
    sides(a) == sides(b) && map(a) == map(b)
}

/// Returns the fields with former names replaced by the present ones; the present name wins if both are
/// given.
fn with_present_names(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut all = fields.clone();
    for field in FIELDS {
        if let Some(value) = field.former.and_then(|former| all.remove(former)) {
            all.entry(field.name).or_insert(value);
        }
    }
    all
}

/// Checks the numbers of a view as JSON against the table of fields.
fn check_numbers(written: &Value) -> Result<()> {
    for field in FIELDS {
        let number = written.get(field.name).and_then(Value::as_f64);
        if let (FieldType::Number(range), Some(number)) = (*field.plain_type(), number)
            && !range.contains(number)
        {
            return Err(Error::invalid(format!(
                "expected {} for `{}`, found {number}",
                range.words(),
                field.name
            )));
        }
    }
    Ok(())
}

fn check_clip(clip: &[[f64; 3]; 2]) -> Result<()> {
    let [low, high] = clip;
    let fine = low.iter().zip(high).all(|(&l, &h)| (0.0..=1.0).contains(&l) && h <= 1.0 && l < h);
    if fine {
        return Ok(());
    }
    Err(Error::invalid(format!("expected a clip box from 0 to 1 with low below high, found {clip:?}")))
}

fn check_stereo(camera: Option<&ViewCamera>) -> Result<()> {
    match camera.map(|camera| camera.projection) {
        Some(Projection::Orthographic { .. }) => Err(Error::invalid(
            "expected a perspective camera for a stereo pair, found an orthographic one: parallel rays look the same to both eyes",
        )),
        _ => Ok(()),
    }
}

fn too_long(found: usize) -> Error {
    Error::invalid(format!("expected a view of at most {MAX_VIEW_BYTES} bytes of JSON, found {found}"))
}

fn not_a_view(e: impl std::fmt::Display) -> Error {
    Error::invalid(format!("expected a view of version {SCHEMA} in JSON: {e}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use array::Meaning;
    use serde_json::json;

    use super::*;

    /// The example of `docs/wire.md`, with numbers.
    fn documented() -> Value {
        json!({"v": 1, "array": "rho", "time": 0, "at": {"channel": 0}, "level": null,
            "camera": {"eye": [1.0, 2.0, 3.0], "target": [0.0, 0.0, 0.0], "up": [0.0, 0.0, 1.0],
                       "projection": {"perspective": {"fov_y_rad": 0.6}}},
            "transfer": {"range": [0.0, 1.0], "map": "viridis", "opacity": [[0.0, 0.0], [1.0, 0.5]]},
            "color_by": {"array": "temperature", "at": {"channel": 1}, "range": [270.0, 300.0], "map": "magma"},
            "surfaces": [{"value": 0.5, "color": [230, 190, 150], "opacity": 0.75}],
            "slices": [{"axis": "z", "at": 12.5}],
            "layers": [{"array": "mask", "visible": true, "opacity": 0.5, "labels": "filled"}], "mode": "composite", "shading": true, "lighting": 0.5, "occlusion": 0.6, "depth_cue": 0.2,
            "grids": true, "stereo": 0.04, "clip": null, "background": [0, 0, 0],
            "layout": "planes", "grid": {"rows": 2, "columns": 1, "tied": true, "cells": [{"time": 4}]}})
    }

    #[test]
    fn the_documented_view_is_read_and_written_unchanged() {
        let view = View::parse(&documented().to_string()).unwrap();
        assert_eq!(serde_json::to_value(&view).unwrap(), documented());
    }

    #[test]
    fn orthographic_is_the_other_projection() {
        let mut value = documented();
        value["camera"]["projection"] = json!({"orthographic": {"height_world": 20.0}});
        value["stereo"] = Value::Null;
        let view = View::parse(&value.to_string()).unwrap();
        assert_eq!(view.camera.unwrap().projection, Projection::Orthographic { height_world: 20.0 });
    }

    #[test]
    fn unknown_fields_survive() {
        let mut value = documented();
        value["cursor"] = json!([1, 2, 3]);
        value["camera"]["roll"] = json!(0.5);
        value["transfer"]["gamma"] = json!("x");
        let view = View::parse(&value.to_string()).unwrap();
        let changed = view.merged(json!({"time": 7}).as_object().unwrap()).unwrap();
        value["time"] = json!(7);
        assert_eq!(serde_json::to_value(&changed).unwrap(), value);
    }

    #[test]
    fn null_goes_back_to_the_default() {
        let view = View::parse(&documented().to_string()).unwrap();
        let forced = view.merged(json!({"level": 2}).as_object().unwrap()).unwrap();
        assert_eq!(forced.level, Some(2));
        assert_eq!(forced.merged(json!({"level": null}).as_object().unwrap()).unwrap(), view);
    }

    fn refused(field: &str, value: &Value) -> String {
        let mut all = documented();
        *all.pointer_mut(field).unwrap_or_else(|| panic!("no {field}")) = value.clone();
        View::parse(&all.to_string()).expect_err(field).to_string()
    }

    #[test]
    fn what_is_not_legal_is_refused_with_the_reason() {
        let points: Vec<Value> = (0..1000).map(|i| json!([i, 0.5])).collect();
        for (field, value, says) in [
            ("/v", json!(2), "version 1"),
            ("/camera/eye", json!([0.0, 0.0, 0.0]), "eye and target differ"),
            ("/camera/eye", json!([1e300, 0.0, 5.0]), "coordinates within"),
            ("/camera/eye", json!([1.0, 2.0]), "JSON"),
            ("/camera/projection", json!({"perspective": {"fov_y_rad": 4.0}}), "opening angle between"),
            ("/camera/projection", json!({"orthographic": {"height_world": 0.0}}), "above 0"),
            ("/transfer/range", json!([1.0, 1.0]), "low below high"),
            ("/transfer/opacity", json!(points), "points"),
            ("/transfer/opacity", json!([[0.0, 0.0], [0.5, 1.5]]), "0 to 1"),
            ("/transfer/opacity", json!([[1.0, 0.0], [0.0, 0.5]]), "ascending"),
            (
                "/surfaces",
                json!(vec![json!({"value": 1.0, "color": [0, 0, 0], "opacity": 1.0}); 21]),
                "20 isosurfaces",
            ),
            ("/color_by/range", json!([1.0, 0.0]), "low below high"),
            ("/color_by/array", json!("x".repeat(5000)), "names up to"),
            ("/mode", json!("minimum"), "extreme values show their own"),
            ("/surfaces/0/opacity", json!(1.5), "opacity from 0 to 1"),
            ("/surfaces/0/color", json!([0, 0, 256]), "JSON"),
            ("/slices", json!(vec![json!({"axis": "x", "at": 1.0}); 17]), "16 slices"),
            ("/slices/0/axis", json!("t"), "JSON"),
            ("/slices/0/at", json!(null), "JSON"),
            ("/mode", json!("sideways"), "JSON"),
            ("/lighting", json!(1.5), "a number from 0 to 1 for `lighting`"),
            ("/lighting", json!("bright"), "JSON"),
            ("/occlusion", json!(-0.1), "a number from 0 to 1 for `occlusion`"),
            ("/depth_cue", json!(2), "a number from 0 to 1 for `depth_cue`"),
            ("/stereo", json!(0.0), "above 0"),
            ("/stereo", json!(0.75), "up to 0.5"),
            ("/camera/projection", json!({"orthographic": {"height_world": 2.0}}), "perspective camera"),
            ("/clip", json!([[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]), "low below high"),
            ("/clip", json!([[0.0, 0.0, 0.0], [1.0, 2.0, 1.0]]), "0 to 1"),
            ("/background", json!([0, 0, 256]), "JSON"),
            ("/time", json!(-1), "JSON"),
            ("/array", json!("x".repeat(5000)), "names up to"),
        ] {
            let error = refused(field, &value);
            assert!(error.contains(says), "{field}: expected `{says}` in `{error}`");
        }
        let long = json!({ "junk": "x".repeat(MAX_VIEW_BYTES) });
        assert!(View::default().merged(long.as_object().unwrap()).is_err());
        assert!(View::parse("[1, 2]").is_err());
        assert!(View::parse(&"[".repeat(10_000)).is_err());
    }

    pub(crate) fn data(arrays: &[(&str, &[(AxisKind, u64)])]) -> Dataset {
        let arrays: Vec<Value> = arrays
            .iter()
            .map(|(name, axes)| {
                let shape: Vec<u64> = axes.iter().map(|a| a.1).collect();
                let axes: Vec<Value> = axes
                    .iter()
                    .map(|(kind, _)| json!({"name": format!("{kind:?}").to_lowercase(), "kind": kind, "units": "", "coordinates": "index"}))
                    .collect();
                json!({"name": name, "dtype": "|u1", "axes": axes, "units": "", "attributes": {}, "chunk": null,
                    "decoding": {"scale": 1.0, "offset": 0.0, "missing": [], "valid": null, "output": "|u1"},
                    "levels": [{"shape": shape, "block": shape, "origin": "stored", "factor": vec![1.0; shape.len()],
                                "world_from_voxel": array::Affine::IDENTITY}], "world_units": ""})
            })
            .collect();
        let id = array::DatasetId(1);
        serde_json::from_value(
            json!({"id": id, "generation": 0, "name": "d", "format": "test", "arrays": arrays}),
        )
        .unwrap()
    }

    #[test]
    fn the_first_volume_is_shown_first() {
        use AxisKind::{Channel, Other, Time, X, Y, Z};
        let data = data(&[
            ("lat", &[(Y, 90)]),
            ("ice", &[(Time, 12), (Y, 90), (X, 180)]),
            ("temperature", &[(Time, 12), (Channel, 2), (Z, 10), (Y, 90), (X, 180)]),
            ("plain", &[(Other, 5), (Other, 6), (Other, 7)]),
        ]);
        let view = View::first_of(&data).unwrap();
        assert_eq!(view.array, "temperature");
        let change = json!({"time": 11, "at": {"channel": 1}});
        let view = view.merged(change.as_object().unwrap()).unwrap();
        let (number, _, indices) = view.place_in(&data).unwrap();
        assert_eq!((number, indices), (2, vec![11, 1, 0, 0, 0]));
        for (wrong, says) in [
            (json!({"time": 12}), "below 12 on axis `time`"),
            (json!({"at": {"channel": 2}}), "below 2 on axis `channel`"),
            (json!({"at": {"member": 0}}), "`member`"),
            (json!({"level": 1}), "level below 1"),
            (json!({"array": "salt"}), "`salt`"),
        ] {
            let error = view.merged(wrong.as_object().unwrap()).unwrap().place_in(&data).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn another_array_forgets_what_belonged_to_the_old_one() {
        use AxisKind::{Time, X, Y, Z};
        let data = data(&[
            ("a", &[(Time, 9), (Z, 2), (Y, 3), (X, 4)]),
            ("same", &[(Time, 9), (Z, 2), (Y, 3), (X, 4)]),
            ("other", &[(Time, 5), (Z, 2), (Y, 3), (X, 5)]),
        ]);
        let mut all = documented();
        all["array"] = json!("a");
        all["time"] = json!(7);
        let view = View::parse(&all.to_string()).unwrap();
        let switched = |to: Value| {
            let fields = view.with_consequences(to.as_object().unwrap(), &data);
            view.merged(&fields).unwrap()
        };
        let same = switched(json!({"array": "same"}));
        assert_eq!((same.transfer, same.camera, same.time), (None, view.camera.clone(), 7));
        assert!(same.surfaces.is_empty(), "values of another array mean something else");
        assert_eq!(same.color_by, None, "an array needs no other one to show its own values");
        let other = switched(json!({"array": "other", "transfer": all["transfer"].clone()}));
        assert_eq!((other.transfer, other.camera, other.time), (view.transfer.clone(), None, 0));
        assert_eq!(switched(json!({"array": "a", "time": 3})).transfer, view.transfer);
        assert_eq!((same.slices, other.slices), (view.slices.clone(), Vec::new()), "places in another space");
    }

    #[test]
    fn what_labels_have_not_got_is_forgotten() {
        use AxisKind::{X, Y, Z};
        let axes = [(Z, 2), (Y, 3), (X, 4)];
        let mut data = data(&[("rho", &axes), ("cells", &axes)]);
        data.arrays[1].meaning = Meaning::Labels;
        let view = View::parse(&json!({"array": "rho", "mode": "maximum"}).to_string()).unwrap();
        let fields = view.with_consequences(json!({"array": "cells"}).as_object().unwrap(), &data);
        assert_eq!(view.merged(&fields).unwrap().mode, Mode::Composite);
        let view = view.merged(json!({"mode": "surfaces"}).as_object().unwrap()).unwrap();
        let fields = view.with_consequences(json!({"array": "cells"}).as_object().unwrap(), &data);
        assert_eq!(view.merged(&fields).unwrap().mode, Mode::Surfaces);
    }

    #[test]
    fn an_array_is_not_shown_by_surfaces_and_slices_that_it_has_not_got() {
        use AxisKind::{X, Y, Z};
        let axes = [(Z, 2), (Y, 3), (X, 4)];
        let data = data(&[("a", &axes), ("b", &axes), ("larger", &[(Z, 2), (Y, 3), (X, 5)])]);
        let surface = json!([{"value": 1, "color": [9, 9, 9], "opacity": 1}]);
        let slice = json!([{"axis": "z", "at": 1}]);
        let mode = |view: Value, to: Value| {
            let view = View::parse(&view.to_string()).unwrap();
            view.merged(&view.with_consequences(to.as_object().unwrap(), &data)).unwrap().mode
        };
        let by_surface = json!({"array": "a", "mode": "surfaces", "surfaces": surface});
        let by_slice = json!({"array": "a", "mode": "surfaces", "slices": slice});
        assert_eq!(mode(by_surface.clone(), json!({"array": "b"})), Mode::Composite);
        assert_eq!(mode(by_surface, json!({"array": "b", "surfaces": surface})), Mode::Surfaces);
        assert_eq!(mode(by_slice.clone(), json!({"array": "b"})), Mode::Surfaces, "the slice stays");
        assert_eq!(mode(by_slice, json!({"array": "larger"})), Mode::Composite);
    }

    #[test]
    fn where_values_mean_something_else_colors_are_chosen_anew() {
        use AxisKind::{X, Y, Z};
        let old = data(&[("rho", &[(Z, 2), (Y, 3), (X, 4)])]);
        let mut new = old.clone();
        new.arrays[0].meaning = Meaning::Labels;
        let transfer = json!({"range": [0, 9], "map": "magma", "opacity": [[0, 0], [9, 1]]});
        let given = json!({"array": "rho", "mode": "maximum", "transfer": transfer});
        let view = View::parse(&given.to_string()).unwrap();
        let changed = view.merged(&view.in_changed(&old, &new)).unwrap();
        assert_eq!((changed.mode, changed.transfer), (Mode::Composite, None));
        assert_eq!(view.merged(&view.in_changed(&old, &old)).unwrap(), view);
    }

    #[test]
    fn where_the_array_is_gone_the_first_one_is_shown() {
        use AxisKind::{Time, X, Y, Z};
        let axes = [(Time, 9), (Z, 2), (Y, 3), (X, 4)];
        let old = data(&[("rho", &axes), ("rho (color)", &axes)]);
        let mut all = documented();
        all["array"] = json!("rho (color)");
        all["time"] = json!(7);
        let view = View::parse(&all.to_string()).unwrap();
        let in_new = |new: &Dataset| view.merged(&view.in_changed(&old, new)).unwrap();

        let same = in_new(&data(&[("rho", &axes)]));
        assert_eq!((same.array.as_str(), same.time, same.transfer.as_ref()), ("rho", 7, None));
        assert_eq!(
            (same.camera, same.slices, same.background),
            (view.camera.clone(), view.slices.clone(), view.background)
        );
        assert!(same.surfaces.is_empty() && same.at.is_empty() && same.color_by.is_none());

        let new = data(&[("line", &[(X, 9)]), ("other", &[(Time, 5), (Z, 2), (Y, 3), (X, 5)])]);
        let other = in_new(&new);
        assert_eq!((other.array.as_str(), other.time, other.camera.as_ref()), ("other", 0, None));
        assert!(other.slices.is_empty());
        other.place_in(&new).unwrap();
        assert_eq!(in_new(&data(&[("line", &[(X, 9)])])).array, "line", "as a plot");
        assert_eq!(in_new(&data(&[("one", &[(X, 1)])])).array, "rho (color)", "nothing else can be drawn");
        // An array that was gone before is in neither.
        let lost = view.merged(json!({"array": "lost"}).as_object().unwrap()).unwrap();
        assert_eq!(lost.in_changed(&old, &new)["array"], "other");
    }

    #[test]
    fn colors_of_another_array_are_forgotten_where_they_do_not_fit() {
        use AxisKind::{X, Y, Z};
        let axes = [(Z, 2), (Y, 3), (X, 4)];
        let data = data(&[("a", &axes), ("b", &axes), ("c", &axes), ("larger", &[(Z, 2), (Y, 3), (X, 5)])]);
        let view = View::parse(&json!({"array": "a", "color_by": {"array": "b"}}).to_string()).unwrap();
        let asked = |to: Value| {
            let fields = view.with_consequences(to.as_object().unwrap(), &data);
            view.merged(&fields).map(|view| view.color_by.map(|by| by.array))
        };
        assert_eq!(asked(json!({"array": "c"})).unwrap().as_deref(), Some("b"));
        for other in [json!({"array": "b"}), json!({"array": "larger"}), json!({"mode": "maximum"})] {
            assert_eq!(asked(other.clone()).unwrap(), None, "{other}");
        }
        assert!(asked(json!({"mode": "maximum", "color_by": {"array": "b"}})).is_err());
        assert_eq!(asked(json!({"background": [1, 1, 1]})).unwrap().as_deref(), Some("b"));
        // An array that is gone since gives no colors, and holds nobody up.
        let gone = view.merged(json!({"color_by": {"array": "gone"}}).as_object().unwrap()).unwrap();
        let fields = gone.with_consequences(&Map::new(), &data);
        assert_eq!(gone.merged(&fields).unwrap().color_by, None);
    }

    #[test]
    fn who_goes_where_the_colors_are_sees_that_itself() {
        use AxisKind::{Channel, X, Y, Z};
        let data = data(&[("a", &[(Channel, 3), (Z, 2), (Y, 3), (X, 4)])]);
        let by = json!({"array": "a", "at": {"channel": 2}});
        let view = View::parse(&json!({"array": "a", "color_by": by}).to_string()).unwrap();
        for (channel, keeps) in [(1, true), (2, false)] {
            let fields = json!({"at": {"channel": channel}});
            let fields = view.with_consequences(fields.as_object().unwrap(), &data);
            let next = view.merged(&fields).unwrap();
            assert_eq!((next.at["channel"], next.color_by.is_some()), (channel, keeps));
            next.colors_in(&data).unwrap();
        }
    }

    #[test]
    fn slices_lie_in_the_array() {
        use AxisKind::{Other, Time, X, Y};
        let data =
            data(&[("map", &[(Time, 9), (Y, 3), (X, 4)]), ("plain", &[(Other, 5), (Other, 6), (Other, 7)])]);
        let place = |array: &str, axis: &str, at: f64| {
            let view = json!({"array": array, "slices": [{"axis": axis, "at": at}]});
            View::parse(&view.to_string()).unwrap().place_in(&data).map(drop)
        };
        for (array, axis, last) in
            [("map", "x", 3.0), ("map", "z", 0.0), ("plain", "z", 4.0), ("plain", "x", 6.0)]
        {
            place(array, axis, last).unwrap();
            for beyond in [-0.25, last + 0.5] {
                let error = place(array, axis, beyond).unwrap_err().to_string();
                assert!(error.contains(&format!("across `{axis}` from 0 to {last}")), "{error}");
            }
        }
    }
}
