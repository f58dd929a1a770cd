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
pub(super) enum Proof {
    /// The other end is who it should be, and has taken what was said before.
    Taken,
    /// It is who it should be, and has taken nothing.
    Refused,
    /// There is no connection.
    Lost,
}

/// Resolves at the end of the handshake, for everybody who waits for it.
pub(super) type Proving = Shared<BoxFuture<'static, Proof>>;

/// Does something unless the handshake ends well, or is not waited for.
struct Unless<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Unless<F> {
    fn forget(&mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce()> Drop for Unless<F> {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|otherwise| otherwise());
    }
}

/// The end of a handshake that is under way; its round trip is told to the pace. `in_vain` hears that there was none. A
/// server has taken what came, whatever the stack says of it.
pub(super) fn proving(
    connection: &Connection,
    pace: &Arc<SharedPace>,
    taken: ZeroRttAccepted,
    in_vain: impl FnOnce() + Send + 'static,
) -> Proving {
    let (connection, pace, mut in_vain) = (connection.clone(), Arc::clone(pace), Unless(Some(in_vain)));
    let proving = async move {
        let is_taken = taken.await;
        if connection.close_reason().is_some() {
            return Proof::Lost;
        }
        in_vain.forget();
        // The choice was made before, so it is one that can be made.
        begin(&connection, &pace).unwrap_or_default();
        if is_taken || connection.side().is_server() { Proof::Taken } else { Proof::Refused }
    };
    proving.boxed().shared()
}

/// One side until its handshake is over.
pub(super) struct Early {
    proving: Proving,
    /// Early data of a client, each part with its lane; `None` on a server, whose answers are never sent again.
    said: Option<Vec<(usize, Bytes)>>,
    said_bytes: usize,
}

impl Early {
    pub(super) fn asking(proving: Proving) -> Self {
        Self { proving, said: Some(Vec::new()), said_bytes: 0 }
    }

    pub(super) fn answering(proving: Proving) -> Self {
        Self { proving, said: None, said_bytes: 0 }
    }

    /// How the handshake ended, once it has.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Proof> {
        self.proving.poll_unpin(cx)
    }

    /// Something is said that may have to be said again.
    pub(super) fn note(&mut self, lane: usize, bytes: &Bytes) {
        if let Some(said) = &mut self.said {
            self.said_bytes += bytes.len();
            said.push((lane, bytes.clone()));
        }
    }

    /// Nothing more is to be said until the handshake is over.
    pub(super) fn is_full(&self) -> bool {
        self.said_bytes >= MAX_EARLY_BYTES
    }

    pub(super) fn into_said(self) -> Vec<(usize, Bytes)> {
        self.said.unwrap_or_default()
    }
}
