//! Policy that assigns the next work item to one of several servers. Pure: time is an argument.
//!
//! Servers pull work: a server with room in its window ([`ServerSpeed`]) gets the next item, so a slow server takes
//! fewer. Of several with room, the one that is expected to complete first is taken; near the end a slow server gets
//! nothing that the others would complete earlier. The size of an item follows the window of its server.
//!
//! It also decides when a response is late enough to send a second request: later than most, within a budget
//! ([`hedging`](super::hedging)); or if nothing else is left to do; or if the server has been silent for so long that
//! it gets no more work.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use array::{Error, ErrorKind, Priority};

use super::hedging::{HedgeBudget, LatenessEstimate};
use super::speed::ServerSpeed;

/// Maximum number of servers of one data set.
pub const MAX_SERVERS: usize = 32;
/// Minimum size of a part of a read, in bytes.
pub(super) const MIN_PART_BYTES: u64 = 256 << 10;
/// Maximum size of a part of a read, in bytes: the size that a server reads at a time.
pub(super) const MAX_PART_BYTES: u64 = 32 << 20;
/// Number of parts per window, so that a completed part is replaced while others are in flight.
const PARTS_PER_WINDOW: u64 = 4;
/// Maximum number of work items in flight per server, whatever their size.
const MAX_PIECES: usize = 512;
/// Minimum number of work items in flight per server, whatever their size: one is answered while the next is requested.
const MIN_PIECES: usize = 2;
/// Maximum number of consecutive errors, other than a broken connection, before a server is suspended.
const MAX_FAULTS: u32 = 8;
/// Assumed rate of servers that were not measured, in bytes per second.
const UNKNOWN_RATE: f64 = 1e8;
/// Maximum number of work items that one pass skips because no suitable server has room.
const MAX_PASSED_OVER: usize = 16;
/// Pause before the first check of a server that is not available; doubled after each failed check.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Maximum pause between checks of a server that is not available.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Set of servers, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerSet(u32);

impl ServerSet {
    /// Returns the first `count` servers.
    pub(super) fn all(count: usize) -> Self {
        Self((0..count).fold(0, |bits, n| bits | 1 << n))
    }

    pub(super) const NONE: Self = Self(0);

    #[must_use]
    pub(super) fn with(self, member: usize) -> Self {
        Self(self.0 | 1 << member)
    }

    #[must_use]
    pub(super) fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    pub(super) fn has(self, member: usize) -> bool {
        self.0 & 1 << member != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A work item that waits for a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkRequest {
    pub(super) priority: Priority,
    /// Bytes to transfer; a server may take only a part of them, unless they are indivisible.
    pub(super) bytes: u64,
    /// Whether the item is indivisible.
    pub(super) is_one_piece: bool,
    /// Servers that may do it.
    pub(super) may: ServerSet,
    /// Whether it is a second request, which does not wait for servers that are not available.
    pub(super) is_second: bool,
}

/// Order of the queue, smaller first: the highest priority, then the longest wait. The ticket is unique.
pub(super) type QueueRank = (Reverse<Priority>, u64);

/// Assignment of a work item to a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Assignment {
    pub(super) member: usize,
    /// Number of bytes assigned.
    pub(super) bytes: u64,
    /// Time of the assignment.
    pub(super) at: Duration,
    /// Expected duration, if it is known.
    pub(super) expected: Option<Duration>,
}

/// Whether a server gets work.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ServerHealth {
    /// The server gets work.
    Ready,
    /// The server has not responded for long; its work items in flight may still complete.
    Silent,
    /// The server is not available, for this reason; the number of failed checks since then.
    Away { why: Error, failed_attempts: u32 },
}

struct ServerLoad {
    health: ServerHealth,
    speed: ServerSpeed,
    pieces: usize,
    bytes: u64,
    last_delivery: Duration,
    faults: u32,
    delivered_bytes: u64,
}

impl ServerLoad {
    fn has_room(&self) -> bool {
        self.pieces < MIN_PIECES || (self.bytes < self.speed.window_bytes() && self.pieces < MAX_PIECES)
    }
}

/// State of the servers, and the work that waits for them.
pub(super) struct Scheduler {
    members: Vec<ServerLoad>,
    waiting: BTreeMap<QueueRank, WorkRequest>,
    waiting_bytes: u128,
    next_ticket: u64,
    lateness: LatenessEstimate,
    hedge_budget: HedgeBudget,
    /// Whether a server has become unavailable since the last pass, so that items may have lost their last candidate.
    server_left: bool,
}

impl Scheduler {
    /// Creates the state of servers that are not known yet: not available, but expected.
    pub(super) fn new(count: usize) -> Self {
        let why = Error::new(ErrorKind::Unreachable, "it has not answered yet");
        let member = || ServerLoad {
            health: ServerHealth::Away { why: why.clone(), failed_attempts: 0 },
            speed: ServerSpeed::default(),
            pieces: 0,
            bytes: 0,
            last_delivery: Duration::ZERO,
            faults: 0,
            delivered_bytes: 0,
        };
        Self {
            members: (0..count.min(MAX_SERVERS)).map(|_| member()).collect(),
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            next_ticket: 0,
            lateness: LatenessEstimate::default(),
            hedge_budget: HedgeBudget::default(),
            server_left: false,
        }
    }

    pub(super) fn health(&self, member: usize) -> &ServerHealth {
        &self.members[member].health
    }

    pub(super) fn delivered_bytes(&self, member: usize) -> u64 {
        self.members[member].delivered_bytes
    }

    pub(super) fn rate_bytes_per_sec(&self, member: usize) -> Option<f64> {
        self.members[member].speed.rate_bytes_per_sec()
    }

    /// Queues a work item.
    pub(super) fn ask(&mut self, need: WorkRequest) -> QueueRank {
        let rank = (Reverse(need.priority), self.next_ticket);
        self.next_ticket += 1;
        self.waiting.insert(rank, need);
        self.waiting_bytes += u128::from(need.bytes);
        rank
    }

    /// Changes the priority of a queued item.
    pub(super) fn adjust(&mut self, rank: QueueRank, priority: Priority) -> QueueRank {
        let Some(mut need) = self.waiting.remove(&rank) else { return rank };
        need.priority = priority;
        let rank = (Reverse(priority), rank.1);
        self.waiting.insert(rank, need);
        rank
    }

    /// Removes an item from the queue.
    pub(super) fn withdraw(&mut self, rank: QueueRank) {
        if let Some(need) = self.waiting.remove(&rank) {
            self.waiting_bytes -= u128::from(need.bytes);
        }
    }

    /// Returns the items that are assigned now, by their tickets, and those that no server can do.
    pub(super) fn assign(&mut self, now: Duration) -> Vec<(u64, Option<Assignment>)> {
        let mut out = Vec::new();
        if std::mem::take(&mut self.server_left) {
            self.give_up(&mut out);
        }
        let mut passed_over = 0;
        let mut after = None;
        while passed_over < MAX_PASSED_OVER && self.members.iter().any(|m| is_ready(m) && m.has_room()) {
            let next = match after {
                None => self.waiting.first_key_value(),
                Some(rank) => {
                    let from = (std::ops::Bound::Excluded(rank), std::ops::Bound::Unbounded);
                    self.waiting.range(from).next()
                }
            };
            let Some((&rank, &need)) = next else { break };
            after = Some(rank);
            match self.pick(&need) {
                Some(member) => {
                    let assigned = self.give(member, &need, now);
                    self.withdraw(rank);
                    out.push((rank.1, Some(assigned)));
                }
                None => passed_over += 1,
            }
        }
        out
    }

    /// Removes the items that no server can do.
    fn give_up(&mut self, out: &mut Vec<(u64, Option<Assignment>)>) {
        let lost: Vec<QueueRank> =
            self.waiting.iter().filter(|(_, n)| !self.can_be_done(n)).map(|(r, _)| *r).collect();
        for rank in lost {
            self.withdraw(rank);
            out.push((rank.1, None));
        }
    }

    /// Returns whether any server can do the item, now or, unless it is a second request, later.
    pub(super) fn can_be_done(&self, need: &WorkRequest) -> bool {
        self.members.iter().enumerate().any(|(n, member)| {
            need.may.has(n)
                && match &member.health {
                    ServerHealth::Ready => true,
                    ServerHealth::Silent => !need.is_second,
                    ServerHealth::Away { failed_attempts, .. } => !need.is_second && *failed_attempts == 0,
                }
        })
    }

    fn give(&mut self, member: usize, need: &WorkRequest, now: Duration) -> Assignment {
        let bytes = if need.is_one_piece { need.bytes } else { self.part_bytes(member, need.bytes) };
        let chosen = &mut self.members[member];
        chosen.pieces += 1;
        chosen.bytes += bytes;
        if !chosen.has_room() {
            chosen.speed.record_full();
        }
        let known = chosen.speed.shortest().zip(chosen.speed.rate_bytes_per_sec());
        let expected = known.map(|(shortest, rate)| shortest + seconds(to_f64(chosen.bytes) / rate));
        Assignment { member, bytes, at: now, expected }
    }

    /// Returns the part of `bytes` that suits a server: a fraction of its window, and less near the end, so that all
    /// servers end at about the same time.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a u64")]
    fn part_bytes(&self, member: usize, bytes: u64) -> u64 {
        let rates: f64 = self.members.iter().filter(|m| is_ready(m)).map(|m| self.rate(m)).sum();
        let fair = to_f64(bytes) * self.rate(&self.members[member]) / rates.max(1.0);
        let window = self.members[member].speed.window_bytes();
        let part = (window / PARTS_PER_WINDOW).min((fair / 2.0) as u64);
        part.clamp(MIN_PART_BYTES, MAX_PART_BYTES).min(bytes)
    }

    /// Selects the server that is expected to complete first, if it has room; otherwise the best server with room, if
    /// it completes before all servers together would have done all queued work.
    fn pick(&self, need: &WorkRequest) -> Option<usize> {
        let able = || {
            let members = self.members.iter().enumerate();
            members.filter(|(n, m)| need.may.has(*n) && is_ready(m))
        };
        let bytes = if need.is_one_piece { need.bytes } else { need.bytes.min(MIN_PART_BYTES) };
        let finish = |m: &ServerLoad| self.latency(m) + to_f64(m.bytes + bytes) / self.rate(m);
        let soonest =
            |a: &(usize, &ServerLoad), b: &(usize, &ServerLoad)| finish(a.1).total_cmp(&finish(b.1));
        let (best, first) = able().min_by(soonest)?;
        if first.has_room() {
            return Some(best);
        }
        let (other, member) = able().filter(|(_, m)| m.has_room()).min_by(soonest)?;
        let rates: f64 = able().map(|(_, m)| self.rate(m)).sum();
        let in_flight: u64 = able().map(|(_, m)| m.bytes).sum();
        let all = self.latency(first) + (self.all_waiting_bytes() + to_f64(in_flight)) / rates.max(1.0);
        (finish(member) <= all).then_some(other)
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn all_waiting_bytes(&self) -> f64 {
        self.waiting_bytes as f64
    }

    /// Returns the rate of a server, in bytes per second; if it was not measured, the highest rate of the others, or
    /// else [`UNKNOWN_RATE`]. At least 1.
    fn rate(&self, member: &ServerLoad) -> f64 {
        let known = || self.members.iter().filter_map(|m| m.speed.rate_bytes_per_sec());
        member
            .speed
            .rate_bytes_per_sec()
            .unwrap_or_else(|| known().reduce(f64::max).unwrap_or(UNKNOWN_RATE))
            .max(1.0)
    }

    fn latency(&self, member: &ServerLoad) -> f64 {
        let known = || self.members.iter().filter_map(|m| m.speed.shortest());
        member.speed.shortest().or_else(|| known().min()).unwrap_or_default().as_secs_f64()
    }

    /// Corrects the size of an assigned part: parts end at borders of chunks.
    pub(super) fn resize(&mut self, assigned: &mut Assignment, bytes: u64) {
        let member = &mut self.members[assigned.member];
        member.bytes = member.bytes - assigned.bytes + bytes;
        assigned.bytes = bytes;
    }

    /// Records that a work item was answered.
    pub(super) fn finished(&mut self, assigned: &Assignment, now: Duration) {
        self.release(assigned);
        let took = now.saturating_sub(assigned.at);
        let member = &mut self.members[assigned.member];
        member.speed.delivered(assigned.bytes, took, now, member.pieces == 0);
        member.delivered_bytes += assigned.bytes;
        member.last_delivery = now;
        member.faults = 0;
        if member.health == ServerHealth::Silent {
            member.health = ServerHealth::Ready;
        }
        self.hedge_budget.earn();
        if let Some(expected) = assigned.expected {
            self.lateness.took(took, expected);
        }
    }

    /// Records that a work item is no longer needed.
    pub(super) fn release(&mut self, assigned: &Assignment) {
        let member = &mut self.members[assigned.member];
        member.pieces -= 1;
        member.bytes -= assigned.bytes;
    }

    /// Records that a work item failed. Returns true if the server has to be checked from now on.
    pub(super) fn failed(&mut self, assigned: &Assignment, error: &Error) -> bool {
        self.release(assigned);
        let member = &mut self.members[assigned.member];
        member.faults += 1;
        let is_gone = matches!(
            error.kind(),
            ErrorKind::Unreachable | ErrorKind::TimedOut | ErrorKind::Denied | ErrorKind::Stale
        );
        if !is_gone && member.faults < MAX_FAULTS {
            return false;
        }
        self.mark_unavailable(assigned.member, error.clone())
    }

    /// Records that a server is not available. Returns true if it was before.
    pub(super) fn mark_unavailable(&mut self, member: usize, why: Error) -> bool {
        let before = std::mem::replace(
            &mut self.members[member].health,
            ServerHealth::Away { why, failed_attempts: 0 },
        );
        self.server_left = true;
        before == ServerHealth::Ready
    }

    /// Records a failed check.
    pub(super) fn still_away(&mut self, member: usize, error: Error) {
        let failed_attempts = match &self.members[member].health {
            ServerHealth::Away { failed_attempts, .. } => failed_attempts.saturating_add(1),
            ServerHealth::Ready | ServerHealth::Silent => 1,
        };
        self.members[member].health = ServerHealth::Away { why: error, failed_attempts };
        self.server_left = true;
    }

    /// Records that a server is available (again); measurements of its speed are discarded.
    pub(super) fn returned(&mut self, member: usize) {
        let member = &mut self.members[member];
        if matches!(member.health, ServerHealth::Away { .. }) {
            member.speed = ServerSpeed::default();
        }
        (member.health, member.faults) = (ServerHealth::Ready, 0);
    }

    /// Returns the pause before the next check of a server.
    pub(super) fn pause(&self, member: usize) -> Duration {
        match &self.members[member].health {
            ServerHealth::Away { failed_attempts, .. } => {
                FIRST_PAUSE.saturating_mul(1 << (*failed_attempts).min(10)).min(MAX_PAUSE)
            }
            ServerHealth::Ready | ServerHealth::Silent => Duration::ZERO,
        }
    }
}

/// Action on a response that has not arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum HedgeDecision {
    /// Check again at this time.
    NotYet(Duration),
    /// Send a second request to another server.
    AskAnother,
    /// The server is silent: send a second request, and check the server.
    Silent,
}

impl Scheduler {
    /// Decides whether a response is late. `may`: servers for a second request; `idle`: those of them that may be used
    /// only because they are idle.
    pub(super) fn late(
        &mut self,
        assigned: &Assignment,
        may: ServerSet,
        idle: ServerSet,
        now: Duration,
    ) -> HedgeDecision {
        let others = self.members.iter().enumerate().any(|(n, m)| may.has(n) && is_ready(m));
        let member = &mut self.members[assigned.member];
        let quiet_since = member.last_delivery.max(assigned.at);
        let silent_at = quiet_since + LatenessEstimate::silent_after(assigned.expected);
        let late_at = assigned.at + self.lateness.late_after(assigned.expected);
        if now >= silent_at && member.health == ServerHealth::Ready {
            member.health = ServerHealth::Silent;
            member.speed.silent(member.bytes, now.saturating_sub(quiet_since));
            self.server_left = true;
            return HedgeDecision::Silent;
        }
        let is_lost = member.health != ServerHealth::Ready;
        if others
            && (is_lost
                || self.is_left_over(assigned, idle, now)
                || (now >= late_at && self.hedge_budget.spend()))
        {
            return HedgeDecision::AskAnother;
        }
        // If nothing can be done now, the next check follows after the time it took to become late, with growing
        // intervals.
        let pause = late_at.saturating_sub(assigned.at).max(now.saturating_sub(assigned.at) / 8);
        let next = if now < late_at { late_at } else { now + pause.max(Duration::from_millis(10)) };
        HedgeDecision::NotYet(if now < silent_at { next.min(silent_at) } else { next })
    }
}

impl Scheduler {
    /// Returns whether the queue is empty, and an idle server would complete the item in half of its remaining time: at
    /// the end of a read, slow servers are replaced, and no other work is delayed.
    fn is_left_over(&self, assigned: &Assignment, idle: ServerSet, now: Duration) -> bool {
        if !self.waiting.is_empty() {
            return false;
        }
        let took = now.saturating_sub(assigned.at);
        let to_come = assigned.expected.and_then(|expected| expected.checked_sub(took));
        // An item that takes longer than expected, or for an unknown time, is at most half complete.
        let to_come = to_come.unwrap_or(took).as_secs_f64();
        let in_time =
            |m: &ServerLoad| 2.0 * (self.latency(m) + to_f64(assigned.bytes) / self.rate(m)) < to_come;
        self.members.iter().enumerate().any(|(n, m)| idle.has(n) && is_idle(m) && in_time(m))
    }

    /// Returns whether an available server has no work.
    pub(super) fn has_idle_server(&self) -> bool {
        self.waiting.is_empty() && self.members.iter().any(is_idle)
    }
}

fn is_idle(member: &ServerLoad) -> bool {
    is_ready(member) && member.pieces == 0
}

fn is_ready(member: &ServerLoad) -> bool {
    member.health == ServerHealth::Ready
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn to_f64(bytes: u64) -> f64 {
    bytes as f64
}

fn seconds(secs: f64) -> Duration {
    Duration::try_from_secs_f64(secs).unwrap_or(Duration::MAX / 4)
}
