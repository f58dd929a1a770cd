//! Pictures drawn in rows: bit for bit those that are drawn as a whole, whatever they show and however they are divided.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use array::Affine;
use common::{Synthetic, covered, cubic, draw, points, pool_of};
use corridor_render::{
    BlockPool, Bounds, Camera, Cancel, Image, ImageSize, Isosurface, LightShares, ROW_UNIT, SampleTally,
    Scene, Slice, TransferFunction, WireBox, cast_rows, stereo,
};
use glam::DVec3;
use view::{Mode, SpaceAxis};

const SKEWED: Affine = Affine([[0.8, -0.5, 0.1, 12.0], [0.45, 0.9, 0.0, -7.0], [0.05, 0.1, 2.5, 3.0]]);
/// Odd in both directions, and not a multiple of tiles.
const SIZE: ImageSize = ImageSize { width: 75, height: 131 };

fn ball(p: DVec3) -> f64 {
    200.0 - 12.0 * p.distance(DVec3::new(10.0, 14.0, 16.0))
}

/// Draws a scene in bands of some tiles each.
fn in_bands(scene: &Scene, pool: &BlockPool, tiles: u32) -> (Image, SampleTally) {
    let (mut rgba, mut tally) = (Vec::new(), SampleTally::default());
    let rows = tiles * ROW_UNIT;
    for top in (0..scene.size.height).step_by(rows as usize) {
        let band = top..scene.size.height.min(top + rows);
        let drawn = cast_rows(scene, band.clone(), &pool.snapshot(), &Cancel::new()).unwrap();
        assert_eq!(drawn.image.size, ImageSize { width: scene.size.width, height: band.end - band.start });
        rgba.extend(drawn.image.rgba);
        tally.add(&drawn.tally);
    }
    (Image { size: scene.size, rgba }, tally)
}

/// Scenes with every feature.
fn scenes(synthetic: &Synthetic) -> Vec<(&'static str, Scene)> {
    let usual = Scene { size: SIZE, ..synthetic.scene() };
    let hollow =
        TransferFunction { opacity: points(&[(100.0, 0.0), (200.0, 0.3)]), ..usual.transfer.clone() };
    let surface = Isosurface { value: 110.0, color: [0.2, 0.9, 0.9], opacity: 0.7 };
    let slice = Slice { axis: SpaceAxis::Y, at: 9.0, oblique: None, nearest: false };
    let bounds = usual.view.bounds();
    let clip = Bounds { min: bounds.min, max: bounds.center() };
    let wires = vec![WireBox { bounds, color: [255, 0, 0] }, WireBox { bounds: clip, color: [0, 255, 0] }];
    let near = usual.camera.zoom(3.0);
    vec![
        ("usual", usual.clone()),
        ("lit", Scene { is_lit: true, transfer: hollow.clone(), ..usual.clone() }),
        (
            "dimmed",
            Scene { is_lit: true, light: LightShares::new(1.0, 0.9, 0.5), transfer: hollow, ..usual.clone() },
        ),
        ("parallel", Scene { camera: usual.camera.orthographic(), ..usual.clone() }),
        ("surfaces", Scene { surfaces: vec![surface], mode: Mode::Surfaces, ..usual.clone() }),
        ("slices", Scene { slices: vec![slice], mode: Mode::Surfaces, ..usual.clone() }),
        ("maximum", Scene { mode: Mode::Maximum, ..usual.clone() }),
        ("boxes", Scene { wires: wires.into(), clip: Some(clip), ..usual.clone() }),
        ("inside", Scene { camera: near, ..usual }),
    ]
}

#[test]
fn rows_equal_those_of_the_whole_picture() {
    for field in [cubic as common::Field, ball] {
        let synthetic = Synthetic { map: SKEWED, ..Synthetic::new([20, 33, 29], [8, 16, 16], field) };
        let pool = synthetic.full_pool();
        for (what, scene) in scenes(&synthetic) {
            let whole = draw(&scene, &pool);
            assert!(covered(&whole.image) > 0.01, "{what}: something must be seen");
            for tiles in [1, 3] {
                let (image, tally) = in_bands(&scene, &pool, tiles);
                assert!(image == whole.image, "{what}: {tiles} tiles together");
                let fidelity = tally.fidelity(&scene).unwrap();
                assert_eq!(fidelity.is_complete(), whole.fidelity.is_complete(), "{what}");
            }
        }
    }
}

#[test]
fn rows_of_a_picture_with_missing_blocks_equal_those_of_the_whole() {
    let synthetic = Synthetic { levels: 2, ..Synthetic::new([20, 33, 29], [8, 16, 16], cubic) };
    let fine = synthetic.blocks(0).into_iter().step_by(2);
    let pool = pool_of(&synthetic, synthetic.blocks(1).into_iter().chain(fine));
    let scene = Scene { size: SIZE, ..synthetic.scene() };
    let whole = draw(&scene, &pool);
    assert!(!whole.fidelity.is_complete());
    assert!(in_bands(&scene, &pool, 1).0 == whole.image);
}

#[test]
fn rows_of_a_stereo_pair_stand_side_by_side() {
    let synthetic = Synthetic::new([20, 33, 29], [8, 16, 16], cubic);
    let pool = synthetic.full_pool();
    let scene = Scene { size: SIZE, ..synthetic.scene() };
    let scenes = stereo::scenes(&scene, 0.1).unwrap();
    let whole = stereo::beside(scenes.clone().map(|eye| draw(&eye, &pool)), SIZE).unwrap().image;
    let rows = ROW_UNIT..2 * ROW_UNIT;
    let eyes = scenes.map(|eye| cast_rows(&eye, rows.clone(), &pool.snapshot(), &Cancel::new()).unwrap());
    let band = stereo::beside_rows(eyes, SIZE.width).unwrap().image;
    let width = SIZE.width as usize;
    assert!(band.rgba == whole.rgba[rows.start as usize * width..rows.end as usize * width]);
}

#[test]
fn sizes_and_rows_are_bounded() {
    let synthetic = Synthetic::new([8; 3], [8; 3], cubic);
    let pool = synthetic.full_pool();
    let scene = |width, height| Scene {
        size: ImageSize { width, height },
        camera: Camera::framing(&synthetic.view().bounds(), [0.0, 1.0, 0.0]),
        ..synthetic.scene()
    };
    let rows = |scene: &Scene, from, to| cast_rows(scene, from..to, &pool.snapshot(), &Cancel::new());
    let large = scene(16_384, 16_384);
    assert_eq!(rows(&large, 8192, 8193).unwrap().image.rgba.len(), 16_384);
    for (from, to) in [(16_383, 16_385), (5, 5), (6, 5), (0, 16_384)] {
        assert!(rows(&large, from, to).is_err(), "{from}..{to}");
    }
    assert!(rows(&scene(16_385, 1), 0, 1).is_err());
    let error = corridor_render::cast(&large, &pool.snapshot(), &Cancel::new()).unwrap_err().to_string();
    assert!(error.contains("PNG"), "{error}");
    let cancel = Cancel::new();
    cancel.cancel();
    assert_eq!(
        cast_rows(&large, 0..32, &pool.snapshot(), &cancel).unwrap_err().kind(),
        array::ErrorKind::Cancelled
    );
}
