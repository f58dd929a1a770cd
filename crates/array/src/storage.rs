//! How arrays lie in their file: nothing that reading needs, but all that is needed to write them again as they are.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::DType;

/// How an array lies in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Storage {
    /// Type of the elements in the file, where they are described by another one (`_Unsigned`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
    /// Axes that may grow without end, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unlimited: Vec<usize>,
    /// What packs the chunks of an HDF5 data set, in the order in which it was applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// How an HDF5 or NetCDF file stores the texts of an array of texts: `fixed` (of one length; the axis of their bytes is none
    /// of the file's) or `characters` (along an axis that the file has). Absent: texts of any length, or no texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Of a Zarr array what its document says of its chunks and their codecs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zarr: Option<Value>,
}

impl Storage {
    /// True when nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A filter of HDF5.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Its name, as HDF5's registry of filters has it (`deflate`, `zstd`).
    pub name: String,
    /// What it was given.
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
