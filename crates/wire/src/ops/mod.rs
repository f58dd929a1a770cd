//! Built-in operations: names, parameters and answers, with their encoding.
//!
//! The effect of an operation is defined where it is registered. The messages of the operation [`JOIN`] are
//! JSON that only its owner, the crate `session`, interprets.

mod data;
mod geometry;
mod piece;

pub use data::{
    BlockBody, BlockPlace, DescribeParameters, ListEntry, MAX_BINS, MAX_DESCRIPTION_BYTES,
    MAX_DESCRIPTION_VALUES, ReadBlockParameters, ReadBody, ReadParameters, StatsAnswer, StatsHistogram,
    StatsParameters, decode_dataset, encode_dataset,
};
pub use geometry::{GeometryBody, GeometryParameters, MAX_GEOMETRY_PIECE_BYTES};
pub use piece::{ReadPiece, RowOffsets, Rows};

use array::{Error, Result};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Lists the data sets.
pub const LIST: &str = "list";
/// Describes one data set.
pub const DESCRIBE: &str = "describe";
/// Reads the elements of a selection.
pub const READ: &str = "read";
/// Reads one block.
pub const READ_BLOCK: &str = "read_block";
/// Computes extremes, mean and histogram.
pub const STATS: &str = "stats";
/// Reads a piece of a file of geometry beside a data set.
pub const GEOMETRY: &str = "geometry";
/// Takes part in a session.
pub const JOIN: &str = "join";
/// Lists the servers that a viewing node reads from, with their state.
pub const SERVERS: &str = "servers";

/// Changes the meaning of the values of a viewing node's file.
pub const INTERPRET: &str = "interpret";
/// Tells what positions in a picture of a viewing node show, and the values there.
pub const PICK: &str = "pick";
/// Measures the data of a viewing node: values along a line or over time, statistics of a region.
pub const MEASURE: &str = "measure";
/// Draws a picture of any size of what a viewing node shows, as a PNG file.
pub const STILL: &str = "still";
/// Makes a film of what a viewing node shows.
pub const FILM: &str = "film";
/// Opens another data set beside that of a viewing node.
pub const OPEN: &str = "open";
/// Lists what a viewing node can open.
pub const PLACES: &str = "places";
/// Reports the server's knowledge of the network path to the client.
pub const PATH: &str = "path";
/// Sends one packet train to measure the path; see [`crate::frames::probe`].
pub const PROBE: &str = "probe";

/// Encodes a structured text: JSON in UTF-8.
///
/// # Errors
/// `Internal` when the value cannot be represented in JSON.
pub fn encode_json<T: Serialize>(value: &T) -> Result<Bytes> {
    let text = serde_json::to_vec(value).map_err(|e| Error::internal(format!("expected JSON, found {e}")))?;
    Ok(text.into())
}

/// Decodes a structured text.
///
/// # Errors
/// `Corrupt`, naming `what`, when it is not JSON of this shape.
pub fn decode_json<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T> {
    serde_json::from_slice(body).map_err(|e| Error::corrupt(format!("expected {what} in JSON, found {e}")))
}
