//! Changes the protocol of a connection while it transfers data: when the receiving end measures that the other
//! protocol may be faster, or that nothing arrives any more ([`LinkWatch`]). New operations use the new connection.
//! Reads and blocks in flight are withdrawn, and the data that have not arrived are requested again over it
//! ([`CurrentConnection::replaced`]). The old connection ends with its last operation.
//!
//! The old connection is used until the handshake of the new one has ended: a change costs no round trip.

use std::sync::{Arc, Weak};
use std::time::Duration;

use array::Result;
use link::{ClientHandle, ClientWatch, Flow, Link, Protocol, quic};
use plan::{Carrying, LinkWatch, Standing};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout};

use super::protocol_choice::{self, PendingLink, QUIC_TIMEOUT};
use super::{DialerState, Endpoint, OpenedConnection, late, put_on, tcp_options};

/// Interval at which a connection is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Timeout for the handshake of a new connection.
const SWITCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Current connection, with a signal of its replacement.
pub(crate) struct CurrentConnection {
    pub(crate) client: ClientHandle,
    pub(super) moves: u64,
    pub(super) moved: watch::Receiver<u64>,
}

impl CurrentConnection {
    /// Waits until another connection has replaced this one; data that have not arrived are then requested over the new
    /// one.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn replaced(&mut self) {
        let moves = self.moves;
        if self.moved.wait_for(|now| *now > moves).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Monitors the connection to one server, and changes its protocol.
pub(super) struct ProtocolSwitch {
    pub(super) server: Endpoint,
    pub(super) state: Weak<Mutex<DialerState>>,
    /// Number of the connection in its dialer.
    pub(super) number: u64,
    pub(super) moved: Arc<watch::Sender<u64>>,
}

impl ProtocolSwitch {
    /// Runs until the connection ends or the dialer opens another one.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the connection as it was.
    pub(super) async fn attend(
        self,
        mut flow: Arc<dyn Flow>,
        mut of: ClientWatch,
        mut later: Option<PendingLink>,
    ) {
        let begun = Instant::now();
        let carrying = if flow.statistics().protocol == "tcp" { Carrying::Tcp } else { Carrying::Quic };
        let mut watch = LinkWatch::new(carrying, Duration::ZERO);
        let mut ready = None;
        loop {
            tokio::select! {
                () = sleep(CHECK_INTERVAL) => {}
                connected = async { later.as_mut()?.await }, if later.is_some() => {
                    (later, ready) = (None, connected);
                }
            }
            let Some(is_waiting) = of.is_waiting() else { return };
            let now = flow.statistics();
            let standing = Standing {
                received_bytes: now.received_bytes,
                out_of_order: now.out_of_order.unwrap_or_default(),
                least_rtt: now.least_rtt.or(now.rtt),
                is_waiting,
            };
            let asks_for_change = watch.look(begun.elapsed(), &standing);
            // A link that connected late is used where the connection needs it, and dropped otherwise.
            let link = ready.take().filter(|_| asks_for_change || watch.has_gaps());
            if !asks_for_change && link.is_none() {
                continue;
            }
            let to = watch.carrying().other();
            match self.change(to, link).await {
                Ok(Some((new_flow, new_of))) => {
                    let before = (standing.received_bytes, standing.out_of_order);
                    tracing::info!(
                        server = self.server.host,
                        ?to,
                        ?before,
                        "the connection has changed to another protocol"
                    );
                    watch.changed(begun.elapsed(), standing.least_rtt);
                    (flow, of) = (new_flow, new_of);
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!(server = self.server.host, ?to, %error, "the other protocol does not connect");
                    watch.refused(begun.elapsed());
                }
            }
        }
    }

    /// Opens a connection by the other protocol, and replaces the current one after the handshake; `None` if the dialer
    /// was dropped or has another connection.
    pub(super) async fn change(
        &self,
        to: Carrying,
        link: Option<Link>,
    ) -> Result<Option<(Arc<dyn Flow>, ClientWatch)>> {
        let link = match link {
            Some(link) => link,
            None => self.dial(to).await?,
        };
        let OpenedConnection { handle, driving, flow, .. } =
            put_on(&self.server, Protocol::Auto, link).await?;
        let Some(flow) = flow else { return Ok(None) };
        let mut driving = driving;
        let welcomed = async {
            tokio::select! {
                welcomed = handle.welcomed() => welcomed.map(drop),
                () = &mut driving => Err(handle.closed().await),
            }
        };
        timeout(SWITCH_TIMEOUT, welcomed).await.unwrap_or_else(late)?;
        let Some(state) = self.state.upgrade() else { return Ok(None) };
        let mut state = state.lock().await;
        let DialerState { connection, drivers, .. } = &mut *state;
        let Some(current) = connection.as_mut().filter(|c| c.number == self.number) else {
            return Ok(None);
        };
        let of = handle.watch();
        current.handle = handle;
        // The lock is held: later callers get the new connection.
        current.moves = *self.moved.borrow() + 1;
        self.moved.send_replace(current.moves);
        drivers.spawn(driving);
        Ok(Some((flow, of)))
    }

    async fn dial(&self, to: Carrying) -> Result<Link> {
        let options = quic::EndpointOptions {
            window_bytes: self.server.window_bytes,
            ..quic::EndpointOptions::default()
        };
        if to == Carrying::Quic {
            return timeout(QUIC_TIMEOUT, protocol_choice::by_quic(&self.server, &options))
                .await
                .unwrap_or_else(late);
        }
        let Endpoint { host, port, trust, .. } = &self.server;
        link::dial(host, *port, trust, Protocol::Tcp, tcp_options(&self.server).await, &options).await
    }
}
