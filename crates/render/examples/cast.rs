//! Draws a synthetic volume and says what it cost: `cast [voxels a side] [element type] [scenes, or all] [folder for PNGs]`.
//!
//! Scenes: `haze` (most of the volume faintly visible), `dense` (about a third visible, rays end early), `fog`
//! (everything faintly visible), `sparse` (a few thin shells), `solid` (an opaque surface), `iso` (an isosurface alone),
//! `mixed` (an isosurface seen through another one in a haze), `largest` and `smallest` values along rays, `planes` (three
//! slices alone), `cut` (slices in a haze). Each as it is, lit, and but for extreme values in the colors of another array (here
//! of the same one, from end to end).

#![expect(clippy::print_stdout, reason = "an example talks to a terminal")]
#![expect(clippy::cast_possible_truncation, reason = "values lie between 0 and 255")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use array::{
    Affine, ArrayInfo, Axis, AxisKind, Block, Content, DType, Dataset, DatasetId, Decoding, Error,
    Generation, Level, LevelOrigin, Meaning, Result, choose_blocks,
};
use corridor_render::{
    Background, BlockPool, Camera, Cancel, ColorByArray, ImageSize, Isosurface, LightShares, OpacityPoint,
    Quality, Scene, Slice, TransferFunction, VolumeView, cast,
};
use view::{Mode, SpaceAxis};

/// Pictures per measurement.
const REPEATS: u32 = 10;

type Points = &'static [(f64, f64)];

/// Slices with their place as a share of the side.
type Planes = &'static [(SpaceAxis, f64)];

const PLANES: Planes = &[(SpaceAxis::X, 0.5), (SpaceAxis::Y, 0.5), (SpaceAxis::Z, 0.5)];

/// Name, opacity, isovalues with their opacity, what is drawn besides these and slices.
type SceneOf = (&'static str, Points, Points, Mode, Planes);

const SCENES: [SceneOf; 11] = [
    ("haze", &[(90.0, 0.0), (255.0, 0.06)], &[], Mode::Composite, &[]),
    ("dense", &[(140.0, 0.0), (200.0, 0.5)], &[], Mode::Composite, &[]),
    ("fog", &[(0.0, 0.01), (255.0, 0.03)], &[], Mode::Composite, &[]),
    ("sparse", &[(196.0, 0.0), (200.0, 0.3), (204.0, 0.0)], &[], Mode::Composite, &[]),
    ("solid", &[(150.0, 0.0), (150.0, 1.0)], &[], Mode::Composite, &[]),
    ("iso", &[(0.0, 0.0)], &[(150.0, 1.0)], Mode::Composite, &[]),
    ("mixed", &[(90.0, 0.0), (255.0, 0.06)], &[(60.0, 0.3), (180.0, 1.0)], Mode::Composite, &[]),
    ("largest", &[(0.0, 0.0)], &[], Mode::Maximum, &[]),
    ("smallest", &[(0.0, 0.0)], &[], Mode::Minimum, &[]),
    ("planes", &[(0.0, 0.0)], &[], Mode::Surfaces, PLANES),
    ("cut", &[(90.0, 0.0), (255.0, 0.06)], &[], Mode::Composite, PLANES),
];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let side: u64 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(256);
    let dtype: DType = arguments.next().unwrap_or_else(|| "uint8".into()).parse()?;
    let wanted = arguments.next().unwrap_or_else(|| "all".into());
    let folder = arguments.next().map(PathBuf::from);

    let dataset = dataset(side, dtype);
    let view = Arc::new(VolumeView::new(&dataset, 0, &[])?);
    let blocks = (0..dataset.arrays[0].levels[0].block_count())
        .map(|i| block(&dataset, i))
        .collect::<Result<Vec<_>>>()?;
    let pool = BlockPool::new(Arc::clone(&view), 8 << 30);
    let (_, load) = timed(|| blocks.iter().try_for_each(|b| pool.insert(b).map(|_| ())));
    let cpu = load[1].as_secs_f64() * 1e3;
    println!("{} blocks placed in {cpu:.0} ms of CPU, {} MiB", blocks.len(), pool.used_bytes() >> 20);

    let is_wanted = |name: &str| wanted == "all" || wanted.split(',').any(|wanted| wanted == name);
    let all =
        ["", "lit", "colored_by"].into_iter().flat_map(|look| SCENES.iter().map(move |scene| (scene, look)));
    let has_colors = |(scene, look): &(&SceneOf, &str)| {
        !(*look == "colored_by" && matches!(scene.3, Mode::Maximum | Mode::Minimum))
    };
    let color_by = ColorByArray {
        view: Arc::clone(&view),
        color_map: "magma".into(),
        range: [0.0, 255.0],
        finest_level: 0,
    };
    let blocks = || pool.snapshot().colored_by(&pool.snapshot());
    for ((name, points, isovalues, mode, slices), look) in
        all.filter(has_colors).filter(|scene| is_wanted(scene.0.0))
    {
        let opacity = points.iter().map(|&(value, opacity)| OpacityPoint { value, opacity }).collect();
        let scene = Scene {
            camera: Camera::framing(&view.bounds(), Camera::DEFAULT_DIRECTION).zoom(1.25),
            transfer: TransferFunction { opacity, ..TransferFunction::ramp(0.0, 255.0, 1.0) },
            surfaces: isovalues.iter().map(|&(value, opacity)| surface(value, opacity as f32)).collect(),
            slices: slices.iter().map(|&(axis, share)| slice(axis, share * side as f64)).collect(),
            wires: Default::default(),
            geometry: Default::default(),
            mode: *mode,
            color_by: (look == "colored_by").then(|| color_by.clone()),
            layers: Vec::new(),
            is_lit: look == "lit",
            light: LightShares::default(),
            size: ImageSize { width: 1024, height: 800 },
            clip: None,
            quality: Quality { step: 1.0, ..Quality::MOVING },
            finest_level: 0,
            view: Arc::clone(&view),
        };
        let mut frame = cast(&scene, &blocks(), &Cancel::new())?;
        let (drawn, took) = timed(|| {
            (0..REPEATS).map(|_| cast(&scene, &blocks(), &Cancel::new())).collect::<Result<Vec<_>>>()
        });
        frame = drawn?.pop().unwrap_or(frame);
        let [wall, cpu] = took.map(|t| t.as_secs_f64() * 1e3 / f64::from(REPEATS));
        println!(
            "{name:8} {look:6} {cpu:7.1} ms of CPU, {wall:7.1} ms with {} threads",
            rayon::current_num_threads()
        );
        if let Some(folder) = &folder {
            let file = folder.join(format!("{name}{look}-{side}.png"));
            let png = frame.image.to_png(Background::BLACK)?;
            std::fs::write(&file, png).map_err(|e| Error::internal(format!("{e}: {}", file.display())))?;
        }
    }
    Ok(())
}

fn slice(axis: SpaceAxis, at: f64) -> Slice {
    Slice::across(axis, at)
}

fn surface(value: f64, opacity: f32) -> Isosurface {
    Isosurface { value, color: [0.9, 0.75, 0.6], opacity }
}

fn dataset(side: u64, dtype: DType) -> Dataset {
    let kinds = [AxisKind::Z, AxisKind::Y, AxisKind::X];
    let level = Level {
        shape: vec![side; 3],
        block: choose_blocks(&[side; 3], &kinds, dtype, None),
        chunk: None,
        origin: LevelOrigin::Stored,
        factor: vec![1.0; 3],
        world_from_voxel: Affine::IDENTITY,
    };
    let info = ArrayInfo {
        name: "field".into(),
        dtype,
        axes: ["z", "y", "x"].into_iter().zip(kinds).map(|(name, kind)| Axis::new(name, kind)).collect(),
        units: String::new(),
        attributes: std::collections::BTreeMap::new(),
        decoding: Decoding::identity(dtype),
        meaning: Meaning::Intensity,
        levels: vec![level],
        world_units: String::new(),
        notes: Vec::new(),
        storage: array::Storage::default(),
    };
    Dataset {
        id: DatasetId::of(["example"]),
        generation: Generation(0),
        name: "example".into(),
        format: "synthetic".into(),
        arrays: vec![info],
        attributes: std::collections::BTreeMap::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        groups: Vec::new(),
    }
}

fn block(dataset: &Dataset, index: u64) -> Result<Block> {
    let level = &dataset.arrays[0].levels[0];
    let selection = level.block_selection(index)?;
    let [z, y, x] = [0, 1, 2]
        .map(|a| selection.ranges()[a].start..selection.ranges()[a].start + selection.ranges()[a].count);
    let scale = 2.0 / level.shape[0] as f64;
    let mut bytes = Vec::new();
    for z in z {
        for y in y.clone() {
            for x in x.clone() {
                let value = field([x, y, z].map(|i| (i as f64 + 0.5) * scale - 1.0));
                match dtype_of(dataset).size_bytes() {
                    1 => bytes.push(value as u8),
                    2 => bytes.extend((value as u16).to_ne_bytes()),
                    4 => bytes.extend((value as f32).to_ne_bytes()),
                    _ => bytes.extend(value.to_ne_bytes()),
                }
            }
        }
    }
    let key =
        array::BlockKey { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0, index };
    Ok(Block { key, content: Content::Data { bytes: bytes.into(), range: None } })
}

fn dtype_of(dataset: &Dataset) -> DType {
    dataset.arrays[0].dtype
}

/// Ripples in a ball with a letter-like notch: x to the right, z up can be told apart. 0 to 255.
fn field([x, y, z]: [f64; 3]) -> f64 {
    let r = (x * x + y * y + z * z).sqrt();
    let ripples = 0.5 + 0.5 * (14.0 * r + 3.0 * (4.0 * x).sin() * (3.0 * y).cos() + 2.0 * z).sin();
    let notch = if x > 0.25 && z > 0.25 && y < 0.0 { 0.0 } else { 1.0 };
    255.0 * (1.0 - r * r).max(0.0).sqrt() * (0.35 + 0.65 * ripples) * notch
}

/// Wall time and CPU time of all threads.
#[expect(clippy::disallowed_methods, reason = "an example measures")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, [Duration; 2]) {
    let (start, cpu) = (std::time::Instant::now(), cpu_time());
    let result = work();
    (result, [start.elapsed(), cpu_time().saturating_sub(cpu)])
}

/// CPU time of this process so far, user and system, in the kernel's ticks of 10 ms; zero where it does not say.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}
