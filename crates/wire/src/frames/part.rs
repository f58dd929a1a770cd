//! Part of bulk that is sent outside the other frames and repeats its item's head, so that it is usable
//! before the head arrives and in any order. This is its frame, for carriers of several streams; datagrams
//! have their own encoding.
//!
//! ```text
//! 0x88 · op u32 · item u32 · offset u64 · bulk length u64 · CRC-32C of the bulk u32 · body length u8 · body · bytes
//! ```

use array::{Error, Result};
use bytes::Bytes;

use crate::frames::codec::{ByteReader, ByteWriter};
use crate::frames::frame::{ItemHead, Message, OpId};
use crate::limits::{MAX_CHUNK_BYTES, MAX_ITEM_BULK_BYTES, MAX_PART_BODY_BYTES};

/// Kind of the frame.
pub(crate) const KIND: u8 = 0x88;
/// Size of the frame before the body, bytes: the kind and the fields up to the body's length, which is the
/// last byte.
pub(crate) const FIXED_BYTES: usize = 30;

/// Part of an item's bulk, with the item's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkPart {
    /// Head of the item.
    pub head: ItemHead,
    /// Offset of the bytes in the item's bulk.
    pub offset: u64,
    /// Bytes, at least one.
    pub bytes: Bytes,
}

impl BulkPart {
    /// Encodes the frame. The bytes are not copied. The body must not exceed [`MAX_PART_BODY_BYTES`].
    #[must_use]
    pub fn encode(self) -> Message {
        let Self { head: ItemHead { op, item, body, bulk_bytes, bulk_crc32c }, offset, bytes } = self;
        let mut w = ByteWriter::new();
        w.raw(&[0; Message::PREFIX_BYTES]).u8(KIND).u32(op.0).u32(item).u64(offset);
        w.u64(bulk_bytes).u32(bulk_crc32c).u8(u8::try_from(body.len()).unwrap_or(u8::MAX)).raw(&body);
        Message::new(w, vec![bytes])
    }
}

/// Number of bytes of a frame before its bulk, as far as its first bytes tell.
pub(crate) fn head_bytes(frame: &[u8]) -> usize {
    FIXED_BYTES + frame.get(FIXED_BYTES - 1).map_or(0, |body_bytes| usize::from(*body_bytes))
}

/// Decodes the fields before the bulk, without the kind, of a frame with `bytes` of bulk; returns the item's
/// head and the offset of the bulk.
///
/// # Errors
/// `Corrupt` when the part is too long, or lies beyond the end of its item.
pub(crate) fn decode_head(fields: Bytes, bytes: usize) -> Result<(ItemHead, u64)> {
    let mut r = ByteReader::new(fields);
    let (op, item, offset) = (OpId(r.u32("op")?), r.u32("item")?, r.u64("offset")?);
    let (bulk_bytes, bulk_crc32c) = (r.u64("bulk length")?, r.u32("checksum")?);
    let body_bytes = usize::from(r.u8("body length")?);
    let end = offset.saturating_add(bytes as u64);
    let is_sound = (1..=MAX_CHUNK_BYTES).contains(&bytes) && end <= bulk_bytes;
    if !is_sound || bulk_bytes > MAX_ITEM_BULK_BYTES || body_bytes > MAX_PART_BODY_BYTES {
        return Err(Error::corrupt(format!(
            "expected 1 to {MAX_CHUNK_BYTES} bytes within at most {MAX_ITEM_BULK_BYTES} and a body of at most \
             {MAX_PART_BODY_BYTES}, found {bytes} bytes at {offset} of {bulk_bytes} and a body of {body_bytes}"
        )));
    }
    let body = r.take(body_bytes, "body")?;
    Ok((ItemHead { op, item, body, bulk_bytes, bulk_crc32c }, offset))
}
