//! Transport of the protocol's messages over TLS on TCP, QUIC, WebSockets and within a process.
//!
//! A [`Link`] carries whole messages in both directions and does not interpret them. [`connect`] and
//! [`serve`] put one side of the protocol ([`wire::Client`], [`wire::Server`]) on a link and give a handle
//! for the application and a [`Driver`], the loop that moves bytes; the caller owns the task that the driver
//! runs in. This crate does not handle arrays or files and does not check tokens.
//!
//! ```
//! # use bytes::Bytes;
//! # use wire::{ClientConfig, Priority, Result, ServerConfig, Urgency};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let (near, far) = corridor_link::carrier::local::pair();
//! let (client, client_driver) = corridor_link::connect(near, ClientConfig::default())?;
//! let (connection, server_driver) = corridor_link::serve(far, ServerConfig::default())?;
//! let mut tasks = tokio::task::JoinSet::new();
//! tasks.spawn(client_driver);
//! tasks.spawn(server_driver);
//! tasks.spawn(async move {
//!     connection.hello().await.unwrap(); // its token is good
//!     connection.accept();
//!     while let Some(operation) = connection.next().await {
//!         operation.item(operation.parameters(), Bytes::from("bulk")).await.unwrap();
//!         operation.done();
//!     }
//! });
//! let item = client.call("echo", Bytes::from("hello"), Urgency::of(Priority::NORMAL)).await?;
//! assert_eq!((&item.body[..], &item.bulk[..]), (&b"hello"[..], &b"bulk"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! Read [`Carrier`] first (the interface of a transport), then `drive.rs` (the loop that drives all of them).

pub mod carrier;
mod client;
mod clock;
pub mod datagram;
mod dial;
mod drive;
mod flow;
pub mod multistream;
pub mod offer;
pub mod quic;
mod server;

pub use carrier::tcp_flow::TcpMonitor;
pub use carrier::tls::{Fingerprint, Identity, Trust};
pub use carrier::{Carrier, Link, Received};
pub use client::read_sink::{ReadHandle, ReadSink, ReceiveCounts};
pub use client::read_sinks::SinkRequest;
pub use client::receive_group::ReceiveGroup;
pub use client::request_set::{OpEvent, RequestSet};
pub use client::stream::OpStream;
pub use client::{
    ClientHandle, ClientWatch, Item, MAX_WAITING_BODY_BYTES, MAX_WAITING_REPLIES, OWN_BODY_BYTES,
    OWN_REPLIES, Reply, connect, connect_among,
};
pub use control::{Choice, Refusal, RememberedPath, parse_rate};
pub use dial::{LONG_RTT, Protocol, RaceOutcome, TcpOptions, connect as dial, race};
pub use drive::Driver;
pub use flow::{
    Flow, Statistics, controller_capability, path_capability, remembered_path, requested_controller,
};
pub use server::waiting_limit::{OWN_WAITING_OPERATIONS, WaitingLimit};
pub use server::{
    MAX_WAITING_NOTE_BYTES, MAX_WAITING_NOTES, MAX_WAITING_PARAMETER_BYTES, Operation, OperationChange,
    ServerConnection, serve, serve_among,
};
