//! Pictures of extreme values: of every kind against the reference; over blocks, levels and missing values; with
//! surfaces before them.

mod common;
#[path = "common/reference.rs"]
mod reference;

use array::{Meaning, Scalar};
use common::{Synthetic, covered, cubic, difference, draw, points, pool_of, voxel_box};
use corridor_render::{
    Camera, Cancel, Image, ImageSize, Instructions, Isosurface, Quality, Scene, TransferFunction, cast,
    cast_with,
};
use glam::DVec3;
use view::Mode;

const MODES: [Mode; 2] = [Mode::Maximum, Mode::Minimum];

/// Error that a picture may have, 255ths: a 32,000th of the domain, whose colors span some hundreds of these,
/// and rounding of positions to a 4096th of a voxel where values change by 70 of 255 from voxel to voxel.
const OFF: f64 = 0.25;

fn ripples(p: DVec3) -> f64 {
    let r = p.distance(DVec3::splat(14.0));
    (110.0 + 80.0 * (0.8 * r + 0.3 * p.x).sin() + 30.0 * (0.5 * p.y).cos()).clamp(0.0, 255.0)
}

fn scene(synthetic: &Synthetic, mode: Mode) -> Scene {
    Scene {
        transfer: TransferFunction::ramp(20.0, 220.0, 0.5),
        mode,
        size: ImageSize { width: 24, height: 20 },
        ..synthetic.scene()
    }
}

fn exhaustive(scene: &Scene) -> Scene {
    Scene { quality: Quality { skip_empty: false, ..scene.quality }, ..scene.clone() }
}

#[test]
fn pictures_of_every_kind_agree_with_the_reference() {
    let mut problems = Vec::new();
    for (field, dtype) in [(cubic as common::Field, "<f8"), (ripples, "|u1"), (ripples, "<f4")] {
        let synthetic = Synthetic::new([28; 3], [12, 16, 28], field).typed(dtype.parse().unwrap());
        for (mode, step) in [(Mode::Maximum, 1.0), (Mode::Maximum, 0.5), (Mode::Minimum, 1.5)] {
            let mut scene = scene(&synthetic, mode);
            scene.quality.step = step;
            for direction in [Camera::DEFAULT_DIRECTION, [0.3, -0.2, -0.9]] {
                let camera = Camera::framing(&scene.view.bounds(), direction);
                scene.camera = if step < 1.0 { camera.orthographic() } else { camera };
                let exact = reference::cast(&synthetic, &scene);
                for &set in Instructions::available() {
                    let blocks = synthetic.full_pool().snapshot();
                    let drawn = cast_with(&scene, &blocks, &Cancel::new(), set).unwrap().image;
                    let worst = difference(&drawn, &exact);
                    if worst > OFF {
                        problems.push(format!("{set:?}, {mode:?}, {dtype}, {direction:?}, {step}: {worst}"));
                    }
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Two samples for each voxel against sixteen: what these may miss of the values between them, where a wave is
/// eight voxels long. At the rim of the volume, where rays are a few steps long, it may be much.
#[test]
fn samples_miss_little_of_what_lies_between_them() {
    let synthetic = Synthetic::new([28; 3], [16; 3], ripples);
    for mode in MODES {
        let [coarse, fine] = [1.0, 1.0 / 8.0].map(|step| {
            let scene = scene(&synthetic, mode);
            draw(&Scene { quality: Quality { step, ..scene.quality }, ..scene }, &synthetic.full_pool()).image
        });
        let apart = |(a, b): (&[f32; 4], &[f32; 4])| (0..3).map(|c| (a[c] - b[c]).abs()).fold(0.0, f32::max);
        let far = coarse.rgba.iter().zip(&fine.rgba).filter(|&pair| apart(pair) > 8.0 / 255.0).count();
        assert!(far <= coarse.rgba.len() / 20, "{mode:?}: {far} of {}", coarse.rgba.len());
    }
}

fn with_holes(field: common::Field) -> Synthetic {
    let mut synthetic = Synthetic::new([28; 3], [12, 16, 28], field);
    synthetic.decoding.missing = vec![Scalar::Float(-1.0)];
    synthetic
}

/// A ball of values; outside of it there is nothing, or NaN.
fn ball(p: DVec3) -> f64 {
    let r = p.distance(DVec3::splat(13.5));
    match r {
        r if r < 10.0 => 100.0 + 8.0 * r,
        _ if p.x < 14.0 => -1.0,
        _ => f64::NAN,
    }
}

#[test]
fn where_nothing_is_there_is_no_color() {
    let synthetic = with_holes(ball);
    for mode in MODES {
        let scene = scene(&synthetic, mode);
        let frame = draw(&scene, &synthetic.full_pool());
        let share = covered(&frame.image);
        assert!((0.1..0.6).contains(&share), "{mode:?}: {share}");
        assert!(frame.image.rgba.iter().all(|p| p[3] == 0.0 || p[3] == 1.0), "all or nothing");
        // In the middle of the picture the ray goes through the ball.
        let middle = frame.image.rgba[10 * 24 + 12];
        let value = if mode == Mode::Maximum { 180.0 } else { 100.0 };
        let expected = scene.transfer.color_at(value);
        let apart = (0..3).map(|c| (middle[c] - expected[c]).abs()).fold(0.0, f32::max);
        assert!(apart < 0.1, "{mode:?}: {middle:?}, not {expected:?}");
        assert!(difference(&frame.image, &draw(&exhaustive(&scene), &synthetic.full_pool()).image) <= OFF);
    }
}

#[test]
fn blocks_and_clipping_do_not_show() {
    let whole = Synthetic::new([40; 3], [40; 3], ripples);
    let cut = Synthetic { block: [7, 16, 11], ..whole.clone() };
    for mode in MODES {
        let mut scene = scene(&whole, mode);
        for clip in [None, Some(voxel_box(&scene.view, [3.0, 9.5, 0.0], [30.0, 31.0, 22.2]))] {
            scene.clip = clip;
            let one = draw(&scene, &whole.full_pool()).image;
            let many = draw(&Scene { view: cut.view(), ..scene.clone() }, &cut.full_pool()).image;
            assert!(difference(&one, &many) <= OFF, "{mode:?}: {}", difference(&one, &many));
            assert!(difference(&one, &reference::cast(&whole, &scene)) <= OFF);
        }
    }
}

/// A linear field is the same at every level, so the picture is, wherever coarse blocks stand in for fine ones.
#[test]
fn levels_do_not_show() {
    let synthetic =
        Synthetic { levels: 2, block: [16; 3], ..Synthetic::new([40; 3], [40; 3], common::linear) };
    for mode in MODES {
        let scene = scene(&synthetic, mode);
        let fine = synthetic.blocks(0).into_iter().filter(|b| b.key.index % 3 != 1);
        let mixed = draw(&scene, &pool_of(&synthetic, fine.chain(synthetic.blocks(1))));
        let full = draw(&scene, &pool_of(&synthetic, synthetic.blocks(0)));
        assert!(full.fidelity.is_complete() && !mixed.fidelity.is_complete());
        let apart = difference(&full.image, &mixed.image);
        // Half a voxel at the border of the volume, where outermost values go on.
        assert!(apart <= 2.0, "{mode:?}: {apart}");
    }
}

#[test]
fn surfaces_stand_before_them() {
    let synthetic = Synthetic::new([28; 3], [16; 3], cubic);
    let mut scene = scene(&synthetic, Mode::Maximum);
    scene.surfaces = vec![Isosurface { value: 112.0, color: [1.0, 0.0, 0.0], opacity: 0.5 }];
    for camera in [scene.camera, scene.camera.orthographic()] {
        scene.camera = camera;
        let drawn = draw(&scene, &synthetic.full_pool()).image;
        let plain = draw(&Scene { surfaces: Vec::new(), ..scene.clone() }, &synthetic.full_pool()).image;
        assert!(difference(&drawn, &reference::cast(&synthetic, &scene)) <= 2.0);
        assert!(difference(&drawn, &plain) > 40.0, "the surface is seen");
    }
}

#[test]
fn light_and_opacity_change_nothing() {
    let synthetic = Synthetic::new([28; 3], [16; 3], cubic);
    for mode in MODES {
        let scene = scene(&synthetic, mode);
        let expected: Image = draw(&scene, &synthetic.full_pool()).image;
        let opacity = points(&[(20.0, 0.0), (220.0, 0.0)]);
        let transfer = TransferFunction { opacity, ..scene.transfer.clone() };
        let other = Scene { transfer, is_lit: true, ..scene };
        assert!(difference(&expected, &draw(&other, &synthetic.full_pool()).image) <= OFF);
        assert!(covered(&expected) > 0.3);
    }
}

#[test]
fn labels_have_none() {
    let labels = Synthetic { meaning: Meaning::Labels, ..Synthetic::new([8; 3], [8; 3], cubic) };
    let scene = Scene { transfer: TransferFunction::labels(1.0), ..scene(&labels, Mode::Maximum) };
    let error = cast(&scene, &labels.full_pool().snapshot(), &Cancel::new()).unwrap_err();
    assert!(error.to_string().contains("found labels"), "{error}");
}
