//! Orders from rank 0 to the other ranks, and their answers.

use array::{DatasetId, Error, ErrorKind, Generation, Result};
use serde::{Deserialize, Serialize};
use session::ParticipantId;
use view::View;

use super::PixelPrecision;
use crate::loading::loader::FailedBlocks;
use crate::viewer::pace::FramePlan;
use crate::viewer::view_plan::LevelChoice;

/// Order to all ranks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RankOrder {
    /// Fetch the missing blocks of this rank's share of a view.
    #[serde(rename = "Look")]
    PlanView {
        who: ParticipantId,
        #[serde(rename = "wish")]
        assignment: ViewAssignment,
    },
    /// Report the work of the blocks of the last picture.
    #[serde(rename = "Tell")]
    ReportWork { who: ParticipantId },
    /// Report the number of missing blocks.
    #[serde(rename = "Outlook")]
    ReportBlocks { who: ParticipantId },
    /// Draw a picture: cast, composite, encode, send.
    Draw { who: ParticipantId, number: u64, view: View, plan: FramePlan },
    /// Draw a finished picture, of which all blocks are loaded: cast, composite, send.
    Finish { who: ParticipantId, view: View, pixels: PixelPrecision },
    /// Forget a participant who left.
    Forget { who: ParticipantId },
    /// End: no further order follows.
    End,
}

/// View of a participant, with the shares and limits by which its blocks are fetched.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ViewAssignment {
    pub(crate) view: View,
    /// Width and height, pixels.
    pub(crate) size: [u32; 2],
    /// Levels that rank 0 chose, for the array shown and for the one that gives the colors.
    pub(crate) own: LevelChoice,
    #[serde(rename = "tint")]
    pub(crate) color_by: Option<LevelChoice>,
    /// Shares of the ranks, as [`compose::KdTree::to_bytes`] writes them.
    pub(crate) tree: Vec<u8>,
    /// Identity and generation of the data at rank 0.
    pub(crate) data: (DatasetId, Generation),
}

/// Missing and failed blocks of a view, at one rank or at several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct BlockStatus {
    /// Number of blocks in the shares; blocks that several ranks need count for each.
    pub(crate) wanted: u64,
    pub(crate) lacking: u64,
    pub(crate) failed: u64,
    pub(crate) given_up: u64,
    pub(crate) retrying: u64,
    pub(crate) reason: Option<Error>,
    /// True if requests failed because the data changed.
    pub(crate) is_stale: bool,
    /// Reason why the view cannot be drawn at all.
    pub(crate) refused: Option<Error>,
}

impl BlockStatus {
    /// Returns the status of one rank's share of `wanted` blocks.
    pub(crate) fn of(
        wanted: u64,
        (lacking, failed_blocks): (u64, FailedBlocks),
        refused: Option<Error>,
    ) -> Self {
        let FailedBlocks { failed, given_up, retrying, reason } = failed_blocks;
        let is_stale = reason.as_ref().is_some_and(|error| error.kind() == ErrorKind::Stale);
        Self { wanted, lacking, failed, given_up, retrying, reason, is_stale, refused }
    }

    /// Combines the status of two ranks.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            wanted: self.wanted.saturating_add(other.wanted),
            lacking: self.lacking.saturating_add(other.lacking),
            failed: self.failed.saturating_add(other.failed),
            given_up: self.given_up.saturating_add(other.given_up),
            retrying: self.retrying.saturating_add(other.retrying),
            reason: self.reason.or(other.reason),
            is_stale: self.is_stale || other.is_stale,
            refused: self.refused.or(other.refused),
        }
    }

    pub(crate) fn to_message(&self) -> Result<Vec<u8>> {
        message(self)
    }

    pub(crate) fn from_message(bytes: &[u8]) -> Result<Self> {
        parsed(bytes)
    }
}

impl RankOrder {
    pub(crate) fn to_message(&self) -> Result<Vec<u8>> {
        message(self)
    }

    /// # Errors
    /// `Corrupt` for an invalid order.
    pub(crate) fn from_message(bytes: &[u8]) -> Result<Self> {
        parsed(bytes)
    }
}

fn message<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value)
        .map_err(|e| Error::internal(format!("cannot serialize a message to other ranks: {e}")))
}

fn parsed<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| {
        Error::corrupt(format!("invalid message between ranks: {e}; do all ranks run the same program?"))
    })
}
