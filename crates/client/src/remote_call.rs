//! Operations that can be called by name, also from Python, without knowledge of their encoding: parameters and results
//! are JSON, arrays are bulk data. Operations may use other encodings; those that use this one share this module.
//!
//! Parameters are `{"of": {"dataset", "generation", "array", "level", "selection"}, "with": {...}}`. The response has
//! items of four kinds. Three are bodies without bulk data: `{"progress": {"done", "total"}}`, any number;
//! `{"elements": {"dtype", "shape"}}`, at most one; `{"result": ...}`, exactly one, at the end. The fourth kind, after
//! `elements`, are pieces of the array in C order, as those of `read`: a body with the offset, and bulk data.

use std::fmt;
use std::sync::Arc;

use array::{AxisRange, DType, DatasetId, Error, Generation, Result, Selection, Target};
use bytes::Bytes;
use link::{OpStream, Reply};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wire::ops::{BlockPlace, decode_json, encode_json};

use crate::reading::read_sink::SelectionSink;
use crate::requests::RemoteOperation;

/// Elements to which an operation is applied: a selection of one array and level of a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operand {
    /// Identity of the data set.
    pub dataset: DatasetId,
    /// Generation of the data set.
    pub generation: Generation,
    /// Number of the array in the description.
    pub array: u32,
    /// Number of the level; 0 is full resolution.
    #[serde(default)]
    pub level: u8,
    /// Selected elements, per axis; all elements if absent.
    #[serde(default)]
    pub selection: Option<Vec<AxisRange>>,
}

impl Operand {
    /// Creates an operand of the elements of `selection` in the array at `place`; of all elements without a selection.
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

    /// Returns the array and level that contain the elements.
    #[must_use]
    pub fn place(&self) -> BlockPlace {
        let Self { dataset, generation, array, level, .. } = *self;
        BlockPlace { dataset, generation, array, level }
    }
}

/// Parameters of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRequest<P> {
    /// Elements to which the operation is applied.
    pub of: Operand,
    /// Further parameters of the operation.
    pub with: P,
}

impl<P: Serialize> CallRequest<P> {
    /// Encodes the request as parameters.
    ///
    /// # Errors
    /// `Internal` if they cannot be represented in JSON.
    pub fn encode(&self) -> Result<Bytes> {
        encode_json(self)
    }
}

impl<P: DeserializeOwned> CallRequest<P> {
    /// Parses parameters.
    ///
    /// # Errors
    /// `Invalid`, with the expected form.
    pub fn parse(parameters: &[u8]) -> Result<Self> {
        serde_json::from_slice(parameters).map_err(|e| Error::invalid(format!("parameters: {e}")))
    }
}

/// Further parameters of an operation besides its elements, and the type of its result. [`CallRequest`] with these
/// parameters is the client's side of the operation.
pub trait OperationParameters: Serialize + Send + Sync {
    /// Registered name of the operation.
    const NAME: &'static str;
    /// Type of the result besides the array; `()` if there is none.
    type Result: DeserializeOwned + Send;

    /// Maximum size of the response's array, in bytes.
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

/// An array in a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultArray {
    /// Type of the elements.
    pub dtype: DType,
    /// Number of elements per axis, the last axis varying fastest.
    pub shape: Vec<u64>,
}

/// Progress of the operation, in units that the operation defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallProgress {
    /// Completed units.
    pub done: u64,
    /// Total of units, as far as it is known.
    pub total: u64,
}

/// Body of an item without bulk data.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemBody<R> {
    /// Progress of the operation.
    Progress(CallProgress),
    /// Type and shape of the array whose pieces follow.
    Elements(ResultArray),
    /// The result, which is the last item.
    Result(R),
}

/// Complete response of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResponse<R> {
    /// The result.
    pub result: R,
    /// The array, if there is one, and its elements in C order.
    pub elements: Option<(ResultArray, Vec<u8>)>,
}

/// Reads a complete response. An array of more than `most_bytes` is refused before memory is allocated for it.
///
/// # Errors
/// The operation's error; `TooLarge`; `Corrupt` if the response has another form.
///
/// # Cancel safety
/// Dropping the future cancels the operation.
pub async fn receive<R: DeserializeOwned>(
    mut replies: OpStream,
    most_bytes: u64,
    on_progress: impl Fn(CallProgress) + Send,
) -> Result<CallResponse<R>> {
    let mut result = None;
    let mut array: Option<(ResultArray, Target, SelectionSink)> = None;
    while let Some(reply) = replies.next().await {
        match reply? {
            Reply::Item { body, bulk_bytes: 0, .. } => match decode_json(&body, "an answer")? {
                ItemBody::Progress(progress) => on_progress(progress),
                ItemBody::Result(value) if result.is_none() => result = Some(value),
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
                    array = Some((elements, target, SelectionSink::new(region)));
                }
                ItemBody::Result(_) | ItemBody::Elements(_) => {
                    return Err(Error::corrupt("expected one result and one array, found another"));
                }
            },
            piece => match &mut array {
                Some((_, _, sink)) => sink.take(piece)?,
                None => return Err(Error::corrupt("expected an array's shape before its elements")),
            },
        }
    }
    let elements = array.map(|(elements, target, sink)| {
        sink.check_whole()?;
        drop(sink);
        Ok::<_, Error>((elements, target.into_vec()?))
    });
    let result = result.ok_or_else(|| Error::corrupt("expected a result, found the end of the answer"))?;
    Ok(CallResponse { result, elements: elements.transpose()? })
}

/// Response of an operation whose result type is not known at compile time.
pub type DynamicResponse = CallResponse<Value>;

/// Call of an operation by name.
#[derive(Clone)]
pub struct DynamicCall {
    /// Name of the operation.
    pub name: String,
    /// Parameters of the operation.
    pub request: CallRequest<Value>,
    /// Maximum size of the response's array, in bytes.
    pub most_bytes: u64,
    /// Called with each progress report.
    pub on_progress: Arc<dyn Fn(CallProgress) + Send + Sync>,
}

impl DynamicCall {
    /// Creates a call of the operation `name`, with parameters in JSON and without a progress callback.
    ///
    /// # Errors
    /// `Invalid` if `with` is not JSON.
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
