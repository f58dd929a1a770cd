//! Arrays on even grids, compared with the elements of their source.

#![expect(clippy::cast_possible_truncation, reason = "tests have small numbers")]

use std::sync::Arc;

use array::conformance::{MemorySource, check_source, one_array};
use array::{
    ArrayInfo, Attribute, AxisKind, Coordinates, Dataset, Level, LevelOrigin, Priority, ReadRequest, Region,
    Scalar, Selection, Source, Target,
};
use bytes::Bytes;
use render::ImageSize;
use serde_json::json;
use view::View;

use super::*;
use crate::viewer::scene::volume_of;
use crate::{Session, StillRequest, render_still};

/// Pressures of layers, lowest layer first.
const PRESSURES: [f64; 9] = [1000.0, 850.0, 700.0, 500.0, 300.0, 100.0, 30.0, 10.0, 5.0];

/// Data set with an array over pressure, latitude and longitude, a stored coarser level, and their elements.
struct Sample {
    dataset: Dataset,
    elements: Vec<Vec<Bytes>>,
}

fn f32s(values: impl IntoIterator<Item = f32>) -> Bytes {
    values.into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>().into()
}

fn named(name: &str, dtype: &str, shape: &[u64]) -> ArrayInfo {
    let mut array = one_array(dtype.parse().unwrap(), shape, shape).arrays.remove(0);
    array.name = name.into();
    array
}

impl Sample {
    /// Values are `z * 10_000 + y * 100 + x` at level 0, and minus that of the first voxel of each group at level 1.
    fn over_pressure() -> Self {
        let shape = [PRESSURES.len() as u64, 12, 16];
        let mut dataset = one_array("<f4".parse().unwrap(), &shape, &[2, 5, 16]);
        let array = &mut dataset.arrays[0];
        for (axis, (name, units)) in
            [("plev", "hPa"), ("lat", "degrees_north"), ("lon", "degrees_east")].into_iter().enumerate()
        {
            array.axes[axis].name = name.into();
            array.axes[axis].units = units.into();
        }
        let latitudes: Vec<f64> =
            (0..12).map(|i| 80.0 - 10.0 * f64::from(i) - 0.4 * f64::from(i * i)).collect();
        array.axes[0].coordinates = Coordinates::Explicit(PRESSURES.to_vec());
        array.axes[1].coordinates = Coordinates::Explicit(latitudes);
        array.axes[2].coordinates = Coordinates::Regular { origin: 0.0, step: 10.0 };
        array.world_units = "degrees".into();
        array.notes = vec![
            "axis `plev` is drawn with steps of one horizontal cell, not to scale".into(),
            "other".into(),
        ];
        let map = array::Affine::from_spacing([10.0, -14.4, 12.0], [0.0, 80.0, 0.0]);
        array.levels[0].world_from_voxel = map;
        let coarse: Vec<u64> = shape.iter().map(|n| n.div_ceil(2)).collect();
        array.levels.push(Level {
            block: vec![3, 4, 4],
            shape: coarse.clone(),
            chunk: None,
            origin: LevelOrigin::Mean,
            factor: vec![2.0; 3],
            world_from_voxel: map.coarsened([2.0; 3], [0.5; 3]),
        });
        let value = |z: u64, y: u64, x: u64| (z * 10_000 + y * 100 + x) as f32;
        let all = |shape: &[u64], value: &dyn Fn(u64, u64, u64) -> f32| {
            let [nz, ny, nx] = [shape[0], shape[1], shape[2]];
            f32s((0..nz * ny * nx).map(|i| value(i / nx / ny, i / nx % ny, i % nx)))
        };
        let elements = vec![vec![all(&shape, &value), all(&coarse, &|z, y, x| -value(2 * z, 2 * y, 2 * x))]];
        Self { dataset, elements }
    }

    fn with(mut self, array: ArrayInfo, bytes: Bytes) -> Self {
        self.dataset.arrays.push(array);
        self.elements.push(vec![bytes]);
        self
    }

    fn source(self) -> Arc<MemorySource> {
        Arc::new(MemorySource::new(self.dataset, self.elements).unwrap())
    }
}

/// Reads all elements of a level, decoded for pictures; NaN where they are missing.
async fn drawn(source: &Regridded, array: u32, level: u8) -> (Vec<u64>, Vec<f64>) {
    let dataset = source.describe().await.unwrap();
    let info = dataset.array(array).unwrap();
    let shape = info.level(level).unwrap().shape.clone();
    let (target, into): (Target, Region) = Target::new(&shape, info.dtype.size_bytes()).unwrap();
    let selection = Selection::all(&shape);
    source.read(ReadRequest { array, level, selection, priority: Priority::NORMAL }, into).await.unwrap();
    let bytes = target.into_vec().unwrap();
    let count = bytes.len() / info.dtype.size_bytes();
    let decoding = &info.decoding;
    let value = |i| decoding.decode(decoding.meant(info.dtype).scalar_at(&bytes, i).unwrap());
    (shape, (0..count).map(value).collect())
}

/// Returns the index of the nearest value; of two at the same distance the later one, since cells include their first border.
fn nearest(places: &[f64], at: f64) -> usize {
    let distance = |i: &usize| (places[*i] - at).abs();
    (0..places.len()).rev().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap()
}

fn explicit(array: &ArrayInfo, axis: usize) -> Vec<f64> {
    let Coordinates::Explicit(samples) = &array.axes[axis].coordinates else {
        panic!("{:?}", array.axes[axis])
    };
    samples.clone()
}

#[tokio::test]
async fn every_voxel_has_the_value_of_the_nearest_sample() {
    let sample = Sample::over_pressure();
    let (before, source) = (sample.dataset.arrays[0].clone(), sample.source());
    let regridded = Regridded::open(source.clone()).await.unwrap();
    let dataset = regridded.describe().await.unwrap();
    assert_ne!(
        dataset.id,
        source.dataset().id,
        "the data set has its own identity, so that caches distinguish them"
    );
    let array = &dataset.arrays[0];
    array.check().unwrap();
    for level in 0..2u64 {
        let (shape, values) = drawn(&regridded, 0, level as u8).await;
        assert_eq!(shape[2], 16 >> level);
        let [ny, nx] = [shape[1], shape[2]];
        for (i, &value) in values.iter().enumerate() {
            let at = [i as u64 / nx / ny, i as u64 / nx % ny, i as u64 % nx];
            let factor = (1 << level) as f64;
            let place = |axis: usize| {
                let Coordinates::Regular { origin, step } = array.axes[axis].coordinates else { panic!() };
                let last = (array.shape()[axis] - 1) as f64;
                origin + step * (at[axis] as f64 * factor + 0.5 * (factor - 1.0)).min(last)
            };
            let [z, y] =
                [0, 1].map(|axis| (nearest(&explicit(&before, axis), place(axis)) >> level << level) as u64);
            let expected = (z * 10_000 + y * 100 + (at[2] << level)) as f64;
            assert_eq!(value, if level == 0 { expected } else { -expected }, "level {level}, {at:?}");
        }
    }
}

#[tokio::test]
async fn axes_are_at_their_true_places_and_other_units_keep_the_height() {
    let regridded = Regridded::open(Sample::over_pressure().source()).await.unwrap();
    let dataset = regridded.describe().await.unwrap();
    let array = &dataset.arrays[0];
    let Coordinates::Regular { origin, step } = array.axes[1].coordinates else { panic!() };
    let map = array.levels[0].world_from_voxel;
    assert_eq!(map.0[1], [0.0, step, 0.0, origin]);
    assert!((origin - 0.5 * step - 85.2).abs() < 1e-9, "the first cell is symmetric");
    // The volume is as high as before: nine layers of twelve degrees.
    let count = array.shape()[0] as f64;
    assert!(
        (map.0[2][2] * count - 9.0 * 12.0).abs() < 1e-9
            && (map.0[2][3] - 0.5 * map.0[2][2] + 6.0).abs() < 1e-9
    );
    let coarse = array.levels[1].world_from_voxel;
    assert_eq!(coarse, map.coarsened([2.0; 3], [0.5; 3]));
    assert_eq!(array.notes[0], "other");
    assert_eq!(
        array.notes[1],
        format!(
            "axis `plev` is uneven: drawn at its true places on an even grid of {count} layers, not to scale with the others"
        )
    );
    assert!(
        array.notes[2].starts_with("axis `lat` is uneven: drawn at its true places"),
        "{:?}",
        array.notes
    );
    assert_eq!(regridded.voxel_of(0, 2, 7.0).unwrap(), 7.0);
    for (index, &pressure) in PRESSURES.iter().enumerate() {
        let voxel = regridded.voxel_of(0, 0, index as f64).unwrap();
        let found = nearest(&PRESSURES, array.axes[0].coordinates.at(voxel.round() as u64));
        assert_eq!(found, index, "{pressure}");
    }
    for outside in [-1.0, 8.5, f64::NAN] {
        let error = regridded.voxel_of(0, 0, outside).unwrap_err().to_string();
        assert!(error.contains("axis `plev` has indices from 0 to 8"), "{error}");
    }
}

#[tokio::test]
async fn it_conforms_as_a_source() {
    check_source(Arc::new(Regridded::open(Sample::over_pressure().source()).await.unwrap())).await;
    let plain = Arc::new(MemorySource::counting("<u2", &[5, 6, 7], &[2, 4, 4]));
    let regridded = Regridded::open(plain.clone()).await.unwrap();
    assert!(
        Arc::ptr_eq(&regridded.describe().await.unwrap(), &plain.dataset()),
        "an even array stays unchanged"
    );
    check_source(Arc::new(regridded)).await;
}

#[tokio::test]
async fn a_coarse_picture_asks_for_coarse_blocks_only() {
    let source = Sample::over_pressure().source();
    let regridded = Regridded::open(source.clone()).await.unwrap();
    assert!(source.asked().is_empty());
    drawn(&regridded, 0, 1).await;
    assert!(source.asked().iter().all(|key| key.level == 1 && key.dataset == source.dataset().id));
}

#[tokio::test]
async fn axes_without_common_units_or_an_order_are_drawn_evenly_with_a_note() {
    type Change = fn(&mut ArrayInfo);
    let cases: [(Change, &str); 8] = [
        (
            |a| a.axes[1].units = "m".into(),
            "`lat` is uneven and drawn evenly: its units are `m`, those of the picture `degrees`",
        ),
        (|a| a.axes[1].units = String::new(), "`lat` is uneven and drawn evenly: its units are not known"),
        (
            |a| a.world_units = String::new(),
            "`lat` is uneven and drawn evenly: the units of the other axes are not known",
        ),
        (
            |a| {
                a.axes[0].coordinates =
                    Coordinates::Explicit(vec![1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
            },
            "`plev` is uneven and drawn evenly: its coordinates do not all",
        ),
        (
            |a| a.axes[0].coordinates = Coordinates::Explicit(vec![f64::NAN; 9]),
            "`plev` is uneven and drawn evenly: some of its coordinates are not finite",
        ),
        (
            |a| a.axes[0].coordinates = Coordinates::Explicit(vec![1.0, 3.0]),
            "`plev` is uneven and drawn evenly: it has 2 coordinates for 9 samples",
        ),
        (
            |a| a.axes[0].coordinates = Coordinates::Explicit((0..9).map(|i| 10f64.powi(i * 38)).collect()),
            "`plev` is uneven and drawn evenly: its coordinates are too large",
        ),
        (|a| a.axes[0].coordinates = Coordinates::Explicit(vec![3.0]), "`lat` is uneven: drawn"),
    ];
    for (change, expected) in cases {
        let mut sample = Sample::over_pressure();
        change(&mut sample.dataset.arrays[0]);
        let regridded = Regridded::open(sample.source()).await.unwrap();
        let dataset = regridded.describe().await.unwrap();
        let notes = &dataset.arrays[0].notes;
        assert!(notes.iter().any(|note| note.contains(expected)), "{notes:?}, {expected}");
        drawn(&regridded, 0, 0).await;
    }
}

#[tokio::test]
async fn bounds_of_the_coordinate_are_the_borders_of_the_cells() {
    let text = |text: &str| Attribute::Text(text.into());
    let f64s =
        |values: &[f64]| -> Bytes { values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into() };
    let mut plev = named("plev", "<f8", &[9]);
    plev.axes[0].name = "plev".into();
    plev.attributes.insert("bounds".into(), text("plev_bnds"));
    let borders = [1010.0, 990.0, 800.0, 600.0, 400.0, 200.0, 60.0, 20.0, 7.0, 0.0];
    let pairs: Vec<f64> = borders.windows(2).flatten().copied().collect();
    let sample = Sample::over_pressure()
        .with(plev, f64s(&PRESSURES))
        .with(named("plev_bnds", "<f8", &[9, 2]), f64s(&pairs));
    let regridded = Regridded::open(sample.source()).await.unwrap();
    let dataset = regridded.describe().await.unwrap();
    let Coordinates::Regular { origin, step } = dataset.arrays[0].axes[0].coordinates else { panic!() };
    assert!((origin - 0.5 * step - 1010.0).abs() < 1e-9);
    let (shape, values) = drawn(&regridded, 0, 0).await;
    for z in 0..shape[0] {
        let at = origin + step * z as f64;
        let layer = (0..9).find(|&i| borders[i] >= at && at > borders[i + 1]).unwrap_or(8);
        assert_eq!((values[(z * shape[1] * shape[2]) as usize] / 10_000.0) as usize, layer, "{at}");
    }
}

/// Field over rows and columns, with two-dimensional latitudes and longitudes.
fn curvilinear(dtype: &str, place: impl Fn(f64, f64) -> [f64; 2]) -> Sample {
    let (rows, columns) = (30u64, 40u64);
    let mut dataset = one_array(dtype.parse().unwrap(), &[rows, columns], &[8, 16]);
    let field = &mut dataset.arrays[0];
    field.name = "ocean/sst".into();
    field.attributes.insert("coordinates".into(), Attribute::Text("time nav_lat nav_lon".into()));
    let size = field.dtype.size_bytes();
    let number = |i: u64| Scalar::Signed((i % 100) as i64).to_little_endian(field.dtype.element());
    let values: Vec<u8> = (0..rows * columns).flat_map(number).collect();
    assert_eq!(values.len(), size * 1200);
    let places: Vec<[f64; 2]> =
        (0..rows * columns).map(|i| place((i / columns) as f64, (i % columns) as f64)).collect();
    let mut latitude = named("nav_lat", "<f4", &[rows, columns]);
    latitude.units = "degrees_north".into();
    let mut longitude = named("ocean/nav_lon", "<f4", &[rows, columns]);
    longitude.attributes.insert("standard_name".into(), Attribute::Text("longitude".into()));
    let of = |which: usize| f32s(places.iter().map(|place| place[which] as f32));
    let sample = Sample { dataset, elements: vec![vec![values.into()]] };
    sample.with(latitude, of(1)).with(longitude, of(0))
}

#[tokio::test]
async fn a_curvilinear_grid_is_drawn_at_its_latitudes_and_longitudes() {
    let (sine, cosine) = 0.4f64.sin_cos();
    let place = |row: f64, column: f64| {
        let (x, y) = (column - 20.0, row - 15.0);
        let longitude = 175.0 + cosine * x - sine * y;
        [(longitude + 180.0).rem_euclid(360.0) - 180.0, 30.0 + sine * x + cosine * y]
    };
    for dtype in ["<f4", "|u1", "|i1", "<u2", ">i4", "<i8", "<u8", "|b1"] {
        let sample = curvilinear(if dtype == ">i4" { "<i4" } else { dtype }, place);
        let regridded = Regridded::open(sample.source()).await.unwrap();
        let dataset = regridded.describe().await.unwrap();
        let array = &dataset.arrays[0];
        assert_eq!((array.axes[0].name.as_str(), array.axes[1].name.as_str()), ("nav_lat", "nav_lon"));
        assert_eq!((array.axes[0].kind, array.axes[1].units.as_str()), (AxisKind::Y, "degrees_east"));
        assert_eq!((array.world_units.as_str(), dataset.arrays[1].world_units.as_str()), ("degrees", ""));
        let (shape, values) = drawn(&regridded, 0, 0).await;
        let (mut inside, mut outside) = (0, 0);
        for (i, &value) in values.iter().enumerate() {
            let [latitude, longitude] = [
                array.axes[0].coordinates.at(i as u64 / shape[1]),
                array.axes[1].coordinates.at(i as u64 % shape[1]),
            ];
            let x = (longitude - 175.0 + 180.0).rem_euclid(360.0) - 180.0;
            let y = latitude - 30.0;
            let (u, v) = (cosine * x + sine * y + 20.0, cosine * y - sine * x + 15.0);
            let near_border = |p: f64| (p - p.floor() - 0.5).abs() < 1e-2;
            if near_border(u) || near_border(v) {
                continue;
            }
            let (u, v) = (u.round(), v.round());
            if (0.0..40.0).contains(&u) && (0.0..30.0).contains(&v) {
                assert_eq!(value, (v * 40.0 + u) % 100.0, "{dtype} {u} {v}");
                inside += 1;
            } else {
                assert!(value.is_nan(), "{dtype} {u} {v}: {value}");
                outside += 1;
            }
        }
        assert!(inside > 1000 && outside > 300, "{inside} {outside}");
    }
}

#[tokio::test]
async fn a_region_of_a_curvilinear_grid_holds_all_of_its_layers() {
    const LAYERS: u64 = 5;
    let (sine, cosine) = 0.6f64.sin_cos();
    let place = |row: f64, column: f64| {
        let (x, y) = (column - 20.0, row - 15.0);
        [10.0 + cosine * x - sine * y, 30.0 + sine * x + cosine * y]
    };
    let mut sample = curvilinear("<f4", place);
    let mut field = named("ocean/temp", "<f4", &[LAYERS, 30, 40]);
    let coordinates = Attribute::Text("nav_lat nav_lon".into());
    field.attributes.insert("coordinates".into(), coordinates);
    (field.axes[1].name, field.axes[2].name) =
        (sample.dataset.arrays[0].axes[0].name.clone(), sample.dataset.arrays[0].axes[1].name.clone());
    field.axes[0].name = "depth".into();
    sample = sample.with(field, f32s((0..LAYERS * 1200).map(|i| i as f32)));
    let source = Arc::new(Regridded::open(sample.source()).await.unwrap());
    let dataset = source.describe().await.unwrap();
    let (number, _) = dataset.find("ocean/temp").unwrap();
    assert_eq!(dataset.arrays[number as usize].world_units, "degrees", "it is drawn by its coordinates");
    let view = View { array: "ocean/temp".into(), ..View::default() };
    let volume = volume_of(&view, &dataset).unwrap();
    let [depth, rows, columns] = volume.levels[0].shape;
    let session =
        Session::begin(dataset, source.clone(), 64u64 << 20, Some(view), Arc::new(|_| None)).unwrap();
    let session = session.telling_axes((*source).clone());
    // Their corners lie outside of all cells; the second one is half of the rectangle, and fewer layers.
    for (from, to) in
        [([0, 0, 0], [depth - 1, rows - 1, columns - 1]), ([1, 0, 0], [3, rows - 1, columns / 2])]
    {
        let corners = [from, to].map(|voxel| render::world_of_voxel(&volume, voxel));
        let measurement = crate::ViewMeasurement::Box { corners };
        let region = session.region(&crate::ViewChoice::default(), measurement).await.unwrap();
        let places = source.stored_places();
        assert!(places.stored(number, &from).is_none() && places.stored(number, &to).is_none());
        let expected: std::collections::BTreeSet<Vec<u64>> = (from[0]..=to[0])
            .flat_map(|z| (from[1]..=to[1]).map(move |y| [z, y]))
            .flat_map(|[z, y]| (from[2]..=to[2]).map(move |x| [z, y, x]))
            .filter_map(|voxel| Some(places.stored(number, &voxel)?.index))
            .collect();
        let ranges = region.boxes[0].selection.ranges();
        let [z, y, x] = [0, 1, 2].map(|axis| ranges[axis].start..ranges[axis].start + ranges[axis].count);
        let found = z.flat_map(|z| y.clone().map(move |y| [z, y]));
        let found = found.flat_map(|[z, y]| x.clone().map(move |x| vec![z, y, x]));
        let found: std::collections::BTreeSet<Vec<u64>> =
            found.filter(|index| region.mask.contains(index)).collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn arrays_that_share_places_get_the_same_grid() {
    let mut sample = curvilinear("<f4", |row, column| [column + 0.1 * row, row]);
    let mut other = sample.dataset.arrays[0].clone();
    other.name = "ocean/salt".into();
    let bytes = sample.elements[0][0].clone();
    sample = sample.with(other, bytes);
    let source = sample.source();
    let regridded = Regridded::open(source.clone()).await.unwrap();
    let dataset = regridded.describe().await.unwrap();
    let [a, b] = [0, 3].map(|number| &dataset.arrays[number]);
    assert_eq!((a.levels.clone(), &a.axes), (b.levels.clone(), &b.axes));
    assert_eq!(source.reads().len(), 2, "latitudes and longitudes are read once");
}

#[tokio::test]
async fn coordinates_that_make_no_grid_leave_the_array_by_index_with_a_note() {
    for (place, reason) in [
        ((|_, _| [f64::NAN; 2]) as fn(f64, f64) -> [f64; 2], "no grid"),
        (|_, _| [1.0, 2.0], "no grid"),
        (|row, column| [column * 1e30, row * 1e30], "no grid"),
    ] {
        let sample = curvilinear("<f4", place);
        let before = sample.dataset.id;
        let dataset = Regridded::open(sample.source()).await.unwrap().describe().await.unwrap();
        let notes = &dataset.arrays[0].notes;
        assert!(
            notes
                .iter()
                .any(|n| n.starts_with("curvilinear grid, drawn in index space: ") && n.contains(reason)),
            "{notes:?}"
        );
        assert_eq!(dataset.id, before, "the blocks are the source's");
    }
}

/// Side of a picture, pixels.
const SIDE: u32 = 400;

#[tokio::test]
async fn a_curvilinear_grid_in_index_space_has_north_at_the_top() {
    // Every fourth cell is on the other side of the globe: no even grid. Rows run southward, or northward.
    for (is_southward, sign) in [(true, -1.0), (false, 1.0)] {
        let sample = curvilinear("<f4", |row, column| {
            let north = if is_southward { 29.0 - row } else { row };
            let is_elsewhere = row % 2.0 == 0.0 && column % 2.0 == 0.0;
            [if is_elsewhere { 0.0 } else { 180.0 }, 30.0 + north]
        });
        let regridded = Regridded::open(sample.source()).await.unwrap();
        let dataset = regridded.describe().await.unwrap();
        let array = &dataset.arrays[0];
        assert!(array.notes.iter().any(|note| note.contains("drawn in index space")), "{:?}", array.notes);
        assert_eq!(array.notes.iter().any(|note| note.contains("from north to south")), is_southward);
        let height = |row: f64| array.levels[0].world_from_voxel.apply([0.0, row, 0.0])[1];
        assert_eq!((height(1.0) - height(0.0), height(14.5)), (sign, 14.5), "mirrored in place");
        assert_eq!(regridded.differing().len(), 1, "participants are told");
    }
}

/// Draws a picture of `height` world units from a camera that looks at the center of the volume; returns the rows
/// and columns of opaque pixels. Values from 0.5 to 1 are opaque.
async fn opaque_pixels(
    source: Regridded,
    array: &str,
    direction: [f64; 3],
    up: [f64; 3],
    height: f64,
) -> Vec<[f64; 2]> {
    let dataset = source.describe().await.unwrap();
    let view = View { array: array.into(), ..View::default() };
    let bounds = volume_of(&view, &dataset).unwrap().bounds();
    let target = bounds.center();
    let eye = [0, 1, 2].map(|axis| target[axis] - 1000.0 * direction[axis]);
    let camera = json!({"eye": eye, "target": target, "up": up, "projection": {"orthographic": {"height_world": height}}});
    let transfer = json!({"range": [0.0, 1.0], "map": "viridis", "opacity": [[0.0, 0.0], [0.5, 0.0], [0.51, 1.0], [1.0, 1.0]]});
    let view = json!({"array": array, "camera": camera, "transfer": transfer});
    let request = StillRequest {
        view: Some(View::parse(&view.to_string()).unwrap()),
        choice: None,
        size: ImageSize { width: SIDE, height: SIDE },
        resources: (64u64 << 20).into(),
    };
    let image = render_still(Arc::new(source), request, |_, _| {}).await.unwrap().image;
    let places = image.rgba.iter().enumerate().filter(|(_, pixel)| pixel[3] > 0.5);
    places.map(|(at, _)| [at as u32 / SIDE, at as u32 % SIDE].map(|n| f64::from(n) + 0.5)).collect()
}

#[tokio::test]
async fn a_bright_layer_is_seen_at_its_true_height() {
    let mut sample = Sample::over_pressure();
    sample.dataset.arrays[0].levels.truncate(1);
    // The layers of 10 and of 500 hPa.
    let bright = |i: u64| if [3, 7].contains(&(i / 192)) { 1.0 } else { 0.0 };
    sample.elements = vec![vec![f32s((0..9 * 192).map(bright))]];
    let regridded = Regridded::open(sample.source()).await.unwrap();
    let pixels = opaque_pixels(regridded, "a", [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], 108.0).await;
    let mut rows: Vec<f64> = pixels.iter().map(|[row, _]| *row).collect();
    rows.dedup();
    // The picture is as high as the volume.
    let row = |pressure: f64| (pressure - 2.5) / 1072.5 * f64::from(SIDE);
    let is_bright = |row_at: f64| {
        [[7.5, 20.0], [400.0, 600.0]]
            .iter()
            .any(|[low, high]| row_at > row(*low) - 2.0 && row_at < row(*high) + 2.0)
    };
    assert!(rows.iter().all(|&row| is_bright(row)), "{rows:?}");
    let count =
        |low: f64, high: f64| rows.iter().filter(|&&at| at > row(low) - 3.0 && at < row(high) + 3.0).count();
    assert!((2..=7).contains(&count(7.5, 20.0)), "{rows:?}");
    assert!((71..=77).contains(&count(400.0, 600.0)), "{rows:?}");
}

#[tokio::test]
async fn a_patch_of_a_rotated_grid_is_seen_at_its_latitude_and_longitude() {
    let (sine, cosine) = 0.4f64.sin_cos();
    let place = |row: f64, column: f64| {
        let (x, y) = (column - 20.0, row - 15.0);
        [10.0 + cosine * x - sine * y, 30.0 + sine * x + cosine * y]
    };
    let mut sample = curvilinear("<f4", place);
    let is_in_patch = |[longitude, latitude]: [f64; 2]| {
        (15.0..21.0).contains(&longitude) && (33.0..39.0).contains(&latitude)
    };
    let value = |i: u64| if is_in_patch(place((i / 40) as f64, (i % 40) as f64)) { 1.0 } else { 0.0 };
    sample.elements[0] = vec![f32s((0..1200).map(value))];
    let regridded = Regridded::open(sample.source()).await.unwrap();
    let dataset = regridded.describe().await.unwrap();
    let view = View { array: "ocean/sst".into(), ..View::default() };
    let center = volume_of(&view, &dataset).unwrap().bounds().center();
    let pixels = opaque_pixels(regridded, "ocean/sst", [0.0, 0.0, -1.0], [0.0, 1.0, 0.0], 80.0).await;
    let degree = f64::from(SIDE) / 80.0;
    let half = f64::from(SIDE) / 2.0;
    let places: Vec<[f64; 2]> = pixels
        .iter()
        .map(|[row, column]| [center[0] + (column - half) / degree, center[1] + (half - row) / degree])
        .collect();
    let mean = |axis: usize| places.iter().map(|place| place[axis]).sum::<f64>() / places.len() as f64;
    assert!((mean(0) - 18.0).abs() < 0.5 && (mean(1) - 36.0).abs() < 0.5, "{} {}", mean(0), mean(1));
    let is_near = |&[x, y]: &[f64; 2]| (13.5..22.5).contains(&x) && (31.5..40.5).contains(&y);
    assert!(places.iter().all(is_near));
    let area = places.len() as f64 / degree / degree;
    assert!((area - 36.0).abs() < 7.0, "{area} square degrees");
}

#[tokio::test]
async fn participants_are_told_on_which_axes_arrays_are_drawn() {
    let regridded = Regridded::open(Sample::over_pressure().source()).await.unwrap();
    let dataset = regridded.describe().await.unwrap();
    let source = Arc::new(regridded.clone());
    let session =
        Session::begin(Arc::clone(&dataset), source, 64u64 << 20, None, Arc::new(|_| None)).unwrap();
    let session = session.telling_axes(regridded);
    let join = session::JoinParams {
        session: String::new(),
        name: "Ada".into(),
        width: 64,
        height: 48,
        resume: String::new(),
    };
    let ada = session.join(&join, session::Role::Own).unwrap();
    let told = loop {
        let out = ada.next().await.unwrap();
        if out.item == session::Item::Drawn {
            break out;
        }
    };
    assert_eq!(told.body().unwrap(), br#"{"kind":"drawn"}"#);
    let arrays: Vec<DrawnArray> = serde_json::from_slice(&told.bulk).unwrap();
    let [array] = &arrays[..] else { panic!("{arrays:?}") };
    assert_eq!((&array.name, &array.axes), (&dataset.arrays[0].name, &dataset.arrays[0].axes));
    assert_eq!((&array.levels, &array.notes), (&dataset.arrays[0].levels, &dataset.arrays[0].notes));
}
