//! Descriptions of data sets: values that are immutable once made.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::values::float::{json, same_floats};
use crate::{
    Attributes, Axis, AxisKind, BlockInfo, BlockKey, DType, ElementType, Error, ErrorKind, Group, Level,
    Result, Scalar, Storage,
};

/// Identity of a data set: names, shapes, types, each file's size and modification time or ETag.
///
/// Thirty-two hexadecimal digits in text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct DatasetId(pub u128);

impl DatasetId {
    /// The identity of these parts, in this order (xxh3, 128 bits).
    #[must_use]
    pub fn of<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> Self {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        for part in parts {
            let part = part.as_ref();
            // The length first, so that ("ab", "c") differs from ("a", "bc").
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(hasher.digest128())
    }
}

impl fmt::Display for DatasetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for DatasetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<DatasetId> for String {
    fn from(id: DatasetId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for DatasetId {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        u128::from_str_radix(&text, 16)
            .ok()
            .filter(|_| text.len() == 32)
            .map(Self)
            .ok_or_else(|| Error::corrupt("expected a data set identity of 32 hexadecimal digits"))
    }
}

/// Counts the states of a data set that grows or changes; part of every block key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Generation(pub u32);

/// Decoding of stored values: `stored * scale + offset`; missing values become NaN. See [`decode`](crate::decode).
///
/// Two kinds of missing values are distinguished. A value that the file *names* as missing is missing everywhere. A value
/// that only the netCDF library masks (its default fill values, and values outside the valid range) stays a value when
/// data are read, as in xarray, but is left out of pictures, levels and statistics.
///
/// NaN equals NaN here: see [`Scalar`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Decoding {
    /// Factor; 1 where there is none.
    #[serde(with = "json")]
    pub scale: f64,
    /// Added after scaling; 0 where there is none.
    #[serde(with = "json")]
    pub offset: f64,
    /// Values that mean "no value here", of any type; the file's fill value comes first.
    pub missing: Vec<Scalar>,
    /// Inclusive bounds; stored values outside are left out of pictures.
    pub valid: Option<(Scalar, Scalar)>,
    /// The library's default fill values where the file names none; left out of pictures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<Scalar>,
    /// Whether integers are to be read as unsigned (or signed) in spite of their stored type (`_Unsigned`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsigned: Option<bool>,
    /// Reason why stored values cannot be decoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// Element type of the decoded values, as xarray chooses it. Integers that may be missing become floats, which have NaN.
    pub output: DType,
}

impl PartialEq for Decoding {
    fn eq(&self, other: &Self) -> bool {
        let Self { scale, offset, missing, valid, unset, unsigned, obstacle, output } = self;
        same_floats(&[*scale, *offset], &[other.scale, other.offset])
            && (missing, valid, unset) == (&other.missing, &other.valid, &other.unset)
            && (unsigned, obstacle, output) == (&other.unsigned, &other.obstacle, &other.output)
    }
}

impl Eq for Decoding {}

impl Decoding {
    /// Returns the decoding that leaves stored values unchanged.
    #[must_use]
    pub fn identity(dtype: DType) -> Self {
        Self {
            scale: 1.0,
            offset: 0.0,
            missing: Vec::new(),
            valid: None,
            unset: Vec::new(),
            unsigned: None,
            obstacle: None,
            output: DType::native(dtype.element()),
        }
    }

    /// True when decoding changes nothing but the byte order, and can be done.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.keeps_values() && self.unsigned.is_none() && self.obstacle.is_none()
    }

    /// Whether every value, read by [`Decoding::meant`], is already decoded.
    #[expect(clippy::float_cmp, reason = "exactly 1 and 0 mean absent")]
    pub(crate) fn keeps_values(&self) -> bool {
        self.scale == 1.0 && self.offset == 0.0 && self.missing.is_empty()
    }

    /// Type as which stored elements of `dtype` are read: one of the same size, with the sign that [`Decoding::unsigned`]
    /// requires.
    #[must_use]
    pub fn meant(&self, dtype: DType) -> DType {
        match self.unsigned {
            Some(true) => DType::new(dtype.element().unsigned(), dtype.order()),
            Some(false) => DType::new(dtype.element().signed(), dtype.order()),
            None => dtype,
        }
    }

    /// Stored value that marks a missing element of `dtype`; `None` where no missing value fits the type.
    #[must_use]
    pub fn fill_value(&self, dtype: DType) -> Option<Scalar> {
        let element = self.meant(dtype).element();
        let fill = self.missing.iter().find_map(|missing| missing.exactly(element))?;
        Some(fill.wrapped(dtype.element()).unwrap_or(fill))
    }

    /// Whether a value (read by [`Decoding::meant`]) is left out of pictures. A stored NaN does not count as missing here.
    #[must_use]
    #[inline]
    pub fn is_missing(&self, stored: Scalar) -> bool {
        self.missing.iter().chain(&self.unset).any(|m| same(*m, stored))
            || self.valid.is_some_and(|(low, high)| stored.is_less_than(low) || high.is_less_than(stored))
    }

    /// True when some values may be missing by [`Decoding::is_missing`].
    #[must_use]
    pub fn hides_some(&self) -> bool {
        !(self.missing.is_empty() && self.unset.is_empty() && self.valid.is_none())
    }

    /// Decodes a stored value (read by [`Decoding::meant`]); NaN if it is left out of pictures.
    #[must_use]
    pub fn decode(&self, stored: Scalar) -> f64 {
        if self.is_missing(stored) { f64::NAN } else { stored.as_f64() * self.scale + self.offset }
    }
}

/// Whether a stored value is this fill value: the same number, so that -0 is 0, or both NaN.
#[expect(clippy::float_cmp, reason = "a fill value is a bit pattern written by the same program")]
#[inline]
fn same(a: Scalar, b: Scalar) -> bool {
    match (a.integer(), b.integer()) {
        // As integers: beyond 2^53 doubles would take neighbors for it. JSON may have changed signed into unsigned.
        (Some(x), Some(y)) => x == y,
        _ => a.as_f64() == b.as_f64() || (a.as_f64().is_nan() && b.as_f64().is_nan()),
    }
}

/// Kind of values in an array; decides how coarser levels are made and how the array is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Meaning {
    /// A sampled quantity: levels are means, drawing interpolates.
    #[default]
    Intensity,
    /// Categories: levels take the most frequent, nothing is interpolated.
    Labels,
    /// Text: the last axis is the bytes of one text, UTF-8, padded by zeros at its end. No coarser levels, never drawn.
    Text,
    /// Colors of an image as it is drawn: integers of 32 bits, from the highest byte down strength, red, green and blue, sRGB.
    /// Nothing is interpolated. Sources for drawing describe arrays so; files and servers do not.
    Colors,
}

impl Meaning {
    /// Whether values between voxels mean something. It is false for labels, texts and packed colors.
    #[must_use]
    pub const fn is_continuous(self) -> bool {
        matches!(self, Self::Intensity)
    }
}

/// One array of a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrayInfo {
    /// Name, or path in the file (`grid/rho`).
    pub name: String,
    /// Type of the stored elements.
    pub dtype: DType,
    /// Axes in storage order, last fastest: `[t, z, y, x]` where the array has them.
    pub axes: Vec<Axis>,
    /// Units of the decoded values; empty if unknown.
    pub units: String,
    /// Further attributes of the array in the file.
    pub attributes: Attributes,
    /// Decoding of stored values.
    pub decoding: Decoding,
    /// Intensities or labels.
    #[serde(default)]
    pub meaning: Meaning,
    /// Levels of resolution. Entry 0 is the full one; then made or stored coarser ones, finest first; sampled ones come after all
    /// others, also beside a mean of the same factor.
    pub levels: Vec<Level>,
    /// Units of world space (`mm`, `m`); empty if unknown.
    pub world_units: String,
    /// Things a person should know (``axis `plev` is uneven: pictures show it on an even grid``).
    #[serde(default)]
    pub notes: Vec<String>,
    /// Storage of the array in its file.
    #[serde(default, skip_serializing_if = "Storage::is_empty")]
    pub storage: Storage,
}

impl ArrayInfo {
    /// Elements per axis at full resolution. A scalar has no axes.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        self.levels.first().map_or(&[], |l| &l.shape)
    }

    /// Shape of an array of texts in texts, without the axis of their bytes; `None` for other arrays.
    #[must_use]
    pub fn text_shape(&self) -> Option<&[u64]> {
        let (_, texts) = self.shape().split_last().filter(|_| self.meaning == Meaning::Text)?;
        Some(texts)
    }

    /// Returns the level with this number.
    ///
    /// # Errors
    /// `Invalid` if there are fewer levels.
    pub fn level(&self, level: u8) -> Result<&Level> {
        self.levels.get(usize::from(level)).ok_or_else(|| {
            Error::invalid(format!(
                "expected a level below {} of array `{}`, found {level}",
                self.levels.len(),
                self.name
            ))
        })
    }

    /// Bytes of the whole array at full resolution, saturating.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.shape().iter().fold(self.dtype.size_bytes() as u64, |n, &v| n.saturating_mul(v))
    }

    /// The axes of space, as positions in `axes`, in the order z, y, x; absent ones are `None`.
    #[must_use]
    pub fn spatial_axes(&self) -> [Option<usize>; 3] {
        use AxisKind::{X, Y, Z};
        [Z, Y, X].map(|kind| self.axes.iter().position(|a| a.kind == kind))
    }

    /// The time axis, as position in `axes`.
    #[must_use]
    pub fn time_axis(&self) -> Option<usize> {
        self.axes.iter().position(|a| a.kind == AxisKind::Time)
    }

    /// Checks the invariants that consumers rely on. Sources call it once when describing, and so does the receiver of a description
    /// from another process.
    ///
    /// # Errors
    /// `Corrupt`, naming the array and the mistake.
    pub fn check(&self) -> Result<()> {
        let bad = |what: String| Err(Error::corrupt(format!("array `{}`: {what}", self.name)));
        if self.levels.is_empty() || self.levels.len() > MAX_LEVELS {
            return bad(format!("expected 1 to {MAX_LEVELS} levels, found {}", self.levels.len()));
        }
        for level in &self.levels {
            let n = self.axes.len();
            if n > crate::MAX_AXES
                || level.shape.len() != n
                || level.block.len() != n
                || level.factor.len() != n
            {
                return bad(format!("expected {n} axes on every level, found shape {:?}", level.shape));
            }
            let chunk = level.chunk.as_ref();
            if level.block.contains(&0) || chunk.is_some_and(|c| c.len() != n || c.contains(&0)) {
                return bad("expected blocks and chunks of at least one element on every axis".into());
            }
            if self.meaning == Meaning::Text && (n == 0 || self.dtype.element() != ElementType::U8) {
                return bad("expected texts as bytes along the last axis".into());
            }
            for (axis, (own, finest)) in self.axes.iter().zip(level.shape.iter().zip(self.shape())) {
                if axis.kind == AxisKind::Channel && own != finest {
                    return bad(format!("expected {finest} channels on every level, found {own}"));
                }
            }
            let bytes =
                |s: &[u64]| s.iter().try_fold(self.dtype.size_bytes() as u64, |a, &b| a.checked_mul(b));
            if bytes(&level.shape).is_none_or(|n| n > i64::MAX as u64) {
                return bad(format!("shape {:?} exceeds 2^63 bytes", level.shape));
            }
            if bytes(&level.block).is_none_or(|n| n > crate::MAX_CHUNK_BLOCK_BYTES) {
                return bad(format!(
                    "block {:?} exceeds {} bytes",
                    level.block,
                    crate::MAX_CHUNK_BLOCK_BYTES
                ));
            }
        }
        Ok(())
    }
}

/// Most strings of an array of variable-length strings: all are read when the array is opened.
pub const MAX_TEXT_ELEMENTS: u64 = 1 << 20;
/// Most bytes of an array of variable-length strings, each padded to the length of the longest.
pub const MAX_TEXT_BYTES: u64 = 16 << 20;

/// Most levels of an array.
pub const MAX_LEVELS: usize = 64;

/// Object of a file that cannot be served as an array, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Name of the object.
    pub name: String,
    /// Kind of the object (`string`, `compound`).
    pub what: String,
    /// A small value in text, where it is small and readable.
    #[serde(default)]
    pub value: Option<String>,
}

/// Description of a data set: everything that a source holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dataset {
    /// Identity; a mismatch is the error *stale*.
    pub id: DatasetId,
    /// State of a data set that grows.
    pub generation: Generation,
    /// Name for people: the file's name.
    pub name: String,
    /// Format for people: `NRRD`, `HDF5`, `synthetic`.
    pub format: String,
    /// Arrays, in the file's order.
    pub arrays: Vec<ArrayInfo>,
    /// Attributes of the file as a whole.
    #[serde(default)]
    pub attributes: Attributes,
    /// Unsupported things; they never spoil the file.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// Problems found on opening (`truncated: last 3 slices missing`).
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Groups of the file, the root first, where its format has groups or dimensions that grow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
}

/// Most arrays that an error message lists.
const MAX_NAMED: usize = 20;

impl Dataset {
    /// Returns the array with this name and its number. The only array of a data set also has the empty name.
    ///
    /// # Errors
    /// `NotFound`, listing the arrays; `Unsupported`, with the reason, for an object that is left out.
    pub fn find(&self, name: &str) -> Result<(u32, &ArrayInfo)> {
        let trimmed = name.trim_matches('/');
        let found = match (trimmed, self.arrays.as_slice()) {
            ("", [only]) => Some((0, only)),
            _ => self
                .arrays
                .iter()
                .enumerate()
                .find(|(_, a)| a.name == name || a.name.trim_matches('/') == trimmed),
        };
        let (index, array) = found.ok_or_else(|| self.no_array(name))?;
        Ok((u32::try_from(index).unwrap_or(u32::MAX), array))
    }

    /// Returns the error for a name that no array has.
    fn no_array(&self, name: &str) -> Error {
        let trimmed = name.trim_matches('/');
        // If no array can be served, the empty name stands for the first object.
        let is_meant = |left: &&LeftOut| {
            left.name.trim_matches('/') == trimmed || (trimmed.is_empty() && self.arrays.is_empty())
        };
        if let Some(LeftOut { name, what, .. }) = self.left_out.iter().find(is_meant) {
            return Error::unsupported(format!("`{name}` is left out: {what}"));
        }
        let names: Vec<&str> = self.arrays.iter().take(MAX_NAMED).map(|a| a.name.as_str()).collect();
        let more = match self.arrays.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let almost = |array: &&ArrayInfo| array.name.trim_matches('/').eq_ignore_ascii_case(trimmed);
        let meant = self.arrays.iter().find(almost).map(|array| format!("; `{}` is there", array.name));
        let meant = meant.unwrap_or_default();
        Error::not_found(match trimmed {
            "" => format!("expected the name of one of the arrays {names:?}{more}, found none"),
            _ => format!("expected one of the arrays {names:?}{more}, found `{name}`{meant}"),
        })
    }

    /// Returns the array with this number.
    ///
    /// # Errors
    /// `NotFound` if there are fewer arrays.
    pub fn array(&self, number: u32) -> Result<&ArrayInfo> {
        self.arrays.get(number as usize).ok_or_else(|| {
            Error::not_found(format!("expected an array below {}, found {number}", self.arrays.len()))
        })
    }

    /// Returns the elements that a block covers and their size in bytes. Every source checks the keys it
    /// receives with this function.
    ///
    /// # Errors
    /// `Stale` for a key of another data set or generation, `NotFound` or `Invalid` when there is no such array, level
    /// or block, `TooLarge` for one of 2^64 bytes or more.
    pub fn block(&self, key: BlockKey) -> Result<BlockInfo<'_>> {
        if (key.dataset, key.generation) != (self.id, self.generation) {
            let expected =
                format!("expected a block of data set {} generation {}", self.id, self.generation.0);
            let found = format!("found {} generation {}", key.dataset, key.generation.0);
            return Err(Error::new(ErrorKind::Stale, format!("{expected}, {found}; describe it again")));
        }
        let array = self.array(key.array)?;
        let level = array.level(key.level)?;
        let selection = level.block_selection(key.index)?;
        let size_bytes = selection
            .len()
            .and_then(|n| n.checked_mul(array.dtype.size_bytes() as u64))
            .ok_or_else(|| Error::too_large("expected a block of less than 2^64 bytes"))?;
        Ok(BlockInfo { array, level, selection, size_bytes })
    }

    /// Checks every array; see [`ArrayInfo::check`].
    ///
    /// # Errors
    /// The first array's error.
    pub fn check(&self) -> Result<()> {
        self.arrays.iter().try_for_each(ArrayInfo::check)
    }
}

impl ElementType {
    /// The type numpy gives to decoded values of this one with double-precision scale and offset.
    #[must_use]
    pub fn decoded(self) -> Self {
        match self {
            Self::F16 | Self::F32 | Self::F64 => self,
            _ => Self::F64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_what_is_left_out_is_told_why() {
        let left = LeftOut { name: "/grid/cplx".into(), what: "complex values".into(), value: None };
        let dataset = Dataset {
            id: DatasetId(1),
            generation: Generation(0),
            name: "run".into(),
            format: "test".into(),
            arrays: Vec::new(),
            attributes: Attributes::new(),
            left_out: vec![left],
            warnings: Vec::new(),
            groups: Vec::new(),
        };
        for name in ["grid/cplx", "/grid/cplx", ""] {
            let error = dataset.find(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}");
            assert_eq!(error.message(), "`/grid/cplx` is left out: complex values", "{name}");
        }
        let error = dataset.find("cplx").unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::NotFound, "expected one of the arrays [], found `cplx`")
        );
    }
}
