//! Connections that share the receive rate of a process: each reports what arrived, gets its window, and
//! takes turns in giving credit. The connections share the host's network card, the last link before it, and
//! the processors that handle the data. The rate is divided by [`control::fair_share`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use control::fair_share::{FairShare, FlowId, FlowReport};
use wire::{Client, ClientConfig, InTurns};

use crate::clock::now;

/// Bytes that arrive on a connection between two reports to the shared [`FairShare`]. Each report takes a lock that all
/// connections share.
const REPORT_BYTES: u64 = 16 << 10;

/// Connections that share a rate. Cheap to clone; clones share the state.
#[derive(Clone, Debug)]
pub struct ReceiveGroup(Arc<SharedRate>);

#[derive(Debug)]
struct SharedRate {
    began: Instant,
    fair_share: Mutex<FairShare>,
}

impl ReceiveGroup {
    /// Creates a group of connections that together receive at most `bytes_per_sec`, at least
    /// [`LEAST_RATE`](control::fair_share::LEAST_RATE).
    #[must_use]
    pub fn new(bytes_per_sec: f64) -> Self {
        Self(Arc::new(SharedRate { began: now(), fair_share: Mutex::new(FairShare::new(bytes_per_sec)) }))
    }

    /// Number of open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.with(|fair_share, _| fair_share.flows())
    }

    /// Most bytes that all connections together may have in flight or not yet taken: see
    /// [`FairShare::most_held_bytes`](control::fair_share::FairShare::most_held_bytes).
    #[must_use]
    pub fn most_held_bytes(&self) -> u64 {
        self.with(|fair_share, _| fair_share.most_held_bytes())
    }

    fn with<T>(&self, f: impl FnOnce(&mut FairShare, Duration) -> T) -> T {
        let since = now().saturating_duration_since(self.0.began);
        f(&mut self.0.fair_share.lock().unwrap_or_else(PoisonError::into_inner), since)
    }

    /// Adds a connection; `None` where there are too many: the connection is then limited by its own path
    /// only.
    pub(crate) fn join(&self, config: &mut ClientConfig) -> Option<GroupMember> {
        let (flow, in_turns) = self.with(|fair_share, now| {
            let window_bytes = fair_share.least_window_bytes();
            let in_turns = InTurns { window_bytes, step_bytes: fair_share.step_bytes() };
            fair_share.join(now).map(|flow| (flow, in_turns))
        })?;
        config.in_turns = Some(in_turns);
        Some(GroupMember { group: self.clone(), flow, wants: false })
    }
}

/// Membership of one connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct GroupMember {
    group: ReceiveGroup,
    flow: FlowId,
    /// True when an answer was incomplete at the last report.
    wants: bool,
}

impl GroupMember {
    /// Reports what is new, applies the window, and takes turns.
    pub(crate) fn settle(&mut self, client: &mut Client) {
        if client.arrived_bytes() >= REPORT_BYTES || client.has_operations() != self.wants {
            self.report(client);
        }
        while client.wants_turn() {
            let at = self.group.with(FairShare::turn);
            client.take_turn(now(), self.group.0.began + at);
        }
    }

    fn report(&mut self, client: &mut Client) {
        self.wants = client.has_operations();
        let report = FlowReport {
            arrived_bytes: client.take_arrived(),
            round_trip: client.round_trip(),
            held_bytes: client.held_bytes(),
            wants: self.wants,
        };
        client.limit_window(self.group.with(|fair_share, now| fair_share.handle(now, self.flow, report)));
    }
}

impl Drop for GroupMember {
    fn drop(&mut self) {
        self.group.with(|fair_share, _| fair_share.leave(self.flow));
    }
}
