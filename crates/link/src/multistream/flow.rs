//! Flow of a link of several streams: sums of their statistics, and equal shares of the link's rate limit.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use control::{Choice, RememberedPath};
use wire::Result;

use crate::carrier::tcp_flow::TcpFlow;
use crate::flow::{Flow, Statistics};

/// Flow of the first stream, and those of the streams that have joined so far, also of those that have ended.
#[derive(Clone)]
pub(super) struct StreamsFlow {
    first: TcpFlow,
    more: Arc<Mutex<Vec<TcpFlow>>>,
}

impl StreamsFlow {
    pub(super) fn new(first: TcpFlow) -> Self {
        Self { first, more: Arc::default() }
    }

    fn more(&self) -> MutexGuard<'_, Vec<TcpFlow>> {
        self.more.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a stream, with its share of the rate from now on.
    pub(super) fn add(&self, flow: TcpFlow) {
        let mut more = self.more();
        more.push(flow);
        // Where the first stream's rate can be limited, the others' can be too.
        self.divide(&more).unwrap_or_default();
    }

    /// Limits each stream to its share of the link's rate.
    fn divide(&self, more: &[TcpFlow]) -> Result<()> {
        let Some(whole) = self.first.allowed_bytes_per_sec() else { return Ok(()) };
        let part = whole / (1 + more.len()) as f64;
        std::iter::once(&self.first).chain(more).try_for_each(|flow| flow.hold(part))
    }
}

impl Flow for StreamsFlow {
    fn control(&self, choice: Choice) -> Result<()> {
        let more = self.more();
        self.first.choose(choice)?;
        self.divide(&more)
    }

    fn remember(&self, known: RememberedPath) {
        self.first.remember(known);
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.first.peer()
    }

    fn statistics(&self) -> Statistics {
        let more = self.more().clone();
        more.iter().map(TcpFlow::statistics).fold(self.first.statistics(), and)
    }
}

/// Adds the statistics of a stream. Properties of the path are those of the first stream.
fn and(first: Statistics, other: Statistics) -> Statistics {
    let sum = |a: Option<f64>, b: Option<f64>| a.map_or(b, |a| Some(a + b.unwrap_or_default()));
    Statistics {
        streams: first.streams + other.streams,
        sent_bytes: first.sent_bytes + other.sent_bytes,
        received_bytes: first.received_bytes + other.received_bytes,
        lost_bytes: first.lost_bytes + other.lost_bytes,
        sent_packets: first.sent_packets + other.sent_packets,
        lost_packets: first.lost_packets + other.lost_packets,
        reordered: first.reordered.zip(other.reordered).map(|(first, other)| first + other),
        out_of_order: first.out_of_order.zip(other.out_of_order).map(|(first, other)| first + other),
        in_flight_bytes: first.in_flight_bytes + other.in_flight_bytes,
        window_bytes: first.window_bytes + other.window_bytes,
        rate_bytes_per_sec: sum(first.rate_bytes_per_sec, other.rate_bytes_per_sec),
        delivery_bytes_per_sec: sum(first.delivery_bytes_per_sec, other.delivery_bytes_per_sec),
        ..first
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::{TcpMonitor, carrier::tcp};

    /// Accepts `count` connections on a server that limits each to `most`; their other ends have to be kept.
    async fn accepted(count: usize, most: Option<f64>) -> Vec<(TcpMonitor, TcpStream, TcpStream)> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        most.iter().for_each(|most| tcp::hold_to(&listener, *most).expect("Linux paces"));
        let address = listener.local_addr().expect("an address");
        let mut all = Vec::new();
        for _ in 0..count {
            let (theirs, ours) = tokio::join!(TcpStream::connect(address), listener.accept());
            let ours = ours.expect("a connection").0;
            all.push((TcpMonitor::on(&ours).expect("a descriptor"), ours, theirs.expect("a connection")));
        }
        all
    }

    fn held(of: &StreamsFlow) -> Vec<Option<u64>> {
        std::iter::once(&of.first).chain(&*of.more()).map(TcpFlow::held_bytes_per_sec).collect()
    }

    #[tokio::test]
    async fn streams_share_the_rate_that_was_asked_for() {
        let sockets = accepted(5, None).await;
        let flows: Vec<TcpFlow> = sockets.iter().map(|(monitor, ..)| monitor.flow()).collect();
        let all = StreamsFlow::new(flows[0].clone());
        all.add(flows[1].clone());
        assert_eq!(held(&all), [None; 2]);
        let choice = "rate=10MB/s".parse().unwrap();
        all.control(choice).unwrap();
        assert_eq!(held(&all), [Some(5_000_000); 2]);
        flows[2..].iter().for_each(|flow| all.add(flow.clone()));
        assert_eq!(held(&all), [Some(2_000_000); 5]);
        let seen = all.statistics();
        assert_eq!((seen.controller, seen.streams), (Some(choice), 5));
        assert!(seen.rate_bytes_per_sec <= Some(10e6), "{seen:?}");
        assert!(all.control("auto".parse().unwrap()).is_err());
        assert_eq!(held(&all), [Some(2_000_000); 5], "as before");
    }

    #[tokio::test]
    async fn streams_share_what_their_server_holds_each_connection_to() {
        let sockets = accepted(4, Some(8e6)).await;
        let all = StreamsFlow::new(sockets[0].0.flow());
        assert_eq!(held(&all), [Some(8_000_000)]);
        sockets[1..].iter().for_each(|(monitor, ..)| all.add(monitor.flow()));
        assert_eq!(held(&all), [Some(2_000_000); 4]);
        for (text, part) in [("rate=1GB/s", 2_000_000), ("rate=4MB/s", 1_000_000)] {
            all.control(text.parse().unwrap()).unwrap();
            assert_eq!(held(&all), [Some(part); 4], "{text}");
        }
    }
}
