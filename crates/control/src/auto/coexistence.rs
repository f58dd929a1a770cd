//! Coexistence of `auto` with flows that fill every queue, and the controller `polite`.
//!
//! `auto` keeps queues short, so a flow that fills them (cubic, reno) would leave it nothing. Where the queue
//! has not been short for [`PATIENCE_STEPS`], another flow fills it: then a window controller of TCP's family
//! ([`Cubic`]) takes over, until the queue overflows. Then all flows of `auto` at that bottleneck stop
//! together and look whether the queue empties now. `polite` is never above that window.
//!
//! The window hears of losses that mean congestion only, so random loss does not take it down.

use std::time::Duration;

use super::Auto;
use crate::window::{Cubic, WindowController};
use crate::{Config, Controller, PacketEvent, SendLimits};

/// Steps without a short queue after which another flow is assumed to fill it.
const PATIENCE_STEPS: f64 = 20.0;
/// Factor on the queue threshold above which a queue is caused by other flows.
const LONG_QUEUES: f64 = 2.0;
/// Factor by which the rate of `auto` may exceed a window that limits it.
const HEADROOM: f64 = 1.25;

/// Part of TCP's window that `polite` takes: paced evenly, it loses less at a full queue than a flow that
/// sends in bursts, and would get more than its share.
const MODESTY: f64 = 0.85;

/// Share of a common bottleneck to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Friendliness {
    /// Fair share among flows of this kind, and about as much as TCP where TCP fills the queue.
    Fair,
    /// Never more than TCP.
    Polite,
}

/// `auto` with a window controller of TCP's family.
#[derive(Debug)]
pub(crate) struct CoexistingAuto {
    friendliness: Friendliness,
    packet_bytes: u64,
    auto: Auto,
    tcp: WindowController<Cubic>,
    /// Time at which the queue was last short, seconds.
    short_at: f64,
    is_competing: bool,
}

impl CoexistingAuto {
    pub(crate) fn new(config: &Config, friendliness: Friendliness) -> Self {
        Self {
            friendliness,
            packet_bytes: config.packet_bytes,
            auto: Auto::new(config),
            tcp: WindowController::new(config, Cubic::default()),
            short_at: 0.0,
            is_competing: false,
        }
    }

    /// Returns whether a loss now means that the path is full.
    fn means_congestion(&self) -> bool {
        self.auto.queue.secs() > LONG_QUEUES * self.auto.queue.threshold_secs()
            || self.auto.losses.is_congested()
    }

    fn look(&mut self, at: f64) {
        if self.auto.queue.secs() <= self.auto.queue.threshold_secs() / 2.0 {
            self.short_at = at;
            self.is_competing = false;
        } else if !self.is_competing && at - self.short_at > PATIENCE_STEPS * self.auto.step_secs() {
            self.is_competing = true;
            if self.friendliness == Friendliness::Fair {
                let rtt = self.auto.queue.base_secs() + self.auto.queue.secs();
                self.tcp.resume(self.auto.arriving * rtt);
            }
        }
        if self.friendliness == Friendliness::Polite {
            self.auto.rate = self.auto.rate.min(HEADROOM * self.tcp.limits().rate_bytes_per_sec());
        }
    }
}

impl Controller for CoexistingAuto {
    fn on(&mut self, now: Duration, event: &PacketEvent) {
        self.auto.on(now, event);
        match event {
            PacketEvent::Loss(_) if self.means_congestion() => {
                self.tcp.on(now, event);
                self.is_competing = false;
                self.short_at = now.as_secs_f64();
            }
            PacketEvent::Loss(_) => {}
            _ => self.tcp.on(now, event),
        }
        if matches!(event, PacketEvent::Ack(_)) {
            self.look(now.as_secs_f64());
        }
    }

    fn limits(&self) -> SendLimits {
        let auto = self.auto.limits();
        let tcp = self.tcp.limits();
        let own = if self.is_competing { tcp } else { auto };
        if self.friendliness == Friendliness::Fair {
            return own;
        }
        let rate = own.rate_bytes_per_sec().min(tcp.rate_bytes_per_sec());
        let window = (own.window_bytes() as f64).min(MODESTY * tcp.window_bytes() as f64);
        SendLimits::new(self.packet_bytes, rate, window, own.quantum_bytes() as f64)
    }
}
