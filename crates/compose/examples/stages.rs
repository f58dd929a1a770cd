//! What the stages of a picture by many ranks cost, for the model in `docs/ranks.md`: casting by one and by many shares, laying
//! pieces over one another, and what a whole exchange takes. `cargo run --release -p corridor-compose --example stages`.
//! The least of several runs each: processor time where one thread works, the clock's where several do.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement for people")]

#[path = "../../render/tests/common/mod.rs"]
mod common;

extern crate render as corridor_render;

use std::time::{Duration, Instant};

use array::Result;
use common::Synthetic;
use corridor_compose::{Balance, Method, Schedule, Tree, compose, draw, over, threads};
use glam::DVec3;
use render::{Cancel, ImageSize, Part, Piece, Rect, Scene, Share, Snapshot, cast_part, demand};

const SIDE: u64 = 192;
const SIZE: ImageSize = ImageSize { width: 1024, height: 800 };
const RUNS: usize = 7;
const RANKS: usize = 8;

fn waves(p: DVec3) -> f64 {
    (110.0 + 60.0 * (0.11 * p.x).sin() * (0.13 * p.y).cos() + 50.0 * (0.07 * p.z).sin()).clamp(0.0, 255.0)
}

/// The shortest of several runs by this thread's processor time, milliseconds: a busy machine changes little.
fn least(mut work: impl FnMut()) -> f64 {
    let run = |_| {
        let began = processor_ms();
        work();
        processor_ms() - began
    };
    (0..RUNS).map(run).fold(f64::INFINITY, f64::min)
}

/// What this thread has computed so far, as Linux counts it.
fn processor_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e6
}

/// The shortest of several runs by the clock, milliseconds.
#[expect(clippy::disallowed_methods, reason = "what is measured")]
fn soonest(mut work: impl FnMut()) -> f64 {
    let run = |_| {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    (0..RUNS).map(run).min().unwrap_or(Duration::MAX).as_secs_f64() * 1e3
}

fn main() {
    let pixels = Rect::whole(SIZE).pixels();
    let (mut front, behind) = (vec![[0.1f32; 4]; pixels], vec![[0.2f32; 4]; pixels]);
    let ten = least(|| (0..10).for_each(|_| over(&mut front, &behind)));
    println!("over, 1024 x 800: {:.2} ms", ten / 10.0);
    for (method, name) in [(Method::DirectSend, "direct send"), (Method::BinarySwap, "binary swap")] {
        let took = soonest(|| exchange(method));
        println!("exchange of {RANKS} full images by {name}, all in this process: {took:.1} ms");
    }
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    one_thread.install(casting);
    scaling();
}

/// Whole pictures by ranks of one thread each, as many as there are cores.
fn scaling() {
    let synthetic = Synthetic::new([SIDE; 3], [32; 3], waves).typed("|u1".parse().unwrap());
    let scene = Scene { size: SIZE, ..synthetic.scene() };
    let pool = synthetic.full_pool();
    let blocks = pool.snapshot();
    let all = demand(&scene.view, &scene.camera, scene.size, &scene.portion(), Some(0), usize::MAX).unwrap();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for count in [1, 2, 4, 8, 16, 32].into_iter().filter(|&count| count <= cores) {
        let tree = Balance::new().cut(&scene, &blocks, &all, count).unwrap();
        for method in [Method::DirectSend, Method::BinarySwap] {
            let took = soonest(|| together(&scene, &tree, &blocks, method));
            println!("{count} ranks of one thread on {cores} cores, {method:?}: {took:.1} ms");
        }
    }
}

fn together(scene: &Scene, tree: &Tree, blocks: &Snapshot, method: Method) {
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
                let mut cast = |rect| Ok(Piece::transparent(rect, false));
                compose(&rank, order, schedule, Rect::whole(SIZE), &mut cast).map(|_| ())
            };
            std::thread::Builder::new().name("rank".into()).spawn_scoped(scope, run).unwrap();
        }
    });
}

/// One caster; and shares one after the other, each in one piece and in eight.
fn casting() {
    let synthetic = Synthetic::new([SIDE; 3], [32; 3], waves).typed("|u1".parse().unwrap());
    let scene = Scene { size: SIZE, ..synthetic.scene() };
    let pool = synthetic.full_pool();
    let blocks = pool.snapshot();
    let all = demand(&scene.view, &scene.camera, scene.size, &scene.portion(), Some(0), usize::MAX).unwrap();
    let one = least(|| drop(cast(&scene, Share::WHOLE, Rect::whole(SIZE), &blocks)));
    println!("one caster, {SIDE}^3 bytes, 1024 x 800: {one:.1} ms");
    for ranks in [2, 4, RANKS, 64] {
        let tree = Balance::new().cut(&scene, &blocks, &all, ranks).unwrap();
        let plan = least(|| drop(Balance::new().cut(&scene, &blocks, &all, ranks).unwrap()));
        let (whole, most) = casts(&scene, &tree, &blocks, 1);
        let (parts, _) = casts(&scene, &tree, &blocks, 8);
        let covered: usize =
            (0..ranks).map(|rank| tree.share(rank).footprint(&scene).unwrap().pixels()).sum();
        let needed: usize = (0..ranks).map(|rank| tree.share(rank).demand(&scene, &all).blocks.len()).sum();
        println!(
            "{ranks} shares: all casts {whole:.1} ms (longest by mean {:.2}), in 8 parts each {parts:.1} ms; cutting \
             {plan:.1} ms; pieces cover {:.2} images; {needed} blocks instead of {}",
            most * ranks as f64 / whole,
            covered as f64 / Rect::whole(SIZE).pixels() as f64,
            all.blocks.len()
        );
    }
}

/// All casts of all ranks, each footprint in so many parts; and the longest of a rank.
fn casts(scene: &Scene, tree: &Tree, blocks: &Snapshot, parts: usize) -> (f64, f64) {
    let of_rank = |rank: usize| {
        let share = tree.share(rank);
        let footprint = share.footprint(scene).unwrap();
        least(|| (0..parts).for_each(|part| drop(cast(scene, share, footprint.part(part, parts), blocks))))
    };
    let took: Vec<f64> = (0..tree.ranks()).map(of_rank).collect();
    (took.iter().sum(), took.into_iter().fold(0.0, f64::max))
}

fn cast(scene: &Scene, share: Share, rect: Rect, blocks: &Snapshot) -> Piece {
    cast_part(scene, &Part { share, rect, finest: None }, blocks, &Cancel::new()).unwrap().piece
}
