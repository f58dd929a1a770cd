//! Bytes received on a connection: cut into frames, decoded, encoded again.

use bytes::Bytes;
use wire::limits::MAX_CHUNK_BYTES;
use wire::{BulkPart, Chunk, ChunkHead, Deframed, Deframer, Frame, ItemHead, MAX_FRAME_BYTES};

/// Cuts a byte stream into frames, the same ones wherever it was split. A frame that can be decoded is the same after
/// encoding.
pub fn cut_and_decode(stream: &[u8]) {
    let whole = cut(stream, stream.len().max(1));
    let in_pieces = cut(stream, 1 + stream.len() % 97);
    assert_eq!(whole, in_pieces, "the frames depend on how the stream was split");
    whole.into_iter().for_each(decode);
}

/// Returns the complete frames at the start of `stream`, cut from pieces of `piece_bytes`.
pub(crate) fn cut(stream: &[u8], piece_bytes: usize) -> Vec<Bytes> {
    let mut deframer = Deframer::new();
    let mut frames = Vec::new();
    for piece in stream.chunks(piece_bytes) {
        let mut piece = piece;
        loop {
            match deframer.cut(&mut piece, MAX_FRAME_BYTES) {
                Ok(Some(Deframed::Frame(frame))) => frames.push(frame),
                Ok(Some(Deframed::Bulk { head, bytes })) => bulk(&mut frames, head, bytes),
                Ok(Some(Deframed::Apart { head, offset, bytes })) => apart(&mut frames, head, offset, bytes),
                Ok(None) => break,
                Err(_) => return frames,
            }
        }
    }
    frames
}

/// Appends bulk apart from the frames: to the part before, if it continues that.
fn apart(frames: &mut Vec<Bytes>, head: ItemHead, offset: u64, bytes: &[u8]) {
    assert!(!bytes.is_empty() && offset + bytes.len() as u64 <= head.bulk_bytes, "bulk lies within its item");
    let last = frames.last().and_then(part_of);
    let follows = last.filter(|part| {
        part.head == head
            && offset == part.offset + part.bytes.len() as u64
            && part.bytes.len() + bytes.len() <= MAX_CHUNK_BYTES
    });
    let (offset, bytes) = match follows {
        Some(part) => {
            frames.pop();
            (part.offset, Bytes::from([&part.bytes[..], bytes].concat()))
        }
        None => (offset, Bytes::copy_from_slice(bytes)),
    };
    frames.push(BulkPart { head, offset, bytes }.encode().into_bytes());
}

/// Decodes a frame of bulk apart from the others.
pub(crate) fn part_of(frame: &Bytes) -> Option<BulkPart> {
    let length = u32::try_from(frame.len()).ok()?.to_le_bytes();
    let stream = [&length[..], frame].concat();
    match Deframer::new().cut(&mut &stream[..], MAX_FRAME_BYTES) {
        Ok(Some(Deframed::Apart { head, offset, bytes })) => {
            Some(BulkPart { head, offset, bytes: Bytes::copy_from_slice(bytes) })
        }
        _ => None,
    }
}

/// Appends bulk of a chunk: to the frame before, if it continues that.
fn bulk(frames: &mut Vec<Bytes>, head: ChunkHead, bytes: &[u8]) {
    let last = frames.last().and_then(|frame| match Frame::decode(frame.clone()) {
        Ok(Frame::Chunk(chunk)) => Some(chunk),
        _ => None,
    });
    let follows = last.filter(|chunk| {
        (chunk.op, chunk.item) == (head.op, head.item)
            && head.offset == chunk.offset.saturating_add(chunk.bytes.len() as u64)
            && chunk.bytes.len() + bytes.len() <= MAX_CHUNK_BYTES
    });
    let ChunkHead { op, item, offset } = head;
    let chunk = match follows {
        Some(mut chunk) => {
            frames.pop();
            chunk.bytes = [&chunk.bytes[..], bytes].concat().into();
            chunk
        }
        None => Chunk { op, item, offset, bytes: Bytes::copy_from_slice(bytes) },
    };
    frames.push(Frame::Chunk(chunk).encode().into_bytes());
}

fn decode(bytes: Bytes) {
    let Ok(frame) = Frame::decode(bytes) else { return };
    let written = frame.encode().into_bytes();
    assert!(written.len() <= MAX_FRAME_BYTES, "the frame is too long to be written");
    let again = Frame::decode(written.clone()).expect("what was written can be read");
    assert_eq!(again.encode().into_bytes(), written, "reading changed the frame");
}
