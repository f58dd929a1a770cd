//! Receiving side of the shared content: puts updates that overtook one another in order.

use std::collections::BTreeMap;

use array::{Error, Result};

use crate::together::content::{SharedChange, SharedContent};
use crate::together::log::SharedUpdate;

/// Most changes that wait for an earlier one: four times as many as the node keeps.
const MAX_EARLY_CHANGES: usize = 1024;

/// Shared content as one participant knows it. The viewer's page has the same (`web/src/session/together`).
#[derive(Clone, Debug, Default)]
pub struct ContentReceiver {
    content: SharedContent,
    /// Number of the newest change that is applied; `None` before the first update.
    rev: Option<u64>,
    early: BTreeMap<u64, SharedChange>,
}

impl ContentReceiver {
    /// Applies an update whose newest change is `rev`. Changes that are known are ignored, and changes whose
    /// predecessors have not arrived wait.
    ///
    /// # Errors
    /// `TooLarge` if too many wait: request the whole content again.
    pub fn receive(&mut self, rev: u64, update: SharedUpdate) -> Result<()> {
        match update {
            SharedUpdate::Content(content) => {
                if self.rev.is_none_or(|known| rev >= known) {
                    self.content = *content;
                    self.rev = Some(rev);
                }
            }
            SharedUpdate::Changes(changes) => self.early.extend(changes.into_iter().map(|c| (c.rev, c))),
        }
        while let Some(known) = self.rev
            && let Some(entry) = self.early.first_entry().filter(|entry| *entry.key() <= known + 1)
        {
            let change = entry.remove();
            if change.rev == known + 1 {
                // The node accepted it, so it fits unless the node is of another version.
                self.content.apply(&change).unwrap_or_default();
                self.rev = Some(change.rev);
            }
        }
        if self.early.len() > MAX_EARLY_CHANGES {
            self.early.clear();
            return Err(Error::too_large(
                "too many changes of the shared content arrived before their predecessors",
            ));
        }
        Ok(())
    }

    /// Returns the content; `None` before the first update.
    #[must_use]
    pub fn content(&self) -> Option<&SharedContent> {
        self.rev.map(|_| &self.content)
    }
}
