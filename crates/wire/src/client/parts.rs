//! Bulk that arrives outside the frames: in any order, before or after its item's head and the end of its
//! operation. For carriers that use datagrams or several streams ([`expect_parts`](Client::expect_parts)),
//! each exactly once.
//!
//! Each part repeats its item's head, so that it is usable by itself. An operation [in any
//! order](Client::take_in_any_order) reports its items and their bulk as they arrive; for the others, items
//! and parts wait here, within the credit, until it is their turn. In both cases the end is reported when
//! nothing is missing any more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use array::{Error, Result};
use bytes::Bytes;

use super::arriving::{OpenItem, item_error, unknown};
use super::{Client, ClientEvent, ClientOp, ClientPhase};
use crate::limits::{MAX_AHEAD, MAX_BODY_BYTES, MAX_ITEM_BULK_BYTES};
use crate::{BulkPart, ChunkHead, ItemHead, OpId};

/// Parts of an operation's answer that arrived before their turn.
#[derive(Debug, Default)]
pub(super) struct EarlyParts {
    /// Complete items whose frame has not arrived.
    whole: BTreeSet<u32>,
    /// Items of an ordered operation that begin when the one before is complete.
    heads: VecDeque<ItemHead>,
    /// Parts of an ordered operation that wait, by item and offset.
    early: BTreeMap<(u32, u64), Bytes>,
    early_bytes: u64,
    /// The server's last frame has arrived.
    has_ended: bool,
}

impl EarlyParts {
    fn places(&self) -> usize {
        self.whole.len() + self.early.len() + self.heads.iter().map(head_places).sum::<usize>()
    }
}

/// Places that the head of a waiting item takes.
fn head_places(head: &ItemHead) -> usize {
    1 + head.body.len() / 1024
}

impl ClientOp {
    /// Places of [`MAX_AHEAD`] that this operation takes.
    pub(super) fn places_ahead(&self) -> usize {
        let apart: usize = self.open.values().map(|open| open.there.apart()).sum();
        apart + self.early_parts.as_ref().map_or(0, |early_parts| early_parts.places())
    }

    /// Bulk that waits for its turn, bytes.
    pub(super) fn early_bytes(&self) -> u64 {
        self.early_parts.as_ref().map_or(0, |early_parts| early_parts.early_bytes)
    }

    /// Returns whether an item of an ordered operation has to wait for the one before.
    pub(super) fn has_to_wait(&self) -> bool {
        !self.in_any_order && !self.open.is_empty()
    }

    /// Returns whether a part of the answer has arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.next_item > 0 || !self.open.is_empty() || self.early_parts.is_some()
    }

    /// Returns whether bulk of an open item can be reported, because it comes next.
    fn can_take(&self, item: u32, offset: u64) -> bool {
        let is_next = |open: &OpenItem| self.in_any_order || offset == open.there.start_bytes();
        self.open.get(&item).is_some_and(is_next)
    }

    /// Returns whether an item waits.
    fn holds(&self, item: u32) -> bool {
        let heads = self
            .early_parts
            .as_ref()
            .map(|early_parts| (early_parts.heads.front(), early_parts.heads.back()));
        // The items are consecutive.
        matches!(heads, Some((Some(first), Some(last))) if (first.item..=last.item).contains(&item))
    }

    /// Returns whether the server's last frame has arrived.
    pub(super) fn has_ended(&self) -> bool {
        self.early_parts.as_ref().is_some_and(|early_parts| early_parts.has_ended)
    }

    fn early_parts(&mut self) -> &mut EarlyParts {
        self.early_parts.get_or_insert_default()
    }

    /// Handles the head of an item that its parts have announced before; false when it is new. Returns the
    /// places that this frees.
    pub(super) fn is_told_by_parts(&mut self, head: &ItemHead) -> Result<(bool, usize)> {
        let item = head.item;
        if item != self.next_item {
            return Ok((false, 0));
        }
        let was_whole = self.early_parts.as_mut().is_some_and(|early_parts| early_parts.whole.remove(&item));
        if let Some(open) = self.open.get(&item) {
            open.check_same(head)?;
        } else if !was_whole {
            return Ok((false, 0));
        }
        self.next_item += 1;
        Ok((true, usize::from(was_whole)))
    }
}

impl OpenItem {
    fn check_same(&self, head: &ItemHead) -> Result<()> {
        if (self.bulk_bytes, self.expected_crc32c) == (head.bulk_bytes, head.bulk_crc32c) {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "expected the same of item {} of operation {} as before, {} bytes, found {}",
            head.item, head.op, self.bulk_bytes, head.bulk_bytes
        )))
    }
}

impl Client {
    /// Lets bulk arrive by [`handle_part`](Self::handle_part) from now on.
    pub fn expect_parts(&mut self) {
        self.expects_parts = true;
    }

    /// Reports the items of an operation, and their bulk, in the order of arrival.
    pub fn take_in_any_order(&mut self, op: OpId) {
        self.ops.get_mut(op).into_iter().for_each(|state| state.in_any_order = true);
    }

    /// Handles a part of bulk; events report it to the application.
    ///
    /// # Errors
    /// The errors of [`handle_frame`](crate::Machine::handle_frame).
    pub fn handle_part(&mut self, now: Instant, part: BulkPart) -> Result<()> {
        self.liveness.handle_heard(now);
        let result = match self.state {
            ClientPhase::Open => self.take_part(self.not_what_it_came_with(part)),
            ClientPhase::Closed(_) => Ok(()),
            ClientPhase::Greeting { .. } => Err(Error::corrupt("expected welcome or refused, found bulk")),
        };
        self.close_if_broken(result)
    }

    /// Handles bulk that arrived outside the frames without copying it, as [`handle_bulk`](Self::handle_bulk)
    /// does for a chunk. Returns `Some` when the application is to copy the bytes to their destination; the
    /// value is true when they complete the item.
    ///
    /// # Errors
    /// The errors of [`handle_frame`](crate::Machine::handle_frame).
    pub fn handle_apart(
        &mut self,
        now: Instant,
        head: &ItemHead,
        offset: u64,
        bytes: &[u8],
    ) -> Result<Option<bool>> {
        self.liveness.handle_heard(now);
        let result = match self.state {
            ClientPhase::Open if !self.expects_parts => {
                Err(Error::corrupt("expected bulk in order, found some apart"))
            }
            ClientPhase::Open => self.take_apart(head, offset, bytes),
            ClientPhase::Closed(_) => Ok(None),
            ClientPhase::Greeting { .. } => Err(Error::corrupt("expected welcome or refused, found bulk")),
        };
        self.close_if_broken(result)
    }

    /// Handles cancelled bulk, which was sent and will not arrive: the server may send as much of other bulk.
    ///
    /// # Errors
    /// The errors of [`handle_frame`](crate::Machine::handle_frame).
    pub fn handle_gone(&mut self, bytes: u64) -> Result<()> {
        let result = if matches!(self.state, ClientPhase::Open) { self.use_credit(bytes) } else { Ok(()) };
        self.close_if_broken(result)
    }

    /// Copies a part that may have to wait, so that it does not keep its whole datagram in memory.
    fn not_what_it_came_with(&self, part: BulkPart) -> BulkPart {
        let waits = self.ops.get(part.head.op).is_some_and(|state| !state.in_any_order);
        let bytes = if waits { Bytes::copy_from_slice(&part.bytes) } else { part.bytes };
        BulkPart { bytes, ..part }
    }

    fn take_apart(&mut self, head: &ItemHead, offset: u64, bytes: &[u8]) -> Result<Option<bool>> {
        let &ItemHead { op, item, .. } = head;
        if self.can_be_put_to_its_place(op, item) {
            let open = self.ops.get(op).and_then(|state| state.open.get(&item));
            open.map_or(Ok(()), |open| open.check_same(head))?;
            return self.put_to_its_place(ChunkHead { op, item, offset }, bytes);
        }
        self.take_part(BulkPart { head: head.clone(), offset, bytes: Bytes::copy_from_slice(bytes) })
            .map(|()| None)
    }

    /// True when bulk of this item need not wait for anything.
    pub(super) fn can_be_put_to_its_place(&self, op: OpId, item: u32) -> bool {
        let is_open = |state: &ClientOp| state.wanted && state.in_any_order && state.open.contains_key(&item);
        self.expects_parts && self.events.is_empty() && self.ops.get(op).is_some_and(is_open)
    }

    /// Counts bulk of such an item and checks it; returns `Some` when it is of use, true when the item is
    /// complete.
    pub(super) fn put_to_its_place(&mut self, head: ChunkHead, bytes: &[u8]) -> Result<Option<bool>> {
        let ChunkHead { op, item, offset } = head;
        self.use_credit(bytes.len() as u64)?;
        self.untaken_bytes += bytes.len() as u64;
        let complete = self.add(op, item, offset, bytes)?;
        // The end of its operation is reported after it.
        self.advance(op)?;
        Ok(complete)
    }

    fn take_part(&mut self, part: BulkPart) -> Result<()> {
        let ItemHead { op, item, .. } = part.head;
        self.use_credit(part.bytes.len() as u64)?;
        let is_old = op.0 > 0 && op.0 <= self.last_op;
        let state = match self.ops.get_mut(op) {
            Some(state) if state.wanted => state,
            // Bulk in flight when its operation ended.
            None if !is_old => return Err(unknown(op)),
            Some(_) | None => return Ok(()),
        };
        if !state.in_any_order {
            self.keep(op, item, part.offset, part.bytes)?;
            return self.advance(op);
        }
        match state.open.get(&item) {
            Some(open) => open.check_same(&part.head)?,
            None => self.open_ahead(&part.head)?,
        }
        self.untaken_bytes += part.bytes.len() as u64;
        self.add_part(op, item, part.offset, part.bytes)?;
        self.advance(op)
    }

    /// Opens an item that a part has announced.
    fn open_ahead(&mut self, head: &ItemHead) -> Result<()> {
        let &ItemHead { op, item, ref body, bulk_bytes, .. } = head;
        let Some(state) = self.ops.get_mut(op) else { return Ok(()) };
        let is_whole = item < state.next_item || state.early_parts().whole.contains(&item);
        if is_whole || bulk_bytes == 0 || bulk_bytes > MAX_ITEM_BULK_BYTES || body.len() > MAX_BODY_BYTES {
            return Err(Error::corrupt(format!(
                "expected bulk of an item of operation {op} that is not whole, found item {item} of {bulk_bytes} bytes"
            )));
        }
        state.open.insert(item, OpenItem::new(head));
        self.open_items += 1;
        // Copied, so that the datagram is not kept.
        let body = Bytes::copy_from_slice(body);
        self.events.push_back(ClientEvent::Item { op, item, body, bulk_bytes });
        self.check_places(0)
    }

    /// Adds a part to an open item and reports it. Its bytes count as not taken.
    fn add_part(&mut self, op: OpId, item: u32, offset: u64, bytes: Bytes) -> Result<()> {
        if let Some(complete) = self.add(op, item, offset, &bytes)? {
            self.events.push_back(ClientEvent::Piece { op, item, offset, bytes, complete });
        }
        Ok(())
    }

    /// Adds bulk to an open item; returns `Some` when it is of use, true when it completes the item. Its
    /// bytes count as not taken.
    fn add(&mut self, op: OpId, item: u32, offset: u64, bytes: &[u8]) -> Result<Option<bool>> {
        let Some(state) = self.ops.get_mut(op) else { return Ok(None) };
        let Some(open) = state.open.get_mut(&item) else { return Ok(None) };
        self.places_ahead -= open.there.apart();
        let complete = open.add(offset, bytes)?;
        let mut places = open.there.apart();
        if complete.is_some() {
            state.open.remove(&item);
            self.open_items -= 1;
            if item >= state.next_item {
                state.early_parts().whole.insert(item);
                places += 1;
            }
        }
        self.check_places(places)?;
        if let Some(Err(error)) = complete {
            self.grant(bytes.len() as u64);
            self.abandon_with(op, item_error(item, error));
            return Ok(None);
        }
        Ok(Some(complete.is_some()))
    }

    /// Reports what has waited and is next: bulk of the current item, items after it, the end.
    pub(super) fn advance(&mut self, op: OpId) -> Result<()> {
        while let Some(state) = self.ops.get_mut(op)
            && let Some(early_parts) = &mut state.early_parts
        {
            let current = state.open.first_key_value().map(|(item, open)| (*item, open.there.start_bytes()));
            if let Some((item, next)) = current {
                let Some(bytes) = early_parts.early.remove(&(item, next)) else { break };
                early_parts.early_bytes -= bytes.len() as u64;
                self.places_ahead -= 1;
                self.add_part(op, item, next, bytes)?;
            } else if let Some(head) = early_parts.heads.pop_front() {
                self.places_ahead -= head_places(&head);
                self.begin_item(head);
            } else if early_parts.has_ended {
                self.retire(op, ClientEvent::Done { op })?;
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Keeps an item until the one before is complete.
    pub(super) fn keep_head(&mut self, head: ItemHead) -> Result<()> {
        let places = head_places(&head);
        if let Some(state) = self.ops.get_mut(head.op) {
            // Copied, so that the frame is not kept.
            let body = Bytes::copy_from_slice(&head.body);
            state.early_parts().heads.push_back(ItemHead { body, ..head });
        }
        self.check_places(places)
    }

    /// Handles bulk of a small item, which arrives in a frame after the item's head.
    pub(super) fn take_chunk(&mut self, head: ChunkHead, bytes: &[u8]) -> Result<()> {
        let ChunkHead { op, item, offset } = head;
        let Some(state) = self.ops.get(op) else { return Ok(()) };
        let bytes = Bytes::copy_from_slice(bytes);
        if state.can_take(item, offset) {
            self.untaken_bytes += bytes.len() as u64;
            self.add_part(op, item, offset, bytes)?;
        } else if state.open.contains_key(&item) || state.holds(item) {
            self.keep(op, item, offset, bytes)?;
        } else {
            let what = format!("found a chunk of item {item} of operation {op}, which is not in flight");
            return Err(Error::corrupt(what));
        }
        self.advance(op)
    }

    /// Keeps a part of an ordered operation until it is its turn.
    fn keep(&mut self, op: OpId, item: u32, offset: u64, bytes: Bytes) -> Result<()> {
        let size_bytes = bytes.len() as u64;
        let Some(state) = self.ops.get_mut(op) else { return Ok(()) };
        let early_parts = state.early_parts();
        early_parts.early_bytes += size_bytes;
        if early_parts.early.insert((item, offset), bytes).is_some() {
            let what = format!("expected bulk that is missing, found item {item} at {offset} again");
            return Err(Error::corrupt(what));
        }
        self.untaken_bytes += size_bytes;
        self.check_places(1)
    }

    /// Handles the server's last frame about an operation; false when nothing is missing.
    pub(super) fn ends_with_its_parts(&mut self, op: OpId) -> bool {
        let Some(state) = self.ops.get_mut(op).filter(|state| state.wanted && !state.open.is_empty()) else {
            return false;
        };
        state.early_parts().has_ended = true;
        true
    }

    /// Takes places for parts that arrived early.
    fn check_places(&mut self, more: usize) -> Result<()> {
        self.places_ahead += more;
        let found = self.places_ahead + self.open_items;
        if found <= MAX_AHEAD {
            return Ok(());
        }
        Err(Error::too_large(format!(
            "expected at most {MAX_AHEAD} pieces of bulk out of order, found {found}"
        )))
    }
}
