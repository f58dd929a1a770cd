//! Ambient occlusion and the depth cue: against a second caster in double precision, across blocks, and by what they are for.

mod common;
#[path = "common/reference.rs"]
mod reference;

use array::Affine;
use common::{Synthetic, covered, difference, draw, points, pool_of, rms, voxel_box};
use corridor_render::{Camera, ImageSize, Isosurface, LightShares, Quality, Scene, TransferFunction};
use glam::DVec3;
use view::Mode;

/// A map with a rotation, a shear and three spacings.
const SKEWED: Affine = Affine([[0.8, -0.5, 0.1, 12.0], [0.45, 0.9, 0.0, -7.0], [0.05, 0.1, 2.5, 3.0]]);

/// A block with a deep pit in the middle of its upper face.
fn pit(p: DVec3) -> f64 {
    let is_pit = (p - DVec3::new(20.0, 20.0, 30.0)).abs().cmplt(DVec3::new(4.5, 4.5, 21.0)).all();
    let is_block = p.cmpgt(DVec3::splat(4.0)).all() && p.cmplt(DVec3::new(36.0, 36.0, 30.0)).all();
    if is_block && !is_pit { 180.0 } else { 0.0 }
}

/// Hills and hollows without edges.
fn hills(p: DVec3) -> f64 {
    100.0 + 60.0 * (0.31 * p.x).sin() * (0.27 * p.y).cos() + 40.0 * (0.2 * p.z).sin()
}

fn lit(synthetic: &Synthetic, light: LightShares, list: &[(f64, f64)]) -> Scene {
    let scene = synthetic.scene();
    let transfer = TransferFunction { opacity: points(list), ..scene.transfer.clone() };
    let quality = Quality { termination: 1e-4, ..Quality::STILL };
    Scene { is_lit: true, light, transfer, quality, size: ImageSize { width: 32, height: 28 }, ..scene }
}

#[test]
fn pictures_agree_with_the_reference() {
    for map in [Affine::IDENTITY, SKEWED] {
        for shape in [[20, 33, 29], [90, 16, 40]] {
            let synthetic = Synthetic { map, ..Synthetic::new(shape, [8, 16, 16], hills) };
            for light in [LightShares::new(1.0, 0.8, 0.0), LightShares::new(0.7, 0.6, 0.5)] {
                let scene = lit(&synthetic, light, &[(100.0, 0.0), (115.0, 0.6), (140.0, 0.9)]);
                let clip = Some(voxel_box(&scene.view, [3.3, 2.0, 4.5], [25.0, 14.0, 18.0]));
                let parallel = Scene { camera: scene.camera.orthographic(), ..scene.clone() };
                for scene in [Scene { clip, ..scene.clone() }, parallel, scene] {
                    let pool = synthetic.full_pool();
                    let plain = Scene { light: LightShares::of_strength(1.0), ..scene.clone() };
                    let [dimmed, plain] = [scene, plain].map(|scene| {
                        let drawn = draw(&scene, &pool).image;
                        let expected = reference::cast(&synthetic, &scene);
                        (difference(&drawn, &expected), rms(&drawn, &expected), drawn)
                    });
                    // The light alone differs a little where gradients jump from voxel to voxel.
                    let (worst, typical) = (dimmed.0 - plain.0, dimmed.1 - plain.1);
                    assert!(worst <= 2.0 && typical <= 0.3, "{map:?}, {shape:?}: {worst}, {typical} more");
                    assert!(covered(&dimmed.2) > 0.05, "something must be seen");
                    let effect = rms(&dimmed.2, &plain.2);
                    assert!(effect > 3.0 * dimmed.1.max(1.0), "dimming must be seen: {effect}");
                }
            }
        }
    }
}

#[test]
fn surfaces_have_the_depth_cue_of_the_reference() {
    let synthetic = Synthetic::new([20, 33, 29], [8, 16, 16], hills);
    let surfaces = [(95.3, 0.5), (130.0, 1.0)];
    let surfaces: Vec<_> = surfaces
        .iter()
        .map(|&(value, opacity)| Isosurface { value, color: [0.9, 0.4, 0.1], opacity })
        .collect();
    let light = LightShares::new(1.0, 0.0, 0.6);
    for mode in [Mode::Surfaces, Mode::Composite] {
        let scene = lit(&synthetic, light, &[(100.0, 0.0), (140.0, 0.1)]);
        let scene = Scene { surfaces: surfaces.clone(), mode, ..scene };
        let drawn = draw(&scene, &synthetic.full_pool()).image;
        let expected = reference::cast(&synthetic, &scene);
        assert!(rms(&drawn, &expected) <= 0.5, "{mode:?}: {}", rms(&drawn, &expected));
    }
}

#[test]
fn a_pit_is_darker_than_the_flat_surface_around_it() {
    let synthetic = Synthetic::new([40; 3], [16; 3], pit);
    let scene = lit(&synthetic, LightShares::new(1.0, 0.9, 0.0), &[(80.0, 0.0), (100.0, 1.0)]);
    let above = Camera::framing(&scene.view.bounds(), [0.0, 0.0, -1.0]).orthographic();
    let scene = Scene { camera: above, size: ImageSize { width: 64, height: 64 }, ..scene };
    let plain = Scene { light: LightShares::of_strength(1.0), ..scene.clone() };
    let [occluded, plain] = [scene, plain].map(|scene| draw(&scene, &synthetic.full_pool()).image);
    let share = |column: usize, row: usize| {
        let pixel = row * 64 + column;
        occluded.rgba[pixel][0] / plain.rgba[pixel][0]
    };
    let (in_pit, beside) = (share(32, 32), share(20, 20));
    assert!(in_pit < 0.65 && beside > 0.75, "{in_pit} in the pit, {beside} beside it");
}

#[test]
fn neither_blocks_nor_levels_show() {
    let whole = Synthetic::new([40; 3], [40; 3], hills).typed("|u1".parse().unwrap());
    let cut = Synthetic { block: [7, 16, 11], ..whole.clone() };
    let scene = lit(&whole, LightShares::new(1.0, 0.9, 0.4), &[(100.0, 0.0), (115.0, 0.6), (140.0, 0.9)]);
    let one = draw(&scene, &whole.full_pool()).image;
    let many = draw(&Scene { view: cut.view(), ..scene.clone() }, &cut.full_pool()).image;
    assert!(difference(&one, &many) <= 1.5 && covered(&one) > 0.1, "{}", difference(&one, &many));
    let levels = Synthetic { levels: 2, ..cut };
    let blocks: Vec<_> = levels.blocks(1).into_iter().chain(levels.blocks(0)).collect();
    let of_levels = draw(&Scene { view: levels.view(), ..scene }, &pool_of(&levels, blocks)).image;
    assert!(rms(&one, &of_levels) <= 3.0, "{}", rms(&one, &of_levels));
}

#[test]
fn the_grid_follows_blocks_and_colors() {
    let synthetic = Synthetic::new([40; 3], [16; 3], pit);
    let scene = lit(&synthetic, LightShares::new(1.0, 0.9, 0.0), &[(80.0, 0.0), (100.0, 1.0)]);
    let pool = synthetic.full_pool();
    let first = draw(&scene, &pool).image;
    let faint = lit(&synthetic, scene.light, &[(80.0, 0.0), (100.0, 0.05)]);
    let other = draw(&faint, &pool).image;
    assert!(first.rgba == draw(&scene, &pool).image.rgba, "the same scene gives the same picture");
    let fresh = draw(&faint, &synthetic.full_pool()).image;
    assert!(other.rgba == fresh.rgba, "a picture does not depend on the one before");
    let partial = pool_of(&synthetic, synthetic.blocks(0).into_iter().take(4));
    draw(&scene, &partial);
    for block in synthetic.blocks(0).into_iter().skip(4) {
        partial.insert(&block).unwrap();
    }
    let complete = draw(&scene, &partial).image;
    assert!(difference(&complete, &first) <= 1e-3, "{}", difference(&complete, &first));
}
