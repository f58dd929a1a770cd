//! Counters of what a server's port rejected: datagrams of no connection, too large ones, packets that were not sealed by
//! the other end, packets that came before, packets of trains that nobody waits for.
//!
//! The stack rejects them without telling anybody. They are counted from outside: the socket knows the sizes; the
//! generator of connection IDs is asked about unknown ones; and the keys (see [`crypto`](super::crypto)) open each
//! packet. Not counted: broken headers, packets of a handshake that nobody began.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quinn::{ConnectionId, ConnectionIdGenerator};
use quinn_proto::{HashedConnectionIdGenerator, InvalidCid};

/// Numbers of what a port rejected since it was opened. The connections that it was addressed to continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    /// Datagrams that name a connection that there is not: made up, or over.
    pub unknown: u64,
    /// Datagrams larger than this side takes. Where the system does not put datagrams together they come cut, and count
    /// as unauthenticated.
    pub oversized: u64,
    /// Packets that do not bear the seal of the other end: forged, or damaged on the way.
    pub unauthenticated: u64,
    /// Packets that were opened before, or are so late that this cannot be told: replayed, or repeated by the network.
    pub replayed: u64,
    /// Datagrams that are not QUIC's, and of no packet train that is listened for from there, or of one for the second time: late,
    /// stray or forged.
    pub stray: u64,
}

/// Counts, shared by all who see some of it.
#[derive(Debug, Default)]
pub(super) struct RejectionCounters {
    unknown: AtomicU64,
    oversized: AtomicU64,
    unauthenticated: AtomicU64,
    replayed: AtomicU64,
    stray: AtomicU64,
}

impl RejectionCounters {
    pub(super) fn count(&self) -> Rejected {
        let told = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Rejected {
            unknown: told(&self.unknown),
            oversized: told(&self.oversized),
            unauthenticated: told(&self.unauthenticated),
            replayed: told(&self.replayed),
            stray: told(&self.stray),
        }
    }

    pub(super) fn note_oversized(&self) {
        self.oversized.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_unauthenticated(&self) {
        self.unauthenticated.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_replayed(&self) {
        self.replayed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_stray(&self) {
        self.stray.fetch_add(1, Ordering::Relaxed);
    }
}

/// The counts of a port, for whoever shows them while it is being served.
#[derive(Clone, Debug)]
pub struct RejectionMonitor(pub(super) Arc<RejectionCounters>);

impl RejectionMonitor {
    /// So far.
    #[must_use]
    pub fn so_far(&self) -> Rejected {
        self.0.count()
    }
}

/// Names connections as the stack's own generator does, and is asked about names that belong to none.
pub(super) struct ConnectionIds {
    inner: HashedConnectionIdGenerator,
    rejections: Arc<RejectionCounters>,
}

impl ConnectionIds {
    pub(super) fn new(rejections: Arc<RejectionCounters>) -> Self {
        Self { inner: HashedConnectionIdGenerator::new(), rejections }
    }
}

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.inner.generate_cid()
    }

    /// Asked only about packets that found no connection.
    fn validate(&self, name: &ConnectionId) -> Result<(), InvalidCid> {
        self.rejections.unknown.fetch_add(1, Ordering::Relaxed);
        self.inner.validate(name)
    }

    fn cid_len(&self) -> usize {
        self.inner.cid_len()
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        self.inner.cid_lifetime()
    }
}
