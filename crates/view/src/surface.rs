//! Isosurfaces as a view carries them, and what is drawn besides.

use array::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most isosurfaces in a view.
pub const MAX_SURFACES: usize = 20;

/// All places at which the volume has one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Surface {
    /// Decoded value.
    pub value: f64,
    /// sRGB.
    #[serde(alias = "colour")]
    pub color: [u8; 3],
    /// Fraction of the light from behind that the surface absorbs, 0 to 1.
    pub opacity: f64,
    /// Fields of a later version: kept, ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Rendering mode of the volume, in addition to isosurfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// All that the transfer function shows.
    #[default]
    Composite,
    /// Nothing else: only isosurfaces and slices.
    Surfaces,
    /// The largest value along each ray, in its color.
    Maximum,
    /// The smallest value along each ray, in its color.
    Minimum,
}

impl Mode {
    /// True for [`Mode::Maximum`] and [`Mode::Minimum`].
    #[must_use]
    pub fn is_extreme(self) -> bool {
        matches!(self, Self::Maximum | Self::Minimum)
    }
}

impl Surface {
    /// Checks what serde does not: how many, finite values, opacities.
    ///
    /// # Errors
    /// `Invalid`, saying what is wrong.
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
