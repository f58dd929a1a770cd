//! Bytes as they come off a connection: cut into frames, decoded, encoded again.

use bytes::Bytes;
use wire::{Deframer, Frame, MAX_FRAME_BYTES};

/// Cuts a byte stream into frames. How the carrier split it must not matter; what can be read can be written, and is
/// read again as the same.
pub fn cut_and_decode(stream: &[u8]) {
    let whole = cut(stream, stream.len().max(1));
    let in_pieces = cut(stream, 1 + stream.len() % 97);
    assert_eq!(whole, in_pieces, "the frames depend on how the stream was split");
    whole.into_iter().for_each(decode);
}

/// The whole frames at the start of `stream`, when it arrives in pieces of `piece_bytes`.
pub(crate) fn cut(stream: &[u8], piece_bytes: usize) -> Vec<Bytes> {
    let mut deframer = Deframer::new();
    let mut frames = Vec::new();
    for piece in stream.chunks(piece_bytes) {
        deframer.buffer().extend_from_slice(piece);
        loop {
            match deframer.next_frame(MAX_FRAME_BYTES) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(_) => return frames,
            }
        }
    }
    frames
}

fn decode(bytes: Bytes) {
    let Ok(frame) = Frame::decode(bytes) else { return };
    let written = frame.encode().into_bytes();
    assert!(written.len() <= MAX_FRAME_BYTES, "what was read is too long to be written");
    let again = Frame::decode(written.clone()).expect("what was written can be read");
    assert_eq!(again.encode().into_bytes(), written, "reading changed the frame");
}
