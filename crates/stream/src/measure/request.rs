//! Parameters of the operations `pick` and `measure`, in JSON, bounded and checked.

use array::{Error, Result};
use render::ImageSize;
use serde::Deserialize;
use serde_json::{Map, Value};
use session::{MAX_NOTE_BYTES, ParticipantId, PictureSize};
use view::SpaceAxis;

/// Most positions of one request: a page asks for one, a program for a row of them.
pub const MAX_PICKS: usize = 64;
/// Most points of a measurement: more corners than a person clicks, and an arrow on every 32nd pixel of a screen.
pub const MAX_CORNERS: usize = 1024;
/// Largest coordinate in world space, as for cameras.
const MAX_WORLD: f64 = 1e15;

/// View that a request is about: that of a participant, with changed fields.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ViewChoice {
    /// Participant whose view it is; without one, the first view of participants.
    #[serde(default)]
    pub participant: Option<ParticipantId>,
    /// Fields that differ, as in notes.
    #[serde(default)]
    pub view: Map<String, Value>,
}

/// Parameters of `pick`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PickRequest {
    /// View of the picture.
    #[serde(flatten)]
    pub view: ViewChoice,
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// Positions `[column, row]`, in pixels from the upper left corner; the middle of the first pixel is `[0.5, 0.5]`.
    pub at: Vec<[f64; 2]>,
}

/// Parameters of `measure`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct MeasureRequest {
    /// View that the points belong to.
    #[serde(flatten)]
    pub view: ViewChoice,
    /// ViewMeasurement.
    #[serde(flatten)]
    pub measurement: ViewMeasurement,
}

/// Kind of a measurement, with points in world space.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ViewMeasurement {
    /// Values along a line.
    Profile {
        /// First point.
        from: [f64; 3],
        /// Last point.
        to: [f64; 3],
        /// Number of samples; by default as many as voxels are passed along the longest axis.
        #[serde(default)]
        samples: Option<u32>,
    },
    /// Values at points.
    Points {
        /// Points; those outside of the array have no value.
        points: Vec<[f64; 3]>,
    },
    /// Values over the time axis at a point.
    Series {
        /// Point.
        at: [f64; 3],
    },
    /// Values of an array with one long axis, for a plot.
    Plot {
        /// First index.
        #[serde(default)]
        from: u64,
        /// Number of indices; the rest of the axis if missing.
        #[serde(default)]
        count: Option<u64>,
        /// Most columns of the answer, at most [`super::plot::MAX_PLOT_COLUMNS`].
        columns: u32,
    },
    /// Statistics of the clipping box, or of the whole volume if there is none.
    Clip,
    /// Statistics of the box between two voxels, both included.
    Box {
        /// Points in the voxels at opposite corners.
        corners: [[f64; 3]; 2],
    },
    /// Statistics of the voxels of one layer whose centers lie in a polygon.
    Polygon {
        /// Axis across the layer; by default that of the array's only layer.
        #[serde(default)]
        axis: Option<SpaceAxis>,
        /// Corners in order; the layer is that of the first.
        corners: Vec<[f64; 3]>,
    },
}

impl PickRequest {
    /// Parses the parameters.
    ///
    /// # Errors
    /// `Invalid` if they are not the documented JSON; `TooLarge` for too many positions.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let request: Self = read(text, "pick")?;
        if request.at.is_empty() || request.at.len() > MAX_PICKS {
            let found = request.at.len();
            return Err(Error::too_large(format!("expected 1 to {MAX_PICKS} positions, found {found}")));
        }
        // Numbers in JSON are finite.
        let size = PictureSize::new(request.width, request.height);
        if (size.width(), size.height()) != (request.width, request.height) {
            return Err(Error::invalid(format!(
                "expected the size of a picture, found {} x {} pixels",
                request.width, request.height
            )));
        }
        Ok(request)
    }

    /// Returns the size of the picture.
    #[must_use]
    pub fn size(&self) -> ImageSize {
        ImageSize { width: self.width, height: self.height }
    }
}

impl MeasureRequest {
    /// Parses the parameters.
    ///
    /// # Errors
    /// `Invalid` if they are not the documented JSON or a point lies too far away; `TooLarge` for too many corners.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let request: Self = read(text, "measure")?;
        let points: Vec<[f64; 3]> = match &request.measurement {
            ViewMeasurement::Profile { from, to, .. } => vec![*from, *to],
            ViewMeasurement::Points { points } => points.clone(),
            ViewMeasurement::Series { at } => vec![*at],
            ViewMeasurement::Clip | ViewMeasurement::Plot { .. } => Vec::new(),
            ViewMeasurement::Box { corners } => corners.to_vec(),
            ViewMeasurement::Polygon { corners, .. } => corners.clone(),
        };
        if points.len() > MAX_CORNERS {
            let found = points.len();
            return Err(Error::too_large(format!("expected at most {MAX_CORNERS} points, found {found}")));
        }
        if points.iter().flatten().any(|v| !v.is_finite() || v.abs() > MAX_WORLD) {
            return Err(Error::invalid(format!("expected points within {MAX_WORLD:e} of the origin")));
        }
        Ok(request)
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a [u8], name: &str) -> Result<T> {
    if text.len() > MAX_NOTE_BYTES {
        let found = text.len();
        return Err(Error::too_large(format!("expected at most {MAX_NOTE_BYTES} bytes, found {found}")));
    }
    serde_json::from_slice(text)
        .map_err(|e| Error::invalid(format!("expected parameters of `{name}` in JSON: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_checked() {
        let good =
            br#"{"participant": 3, "view": {"time": 2}, "width": 640, "height": 480, "at": [[0.5, 7]]}"#;
        let request = PickRequest::parse(good).unwrap();
        assert_eq!((request.view.participant, request.at[0]), (Some(ParticipantId(3)), [0.5, 7.0]));
        for bad in [
            r#"{"width": 640, "height": 480, "at": []}"#,
            r#"{"width": 0, "height": 480, "at": [[1, 1]]}"#,
            r#"{"width": 640, "height": 480, "at": [[1]]}"#,
            r#"{"width": 640, "height": 480}"#,
            "no",
        ] {
            assert!(PickRequest::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        let line = br#"{"kind": "profile", "from": [0, 0, 0], "to": [1, 2, 3]}"#;
        assert!(matches!(
            MeasureRequest::parse(line).unwrap().measurement,
            ViewMeasurement::Profile { samples: None, .. }
        ));
        assert!(MeasureRequest::parse(br#"{"kind": "clip", "participant": 1}"#).is_ok());
        let plot = br#"{"kind": "plot", "columns": 800, "view": {"array": "level"}}"#;
        assert!(matches!(
            MeasureRequest::parse(plot).unwrap().measurement,
            ViewMeasurement::Plot { from: 0, count: None, columns: 800 }
        ));
        assert!(MeasureRequest::parse(br#"{"kind": "points", "points": [[0, 1, 2]]}"#).is_ok());
        for bad in [
            r#"{"kind": "volume"}"#.to_owned(),
            r#"{"kind": "series", "at": [0, 0, 1e16]}"#.to_owned(),
            format!(r#"{{"kind": "points", "points": {:?}}}"#, vec![[0.0; 3]; MAX_CORNERS + 1]),
            format!(r#"{{"kind": "polygon", "corners": {:?}}}"#, vec![[0.0; 3]; MAX_CORNERS + 1]),
        ] {
            assert!(MeasureRequest::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
