//! Arrays of other data sets beside those of one: layers over its arrays.
//!
//! A [`Beside`] presents one data set: the arrays of the first, with their numbers, followed by the arrays of
//! the others that can be drawn, under names of their own. Blocks and elements come from the data set that has
//! them; nothing is copied or changed. The others are put on even grids first ([`Regridded`]), because the
//! coordinates that they name are not part of the first.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use array::{
    ArrayInfo, Block, BlockKey, Completion, Completions, Dataset, DatasetId, Error, Meaning, PackedChunk,
    ReadRequest, Region, Result, Source, Want, want,
};
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{FuturesUnordered, StreamExt};
use view::{View, thick_sides};

use super::regrid::Regridded;

/// Part of the identity of a data set with others beside it.
const IDENTITY: &str = "beside 1";
/// Most arrays of another data set that are added: a list for people to choose from.
const MAX_ARRAYS_BESIDE: usize = 64;
/// Most data sets beside one: as many as layers.
const MAX_BESIDE: usize = view::MAX_LAYERS;

/// Another data set, with the name of its arrays beside the first.
pub struct OtherDataset {
    /// Name of its main array; that of the others begins with it.
    pub name: String,
    /// Name of its main array in the other data set; its default array if empty.
    pub array: String,
    /// Data.
    pub source: Arc<dyn Source>,
}

/// Source of one data set with the arrays of others; see the module.
#[derive(Clone)]
pub struct Beside {
    inner: Arc<BesideState>,
}

struct BesideState {
    first: Arc<dyn Source>,
    others: Vec<OtherSource>,
    /// Plan for the newest descriptions.
    plan: Mutex<Arc<BesidePlan>>,
}

struct OtherSource {
    name: String,
    array: String,
    source: Regridded,
}

/// Descriptions of all data sets, and that of all of them as one.
struct BesidePlan {
    described: Vec<Arc<Dataset>>,
    dataset: Arc<Dataset>,
    /// Data set and number of each array that follows those of the first.
    added: Vec<(usize, u32)>,
    /// Names of the main arrays of the others.
    main_names: Vec<String>,
}

impl Beside {
    /// Describes all data sets.
    ///
    /// Call it within a tokio runtime.
    ///
    /// # Errors
    /// Those of describing; `TooLarge` for more data sets than layers; `NotFound` for an unknown main array;
    /// `Unsupported` for a data set without an array that can be drawn.
    pub async fn open(first: Arc<dyn Source>, others: Vec<OtherDataset>) -> Result<Self> {
        if others.len() > MAX_BESIDE {
            let found = others.len();
            return Err(Error::too_large(format!(
                "expected at most {MAX_BESIDE} data sets as layers, found {found}"
            )));
        }
        let mut opened = Vec::with_capacity(others.len());
        for OtherDataset { name, array, source } in others {
            opened.push(OtherSource { name, array, source: Regridded::open(source).await? });
        }
        let described = describe_all(&first, &opened).await?;
        let plan = Arc::new(BesidePlan::of(described, &opened)?);
        Ok(Self { inner: Arc::new(BesideState { first, others: opened, plan: Mutex::new(plan) }) })
    }

    /// Returns the names of the main arrays of the other data sets, in their order.
    #[must_use]
    pub fn main_names(&self) -> Vec<String> {
        self.inner.plan().main_names.clone()
    }
}

async fn describe_all(first: &Arc<dyn Source>, others: &[OtherSource]) -> Result<Vec<Arc<Dataset>>> {
    let mut described = vec![first.describe().await?];
    for other in others {
        described.push(other.source.describe().await?);
    }
    Ok(described)
}

impl BesidePlan {
    fn of(described: Vec<Arc<Dataset>>, others: &[OtherSource]) -> Result<Self> {
        let (first, rest) = described.split_first().ok_or_else(|| Error::internal("no data set"))?;
        let mut arrays = first.arrays.clone();
        let mut names: BTreeSet<String> = arrays.iter().map(|array| array.name.clone()).collect();
        let (mut added, mut main_names) = (Vec::new(), Vec::new());
        for (number, (dataset, other)) in rest.iter().zip(others).enumerate() {
            let main = main_array(dataset, &other.array)?;
            let drawn = |(_, array): &(u32, &ArrayInfo)| {
                array.name != main && thick_sides(array) >= 2 && array.meaning != Meaning::Text
            };
            let (main_number, main_info) = dataset.find(&main)?;
            let rest = (0..).zip(&dataset.arrays).filter(drawn).take(MAX_ARRAYS_BESIDE - 1);
            for (array, info) in std::iter::once((main_number, main_info)).chain(rest) {
                let own = if array == main_number {
                    other.name.clone()
                } else {
                    format!("{}/{}", other.name, info.name)
                };
                let name = unique(own, &names);
                names.insert(name.clone());
                if array == main_number {
                    main_names.push(name.clone());
                }
                arrays.push(ArrayInfo { name, ..info.clone() });
                added.push((number + 1, array));
            }
        }
        // The generation is that of the first; another one of the others makes another data set.
        let own = first.id.0.to_le_bytes();
        let others: Vec<[u8; 20]> = rest.iter().map(|dataset| identity_of(dataset)).collect();
        let parts = [IDENTITY.as_bytes(), &own].into_iter().chain(others.iter().map(<[u8; 20]>::as_slice));
        let id = DatasetId::of(parts);
        let dataset = Arc::new(Dataset { id, arrays, ..Dataset::clone(first) });
        Ok(Self { described, dataset, added, main_names })
    }

    /// Returns the key of a block in the data set that has it, and the number of that one.
    ///
    /// # Errors
    /// `Stale` and others for a block of another data set.
    fn origin(&self, key: BlockKey) -> Result<(usize, BlockKey)> {
        self.dataset.block(key)?;
        let (number, array) = self.place(key.array)?;
        let Dataset { id: dataset, generation, .. } = *self.described[number];
        Ok((number, BlockKey { dataset, generation, array, ..key }))
    }

    /// Returns data set and number of an array.
    fn place(&self, array: u32) -> Result<(usize, u32)> {
        let own = self.described[0].arrays.len();
        let Some(added) = (array as usize).checked_sub(own) else { return Ok((0, array)) };
        let place = self.added.get(added).copied();
        place.ok_or_else(|| {
            Error::not_found(format!("expected an array below {}, found {array}", own + self.added.len()))
        })
    }
}

/// Returns the identity of the data of a description, which changes with them.
fn identity_of(dataset: &Dataset) -> [u8; 20] {
    let mut bytes = [0; 20];
    let (id, generation) = bytes.split_at_mut(16);
    id.copy_from_slice(&dataset.id.0.to_le_bytes());
    generation.copy_from_slice(&dataset.generation.0.to_le_bytes());
    bytes
}

/// Returns the name of the array with this name, or of the default array if it is empty.
fn main_array(dataset: &Dataset, name: &str) -> Result<String> {
    if name.is_empty() {
        return View::first_of(dataset).map(|view| view.array);
    }
    dataset.find(name).map(|(_, array)| array.name.clone())
}

/// Returns a name that is not yet used.
fn unique(name: String, used: &BTreeSet<String>) -> String {
    let numbered = (2u32..).map(|number| format!("{name} {number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !used.contains(name)).unwrap_or(name)
}

impl BesideState {
    fn plan(&self) -> Arc<BesidePlan> {
        Arc::clone(&self.plan.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn source(&self, number: usize) -> &dyn Source {
        match number.checked_sub(1).and_then(|other| self.others.get(other)) {
            Some(other) => &other.source,
            None => &*self.first,
        }
    }

    async fn describe(&self) -> Result<Arc<Dataset>> {
        let described = describe_all(&self.first, &self.others).await?;
        let known = self.plan();
        let is_known = known.described.iter().zip(&described).all(|(a, b)| Arc::ptr_eq(a, b) || a == b);
        if is_known {
            return Ok(Arc::clone(&known.dataset));
        }
        let plan = Arc::new(BesidePlan::of(described, &self.others)?);
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&plan);
        Ok(Arc::clone(&plan.dataset))
    }

    /// Answers one want; `None` if no request waits for it any more.
    async fn answer(&self, plan: &BesidePlan, for_want: &Want) -> Option<Completion> {
        let key = for_want.key();
        let result = match plan.origin(key) {
            Err(error) => Err(error),
            Ok((number, own_key)) => {
                let (own_want, handle) = want(own_key, for_want.urgency());
                let mut answers = self.source(number).blocks(vec![own_want]);
                let taking = async {
                    match answers.next().await {
                        Some(Completion { result, .. }) => result,
                        None => {
                            Err(Error::internal("the source ended its answers without answering the want"))
                        }
                    }
                };
                for_want.drive(taking, |urgency| handle.adjust(urgency)).await?
            }
        };
        Some(Completion {
            key,
            result: result.map(|block| Arc::new(Block { key, content: block.content.clone() })),
        })
    }
}

impl Source for Beside {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        let inner = Arc::clone(&self.inner);
        async move { inner.describe().await }.boxed()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let plan = self.inner.plan();
        let answer = |want: Want| {
            let (inner, plan) = (Arc::clone(&self.inner), Arc::clone(&plan));
            async move { inner.answer(&plan, &want).await }.boxed()
        };
        let answers: FuturesUnordered<_> = wants.into_iter().map(answer).collect();
        answers.filter_map(ready).boxed()
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        match self.inner.plan().place(request.array) {
            Ok((number, array)) => self.inner.source(number).read(ReadRequest { array, ..request }, into),
            Err(error) => ready(Err(error)).boxed(),
        }
    }

    fn packed(&self, request: &ReadRequest) -> BoxFuture<'static, Result<Option<PackedChunk>>> {
        match self.inner.plan().place(request.array) {
            Ok((number, array)) => {
                let request = ReadRequest { array, ..request.clone() };
                self.inner.source(number).packed(&request)
            }
            Err(error) => ready(Err(error)).boxed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use array::conformance::{MemorySource, check_source, one_array};
    use array::{AxisKind, Priority, Selection, Target};
    use bytes::Bytes;

    use super::*;

    fn source(id: u128, name: &str, sides: [u64; 3], value: u8) -> Arc<dyn Source> {
        let mut dataset = one_array("|u1".parse().unwrap(), &sides, &[2; 3]);
        dataset.id = DatasetId(id);
        dataset.arrays[0].name = name.into();
        for (axis, kind) in dataset.arrays[0].axes.iter_mut().zip([AxisKind::Z, AxisKind::Y, AxisKind::X]) {
            axis.kind = kind;
        }
        let count = usize::try_from(sides.iter().product::<u64>()).unwrap();
        Arc::new(MemorySource::new(dataset, vec![vec![Bytes::from(vec![value; count])]]).unwrap())
    }

    async fn beside() -> Beside {
        let others = [("seg", "labels", [3, 4, 5], 7), ("ct", "mask", [4, 4, 2], 9)];
        let others = others.into_iter().zip(2..).map(|((name, array, sides, value), id)| OtherDataset {
            name: name.into(),
            array: String::new(),
            source: source(id, array, sides, value),
        });
        Beside::open(source(1, "ct", [4; 3], 5), others.collect()).await.unwrap()
    }

    #[tokio::test]
    async fn arrays_of_others_follow_those_of_the_first_under_names_of_their_own() {
        let beside = beside().await;
        let dataset = beside.describe().await.unwrap();
        let names: Vec<&str> = dataset.arrays.iter().map(|array| array.name.as_str()).collect();
        assert_eq!(names, ["ct", "seg", "ct 2"]);
        assert_eq!(beside.main_names(), ["seg", "ct 2"]);
        for (array, expected) in [(0, 5), (1, 7), (2, 9)] {
            let shape = dataset.arrays[array as usize].shape().to_vec();
            let (target, into) = Target::new(&shape, 1).unwrap();
            let selection = Selection::all(&shape);
            let request = ReadRequest { array, level: 0, selection, priority: Priority::NORMAL };
            beside.read(request, into).await.unwrap();
            assert!(target.into_vec().unwrap().iter().all(|&value| value == expected), "{array}");
        }
    }

    #[tokio::test]
    async fn it_is_a_source_like_any_other() {
        check_source(Arc::new(beside().await)).await;
    }

    #[tokio::test]
    async fn what_cannot_be_beside_is_refused() {
        let other = |array: &str| OtherDataset {
            name: "a".into(),
            array: array.into(),
            source: source(2, "b", [3; 3], 1),
        };
        let open = |others| async move {
            Beside::open(source(1, "ct", [4; 3], 5), others).await.err().map(|e| e.to_string())
        };
        assert!(open(vec![other("c")]).await.unwrap().contains("`c`"));
        let many = (0..9).map(|_| other("")).collect();
        assert!(open(many).await.unwrap().contains("at most 8 data sets"));
    }
}
