//! Colors by another array: against the reference in double precision, in every kind of picture, whatever the other array's type,
//! blocks and levels; and what is seen where it has no value, or not yet.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "common/reference.rs"]
mod reference;

use array::{Decoding, Meaning, Scalar};
use common::{Synthetic, covered, cubic, difference, linear, points, pool_of, rms};
use corridor_render::{
    Camera, Cancel, ColorByArray, ImagePart, ImageSize, Instructions, Isosurface, Rect, RenderedImage, Scene,
    Slice, Snapshot, SubVolume, TransferFunction, cast, cast_part, cast_with, demand,
};
use glam::DVec3;
use view::{Mode, SpaceAxis};

const SHAPE: [u64; 3] = [28, 26, 30];

fn opacity(list: &[(f64, f64)]) -> TransferFunction {
    TransferFunction { opacity: points(list), ..TransferFunction::ramp(0.0, 255.0, 1.0) }
}

/// Waves of about eight voxels across those of what is seen.
fn waves(p: DVec3) -> f64 {
    (120.0 + 90.0 * (0.7 * p.x - 0.2 * p.z).sin() + 40.0 * (0.6 * p.y).cos()).clamp(0.0, 255.0)
}

/// Array that is shown.
fn shape() -> Synthetic {
    Synthetic::new(SHAPE, [12, 16, 28], cubic)
}

/// Array that gives the colors, in other blocks.
fn colors() -> Synthetic {
    Synthetic::new(SHAPE, [9, 28, 11], waves)
}

fn color_by_of(colors: &Synthetic) -> ColorByArray {
    ColorByArray { view: colors.view(), color_map: "magma".into(), range: [20.0, 220.0], finest_level: 0 }
}

fn scene(shape: &Synthetic, colors: &Synthetic, transfer: TransferFunction) -> Scene {
    let scene = shape.scene();
    let camera = Camera::framing(&scene.view.bounds(), [0.3, -0.2, -0.9]);
    let size = ImageSize { width: 24, height: 20 };
    Scene { camera, transfer, size, color_by: Some(color_by_of(colors)), ..scene }
}

fn blocks(shape: &Synthetic, colors: &Synthetic) -> Snapshot {
    shape.full_pool().snapshot().colored_by(&colors.full_pool().snapshot())
}

fn draw(scene: &Scene, blocks: &Snapshot) -> RenderedImage {
    cast(scene, blocks, &Cancel::new()).unwrap()
}

fn surface(value: f64, opacity: f32) -> Isosurface {
    Isosurface { value, color: [1.0, 0.0, 0.0], opacity }
}

/// Kinds of pictures and by how many 255ths the worst component and the root of the mean square may be off: as much as pictures in
/// the array's own colors, and what the color in the middle of a part of a step is beside those along it.
fn kinds(shape: &Synthetic, colors: &Synthetic) -> Vec<(&'static str, Scene, [f64; 2])> {
    let scene = |list: &[(f64, f64)]| scene(shape, colors, opacity(list));
    let plain = scene(&[(60.0, 0.0), (255.0, 0.2)]);
    let surfaces = vec![surface(100.0, 0.5), surface(120.0, 1.0)];
    let slices = vec![Slice::across(SpaceAxis::X, 11.25), Slice::across(SpaceAxis::Z, 3.0)];
    vec![
        ("dense", scene(&[(90.0, 0.0), (140.0, 0.5)]), [4.0, 0.4]),
        ("fog", scene(&[(0.0, 0.01), (255.0, 0.03)]), [1.0, 0.2]),
        ("saturating", scene(&[(100.0, 0.0), (130.0, 1.0)]), [12.0, 1.0]),
        ("lit", Scene { is_lit: true, ..plain.clone() }, [8.0, 1.0]),
        ("surfaces", Scene { surfaces: surfaces.clone(), mode: Mode::Surfaces, ..plain.clone() }, [2.0, 0.2]),
        ("slices", Scene { slices: slices.clone(), mode: Mode::Surfaces, ..plain.clone() }, [2.0, 0.2]),
        ("mixed", Scene { surfaces, slices, ..plain.clone() }, [4.0, 0.4]),
        ("plain", plain, [2.0, 0.3]),
    ]
}

#[test]
fn pictures_of_every_kind_agree_with_the_reference() {
    let mut problems = Vec::new();
    for dtypes in [["|u1", "<f4"], ["<f8", ">u2"]] {
        let [shape, colors] =
            [shape().typed(dtypes[0].parse().unwrap()), colors().typed(dtypes[1].parse().unwrap())];
        let blocks = blocks(&shape, &colors);
        for (name, scene, bounds) in kinds(&shape, &colors) {
            let drawn = draw(&scene, &blocks);
            assert!(drawn.fidelity.is_complete() && covered(&drawn.image) > 0.15, "{name}");
            let exact = reference::cast_colored_by(&shape, &colors, &scene);
            let (worst, typical) = (difference(&drawn.image, &exact), rms(&drawn.image, &exact));
            if worst > bounds[0] || typical > bounds[1] {
                problems.push(format!("{name}, {dtypes:?}: worst {worst}, rms {typical}"));
            }
            let own = draw(&Scene { color_by: None, ..scene }, &blocks).image;
            assert!(rms(&own, &exact) > 5.0, "{name}: colors must differ for this to say anything");
            let apart = own.rgba.iter().zip(&drawn.image.rgba).map(|(a, b)| (a[3] - b[3]).abs());
            assert!(apart.fold(0.0, f32::max) < 0.05, "{name}: opacity is the array's own");
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_set_of_instructions_and_skipping_or_not_draw_the_same_picture() {
    for dtypes in [["|u1", "<u2"], ["<f4", "|u1"], ["<i2", "<f8"]] {
        let [shape, colors] =
            [shape().typed(dtypes[0].parse().unwrap()), colors().typed(dtypes[1].parse().unwrap())];
        let blocks = blocks(&shape, &colors);
        for (name, scene, _) in kinds(&shape, &colors) {
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
}

#[test]
fn several_casters_draw_the_picture_of_one() {
    let (shape, colors) = (shape(), colors());
    let blocks = blocks(&shape, &colors);
    for (name, scene, _) in kinds(&shape, &colors) {
        let whole = draw(&scene, &blocks).image;
        let middle = 13.0;
        let [near, far] =
            [(f64::NEG_INFINITY, middle), (middle, f64::INFINITY)].map(|(low, high)| SubVolume {
                low: [f64::NEG_INFINITY, f64::NEG_INFINITY, low],
                high: [f64::INFINITY, f64::INFINITY, high],
            });
        let part = |sub_volume| ImagePart { sub_volume, rect: Rect::whole(scene.size), finest: Some(0) };
        let drawn = |sub_volume| cast_part(&scene, &part(sub_volume), &blocks, &Cancel::new()).unwrap().image;
        // Seen from above: rays come from high z.
        let (front, back) = (drawn(far), drawn(near));
        let both = front.rgba.iter().zip(&back.rgba);
        let worst = both.zip(&whole.rgba).flat_map(|((front, back), whole)| {
            (0..4).map(move |c| (front[c] + back[c] * (1.0 - front[3]) - whole[c]).abs())
        });
        let worst = worst.fold(0.0, f32::max) * 255.0;
        assert!(worst <= 1.0, "{name}: {worst}");
    }
}

#[test]
fn labels_color_and_are_colored() {
    let labels = |p: DVec3| ((p.x / 6.0).floor() + 5.0 * (p.y / 7.0).floor()).clamp(0.0, 255.0);
    let mut segments = Synthetic { field: labels, ..colors() }.typed("|u1".parse().unwrap());
    segments.meaning = Meaning::Labels;
    // Values in the colors of segments: in front the label of each place, not one in between.
    let shape = shape();
    let mut scene = scene(&shape, &segments, opacity(&[(0.0, 1.0)]));
    let color_by = ColorByArray { color_map: "labels".into(), range: [0.0, 255.0], ..color_by_of(&segments) };
    scene.color_by = Some(color_by);
    scene.camera = Camera::framing(&scene.view.bounds(), [0.0, 0.0, -1.0]);
    let drawn = draw(&scene, &blocks(&shape, &segments));
    let table = corridor_render::color_map_table("labels").unwrap();
    let is_label = |pixel: &&[f32; 4]| {
        table.iter().any(|c| (0..3).all(|i| (pixel[i] - f32::from(c[i]) / 255.0).abs() < 2.0 / 255.0))
    };
    let opaque: Vec<_> = drawn.image.rgba.iter().filter(|p| p[3] > 0.999).collect();
    let some = opaque.iter().copied().filter(|p| is_label(p)).count();
    assert!(some * 100 > opaque.len() * 95, "{some} of {}", opaque.len());
    // Segments in the colors of values, which vary within each.
    let colors = colors();
    let scene = Scene { color_by: Some(color_by_of(&colors)), ..segments.scene() };
    let scene = Scene { transfer: TransferFunction::labels(1.0), ..scene };
    let drawn = draw(&scene, &blocks(&segments, &colors));
    let own = draw(&Scene { color_by: None, ..scene }, &segments.full_pool().snapshot());
    assert!(drawn.image.rgba.iter().zip(&own.image.rgba).all(|(a, b)| (a[3] - b[3]).abs() < 1e-3));
    let kinds = |frame: &RenderedImage| {
        let all = frame.image.rgba.iter().filter(|p| p[3] > 0.999);
        all.map(|p| p.map(f32::to_bits)).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert!(kinds(&drawn) > 2 * kinds(&own), "{} and {}", kinds(&drawn), kinds(&own));
}

#[test]
fn nothing_is_seen_where_the_color_is_missing() {
    let shape = shape();
    // Half of the colors are missing, along x.
    let half = |p: DVec3| if p.x < 14.5 { 255.0 } else { waves(p).min(254.0) };
    let mut colors = Synthetic { field: half, ..colors() }.typed("|u1".parse().unwrap());
    colors.decoding = Decoding { missing: vec![Scalar::Unsigned(255)], ..colors.decoding };
    let from_front = Camera::framing(&shape.view().bounds(), [0.0, 0.0, -1.0]);
    for (name, scene, _) in kinds(&shape, &colors) {
        let scene = Scene { camera: from_front, ..scene };
        let drawn = draw(&scene, &blocks(&shape, &colors));
        assert!(drawn.fidelity.is_complete(), "{name}: nothing is to come");
        let left = drawn.image.rgba.chunks(24).flat_map(|row| &row[..11]).map(|p| p[3]).fold(0.0, f32::max);
        assert!(left < 1e-6, "{name}: {left}");
        assert!(covered(&drawn.image) > 0.1, "{name}: the other half is seen");
    }
}

#[test]
fn what_is_to_come_is_gray_and_a_coarser_level_stands_in() {
    let shape = shape();
    let colors = Synthetic { levels: 2, field: linear, ..colors() };
    let scene = scene(&shape, &colors, opacity(&[(60.0, 0.0), (255.0, 0.2)]));
    let drawn = |levels: &[u32]| {
        let all = levels.iter().flat_map(|&level| colors.blocks(level));
        let pool = pool_of(&colors, all);
        draw(&scene, &shape.full_pool().snapshot().colored_by(&pool.snapshot()))
    };
    let nothing = drawn(&[]);
    assert!(!nothing.fidelity.is_complete());
    let gray = |p: &[f32; 4]| (p[0] - p[1]).abs() < 1e-5 && (p[0] - p[3] / 2.0).abs() < 1e-5;
    assert!(nothing.image.rgba.iter().all(gray) && covered(&nothing.image) > 0.2);
    let (coarse, fine) = (drawn(&[1]), drawn(&[0, 1]));
    assert!(!coarse.fidelity.is_complete() && fine.fidelity.is_complete());
    // Of what is linear, the mean is as good.
    assert!(rms(&coarse.image, &fine.image) < 2.0 && rms(&nothing.image, &fine.image) > 10.0);
}

/// Pictures of slices alone need only the blocks that the slices cut: blocks beside these are not lacking,
/// and nothing leads over to them.
#[test]
fn slices_need_no_blocks_but_those_they_cut() {
    let shape = shape();
    let colors = Synthetic { levels: 2, block: [8, 8, 8], ..colors() };
    let plain = scene(&shape, &colors, opacity(&[(60.0, 0.0), (255.0, 0.2)]));
    // A little behind the border of blocks.
    let slices = vec![Slice::across(SpaceAxis::Z, 16.25)];
    let scene = Scene { slices, mode: Mode::Surfaces, ..plain };
    let portion = scene.portion();
    let wanted = demand(&colors.view(), &scene.camera, scene.size, &portion, Some(0), 1 << 30).unwrap();
    let is_wanted = |block: &array::Block| wanted.blocks.iter().any(|wanted| wanted.key == block.key);
    let some = [0, 1].into_iter().flat_map(|level| colors.blocks(level)).filter(is_wanted);
    let pool = pool_of(&colors, some);
    assert!(pool.block_count() < 40, "{}", pool.block_count());
    let drawn = draw(&scene, &shape.full_pool().snapshot().colored_by(&pool.snapshot()));
    assert!(drawn.fidelity.is_complete());
    let all = pool_of(&colors, [0, 1].into_iter().flat_map(|level| colors.blocks(level)));
    let all = draw(&scene, &shape.full_pool().snapshot().colored_by(&all.snapshot()));
    assert!(difference(&drawn.image, &all.image) < 1e-3, "{}", difference(&drawn.image, &all.image));
}

#[test]
fn what_cannot_color_is_refused_with_the_reason() {
    let (shape, colors) = (shape(), colors());
    let fits = scene(&shape, &colors, opacity(&[(0.0, 0.5)]));
    let color_by = |change: fn(&mut ColorByArray)| {
        let mut color_by = color_by_of(&colors);
        change(&mut color_by);
        Scene { color_by: Some(color_by), ..fits.clone() }
    };
    let larger = Synthetic::new([28, 26, 31], [9, 28, 11], waves);
    let mut moved = colors.clone();
    moved.map = array::Affine([[1.0, 0.0, 0.0, 0.5], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]);
    let other = |other: &Synthetic| Scene { color_by: Some(color_by_of(other)), ..fits.clone() };
    for (scene, says) in [
        (color_by(|t| t.range = [1.0, 1.0]), "low to high"),
        (color_by(|t| t.color_map = "purple".into()), "`purple`"),
        (color_by(|t| t.finest_level = 1), "level below 1"),
        (other(&larger), "31]"),
        (other(&moved), "other places"),
        (Scene { mode: Mode::Maximum, ..fits.clone() }, "extreme values"),
    ] {
        let error = cast(&scene, &blocks(&shape, &colors), &Cancel::new()).unwrap_err().to_string();
        assert!(error.contains(says), "expected `{says}` in `{error}`");
    }
    let alone = cast(&fits, &shape.full_pool().snapshot(), &Cancel::new()).unwrap_err().to_string();
    assert!(alone.contains("blocks of the array that gives the colors"), "{alone}");
    let foreign = shape
        .full_pool()
        .snapshot()
        .colored_by(&Synthetic { levels: 2, ..colors.clone() }.full_pool().snapshot());
    assert!(cast(&fits, &foreign, &Cancel::new()).is_err());
}
