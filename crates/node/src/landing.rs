//! Where the bulk of an answer lands: pieces of a C-order result, each written to its place as it comes, in any order.
//! Nothing that is missing, comes twice or lies outside goes unnoticed.

use std::collections::BTreeMap;

use array::{Error, Region, Result};
use bytes::Bytes;
use link::{Receiver, Reply};
use wire::ops::ReadBody;

/// Separate stretches of a result that may be there before the gaps between them close.
const MAX_STRETCHES: usize = 65_536;

/// A result that is being received.
pub(crate) struct Landing {
    into: Region,
    /// Where the bulk of each open item begins.
    items: BTreeMap<u32, u64>,
    there: Stretches,
}

impl Landing {
    /// Into a region, which may have gaps.
    pub(crate) fn new(into: Region) -> Self {
        Self { into, items: BTreeMap::new(), there: Stretches::default() }
    }

    /// An item, whose body says where its bulk belongs, or some of its bulk.
    pub(crate) fn take(&mut self, reply: Reply) -> Result<()> {
        match reply {
            Reply::Item { item, body, bulk_bytes } => self.item(item, body, bulk_bytes),
            Reply::Piece { item, offset, bytes, complete } => self.piece(item, offset, &bytes, complete),
        }
    }

    /// That all of it has come.
    pub(crate) fn check_whole(&self) -> Result<()> {
        self.there.check_whole(self.into.size_bytes() as u64)
    }
}

impl Receiver for Landing {
    fn item(&mut self, item: u32, body: Bytes, bulk_bytes: u64) -> Result<()> {
        let start = ReadBody::decode(body)?.offset_bytes;
        self.there.add(start, bulk_bytes)?;
        if bulk_bytes > 0 {
            self.items.insert(item, start);
        }
        Ok(())
    }

    fn piece(&mut self, item: u32, offset: u64, bytes: &[u8], complete: bool) -> Result<()> {
        let start =
            self.items.get(&item).ok_or_else(|| Error::corrupt("expected a piece of an open item"))?;
        let at = start.checked_add(offset).and_then(|n| usize::try_from(n).ok());
        let at = at.ok_or_else(|| Error::corrupt("expected a piece inside the result"))?;
        self.into.write_at(at, bytes)?;
        if complete {
            self.items.remove(&item);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.check_whole()
    }
}

/// Which stretches of a result are there: start to end, without overlap.
#[derive(Debug, Default)]
struct Stretches(BTreeMap<u64, u64>);

impl Stretches {
    fn add(&mut self, start: u64, length: u64) -> Result<()> {
        let overlaps =
            || Error::corrupt(format!("expected pieces that do not overlap, found a second one at {start}"));
        let end = start.checked_add(length).ok_or_else(overlaps)?;
        if length == 0 {
            return Ok(());
        }
        let before = self.0.range(..=start).next_back().map(|(&s, &e)| (s, e));
        let after = self.0.range(start..).next().map(|(&s, &e)| (s, e));
        if before.is_some_and(|(_, e)| e > start) || after.is_some_and(|(s, _)| s < end) {
            return Err(overlaps());
        }
        let mut joined = (start, end);
        if let Some((s, _)) = before.filter(|(_, e)| *e == start) {
            joined.0 = s;
        }
        if let Some((s, e)) = after.filter(|(s, _)| *s == end) {
            self.0.remove(&s);
            joined.1 = e;
        }
        self.0.insert(joined.0, joined.1);
        if self.0.len() > MAX_STRETCHES {
            return Err(Error::corrupt(format!(
                "expected at most {MAX_STRETCHES} separate pieces, found more"
            )));
        }
        Ok(())
    }

    fn check_whole(&self, size_bytes: u64) -> Result<()> {
        if size_bytes == 0 && self.0.is_empty() {
            return Ok(());
        }
        if self.0.len() == 1 && self.0.get(&0) == Some(&size_bytes) {
            return Ok(());
        }
        let there: u64 = self.0.iter().map(|(s, e)| e - s).sum();
        Err(Error::corrupt(format!("expected {size_bytes} bytes, found {there} when the answer ended")))
    }
}

#[cfg(test)]
mod tests {
    use array::ErrorKind;

    use super::*;

    #[test]
    fn pieces_in_any_order_make_a_whole() {
        let mut s = Stretches::default();
        for (start, length) in [(4, 4), (0, 4), (12, 2), (8, 4)] {
            s.add(start, length).unwrap();
        }
        assert!(s.check_whole(14).is_ok());
        assert!(s.check_whole(15).is_err());
    }

    #[test]
    fn overlaps_and_gaps_are_corrupt() {
        let mut s = Stretches::default();
        s.add(4, 4).unwrap();
        for (start, length) in [(4, 4), (0, 5), (7, 1), (0, 100), (u64::MAX, 1)] {
            assert_eq!(s.add(start, length).unwrap_err().kind(), ErrorKind::Corrupt, "{start}+{length}");
        }
        assert!(s.check_whole(8).is_err());
    }
}
