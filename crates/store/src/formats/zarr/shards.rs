//! Shards: files that hold many chunks and an index of where each lies.
//!
//! Only the index is understood here; what the chunks hold is up to their codecs.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{Error, Result};
use parking_lot::Mutex;
use serde_json::Value;

use super::directory::{Directory, Place, StoredFile};

/// Most chunks of a shard: its index takes 16 bytes for each.
const MAX_INNER_CHUNKS: u64 = 1 << 20;
/// Most entries of indexes that are kept, all shards of an array together (16 bytes each).
const MAX_KEPT_ENTRIES: usize = 1 << 20;
/// Bytes of an index entry: offset and size.
const ENTRY_BYTES: usize = 16;
/// Bytes of the checksum that may follow the index.
const CHECKSUM_BYTES: usize = 4;
/// Offset and size of a chunk that was never written.
const MISSING: (u64, u64) = (u64::MAX, u64::MAX);

/// Offset and size of every chunk of a shard, C order.
type Index = Arc<Vec<(u64, u64)>>;

/// How the shards of an array are laid out.
#[derive(Debug)]
pub(super) struct Shards {
    /// Chunks per shard and axis.
    grid: Vec<u64>,
    /// A checksum follows the index.
    checksum: bool,
    /// Numbers of the index have their highest byte first.
    is_big_endian: bool,
    /// The index is at the end of the file, else at its start.
    at_end: bool,
    kept: Mutex<BTreeMap<String, Index>>,
}

impl Shards {
    /// From the configuration of the codec; `None` when the index is stored in an unusual way.
    ///
    /// # Errors
    /// `Unsupported` when a shard has too many chunks.
    pub(super) fn of(configuration: &Value, shard: &[u64], chunk: &[u64]) -> Result<Option<Self>> {
        let names = |codec: &Value| codec.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let codecs = configuration.get("index_codecs").and_then(Value::as_array);
        let codecs: Vec<&Value> = codecs.into_iter().flatten().collect();
        let order = codecs.first().and_then(|c| c.pointer("/configuration/endian")).and_then(Value::as_str);
        let checksum = match &codecs.iter().map(|c| names(c)).collect::<Vec<_>>()[..] {
            [bytes] if bytes == "bytes" => false,
            [bytes, sum] if bytes == "bytes" && sum == "crc32c" => true,
            _ => return Ok(None),
        };
        let at_end = configuration.get("index_location").and_then(Value::as_str) != Some("start");
        let grid: Vec<u64> = shard.iter().zip(chunk).map(|(s, c)| s / c).collect();
        let whole = shard.iter().zip(chunk).all(|(s, c)| s % c == 0);
        let is_big_endian = match order {
            Some("little") => false,
            Some("big") => true,
            _ => return Ok(None),
        };
        if !whole {
            return Ok(None);
        }
        if grid.iter().try_fold(1u64, |n, &g| n.checked_mul(g)).is_none_or(|n| n > MAX_INNER_CHUNKS) {
            return Err(Error::unsupported(format!("shards of more than {MAX_INNER_CHUNKS} chunks")));
        }
        Ok(Some(Self { grid, checksum, is_big_endian, at_end, kept: Mutex::default() }))
    }

    /// Place of the shard that holds a chunk, and the chunk's number in it.
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
    ) -> Result<Option<Place>> {
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
        Ok(Some(Place { file, offset, size_bytes }))
    }

    fn index(&self, file: &StoredFile, key: &str) -> Result<Index> {
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

    fn read_index(&self, file: &StoredFile) -> Result<Vec<(u64, u64)>> {
        let count = usize::try_from(self.grid.iter().product::<u64>()).unwrap_or(usize::MAX);
        let size = count * ENTRY_BYTES + if self.checksum { CHECKSUM_BYTES } else { 0 };
        let start = if self.at_end { file.size_bytes().checked_sub(size as u64) } else { Some(0) };
        let start = start.ok_or_else(|| {
            Error::corrupt(format!(
                "expected a shard with an index of {size} bytes, found {} in all",
                file.size_bytes()
            ))
        })?;
        let mut bytes = vec![0; size];
        file.read_at(start, &mut bytes)?;
        let (entries, sum) = bytes.split_at(count * ENTRY_BYTES);
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
