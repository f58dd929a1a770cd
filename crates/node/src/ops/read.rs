//! `read`: exactly the elements of a selection, in pieces.
//!
//! Read slab by slab, two at a time, so that reading and sending overlap; a slab is read only when there is room in
//! the connection and memory for it, and in smaller parts where others have taken the memory. So a request for more
//! than any machine holds costs the server nothing: pieces go as fast as they are taken.

use array::{ReadRequest, Result, Selection, Target};
use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use wire::ops::{self, BlockPlace, ReadBody};

use super::read_together::{MAX_TOGETHER, answer_together, is_small};
use super::{Begun, Call, Handler};
use crate::assemble::Stack;
use crate::gate::Entry;
use crate::slabs::{Slab, slabs};

/// Most bulk bytes of one item.
const PIECE_BYTES: usize = 4 << 20;
/// Most bytes read at a time: whole chunks where possible, so that none is decoded twice. Small enough that allocators
/// hand the same memory out again, instead of having its pages made and cleared each time.
const SLAB_BYTES: u64 = 8 << 20;
/// Most stretches of the result that are open at a time because chunks are followed. Half of it must fit what clients
/// keep (see docs/wire.md). A chunk with more rows is read in parts, one decoding per so many rows.
const MAX_STRETCHES: u64 = 16_384;
/// Slabs under way in one operation.
const SLABS_UNDER_WAY: usize = 2;

pub(super) struct Read;

impl Handler for Read {
    type Work = ops::Read;

    fn name(&self) -> &'static str {
        ops::READ
    }

    fn begin(&self, parameters: Bytes) -> Result<Begun<ops::Read>> {
        let read = ops::Read::decode(parameters)?;
        Ok(if is_small(&read) { Begun::Together(read) } else { Begun::Work(read) })
    }

    fn most_together(&self) -> usize {
        MAX_TOGETHER
    }

    async fn run_together(&self, reads: Vec<(ops::Read, Call)>) {
        answer_together(reads).await;
    }

    async fn run(&self, read: ops::Read, call: &Call) -> Result<()> {
        answer(read, call).await
    }
}

/// Answers one read.
pub(super) async fn answer(ops::Read { place, selection }: ops::Read, call: &Call) -> Result<()> {
    let (stack, dataset) = call.node.exports.at(&place).await?;
    let array = dataset.array(place.array)?;
    let level = array.level(place.level)?;
    selection.check(&level.shape)?;
    let item_bytes = array.dtype.size_bytes();
    // A lone client may hold half of the gate: two slabs.
    let most = (call.node.gate.capacity_bytes() / 4).clamp(call.node.gate.own_bytes(), SLAB_BYTES);
    let grain = level.grain().map(|grain| with_few_rows(grain, &selection));
    let slabs = slabs(&selection, item_bytes, grain.as_deref(), most);
    let read = Reading { call, stack: &stack, place, shape: selection.shape(), item_bytes, grain };
    stream::iter(slabs)
        .map(|slab| read.slab(slab))
        .buffer_unordered(SLABS_UNDER_WAY)
        .try_collect::<()>()
        .await
}

/// A grain, made flatter along the slow axes until it has at most [`MAX_STRETCHES`] rows.
fn with_few_rows(grain: &[u64], selection: &Selection) -> Vec<u64> {
    let mut grain = grain.to_vec();
    for axis in 0..grain.len().saturating_sub(1) {
        let selected = grain.iter().zip(selection.ranges()).map(|(&g, r)| g.div_ceil(r.step).min(r.count));
        let rows = selected.take(grain.len() - 1).fold(1, u64::saturating_mul);
        grain[axis] = (grain[axis] / rows.div_ceil(MAX_STRETCHES).max(1)).max(1);
    }
    grain
}

struct Reading<'a> {
    call: &'a Call,
    stack: &'a Stack,
    place: BlockPlace,
    /// Of the result.
    shape: Vec<u64>,
    item_bytes: usize,
    grain: Option<Vec<u64>>,
}

impl Reading<'_> {
    /// Reads and sends a slab, in as many parts as memory demands.
    async fn slab(&self, slab: Slab) -> Result<()> {
        let size = slab.selection.len().unwrap_or(u64::MAX).saturating_mul(self.item_bytes as u64);
        let mut memory = self.call.enter(size).await;
        let granted = memory.admitted().await;
        if granted >= size {
            return self.part(slab, memory).await;
        }
        let mut parts = slab.parts(self.item_bytes, self.grain.as_deref(), granted);
        if let Some(first) = parts.next() {
            self.part(first, memory).await?;
        }
        for part in parts {
            Box::pin(self.slab(part)).await?;
        }
        Ok(())
    }

    /// Reads and sends what fits into `memory`, which is held until the peer took it.
    async fn part(&self, slab: Slab, memory: Entry) -> Result<()> {
        let (stretch_bytes, offsets) = slab.stretches(&self.shape, self.item_bytes);
        let (target, region) = Target::new(&slab.selection.shape(), self.item_bytes)?;
        let request = ReadRequest {
            array: self.place.array,
            level: self.place.level,
            selection: slab.selection,
            priority: self.call.operation.urgency().priority,
        };
        self.stack.source.read(request, region).await?;
        let mut rest = memory.hold(target.into_vec()?);
        for offset in offsets {
            // Of a slab in memory.
            let stretch = rest.split_to(usize::try_from(stretch_bytes).unwrap_or(usize::MAX).min(rest.len()));
            self.send(stretch, offset).await?;
        }
        Ok(())
    }

    /// Of the whole result.
    fn size_bytes(&self) -> u64 {
        self.shape.iter().fold(self.item_bytes as u64, |n, &count| n.saturating_mul(count))
    }

    /// Sends one stretch of the result that begins at byte `offset`.
    async fn send(&self, mut stretch: Bytes, mut offset: u64) -> Result<()> {
        while !stretch.is_empty() {
            let piece = stretch.split_to(stretch.len().min(PIECE_BYTES));
            let body = ReadBody { offset_bytes: offset }.encode();
            offset += piece.len() as u64;
            if piece.len() as u64 == self.size_bytes() {
                return self.call.operation.answer(body, piece).await;
            }
            self.call.operation.item(body, piece).await?;
        }
        Ok(())
    }
}
