//! Answers that the connection's loop delivers as they arrive: directly to their destination, without a
//! queue.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use wire::{Error, ErrorKind, OpId, Result, Urgency};

use crate::client::{AnswerConsumer, ClientHandle, ClientSide, Item};

/// Receives an answer as it arrives. The connection's loop calls it, so it must not wait and should only
/// copy.
pub trait ReadSink: Send + 'static {
    /// Receives the head of an item.
    ///
    /// # Errors
    /// Returned when the item is not the expected one: the operation is cancelled and fails with this error.
    fn item(&mut self, item: u32, body: Bytes, bulk_bytes: u64) -> Result<()>;

    /// Receives a part of an item's bulk, to be copied to its destination. The parts of an item arrive in
    /// order, unless [any order](Self::takes_any_order) is accepted. Until the item is `complete`, its bytes
    /// are not verified.
    ///
    /// # Errors
    /// The errors of [`item`](Self::item).
    fn piece(&mut self, item: u32, offset: u64, bytes: &[u8], complete: bool) -> Result<()>;

    /// Receives the only item with all its verified bulk; small answers arrive so.
    ///
    /// # Errors
    /// The errors of [`item`](Self::item).
    fn whole(&mut self, whole: Item) -> Result<()> {
        self.item(0, whole.body, whole.bulk.len() as u64)?;
        if whole.bulk.is_empty() { Ok(()) } else { self.piece(0, 0, &whole.bulk, true) }
    }

    /// Returns whether items and their parts may arrive in any order, each once: earlier, on a link that
    /// delivers out of order. Called once, before anything arrives.
    fn takes_any_order(&self) -> bool {
        false
    }

    /// Called when the operation has ended successfully.
    ///
    /// # Errors
    /// Returned when something is missing: the operation fails with this error.
    fn finish(&mut self) -> Result<()>;
}

/// Sink with the result of its operation.
pub(crate) struct SinkSlot {
    /// Dropped with the result, before the waiting task is woken.
    pub(crate) sink: Option<Box<dyn ReadSink>>,
    pub(crate) end: Option<Result<()>>,
    pub(crate) waker: Option<Waker>,
}

impl SinkSlot {
    pub(crate) fn new(sink: Box<dyn ReadSink>) -> Self {
        Self { sink: Some(sink), end: None, waker: None }
    }

    /// Records the first result: an operation whose answer the sink rejected has failed, even if the whole
    /// answer arrives.
    pub(crate) fn end(&mut self, end: Result<()>) {
        let Some(mut sink) = self.sink.take() else { return };
        self.end = Some(end.and_then(|()| sink.finish()));
        // The sink releases the destination of the answer before the result is visible.
        drop(sink);
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

/// Counters of the bulk that a connection received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveCounts {
    /// Bulk bytes that arrived and were wanted.
    pub bulk_bytes: u64,
    /// Bulk bytes that were copied from one place in memory to another after the carrier decrypted them: into
    /// a whole message, into an item, to their destination. Equal to `bulk_bytes` where each byte was copied
    /// once.
    pub copied_bytes: u64,
}

impl ClientSide {
    /// Starts an operation; returns `None`, and leaves the sink, when there is no room.
    pub(crate) fn request_into(
        &mut self,
        name: &str,
        parameters: &Bytes,
        urgency: Urgency,
        sink: &mut Option<Box<dyn ReadSink>>,
    ) -> Result<Option<OpId>> {
        match self.machine.request(name, parameters.clone(), urgency) {
            Ok(op) => {
                if sink.as_ref().is_some_and(|sink| sink.takes_any_order()) {
                    self.machine.take_in_any_order(op);
                }
                let slot = sink.take().map(|sink| AnswerConsumer::Sink(SinkSlot::new(sink)));
                slot.into_iter().for_each(|slot| self.consumers.insert(op, slot));
                Ok(Some(op))
            }
            Err(error) if error.kind() == ErrorKind::Busy => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn slot(&mut self, op: OpId) -> Option<&mut SinkSlot> {
        match self.consumers.get_mut(op) {
            Some(AnswerConsumer::Sink(slot)) => Some(slot),
            _ => None,
        }
    }

    /// Removes an operation; true when it had not ended.
    pub(crate) fn close_slot(&mut self, op: OpId) -> bool {
        let slot = self.consumers.remove(op);
        let in_flight = matches!(slot, Some(AnswerConsumer::Sink(slot)) if slot.sink.is_some());
        if in_flight {
            self.machine.cancel(op);
        }
        in_flight
    }

    pub(crate) fn counts(&self) -> ReceiveCounts {
        self.counts
    }
}

/// Operation whose answer goes to a [`ReadSink`]; resolves at its end. Dropping it cancels the operation, and
/// the sink is not called afterwards.
pub struct ReadHandle {
    op: OpId,
    client: ClientHandle,
}

impl fmt::Debug for ReadHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadHandle({})", self.op)
    }
}

impl ClientHandle {
    /// Starts an operation, as soon as there is room for it, whose answer goes to `sink`.
    ///
    /// # Errors
    /// The errors of [`request`](Self::request).
    ///
    /// # Cancel safety
    /// Safe: until it returns, nothing was requested.
    pub async fn receive(
        &self,
        name: &str,
        parameters: Bytes,
        urgency: Urgency,
        sink: Box<dyn ReadSink>,
    ) -> Result<ReadHandle> {
        let mut sink = Some(sink);
        loop {
            self.room(urgency.priority).await;
            let op = self.shared().change(|side| side.request_into(name, &parameters, urgency, &mut sink))?;
            // `None`: another caller was faster.
            if let Some(op) = op {
                return Ok(ReadHandle { op, client: self.clone() });
            }
        }
    }

    /// Counters of the bulk that this connection received.
    #[must_use]
    pub fn counts(&self) -> ReceiveCounts {
        self.shared().with(|side| side.counts())
    }
}

impl ReadHandle {
    /// Changes the urgency of the operation, also of its items that the server has queued.
    pub fn adjust(&self, urgency: Urgency) {
        self.client.shared().change(|side| side.adjust(self.op, urgency));
    }
}

impl Future for ReadHandle {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let gone = || Poll::Ready(Err(Error::internal("an answer was waited for after its end")));
        self.client.shared().with(|side| {
            side.slot(self.op).map_or_else(gone, |slot| match slot.end.take() {
                Some(end) => Poll::Ready(end),
                None => {
                    slot.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            })
        })
    }
}

impl Drop for ReadHandle {
    fn drop(&mut self) {
        let cancelled = self.client.shared().with(|side| side.close_slot(self.op));
        if cancelled {
            self.client.shared().change(|_| ());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Takes;

    impl ReadSink for Takes {
        fn item(&mut self, _: u32, _: Bytes, _: u64) -> Result<()> {
            Ok(())
        }

        fn piece(&mut self, _: u32, _: u64, _: &[u8], _: bool) -> Result<()> {
            Ok(())
        }

        fn finish(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_answer_that_was_refused_has_failed_though_its_end_comes_after() {
        let mut slot = SinkSlot::new(Box::new(Takes));
        slot.end(Err(Error::corrupt("it cannot be restored")));
        slot.end(Ok(()));
        assert_eq!(slot.end.map(|end| end.is_err()), Some(true));
    }
}
