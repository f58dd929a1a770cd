//! Facts of this host: settings of its kernel, its interface, its processor.

use serde::{Deserialize, Serialize};

/// Facts of a host; what could not be found out is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `net.core.rmem_max`, bytes: the most that a program may ask for of a socket's receive buffer.
    pub rmem_max_bytes: Option<u64>,
    /// `net.core.wmem_max`, bytes.
    pub wmem_max_bytes: Option<u64>,
    /// The third of `net.ipv4.tcp_rmem`, bytes: as far as the kernel's own tuning goes.
    pub tcp_rmem_max_bytes: Option<u64>,
    /// The third of `net.ipv4.tcp_wmem`, bytes.
    pub tcp_wmem_max_bytes: Option<u64>,
    /// `net.ipv4.tcp_moderate_rcvbuf`: whether the kernel tunes receive buffers.
    pub tunes_receive_buffers: Option<bool>,
    /// `net.ipv4.tcp_congestion_control`.
    pub congestion_control: Option<String>,
    /// `net.core.default_qdisc`.
    pub qdisc: Option<String>,
    /// MTU of the interface towards the other host, bytes.
    pub mtu_bytes: Option<u32>,
    /// The interface's name.
    pub interface: Option<String>,
    /// Speed of its card, as the card says, bits per second.
    pub card_bits_per_sec: Option<f64>,
    /// Payload that one core hands to the kernel by UDP in packets of that size, bytes per second.
    pub udp_bytes_per_sec: Option<f64>,
    /// Packets that the kernel takes at once from UDP.
    pub udp_packets_at_once: Option<u32>,
    /// Bytes per second that one core encrypts.
    pub cipher_bytes_per_sec: Option<f64>,
    /// Cores that may be used.
    pub cores: Option<u32>,
}
