//! Isosurfaces: against a second caster in double precision, on shapes whose surface is known, and across blocks,
//! levels and missing values.

mod common;
#[path = "common/reference.rs"]
mod reference;

use array::Affine;
use common::{Synthetic, covered, cubic, difference, draw, linear, points, pool_of, voxel_box};
use corridor_render::{
    Camera, Cancel, Image, ImageSize, Instructions, Isosurface, LightShares, Quality, Scene, cast_with,
};
use glam::DVec3;
use view::Mode;

/// A map with a rotation, a shear and three spacings.
const SKEWED: Affine = Affine([[0.8, -0.5, 0.1, 12.0], [0.45, 0.9, 0.0, -7.0], [0.05, 0.1, 2.5, 3.0]]);

const RED: [f32; 3] = [0.9, 0.2, 0.1];

fn surface(value: f64, opacity: f32) -> Isosurface {
    Isosurface { value, color: RED, opacity }
}

fn scene(synthetic: &Synthetic, surfaces: Vec<Isosurface>, mode: Mode) -> Scene {
    Scene { surfaces, mode, size: ImageSize { width: 24, height: 20 }, ..synthetic.scene() }
}

/// Components that are farther apart than `tolerance` 255ths, and the largest difference.
fn apart(a: &Image, b: &Image, tolerance: f64) -> (usize, f64) {
    let pairs = a.rgba.as_flattened().iter().zip(b.rgba.as_flattened());
    (pairs.filter(|(a, b)| f64::from((*a - *b).abs()) * 255.0 > tolerance).count(), difference(a, b))
}

/// Surfaces alone are exact to rounding; mixed with the volume they add nothing to what tables and the early end may
/// change. At a silhouette rounding may decide otherwise for a ray that only just touches.
#[test]
fn pictures_agree_with_the_reference() {
    for (field, dtype) in [(cubic as common::Field, "<f8"), (cubic, "|u1"), (linear, "<i2")] {
        for map in [Affine::IDENTITY, SKEWED] {
            let synthetic = Synthetic { map, ..Synthetic::new([20, 33, 29], [8, 16, 16], field) }
                .typed(dtype.parse().unwrap());
            let surfaces = vec![surface(95.3, 0.5), surface(110.2, 0.6), surface(120.1, 1.0)];
            for (mode, tolerance) in [(Mode::Surfaces, 0.1), (Mode::Composite, 1.0)] {
                let scene = scene(&synthetic, surfaces.clone(), mode);
                let scene = Scene { quality: Quality { termination: 1e-4, ..Quality::STILL }, ..scene };
                for scene in [Scene { camera: scene.camera.orthographic(), ..scene.clone() }, scene] {
                    let drawn = draw(&scene, &synthetic.full_pool()).image;
                    let (wrong, most) = apart(&drawn, &reference::cast(&synthetic, &scene), tolerance);
                    assert!(
                        wrong <= 4,
                        "{mode:?}, {dtype}, {map:?}: {wrong} components are wrong, by up to {most}"
                    );
                    assert!(covered(&drawn) > 0.003, "something must be seen");
                }
            }
        }
    }
}

#[test]
fn light_of_any_strength_agrees_with_the_reference() {
    let synthetic = Synthetic::new([20, 33, 29], [8, 16, 16], cubic);
    let full = scene(&synthetic, vec![surface(95.3, 0.5), surface(120.1, 1.0)], Mode::Surfaces);
    let drawn = |strength: f64| {
        let scene = Scene { light: LightShares::of_strength(strength), ..full.clone() };
        let image = draw(&scene, &synthetic.full_pool()).image;
        let (wrong, most) = apart(&image, &reference::cast(&synthetic, &scene), 0.1);
        assert!(wrong <= 4, "{strength}: {wrong} components are wrong, by up to {most}");
        image
    };
    let [flat, half, lit] = [0.0, 0.5, 1.0].map(drawn);
    let effect = difference(&flat, &lit);
    assert!(effect > 20.0 && difference(&flat, &half) < effect && difference(&half, &lit) < effect);
    let same = draw(&full, &synthetic.full_pool()).image;
    assert!(same.rgba == lit.rgba, "full strength is the default");
}

#[test]
fn a_volume_in_light_without_strength_is_that_without_light() {
    let synthetic = Synthetic::new([20, 33, 29], [8, 16, 16], cubic);
    let plain = scene(&synthetic, Vec::new(), Mode::Composite);
    let flat = Scene { is_lit: true, light: LightShares::of_strength(0.0), ..plain.clone() };
    let [plain, flat] = [plain, flat].map(|scene| draw(&scene, &synthetic.full_pool()).image);
    assert!(covered(&plain) > 0.003 && plain.rgba == flat.rgba);
}

/// Values that have nothing to do with those beside them.
fn noise(p: DVec3) -> f64 {
    let wave = (p.dot(DVec3::new(12.9898, 78.233, 37.719)) + 1.0).sin() * 43_758.545;
    100.0 * (wave - wave.floor())
}

/// Nearly every cell holds surfaces, in many of them both ends of the way through it lie on the same side. The reference
/// does not see what is crossed twice within a 64th of a step.
#[test]
fn surfaces_in_noise_agree_with_the_reference_whatever_draws_them() {
    for (dtype, block) in [("<f4", [9, 16, 11]), ("|u1", [24; 3]), ("<f8", [24, 5, 24])] {
        let synthetic = Synthetic::new([24; 3], block, noise).typed(dtype.parse().unwrap());
        for surfaces in
            [vec![surface(85.3, 1.0)], vec![surface(9.6, 0.3), surface(50.2, 0.2), surface(93.7, 1.0)]]
        {
            let scene = scene(&synthetic, surfaces, Mode::Surfaces);
            let expected = reference::cast(&synthetic, &scene);
            let snapshot = synthetic.full_pool().snapshot();
            for &set in Instructions::available() {
                let drawn = cast_with(&scene, &snapshot, &Cancel::new(), set).unwrap().image;
                let (wrong, _) = apart(&drawn, &expected, 0.5);
                let all = 4 * drawn.rgba.len();
                assert!(wrong * 100 <= all, "{set:?}, {dtype}: {wrong} of {all} components are wrong");
                assert!(covered(&drawn) > 0.05, "something must be seen");
            }
        }
    }
}

/// Rays that meet something in each cell, and at different times, lose nothing in a large block.
#[test]
fn borders_do_not_show_in_noise() {
    let whole = Synthetic::new([40; 3], [40; 3], noise).typed("|u1".parse().unwrap());
    let cut = Synthetic { block: [7, 16, 11], ..whole.clone() };
    let surfaces = vec![surface(40.0, 0.1), surface(60.0, 0.1)];
    let scene =
        Scene { size: ImageSize { width: 96, height: 80 }, ..scene(&whole, surfaces, Mode::Surfaces) };
    let one = draw(&scene, &whole.full_pool()).image;
    let many = draw(&Scene { view: cut.view(), ..scene }, &cut.full_pool()).image;
    let (wrong, most) = apart(&one, &many, 1.0);
    assert!(wrong <= 12 && covered(&one) > 0.1, "{wrong} components are wrong, by up to {most}");
}

/// Ripples whose bytes have wide plateaus.
fn ripples(p: DVec3) -> f64 {
    60.0 + 4.0 * (0.45 * p.distance(DVec3::new(9.0, 14.0, 11.0))).sin() + 2.0 * (0.3 * p.x).sin()
}

/// Surfaces of the ripples, `shift` above the values of two plateaus.
fn rippled(synthetic: &Synthetic, mode: Mode, shift: f64) -> Scene {
    let surfaces = vec![surface(60.0 + shift, 0.3), surface(63.0 + shift, 1.0)];
    let mut scene = scene(synthetic, surfaces, mode);
    scene.size = ImageSize { width: 60, height: 48 };
    scene.transfer.opacity = points(&[(58.0, 0.0), (66.0, 0.06)]);
    scene
}

/// At the values of plateaus, too, but where a plateau is one voxel thick: the reference does not see both sides of that.
#[test]
fn surfaces_of_plateaus_agree_with_the_reference() {
    let synthetic = Synthetic::new([32; 3], [16, 32, 13], ripples).typed("|u1".parse().unwrap());
    for (shift, most_wrong) in [(0.5, 0), (0.0, 48)] {
        for mode in [Mode::Surfaces, Mode::Composite] {
            let scene = rippled(&synthetic, mode, shift);
            let drawn = draw(&scene, &synthetic.full_pool()).image;
            let (wrong, most) = apart(&drawn, &reference::cast(&synthetic, &scene), 8.0);
            assert!(
                wrong <= most_wrong,
                "{mode:?} at {shift}: {wrong} components are wrong, by up to {most}"
            );
            assert!(covered(&drawn) > 0.05, "something must be seen");
        }
    }
}

/// Rounding does not decide on which side voxels lie that have the isovalue, nor by which cell's slope a surface is lit that lies
/// at the rim of a plateau.
#[test]
fn surfaces_at_the_values_of_plateaus_are_those_a_little_below() {
    let synthetic = Synthetic::new([32; 3], [16, 32, 13], ripples).typed("|u1".parse().unwrap());
    for mode in [Mode::Surfaces, Mode::Composite] {
        let [at, below] =
            [0.0, -1e-6].map(|shift| draw(&rippled(&synthetic, mode, shift), &synthetic.full_pool()).image);
        let (wrong, most) = apart(&at, &below, 1.0);
        assert!(wrong == 0, "{mode:?}: {wrong} components are wrong, by up to {most}");
        assert!(covered(&at) > 0.05, "something must be seen");
    }
}

#[test]
fn twenty_surfaces_agree_with_the_reference() {
    for dtype in ["|u1", "<f8"] {
        let synthetic = Synthetic::new([20, 33, 29], [8, 16, 16], cubic).typed(dtype.parse().unwrap());
        let surfaces = (0..20).map(|i| surface(85.3 + 3.1 * f64::from(i), 0.15)).collect();
        let scene = scene(&synthetic, surfaces, Mode::Surfaces);
        let drawn = draw(&scene, &synthetic.full_pool()).image;
        let (wrong, most) = apart(&drawn, &reference::cast(&synthetic, &scene), 0.6);
        assert!(
            wrong <= 4 && covered(&drawn) > 0.1,
            "{dtype}: {wrong} components are wrong, by up to {most}"
        );
    }
}

#[test]
fn clipped_surfaces_agree_with_the_reference() {
    let synthetic = Synthetic::new([32; 3], [16; 3], cubic);
    let mut scene = scene(&synthetic, vec![surface(108.0, 1.0)], Mode::Surfaces);
    scene.clip = Some(voxel_box(&scene.view, [3.3, 8.0, 5.5], [20.2, 30.0, 25.0]));
    let drawn = draw(&scene, &synthetic.full_pool()).image;
    let (wrong, most) = apart(&drawn, &reference::cast(&synthetic, &scene), 0.1);
    assert!(wrong <= 4 && covered(&drawn) > 0.05, "{wrong} components are wrong, by up to {most}");
}

#[test]
fn a_sphere_is_round_and_lit_as_one() {
    let ball = |p: DVec3| p.distance(DVec3::splat(31.5));
    let synthetic = Synthetic::new([64; 3], [16; 3], ball);
    let mut scene = scene(&synthetic, vec![surface(20.0, 1.0)], Mode::Surfaces);
    scene.camera = Camera::framing(&scene.view.bounds(), [0.0, 1.0, 0.0]).orthographic();
    scene.size = ImageSize { width: 100, height: 100 };
    let image = draw(&scene, &synthetic.full_pool()).image;
    let view::Projection::Orthographic { height_world } = scene.camera.projection else { panic!() };
    let voxels_per_pixel = height_world / 100.0;
    for (i, pixel) in image.rgba.iter().enumerate() {
        let offset = |i: usize| (i as f64 + 0.5 - 50.0) * voxels_per_pixel;
        let radius = offset(i % 100).hypot(offset(i / 100));
        assert!(pixel[3] == 0.0 || pixel[3] == 1.0);
        // Interpolation between voxels flattens a sphere by less than a hundredth of a voxel.
        assert!((radius - 20.0).abs() < 0.01 || (pixel[3] == 1.0) == (radius < 20.0), "{radius}");
        if radius < 18.0 {
            let cosine = (1.0 - (radius / 20.0).powi(2)).sqrt();
            let expected = f64::from(RED[0]) * (0.3 + 0.7 * cosine) + 0.25 * cosine.powi(32);
            assert!(
                (f64::from(pixel[0]) - expected.min(1.0)).abs() < 0.03,
                "{} at {radius}, not {expected}",
                pixel[0]
            );
        }
    }
}

/// Rays pass thin corners of blocks without a sample in them; the surface is there all the same.
#[test]
fn block_borders_do_not_show() {
    for map in [Affine::IDENTITY, SKEWED] {
        let whole = Synthetic { map, ..Synthetic::new([48; 3], [48; 3], cubic) };
        let surfaces = vec![surface(100.0, 0.4), surface(112.0, 1.0)];
        for mode in [Mode::Surfaces, Mode::Composite] {
            let scene =
                Scene { size: ImageSize { width: 96, height: 80 }, ..scene(&whole, surfaces.clone(), mode) };
            let one = draw(&scene, &whole.full_pool()).image;
            for block in [[7, 16, 11], [3, 5, 2]] {
                let cut = Synthetic { block, ..whole.clone() };
                let many = draw(&Scene { view: cut.view(), ..scene.clone() }, &cut.full_pool()).image;
                let (wrong, most) = apart(&one, &many, 1.0);
                assert!(wrong == 0, "{wrong} components, by up to {most}, with {block:?}");
            }
        }
    }
}

/// A closed surface has no hole wherever levels meet: each ray that passes well inside its silhouette meets it.
#[test]
fn levels_that_meet_leave_no_cracks() {
    let ball = |p: DVec3| 100.0 - p.distance(DVec3::splat(31.5));
    let synthetic = Synthetic { levels: 3, ..Synthetic::new([64; 3], [16; 3], ball) };
    let mut scene = scene(&synthetic, vec![surface(76.0, 1.0)], Mode::Surfaces);
    scene.camera = Camera::framing(&scene.view.bounds(), [0.3, 1.0, -0.2]).orthographic();
    scene.size = ImageSize { width: 200, height: 200 };
    let view::Projection::Orthographic { height_world } = scene.camera.projection else { panic!() };
    for keep in [2, 3, 5] {
        let fine = synthetic.blocks(0).into_iter().filter(|b| b.key.index % keep == 0);
        let middle = synthetic.blocks(1).into_iter().filter(|b| b.key.index % 2 == 0);
        let image = draw(&scene, &pool_of(&synthetic, fine.chain(middle).chain(synthetic.blocks(2)))).image;
        let holes = image.rgba.iter().enumerate().filter(|(i, pixel)| {
            let offset = |i: usize| (i as f64 + 0.5 - 100.0) * height_world / 200.0;
            offset(i % 200).hypot(offset(i / 200)) < 22.0 && pixel[3] < 1.0
        });
        assert_eq!(holes.count(), 0, "one of {keep} fine blocks");
    }
}

#[test]
fn skipping_changes_nothing_and_missing_values_hold_no_surface() {
    fn holes(p: DVec3) -> f64 {
        if p.x > 20.0 && p.y < 15.0 { f64::NAN } else { cubic(p) }
    }
    let synthetic = Synthetic::new([40; 3], [16, 40, 13], holes);
    let scene = scene(&synthetic, vec![surface(108.0, 0.5), surface(115.0, 1.0)], Mode::Surfaces);
    let image = draw(&scene, &synthetic.full_pool()).image;
    assert!(covered(&image) > 0.1);
    let whole = Synthetic { block: [40; 3], ..synthetic.clone() };
    let scene_of_whole = Scene { view: whole.view(), ..scene.clone() };
    let (wrong, most) = apart(&image, &draw(&scene_of_whole, &whole.full_pool()).image, 0.5);
    assert!(wrong <= 4, "{wrong} components are wrong, by up to {most}, where blocks end elsewhere");
    // A wall of missing values is no surface: all of the field before it lies on one side.
    let flat = Synthetic { field: |p| if p.y > 20.0 { f64::NAN } else { 50.0 }, ..synthetic };
    let scene = Scene { view: flat.view(), surfaces: vec![surface(60.0, 1.0), surface(40.0, 1.0)], ..scene };
    assert!(covered(&draw(&scene, &flat.full_pool()).image) == 0.0);
}

#[test]
fn a_hidden_volume_shows_its_surfaces_and_nothing_else() {
    let synthetic = Synthetic::new([32; 3], [16; 3], cubic);
    let mut scene = scene(&synthetic, vec![surface(110.0, 0.7)], Mode::Composite);
    scene.transfer.opacity = points(&[(0.0, 0.0)]);
    let mixed = draw(&scene, &synthetic.full_pool());
    let alone = draw(&Scene { mode: Mode::Surfaces, ..scene }, &synthetic.full_pool());
    assert_eq!(mixed.image, alone.image);
    assert!(alone.fidelity.is_complete() && covered(&alone.image) > 0.1);
}
