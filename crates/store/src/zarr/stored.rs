//! One stored array: its metadata made ready, and reading its chunks through zarrs.
//!
//! Chunks are the units that can be decoded alone: inner chunks where an array is sharded. What packed them last is
//! undone here, within the size of a chunk; see `packing`.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use array::{DType, ElementType, Error, PackedChunk, Region, Result, Selection};
use serde_json::Value;
use zarrs::array::{
    Array, ArrayMetadata, ArrayShardedExt, ArrayToBytesCodecTraits, ChunkShape, CodecChain, CodecOptions,
};

use super::directory::{Directory, Place};
use super::nodes::Kind;
use super::packing::{Packing, check_rest};
use super::shards::Shards;
use crate::Cancel;
use crate::chunked::{Part, fill, for_each_chunk, whole_chunk};
use crate::kept::{ChunkStore, Decoded};
use crate::scratch::MAX_CHUNK_BYTES;

/// An array of a store.
pub(super) struct Stored {
    array: Array<Directory>,
    pub(super) dtype: DType,
    /// Elements per axis of what is decoded at once.
    pub(super) chunk: Vec<u64>,
    chunk_shape: ChunkShape,
    /// Files per axis, of chunks or shards.
    files: Vec<u64>,
    inner: Option<Inner>,
    /// What packed the chunks last.
    packing: Packing,
    /// One element as stored.
    fill: Vec<u8>,
    options: CodecOptions,
}

/// Inner chunks of shards.
struct Inner {
    codecs: CodecChain,
    shards: Shards,
}

impl Stored {
    /// Prepares an array.
    ///
    /// # Errors
    /// `Unsupported`, saying what is: element type, codec, chunk grid, size of chunks.
    pub(super) fn open(directory: &Arc<Directory>, path: &str, kind: &Kind) -> Result<Self> {
        let dtype = dtype(kind)?;
        let (metadata, packing, rest) = metadata(kind)?;
        let array = guarded(|| {
            Array::new_with_metadata(Arc::clone(directory), &format!("/{path}"), metadata)
                .map_err(|e| Error::unsupported(e.to_string()))
        })?;
        if array.shape().len() > array::MAX_AXES {
            return Err(Error::unsupported(format!("array of {} axes", array.shape().len())));
        }
        let outer = guarded(|| {
            let first = vec![0; array.shape().len()];
            array.chunk_shape(&first).map_err(|e| Error::unsupported(e.to_string()))
        })?;
        let files =
            array.shape().iter().zip(outer.iter()).map(|(&n, chunk)| n.div_ceil(chunk.get())).collect();
        let inner = if packing.is_empty() { guarded(|| inner(&array, kind, &outer))? } else { None };
        let (chunk_shape, packing, inner) = match inner {
            Some((shape, packing, inner)) => (shape, packing, Some(inner)),
            None => {
                check_rest(&rest)?;
                (outer, packing, None)
            }
        };
        let chunk: Vec<u64> = chunk_shape.iter().map(|n| n.get()).collect();
        chunk_bytes(&chunk, dtype)?;
        let mut fill = array.fill_value().as_ne_bytes().to_vec();
        if fill.len() != dtype.size_bytes() {
            return Err(Error::corrupt("expected a fill value of the array's type"));
        }
        dtype.to_native(&mut fill);
        let options = CodecOptions::default().with_concurrent_target(1);
        Ok(Self { array, dtype, chunk, chunk_shape, files, inner, packing, fill, options })
    }

    pub(super) fn shape(&self) -> &[u64] {
        self.array.shape()
    }

    /// Files per axis, of chunks or shards, written or not.
    pub(super) fn files(&self) -> &[u64] {
        &self.files
    }

    /// Where one of these files lies in the store.
    pub(super) fn key(&self, file: &[u64]) -> String {
        self.array.chunk_key(file).as_str().to_owned()
    }

    /// Reads a selection, chunk by chunk.
    ///
    /// # Errors
    /// `Corrupt`, `Denied`, `Io`, `Cancelled`.
    pub(super) fn read(
        &self,
        number: u32,
        selection: &Selection,
        into: Region,
        store: &ChunkStore,
        cancel: &Cancel,
    ) -> Result<()> {
        let size = chunk_bytes(&self.chunk, self.dtype)?;
        for_each_chunk(selection, &self.chunk, into, &mut |part, into| {
            cancel.check()?;
            let decode = || guarded(|| self.decode(part.position, size, store, cancel));
            let decoded = if part.is_whole(&self.chunk) {
                decode().map(Arc::new)
            } else {
                store.get(number, self.linear(part.position), size, cancel, decode)
            };
            self.copy(&decoded.map_err(|e| e.context(format!("chunk {:?}", part.position)))?, part, into)
        })
    }

    /// The stored bytes of a whole chunk that others can undo.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(super) fn packed(&self, selection: &Selection) -> Result<Option<PackedChunk>> {
        let (Some(position), Some(packing)) = (whole_chunk(selection, &self.chunk), self.packing.portable())
        else {
            return Ok(None);
        };
        let size = chunk_bytes(&self.chunk, self.dtype)?;
        let place = guarded(|| self.place(&position, size))?;
        let is_smaller = |place: &Place| (1..size as u64).contains(&place.size_bytes);
        let Some(place) = place.filter(is_smaller) else { return Ok(None) };
        Ok(Some(PackedChunk { bytes: place.read()?.into(), packing, width: 1 }))
    }

    /// Where a chunk lies, if it exists.
    fn place(&self, position: &[u64], chunk_bytes: usize) -> Result<Option<Place>> {
        let directory = self.array.storage();
        let most = most_encoded_bytes(chunk_bytes);
        match &self.inner {
            Some(inner) => {
                let (shard, number) = inner.shards.place(position);
                inner.shards.chunk(&directory, self.array.chunk_key(&shard).as_str(), number, most)
            }
            None => directory.object(self.array.chunk_key(position).as_str(), most),
        }
    }

    /// A chunk that was never written is kept as no bytes at all.
    fn copy(&self, bytes: &[u8], part: &Part<'_>, into: Region) -> Result<()> {
        if bytes.is_empty() { fill(into, &self.fill) } else { part.copy(bytes, &self.chunk, into) }
    }

    /// C order over the grid.
    fn linear(&self, position: &[u64]) -> u64 {
        let axes = position.iter().zip(&self.chunk).zip(self.shape());
        axes.fold(0, |n, ((&p, &c), &s)| n.saturating_mul(s.div_ceil(c)).saturating_add(p))
    }

    /// The elements of a chunk as stored; empty when it does not exist.
    fn decode(&self, position: &[u64], size: usize, store: &ChunkStore, cancel: &Cancel) -> Result<Decoded> {
        let corrupt = |e: &dyn std::fmt::Display| {
            Error::corrupt(format!("expected a chunk as its codecs write it, found: {e}"))
        };
        let Some(place) = self.place(position, size)? else { return Ok(Decoded::default()) };
        let whole = self.array.codecs();
        let codecs = self.inner.as_ref().map_or(&*whole, |inner| &inner.codecs);
        let needed_bytes = self.packing.needed_bytes(place.size_bytes, size as u64);
        let room = store.scratch().reserve(size as u64, needed_bytes, cancel)?;
        let encoded = self.packing.undo(place.read()?, size)?;
        let decoded = codecs
            .decode(
                Cow::Owned(encoded),
                &self.chunk_shape,
                self.array.data_type(),
                self.array.fill_value(),
                &self.options,
            )
            .map_err(|e| corrupt(&e))?;
        let mut bytes = decoded.into_fixed().map_err(|e| corrupt(&e))?.into_owned();
        if bytes.len() != size {
            return Err(Error::corrupt(format!("expected a chunk of {size} bytes, found {}", bytes.len())));
        }
        // zarrs gives the host's order; swapping is its own inverse.
        self.dtype.to_native(&mut bytes);
        Ok(Decoded::new(bytes, room))
    }
}

/// zarrs is careful, and so are we: a panic in it becomes an error.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::corrupt("expected a chunk that can be decoded, found one that cannot"))
    })
}

fn chunk_bytes(chunk: &[u64], dtype: DType) -> Result<usize> {
    let bytes = chunk.iter().try_fold(dtype.size_bytes() as u64, |n, &c| n.checked_mul(c));
    bytes.filter(|&n| n <= MAX_CHUNK_BYTES).and_then(|n| usize::try_from(n).ok()).ok_or_else(|| {
        Error::too_large(format!("expected chunks of at most {MAX_CHUNK_BYTES} bytes, found {chunk:?}"))
    })
}

/// Longest encoded form of a chunk: codecs may add a little, an index of inner chunks more.
fn most_encoded_bytes(chunk_bytes: usize) -> u64 {
    (chunk_bytes as u64).saturating_mul(2).saturating_add(1 << 20)
}

/// Version 2 names types as numpy does, byte order and all; version 3 has no byte order of its own.
fn dtype(kind: &Kind) -> Result<DType> {
    let name = match kind {
        Kind::ArrayV2(document) => document.get("dtype"),
        Kind::ArrayV3(document) => document.get("data_type"),
        Kind::Group => None,
    };
    let Some(name) = name.and_then(Value::as_str) else {
        return Err(Error::unsupported("compound or extension element type"));
    };
    match kind {
        Kind::ArrayV2(_) => name.parse().map_err(|_| Error::unsupported(format!("element type `{name}`"))),
        _ => {
            let element = ElementType::ALL.into_iter().find(|e| e.name() == name);
            element.map(DType::native).ok_or_else(|| Error::unsupported(format!("element type `{name}`")))
        }
    }
}

/// What zarrs is told of an array; what is undone here; and, of version 3, the codecs that are left.
fn metadata(kind: &Kind) -> Result<(ArrayMetadata, Packing, Vec<Value>)> {
    let wrong = |e: serde_json::Error| Error::corrupt(format!("expected metadata of an array, found: {e}"));
    match kind {
        Kind::ArrayV2(document) => {
            let mut document = document.clone();
            let packing = Packing::take_from_v2(&mut document)?;
            Ok((ArrayMetadata::V2(serde_json::from_value(document).map_err(wrong)?), packing, Vec::new()))
        }
        Kind::ArrayV3(document) => {
            let grid = document.pointer("/chunk_grid/name").and_then(Value::as_str);
            if grid != Some("regular") {
                return Err(Error::unsupported(format!("chunk grid `{}`", grid.unwrap_or("unnamed"))));
            }
            check_known(document)?;
            let mut document = document.clone();
            let mut codecs = document.get("codecs").and_then(Value::as_array).cloned().unwrap_or_default();
            let packing = Packing::take_from(&mut codecs);
            document["codecs"] = Value::Array(codecs.clone());
            Ok((ArrayMetadata::V3(serde_json::from_value(document).map_err(wrong)?), packing, codecs))
        }
        Kind::Group => Err(Error::internal("a group is no array")),
    }
}

/// Fields that an array's document of version 3 may have; of any other it must say that it need not be understood.
const KNOWN_FIELDS: [&str; 12] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "codecs",
    "fill_value",
    "attributes",
    "dimension_names",
    "storage_transformers",
    "consolidated_metadata",
];

fn check_known(document: &Value) -> Result<()> {
    let may_be_ignored = |value: &Value| value.get("must_understand") == Some(&Value::Bool(false));
    let fields = document.as_object().into_iter().flatten();
    let unknown =
        fields.filter(|(name, value)| !KNOWN_FIELDS.contains(&name.as_str()) && !may_be_ignored(value));
    match unknown.map(|(name, _)| name).next() {
        Some(name) => Err(Error::unsupported(format!("field `{name}`, which must be understood"))),
        None => Ok(()),
    }
}

/// Inner chunks, where shards have no codec around them: shape, what packed them, how to read them.
type Sharded = (ChunkShape, Packing, Inner);

fn inner(array: &Array<Directory>, kind: &Kind, outer: &ChunkShape) -> Result<Option<Sharded>> {
    let (true, Kind::ArrayV3(document)) = (array.is_exclusively_sharded(), kind) else { return Ok(None) };
    let Some(shape) = array.effective_subchunk_shape() else { return Ok(None) };
    let Some(configuration) = document.pointer("/codecs/0/configuration") else { return Ok(None) };
    let sizes = |shape: &ChunkShape| shape.iter().map(|n| n.get()).collect::<Vec<u64>>();
    let Some(shards) = Shards::of(configuration, &sizes(outer), &sizes(&shape))? else { return Ok(None) };
    let mut codecs = configuration.get("codecs").and_then(Value::as_array).cloned().unwrap_or_default();
    let packing = Packing::take_from(&mut codecs);
    check_rest(&codecs)?;
    let parsed: Vec<_> = serde_json::from_value(Value::Array(codecs))
        .map_err(|e| Error::corrupt(format!("expected codecs of a shard, found: {e}")))?;
    let chain = CodecChain::from_metadata(&parsed).map_err(|e| Error::unsupported(e.to_string()))?;
    Ok(Some((shape, packing, Inner { codecs: chain, shards })))
}
