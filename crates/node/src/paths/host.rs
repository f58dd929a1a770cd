//! Facts of this host: what its kernel allows, how fast it encrypts. Read where Linux shows them.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::sync::OnceLock;
use std::time::Duration;

use plan::Host;

/// How long the cipher is measured, once in a process.
const CIPHER_WITHIN: Duration = Duration::from_millis(5);

/// Facts that matter on the way to `peer`. Takes some milliseconds, the first time.
pub(super) fn facts(peer: IpAddr) -> Host {
    static CIPHER_BYTES_PER_SEC: OnceLock<f64> = OnceLock::new();
    let cipher = *CIPHER_BYTES_PER_SEC.get_or_init(|| link::tls::cipher_bytes_per_sec(CIPHER_WITHIN));
    Host {
        rmem_max_bytes: number("net/core/rmem_max"),
        wmem_max_bytes: number("net/core/wmem_max"),
        tcp_rmem_max_bytes: third("net/ipv4/tcp_rmem"),
        tcp_wmem_max_bytes: third("net/ipv4/tcp_wmem"),
        tunes_receive_buffers: number("net/ipv4/tcp_moderate_rcvbuf").map(|set| set != 0),
        congestion_control: setting("net/ipv4/tcp_congestion_control"),
        qdisc: setting("net/core/default_qdisc"),
        mtu_bytes: mtu_bytes(peer),
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

/// Of least, usual and most, the most.
fn third(name: &str) -> Option<u64> {
    setting(name)?.split_whitespace().nth(2)?.parse().ok()
}

/// Of the interface towards `peer`; nothing is sent.
fn mtu_bytes(peer: IpAddr) -> Option<u32> {
    let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect((peer, 9)).ok()?;
    if peer.is_ipv4() {
        rustix::net::sockopt::ip_mtu(&socket).ok()
    } else {
        rustix::net::sockopt::ipv6_mtu(&socket).ok()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_host_says_something_of_itself() {
        let facts = facts(IpAddr::from([127, 0, 0, 1]));
        assert!(facts.tcp_rmem_max_bytes > Some(4096) && facts.mtu_bytes > Some(1000), "{facts:?}");
        let speed = facts.cipher_bytes_per_sec.unwrap();
        assert!(speed.is_finite() && speed > 1e5, "{speed}");
    }
}
