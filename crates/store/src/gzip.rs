//! The inside of a gzip file, read at any position without unpacking the whole each time.
//!
//! The first read unpacks once from end to end, checks the checksums, and notes restart points: places in the
//! packed stream, about one per MiB of output, with the 32 KiB before them that decoding needs. Later reads
//! decode from the nearest point. Points are kept in the side cache where there is one. Decoded
//! stretches are kept for the next read, within a bound.
//!
//! ```text
//! inflate   zlib, stopping at block boundaries        decoder   members, headers, checksums, resuming
//! index     restart points, built and kept            segments  decoded stretches kept in memory
//! ```

mod decoder;
mod index;
mod inflate;
mod segments;

use std::io::Read;
use std::sync::Arc;

use array::{Error, LongWork, Result, Task};
use parking_lot::Mutex;

use self::decoder::Decoder;
use self::index::Index;
use self::segments::Segments;
use crate::{ByteStore, FileBytes, IoCounts, OnProgress, OpenOptions, Progress, SideCache};

/// Longest stretch that is kept decoded; longer ones (of streams without block boundaries) are decoded as needed.
const MAX_SEGMENT_BYTES: u64 = 8 << 20;
/// What the index is called in the side cache; where the stream starts follows.
const INDEX_NAME: &str = "gzip-points";
/// Scratch for output that is thrown away.
const SCRATCH_BYTES: usize = 64 << 10;

/// Whether these are the first bytes of a gzip stream.
pub(crate) fn recognises(head: &[u8]) -> bool {
    head.starts_with(&[0x1f, 0x8b])
}

/// The first bytes of the inside, as far as `head` and `limit` reach; to recognise what is inside.
pub(crate) fn peek(head: &[u8], limit: usize) -> Vec<u8> {
    let mut inside = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(head).take(limit as u64);
    // An error is the end of what can be seen: whoever opens the file will say what is wrong.
    drop(reader.read_to_end(&mut inside));
    inside
}

/// The inside of a gzip file.
pub struct GzipBytes {
    file: Arc<FileBytes>,
    start: u64,
    side: Option<SideCache>,
    on_progress: Option<OnProgress>,
    work: LongWork,
    index: Mutex<Option<Result<Arc<Index>>>>,
    segments: Segments,
}

impl GzipBytes {
    /// The stream that begins at byte `start` of `file`. Reads nothing yet.
    #[must_use]
    pub fn new(file: Arc<FileBytes>, start: u64, options: &OpenOptions) -> Self {
        Self {
            file,
            start,
            side: options.side_cache(),
            on_progress: options.on_progress.clone(),
            work: options.work.clone(),
            index: Mutex::new(None),
            segments: Segments::default(),
        }
    }

    /// The index: from memory, from the side directory, or built now, by one thread while others wait.
    fn index(&self) -> Result<Arc<Index>> {
        let mut index = self.index.lock();
        index.get_or_insert_with(|| self.load_or_build().map(Arc::new)).clone()
    }

    fn load_or_build(&self) -> Result<Index> {
        let id = self.file.dataset_id();
        let name = format!("{INDEX_NAME}-{}", self.start);
        let kept = self.side.as_ref().and_then(|side| side.get(id, &name));
        if let Some(index) = kept.and_then(|bytes| Index::decode(&bytes)) {
            return Ok(index);
        }
        let index = Index::build(&self.file, self.start, &|done_bytes| self.tell(done_bytes), &self.segments);
        self.work.end(Task::Indexing);
        let index = index?;
        let side = self.side.as_ref().filter(|_| !index.is_cut);
        if let Some(Err(error)) = side.map(|side| side.put(id, &name, &index.encode())) {
            tracing::warn!(%error, "the gzip index cannot be kept; it will be made again next time");
        }
        Ok(index)
    }

    /// Says how far indexing is: to whoever opened the file, and to viewers.
    fn tell(&self, done_bytes: u64) {
        let total_bytes = self.file.size_bytes();
        self.work.set(Task::Indexing, done_bytes, total_bytes);
        if let Some(tell) = &self.on_progress {
            tell(Progress { what: format!("indexing {}", self.file.name()), done_bytes, total_bytes });
        }
    }

    /// Decodes segment `number` whole.
    fn decode_segment(&self, index: &Index, number: usize) -> Result<Vec<u8>> {
        let (start, end) = index.span(number);
        let size = usize::try_from(end - start).map_err(|_| Error::internal("a segment exceeds memory"))?;
        let mut segment = vec![0; size];
        let mut decoder = self.resume(index, number)?;
        decoder.fill(&mut segment)?;
        Ok(segment)
    }

    fn resume(&self, index: &Index, number: usize) -> Result<Decoder<'_>> {
        let point = &index.points[number];
        Decoder::resume(&self.file, point.packed, point.bits, &point.window()?)
    }

    /// Fills `into` from the long segment `number` on, skipping `skip` bytes of it.
    fn decode_part(&self, index: &Index, number: usize, skip: u64, into: &mut [u8]) -> Result<()> {
        let mut decoder = self.resume(index, number)?;
        let mut scratch = vec![0; SCRATCH_BYTES];
        let mut left = skip;
        while left > 0 {
            let size = usize::try_from(left).unwrap_or(usize::MAX).min(SCRATCH_BYTES);
            decoder.fill(&mut scratch[..size])?;
            left -= size as u64;
        }
        decoder.fill(into)
    }
}

impl ByteStore for GzipBytes {
    fn size_bytes(&self) -> u64 {
        u64::MAX
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let index = self.index()?;
        let end = offset.checked_add(into.len() as u64).filter(|&end| end <= index.size_bytes);
        if end.is_none() {
            let why = if index.is_cut { "the file is cut short" } else { "its header promises more" };
            return Err(Error::corrupt(format!(
                "expected {} bytes at {offset} of the unpacked data, found {} in all: {why}: `{}`",
                into.len(),
                index.size_bytes,
                self.file.path().display()
            )));
        }
        let (mut at, mut rest) = (offset, into);
        while !rest.is_empty() {
            let number = index.segment_at(at);
            let (start, end) = index.span(number);
            let here = usize::try_from(end - at).unwrap_or(usize::MAX).min(rest.len());
            let (now, later) = rest.split_at_mut(here);
            if end - start > MAX_SEGMENT_BYTES {
                self.decode_part(&index, number, at - start, now)?;
            } else {
                let segment =
                    self.segments.get(number, end - start, || self.decode_segment(&index, number))?;
                let first = usize::try_from(at - start).unwrap_or(usize::MAX);
                now.copy_from_slice(&segment[first..first + here]);
            }
            at += here as u64;
            rest = later;
        }
        Ok(())
    }

    fn counts(&self) -> IoCounts {
        self.file.counts()
    }
}

#[cfg(test)]
mod tests;
