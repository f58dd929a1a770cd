//! Meshes as arrays: what is read from grids and between them, from made-up grids and from real files.

use std::path::PathBuf;

use array::{
    Attribute, AxisRange, Content, ElementType, LevelOrigin, Priority, Scalar, Source, Target, Urgency, want,
};
use futures::StreamExt;
use proptest::prelude::*;

use super::grids::{Centering, GridDescription};
use super::*;
use crate::formats::hdf5::{NewHdf5, create_hdf5};
use crate::{ByteStore, FormatSource, IoCounts, open, open_format};

/// Grids whose values follow from where they lie.
struct Made {
    dataset: Arc<Dataset>,
    described: Vec<GridDescription>,
    centering: Centering,
    value: fn([f64; 3]) -> f64,
}

impl Format for Made {
    fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.dataset)
    }

    fn access(&self, _array: u32) -> Access {
        Access::Flat
    }

    #[expect(clippy::cast_precision_loss, reason = "small indices")]
    fn read(
        &self,
        array: u32,
        _level: u8,
        selection: &Selection,
        mut into: Region,
        _cancel: &CancelFlag,
    ) -> Result<()> {
        let GridDescription { lower, spacing, count } = self.described[array as usize];
        selection.check(&count)?;
        let middle = if self.centering == Centering::Cells { 0.5 } else { 0.0 };
        let [z, y, x] = [0, 1, 2].map(|axis| {
            let range = selection.ranges()[axis];
            (0..range.count).map(move |i| lower[axis] + (range.index(i) as f64 + middle) * spacing[axis])
        });
        let mut bytes = Vec::new();
        for z in z {
            for y in y.clone() {
                bytes.extend(x.clone().flat_map(|x| (self.value)([z, y, x]).to_ne_bytes()));
            }
        }
        into.write_all(&bytes)
    }
}

/// A mesh of these grids.
fn mesh(described: Vec<GridDescription>, centering: Centering, value: fn([f64; 3]) -> f64) -> Result<Amr> {
    let dtype: DType = "f8".parse()?;
    let axes = || describe::guessed_axes(3);
    let arrays =
        described.iter().map(|grid| describe::array("grid", dtype, axes(), &grid.count, None)).collect();
    let dataset = Dataset {
        id: DatasetId(7),
        generation: array::Generation(0),
        name: "made".into(),
        format: "test".into(),
        arrays,
        attributes: Attributes::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        groups: Vec::new(),
    };
    let grids = Arc::new(MeshGrids::new(&described, centering, 8)?);
    let locations =
        (0u32..).take(described.len()).map(|array| GridLocation { file: 0, array, entry: None }).collect();
    let name = "rho".to_owned();
    let steps = vec![MeshStep { grids, locations }];
    let (units, attributes) = (String::new(), Attributes::new());
    let field = MeshField { name, dtype, units, attributes, time: None, steps };
    let file: Arc<dyn Format> = Arc::new(Made { dataset: Arc::new(dataset), described, centering, value });
    Ok(Amr::of_files("mesh", "test", vec![file], vec![field]))
}

fn read(amr: &dyn Format, array: u32, level: u8, selection: &Selection) -> Vec<f64> {
    let dtype = amr.dataset().arrays[array as usize].dtype;
    let (target, region) = Target::new(&selection.shape(), dtype.size_bytes()).unwrap();
    amr.read(array, level, selection, region, &CancelFlag::default()).unwrap();
    let bytes = target.into_vec().unwrap();
    array::with_element!(dtype.element(), T => {
        array::elements::<T>(&bytes, dtype.order()).map(array::Element::to_f64).collect()
    })
}

fn linear([z, y, x]: [f64; 3]) -> f64 {
    3.0 * z - 2.0 * y + x
}

/// Grids of three levels over a domain of 8 cells of size 1 from -4 on, at random places.
fn described(centering: Centering) -> impl Strategy<Value = Vec<GridDescription>> {
    let beyond = u64::from(centering == Centering::Vertices);
    let base = GridDescription { lower: [-4.0; 3], spacing: [1.0; 3], count: [8 + beyond; 3] };
    let grid = |cells: u64, spacing: f64| {
        let along = (0..cells, 1..cells).prop_map(move |(low, count)| (low, count.min(cells - low)));
        #[expect(clippy::cast_precision_loss, reason = "small")]
        [along.clone(), along.clone(), along].prop_map(move |at| GridDescription {
            lower: at.map(|(low, _)| low as f64 * spacing - 4.0),
            spacing: [spacing; 3],
            count: at.map(|(_, count)| count),
        })
    };
    let fine = prop::collection::vec(grid(16, 0.5), 1..5);
    let finest = prop::collection::vec(grid(32, 0.25), 1..5);
    (fine, finest).prop_map(move |(fine, finest)| [vec![base], fine, finest].concat())
}

fn selection(shape: &[u64]) -> impl Strategy<Value = Selection> + use<> {
    let ranges: Vec<_> = shape
        .iter()
        .map(|&n| {
            (0..n, 1..5u64, 1..40u64).prop_map(move |(start, step, count)| {
                let most = (n - start).div_ceil(step);
                AxisRange { start, count: count.min(most), step }
            })
        })
        .collect();
    ranges.prop_map(|ranges| Selection::new(ranges).unwrap())
}

proptest! {
    /// A linear function is the same on every level and between grids, whatever is read of it.
    #[test]
    fn every_element_is_read_once_or_interpolated(
        described in described(Centering::Vertices), all in selection(&[33; 3]), level in 0u8..3,
    ) {
        let amr = mesh(described, Centering::Vertices, linear).unwrap();
        let array = &amr.dataset().arrays[0];
        let shape = array.levels[usize::from(level)].shape.clone();
        let within = |(range, n): (&AxisRange, &u64)| AxisRange {
            start: range.start.min(n - 1),
            count: range.count.min((n - range.start.min(n - 1)).div_ceil(range.step)),
            ..*range
        };
        let selection = Selection::new(all.ranges().iter().zip(&shape).map(within)).unwrap();
        let world = array.levels[usize::from(level)].world_from_voxel;
        let [z, y, x] = [0, 1, 2].map(|axis| {
            let range = selection.ranges()[axis];
            (0..range.count).map(move |i| f64::from(u32::try_from(range.index(i)).unwrap()))
        });
        let mut expected = Vec::new();
        for z in z {
            for y in y.clone() {
                expected.extend(x.clone().map(|x| { let [x, y, z] = world.apply([x, y, z]); linear([z, y, x]) }));
            }
        }
        let found = read(&amr, 0, level, &selection);
        prop_assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?} {expected:?}");
    }

    /// Cells of a grid keep their values; those of the finest grids are what a read of them says.
    #[test]
    fn what_lies_in_a_grid_is_read_as_it_is(described in described(Centering::Cells)) {
        let amr = mesh(described.clone(), Centering::Cells, |[z, y, x]| (z * 7.0).sin() + y * x).unwrap();
        let grids = Arc::clone(&amr.fields[0].steps[0].grids);
        for (level, tier) in (0u8..).zip(&grids.tiers) {
            for grid in &tier.grids {
                let count = described[grid.number].count;
                let own = read(&*amr.files[0], u32::try_from(grid.number).unwrap(), 0, &Selection::all(&count));
                prop_assert_eq!(read(&amr, 0, level, &Selection::of_box(&grid.low, &count)), own);
            }
        }
    }
}

#[tokio::test]
async fn keeps_the_promises_of_a_source_and_says_what_is_not_covered() {
    let base = GridDescription { lower: [0.0; 3], spacing: [1.0; 3], count: [64; 3] };
    let fine = GridDescription { lower: [10.0; 3], spacing: [0.5; 3], count: [20; 3] };
    let amr = Arc::new(mesh(vec![base, fine], Centering::Cells, linear).unwrap());
    let dataset = amr.dataset();
    let source = FormatSource::new(amr);
    array::conformance::check_source(Arc::new(source.clone())).await;
    let key = |level, index| array::BlockKey {
        dataset: dataset.id,
        generation: dataset.generation,
        array: 0,
        level,
        index,
    };
    let blocks = dataset.arrays[0].levels[0].block_count();
    let (wants, _handles): (Vec<_>, Vec<_>) =
        (0..blocks).map(|index| want(key(0, index), Urgency::of(Priority::NORMAL))).unzip();
    let found: Vec<_> = source.blocks(wants).map(|done| done.result.unwrap()).collect().await;
    let covered = found.iter().filter(|block| matches!(block.content, Content::Data { .. })).count();
    assert_eq!(
        (covered, blocks),
        (8, 64),
        "blocks of 32 cells along each axis; the fine grid lies from 20 to 40"
    );
}

fn real(path: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("CORRIDOR_TEST_DATA") else {
        println!("skipped: CORRIDOR_TEST_DATA names no directory of test data");
        return None;
    };
    Some(PathBuf::from(root).join("formats/hdf5").join(path))
}

fn open_real(path: &str) -> Option<Arc<dyn Format>> {
    real(path).map(|path| open_format(path.to_str().unwrap(), &OpenOptions::default()).unwrap())
}

/// Level by level: cells per axis, and how many grids it has.
fn levels(format: &dyn Format, array: usize) -> Vec<Vec<u64>> {
    format.dataset().arrays[array].levels.iter().map(|level| level.shape.clone()).collect()
}

/// The grids of a field, as its table tells of them.
fn grids_of(format: &dyn Format, field: u32) -> Vec<array::GridBox> {
    let dataset = format.dataset();
    let (number, table) =
        dataset.grids_of(&dataset.arrays[field as usize]).expect("a field of a mesh has a table");
    let selection = Selection::all(table.shape());
    let (target, region) = Target::new(table.shape(), table.dtype.size_bytes()).unwrap();
    format.read(number, 0, &selection, region, &CancelFlag::default()).unwrap();
    array::GridBox::from_rows(&target.into_vec().unwrap(), table).unwrap()
}

#[test]
fn where_grids_lie_is_an_array_of_its_own() {
    let base = GridDescription { lower: [0.0; 3], spacing: [1.0; 3], count: [64; 3] };
    let fine = GridDescription { lower: [10.0, 11.0, 12.0], spacing: [0.5; 3], count: [20, 16, 12] };
    for (centering, shrinks) in [(Centering::Cells, 0.0), (Centering::Vertices, 1.0)] {
        let amr = mesh(vec![fine, base], centering, linear).unwrap();
        let grids = grids_of(&amr, 0);
        let whole = array::GridBox { level: 1, lower: [0.0; 3], upper: [64.0 - shrinks; 3] };
        let upper = [18.0, 19.0, 20.0].map(|upper| upper - 0.5 * shrinks);
        assert_eq!(grids, [whole, array::GridBox { level: 0, lower: [12.0, 11.0, 10.0], upper }]);
        let some = Selection::new([
            AxisRange { start: 1, count: 1, step: 1 },
            AxisRange { start: 0, count: 3, step: 3 },
        ]);
        assert_eq!(read(&amr, 1, 0, &some.unwrap()), [0.0, 10.0, upper[2]]);
    }
}

#[test]
fn flash_blocks_become_one_array_in_front_of_those_of_the_file() {
    let Some(file) = open_real("flash_rayleigh/INS_Rayleigh_hdf5_plt_cnt_0030") else { return };
    let dataset = file.dataset();
    let (number, temp) = dataset.find("amr/temp").unwrap();
    assert_eq!((number, temp.shape()), (2, &[1, 256, 256][..]));
    let grids = grids_of(&*file, number);
    assert_eq!(grids.len(), 64);
    let (stored, _) = dataset.find("temp").unwrap();
    let (boxes, _) = dataset.find("bounding box").unwrap();
    let corners = read(&*file, boxes, 0, &Selection::all(&[64, 3, 2]));
    let level = &temp.levels[0];
    for (grid, corner) in grids.iter().zip(corners.as_chunks::<6>().0) {
        let [x0, x1, y0, y1, ..] = *corner;
        let found = [grid.lower[0], grid.upper[0], grid.lower[1], grid.upper[1]];
        assert!(found.iter().zip([x0, x1, y0, y1]).all(|(a, b)| (a - b).abs() < 1e-6), "{grid:?} {corner:?}");
    }
    // Each block is found where its corner says.
    for block in 0..64 {
        let of = &corners[6 * usize::try_from(block).unwrap()..];
        let [first, spacing] = [level.world_from_voxel.apply([0.0; 3]), level.world_from_voxel.spacing()];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let low = [0, 1].map(|axis| ((of[2 * axis] - first[axis]) / spacing[axis] + 0.5).round() as u64);
        let whole = read(&*file, number, 0, &Selection::of_box(&[0, low[1], low[0]], &[1, 32, 32]));
        let own = read(&*file, stored, 0, &Selection::of_box(&[block, 0, 0, 0], &[1, 1, 32, 32]));
        assert_eq!(whole, own, "block {block}");
    }
}

#[test]
fn enzo_grids_lie_on_three_levels() {
    let Some(file) = open_real("enzo_DD0010") else { return };
    let dataset = file.dataset();
    let (density, info) = dataset.find("Density").unwrap();
    let shapes = levels(&*file, density as usize);
    assert_eq!(shapes.last().unwrap(), &[16; 3]);
    let grids = grids_of(&*file, density);
    let coarsest = u8::try_from(shapes.len() - 1).unwrap();
    assert_eq!(grids[0], array::GridBox { level: coarsest, lower: [0.0; 3], upper: [1.0; 3] });
    assert_eq!(grids.len(), 10);
    assert!(shapes.windows(2).all(|pair| pair[0][0] == 2 * pair[1][0]), "{shapes:?}");
    assert_eq!(
        info.levels[0].world_from_voxel.spacing()[0] * f64::from(u32::try_from(shapes[0][0]).unwrap()),
        1.0
    );
    let cells = real("enzo_DD0010/moving7_0010.cpu0000").unwrap();
    let cells = open_format(cells.to_str().unwrap(), &OpenOptions::default()).unwrap();
    let (grid, _) = cells.dataset().find("Grid00000002/Density").map(|(n, info)| (n, info.clone())).unwrap();
    // Grid 2 begins at 0.1875 of the domain, one level below the coarsest.
    let level = u8::try_from(shapes.len() - 2).unwrap();
    let own = read(&*cells, grid, 0, &Selection::all(&[10; 3]));
    assert_eq!(read(&*file, density, level, &Selection::of_box(&[6; 3], &[10; 3])), own);
    assert!(read(&*file, density, 0, &Selection::of_box(&[0; 3], &[8; 3])).iter().all(|v| v.is_finite()));
}

#[test]
fn carpet_components_of_all_files_are_one_field() {
    let Some(folder) = open_real("carpet_tov") else { return };
    let dataset = folder.dataset();
    assert_eq!(
        dataset.arrays.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(),
        ["HYDROBASE::rho", "HYDROBASE::vel[0]", "amr/grids"]
    );
    let shapes = levels(&*folder, 0);
    assert_eq!((shapes.len(), shapes.last().unwrap().as_slice()), (5, &[30; 3][..]));
    // A vertex of the coarsest level is one of every finer level where they have grids: the star's middle.
    let middle: Vec<f64> =
        (0u8..5).map(|level| read(&*folder, 0, level, &Selection::of_box(&[0; 3], &[1; 3]))[0]).collect();
    assert!(middle.iter().all(|&rho| rho == middle[0] && rho > 0.0), "{middle:?}");
}

#[test]
fn one_file_of_several_says_that_it_is() {
    let Some(file) = open_real("carpet_tov/rho.xyz.file_0.h5") else { return };
    assert!(file.dataset().warnings.iter().any(|warning| warning.contains("open their folder")));
    assert!(file.dataset().arrays.iter().all(|array| !array.name.starts_with("amr/")));
}

#[tokio::test]
async fn real_meshes_keep_the_promises_of_sources_with_the_levels_that_are_added() {
    for path in
        ["flash_rayleigh/INS_Rayleigh_hdf5_plt_cnt_0030", "enzo_DD0010/moving7_0010.hierarchy", "carpet_tov"]
    {
        let Some(path) = real(path) else { return };
        let source = open(path.to_str().unwrap(), &OpenOptions::default()).unwrap();
        assert!(source.describe().await.unwrap().check().is_ok());
        array::conformance::check_source(source).await;
    }
}

/// Blocks of `count` cells of size 1 that tile a domain, in an order of no meaning.
fn blocks(along: [u64; 3], count: [u64; 3]) -> Vec<GridDescription> {
    let all = along.iter().product::<u64>();
    let described = |number: u64| {
        let number = (number * 7 + 3) % all;
        let at = [number / (along[1] * along[2]), number / along[2] % along[1], number % along[2]];
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let lower = [0, 1, 2].map(|axis| (at[axis] * count[axis]) as f64);
        GridDescription { lower, spacing: [1.0; 3], count }
    };
    (0..all).map(described).collect()
}

fn corner_level(format: &dyn Format, array: u32) -> u8 {
    let info = &format.dataset().arrays[array as usize];
    let level = info.levels.iter().position(|level| level.origin == LevelOrigin::Corners);
    u8::try_from(level.expect("a level of corners")).unwrap()
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "small")]
fn each_sample_of_the_corners_is_the_outermost_cell_of_a_block() {
    let value = |[z, y, x]: [f64; 3]| ((z - 0.5) * 100.0 + y - 0.5) * 100.0 + x - 0.5;
    let amr = mesh(blocks([4, 5, 6], [16; 3]), Centering::Cells, value).unwrap();
    let info = &amr.dataset().arrays[0];
    let level = corner_level(&amr, 0);
    assert_eq!((level, &info.levels[1].shape[..]), (1, &[5, 6, 7][..]));
    assert_eq!(
        (info.levels[1].factor.as_slice(), info.levels[1].block.as_slice()),
        (&[16.0; 3][..], &[5, 6, 7][..])
    );
    assert_eq!(info.levels[1].world_from_voxel.apply([6.0, 5.0, 4.0]), [96.0, 80.0, 64.0]);
    let found = read(&amr, 0, level, &Selection::all(&[5, 6, 7]));
    for (number, value) in found.iter().enumerate() {
        let at = [number / 42, number / 7 % 6, number % 7];
        let cell =
            [(value / 10_000.0).floor(), (value / 100.0).rem_euclid(100.0).floor(), value.rem_euclid(100.0)];
        // Half a cell beside the corner, on one side or the other.
        let is_near = |axis: usize| (cell[axis] + 0.5 - 16.0 * at[axis] as f64).abs() < 0.51;
        assert!((0..3).all(is_near), "sample {at:?} is the cell at {cell:?}");
    }
    let some = Selection::new([1, 0, 2].map(|start| AxisRange { start, count: 2, step: 2 })).unwrap();
    let expected: Vec<f64> = [1, 3]
        .iter()
        .flat_map(|z| [0, 2].iter().flat_map(move |y| [2, 4].map(|x| (z * 6 + y) * 7 + x)))
        .map(|i| found[i])
        .collect();
    assert_eq!(read(&amr, 0, level, &some), expected, "any part of it is the same");
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "small")]
fn between_blocks_that_are_not_alike_corners_are_interpolated() {
    // 70 vertices along z in parts of 30, 22 and 18, which overlap by nothing.
    let part = |low: u64, count: u64| GridDescription {
        lower: [low as f64, 0.0, 0.0],
        spacing: [1.0; 3],
        count: [count, 20, 20],
    };
    let described = [part(0, 30), part(30, 22), part(52, 18)];
    let beside = described.map(|t| GridDescription { lower: [t.lower[0], 20.0, 0.0], ..t });
    let amr = mesh([described, beside].concat(), Centering::Vertices, linear).unwrap();
    let info = &amr.dataset().arrays[0];
    assert!(
        !info.levels.iter().any(|level| level.origin == LevelOrigin::Corners),
        "too few corners to be a look"
    );
    let more: Vec<GridDescription> = (0..12u64)
        .flat_map(|y| described.map(|t| GridDescription { lower: [t.lower[0], (20 * y) as f64, 0.0], ..t }))
        .collect();
    let amr = mesh(more, Centering::Vertices, linear).unwrap();
    let level = corner_level(&amr, 0);
    let info = &amr.dataset().arrays[0].levels[usize::from(level)];
    assert_eq!(info.shape, [4, 14, 2]);
    let found = read(&amr, 0, level, &Selection::all(&info.shape));
    for (number, value) in found.iter().enumerate() {
        let at = [number / 28, number / 2 % 14, number % 2].map(|at| at as f64);
        let [x, y, z] = info.world_from_voxel.apply([at[2], at[1], at[0]]);
        let off = (value - linear([z, y, x])).abs();
        assert!(off <= 3.0 * 0.5 + 2.0 * 0.5 + 1e-9, "{at:?} at {z} {y} {x}: {value}");
    }
}

#[test]
fn small_meshes_and_single_blocks_have_no_level_of_corners() {
    // The last ones lie upon one another.
    let heap = [blocks([5; 3], [16; 3]), vec![blocks([1; 3], [80; 3])[0]; 4]].concat();
    for described in [blocks([4; 3], [16; 3]), blocks([1; 3], [128; 3]), blocks([80, 1, 1], [1, 2, 2]), heap]
    {
        let amr = mesh(described, Centering::Cells, linear).unwrap();
        assert_eq!(amr.dataset().arrays[0].levels.len(), 1);
    }
}

#[tokio::test]
async fn a_level_of_corners_comes_after_made_levels_and_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let described: Vec<GridDescription> = blocks([5, 4, 6], [16; 3]);
    let amr: Arc<dyn Format> = Arc::new(mesh(described, Centering::Cells, linear).unwrap());
    let options = OpenOptions { side_dir: Some(dir.path().to_owned()), ..OpenOptions::default() };
    let source = Arc::new(crate::Levels::new(FormatSource::new(Arc::clone(&amr)), &options));
    let dataset = source.describe().await.unwrap();
    let levels = &dataset.arrays[0].levels;
    let origins: Vec<_> = levels.iter().map(|level| level.origin).collect();
    assert_eq!(origins, [LevelOrigin::Stored, LevelOrigin::Mean, LevelOrigin::Sampled, LevelOrigin::Corners]);
    assert!(levels[1].shape.iter().all(|&n| n <= 64), "means are of cells, not of corners");
    array::conformance::check_source(Arc::clone(&source) as Arc<dyn Source>).await;
    let whole = Selection::all(&levels[3].shape);
    let (target, region) = Target::new(&levels[3].shape, 8).unwrap();
    let request =
        array::ReadRequest { array: 0, level: 3, selection: whole.clone(), priority: Priority::NORMAL };
    source.read(request, region).await.unwrap();
    let own: Vec<u8> = read(&*amr, 0, 1, &whole).into_iter().flat_map(f64::to_ne_bytes).collect();
    assert_eq!(target.into_vec().unwrap(), own);
    let kept = std::fs::read_dir(dir.path().join(dataset.id.to_string()).join("levels-3/g0/a0/l3"));
    assert_eq!(kept.unwrap().count(), 1, "the block is in the side cache");
}

/// Runs `work`; returns the requests and bytes that it asked of `files`.
fn counted(files: &[Arc<FileBytes>], work: impl FnOnce()) -> IoCounts {
    let sum = || {
        files.iter().map(|file| file.counts()).fold(IoCounts::default(), |a, b| IoCounts {
            requests: a.requests + b.requests,
            bytes: a.bytes + b.bytes,
        })
    };
    let before = sum();
    work();
    let after = sum();
    IoCounts { requests: after.requests - before.requests, bytes: after.bytes - before.bytes }
}

fn numbers(values: [f64; 3]) -> Attribute {
    Attribute::Numbers(values.map(Scalar::Float).to_vec(), None)
}

/// The attributes of one component of Carpet; `lower` and `spacing` as z, y, x.
fn component(name: &str, step: i64, lower: [f64; 3], spacing: f64) -> Attributes {
    let [z, y, x] = lower;
    [
        ("name", Attribute::Text(name.into())),
        ("level", Attribute::Number(Scalar::Signed(0), None)),
        ("timestep", Attribute::Number(Scalar::Signed(step), None)),
        ("time", Attribute::number_of(step as f64 / 4.0)),
        ("origin", numbers([x, y, z])),
        ("delta", numbers([spacing; 3])),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

#[test]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of blocks")]
fn corners_of_large_blocks_are_a_small_part_of_their_files() {
    const SIDE: u64 = 24;
    let dir = tempfile::tempdir().unwrap();
    let described = blocks([3; 3], [SIDE; 3]);
    let mut stores = Vec::new();
    let mut files: Vec<Arc<dyn Format>> = Vec::new();
    for (number, described) in described.iter().enumerate() {
        let path = dir.path().join(format!("rho.file_{number}.h5"));
        let attributes = component("rho", 0, described.lower, 1.0);
        let new = NewHdf5 {
            name: "rho",
            element: ElementType::F64,
            shape: &[SIDE; 3],
            axes: &[],
            attributes: &attributes,
        };
        let offset = create_hdf5(&path, &new).unwrap();
        let values: Vec<u8> =
            (0..SIDE.pow(3)).flat_map(|cell| (number as f64 * 1e6 + cell as f64).to_le_bytes()).collect();
        std::os::unix::fs::FileExt::write_all_at(
            &std::fs::OpenOptions::new().write(true).open(&path).unwrap(),
            &values,
            offset,
        )
        .unwrap();
        let store = FileBytes::open(&path).unwrap();
        files.push(Arc::new(hdf5::open(Arc::clone(&store), &OpenOptions::default()).unwrap()));
        stores.push(store);
    }
    let fields = carpet::fields(&files).unwrap();
    let amr = Amr::of_files("mesh", "Carpet HDF5", files, fields);
    let level = corner_level(&amr, 0);
    assert_eq!(amr.dataset().arrays[0].levels[usize::from(level)].shape, [4; 3]);
    let whole = Selection::all(&[4; 3]);
    let first = read(&amr, 0, level, &whole);
    let (last, side) = (SIDE - 1, SIDE);
    let corners: Vec<f64> = (0..8u64)
        .map(|c| [c >> 2, c >> 1 & 1, c & 1].map(|end| end * last))
        .map(|[z, y, x]| ((z * side + y) * side + x) as f64)
        .collect();
    assert!(first.iter().all(|value| corners.contains(&(value % 1e6))), "each is the corner of a block");
    let seen: std::collections::BTreeSet<u64> = first.iter().map(|value| (value / 1e6) as u64).collect();
    assert_eq!(seen.len(), 27, "every block has its say");
    // Where arrays lie has been looked up. Eight values a block, by a request for each of its four edges along x.
    let cost = counted(&stores, || assert_eq!(read(&amr, 0, level, &whole), first));
    assert_eq!(cost.requests, 27 * 4);
    assert_eq!(cost.bytes, 27 * 4 * SIDE * 8);
    let full = counted(&stores, || drop(read(&amr, 0, 0, &Selection::all(&[3 * SIDE; 3]))));
    assert_eq!(full.bytes, (3 * SIDE).pow(3) * 8);
    assert!(cost.bytes * 100 < full.bytes, "{cost:?} of {full:?}");
}

#[test]
fn corners_of_flash_are_those_that_its_blocks_have() {
    let Some(path) = real("flash_rayleigh/INS_Rayleigh_hdf5_plt_cnt_0030") else { return };
    let store = FileBytes::open(&path).unwrap();
    let amr = over(Arc::new(hdf5::open(Arc::clone(&store), &OpenOptions::default()).unwrap()));
    let (number, temp) = amr.dataset().find("amr/temp").map(|(n, info)| (n, info.clone())).unwrap();
    let level = corner_level(&*amr, number);
    assert_eq!(temp.levels[usize::from(level)].shape, [1, 9, 9]);
    let whole = Selection::all(&[1, 9, 9]);
    let found = read(&*amr, number, level, &whole);
    let (stored, _) = amr.dataset().find("temp").map(|(n, info)| (n, info.clone())).unwrap();
    let (boxes, _) = amr.dataset().find("bounding box").map(|(n, info)| (n, info.clone())).unwrap();
    let bounds = read(&*amr, boxes, 0, &Selection::all(&[64, 3, 2]));
    let ends = AxisRange { start: 0, count: 2, step: 31 };
    let corners = Selection::new([AxisRange::contiguous(0, 64), AxisRange::contiguous(0, 1), ends, ends]);
    let corners = read(&*amr, stored, 0, &corners.unwrap());
    let world = temp.levels[usize::from(level)].world_from_voxel;
    for (at, value) in found.iter().enumerate() {
        let [x, y, _] = world.apply([(at % 9) as f64, (at / 9) as f64, 0.0]);
        let is_at = |block: usize, corner: usize| {
            let bounds = &bounds[6 * block..];
            (bounds[corner & 1] - x).abs() < 1e-5 && (bounds[2 + (corner >> 1)] - y).abs() < 1e-5
        };
        let locations = (0..64).flat_map(|block| (0..4).map(move |corner| (block, corner)));
        let first =
            locations.filter(|&(block, corner)| is_at(block, corner)).map(|(b, c)| corners[4 * b + c]).next();
        assert_eq!(Some(*value), first, "sample {at}");
    }
    // Blocks of 4 KiB: gaps are shorter than what is skipped, so that one request has them all, and no more than the field.
    let cost = counted(&[store], || assert_eq!(read(&*amr, number, level, &whole), found));
    assert_eq!(cost.requests, 1);
    assert!(cost.bytes <= 64 * 4096, "{cost:?}");
}

#[test]
fn integers_between_grids_are_those_of_the_nearest_coarser_sample() {
    let locations = |axis: [f64; 3]| {
        let locations = axis.into_iter();
        composite::AxisInterpolation::new(locations, 3)
    };
    let axes = [locations([0.0, 0.0, 0.0]), locations([0.0, 0.25, 0.75]), locations([0.5, 1.0, 1.75])];
    let coarse: Vec<u8> = (0..6u8).collect();
    let found = composite::resample(&coarse, &axes, "u1".parse().unwrap());
    assert_eq!(found[..9], [1, 1, 2, 1, 1, 2, 4, 4, 5]);
    assert_eq!(composite::hole("<i4".parse().unwrap()), [0; 4]);
    assert!(f64::from_le_bytes(composite::hole("<f8".parse().unwrap()).try_into().unwrap()).is_nan());
}

/// Arrays in memory: shape, attributes, and the value of all of its elements.
struct Arrays(Arc<Dataset>, Vec<f64>);

impl Arrays {
    fn format(arrays: Vec<([u64; 3], Attributes, f64)>) -> Arc<dyn Format> {
        let describe = |(number, (shape, attributes, _)): (usize, &([u64; 3], Attributes, f64))| {
            let axes = describe::guessed_axes(3);
            let name = format!("array {number}");
            let info = describe::array(&name, "f8".parse().unwrap(), axes, shape, None);
            ArrayInfo { attributes: attributes.clone(), ..info }
        };
        let dataset = Dataset {
            id: DatasetId(7),
            generation: array::Generation(0),
            name: "made".into(),
            format: "test".into(),
            arrays: arrays.iter().enumerate().map(describe).collect(),
            attributes: Attributes::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
            groups: Vec::new(),
        };
        Arc::new(Self(Arc::new(dataset), arrays.into_iter().map(|(_, _, value)| value).collect()))
    }
}

impl Format for Arrays {
    fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.0)
    }

    fn access(&self, _array: u32) -> Access {
        Access::Flat
    }

    fn read(&self, array: u32, _: u8, selection: &Selection, into: Region, _: &CancelFlag) -> Result<()> {
        selection.check(self.0.arrays[array as usize].shape())?;
        crate::formats::common::chunked::fill(into, &self.1[array as usize].to_ne_bytes())
    }
}

fn carpet(arrays: Vec<([u64; 3], Attributes, f64)>) -> Arc<dyn Format> {
    let format = over(Arrays::format(arrays));
    assert_eq!(format.dataset().warnings, Vec::<String>::new());
    format
}

#[test]
fn iterations_of_carpet_are_an_axis_of_time() {
    // The finer grid appears with the second iteration.
    let base = |step: i64| ([6; 3], component("rho", step, [0.0; 3], 2.0), step as f64);
    let fine = ([5; 3], component("rho", 8, [2.0; 3], 1.0), 100.0);
    let format = carpet(vec![base(0), base(8), fine, base(16)]);
    let rho = format.dataset().arrays[0].clone();
    assert_eq!((rho.name.as_str(), rho.shape()), ("amr/rho", &[3, 11, 11, 11][..]));
    assert_eq!(
        (rho.axes[0].kind, &rho.axes[0].coordinates),
        (AxisKind::Time, &Coordinates::Explicit(vec![0.0, 2.0, 4.0]))
    );
    assert_eq!(rho.levels[1].shape, [3, 6, 6, 6]);
    assert!(rho.check().is_ok() && rho.notes[0].starts_with("1 to 2 grids on 2 levels"), "{:?}", rho.notes);
    assert_eq!(read(&*format, 0, 0, &Selection::of_box(&[0, 4, 4, 4], &[3, 1, 1, 1])), [0.0, 100.0, 16.0]);
    assert_eq!(read(&*format, 0, 1, &Selection::of_box(&[0, 4, 4, 4], &[3, 1, 1, 1])), [0.0, 8.0, 16.0]);
    let is_covered = |time: u64| format.covers(0, 0, &Selection::of_box(&[time, 0, 0, 0], &[1, 11, 11, 11]));
    assert_eq!([0, 1, 2].map(is_covered), [false, true, false]);
    assert!(format.dataset().grids_of(&rho).is_none(), "no table of grids that come and go");
}

#[test]
fn components_of_carpet_have_their_own_say_where_ghosts_overlap() {
    let ghosts = |first: f64, faces: [i64; 6]| {
        let mut attributes = component("rho", 0, [0.0, 0.0, first], 1.0);
        let widths = Attribute::Numbers(vec![Scalar::Signed(2); 3], None);
        let faces = Attribute::Numbers(faces.into_iter().map(Scalar::Signed).collect(), None);
        attributes.extend([("cctk_nghostzones".to_owned(), widths), ("cctk_bbox".to_owned(), faces)]);
        attributes
    };
    // Along x: 0 to 6 and 3 to 9, of which 5 and 6, and 3 and 4, are the other's.
    let lower = ([3, 3, 7], ghosts(0.0, [1, 0, 1, 1, 1, 1]), 1.0);
    let upper = ([3, 3, 7], ghosts(3.0, [0, 1, 1, 1, 1, 1]), 2.0);
    for arrays in [vec![lower.clone(), upper.clone()], vec![upper, lower]] {
        let row = read(&*carpet(arrays), 0, 0, &Selection::of_box(&[1, 1, 0], &[1, 1, 10]));
        assert_eq!(row, [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0]);
    }
}

#[test]
fn cells_of_carpet_lie_within_coarser_cells() {
    // Two levels of cells from 0 to 8: middles at 0.5, 1.5, ... and at 2.25, 2.75, ...
    let base = ([8; 3], component("rho", 0, [0.5; 3], 1.0), 1.0);
    let fine = ([4; 3], component("rho", 0, [2.25; 3], 0.5), 2.0);
    let format = carpet(vec![base, fine]);
    let rho = format.dataset().arrays[0].clone();
    assert_eq!(levels(&*format, 0), [vec![16; 3], vec![8; 3]]);
    assert_eq!(rho.levels[0].world_from_voxel.apply([4.0; 3]), [2.25; 3]);
    assert_eq!(
        read(&*format, 0, 0, &Selection::of_box(&[4, 4, 2], &[1, 1, 8])),
        [1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0]
    );
}

#[test]
fn without_places_in_the_world_carpet_lies_on_its_finest_lattice() {
    let on_lattice = |first: f64, stride: f64| {
        let mut attributes = component("rho", 0, [0.0; 3], 1.0);
        attributes.remove("origin");
        attributes.extend([
            ("iorigin".to_owned(), numbers([first; 3])),
            ("ioffset".to_owned(), numbers([1.0; 3])),
            ("ioffsetdenom".to_owned(), numbers([stride; 3])),
        ]);
        attributes
    };
    let format = carpet(vec![([5; 3], on_lattice(3.0, 4.0), 1.0), ([3; 3], on_lattice(8.0, 2.0), 2.0)]);
    let rho = format.dataset().arrays[0].clone();
    assert_eq!(levels(&*format, 0), [vec![9; 3], vec![5; 3]]);
    assert_eq!(rho.levels[1].world_from_voxel.apply([0.0; 3]), [13.0; 3]);
    assert_eq!(
        read(&*format, 0, 0, &Selection::of_box(&[3, 3, 0], &[1, 1, 9])),
        [1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    );
}

proptest! {
    /// Attributes of any kind and value are a mesh, or are told of, or leave arrays as they are stored.
    #[test]
    fn foreign_attributes_are_no_harm(
        odd in prop::collection::vec((0usize..10, -4i32..40, 0usize..5, any::<f64>(), any::<i64>(), any::<usize>()), 0..12),
        steps in prop::collection::vec(0i64..3, 1..6),
    ) {
        const NAMES: [&str; 10] = [
            "name", "level", "timestep", "time", "origin", "delta", "iorigin", "ioffsetdenom", "cctk_nghostzones", "cctk_bbox",
        ];
        let mut arrays: Vec<_> = steps
            .iter()
            .enumerate()
            .map(|(n, &step)| ([4; 3], component("rho", step, [0.0, 0.0, 4.0 * (n % 2) as f64], 1.0), 1.0))
            .collect();
        for (which, near, kind, float, int, place) in odd {
            let value = match kind {
                0 => Attribute::Text("rho".into()),
                1 => Attribute::Number(Scalar::Signed(int), None),
                2 => Attribute::Numbers(vec![Scalar::Float(float); 3], None),
                3 => Attribute::Numbers(vec![Scalar::Signed(near.into()); 6], None),
                _ => numbers([f64::from(near) / 2.0; 3]),
            };
            let place = place % arrays.len();
            arrays[place].1.insert(NAMES[which].into(), value);
        }
        let format = over(Arrays::format(arrays));
        for (number, info) in (0u32..).zip(&format.dataset().arrays) {
            prop_assert!(info.check().is_ok(), "{:?}", info);
            for (level, info) in (0u8..).zip(&info.levels) {
                let count: Vec<u64> = info.shape.iter().map(|&n| n.min(3)).collect();
                let start: Vec<u64> = info.shape.iter().zip(&count).map(|(n, count)| (n - count) / 2).collect();
                read(&*format, number, level, &Selection::of_box(&start, &count));
            }
        }
    }
}
