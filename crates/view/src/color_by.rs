//! Colors by another array, as part of a view.

use std::collections::BTreeMap;

use array::{ArrayInfo, Axis, AxisKind, Dataset, Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::transfer::{check_map, check_range};
use crate::view::{indices, is_same_space};
use crate::{Mode, View};

/// Colors of the volume, its isosurfaces and slices by the values of another array, or of the same array at
/// other indices along an axis such as channels. Visibility and opacity still follow the view's own array.
/// Voxels without a value in the other array are not drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "colors by an array, such as {\"array\": NAME}")]
pub struct ColorBy {
    /// Name of the array; its voxels must lie at the same positions as those of the view's own.
    pub array: String,
    /// Index on its axes that are neither space nor time, by name; by default as in the view.
    #[serde(default)]
    pub at: BTreeMap<String, u64>,
    /// Decoded values at the ends of the color map; `None` lets the viewer choose.
    #[serde(default)]
    pub range: Option<[f64; 2]>,
    /// Name of the color map; `None` lets the viewer choose.
    #[serde(default)]
    pub map: Option<String>,
    /// Fields of a later version: preserved but ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl ColorBy {
    /// Checks constraints beyond the types.
    ///
    /// # Errors
    /// `Invalid`, naming the field.
    pub(crate) fn check(&self, mode: Mode) -> Result<()> {
        if mode.is_extreme() {
            return Err(Error::invalid(
                "expected mode `composite` or `surfaces` to color by another array: extreme values show their own",
            ));
        }
        self.range.map_or(Ok(()), check_range)?;
        self.map.as_deref().map_or(Ok(()), check_map)
    }
}

impl View {
    /// Returns the array that gives the colors and the index per axis that is not spatial; `None` if the
    /// view's own array gives them.
    ///
    /// # Errors
    /// `NotFound` for an unknown array or axis, `Invalid` for an index out of range, for voxels at other
    /// positions, and for the array and indices that the view shows anyway.
    pub fn colors_in<'a>(&self, dataset: &'a Dataset) -> Result<Option<(u32, &'a ArrayInfo, Vec<u64>)>> {
        let Some(by) = &self.color_by else { return Ok(None) };
        let (own_number, own, own_indices) = self.place_in(dataset)?;
        let (number, info) = dataset.find(&by.array).map_err(|e| e.context("`color_by`"))?;
        let known = |name: &str| info.axes.iter().any(|axis| axis.name == name);
        let is_shared = |axis: &Axis| axis.kind == AxisKind::Time || axis.kind.is_spatial();
        if let Some(axis) = info.axes.iter().find(|axis| is_shared(axis) && by.at.contains_key(&axis.name)) {
            return Err(Error::invalid(format!(
                "expected in `color_by` a place on axes that are neither space nor time, found `{}`, where colors lie as all else",
                axis.name
            )));
        }
        let shared = self.at.iter().filter(|(name, _)| known(name));
        let at = shared.chain(&by.at).map(|(name, index)| (name.clone(), *index)).collect();
        let indices = indices(info, self.time, &at).map_err(|e| e.context("`color_by`"))?;
        if !is_same_space(own, info) {
            let shapes = format!("{:?} and {:?}", own.shape(), info.shape());
            return Err(Error::invalid(format!(
                "expected an array to color by whose voxels lie where those of `{}` do, found `{}` of other sides, spacing or origin (shapes {shapes})",
                own.name, info.name,
            )));
        }
        if (number, &indices) == (own_number, &own_indices) {
            return Err(Error::invalid(format!(
                "expected another array than `{}` to color it by, or another place in it",
                own.name
            )));
        }
        Ok(Some((number, info, indices)))
    }
}

#[cfg(test)]
mod tests {
    use array::AxisKind::{Channel, Time, X, Y, Z};
    use serde_json::json;

    use super::*;
    use crate::view::tests::data;

    fn colors(view: &Value) -> Result<Option<(u32, Vec<u64>)>> {
        let data = data(&[
            ("rho", &[(Time, 9), (Z, 2), (Y, 3), (X, 4)]),
            ("mask", &[(Z, 2), (Y, 3), (X, 4)]),
            ("cells", &[(Time, 9), (Channel, 3), (Z, 2), (Y, 3), (X, 4)]),
            ("other", &[(Z, 2), (Y, 3), (X, 5)]),
        ]);
        let view = View::parse(&view.to_string())?;
        Ok(view.colors_in(&data)?.map(|(number, _, indices)| (number, indices)))
    }

    #[test]
    fn colors_come_from_the_same_time_and_place() {
        let by = |by: Value| colors(&json!({"array": "rho", "time": 4, "color_by": by}));
        assert_eq!(by(Value::Null).unwrap(), None);
        assert_eq!(by(json!({"array": "mask"})).unwrap(), Some((1, vec![0, 0, 0])));
        assert_eq!(by(json!({"array": "cells"})).unwrap(), Some((2, vec![4, 0, 0, 0, 0])));
        assert_eq!(
            by(json!({"array": "cells", "at": {"channel": 2}})).unwrap(),
            Some((2, vec![4, 2, 0, 0, 0]))
        );
    }

    #[test]
    fn another_channel_of_the_same_array_will_do() {
        let by = |by: Value| colors(&json!({"array": "cells", "at": {"channel": 1}, "color_by": by}));
        assert_eq!(
            by(json!({"array": "cells", "at": {"channel": 2}})).unwrap(),
            Some((2, vec![0, 2, 0, 0, 0]))
        );
        assert_eq!(by(json!({"array": "rho"})).unwrap(), Some((0, vec![0; 4])), "which has no channels");
        let same = by(json!({"array": "cells"})).unwrap_err().to_string();
        assert!(same.contains("another array than `cells`"), "{same}");
    }

    #[test]
    fn what_cannot_color_is_refused_with_the_reason() {
        for (field, value, says) in [
            ("array", json!("salt"), "`salt`"),
            ("array", json!("other"), "whose voxels lie where those of `rho` do"),
            ("array", json!("rho"), "another array than `rho`"),
            ("at", json!({"member": 1}), "`member`"),
            ("at", json!({"z": 1}), "neither space nor time, found `z`"),
            ("range", json!([1.0, 1.0]), "low below high"),
            ("range", json!([1.0]), "JSON"),
            ("map", json!(""), "color map"),
        ] {
            let mut by = json!({"array": "mask"});
            by[field] = value;
            let error = colors(&json!({"array": "rho", "color_by": by})).unwrap_err().to_string();
            assert!(error.contains(says), "{field}: expected `{says}` in `{error}`");
        }
        let extreme = json!({"array": "rho", "mode": "maximum", "color_by": {"array": "mask"}});
        assert!(colors(&extreme).unwrap_err().to_string().contains("extreme values show their own"));
    }
}
