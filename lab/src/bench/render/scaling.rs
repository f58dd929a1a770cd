//! Our caster alone: scaling with threads, and the cost of a sample beside that of its loads and arithmetic with everything
//! in the nearest cache.

use array::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use render::{BlockPool, ImageSize, Instructions, OpacityPoint, Quality, Scene, TransferFunction};

use super::super::finished::Finished;
use super::super::options::Options;
use super::super::report::{Better, Case};
use super::frames::draw;
use super::scenes::{DIRECTIONS, FUNCTIONS, SIZES, scene};
use super::volume::BenchVolume;

/// Frames of each.
const RUNS: usize = 9;
/// Voxels a side.
const SIDE: u64 = 512;
const QUICK_SIDE: u64 = 256;
/// Goal for the speed of two threads over that of one.
const GOAL: f64 = 1.9;
/// Voxels a side of a volume that the nearest cache holds with its table.
const SMALL_SIDE: u64 = 20;
/// Its samples lie so much closer that rays have as many as in a large volume.
const SMALL_STEP: f64 = 1.0 / 16.0;
/// Opacity of a voxel, the same everywhere: nothing is skipped, no ray ends early, and opacity counts samples.
const EVEN: f64 = 1e-3;

pub(super) fn run(options: &Options, finished: &mut Finished) -> Result<()> {
    let side = if options.is_quick { QUICK_SIDE } else { SIDE };
    let runs = options.runs.unwrap_or(RUNS).max(1);
    let volume = BenchVolume::new(side, false)?;
    let pool = volume.pool()?;
    let typical = scene(&volume.view, &FUNCTIONS[1], DIRECTIONS[0].1, SIZES[0]);
    finished.add(threads(&typical, &pool, runs)?.with("side", side));
    let large = nanos_per_sample(&even(typical), &pool, runs)?;
    let small = BenchVolume::new(SMALL_SIDE, false)?;
    let near = even(scene(&small.view, &FUNCTIONS[1], DIRECTIONS[0].1, SIZES[0]));
    let near = Scene { quality: Quality { step: SMALL_STEP, ..near.quality }, ..near };
    let mut limit = nanos_per_sample(&near, &small.pool()?, runs)?;
    let why = format!("the same by rays through {SMALL_SIDE}^3 voxels, all in the nearest cache");
    let case = Case::measured("processor time per sample, u8, nothing skipped", "ns", Better::Lower, large);
    let limit = super::super::report::median(&mut limit).unwrap_or(0.0);
    finished.add(case.with("side", side).limited(limit, &why));
    Ok(())
}

/// Wall time of a frame with one thread over that with two.
fn threads(scene: &Scene, pool: &BlockPool, runs: usize) -> Result<Case> {
    let [one, two] = [crew(1)?, crew(2)?];
    let mut ratios = Vec::new();
    let wall_secs = |crew: &ThreadPool| -> Result<f64> {
        Ok(crew.install(|| draw(scene, pool, Instructions::best()))?.1.wall_secs)
    };
    wall_secs(&two)?;
    for _ in 0..runs {
        ratios.push(wall_secs(&one)? / wall_secs(&two)?);
    }
    let mut case = Case::measured("time with one thread over two", "x", Better::Higher, ratios).aiming(GOAL);
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        (case.meets_goal, case.why) = (None, "needs two processors".into());
    }
    Ok(case)
}

fn crew(threads: usize) -> Result<ThreadPool> {
    let built = ThreadPoolBuilder::new().num_threads(threads).build();
    built.map_err(|e| Error::internal(format!("threads: {e}")))
}

fn even(scene: Scene) -> Scene {
    let opacity = vec![OpacityPoint { value: 0.0, opacity: EVEN }];
    Scene { transfer: TransferFunction { opacity, ..scene.transfer.clone() }, ..scene }
}

/// Processor time per sample, nanoseconds, of an [`even`] scene.
fn nanos_per_sample(scene: &Scene, pool: &BlockPool, runs: usize) -> Result<Vec<f64>> {
    let (frame, _) = draw(scene, pool, Instructions::best())?;
    // A ray of n samples has gathered 1 - (1 - opacity)^(n * step).
    let per_sample = (1.0 - EVEN).ln() * scene.quality.step;
    let samples: f64 = frame.image.rgba.iter().map(|rgba| (1.0 - f64::from(rgba[3])).ln() / per_sample).sum();
    let ImageSize { width, height } = scene.size;
    if samples < f64::from(width) * f64::from(height) {
        return Err(Error::internal(format!("expected at least a sample for each pixel, found {samples}")));
    }
    let frames = (0..runs).map(|_| draw(scene, pool, Instructions::best()));
    frames.map(|drawn| Ok(drawn?.1.cpu_secs * 1e9 / samples)).collect()
}
