//! The server's side: connects to a waiting client, serves it, and connects again after the connection has ended.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use client::dial::trust_of;
use client::url::Url;
use link::offer::offer;
use link::{Link, Trust};

use crate::connection::Service;
use crate::connections::Connections;
use crate::token::{Admission, Token};

/// Pause before connecting again, whatever the outcome; doubled after each failed attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Maximum pause between attempts.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// A client that waits for this server to connect.
pub struct WaitingClient {
    host: String,
    port: u16,
    trust: Trust,
    token: Token,
    most_bytes_per_sec: Option<f64>,
}

impl WaitingClient {
    /// Creates a connector to the client that printed `url`. At most `most_bytes_per_sec` are sent to it, whatever it
    /// requests.
    ///
    /// # Errors
    /// `Invalid` for a URL of several servers, or without its token.
    pub fn of(url: &Url, most_bytes_per_sec: Option<f64>) -> Result<Self> {
        let bad = |what: &str| {
            Error::invalid(format!("expected the whole URL that the waiting client printed, {what}"))
        };
        if !url.replicas.is_empty() {
            return Err(bad("found several servers; give `--to` once for each client"));
        }
        let token = url.token.as_deref().ok_or_else(|| bad("found no token in it"))?;
        let (trust, token) = (trust_of(url)?, Token::chosen(token)?);
        Ok(Self { host: url.host.clone(), port: url.port, trust, token, most_bytes_per_sec })
    }

    /// Serves the client repeatedly, without end.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection.
    pub async fn run(&self, service: Arc<Service>, connections: &Connections) {
        let mut pause = FIRST_PAUSE;
        let mut logged: Option<ErrorKind> = None;
        loop {
            let next = match self.serve(Arc::clone(&service), connections).await {
                Ok(()) => {
                    (pause, logged) = (FIRST_PAUSE, None);
                    FIRST_PAUSE
                }
                Err(error) => {
                    // Logged once for each kind of error: it is usual that a client does not run for a day.
                    if logged.replace(error.kind()) != Some(error.kind()) {
                        tracing::warn!("{error}; trying again");
                    }
                    (2 * pause).min(MAX_PAUSE)
                }
            };
            // Also after success: a client that closes its connection at once would otherwise cause a busy loop.
            tokio::time::sleep(pause).await;
            pause = next;
        }
    }

    async fn link(&self) -> Result<(Link, IpAddr)> {
        let (token, most) = (self.token.secret(), self.most_bytes_per_sec);
        offer(&self.host, self.port, &self.trust, token, most).await
    }

    async fn serve(&self, service: Arc<Service>, connections: &Connections) -> Result<()> {
        let (link, ip) = self.link().await?;
        tracing::info!("serving the client at {}:{}", self.host, self.port);
        let slot = connections.enter(ip);
        // The client has shown its certificate, and knows the token.
        let admission = Admission::Token(self.token.clone());
        tokio::select! {
            biased;
            why = slot.visit_ended() => Err(why),
            ended = service.serve_with(link, &slot, &admission) => ended,
        }
    }
}
