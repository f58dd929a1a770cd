//! Operations of a data server: `list`, `describe`, `read`, `read_block`, `stats`.

use array::{
    AxisRange, BlockKey, Dataset, DatasetId, Error, Generation, MAX_AXES, PerAxis, Result, Scalar, Selection,
    ValueRange,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{decode_json, encode_json};
use crate::frames::codec::{ByteReader, ByteWriter};
use crate::limits::MAX_STR_BYTES;

/// Largest encoded description, bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 32 << 20;
/// Most values in a description: in memory one may take twenty times its text.
pub const MAX_DESCRIPTION_VALUES: usize = 2 << 20;
/// Most bins of a histogram: its JSON stays far below the limit of a body.
pub const MAX_BINS: u16 = 4096;

/// Entry of the answer to `list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListEntry {
    /// Name of the data set, as in `describe`.
    pub name: String,
    /// Displayed format.
    pub format: String,
    /// Number of arrays.
    pub arrays: usize,
}

impl ListEntry {
    /// Encodes the whole answer.
    ///
    /// # Errors
    /// None in practice.
    pub fn encode_all(entries: &[Self]) -> Result<Bytes> {
        encode_json(&entries)
    }

    /// Decodes the whole answer.
    ///
    /// # Errors
    /// `Corrupt` for an invalid answer.
    pub fn decode_all(body: &[u8]) -> Result<Vec<Self>> {
        decode_json(body, "a list of data sets")
    }
}

/// Parameters of `describe`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeParameters {
    /// Name of the data set; empty for the only one.
    pub name: String,
}

impl DescribeParameters {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut w = ByteWriter::new();
        w.str(&self.name);
        w.finish()
    }

    /// Decodes parameters.
    ///
    /// # Errors
    /// `Corrupt` when truncated or not UTF-8.
    pub fn decode(parameters: Bytes) -> Result<Self> {
        Ok(Self { name: ByteReader::new(parameters).str("name", MAX_STR_BYTES)? })
    }
}

/// Encodes the answer to `describe`.
///
/// # Errors
/// `Internal` when it cannot be represented in JSON.
pub fn encode_dataset(dataset: &Dataset) -> Result<Bytes> {
    encode_json(dataset)
}

/// Decodes the answer to `describe` and checks what every consumer relies on.
///
/// # Errors
/// `TooLarge` beyond [`MAX_DESCRIPTION_BYTES`] or [`MAX_DESCRIPTION_VALUES`]; `Corrupt` when it is not a
/// description, or contradicts itself.
pub fn decode_dataset(body: &[u8]) -> Result<Dataset> {
    let too_large = |most, what, found| {
        Error::too_large(format!("expected a description of at most {most} {what}, found {found}"))
    };
    if body.len() > MAX_DESCRIPTION_BYTES {
        return Err(too_large(MAX_DESCRIPTION_BYTES, "bytes", body.len()));
    }
    // A comma precedes each value but the first; commas within texts count too.
    let values = body.iter().filter(|&&byte| byte == b',').count();
    if values > MAX_DESCRIPTION_VALUES {
        return Err(too_large(MAX_DESCRIPTION_VALUES, "values", values));
    }
    let dataset: Dataset = decode_json(body, "a description")?;
    dataset.check()?;
    Ok(dataset)
}

/// Data set, generation, array and level that a request applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockPlace {
    /// Identifier of the data set.
    pub dataset: DatasetId,
    /// Generation of the data set.
    pub generation: Generation,
    /// Number of the array in the description.
    pub array: u32,
    /// Number of the level; 0 is full resolution.
    pub level: u8,
}

impl BlockPlace {
    pub(super) fn encode(&self, w: &mut ByteWriter) {
        w.u128(self.dataset.0).u32(self.generation.0).u32(self.array).u8(self.level);
    }

    pub(super) fn decode(r: &mut ByteReader) -> Result<Self> {
        Ok(Self {
            dataset: DatasetId(r.u128("data set")?),
            generation: Generation(r.u32("generation")?),
            array: r.u32("array")?,
            level: r.u8("level")?,
        })
    }
}

fn encode_selection(selection: &Selection, w: &mut ByteWriter) {
    // A selection has at most 16 axes by construction.
    w.u8(u8::try_from(selection.ranges().len()).unwrap_or(u8::MAX));
    for range in selection.ranges() {
        w.u64(range.start).u64(range.count).u64(range.step);
    }
}

fn decode_selection(r: &mut ByteReader) -> Result<Selection> {
    let axes = usize::from(r.u8("axes")?);
    if axes > MAX_AXES {
        return Err(Error::corrupt(format!("expected at most {MAX_AXES} axes, found {axes}")));
    }
    let range = |_| -> Result<AxisRange> {
        Ok(AxisRange { start: r.u64("start")?, count: r.u64("count")?, step: r.u64("step")? })
    };
    Selection::new((0..axes).map(range).collect::<Result<PerAxis<AxisRange>>>()?)
}

/// Parameters of `read`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadParameters {
    /// Data set, array and level to read from.
    pub place: BlockPlace,
    /// Selected elements.
    pub selection: Selection,
}

impl ReadParameters {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut w = ByteWriter::new();
        self.place.encode(&mut w);
        encode_selection(&self.selection, &mut w);
        w.finish()
    }

    /// Decodes parameters. The selection is valid in itself, but not yet checked against an array.
    ///
    /// # Errors
    /// `Corrupt` when truncated, `Invalid` for an invalid selection.
    pub fn decode(parameters: Bytes) -> Result<Self> {
        let mut r = ByteReader::new(parameters);
        Ok(Self { place: BlockPlace::decode(&mut r)?, selection: decode_selection(&mut r)? })
    }
}

/// Body of an item of `read`; its bulk is a run of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadBody {
    /// Offset of the bulk in the C-order result, bytes.
    pub offset_bytes: u64,
}

impl ReadBody {
    /// Encodes the body.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut w = ByteWriter::new();
        w.u64(self.offset_bytes);
        w.finish()
    }

    /// Decodes a body.
    ///
    /// # Errors
    /// `Corrupt` when truncated.
    pub fn decode(body: Bytes) -> Result<Self> {
        Ok(Self { offset_bytes: ByteReader::new(body).u64("offset")? })
    }
}

/// Parameters of `read_block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadBlockParameters {
    /// Requested block.
    pub key: BlockKey,
}

impl ReadBlockParameters {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let BlockKey { dataset, generation, array, level, index } = self.key;
        let mut w = ByteWriter::new();
        BlockPlace { dataset, generation, array, level }.encode(&mut w);
        w.u64(index);
        w.finish()
    }

    /// Decodes parameters.
    ///
    /// # Errors
    /// `Corrupt` when truncated.
    pub fn decode(parameters: Bytes) -> Result<Self> {
        let mut r = ByteReader::new(parameters);
        let BlockPlace { dataset, generation, array, level } = BlockPlace::decode(&mut r)?;
        Ok(Self { key: BlockKey { dataset, generation, array, level, index: r.u64("index")? } })
    }
}

/// Body of the item of `read_block`; with data, its bulk is the block as stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlockBody {
    /// The data set has no data here at this level.
    NotCovered,
    /// Data, and the range of the stored values that are present, if any are.
    Data {
        /// Range of the present values.
        range: Option<ValueRange>,
    },
}

impl BlockBody {
    /// Encodes the body.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut w = ByteWriter::new();
        match self {
            Self::NotCovered => {
                w.u8(0);
            }
            Self::Data { range: None } => {
                w.u8(1);
            }
            Self::Data { range: Some(range) } => {
                w.u8(2);
                encode_scalar(range.min, &mut w);
                encode_scalar(range.max, &mut w);
            }
        }
        w.finish()
    }

    /// Decodes a body.
    ///
    /// # Errors
    /// `Corrupt` when truncated or of an unknown kind.
    pub fn decode(body: Bytes) -> Result<Self> {
        Self::read(&mut ByteReader::new(body))
    }

    pub(super) fn read(r: &mut ByteReader) -> Result<Self> {
        match r.u8("content")? {
            0 => Ok(Self::NotCovered),
            1 => Ok(Self::Data { range: None }),
            2 => {
                let range = ValueRange { min: decode_scalar(r)?, max: decode_scalar(r)? };
                Ok(Self::Data { range: Some(range) })
            }
            other => Err(Error::corrupt(format!("expected a content of 0, 1 or 2, found {other}"))),
        }
    }
}

fn encode_scalar(value: Scalar, w: &mut ByteWriter) {
    match value {
        Scalar::Unsigned(v) => w.u8(0).u64(v),
        Scalar::Signed(v) => w.u8(1).i64(v),
        Scalar::Float(v) => w.u8(2).f64(v),
    };
}

fn decode_scalar(r: &mut ByteReader) -> Result<Scalar> {
    match r.u8("scalar tag")? {
        0 => r.u64("scalar").map(Scalar::Unsigned),
        1 => r.i64("scalar").map(Scalar::Signed),
        2 => r.f64("scalar").map(Scalar::Float),
        other => Err(Error::corrupt(format!("expected a scalar tag of 0, 1 or 2, found {other}"))),
    }
}

/// Parameters of `stats`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsParameters {
    /// Data set, array and level to compute statistics of.
    pub place: BlockPlace,
    /// Bins of the histogram, at most [`MAX_BINS`]; 0 for none.
    pub bins: u16,
    /// Selected elements; `None` for all.
    pub selection: Option<Selection>,
}

impl StatsParameters {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut w = ByteWriter::new();
        self.place.encode(&mut w);
        w.u16(self.bins);
        match &self.selection {
            Some(selection) => encode_selection(selection, &mut w),
            None => {
                w.u8(0);
            }
        }
        w.finish()
    }

    /// Decodes parameters.
    ///
    /// # Errors
    /// `Corrupt` when truncated, `Invalid` for an invalid selection or too many bins.
    pub fn decode(parameters: Bytes) -> Result<Self> {
        let mut r = ByteReader::new(parameters);
        let place = BlockPlace::decode(&mut r)?;
        let bins = r.u16("bins")?;
        if bins > MAX_BINS {
            return Err(Error::invalid(format!("expected at most {MAX_BINS} bins, found {bins}")));
        }
        let selection = decode_selection(&mut r)?;
        Ok(Self { place, bins, selection: Some(selection).filter(|s| !s.ranges().is_empty()) })
    }
}

/// Answer to `stats`, over decoded values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatsAnswer {
    /// Elements with a value.
    pub count: u64,
    /// Elements that are missing or NaN.
    pub missing: u64,
    /// Smallest value; `None` when there is none.
    pub min: Option<Scalar>,
    /// Largest value; `None` when there is none.
    pub max: Option<Scalar>,
    /// Mean of the values; `None` when there is none.
    pub mean: Option<Scalar>,
    /// Distribution of the finite values.
    pub histogram: StatsHistogram,
}

/// Counts in bins of equal width; the last bin includes its upper edge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatsHistogram {
    /// Lower edge of the first bin.
    pub low: f64,
    /// Upper edge of the last bin.
    pub high: f64,
    /// Count of each bin.
    pub counts: Vec<u64>,
}

impl StatsAnswer {
    /// Encodes the body.
    ///
    /// # Errors
    /// `Internal` when it cannot be represented in JSON.
    pub fn encode(&self) -> Result<Bytes> {
        encode_json(self)
    }

    /// Decodes a body.
    ///
    /// # Errors
    /// `Corrupt` for an invalid body.
    pub fn decode(body: &[u8]) -> Result<Self> {
        decode_json(body, "statistics")
    }
}
