//! Pictures with logarithmic scales against the reference in double precision, with every set of instructions, and in
//! projections.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "common/reference.rs"]
mod reference;

use common::{Field, Synthetic, covered, difference, points, rms};
use corridor_render::{Camera, Cancel, Image, ImageSize, Instructions, Scene, TransferFunction, cast_with};
use glam::DVec3;
use view::{Mode, ValueScale};

/// Twenty powers of ten, a tenth of one from voxel to voxel near the middle.
fn powers(p: DVec3) -> f64 {
    1e-28 * 10f64.powf(20.0 * (-p.distance(DVec3::splat(14.0)) / 9.0).exp())
}

/// Values of both signs over six powers of ten.
fn both(p: DVec3) -> f64 {
    let size = 10f64.powf(6.0 * (-p.distance(DVec3::splat(14.0)) / 9.0).exp());
    if p.x < 14.0 { -size } else { size }
}

fn transfer(scale: ValueScale, range: [f64; 2], shares: &[(f64, f64)]) -> TransferFunction {
    let own = scale.over(range);
    let list: Vec<(f64, f64)> = shares.iter().map(|&(share, alpha)| (own.at_share(share), alpha)).collect();
    TransferFunction { scale, range, opacity: points(&list), ..TransferFunction::ramp(0.0, 1.0, 1.0) }
}

fn scene(synthetic: &Synthetic, transfer: TransferFunction, mode: Mode) -> Scene {
    let scene = synthetic.scene();
    let camera = Camera::framing(&scene.view.bounds(), Camera::DEFAULT_DIRECTION);
    Scene { camera, transfer, mode, size: ImageSize { width: 24, height: 20 }, ..scene }
}

fn draw(scene: &Scene, synthetic: &Synthetic, set: Instructions) -> Image {
    cast_with(scene, &synthetic.full_pool().snapshot(), &Cancel::new(), set).unwrap().image
}

/// Name, scale, field, range, shares of the range with opacities.
type Case = (&'static str, ValueScale, Field, [f64; 2], &'static [(f64, f64)]);

const CASES: [Case; 4] = [
    ("ramp", ValueScale::Log, powers, [1e-28, 1e-8], &[(0.2, 0.0), (1.0, 0.3)]),
    ("shell", ValueScale::Log, powers, [1e-28, 1e-8], &[(0.4, 0.0), (0.5, 0.2), (0.6, 0.0)]),
    ("fog", ValueScale::Log, powers, [1e-28, 1e-8], &[(0.0, 0.01), (1.0, 0.03)]),
    ("ends", ValueScale::Symlog, both, [-1e6, 1e6], &[(0.0, 0.3), (0.4, 0.0), (0.6, 0.0), (1.0, 0.3)]),
];

#[test]
fn pictures_with_logarithmic_scales_agree_with_the_reference() {
    let mut problems = Vec::new();
    for (name, scale, field, range, shares) in CASES {
        for dtype in ["<f4", "<f8"] {
            let synthetic = Synthetic::new([28; 3], [12, 16, 28], field).typed(dtype.parse().unwrap());
            for mode in [Mode::Composite, Mode::Maximum, Mode::Minimum] {
                let scene = scene(&synthetic, transfer(scale, range, shares), mode);
                let drawn = draw(&scene, &synthetic, Instructions::best());
                let exact = reference::cast(&synthetic, &scene);
                let (worst, typical) = (difference(&drawn, &exact), rms(&drawn, &exact));
                assert!(covered(&drawn) > 0.02, "{name}, {mode:?}: {} is seen", covered(&drawn));
                if worst > 8.0 || typical > 0.8 {
                    problems.push(format!("{name}, {dtype}, {mode:?}: worst {worst}, rms {typical}"));
                }
                for &set in Instructions::available() {
                    let apart = difference(&drawn, &draw(&scene, &synthetic, set));
                    assert!(apart <= 2.0, "{set:?}, {name}, {dtype}, {mode:?}: {apart}");
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn values_without_a_logarithm_are_transparent_and_have_the_lowest_color_in_projections() {
    let zero = |_: DVec3| -5.0;
    let synthetic = Synthetic::new([12; 3], [12; 3], zero).typed("<f4".parse().unwrap());
    let function = transfer(ValueScale::Log, [1.0, 100.0], &[(0.0, 0.9), (1.0, 0.9)]);
    let shown = |mode| draw(&scene(&synthetic, function.clone(), mode), &synthetic, Instructions::best());
    assert!(covered(&shown(Mode::Composite)) < 1e-9);
    let projection = shown(Mode::Maximum);
    let [r, g, b] = function.color_at(1.0);
    let pixel = projection.rgba.iter().find(|pixel| pixel[3] > 0.5).unwrap();
    let apart = [pixel[0] - r, pixel[1] - g, pixel[2] - b].map(f32::abs);
    assert!(apart.iter().all(|part| *part < 0.01), "{pixel:?} instead of {:?}", [r, g, b]);
}
