//! Admission control: how much of something scarce (memory, connections, operations under way) may be had at a time.
//!
//! A limiter counts what all have together. A permit is a part of it, and gives it back when dropped. There are two:
//!
//! | limiter | counts | where there is too little |
//! |---|---|---|
//! | [`Limiter`] | one sum, with more room for higher tiers | refuses; whoever asked waits elsewhere, fails, or helps itself |
//! | [`HolderLimiter`](crate::HolderLimiter) | each holder's part, too | refuses, or waits: the holder with least goes first |
//!
//! An amount that everybody has in any case, beside the limit, needs no permit: only what is beyond it is counted.
//! Neither is for a limit at which a newcomer takes the place of somebody else, such as that of visitors of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Limit of all together.
    All,
    /// Limit of the holder.
    Holder,
}

/// Limit of a sum. Clones are the same limit. It takes a few nanoseconds, without a lock.
#[derive(Clone, Debug)]
pub struct Limiter {
    limit: u64,
    more_per_tier: u64,
    used: Arc<AtomicU64>,
}

impl Limiter {
    /// At most `limit` in all, for whoever comes first.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { limit, more_per_tier: 0, used: Arc::default() }
    }

    /// Raises the limit by `more` for each tier above the lowest.
    #[must_use]
    pub fn with_more_per_tier(self, more: u64) -> Self {
        Self { more_per_tier: more, ..self }
    }

    /// Sum of all permits.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Lowest tier whose limit is not reached.
    #[must_use]
    pub fn least_tier(&self) -> u8 {
        let Some(beyond) = self.used().checked_sub(self.limit) else { return 0 };
        let full_tiers = beyond.checked_div(self.more_per_tier).unwrap_or(u64::MAX);
        u8::try_from(full_tiers.saturating_add(1)).unwrap_or(u8::MAX)
    }

    /// A permit for nothing yet.
    #[must_use]
    pub fn permit(&self) -> Permit {
        Permit { limiter: self.clone(), amount: 0 }
    }

    /// A permit for `amount`.
    ///
    /// # Errors
    /// As [`Permit::try_grow_to`].
    pub fn try_acquire(&self, amount: u64, tier: u8) -> Result<Permit, Full> {
        let mut permit = self.permit();
        permit.try_grow_to(amount, tier)?;
        Ok(permit)
    }
}

/// Amount that somebody has. Given back when dropped.
#[derive(Debug)]
pub struct Permit {
    limiter: Limiter,
    amount: u64,
}

impl Permit {
    /// Gets more until it has `amount`; less is left as it is.
    ///
    /// # Errors
    /// `Full` when the tier's limit would be exceeded; then it has what it had.
    pub fn try_grow_to(&mut self, amount: u64, tier: u8) -> Result<(), Full> {
        let more = amount.saturating_sub(self.amount);
        if more == 0 {
            return Ok(());
        }
        let Limiter { limit, more_per_tier, ref used } = self.limiter;
        let limit = limit.saturating_add(more_per_tier.saturating_mul(tier.into()));
        let grown = |used: u64| used.checked_add(more).filter(|&used| used <= limit);
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).map_err(|_| Full::All)?;
        self.amount = amount;
        Ok(())
    }

    /// Gets more until it has `amount`, even beyond the limit: for what can be neither refused nor made to wait.
    pub fn grow_to(&mut self, amount: u64) {
        let more = amount.saturating_sub(self.amount);
        self.limiter.used.fetch_add(more, Ordering::Relaxed);
        self.amount += more;
    }

    /// Gives back what it has beyond `amount`.
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
        let mut first = limiter.try_acquire(4, 0).unwrap();
        let mut second = limiter.try_acquire(6, 0).unwrap();
        assert_eq!(limiter.try_acquire(1, 0).unwrap_err(), Full::All);
        assert!(limiter.try_acquire(0, 0).is_ok() && second.try_grow_to(3, 0).is_ok());
        second.shrink_to(5);
        assert_eq!((first.try_grow_to(6, 0), limiter.used()), (Err(Full::All), 9), "it keeps what it had");
        first.grow_to(20);
        assert_eq!((first.try_grow_to(5, 0), limiter.used()), (Ok(()), 25));
        drop((first, second));
        assert_eq!(limiter.used(), 0);
    }

    #[test]
    fn higher_tiers_have_more_room() {
        let limiter = Limiter::new(8).with_more_per_tier(2);
        let mut permit = limiter.permit();
        for (used, least) in [(7, 0), (8, 1), (9, 1), (10, 2), (11, 2), (12, 3)] {
            permit.try_grow_to(used, limiter.least_tier()).unwrap();
            assert_eq!(limiter.least_tier(), least, "{used} are used");
            assert!(least == 0 || limiter.try_acquire(1, least - 1).is_err());
        }
        let same_for_all = Limiter::new(1);
        let _all = same_for_all.try_acquire(1, 0).unwrap();
        assert_eq!(same_for_all.least_tier(), u8::MAX);
    }

    proptest! {
        /// Each step is a permit, the amount that it is to have, and a tier.
        #[test]
        fn the_sum_stays_within_the_limit_of_the_tier(steps in vec((0..5_usize, 0..20_u64, 0..3_u8), 0..100)) {
            let limiter = Limiter::new(20).with_more_per_tier(5);
            let mut permits: Vec<Permit> = (0..5).map(|_| limiter.permit()).collect();
            let mut amounts = [0; 5];
            for (which, amount, tier) in steps {
                let others = amounts.iter().sum::<u64>() - amounts[which];
                let fits = amount <= amounts[which] || others + amount <= 20 + 5 * u64::from(tier);
                prop_assert_eq!(permits[which].try_grow_to(amount, tier).is_ok(), fits);
                permits[which].shrink_to(amount);
                amounts[which] = if fits { amount } else { amounts[which].min(amount) };
                prop_assert_eq!(limiter.used(), amounts.iter().sum::<u64>());
            }
            drop(permits);
            prop_assert_eq!(limiter.used(), 0);
        }
    }
}
