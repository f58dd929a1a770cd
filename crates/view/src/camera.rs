//! Camera, as part of a view.

use array::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::fields::bounds::{MAX_FOV_RAD, MAX_WORLD, MIN_FOV_RAD};

/// Projection of the scene.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Projection {
    /// Perspective projection.
    Perspective {
        /// Vertical opening angle, radians, above 0 and below pi.
        fov_y_rad: f64,
    },
    /// Orthographic projection.
    Orthographic {
        /// Height of the picture in world units.
        height_world: f64,
    },
}

/// Camera of a picture, in world space.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewCamera {
    /// Position of the eye, `[x, y, z]`.
    pub eye: [f64; 3],
    /// Point that the camera looks at, `[x, y, z]`.
    pub target: [f64; 3],
    /// Approximate up direction in the picture, `[x, y, z]`, of any length.
    pub up: [f64; 3],
    /// Perspective or orthographic projection.
    pub projection: Projection,
    /// Fields of a later version: preserved but ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl ViewCamera {
    /// Checks its numbers: finite, of a direction, with a valid projection.
    ///
    /// # Errors
    /// `Invalid`, telling what is wrong.
    pub(crate) fn check(&self) -> Result<()> {
        let all = [self.eye, self.target, self.up];
        if all.iter().flatten().any(|v| !v.is_finite() || v.abs() > MAX_WORLD) {
            return Err(Error::invalid(format!(
                "expected camera coordinates within {MAX_WORLD:e}, found {all:?}"
            )));
        }
        if self.eye == self.target {
            return Err(Error::invalid("expected a camera whose eye and target differ, found them the same"));
        }
        let fine = match self.projection {
            Projection::Perspective { fov_y_rad } => fov_y_rad > MIN_FOV_RAD && fov_y_rad < MAX_FOV_RAD,
            Projection::Orthographic { height_world } => height_world > 0.0 && height_world <= MAX_WORLD,
        };
        if fine {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "expected an opening angle between {MIN_FOV_RAD} and {MAX_FOV_RAD}, or a height above 0, found {:?}",
            self.projection
        )))
    }
}
