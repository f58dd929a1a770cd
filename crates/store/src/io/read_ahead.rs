//! Read-ahead of small requests: the next ones are announced, so that a disk serves many of them while a thread waits for one.
//!
//! A [`ByteStore`] decides about announced requests. A file is fetched only if it is not in memory already, which a few tests tell
//! ([`is_far`]): announcing costs next to nothing for data in memory. Nothing is read here.

use std::ops::Range;

use crate::ByteStore;

/// Number of requests that are announced at a time, as soon as no more are left of those announced before: a disk has 64 to 128 in its
/// queue for each storage thread.
const ANNOUNCED_TOGETHER: usize = 64;
/// Largest request that is announced, bytes: larger ones keep a disk busy alone. So a thread is at most 8 MiB ahead.
const MAX_REQUEST_BYTES: u64 = 64 << 10;
/// Number of requests of an announcement that are tested: the first, the middle and the last one.
const TESTED_REQUESTS: usize = 3;
/// Page size of the operating system's cache of files, bytes.
const PAGE_BYTES: u64 = 4 << 10;

/// Announces requests to a store before they are made.
pub(crate) struct ReadAhead<R> {
    coming: R,
    /// Number of requests that are announced and not made yet.
    announced: usize,
}

impl<R: Iterator<Item = Range<u64>>> ReadAhead<R> {
    /// Takes the coming requests in the order in which they will be made.
    pub(crate) fn of(coming: R) -> Self {
        Self { coming, announced: 0 }
    }

    /// The next request is about to be made.
    pub(crate) fn next(&mut self, store: &dyn ByteStore) {
        if self.announced <= ANNOUNCED_TOGETHER {
            let mut ranges: Vec<_> = self.coming.by_ref().take(ANNOUNCED_TOGETHER).collect();
            self.announced += ranges.len();
            ranges.retain(|range| range.end.saturating_sub(range.start) <= MAX_REQUEST_BYTES);
            if ranges.len() > 1 {
                store.expect(&ranges);
            }
        }
        self.announced = self.announced.saturating_sub(1);
    }
}

/// Whether some of these bytes must be fetched first, by a test of a few of them.
pub(crate) fn is_far(ranges: &[Range<u64>], is_in_memory: impl Fn(u64) -> bool) -> bool {
    let last = ranges.len().saturating_sub(1);
    let tested = (0..TESTED_REQUESTS).filter_map(|n| ranges.get(n * last / (TESTED_REQUESTS - 1)));
    tested.into_iter().any(|range| !is_in_memory(range.start))
}

/// The pages that hold these bytes: neighbors in one stretch, in the order given.
pub(crate) fn pages(ranges: &[Range<u64>]) -> impl Iterator<Item = Range<u64>> {
    let mut rest = ranges.iter().filter(|range| !range.is_empty()).map(|range| {
        range.start / PAGE_BYTES * PAGE_BYTES..range.end.div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES)
    });
    let mut next = rest.next();
    std::iter::from_fn(move || {
        let mut stretch = next.take()?;
        for range in rest.by_ref() {
            if range.start < stretch.start || range.start > stretch.end {
                next = Some(range);
                break;
            }
            stretch.end = stretch.end.max(range.end);
        }
        Some(stretch)
    })
}

#[cfg(test)]
mod tests {
    use array::Result;
    use parking_lot::Mutex;

    use super::*;
    use crate::{CancelFlag, IoCounts};

    /// Remembers what it is told, each time.
    #[derive(Default)]
    struct Told(Mutex<Vec<Vec<Range<u64>>>>);

    impl ByteStore for Told {
        fn size_bytes(&self) -> u64 {
            u64::MAX
        }
        fn expect(&self, ranges: &[Range<u64>]) {
            self.0.lock().push(ranges.to_vec());
        }
        fn read_at(&self, _: u64, _: &mut [u8], _: &CancelFlag) -> Result<()> {
            unreachable!("nothing here reads")
        }
        fn counts(&self) -> IoCounts {
            IoCounts::default()
        }
    }

    fn requests(count: u64, size_bytes: u64) -> impl Iterator<Item = Range<u64>> {
        (0..count).map(move |n| n * 100_000..n * 100_000 + size_bytes)
    }

    #[test]
    fn each_request_is_told_once_before_it_is_made_and_few_are_ahead() {
        let (store, mut ahead) = (Told::default(), ReadAhead::of(requests(1_000, 4096)));
        for made in 0..1_000 {
            ahead.next(&store);
            let announced = store.0.lock().iter().map(Vec::len).sum::<usize>();
            assert!(
                (made + 1..=made + 2 * ANNOUNCED_TOGETHER).contains(&announced),
                "{announced} told, {made} made"
            );
            assert!(announced >= 1_000.min(made + ANNOUNCED_TOGETHER), "the disk has enough to do");
        }
        assert!(store.0.into_inner().into_iter().flatten().eq(requests(1_000, 4096)));
    }

    #[test]
    fn nothing_is_told_of_a_single_request_or_of_large_ones() {
        for (count, size_bytes) in [(0, 4096), (1, 4096), (1_000, MAX_REQUEST_BYTES + 1)] {
            let (store, mut ahead) = (Told::default(), ReadAhead::of(requests(count, size_bytes)));
            (0..count).for_each(|_| ahead.next(&store));
            assert_eq!(store.0.into_inner(), Vec::<Vec<Range<u64>>>::new());
        }
    }

    #[test]
    fn a_few_looks_tell_what_is_in_memory() {
        let ranges: Vec<_> = requests(64, 4096).collect();
        let looks = Mutex::new(0);
        let is_in_memory = |below: u64| {
            let looks = &looks;
            move |offset| {
                *looks.lock() += 1;
                offset < below
            }
        };
        assert!(!is_far(&ranges, is_in_memory(u64::MAX)));
        assert_eq!(*looks.lock(), TESTED_REQUESTS);
        assert!(is_far(&ranges, is_in_memory(0)));
        assert!(is_far(&ranges, is_in_memory(6_200_000)), "the last ones are not");
        assert!(!is_far(&[], is_in_memory(0)));
    }

    #[test]
    fn pages_of_neighbors_are_fetched_together() {
        let of = |ranges: &[Range<u64>]| pages(ranges).collect::<Vec<_>>();
        assert_eq!(of(&[10..20, 5_000..5_001, 12_300..12_301]), [0..8192, 12_288..16_384]);
        assert_eq!(of(&[8_000..9_000, 100..200, 9_000..9_001]), [4096..12_288, 0..4096, 8192..12_288]);
        assert_eq!(of(&[7..7, 9..9]), Vec::<Range<u64>>::new());
    }
}
