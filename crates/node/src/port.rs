//! One port for everything: the wire over TLS, HTTPS, and on loopback plain HTTP. The first bytes tell which.
//!
//! Connections are bounded in number and must say what they want within [`FIRST_BYTES_WITHIN`]; whatever is none of
//! these protocols is closed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::rustls;

use crate::connection::Service;

/// Connections at a time.
pub const MAX_CONNECTIONS: usize = 1024;
/// How long a new connection may take to say what it is, and to finish its handshake.
pub const FIRST_BYTES_WITHIN: Duration = Duration::from_secs(10);
/// Largest header of a request, bytes.
const MAX_HEADER_BYTES: usize = 16 << 10;
/// Bytes that tell protocols apart.
const SNIFFED_BYTES: usize = 4;
/// Pause after the system refused a connection (too many open files): it will not be better at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a connection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Tls,
    Http,
    Wire,
    Unknown,
}

fn protocol(first: &[u8]) -> Protocol {
    const METHODS: [&[u8]; 6] = [b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"DELE"];
    match first {
        // A TLS record of a handshake, version 3.x.
        [0x16, 0x03, ..] => Protocol::Tls,
        first if METHODS.contains(&first) => Protocol::Http,
        // The length of a hello, little-endian, always below 64 KiB.
        [_, _, 0, 0] => Protocol::Wire,
        _ => Protocol::Unknown,
    }
}

/// What may come in unencrypted, on loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// Pages for the browser of this machine.
    Http,
    /// The wire too: a choice one must make.
    HttpAndWire,
}

/// A listening port, and what answers on it.
pub struct Port {
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    plain: Plain,
    /// Pages over plain HTTP, over TLS, and the way from one to the other.
    pub(crate) sites: Sites,
    service: Arc<Service>,
}

/// What HTTP answers, by the kind of connection.
#[derive(Clone)]
pub(crate) struct Sites {
    pub(crate) plain: Router,
    pub(crate) encrypted: Router,
    pub(crate) redirect: Router,
}

/// Listens on the first of `wanted` that is free.
///
/// # Errors
/// `Io`, naming the address that could not be had.
pub async fn listen(wanted: &[SocketAddr]) -> Result<TcpListener> {
    let mut last = Error::invalid("expected an address to listen on, found none");
    for address in wanted {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(e) => last = Error::new(ErrorKind::Io, format!("listening on {address}: {e}")),
        }
    }
    Err(last)
}

impl Port {
    /// Puts everything on a listener.
    pub(crate) fn new(
        listener: TcpListener,
        tls: Arc<rustls::ServerConfig>,
        plain: Plain,
        sites: Sites,
        service: Arc<Service>,
    ) -> Self {
        Self { listener, tls, plain, sites, service }
    }

    /// Answers for ever.
    ///
    /// # Cancel safety
    /// Dropping it ends every connection.
    pub async fn run(self) {
        let this = Arc::new(self);
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            // Beyond the limit new ones wait in the system's queue.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            while connections.try_join_next().is_some() {}
            match this.listener.accept().await {
                Ok((stream, peer)) => {
                    let this = Arc::clone(&this);
                    connections.spawn(async move {
                        let _place = place;
                        if let Err(error) = this.connection(stream, peer).await {
                            tracing::debug!(%peer, %error, "connection ended");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn connection(&self, stream: TcpStream, peer: SocketAddr) -> Result<()> {
        link::tcp::prepare(&stream)?;
        let is_loopback = peer.ip().to_canonical().is_loopback();
        let first =
            tokio::time::timeout(FIRST_BYTES_WITHIN, sniff(&stream)).await.map_err(|_| too_slow())??;
        match first {
            Protocol::Tls => self.encrypted(stream, peer).await,
            Protocol::Http if is_loopback => serve_http(stream, self.sites.plain.clone()).await,
            Protocol::Http => serve_http(stream, self.sites.redirect.clone()).await,
            Protocol::Wire if is_loopback && self.plain == Plain::HttpAndWire => {
                Arc::clone(&self.service).serve(link::tcp::over(stream, peer.to_string())).await
            }
            Protocol::Wire => Err(Error::new(ErrorKind::Denied, "the wire without TLS is not allowed here")),
            Protocol::Unknown => Err(Error::corrupt("expected TLS or HTTP, found something else")),
        }
    }

    async fn encrypted(&self, stream: TcpStream, peer: SocketAddr) -> Result<()> {
        let session = link::tls::accept(stream, Arc::clone(&self.tls));
        let session = tokio::time::timeout(FIRST_BYTES_WITHIN, session).await.map_err(|_| too_slow())??;
        if link::tls::is_wire(&session) {
            return Arc::clone(&self.service).serve(link::tcp::over(session, peer.to_string())).await;
        }
        serve_http(session, self.sites.encrypted.clone()).await
    }
}

fn too_slow() -> Error {
    Error::new(ErrorKind::TimedOut, "the client did not say in time what it wants")
}

/// Looks at the first bytes without taking them.
async fn sniff(stream: &TcpStream) -> Result<Protocol> {
    let mut first = [0; SNIFFED_BYTES];
    loop {
        let there = stream.peek(&mut first).await?;
        if there == SNIFFED_BYTES {
            return Ok(protocol(&first));
        }
        if there == 0 {
            return Err(Error::new(ErrorKind::Unreachable, "the client ended the connection at once"));
        }
        // Bytes that are there already make `peek` ready; look again when more may have come.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    site: Router,
) -> Result<()> {
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(FIRST_BYTES_WITHIN)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(site))
        .with_upgrades()
        .await
        .map_err(|e| Error::new(ErrorKind::Unreachable, format!("HTTP: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_protocols_apart() {
        assert_eq!(protocol(&[0x16, 0x03, 0x01, 0x02]), Protocol::Tls);
        assert_eq!(protocol(b"GET "), Protocol::Http);
        assert_eq!(protocol(b"POST"), Protocol::Http);
        assert_eq!(protocol(&[0x40, 0x01, 0, 0]), Protocol::Wire);
        assert_eq!(protocol(&[0xff, 0x01, 7, 0]), Protocol::Unknown);
        assert_eq!(protocol(b"get "), Protocol::Unknown);
    }
}
