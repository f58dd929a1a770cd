//! Planning of transfers: the knowledge of a network path, what this host allows on it, and advice with reasons.
//!
//! This crate records measurements ([`Measurement`]) and returns estimates with a confidence ([`Estimate`])
//! and advice with its reason ([`Advised`]). It is pure: no clock, socket, file, thread or random number; the
//! time of a measurement is an argument, so a month of a path is a test of milliseconds.
//!
//! Read [`Path`] first (everything known about a path), then [`advise`]. Outside this crate: measurement (`link`),
//! storage (`client`), the rate of a running connection (`control`).

mod achieved;
mod advice;
mod budget;
mod capacity;
mod change;
mod estimate;
mod host;
mod laws;
mod network;
mod one_way;
mod path;
mod preflight;
mod report;
mod rtt;
mod series;
mod share;
pub mod text;
pub mod train;
mod transit;

pub use achieved::{Achieved, MAX_METHODS, SendMethod};
pub use advice::{
    Advice, Advised, BUFFER_HEADROOM, LEAST_CONFIDENCE, MAX_STREAMS, advise, link_protocol, link_streams,
};
pub use budget::{ALL_BYTES_PER_HOUR, PATH_BYTES_PER_HOUR, PROBE_WITHIN, ProbeBudget, TooMuch};
pub use capacity::BottleneckCapacity;
pub use change::{Carrying, LEAST_RTT, LinkWatch, Standing};
pub use estimate::{Estimate, HALF_LIFE, MAX_AGE};
pub use host::HostFacts;
pub use laws::{bandwidth_delay_bytes, cubic_bytes_per_sec, cubic_recovery_secs, reno_bytes_per_sec};
pub use network::{NetworkPrefix, Signature};
pub use one_way::OneWayPath;
pub use path::{Direction, Measurement, Path};
pub use preflight::{TransferLimit, preflight};
pub use report::{AchievedRate, PathReport};
pub use rtt::RttHistory;
pub use series::{MAX_SAMPLES, Series};
pub use share::PacketShare;
pub use transit::{Transit, Trend};
