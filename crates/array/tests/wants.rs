//! Wants, priorities, and the smallest source.

#![expect(clippy::cast_possible_truncation, reason = "helpers of tests, small numbers")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use corridor_array::conformance::{MemorySource, SourceGate, check_source, fetch};
use corridor_array::{
    BlockKey, DatasetId, Error, ErrorKind, Generation, Priority, ReadRequest, Selection, Source, Target,
    Urgency, WINDOW_BLOCKS, gather, want,
};
use futures::executor::block_on;
use proptest::prelude::*;

const KEY: BlockKey =
    BlockKey { dataset: DatasetId(1), generation: Generation(0), array: 0, level: 0, index: 3 };

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn changes_wake_whoever_fetches() {
    let woken = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    let (want, handle) = want(KEY, Urgency::of(Priority::PREFETCH));
    assert_eq!(want.poll_changed(&mut cx, 0), Poll::Pending);
    assert_eq!(want.poll_changed(&mut cx, 0), Poll::Pending);

    handle.adjust(Urgency::of(Priority::PREFETCH));
    assert_eq!(woken.0.load(Ordering::SeqCst), 0, "nothing changed");

    handle.adjust(Urgency::of(Priority::URGENT));
    assert_eq!(woken.0.load(Ordering::SeqCst), 1, "one waker, one wake");
    assert_eq!(want.poll_changed(&mut cx, 0), Poll::Ready(1));
    assert_eq!(want.urgency().priority, Priority::URGENT);

    assert_eq!(want.poll_changed(&mut cx, 1), Poll::Pending);
    assert!(!want.is_cancelled());
    drop(handle);
    assert_eq!(woken.0.load(Ordering::SeqCst), 2);
    assert!(want.is_cancelled());
    block_on(want.cancelled());
}

proptest! {
    #[test]
    fn priorities_order_by_tier_then_weight(a in (0u8..6, any::<f32>()), b in (0u8..6, any::<f32>())) {
        let (pa, pb) = (Priority { tier: a.0, weight: a.1 }, Priority { tier: b.0, weight: b.1 });
        let zeroed = |w: f32| if w.is_nan() { 0.0 } else { w };
        let expected = a.0.cmp(&b.0).then(zeroed(a.1).total_cmp(&zeroed(b.1)));
        prop_assert_eq!(pa.cmp(&pb), expected);
        prop_assert_eq!(pb.cmp(&pa), expected.reverse());
        prop_assert_eq!(pa == pb, expected.is_eq());
    }

    #[test]
    fn memory_sources_conform(axes in prop::collection::vec((1u64..9, 1u64..6), 0..5), dtype in "[<>](i2|u4|f2|f4|f8|i8)") {
        let (shape, block): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
        block_on(check_source(Arc::new(MemorySource::counting(&dtype, &shape, &block))));
    }
}

#[test]
fn the_most_urgent_goes_first_and_faults_are_answers() {
    let source = MemorySource::counting("u1", &[4], &[1]);
    source.set_gate(SourceGate::Closed);
    source.fail_once(source.key(1), Error::corrupt("scripted"));
    let priorities = [Priority::PREFETCH, Priority::NORMAL, Priority::URGENT];
    let (wants, handles): (Vec<_>, Vec<_>) =
        (0..3).map(|i| want(source.key(i), Urgency::of(priorities[i as usize]))).unzip();
    let stream = source.blocks(wants);
    assert_eq!(source.waiting().len(), 3);
    handles[0].adjust(Urgency::of(Priority::INTERACTIVE));
    source.set_gate(SourceGate::Open);
    let answers: Vec<_> = futures::executor::block_on_stream(stream).collect();
    assert_eq!(answers.iter().map(|a| a.key.index).collect::<Vec<_>>(), [2, 0, 1]);
    assert_eq!(answers[2].result.as_ref().unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(block_on(fetch(&source, &[source.key(1)]))[&source.key(1)].result.is_ok(), "once only");
}

#[test]
fn gathering_wants_a_bounded_number_of_blocks() {
    let source = Arc::new(MemorySource::counting("<u2", &[40, 40], &[1, 2]));
    source.set_gate(SourceGate::Closed);
    let request = ReadRequest {
        array: 0,
        level: 0,
        selection: Selection::parse("::2, 1::3", &[40, 40]).unwrap(),
        priority: Priority::NORMAL,
    };
    let (target, region) = Target::new(&request.selection.shape(), 2).unwrap();
    let (expected, direct) = Target::new(&request.selection.shape(), 2).unwrap();
    let mut read = gather(Arc::clone(&source) as Arc<dyn Source>, request.clone(), region);
    block_on(async {
        assert!(futures::poll!(&mut read).is_pending());
        assert_eq!(source.waiting().len(), WINDOW_BLOCKS);
        source.set_gate(SourceGate::Open);
        read.await.unwrap();
        source.read(request, direct).await.unwrap();
    });
    assert_eq!(target.into_vec().unwrap(), expected.into_vec().unwrap());
    assert_eq!(source.asked().len(), 20 * 13, "each block touched is asked for once");
}

#[test]
fn gathering_passes_errors_on_and_withdraws_the_rest() {
    let source = Arc::new(MemorySource::counting("u1", &[64], &[1]));
    source.fail_once(source.key(5), Error::corrupt("scripted"));
    let request =
        ReadRequest { array: 0, level: 0, selection: Selection::all(&[64]), priority: Priority::NORMAL };
    let (_target, region) = Target::new(&[64], 1).unwrap();
    let result = block_on(gather(Arc::clone(&source) as Arc<dyn Source>, request.clone(), region));
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(source.waiting().is_empty());
    let (_target, region) = Target::new(&[63], 1).unwrap();
    let result = block_on(gather(source, request, region));
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_description_says_what_a_block_covers_and_refuses_keys_of_another() {
    let source = MemorySource::counting("<u2", &[5, 6, 7], &[2, 4, 4]);
    let dataset = block_on(source.describe()).unwrap();
    let last = dataset.arrays[0].levels[0].block_count() - 1;
    let key =
        BlockKey { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0, index: last };
    let block = dataset.block(key).unwrap();
    assert_eq!(block.selection.to_string(), "4:5, 4:6, 4:7");
    assert_eq!(block.size_bytes, 2 * 3 * 2);
    let stale = dataset.block(BlockKey { generation: Generation(7), ..key }).unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::Stale);
    assert!(stale.to_string().contains("generation 7"), "{stale}");
    assert_eq!(dataset.block(BlockKey { index: last + 1, ..key }).unwrap_err().kind(), ErrorKind::Invalid);
}
