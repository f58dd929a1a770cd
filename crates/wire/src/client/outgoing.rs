//! Queue of the frames that a client has to send, in the order of the requests: consecutive requests that
//! differ only in their parameters are sent as one batch. A batch never waits for more requests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use array::Urgency;
use bytes::Bytes;

use crate::flow::deadline;
use crate::frames::batch::RequestBatch;
use crate::limits::{MAX_BATCH_OPERATIONS, MAX_BATCH_PARAMETER_BYTES};
use crate::{Frame, OpId, OperationRequest};

/// Bytes that an entry of the queue counts besides its parameters.
const ENTRY_BYTES: usize = 128;

/// Request that was not sent yet.
#[derive(Debug)]
pub(crate) struct QueuedRequest {
    pub(crate) op: OpId,
    pub(crate) name: Arc<str>,
    pub(crate) urgency: Urgency,
    pub(crate) parameters: Bytes,
}

impl QueuedRequest {
    fn queued_bytes(&self) -> usize {
        ENTRY_BYTES + self.parameters.len()
    }

    /// True when `next` can be in the same batch.
    fn is_followed_by(&self, next: &Self) -> bool {
        next.op.0 == self.op.0 + 1
            && next.urgency.deadline == self.urgency.deadline
            && next.urgency.priority.tier == self.urgency.priority.tier
            && next.urgency.priority.weight.to_bits() == self.urgency.priority.weight.to_bits()
            && next.name == self.name
    }

    fn into_request(self, now: Instant) -> OperationRequest {
        OperationRequest {
            op: self.op,
            name: self.name.as_ref().to_owned(),
            priority: self.urgency.priority,
            deadline_ms: deadline::to_wire(now, self.urgency.deadline),
            parameters: self.parameters,
        }
    }
}

#[derive(Debug)]
enum QueuedFrame {
    Request(QueuedRequest),
    Frame(Frame),
}

#[derive(Debug)]
pub(crate) struct OutgoingQueue {
    entries: VecDeque<QueuedFrame>,
    queued_bytes: usize,
    /// True when the server can read batches.
    batches: bool,
}

impl OutgoingQueue {
    pub(crate) fn new(first: Frame) -> Self {
        Self { entries: VecDeque::from([QueuedFrame::Frame(first)]), queued_bytes: 0, batches: false }
    }

    pub(crate) fn batch(&mut self) {
        self.batches = true;
    }

    pub(crate) fn ask(&mut self, request: QueuedRequest) {
        self.queued_bytes += request.queued_bytes();
        self.entries.push_back(QueuedFrame::Request(request));
    }

    pub(crate) fn push(&mut self, frame: Frame) {
        self.queued_bytes += queued_bytes(&frame);
        self.entries.push_back(QueuedFrame::Frame(frame));
    }

    /// Number of entries that may still be queued within `most_bytes`; the last one may exceed it.
    pub(crate) fn room(&self, most_bytes: usize) -> usize {
        most_bytes.saturating_sub(self.queued_bytes).div_ceil(ENTRY_BYTES)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.queued_bytes = 0;
    }

    pub(crate) fn pop(&mut self, now: Instant) -> Option<Frame> {
        match self.entries.pop_front()? {
            QueuedFrame::Frame(frame) => {
                self.queued_bytes -= queued_bytes(&frame);
                Some(frame)
            }
            QueuedFrame::Request(first) => {
                self.queued_bytes -= first.queued_bytes();
                Some(if self.batches {
                    self.gather(first, now)
                } else {
                    Frame::Request(first.into_request(now))
                })
            }
        }
    }

    /// Makes a batch of the requests that can be sent with `first`; a single request with large parameters is
    /// sent by itself.
    fn gather(&mut self, first: QueuedRequest, now: Instant) -> Frame {
        let mut size_bytes = first.parameters.len();
        if size_bytes > MAX_BATCH_PARAMETER_BYTES {
            return Frame::Request(first.into_request(now));
        }
        let mut last = first;
        let mut parameters = vec![std::mem::take(&mut last.parameters)];
        while parameters.len() < MAX_BATCH_OPERATIONS
            && let Some(QueuedFrame::Request(next)) = self.entries.front()
            && last.is_followed_by(next)
            && size_bytes + next.parameters.len() <= MAX_BATCH_PARAMETER_BYTES
            && let Some(QueuedFrame::Request(mut next)) = self.entries.pop_front()
        {
            self.queued_bytes -= next.queued_bytes();
            size_bytes += next.parameters.len();
            parameters.push(std::mem::take(&mut next.parameters));
            last = next;
        }
        let before = u32::try_from(parameters.len() - 1).unwrap_or(0);
        Frame::Requests(RequestBatch {
            first: OpId(last.op.0 - before),
            name: last.name,
            priority: last.urgency.priority,
            deadline_ms: deadline::to_wire(now, last.urgency.deadline),
            parameters,
        })
    }
}

fn queued_bytes(frame: &Frame) -> usize {
    match frame {
        Frame::Note { body, .. } => ENTRY_BYTES + body.len(),
        _ => 0,
    }
}
