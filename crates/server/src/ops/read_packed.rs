//! Stored chunks are sent in their compressed form if the client can decompress it: they are not decoded here.

use array::{PackedChunk, ReadRequest, Result, Selection};
use export::read_slabs::{ReadSlab, slabs};
use futures::stream::{self, StreamExt, TryStreamExt};
use wire::compression::Compressed;
use wire::limits::MAX_ITEM_BULK_BYTES;
use wire::ops::ReadPiece;

use super::read::ReadCall;

/// Number of chunks in flight in one operation.
const CHUNKS_IN_FLIGHT: usize = 8;
/// Maximum number of rows of the result in one chunk. A client keeps track of 65,536 separate byte ranges; all chunks
/// in flight, and a complete row of chunks, have fewer.
const MAX_ROWS: u64 = 4_096;
/// Maximum number of chunks that are checked for one in a suitable form, before all are decoded here.
const MAX_CHECKED_CHUNKS: usize = 64;

impl ReadCall<'_> {
    /// Sends a selection chunk by chunk if chunks have a suitable stored form; otherwise returns false and sends
    /// nothing.
    pub(super) async fn send_stored_chunks(&self, chunk: &[u64], selection: &Selection) -> Result<bool> {
        if selection.ranges().iter().any(|range| range.step > 1) {
            return Ok(false);
        }
        let chunk_bytes = chunk.iter().fold(self.item_bytes as u64, |n, &size| n.saturating_mul(size));
        // The size that is decompressed from one item is limited too.
        if chunk_bytes > MAX_ITEM_BULK_BYTES {
            return Ok(false);
        }
        let boxes = || slabs(selection, self.item_bytes, Some(chunk), chunk_bytes);
        let whole = boxes().take(MAX_CHECKED_CHUNKS).find(|slab| slab.selection.shape() == chunk);
        let Some(whole) = whole.filter(|slab| self.rows(slab) <= MAX_ROWS) else { return Ok(false) };
        if !self.send_stored(&whole).await? {
            return Ok(false);
        }
        let others = boxes().filter(|slab| slab.selection != whole.selection);
        let each = stream::iter(others).map(|slab| self.send_stored_or_read(slab, chunk));
        each.buffer_unordered(CHUNKS_IN_FLIGHT).try_collect::<()>().await?;
        Ok(true)
    }

    fn rows(&self, slab: &ReadSlab) -> u64 {
        slab.stretches(&self.shape, self.item_bytes).1.count()
    }

    /// Sends a chunk in its stored form, or decodes it and sends the selected part.
    async fn send_stored_or_read(&self, slab: ReadSlab, chunk: &[u64]) -> Result<()> {
        if slab.selection.shape() == chunk && self.send_stored(&slab).await? {
            Ok(())
        } else {
            self.slab(slab).await
        }
    }

    /// Sends a chunk in its stored form; returns false if that is not possible.
    async fn send_stored(&self, slab: &ReadSlab) -> Result<bool> {
        let size_bytes = self.size_of(slab);
        let mut memory = self.call.enter(size_bytes).await;
        let packed = if memory.admitted().await < size_bytes { None } else { self.packed(slab).await? };
        let (Some(PackedChunk { bytes, packing, width }), Ok(plain_bytes)) =
            (packed, u32::try_from(size_bytes))
        else {
            return Ok(false);
        };
        let (_, rows) = slab.stretches(&self.shape, self.item_bytes);
        let how = Compressed { algorithm: packing.into(), width, plain_bytes };
        self.put(ReadPiece::Compressed(rows, how).encode(), memory.hold(bytes), size_bytes).await?;
        Ok(true)
    }

    /// Returns the stored form of a chunk, if the client can decompress it.
    async fn packed(&self, slab: &ReadSlab) -> Result<Option<PackedChunk>> {
        let request = ReadRequest {
            array: self.place.array,
            level: self.place.level,
            selection: slab.selection.clone(),
            priority: self.call.operation.urgency().priority,
        };
        let packed = self.stack.source.packed(&request).await?;
        Ok(packed.filter(|packed| self.call.compression.accepts(packed.packing)))
    }
}
