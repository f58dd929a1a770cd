//! The link `lossy`: bulk crosses as datagrams, each of use by itself, in whatever order they come; what is lost is sent
//! again, if it is still wanted. State machines only: time is an argument, sockets are elsewhere (`quic/lossy`).
//!
//! ```text
//! server                                                                  client
//!   frames ------------------------ lanes, reliable, in order ------------> frames
//!   chunks of large items --> Sender ==== datagrams, numbered ====> Receiver --> parts of items, in any order
//!                               ^   ---- records: mark, void, gone, repair -->  |
//!                               `--- records: want, report, cancel -------------'
//! ```
//!
//! - A datagram says of which item's bulk its bytes are, where in it, and all that the item's head says
//!   ([`wire::BulkPart`]): so its bytes go to their place when nothing else of the answer has come. The head also goes the
//!   reliable way, in order, before the end of the operation: there nothing can be overlooked.
//! - Datagrams are *numbered* in the order in which they first leave. A number is delivered once: the [`DatagramReceiver`] knows the
//!   numbers that it has not seen, and nothing else. It *reports* them once a later one came longer ago than packets overtake
//!   each other; the [`DatagramSender`] keeps each datagram until it is reported as settled, and sends those that are missing again, as
//!   they were.
//! - When the sender has nothing more it says how far it has come (*mark*), so that the last ones are missed too.
//! - What was *withdrawn* is not sent again: the sender says of each number that is missed that it is void, and of what had no
//!   number yet how much it was, so that the client's account of credit is right.
//! - With *redundancy*, some parity follows each group of datagrams ([`redundancy`]), from which as many lost ones are made
//!   again as there is parity; numbers are reported only when that has failed.
//!
//! What is received is bounded by the credit that the client gave ([`wire::Client`]); what the sender keeps by
//! [`MAX_KEPT_BYTES`] and [`MAX_KEPT_DATAGRAMS`], what it has to say by [`MAX_WAITING_RECORDS`] and what it keeps, what a report
//! makes it do by [`MAX_ANSWERED`]; what the receiver knows of missing numbers by [`MAX_RUNS`].

mod packet;
mod receiver;
mod record;
mod redundancy;
mod sender;
#[cfg(test)]
mod tests;

pub use packet::Datagram;
pub use receiver::{DatagramReceiver, MAX_RUNS};
pub use record::{DatagramRecord, MAX_ASKED_RUNS};
pub use redundancy::{GROUP, parities};
pub use sender::{
    DatagramSender, LEAST_DATAGRAM_BYTES, MAX_ANSWERED, MAX_KEPT_BYTES, MAX_KEPT_DATAGRAMS,
    MAX_WAITING_RECORDS,
};

/// Counters of one side of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounts {
    /// Datagrams with bulk that left for the first time, or arrived and were wanted.
    pub datagrams: u64,
    /// Datagrams that left again, or that arrived though they were there already.
    pub again: u64,
    /// Datagrams of parity that left, or arrived.
    pub parity: u64,
    /// Numbers that were missed longer than packets overtake each other, each time that they were asked for.
    pub missed: u64,
    /// Datagrams that were made again from parity.
    pub restored: u64,
    /// Numbers that nobody wants any more.
    pub void: u64,
    /// Datagrams that were none of this protocol, or more than can be kept account of.
    pub rejected: u64,
}
