//! Contents of a gzip file, read at any position without decompressing the whole file each time.
//!
//! The file is decompressed once from end to end: this verifies the checksums and records restart points, positions in the compressed
//! stream, about one per MiB of output, with the 32 KiB of output before them that decoding needs. Later reads decode from the
//! nearest point. Points are kept in the side cache if there is one. Decoded segments are kept for the next read as far as the
//! scratch budget allows.
//!
//! One storage thread makes the index; readers wait for it without a thread, and when none is left the work ends. An error of the
//! disk is not remembered: the next reader tries again.
//!
//! ```text
//! inflate   zlib, stopping at block boundaries        decoder   members, headers, checksums, resuming
//! index     restart points, made and kept
//! ```

mod decoder;
mod index;
mod inflate;

use std::io::Read;
use std::sync::Arc;

use array::{Error, LongTask, LongWork, Priority, Result};
use futures::future::{BoxFuture, FutureExt, WeakShared};
use parking_lot::Mutex;

use self::decoder::GzipDecoder;
use self::index::{GzipIndex, PointSpacing};
use crate::cache::chunk_cache::{ChunkStore, DecodedChunk};
use crate::schedule::once::Once;
use crate::schedule::pool::on_pool;
use crate::{
    ByteStore, CancelFlag, FileBytes, IoCounts, LongTaskProgress, OnProgress, OpenOptions, SideCache,
};

/// Longest decoded segment of a gzip file that is kept; longer ones (of streams without block boundaries) are decoded in parts.
const MAX_SEGMENT_BYTES: u64 = 8 << 20;
/// First part of the index's name in the side cache; the start of the stream follows.
const INDEX_NAME: &str = "gzip-points";
/// Bytes of the buffer for output that is discarded.
const DISCARD_BYTES: usize = 64 << 10;

/// Whether these are the first bytes of a gzip stream.
pub(crate) fn recognizes(head: &[u8]) -> bool {
    head.starts_with(&[0x1f, 0x8b])
}

/// First bytes of the decompressed contents, of all members, as far as `head` and `limit` reach; for the recognition of the format inside.
pub(crate) fn peek(head: &[u8], limit: usize) -> Vec<u8> {
    let mut inside = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(head).take(limit as u64);
    // An error ends the result: opening the file will report it.
    drop(reader.read_to_end(&mut inside));
    inside
}

/// Uncompressed contents of a gzip file.
pub struct GzipBytes(Arc<GzipInner>);

struct GzipInner {
    file: Arc<FileBytes>,
    start: u64,
    spacing: PointSpacing,
    side: Option<SideCache>,
    on_progress: Option<OnProgress>,
    work: LongWork,
    index: Once<GzipIndex>,
    /// Index that is being made, for other readers to wait for.
    flight: Mutex<Option<WeakShared<BoxFuture<'static, Result<()>>>>>,
    segments: ChunkStore,
}

impl GzipBytes {
    /// The stream that begins at byte `start` of `file`. Reads nothing yet.
    #[must_use]
    pub fn new(file: Arc<FileBytes>, start: u64, options: &OpenOptions) -> Self {
        Self::spaced(file, start, PointSpacing::default(), options)
    }

    fn spaced(file: Arc<FileBytes>, start: u64, spacing: PointSpacing, options: &OpenOptions) -> Self {
        Self(Arc::new(GzipInner {
            file,
            start,
            spacing,
            side: options.side_cache(),
            on_progress: options.on_progress.clone(),
            work: options.work.clone(),
            index: Once::default(),
            flight: Mutex::new(None),
            segments: ChunkStore::new(options.scratch.clone()),
        }))
    }
}

impl GzipInner {
    /// The index: from memory, from the side cache, or made now; by one thread at a time.
    fn index(&self, cancel: &CancelFlag) -> Result<&GzipIndex> {
        self.index.get_or_make(cancel, || self.load_or_build(cancel))
    }

    fn load_or_build(&self, cancel: &CancelFlag) -> Result<GzipIndex> {
        let id = self.file.dataset_id();
        let name = format!("{INDEX_NAME}-{}", self.start);
        let kept = self.side.as_ref().and_then(|side| side.get(id, &name));
        if let Some(index) = kept.and_then(|bytes| GzipIndex::decode(&bytes)) {
            return Ok(index);
        }
        let tell = |done_bytes| self.report_progress(done_bytes);
        let index = GzipIndex::build(&self.file, self.start, self.spacing, &tell, &self.segments, cancel);
        self.work.end(LongTask::Indexing);
        let index = index?;
        let side = self.side.as_ref().filter(|_| !index.is_cut);
        if let Some(Err(error)) = side.map(|side| side.put(id, &name, &index.encode())) {
            tracing::warn!(%error, "the gzip index cannot be kept; it will be made again next time");
        }
        Ok(index)
    }

    /// Reports the progress of indexing to the opener of the file and to viewers.
    fn report_progress(&self, done_bytes: u64) {
        let total_bytes = self.file.size_bytes();
        self.work.set(LongTask::Indexing, done_bytes, total_bytes);
        if let Some(tell) = &self.on_progress {
            tell(LongTaskProgress {
                what: format!("indexing {}", self.file.name()),
                done_bytes,
                total_bytes,
            });
        }
    }

    /// Segment `number`, which is no longer than [`longest_kept`](Self::longest_kept), decoded now unless it is kept.
    fn segment(&self, index: &GzipIndex, number: usize, cancel: &CancelFlag) -> Result<Arc<DecodedChunk>> {
        let (start, end) = index.span(number);
        let size = usize::try_from(end - start).map_err(|_| Error::internal("a segment exceeds memory"))?;
        self.segments.get(0, number as u64, size, cancel, || {
            let room = self.segments.scratch().reserve(end - start, end - start, cancel)?;
            let mut bytes = vec![0; size];
            self.resume(index, number)?.fill(&mut bytes)?;
            Ok(DecodedChunk::new(bytes, room))
        })
    }

    fn longest_kept(&self) -> u64 {
        MAX_SEGMENT_BYTES.min(self.segments.scratch().decoding_bytes() / 2)
    }

    fn resume(&self, index: &GzipIndex, number: usize) -> Result<GzipDecoder<'_>> {
        let point = &index.points[number];
        GzipDecoder::resume(&self.file, point.packed, point.bits, &point.window()?)
    }

    /// Fills `into` from the long segment `number` on, skipping `skip` bytes of it.
    fn decode_part(
        &self,
        index: &GzipIndex,
        number: usize,
        skip: u64,
        into: &mut [u8],
        cancel: &CancelFlag,
    ) -> Result<()> {
        let mut decoder = self.resume(index, number)?;
        let mut discarded = vec![0; DISCARD_BYTES];
        let mut left = skip;
        while left > 0 {
            cancel.check()?;
            let size = usize::try_from(left).unwrap_or(usize::MAX).min(DISCARD_BYTES);
            decoder.fill(&mut discarded[..size])?;
            left -= size as u64;
        }
        decoder.fill(into)
    }
}

impl ByteStore for GzipBytes {
    fn size_bytes(&self) -> u64 {
        u64::MAX
    }

    fn prepare(&self, priority: Priority) -> Option<BoxFuture<'static, Result<()>>> {
        if self.0.index.is_decided() {
            return None;
        }
        let mut flight = self.0.flight.lock();
        // One that ended without an index is not joined.
        let joined = flight.as_ref().and_then(WeakShared::upgrade).filter(|making| making.peek().is_none());
        if let Some(making) = joined {
            return Some(making.boxed());
        }
        let inside = Arc::clone(&self.0);
        let making = on_pool(priority, move |cancel| inside.index(cancel).map(drop)).boxed().shared();
        *flight = making.downgrade();
        Some(making.boxed())
    }

    fn read_at(&self, offset: u64, into: &mut [u8], cancel: &CancelFlag) -> Result<()> {
        let inside = &*self.0;
        let index = inside.index(cancel)?;
        let end = offset.checked_add(into.len() as u64).filter(|&end| end <= index.size_bytes);
        if end.is_none() {
            let why = if index.is_cut { "the file is cut short" } else { "its header promises more" };
            return Err(Error::corrupt(format!(
                "expected {} bytes at {offset} of the unpacked data, found {} in all: {why}: `{}`",
                into.len(),
                index.size_bytes,
                inside.file.path().display()
            )));
        }
        let (mut at, mut rest) = (offset, into);
        while !rest.is_empty() {
            let number = index.segment_at(at);
            let (start, end) = index.span(number);
            let here = usize::try_from(end - at).unwrap_or(usize::MAX).min(rest.len());
            let (now, later) = rest.split_at_mut(here);
            if end - start > inside.longest_kept() {
                inside.decode_part(index, number, at - start, now, cancel)?;
            } else {
                let segment = inside.segment(index, number, cancel)?;
                let first = usize::try_from(at - start).unwrap_or(usize::MAX);
                now.copy_from_slice(&segment[first..first + here]);
            }
            at += here as u64;
            rest = later;
        }
        Ok(())
    }

    fn counts(&self) -> IoCounts {
        self.0.file.counts()
    }
}

#[cfg(test)]
mod tests;
