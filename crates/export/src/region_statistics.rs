//! Exact statistics of some elements of a selection: of those that a condition on their indices keeps.
//!
//! They equal numpy's over the decoded values, without the elements that pictures leave out; the standard deviation is that
//! of the population (`ddof=0`).

use std::sync::Arc;

use array::{ArrayInfo, Result, Scalar, decode, elements, with_element};
use serde::Serialize;

use crate::bounded_scan::{MAX_PART_BYTES, PARTS_IN_MEMORY, Scan, ScanPart};

/// Memory beyond which the computation does not become faster, in bytes.
pub const MAX_REGION_MEMORY_BYTES: u64 = MEMORY_PER_PART * (MAX_PART_BYTES / 4);
/// Memory as a multiple of the size of a part: one is decoded, to doubles twice, each up to eight times as large as bytes.
const MEMORY_PER_PART: u64 = PARTS_IN_MEMORY + 24;

/// Statistics of the elements of a region.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RegionStatistics {
    /// Elements of the region.
    pub elements: u64,
    /// Values: elements that are finite and not missing.
    pub count: u64,
    /// Elements that are missing, NaN or infinite.
    pub missing: u64,
    /// Least value; null without values.
    pub min: Option<Scalar>,
    /// Greatest value.
    pub max: Option<Scalar>,
    /// Mean of the values.
    pub mean: Option<Scalar>,
    /// Standard deviation of the values.
    pub std: Option<Scalar>,
}

/// Condition on the index per axis of an element; `None` keeps all.
pub type RegionFilter = Option<Arc<dyn Fn(&[u64]) -> bool + Send + Sync>>;

/// Moments of values, mergeable: count, mean and sum of squared distances from the mean.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

/// Total of the parts read so far.
#[derive(Clone, Copy, Debug)]
struct RegionTotal {
    elements: u64,
    moments: Moments,
    min: f64,
    max: f64,
}

impl Moments {
    /// Computes the moments of one part in two passes.
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let count = values.len() as f64;
        // Neumaier's summation, around the first value, which keeps the sum small.
        let first = values[0];
        let (mut sum, mut lost) = (0.0f64, 0.0f64);
        for value in values {
            let value = value - first;
            let total = sum + value;
            lost += if sum.abs() >= value.abs() { (sum - total) + value } else { (value - total) + sum };
            sum = total;
        }
        let mean = first + (sum + lost) / count;
        let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        Self { count: values.len() as u64, mean, squares }
    }

    /// Adds the moments of other values (Chan's formula).
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let count = (self.count + other.count) as f64;
        let apart = other.mean - self.mean;
        let share = other.count as f64 / count;
        self.squares += other.squares + apart * apart * self.count as f64 * share;
        self.mean += apart * share;
        self.count += other.count;
    }
}

impl RegionTotal {
    fn add(&mut self, part: &ScanPart, array: &ArrayInfo, keeps: &RegionFilter) -> Result<()> {
        let meant = array.decoding.meant(array.dtype);
        // Values that cannot be decoded count as they are stored, as they are drawn.
        let decoded = match decode(&part.bytes, array.dtype, &array.decoding) {
            Ok(decoded) => numbers(&decoded, array.decoding.output),
            Err(_obstacle) => numbers(&part.bytes, meant),
        };
        let ranges = part.selection.ranges();
        let mut index: Vec<u64> = ranges.iter().map(|range| range.start).collect();
        let mut values = Vec::with_capacity(decoded.len());
        for (number, &value) in decoded.iter().enumerate() {
            if keeps.as_ref().is_none_or(|keeps| keeps(&index)) {
                self.elements += 1;
                let stored = meant.scalar_at(&part.bytes, number);
                if value.is_finite() && !stored.is_some_and(|stored| array.decoding.is_missing(stored)) {
                    values.push(value);
                }
            }
            // The next index in C order.
            for (at, range) in index.iter_mut().zip(ranges).rev() {
                *at += range.step;
                if *at < range.start + range.count * range.step {
                    break;
                }
                *at = range.start;
            }
        }
        self.min = values.iter().copied().fold(self.min, f64::min);
        self.max = values.iter().copied().fold(self.max, f64::max);
        self.moments.merge(&Moments::of(&values));
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    fn statistics(&self) -> RegionStatistics {
        let Moments { count, mean, squares } = self.moments;
        let present = |value: f64| (count > 0).then_some(Scalar::Float(value));
        RegionStatistics {
            elements: self.elements,
            count,
            missing: self.elements - count,
            min: present(self.min),
            max: present(self.max),
            mean: present(mean),
            std: present((squares / count as f64).sqrt()),
        }
    }
}

/// Returns elements as doubles.
fn numbers(bytes: &[u8], dtype: array::DType) -> Vec<f64> {
    with_element!(dtype.element(), T => elements::<T>(bytes, dtype.order()).map(array::Element::to_f64).collect())
}

/// Computes the statistics of the elements of a scan that `keeps` keeps, in `memory_bytes` of memory. Calls `on_part` after
/// each part with the number of elements of the scan read so far.
///
/// # Errors
/// The errors of the source.
///
/// # Cancel safety
/// Dropping the future stops reading.
pub async fn gather(
    scan: &Scan,
    keeps: RegionFilter,
    memory_bytes: u64,
    on_part: impl FnMut(u64) + Send,
) -> Result<RegionStatistics> {
    let total =
        RegionTotal { elements: 0, moments: Moments::default(), min: f64::INFINITY, max: f64::NEG_INFINITY };
    let add =
        move |total: &mut RegionTotal, part: &ScanPart, array: &ArrayInfo| total.add(part, array, &keeps);
    let total = scan.fold(memory_bytes / MEMORY_PER_PART, &[], total, add, on_part).await?;
    Ok(total.statistics())
}

#[cfg(test)]
mod tests {
    use array::conformance::{MemorySource, one_array};
    use array::{Decoding, Priority, Selection, Source};
    use bytes::Bytes;
    use wire::ops::BlockPlace;

    use super::*;

    #[tokio::test]
    async fn statistics_of_parts_are_those_of_the_whole() {
        let mut dataset = one_array("<i2".parse().unwrap(), &[30, 40, 50], &[7, 16, 16]);
        let info = &mut dataset.arrays[0];
        info.decoding = Decoding {
            scale: 0.5,
            offset: 1e6,
            missing: vec![Scalar::Signed(-1)],
            output: "<f8".parse().unwrap(),
            ..Decoding::identity(info.dtype)
        };
        let stored: Vec<i16> =
            (0..30 * 40 * 50).map(|i: i32| i16::try_from(i * 7919 % 3001 - 1).unwrap()).collect();
        let bytes: Vec<u8> = stored.iter().flat_map(|value| value.to_le_bytes()).collect();
        let source: Arc<dyn Source> =
            Arc::new(MemorySource::new(dataset.clone(), vec![vec![Bytes::from(bytes)]]).unwrap());
        let selection = Selection::of_box(&[3, 5, 0], &[20, 30, 49]);
        let keeps = |index: &[u64]| !(index[1] + index[2]).is_multiple_of(3);
        let mut kept = Vec::new();
        for [z, y, x] in (3..23).flat_map(|z| (5..35).flat_map(move |y| (0..49).map(move |x| [z, y, x]))) {
            if keeps(&[z as u64, y as u64, x as u64]) {
                kept.push(stored[(z * 40 + y) * 50 + x]);
            }
        }
        let values: Vec<f64> = kept.iter().filter(|v| **v != -1).map(|v| f64::from(*v) * 0.5 + 1e6).collect();
        let mean = values.iter().map(|v| v - 1e6).sum::<f64>() / values.len() as f64 + 1e6;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        for memory_bytes in [MEMORY_PER_PART * 100, MAX_REGION_MEMORY_BYTES] {
            let mut done = 0;
            let place =
                BlockPlace { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0 };
            let described = Arc::new(dataset.clone());
            let chosen = Some(selection.clone());
            let scan = Scan::new(Arc::clone(&source), described, &place, chosen, Priority::NORMAL).unwrap();
            let found = gather(&scan, Some(Arc::new(keeps)), memory_bytes, |n| done = n).await.unwrap();
            assert_eq!(done, 20 * 30 * 49);
            assert_eq!((found.elements, found.count), (kept.len() as u64, values.len() as u64));
            assert_eq!(found.missing, (kept.len() - values.len()) as u64);
            let close = |scalar: Option<Scalar>, expected: f64| {
                let apart = (scalar.unwrap().as_f64() - expected).abs() / expected.abs();
                assert!(apart < 1e-13, "{scalar:?}, {expected}");
            };
            close(found.mean, mean);
            close(found.std, variance.sqrt());
            close(found.min, values.iter().copied().fold(f64::INFINITY, f64::min));
            close(found.max, values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        }
    }
}
