//! Connection that the server opens, where only the client is reachable: the server connects to a client that
//! waits for it, and serves there. The roles in TLS are reversed; the protocol above TLS is unchanged.
//!
//! The server authenticates the client by its certificate, the client authenticates the server by a token.
//! The server first sends the token: its length in two bytes, little-endian, and its text. The client answers
//! with one byte, [`TAKEN`], when it accepts the connection; then the protocol begins with the client's
//! hello.

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

/// ALPN protocol name of such a connection.
pub const ALPN_OFFER: &[u8] = b"corridor-offer/1";
/// Byte by which the client accepts the connection.
const TAKEN: u8 = 1;

/// Connects to a waiting client, as the server, and waits until the client accepts the connection; the link
/// is then to be served. Sends at most `most_bytes_per_sec`, where the system can limit TCP to a rate.
///
/// # Errors
/// `Unreachable` or `TimedOut` when no client waits there, `Denied` when the client's identity is not the
/// trusted one, or when it rejects the token.
///
/// # Cancel safety
/// Dropping the future closes the socket.
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
        // The listener has reported before that the system cannot limit the rate.
        most_bytes_per_sec.map_or(Ok(()), |most| hold_to(&stream, most)).unwrap_or_default();
        let ip = stream.peer_addr().map_err(broken)?.ip();
        let mut session = tls::connect(stream, host, &[ALPN_OFFER], trust).await?;
        if session.get_ref().1.alpn_protocol() != Some(ALPN_OFFER) {
            return Err(Error::unsupported("the peer is not a client that waits for a server"));
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
        Ok(_) => Err(at(Error::corrupt("the client sent an invalid answer to the offer"))),
        Err(_) => Err(at(Error::new(
            ErrorKind::Denied,
            "the client rejected the connection: it has another token, or it has ended",
        ))),
    }
}

/// Server that has presented the right token.
pub struct Offer {
    session: TlsStream<BufReader<TcpStream>>,
    peer: SocketAddr,
}

/// Accepts a server's connection, as the client. `knows` checks the token.
///
/// # Errors
/// `TimedOut`, `Unreachable`, or `Denied` for a wrong token.
///
/// # Cancel safety
/// Dropping the future closes the socket.
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
            return Err(Error::new(ErrorKind::Denied, "a server presented a wrong token"));
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

    /// Accepts the connection: the client may begin.
    ///
    /// # Errors
    /// `Unreachable` when the server has gone.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn take(mut self) -> Result<Link> {
        // A server sends nothing before it is accepted: readable data means that it has ended the connection.
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
