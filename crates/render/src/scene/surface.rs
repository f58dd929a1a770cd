//! Isosurfaces: the surfaces at which the decoded values of a volume cross one value.
//!
//! Values set by the user; `isosurface/hits/mod.rs` intersects rays with surfaces.

use array::{Error, Result};
use serde::{Deserialize, Serialize};
use view::MAX_SURFACES;

use crate::VolumeView;

/// Surface of all positions with one value, lit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Isosurface {
    /// Decoded value.
    pub value: f64,
    /// sRGB, components 0 to 1.
    #[serde(rename = "colour")]
    pub color: [f32; 3],
    /// Share of the light from behind that the surface absorbs, 0 to 1; it does not depend on how thin the
    /// voxels are.
    pub opacity: f32,
}

impl Isosurface {
    /// Most surfaces in one picture.
    pub const MAX_COUNT: usize = MAX_SURFACES;

    /// Checks the surfaces of one picture of a volume.
    ///
    /// # Errors
    /// `Invalid`, with a message that names the cause: labels and packed colors have no isosurfaces.
    pub fn check_of(surfaces: &[Self], view: &VolumeView) -> Result<()> {
        if !view.meaning.is_continuous() && !surfaces.is_empty() {
            return Err(Error::invalid(
                "expected an array of intensities to draw isosurfaces of, found labels or colors",
            ));
        }
        if surfaces.len() > Self::MAX_COUNT {
            return Err(Error::invalid(format!(
                "expected at most {} isosurfaces, found {}",
                Self::MAX_COUNT,
                surfaces.len()
            )));
        }
        let is_share = |v: &f32| (0.0..=1.0).contains(v);
        let is_legal = |s: &Self| s.value.is_finite() && s.color.iter().all(is_share) && is_share(&s.opacity);
        match surfaces.iter().find(|s| !is_legal(s)) {
            Some(bad) => Err(Error::invalid(format!(
                "expected an isosurface of a finite value with color and opacity from 0 to 1, found {bad:?}"
            ))),
            None => Ok(()),
        }
    }
}
