//! Rate control: congestion controllers and pacing, the fair share of a receiver's rate, and the decision
//! whether compression makes a transfer faster.
//!
//! A controller is a small state machine. An engine (QUIC, a block protocol, the laboratory's simulator)
//! reports events about packets ([`PacketEvent`]) and queries how much may be sent ([`SendLimits`]). This
//! crate is pure: it has no dependencies, clock, socket, thread or random number, so the same code runs on a
//! real link and on 100 Gb/s x 150 ms in a test.
//!
//! Read [`Controller`] first, then [`registry`]: controllers by name, and the signals that each needs. An
//! engine that does not provide a signal is refused with the reason, instead of running a law that lacks its
//! input.

mod auto;
mod bbr;
mod choice;
pub mod compression;
mod config;
mod controller;
mod event;
pub mod fair_share;
mod filter;
mod guard;
mod limits;
mod pacer;
mod rate;
pub mod registry;
mod round;
mod sampler;
mod tfrc;
mod udt;
mod window;

pub use choice::{Choice, MAX_CHOICE_BYTES, parse_rate};
pub use config::{Config, RememberedPath};
pub use controller::Controller;
pub use event::{Ack, DeliverySample, LostPackets, PacketEvent, ReceiverReport, Signal};
pub use limits::{
    MAX_QUANTUM_BYTES, MAX_RATE_BYTES_PER_SEC, MAX_WINDOW_BYTES, MIN_RATE_BYTES_PER_SEC, SendLimits,
};
pub use pacer::Pacer;
pub use registry::{ControllerEntry, Refusal};
pub use sampler::{DeliverySampler, SendStamp};
