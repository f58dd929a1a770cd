//! Protocol between two processes: operations and framing as state machines without I/O.
//!
//! It connects two Corridor processes, or a browser and one; `docs/wire.md` is the specification. The crate
//! never opens a socket, reads a clock or starts a thread: bytes and times are arguments, so two peers can be
//! simulated from a seed. Certificates and tokens are checked elsewhere.
//!
//! Read [`Machine`] first (how [`Client`] and [`Server`] are driven), then [`Frame`]. The parameters and
//! answers of the built-in operations are in [`ops`].

mod client;
mod flow;
pub mod frames;
mod machine;
mod server;

pub mod compression;
pub mod limits;
pub mod ops;

pub use array::{Error, ErrorKind, Priority, Result, Retry, Urgency};
pub use client::turns::InTurns;
pub use client::{Client, ClientConfig, ClientEvent, SentAhead};
pub use flow::admission::{Limiter, Permit};
pub use flow::holder_limiter::{Full, HolderLimiter, HolderPermit};
pub use frames::batch::{RequestBatch, SmallAnswer, WholeItem};
pub use frames::codec::{ByteReader, ByteWriter};
pub use frames::deframer::{Deframed, Deframer};
pub use frames::frame::{
    Chunk, ChunkHead, Frame, Hello, ItemHead, Message, MessageContent, OpId, OperationRequest, Welcome,
};
pub use frames::numbered::OpTable;
pub use frames::part::BulkPart;
pub use limits::MAX_FRAME_BYTES;
pub use machine::Machine;
pub use server::{CheckedBulk, Server, ServerConfig, ServerEvent};
