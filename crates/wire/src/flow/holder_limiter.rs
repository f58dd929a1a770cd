//! Limit that holders share, such as the clients of a server: among those that wait it is fair between holders first, and
//! by priority within one holder second.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use array::Priority;

use crate::flow::admission::Full;

/// Smaller is sooner: the highest priority, then the longest wait. The ticket is unique.
type Rank = (Reverse<Priority>, u64);

#[derive(Clone, Copy, Debug)]
struct Rules {
    limit: u64,
    most_per_holder: u64,
    /// Amount that each holder may have whatever the others have, if they share what is free.
    own: Option<u64>,
}

impl Rules {
    /// Amount that a holder may still get when it has `held`, and all have `used`.
    fn room(&self, used: u64, held: u64) -> u64 {
        let free = self.limit.saturating_sub(used);
        let room = match self.own {
            Some(own) => (free.saturating_sub(held) / 2).max(own.saturating_sub(held)),
            None => free,
        };
        room.min(self.most_per_holder.saturating_sub(held))
    }
}

#[derive(Debug, Default)]
struct Holder {
    used: u64,
    waiting: BTreeMap<Rank, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    least: u64,
    most: u64,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct State<H> {
    used: u64,
    next_ticket: u64,
    /// Those that have something, or wait.
    holders: BTreeMap<H, Holder>,
    /// Holders that wait, by what they have.
    in_turn: BTreeSet<(u64, H)>,
    /// Amounts that permits were given and have not heard of, by ticket.
    granted: BTreeMap<u64, u64>,
    /// Holders looked at so far: the work of admitting is measured in them.
    #[cfg(test)]
    steps: u64,
}

impl<H: Copy + Ord> State<H> {
    /// The only way to change a holder: keeps the sums and `in_turn` right, and forgets who neither has anything nor waits.
    fn update<T>(&mut self, id: H, f: impl FnOnce(&mut Holder) -> T) -> T {
        let holder = self.holders.entry(id).or_default();
        let before = holder.used;
        self.in_turn.remove(&(before, id));
        let out = f(holder);
        self.used = self.used - before + holder.used;
        if !holder.waiting.is_empty() {
            self.in_turn.insert((holder.used, id));
        } else if holder.used == 0 {
            self.holders.remove(&id);
        }
        out
    }

    /// Admits whoever is next, while there is room; returns whom to wake.
    fn admit_all(&mut self, rules: &Rules) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some((id, amount)) = self.next(rules) {
            let admitted = self.update(id, |holder| {
                holder.used += amount;
                holder.waiting.pop_first()
            });
            if let Some(((_, ticket), waiting)) = admitted {
                self.granted.insert(ticket, amount);
                woken.extend(waiting.waker);
            }
        }
        woken
    }

    /// Returns the holder that is admitted next, and how much it gets. A holder whose next permit needs more than it may
    /// get lets others pass.
    fn next(&mut self, rules: &Rules) -> Option<(H, u64)> {
        for &(held, id) in &self.in_turn {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            let (_, waiting) = self.holders.get(&id)?.waiting.first_key_value()?;
            let room = rules.room(self.used, held);
            if waiting.least <= room {
                return Some((id, waiting.most.min(room)));
            }
        }
        None
    }
}

/// Limit of what holders have together and of what each of them has. Clones are the same limit.
#[derive(Clone, Debug)]
pub struct HolderLimiter<H> {
    rules: Rules,
    state: Arc<Mutex<State<H>>>,
}

impl<H: Copy + Ord> HolderLimiter<H> {
    /// At most `limit` in all, for whoever comes first.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        let state = State {
            used: 0,
            next_ticket: 0,
            holders: BTreeMap::new(),
            in_turn: BTreeSet::new(),
            granted: BTreeMap::new(),
            #[cfg(test)]
            steps: 0,
        };
        let rules = Rules { limit, most_per_holder: u64::MAX, own: None };
        Self { rules, state: Arc::new(Mutex::new(state)) }
    }

    /// Shares `limit` as switches share their memory between ports: a holder may have as much as remains free
    /// afterwards. It may have `own` whatever the others have, so the limit can be exceeded by that for each holder.
    #[must_use]
    pub fn fair(limit: u64, own: u64) -> Self {
        let limiter = Self::new(limit);
        Self { rules: Rules { own: Some(own), ..limiter.rules }, ..limiter }
    }

    /// Gives each holder `most` at most.
    #[must_use]
    pub fn with_most_per_holder(self, most: u64) -> Self {
        Self { rules: Rules { most_per_holder: most, ..self.rules }, ..self }
    }

    /// Limit of all holders together.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.rules.limit
    }

    /// Amount that every holder may have whatever the others have.
    #[must_use]
    pub fn own(&self) -> u64 {
        self.rules.own.unwrap_or_default()
    }

    /// Amount that all holders have.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.lock().used
    }

    /// A permit for `amount`, now; it passes those that wait.
    ///
    /// # Errors
    /// The limit that was reached.
    pub fn try_acquire(&self, holder: H, amount: u64) -> Result<HolderPermit<H>, Full> {
        let mut state = self.lock();
        let held = state.holders.get(&holder).map_or(0, |holder| holder.used);
        if amount > self.rules.room(state.used, held) {
            let is_own_limit = held.saturating_add(amount) > self.rules.most_per_holder;
            return Err(if is_own_limit { Full::Holder } else { Full::All });
        }
        state.update(holder, |holder| holder.used += amount);
        Ok(HolderPermit { limiter: self.clone(), holder, amount, rank: None })
    }

    /// A permit that waits for `most`, or for as much of it as there is when that is at least `least`. See
    /// [`HolderPermit::poll_admitted`].
    #[must_use]
    pub fn enqueue(&self, holder: H, priority: Priority, least: u64, most: u64) -> HolderPermit<H> {
        let rank = self.change(|state| {
            let rank = (Reverse(priority), state.next_ticket);
            state.next_ticket += 1;
            state.update(holder, |holder| holder.waiting.insert(rank, Waiting { least, most, waker: None }));
            rank
        });
        HolderPermit { limiter: self.clone(), holder, amount: 0, rank: Some(rank) }
    }

    fn lock(&self) -> MutexGuard<'_, State<H>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change after which somebody who waits may be admitted.
    fn change<T>(&self, f: impl FnOnce(&mut State<H>) -> T) -> T {
        let mut state = self.lock();
        let out = f(&mut state);
        let woken = state.admit_all(&self.rules);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        out
    }
}

/// Amount that a holder has, or waits for. Dropping it gives the amount back, or leaves the queue.
#[derive(Debug)]
pub struct HolderPermit<H: Copy + Ord> {
    limiter: HolderLimiter<H>,
    holder: H,
    amount: u64,
    /// While it waits, or has not heard that it was admitted.
    rank: Option<Rank>,
}

impl<H: Copy + Ord> HolderPermit<H> {
    /// Moves it to another priority, if it waits.
    pub fn adjust(&mut self, priority: Priority) {
        let Some(before) = self.rank else { return };
        let rank = (Reverse(priority), before.1);
        self.rank = Some(rank);
        self.limiter.change(|state| {
            state.update(self.holder, |holder| {
                if let Some(waiting) = holder.waiting.remove(&before) {
                    holder.waiting.insert(rank, waiting);
                }
            });
        });
    }

    /// Waits until it is admitted; returns what it has. One task waits at a time.
    pub fn poll_admitted(&mut self, cx: &Context<'_>) -> Poll<u64> {
        if let Some(rank) = self.rank {
            let mut state = self.limiter.lock();
            let holder = state.holders.get_mut(&self.holder);
            if let Some(waiting) = holder.and_then(|holder| holder.waiting.get_mut(&rank)) {
                waiting.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            self.amount = state.granted.remove(&rank.1).unwrap_or_default();
            self.rank = None;
        }
        Poll::Ready(self.amount)
    }
}

impl<H: Copy + Ord> Drop for HolderPermit<H> {
    fn drop(&mut self) {
        self.limiter.change(|state| {
            let granted = self.rank.and_then(|(_, ticket)| state.granted.remove(&ticket));
            state.update(self.holder, |holder| {
                self.rank.and_then(|rank| holder.waiting.remove(&rank));
                holder.used -= granted.unwrap_or(self.amount);
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn tier(tier: u8) -> Priority {
        Priority { tier, weight: 0.0 }
    }

    fn got<H: Copy + Ord>(permit: &mut HolderPermit<H>) -> Option<u64> {
        match permit.poll_admitted(&Context::from_waker(Waker::noop())) {
            Poll::Ready(amount) => Some(amount),
            Poll::Pending => None,
        }
    }

    #[test]
    fn the_most_urgent_of_a_holder_goes_first_and_may_change_its_mind() {
        let limiter = HolderLimiter::fair(80, 10);
        let full = limiter.enqueue(1, tier(0), 10, 40);
        let (mut low, mut high) = (limiter.enqueue(1, tier(1), 10, 40), limiter.enqueue(1, tier(2), 10, 40));
        low.adjust(tier(3));
        drop(full);
        assert_eq!((got(&mut low), got(&mut high)), (Some(40), None));
        drop(low);
        assert_eq!(got(&mut high), Some(40));
    }

    #[test]
    fn a_holder_that_has_less_goes_before_an_urgent_one_that_has_more() {
        let limiter = HolderLimiter::fair(80, 10);
        let mut holding: Vec<_> = (0..3).map(|n| limiter.enqueue(n, tier(4), 1, 80)).collect();
        let sizes: Vec<_> = holding.iter_mut().filter_map(got).collect();
        assert_eq!(sizes, [40, 20, 10], "each gets half of what is free");
        let mut greedy = limiter.enqueue(2, tier(4), 10, 10);
        let mut modest = limiter.enqueue(5, tier(0), 10, 10);
        assert_eq!((got(&mut greedy), got(&mut modest)), (None, Some(10)), "its own is there at once");
        drop(holding.remove(0));
        assert_eq!(got(&mut greedy), Some(10));
    }

    #[test]
    fn who_gives_up_leaves_no_trace() {
        let limiter = HolderLimiter::fair(80, 10);
        let first = limiter.enqueue(1, tier(2), 10, 10);
        drop((limiter.enqueue(2, tier(2), 3, 3), limiter.enqueue(1, tier(2), 60, 60)));
        drop(first);
        let state = limiter.lock();
        assert_eq!((state.used, state.holders.len(), state.in_turn.len(), state.granted.len()), (0, 0, 0, 0));
    }

    #[test]
    fn ten_thousand_that_leave_at_once_cost_a_few_steps_each() {
        const MANY: u64 = 10_000;
        for forwards in [true, false] {
            let limiter = HolderLimiter::fair(80, 10);
            let _full = limiter.enqueue(1, tier(2), 40, 40);
            let mut waiting: Vec<_> = (0..MANY).map(|n| limiter.enqueue(n % 4, tier(2), 10, 10)).collect();
            if !forwards {
                waiting.reverse();
            }
            waiting.into_iter().for_each(drop);
            let steps = limiter.lock().steps;
            assert!(steps <= 12 * MANY, "found {steps} steps");
        }
    }

    proptest! {
        /// Each step is a holder, a tier, an amount, and the place of a permit that is given back where it is in use.
        #[test]
        fn nothing_is_given_beyond_the_limits_and_everything_comes_back(
            own in proptest::option::of(0..6_u64),
            steps in vec((0..4_u8, 0..3_u8, 1..12_u64, 0..30_usize, any::<bool>()), 0..200),
        ) {
            const LIMIT: u64 = 20;
            const MOST: u64 = 15;
            let limiter = own.map_or_else(|| HolderLimiter::new(LIMIT), |own| HolderLimiter::fair(LIMIT, own));
            let limiter = limiter.with_most_per_holder(MOST);
            let mut permits: Vec<HolderPermit<u8>> = Vec::new();
            for (holder, asked_tier, amount, place, waits) in steps {
                let (before, held) = {
                    let state = limiter.lock();
                    (state.used, state.holders.get(&holder).map_or(0, |holder| holder.used))
                };
                if place < permits.len() {
                    drop(permits.swap_remove(place));
                } else if waits {
                    permits.push(limiter.enqueue(holder, tier(asked_tier), 1, amount));
                } else if let Ok(permit) = limiter.try_acquire(holder, amount) {
                    permits.push(permit);
                } else {
                    let has_own = held + amount <= own.unwrap_or(0).min(MOST);
                    let is_free = own.is_none() && held + amount <= MOST && before + amount <= LIMIT;
                    prop_assert!(!has_own && !is_free, "there was room");
                }
                let state = limiter.lock();
                let most = LIMIT + 4 * own.unwrap_or(0);
                prop_assert!(state.used <= most && state.holders.values().all(|holder| holder.used <= MOST));
                prop_assert_eq!(state.used, state.holders.values().map(|holder| holder.used).sum::<u64>());
                for holder in state.holders.values() {
                    let first = holder.waiting.first_key_value();
                    let has_room = first.is_some_and(|(_, waiting)| {
                        waiting.least <= limiter.rules.room(state.used, holder.used)
                    });
                    prop_assert!(!has_room, "nobody waits who could be admitted");
                }
            }
            let held: u64 = permits.iter_mut().filter_map(got).sum();
            prop_assert_eq!(limiter.used(), held);
            drop(permits);
            let state = limiter.lock();
            prop_assert_eq!((state.used, state.holders.len(), state.granted.len()), (0, 0, 0));
        }

        #[test]
        fn of_one_holder_the_most_urgent_is_next_then_the_oldest(tiers in vec(0..4_u8, 1..40)) {
            let limiter = HolderLimiter::new(1);
            let mut now = limiter.enqueue((), tier(0), 1, 1);
            let waiting = tiers.iter().map(|&t| limiter.enqueue((), tier(t), 1, 1));
            let mut waiting: Vec<Option<HolderPermit<()>>> = waiting.map(Some).collect();
            let mut expected: Vec<usize> = (0..tiers.len()).collect();
            expected.sort_by_key(|&at| Reverse(tiers[at]));
            for next in expected {
                drop(now);
                let admitted: Vec<usize> = (0..waiting.len())
                    .filter(|&at| waiting[at].as_mut().and_then(got).is_some())
                    .collect();
                prop_assert_eq!(&admitted, &[next]);
                now = waiting[next].take().unwrap();
            }
        }
    }
}
