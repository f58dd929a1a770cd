//! Source that holds its arrays in memory, with a gate and scripted faults, for tests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;

use crate::{
    Affine, ArrayInfo, Axis, AxisKind, Block, BlockInfo, BlockKey, Completion, Completions, Content, DType,
    Dataset, DatasetId, Decoding, Error, Generation, Level, LevelOrigin, Meaning, ReadRequest, Region,
    Result, Selection, Source, Target, Urgency, Want, c_strides, expect_target, values::stats,
};

/// Whether a [`MemorySource`] answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceGate {
    /// Wants wait.
    Closed,
    /// Wants are answered, the most urgent first.
    Open,
}

/// Arrays in memory as a [`Source`].
///
/// ```
/// use corridor_array::conformance::{MemorySource, check_source};
/// let source = MemorySource::counting("<u2", &[5, 6, 7], &[2, 4, 4]);
/// futures::executor::block_on(check_source(std::sync::Arc::new(source)));
/// ```
pub struct MemorySource(Arc<MemoryShared>);

struct MemoryShared {
    dataset: Arc<Dataset>,
    /// Per array and level: all elements, C order.
    elements: Vec<Vec<Bytes>>,
    state: Mutex<MemoryState>,
}

struct MemoryState {
    gate: SourceGate,
    asked: Vec<BlockKey>,
    reads: Vec<ReadRequest>,
    faults: HashMap<BlockKey, Vec<Error>>,
    waiting: Vec<std::sync::Weak<Want>>,
    wakers: Vec<Waker>,
}

impl MemorySource {
    /// Creates a source from a description and, per array and level, all elements in C order.
    ///
    /// # Errors
    /// `Invalid` when description and elements do not fit each other.
    pub fn new(dataset: Dataset, elements: Vec<Vec<Bytes>>) -> Result<Self> {
        dataset.check()?;
        for (array, levels) in dataset.arrays.iter().zip(&elements) {
            for (level, bytes) in array.levels.iter().zip(levels) {
                let expected = level.shape.iter().product::<u64>() * array.dtype.size_bytes() as u64;
                if bytes.len() as u64 != expected || levels.len() != array.levels.len() {
                    return Err(Error::invalid(format!(
                        "expected {expected} bytes, found {} for `{}`",
                        bytes.len(),
                        array.name
                    )));
                }
            }
        }
        if dataset.arrays.len() != elements.len() {
            return Err(Error::invalid(format!("expected {} arrays of elements", dataset.arrays.len())));
        }
        let state = MemoryState {
            gate: SourceGate::Open,
            asked: Vec::new(),
            reads: Vec::new(),
            faults: HashMap::new(),
            waiting: Vec::new(),
            wakers: Vec::new(),
        };
        Ok(Self(Arc::new(MemoryShared { dataset: Arc::new(dataset), elements, state: Mutex::new(state) })))
    }

    /// One array `a` with one level; axes are named from the last: x, y, z, then time.
    ///
    /// # Panics
    /// Panics if `elements` does not fill `shape`; this is for tests.
    #[must_use]
    pub fn of_array(dtype: DType, shape: &[u64], block: &[u64], elements: Vec<u8>) -> Self {
        let dataset = one_array(dtype, shape, block);
        Self::new(dataset, vec![vec![elements.into()]]).expect("elements that fill the shape")
    }

    /// One array whose elements count up from 0, wrapping around.
    ///
    /// # Panics
    /// Panics if `dtype` is none, or `shape` is large; this is for tests.
    #[must_use]
    pub fn counting(dtype: &str, shape: &[u64], block: &[u64]) -> Self {
        let dtype: DType = dtype.parse().expect("an element type");
        let count = shape.iter().product::<u64>();
        let mut elements = Vec::new();
        for i in 0..count {
            let mut raw = [0; 8];
            let raw = &mut raw[..dtype.size_bytes()];
            crate::with_element!(dtype.element(), T => write_count::<T>(i, raw, dtype));
            elements.extend_from_slice(raw);
        }
        Self::of_array(dtype, shape, block, elements)
    }

    /// Returns the description of the data set.
    #[must_use]
    pub fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.0.dataset)
    }

    /// The key of block `index` of level 0 of array 0.
    #[must_use]
    pub fn key(&self, index: u64) -> BlockKey {
        let Dataset { id, generation, .. } = *self.0.dataset;
        BlockKey { dataset: id, generation, array: 0, level: 0, index }
    }

    /// Lets wants wait or go.
    pub fn set_gate(&self, gate: SourceGate) {
        let wakers = self.0.with(|s| {
            s.gate = gate;
            std::mem::take(&mut s.wakers)
        });
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The next answer for `key` is this error; several calls line up.
    pub fn fail_once(&self, key: BlockKey, error: Error) {
        self.0.with(|s| s.faults.entry(key).or_default().insert(0, error));
    }

    /// Returns the blocks requested so far, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<BlockKey> {
        self.0.with(|s| s.asked.clone())
    }

    /// Returns the reads so far, in order.
    #[must_use]
    pub fn reads(&self) -> Vec<ReadRequest> {
        self.0.with(|s| s.reads.clone())
    }

    /// Wants not yet answered nor withdrawn, with their urgency now.
    #[must_use]
    pub fn waiting(&self) -> Vec<(BlockKey, Urgency)> {
        self.0.with(|s| {
            s.waiting.retain(|w| w.strong_count() > 0);
            let alive = s.waiting.iter().filter_map(std::sync::Weak::upgrade);
            alive.filter(|w| !w.is_cancelled()).map(|w| (w.key(), w.urgency())).collect()
        })
    }
}

fn write_count<T: crate::Element>(i: u64, raw: &mut [u8], dtype: DType) {
    let bytes = match dtype.element() {
        crate::ElementType::Bool => [(i % 2).to_le_bytes()[0], 0, 0, 0, 0, 0, 0, 0],
        crate::ElementType::F16 => padded(half::f16::from_f64(to_f64(i % 2048)).to_le_bytes()),
        crate::ElementType::F32 => padded(half_of(i).to_le_bytes()),
        crate::ElementType::F64 => to_f64(i).to_le_bytes(),
        _ => i.to_le_bytes(),
    };
    T::read(&bytes[..T::SIZE_BYTES], crate::ByteOrder::Little).write(raw, dtype.order());
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn to_f64(i: u64) -> f64 {
    i as f64
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn half_of(i: u64) -> f32 {
    i as f32
}

fn padded<const N: usize>(raw: [u8; N]) -> [u8; 8] {
    let mut out = [0; 8];
    out[..N].copy_from_slice(&raw);
    out
}

/// The description of one array with one stored level and index coordinates.
#[must_use]
pub fn one_array(dtype: DType, shape: &[u64], block: &[u64]) -> Dataset {
    let names = [("x", AxisKind::X), ("y", AxisKind::Y), ("z", AxisKind::Z), ("t", AxisKind::Time)];
    let axes = (0..shape.len()).rev().map(|from_last| match names.get(from_last) {
        Some((name, kind)) => Axis::new(*name, *kind),
        None => Axis::new(format!("dim{from_last}"), AxisKind::Other),
    });
    let level = Level {
        shape: shape.to_vec(),
        block: block.to_vec(),
        chunk: None,
        origin: LevelOrigin::Stored,
        factor: vec![1.0; shape.len()],
        world_from_voxel: Affine::IDENTITY,
    };
    let array = ArrayInfo {
        name: "a".into(),
        dtype,
        axes: axes.collect(),
        units: String::new(),
        attributes: crate::Attributes::new(),
        decoding: Decoding::identity(dtype),
        meaning: Meaning::Intensity,
        levels: vec![level],
        world_units: String::new(),
        notes: Vec::new(),
        storage: crate::Storage::default(),
    };
    Dataset {
        id: DatasetId::of([dtype.to_string(), format!("{shape:?}")]),
        generation: Generation(0),
        name: "memory".into(),
        format: "memory".into(),
        arrays: vec![array],
        attributes: crate::Attributes::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        groups: Vec::new(),
    }
}

impl MemoryShared {
    fn with<T>(&self, f: impl FnOnce(&mut MemoryState) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn block(&self, key: BlockKey) -> Result<Arc<Block>> {
        if let Some(error) = self.with(|s| s.faults.get_mut(&key).and_then(Vec::pop)) {
            return Err(error);
        }
        let BlockInfo { array, selection, .. } = self.dataset.block(key)?;
        let (target, region) = Target::new(&selection.shape(), array.dtype.size_bytes())?;
        self.copy(key.array, key.level, &selection, region)?;
        let bytes = Bytes::from(target.into_vec()?);
        let range = stats::value_range(&bytes, array.dtype, &array.decoding);
        Ok(Arc::new(Block { key, content: Content::Data { bytes, range } }))
    }

    fn copy(&self, array: u32, level: u8, selection: &Selection, mut into: Region) -> Result<()> {
        let info = self.dataset.array(array)?;
        let shape = &info.level(level)?.shape;
        selection.check(shape)?;
        expect_target(&into, selection, info.dtype.size_bytes())?;
        let to_usize =
            |n: u64| usize::try_from(n).map_err(|_| Error::too_large("an index larger than the memory"));
        let shape = shape.iter().map(|&n| to_usize(n)).collect::<Result<Vec<_>>>()?;
        let mut strides = c_strides(&shape, info.dtype.size_bytes());
        let mut first = 0;
        for (stride, range) in strides.iter_mut().zip(selection.ranges()) {
            first += to_usize(range.start)? * *stride;
            *stride *= to_usize(range.step)?;
        }
        let elements = &self.elements[array as usize][usize::from(level)];
        into.write_strided(elements.get(first..).unwrap_or_default(), &strides)
    }
}

/// Wants of one call, answered as its stream is polled.
struct WantQueue {
    shared: Arc<MemoryShared>,
    /// Wants, each with the version of its urgency that was seen last.
    wants: Vec<(Arc<Want>, u64)>,
}

impl WantQueue {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Completion>> {
        for (want, seen) in &mut self.wants {
            while let Poll::Ready(version) = want.poll_changed(cx, *seen) {
                *seen = version;
            }
        }
        self.wants.retain(|(want, _)| !want.is_cancelled());
        if self.wants.is_empty() {
            return Poll::Ready(None);
        }
        let is_closed = self.shared.with(|s| {
            s.wakers.push(cx.waker().clone());
            s.gate == SourceGate::Closed
        });
        let most_urgent = (0..self.wants.len()).rev().max_by_key(|&i| self.wants[i].0.urgency().priority);
        match most_urgent {
            Some(at) if !is_closed => {
                let key = self.wants.remove(at).0.key();
                Poll::Ready(Some(Completion { key, result: self.shared.block(key) }))
            }
            _ => Poll::Pending,
        }
    }
}

impl Source for MemorySource {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        Box::pin(std::future::ready(Ok(self.dataset())))
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let wants: Vec<_> = wants.into_iter().map(|w| (Arc::new(w), 0)).collect();
        self.0.with(|s| {
            s.asked.extend(wants.iter().map(|(w, _)| w.key()));
            s.waiting.extend(wants.iter().map(|(w, _)| Arc::downgrade(w)));
        });
        let mut queue = WantQueue { shared: Arc::clone(&self.0), wants };
        futures::stream::poll_fn(move |cx| queue.poll_next(cx)).boxed()
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            shared.with(|s| s.reads.push(request.clone()));
            shared.copy(request.array, request.level, &request.selection, into)
        })
    }
}
