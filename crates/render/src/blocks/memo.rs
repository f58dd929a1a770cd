//! Memoized values of a block for the last few pictures, so that they are not recomputed for every picture.

use std::sync::{Arc, Mutex, PoisonError};

/// Number of plans that a block remembers, by the number of their table; also the number of tables that are
/// remembered.
pub(crate) const MEMO_SIZE: usize = 2;

/// The last `COUNT` computed values with their keys: up to this many views of one block may differ in the
/// value without recomputing it.
#[derive(Debug)]
pub(crate) struct Memo<K, V, const COUNT: usize>(Mutex<Vec<(K, Arc<V>)>>);

impl<K: Clone + PartialEq, V, const COUNT: usize> Memo<K, V, COUNT> {
    /// Returns the value for a key; computes it if it is not remembered.
    pub(crate) fn of(&self, key: &K, make: impl FnOnce() -> V) -> Arc<V> {
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, value)) = remembered.iter().find(|(other, _)| other == key) {
            return Arc::clone(value);
        }
        let value = Arc::new(make());
        remembered.truncate(COUNT - 1);
        remembered.insert(0, (key.clone(), Arc::clone(&value)));
        value
    }

    pub(crate) fn forget(&mut self) {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl<K, V, const COUNT: usize> Default for Memo<K, V, COUNT> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// A copy of a block starts with no remembered values, because a block is copied only to be changed.
impl<K, V, const COUNT: usize> Clone for Memo<K, V, COUNT> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_until_it_is_pushed_out() {
        let remembered = Memo::<u64, u64, 2>::default();
        let mut made = 0;
        for key in [1, 1, 2, 1, 2, 3, 3, 1] {
            let value = remembered.of(&key, || {
                made += 1;
                10 * key
            });
            assert_eq!(*value, 10 * key);
        }
        assert_eq!(made, 4, "1, 2, 3, and 1 again after it was pushed out");
        assert!(remembered.clone().0.lock().unwrap().is_empty());
    }
}
