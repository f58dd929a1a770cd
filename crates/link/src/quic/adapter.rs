//! A [`Pace`] as QUIC's stack wants it: a congestion controller whose window is all or nothing, and a poller that
//! knows whom to wake. This leans on the order of calls inside quinn 0.11.12 (ask, send, acknowledge), which is why
//! its version is pinned; `tests/quic.rs` counts what it lets through.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerFactory};

use super::alarm::Alarm;
use super::pace::{Answer, Pace};
use crate::clock::now;

/// Above `u32::MAX`, where the stack's own pacer switches itself off.
const OPEN_WINDOW_BYTES: u64 = 1 << 40;
/// Room for nothing.
const CLOSED_WINDOW_BYTES: u64 = 1;

/// One connection's [`Pace`], shared by what the stack calls and by the carrier. Outlives changes of the path, for
/// which the stack makes new controllers. Its lock is taken inside the stack's: never call the stack while holding it.
pub(super) struct SharedPace {
    pace: Mutex<Pace>,
    start: Instant,
    alarm: Mutex<Alarm>,
}

impl fmt::Debug for SharedPace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedPace")
    }
}

impl SharedPace {
    pub(super) fn new(pace: Pace) -> Arc<Self> {
        Arc::new(Self { pace: Mutex::new(pace), start: now(), alarm: Mutex::default() })
    }

    pub(super) fn with<T>(&self, f: impl FnOnce(&mut Pace) -> T) -> T {
        f(&mut self.pace.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Time as the pace counts it.
    pub(super) fn since_start(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.start)
    }

    pub(super) fn now(&self) -> Duration {
        self.since_start(now())
    }

    /// Registers the waker of the task that sends. Called before every send; a connection keeps its task.
    pub(super) fn set_sender(&self, waker: &Waker) {
        self.with(|pace| match &mut pace.sender {
            Some(sender) => sender.clone_from(waker),
            None => pace.sender = Some(waker.clone()),
        });
    }

    fn is_open(&self) -> bool {
        let at = now();
        let since_start = self.since_start(at);
        self.with(|pace| {
            let answer = pace.ask(since_start);
            if let (Answer::At(open_at), Some(sender)) = (answer, &pace.sender) {
                let mut alarm = self.alarm.lock().unwrap_or_else(PoisonError::into_inner);
                alarm.wake_at(at, self.start + open_at, sender);
            }
            answer == Answer::Yes
        })
    }
}

/// Makes [`Paced`] for a connection.
pub(super) struct Factory(pub(super) Arc<SharedPace>);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        self.0.with(|pace| {
            pace.on_new_path();
            pace.on_packet_size(current_mtu.into());
        });
        Box::new(Paced(Arc::clone(&self.0)))
    }
}

struct Paced(Arc<SharedPace>);

impl Controller for Paced {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let now = self.0.since_start(now);
        self.0.with(|pace| pace.on_sent(now, bytes));
    }

    fn on_ack(
        &mut self,
        _now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        _rtt: &quinn_proto::RttEstimator,
    ) {
        let sent = self.0.since_start(sent);
        self.0.with(|pace| pace.on_ack(sent, bytes));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let (now, seen) = (self.0.since_start(now), self.0.now());
        self.0.with(|pace| pace.on_acks_end(now, seen, in_flight, app_limited));
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let (now, sent) = (self.0.since_start(now), self.0.since_start(sent));
        self.0.with(|pace| pace.on_loss(now, sent, lost_bytes, is_persistent_congestion));
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.0.with(|pace| pace.on_packet_size(new_mtu.into()));
    }

    fn window(&self) -> u64 {
        if self.0.is_open() { OPEN_WINDOW_BYTES } else { CLOSED_WINDOW_BYTES }
    }

    /// Asked for when the other side's port changed and nothing else: a new path to the stack.
    fn clone_box(&self) -> Box<dyn Controller> {
        self.0.with(Pace::on_new_path);
        Box::new(Self(Arc::clone(&self.0)))
    }

    fn initial_window(&self) -> u64 {
        OPEN_WINDOW_BYTES
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
