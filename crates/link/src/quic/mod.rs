//! QUIC: the wire over UDP, with our own controllers. For long paths and for those that lose packets.
//!
//! The stack (handshake, encryption, retransmission) is quinn's, unmodified; how fast packets leave is ours:
//!
//! ```text
//! frames --> LaneCarrier --> quinn --asks, tells--> PacedController (control::Controller, Pacer, cap)
//!                                         |                      |
//!                                         v                      v  timer: "now"
//!                                     PacedSocket            the connection's task
//! ```
//!
//! On request ([`BulkTransport`]) the bulk of large items crosses as datagrams (crate's `lossy`), everything else as ever.
//!
//! A client that has been at a server before asks there in its first packets ([`early_data`]), with what the server gave it
//! for that ([`session_ticket_cache`]).
//!
//! Read [`pace`] first: how one bit, "may another packet go?", makes an exact rate. Not here: what a controller does
//! (crate `control`), what frames mean, who may come in.

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
