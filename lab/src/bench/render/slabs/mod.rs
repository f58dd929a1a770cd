//! Slabs beside a plain frame: cost, bytes, and how far a camera may move until they differ from the true picture. Of real
//! volumes ([`Options::files`]), or of the computed one.
//!
//! Slabs are encoded and decoded before they are drawn, as for a viewer. The true picture is that of the plain caster from
//! the moved camera.

mod likeness;
mod volumes;

use array::Result;
use render::{
    Camera, Cancel, Cutting, Image, ImageSize, OpacityPoint, Scene, SlabRequest, Slabs, TransferFunction,
    best_axis, cast, cast_slabs,
};
use serde_json::json;

use super::super::finished::Finished;
use super::super::options::Options;
use super::super::report::{Better, Case, median};
use super::clock::CostClock;
use likeness::{psnr_db, ssim};
use stream::{SlabForm, decode_slabs, encode_slabs, encode_slabs_as};
use volumes::Loaded;

const RUNS: usize = 3;
const SIZE: ImageSize = ImageSize { width: 1024, height: 800 };
const QUICK_SIZE: ImageSize = ImageSize { width: 320, height: 256 };
/// Angles by which the camera turns, about two axes each.
const DEGREES: [f64; 9] = [0.0, 2.0, 4.0, 8.0, 12.0, 16.0, 22.0, 30.0, 45.0];
const QUICK_DEGREES: [f64; 3] = [0.0, 4.0, 16.0];
const ZOOMS: [f64; 2] = [0.8, 1.25];
/// Share of the image's height.
const PAN: f64 = 0.1;
/// Quality at which a picture counts as the true one.
const NEAR_DB: f64 = 35.0;
/// Angle from an axis within which the authors of the method found slabs free of artifacts, degrees.
const IBRAVR_DEGREES: f64 = 16.0;

const GOAL_DEGREES: f64 = 16.0;
const GOAL_BYTES: f64 = 3e6;
const GOAL_COST: f64 = 0.5;

type Points = &'static [(f64, f64)];

/// Opacity over shares of the range of a volume's first look; `None`: that look's own.
const FUNCTIONS: [(&str, Option<Points>); 4] = [
    ("first look", None),
    ("haze", Some(&[(0.2, 0.0), (1.0, 0.06)])),
    ("dense", Some(&[(0.45, 0.0), (0.65, 0.5)])),
    ("opaque", Some(&[(0.4, 0.0), (0.45, 1.0)])),
];

/// A set of slabs.
struct SlabSet {
    name: &'static str,
    is_axis: bool,
    count: u32,
    reduction: u32,
    /// Whether the goals are for this set.
    is_chosen: bool,
}

const SETS: [SlabSet; 6] = [
    SlabSet { name: "one plane", is_axis: false, count: 1, reduction: 1, is_chosen: false },
    SlabSet { name: "32 planes, half", is_axis: false, count: 32, reduction: 2, is_chosen: true },
    SlabSet { name: "64 planes, half", is_axis: false, count: 64, reduction: 2, is_chosen: false },
    SlabSet { name: "32 planes, full", is_axis: false, count: 32, reduction: 1, is_chosen: false },
    SlabSet { name: "16 axis slabs", is_axis: true, count: 16, reduction: 1, is_chosen: false },
    SlabSet { name: "32 axis slabs", is_axis: true, count: 32, reduction: 1, is_chosen: false },
];

/// Measurements of the chosen set, for one volume and function.
#[derive(Clone, Copy)]
struct SetQuality {
    is_typical: bool,
    degrees: f64,
    bytes: f64,
    cost: f64,
}

pub(super) async fn run(options: &Options, folder: &std::path::Path, finished: &mut Finished) -> Result<()> {
    let mut found = Vec::new();
    for volume in volumes::load(options, folder).await? {
        for (name, points) in FUNCTIONS {
            let scene = scene(&volume, points, options);
            let truths = Truths::new(&scene, &volume, options)?;
            for set in SETS.iter().filter(|set| !options.is_quick || set.is_chosen) {
                let (case, of_set) = case(&volume, (name, points.is_none()), &scene, &truths, set, options)?;
                finished.add(case);
                found.extend(Some(of_set).filter(|_| set.is_chosen));
            }
        }
    }
    finished.add_all(summaries(&found));
    Ok(())
}

fn scene(volume: &Loaded, points: Option<Points>, options: &Options) -> Scene {
    let [low, high] = volume.first_look.range;
    let point = |&(share, opacity): &(f64, f64)| OpacityPoint { value: low + (high - low) * share, opacity };
    let opacity = points.map(|points| points.iter().map(point).collect());
    let opacity = opacity.unwrap_or_else(|| volume.first_look.opacity.clone());
    let size = if options.is_quick { QUICK_SIZE } else { SIZE };
    let function = super::scenes::FUNCTIONS[0];
    Scene {
        transfer: TransferFunction { opacity, ..volume.first_look.clone() },
        clip: None,
        finest_level: volume.view.levels[0].number,
        ..super::scenes::scene(&volume.view, &function, Camera::DEFAULT_DIRECTION, size)
    }
}

/// True pictures of a scene from cameras that have moved.
struct Truths {
    turned: Vec<(f64, [(Camera, Image); 2])>,
    zoomed: Vec<(Camera, Image)>,
    panned: (Camera, Image),
}

impl Truths {
    fn new(scene: &Scene, volume: &Loaded, options: &Options) -> Result<Self> {
        let true_from = |camera: Camera| {
            let scene = Scene { camera, ..scene.clone() };
            Ok((camera, cast(&scene, &volume.pool.snapshot(), &Cancel::new())?.image))
        };
        let degrees: &[f64] = if options.is_quick { &QUICK_DEGREES } else { &DEGREES };
        let turned = |&degrees: &f64| {
            let angle = degrees.to_radians();
            let turned = [scene.camera.orbit(angle, 0.0), scene.camera.orbit(0.0, angle)];
            Ok((degrees, [true_from(turned[0])?, true_from(turned[1])?]))
        };
        Ok(Self {
            turned: degrees.iter().map(turned).collect::<Result<_>>()?,
            zoomed: ZOOMS.iter().map(|&by| true_from(scene.camera.zoom(by))).collect::<Result<_>>()?,
            panned: true_from(scene.camera.pan(PAN, 0.0))?,
        })
    }
}

fn case(
    volume: &Loaded,
    (function, is_typical): (&str, bool),
    scene: &Scene,
    truths: &Truths,
    set: &SlabSet,
    options: &Options,
) -> Result<(Case, SetQuality)> {
    let axis = best_axis(&scene.view, &scene.camera, None);
    let planes = SlabRequest::planes(scene.camera, set.count);
    let cutting = if set.is_axis { Cutting::Axis(axis) } else { Cutting::Planes };
    let request = SlabRequest { cutting, reduction: set.reduction, ..planes };
    let cost = Cost::measured(volume, scene, &request, options)?;
    let clock = CostClock::start();
    let (form, bytes) = encode_slabs(&cost.slabs)?;
    let encode_ms = clock.read().cpu_secs * 1e3;
    let slabs = decode_slabs(&bytes)?;
    let sizes = [SlabForm::Exact, SlabForm::Jpeg]
        .map(|form| encode_slabs_as(&cost.slabs, form).map(|bytes| bytes.len()));
    let [exact_bytes, jpeg_bytes] = sizes;
    let mut worst = Vec::new();
    let mut shown = Vec::new();
    for (degrees, views) in &truths.turned {
        let likes = [likeness(&slabs, &views[0])?, likeness(&slabs, &views[1])?];
        let (db, like) = (likes[0].0.min(likes[1].0), likes[0].1.min(likes[1].1));
        worst.push((*degrees, db));
        shown.push(json!({ "degrees": degrees, "psnr_db": rounded(db), "ssim": rounded(like) }));
    }
    let degrees = degrees_until(&worst, NEAR_DB);
    let name = format!("{}, {}, {function}: turned until under {NEAR_DB} dB", set.name, volume.name);
    let mut case = Case::measured(&name, "degrees", Better::Higher, vec![degrees])
        .with("bytes", bytes.len())
        .with("form", if form == SlabForm::Jpeg { "jpeg" } else { "exact" })
        .with("exact_bytes", exact_bytes?)
        .with("jpeg_bytes", jpeg_bytes?)
        .with("texels", slabs.texels())
        .with("frame_cpu_ms", rounded(cost.frame_ms))
        .with("extra_cpu_ms", rounded(cost.extra_ms))
        .with("extra_frames", rounded(cost.extra_ms / cost.frame_ms))
        .with("encode_cpu_ms", rounded(encode_ms))
        .with("until_30_db", rounded(degrees_until(&worst, 30.0)))
        .with("turned", shown);
    for (by, view) in ZOOMS.iter().zip(&truths.zoomed) {
        let (db, like) = likeness(&slabs, view)?;
        case = case.with(&format!("zoomed_{by}"), json!({ "psnr_db": rounded(db), "ssim": rounded(like) }));
    }
    let (db, like) = likeness(&slabs, &truths.panned)?;
    case = case.with("panned", json!({ "psnr_db": rounded(db), "ssim": rounded(like) }));
    case.peers.insert("ibravr".into(), Some(IBRAVR_DEGREES));
    "ibravr: degrees from an axis within which its authors saw no artifacts, not measured here"
        .clone_into(&mut case.why);
    let cost = cost.extra_ms / cost.frame_ms;
    Ok((case, SetQuality { is_typical, degrees, bytes: bytes.len() as f64, cost }))
}

/// Processor time of a plain frame and of slabs, in turn.
struct Cost {
    frame_ms: f64,
    extra_ms: f64,
    slabs: Slabs,
}

impl Cost {
    fn measured(volume: &Loaded, scene: &Scene, request: &SlabRequest, options: &Options) -> Result<Self> {
        let (blocks, cancel) = (volume.pool.snapshot(), Cancel::new());
        cast(scene, &blocks, &cancel)?;
        let (mut slabs, _) = cast_slabs(scene, request, &blocks, &cancel)?;
        let (mut frames, mut extras) = (Vec::new(), Vec::new());
        for _ in 0..options.runs.unwrap_or(RUNS).max(1) {
            let clock = CostClock::start();
            cast(scene, &blocks, &cancel)?;
            frames.push(clock.read().cpu_secs * 1e3);
            let clock = CostClock::start();
            slabs = cast_slabs(scene, request, &blocks, &cancel)?.0;
            extras.push(clock.read().cpu_secs * 1e3);
        }
        let [frame_ms, extra_ms] = [&mut frames, &mut extras].map(|times| median(times).unwrap_or(f64::NAN));
        Ok(Self { frame_ms, extra_ms, slabs })
    }
}

/// Compares the view of slabs with the true picture: PSNR, dB, and SSIM, where something is seen.
fn likeness(slabs: &Slabs, (camera, exact): &(Camera, Image)) -> Result<(f64, f64)> {
    let drawn = slabs.draw(camera, exact.size)?;
    Ok((psnr_db(&drawn, exact), ssim(&drawn, exact)))
}

/// Angle at which quality falls below a limit, interpolated between the measured angles.
fn degrees_until(worst: &[(f64, f64)], limit: f64) -> f64 {
    let mut before: Option<(f64, f64)> = None;
    for &(degrees, db) in worst {
        if db < limit {
            let between =
                |(from, above): (f64, f64)| from + (degrees - from) * (above - limit) / (above - db);
            return before.map_or(0.0, between);
        }
        before = Some((degrees, db));
    }
    before.map_or(0.0, |(degrees, _)| degrees)
}

/// The chosen set over all volumes, at its worst.
fn summaries(found: &[SetQuality]) -> Vec<Case> {
    let typical = || found.iter().filter(|found| found.is_typical);
    let worst =
        |values: Vec<f64>, pick: fn(f64, f64) -> f64| values.into_iter().reduce(pick).into_iter().collect();
    let degrees = worst(typical().map(|found| found.degrees).collect(), f64::min);
    let bytes = worst(typical().map(|found| found.bytes).collect(), f64::max);
    let cost = worst(found.iter().map(|found| found.cost).collect(), f64::max);
    let name = |what: &str| format!("32 planes, half: {what}");
    vec![
        Case::measured(
            &name("turned until under 35 dB, first looks, the least"),
            "degrees",
            Better::Higher,
            degrees,
        )
        .aiming(GOAL_DEGREES),
        Case::measured(&name("bytes, first looks, the most"), "B", Better::Lower, bytes).aiming(GOAL_BYTES),
        Case::measured(&name("processor time over a frame's, the most"), "frames", Better::Lower, cost)
            .aiming(GOAL_COST),
    ]
}

/// Rounds to three decimals.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_lie_between_those_that_were_looked_at() {
        let falling = [(0.0, 45.0), (4.0, 40.0), (8.0, 30.0), (16.0, 20.0)];
        assert_eq!(degrees_until(&falling, 35.0), 6.0);
        assert_eq!(degrees_until(&falling, 50.0), 0.0);
        assert_eq!(degrees_until(&falling, 10.0), 16.0);
    }

    #[test]
    fn a_summary_is_the_worst_of_all_volumes() {
        let found = |is_typical, degrees, cost| SetQuality { is_typical, degrees, bytes: 1e6, cost };
        let cases = summaries(&[found(true, 20.0, 0.3), found(false, 3.0, 0.6), found(true, 17.0, 0.4)]);
        let values: Vec<_> = cases.iter().map(|case| (case.ours, case.meets_goal)).collect();
        assert_eq!(values, [(Some(17.0), Some(true)), (Some(1e6), Some(true)), (Some(0.6), Some(false))]);
    }
}
