//! What a server has still to send: control frames first, then items, the most urgent first.
//!
//! Each operation has a line of items; the lines are ranked by priority, and within one priority by the age of
//! the item in front. One chunk is cut off the best line at a time, so here a more urgent item waits for one chunk at
//! most; what the driver and the kernel have taken already still goes before it. Lines whose front needs credit are kept apart from those that need none: without credit the others go on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use array::Priority;
use bytes::Bytes;

use crate::limits::{HIGHEST_TIER, MAX_CHUNK_BYTES, MAX_QUEUED_ITEMS, QUEUE_BYTES, QUEUE_BYTES_PER_TIER};
use crate::{Chunk, Frame, ItemHead, OpId};

/// Smaller is sooner; the second part is the age of the line's first entry, which is unique.
type Rank = (Reverse<Priority>, u64);

#[derive(Debug)]
struct Entry {
    age: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    /// `head` until it was sent, then what is left of the bulk.
    Item {
        op: OpId,
        item: u32,
        head: Option<ItemHead>,
        offset: u64,
        bulk: Bytes,
    },
    Done,
}

impl Entry {
    fn needs_credit(&self) -> bool {
        self.bulk_bytes() > 0
    }

    fn bulk_bytes(&self) -> usize {
        match &self.what {
            What::Item { bulk, .. } => bulk.len(),
            What::Done => 0,
        }
    }

    fn size_bytes(&self) -> usize {
        match &self.what {
            What::Item { head, bulk, .. } => bulk.len() + head.as_ref().map_or(0, |h| h.body.len()),
            What::Done => 0,
        }
    }
}

#[derive(Debug)]
struct Line {
    priority: Priority,
    entries: VecDeque<Entry>,
}

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    control: VecDeque<Frame>,
    lines: BTreeMap<OpId, Line>,
    /// Lines whose first entry can go now.
    free: BTreeMap<Rank, OpId>,
    /// Lines whose first entry needs credit.
    bulky: BTreeMap<Rank, OpId>,
    next_age: u64,
    credit_bytes: u64,
    queued_bytes: usize,
    queued_items: usize,
    /// Whose item was sent last; what is left of it does not count against `room`.
    current: Option<OpId>,
}

impl Outbox {
    pub(crate) fn push_control(&mut self, frame: Frame) {
        self.control.push_back(frame);
    }

    pub(crate) fn control_frames(&self) -> usize {
        self.control.len()
    }

    pub(crate) fn add_credit(&mut self, bytes: u64) {
        self.credit_bytes = self.credit_bytes.saturating_add(bytes);
    }

    pub(crate) fn push_item(&mut self, priority: Priority, head: ItemHead, bulk: Bytes) {
        let (op, item) = (head.op, head.item);
        self.push(op, priority, What::Item { op, item, head: Some(head), offset: 0, bulk });
    }

    pub(crate) fn push_done(&mut self, op: OpId, priority: Priority) {
        self.push(op, priority, What::Done);
    }

    fn push(&mut self, op: OpId, priority: Priority, what: What) {
        let entry = Entry { age: self.next_age, what };
        self.next_age += 1;
        self.queued_bytes += entry.size_bytes();
        self.queued_items += 1;
        let line = self.lines.entry(op).or_insert(Line { priority, entries: VecDeque::new() });
        line.entries.push_back(entry);
        if line.entries.len() == 1 {
            self.enlist(op);
        }
    }

    /// Bytes that may still be queued for an operation of this priority; an item is taken whole while this is
    /// not zero.
    pub(crate) fn room_bytes(&self, priority: Priority) -> usize {
        if self.queued_items >= MAX_QUEUED_ITEMS {
            return 0;
        }
        let limit = QUEUE_BYTES + usize::from(priority.tier.min(HIGHEST_TIER)) * QUEUE_BYTES_PER_TIER;
        limit.saturating_sub(self.queued_bytes - self.current_bytes())
    }

    fn current_bytes(&self) -> usize {
        let line = self.current.and_then(|op| self.lines.get(&op));
        line.and_then(|l| l.entries.front()).map_or(0, Entry::bulk_bytes)
    }

    pub(crate) fn set_priority(&mut self, op: OpId, priority: Priority) {
        if self.lines.contains_key(&op) {
            self.delist(op);
            if let Some(line) = self.lines.get_mut(&op) {
                line.priority = priority;
            }
            self.enlist(op);
        }
    }

    /// Forgets all that is queued for an operation.
    pub(crate) fn drop_line(&mut self, op: OpId) {
        self.delist(op);
        if let Some(line) = self.lines.remove(&op) {
            self.queued_bytes -= line.entries.iter().map(Entry::size_bytes).sum::<usize>();
            self.queued_items -= line.entries.len();
        }
        self.current = self.current.filter(|current| *current != op);
    }

    /// Forgets everything but the credit.
    pub(crate) fn clear(&mut self) {
        *self = Self { credit_bytes: self.credit_bytes, next_age: self.next_age, ..Self::default() };
    }

    pub(crate) fn pop(&mut self) -> Option<Frame> {
        if let Some(frame) = self.control.pop_front() {
            return Some(frame);
        }
        let op = self.best()?;
        self.delist(op);
        let frame = self.advance(op);
        if self.lines.get(&op).is_some_and(|line| line.entries.is_empty()) {
            self.lines.remove(&op);
        }
        self.enlist(op);
        frame
    }

    fn best(&self) -> Option<OpId> {
        let free = self.free.first_key_value();
        let bulky = self.bulky.first_key_value().filter(|_| self.credit_bytes > 0);
        let best = match (free, bulky) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        Some(*best.1)
    }

    /// Takes one frame off the front of a line.
    fn advance(&mut self, op: OpId) -> Option<Frame> {
        let line = self.lines.get_mut(&op)?;
        let front = line.entries.front_mut()?;
        let frame = match &mut front.what {
            What::Done => Frame::Done { op },
            What::Item { head: head @ Some(_), .. } => {
                let head = head.take()?;
                self.queued_bytes -= head.body.len();
                Frame::Item(head)
            }
            What::Item { op, item, offset, bulk, .. } => {
                let credit = usize::try_from(self.credit_bytes).unwrap_or(usize::MAX);
                let bytes = bulk.split_to(bulk.len().min(MAX_CHUNK_BYTES).min(credit));
                let chunk = Chunk { op: *op, item: *item, offset: *offset, bytes };
                *offset += chunk.bytes.len() as u64;
                self.credit_bytes -= chunk.bytes.len() as u64;
                self.queued_bytes -= chunk.bytes.len();
                Frame::Chunk(chunk)
            }
        };
        self.current = Some(op);
        if !front.needs_credit() {
            line.entries.pop_front();
            self.queued_items -= 1;
            self.current = None;
        }
        Some(frame)
    }

    fn rank(&self, op: OpId) -> Option<(Rank, bool)> {
        let line = self.lines.get(&op)?;
        let front = line.entries.front()?;
        Some(((Reverse(line.priority), front.age), front.needs_credit()))
    }

    fn enlist(&mut self, op: OpId) {
        if let Some((rank, needs_credit)) = self.rank(op) {
            let list = if needs_credit { &mut self.bulky } else { &mut self.free };
            list.insert(rank, op);
        }
    }

    fn delist(&mut self, op: OpId) {
        if let Some((rank, needs_credit)) = self.rank(op) {
            let list = if needs_credit { &mut self.bulky } else { &mut self.free };
            list.remove(&rank);
        }
    }
}
