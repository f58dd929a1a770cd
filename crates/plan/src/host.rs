//! Facts of this host: settings of its kernel, its interface, its processor.

use serde::{Deserialize, Serialize};

/// Facts of a host; `None` where a fact could not be determined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `net.core.rmem_max`, bytes: the largest receive buffer that a program may request.
    pub rmem_max_bytes: Option<u64>,
    /// `net.core.wmem_max`, bytes.
    pub wmem_max_bytes: Option<u64>,
    /// Maximum of `net.ipv4.tcp_rmem`, bytes: the limit of the kernel's own tuning.
    pub tcp_rmem_max_bytes: Option<u64>,
    /// Maximum of `net.ipv4.tcp_wmem`, bytes.
    pub tcp_wmem_max_bytes: Option<u64>,
    /// `net.ipv4.tcp_moderate_rcvbuf`: whether the kernel tunes receive buffers.
    pub tunes_receive_buffers: Option<bool>,
    /// `net.ipv4.tcp_congestion_control`.
    pub congestion_control: Option<String>,
    /// `net.core.default_qdisc`.
    pub qdisc: Option<String>,
    /// MTU of the interface towards the other host, bytes.
    pub mtu_bytes: Option<u32>,
    /// Name of the interface.
    pub interface: Option<String>,
    /// Speed that the network card reports, bits per second.
    pub card_bits_per_sec: Option<f64>,
    /// UDP payload in packets of that size that one core passes to the kernel, bytes per second.
    pub udp_bytes_per_sec: Option<f64>,
    /// UDP packets that the kernel accepts in one call.
    pub udp_packets_at_once: Option<u32>,
    /// Encryption rate of one core, bytes per second.
    pub cipher_bytes_per_sec: Option<f64>,
    /// Available cores.
    pub cores: Option<u32>,
}
