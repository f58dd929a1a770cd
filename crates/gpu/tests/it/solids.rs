//! Isosurfaces and slices, alone and with what the transfer function shows.

use array::{DType, ElementType, Meaning, Scalar};
use corridor_gpu::{Accept, GpuCaster};
use corridor_render::{Isosurface, LightShares, Scene, Slice, TransferFunction};
use glam::DVec3;
use view::{Mode, SpaceAxis};

use crate::common::{self, Synthetic, pool_of, voxel_box};
use crate::{compare, compare_within, draw_on, roomy, scene_of, waves, with_points};

fn surfaces(list: &[(f64, f32)]) -> Vec<Isosurface> {
    let colors = [[0.9, 0.2, 0.1], [0.1, 0.8, 0.3], [0.2, 0.3, 0.9]];
    let surface =
        |(i, &(value, opacity)): (usize, &(f64, f32))| Isosurface { value, color: colors[i % 3], opacity };
    list.iter().enumerate().map(surface).collect()
}

fn slices(list: &[(SpaceAxis, f64)]) -> Vec<Slice> {
    list.iter().map(|&(axis, at)| Slice::across(axis, at)).collect()
}

/// A smooth field, so that rays rarely just touch a surface.
fn hills(p: DVec3) -> f64 {
    let q = p * 0.11;
    100.0 + 99.0 * (q.x.sin() * q.y.cos() + (q.z * 0.7).sin() * 0.5).clamp(-1.0, 1.0)
}

const THREE: [(f64, f32); 3] = [(90.0, 0.4), (130.5, 0.6), (160.25, 1.0)];

#[test]
fn surfaces_alone_and_in_a_volume() {
    let Some((caster, _turn)) = roomy() else { return };
    for element in [ElementType::U8, ElementType::F32, ElementType::F64] {
        let synthetic = Synthetic::new([50, 61, 72], [16; 3], hills).typed(DType::native(element));
        let pool = synthetic.full_pool();
        let mixed = Scene { surfaces: surfaces(&THREE), ..scene_of(&synthetic) };
        let alone = Scene { mode: Mode::Surfaces, ..mixed.clone() };
        compare(caster, &format!("surfaces-{element:?}"), &alone, &pool);
        if element == ElementType::U8 {
            compare(caster, "surfaces-mixed", &mixed, &pool);
            compare(caster, "surfaces-mixed-lit", &Scene { is_lit: true, ..mixed.clone() }, &pool);
            let light = LightShares::of_strength(0.4);
            compare(caster, "surfaces-dim", &Scene { is_lit: true, light, ..mixed.clone() }, &pool);
            let light = LightShares::new(1.0, 0.9, 0.5);
            compare(caster, "surfaces-dimmed", &Scene { is_lit: true, light, ..mixed.clone() }, &pool);
            let camera = alone.camera.orthographic();
            compare(caster, "surfaces-parallel", &Scene { camera, ..alone.clone() }, &pool);
            let clip = Some(voxel_box(&alone.view, [5.2, 3.0, 8.0], [50.1, 50.0, 33.3]));
            compare(caster, "surfaces-clipped", &Scene { clip, ..mixed }, &pool);
        }
    }
}

#[test]
fn as_many_surfaces_as_there_may_be_some_of_one_value() {
    let Some((caster, _turn)) = roomy() else { return };
    let synthetic = Synthetic::new([40; 3], [16; 3], hills).typed("|u1".parse().unwrap());
    let list: Vec<_> = (0..Isosurface::MAX_COUNT).map(|i| (30.0 + 8.0 * (i / 2 * 2) as f64, 0.2)).collect();
    let scene = Scene { surfaces: surfaces(&list), mode: Mode::Surfaces, ..scene_of(&synthetic) };
    compare(caster, "surfaces-20", &scene, &synthetic.full_pool());
}

#[test]
fn surfaces_where_levels_meet_and_values_are_missing() {
    let Some((caster, _turn)) = roomy() else { return };
    let (mut synthetic, pool) = crate::volumes::with_stand_ins();
    let scene = Scene { surfaces: surfaces(&[(130.5, 1.0)]), mode: Mode::Surfaces, ..scene_of(&synthetic) };
    // Where levels meet, values and gradients jump: which side a ray meets the surface on, rounding decides in a pixel or two of a thousand.
    compare_within(caster, "surfaces-stand-ins", &scene, &pool, (128.0, 18));
    let mixed = Scene { mode: Mode::Composite, surfaces: surfaces(&THREE), ..scene };
    compare_within(caster, "surfaces-stand-ins-mixed", &mixed, &pool, (128.0, 18));
    synthetic.levels = 1;
    synthetic.field = |p| if (p - 20.0).length() < 9.0 { 255.0 } else { hills(p) };
    synthetic.decoding.missing = vec![Scalar::Unsigned(255)];
    let scene = Scene { surfaces: surfaces(&THREE), mode: Mode::Surfaces, ..scene_of(&synthetic) };
    compare(caster, "surfaces-missing", &scene, &synthetic.full_pool());
}

#[test]
fn slices_alone_in_a_haze_before_and_behind_surfaces() {
    let Some((caster, _turn)) = roomy() else { return };
    let synthetic = Synthetic::new([50, 61, 72], [16; 3], waves).typed("|u1".parse().unwrap());
    let pool = synthetic.full_pool();
    let places = [(SpaceAxis::X, 31.0), (SpaceAxis::Y, 17.25), (SpaceAxis::Z, 49.5), (SpaceAxis::Z, 9.5)];
    let mixed = Scene { slices: slices(&places), ..scene_of(&synthetic) };
    let alone = Scene { mode: Mode::Surfaces, ..mixed.clone() };
    compare(caster, "slices", &alone, &pool);
    compare(caster, "slices-mixed", &mixed, &pool);
    compare(caster, "slices-mixed-lit", &Scene { is_lit: true, ..mixed.clone() }, &pool);
    let all = Scene { surfaces: surfaces(&THREE[..2]), ..mixed };
    compare(caster, "slices-surfaces", &all, &pool);
    let camera = all.camera.orthographic();
    compare(caster, "slices-surfaces-parallel", &Scene { mode: Mode::Surfaces, camera, ..all }, &pool);
    let holes = |p: DVec3| if (p - 25.0).length() < 12.0 { 255.0 } else { waves(p) };
    let mut missing = Synthetic { field: holes, ..synthetic.clone() };
    missing.decoding.missing = vec![Scalar::Unsigned(255)];
    let scene = Scene { view: missing.view(), ..alone.clone() };
    compare(caster, "slices-missing", &scene, &missing.full_pool());
    let blobs =
        |p: DVec3| ((p.x / 9.0).floor() + 3.0 * (p.y / 11.0).floor() + 7.0 * (p.z / 8.0).floor()).max(0.0);
    let labels = Synthetic { meaning: Meaning::Labels, field: blobs, ..synthetic };
    let transfer = TransferFunction::labels(0.3);
    let scene = Scene { transfer, view: labels.view(), mode: Mode::Composite, ..alone };
    compare(caster, "slices-labels", &scene, &labels.full_pool());
}

#[test]
fn a_small_atlas_gives_the_same_surfaces_and_blocks_without_any_are_not_uploaded() {
    let Some((roomy, _turn)) = roomy() else { return };
    let synthetic = Synthetic::new([64; 3], [16; 3], hills).typed("|u1".parse().unwrap());
    let pool = synthetic.full_pool();
    let scene = Scene { surfaces: surfaces(&[(190.0, 0.5)]), mode: Mode::Surfaces, ..scene_of(&synthetic) };
    let mixed = Scene {
        surfaces: surfaces(&THREE),
        slices: slices(&[(SpaceAxis::Z, 3.0)]),
        transfer: with_points(&scene, &[(110.0, 0.0), (150.0, 0.02), (200.0, 0.3)]),
        mode: Mode::Composite,
        ..scene.clone()
    };
    let small = GpuCaster::open(Accept::Any, 12 * 4913).unwrap();
    let fresh = pool_of(&synthetic, synthetic.blocks(0));
    let (few, stats) = draw_on(roomy, &scene, &fresh);
    assert!(common::covered(&few.image) > 0.01 && stats.blocks < 40, "{stats:?}");
    for scene in [scene, mixed] {
        let (expected, _) = draw_on(roomy, &scene, &pool);
        let (found, stats) = draw_on(&small, &scene, &pool);
        assert_eq!(expected.image, found.image);
        assert!(stats.passes > 2 && stats.atlas_bytes <= 12 * 4913, "{stats:?}");
    }
}
