//! Memory for answers, which all clients share. It is divided fairly among the clients, and by priority among the
//! operations of one client.
//!
//! An operation reserves the bytes that it is about to prepare. They count as used until they have been sent to the
//! client ([`MemoryReservation::hold`]) or dropped. The limit of one client depends on the free memory
//! ([`HolderLimiter::fair`]): a single client gets half of the memory; N clients that do not read their answers leave
//! one part in N + 1 free; and each client may always hold [`OWN_BYTES`]. So a client that does not read its answers
//! delays only itself. Of the waiting clients, the one that holds least is served first, with its most urgent
//! operation.

use std::future::poll_fn;
use std::sync::Arc;

use array::Urgency;
use bytes::Bytes;
use wire::{HolderLimiter, HolderPermit};

/// Bytes that every client may hold, whatever the others hold: the largest size of a block of ordinary arrays. The
/// capacity can be exceeded by at most this size per admitted client.
pub const OWN_BYTES: u64 = array::MAX_BLOCK_BYTES;
/// Number of parts of the memory of which a reservation waits for at most one; large reservations could otherwise wait
/// without end.
const SHARES: u64 = 8;

/// Id of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// Limit of the bytes of answers in memory at a time. Clones share it.
#[derive(Clone)]
pub struct AnswerMemory(HolderLimiter<ClientId>);

impl AnswerMemory {
    /// Creates a limit of `capacity_bytes`.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        Self(HolderLimiter::fair(capacity_bytes, OWN_BYTES.min(capacity_bytes / SHARES)))
    }

    /// Returns the whole capacity, in bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.0.limit()
    }

    /// Returns the memory that a client without other reservations gets at once, in bytes.
    #[must_use]
    pub fn own_bytes(&self) -> u64 {
        self.0.own()
    }

    /// Requests `most_bytes`, or the available part of them if that is at least `least_bytes`. Does not wait for more
    /// than one eighth of the capacity, even if `least_bytes` is larger.
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

/// Reservation of memory: waiting at first, then held until it is dropped.
pub struct MemoryReservation(HolderPermit<ClientId>);

impl MemoryReservation {
    /// Changes the urgency of a waiting reservation.
    pub fn adjust(&mut self, urgency: Urgency) {
        self.0.adjust(urgency.priority);
    }

    /// Waits for the memory; returns the number of bytes that were granted.
    ///
    /// # Cancel safety
    /// Safe: the request leaves the queue when the reservation is dropped.
    pub async fn admitted(&mut self) -> u64 {
        poll_fn(|cx| self.0.poll_admitted(cx)).await
    }

    /// Returns `bytes` with the reservation, which ends when the last part of them is dropped: bytes of an answer are
    /// dropped when they have been sent, or are not wanted any more.
    pub fn hold(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Self::hold_part(&Arc::new(self), bytes)
    }

    /// Returns one of several parts with the reservation, as [`hold`](Self::hold) does for all bytes. The reservation
    /// ends when all parts are dropped.
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

    fn granted(reservation: &mut MemoryReservation) -> Option<u64> {
        reservation.admitted().now_or_never()
    }

    fn reserve(memory: &AnswerMemory, client: u64, bytes: u64) -> MemoryReservation {
        memory.reserve(ClientId(client), Urgency::of(Priority::NORMAL), bytes, bytes)
    }

    #[test]
    fn clients_that_do_not_read_delay_only_themselves() {
        let memory = AnswerMemory::new(1 << 30);
        // As many clients as are admitted, each with more operations than there is memory for.
        let idle: Vec<MemoryReservation> =
            (0..256u64 * 40).map(|n| reserve(&memory, n / 40, 1 << 20)).collect();
        let held = memory.0.used();
        assert!(held <= (1 << 30) + 256 * OWN_BYTES, "{held}");
        for client in 1000..1010 {
            assert_eq!(
                granted(&mut reserve(&memory, client, 1 << 20)),
                Some(1 << 20),
                "a new client is served"
            );
        }
        drop(idle);
        let mut whole = memory.reserve(ClientId(9), Urgency::of(Priority::NORMAL), 1 << 20, 1 << 29);
        assert_eq!(granted(&mut whole), Some(1 << 29), "a single client gets half of the memory");
    }

    #[test]
    fn a_large_reservation_is_granted_and_does_not_block_small_ones() {
        let memory = AnswerMemory::new(80);
        let idle: Vec<MemoryReservation> = (0..80).map(|n| reserve(&memory, n % 4, 1)).collect();
        let mut large = reserve(&memory, 9, u64::MAX);
        assert_eq!(granted(&mut large), Some(10), "one eighth of the capacity");
        let mut second = reserve(&memory, 9, u64::MAX);
        assert_eq!((granted(&mut second), granted(&mut reserve(&memory, 10, 1))), (None, Some(1)));
        drop(idle);
        assert!(granted(&mut second).is_some());
    }

    #[test]
    fn a_reservation_ends_with_the_last_of_its_bytes() {
        let memory = AnswerMemory::new(80);
        let mut reservation = reserve(&memory, 1, 8);
        assert_eq!(granted(&mut reservation), Some(8));
        let mut bytes = reservation.hold(vec![7; 8]);
        let part = bytes.split_to(3);
        drop(bytes);
        assert_eq!((&part[..], memory.0.used()), (&[7; 3][..], 8));
        drop(part);
        assert_eq!(memory.0.used(), 0);
    }
}
