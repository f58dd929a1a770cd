//! Rest of a read that no server has taken yet. A part is cut off when a server takes it, with the size that suits that
//! server.
//!
//! Parts end at borders of stored chunks, so that no two servers decode the same one, and are otherwise long runs of
//! the result: the slowest axis is split first.

use array::{AxisRange, Region, Selection};

use super::scheduler::MAX_PART_BYTES;

/// The parts of a selection that no server has taken yet, with their regions in the target.
pub(crate) struct UnassignedParts {
    /// Boxes; the next one is the last.
    boxes: Vec<(Vec<AxisRange>, Region)>,
    item_bytes: u64,
    bytes: u64,
    /// Box that is decoded as a whole, elements per axis.
    grain: Vec<u64>,
}

impl UnassignedParts {
    /// Creates the parts of a whole selection, whose target has its shape.
    pub(crate) fn new(
        selection: &Selection,
        item_bytes: usize,
        grain: Option<Vec<u64>>,
        into: Region,
    ) -> Self {
        let axes = selection.ranges().len();
        let grain = grain.filter(|g| g.len() == axes).unwrap_or_else(|| vec![1; axes]);
        let bytes = into.size_bytes() as u64;
        let boxes = if bytes == 0 { Vec::new() } else { vec![(selection.ranges().to_vec(), into)] };
        Self { boxes, item_bytes: item_bytes as u64, bytes, grain }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    /// Returns the number of bytes left.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes a part of at most `most_bytes`, or one chunk if that is larger; of a chunk that exceeds the maximum size
    /// of a part, that size.
    pub(crate) fn take(&mut self, most_bytes: u64) -> Option<(Selection, Region)> {
        let (ranges, region) = self.boxes.pop()?;
        let (ranges, region) = self.cut(ranges, region, most_bytes, &self.grain.clone());
        let elements = vec![1; ranges.len()];
        let (ranges, region) = self.cut(ranges, region, most_bytes.max(MAX_PART_BYTES), &elements);
        self.bytes -= region.size_bytes() as u64;
        // A part of a valid selection is valid.
        Some((Selection::new(ranges).ok()?, region))
    }

    /// Cuts the first part off a box and keeps the rest.
    fn cut(
        &mut self,
        mut ranges: Vec<AxisRange>,
        mut region: Region,
        most_bytes: u64,
        grain: &[u64],
    ) -> (Vec<AxisRange>, Region) {
        for axis in 0..ranges.len() {
            let size_bytes = ranges.iter().fold(self.item_bytes, |n, r| n.saturating_mul(r.count));
            if size_bytes <= most_bytes {
                break;
            }
            let range = ranges[axis];
            let row_bytes = (size_bytes / range.count).max(1);
            let count = whole_grains(range, most_bytes / row_bytes, grain[axis]);
            // Element counts of a target fit in memory, and in `usize`.
            let at = usize::try_from(count).unwrap_or(usize::MAX);
            if count < range.count {
                let (first, left) = region.split(axis, at);
                region = first;
                ranges[axis].count = count;
                let mut rest = ranges.clone();
                rest[axis] = AxisRange { start: range.index(count), count: range.count - count, ..range };
                self.boxes.push((rest, left));
            }
        }
        (ranges, region)
    }
}

/// Returns the number of elements from the first on: at most `most`, up to a border between grains; at least one grain.
fn whole_grains(range: AxisRange, most: u64, grain: u64) -> u64 {
    if most >= range.count {
        return range.count;
    }
    let border = range.index(most) / grain * grain;
    let fitting = range.within(range.start, border).1;
    if fitting > 0 {
        return fitting;
    }
    let first_border = (range.start / grain).saturating_add(1).saturating_mul(grain);
    range.within(range.start, first_border).1
}

#[cfg(test)]
mod tests {
    use array::{Selection, Target};

    use super::*;

    fn parts(text: &str, shape: &[u64], grain: Option<&[u64]>, most_bytes: &[u64]) -> Vec<String> {
        let selection = Selection::parse(text, shape).unwrap();
        let (target, region) = Target::new(&selection.shape(), 2).unwrap();
        let mut rest = UnassignedParts::new(&selection, 2, grain.map(<[u64]>::to_vec), region);
        let mut found = Vec::new();
        let mut bytes = rest.bytes();
        for most in most_bytes.iter().cycle() {
            let Some((part, mut region)) = rest.take(*most) else { break };
            assert_eq!(part.len().unwrap() * 2, region.size_bytes() as u64);
            bytes -= region.size_bytes() as u64;
            assert_eq!(bytes, rest.bytes());
            region.write_all(&vec![1; region.size_bytes()]).unwrap();
            found.push(part.to_string());
        }
        assert!(rest.is_empty() && bytes == 0);
        assert!(target.into_vec().unwrap().iter().all(|&b| b == 1), "{text} of {shape:?}: all of it");
        found
    }

    #[test]
    fn parts_have_the_requested_sizes() {
        assert_eq!(parts("", &[10, 2], None, &[8, 24]), ["0:2, 0:2", "2:8, 0:2", "8:10, 0:2"]);
        assert_eq!(parts("", &[2, 3], None, &[4]), ["0:1, 0:2", "0:1, 2:3", "1:2, 0:2", "1:2, 2:3"]);
        assert_eq!(parts("::3, 1", &[9, 4], None, &[1]), ["0:1:3, 1:2", "3:4:3, 1:2", "6:7:3, 1:2"]);
        assert_eq!(parts("", &[], None, &[1]), [""]);
        assert!(parts("0:0", &[5], None, &[1]).is_empty());
    }

    #[test]
    fn parts_end_at_borders_of_chunks() {
        assert_eq!(parts("1:", &[11], Some(&[4]), &[12]), ["1:4", "4:8", "8:11"]);
        assert_eq!(parts("", &[4, 4], Some(&[2, 2]), &[8]), ["0:2, 0:2", "0:2, 2:4", "2:4, 0:2", "2:4, 2:4"]);
        assert_eq!(parts("", &[4, 4], Some(&[4, 4]), &[2]), ["0:4, 0:4"], "a chunk is not cut");
        assert_eq!(parts("::3", &[12], Some(&[4]), &[4]), ["0:4:3", "6:10:3"]);
    }

    #[test]
    fn a_chunk_larger_than_a_part_may_be_is_cut() {
        let half = MAX_PART_BYTES / 2;
        let found = parts("", &[half * 2], Some(&[half * 2]), &[1]);
        assert_eq!(found, [format!("0:{half}"), format!("{half}:{}", half * 2)]);
    }
}
