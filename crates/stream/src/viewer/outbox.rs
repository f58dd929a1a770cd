//! Queue of items for one participant: bounded, newer items replace older ones.
//!
//! An item replaces an older one of its kind that was not taken yet, so the outbox holds at most one of each
//! kind, [`MAX_MESSAGES`] messages, and [`MAX_FRAMES_IN_FLIGHT`] frames, also for a participant that claims
//! to have shown what it has not taken.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use session::Item;
use tokio::sync::Notify;

use crate::viewer::pace::MAX_FRAMES_IN_FLIGHT;

/// Most messages that wait for a participant; older ones are dropped.
const MAX_MESSAGES: usize = 8;

/// Item on its way to a participant.
#[derive(Clone, Debug, PartialEq)]
pub struct OutgoingItem {
    /// Content of the item.
    pub item: Item,
    /// Encoded picture of a frame; empty otherwise.
    pub bulk: Bytes,
}

impl OutgoingItem {
    /// Returns the item as JSON, as it is sent.
    ///
    /// # Errors
    /// `Internal` if it cannot be serialized, which does not happen for items of this crate.
    pub fn body(&self) -> array::Result<Vec<u8>> {
        serde_json::to_vec(&self.item)
            .map_err(|e| array::Error::internal(format!("cannot serialize an item: {e}")))
    }
}

#[derive(Default)]
struct QueuedItems {
    items: VecDeque<OutgoingItem>,
    is_closed: bool,
}

/// Items that wait for one participant.
#[derive(Default)]
pub(crate) struct ViewerOutbox {
    queued: Mutex<QueuedItems>,
    changed: Notify,
}

impl ViewerOutbox {
    /// Adds an item; drops the oldest of its kind if there are too many.
    pub(crate) fn push(&self, item: Item, bulk: Bytes) {
        self.with(|w| {
            if w.is_closed {
                return;
            }
            let same = |o: &OutgoingItem| std::mem::discriminant(&o.item) == std::mem::discriminant(&item);
            if w.items.iter().filter(|o| same(o)).count() >= most_waiting(&item) {
                let oldest = w.items.iter().position(same);
                oldest.and_then(|at| w.items.remove(at));
            }
            w.items.push_back(OutgoingItem { item, bulk });
        });
        self.changed.notify_one();
    }

    /// Closes the queue; waiting items can still be taken.
    pub(crate) fn close(&self) {
        self.with(|w| w.is_closed = true);
        self.changed.notify_one();
    }

    /// Returns the next item; `None` when closed and empty.
    ///
    /// # Cancel safety
    /// Safe: an item is taken only when it is returned. Only one task may call it at a time.
    pub(crate) async fn next(&self) -> Option<OutgoingItem> {
        loop {
            let changed = self.changed.notified();
            let (item, is_closed) = self.with(|w| (w.items.pop_front(), w.is_closed));
            if item.is_some() || is_closed {
                return item;
            }
            changed.await;
        }
    }

    fn with<T>(&self, f: impl FnOnce(&mut QueuedItems) -> T) -> T {
        // A panic elsewhere does not leave the queue inconsistent.
        f(&mut self.queued.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the most items of the same kind that may wait.
fn most_waiting(item: &Item) -> usize {
    match item {
        Item::Message { .. } => MAX_MESSAGES,
        Item::Frame(_) => MAX_FRAMES_IN_FLIGHT,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use array::LevelOrigin;
    use session::{FidelityBadge, FidelityLimit, FidelityState, FrameInfo, PictureCodec, Severity};
    use view::View;

    use super::*;

    fn message(n: usize) -> Item {
        Item::Message { severity: Severity::Info, text: n.to_string() }
    }

    fn frame(id: u64) -> FrameInfo {
        let fidelity = FidelityBadge {
            level_shown: None,
            level_wanted: 0,
            origin: LevelOrigin::Stored,
            limit: FidelityLimit::Finest,
            blocks_present: 0,
            blocks_total: 1,
            state: FidelityState::Loading,
            exact: false,
            levels_made: None,
            resampled: false,
            text: String::new(),
        };
        FrameInfo { id, seq: 0, width: 16, height: 16, codec: PictureCodec::Jpeg, fidelity }
    }

    #[tokio::test]
    async fn newer_items_replace_older_ones_of_their_kind_and_messages_are_bounded() {
        let outbox = ViewerOutbox::default();
        for seq in 0..100 {
            outbox.push(Item::View { seq, view: View::default() }, Bytes::new());
            outbox.push(message(usize::try_from(seq).unwrap()), Bytes::new());
        }
        outbox.close();
        outbox.push(message(1000), Bytes::new());
        let mut taken = Vec::new();
        while let Some(out) = outbox.next().await {
            taken.push(out.item);
        }
        assert_eq!(taken.len(), 1 + MAX_MESSAGES);
        assert!(taken.contains(&message(99)) && !taken.contains(&message(91)));
        assert!(taken.iter().any(|item| matches!(item, Item::View { seq: 99, .. })));
    }

    #[tokio::test]
    async fn a_participant_that_takes_nothing_keeps_two_frames_and_one_of_each_other_kind() {
        let outbox = ViewerOutbox::default();
        for id in 0..100 {
            outbox.push(Item::Frame(frame(id)), Bytes::from_static(b"picture"));
            outbox.push(Item::Changed, Bytes::new());
        }
        outbox.close();
        let mut frames = Vec::new();
        let mut others = 0;
        while let Some(out) = outbox.next().await {
            match out.item {
                Item::Frame(info) => frames.push(info.id),
                _ => others += 1,
            }
        }
        assert_eq!((frames, others), (vec![98, 99], 1));
    }

    #[tokio::test]
    async fn a_waiting_reader_is_woken() {
        let outbox = ViewerOutbox::default();
        let (got, ()) = tokio::join!(outbox.next(), async { outbox.push(message(1), Bytes::new()) });
        assert_eq!(got.unwrap().item, message(1));
    }
}
