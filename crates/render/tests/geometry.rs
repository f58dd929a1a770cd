//! Geometry in pictures of a volume: before and behind it, in a haze, translucent, on slices, with colors of its own.

mod common;

use std::sync::Arc;

use common::{Synthetic, draw, points};
use corridor_render::{
    Camera, GeometryCut, GeometryFaces, GeometryLayer, GeometryShape, Image, ImageSize, Isosurface,
    LightShares, Scene, SceneGeometry, Slice, TransferFunction,
};
use geometry::Geometry;
use glam::DVec3;
use view::{Mode, SpaceAxis};

fn ball(p: DVec3) -> f64 {
    20.0 - p.distance(DVec3::splat(15.5))
}

fn even(_: DVec3) -> f64 {
    100.0
}

/// A square across y, so large about the volume's middle.
fn square(y: f64, half: f64) -> Geometry {
    let (low, high) = (15.5 - half, 15.5 + half);
    let positions = vec![[low, y, low], [high, y, low], [high, y, high], [low, y, high]];
    Geometry { positions, triangles: vec![[0, 1, 2], [0, 2, 3]], ..Geometry::default() }
}

fn layer(geometry: Geometry) -> GeometryLayer {
    GeometryLayer {
        shape: Arc::new(GeometryShape::new(Arc::new(geometry))),
        faces: GeometryFaces::Solid,
        opacity: 1.0,
        color: [255, 0, 0],
        vertex_colors: None,
        size_pixels: 2.0,
    }
}

/// Seen along y, a pixel for each voxel's half.
fn scene(synthetic: &Synthetic, layers: Vec<GeometryLayer>) -> Scene {
    let camera = Camera::framing(&synthetic.view().bounds(), [0.0, 1.0, 0.0]);
    Scene {
        camera: camera.orthographic(),
        size: ImageSize { width: 100, height: 100 },
        // Flat colors, which can be told.
        light: LightShares::of_strength(0.0),
        geometry: SceneGeometry { layers: layers.into(), cut: None },
        ..synthetic.scene()
    }
}

fn drawn(synthetic: &Synthetic, scene: &Scene) -> Image {
    draw(scene, &synthetic.full_pool()).image
}

fn red(image: &Image) -> usize {
    image.rgba.iter().filter(|[r, g, b, _]| *r > 0.3 && g.max(*b) < 0.5 * r).count()
}

fn middle(image: &Image) -> [f32; 4] {
    image.rgba[50 * 100 + 50]
}

#[test]
fn a_square_through_an_opaque_ball_shows_what_lies_outside_of_the_ball() {
    let synthetic = Synthetic::new([32; 3], [16; 3], ball);
    let surface = Isosurface { value: 10.0, color: [0.2, 0.9, 0.9], opacity: 1.0 };
    for is_perspective in [false, true] {
        let of = |y: f64| {
            let mut scene = Scene {
                surfaces: vec![surface],
                mode: Mode::Surfaces,
                ..scene(&synthetic, vec![layer(square(y, 14.0))])
            };
            if is_perspective {
                scene.camera = Camera::framing(&scene.view.bounds(), [0.0, 1.0, 0.0]);
            }
            (red(&drawn(&synthetic, &scene)), middle(&drawn(&synthetic, &scene)))
        };
        let [before, through, behind] = [of(3.0), of(15.5), of(29.0)];
        assert!(
            before.1[0] > 0.9 && through.1[0] < 0.4 && behind.1[0] < 0.4,
            "{before:?} {through:?} {behind:?}"
        );
        assert!(
            before.0 > through.0 && through.0 > 100 && behind.0 > 100,
            "{before:?} {through:?} {behind:?}"
        );
    }
}

#[test]
fn a_haze_before_a_square_dims_it_and_nothing_is_seen_behind() {
    let synthetic = Synthetic::new([32; 3], [16; 3], even);
    let of = |opacity: f64, layers: Vec<GeometryLayer>| {
        let transfer = TransferFunction {
            opacity: points(&[(0.0, opacity), (200.0, opacity)]),
            ..TransferFunction::ramp(0.0, 200.0, 0.5)
        };
        middle(&drawn(&synthetic, &Scene { transfer, ..scene(&synthetic, layers) }))
    };
    let haze = of(0.03, vec![]);
    let through = (1.0 - haze[3]).sqrt();
    for opacity in [1.0, 0.4] {
        let half_opaque = GeometryLayer { opacity, ..layer(square(15.5, 6.0)) };
        let (alone, both) = (of(0.0, vec![half_opaque.clone()]), of(0.03, vec![half_opaque]));
        assert!((alone[3] - opacity).abs() < 0.01, "{alone:?}");
        for part in 0..4 {
            // The square lies in the middle: the same haze is before and behind it.
            let half = haze[part] / haze[3] * (1.0 - through);
            let expected = half + through * (alone[part] + (1.0 - alone[3]) * half);
            assert!(
                (both[part] - expected).abs() < 0.008,
                "{both:?} {alone:?} {haze:?}: {expected} at {part}"
            );
        }
    }
}

#[test]
fn geometry_is_drawn_beside_the_volume_before_slices_and_before_extreme_values() {
    let synthetic = Synthetic::new([32; 3], [16; 3], ball);
    let frame = || GeometryLayer { faces: GeometryFaces::Wireframe, ..layer(square(15.5, 18.0)) };
    assert!(red(&drawn(&synthetic, &scene(&synthetic, vec![frame()]))) > 200, "rays that miss the volume");
    let sliced = |y, cut| {
        let slices = vec![Slice::across(SpaceAxis::Y, 15.0)];
        let transfer =
            TransferFunction { color_map: "gray".into(), ..TransferFunction::ramp(0.0, 20.0, 0.5) };
        let mut scene = Scene {
            slices,
            transfer,
            mode: Mode::Surfaces,
            ..scene(&synthetic, vec![layer(square(y, 8.0))])
        };
        if cut {
            scene.geometry.cut = GeometryCut::of_picture(&scene.view, &scene.slices, &scene.camera);
            assert!(scene.geometry.cut.is_some());
        }
        red(&drawn(&synthetic, &scene))
    };
    assert!(sliced(3.0, false) > 500 && sliced(29.0, false) == 0);
    assert_eq!(sliced(3.0, true), 0, "away from the plane of the picture");
    let largest = Scene { mode: Mode::Maximum, ..scene(&synthetic, vec![layer(square(29.0, 8.0))]) };
    assert!(red(&drawn(&synthetic, &largest)) > 500, "such a picture has no depth");
}

#[test]
fn colors_by_vertex_are_interpolated() {
    let synthetic = Synthetic::new([32; 3], [16; 3], even);
    let colors: Arc<[[u8; 3]]> = [[0, 0, 0], [0, 0, 0], [0, 200, 0], [0, 200, 0]].into();
    let own = GeometryLayer { vertex_colors: Some(colors), ..layer(square(1.0, 10.0)) };
    let transfer = TransferFunction {
        opacity: points(&[(0.0, 0.0), (200.0, 0.0)]),
        ..TransferFunction::ramp(0.0, 200.0, 0.5)
    };
    let image = drawn(&synthetic, &Scene { transfer, ..scene(&synthetic, vec![own]) });
    let [r, g, b, a] = middle(&image);
    assert!((g - 100.0 / 255.0).abs() < 0.1 && r.max(b) < 0.1 && a > 0.99, "{r} {g} {b} {a}");
}
