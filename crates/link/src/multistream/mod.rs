//! Several TCP connections as one link: where each of them gets less than the path carries, for losses, windows or the cost of
//! encryption hold it back, several get more.
//!
//! ```text
//! client                                                               server
//!   first stream    <== frames both ways, in order, as ever; bulk too ==>
//!   further streams <== bulk apart, each piece of use by itself =========
//! ```
//!
//! - The *first* stream is a link by itself, and begins as one: nothing waits for the others. They are made at once when the
//!   server has said something there, so that whoever was not let in joins nothing.
//! - A further stream is TLS to the same server, checked as the first is, and *joins* by a ticket that is made of the keys of the
//!   first one's TLS ([`ticket`]): only its two ends know it. The server takes as many as there may be, for a short time
//!   ([`StreamRegistry`]); the client goes on with those that were taken.
//! - Bulk of large items crosses by whichever stream can take a chunk now, in any order ([`wire::BulkPart`]); everything else by the
//!   first, so that what is urgent waits for no stream that stands still.
//! - Further streams may go other ways than the first: to other addresses of the server, from other addresses of the client
//!   ([`Rails`]), so that a link takes what several paths or network cards carry together. Each takes what its own way can take.
//! - The server sends on each further stream in a task of its own; where the machine has cores beside the network card and
//!   others farther away, on a thread of such a core ([`Topology`](crate::multistream::topology::Topology)).
//! - A stream that breaks breaks the link, and whoever asks connects anew, as ever. What it carried could be sent anew only by
//!   keeping all that was not acknowledged, the whole window of each stream, for a case that mostly takes all streams together: the
//!   host or the way to it is gone.

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

/// Streams of a link, the first among them.
pub const MAX_STREAMS: u32 = 16;
/// Byte by which the server tells a stream that it has joined.
const TAKEN: u8 = 1;
