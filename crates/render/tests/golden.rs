//! Golden images: pictures as people have seen and approved them, so that a change of what a picture looks like
//! does not pass unseen. What is right is decided by the comparisons in `picture.rs`; these files only remember.
//!
//! `CORRIDOR_BLESS=1 cargo test -p corridor-render --test golden` writes them anew, into `tests/golden`; the change
//! that does so says why the new ones are right.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::PathBuf;
use std::sync::Arc;

use array::{Affine, Meaning, Scalar};
use common::{Synthetic, cubic, draw, points, pool_of, voxel_box};
use corridor_render::{
    Background, BlockPool, GeometryFaces, GeometryLayer, GeometryShape, Scene, SceneGeometry,
    TransferFunction,
};
use geometry::{Geometry, VertexText};

/// Largest change of one 8-bit component that another processor or mathematical library may cause.
const MOST_APART: u8 = 2;
/// Share of the components that may change at all.
const MOST_CHANGED: f64 = 0.02;

/// Red, green and blue, row by row.
fn pixels(png: &[u8]) -> Vec<u8> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    pixels
}

fn check(name: &str, scene: &Scene, pool: &BlockPool) {
    let drawn = draw(scene, pool).image.to_png(Background::BLACK).unwrap();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.png"));
    if std::env::var_os("CORRIDOR_BLESS").is_some() {
        return std::fs::write(&path, &drawn).unwrap();
    }
    let golden = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (drawn, golden) = (pixels(&drawn), pixels(&golden));
    assert_eq!(drawn.len(), golden.len(), "{name}: another size");
    let apart: Vec<u8> = drawn.iter().zip(&golden).map(|(a, b)| a.abs_diff(*b)).collect();
    let changed = apart.iter().filter(|&&n| n > 0).count() as f64 / apart.len() as f64;
    let most = apart.iter().max().copied().unwrap_or(0);
    assert!(most <= MOST_APART && changed <= MOST_CHANGED, "{name}: {most} apart, {changed:.3} changed");
}

/// A map with a rotation, a shear and three spacings.
const SKEWED: Affine = Affine([[0.8, -0.5, 0.1, 12.0], [0.45, 0.9, 0.0, -7.0], [0.05, 0.1, 2.5, 3.0]]);

#[test]
fn a_haze_in_perspective() {
    let synthetic = Synthetic { map: SKEWED, ..Synthetic::new([48; 3], [16, 20, 24], cubic) };
    let scene = Scene { transfer: TransferFunction::ramp(40.0, 180.0, 0.1), ..synthetic.scene() };
    check("haze", &scene, &synthetic.full_pool());
}

#[test]
fn a_shell_cut_open() {
    let synthetic = Synthetic::new([48; 3], [16; 3], cubic);
    let mut scene = synthetic.scene();
    scene.transfer.opacity = points(&[(105.0, 0.0), (110.0, 0.7), (115.0, 0.0)]);
    scene.clip = Some(voxel_box(&scene.view, [0.0; 3], [47.0, 40.0, 30.0]));
    check("shell", &scene, &synthetic.full_pool());
}

#[test]
fn three_levels_that_meet() {
    let map = Affine::from_spacing([1.0, 1.5, 2.0], [3.0, 2.0, 1.0]);
    let synthetic = Synthetic { levels: 3, map, ..Synthetic::new([64; 3], [16; 3], cubic) };
    let scene = Scene { transfer: TransferFunction::ramp(40.0, 180.0, 0.1), ..synthetic.scene() };
    let finest = synthetic.blocks(0).into_iter().filter(|b| b.key.index % 3 == 0);
    let middle = synthetic.blocks(1).into_iter().filter(|b| b.key.index % 2 == 0);
    check("levels", &scene, &pool_of(&synthetic, finest.chain(middle).chain(synthetic.blocks(2))));
}

#[test]
fn labels_in_parallel_rays() {
    let shells = |p: glam::DVec3| (p.distance(glam::DVec3::splat(15.5)) / 3.0).floor();
    let mut synthetic = Synthetic::new([32; 3], [16; 3], shells).typed("<u2".parse().unwrap());
    synthetic.meaning = Meaning::Labels;
    let mut scene = synthetic.scene();
    scene.camera = scene.camera.orthographic();
    scene.transfer = TransferFunction::labels(0.4);
    scene.clip = Some(voxel_box(&scene.view, [0.0; 3], [31.0, 31.0, 15.0]));
    check("labels", &scene, &synthetic.full_pool());
}

#[test]
fn a_plane_with_missing_values() {
    let holes = |p: glam::DVec3| if (p.x - 20.0).hypot(p.y - 12.0) < 6.0 { -999.0 } else { 5.0 * p.x };
    let mut synthetic = Synthetic::new([1, 30, 40], [1, 16, 16], holes).typed(">i2".parse().unwrap());
    synthetic.decoding.missing = vec![Scalar::Signed(-999)];
    let mut scene = synthetic.scene();
    scene.camera = corridor_render::Camera::framing(&scene.view.bounds(), [0.0, 0.0, -1.0]).orthographic();
    scene.transfer.opacity = points(&[(0.0, 1.0)]);
    check("plane", &scene, &synthetic.full_pool());
}

/// A ring around a ball, with a line, a translucent square and a text.
fn ring_and_line() -> SceneGeometry {
    let at = |turn: u32, tube: u32| {
        let [u, v] =
            [f64::from(turn) / 48.0, f64::from(tube) / 16.0].map(|share| share * std::f64::consts::TAU);
        let out = 14.0 + 2.5 * v.cos();
        [23.5 + out * u.cos(), 23.5 + out * u.sin(), 23.5 + 2.5 * v.sin()]
    };
    let corner = |turn: u32, tube: u32| turn % 48 * 16 + tube % 16;
    let cells = (0..48).flat_map(|turn| (0..16).map(move |tube| (turn, tube)));
    let faces = cells.clone().flat_map(|(turn, tube)| {
        let [a, b] = [corner(turn, tube), corner(turn + 1, tube)];
        let [c, d] = [corner(turn + 1, tube + 1), corner(turn, tube + 1)];
        [[a, b, c], [a, c, d]]
    });
    let ring = Geometry {
        positions: cells.map(|(turn, tube)| at(turn, tube)).collect(),
        triangles: faces.collect(),
        ..Geometry::default()
    };
    let square = Geometry {
        positions: vec![[4.0, 10.0, 4.0], [44.0, 10.0, 4.0], [44.0, 10.0, 44.0], [4.0, 10.0, 44.0]],
        triangles: vec![[0, 1, 2], [0, 2, 3]],
        ..Geometry::default()
    };
    let line = Geometry {
        positions: vec![[-4.0, -4.0, -4.0], [50.0, 50.0, 50.0], [23.5, 4.0, 44.0]],
        lines: vec![[0, 1]],
        points: vec![2],
        texts: vec![VertexText { vertex: 2, text: "north".into() }],
        ..Geometry::default()
    };
    let layer = |geometry: Geometry, color: [u8; 3], opacity: f32, size_pixels: f32| GeometryLayer {
        shape: Arc::new(GeometryShape::new(Arc::new(geometry))),
        faces: GeometryFaces::Solid,
        opacity,
        color,
        vertex_colors: None,
        size_pixels,
    };
    let layers = [
        layer(ring, [220, 60, 40], 1.0, 2.0),
        layer(square, [80, 200, 90], 0.4, 2.0),
        layer(line, [250, 230, 60], 1.0, 3.0),
    ];
    SceneGeometry { layers: layers.into(), cut: None }
}

#[test]
fn geometry_through_a_ball() {
    let ball = |p: glam::DVec3| 24.0 - p.distance(glam::DVec3::splat(23.5));
    let synthetic = Synthetic::new([48; 3], [16; 3], ball);
    let mut scene = Scene { geometry: ring_and_line(), is_lit: true, ..synthetic.scene() };
    scene.transfer = TransferFunction { color_map: "gray".into(), ..TransferFunction::ramp(0.0, 24.0, 0.5) };
    scene.transfer.opacity = points(&[(8.0, 0.0), (10.0, 0.6)]);
    scene.size = corridor_render::ImageSize { width: 240, height: 200 };
    check("geometry", &scene, &synthetic.full_pool());
}
