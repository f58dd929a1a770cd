//! Facts of this host: limits of its kernel and the speed of its encryption. Linux only.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use link::quic::UdpSendSpeed;
use plan::HostFacts;

/// Duration of each measurement of the cipher and the kernel, once per process.
const MEASURING_TIME: Duration = Duration::from_millis(5);
/// Maximum number of packet sizes for which the speed of the kernel is measured.
const MAX_SIZES: usize = 8;
/// Size of the headers of IPv4 and UDP together, in bytes.
const HEADER_BYTES: usize = 28;
/// Largest packet that leaves a host, in bytes (the loopback interface reports 65,536).
const MAX_PACKET_BYTES: usize = 9_000;

/// Returns the facts that affect the path to `peer`. Takes some milliseconds on the first call.
pub(super) fn facts(peer: IpAddr) -> HostFacts {
    static CIPHER_BYTES_PER_SEC: OnceLock<f64> = OnceLock::new();
    let towards = towards(peer);
    let mtu_bytes = towards.as_ref().and_then(mtu_bytes);
    let sending = mtu_bytes.and_then(sending);
    let interface = towards.as_ref().and_then(interface);
    let cipher =
        *CIPHER_BYTES_PER_SEC.get_or_init(|| link::carrier::tls::cipher_bytes_per_sec(MEASURING_TIME));
    HostFacts {
        rmem_max_bytes: number("net/core/rmem_max"),
        wmem_max_bytes: number("net/core/wmem_max"),
        tcp_rmem_max_bytes: third("net/ipv4/tcp_rmem"),
        tcp_wmem_max_bytes: third("net/ipv4/tcp_wmem"),
        tunes_receive_buffers: number("net/ipv4/tcp_moderate_rcvbuf").map(|set| set != 0),
        congestion_control: setting("net/ipv4/tcp_congestion_control"),
        qdisc: setting("net/core/default_qdisc"),
        mtu_bytes,
        card_bits_per_sec: interface.as_deref().and_then(card_bits_per_sec),
        interface,
        udp_bytes_per_sec: sending.map(|sending| sending.bytes_per_sec),
        udp_packets_at_once: sending.and_then(|sending| u32::try_from(sending.packets_at_once).ok()),
        cipher_bytes_per_sec: Some(cipher).filter(|speed| speed.is_finite()),
        cores: std::thread::available_parallelism().ok().and_then(|n| u32::try_from(n.get()).ok()),
    }
}

fn setting(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn number(name: &str) -> Option<u64> {
    setting(name)?.parse().ok()
}

/// Returns the third number, the maximum, of a kernel setting that holds a minimum, a default and a maximum.
fn third(name: &str) -> Option<u64> {
    setting(name)?.split_whitespace().nth(2)?.parse().ok()
}

/// Opens a socket that would send to `peer`; nothing is sent.
fn towards(peer: IpAddr) -> Option<UdpSocket> {
    let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect((peer, 9)).ok()?;
    Some(socket)
}

/// Returns the interface through which a socket sends.
fn interface(socket: &UdpSocket) -> Option<String> {
    let own = socket.local_addr().ok()?.ip();
    let all = if_addrs::get_if_addrs().ok()?;
    all.into_iter().find(|one| one.ip() == own).map(|one| one.name)
}

/// Returns the speed that the network card of an interface reports, in bits per second; `None` for virtual interfaces,
/// which report none.
fn card_bits_per_sec(interface: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/sys/class/net/{interface}/speed")).ok()?;
    let megabits: f64 = text.trim().parse().ok()?;
    (megabits > 0.0).then_some(megabits * 1e6)
}

/// Returns the rate of sending UDP packets of the interface's size, measured once per process for each of a few sizes.
fn sending(mtu_bytes: u32) -> Option<UdpSendSpeed> {
    static KNOWN: Mutex<Vec<(usize, Option<UdpSendSpeed>)>> = Mutex::new(Vec::new());
    let packet_bytes = usize::try_from(mtu_bytes).ok()?.min(MAX_PACKET_BYTES);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, sending)) = known.iter().find(|(size, _)| *size == packet_bytes) {
        return *sending;
    }
    if known.len() >= MAX_SIZES {
        return None;
    }
    let sending = link::quic::udp_send_speed(packet_bytes.saturating_sub(HEADER_BYTES), MEASURING_TIME);
    known.push((packet_bytes, sending));
    sending
}

/// Returns the MTU of the interface through which a socket sends, in bytes.
fn mtu_bytes(socket: &UdpSocket) -> Option<u32> {
    if socket.local_addr().ok()?.is_ipv4() {
        rustix::net::sockopt::ip_mtu(socket).ok()
    } else {
        rustix::net::sockopt::ipv6_mtu(socket).ok()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn facts_of_this_host_are_measured() {
        let facts = facts(IpAddr::from([127, 0, 0, 1]));
        assert!(facts.tcp_rmem_max_bytes > Some(4096) && facts.mtu_bytes > Some(1000), "{facts:?}");
        let speed = facts.cipher_bytes_per_sec.unwrap();
        assert!(speed.is_finite() && speed > 1e5, "{speed}");
        assert_eq!(facts.interface.as_deref(), Some("lo"));
        assert!(facts.udp_bytes_per_sec > Some(1e6) && facts.udp_packets_at_once >= Some(1), "{facts:?}");
    }
}
