//! Several TCP connections as one link, for paths on which losses, windows or the cost of encryption keep a
//! single connection below the capacity.
//!
//! ```text
//! client                                                               server
//!   first stream    <== frames both ways, in order; bulk too          ==>
//!   further streams <== bulk in parts, each usable by itself ==========
//! ```
//!
//! - The *first* stream is a complete link and does not wait for the others. They are opened when the
//!   server's first message has arrived, so that a refused client opens none.
//! - A further stream is a TLS connection to the same server, verified like the first, and *joins* by a
//!   ticket that is derived from the TLS keys of the first stream ([`ticket`]): only its two ends know it.
//!   The server accepts streams up to the limit, for a short time ([`StreamRegistry`]); the client uses those
//!   that were accepted.
//! - Chunks of large items are sent on any stream that can take one, in any order ([`wire::BulkPart`]);
//!   everything else on the first stream, so that urgent data does not wait for a stalled stream.
//! - Further streams may use other addresses of the server or of the client than the first ([`Rails`]), so
//!   that a link uses several paths or network cards together. Each stream carries what its own path can
//!   carry.
//! - The server sends on each further stream in a task of its own; on a machine where only some cores are
//!   close to the network card, on a thread that is pinned to such a core
//!   ([`Topology`](crate::multistream::topology::Topology)).
//! - A broken stream breaks the link, and the client reconnects as usual. Retransmission on another stream
//!   would require a copy of all unacknowledged data, the whole window of each stream; and in most cases all
//!   streams break together, because the host or the path fails.

pub mod topology;

mod flow;
mod further_stream;
mod pinned_sender;
mod rail;
mod receiving;
mod sending;
mod stream_registry;
#[cfg(test)]
mod tests;
mod ticket;

pub use further_stream::JoinedStream;
pub use rail::{MAX_RAILS, Rail, Rails};
pub use receiving::connect;
pub use stream_registry::{AcceptedSession, JOIN_WITHIN, StreamRegistry};

/// Most streams of a link, the first included.
pub const MAX_STREAMS: u32 = 16;
/// Byte by which the server confirms that a stream has joined.
const TAKEN: u8 = 1;
