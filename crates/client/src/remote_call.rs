//! Operations that anybody can call by name, from Python too, without knowing how they encode things: parameters and
//! results are JSON, arrays are bulk. An operation need not be one of these; those that are share what stands here.
//!
//! Parameters are `{"of": {"dataset", "generation", "array", "level", "selection"}, "with": {...}}`. The answer has items
//! of four kinds. Three are bodies without bulk: `{"progress": {"done", "total"}}`, any number; `{"elements": {"dtype",
//! "shape"}}`, at most one; `{"result": ...}`, exactly one, at the end. The fourth, after `elements`, are pieces of the
//! C-order array, as those of `read`: a body with the offset, and bulk.

use std::fmt;
use std::sync::Arc;

use array::{AxisRange, DType, DatasetId, Error, Generation, Result, Selection, Target};
use bytes::Bytes;
use link::{OpStream, Reply};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wire::ops::{BlockPlace, decode_json, encode_json};

use crate::reading::read_sink::ReadSink;
use crate::requests::RemoteOperation;

/// Elements to which an operation is applied: a selection of one array and level of a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operand {
    /// The data set.
    pub dataset: DatasetId,
    /// Its state.
    pub generation: Generation,
    /// Number of the array in the description.
    pub array: u32,
    /// Number of the level; 0 is full resolution.
    #[serde(default)]
    pub level: u8,
    /// Which elements, per axis; everything without it.
    #[serde(default)]
    pub selection: Option<Vec<AxisRange>>,
}

impl Operand {
    /// Names the elements of `selection` in the array at `place`; all its elements without a selection.
    #[must_use]
    pub fn new(place: BlockPlace, selection: Option<Selection>) -> Self {
        let BlockPlace { dataset, generation, array, level } = place;
        Self { dataset, generation, array, level, selection: selection.map(|s| s.ranges().to_vec()) }
    }

    /// Returns a copy with the same selection, of the array at `place`.
    #[must_use]
    pub fn at(&self, place: BlockPlace) -> Self {
        let BlockPlace { dataset, generation, array, level } = place;
        Self { dataset, generation, array, level, selection: self.selection.clone() }
    }

    /// The array and level that the elements are of.
    #[must_use]
    pub fn place(&self) -> BlockPlace {
        let Self { dataset, generation, array, level, .. } = *self;
        BlockPlace { dataset, generation, array, level }
    }
}

/// The parameters of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRequest<P> {
    /// Elements to which the operation is applied.
    pub of: Operand,
    /// Further parameters of the operation.
    pub with: P,
}

impl<P: Serialize> CallRequest<P> {
    /// As parameters.
    ///
    /// # Errors
    /// `Internal` when they cannot be said in JSON.
    pub fn encode(&self) -> Result<Bytes> {
        encode_json(self)
    }
}

impl<P: DeserializeOwned> CallRequest<P> {
    /// From parameters.
    ///
    /// # Errors
    /// `Invalid`, saying what was expected.
    pub fn parse(parameters: &[u8]) -> Result<Self> {
        serde_json::from_slice(parameters).map_err(|e| Error::invalid(format!("parameters: {e}")))
    }
}

/// Further parameters of an operation beside its elements, and the type of its result. [`CallRequest`] with these
/// parameters is the client's side of the operation.
pub trait OperationParameters: Serialize + Send + Sync {
    /// The operation's registered name.
    const NAME: &'static str;
    /// The result beside the array, if there is one.
    type Result: DeserializeOwned + Send;

    /// Largest array taken, bytes.
    fn most_bytes(&self) -> u64 {
        0
    }
}

impl<Q: OperationParameters> RemoteOperation for CallRequest<Q> {
    type Response = CallResponse<Q::Result>;

    fn name(&self) -> &str {
        Q::NAME
    }

    fn parameters(&self) -> Result<Bytes> {
        self.encode()
    }

    async fn answer(&self, replies: OpStream) -> Result<Self::Response> {
        receive(replies, self.with.most_bytes(), |_| ()).await
    }
}

/// A whole array in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultArray {
    /// Type of the elements.
    pub dtype: DType,
    /// How many per axis, last fastest.
    pub shape: Vec<u64>,
}

/// How far the work is, in units of the operation's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallProgress {
    /// Done so far.
    pub done: u64,
    /// In all, as far as is known.
    pub total: u64,
}

/// Body of an item without bulk.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemBody<R> {
    /// How far the work is.
    Progress(CallProgress),
    /// The array that pieces will make up.
    Elements(ResultArray),
    /// The result, the last item.
    Result(R),
}

/// Complete answer of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResponse<R> {
    /// The result.
    pub result: R,
    /// The array, if there is one, and its elements in C order.
    pub elements: Option<(ResultArray, Vec<u8>)>,
}

/// Reads a whole answer. An array of more than `most_bytes` is refused before memory is taken for it.
///
/// # Errors
/// The operation's; `TooLarge`; `Corrupt` when the answer is something else.
///
/// # Cancel safety
/// Dropping it cancels the operation.
pub async fn receive<R: DeserializeOwned>(
    mut replies: OpStream,
    most_bytes: u64,
    on_progress: impl Fn(CallProgress) + Send,
) -> Result<CallResponse<R>> {
    let mut result = None;
    let mut array: Option<(ResultArray, Target, ReadSink)> = None;
    while let Some(reply) = replies.next().await {
        match reply? {
            Reply::Item { body, bulk_bytes: 0, .. } => match decode_json(&body, "an answer")? {
                ItemBody::Progress(progress) => on_progress(progress),
                ItemBody::Result(said) if result.is_none() => result = Some(said),
                ItemBody::Elements(elements) if array.is_none() => {
                    let size = elements
                        .shape
                        .iter()
                        .try_fold(elements.dtype.size_bytes() as u64, |n, &v| n.checked_mul(v));
                    if size.is_none_or(|n| n > most_bytes) {
                        return Err(Error::too_large(format!(
                            "expected an array of at most {most_bytes} bytes, found the shape {:?}",
                            elements.shape
                        )));
                    }
                    let (target, region) = Target::new(&elements.shape, elements.dtype.size_bytes())?;
                    array = Some((elements, target, ReadSink::new(region)));
                }
                ItemBody::Result(_) | ItemBody::Elements(_) => {
                    return Err(Error::corrupt("expected one result and one array, found another"));
                }
            },
            piece => match &mut array {
                Some((_, _, landing)) => landing.take(piece)?,
                None => return Err(Error::corrupt("expected an array's shape before its elements")),
            },
        }
    }
    let elements = array.map(|(elements, target, landing)| {
        landing.check_whole()?;
        drop(landing);
        Ok::<_, Error>((elements, target.into_vec()?))
    });
    let result = result.ok_or_else(|| Error::corrupt("expected a result, found the end of the answer"))?;
    Ok(CallResponse { result, elements: elements.transpose()? })
}

/// The answer to an operation of which nothing is known.
pub type DynamicResponse = CallResponse<Value>;

/// An operation of any name.
#[derive(Clone)]
pub struct DynamicCall {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub request: CallRequest<Value>,
    /// Largest array taken, bytes.
    pub most_bytes: u64,
    /// Hears how far the work is.
    pub on_progress: Arc<dyn Fn(CallProgress) + Send + Sync>,
}

impl DynamicCall {
    /// An operation called `name`, with parameters in JSON; nobody hears how far it is.
    ///
    /// # Errors
    /// `Invalid` when `with` is no JSON.
    pub fn new(name: &str, of: Operand, with: &str, most_bytes: u64) -> Result<Self> {
        let with: Value =
            serde_json::from_str(with).map_err(|e| Error::invalid(format!("parameters: {e}")))?;
        let request = CallRequest { of, with };
        Ok(Self { name: name.to_owned(), request, most_bytes, on_progress: Arc::new(|_| ()) })
    }
}

impl fmt::Debug for DynamicCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynamicCall({})", self.name)
    }
}

impl RemoteOperation for DynamicCall {
    type Response = DynamicResponse;

    fn name(&self) -> &str {
        &self.name
    }

    fn parameters(&self) -> Result<Bytes> {
        self.request.encode()
    }

    async fn answer(&self, replies: OpStream) -> Result<Self::Response> {
        receive(replies, self.most_bytes, &*self.on_progress).await
    }
}
