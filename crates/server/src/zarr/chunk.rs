//! One chunk: a block through the export's stack, padded to the full size that Zarr gives every chunk; or a byte range
//! of it, for which nothing else is read.

use std::ops::Range;

use array::{
    AxisRange, BlockKey, Dataset, Error, Priority, ReadRequest, Result, Selection, Source, Target, Urgency,
    c_strides, want,
};
use bytes::Bytes;
use export::output::zarr::whole_chunk;
use futures::StreamExt;

use super::files;
use super::range::boxes;
use super::tree::{ZarrChunk, chunk_bytes};
use crate::answer_memory::{AnswerMemory, ClientId};

/// Fetches the bytes of a chunk, which count toward the memory limit until they are sent; `None` if the chunk contains
/// no data.
///
/// # Errors
/// The errors of the source.
///
/// # Cancel safety
/// Dropping the future withdraws the want.
pub(super) async fn fetch(
    answer_memory: &AnswerMemory,
    client: ClientId,
    source: &dyn Source,
    dataset: &Dataset,
    chunk: &ZarrChunk,
) -> Result<Option<Bytes>> {
    let size_bytes = chunk_bytes(dataset, chunk.number, chunk.level)?;
    let mut memory = answer_memory.reserve(client, Urgency::of(Priority::NORMAL), size_bytes, size_bytes);
    memory.admitted().await;
    Ok(read(source, dataset, chunk).await?.map(|bytes| memory.hold(bytes)))
}

/// Reads the bytes of a chunk as [`fetch`] does, without counting them toward the memory limit.
///
/// # Errors
/// The errors of the source.
///
/// # Cancel safety
/// Dropping the future withdraws the want.
pub(super) async fn read(source: &dyn Source, dataset: &Dataset, chunk: &ZarrChunk) -> Result<Option<Bytes>> {
    let array = dataset.array(chunk.number)?;
    let (shown, item_bytes) = (array.level(chunk.level)?, array.dtype.size_bytes());
    if let Some(bytes) = files::text_bytes(array, shown) {
        return read_texts(source, dataset, chunk, bytes).await.map(Some);
    }
    let key = BlockKey {
        dataset: dataset.id,
        generation: dataset.generation,
        array: chunk.number,
        level: chunk.level,
        index: shown.block_index(&chunk.at),
    };
    let covered = dataset.block(key)?.selection.shape();
    let (want, _withdraws_when_dropped) = want(key, Urgency::of(Priority::NORMAL));
    let completion = source.blocks(vec![want]).next().await;
    let block = completion.ok_or_else(|| Error::internal("a source did not answer a want"))?.result?;
    let Some(bytes) = block.bytes() else { return Ok(None) };
    if covered == shown.block {
        return Ok(Some(bytes.clone()));
    }
    padded(&shown.block, &covered, item_bytes, bytes).map(|whole| Some(whole.into()))
}

/// Reads a chunk of texts as characters of four bytes, with as many characters per text as it has bytes.
async fn read_texts(source: &dyn Source, dataset: &Dataset, chunk: &ZarrChunk, bytes: u64) -> Result<Bytes> {
    let array = dataset.array(chunk.number)?;
    let level = array.level(chunk.level)?;
    let (shape, whole) = (files::shape(array, level), files::chunk_shape(array, level));
    let along = chunk.at.iter().zip(shape).zip(whole).map(|((&at, &n), &size)| {
        let start = at.saturating_mul(size).min(n);
        AxisRange::contiguous(start, size.min(n - start))
    });
    let selection = Selection::new(along.chain([AxisRange::contiguous(0, bytes)]))?;
    let inside = selection.shape();
    let (target, region) = Target::new(&inside, 1)?;
    let (array, level, priority) = (chunk.number, chunk.level, Priority::NORMAL);
    let mut ends = source.read_many(vec![(ReadRequest { array, level, selection, priority }, region)]);
    while let Some((_, end)) = ends.next().await {
        end?;
    }
    drop(ends);
    let (texts, width) = (target.into_vec()?, usize::try_from(bytes).unwrap_or(usize::MAX));
    let item_bytes = width.saturating_mul(4);
    let mut out = Vec::with_capacity(texts.len().saturating_mul(4));
    for (number, text) in texts.chunks_exact(width.max(1)).enumerate() {
        let text = String::from_utf8_lossy(text);
        let characters = text.trim_end_matches('\0').chars().take(width);
        out.extend(characters.flat_map(|c| u32::from(c).to_le_bytes()));
        out.resize((number + 1) * item_bytes, 0);
    }
    padded(whole, &inside[..inside.len() - 1], item_bytes, &out).map(Bytes::from)
}

/// Reads the bytes `range` of a chunk, which must lie within it.
///
/// # Errors
/// The errors of the source.
///
/// # Cancel safety
/// Dropping the future detaches the reads.
pub(super) async fn read_part(
    source: &dyn Source,
    dataset: &Dataset,
    chunk: &ZarrChunk,
    range: Range<u64>,
) -> Result<Bytes> {
    let array = dataset.array(chunk.number)?;
    let (shown, item_bytes) = (array.level(chunk.level)?, array.dtype.size_bytes());
    if let Some(bytes) = files::text_bytes(array, shown) {
        let place =
            |at: u64| usize::try_from(at).map_err(|_| Error::too_large("a chunk that exceeds memory"));
        let whole = read_texts(source, dataset, chunk, bytes).await?;
        return Ok(whole.slice(place(range.start)?..place(range.end)?));
    }
    let covered = shown.block_selection(shown.block_index(&chunk.at))?;
    let item = item_bytes as u64;
    let (mut reads, mut parts) = (Vec::new(), Vec::new());
    for (start, count) in boxes(&shown.block, range.start / item..range.end.div_ceil(item)) {
        let inside = clipped(&covered, &start, &count)?;
        let (target, region) = Target::new(&inside.shape(), item_bytes)?;
        parts.push((count, inside.shape(), target));
        if !inside.is_empty() {
            let (array, level, priority) = (chunk.number, chunk.level, Priority::NORMAL);
            reads.push((ReadRequest { array, level, selection: inside, priority }, region));
        }
    }
    let mut ends = source.read_many(reads);
    while let Some((_, end)) = ends.next().await {
        end?;
    }
    let mut bytes = Vec::new();
    for (count, inside, target) in parts {
        bytes.extend_from_slice(&padded(&count, &inside, item_bytes, &target.into_vec()?)?);
    }
    // The range may begin and end within elements.
    let (skipped, length) = (range.start % item, range.end - range.start);
    let place = |at: u64| usize::try_from(at).map_err(|_| Error::too_large("a chunk that exceeds memory"));
    Ok(Bytes::from(bytes).slice(place(skipped)?..place(skipped + length)?))
}

/// Clips a box of a chunk to the array.
fn clipped(covered: &Selection, start: &[u64], count: &[u64]) -> Result<Selection> {
    let along = covered.ranges().iter().zip(start).zip(count).map(|((range, &start), &count)| {
        AxisRange::contiguous(
            range.start + start.min(range.count),
            count.min(range.count.saturating_sub(start)),
        )
    });
    Selection::new(along)
}

/// Returns a box of zeros with elements at its origin.
fn padded(shape: &[u64], inside: &[u64], item_bytes: usize, elements: &[u8]) -> Result<Vec<u8>> {
    let sizes: Vec<usize> = inside.iter().map(|&n| usize::try_from(n).unwrap_or(usize::MAX)).collect();
    whole_chunk(shape, inside, item_bytes, elements, &c_strides(&sizes, item_bytes))
}

#[cfg(test)]
mod tests {
    use array::conformance::MemorySource;

    use super::*;

    #[tokio::test]
    async fn parts_equal_those_of_the_whole_and_nothing_else_is_read() {
        // The last chunks reach beyond the array.
        let source = MemorySource::counting("<u2", &[5, 7, 9], &[2, 4, 5]);
        let dataset = source.dataset();
        let item = 2;
        for at in [[0, 0, 0], [2, 0, 1], [1, 1, 1], [2, 1, 1]] {
            let chunk = ZarrChunk { number: 0, level: 0, at: at.to_vec() };
            let whole = read(&source, &dataset, &chunk).await.unwrap().unwrap();
            assert_eq!(whole.len() as u64, chunk_bytes(&dataset, 0, 0).unwrap());
            for range in [0..1, 0..80, 3..4, 7..33, 40..42, 79..80] {
                let before = source.reads().len();
                let part = read_part(&source, &dataset, &chunk, range.clone()).await.unwrap();
                let place = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
                assert_eq!(part, whole.slice(place), "{at:?} {range:?}");
                let read: u64 = source.reads()[before..].iter().map(|r| r.selection.len().unwrap()).sum();
                assert!(
                    read * item < range.end - range.start + 2 * item,
                    "{at:?} {range:?}: {read} elements"
                );
            }
        }
    }
}
