//! Counters of packets that a server's port rejected: datagrams of unknown connections, oversized ones,
//! packets that fail authentication, replayed packets, and packets of unexpected trains.
//!
//! The stack drops them silently. They are counted outside of it: the socket sees the sizes, the generator of
//! connection IDs validates unknown IDs, and the keys (see [`crypto`](super::crypto)) decrypt each packet.
//! Not counted: malformed headers, and packets of unknown handshakes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quinn::{ConnectionId, ConnectionIdGenerator};
use quinn_proto::{HashedConnectionIdGenerator, InvalidCid};

/// Packets that a port rejected since it was opened. The connections that they were addressed to continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    /// Datagrams with an unknown connection ID: forged, or of a connection that has ended.
    pub unknown: u64,
    /// Datagrams larger than the maximum. Where the system does not combine datagrams (GRO) they are
    /// truncated, and count as unauthenticated.
    pub oversized: u64,
    /// Packets that fail authentication: forged, or damaged on the path.
    pub unauthenticated: u64,
    /// Packets that were decrypted before, or are too old to tell: replayed, or duplicated by the network.
    pub replayed: u64,
    /// Datagrams that belong neither to QUIC nor to an expected train of their sender, or repeat a packet of
    /// a train: late, stray or forged.
    pub stray: u64,
}

/// Counters shared by the places that reject packets.
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

/// Handle for the counters of a port that is being served.
#[derive(Clone, Debug)]
pub struct RejectionMonitor(pub(super) Arc<RejectionCounters>);

impl RejectionMonitor {
    /// Returns the counters so far.
    #[must_use]
    pub fn so_far(&self) -> Rejected {
        self.0.count()
    }
}

/// Generator of connection IDs, like the stack's own, that counts unknown IDs.
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

    /// Called only for packets of unknown connections.
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
