//! Slabs: seen from where they were cast they are the plain picture; nearby they are near the true one.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use array::{Affine, ErrorKind, Meaning};
use common::{Synthetic, covered, cubic, difference, draw, points, pool_of, rms, voxel_box};
use corridor_render::{
    Bounds, Camera, Cancel, Cutting, Image, ImageSize, Isosurface, Rect, Scene, SlabRequest, Slabs,
    TransferFunction, best_axis, cast_slabs,
};
use glam::DVec3;
use view::{Mode, SpaceAxis};

/// Rounding of 32 slabs to 8 bits, the worst component and the root of the mean square, 255ths: half of one each, in either
/// direction, so that the sum is like a throw of as many coins.
const ROUNDING: [f64; 2] = [8.0, 1.25];

/// A map with a rotation, a shear and three spacings.
const SKEWED: Affine = Affine([[0.8, -0.5, 0.1, 12.0], [0.45, 0.9, 0.0, -7.0], [0.05, 0.1, 2.5, 3.0]]);

/// Request for slabs that give the plain picture: every pixel, no guard band, and all slabs behind opaque
/// ones.
fn exact(camera: Camera, cutting: Cutting, count: u32) -> SlabRequest {
    SlabRequest { cutting, count, camera, reduction: 1, guard: 0.0, behind: count }
}

fn slabs_of(scene: &Scene, synthetic: &Synthetic, request: &SlabRequest) -> Slabs {
    cast_slabs(scene, request, &synthetic.full_pool().snapshot(), &Cancel::new()).unwrap().0
}

fn expect_near(found: &Image, expected: &Image, what: &str) {
    let (worst, typical) = (difference(found, expected), rms(found, expected));
    assert!(worst <= ROUNDING[0] && typical <= ROUNDING[1], "{what}: worst {worst}, rms {typical}");
}

/// Waves with empty space between.
fn waves(p: DVec3) -> f64 {
    (100.0 + 130.0 * (0.35 * p.x).sin() * (0.3 * p.y).cos() * (0.25 * p.z).sin()).max(0.0)
}

/// Parallel to the image, and across the axis that is seen most nearly from the front.
fn cuttings(scene: &Scene) -> [Cutting; 2] {
    [Cutting::Planes, Cutting::Axis(best_axis(&scene.view, &scene.camera, None))]
}

#[test]
fn from_their_own_camera_slabs_are_the_plain_picture() {
    for (name, list) in [
        ("haze", [(0.0, 0.0), (230.0, 0.05)].as_slice()),
        ("dense", &[(120.0, 0.0), (160.0, 0.5)]),
        ("opaque", &[(150.0, 0.0), (160.0, 1.0)]),
    ] {
        for map in [Affine::IDENTITY, SKEWED] {
            let synthetic = Synthetic { map, ..Synthetic::new([30, 37, 41], [8, 16, 16], waves) };
            let scene = synthetic.scene();
            let transfer = TransferFunction { opacity: points(list), ..scene.transfer.clone() };
            let perspective = Scene { transfer, ..scene };
            let toward = |direction| Camera::framing(&perspective.view.bounds(), direction);
            let along_x = Scene { camera: toward([1.0, 0.3, -0.2]), ..perspective.clone() };
            let along_z = Scene { camera: toward([0.3, -0.2, 1.0]).orthographic(), ..perspective.clone() };
            for scene in [along_x, along_z, Scene { is_lit: true, ..perspective }] {
                let plain = draw(&scene, &synthetic.full_pool()).image;
                assert!(covered(&plain) > 0.05, "something must be seen");
                for cutting in cuttings(&scene) {
                    let slabs = slabs_of(&scene, &synthetic, &exact(scene.camera, cutting, 32));
                    let what =
                        format!("{name}, {cutting:?}, lit {}, {:?}", scene.is_lit, scene.camera.projection);
                    expect_near(&slabs.draw(&scene.camera, scene.size).unwrap(), &plain, &what);
                }
            }
        }
    }
}

#[test]
fn labels_gaps_clips_and_levels_are_cut_as_they_are_drawn() {
    let base = Synthetic::new([32; 3], [8, 16, 16], waves);
    let labels = Synthetic { meaning: Meaning::Labels, ..base.clone().typed("|u1".parse().unwrap()) };
    let of_labels = Scene { transfer: TransferFunction::labels(0.1), ..labels.scene() };
    let clip = voxel_box(&base.view(), [3.3, 8.0, 5.5], [20.2, 30.0, 25.0]);
    let clipped = Scene { clip: Some(clip), ..base.scene() };
    // Half of the finest blocks, coarser ones behind, and one that has no data at all.
    let levels = Synthetic { levels: 2, ..base.clone() };
    let mut blocks: Vec<_> = levels.blocks(0).into_iter().step_by(2).chain(levels.blocks(1)).collect();
    blocks.remove(1);
    let cases = [
        ("labels", of_labels, labels.full_pool()),
        ("clip", clipped, base.full_pool()),
        ("levels", levels.scene(), pool_of(&levels, blocks)),
    ];
    for (name, scene, pool) in cases {
        let plain = draw(&scene, &pool);
        for cutting in cuttings(&scene) {
            let request = exact(scene.camera, cutting, 32);
            let (slabs, fidelity) = cast_slabs(&scene, &request, &pool.snapshot(), &Cancel::new()).unwrap();
            expect_near(
                &slabs.draw(&scene.camera, scene.size).unwrap(),
                &plain.image,
                &format!("{name}, {cutting:?}"),
            );
            assert_eq!(fidelity.is_complete(), plain.fidelity.is_complete(), "{name}");
        }
    }
}

#[test]
fn the_same_request_gives_the_same_slabs() {
    let synthetic = Synthetic::new([24; 3], [8, 16, 16], cubic);
    let scene = synthetic.scene();
    let request = SlabRequest::planes(scene.camera.orbit(0.1, 0.0), 32);
    assert_eq!(slabs_of(&scene, &synthetic, &request), slabs_of(&scene, &synthetic, &request));
}

#[test]
fn where_nothing_is_seen_there_are_no_texels_and_all_that_is_seen_lies_between_the_planes() {
    let synthetic =
        Synthetic::new([32; 3], [8; 3], |p| if (12.0..20.0).contains(&p.y) { 200.0 } else { 0.0 });
    let scene = synthetic.scene();
    let nothing = TransferFunction { opacity: points(&[(0.0, 0.0)]), ..scene.transfer.clone() };
    let hidden = Scene { transfer: nothing, ..scene.clone() };
    let empty = slabs_of(&hidden, &synthetic, &SlabRequest::planes(scene.camera, 32));
    assert_eq!((empty.slabs.len(), empty.texels()), (32, 0));
    assert_eq!(covered(&empty.draw(&scene.camera, scene.size).unwrap()), 0.0);

    let wall = TransferFunction { opacity: points(&[(100.0, 0.0), (150.0, 0.3)]), ..scene.transfer.clone() };
    let camera = Camera::framing(&scene.view.bounds(), [0.0, 1.0, 0.0]);
    let scene = Scene { transfer: wall, camera, ..scene };
    let slabs = slabs_of(&scene, &synthetic, &exact(camera, Cutting::Axis(SpaceAxis::Y), 16));
    assert_eq!(slabs.normal, [0.0, 1.0, 0.0]);
    let [first, end] = [slabs.borders[0], slabs.borders[16]];
    // Cells of 8 voxels tell where something is, and half a voxel around them.
    assert!((7.0..=12.0).contains(&first) && (20.0..=25.0).contains(&end), "{first} {end}");
    for (number, slab) in slabs.slabs.iter().enumerate() {
        let is_wall = (10.5..=20.5).contains(&slabs.middle(number));
        assert!(is_wall || slab.rect.is_empty(), "slab {number} at {}", slabs.middle(number));
        let inner = Rect { left: 1, top: 1, width: 94, height: 78 };
        assert_eq!(slab.rect.intersection(&inner), slab.rect, "cropped");
    }
}

#[test]
fn behind_what_is_opaque_as_many_slabs_are_drawn_as_asked_for() {
    let synthetic = Synthetic::new([32; 3], [8; 3], |_| 200.0);
    let scene = synthetic.scene();
    let solid = TransferFunction { opacity: points(&[(100.0, 1.0)]), ..scene.transfer.clone() };
    let camera = Camera::framing(&scene.view.bounds(), [0.0, 1.0, 0.0]).orthographic();
    let scene = Scene { transfer: solid, camera, ..scene };
    for behind in [0, 1, 5, 99] {
        let request = SlabRequest { behind, ..exact(camera, Cutting::Planes, 8) };
        let drawn: Vec<bool> =
            slabs_of(&scene, &synthetic, &request).slabs.iter().map(|slab| !slab.rect.is_empty()).collect();
        let expected: Vec<bool> = (0..8).map(|slab| slab <= behind).collect();
        assert_eq!(drawn, expected, "{behind} behind");
    }
}

#[test]
fn when_the_camera_turns_slabs_are_nearer_to_the_truth_than_the_last_picture() {
    let synthetic = Synthetic::new([48; 3], [16; 3], waves);
    let scene = synthetic.scene();
    let opacity = points(&[(60.0, 0.0), (230.0, 0.1)]);
    let scene = Scene { transfer: TransferFunction { opacity, ..scene.transfer.clone() }, ..scene };
    let pool = synthetic.full_pool();
    for (count, most) in [(1, f64::INFINITY), (32, 6.0)] {
        let slabs = slabs_of(&scene, &synthetic, &exact(scene.camera, Cutting::Planes, count));
        for camera in [scene.camera.orbit(0.14, 0.0), scene.camera.orbit(0.0, -0.14), scene.camera.zoom(1.1)]
        {
            let truth = draw(&Scene { camera, ..scene.clone() }, &pool).image;
            let [near, last] = [slabs.draw(&camera, scene.size).unwrap(), draw(&scene, &pool).image];
            let apart = [rms(&near, &truth), rms(&last, &truth)];
            assert!(apart[0] < most && (count == 1 || apart[0] < apart[1] / 2.0), "{count}: {apart:?}");
        }
    }
}

#[test]
fn the_guard_band_holds_what_a_pan_brings_into_sight() {
    let synthetic = Synthetic::new([32; 3], [16; 3], cubic);
    let mut scene = synthetic.scene();
    // Near enough for the volume to fill the picture and more.
    scene.camera = scene.camera.zoom(3.0);
    let panned = scene.camera.pan(0.08, 0.0);
    let truth = draw(&Scene { camera: panned, ..scene.clone() }, &synthetic.full_pool()).image;
    let missing = |guard: f64| {
        let request = SlabRequest { guard, ..exact(scene.camera, Cutting::Planes, 32) };
        let drawn = slabs_of(&scene, &synthetic, &request).draw(&panned, scene.size).unwrap();
        let pairs = drawn.rgba.iter().zip(&truth.rgba);
        pairs.filter(|(drawn, truth)| drawn[3] < truth[3] / 2.0).count()
    };
    assert!(missing(0.0) > 80, "{} pixels", missing(0.0));
    assert_eq!(missing(0.1), 0);
}

#[test]
fn half_resolution_is_a_quarter_of_the_texels() {
    let synthetic = Synthetic::new([32; 3], [16; 3], cubic);
    let scene = synthetic.scene();
    let request = exact(scene.camera, Cutting::Planes, 8);
    let [full, half] =
        [1, 2].map(|reduction| slabs_of(&scene, &synthetic, &SlabRequest { reduction, ..request }));
    assert_eq!((full.size, half.size), (scene.size, ImageSize { width: 48, height: 40 }));
    let share = half.texels() as f64 / full.texels() as f64;
    assert!((0.2..0.3).contains(&share), "{share}");
    let apart =
        rms(&half.draw(&scene.camera, scene.size).unwrap(), &draw(&scene, &synthetic.full_pool()).image);
    assert!(apart < 4.0, "{apart}");
}

#[test]
fn the_axis_is_the_nearest_one_and_does_not_tremble() {
    let view = Synthetic::new([8; 3], [8; 3], cubic).view();
    let looking = |degrees: f64| {
        let (y, x) = degrees.to_radians().sin_cos();
        Camera::framing(&Bounds { min: [0.0; 3], max: [1.0; 3] }, [x, y, 0.0])
    };
    assert_eq!(best_axis(&view, &looking(10.0), None), SpaceAxis::X);
    assert_eq!(best_axis(&view, &looking(80.0), None), SpaceAxis::Y);
    assert_eq!(best_axis(&view, &looking(190.0), None), SpaceAxis::X, "from behind");
    // Turning there and back switches once each way, not where it switched before.
    let mut axis = SpaceAxis::X;
    let mut switched = Vec::new();
    for degrees in (0..=90).chain((0..90).rev()) {
        let next = best_axis(&view, &looking(f64::from(degrees)), Some(axis));
        if axis != next {
            switched.push(degrees);
        }
        axis = next;
    }
    assert_eq!(switched, [48, 42]);
}

#[test]
fn slabs_across_two_axes_show_the_same_from_their_own_camera() {
    let synthetic = Synthetic::new([40; 3], [16; 3], waves);
    let mut scene = synthetic.scene();
    // Between two axes, where the switch is.
    scene.camera = Camera::framing(&scene.view.bounds(), [0.68, 0.73, -0.1]);
    let of = |axis| slabs_of(&scene, &synthetic, &exact(scene.camera, Cutting::Axis(axis), 24));
    let own =
        [of(SpaceAxis::X), of(SpaceAxis::Y)].map(|slabs| slabs.draw(&scene.camera, scene.size).unwrap());
    expect_near(&own[0], &own[1], "from the camera of the switch");
}

#[test]
fn eyes_inside_and_flat_volumes_have_slabs_too() {
    let synthetic = Synthetic::new([32; 3], [16; 3], cubic);
    let mut inside = synthetic.scene();
    inside.camera.eye = [16.0, 10.0, 16.0];
    inside.camera.target = [20.0, 30.0, 12.0];
    let flat = Synthetic::new([1, 40, 40], [1, 16, 16], cubic);
    for (synthetic, scene) in [(&synthetic, inside), (&flat, flat.scene())] {
        let plain = draw(&scene, &synthetic.full_pool()).image;
        for cutting in cuttings(&scene) {
            let slabs = slabs_of(&scene, synthetic, &exact(scene.camera, cutting, 16));
            let drawn = slabs.draw(&scene.camera, scene.size).unwrap();
            assert!(drawn.rgba.as_flattened().iter().all(|v| v.is_finite()));
            if cutting == Cutting::Planes {
                expect_near(&drawn, &plain, "planes");
            }
        }
    }
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let synthetic = Synthetic::new([8; 3], [8; 3], cubic);
    let (scene, pool) = (synthetic.scene(), synthetic.full_pool());
    let kind = |scene: &Scene, request: SlabRequest| {
        cast_slabs(scene, &request, &pool.snapshot(), &Cancel::new()).map(drop).map_err(|e| e.kind())
    };
    let request = SlabRequest::planes(scene.camera, 32);
    assert_eq!(kind(&scene, request), Ok(()));
    for wrong in [
        SlabRequest { count: 0, ..request },
        SlabRequest { count: 65, ..request },
        SlabRequest { reduction: 0, ..request },
        SlabRequest { guard: f64::NAN, ..request },
        SlabRequest { guard: -0.1, ..request },
        SlabRequest { camera: Camera { eye: scene.camera.target, ..scene.camera }, ..request },
    ] {
        assert_eq!(kind(&scene, wrong), Err(ErrorKind::Invalid), "{wrong:?}");
    }
    let large = Scene { size: ImageSize { width: 4000, height: 4000 }, ..scene.clone() };
    assert_eq!(kind(&large, SlabRequest { reduction: 1, count: 64, ..request }), Err(ErrorKind::Invalid));
    let surface = Isosurface { value: 100.0, color: [1.0; 3], opacity: 1.0 };
    for unfit in
        [Scene { surfaces: vec![surface], ..scene.clone() }, Scene { mode: Mode::Maximum, ..scene.clone() }]
    {
        assert_eq!(kind(&unfit, request), Err(ErrorKind::Unsupported));
    }
    let cancel = Cancel::new();
    cancel.cancel();
    let stopped = cast_slabs(&scene, &request, &pool.snapshot(), &cancel).map(drop);
    assert_eq!(stopped.map_err(|e| e.kind()), Err(ErrorKind::Cancelled));
    let slabs = slabs_of(&scene, &synthetic, &request);
    let torn = Slabs { borders: slabs.borders.iter().rev().copied().collect(), ..slabs };
    assert_eq!(torn.draw(&scene.camera, scene.size).map(drop).map_err(|e| e.kind()), Err(ErrorKind::Corrupt));
}
