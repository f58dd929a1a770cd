//! Limits of a transfer that a host and a path imply, computed before anything is sent: each in bits per
//! second, with the reason and a remedy.

use std::time::Duration;

use serde::Serialize;

use crate::estimate::{Estimate, whole};
use crate::host::HostFacts;
use crate::laws::{USUAL_MTU_BYTES, cubic_bytes_per_sec, segment_bytes};
use crate::path::{Direction, Path};
use crate::text;

/// Share of a TCP receive buffer that is window: the kernel keeps the rest for itself (`tcp_adv_win_scale` =
/// 1).
const WINDOW_SHARE: f64 = 0.5;
/// Time for which a program may lose its processor, seconds; a UDP socket's buffer must hold what arrives
/// meanwhile.
const AWAY_SECS: f64 = 0.010;
/// Rate that buffers should suffice for where the capacity of the path is not known, bits per second.
const WANTED_BITS_PER_SEC: f64 = 1e9;

/// Limit of a transfer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransferLimit {
    /// Short name of the limit.
    pub name: &'static str,
    /// Protocol that it limits; `None` for all.
    pub protocol: Option<&'static str>,
    /// Value of the limit, bits per second.
    pub bits_per_sec: f64,
    /// True for the smallest limit of its protocol.
    pub is_binding: bool,
    /// Explanation of the limit.
    pub why: String,
    /// Change that would raise the limit; `None` where nothing on this host would help.
    pub change: Option<String>,
}

/// Properties of the path that the limits are computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct KnownPath {
    pub(crate) rtt: Option<Estimate>,
    pub(crate) rate_bytes_per_sec: Option<Estimate>,
    pub(crate) loss: Option<Estimate>,
    pub(crate) mtu_bytes: Option<f64>,
}

/// Returns the limits of this host and this path in one direction, the lowest first. Limits that need unknown
/// values, and those of the other host, are left out.
#[must_use]
pub fn preflight(host: &HostFacts, path: &Path, direction: Direction, now: Duration) -> Vec<TransferLimit> {
    let one_way = path.one_way(direction);
    let known = KnownPath {
        rtt: path.rtt.least(now),
        rate_bytes_per_sec: one_way.rate(now).map(|(rate, _)| rate),
        loss: one_way.loss(now),
        mtu_bytes: one_way.mtu_bytes(now).map(|mtu| mtu.value),
    };
    let mut limits: Vec<TransferLimit> = [
        receive_buffer_limit(host, &known).filter(|_| direction == Direction::Down),
        send_buffer_limit(host, &known).filter(|_| direction == Direction::Up),
        loss_limit(&known).filter(|_| direction == Direction::Down || cubic_is_used_by(host)),
        udp_buffer_limit(host, &known).filter(|_| direction == Direction::Down),
        packet_limit(host),
        cipher_limit(host),
        card_limit(host),
        capacity_limit(&known),
    ]
    .into_iter()
    .flatten()
    .collect();
    limits.sort_by(|a, b| a.bits_per_sec.total_cmp(&b.bits_per_sec));
    bind(&mut limits);
    limits
}

/// Marks the lowest limit of each protocol as binding.
fn bind(limits: &mut [TransferLimit]) {
    for protocol in ["tcp", "quic"] {
        let lowest = limits.iter_mut().find(|limit| limit.protocol.is_none_or(|of| of == protocol));
        lowest.into_iter().for_each(|limit| limit.is_binding = true);
    }
}

fn limit(
    name: &'static str,
    protocol: Option<&'static str>,
    bytes_per_sec: f64,
    why: String,
) -> TransferLimit {
    TransferLimit { name, protocol, bits_per_sec: bytes_per_sec * 8.0, is_binding: false, why, change: None }
}

/// Rate that buffers should suffice for, bytes per second.
fn wanted_bytes_per_sec(known: &KnownPath) -> f64 {
    known.rate_bytes_per_sec.map_or(WANTED_BITS_PER_SEC / 8.0, |rate| rate.high)
}

fn receive_buffer_limit(host: &HostFacts, known: &KnownPath) -> Option<TransferLimit> {
    let (buffer, rtt) = (host.tcp_rmem_max_bytes? as f64, known.rtt?.value);
    let why = format!(
        "a TCP connection's window is half of its buffer, {} at most, each {}",
        mebibytes(buffer),
        text::time(rtt)
    );
    let mut limit = limit("tcp receive buffer", Some("tcp"), WINDOW_SHARE * buffer / rtt, why);
    let needed = wanted_bytes_per_sec(known) * rtt / WINDOW_SHARE;
    if host.tunes_receive_buffers == Some(false) {
        limit.change = Some("sysctl -w net.ipv4.tcp_moderate_rcvbuf=1".into());
    } else if needed > buffer {
        limit.change = Some(format!("sysctl -w net.ipv4.tcp_rmem='4096 131072 {}'", whole(needed)));
    }
    Some(limit)
}

fn send_buffer_limit(host: &HostFacts, known: &KnownPath) -> Option<TransferLimit> {
    let (buffer, rtt) = (host.tcp_wmem_max_bytes? as f64, known.rtt?.value);
    let why = format!(
        "a TCP connection keeps unacknowledged data, {} at most, for {}",
        mebibytes(buffer),
        text::time(rtt)
    );
    let mut limit = limit("tcp send buffer", Some("tcp"), buffer / rtt, why);
    let needed = wanted_bytes_per_sec(known) * rtt;
    if needed > buffer {
        // Twice the size: acknowledged data must be replaced before the acknowledgement arrives.
        limit.change = Some(format!("sysctl -w net.ipv4.tcp_wmem='4096 16384 {}'", whole(2.0 * needed)));
    }
    Some(limit)
}

/// Returns whether the rate law of CUBIC applies; other controllers have their own.
fn cubic_is_used_by(host: &HostFacts) -> bool {
    host.congestion_control.as_deref().is_none_or(|name| ["cubic", "reno"].contains(&name))
}

fn loss_limit(known: &KnownPath) -> Option<TransferLimit> {
    let (rtt, loss) = (known.rtt?.value, known.loss.filter(|loss| loss.value > 0.0)?);
    let segment = segment_bytes(known.mtu_bytes);
    let why = format!(
        "{:.3} % of packets are lost, and CUBIC reduces its rate at each loss (RFC 9438) over {}",
        loss.value * 100.0,
        text::time(rtt)
    );
    let mut limit = limit("tcp loss", Some("tcp"), cubic_bytes_per_sec(segment, rtt, loss.value), why);
    if known.rate_bytes_per_sec.is_none_or(|rate| rate.value * 8.0 > limit.bits_per_sec) {
        limit.change = Some("--link quic".into());
    }
    Some(limit)
}

fn udp_buffer_limit(host: &HostFacts, known: &KnownPath) -> Option<TransferLimit> {
    let buffer = host.rmem_max_bytes? as f64;
    let why = format!(
        "a UDP socket holds {} at most, and a busy host may not read it for {:.0} ms",
        mebibytes(buffer),
        AWAY_SECS * 1e3
    );
    let mut limit = limit("udp receive buffer", Some("quic"), buffer / AWAY_SECS, why);
    let needed = wanted_bytes_per_sec(known) * AWAY_SECS;
    if needed > buffer {
        limit.change = Some(format!("sysctl -w net.core.rmem_max={}", whole(needed)));
    }
    Some(limit)
}

fn packet_limit(host: &HostFacts) -> Option<TransferLimit> {
    let (rate, at_once) = (host.udp_bytes_per_sec?, host.udp_packets_at_once?);
    let why = format!(
        "one core passes {:.1} GB/s to the kernel in packets of the interface's size, {at_once} at a time",
        rate * 1e-9
    );
    let mut limit = limit("udp packets", Some("quic"), rate, why);
    limit.change = if at_once == 1 {
        Some("a kernel and a network card that segment UDP packets themselves (ethtool -K INTERFACE tx-udp-segmentation on)".into())
    } else {
        host.mtu_bytes
            .filter(|mtu| f64::from(*mtu) <= USUAL_MTU_BYTES)
            .map(|_| "larger packets, if the whole path carries them (ip link set mtu 9000)".into())
    };
    Some(limit)
}

fn card_limit(host: &HostFacts) -> Option<TransferLimit> {
    let (bits_per_sec, name) =
        (host.card_bits_per_sec?, host.interface.as_deref().unwrap_or("the interface"));
    let why = format!("the network card of {name} reports {}", text::rate(bits_per_sec / 8.0));
    Some(limit("network card", None, bits_per_sec / 8.0, why))
}

fn cipher_limit(host: &HostFacts) -> Option<TransferLimit> {
    let rate = host.cipher_bytes_per_sec?;
    let why = format!("one core encrypts {:.1} GB/s, and a connection is one task", rate * 1e-9);
    let mut limit = limit("cipher", None, rate, why);
    limit.change = host.cores.filter(|cores| *cores > 1).map(|_| "more parallel connections".into());
    Some(limit)
}

fn capacity_limit(known: &KnownPath) -> Option<TransferLimit> {
    let rate = known.rate_bytes_per_sec?;
    Some(limit("path", None, rate.value, "measured capacity of the path".into()))
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / (1 << 20) as f64)
}
