//! Thin volumes are drawn without rings and holes: rays gather by their true path length through them.

#![expect(clippy::cast_possible_truncation, reason = "tests, of small numbers")]

mod common;

use array::{DType, ElementType, Meaning};
use common::{Synthetic, draw, points, pool_of};
use corridor_render::{Camera, ImageSize, Quality, Scene, TransferFunction};
use glam::{DVec3, Vec4};
use view::Mode;

const SIZE: ImageSize = ImageSize { width: 97, height: 71 };

fn even(_: DVec3) -> f64 {
    100.0
}

fn hills(p: DVec3) -> f64 {
    100.0 + 40.0 * (p.x / 9.0).sin() * (p.y / 11.0).cos()
}

fn layers(p: DVec3) -> f64 {
    40.0 + 60.0 * p.z
}

/// Shows all values from 0 to 200, with this opacity over a voxel.
fn all(opacity: f64) -> TransferFunction {
    TransferFunction {
        opacity: points(&[(0.0, opacity), (200.0, opacity)]),
        ..TransferFunction::ramp(0.0, 200.0, 1.0)
    }
}

/// Straight from above, and from aside; near and far.
fn cameras(scene: &Scene) -> Vec<Camera> {
    let bounds = scene.view.bounds();
    let of = |direction| Camera::framing(&bounds, direction);
    let far = [[0.0, 0.0, -1.0], [0.5, 0.3, -0.8], [0.9, 0.1, -0.3]].map(of);
    far.into_iter().flat_map(|camera| [camera, camera.zoom(2.7), camera.orthographic().zoom(1.3)]).collect()
}

/// Length of each pixel's ray inside the volume, voxels of level 0; for volumes whose voxels are world units.
fn ways(scene: &Scene) -> Vec<f64> {
    let (bounds, camera) = (scene.view.bounds(), &scene.camera);
    let (eye, target) = (DVec3::from(camera.eye), DVec3::from(camera.target));
    let forward = (target - eye).normalize();
    let right = forward.cross(camera.up.into()).normalize();
    let up = right.cross(forward);
    let [width, height] = [scene.size.width, scene.size.height].map(f64::from);
    let one = |column: u32, row: u32| {
        let across = (2.0 * (f64::from(column) + 0.5) / width - 1.0) * width / height;
        let upward = 1.0 - 2.0 * (f64::from(row) + 0.5) / height;
        let aside = right * across + up * upward;
        let (origin, direction) = match camera.projection {
            view::Projection::Perspective { fov_y_rad } => {
                (eye, (forward + aside * (fov_y_rad / 2.0).tan()).normalize())
            }
            view::Projection::Orthographic { height_world } => (eye + aside * height_world / 2.0, forward),
        };
        let [a, b] = [bounds.min, bounds.max].map(|wall| (DVec3::from(wall) - origin) / direction);
        (a.max(b).min_element() - a.min(b).max_element()).max(0.0)
    };
    (0..scene.size.height).flat_map(|row| (0..scene.size.width).map(move |column| one(column, row))).collect()
}

#[test]
fn an_opaque_image_has_no_holes_at_any_level_size_and_camera() {
    let mut synthetic = Synthetic::new([1, 120, 160], [1, 32, 32], hills);
    synthetic.levels = 5;
    for level in 0..5 {
        let pool = pool_of(&synthetic, synthetic.blocks(level));
        for quality in [Quality::STILL, Quality::MOVING, Quality::moving(3.0)] {
            let mut scene = Scene { transfer: all(1.0), size: SIZE, quality, ..synthetic.scene() };
            scene.finest_level = u8::try_from(level).unwrap();
            for camera in cameras(&scene) {
                scene.camera = camera;
                let frame = draw(&scene, &pool);
                for (pixel, way) in frame.image.rgba.iter().zip(ways(&scene)) {
                    let expected = f32::from(u8::from(way > 0.01));
                    assert!(
                        way > 0.0 && way <= 0.01 || (pixel[3] - expected).abs() < 0.01,
                        "level {level}: {pixel:?}, way {way}"
                    );
                }
                assert!(frame.fidelity.finest_shown.is_some(), "it says what it shows");
            }
        }
    }
}

#[test]
fn opacity_is_that_of_the_true_way_through_few_layers() {
    for count in [1, 2, 3, 7] {
        let mut synthetic = Synthetic::new([count, 60, 80], [1, 32, 32], even);
        synthetic.levels = 4;
        for level in 0..4 {
            let pool = pool_of(&synthetic, synthetic.blocks(level));
            let mut scene = Scene { transfer: all(0.3), size: SIZE, ..synthetic.scene() };
            scene.finest_level = u8::try_from(level).unwrap();
            for camera in cameras(&scene) {
                scene.camera = camera;
                let image = draw(&scene, &pool).image;
                for (pixel, way) in image.rgba.iter().zip(ways(&scene)) {
                    let expected = 1.0 - 0.7f64.powf(way);
                    let apart = (f64::from(pixel[3]) - expected).abs();
                    assert!(
                        apart < 1.5 / 255.0,
                        "{count} layers, level {level}: {}, not {expected}",
                        pixel[3]
                    );
                }
            }
        }
    }
}

#[test]
fn neighboring_rays_through_different_layers_see_nearly_the_same() {
    let synthetic = Synthetic::new([3, 60, 80], [3, 32, 32], layers);
    let pool = synthetic.full_pool();
    let mut scene = Scene { transfer: all(0.4), size: SIZE, ..synthetic.scene() };
    // Parallel rays that all go the same way: they see the same.
    for direction in [[0.0, 0.0, -1.0], [0.3, 0.2, -0.8]] {
        scene.camera = Camera::framing(&scene.view.bounds(), direction).orthographic().zoom(4.0);
        for quality in [Quality::STILL, Quality::MOVING] {
            scene.quality = quality;
            let image = draw(&scene, &pool).image;
            let middle = Vec4::from(image.rgba[image.rgba.len() / 2]);
            for (pixel, way) in image.rgba.iter().zip(ways(&scene)) {
                let apart = (Vec4::from(*pixel) - middle).abs().max_element();
                assert!(way < 2.9 || apart < 1.0 / 255.0, "{pixel:?}, not {middle}");
            }
        }
    }
    // And from near they change evenly from one to the next.
    scene.camera = Camera::framing(&scene.view.bounds(), [0.0, 0.0, -1.0]).zoom(3.0);
    let image = draw(&scene, &pool).image;
    let width = SIZE.width as usize;
    let ways = ways(&scene);
    for row in 0..SIZE.height as usize {
        for column in 1..width - 1 {
            let at = row * width + column;
            let [before, here, after] = [at - 1, at, at + 1].map(|i| Vec4::from(image.rgba[i]));
            let bend = (before - here * 2.0 + after).abs().max_element();
            assert!(
                ways[at - 1..=at + 1].iter().any(|&way| way < 2.9) || bend < 1.0 / 255.0,
                "{bend} at {column}, {row}"
            );
        }
    }
}

#[test]
fn labels_light_and_extreme_values_have_no_holes_either() {
    let mut synthetic = Synthetic::new([1, 60, 80], [1, 32, 32], hills).typed(DType::native(ElementType::U8));
    synthetic.levels = 4;
    for level in [0, 3] {
        for (meaning, mode, is_lit) in [
            (Meaning::Labels, Mode::Composite, false),
            (Meaning::Intensity, Mode::Composite, true),
            (Meaning::Intensity, Mode::Maximum, false),
            (Meaning::Intensity, Mode::Minimum, false),
        ] {
            synthetic.meaning = meaning;
            let pool = pool_of(&synthetic, synthetic.blocks(level));
            let mut scene = Scene { transfer: all(1.0), mode, is_lit, size: SIZE, ..synthetic.scene() };
            if meaning == Meaning::Labels {
                scene.transfer = TransferFunction::labels(1.0);
            }
            scene.finest_level = u8::try_from(level).unwrap();
            for camera in cameras(&scene) {
                scene.camera = camera;
                let image = draw(&scene, &pool).image;
                for (pixel, way) in image.rgba.iter().zip(ways(&scene)) {
                    assert!(way < 0.01 || pixel[3] > 0.99, "{meaning:?}, {mode:?}: {pixel:?}, way {way}");
                }
            }
        }
    }
}

#[test]
fn what_a_clipping_box_leaves_is_as_thin_as_it_is() {
    let synthetic = Synthetic::new([40, 60, 80], [16, 32, 32], even);
    let pool = synthetic.full_pool();
    let mut scene = Scene { transfer: all(0.3), size: SIZE, ..synthetic.scene() };
    let mut clip = scene.view.bounds();
    (clip.min[2], clip.max[2]) = (20.0, 20.5);
    scene.clip = Some(clip);
    scene.camera = Camera::framing(&clip, [0.2, 0.1, -1.0]);
    let straight = (DVec3::from(scene.camera.target) - DVec3::from(scene.camera.eye)).normalize();
    let image = draw(&scene, &pool).image;
    let middle = image.rgba[(SIZE.height / 2 * SIZE.width + SIZE.width / 2) as usize];
    let expected = (1.0 - 0.7f64.powf(0.5 / straight.z.abs())) as f32;
    assert!((middle[3] - expected).abs() < 1.0 / 255.0, "{middle:?}, not {expected}");
}
