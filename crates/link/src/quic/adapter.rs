//! Adapter of a [`PacedController`] to the QUIC stack: a congestion controller whose window is either open or
//! closed, and a socket poller that registers the task to wake. It depends on the order of calls in quinn
//! 0.11.12 (ask, send, acknowledge), so that version is pinned; the test below fails with a version that
//! calls in another order.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerFactory};

use super::pace::{PacedController, SendPermission};
use super::wake_timer::WakeTimer;
use crate::clock::now;

/// Open window, bytes: above `u32::MAX`, where the stack's own pacer is disabled.
const OPEN_WINDOW_BYTES: u64 = 1 << 40;
/// Closed window, bytes: no packet fits.
const CLOSED_WINDOW_BYTES: u64 = 1;

/// [`PacedController`] of one connection, shared by the stack and the carrier. Outlives changes of the path,
/// for which the stack creates new controllers. Its lock is taken inside the stack's lock, so the stack must
/// not be called while holding it.
pub(super) struct SharedPace {
    pace: Mutex<PacedController>,
    start: Instant,
    timer: Mutex<WakeTimer>,
}

impl fmt::Debug for SharedPace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedPace")
    }
}

impl SharedPace {
    pub(super) fn new(pace: PacedController) -> Arc<Self> {
        Arc::new(Self { pace: Mutex::new(pace), start: now(), timer: Mutex::default() })
    }

    pub(super) fn with<T>(&self, f: impl FnOnce(&mut PacedController) -> T) -> T {
        f(&mut self.pace.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Converts a time to the time since the connection's start.
    pub(super) fn since_start(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.start)
    }

    pub(super) fn now(&self) -> Duration {
        self.since_start(now())
    }

    /// Registers the waker of the task that sends. Called before every send; a connection keeps its task.
    pub(super) fn set_sender(&self, waker: &Waker) {
        self.with(|pace| match &mut pace.sender {
            Some(sender) => sender.clone_from(waker),
            None => pace.sender = Some(waker.clone()),
        });
    }

    fn is_open(&self) -> bool {
        let at = now();
        let since_start = self.since_start(at);
        self.with(|pace| {
            let answer = pace.ask(since_start);
            if let (SendPermission::At(open_at), Some(sender)) = (answer, &pace.sender) {
                let mut timer = self.timer.lock().unwrap_or_else(PoisonError::into_inner);
                timer.wake_at(at, self.start + open_at, sender);
            }
            answer == SendPermission::Yes
        })
    }
}

/// Makes [`Paced`] for a connection.
pub(super) struct Factory(pub(super) Arc<SharedPace>);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        self.0.with(|pace| {
            pace.on_new_path();
            pace.on_packet_size(current_mtu.into());
        });
        Box::new(Paced(Arc::clone(&self.0)))
    }
}

struct Paced(Arc<SharedPace>);

impl Controller for Paced {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let now = self.0.since_start(now);
        self.0.with(|pace| pace.on_sent(now, bytes));
    }

    fn on_ack(
        &mut self,
        _now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        _rtt: &quinn_proto::RttEstimator,
    ) {
        let sent = self.0.since_start(sent);
        self.0.with(|pace| pace.on_ack(sent, bytes));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let (now, seen) = (self.0.since_start(now), self.0.now());
        self.0.with(|pace| pace.on_acks_end(now, seen, in_flight, app_limited));
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let (now, sent) = (self.0.since_start(now), self.0.since_start(sent));
        self.0.with(|pace| pace.on_loss(now, sent, lost_bytes, is_persistent_congestion));
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.0.with(|pace| pace.on_packet_size(new_mtu.into()));
    }

    fn window(&self) -> u64 {
        if self.0.is_open() { OPEN_WINDOW_BYTES } else { CLOSED_WINDOW_BYTES }
    }

    /// Called when only the port of the peer has changed, which the stack treats as a new path.
    fn clone_box(&self) -> Box<dyn Controller> {
        self.0.with(PacedController::on_new_path);
        Box::new(Self(Arc::clone(&self.0)))
    }

    fn initial_window(&self) -> u64 {
        OPEN_WINDOW_BYTES
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
    use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};

    use super::*;
    use crate::carrier::tls::{self, ALPN_WIRE, Identity, Trust};
    use crate::quic::pace::{ASKS_PER_PACKET, MOST_PACKETS_PER_BATCH};

    /// Size of all packets, because MTU discovery is off.
    const PACKET_BYTES: u64 = 1200;

    /// Call of the stack.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Called {
        Asked,
        Sent(u64),
        Acked,
        AcksEnded,
    }

    /// Controller with an open window that records the calls.
    #[derive(Clone, Default)]
    struct Noting(Arc<Mutex<Vec<Called>>>);

    impl Noting {
        fn note(&self, call: Called) {
            self.0.lock().unwrap().push(call);
        }

        fn take(&self) -> Vec<Called> {
            std::mem::take(&mut *self.0.lock().unwrap())
        }
    }

    impl ControllerFactory for Noting {
        fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
            self.clone_box()
        }
    }

    impl Controller for Noting {
        fn on_sent(&mut self, _now: Instant, bytes: u64, _last_packet_number: u64) {
            self.note(Called::Sent(bytes));
        }

        fn on_ack(
            &mut self,
            _now: Instant,
            _sent: Instant,
            _bytes: u64,
            _app_limited: bool,
            _rtt: &quinn_proto::RttEstimator,
        ) {
            self.note(Called::Acked);
        }

        fn on_end_acks(&mut self, _now: Instant, _in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
            self.note(Called::AcksEnded);
        }

        fn on_congestion_event(&mut self, _now: Instant, _sent: Instant, _is_persistent: bool, _bytes: u64) {}

        fn on_mtu_update(&mut self, _new_mtu: u16) {}

        fn window(&self) -> u64 {
            self.note(Called::Asked);
            OPEN_WINDOW_BYTES
        }

        fn clone_box(&self) -> Box<dyn Controller> {
            Box::new(self.clone())
        }

        fn initial_window(&self) -> u64 {
            OPEN_WINDOW_BYTES
        }

        fn into_any(self: Box<Self>) -> Box<dyn Any> {
            self
        }
    }

    /// Creates both ends of a connection on this host, the server's first, with their endpoints.
    async fn connected(noting: &Noting) -> [(Connection, Endpoint); 2] {
        let identity = Identity::self_signed(&["localhost".into()]).unwrap();
        let crypto = rustls::ServerConfig::clone(&*identity.server_config(&[ALPN_WIRE]).unwrap());
        let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(crypto).unwrap()));
        let mut transport = TransportConfig::default();
        transport.mtu_discovery_config(None).congestion_controller_factory(Arc::new(noting.clone()));
        config.transport_config(Arc::new(transport));
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (server, client) = (Endpoint::server(config, here).unwrap(), Endpoint::client(here).unwrap());
        let mut crypto = tls::client_config(&Trust::Fingerprint(identity.fingerprint())).unwrap();
        crypto.alpn_protocols = vec![ALPN_WIRE.to_vec()];
        let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(crypto).unwrap()));
        let connecting = client.connect_with(config, server.local_addr().unwrap(), "localhost").unwrap();
        let accepting = async { server.accept().await.unwrap().await.unwrap() };
        let (far, near) = tokio::join!(accepting, async { connecting.await.unwrap() });
        [(far, server), (near, client)]
    }

    #[tokio::test]
    async fn the_stack_asks_before_each_packet_and_tells_of_batches_and_of_acknowledgements() {
        const BYTES: usize = 1 << 20;
        let noting = Noting::default();
        let [(far, _server), (near, _client)] = connected(&noting).await;
        drop(noting.take());
        let sending = async {
            let mut stream = far.open_uni().await.unwrap();
            stream.write_all(&vec![7; BYTES]).await.unwrap();
            stream.finish().unwrap();
            // Waits until all data is acknowledged.
            stream.stopped().await.unwrap();
        };
        let receiving = async { near.accept_uni().await.unwrap().read_to_end(BYTES).await.unwrap().len() };
        assert_eq!(tokio::join!(sending, receiving).1, BYTES);

        let calls = noting.take();
        let (mut asks, mut sent_bytes, mut asked_bytes) = (0, 0, 0);
        for call in &calls {
            match *call {
                Called::Asked => asks += 1,
                Called::Sent(bytes) => {
                    assert!(bytes <= MOST_PACKETS_PER_BATCH * PACKET_BYTES, "{bytes} bytes at once");
                    sent_bytes += bytes;
                    if asks == ASKS_PER_PACKET * bytes.div_ceil(PACKET_BYTES) {
                        asked_bytes += bytes;
                    }
                    asks = 0;
                }
                Called::Acked | Called::AcksEnded => {}
            }
        }
        // The stack does not ask before probes and pure acknowledgements.
        assert!(sent_bytes >= BYTES as u64, "{sent_bytes} bytes sent");
        assert!(
            asked_bytes * 10 > sent_bytes * 9,
            "asked for {asked_bytes} of {sent_bytes} bytes as expected"
        );
        let is_in_turn = |pair: &[Called]| {
            pair[0] != Called::Acked || matches!(pair[1], Called::Acked | Called::AcksEnded)
        };
        assert!(calls.contains(&Called::Acked) && calls.windows(2).all(is_in_turn), "{calls:?}");
    }
}
