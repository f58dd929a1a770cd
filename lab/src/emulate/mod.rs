//! `corridor lab`: emulation of a wide-area network on one machine, for unmodified programs.
//!
//! Two network namespaces, *a* and *b*, each with one device; what one sends reaches the other through an emulated
//! link of chosen rate, queue, delay, jitter and loss ([`LinkSpec`]). Two engines do it: TUN devices and a thread per
//! direction of this program ([`pump`]), which works wherever `/dev/net/tun` exists; or a veth pair with the kernel's netem
//! ([`netem`]), where the kernel has it; a veth pair alone shows the limit of the machine. The model of the link is one pure
//! state machine, [`lane::LaneState`], driven in virtual time by its tests; [`check`] compares the running link with theory.
//!
//! Needs root, `ip`, for netem `tc`, and for a plain veth pair `ethtool`. IPv4 only: IPv6 is switched off on the devices. All hosts of side *b* share
//! the one link. The processes in the namespaces are trusted, and are ended with the link.

pub mod check;
mod delay_line;
mod lane;
mod namespace;
mod netem;
mod packet;
mod probe;
mod pump;
mod spec;
mod stats;
mod tun;
mod up;

pub use namespace::{DEVICE, address};
pub use spec::{Change, LaneSpec, LinkSpec, LossModel, Options};
pub use stats::{DirectionStats, LinkStats};
pub use up::{Engine, Running, change, down, stats_of, up};
