//! Newest changes of the shared content: participants who know an older state get the changes since then, others the
//! whole content.

use std::collections::VecDeque;

use array::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::together::content::{SharedChange, SharedContent};

/// Most changes that are kept for participants who lag behind; others get the whole content.
const MAX_LOGGED_CHANGES: usize = 256;
/// Most bytes of kept changes, as JSON; the whole content has at most about 6 MiB.
const MAX_LOGGED_BYTES: usize = 512 << 10;

/// Update of the shared content for one participant: the bulk of [`Item::Shared`](crate::Item::Shared).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedUpdate {
    /// Whole content.
    Content(Box<SharedContent>),
    /// Changes since the last update, in order.
    Changes(Vec<SharedChange>),
}

impl SharedUpdate {
    /// Returns the update as JSON.
    ///
    /// # Errors
    /// `Internal` if it cannot be serialized, which does not happen for accepted edits.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|e| Error::internal(format!("cannot serialize shared content: {e}")))
    }

    /// Parses an update.
    ///
    /// # Errors
    /// `Corrupt` if it is not one.
    pub fn parse(text: &[u8]) -> Result<Self> {
        serde_json::from_slice(text)
            .map_err(|e| Error::corrupt(format!("expected shared content in JSON: {e}")))
    }
}

/// Shared content and its newest changes.
#[derive(Default)]
pub(crate) struct ContentLog {
    content: SharedContent,
    rev: u64,
    changes: VecDeque<(SharedChange, usize)>,
    bytes: usize,
}

impl ContentLog {
    pub(crate) fn content(&self) -> &SharedContent {
        &self.content
    }

    /// Returns the number of the newest change.
    pub(crate) fn rev(&self) -> u64 {
        self.rev
    }

    /// Applies a change and gives it its number.
    ///
    /// # Errors
    /// Those of [`SharedContent::apply`].
    pub(crate) fn append(&mut self, mut change: SharedChange) -> Result<()> {
        change.rev = self.rev + 1;
        self.content.apply(&change)?;
        self.rev = change.rev;
        let bytes = serde_json::to_vec(&change).map_or(MAX_LOGGED_BYTES, |text| text.len());
        self.bytes += bytes;
        self.changes.push_back((change, bytes));
        while self.changes.len() > MAX_LOGGED_CHANGES || self.bytes > MAX_LOGGED_BYTES {
            let Some((_, bytes)) = self.changes.pop_front() else { break };
            self.bytes -= bytes;
        }
        Ok(())
    }

    /// Returns what a participant lacks who knows the content up to `known`; `None` is nothing at all.
    pub(crate) fn since(&self, known: Option<u64>) -> SharedUpdate {
        let missing = known.and_then(|known| usize::try_from(self.rev.checked_sub(known)?).ok());
        match missing.and_then(|missing| self.changes.len().checked_sub(missing)) {
            Some(skipped) => {
                SharedUpdate::Changes(self.changes.iter().skip(skipped).map(|(c, _)| c.clone()).collect())
            }
            None => SharedUpdate::Content(Box::new(self.content.clone())),
        }
    }
}
