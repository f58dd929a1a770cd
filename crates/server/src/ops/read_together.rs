//! Small reads that are ready together are answered together: one look-up of the data set, one memory reservation, one
//! call of the source, one lock of the connection. Each has its own end. Large reads are answered one by one
//! (`read.rs`).

use std::sync::Arc;

use array::{Dataset, Error, ReadRequest, Result, Target};
use futures::stream::StreamExt;
use link::Operation;
use wire::ops::{self, BlockPlace, ReadBody};

use super::{OperationCall, end, read};
use crate::answer_memory::MemoryReservation;
use crate::metrics;
use crate::stack::Stack;

/// Maximum number of reads in one task; beyond that, their common cost is negligible.
pub(super) const MAX_BATCHED_READS: usize = 256;
/// Maximum number of bytes of their results in memory at a time, unless one is larger: they stay in the processor's
/// cache until they are sent.
const MAX_PART_BYTES: u64 = 256 << 10;
/// Maximum number of elements in a small read: a row of 4,096 bytes of any type is small.
const MAX_SMALL_ELEMENTS: u64 = 16_384;

/// Returns whether a read need not be split into slabs, whatever the type of its elements.
pub(super) fn is_small(read: &ops::ReadParameters) -> bool {
    read.selection.len().is_some_and(|elements| (1..=MAX_SMALL_ELEMENTS).contains(&elements))
}

/// Answers small reads of one client and one priority.
pub(super) async fn answer_together(mut reads: Vec<(ops::ReadParameters, OperationCall)>) {
    while let Some((first, call)) = reads.first() {
        let (place, node) = (first.place, Arc::clone(&call.node));
        let (here, elsewhere) = reads.into_iter().partition(|(read, _)| read.place == place);
        reads = elsewhere;
        match node.exports.at(&place).await {
            Ok((stack, dataset)) => answer_at(&stack, &dataset, here).await,
            Err(error) => here.iter().for_each(|(_, call)| end(call, Err(error.clone()))),
        }
    }
}

/// A read that is valid for its array, and the size of its result in bytes.
struct SmallReadCall {
    read: ops::ReadParameters,
    call: OperationCall,
    item_bytes: usize,
    size_bytes: u64,
}

/// Answers reads of one place, a part of them at a time.
async fn answer_at(stack: &Stack, dataset: &Dataset, reads: Vec<(ops::ReadParameters, OperationCall)>) {
    let (mut part, mut part_bytes) = (Vec::new(), 0);
    for (read, call) in reads {
        let most_bytes = call.node.answer_memory.own_bytes();
        let (item_bytes, size_bytes) = match sizes(dataset, &read) {
            Ok((_, size_bytes)) if size_bytes > most_bytes => {
                let answered = read::answer(read, &call).await;
                end(&call, answered);
                continue;
            }
            Ok(sizes) => sizes,
            Err(error) => {
                end(&call, Err(error));
                continue;
            }
        };
        if part_bytes + size_bytes > most_bytes.min(MAX_PART_BYTES) && !part.is_empty() {
            answer_part(stack, std::mem::take(&mut part)).await;
            part_bytes = 0;
        }
        part_bytes += size_bytes;
        part.push(SmallReadCall { read, call, item_bytes, size_bytes });
    }
    answer_part(stack, part).await;
}

/// Returns the sizes of an element and of the result, in bytes. Fails if the data set has no such array or level, or
/// the selection does not fit it.
fn sizes(
    dataset: &Dataset,
    ops::ReadParameters { place, selection }: &ops::ReadParameters,
) -> Result<(usize, u64)> {
    let array = dataset.array(place.array)?;
    selection.check(&array.level(place.level)?.shape)?;
    let item_bytes = array.dtype.size_bytes();
    Ok((item_bytes, selection.len().unwrap_or(u64::MAX).saturating_mul(item_bytes as u64)))
}

/// Answers reads whose results fit in memory together, in the order in which they complete.
async fn answer_part(stack: &Stack, mut part: Vec<SmallReadCall>) {
    let Some(memory) = enter(&mut part).await.map(Arc::new) else { return };
    let Some(first) = part.first() else { return };
    let (BlockPlace { array, level, .. }, item_bytes) = (first.read.place, first.item_bytes);
    let priority = first.call.operation.urgency().priority;
    let targets = match Target::many(part.iter().map(|small| &small.read.selection), item_bytes) {
        Ok(targets) => targets,
        Err(error) => return part.iter().for_each(|small| end(&small.call, Err(error.clone()))),
    };
    let sizes: Vec<u64> = part.iter().map(|small| small.size_bytes).collect();
    let begun = part.into_iter().zip(targets).map(|(small, (target, region))| {
        let request = ReadRequest { array, level, selection: small.read.selection, priority };
        ((request, region), Some((small.call, target)))
    });
    let (reads, mut waiting): (Vec<_>, Vec<_>) = begun.unzip();
    let body = ReadBody { offset_bytes: 0 }.encode();
    let (mut count, mut sum_bytes, mut node) = (0, 0, None);
    let mut ends = stack.source.read_many(reads).ready_chunks(MAX_BATCHED_READS);
    while let Some(ended) = ends.next().await {
        let (mut answers, mut permits) = (Vec::with_capacity(ended.len()), Vec::with_capacity(ended.len()));
        for (number, result) in ended {
            let Some((call, target)) = waiting.get_mut(number).and_then(Option::take) else { continue };
            match result.and_then(|()| target.into_bytes()) {
                Ok(bytes) => {
                    (count, sum_bytes) = (count + 1, sum_bytes + sizes[number]);
                    node.get_or_insert_with(|| Arc::clone(&call.node));
                    let OperationCall { operation, permit, .. } = call;
                    answers.push((operation, body.clone(), MemoryReservation::hold_part(&memory, bytes)));
                    permits.push(permit);
                }
                Err(error) => end(&call, Err(error)),
            }
        }
        Operation::answer_all(answers).await;
        drop(permits);
    }
    if let Some(node) = node {
        metrics::add(&node.metrics.reads, count);
        metrics::add(&node.metrics.read_bytes, sum_bytes);
        tracing::debug!(array, level, count, bytes = sum_bytes, "small reads");
    }
    let unfinished = || Error::internal("a source did not finish a read");
    waiting.into_iter().flatten().for_each(|(call, _)| end(&call, Err(unfinished())));
}

/// Waits for room in the connection and for memory; reads that are withdrawn meanwhile are left out. `None` if all are.
async fn enter(part: &mut Vec<SmallReadCall>) -> Option<MemoryReservation> {
    loop {
        retain_wanted(part);
        let first = part.first()?;
        first.call.operation.room().await;
        if !first.call.operation.is_cancelled() {
            break;
        }
    }
    let size_bytes = part.iter().map(|small| small.size_bytes).sum();
    let memory = part.first()?.call.enter(size_bytes).await;
    retain_wanted(part);
    Some(memory)
}

fn retain_wanted(part: &mut Vec<SmallReadCall>) {
    Operation::retain_wanted(part, |small| &small.call.operation);
}
