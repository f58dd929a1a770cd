//! Client side: delivers each number once, and reports missing numbers.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use wire::{BulkPart, Error, Result};

use super::record::MAX_ASKED_RUNS;
use super::redundancy::{GROUP, ParityDecoder};
use super::{Datagram, DatagramCounts, DatagramRecord};

/// Most runs of missing numbers that a receiver tracks; a number that would add another is treated as lost.
pub const MAX_RUNS: usize = 65_536;
/// Reordering window: this fraction of the round trip, within the bounds of `WINDOW`.
const WINDOW_PARTS: u32 = 8;
const WINDOW: Range<Duration> = Duration::from_millis(2)..Duration::from_millis(25);
/// Margin, besides 1.25 round trips, after which a missing number is requested again.
const AGAIN_MARGIN: Duration = Duration::from_millis(30);
/// Interval between reports while nothing is missing: the round trip divided by `REPORT_PARTS`, at least
/// `REPORT_WITHIN`.
const REPORT_PARTS: u32 = 4;
const REPORT_WITHIN: Duration = Duration::from_millis(5);
/// Shortest interval between reports of missing numbers.
const REPORT_APART: Duration = Duration::from_millis(1);
/// Missing runs per step of the report interval: with n times as many, reports are n + 1 times as far apart.
const RUNS_AT_ONCE: usize = 4_096;

/// Consecutive missing numbers.
#[derive(Debug)]
struct MissingRun {
    end: u64,
    /// Time at which they are requested; `None` until a later number arrived that cannot help to restore
    /// them.
    due: Option<Instant>,
}

/// Receiving side: delivers each number once and reports missing ones. Callers poll
/// [`poll_part`](Self::poll_part), [`poll_gone`](Self::poll_gone) and [`poll_report`](Self::poll_report)
/// after each other call.
#[derive(Debug)]
pub struct DatagramReceiver {
    /// Number after the highest known one.
    next: u64,
    /// Missing runs by their first number.
    missing: BTreeMap<u64, MissingRun>,
    /// Numbers below this one have a due time if they are missing.
    noticed: u64,
    /// Lower bound of the first due time.
    due: Option<Instant>,
    decoder: Option<ParityDecoder>,
    parts: VecDeque<BulkPart>,
    gone_bytes: u64,
    rtt: Duration,
    /// Time of the next report of arrivals, if there are unreported ones.
    report_at: Option<Instant>,
    reported_at: Option<Instant>,
    counts: DatagramCounts,
}

impl DatagramReceiver {
    /// Creates a receiver with the current round trip.
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

    /// Updates the round trip.
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// Handles a received datagram; invalid ones are counted.
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
                // The datagrams of the group were sent before their parity.
                let seen = self.reach(first + u64::from(datagrams));
                self.restore(now, made);
                self.notice(now, seen);
            }
            Err(_) => self.counts.rejected += 1,
        }
    }

    /// Handles bulk; true when its number is new.
    fn handle_bulk(&mut self, now: Instant, number: u64, part: BulkPart) -> bool {
        let is_news = self.arrive(now, number);
        if is_news {
            self.counts.datagrams += 1;
            self.parts.push_back(part);
        }
        is_news
    }

    /// Delivers restored datagrams.
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

    /// Records the arrival of a number; true when it was missing or is new.
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
        // Missing datagrams may still be restored by the parity of their group.
        let seen = if self.decoder.is_some() { self.next.saturating_sub(GROUP as u64) } else { number };
        self.notice(now, seen);
        self.tell_soon(now);
        true
    }

    /// Records that all numbers up to `end` are missing; false at the limit of runs.
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

    /// Records that all numbers below `next` were sent. Returns the limit of the known numbers.
    fn reach(&mut self, next: u64) -> u64 {
        if next > self.next && self.miss(next) {
            self.next = next;
        }
        next.min(self.next)
    }

    /// Removes a number from the missing ones; false when it was not missing.
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

    /// Sets the due time of missing numbers below `seen`: after the reordering window.
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

    /// Handles a record of the server.
    ///
    /// # Errors
    /// `Corrupt` for an invalid record.
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
            // The datagram is longer than those of this path, so there is no parity for it.
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

    /// Returns the next part of bulk, in the order of arrival.
    pub fn poll_part(&mut self) -> Option<BulkPart> {
        self.parts.pop_front()
    }

    /// Returns the bytes of bulk that will not arrive, since the last call.
    pub fn poll_gone(&mut self) -> u64 {
        std::mem::take(&mut self.gone_bytes)
    }

    /// Returns the next report, if one is due.
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

    /// Returns the numbers that are due, and sets their next due time.
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

    /// Time at which [`poll_report`](Self::poll_report) is to be called again.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let at = [self.due, self.report_at].into_iter().flatten().min()?;
        Some(self.reported_at.map_or(at, |reported| at.max(reported + self.apart())))
    }

    /// Current interval between reports: each scans all missing runs, however many the peer leaves out.
    fn apart(&self) -> Duration {
        let walks = u32::try_from(self.missing.len() / RUNS_AT_ONCE).unwrap_or(u32::MAX);
        REPORT_APART.saturating_mul(walks.saturating_add(1))
    }
}
