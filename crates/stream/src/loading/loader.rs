//! Selection of the blocks to fetch: requests of all participants become wants, within hard limits.
//!
//! A state machine without I/O: time is an argument, wants are the output; `feed/mod.rs` sends them. Each
//! block is fetched once however many participants request it, at the highest of their priorities. The loader
//! knows neither pictures nor pools.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use array::{Block, BlockKey, Error, ErrorKind, Priority, Result, Retry, Urgency, Want, WantHandle, want};
use session::ParticipantId;
use tokio::time::Instant;

/// Most wants in flight at once: enough for 10 Gb/s over 150 ms with blocks of half a megabyte.
pub const MAX_WANTS_IN_FLIGHT: usize = 512;
/// Attempts after which a block counts as failed. If a retry may help, attempts continue at longer intervals.
pub const ATTEMPTS_UNTIL_FAILED: u32 = 5;
/// Wait before the second attempt; doubles with each further attempt.
pub const FIRST_BACKOFF: Duration = Duration::from_millis(250);
/// Longest wait between attempts.
pub const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// Request for a block that a participant's picture lacks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BlockRequest {
    /// Key of the block.
    pub(crate) key: BlockKey,
    /// Priority of the block.
    pub(crate) priority: Priority,
    /// Memory that the block needs while in flight, bytes.
    pub(crate) size_bytes: u64,
}

/// Failed blocks among the requests of a participant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FailedBlocks {
    /// Blocks that cannot be loaded: [given up](Self::given_up), or failed often enough.
    pub(crate) failed: u64,
    /// Blocks that are not tried any more.
    pub(crate) given_up: u64,
    /// Blocks that failed and will be tried again soon.
    pub(crate) retrying: u64,
    /// Error of one of them, preferably of one that cannot be loaded.
    pub(crate) reason: Option<Error>,
}

/// Want that was sent to the source.
struct WantInFlight {
    handle: WantHandle,
    size_bytes: u64,
    batch: u64,
    /// The block has arrived and waits to be placed in the pool.
    has_arrived: bool,
}

/// Next action for a block that failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextAttempt {
    TryAgainAt(Instant),
    /// Queued or in flight again.
    Trying,
    GivenUp,
}

struct BlockFailure {
    attempts: u32,
    next: NextAttempt,
    error: Error,
}

impl BlockFailure {
    /// Returns true if viewers should not wait for the block.
    fn is_failed(&self) -> bool {
        self.next == NextAttempt::GivenUp || self.attempts >= ATTEMPTS_UNTIL_FAILED
    }

    /// Returns true if the data could not be reached at all, which affects other blocks too.
    fn is_outage(&self) -> bool {
        matches!(self.error.kind(), ErrorKind::Unreachable | ErrorKind::TimedOut)
    }
}

/// Turns requests into wants; see the module.
///
/// Inputs: [`request`](Self::request), [`forget`](Self::forget), [`complete`](Self::complete), [`ended`](Self::ended),
/// [`placed`](Self::placed). Output: [`start`](Self::start), to be called after each input and at
/// [`next_retry`](Self::next_retry).
pub(crate) struct Loader {
    max_bytes_in_flight: u64,
    requests: BTreeMap<ParticipantId, BTreeMap<BlockKey, BlockRequest>>,
    /// Requests of all participants, each block once, at its highest priority.
    merged: BTreeMap<BlockKey, BlockRequest>,
    /// Requests that are neither in flight nor waiting for a retry; least urgent first.
    queue: Vec<BlockRequest>,
    in_flight: BTreeMap<BlockKey, WantInFlight>,
    bytes_in_flight: u64,
    /// Failures of requested blocks.
    failures: BTreeMap<BlockKey, BlockFailure>,
    batches: u64,
}

impl Loader {
    /// Creates a loader without requests. A block larger than `max_bytes_in_flight` is fetched alone.
    #[must_use]
    pub(crate) fn new(max_bytes_in_flight: u64) -> Self {
        Self {
            max_bytes_in_flight,
            requests: BTreeMap::new(),
            merged: BTreeMap::new(),
            queue: Vec::new(),
            in_flight: BTreeMap::new(),
            bytes_in_flight: 0,
            failures: BTreeMap::new(),
            batches: 0,
        }
    }

    /// Replaces the requests of `who` by the blocks that they lack now. Wants without a request are
    /// cancelled; the others get their new priority.
    pub(crate) fn request(&mut self, who: ParticipantId, requests: Vec<BlockRequest>) {
        self.requests.insert(who, requests.into_iter().map(|w| (w.key, w)).collect());
        self.merge();
    }

    /// Removes all requests of `who`.
    pub(crate) fn forget(&mut self, who: ParticipantId) {
        if self.requests.remove(&who).is_some() {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.merged.clear();
        for request in self.requests.values().flat_map(BTreeMap::values) {
            let best = self.merged.entry(request.key).or_insert(*request);
            best.priority = best.priority.max(request.priority);
        }
        let merged = &self.merged;
        // Blocks that have arrived are placed in any case: that costs nothing more.
        self.in_flight.retain(|key, w| w.has_arrived || merged.contains_key(key));
        self.bytes_in_flight = self.in_flight.values().map(|w| w.size_bytes).sum();
        self.failures.retain(|key, _| merged.contains_key(key));
        for (key, in_flight) in &self.in_flight {
            if let Some(request) = merged.get(key) {
                in_flight.handle.adjust(Urgency::of(request.priority));
            }
        }
        self.refill();
    }

    fn refill(&mut self) {
        let may_start = |key: &BlockKey| self.failures.get(key).is_none_or(|f| f.next == NextAttempt::Trying);
        let waits = |key: &BlockKey| !self.in_flight.contains_key(key) && may_start(key);
        self.queue = self.merged.values().filter(|w| waits(&w.key)).copied().collect();
        self.queue.sort_by_key(|w| (w.priority, std::cmp::Reverse(w.key)));
    }

    /// Returns the wants to send to the source now, most urgent first, and the number of their batch.
    pub(crate) fn start(&mut self, now: Instant) -> Option<(u64, Vec<Want>)> {
        self.queue_retries(now);
        let mut wants = Vec::new();
        while self.in_flight.len() < MAX_WANTS_IN_FLIGHT {
            let Some(request) = self.queue.last().copied() else { break };
            let fits = self.bytes_in_flight.saturating_add(request.size_bytes) <= self.max_bytes_in_flight;
            if !fits && !self.in_flight.is_empty() {
                break;
            }
            self.queue.pop();
            let (want, handle) = want(request.key, Urgency::of(request.priority));
            self.bytes_in_flight += request.size_bytes;
            let batch = self.batches;
            let in_flight =
                WantInFlight { handle, size_bytes: request.size_bytes, batch, has_arrived: false };
            self.in_flight.insert(request.key, in_flight);
            wants.push(want);
        }
        if wants.is_empty() {
            return None;
        }
        self.batches += 1;
        Some((self.batches - 1, wants))
    }

    fn queue_retries(&mut self, now: Instant) {
        let mut some_are_due = false;
        for failure in self.failures.values_mut() {
            if matches!(failure.next, NextAttempt::TryAgainAt(at) if at <= now) {
                failure.next = NextAttempt::Trying;
                some_are_due = true;
            }
        }
        if some_are_due {
            self.refill();
        }
    }

    /// Returns the time at which [`Loader::start`] must be called for retries.
    #[must_use]
    pub(crate) fn next_retry(&self) -> Option<Instant> {
        let times = self.failures.values().filter_map(|f| match f.next {
            NextAttempt::TryAgainAt(at) => Some(at),
            _ => None,
        });
        times.min()
    }

    /// Handles the source's answer for one block. Returns a block that is still wanted, to be placed and then
    /// reported with [`Loader::placed`]; late answers to cancelled wants are dropped.
    pub(crate) fn complete(
        &mut self,
        batch: u64,
        key: BlockKey,
        result: Result<Arc<Block>>,
        now: Instant,
    ) -> Option<Arc<Block>> {
        let in_flight = self.in_flight.get_mut(&key).filter(|w| w.batch == batch && !w.has_arrived)?;
        match result {
            Ok(block) => {
                in_flight.has_arrived = true;
                Some(block)
            }
            Err(error) => {
                self.release(key);
                self.fail(key, error, now);
                None
            }
        }
    }

    /// Fails the wants of a batch that are unanswered at its end; returns true if there are any.
    pub(crate) fn ended(&mut self, batch: u64, now: Instant) -> bool {
        let is_open = |w: &WantInFlight| w.batch == batch && !w.has_arrived;
        let open: Vec<BlockKey> =
            self.in_flight.iter().filter(|(_, w)| is_open(w)).map(|(key, _)| *key).collect();
        for key in &open {
            self.release(*key);
            self.fail(*key, Error::internal("the source ended its answers without this block"), now);
        }
        !open.is_empty()
    }

    /// Handles the outcome of placing a block; `refused` is the error if it could not be placed.
    pub(crate) fn placed(&mut self, key: BlockKey, refused: Option<Error>, now: Instant) {
        self.release(key);
        match refused {
            Some(error) => self.fail(key, error, now),
            None => {
                if self.failures.remove(&key).is_some_and(|failure| failure.is_outage()) {
                    self.outage_ended(now);
                }
                self.merged.remove(&key);
                for requests in self.requests.values_mut() {
                    requests.remove(&key);
                }
            }
        }
    }

    fn release(&mut self, key: BlockKey) {
        if let Some(gone) = self.in_flight.remove(&key) {
            self.bytes_in_flight -= gone.size_bytes;
        }
    }

    /// Retries other unreachable blocks at once after one of them has arrived.
    fn outage_ended(&mut self, now: Instant) {
        for failure in self.failures.values_mut().filter(|f| f.is_outage()) {
            if let NextAttempt::TryAgainAt(at) = &mut failure.next {
                *at = now.min(*at);
            }
        }
    }

    fn fail(&mut self, key: BlockKey, error: Error, now: Instant) {
        if !self.merged.contains_key(&key) {
            return;
        }
        let attempts = self.failures.get(&key).map_or(0, |f| f.attempts) + 1;
        // Another stage cancelled the want, but the request still holds.
        let may_help = error.retry() == Retry::MayHelp || error.kind() == ErrorKind::Cancelled;
        let next =
            if may_help { NextAttempt::TryAgainAt(now + backoff(attempts)) } else { NextAttempt::GivenUp };
        self.failures.insert(key, BlockFailure { attempts, next, error });
    }

    /// Returns the number of blocks that `who` still lacks, including those that cannot be loaded.
    #[must_use]
    pub(crate) fn lacking(&self, who: ParticipantId) -> u64 {
        self.requests.get(&who).map_or(0, |requests| requests.len() as u64)
    }

    /// Returns the failed blocks among the requests of `who`.
    #[must_use]
    pub(crate) fn failed_blocks(&self, who: ParticipantId) -> FailedBlocks {
        let mut failed_blocks = FailedBlocks::default();
        let Some(requests) = self.requests.get(&who) else { return failed_blocks };
        for (_, failure) in self.failures.iter().filter(|(key, _)| requests.contains_key(key)) {
            let is_failed = failure.is_failed();
            let count = if is_failed { &mut failed_blocks.failed } else { &mut failed_blocks.retrying };
            *count += 1;
            failed_blocks.given_up += u64::from(failure.next == NextAttempt::GivenUp);
            if failed_blocks.reason.is_none() || (is_failed && failed_blocks.failed == 1) {
                failed_blocks.reason = Some(failure.error.clone());
            }
        }
        failed_blocks
    }

    /// Returns the number of wants in flight and their bytes.
    #[must_use]
    pub(crate) fn in_flight(&self) -> (usize, u64) {
        (self.in_flight.len(), self.bytes_in_flight)
    }
}

fn backoff(attempts: u32) -> Duration {
    FIRST_BACKOFF.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(LONGEST_BACKOFF)
}

#[cfg(test)]
mod tests {
    use array::{Content, DatasetId, Generation};

    use super::*;

    const ADA: ParticipantId = ParticipantId(1);
    const BOB: ParticipantId = ParticipantId(2);

    fn key(index: u64) -> BlockKey {
        BlockKey { dataset: DatasetId(1), generation: Generation(0), array: 0, level: 0, index }
    }

    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn request(index: u64) -> BlockRequest {
        BlockRequest { key: key(index), priority: Priority::NORMAL.weighted(-(index as f32)), size_bytes: 10 }
    }

    fn requests(indices: std::ops::Range<u64>) -> Vec<BlockRequest> {
        indices.map(request).collect()
    }

    fn block(index: u64) -> Result<Arc<Block>> {
        Ok(Arc::new(Block { key: key(index), content: Content::NotCovered }))
    }

    fn indices(wants: &[Want]) -> Vec<u64> {
        wants.iter().map(|w| w.key().index).collect()
    }

    fn start(loader: &mut Loader, now: Instant) -> (u64, Vec<Want>) {
        loader.start(now).unwrap_or_default()
    }

    #[test]
    fn the_most_urgent_go_first_and_limits_are_hard() {
        let now = Instant::now();
        let mut loader = Loader::new(35);
        loader.request(ADA, requests(0..100));
        let (batch, wants) = start(&mut loader, now);
        assert_eq!(indices(&wants), [0, 1, 2]);
        assert_eq!(loader.in_flight(), (3, 30));
        assert!(loader.start(now).is_none());
        assert!(loader.complete(batch, key(1), block(1), now).is_some());
        assert!(loader.start(now).is_none(), "an arrived block still holds memory");
        loader.placed(key(1), None, now);
        assert_eq!(indices(&start(&mut loader, now).1), [3]);
    }

    #[test]
    fn many_small_blocks_are_limited_by_number() {
        let mut loader = Loader::new(u64::MAX);
        loader.request(ADA, requests(0..10_000));
        assert_eq!(start(&mut loader, Instant::now()).1.len(), MAX_WANTS_IN_FLIGHT);
        assert!(loader.start(Instant::now()).is_none());
    }

    #[test]
    fn a_block_larger_than_the_limit_is_fetched_alone() {
        let now = Instant::now();
        let mut loader = Loader::new(35);
        loader.request(ADA, vec![BlockRequest { size_bytes: 100, ..request(0) }, request(1)]);
        let (batch, wants) = start(&mut loader, now);
        assert_eq!(indices(&wants), [0]);
        assert!(loader.complete(batch, key(0), block(0), now).is_some());
        loader.placed(key(0), None, now);
        assert_eq!(indices(&start(&mut loader, now).1), [1]);
    }

    #[test]
    fn a_new_view_cancels_unneeded_wants_and_adjusts_the_others() {
        let now = Instant::now();
        let mut loader = Loader::new(1000);
        loader.request(ADA, requests(0..4));
        let (batch, wants) = start(&mut loader, now);
        loader.request(ADA, vec![BlockRequest { priority: Priority::URGENT, ..request(3) }, request(7)]);
        let cancelled: Vec<bool> = wants.iter().map(Want::is_cancelled).collect();
        assert_eq!(cancelled, [true, true, true, false]);
        assert_eq!(wants[3].urgency().priority, Priority::URGENT);
        assert_eq!(indices(&start(&mut loader, now).1), [7]);
        assert!(loader.complete(batch, key(0), block(0), now).is_none(), "too late");
        // Requested again: a late answer to the first want does not end the second one.
        loader.request(ADA, requests(0..1));
        let (again, _) = start(&mut loader, now);
        assert!(loader.complete(batch, key(0), Err(Error::cancelled()), now).is_none());
        assert!(loader.complete(again, key(0), block(0), now).is_some());
    }

    #[test]
    fn participants_share_one_fetch_at_the_highest_priority() {
        let now = Instant::now();
        let mut loader = Loader::new(1000);
        loader.request(ADA, requests(0..2));
        let (batch, wants) = start(&mut loader, now);
        loader.request(BOB, vec![BlockRequest { priority: Priority::INTERACTIVE, ..request(1) }]);
        assert!(loader.start(now).is_none());
        assert_eq!(wants[1].urgency().priority, Priority::INTERACTIVE);
        loader.forget(ADA);
        assert_eq!((wants[0].is_cancelled(), wants[1].is_cancelled()), (true, false));
        assert!(loader.complete(batch, key(1), block(1), now).is_some());
        loader.placed(key(1), None, now);
        assert_eq!(loader.in_flight(), (0, 0));
        assert!(loader.start(now).is_none());
    }

    #[test]
    fn temporary_errors_are_retried_at_growing_intervals() {
        let mut now = Instant::now();
        let mut loader = Loader::new(1000);
        loader.request(ADA, requests(0..1));
        let busy = || Error::new(ErrorKind::Busy, "later");
        let mut waited = Vec::new();
        for attempt in 1..=10 {
            let (batch, wants) = start(&mut loader, now);
            assert_eq!(wants.len(), 1, "attempt {attempt}");
            assert!(loader.complete(batch, key(0), Err(busy()), now).is_none());
            assert!(loader.start(now).is_none(), "no hot loop");
            let failed_blocks = loader.failed_blocks(ADA);
            let has_failed = u64::from(attempt >= ATTEMPTS_UNTIL_FAILED);
            assert_eq!((failed_blocks.failed, failed_blocks.retrying), (has_failed, 1 - has_failed));
            assert_eq!((failed_blocks.given_up, failed_blocks.reason), (0, Some(busy())));
            let at = loader.next_retry().expect("a retry while the block is wanted");
            waited.push((at - now).as_millis());
            now = at;
        }
        assert_eq!(waited, [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
        let (batch, _) = start(&mut loader, now);
        assert!(loader.complete(batch, key(0), block(0), now).is_some());
        loader.placed(key(0), None, now);
        assert_eq!((loader.failed_blocks(ADA), loader.lacking(ADA)), (FailedBlocks::default(), 0));
        // A block without a request is not retried.
        loader.request(ADA, requests(1..2));
        let (batch, _) = start(&mut loader, now);
        loader.complete(batch, key(1), Err(busy()), now);
        loader.request(ADA, Vec::new());
        assert_eq!(loader.next_retry(), None);
    }

    #[test]
    fn the_first_block_after_an_outage_causes_retries_of_the_others() {
        let mut now = Instant::now();
        let mut loader = Loader::new(1000);
        loader.request(ADA, requests(0..4));
        let gone = || Error::new(ErrorKind::Unreachable, "no route");
        for _ in 0..8 {
            let (batch, wants) = start(&mut loader, now);
            for want in wants {
                let busy = Error::new(ErrorKind::Busy, "no room");
                let error = if want.key().index == 3 { busy } else { gone() };
                loader.complete(batch, want.key(), Err(error), now);
            }
            now = loader.next_retry().unwrap();
        }
        // One of them is retried a little earlier than the others.
        loader.failures.get_mut(&key(0)).unwrap().next =
            NextAttempt::TryAgainAt(now - Duration::from_secs(9));
        let (batch, wants) = start(&mut loader, now - Duration::from_secs(5));
        assert_eq!(indices(&wants), [0]);
        now -= Duration::from_secs(5);
        assert!(loader.complete(batch, key(0), block(0), now).is_some());
        assert!(loader.start(now).is_none());
        loader.placed(key(0), None, now);
        assert_eq!(
            indices(&start(&mut loader, now).1),
            [1, 2],
            "a block that failed for another reason is not retried earlier"
        );
    }

    #[test]
    fn permanent_errors_are_given_up_at_once() {
        let now = Instant::now();
        let mut loader = Loader::new(1000);
        loader.request(ADA, requests(0..3));
        let (batch, _) = start(&mut loader, now);
        loader.complete(batch, key(0), Err(Error::corrupt("bad checksum")), now);
        assert!(loader.complete(batch, key(1), block(1), now).is_some());
        loader.placed(key(1), Some(Error::corrupt("wrong size")), now);
        loader.ended(batch, now);
        assert_eq!((loader.failed_blocks(ADA).failed, loader.failed_blocks(ADA).given_up), (3, 3));
        assert_eq!(loader.failed_blocks(BOB), FailedBlocks::default());
        assert_eq!((loader.next_retry(), loader.in_flight()), (None, (0, 0)));
    }
}
