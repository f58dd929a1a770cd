//! Layers over an array: against the reference in double precision, whatever their grids and types; labels,
//! outlines, order and images of one layer by their exact colors; and what is refused.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "common/reference.rs"]
mod reference;

use array::{Affine, Meaning};
use common::{Synthetic, covered, cubic, difference, points, rms};
use corridor_render::{
    ArrayLayer, Camera, Cancel, ImagePart, ImageSize, Instructions, Isosurface, Rect, RenderedImage, Scene,
    Slice, Snapshot, SubVolume, TransferFunction, cast, cast_part, cast_with, device, pick,
    signed_label_color, volume_of_world,
};
use glam::DVec3;
use view::{Mode, Projection, SpaceAxis};

const SHAPE: [u64; 3] = [28, 26, 30];

fn waves(p: DVec3) -> f64 {
    (120.0 + 90.0 * (0.5 * p.x - 0.2 * p.z).sin() + 40.0 * (0.4 * p.y).cos()).clamp(0.0, 255.0)
}

/// Two boxes of labels in background.
fn boxes(p: DVec3) -> f64 {
    let in_box =
        |low: [f64; 3], high: [f64; 3]| p.cmpge(DVec3::from(low)).all() && p.cmple(DVec3::from(high)).all();
    f64::from(u8::from(in_box([2.0; 3], [7.0; 3])) + 2 * u8::from(in_box([9.0, 3.0, 3.0], [13.0, 11.0, 9.0])))
}

fn base() -> Synthetic {
    Synthetic::new(SHAPE, [12, 16, 28], cubic)
}

/// Turned about the z axis, with voxels of 1.3 x 1.1 x 1.7, and partly outside of the base.
fn turned() -> Affine {
    let (sine, cosine) = 0.35f64.sin_cos();
    Affine([
        [1.3 * cosine, -1.1 * sine, 0.0, 6.0],
        [1.3 * sine, 1.1 * cosine, 0.0, -3.0],
        [0.0, 0.0, 1.7, 2.5],
    ])
}

fn values() -> Synthetic {
    Synthetic { map: turned(), ..Synthetic::new([17, 21, 19], [8, 9, 16], waves) }
}

fn labels() -> Synthetic {
    let labels = Synthetic::new([11, 14, 16], [6, 16, 7], boxes).typed("|u1".parse().unwrap());
    Synthetic {
        map: Affine::from_spacing([2.0, 1.8, 2.2], [0.5, 0.25, 0.75]),
        meaning: Meaning::Labels,
        ..labels
    }
}

fn layer(of: &Synthetic, transfer: TransferFunction, opacity: f64) -> ArrayLayer {
    ArrayLayer { view: of.view(), transfer, opacity, is_outlined: false, finest_level: 0 }
}

fn haze() -> TransferFunction {
    TransferFunction {
        color_map: "magma".into(),
        range: [20.0, 220.0],
        opacity: points(&[(60.0, 0.0), (255.0, 0.12)]),
        ..TransferFunction::ramp(0.0, 255.0, 1.0)
    }
}

fn scene_of(base: &Synthetic, layers: Vec<ArrayLayer>) -> Scene {
    let scene = base.scene();
    let camera = Camera::framing(&scene.view.bounds(), [0.3, -0.2, -0.9]);
    Scene { camera, size: ImageSize { width: 24, height: 20 }, layers, ..scene }
}

fn blocks(base: &Synthetic, layers: &[&Synthetic]) -> Snapshot {
    let pools: Vec<_> = layers.iter().map(|layer| layer.full_pool().snapshot()).collect();
    base.full_pool().snapshot().with_layers(&pools)
}

fn draw(scene: &Scene, blocks: &Snapshot) -> RenderedImage {
    cast(scene, blocks, &Cancel::new()).unwrap()
}

/// Kinds of pictures, and how many 255ths the worst component and the root of the mean square may be off.
fn kinds(base: &Synthetic, layers: &[ArrayLayer]) -> Vec<(&'static str, Scene, [f64; 2])> {
    let plain = scene_of(base, layers.to_vec());
    let hidden = TransferFunction { opacity: points(&[(0.0, 0.0)]), ..plain.transfer.clone() };
    let surfaces = vec![Isosurface { value: 100.0, color: [1.0, 0.0, 0.0], opacity: 0.5 }];
    let slices = vec![Slice::across(SpaceAxis::X, 11.25), Slice::across(SpaceAxis::Z, 3.0)];
    vec![
        ("volume", plain.clone(), [6.0, 0.8]),
        // The layer ends within a step, whose color is that of its middle.
        ("layers alone", Scene { transfer: hidden, ..plain.clone() }, [8.0, 1.3]),
        ("lit", Scene { is_lit: true, ..plain.clone() }, [8.0, 1.0]),
        ("slices", Scene { slices: slices.clone(), mode: Mode::Surfaces, ..plain.clone() }, [2.0, 0.2]),
        ("mixed", Scene { surfaces, slices, ..plain }, [8.0, 1.0]),
    ]
}

#[test]
fn pictures_of_every_kind_agree_with_the_reference() {
    let mut problems = Vec::new();
    for dtypes in [["|u1", "<f4"], ["<f8", ">u2"]] {
        let [base, values] =
            [base().typed(dtypes[0].parse().unwrap()), values().typed(dtypes[1].parse().unwrap())];
        let blocks = blocks(&base, &[&values]);
        for (name, scene, bounds) in kinds(&base, &[layer(&values, haze(), 0.8)]) {
            let drawn = draw(&scene, &blocks);
            assert!(drawn.fidelity.is_complete() && covered(&drawn.image) > 0.1, "{name}");
            let exact = reference::cast_layered(&base, &[&values], &scene);
            let (worst, typical) = (difference(&drawn.image, &exact), rms(&drawn.image, &exact));
            if worst > bounds[0] || typical > bounds[1] {
                problems.push(format!("{name}, {dtypes:?}: worst {worst}, rms {typical}"));
            }
            let without = draw(&Scene { layers: Vec::new(), ..scene }, &blocks).image;
            assert!(rms(&without, &exact) > 2.0, "{name}: the layer must be seen for this to say anything");
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_set_of_instructions_and_skipping_or_not_draw_the_same_picture() {
    let (base, values, labels) = (base(), values(), labels());
    let blocks = blocks(&base, &[&values, &labels]);
    let layers = [layer(&values, haze(), 1.0), layer(&labels, TransferFunction::labels(0.3), 0.5)];
    for (name, scene, _) in kinds(&base, &layers) {
        let expected = cast_with(&scene, &blocks, &Cancel::new(), Instructions::Scalar).unwrap().image;
        for &set in Instructions::available() {
            let drawn = cast_with(&scene, &blocks, &Cancel::new(), set).unwrap().image;
            assert!(difference(&expected, &drawn) <= 2.0, "{set:?}, {name}");
        }
        let mut plain = scene.clone();
        plain.quality.skip_empty = false;
        assert!(difference(&expected, &draw(&plain, &blocks).image) <= 2.0, "{name} without skipping");
    }
}

#[test]
fn labels_on_slices_are_the_nearest_ones_in_their_colors() {
    let (base, labels) = (base(), labels());
    let slices = vec![Slice::across(SpaceAxis::Z, 12.0)];
    let layers = vec![layer(&labels, TransferFunction::labels(0.02), 0.75)];
    let scene = Scene { slices, mode: Mode::Surfaces, ..scene_of(&base, layers) };
    let drawn = draw(&scene, &blocks(&base, &[&labels])).image;
    let exact = reference::cast_layered(&base, &[&labels], &scene);
    assert!(difference(&drawn, &exact) <= 2.0, "{}", difference(&drawn, &exact));
    let without = draw(&Scene { layers: Vec::new(), ..scene }, &blocks(&base, &[])).image;
    let changed = drawn.rgba.iter().zip(&without.rgba).filter(|(a, b)| a != b).count();
    assert!((20..240).contains(&changed), "{changed} pixels show a label");
}

/// Image of 16 x 12 pixels, each of which shows one voxel of an array of one layer.
fn image_scene(base: &Synthetic, layers: Vec<ArrayLayer>) -> Scene {
    let [_, height, width] = base.shape;
    let (x, y) = ((width - 1) as f64 / 2.0, (height - 1) as f64 / 2.0);
    let camera = Camera {
        eye: [x, y, -50.0],
        target: [x, y, 0.0],
        up: [0.0, -1.0, 0.0],
        projection: Projection::Orthographic { height_world: height as f64 },
        aside: 0.0,
    };
    let gray = TransferFunction {
        color_map: "gray".into(),
        range: [0.0, 255.0],
        opacity: points(&[(0.0, 1.0)]),
        ..TransferFunction::ramp(0.0, 255.0, 1.0)
    };
    let [width, height] = [width, height].map(|side| u32::try_from(side).unwrap());
    let size = ImageSize { width, height };
    Scene { camera, size, transfer: gray, layers, ..base.scene() }
}

fn flat(field: common::Field) -> Synthetic {
    Synthetic::new([1, 12, 16], [1, 12, 16], field).typed("|u1".parse().unwrap())
}

fn square(p: DVec3) -> f64 {
    f64::from(u8::from((3.0..=8.0).contains(&p.x) && (2.0..=7.0).contains(&p.y)) * 5)
}

fn flat_labels() -> Synthetic {
    Synthetic { meaning: Meaning::Labels, ..flat(square) }
}

/// Returns the color of the pixel that shows a voxel, in 255ths.
fn pixel(image: &RenderedImage, x: usize, y: usize) -> [f64; 3] {
    let [r, g, b, _] = image.image.rgba[y * image.image.size.width as usize + x];
    [r, g, b].map(|part| f64::from(part) * 255.0)
}

fn assert_near(found: [f64; 3], expected: [f64; 3], what: &str) {
    let apart = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < 1.5, "{what}: {found:?} instead of {expected:?}");
}

#[test]
fn images_are_covered_with_the_opacity_of_the_layer() {
    let (base, labels) = (flat(|_| 100.0), flat_labels());
    let scene = |opacity| image_scene(&base, vec![layer(&labels, TransferFunction::labels(0.1), opacity)]);
    let blocks = blocks(&base, &[&labels]);
    let own = signed_label_color(5).map(f64::from);
    for opacity in [0.0, 0.4, 1.0] {
        let drawn = draw(&scene(opacity), &blocks);
        assert_near(pixel(&drawn, 0, 0), [100.0; 3], "background");
        let mixed = own.map(|part| part * opacity + 100.0 * (1.0 - opacity));
        assert_near(pixel(&drawn, 5, 5), mixed, "label");
    }
}

#[test]
fn outlines_are_the_voxels_beside_another_label() {
    let (base, labels) = (flat(|_| 100.0), flat_labels());
    let outlined = ArrayLayer { is_outlined: true, ..layer(&labels, TransferFunction::labels(0.1), 1.0) };
    let drawn = draw(&image_scene(&base, vec![outlined]), &blocks(&base, &[&labels]));
    let own = signed_label_color(5).map(f64::from);
    for y in 0..12 {
        for x in 0..16 {
            let inside = (3..=8).contains(&x) && (2..=7).contains(&y);
            let inner = (4..=7).contains(&x) && (3..=6).contains(&y);
            let expected = if inside && !inner { own } else { [100.0; 3] };
            assert_near(pixel(&drawn, x, y), expected, &format!("pixel {x}, {y}"));
        }
    }
}

#[test]
fn later_layers_are_drawn_over_earlier_ones() {
    let (base, labels) = (flat(|_| 100.0), flat_labels());
    let other = Synthetic { meaning: Meaning::Labels, ..flat(|_| 9.0) };
    let of = |labels: &Synthetic| layer(labels, TransferFunction::labels(0.1), 1.0);
    let [five, nine] = [5, 9].map(|label| signed_label_color(label).map(f64::from));
    let first = draw(&image_scene(&base, vec![of(&other), of(&labels)]), &blocks(&base, &[&other, &labels]));
    assert_near(pixel(&first, 5, 5), five, "the square is above");
    assert_near(pixel(&first, 0, 0), nine, "beside it");
    let second = draw(&image_scene(&base, vec![of(&labels), of(&other)]), &blocks(&base, &[&labels, &other]));
    assert_near(pixel(&second, 5, 5), nine, "the square is below");
}

#[test]
fn layers_are_in_front_of_extreme_values() {
    let (base, labels) = (base(), labels());
    let layers = vec![layer(&labels, TransferFunction::labels(1.0), 1.0)];
    let scene = Scene { mode: Mode::Maximum, ..scene_of(&base, layers) };
    let blocks = blocks(&base, &[&labels]);
    let drawn = draw(&scene, &blocks).image;
    let without = draw(&Scene { layers: Vec::new(), ..scene.clone() }, &blocks).image;
    let hidden = TransferFunction { opacity: points(&[(0.0, 0.0)]), ..scene.transfer.clone() };
    let alone = draw(&Scene { mode: Mode::Composite, transfer: hidden, ..scene }, &blocks).image;
    let (mut shown, mut others) = (0, 0);
    for ((both, own), alone) in drawn.rgba.iter().zip(&without.rgba).zip(&alone.rgba) {
        let differs = |part: usize| (both[part] - alone[part] - own[part] * (1.0 - alone[3])).abs() > 0.06;
        // Samples of extreme values lie half as far apart, so rays along an edge may meet it or not.
        others += usize::from((0..3).any(differs));
        shown += usize::from(alone[3] > 0.5);
    }
    assert!(others * 8 < shown, "{others} of {shown} pixels are not the labels over the largest values");
    assert!(shown > 20, "{shown}");
}

#[test]
fn what_cannot_be_drawn_with_layers_is_refused() {
    let (base, values) = (base(), values());
    let scene = scene_of(&base, vec![layer(&values, haze(), 1.0)]);
    let all = blocks(&base, &[&values]);
    let missing = cast(&scene, &blocks(&base, &[]), &Cancel::new()).unwrap_err().to_string();
    assert!(missing.contains("the blocks of each layer"), "{missing}");
    let part = ImagePart { rect: Rect::whole(scene.size), sub_volume: SubVolume::WHOLE, finest: None };
    let shared = cast_part(&scene, &part, &all, &Cancel::new()).unwrap_err().to_string();
    assert!(shared.contains("several ranks cannot draw layers"), "{shared}");
    let gpu = device::prepare(&scene, &all).unwrap_err().to_string();
    assert!(gpu.contains("without layers for a graphics processor"), "{gpu}");
    let dense = Scene { layers: vec![layer(&values, haze(), 1.5)], ..scene.clone() };
    assert!(dense.check().unwrap_err().to_string().contains("opacity from 0 to 1, found 1.5"));
    let many = Scene { layers: vec![layer(&values, haze(), 1.0); 9], ..scene };
    assert!(many.check().unwrap_err().to_string().contains("at most 8"));
}

#[test]
fn picks_stop_at_a_layer_where_the_array_shows_nothing() {
    let (base, labels) = (base(), labels());
    let scene = scene_of(&base, vec![layer(&labels, TransferFunction::labels(1.0), 1.0)]);
    let hidden = TransferFunction { opacity: points(&[(0.0, 0.0)]), ..scene.transfer.clone() };
    let scene = Scene { transfer: hidden, ..scene };
    let all = blocks(&base, &[&labels]);
    let drawn = draw(&scene, &all).image;
    let width = scene.size.width as usize;
    let seen = drawn.rgba.iter().position(|pixel| pixel[3] > 0.99).unwrap();
    let at = [(seen % width) as f64 + 0.5, (seen / width) as f64 + 0.5];
    let found = pick(&scene, &all, at).unwrap().unwrap();
    let [x, y, z] = volume_of_world(&labels.view(), found.world);
    assert!(boxes((DVec3::new(x, y, z)).round()) > 0.0, "{found:?} lies in a label");
    let without = Scene { layers: Vec::new(), ..scene };
    assert!(pick(&without, &blocks(&base, &[]), at).unwrap().is_none());
}

#[test]
fn pictures_say_that_a_layer_is_not_yet_complete() {
    let (base, values) = (base(), values());
    let scene = scene_of(&base, vec![layer(&values, haze(), 1.0)]);
    let some = common::pool_of(&values, [values.block(0, 0)]).snapshot();
    let drawn = draw(&scene, &base.full_pool().snapshot().with_layers([&some]));
    assert!(!drawn.fidelity.is_complete());
}
