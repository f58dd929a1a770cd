//! One chunk: a block through the export's stack, padded to the full size that Zarr gives every chunk.

use array::{BlockKey, Dataset, Error, Priority, Result, Source, Urgency, c_strides, want};
use bytes::Bytes;
use futures::StreamExt;

use crate::assemble::Stack;
use crate::gate::{ClientId, Gate};
use crate::output::zarr::whole_chunk;

/// The bytes of a chunk, which stay counted at the gate until they are sent; `None` where the data cover nothing.
///
/// # Errors
/// The source's.
///
/// # Cancel safety
/// Dropping it withdraws the want.
pub(super) async fn fetch(
    gate: &Gate,
    client: ClientId,
    stack: &Stack,
    dataset: &Dataset,
    number: u32,
    level: u8,
    at: &[u64],
) -> Result<Option<Bytes>> {
    let shown = dataset.array(number)?.level(level)?;
    let item_bytes = dataset.array(number)?.dtype.size_bytes() as u64;
    let size_bytes = shown.block.iter().fold(item_bytes, |n, &b| n.saturating_mul(b));
    let mut memory = gate.enter(client, Urgency::of(Priority::NORMAL), size_bytes, size_bytes);
    memory.admitted().await;
    Ok(read(stack, dataset, number, level, at).await?.map(|bytes| memory.hold(bytes)))
}

/// The same, counted nowhere.
///
/// # Errors
/// The source's.
///
/// # Cancel safety
/// Dropping it withdraws the want.
pub(super) async fn read(
    stack: &Stack,
    dataset: &Dataset,
    number: u32,
    level: u8,
    at: &[u64],
) -> Result<Option<Bytes>> {
    let array = dataset.array(number)?;
    let (shown, item_bytes) = (array.level(level)?, array.dtype.size_bytes());
    let key = BlockKey {
        dataset: dataset.id,
        generation: dataset.generation,
        array: number,
        level,
        index: shown.block_index(at),
    };
    let covered = dataset.block(key)?.selection.shape();
    let (want, _withdraws_when_dropped) = want(key, Urgency::of(Priority::NORMAL));
    let completion = stack.source.blocks(vec![want]).next().await;
    let block = completion.ok_or_else(|| Error::internal("expected a block or why there is none"))?.result?;
    let Some(bytes) = block.bytes() else { return Ok(None) };
    if covered == shown.block {
        return Ok(Some(bytes.clone()));
    }
    let sizes: Vec<usize> = covered.iter().map(|&n| usize::try_from(n).unwrap_or(usize::MAX)).collect();
    let whole = whole_chunk(&shown.block, &covered, item_bytes, bytes, &c_strides(&sizes, item_bytes))?;
    Ok(Some(whole.into()))
}
