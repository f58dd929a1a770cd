//! Policy that assigns the next piece of work to one of several servers, pure. Time is an argument.
//!
//! Work is pulled, not dealt out: whoever has room in its window ([`ServerSpeed`]) gets the next piece, so a slow server
//! simply takes fewer. Of several with room the one that will have finished first is taken; near the end a slow one
//! gets nothing that the others would have finished earlier. Bytes of a piece follow the window of who does it.
//!
//! It also says when an answer is late enough to ask somebody else too: later than most, within an allowance (`late`);
//! or when nothing else is left to do; or when the server has been silent for so long that it gets nothing more.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use array::{Error, ErrorKind, Priority};

use super::hedging::{HedgeBudget, LatenessEstimate};
use super::speed::ServerSpeed;

/// Most servers of one data set.
pub const MAX_SERVERS: usize = 32;
/// Smallest part of a read, bytes.
pub(super) const MIN_PART_BYTES: u64 = 256 << 10;
/// Largest part of a read, bytes: what a server reads at a time.
pub(super) const MAX_PART_BYTES: u64 = 32 << 20;
/// Parts that a window is cut into, so that one that is finished is replaced while others are under way.
const PARTS_PER_WINDOW: u64 = 4;
/// Most pieces one server has in hand, however small they are.
const MAX_PIECES: usize = 512;
/// Always in hand, however large they are: one that is answered and one that is asked.
const MIN_PIECES: usize = 2;
/// Answers in a row that were errors of other kinds than a broken connection, until a server is left alone.
const MAX_FAULTS: u32 = 8;
/// Rate of servers of which nothing is known, bytes per second.
const UNKNOWN_RATE: f64 = 1e8;
/// Pieces that may be passed over in one look because nobody suitable has room.
const MAX_PASSED_OVER: usize = 16;
/// Pause before a server that is away is looked at again; doubled each time in vain.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest such pause.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Some of the servers, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerSet(u32);

impl ServerSet {
    /// The first `count`.
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

/// A piece of work that waits for somebody to do it.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkRequest {
    pub(super) priority: Priority,
    /// Bytes that are there to be done; whoever is asked may take only a part of them, unless they are one piece.
    pub(super) bytes: u64,
    /// Whether it cannot be cut.
    pub(super) is_one_piece: bool,
    /// Servers that may do it.
    pub(super) may: ServerSet,
    /// Somebody does it already: nobody is waited for who is not there now.
    pub(super) is_second: bool,
}

/// Smaller is sooner: the highest priority, then the longest wait. The ticket is unique.
pub(super) type QueueRank = (Reverse<Priority>, u64);

/// Assignment of a piece to a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Assignment {
    pub(super) member: usize,
    /// How much of it.
    pub(super) bytes: u64,
    /// Since when.
    pub(super) at: Duration,
    /// How long it should take, as far as that is known.
    pub(super) expected: Option<Duration>,
}

/// Whether a server gets work.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ServerHealth {
    /// Yes.
    Ready,
    /// It has not delivered anything for long. What it has in hand may still come.
    Silent,
    /// It cannot be asked, and why; looked at again in vain so many times.
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
    allowance: HedgeBudget,
    /// Somebody went away since the last look: some pieces may have lost the last who could do them.
    somebody_left: bool,
}

impl Scheduler {
    /// Servers of which nothing is known yet: away, but hoped for.
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
            allowance: HedgeBudget::default(),
            somebody_left: false,
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

    /// Lets a piece wait.
    pub(super) fn ask(&mut self, need: WorkRequest) -> QueueRank {
        let rank = (Reverse(need.priority), self.next_ticket);
        self.next_ticket += 1;
        self.waiting.insert(rank, need);
        self.waiting_bytes += u128::from(need.bytes);
        rank
    }

    /// It matters more or less now.
    pub(super) fn adjust(&mut self, rank: QueueRank, priority: Priority) -> QueueRank {
        let Some(mut need) = self.waiting.remove(&rank) else { return rank };
        need.priority = priority;
        let rank = (Reverse(priority), rank.1);
        self.waiting.insert(rank, need);
        rank
    }

    /// Nobody waits for it any more.
    pub(super) fn withdraw(&mut self, rank: QueueRank) {
        if let Some(need) = self.waiting.remove(&rank) {
            self.waiting_bytes -= u128::from(need.bytes);
        }
    }

    /// Pieces that somebody is to do now, by their tickets, and those that nobody can do.
    pub(super) fn assign(&mut self, now: Duration) -> Vec<(u64, Option<Assignment>)> {
        let mut out = Vec::new();
        if std::mem::take(&mut self.somebody_left) {
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

    /// Takes out what nobody can do.
    fn give_up(&mut self, out: &mut Vec<(u64, Option<Assignment>)>) {
        let lost: Vec<QueueRank> =
            self.waiting.iter().filter(|(_, n)| !self.is_hope_for(n)).map(|(r, _)| *r).collect();
        for rank in lost {
            self.withdraw(rank);
            out.push((rank.1, None));
        }
    }

    /// Whether somebody may do it, now or, unless it is a second try, soon.
    pub(super) fn is_hope_for(&self, need: &WorkRequest) -> bool {
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
            chosen.speed.is_full();
        }
        let known = chosen.speed.shortest().zip(chosen.speed.rate_bytes_per_sec());
        let expected = known.map(|(shortest, rate)| shortest + seconds(to_f64(chosen.bytes) / rate));
        Assignment { member, bytes, at: now, expected }
    }

    /// The part of `bytes` that suits a server: a fraction of its window, and less near the end, so that all end
    /// at about the same time.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a u64")]
    fn part_bytes(&self, member: usize, bytes: u64) -> u64 {
        let rates: f64 = self.members.iter().filter(|m| is_ready(m)).map(|m| self.rate(m)).sum();
        let fair = to_f64(bytes) * self.rate(&self.members[member]) / rates.max(1.0);
        let window = self.members[member].speed.window_bytes();
        let part = (window / PARTS_PER_WINDOW).min((fair / 2.0) as u64);
        part.clamp(MIN_PART_BYTES, MAX_PART_BYTES).min(bytes)
    }

    /// Whoever will have finished first, if it has room; else the best of those with room, if it finishes before
    /// all together would have done everything that waits.
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
        let in_hand: u64 = able().map(|(_, m)| m.bytes).sum();
        let all = self.latency(first) + (self.all_waiting_bytes() + to_f64(in_hand)) / rates.max(1.0);
        (finish(member) <= all).then_some(other)
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn all_waiting_bytes(&self) -> f64 {
        self.waiting_bytes as f64
    }

    /// Rate of a server, bytes per second; where it is not known, the highest known rate of the others, or else
    /// [`UNKNOWN_RATE`]. At least 1.
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

    /// A part turned out to have another size than was given: parts end at borders of chunks.
    pub(super) fn resize(&mut self, assigned: &mut Assignment, bytes: u64) {
        let member = &mut self.members[assigned.member];
        member.bytes = member.bytes - assigned.bytes + bytes;
        assigned.bytes = bytes;
    }

    /// A piece was answered.
    pub(super) fn finished(&mut self, assigned: &Assignment, now: Duration) {
        self.given_back(assigned);
        let took = now.saturating_sub(assigned.at);
        let member = &mut self.members[assigned.member];
        member.speed.delivered(assigned.bytes, took, now, member.pieces == 0);
        member.delivered_bytes += assigned.bytes;
        member.last_delivery = now;
        member.faults = 0;
        if member.health == ServerHealth::Silent {
            member.health = ServerHealth::Ready;
        }
        self.allowance.earn();
        if let Some(expected) = assigned.expected {
            self.lateness.took(took, expected);
        }
    }

    /// A piece is not waited for any more.
    pub(super) fn given_back(&mut self, assigned: &Assignment) {
        let member = &mut self.members[assigned.member];
        member.pieces -= 1;
        member.bytes -= assigned.bytes;
    }

    /// A piece was answered by an error. True when the server is to be looked after from now on.
    pub(super) fn failed(&mut self, assigned: &Assignment, error: &Error) -> bool {
        self.given_back(assigned);
        let member = &mut self.members[assigned.member];
        member.faults += 1;
        let is_gone = matches!(
            error.kind(),
            ErrorKind::Unreachable | ErrorKind::TimedOut | ErrorKind::Denied | ErrorKind::Stale
        );
        if !is_gone && member.faults < MAX_FAULTS {
            return false;
        }
        self.left(assigned.member, error.clone())
    }

    /// A server cannot be asked any more. True when that is new.
    pub(super) fn left(&mut self, member: usize, why: Error) -> bool {
        let before = std::mem::replace(
            &mut self.members[member].health,
            ServerHealth::Away { why, failed_attempts: 0 },
        );
        self.somebody_left = true;
        before == ServerHealth::Ready
    }

    /// It was looked at again, in vain.
    pub(super) fn still_away(&mut self, member: usize, error: Error) {
        let failed_attempts = match &self.members[member].health {
            ServerHealth::Away { failed_attempts, .. } => failed_attempts.saturating_add(1),
            ServerHealth::Ready | ServerHealth::Silent => 1,
        };
        self.members[member].health = ServerHealth::Away { why: error, failed_attempts };
        self.somebody_left = true;
    }

    /// It is there (again); what was known of its speed may not hold any more.
    pub(super) fn returned(&mut self, member: usize) {
        let member = &mut self.members[member];
        if matches!(member.health, ServerHealth::Away { .. }) {
            member.speed = ServerSpeed::default();
        }
        (member.health, member.faults) = (ServerHealth::Ready, 0);
    }

    /// How long to wait before a server is looked at again.
    pub(super) fn pause(&self, member: usize) -> Duration {
        match &self.members[member].health {
            ServerHealth::Away { failed_attempts, .. } => {
                FIRST_PAUSE.saturating_mul(1 << (*failed_attempts).min(10)).min(MAX_PAUSE)
            }
            ServerHealth::Ready | ServerHealth::Silent => Duration::ZERO,
        }
    }
}

/// Action to take on an answer that is not there yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum HedgeDecision {
    /// Look again then.
    NotYet(Duration),
    /// Ask somebody else too.
    AskAnother,
    /// Its server has become silent: ask somebody else, and look after it.
    Silent,
}

impl Scheduler {
    /// Whether an answer is late; `may`: who else could be asked; `idle`: who of them may be just because they are idle.
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
            self.somebody_left = true;
            return HedgeDecision::Silent;
        }
        let is_lost = member.health != ServerHealth::Ready;
        if others
            && (is_lost
                || self.is_left_over(assigned, idle, now)
                || (now >= late_at && self.allowance.spend()))
        {
            return HedgeDecision::AskAnother;
        }
        // What cannot be helped now is looked at again after as long as it took to become late, and ever more seldom.
        let pause = late_at.saturating_sub(assigned.at).max(now.saturating_sub(assigned.at) / 8);
        let next = if now < late_at { late_at } else { now + pause.max(Duration::from_millis(10)) };
        HedgeDecision::NotYet(if now < silent_at { next.min(silent_at) } else { next })
    }
}

impl Scheduler {
    /// Whether nothing waits any more and somebody with nothing to do would be done in half of the time that this
    /// piece will still take: at the end of a read nobody waits for a slow server, and nobody else is kept waiting.
    fn is_left_over(&self, assigned: &Assignment, idle: ServerSet, now: Duration) -> bool {
        if !self.waiting.is_empty() {
            return false;
        }
        let took = now.saturating_sub(assigned.at);
        let to_come = assigned.expected.and_then(|expected| expected.checked_sub(took));
        // What takes longer than it should, or nobody knows how long, is half done at best.
        let to_come = to_come.unwrap_or(took).as_secs_f64();
        let in_time =
            |m: &ServerLoad| 2.0 * (self.latency(m) + to_f64(assigned.bytes) / self.rate(m)) < to_come;
        self.members.iter().enumerate().any(|(n, m)| idle.has(n) && is_idle(m) && in_time(m))
    }

    /// Whether there is nothing to do for somebody who is there.
    pub(super) fn is_anybody_idle(&self) -> bool {
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
