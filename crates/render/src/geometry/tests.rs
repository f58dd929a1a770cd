//! Samples compared with rays that meet each triangle, segment and point by brute force.

use std::sync::Arc;

use geometry::{Geometry, VertexText};
use glam::{DVec2, DVec3};
use proptest::prelude::*;

use super::samples::PLACES;
use super::*;
use crate::Camera;

const SIZE: ImageSize = ImageSize { width: 24, height: 37 };

fn camera(is_perspective: bool) -> Camera {
    let camera = Camera::framing(&Bounds { min: [-1.0; 3], max: [1.0; 3] }, [0.3, -1.0, 0.4]);
    if is_perspective { camera } else { camera.orthographic() }
}

fn layer(geometry: Geometry) -> GeometryLayer {
    GeometryLayer {
        shape: Arc::new(GeometryShape::new(Arc::new(geometry))),
        faces: GeometryFaces::Solid,
        opacity: 1.0,
        color: [200, 100, 50],
        vertex_colors: None,
        size_pixels: 3.0,
    }
}

fn drawn(layers: Vec<GeometryLayer>, camera: &Camera, clip: Option<Bounds>) -> (Vec<Fragment>, Lens) {
    let lens = Lens::new(camera, SIZE).unwrap();
    let geometry = SceneGeometry { layers: layers.into(), cut: None };
    let near = NEAR_SHARE * DVec3::from(camera.eye).distance(camera.target.into());
    let light = LightShares::default();
    let picture = GeometryPicture { geometry: &geometry, size: SIZE, clip, light, near };
    (fragments_of(&picture, &lens, &(0..picture.size.height)), lens)
}

/// Depth at which the ray of a sample meets the nearest triangle.
fn depth_by_ray(geometry: &Geometry, lens: &Lens, near: f64, clip: Option<Bounds>, at: DVec2) -> Option<f64> {
    let across = (2.0 * at.x / f64::from(SIZE.width) - 1.0) * lens.half[0] + lens.middle;
    let upward = (1.0 - 2.0 * at.y / f64::from(SIZE.height)) * lens.half[1];
    let aside = lens.right * across + lens.up * upward;
    let (origin, along) =
        if lens.perspective { (lens.eye, lens.forward + aside) } else { (lens.eye + aside, lens.forward) };
    let met = geometry.triangles.iter().filter_map(|triangle| {
        let [a, b, c] = triangle.map(|corner| DVec3::from(geometry.positions[corner as usize]));
        // Moeller and Trumbore, 1997.
        let (first, second) = (b - a, c - a);
        let p = along.cross(second);
        let scale = first.dot(p);
        let u = (origin - a).dot(p) / scale;
        let q = (origin - a).cross(first);
        let v = along.dot(q) / scale;
        let depth = second.dot(q) / scale;
        let is_inside = u >= 0.0 && v >= 0.0 && u + v <= 1.0 && (!lens.perspective || depth > near);
        let is_drawn = clip.is_none_or(|clip| scan::holds(&clip, origin + along * depth));
        (is_inside && is_drawn).then_some(depth)
    });
    met.min_by(f64::total_cmp)
}

fn soup() -> impl Strategy<Value = Geometry> {
    let corner = prop::array::uniform3(-1.5..1.5f64);
    prop::collection::vec(prop::array::uniform3(corner), 1..12).prop_map(|triangles| Geometry {
        triangles: (0..u32::try_from(triangles.len()).unwrap())
            .map(|n| [3 * n, 3 * n + 1, 3 * n + 2])
            .collect(),
        positions: triangles.into_iter().flatten().collect(),
        ..Geometry::default()
    })
}

proptest! {
    #[test]
    fn triangles_cover_what_rays_meet_at_the_same_depth(
        geometry in soup(),
        is_perspective: bool,
        is_clipped: bool,
        step in 0.0..3.0f64,
    ) {
        let mut camera = camera(is_perspective);
        // Into the triangles, so that some are behind the eye.
        camera.eye = (DVec3::from(camera.eye) - DVec3::from(camera.eye) * step / 4.0).into();
        let clip = is_clipped.then_some(Bounds { min: [-0.7; 3], max: [0.9; 3] });
        let (fragments, lens) = drawn(vec![layer(geometry.clone())], &camera, clip);
        let near = NEAR_SHARE * DVec3::from(camera.eye).distance(camera.target.into());
        let mut unlike = 0;
        for pixel in 0..SIZE.width * SIZE.height {
            let corner = DVec2::new((pixel % SIZE.width).into(), (pixel / SIZE.width).into());
            let mut depths: Vec<f64> =
                PLACES.iter().filter_map(|&place| depth_by_ray(&geometry, &lens, near, clip, corner + DVec2::from(place))).collect();
            depths.sort_by(f64::total_cmp);
            let own: Vec<&Fragment> = fragments.iter().filter(|fragment| fragment.pixel == pixel).collect();
            // Together they absorb the share of the samples that are covered.
            let through: f64 = own.iter().map(|fragment| 1.0 - f64::from(fragment.alpha) / 255.0).product();
            let expected = 1.0 - depths.len() as f64 / PLACES.len() as f64;
            let is_nearest_alike = match (own.first(), depths.first()) {
                (Some(fragment), Some(depth)) => (f64::from(fragment.depth) - depth).abs() < 1e-4 * depth.abs().max(1.0),
                (None, None) => true,
                _ => false,
            };
            // Rounding may decide otherwise at an edge that goes through a sample.
            unlike += u32::from(!is_nearest_alike || (through - expected).abs() > 0.01);
        }
        prop_assert!(unlike <= 2, "{} of {} pixels differ", unlike, SIZE.width * SIZE.height);
    }
}

#[test]
fn shared_edges_leave_no_gap() {
    // A fan of thin triangles around the middle of the picture.
    let rim = |n: u32| {
        let angle = f64::from(n) / 60.0 * std::f64::consts::TAU;
        [3.0 * angle.cos(), 0.0, 3.0 * angle.sin()]
    };
    let positions = std::iter::once([0.0; 3]).chain((0..60).map(rim)).collect();
    let triangles = (0..60).map(|n| [0, 1 + n, 1 + (n + 1) % 60]).collect();
    let fan = Geometry { positions, triangles, ..Geometry::default() };
    for is_perspective in [false, true] {
        let (fragments, _) = drawn(vec![layer(fan.clone())], &camera(is_perspective), None);
        assert_eq!(fragments.len(), (SIZE.width * SIZE.height) as usize);
        assert!(fragments.iter().all(|fragment| fragment.alpha == 255));
    }
}

#[test]
fn high_primitives_are_kept_once_and_drawn_in_all_bands() {
    // Upright stripes next to one another, as high as the picture, and a small triangle behind each.
    const STRIPES: u32 = 24;
    let size = ImageSize { width: 96, height: 40 * BAND_ROWS };
    let corner = |n: u32, z: f64| [f64::from(n) / f64::from(STRIPES) * 2.0 - 1.0, 0.0, z];
    let positions = (0..=STRIPES).flat_map(|n| [corner(n, -9.0), corner(n, 9.0)]).collect::<Vec<_>>();
    let stripes =
        (0..STRIPES).flat_map(|n| [[2 * n, 2 * n + 1, 2 * n + 2], [2 * n + 1, 2 * n + 3, 2 * n + 2]]);
    let mut stripes = Geometry { positions, triangles: stripes.collect(), ..Geometry::default() };
    let behind = u32::try_from(stripes.positions.len()).unwrap();
    stripes.positions.extend([[0.0, 0.5, 0.0], [0.01, 0.5, 0.0], [0.0, 0.5, 0.01]]);
    stripes.triangles.push([behind, behind + 1, behind + 2]);
    let camera = Camera { eye: [0.0, -4.0, 0.0], target: [0.0; 3], up: [0.0, 0.0, 1.0], ..camera(false) };
    let lens = Lens::new(&camera, size).unwrap();
    let geometry = SceneGeometry { layers: vec![layer(stripes)].into(), cut: None };
    let light = LightShares::default();
    let picture = GeometryPicture { geometry: &geometry, size, clip: None, light, near: 0.0 };
    let projected = ProjectedLayer::new(&geometry.layers[0], &picture, &lens);
    let bins = projected.bins(size);
    assert!(bins.kept() <= 2 * STRIPES as usize + 2, "{} are kept", bins.kept());
    assert!((0..40).all(|band| bins.are_any(band)));
    let fragments = fragments_of(&picture, &lens, &(0..size.height));
    assert_eq!(fragments.len(), (size.width * size.height) as usize);
    assert!(fragments.iter().all(|fragment| fragment.alpha == 255 && (fragment.depth - 4.0).abs() < 1e-4));
}

#[test]
fn lines_and_points_are_as_wide_as_asked_and_hide_what_is_behind() {
    let positions = vec![[-5.0, 0.0, 0.0], [5.0, 0.0, 0.0], [0.0, -0.5, 0.0]];
    let cross = Geometry { positions, lines: vec![[0, 1]], points: vec![2], ..Geometry::default() };
    let camera = Camera { eye: [0.0, -4.0, 0.0], target: [0.0; 3], up: [0.0, 0.0, 1.0], ..camera(false) };
    let wide = |size_pixels: f32| {
        let (fragments, _) =
            drawn(vec![GeometryLayer { size_pixels, ..layer(cross.clone()) }], &camera, None);
        fragments.iter().map(|fragment| f64::from(fragment.alpha) / 255.0).sum::<f64>()
    };
    let [thin, thick] = [wide(2.0), wide(6.0)];
    // The point covers the line where they meet.
    let expected = |d: f64| 24.0 * d + std::f64::consts::PI * d * d / 4.0 - d * d;
    assert!((thin - expected(2.0)).abs() < 6.0 && (thick - expected(6.0)).abs() < 15.0, "{thin} {thick}");
    let (fragments, _) = drawn(vec![layer(cross.clone())], &camera, None);
    let nearest = fragments.iter().map(|fragment| fragment.depth).fold(f32::INFINITY, f32::min);
    assert!((nearest - 3.5).abs() < 0.2, "the point: {nearest}");
}

#[test]
fn surfaces_are_drawn_where_they_cross_the_plane_of_a_picture() {
    // A tetrahedron; the plane y = 0 cuts it in a triangle.
    let positions = vec![[0.0, -1.0, 0.0], [1.0, 1.0, -1.0], [-1.0, 1.0, -1.0], [0.0, 1.0, 1.0]];
    let geometry = Geometry {
        positions,
        triangles: vec![[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]],
        texts: vec![VertexText { vertex: 0, text: "away".into() }],
        ..Geometry::default()
    };
    let camera = Camera { eye: [0.0, -4.0, 0.0], target: [0.0; 3], up: [0.0, 0.0, 1.0], ..camera(false) };
    let lens = Lens::new(&camera, SIZE).unwrap();
    let cut = Some(GeometryCut { normal: DVec3::Y, offset: 0.0, reach: 0.1 });
    let scene =
        SceneGeometry { layers: vec![GeometryLayer { size_pixels: 1.0, ..layer(geometry) }].into(), cut };
    let picture = GeometryPicture {
        geometry: &scene,
        size: SIZE,
        clip: None,
        light: LightShares::default(),
        near: 0.0,
    };
    let fragments = fragments_of(&picture, &lens, &(0..picture.size.height));
    let pixels: f64 = fragments.iter().map(|fragment| f64::from(fragment.alpha) / 255.0).sum();
    let per_world = f64::from(SIZE.height) / 2.0 / lens.half[1];
    let around = (1.0 + 2.0 * (0.5f64 * 0.5 + 1.0).sqrt()) * per_world;
    assert!((pixels - around).abs() < 0.2 * around, "{pixels} pixels of a line of {around}");
}
