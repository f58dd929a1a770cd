//! Handling of answers after the handshake: their parts are checked and reported.

use std::time::Instant;

use array::{Error, Result, Retry};

use super::segments::ReceivedSegments;
use super::{Client, ClientEvent, ClientPhase};
use crate::frames::batch::{SmallAnswer, WholeItem};
use crate::frames::check::unexpected;
use crate::limits::{MAX_AHEAD, MAX_ITEM_BULK_BYTES, MAX_OPEN_ITEMS};
use crate::{Chunk, ChunkHead, Frame, ItemHead, OpId};

#[derive(Debug)]
pub(super) struct OpenItem {
    pub(super) bulk_bytes: u64,
    pub(super) expected_crc32c: u32,
    pub(super) there: ReceivedSegments,
}

impl OpenItem {
    pub(super) fn new(head: &ItemHead) -> Self {
        Self {
            bulk_bytes: head.bulk_bytes,
            expected_crc32c: head.bulk_crc32c,
            there: ReceivedSegments::default(),
        }
    }

    /// Adds bulk; returns `Some` with the result of the checksum once the bulk is complete.
    ///
    /// # Errors
    /// `Corrupt` for bulk that was added before or lies beyond the end.
    pub(super) fn add(&mut self, offset: u64, bytes: &[u8]) -> Result<Option<Result<()>>> {
        let size_bytes = bytes.len() as u64;
        let is_within = offset <= self.bulk_bytes && size_bytes <= self.bulk_bytes - offset;
        if !is_within || !self.there.add(offset, bytes) {
            return Err(Error::corrupt(format!(
                "expected bulk that is missing in {} bytes, of which the first {} are there, found {size_bytes} bytes \
                 at {offset}",
                self.bulk_bytes,
                self.there.start_bytes()
            )));
        }
        Ok((self.there.start_bytes() == self.bulk_bytes).then(|| {
            let (expected, found) = (self.expected_crc32c, self.there.start_crc32c());
            if expected == found { Ok(()) } else { Err(mismatch(expected, found)) }
        }))
    }
}

impl Client {
    pub(super) fn handle_open(&mut self, now: Instant, frame: Frame) -> Result<()> {
        match frame {
            Frame::Item(head) => self.handle_item(head),
            Frame::Chunk(chunk) => self.handle_chunk(chunk),
            Frame::Answers(answers) => answers.into_iter().try_for_each(|answer| self.handle_answer(answer)),
            Frame::Done { op } => self.handle_done(op),
            Frame::Failed { op, error } => self.retire(op, ClientEvent::Failed { op, error }),
            Frame::Ping { nonce } => {
                self.liveness.handle_ping(nonce);
                Ok(())
            }
            Frame::Pong { nonce } => {
                self.window.handle_pong(now, nonce);
                Ok(())
            }
            other => Err(unexpected("a frame of a server", &other)),
        }
    }

    fn handle_done(&mut self, op: OpId) -> Result<()> {
        if self.expects_parts && self.ends_with_its_parts(op) {
            return Ok(());
        }
        if self.ops.get(op).is_some_and(|o| !o.open.is_empty()) {
            return Err(Error::corrupt(format!("operation {op} ended within an item")));
        }
        self.retire(op, ClientEvent::Done { op })
    }

    /// Handles a small answer as its item's head, one chunk and the end of the operation, as far as it has
    /// them.
    fn handle_answer(&mut self, answer: SmallAnswer) -> Result<()> {
        let SmallAnswer { op, item, done } = answer;
        let item = match item {
            Some(item) if done && item.item == 0 => return self.handle_whole(op, item),
            item => item,
        };
        if let Some(WholeItem { item, body, bulk, bulk_crc32c }) = item {
            let bulk_bytes = bulk.len() as u64;
            self.handle_item(ItemHead { op, item, body, bulk_bytes, bulk_crc32c })?;
            if bulk_bytes > 0 {
                self.handle_chunk(Chunk { op, item, offset: 0, bytes: bulk })?;
            }
        }
        if done { self.handle_done(op) } else { Ok(()) }
    }

    /// Handles the whole answer of an operation.
    fn handle_whole(&mut self, op: OpId, item: WholeItem) -> Result<()> {
        let WholeItem { body, bulk, bulk_crc32c, .. } = item;
        self.use_credit(bulk.len() as u64)?;
        if self.ops.get(op).is_some_and(|state| state.wanted && state.has_begun()) {
            return Err(Error::corrupt(format!(
                "expected the rest of the answer to operation {op}, found a whole one"
            )));
        }
        if !self.forget(op)?.wanted {
            return Ok(());
        }
        let found = crc32c::crc32c(&bulk);
        self.events.push_back(if found == bulk_crc32c {
            self.untaken_bytes += bulk.len() as u64;
            ClientEvent::Whole { op, body, bulk }
        } else {
            ClientEvent::Failed { op, error: item_error(0, mismatch(bulk_crc32c, found)) }
        });
        Ok(())
    }

    /// Counts arrived bulk against the credit.
    pub(super) fn use_credit(&mut self, size_bytes: u64) -> Result<()> {
        self.credit_bytes = self.credit_bytes.checked_sub(size_bytes).ok_or_else(|| {
            Error::corrupt(format!(
                "expected at most {} bulk bytes of credit to be used, found {size_bytes}",
                self.credit_bytes
            ))
        })?;
        self.window.handle_arrived(size_bytes);
        if let Some(turns) = &mut self.turns {
            turns.handle_arrived(size_bytes);
        }
        Ok(())
    }

    fn handle_item(&mut self, head: ItemHead) -> Result<()> {
        let ItemHead { op, item, bulk_bytes, .. } = head;
        let state = self.ops.get_mut(op).ok_or_else(|| unknown(op))?;
        if !state.wanted {
            return Ok(());
        }
        if self.expects_parts {
            let (is_told, places) = state.is_told_by_parts(&head)?;
            self.places_ahead -= places;
            if is_told {
                return Ok(());
            }
        }
        if item != state.next_item {
            let next = state.next_item;
            return Err(Error::corrupt(format!("expected item {next} of operation {op}, found {item}")));
        }
        // Out of order, many items are in flight whose last bytes are missing.
        let most_open = if self.expects_parts { MAX_AHEAD } else { MAX_OPEN_ITEMS };
        if bulk_bytes > MAX_ITEM_BULK_BYTES || self.open_items >= most_open {
            return Err(Error::too_large(format!(
                "expected at most {MAX_ITEM_BULK_BYTES} bulk bytes and {most_open} open items, \
                 found {bulk_bytes} and {}",
                self.open_items
            )));
        }
        state.next_item += 1;
        if self.expects_parts && state.has_to_wait() {
            return self.keep_head(head);
        }
        self.begin_item(head);
        if self.expects_parts { self.advance(op) } else { Ok(()) }
    }

    /// Begins an item.
    pub(super) fn begin_item(&mut self, head: ItemHead) {
        let ItemHead { op, item, bulk_bytes, bulk_crc32c, .. } = head;
        let Some(state) = self.ops.get_mut(op) else { return };
        if bulk_bytes > 0 {
            state.open.insert(item, OpenItem::new(&head));
            self.open_items += 1;
        } else if bulk_crc32c != 0 {
            return self.abandon_with(op, item_error(item, mismatch(bulk_crc32c, 0)));
        }
        self.events.push_back(ClientEvent::Item { op, item, body: head.body, bulk_bytes });
    }

    fn handle_chunk(&mut self, chunk: Chunk) -> Result<()> {
        let Chunk { op, item, offset, bytes } = chunk;
        if let Some(complete) = self.check_bulk(ChunkHead { op, item, offset }, &bytes)? {
            self.events.push_back(ClientEvent::Piece { op, item, offset, bytes, complete });
        }
        Ok(())
    }

    /// Handles bulk in the carrier's buffer, as [`handle_frame`](Machine::handle_frame) handles a chunk.
    /// Returns `Some` when the application wants the bytes; the value is true when they complete the item and
    /// its checksum is right. No event reports them, and [`grant`](Self::grant) has to return their size.
    ///
    /// # Errors
    /// The errors of [`handle_frame`](Machine::handle_frame).
    pub fn handle_bulk(&mut self, now: Instant, head: ChunkHead, bytes: &[u8]) -> Result<Option<bool>> {
        self.liveness.handle_heard(now);
        let result = match self.state {
            ClientPhase::Open if self.can_be_put_to_its_place(head.op, head.item) => {
                self.put_to_its_place(head, bytes)
            }
            ClientPhase::Open => self.check_bulk(head, bytes),
            ClientPhase::Closed(_) => Ok(None),
            ClientPhase::Greeting { .. } => Err(Error::corrupt("expected welcome or refused, found a chunk")),
        };
        self.close_if_broken(result)
    }

    /// Counts bulk and checks it; returns `Some` when it is wanted, true when the item is complete.
    fn check_bulk(&mut self, head: ChunkHead, bytes: &[u8]) -> Result<Option<bool>> {
        let ChunkHead { op, item, offset } = head;
        let size_bytes = bytes.len() as u64;
        self.use_credit(size_bytes)?;
        let state = self.ops.get_mut(op).ok_or_else(|| unknown(op))?;
        if !state.wanted {
            return Ok(None);
        }
        if self.expects_parts {
            return self.take_chunk(head, bytes).map(|()| None);
        }
        let open = state.open.get_mut(&item).ok_or_else(|| {
            Error::corrupt(format!("found a chunk of item {item} of operation {op}, which is not in flight"))
        })?;
        if offset != open.there.start_bytes() || size_bytes > open.bulk_bytes - offset {
            return Err(Error::corrupt(format!(
                "expected a chunk at {} of {} bytes, found {size_bytes} bytes at {offset}",
                open.there.start_bytes(),
                open.bulk_bytes
            )));
        }
        let complete = open.add(offset, bytes)?;
        if complete.is_some() {
            state.open.remove(&item);
            self.open_items -= 1;
        }
        if let Some(Err(error)) = complete {
            self.abandon_with(op, item_error(item, error));
            return Ok(None);
        }
        let complete = complete.is_some();
        self.untaken_bytes += size_bytes;
        Ok(Some(complete))
    }
}

pub(super) fn unknown(op: OpId) -> Error {
    Error::corrupt(format!("found an answer to operation {op}, which is not in flight"))
}

fn mismatch(expected: u32, found: u32) -> Error {
    Error::corrupt(format!("expected the checksum {expected:#010x}, found {found:#010x}"))
        .with_retry(Retry::MayHelp)
}

pub(super) fn item_error(item: u32, error: Error) -> Error {
    error.context(format!("item {item}"))
}
