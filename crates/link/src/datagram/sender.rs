//! Server side: cuts chunks into datagrams, keeps them until they are settled, and retransmits missing ones.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use wire::{BulkPart, Error, MessageContent, OpId, Result};

use super::packet::{PARITY_HEAD_BYTES, bulk_head};
use super::redundancy::{GROUP, LEAST_GROUP, LENGTH_BYTES, ParityEncoder};
use super::{DatagramCounts, DatagramRecord};
use crate::server::bulk_apart::Items;

/// Most bytes of datagrams that are kept until they are settled; no more are made beyond it. 10 Gb/s over 200
/// ms.
pub const MAX_KEPT_BYTES: u64 = 256 << 20;
/// Smallest datagram of a path that is used for bulk, bytes.
pub const LEAST_DATAGRAM_BYTES: usize = 512;
/// Most numbers of datagrams that are kept, also for cancelled datagrams: as many as [`MAX_KEPT_BYTES`] has
/// of the smallest size.
pub const MAX_KEPT_DATAGRAMS: usize = (256 << 20) / LEAST_DATAGRAM_BYTES;
/// Most missing numbers of one report that a sender handles; the client requests the others again.
pub const MAX_ANSWERED: usize = 65_536;
/// Most numbers of one report that were answered before; the rest of such a report is skipped, so that
/// repeated requests cost little.
pub(super) const MAX_ANSWERED_BEFORE: usize = 1_024;
/// Most records that wait to be sent, with the bulk in them; beyond it, no new bulk is sent and nothing is
/// repaired.
pub const MAX_WAITING_RECORDS: usize = 1_024;
/// Idle time after which the highest number is announced; a further datagram would announce it too.
const MARK_AFTER: Duration = Duration::from_millis(5);
/// Time that a short group waits for more datagrams.
const GROUP_WITHIN: Duration = Duration::from_millis(5);

/// Datagram that is not settled.
#[derive(Debug)]
struct UnsettledDatagram {
    op: OpId,
    bulk_bytes: u32,
    /// `None` once it was cancelled.
    datagram: Option<Bytes>,
    resend: ResendRequest,
}

/// State of the client's request to retransmit a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResendRequest {
    /// Not requested since the datagram was last sent.
    None,
    /// Queued for retransmission.
    Queued,
    /// Answered by a record, which cannot be lost: it declared the number void, or carried the datagram
    /// itself.
    Answered,
}

/// Sending side: cuts chunks into datagrams, keeps them until they are settled, retransmits missing ones.
/// Callers poll [`poll_record`](Self::poll_record) and [`poll_datagram`](Self::poll_datagram) after each
/// other call.
#[derive(Debug, Default)]
pub struct DatagramSender {
    items: Items,
    /// Chunks that were not sent completely.
    waiting: VecDeque<BulkPart>,
    /// Datagrams by number, from `settled` on.
    kept: VecDeque<UnsettledDatagram>,
    settled: u64,
    kept_bytes: u64,
    /// Numbers of the datagrams that are kept and not cancelled, by operation, in order.
    kept_of: HashMap<OpId, VecDeque<u64>>,
    /// Numbers to retransmit, each once; cancelled and settled ones are skipped.
    again: VecDeque<u64>,
    parity: VecDeque<Bytes>,
    encoder: Option<ParityEncoder>,
    group_until: Option<Instant>,
    records: VecDeque<DatagramRecord>,
    /// Numbers below this one were announced.
    marked: u64,
    /// Time at which the last new datagram was sent.
    left_at: Option<Instant>,
    counts: DatagramCounts,
}

impl DatagramSender {
    /// Creates a sender without redundancy.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counters of this side so far.
    #[must_use]
    pub fn counts(&self) -> DatagramCounts {
        self.counts
    }

    /// True when nothing waits to be sent. Missing datagrams may still be requested.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// True when more chunks can be accepted within the limits.
    fn has_room(&self) -> bool {
        self.kept_bytes < MAX_KEPT_BYTES && self.kept.len() < MAX_KEPT_DATAGRAMS && self.may_tell()
    }

    /// False while a client does not take records: only promised records are queued then.
    fn may_tell(&self) -> bool {
        self.records.len() < MAX_WAITING_RECORDS
    }

    /// Number of datagrams that are not known to be settled.
    #[must_use]
    pub fn kept_datagrams(&self) -> usize {
        self.kept.len()
    }

    fn next_number(&self) -> u64 {
        self.settled + self.kept.len() as u64
    }

    /// Takes a message of the server if it is to be sent in datagrams, that is a chunk of a large item with a
    /// small body; returns whether it was taken.
    pub fn take(&mut self, content: MessageContent) -> bool {
        match content {
            MessageContent::Item(head) => self.items.begin(&head),
            MessageContent::Chunk(chunk) => {
                let part = self.items.part(chunk);
                if let Some(part) = part {
                    self.waiting.push_back(part);
                    return true;
                }
            }
            MessageContent::Failed(op) => {
                self.items.forget(op);
                self.withdraw(op);
            }
            MessageContent::Cancelled(_) => {}
        }
        false
    }

    /// Withdraws the datagrams of an operation, and its chunks that were not sent.
    fn withdraw(&mut self, op: OpId) {
        let mut gone = 0;
        self.waiting.retain(|waiting| {
            let stays = waiting.head.op != op;
            gone += if stays { 0 } else { waiting.bytes.len() as u64 };
            stays
        });
        self.tell_gone(gone);
        for number in self.kept_of.remove(&op).unwrap_or_default() {
            let Some(kept) = at(self.settled, number).and_then(|at| self.kept.get_mut(at)) else { continue };
            self.kept_bytes -= kept.datagram.take().map_or(0, |datagram| datagram.len() as u64);
            // Numbers that wait for retransmission were requested.
            if kept.resend == ResendRequest::Queued {
                kept.resend = ResendRequest::Answered;
                self.counts.void += 1;
                self.records.push_back(DatagramRecord::Void { number, bytes: kept.bulk_bytes.into() });
            }
        }
    }

    fn tell_gone(&mut self, bytes: u64) {
        match self.records.back_mut() {
            Some(DatagramRecord::Gone(before)) => *before = before.saturating_add(bytes),
            _ if bytes > 0 => self.records.push_back(DatagramRecord::Gone(bytes)),
            _ => {}
        }
    }

    /// Handles a record of the client.
    ///
    /// # Errors
    /// `Corrupt` for an invalid record, or for numbers that were never sent.
    pub fn handle_record(&mut self, record: DatagramRecord) -> Result<()> {
        match record {
            DatagramRecord::Want { redundancy } => {
                self.encoder = redundancy.then(ParityEncoder::default);
                self.group_until = None;
                Ok(())
            }
            DatagramRecord::Cancel(op) => {
                self.withdraw(op);
                Ok(())
            }
            DatagramRecord::Report { settled, missing } => self.handle_report(settled, missing),
            other => Err(Error::corrupt(format!("expected a record of a client, found {other:?}"))),
        }
    }

    fn handle_report(&mut self, settled: u64, missing: Vec<Range<u64>>) -> Result<()> {
        let next = self.next_number();
        let last = missing.last().map_or(settled, |run| run.end);
        if last > next || settled < self.settled {
            return Err(Error::corrupt(format!(
                "expected a report of numbers {} to {next}, found one of {settled} to {last}",
                self.settled
            )));
        }
        while self.settled < settled
            && let Some(kept) = self.kept.pop_front()
        {
            self.settled += 1;
            self.forget(&kept);
        }
        let mut before = 0;
        for number in missing.into_iter().flatten().take(MAX_ANSWERED) {
            before += usize::from(!self.answer(number));
            if before > MAX_ANSWERED_BEFORE {
                break;
            }
        }
        Ok(())
    }

    fn forget(&mut self, kept: &UnsettledDatagram) {
        let Some(datagram) = &kept.datagram else { return };
        self.kept_bytes -= datagram.len() as u64;
        if let Some(numbers) = self.kept_of.get_mut(&kept.op) {
            numbers.pop_front();
            if numbers.is_empty() {
                self.kept_of.remove(&kept.op);
            }
        }
    }

    /// Handles a missing number; false when the request was known.
    fn answer(&mut self, number: u64) -> bool {
        let Some(kept) = at(self.settled, number).and_then(|at| self.kept.get_mut(at)) else { return false };
        self.counts.missed += 1;
        if kept.resend != ResendRequest::None {
            return false;
        }
        if kept.datagram.is_some() {
            kept.resend = ResendRequest::Queued;
            self.again.push_back(number);
        } else {
            kept.resend = ResendRequest::Answered;
            self.counts.void += 1;
            self.records.push_back(DatagramRecord::Void { number, bytes: kept.bulk_bytes.into() });
        }
        true
    }

    /// Returns the next datagram to send, of at most `most_bytes`.
    pub fn poll_datagram(&mut self, now: Instant, most_bytes: usize) -> Option<Bytes> {
        if let Some(datagram) = self.poll_again(most_bytes) {
            return Some(datagram);
        }
        while let Some(parity) = self.parity.pop_front() {
            if parity.len() <= most_bytes {
                self.counts.parity += 1;
                return Some(parity);
            }
        }
        self.make_datagram(now, most_bytes)
    }

    /// Returns the next retransmission. Datagrams that have become too long for the path become records.
    fn poll_again(&mut self, most_bytes: usize) -> Option<Bytes> {
        while self.may_tell()
            && let Some(number) = self.again.pop_front()
        {
            let Some(kept) = at(self.settled, number).and_then(|at| self.kept.get_mut(at)) else { continue };
            let Some(datagram) = kept.datagram.clone() else { continue };
            self.counts.again += 1;
            if datagram.len() <= most_bytes {
                // The retransmission may be lost and requested again.
                kept.resend = ResendRequest::None;
                return Some(datagram);
            }
            kept.resend = ResendRequest::Answered;
            self.records.push_back(DatagramRecord::Repair(datagram));
        }
        None
    }

    /// Makes the next datagram of new bulk.
    fn make_datagram(&mut self, now: Instant, most_bytes: usize) -> Option<Bytes> {
        if !self.has_room() || most_bytes < LEAST_DATAGRAM_BYTES {
            return None;
        }
        let number = self.next_number();
        let waiting = self.waiting.front_mut()?;
        let redundancy_bytes = if self.encoder.is_some() { PARITY_HEAD_BYTES + LENGTH_BYTES + 1 } else { 0 };
        let head = bulk_head(number, &waiting.head, waiting.offset).finish();
        let room = most_bytes - redundancy_bytes - head.len();
        let bytes = waiting.bytes.split_to(room.min(waiting.bytes.len()));
        waiting.offset += bytes.len() as u64;
        let (op, datagram) = (waiting.head.op, Bytes::from([&head[..], &bytes].concat()));
        if waiting.bytes.is_empty() {
            self.waiting.pop_front();
        }
        let bulk_bytes = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.kept.push_back(UnsettledDatagram {
            op,
            bulk_bytes,
            datagram: Some(datagram.clone()),
            resend: ResendRequest::None,
        });
        self.kept_bytes += datagram.len() as u64;
        self.kept_of.entry(op).or_default().push_back(number);
        self.counts.datagrams += 1;
        if let Some(encoder) = &mut self.encoder {
            self.group_until.get_or_insert(now + GROUP_WITHIN);
            encoder.add(number, datagram.clone());
        }
        self.end_group(now);
        self.left_at = Some(now);
        Some(datagram)
    }

    /// Makes the parity of a group that is full or has waited long enough.
    fn end_group(&mut self, now: Instant) {
        let Some(encoder) = &mut self.encoder else { return };
        let is_late = self.group_until.is_some_and(|until| until <= now);
        let is_idle = self.waiting.is_empty() && (encoder.len() >= LEAST_GROUP || is_late);
        if encoder.len() >= GROUP || (is_idle && encoder.len() > 0) {
            self.parity.extend(encoder.end());
            self.group_until = None;
        }
    }

    /// True when a record waits to be sent.
    #[must_use]
    pub fn has_records(&self) -> bool {
        !self.records.is_empty()
    }

    /// Returns the next record to send.
    pub fn poll_record(&mut self) -> Option<DatagramRecord> {
        self.records.pop_front()
    }

    /// Handles timeouts.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.end_group(now);
        if self.mark_at().is_some_and(|at| at <= now) {
            self.marked = self.next_number();
            self.records.push_back(DatagramRecord::Mark(self.marked));
        }
    }

    /// Time at which the highest number is to be announced, while no new datagram announces it.
    fn mark_at(&self) -> Option<Instant> {
        let is_due = self.waiting.is_empty() && self.next_number() > self.marked;
        self.left_at.filter(|_| is_due).map(|at| at + MARK_AFTER)
    }

    /// Time at which [`handle_timeout`](Self::handle_timeout) is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let group = self.group_until.filter(|_| self.waiting.is_empty());
        [group, self.mark_at()].into_iter().flatten().min()
    }
}

/// Index of a number in `kept`.
fn at(settled: u64, number: u64) -> Option<usize> {
    number.checked_sub(settled).and_then(|at| usize::try_from(at).ok())
}
