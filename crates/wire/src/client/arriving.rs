//! What comes from the server once the handshake is over: parts of answers, checked and told.

use std::time::Instant;

use array::{Error, Result, Retry};

use super::{Client, ClientEvent, State};
use crate::batch::{Answer, WholeItem};
use crate::check::unexpected;
use crate::limits::{MAX_ITEM_BULK_BYTES, MAX_OPEN_ITEMS};
use crate::{Chunk, ChunkHead, Frame, ItemHead, OpId};

#[derive(Debug)]
pub(super) struct OpenItem {
    bulk_bytes: u64,
    received_bytes: u64,
    crc32c: u32,
    expected_crc32c: u32,
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
        if self.ops.get(op).is_some_and(|o| !o.open.is_empty()) {
            return Err(Error::corrupt(format!("operation {op} ended within an item")));
        }
        self.retire(op, ClientEvent::Done { op })
    }

    /// The same as its item, one chunk and its end.
    fn handle_answer(&mut self, answer: Answer) -> Result<()> {
        let Answer { op, item, done } = answer;
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

    /// The whole answer of an operation at once.
    fn handle_whole(&mut self, op: OpId, item: WholeItem) -> Result<()> {
        let WholeItem { body, bulk, bulk_crc32c, .. } = item;
        self.use_credit(bulk.len() as u64)?;
        let state = self.forget(op)?;
        if !state.wanted {
            return Ok(());
        }
        if state.next_item > 0 {
            return Err(Error::corrupt(format!("found a second item 0 of operation {op}")));
        }
        let found = crc32c::crc32c(&bulk);
        self.events.push_back(if found == bulk_crc32c {
            self.untaken_bytes += bulk.len() as u64;
            ClientEvent::Whole { op, body, bulk }
        } else {
            ClientEvent::Failed { op, error: mismatch(0, bulk_crc32c, found) }
        });
        Ok(())
    }

    /// Bulk has arrived.
    fn use_credit(&mut self, size_bytes: u64) -> Result<()> {
        self.credit_bytes = self.credit_bytes.checked_sub(size_bytes).ok_or_else(|| {
            Error::corrupt(format!(
                "expected at most {} bulk bytes of credit to be used, found {size_bytes}",
                self.credit_bytes
            ))
        })?;
        self.window.handle_arrived(size_bytes);
        Ok(())
    }

    fn handle_item(&mut self, head: ItemHead) -> Result<()> {
        let ItemHead { op, item, body, bulk_bytes, bulk_crc32c } = head;
        let state = self.ops.get_mut(op).ok_or_else(|| unknown(op))?;
        if !state.wanted {
            return Ok(());
        }
        if item != state.next_item {
            let next = state.next_item;
            return Err(Error::corrupt(format!("expected item {next} of operation {op}, found {item}")));
        }
        if bulk_bytes > MAX_ITEM_BULK_BYTES || self.open_items >= MAX_OPEN_ITEMS {
            return Err(Error::too_large(format!(
                "expected at most {MAX_ITEM_BULK_BYTES} bulk bytes and {MAX_OPEN_ITEMS} open items, \
                 found {bulk_bytes} and {}",
                self.open_items
            )));
        }
        state.next_item += 1;
        if bulk_bytes > 0 {
            let open = OpenItem { bulk_bytes, received_bytes: 0, crc32c: 0, expected_crc32c: bulk_crc32c };
            state.open.insert(item, open);
            self.open_items += 1;
        } else if bulk_crc32c != 0 {
            self.abandon_with(op, mismatch(item, bulk_crc32c, 0));
            return Ok(());
        }
        self.events.push_back(ClientEvent::Item { op, item, body, bulk_bytes });
        Ok(())
    }

    fn handle_chunk(&mut self, chunk: Chunk) -> Result<()> {
        let Chunk { op, item, offset, bytes } = chunk;
        if let Some(complete) = self.check_bulk(ChunkHead { op, item, offset }, &bytes)? {
            self.events.push_back(ClientEvent::Piece { op, item, offset, bytes, complete });
        }
        Ok(())
    }

    /// Takes some bulk where it lies, as [`handle_frame`](Machine::handle_frame) takes a chunk. `Some` when the
    /// application wants it, and whether the item is complete with it and its checksum is right; there is no event then. Its
    /// size is to be given back by [`grant`](Self::grant).
    ///
    /// # Errors
    /// As [`handle_frame`](Machine::handle_frame).
    pub fn handle_bulk(&mut self, now: Instant, head: ChunkHead, bytes: &[u8]) -> Result<Option<bool>> {
        self.liveness.handle_heard(now);
        let result = match self.state {
            State::Open => self.check_bulk(head, bytes),
            State::Closed(_) => Ok(None),
            State::Greeting { .. } => Err(Error::corrupt("expected welcome or refused, found a chunk")),
        };
        self.close_if_broken(result)
    }

    /// Counts bulk and checks it; `Some` when it is wanted, and whether the item is complete.
    fn check_bulk(&mut self, head: ChunkHead, bytes: &[u8]) -> Result<Option<bool>> {
        let ChunkHead { op, item, offset } = head;
        let size_bytes = bytes.len() as u64;
        self.use_credit(size_bytes)?;
        let state = self.ops.get_mut(op).ok_or_else(|| unknown(op))?;
        if !state.wanted {
            return Ok(None);
        }
        let open = state.open.get_mut(&item).ok_or_else(|| {
            Error::corrupt(format!("found a chunk of item {item} of operation {op}, which is not under way"))
        })?;
        if offset != open.received_bytes || size_bytes > open.bulk_bytes - offset {
            return Err(Error::corrupt(format!(
                "expected a chunk at {} of {} bytes, found {size_bytes} bytes at {offset}",
                open.received_bytes, open.bulk_bytes
            )));
        }
        open.received_bytes += size_bytes;
        open.crc32c = crc32c::crc32c_append(open.crc32c, bytes);
        let complete = open.received_bytes == open.bulk_bytes;
        let (found, expected) = (open.crc32c, open.expected_crc32c);
        if complete {
            state.open.remove(&item);
            self.open_items -= 1;
        }
        if complete && found != expected {
            self.abandon_with(op, mismatch(item, expected, found));
            return Ok(None);
        }
        self.untaken_bytes += size_bytes;
        Ok(Some(complete))
    }
}

pub(super) fn unknown(op: OpId) -> Error {
    Error::corrupt(format!("found an answer to operation {op}, which is not under way"))
}

fn mismatch(item: u32, expected: u32, found: u32) -> Error {
    Error::corrupt(format!("item {item}: expected the checksum {expected:#010x}, found {found:#010x}"))
        .with_retry(Retry::MayHelp)
}
