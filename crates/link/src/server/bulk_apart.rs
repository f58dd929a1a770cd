//! Which bulk a server sends apart from the frames: that of items that are large enough and say little else.

use std::collections::HashMap;

use wire::limits::MAX_PART_BODY_BYTES;
use wire::{BulkPart, Chunk, ItemHead, OpId};

/// Bulk of an item that travels apart, at least: smaller ones are as well off with other frames.
pub(crate) const MIN_APART_BYTES: u64 = 16 << 10;

/// Items whose chunks are still coming, and how much of their bulk is: the newest of each operation.
#[derive(Debug, Default)]
pub(crate) struct Items(HashMap<OpId, (ItemHead, u64)>);

impl Items {
    /// An item begins.
    pub(crate) fn begin(&mut self, head: &ItemHead) {
        if head.bulk_bytes >= MIN_APART_BYTES && head.body.len() <= MAX_PART_BODY_BYTES {
            self.0.insert(head.op, (head.clone(), head.bulk_bytes));
        }
    }

    /// A chunk with what its item's head says; none where it is to cross as it is.
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

    /// Nothing more comes of an operation.
    pub(crate) fn forget(&mut self, op: OpId) {
        self.0.remove(&op);
    }
}
