//! Processes that `mpirun` starts on this machine draw pictures together, view after view; rank 0 draws the same alone and
//! compares. The processes are this test program itself.

use std::process::Command;
use std::sync::Arc;

use array::conformance::one_array;
use array::{Block, BlockKey, Content, Dataset, Error, Result};
use compose::{Balance, Communicator, Composed, Method, broadcast, collect, draw};
use corridor_mpi::MAX_UNDER_WAY;
use render::{
    BlockPool, Camera, Cancel, Demand, ImageSize, Isosurface, LightShares, Quality, Rect, Scene,
    TransferFunction, VolumeView, cast, demand,
};
use view::Mode;

/// Voxels along a side of the volume, and of its blocks.
const SIDE: u64 = 64;
const BLOCK: u64 = 16;
const SIZE: ImageSize = ImageSize { width: 160, height: 128 };
/// Between views, radians.
const TURN: f64 = 0.3;

fn mpirun(processes: usize) -> (bool, String) {
    let own = std::env::current_exe().expect("a path");
    let output = Command::new("mpirun")
        // Tests run in containers too, as root and on fewer cores than processes.
        .args(["--allow-run-as-root", "--oversubscribe", "-n", &processes.to_string()])
        .arg(own)
        .args(["--ignored", "--exact", "one_process_among_others", "--nocapture"])
        // A core each for the processes' pools is more than there are.
        .env("RAYON_NUM_THREADS", "1")
        .output()
        .expect("mpirun is installed");
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (output.status.success(), said)
}

#[test]
fn processes_draw_what_one_draws() {
    for processes in [2, 3, 8] {
        let (is_done, said) = mpirun(processes);
        assert!(is_done, "{said}");
        let pictures = said.matches(&format!("{processes} ranks, ")).count();
        assert_eq!(pictures, if processes == 3 { 2 } else { 3 }, "{said}");
    }
}

/// One that is alone has nobody to draw with; it says so instead of waiting.
#[test]
fn one_alone_is_told_so() {
    let (is_done, said) = mpirun(1);
    assert!(!is_done && said.contains("2 processes or more"), "{said}");
}

#[test]
#[ignore = "started by mpirun, in the tests above"]
fn one_process_among_others() {
    let process = corridor_mpi::join().expect("MPI starts").expect("2 processes or more");
    if let Err(error) = run(&process) {
        eprintln!("rank {}: {error}", process.rank());
        process.abort(1);
    }
}

fn run(ranks: &dyn Communicator) -> Result<()> {
    let dataset = one_array("|u1".parse()?, &[SIDE; 3], &[BLOCK; 3]);
    let view = Arc::new(VolumeView::new(&dataset, 0, &[])?);
    let (mut balance, mut took) = (Balance::new(), Vec::new());
    let swap = ranks.size().is_power_of_two().then_some(Method::BinarySwap);
    for (number, method) in
        [Some(Method::DirectSend), swap, Some(Method::RadixK(4))].into_iter().flatten().enumerate()
    {
        let scene = scene(&view, number);
        let all = demand(&view, &scene.camera, SIZE, &scene.portion(), Some(scene.finest_level), usize::MAX)?;
        let whole = pool(&dataset, &view, &all)?;
        let tree = balance.plan(ranks, &scene, &whole.snapshot(), &all, &took)?;
        let own = pool(&dataset, &view, &tree.share(ranks.rank()).demand(&scene, &all))?;
        let part = draw(ranks, &scene, &tree, method, &own.snapshot(), &Cancel::new())?;
        let (rounds, messages) = match method {
            Method::BinarySwap => (ranks.size().ilog2() as usize, ranks.size().ilog2() as usize),
            Method::DirectSend => (1, ranks.size() - 1),
            _ => (part.traffic.rounds, part.traffic.messages),
        };
        if (part.traffic.rounds, part.traffic.messages) != (rounds, messages) {
            return Err(Error::internal(format!(
                "expected {rounds} rounds, {messages} messages, found {:?}",
                part.traffic
            )));
        }
        let pixels = collect(ranks, message(&part))?;
        if ranks.rank() == 0 {
            let off = difference(&pixels, &cast(&scene, &whole.snapshot(), &Cancel::new())?.image.rgba)?;
            eprintln!("{} ranks, {method:?}: off by {off:.3} of 255, {:?}", ranks.size(), part.traffic);
        }
        took = part.work;
    }
    many_under_way(ranks)?;
    // A message larger than MPI sends at once.
    let large = vec![7u8; 9 << 20];
    let heard = broadcast(ranks, if ranks.rank() == 0 { large.clone() } else { Vec::new() })?;
    let count =
        collect(ranks, vec![u8::from(heard == large)])?.iter().filter(|is_same| **is_same == 1).count();
    if ranks.rank() == 0 && count != ranks.size() {
        return Err(Error::internal(format!(
            "expected {} ranks to hear the same, found {count}",
            ranks.size()
        )));
    }
    Ok(())
}

/// Everybody has as many messages on their way to everybody as may be, larger than MPI sends unasked, before anybody receives one.
fn many_under_way(ranks: &dyn Communicator) -> Result<()> {
    let others = || (0..ranks.size()).filter(|&rank| rank != ranks.rank());
    let message = |from: usize, number: usize| vec![u8::try_from(16 * from + number).unwrap_or(0); 64 << 10];
    for number in 0..MAX_UNDER_WAY {
        others().try_for_each(|to| ranks.send(to, message(ranks.rank(), number)))?;
    }
    for (number, from) in (0..MAX_UNDER_WAY).flat_map(|number| others().map(move |from| (number, from))) {
        if ranks.receive(from)? != message(from, number) {
            return Err(Error::internal(format!("expected message {number} of rank {from}, found another")));
        }
    }
    Ok(())
}

/// A ball in a haze, turned a little for each picture.
fn scene(view: &Arc<VolumeView>, number: usize) -> Scene {
    Scene {
        view: Arc::clone(view),
        camera: Camera::framing(&view.bounds(), Camera::DEFAULT_DIRECTION).orbit(TURN * number as f64, 0.0),
        transfer: TransferFunction::ramp(20.0, 250.0, 0.1),
        surfaces: vec![Isosurface { value: 180.0, color: [0.9, 0.3, 0.2], opacity: 0.6 }],
        slices: Vec::new(),
        wires: Default::default(),
        geometry: Default::default(),
        mode: Mode::Composite,
        color_by: None,
        layers: Vec::new(),
        is_lit: false,
        light: LightShares::default(),
        size: SIZE,
        clip: None,
        quality: Quality::STILL,
        finest_level: 0,
    }
}

/// A pool with the blocks of a demand.
fn pool(dataset: &Dataset, view: &Arc<VolumeView>, wanted: &Demand) -> Result<BlockPool> {
    let pool = BlockPool::new(Arc::clone(view), wanted.pool_bytes);
    for block in &wanted.blocks {
        pool.insert(&made(dataset, block.key)?)?;
    }
    Ok(pool)
}

/// A block of the field.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a byte")]
fn made(dataset: &Dataset, key: BlockKey) -> Result<Block> {
    let selection = dataset.arrays[0].levels[0].block_selection(key.index)?;
    let ranges = selection.ranges();
    let [zs, ys, xs] = [0, 1, 2].map(|axis| ranges[axis].start..ranges[axis].start + ranges[axis].count);
    let middle = SIDE as f64 / 2.0;
    let mut bytes = Vec::new();
    for z in zs {
        for y in ys.clone() {
            for x in xs.clone() {
                let [x, y, z] = [x, y, z].map(|n| n as f64 - middle);
                let value = 255.0 - 8.0 * (x * x + y * y + 2.0 * z * z).sqrt() + 20.0 * (0.7 * x).sin();
                bytes.push(value.clamp(0.0, 255.0) as u8);
            }
        }
    }
    Ok(Block { key, content: Content::Data { bytes: bytes.into(), range: None } })
}

/// Returns the rectangle and the pixels of a part as bytes.
fn message(part: &Composed) -> Vec<u8> {
    let rect = part.piece.rect;
    let head = [rect.left, rect.top, rect.width, rect.height];
    let pixels = part.piece.rgba.as_flattened().iter().flat_map(|v| v.to_le_bytes());
    head.iter().flat_map(|v| v.to_le_bytes()).chain(pixels).collect()
}

/// Largest difference between an image and what all ranks have of it, in 255ths.
fn difference(mut messages: &[u8], image: &[[f32; 4]]) -> Result<f32> {
    let short = || Error::internal("expected whole parts of an image");
    let mut many = vec![[0.0; 4]; image.len()];
    let mut next = || -> Result<Option<[u8; 4]>> {
        let Some((word, rest)) = messages.split_first_chunk() else { return Ok(None) };
        messages = rest;
        Ok(Some(*word))
    };
    while let Some(left) = next()? {
        let mut word = || next()?.map(u32::from_le_bytes).ok_or_else(short);
        let rect = Rect { left: u32::from_le_bytes(left), top: word()?, width: word()?, height: word()? };
        for row in rect.top..rect.top + rect.height {
            for column in rect.left..rect.left + rect.width {
                for part in &mut many[Rect::whole(SIZE).index(column, row)] {
                    *part = f32::from_le_bytes(next()?.ok_or_else(short)?);
                }
            }
        }
    }
    let pairs = image.as_flattened().iter().zip(many.as_flattened());
    let off = pairs.map(|(a, b)| (a - b).abs() * 255.0).fold(0.0, f32::max);
    if off <= 1.0 {
        Ok(off)
    } else {
        Err(Error::internal(format!("expected the same picture, found one off by {off}")))
    }
}
