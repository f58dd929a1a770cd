//! How many operations may wait to be taken, over all connections of a server. Each takes memory, and every client may
//! ask for many: what one of them may have is no bound on what all of them have.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Operations of one connection that may wait whatever the others do.
pub const OWN_WAITING_OPERATIONS: usize = 256;

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

/// What one connection has of it. Gives its places back when dropped.
pub(crate) struct Share {
    room: WaitingRoom,
    taken: u64,
}

impl Share {
    pub(crate) fn of(room: WaitingRoom) -> Self {
        Self { room, taken: 0 }
    }

    /// A place for one more where `waiting` wait already; false when there is none.
    pub(crate) fn admit(&mut self, waiting: usize) -> bool {
        if beyond_own(waiting + 1) <= self.taken {
            return true;
        }
        let more = |taken: u64| (taken < self.room.places).then_some(taken + 1);
        let is_in = self.room.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        self.taken += u64::from(is_in);
        is_in
    }

    /// No more than `waiting` wait now.
    pub(crate) fn shrink(&mut self, waiting: usize) {
        let spare = self.taken.saturating_sub(beyond_own(waiting));
        if spare > 0 {
            self.taken -= spare;
            self.room.taken.fetch_sub(spare, Ordering::Relaxed);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

fn beyond_own(waiting: usize) -> u64 {
    waiting.saturating_sub(OWN_WAITING_OPERATIONS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_has_its_own_places_and_all_share_the_others() {
        let room = WaitingRoom::new(100);
        let mut shares: Vec<Share> = (0..3).map(|_| Share::of(room.clone())).collect();
        let fill = |share: &mut Share| (0..1000).take_while(|&waiting| share.admit(waiting)).count();
        assert_eq!(fill(&mut shares[0]), OWN_WAITING_OPERATIONS + 100);
        assert_eq!(fill(&mut shares[1]), OWN_WAITING_OPERATIONS);
        shares[0].shrink(OWN_WAITING_OPERATIONS + 40);
        assert_eq!((room.taken(), fill(&mut shares[2])), (40, OWN_WAITING_OPERATIONS + 60));
        shares.clear();
        assert_eq!(room.taken(), 0);
    }
}
