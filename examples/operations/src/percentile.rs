//! `percentile`: exact percentiles of any number of elements in bounded memory.
//!
//! Radix selection (Knuth, The Art of Computer Programming 3, 5.2.5): doubles are ordered like their bits, if the bits
//! of negative ones are flipped. The first pass counts the values by their leading bits, which gives the bin of each
//! wanted rank; each further pass counts only the values in those bins, by their next bits. As soon as the values in
//! the bins fit into memory, they are gathered and sorted instead. Two passes are usual.

use std::collections::BTreeMap;

use array::{ArrayInfo, Result};
use bytes::Bytes;
use client::remote_call::{CallRequest, Operand, OperationParameters};
use export::bounded_scan::{MAX_PART_BYTES, PARTS_IN_MEMORY, Scan, ScanPart};
use serde::{Deserialize, Serialize};
use server::ops::{BeginOutcome, Handler, OperationCall};

use crate::OneOrMany;

/// Maximum number of percentages in one call.
const MOST_PERCENTAGES: usize = 100;
/// Largest useful amount of memory, in bytes.
const MAX_MEMORY_BYTES: u64 = PARTS_IN_MEMORY * MAX_PART_BYTES + (16 << 20);
/// Number of bits of a key.
const KEY_BITS: u32 = u64::BITS;
/// Maximum number of bits by which one pass counts.
const MOST_DIGIT_BITS: u32 = 16;

/// Parameters: percentages from 0 to 100.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Percentile {
    q: OneOrMany,
}

/// Result: the percentiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Value for each percentage, interpolated between neighbors as numpy does; `None` if there are no values.
    pub values: Vec<Option<f64>>,
    /// Number of elements with a finite value.
    pub count: u64,
}

impl Percentile {
    /// Creates a call for the percentiles `q` of the elements `of`.
    #[must_use]
    pub fn asked(of: Operand, q: Vec<f64>) -> CallRequest<Self> {
        CallRequest { of, with: Self { q: OneOrMany::Many(q) } }
    }
}

impl OperationParameters for Percentile {
    const NAME: &'static str = "percentile";
    type Result = Percentiles;
}

/// Server side of the operation.
pub(crate) struct PercentileHandler;

impl Handler for PercentileHandler {
    type Work = CallRequest<Percentile>;

    fn name(&self) -> &'static str {
        Percentile::NAME
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<Self::Work>> {
        let asked = Self::Work::parse(&parameters)?;
        asked.with.q.check("percentages", MOST_PERCENTAGES, 0.0, 100.0)?;
        Ok(BeginOutcome::Work(asked))
    }

    async fn run(&self, asked: Self::Work, call: &OperationCall) -> Result<()> {
        let scan = call.scan(&asked.of).await?;
        let mut memory = call.enter(MAX_MEMORY_BYTES).await;
        let granted_bytes = memory.admitted().await;
        let q = asked.with.q.numbers();
        call.result(&select(&scan, q, granted_bytes, |done, total| call.progress(done, total)).await?).await
    }
}

/// Makes passes over the selection until every wanted rank is known.
async fn select(
    scan: &Scan,
    q: &[f64],
    memory_bytes: u64,
    on_progress: impl Fn(u64, u64) + Send + Sync,
) -> Result<Percentiles> {
    let elements = scan.elements();
    let part_bytes = part_bytes(scan, memory_bytes / 2)?;
    let counters = memory_bytes / 2 / size_of::<u64>() as u64;
    let mut search = Search::new(counters);
    for pass in 0u64.. {
        let total = elements.saturating_mul((pass + 1).max(2));
        let on_pass_progress = |done| on_progress(elements.saturating_mul(pass).saturating_add(done), total);
        search = scan.fold(part_bytes, &[], search, Search::add, on_pass_progress).await?;
        if search.end_of_pass(q) {
            break;
        }
    }
    Ok(search.percentiles(q))
}

/// Returns the size of a part, in bytes, such that the stored elements of several parts and the values of one fit into
/// memory.
fn part_bytes(scan: &Scan, memory_bytes: u64) -> Result<u64> {
    let stored = scan.array()?.dtype.size_bytes() as u64;
    // Stored elements, decoded ones, and doubles.
    let bytes_each = PARTS_IN_MEMORY * stored + 2 * size_of::<f64>() as u64;
    Ok(memory_bytes / bytes_each * stored)
}

/// Keys that begin with the same bits.
#[derive(Clone, Debug)]
struct Bin {
    /// Number of smaller keys outside of the bin.
    before: u64,
    /// Number of keys in the bin.
    count: u64,
    /// Numbers of keys in the bin by their next bits.
    digits: Vec<u64>,
}

/// State of the search for the wanted ranks.
struct Search {
    /// Number of counters or keys that fit into memory.
    room: u64,
    /// Number of leading bits that the keys of a bin share.
    known_bits: u32,
    /// Number of bits by which this pass counts.
    digit_bits: u32,
    /// Bins by their leading bits.
    bins: BTreeMap<u64, Bin>,
    /// Keys of all bins, gathered in the last pass instead of counting, and sorted after it.
    gathered: Option<Vec<u64>>,
    /// Number of all keys.
    count: u64,
}

impl Search {
    fn new(room: u64) -> Self {
        let mut search =
            Self { room, known_bits: 0, digit_bits: 0, bins: BTreeMap::new(), gathered: None, count: 0 };
        search.bins.insert(0, Bin { before: 0, count: u64::MAX, digits: Vec::new() });
        search.begin_pass();
        search
    }

    /// Creates as many counters for the next pass as fit into memory.
    fn begin_pass(&mut self) {
        let each = (self.room / self.bins.len().max(1) as u64).max(2);
        self.digit_bits = each.ilog2().min(MOST_DIGIT_BITS).min(KEY_BITS - self.known_bits);
        for bin in self.bins.values_mut() {
            bin.digits = vec![0; 1 << self.digit_bits];
        }
    }

    fn add(&mut self, part: &ScanPart, array: &ArrayInfo) -> Result<()> {
        self.add_keys(part.values(array)?.into_iter().filter(|v| v.is_finite()).map(key_of));
        Ok(())
    }

    fn add_keys(&mut self, keys: impl Iterator<Item = u64>) {
        for key in keys {
            let Some(bin) = self.bins.get_mut(&leading(key, self.known_bits)) else { continue };
            match &mut self.gathered {
                Some(gathered) => gathered.push(key),
                None => bin.digits[digit(key, self.known_bits, self.digit_bits)] += 1,
            }
        }
    }

    /// Searches the ranks of `q`; returns true once all are known.
    fn end_of_pass(&mut self, q: &[f64]) -> bool {
        if let Some(gathered) = &mut self.gathered {
            gathered.sort_unstable();
            return true;
        }
        if self.known_bits == 0 {
            self.count = self.bins.values().flat_map(|bin| &bin.digits).sum();
        }
        let mut next = BTreeMap::new();
        for rank in ranks(q, self.count) {
            if let Some((leading, bin)) = self.narrow(rank) {
                next.insert(leading, bin);
            }
        }
        self.bins = next;
        self.known_bits += self.digit_bits;
        if self.known_bits == KEY_BITS || self.bins.is_empty() {
            return true;
        }
        let left = self.bins.values().map(|bin| bin.count).sum::<u64>();
        if left <= self.room {
            self.gathered = Some(Vec::with_capacity(usize::try_from(left).unwrap_or_default()));
            self.bins.values_mut().for_each(|bin| bin.digits = Vec::new());
        } else {
            self.begin_pass();
        }
        false
    }

    /// Returns the narrower bin that contains a rank, with its leading bits.
    fn narrow(&self, rank: u64) -> Option<(u64, Bin)> {
        let holds = |bin: &Bin| bin.before <= rank && rank - bin.before < bin.count;
        let (&leading, bin) = self.bins.iter().find(|(_, bin)| holds(bin))?;
        let mut before = bin.before;
        for (digit, &count) in bin.digits.iter().enumerate() {
            if rank - before < count {
                let leading = leading << self.digit_bits | digit as u64;
                return Some((leading, Bin { before, count, digits: Vec::new() }));
            }
            before += count;
        }
        None
    }

    /// Returns the value of a rank after the last pass.
    fn value(&self, rank: u64) -> Option<f64> {
        let mut sorted = self.gathered.as_deref().unwrap_or_default();
        for (&leading, bin) in &self.bins {
            let (keys, rest) = if self.gathered.is_some() {
                sorted.split_at(usize::try_from(bin.count).ok()?.min(sorted.len()))
            } else {
                (&[leading][..], &[][..])
            };
            sorted = rest;
            if bin.before <= rank && rank - bin.before < bin.count {
                let at = if self.gathered.is_some() { usize::try_from(rank - bin.before).ok()? } else { 0 };
                return keys.get(at).copied().map(value_of);
            }
        }
        None
    }

    fn percentiles(&self, q: &[f64]) -> Percentiles {
        let values = q.iter().map(|&q| {
            let (low, high, t) = place(q, self.count)?;
            Some(between(self.value(low)?, self.value(high)?, t))
        });
        Percentiles { values: values.collect(), count: self.count }
    }
}

/// Returns the two ranks between which a percentage lies among `count` values, and its position between them, 0 to 1.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "beyond 2^53 values numpy rounds likewise; not negative, not above count"
)]
fn place(q: f64, count: u64) -> Option<(u64, u64, f64)> {
    let last = count.checked_sub(1)?;
    let at = q / 100.0 * last as f64;
    let low = (at.floor() as u64).min(last);
    Some((low, (low + 1).min(last), at - at.floor()))
}

fn ranks(q: &[f64], count: u64) -> impl Iterator<Item = u64> {
    q.iter().filter_map(move |&q| place(q, count)).flat_map(|(low, high, _)| [low, high])
}

/// Interpolates linearly between two values, as numpy does.
fn between(low: f64, high: f64, t: f64) -> f64 {
    let step = high - low;
    if t < 0.5 { low + step * t } else { high - step * (1.0 - t) }
}

/// Converts a value to bits that are ordered as the values are; both zeros give the same bits.
fn key_of(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn value_of(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

/// Returns the first `bits` bits.
fn leading(key: u64, bits: u32) -> u64 {
    if bits == 0 { 0 } else { key >> (KEY_BITS - bits) }
}

/// Returns the `bits` bits after the first `known` bits.
#[expect(clippy::cast_possible_truncation, reason = "16 bits at most")]
fn digit(key: u64, known: u32, bits: u32) -> usize {
    (key << known >> (KEY_BITS - bits)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_values_are() {
        let values = [f64::MIN, -1.5, -f64::MIN_POSITIVE, 0.0, 5e-324, 1.0, 1.0000000000000002, f64::MAX];
        assert!(values.windows(2).all(|w| key_of(w[0]) < key_of(w[1])));
        assert!(values.iter().all(|&v| value_of(key_of(v)).to_bits() == v.to_bits()));
        assert_eq!(key_of(-0.0), key_of(0.0));
    }

    /// Returns percentiles of `values` with memory for `room` numbers, and the number of passes.
    fn percentiles(values: &[f64], q: &[f64], room: u64) -> (Vec<Option<f64>>, u32) {
        let mut search = Search::new(room);
        let mut passes = 0;
        loop {
            passes += 1;
            search.add_keys(values.iter().copied().map(key_of));
            if search.end_of_pass(q) {
                return (search.percentiles(q).values, passes);
            }
        }
    }

    fn index(rank: u64) -> usize {
        usize::try_from(rank).expect("a rank in memory")
    }

    #[test]
    fn selection_equals_sorting_for_any_amount_of_memory() {
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        let q = [0.0, 0.1, 25.0, 50.0, 62.5, 99.9, 100.0];
        for length in [0usize, 1, 2, 3, 1000] {
            for spread in [1u64, 10, u64::MAX] {
                let values: Vec<f64> = (0..length).map(|_| (random() % spread) as f64 / 3.0 - 1e8).collect();
                let mut sorted = values.clone();
                sorted.sort_by(f64::total_cmp);
                let expect: Vec<Option<f64>> = q
                    .iter()
                    .map(|&q| {
                        let (low, high, t) = place(q, length as u64)?;
                        Some(between(sorted[index(low)], sorted[index(high)], t))
                    })
                    .collect();
                for room in [2, 40, 4096, 1 << 20] {
                    let (found, passes) = percentiles(&values, &q, room);
                    assert_eq!(found, expect, "{length} values, room {room}");
                    assert!(passes <= 65);
                }
            }
        }
    }
}
