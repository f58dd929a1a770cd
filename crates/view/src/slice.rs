//! Slices, as part of a view.

use array::{ArrayInfo, Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::fields::bounds::MAX_WORLD;

/// Maximum number of slices of a view.
pub const MAX_SLICES: usize = 16;

/// Smallest component of a normal that counts: squares of smaller ones are lost in rounding.
const MIN_NORMAL: f64 = 1e-12;

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

/// Plane through the volume, opaque in the colors of the transfer function: across one axis, or, with
/// `normal`, in any direction. `axis` and `at` are those of a similar plane for programs that do not know
/// `normal`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewSlice {
    /// Axis perpendicular to the plane.
    pub axis: SpaceAxis,
    /// Index on that axis, at level 0; values are interpolated between whole numbers.
    pub at: f64,
    /// Direction perpendicular to an oblique plane, world space, of any length; needs `point`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normal: Option<[f64; 3]>,
    /// Point of an oblique plane, world space; needs `normal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<[f64; 3]>,
    /// True if voxels are drawn as areas of one color; false if values are interpolated.
    #[serde(default, skip_serializing_if = "is_false")]
    pub nearest: bool,
    /// True if the plane is remembered but not drawn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// Fields of a later version: preserved but ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

fn is_false(flag: &bool) -> bool {
    !flag
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
    /// Returns normal and point of an oblique plane, world space; `None` for a plane across an axis.
    #[must_use]
    pub fn oblique(&self) -> Option<([f64; 3], [f64; 3])> {
        self.normal.zip(self.point)
    }

    /// Checks constraints beyond the types: number of slices, finite positions, directions.
    ///
    /// # Errors
    /// `Invalid`, telling what is wrong.
    pub fn check_all(slices: &[Self]) -> Result<()> {
        if slices.len() > MAX_SLICES {
            let found = slices.len();
            return Err(Error::invalid(format!("expected at most {MAX_SLICES} slices, found {found}")));
        }
        if let Some(bad) = slices.iter().find(|s| !s.at.is_finite()) {
            return Err(Error::invalid(format!("expected slices at finite places, found {}", bad.at)));
        }
        slices.iter().try_for_each(Self::check_direction)
    }

    fn check_direction(&self) -> Result<()> {
        let is_legal = |v: &[f64; 3]| v.iter().all(|x| x.abs() <= MAX_WORLD);
        match (self.normal, self.point) {
            (None, None) => Ok(()),
            (Some(normal), Some(point))
                if is_legal(&normal) && is_legal(&point) && normal.iter().any(|x| x.abs() > MIN_NORMAL) =>
            {
                Ok(())
            }
            (Some(_), Some(_)) => Err(Error::invalid(format!(
                "expected an oblique slice with a normal that is not zero, and coordinates within {MAX_WORLD:e}"
            ))),
            _ => Err(Error::invalid("expected `normal` and `point` of an oblique slice together, found one")),
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
