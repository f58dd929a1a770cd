//! Selection of the bulk that a server sends outside the frames: that of large items with small bodies.

use std::collections::HashMap;

use wire::limits::MAX_PART_BODY_BYTES;
use wire::{BulkPart, Chunk, ItemHead, OpId};

/// Smallest bulk of an item that travels outside the frames, bytes: smaller ones gain nothing.
pub(crate) const MIN_APART_BYTES: u64 = 16 << 10;

/// Newest item of each operation whose chunks are still coming, and the bulk that is left of it.
#[derive(Debug, Default)]
pub(crate) struct Items(HashMap<OpId, (ItemHead, u64)>);

impl Items {
    /// Registers an item.
    pub(crate) fn begin(&mut self, head: &ItemHead) {
        if head.bulk_bytes >= MIN_APART_BYTES && head.body.len() <= MAX_PART_BODY_BYTES {
            self.0.insert(head.op, (head.clone(), head.bulk_bytes));
        }
    }

    /// Returns a chunk together with its item's head; `None` when the chunk is to be sent in a frame.
    pub(crate) fn part(&mut self, chunk: Chunk) -> Option<BulkPart> {
        let Chunk { op, item, offset, bytes } = chunk;
        let (head, left) = self.0.get_mut(&op).filter(|(head, _)| head.item == item)?;
        let head = head.clone();
        *left = left.saturating_sub(bytes.len() as u64);
        if *left == 0 {
            self.0.remove(&op);
        }
        Some(BulkPart { head, offset, bytes })
    }

    /// Forgets an operation that has ended.
    pub(crate) fn forget(&mut self, op: OpId) {
        self.0.remove(&op);
    }
}
