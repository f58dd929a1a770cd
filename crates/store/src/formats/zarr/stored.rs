//! One stored array: its metadata made ready, and reading its chunks through zarrs.
//!
//! Chunks are the units that can be decoded alone: inner chunks where an array is sharded. What packed them last is
//! undone here, within the size of a chunk; see `packing`. What zarrs has not is undone here altogether; see `filters`.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use array::{
    DType, ElementType, Error, MAX_TEXT_BYTES, MAX_TEXT_ELEMENTS, PackedChunk, Region, Result, Selection,
};
use serde_json::{Value, json};
use zarrs::array::{
    Array, ArrayMetadata, ArrayShardedExt, ArrayToBytesCodecTraits, ChunkShape, CodecChain, CodecOptions,
};

use super::directory::{Directory, Place};
use super::filters::{self, Chain, Form, Reading};
use super::nodes::Kind;
use super::packing::{Packing, check_rest, name};
use super::shards::Shards;
use super::states::at;
use crate::cache::chunk_cache::{ChunkStore, Decoded};
use crate::formats::common::chunked::{Part, fill, for_each_chunk, whole_chunk};
use crate::schedule::scratch::MAX_CHUNK_BYTES;
use crate::{Cancel, Scratch};

/// Most chunks of texts of any length that are looked at when a store is opened: a second on a local disk.
pub(super) const MAX_TEXT_CHUNKS: u64 = 65_536;

/// An array of a store.
pub(super) struct Stored {
    array: Array<Directory>,
    pub(super) dtype: DType,
    /// Elements per axis; of texts with one more axis, of their bytes.
    shape: Vec<u64>,
    /// Elements per axis of what is decoded at once.
    pub(super) chunk: Vec<u64>,
    /// Elements per axis of what is decoded at once, without the bytes of texts.
    chunk_shape: ChunkShape,
    /// Files per axis, of chunks or shards.
    files: Vec<u64>,
    shards: Option<Shards>,
    codecs: Codecs,
    /// Last codecs of the chunks, which are undone here.
    packing: Packing,
    /// One element as stored.
    fill: Vec<u8>,
    options: CodecOptions,
}

/// How the elements of a chunk are put together.
enum Codecs {
    /// As zarrs has it from the array's document.
    OfArray,
    /// As zarrs has it from that of a shard's inner chunks.
    OfInner(CodecChain),
    /// By ourselves.
    Own(Chain),
}

impl Stored {
    /// Prepares an array: one for each number that an element has. `text_chunks`: chunks of texts of any length that may still
    /// be looked at.
    ///
    /// # Errors
    /// `Unsupported`, saying what is: element type, codec, chunk grid, size of chunks.
    pub(super) fn open_all(
        directory: &Arc<Directory>,
        path: &str,
        kind: &Kind,
        scratch: &Scratch,
        text_chunks: &mut u64,
    ) -> Result<Vec<(Reading, Self)>> {
        let (document, is_v2) = match kind {
            Kind::ArrayV2(document) => (document, true),
            Kind::ArrayV3(document) => (document, false),
            Kind::Group => return Err(Error::internal("a group is no array")),
        };
        let mut readings = filters::readings(document, is_v2)?;
        if let [Reading { form: Form::Number(_), time: None, .. }] = &readings[..]
            && !has_filters(document)
        {
            let stored = Self::open(directory, path, kind)?;
            return Ok(readings.pop().map(|reading| (reading, stored)).into_iter().collect());
        }
        let open = |reading: Reading| {
            let stored = Self::open_own(directory, path, kind, reading.form.clone(), scratch, text_chunks)?;
            Ok((reading, stored))
        };
        readings.into_iter().map(open).collect()
    }

    /// An array whose codecs or elements zarrs has not; it is told of an array of bytes instead, for its grid and keys.
    fn open_own(
        directory: &Arc<Directory>,
        path: &str,
        kind: &Kind,
        form: Form,
        scratch: &Scratch,
        text_chunks: &mut u64,
    ) -> Result<Self> {
        let array = opened(directory, path, metadata(&plain(kind)?)?.0)?;
        let outer = outer_shape(&array)?;
        let axes = array.shape().len();
        let parsed = Parsed::of(kind, form, axes)?;
        let sizes = |shape: &ChunkShape| shape.iter().map(|n| n.get()).collect::<Vec<u64>>();
        let (chunk_shape, shards) = match &parsed.sharding {
            None => (outer.clone(), None),
            Some(configuration) => {
                let inner = configuration.get("chunk_shape").cloned().unwrap_or_default();
                let inner: ChunkShape = serde_json::from_value(inner)
                    .map_err(|e| Error::corrupt(format!("expected a shape of chunks, found: {e}")))?;
                if inner.len() != axes {
                    return Err(Error::corrupt("expected chunks with the axes of the array"));
                }
                let shards = Shards::of(configuration, &sizes(&outer), &sizes(&inner))?;
                let shards =
                    shards.ok_or_else(|| Error::unsupported("index of shards in an unusual form"))?;
                (inner, Some(shards))
            }
        };
        let (shape, files) = (array.shape().to_vec(), files(&array, &outer));
        let mut stored = Self {
            dtype: parsed.chain.form().dtype(),
            shape,
            chunk: sizes(&chunk_shape),
            chunk_shape,
            files,
            shards,
            packing: parsed.packing,
            fill: Vec::new(),
            options: CodecOptions::default().with_concurrent_target(1),
            codecs: Codecs::Own(parsed.chain),
            array,
        };
        guarded(|| stored.measure_texts(scratch, text_chunks))?;
        if let Codecs::Own(chain) = &stored.codecs {
            stored.fill = chain.fill().to_vec();
            if let Some(bytes) = chain.form().text_bytes() {
                stored.shape.push(bytes as u64);
                stored.chunk.push(bytes as u64);
            }
        }
        chunk_bytes(&stored.chunk, stored.dtype)?;
        Ok(stored)
    }

    /// Reads all texts that have lengths of their own, for the longest.
    fn measure_texts(&mut self, scratch: &Scratch, text_chunks: &mut u64) -> Result<()> {
        let Codecs::Own(chain) = &self.codecs else { return Ok(()) };
        if !matches!(chain.form(), Form::Variable(_)) {
            return Ok(());
        }
        let count = self.shape.iter().try_fold(1u64, |n, &s| n.checked_mul(s));
        let chunk_texts = chunk_bytes(&self.chunk, self.dtype)?;
        if count.is_none_or(|n| n > MAX_TEXT_ELEMENTS) || chunk_texts as u64 > MAX_TEXT_ELEMENTS {
            return Err(Error::too_large(format!("more than {MAX_TEXT_ELEMENTS} texts of any length")));
        }
        let grid: Vec<u64> = self.shape.iter().zip(&self.chunk).map(|(&n, c)| n.div_ceil(*c)).collect();
        let chunks = grid.iter().product::<u64>();
        *text_chunks = text_chunks.checked_sub(chunks).ok_or_else(|| {
            Error::too_large(format!(
                "expected at most {text_chunks} more chunks of texts of any length ({MAX_TEXT_CHUNKS} in a store), found {chunks}"
            ))
        })?;
        let mut longest = chain.fill().len();
        let cancel = Cancel::default();
        for number in 0..chunks {
            let Some(place) = self.place(&at(number, &grid), MAX_TEXT_BYTES)? else { continue };
            let _room = scratch.reserve(0, place.size_bytes, &cancel)?;
            let (stored, few) = (place.read()?, place.size_bytes.saturating_mul(16).max(64 << 10));
            // Rarely more than that; then as much as there may be.
            let unpack = |most: u64| {
                let room = scratch.reserve(0, most, &cancel)?;
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                self.packing.undo(stored.clone(), most).map(|bytes| (bytes, room))
            };
            let (bytes, _room) = unpack(few.min(MAX_TEXT_BYTES)).or_else(|_| unpack(MAX_TEXT_BYTES))?;
            longest = chain.texts(&bytes, chunk_texts)?.iter().map(|t| t.len()).fold(longest, usize::max);
        }
        let padded = count.unwrap_or(u64::MAX).max(chunk_texts as u64).saturating_mul(longest as u64);
        if padded > MAX_TEXT_BYTES {
            return Err(Error::too_large(format!(
                "texts of at most {longest} bytes that take {padded}, more than {MAX_TEXT_BYTES}, as long as the longest"
            )));
        }
        if let Codecs::Own(chain) = &mut self.codecs {
            chain.set_text_bytes(longest);
        }
        Ok(())
    }

    fn open(directory: &Arc<Directory>, path: &str, kind: &Kind) -> Result<Self> {
        let dtype = dtype(kind)?;
        let (metadata, packing, rest) = metadata(kind)?;
        let array = opened(directory, path, metadata)?;
        let outer = outer_shape(&array)?;
        let files = files(&array, &outer);
        let inner = if packing.is_empty() { guarded(|| inner(&array, kind, &outer))? } else { None };
        let (chunk_shape, packing, codecs, shards) = match inner {
            Some((shape, packing, codecs, shards)) => (shape, packing, Codecs::OfInner(codecs), Some(shards)),
            None => {
                check_rest(&rest)?;
                (outer, packing, Codecs::OfArray, None)
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
        let shape = array.shape().to_vec();
        Ok(Self { array, dtype, shape, chunk, chunk_shape, files, shards, codecs, packing, fill, options })
    }

    pub(super) fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Whether elements are texts, whose bytes are the last axis.
    pub(super) fn is_text(&self) -> bool {
        self.shape.len() > self.chunk_shape.len()
    }

    /// Files per axis, of chunks or shards, written or not.
    pub(super) fn files(&self) -> &[u64] {
        &self.files
    }

    /// Returns the key of one of these files in the store.
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
        if matches!(self.codecs, Codecs::Own(_)) {
            return Ok(None);
        }
        let size = chunk_bytes(&self.chunk, self.dtype)?;
        let place = guarded(|| self.place(&position, size as u64))?;
        let is_smaller = |place: &Place| (1..size as u64).contains(&place.size_bytes);
        let Some(place) = place.filter(is_smaller) else { return Ok(None) };
        Ok(Some(PackedChunk { bytes: place.read()?.into(), packing, width: 1 }))
    }

    /// Finds a chunk, if it exists.
    fn place(&self, position: &[u64], chunk_bytes: u64) -> Result<Option<Place>> {
        let directory = self.array.storage();
        let most = most_encoded_bytes(chunk_bytes);
        // The bytes of texts are no axis of the file.
        let position = &position[..self.chunk_shape.len()];
        match &self.shards {
            Some(shards) => {
                let (shard, number) = shards.place(position);
                shards.chunk(&directory, self.array.chunk_key(&shard).as_str(), number, most)
            }
            None => directory.object(self.array.chunk_key(position).as_str(), most),
        }
    }

    /// A chunk that was never written is kept as no bytes at all.
    fn copy(&self, bytes: &[u8], part: &Part<'_>, into: Region) -> Result<()> {
        if bytes.is_empty() { fill(into, &self.fill) } else { part.copy(bytes, &self.chunk, into) }
    }

    /// A chunk that was never written: no bytes at all; of texts, whose fill is more than one element, all of them.
    fn missing(&self, size: usize, store: &ChunkStore, cancel: &Cancel) -> Result<Decoded> {
        if !self.is_text() || self.fill.iter().all(|&byte| byte == 0) {
            return Ok(Decoded::default());
        }
        let room = store.scratch().reserve(size as u64, size as u64, cancel)?;
        Ok(Decoded::new(self.fill.iter().copied().cycle().take(size).collect(), room))
    }

    /// Most bytes of a chunk before it was packed.
    fn stored_bytes(&self, chunk_bytes: usize) -> usize {
        let Codecs::Own(chain) = &self.codecs else { return chunk_bytes };
        let elements = self.chunk_shape.iter().fold(1u64, |n, s| n.saturating_mul(s.get()));
        let elements = usize::try_from(elements).unwrap_or(usize::MAX);
        // Texts have their lengths before them.
        chain.stored_bytes(elements).unwrap_or_else(|| chunk_bytes.saturating_add(4 * elements + 4))
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
        let stored_bytes = self.stored_bytes(size);
        let Some(place) = self.place(position, stored_bytes as u64)? else {
            return self.missing(size, store, cancel);
        };
        let needed_bytes = self.packing.needed_bytes(place.size_bytes, stored_bytes.max(size) as u64);
        let room = store.scratch().reserve(size as u64, needed_bytes, cancel)?;
        let encoded = self.packing.undo(place.read()?, stored_bytes)?;
        let whole = self.array.codecs();
        let codecs = match &self.codecs {
            Codecs::OfArray => &*whole,
            Codecs::OfInner(codecs) => codecs,
            Codecs::Own(chain) => {
                let elements: Vec<u64> = self.chunk_shape.iter().map(|n| n.get()).collect();
                return Ok(Decoded::new(chain.undo(encoded, &elements)?, room));
            }
        };
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
fn most_encoded_bytes(chunk_bytes: u64) -> u64 {
    chunk_bytes.saturating_mul(2).saturating_add(1 << 20)
}

fn opened(directory: &Arc<Directory>, path: &str, metadata: ArrayMetadata) -> Result<Array<Directory>> {
    let array = guarded(|| {
        Array::new_with_metadata(Arc::clone(directory), &format!("/{path}"), metadata)
            .map_err(|e| Error::unsupported(e.to_string()))
    })?;
    // Texts get one more.
    if array.shape().len() >= array::MAX_AXES {
        return Err(Error::unsupported(format!("array of {} axes", array.shape().len())));
    }
    // Before all chunks of the store are counted.
    let elements = array.shape().iter().try_fold(1u64, |n, &size| n.checked_mul(size));
    if elements.is_none_or(|n| n > i64::MAX as u64) {
        return Err(Error::too_large(format!("shape {:?} exceeds 2^63 elements", array.shape())));
    }
    Ok(array)
}

fn outer_shape(array: &Array<Directory>) -> Result<ChunkShape> {
    guarded(|| {
        let first = vec![0; array.shape().len()];
        array.chunk_shape(&first).map_err(|e| Error::unsupported(e.to_string()))
    })
}

/// Files per axis.
fn files(array: &Array<Directory>, outer: &ChunkShape) -> Vec<u64> {
    array.shape().iter().zip(outer.iter()).map(|(&n, chunk)| n.div_ceil(chunk.get())).collect()
}

/// Codecs of numcodecs that zarrs has not, before what packs chunks.
fn has_filters(document: &Value) -> bool {
    const OWN: [&str; 7] =
        ["delta", "fixedscaleoffset", "quantize", "astype", "packbits", "bitround", "shuffle"];
    let listed = |name: &str| document.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let inner = |codec: &Value| codec.pointer("/configuration/codecs").and_then(Value::as_array).cloned();
    let is_own = |codec: &Value| OWN.contains(&name(codec));
    let codecs = listed("codecs");
    !listed("filters").is_empty()
        || codecs.iter().any(is_own)
        || codecs.iter().filter_map(inner).flatten().any(|codec| is_own(&codec))
}

/// Parsed metadata of an array that is read without zarrs.
struct Parsed {
    chain: Chain,
    packing: Packing,
    /// How shards are laid out, where there are.
    sharding: Option<Value>,
}

impl Parsed {
    fn of(kind: &Kind, form: Form, axes: usize) -> Result<Self> {
        let listed = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
        match kind {
            Kind::ArrayV2(document) => {
                let mut codecs = listed(document.get("filters"));
                codecs.extend(document.get("compressor").filter(|c| c.is_object()).cloned());
                let packing = Packing::take_all_from(&mut codecs);
                let mut document = document.clone();
                document["filters"] = codecs.into();
                Ok(Self { chain: Chain::of_v2(&document, form, axes)?, packing, sharding: None })
            }
            Kind::ArrayV3(document) => {
                check_grid(document)?;
                let mut codecs = listed(document.get("codecs"));
                let mut sharding = None;
                if let [only] = &codecs[..]
                    && name(only) == "sharding_indexed"
                {
                    let configuration = only.get("configuration").cloned().unwrap_or_default();
                    codecs = listed(configuration.get("codecs"));
                    sharding = Some(configuration);
                }
                let packing = Packing::take_all_from(&mut codecs);
                let chain = Chain::of_v3(&codecs, document.get("fill_value"), form, axes)?;
                Ok(Self { chain, packing, sharding })
            }
            Kind::Group => Err(Error::internal("a group is no array")),
        }
    }
}

/// The document of an array of bytes with the same grid and keys.
fn plain(kind: &Kind) -> Result<Kind> {
    let replaced = |document: &Value, fields: Value| {
        let mut document = document.clone();
        for (name, value) in fields.as_object().into_iter().flatten() {
            document[name] = value.clone();
        }
        document
    };
    Ok(match kind {
        Kind::ArrayV2(document) => {
            let fields =
                json!({"dtype": "|u1", "filters": null, "compressor": null, "fill_value": 0, "order": "C"});
            Kind::ArrayV2(replaced(document, fields))
        }
        Kind::ArrayV3(document) => {
            let fields = json!({"data_type": "uint8", "codecs": [{"name": "bytes"}], "fill_value": 0});
            Kind::ArrayV3(replaced(document, fields))
        }
        Kind::Group => return Err(Error::internal("a group is no array")),
    })
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

/// Returns the metadata of an array for zarrs, the codecs that are undone here, and, for version 3, the
/// codecs that are left.
fn metadata(kind: &Kind) -> Result<(ArrayMetadata, Packing, Vec<Value>)> {
    let wrong = |e: serde_json::Error| Error::corrupt(format!("expected metadata of an array, found: {e}"));
    match kind {
        Kind::ArrayV2(document) => {
            let mut document = document.clone();
            let packing = Packing::take_from_v2(&mut document)?;
            Ok((ArrayMetadata::V2(serde_json::from_value(document).map_err(wrong)?), packing, Vec::new()))
        }
        Kind::ArrayV3(document) => {
            check_grid(document)?;
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

fn check_grid(document: &Value) -> Result<()> {
    let grid = document.pointer("/chunk_grid/name").and_then(Value::as_str);
    if grid != Some("regular") {
        return Err(Error::unsupported(format!("chunk grid `{}`", grid.unwrap_or("unnamed"))));
    }
    check_known(document)
}

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

/// Inner chunks, where shards have no codec around them: shape, what packed them, how to read and find them.
type Sharded = (ChunkShape, Packing, CodecChain, Shards);

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
    Ok(Some((shape, packing, chain, shards)))
}
