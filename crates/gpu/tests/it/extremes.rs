//! The largest and the smallest value along each ray.

use array::Scalar;
use corridor_gpu::{Accept, GpuCaster};
use corridor_render::{Isosurface, Quality, Scene, TransferFunction};
use view::Mode;

use crate::common::Synthetic;
use crate::{compare, draw_on, roomy, scene_of, waves};

fn scene(synthetic: &Synthetic, mode: Mode) -> Scene {
    Scene { mode, transfer: TransferFunction::ramp(20.0, 180.0, 1.0), ..scene_of(synthetic) }
}

#[test]
fn largest_and_smallest_values() {
    let Some((caster, _turn)) = roomy() else { return };
    let synthetic = Synthetic::new([50, 61, 72], [16; 3], waves).typed("|u1".parse().unwrap());
    let pool = synthetic.full_pool();
    for mode in [Mode::Maximum, Mode::Minimum] {
        let scene = scene(&synthetic, mode);
        compare(caster, &format!("{mode:?}"), &scene, &pool);
        let quality = Quality { skip_empty: false, ..Quality::STILL };
        compare(caster, &format!("{mode:?}-every-sample"), &Scene { quality, ..scene.clone() }, &pool);
        let surfaces = vec![Isosurface { value: 170.5, color: [0.9, 0.2, 0.1], opacity: 0.5 }];
        compare(caster, &format!("{mode:?}-surfaces"), &Scene { surfaces, ..scene }, &pool);
    }
    let (stand_ins, pool) = crate::volumes::with_stand_ins();
    compare(caster, "largest-stand-ins", &scene(&stand_ins, Mode::Maximum), &pool);
    let mut missing =
        Synthetic { field: |p| if (p - 25.0).length() < 12.0 { 255.0 } else { waves(p) }, ..synthetic };
    missing.decoding.missing = vec![Scalar::Unsigned(255)];
    compare(caster, "largest-missing", &scene(&missing, Mode::Maximum), &missing.full_pool());
}

#[test]
fn a_small_atlas_gives_the_same_extreme_values() {
    let Some((roomy, _turn)) = roomy() else { return };
    let synthetic = Synthetic::new([64; 3], [16; 3], waves).typed("|u1".parse().unwrap());
    let pool = synthetic.full_pool();
    let scene = scene(&synthetic, Mode::Maximum);
    let (expected, _) = draw_on(roomy, &scene, &pool);
    let small = GpuCaster::open(Accept::Any, 12 * 4913).unwrap();
    let (found, stats) = draw_on(&small, &scene, &pool);
    assert_eq!(expected.image, found.image);
    assert!(stats.atlas_bytes <= 12 * 4913, "{stats:?}");
}
