//! Every data set as Zarr v3 over HTTP, read-only, so that any Zarr client can read it unchanged.
//!
//! ```text
//!   /zarr/DATASET/            a group with consolidated metadata; its arrays at full resolution
//!   /ome/DATASET/ARRAY/       the same array with its levels, as OME-Zarr 0.5 multiscales
//!   /path                     not Zarr, but behind the same guard: the network path to the client, see `paths`
//!   /metrics                  not Zarr either: counters of the server, for Prometheus
//! ```
//!
//! Chunks are the blocks of the description, uncompressed and in their stored byte order, so they come from the same cache as
//! all other reads. This module handles HTTP; [`tree`] parses keys, [`metadata`] and [`ome`] describe, [`chunk`] fetches,
//! [`guard`] authorizes, [`folder`] lists for programs in this process. All data come through the export's stack.

mod chunk;
mod files;
mod folder;
mod guard;
mod metadata;
mod ome;
mod range;
mod tree;
pub mod world;

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use array::{Dataset, Error, ErrorKind, Priority, Result, Source, Urgency};
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use axum::{Router, middleware};

use crate::answer_memory::ClientId;
use crate::connection::Service;
use crate::connections::ConnectionSlot;
use crate::ops::path::of_client;
use crate::public_address::ServerNames;
pub use bytes::Bytes;
pub use folder::{MAX_LISTED, ZarrEntry, list, look_up};
use guard::GuardState;
pub(crate) use guard::bearer;
pub(crate) use metadata::root_document;
use range::RequestedRange;
use tree::{ZarrChunk, ZarrDocument, ZarrObject};

/// Client of the connection of a request. An extension of each request.
#[derive(Clone)]
pub(crate) struct Caller {
    /// The client's connection slot, which is admitted if the client presents the right token.
    pub(crate) slot: Arc<ConnectionSlot>,
    /// Id of the client for reservations of memory.
    pub(crate) client: ClientId,
    /// Address of the client.
    pub(crate) from: IpAddr,
}

/// Creates the router of the part of a site that requires a token: Zarr, and the report on the network path to the
/// client.
pub fn router(service: Arc<Service>, names: Arc<ServerNames>) -> Router {
    let guarded = GuardState { service: Arc::clone(&service), names };
    Router::new()
        .route("/zarr/{*path}", reading(tree::in_arrays))
        .route("/ome/{*path}", reading(tree::in_images))
        .route(guard::PATH, get(path_to_caller))
        .route(guard::METRICS, get(metrics))
        .with_state(service)
        .layer(middleware::from_fn_with_state(guarded, guard::guard))
}

async fn metrics(State(service): State<Arc<Service>>) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/plain; version=0.0.4"), (header::CACHE_CONTROL, "no-store")];
    let shared = &service.shared;
    (headers, shared.metrics.text(shared.exports.all().len())).into_response()
}

async fn path_to_caller(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let known = of_client(&service.shared, caller.from).await;
    let text = known.and_then(|report| {
        serde_json::to_string(&report).map_err(|e| Error::internal(format!("a path in JSON: {e}")))
    });
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    match text {
        Ok(text) => (headers, text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

/// Returns the URL path of a data set's Zarr hierarchy, below the site.
#[must_use]
pub fn path(export: &str) -> String {
    format!("/zarr/{}", client::url::encode(export).replace('/', "%2F"))
}

/// Reads a document or a chunk of the hierarchy of arrays, or a byte range of it, for a program in this process, of the
/// data in the state that `dataset` describes; `None` for documents and folders that do not exist. Of a chunk only the
/// requested bytes are read.
///
/// # Errors
/// The errors of the source, among them `Stale` if the data have changed; `NotFound` for a key of a chunk that does not
/// exist; `Invalid` for bytes beyond the end.
///
/// # Cancel safety
/// Dropping the future withdraws its requests.
pub async fn read(
    source: &dyn Source,
    dataset: &Dataset,
    key: &str,
    range: Option<Range<u64>>,
) -> Result<Option<Bytes>> {
    let beyond =
        |size: u64| Error::invalid(format!("expected a range within {size} bytes, found {range:?}: `{key}`"));
    match tree::in_arrays(dataset, key) {
        None if may_be_absent(Some(dataset), key) => Ok(None),
        None => Err(Error::not_found(format!("{ABSENT}: `{key}`"))),
        Some(ZarrObject::Document(which)) => {
            let text = Bytes::from(document(dataset, which)?);
            let Some(Range { start, end }) = range else { return Ok(Some(text)) };
            let place = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            let part = place.filter(|&(start, end)| start <= end && end <= text.len());
            part.map(|(start, end)| Some(text.slice(start..end))).ok_or_else(|| beyond(text.len() as u64))
        }
        Some(ZarrObject::Chunk(chunk)) => {
            let size = tree::chunk_bytes(dataset, chunk.number, chunk.level)?;
            match range.clone() {
                Some(part) if part.start > part.end || part.end > size => Err(beyond(size)),
                Some(part) if part != (0..size) => {
                    chunk::read_part(source, dataset, &chunk, part).await.map(Some)
                }
                _ => chunk::read(source, dataset, &chunk).await,
            }
        }
    }
}

/// Returns the text of a document.
fn document(dataset: &Dataset, which: ZarrDocument) -> Result<String> {
    let value = match which {
        ZarrDocument::Root => metadata::root(dataset),
        ZarrDocument::Group { number, length } => {
            metadata::group_at(dataset, &tree::path_of(dataset.array(number)?)[..length])
        }
        ZarrDocument::Array { number, level } => metadata::array(dataset, number, level)?,
        ZarrDocument::Image { number } => ome::group(dataset, number)?,
        ZarrDocument::Labels { number } => ome::labels(dataset, number),
    };
    Ok(value.to_string())
}

/// Function that finds the object that a key of one of the hierarchies names, if there is one.
type KeyLookup = fn(&Dataset, &str) -> Option<ZarrObject>;

/// Answers requests for the hierarchy that `find` looks up.
fn reading(find: KeyLookup) -> MethodRouter<Arc<Service>> {
    get(
        move |State(service): State<Arc<Service>>,
              Extension(caller): Extension<Caller>,
              Path(path): Path<String>,
              method: Method,
              headers: HeaderMap| async move {
            let request = ZarrRequest { path: &path, method: &method, headers: &headers };
            let mut answered = answer(&service, &caller, &request, find).await;
            if answered.as_ref().is_err_and(|error| error.kind() == ErrorKind::Stale) {
                // The data changed meanwhile: answer with the current state.
                if let Ok((export, _)) = service.shared.exports.find_at(&path).await {
                    export.check_next();
                    answered = match export.describe().await {
                        Ok(_) => answer(&service, &caller, &request, find).await,
                        Err(error) => Err(error),
                    };
                }
            }
            answered.unwrap_or_else(|error| failed(&error))
        },
    )
}

/// The relevant parts of a request.
struct ZarrRequest<'a> {
    path: &'a str,
    method: &'a Method,
    headers: &'a HeaderMap,
}

async fn answer(
    service: &Service,
    caller: &Caller,
    asking: &ZarrRequest<'_>,
    find: KeyLookup,
) -> Result<Response> {
    let ZarrRequest { path, method, headers } = *asking;
    let Ok((export, key)) = service.shared.exports.find_at(path).await else {
        return Ok(absent(None, path.split_once('/').map_or("", |(_, key)| key)));
    };
    // Only a request for a document, with which clients begin, checks the file for changes.
    let dataset = match key.ends_with(tree::METADATA) {
        true => export.describe().await?,
        false => export.stack().await?.source.describe().await?,
    };
    let Some(place) = find(&dataset, key) else { return Ok(absent(Some(&dataset), key)) };
    let tag = format!("\"{}-{}\"", dataset.id, dataset.generation.0);
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let answer_memory = &service.shared.answer_memory;
    Ok(match place {
        ZarrObject::Document(ZarrDocument::Root) => {
            sent("application/json", &tag, asking, export.zarr_root(&dataset)?)
        }
        ZarrObject::Document(which) => {
            let text = document(&dataset, which)?;
            let size_bytes = text.len() as u64;
            let urgency = Urgency::of(Priority::INTERACTIVE);
            let mut memory = answer_memory.reserve(caller.client, urgency, size_bytes, size_bytes);
            memory.admitted().await;
            sent("application/json", &tag, asking, memory.hold(text))
        }
        // Its size is known without reading it.
        ZarrObject::Chunk(ZarrChunk { number, level, .. }) if method == Method::HEAD => {
            let size_bytes = tree::chunk_bytes(&dataset, number, level)?;
            let size = [(header::CONTENT_LENGTH, size_bytes.to_string())];
            (tagged("application/octet-stream", &tag), size).into_response()
        }
        ZarrObject::Chunk(chunk) => {
            let stack = export.stack().await?;
            match chunk::fetch(answer_memory, caller.client, &*stack.source, &dataset, &chunk).await? {
                Some(bytes) => sent("application/octet-stream", &tag, asking, bytes),
                None => not_found(),
            }
        }
    })
}

/// Responds with the bytes, or the requested range of them.
fn sent(media_type: &'static str, tag: &str, asking: &ZarrRequest<'_>, bytes: Bytes) -> Response {
    let (head, size) = (tagged(media_type, tag), bytes.len());
    let content_range = |range: String| [(header::CONTENT_RANGE, range)];
    match range::asked(asking.method, asking.headers, size, tag) {
        RequestedRange::Whole => (head, Body::from(bytes)).into_response(),
        RequestedRange::Part(range) => {
            let sent = content_range(format!("bytes {}-{}/{size}", range.start, range.end - 1));
            (StatusCode::PARTIAL_CONTENT, head, sent, Body::from(bytes.slice(range))).into_response()
        }
        RequestedRange::Beyond => {
            (StatusCode::RANGE_NOT_SATISFIABLE, content_range(format!("bytes */{size}"))).into_response()
        }
    }
}

/// Returns headers that allow caching with validation by the tag, because files change.
fn tagged(media_type: &'static str, tag: &str) -> [(header::HeaderName, String); 4] {
    [
        (header::CONTENT_TYPE, media_type.to_owned()),
        (header::CACHE_CONTROL, "private, no-cache".to_owned()),
        (header::ETAG, tag.to_owned()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
    ]
}

/// Responds with 404 for a chunk without data, or a document that does not exist. Zarr clients replace a chunk that is
/// not found by fill values, so other errors have other status codes.
fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "not found\n").into_response()
}

/// Message for a key of a chunk that does not exist, in an existing data set or another one.
const ABSENT: &str = "expected a chunk of an existing array, found another name: the data may have changed since they were opened; \
    open them again, with `%`, `#` and `?` in names quoted";

fn absent(dataset: Option<&Dataset>, key: &str) -> Response {
    if may_be_absent(dataset, key) {
        not_found()
    } else {
        (StatusCode::GONE, format!("{ABSENT}\n")).into_response()
    }
}

/// Returns whether 404 is a correct response for a key that names nothing: for all but chunks. A client that requests a
/// chunk has read the document of its array, so the array has been removed, or the client did not quote its name.
fn may_be_absent(dataset: Option<&Dataset>, key: &str) -> bool {
    !tree::is_of_chunk(dataset, key) && !dataset.is_some_and(|dataset| tree::is_cut_name(dataset, key))
}

fn failed(error: &Error) -> Response {
    let status = match error.kind() {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Denied => StatusCode::FORBIDDEN,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::Stale | ErrorKind::Busy | ErrorKind::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Unreachable => StatusCode::BAD_GATEWAY,
        ErrorKind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    tracing::debug!(%error, "a Zarr request failed");
    (status, format!("{error}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_chunks_that_do_not_exist_are_answered_with_410() {
        let source = array::conformance::MemorySource::counting("<u2", &[5, 7], &[2, 4]);
        let dataset = source.dataset();
        let name = dataset.arrays[0].name.clone();
        let status = |dataset, key: &str| absent(dataset, key).status();
        for key in ["zarr.json", "x/zarr.json", "x/.zarray", "", name.as_str(), "x", "x/y.txt", "x/c/a/0"] {
            assert_eq!(status(Some(&dataset), key), StatusCode::NOT_FOUND, "{key}");
        }
        for key in ["x/c/0/0", "x/c", &format!("{name}/c/9/9"), &format!("{name}/c/0")] {
            assert_eq!(status(Some(&dataset), key), StatusCode::GONE, "{key}");
        }
        assert_eq!(status(None, "zarr.json"), StatusCode::NOT_FOUND);
        assert_eq!(status(None, "x/c/0"), StatusCode::GONE);
        assert_eq!(status(None, ""), StatusCode::NOT_FOUND);
        let mut renamed = (*dataset).clone();
        renamed.arrays[0].name = "rho#2".into();
        assert_eq!(
            status(Some(&renamed), "rho"),
            StatusCode::GONE,
            "the part before `#` of an unquoted name"
        );
    }

    #[test]
    fn no_failure_is_answered_with_404() {
        for kind in ErrorKind::ALL {
            assert_ne!(failed(&Error::new(kind, "")).status(), StatusCode::NOT_FOUND, "{kind:?}");
        }
    }
}
