//! Protocol between two processes: operations and framing as state machines without I/O.
//!
//! This is the stage between two Corridor processes, and between a browser and one; `docs/wire.md` is the
//! contract. It never opens a socket, reads a clock or starts a thread: bytes and times are arguments, so two
//! peers can be simulated from a seed. Which certificate or token is good is decided elsewhere.
//!
//! Read [`Machine`] first (how [`Client`] and [`Server`] are driven), then [`Frame`]. The parameters and answers
//! of the operations everybody has are in [`ops`].

mod batch;
mod check;
mod client;
mod codec;
mod deadline;
mod deframer;
mod frame;
mod liveness;
mod machine;
mod numbered;
mod outbox;
mod outgoing;
mod part;
mod server;
mod turns;
mod whole;
mod window;

pub mod compression;
pub mod limits;
pub mod ops;
pub mod probe;

pub use array::{Error, ErrorKind, Priority, Result, Retry, Urgency};
pub use batch::{Answer, Requests, WholeItem};
pub use client::{Client, ClientConfig, ClientEvent, SentAhead};
pub use codec::{Reader, Writer};
pub use deframer::{Cut, Deframer};
pub use frame::{Chunk, ChunkHead, Frame, Hello, ItemHead, Message, OpId, Request, Said, Welcome};
pub use limits::MAX_FRAME_BYTES;
pub use machine::Machine;
pub use numbered::Numbered;
pub use part::Part;
pub use server::{Bulk, Server, ServerConfig, ServerEvent};
pub use turns::InTurns;
