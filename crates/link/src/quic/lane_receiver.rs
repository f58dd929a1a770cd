//! Receiving side of one lane: reads its segments in order and returns frames, and bulk without copying it.

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use quinn::RecvStream;
use wire::{Deframer, Error, Result};

use super::segment::{SEGMENT_BYTES, SegmentHead};
use crate::carrier::{Received, broken, ended, give};

/// Most packets' worth of data taken from a segment at once.
const PIECES: usize = 64;

/// Stream opened by the peer whose segment head was not read yet.
pub(super) struct UnassignedStream {
    stream: RecvStream,
    head: [u8; SegmentHead::BYTES],
    filled: usize,
}

impl UnassignedStream {
    pub(super) fn new(stream: RecvStream) -> Self {
        Self { stream, head: [0; SegmentHead::BYTES], filled: 0 }
    }

    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<SegmentHead>> {
        while let rest = &mut self.head[self.filled..]
            && !rest.is_empty()
        {
            match ready!(pin!(self.stream.read(rest)).poll(cx)).map_err(broken)? {
                Some(count) => self.filled += count,
                None => {
                    return Poll::Ready(Err(Error::corrupt(
                        "expected the head of a segment, found the end of the stream",
                    )));
                }
            }
        }
        Poll::Ready(Ok(SegmentHead::decode(self.head)))
    }

    pub(super) fn into_stream(self) -> RecvStream {
        self.stream
    }
}

/// Receiving side of one lane.
pub(super) struct LaneReceiver {
    waker: Waker,
    /// Number of the current segment, or of the next one.
    number: u32,
    stream: Option<RecvStream>,
    /// Bytes received of the current segment, including its head.
    segment_bytes: usize,
    /// Later segments by number; at most as many as the stack lets the peer open.
    later: BTreeMap<u32, RecvStream>,
    /// Data taken from the stack and not deframed yet: at most one segment.
    pieces: VecDeque<Bytes>,
    deframer: Deframer,
}

impl LaneReceiver {
    /// Creates a receiver. `waker` is woken when there is more data.
    pub(super) fn new(waker: Waker) -> Self {
        Self {
            waker,
            number: 0,
            stream: None,
            segment_bytes: SegmentHead::BYTES,
            later: BTreeMap::new(),
            pieces: VecDeque::new(),
            deframer: Deframer::new(),
        }
    }

    /// Adds a segment of this lane whose head was read.
    ///
    /// # Errors
    /// `Corrupt` for a segment that was added before.
    pub(super) fn append(&mut self, number: u32, stream: RecvStream) -> Result<()> {
        let is_new = match number.checked_sub(self.number) {
            None => false,
            Some(0) => self.stream.replace(stream).is_none(),
            Some(_) => self.later.insert(number, stream).is_none(),
        };
        if is_new {
            return Ok(());
        }
        Err(Error::corrupt(format!("expected new bytes of a lane, found its segment {number} again")))
    }

    /// Returns the next frame or bulk, like [`Carrier::poll_take`](crate::Carrier::poll_take); false at the
    /// end.
    pub(super) fn poll_take(
        &mut self,
        limit_bytes: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Poll<Result<bool>> {
        loop {
            while let Some(piece) = self.pieces.front_mut() {
                let mut there = &piece[..];
                let is_some = give(self.deframer.cut(&mut there, limit_bytes)?, take);
                let left = there.len();
                piece.advance(piece.len() - left);
                if left == 0 {
                    self.pieces.pop_front();
                }
                if is_some {
                    return Poll::Ready(Ok(true));
                }
            }
            if !ready!(self.poll_read())? {
                let is_clean = self.deframer.is_empty();
                return Poll::Ready(if is_clean { Ok(false) } else { Err(ended()) });
            }
        }
    }

    /// Reads more data from the stack; false at the end of the lane.
    fn poll_read(&mut self) -> Poll<Result<bool>> {
        loop {
            let Some(stream) = &mut self.stream else { return Poll::Pending };
            let mut pieces = [const { Bytes::new() }; PIECES];
            let read = pin!(stream.read_chunks(&mut pieces)).poll(&mut Context::from_waker(&self.waker));
            if let Some(count) = ready!(read).map_err(broken)? {
                self.pieces.extend(pieces.into_iter().take(count));
                self.segment_bytes += self.pieces.iter().map(Bytes::len).sum::<usize>();
                if self.segment_bytes > SEGMENT_BYTES {
                    return Poll::Ready(Err(Error::corrupt(format!(
                        "expected at most {SEGMENT_BYTES} bytes of a stream, found more"
                    ))));
                }
                return Poll::Ready(Ok(true));
            }
            if self.segment_bytes < SEGMENT_BYTES {
                return Poll::Ready(Ok(false));
            }
            self.number = SegmentHead { lane: 0, number: self.number }.next()?.number;
            self.stream = self.later.remove(&self.number);
            self.segment_bytes = SegmentHead::BYTES;
        }
    }
}
