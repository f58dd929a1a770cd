//! Send speed of this host: the rate at which it passes UDP packets to its kernel, which bounds every
//! connection by UDP.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use quinn::udp::{Transmit, UdpSocketState};

/// Most packets passed in one call: as many as the QUIC stack combines.
const MOST_AT_ONCE: usize = 10;

/// Send speed of this host; see [`udp_send_speed`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UdpSendSpeed {
    /// UDP payload that one core sends, bytes per second.
    pub bytes_per_sec: f64,
    /// Packets that the kernel accepts in one call (generic segmentation offload).
    pub packets_at_once: usize,
}

/// Measures the send speed: passes packets of `packet_bytes` to the kernel for the time `within`, on loopback
/// and without a receiver. Blocks the thread. `None` where the system provides no socket, or rejects packets
/// of this size.
#[must_use]
pub fn udp_send_speed(packet_bytes: usize, within: Duration) -> Option<UdpSendSpeed> {
    let to = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let from = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let state = UdpSocketState::new((&from).into()).ok()?;
    let most = super::socket::MAX_BATCH_BYTES.checked_div(packet_bytes)?;
    let packets_at_once = state.max_gso_segments().min(MOST_AT_ONCE).min(most).max(1);
    let contents = vec![0; packets_at_once * packet_bytes];
    let transmit = Transmit {
        destination: to.local_addr().ok()?,
        ecn: None,
        contents: &contents,
        segment_size: (packets_at_once > 1).then_some(packet_bytes),
        src_ip: None,
    };
    let begun = tokio::time::Instant::now();
    let mut batches = 0_u32;
    while begun.elapsed() < within || batches == 0 {
        state.try_send((&from).into(), &transmit).ok()?;
        batches += 1;
    }
    let bytes = f64::from(batches) * contents.len() as f64;
    Some(UdpSendSpeed { bytes_per_sec: bytes / begun.elapsed().as_secs_f64(), packets_at_once })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_takes_packets_of_usual_sizes_and_none_that_cannot_be() {
        for bytes in [1_200, 1_472, 8_972] {
            let speed = udp_send_speed(bytes, Duration::from_millis(2)).unwrap();
            assert!(speed.bytes_per_sec > 1e6 && speed.packets_at_once >= 1, "{bytes}: {speed:?}");
        }
        assert_eq!(udp_send_speed(0, Duration::ZERO), None);
        assert_eq!(udp_send_speed(70_000, Duration::ZERO), None);
    }
}
