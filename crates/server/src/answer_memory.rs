//! Memory for answers, which clients share: granted to them fairly first, by priority within one client second.
//!
//! An operation reserves the bytes it is about to prepare. They stay counted until they left for the peer
//! ([`MemoryReservation::hold`]) or were given up. How much a client may hold follows what is free
//! ([`HolderLimiter::fair`]). A lone client gets half; N that take nothing leave one part in N + 1 free; and each may
//! hold [`OWN_BYTES`] whatever the others do. So who takes nothing stalls only itself. Among those who wait, the client
//! that holds least goes first, with its most urgent operation.

use std::future::poll_fn;
use std::sync::Arc;

use array::Urgency;
use bytes::Bytes;
use wire::{HolderLimiter, HolderPermit};

/// Bytes that every client may hold whatever the others hold: one block of the largest size that we choose. The
/// capacity can be exceeded by this for each client that is let in, and by no more.
pub const OWN_BYTES: u64 = array::MAX_BLOCK_BYTES;
/// Nobody has to be given more at once than one of this many shares, or giants could wait for ever.
const SHARES: u64 = 8;

/// Names a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// Number of bytes for answers at a time. Clones share it.
#[derive(Clone)]
pub struct AnswerMemory(HolderLimiter<ClientId>);

impl AnswerMemory {
    /// Memory for `capacity_bytes` at a time.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        Self(HolderLimiter::fair(capacity_bytes, OWN_BYTES.min(capacity_bytes / SHARES)))
    }

    /// All there is, bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.0.limit()
    }

    /// Memory that a client that holds nothing gets without waiting for others, bytes.
    #[must_use]
    pub fn own_bytes(&self) -> u64 {
        self.0.own()
    }

    /// Asks for `most_bytes`, or as much of it as there is when that is at least `least_bytes`. More than an eighth of
    /// the capacity need not be given at once, whatever `least_bytes` says.
    #[must_use]
    pub fn reserve(
        &self,
        client: ClientId,
        urgency: Urgency,
        least_bytes: u64,
        most_bytes: u64,
    ) -> MemoryReservation {
        let least_bytes = least_bytes.min(self.capacity_bytes() / SHARES);
        MemoryReservation(self.0.enqueue(client, urgency.priority, least_bytes, most_bytes))
    }
}

/// Waits for memory, then holds it until dropped.
pub struct MemoryReservation(HolderPermit<ClientId>);

impl MemoryReservation {
    /// It matters more or less now.
    pub fn adjust(&mut self, urgency: Urgency) {
        self.0.adjust(urgency.priority);
    }

    /// Waits for the memory; gives the bytes it has got.
    ///
    /// # Cancel safety
    /// Safe: dropping the reservation leaves the queue.
    pub async fn admitted(&mut self) -> u64 {
        poll_fn(|cx| self.0.poll_admitted(cx)).await
    }

    /// Gives `bytes` on; the reservation is held until the last part of them was dropped, which for bytes of an answer
    /// means: sent, or not wanted any more.
    pub fn hold(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Self::hold_part(&Arc::new(self), bytes)
    }

    /// As [`hold`](Self::hold), for one of several parts: the reservation is held until all of them are gone.
    pub fn hold_part(this: &Arc<Self>, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(Held { bytes, _reservation: Arc::clone(this) })
    }
}

struct Held<B> {
    bytes: B,
    _reservation: Arc<MemoryReservation>,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Held<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use array::Priority;
    use futures::FutureExt;

    use super::*;

    fn got(reservation: &mut MemoryReservation) -> Option<u64> {
        reservation.admitted().now_or_never()
    }

    fn reserve(memory: &AnswerMemory, client: u64, bytes: u64) -> MemoryReservation {
        memory.reserve(ClientId(client), Urgency::of(Priority::NORMAL), bytes, bytes)
    }

    #[test]
    fn clients_that_take_nothing_stall_only_themselves() {
        let memory = AnswerMemory::new(1 << 30);
        // As many as may be let in, each with more operations than it can be given.
        let idle: Vec<MemoryReservation> =
            (0..256u64 * 40).map(|n| reserve(&memory, n / 40, 1 << 20)).collect();
        let held = memory.0.used();
        assert!(held <= (1 << 30) + 256 * OWN_BYTES, "{held}");
        for client in 1000..1010 {
            assert_eq!(
                got(&mut reserve(&memory, client, 1 << 20)),
                Some(1 << 20),
                "who comes last is served"
            );
        }
        drop(idle);
        let mut whole = memory.reserve(ClientId(9), Urgency::of(Priority::NORMAL), 1 << 20, 1 << 29);
        assert_eq!(got(&mut whole), Some(1 << 29), "and when they left, half is there for one");
    }

    #[test]
    fn a_giant_passes_beside_clients_that_take_nothing_and_does_not_stop_small_ones() {
        let memory = AnswerMemory::new(80);
        let idle: Vec<MemoryReservation> = (0..80).map(|n| reserve(&memory, n % 4, 1)).collect();
        let mut giant = reserve(&memory, 9, u64::MAX);
        assert_eq!(got(&mut giant), Some(10), "it counts as its own share");
        let mut second = reserve(&memory, 9, u64::MAX);
        assert_eq!((got(&mut second), got(&mut reserve(&memory, 10, 1))), (None, Some(1)));
        drop(idle);
        assert!(got(&mut second).is_some());
    }

    #[test]
    fn bytes_stay_counted_until_the_last_of_them_left() {
        let memory = AnswerMemory::new(80);
        let mut reservation = reserve(&memory, 1, 8);
        assert_eq!(got(&mut reservation), Some(8));
        let mut bytes = reservation.hold(vec![7; 8]);
        let part = bytes.split_to(3);
        drop(bytes);
        assert_eq!((&part[..], memory.0.used()), (&[7; 3][..], 8));
        drop(part);
        assert_eq!(memory.0.used(), 0);
    }
}
