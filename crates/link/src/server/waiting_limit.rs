//! Limit of the operations that wait to be taken, over all connections of a server. Waiting operations take memory, and a
//! limit for each connection does not bound their sum.

use wire::{Limiter, Permit};

/// Waiting operations of each connection in addition to the shared limit.
pub const OWN_WAITING_OPERATIONS: usize = 256;

/// Size of parameters that takes one more place, bytes: a batch of a few bytes may expand to large parameters.
const PLACE_BYTES: usize = 1024;

/// Places for waiting operations that connections share. Clones share the state.
#[derive(Clone, Debug)]
pub struct WaitingLimit(Limiter);

impl WaitingLimit {
    /// Creates a limit of this many places, in addition to [`OWN_WAITING_OPERATIONS`] of each connection.
    #[must_use]
    pub fn new(places: u64) -> Self {
        Self(Limiter::new(places))
    }

    /// Number of shared places in use.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.0.used()
    }

    /// Creates the permit of one connection, without waiting operations.
    pub(crate) fn permit(&self) -> WaitingPermit {
        WaitingPermit(self.0.permit())
    }
}

/// Shared places that one connection uses, released when dropped.
pub(crate) struct WaitingPermit(Permit);

impl WaitingPermit {
    /// Reserves places for all of `waiting`, which includes a new operation; false when there are too few.
    pub(crate) fn admit(&mut self, waiting: Load) -> bool {
        self.0.try_grow_to(waiting.beyond_own())
    }

    /// Releases the places that `waiting` does not need.
    pub(crate) fn shrink(&mut self, waiting: Load) {
        self.0.shrink_to(waiting.beyond_own());
    }
}

/// Waiting operations of one connection.
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
        let limit = WaitingLimit::new(100);
        let mut permits: Vec<WaitingPermit> = (0..3).map(|_| limit.permit()).collect();
        let small = |operations| Load { operations, parameter_bytes: 0 };
        let fill = |permit: &mut WaitingPermit| {
            (1..1000).take_while(|&waiting| permit.admit(small(waiting))).count()
        };
        assert_eq!(fill(&mut permits[0]), OWN_WAITING_OPERATIONS + 100);
        assert_eq!(fill(&mut permits[1]), OWN_WAITING_OPERATIONS);
        permits[0].shrink(small(OWN_WAITING_OPERATIONS + 40));
        assert_eq!((limit.used(), fill(&mut permits[2])), (40, OWN_WAITING_OPERATIONS + 60));
        permits.clear();
        assert_eq!(limit.used(), 0);
    }
    #[test]
    fn large_parameters_take_as_many_places_as_they_are_large() {
        let limit = WaitingLimit::new(100);
        let mut permit = limit.permit();
        let with = |parameter_bytes| Load { operations: 1, parameter_bytes };
        assert!(permit.admit(with(PLACE_BYTES * OWN_WAITING_OPERATIONS - 1)));
        assert_eq!(limit.used(), 0, "these are its own");
        assert!(permit.admit(with(PLACE_BYTES * (OWN_WAITING_OPERATIONS + 99))));
        assert_eq!(limit.used(), 100);
        assert!(!permit.admit(with(PLACE_BYTES * (OWN_WAITING_OPERATIONS + 100))));
        assert_eq!(limit.used(), 100, "who is refused takes none");
    }
}
