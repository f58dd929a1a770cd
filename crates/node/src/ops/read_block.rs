//! `read_block`: one block. Its want follows the operation: more urgent, less urgent, withdrawn.

use std::sync::Arc;

use array::{Block, BlockKey, Content, Error, Result, want};
use bytes::Bytes;
use futures::StreamExt;
use link::Change;
use wire::ops::{self, BlockBody, BlockPlace};

use super::{Begun, Call, Handler};
use crate::assemble::Stack;
use crate::gate::Entry;

pub(super) struct ReadBlock;

impl Handler for ReadBlock {
    type Work = BlockKey;

    fn name(&self) -> &'static str {
        ops::READ_BLOCK
    }

    fn begin(&self, parameters: Bytes) -> Result<Begun<BlockKey>> {
        Ok(Begun::Work(ops::ReadBlock::decode(parameters)?.key))
    }

    async fn run(&self, key: BlockKey, call: &Call) -> Result<()> {
        answer(key, call).await
    }

    fn hears_changes(&self) -> bool {
        true
    }
}

async fn answer(key: BlockKey, call: &Call) -> Result<()> {
    let place =
        BlockPlace { dataset: key.dataset, generation: key.generation, array: key.array, level: key.level };
    let (stack, dataset) = call.node.exports.at(&place).await?;
    let size_bytes = dataset.block(key)?.size_bytes;
    call.operation.room().await;
    let memory = admitted(call, size_bytes).await?;
    let block = fetch(call, &stack, key).await?;
    let (body, bulk) = match &block.content {
        Content::NotCovered => (BlockBody::NotCovered, Bytes::new()),
        Content::Data { bytes, range } => (BlockBody::Data { range: *range }, memory.hold(bytes.clone())),
    };
    call.operation.answer(body.encode(), bulk).await
}

/// Waits at the gate with the priority of the moment.
async fn admitted(call: &Call, size_bytes: u64) -> Result<Entry> {
    let mut entry = call.node.gate.enter(call.client, call.operation.urgency(), size_bytes, size_bytes);
    loop {
        tokio::select! {
            biased;
            _ = entry.admitted() => return Ok(entry),
            change = call.operation.changed() => match change {
                Change::Adjusted(urgency) => entry.adjust(urgency),
                Change::Note(_) => {}
                Change::Cancelled => return Err(Error::cancelled()),
            },
        }
    }
}

async fn fetch(call: &Call, stack: &Stack, key: BlockKey) -> Result<Arc<Block>> {
    let (want, handle) = want(key, call.operation.urgency());
    let mut answers = stack.source.blocks(vec![want]);
    loop {
        tokio::select! {
            biased;
            answer = answers.next() => {
                return answer.ok_or_else(|| Error::internal("a source left a want unanswered"))?.result;
            }
            change = call.operation.changed() => match change {
                Change::Adjusted(urgency) => handle.adjust(urgency),
                Change::Note(_) => {}
                // Dropping the handle withdraws the want.
                Change::Cancelled => return Err(Error::cancelled()),
            },
        }
    }
}
