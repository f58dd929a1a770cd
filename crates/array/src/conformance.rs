//! Checks of the contract of [`Source`]; every implementation runs them in its tests.
//!
//! [`check_source`] runs all of them; each is also a function of its own. They use no clock and need no particular executor, but
//! sources with threads or timers need theirs. They panic with the expected and the found value, like a test. Sources of any size can
//! be checked: of large levels some blocks are checked, evenly spread. [`MemorySource`] is the smallest source, with scripted faults,
//! for the tests of wrappers.

mod memory;

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;

pub use memory::{MemorySource, SourceGate, one_array};

use crate::{
    ArrayInfo, AxisRange, Block, BlockKey, Completion, Content, Dataset, ErrorKind, Generation, Level,
    Priority, ReadRequest, Scalar, Selection, Source, Target, Urgency, Want, WantHandle, gather, want,
};

/// Blocks of one level that are checked.
const SAMPLE_BLOCKS: u64 = 12;
/// Bytes of one level that are checked; at least one block is.
const SAMPLE_BYTES: u64 = 8 << 20;
/// Random selections read per level.
const SELECTIONS: u32 = 6;
/// Elements of such a selection along one axis.
const SELECTION_SIDE: u64 = 24;

/// Runs every check.
///
/// # Panics
/// Panics if the source breaks a promise.
pub async fn check_source(source: Arc<dyn Source>) {
    check_describe(&*source).await;
    check_blocks(&*source).await;
    check_bad_keys(&*source).await;
    check_cancel(&*source).await;
    check_reads(&source).await;
    check_bad_reads(&*source).await;
    check_detach(&*source).await;
}

/// The description is legal and stays the same.
///
/// # Panics
/// Panics if it is not.
pub async fn check_describe(source: &dyn Source) {
    let dataset = describe(source).await;
    dataset.check().expect("a legal description");
    assert_eq!(*dataset, *describe(source).await, "the description changed while nothing else did");
    for (number, array) in dataset.arrays.iter().enumerate() {
        for (l, level) in array.levels.iter().enumerate() {
            let finer = l.checked_sub(1).map_or(&level.shape, |finer| &array.levels[finer].shape);
            let follows =
                level.origin.is_quick_look() || level.shape.iter().zip(finer).all(|(n, finer)| n <= finer);
            assert!(follows, "array {number}: level {l} is larger than the finer one");
        }
        if !array.name.is_empty() && dataset.arrays.iter().filter(|a| a.name == array.name).count() == 1 {
            let (found, _) = dataset.find(&array.name).expect("every array is found by its name");
            assert_eq!(found as usize, number, "array `{}` is found under another number", array.name);
        }
    }
}

/// Every want is answered once, with the right size and a true value range.
///
/// # Panics
/// Panics if it is not.
pub async fn check_blocks(source: &dyn Source) {
    for (dataset, array, level) in levels(source).await {
        let keys = sample(&dataset, array, level);
        let info = &dataset.arrays[array];
        let blocks = fetch(source, &keys).await;
        for key in &keys {
            let block = blocks[key].result.as_ref().unwrap_or_else(|e| panic!("block {key:?}: {e:?}"));
            check_block(info, &info.levels[level], *key, block);
        }
        let again = fetch(source, &keys[..1]).await;
        assert_eq!(
            again[&keys[0]].result.as_ref().ok(),
            blocks[&keys[0]].result.as_ref().ok(),
            "the same block differs when it is asked for again"
        );
    }
}

fn check_block(info: &ArrayInfo, level: &Level, key: BlockKey, block: &Block) {
    assert_eq!(block.key, key, "a block carries another key than the one asked for");
    let Content::Data { bytes, range } = &block.content else { return };
    let shape = level.block_selection(key.index).expect("a legal index").shape();
    let expected = shape.iter().product::<u64>() * info.dtype.size_bytes() as u64;
    assert_eq!(bytes.len() as u64, expected, "size of block {key:?} of shape {shape:?}");
    let found = crate::values::stats::value_range(bytes, info.dtype, &info.decoding);
    let text = |s: Scalar| s.as_f64();
    let (found, told) =
        (found.map(|r| (text(r.min), text(r.max))), range.map(|r| (text(r.min), text(r.max))));
    assert_eq!(told, found, "value range of block {key:?}");
}

/// Wrong keys get their error, and do not disturb the others.
///
/// # Panics
/// Panics if they do.
pub async fn check_bad_keys(source: &dyn Source) {
    for (dataset, array, level) in levels(source).await {
        let good = sample(&dataset, array, level)[0];
        let blocks = dataset.arrays[array].levels[level].block_count();
        let bad = [
            (BlockKey { generation: Generation(good.generation.0 ^ 1), ..good }, ErrorKind::Stale),
            (BlockKey { dataset: crate::DatasetId(good.dataset.0 ^ 1), ..good }, ErrorKind::Stale),
            (BlockKey { index: blocks, ..good }, ErrorKind::Invalid),
            (BlockKey { index: u64::MAX, ..good }, ErrorKind::Invalid),
            (BlockKey { level: u8::MAX, ..good }, ErrorKind::Invalid),
            (BlockKey { array: u32::MAX, ..good }, ErrorKind::NotFound),
        ];
        let mut keys: Vec<BlockKey> = bad.iter().map(|(key, _)| *key).collect();
        keys.insert(2, good);
        let answers = fetch(source, &keys).await;
        assert!(answers[&good].result.is_ok(), "a good want failed beside bad ones: {:?}", answers[&good]);
        for (key, kind) in bad {
            let found = answers[&key].result.as_ref().err().map(crate::Error::kind);
            assert_eq!(found, Some(kind), "answer for the bad key {key:?}");
        }
    }
}

/// Checks that cancelled wants are answered at most once and that the stream still ends; a dropped stream has no effect on others.
///
/// # Panics
/// Panics if a want is answered twice, or one that still waits is not answered.
pub async fn check_cancel(source: &dyn Source) {
    for (dataset, array, level) in levels(source).await {
        let keys = sample(&dataset, array, level);
        let (wants, handles) = ask(&keys);
        let mut stream = source.blocks(wants);
        let (kept, cancelled): (Vec<_>, Vec<_>) =
            handles.into_iter().enumerate().partition(|(i, _)| i % 2 == 0);
        drop(cancelled);
        kept.iter().for_each(|(_, h)| h.adjust(Urgency::of(Priority::INTERACTIVE)));
        let mut answers = HashMap::new();
        while let Some(answer) = stream.next().await {
            assert!(answers.insert(answer.key, ()).is_none(), "{:?} was answered twice", answer.key);
        }
        for (_, handle) in &kept {
            assert!(answers.contains_key(&handle.key()), "{:?} was never answered", handle.key());
        }

        let (wants, _handles) = ask(&keys);
        let mut abandoned = source.blocks(wants);
        let _first = abandoned.next().await;
        drop(abandoned);
        assert!(fetch(source, &keys[..1]).await[&keys[0]].result.is_ok(), "after an abandoned stream");
    }
}

/// Checks that reads of random selections equal the same elements gathered from blocks.
///
/// # Panics
/// Panics if they do not.
pub async fn check_reads(source: &Arc<dyn Source>) {
    for (dataset, array, level) in levels(&**source).await {
        let info = &dataset.arrays[array];
        let shape = &info.levels[level].shape;
        let mut random = SplitMix64(0x5eed ^ (array as u64) << 8 ^ level as u64);
        let mut selections: Vec<Selection> = (0..SELECTIONS).map(|_| random.selection(shape)).collect();
        if !shape.is_empty() {
            selections.push(Selection::of_box(&vec![0; shape.len()], &vec![0; shape.len()]));
        }
        // All at once, and one among them that cannot be.
        let beyond = Selection::of_box(shape, &vec![1; shape.len()]);
        let wrong = (!shape.is_empty()).then(|| request(array, level, beyond));
        let all = selections.iter().map(|s| request(array, level, s.clone())).chain(wrong);
        let (reads, targets): (Vec<_>, Vec<_>) = all
            .map(|request| {
                let (target, region) = target(info, &request.selection);
                ((request, region), target)
            })
            .unzip();
        let mut together = bytes_of(source.read_many(reads).collect().await, targets);
        if !shape.is_empty() {
            assert!(together.pop().is_some_and(|r| r.is_err()), "a read outside of the array was answered");
        }
        for (selection, together) in selections.into_iter().zip(together) {
            let request = request(array, level, selection);
            let (direct, region) = target(info, &request.selection);
            source.read(request.clone(), region).await.unwrap_or_else(|e| panic!("{request:?}: {e:?}"));
            let (gathered, region) = target(info, &request.selection);
            let by_blocks = gather(Arc::clone(source), request.clone(), region).await;
            let direct = direct.into_vec().expect("every region was released");
            assert_eq!(together.as_ref(), Ok(&direct), "{request:?} differs from the same among others");
            match by_blocks {
                Ok(()) => {
                    assert!(
                        direct == gathered.into_vec().unwrap_or_default(),
                        "{request:?} differs from the blocks"
                    );
                }
                // Blocks that are not covered have nothing to be gathered.
                Err(e) => assert_eq!(e.kind(), ErrorKind::NotFound, "gathering {request:?}: {e:?}"),
            }
        }
    }
}

/// Returns the bytes or the error of each read, in the order of their numbers; asserts that each read ended
/// exactly once.
fn bytes_of(mut ends: Vec<(usize, crate::Result<()>)>, targets: Vec<Target>) -> Vec<crate::Result<Vec<u8>>> {
    ends.sort_by_key(|(number, _)| *number);
    let numbers: Vec<usize> = ends.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..targets.len()).collect::<Vec<_>>(), "each read ends once");
    let given = ends.into_iter().zip(targets);
    given.map(|((_, end), target)| end.and_then(|()| target.into_vec())).collect()
}

/// Reads that cannot be are refused with the right kind.
///
/// # Panics
/// Panics if they are not.
pub async fn check_bad_reads(source: &dyn Source) {
    let dataset = describe(source).await;
    for (array, info) in dataset.arrays.iter().enumerate().filter(|(_, a)| !a.axes.is_empty()) {
        let axes = info.axes.len();
        let one = Selection::of_box(&vec![0; axes], &vec![1; axes]);
        let outside = Selection::of_box(info.shape(), &vec![1; axes]);
        let flat = Selection::of_box(&vec![0; axes - 1], &vec![1; axes - 1]);
        let cases = [
            (request(array, 0, outside), ErrorKind::Invalid),
            (request(array, 0, flat), ErrorKind::Invalid),
            (request(array, 255, one.clone()), ErrorKind::Invalid),
            (ReadRequest { array: u32::MAX, ..request(array, 0, one) }, ErrorKind::NotFound),
        ];
        for (request, kind) in cases {
            let (_, region) = target(info, &request.selection);
            let found = source.read(request.clone(), region).await.err().map(|e| e.kind());
            assert_eq!(found, Some(kind), "answer to {request:?}");
        }
    }
}

/// Checks that a read dropped before or while it runs has no effect on others.
///
/// # Panics
/// Panics if the next read fails.
pub async fn check_detach(source: &dyn Source) {
    for (dataset, array, level) in levels(source).await {
        let info = &dataset.arrays[array];
        let mut random = SplitMix64(7);
        let request = request(array, level, random.selection(&info.levels[level].shape));
        let (_, region) = target(info, &request.selection);
        drop(source.read(request.clone(), region));
        let (_, region) = target(info, &request.selection);
        let mut begun = source.read(request.clone(), region);
        let _maybe_ready = futures::poll!(&mut begun);
        drop(begun);
        let (kept, region) = target(info, &request.selection);
        source.read(request, region).await.expect("a read after a dropped one");
        assert!(kept.into_vec().is_ok(), "a finished read released its target");
    }
}

async fn describe(source: &dyn Source) -> Arc<Dataset> {
    source.describe().await.expect("a description")
}

/// Lists the levels that have blocks.
async fn levels(source: &dyn Source) -> Vec<(Arc<Dataset>, usize, usize)> {
    let dataset = describe(source).await;
    let mut found = Vec::new();
    for (a, array) in dataset.arrays.iter().enumerate() {
        for (l, level) in array.levels.iter().enumerate() {
            if level.block_count() > 0 {
                found.push((Arc::clone(&dataset), a, l));
            }
        }
    }
    found
}

/// Keys spread over a level: first, last, and some between.
fn sample(dataset: &Dataset, array: usize, level: usize) -> Vec<BlockKey> {
    let info = &dataset.arrays[array];
    let count = info.levels[level].block_count();
    let block_bytes =
        info.levels[level].block.iter().fold(info.dtype.size_bytes() as u64, |n, &b| n.saturating_mul(b));
    let taken = SAMPLE_BLOCKS.min(SAMPLE_BYTES / block_bytes.max(1)).clamp(1, count);
    let spread = |i: u64| {
        let at = u128::from(count - 1) * u128::from(i) / u128::from((taken - 1).max(1));
        u64::try_from(at).unwrap_or(u64::MAX)
    };
    let mut indices: Vec<u64> = (0..taken).map(spread).collect();
    indices.dedup();
    let key = |index| BlockKey {
        dataset: dataset.id,
        generation: dataset.generation,
        array: u32::try_from(array).unwrap_or(u32::MAX),
        level: u8::try_from(level).unwrap_or(u8::MAX),
        index,
    };
    indices.into_iter().map(key).collect()
}

fn ask(keys: &[BlockKey]) -> (Vec<Want>, Vec<WantHandle>) {
    keys.iter().map(|key| want(*key, Urgency::of(Priority::NORMAL))).unzip()
}

/// Asks for all and takes every answer; each key exactly once.
///
/// # Panics
/// Panics if a key is answered twice or not at all.
pub async fn fetch(source: &dyn Source, keys: &[BlockKey]) -> HashMap<BlockKey, Completion> {
    let (wants, _handles) = ask(keys);
    let mut answers = HashMap::new();
    let mut stream = source.blocks(wants);
    while let Some(answer) = stream.next().await {
        assert!(keys.contains(&answer.key), "an answer for {:?}, which nobody wanted", answer.key);
        let before = answers.insert(answer.key, answer);
        assert!(before.is_none(), "{before:?} was answered twice");
    }
    assert_eq!(answers.len(), keys.len(), "wants answered of {keys:?}");
    answers
}

fn request(array: usize, level: usize, selection: Selection) -> ReadRequest {
    ReadRequest {
        array: u32::try_from(array).unwrap_or(u32::MAX),
        level: u8::try_from(level).unwrap_or(u8::MAX),
        selection,
        priority: Priority::NORMAL,
    }
}

fn target(info: &ArrayInfo, selection: &Selection) -> (Target, crate::Region) {
    Target::new(&selection.shape(), info.dtype.size_bytes()).expect("memory for a small selection")
}

/// `SplitMix64`: repeatable numbers without a dependency.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0.
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A selection of at least one element, with steps; at most [`SELECTION_SIDE`] on each of the last
    /// three axes and 3 on others.
    fn selection(&mut self, shape: &[u64]) -> Selection {
        let axes = shape.len();
        let ranges = shape.iter().enumerate().map(|(axis, &n)| {
            let longest = if axis + 3 >= axes { SELECTION_SIDE } else { 3 };
            let start = self.below(n);
            let step = match self.below(3) {
                0 => 1,
                1 => 1 + self.below(7),
                _ => 1 + self.below(n),
            };
            let fitting = (n - start).div_ceil(step);
            AxisRange { start, count: 1 + self.below(fitting.min(longest)), step }
        });
        Selection::new(ranges).expect("a selection inside its shape")
    }
}
