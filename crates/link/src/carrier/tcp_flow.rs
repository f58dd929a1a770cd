//! Flow of a TCP connection: the kernel decides the rate, within the requested limit, and provides the
//! statistics.

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

/// Names of Linux congestion controls; others are reported as `other`.
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

/// Monitors a socket that another object owns. It is dropped together with the owner, records the last state
/// and releases its descriptor, so that the owner decides when the socket is closed.
pub struct TcpMonitor(Arc<MonitoredSocket>);

struct MonitoredSocket {
    peer: Option<SocketAddr>,
    controller: Option<&'static str>,
    /// Rate that the socket was limited to when the monitor was created, bytes per second; no request exceeds
    /// it.
    most_bytes_per_sec: Option<f64>,
    /// Requested rate.
    choice: Mutex<Option<Choice>>,
    state: Mutex<SocketState>,
}

enum SocketState {
    Open(OwnedFd),
    Ended(TcpInfo),
}

impl TcpMonitor {
    /// Monitors a connected socket; `None` where the system provides no second descriptor. An existing [rate
    /// limit](crate::carrier::tcp::hold_to) of the socket bounds all requests.
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

    /// True when data is in flight and nothing was acknowledged for this long.
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

    /// Limits the socket's rate; does nothing once the connection has ended.
    fn hold(&self, bytes_per_sec: f64) -> Result<()> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            SocketState::Open(socket) => tcp_rate::hold(socket.as_fd(), bytes_per_sec).map_err(unheld),
            SocketState::Ended(_) => Ok(()),
        }
    }
}

/// Error of a socket whose rate cannot be limited, with advice.
pub(crate) fn unheld(error: io::Error) -> Error {
    Error::unsupported(format!("this system cannot limit the rate of TCP ({error}); use the link `quic`"))
}

/// Rate of the only controller that is available over TCP.
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

/// Flow of a TCP connection; keeps the statistics as long as a clone exists.
#[derive(Clone)]
pub(crate) struct TcpFlow(Arc<MonitoredSocket>);

impl TcpFlow {
    /// Rate that all streams of the link together may send at, if this is its first stream, bytes per second;
    /// `None` where the kernel decides.
    pub(crate) fn allowed_bytes_per_sec(&self) -> Option<f64> {
        let asked = self.choice().and_then(|choice| choice.rate_bytes_per_sec());
        let most = self.0.most_bytes_per_sec;
        asked.map_or(most, |asked| Some(most.map_or(asked, |most| most.min(asked))))
    }

    /// Limits the sending rate of this stream, whatever the link's limit is.
    ///
    /// # Errors
    /// `Unsupported` where the system cannot pace.
    pub(crate) fn hold(&self, bytes_per_sec: f64) -> Result<()> {
        self.0.hold(bytes_per_sec)
    }

    /// Records the requested controller; the caller applies it to the streams.
    ///
    /// # Errors
    /// `Unsupported` for a controller that is not a rate.
    pub(crate) fn choose(&self, choice: Choice) -> Result<()> {
        rate_of(choice)?;
        *self.0.choice.lock().unwrap_or_else(PoisonError::into_inner) = Some(choice);
        Ok(())
    }

    fn choice(&self) -> Option<Choice> {
        *self.0.choice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rate that the socket is limited to, bytes per second.
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

    /// The kernel has its own cache of path metrics.
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
            // The kernel's rate never exceeds the socket's limit.
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

    /// Creates a connection whose server side is limited to `most` by its listener, if given.
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
    async fn the_rate_of_the_listener_is_an_upper_limit_for_requests() {
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
        // The kernel does not pace the first ten packets, which have 64 KiB here.
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
