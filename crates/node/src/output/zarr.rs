//! A Zarr v3 array as a folder: `zarr.json` and one uncompressed file per chunk.

use std::fs;
use std::path::Path;

use array::{Error, Result};
use serde_json::json;

use super::{Draft, Written};

/// Largest chunk, bytes.
pub(crate) const MAX_CHUNK_BYTES: u64 = 4 << 20;

/// A Zarr array under way.
#[derive(Debug)]
pub(crate) struct ZarrFolder {
    draft: Draft,
    item_bytes: usize,
    /// Elements per axis and chunk.
    pub(crate) chunk: Vec<u64>,
}

impl ZarrFolder {
    /// Makes the folder. It must not exist: a folder of somebody's data is never replaced.
    ///
    /// # Errors
    /// `Invalid` when it exists; `Io`, `Denied`.
    pub(crate) fn create(target: &Path, what: &Written, chunk: Vec<u64>) -> Result<Self> {
        if target.exists() {
            return Err(Error::invalid(format!("expected a new folder, found `{}`", target.display())));
        }
        let draft = Draft::beside(target)?;
        let folder = Self { draft, item_bytes: what.dtype.size_bytes(), chunk };
        let text = serde_json::to_vec_pretty(&folder.metadata(what))
            .map_err(|e| Error::internal(format!("zarr.json could not be written: {e}")))?;
        folder.write("zarr.json", &text)?;
        Ok(folder)
    }

    fn metadata(&self, what: &Written) -> serde_json::Value {
        let is_float = what.dtype.element().is_float();
        let is_bool = what.dtype.element().name() == "bool";
        let fill = if is_bool {
            json!(false)
        } else if is_float {
            json!(0.0)
        } else {
            json!(0)
        };
        let codec = if self.item_bytes == 1 {
            json!({"name": "bytes"})
        } else {
            json!({"name": "bytes", "configuration": {"endian": "little"}})
        };
        let attributes = if what.units.is_empty() { json!({}) } else { json!({"units": what.units}) };
        json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": what.shape,
            "data_type": what.dtype.element().name(),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": fill,
            "codecs": [codec],
            "dimension_names": what.axes,
            "attributes": attributes,
        })
    }

    fn write(&self, key: &str, bytes: &[u8]) -> Result<()> {
        let path = self.draft.path.join(key);
        let write = || -> std::io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(&path, bytes)
        };
        write().map_err(|e| Error::from(e).context(format!("write `{}`", path.display())))
    }

    /// Writes the chunk that begins at `start` and has `shape` elements inside the array (less at the edges; the rest of
    /// the chunk is fill).
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn put(&self, start: &[u64], shape: &[u64], bytes: &[u8]) -> Result<()> {
        let places: Vec<String> = start.iter().zip(&self.chunk).map(|(s, c)| (s / c).to_string()).collect();
        let key = if places.is_empty() { "c".into() } else { format!("c/{}", places.join("/")) };
        if shape == self.chunk {
            return self.write(&key, bytes);
        }
        self.write(&key, &padded(bytes, shape, &self.chunk, self.item_bytes)?)
    }

    /// Puts the folder in place.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn finish(self) -> Result<()> {
        self.draft.keep()
    }
}

/// The box `shape` at the origin of a zeroed box `whole`.
fn padded(bytes: &[u8], shape: &[u64], whole: &[u64], item_bytes: usize) -> Result<Vec<u8>> {
    let (target, mut rest) = array::Target::new(whole, item_bytes)?;
    for (axis, &n) in shape.iter().enumerate() {
        let n = usize::try_from(n).map_err(|_| Error::internal("a chunk beyond memory"))?;
        rest = rest.split(axis, n).0;
    }
    rest.write_all(bytes)?;
    drop(rest);
    target.into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_padded() {
        let got = padded(&[1, 2, 3, 4], &[2, 2], &[2, 3], 1).unwrap();
        assert_eq!(got, [1, 2, 0, 3, 4, 0]);
    }
}
