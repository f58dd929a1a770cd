//! A port on which servers may connect to a client in this process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use array::{Error, Result};
use client::reverse::{AwaitAddress, AwaitedServers};
use link::Identity;
use link::offer::{ALPN_OFFER, Offer, hear};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connections::{Connections, Limits};
use crate::port::listen::listen;
use crate::token::Token;

/// Maximum number of connections that have not presented the token.
const MAX_UNAUTHENTICATED: usize = 64;
/// Maximum number of servers in the queue; further ones are disconnected, and try again.
const MAX_OFFERS: usize = 8;
/// Minimum interval between two warnings about peers that are not the awaited server.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);
/// Pause after the system refused a connection, which an immediate retry would not change.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Listens for servers, which are delivered by the returned queue, until that is dropped.
///
/// # Errors
/// `Io` if the address is not available, `Invalid` for a malformed token.
pub async fn wait_at(at: &AwaitAddress, identity: &Identity) -> Result<AwaitedServers> {
    let token = at.token.as_deref().map_or_else(Token::random, Token::chosen)?;
    let config = identity.server_config(&[ALPN_OFFER])?;
    let listener = listen(&[at.address]).await?;
    let address = listener.local_addr()?;
    let (offers, queue) = mpsc::channel(MAX_OFFERS);
    let mut listening = JoinSet::new();
    listening.spawn(accept(listener, config, token.clone(), offers));
    Ok(AwaitedServers::new(address, token.secret().to_owned(), queue, listening))
}

/// Accepts connections; those that send nothing do not block others.
async fn accept(
    listener: TcpListener,
    config: Arc<tokio_rustls::rustls::ServerConfig>,
    token: Token,
    offers: mpsc::Sender<Offer>,
) {
    let connections = Connections::new(Limits { most_visitors: MAX_UNAUTHENTICATED, ..Limits::default() });
    let mut heard: JoinSet<std::result::Result<(), (SocketAddr, Error)>> = JoinSet::new();
    let mut warned: Option<Instant> = None;
    loop {
        tokio::select! {
            Some(done) = heard.join_next() => {
                let Ok(Err((peer, error))) = done else { continue };
                // Any host can cause many such errors.
                if warned.is_some_and(|at| at.elapsed() < WARNING_INTERVAL) {
                    tracing::debug!(%peer, %error, "another peer that is not the awaited server");
                    continue;
                }
                warned = Some(Instant::now());
                tracing::warn!(
                    "{peer} is not the awaited server: {error}; start it with the command printed above, or give both the \
                     same `#token=`"
                );
            }
            // Connections that were closed for others end at once.
            accepted = listener.accept(), if heard.len() < 2 * MAX_UNAUTHENTICATED => {
                let Ok((stream, peer)) = accepted else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let (config, token, offers) = (Arc::clone(&config), token.clone(), offers.clone());
                let slot = connections.enter(peer.ip());
                heard.spawn(async move {
                    let hearing = hear(stream, config, |shown| token.matches(shown));
                    let offer = tokio::select! {
                        heard = hearing => heard.map_err(|error| (peer, error))?,
                        // Not an error of the peer: it was dismissed, or sent nothing in time.
                        _ = slot.visit_ended() => return Ok(()),
                    };
                    // If the queue is full, the offer is dropped, and the server tries again.
                    drop(offers.try_send(offer));
                    Ok(())
                });
            }
        }
    }
}
