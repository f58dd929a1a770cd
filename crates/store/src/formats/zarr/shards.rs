//! Shards: files that hold many chunks and an index of their positions.
//!
//! Only the index is read here; the contents of chunks are decoded by their codecs.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{Error, Result};
use parking_lot::Mutex;
use serde_json::Value;

use super::directory::{Directory, FileRange, StoredFile};
use super::nodes::{chunk_sizes, listed};
use super::packing::name;

/// Most chunks of a shard: its index takes 16 bytes for each.
const MAX_INNER_CHUNKS: u64 = 1 << 20;
/// Most entries of indexes that are kept, all shards of an array together (16 bytes each).
const MAX_KEPT_ENTRIES: usize = 1 << 20;
/// Bytes of an index entry: offset and size.
const INDEX_ENTRY_BYTES: usize = 16;
/// Bytes of the checksum that may follow the index.
const CHECKSUM_BYTES: usize = 4;
/// Offset and size of a chunk that was never written.
const MISSING: (u64, u64) = (u64::MAX, u64::MAX);

/// Offset and size of every chunk of a shard, C order.
type ShardIndex = Arc<Vec<(u64, u64)>>;

/// Layout of the shards of an array.
#[derive(Debug)]
pub(super) struct Sharding {
    /// Chunks per shard and axis.
    grid: Vec<u64>,
    /// A checksum follows the index.
    checksum: bool,
    /// Numbers of the index have their highest byte first.
    is_big_endian: bool,
    /// The index is at the end of the file, else at its start.
    at_end: bool,
    kept: Mutex<BTreeMap<String, ShardIndex>>,
}

impl Sharding {
    /// Parses the codec `sharding_indexed` of shards of the given shape. Returns the shape of the inner chunks, and their codecs.
    ///
    /// # Errors
    /// `Corrupt` for chunks that are none; `Unsupported` when a shard has too many, or an index stored in an unusual way.
    pub(super) fn of(codec: &Value, shard: &[u64]) -> Result<(Vec<u64>, Self, Vec<Value>)> {
        let configuration = codec.get("configuration").unwrap_or(&Value::Null);
        let chunk = chunk_sizes(configuration.get("chunk_shape"), shard.len())?;
        let unusual = || Error::unsupported("index of shards in an unusual form");
        let codecs = listed(configuration.get("index_codecs"));
        let order = codecs.first().and_then(|c| c.pointer("/configuration/endian")).and_then(Value::as_str);
        let checksum = match codecs.iter().map(name).collect::<Vec<_>>()[..] {
            ["bytes"] => false,
            ["bytes", "crc32c"] => true,
            _ => return Err(unusual()),
        };
        let at_end = configuration.get("index_location").and_then(Value::as_str) != Some("start");
        let grid: Vec<u64> = shard.iter().zip(&chunk).map(|(s, c)| s / c).collect();
        let whole = shard.iter().zip(&chunk).all(|(s, c)| s % c == 0);
        let is_big_endian = match order {
            Some("little") => false,
            Some("big") => true,
            _ => return Err(unusual()),
        };
        if !whole {
            return Err(Error::corrupt(format!(
                "expected shards of whole chunks, found {chunk:?} in {shard:?}"
            )));
        }
        if grid.iter().try_fold(1u64, |n, &g| n.checked_mul(g)).is_none_or(|n| n > MAX_INNER_CHUNKS) {
            return Err(Error::unsupported(format!("shards of more than {MAX_INNER_CHUNKS} chunks")));
        }
        let shards = Self { grid, checksum, is_big_endian, at_end, kept: Mutex::default() };
        Ok((chunk, shards, listed(configuration.get("codecs"))))
    }

    /// Position of the shard that holds a chunk, and the number of the chunk in it.
    pub(super) fn place(&self, chunk: &[u64]) -> (Vec<u64>, usize) {
        let shard = chunk.iter().zip(&self.grid).map(|(c, g)| c / g).collect();
        let number = chunk.iter().zip(&self.grid).fold(0, |n, (c, g)| n * g + c % g);
        // Below `MAX_INNER_CHUNKS`.
        (shard, usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// Finds a chunk in its shard; `None` when it or its shard was never written.
    ///
    /// # Errors
    /// `Corrupt` when index or chunk lie outside the file, or the checksum is wrong.
    pub(super) fn chunk(
        &self,
        directory: &Directory,
        key: &str,
        number: usize,
        most_bytes: u64,
    ) -> Result<Option<FileRange>> {
        let Some(file) = directory.chunk_file(key)? else { return Ok(None) };
        let index = self.index(&file, key)?;
        let (offset, size_bytes) = index.get(number).copied().unwrap_or(MISSING);
        if (offset, size_bytes) == MISSING {
            return Ok(None);
        }
        let inside = offset.checked_add(size_bytes).is_some_and(|end| end <= file.size_bytes());
        if !inside || size_bytes > most_bytes {
            return Err(Error::corrupt(format!(
                "expected a chunk of at most {most_bytes} bytes in a shard of {}, found {size_bytes} at {offset}",
                file.size_bytes()
            )));
        }
        Ok(Some(FileRange { file, offset, size_bytes }))
    }

    fn index(&self, file: &StoredFile, key: &str) -> Result<ShardIndex> {
        if let Some(index) = self.kept.lock().get(key) {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(self.read_index(file)?);
        let mut kept = self.kept.lock();
        if kept.len().saturating_add(1).saturating_mul(index.len()) > MAX_KEPT_ENTRIES {
            kept.clear();
        }
        kept.insert(key.to_owned(), Arc::clone(&index));
        Ok(index)
    }

    /// Chunks of a shard per axis.
    pub(super) fn grid(&self) -> &[u64] {
        &self.grid
    }

    /// Bytes of an index.
    pub(super) fn index_bytes(&self) -> usize {
        let count = usize::try_from(self.grid.iter().product::<u64>()).unwrap_or(usize::MAX);
        count.saturating_mul(INDEX_ENTRY_BYTES) + if self.checksum { CHECKSUM_BYTES } else { 0 }
    }

    /// Returns the offset of the index in a shard of the given size, bytes.
    fn index_start(&self, shard_bytes: u64) -> Result<u64> {
        let size = self.index_bytes();
        let last = shard_bytes.checked_sub(size as u64).ok_or_else(|| {
            Error::corrupt(format!(
                "expected a shard with an index of {size} bytes, found {shard_bytes} in all"
            ))
        })?;
        Ok(if self.at_end { last } else { 0 })
    }

    fn read_index(&self, file: &StoredFile) -> Result<Vec<(u64, u64)>> {
        let mut bytes = vec![0; self.index_bytes()];
        file.read_at(self.index_start(file.size_bytes())?, &mut bytes)?;
        self.entries(&bytes)
    }

    /// The chunks of a shard in memory, C order; `None` for those that were never written.
    ///
    /// # Errors
    /// `Corrupt` when index or chunk lie outside the shard, or the checksum is wrong.
    pub(super) fn chunks_in<'a>(&self, shard: &'a [u8]) -> Result<Vec<Option<&'a [u8]>>> {
        let start = usize::try_from(self.index_start(shard.len() as u64)?).unwrap_or(usize::MAX);
        let index = shard.get(start..).and_then(|rest| rest.get(..self.index_bytes())).unwrap_or_default();
        let chunk = |(offset, size_bytes): (u64, u64)| {
            if (offset, size_bytes) == MISSING {
                return Ok(None);
            }
            let [offset, size] = [offset, size_bytes].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
            let found = shard.get(offset..).and_then(|rest| rest.get(..size));
            let beyond = || Error::corrupt("expected chunks within their shard, found one beyond its end");
            found.map(Some).ok_or_else(beyond)
        };
        self.entries(index)?.into_iter().map(chunk).collect()
    }

    fn entries(&self, index: &[u8]) -> Result<Vec<(u64, u64)>> {
        let sum_bytes = if self.checksum { CHECKSUM_BYTES } else { 0 };
        let (entries, sum) = index.split_at(index.len().saturating_sub(sum_bytes));
        if let Some(stored) = sum.first_chunk::<CHECKSUM_BYTES>() {
            let (stored, computed) = (u32::from_le_bytes(*stored), crc32c::crc32c(entries));
            if stored != computed {
                return Err(Error::corrupt(format!(
                    "expected the checksum {stored:08x} of a shard's index, found {computed:08x}"
                )));
            }
        }
        let read = if self.is_big_endian { u64::from_be_bytes } else { u64::from_le_bytes };
        let number = |raw: &[u8; 8]| read(*raw);
        let pairs = entries.as_chunks::<8>().0.as_chunks::<2>().0;
        Ok(pairs.iter().map(|[offset, size]| (number(offset), number(size))).collect())
    }
}
