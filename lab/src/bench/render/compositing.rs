//! Pictures by 2, 4 and 8 ranks: what putting them together sends, beside theory, and takes; how even shares of a skewed scene
//! are; and how far the picture is from one caster's. Ranks are threads here, and processes where `mpirun` starts this program.
//!
//! Bytes that a rank sends are counted where messages leave it, headers included. On one machine ranks share cores and memory, so
//! times say what copying costs, not what a network does.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use array::{Error, Result};
use compose::{
    Balance, Communicator, Composed, Method, Schedule, broadcast, collect, compose, draw, reduce, threads,
};
use render::{Camera, Cancel, PartialImage, Rect, Scene, Snapshot, cast, demand};
use serde::{Deserialize, Serialize};

use super::super::finished::Finished;
use super::super::options::Options;
use super::super::process::command;
use super::super::report::{BenchReport, Better, Case};
use super::clock::CostClock;
use super::scenes::{FUNCTIONS, SIZES, scene};
use super::volume::BenchVolume;

const COUNTS: [usize; 3] = [2, 4, 8];
const METHODS: [(&str, Method); 3] = [
    ("direct send", Method::DirectSend),
    ("radix-4", Method::RadixK(4)),
    ("binary swap", Method::BinarySwap),
];
/// Exchanges per method.
const RUNS: usize = 15;
const QUICK_RUNS: usize = 3;
/// Voxels a side.
const SIDE: u64 = 192;
const QUICK_SIDE: u64 = 64;
/// Pictures one after another, each turned a little: the first shares are guessed, later ones measured.
const PICTURES: usize = 4;
const TURN_RAD: f64 = 0.05;
/// The busiest rank's work over the average rank's.
const GOAL_BALANCE: f64 = 1.2;
/// Largest difference of a channel, 255ths.
const GOAL_OFF: f64 = 1.0;
/// Bytes of a pixel in a message.
const PIXEL_BYTES: usize = size_of::<[f32; 4]>();

pub(super) async fn run(program: &Path, options: &Options, finished: &mut Finished) -> Result<()> {
    let stage = CompositingScene::new(options)?;
    for count in COUNTS {
        for (name, method) in METHODS {
            let measured = by_threads(count, |ranks| stage.measured(ranks, method))?;
            finished.add_all(cases(&format!("{name}, {count} threads"), method, &measured)?);
        }
    }
    for count in COUNTS {
        match processes(program, options, count).await {
            Ok(report) => finished.add_all(report.cases),
            Err(error) => finished.add(nothing(count, &error)),
        }
    }
    Ok(())
}

/// Measures all methods with the processes of an MPI program, of which this is one; rank 0 has the cases.
pub(super) fn by_processes(
    ranks: &dyn Communicator,
    options: &Options,
    finished: &mut Finished,
) -> Result<()> {
    let stage = CompositingScene::new(options)?;
    for (name, method) in METHODS {
        if let Some(measured) = stage.measured(ranks, method)? {
            finished.add_all(cases(&format!("{name}, {} processes", ranks.size()), method, &measured)?);
        }
    }
    Ok(())
}

/// This program, started as several by `mpirun`.
async fn processes(program: &Path, options: &Options, count: usize) -> Result<BenchReport> {
    let home = tempfile::tempdir()?;
    let mut mpirun = command(Path::new("mpirun"), home.path());
    // Benchmarks run in containers too, as root and on fewer cores than processes.
    mpirun.args(["--allow-run-as-root", "--oversubscribe", "-n", &count.to_string()]).arg(program);
    mpirun.args(["bench", "render", "--only", "compositing", "--json"]);
    if options.is_quick {
        mpirun.arg("--quick");
    }
    if let Some(runs) = options.runs {
        mpirun.args(["--runs", &runs.to_string()]);
    }
    // A pool of one thread in each: together they have as many as there are ranks.
    let output = mpirun.env("RAYON_NUM_THREADS", "1").output().await.map_err(|e| {
        Error::from(e).context("expected `mpirun`, which starts the processes of an MPI program")
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let why = said.lines().find(|line| line.starts_with("error: ")).or_else(|| said.lines().last());
        return Err(Error::unsupported(why.unwrap_or("`mpirun` ended without a word").to_owned()));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|e| Error::internal(format!("expected a report of {count} processes: {e}")))
}

fn nothing(count: usize, why: &Error) -> Case {
    let name = format!("compositing by {count} processes");
    Case { why: why.to_string(), ..Case::measured(&name, "B", Better::Lower, Vec::new()) }
}

/// Runs `work` on `count` ranks on threads of their own; returns the result of rank 0.
fn by_threads<T: Send>(
    count: usize,
    work: impl Fn(&dyn Communicator) -> Result<Option<T>> + Sync,
) -> Result<T> {
    let ranks = threads(count)?;
    let work = &work;
    let results = std::thread::scope(|scope| {
        let start = |rank| {
            let run = move || work(&rank);
            std::thread::Builder::new().name("rank".into()).spawn_scoped(scope, run)
        };
        let started: Vec<_> = ranks.into_iter().map(start).collect::<std::io::Result<_>>()?;
        let ended = |thread: std::thread::ScopedJoinHandle<'_, Result<Option<T>>>| {
            thread.join().map_err(|_| Error::internal("a rank panicked"))?
        };
        started.into_iter().map(ended).collect::<Result<Vec<_>>>()
    })?;
    results.into_iter().flatten().next().ok_or_else(|| Error::internal("expected rank 0 to tell"))
}

/// Scene that all ranks draw.
struct CompositingScene {
    volume: BenchVolume,
    blocks: Snapshot,
    runs: usize,
}

/// Measurements of one rank.
#[derive(Debug, Serialize, Deserialize)]
struct RankMeasurements {
    /// Bytes sent to composite one image whose parts cover all of it.
    bytes: u64,
    messages: u64,
    rounds: usize,
    /// Time of this, for each run.
    secs: Vec<f64>,
    /// Samples drawn for each picture of the skewed scene.
    work: Vec<f64>,
    /// Largest difference of the last picture from that of one caster, on rank 0.
    off: f64,
}

impl CompositingScene {
    fn new(options: &Options) -> Result<Self> {
        let volume = BenchVolume::skewed(if options.is_quick { QUICK_SIDE } else { SIDE })?;
        let blocks = volume.pool()?.snapshot();
        Ok(Self { volume, blocks, runs: options.runs_or(RUNS, QUICK_RUNS) })
    }

    /// Measurements of every rank, at rank 0; all ranks make the same call.
    fn measured(&self, ranks: &dyn Communicator, method: Method) -> Result<Option<Vec<RankMeasurements>>> {
        let mut measured = self.exchange(ranks, method)?;
        let (work, off) = self.pictures(ranks, method)?;
        (measured.work, measured.off) = (work, off);
        let mut line = serde_json::to_vec(&measured).map_err(|e| Error::internal(format!("in JSON: {e}")))?;
        line.push(b'\n');
        let all = collect(ranks, line)?;
        if ranks.rank() > 0 {
            return Ok(None);
        }
        let parse = |line: &[u8]| {
            serde_json::from_slice(line)
                .map_err(|e| Error::corrupt(format!("expected what a rank says: {e}")))
        };
        all.split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(parse)
            .collect::<Result<_>>()
            .map(Some)
    }

    /// Composites images whose parts cover all of them.
    fn exchange(&self, ranks: &dyn Communicator, method: Method) -> Result<RankMeasurements> {
        let image = Rect::whole(SIZES[0]);
        let schedule = Schedule::new(method, ranks.size())?;
        let order: Vec<usize> = (0..ranks.size()).collect();
        let counted = CountedMessages::new(ranks);
        let (mut secs, mut rounds) = (Vec::new(), 0);
        for _ in 0..self.runs {
            wait_for_all(ranks)?;
            counted.reset();
            let clock = CostClock::start();
            let mut cast = |rect: Rect| {
                let rgba = vec![[0.1, 0.2, 0.1, 0.3]; rect.pixels()];
                Ok(PartialImage { rect, rgba, heights: Vec::new() })
            };
            let (_, piece, traffic) = compose(&counted, &order, &schedule, image, &mut cast)?;
            secs.push(clock.read().wall_secs);
            rounds = traffic.rounds;
            if piece.rgba.is_empty() {
                return Err(Error::internal("expected a part of the image at every rank"));
            }
        }
        let (bytes, messages) = counted.read();
        Ok(RankMeasurements { bytes, messages, rounds, secs, work: Vec::new(), off: 0.0 })
    }

    /// Draws pictures of a scene with everything in one corner; returns the work of this rank for each, and on rank 0 the
    /// comparison of the last.
    fn pictures(&self, ranks: &dyn Communicator, method: Method) -> Result<(Vec<f64>, f64)> {
        let (mut balance, mut took, mut work) = (Balance::new(), Vec::new(), Vec::new());
        let mut off = 0.0;
        for number in 0..PICTURES {
            let scene = self.scene(number);
            let all = demand(&scene.view, &scene.camera, scene.size, &scene.portion(), Some(0), usize::MAX)?;
            let tree = balance.plan(ranks, &scene, &self.blocks, &all, &took)?;
            let part = draw(ranks, &scene, &tree, method, &self.blocks, &Cancel::new())?;
            work.push(part.work.iter().map(|(_, work)| work).sum());
            if number + 1 == PICTURES {
                off = self.difference(ranks, &scene, &part)?;
            }
            took = part.work;
        }
        Ok((work, off))
    }

    fn scene(&self, number: usize) -> Scene {
        let plain = scene(&self.volume.view, &FUNCTIONS[1], Camera::DEFAULT_DIRECTION, SIZES[0]);
        let mut transfer = plain.transfer.clone();
        for (point, value) in transfer.opacity.iter_mut().zip([10.0, 255.0]) {
            point.value = value;
        }
        Scene { camera: plain.camera.orbit(TURN_RAD * number as f64, 0.0), transfer, ..plain }
    }

    /// Largest difference of a channel between the composited parts and the image of one caster, 255ths.
    fn difference(&self, ranks: &dyn Communicator, scene: &Scene, part: &Composed) -> Result<f64> {
        let rect = part.piece.rect;
        let mut message: Vec<u8> =
            [rect.left, rect.top, rect.width, rect.height].iter().flat_map(|v| v.to_le_bytes()).collect();
        message.extend(part.piece.rgba.as_flattened().iter().flat_map(|v| v.to_le_bytes()));
        let all = collect(ranks, message)?;
        if ranks.rank() > 0 {
            return Ok(0.0);
        }
        let mut image = cast(scene, &self.blocks, &Cancel::new())?.image;
        take_away(&mut image.rgba, scene, &all)?;
        let left = image.rgba.as_flattened().iter().map(|v| f64::from(v.abs()) * 255.0);
        Ok(left.fold(0.0, f64::max))
    }
}

/// Takes the pixels of messages (a rectangle, then `f32`s) away from an image.
fn take_away(rgba: &mut [[f32; 4]], scene: &Scene, messages: &[u8]) -> Result<()> {
    let short = || Error::corrupt("expected whole parts of an image");
    let mut words = messages.as_chunks::<4>().0.iter();
    while let Some(left) = words.next() {
        let mut word = || words.next().copied().ok_or_else(short);
        let mut number = || word().map(u32::from_le_bytes);
        let rect =
            Rect { left: u32::from_le_bytes(*left), top: number()?, width: number()?, height: number()? };
        if !rect.is_within(scene.size) {
            return Err(short());
        }
        for row in rect.top..rect.top + rect.height {
            for column in rect.left..rect.left + rect.width {
                for channel in &mut rgba[Rect::whole(scene.size).index(column, row)] {
                    *channel -= f32::from_le_bytes(word()?);
                }
            }
        }
    }
    Ok(())
}

/// Waits for all ranks.
fn wait_for_all(ranks: &dyn Communicator) -> Result<()> {
    reduce(ranks, Vec::new(), |_, _| Ok(Vec::new()))?;
    broadcast(ranks, Vec::new()).map(drop)
}

/// Counts what a rank sends.
struct CountedMessages<'a> {
    ranks: &'a dyn Communicator,
    bytes: AtomicU64,
    messages: AtomicU64,
}

impl<'a> CountedMessages<'a> {
    fn new(ranks: &'a dyn Communicator) -> Self {
        Self { ranks, bytes: AtomicU64::new(0), messages: AtomicU64::new(0) }
    }

    fn reset(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.messages.store(0, Ordering::Relaxed);
    }

    /// Bytes and messages since the last [`CountedMessages::reset`].
    fn read(&self) -> (u64, u64) {
        (self.bytes.load(Ordering::Relaxed), self.messages.load(Ordering::Relaxed))
    }
}

impl Communicator for CountedMessages<'_> {
    fn rank(&self) -> usize {
        self.ranks.rank()
    }

    fn size(&self) -> usize {
        self.ranks.size()
    }

    fn send(&self, to: usize, message: Vec<u8>) -> Result<()> {
        self.bytes.fetch_add(message.len() as u64, Ordering::Relaxed);
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.ranks.send(to, message)
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>> {
        self.ranks.receive(from)
    }
}

/// Converts the measurements of ranks to cases.
fn cases(name: &str, method: Method, measured: &[RankMeasurements]) -> Result<Vec<Case>> {
    let ranks = measured.len();
    let schedule = Schedule::new(method, ranks)?;
    let rounds = schedule.rounds(0).count();
    let messages: usize = schedule.rounds(0).map(|round| round.group.len() - 1).sum();
    let theory = Rect::whole(SIZES[0]).pixels() * PIXEL_BYTES / ranks * (ranks - 1);
    let most_bytes = measured.iter().map(|measured| measured.bytes).max().unwrap_or(0);
    let sent =
        Case::measured(&format!("{name}: sent by a rank"), "B", Better::Lower, vec![most_bytes as f64])
            .with("bytes_by_rank", measured.iter().map(|measured| measured.bytes).collect::<Vec<_>>())
            .with("messages", measured.iter().map(|measured| measured.messages).collect::<Vec<_>>())
            .with("messages_in_theory", messages)
            .with("rounds", measured.iter().map(|measured| measured.rounds).collect::<Vec<_>>())
            .with("rounds_in_theory", rounds)
            .limited(theory as f64, "(p - 1)/p of the pixels, 16 bytes each; 20 bytes more for each message");
    let runs = measured.iter().map(|measured| measured.secs.len()).min().unwrap_or(0);
    let slowest = |run: usize| measured.iter().map(|measured| measured.secs[run] * 1e3).fold(0.0, f64::max);
    let took = Case::measured(
        &format!("{name}: putting full pieces together"),
        "ms",
        Better::Lower,
        (0..runs).map(slowest).collect(),
    );
    let even: Vec<f64> = (0..PICTURES).map(|picture| imbalance(measured, picture)).collect();
    let last = even.last().copied().unwrap_or(f64::NAN);
    let busiest = Case::measured(
        &format!("{name}: busiest rank by the average, skewed scene"),
        "x",
        Better::Lower,
        vec![last],
    )
    .with("picture_by_picture", even)
    .aiming(GOAL_BALANCE);
    let off = measured.first().map_or(f64::NAN, |measured| measured.off);
    let off = Case::measured(&format!("{name}: off from one caster"), "of 255", Better::Lower, vec![off]);
    Ok(vec![sent, took, busiest, off.aiming(GOAL_OFF)])
}

/// The busiest rank's work for a picture by the average rank's.
fn imbalance(measured: &[RankMeasurements], picture: usize) -> f64 {
    let work: Vec<f64> = measured.iter().filter_map(|measured| measured.work.get(picture)).copied().collect();
    let mean = work.iter().sum::<f64>() / work.len() as f64;
    work.into_iter().fold(0.0, f64::max) / mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ranks_send_is_what_theory_says_and_their_picture_is_that_of_one() {
        let options = Options { is_quick: true, runs: Some(1), ..Options::default() };
        let stage = CompositingScene::new(&options).unwrap();
        for (name, method) in METHODS {
            let measured = by_threads(4, |ranks| stage.measured(ranks, method)).unwrap();
            let cases = cases(name, method, &measured).unwrap();
            let heads = 20.0 * measured[0].messages as f64;
            assert_eq!(cases[0].ours, cases[0].limit.map(|bytes| bytes + heads), "{name}");
            assert_eq!(cases[0].parameters["messages"][3], cases[0].parameters["messages_in_theory"]);
            assert_eq!(cases[0].parameters["rounds"][3], cases[0].parameters["rounds_in_theory"]);
            assert_eq!((cases[2].meets_goal, cases[3].meets_goal), (Some(true), Some(true)), "{cases:?}");
            assert!(cases[3].ours > Some(0.0), "something is seen, and rounding shows: {cases:?}");
        }
    }

    #[test]
    fn the_busiest_is_told_by_the_average() {
        let measured = |work| RankMeasurements {
            bytes: 0,
            messages: 0,
            rounds: 1,
            secs: vec![],
            work: vec![work],
            off: 0.0,
        };
        assert_eq!(imbalance(&[measured(1.0), measured(3.0)], 0), 1.5);
    }
}
