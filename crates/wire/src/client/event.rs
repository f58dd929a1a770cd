//! Configuration of a client, and the events that it reports.

use std::ops::RangeInclusive;
use std::time::Duration;

use array::Error;
use bytes::Bytes;

use crate::client::turns::InTurns;
use crate::limits::{BATCH, DEFAULT_WINDOW_BYTES, HANDSHAKE_TIMEOUT, HIGHEST_VERSION, LOWEST_VERSION};
use crate::{OpId, Welcome};

/// Configuration of a client: how it presents itself to the server, and how much the server may send.
#[derive(Clone)]
pub struct ClientConfig {
    /// Supported protocol versions.
    pub versions: RangeInclusive<u16>,
    /// Capabilities beyond the version, at most [`MAX_CAPABILITIES`](crate::limits::MAX_CAPABILITIES) names.
    pub capabilities: Vec<String>,
    /// Access token; empty where none is needed.
    pub token: String,
    /// Name and version of the program.
    pub program: String,
    /// Most bulk bytes that may be in flight or not yet taken by the application: the memory reserved for
    /// them.
    pub window_bytes: u64,
    /// Part of the window that is used.
    pub sent_ahead: SentAhead,
    /// Returns credit in turns, where a receive rate is divided among connections.
    pub in_turns: Option<InTurns>,
    /// Time limit for the welcome; silence before it does not count. Longer than a handshake where a user has
    /// to log in first.
    pub welcome_within: Duration,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            versions: LOWEST_VERSION..=HIGHEST_VERSION,
            capabilities: vec!["crc32c".into(), BATCH.into()],
            token: String::new(),
            program: concat!("corridor ", env!("CARGO_PKG_VERSION")).into(),
            window_bytes: DEFAULT_WINDOW_BYTES,
            sent_ahead: SentAhead::default(),
            in_turns: None,
            welcome_within: HANDSHAKE_TIMEOUT,
        }
    }
}

/// Part of its window that a client lets the server send ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SentAhead {
    /// As much as fills the path, measured while data arrives. More would wait in the queues of the path and
    /// delay urgent data.
    #[default]
    Found,
    /// As `Found`, starting with the bytes that are known to fill the path.
    Known(u64),
    /// Whole window, from the start: the sender keeps the queues short by itself. A path that loses packets
    /// needs several times the bytes that fill it, because data after a gap counts as in flight until the gap
    /// is filled.
    All,
}

/// Event that a client reports to the application.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// The handshake is over.
    Welcomed(Welcome),
    /// Head of an item; its bulk follows in parts.
    Item {
        /// Operation that the item answers.
        op: OpId,
        /// Number of the item in the operation.
        item: u32,
        /// Small part of the item.
        body: Bytes,
        /// Size of the bulk. With 0 the item is complete.
        bulk_bytes: u64,
    },
    /// Part of an item's bulk, to be written at `offset`. [`Client::grant`](crate::Client::grant) has to
    /// return its size once it was taken.
    Piece {
        /// Operation that the item answers.
        op: OpId,
        /// Number of the item in the operation.
        item: u32,
        /// Offset of the bytes in the item's bulk.
        offset: u64,
        /// Bytes of the bulk, sharing the frame's memory.
        bytes: Bytes,
        /// True when the item is complete and its checksum is right. Until then the bytes are not verified.
        complete: bool,
    },
    /// Small answer that arrived as a whole, with the right checksum: the only item, and the end of the
    /// operation. `grant` has to return the size of its bulk.
    Whole {
        /// Operation that the item answers.
        op: OpId,
        /// Small part of the item.
        body: Bytes,
        /// Bulk, sharing the frame's memory.
        bulk: Bytes,
    },
    /// The operation ended successfully.
    Done {
        /// Number of the operation.
        op: OpId,
    },
    /// The operation failed.
    Failed {
        /// Number of the operation.
        op: OpId,
        /// Reason of the failure.
        error: Error,
    },
    /// The connection is over; the end of every operation was reported before.
    Closed {
        /// Reason of the end.
        error: Error,
    },
}

impl ClientEvent {
    /// Operation that the event belongs to.
    #[must_use]
    pub fn op(&self) -> Option<OpId> {
        match self {
            Self::Item { op, .. }
            | Self::Piece { op, .. }
            | Self::Whole { op, .. }
            | Self::Done { op }
            | Self::Failed { op, .. } => Some(*op),
            Self::Welcomed(_) | Self::Closed { .. } => None,
        }
    }

    /// Bulk bytes of the event.
    #[must_use]
    pub fn bulk_bytes(&self) -> u64 {
        match self {
            Self::Piece { bytes, .. } | Self::Whole { bulk: bytes, .. } => bytes.len() as u64,
            _ => 0,
        }
    }
}
