//! Splits a byte stream into frames, each preceded by its length, `u32`.

use array::{Error, Result};
use bytes::{Buf, Bytes, BytesMut};

use crate::frames::frame::{ChunkHead, ItemHead, is_chunk};
use crate::frames::part;
use crate::limits::{MAX_CHUNK_BYTES, MAX_FRAME_BYTES};

const PREFIX_BYTES: usize = 4;
/// Smallest read where whole frames are assembled, bytes.
const READ_BYTES: usize = 16 << 10;

/// Result of deframing.
#[derive(Debug, PartialEq, Eq)]
pub enum Deframed<'a> {
    /// A whole frame, without its length.
    Frame(Bytes),
    /// Part of a chunk's bulk in the stream's buffer; it is not delayed until the rest of the chunk has
    /// arrived.
    Bulk {
        /// Item that the bytes belong to, and their offset in its bulk.
        head: ChunkHead,
        /// Bytes, at least one.
        bytes: &'a [u8],
    },
    /// Part of bulk that is sent outside the frames of its item.
    Apart {
        /// Head of the item that the bulk belongs to.
        head: ItemHead,
        /// Offset of the bytes in the item's bulk.
        offset: u64,
        /// Bytes, at least one.
        bytes: &'a [u8],
    },
}

/// Bulk whose rest has not arrived.
#[derive(Debug)]
enum PartialBulk {
    Chunk(ChunkHead),
    Part(ItemHead, u64),
}

impl PartialBulk {
    /// Returns the next bytes of the bulk.
    fn cut<'a>(&mut self, bytes: &'a [u8]) -> Deframed<'a> {
        let offset = match self {
            Self::Chunk(head) => &mut head.offset,
            Self::Part(_, offset) => offset,
        };
        let at = *offset;
        *offset = at.saturating_add(bytes.len() as u64);
        match self {
            Self::Chunk(head) => Deframed::Bulk { head: ChunkHead { offset: at, ..*head }, bytes },
            Self::Part(head, _) => Deframed::Apart { head: head.clone(), offset: at, bytes },
        }
    }
}

/// Deframer: holds the bytes of at most one frame, and only the head of a chunk.
#[derive(Debug, Default)]
pub struct Deframer {
    /// Start of a frame, with its length.
    buffer: BytesMut,
    /// Current bulk, and the number of its bytes that have not arrived.
    bulk: Option<(PartialBulk, usize)>,
}

impl Deframer {
    /// Creates an empty deframer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Consumes `bytes` from the front until something is complete; `None` when all were consumed before.
    ///
    /// # Errors
    /// `TooLarge` when a frame would exceed `limit_bytes`, `Corrupt` for an invalid chunk; the stream cannot
    /// be read any further then.
    pub fn cut<'a>(&mut self, bytes: &mut &'a [u8], limit_bytes: usize) -> Result<Option<Deframed<'a>>> {
        loop {
            if self.bulk.is_some() {
                return Ok(self.cut_bulk(bytes));
            }
            let needed = self.needed_bytes(limit_bytes)?;
            let missing = needed - self.buffer.len();
            self.buffer.reserve(missing);
            let more = bytes.split_off(..missing.min(bytes.len())).unwrap_or_default();
            self.buffer.extend_from_slice(more);
            if more.len() < missing {
                return Ok(None);
            }
            if let Some(frame) = self.whole(limit_bytes)? {
                return Ok(Some(Deframed::Frame(frame)));
            }
        }
    }

    /// Buffer for carriers that assemble whole frames: the next bytes of the stream are appended here. It has
    /// spare capacity for the rest of the current frame. [`next_frame`](Self::next_frame) has to be called
    /// until it returns `None` before reading again, which bounds the buffer. Not to be mixed with
    /// [`cut`](Self::cut).
    pub fn buffer(&mut self) -> &mut BytesMut {
        let missing = self.frame_bytes().map_or(0, |n| (n + PREFIX_BYTES).saturating_sub(self.buffer.len()));
        self.buffer.reserve(missing.clamp(READ_BYTES, MAX_FRAME_BYTES));
        &mut self.buffer
    }

    /// Returns the next whole frame of the [`buffer`](Self::buffer), without its length; `None` when more
    /// bytes are needed.
    ///
    /// # Errors
    /// `TooLarge` when the frame would exceed `limit_bytes`; the stream cannot be read any further then.
    pub fn next_frame(&mut self, limit_bytes: usize) -> Result<Option<Bytes>> {
        let Some(size_bytes) = self.frame_bytes() else { return Ok(None) };
        if size_bytes > limit_bytes {
            return Err(too_large(limit_bytes, size_bytes));
        }
        if self.buffer.len() < PREFIX_BYTES + size_bytes {
            return Ok(None);
        }
        self.buffer.advance(PREFIX_BYTES);
        Ok(Some(self.buffer.split_to(size_bytes).freeze()))
    }

    fn cut_bulk<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Deframed<'a>> {
        let (partial, left) = self.bulk.as_mut()?;
        let bytes = bytes.split_off(..bytes.len().min(*left)).filter(|bytes| !bytes.is_empty())?;
        let cut = partial.cut(bytes);
        *left -= bytes.len();
        if *left == 0 {
            self.bulk = None;
        }
        Some(cut)
    }

    fn frame_bytes(&self) -> Option<usize> {
        self.buffer.first_chunk().map(|prefix| u32::from_le_bytes(*prefix) as usize)
    }

    /// Bytes of the buffer that are needed for the next decision: the kind of the frame, a chunk's head, the
    /// whole frame.
    fn needed_bytes(&self, limit_bytes: usize) -> Result<usize> {
        let Some(size_bytes) = self.frame_bytes() else { return Ok(PREFIX_BYTES) };
        let most_bytes = limit_bytes.min(MAX_FRAME_BYTES);
        if size_bytes > most_bytes {
            return Err(too_large(most_bytes, size_bytes));
        }
        let kind = self.buffer.get(PREFIX_BYTES);
        Ok(match kind {
            None => PREFIX_BYTES + size_bytes.min(1),
            Some(&kind) if is_chunk(kind) => PREFIX_BYTES + size_bytes.min(ChunkHead::FRAME_BYTES),
            Some(&part::KIND) => {
                PREFIX_BYTES + size_bytes.min(part::head_bytes(&self.buffer[PREFIX_BYTES..]))
            }
            Some(_) => PREFIX_BYTES + size_bytes,
        })
    }

    /// Returns the whole frame; `None` where more bytes are needed, or a chunk begins.
    fn whole(&mut self, limit_bytes: usize) -> Result<Option<Bytes>> {
        let Some(size_bytes) = self.frame_bytes() else { return Ok(None) };
        if self.buffer.len() < self.needed_bytes(limit_bytes)? {
            return Ok(None);
        }
        if self.buffer.get(PREFIX_BYTES) == Some(&part::KIND) {
            let bytes = size_bytes.saturating_sub(part::head_bytes(&self.buffer[PREFIX_BYTES..]));
            let fields = self.buffer.split().freeze().slice(PREFIX_BYTES + 1..);
            let (head, offset) = part::decode_head(fields, bytes)?;
            self.bulk = Some((PartialBulk::Part(head, offset), bytes));
            return Ok(None);
        }
        let chunk_bytes = size_bytes.saturating_sub(ChunkHead::FRAME_BYTES);
        if chunk_bytes > 0 && self.buffer.get(PREFIX_BYTES).copied().is_some_and(is_chunk) {
            if chunk_bytes > MAX_CHUNK_BYTES {
                return Err(Error::corrupt(format!(
                    "expected a chunk of 1 to {MAX_CHUNK_BYTES} bytes, found {chunk_bytes}"
                )));
            }
            let head = ChunkHead::decode(self.buffer.split().freeze().slice(PREFIX_BYTES + 1..))?;
            self.bulk = Some((PartialBulk::Chunk(head), chunk_bytes));
            return Ok(None);
        }
        Ok(Some(self.buffer.split().freeze().slice(PREFIX_BYTES..)))
    }

    /// True when the stream stopped between two frames.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.bulk.is_none()
    }
}

fn too_large(limit_bytes: usize, size_bytes: usize) -> Error {
    Error::too_large(format!("expected a frame of at most {limit_bytes} bytes, found {size_bytes}"))
}
