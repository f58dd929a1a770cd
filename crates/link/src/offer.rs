//! A connection that the data's side opens, where only the client can be reached: the server connects to a client that
//! waits for it, and serves there. Who is who in TLS is the other way round, and in everything after it as ever.
//!
//! The server knows the client by its certificate, the client the server by a token, which is the first thing that the
//! server says: its length in two bytes, little-endian, and its text. The client answers with one byte, [`TAKEN`], once it wants the
//! connection; what follows is the wire, the client's hello first.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::FutureExt;
use rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use wire::limits::MAX_TOKEN_BYTES;
use wire::{Error, ErrorKind, Result};

use crate::Link;
use crate::carrier::tcp::{
    CONNECT_TIMEOUT, READ_BYTES, hold_to, over_buffered, prepare, too_slow, unreachable,
};
use crate::carrier::tls::{self, Trust};
use crate::carrier::{broken, ended};

/// The protocol name of such a connection.
pub const ALPN_OFFER: &[u8] = b"corridor-offer/1";
/// Byte by which the client answers that it takes the connection.
const TAKEN: u8 = 1;

/// Connects to a client that waits, as the server; the link is to be served, once the client wants it. Waits for that as
/// long as the client is there. Where the system can hold TCP to a rate, no more than `most_bytes_per_sec` is sent.
///
/// # Errors
/// `Unreachable` or `TimedOut` when nobody waits there, `Denied` when it is not who it should be, or when it does not
/// take the token.
///
/// # Cancel safety
/// Dropping it closes the socket.
pub async fn offer(
    host: &str,
    port: u16,
    trust: &Trust,
    token: &str,
    most_bytes_per_sec: Option<f64>,
) -> Result<(Link, IpAddr)> {
    let peer = format!("{host}:{port}");
    let connecting = async {
        let stream = TcpStream::connect((host, port)).await.map_err(unreachable)?;
        prepare(&stream)?;
        // Where it cannot, whoever listens has been told.
        most_bytes_per_sec.map_or(Ok(()), |most| hold_to(&stream, most)).unwrap_or_default();
        let ip = stream.peer_addr().map_err(broken)?.ip();
        let mut session = tls::connect(stream, host, &[ALPN_OFFER], trust).await?;
        if session.get_ref().1.alpn_protocol() != Some(ALPN_OFFER) {
            return Err(Error::unsupported(
                "expected a client that waits for a server, found something else",
            ));
        }
        session.write_all(&said(token)?).await.map_err(broken)?;
        session.flush().await.map_err(broken)?;
        Ok((session, ip))
    };
    let at = |e: Error| e.context(format!("connecting to the client at {peer}"));
    let done = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
    let (mut session, ip) = done.unwrap_or_else(|_| Err(too_slow())).map_err(at)?;
    match session.read_u8().await {
        Ok(TAKEN) => Ok((over_buffered(session, peer), ip)),
        Ok(_) => Err(at(Error::corrupt("expected the client to take the connection, found something else"))),
        Err(_) => Err(at(Error::new(
            ErrorKind::Denied,
            "the client did not take the connection: its token is another one, or it has ended",
        ))),
    }
}

/// A server that has shown the token.
pub struct Offer {
    session: TlsStream<BufReader<TcpStream>>,
    peer: SocketAddr,
}

/// Hears who has connected, as the client. `knows` says whether a token is the right one.
///
/// # Errors
/// `TimedOut`, `Unreachable`, or `Denied` when it is another token.
///
/// # Cancel safety
/// Dropping it closes the socket.
pub async fn hear(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    knows: impl Fn(&str) -> bool,
) -> Result<Offer> {
    let hearing = async {
        prepare(&stream)?;
        let peer = stream.peer_addr().map_err(broken)?;
        let mut session = tls::accept(BufReader::with_capacity(READ_BYTES, stream), config).await?;
        let bytes = usize::from(session.read_u16_le().await.map_err(broken)?);
        if bytes > MAX_TOKEN_BYTES {
            return Err(Error::corrupt(format!(
                "expected a token of at most {MAX_TOKEN_BYTES} bytes, found {bytes}"
            )));
        }
        let mut token = vec![0; bytes];
        session.read_exact(&mut token).await.map_err(broken)?;
        if !std::str::from_utf8(&token).is_ok_and(knows) {
            return Err(Error::new(
                ErrorKind::Denied,
                "a server showed another token than the one asked for",
            ));
        }
        Ok(Offer { session, peer })
    };
    tokio::time::timeout(CONNECT_TIMEOUT, hearing).await.unwrap_or_else(|_| Err(too_slow()))
}

impl Offer {
    /// Address of the server.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Takes the connection: the client may begin.
    ///
    /// # Errors
    /// `Unreachable` when the server is not there any more.
    ///
    /// # Cancel safety
    /// Dropping it closes the connection.
    pub async fn take(mut self) -> Result<Link> {
        // A server says nothing before it is taken: what can be read is its end.
        if self.session.read_u8().now_or_never().is_some() {
            return Err(ended());
        }
        self.session.write_u8(TAKEN).await.map_err(broken)?;
        self.session.flush().await.map_err(broken)?;
        Ok(over_buffered(self.session, self.peer.to_string()))
    }
}

fn said(token: &str) -> Result<Vec<u8>> {
    let too_long = || Error::invalid(format!("expected a token of at most {MAX_TOKEN_BYTES} bytes"));
    let bytes =
        u16::try_from(token.len()).ok().filter(|_| token.len() <= MAX_TOKEN_BYTES).ok_or_else(too_long)?;
    Ok([&bytes.to_le_bytes(), token.as_bytes()].concat())
}
