//! Division of a receiver's configured rate among its senders: max-min fair (Bertsekas and Gallager, 1992,
//! section 6.5.2), by credit that the receiver paces, as receiver-driven transports do (ExpressPass, Cho et
//! al., 2017).
//!
//! The receiver controls two quantities. *Turns*: the credit of all flows together is granted in equal steps at the
//! configured rate, one flow after another (virtual scheduling, ITU-T I.371, annex A). So no two bursts are requested
//! at the same moment, and a flow that requests more than the others waits for its next turn. *Windows*: a flow may
//! have as many bytes in flight as fill its path at the level, the rate up to which all flows are filled, so that a
//! sender that pauses does not accumulate credit for a burst. The share that a flow leaves unused goes to the others
//! at the next turn, and into their windows two ticks later.
//!
//! The caller configures the rate; it is never estimated. Outside this module: how credit is granted, and what the
//! path of a flow shows of it (`wire`).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::limits::{MAX_WINDOW_BYTES, sane_rate, whole};

/// Most flows among which a rate is divided; further ones are limited by their own paths only.
pub const MAX_FLOWS: usize = 1024;
/// Lowest rate that can be divided, bytes per second.
pub const LEAST_RATE: f64 = 65_536.0;

/// Time whose data one turn grants; timers are exact enough for it. The bytes of a turn are bounded by
/// `LEAST_STEP_BYTES` and `MOST_STEP_BYTES`.
const TURN: Duration = Duration::from_millis(1);
/// Fewest bytes that one turn grants.
const LEAST_STEP_BYTES: u64 = 8 << 10;
/// Most bytes that one turn grants.
const MOST_STEP_BYTES: u64 = 256 << 10;
/// Smallest window of a flow, bytes, unless `LEAST_STEPS` are more: a small flow does not wait for its turn.
const LEAST_WINDOW_BYTES: u64 = 64 << 10;
/// Fewest turns in the window of a flow.
const LEAST_STEPS: u64 = 4;
/// Time for which unused or late turns are made up: less than shallow buffers hold on long paths.
const BURST: Duration = Duration::from_millis(8);
/// Share of the round trip that the window exceeds what fills the path by; also added are the error of
/// timers, and the step that waits for its turn. A sender that paused sends all of it in one burst, which
/// must fit into shallow buffers.
const SLACK_SHARE: f64 = 1.0 / 32.0;
const SLACK: Duration = Duration::from_millis(5);
/// Divisor: a window rises by this part of the arriving bytes, by half in a round trip, which is less than
/// senders that probe, so that credit is spaced like the data.
const RISE: u64 = 2;
/// Shortest time over which arrivals are counted; otherwise the longest round trip.
const LEAST_TICK: Duration = Duration::from_millis(50);
/// Longest time over which arrivals are counted.
const LONGEST_TICK: Duration = Duration::from_secs(1);
/// Ticks without data after which a flow leaves its share to others; also the ticks of a new flow before it
/// can count as wanting less than the rest.
const TICKS: u32 = 2;
/// Factor on the arriving rate of a flow that gives its expected demand; `ALLOWED` gives its limit, so that a
/// sender that is slower than its share gathers little credit.
const GROWTH: f64 = 1.25;
const ALLOWED: f64 = 1.5;
const SPARE: f64 = 1.0 / 64.0;

/// Identifier of a flow, valid as long as the flow exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId(u64);

/// Report on a flow since the last one.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowReport {
    /// Bytes that have arrived since the last report.
    pub arrived_bytes: u64,
    /// Shortest round trip of the flow, once known.
    pub round_trip: Option<Duration>,
    /// Bytes that may be in flight or were not taken yet, by the granted credit.
    pub held_bytes: u64,
    /// True when an answer is incomplete.
    pub wants: bool,
}

#[derive(Debug, Default)]
struct FlowState {
    wants: bool,
    /// Bytes in this tick.
    arrived_bytes: u64,
    /// Rates of the last tick, and of the one before, bytes per second.
    rates: [f64; 2],
    /// Consecutive ticks in which nothing arrived.
    idle_ticks: u32,
    /// Ticks since the flow began.
    ticks: u32,
    round_trip: Duration,
    window_bytes: u64,
    /// The window, plus what an earlier and larger one still allows.
    held_bytes: u64,
}

impl FlowState {
    fn is_active(&self) -> bool {
        self.idle_ticks < TICKS || self.arrived_bytes > 0
    }

    /// Applies a report; true when the flow begins, or resumes after a pause.
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

    /// Demand of a flow out of `rate`, bytes per second, if it may want `growth` times what it got.
    fn demand(&self, rate: f64, growth: f64) -> f64 {
        let got = self.rates[0].max(self.rates[1]);
        if self.ticks <= TICKS { rate } else { got.mul_add(growth, rate * SPARE) }
    }
}

/// Rate divided among flows. Times count from any moment, the same for all calls.
#[derive(Debug)]
pub struct FairShare {
    /// Divided rate, bytes per second.
    rate: f64,
    flows: BTreeMap<FlowId, FlowState>,
    last: u64,
    tick_began: Duration,
    /// Rate up to which each flow is filled, bytes per second.
    level: f64,
    next_turn: Duration,
}

impl FairShare {
    /// Creates a division of this rate, at least [`LEAST_RATE`].
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

    /// Adds a flow, with credit of [`least_window_bytes`](Self::least_window_bytes); `None` at the limit
    /// [`MAX_FLOWS`].
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

    /// Removes a flow.
    pub fn leave(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }

    /// Applies a report on a flow, which is due at least whenever as much has arrived as a few packets hold.
    /// Returns the bytes that the flow may have in flight from then on.
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

    /// Assigns the next turn to the caller; returns its time, at which a [step](Self::step_bytes) may be
    /// granted. Earlier than `now` where turns were not taken.
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

    /// Number of flows.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Most bytes that all flows together may have in flight or not taken yet: as many as fill the longest
    /// path at the rate, and the smallest window of each flow. It may be more for a round trip in two cases
    /// only: while a path becomes shorter, and when a flow that paused with unused credit resumes. Credit
    /// cannot be taken back.
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

    /// Ends the tick if it is due.
    fn pass(&mut self, now: Duration) {
        let since = now.saturating_sub(self.tick_began);
        if since < self.longest().clamp(LEAST_TICK, LONGEST_TICK) {
            return;
        }
        self.tick_began = now;
        self.flows.values_mut().for_each(|flow| flow.end_tick(since.as_secs_f64()));
        self.level = self.fill();
    }

    /// Level up to which flows are filled until the rate is used up. Where they want less, all may rise by
    /// the whole remainder.
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

/// Bytes that fill a path at a rate, with some slack.
fn filling_bytes(bytes_per_sec: f64, round_trip: Duration) -> u64 {
    let secs = round_trip.as_secs_f64().mul_add(1.0 + SLACK_SHARE, SLACK.as_secs_f64());
    whole(bytes_per_sec * secs).min(MAX_WINDOW_BYTES)
}

#[cfg(test)]
mod tests;
