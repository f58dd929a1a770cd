//! Limit that several holders share, such as the clients of a server. Waiting requests are admitted fairly between holders
//! first, and by priority within one holder second.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use array::Priority;

/// Limit that refused a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Limit of all holders together.
    All,
    /// Limit of the holder itself.
    Holder,
}

/// Sort key of waiting requests, smaller is sooner: the highest priority, then the longest wait. The ticket is unique.
type Rank = (Reverse<Priority>, u64);

#[derive(Clone, Copy, Debug)]
struct Rules {
    limit: u64,
    most_per_holder: u64,
    /// Amount guaranteed to each holder; `None` for a limiter that is not [`fair`](HolderLimiter::fair).
    own: Option<u64>,
}

impl Rules {
    /// Amount that a holder of `held` may acquire while all holders together have `used`.
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
    /// Holders with permits or waiting requests.
    holders: BTreeMap<H, Holder>,
    /// Holders with waiting requests, by the amount that they hold.
    in_turn: BTreeSet<(u64, H)>,
    /// Amounts granted to waiting requests and not yet polled, by ticket.
    granted: BTreeMap<u64, u64>,
    /// Number of holders examined so far, as a measure of the work.
    #[cfg(test)]
    steps: u64,
}

impl<H: Copy + Ord> State<H> {
    /// Changes a holder. All changes go through this function, which updates the sums and `in_turn`, and removes holders
    /// without permits and waiting requests.
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

    /// Admits waiting requests while there is room; returns the wakers of the admitted ones.
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

    /// Returns the holder that is admitted next, with the amount that it gets. A holder whose first request needs more
    /// than it may acquire is skipped.
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

/// Limit of the sum of all holders' permits, and of the permits of each holder. Clones share the state.
#[derive(Clone, Debug)]
pub struct HolderLimiter<H> {
    rules: Rules,
    state: Arc<Mutex<State<H>>>,
}

impl<H: Copy + Ord> HolderLimiter<H> {
    /// Creates a limiter of the sum, first come, first served.
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

    /// Creates a limiter that shares `limit` as switches share their memory between ports: a holder may hold as much as
    /// remains free afterwards. `own` is guaranteed to each holder whatever the others hold, so the sum may exceed the limit
    /// by `own` for each holder.
    #[must_use]
    pub fn fair(limit: u64, own: u64) -> Self {
        let limiter = Self::new(limit);
        Self { rules: Rules { own: Some(own), ..limiter.rules }, ..limiter }
    }

    /// Limits each holder to `most`.
    #[must_use]
    pub fn with_most_per_holder(self, most: u64) -> Self {
        Self { rules: Rules { most_per_holder: most, ..self.rules }, ..self }
    }

    /// Limit of all holders together.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.rules.limit
    }

    /// Amount guaranteed to each holder; 0 unless the limiter is [`fair`](Self::fair).
    #[must_use]
    pub fn own(&self) -> u64 {
        self.rules.own.unwrap_or_default()
    }

    /// Sum of all permits.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.lock().used
    }

    /// Creates a permit for `amount` at once, ahead of waiting requests.
    ///
    /// # Errors
    /// The limit that the permit would exceed.
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

    /// Creates a permit that waits until at least `least` is available, and then gets as much as is available, at most
    /// `most`. See [`HolderPermit::poll_admitted`].
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

    /// Makes a change that may create room, admits waiting requests, and wakes them.
    fn change<T>(&self, f: impl FnOnce(&mut State<H>) -> T) -> T {
        let mut state = self.lock();
        let out = f(&mut state);
        let woken = state.admit_all(&self.rules);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        out
    }
}

/// Permit of a holder, or its waiting request. Dropping it releases the amount, or withdraws the request.
#[derive(Debug)]
pub struct HolderPermit<H: Copy + Ord> {
    limiter: HolderLimiter<H>,
    holder: H,
    amount: u64,
    /// Position in the queue, until the admission was polled.
    rank: Option<Rank>,
}

impl<H: Copy + Ord> HolderPermit<H> {
    /// Changes the priority of a waiting request.
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

    /// Waits until the request is admitted; returns the amount of the permit. Only the task that polled last is woken.
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
