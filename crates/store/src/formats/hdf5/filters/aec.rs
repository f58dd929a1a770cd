//! Decoder of adaptive entropy coding (CCSDS 121.0-B), as szip uses it.
//!
//! Samples come in blocks, each with the identifier of its coding in front: uncompressed, split into a count of zero bits and
//! some low bits (Golomb-Rice), pairs (second extension), or nothing for blocks of zeros. Written after the standard; the available
//! crates refuse blocks of 4 samples, and decode some valid streams wrongly.

use array::{Error, Result};

/// Zero blocks coded as the rest of a segment of this many blocks.
const SEGMENT_BLOCKS: usize = 64;
/// Count of zero blocks that stands for all remaining blocks of a segment.
const REST_OF_SEGMENT: usize = 5;
/// Largest code of a pair of samples (second-extension option).
const MAX_PAIR: u64 = 90;

/// Parameters of the coding of samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct AecParameters {
    /// Bits of a sample, at most 24.
    pub(super) bits: u32,
    /// Samples of a block.
    pub(super) block: usize,
    /// Blocks between two samples that are stored as they are.
    pub(super) blocks: usize,
    /// Differences to the sample before are coded.
    pub(super) differences: bool,
}

fn bad(what: &str) -> Error {
    Error::corrupt(format!("expected samples by adaptive entropy coding, found {what}"))
}

impl AecParameters {
    /// Calls `each` with the first `count` samples.
    ///
    /// # Errors
    /// `Corrupt` if the bytes end too early or are no valid stream.
    pub(super) fn decode(self, packed: &[u8], count: usize, each: &mut dyn FnMut(u32)) -> Result<()> {
        let mut bits = BitReader { bytes: packed, at: 0 };
        let mut line = Vec::with_capacity(self.block * self.blocks);
        let mut left = count;
        while left > 0 {
            line.clear();
            while line.len() < (self.block * self.blocks).min(left) {
                self.block(&mut bits, &mut line)?;
            }
            if self.differences {
                self.add_up(&mut line);
            }
            line.iter().take(left).for_each(|&sample| each(sample));
            left = left.saturating_sub(line.len());
        }
        Ok(())
    }

    /// Reads one block, or a run of blocks of zeros.
    fn block(self, bits: &mut BitReader<'_>, line: &mut Vec<u32>) -> Result<()> {
        let kind_bits = match self.bits {
            17.. => 5,
            9..=16 => 4,
            _ => 3,
        };
        let kind = bits.take(kind_bits)?;
        // The first sample of a line has nothing to differ from.
        let is_reference = self.differences && line.is_empty();
        if kind == (1 << kind_bits) - 1 {
            for _ in 0..self.block {
                line.push(bits.take(self.bits)?);
            }
            return Ok(());
        }
        let is_pairs = kind == 0 && bits.take(1)? == 1;
        let start = line.len();
        if is_reference {
            line.push(bits.take(self.bits)?);
        }
        let coded = self.block - usize::from(is_reference);
        match kind {
            0 if is_pairs => self.pairs(bits, line, start + self.block),
            0 => {
                let zeros = self.zero_blocks(bits, start / self.block)? * self.block;
                line.resize(line.len() + zeros - usize::from(is_reference), 0);
                Ok(())
            }
            split => {
                let low = split - 1;
                for _ in 0..coded {
                    let high = bits.zeros()?;
                    let sample = high.checked_mul(1 << low).filter(|&n| n <= self.largest());
                    let sample = sample.and_then(|n| u32::try_from(n).ok());
                    line.push(sample.ok_or_else(|| bad("a sample that is too large"))?);
                }
                for sample in line.iter_mut().rev().take(coded).rev() {
                    *sample |= bits.take(low)?;
                }
                Ok(())
            }
        }
    }

    /// Two samples in one number: which pair of a sum, after all pairs of smaller sums.
    fn pairs(self, bits: &mut BitReader<'_>, line: &mut Vec<u32>, end: usize) -> Result<()> {
        while line.len() < end {
            let number = bits.zeros()?;
            if number > MAX_PAIR {
                return Err(bad("a pair that is too large"));
            }
            let number = u32::try_from(number).unwrap_or(0);
            let mut sum = 0;
            while (sum + 1) * (sum + 2) / 2 <= number {
                sum += 1;
            }
            let second = number - sum * (sum + 1) / 2;
            if (end - line.len()).is_multiple_of(2) {
                line.push(sum - second);
            }
            line.push(second);
        }
        Ok(())
    }

    fn zero_blocks(self, bits: &mut BitReader<'_>, before: usize) -> Result<usize> {
        let number = usize::try_from(bits.zeros()?).unwrap_or(usize::MAX).saturating_add(1);
        let left = self.blocks.saturating_sub(before);
        let count = match number {
            REST_OF_SEGMENT => left.min(SEGMENT_BLOCKS - before % SEGMENT_BLOCKS),
            n if n > REST_OF_SEGMENT => n - 1,
            n => n,
        };
        if count > left { Err(bad("more zeros than a line has")) } else { Ok(count) }
    }

    fn largest(self) -> u64 {
        (1 << self.bits) - 1
    }

    /// Computes samples from folded differences: small ones of both signs first, then those that only one sign can have.
    fn add_up(self, line: &mut [u32]) {
        let largest = u32::try_from(self.largest()).unwrap_or(u32::MAX);
        let Some((&mut first, rest)) = line.split_first_mut() else { return };
        let mut sample = first;
        for difference in rest {
            let folded = *difference;
            let room = sample.min(largest - sample.min(largest));
            let half = folded.div_ceil(2);
            sample = if half > room {
                // Beyond the nearer end: only the other side is possible.
                if sample > largest / 2 { largest.saturating_sub(folded) } else { folded }
            } else if folded.is_multiple_of(2) {
                sample + half
            } else {
                sample - half
            };
            *difference = sample;
        }
    }
}

/// Reader of the bits of bytes, the highest bit first.
struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    /// Returns the next 57 or more bits in the highest bits; zeros beyond the end.
    fn window(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let word = rest.first_chunk::<8>().copied().unwrap_or_else(|| {
            let mut word = [0; 8];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            word
        });
        u64::from_be_bytes(word) << (self.at % 8)
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        self.at += count;
        if self.at > self.bytes.len() * 8 { Err(bad("its end too early")) } else { Ok(()) }
    }

    /// The next `count` bits as a number, at most 32.
    fn take(&mut self, count: u32) -> Result<u32> {
        if count == 0 {
            return Ok(0);
        }
        let bits = self.window() >> (64 - count);
        self.skip(count as usize)?;
        Ok(u32::try_from(bits).unwrap_or(0))
    }

    /// Counts the zero bits before the next one bit, and skips that bit.
    fn zeros(&mut self) -> Result<u64> {
        const SURE: u32 = 56;
        let mut count = 0;
        loop {
            let zeros = self.window().leading_zeros();
            if zeros < SURE {
                self.skip(zeros as usize + 1)?;
                return Ok(count + u64::from(zeros));
            }
            count += u64::from(SURE);
            self.skip(SURE as usize)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_differences_come_back() {
        let coding = AecParameters { bits: 3, block: 8, blocks: 1, differences: true };
        // From 2, of 0 to 7: 2, 1, 3, 0, 4, then only upwards: 5, 6, 7.
        for (folded, sample) in [2, 1, 3, 0, 4, 5, 6, 7].into_iter().enumerate() {
            let mut line = [2, u32::try_from(folded).unwrap()];
            coding.add_up(&mut line);
            assert_eq!(line[1], sample, "{folded}");
            let mut mirrored = [5, u32::try_from(folded).unwrap()];
            coding.add_up(&mut mirrored);
            let expected = [5, 4, 6, 3, 7, 2, 1, 0][folded];
            assert_eq!(mirrored[1], expected, "{folded}");
        }
    }

    #[test]
    fn any_bytes_end() {
        let mut seed = 5u64;
        for round in 0..2000 {
            let bytes: Vec<u8> = (0..round % 60)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    u8::try_from(seed >> 56).unwrap() & u8::try_from(seed >> 48 & 255).unwrap()
                })
                .collect();
            let bits = [1, 8, 12, 16, 24][round % 5];
            let coding = AecParameters { bits, block: 8, blocks: 4, differences: round % 2 == 0 };
            let mut found = 0;
            let done = coding.decode(&bytes, 100, &mut |_| found += 1);
            assert!(done.is_err() || found == 100);
        }
    }
}
