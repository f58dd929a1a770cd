//! Registry of a server's links that further streams may join.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::channel::mpsc;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use wire::{Error, ErrorKind, Result};

use super::MAX_STREAMS;
use super::further_stream::{FurtherStream, JoinedStream};
use super::pinned_sender::PinnedSenders;
use super::sending::StreamsServer;
use super::ticket::{JoinTicket, LinkName, TICKET_BYTES};
use crate::carrier::broken;
use crate::carrier::tls::{ALPN_JOIN, ALPN_STREAMS, ALPN_WIRE};
use crate::clock::now;
use crate::multistream::topology::Topology;
use crate::{Link, TcpMonitor, carrier::tcp};

/// Time during which streams may join a link, from the admission of its client.
pub const JOIN_WITHIN: Duration = Duration::from_secs(30);

/// A link that streams may join.
struct RegisteredLink {
    ticket: JoinTicket,
    until: Instant,
    /// Number of streams that may still join.
    left: u32,
    streams: mpsc::Sender<FurtherStream>,
}

type RegisteredLinks = Arc<Mutex<HashMap<LinkName, RegisteredLink>>>;

/// Links of one server that streams may join: each as long as it lives, so there are at most as many as
/// connections. Clones share the registry.
#[derive(Clone, Default)]
pub struct StreamRegistry {
    entries: RegisteredLinks,
    pinned_senders: PinnedSenders,
}

/// TLS session by its negotiated protocol.
pub enum AcceptedSession {
    /// New link, whether streams may join it or not.
    Link(Link),
    /// Further stream of an existing link; it has to be [run](JoinedStream::run) as long as the link lives.
    Stream(Box<JoinedStream>),
    /// Session of another protocol.
    Other(Box<TlsStream<TcpStream>>),
}

impl StreamRegistry {
    /// Creates a registry whose further streams are sent from cores close to their network card, as far as
    /// `topology` knows them.
    #[must_use]
    pub fn on(topology: Topology) -> Self {
        Self { entries: RegisteredLinks::default(), pinned_senders: PinnedSenders::of(topology) }
    }

    /// Senders that are pinned to a core.
    #[cfg(test)]
    pub(super) fn pinned_senders(&self) -> &PinnedSenders {
        &self.pinned_senders
    }

    /// Accepts a session whose protocol was negotiated; reads the ticket of a stream that joins.
    ///
    /// # Errors
    /// `Denied` for an unknown ticket, or where no more streams may join; `Unreachable` when the session
    /// broke.
    ///
    /// # Cancel safety
    /// Dropping the future closes the socket.
    pub async fn accept(
        &self,
        mut session: TlsStream<TcpStream>,
        monitor: Option<TcpMonitor>,
        peer: String,
    ) -> Result<AcceptedSession> {
        let protocol = session.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        match protocol.as_deref() {
            Some(ALPN_WIRE) => Ok(AcceptedSession::Link(tcp::over_socket(session, monitor, peer))),
            Some(ALPN_STREAMS) => {
                let ticket = JoinTicket::of(session.get_ref().1)?;
                Ok(AcceptedSession::Link(self.first(session, monitor, peer, ticket)))
            }
            Some(ALPN_JOIN) => {
                let mut shown = [0; TICKET_BYTES];
                session.read_exact(&mut shown).await.map_err(broken)?;
                let streams = self.claim(&JoinTicket::from_bytes(shown))?;
                Ok(AcceptedSession::Stream(Box::new(JoinedStream::new(
                    session,
                    monitor,
                    streams,
                    self.pinned_senders.clone(),
                ))))
            }
            _ => Ok(AcceptedSession::Other(Box::new(session))),
        }
    }

    /// Tickets of all links that streams may join.
    #[cfg(test)]
    pub(super) fn tickets(&self) -> Vec<Vec<u8>> {
        lock(&self.entries).values().map(|entry| entry.ticket.bytes().to_vec()).collect()
    }

    fn first(
        &self,
        session: TlsStream<TcpStream>,
        monitor: Option<TcpMonitor>,
        peer: String,
        ticket: JoinTicket,
    ) -> Link {
        let (streams, arriving) = mpsc::channel(0);
        let registration = Registration { entries: Arc::clone(&self.entries), name: ticket.name() };
        let opening = LinkOpening { entries: Arc::clone(&self.entries), ticket, streams };
        StreamsServer::link(session, monitor, peer, arriving, registration).opening(move || opening.open())
    }

    /// Returns the link of a ticket, and counts the stream.
    fn claim(&self, shown: &JoinTicket) -> Result<mpsc::Sender<FurtherStream>> {
        let mut entries = lock(&self.entries);
        let entry = entries.get_mut(&shown.name()).filter(|entry| entry.ticket.is(shown));
        let may_join = |entry: &&mut RegisteredLink| entry.left > 0 && now() < entry.until;
        let entry = entry.filter(may_join).ok_or_else(|| {
            Error::new(ErrorKind::Denied, "the ticket belongs to no link that streams may join")
        })?;
        entry.left -= 1;
        Ok(entry.streams.clone())
    }
}

fn lock(entries: &RegisteredLinks) -> MutexGuard<'_, HashMap<LinkName, RegisteredLink>> {
    // Each change is one insertion or removal.
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a link for further streams.
struct LinkOpening {
    entries: RegisteredLinks,
    ticket: JoinTicket,
    streams: mpsc::Sender<FurtherStream>,
}

impl LinkOpening {
    /// Registers the link, whose client was admitted.
    fn open(self) {
        let Self { entries, ticket, streams } = self;
        let mut entries = lock(&entries);
        // The link is over, and its registration was removed.
        if !streams.is_closed() {
            let entry = RegisteredLink { until: now() + JOIN_WITHIN, left: MAX_STREAMS - 1, streams, ticket };
            entries.insert(entry.ticket.name(), entry);
        }
    }
}

/// Registration of a link, removed when dropped.
pub(super) struct Registration {
    entries: RegisteredLinks,
    name: LinkName,
}

impl Drop for Registration {
    fn drop(&mut self) {
        lock(&self.entries).remove(&self.name);
    }
}
