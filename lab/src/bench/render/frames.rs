//! One frame of the same scene by each contestant in turn, so that noise affects all of them: processor time, and the
//! difference from the reference. All use the same step; ours is also drawn with the longest step that keeps its picture as
//! close to the reference as VTK's.

use std::path::Path;

use array::Result;
use render::reference::cast_pixels;
use render::{BlockPool, Cancel, ImageSize, Instructions, Quality, RenderedImage, Scene, cast_with};

use super::super::finished::Finished;
use super::super::options::Options;
use super::super::report::{Better, Case, median};
use super::clock::{CostClock, WorkCosts};
use super::peers::RendererPeers;
use super::scenes::{DIRECTIONS, FUNCTIONS, Function, SIZES, SceneKind, description, scene};
use super::volume::BenchVolume;

/// Frames of each contestant and scene.
const RUNS: usize = 5;
const QUICK_RUNS: usize = 2;
/// Voxels a side.
const SIDES: &[u64] = &[256, 512];
/// Distance of the pixels of the reference along both sides: each takes a millisecond.
const REFERENCE_STRIDE: usize = 16;
/// Opacity below which a pixel does not count for quality.
const SEEN: f32 = 1.0 / 255.0;

/// Steps for a picture no worse than VTK's, in voxels, ascending.
const LONGER_STEPS: &[f64] = &[1.25, 1.5, 2.0, 2.5, 3.0, 4.0];

/// Goal: VTK's processor time of a frame over ours.
const GOAL_U8: f64 = 8.0;
const GOAL_U8_AVX2: f64 = 5.5;
const GOAL_F32: f64 = 6.0;
/// Factor for sparse and saturating functions, with which a frame has little to do.
const GOAL_LIGHT: f64 = 12.0;

/// VTK's time over ours for one scene.
struct Ratio {
    is_float: bool,
    kind: SceneKind,
    set: Instructions,
    /// With our longer step, and a picture no worse than VTK's.
    is_longer: bool,
    times: f64,
}

pub(super) async fn run(options: &Options, folder: &Path, finished: &mut Finished) -> Result<()> {
    let mut peers = RendererPeers::start(options, folder).await?;
    let mut ratios = Vec::new();
    let sides = if options.is_quick { &SIDES[..1] } else { SIDES };
    for &side in sides {
        for is_float in [false, true] {
            let volume = BenchVolume::new(side, is_float)?;
            peers.load(&volume, &folder.join("volume.raw")).await?;
            let pool = volume.pool()?;
            finished.add(memory(&volume, &pool));
            let mut stage = FrameContest { options, folder, volume: &volume, pool: &pool, peers: &mut peers };
            for &size in if options.is_quick { &SIZES[..1] } else { &SIZES[..] } {
                for function in &FUNCTIONS {
                    for direction in
                        DIRECTIONS.iter().take(if options.is_quick { 1 } else { DIRECTIONS.len() })
                    {
                        let (case, found) = stage.case(function, *direction, size).await?;
                        finished.add(case);
                        ratios.extend(found);
                    }
                }
            }
        }
    }
    finished.add_all(summaries(&ratios));
    Ok(())
}

/// Contestants that draw one volume.
struct FrameContest<'a> {
    options: &'a Options,
    folder: &'a Path,
    volume: &'a BenchVolume,
    pool: &'a BlockPool,
    peers: &'a mut RendererPeers,
}

/// Times of frames.
#[derive(Default)]
struct FrameCosts(Vec<WorkCosts>);

impl FrameCosts {
    fn cpu_ms(&self) -> Vec<f64> {
        self.0.iter().map(|took| took.cpu_secs * 1e3).collect()
    }

    fn wall_ms(&self) -> Option<f64> {
        median(&mut self.0.iter().map(|took| took.wall_secs * 1e3).collect::<Vec<_>>())
    }
}

impl FrameContest<'_> {
    async fn case(
        &mut self,
        function: &Function,
        (direction, towards): (&str, [f64; 3]),
        size: ImageSize,
    ) -> Result<(Case, Vec<Ratio>)> {
        let scene = scene(&self.volume.view, function, towards, size);
        let description = description(&scene)?;
        let sets = vector_sets();
        let picture = self.folder.join("picture.rgb");
        let exact = Exact::new(&scene, self.volume);
        let is_first = direction == DIRECTIONS[0].0;
        let mut ours: Vec<FrameCosts> = sets.iter().map(|_| FrameCosts::default()).collect();
        let mut theirs: Vec<FrameCosts> = self.peers.running.iter().map(|_| FrameCosts::default()).collect();
        // Tables are made with the first frame, as those of peers are.
        let first = draw(&scene, self.pool, sets[0])?.0;
        let mut quality = vec![("ours", exact.psnr_db(&first.image.to_rgb8([0.0; 3])))];
        let mut longer: Option<(Scene, FrameCosts)> = None;
        for run in 0..self.options.runs_or(RUNS, QUICK_RUNS) {
            for (&set, times) in sets.iter().zip(&mut ours) {
                times.0.push(draw(&scene, self.pool, set)?.1);
            }
            for (peer, times) in self.peers.running.iter_mut().zip(&mut theirs) {
                if peer.kind.is_slow && (run > 0 || !is_first) {
                    continue;
                }
                times.0.push(peer.draw(&description, (run == 0).then_some(&picture)).await?);
                if run == 0 {
                    let psnr_db = exact.psnr_db(&std::fs::read(&picture)?);
                    quality.push((peer.kind.name, psnr_db));
                    if let ("vtk", Some(psnr_db)) = (peer.kind.name, psnr_db) {
                        longer =
                            no_worse(&scene, self.pool, &exact, psnr_db)?.map(|s| (s, FrameCosts::default()));
                    }
                }
            }
            if let Some((scene, times)) = &mut longer {
                times.0.push(draw(scene, self.pool, sets[0])?.1);
            }
        }
        let volume = format!("{}, {}^3", self.volume.dtype(), self.volume.side);
        let name = format!("{}, {volume}, {}x{}, {direction}", function.name, size.width, size.height);
        let mut case = Case::measured(&name, "CPU-ms", Better::Lower, ours[0].cpu_ms())
            .with("instructions", format!("{:?}", sets[0]).to_lowercase())
            .with("wall_ms", ours[0].wall_ms())
            .with("seen", exact.seen());
        for (name, psnr_db) in quality {
            case = case.with(&format!("{name}_psnr_db"), psnr_db);
        }
        for (set, times) in sets.iter().zip(&ours).skip(1) {
            let name = format!("{set:?}_cpu_ms").to_lowercase();
            case = case.with(&name, median(&mut times.cpu_ms()));
        }
        if let Some((scene, times)) = &longer {
            case = case
                .with("step_at_vtk_quality", scene.quality.step)
                .with("cpu_ms_at_vtk_quality", median(&mut times.cpu_ms()));
        }
        self.add_peers(&mut case, &theirs, is_first);
        let mut ratios = self.ratios(&case, function, &sets, &ours, false);
        ratios.extend(longer.iter().flat_map(|(_, times)| {
            self.ratios(&case, function, &sets[..1], std::slice::from_ref(times), true)
        }));
        Ok((case, ratios))
    }

    fn add_peers(&self, case: &mut Case, theirs: &[FrameCosts], is_first: bool) {
        let mut why = Vec::new();
        for (peer, times) in self.peers.running.iter().zip(theirs) {
            let name = peer.kind.name;
            case.peers.insert(name.to_owned(), median(&mut times.cpu_ms()));
            case.parameters.insert(format!("{name}_wall_ms"), times.wall_ms().into());
            case.parameters.insert(format!("{name}_tuning"), peer.tuning.clone().into());
            if peer.kind.is_slow && !is_first {
                why.push(format!("{name}: takes seconds, so it draws the first direction only"));
            }
        }
        for (name, reason) in &self.peers.missing {
            case.peers.insert((*name).to_owned(), None);
            why.push(format!("{name}: {reason}"));
        }
        case.why = why.join("; ");
    }

    fn ratios(
        &self,
        case: &Case,
        function: &Function,
        sets: &[Instructions],
        ours: &[FrameCosts],
        is_longer: bool,
    ) -> Vec<Ratio> {
        let Some(Some(vtk)) = case.peers.get("vtk").copied() else { return Vec::new() };
        let ratio = |(&set, times): (&Instructions, &FrameCosts)| {
            let times = vtk / median(&mut times.cpu_ms())?;
            Some(Ratio { is_float: self.volume.is_float, kind: function.kind, set, is_longer, times })
        };
        sets.iter().zip(ours).filter_map(ratio).collect()
    }
}

/// One frame, on all threads.
pub(super) fn draw(scene: &Scene, pool: &BlockPool, set: Instructions) -> Result<(RenderedImage, WorkCosts)> {
    let clock = CostClock::start();
    let frame = cast_with(scene, &pool.snapshot(), &Cancel::new(), set)?;
    Ok((frame, clock.read()))
}

/// Finds the longest of [`LONGER_STEPS`], or the scene's own step, with which the picture is at least `psnr_db` from the
/// reference; returns the scene with that step, or `None` where even its own step is worse.
fn no_worse(scene: &Scene, pool: &BlockPool, exact: &Exact, psnr_db: f64) -> Result<Option<Scene>> {
    let mut best = None;
    for &step in std::iter::once(&scene.quality.step).chain(LONGER_STEPS) {
        let longer = Scene { quality: Quality { step, ..scene.quality }, ..scene.clone() };
        let picture = draw(&longer, pool, Instructions::best())?.0.image.to_rgb8([0.0; 3]);
        if exact.psnr_db(&picture).is_some_and(|found| found < psnr_db) {
            break;
        }
        best = Some(longer);
    }
    Ok(best)
}

/// The sets of vector instructions that this machine has; scalar ones where there are none.
fn vector_sets() -> Vec<Instructions> {
    let all = Instructions::available().iter().copied();
    let vectors: Vec<_> = all.filter(|&set| set != Instructions::Scalar).collect();
    if vectors.is_empty() { vec![Instructions::Scalar] } else { vectors }
}

/// Pixels of the reference picture.
struct Exact {
    pixels: Vec<[u32; 2]>,
    rgba: Vec<[f32; 4]>,
    size: ImageSize,
}

impl Exact {
    fn new(scene: &Scene, volume: &BenchVolume) -> Self {
        let size = scene.size;
        let every = |n: u32| (0..n).step_by(REFERENCE_STRIDE);
        let pixels: Vec<_> =
            every(size.height).flat_map(|y| every(size.width).map(move |x| [x, y])).collect();
        let rgba = cast_pixels(scene, volume, &pixels);
        Self { pixels, rgba, size }
    }

    /// Share of the picture that is not transparent.
    fn seen(&self) -> f64 {
        self.rgba.iter().filter(|rgba| rgba[3] > SEEN).count() as f64 / self.rgba.len() as f64
    }

    /// PSNR of an RGB picture of 8 bits over black, in the pixels where something is to be seen, dB; `None` where nothing
    /// is, or without any difference.
    fn psnr_db(&self, picture: &[u8]) -> Option<f64> {
        let seen = self.pixels.iter().zip(&self.rgba).filter(|(_, rgba)| rgba[3] > SEEN);
        let (mut squares, mut count) = (0.0, 0u32);
        for ([column, row], rgba) in seen {
            let at = 3 * (*row as usize * self.size.width as usize + *column as usize);
            for (found, exact) in picture.get(at..at + 3)?.iter().zip(rgba) {
                squares += (f64::from(*found) - 255.0 * f64::from(*exact)).powi(2);
                count += 1;
            }
        }
        let mean = squares / f64::from(count);
        (mean > 0.0).then(|| 10.0 * (255.0 * 255.0 / mean).log10())
    }
}

/// Memory that the blocks of a volume take, beside the limit of the pool.
fn memory(volume: &BenchVolume, pool: &BlockPool) -> Case {
    let name = format!("memory for blocks, {}, {}^3", volume.dtype(), volume.side);
    Case::measured(&name, "B", Better::Lower, vec![pool.used_bytes() as f64])
        .limited(volume.size_bytes() as f64, "the voxels themselves")
        .aiming(pool.limit_bytes() as f64)
}

/// VTK's time over ours, by type and kind of transfer function.
fn summaries(ratios: &[Ratio]) -> Vec<Case> {
    let best = Instructions::best();
    let mut cases = Vec::new();
    let mut add = |name: String, goal: f64, of: &dyn Fn(&Ratio) -> bool| {
        let times: Vec<f64> = ratios.iter().filter(|r| of(r)).map(|r| r.times).collect();
        let mut case = Case::measured(&name, "x", Better::Higher, times).aiming(goal);
        if case.runs == 0 {
            "needs VTK and these instructions".clone_into(&mut case.why);
        }
        cases.push(case);
    };
    let of = |is_float, kind, set, is_longer| {
        move |r: &Ratio| (r.is_float, r.kind, r.set, r.is_longer) == (is_float, kind, set, is_longer)
    };
    let name = |what: &str, set: Instructions, quality: &str| {
        format!("VTK's processor time over ours{quality}: {what}, {set:?}").to_lowercase()
    };
    let [u8, f32] = [false, true];
    for (quality, is_longer) in [("", false), (" at VTK's quality", true)] {
        let sets = [(Instructions::Avx512, GOAL_U8), (Instructions::Avx2, GOAL_U8_AVX2)];
        for (set, goal) in sets.into_iter().filter(|(set, _)| !is_longer || *set == best) {
            add(name("u8", set, quality), goal, &of(u8, SceneKind::Usual, set, is_longer));
        }
        add(name("f32", best, quality), GOAL_F32, &of(f32, SceneKind::Usual, best, is_longer));
        for (what, kind) in [("sparse", SceneKind::Sparse), ("saturating", SceneKind::Saturating)] {
            for (dtype, is_float) in [("u8", u8), ("f32", f32)] {
                let name = name(&format!("{dtype}, {what}"), best, quality);
                add(name, GOAL_LIGHT, &of(is_float, kind, best, is_longer));
            }
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_picture_is_close_to_the_reference_wherever_something_is_seen() {
        let size = ImageSize { width: 160, height: 128 };
        for is_float in [false, true] {
            let volume = BenchVolume::new(96, is_float).unwrap();
            let pool = volume.pool().unwrap();
            for function in &FUNCTIONS {
                let scene = scene(&volume.view, function, DIRECTIONS[0].1, size);
                let exact = Exact::new(&scene, &volume);
                let (frame, _) = draw(&scene, &pool, Instructions::best()).unwrap();
                assert!(exact.seen() > 0.01, "{}: something must be seen", function.name);
                let psnr_db = exact.psnr_db(&frame.image.to_rgb8([0.0; 3])).unwrap();
                assert!(psnr_db > 35.0, "{}, {}: {psnr_db} dB", function.name, volume.dtype());
            }
        }
    }

    #[test]
    fn a_longer_step_is_taken_while_the_picture_is_good_enough() {
        let volume = BenchVolume::new(96, false).unwrap();
        let pool = volume.pool().unwrap();
        let size = ImageSize { width: 160, height: 128 };
        let scene = scene(&volume.view, &FUNCTIONS[1], DIRECTIONS[0].1, size);
        let exact = Exact::new(&scene, &volume);
        let step = |psnr_db| no_worse(&scene, &pool, &exact, psnr_db).unwrap().map(|s| s.quality.step);
        assert_eq!(step(5.0), LONGER_STEPS.last().copied());
        assert_eq!(step(200.0), None);
        let psnr_db =
            exact.psnr_db(&draw(&scene, &pool, Instructions::best()).unwrap().0.image.to_rgb8([0.0; 3]));
        assert!(step(psnr_db.unwrap()) >= Some(1.0));
    }

    #[test]
    fn a_picture_that_is_off_by_one_everywhere_has_48_decibels() {
        let pixels = vec![[0, 0], [1, 0], [2, 0]];
        // The last one shows nothing, so it does not count.
        let rgba = vec![[10.0 / 255.0, 20.0 / 255.0, 30.0 / 255.0, 1.0], [0.2, 0.2, 0.2, 0.5], [0.0; 4]];
        let exact = Exact { pixels, rgba, size: ImageSize { width: 3, height: 1 } };
        let psnr_db = exact.psnr_db(&[11, 21, 31, 52, 52, 52, 99, 99, 99]).unwrap();
        assert!((psnr_db - 48.13).abs() < 0.01, "{psnr_db}");
        assert_eq!(exact.psnr_db(&[11, 21]), None, "too small a picture");
    }

    #[test]
    fn a_goal_without_a_peer_is_neither_met_nor_missed() {
        let ratio = Ratio {
            is_float: false,
            kind: SceneKind::Sparse,
            set: Instructions::best(),
            is_longer: false,
            times: 20.0,
        };
        let cases = summaries(&[ratio]);
        let light = cases.iter().find(|case| case.name.contains("u8, sparse")).unwrap();
        assert_eq!((light.ours, light.meets_goal), (Some(20.0), Some(true)));
        let float = cases.iter().find(|case| case.name.contains("f32, sparse")).unwrap();
        assert_eq!((float.ours, float.meets_goal), (None, None));
        assert!(!float.why.is_empty());
    }
}
