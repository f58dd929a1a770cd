//! The array that is read: a flat file whose every byte is known from its place, and the boxes it is read in.
//!
//! Its values cannot be compressed and no two rows are alike, so a byte at a wrong place never goes unnoticed.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use array::{AxisRange, Error, Result, Selection};

/// Bytes of a row: the last axis, and the unit of the random reads.
pub(super) const ROW_BYTES: usize = 4096;
/// Words of a row; a word is what the pattern gives.
const ROW_WORDS: u64 = ROW_BYTES as u64 / 8;

/// A 4-D array of bytes `[t, z, y, x]` in a flat file, with its description beside it.
pub(in super::super) struct Field {
    pub(in super::super) shape: [u64; 4],
    /// The bytes.
    pub(super) file: PathBuf,
    /// Description that `corridor serve` opens.
    pub(in super::super) description: PathBuf,
}

impl Field {
    /// 2.048 GB in 500,000 rows; quick: 41 MB in 10,000.
    pub(in super::super) fn write(folder: &Path, is_quick: bool) -> Result<Self> {
        let rows = if is_quick { [4, 50, 50] } else { [20, 100, 250] };
        let shape = [rows[0], rows[1], rows[2], ROW_BYTES as u64];
        let field = Self { shape, file: folder.join("field.bin"), description: folder.join("field.toml") };
        std::fs::write(&field.description, format!("file = 'field.bin'\nshape = {shape:?}\ndtype = 'u1'\n"))?;
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&field.file)?);
        for row in 0..field.rows() {
            out.write_all(&row_bytes(row))?;
        }
        out.flush()?;
        Ok(field)
    }

    /// A field without files.
    #[cfg(test)]
    pub(in super::super) fn unwritten(shape: [u64; 4]) -> Self {
        Self { shape, file: PathBuf::new(), description: PathBuf::new() }
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.shape[0] * self.shape[1] * self.shape[2]
    }

    /// The box of `count` rows from `first` on, where such a run of rows is a box.
    pub(super) fn rows_box(&self, first: u64, count: u64) -> Result<Selection> {
        let [_, depth, height, width] = self.shape;
        let plane = depth * height;
        let (t, z, y) = (first / plane, first / height % depth, first % height);
        let count = match count {
            n if n.is_multiple_of(plane) && first.is_multiple_of(plane) => [n / plane, depth, height],
            n if n < plane && n.is_multiple_of(height) && y == 0 && z + n / height <= depth => {
                [1, n / height, height]
            }
            n if y + n <= height => [1, 1, n],
            n => {
                return Err(Error::internal(format!("{n} rows from {first} are no box of {:?}", self.shape)));
            }
        };
        Ok(Selection::of_box(&[t, z, y, 0], &[count[0], count[1], count[2], width]))
    }

    /// Every row once, in pseudorandom order.
    pub(in super::super) fn shuffled_rows(&self) -> Vec<u64> {
        let mut rows: Vec<u64> = (0..self.rows()).collect();
        for last in (1..rows.len()).rev() {
            let other = mixed(last as u64 ^ 0x5eed) % (last as u64 + 1);
            rows.swap(last, usize::try_from(other).unwrap_or(last));
        }
        rows
    }

    /// A strided 4-D hyperslab of many short runs: every second step and so on, 256 bytes of each row.
    pub(super) fn hyperslab(&self) -> Result<Hyperslab> {
        let steps = [2, 4, 3];
        let mut ranges: Vec<AxisRange> = self.shape[..3]
            .iter()
            .zip(steps)
            .map(|(&size, step)| AxisRange { start: 0, count: size.div_ceil(step), step })
            .collect();
        ranges.push(AxisRange::contiguous(100, 256));
        let selection = Selection::new(ranges)?;
        let runs = selection.shape()[..3].iter().product();
        Ok(Hyperslab { selection, runs })
    }

    /// The bytes of `selection`, which has whole or cut rows.
    pub(in super::super) fn expected(&self, selection: &Selection) -> Vec<u8> {
        let [t, z, y, x] = [0, 1, 2, 3].map(|axis| selection.ranges()[axis]);
        let mut out = Vec::new();
        for row in (0..t.count * z.count * y.count).map(|i| {
            let (a, b, c) = (i / (z.count * y.count), i / y.count % z.count, i % y.count);
            (t.index(a) * self.shape[1] + z.index(b)) * self.shape[2] + y.index(c)
        }) {
            let bytes = row_bytes(row);
            out.extend((0..x.count).filter_map(|i| bytes.get(usize::try_from(x.index(i)).ok()?)));
        }
        out
    }
}

/// A selection of many runs.
pub(super) struct Hyperslab {
    pub(super) selection: Selection,
    /// Stretches of the file that it touches.
    pub(super) runs: u64,
}

/// Checks that `bytes` are the rows of these numbers, one after another.
pub(super) fn check_rows(bytes: &[u8], rows: impl IntoIterator<Item = u64>) -> Result<()> {
    let mut pieces = bytes.chunks(ROW_BYTES);
    for row in rows {
        if pieces.next() != Some(&row_bytes(row)[..]) {
            return Err(Error::corrupt(format!("expected the bytes of row {row}, found others")));
        }
    }
    if pieces.next().is_some() {
        return Err(Error::corrupt("expected the end of the rows, found more bytes"));
    }
    Ok(())
}

fn row_bytes(row: u64) -> [u8; ROW_BYTES] {
    let mut out = [0; ROW_BYTES];
    for (word, place) in (row * ROW_WORDS..).zip(out.chunks_exact_mut(8)) {
        place.copy_from_slice(&mixed(word).to_le_bytes());
    }
    out
}

/// The finalizer of `SplitMix64` (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) on the n-th state.
fn mixed(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_split_of_the_full_array_is_in_boxes() {
        let field = Field::unwritten([20, 100, 250, ROW_BYTES as u64]);
        for operations in [1, 10, 100, 1000, 10_000, 100_000, 500_000] {
            let each = field.rows() / operations;
            for first in (0..field.rows()).step_by(usize::try_from(each).unwrap()) {
                let selection = field.rows_box(first, each).unwrap();
                assert_eq!(selection.len(), Some(each * ROW_BYTES as u64));
            }
        }
        assert!(field.rows_box(249, 2).is_err());
    }

    #[test]
    fn a_wrong_or_missing_byte_is_found() {
        let field = Field::unwritten([1, 2, 3, ROW_BYTES as u64]);
        let mut bytes = field.expected(&field.rows_box(0, 6).unwrap());
        check_rows(&bytes, 0..6).unwrap();
        assert!(check_rows(&bytes, 0..5).is_err());
        assert!(check_rows(&bytes, [1, 0, 2, 3, 4, 5]).is_err());
        bytes[5 * ROW_BYTES + 17] ^= 1;
        assert!(check_rows(&bytes, 0..6).is_err());
    }

    #[test]
    fn the_hyperslab_has_many_runs() {
        let field = Field::unwritten([20, 100, 250, ROW_BYTES as u64]);
        let slab = field.hyperslab().unwrap();
        assert_eq!(slab.runs, 10 * 25 * 84);
        assert_eq!(slab.selection.len(), Some(slab.runs * 256));
    }
}
