//! The operations everybody has: their names, parameters and answers, as bytes and back.
//!
//! What an operation *does* is decided where it is registered. What the operation [`JOIN`] says is JSON that only
//! its owner, the crate `session`, understands.

mod data;
mod piece;

pub use data::{
    BlockBody, BlockPlace, DescribeParameters, ListEntry, MAX_BINS, MAX_DESCRIPTION_BYTES,
    MAX_DESCRIPTION_VALUES, ReadBlockParameters, ReadBody, ReadParameters, StatsAnswer, StatsHistogram,
    StatsParameters, decode_dataset, encode_dataset,
};
pub use piece::{ReadPiece, RowOffsets, Rows};

use array::{Error, Result};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Data sets that there are.
pub const LIST: &str = "list";
/// One data set's description.
pub const DESCRIBE: &str = "describe";
/// Exactly the elements of a selection.
pub const READ: &str = "read";
/// One block.
pub const READ_BLOCK: &str = "read_block";
/// Extremes, mean and histogram.
pub const STATS: &str = "stats";
/// Taking part in a session.
pub const JOIN: &str = "join";
/// Which servers a viewing node reads from, and how they are.
pub const SERVERS: &str = "servers";

/// Changes the meaning of the values of a viewing node's file.
pub const INTERPRET: &str = "interpret";
/// Knowledge that a server has of the network path to the asker.
pub const PATH: &str = "path";
/// One packet train to measure the path by; see [`crate::frames::probe`].
pub const PROBE: &str = "probe";

/// A structured text: JSON in UTF-8.
///
/// # Errors
/// `Internal` when the value cannot be said in JSON.
pub fn encode_json<T: Serialize>(value: &T) -> Result<Bytes> {
    let text = serde_json::to_vec(value).map_err(|e| Error::internal(format!("expected JSON, found {e}")))?;
    Ok(text.into())
}

/// Reads a structured text.
///
/// # Errors
/// `Corrupt`, naming `what`, when it is not JSON of this shape.
pub fn decode_json<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T> {
    serde_json::from_slice(body).map_err(|e| Error::corrupt(format!("expected {what} in JSON, found {e}")))
}
