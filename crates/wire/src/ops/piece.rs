//! Pieces of a read: the bodies of `read` and `read_block` with a description of their compression. Only
//! clients that can restore the bulk get compressed items.

use array::{Error, MAX_AXES, Result};
use bytes::Bytes;

use super::{BlockBody, ReadBody};
use crate::compression::Compressed;
use crate::frames::codec::{ByteReader, ByteWriter};
use crate::limits::MAX_PIECE_ROWS;

/// Positions of a piece's bytes in the C-order result: rows of equal length, one after another in the piece,
/// at constant strides in the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Offset of the first row in the result, bytes.
    pub offset_bytes: u64,
    /// Number of rows and their stride in the result in bytes, per axis, the slowest first. Empty: one row.
    pub axes: Vec<(u64, u64)>,
}

impl Rows {
    /// Creates a single row.
    #[must_use]
    pub fn one(offset_bytes: u64) -> Self {
        Self { offset_bytes, axes: Vec::new() }
    }

    /// Computes the rows of a box in the C-order result of `shape`, and the bytes of each. The box begins at
    /// `start` and has `counts` elements per axis; its rows are cut into equal parts.
    #[must_use]
    pub fn of_box(start: &[u64], counts: &[u64], shape: &[u64], item_bytes: usize) -> (u64, Self) {
        // The last axis that is not complete, and all axes after it.
        let outer = (0..counts.len()).rev().find(|&axis| counts[axis] < shape[axis]).unwrap_or(0);
        let item = item_bytes as u64;
        let stride = |axis: usize| shape[axis + 1..].iter().fold(item, |n, &v| n.saturating_mul(v));
        let strides: Vec<u64> = (0..counts.len()).map(stride).collect();
        let first: u64 = start.iter().zip(&strides).map(|(s, stride)| s.saturating_mul(*stride)).sum();
        let row_bytes = counts[outer..].iter().fold(item, |n, &v| n.saturating_mul(v));
        let axes = counts.iter().copied().zip(strides).take(outer).collect();
        (row_bytes, Self { offset_bytes: first, axes })
    }

    /// Number of rows of all axes.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.axes.iter().fold(1, |n, (count, _)| n.saturating_mul(*count))
    }
}

impl IntoIterator for Rows {
    type Item = u64;
    type IntoIter = RowOffsets;

    fn into_iter(self) -> RowOffsets {
        RowOffsets { rows: self, next: 0 }
    }
}

/// Offsets of the rows in the result, in the order of the piece, bytes.
#[derive(Clone, Debug)]
pub struct RowOffsets {
    rows: Rows,
    next: u64,
}

impl Iterator for RowOffsets {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.next >= self.rows.count() {
            return None;
        }
        let mut rest = self.next;
        self.next += 1;
        let axes = self.rows.axes.iter().rev();
        Some(axes.fold(self.rows.offset_bytes, |at, (count, stride)| {
            let along = rest % count;
            rest /= count;
            at.saturating_add(along.saturating_mul(*stride))
        }))
    }
}

/// Body of an item of `read`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadPiece {
    /// The bulk is a run of the result.
    Plain(ReadBody),
    /// The restored bulk consists of rows of the result, equally long.
    Compressed(Rows, Compressed),
}

impl ReadPiece {
    /// Encodes the body.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let (rows, compressed) = match self {
            Self::Plain(body) => return body.encode(),
            Self::Compressed(rows, compressed) => (rows, compressed),
        };
        let mut w = ByteWriter::new();
        w.u64(rows.offset_bytes);
        compressed.encode(&mut w);
        // Axes of an array, which are 16 at most.
        w.u8(u8::try_from(rows.axes.len()).unwrap_or(u8::MAX));
        for (count, stride) in &rows.axes {
            w.varint(*count).varint(*stride);
        }
        w.finish()
    }

    /// Decodes a body.
    ///
    /// # Errors
    /// `Corrupt` when truncated, of an unknown compression, or with invalid rows.
    pub fn decode(body: Bytes) -> Result<Self> {
        let mut r = ByteReader::new(body);
        let offset_bytes = r.u64("offset")?;
        if r.is_empty() {
            return Ok(Self::Plain(ReadBody { offset_bytes }));
        }
        let compressed = Compressed::decode(&mut r)?;
        let axes = r.u8("axes")?;
        if usize::from(axes) > MAX_AXES {
            return Err(Error::corrupt(format!("expected at most {MAX_AXES} axes, found {axes}")));
        }
        let axis = |_| Ok((r.varint("rows")?, r.varint("stride")?));
        let rows = Rows { offset_bytes, axes: (0..axes).map(axis).collect::<Result<_>>()? };
        let count = rows.count();
        if count == 0 || count > MAX_PIECE_ROWS || !u64::from(compressed.plain_bytes).is_multiple_of(count) {
            return Err(Error::corrupt(format!(
                "expected 1 to {MAX_PIECE_ROWS} equal rows of {} bytes together, found {count}",
                compressed.plain_bytes
            )));
        }
        Ok(Self::Compressed(rows, compressed))
    }
}

impl BlockBody {
    /// Encodes a body whose bulk is compressed or not.
    #[must_use]
    pub fn encode_with(&self, compressed: Option<Compressed>) -> Bytes {
        let mut w = ByteWriter::new();
        w.raw(&self.encode());
        if let Some(compressed) = compressed {
            compressed.encode(&mut w);
        }
        w.finish()
    }

    /// Decodes a body, with the description of its bulk's compression.
    ///
    /// # Errors
    /// The errors of [`decode`](Self::decode), and `Corrupt` for an unknown compression.
    pub fn decode_with(body: Bytes) -> Result<(Self, Option<Compressed>)> {
        let mut r = ByteReader::new(body);
        let this = Self::read(&mut r)?;
        let compressed = if r.is_empty() { None } else { Some(Compressed::decode(&mut r)?) };
        Ok((this, compressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compression::Algorithm;

    #[test]
    fn rows_lie_where_they_are_said_to() {
        let rows = Rows { offset_bytes: 7, axes: vec![(2, 1000), (3, 10)] };
        assert_eq!(rows.count(), 6);
        assert_eq!(rows.into_iter().collect::<Vec<_>>(), [7, 17, 27, 1007, 1017, 1027]);
        assert_eq!(Rows::one(5).into_iter().collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn rows_that_cannot_be_are_corrupt() {
        let compressed = Compressed { algorithm: Algorithm::Zstd, width: 4, plain_bytes: 600 };
        let body = |axes| ReadPiece::Compressed(Rows { offset_bytes: 0, axes }, compressed).encode();
        assert!(ReadPiece::decode(body(vec![(2, 1000), (3, 10)])).is_ok());
        for axes in [vec![(0, 10)], vec![(7, 100)], vec![(1 << 20, 1)], vec![(u64::MAX, 1), (u64::MAX, 1)]] {
            assert!(ReadPiece::decode(body(axes.clone())).is_err(), "{axes:?}");
        }
    }
}
