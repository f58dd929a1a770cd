//! Statistics of a link and control of its sending rate: the handle that remains usable while the carrier is
//! being driven.

use std::net::SocketAddr;
use std::time::Duration;

use control::{Choice, RememberedPath};
use futures::future::BoxFuture;
use wire::{Error, Result};

use crate::datagram::DatagramCounts;
use crate::quic::Prober;

/// Prefix of the capability by which a client requests a controller for what the server sends.
const CONTROLLER_PREFIX: &str = "controller:";
/// Prefix of the capability by which a client reports what it remembers of the path.
const PATH_PREFIX: &str = "path:";
/// Largest rate accepted in a client's report on a path, bytes per second: 1 Tb/s.
const MAX_PATH_BYTES_PER_SEC: u64 = 125_000_000_000;
/// Longest round trip accepted in a client's report on a path.
const MAX_PATH_RTT: Duration = Duration::from_secs(10);

/// Returns the capability by which a client requests a controller for what the server sends.
#[must_use]
pub fn controller_capability(choice: Choice) -> String {
    format!("{CONTROLLER_PREFIX}{choice}")
}

/// Reads the controller that a client requests from its capabilities.
///
/// # Errors
/// `Unsupported` for an unknown controller.
pub fn requested_controller(capabilities: &[String]) -> Result<Option<Choice>> {
    let text = capabilities.iter().find_map(|name| name.strip_prefix(CONTROLLER_PREFIX));
    text.map(|text| text.parse().map_err(|refusal: control::Refusal| Error::unsupported(refusal.to_string())))
        .transpose()
}

/// Returns the capability by which a client reports what it remembers of the path from the server.
#[must_use]
pub fn path_capability(known: RememberedPath) -> String {
    let RememberedPath { rate_bytes_per_sec, capacity_bytes_per_sec, rtt } = known;
    format!("{PATH_PREFIX}{rate_bytes_per_sec:.0},{capacity_bytes_per_sec:.0},{}", rtt.as_micros())
}

/// Reads what a client remembers of the path from its capabilities. The values are advice only: text that cannot be
/// parsed and values outside the bounds give `None`.
#[must_use]
pub fn remembered_path(capabilities: &[String]) -> Option<RememberedPath> {
    let text = capabilities.iter().find_map(|name| name.strip_prefix(PATH_PREFIX))?;
    let mut numbers = text.split(',').map(|number| number.parse::<u64>().ok());
    let (rate, capacity, rtt) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let rtt = Duration::from_micros(rtt);
    let is_sane = (1..=MAX_PATH_BYTES_PER_SEC).contains(&rate)
        && (rate..=MAX_PATH_BYTES_PER_SEC).contains(&capacity)
        && !rtt.is_zero()
        && rtt <= MAX_PATH_RTT;
    is_sane.then_some(RememberedPath {
        rate_bytes_per_sec: rate as f64,
        capacity_bytes_per_sec: capacity as f64,
        rtt,
    })
}

/// Sending direction of a connection.
pub trait Flow: Send + Sync {
    /// Changes the congestion controller.
    ///
    /// # Errors
    /// `Unsupported`, with the reason, when this protocol cannot run it.
    fn control(&self, choice: Choice) -> Result<()>;

    /// Passes on what is remembered of the path. The controller restarts from it, unless the round trip of
    /// the connection shows that the path is another one. Does nothing where the kernel decides, which has
    /// its own cache.
    fn remember(&self, known: RememberedPath);

    /// Address of the other end, where it has one.
    fn peer(&self) -> Option<SocketAddr>;

    /// False while the other end may be replaying packets of an earlier client: on a server, until the
    /// handshake of a client that sent early data ends. Until then only idempotent requests may be executed.
    fn is_proven(&self) -> bool {
        true
    }

    /// Waits until the other end is proven; false when the connection ended first.
    ///
    /// # Cancel safety
    /// Safe: nothing is consumed.
    fn proven(&self) -> BoxFuture<'static, bool> {
        Box::pin(std::future::ready(true))
    }

    /// Prober that measures the path by packet trains; `None` where the protocol does not support them.
    fn prober(&self) -> Option<&Prober> {
        None
    }

    /// Statistics so far.
    fn statistics(&self) -> Statistics;
}

/// Statistics of a connection. Sizes are bytes on the wire without the headers of IP and UDP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Name of the protocol.
    pub protocol: &'static str,
    /// TCP connections of the link, all counted here.
    pub streams: u32,
    /// Congestion controller of this side; `None` where the kernel decides.
    pub controller: Option<Choice>,
    /// Congestion control of the kernel, where the kernel decides.
    pub kernel_controller: Option<&'static str>,
    /// Smoothed round trip.
    pub rtt: Option<Duration>,
    /// Minimum round trip so far.
    pub least_rtt: Option<Duration>,
    /// Bytes sent so far.
    pub sent_bytes: u64,
    /// Bytes received so far.
    pub received_bytes: u64,
    /// Bytes declared lost so far, and retransmitted.
    pub lost_bytes: u64,
    /// Packets sent so far.
    pub sent_packets: u64,
    /// Packets declared lost so far, of those sent.
    pub lost_packets: u64,
    /// Observed reordering events; `None` where they are not reported.
    pub reordered: Option<u64>,
    /// Packets received after a gap, because one before them was lost or overtaken; `None` where that is not counted.
    pub out_of_order: Option<u64>,
    /// Bytes sent and neither acknowledged nor lost.
    pub in_flight_bytes: u64,
    /// Congestion window, bytes.
    pub window_bytes: u64,
    /// Rate at which the controller sends, bytes per second.
    pub rate_bytes_per_sec: Option<f64>,
    /// Recent delivery rate, bytes per second; `None` where too little was sent to measure it.
    pub delivery_bytes_per_sec: Option<f64>,
    /// Size of a full packet, bytes.
    pub packet_bytes: u64,
    /// Largest IP packet that the path carries, bytes, where known.
    pub mtu_bytes: Option<u32>,
    /// Number of releases of packets.
    pub batches: u64,
    /// Counters of datagrams, for the link `lossy` only.
    pub datagrams: Option<DatagramCounts>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_crosses_as_a_capability() {
        for text in ["auto", "rate=400Mb/s", "polite=1Gb/s"] {
            let choice: Choice = text.parse().unwrap();
            let capability = controller_capability(choice);
            assert!(capability.len() <= wire::limits::MAX_NAME_BYTES, "{capability}");
            assert_eq!(requested_controller(&["crc32c".into(), capability]).unwrap(), Some(choice));
        }
        assert_eq!(requested_controller(&["crc32c".into()]).unwrap(), None);
        assert!(
            requested_controller(&["controller:warp".into()]).unwrap_err().to_string().contains("`warp`")
        );
    }

    #[test]
    fn a_remembered_path_is_sent_as_a_capability_and_invalid_values_are_ignored() {
        let (rate_bytes_per_sec, rtt) = (12.5e6, Duration::from_micros(150_250));
        let known = RememberedPath { rate_bytes_per_sec, capacity_bytes_per_sec: 13e6, rtt };
        assert_eq!(remembered_path(&["crc32c".into(), path_capability(known)]), Some(known));
        let fastest = RememberedPath { rate_bytes_per_sec: 125e9, capacity_bytes_per_sec: 125e9, ..known };
        assert!(path_capability(fastest).len() <= wire::limits::MAX_NAME_BYTES);
        for nonsense in
            ["", "1", "1,2", "0,2,3", "2,1,3", "1,2,0", "1,2,10000001", "1,999999999999,3", "1,-2,3", "a,b,c"]
        {
            assert_eq!(remembered_path(&[format!("path:{nonsense}")]), None, "{nonsense}");
        }
    }
}
