//! Received bytes of an item's bulk, and the checksum of all of them, whatever the order of arrival.
//!
//! Checksums of neighboring segments are combined, so that no byte is read twice: in-order data costs the
//! usual single pass, and each gap that closes costs one combination.

use std::collections::BTreeMap;

/// Received segments of an item's bulk, with their checksums.
#[derive(Debug, Default)]
pub(super) struct ReceivedSegments {
    /// All bytes before this one were received.
    start_bytes: u64,
    start_crc32c: u32,
    /// Segments after the first gap, by their first byte: the end and the checksum of each. No two of them
    /// touch.
    apart: BTreeMap<u64, (u64, u32)>,
}

impl ReceivedSegments {
    /// Bytes received from the start without a gap.
    pub(super) fn start_bytes(&self) -> u64 {
        self.start_bytes
    }

    /// CRC-32C of the bytes before `start_bytes`.
    pub(super) fn start_crc32c(&self) -> u32 {
        self.start_crc32c
    }

    /// Number of segments after the first gap.
    pub(super) fn apart(&self) -> usize {
        self.apart.len()
    }

    /// Adds bytes; false, with nothing changed, where some of them were received before.
    pub(super) fn add(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let Some(end) = offset.checked_add(bytes.len() as u64) else { return false };
        let before = self.apart.range(..=offset).next_back().map(|(&start, &(end, _))| (start, end));
        let after = self.apart.range(offset..).next().map(|(&start, _)| start);
        let meets = before.is_some_and(|(_, end)| end > offset) || after.is_some_and(|start| start < end);
        if offset < self.start_bytes || meets {
            return false;
        }
        let begin = match before.filter(|(_, end)| *end == offset) {
            _ if offset == self.start_bytes => {
                self.start_crc32c = crc32c::crc32c_append(self.start_crc32c, bytes);
                self.start_bytes = end;
                return self.close_up();
            }
            Some((start, _)) => start,
            None => offset,
        };
        let (_, crc32c) = self.apart.get(&begin).copied().unwrap_or_default();
        let mut segment = (end, crc32c::crc32c_append(crc32c, bytes));
        if let Some(next) = self.apart.remove(&end) {
            segment = (next.0, combine(segment.1, end, next));
        }
        self.apart.insert(begin, segment);
        true
    }

    /// Joins the next segment to the start, if the gap is closed.
    fn close_up(&mut self) -> bool {
        if let Some(next) = self.apart.remove(&self.start_bytes) {
            self.start_crc32c = combine(self.start_crc32c, self.start_bytes, next);
            self.start_bytes = next.0;
        }
        true
    }
}

/// Combines the checksums of two neighboring segments.
fn combine(crc32c: u32, end: u64, (next_end, next_crc32c): (u64, u32)) -> u32 {
    // The bulk of an item fits into memory.
    crc32c::crc32c_combine(crc32c, next_crc32c, usize::try_from(next_end - end).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_checksum_is_that_of_all_bytes_whatever_their_order(
            data in prop::collection::vec(any::<u8>(), 1..2_000),
            cuts in prop::collection::vec(1..200_usize, 1..40),
            seed in any::<u64>(),
        ) {
            let mut parts = Vec::new();
            let (mut at, mut cuts) = (0, cuts.iter().cycle());
            while at < data.len() {
                let end = (at + cuts.next().unwrap()).min(data.len());
                parts.push((at as u64, &data[at..end]));
                at = end;
            }
            parts.sort_by_key(|(at, _)| (at + 1).wrapping_mul(seed | 1));
            let mut there = ReceivedSegments::default();
            let mut sum = 0;
            for (at, bytes) in parts {
                prop_assert!(there.add(at, bytes));
                prop_assert!(!there.add(at, bytes), "a second time");
                sum += bytes.len();
                let lies_apart: u64 = there.apart.iter().map(|(start, (end, _))| end - start).sum();
                prop_assert_eq!(there.start_bytes() + lies_apart, sum as u64);
            }
            prop_assert_eq!(there.start_bytes(), data.len() as u64);
            prop_assert_eq!(there.start_crc32c(), crc32c::crc32c(&data));
            prop_assert_eq!(there.apart(), 0);
        }
    }

    #[test]
    fn overlapping_bytes_change_nothing() {
        let mut there = ReceivedSegments::default();
        assert!(there.add(10, b"abcde") && there.add(0, b"xy"));
        for (at, bytes) in [(1, &b"z"[..]), (8, b"123"), (14, b"1"), (9, b"1234567"), (u64::MAX, b"1")] {
            assert!(!there.add(at, bytes), "{at}");
        }
        assert!(there.add(15, b"f") && there.add(2, b"........") && there.apart() == 0);
        assert_eq!(there.start_crc32c(), crc32c::crc32c(b"xy........abcdef"));
    }
}
