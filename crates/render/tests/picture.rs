//! Pictures of analytic fields: against a second caster in double precision, and against each other where
//! blocks, levels, types, threads and skipping must not show.

#![expect(clippy::cast_possible_truncation, reason = "tests")]

mod common;
#[path = "common/reference.rs"]
mod reference;

use array::{Affine, Block, Content, DType, Decoding, ElementType, Meaning, Scalar};
use common::{Synthetic, covered, cubic, difference, draw, linear, points, pool_of, voxel_box};
use corridor_render::{Cancel, Image, ImageSize, Inserted, Quality, Scene, TransferFunction, cast, stereo};
use glam::DVec3;

/// Error that `f32`, a table of 2048 entries and the early end of rays may cause, in 255ths of a component:
/// the table and `f32` less than half of one, the early end less than another half.
const REFERENCE_TOLERANCE: f64 = 1.0;
/// Difference that is not visible, in 255ths: less than a step of 8 bits.
const SEAMLESS: f64 = 1.0;

/// A map with a rotation, a shear and three spacings.
const SKEWED: Affine = Affine([[0.8, -0.5, 0.1, 12.0], [0.45, 0.9, 0.0, -7.0], [0.05, 0.1, 2.5, 3.0]]);

fn small(scene: Scene) -> Scene {
    Scene { size: ImageSize { width: 40, height: 32 }, ..scene }
}

#[test]
fn pictures_agree_with_the_reference() {
    for field in [linear, cubic] {
        for map in [Affine::IDENTITY, Affine::from_spacing([1.0, 1.0, 3.0], [5.0, 0.0, -9.0]), SKEWED] {
            let synthetic = Synthetic { map, ..Synthetic::new([20, 33, 29], [8, 16, 16], field) };
            let perspective = small(synthetic.scene());
            let orthographic = Scene { camera: perspective.camera.orthographic(), ..perspective.clone() };
            for scene in [perspective, orthographic] {
                let drawn = draw(&scene, &synthetic.full_pool());
                let apart = difference(&drawn.image, &reference::cast(&synthetic, &scene));
                assert!(apart <= REFERENCE_TOLERANCE, "{apart} at {map:?}, {:?}", scene.camera.projection);
                assert!(covered(&drawn.image) > 0.15, "something must be seen");
                assert!(drawn.fidelity.is_complete());
            }
        }
    }
}

#[test]
fn eyes_that_stand_aside_agree_with_the_reference() {
    fn ball(p: DVec3) -> f64 {
        200.0 - 12.0 * p.distance(DVec3::new(10.0, 18.0, 22.0))
    }
    // A haze everywhere, and a ball whose surroundings rays leap over.
    for field in [cubic, ball] {
        let synthetic = Synthetic { map: SKEWED, ..Synthetic::new([32; 3], [16; 3], field) };
        let scene = Scene { size: ImageSize { width: 80, height: 32 }, ..synthetic.scene() };
        let transfer =
            TransferFunction { opacity: points(&[(100.0, 0.0), (200.0, 0.3)]), ..scene.transfer.clone() };
        let scene = Scene { transfer, ..scene };
        let [left, right] = stereo::scenes(&scene, 0.2).unwrap();
        let [left, right] = [left, right].map(|scene| {
            let drawn = draw(&scene, &synthetic.full_pool()).image;
            let apart = difference(&drawn, &reference::cast(&synthetic, &scene));
            assert!(apart <= REFERENCE_TOLERANCE, "{apart}");
            assert!(covered(&drawn) > 0.02, "something must be seen");
            drawn
        });
        assert!(difference(&left, &right) > 10.0, "each eye sees something else");
    }
}

#[test]
fn a_clipped_picture_agrees_with_the_reference() {
    let synthetic = Synthetic::new([32; 3], [16; 3], cubic);
    let scene = small(synthetic.scene());
    let clip = voxel_box(&scene.view, [3.3, 8.0, 5.5], [20.2, 30.0, 25.0]);
    let scene = Scene { clip: Some(clip), ..scene };
    let apart = difference(&draw(&scene, &synthetic.full_pool()).image, &reference::cast(&synthetic, &scene));
    assert!(apart <= REFERENCE_TOLERANCE, "{apart}");
}

#[test]
fn a_view_from_inside_agrees_with_the_reference() {
    let synthetic = Synthetic::new([32; 3], [16; 3], cubic);
    let mut scene = small(synthetic.scene());
    scene.camera.eye = [16.0, 10.0, 16.0];
    scene.camera.target = [16.0, 30.0, 18.0];
    let drawn = draw(&scene, &synthetic.full_pool()).image;
    let apart = difference(&drawn, &reference::cast(&synthetic, &scene));
    assert!(apart <= REFERENCE_TOLERANCE && covered(&drawn) > 0.99, "{apart}");
}

/// Rays begin and end where something can be seen: that must not be seen.
#[test]
fn what_little_is_to_be_seen_is_drawn_wherever_it_lies() {
    fn islands(p: DVec3) -> f64 {
        let near = |x: f64, y: f64, z: f64| 9.0 - p.distance(DVec3::new(x, y, z));
        near(5.0, 7.0, 3.0).max(near(58.0, 40.0, 30.0)).max(near(20.0, 50.0, 60.0))
    }
    for map in [Affine::IDENTITY, SKEWED] {
        let synthetic = Synthetic { map, ..Synthetic::new([64; 3], [16, 24, 32], islands) };
        let mut scene = small(synthetic.scene());
        scene.transfer.opacity = points(&[(0.0, 0.0), (8.0, 0.1)]);
        let mut inside = scene.clone();
        let world = |p: DVec3| scene.view.world_from_volume.transform_point3(p).to_array();
        inside.camera.eye = world(DVec3::splat(31.0));
        inside.camera.target = world(DVec3::new(58.0, 40.0, 30.0));
        let mut parallel = scene.clone();
        parallel.camera = parallel.camera.orthographic();
        for scene in [scene.clone(), inside, parallel] {
            let all = Scene { quality: Quality { skip_empty: false, ..scene.quality }, ..scene.clone() };
            let [drawn, all] = [&scene, &all].map(|scene| draw(scene, &synthetic.full_pool()));
            let apart = difference(&drawn.image, &all.image);
            assert!(apart <= SEAMLESS && covered(&drawn.image) > 0.01, "{apart} from {:?}", scene.camera);
            let apart = difference(&drawn.image, &reference::cast(&synthetic, &scene));
            // More than elsewhere: opacity bends in every step into an island.
            assert!(apart <= 2.0 * REFERENCE_TOLERANCE, "{apart} from {:?}", scene.camera);
            assert!(drawn.fidelity.is_complete() && drawn.fidelity.finest_shown == Some(0));
        }
        // Nothing at all, of a volume that is all there.
        scene.transfer.opacity = points(&[(500.0, 0.0), (600.0, 0.3)]);
        let drawn = draw(&scene, &synthetic.full_pool());
        assert!(covered(&drawn.image) == 0.0 && drawn.fidelity.is_complete());
        assert_eq!((drawn.fidelity.finest_shown, drawn.fidelity.share_at_wanted), (Some(0), 1.0));
    }
}

/// Opacity of an even fog follows from the length of the ray alone.
#[test]
fn an_even_fog_has_the_opacity_of_its_thickness() {
    let synthetic = Synthetic {
        map: Affine::from_spacing([2.0; 3], [0.0; 3]),
        ..Synthetic::new([40; 3], [16; 3], |_| 7.0)
    };
    let mut scene = small(synthetic.scene());
    scene.camera = corridor_render::Camera::framing(&scene.view.bounds(), [0.0, 1.0, 0.0]).orthographic();
    scene.transfer.opacity = points(&[(7.0, 0.02)]);
    for step in [0.25, 0.5, 1.0, 2.0] {
        scene.quality = Quality { step, ..Quality::STILL };
        let image = draw(&scene, &synthetic.full_pool()).image;
        let center = image.rgba[16 * 40 + 20];
        let expected = 1.0 - 0.98f64.powi(40);
        assert!(
            (f64::from(center[3]) - expected).abs() < 0.01,
            "{} instead of {expected} at step {step}",
            center[3]
        );
    }
}

#[test]
fn block_borders_do_not_show() {
    for field in [linear, cubic] {
        for map in [Affine::IDENTITY, SKEWED] {
            let whole = Synthetic { map, ..Synthetic::new([48; 3], [48; 3], field) };
            let cut = Synthetic { block: [7, 16, 11], ..whole.clone() };
            let scene = whole.scene();
            let one = draw(&scene, &whole.full_pool()).image;
            let many = draw(&Scene { view: cut.view(), ..scene }, &cut.full_pool()).image;
            assert!(difference(&one, &many) <= SEAMLESS, "{}", difference(&one, &many));
        }
    }
}

/// Ghost voxels are refreshed as neighbors arrive, so the order of arrival leaves no trace.
#[test]
fn the_order_of_arrival_leaves_no_trace() {
    let synthetic = Synthetic { levels: 3, ..Synthetic::new([48; 3], [16; 3], cubic) };
    let scene = synthetic.scene();
    let mut blocks: Vec<_> = (0..3).rev().flat_map(|level| synthetic.blocks(level)).collect();
    let coarse_first = draw(&scene, &pool_of(&synthetic, blocks.clone()));
    blocks.reverse();
    let fine_first = draw(&scene, &pool_of(&synthetic, blocks.clone()));
    blocks.sort_by_key(|b| b.key.index.wrapping_mul(0x9E37_79B9) % 101);
    let mixed = draw(&scene, &pool_of(&synthetic, blocks));
    assert_eq!(coarse_first.image, fine_first.image);
    assert_eq!(coarse_first.image, mixed.image);
    assert!(coarse_first.fidelity.is_complete());
}

/// A linear field is the same at every level, so blocks at mixed levels must give the picture of one level.
/// The volume's outer shell is cut away: there each level repeats its own outermost voxels.
#[test]
fn levels_that_meet_do_not_show_in_a_linear_field() {
    for map in [Affine::IDENTITY, Affine::from_spacing([1.0, 1.5, 2.0], [3.0, 2.0, 1.0])] {
        let synthetic = Synthetic { levels: 3, map, ..Synthetic::new([64; 3], [16; 3], linear) };
        let mut scene = synthetic.scene();
        scene.clip = Some(voxel_box(&scene.view, [4.0; 3], [59.0; 3]));
        let full = draw(&scene, &synthetic.full_pool());
        let finest = synthetic.blocks(0).into_iter().filter(|b| b.key.index % 3 == 0);
        let middle = synthetic.blocks(1).into_iter().filter(|b| b.key.index % 2 == 0);
        let mixed = draw(&scene, &pool_of(&synthetic, finest.chain(middle).chain(synthetic.blocks(2))));
        assert!(
            difference(&full.image, &mixed.image) <= SEAMLESS,
            "{}",
            difference(&full.image, &mixed.image)
        );
        assert_eq!((mixed.fidelity.finest_shown, mixed.fidelity.coarsest_shown), (Some(0), Some(2)));
        assert!(mixed.fidelity.share_at_wanted > 0.1 && !mixed.fidelity.is_complete());
        assert!(mixed.fidelity.share_uncovered == 0.0);
    }
}

/// A slice through a wave that the coarser levels cannot follow, some of it sharp, some not: the picture must not
/// jump where levels meet more than it does within a level.
#[test]
fn levels_that_meet_do_not_show_in_a_wave() {
    fn wave(p: DVec3) -> f64 {
        100.0 + 30.0 * (0.35 * p.x).sin() + 30.0 * (0.3 * p.y + 0.2 * p.x).sin() + 20.0 * (0.4 * p.z).cos()
    }
    let synthetic = Synthetic { levels: 3, ..Synthetic::new([48; 3], [16; 3], wave) };
    let mut scene = synthetic.scene();
    scene.size = ImageSize { width: 240, height: 240 };
    scene.clip = Some(voxel_box(&scene.view, [4.0, 4.0, 24.6], [43.0, 43.0, 25.6]));
    scene.transfer.opacity = points(&[(0.0, 1.0)]);
    // Every other block of the middle slice: each face of the sharp ones meets the coarser level.
    let is_chosen = |at: [u64; 3]| (at[0] + at[1] + at[2]) % 2 == 1;
    let place = |key: &array::BlockKey| scene.view.locate(key).unwrap().1;
    let fine = synthetic.blocks(0).into_iter().filter(|b| is_chosen(place(&b.key)));
    let pool = pool_of(&synthetic, fine.chain(synthetic.blocks(2)));
    for direction in [[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]] {
        scene.camera =
            corridor_render::Camera::framing(&scene.view.bounds(), direction).orthographic().zoom(1.6);
        let (sharp, mixed) = (draw(&scene, &synthetic.full_pool()), draw(&scene, &pool));
        let (within, across) = (largest_jump(&sharp.image), largest_jump(&mixed.image));
        let share = mixed.fidelity.share_at_wanted;
        assert!(share > 0.3 && share < 0.7, "{:?}", mixed.fidelity);
        // A little more than twice: what is shown lies half a sample before the slice, where levels differ more.
        assert!(within > 1.0 && across < 2.2 * within, "{across} where levels meet, {within} within one");
    }
}

/// The largest difference of the colors of neighboring opaque pixels, in 255ths.
fn largest_jump(image: &Image) -> f64 {
    let columns = image.size.width as usize;
    let pairs = (0..image.rgba.len()).flat_map(|i| [(i, i + 1), (i, i + columns)]);
    let inside = |i: usize| image.rgba.get(i).is_some_and(|p| p[3] > 0.99);
    let apart = |(i, j): (usize, usize)| {
        let change = |c: usize| f64::from((image.rgba[i][c] - image.rgba[j][c]).abs()) * 255.0;
        change(0).max(change(1)).max(change(2))
    };
    pairs.filter(|&(i, j)| inside(i) && inside(j)).map(apart).fold(0.0, f64::max)
}

#[test]
fn finer_levels_than_wanted_are_left_out() {
    let synthetic = Synthetic { levels: 2, ..Synthetic::new([32; 3], [16; 3], cubic) };
    let scene = Scene { finest_level: 1, ..synthetic.scene() };
    let coarse = draw(&scene, &pool_of(&synthetic, synthetic.blocks(1)));
    let both = draw(&scene, &pool_of(&synthetic, synthetic.blocks(1).into_iter().chain(synthetic.blocks(0))));
    assert_eq!(coarse.image, both.image);
    assert!(coarse.fidelity.is_complete() && coarse.fidelity.wanted_level == 1);
}

#[test]
fn without_an_ancestor_a_missing_block_is_a_hole() {
    let synthetic = Synthetic::new([32; 3], [16; 3], cubic);
    let scene = synthetic.scene();
    let whole = draw(&scene, &synthetic.full_pool());
    let most = pool_of(&synthetic, synthetic.blocks(0).into_iter().skip(4));
    let holed = draw(&scene, &most);
    assert!(holed.fidelity.share_uncovered > 0.3 && holed.fidelity.share_at_wanted < 0.7);
    assert!(difference(&whole.image, &holed.image) > 20.0);
    let nothing = draw(&scene, &pool_of(&synthetic, []));
    assert!(nothing.image.rgba.iter().all(|p| *p == [0.0; 4]));
    assert_eq!(nothing.fidelity.finest_shown, None);
    assert!(!nothing.fidelity.is_complete());
}

#[test]
fn where_the_source_has_nothing_the_ancestor_stands_in() {
    let synthetic = Synthetic { levels: 2, ..Synthetic::new([32; 3], [16; 3], linear) };
    let mut scene = synthetic.scene();
    scene.clip = Some(voxel_box(&scene.view, [2.0; 3], [29.0; 3]));
    let pool = pool_of(&synthetic, synthetic.blocks(1));
    for (i, mut block) in synthetic.blocks(0).into_iter().enumerate() {
        if i % 2 == 0 {
            block.content = Content::NotCovered;
        }
        pool.insert(&block).unwrap();
        assert!(pool.contains(&block.key));
    }
    let full = draw(&scene, &synthetic.full_pool()).image;
    let with_gaps = draw(&scene, &pool);
    assert!(difference(&full, &with_gaps.image) <= SEAMLESS);
    assert!(
        with_gaps.fidelity.share_at_wanted < 0.9 && with_gaps.fidelity.is_complete(),
        "nothing more will come"
    );
    let nothing_fine = synthetic.blocks(0).into_iter().map(|b| Block { content: Content::NotCovered, ..b });
    let pool = pool_of(&synthetic, synthetic.blocks(1));
    nothing_fine.for_each(|b| assert_eq!(pool.insert(&b).unwrap(), Inserted::NotCovered));
    assert!(draw(&scene, &pool).fidelity.is_complete());
    assert!(!draw(&scene, &pool_of(&synthetic, synthetic.blocks(1))).fidelity.is_complete());
}

/// A field of whole numbers that every type can hold, in both byte orders.
#[test]
fn every_type_and_byte_order_gives_the_same_picture() {
    fn steps(p: DVec3) -> f64 {
        (p.x + 2.0 * p.y + p.z).floor() % 100.0
    }
    let floats = Synthetic::new([24; 3], [9, 16, 16], steps);
    let expected = draw(&floats.scene(), &floats.full_pool()).image;
    assert!(covered(&expected) > 0.15);
    for element in ElementType::ALL.into_iter().filter(|&e| e != ElementType::Bool) {
        for order in [array::ByteOrder::Little, array::ByteOrder::Big] {
            let synthetic = floats.clone().typed(DType::new(element, order));
            let image = draw(&synthetic.scene(), &synthetic.full_pool()).image;
            assert!(
                difference(&expected, &image) <= 0.1,
                "{element:?} {order:?}: {}",
                difference(&expected, &image)
            );
        }
    }
}

#[test]
fn scale_and_offset_are_applied_before_the_transfer_function() {
    let plain = Synthetic::new([24; 3], [16; 3], cubic);
    let expected = draw(&plain.scene(), &plain.full_pool()).image;
    for (dtype, scale, offset) in [("<u2", 0.01, -20.0), (">i4", -0.001, 50.0), ("<f8", 1e-9, 1e3)] {
        let mut synthetic = plain.clone().typed(dtype.parse().unwrap());
        synthetic.decoding = Decoding { scale, offset, ..Decoding::identity(synthetic.dtype) };
        let image = draw(&synthetic.scene(), &synthetic.full_pool()).image;
        assert!(difference(&expected, &image) <= 0.5, "{dtype}: {}", difference(&expected, &image));
    }
}

#[test]
fn large_values_in_a_narrow_range_keep_their_detail() {
    let plain = Synthetic::new([24; 3], [16; 3], cubic).typed("<f8".parse().unwrap());
    let expected = draw(&plain.scene(), &plain.full_pool()).image;
    for dtype in ["<f8", "<i8", "<u8"] {
        let far = Synthetic { field: |p| cubic(p).mul_add(1e3, 1e12).round(), ..plain.clone() }
            .typed(dtype.parse().unwrap());
        let mut scene = far.scene();
        scene.transfer = TransferFunction::ramp(1e12, 1e12 + 2e5, 0.08);
        let image = draw(&scene, &far.full_pool()).image;
        assert!(difference(&expected, &image) <= 0.5, "{dtype}: {}", difference(&expected, &image));
    }
}

#[test]
fn threads_change_no_bit_and_skipping_nothing_that_is_seen() {
    let synthetic = Synthetic { levels: 2, ..Synthetic::new([48; 3], [16; 3], cubic) };
    let mut scene = synthetic.scene();
    // A thin shell: most cells are empty.
    scene.transfer.opacity = points(&[(108.0, 0.0), (112.0, 0.6), (116.0, 0.0)]);
    let blocks = synthetic.blocks(0).into_iter().filter(|b| b.key.index % 5 != 0).chain(synthetic.blocks(1));
    let pool = pool_of(&synthetic, blocks);
    let with_threads = |threads: usize, scene: &Scene| -> Image {
        let workers = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        workers.install(|| draw(scene, &pool)).image
    };
    let one = with_threads(1, &scene);
    assert!(covered(&one) > 0.1);
    assert_eq!(one, with_threads(2, &scene));
    assert_eq!(one, with_threads(3, &scene));
    scene.quality.skip_empty = false;
    // Not to the bit: where a cell's range says that opacity hardly bends, ways are cut into fewer parts.
    let apart = difference(&one, &with_threads(2, &scene));
    assert!(apart <= SEAMLESS, "{apart}");
}

#[test]
fn missing_values_are_transparent_and_do_not_bleed() {
    fn holes(p: DVec3) -> f64 {
        if p.x < 12.0 && p.y >= 10.0 { -999.0 } else { 100.0 }
    }
    let mut stored = Synthetic::new([24; 3], [10, 16, 16], holes).typed("<i2".parse().unwrap());
    stored.decoding.missing = vec![Scalar::Signed(-999)];
    let nan = Synthetic::new([24; 3], [10, 16, 16], |p| if holes(p) < 0.0 { f64::NAN } else { 100.0 });
    // As xarray writes it by default. Scene and blocks describe it independently: NaN must not make them differ.
    let mut said = nan.clone();
    said.decoding.missing = vec![Scalar::Float(f64::NAN)];
    let images = [stored, nan, said].map(|synthetic| {
        let mut scene = synthetic.scene();
        scene.camera =
            corridor_render::Camera::framing(&scene.view.bounds(), [0.0, 0.0, -1.0]).orthographic();
        draw(&scene, &synthetic.full_pool()).image
    });
    assert_eq!(images[0], images[1]);
    assert_eq!(images[0], images[2]);
    let image = &images[0];
    // One color only: nothing between -999 and 100 was ever interpolated.
    let expected = TransferFunction::ramp(0.0, 200.0, 0.08).color_at(100.0);
    for pixel in image.rgba.iter().filter(|p| p[3] > 0.0) {
        assert!((0..3).all(|c| (pixel[c] / pixel[3] - expected[c]).abs() < 2e-3), "{pixel:?}");
    }
    // The hole is the upper left quarter, up to half a voxel from the last value.
    let columns = image.size.width as usize;
    let at = |column: usize, row: usize| image.rgba[row * columns + column][3] > 0.0;
    assert!(!at(40, 34) && at(60, 34) && at(40, 60));
}

#[test]
fn even_values_among_missing_ones_are_lit_evenly() {
    fn holes(p: DVec3) -> f64 {
        if (p.x + 2.0 * p.y + 3.0 * p.z) as i64 % 5 == 0 { 0.0 } else { 75.6578 }
    }
    let mut synthetic = Synthetic::new([24; 3], [12; 3], holes);
    synthetic.decoding.missing = vec![Scalar::Float(0.0)];
    let transfer =
        TransferFunction { opacity: points(&[(0.0, 0.2)]), ..TransferFunction::ramp(0.0, 255.0, 1.0) };
    let scene = Scene { transfer, is_lit: true, ..small(synthetic.scene()) };
    let image = draw(&scene, &synthetic.full_pool()).image;
    let seen = image.rgba.iter().filter(|p| p[3] > 0.05);
    let greens: Vec<f32> = seen.map(|p| p[1] / p[3]).collect();
    assert!(greens.len() > 100, "something must be seen");
    let (low, high) = greens.iter().fold((1.0f32, 0.0f32), |(a, b), &v| (a.min(v), b.max(v)));
    assert!(high - low < 0.005, "{low} to {high}");
}

#[test]
fn labels_are_not_interpolated() {
    let mut synthetic = Synthetic::new([24; 3], [16; 3], |p| if p.x < 12.0 { 3.0 } else { 200.0 })
        .typed("<u2".parse().unwrap());
    synthetic.meaning = Meaning::Labels;
    let mut scene = synthetic.scene();
    scene.transfer = TransferFunction::labels(1.0);
    let image = draw(&scene, &synthetic.full_pool()).image;
    let colors: std::collections::BTreeSet<[u8; 3]> = image
        .rgba
        .iter()
        .filter(|p| p[3] > 0.5)
        .map(|p| [0, 1, 2].map(|c| (p[c] / p[3] * 255.0).round() as u8))
        .collect();
    let table = corridor_render::color_map_table("labels").unwrap();
    assert_eq!(colors, [table[3], table[200]].into_iter().collect());
}

#[test]
fn a_plane_is_seen_whatever_its_spacing() {
    for spacing in [[1.0, 1.0, 1.0], [1000.0, 1000.0, 1.0], [0.25, 0.25, 0.0]] {
        let map = Affine::from_spacing(spacing, [0.0; 3]);
        let synthetic = Synthetic { map, ..Synthetic::new([1, 30, 40], [1, 16, 16], |_| 50.0) };
        let mut scene = synthetic.scene();
        scene.camera =
            corridor_render::Camera::framing(&scene.view.bounds(), [0.0, 0.0, -1.0]).orthographic();
        scene.transfer.opacity = points(&[(0.0, 1.0)]);
        let image = draw(&scene, &synthetic.full_pool()).image;
        let opaque = image.rgba.iter().filter(|p| p[3] == 1.0).count();
        // 40 x 30 voxels in a frame of their diagonal, 50 by 60 voxels.
        assert!((1800..3600).contains(&opaque), "{opaque} at {spacing:?}");
        assert!(image.rgba.iter().all(|p| p[3] == 0.0 || p[3] == 1.0));
    }
}

/// A corner blob shows which way is up and right: world x to the right, world z up, seen along +y.
#[test]
fn nothing_is_mirrored() {
    let blob = |p: DVec3| if p.distance(DVec3::new(26.0, 16.0, 26.0)) < 5.0 { 100.0 } else { 0.0 };
    let synthetic = Synthetic::new([32; 3], [16; 3], blob);
    let mut scene = synthetic.scene();
    scene.camera = corridor_render::Camera::framing(&scene.view.bounds(), [0.0, 1.0, 0.0]);
    scene.transfer.opacity = points(&[(50.0, 0.0), (60.0, 1.0)]);
    let image = draw(&scene, &synthetic.full_pool()).image;
    let lit: Vec<(usize, usize)> =
        (0..image.rgba.len()).filter(|&i| image.rgba[i][3] > 0.5).map(|i| (i % 96, i / 96)).collect();
    assert!(lit.len() > 20);
    assert!(lit.iter().all(|&(column, row)| column > 50 && row < 38), "upper right only");
}

#[test]
fn a_cancelled_picture_is_an_error() {
    let synthetic = Synthetic::new([16; 3], [16; 3], cubic);
    let cancel = Cancel::new();
    cancel.clone().cancel();
    let error = cast(&synthetic.scene(), &synthetic.full_pool().snapshot(), &cancel).unwrap_err();
    assert_eq!(error.kind(), array::ErrorKind::Cancelled);
}

#[test]
fn impossible_scenes_are_refused() {
    let synthetic = Synthetic::new([16; 3], [16; 3], cubic);
    let good = synthetic.scene();
    let pool = synthetic.full_pool();
    let refused = |scene: Scene| assert!(cast(&scene, &pool.snapshot(), &Cancel::new()).is_err());
    refused(Scene { size: ImageSize { width: 0, height: 9 }, ..good.clone() });
    refused(Scene { size: ImageSize { width: 16_384, height: 16_384 }, ..good.clone() });
    refused(Scene { finest_level: 3, ..good.clone() });
    refused(Scene { quality: Quality { step: 0.0, ..Quality::STILL }, ..good.clone() });
    refused(Scene { view: Synthetic::new([17; 3], [16; 3], cubic).view(), ..good });
}
