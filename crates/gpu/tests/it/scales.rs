//! Pictures with logarithmic scales: on the GPU as on the CPU.

use corridor_render::{Scene, Slice, TransferFunction};
use glam::DVec3;
use view::{Mode, SpaceAxis, ValueScale};

use crate::common::{Synthetic, points};
use crate::{compare, roomy, scene_of, waves};

/// Twenty powers of ten.
fn powers(p: DVec3) -> f64 {
    1e-28 * 10f64.powf(waves(p) / 10.0)
}

/// Values of both signs over six powers of ten.
fn both(p: DVec3) -> f64 {
    let power = (waves(p) - 100.0) / 16.0;
    (10f64.powf(power.abs()) - 1.0).copysign(power)
}

fn transfer(scale: ValueScale, range: [f64; 2], shares: &[(f64, f64)]) -> TransferFunction {
    let own = scale.over(range);
    let list: Vec<(f64, f64)> = shares.iter().map(|&(share, alpha)| (own.at_share(share), alpha)).collect();
    TransferFunction { scale, range, opacity: points(&list), ..TransferFunction::ramp(0.0, 1.0, 1.0) }
}

#[test]
fn logarithmic_scales_of_both_precisions() {
    let Some((caster, _turn)) = roomy() else { return };
    for dtype in ["<f4", "<f8"] {
        let positive = Synthetic::new([40, 44, 48], [16, 24, 32], powers).typed(dtype.parse().unwrap());
        let log = transfer(ValueScale::Log, [1e-28, 1e-8], &[(0.5, 0.0), (0.8, 0.05), (1.0, 0.4)]);
        let signed = Synthetic::new([40, 44, 48], [16, 24, 32], both).typed(dtype.parse().unwrap());
        let symlog =
            transfer(ValueScale::Symlog, [-1e6, 1e6], &[(0.0, 0.3), (0.4, 0.0), (0.6, 0.0), (1.0, 0.3)]);
        for (name, synthetic, transfer) in [("log", &positive, log), ("symlog", &signed, symlog)] {
            let pool = synthetic.full_pool();
            let scene = Scene { transfer, ..scene_of(synthetic) };
            compare(caster, &format!("{name}-{dtype}"), &scene, &pool);
            for mode in [Mode::Maximum, Mode::Minimum] {
                compare(caster, &format!("{name}-{dtype}-{mode:?}"), &Scene { mode, ..scene.clone() }, &pool);
            }
            let slices = vec![Slice::across(SpaceAxis::Z, 20.0)];
            compare(caster, &format!("{name}-{dtype}-slice"), &Scene { slices, ..scene }, &pool);
        }
    }
}
