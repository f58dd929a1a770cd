//! Queue of everything that a server has to send: control frames first, then items, the most urgent first.
//!
//! Small answers that are queued whole wait separately (`whole.rs`). Each other operation has a line of items; lines are
//! ranked by priority, and within one priority by the age of their first item. One chunk of the best line is sent at a
//! time, so an urgent item waits here for one chunk at most; messages that the driver and the kernel have already taken are
//! still sent before it. Lines that need credit are kept apart from those that do not, which continue without credit.
//! Small answers that are ready together are sent as one batch, in the same order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use array::Priority;
use bytes::Bytes;

use crate::frames::batch::{SmallAnswer, WholeItem};
use crate::limits::{
    HIGHEST_TIER, MAX_ANSWERS_BYTES, MAX_BATCH_OPERATIONS, MAX_CHUNK_BYTES, MAX_QUEUED_ITEMS,
    MAX_SMALL_BODY_BYTES, MAX_SMALL_BULK_BYTES, QUEUE_BYTES, QUEUE_BYTES_PER_TIER,
};
use crate::server::whole::{AnswerRank, WholeAnswers};
use crate::{Chunk, Frame, ItemHead, OpId};

#[derive(Debug)]
struct OutboxEntry {
    age: u64,
    content: EntryContent,
    /// The operation ends with it.
    last: bool,
}

#[derive(Debug)]
enum EntryContent {
    /// `head` until it was sent, then what is left of the bulk.
    Item { item: u32, head: Option<ItemHead>, offset: u64, bulk: Bytes },
    /// `whole`: the end is the whole answer.
    Done { whole: bool },
}

impl OutboxEntry {
    fn needs_credit(&self) -> bool {
        self.bulk_bytes() > 0
    }

    fn bulk_bytes(&self) -> usize {
        match &self.content {
            EntryContent::Item { bulk, .. } => bulk.len(),
            EntryContent::Done { .. } => 0,
        }
    }

    fn size_bytes(&self) -> usize {
        match &self.content {
            EntryContent::Item { head, bulk, .. } => bulk.len() + head.as_ref().map_or(0, |h| h.body.len()),
            EntryContent::Done { .. } => 0,
        }
    }
}

impl OutboxEntry {
    /// Size in a batch, bytes; `None` when it has to be sent by itself, because it is large or not the whole
    /// answer.
    fn small_bytes(&self, credit_bytes: u64) -> Option<usize> {
        match &self.content {
            EntryContent::Done { whole } => whole.then_some(0),
            EntryContent::Item { item: 0, head: Some(head), bulk, .. } if self.last => {
                let small = head.body.len() <= MAX_SMALL_BODY_BYTES
                    && bulk.len() <= MAX_SMALL_BULK_BYTES
                    && bulk.len() as u64 <= credit_bytes;
                small.then(|| head.body.len() + bulk.len())
            }
            EntryContent::Item { .. } => None,
        }
    }
}

/// Entries queued for one operation; most operations have one entry.
#[derive(Debug)]
struct OperationLine {
    priority: Priority,
    front: OutboxEntry,
    rest: VecDeque<OutboxEntry>,
}

impl OperationLine {
    fn entries(&self) -> impl Iterator<Item = &OutboxEntry> {
        std::iter::once(&self.front).chain(&self.rest)
    }

    fn back_mut(&mut self) -> &mut OutboxEntry {
        self.rest.back_mut().unwrap_or(&mut self.front)
    }
}

/// Entry to send next: the front of a line, or a whole small answer.
enum NextEntry {
    Line(OpId),
    Whole { bulky: bool },
}

#[derive(Debug, Default)]
pub(crate) struct ServerOutbox {
    control: VecDeque<Frame>,
    /// Small answers without bulk, which can be sent now.
    whole_free: WholeAnswers,
    /// Small answers whose bulk needs credit.
    whole_bulky: WholeAnswers,
    lines: BTreeMap<OpId, OperationLine>,
    /// Lines whose first entry can be sent now.
    free: BTreeMap<AnswerRank, OpId>,
    /// Lines whose first entry needs credit.
    bulky: BTreeMap<AnswerRank, OpId>,
    next_age: u64,
    credit_bytes: u64,
    queued_bytes: usize,
    queued_items: usize,
    /// Operation whose item was sent last; the rest of the item does not count against `room`.
    current: Option<OpId>,
    /// The client can read batches.
    batches: bool,
}

impl ServerOutbox {
    pub(crate) fn push_control(&mut self, frame: Frame) {
        self.control.push_back(frame);
    }

    pub(crate) fn control_frames(&self) -> usize {
        self.control.len()
    }

    pub(crate) fn batch(&mut self) {
        self.batches = true;
    }

    pub(crate) fn add_credit(&mut self, bytes: u64) {
        self.credit_bytes = self.credit_bytes.saturating_add(bytes);
    }

    pub(crate) fn push_item(&mut self, priority: Priority, head: ItemHead, bulk: Bytes) {
        let (op, item) = (head.op, head.item);
        self.push(op, priority, EntryContent::Item { item, head: Some(head), offset: 0, bulk });
    }

    /// Queues a whole answer, if it is small and the client can read batches; returns its age, by which it
    /// can be [cancelled](Self::withdraw).
    ///
    /// # Errors
    /// The answer, when it has to be queued as an item and an end.
    pub(crate) fn push_whole(
        &mut self,
        priority: Priority,
        op: OpId,
        item: WholeItem,
    ) -> Result<u64, WholeItem> {
        if !self.batches || item.body.len() > MAX_SMALL_BODY_BYTES || item.bulk.len() > MAX_SMALL_BULK_BYTES {
            return Err(item);
        }
        let age = self.next_age;
        self.next_age += 1;
        self.queued_bytes += item.size_bytes();
        self.queued_items += 1;
        let bulky = !item.bulk.is_empty();
        self.whole_mut(bulky).push(priority, age, SmallAnswer { op, item: Some(item), done: true });
        Ok(age)
    }

    /// Removes a whole answer that still waits as such.
    pub(crate) fn withdraw(&mut self, priority: Priority, age: u64) -> Option<SmallAnswer> {
        let bulky = || self.whole_bulky.withdraw(priority, age);
        let answer = self.whole_free.withdraw(priority, age).or_else(bulky)?;
        self.discount(&answer);
        Some(answer)
    }

    /// Queues a whole answer of this age again, so that it is sent by itself.
    pub(crate) fn push_apart(&mut self, priority: Priority, age: u64, answer: SmallAnswer) {
        let SmallAnswer { op, item: Some(WholeItem { item, body, bulk, bulk_crc32c }), .. } = answer else {
            return;
        };
        let head = ItemHead { op, item, body, bulk_bytes: bulk.len() as u64, bulk_crc32c };
        let content = EntryContent::Item { item, head: Some(head), offset: 0, bulk };
        self.enter(op, priority, OutboxEntry { age, content, last: true });
    }

    fn discount(&mut self, answer: &SmallAnswer) {
        self.queued_bytes -= answer.item.as_ref().map_or(0, WholeItem::size_bytes);
        self.queued_items -= 1;
    }

    /// Queues the end of an operation; `items` is the number of its items.
    pub(crate) fn push_done(&mut self, op: OpId, priority: Priority, items: u32) {
        match self.lines.get_mut(&op) {
            Some(line) => line.back_mut().last = true,
            None => self.push(op, priority, EntryContent::Done { whole: items == 0 }),
        }
    }

    fn push(&mut self, op: OpId, priority: Priority, content: EntryContent) {
        let entry = OutboxEntry { age: self.next_age, content, last: false };
        self.next_age += 1;
        self.enter(op, priority, entry);
    }

    fn enter(&mut self, op: OpId, priority: Priority, entry: OutboxEntry) {
        self.queued_bytes += entry.size_bytes();
        self.queued_items += 1;
        match self.lines.get_mut(&op) {
            Some(line) => line.rest.push_back(entry),
            None => {
                self.list(op, priority, &entry);
                self.lines.insert(op, OperationLine { priority, front: entry, rest: VecDeque::new() });
            }
        }
    }

    /// Bytes that may still be queued for an operation of this priority; an item is accepted as a whole while
    /// this is not zero.
    pub(crate) fn room_bytes(&self, priority: Priority) -> usize {
        if self.queued_items >= MAX_QUEUED_ITEMS {
            return 0;
        }
        let limit = QUEUE_BYTES + usize::from(priority.tier.min(HIGHEST_TIER)) * QUEUE_BYTES_PER_TIER;
        limit.saturating_sub(self.queued_bytes - self.current_bytes())
    }

    fn current_bytes(&self) -> usize {
        let line = self.current.and_then(|op| self.lines.get(&op));
        line.map_or(0, |l| l.front.bulk_bytes())
    }

    pub(crate) fn set_priority(&mut self, op: OpId, priority: Priority) {
        if let Some(mut line) = self.lines.remove(&op) {
            self.unlist(&line);
            line.priority = priority;
            self.list(op, priority, &line.front);
            self.lines.insert(op, line);
        }
    }

    /// Drops all entries of an operation.
    pub(crate) fn drop_line(&mut self, op: OpId) {
        if let Some(line) = self.lines.remove(&op) {
            self.unlist(&line);
            self.queued_bytes -= line.entries().map(OutboxEntry::size_bytes).sum::<usize>();
            self.queued_items -= line.entries().count();
        }
        self.current = self.current.filter(|current| *current != op);
    }

    /// Drops everything but the credit.
    pub(crate) fn clear(&mut self) {
        let Self { credit_bytes, next_age, batches, .. } = *self;
        *self = Self { credit_bytes, next_age, batches, ..Self::default() };
    }

    pub(crate) fn pop(&mut self) -> Option<Frame> {
        if let Some(frame) = self.control.pop_front() {
            return Some(frame);
        }
        if self.batches {
            let answers = self.pop_small();
            if !answers.is_empty() {
                return Some(Frame::Answers(answers));
            }
        }
        let op = match self.next()? {
            NextEntry::Line(op) => op,
            NextEntry::Whole { bulky } => self.set_apart(bulky)?,
        };
        let line = self.lines.remove(&op)?;
        self.unlist(&line);
        Some(self.advance(op, line))
    }

    /// Takes the best small entries in order, as one batch.
    fn pop_small(&mut self) -> Vec<SmallAnswer> {
        let mut answers = Vec::new();
        let mut left_bytes = MAX_ANSWERS_BYTES;
        while answers.len() < MAX_BATCH_OPERATIONS
            && let Some(next) = self.next()
            && let Some(size_bytes) = self.small_bytes(&next)
            && size_bytes <= left_bytes
            && let Some(answer) = self.take_small(next)
        {
            left_bytes -= size_bytes;
            answers.push(answer);
        }
        answers
    }

    /// Size in a batch, bytes; `None` when it has to be sent by itself.
    fn small_bytes(&self, next: &NextEntry) -> Option<usize> {
        match next {
            NextEntry::Line(op) => self.lines.get(op)?.front.small_bytes(self.credit_bytes),
            NextEntry::Whole { bulky } => {
                let (_, answer) = self.whole(*bulky).first()?;
                let item = answer.item.as_ref()?;
                (item.bulk.len() as u64 <= self.credit_bytes).then(|| item.size_bytes())
            }
        }
    }

    fn take_small(&mut self, next: NextEntry) -> Option<SmallAnswer> {
        let op = match next {
            NextEntry::Line(op) => op,
            NextEntry::Whole { bulky } => {
                let answer = self.whole_mut(bulky).pop()?;
                self.discount(&answer);
                self.credit_bytes -= answer.item.as_ref().map_or(0, |item| item.bulk.len() as u64);
                return Some(answer);
            }
        };
        let line = self.lines.remove(&op)?;
        self.unlist(&line);
        Some(self.take_whole(op, line))
    }

    /// Turns a whole answer that lacks credit into a line.
    fn set_apart(&mut self, bulky: bool) -> Option<OpId> {
        let ((priority, age), _) = self.whole(bulky).first()?;
        let answer = self.whole_mut(bulky).pop()?;
        self.discount(&answer);
        let op = answer.op;
        self.push_apart(priority.0, age, answer);
        Some(op)
    }

    fn whole(&self, bulky: bool) -> &WholeAnswers {
        if bulky { &self.whole_bulky } else { &self.whole_free }
    }

    fn whole_mut(&mut self, bulky: bool) -> &mut WholeAnswers {
        if bulky { &mut self.whole_bulky } else { &mut self.whole_free }
    }

    /// Takes a small entry off the front of a line that is not listed.
    fn take_whole(&mut self, op: OpId, line: OperationLine) -> SmallAnswer {
        let OperationLine { priority, front, rest } = line;
        self.queued_bytes -= front.size_bytes();
        self.credit_bytes -= front.bulk_bytes() as u64;
        self.queued_items -= 1;
        self.go_on(op, priority, rest);
        let done = front.last || matches!(front.content, EntryContent::Done { .. });
        let item = match front.content {
            EntryContent::Item { item, head: Some(head), bulk, .. } => {
                Some(WholeItem { item, body: head.body, bulk, bulk_crc32c: head.bulk_crc32c })
            }
            EntryContent::Item { .. } | EntryContent::Done { .. } => None,
        };
        SmallAnswer { op, item, done }
    }

    /// Moves the next entry of a line to the front after its first was sent.
    fn go_on(&mut self, op: OpId, priority: Priority, mut rest: VecDeque<OutboxEntry>) {
        if let Some(front) = rest.pop_front() {
            self.list(op, priority, &front);
            self.lines.insert(op, OperationLine { priority, front, rest });
        }
    }

    /// Returns the best entry that can be sent now.
    fn next(&self) -> Option<NextEntry> {
        let line = |list: &BTreeMap<AnswerRank, OpId>| {
            list.first_key_value().map(|(&rank, &op)| (rank, NextEntry::Line(op)))
        };
        let whole = |bulky| self.whole(bulky).first().map(|(rank, _)| (rank, NextEntry::Whole { bulky }));
        let free = [line(&self.free), whole(false)];
        let bulky = if self.credit_bytes > 0 { [line(&self.bulky), whole(true)] } else { [None, None] };
        let all = free.into_iter().chain(bulky).flatten();
        all.min_by_key(|(rank, _)| *rank).map(|(_, next)| next)
    }

    /// Takes one frame off the front of a line that is not listed.
    fn advance(&mut self, op: OpId, mut line: OperationLine) -> Frame {
        let front = &mut line.front;
        let frame = match &mut front.content {
            EntryContent::Done { .. } => Frame::Done { op },
            EntryContent::Item { head, item, offset, bulk, .. } => match head.take() {
                Some(head) => {
                    self.queued_bytes -= head.body.len();
                    Frame::Item(head)
                }
                None => {
                    let credit = usize::try_from(self.credit_bytes).unwrap_or(usize::MAX);
                    let bytes = bulk.split_to(bulk.len().min(MAX_CHUNK_BYTES).min(credit));
                    let chunk = Chunk { op, item: *item, offset: *offset, bytes };
                    *offset += chunk.bytes.len() as u64;
                    self.credit_bytes -= chunk.bytes.len() as u64;
                    self.queued_bytes -= chunk.bytes.len();
                    Frame::Chunk(chunk)
                }
            },
        };
        self.current = Some(op).filter(|_| front.needs_credit());
        if !front.needs_credit() && front.last {
            front.content = EntryContent::Done { whole: false };
            front.last = false;
        } else if !front.needs_credit() {
            self.queued_items -= 1;
            self.go_on(op, line.priority, line.rest);
            return frame;
        }
        self.list(op, line.priority, front);
        self.lines.insert(op, line);
        frame
    }

    fn list(&mut self, op: OpId, priority: Priority, front: &OutboxEntry) {
        let list = if front.needs_credit() { &mut self.bulky } else { &mut self.free };
        list.insert((Reverse(priority), front.age), op);
    }

    fn unlist(&mut self, line: &OperationLine) {
        let list = if line.front.needs_credit() { &mut self.bulky } else { &mut self.free };
        list.remove(&(Reverse(line.priority), line.front.age));
    }
}
