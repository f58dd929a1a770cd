//! A TCP connection as a [`Flow`]: the kernel decides how fast, within the rate that was asked for, and tells how it goes.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use control::{Choice, RememberedPath};
use tokio::net::TcpStream;
use wire::{Error, Result};

use crate::carrier::tcp_info::TcpInfo;
use crate::carrier::tcp_rate;
use crate::flow::{Flow, Statistics};

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
pub struct TcpMonitor(Arc<MonitoredSocket>);

struct MonitoredSocket {
    peer: Option<SocketAddr>,
    controller: Option<&'static str>,
    /// Rate that the socket was held to when the watch was made, bytes per second; no request exceeds it.
    most_bytes_per_sec: Option<f64>,
    /// The rate that was asked for.
    choice: Mutex<Option<Choice>>,
    state: Mutex<SocketState>,
}

enum SocketState {
    Open(OwnedFd),
    Ended(TcpInfo),
}

impl TcpMonitor {
    /// Watches a connected socket; none where the system gives no second descriptor. The rate that the socket is already
    /// [held to](crate::carrier::tcp::hold_to) is the most that can be asked for.
    #[must_use]
    pub fn on(stream: &TcpStream) -> Option<Self> {
        let socket = stream.as_fd().try_clone_to_owned().ok()?;
        let info = TcpInfo::of(socket.as_fd()).unwrap_or_default();
        Some(Self(Arc::new(MonitoredSocket {
            peer: stream.peer_addr().ok(),
            controller: kernel_controller(stream),
            most_bytes_per_sec: info.most_bytes_per_sec().map(|rate| rate as f64),
            choice: Mutex::default(),
            state: Mutex::new(SocketState::Open(socket)),
        })))
    }

    /// True when something is under way and nothing was acknowledged for so long.
    pub(crate) fn is_unanswered_for(&self, time: Duration) -> bool {
        self.0.info().is_unanswered_for(time)
    }

    pub(crate) fn flow(&self) -> TcpFlow {
        TcpFlow(Arc::clone(&self.0))
    }
}

impl Drop for TcpMonitor {
    fn drop(&mut self) {
        let last = self.0.info();
        *self.0.state.lock().unwrap_or_else(PoisonError::into_inner) = SocketState::Ended(last);
    }
}

impl MonitoredSocket {
    fn info(&self) -> TcpInfo {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            SocketState::Open(socket) => TcpInfo::of(socket.as_fd()).unwrap_or_default(),
            SocketState::Ended(last) => last.clone(),
        }
    }

    /// Holds the socket to a rate; one that has ended sends nothing anyway.
    fn hold(&self, bytes_per_sec: f64) -> Result<()> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            SocketState::Open(socket) => tcp_rate::hold(socket.as_fd(), bytes_per_sec).map_err(unheld),
            SocketState::Ended(_) => Ok(()),
        }
    }
}

/// Why a socket cannot be held to a rate, and what to do.
pub(crate) fn unheld(error: io::Error) -> Error {
    Error::unsupported(format!(
        "expected a system that holds TCP to a rate, found: {error}; use the link `quic`"
    ))
}

/// The rate of the only controller that TCP has here.
fn rate_of(choice: Choice) -> Result<f64> {
    let rate = choice.rate_bytes_per_sec().filter(|_| choice.name() == "rate");
    rate.ok_or_else(|| {
        Error::unsupported(format!(
            "expected the controller `rate` with its rate (`rate=400Mb/s`), which is all that can be chosen over TCP, found \
             `{choice}`; leave it out, or ask for the link `quic`"
        ))
    })
}

fn kernel_controller(stream: &TcpStream) -> Option<&'static str> {
    let told = socket2::SockRef::from(stream).tcp_congestion().ok()?;
    let name = told.split(|byte| *byte == 0).next()?;
    Some(KERNEL_CONTROLLERS.into_iter().find(|known| known.as_bytes() == name).unwrap_or("other"))
}

/// Flow of a TCP connection, for as long as somebody keeps it.
#[derive(Clone)]
pub(crate) struct TcpFlow(Arc<MonitoredSocket>);

impl TcpFlow {
    /// Rate that all streams of the link whose first stream this is may send together, bytes per second; none where the
    /// kernel decides.
    pub(crate) fn allowed_bytes_per_sec(&self) -> Option<f64> {
        let asked = self.choice().and_then(|choice| choice.rate_bytes_per_sec());
        let most = self.0.most_bytes_per_sec;
        asked.map_or(most, |asked| Some(most.map_or(asked, |most| most.min(asked))))
    }

    /// Sends no faster than that, whatever the link may.
    ///
    /// # Errors
    /// `Unsupported` where the system does not pace.
    pub(crate) fn hold(&self, bytes_per_sec: f64) -> Result<()> {
        self.0.hold(bytes_per_sec)
    }

    /// Notes what was asked for; whoever calls holds the streams to it.
    ///
    /// # Errors
    /// `Unsupported` for what is no rate.
    pub(crate) fn choose(&self, choice: Choice) -> Result<()> {
        rate_of(choice)?;
        *self.0.choice.lock().unwrap_or_else(PoisonError::into_inner) = Some(choice);
        Ok(())
    }

    fn choice(&self) -> Option<Choice> {
        *self.0.choice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rate that the socket is held to, bytes per second.
    #[cfg(test)]
    pub(crate) fn held_bytes_per_sec(&self) -> Option<u64> {
        self.0.info().most_bytes_per_sec()
    }
}

impl Flow for TcpFlow {
    fn control(&self, choice: Choice) -> Result<()> {
        self.choose(choice)?;
        self.allowed_bytes_per_sec().map_or(Ok(()), |rate| self.hold(rate))
    }

    /// The kernel keeps a memory of its own.
    fn remember(&self, _: RememberedPath) {}

    fn peer(&self) -> Option<SocketAddr> {
        self.0.peer
    }

    fn statistics(&self) -> Statistics {
        let info = self.0.info();
        let segment_bytes = info.segment_bytes();
        Statistics {
            protocol: "tcp",
            streams: 1,
            controller: self.choice(),
            kernel_controller: self.0.controller,
            rtt: info.rtt(),
            least_rtt: info.least_rtt(),
            sent_bytes: info.sent_bytes(),
            received_bytes: info.received_bytes(),
            lost_bytes: info.resent_bytes(),
            sent_packets: info.sent_segments(),
            lost_packets: info.resent_segments(),
            reordered: info.reordered(),
            out_of_order: info.out_of_order(),
            in_flight_bytes: info.in_flight_segments() * segment_bytes,
            window_bytes: info.window_segments() * segment_bytes,
            // The kernel's is never above what the socket is held to.
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
    use crate::carrier::tcp::hold_to;

    /// A connection whose server's side is held to `most` by its listener, if any.
    async fn connected(most: Option<f64>) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        most.iter().for_each(|most| hold_to(&listener, *most).expect("Linux paces"));
        let address = listener.local_addr().expect("an address");
        let (ours, theirs) = tokio::join!(TcpStream::connect(address), listener.accept());
        (ours.expect("a connection"), theirs.expect("a connection").0)
    }

    #[tokio::test]
    async fn a_rate_that_was_asked_for_is_what_the_kernel_holds_and_tells() {
        let (ours, _theirs) = connected(None).await;
        let monitor = TcpMonitor::on(&ours).unwrap();
        let flow = monitor.flow();
        assert_eq!((flow.held_bytes_per_sec(), flow.statistics().controller), (None, None));
        for (text, rate) in
            [("rate=100Mb/s", 12_500_000), ("rate=50GB/s", 50_000_000_000), ("rate=1MB/s", 1_000_000)]
        {
            let choice = text.parse().unwrap();
            flow.control(choice).unwrap();
            let seen = flow.statistics();
            assert_eq!((flow.held_bytes_per_sec(), seen.controller), (Some(rate), Some(choice)));
            assert!(seen.rate_bytes_per_sec <= Some(rate as f64), "{seen:?}");
        }
    }

    #[tokio::test]
    async fn other_controllers_are_refused_with_what_to_do_and_change_nothing() {
        let (ours, _theirs) = connected(None).await;
        let monitor = TcpMonitor::on(&ours).unwrap();
        let flow = monitor.flow();
        for text in ["auto", "cubic", "polite=1Gb/s", "rate"] {
            let choice: Choice = text.parse().unwrap();
            let error = flow.control(choice).unwrap_err();
            assert_eq!(error.kind(), wire::ErrorKind::Unsupported);
            let said = error.to_string();
            assert!(said.contains(&format!("`{choice}`")) && said.contains("`quic`"), "{said}");
        }
        assert_eq!((flow.held_bytes_per_sec(), flow.statistics().controller), (None, None));
    }

    #[tokio::test]
    async fn what_a_listener_is_held_to_is_the_most_that_can_be_asked_for() {
        let (_ours, theirs) = connected(Some(2e6)).await;
        let monitor = TcpMonitor::on(&theirs).unwrap();
        let flow = monitor.flow();
        assert_eq!((flow.held_bytes_per_sec(), flow.statistics().controller), (Some(2_000_000), None));
        for (text, held) in [("rate=1GB/s", 2_000_000), ("rate=1MB/s", 1_000_000), ("rate=3MB/s", 2_000_000)]
        {
            flow.control(text.parse().unwrap()).unwrap();
            assert_eq!(flow.held_bytes_per_sec(), Some(held), "{text}");
        }
    }

    #[tokio::test]
    async fn a_connection_held_to_a_rate_takes_its_time() {
        let (mut ours, mut theirs) = connected(Some(1e6)).await;
        let (began, bytes) = (crate::clock::now(), 3_000_000);
        let sending = async { theirs.write_all(&vec![7; bytes]).await.unwrap() };
        let mut taken = vec![0; bytes];
        let ((), received) = tokio::join!(sending, ours.read_exact(&mut taken));
        received.unwrap();
        // A kernel does not pace the first ten packets, which are of 64 KiB here.
        assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_socket_tells_how_it_goes_and_is_let_go_with_its_owner() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (ours, theirs) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (mut ours, (mut theirs, _)) = (ours.unwrap(), theirs.unwrap());
        let monitor = TcpMonitor::on(&ours).unwrap();
        let flow = monitor.flow();
        ours.write_all(&[7; 100_000]).await.unwrap();
        theirs.read_exact(&mut vec![0; 100_000]).await.unwrap();
        let seen = flow.statistics();
        assert_eq!((seen.protocol, flow.peer()), ("tcp", Some(address)));
        assert!(seen.sent_bytes >= 100_000 && seen.sent_packets > 0 && seen.lost_packets == 0, "{seen:?}");
        assert!(
            seen.rtt.is_some() && seen.mtu_bytes > Some(1000) && seen.kernel_controller.is_some(),
            "{seen:?}"
        );
        drop((ours, monitor));
        let ended = tokio::time::timeout(Duration::from_secs(5), theirs.read(&mut [0])).await;
        assert_eq!(ended.expect("the socket is closed, though its flow lives").unwrap(), 0);
        assert_eq!(flow.statistics().sent_bytes, seen.sent_bytes, "what it was at last");
    }
}
