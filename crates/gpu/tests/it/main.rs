//! Pictures on a graphics processor: they equal those of the caster for the CPU; and the work that they take.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests, of small whole numbers"
)]

extern crate render as corridor_render;

#[path = "../../../render/tests/common/mod.rs"]
mod common;
mod extremes;
mod scales;
mod solids;
mod volumes;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use common::{Synthetic, draw, points};
use corridor_gpu::{Accept, CastStats, GpuCaster, MissingBlocks};
use corridor_render::{
    BlockPool, Cancel, Image, ImageSize, OpacityPoint, RenderedImage, Scene, TransferFunction,
};
use glam::DVec3;

/// Environment variable that makes tests fail if there is no graphics processor; one in software is enough.
const DEMANDED: &str = "CORRIDOR_TEST_GPU";

/// A caster, or nothing where this machine has no driver and nobody demands one.
fn caster(atlas_bytes: u64) -> Option<GpuCaster> {
    match GpuCaster::open(Accept::Any, atlas_bytes) {
        Ok(caster) => Some(caster),
        Err(error) if std::env::var_os(DEMANDED).is_none() => {
            eprintln!("skipped: {error}; with {DEMANDED}=1 this fails");
            None
        }
        Err(error) => panic!("{DEMANDED} is set: {error}"),
    }
}

fn draw_on(caster: &GpuCaster, scene: &Scene, pool: &BlockPool) -> (RenderedImage, CastStats) {
    caster.cast(scene, &pool.snapshot(), MissingBlocks::Complete, &Cancel::new()).unwrap()
}

/// Mean, 99.9th percentile and maximum of the differences of all 8-bit components over black.
fn differences(a: &Image, b: &Image) -> [f64; 3] {
    assert_eq!(a.size, b.size);
    let bytes = [a, b].map(|image| image.to_rgb8([0.0; 3]));
    let mut apart: Vec<u8> = bytes[0].iter().zip(&bytes[1]).map(|(a, b)| a.abs_diff(*b)).collect();
    apart.sort_unstable();
    let mean = apart.iter().map(|&d| f64::from(d)).sum::<f64>() / apart.len() as f64;
    [mean, f64::from(apart[apart.len() * 999 / 1000]), f64::from(*apart.last().unwrap())]
}

/// Returns the number of pixels that differ by more than 8 of 255 in a component, over black.
fn outliers(a: &Image, b: &Image) -> usize {
    let bytes = [a, b].map(|image| image.to_rgb8([0.0; 3]));
    let pixels = bytes[0].chunks_exact(3).zip(bytes[1].chunks_exact(3));
    pixels.filter(|(a, b)| a.iter().zip(*b).any(|(a, b)| a.abs_diff(*b) > 8)).count()
}

/// Draws both, leaves the pictures where `CORRIDOR_TEST_OUT` says, and compares pixels and fidelity.
fn compare(caster: &GpuCaster, name: &str, scene: &Scene, pool: &BlockPool) -> CastStats {
    // Gradients jump from cell to cell: where a place lies on the border, rounding decides which one lights it.
    let is_lit = scene.is_lit || !scene.surfaces.is_empty();
    compare_within(caster, name, scene, pool, if is_lit { (16.0, 4) } else { (8.0, 0) })
}

/// [`compare`] with another bound of the largest difference of a component, and of how many pixels are [`outliers`].
fn compare_within(
    caster: &GpuCaster,
    name: &str,
    scene: &Scene,
    pool: &BlockPool,
    (bound, few): (f64, usize),
) -> CastStats {
    let expected = draw(scene, pool);
    let (found, stats) = draw_on(caster, scene, pool);
    if let Some(folder) = std::env::var_os("CORRIDOR_TEST_OUT") {
        for (kind, image) in [("cpu", &expected.image), ("gpu", &found.image)] {
            let path = std::path::Path::new(&folder).join(format!("{name}-{kind}.png"));
            std::fs::write(path, image.to_png(corridor_render::Background::BLACK).unwrap()).unwrap();
        }
    }
    let [mean, most, worst] = differences(&expected.image, &found.image);
    let outliers = outliers(&expected.image, &found.image);
    eprintln!("{name}: mean {mean:.4}, p99.9 {most}, max {worst}, {outliers} outliers; {stats:?}");
    let is_same = mean <= 0.15 && most <= 2.0 && worst <= bound && outliers <= few;
    assert!(is_same, "{name}: mean {mean}, p99.9 {most}, max {worst}, {outliers} outliers");
    assert!(common::covered(&expected.image) > 0.02, "{name}: something is to be seen");
    let (a, b) = (expected.fidelity, found.fidelity);
    assert_eq!(
        (a.wanted_level, a.finest_shown, a.coarsest_shown),
        (b.wanted_level, b.finest_shown, b.coarsest_shown)
    );
    for (a, b) in [
        (a.share_at_wanted, b.share_at_wanted),
        (a.share_uncovered, b.share_uncovered),
        (a.share_lacking, b.share_lacking),
    ] {
        assert!((a - b).abs() < 0.02, "{name}: {a} and {b}");
    }
    stats
}

/// Waves of values from 0 to 200 with empty space between them.
fn waves(p: DVec3) -> f64 {
    let q = p * 0.23;
    100.0 + 99.0 * (q.x.sin() * q.y.cos() + (q.z * 0.7).sin() * 0.5).clamp(-1.0, 1.0)
}

fn with_points(scene: &Scene, list: &[(f64, f64)]) -> TransferFunction {
    let opacity: Vec<OpacityPoint> = points(list);
    TransferFunction { opacity, ..scene.transfer.clone() }
}

/// A camera that is nothing special.
fn scene_of(synthetic: &Synthetic) -> Scene {
    let mut scene = synthetic.scene();
    scene.size = ImageSize { width: 150, height: 120 };
    scene.transfer = with_points(&scene, &[(110.0, 0.0), (150.0, 0.05), (200.0, 0.5)]);
    scene
}

/// One for all tests, so that each shader is compiled once: with an atlas that has room for all. They take turns, as their
/// volumes would push one another out.
fn roomy() -> Option<(&'static GpuCaster, MutexGuard<'static, ()>)> {
    static CASTER: OnceLock<Option<GpuCaster>> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    CASTER.get_or_init(|| caster(64 << 20)).as_ref().map(|caster| (caster, turn))
}
