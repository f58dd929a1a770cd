//! How many operations may wait to be taken, over all connections of a server. Each takes memory, and every client may
//! ask for many: what one of them may have is no bound on what all of them have.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Operations of one connection that may wait whatever the others do.
pub const OWN_WAITING_OPERATIONS: usize = 256;

/// Parameters that take a place as an operation does, bytes: a few bytes on their way can stand for many.
const PLACE_BYTES: usize = 1024;

/// A number of places for operations that wait, shared by connections. Clones are the same places.
#[derive(Clone, Debug)]
pub struct WaitingRoom {
    places: u64,
    taken: Arc<AtomicU64>,
}

impl WaitingRoom {
    /// With so many places, besides [`OWN_WAITING_OPERATIONS`] for each connection.
    #[must_use]
    pub fn new(places: u64) -> Self {
        Self { places, taken: Arc::default() }
    }

    /// Places taken now.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

/// Places that one connection has taken of a waiting room. Given back when dropped.
pub(crate) struct Share {
    room: WaitingRoom,
    taken: u64,
}

impl Share {
    pub(crate) fn of(room: WaitingRoom) -> Self {
        Self { room, taken: 0 }
    }

    /// Places for all of `waiting`, one more operation among them; false when there are too few.
    pub(crate) fn admit(&mut self, waiting: Load) -> bool {
        let lacking = waiting.beyond_own().saturating_sub(self.taken);
        if lacking == 0 {
            return true;
        }
        let places = self.room.places;
        let more = |taken: u64| taken.checked_add(lacking).filter(|&all| all <= places);
        let is_in = self.room.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        self.taken += if is_in { lacking } else { 0 };
        is_in
    }

    /// No more than `waiting` wait now.
    pub(crate) fn shrink(&mut self, waiting: Load) {
        let spare = self.taken.saturating_sub(waiting.beyond_own());
        if spare > 0 {
            self.taken -= spare;
            self.room.taken.fetch_sub(spare, Ordering::Relaxed);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(Load::default());
    }
}

/// Amount that waits of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    pub(crate) operations: usize,
    pub(crate) parameter_bytes: usize,
}

impl Load {
    fn beyond_own(self) -> u64 {
        let places = self.operations + self.parameter_bytes / PLACE_BYTES;
        places.saturating_sub(OWN_WAITING_OPERATIONS) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_has_its_own_places_and_all_share_the_others() {
        let room = WaitingRoom::new(100);
        let mut shares: Vec<Share> = (0..3).map(|_| Share::of(room.clone())).collect();
        let small = |operations| Load { operations, parameter_bytes: 0 };
        let fill = |share: &mut Share| (1..1000).take_while(|&waiting| share.admit(small(waiting))).count();
        assert_eq!(fill(&mut shares[0]), OWN_WAITING_OPERATIONS + 100);
        assert_eq!(fill(&mut shares[1]), OWN_WAITING_OPERATIONS);
        shares[0].shrink(small(OWN_WAITING_OPERATIONS + 40));
        assert_eq!((room.taken(), fill(&mut shares[2])), (40, OWN_WAITING_OPERATIONS + 60));
        shares.clear();
        assert_eq!(room.taken(), 0);
    }
    #[test]
    fn large_parameters_take_as_many_places_as_they_are_large() {
        let room = WaitingRoom::new(100);
        let mut share = Share::of(room.clone());
        let with = |parameter_bytes| Load { operations: 1, parameter_bytes };
        assert!(share.admit(with(PLACE_BYTES * OWN_WAITING_OPERATIONS - 1)));
        assert_eq!(room.taken(), 0, "these are its own");
        assert!(share.admit(with(PLACE_BYTES * (OWN_WAITING_OPERATIONS + 99))));
        assert_eq!(room.taken(), 100);
        assert!(!share.admit(with(PLACE_BYTES * (OWN_WAITING_OPERATIONS + 100))));
        assert_eq!(room.taken(), 100, "who is refused takes none");
    }
}
