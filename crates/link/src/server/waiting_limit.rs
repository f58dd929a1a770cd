//! How many operations may wait to be taken, over all connections of a server. Each takes memory, and every client may
//! ask for many: what one of them may have is no bound on what all of them have.

use wire::{Limiter, Permit};

/// Operations of one connection that may wait whatever the others do.
pub const OWN_WAITING_OPERATIONS: usize = 256;

/// Parameters that take a place as an operation does, bytes: a few bytes on their way can stand for many.
const PLACE_BYTES: usize = 1024;

/// Places for operations that wait, shared by connections. Clones are the same places.
#[derive(Clone, Debug)]
pub struct WaitingLimit(Limiter);

impl WaitingLimit {
    /// With so many places, besides [`OWN_WAITING_OPERATIONS`] for each connection.
    #[must_use]
    pub fn new(places: u64) -> Self {
        Self(Limiter::new(places))
    }

    /// Places used now.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.0.used()
    }

    /// For one connection, of which nothing waits yet.
    pub(crate) fn permit(&self) -> WaitingPermit {
        WaitingPermit(self.0.permit())
    }
}

/// Places that one connection uses beyond its own. Given back when dropped.
pub(crate) struct WaitingPermit(Permit);

impl WaitingPermit {
    /// Places for all of `waiting`, one more operation among them; false when there are too few.
    pub(crate) fn admit(&mut self, waiting: Load) -> bool {
        self.0.try_grow_to(waiting.beyond_own(), 0).is_ok()
    }

    /// No more than `waiting` wait now.
    pub(crate) fn shrink(&mut self, waiting: Load) {
        self.0.shrink_to(waiting.beyond_own());
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
