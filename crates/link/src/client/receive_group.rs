//! The connections among which a process divides what it is said to be able to receive: each tells what came, hears what it may
//! have under way, and takes turns in giving credit. What they have in common is the host's network card, the
//! last link before it, and the processors that take what comes. The law is [`control::allotment`]'s.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use control::allotment::{Allotment, FlowId, News};
use wire::{Client, ClientConfig, InTurns};

use crate::clock::now;

/// Bytes that arrive on a connection between two reports to the shared allotment. Each report takes a lock that all
/// connections share.
const TOLD_BYTES: u64 = 16 << 10;

/// Connections that share a rate. Cheap to clone; clones are the same.
#[derive(Clone, Debug)]
pub struct Gathering(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    began: Instant,
    allotment: Mutex<Allotment>,
}

impl Gathering {
    /// Creates a group of connections that together receive at most so many bytes per second. The rate is at least
    /// [`LEAST_RATE`](control::allotment::LEAST_RATE).
    #[must_use]
    pub fn new(bytes_per_sec: f64) -> Self {
        Self(Arc::new(Shared { began: now(), allotment: Mutex::new(Allotment::new(bytes_per_sec)) }))
    }

    /// Connections that are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.with(|allotment, _| allotment.flows())
    }

    /// Most bytes that all connections together may have under way or not yet taken: see
    /// [`Allotment::most_held_bytes`](control::allotment::Allotment::most_held_bytes).
    #[must_use]
    pub fn most_held_bytes(&self) -> u64 {
        self.with(|allotment, _| allotment.most_held_bytes())
    }

    fn with<T>(&self, f: impl FnOnce(&mut Allotment, Duration) -> T) -> T {
        let since = now().saturating_duration_since(self.0.began);
        f(&mut self.0.allotment.lock().unwrap_or_else(PoisonError::into_inner), since)
    }

    /// A connection joins; none where there are too many: it goes by its own path.
    pub(crate) fn join(&self, config: &mut ClientConfig) -> Option<Member> {
        let (flow, in_turns) = self.with(|allotment, now| {
            let window_bytes = allotment.least_window_bytes();
            let in_turns = InTurns { window_bytes, step_bytes: allotment.step_bytes() };
            allotment.join(now).map(|flow| (flow, in_turns))
        })?;
        config.in_turns = Some(in_turns);
        Some(Member { gathering: self.clone(), flow, wants: false })
    }
}

/// One connection of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Member {
    gathering: Gathering,
    flow: FlowId,
    /// When that was told last, not all had come of what was asked.
    wants: bool,
}

impl Member {
    /// Tells what is new, hears what is allowed, and takes turns.
    pub(crate) fn settle(&mut self, client: &mut Client) {
        if client.arrived_bytes() >= TOLD_BYTES || client.has_operations() != self.wants {
            self.tell(client);
        }
        while client.wants_turn() {
            let at = self.gathering.with(Allotment::turn);
            client.take_turn(now(), self.gathering.0.began + at);
        }
    }

    fn tell(&mut self, client: &mut Client) {
        self.wants = client.has_operations();
        let news = News {
            arrived_bytes: client.take_arrived(),
            round_trip: client.round_trip(),
            held_bytes: client.held_bytes(),
            wants: self.wants,
        };
        client.limit_window(self.gathering.with(|allotment, now| allotment.handle(now, self.flow, news)));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.gathering.with(|allotment, _| allotment.leave(self.flow));
    }
}
