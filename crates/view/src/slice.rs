//! Slices, as part of a view.

use array::{ArrayInfo, Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum number of slices of a view.
pub const MAX_SLICES: usize = 16;

/// Axis of the volume that an array is drawn as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpaceAxis {
    /// Axis x; the last one if an array has no spatial axes.
    X,
    /// Axis y, or the second to last.
    Y,
    /// Axis z, or the third to last.
    Z,
}

/// Plane across one axis of the volume, opaque in the colors of the transfer function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewSlice {
    /// Axis perpendicular to the plane.
    pub axis: SpaceAxis,
    /// Index on that axis, at level 0; values are interpolated between whole numbers.
    pub at: f64,
    /// Fields of a later version: preserved but ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl SpaceAxis {
    /// Returns its index in positions `(x, y, z)`.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::X => 0,
            Self::Y => 1,
            Self::Z => 2,
        }
    }

    /// Returns the number of elements of an array along it; 1 if the array does not have it.
    #[must_use]
    pub fn size_in(self, array: &ArrayInfo) -> u64 {
        let shape = array.shape();
        let space = array.spatial_axes();
        let place = match self {
            Self::Z => 0,
            Self::Y => 1,
            Self::X => 2,
        };
        let axis = if space == [None; 3] { (shape.len() + place).checked_sub(3) } else { space[place] };
        axis.and_then(|axis| shape.get(axis)).copied().unwrap_or(1)
    }
}

impl ViewSlice {
    /// Checks constraints beyond the types: number of slices, finite positions.
    ///
    /// # Errors
    /// `Invalid`, telling what is wrong.
    pub fn check_all(slices: &[Self]) -> Result<()> {
        if slices.len() > MAX_SLICES {
            let found = slices.len();
            return Err(Error::invalid(format!("expected at most {MAX_SLICES} slices, found {found}")));
        }
        match slices.iter().find(|s| !s.at.is_finite()) {
            Some(bad) => Err(Error::invalid(format!("expected slices at finite places, found {}", bad.at))),
            None => Ok(()),
        }
    }

    /// Checks that the slice lies in an array.
    ///
    /// # Errors
    /// `Invalid` for a position outside.
    #[expect(clippy::cast_precision_loss, reason = "indices stay below 2^53")]
    pub fn check_in(&self, array: &ArrayInfo) -> Result<()> {
        let last = self.axis.size_in(array).saturating_sub(1) as f64;
        if (0.0..=last).contains(&self.at) {
            return Ok(());
        }
        let (axis, found) = (format!("{:?}", self.axis).to_lowercase(), self.at);
        Err(Error::invalid(format!("expected a slice across `{axis}` from 0 to {last}, found {found}")))
    }
}
