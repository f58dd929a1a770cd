//! As much work for each rank: on a scene where nearly everything is in one corner, by a count of samples that is made here,
//! ray by ray, and knows nothing of how shares are cut.

#[path = "../../render/tests/common/mod.rs"]
mod common;
mod rig;

extern crate render as corridor_render;

use common::{Synthetic, points, pool_of};
use corridor_compose::{Balance, Communicator, KdTree, Method, Viewpoint, draw};
use glam::DVec3;
use render::{BlockPool, Camera, Cancel, Demand, ImageSize, Scene, SubVolume, demand};
use rig::together;

const SIDE: u64 = 96;
const RANKS: usize = 8;
/// Largest accepted ratio of the busiest rank's work to the average.
const BALANCED: f64 = 1.2;

/// A ball of haze in one corner, nothing elsewhere.
fn corner(p: DVec3) -> f64 {
    (120.0 - 4.0 * p.distance(DVec3::new(22.0, 26.0, 20.0))).max(0.0)
}

/// A fog that hides what lies some blocks behind it, on the left only: which only measuring tells.
fn fog(p: DVec3) -> f64 {
    if p.x < 48.0 { 200.0 } else { 100.0 + 0.2 * p.z }
}

fn scene(synthetic: &Synthetic, opacity: &[(f64, f64)], turn: f64) -> Scene {
    let camera = Camera::framing(&synthetic.view().bounds(), [0.05, 1.0, -0.1]).orbit(turn, 0.0);
    let mut scene = Scene { camera, size: ImageSize { width: 120, height: 100 }, ..synthetic.scene() };
    scene.transfer.opacity = points(opacity);
    scene
}

fn wanted(scene: &Scene) -> Demand {
    demand(&scene.view, &scene.camera, scene.size, &scene.portion(), Some(0), usize::MAX)
        .expect("legal input")
}

/// The busiest rank's samples in which something is seen, by the average rank's; each ends its rays when it has gathered enough
/// itself.
fn imbalance(synthetic: &Synthetic, scene: &Scene, tree: &KdTree) -> f64 {
    let volume_from_world = scene.view.world_from_volume.inverse();
    let shares: Vec<SubVolume> = (0..RANKS).map(|rank| tree.share(rank)).collect();
    let mut work = [0.0; RANKS];
    for row in 0..scene.size.height {
        for column in 0..scene.size.width {
            let (origin, direction) = ray(scene, column, row);
            let origin = volume_from_world.transform_point3(origin);
            let step = volume_from_world.transform_vector3(direction);
            let mut through = [1.0; RANKS];
            for number in 0..1000 {
                let at = origin + step * f64::from(number);
                let Some(rank) = shares.iter().position(|share| share.holds(at.into())) else { continue };
                let is_inside = at.min_element() >= -0.5 && at.max_element() < SIDE as f64 - 0.5;
                if !is_inside || through[rank] < f64::from(scene.quality.termination) {
                    continue;
                }
                let opacity = scene.transfer.opacity_at((synthetic.field)(at));
                work[rank] += if opacity > 0.0 { 1.0 } else { 0.0 };
                through[rank] *= 1.0 - opacity;
            }
        }
    }
    let mean = work.iter().sum::<f64>() / RANKS as f64;
    work.into_iter().fold(0.0, f64::max) / mean
}

/// A pixel's ray in world space, as cameras are documented.
fn ray(scene: &Scene, column: u32, row: u32) -> (DVec3, DVec3) {
    let (eye, target) = (DVec3::from(scene.camera.eye), DVec3::from(scene.camera.target));
    let forward = (target - eye).normalize();
    let right = forward.cross(scene.camera.up.into()).normalize();
    let view::Projection::Perspective { fov_y_rad } = scene.camera.projection else {
        panic!("a perspective")
    };
    let half = (fov_y_rad / 2.0).tan();
    let [width, height] = [scene.size.width, scene.size.height].map(f64::from);
    let across = (2.0 * (f64::from(column) + 0.5) / width - 1.0) * half * width / height;
    let upward = (1.0 - 2.0 * (f64::from(row) + 0.5) / height) * half;
    (eye, (forward + right * across + right.cross(forward) * upward).normalize())
}

/// Coarse levels alone, as rank 0 has them before shares are cut.
fn quick_look(synthetic: &Synthetic) -> BlockPool {
    pool_of(synthetic, synthetic.blocks(synthetic.levels - 1))
}

#[test]
fn a_volume_with_everything_in_a_corner_is_cut_by_what_is_seen() {
    let synthetic = Synthetic { levels: 3, ..Synthetic::new([SIDE; 3], [16; 3], corner) };
    let scene = scene(&synthetic, &[(20.0, 0.0), (40.0, 0.02), (120.0, 0.04)], 0.0);
    let look = quick_look(&synthetic);
    let tree = Balance::new().cut(&scene, &look.snapshot(), &wanted(&scene), RANKS).unwrap();
    let balanced = imbalance(&synthetic, &scene, &tree);
    assert!(balanced <= BALANCED, "{balanced} before anything was measured");
    let blind = KdTree::new(&scene, &[], RANKS).unwrap();
    let halves = imbalance(&synthetic, &scene, &blind);
    assert!(halves > 2.0, "eight equal boxes are not balanced here: {halves}");
}

/// A guess does not know what hides what; the next picture does, from another side too.
#[test]
fn what_a_picture_took_balances_the_next_one() {
    let synthetic = Synthetic { levels: 2, ..Synthetic::new([SIDE; 3], [16; 3], fog) };
    let opacity = [(50.0, 0.0), (130.0, 0.01), (190.0, 0.3), (255.0, 0.3)];
    let imbalances = together(RANKS, |ranks| {
        let look = quick_look(&synthetic);
        let (mut balance, mut took, mut seen) = (Balance::new(), Vec::new(), Vec::new());
        for turn in [0.0, 0.0, 0.0, 0.05, 0.1] {
            let scene = scene(&synthetic, &opacity, turn);
            let all = wanted(&scene);
            let tree = balance.plan(ranks, &scene, &look.snapshot(), &all, &took).unwrap();
            let own = tree.share(ranks.rank()).demand(&scene, &all);
            let blocks = own.blocks.iter().map(|b| synthetic.block(u32::from(b.key.level), b.key.index));
            let pool = pool_of(&synthetic, blocks);
            let part = draw(ranks, &scene, &tree, Method::Auto, &pool.snapshot(), &Cancel::new()).unwrap();
            took = part.work;
            seen.push(if ranks.rank() == 0 { imbalance(&synthetic, &scene, &tree) } else { 0.0 });
        }
        seen
    });
    let [first, .., last] = imbalances[0].as_slice() else { panic!("five pictures") };
    assert!(last <= &BALANCED && first > last, "{:?}", imbalances[0]);
}

/// The camera goes around a volume with everything in one corner, and into that corner: once a picture was measured each view
/// is balanced, by what casters count and by the samples in which something is seen, while the shares of the first view would not do for
/// all of them.
#[test]
fn every_view_of_a_journey_is_balanced() {
    let synthetic = Synthetic { levels: 3, ..Synthetic::new([SIDE; 3], [16; 3], corner) };
    let opacity = [(20.0, 0.0), (40.0, 0.02), (120.0, 0.04)];
    let around = [0.0, 0.8, 1.6, 2.4, 3.2].map(|turn| scene(&synthetic, &opacity, turn));
    let mut near = around[0].clone();
    // Half of the ball is beside the picture.
    let (eye, edge) = (DVec3::from(near.camera.eye), DVec3::new(42.0, 26.0, 20.0));
    (near.camera.eye, near.camera.target) = ((edge + (eye - edge) * 0.2).into(), edge.into());
    let views: Vec<Scene> = around.into_iter().chain([near]).collect();
    let journeys = together(RANKS, |ranks| {
        let look = quick_look(&synthetic);
        let (mut balance, mut took, mut trees, mut works) = (Balance::new(), Vec::new(), vec![], vec![]);
        for scene in &views {
            let all = wanted(scene);
            let tree = balance.plan(ranks, scene, &look.snapshot(), &all, &took).unwrap();
            let own = tree.share(ranks.rank()).demand(scene, &all);
            let blocks = own.blocks.iter().map(|b| synthetic.block(u32::from(b.key.level), b.key.index));
            let pool = pool_of(&synthetic, blocks);
            let part = draw(ranks, scene, &tree, Method::Auto, &pool.snapshot(), &Cancel::new()).unwrap();
            took = part.work;
            works.push(took.iter().map(|(_, work)| work).sum::<f64>());
            trees.push(tree);
        }
        (trees, works)
    });
    let trees = &journeys[0].0;
    let of = |scene: &Scene, tree: &KdTree| imbalance(&synthetic, scene, tree);
    let mut by_the_first: f64 = 0.0;
    for (number, scene) in views.iter().enumerate().skip(1) {
        let works: Vec<f64> = journeys.iter().map(|(_, works)| works[number]).collect();
        let told = works.iter().copied().fold(0.0, f64::max) * RANKS as f64 / works.iter().sum::<f64>();
        let seen = of(scene, &trees[number]);
        assert!(
            told <= BALANCED && seen <= BALANCED,
            "view {number}: {told} by the casters, {seen} by what is seen"
        );
        by_the_first = by_the_first.max(of(scene, &trees[0]));
    }
    assert!(by_the_first > BALANCED, "views that need no new shares show nothing: {by_the_first}");
}

/// Shares are cut even if all the work is in one place, or if there is none.
#[test]
fn few_points_are_enough_for_many_ranks() {
    let synthetic = Synthetic::new([SIDE; 3], [16; 3], corner);
    let scene = scene(&synthetic, &[(20.0, 0.0), (120.0, 0.05)], 0.0);
    let point = |at| render::WorkPoint { at, block: 0, work: 1.0 };
    for points in
        [vec![], vec![point([5.0; 3])], vec![point([5.0; 3]); 3], vec![point([5.0; 3]), point([90.0; 3])]]
    {
        let tree = KdTree::new(&scene, &points, 13).unwrap();
        let shares: Vec<SubVolume> = (0..13).map(|rank| tree.share(rank)).collect();
        for at in [[0.0; 3], [5.0; 3], [50.0, 20.0, 80.0], [95.0; 3]] {
            assert_eq!(
                shares.iter().filter(|share| share.holds(at)).count(),
                1,
                "{} points, {at:?}",
                points.len()
            );
        }
    }
}

/// From any eye each ray meets shares in the order that the tree says.
#[test]
fn the_order_is_that_of_all_rays() {
    let synthetic = Synthetic::new([SIDE; 3], [16; 3], corner);
    let scene = scene(&synthetic, &[(20.0, 0.0), (120.0, 0.05)], 0.0);
    for ranks in [2, 5, 8, 13] {
        let tree =
            Balance::new().cut(&scene, &synthetic.full_pool().snapshot(), &wanted(&scene), ranks).unwrap();
        let again = KdTree::from_bytes(&tree.to_bytes(), ranks).unwrap();
        assert_eq!(tree, again);
        assert!(KdTree::from_bytes(&tree.to_bytes(), ranks + 1).is_err());
        let shares: Vec<SubVolume> = (0..ranks).map(|rank| tree.share(rank)).collect();
        for seed in 0..200u32 {
            let random =
                |n: u32| f64::from(seed.wrapping_mul(2_654_435_761).rotate_left(n * 7) % 1000) / 1000.0;
            let eye = DVec3::new(random(0), random(1), random(2)) * 200.0 - 50.0;
            let to = DVec3::new(random(3), random(4), random(5)) * SIDE as f64;
            let along = (to - eye).normalize_or(DVec3::X);
            for viewpoint in [Viewpoint::Eye(eye.into()), Viewpoint::Along(along.into())] {
                let order = tree.order(&viewpoint);
                let place = |rank: usize| order.iter().position(|&other| other == rank).unwrap();
                let met = (0..600).filter_map(|i| {
                    let at = eye + along * f64::from(i) * 0.5;
                    shares.iter().position(|share| share.holds(at.into()))
                });
                let places: Vec<usize> = met.map(place).collect();
                assert!(places.is_sorted(), "{ranks} ranks from {viewpoint:?} toward {along}: {places:?}");
            }
        }
    }
}
