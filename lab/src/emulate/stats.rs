//! Counters of the directions of a link.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Counters of both directions of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkStats {
    /// From a to b.
    pub forward: DirectionStats,
    /// From b to a.
    pub backward: DirectionStats,
}

/// Counters of one direction. Packets are those on the link, of at most the MTU; bytes are those of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionStats {
    /// Packets that reached the link.
    pub packets_in: u64,
    /// Bytes of the packets that reached the link.
    pub bytes_in: u64,
    /// Packets dropped because the queue was full.
    pub packets_dropped: u64,
    /// Packets lost after the bottleneck.
    pub packets_lost: u64,
    /// Packets that were delayed, so that later ones overtake them.
    pub packets_late: u64,
    /// Packets that arrived.
    pub packets_out: u64,
    /// Bytes of the packets that arrived.
    pub bytes_out: u64,
    /// Packets that the emulator itself could not handle: no IPv4, no memory, refused by the device. Discard a
    /// measurement in which there are many.
    pub packets_failed: u64,
    /// Packets delivered more than 1 ms after their time, because the machine was busy. Discard a
    /// measurement in which there are many.
    pub packets_delayed: u64,
    /// Largest size of the queue, bytes.
    pub most_queued_bytes: u64,
}

/// Counters that one thread increments and others read.
#[derive(Debug, Default)]
pub(super) struct Live {
    pub(super) packets_in: AtomicU64,
    pub(super) bytes_in: AtomicU64,
    pub(super) packets_dropped: AtomicU64,
    pub(super) packets_lost: AtomicU64,
    pub(super) packets_late: AtomicU64,
    pub(super) packets_out: AtomicU64,
    pub(super) bytes_out: AtomicU64,
    pub(super) packets_failed: AtomicU64,
    pub(super) packets_delayed: AtomicU64,
    pub(super) most_queued_bytes: AtomicU64,
}

/// Adds to a counter; they are independent of each other.
pub(super) fn add(counter: &AtomicU64, n: usize) {
    counter.fetch_add(n as u64, Ordering::Relaxed);
}

impl Live {
    pub(super) fn read(&self) -> DirectionStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DirectionStats {
            packets_in: read(&self.packets_in),
            bytes_in: read(&self.bytes_in),
            packets_dropped: read(&self.packets_dropped),
            packets_lost: read(&self.packets_lost),
            packets_late: read(&self.packets_late),
            packets_out: read(&self.packets_out),
            bytes_out: read(&self.bytes_out),
            packets_failed: read(&self.packets_failed),
            packets_delayed: read(&self.packets_delayed),
            most_queued_bytes: read(&self.most_queued_bytes),
        }
    }
}
