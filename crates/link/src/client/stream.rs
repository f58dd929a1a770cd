//! Answer to one operation as a stream: in parts as they arrive, or in whole items.

use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures::Stream;
use wire::{Error, OpId, Result, Urgency};

use crate::client::{ClientHandle, Item, Reply};

/// Bytes reserved when an item begins to be assembled; more are reserved as its bytes arrive.
const FIRST_RESERVE_BYTES: u64 = 1 << 20;

/// Answer to one operation: its replies, then the end or an error. Dropping it cancels the operation.
///
/// Bulk bytes that wait here use up the connection's window, for all its operations: take them, or drop the stream.
pub struct OpStream {
    op: OpId,
    client: ClientHandle,
    /// Items that `next_item` is assembling.
    open: BTreeMap<u32, PartialItem>,
    /// Most bulk that `next_item` assembles at a time, bytes.
    most_bulk_bytes: u64,
}

/// Item that is not complete yet.
struct PartialItem {
    body: Bytes,
    /// Size of the complete bulk, bytes.
    bulk_bytes: u64,
    start: BytesMut,
}

impl fmt::Debug for OpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpStream({})", self.op)
    }
}

impl OpStream {
    pub(crate) fn new(op: OpId, client: ClientHandle) -> Self {
        Self { op, client, open: BTreeMap::new(), most_bulk_bytes: u64::MAX }
    }

    /// Limits the bulk that `next_item` assembles at a time, together with the bodies of items before: an
    /// item beyond the limit is the error `TooLarge`, before its bulk is taken. Callers that expect no bulk
    /// pass 0, because only the server decides how much arrives.
    #[must_use]
    pub fn with_bulk_up_to(mut self, most_bulk_bytes: u64) -> Self {
        self.most_bulk_bytes = most_bulk_bytes;
        self
    }

    /// Number of the operation.
    #[must_use]
    pub fn op(&self) -> OpId {
        self.op
    }

    /// Returns the next reply; `None` after the last one. After an error there is none.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&mut self) -> Option<Result<Reply>> {
        poll_fn(|cx| self.poll_reply(cx)).await
    }

    /// Returns the next whole item, assembled in memory; `None` after the last one. Not to be mixed with
    /// [`next`](Self::next).
    ///
    /// # Cancel safety
    /// Safe: the bytes that have arrived are kept.
    pub async fn next_item(&mut self) -> Option<Result<Item>> {
        poll_fn(|cx| self.poll_item(cx)).await
    }

    /// Returns the only item of an answer, once the operation has ended successfully.
    ///
    /// # Errors
    /// The error of the operation, or `Corrupt` when it answered without an item or with several.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the operation.
    pub async fn only_item(mut self) -> Result<Item> {
        let mut first = None;
        while let Some(item) = self.next_item().await {
            if first.replace(item?).is_some() {
                return Err(Error::corrupt("expected one item in answer, found more"));
            }
        }
        first.ok_or_else(|| Error::corrupt("expected an item in answer, found none"))
    }

    /// Lets the operation run to its end and discards its answer: a one-way call.
    pub fn detach(self) {
        self.client.shared().change(|side| side.forget_stream(self.op));
    }

    /// Changes the urgency of the operation, also of its items that the server has queued.
    pub fn adjust(&self, urgency: Urgency) {
        self.client.shared().change(|side| side.adjust(self.op, urgency));
    }

    /// Sends a message to the running operation.
    ///
    /// # Errors
    /// `TooLarge` when it exceeds its limit, `Busy` when too much is waiting to be sent.
    pub fn note(&self, body: Bytes) -> Result<()> {
        self.client.shared().change(|side| side.note(self.op, body))
    }

    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Reply>>> {
        let shared = self.client.shared();
        let (reply, concerns_driver) = shared.with(|side| side.poll_reply(self.op, cx));
        if concerns_driver {
            shared.change(|_| ());
        }
        reply
    }

    fn room_bytes(&self) -> u64 {
        let of = |partial: &PartialItem| partial.bulk_bytes.saturating_add(partial.body.len() as u64);
        let in_flight = self.open.values().map(of).fold(0, u64::saturating_add);
        self.most_bulk_bytes.saturating_sub(in_flight)
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Item>>> {
        loop {
            match ready!(self.poll_reply(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(Reply::Item { body, bulk_bytes: 0, .. })) => {
                    return Poll::Ready(Some(Ok(Item { body, bulk: Bytes::new() })));
                }
                Some(Ok(Reply::Item { bulk_bytes, .. })) if bulk_bytes > self.room_bytes() => {
                    let most = self.most_bulk_bytes;
                    let found = most - self.room_bytes() + bulk_bytes;
                    let what = format!("expected at most {most} bytes of bulk at a time, found {found}");
                    return Poll::Ready(Some(Err(Error::too_large(what))));
                }
                Some(Ok(Reply::Item { item, body, bulk_bytes })) => {
                    let reserve = usize::try_from(bulk_bytes.min(FIRST_RESERVE_BYTES)).unwrap_or(0);
                    let start = BytesMut::with_capacity(reserve);
                    self.open.insert(item, PartialItem { body, bulk_bytes, start });
                }
                Some(Ok(Reply::Piece { item, offset, bytes, complete })) => {
                    if complete && let Some(PartialItem { body, mut start, .. }) = self.open.remove(&item) {
                        // The part is the whole bulk: no copy.
                        if offset == 0 {
                            return Poll::Ready(Some(Ok(Item { body, bulk: bytes })));
                        }
                        start.extend_from_slice(&bytes);
                        return Poll::Ready(Some(Ok(Item { body, bulk: start.freeze() })));
                    }
                    if let Some(partial) = self.open.get_mut(&item) {
                        partial.start.extend_from_slice(&bytes);
                    }
                }
            }
        }
    }
}

impl Stream for OpStream {
    type Item = Result<Reply>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Reply>>> {
        self.poll_reply(cx)
    }
}

impl Drop for OpStream {
    fn drop(&mut self) {
        self.client.shared().change(|side| side.drop_stream(self.op));
    }
}
