//! `read`: exactly the elements of a selection, in pieces.
//!
//! Read slab by slab, two at a time, so that reading and sending overlap; a slab is read only when there is room in
//! the connection and memory for it, and in smaller parts where others have taken the memory. So a request for more
//! than any machine holds costs the server nothing: pieces go as fast as they are taken.

use std::sync::Arc;

use array::{ReadRequest, Result, Selection, Target};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt, TryStreamExt};
use wire::ops::{self, ReadBody};

use super::{Call, Handler};
use crate::assemble::Stack;
use crate::gate::Entry;
use crate::slabs::Slabs;

/// Most bulk bytes of one item.
const PIECE_BYTES: usize = 4 << 20;
/// Most bytes read at a time: whole chunks where possible, so that none is decoded twice.
const SLAB_BYTES: u64 = 32 << 20;
/// Slabs under way in one operation.
const SLABS_UNDER_WAY: usize = 2;

pub(super) struct Read;

impl Handler for Read {
    fn name(&self) -> &'static str {
        ops::READ
    }

    fn answer(&self, call: Arc<Call>) -> BoxFuture<'static, Result<()>> {
        async move { answer(&call).await }.boxed()
    }
}

async fn answer(call: &Call) -> Result<()> {
    let ops::Read { place, selection } = ops::Read::decode(call.operation.parameters())?;
    let (stack, dataset) = call.node.exports.at(&place).await?;
    let array = dataset.array(place.array)?;
    selection.check(&array.level(place.level)?.shape)?;
    let item_bytes = array.dtype.size_bytes();
    let shape = selection.shape();
    // A lone client may hold half of the gate: two slabs.
    let most = (call.node.gate.capacity_bytes() / 4).clamp(call.node.gate.own_bytes(), SLAB_BYTES);
    let chunk = array.chunk.as_deref().filter(|_| place.level == 0);
    let slabs = Slabs::new(&selection, item_bytes, chunk, most);
    let read = Reading { call, stack: &stack, array: place.array, level: place.level, item_bytes, chunk };
    stream::iter(slabs)
        .map(|slab| {
            let offset = slab.offset_bytes(&shape, item_bytes);
            read.slab(slab.selection, offset)
        })
        .buffer_unordered(SLABS_UNDER_WAY)
        .try_collect::<()>()
        .await
}

struct Reading<'a> {
    call: &'a Call,
    stack: &'a Stack,
    array: u32,
    level: u8,
    item_bytes: usize,
    chunk: Option<&'a [u64]>,
}

impl Reading<'_> {
    /// Reads and sends a slab whose first byte is that of the answer at `offset_bytes`, in as many parts as memory
    /// demands.
    async fn slab(&self, selection: Selection, offset_bytes: u64) -> Result<()> {
        let size = selection.len().unwrap_or(u64::MAX).saturating_mul(self.item_bytes as u64);
        let mut memory = self.call.enter(size).await;
        let granted = memory.admitted().await;
        if granted >= size {
            return self.part(selection, offset_bytes, memory).await;
        }
        let shape = selection.shape();
        let mut parts = Slabs::new(&selection, self.item_bytes, self.chunk, granted)
            .map(|part| (offset_bytes + part.offset_bytes(&shape, self.item_bytes), part.selection));
        if let Some((offset, first)) = parts.next() {
            self.part(first, offset, memory).await?;
        }
        for (offset, part) in parts {
            Box::pin(self.slab(part, offset)).await?;
        }
        Ok(())
    }

    /// Reads and sends what fits into `memory`, which is held until the peer took it.
    async fn part(&self, selection: Selection, offset_bytes: u64, memory: Entry) -> Result<()> {
        let (target, region) = Target::new(&selection.shape(), self.item_bytes)?;
        let request = ReadRequest {
            array: self.array,
            level: self.level,
            selection,
            priority: self.call.operation.urgency().priority,
        };
        self.stack.source.read(request, region).await?;
        let mut rest = memory.hold(target.into_vec()?);
        let mut at = offset_bytes;
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE_BYTES));
            let body = ReadBody { offset_bytes: at }.encode();
            at += piece.len() as u64;
            self.call.operation.item(body, piece).await?;
        }
        Ok(())
    }
}
