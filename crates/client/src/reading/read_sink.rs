//! Receives the bulk data of a response: pieces of a result in C order, each written to its location as it arrives, in
//! any order. Missing, repeated or misplaced pieces are errors. Compressed pieces are decompressed first.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{Error, Priority, Region, Result};
use bytes::Bytes;
use link::{Item, ReadSink, Reply};
use parking_lot::Mutex;
use wire::compression::Compressed;
use wire::ops::{ReadBody, ReadPiece, Rows};

use crate::reading::decompression::{DecompressionLimit, DecompressionQueue, PendingDecompression, Tally};

/// Maximum number of separate byte ranges of a result that have arrived before the gaps between them close.
const MAX_STRETCHES: usize = 65_536;

/// A result that is being received.
pub(crate) struct SelectionSink {
    into: Arc<Mutex<Region>>,
    size_bytes: u64,
    items: BTreeMap<u32, PartialReadItem>,
    /// Byte ranges whose items have begun to arrive.
    begun: ByteRanges,
    /// Byte ranges that have arrived completely, if a caller needs them.
    done: Option<ArrivedBytes>,
    tally: Arc<Tally>,
    /// Decompresses pieces on other threads; without it the receiving task decompresses each piece itself.
    restoring: Option<Arc<DecompressionQueue>>,
}

/// Byte ranges of a result that have arrived completely; the rest can be requested elsewhere.
#[derive(Clone, Default)]
pub(crate) struct ArrivedBytes(Arc<Mutex<ByteRanges>>);

impl ArrivedBytes {
    /// Returns whether all of this byte range has arrived.
    pub(crate) fn has(&self, start: u64, bytes: u64) -> bool {
        self.0.lock().has(start, bytes)
    }

    /// Adds a byte range; it overlaps no other, which was checked when it began to arrive.
    fn add(&self, start: u64, bytes: u64) -> Result<()> {
        self.0.lock().add(start, bytes)
    }
}

/// An item whose bulk data have not arrived completely.
enum PartialReadItem {
    Plain {
        /// Offset of its first byte in the result.
        start: u64,
        bytes: u64,
    },
    Compressed {
        rows: Rows,
        how: Compressed,
        carried: Vec<u8>,
    },
}

impl SelectionSink {
    /// Receives into a region, which may have gaps.
    pub(crate) fn new(into: Region) -> Self {
        Self::counted(into, Arc::default())
    }

    /// Receives into a region as [`new`](Self::new) does, and counts the bytes in `tally`.
    pub(crate) fn counted(into: Region, tally: Arc<Tally>) -> Self {
        Self {
            size_bytes: into.size_bytes() as u64,
            into: Arc::new(Mutex::new(into)),
            items: BTreeMap::new(),
            begun: ByteRanges::default(),
            done: None,
            tally,
            restoring: None,
        }
    }

    /// Returns this sink with decompression on other threads: the result is complete only when the second value has
    /// ended.
    pub(crate) fn restoring(
        self,
        priority: Priority,
        limit: &DecompressionLimit,
    ) -> (Self, PendingDecompression) {
        let (restoring, restored) = DecompressionQueue::new(priority, limit);
        (Self { restoring: Some(restoring), ..self }, restored)
    }

    /// Returns this sink, and a record of the byte ranges that have arrived completely, which outlives the sink.
    pub(crate) fn recording_arrivals(self) -> (Self, ArrivedBytes) {
        let done = ArrivedBytes::default();
        (Self { done: Some(done.clone()), ..self }, done)
    }

    /// Records a byte range that has arrived completely.
    fn record_arrival(&self, start: u64, bytes: u64) -> Result<()> {
        self.done.as_ref().map_or(Ok(()), |done| done.add(start, bytes))
    }

    /// Receives an item, whose body contains the location of its bulk data, or a part of its bulk data.
    pub(crate) fn take(&mut self, reply: Reply) -> Result<()> {
        match reply {
            Reply::Item { item, body, bulk_bytes } => self.item(item, body, bulk_bytes),
            Reply::Piece { item, offset, bytes, complete } => self.piece(item, offset, &bytes, complete),
        }
    }

    /// Checks that all of the result has arrived.
    pub(crate) fn check_whole(&self) -> Result<()> {
        self.begun.check_whole(self.size_bytes)
    }
}

impl ReadSink for SelectionSink {
    fn item(&mut self, item: u32, body: Bytes, bulk_bytes: u64) -> Result<()> {
        if bulk_bytes == 0 {
            return Err(Error::corrupt("expected data in every piece, found an empty one"));
        }
        match ReadPiece::decode(body)? {
            ReadPiece::Plain(ReadBody { offset_bytes }) => {
                self.begun.add(offset_bytes, bulk_bytes)?;
                self.tally.add(bulk_bytes, bulk_bytes);
                self.items.insert(item, PartialReadItem::Plain { start: offset_bytes, bytes: bulk_bytes });
            }
            ReadPiece::Compressed(rows, how) => self.open_compressed(item, rows, how, bulk_bytes)?,
        }
        Ok(())
    }

    fn piece(&mut self, item: u32, offset: u64, bytes: &[u8], complete: bool) -> Result<()> {
        let open =
            self.items.get_mut(&item).ok_or_else(|| Error::corrupt("expected a piece of an open item"))?;
        match open {
            PartialReadItem::Plain { start, .. } => {
                self.into.lock().write_at(place(start.saturating_add(offset))?, bytes)?;
            }
            PartialReadItem::Compressed { carried, .. } => put(carried, offset, bytes)?,
        }
        if !complete {
            return Ok(());
        }
        match self.items.remove(&item) {
            Some(PartialReadItem::Plain { start, bytes }) => self.record_arrival(start, bytes),
            Some(PartialReadItem::Compressed { rows, how, carried }) => {
                let row_bytes = u64::from(how.plain_bytes) / rows.count();
                self.restore(rows.clone(), how, carried)?;
                // Readers of the record wait until decompression has ended.
                rows.into_iter().try_for_each(|start| self.record_arrival(start, row_bytes))
            }
            None => Ok(()),
        }
    }

    fn whole(&mut self, whole: Item) -> Result<()> {
        let size_bytes = whole.bulk.len() as u64;
        let ReadPiece::Plain(ReadBody { offset_bytes }) = ReadPiece::decode(whole.body.clone())? else {
            self.item(0, whole.body, size_bytes)?;
            return self.piece(0, 0, &whole.bulk, true);
        };
        self.begun.add(offset_bytes, size_bytes)?;
        self.tally.add(size_bytes, size_bytes);
        self.into.lock().write_at(place(offset_bytes)?, &whole.bulk)?;
        self.record_arrival(offset_bytes, size_bytes)
    }

    fn takes_any_order(&self) -> bool {
        true
    }

    fn finish(&mut self) -> Result<()> {
        self.check_whole()
    }
}

/// Writes bulk data, which may arrive in any order, to its location in the item. It lies within the announced size.
pub(crate) fn put(carried: &mut Vec<u8>, offset: u64, bytes: &[u8]) -> Result<()> {
    let start = place(offset)?;
    if start == carried.len() {
        carried.extend_from_slice(bytes);
        return Ok(());
    }
    let end = start.checked_add(bytes.len()).ok_or_else(outside)?;
    if end > carried.len() {
        carried.resize(end, 0);
    }
    carried[start..end].copy_from_slice(bytes);
    Ok(())
}

impl SelectionSink {
    /// Begins an item whose bulk data are kept until they are complete. All kept data are smaller than the result.
    fn open_compressed(&mut self, item: u32, rows: Rows, how: Compressed, bulk_bytes: u64) -> Result<()> {
        let plain_bytes = u64::from(how.plain_bytes);
        if bulk_bytes >= plain_bytes {
            return Err(Error::corrupt(format!(
                "expected fewer than {plain_bytes} bytes of compressed data for {plain_bytes} bytes, found {bulk_bytes}"
            )));
        }
        let row_bytes = plain_bytes / rows.count();
        for start in rows.clone() {
            if start.checked_add(row_bytes).is_none_or(|end| end > self.size_bytes) {
                return Err(outside());
            }
            self.begun.add(start, row_bytes)?;
        }
        self.tally.add(plain_bytes, bulk_bytes);
        let carried = Vec::with_capacity(usize::try_from(bulk_bytes).unwrap_or(0));
        self.items.insert(item, PartialReadItem::Compressed { rows, how, carried });
        Ok(())
    }

    fn restore(&self, rows: Rows, how: Compressed, carried: Vec<u8>) -> Result<()> {
        let into = Arc::clone(&self.into);
        let carried_bytes = carried.len();
        let write = move || {
            let of = |e: Error| e.context(of_result(&rows));
            let data = how.restore(&carried).map_err(of)?;
            let row_bytes = data.len() / usize::try_from(rows.count()).unwrap_or(usize::MAX).max(1);
            let mut into = into.lock();
            let mut rows = rows.into_iter().zip(data.chunks_exact(row_bytes.max(1)));
            rows.try_for_each(|(start, row)| into.write_at(place(start)?, row))
        };
        match &self.restoring {
            Some(restoring) => restoring.restore(carried_bytes, write),
            None => write(),
        }
    }
}

/// Describes the location for an error message: a server passes chunks on as they are stored, so the stored data may be
/// corrupt.
fn of_result(rows: &Rows) -> String {
    let at = rows.clone().into_iter().next().unwrap_or_default();
    format!("the data at byte {at} of the result, as stored or compressed by the server")
}

fn place(start: u64) -> Result<usize> {
    usize::try_from(start).map_err(|_| outside())
}

fn outside() -> Error {
    Error::corrupt("expected a piece inside the result, found one beyond")
}

/// Byte ranges of a result that are present. Most results arrive in order without gaps: only the end is kept for them.
#[derive(Debug, Default)]
struct ByteRanges {
    /// All bytes before this one are present.
    start_bytes: u64,
    /// Further ranges, from first byte to the byte after the last, without overlap.
    apart: BTreeMap<u64, u64>,
}

impl ByteRanges {
    fn add(&mut self, start: u64, length: u64) -> Result<()> {
        let overlaps =
            || Error::corrupt(format!("expected pieces that do not overlap, found a second one at {start}"));
        let end = start.checked_add(length).ok_or_else(overlaps)?;
        if length == 0 {
            return Ok(());
        }
        let before = self.apart.range(..=start).next_back().map(|(&s, &e)| (s, e));
        let after = self.apart.range(start..).next().map(|(&s, &e)| (s, e));
        let meets = before.is_some_and(|(_, e)| e > start) || after.is_some_and(|(s, _)| s < end);
        if start < self.start_bytes || meets {
            return Err(overlaps());
        }
        let end = after.filter(|(s, _)| *s == end).map_or(end, |(s, e)| {
            self.apart.remove(&s);
            e
        });
        match before.filter(|(_, e)| *e == start) {
            _ if start == self.start_bytes => self.start_bytes = end,
            Some((s, _)) => drop(self.apart.insert(s, end)),
            None => drop(self.apart.insert(start, end)),
        }
        if self.apart.len() > MAX_STRETCHES {
            return Err(Error::corrupt(format!(
                "expected at most {MAX_STRETCHES} separate pieces, found more"
            )));
        }
        Ok(())
    }

    fn has(&self, start: u64, length: u64) -> bool {
        let Some(end) = start.checked_add(length) else { return false };
        let apart = self.apart.range(..=start).next_back().is_some_and(|(_, &e)| end <= e);
        end <= self.start_bytes || apart
    }

    fn check_whole(&self, size_bytes: u64) -> Result<()> {
        if self.apart.is_empty() && self.start_bytes == size_bytes {
            return Ok(());
        }
        let there = self.start_bytes + self.apart.iter().map(|(s, e)| e - s).sum::<u64>();
        Err(Error::corrupt(format!("expected {size_bytes} bytes, found {there} when the answer ended")))
    }
}

#[cfg(test)]
mod tests {
    use array::{ErrorKind, Target};
    use wire::compression::{Algorithm, CompressionMethod};

    use super::*;

    /// Two planes of three rows of 64 bytes each, of a result of 1,000 bytes.
    fn rows() -> Rows {
        Rows { offset_bytes: 10, axes: vec![(2, 500), (3, 100)] }
    }

    fn compressed(data: &[u8]) -> (Compressed, Vec<u8>) {
        CompressionMethod { algorithm: Algorithm::Lz4, level: 1, width: 4 }
            .compress(data)
            .expect("zeros and ones")
    }

    #[test]
    fn compressed_rows_are_written_to_their_offsets() {
        let data: Vec<u8> = (0..384_u16).map(|n| u8::try_from(n / 64 + 1).unwrap()).collect();
        let (how, carried) = compressed(&data);
        let (target, region) = Target::new(&[1000], 1).unwrap();
        let mut sink = SelectionSink::new(region);
        let body = ReadPiece::Compressed(rows(), how).encode();
        sink.item(0, body.clone(), carried.len() as u64).unwrap();
        assert!(sink.item(1, body, carried.len() as u64).is_err(), "the same rows twice");
        let (first, second) = carried.split_at(5);
        // In any order.
        sink.piece(0, 5, second, false).unwrap();
        sink.piece(0, 0, first, true).unwrap();
        assert!(sink.check_whole().is_err(), "the rest is missing");
        drop(sink);
        let bytes = target.into_vec().unwrap();
        for (row, start) in rows().into_iter().map(|n| usize::try_from(n).unwrap()).enumerate() {
            assert!(bytes[start..start + 64].iter().all(|&b| usize::from(b) == row + 1), "row {row}");
        }
        assert_eq!(bytes.iter().filter(|&&b| b > 0).count(), 384);
    }

    #[test]
    fn malformed_compressed_pieces_are_corrupt() {
        let (how, carried) = compressed(&[0; 384]);
        let try_it = |rows: Rows, how: Compressed, carried: &[u8]| {
            let (_target, region) = Target::new(&[1000], 1).unwrap();
            let mut sink = SelectionSink::new(region);
            sink.item(0, ReadPiece::Compressed(rows, how).encode(), carried.len() as u64)?;
            sink.piece(0, 0, carried, true)
        };
        assert!(try_it(rows(), how, &carried).is_ok());
        let beyond = Rows { offset_bytes: 300, ..rows() };
        let nowhere = Rows { offset_bytes: u64::MAX, ..rows() };
        let larger = Compressed { plain_bytes: 390, ..how };
        let bomb = Compressed { plain_bytes: 60 << 20, ..how };
        for (rows, how) in [(beyond, how), (nowhere, how), (rows(), larger), (Rows::one(0), bomb)] {
            assert_eq!(
                try_it(rows.clone(), how, &carried).unwrap_err().kind(),
                ErrorKind::Corrupt,
                "{rows:?}"
            );
        }
        assert!(try_it(rows(), how, &[7; 384]).is_err(), "not smaller than the decompressed data");
        assert!(try_it(rows(), how, &[7; 9]).is_err(), "not LZ4");
    }

    /// A server could otherwise send empty pieces without end.
    #[test]
    fn pieces_without_data_are_corrupt() {
        let kind = |result: Result<()>| result.err().map(|error| error.kind());
        let body = ReadBody { offset_bytes: 0 }.encode();
        let (_target, region) = Target::new(&[8], 1).unwrap();
        let mut sink = SelectionSink::new(region);
        let empty = || Reply::Item { item: 0, body: body.clone(), bulk_bytes: 0 };
        assert_eq!(kind(sink.take(empty())), Some(ErrorKind::Corrupt));
        assert_eq!(kind(sink.item(0, body.clone(), 0)), Some(ErrorKind::Corrupt));
        // A complete response without data is not enough either.
        let whole = sink.whole(Item { body: body.clone(), bulk: Bytes::new() });
        assert_eq!(kind(whole.and_then(|()| sink.finish())), Some(ErrorKind::Corrupt));
    }

    #[test]
    fn pieces_may_arrive_in_any_order() {
        let mut s = ByteRanges::default();
        for (start, length) in [(4, 4), (0, 4), (12, 2), (8, 4)] {
            s.add(start, length).unwrap();
        }
        assert!(s.check_whole(14).is_ok());
        assert!(s.check_whole(15).is_err());
        assert!(s.apart.is_empty(), "joined ranges are not kept");
    }

    #[test]
    fn byte_ranges_that_have_arrived_are_known() {
        let mut s = ByteRanges::default();
        for (start, length) in [(0, 4), (8, 4)] {
            s.add(start, length).unwrap();
        }
        for (start, length, is_there) in
            [(0, 4, true), (1, 2, true), (2, 3, false), (8, 4, true), (9, 3, true), (7, 2, false)]
        {
            assert_eq!(s.has(start, length), is_there, "{start}+{length}");
        }
        assert!(!s.has(11, 2) && !s.has(u64::MAX, 2));
    }

    #[test]
    fn only_complete_items_are_recorded_as_arrived() {
        let (_target, region) = Target::new(&[8], 1).unwrap();
        let (mut sink, done) = SelectionSink::new(region).recording_arrivals();
        sink.item(0, ReadBody { offset_bytes: 0 }.encode(), 8).unwrap();
        sink.piece(0, 0, &[1; 6], false).unwrap();
        assert!(!done.has(0, 4));
        sink.piece(0, 6, &[1; 2], true).unwrap();
        drop(sink);
        assert!(done.has(0, 8));
    }

    #[test]
    fn overlaps_and_gaps_are_corrupt() {
        let mut s = ByteRanges::default();
        s.add(4, 4).unwrap();
        for (start, length) in [(4, 4), (0, 5), (7, 1), (0, 100), (u64::MAX, 1)] {
            assert_eq!(s.add(start, length).unwrap_err().kind(), ErrorKind::Corrupt, "{start}+{length}");
        }
        assert!(s.check_whole(8).is_err());
    }
}
