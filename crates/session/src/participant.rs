//! Number and role of a participant.

use serde::{Deserialize, Serialize};

/// Number of a participant in its room; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ParticipantId(pub u32);

/// Role of a participant: the changes that it may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// May do everything; owns the session.
    Own,
    /// May change their own view, present it to all, pin notes and save bookmarks.
    Steer,
    /// May follow others, chat and point.
    Watch,
}

impl Role {
    /// Returns true for roles that may change a view.
    #[must_use]
    pub fn may_steer(self) -> bool {
        matches!(self, Self::Own | Self::Steer)
    }
}
