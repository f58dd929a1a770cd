//! QUIC: the protocol over UDP, with the congestion controllers of this project. For long paths and for those
//! that lose packets.
//!
//! The stack (handshake, encryption, retransmission) is quinn, unmodified; pacing and congestion control are
//! here:
//!
//! ```text
//! frames --> LaneCarrier --> quinn --asks, tells--> PacedController (control::Controller, Pacer, cap)
//!                                         |                      |
//!                                         v                      v  timer: "now"
//!                                     PacedSocket            the connection's task
//! ```
//!
//! On request ([`BulkTransport`]) the bulk of large items is sent in datagrams ([`lossy`]), everything else
//! on streams.
//!
//! A client that has connected to a server before sends requests in its first packets ([`early_data`]), with
//! the server's session ticket ([`session_ticket_cache`]).
//!
//! Read [`pace`] first: how one bit, "may another packet be sent?", makes an exact rate. Outside this module: the laws
//! of the controllers (crate `control`), the meaning of frames, access control.

mod adapter;
mod crypto;
mod early_data;
mod endpoint;
mod lane_receiver;
mod lane_sender;
mod lanes;
mod lossy;
mod pace;
mod probe;
mod rejected;
mod segment;
mod send_backlog;
mod send_speed;
mod sent_packets;
mod session_ticket_cache;
mod socket;
mod tokens;
mod wake_timer;

pub use endpoint::{BulkTransport, EndpointOptions, IncomingConnection, Listener, Start, connect};
pub use probe::{MAX_LISTENED, Prober, TRAIN_WITHIN, TrainListener};
pub use rejected::{Rejected, RejectionMonitor};
pub use send_speed::{UdpSendSpeed, udp_send_speed};
