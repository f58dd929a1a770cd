//! Early data (0-RTT, RFC 9001, section 4.6), sent before the handshake is over: a client with a session
//! ticket of the server sends requests in its first packets, and the server answers at once. An attacker can
//! send the same packets again, so only operations that a repetition does not harm (`only_reads` in crate `server`)
//! begin before the handshake is over.
//!
//! The server may have lost the client's ticket. Then it rejects all early data, the stack forgets the
//! streams, and the client sends all of it again from the beginning, under keys that the server knows.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use quinn::{Connection, ZeroRttAccepted};

use super::adapter::SharedPace;
use super::endpoint::begin;

/// Most bytes that a client sends before the handshake is over, and keeps until then; plus one frame.
pub(super) const MAX_EARLY_BYTES: usize = 64 << 10;

/// Outcome of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeOutcome {
    /// The other end is authenticated and has accepted the early data.
    Accepted,
    /// The other end is authenticated and has rejected the early data.
    Rejected,
    /// The connection was lost.
    Lost,
}

/// Future that resolves at the end of the handshake; clones resolve together.
pub(super) type HandshakeEnd = Shared<BoxFuture<'static, HandshakeOutcome>>;

/// Runs a function when dropped, unless it was disarmed after a successful handshake.
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

/// Returns the end of the handshake, whose round trip is passed to the controller. `on_failure` is called
/// when the handshake fails. On a server the early data was always accepted, whatever the stack reports.
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
        // The choice was accepted before, so it is valid.
        begin(&connection, &pace).unwrap_or_default();
        if is_accepted || connection.side().is_server() {
            HandshakeOutcome::Accepted
        } else {
            HandshakeOutcome::Rejected
        }
    };
    handshake_end.boxed().shared()
}

/// State of one side until its handshake is over.
pub(super) struct EarlyData {
    handshake_end: HandshakeEnd,
    /// Early data of a client, each part with its lane; `None` on a server, whose answers are never sent
    /// again.
    sent: Option<Vec<(usize, Bytes)>>,
    sent_bytes: usize,
}

impl EarlyData {
    pub(super) fn for_client(handshake_end: HandshakeEnd) -> Self {
        Self { handshake_end, sent: Some(Vec::new()), sent_bytes: 0 }
    }

    pub(super) fn for_server(handshake_end: HandshakeEnd) -> Self {
        Self { handshake_end, sent: None, sent_bytes: 0 }
    }

    /// Polls the outcome of the handshake.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<HandshakeOutcome> {
        self.handshake_end.poll_unpin(cx)
    }

    /// Records data that may have to be sent again.
    pub(super) fn note(&mut self, lane: usize, bytes: &Bytes) {
        if let Some(sent) = &mut self.sent {
            self.sent_bytes += bytes.len();
            sent.push((lane, bytes.clone()));
        }
    }

    /// True when no more data may be sent until the handshake is over.
    pub(super) fn is_full(&self) -> bool {
        self.sent_bytes >= MAX_EARLY_BYTES
    }

    pub(super) fn into_sent(self) -> Vec<(usize, Bytes)> {
        self.sent.unwrap_or_default()
    }
}
