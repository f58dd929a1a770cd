//! Costs of the stages of a picture by many ranks, for the model in `docs/ranks.md`: casting by one and by many shares, laying
//! pieces over one another, and a whole exchange. `cargo run --release -p corridor-compose --example stages`.
//! Each number is the median of several runs: processor time where one thread works, elapsed time where several do. Variants
//! that are compared run in turn, so that a machine that others use is as busy for each.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement for people")]

#[path = "../../render/tests/common/mod.rs"]
mod common;

extern crate render as corridor_render;

use std::time::Instant;

use array::Result;
use common::Synthetic;
use corridor_compose::{Balance, KdTree, Method, Schedule, compose, draw, threads};
use glam::DVec3;
use render::{
    Cancel, DrawnPart, ImagePart, ImageSize, PartialImage, Rect, Scene, Snapshot, SubVolume, cast_part,
    demand, over,
};
use rustix::time::{ClockId, clock_gettime};

/// Sides of the volumes and of their blocks, voxels.
const VOLUMES: [(u64, u64); 2] = [(192, 32), (256, 64)];
const SIZE: ImageSize = ImageSize { width: 1024, height: 800 };
const RUNS: usize = 7;
const RANKS: usize = 8;

fn waves(p: DVec3) -> f64 {
    (110.0 + 60.0 * (0.11 * p.x).sin() * (0.13 * p.y).cos() + 50.0 * (0.07 * p.z).sin()).clamp(0.0, 255.0)
}

/// This thread's processor time for one run, milliseconds.
fn processor_ms(work: impl FnOnce()) -> f64 {
    let now = || clock_gettime(ClockId::ThreadCPUTime);
    let began = now();
    work();
    let took = now() - began;
    took.tv_sec as f64 * 1e3 + took.tv_nsec as f64 / 1e6
}

/// The median of several runs by this thread's processor time, milliseconds.
fn usual(mut work: impl FnMut()) -> f64 {
    median((0..RUNS).map(|_| processor_ms(&mut work)).collect())
}

/// The median of several runs by the clock, milliseconds.
#[expect(clippy::disallowed_methods, reason = "what is measured")]
fn usual_by_clock(mut work: impl FnMut()) -> f64 {
    let run = |_| {
        let began = Instant::now();
        work();
        began.elapsed().as_secs_f64() * 1e3
    };
    median((0..RUNS).map(run).collect())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let pixels = Rect::whole(SIZE).pixels();
    let (mut front, behind) = (vec![[0.1f32; 4]; pixels], vec![[0.2f32; 4]; pixels]);
    println!("over, 1024 x 800: {:.2} ms", usual(|| over(&mut front, &behind)));
    let part = pixels / RANKS;
    let parts = usual(|| (0..RANKS).for_each(|_| over(&mut front[..part], &behind[..part])));
    println!("over, {RANKS} times an {RANKS}th of that: {parts:.2} ms");
    for (method, name) in [(Method::DirectSend, "direct send"), (Method::BinarySwap, "binary swap")] {
        let took = usual_by_clock(|| exchange(method));
        println!("exchange of {RANKS} full images by {name}, all in this process: {took:.1} ms");
    }
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for (side, block) in VOLUMES {
        println!("{side}^3 bytes in blocks of {block}^3, 1024 x 800, threads of one core:");
        one_thread.install(|| casting(side, block));
    }
    scaling();
}

/// Whole pictures by ranks of one thread each, as many as there are cores.
fn scaling() {
    let (side, block) = VOLUMES[0];
    let synthetic = Synthetic::new([side; 3], [block; 3], waves).typed("|u1".parse().unwrap());
    let scene = Scene { size: SIZE, ..synthetic.scene() };
    let pool = synthetic.full_pool();
    let blocks = pool.snapshot();
    let all = demand(&scene.view, &scene.camera, scene.size, &scene.portion(), Some(0), usize::MAX).unwrap();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for count in [1, 2, 4, 8, 16, 32].into_iter().filter(|&count| count <= cores) {
        let tree = Balance::new().cut(&scene, &blocks, &all, count).unwrap();
        for method in [Method::DirectSend, Method::BinarySwap] {
            let took = usual_by_clock(|| together(&scene, &tree, &blocks, method));
            println!("{count} ranks of one thread on {cores} cores, {method:?}: {took:.1} ms");
        }
    }
}

fn together(scene: &Scene, tree: &KdTree, blocks: &Snapshot, method: Method) {
    std::thread::scope(|scope| {
        for rank in threads(tree.ranks()).unwrap() {
            let run = move || {
                let own = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                own.install(|| draw(&rank, scene, tree, method, blocks, &Cancel::new()).map(|_| ()))
            };
            std::thread::Builder::new().name("rank".into()).spawn_scoped(scope, run).unwrap();
        }
    });
}

/// All ranks exchange pieces that cover all.
fn exchange(method: Method) {
    let schedule = Schedule::new(method, RANKS).unwrap();
    let order: Vec<usize> = (0..RANKS).collect();
    std::thread::scope(|scope| {
        for rank in threads(RANKS).unwrap() {
            let (schedule, order) = (&schedule, &order);
            let run = move || -> Result<()> {
                let mut cast = |rect| Ok(PartialImage::transparent(rect, false));
                compose(&rank, order, schedule, Rect::whole(SIZE), &mut cast).map(|_| ())
            };
            std::thread::Builder::new().name("rank".into()).spawn_scoped(scope, run).unwrap();
        }
    });
}

/// One caster; and shares one after the other, each in one piece and in eight.
fn casting(side: u64, block: u64) {
    let synthetic = Synthetic::new([side; 3], [block; 3], waves).typed("|u1".parse().unwrap());
    let scene = Scene { size: SIZE, ..synthetic.scene() };
    let pool = synthetic.full_pool();
    let blocks = pool.snapshot();
    let all = demand(&scene.view, &scene.camera, scene.size, &scene.portion(), Some(0), usize::MAX).unwrap();
    for ranks in [1, 2, 4, RANKS, 64] {
        let tree = Balance::new().cut(&scene, &blocks, &all, ranks).unwrap();
        let plan = usual(|| drop(Balance::new().cut(&scene, &blocks, &all, ranks).unwrap()));
        let (mut one, mut whole, mut parts, mut busiest, mut samples) = (vec![], vec![], vec![], vec![], 0.0);
        for _ in 0..RUNS {
            one.push(processor_ms(|| drop(cast(&scene, SubVolume::WHOLE, Rect::whole(SIZE), &blocks))));
            let (took, most, drawn) = casts(&scene, &tree, &blocks, 1);
            whole.push(took);
            busiest.push(most * ranks as f64 / took);
            samples = drawn;
            parts.push(casts(&scene, &tree, &blocks, 8).0);
        }
        let covered: usize =
            (0..ranks).map(|rank| tree.share(rank).footprint(&scene).unwrap().pixels()).sum();
        let needed: usize = (0..ranks).map(|rank| tree.share(rank).demand(&scene, &all).blocks.len()).sum();
        let (one, whole) = (median(one), median(whole));
        println!(
            "{ranks} shares: all casts {whole:.1} ms, {:.2} of one caster's {one:.1} (busiest by mean {:.2}), in 8 parts \
             each {:.1} ms; {samples:.0} samples; cutting {plan:.1} ms; pieces cover {:.2} images; {needed} blocks instead of {}",
            whole / one,
            median(busiest),
            median(parts),
            covered as f64 / Rect::whole(SIZE).pixels() as f64,
            all.blocks.len()
        );
    }
}

/// All casts of all ranks, each footprint in so many parts: what they took together, the longest of a rank, both in
/// milliseconds, and the samples that were drawn.
fn casts(scene: &Scene, tree: &KdTree, blocks: &Snapshot, parts: usize) -> (f64, f64, f64) {
    let (mut sum, mut most, mut samples) = (0.0, 0.0f64, 0.0);
    for rank in 0..tree.ranks() {
        let share = tree.share(rank);
        let footprint = share.footprint(scene).unwrap();
        let took = processor_ms(|| {
            for part in 0..parts {
                let drawn = cast(scene, share, footprint.part(part, parts), blocks);
                samples += drawn.work.iter().map(|(_, work)| work).sum::<f64>();
            }
        });
        (sum, most) = (sum + took, most.max(took));
    }
    (sum, most, samples)
}

fn cast(scene: &Scene, share: SubVolume, rect: Rect, blocks: &Snapshot) -> DrawnPart {
    cast_part(scene, &ImagePart { sub_volume: share, rect, finest: None }, blocks, &Cancel::new()).unwrap()
}
