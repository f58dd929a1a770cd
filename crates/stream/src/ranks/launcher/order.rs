//! Orders from rank 0 to the other ranks, and their answers.

use array::{DatasetId, Error, ErrorKind, Generation, Result};
use serde::{Deserialize, Serialize};
use session::ParticipantId;
use view::View;

use super::PixelPrecision;
use crate::loading::loader::FailedBlocks;
use crate::viewer::pace::FramePlan;
use crate::viewer::view_plan::LevelChoice;

/// Next action of all ranks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RankOrder {
    /// Fetch what your share of a view lacks.
    #[serde(rename = "Look")]
    PlanView {
        who: ParticipantId,
        #[serde(rename = "wish")]
        assignment: ViewAssignment,
    },
    /// Say what the blocks of the last picture took.
    #[serde(rename = "Tell")]
    ReportWork { who: ParticipantId },
    /// Say how many blocks are lacking.
    #[serde(rename = "Outlook")]
    ReportBlocks { who: ParticipantId },
    /// Draw a picture: cast, exchange, encode, hand over.
    Draw { who: ParticipantId, number: u64, view: View, plan: FramePlan },
    /// Draw a finished picture, of which all blocks are there: cast, exchange, hand over.
    Finish { who: ParticipantId, view: View, pixels: PixelPrecision },
    /// They left.
    Forget { who: ParticipantId },
    /// Nothing more comes.
    End,
}

/// View of a participant, and the shares and limits by which its blocks are fetched.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ViewAssignment {
    pub(crate) view: View,
    /// Width and height, pixels.
    pub(crate) size: [u32; 2],
    /// As rank 0 chose, and of the array that gives the colors.
    pub(crate) own: LevelChoice,
    #[serde(rename = "tint")]
    pub(crate) color_by: Option<LevelChoice>,
    /// Shares of the ranks, as [`compose::KdTree::to_bytes`] writes them.
    pub(crate) tree: Vec<u8>,
    /// The data that rank 0 sees.
    pub(crate) data: (DatasetId, Generation),
}

/// Blocks that are lacking of a view, and problems with them, of one rank or of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct BlockStatus {
    /// Blocks that the shares are made of, those that several ranks need for each.
    pub(crate) wanted: u64,
    pub(crate) lacking: u64,
    pub(crate) failed: u64,
    pub(crate) given_up: u64,
    pub(crate) retrying: u64,
    pub(crate) reason: Option<Error>,
    /// Blocks were asked for in vain because the data changed.
    pub(crate) is_stale: bool,
    /// Why the view cannot be drawn at all.
    pub(crate) refused: Option<Error>,
}

impl BlockStatus {
    /// Returns the outlook of one rank's share of `wanted` blocks.
    pub(crate) fn of(
        wanted: u64,
        (lacking, failed_blocks): (u64, FailedBlocks),
        refused: Option<Error>,
    ) -> Self {
        let FailedBlocks { failed, given_up, retrying, reason } = failed_blocks;
        let is_stale = reason.as_ref().is_some_and(|error| error.kind() == ErrorKind::Stale);
        Self { wanted, lacking, failed, given_up, retrying, reason, is_stale, refused }
    }

    /// For both.
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
    /// `Corrupt` for what is no order.
    pub(crate) fn from_message(bytes: &[u8]) -> Result<Self> {
        parsed(bytes)
    }
}

fn message<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| Error::internal(format!("a message to ranks in JSON: {e}")))
}

fn parsed<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|e| Error::corrupt(format!("expected a message between ranks of one program: {e}")))
}
