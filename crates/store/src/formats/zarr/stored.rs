//! Stored array: its parsed metadata, and reads of its chunks.
//!
//! Chunks are the units that can be decoded alone: inner chunks of a sharded array. `packing` undoes their bytes-to-bytes codecs within
//! the size of a chunk, `filters` the codecs before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use array::{DType, Error, MAX_TEXT_BYTES, MAX_TEXT_ELEMENTS, PackedChunk, Region, Result, Selection};
use serde_json::Value;

use super::directory::{Directory, FileRange};
use super::filters::{self, ElementForm, ElementReading, FilterChain};
use super::nodes::{NodeKind, chunk_sizes, listed, sizes};
use super::packing::{BytesCodecs, name};
use super::shards::Sharding;
use crate::cache::chunk_cache::{ChunkStore, DecodedChunk};
use crate::formats::common::chunked::{ChunkPart, fill, for_each_chunk, grid_position, whole_chunk};
use crate::schedule::scratch::MAX_CHUNK_BYTES;
use crate::{CancelFlag, Scratch};

/// Most chunks of variable-length strings that are read when a store is opened: a second on a local disk.
pub(super) const MAX_TEXT_CHUNKS: u64 = 65_536;

/// Array of a Zarr store.
pub(super) struct ZarrArray {
    directory: Arc<Directory>,
    keys: ChunkKeys,
    pub(super) dtype: DType,
    /// Elements per axis; of texts with one more axis, of their bytes.
    shape: Vec<u64>,
    /// Elements per axis of the unit that is decoded at once.
    pub(super) chunk: Vec<u64>,
    /// Files per axis, of chunks or shards.
    files: Vec<u64>,
    codecs: ChunkCodecs,
    /// Fill value as an element of the result.
    fill: Vec<u8>,
}

impl ZarrArray {
    /// Opens an array: returns one for each number that an element has. `text_chunks`: number of chunks of variable-length strings that may
    /// still be read.
    ///
    /// # Errors
    /// `Unsupported`, naming the element type, the codec, the chunk grid or the size of chunks.
    pub(super) fn open_all(
        directory: &Arc<Directory>,
        path: &str,
        kind: &NodeKind,
        scratch: &Scratch,
        text_chunks: &mut u64,
    ) -> Result<Vec<(ElementReading, Self)>> {
        let (document, is_v2) = match kind {
            NodeKind::ArrayV2(document) => (document, true),
            NodeKind::ArrayV3(document) => (document, false),
            NodeKind::Group => return Err(Error::internal("a group is no array")),
        };
        let open = |reading: ElementReading| {
            let mut stored = Self::open(directory, path, (document, is_v2), reading.form.clone())?;
            stored.take_texts(scratch, text_chunks)?;
            chunk_bytes(&stored.chunk, stored.dtype)?;
            Ok((reading, stored))
        };
        filters::readings(document, is_v2)?.into_iter().map(open).collect()
    }

    fn open(
        directory: &Arc<Directory>,
        path: &str,
        (document, is_v2): (&Value, bool),
        form: ElementForm,
    ) -> Result<Self> {
        let keys = ChunkKeys::of(path, document, is_v2)?;
        let shape = shape(document)?;
        let (outer, codecs) = if is_v2 {
            let outer = chunk_sizes(document.get("chunks"), shape.len())?;
            let codecs = ChunkCodecs::of_v2(document, form, outer.clone())?;
            (outer, codecs)
        } else {
            check_v3(document)?;
            let outer = chunk_sizes(document.pointer("/chunk_grid/configuration/chunk_shape"), shape.len())?;
            let codecs = ChunkCodecs::of_v3(document, form, outer.clone())?;
            (outer, codecs)
        };
        Ok(Self {
            directory: Arc::clone(directory),
            keys,
            dtype: codecs.chain.dtype(),
            files: shape.iter().zip(&outer).map(|(&n, &chunk)| n.div_ceil(chunk)).collect(),
            shape,
            chunk: codecs.chunk.clone(),
            fill: Vec::new(),
            codecs,
        })
    }

    /// Sets the fill value, and adds the bytes of strings as an axis.
    fn take_texts(&mut self, scratch: &Scratch, text_chunks: &mut u64) -> Result<()> {
        guarded(|| self.measure_texts(scratch, text_chunks))?;
        let chain = &self.codecs.chain;
        self.fill = chain.fill().to_vec();
        if let Some(bytes) = chain.form().text_bytes() {
            self.shape.push(bytes as u64);
            self.chunk.push(bytes as u64);
        }
        Ok(())
    }

    /// Finds the longest of variable-length strings by reading all of them.
    fn measure_texts(&mut self, scratch: &Scratch, text_chunks: &mut u64) -> Result<()> {
        let ChunkCodecs { chain, packing, .. } = &self.codecs;
        if !matches!(chain.form(), ElementForm::Variable(_)) {
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
        let cancel = CancelFlag::default();
        for number in 0..chunks {
            let Some(place) = self.place(&grid_position(number, &grid), MAX_TEXT_BYTES)? else { continue };
            let _room = scratch.reserve(0, place.size_bytes, &cancel)?;
            let (stored, few) = (place.read()?, place.size_bytes.saturating_mul(16).max(64 << 10));
            // Few chunks are larger; for them, the limit is reserved.
            let unpack = |most: u64| {
                let room = scratch.reserve(0, most, &cancel)?;
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                packing.undo(stored.clone(), most).map(|bytes| (bytes, room))
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
        self.codecs.chain.set_text_bytes(longest);
        Ok(())
    }

    pub(super) fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Whether elements are texts, whose bytes are the last axis.
    pub(super) fn is_text(&self) -> bool {
        self.shape.len() > self.codecs.chunk.len()
    }

    /// Files per axis, of chunks or shards, written or not.
    pub(super) fn files(&self) -> &[u64] {
        &self.files
    }

    /// Returns the key of one of these files in the store.
    pub(super) fn key(&self, file: &[u64]) -> String {
        self.keys.of_file(file)
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
        cancel: &CancelFlag,
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

    /// Returns the stored bytes of a whole chunk, if clients can decompress them.
    ///
    /// # Errors
    /// Errors of [`read`](Self::read).
    pub(super) fn packed(&self, selection: &Selection) -> Result<Option<PackedChunk>> {
        let packing = self.codecs.packing.portable().filter(|_| self.codecs.chain.is_plain());
        let (Some(position), Some(packing)) = (whole_chunk(selection, &self.chunk), packing) else {
            return Ok(None);
        };
        let size = chunk_bytes(&self.chunk, self.dtype)?;
        let place = guarded(|| self.place(&position, size as u64))?;
        let is_smaller = |place: &FileRange| (1..size as u64).contains(&place.size_bytes);
        let Some(place) = place.filter(is_smaller) else { return Ok(None) };
        Ok(Some(PackedChunk { bytes: place.read()?.into(), packing, width: 1 }))
    }

    /// Finds a chunk, if it exists.
    fn place(&self, position: &[u64], chunk_bytes: u64) -> Result<Option<FileRange>> {
        let most = most_encoded_bytes(chunk_bytes);
        // The bytes of texts are no axis of the file.
        let position = &position[..self.codecs.chunk.len()];
        match &self.codecs.shards {
            Some(shards) => {
                let (shard, number) = shards.place(position);
                shards.chunk(&self.directory, &self.keys.of_file(&shard), number, most)
            }
            None => self.directory.object(&self.keys.of_file(position), most),
        }
    }

    /// Copies a part of a chunk; a chunk that was never written has no bytes, and its elements are the fill value.
    fn copy(&self, bytes: &[u8], part: &ChunkPart<'_>, into: Region) -> Result<()> {
        if bytes.is_empty() { fill(into, &self.fill) } else { part.copy(bytes, &self.chunk, into) }
    }

    /// Makes a chunk that was never written: without bytes, except for strings with a fill value, which is longer than one element.
    fn missing(&self, size: usize, store: &ChunkStore, cancel: &CancelFlag) -> Result<DecodedChunk> {
        if !self.is_text() || self.fill.iter().all(|&byte| byte == 0) {
            return Ok(DecodedChunk::default());
        }
        let room = store.scratch().reserve(size as u64, size as u64, cancel)?;
        Ok(DecodedChunk::new(self.fill.iter().copied().cycle().take(size).collect(), room))
    }

    /// Most bytes of a chunk before compression.
    fn stored_bytes(&self, chunk_bytes: usize) -> usize {
        let elements = self.codecs.chunk.iter().fold(1u64, |n, &s| n.saturating_mul(s));
        let elements = usize::try_from(elements).unwrap_or(usize::MAX);
        // Strings have their lengths before them.
        let stored = self.codecs.chain.stored_bytes(elements);
        stored.unwrap_or_else(|| chunk_bytes.saturating_add(4 * elements + 4))
    }

    /// Number of a chunk, C order over the grid.
    fn linear(&self, position: &[u64]) -> u64 {
        let axes = position.iter().zip(&self.chunk).zip(self.shape());
        axes.fold(0, |n, ((&p, &c), &s)| n.saturating_mul(s.div_ceil(c)).saturating_add(p))
    }

    /// Decodes a chunk; see `missing` for one that does not exist.
    fn decode(
        &self,
        position: &[u64],
        size: usize,
        store: &ChunkStore,
        cancel: &CancelFlag,
    ) -> Result<DecodedChunk> {
        let ChunkCodecs { packing, chain, .. } = &self.codecs;
        let stored_bytes = self.stored_bytes(size);
        let Some(place) = self.place(position, stored_bytes as u64)? else {
            return self.missing(size, store, cancel);
        };
        let needed_bytes = packing.needed_bytes(place.size_bytes, stored_bytes.max(size) as u64);
        // Each level of nested shards is assembled in memory of its own.
        let needed_bytes = needed_bytes.saturating_add(chain.depth().saturating_mul(size as u64));
        let room = store.scratch().reserve(size as u64, needed_bytes, cancel)?;
        let bytes = chain.undo(packing.undo(place.read()?, stored_bytes)?, &self.codecs.chunk)?;
        Ok(DecodedChunk::new(bytes, room))
    }
}

/// A panic in a decoder becomes an error of the chunk.
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

/// Sizes along the axes of an array.
fn shape(document: &Value) -> Result<Vec<u64>> {
    let shape = sizes(document.get("shape"))?;
    // Strings get one more.
    if shape.len() >= array::MAX_AXES {
        return Err(Error::unsupported(format!("array of {} axes", shape.len())));
    }
    // Checked before all chunks of the store are counted.
    let elements = shape.iter().try_fold(1u64, |n, &size| n.checked_mul(size));
    if elements.is_none_or(|n| n > i64::MAX as u64) {
        return Err(Error::too_large(format!("shape {shape:?} exceeds 2^63 elements")));
    }
    Ok(shape)
}

/// Keys of the files of an array.
#[derive(Debug)]
struct ChunkKeys {
    /// Prefix of keys: the path of the array with a slash, empty at the root; in version 3 followed by `c`.
    before: String,
    separator: char,
    /// Key of the only chunk of an array without axes, after the path.
    alone: &'static str,
}

impl ChunkKeys {
    fn of(path: &str, document: &Value, is_v2: bool) -> Result<Self> {
        let encoding = document.get("chunk_key_encoding");
        let encoding_name = encoding.and_then(|e| e.as_str().or_else(|| e.get("name")?.as_str()));
        let (separator, alone) = match encoding_name {
            _ if is_v2 => (document.get("dimension_separator"), "0"),
            Some("v2") => (encoding.and_then(|e| e.pointer("/configuration/separator")), "0"),
            Some("default") => (encoding.and_then(|e| e.pointer("/configuration/separator")), "c"),
            other => {
                let what = format!("chunk key encoding `{}`", other.unwrap_or("unnamed"));
                return Err(Error::unsupported(what));
            }
        };
        let separator = match separator {
            None | Some(Value::Null) if alone == "c" => '/',
            None | Some(Value::Null) => '.',
            Some(Value::String(text)) if text == "/" => '/',
            Some(Value::String(text)) if text == "." => '.',
            Some(other) => {
                return Err(Error::corrupt(format!("expected the separator `.` or `/`, found {other}")));
            }
        };
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        let before = if alone == "c" { format!("{folder}c{separator}") } else { folder };
        Ok(Self { before, separator, alone })
    }

    /// Key of a file of chunks or of a shard.
    fn of_file(&self, file: &[u64]) -> String {
        let before = &self.before;
        match file.split_first() {
            // Without a separator after the prefix.
            None if self.alone == "c" => before[..before.len() - 1].to_owned(),
            None => format!("{before}{}", self.alone),
            Some((first, rest)) => rest
                .iter()
                .fold(format!("{before}{first}"), |key, place| format!("{key}{}{place}", self.separator)),
        }
    }
}

/// Codecs of the chunks of an array.
#[derive(Debug)]
struct ChunkCodecs {
    /// Elements per axis of the unit that is decoded at once, without the axis of bytes of strings.
    chunk: Vec<u64>,
    /// Sharding of the files, if each of them holds many chunks.
    shards: Option<Sharding>,
    /// Bytes-to-bytes codecs of the chunks, the last ones of the chain.
    packing: BytesCodecs,
    /// Codecs before these.
    chain: FilterChain,
}

impl ChunkCodecs {
    fn of_v2(document: &Value, form: ElementForm, chunk: Vec<u64>) -> Result<Self> {
        let mut codecs = listed(document.get("filters"));
        codecs.extend(document.get("compressor").filter(|c| c.is_object()).cloned());
        let packing = BytesCodecs::take_from(&mut codecs);
        let mut document = document.clone();
        document["filters"] = codecs.into();
        let chain = FilterChain::of_v2(&document, form, chunk.len())?;
        Ok(Self { chunk, shards: None, packing, chain })
    }

    /// `outer`: elements per axis of a file.
    fn of_v3(document: &Value, form: ElementForm, outer: Vec<u64>) -> Result<Self> {
        let codecs = listed(document.get("codecs"));
        let (chunk, shards, mut codecs) = match &codecs[..] {
            [only] if name(only) == "sharding_indexed" => {
                let (chunk, shards, codecs) = Sharding::of(only, &outer)?;
                (chunk, Some(shards), codecs)
            }
            _ => (outer, None, codecs),
        };
        let packing = BytesCodecs::take_from(&mut codecs);
        let chain = FilterChain::of_v3(&codecs, document.get("fill_value"), form, &chunk, 0)?;
        Ok(Self { chunk, shards, packing, chain })
    }
}

/// Known fields of an array document of version 3; any other must have `must_understand: false`.
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

fn check_v3(document: &Value) -> Result<()> {
    let grid = document.pointer("/chunk_grid/name").and_then(Value::as_str);
    if grid != Some("regular") {
        return Err(Error::unsupported(format!("chunk grid `{}`", grid.unwrap_or("unnamed"))));
    }
    if let Some(transformer) = listed(document.get("storage_transformers")).first() {
        return Err(Error::unsupported(format!("storage transformer `{}`", name(transformer))));
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
