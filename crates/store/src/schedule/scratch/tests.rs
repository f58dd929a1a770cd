//! The budget is kept by many threads at once, in fair order, and left by those who give up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::cache::chunk_cache::{ChunkStore, DecodedChunk};

const KIB: u64 = 1 << 10;

/// A budget with this much for decoding.
fn decoding(bytes: u64) -> Scratch {
    let scratch = Scratch::new(bytes / 3 * 4);
    assert_eq!(scratch.decoding_bytes(), bytes);
    scratch
}

#[test]
fn more_than_all_is_refused_with_both_sizes() {
    let error = decoding(300 * KIB).reserve(200_000, 400_000, &CancelFlag::default()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    for part in ["200000 bytes", "400000", "within 307200 bytes", "`--memory`"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn many_threads_stay_within_and_all_get_there() {
    let scratch = decoding(3000);
    let (now, peak) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for number in 0..8u64 {
            let (scratch, now, peak) = (&scratch, &now, &peak);
            scope.spawn(move || {
                for turn in 0..200 {
                    let bytes = 1 + (number * 977 + turn * 331) % 3000;
                    let room = scratch.reserve(bytes, bytes, &CancelFlag::default()).unwrap();
                    peak.fetch_max(now.fetch_add(bytes, Ordering::SeqCst) + bytes, Ordering::SeqCst);
                    thread::yield_now();
                    now.fetch_sub(bytes, Ordering::SeqCst);
                    drop(room);
                }
            });
        }
    });
    assert!(peak.into_inner() <= 3000);
    assert!(scratch.peak_decoding_bytes() <= 3000);
    assert!(scratch.try_reserve(3000).is_some(), "all of it was given back");
}

#[test]
fn a_large_one_is_not_overtaken_and_one_that_gives_up_leaves() {
    let scratch = decoding(3000);
    let held = scratch.try_reserve(2000).unwrap();
    let (done, order) = mpsc::channel();
    let cancel = CancelFlag::default();
    thread::scope(|scope| {
        let ask = |name, bytes, cancel: &CancelFlag| {
            let (scratch, done, cancel) = (scratch.clone(), done.clone(), cancel.clone());
            let watched = scratch.clone();
            let waiting = || watched.0.state.lock().waiting.len();
            let before = waiting();
            scope.spawn(move || {
                // Its name goes out while it still has its room: nobody else can be in between.
                let answer = match scratch.reserve(bytes, bytes, &cancel) {
                    Ok(_room) => done.send((name, Ok(()))),
                    Err(error) => done.send((name, Err(error.kind()))),
                };
                answer.unwrap();
            });
            while waiting() == before {
                thread::yield_now();
            }
        };
        ask("gives up", 2500, &cancel);
        ask("large", 3000, &CancelFlag::default());
        ask("small", 10, &CancelFlag::default());
        cancel.cancel();
        assert_eq!(order.recv().unwrap(), ("gives up", Err(ErrorKind::Cancelled)));
        drop(held);
        assert_eq!(order.recv().unwrap().0, "large");
        assert_eq!(order.recv().unwrap().0, "small");
    });
}

#[test]
fn what_is_kept_leaves_when_its_room_is_needed() {
    let scratch = decoding(300 * KIB);
    let chunks = ChunkStore::new(scratch.clone());
    let decoded = AtomicU64::new(0);
    let size = 100 * KIB;
    let get = |chunk| {
        chunks.get(0, chunk, usize::try_from(size).unwrap(), &CancelFlag::default(), || {
            decoded.fetch_add(1, Ordering::Relaxed);
            let room = scratch.reserve(size, size, &CancelFlag::default())?;
            Ok(DecodedChunk::new(vec![1; usize::try_from(size).unwrap()], room))
        })
    };
    for chunk in [0, 1, 2, 0, 1, 2, 1, 0] {
        assert_eq!(get(chunk).unwrap().len() as u64, size);
    }
    assert_eq!(decoded.load(Ordering::Relaxed), 3, "all three fit");
    let held = get(2).unwrap();
    drop(get(3).unwrap());
    drop(get(0).unwrap());
    assert_eq!(decoded.load(Ordering::Relaxed), 4, "1 was unused longest of those that nobody holds");
    drop(get(2).unwrap());
    assert_eq!(decoded.load(Ordering::Relaxed), 4, "what is held stays");
    drop((held, chunks));
    assert!(scratch.try_reserve(300 * KIB).is_some(), "a closed file leaves nothing");
}

#[test]
fn whoever_waits_for_a_chunk_can_be_withdrawn() {
    let scratch = decoding(300 * KIB);
    let chunks = ChunkStore::new(scratch.clone());
    let cancel = CancelFlag::default();
    let size = usize::try_from(100 * KIB).unwrap();
    let (begin, begun) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            chunks.get(0, 0, size, &CancelFlag::default(), move || {
                begin.send(()).unwrap();
                ended.recv().unwrap();
                let room = scratch.reserve(100 * KIB, 100 * KIB, &CancelFlag::default())?;
                Ok(DecodedChunk::new(vec![1; size], room))
            })
        });
        begun.recv().unwrap();
        let second = scope.spawn(|| {
            chunks.get(0, 0, size, &cancel, || panic!("the first one decodes it")).map(|found| found.len())
        });
        cancel.cancel();
        assert_eq!(second.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
        end.send(()).unwrap();
        assert_eq!(first.join().unwrap().unwrap().len(), size);
    });
}

#[test]
fn work_on_levels_waits_for_its_turn_and_never_for_more_than_there_is() {
    let scratch = Scratch::new(400 * KIB);
    futures::executor::block_on(async {
        let first = scratch.reserve_for_level(60 * KIB).await.unwrap();
        let mut second = Box::pin(scratch.reserve_for_level(1 << 40));
        assert!(futures::poll!(&mut second).is_pending(), "it gets all of it, alone");
        drop(first);
        drop(second.await.unwrap());
    });
}
