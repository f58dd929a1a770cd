//! `read_block`: one block. Its want follows the operation: more urgent, less urgent, withdrawn.

use std::sync::Arc;

use array::{Block, BlockKey, Content, Error, Result, want};
use bytes::Bytes;
use futures::StreamExt;
use link::OperationChange;
use wire::compression::Compressed;
use wire::ops::{self, BlockBody, BlockPlace};

use super::{BeginOutcome, Handler, OperationCall};
use crate::answer_memory::MemoryReservation;
use crate::response_compression::ArrayKey;
use crate::stack::Stack;

/// Answers `read_block`: one block.
pub struct ReadBlockHandler;

impl Handler for ReadBlockHandler {
    type Work = BlockKey;

    fn name(&self) -> &'static str {
        ops::READ_BLOCK
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<BlockKey>> {
        Ok(BeginOutcome::Work(ops::ReadBlockParameters::decode(parameters)?.key))
    }

    async fn run(&self, key: BlockKey, call: &OperationCall) -> Result<()> {
        answer(key, call).await
    }

    fn handles_changes(&self) -> bool {
        true
    }
}

async fn answer(key: BlockKey, call: &OperationCall) -> Result<()> {
    let place =
        BlockPlace { dataset: key.dataset, generation: key.generation, array: key.array, level: key.level };
    let (stack, dataset) = call.node.exports.at(&place).await?;
    let size_bytes = dataset.block(key)?.size_bytes;
    let item_bytes = dataset.array(key.array)?.dtype.size_bytes();
    call.operation.room().await;
    // During compression, both copies are in memory.
    let copies = if call.compression.may_compress() { 2 } else { 1 };
    let memory = admitted(call, size_bytes.saturating_mul(copies)).await?;
    let block = fetch(call, &stack, key).await?;
    let kind = ArrayKey { dataset: key.dataset, array: key.array, item_bytes };
    let (body, bulk) = match &block.content {
        Content::NotCovered => (BlockBody::NotCovered.encode(), Bytes::new()),
        Content::Data { bytes, range } => {
            call.compression.sample(kind, bytes, call.operation.urgency().priority).await?;
            call.compression.room(kind).await;
            let (how, bulk) = carried(call, kind, bytes.clone(), memory).await?;
            (BlockBody::Data { range: *range }.encode_with(how), bulk)
        }
    };
    // Other responses may have been queued during the compression.
    call.compression.room(kind).await;
    call.operation.answer(body, call.compression.measured(kind, bulk)).await?;
    call.count_reads(1, size_bytes);
    tracing::trace!(array = key.array, level = key.level, index = key.index, bytes = size_bytes, "block");
    Ok(())
}

/// Returns the bytes in the form in which they are sent.
async fn carried(
    call: &OperationCall,
    kind: ArrayKey,
    bytes: Bytes,
    memory: MemoryReservation,
) -> Result<(Option<Compressed>, Bytes)> {
    let priority = call.operation.urgency().priority;
    if let Some(method) = call.compression.best_method(kind, &bytes)
        && let Some((how, carried)) = call.compression.compress(kind, method, bytes.clone(), priority).await?
    {
        return Ok((Some(how), memory.hold(carried)));
    }
    Ok((None, memory.hold(bytes)))
}

/// Waits for memory with the current priority.
async fn admitted(call: &OperationCall, size_bytes: u64) -> Result<MemoryReservation> {
    let mut reservation =
        call.node.answer_memory.reserve(call.client, call.operation.urgency(), size_bytes, size_bytes);
    loop {
        tokio::select! {
            biased;
            _ = reservation.admitted() => return Ok(reservation),
            change = call.operation.changed() => match change {
                OperationChange::Adjusted(urgency) => reservation.adjust(urgency),
                OperationChange::Note(_) => {}
                OperationChange::Cancelled => return Err(Error::cancelled()),
            },
        }
    }
}

async fn fetch(call: &OperationCall, stack: &Stack, key: BlockKey) -> Result<Arc<Block>> {
    let (want, handle) = want(key, call.operation.urgency());
    let mut answers = stack.source.blocks(vec![want]);
    loop {
        tokio::select! {
            biased;
            answer = answers.next() => {
                return answer.ok_or_else(|| Error::internal("a source did not answer a want"))?.result;
            }
            change = call.operation.changed() => match change {
                OperationChange::Adjusted(urgency) => handle.adjust(urgency),
                OperationChange::Note(_) => {}
                // Dropping the handle withdraws the want.
                OperationChange::Cancelled => return Err(Error::cancelled()),
            },
        }
    }
}
