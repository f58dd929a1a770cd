//! Many ranks draw the picture that one draws: of every kind, from all sides, each rank with no more than the blocks of its
//! share.

#[path = "../../render/tests/common/mod.rs"]
mod common;
mod rig;

extern crate render as corridor_render;

use array::Affine;
use common::{Synthetic, covered, cubic, difference, draw, points, voxel_box};
use corridor_compose::{Balance, Communicator, Composed, KdTree, Method, draw as draw_together};
use glam::DVec3;
use render::{
    Camera, Cancel, Demand, Fidelity, Image, ImageSize, Isosurface, LightShares, Quality, Rect, Scene, Slice,
    demand,
};
use rig::together;
use view::{Mode, SpaceAxis};

/// A map with a rotation, a shear and three spacings.
const SKEWED: Affine = Affine([[0.8, -0.5, 0.1, 12.0], [0.45, 0.9, 0.0, -7.0], [0.05, 0.1, 2.5, 3.0]]);

fn ripples(p: DVec3) -> f64 {
    let r = p.distance(DVec3::splat(20.0));
    (110.0 + 80.0 * (0.5 * r + 0.3 * p.x).sin() + 30.0 * (0.4 * p.y).cos()).clamp(0.0, 255.0)
}

/// All that a picture wants.
fn wanted(scene: &Scene) -> Demand {
    demand(&scene.view, &scene.camera, scene.size, &scene.portion(), Some(scene.finest_level), usize::MAX)
        .expect("legal input")
}

/// A part of the volume for each rank, by what is seen of the whole.
fn tree_of(synthetic: &Synthetic, scene: &Scene, ranks: usize) -> KdTree {
    Balance::new().cut(scene, &synthetic.full_pool().snapshot(), &wanted(scene), ranks).expect("legal input")
}

/// Returns the result of each rank, each drawn with only the blocks of its share.
fn drawn(synthetic: &Synthetic, scene: &Scene, tree: &KdTree, method: Method) -> Vec<Composed> {
    let all = wanted(scene);
    together(tree.ranks(), |ranks| {
        let own = tree.share(ranks.rank()).demand(scene, &all);
        let blocks =
            own.blocks.iter().map(|block| synthetic.block(u32::from(block.key.level), block.key.index));
        let pool = common::pool_of(synthetic, blocks);
        assert_eq!(pool.used_bytes(), own.pool_bytes, "what a share costs is known before");
        draw_together(ranks, scene, tree, method, &pool.snapshot(), &Cancel::new()).expect("legal input")
    })
}

/// The image of all parts.
fn assembled(size: ImageSize, parts: &[Composed]) -> Image {
    let mut image = Image { size, rgba: vec![[0.0; 4]; Rect::whole(size).pixels()] };
    for part in parts {
        let rect = part.piece.rect;
        assert_eq!(rect.intersection(&part.region), rect);
        for row in rect.top..rect.top + rect.height {
            for column in rect.left..rect.left + rect.width {
                let to = Rect::whole(size).index(column, row);
                image.rgba[to] = part.piece.rgba[rect.index(column, row)];
            }
        }
    }
    image
}

/// Asserts that pictures by many ranks are that by one, within `tolerance` 255ths; gives the largest difference.
fn agrees(what: &str, synthetic: &Synthetic, scene: &Scene, tolerance: f64) -> f64 {
    let one = draw(scene, &synthetic.full_pool());
    assert!(covered(&one.image) > 0.01, "{what}: something must be seen");
    let mut most = 0.0f64;
    for (ranks, method) in [
        (2, Method::BinarySwap),
        (3, Method::DirectSend),
        (6, Method::RadixK(3)),
        (8, Method::BinarySwap),
        (13, Method::Auto),
    ] {
        let tree = tree_of(synthetic, scene, ranks);
        let parts = drawn(synthetic, scene, &tree, method);
        let many = assembled(scene.size, &parts);
        let off = difference(&one.image, &many);
        assert!(off <= tolerance, "{what}: {ranks} ranks by {method:?} are off by {off}");
        most = most.max(off);
        let fidelity = parts[0].tally.fidelity(scene).expect("legal input");
        let is_whole =
            |fidelity: &Fidelity| (fidelity.share_uncovered, fidelity.share_lacking, fidelity.finest_shown);
        assert_eq!(is_whole(&fidelity), is_whole(&one.fidelity), "{what}");
    }
    most
}

fn scene_of(synthetic: &Synthetic) -> Scene {
    Scene { size: ImageSize { width: 90, height: 70 }, ..synthetic.scene() }
}

/// Two views: in perspective from outside and in parallel from below; and with the eye within the volume.
fn cameras(scene: &Scene) -> Vec<Camera> {
    let outside = Camera::framing(&scene.view.bounds(), Camera::DEFAULT_DIRECTION);
    let below = Camera::framing(&scene.view.bounds(), [0.4, -0.2, 0.8]).orthographic();
    let inside = Camera { eye: scene.view.bounds().center(), target: scene.view.bounds().max, ..outside };
    vec![outside, below, inside]
}

#[test]
fn volumes() {
    for (field, dtype) in [(cubic as common::Field, "<f4"), (ripples, "|u1"), (ripples, "<i2")] {
        for (map, block) in [(Affine::IDENTITY, [16; 3]), (SKEWED, [9, 21, 12])] {
            let synthetic =
                Synthetic { map, ..Synthetic::new([40, 44, 48], block, field) }.typed(dtype.parse().unwrap());
            for camera in cameras(&synthetic.scene()) {
                for is_lit in [false, true] {
                    let scene = Scene { camera, is_lit, ..scene_of(&synthetic) };
                    agrees(&format!("{dtype}, {map:?}, {camera:?}, lit {is_lit}"), &synthetic, &scene, 1.0);
                }
            }
        }
    }
}

/// The surroundings that dim a place may lie in the shares of other ranks.
#[test]
fn ambient_occlusion_and_the_depth_cue() {
    for map in [Affine::IDENTITY, SKEWED] {
        let synthetic = Synthetic { map, ..Synthetic::new([48; 3], [16; 3], ripples) };
        for camera in &cameras(&synthetic.scene())[..2] {
            let light = LightShares::new(1.0, 0.9, 0.5);
            let mut scene = Scene { camera: *camera, is_lit: true, light, ..scene_of(&synthetic) };
            scene.transfer.opacity = points(&[(80.0, 0.0), (120.0, 0.6), (255.0, 0.9)]);
            agrees(&format!("{map:?}, {camera:?}"), &synthetic, &scene, 1.0);
        }
    }
}

/// Few things can be seen, others are opaque.
#[test]
fn sparse_and_dense_volumes() {
    let synthetic = Synthetic::new([48; 3], [16; 3], ripples).typed("|u1".parse().unwrap());
    for opacity in
        [&[(130.0, 0.0), (150.0, 0.9), (170.0, 0.0)][..], &[(80.0, 0.0), (120.0, 0.6), (255.0, 0.9)]]
    {
        for camera in cameras(&synthetic.scene()) {
            let mut scene = Scene { camera, ..scene_of(&synthetic) };
            scene.transfer.opacity = points(opacity);
            agrees(&format!("{opacity:?}, {camera:?}"), &synthetic, &scene, 1.0);
        }
    }
}

/// Into how many parts a step is cut is decided for sixteen rays at once, so peaks much narrower than steps are met a little
/// otherwise where some of the rays are in another share: in few pixels, and by little.
#[test]
fn peaks_narrower_than_steps() {
    let synthetic = Synthetic::new([48; 3], [16; 3], ripples).typed("|u1".parse().unwrap());
    for camera in cameras(&synthetic.scene()) {
        let mut scene = Scene { camera, ..scene_of(&synthetic) };
        scene.transfer.opacity = points(&[(150.0, 0.0), (155.0, 0.9), (160.0, 0.0)]);
        let one = draw(&scene, &synthetic.full_pool()).image;
        let tree = tree_of(&synthetic, &scene, 8);
        let many = assembled(scene.size, &drawn(&synthetic, &scene, &tree, Method::Auto));
        let differs = |(a, b): &(&[f32; 4], &[f32; 4])| (0..4).any(|i| (a[i] - b[i]).abs() * 255.0 > 1.0);
        let count = one.rgba.iter().zip(&many.rgba).filter(differs).count();
        assert!(count * 1000 <= one.rgba.len(), "{count} pixels of {}", one.rgba.len());
        assert!(difference(&one, &many) <= 4.0, "{}", difference(&one, &many));
    }
}

#[test]
fn surfaces_alone_and_in_a_volume() {
    let surface = |value, opacity| Isosurface { value, color: [0.9, 0.2, 0.1], opacity };
    for (map, block) in [(Affine::IDENTITY, [16; 3]), (SKEWED, [9, 21, 12])] {
        let synthetic = Synthetic { map, ..Synthetic::new([40, 44, 48], block, cubic) };
        for mode in [Mode::Surfaces, Mode::Composite] {
            for camera in cameras(&synthetic.scene()) {
                let surfaces = vec![surface(95.0, 0.4), surface(110.0, 0.5), surface(122.0, 1.0)];
                let mut scene = Scene { camera, mode, surfaces, ..scene_of(&synthetic) };
                scene.transfer.opacity = points(&[(60.0, 0.0), (100.0, 0.15), (140.0, 0.3)]);
                agrees(&format!("{mode:?}, {map:?}, {camera:?}"), &synthetic, &scene, 1.0);
            }
        }
    }
}

/// A surface that lies on the planes between voxels, blocks and perhaps shares belongs to exactly one rank.
#[test]
fn surfaces_on_the_very_border_are_drawn_once() {
    let synthetic = Synthetic::new([32; 3], [8; 3], |p| p.x).typed("|u1".parse().unwrap());
    for value in [8.0, 11.0, 11.5, 12.0, 15.5, 16.0, 19.5, 24.0] {
        let surfaces = vec![Isosurface { value, color: [0.3, 0.9, 0.2], opacity: 0.5 }];
        let camera = Camera::framing(&synthetic.view().bounds(), [0.9, 0.3, -0.2]);
        let scene = Scene { camera, mode: Mode::Surfaces, surfaces, ..scene_of(&synthetic) };
        agrees(&format!("a plane at {value}"), &synthetic, &scene, 0.01);
    }
}

#[test]
fn slices_and_clipped_volumes() {
    let synthetic = Synthetic { map: SKEWED, ..Synthetic::new([40, 44, 48], [16; 3], cubic) };
    let slice = |axis, at| Slice::across(axis, at);
    for camera in cameras(&synthetic.scene()) {
        let slices = vec![slice(SpaceAxis::X, 19.5), slice(SpaceAxis::Y, 16.0), slice(SpaceAxis::Z, 30.2)];
        for mode in [Mode::Surfaces, Mode::Composite, Mode::Maximum] {
            let scene = Scene { camera, mode, slices: slices.clone(), ..scene_of(&synthetic) };
            agrees(&format!("slices, {mode:?}"), &synthetic, &scene, 1.0);
        }
    }
    let mut scene = scene_of(&synthetic);
    scene.clip = Some(voxel_box(&scene.view, [3.3, 8.0, 5.5], [30.2, 40.0, 25.0]));
    agrees("clipped", &synthetic, &scene, 1.0);
}

#[test]
fn extreme_values() {
    let synthetic = Synthetic::new([40; 3], [16; 3], ripples).typed("|u1".parse().unwrap());
    for mode in [Mode::Maximum, Mode::Minimum] {
        for camera in cameras(&synthetic.scene()) {
            let surfaces = vec![Isosurface { value: 140.0, color: [0.2, 0.3, 0.9], opacity: 0.4 }];
            let plain = Scene { camera, mode, ..scene_of(&synthetic) };
            let behind = Scene { surfaces, ..plain.clone() };
            // A 32,000th of the domain, whose colors span some hundreds of 255ths, may count as none.
            agrees("extreme values", &synthetic, &plain, 0.25);
            agrees("extreme values behind surfaces", &synthetic, &behind, 0.25);
        }
    }
}

/// Pictures in motion: longer steps, rays that end early, and levels below what is there.
#[test]
fn coarser_levels_and_longer_steps() {
    let synthetic = Synthetic { levels: 3, ..Synthetic::new([64; 3], [16; 3], cubic) };
    let mut scene = scene_of(&synthetic);
    scene.finest_level = 1;
    for quality in [Quality::STILL, Quality { step: 2.5, ..Quality::STILL }] {
        let scene = Scene { quality, ..scene.clone() };
        let all = common::pool_of(&synthetic, [1, 2].into_iter().flat_map(|level| synthetic.blocks(level)));
        let one = draw(&scene, &all);
        let tree = tree_of(&synthetic, &scene, 8);
        let many = assembled(scene.size, &drawn(&synthetic, &scene, &tree, Method::Auto));
        assert!(difference(&one.image, &many) <= 1.0, "{}", difference(&one.image, &many));
    }
}
