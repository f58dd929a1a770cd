//! Storage of arrays in their file: not needed for reading, but for writing an equal file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::DType;

/// Storage of an array in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Storage {
    /// Type of the elements in the file, where the description has another one (`_Unsigned`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
    /// Axes that may grow without end, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unlimited: Vec<usize>,
    /// Filters of an HDF5 data set's chunks, in the order in which they were applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// How an HDF5 or NetCDF file stores the texts of an array of texts: `fixed` (of one length; the file has no axis for their
    /// bytes) or `characters` (along an axis of the file). Absent: texts of any length, or no texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Chunk grid and codecs of a Zarr array, as in its metadata document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zarr: Option<Value>,
}

impl Storage {
    /// True when nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A filter of HDF5.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Name in HDF5's registry of filters (`deflate`, `zstd`).
    pub name: String,
    /// Parameters it was given (`cd_values`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<u32>,
}

/// A group of a file, which may hold no array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Path without slashes at its ends; empty for the root.
    pub path: String,
    /// Format of the data set that this group is, where several are described as one; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format: String,
    /// Names of its own dimensions that may grow without end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlimited: Vec<String>,
}
