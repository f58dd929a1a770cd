//! Client side for applications: requests as streams of replies.

pub(crate) mod read_sink;
pub(crate) mod read_sinks;
pub(crate) mod receive_group;
pub(crate) mod request_queue;
pub(crate) mod request_set;
pub(crate) mod stream;

mod side;

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;

use bytes::Bytes;
use wire::{Client, ClientConfig, Error, ErrorKind, Machine, Priority, Result, SentAhead, Urgency, Welcome};

use crate::Link;
use crate::client::receive_group::{GroupMember, ReceiveGroup};
use crate::client::request_queue::QueuePosition;
use crate::client::stream::OpStream;
use crate::clock::now;
use crate::drive::{Driver, ProtocolSide, SharedSide, drive, watch};

pub(crate) use side::{AnswerConsumer, ClientSide};

/// Most replies that wait in all streams of a connection together, beyond [`OWN_REPLIES`] of each; the
/// connection then stops receiving.
pub const MAX_WAITING_REPLIES: usize = 16_384;
/// Most bytes of reply bodies that wait in all streams of a connection together, beyond [`OWN_BODY_BYTES`] of
/// each; the connection then stops receiving. Bulk is bounded by the window.
pub const MAX_WAITING_BODY_BYTES: usize = 16 << 20;
/// Replies that each stream may hold besides the shared limit: those of a small answer. So one stream
/// proceeds, however many others wait to be read.
pub const OWN_REPLIES: usize = 2;
/// Bytes of reply bodies that each stream may hold besides the shared limit.
pub const OWN_BODY_BYTES: usize = 1 << 10;
/// Operation numbers that are reserved for callers in the middle of a series of requests.
const NUMBERS_KEPT: u32 = 1 << 28;

/// Puts a client on a link.
///
/// # Errors
/// Returned when a value in `config` exceeds its limit.
pub fn connect(link: Link, config: ClientConfig) -> Result<(ClientHandle, Driver)> {
    put_on(link, config, None)
}

/// Puts a client on a link that shares the rate of `group` with its other connections.
///
/// # Errors
/// The errors of [`connect`].
pub fn connect_among(
    group: &ReceiveGroup,
    link: Link,
    mut config: ClientConfig,
) -> Result<(ClientHandle, Driver)> {
    let member = group.join(&mut config);
    put_on(link, config, member)
}

fn put_on(
    link: Link,
    mut config: ClientConfig,
    member: Option<GroupMember>,
) -> Result<(ClientHandle, Driver)> {
    if link.is_paced {
        config.sent_ahead = SentAhead::All;
    }
    let mut machine = Client::new(config, now())?;
    if link.by_parts {
        machine.expect_parts();
    }
    // The congestion controllers of this project keep queues short in spite of losses.
    let flow = link.flow().filter(|_| !link.is_paced);
    let shared = SharedSide::new(ClientSide::new(machine, link.by_parts, member, flow));
    let driver = drive(link, Arc::clone(&shared));
    Ok((ClientHandle(Arc::new(ConnectionOwner(shared))), driver))
}

/// Part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Head of an item.
    Item {
        /// Number of the item in the operation.
        item: u32,
        /// Small part of the item.
        body: Bytes,
        /// Size of the bulk that follows in pieces.
        bulk_bytes: u64,
    },
    /// Part of an item's bulk.
    Piece {
        /// Number of the item in the operation.
        item: u32,
        /// Offset of the bytes in the item's bulk.
        offset: u64,
        /// Bytes of the bulk.
        bytes: Bytes,
        /// True when the item is complete and its checksum is right. Until then the bytes are not verified.
        complete: bool,
    },
}

impl Reply {
    fn body_bytes(&self) -> usize {
        match self {
            Self::Item { body, .. } => body.len(),
            Self::Piece { .. } => 0,
        }
    }

    fn bulk_bytes(&self) -> u64 {
        match self {
            Self::Item { .. } => 0,
            Self::Piece { bytes, .. } => bytes.len() as u64,
        }
    }
}

/// Whole item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Small part of the item.
    pub body: Bytes,
    /// Bulk with verified checksum.
    pub bulk: Bytes,
}

/// Closes the connection when the last handle and the last stream are gone.
struct ConnectionOwner(Arc<SharedSide<ClientSide>>);

impl Drop for ConnectionOwner {
    fn drop(&mut self) {
        self.0.change(|side| {
            side.machine.close(Error::new(ErrorKind::Cancelled, "the client closed the connection"))
        });
    }
}

/// Observes a connection without keeping it open.
#[derive(Clone)]
pub struct ClientWatch(Weak<ConnectionOwner>);

impl ClientWatch {
    /// Returns whether a requested answer is incomplete although the application has taken everything that
    /// was received; `None` once the connection has ended.
    #[must_use]
    pub fn is_waiting(&self) -> Option<bool> {
        let owner = self.0.upgrade()?;
        owner.0.with(|side| {
            let is_waiting = !side.consumers.is_empty() && side.has_space() && side.machine.wants_frames();
            side.ended.is_none().then_some(is_waiting)
        })
    }
}

impl fmt::Debug for ClientWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientWatch")
    }
}

/// Requests operations from a server. Cheap to clone; the connection lives as long as a handle or a stream
/// does.
#[derive(Clone)]
pub struct ClientHandle(Arc<ConnectionOwner>);

impl fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientHandle")
    }
}

impl ClientHandle {
    pub(crate) fn shared(&self) -> &SharedSide<ClientSide> {
        &self.0.0
    }

    /// Starts an operation at once.
    ///
    /// # Errors
    /// `Busy` when there is no room for another one now, `TooLarge` when name or parameters exceed their
    /// limit, or the reason why the connection ended.
    pub fn try_request(&self, name: &str, parameters: Bytes, urgency: Urgency) -> Result<OpStream> {
        let op = self.shared().change(|side| side.request_stream(name, parameters, urgency))?;
        Ok(OpStream::new(op, self.clone()))
    }

    /// Starts an operation as soon as there is room for it, which is nearly always at once.
    ///
    /// # Errors
    /// The errors of [`try_request`](Self::try_request) except `Busy`.
    ///
    /// # Cancel safety
    /// Safe: until it returns, nothing was requested.
    pub async fn request(&self, name: &str, parameters: Bytes, urgency: Urgency) -> Result<OpStream> {
        loop {
            self.room(urgency.priority).await;
            match self.try_request(name, parameters.clone(), urgency) {
                // Another caller was faster. A server without capacity for this client also answers `Busy`,
                // permanently.
                Err(error) if error.kind() == ErrorKind::Busy && self.ended().is_none() => {}
                done => return done,
            }
        }
    }

    /// Waits until there is room for an operation of this priority, or the connection is over.
    pub(crate) async fn room(&self, priority: Priority) {
        let position = self.shared().with(|side| side.waiting_for_room.position(priority));
        let place = QueueGuard { client: self, position };
        poll_fn(|cx| {
            self.shared().with(|side| {
                if side.ended.is_some() || side.machine.room(priority) > 0 {
                    return Poll::Ready(());
                }
                side.waiting_for_room.wait(place.position, cx.waker());
                Poll::Pending
            })
        })
        .await;
    }

    /// Runs an operation that answers with one item.
    ///
    /// # Errors
    /// The error of the operation, or `Corrupt` when it answered without an item.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the operation.
    pub async fn call(&self, name: &str, parameters: Bytes, urgency: Urgency) -> Result<Item> {
        self.request(name, parameters, urgency).await?.only_item().await
    }

    /// Waits for the end of the handshake.
    ///
    /// # Errors
    /// The reason why the connection ended.
    ///
    /// # Cancel safety
    /// Safe: nothing is consumed.
    pub async fn welcomed(&self) -> Result<Welcome> {
        poll_fn(|cx| {
            self.shared().with(|side| match (&side.ended, &side.welcome) {
                (Some(error), _) => Poll::Ready(Err(error.clone())),
                (None, Some(welcome)) => Poll::Ready(Ok(welcome.clone())),
                (None, None) => {
                    watch(&mut side.waiting_for_news, cx);
                    Poll::Pending
                }
            })
        })
        .await
    }

    /// Waits for the end of the connection and returns the reason.
    ///
    /// # Cancel safety
    /// Safe: nothing is consumed.
    pub async fn closed(&self) -> Error {
        poll_fn(|cx| {
            self.shared().with(|side| {
                side.ended.clone().map_or_else(
                    || {
                        watch(&mut side.waiting_for_news, cx);
                        Poll::Pending
                    },
                    Poll::Ready,
                )
            })
        })
        .await
    }

    /// Returns an observer that does not keep this connection open.
    #[must_use]
    pub fn watch(&self) -> ClientWatch {
        ClientWatch(Arc::downgrade(&self.0))
    }

    /// True when so few operation numbers are left that further requests belong on another connection.
    /// Operations in flight continue.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.shared().with(|side| side.machine.numbers_left() < NUMBERS_KEPT)
    }

    /// Returns the reason why the connection ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<Error> {
        self.shared().with(|side| side.ended.clone())
    }

    /// Ends the connection and sends the reason to the server; all operations in flight fail.
    pub fn close(&self, error: Error) {
        self.shared().change(|side| {
            side.machine.close(error);
            side.settle();
        });
    }
}

/// Place in the queue for room. When it is dropped, it passes on the wake-up that it received.
struct QueueGuard<'a> {
    client: &'a ClientHandle,
    position: QueuePosition,
}

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        self.client.shared().with(|side| {
            side.waiting_for_room.leave(self.position);
            side.give_room();
        });
    }
}
