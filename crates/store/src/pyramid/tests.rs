//! Levels against naive means, and what they cost.

#![expect(clippy::cast_possible_truncation, reason = "small numbers of tests")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use array::conformance::{check_source, fetch, one_array};
use array::{
    Affine, ArrayInfo, BlockKey, DType, Decoding, Element, ElementType, LevelOrigin, LongTask, LongWork,
    Meaning, Priority, Scalar, Selection, Urgency, WorkProgress, c_strides, elements, want, with_element,
};
use futures::StreamExt;
use futures::executor::block_on;
use proptest::prelude::*;

use super::*;
use crate::{Access, CancelFlag, Format};

/// An array in memory as a format, counting what is read.
struct InMemory {
    dataset: Arc<Dataset>,
    bytes: Vec<u8>,
    access: Access,
    bytes_read: AtomicU64,
    reads: AtomicU64,
    work: LongWork,
    /// How far the levels were said to be at each read.
    told: Mutex<Vec<WorkProgress>>,
}

impl Format for InMemory {
    fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.dataset)
    }

    fn access(&self, _array: u32) -> Access {
        self.access
    }

    fn read(
        &self,
        _array: u32,
        _level: u8,
        selection: &Selection,
        mut into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        cancel.check()?;
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.told.lock().extend(self.work.progress(LongTask::Levels { array: 0 }));
        self.bytes_read.fetch_add(into.size_bytes() as u64, Ordering::Relaxed);
        let array = &self.dataset.arrays[0];
        let to_usize = |n: u64| usize::try_from(n).unwrap();
        let shape: Vec<usize> = array.shape().iter().map(|&n| to_usize(n)).collect();
        let mut strides = c_strides(&shape, array.dtype.size_bytes());
        let mut first = 0;
        for (stride, range) in strides.iter_mut().zip(selection.ranges()) {
            first += to_usize(range.start) * *stride;
            *stride *= to_usize(range.step);
        }
        into.write_strided(&self.bytes[first..], &strides)
    }
}

/// A made-up array: shape, values, and how to read them.
struct Case {
    info: ArrayInfo,
    bytes: Vec<u8>,
    access: Access,
}

impl Case {
    /// Scrambled values, some of them missing where there is a missing value; NaN among floats.
    fn new(dtype: &str, shape: &[u64]) -> Self {
        let dtype: DType = dtype.parse().unwrap();
        let mut dataset = one_array(dtype, shape, &array::choose_blocks(shape, &kinds(shape), dtype, None));
        let mut bytes = Vec::new();
        for i in 0..shape.iter().product::<u64>() {
            let scrambled = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let mut raw = [0; 8];
            let raw = &mut raw[..dtype.size_bytes()];
            with_element!(dtype.element(), T => value::<T>(scrambled).write(raw, dtype.order()));
            bytes.extend_from_slice(raw);
        }
        Self { info: dataset.arrays.remove(0), bytes, access: Access::Flat }
    }

    fn open(self) -> (Arc<InMemory>, Levels) {
        self.open_with(None)
    }

    fn open_with(self, side: Option<&Path>) -> (Arc<InMemory>, Levels) {
        self.open_as(&OpenOptions { side_dir: side.map(Path::to_owned), ..OpenOptions::default() })
    }

    fn open_as(self, options: &OpenOptions) -> (Arc<InMemory>, Levels) {
        let mut dataset = one_array(self.info.dtype, self.info.shape(), &self.info.levels[0].block);
        dataset.arrays = vec![self.info];
        let format = Arc::new(InMemory {
            dataset: Arc::new(dataset),
            bytes: self.bytes,
            access: self.access,
            bytes_read: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            work: options.work.clone(),
            told: Mutex::default(),
        });
        let levels = Levels::new(FormatSource::new(Arc::clone(&format) as Arc<dyn Format>), options);
        (format, levels)
    }
}

fn kinds(shape: &[u64]) -> Vec<array::AxisKind> {
    use array::AxisKind::{Time, X, Y, Z};
    [Time, Z, Y, X][4 - shape.len()..].to_vec()
}

/// An element from 24 random bits.
fn value<T: Element>(random: u64) -> T {
    let raw: [u8; 8] = match T::TYPE {
        ElementType::F64 if random.is_multiple_of(7) => f64::NAN.to_le_bytes(),
        ElementType::F64 => (random as f64 / 1000.0 - 5000.0).to_le_bytes(),
        ElementType::F32 if random.is_multiple_of(7) => u64::from(f32::NAN.to_bits()).to_le_bytes(),
        ElementType::F32 => u64::from((random as f32 / 1000.0).to_bits()).to_le_bytes(),
        ElementType::F16 => (random % 0x7000).to_le_bytes(),
        _ => random.wrapping_mul(0x0001_0001_0001_0001).to_le_bytes(),
    };
    T::read(&raw[..T::SIZE_BYTES], array::ByteOrder::Little)
}

async fn read_level(levels: &Levels, level: u8) -> Vec<u8> {
    let dataset = levels.describe().await.unwrap();
    let array = &dataset.arrays[0];
    let selection = Selection::all(&array.levels[usize::from(level)].shape);
    let (target, region) = Target::new(&selection.shape(), array.dtype.size_bytes()).unwrap();
    let request = ReadRequest { array: 0, level, selection, priority: Priority::NORMAL };
    levels.read(request, region).await.unwrap();
    target.into_vec().unwrap()
}

/// The definition, one coarser voxel at a time, in exact or double arithmetic.
fn naive(finer: &[u8], shape: &[u64], array: &ArrayInfo) -> (Vec<u8>, Vec<u64>) {
    let halved: Vec<bool> =
        shape.iter().zip(&array.axes).map(|(&n, a)| a.kind.is_spatial() && n > 1).collect();
    let coarse: Vec<u64> =
        shape.iter().zip(&halved).map(|(&n, &h)| if h { n.div_ceil(2) } else { n }).collect();
    let item = array.dtype.size_bytes();
    let scalar = |flat: u64| array.dtype.scalar_at(finer, usize::try_from(flat).unwrap()).unwrap();
    let mut out = Vec::new();
    for flat in 0..coarse.iter().product::<u64>() {
        let mut rest = flat;
        let mut members = vec![0u64];
        let mut at = vec![0; coarse.len()];
        for axis in (0..coarse.len()).rev() {
            at[axis] = rest % coarse[axis];
            rest /= coarse[axis];
        }
        for axis in 0..coarse.len() {
            let places = if halved[axis] { vec![2 * at[axis], 2 * at[axis] + 1] } else { vec![at[axis]] };
            let places: Vec<u64> = places.into_iter().filter(|&p| p < shape[axis]).collect();
            members = members.iter().flat_map(|m| places.iter().map(move |p| m * shape[axis] + p)).collect();
        }
        let present: Vec<u64> = members
            .iter()
            .copied()
            .filter(|m| !scalar(*m).as_f64().is_nan() && !array.decoding.is_missing(scalar(*m)))
            .collect();
        let raw = |flat: u64| finer[usize::try_from(flat).unwrap() * item..][..item].to_vec();
        out.extend(match (present.first(), array.meaning) {
            (None, _) => raw(members[0]),
            (Some(_), Meaning::Labels | Meaning::Text | Meaning::Colors) => {
                let count = |m: u64| present.iter().filter(|p| scalar(**p) == scalar(m)).count();
                let most = present.iter().map(|m| count(*m)).max().unwrap();
                let best = present.iter().filter(|m| count(**m) == most);
                raw(*best.min_by(|a, b| scalar(**a).as_f64().total_cmp(&scalar(**b).as_f64())).unwrap())
            }
            (Some(first), Meaning::Intensity) => {
                let mean = mean(&present.iter().map(|m| scalar(*m)).collect::<Vec<_>>(), array.dtype);
                let is_missing = array.decoding.is_missing(array.dtype.scalar_at(&mean, 0).unwrap());
                if is_missing { raw(*first) } else { mean }
            }
        });
    }
    (out, coarse)
}

fn mean(values: &[Scalar], dtype: DType) -> Vec<u8> {
    let integer = |s: &Scalar| match *s {
        Scalar::Unsigned(v) => i128::from(v),
        Scalar::Signed(v) => i128::from(v),
        Scalar::Float(_) => unreachable!(),
    };
    let count = values.len() as f64;
    let sum = || values.iter().map(|v| v.as_f64()).sum::<f64>();
    let mut raw = match dtype.element() {
        ElementType::F64 => (sum() / count).to_le_bytes().to_vec(),
        ElementType::F32 => ((sum() / count) as f32).to_le_bytes().to_vec(),
        ElementType::F16 => array::F16::from_f64(sum() / count).to_le_bytes().to_vec(),
        _ => {
            let (sum, n) = (values.iter().map(integer).sum::<i128>(), values.len() as i128);
            // Half up: the floor of the mean and a half.
            let rounded = (sum * 2 + n).div_euclid(n * 2);
            rounded.to_le_bytes()[..dtype.size_bytes()].to_vec()
        }
    };
    if dtype.order() == array::ByteOrder::Big {
        raw.reverse();
    }
    raw
}

fn assert_levels_are_naive(case: Case) {
    let mut finer = case.bytes.clone();
    let mut shape = case.info.shape().to_vec();
    let (_, levels) = case.open();
    block_on(async {
        let dataset = levels.describe().await.unwrap();
        let array = &dataset.arrays[0];
        let origin = if array.meaning == Meaning::Labels { LevelOrigin::Mode } else { LevelOrigin::Mean };
        let mut seen = 0;
        for (number, level) in (0u8..).zip(&array.levels).filter(|(_, l)| l.origin == origin) {
            let (expected, coarse) = naive(&finer, &shape, array);
            assert_eq!(level.shape, coarse, "level {number}");
            let found = read_level(&levels, number).await;
            assert!(same(&found, &expected, array.dtype), "level {number} of {:?}", array.shape());
            (finer, shape) = (found, coarse);
            seen += 1;
        }
        assert!(seen > 0, "no level was added");
        let long = |(n, axis): (&u64, &array::Axis)| axis.kind.is_spatial() && *n > COARSEST_SIDE;
        assert!(!shape.iter().zip(&array.axes).any(long), "the coarsest is {shape:?}");
    });
}

/// Equal values; any NaN equals any other.
fn same(a: &[u8], b: &[u8], dtype: DType) -> bool {
    with_element!(dtype.element(), T => {
        let pairs = elements::<T>(a, dtype.order()).zip(elements::<T>(b, dtype.order()));
        a.len() == b.len() && pairs.into_iter().all(|(x, y)| x == y || (x.is_nan() && y.is_nan()))
    })
}

#[test]
fn levels_are_the_means_they_claim_to_be() {
    for dtype in ["u1", "|b1", ">u2", "<i2", ">i4", "<u4", "<u8", ">i8", "<f2", "<f4", ">f4", "<f8", ">f8"] {
        assert_levels_are_naive(Case::new(dtype, &[3, 67, 130]));
    }
    for shape in [vec![129], vec![65, 300], vec![1, 131, 1], vec![2, 5, 66, 70]] {
        assert_levels_are_naive(Case::new("<i2", &shape));
        assert_levels_are_naive(Case::new(">f4", &shape));
    }
}

#[test]
fn blocks_of_chunked_arrays_make_the_same_levels() {
    let mut case = Case::new(">i2", &[70, 90, 110]);
    case.access = Access::Chunked;
    case.info.levels[0].chunk = Some(vec![7, 30, 22]);
    case.info.levels[0].block = vec![7, 30, 22];
    assert_levels_are_naive(case);
}

#[test]
fn missing_values_are_left_out() {
    for (dtype, missing) in
        [("u1", Scalar::Unsigned(0)), (">i2", Scalar::Signed(-1)), ("<f4", Scalar::Float(0.0))]
    {
        let mut case = Case::new(dtype, &[5, 70, 66]);
        case.info.decoding.missing = vec![missing];
        // A corner where nothing exists, and single holes elsewhere.
        let (item, raw) = (case.info.dtype.size_bytes(), case.info.dtype);
        for i in (0..case.bytes.len() / item).filter(|i| i % 66 < 9 || i % 5 == 0) {
            let hole: &[u8] = if missing == Scalar::Signed(-1) { &[0xff; 8] } else { &[0; 8] };
            case.bytes[i * item..][..item].copy_from_slice(&hole[..item]);
            assert!(case.info.decoding.is_missing(raw.scalar_at(&case.bytes, i).unwrap()));
        }
        assert_levels_are_naive(case);
    }
    let mut case = Case::new("u1", &[70, 66]);
    case.info.decoding.valid = Some((Scalar::Unsigned(20), Scalar::Unsigned(200)));
    assert_levels_are_naive(case);
}

#[test]
fn a_mean_never_reads_as_missing() {
    let halves = |values: &[i8], missing: i64| {
        let bytes: Vec<u8> = values.iter().map(|v| v.to_le_bytes()[0]).collect();
        let dtype = "i1".parse().unwrap();
        let decoding = Decoding { missing: vec![Scalar::Signed(missing)], ..Decoding::identity(dtype) };
        halve::halve(&bytes, &[values.len()], &[true], dtype, &decoding, Meaning::Intensity)
    };
    assert_eq!(halves(&[-3, 3, 5, 0, 0, 0, 7], 0), [(-3i8).to_le_bytes()[0], 5, 0, 7]);
    assert_eq!(halves(&[1, 2, -1, -2], 99), [2, 255], "halves round up");
}

#[test]
fn labels_take_the_most_frequent() {
    let mut case = Case::new("<u2", &[5, 70, 66]);
    case.info.meaning = Meaning::Labels;
    case.info.decoding.missing = vec![Scalar::Unsigned(3)];
    for (i, label) in case.bytes.chunks_exact_mut(2).enumerate() {
        label.copy_from_slice(&((i * i / 7 % 5) as u16).to_le_bytes());
    }
    assert_levels_are_naive(case);
    let dtype = "u1".parse().unwrap();
    let mode = |values: &[u8]| {
        halve::halve(values, &[values.len()], &[true], dtype, &Decoding::identity(dtype), Meaning::Labels)
    };
    assert_eq!(mode(&[9, 4, 7, 7, 1]), [4, 7, 1], "the smallest of equals");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_shape_halves_exactly(shape in prop::collection::vec(1u64..150, 1..4), dtype in "[<>](u2|i4|f4)", labels: bool) {
        prop_assume!(shape.iter().any(|&n| n > COARSEST_SIDE));
        let mut case = Case::new(&dtype, &shape);
        case.info.meaning = if labels && !dtype.contains('f') { Meaning::Labels } else { Meaning::Intensity };
        assert_levels_are_naive(case);
    }
}

#[test]
fn levels_lie_where_their_voxels_are() {
    let mut case = Case::new("u1", &[2, 100, 1, 300]);
    case.info.levels[0].world_from_voxel = Affine::from_spacing([0.5, 3.0, 2.0], [10.0, 20.0, 30.0]);
    let (_, levels) = case.open();
    let dataset = block_on(levels.describe()).unwrap();
    let array = &dataset.arrays[0];
    let found: Vec<_> = array.levels.iter().map(|l| (l.origin, l.shape.clone(), l.factor.clone())).collect();
    let expected = [
        (LevelOrigin::Stored, vec![2, 100, 1, 300], vec![1.0; 4]),
        (LevelOrigin::Mean, vec![2, 50, 1, 150], vec![1.0, 2.0, 1.0, 2.0]),
        (LevelOrigin::Mean, vec![2, 25, 1, 75], vec![1.0, 4.0, 1.0, 4.0]),
        (LevelOrigin::Mean, vec![2, 13, 1, 38], vec![1.0, 8.0, 1.0, 8.0]),
        (LevelOrigin::Sampled, vec![2, 50, 1, 150], vec![1.0, 2.0, 1.0, 2.0]),
        (LevelOrigin::Sampled, vec![2, 25, 1, 75], vec![1.0, 4.0, 1.0, 4.0]),
        (LevelOrigin::Sampled, vec![2, 13, 1, 38], vec![1.0, 8.0, 1.0, 8.0]),
    ];
    assert_eq!(found, expected);
    // Voxel 0 of the third mean level is the center of level-0 voxels 0 to 7: 3.5.
    assert_eq!(array.levels[3].world_from_voxel.apply([0.0; 3]), [11.75, 20.0, 37.0]);
    assert_eq!(array.levels[3].world_from_voxel.spacing(), [4.0, 3.0, 16.0]);
    // The sample of a group of 8 is its voxel 3.
    assert_eq!(array.levels[6].world_from_voxel.apply([1.0, 0.0, 0.0]), [10.0 + 0.5 * 11.0, 20.0, 36.0]);
}

#[test]
fn sampled_levels_are_every_nth_voxel_and_cost_no_others() {
    let case = Case::new("<u2", &[66, 130, 200]);
    let (format, levels) = case.open();
    block_on(async {
        let dataset = levels.describe().await.unwrap();
        let array = &dataset.arrays[0];
        let (number, level) =
            array.levels.iter().enumerate().rfind(|(_, l)| l.origin == LevelOrigin::Sampled).unwrap();
        assert_eq!(level.factor, [4.0; 3]);
        let key = |index| BlockKey { level: number as u8, index, ..key_of(&dataset) };
        let keys: Vec<BlockKey> = (0..level.block_count()).map(key).collect();
        let blocks = fetch(&levels, &keys).await;
        let elements = level.shape.iter().product::<u64>();
        assert_eq!(format.bytes_read.load(Ordering::Relaxed), elements * 2, "no other voxel is read");
        let block = blocks[&keys[0]].result.as_ref().unwrap();
        let sample = |z: u64, y: u64, x: u64| {
            let at = ((1 + 4 * z) * 130 + 1 + 4 * y) * 200 + 1 + 4 * x;
            array.dtype.scalar_at(&format.bytes, usize::try_from(at).unwrap())
        };
        assert_eq!(array.dtype.scalar_at(block.bytes().unwrap(), 0), sample(0, 0, 0));
        assert_eq!(array.dtype.scalar_at(block.bytes().unwrap(), 2), sample(0, 0, 2));
    });
}

fn key_of(dataset: &Dataset) -> BlockKey {
    BlockKey { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0, index: 0 }
}

#[test]
fn conforms() {
    for (dtype, shape) in [("<u2", vec![70, 80, 130]), (">f4", vec![2, 3, 66, 70]), ("u1", vec![20, 20])] {
        let (_, levels) = Case::new(dtype, &shape).open();
        block_on(check_source(Arc::new(levels)));
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, levels) = Case::new("<u2", &[70, 80, 130]).open_with(Some(dir.path()));
    block_on(check_source(Arc::new(levels)));
}

#[test]
fn kept_levels_are_not_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let side = || Some(dir.path());
    let case = || Case::new("<f4", &[150, 200, 260]);
    let (_, levels) = case().open_with(side());
    let first = [block_on(read_level(&levels, 1)), block_on(read_level(&levels, 2))];

    let (format, levels) = case().open_with(side());
    let second = [block_on(read_level(&levels, 1)), block_on(read_level(&levels, 2))];
    assert_eq!(format.reads.load(Ordering::Relaxed), 0, "no data is read");
    assert!(first == second);

    std::fs::remove_dir_all(dir.path()).unwrap();
    assert!(block_on(read_level(&levels, 1)) == first[0], "deleted while running");
    assert!(format.reads.load(Ordering::Relaxed) > 0);
}

/// Bytes below a directory.
fn size_of(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|e| if e.path().is_dir() { size_of(&e.path()) } else { e.metadata().unwrap().len() }).sum()
}

#[test]
fn what_is_kept_is_a_small_share() {
    for shape in [vec![257, 257, 257], vec![3000, 3001], vec![1_000_000]] {
        let dir = tempfile::tempdir().unwrap();
        let case = Case::new("u1", &shape);
        let size = case.bytes.len() as u64;
        let (_, levels) = case.open_with(Some(dir.path()));
        let dataset = block_on(levels.describe()).unwrap();
        let made = dataset.arrays[0].levels.iter().filter(|l| l.origin == LevelOrigin::Mean).count();
        for level in 1..=made {
            block_on(read_level(&levels, level as u8));
        }
        let kept = size_of(dir.path());
        assert!(kept * 100 <= size * KEPT_PERCENT + 10_000 && kept * 100 > size * 6, "{kept} of {size}");
    }
}

#[test]
fn making_the_coarsest_level_needs_little_memory() {
    let case = Case::new("<f4", &[300, 300, 300]);
    let size = case.bytes.len() as u64;
    let (format, levels) = case.open();
    let dataset = block_on(levels.describe()).unwrap();
    let coarsest = dataset.arrays[0].levels.iter().rposition(|l| l.origin == LevelOrigin::Mean).unwrap();
    block_on(read_level(&levels, coarsest as u8));
    assert_eq!(format.bytes_read.load(Ordering::Relaxed), size, "every voxel is read once");
    // Per chain and level: a block, a finer box, and a finer block being copied.
    let bound = (BLOCKS_AT_ONCE * PIECES_AT_ONCE * coarsest) as u64 * 3 * array::MAX_BLOCK_BYTES;
    assert!(levels.peak_bytes() <= bound, "{} of at most {bound}", levels.peak_bytes());
    assert!(levels.peak_bytes() * 4 < size, "{} of {size}", levels.peak_bytes());
}

#[test]
fn blocks_of_levels_are_made_within_the_budget() {
    let peak = |budget_bytes| {
        let options = OpenOptions { scratch: Scratch::new(budget_bytes), ..OpenOptions::default() };
        let (_, levels) = Case::new("<f4", &[256, 256, 256]).open_as(&options);
        let level = block_on(read_level(&levels, 1));
        assert_eq!(level.len(), 128 * 128 * 128 * 4);
        (
            levels.peak_bytes(),
            needed_bytes(&levels.plan(), BlockKey { level: 1, ..key_of(&levels.plan().dataset) }),
        )
    };
    let (small, one) = peak(1 << 20);
    let one = one.unwrap();
    assert!(small <= one, "{small} bytes, though one block takes at most {one}");
    let (large, _) = peak(64 << 20);
    assert!(large <= 16 << 20, "{large} bytes of a quarter of 64 MiB");
}

#[test]
fn viewers_see_how_far_levels_are_while_they_are_made() {
    let (format, levels) = Case::new("<f4", &[300, 300, 300]).open();
    let dataset = block_on(levels.describe()).unwrap();
    let made: Vec<_> = dataset.arrays[0].levels.iter().filter(|l| l.origin == LevelOrigin::Mean).collect();
    let total = made.iter().map(|l| l.block_count()).sum();
    block_on(read_level(&levels, made.len() as u8));
    let told = format.told.lock();
    assert!(told.iter().all(|share| share.total == total && share.done < total), "{told:?}");
    assert!(told.first().unwrap().done < told.last().unwrap().done && total > 8, "{told:?}");
    assert_eq!(format.work.progress(LongTask::Levels { array: 0 }), None, "nobody makes any more");
}

#[test]
fn many_callers_make_a_block_once_and_withdrawn_ones_make_nothing() {
    let (format, levels) = Case::new("<f4", &[128, 128, 128]).open();
    let dataset = block_on(levels.describe()).unwrap();
    let key = BlockKey { level: 1, ..key_of(&dataset) };
    let ask = |priority| {
        let (wanted, handle) = want(key, Urgency::of(priority));
        (levels.blocks(vec![wanted]), handle)
    };
    let (streams, handles): (Vec<_>, Vec<_>) = (0..20).map(|_| ask(Priority::NORMAL)).unzip();
    let answers: Vec<_> = block_on(futures::stream::select_all(streams).collect());
    assert_eq!(answers.len(), 20);
    assert!(answers.iter().all(|a| a.result.is_ok()));
    // Blocks begun together are made once; later callers find it gone and make it anew.
    let size = format.bytes.len() as u64;
    assert!(format.bytes_read.load(Ordering::Relaxed) <= size * 20 / BLOCKS_AT_ONCE as u64);
    drop(handles);

    // Of another array nothing is under way.
    let (format, levels) = Case::new("<f4", &[128, 128, 128]).open();
    let key = BlockKey { level: 1, ..key_of(&block_on(levels.describe()).unwrap()) };
    let before = format.bytes_read.load(Ordering::Relaxed);
    // Withdrawn before it is asked for: afterwards a piece may already be under way.
    let (wanted, handle) = want(key, Urgency::of(Priority::BACKGROUND));
    drop(handle);
    let stream = levels.blocks(vec![wanted]);
    assert_eq!(block_on(stream.collect::<Vec<_>>()).len(), 0);
    assert_eq!(format.bytes_read.load(Ordering::Relaxed), before);
}

#[test]
fn computed_arrays_keep_the_levels_they_have() {
    let mut case = Case::new("u1", &[200, 200]);
    case.access = Access::Computed;
    let (format, levels) = case.open();
    assert_eq!(block_on(levels.describe()).unwrap(), format.dataset());
}
