//! The caching source, over a source in memory whose answers can be held back.

use std::sync::Arc;
use std::time::Duration;

use array::conformance::{MemorySource, SourceGate, check_source, fetch, one_array};
use array::{
    Block, BlockKey, Completions, Content, Dataset, Error, ErrorKind, Priority, ReadRequest, Region, Result,
    Selection, Source, Target, Urgency, Want, WantHandle, want,
};
use corridor_cache::{CacheEvent, Cached, ENTRY_BYTES, HeldMemory};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};

/// 64 blocks of 100 bytes.
fn memory() -> Arc<MemorySource> {
    Arc::new(MemorySource::counting("u1", &[64, 100], &[1, 100]))
}

fn cached(memory: &Arc<MemorySource>, blocks: u64) -> Cached {
    Cached::new(Arc::clone(memory) as Arc<dyn Source>, blocks * (100 + ENTRY_BYTES))
}

fn make_wants(memory: &MemorySource, indices: impl IntoIterator<Item = u64>) -> (Vec<Want>, Vec<WantHandle>) {
    let one = |index| want(memory.key(index), Urgency::of(Priority::NORMAL));
    indices.into_iter().map(one).unzip()
}

async fn get(source: &dyn Source, key: BlockKey) -> Result<Arc<Block>> {
    fetch(source, &[key]).await.remove(&key).map_or_else(|| Err(Error::internal("no answer")), |a| a.result)
}

/// Waits until the condition is true.
async fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    for _ in 0..5000 {
        if is_true() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("timed out waiting until {what}");
}

#[tokio::test]
async fn conforms() {
    for (dtype, shape, block) in
        [("<u2", vec![9, 10, 11], vec![4, 4, 4]), (">f4", vec![30], vec![7]), ("u1", vec![], vec![])]
    {
        let memory = MemorySource::counting(dtype, &shape, &block);
        let cached = Cached::new(Arc::new(memory), 1 << 20);
        check_source(Arc::new(cached)).await;
    }
    // Room for little more than the blocks that the checks hold at a time, so blocks are evicted.
    let memory = MemorySource::counting("<u2", &[9, 10, 11], &[4, 4, 4]);
    let cached = Cached::new(Arc::new(memory), 13 * (128 + ENTRY_BYTES));
    check_source(Arc::new(cached)).await;
}

#[tokio::test]
async fn a_thousand_callers_cause_one_request() {
    let memory = memory();
    memory.set_gate(SourceGate::Closed);
    let cached = cached(&memory, 4);
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        let (cached, key) = (cached.clone(), memory.key(7));
        callers.spawn(async move { get(&cached, key).await });
    }
    until("all have called", || cached.counters().joined == 999).await;
    memory.set_gate(SourceGate::Open);
    let blocks = callers.join_all().await;
    assert!(blocks.iter().all(|b| b.as_ref().unwrap().key == memory.key(7)));
    assert_eq!(memory.asked().len(), 1);
    assert!(get(&cached, memory.key(7)).await.is_ok());
    assert_eq!(memory.asked().len(), 1, "and the next is a hit");
    assert_eq!(cached.counters().hits, 1);
}

#[tokio::test]
async fn priorities_reach_the_inner_want_and_so_does_cancelling() {
    let memory = memory();
    memory.set_gate(SourceGate::Closed);
    let cached = cached(&memory, 4);
    let (wants, mut first) = make_wants(&memory, [1, 2]);
    let stream = cached.blocks(wants);
    until("both are requested", || memory.waiting().len() == 2).await;

    let now = |index| {
        let waiting = memory.waiting();
        waiting.iter().find(|(k, _)| k.index == index).map(|(_, u)| u.priority)
    };
    first[0].adjust(Urgency::of(Priority::URGENT));
    until("adjusting is passed on", || now(1) == Some(Priority::URGENT)).await;

    let (wants, second) = make_wants(&memory, [2]);
    second[0].adjust(Urgency::of(Priority::INTERACTIVE));
    let other = cached.blocks(wants);
    until("the highest of two counts", || now(2) == Some(Priority::INTERACTIVE)).await;
    drop(second);
    until("the rest counts", || now(2) == Some(Priority::NORMAL)).await;
    assert_eq!(other.collect::<Vec<_>>().await.len(), 0, "withdrawn wants end their stream");

    drop(first.pop());
    until("the last one withdraws the request", || now(2).is_none()).await;
    assert_eq!(cached.counters().cancelled, 1);
    drop(stream);
    until("a dropped stream withdraws too", || memory.waiting().is_empty()).await;
    until("the reservation is free", || cached.counters().used_bytes() == 0).await;
}

#[tokio::test]
async fn the_limit_is_hard_under_a_flood() {
    let memory = memory();
    memory.set_gate(SourceGate::Closed);
    let cached = cached(&memory, 5);
    let (wants, _handles) = make_wants(&memory, 0..64);
    let mut stream = cached.blocks(wants);
    until("as many as fit are requested", || memory.waiting().len() == 5).await;
    memory.set_gate(SourceGate::Open);
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(stream.next().await.unwrap().result.unwrap());
    }
    // Blocks that callers hold count: nothing is requested until they drop one.
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(memory.asked().len(), 5);
    let counters = cached.counters();
    assert_eq!(counters.used_bytes(), counters.capacity_bytes);
    // Dropping any of them makes room, not only the oldest.
    held.swap_remove(3);
    held.push(stream.next().await.unwrap().result.unwrap());
    assert_eq!(memory.asked().len(), 6);
    held.clear();
    let mut answered = 6;
    while let Some(answer) = stream.next().await {
        assert!(answer.result.is_ok());
        answered += 1;
        let counters = cached.counters();
        assert!(counters.used_bytes() <= counters.capacity_bytes);
    }
    assert_eq!((answered, memory.asked().len()), (64, 64));
}

#[tokio::test]
async fn the_least_recently_used_are_evicted_first_and_held_blocks_are_revived_without_a_request() {
    let memory = memory();
    let cached = cached(&memory, 3);
    let mut events = cached.events();
    let mut evicted = || {
        std::iter::from_fn(|| events.try_recv().ok())
            .filter_map(|e| if let CacheEvent::Evicted(key) = e { Some(key.index) } else { None })
            .collect::<Vec<_>>()
    };
    for index in [0, 1, 2, 0, 3] {
        assert!(get(&cached, memory.key(index)).await.is_ok());
    }
    assert_eq!(evicted(), [1]);
    let kept = get(&cached, memory.key(2)).await.unwrap();
    for index in [4, 5] {
        assert!(get(&cached, memory.key(index)).await.is_ok());
    }
    assert_eq!(evicted(), [0, 3], "idle blocks are evicted before held ones");
    let before = memory.asked().len();
    assert!(Arc::ptr_eq(&get(&cached, memory.key(2)).await.unwrap(), &kept));
    assert_eq!(memory.asked().len(), before);
}

#[tokio::test]
async fn a_slow_reader_of_evicted_bytes_does_not_stop_the_others() {
    let memory = memory();
    let cached = cached(&memory, 3);
    // As in a send queue: the block is dropped, its bytes are kept.
    let bytes = |block: Arc<Block>| block.bytes().cloned();
    let kept = bytes(get(&cached, memory.key(0)).await.unwrap());
    for index in 1..12 {
        let next = tokio::time::timeout(Duration::from_secs(20), get(&cached, memory.key(index)));
        assert!(next.await.expect("idle blocks make room").is_ok());
    }
    assert_eq!(kept.map(|b| b.len()), Some(100));
}

#[tokio::test]
async fn errors_are_not_remembered() {
    let memory = memory();
    memory.fail_once(memory.key(3), Error::new(ErrorKind::Io, "scripted"));
    let cached = cached(&memory, 4);
    assert_eq!(get(&cached, memory.key(3)).await.unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(cached.counters().used_bytes(), 0);
    assert!(get(&cached, memory.key(3)).await.is_ok());
    assert_eq!(cached.counters().failed, 1);
}

#[tokio::test]
async fn reads_are_served_from_cached_blocks() {
    let memory = memory();
    let cached = cached(&memory, 8);
    let read = async |text: &str| {
        let selection = Selection::parse(text, &[64, 100]).unwrap();
        let (target, region) = Target::new(&selection.shape(), 1).unwrap();
        let request = ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL };
        cached.read(request, region).await.unwrap();
        target.into_vec().unwrap()
    };
    assert_eq!(read("1:4, ::50").await, [100, 150, 200, 250, 44, 94]);
    assert_eq!(memory.reads().len(), 1, "nothing is cached: one read, no blocks");
    assert_eq!(memory.asked().len(), 0);
    fetch(&cached, &[1, 2, 3].map(|i| memory.key(i))).await;
    assert_eq!(read("1:4, ::50").await, [100, 150, 200, 250, 44, 94]);
    assert_eq!(memory.reads().len(), 1);
    assert_eq!(read("1:5, 0").await.len(), 4);
    assert_eq!(memory.reads().len(), 2, "one block is not cached");
}

#[tokio::test]
async fn answers_come_even_when_the_cache_is_dropped() {
    let memory = memory();
    let cached = cached(&memory, 8);
    let (wants, _handles) = make_wants(&memory, 0..8);
    let stream = cached.blocks(wants);
    drop(cached);
    assert_eq!(stream.collect::<Vec<_>>().await.len(), 8);
}

/// Source that violates the contract: it answers no want.
struct Silent(Arc<Dataset>);

impl Source for Silent {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        Box::pin(std::future::ready(Ok(Arc::clone(&self.0))))
    }

    fn blocks(&self, _wants: Vec<Want>) -> Completions {
        futures::stream::empty().boxed()
    }

    fn read(&self, _request: ReadRequest, _into: Region) -> BoxFuture<'static, Result<()>> {
        Box::pin(std::future::ready(Err(Error::internal("scripted"))))
    }
}

#[tokio::test]
async fn a_source_that_does_not_answer_a_want_causes_an_error() {
    let dataset = one_array("u1".parse().unwrap(), &[4], &[1]);
    let memory = MemorySource::new(dataset.clone(), vec![vec![vec![0; 4].into()]]).unwrap();
    let cached = Cached::new(Arc::new(Silent(Arc::new(dataset))), 1 << 20);
    assert_eq!(get(&cached, memory.key(1)).await.unwrap_err().kind(), ErrorKind::Internal);
}

#[tokio::test]
async fn a_read_bypasses_the_task_until_a_block_was_requested() {
    let dataset = Arc::new(one_array("u1".parse().unwrap(), &[4], &[1]));
    let cached = Cached::new(Arc::new(Silent(dataset)), 1 << 20);
    let (_target, region) = Target::new(&[4], 1).unwrap();
    let request =
        ReadRequest { array: 0, level: 0, selection: Selection::all(&[4]), priority: Priority::NORMAL };
    // Answered in one poll, so without the cache's task, which could not run meanwhile.
    let answer = cached.read(request, region).now_or_never().expect("an answer at once");
    assert_eq!(answer.unwrap_err().message(), "scripted");
}

/// Source whose blocks are not covered.
struct Sparse(Arc<MemorySource>);

impl Source for Sparse {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        self.0.describe()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let answers = self.0.blocks(wants);
        let sparse = |key| Ok(Arc::new(Block { key, content: Content::NotCovered }));
        answers.map(move |a| array::Completion { result: sparse(a.key), ..a }).boxed()
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        self.0.read(request, into)
    }
}

#[tokio::test]
async fn blocks_without_content_are_kept_and_bounded() {
    let memory = memory();
    let cached = Cached::new(Arc::new(Sparse(Arc::clone(&memory))), 4 * (100 + ENTRY_BYTES));
    for index in (0..64).chain(60..64) {
        assert_eq!(get(&cached, memory.key(index)).await.unwrap().content, Content::NotCovered);
    }
    let counters = cached.counters();
    assert_eq!(memory.asked().len(), 64);
    assert_eq!((counters.cached_bytes, counters.releasing_bytes), (counters.cached * ENTRY_BYTES, 0));
    assert!(counters.used_bytes() <= counters.capacity_bytes);
    // A read of such blocks goes to the inner source.
    let selection = Selection::parse("63:64, 0:1", &[64, 100]).unwrap();
    let (target, region) = Target::new(&[1, 1], 1).unwrap();
    cached
        .read(ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL }, region)
        .await
        .unwrap();
    assert_eq!(target.into_vec().unwrap(), [(6300 % 256u64).to_le_bytes()[0]]);
}

#[tokio::test]
async fn bytes_that_their_holders_count_delay_no_other_block() {
    let memory = memory();
    let source = Arc::clone(&memory) as Arc<dyn Source>;
    let capacity = 4 * (100 + ENTRY_BYTES);
    let cached = Cached::with_held_memory(source, capacity, HeldMemory::CountedByHolders);
    // As in a send queue: only the bytes are kept, not the blocks.
    let mut kept = Vec::new();
    for index in 0..20 {
        let answer = tokio::time::timeout(Duration::from_secs(10), get(&cached, memory.key(index))).await;
        kept.push(answer.expect("no wait for the holders").unwrap().bytes().unwrap().clone());
        assert!(cached.counters().used_bytes() <= capacity);
    }
    assert!(kept.iter().all(|bytes| bytes.len() == 100));
    drop(kept);
    assert!(get(&cached, memory.key(40)).await.is_ok());
}
