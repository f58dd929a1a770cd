//! Compositing by itself: any number of ranks, any factors, any pieces give what laying them over one another in their order
//! gives; and what is sent is what theory says.

mod rig;

use array::{Error, ErrorKind, Result};
use corridor_compose::{
    Communicator, MAX_THREADS, Method, Schedule, Traffic, agreed, broadcast, collect, compose, reduce,
    threads,
};
use proptest::prelude::*;
use render::{PartialImage, Rect};
use rig::together;

const IMAGE: Rect = Rect { left: 0, top: 0, width: 64, height: 40 };

/// A piece in which every pixel is its own, of this rank.
fn piece_of(rank: usize, rect: Rect, opacity: f32) -> PartialImage {
    let mut piece = PartialImage::transparent(rect, false);
    for row in rect.top..rect.top + rect.height {
        for column in rect.left..rect.left + rect.width {
            let at = (column * 7 + row * 13) as usize + rank * 29;
            let shade = |n: usize| (at * n % 17) as f32 / 16.0;
            let alpha = opacity * shade(3);
            piece.rgba[rect.index(column, row)] =
                [alpha * shade(5), alpha * shade(7), alpha * shade(11), alpha];
        }
    }
    piece
}

/// The part of a piece in a rectangle, pixel by pixel.
fn part(piece: &PartialImage, rect: Rect) -> PartialImage {
    let common = piece.rect.intersection(&rect);
    let mut part = PartialImage::transparent(common, false);
    for row in common.top..common.top + common.height {
        for column in common.left..common.left + common.width {
            part.rgba[common.index(column, row)] = piece.rgba[piece.rect.index(column, row)];
        }
    }
    part
}

/// Returns the expected pixel, in double precision: one piece after the other.
fn expected(pieces: &[PartialImage], order: &[usize], column: u32, row: u32) -> [f64; 4] {
    let mut sum = [0.0; 4];
    for &rank in order {
        let piece = &pieces[rank];
        let is_in = piece.rect.intersection(&Rect { left: column, top: row, width: 1, height: 1 });
        if is_in.is_empty() {
            continue;
        }
        let own = piece.rgba[piece.rect.index(column, row)];
        let through = 1.0 - sum[3];
        (0..4).for_each(|i| sum[i] += f64::from(own[i]) * through);
    }
    sum
}

/// Every rank's part of the image that its pieces make.
fn composed(
    pieces: &[PartialImage],
    order: &[usize],
    schedule: &Schedule,
) -> Vec<(Rect, PartialImage, Traffic)> {
    together(pieces.len(), |ranks| {
        let own = &pieces[ranks.rank()];
        compose(ranks, order, schedule, IMAGE, &mut |rect| Ok(part(own, rect)))
    })
    .into_iter()
    .collect::<Result<_>>()
    .expect("legal input")
}

/// Checks all pixels.
fn agrees(pieces: &[PartialImage], order: &[usize], method: Method) {
    let schedule = Schedule::new(method, pieces.len()).expect("legal input");
    let parts = composed(pieces, order, &schedule);
    assert_eq!(parts.iter().map(|(region, ..)| region.pixels()).sum::<usize>(), IMAGE.pixels());
    for (region, piece, _) in parts {
        for row in region.top..region.top + region.height {
            for column in region.left..region.left + region.width {
                let wanted = expected(pieces, order, column, row);
                let lies = piece.rect.intersection(&Rect { left: column, top: row, width: 1, height: 1 });
                let found =
                    if lies.is_empty() { [0.0; 4] } else { piece.rgba[piece.rect.index(column, row)] };
                let off = (0..4).map(|i| (f64::from(found[i]) - wanted[i]).abs()).fold(0.0, f64::max);
                assert!(
                    off < 2e-6,
                    "{method:?}, {} ranks, {column} {row}: {found:?}, not {wanted:?}",
                    pieces.len()
                );
            }
        }
    }
}

fn rect() -> impl Strategy<Value = Rect> {
    (0..64u32, 0..40u32, 0..65u32, 0..41u32)
        .prop_map(|(left, top, width, height)| IMAGE.intersection(&Rect { left, top, width, height }))
}

fn pieces() -> impl Strategy<Value = (Vec<Rect>, Vec<usize>)> {
    proptest::collection::vec(rect(), 1..17).prop_flat_map(|rects| {
        let order: Vec<usize> = (0..rects.len()).collect();
        (Just(rects), Just(order).prop_shuffle())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_ranks_in_any_order_give_the_picture((rects, order) in pieces(), radix in 2usize..9, opacity in 0.05f32..1.0) {
        let own = |(rank, rect): (usize, &Rect)| piece_of(rank, *rect, opacity);
        let pieces: Vec<PartialImage> = rects.iter().enumerate().map(own).collect();
        for method in [Method::DirectSend, Method::RadixK(radix), Method::BinarySwap] {
            if method != Method::BinarySwap || pieces.len().is_power_of_two() {
                agrees(&pieces, &order, method);
            }
        }
    }
}

/// If all pieces cover the whole image, each rank sends (p - 1)/p of the image by any method: direct send in
/// one round of p - 1 messages, binary swap in log2 p rounds of one message each, with a half of the image, a
/// quarter and so on.
#[test]
fn what_is_sent_is_what_theory_says() {
    for ranks in [2usize, 4, 8] {
        let pieces: Vec<PartialImage> = (0..ranks).map(|rank| piece_of(rank, IMAGE, 0.5)).collect();
        let order: Vec<usize> = (0..ranks).rev().collect();
        let image_bytes = IMAGE.pixels() * 16;
        let halves: usize = (1..=ranks.ilog2()).map(|round| image_bytes >> round).sum();
        assert_eq!(halves, image_bytes / ranks * (ranks - 1));
        for (method, rounds, messages) in [
            (Method::DirectSend, 1, ranks - 1),
            (Method::BinarySwap, ranks.ilog2() as usize, ranks.ilog2() as usize),
        ] {
            let schedule = Schedule::new(method, ranks).unwrap();
            for (rank, (region, _, traffic)) in composed(&pieces, &order, &schedule).into_iter().enumerate() {
                let wanted = Traffic { rounds, messages, pixel_bytes: halves };
                assert_eq!(traffic, wanted, "{method:?}, rank {rank} of {ranks}");
                assert_eq!(region.pixels() * ranks, IMAGE.pixels());
            }
        }
        let radix = Schedule::new(Method::RadixK(4), ranks).unwrap();
        for (_, _, traffic) in composed(&pieces, &order, &radix) {
            assert_eq!(traffic.pixel_bytes, halves);
        }
    }
}

/// A rank sends of its own picture only what it covers, and nothing of its own part.
#[test]
fn what_is_not_covered_is_not_sent() {
    let rects = [0, 12, 24, 36].map(|left| Rect { left, top: 0, width: 12, height: 40 });
    let pieces: Vec<PartialImage> =
        rects.into_iter().enumerate().map(|(rank, rect)| piece_of(rank, rect, 0.9)).collect();
    let schedule = Schedule::new(Method::DirectSend, 4).unwrap();
    for (rank, (region, _, traffic)) in composed(&pieces, &[0, 1, 2, 3], &schedule).into_iter().enumerate() {
        let sent = rects[rank].pixels() - rects[rank].intersection(&region).pixels();
        assert_eq!(traffic.pixel_bytes, sent * 16, "rank {rank}");
    }
}

#[test]
fn all_ranks_hear_and_are_heard() {
    for count in [1, 2, 3, 5, 8, 13, 64] {
        let heard = together(count, |ranks| {
            let own = vec![u8::try_from(ranks.rank()).unwrap()];
            let all = collect(ranks, own.clone()).unwrap();
            let most = reduce(ranks, own, |a, b| Ok(a.max(b))).unwrap();
            let told = broadcast(ranks, if ranks.rank() == 0 { b"go".to_vec() } else { Vec::new() }).unwrap();
            (all, most, told)
        });
        let ranks: Vec<u8> = (0..u8::try_from(count).unwrap()).collect();
        assert_eq!((&heard[0].0, &heard[0].1), (&ranks, &vec![*ranks.last().unwrap()]));
        assert!(heard.iter().all(|(_, _, told)| told == b"go"));
    }
}

#[test]
fn what_went_wrong_anywhere_is_said_once() {
    for (failing, says) in [(vec![], ""), (vec![0, 2], "at 0"), (vec![2, 3], "rank 2"), (vec![4], "rank 4")] {
        let ends = together(5, |ranks| {
            let failed = || Error::not_found(format!("no file at {}", ranks.rank()));
            agreed(ranks, if failing.contains(&ranks.rank()) { Err(failed()) } else { Ok(ranks.rank()) })
        });
        if failing.is_empty() {
            let all: Vec<Option<usize>> = ends.into_iter().map(Result::unwrap).collect();
            assert_eq!(all, [0, 1, 2, 3, 4].map(Some));
            continue;
        }
        let error = ends[0].as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains(says) && error.to_string().contains("no file"), "{error}");
        assert!(ends[1..].iter().all(|end| matches!(end, Ok(None))), "{failing:?}: {ends:?}");
    }
}

/// A rank that fails is told of by those that wait for it; nobody waits for ever.
#[test]
fn a_rank_that_is_gone_is_an_error() {
    let mut ranks = threads(3).unwrap();
    let gone = ranks.pop().unwrap();
    drop(gone);
    let error = ranks[0].receive(2).unwrap_err();
    assert!(error.to_string().contains("rank 2 ended"), "{error}");
    assert!(ranks[1].send(2, vec![1]).is_err());
    assert!(ranks[0].send(0, vec![1]).is_err() && ranks[0].receive(3).is_err());
    assert!(threads(0).is_err() && threads(MAX_THREADS + 1).is_err());
}
