//! The client's side: gives each number once, and says which are missing.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use wire::{BulkPart, Error, Result};

use super::record::MAX_ASKED_RUNS;
use super::redundancy::{GROUP, ParityDecoder};
use super::{Datagram, DatagramCounts, DatagramRecord};

/// Runs of missing numbers that are known; what would make one more is treated as lost.
pub const MAX_RUNS: usize = 65_536;
/// How long packets overtake each other: this part of the round trip, within these bounds.
const WINDOW_PARTS: u32 = 8;
const WINDOW: Range<Duration> = Duration::from_millis(2)..Duration::from_millis(25);
/// A number that was asked for is asked for again after a round trip and a quarter, and this.
const AGAIN_MARGIN: Duration = Duration::from_millis(30);
/// Interval between reports of what has come while nothing is missing: the round trip divided by the first number,
/// and at least the second.
const REPORT_PARTS: u32 = 4;
const REPORT_WITHIN: Duration = Duration::from_millis(5);
/// Reports of what is missing are no closer than this.
const REPORT_APART: Duration = Duration::from_millis(1);
/// Missing runs per step of the report interval: with n times as many, reports are n + 1 times as far apart.
const RUNS_AT_ONCE: usize = 4_096;

/// Numbers in sequence that are missing.
#[derive(Debug)]
struct MissingRun {
    end: u64,
    /// When they are asked for; none until a later one was seen that cannot help to make them again.
    due: Option<Instant>,
}

/// Receiving side: takes each number once and reports which are missing. Call [`poll_part`](Self::poll_part),
/// [`poll_gone`](Self::poll_gone) and [`poll_report`](Self::poll_report) after each other call.
#[derive(Debug)]
pub struct DatagramReceiver {
    /// Above all numbers that are known of.
    next: u64,
    /// By their start.
    missing: BTreeMap<u64, MissingRun>,
    /// Missing numbers below are due at some time.
    noticed: u64,
    /// Not later than the first is due.
    due: Option<Instant>,
    decoder: Option<ParityDecoder>,
    parts: VecDeque<BulkPart>,
    gone_bytes: u64,
    rtt: Duration,
    /// Something came that was not reported: when it is to be.
    report_at: Option<Instant>,
    reported_at: Option<Instant>,
    counts: DatagramCounts,
}

impl DatagramReceiver {
    /// A new one, which knows the round trip.
    #[must_use]
    pub fn new(redundancy: bool, rtt: Duration) -> Self {
        Self {
            next: 0,
            missing: BTreeMap::new(),
            noticed: 0,
            due: None,
            decoder: redundancy.then(ParityDecoder::default),
            parts: VecDeque::new(),
            gone_bytes: 0,
            rtt,
            report_at: None,
            reported_at: None,
            counts: DatagramCounts::default(),
        }
    }

    /// Counters of this side so far.
    #[must_use]
    pub fn counts(&self) -> DatagramCounts {
        self.counts
    }

    /// The round trip is this long now.
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// A datagram has come. What is none is counted.
    pub fn handle_datagram(&mut self, now: Instant, datagram: Bytes) {
        match Datagram::decode(datagram.clone()) {
            Ok(Datagram::Bulk { number, part }) => {
                let is_news = self.handle_bulk(now, number, part);
                if let Some(decoder) = self.decoder.as_mut().filter(|_| is_news) {
                    let made = decoder.add(number, datagram);
                    self.restore(now, made);
                }
            }
            Ok(Datagram::Parity { first, datagrams, parities, which, shard }) => {
                self.counts.parity += 1;
                let Some(decoder) = &mut self.decoder else { return self.counts.rejected += 1 };
                let made = decoder.add_parity(first, (datagrams, parities), which, shard);
                // They left before it.
                let seen = self.reach(first + u64::from(datagrams));
                self.restore(now, made);
                self.notice(now, seen);
            }
            Err(_) => self.counts.rejected += 1,
        }
    }

    /// True where it is news.
    fn handle_bulk(&mut self, now: Instant, number: u64, part: BulkPart) -> bool {
        let is_news = self.arrive(now, number);
        if is_news {
            self.counts.datagrams += 1;
            self.parts.push_back(part);
        }
        is_news
    }

    /// Takes datagrams that were made again.
    fn restore(&mut self, now: Instant, made: Vec<Bytes>) {
        for datagram in made {
            if let Ok(Datagram::Bulk { number, part }) = Datagram::decode(datagram)
                && number < self.next
                && self.arrive(now, number)
            {
                self.counts.restored += 1;
                self.parts.push_back(part);
            }
        }
    }

    /// A number has come; true when it was missing or is new.
    fn arrive(&mut self, now: Instant, number: u64) -> bool {
        if number < self.next {
            let was_missing = self.settle(number);
            self.counts.again += u64::from(!was_missing);
            if was_missing {
                self.tell_soon(now);
            }
            return was_missing;
        }
        if number > self.next && !self.miss(number) {
            self.counts.rejected += 1;
            return false;
        }
        self.next = number + 1;
        // What is missing may still be made again by the parity of its group.
        let seen = if self.decoder.is_some() { self.next.saturating_sub(GROUP as u64) } else { number };
        self.notice(now, seen);
        self.tell_soon(now);
        true
    }

    /// All numbers up to this one are missing; false where no more can be known of.
    fn miss(&mut self, end: u64) -> bool {
        if let Some(mut last) = self.missing.last_entry()
            && last.get().end == self.next
            && last.get().due.is_none()
        {
            last.get_mut().end = end;
            return true;
        }
        if self.missing.len() >= MAX_RUNS {
            return false;
        }
        self.missing.insert(self.next, MissingRun { end, due: None });
        true
    }

    /// All numbers below `next` have left. Gives up to where they are known of.
    fn reach(&mut self, next: u64) -> u64 {
        if next > self.next && self.miss(next) {
            self.next = next;
        }
        next.min(self.next)
    }

    /// A missing number is not missing any more; false when it was not.
    fn settle(&mut self, number: u64) -> bool {
        let Some((&start, run)) = self.missing.range(..=number).next_back() else { return false };
        let MissingRun { end, due } = *run;
        if number >= end || (number > start && number + 1 < end && self.missing.len() >= MAX_RUNS) {
            return false;
        }
        self.missing.remove(&start);
        if number > start {
            self.missing.insert(start, MissingRun { end: number, due });
        }
        if number + 1 < end {
            self.missing.insert(number + 1, MissingRun { end, due });
        }
        true
    }

    /// Nothing will come by itself of the missing numbers below `seen`, but for those that were overtaken just now.
    fn notice(&mut self, now: Instant, seen: u64) {
        if seen <= self.noticed {
            return;
        }
        let due = now + (self.rtt / WINDOW_PARTS).clamp(WINDOW.start, WINDOW.end);
        for (_, run) in self.missing.range_mut(self.noticed..seen) {
            run.due = Some(due);
            self.due = Some(self.due.map_or(due, |before| before.min(due)));
        }
        self.noticed = seen;
    }

    fn tell_soon(&mut self, now: Instant) {
        self.report_at.get_or_insert(now + (self.rtt / REPORT_PARTS).max(REPORT_WITHIN));
    }

    /// The server has said something.
    ///
    /// # Errors
    /// `Corrupt` when it is none of what a server says.
    pub fn handle_record(&mut self, now: Instant, record: DatagramRecord) -> Result<()> {
        match record {
            DatagramRecord::Mark(next) => {
                let seen = self.reach(next);
                self.notice(now, seen);
            }
            DatagramRecord::Void { number, bytes } => {
                if self.settle(number) {
                    self.counts.void += 1;
                    self.gone_bytes = self.gone_bytes.saturating_add(bytes);
                    self.tell_soon(now);
                }
            }
            DatagramRecord::Gone(bytes) => self.gone_bytes = self.gone_bytes.saturating_add(bytes),
            // Longer than a datagram of this path: no parity is to be found for it.
            DatagramRecord::Repair(datagram) => match Datagram::decode(datagram)? {
                Datagram::Bulk { number, part } => {
                    self.handle_bulk(now, number, part);
                }
                Datagram::Parity { .. } => return Err(Error::corrupt("expected bulk again, found parity")),
            },
            other => return Err(Error::corrupt(format!("expected a record of a server, found {other:?}"))),
        }
        Ok(())
    }

    /// The next bulk, in the order in which it came.
    pub fn poll_part(&mut self) -> Option<BulkPart> {
        self.parts.pop_front()
    }

    /// Bulk that will not come, bytes, since it was last asked.
    pub fn poll_gone(&mut self) -> u64 {
        std::mem::take(&mut self.gone_bytes)
    }

    /// The next report, if it is time for one.
    pub fn poll_report(&mut self, now: Instant) -> Option<DatagramRecord> {
        let is_apart = self.reported_at.is_none_or(|at| now >= at + self.apart());
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if !is_apart || !(is_due(self.due) || is_due(self.report_at)) {
            return None;
        }
        let missing = if is_due(self.due) { self.ask(now) } else { Vec::new() };
        if missing.is_empty() && !is_due(self.report_at) {
            return None;
        }
        (self.report_at, self.reported_at) = (None, Some(now));
        let settled = self.missing.first_key_value().map_or(self.next, |(start, _)| *start);
        Some(DatagramRecord::Report { settled, missing })
    }

    /// The numbers that are due, which are due again later.
    fn ask(&mut self, now: Instant) -> Vec<Range<u64>> {
        let again = now + self.rtt + self.rtt / 4 + AGAIN_MARGIN;
        let mut asked = Vec::new();
        self.due = None;
        for (start, run) in &mut self.missing {
            let Some(due) = &mut run.due else { continue };
            if *due <= now && asked.len() < MAX_ASKED_RUNS {
                *due = again;
                asked.push(*start..run.end);
                self.counts.missed = self.counts.missed.saturating_add(run.end - start);
            }
            let due = *due;
            self.due = Some(self.due.map_or(due, |before| before.min(due)));
        }
        asked
    }

    /// When [`poll_report`](Self::poll_report) is to be asked again.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let at = [self.due, self.report_at].into_iter().flatten().min()?;
        Some(self.reported_at.map_or(at, |reported| at.max(reported + self.apart())))
    }

    /// Reports are so far apart: each looks through all that is missing, however much somebody leaves out.
    fn apart(&self) -> Duration {
        let walks = u32::try_from(self.missing.len() / RUNS_AT_ONCE).unwrap_or(u32::MAX);
        REPORT_APART.saturating_mul(walks.saturating_add(1))
    }
}
