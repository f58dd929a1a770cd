//! `read`: exactly the elements of a selection, in pieces.
//!
//! Read slab by slab, two at a time, so that reading and sending overlap; a slab is read only when there is memory for it
//! and room in the connection. So a request for more than any machine holds costs the server nothing: pieces go
//! as fast as they are taken.

use std::sync::Arc;

use array::{ReadRequest, Result, Target};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt, TryStreamExt};
use wire::ops::{self, ReadBody};

use super::{Call, Handler};
use crate::assemble::Stack;
use crate::slabs::{Slab, Slabs};

/// Most bulk bytes of one item.
const PIECE_BYTES: usize = 4 << 20;
/// Most bytes read at a time: whole chunks where possible, so that none is decoded twice.
const SLAB_BYTES: u64 = 32 << 20;
/// Least bytes that slabs are cut to by a small memory budget.
const MIN_SLAB_BYTES: u64 = 1 << 20;
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
    let most = (call.node.gate.capacity_bytes() / 8).clamp(MIN_SLAB_BYTES, SLAB_BYTES);
    let chunk = array.chunk.as_deref().filter(|_| place.level == 0);
    let read = Reading { call, stack: &stack, array: place.array, level: place.level, item_bytes };
    stream::iter(Slabs::new(&selection, item_bytes, chunk, most))
        .map(|slab| {
            let offset = slab.offset_bytes(&shape, item_bytes);
            read.one_slab(slab, offset)
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
}

impl Reading<'_> {
    async fn one_slab(&self, slab: Slab, offset_bytes: u64) -> Result<()> {
        let shape = slab.selection.shape();
        let size = slab.selection.len().unwrap_or(u64::MAX).saturating_mul(self.item_bytes as u64);
        let _memory = self.call.enter(size).await;
        let (target, region) = Target::new(&shape, self.item_bytes)?;
        let request = ReadRequest {
            array: self.array,
            level: self.level,
            selection: slab.selection,
            priority: self.call.operation.urgency().priority,
        };
        self.stack.source.read(request, region).await?;
        let mut rest = Bytes::from(target.into_vec()?);
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
