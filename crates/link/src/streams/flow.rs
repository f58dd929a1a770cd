//! The streams of a link as one [`Flow`]: their sums.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use control::{Choice, Remembered};
use wire::Result;

use crate::flow::{Flow, Statistics};
use crate::tcp_flow::TcpFlow;

/// The first stream's, and those of the others that have joined so far, also of those that have ended.
#[derive(Clone)]
pub(super) struct StreamsFlow {
    first: TcpFlow,
    more: Arc<Mutex<Vec<TcpFlow>>>,
}

impl StreamsFlow {
    pub(super) fn new(first: TcpFlow) -> Self {
        Self { first, more: Arc::default() }
    }

    /// One more has joined.
    pub(super) fn add(&self, flow: TcpFlow) {
        self.more.lock().unwrap_or_else(PoisonError::into_inner).push(flow);
    }
}

impl Flow for StreamsFlow {
    fn control(&self, choice: Choice) -> Result<()> {
        self.first.control(choice)
    }

    fn remember(&self, known: Remembered) {
        self.first.remember(known);
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.first.peer()
    }

    fn statistics(&self) -> Statistics {
        let more = self.more.lock().unwrap_or_else(PoisonError::into_inner).clone();
        more.iter().map(TcpFlow::statistics).fold(self.first.statistics(), and)
    }
}

/// Both together. What is of the path and not of the traffic is the first one's.
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
        in_flight_bytes: first.in_flight_bytes + other.in_flight_bytes,
        window_bytes: first.window_bytes + other.window_bytes,
        rate_bytes_per_sec: sum(first.rate_bytes_per_sec, other.rate_bytes_per_sec),
        delivery_bytes_per_sec: sum(first.delivery_bytes_per_sec, other.delivery_bytes_per_sec),
        ..first
    }
}
