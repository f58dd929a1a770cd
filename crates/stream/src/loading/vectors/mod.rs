//! Lengths of vectors, as additional arrays that are computed from the blocks of the components.
//!
//! A data set with arrays `u`, `v` and `w` gets an array `|u,v,w|`, whose element is the length of the vector there. A block of it
//! is computed from the block of each component at the same place and level, so memory is bounded by four blocks and
//! caches behind this source hold each component once. Where a component is missing, the length is missing.
//!
//! | file | contents |
//! |---|---|
//! | `find.rs` | recognition of the components, and the description of the lengths |

mod find;

use std::sync::{Arc, Mutex, PoisonError};

use array::{
    ArrayInfo, Block, BlockKey, Completion, Completions, Content, Dataset, Error, Level, PackedChunk,
    ReadEnds, ReadRequest, Region, Result, Source, Want, elements, gather as gather_blocks, values::stats,
    want, with_element,
};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{self, FuturesUnordered, StreamExt};

use self::find::{VectorField, fields_of};

/// Source with an array of lengths for each vector field of the source that it wraps. The other arrays are unchanged, and come
/// first.
#[derive(Clone)]
pub(crate) struct VectorLengths {
    inner: Arc<VectorState>,
}

struct VectorState {
    source: Arc<dyn Source>,
    /// Plan for the newest description of the source.
    plan: Mutex<Arc<VectorPlan>>,
}

struct VectorPlan {
    /// Description by the source.
    source: Arc<Dataset>,
    /// Description with the lengths.
    dataset: Arc<Dataset>,
    fields: Vec<VectorField>,
}

/// Names of the arrays that are the components of a vector, or of the one array that has them along an axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VectorNames {
    pub(crate) arrays: Vec<String>,
    pub(crate) axis: Option<String>,
}

impl VectorPlan {
    fn of(source: Arc<Dataset>) -> Self {
        let (fields, lengths): (Vec<_>, Vec<_>) = fields_of(&source).into_iter().unzip();
        let dataset = if lengths.is_empty() {
            Arc::clone(&source)
        } else {
            let arrays = source.arrays.iter().cloned().chain(lengths).collect();
            Arc::new(Dataset { arrays, ..Dataset::clone(&source) })
        };
        Self { source, dataset, fields }
    }

    /// Returns the vector field of an array of lengths; `None` for other arrays.
    fn field(&self, array: u32) -> Option<&VectorField> {
        self.fields.get((array as usize).checked_sub(self.source.arrays.len())?)
    }
}

impl VectorLengths {
    /// Describes `source`, and finds its vectors.
    ///
    /// # Errors
    /// Those of describing.
    pub(crate) async fn open(source: Arc<dyn Source>) -> Result<Self> {
        let plan = Arc::new(VectorPlan::of(source.describe().await?));
        Ok(Self { inner: Arc::new(VectorState { source, plan: Mutex::new(plan) }) })
    }

    /// Returns the components of an array of lengths, for the newest description; `None` for other arrays.
    pub(crate) fn names(&self, array: u32) -> Option<VectorNames> {
        let plan = self.inner.plan();
        let field = plan.field(array)?;
        let of = |&number: &u32| plan.source.arrays.get(number as usize);
        let axis =
            field.axis.and_then(|(axis, _)| Some(of(field.arrays.first()?)?.axes.get(axis)?.name.clone()));
        Some(VectorNames {
            arrays: field.arrays.iter().filter_map(of).map(|a| a.name.clone()).collect(),
            axis,
        })
    }
}

impl VectorState {
    fn plan(&self) -> Arc<VectorPlan> {
        Arc::clone(&self.plan.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn describe(&self) -> Result<Arc<Dataset>> {
        let described = self.source.describe().await?;
        let known = self.plan();
        if Arc::ptr_eq(&known.source, &described) || known.source == described {
            return Ok(Arc::clone(&known.dataset));
        }
        let plan = Arc::new(VectorPlan::of(described));
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&plan);
        Ok(Arc::clone(&plan.dataset))
    }

    /// Computes a block of lengths; `None` if no request waits for it any more.
    async fn compute(&self, plan: &VectorPlan, want: &Want) -> Option<Completion> {
        let key = want.key();
        let block = match Parts::of(plan, key) {
            Err(error) => Err(error),
            Ok(parts) => match self.fetch(&parts, want).await? {
                Err(error) => Err(error),
                Ok(blocks) => crate::tasks::blocking(move || parts.lengths(key, &blocks)).await.flatten(),
            },
        };
        Some(Completion { key, result: block.map(Arc::new) })
    }

    /// Fetches the blocks of the components, with the urgency of a want. Returns `None` when nobody waits any more.
    async fn fetch(&self, parts: &Parts, for_want: &Want) -> Option<Result<Vec<Arc<Block>>>> {
        let pairs = parts.keys.iter().map(|&key| want(key, for_want.urgency()));
        let (wants, handles): (Vec<_>, Vec<_>) = pairs.unzip();
        let mut answers = self.source.blocks(wants);
        let taking = async {
            let mut found: Vec<Option<Arc<Block>>> = vec![None; parts.keys.len()];
            while found.iter().any(Option::is_none) {
                let Some(Completion { key, result }) = answers.next().await else {
                    let what = "the source ended its answers without answering every want";
                    return Err(Error::internal(what));
                };
                let place = parts.keys.iter().position(|own| *own == key);
                let place = place.and_then(|place| found.get_mut(place));
                *place.ok_or_else(|| Error::internal("a block that was not requested"))? = Some(result?);
            }
            Ok(found.into_iter().flatten().collect())
        };
        for_want.drive(taking, |urgency| handles.iter().for_each(|handle| handle.adjust(urgency))).await
    }
}

/// Blocks of components from which a block of lengths is computed.
struct Parts {
    /// Blocks in the order of the components.
    keys: Vec<BlockKey>,
    /// Description of the array of each block.
    arrays: Vec<ArrayInfo>,
    /// Elements along the axis of components in each block, 1 without such an axis, and elements behind it.
    along: Vec<usize>,
    behind: usize,
    /// Elements of the block of lengths.
    count: usize,
    decoding: array::Decoding,
    dtype: array::DType,
}

impl Parts {
    fn of(plan: &VectorPlan, key: BlockKey) -> Result<Self> {
        let info = plan.dataset.block(key)?;
        let shape = to_usize(&info.selection.shape())?;
        let count = shape.iter().product();
        let field = plan.field(key.array).ok_or_else(|| Error::internal("an array without components"))?;
        let level = info.array.level(key.level)?;
        let (mut keys, mut arrays, mut along) = (Vec::new(), Vec::new(), Vec::new());
        for &array in &field.arrays {
            let component = plan.source.array(array)?;
            let own = component.level(key.level)?;
            let blocks = match field.axis {
                None => vec![(key.index, 1)],
                Some((axis, _)) => blocks_along(level, own, axis, key.index),
            };
            for (index, length) in blocks {
                keys.push(BlockKey { array, index, ..key });
                arrays.push(component.clone());
                along.push(usize::try_from(length).map_err(|_| Error::too_large("too many components"))?);
            }
        }
        let behind = field.axis.map_or(count, |(axis, _)| shape[axis..].iter().product());
        let (decoding, dtype) = (info.array.decoding.clone(), info.array.dtype);
        Ok(Self { keys, arrays, along, behind, count, decoding, dtype })
    }

    /// Returns the block of lengths.
    fn lengths(&self, key: BlockKey, blocks: &[Arc<Block>]) -> Result<Block> {
        let mut squares = vec![0.0; self.count];
        for ((block, array), &along) in blocks.iter().zip(&self.arrays).zip(&self.along) {
            let Content::Data { bytes, .. } = &block.content else {
                return Ok(Block { key, content: Content::NotCovered });
            };
            let expected = self.count * along * array.dtype.size_bytes();
            if bytes.len() != expected {
                let found = bytes.len();
                return Err(Error::corrupt(format!("expected a block of {expected} bytes, found {found}")));
            }
            add_squares(&mut squares, bytes, array, along, self.behind)?;
        }
        let mut bytes = Vec::with_capacity(self.count * self.dtype.size_bytes());
        for square in squares {
            bytes.extend_from_slice(&single(square.sqrt()).to_le_bytes());
        }
        let range = stats::value_range(&bytes, self.dtype, &self.decoding);
        Ok(Block { key, content: Content::Data { bytes: Bytes::from(bytes), range } })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "lengths are in single precision")]
fn single(value: f64) -> f32 {
    value as f32
}

/// Adds the squares of decoded elements to those of the vectors that they belong to; a missing element makes NaN.
fn add_squares(
    squares: &mut [f64],
    bytes: &[u8],
    array: &ArrayInfo,
    along: usize,
    behind: usize,
) -> Result<()> {
    let decoding = &array.decoding;
    with_element!(decoding.meant(array.dtype).element(), T => {
        for (at, stored) in elements::<T>(bytes, array.dtype.order()).enumerate() {
            let value = decoding.decode(array::Element::to_scalar(stored));
            let vector = at / (along * behind) * behind + at % behind;
            squares[vector] += value * value;
        }
    });
    Ok(())
}

/// Returns the blocks of an array with an axis of components that lie where a block of the lengths does, and the number of
/// components in each.
fn blocks_along(lengths: &Level, own: &Level, axis: usize, index: u64) -> Vec<(u64, u64)> {
    let mut rest = index;
    let mut place: Vec<u64> = lengths
        .grid()
        .iter()
        .rev()
        .map(|&count| {
            let at = rest % count.max(1);
            rest /= count.max(1);
            at
        })
        .collect();
    place.reverse();
    let (count, side) = (own.shape[axis], own.block[axis].max(1));
    let grid = own.grid();
    (0..count.div_ceil(side))
        .map(|number| {
            let mut place = place.clone();
            place.insert(axis, number);
            let index = place.iter().zip(&grid).fold(0, |index, (at, count)| index * count + at);
            (index, side.min(count - number * side))
        })
        .collect()
}

fn to_usize(shape: &[u64]) -> Result<Vec<usize>> {
    let side = |&n: &u64| usize::try_from(n).map_err(|_| Error::too_large("a block larger than the memory"));
    shape.iter().map(side).collect()
}

impl Source for VectorLengths {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        let inner = Arc::clone(&self.inner);
        async move { inner.describe().await }.boxed()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let plan = self.inner.plan();
        let (lengths, stored): (Vec<Want>, Vec<Want>) =
            wants.into_iter().partition(|want| plan.field(want.key().array).is_some());
        if lengths.is_empty() {
            return self.inner.source.blocks(stored);
        }
        let compute = |want: Want| {
            let (inner, plan) = (Arc::clone(&self.inner), Arc::clone(&plan));
            async move { inner.compute(&plan, &want).await }.boxed()
        };
        let computed: FuturesUnordered<_> = lengths.into_iter().map(compute).collect();
        let computed = computed.filter_map(ready);
        if stored.is_empty() {
            return computed.boxed();
        }
        stream::select(self.inner.source.blocks(stored), computed).boxed()
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        match self.inner.plan().field(request.array) {
            Some(_) => gather_blocks(Arc::new(self.clone()), request, into),
            None => self.inner.source.read(request, into),
        }
    }

    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        let plan = self.inner.plan();
        if reads.iter().all(|(request, _)| plan.field(request.array).is_none()) {
            return self.inner.source.read_many(reads);
        }
        let each = reads.into_iter().enumerate();
        each.map(|(number, (request, into))| self.read(request, into).map(move |end| (number, end)))
            .collect::<FuturesUnordered<_>>()
            .boxed()
    }

    fn packed(&self, request: &ReadRequest) -> BoxFuture<'static, Result<Option<PackedChunk>>> {
        match self.inner.plan().field(request.array) {
            Some(_) => ready(Ok(None)).boxed(),
            None => self.inner.source.packed(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use array::conformance::{MemorySource, one_array};
    use array::{AxisKind, Priority, Selection, Target};

    use super::*;

    fn floats(values: impl IntoIterator<Item = f32>) -> Bytes {
        values.into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>().into()
    }

    async fn lengths(dataset: Dataset, elements: Vec<Vec<Bytes>>) -> (VectorLengths, Vec<f32>) {
        let source = Arc::new(MemorySource::new(dataset, elements).unwrap());
        let own = VectorLengths::open(source).await.unwrap();
        let described = own.describe().await.unwrap();
        let number = described.arrays.len() - 1;
        let (target, into) = Target::new(described.arrays[number].shape(), 4).unwrap();
        let selection = Selection::all(described.arrays[number].shape());
        let array = u32::try_from(number).unwrap();
        let request = ReadRequest { array, level: 0, selection, priority: Priority::NORMAL };
        own.read(request, into).await.unwrap();
        let read = target.into_vec().unwrap();
        let values = read.chunks_exact(4).map(|raw| f32::from_le_bytes(raw.try_into().unwrap())).collect();
        (own, values)
    }

    fn three(names: [&str; 3]) -> Dataset {
        let mut dataset = one_array("<f4".parse().unwrap(), &[3, 4, 5], &[2, 3, 2]);
        let kinds = [AxisKind::Z, AxisKind::Y, AxisKind::X];
        dataset.arrays[0].axes.iter_mut().zip(kinds).for_each(|(axis, kind)| axis.kind = kind);
        let first = dataset.arrays.remove(0);
        dataset.arrays = names.map(|name| ArrayInfo { name: name.into(), ..first.clone() }).into();
        dataset
    }

    #[tokio::test]
    async fn lengths_of_three_arrays_are_those_of_their_elements() {
        let component = |scale: f32| move |i: u16| (f32::from(i) - 30.0) * scale;
        let elements = [1.0, -2.0, 0.5].map(|scale| vec![floats((0..60).map(component(scale)))]);
        let (own, found) = lengths(three(["u", "v", "w"]), elements.into()).await;
        let expected: Vec<f32> = (0..60u16)
            .map(|i| {
                let square = |scale: f32| f64::from(component(scale)(i)).powi(2);
                single((square(1.0) + square(-2.0) + square(0.5)).sqrt())
            })
            .collect();
        assert_eq!(found, expected);
        let names = own.names(3).unwrap();
        assert_eq!((names.arrays, names.axis), (vec!["u".into(), "v".into(), "w".into()], None));
        assert_eq!(own.names(0), None);
    }

    #[tokio::test]
    async fn lengths_along_an_axis_do_not_depend_on_its_place_or_blocks() {
        for (shape, axis) in [([4u64, 5, 3], 2), ([4, 3, 5], 1), ([3, 4, 5], 0)] {
            for side in 1..=3 {
                let mut block = vec![3; 3];
                block[axis] = side;
                let mut dataset = one_array("<f4".parse().unwrap(), &shape, &block);
                let mut kinds = vec![AxisKind::Y, AxisKind::X];
                kinds.insert(axis, AxisKind::Channel);
                dataset.arrays[0].axes.iter_mut().zip(kinds).for_each(|(own, kind)| own.kind = kind);
                // The element at (y, x) of component c is (10 y + x) * (c + 1).
                let value = |index: [u64; 3]| {
                    let mut place = index.to_vec();
                    let component = place.remove(axis);
                    f32::from(u16::try_from((10 * place[0] + place[1]) * (component + 1)).unwrap())
                };
                let all = (0..shape[0])
                    .flat_map(|a| (0..shape[1]).flat_map(move |b| (0..shape[2]).map(move |c| [a, b, c])));
                let (own, found) = lengths(dataset, vec![vec![floats(all.map(value))]]).await;
                let expected: Vec<f32> = (0..4u8)
                    .flat_map(|y| (0..5u8).map(move |x| single(f64::from(10 * y + x) * 14f64.sqrt())))
                    .collect();
                assert!(
                    found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs()),
                    "{shape:?} {block:?}: {found:?}"
                );
                assert!(own.names(1).unwrap().axis.is_some());
            }
        }
    }

    #[tokio::test]
    async fn a_missing_component_makes_the_length_missing_and_other_arrays_are_unchanged() {
        let mut dataset = three(["u", "v", "density"]);
        dataset.arrays[0].decoding.missing = vec![array::Scalar::Float(-999.0)];
        let u = (0..60).map(|i| if i == 7 { -999.0 } else { 3.0 });
        let elements = vec![vec![floats(u)], vec![floats([4.0; 60])], vec![floats([1.0; 60])]];
        let (own, found) = lengths(dataset, elements).await;
        assert!(found[7].is_nan());
        assert!(found.iter().enumerate().all(|(i, &value)| i == 7 || value == 5.0));
        let described = own.describe().await.unwrap();
        let names: Vec<&str> = described.arrays.iter().map(|array| array.name.as_str()).collect();
        assert_eq!(names, ["u", "v", "density", "|u,v|"]);
        let selection = Selection::all(described.arrays[2].shape());
        let (target, into) = Target::new(&[3, 4, 5], 4).unwrap();
        let request = ReadRequest { array: 2, level: 0, selection, priority: Priority::NORMAL };
        own.read(request, into).await.unwrap();
        assert_eq!(target.into_vec().unwrap(), floats([1.0; 60]));
    }
}
