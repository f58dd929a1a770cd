//! `auto`: congestion controller of this project that finds the rate itself.
//!
//! It controls a rate, not a window. A packet train (or a remembered path) gives the capacity of the
//! bottleneck; from then on the flow repeats cycles, each about ten round trips long:
//!
//! ```text
//! Probe --train--> Ramp --queue or loss--> Drain --in flight fits--> Hold --a round--> Climb --queue or loss--> Drain
//! ```
//!
//! - *Climb* adds a share of the **capacity** per round trip, not of the own rate, and less the longer the
//!   queue is. The queue is the same for all flows of one bottleneck, so they grow alike.
//! - The signal to stop is common to these flows: the queueing delay exceeds a threshold, or losses exceed
//!   the random loss of the path ([`losses`]). They stop together, and *Drain* empties the queue, so that in
//!   each cycle all of them, also new ones, measure the round trip without a queue.
//! - After the drain a flow uses the rate that arrived while the queue existed, less a part that grows with
//!   its share of the capacity, so larger flows give up more. Equal growth and unequal cuts make shares equal
//!   (the argument of Chiu and Jain, 1989, for equal growth and proportional cuts), and no flow needs to know
//!   their number. A flow that is alone on the path loses two percent.
//! - A drain that does not shorten the queue means that there is none: the path has become longer
//!   ([`longer_path`]).
//!
//! Known weaknesses (docs/benchmarks.md): a start together with many flows into a small buffer may measure a
//! wrong capacity and takes long; below a round trip of a millisecond, noise hides the queue. Coexistence
//! with flows that fill every queue: [`coexistence`].
//!
//! Outside this module: storage of remembered paths, other connections of the host.

mod capacity;
mod coexistence;
mod longer_path;
mod losses;
mod queue;
mod train;

use std::time::Duration;

use crate::limits::{EVEN_PACKETS, even_quantum};
use crate::round::RoundTracker;
use crate::{Ack, Config, Controller, MAX_QUANTUM_BYTES, PacketEvent, SendLimits};
use capacity::CapacityEstimator;
pub(crate) use coexistence::{CoexistingAuto, Friendliness};
use longer_path::LongerPath;
use losses::Losses;
use queue::QueueEstimator;
use train::{ProbeTrain, TrainCapacity};

/// Packets of the first train on an unknown path: more than twice the ten of an initial window (RFC 6928).
const FIRST_TRAIN_PACKETS: f64 = 24.0;
/// Fewest packets of any other train.
const LEAST_TRAIN_PACKETS: f64 = 4.0;
/// Factor on the length of the next train after one that was too short to evaluate.
const TRAIN_GROWTH: f64 = 16.0;
/// Time that a train takes at the bottleneck, as a share of the round trip.
const TRAIN_RTTS: f64 = 0.05;
/// Bounds of the time that a train takes at the bottleneck, seconds.
const TRAIN_SECS: (f64, f64) = (0.4e-3, 1e-3);
/// Share of lost packets of a train above which the next train is half as long.
const TRAIN_LOSS: f64 = 0.1;
/// Share of lost packets of a train above which trains do not grow any more.
const TRAIN_LOSS_MOST: f64 = 0.3;
/// Rounds between trains of a flow that is not alone.
const TRAIN_ROUNDS: u32 = 8;
/// Cycles between trains of a flow that is alone.
const TRAIN_CYCLES: u32 = 16;
/// Share of the train's capacity that is sent until its first packets are acknowledged.
const FIRST_SHARE: f64 = 0.5;
/// Share of the known capacity that is sent afterwards.
const FULL_SHARE: f64 = 0.95;
/// Growth per round in Ramp.
const DOUBLING: f64 = 2.0;
/// Growth in Climb, share of the capacity per round trip.
const CLIMB: f64 = 0.017;
/// Rounds without a queue after which Climb doubles its growth each round, because capacity became free.
const PATIENCE_ROUNDS: i32 = 6;
/// Most doublings of the growth in Climb.
const MOST_DOUBLINGS: i32 = 4;
/// Factor on the rate at a cut of a flow that is alone.
const ALONE: f64 = 0.98;
/// Share of the capacity above which a flow counts as alone.
const ALONE_SHARE: f64 = 0.92;
/// Share of the capacity below which a flow is not considered the cause of a queue.
const POOR_SHARE: f64 = 0.02;
/// Part of the rate that a cut takes, per share of the capacity.
const YIELD: f64 = 0.3;
/// Smallest share of the capacity that a cut is computed with.
const LEAST_YIELDING: f64 = 0.15;
/// Power by which the part that a cut takes falls for large shares: a flow that is alone and does not know it
/// would lose too much.
const YIELD_TAPERS: i32 = 4;
/// Smallest growth near the threshold of the queue, as a share of the full growth.
const LEAST_GROWTH: f64 = 0.3;
/// Lower bound of a cut in Climb, as a share of the rate: the rates of sending and arriving are close there.
const ARRIVING_SURE: f64 = 0.85;
/// Counterpart of [`ARRIVING_SURE`] where losses end the growth.
const ARRIVING_SURE_LOSING: f64 = 0.5;
/// Time window of the largest arriving rate, in round trips.
const CAPACITY_RTTS: f64 = 200.0;
/// Time window of the largest arriving rate, seconds.
const CAPACITY_SECS: f64 = 10.0;
/// Share of the round trip after a cut within which the queue cannot have reacted to the lower rate; one that
/// is gone by then was not a queue.
const UNDO_RTTS: f64 = 0.5;
/// Largest quantum as a share of a round trip's data; at least [`EVEN_PACKETS`].
const QUANTUM_RTTS: f64 = 0.05;
/// Fewest packets of a step: fewer are no measurement.
const LEAST_STEP_PACKETS: f64 = 8.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The first train is in flight.
    Probe,
    /// Fast growth to the capacity; `is_doubling` while that is not known.
    Ramp { is_doubling: bool },
    /// Reduced sending until the queue is empty; `target` is the rate that arrived while it existed.
    Drain { since: f64, target: f64 },
    /// One round at the new rate.
    Hold,
    /// Slow growth, with the number of rounds without a queue.
    Climb { calm_rounds: i32 },
}

/// State before a cut for which the queue was the only reason.
#[derive(Clone, Copy, Debug)]
struct UndoableCut {
    since: f64,
    phase: Phase,
    rate: f64,
}

/// Controller state.
#[derive(Debug)]
struct Auto {
    packet_bytes: u64,
    most_bytes_per_sec: f64,
    phase: Phase,
    undoable: Option<UndoableCut>,
    /// Sending rate, bytes per second.
    rate: f64,
    /// Rate that arrived over the last round trip, bytes per second.
    arriving: f64,
    queue: QueueEstimator,
    longer_path: LongerPath,
    capacity: CapacityEstimator,
    losses: Losses,
    round: RoundTracker,
    in_flight_bytes: f64,
    train: Option<ProbeTrain>,
    last_train: Option<ProbeTrain>,
    /// Length of the next train, bytes.
    train_bytes: f64,
    /// Part of the train that fits into the buffer.
    train_share: f64,
    rounds_since_train: u32,
    cycles: u32,
    last_at: f64,
}

impl Auto {
    fn new(config: &Config) -> Self {
        let rtt = config.first_rtt_secs();
        let train_bytes = FIRST_TRAIN_PACKETS * config.packet_bytes as f64;
        let known = config.remembered;
        Self {
            packet_bytes: config.packet_bytes,
            most_bytes_per_sec: config.rate_bytes_per_sec.unwrap_or(f64::INFINITY),
            phase: if known.is_some() { Phase::Ramp { is_doubling: false } } else { Phase::Probe },
            undoable: None,
            rate: known.map_or(train_bytes / rtt, |k| FULL_SHARE * k.rate_bytes_per_sec),
            arriving: 0.0,
            queue: QueueEstimator::new(rtt),
            longer_path: LongerPath::default(),
            capacity: CapacityEstimator::new(
                known.map(|k| k.capacity_bytes_per_sec.max(k.rate_bytes_per_sec)),
            ),
            losses: Losses::new(config.packet_bytes as f64),
            round: RoundTracker::default(),
            in_flight_bytes: 0.0,
            train: known
                .is_none()
                .then(|| ProbeTrain::new(train_bytes, least_train_bytes(config.packet_bytes))),
            last_train: None,
            train_bytes,
            train_share: 1.0,
            rounds_since_train: 0,
            cycles: 0,
            last_at: 0.0,
        }
    }

    /// Time until a change takes effect, seconds: a round trip, or longer where few packets fit in one.
    fn step_secs(&self) -> f64 {
        self.queue.base_secs().max(LEAST_STEP_PACKETS * self.packet_bytes as f64 / self.rate)
    }

    /// Share of the capacity that `rate` is; 1 while the capacity is unknown.
    fn share_of(&self, rate: f64) -> f64 {
        let share = rate / self.capacity.value();
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 1.0 }
    }

    fn on_ack(&mut self, at: f64, ack: &Ack) {
        self.in_flight_bytes = ack.in_flight_bytes as f64;
        self.losses.on_arrived(ack.bytes);
        if let Some(rtt) = ack.rtt {
            self.queue.on_rtt(at, self.step_secs(), rtt.as_secs_f64());
        }
        let is_limited = ack.delivery.is_some_and(|d| d.is_app_limited);
        let is_round = ack.delivery.is_some_and(|d| self.round.on_ack(&d));
        if let Some(delivery) = ack.delivery {
            self.arriving = delivery.rate_bytes_per_sec;
            if !is_limited && self.phase != Phase::Probe {
                let window = (CAPACITY_RTTS * self.step_secs()).max(CAPACITY_SECS);
                self.capacity.on_arrived(at, window, self.arriving);
            }
        }
        if let Some(shown) = self.train.as_mut().and_then(|train| train.on_ack(at, ack)) {
            self.on_train(shown);
        }
        self.undo(at);
        self.advance(at, is_round, is_limited);
        if is_round {
            self.end_round();
        }
        let least = 2.0 * self.packet_bytes as f64 / self.queue.base_secs().max(0.1);
        self.rate = self.rate.min(self.most_bytes_per_sec).max(least);
        self.last_at = at;
    }

    /// Handles the result of a train.
    fn on_train(&mut self, shown: TrainCapacity) {
        let train = self.train.take();
        let lost = train.as_ref().map_or(0.0, ProbeTrain::lost_share);
        self.last_train = train;
        let fits = if lost > TRAIN_LOSS { 0.5 } else { 1.1 };
        self.train_share = (self.train_share * fits).clamp(0.125, 1.0);
        let is_news = self.capacity.on_train(shown);
        let is_exact = matches!(shown, TrainCapacity::Exactly(_));
        if is_exact {
            let secs = (TRAIN_RTTS * self.queue.base_secs()).clamp(TRAIN_SECS.0, TRAIN_SECS.1);
            self.train_bytes = self.capacity.value() * secs * self.train_share;
        } else if lost > TRAIN_LOSS {
            self.train_bytes /= 2.0;
        } else if is_news {
            self.train_bytes *= TRAIN_GROWTH;
        }
        if !matches!(self.phase, Phase::Probe | Phase::Ramp { .. }) {
            return;
        }
        let share = if is_exact { FIRST_SHARE } else { 1.0 };
        let shown = share * self.capacity.value();
        self.rate = if self.phase == Phase::Probe { shown } else { self.rate.max(shown) };
        if is_exact || self.phase == Phase::Probe {
            self.enter(Phase::Ramp { is_doubling: !is_exact });
        }
        if !is_exact && lost < TRAIN_LOSS_MOST {
            self.send_train();
        }
    }

    fn send_train(&mut self) {
        self.rounds_since_train = 0;
        let most = (2.0 * self.rate * self.queue.base_secs()).min(MAX_QUANTUM_BYTES as f64);
        let least = least_train_bytes(self.packet_bytes);
        self.train = Some(ProbeTrain::new(self.train_bytes.min(most).max(least), least));
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.round.restart();
    }

    /// Runs the current phase at an acknowledgement.
    fn advance(&mut self, at: f64, is_round: bool, is_limited: bool) {
        match self.phase {
            Phase::Probe => {}
            Phase::Ramp { is_doubling } => {
                if self.queue.is_long() || self.losses.is_congested_surely() {
                    self.cut(at, self.arriving.min(self.rate));
                } else if is_round && !is_limited {
                    self.ramp(is_doubling);
                }
            }
            Phase::Drain { since, target } => {
                let target = if is_limited { target } else { target.max(self.arriving) };
                self.drain(at, since, target);
            }
            Phase::Hold => {
                if is_round {
                    self.end_hold(at);
                }
            }
            Phase::Climb { calm_rounds } => self.on_climb(at, calm_rounds, is_round, is_limited),
        }
    }

    fn end_round(&mut self) {
        let is_calm = match self.phase {
            Phase::Ramp { .. } => self.queue.is_calm(),
            Phase::Climb { calm_rounds } => calm_rounds == 0,
            _ => false,
        };
        self.losses.end_round(is_calm);
        self.queue.end_round();
        self.rounds_since_train = self.rounds_since_train.saturating_add(1);
    }

    fn ramp(&mut self, is_doubling: bool) {
        let full = FULL_SHARE * self.capacity.value();
        if is_doubling {
            self.rate *= DOUBLING;
        } else if self.rate < full {
            self.rate = (self.rate * DOUBLING).min(full);
        } else {
            // One train is weak evidence, so growth continues quickly where no queue appears.
            self.enter(Phase::Climb { calm_rounds: PATIENCE_ROUNDS });
            self.send_train();
        }
    }

    /// Ends Hold: the data sent after a drain has arrived.
    fn end_hold(&mut self, at: f64) {
        let (queue, least) = (self.queue.secs(), self.queue.threshold_secs());
        if self.longer_path.on_seen(queue, self.capacity.value(), least) {
            self.queue.begin_anew(at);
            self.enter(Phase::Ramp { is_doubling: false });
            self.send_train();
        } else {
            self.start_climb();
        }
    }

    fn start_climb(&mut self) {
        self.cycles = self.cycles.wrapping_add(1);
        // The first cut may follow from a wrong capacity: then there is much to regain.
        let calm_rounds = if self.cycles == 1 { PATIENCE_ROUNDS - 1 } else { 0 };
        self.enter(Phase::Climb { calm_rounds });
        let is_alone = self.share_of(self.rate) > ALONE_SHARE && self.capacity.is_settled();
        if !is_alone || self.cycles.is_multiple_of(TRAIN_CYCLES) {
            self.send_train();
        }
    }

    fn on_climb(&mut self, at: f64, calm_rounds: i32, is_round: bool, is_limited: bool) {
        let has_lost = self.losses.is_congested();
        let is_poor = self.share_of(self.rate) < POOR_SHARE;
        if has_lost || (self.queue.is_long() && !is_poor) {
            let sure = if has_lost { ARRIVING_SURE_LOSING } else { ARRIVING_SURE };
            self.cut(at, self.arriving.clamp(sure * self.rate, self.rate));
        } else if !is_limited {
            self.climb(at, calm_rounds, is_round);
        }
    }

    fn climb(&mut self, at: f64, calm_rounds: i32, is_round: bool) {
        let doublings = (calm_rounds - PATIENCE_ROUNDS).clamp(0, MOST_DOUBLINGS);
        // Less near the threshold, so that many flows together do not overshoot.
        let room = 1.0 - self.queue.secs() / self.queue.threshold_secs();
        let growth = CLIMB * room.max(LEAST_GROWTH) * f64::from(1 << doublings);
        let steps = ((at - self.last_at) / self.step_secs()).clamp(0.0, 1.0);
        self.rate += growth * self.capacity.value() * steps;
        let is_shared = self.share_of(self.rate) < ALONE_SHARE;
        if is_shared && self.train.is_none() && self.rounds_since_train >= TRAIN_ROUNDS {
            self.send_train();
        }
        let calm_rounds = if self.queue.is_calm() { calm_rounds + i32::from(is_round) } else { 0 };
        self.phase = Phase::Climb { calm_rounds };
    }

    /// Undoes a cut that was caused by a busy host: acknowledgements that were processed late look like a
    /// queue, which is gone with the first one that is not late.
    fn undo(&mut self, at: f64) {
        let Some(UndoableCut { since, phase, rate }) = self.undoable else { return };
        if at - since > UNDO_RTTS * self.queue.base_secs() {
            self.undoable = None;
        } else if at > since && self.queue.is_short() {
            (self.phase, self.rate, self.undoable) = (phase, rate, None);
        }
    }

    /// Reduces the rate: the queue or losses show that the path is full.
    fn cut(&mut self, at: f64, target: f64) {
        let has_lost = self.losses.is_congested();
        self.undoable = (!has_lost).then_some(UndoableCut { since: at, phase: self.phase, rate: self.rate });
        self.longer_path.on_cut(self.queue.secs(), self.in_flight_bytes);
        self.queue.end_cycle(has_lost);
        self.losses.forget_round();
        self.enter(Phase::Drain { since: at, target });
        self.drain(at, at, target);
    }

    fn drain(&mut self, at: f64, since: f64, target: f64) {
        let packets = 2.0 * self.packet_bytes as f64;
        let excess = (self.in_flight_bytes - target * self.queue.base_secs()).max(0.0);
        let is_empty = at > since && self.queue.is_empty();
        if excess < packets || is_empty || at - since > 3.0 * self.step_secs() {
            self.rate = target * ALONE * (1.0 - give_up(self.share_of(target)));
            self.longer_path.on_drained(self.in_flight_bytes);
            self.enter(Phase::Hold);
            return;
        }
        self.rate = (target - 1.2 * excess / self.step_secs()).clamp(0.2 * target, 0.85 * target);
        self.phase = Phase::Drain { since, target };
    }

    fn on_timeout(&mut self) {
        self.in_flight_bytes = 0.0;
        self.rate /= 2.0;
        self.train = None;
        self.undoable = None;
        if self.capacity.value() == 0.0 {
            self.send_train();
            self.enter(Phase::Probe);
        } else {
            self.enter(Phase::Ramp { is_doubling: false });
        }
    }
}

/// Part of its rate that a flow with this share of the capacity gives up.
fn give_up(share: f64) -> f64 {
    if share >= ALONE_SHARE {
        return 0.0;
    }
    YIELD * share.max(LEAST_YIELDING) * (1.0 - share.powi(YIELD_TAPERS))
}

fn least_train_bytes(packet_bytes: u64) -> f64 {
    LEAST_TRAIN_PACKETS * packet_bytes as f64
}

impl Controller for Auto {
    fn on(&mut self, now: Duration, event: &PacketEvent) {
        match event {
            PacketEvent::Ack(ack) => self.on_ack(now.as_secs_f64(), ack),
            PacketEvent::Sent { bytes, in_flight_bytes } => {
                self.in_flight_bytes = *in_flight_bytes as f64;
                if let Some(train) = &mut self.train {
                    train.on_sent(now, *bytes);
                }
            }
            PacketEvent::Loss(loss) => {
                // Losses of a train show that the buffer is small, not that the rate is too high.
                let mut trains = self.train.iter_mut().chain(&mut self.last_train);
                if !trains.any(|train| train.on_lost(loss)) {
                    self.losses.on_lost(loss.bytes);
                }
            }
            PacketEvent::Spurious { bytes, .. } => self.losses.on_spurious(*bytes),
            PacketEvent::Timeout => self.on_timeout(),
            PacketEvent::AppLimited | PacketEvent::Report(_) => {}
        }
    }

    fn limits(&self) -> SendLimits {
        let packet = self.packet_bytes as f64;
        let train = self.train.as_ref().filter(|t| t.is_leaving()).map(ProbeTrain::bytes);
        // A buffer may be much smaller than a quantum of a quarter of a millisecond.
        let most = (QUANTUM_RTTS * self.queue.base_secs() * self.rate).max(EVEN_PACKETS * packet);
        let quantum = train.unwrap_or_else(|| even_quantum(self.packet_bytes, self.rate).min(most));
        let window = match self.phase {
            // A few packets after the train reveal that its end was lost.
            Phase::Probe => 2.0 * FIRST_TRAIN_PACKETS * packet,
            _ => {
                let base = self.queue.base_secs();
                let secs = 1.25 * base + self.queue.threshold_secs().min(base) + 2e-3;
                self.rate * secs + 2.0 * quantum + LEAST_STEP_PACKETS * packet
            }
        };
        SendLimits::new(self.packet_bytes, self.rate, window, quantum)
    }
}
