//! Slices as a view carries them.

use array::{ArrayInfo, Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most slices in a view.
pub const MAX_SLICES: usize = 16;

/// An axis of the volume that an array is drawn as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpaceAxis {
    /// Axis x; the last one where an array has no axes of space.
    X,
    /// Axis y, or the one before.
    Y,
    /// Axis z, or the one before that.
    Z,
}

/// A plane across one axis of the volume, opaque in the colors of the transfer function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewSlice {
    /// The axis that it lies across.
    pub axis: SpaceAxis,
    /// Index on that axis, at level 0; between whole numbers values are interpolated.
    pub at: f64,
    /// Fields of a later version: kept, ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl SpaceAxis {
    /// Its number in positions `(x, y, z)`.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::X => 0,
            Self::Y => 1,
            Self::Z => 2,
        }
    }

    /// How many elements an array has along it; 1 where it has not got it.
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
    /// Checks what serde does not: how many, finite positions.
    ///
    /// # Errors
    /// `Invalid`, saying what is wrong.
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

    /// Checks that it lies in an array.
    ///
    /// # Errors
    /// `Invalid`.
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
