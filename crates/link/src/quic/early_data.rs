//! Early data (0-RTT, RFC 9001, section 4.6), sent before the handshake is over: a client that knows the server asks in
//! its first packets, and the server answers at once. Not here: how a server treats a client whose packets may be a
//! replay of an earlier client's (crate `node`).
//!
//! A server may not know the client's ticket any more. Then it rejects all early data, the stack forgets the streams,
//! and the client sends all of it again from the beginning, under keys that the server knows.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use quinn::{Connection, ZeroRttAccepted};

use super::adapter::SharedPace;
use super::endpoint::begin;

/// Bytes that a client says before the handshake is over, and keeps until then; a frame more at the most.
pub(super) const MAX_EARLY_BYTES: usize = 64 << 10;

/// How a handshake ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeOutcome {
    /// The other end is who it should be, and has taken what was said before.
    Accepted,
    /// It is who it should be, and has taken nothing.
    Rejected,
    /// There is no connection.
    Lost,
}

/// Resolves at the end of the handshake, for everybody who waits for it.
pub(super) type HandshakeEnd = Shared<BoxFuture<'static, HandshakeOutcome>>;

/// Does something unless the handshake ends well, or is not waited for.
struct OnFailure<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> OnFailure<F> {
    fn forget(&mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce()> Drop for OnFailure<F> {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|otherwise| otherwise());
    }
}

/// The end of a handshake that is under way; its round trip is told to the pace. `on_failure` hears that there was none. A
/// server has taken what came, whatever the stack says of it.
pub(super) fn handshake_end(
    connection: &Connection,
    pace: &Arc<SharedPace>,
    accepted: ZeroRttAccepted,
    on_failure: impl FnOnce() + Send + 'static,
) -> HandshakeEnd {
    let (connection, pace, mut on_failure) =
        (connection.clone(), Arc::clone(pace), OnFailure(Some(on_failure)));
    let handshake_end = async move {
        let is_accepted = accepted.await;
        if connection.close_reason().is_some() {
            return HandshakeOutcome::Lost;
        }
        on_failure.forget();
        // The choice was made before, so it is one that can be made.
        begin(&connection, &pace).unwrap_or_default();
        if is_accepted || connection.side().is_server() {
            HandshakeOutcome::Accepted
        } else {
            HandshakeOutcome::Rejected
        }
    };
    handshake_end.boxed().shared()
}

/// One side until its handshake is over.
pub(super) struct EarlyData {
    handshake_end: HandshakeEnd,
    /// Early data of a client, each part with its lane; `None` on a server, whose answers are never sent again.
    sent: Option<Vec<(usize, Bytes)>>,
    sent_bytes: usize,
}

impl EarlyData {
    pub(super) fn of_client(handshake_end: HandshakeEnd) -> Self {
        Self { handshake_end, sent: Some(Vec::new()), sent_bytes: 0 }
    }

    pub(super) fn of_server(handshake_end: HandshakeEnd) -> Self {
        Self { handshake_end, sent: None, sent_bytes: 0 }
    }

    /// How the handshake ended, once it has.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<HandshakeOutcome> {
        self.handshake_end.poll_unpin(cx)
    }

    /// Something is said that may have to be said again.
    pub(super) fn note(&mut self, lane: usize, bytes: &Bytes) {
        if let Some(sent) = &mut self.sent {
            self.sent_bytes += bytes.len();
            sent.push((lane, bytes.clone()));
        }
    }

    /// Nothing more is to be said until the handshake is over.
    pub(super) fn is_full(&self) -> bool {
        self.sent_bytes >= MAX_EARLY_BYTES
    }

    pub(super) fn into_sent(self) -> Vec<(usize, Bytes)> {
        self.sent.unwrap_or_default()
    }
}
