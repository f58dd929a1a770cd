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
    /// Versions it speaks.
    pub versions: RangeInclusive<u16>,
    /// Capabilities beyond the version, at most [`MAX_CAPABILITIES`](crate::limits::MAX_CAPABILITIES) names.
    pub capabilities: Vec<String>,
    /// Shows that it may; empty where none is needed.
    pub token: String,
    /// Name and version of the program.
    pub program: String,
    /// Most bulk bytes that may be on their way or not yet taken by the application: the memory reserved for them.
    pub window_bytes: u64,
    /// How much of the window is used.
    pub sent_ahead: SentAhead,
    /// Credit is returned in turns, which somebody gives who divides what a receiver can take among connections.
    pub in_turns: Option<InTurns>,
    /// How long the welcome may take; until then silence is not held against the server. Longer than a handshake where
    /// somebody has to log in first.
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

/// How much of its window a client lets the server send ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SentAhead {
    /// As much as keeps the path full, measured while data arrives. More would wait in the queues of the path, and urgent
    /// data behind it.
    #[default]
    Found,
    /// As `Found`, but beginning with so many bytes, which are known to fill the path.
    Known(u64),
    /// All of it, from the start: the sender keeps the queues short by itself. A path that loses packets needs several
    /// times the bytes that fill it, because data that follows a gap counts as on its way until the gap is filled.
    All,
}

/// Event that a client reports to the application.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// The handshake is over.
    Welcomed(Welcome),
    /// The head of an item; its bulk follows in pieces.
    Item {
        /// The operation it answers.
        op: OpId,
        /// Its number in the operation.
        item: u32,
        /// The small part.
        body: Bytes,
        /// Size of the bulk. With 0 the item is complete.
        bulk_bytes: u64,
    },
    /// Some of an item's bulk, to be written at `offset`. Its size is to be given back by
    /// [`Client::grant`](crate::Client::grant) once it was taken.
    Piece {
        /// The operation.
        op: OpId,
        /// The item.
        item: u32,
        /// Offset of the bytes in the item's bulk.
        offset: u64,
        /// The bytes, sharing the frame's memory.
        bytes: Bytes,
        /// The item is complete and its checksum is right. Until then the bytes are not proven.
        complete: bool,
    },
    /// A small answer that came whole, its checksum right: the only item, and the end of the operation. The size of its bulk
    /// is to be given back.
    Whole {
        /// The operation it answers.
        op: OpId,
        /// The small part.
        body: Bytes,
        /// The bulk, sharing the frame's memory.
        bulk: Bytes,
    },
    /// The operation ended well.
    Done {
        /// Which.
        op: OpId,
    },
    /// The operation ended otherwise.
    Failed {
        /// Which.
        op: OpId,
        /// Why.
        error: Error,
    },
    /// The connection is over; every operation was told before.
    Closed {
        /// Why.
        error: Error,
    },
}

impl ClientEvent {
    /// The operation it is about.
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

    /// Bulk bytes in it.
    #[must_use]
    pub fn bulk_bytes(&self) -> u64 {
        match self {
            Self::Piece { bytes, .. } | Self::Whole { bulk: bytes, .. } => bytes.len() as u64,
            _ => 0,
        }
    }
}
