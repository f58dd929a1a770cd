//! Cache of the servers that this process has connected to: session tickets, which resume an earlier
//! handshake (RFC 8446, section 2.2), and tokens, which validate the client's address. With both, a client
//! sends requests in its first packets and is answered at once.
//!
//! Tickets and tokens are valid for their server only. They are cached by the server's address and the
//! client's trust settings, and are never sent to a server with another identity; a server that has lost its
//! tickets performs a full handshake. The TLS library keeps tickets in memory and cannot export them, so a
//! new process begins without.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, TokenMemoryCache};
use wire::{Error, Result};

use crate::Trust;
use crate::carrier::tls;
use crate::clock::now;

/// Most servers in the cache; the least recently used is evicted.
const MAX_CACHED_SERVERS: usize = 64;
/// Lifetime of a cached server, after which its certificate is verified again.
const CACHED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// Most tokens kept of one server.
const MAX_TOKENS: usize = 4;

/// Key of a cached server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerKey {
    pub(super) address: SocketAddr,
    pub(super) host: String,
    pub(super) trust: Trust,
    pub(super) protocol: &'static [u8],
}

struct CachedServer {
    server: ServerKey,
    /// Configuration that holds the tickets and tokens.
    config: ClientConfig,
    since: Instant,
}

/// Cached servers, the most recently used at the end.
static CACHE: Mutex<VecDeque<CachedServer>> = Mutex::new(VecDeque::new());

/// Returns the configuration for a connection to a server, with its tickets.
///
/// # Errors
/// `Invalid` without encryption, `Internal` where TLS 1.3 is not available.
pub(super) fn config(server: &ServerKey) -> Result<ClientConfig> {
    let now = now();
    if let Some(known) = known(server, now) {
        return Ok(known);
    }
    // Reads certificates from disk, so the lock is not held.
    let config = new_config(server)?;
    // Another task may have connected to the same server meanwhile; the later configuration is kept.
    let mut all = all();
    all.retain(|one| one.server != *server);
    all.push_back(CachedServer { server: server.clone(), config: config.clone(), since: now });
    let excess = all.len().saturating_sub(MAX_CACHED_SERVERS);
    all.drain(..excess);
    Ok(config)
}

/// Returns the cached configuration of a server, and marks it as the most recently used. Removes expired
/// entries.
fn known(server: &ServerKey, now: Instant) -> Option<ClientConfig> {
    let mut all = all();
    all.retain(|one| now.saturating_duration_since(one.since) < CACHED_FOR);
    let at = all.iter().position(|one| one.server == *server)?;
    let found = all.remove(at)?;
    let config = found.config.clone();
    all.push_back(found);
    Some(config)
}

fn all() -> MutexGuard<'static, VecDeque<CachedServer>> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a server: the next connection performs a full handshake.
pub(super) fn forget(server: &ServerKey) {
    all().retain(|one| one.server != *server);
}

fn new_config(server: &ServerKey) -> Result<ClientConfig> {
    if matches!(server.trust, Trust::Plain) {
        return Err(Error::invalid("expected a fingerprint or a certificate: QUIC is always encrypted"));
    }
    let mut crypto = tls::client_config(&server.trust)?;
    crypto.alpn_protocols = vec![server.protocol.to_vec()];
    crypto.enable_early_data = true;
    let crypto = QuicClientConfig::try_from(crypto)
        .map_err(|e| Error::internal(format!("expected TLS 1.3, found: {e}")))?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.token_store(Arc::new(TokenMemoryCache::new(1, MAX_TOKENS)));
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(port: u16, fingerprint: char) -> ServerKey {
        let fingerprint = format!("sha256:{}", fingerprint.to_string().repeat(64));
        ServerKey {
            address: SocketAddr::from(([192, 0, 2, 1], port)),
            host: "cached.test".into(),
            trust: Trust::Fingerprint(fingerprint.parse().unwrap()),
            protocol: tls::ALPN_WIRE,
        }
    }

    fn is_kept(server: &ServerKey) -> bool {
        all().iter().any(|one| one.server == *server)
    }

    #[test]
    fn tickets_are_kept_per_server_and_for_a_limited_number_of_servers() {
        let (first, other) = (server(1, 'a'), server(1, 'b'));
        config(&first).unwrap();
        assert!(is_kept(&first) && !is_kept(&other), "another certificate at the same address");
        config(&other).unwrap();
        forget(&first);
        assert!(!is_kept(&first) && is_kept(&other));
        for port in 2..=u16::try_from(MAX_CACHED_SERVERS).unwrap() + 1 {
            config(&server(port, 'a')).unwrap();
        }
        assert!(!is_kept(&other) && is_kept(&server(2, 'a')), "the oldest has gone");
    }
}
