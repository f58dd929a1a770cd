//! Admission control: limits on the use of a scarce resource, such as memory, connections or running operations.
//!
//! A limiter counts the use. A permit is one user's part of it, which is released when the permit is dropped. There are
//! two limiters:
//!
//! | limiter | counts | at the limit |
//! |---|---|---|
//! | [`Limiter`] | the sum | refuses; the caller fails, waits elsewhere, or does without |
//! | [`HolderLimiter`](crate::HolderLimiter) | the sum, and the part of each holder | refuses, or queues: the holder with the smallest part is admitted first |
//!
//! Amounts that are granted to every user in addition to the limit need no permit; only use beyond them is counted.
//! Neither limiter fits a limit at which a new user evicts an old one, such as that of unauthenticated connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Limit of a sum, first come, first served. Clones share the sum. Operations are lock-free and take a few nanoseconds.
#[derive(Clone, Debug)]
pub struct Limiter {
    limit: u64,
    used: Arc<AtomicU64>,
}

impl Limiter {
    /// Creates a limiter of which nothing is used.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { limit, used: Arc::default() }
    }

    /// Sum of all permits.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Creates an empty permit.
    #[must_use]
    pub fn permit(&self) -> Permit {
        Permit { limiter: self.clone(), amount: 0 }
    }

    /// Creates a permit for `amount`; `None` when the sum would exceed the limit.
    #[must_use]
    pub fn try_acquire(&self, amount: u64) -> Option<Permit> {
        let mut permit = self.permit();
        permit.try_grow_to(amount).then_some(permit)
    }
}

/// Part of a [`Limiter`]'s sum, released when dropped.
#[derive(Debug)]
pub struct Permit {
    limiter: Limiter,
    amount: u64,
}

impl Permit {
    /// Grows the permit to `amount`; a larger permit stays as it is. Returns false, with nothing changed, when the sum would
    /// exceed the limit.
    #[must_use]
    pub fn try_grow_to(&mut self, amount: u64) -> bool {
        let more = amount.saturating_sub(self.amount);
        if more == 0 {
            return true;
        }
        let Limiter { limit, ref used } = self.limiter;
        let grown = |used: u64| used.checked_add(more).filter(|&used| used <= limit);
        if used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_err() {
            return false;
        }
        self.amount = amount;
        true
    }

    /// Grows the permit to `amount`, even beyond the limit, for use that can be neither refused nor delayed.
    pub fn grow_to(&mut self, amount: u64) {
        let more = amount.saturating_sub(self.amount);
        self.limiter.used.fetch_add(more, Ordering::Relaxed);
        self.amount += more;
    }

    /// Releases the part of the permit beyond `amount`.
    pub fn shrink_to(&mut self, amount: u64) {
        let spare = self.amount.saturating_sub(amount);
        if spare > 0 {
            self.limiter.used.fetch_sub(spare, Ordering::Relaxed);
            self.amount -= spare;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_free_is_for_whoever_comes_first_and_is_given_back() {
        let limiter = Limiter::new(10);
        let mut first = limiter.try_acquire(4).unwrap();
        let mut second = limiter.try_acquire(6).unwrap();
        assert!(limiter.try_acquire(1).is_none());
        assert!(limiter.try_acquire(0).is_some() && second.try_grow_to(3));
        second.shrink_to(5);
        assert_eq!((first.try_grow_to(6), limiter.used()), (false, 9), "it keeps what it had");
        first.grow_to(20);
        assert_eq!((first.try_grow_to(5), limiter.used()), (true, 25));
        drop((first, second));
        assert_eq!(limiter.used(), 0);
    }

    proptest! {
        /// Each step is a permit and its new amount.
        #[test]
        fn the_sum_stays_within_the_limit(steps in vec((0..5_usize, 0..20_u64), 0..100)) {
            let limiter = Limiter::new(20);
            let mut permits: Vec<Permit> = (0..5).map(|_| limiter.permit()).collect();
            let mut amounts = [0; 5];
            for (which, amount) in steps {
                let others = amounts.iter().sum::<u64>() - amounts[which];
                let fits = amount <= amounts[which] || others + amount <= 20;
                prop_assert_eq!(permits[which].try_grow_to(amount), fits);
                permits[which].shrink_to(amount);
                amounts[which] = if fits { amount } else { amounts[which].min(amount) };
                prop_assert_eq!(limiter.used(), amounts.iter().sum::<u64>());
            }
            drop(permits);
            prop_assert_eq!(limiter.used(), 0);
        }
    }
}
