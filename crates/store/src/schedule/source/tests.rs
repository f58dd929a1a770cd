//! Behavior of a format as a source: completions, priorities, cancelling, errors, ranges.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use array::{BlockKey, ErrorKind, Priority, Target, Urgency, WantHandle, want};

use super::*;
use crate::{Access, MAX_BYTES_IN_HAND, MAX_QUEUED_JOBS, OpenOptions, open_format};

fn source(location: &str) -> FormatSource {
    FormatSource::new(open_format(location, &OpenOptions::default()).unwrap())
}

fn wants(source: &FormatSource, indices: impl IntoIterator<Item = u64>) -> (Vec<Want>, Vec<WantHandle>) {
    let dataset = source.format().dataset();
    let key =
        |index| BlockKey { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0, index };
    indices.into_iter().map(|i| want(key(i), Urgency::of(Priority::NORMAL))).unzip()
}

async fn read(source: &FormatSource, text: &str) -> Vec<u8> {
    let dataset = source.format().dataset();
    let array = &dataset.arrays[0];
    let selection = Selection::parse(text, array.shape()).unwrap();
    let (target, region) = Target::new(&selection.shape(), array.dtype.size_bytes()).unwrap();
    let request = ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL };
    source.read(request, region).await.unwrap();
    target.into_vec().unwrap()
}

#[tokio::test]
async fn keeps_the_promises_of_a_source() {
    let source = source("synthetic:noise?shape=40,150,130&dtype=u16&steps=3");
    array::conformance::check_source(Arc::new(source)).await;
}

#[tokio::test]
async fn blocks_hold_what_a_read_gives() {
    let source = source("synthetic:waves?shape=100,70,90&dtype=>u2");
    let level = source.format().dataset().arrays[0].levels[0].clone();
    let (wants, _handles) = wants(&source, 0..level.block_count());
    let mut blocks = source.blocks(wants);
    let mut seen = 0;
    while let Some(completion) = blocks.next().await {
        let block = completion.result.unwrap();
        let selection = level.block_selection(block.key.index).unwrap();
        assert_eq!(block.bytes().unwrap(), &read(&source, &selection.to_string()).await);
        seen += 1;
    }
    assert_eq!(seen, level.block_count());
}

#[tokio::test]
async fn wrong_keys_and_requests_are_refused_one_by_one() {
    let source = source("synthetic:linear?shape=8,8,8");
    let (mut all, _handles) = wants(&source, [0, 99]);
    let good = all[0].key();
    let (stale, _stale_handle) =
        want(BlockKey { dataset: array::DatasetId(1), ..good }, Urgency::of(Priority::NORMAL));
    let (deep, _deep_handle) = want(BlockKey { level: 9, ..good }, Urgency::of(Priority::NORMAL));
    all.extend([stale, deep]);
    let answers: Vec<_> =
        source.blocks(all).map(|c| (c.key, c.result.map(|_| ()).map_err(|e| e.kind()))).collect().await;
    assert_eq!(answers.len(), 4);
    let of = |wanted: fn(&BlockKey) -> bool| answers.iter().find(|(k, _)| wanted(k)).unwrap().1;
    assert_eq!(of(|k| k.index == 99), Err(ErrorKind::Invalid));
    assert_eq!(of(|k| k.level == 9), Err(ErrorKind::Invalid));
    assert_eq!(of(|k| k.dataset.0 == 1), Err(ErrorKind::Stale));
    assert!(answers.contains(&(good, Ok(()))));

    let request =
        ReadRequest { array: 0, level: 0, selection: Selection::all(&[8, 8, 9]), priority: Priority::NORMAL };
    let (_target, region) = Target::new(&[8, 8, 9], 1).unwrap();
    assert_eq!(source.read(request, region).await.unwrap_err().kind(), ErrorKind::Invalid);
    let request =
        ReadRequest { array: 0, level: 0, selection: Selection::all(&[8, 8, 8]), priority: Priority::NORMAL };
    let (_target, region) = Target::new(&[8, 8, 8], 2).unwrap();
    assert_eq!(source.read(request, region).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn withdrawn_wants_do_not_hold_up_the_stream() {
    let source = source("synthetic:noise?shape=256,256,256");
    let count = source.format().dataset().arrays[0].levels[0].block_count();
    let (wants, mut handles) = wants(&source, 0..count);
    handles.truncate(1);
    let answers: Vec<_> = source.blocks(wants).collect().await;
    assert!(answers.iter().any(|c| c.key == handles[0].key() && c.result.is_ok()));
}

/// Counts reads and takes as long as nobody cancels.
struct Slow {
    dataset: Arc<Dataset>,
    begun: AtomicUsize,
    withdrawn: AtomicUsize,
}

impl Format for Slow {
    fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.dataset)
    }
    fn access(&self, _array: u32) -> Access {
        Access::Chunked
    }
    fn read(&self, _: u32, _: u8, _: &Selection, into: Region, cancel: &CancelFlag) -> Result<()> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        while cancel.check().is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(into);
        self.withdrawn.fetch_add(1, Ordering::SeqCst);
        cancel.check()
    }
}

fn slow() -> Arc<Slow> {
    let dataset = source("synthetic:noise?shape=1024,1024,1024").format().dataset();
    Arc::new(Slow { dataset, begun: AtomicUsize::new(0), withdrawn: AtomicUsize::new(0) })
}

async fn until(condition: impl Fn() -> bool) {
    for _ in 0..5000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("waited five seconds in vain");
}

#[tokio::test]
async fn dropping_a_handle_a_stream_or_a_read_ends_running_work() {
    let format = slow();
    let source = FormatSource::new(Arc::clone(&format) as Arc<dyn Format>);
    let (own, handles) = wants(&source, [0]);
    let stream = source.blocks(own);
    until(|| format.begun.load(Ordering::SeqCst) == 1).await;
    drop(handles);
    assert!(stream.collect::<Vec<_>>().await.len() <= 1);
    assert_eq!(format.withdrawn.load(Ordering::SeqCst), 1);

    let (own, _handles) = wants(&source, [1]);
    let stream = source.blocks(own);
    until(|| format.begun.load(Ordering::SeqCst) == 2).await;
    drop(stream);
    until(|| format.withdrawn.load(Ordering::SeqCst) == 2).await;

    let (target, region) = Target::new(&[4, 4, 4], 1).unwrap();
    let selection = Selection::of_box(&[0; 3], &[4; 3]);
    let request = ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL };
    let mut read = source.read(request, region);
    assert!(futures::poll!(&mut read).is_pending());
    until(|| format.begun.load(Ordering::SeqCst) == 3).await;
    drop(read);
    until(|| format.withdrawn.load(Ordering::SeqCst) == 3).await;
    assert_eq!(target.into_vec().unwrap().len(), 64);
}

/// Counts blocks read; they are all zero.
struct Zeros(Arc<Dataset>, AtomicUsize);

impl Format for Zeros {
    fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.0)
    }
    fn access(&self, _array: u32) -> Access {
        Access::Flat
    }
    fn read(&self, _: u32, _: u8, _: &Selection, _: Region, _: &CancelFlag) -> Result<()> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test]
async fn finished_blocks_wait_within_a_bound() {
    let dataset = source("synthetic:noise?shape=1024,1024,1024").format().dataset();
    let level = dataset.arrays[0].levels[0].clone();
    let format = Arc::new(Zeros(dataset, AtomicUsize::new(0)));
    let source = FormatSource::new(Arc::clone(&format) as Arc<dyn Format>);
    let (wants, _handles) = wants(&source, 0..level.block_count());
    let mut stream = source.blocks(wants);
    let fits = usize::try_from(MAX_BYTES_IN_HAND / level.block.iter().product::<u64>()).unwrap();
    until(|| format.1.load(Ordering::SeqCst) == fits).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(format.1.load(Ordering::SeqCst), fits);
    drop(stream.next().await);
    until(|| format.1.load(Ordering::SeqCst) == fits + 1).await;
    assert_eq!(stream.count().await as u64, level.block_count() - 1);
}

#[tokio::test]
async fn many_wants_wait_and_leave_room_for_others() {
    let mut dataset = (*source("synthetic:noise?shape=512,512,512").format().dataset()).clone();
    dataset.arrays[0].levels[0].block = vec![16; 3];
    let count = 2 * MAX_QUEUED_JOBS as u64;
    let crowd = FormatSource::new(Arc::new(Zeros(Arc::new(dataset), AtomicUsize::new(0))));
    let (many, _handles) = wants(&crowd, 0..count);
    let mut untaken = crowd.blocks(many);
    let first = untaken.next().await.unwrap();
    assert!(first.result.is_ok(), "{first:?}");

    let other = source("synthetic:linear?shape=64,64,64");
    let (one, _handles) = wants(&other, [0]);
    let answers: Vec<_> = other.blocks(one).collect().await;
    assert!(answers.len() == 1 && answers[0].result.is_ok(), "{answers:?}");
    assert_eq!(read(&other, "3, :, :").await.len(), 64 * 64);

    let rest = untaken.map(|completion| u64::from(completion.result.is_ok()));
    assert_eq!(rest.fold(1, |n, ok| std::future::ready(n + ok)).await, count);
}
