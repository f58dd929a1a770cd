//! Reading packed files: everywhere, by restart points, broken, kept between runs.

use std::io::Write;
use std::sync::mpsc;

use array::{BlockKey, ErrorKind, LongWork, Source, Urgency, WorkProgress, want};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt;
use proptest::prelude::*;

use super::*;
use crate::{FormatSource, open_format};

/// Half structure, half noise, so that deflate makes many blocks.
fn data(size: usize) -> Vec<u8> {
    let mut state = 1u32;
    let noisy = |i: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if (i / 1000).is_multiple_of(2) { (state >> 24).to_le_bytes()[0] } else { (i / 64).to_le_bytes()[0] }
    };
    (0..size).map(noisy).collect()
}

fn packed(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(4));
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

struct Case {
    _dir: tempfile::TempDir,
    path: std::path::PathBuf,
    options: OpenOptions,
}

impl Case {
    fn new(bytes: &[u8]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.gz");
        std::fs::write(&path, bytes).unwrap();
        let options = OpenOptions { side_dir: Some(dir.path().join("side")), ..OpenOptions::default() };
        Self { _dir: dir, path, options }
    }

    fn open(&self) -> GzipBytes {
        GzipBytes::new(FileBytes::open(&self.path).unwrap(), 0, &self.options)
    }

    /// The file in which the index is kept.
    fn kept(&self) -> std::path::PathBuf {
        let id = FileBytes::open(&self.path).unwrap().dataset_id().to_string();
        self.options.side_dir.as_ref().unwrap().join(id).join("gzip-points-0")
    }
}

fn read(inside: &GzipBytes, offset: usize, size: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; size];
    inside.read_at(offset as u64, &mut bytes, &CancelFlag::default()).map(|()| bytes)
}

#[test]
fn later_reads_decode_only_a_stretch() {
    let data = data(6 << 20);
    let case = Case::new(&packed(&data));
    assert_eq!(read(&case.open(), 5_000_000, 9).unwrap(), &data[5_000_000..5_000_009]);
    assert!(case.kept().exists());
    let again = case.open();
    assert_eq!(read(&again, 3_000_000, 1000).unwrap(), &data[3_000_000..3_001_000]);
    let whole = FileBytes::open(&case.path).unwrap().size_bytes();
    assert!(
        again.counts().bytes < whole / 2,
        "{} of {whole} packed bytes for one stretch",
        again.counts().bytes
    );
    let index = again.0.index(&CancelFlag::default()).unwrap();
    assert!((4..=6).contains(&index.points.len()), "{}", index.points.len());
    assert_eq!(read(&again, 0, data.len()).unwrap(), data);
}

#[test]
fn what_was_decoded_while_indexing_is_right_after_points_were_given_up() {
    let data = data(3 << 20);
    for most_points in [4, 5, 8, 13] {
        let case = Case::new(&packed(&data));
        let spacing = PointSpacing { first_bytes: 32 << 10, most_points };
        let file = FileBytes::open(&case.path).unwrap();
        let inside = GzipBytes::spaced(file, 0, spacing, &case.options);
        inside.0.index(&CancelFlag::default()).unwrap();
        for offset in (0..data.len()).step_by(9_973) {
            let size = 5_000.min(data.len() - offset);
            assert!(
                read(&inside, offset, size).unwrap() == data[offset..offset + size],
                "{offset}, {most_points}"
            );
        }
    }
}

#[test]
fn members_one_after_another_are_one_stream() {
    let data = data(3 << 20);
    let mut bytes: Vec<u8> = data.chunks(100_000).flat_map(packed).collect();
    bytes.extend([0; 512]);
    let case = Case::new(&bytes);
    for inside in [case.open(), case.open()] {
        assert_eq!(read(&inside, 0, data.len()).unwrap(), data);
        assert_eq!(read(&inside, 2_999_990, 20).unwrap(), &data[2_999_990..3_000_010]);
    }
}

#[test]
fn a_damaged_index_is_made_again() {
    let data = data(2 << 20);
    let case = Case::new(&packed(&data));
    read(&case.open(), 0, 1).unwrap();
    let good = std::fs::read(case.kept()).unwrap();
    for at in [0, 9, 30, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 4;
        std::fs::write(case.kept(), &bad).unwrap();
        assert_eq!(read(&case.open(), 1_500_000, 10).unwrap(), &data[1_500_000..1_500_010]);
        assert_eq!(std::fs::read(case.kept()).unwrap(), good);
    }
    std::fs::write(case.kept(), &good[..40]).unwrap();
    assert_eq!(read(&case.open(), 7, 3).unwrap(), &data[7..10]);
}

#[test]
fn damage_and_truncation_are_said() {
    let data = data(2 << 20);
    let mut bytes = packed(&data);
    let case = Case::new(&bytes[..bytes.len() / 2]);
    assert_eq!(read(&case.open(), 100, 10).unwrap(), &data[100..110], "what is there can be read");
    let error = read(&case.open(), (2 << 20) - 5, 5).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("cut short"), "{error}");
    let checksum = bytes.len() - 6;
    bytes[checksum] ^= 1;
    let error = read(&Case::new(&bytes).open(), 0, 1).unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");
}

#[test]
fn progress_is_told_to_the_end() {
    let case = Case::new(&packed(&data(1 << 20)));
    let told = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&told);
    let told_to = LongWork::default();
    let work = told_to.clone();
    let options = OpenOptions {
        on_progress: Some(Arc::new(move |p| to.lock().push((p, work.progress(LongTask::Indexing))))),
        work: told_to,
        ..OpenOptions::default()
    };
    let inside = GzipBytes::new(FileBytes::open(&case.path).unwrap(), 0, &options);
    read(&inside, 0, 1).unwrap();
    let (last, share) = told.lock().last().cloned().unwrap();
    assert_eq!((last.done_bytes, last.what.as_str()), (last.total_bytes, "indexing x.gz"));
    assert_eq!(share, Some(WorkProgress { done: last.done_bytes, total: last.total_bytes }));
    assert_eq!(options.work.progress(LongTask::Indexing), None, "nobody indexes any more");
}

#[test]
fn streams_without_boundaries_are_read_within_bounds() {
    // Zeros in one stored-size stream: few blocks, each far longer than a segment may be.
    let zeros = vec![0u8; 40 << 20];
    let case = Case::new(&packed(&zeros));
    let inside = case.open();
    assert_eq!(read(&inside, 30 << 20, 4).unwrap(), [0; 4]);
}

/// Noise, which takes as many bytes packed; so there is progress to be told about.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 7u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56).to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(size).collect()
}

/// A file whose indexing stands still when it first tells how far it is, until it may go on.
struct Halting {
    case: Case,
    halted: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
}

impl Halting {
    fn new(bytes: &[u8]) -> Self {
        let mut case = Case::new(bytes);
        let (halt, halted) = mpsc::channel();
        let (go_on, gone_on) = mpsc::channel();
        let gone_on = Mutex::new(gone_on);
        case.options.on_progress = Some(Arc::new(move |_| {
            // Both ends may be gone: then nothing halts.
            if halt.send(()).is_ok() {
                assert!(gone_on.lock().recv().is_err(), "it goes on when the other end is dropped");
            }
        }));
        Self { case, halted, go_on }
    }
}

#[tokio::test]
async fn an_index_is_made_once_for_all_who_wait() {
    let data = data(6 << 20);
    let case = Case::new(&packed(&data));
    let inside = case.open();
    let waiting: Vec<_> = (0..20).map(|_| inside.prepare(Priority::NORMAL).unwrap()).collect();
    assert!(futures::future::join_all(waiting).await.iter().all(Result::is_ok));
    let whole = FileBytes::open(&case.path).unwrap().size_bytes();
    assert_eq!(inside.counts().bytes, whole, "one pass");
    assert!(inside.prepare(Priority::NORMAL).is_none(), "nothing is left to do");
    assert_eq!(read(&inside, 5_000_000, 9).unwrap(), &data[5_000_000..5_000_009]);
}

#[tokio::test]
async fn indexing_ends_when_nobody_waits_and_can_be_asked_for_again() {
    let data = noise(24 << 20);
    let halting = Halting::new(&packed(&data));
    let inside = halting.case.open();
    let mut waiting = [(); 2].map(|()| inside.prepare(Priority::NORMAL).unwrap());
    for waiting in &mut waiting {
        assert!(futures::poll!(waiting).is_pending());
    }
    halting.halted.recv().unwrap();
    drop(waiting);
    drop(halting.halted);
    drop(halting.go_on);
    // It waits for the one who is about to give up.
    while halting.case.options.work.progress(LongTask::Indexing).is_some() {
        std::thread::yield_now();
    }
    let whole = FileBytes::open(&halting.case.path).unwrap().size_bytes();
    assert!(inside.counts().bytes < whole / 2, "{} of {whole} bytes", inside.counts().bytes);
    assert_eq!(halting.case.options.work.progress(LongTask::Indexing), None);
    inside.prepare(Priority::NORMAL).expect("what was given up is not remembered").await.unwrap();
    assert_eq!(read(&inside, 20_000_000, 9).unwrap(), &data[20_000_000..20_000_009]);
}

#[test]
fn a_withdrawn_read_does_not_wait_for_room() {
    let header = "NRRD0004\ntype: uint8\ndimension: 1\nsizes: 3000000\nencoding: gzip\n\n";
    let case = Case::new(&[header.as_bytes(), &packed(&data(3_000_000))].concat());
    let format = open_format(&case.path.to_string_lossy(), &case.options).unwrap();
    let read = |cancel: &CancelFlag| {
        let (target, region) = array::Target::new(&[9], 1)?;
        let selection = array::Selection::of_box(&[2_000_000], &[9]);
        format.read(0, 0, &selection, region, cancel).and_then(|()| target.into_vec())
    };
    read(&CancelFlag::default()).unwrap();
    let scratch = &case.options.scratch;
    let _all = scratch.try_reserve(scratch.decoding_bytes()).expect("what is kept leaves");
    let cancel = CancelFlag::default();
    let answer = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            cancel.cancel();
        });
        read(&cancel)
    });
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::Cancelled);
}

#[tokio::test]
async fn wants_that_wait_for_an_index_keep_no_thread() {
    let header = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 256 256 384\nencoding: gzip\n\n";
    let data = noise(24 << 20);
    let halting = Halting::new(&[header.as_bytes(), &packed(&data)].concat());
    let place = halting.case.path.to_string_lossy();
    let source = FormatSource::new(open_format(&place, &halting.case.options).unwrap());
    let dataset = source.format().dataset();
    let key =
        |index| BlockKey { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0, index };
    let count = dataset.arrays[0].levels[0].block_count();
    assert!(count >= 24, "{count} blocks");
    let (wants, handles): (Vec<_>, Vec<_>) =
        (0..count).map(|index| want(key(index), Urgency::of(Priority::INTERACTIVE))).unzip();
    let mut streams: Vec<_> = wants.into_iter().map(|want| source.blocks(vec![want])).collect();
    for stream in &mut streams {
        assert!(futures::poll!(stream.next()).is_pending());
    }
    halting.halted.recv().unwrap();
    // Meanwhile another source reads on the same threads.
    let other = open_format("synthetic:waves?shape=64,64,64&dtype=u8", &OpenOptions::default()).unwrap();
    let volume = Arc::new(FormatSource::new(other));
    let (target, region) = array::Target::new(&[64, 64, 64], 1).unwrap();
    let request = array::ReadRequest {
        array: 0,
        level: 0,
        selection: array::Selection::all(&[64, 64, 64]),
        priority: Priority::NORMAL,
    };
    let read = tokio::time::timeout(std::time::Duration::from_secs(20), volume.read(request, region));
    read.await.expect("a thread is free").unwrap();
    drop(target);
    drop((halting.halted, halting.go_on));
    let blocks = futures::future::join_all(streams.iter_mut().map(StreamExt::next)).await;
    assert!(blocks.iter().all(|block| block.as_ref().unwrap().result.is_ok()));
    drop(handles);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn flipped_bits_never_panic(flips in prop::collection::vec((0usize..60_000, 0u8..8), 1..4)) {
        let mut bytes = packed(&data(100_000));
        for (at, bit) in flips {
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
        }
        let case = Case::new(&bytes);
        if let Ok(found) = read(&case.open(), 50_000, 100) {
            prop_assert_eq!(found.len(), 100);
        }
    }
}
