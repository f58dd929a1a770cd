//! A Zarr v3 array as a folder: `zarr.json` and one uncompressed file per chunk.

use std::fs;
use std::path::Path;

use array::{
    Attribute, Attributes, ByteOrder, DType, Error, Result, Scalar, Selection, Target, c_strides, cut_by_grid,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{ArrayHeader, AtomicOutput};

/// Maximum size of a chunk, in bytes.
pub(crate) const MAX_CHUNK_BYTES: u64 = 4 << 20;

/// A Zarr array that is being written.
#[derive(Debug)]
pub(crate) struct ZarrFolder {
    draft: AtomicOutput,
    item_bytes: usize,
    /// Elements per axis and chunk.
    pub(crate) chunk: Vec<u64>,
}

impl ZarrFolder {
    /// Creates the folder, which must not exist: existing folders are never replaced.
    ///
    /// # Errors
    /// `Invalid` if it exists; `Io`, `Denied`, `TooLarge` if there is not enough space.
    pub(crate) fn create(target: &Path, what: &ArrayHeader, chunk: Vec<u64>) -> Result<Self> {
        if target.symlink_metadata().is_ok() {
            return Err(Error::invalid(format!("expected a new folder, found `{}`", target.display())));
        }
        let draft = AtomicOutput::beside(target)?;
        let folder = Self { draft, item_bytes: what.dtype.size_bytes(), chunk };
        folder.draft.expect_space(folder.size_bytes(&what.shape))?;
        let text = serde_json::to_vec_pretty(&folder.metadata(what))
            .map_err(|e| Error::internal(format!("zarr.json could not be written: {e}")))?;
        folder.write("zarr.json", &text)?;
        Ok(folder)
    }

    fn metadata(&self, what: &ArrayHeader) -> serde_json::Value {
        let mut document = array_document(what.dtype, &what.shape, &self.chunk, &what.axes, None);
        document["attributes"] = xarray_attributes(&what.attributes);
        document
    }

    /// Returns the size of all chunks together, in bytes; chunks at the edges are stored whole.
    fn size_bytes(&self, shape: &[u64]) -> u64 {
        let along = |(&n, &c): (&u64, &u64)| n.div_ceil(c).saturating_mul(c);
        shape.iter().zip(&self.chunk).map(along).fold(self.item_bytes as u64, u64::saturating_mul)
    }

    fn write(&self, key: &str, bytes: &[u8]) -> Result<()> {
        let path = self.draft.path.join(key);
        let write = || -> std::io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(&path, bytes)
        };
        write().map_err(|e| self.draft.failed(e))
    }

    /// Writes the box of `shape` elements that begins at `start`: whole chunks, except at the edges of the array.
    /// Elements beyond an edge are zero.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn put(&self, start: &[u64], shape: &[u64], bytes: &[u8]) -> Result<()> {
        let per_axis = cut_by_grid(&Selection::of_box(start, shape), &self.chunk);
        let sizes: Vec<usize> = shape.iter().map(|&n| usize::try_from(n).unwrap_or(usize::MAX)).collect();
        let strides = c_strides(&sizes, self.item_bytes);
        for number in 0..per_axis.iter().map(Vec::len).product() {
            let mut rest = number;
            let mut key = String::new();
            let (mut first, mut counts) = (0, vec![0; shape.len()]);
            for axis in (0..shape.len()).rev() {
                let (position, at, count) = per_axis[axis][rest % per_axis[axis].len()];
                rest /= per_axis[axis].len();
                key.insert_str(0, &format!("/{position}"));
                // The strides of a box in memory fit in `usize`.
                first += usize::try_from(at).unwrap_or(usize::MAX) * strides[axis];
                counts[axis] = count;
            }
            let chunk = whole_chunk(&self.chunk, &counts, self.item_bytes, &bytes[first..], &strides)?;
            self.write(&format!("c{key}"), &chunk)?;
        }
        Ok(())
    }

    /// Moves the folder to its final name.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn finish(self) -> Result<()> {
        self.draft.keep()
    }
}

/// Returns a number as Zarr writes it: integers of any size as integers, and numbers that JSON lacks as strings.
fn number(value: Scalar) -> serde_json::Value {
    match value {
        Scalar::Unsigned(value) => value.into(),
        Scalar::Signed(value) => value.into(),
        Scalar::Float(_) => json!(value),
    }
}

/// Returns an array's `zarr.json`, without compression and attributes. `fill` is the value of missing chunks; zero if
/// `None`.
#[must_use]
pub fn array_document(
    dtype: DType,
    shape: &[u64],
    chunk: &[u64],
    dimension_names: &[String],
    fill: Option<Scalar>,
) -> serde_json::Value {
    let element = dtype.element();
    let fill = match fill {
        _ if element.name() == "bool" => json!(false),
        Some(value) => number(value),
        None if element.is_float() => json!(0.0),
        None => json!(0),
    };
    let endian = if dtype.order() == ByteOrder::Big { "big" } else { "little" };
    let codec = match dtype.size_bytes() {
        1 => json!({"name": "bytes"}),
        _ => json!({"name": "bytes", "configuration": {"endian": endian}}),
    };
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": element.name(),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": [codec],
        "dimension_names": dimension_names,
        "attributes": {},
    })
}

/// Returns a whole chunk of zeros with the box `counts`, whose elements are taken from `bytes` by strides (bytes per
/// axis), at its origin.
///
/// # Errors
/// `TooLarge`, `Internal` for a chunk that exceeds memory; `Invalid` if elements are missing.
pub fn whole_chunk(
    chunk: &[u64],
    counts: &[u64],
    item_bytes: usize,
    bytes: &[u8],
    strides: &[usize],
) -> Result<Vec<u8>> {
    let (target, mut rest) = Target::new(chunk, item_bytes)?;
    for (axis, &n) in counts.iter().enumerate() {
        let n = usize::try_from(n).map_err(|_| Error::internal("a chunk that exceeds memory"))?;
        rest = rest.split(axis, n).0;
    }
    rest.write_strided(bytes, strides)?;
    drop(rest);
    target.into_vec()
}

/// Returns attributes as JSON, with the fill value in the form that xarray writes.
#[must_use]
pub fn xarray_attributes(attributes: &Attributes) -> serde_json::Value {
    let mut value = attributes_json(attributes);
    if let Some(Attribute::Number(fill, _)) = attributes.get("_FillValue") {
        value["_FillValue"] = fill_value(*fill);
    }
    value
}

/// Returns a fill value as xarray writes it for Zarr v3: floats as base64 of their eight bytes.
fn fill_value(value: Scalar) -> serde_json::Value {
    match value {
        Scalar::Unsigned(_) | Scalar::Signed(_) => number(value),
        Scalar::Float(v) => STANDARD.encode(v.to_le_bytes()).into(),
    }
}

/// Returns attributes as JSON.
#[must_use]
pub fn attributes_json(attributes: &Attributes) -> serde_json::Value {
    attributes.iter().map(|(name, attribute)| (name.clone(), attribute.to_json())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_values_of_large_integers_are_exact_numbers() {
        for (dtype, fill, written) in [
            ("<i8", Scalar::Signed(-9_223_372_036_854_775_806), "-9223372036854775806"),
            ("<u8", Scalar::Unsigned(u64::MAX), "18446744073709551615"),
            ("<f8", Scalar::Float(f64::NAN), "\"NaN\""),
        ] {
            let document = array_document(dtype.parse().unwrap(), &[1], &[1], &["x".into()], Some(fill));
            assert_eq!(document["fill_value"].to_string(), written);
        }
    }

    #[test]
    fn a_box_becomes_chunks_with_padded_edges() {
        let folder = tempfile::tempdir().unwrap();
        let what = ArrayHeader {
            name: "u".into(),
            axes: vec!["y".into(), "x".into()],
            shape: vec![3, 3],
            dtype: "|u1".parse().unwrap(),
            attributes: Attributes::new(),
        };
        let out = folder.path().join("u.zarr");
        let zarr = ZarrFolder::create(&out, &what, vec![2, 2]).unwrap();
        zarr.put(&[0, 0], &[2, 3], &[1, 2, 3, 4, 5, 6]).unwrap();
        zarr.put(&[2, 0], &[1, 3], &[7, 8, 9]).unwrap();
        zarr.finish().unwrap();
        for (chunk, expect) in
            [("0/0", [1, 2, 4, 5]), ("0/1", [3, 0, 6, 0]), ("1/0", [7, 8, 0, 0]), ("1/1", [9, 0, 0, 0])]
        {
            assert_eq!(fs::read(out.join("c").join(chunk)).unwrap(), expect, "{chunk}");
        }
    }
}
