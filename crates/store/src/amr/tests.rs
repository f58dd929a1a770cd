//! Meshes as arrays: what is read from grids and between them, from made-up grids and from real files.

use std::path::PathBuf;

use array::{AxisRange, Content, Priority, Source, Target, Urgency, want};
use futures::StreamExt;
use proptest::prelude::*;

use super::grids::{Centring, Told};
use super::*;
use crate::{FormatSource, open, open_format};

/// Grids whose values follow from where they lie.
struct Made {
    dataset: Arc<Dataset>,
    told: Vec<Told>,
    centring: Centring,
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
        _cancel: &Cancel,
    ) -> Result<()> {
        let Told { lower, spacing, count } = self.told[array as usize];
        selection.check(&count)?;
        let middle = if self.centring == Centring::Cells { 0.5 } else { 0.0 };
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
fn mesh(told: Vec<Told>, centring: Centring, value: fn([f64; 3]) -> f64) -> Result<Amr> {
    let dtype: DType = "f8".parse()?;
    let axes = || describe::guessed_axes(3);
    let arrays = told.iter().map(|grid| describe::array("grid", dtype, axes(), &grid.count, None)).collect();
    let dataset = Dataset {
        id: DatasetId(7),
        generation: array::Generation(0),
        name: "made".into(),
        format: "test".into(),
        arrays,
        attributes: Attributes::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
    };
    let grids = Arc::new(Grids::new(&told, centring, 8)?);
    let places = (0u32..).take(told.len()).map(|array| Place { file: 0, array, entry: None }).collect();
    let name = "rho".to_owned();
    let field = Field { name, dtype, units: String::new(), attributes: Attributes::new(), grids, places };
    let file: Arc<dyn Format> = Arc::new(Made { dataset: Arc::new(dataset), told, centring, value });
    Ok(Amr::of_files("mesh", "test", vec![file], vec![field]))
}

fn read(amr: &dyn Format, array: u32, level: u8, selection: &Selection) -> Vec<f64> {
    let dtype = amr.dataset().arrays[array as usize].dtype;
    let (target, region) = Target::new(&selection.shape(), dtype.size_bytes()).unwrap();
    amr.read(array, level, selection, region, &Cancel::default()).unwrap();
    let bytes = target.into_vec().unwrap();
    array::with_element!(dtype.element(), T => {
        array::elements::<T>(&bytes, dtype.order()).map(array::Element::to_f64).collect()
    })
}

fn linear([z, y, x]: [f64; 3]) -> f64 {
    3.0 * z - 2.0 * y + x
}

/// Grids of three levels over a domain of 8 cells of size 1 from -4 on, at random places.
fn told(centring: Centring) -> impl Strategy<Value = Vec<Told>> {
    let beyond = u64::from(centring == Centring::Vertices);
    let base = Told { lower: [-4.0; 3], spacing: [1.0; 3], count: [8 + beyond; 3] };
    let grid = |cells: u64, spacing: f64| {
        let along = (0..cells, 1..cells).prop_map(move |(low, count)| (low, count.min(cells - low)));
        #[expect(clippy::cast_precision_loss, reason = "small")]
        [along.clone(), along.clone(), along].prop_map(move |at| Told {
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
        told in told(Centring::Vertices), all in selection(&[33; 3]), level in 0u8..3,
    ) {
        let amr = mesh(told, Centring::Vertices, linear).unwrap();
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
    fn what_lies_in_a_grid_is_read_as_it_is(told in told(Centring::Cells)) {
        let amr = mesh(told.clone(), Centring::Cells, |[z, y, x]| (z * 7.0).sin() + y * x).unwrap();
        let grids = Arc::clone(&amr.fields[0].grids);
        for (level, tier) in (0u8..).zip(&grids.tiers) {
            for grid in &tier.grids {
                let count = told[grid.number].count;
                let own = read(&*amr.files[0], u32::try_from(grid.number).unwrap(), 0, &Selection::all(&count));
                prop_assert_eq!(read(&amr, 0, level, &Selection::of_box(&grid.low, &count)), own);
            }
        }
    }
}

#[tokio::test]
async fn keeps_the_promises_of_a_source_and_says_what_is_not_covered() {
    let base = Told { lower: [0.0; 3], spacing: [1.0; 3], count: [64; 3] };
    let fine = Told { lower: [10.0; 3], spacing: [0.5; 3], count: [20; 3] };
    let amr = Arc::new(mesh(vec![base, fine], Centring::Cells, linear).unwrap());
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
    format.read(number, 0, &selection, region, &Cancel::default()).unwrap();
    array::GridBox::from_rows(&target.into_vec().unwrap(), table).unwrap()
}

#[test]
fn where_grids_lie_is_an_array_of_its_own() {
    let base = Told { lower: [0.0; 3], spacing: [1.0; 3], count: [64; 3] };
    let fine = Told { lower: [10.0, 11.0, 12.0], spacing: [0.5; 3], count: [20, 16, 12] };
    for (centring, shrinks) in [(Centring::Cells, 0.0), (Centring::Vertices, 1.0)] {
        let amr = mesh(vec![fine, base], centring, linear).unwrap();
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
