//! Sending side of one lane: frames, cut into segments.

use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use quinn::{Connection, ConnectionError, SendStream};
use wire::Result;

use super::segment::{SEGMENT_BYTES, SegmentHead};
use crate::carrier::broken;

type OpeningStream = BoxFuture<'static, std::result::Result<SendStream, ConnectionError>>;

/// Sending side of one lane.
pub(super) struct LaneSender {
    /// Head of the current segment, or of the next one.
    head: SegmentHead,
    stream: Option<SendStream>,
    opening: Option<OpeningStream>,
    /// Bytes of the current segment that were not written yet.
    left_bytes: usize,
    parts: VecDeque<Bytes>,
    written_bytes: u64,
}

impl LaneSender {
    pub(super) fn new(lane: u8) -> Self {
        Self {
            head: SegmentHead { lane, number: 0 },
            stream: None,
            opening: None,
            left_bytes: 0,
            parts: VecDeque::new(),
            written_bytes: 0,
        }
    }

    pub(super) fn push_bytes(&mut self, bytes: Bytes) {
        self.parts.push_back(bytes);
    }

    /// True when nothing waits to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the bytes passed to the stack since the last call.
    pub(super) fn take_written_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.written_bytes)
    }

    /// Passes all data to the stack.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, connection: &Connection) -> Poll<Result<()>> {
        while !self.parts.is_empty() {
            ready!(self.poll_open(cx, connection))?;
            let count = self.parts_within();
            let Some(stream) = &mut self.stream else { continue };
            // Cancel safe: data that a dropped future has not written is still in `parts`.
            let writing = stream.write_chunks(&mut self.parts.make_contiguous()[..count]);
            let written = ready!(pin!(writing).poll(cx)).map_err(broken)?;
            self.parts.drain(..written.chunks);
            self.written_bytes += written.bytes as u64;
            self.left_bytes -= written.bytes;
            if self.left_bytes == 0 {
                self.end_segment()?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the lane, by a segment that is shorter than full.
    pub(super) fn poll_finish(&mut self, cx: &mut Context<'_>, connection: &Connection) -> Poll<Result<()>> {
        // The end of the control lane also ends lanes that were never used.
        if self.head.number > 0 || self.head.lane == 0 {
            ready!(self.poll_open(cx, connection))?;
        }
        ready!(self.poll_write(cx, connection))?;
        // An error means that the stream was closed before.
        self.stream.as_mut().into_iter().for_each(|stream| drop(stream.finish()));
        Poll::Ready(Ok(()))
    }

    /// Opens a stream for the next segment if there is none; its head is sent first.
    fn poll_open(&mut self, cx: &mut Context<'_>, connection: &Connection) -> Poll<Result<()>> {
        if self.stream.is_some() {
            return Poll::Ready(Ok(()));
        }
        let opening = self.opening.get_or_insert_with(|| {
            let connection = connection.clone();
            Box::pin(async move { connection.open_uni().await })
        });
        let opened = ready!(opening.poll_unpin(cx));
        self.opening = None;
        self.stream = Some(opened.map_err(broken)?);
        self.parts.push_front(Bytes::copy_from_slice(&self.head.encode()));
        self.left_bytes = SEGMENT_BYTES;
        Poll::Ready(Ok(()))
    }

    /// Returns how many parts fit into the segment; the one that exceeds it is split.
    fn parts_within(&mut self) -> usize {
        let mut room = self.left_bytes;
        for (at, part) in self.parts.iter_mut().enumerate() {
            if part.len() >= room {
                let rest = part.split_off(room);
                if !rest.is_empty() {
                    self.parts.insert(at + 1, rest);
                }
                return at + 1;
            }
            room -= part.len();
        }
        self.parts.len()
    }

    fn end_segment(&mut self) -> Result<()> {
        if let Some(mut stream) = self.stream.take() {
            stream.finish().map_err(broken)?;
        }
        self.head = self.head.next()?;
        Ok(())
    }
}
