//! The pool: its limit, what it drops, what it refuses.

#![expect(clippy::cast_possible_truncation, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use array::{Axis, AxisKind, Block, Content};
use bytes::Bytes;
use common::{Synthetic, cubic, difference, draw, pool_of};
use corridor_render::{BlockPool, Camera, ImageSize, Inserted, Portion, Quality, Scene, VolumeView, demand};

const SIZE: ImageSize = ImageSize { width: 96, height: 80 };

fn pyramid() -> Synthetic {
    Synthetic { levels: 3, ..Synthetic::new([64; 3], [16; 3], cubic) }
}

/// Bytes of one interior block in a pool, found by trying.
fn block_bytes(synthetic: &Synthetic) -> usize {
    pool_of(synthetic, [synthetic.block(0, 0)]).used_bytes()
}

#[test]
fn the_limit_holds_at_every_moment() {
    let synthetic = pyramid();
    let limit = 10 * block_bytes(&synthetic);
    let pool = BlockPool::new(synthetic.view(), limit);
    for level in [0, 2, 1, 0] {
        for block in synthetic.blocks(level) {
            pool.insert(&block).unwrap();
            assert!(pool.used_bytes() <= limit);
        }
    }
    assert!(pool.block_count() == 10);
    pool.set_limit(limit / 3);
    assert!(pool.used_bytes() <= limit / 3 && pool.block_count() == 3);
    pool.set_limit(0);
    assert_eq!((pool.used_bytes(), pool.block_count()), (0, 0));
    assert_eq!(pool.insert(&synthetic.block(0, 0)).unwrap(), Inserted::NoRoom);
}

#[test]
fn coarser_blocks_replace_finer_ones_and_not_the_other_way_round() {
    let synthetic = pyramid();
    let pool = BlockPool::new(synthetic.view(), 4 * block_bytes(&synthetic));
    for block in synthetic.blocks(0).iter().take(8) {
        pool.insert(block).unwrap();
    }
    assert_eq!(pool.block_count(), 4);
    let coarse = [synthetic.blocks(2), synthetic.blocks(1).into_iter().take(3).collect()].concat();
    assert!(coarse.iter().all(|b| pool.insert(b).unwrap() == Inserted::Placed));
    assert_eq!(pool.block_count(), 4);
    for block in synthetic.blocks(0) {
        assert_eq!(pool.insert(&block).unwrap(), Inserted::NoRoom);
    }
    assert!(coarse.iter().all(|b| pool.contains(&b.key)), "the coarse picture stays");
}

#[test]
fn what_is_wanted_now_replaces_what_was_wanted_before() {
    let synthetic = pyramid();
    let view = synthetic.view();
    let near = |eye: [f64; 3]| {
        let mut camera = Camera::framing(&view.bounds(), Camera::DEFAULT_DIRECTION).zoom(4.0);
        let shift = [0, 1, 2].map(|a| eye[a] - camera.target[a]);
        camera.target = eye;
        camera.eye = [0, 1, 2].map(|a| camera.eye[a] + shift[a]);
        demand(&view, &camera, SIZE, &Portion::default(), None, 1 << 30).unwrap()
    };
    let (first, second) = (near([8.0, 8.0, 8.0]), near([56.0, 56.0, 56.0]));
    let bytes = first.pool_bytes.max(second.pool_bytes);
    let pool = BlockPool::new(synthetic.view(), bytes);
    let by_key: BTreeMap<_, _> = (0..3).flat_map(|l| synthetic.blocks(l)).map(|b| (b.key, b)).collect();
    for wanted in [&first, &second, &first] {
        pool.mark([wanted]);
        for block in &wanted.blocks {
            assert_ne!(pool.insert(&by_key[&block.key]).unwrap(), Inserted::NoRoom);
        }
        assert!(wanted.missing(&pool).is_empty());
        assert!(pool.used_bytes() <= bytes);
    }
    let unwanted =
        by_key.values().find(|b| b.key.level == 0 && !first.blocks.iter().any(|w| w.key == b.key)).unwrap();
    pool.set_limit(pool.used_bytes());
    pool.mark([&first]);
    let mut refused = 0;
    for block in by_key.values().filter(|b| b.key.level == 0 && !first.blocks.iter().any(|w| w.key == b.key))
    {
        refused += usize::from(pool.insert(block).unwrap() == Inserted::NoRoom);
    }
    assert!(refused > 0, "{unwanted:?}");
    assert!(first.missing(&pool).is_empty(), "nothing that is wanted went for what is not");
}

#[test]
fn a_picture_is_the_same_after_blocks_went_and_came_back() {
    let synthetic = pyramid();
    let scene = synthetic.scene();
    let pool = pool_of(&synthetic, (0..3).rev().flat_map(|l| synthetic.blocks(l)));
    let before = draw(&scene, &pool).image;
    let limit = pool.limit_bytes();
    pool.set_limit(pool.used_bytes() / 2);
    assert!(difference(&before, &draw(&scene, &pool).image) > 0.0);
    pool.set_limit(limit);
    for block in (0..3).flat_map(|l| synthetic.blocks(l)) {
        pool.insert(&block).unwrap();
    }
    assert_eq!(before, draw(&scene, &pool).image);
}

/// A picture sees the blocks as they were when it began, whatever arrives or goes meanwhile.
#[test]
fn a_snapshot_does_not_change() {
    let synthetic = pyramid();
    let scene = synthetic.scene();
    let pool = pool_of(&synthetic, synthetic.blocks(2).into_iter().chain(synthetic.blocks(1)));
    let (before, snapshot) = (draw(&scene, &pool), pool.snapshot());
    for block in synthetic.blocks(0) {
        pool.insert(&block).unwrap();
    }
    let cast = |blocks| corridor_render::cast(&scene, blocks, &corridor_render::Cancel::new()).unwrap();
    assert!(difference(&before.image, &draw(&scene, &pool).image) > 0.0);
    assert_eq!(before.image, cast(&snapshot).image);
    pool.set_limit(0);
    assert_eq!(before.image, cast(&snapshot).image);
    assert_eq!(before.fidelity, cast(&snapshot).fidelity);
}

/// Blocks that a picture keeps alive count against the limit: new blocks are refused while they need that
/// room.
#[test]
fn the_limit_holds_while_a_picture_is_cast() {
    let synthetic = pyramid();
    let limit = 20 * block_bytes(&synthetic);
    let pool = BlockPool::new(synthetic.view(), limit);
    let blocks: Vec<_> = (0..3).rev().flat_map(|l| synthetic.blocks(l)).collect();
    let mut refused = 0;
    for chunk in blocks.chunks(7) {
        let picture = pool.snapshot();
        for block in chunk {
            refused += usize::from(pool.insert(block).unwrap() == Inserted::NoRoom);
            assert!(pool.used_bytes() <= limit, "{} of {limit}", pool.used_bytes());
        }
        drop(picture);
    }
    assert!(refused > 0);
    let picture = pool.snapshot();
    let held = pool.used_bytes();
    pool.set_limit(0);
    assert_eq!((pool.block_count(), pool.used_bytes()), (0, held), "the picture still has them");
    drop(picture);
    assert_eq!(pool.used_bytes(), 0);
}

/// Ghost voxels that change under a picture are copied, and become what they would have been without it.
#[test]
fn pictures_under_way_leave_no_trace() {
    let synthetic = pyramid();
    let blocks: Vec<_> = (0..3).rev().flat_map(|l| synthetic.blocks(l)).collect();
    let expected = draw(&synthetic.scene(), &pool_of(&synthetic, blocks.clone())).image;
    let pool = BlockPool::new(synthetic.view(), 1 << 30);
    let mut pictures = Vec::new();
    for block in &blocks {
        pool.insert(block).unwrap();
        pictures.push(pool.snapshot());
        pictures.drain(..pictures.len().saturating_sub(3));
    }
    assert_eq!(expected, draw(&synthetic.scene(), &pool).image);
    drop(pictures);
    let alone = pool_of(&synthetic, blocks).used_bytes();
    assert_eq!(pool.used_bytes(), alone, "nothing is counted twice or left over");
}

/// Pictures depend on the blocks that are there, not on the order in which they came.
#[test]
fn blocks_of_a_level_may_come_in_any_order() {
    let synthetic = pyramid();
    // Some of each level but the coarsest, so that finer blocks end beside coarser ones.
    let levels: Vec<Vec<Block>> = [(2, 1), (1, 2), (0, 3)]
        .map(|(level, step)| synthetic.blocks(level).into_iter().step_by(step).collect())
        .into();
    let expected = draw(&synthetic.scene(), &pool_of(&synthetic, levels.concat())).image;
    for (by, from) in [(1, 0), (5, 2), (7, 3), (9, 1)] {
        let shuffled = levels.iter().flat_map(|blocks| {
            let order = (0..blocks.len()).map(move |i| blocks.len() - 1 - (by * i + from) % blocks.len());
            order.map(|i| blocks[i].clone())
        });
        assert_eq!(expected, draw(&synthetic.scene(), &pool_of(&synthetic, shuffled)).image, "{by}");
    }
}

#[test]
fn foreign_and_broken_blocks_are_refused() {
    let synthetic = pyramid();
    let pool = BlockPool::new(synthetic.view(), 1 << 20);
    let good = synthetic.block(1, 3);
    for key in [
        array::BlockKey { array: 1, ..good.key },
        array::BlockKey { generation: array::Generation(9), ..good.key },
        array::BlockKey { level: 7, ..good.key },
        array::BlockKey { index: 8, ..good.key },
        array::BlockKey { index: u64::MAX, ..good.key },
    ] {
        let foreign = Block { key, ..good.clone() };
        assert_eq!(pool.insert(&foreign).unwrap(), Inserted::Foreign);
        assert!(!pool.contains(&key));
    }
    let data = good.bytes().unwrap();
    for bytes in [Bytes::new(), data.slice(1..), Bytes::from([data.as_ref(), &[0]].concat())] {
        let broken = Block { content: Content::Data { bytes, range: None }, ..good.clone() };
        let error = pool.insert(&broken).unwrap_err();
        assert_eq!(error.kind(), array::ErrorKind::Corrupt);
    }
    assert_eq!((pool.used_bytes(), pool.block_count()), (0, 0));
    assert_eq!(pool.insert(&good).unwrap(), Inserted::Placed);
    assert_eq!(pool.insert(&good).unwrap(), Inserted::Present);
}

/// Axes in any order are drawn alike: one volume in axis order `z, y, x`, and as `[x, z, t, y]` with two time
/// steps per block.
#[test]
fn axes_in_any_order_give_the_same_picture() {
    let plain = Synthetic::new([12, 14, 16], [8; 3], cubic);
    // Every step is taken: which ones may be left out depends on the shape of blocks.
    let quality = Quality { skip_empty: false, ..Quality::STILL };
    let expected = draw(&Scene { quality, ..plain.scene() }, &plain.full_pool()).image;

    let mut dataset = plain.dataset();
    let info = &mut dataset.arrays[0];
    let kinds = [AxisKind::X, AxisKind::Z, AxisKind::Time, AxisKind::Y];
    info.axes = kinds.iter().map(|&k| Axis::new(format!("{k:?}"), k)).collect();
    let level = &mut info.levels[0];
    (level.shape, level.block, level.factor) = (vec![16, 12, 3, 14], vec![5, 8, 2, 8], vec![1.0; 4]);
    let level = level.clone();
    let view = std::sync::Arc::new(VolumeView::new(&dataset, 0, &[0, 0, 1, 0]).unwrap());
    let pool = BlockPool::new(view.clone(), 1 << 24);
    let mut placed = 0;
    for index in 0..level.block_count() {
        let selection = level.block_selection(index).unwrap();
        let [x, z, t, y] = [0, 1, 2, 3]
            .map(|a| selection.ranges()[a].start..selection.ranges()[a].start + selection.ranges()[a].count);
        let mut bytes = Vec::new();
        for x in x {
            for z in z.clone() {
                for t in t.clone() {
                    for y in y.clone() {
                        let value =
                            cubic(glam::DVec3::new(x as f64, y as f64, z as f64)) + 1000.0 * (t as f64 - 1.0);
                        bytes.extend((value as f32).to_ne_bytes());
                    }
                }
            }
        }
        let key = array::BlockKey { index, ..plain.block(0, 0).key };
        let block = Block { key, content: Content::Data { bytes: bytes.into(), range: None } };
        placed += usize::from(pool.insert(&block).unwrap() == Inserted::Placed);
    }
    assert_eq!(placed, 16, "only the blocks of this time");
    let scene = Scene { view, quality, ..plain.scene() };
    let apart = difference(&expected, &draw(&scene, &pool).image);
    assert!(apart < 0.01, "{apart}");
}

/// Ghost voxels of blocks that came together are refreshed once, which leaves no trace in a picture, of a part of the blocks neither.
#[test]
fn blocks_inserted_together_look_as_those_inserted_one_by_one() {
    let synthetic = pyramid();
    let scene = synthetic.scene();
    let blocks: Vec<_> = (0..3).rev().flat_map(|l| synthetic.blocks(l)).collect();
    let one_by_one = BlockPool::new(synthetic.view(), 1 << 30);
    let together = BlockPool::new(synthetic.view(), 1 << 30);
    for chunk in blocks.chunks(5) {
        let picture = together.snapshot();
        for block in chunk {
            one_by_one.insert(block).unwrap();
        }
        // Not in the order in which they are best placed.
        let mut mixed: Vec<&Block> = chunk.iter().collect();
        mixed.rotate_left(2);
        assert!(together.insert_all(&mixed).into_iter().all(|outcome| outcome.unwrap() == Inserted::Placed));
        drop(picture);
        assert!(together.refresh(), "nothing is left to refresh");
        assert_eq!(draw(&scene, &one_by_one).image, draw(&scene, &together).image);
    }
    assert_eq!(one_by_one.used_bytes(), together.used_bytes());
}

/// Ghost voxels are refreshed after the pictures that leave no room for a copy.
#[test]
fn ghost_voxels_that_find_no_room_are_refreshed_later() {
    let synthetic = pyramid();
    let scene = synthetic.scene();
    let blocks = synthetic.blocks(0);
    let full = pool_of(&synthetic, synthetic.blocks(0));
    let pool = BlockPool::new(synthetic.view(), full.used_bytes());
    let all: Vec<&Block> = blocks.iter().collect();
    let (last, first) = all.split_last().unwrap();
    pool.insert_all(first);
    let picture = pool.snapshot();
    assert_eq!(pool.insert(last).unwrap(), Inserted::NoRoom, "its neighbors would be copied");
    drop(picture);
    assert_eq!(pool.insert(last).unwrap(), Inserted::Placed);
    assert!(pool.refresh());
    assert_eq!(draw(&scene, &full).image, draw(&scene, &pool).image);
    assert!(pool.used_bytes() <= pool.limit_bytes());
}
