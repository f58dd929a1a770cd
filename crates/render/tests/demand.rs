//! Demand of a picture: the level, the reason, the order, the blocks.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeSet;

use array::{BlockKey, LevelOrigin};
use common::{Synthetic, cubic, linear};
use corridor_render::{
    Camera, Demand, ImageSize, LevelLimit, Portion, Slice, VolumeView, demand, demand_of, stereo,
};
use view::SpaceAxis;

const SIZE: ImageSize = ImageSize { width: 256, height: 256 };
const PLENTY: usize = 1 << 40;

/// 4096^3 bytes in blocks of 64^3, seven levels.
fn huge() -> Synthetic {
    Synthetic { levels: 7, ..Synthetic::new([4096; 3], [64; 3], linear) }.typed("|u1".parse().unwrap())
}

fn whole(view: &VolumeView) -> Camera {
    Camera::framing(&view.bounds(), Camera::DEFAULT_DIRECTION)
}

fn want(view: &VolumeView, camera: &Camera, max_bytes: usize) -> Demand {
    demand(view, camera, SIZE, &Portion::default(), None, max_bytes).unwrap()
}

#[test]
fn the_screen_decides_where_memory_does_not() {
    let view = huge().view();
    let camera = whole(&view);
    let seen = want(&view, &camera, PLENTY);
    // 4096 voxels on about 120 pixels: 32 voxels a pixel.
    assert_eq!((seen.wanted, seen.limit), (4, LevelLimit::Screen));
    let mut nearer = camera;
    for level in [3, 2] {
        nearer = nearer.orthographic().zoom(if nearer == camera { 2.6 } else { 2.0 });
        let seen = want(&view, &nearer, PLENTY);
        assert_eq!((seen.wanted, seen.limit), (level, LevelLimit::Screen));
    }
    let closest = want(&view, &nearer.zoom(64.0), PLENTY);
    assert_eq!((closest.wanted, closest.limit), (0, LevelLimit::Finest));
}

#[test]
fn memory_decides_where_the_visible_blocks_do_not_fit() {
    let view = huge().view();
    let free = want(&view, &whole(&view), PLENTY);
    let tight = want(&view, &whole(&view), free.pool_bytes - 1);
    assert_eq!((tight.wanted, tight.limit), (5, LevelLimit::Memory));
    assert!(tight.pool_bytes < free.pool_bytes);
    let nothing = want(&view, &whole(&view), 0);
    assert_eq!((nothing.wanted, nothing.limit), (6, LevelLimit::Memory));
    assert_eq!(nothing.blocks.len(), 1, "the coarsest level is wanted whatever it costs");
}

/// A server may describe anything: each block has a cost, and so has looking at it.
#[test]
fn levels_of_tiny_blocks_are_wanted_only_as_far_as_they_can_be_listed() {
    let mut dataset = Synthetic::new([8; 3], [4; 3], linear).dataset();
    let base = dataset.arrays[0].levels[0].clone();
    let of = |side: u64, origin| array::Level {
        shape: vec![side; 3],
        block: vec![1; 3],
        origin,
        factor: vec![256.0 / side as f64; 3],
        ..base.clone()
    };
    let (fine, coarse) = (of(256, LevelOrigin::Stored), of(16, LevelOrigin::Mean));
    dataset.arrays[0].levels = vec![fine.clone(), coarse.clone()];
    let view = VolumeView::new(&dataset, 0, &[]).unwrap();
    let seen = demand(&view, &whole(&view), SIZE, &Portion::default(), Some(0), PLENTY).unwrap();
    assert_eq!((seen.wanted, seen.limit, seen.blocks.len()), (1, LevelLimit::Memory, 16 * 16 * 16));
    // And as many levels as there may be take no longer for it.
    let pair = [of(256, LevelOrigin::Mean), of(128, LevelOrigin::Sampled)];
    let many: Vec<_> = pair.iter().cycle().take(62).cloned().collect();
    dataset.arrays[0].levels = [vec![fine], many, vec![coarse]].concat();
    let view = VolumeView::new(&dataset, 0, &[]).unwrap();
    let seen = demand(&view, &whole(&view), SIZE, &Portion::default(), Some(0), PLENTY).unwrap();
    assert_eq!((seen.limit, seen.blocks.len()), (LevelLimit::Memory, 16 * 16 * 16));
}

#[test]
fn what_is_wanted_costs_what_it_says() {
    let synthetic = Synthetic { levels: 2, ..Synthetic::new([40, 50, 60], [16; 3], linear) };
    let view = synthetic.view();
    let camera = whole(&view).zoom(8.0);
    let seen = want(&view, &camera, PLENTY);
    assert_eq!(seen.wanted, 0);
    let pool = corridor_render::BlockPool::new(view, seen.pool_bytes);
    pool.mark([&seen]);
    let blocks: Vec<_> = (0..2).flat_map(|l| synthetic.blocks(l)).collect();
    for wanted in &seen.blocks {
        let block = blocks.iter().find(|b| b.key == wanted.key).unwrap();
        assert_eq!(pool.insert(block).unwrap(), corridor_render::Inserted::Placed);
    }
    assert_eq!(pool.used_bytes(), seen.pool_bytes);
    assert!(seen.missing(&pool).is_empty());
}

#[test]
fn coarse_comes_first_then_the_center_then_the_front() {
    let view = Synthetic { levels: 3, ..Synthetic::new([256; 3], [32; 3], linear) }.view();
    let camera = Camera::framing(&view.bounds(), [0.0, 1.0, 0.0]).zoom(1.9);
    let seen = want(&view, &camera, PLENTY);
    assert_eq!(seen.wanted, 0);
    assert!(seen.blocks.is_sorted_by(|a, b| a.key.level >= b.key.level));
    assert!(seen.blocks.is_sorted_by(|a, b| a.priority >= b.priority));
    assert!(seen.blocks[0].priority > seen.blocks.iter().find(|b| b.key.level == 1).unwrap().priority);
    let fine: Vec<[u64; 3]> =
        seen.blocks.iter().filter(|b| b.key.level == 0).map(|b| view.locate(&b.key).unwrap().1).collect();
    let [_, y, x] = fine[0];
    assert!((3..5).contains(&x) && (0..2).contains(&y), "{:?}", fine[0]);
    let front = fine.iter().position(|&at| at == [3, 0, 3]).unwrap();
    let back = fine.iter().position(|&at| at == [3, 7, 3]).unwrap();
    assert!(front < back);
}

#[test]
fn only_what_the_camera_sees_is_wanted() {
    let synthetic = Synthetic::new([128; 3], [16; 3], linear);
    let view = synthetic.view();
    let all = want(&view, &whole(&view), PLENTY);
    assert_eq!(all.blocks.len(), 512);
    let mut near = Camera::framing(&view.bounds(), [0.0, 1.0, 0.0]).orthographic().zoom(8.0);
    near.target[2] = 20.0;
    near.eye[2] = 20.0;
    let some = want(&view, &near, PLENTY);
    let places: Vec<[u64; 3]> = some.blocks.iter().map(|b| view.locate(&b.key).unwrap().1).collect();
    assert!(places.iter().all(|&[z, _, x]| z <= 2 && (3..=4).contains(&x)), "{places:?}");
    assert!(places.len() >= 8 * 2 && places.len() < 8 * 9);
    let clip = common::voxel_box(&view, [0.0; 3], [20.0, 20.0, 127.0]);
    let clipped =
        demand(&view, &whole(&view), SIZE, &Portion { clip: Some(clip), slices: None }, None, PLENTY)
            .unwrap();
    assert_eq!(clipped.blocks.len(), 2 * 2 * 8);
    let away = want(&view, &Camera { target: near.eye, eye: near.target, ..whole(&view) }, PLENTY);
    assert!(away.blocks.len() <= 64 * 5, "{}", away.blocks.len());
}

/// Every block that a picture shows, or takes a voxel from, is among those wanted: it equals one of all blocks.
#[test]
fn a_picture_of_what_is_wanted_is_complete() {
    let synthetic = Synthetic { levels: 2, ..Synthetic::new([96; 3], [16; 3], cubic) };
    let view = synthetic.view();
    let blocks = [synthetic.blocks(0), synthetic.blocks(1)].concat();
    let everything = common::pool_of(&synthetic, blocks.iter().cloned());
    let base = whole(&view);
    for camera in
        [base, base.zoom(3.0).orbit(0.7, 0.2), base.orthographic().zoom(5.0).pan(0.3, -0.2), base.zoom(30.0)]
    {
        let seen = want(&view, &camera, PLENTY);
        let wanted = |key: BlockKey| seen.blocks.iter().any(|b| b.key == key);
        let pool = common::pool_of(&synthetic, blocks.iter().filter(|b| wanted(b.key)).cloned());
        let scene = corridor_render::Scene { camera, size: SIZE, ..synthetic.scene() };
        // How densely a cell is sampled may depend on voxels beside it, so the pictures are alike; where nothing is leapt over
        // they are the same.
        let apart =
            common::difference(&common::draw(&scene, &pool).image, &common::draw(&scene, &everything).image);
        assert!(apart <= 0.5, "{apart} from {camera:?}");
        let quality = corridor_render::Quality { skip_empty: false, ..scene.quality };
        let scene = corridor_render::Scene { quality, ..scene };
        let drawn = common::draw(&scene, &pool);
        assert!(drawn.fidelity.is_complete(), "{:?} from {camera:?}", drawn.fidelity);
        assert!(drawn.image == common::draw(&scene, &everything).image, "from {camera:?}");
    }
}

#[test]
fn a_sampled_level_gives_the_first_picture_and_is_never_the_last() {
    let mut dataset = Synthetic { levels: 3, ..Synthetic::new([256; 3], [32; 3], linear) }.dataset();
    let levels = &mut dataset.arrays[0].levels;
    let sampled = array::Level { origin: LevelOrigin::Sampled, ..levels[2].clone() };
    levels.push(sampled);
    let view = VolumeView::new(&dataset, 0, &[]).unwrap();
    let near = want(&view, &whole(&view).zoom(4.0), PLENTY);
    let mut steps: Vec<u8> = near.blocks.iter().map(|b| b.key.level).collect();
    steps.dedup();
    // No mean is made that is not shown in the end.
    assert_eq!(steps, [3, 0]);
    let far = want(&view, &whole(&view).zoom(0.2), PLENTY);
    let mut steps: Vec<u8> = far.blocks.iter().map(|b| b.key.level).collect();
    steps.dedup();
    assert_eq!((far.wanted, steps), (2, vec![3, 2]));

    // Levels that the file has are used on the way.
    for level in &mut dataset.arrays[0].levels[..3] {
        level.origin = LevelOrigin::Stored;
    }
    let view = VolumeView::new(&dataset, 0, &[]).unwrap();
    let mut steps: Vec<u8> =
        want(&view, &whole(&view).zoom(4.0), PLENTY).blocks.iter().map(|b| b.key.level).collect();
    steps.dedup();
    assert_eq!(steps, [3, 2, 1, 0]);
}

#[test]
fn corners_of_blocks_give_the_first_picture_and_are_never_the_last() {
    let mut dataset = Synthetic { levels: 3, ..Synthetic::new([256; 3], [32; 3], linear) }.dataset();
    let levels = &mut dataset.arrays[0].levels;
    // The mesh has two levels; means of the coarser one are made, the corners of its blocks are not half as large as anything.
    levels[1].origin = LevelOrigin::Stored;
    let mut corners = array::Level { origin: LevelOrigin::Corners, ..levels[2].clone() };
    corners.shape = vec![9; 3];
    corners.factor = vec![32.0; 3];
    corners.world_from_voxel = levels[0].world_from_voxel.coarsened([32.0; 3], [-0.5; 3]);
    levels.push(corners);
    let view = VolumeView::new(&dataset, 0, &[]).unwrap();
    let near = want(&view, &whole(&view).zoom(4.0), PLENTY);
    assert_eq!((near.wanted, steps(&near)), (0, vec![3, 1, 0]), "no mean is made on the way");
    let far = want(&view, &whole(&view).zoom(0.001), PLENTY);
    assert_eq!(
        (far.wanted, steps(&far)),
        (2, vec![3, 2]),
        "a level of its own is shown in the end, however far"
    );
    let forced = demand(&view, &whole(&view), SIZE, &Portion::default(), Some(3), PLENTY);
    assert_eq!(forced.unwrap().wanted, 3, "whoever asks for corners gets them");
}

/// A flat file: three levels of means and, from number 3 on, a sampled twin of each made one.
fn flat() -> VolumeView {
    let mut dataset = Synthetic { levels: 3, ..Synthetic::new([256; 3], [32; 3], linear) }.dataset();
    let levels = &mut dataset.arrays[0].levels;
    let twins: Vec<_> =
        levels[1..].iter().map(|l| array::Level { origin: LevelOrigin::Sampled, ..l.clone() }).collect();
    levels.extend(twins);
    VolumeView::new(&dataset, 0, &[]).unwrap()
}

fn steps(demand: &Demand) -> Vec<u8> {
    let mut steps: Vec<u8> = demand.blocks.iter().map(|b| b.key.level).collect();
    steps.dedup();
    steps
}

/// Means cost reading the whole array, samples of the same resolution a small part of it.
#[test]
fn the_wanted_level_is_sampled_before_it_is_made() {
    let view = flat();
    let zoomed = |zoom: f64, max_bytes: usize| want(&view, &whole(&view).zoom(zoom), max_bytes);
    let middle = zoomed(0.6, PLENTY);
    assert_eq!((middle.wanted, steps(&middle)), (1, vec![4, 3, 1]));
    assert!(middle.blocks.is_sorted_by(|a, b| a.priority >= b.priority));
    let far = zoomed(0.2, PLENTY);
    assert_eq!((far.wanted, steps(&far)), (2, vec![4, 2]));
    // What the file has needs no stand-in of the same cost.
    let near = zoomed(4.0, PLENTY);
    assert_eq!((near.wanted, steps(&near)), (0, vec![4, 0]));
    // The level shown in the end goes before the sharpness of the quick look.
    let tight = zoomed(0.6, middle.pool_bytes - 1);
    assert_eq!((tight.wanted, tight.limit, steps(&tight)), (1, LevelLimit::Screen, vec![4, 1]));
}

#[test]
fn a_forced_level_is_limited_by_what_is_seen_of_it() {
    let view = huge().view();
    let camera = whole(&view);
    let force = |camera: &Camera, level: u8, max_bytes: usize| {
        demand(&view, camera, SIZE, &Portion::default(), Some(level), max_bytes).unwrap()
    };
    let coarser = force(&camera, 6, PLENTY);
    assert_eq!((coarser.wanted, coarser.limit, coarser.blocks.len()), (6, LevelLimit::Screen, 1));
    let near = camera.orthographic().zoom(100.0);
    let finest = force(&near, 0, 8 << 30);
    assert_eq!((finest.wanted, finest.limit), (0, LevelLimit::Finest), "64 GiB, of which little is seen");
    assert!(finest.pool_bytes <= 8 << 30);
    let whole_of_it = force(&camera, 0, 1 << 30);
    assert_eq!((whole_of_it.wanted, whole_of_it.limit), (3, LevelLimit::Memory), "the finest that fits");
    assert!(demand(&view, &camera, SIZE, &Portion::default(), Some(9), PLENTY).is_err());
}

#[test]
fn a_forced_level_of_thin_blocks_costs_what_it_costs() {
    let view = Synthetic::new([64; 3], [1, 64, 64], linear).typed("|u1".parse().unwrap()).view();
    let all = demand(&view, &whole(&view), SIZE, &Portion::default(), Some(0), PLENTY).unwrap();
    let pool = corridor_render::BlockPool::new(view.clone(), all.pool_bytes);
    let synthetic = Synthetic::new([64; 3], [1, 64, 64], linear).typed("|u1".parse().unwrap());
    for block in synthetic.blocks(0) {
        assert_eq!(pool.insert(&block).unwrap(), corridor_render::Inserted::Placed);
    }
    assert_eq!(pool.used_bytes(), all.pool_bytes);
}

#[test]
fn two_eyes_want_what_either_sees() {
    let view = huge().view();
    let near = whole(&view).zoom(24.0);
    let of = |cameras: &[Camera]| {
        demand_of(&view, cameras, SIZE, &Portion::default(), Some(1), PLENTY).unwrap().blocks
    };
    let keys = |cameras: &[Camera]| of(cameras).iter().map(|block| block.key).collect::<BTreeSet<_>>();
    let eyes = stereo::eyes(&near, 0.2).unwrap();
    let [left, right] = eyes.map(|eye| keys(&[eye]));
    assert!(!left.is_subset(&right) && !right.is_subset(&left), "each sees blocks that the other does not");
    assert_eq!(keys(&eyes), &left | &right);
    assert!(demand_of(&view, &[], SIZE, &Portion::default(), None, PLENTY).is_err());
}

/// The work follows what is seen, not what exists: 2^54 blocks are no trouble.
#[test]
fn an_array_beyond_all_measure_is_no_trouble() {
    let synthetic = Synthetic { levels: 16, ..Synthetic::new([1 << 20; 3], [4; 3], linear) }
        .typed("|u1".parse().unwrap());
    let view = synthetic.view();
    let seen = want(&view, &whole(&view).zoom(1e4), 64 << 20);
    assert!(seen.pool_bytes <= 64 << 20 && !seen.blocks.is_empty());
}

#[test]
fn slices_alone_want_the_blocks_they_cut() {
    let synthetic = Synthetic { levels: 3, ..Synthetic::new([128; 3], [16; 3], linear) };
    let view = synthetic.view();
    let wanted = |slices: &[(SpaceAxis, f64)], max_bytes| {
        let slices = slices.iter().map(|&(axis, at)| Slice::across(axis, at)).collect();
        let portion = Portion { clip: None, slices: Some(slices) };
        let demand = demand(&view, &whole(&view), SIZE, &portion, Some(0), max_bytes).unwrap();
        let finest: Vec<[u64; 3]> = demand
            .blocks
            .iter()
            .filter(|b| b.key.level == demand.wanted)
            .map(|b| view.locate(&b.key).unwrap().1)
            .collect();
        (demand, finest)
    };
    let (one, blocks) = wanted(&[(SpaceAxis::Z, 40.0)], PLENTY);
    assert_eq!((one.wanted, blocks.len()), (0, 64));
    assert!(blocks.iter().all(|at| at[0] == 2), "{blocks:?}");
    // Half a voxel before the next block values are interpolated with its first ones.
    let (_, blocks) = wanted(&[(SpaceAxis::Y, 31.5)], PLENTY);
    assert!(blocks.len() == 128 && blocks.iter().all(|at| at[1] == 1 || at[1] == 2));
    let (_, blocks) = wanted(&[(SpaceAxis::X, 5.0), (SpaceAxis::Z, 100.0)], PLENTY);
    assert_eq!(blocks.len(), 64 + 64 - 8);
    // What does not fit as a volume fits as a slice.
    let volume = demand(&view, &whole(&view), SIZE, &Portion::default(), Some(0), one.pool_bytes).unwrap();
    let (slice, _) = wanted(&[(SpaceAxis::Z, 40.0)], one.pool_bytes);
    assert_eq!((volume.wanted > 0, slice.wanted), (true, 0));
}
