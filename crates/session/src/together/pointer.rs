//! Pointers of the participants in space.

use array::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::ParticipantId;
use crate::together::edit::MAX_COORDINATE;

/// Place that a participant points to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PointerPlace {
    /// Point `[x, y, z]` in world space.
    World([f64; 3]),
    /// Fractions of the picture from the left and the top, 0 to 1, if no point in space is known.
    Picture([f64; 2]),
}

impl PointerPlace {
    /// # Errors
    /// `Invalid` for numbers that are not finite, or outside of the picture.
    pub(crate) fn check(self) -> Result<()> {
        let is_legal = match self {
            Self::World(point) => point.iter().all(|x| x.abs() <= MAX_COORDINATE),
            Self::Picture(at) => at.iter().all(|x| (0.0..=1.0).contains(x)),
        };
        if is_legal {
            Ok(())
        } else {
            Err(Error::invalid("expected a pointer at a finite place, or within the picture"))
        }
    }
}

/// Pointer of a participant, as the others see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointerInfo {
    /// Participant who points.
    pub id: ParticipantId,
    /// Place that they point to.
    pub at: PointerPlace,
    /// Laser pointer: the participant wants everybody to look there.
    #[serde(default)]
    pub laser: bool,
}
