//! Counts of the blocks of made levels, each block once, reported to viewers.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{BlockKey, Generation, LongTask, LongWork};
use parking_lot::Mutex;

/// Blocks per entry of the table.
const BLOCKS_PER_ENTRY: u64 = u64::BITS as u64;

/// Counts of the blocks that exist so far, reported while blocks are being made.
#[derive(Clone)]
pub(super) struct BlockTally(Arc<TallyInner>);

struct TallyInner {
    work: LongWork,
    arrays: Mutex<BTreeMap<u32, ArrayTally>>,
}

/// The made blocks of one array.
#[derive(Default)]
struct ArrayTally {
    generation: Generation,
    /// Bits of the existing blocks, by level and number. The table grows with the work that was done, never with the numbers of a header.
    there: BTreeMap<(u8, u64), u64>,
    done: u64,
    total: u64,
    under_way: usize,
}

impl ArrayTally {
    fn report(&self, work: &LongWork, array: u32) {
        let task = LongTask::Levels { array };
        if self.under_way > 0 { work.set(task, self.done, self.total) } else { work.end(task) }
    }
}

/// One block is being made; until this is dropped.
pub(super) struct BlockInProgress {
    tally: BlockTally,
    array: u32,
}

impl BlockTally {
    pub(super) fn new(work: LongWork) -> Self {
        Self(Arc::new(TallyInner { work, arrays: Mutex::default() }))
    }

    /// A block is being made, of an array that has `total` of them.
    pub(super) fn begin(&self, key: BlockKey, total: u64) -> BlockInProgress {
        self.change(key, |counted| {
            counted.total = total;
            counted.under_way += 1;
        });
        BlockInProgress { tally: self.clone(), array: key.array }
    }

    /// A block is there: just made, or found in the side cache.
    pub(super) fn count(&self, key: BlockKey) {
        self.change(key, |counted| {
            let entry = counted.there.entry((key.level, key.index / BLOCKS_PER_ENTRY)).or_default();
            let bit = 1 << (key.index % BLOCKS_PER_ENTRY);
            counted.done += u64::from(*entry & bit == 0);
            *entry |= bit;
        });
    }

    fn change(&self, key: BlockKey, change: impl FnOnce(&mut ArrayTally)) {
        let mut arrays = self.0.arrays.lock();
        let counted = arrays.entry(key.array).or_default();
        if counted.generation != key.generation {
            counted.there.clear();
            counted.done = 0;
            counted.generation = key.generation;
        }
        change(counted);
        counted.report(&self.0.work, key.array);
    }
}

impl Drop for BlockInProgress {
    fn drop(&mut self) {
        let mut arrays = self.tally.0.arrays.lock();
        if let Some(counted) = arrays.get_mut(&self.array) {
            counted.under_way -= 1;
            counted.report(&self.tally.0.work, self.array);
        }
    }
}

#[cfg(test)]
mod tests {
    use array::{DatasetId, WorkProgress};

    use super::*;

    fn key(level: u8, index: u64) -> BlockKey {
        BlockKey { dataset: DatasetId(1), generation: Generation(0), array: 2, level, index }
    }

    #[test]
    fn blocks_count_once_and_only_work_under_way_is_told() {
        let work = LongWork::default();
        let share = || work.progress(LongTask::Levels { array: 2 });
        let tally = BlockTally::new(work.clone());
        tally.count(key(1, 5));
        assert_eq!(share(), None, "found, not made");
        let first = tally.begin(key(1, 70), 9);
        let second = tally.begin(key(2, 5), 9);
        for block in [key(1, 70), key(1, 70), key(2, 5)] {
            tally.count(block);
        }
        assert_eq!(share(), Some(WorkProgress { done: 3, total: 9 }));
        drop(first);
        assert!(share().is_some());
        drop(second);
        assert_eq!(share(), None);
    }
}
