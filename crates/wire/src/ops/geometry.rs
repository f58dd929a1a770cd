//! `geometry`: a file of surfaces, lines or points beside a data set, piece by piece.

use array::{Error, Result};
use bytes::Bytes;

use super::BlockPlace;
use crate::frames::codec::{ByteReader, ByteWriter};
use crate::limits::MAX_STR_BYTES;

/// Most bytes of a file in one answer.
pub const MAX_GEOMETRY_PIECE_BYTES: usize = 4 << 20;

/// Parameters of `geometry`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeometryParameters {
    /// Any array of the data set that the file lies beside.
    pub place: BlockPlace,
    /// Path of the file in the folder of the data set, with `/` between its parts.
    pub name: String,
    /// First byte of the piece.
    pub offset_bytes: u64,
}

impl GeometryParameters {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut w = ByteWriter::new();
        self.place.encode(&mut w);
        w.str(&self.name).u64(self.offset_bytes);
        w.finish()
    }

    /// Decodes parameters.
    ///
    /// # Errors
    /// `Corrupt` when truncated or not UTF-8.
    pub fn decode(parameters: Bytes) -> Result<Self> {
        let mut r = ByteReader::new(parameters);
        let place = BlockPlace::decode(&mut r)?;
        Ok(Self { place, name: r.str("name", MAX_STR_BYTES)?, offset_bytes: r.u64("offset")? })
    }
}

/// Body of the answer to `geometry`; the bytes of the piece are bulk data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeometryBody {
    /// Size of the file, bytes.
    pub size_bytes: u64,
    /// Number that differs when the file has changed.
    pub stamp: u64,
}

impl GeometryBody {
    /// Encodes the body.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut w = ByteWriter::new();
        w.u64(self.size_bytes).u64(self.stamp);
        w.finish()
    }

    /// Decodes a body.
    ///
    /// # Errors
    /// `Corrupt` when truncated or longer.
    pub fn decode(body: Bytes) -> Result<Self> {
        let mut r = ByteReader::new(body);
        let decoded = Self { size_bytes: r.u64("size")?, stamp: r.u64("stamp")? };
        if r.is_empty() {
            Ok(decoded)
        } else {
            Err(Error::corrupt("expected a size and a stamp, found more"))
        }
    }
}
