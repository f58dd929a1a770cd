//! `read`: exactly the elements of a selection, in pieces.
//!
//! The selection is read slab by slab, two at a time, so that reading and sending overlap. A slab is read only when
//! there is room in the connection and memory for it, and in smaller parts if other operations have taken the memory.
//! So a request for more data than fit in memory costs the server no more than others: pieces are sent as fast as the
//! client takes them.

use std::sync::Arc;

use array::{ReadRequest, Result, Selection, Target};
use bytes::Bytes;
use export::read_slabs::{ReadSlab, slabs};
use futures::stream::{self, StreamExt, TryStreamExt};
use wire::limits::MAX_PIECE_ROWS;
use wire::ops::{self, BlockPlace, ReadBody, ReadPiece, Rows};

use super::read_together::{MAX_BATCHED_READS, answer_together, is_small};
use super::{BeginOutcome, Handler, OperationCall};
use crate::answer_memory::MemoryReservation;
use crate::response_compression::{ArrayKey, MIN_COMPRESSED_BYTES};
use crate::stack::Stack;

/// Maximum number of bulk bytes in one item.
const PIECE_BYTES: usize = 4 << 20;
/// Maximum number of bytes read at a time: whole chunks if possible, so that no chunk is decoded twice. Small enough
/// that allocators reuse the memory instead of mapping and clearing its pages each time.
const SLAB_BYTES: u64 = 8 << 20;
/// Maximum number of rows of the result, which are separate byte ranges, in a slab that follows the chunks. Half of it
/// must be within the limit of clients (see docs/wire.md). A chunk with more rows is read in parts, and decoded once
/// per part.
const MAX_STRETCHES: u64 = 16_384;
/// Number of slabs in flight in one operation.
const SLABS_IN_FLIGHT: usize = 2;

/// Answers `read`: the elements of a selection.
pub struct ReadHandler;

impl Handler for ReadHandler {
    type Work = ops::ReadParameters;

    fn name(&self) -> &'static str {
        ops::READ
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<ops::ReadParameters>> {
        let read = ops::ReadParameters::decode(parameters)?;
        Ok(if is_small(&read) { BeginOutcome::Together(read) } else { BeginOutcome::Work(read) })
    }

    fn most_together(&self) -> usize {
        MAX_BATCHED_READS
    }

    async fn run_together(&self, reads: Vec<(ops::ReadParameters, OperationCall)>) {
        answer_together(reads).await;
    }

    async fn run(&self, read: ops::ReadParameters, call: &OperationCall) -> Result<()> {
        answer(read, call).await
    }
}

/// Answers one read.
pub(super) async fn answer(
    ops::ReadParameters { place, selection }: ops::ReadParameters,
    call: &OperationCall,
) -> Result<()> {
    let (stack, dataset) = call.node.exports.at(&place).await?;
    let array = dataset.array(place.array)?;
    let level = array.level(place.level)?;
    selection.check(&level.shape)?;
    let item_bytes = array.dtype.size_bytes();
    // A single client may take half of the memory: two slabs.
    let most =
        (call.node.answer_memory.capacity_bytes() / 4).clamp(call.node.answer_memory.own_bytes(), SLAB_BYTES);
    let grain = level.grain().map(|grain| with_few_rows(grain, &selection));
    let slabs = slabs(&selection, item_bytes, grain.as_deref(), most);
    let read = ReadCall { call, stack: &stack, place, shape: selection.shape(), item_bytes, grain };
    let begun = tokio::time::Instant::now();
    let is_sent = match &level.chunk {
        Some(chunk) if call.compression.accepts_stored_chunks() => {
            read.send_stored_chunks(chunk, &selection).await?
        }
        _ => false,
    };
    if !is_sent {
        let slabs = stream::iter(slabs).map(|slab| read.slab(slab));
        slabs.buffer_unordered(SLABS_IN_FLIGHT).try_collect::<()>().await?;
    }
    let bytes = read.size_bytes();
    call.count_reads(1, bytes);
    tracing::debug!(data = dataset.name, array = array.name, level = place.level, %selection, bytes, took = ?begun.elapsed(), "read");
    Ok(())
}

/// Returns a grain, flattened along the slow axes until it has at most [`MAX_STRETCHES`] rows.
fn with_few_rows(grain: &[u64], selection: &Selection) -> Vec<u64> {
    let mut grain = grain.to_vec();
    for axis in 0..grain.len().saturating_sub(1) {
        let selected = grain.iter().zip(selection.ranges()).map(|(&g, r)| g.div_ceil(r.step).min(r.count));
        let rows = selected.take(grain.len() - 1).fold(1, u64::saturating_mul);
        grain[axis] = (grain[axis] / rows.div_ceil(MAX_STRETCHES).max(1)).max(1);
    }
    grain
}

/// One read that is being answered.
pub(super) struct ReadCall<'a> {
    pub(super) call: &'a OperationCall,
    pub(super) stack: &'a Stack,
    pub(super) place: BlockPlace,
    /// Shape of the result.
    pub(super) shape: Vec<u64>,
    pub(super) item_bytes: usize,
    grain: Option<Vec<u64>>,
}

impl ReadCall<'_> {
    /// Reads and sends a slab, in as many parts as the available memory requires.
    pub(super) async fn slab(&self, slab: ReadSlab) -> Result<()> {
        let size = self.size_of(&slab);
        // During compression, both copies are in memory.
        let copies = if self.call.compression.may_compress() { 2 } else { 1 };
        let size = size.saturating_mul(copies);
        let mut memory = self.call.enter(size).await;
        let granted = memory.admitted().await;
        if granted >= size {
            return self.part(slab, memory).await;
        }
        let mut parts = slab.parts(self.item_bytes, self.grain.as_deref(), granted / copies);
        if let Some(first) = parts.next() {
            self.part(first, memory).await?;
        }
        for part in parts {
            Box::pin(self.slab(part)).await?;
        }
        Ok(())
    }

    /// Reads and sends the part that fits into `memory`, which is held until the client has taken it.
    async fn part(&self, slab: ReadSlab, memory: MemoryReservation) -> Result<()> {
        let (stretch_bytes, rows) = slab.stretches(&self.shape, self.item_bytes);
        let priority = self.call.operation.urgency().priority;
        let (target, region) = Target::new(&slab.selection.shape(), self.item_bytes)?;
        let request = ReadRequest {
            array: self.place.array,
            level: self.place.level,
            selection: slab.selection,
            priority,
        };
        self.stack.source.read(request, region).await?;
        let data = Bytes::from(target.into_vec()?);
        // The size of a slab in memory fits in `usize`.
        let stretch_bytes = usize::try_from(stretch_bytes).unwrap_or(usize::MAX);
        self.send_parts(stretch_bytes, rows, data, &Arc::new(memory)).await
    }

    /// Returns the size of a slab, in bytes.
    pub(super) fn size_of(&self, slab: &ReadSlab) -> u64 {
        slab.selection.len().unwrap_or(u64::MAX).saturating_mul(self.item_bytes as u64)
    }

    fn kind(&self) -> ArrayKey {
        ArrayKey { dataset: self.place.dataset, array: self.place.array, item_bytes: self.item_bytes }
    }

    /// Sends rows of the result in parts: short rows together, long ones split. The compression of each part is decided
    /// when there is room for it, by the speed of the link at that time.
    async fn send_parts(
        &self,
        row_bytes: usize,
        rows: Rows,
        mut data: Bytes,
        memory: &Arc<MemoryReservation>,
    ) -> Result<()> {
        let OperationCall { operation, compression, .. } = self.call;
        let kind = self.kind();
        compression.sample(kind, &data, operation.urgency().priority).await?;
        if row_bytes < MIN_COMPRESSED_BYTES && rows.count() <= MAX_PIECE_ROWS {
            compression.room(kind).await;
            return self.send_part(row_bytes, rows, data, memory).await;
        }
        for mut offset in rows {
            let mut row = data.split_to(row_bytes.min(data.len()));
            while !row.is_empty() {
                compression.room(kind).await;
                let part = row.split_to(row.len().min(compression.part_bytes(kind, PIECE_BYTES)));
                let part_bytes = part.len();
                self.send_part(part_bytes, Rows::one(offset), part, memory).await?;
                offset += part_bytes as u64;
            }
        }
        Ok(())
    }

    /// Sends rows compressed, or unchanged if compression does not pay.
    async fn send_part(
        &self,
        row_bytes: usize,
        rows: Rows,
        data: Bytes,
        memory: &Arc<MemoryReservation>,
    ) -> Result<()> {
        let OperationCall { operation, compression, .. } = self.call;
        let (kind, priority) = (self.kind(), operation.urgency().priority);
        if let Some(method) = compression.best_method(kind, &data)
            && let Some((how, carried)) = compression.compress(kind, method, data.clone(), priority).await?
        {
            let body = ReadPiece::Compressed(rows, how).encode();
            return self.put(body, MemoryReservation::hold_part(memory, carried), data.len() as u64).await;
        }
        self.send_rows(row_bytes, rows, MemoryReservation::hold_part(memory, data)).await
    }

    /// Sends rows of the result, one after another.
    async fn send_rows(&self, row_bytes: usize, rows: Rows, mut data: Bytes) -> Result<()> {
        for offset in rows {
            let row = data.split_to(row_bytes.min(data.len()));
            self.send(row, offset).await?;
        }
        Ok(())
    }

    /// Returns the size of the whole result, in bytes.
    fn size_bytes(&self) -> u64 {
        self.shape.iter().fold(self.item_bytes as u64, |n, &count| n.saturating_mul(count))
    }

    /// Sends one part of the result that begins at byte `offset`.
    async fn send(&self, mut stretch: Bytes, mut offset: u64) -> Result<()> {
        while !stretch.is_empty() {
            let piece = stretch.split_to(stretch.len().min(PIECE_BYTES));
            let body = ReadBody { offset_bytes: offset }.encode();
            let data_bytes = piece.len() as u64;
            offset += data_bytes;
            self.put(body, piece, data_bytes).await?;
        }
        Ok(())
    }

    /// Sends an item with this number of bytes of the result, and the end after the last one.
    pub(super) async fn put(&self, body: Bytes, bulk: Bytes, data_bytes: u64) -> Result<()> {
        let OperationCall { operation, compression, .. } = self.call;
        compression.room(self.kind()).await;
        let bulk = compression.measured(self.kind(), bulk);
        if data_bytes == self.size_bytes() {
            return operation.answer(body, bulk).await;
        }
        operation.item(body, bulk).await
    }
}
