//! A TCP connection as a [`Flow`]: the kernel decides how fast, and tells how it goes.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use control::{Choice, Remembered};
use tokio::net::TcpStream;
use wire::{Error, Result};

use crate::flow::{Flow, Statistics};
use crate::tcp_info::TcpInfo;

/// Names of congestion controls that Linux has; others are told as `other`.
const KERNEL_CONTROLLERS: [&str; 15] = [
    "cubic",
    "reno",
    "bbr",
    "bic",
    "cdg",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

/// Keeps an eye on a socket that something else owns. Dropped together with its owner, it notes how things stood at last and
/// lets go: the socket is closed when its owner says so.
pub struct Watch(Arc<Watched>);

struct Watched {
    peer: Option<SocketAddr>,
    controller: Option<&'static str>,
    state: Mutex<State>,
}

enum State {
    Open(OwnedFd),
    Ended(TcpInfo),
}

impl Watch {
    /// Of a connected socket; none where the system gives no second descriptor.
    #[must_use]
    pub fn on(stream: &TcpStream) -> Option<Self> {
        let socket = stream.as_fd().try_clone_to_owned().ok()?;
        let peer = stream.peer_addr().ok();
        let controller = kernel_controller(stream);
        Some(Self(Arc::new(Watched { peer, controller, state: Mutex::new(State::Open(socket)) })))
    }

    /// True when something is under way and nothing was acknowledged for so long.
    pub(crate) fn is_unanswered_for(&self, time: Duration) -> bool {
        self.0.info().is_unanswered_for(time)
    }

    pub(crate) fn flow(&self) -> TcpFlow {
        TcpFlow(Arc::clone(&self.0))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let last = self.0.info();
        *self.0.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Ended(last);
    }
}

impl Watched {
    fn info(&self) -> TcpInfo {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Open(socket) => TcpInfo::of(socket.as_fd()).unwrap_or_default(),
            State::Ended(last) => last.clone(),
        }
    }
}

fn kernel_controller(stream: &TcpStream) -> Option<&'static str> {
    let told = socket2::SockRef::from(stream).tcp_congestion().ok()?;
    let name = told.split(|byte| *byte == 0).next()?;
    Some(KERNEL_CONTROLLERS.into_iter().find(|known| known.as_bytes() == name).unwrap_or("other"))
}

/// What is told of a TCP connection, for as long as somebody asks.
#[derive(Clone)]
pub(crate) struct TcpFlow(Arc<Watched>);

impl Flow for TcpFlow {
    fn control(&self, _: Choice) -> Result<()> {
        Err(Error::unsupported("this protocol has no choice of controllers; ask for the link `quic`"))
    }

    /// The kernel keeps a memory of its own.
    fn remember(&self, _: Remembered) {}

    fn peer(&self) -> Option<SocketAddr> {
        self.0.peer
    }

    fn statistics(&self) -> Statistics {
        let info = self.0.info();
        let segment_bytes = info.segment_bytes();
        Statistics {
            protocol: "tcp",
            streams: 1,
            controller: None,
            kernel_controller: self.0.controller,
            rtt: info.rtt(),
            least_rtt: info.least_rtt(),
            sent_bytes: info.sent_bytes(),
            received_bytes: info.received_bytes(),
            lost_bytes: info.resent_bytes(),
            sent_packets: info.sent_segments(),
            lost_packets: info.resent_segments(),
            reordered: info.reordered(),
            in_flight_bytes: info.in_flight_segments() * segment_bytes,
            window_bytes: info.window_segments() * segment_bytes,
            rate_bytes_per_sec: info.rate_bytes_per_sec().map(|rate| rate as f64),
            delivery_bytes_per_sec: info.delivery_bytes_per_sec().map(|rate| rate as f64),
            packet_bytes: segment_bytes,
            mtu_bytes: info.mtu_bytes(),
            batches: 0,
            datagrams: None,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_socket_tells_how_it_goes_and_is_let_go_with_its_owner() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (ours, theirs) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (mut ours, (mut theirs, _)) = (ours.unwrap(), theirs.unwrap());
        let watch = Watch::on(&ours).unwrap();
        let flow = watch.flow();
        ours.write_all(&[7; 100_000]).await.unwrap();
        theirs.read_exact(&mut vec![0; 100_000]).await.unwrap();
        let seen = flow.statistics();
        assert_eq!((seen.protocol, flow.peer()), ("tcp", Some(address)));
        assert!(seen.sent_bytes >= 100_000 && seen.sent_packets > 0 && seen.lost_packets == 0, "{seen:?}");
        assert!(
            seen.rtt.is_some() && seen.mtu_bytes > Some(1000) && seen.kernel_controller.is_some(),
            "{seen:?}"
        );
        drop((ours, watch));
        let ended = tokio::time::timeout(Duration::from_secs(5), theirs.read(&mut [0])).await;
        assert_eq!(ended.expect("the socket is closed, though its flow lives").unwrap(), 0);
        assert_eq!(flow.statistics().sent_bytes, seen.sent_bytes, "what it was at last");
    }
}
