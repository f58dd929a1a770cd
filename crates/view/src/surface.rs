//! Isosurfaces and the rendering mode, as parts of a view.

use array::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum number of isosurfaces of a view.
pub const MAX_SURFACES: usize = 20;

/// Isosurface: all positions at which the volume has one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Surface {
    /// Decoded value.
    pub value: f64,
    /// Color, sRGB.
    #[serde(alias = "colour")]
    pub color: [u8; 3],
    /// Fraction of the light from behind that the surface absorbs, 0 to 1.
    pub opacity: f64,
    /// Fields of a later version: preserved but ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Rendering mode of the volume, in addition to isosurfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Volume rendering with the transfer function.
    #[default]
    Composite,
    /// No volume rendering: only isosurfaces and slices.
    Surfaces,
    /// Largest value along each ray, in its color.
    Maximum,
    /// Smallest value along each ray, in its color.
    Minimum,
}

impl Mode {
    /// Returns true for [`Mode::Maximum`] and [`Mode::Minimum`].
    #[must_use]
    pub fn is_extreme(self) -> bool {
        matches!(self, Self::Maximum | Self::Minimum)
    }
}

impl Surface {
    /// Checks constraints beyond the types: number of surfaces, finite values, opacities.
    ///
    /// # Errors
    /// `Invalid`, telling what is wrong.
    pub fn check_all(surfaces: &[Self]) -> Result<()> {
        if surfaces.len() > MAX_SURFACES {
            return Err(Error::invalid(format!(
                "expected at most {MAX_SURFACES} isosurfaces, found {}",
                surfaces.len()
            )));
        }
        match surfaces.iter().find(|s| !(s.value.is_finite() && (0.0..=1.0).contains(&s.opacity))) {
            Some(bad) => Err(Error::invalid(format!(
                "expected isosurfaces of finite values with an opacity from 0 to 1, found {} with {}",
                bad.value, bad.opacity
            ))),
            None => Ok(()),
        }
    }
}
