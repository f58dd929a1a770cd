//! The place that a pixel shows, against the opacity in front of it by the slow caster.

mod common;
#[path = "common/reference.rs"]
mod reference;

use array::{Affine, Meaning};
use common::{Field, Synthetic, cubic, linear, points, pool_of, voxel_box};
use corridor_render::reference::opacity_before;
use corridor_render::{
    Camera, Isosurface, ObliquePlane, PickTarget, Scene, Slice, TransferFunction, pick, volume_of_world,
    voxel_of_world, world_of_voxel,
};
use glam::DVec3;
use view::{Mode, SpaceAxis};

/// A map with a rotation, a shear and three spacings.
const SKEWED: Affine = Affine([[0.8, -0.5, 0.1, 12.0], [0.45, 0.9, 0.0, -7.0], [0.05, 0.1, 2.5, 3.0]]);

fn distance(scene: &Scene, world: [f64; 3], pixel: [u32; 2]) -> f64 {
    let from = match scene.camera.projection {
        view::Projection::Perspective { .. } => DVec3::from(scene.camera.eye),
        view::Projection::Orthographic { height_world } => {
            let camera = &scene.camera;
            let forward = (DVec3::from(camera.target) - DVec3::from(camera.eye)).normalize();
            let right = forward.cross(camera.up.into()).normalize();
            let [w, h] = [scene.size.width, scene.size.height].map(f64::from);
            let across = (2.0 * (f64::from(pixel[0]) + 0.5) / w - 1.0) * w / h * height_world / 2.0;
            let upward = (1.0 - 2.0 * (f64::from(pixel[1]) + 0.5) / h) * height_world / 2.0;
            DVec3::from(camera.eye) + right * across + right.cross(forward) * upward
        }
    };
    let along = DVec3::from(world) - from;
    let forward = (DVec3::from(scene.camera.target) - DVec3::from(scene.camera.eye)).normalize();
    along.length() * along.dot(forward).signum()
}

fn middle([column, row]: [u32; 2]) -> [f64; 2] {
    [f64::from(column) + 0.5, f64::from(row) + 0.5]
}

/// Compares a picked place with the reference: a little nearer less than half is hidden, a little farther at least half.
#[test]
fn half_of_the_light_is_hidden_at_the_picked_place() {
    let surface = |value, opacity| Isosurface { value, color: [1.0; 3], opacity };
    let slice = Slice::across;
    let (mut opaque, mut clear) = (0, 0);
    for (field, map) in [(cubic as Field, Affine::IDENTITY), (cubic, SKEWED), (linear, SKEWED)] {
        let synthetic = Synthetic { map, ..Synthetic::new([20, 33, 29], [8, 16, 16], field) };
        let (plain, pool) = (synthetic.scene(), synthetic.full_pool());
        let haze = |opacity| TransferFunction::ramp(0.0, 200.0, opacity);
        let oblique = Slice {
            oblique: Some(
                ObliquePlane::in_volume(&plain.view, [1.0, -2.0, 1.5], plain.view.bounds().center()).unwrap(),
            ),
            ..slice(SpaceAxis::Z, 0.0)
        };
        let clip = Some(voxel_box(&plain.view, [3.0, 5.0, 2.0], [22.0, 21.5, 15.0]));
        let scenes = [
            Scene { transfer: haze(0.2), ..plain.clone() },
            Scene { transfer: haze(0.2), clip, ..plain.clone() },
            Scene { surfaces: vec![surface(95.3, 0.3), surface(120.1, 1.0)], ..plain.clone() },
            Scene {
                surfaces: vec![surface(110.2, 0.4)],
                slices: vec![slice(SpaceAxis::Z, 7.25), slice(SpaceAxis::X, 20.0)],
                mode: Mode::Surfaces,
                ..plain.clone()
            },
            Scene { slices: vec![oblique], mode: Mode::Surfaces, ..plain.clone() },
        ];
        for scene in scenes {
            for scene in [Scene { camera: scene.camera.orthographic(), ..scene.clone() }, scene] {
                for pixel in (0..80).step_by(9).flat_map(|row| (0..96).step_by(11).map(move |c| [c, row])) {
                    let hidden = |at| opacity_before(&scene, &synthetic, pixel, at);
                    let all = hidden(f64::INFINITY);
                    let found = pick(&scene, &pool.snapshot(), middle(pixel)).unwrap();
                    let Some(found) = found else {
                        assert!(all < 1e-3, "{pixel:?}: {all} of the light is hidden by something");
                        clear += 1;
                        continue;
                    };
                    let at = distance(&scene, found.world, pixel);
                    // The slow caster takes one sample for each voxel.
                    let margin = 0.75 * scene.view.spacing_world(0);
                    if all > 0.51 {
                        let (before, after) = (hidden(at - margin), hidden(at + margin));
                        assert!(before < 0.53 && after > 0.47, "{pixel:?} {found:?}: {before}, {after}");
                        opaque += 1;
                    }
                    let volume = volume_of_world(&scene.view, found.world);
                    let value = found.drawn.map(|drawn| drawn.value);
                    match found.target {
                        PickTarget::Slice(number) => {
                            let slice = scene.slices[number];
                            let apart = match slice.oblique {
                                Some(plane) => DVec3::from(plane.normal).dot(volume.into()) - plane.offset,
                                None => volume[slice.axis.index()] - slice.at,
                            };
                            assert!(apart.abs() < 1e-6, "{apart}");
                        }
                        PickTarget::Surface(number) => {
                            let apart = value.unwrap() - scene.surfaces[number].value;
                            assert!(apart.abs() < 1e-3, "{apart}");
                        }
                        _ => assert!(scene.mode == Mode::Composite && value.is_some()),
                    }
                    if let Some(clip) = scene.clip {
                        let inside = (0..3).all(|a| {
                            found.world[a] >= clip.min[a] - 1e-9 && found.world[a] <= clip.max[a] + 1e-9
                        });
                        assert!(inside, "{found:?} outside of {clip:?}");
                    }
                }
            }
        }
    }
    assert!(opaque > 200 && clear > 50, "{opaque} {clear}");
}

#[test]
fn the_extreme_value_is_found_where_it_is() {
    // One bright voxel, one dark one, in a gray volume.
    let field: Field = |p| {
        let is_at = |x, y, z| (p - DVec3::new(x, y, z)).length() < 0.5;
        match (is_at(5.0, 9.0, 3.0), is_at(12.0, 4.0, 6.0)) {
            (true, _) => 200.0,
            (_, true) => 1.0,
            _ => 100.0,
        }
    };
    let synthetic = Synthetic::new([10, 14, 17], [4, 8, 16], field);
    let (plain, pool) = (synthetic.scene(), synthetic.full_pool());
    for (mode, voxel) in [(Mode::Maximum, [3, 9, 5]), (Mode::Minimum, [6, 4, 12])] {
        let scene = Scene { mode, ..plain.clone() };
        let world = world_of_voxel(&scene.view, voxel);
        assert_eq!(voxel_of_world(&scene.view, world), voxel);
        let mut found = 0;
        for pixel in (0..80).flat_map(|row| (0..96).map(move |column| [column, row])) {
            let Some(pick) = pick(&scene, &pool.snapshot(), middle(pixel)).unwrap() else { continue };
            assert_eq!(pick.target, PickTarget::Extreme);
            let value = pick.drawn.unwrap().value;
            if (value - 100.0).abs() > 60.0 {
                assert_eq!(pick.voxel, voxel);
                found += 1;
            }
        }
        assert!(found > 0, "{mode:?}: the voxel is seen");
    }
}

#[test]
fn the_level_drawn_is_named_and_gaps_are_seen_through() {
    let synthetic = Synthetic { levels: 2, ..Synthetic::new([16, 16, 16], [8, 8, 8], linear) };
    let opaque =
        TransferFunction { opacity: points(&[(0.0, 1.0)]), ..TransferFunction::ramp(0.0, 90.0, 1.0) };
    let scene = Scene {
        camera: Camera::framing(&synthetic.view().bounds(), [0.0, 0.0, -1.0]).orthographic(),
        transfer: opaque,
        ..synthetic.scene()
    };
    let coarse = pool_of(&synthetic, synthetic.blocks(1));
    let found = pick(&scene, &coarse.snapshot(), [48.0, 40.0]).unwrap().unwrap();
    assert_eq!((found.drawn.unwrap().level, found.voxel[0]), (1, 15), "seen from above: the uppermost voxel");
    // Only the lower half is resident.
    let lower = pool_of(&synthetic, synthetic.blocks(0).into_iter().filter(|block| block.key.index < 4));
    let found = pick(&scene, &lower.snapshot(), [48.0, 40.0]).unwrap().unwrap();
    assert_eq!((found.drawn.unwrap().level, found.voxel[0]), (0, 8));
    assert!(found.world[2] > 7.0 && found.world[2] <= 8.0, "{found:?}");
    assert_eq!(pick(&scene, &lower.snapshot(), [0.0, 0.0]).unwrap(), None, "beside the volume");
    assert!(pick(&scene, &lower.snapshot(), [f64::NAN, 0.0]).is_err());
}

#[test]
fn labels_are_those_of_the_nearest_voxel_and_a_layer_is_met_wherever_it_is() {
    let field: Field = |p| if p.x < 4.6 { 3.0 } else { 0.0 };
    let labels = Synthetic { meaning: Meaning::Labels, ..Synthetic::new([1, 9, 11], [1, 8, 8], field) }
        .typed("|u1".parse().unwrap());
    let scene = Scene {
        camera: Camera::framing(&labels.view().bounds(), [0.0, 0.0, -1.0]).orthographic(),
        transfer: TransferFunction::labels(1.0),
        ..labels.scene()
    };
    let pool = labels.full_pool();
    for (voxel, value) in [([0, 2, 4], 3.0), ([0, 2, 5], 0.0), ([0, 8, 10], 0.0)] {
        let world = world_of_voxel(&scene.view, voxel);
        let [w, h] = [scene.size.width, scene.size.height].map(f64::from);
        let scale = h / scene.camera.height_at_target();
        let [x, y, _] = (DVec3::from(world) - DVec3::from(scene.camera.target)).to_array();
        let position = [w / 2.0 + x * scale, h / 2.0 - y * scale];
        let found = pick(&scene, &pool.snapshot(), position).unwrap().unwrap();
        assert_eq!((found.target, found.voxel), (PickTarget::Layer, voxel));
        assert_eq!(found.drawn.unwrap().value, value);
    }
}
