//! Table of values by operation number.
//!
//! Numbers grow, and most operations end soon after those that were requested before them. So the newest
//! values are in an array, in the order of their numbers, where each is found in one step. Values that remain
//! when most around them have ended are moved to a tree. Whatever numbers a peer chooses, the memory is
//! bounded by a few places for each operation.

use std::collections::{BTreeMap, VecDeque};

use crate::OpId;

/// Largest gap between two neighbors in the array; values before a larger one are moved to the tree.
const MAX_GAP: u64 = 64;
/// Limit of the array: places for each operation in it, plus `LEAST_PLACES`.
const PLACES_PER_ONE: usize = 4;
/// Places in the array that are always allowed.
const LEAST_PLACES: usize = 64;
/// Places that are kept allocated when all operations have ended.
const KEPT_PLACES: usize = 256;

/// Map from operations to values. Adding, finding and removing the newest takes constant time.
#[derive(Debug)]
pub struct OpTable<T> {
    /// Number of the first place of `newest`.
    first: u64,
    newest: VecDeque<Option<T>>,
    /// Number of values in `newest`.
    taken: usize,
    /// Values with numbers below `first`.
    older: BTreeMap<OpId, T>,
}

impl<T> Default for OpTable<T> {
    fn default() -> Self {
        Self { first: 0, newest: VecDeque::new(), taken: 0, older: BTreeMap::new() }
    }
}

impl<T> OpTable<T> {
    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.taken + self.older.len()
    }

    /// True when the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of an operation.
    #[must_use]
    pub fn get(&self, op: OpId) -> Option<&T> {
        match self.place(op) {
            Some(place) => self.newest.get(place)?.as_ref(),
            None => self.older.get(&op),
        }
    }

    /// Returns the value of an operation, mutably.
    pub fn get_mut(&mut self, op: OpId) -> Option<&mut T> {
        match self.place(op) {
            Some(place) => self.newest.get_mut(place)?.as_mut(),
            None => self.older.get_mut(&op),
        }
    }

    /// Adds a value, or replaces an existing one.
    pub fn insert(&mut self, op: OpId, value: T) {
        let number = u64::from(op.0);
        if self.newest.is_empty() {
            self.first = number.max(self.first);
        }
        let Some(place) = self.place(op) else {
            self.older.insert(op, value);
            return;
        };
        let end = self.first + self.newest.len() as u64;
        if number > end + MAX_GAP {
            self.leave_behind(self.newest.len());
            self.first = number;
            self.newest.push_back(Some(value));
            self.taken = 1;
            return;
        }
        if place >= self.newest.len() {
            self.newest.resize_with(place + 1, || None);
        }
        self.taken += usize::from(self.newest[place].replace(value).is_none());
        self.leave_behind(self.newest.len().saturating_sub(LEAST_PLACES + PLACES_PER_ONE * self.taken));
    }

    /// Removes a value.
    pub fn remove(&mut self, op: OpId) -> Option<T> {
        let Some(place) = self.place(op) else { return self.older.remove(&op) };
        let value = self.newest.get_mut(place)?.take()?;
        self.taken -= 1;
        while let Some(None) = self.newest.front() {
            self.newest.pop_front();
            self.first += 1;
        }
        if self.newest.is_empty() {
            self.newest.shrink_to(KEPT_PLACES);
        }
        Some(value)
    }

    /// Removes all values that match `is_one`; returns them in the order of their numbers.
    pub fn take_if(&mut self, mut is_one: impl FnMut(&T) -> bool) -> Vec<(OpId, T)> {
        let ops: Vec<OpId> = self.iter().filter(|(_, value)| is_one(value)).map(|(op, _)| op).collect();
        ops.into_iter().filter_map(|op| Some((op, self.remove(op)?))).collect()
    }

    /// Returns all values in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (OpId, &T)> {
        let newest = (self.first..).zip(&self.newest);
        let newest = newest.filter_map(|(n, place)| Some((number(n), place.as_ref()?)));
        self.older.iter().map(|(&op, value)| (op, value)).chain(newest)
    }

    /// Returns all values, mutably, in the order of their numbers.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.older.values_mut().chain(self.newest.iter_mut().flatten())
    }

    /// Index of an operation in the array; `None` when it is older.
    fn place(&self, op: OpId) -> Option<usize> {
        u64::from(op.0).checked_sub(self.first).and_then(|place| usize::try_from(place).ok())
    }

    /// Moves the first places of the array to the tree.
    fn leave_behind(&mut self, places: usize) {
        for place in self.newest.drain(..places) {
            if let Some(value) = place {
                self.older.insert(number(self.first), value);
                self.taken -= 1;
            }
            self.first += 1;
        }
    }
}

/// Only numbers of operations are stored.
fn number(n: u64) -> OpId {
    OpId(u32::try_from(n).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Change of a table: adds a number at a distance from the last one, or removes the nth oldest or newest.
    #[derive(Clone, Debug)]
    enum Step {
        Add(u32),
        TakeOld(usize),
        TakeNew(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (1..3u32).prop_map(Step::Add),
            1 => prop_oneof![1..200u32, Just(1 << 20)].prop_map(Step::Add),
            6 => (0..4usize).prop_map(Step::TakeOld),
            2 => (0..40usize).prop_map(Step::TakeNew),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_map_in_the_order_of_numbers(steps in prop::collection::vec(step(), 1..600)) {
            let (mut table, mut model) = (OpTable::default(), BTreeMap::new());
            let mut last = 0;
            for step in steps {
                let taken = match step {
                    Step::Add(gap) => {
                        last += gap;
                        table.insert(OpId(last), last);
                        model.insert(OpId(last), last);
                        None
                    }
                    Step::TakeOld(n) => model.keys().nth(n).copied(),
                    Step::TakeNew(n) => model.keys().rev().nth(n).copied(),
                };
                if let Some(op) = taken {
                    prop_assert_eq!(table.get(op), model.get(&op));
                    prop_assert_eq!(table.remove(op), model.remove(&op));
                    prop_assert_eq!(table.remove(op), None);
                }
                prop_assert_eq!(table.len(), model.len());
                prop_assert!(table.iter().eq(model.iter().map(|(op, value)| (*op, value))));
            }
            prop_assert!(table.values_mut().map(|value| *value).eq(model.into_values()));
        }
    }

    #[test]
    fn places_are_bounded_whatever_numbers_a_peer_chooses() {
        for gap in [1, 2, 64, 65, 1 << 12] {
            let mut table = OpTable::default();
            for n in 1..=10_000 {
                table.insert(OpId(n * gap), n);
                // One in each hundred stays.
                if n % 100 != 0 {
                    assert_eq!(table.remove(OpId(n * gap)), Some(n));
                }
                assert!(table.newest.len() <= LEAST_PLACES + PLACES_PER_ONE * table.len() + 65, "gap {gap}");
            }
            assert_eq!(table.len(), 100);
            let even = table.take_if(|n| n % 200 == 0);
            assert_eq!(even.len(), 50);
            assert!(table.iter().all(|(op, n)| op.0 == n * gap && n % 200 == 100));
        }
    }

    #[test]
    fn little_is_kept_when_all_have_ended() {
        let mut table = OpTable::default();
        (1..=100_000).for_each(|n| table.insert(OpId(n), [0_u64; 8]));
        assert!((1..=100_000).rev().all(|n| table.remove(OpId(n)).is_some()));
        assert!(table.is_empty() && table.newest.capacity() <= 2 * KEPT_PLACES);
    }

    #[test]
    fn the_last_numbers_have_their_places() {
        let mut table = OpTable::default();
        for n in [1, u32::MAX - 1, u32::MAX] {
            table.insert(OpId(n), n);
            table.insert(OpId(n), n);
        }
        assert!(table.iter().map(|(op, _)| op.0).eq([1, u32::MAX - 1, u32::MAX]));
        assert_eq!(table.get_mut(OpId(u32::MAX)).copied(), Some(u32::MAX));
        assert_eq!((table.get(OpId(2)), table.len()), (None, 3));
    }
}
