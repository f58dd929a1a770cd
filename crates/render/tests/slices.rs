//! Slices: alone, in a haze, behind and before surfaces, over blocks, levels, labels and missing values.

mod common;
#[path = "common/reference.rs"]
mod reference;

use array::{Meaning, Scalar};
use common::{Synthetic, covered, cubic, difference, draw, points, pool_of, voxel_box};
use corridor_render::{
    Camera, Cancel, Image, ImageSize, Instructions, Isosurface, ObliquePlane, Scene, Slice, TransferFunction,
    cast_with, demand,
};
use glam::DVec3;
use view::{Mode, SpaceAxis};

/// Error that a picture of slices alone may have, 255ths: positions are rounded to a 4096th of a voxel.
const ALONE: f64 = 0.5;
/// Error that a picture of slices in a haze may have, 255ths: the bound of the haze itself (`quality.rs`).
const MIXED: f64 = 2.0;

const THREE: [(SpaceAxis, f64); 3] = [(SpaceAxis::X, 11.0), (SpaceAxis::Y, 17.25), (SpaceAxis::Z, 9.5)];

fn slices(list: &[(SpaceAxis, f64)]) -> Vec<Slice> {
    list.iter().map(|&(axis, at)| Slice::across(axis, at)).collect()
}

fn scene(synthetic: &Synthetic, list: &[(SpaceAxis, f64)]) -> Scene {
    Scene {
        transfer: TransferFunction {
            opacity: points(&[(60.0, 0.0), (255.0, 0.05)]),
            ..TransferFunction::ramp(20.0, 220.0, 0.5)
        },
        mode: Mode::Surfaces,
        slices: slices(list),
        size: ImageSize { width: 24, height: 20 },
        ..synthetic.scene()
    }
}

/// Pixels that differ by more than a bound; those at the rim of a slice may fall on either side of it.
fn apart(a: &Image, b: &Image, bound: f64) -> usize {
    let differ =
        |(a, b): (&[f32; 4], &[f32; 4])| (0..4).any(|c| f64::from((a[c] - b[c]).abs()) * 255.0 > bound);
    a.rgba.iter().zip(&b.rgba).filter(|&pair| differ(pair)).count()
}

#[test]
fn pictures_of_every_kind_agree_with_the_reference() {
    let skewed = array::Affine([[0.8, -0.5, 0.1, 12.0], [0.45, 0.9, 0.0, -7.0], [0.05, 0.1, 2.5, 3.0]]);
    let surface = Isosurface { value: 118.0, color: [1.0, 0.5, 0.0], opacity: 0.6 };
    for (dtype, map) in [("|u1", array::Affine::IDENTITY), ("<f8", skewed)] {
        let synthetic = Synthetic { map, ..Synthetic::new([28; 3], [12, 16, 28], cubic) };
        let synthetic = synthetic.typed(dtype.parse().unwrap());
        let alone = scene(&synthetic, &THREE);
        let haze = Scene { mode: Mode::Composite, ..alone.clone() };
        let parallel = Scene { camera: alone.camera.orthographic(), ..alone.clone() };
        let all = Scene { surfaces: vec![surface], ..haze.clone() };
        let largest = Scene { mode: Mode::Maximum, slices: slices(&THREE[..1]), ..all.clone() };
        for (name, scene, bound) in [
            ("alone", alone, ALONE),
            ("haze", haze, MIXED),
            ("parallel", parallel, ALONE),
            ("all", all, MIXED),
            ("largest", largest, MIXED),
        ] {
            let exact = reference::cast(&synthetic, &scene);
            for &set in Instructions::available() {
                let blocks = synthetic.full_pool().snapshot();
                let drawn = cast_with(&scene, &blocks, &Cancel::new(), set).unwrap().image;
                let apart = apart(&drawn, &exact, bound);
                assert!(apart <= 2, "{name}, {dtype}, {set:?}: {apart} pixels");
            }
        }
    }
}

/// Planes in any direction, and planes whose voxels are areas of one color, across blocks and their borders.
#[test]
fn oblique_and_uninterpolated_planes_agree_with_the_reference() {
    let skewed = array::Affine([[0.8, -0.5, 0.1, 12.0], [0.45, 0.9, 0.0, -7.0], [0.05, 0.1, 2.5, 3.0]]);
    for (dtype, map) in [("|u1", array::Affine::IDENTITY), ("<f4", skewed)] {
        let synthetic = Synthetic { map, ..Synthetic::new([28; 3], [12, 16, 28], cubic) };
        let synthetic = synthetic.typed(dtype.parse().unwrap());
        let view = synthetic.view();
        let center = view.bounds().center();
        let oblique = |normal: [f64; 3], nearest| Slice {
            oblique: Some(ObliquePlane::in_volume(&view, normal, center).unwrap()),
            nearest,
            ..Slice::across(SpaceAxis::Z, 0.0)
        };
        let sharp = |(axis, at)| Slice { nearest: true, ..Slice::across(axis, at) };
        let cases = [
            ("one", vec![oblique([1.0, 2.0, -3.0], false)]),
            ("two", vec![oblique([0.3, -1.0, 0.4], false), Slice::across(SpaceAxis::X, 11.0)]),
            ("sharp", vec![sharp((SpaceAxis::X, 11.0)), sharp((SpaceAxis::Z, 9.0))]),
            ("sharp oblique", vec![oblique([1.0, -2.0, 1.5], true)]),
        ];
        for (name, slices) in cases {
            let mut scene = Scene { slices, ..scene(&synthetic, &[]) };
            scene.size = ImageSize { width: 40, height: 32 };
            let exact = reference::cast(&synthetic, &scene);
            assert!(covered(&exact) > 0.02, "{name} {dtype}: {} is seen", covered(&exact));
            for &set in Instructions::available() {
                let blocks = synthetic.full_pool().snapshot();
                let drawn = cast_with(&scene, &blocks, &Cancel::new(), set).unwrap().image;
                // On the border of two voxels rounding may decide for either.
                let apart = apart(&drawn, &exact, ALONE);
                assert!(apart <= 4, "{name}, {dtype}, {set:?}: {apart} pixels");
            }
            let wanted =
                demand(&scene.view, &scene.camera, scene.size, &scene.portion(), Some(0), 1 << 30).unwrap();
            let is_wanted = |b: &array::Block| wanted.blocks.iter().any(|w| w.key == b.key);
            let frame = draw(&scene, &pool_of(&synthetic, synthetic.blocks(0).into_iter().filter(is_wanted)));
            assert!(apart(&frame.image, &exact, ALONE) <= 4, "{name} {dtype}: blocks are missing");
        }
    }
    let synthetic = Synthetic::new([28; 3], [16; 3], cubic);
    let scene = scene(&synthetic, &THREE);
    let sharp = Slice { nearest: true, ..scene.slices[0] };
    let on_device = Scene { slices: vec![sharp], ..scene.clone() };
    let refused = corridor_render::device::prepare(&on_device, &synthetic.full_pool().snapshot());
    assert_eq!(refused.err().map(|error| error.kind()), Some(array::ErrorKind::Unsupported), "the CPU draws");
    let flat = ObliquePlane { normal: [0.0; 3], offset: 1.0 };
    let bad = Slice { oblique: Some(flat), ..THREE.map(|(axis, at)| Slice::across(axis, at))[0] };
    assert!(Scene { slices: vec![bad], ..scene }.check().is_err());
}

#[test]
fn they_are_cut_by_the_clipping_box() {
    let synthetic = Synthetic::new([28; 3], [16; 3], cubic);
    let mut scene = scene(&synthetic, &THREE);
    let whole = draw(&scene, &synthetic.full_pool()).image;
    scene.clip = Some(voxel_box(&scene.view, [4.0, 0.0, 0.0], [20.0, 27.0, 12.0]));
    let clipped = draw(&scene, &synthetic.full_pool()).image;
    assert!(apart(&clipped, &reference::cast(&synthetic, &scene), ALONE) <= 2);
    assert!(covered(&clipped) < 0.8 * covered(&whole));
    // A box thinner than a step still holds its slice.
    scene.slices = slices(&[(SpaceAxis::Z, 9.5)]);
    scene.camera = Camera::framing(&scene.view.bounds(), [0.0, 0.0, -1.0]);
    scene.clip = Some(voxel_box(&scene.view, [0.0, 0.0, 9.4], [27.0, 27.0, 9.6]));
    assert!(covered(&draw(&scene, &synthetic.full_pool()).image) > 0.2);
}

/// With the blocks that are wanted and no others: coarse ones stand in where these are still to come.
#[test]
fn the_blocks_they_want_are_enough() {
    let synthetic = Synthetic { levels: 2, ..Synthetic::new([40; 3], [16; 3], common::linear) };
    for list in [&THREE[..1], &THREE[2..], &THREE] {
        let scene = scene(&synthetic, list);
        let portion = scene.portion();
        let wanted = demand(&scene.view, &scene.camera, scene.size, &portion, Some(0), 1 << 30).unwrap();
        let all = || (0..2).flat_map(|level| synthetic.blocks(level));
        let is_wanted = |b: &array::Block| wanted.blocks.iter().any(|w| w.key == b.key);
        let some = pool_of(&synthetic, all().filter(is_wanted));
        let frame = draw(&scene, &some);
        assert!(frame.fidelity.is_complete(), "{:?}", frame.fidelity);
        let full = draw(&scene, &pool_of(&synthetic, all())).image;
        assert!(difference(&frame.image, &full) <= ALONE, "{list:?}: {}", difference(&frame.image, &full));
        let coarse = draw(&scene, &pool_of(&synthetic, synthetic.blocks(1)));
        assert!(!coarse.fidelity.is_complete() && coarse.fidelity.finest_shown == Some(1));
        assert!(covered(&coarse.image) > 0.1);
    }
}

/// Nothing in the left half; what lies behind a hole is seen through it.
fn half(p: DVec3) -> f64 {
    if p.x < 14.0 { -1.0 } else { 100.0 }
}

#[test]
fn where_nothing_is_there_they_have_holes() {
    let mut synthetic = Synthetic::new([28; 3], [16; 3], half);
    let whole = draw(&scene(&synthetic, &[(SpaceAxis::Z, 14.0)]), &synthetic.full_pool()).image;
    synthetic.decoding.missing = vec![Scalar::Float(-1.0)];
    let mut scene = scene(&synthetic, &[(SpaceAxis::Z, 14.0)]);
    let holed = draw(&scene, &synthetic.full_pool()).image;
    let share = covered(&holed) / covered(&whole);
    assert!((0.4..0.6).contains(&share), "{share}");
    // The second slice is wholly missing: it changes nothing.
    scene.slices.push(Slice::across(SpaceAxis::X, 3.0));
    assert!(difference(&holed, &draw(&scene, &synthetic.full_pool()).image) < 1e-3);
}

#[test]
fn labels_keep_their_own_colors() {
    let stripes = |p: DVec3| (p.x / 4.0).floor() + 1.0;
    let synthetic = Synthetic { meaning: Meaning::Labels, ..Synthetic::new([28; 3], [16; 3], stripes) };
    let synthetic = synthetic.typed("|u1".parse().unwrap());
    let scene = Scene {
        transfer: TransferFunction::labels(0.5),
        camera: Camera::framing(&synthetic.view().bounds(), [0.0, 0.0, -1.0]),
        ..scene(&synthetic, &[(SpaceAxis::Z, 14.0)])
    };
    let colors: Vec<[f32; 3]> = (0..=8).map(|label| scene.transfer.color_at(f64::from(label))).collect();
    let image = draw(&scene, &synthetic.full_pool()).image;
    assert!(covered(&image) > 0.2);
    for pixel in image.rgba.iter().filter(|p| p[3] > 0.0) {
        let is_one = |c: &[f32; 3]| (0..3).all(|i| (c[i] - pixel[i]).abs() < 1e-3);
        assert!(colors.iter().any(is_one), "{pixel:?}");
    }
}

#[test]
fn what_is_no_slice_is_refused() {
    let synthetic = Synthetic::new([8, 9, 10], [8; 3], cubic);
    for (list, says) in [
        (vec![(SpaceAxis::Z, 8.0)], "across Z from -0.5 to 7.5"),
        (vec![(SpaceAxis::X, f64::NAN)], "found NaN"),
        (vec![(SpaceAxis::Y, 1.0); 17], "at most 16 slices"),
    ] {
        let error = scene(&synthetic, &list).check().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
