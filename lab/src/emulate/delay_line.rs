//! Packets in transit: segments in the order of their arrival times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::Duration;

use super::packet::DevicePacket;

/// Segments between the bottleneck and the other side. The callers of `put` bound its size.
#[derive(Debug, Default)]
pub(super) struct DelayLine {
    due: BinaryHeap<Reverse<DueSegment>>,
    slots: Vec<Option<DelayedPacket>>,
    free: Vec<usize>,
    put: u64,
    bytes: usize,
}

/// Segment with its arrival time; segments with equal times keep the order of insertion.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DueSegment {
    at: Duration,
    put: u64,
    slot: usize,
    segment: usize,
}

#[derive(Debug)]
struct DelayedPacket {
    packet: DevicePacket,
    /// Number of its segments that were not delivered yet.
    waiting: usize,
}

impl DelayLine {
    /// Inserts the segments of a packet that arrive, with their times.
    pub(super) fn put(&mut self, packet: DevicePacket, arrivals: &[(usize, Duration)]) {
        if arrivals.is_empty() {
            return;
        }
        self.bytes += packet.size_bytes();
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(DelayedPacket { packet, waiting: arrivals.len() });
        for (segment, at) in arrivals {
            self.put += 1;
            self.due.push(Reverse(DueSegment { at: *at, put: self.put, slot, segment: *segment }));
        }
    }

    /// Returns the arrival time of the next segment.
    pub(super) fn next_at(&self) -> Option<Duration> {
        self.due.peek().map(|Reverse(entry)| entry.at)
    }

    /// Returns the number of bytes of all packets.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Passes the segments that arrive until `now` to `out`, successive ones of a packet together.
    pub(super) fn deliver(
        &mut self,
        now: Duration,
        mut out: impl FnMut(&DevicePacket, Range<usize>, Duration),
    ) {
        while let Some(first) = self.pop(now) {
            let mut end = first.segment + 1;
            while self.continues(&first, end, now) {
                self.due.pop();
                end += 1;
            }
            let Some(slot) = &mut self.slots[first.slot] else { continue };
            out(&slot.packet, first.segment..end, first.at);
            slot.waiting -= end - first.segment;
            if slot.waiting == 0
                && let Some(slot) = self.slots[first.slot].take()
            {
                self.bytes -= slot.packet.size_bytes();
                self.free.push(first.slot);
            }
        }
    }

    fn pop(&mut self, now: Duration) -> Option<DueSegment> {
        if self.next_at()? > now {
            return None;
        }
        self.due.pop().map(|Reverse(entry)| entry)
    }

    /// Returns whether the next segment that is due is `segment` of the same packet.
    fn continues(&self, first: &DueSegment, segment: usize, now: Duration) -> bool {
        self.due
            .peek()
            .is_some_and(|Reverse(next)| next.at <= now && next.slot == first.slot && next.segment == segment)
    }
}
