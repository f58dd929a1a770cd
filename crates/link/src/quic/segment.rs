//! A lane crosses as segments of 512 KiB, each a stream of its own: QUIC's stack ends a connection of which one stream
//! has a thousand gaps, as a long fat path with a burst of losses easily has while its receiver is busy. A segment is too
//! short for that: it has 460 packets of the smallest size that every path carries, however late it is read.
//!
//! ```text
//! segment: lane u8 · number u32 · bytes of the lane       all of it SEGMENT_BYTES long, or shorter: then the lane ends
//! ```

use wire::{Error, Result};

/// Bytes of a segment, its head with them.
pub(super) const SEGMENT_BYTES: usize = 512 << 10;

/// Header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHead {
    /// The lane that it is of.
    pub(super) lane: u8,
    /// Its place in the lane, from 0.
    pub(super) number: u32,
}

impl SegmentHead {
    pub(super) const BYTES: usize = 5;

    pub(super) fn encode(self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.number.to_le_bytes();
        [self.lane, a, b, c, d]
    }

    pub(super) fn decode([lane, a, b, c, d]: [u8; Self::BYTES]) -> Self {
        Self { lane, number: u32::from_le_bytes([a, b, c, d]) }
    }

    /// The one after it.
    ///
    /// # Errors
    /// `TooLarge` after two petabytes.
    pub(super) fn next(self) -> Result<Self> {
        let number = self.number.checked_add(1);
        let number = number.ok_or_else(|| Error::too_large("expected fewer bytes on one connection"))?;
        Ok(Self { number, ..self })
    }
}

/// How many streams a side may have open towards one that takes `window_bytes` ahead on `lanes`: as many as that fills, an
/// eighth more, because the stack tells of those that ended when they are an eighth, and for each lane one that has
/// begun and one that has not ended.
pub(super) fn most_streams(window_bytes: u64, lanes: u8) -> u32 {
    let filled = window_bytes.div_ceil(SEGMENT_BYTES as u64);
    let most = filled.saturating_add(filled / 4).saturating_add(2 * u64::from(lanes));
    u32::try_from(most).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_five_bytes() {
        let head = SegmentHead { lane: 7, number: 0x0102_0304 };
        assert_eq!(head.encode(), [7, 4, 3, 2, 1]);
        assert_eq!(SegmentHead::decode(head.encode()), head);
        assert_eq!(head.next().unwrap().number, 0x0102_0305);
        assert!(SegmentHead { lane: 0, number: u32::MAX }.next().is_err());
    }
}
