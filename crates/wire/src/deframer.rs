//! Cuts a byte stream into frames: each is preceded by its length, `u32`.

use array::{Error, Result};
use bytes::{Buf, Bytes, BytesMut};

use crate::limits::MAX_FRAME_BYTES;

const PREFIX_BYTES: usize = 4;
/// Read at least this much at once.
const READ_BYTES: usize = 16 << 10;

/// Holds the bytes of at most one frame beyond what one read brought.
#[derive(Debug, Default)]
pub struct Deframer {
    buffer: BytesMut,
}

impl Deframer {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the next bytes from the stream are to be appended. It has spare capacity for the rest of the
    /// frame under way, so that a frame is never moved once its length is known. Call
    /// [`next_frame`](Self::next_frame) until it gives none before reading again: that is what bounds the buffer.
    pub fn buffer(&mut self) -> &mut BytesMut {
        let missing = self.frame_bytes().map_or(0, |n| (n + PREFIX_BYTES).saturating_sub(self.buffer.len()));
        self.buffer.reserve(missing.clamp(READ_BYTES, MAX_FRAME_BYTES));
        &mut self.buffer
    }

    fn frame_bytes(&self) -> Option<usize> {
        self.buffer.first_chunk().map(|prefix| u32::from_le_bytes(*prefix) as usize)
    }

    /// The next whole frame, without its length; none when more bytes are needed.
    ///
    /// # Errors
    /// `TooLarge` when the frame would exceed `limit_bytes`; the stream cannot be read any further then.
    pub fn next_frame(&mut self, limit_bytes: usize) -> Result<Option<Bytes>> {
        let Some(size_bytes) = self.frame_bytes() else { return Ok(None) };
        if size_bytes > limit_bytes {
            return Err(Error::too_large(format!(
                "expected a frame of at most {limit_bytes} bytes, found {size_bytes}"
            )));
        }
        if self.buffer.len() < PREFIX_BYTES + size_bytes {
            return Ok(None);
        }
        self.buffer.advance(PREFIX_BYTES);
        Ok(Some(self.buffer.split_to(size_bytes).freeze()))
    }

    /// True when the stream stopped between two frames.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}
