//! A peer: the QUIC library with its own defaults for windows, pacing and congestion control, and one stream.

use std::net::SocketAddr;
use std::sync::Arc;

use array::{Error, ErrorKind, Result};
use link::{Fingerprint, Identity, Trust, carrier::tls};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{Connection, Endpoint, Incoming};

/// Bytes written, and read, at a time.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes of a request, which is the number of wanted bytes.
const REQUEST_BYTES: usize = 8;

fn broken(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unreachable, format!("the stock connection broke: {error}"))
}

/// A server port.
pub(super) struct StockServer(Endpoint);

impl StockServer {
    pub(super) fn bind(address: SocketAddr, identity: &Identity) -> Result<Self> {
        let crypto =
            QuicServerConfig::try_from(identity.server_config(&[tls::ALPN_WIRE])?).map_err(broken)?;
        let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        Ok(Self(Endpoint::server(config, address)?))
    }

    pub(super) fn address(&self) -> Result<SocketAddr> {
        Ok(self.0.local_addr()?)
    }

    /// The next client, before its handshake. Cancel safe.
    pub(super) async fn accept(&self) -> Option<Incoming> {
        self.0.accept().await
    }
}

/// Sends the number of bytes that each stream of a client requests.
pub(super) async fn answer(incoming: Incoming) {
    let Ok(connection) = incoming.await else { return };
    let piece = vec![0; PIECE_BYTES];
    while let Ok((mut stream, mut requests)) = connection.accept_bi().await {
        let mut request = [0; REQUEST_BYTES];
        if requests.read_exact(&mut request).await.is_err() {
            return;
        }
        let mut left = u64::from_le_bytes(request);
        while left > 0 {
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
            if stream.write_all(&piece[..now]).await.is_err() {
                return;
            }
            left -= now as u64;
        }
        // A client that is gone has closed it already.
        drop(stream.finish());
    }
}

/// Client side.
pub(super) struct StockClient {
    connection: Connection,
    _endpoint: Endpoint,
}

impl StockClient {
    pub(super) async fn connect(server: SocketAddr, fingerprint: Fingerprint) -> Result<Self> {
        let mut crypto = tls::client_config(&Trust::Fingerprint(fingerprint))?;
        crypto.alpn_protocols = vec![tls::ALPN_WIRE.to_vec()];
        let crypto = QuicClientConfig::try_from(crypto).map_err(broken)?;
        let any = SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 0);
        let endpoint = Endpoint::client(any)?;
        let config = quinn::ClientConfig::new(Arc::new(crypto));
        let connection =
            endpoint.connect_with(config, server, "messages").map_err(broken)?.await.map_err(broken)?;
        Ok(Self { connection, _endpoint: endpoint })
    }

    /// Fetches `bytes`; calls `arrived` for each piece.
    pub(super) async fn fetch(&self, bytes: u64, mut arrived: impl FnMut(u64)) -> Result<()> {
        let (mut requests, mut stream) = self.connection.open_bi().await.map_err(broken)?;
        requests.write_all(&bytes.to_le_bytes()).await.map_err(broken)?;
        requests.finish().map_err(broken)?;
        while let Some(chunk) = stream.read_chunk(PIECE_BYTES, true).await.map_err(broken)? {
            arrived(chunk.bytes.len() as u64);
        }
        Ok(())
    }
}
