//! Layers over the drawn array, as part of a view: other arrays and geometry, in the order in which they are
//! drawn.

use std::collections::BTreeMap;

use array::{ArrayInfo, AxisKind, Dataset, Error, MAX_AXES, Meaning, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::color::hex_color;
use crate::fields::bounds::{MAX_LAYER_SIZE_PIXELS, MAX_LAYERS, MIN_LAYER_SIZE_PIXELS};
use crate::sides::thick_sides;
use crate::view::indices;
use crate::{Transfer, View};

/// Longest name of a layer, of its array or file, or of a vertex value, bytes.
const MAX_LAYER_NAME_BYTES: usize = 4096;
/// Name for people of the outline of coasts that every node has, and its name as geometry.
const COASTS: &str = "coasts";
const COASTS_NAME: &str = "coasts.geojson";
/// Endings of files that hold geometry, in lower case: a layer written as such a name is geometry.
const GEOMETRY_ENDINGS: [&str; 16] = [
    "ply",
    "stl",
    "vtp",
    "glb",
    "gii",
    "csv",
    "tsv",
    "geojson",
    "shp",
    "pial",
    "white",
    "inflated",
    "sphere",
    "orig",
    "smoothwm",
    "midthickness",
];

/// One layer: an array or geometry. Exactly one of `array` and `geometry` is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "a layer, such as {\"array\": NAME, \"opacity\": 0.5}")]
pub struct ViewLayer {
    /// Name of the array, in the data set of the view or in one that was opened beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
    /// Name of the geometry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub geometry: Option<String>,
    /// Name in lists; that of the array or geometry if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Whether the layer is drawn.
    #[serde(default = "yes")]
    pub visible: bool,
    /// Opacity of the whole layer, 0 to 1.
    #[serde(default = "opaque")]
    pub opacity: f64,
    /// Array: index on its axes that are neither space nor time, by name; by default as in the view.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: BTreeMap<String, u64>,
    /// Colors by value of the array, or of the vertices; with `None` they are chosen to suit the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
    /// Array: its values are labels, drawn like this; with `None` it depends on the array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<LayerLabels>,
    /// Geometry: drawing of faces; with `None` they are solid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn: Option<LayerFaces>,
    /// Geometry: color where no values give colors, sRGB; with `None` the viewer chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<[u8; 3]>,
    /// Geometry: name of the values of vertices that give the colors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Geometry: width of points and lines, pixels; with `None` the viewer chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<f64>,
    /// Fields of a later version: preserved but ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Drawing of the labels of an array layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayerLabels {
    /// All voxels of a label.
    Filled,
    /// Only voxels beside another label.
    Outlined,
}

/// Drawing of the faces of a geometry layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayerFaces {
    /// Lit faces.
    #[default]
    Solid,
    /// Edges of faces.
    Wireframe,
    /// Corners of faces.
    Points,
}

fn yes() -> bool {
    true
}

fn opaque() -> f64 {
    1.0
}

impl Default for ViewLayer {
    fn default() -> Self {
        Self {
            array: None,
            geometry: None,
            name: String::new(),
            visible: true,
            opacity: 1.0,
            at: BTreeMap::new(),
            transfer: None,
            labels: None,
            drawn: None,
            color: None,
            by: None,
            size: None,
            other: Map::new(),
        }
    }
}

impl ViewLayer {
    /// Returns the name for lists and messages.
    #[must_use]
    pub fn title(&self) -> &str {
        let own = Some(self.name.as_str()).filter(|name| !name.is_empty());
        own.or(self.array.as_deref()).or(self.geometry.as_deref()).unwrap_or_default()
    }

    /// Returns true if pictures show something of the layer.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.visible && self.opacity > 0.0
    }

    /// Checks constraints beyond the types: number of layers, one source each, finite numbers, bounded names.
    ///
    /// # Errors
    /// `Invalid`, telling what is wrong.
    pub(crate) fn check_all(layers: &[Self]) -> Result<()> {
        if layers.len() > MAX_LAYERS {
            let found = layers.len();
            return Err(Error::invalid(format!("expected at most {MAX_LAYERS} layers, found {found}")));
        }
        layers.iter().try_for_each(Self::check)
    }

    fn check(&self) -> Result<()> {
        if self.array.is_some() == self.geometry.is_some() {
            return Err(Error::invalid("expected a layer with either `array` or `geometry`"));
        }
        if !(0.0..=1.0).contains(&self.opacity) {
            let (title, found) = (self.title(), self.opacity);
            return Err(Error::invalid(format!(
                "expected an opacity from 0 to 1 of the layer `{title}`, found {found}"
            )));
        }
        let sizes = MIN_LAYER_SIZE_PIXELS..=MAX_LAYER_SIZE_PIXELS;
        if let Some(found) = self.size.filter(|size| !sizes.contains(size)) {
            return Err(Error::invalid(format!(
                "expected a size from {MIN_LAYER_SIZE_PIXELS} to {MAX_LAYER_SIZE_PIXELS} pixels of the layer `{}`, found {found}",
                self.title()
            )));
        }
        let names = self.array.iter().chain(&self.geometry).chain(&self.by).chain([&self.name]);
        let is_long = |name: &String| name.len() > MAX_LAYER_NAME_BYTES;
        if self.at.len() > MAX_AXES || names.chain(self.at.keys()).any(is_long) {
            return Err(Error::invalid(format!(
                "expected layers with at most {MAX_AXES} axes in `at` and names up to {MAX_LAYER_NAME_BYTES} bytes"
            )));
        }
        self.transfer.as_ref().map_or(Ok(()), Transfer::check)
    }

    /// Parses a layer as people write it: `NAME[,opacity=0.5][,labels=outlined][,name=TEXT]...`; a name that
    /// ends as files of geometry do is geometry, as is `coasts`; any other an array.
    ///
    /// # Errors
    /// `Invalid`, telling what is expected.
    pub(crate) fn written(text: &str) -> Result<Value> {
        let bad = |part: &str| {
            Error::invalid(format!(
                "expected a layer such as `segmentation`, `segmentation,opacity=0.5,labels=outlined`, `lung.ply,color=#c03020` or JSON as in a view, found `{part}`"
            ))
        };
        let (mut rest, mut members) = (text.trim(), Map::new());
        while let Some((before, last)) = rest.rsplit_once(',') {
            let Some((name, value)) = last.split_once('=') else { break };
            let value = member(name.trim(), value.trim()).ok_or_else(|| bad(last))?;
            members.entry(name.trim()).or_insert(value);
            rest = before;
        }
        if rest.is_empty() {
            return Err(bad(text));
        }
        let rest = if rest == COASTS { COASTS_NAME } else { rest };
        let ending = rest.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let is_geometry = ending.is_some_and(|ending| GEOMETRY_ENDINGS.contains(&ending.as_str()));
        members.insert(if is_geometry { "geometry" } else { "array" }.into(), rest.into());
        Ok(Value::Object(members))
    }
}

/// Array of a layer, with its place in a data set.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedLayer<'a> {
    /// Index of the layer in the view.
    pub layer: usize,
    /// Number of the array in the data set.
    pub number: u32,
    /// Description of the array.
    pub info: &'a ArrayInfo,
    /// Index per axis that is not spatial; 0 on spatial ones.
    pub indices: Vec<u64>,
}

impl View {
    /// Returns the arrays of the layers that are shown, in their order.
    ///
    /// # Errors
    /// `NotFound` for an unknown array or axis; `Invalid` for an index out of range, for units of length other
    /// than those of the view's own array, and for values that cannot be drawn as the layer says.
    pub fn layers_in<'a>(&self, dataset: &'a Dataset) -> Result<Vec<PlacedLayer<'a>>> {
        let shown = self.layers.iter().enumerate().filter(|(_, layer)| layer.is_shown());
        let placed = shown.filter_map(|(number, layer)| Some((number, layer, layer.array.as_deref()?)));
        placed.map(|(number, layer, array)| self.placed(number, layer, array, dataset)).collect()
    }

    fn placed<'a>(
        &self,
        layer_number: usize,
        layer: &ViewLayer,
        array: &str,
        dataset: &'a Dataset,
    ) -> Result<PlacedLayer<'a>> {
        let title = || format!("layer `{}`", layer.title());
        let (_, own) = dataset.find(&self.array)?;
        let (number, info) = dataset.find(array).map_err(|e| e.context(title()))?;
        if thick_sides(info) < 2 || info.meaning == Meaning::Text {
            return Err(Error::invalid(format!(
                "expected an array of numbers with several voxels along two or three axes of space as {}, found shape {:?}",
                title(),
                info.shape()
            )));
        }
        let units = [&own.world_units, &info.world_units];
        if units.iter().all(|units| !units.is_empty()) && units[0] != units[1] {
            return Err(Error::invalid(format!(
                "the {} has lengths in `{}`, but `{}` has lengths in `{}`: only arrays with the same units lie in one space",
                title(),
                units[1],
                own.name,
                units[0]
            )));
        }
        if layer.labels.is_some() && info.dtype.element().is_float() {
            return Err(Error::invalid(format!(
                "labels are whole numbers, but the {} has values of type `{}`; drop `labels`",
                title(),
                info.dtype
            )));
        }
        let known = |name: &str| info.axes.iter().any(|axis| axis.name == name);
        let shared = self.at.iter().filter(|(name, _)| known(name));
        let at = shared.chain(&layer.at).map(|(name, index)| (name.clone(), *index)).collect();
        // An array of a single time step belongs to all of them.
        let has_times = info.axes.iter().zip(info.shape()).any(|(a, &n)| a.kind == AxisKind::Time && n > 1);
        let time = if has_times { self.time } else { 0 };
        let indices = indices(info, time, &at).map_err(|e| e.context(title()))?;
        Ok(PlacedLayer { layer: layer_number, number, info, indices })
    }
}

/// Parses a member of a layer as people write it; `None` if there is no such member, or for other values.
fn member(name: &str, value: &str) -> Option<Value> {
    match name {
        "name" | "by" => Some(value.into()),
        "labels" | "drawn" => Some(value.into()),
        "opacity" | "size" => value.parse::<f64>().ok().filter(|v| v.is_finite()).map(Value::from),
        "visible" => value.parse::<bool>().ok().map(Value::from),
        "color" => hex_color(value).map(|color| json!(color)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::View;

    use super::*;

    fn layers(layers: &Value) -> Result<Vec<ViewLayer>> {
        Ok(View::parse(&json!({ "layers": layers }).to_string())?.layers)
    }

    #[test]
    fn layers_keep_their_order_and_write_what_they_say() {
        let all = json!([
            {"array": "seg", "visible": true, "opacity": 0.5, "labels": "outlined"},
            {"geometry": "lung.ply", "name": "lung", "visible": false, "opacity": 1.0, "drawn": "wireframe",
             "color": [1, 2, 3], "by": "thickness", "size": 2.0, "from_the_future": 1},
        ]);
        let read = layers(&all).unwrap();
        assert_eq!(read.iter().map(ViewLayer::title).collect::<Vec<_>>(), ["seg", "lung"]);
        assert_eq!(serde_json::to_value(&read).unwrap(), all);
        assert_eq!(layers(&json!([{"array": "seg"}])).unwrap()[0].opacity, 1.0);
        assert!(layers(&json!([{"array": "seg", "transfer": null, "by": null}])).is_ok());
    }

    #[test]
    fn what_is_no_layer_is_refused_with_the_reason() {
        let many = vec![json!({"array": "a"}); MAX_LAYERS + 1];
        for (wrong, says) in [
            (json!(many), "at most 8 layers"),
            (json!([{"name": "x"}]), "either `array` or `geometry`"),
            (json!([{"array": "a", "geometry": "b.ply"}]), "either `array` or `geometry`"),
            (json!([{"array": "a", "opacity": 1.5}]), "opacity from 0 to 1 of the layer `a`"),
            (
                json!([{"array": "a", "labels": "dotted"}]),
                "one of `filled`, `outlined` as `layers[0].labels`",
            ),
            (json!([{"geometry": "a", "size": 0}]), "size from 0.5 to 64"),
            (json!([{"array": "a".repeat(5000)}]), "names up to"),
            (json!("a"), "a list"),
        ] {
            let error = layers(&wrong).unwrap_err().to_string();
            assert!(error.contains(says), "expected `{says}` in `{error}`");
        }
    }

    #[test]
    fn layers_are_found_in_a_data_set_or_refused_with_the_reason() {
        use array::AxisKind::{Channel, Time, X, Y, Z};
        let mut data = crate::view::tests::data(&[
            ("ct", &[(Time, 9), (Z, 8), (Y, 8), (X, 8)]),
            ("seg", &[(Time, 1), (Channel, 2), (Z, 4), (Y, 4), (X, 5)]),
            ("line", &[(X, 9)]),
            ("far", &[(Z, 4), (Y, 4), (X, 5)]),
        ]);
        data.arrays[0].world_units = "mm".into();
        data.arrays[3].world_units = "um".into();
        data.arrays[3].dtype = "<f4".parse().unwrap();
        let found = |layers: Value| {
            let view = View::parse(&json!({"array": "ct", "time": 3, "layers": layers}).to_string())?;
            let placed = view.layers_in(&data)?;
            Ok::<_, Error>(placed.into_iter().map(|p| (p.layer, p.number, p.indices)).collect::<Vec<_>>())
        };
        let layers = json!([
            {"array": "seg", "visible": false}, {"array": "seg", "at": {"channel": 1}}, {"geometry": "a.ply"},
            {"array": "nowhere", "opacity": 0},
        ]);
        assert_eq!(found(layers).unwrap(), [(1, 1, vec![0, 1, 0, 0, 0])]);
        for (layer, says) in [
            (json!({"array": "nowhere"}), "layer `nowhere`"),
            (json!({"array": "line"}), "two or three axes of space"),
            (json!({"array": "seg", "at": {"channel": 2}}), "an index below 2"),
            (json!({"array": "far"}), "lengths in `um`, but `ct` has lengths in `mm`"),
        ] {
            let error = found(json!([layer])).unwrap_err().to_string();
            assert!(error.contains(says), "expected `{says}` in `{error}`");
        }
        data.arrays[3].world_units = "mm".into();
        let view =
            View::parse(r#"{"array": "ct", "layers": [{"array": "far", "labels": "filled"}]}"#).unwrap();
        assert!(view.layers_in(&data).unwrap_err().to_string().contains("labels are whole numbers"));
        let fields = json!({"array": "seg"});
        let changed = View { array: "ct".into(), layers: view.layers, ..View::default() };
        assert!(changed.with_consequences(fields.as_object().unwrap(), &data).contains_key("layers"));
    }

    #[test]
    fn only_layers_that_do_not_fit_any_more_are_removed() {
        use array::AxisKind::{Time, X, Y, Z};
        let space = [(Z, 4), (Y, 4), (X, 5)];
        let over_time = |times| [&[(Time, times)], &space[..]].concat();
        let (long, short) = (over_time(9), over_time(3));
        let mut data =
            crate::view::tests::data(&[("ct", &long), ("short", &short), ("seg", &space), ("um", &space)]);
        data.arrays[3].world_units = "um".into();
        let layers = json!([
            {"geometry": "lung.ply", "color": [1, 2, 3]}, {"array": "short", "opacity": 0.5},
            {"array": "seg", "labels": "filled"},
        ]);
        let view = View::parse(&json!({"array": "ct", "time": 2, "layers": layers}).to_string()).unwrap();
        let left = |fields: Value| {
            let view = view.merged(&view.with_consequences(fields.as_object().unwrap(), &data)).unwrap();
            view.layers_in(&data).unwrap();
            view.layers.iter().map(|layer| layer.title().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(left(json!({"time": 1})), ["lung.ply", "short", "seg"]);
        assert_eq!(left(json!({"time": 5})), ["lung.ply", "seg"], "`short` has three time steps");
        data.arrays.iter_mut().take(3).for_each(|array| array.world_units = "mm".into());
        let left = |fields: Value| {
            let view = view.merged(&view.with_consequences(fields.as_object().unwrap(), &data)).unwrap();
            view.layers.iter().map(|layer| layer.title().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(left(json!({"array": "um"})), ["lung.ply"], "its lengths have other units");
    }

    #[test]
    fn layers_are_read_as_people_write_them() {
        for (text, read) in [
            ("seg", json!({"array": "seg"})),
            ("seg.nii.gz", json!({"array": "seg.nii.gz"})),
            ("a,b", json!({"array": "a,b"})),
            (
                "seg, opacity=0.5, labels=outlined",
                json!({"array": "seg", "opacity": 0.5, "labels": "outlined"}),
            ),
            ("coasts,opacity=0.5", json!({"geometry": "coasts.geojson", "opacity": 0.5})),
            (
                "Lung.PLY,color=#0a0b0c,size=3",
                json!({"geometry": "Lung.PLY", "color": [10, 11, 12], "size": 3.0}),
            ),
        ] {
            assert_eq!(ViewLayer::written(text).unwrap(), read, "{text}");
        }
        for wrong in ["", "seg,opacity=much", "seg,colour=1", ",opacity=1"] {
            assert!(ViewLayer::written(wrong).is_err(), "{wrong}");
        }
    }
}
