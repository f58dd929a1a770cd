//! Answers that are taken where they arrive: by the connection's loop, straight to their place, without a queue between.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use wire::{Error, ErrorKind, OpId, Result, Urgency};

use crate::client::{AnswerConsumer, ClientHandle, ClientSide, Item};

/// Takes an answer as it arrives. Called by the connection's loop: it must not wait, and should only copy.
pub trait ReadSink: Send + 'static {
    /// The head of an item.
    ///
    /// # Errors
    /// It is not what was asked for: the operation is withdrawn and fails with this.
    fn item(&mut self, item: u32, body: Bytes, bulk_bytes: u64) -> Result<()>;

    /// Some of an item's bulk, to be copied to its place; pieces of an item come in order, unless
    /// [any order](Self::takes_any_order) will do. Until the item is `complete` its bytes are not proven.
    ///
    /// # Errors
    /// As [`item`](Self::item).
    fn piece(&mut self, item: u32, offset: u64, bytes: &[u8], complete: bool) -> Result<()>;

    /// The only item and all its bulk, proven: how small answers come.
    ///
    /// # Errors
    /// As [`item`](Self::item).
    fn whole(&mut self, whole: Item) -> Result<()> {
        self.item(0, whole.body, whole.bulk.len() as u64)?;
        if whole.bulk.is_empty() { Ok(()) } else { self.piece(0, 0, &whole.bulk, true) }
    }

    /// Whether items, and pieces of them, may come in any order, each once: sooner, on a link that brings them so. Asked
    /// once, before anything comes.
    fn takes_any_order(&self) -> bool {
        false
    }

    /// The operation has ended well.
    ///
    /// # Errors
    /// Something is missing: the operation fails with this.
    fn finish(&mut self) -> Result<()>;
}

/// A receiver and how its operation ended.
pub(crate) struct SinkSlot {
    /// Dropped with the end, before whoever waits is woken.
    pub(crate) sink: Option<Box<dyn ReadSink>>,
    pub(crate) end: Option<Result<()>>,
    pub(crate) waker: Option<Waker>,
}

impl SinkSlot {
    pub(crate) fn new(sink: Box<dyn ReadSink>) -> Self {
        Self { sink: Some(sink), end: None, waker: None }
    }

    /// The first end counts: what a receiver refused has failed, though all of it came.
    pub(crate) fn end(&mut self, end: Result<()>) {
        let Some(mut sink) = self.sink.take() else { return };
        self.end = Some(end.and_then(|()| sink.finish()));
        // It lets go of where the answer went before anybody hears of the end.
        drop(sink);
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

/// Counters of the bulk that has crossed a connection, from the client's view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveCounts {
    /// Bulk bytes that arrived and were wanted.
    pub bulk_bytes: u64,
    /// Bulk bytes that were copied from one place in memory to another after the carrier had them decrypted: into a whole
    /// message, into an item, to their place. Equal to `bulk_bytes` where each was copied once.
    pub copied_bytes: u64,
}

impl ClientSide {
    /// `None`, with the receiver left, when there is no room.
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

    /// True when the operation had not ended.
    pub(crate) fn close_slot(&mut self, op: OpId) -> bool {
        let slot = self.consumers.remove(op);
        let under_way = matches!(slot, Some(AnswerConsumer::Sink(slot)) if slot.sink.is_some());
        if under_way {
            self.machine.cancel(op);
        }
        under_way
    }

    pub(crate) fn counts(&self) -> ReceiveCounts {
        self.counts
    }
}

/// An operation whose answer goes to a [`ReadSink`]: waits for its end. Dropping it cancels the operation; the receiver is
/// not called after that.
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
    /// As [`request`](Self::request).
    ///
    /// # Cancel safety
    /// Safe: until it returns, nothing was asked.
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
            // None: somebody else was faster.
            if let Some(op) = op {
                return Ok(ReadHandle { op, client: self.clone() });
            }
        }
    }

    /// Counters of the bulk that has crossed this connection.
    #[must_use]
    pub fn counts(&self) -> ReceiveCounts {
        self.shared().with(|side| side.counts())
    }
}

impl ReadHandle {
    /// Changes how much it matters, also for what the server has queued already.
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
