//! One stream put in order again. QUIC's stack closes a connection of which an ordered stream has a thousand gaps, and a
//! long fat path with a little loss has more; so its pieces are taken as they come and wait here.

use std::collections::BTreeMap;

use bytes::Bytes;
use wire::{Error, Result};

/// Pieces of a stream by their place in it. What waits is bounded by whoever inserts.
#[derive(Default)]
pub(super) struct Reassembly {
    next_offset: u64,
    waiting: BTreeMap<u64, Bytes>,
}

impl Reassembly {
    /// Takes a piece. The stack gives each byte once.
    ///
    /// # Errors
    /// `Corrupt` for a piece that lies where there was one already.
    pub(super) fn insert(&mut self, offset: u64, bytes: Bytes) -> Result<()> {
        if offset < self.next_offset || self.waiting.contains_key(&offset) {
            return Err(Error::corrupt(format!(
                "expected new bytes of a stream, found offset {offset} again"
            )));
        }
        self.waiting.insert(offset, bytes);
        Ok(())
    }

    /// The next piece in order.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let entry = self.waiting.first_entry().filter(|first| *first.key() == self.next_offset)?;
        let bytes = entry.remove();
        self.next_offset += bytes.len() as u64;
        Some(bytes)
    }

    /// True when nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_any_order_come_out_in_order() {
        let text = Bytes::from((0..200_u8).collect::<Vec<_>>());
        let mut reassembly = Reassembly::default();
        for start in [150, 50, 100, 0] {
            reassembly.insert(start as u64, text.slice(start..start + 50)).unwrap();
        }
        assert!(reassembly.insert(100, text.slice(100..150)).is_err(), "a piece that is there already");
        let mut out = Vec::new();
        while let Some(piece) = reassembly.next() {
            out.extend_from_slice(&piece);
        }
        assert_eq!(out, text);
        assert!(reassembly.is_empty());
        assert!(reassembly.insert(0, text.slice(..1)).is_err(), "a piece that was taken already");
    }
}
