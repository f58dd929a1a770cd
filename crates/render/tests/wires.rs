//! Boxes as lines: behind and before surfaces, in a haze, on slices, beside the volume.

mod common;

use common::{Synthetic, difference, draw, points};
use corridor_render::{
    Bounds, Camera, Image, ImageSize, Isosurface, MAX_BOXES, Scene, Slice, TransferFunction, WireBox,
};
use glam::DVec3;
use view::{Mode, SpaceAxis};

const RED: [u8; 3] = [255, 0, 0];

fn ball(p: DVec3) -> f64 {
    20.0 - p.distance(DVec3::splat(15.5))
}

fn even(_: DVec3) -> f64 {
    100.0
}

/// A square across y, so large about the volume's middle.
fn square(y: f64, half: f64) -> WireBox {
    let (low, high) = (15.5 - half, 15.5 + half);
    WireBox { bounds: Bounds { min: [low, y, low], max: [high, y, high] }, color: RED }
}

/// Seen along y, a pixel for each voxel's half.
fn scene(synthetic: &Synthetic, wires: &[WireBox]) -> Scene {
    let camera = Camera::framing(&synthetic.view().bounds(), [0.0, 1.0, 0.0]);
    Scene {
        camera: camera.orthographic(),
        size: ImageSize { width: 100, height: 100 },
        wires: wires.to_vec().into(),
        ..synthetic.scene()
    }
}

fn drawn(synthetic: &Synthetic, scene: &Scene) -> Image {
    draw(scene, &synthetic.full_pool()).image
}

/// Pixels in which red is by far the strongest.
fn red(image: &Image) -> usize {
    image.rgba.iter().filter(|[r, g, b, _]| *r > 0.3 && g.max(*b) < 0.5 * r).count()
}

#[test]
fn opaque_surfaces_hide_what_lies_behind_them() {
    let synthetic = Synthetic::new([32; 3], [16; 3], ball);
    let surface = Isosurface { value: 10.0, color: [0.2, 0.9, 0.9], opacity: 1.0 };
    for perspective in [false, true] {
        let of = |wires: &[WireBox]| {
            let mut scene =
                Scene { surfaces: vec![surface], mode: Mode::Surfaces, ..scene(&synthetic, wires) };
            if perspective {
                scene.camera = Camera::framing(&scene.view.bounds(), [0.0, 1.0, 0.0]);
            }
            drawn(&synthetic, &scene)
        };
        let (before, behind, within) =
            (of(&[square(1.0, 3.0)]), of(&[square(30.0, 3.0)]), of(&[square(15.5, 3.0)]));
        let plain = of(&[]);
        assert!(difference(&behind, &plain) < 0.01 && difference(&within, &plain) < 0.01, "hidden");
        let differ = |(a, b): (&[f32; 4], &[f32; 4])| (a[0] - b[0]).abs() > 0.2;
        let changed = before.rgba.iter().zip(&plain.rgba).filter(|&pair| differ(pair)).count();
        assert!(changed > 30, "seen before it: {changed}");
        // As wide as the whole volume: beside the ball it is seen wherever it lies.
        assert!(red(&of(&[square(30.0, 15.0)])) > 100);
    }
}

#[test]
fn a_haze_dims_what_it_lies_before() {
    let synthetic = Synthetic::new([32; 3], [16; 3], even);
    let of = |opacity: f64, wires: &[WireBox]| {
        let transfer = TransferFunction {
            opacity: points(&[(0.0, opacity), (200.0, opacity)]),
            ..TransferFunction::ramp(0.0, 200.0, 0.5)
        };
        drawn(&synthetic, &Scene { transfer, ..scene(&synthetic, wires) })
    };
    let lines = of(0.0, &[square(15.5, 6.0)]);
    let (haze, both) = (of(0.03, &[]), of(0.03, &[square(15.5, 6.0)]));
    let mut checked = 0;
    for ((line, haze), both) in lines.rgba.iter().zip(&haze.rgba).zip(&both.rgba) {
        if line[3] < 0.4 {
            continue;
        }
        checked += 1;
        // The line lies in the middle: the same haze is before and behind it.
        let through = (1.0 - haze[3]).sqrt();
        for part in 0..4 {
            let half = haze[part] / haze[3] * (1.0 - through);
            let expected = half + through * (line[part] + (1.0 - line[3]) * half);
            assert!(
                (both[part] - expected).abs() < 0.006,
                "{both:?} {line:?} {haze:?}: {expected} at {part}"
            );
        }
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn lines_are_drawn_beside_the_volume_on_slices_and_before_extreme_values() {
    let synthetic = Synthetic::new([32; 3], [16; 3], ball);
    let around = square(15.5, 18.0);
    assert!(red(&drawn(&synthetic, &scene(&synthetic, &[around]))) > 100, "rays that miss the volume");
    let sliced = |y| {
        let slices = vec![Slice::across(SpaceAxis::Y, 15.0)];
        let transfer =
            TransferFunction { color_map: "gray".into(), ..TransferFunction::ramp(0.0, 20.0, 0.5) };
        let scene = Scene { slices, transfer, mode: Mode::Surfaces, ..scene(&synthetic, &[square(y, 8.0)]) };
        red(&drawn(&synthetic, &scene))
    };
    assert!(sliced(3.0) > 50 && sliced(29.0) == 0, "{} {}", sliced(3.0), sliced(29.0));
    let largest = Scene { mode: Mode::Maximum, ..scene(&synthetic, &[square(29.0, 8.0)]) };
    assert!(red(&drawn(&synthetic, &largest)) > 50, "such a picture has no depth");
}

#[test]
fn they_are_cut_by_the_clipping_box_and_drawn_once() {
    let synthetic = Synthetic::new([32; 3], [16; 3], ball);
    let mut scene = scene(&synthetic, &[square(2.0, 12.0)]);
    let one = drawn(&synthetic, &scene);
    scene.wires = vec![square(2.0, 12.0); 3].into();
    assert_eq!(drawn(&synthetic, &scene), one);
    scene.clip = Some(Bounds { min: [0.0; 3], max: [15.5, 31.0, 31.0] });
    let clipped = drawn(&synthetic, &scene);
    assert!(
        (red(&one) / 3..red(&one) * 2 / 3).contains(&red(&clipped)),
        "{} of {}",
        red(&clipped),
        red(&one)
    );
    scene.wires = vec![square(2.0, 12.0); MAX_BOXES + 1].into();
    assert!(scene.check().is_err());
}
