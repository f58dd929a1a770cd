//! Division of the rate that a receiver is said to be able to take among its senders: max-min fair (Bertsekas and
//! Gallager, 1992, section 6.5.2), by credit that the receiver paces, as receiver-driven transports do (ExpressPass, Cho
//! et al., 2017).
//!
//! Two things are given. *Turns*: the credit of all flows together leaves in equal steps at the named rate, one flow
//! after another (virtual scheduling, ITU-T I.371, annex A). So no two bursts are asked for at the same moment, and a
//! flow that asks for more than the others waits for its next turn. *Windows*: a flow may have as many bytes under way as
//! fill its path at the level, the rate up to which all flows are filled, so that a sender that pauses does not gather
//! credit for a burst. The share that a flow leaves unused goes to the others at the next turn, and into their windows
//! two ticks later.
//!
//! The rate is named by the caller, never guessed. Not here: how credit is given, and what a flow's own path shows of it
//! (`wire`).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::limits::{MAX_WINDOW_BYTES, sane_rate, whole};

/// Flows among which a rate is divided; further ones go by their own paths.
pub const MAX_FLOWS: usize = 1024;
/// The lowest rate that can be divided, bytes per second.
pub const LEAST_RATE: f64 = 65_536.0;

/// Time whose data one turn grants: timers are exact for it. The bytes of a turn stay within the bounds below.
const TURN: Duration = Duration::from_millis(1);
const LEAST_STEP_BYTES: u64 = 8 << 10;
const MOST_STEP_BYTES: u64 = 256 << 10;
/// A flow may have so many bytes under way at the least, and so many steps: a small one does not wait for its turn.
const LEAST_WINDOW_BYTES: u64 = 64 << 10;
const LEAST_STEPS: u64 = 4;
/// Turns that nobody took, or took late because the machine was busy, are made up for as long: less than shallow buffers
/// hold on long paths.
const BURST: Duration = Duration::from_millis(8);
/// Bytes that may be under way beyond those that fill the path: this share of the round trip, the error of timers, and
/// the step that waits for its turn. A sender that paused sends all of it in one burst, for which shallow buffers must
/// have room.
const SLACK_SHARE: f64 = 1.0 / 32.0;
const SLACK: Duration = Duration::from_millis(5);
/// A window rises by this part of what arrives: by half in a round trip, less than senders that probe, so that the spacing of
/// the credit is that of the data.
const RISE: u64 = 2;
/// Arrivals are counted for so long at the least, and else for the longest round trip.
const LEAST_TICK: Duration = Duration::from_millis(50);
const LONGEST_TICK: Duration = Duration::from_secs(1);
/// A flow that brought nothing for so many ticks leaves its share to others; one that began was counted for as many
/// before it is known to want less than the rest.
const TICKS: u32 = 2;
/// A flow is expected to want so much more than it got, and this share of the rate; the second is what it is allowed, so that a
/// sender that is slower than its share gathers little credit.
const GROWTH: f64 = 1.25;
const ALLOWED: f64 = 1.5;
const SPARE: f64 = 1.0 / 64.0;

/// Which flow, for as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId(u64);

/// Report on a flow, since the last one.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowReport {
    /// Bytes that have arrived since the last report.
    pub arrived_bytes: u64,
    /// Its shortest round trip, once that is known.
    pub round_trip: Option<Duration>,
    /// Bytes that may be under way or were not taken yet, by the credit that was given.
    pub held_bytes: u64,
    /// Something was asked of which not all has come.
    pub wants: bool,
}

#[derive(Debug, Default)]
struct FlowState {
    wants: bool,
    /// In this tick.
    arrived_bytes: u64,
    /// In the last tick, and the one before, bytes per second.
    rates: [f64; 2],
    /// Ticks in which nothing arrived, one after another.
    idle_ticks: u32,
    /// Ticks since it began.
    ticks: u32,
    round_trip: Duration,
    window_bytes: u64,
    /// The window, and what an earlier and larger one still allows.
    held_bytes: u64,
}

impl FlowState {
    fn is_active(&self) -> bool {
        self.idle_ticks < TICKS || self.arrived_bytes > 0
    }

    /// Whether it begins, or goes on after a pause.
    fn handle(&mut self, report: FlowReport) -> bool {
        let begins = report.wants && !self.is_active() && (!self.wants || report.arrived_bytes > 0);
        if begins {
            *self = Self { held_bytes: self.held_bytes, round_trip: self.round_trip, ..Self::default() };
        }
        self.wants = report.wants;
        self.arrived_bytes += report.arrived_bytes;
        self.round_trip = report.round_trip.unwrap_or(self.round_trip);
        begins
    }

    fn end_tick(&mut self, secs: f64) {
        self.rates = [self.arrived_bytes as f64 / secs, self.rates[0]];
        self.idle_ticks = if self.arrived_bytes > 0 { 0 } else { self.idle_ticks.saturating_add(1) };
        self.ticks = self.ticks.saturating_add(1);
        self.arrived_bytes = 0;
    }

    /// Bytes per second that it would take of `rate`, as far as is known, if it may want so much more than it got.
    fn demand(&self, rate: f64, growth: f64) -> f64 {
        let got = self.rates[0].max(self.rates[1]);
        if self.ticks <= TICKS { rate } else { got.mul_add(growth, rate * SPARE) }
    }
}

/// A rate divided among flows. Time counts from any moment, and is the same for all calls.
#[derive(Debug)]
pub struct FairShare {
    /// Bytes per second.
    rate: f64,
    flows: BTreeMap<FlowId, FlowState>,
    last: u64,
    tick_began: Duration,
    /// Bytes per second up to which each flow is filled.
    level: f64,
    next_turn: Duration,
}

impl FairShare {
    /// Divides so many bytes per second, at least [`LEAST_RATE`].
    #[must_use]
    pub fn new(bytes_per_sec: f64) -> Self {
        let rate = sane_rate(bytes_per_sec).max(LEAST_RATE);
        Self {
            rate,
            flows: BTreeMap::new(),
            last: 0,
            tick_began: Duration::ZERO,
            level: rate,
            next_turn: Duration::ZERO,
        }
    }

    /// A flow joins, which has [so much](Self::least_window_bytes) credit; none where there are [too many](MAX_FLOWS).
    pub fn join(&mut self, now: Duration) -> Option<FlowId> {
        if self.flows.len() >= MAX_FLOWS {
            return None;
        }
        self.last += 1;
        let flow = FlowId(self.last);
        let least = self.least_window_bytes();
        self.flows.insert(flow, FlowState { idle_ticks: TICKS, held_bytes: least, ..FlowState::default() });
        self.take(now, least);
        Some(flow)
    }

    /// A flow is over.
    pub fn leave(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }

    /// Takes a report on a flow, at the latest when as much has arrived as a few packets hold. Returns how many bytes the
    /// flow may have under way from then on.
    pub fn handle(&mut self, now: Duration, id: FlowId, report: FlowReport) -> u64 {
        self.pass(now);
        let (least, step) = (self.least_window_bytes(), self.step_bytes());
        let room_bytes = self.most_held_bytes().saturating_sub(self.held_bytes());
        let Some(flow) = self.flows.get_mut(&id) else { return least };
        if flow.handle(report) {
            self.level = self.fill();
        }
        let Some(flow) = self.flows.get_mut(&id) else { return least };
        let rate = self.level.min(flow.demand(self.rate, ALLOWED));
        let most = if report.wants { filling_bytes(rate, flow.round_trip) + step } else { 0 };
        let rise = (report.arrived_bytes / RISE).min(room_bytes);
        flow.window_bytes = flow.window_bytes.saturating_add(rise).min(most).max(least);
        flow.held_bytes = report.held_bytes.max(flow.window_bytes);
        flow.window_bytes
    }

    /// When the next [step](Self::step_bytes) may be granted; it is the caller's. Earlier than `now` where turns
    /// were not taken.
    pub fn turn(&mut self, now: Duration) -> Duration {
        self.take(now, self.step_bytes())
    }

    /// Bytes that one turn grants.
    #[must_use]
    pub fn step_bytes(&self) -> u64 {
        whole(self.rate * TURN.as_secs_f64()).clamp(LEAST_STEP_BYTES, MOST_STEP_BYTES)
    }

    /// Smallest window of a flow, bytes, and its first one.
    #[must_use]
    pub fn least_window_bytes(&self) -> u64 {
        (self.step_bytes() * LEAST_STEPS).max(LEAST_WINDOW_BYTES)
    }

    /// Flows that have joined and not left.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Most bytes that all flows together may have under way or not taken yet: as many as fill the longest path at the
    /// rate, and the smallest window of each flow. It may be more for a round trip in two cases only: while a path
    /// becomes shorter, and when a flow that paused with credit left wants something again. Credit cannot be taken back.
    #[must_use]
    pub fn most_held_bytes(&self) -> u64 {
        filling_bytes(self.rate, self.longest()) + self.flows.len() as u64 * self.least_window_bytes()
    }

    fn held_bytes(&self) -> u64 {
        self.flows.values().filter(|flow| flow.is_active()).map(|flow| flow.held_bytes).sum()
    }

    fn longest(&self) -> Duration {
        self.flows.values().map(|flow| flow.round_trip).max().unwrap_or_default()
    }

    fn take(&mut self, now: Duration, bytes: u64) -> Duration {
        let at = self.next_turn.max(now.saturating_sub(BURST));
        self.next_turn = at + Duration::from_secs_f64(bytes as f64 / self.rate);
        at
    }

    /// Ends the tick if it is time.
    fn pass(&mut self, now: Duration) {
        let since = now.saturating_sub(self.tick_began);
        if since < self.longest().clamp(LEAST_TICK, LONGEST_TICK) {
            return;
        }
        self.tick_began = now;
        self.flows.values_mut().for_each(|flow| flow.end_tick(since.as_secs_f64()));
        self.level = self.fill();
    }

    /// The level up to which flows are filled until the rate is used up. Where they want less, all may rise by as much as
    /// there is for all of them.
    fn fill(&self) -> f64 {
        let active = self.flows.values().filter(|flow| flow.is_active());
        let mut demands: Vec<f64> = active.map(|flow| flow.demand(self.rate, GROWTH)).collect();
        demands.sort_by(f64::total_cmp);
        let mut left = self.rate;
        for (filled, demand) in demands.iter().enumerate() {
            let flows = (demands.len() - filled) as f64;
            if demand * flows >= left {
                return left / flows;
            }
            left -= demand;
        }
        let most = demands.last().copied().unwrap_or_default();
        most + left / demands.len().max(1) as f64
    }
}

/// Bytes that fill a path at a rate, and a little more.
fn filling_bytes(bytes_per_sec: f64, round_trip: Duration) -> u64 {
    let secs = round_trip.as_secs_f64().mul_add(1.0 + SLACK_SHARE, SLACK.as_secs_f64());
    whole(bytes_per_sec * secs).min(MAX_WINDOW_BYTES)
}

#[cfg(test)]
mod tests;
