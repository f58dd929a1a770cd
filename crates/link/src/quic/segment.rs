//! A lane is sent in segments of 512 KiB, each in a QUIC stream of its own. The stack closes a connection
//! when one stream has a thousand gaps, which a burst of losses on a long fast path easily causes while the
//! receiver is busy. A segment is too short for that: it has at most 460 packets of the smallest size that
//! every path carries.
//!
//! ```text
//! segment: lane u8 · number u32 · bytes of the lane       all of it SEGMENT_BYTES long, or shorter: then the lane ends
//! ```

use wire::{Error, Result};

/// Size of a full segment, bytes, including its head.
pub(super) const SEGMENT_BYTES: usize = 512 << 10;

/// Header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHead {
    /// Lane of the segment.
    pub(super) lane: u8,
    /// Position of the segment in the lane, from 0.
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

    /// Head of the next segment.
    ///
    /// # Errors
    /// `TooLarge` after two petabytes.
    pub(super) fn next(self) -> Result<Self> {
        let number = self.number.checked_add(1);
        let number = number.ok_or_else(|| Error::too_large("too many bytes on one lane; connect again"))?;
        Ok(Self { number, ..self })
    }
}

/// Number of streams that a side may open towards a peer with a window of `window_bytes` and `lanes` lanes:
/// as many as the window holds, a quarter more, because the peer's stack announces ended streams only when they
/// exceed an eighth of the limit, and for each lane one that has begun and one that has not ended.
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
