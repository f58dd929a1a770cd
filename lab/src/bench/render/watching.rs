//! Waiting times of a user of `corridor view`, with encoders: for the first frame, for frames while the camera turns, for
//! the full one when it stops, and for the first and the full one after a change of the transfer function or an isovalue.
//!
//! Except for the 64 GB, the volume is that of the peers, from a file, with the same typical function and camera: a nearly
//! empty picture would be drawn too quickly.

use std::path::Path;
use std::time::{Duration, Instant};

use array::Result;
use render::{Camera, Cancel, Image, ImageSize, Quality, Scene, cast};
use serde_json::{Value, json};

use super::super::finished::Finished;
use super::super::options::Options;
use super::super::raw_file;
use super::super::report::{Better, Case};
use super::scenes::{DIRECTIONS, FUNCTIONS, SIZES, scene};
use super::viewer::{HEIGHT, Viewer, WIDTH};
use super::volume::BenchVolume;

/// Runs of each case; the first frames are of processes started anew.
const RUNS: usize = 5;
const QUICK_RUNS: usize = 2;
/// Voxels a side of the volume in memory, and of 64 GB without prepared levels.
const SIDE: u64 = 512;
const LARGE_SIDE: u64 = 4096;
/// Memory that viewers may use for blocks, and memory that they may take in all, bytes.
const MEMORY: &str = "1GiB";
const PEAK_BYTES: f64 = (3u64 << 29) as f64;
/// Duration of turning, and the angle of each turn.
const TURNS_FOR: Duration = Duration::from_secs(4);
const TURN_RAD: f64 = 0.01;
/// Pause between turns, as a screen of 60 Hz gives it.
const TURN_EVERY: Duration = Duration::from_millis(16);

const GOAL_FIRST_SECS: f64 = 1.0;
const GOAL_FRAMES_PER_SEC: f64 = 30.0;
/// Frames a second while blocks arrive.
const GOAL_LOADING_FRAMES_PER_SEC: f64 = 20.0;
const GOAL_PIXELS: f64 = 1.0 / 9.0;
const GOAL_MOVING_DB: f64 = 30.0;
const GOAL_SETTLED_SECS: f64 = 1.5;
const GOAL_CHANGED_SECS: f64 = 0.1;
const GOAL_FULL_SECS: f64 = 0.4;

pub(super) async fn run(
    program: &Path,
    options: &Options,
    folder: &Path,
    finished: &mut Finished,
) -> Result<()> {
    let runs = options.runs_or(RUNS, QUICK_RUNS);
    large(program, runs, finished).await?;
    let volume = BenchVolume::new(SIDE, false)?;
    let (mut viewer, _) = Viewer::start(program, &in_a_file(&volume, folder)?, MEMORY).await?;
    viewer.frame_where(|frame| frame.shows_something()).await?;
    let camera = scene(&volume.view, &FUNCTIONS[1], DIRECTIONS[0].1, SIZES[0]).camera;
    let Camera { eye, target, up, .. } = camera;
    let perspective = json!({ "perspective": { "fov_y_rad": Camera::DEFAULT_FOV_Y_RAD } });
    let camera = json!({ "eye": eye, "target": target, "up": up, "projection": perspective });
    viewer.change(&json!({ "transfer": transfer(0), "camera": camera }), false)?;
    viewer.frame_where(|frame| frame.is_full()).await?;
    changes(&mut viewer, runs, finished).await?;
    moving(&mut viewer, runs, "512^3", finished).await?;
    finished.add(peak(&viewer, "512^3"));
    finished.add(moving_quality(&volume)?);
    Ok(())
}

/// Writes the volume and its description; returns the path of the description.
fn in_a_file(volume: &BenchVolume, folder: &Path) -> Result<String> {
    volume.write(&folder.join("watched.bin"))?;
    raw_file::describe(folder, "watched", &[volume.side; 3], volume.numpy_dtype())
}

/// Measures 64 GB that were not prepared.
async fn large(program: &Path, runs: usize, finished: &mut Finished) -> Result<()> {
    let (mut seconds, mut all_blocks) = (Vec::new(), Vec::new());
    let mut turned = [Turned::default(), Turned::default()];
    let mut last = None;
    for _ in 0..runs {
        let (mut viewer, start) = Viewer::start(program, &field(LARGE_SIDE), MEMORY).await?;
        let first = viewer.frame_where(|frame| frame.shows_something()).await?;
        seconds.push((first.at - start).as_secs_f64());
        // Blocks are still to come after the first frame, and take the same cores.
        for turned in &mut turned {
            turned.add(turn_for(&mut viewer, TURNS_FOR).await?);
        }
        all_blocks.extend(turned[0].has_all_at.take().map(|at| (at - first.at).as_secs_f64()));
        last = Some(viewer);
    }
    let case = Case::measured("first frame, 64 GB computed", "s", Better::Lower, seconds);
    finished.add(case.with("side", LARGE_SIDE).aiming(GOAL_FIRST_SECS));
    let [first, after] = turned;
    let fewest = Case::measured(
        "fewest of these frames in a second, 64 GB computed, from the first frame on",
        "1/s",
        Better::Higher,
        first.fewest_in_a_second.clone(),
    );
    finished.add(fewest.aiming(GOAL_LOADING_FRAMES_PER_SEC));
    let name = "first frame with all its blocks, after the first one, 64 GB computed";
    finished.add(Case::measured(name, "s", Better::Lower, all_blocks));
    finished.add_all(first.cases("64 GB computed, from the first frame on").into());
    finished.add_all(after.cases("64 GB computed, after that").into());
    finished.add_all(last.iter().map(|viewer| peak(viewer, "64 GB computed")).collect());
    Ok(())
}

/// The first and the full frame after a change.
async fn changes(viewer: &mut Viewer, runs: usize, finished: &mut Finished) -> Result<()> {
    let surface = |run: usize| {
        let surface = json!({ "value": 100.0 + run as f64, "color": [230, 190, 150], "opacity": 1.0 });
        json!({ "surfaces": [surface], "mode": "surfaces" })
    };
    let function = |run: usize| json!({ "transfer": transfer(run + 1), "surfaces": [], "mode": "composite" });
    let kinds: [(&str, &dyn Fn(usize) -> Value); 2] =
        [("transfer function", &function), ("isovalue", &surface)];
    for (what, patch) in kinds {
        let (mut first, mut full, mut bytes) = (Vec::new(), Vec::new(), 0);
        // The first change of a kind makes what the next ones only change.
        for run in 0..=runs {
            let changed = viewer.change(&patch(2 * run), true)?;
            let frame = viewer.frame().await?;
            let rested = viewer.change(&patch(2 * run + 1), false)?;
            let whole = viewer.frame_where(|frame| frame.is_full()).await?;
            if run > 0 {
                first.push((frame.at - changed).as_secs_f64());
                full.push((whole.at - rested).as_secs_f64());
                bytes = whole.bytes;
            }
        }
        for (which, seconds, goal) in
            [("first frame", first, GOAL_CHANGED_SECS), ("full frame", full, GOAL_FULL_SECS)]
        {
            let name = format!("{which} after a change of the {what}, 512^3");
            let case = Case::measured(&name, "s", Better::Lower, seconds).aiming(goal);
            finished.add(case.with("full_frame_bytes", bytes));
        }
    }
    viewer.change(&function(0), false)?;
    viewer.frame_where(|frame| frame.is_full()).await?;
    Ok(())
}

/// Frames while the camera turns, and the full one after it stops.
async fn moving(viewer: &mut Viewer, runs: usize, what: &str, finished: &mut Finished) -> Result<()> {
    let mut settled = Vec::new();
    let mut turned = Turned::default();
    for _ in 0..runs {
        turned.add(turn_for(viewer, TURNS_FOR / 2).await?);
        let stopped = viewer.turn(TURN_RAD, false)?;
        settled.push((viewer.frame_where(|frame| frame.is_full()).await?.at - stopped).as_secs_f64());
    }
    finished.add_all(turned.cases(what).into());
    let name = format!("full frame after the camera stops, {what}");
    finished.add(Case::measured(&name, "s", Better::Lower, settled).aiming(GOAL_SETTLED_SECS));
    Ok(())
}

/// Frames received while the camera turned.
#[derive(Default)]
struct Turned {
    frames_per_sec: Vec<f64>,
    /// In the whole second with the fewest.
    fewest_in_a_second: Vec<f64>,
    /// Share of the window's pixels that each frame has.
    shares: Vec<f64>,
    /// Time of the first frame with all blocks that its view wants.
    has_all_at: Option<Instant>,
}

impl Turned {
    fn add(&mut self, other: Self) {
        self.frames_per_sec.extend(other.frames_per_sec);
        self.fewest_in_a_second.extend(other.fewest_in_a_second);
        self.has_all_at = self.has_all_at.or(other.has_all_at);
        self.shares.extend(other.shares);
    }

    fn cases(self, what: &str) -> [Case; 2] {
        let name = format!("frames while the camera turns, {what}");
        let rate = Case::measured(&name, "1/s", Better::Higher, self.frames_per_sec);
        let name = format!("share of the pixels in these, {what}");
        let share = Case::measured(&name, "", Better::Higher, self.shares);
        [rate.aiming(GOAL_FRAMES_PER_SEC), share.aiming(GOAL_PIXELS)]
    }
}

/// Turns the camera at even times, whatever arrives.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
async fn turn_for(viewer: &mut Viewer, time: Duration) -> Result<Turned> {
    viewer.turn(TURN_RAD, true)?;
    viewer.frame().await?;
    let start = Instant::now();
    let mut turned = Turned::default();
    let mut next = start;
    let mut by_second = vec![0.0; usize::try_from(time.as_secs()).unwrap_or(0)];
    while start.elapsed() < time {
        next += TURN_EVERY;
        while let Ok(frame) = tokio::time::timeout_at(next.into(), viewer.any_frame()).await {
            let frame = frame?;
            turned.shares.push(frame.share());
            if frame.has_all() {
                turned.has_all_at.get_or_insert(frame.at);
            }
            let second = usize::try_from((frame.at - start).as_secs()).unwrap_or(usize::MAX);
            by_second.get_mut(second).into_iter().for_each(|count| *count += 1.0);
        }
        viewer.turn(TURN_RAD, true)?;
    }
    turned.fewest_in_a_second.extend(by_second.into_iter().reduce(f64::min));
    turned.frames_per_sec.push(turned.shares.len() as f64 / start.elapsed().as_secs_f64());
    Ok(turned)
}

/// Quality of a moving frame with a ninth of the pixels beside the full one.
fn moving_quality(volume: &BenchVolume) -> Result<Case> {
    let pool = volume.pool()?;
    let mut decibels = Vec::new();
    for (_, direction) in DIRECTIONS {
        let full = scene(&volume.view, &FUNCTIONS[1], direction, SIZES[0]);
        let size = ImageSize { width: WIDTH / 3, height: HEIGHT / 3 };
        let small = Scene { size, quality: Quality::moving(3.0), ..full.clone() };
        let draw = |scene: &Scene| cast(scene, &pool.snapshot(), &Cancel::new());
        let (full, small) = (draw(&full)?.image, draw(&small)?.image);
        decibels.extend(psnr_enlarged(&small, &full));
    }
    let name = "a ninth of the pixels, enlarged, against the full frame";
    Ok(Case::measured(name, "dB", Better::Higher, decibels).aiming(GOAL_MOVING_DB))
}

/// PSNR of a small picture, dB, where the large one shows something. The small picture is enlarged as a browser does,
/// linearly between its pixels.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the small picture")]
fn psnr_enlarged(small: &Image, large: &Image) -> Option<f64> {
    let [width, height] = [large.size.width, large.size.height].map(|n| n as usize);
    let [across, down] = [small.size.width, small.size.height].map(|n| n as usize);
    let place = |i: usize, from: usize, to: usize| {
        let at = ((i as f64 + 0.5) * to as f64 / from as f64 - 0.5).clamp(0.0, (to - 1) as f64);
        (at as usize, (at as usize + 1).min(to - 1), at.fract() as f32)
    };
    let (mut squares, mut count) = (0.0, 0u32);
    for row in 0..height {
        let (top, bottom, lower) = place(row, height, down);
        for column in 0..width {
            let exact = large.rgba[row * width + column];
            if exact[3] <= 1.0 / 255.0 {
                continue;
            }
            let (left, right, farther) = place(column, width, across);
            for (channel, exact) in exact.iter().take(3).enumerate() {
                let at = |row: usize, column: usize| small.rgba[row * across + column][channel];
                let mix = |a: f32, b: f32, share: f32| a + (b - a) * share;
                let [above, below] = [top, bottom].map(|row| mix(at(row, left), at(row, right), farther));
                squares += f64::from(mix(above, below, lower) - exact).powi(2);
                count += 1;
            }
        }
    }
    (squares > 0.0).then(|| 10.0 * (f64::from(count) / squares).log10())
}

fn peak(viewer: &Viewer, what: &str) -> Case {
    let values = viewer.peak_bytes().into_iter().collect();
    let name = format!("viewer's peak memory, {what}");
    Case::measured(&name, "B", Better::Lower, values).with("memory", MEMORY).aiming(PEAK_BYTES)
}

fn field(side: u64) -> String {
    format!("synthetic:waves?shape={side},{side},{side}&dtype=u8")
}

/// Hardly different transfer functions, each new: [`FUNCTIONS`]' typical one.
fn transfer(number: usize) -> Value {
    json!({ "range": [0, 255], "map": "viridis", "opacity": [[90.0 + number as f64, 0.0], [255.0, 0.06]] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_evenly_is_the_same_when_enlarged() {
        let ramp = |width: u32, height: u32| {
            let size = ImageSize { width, height };
            let at = |i: u32, n: u32| (i as f32 + 0.5) / n as f32;
            let pixel = |i: u32| {
                let (x, y) = (at(i % width, width), at(i / width, height));
                [x, y, 0.5, 1.0]
            };
            Image { size, rgba: (0..width * height).map(pixel).collect() }
        };
        let (small, large) = (ramp(40, 30), ramp(120, 90));
        assert!(psnr_enlarged(&small, &large).is_none_or(|psnr_db| psnr_db > 45.0));
        let mut other = large.clone();
        other.rgba.iter_mut().for_each(|rgba| rgba[2] += 0.1);
        // A tenth in one of three channels.
        let psnr_db = psnr_enlarged(&small, &other).unwrap();
        assert!((psnr_db - 24.77).abs() < 0.1, "{psnr_db}");
    }
}
