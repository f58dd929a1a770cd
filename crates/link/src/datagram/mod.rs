//! The link `lossy`: bulk in datagrams, each usable by itself, delivered in any order and retransmitted if
//! lost and still wanted. State machines only: time is an argument, and sockets are elsewhere (`quic/lossy`).
//!
//! ```text
//! server                                                                  client
//!   frames ------------------------ lanes, reliable, in order ------------> frames
//!   chunks of large items --> Sender ==== datagrams, numbered ====> Receiver --> parts of items, in any order
//!                               ^   ---- records: mark, void, gone, repair -->  |
//!                               `--- records: want, report, cancel -------------'
//! ```
//!
//! - A datagram names the item and the offset of its bytes, and repeats the item's head ([`wire::BulkPart`]):
//!   so its bytes can be copied to their destination before anything else of the answer has arrived. The head
//!   is also sent as a frame, reliably and in order, before the end of the operation, so that no item is
//!   missed.
//! - Datagrams are *numbered* in the order of their first transmission. A number is delivered once: the
//!   [`DatagramReceiver`] records only the numbers that are missing. It *reports* them when a later one
//!   arrived longer ago than reordering lasts; the [`DatagramSender`] keeps each datagram until it is
//!   reported as settled, and retransmits missing ones unchanged.
//! - When the sender has nothing more to send, it announces the highest number (*mark*), so that the last
//!   datagrams are detected as missing too.
//! - Withdrawn bulk is not retransmitted: the sender declares each missing number *void*, and reports the
//!   size of cancelled bulk that had no number yet (*gone*), so that the client's account of credit is right.
//! - With *redundancy*, parity datagrams follow each group of datagrams ([`redundancy`]), from which as many
//!   lost ones are restored as there are parity datagrams; numbers are reported only when that has failed.
//!
//! Received bulk is bounded by the credit that the client gave ([`wire::Client`]); the sender's buffer by
//! [`MAX_KEPT_BYTES`] and [`MAX_KEPT_DATAGRAMS`], its queue of records by [`MAX_WAITING_RECORDS`] and its
//! buffer, its work for one report by [`MAX_ANSWERED`]; the receiver's list of missing numbers by
//! [`MAX_RUNS`].

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
    /// Bulk datagrams sent for the first time, or received and wanted.
    pub datagrams: u64,
    /// Bulk datagrams retransmitted, or received twice.
    pub again: u64,
    /// Parity datagrams sent, or received.
    pub parity: u64,
    /// Requests for missing numbers: numbers missing longer than reordering lasts, counted at each request.
    pub missed: u64,
    /// Datagrams restored from parity.
    pub restored: u64,
    /// Numbers whose bulk was cancelled.
    pub void: u64,
    /// Received datagrams that are invalid, or exceed the limits of the bookkeeping.
    pub rejected: u64,
}
