//! Accuracy of pictures: against the reference in double precision, for fields, types and transfer functions of all
//! kinds; and against each other with every set of instructions, and with and without skipping.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "common/reference.rs"]
mod reference;

use array::Scalar;
use common::{Synthetic, covered, cubic, difference, points, rms};
use corridor_render::{
    Bounds, Camera, Cancel, Image, ImageSize, Instructions, OpacityPoint, Quality, Scene, TransferFunction,
    cast_with,
};
use glam::DVec3;
use proptest::prelude::*;
use view::Mode;

/// Name, control points, bounds.
type Function = (&'static str, &'static [(f64, f64)], [f64; 2]);

/// Transfer functions over 0 to 255, and by how many 255ths a picture's worst component and the root of the mean square
/// of all may be off, of fields that change by up to 70 of 255 from voxel to voxel.
///
/// Why these: `fog` is bounded by the early end (half of one) and the tables alone. `typical` and `dense` bend once: ways
/// over the bend are cut only where they would be off by more than a 512th of opacity, which adds up over the samples of a
/// ray, the more the steeper the ramp. `saturating` becomes opaque within a way: which of 16 parts does so decides its
/// color, so a surface may lie a 32nd of a step beside its place. `sparse` is a peak of 4 in ways of up to 70 values, no
/// wider than one part, so it may be met by one part more or less. `step` at the rim of what it shows makes a pixel all
/// or nothing, so only its mean says anything.
const FUNCTIONS: [Function; 6] = [
    ("sparse", &[(120.0, 0.0), (122.0, 0.6), (124.0, 0.0)], [20.0, 1.6]),
    ("typical", &[(60.0, 0.0), (255.0, 0.2)], [2.0, 0.25]),
    ("dense", &[(90.0, 0.0), (140.0, 0.5)], [4.0, 0.3]),
    ("fog", &[(0.0, 0.01), (255.0, 0.03)], [1.0, 0.1]),
    ("saturating", &[(100.0, 0.0), (130.0, 1.0)], [12.0, 1.0]),
    ("step", &[(118.0, 0.0), (118.0, 1.0)], [255.0, 8.0]),
];

/// Difference that rounding by other sets of instructions may make, 255ths.
const INSTRUCTIONS_APART: f64 = 2.0;

/// Difference that skipping may make, 255ths: rounding, and ways cut into fewer parts where a cell's range
/// says that opacity hardly bends.
const SKIPPING_APART: f64 = 1.0;

const DIRECTIONS: [[f64; 3]; 3] = [Camera::DEFAULT_DIRECTION, [1.0, 0.0, 0.0], [0.3, -0.2, -0.9]];

/// Waves of about eight voxels: steep, as measured data are.
fn ripples(p: DVec3) -> f64 {
    let r = p.distance(DVec3::splat(14.0));
    (110.0 + 80.0 * (0.8 * r + 0.3 * p.x).sin() + 30.0 * (0.5 * p.y).cos()).clamp(0.0, 255.0)
}

fn opacity(list: &[(f64, f64)]) -> TransferFunction {
    TransferFunction { opacity: points(list), ..TransferFunction::ramp(0.0, 255.0, 1.0) }
}

fn scene(synthetic: &Synthetic, direction: [f64; 3], transfer: TransferFunction) -> Scene {
    let scene = synthetic.scene();
    let camera = Camera::framing(&scene.view.bounds(), direction);
    Scene { camera, transfer, size: ImageSize { width: 24, height: 20 }, ..scene }
}

fn draw(scene: &Scene, synthetic: &Synthetic, set: Instructions) -> Image {
    cast_with(scene, &synthetic.full_pool().snapshot(), &Cancel::new(), set).unwrap().image
}

#[test]
fn pictures_of_every_kind_agree_with_the_reference() {
    let mut problems = Vec::new();
    for (field, dtype) in [
        (cubic as common::Field, "<u2"),
        (cubic, "<f8"),
        (ripples, "|u1"),
        (ripples, "<f4"),
        (ripples, ">i2"),
    ] {
        let synthetic = Synthetic::new([28; 3], [12, 16, 28], field).typed(dtype.parse().unwrap());
        for direction in DIRECTIONS {
            for (name, list, bounds) in FUNCTIONS {
                let scene = scene(&synthetic, direction, opacity(list));
                let drawn = draw(&scene, &synthetic, Instructions::best());
                let exact = reference::cast(&synthetic, &scene);
                let (worst, typical) = (difference(&drawn, &exact), rms(&drawn, &exact));
                assert!(covered(&drawn) > 0.05, "{name}: something must be seen");
                if worst > bounds[0] || typical > bounds[1] {
                    problems.push(format!("{name}, {dtype}, {direction:?}: worst {worst}, rms {typical}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_set_of_instructions_draws_the_same_picture() {
    for dtype in ["|u1", "|i1", "<u2", ">i2", "<f2", "<f4", "<u4", "<i8", "<f8"] {
        let synthetic = Synthetic::new([28; 3], [12, 16, 28], ripples).typed(dtype.parse().unwrap());
        for (name, list, _) in FUNCTIONS {
            let scene = scene(&synthetic, Camera::DEFAULT_DIRECTION, opacity(list));
            let expected = draw(&scene, &synthetic, Instructions::Scalar);
            for &set in Instructions::available() {
                let apart = difference(&expected, &draw(&scene, &synthetic, set));
                assert!(apart <= INSTRUCTIONS_APART, "{set:?}, {name}, {dtype}: {apart}");
            }
        }
    }
}

/// By how much lit pictures of a smooth field may be off in the root of the mean square, 255ths, by function. The light of a
/// step is that of the gradients at its ends together, in the reference that of each of 64 parts: where the gradient turns
/// within a step, and at the walls of cells, where it jumps, they differ.
const LIT: [(&str, f64); 4] = [("typical", 1.0), ("dense", 2.0), ("fog", 1.0), ("saturating", 4.0)];

#[test]
fn lit_pictures_agree_with_the_reference() {
    let skewed = array::Affine([[0.8, -0.5, 0.1, 12.0], [0.45, 0.9, 0.0, -7.0], [0.05, 0.1, 2.5, 3.0]]);
    let mut problems = Vec::new();
    for (dtype, map) in [("<f8", array::Affine::IDENTITY), ("<f4", skewed), ("<u2", skewed)] {
        let field = |p: DVec3| 100.0 * cubic(p);
        let mut synthetic = Synthetic::new([28; 3], [12, 16, 28], field).typed(dtype.parse().unwrap());
        // Decoded values are what is lit: a hundredth of the stored ones.
        synthetic.map = map;
        for (name, bound) in LIT {
            let (_, list, _) = FUNCTIONS.into_iter().find(|f| f.0 == name).unwrap();
            let list: Vec<_> = list.iter().map(|&(value, opacity)| (100.0 * value, opacity)).collect();
            let transfer = TransferFunction { range: [0.0, 25_500.0], ..opacity(&list) };
            let plain = scene(&synthetic, Camera::DEFAULT_DIRECTION, transfer);
            let lit = Scene { is_lit: true, ..plain.clone() };
            let exact = reference::cast(&synthetic, &lit);
            let drawn = draw(&lit, &synthetic, Instructions::best());
            let (off, effect) =
                (rms(&drawn, &exact), rms(&drawn, &draw(&plain, &synthetic, Instructions::best())));
            if off > bound || effect < 2.0 * off {
                problems.push(format!("{name}, {dtype}: rms {off}, and light changes {effect}"));
            }
            for &set in Instructions::available() {
                let apart = difference(&drawn, &draw(&lit, &synthetic, set));
                assert!(apart <= INSTRUCTIONS_APART, "{set:?}, {name}, {dtype}: {apart}");
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Light does not depend on the blocks that a volume is cut into, nor on coarse blocks that stand in for fine
/// ones.
#[test]
fn light_does_not_show_blocks_or_levels() {
    let whole = Synthetic::new([40; 3], [40; 3], cubic);
    let transfer = opacity(&[(90.0, 0.0), (140.0, 0.3)]);
    let scene = Scene { is_lit: true, ..scene(&whole, Camera::DEFAULT_DIRECTION, transfer) };
    let one = draw(&scene, &whole, Instructions::best());
    let cut = Synthetic { block: [7, 16, 11], ..whole };
    let many = draw(&Scene { view: cut.view(), ..scene.clone() }, &cut, Instructions::best());
    assert!(difference(&one, &many) <= 1.0, "blocks: {}", difference(&one, &many));
    // A linear field has one gradient at every level.
    let levels = Synthetic { levels: 2, block: [16; 3], ..Synthetic::new([40; 3], [40; 3], common::linear) };
    let scene = Scene { view: levels.view(), ..scene };
    let fine = levels.blocks(0).into_iter().filter(|b| b.key.index % 3 != 1);
    let mixed = common::pool_of(&levels, fine.chain(levels.blocks(1)));
    let full = draw(&scene, &levels, Instructions::best());
    let mixed = cast_with(&scene, &mixed.snapshot(), &Cancel::new(), Instructions::best()).unwrap().image;
    assert!(rms(&full, &mixed) <= 1.0, "levels: {}", rms(&full, &mixed));
}

/// Several steps are taken at once where values run evenly, and this is not visible.
#[test]
fn several_steps_at_once_are_not_seen() {
    let wave = |p: DVec3| 120.0 + 60.0 * (0.06 * p.x + 0.04 * p.z).sin() + 40.0 * (0.05 * p.y).cos();
    for dtype in ["|u1", "<u2", "<f4"] {
        let synthetic = Synthetic::new([64; 3], [64; 3], wave).typed(dtype.parse().unwrap());
        for direction in DIRECTIONS {
            let scene = scene(&synthetic, direction, opacity(&[(0.0, 0.002), (255.0, 0.02)]));
            let whole = Scene { quality: Quality { skip_empty: false, ..scene.quality }, ..scene.clone() };
            let drawn = draw(&scene, &synthetic, Instructions::best());
            let apart = difference(&drawn, &draw(&whole, &synthetic, Instructions::best()));
            assert!(apart > 0.0 && apart < 0.5, "{dtype}, {direction:?}: {apart} from every step");
            let apart = difference(&drawn, &reference::cast(&synthetic, &scene));
            assert!(apart < 1.0, "{dtype}, {direction:?}: {apart} from the reference");
            for &set in Instructions::available() {
                let apart = difference(&drawn, &draw(&scene, &synthetic, set));
                assert!(apart <= INSTRUCTIONS_APART, "{set:?}, {dtype}: {apart}");
            }
        }
    }
}

/// Rings on a surface would be jumps of color: on one of a single opaque value there is one color.
#[test]
fn an_opaque_surface_has_one_color() {
    let ball = |p: DVec3| 255.0 - 8.0 * p.distance(DVec3::splat(15.5));
    let synthetic = Synthetic::new([32; 3], [16; 3], ball);
    let transfer = opacity(&[(170.0, 0.0), (170.0, 1.0)]);
    let expected = transfer.color_at(170.0);
    let scene = Scene {
        size: ImageSize { width: 96, height: 80 },
        ..scene(&synthetic, Camera::DEFAULT_DIRECTION, transfer)
    };
    for &set in Instructions::available() {
        let image = draw(&scene, &synthetic, set);
        let opaque: Vec<_> = image.rgba.iter().filter(|p| p[3] > 0.99).collect();
        assert!(opaque.len() > 500);
        for pixel in opaque {
            // Half a part of a way of 8 values is less than one color of the map; samples alone would be off by eight.
            let apart = (0..3).map(|c| (pixel[c] - expected[c]).abs() * 255.0).fold(0.0, f32::max);
            assert!(apart < 2.0, "{set:?}: {apart} at {pixel:?}, not {expected:?}");
        }
    }
}

/// Kind of values that hostile numbers are put into.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Nothing else.
    Noise,
    /// A smooth field, here and there one of them.
    Smooth,
    /// Blocks of little range each, far apart from one another: whole ones are hidden, above or below what is seen.
    Bands,
}

/// Numbers as bad files hold them. The huge ones of a field have one sign: where two of both signs cancel, rounding decides
/// what lies between them, and pictures may differ.
fn hostile(huge: f32) -> impl Strategy<Value = f32> {
    prop_oneof![
        20 => 0.0..255.0f32,
        1 => prop_oneof![
            Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY), Just(huge), Just(f32::MIN_POSITIVE / 8.0),
            Just(-0.0), Just(1e-30), Just(huge.signum() * 1e20),
        ],
    ]
}

fn hostile_values() -> impl Strategy<Value = Vec<f32>> {
    prop_oneof![Just(f32::MAX), Just(f32::MIN)]
        .prop_flat_map(|huge| prop::collection::vec(hostile(huge), 40..200))
}

fn function() -> impl Strategy<Value = TransferFunction> {
    let point = (0.0..255.0f64, prop_oneof![Just(0.0), Just(0.0), 0.0..1.0f64]);
    // Wider than a part of any way: of narrower ones rounding decides whether a part meets them.
    let peak = (0.0..240.0f64, 20.0..60.0f64, 0.5..1.0f64)
        .prop_map(|(from, width, most)| vec![(from, 0.0), (from + width / 2.0, most), (from + width, 0.0)]);
    prop_oneof![prop::collection::vec(point, 1..6), peak].prop_map(|mut list| {
        list.sort_by(|a, b| a.0.total_cmp(&b.0));
        let opacity = list.into_iter().map(|(value, opacity)| OpacityPoint { value, opacity }).collect();
        TransferFunction { opacity, ..TransferFunction::ramp(0.0, 255.0, 1.0) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn skipping_and_instructions_never_change_a_picture(
        values in hostile_values(),
        transfer in function(),
        missing in prop::option::of(Just(0.0f64)),
        kind in prop_oneof![Just(Kind::Noise), Just(Kind::Smooth), Just(Kind::Bands)],
        step in prop_oneof![Just(1.0), Just(0.5), Just(1.5)],
        // One block; several; several with cells thinner than a step.
        block in prop_oneof![Just([20; 3]), Just([8, 12, 10]), Just([9, 17, 7])],
        is_clipped in any::<bool>(),
        is_lit in any::<bool>(),
        mode in prop_oneof![Just(Mode::Composite), Just(Mode::Maximum), Just(Mode::Minimum)],
    ) {
        let synthetic = Synthetic::new([20; 3], block, cubic);
        let synthetic = Synthetic { decoding: array::Decoding {
            missing: missing.into_iter().map(Scalar::Float).collect(), ..synthetic.decoding.clone() }, ..synthetic };
        let pool = corridor_render::BlockPool::new(synthetic.view(), 1 << 24);
        for mut block in synthetic.blocks(0) {
            if let array::Content::Data { bytes, .. } = &mut block.content {
                let count = bytes.len() / 4;
                let mut all = bytes.to_vec();
                for i in (0..count).filter(|i| kind != Kind::Smooth || i % 37 == 0) {
                    let value = values[(i * 7 + count) % values.len()];
                    let band = values[usize::try_from(block.key.index).unwrap() % values.len()];
                    let value = if kind == Kind::Bands && i % 37 != 0 { band + value / 64.0 } else { value };
                    all[4 * i..4 * i + 4].copy_from_slice(&value.to_ne_bytes());
                }
                *bytes = all.into();
            }
            pool.insert(&block).unwrap();
        }
        let quality = Quality { step, ..Quality::STILL };
        let mut scene = Scene { quality, ..scene(&synthetic, Camera::DEFAULT_DIRECTION, transfer) };
        scene.is_lit = is_lit;
        scene.mode = mode;
        scene.clip = is_clipped.then_some(Bounds { min: [2.5, 3.0, 8.0], max: [17.0, 16.5, 18.0] });
        let whole = Scene { quality: Quality { skip_empty: false, ..quality }, ..scene.clone() };
        let draw = |scene: &Scene, set| cast_with(scene, &pool.snapshot(), &Cancel::new(), set).unwrap().image;
        let expected = draw(&scene, Instructions::Scalar);
        prop_assert!(expected.rgba.as_flattened().iter().all(|v| (0.0..=1.001).contains(v)));
        for &set in Instructions::available() {
            let apart = difference(&expected, &draw(&scene, set));
            prop_assert!(apart <= INSTRUCTIONS_APART, "{:?}: {}", set, apart);
            let apart = difference(&draw(&whole, set), &draw(&scene, set));
            prop_assert!(apart <= SKIPPING_APART, "skipping with {:?}: {}", set, apart);
        }
    }
}
