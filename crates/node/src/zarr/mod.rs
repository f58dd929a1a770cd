//! Every data set as Zarr v3 over HTTP, read-only, so that any Zarr client can read it unchanged.
//!
//! ```text
//!   /zarr/DATASET/            a group with consolidated metadata; its arrays at full resolution
//!   /ome/DATASET/ARRAY/       the same array with its levels, as OME-Zarr 0.5 multiscales
//!   /path                     not Zarr, but behind the same guard: the path to whoever asks, see `paths`
//! ```
//!
//! Chunks are the blocks of the description, uncompressed and in their stored byte order, so they come from the same
//! cache as everybody else's. This module speaks HTTP; [`tree`] says what a path means, [`metadata`] and [`ome`]
//! describe, [`chunk`] fetches. Nothing here is computed from the file but through the export's stack.

mod chunk;
mod metadata;
mod ome;
mod tree;

use std::net::IpAddr;
use std::sync::Arc;

use array::{Dataset, Error, ErrorKind, Priority, Result, Source, Urgency};
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
pub use bytes::Bytes;
use serde_json::Value;

use crate::assemble::Stack;
use crate::connection::Service;
use crate::gate::ClientId;
use crate::http::{Scheme, check_origin, checked_host, refused};
use crate::lobby::Visit;
use crate::paths;

use tree::Place;

/// How long a browser may remember that it may ask, seconds.
const PREFLIGHT_SECS: &str = "86400";

/// Whose connection a request came over. An extension of each request.
#[derive(Clone)]
pub(crate) struct Caller {
    /// The place in the lobby; a right token makes a member of the visitor.
    pub(crate) visit: Arc<Visit>,
    /// Who waits at the gate.
    pub(crate) client: ClientId,
    /// Its address.
    pub(crate) from: IpAddr,
}

/// What decides who may read.
#[derive(Clone)]
struct Door {
    service: Arc<Service>,
    names: Arc<[String]>,
    scheme: Scheme,
}

/// The part of a site that asks for a token: Zarr, and what is known of the path to whoever asks.
pub(crate) fn router(service: Arc<Service>, names: Arc<[String]>, scheme: Scheme) -> Router {
    let door = Door { service: Arc::clone(&service), names, scheme };
    Router::new()
        .route("/zarr/{*path}", reading(tree::in_arrays))
        .route("/ome/{*path}", reading(tree::in_images))
        .route("/path", get(path_to_caller))
        .with_state(service)
        .layer(middleware::from_fn_with_state(door, guard))
}

async fn path_to_caller(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let known = paths::of_client(&service.shared.paths, caller.from).await;
    let text = known.and_then(|report| {
        serde_json::to_string(&report).map_err(|e| Error::internal(format!("a path in JSON: {e}")))
    });
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    match text {
        Ok(text) => (headers, text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

/// Where a data set is as Zarr, below the site.
pub(crate) fn path(export: &str) -> String {
    format!("/zarr/{}", crate::url::encode(export).replace('/', "%2F"))
}

/// A document or a chunk of the hierarchy of arrays, for a program in this process; `None` for keys that are not there.
///
/// # Errors
/// The source's.
///
/// # Cancel safety
/// Dropping it withdraws what it asked for.
pub async fn entry(stack: &Stack, key: &str) -> Result<Option<Bytes>> {
    let dataset = stack.source.describe().await?;
    let said = |value: Value| Ok(Some(Bytes::from(value.to_string())));
    match tree::in_arrays(&dataset, key) {
        Some(Place::Root) => said(metadata::root(&dataset)),
        Some(Place::Group) => said(metadata::group(&array::Attributes::new())),
        Some(Place::Array { number, level }) => said(metadata::array(&dataset, number, level)?),
        Some(Place::Chunk { number, level, at }) => chunk::read(stack, &dataset, number, level, &at).await,
        Some(Place::Image { .. }) | None => Ok(None),
    }
}

/// The document of the group of everything.
pub(crate) fn root_document(dataset: &Dataset) -> String {
    metadata::root(dataset).to_string()
}

/// Lets in who shows the token. A token is shown on purpose, by a page as by a program: with it, pages of other sites
/// may read too. Without one a foreign page would read whatever this machine can reach, so it may not.
async fn guard(State(door): State<Door>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let host = match checked_host(headers, &door.names) {
        Ok(host) => host,
        Err(why) => return refused(why),
    };
    let is_open_to_pages = door.service.admission.token().is_some();
    if let Err(why) = check_origin(headers, &host, door.scheme)
        && !is_open_to_pages
    {
        return refused(why);
    }
    if is_of_another_site(headers) && !is_open_to_pages {
        return refused("the page is of another site, and this server asks for no token");
    }
    if request.method() == Method::OPTIONS {
        return with_cors(StatusCode::NO_CONTENT.into_response(), is_open_to_pages);
    }
    if let Err(error) = door.service.admission.check(bearer(headers)) {
        let ask = [(header::WWW_AUTHENTICATE, "Bearer")];
        let answer = (StatusCode::UNAUTHORIZED, ask, format!("{error}\n")).into_response();
        return with_cors(answer, is_open_to_pages);
    }
    if let Some(caller) = request.extensions().get::<Caller>()
        && let Err(error) = caller.visit.admit()
    {
        // Too many members: it is answered all the same, in the time that visitors have.
        tracing::debug!(%error, "a Zarr client stays a visitor");
    }
    with_cors(next.run(request).await, is_open_to_pages)
}

/// Browsers say so of every request, also of one for an image, which names no Origin.
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    site.is_some_and(|site| site != b"same-origin" && site != b"none")
}

fn bearer(headers: &HeaderMap) -> &str {
    let value = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()).unwrap_or_default();
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => "",
    }
}

fn with_cors(mut response: Response, is_open_to_pages: bool) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if is_open_to_pages {
        for (name, value) in [
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
            (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, OPTIONS"),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, if-none-match"),
            (header::ACCESS_CONTROL_EXPOSE_HEADERS, "etag"),
            (header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECS),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    response
}

/// What a key of one of the hierarchies stands for, if for anything.
type Find = fn(&Dataset, &str) -> Option<Place>;

/// Answers for the hierarchy in which `find` knows its way.
fn reading(find: Find) -> MethodRouter<Arc<Service>> {
    get(
        move |State(service): State<Arc<Service>>,
              Extension(caller): Extension<Caller>,
              Path(path): Path<String>,
              headers: HeaderMap| async move {
            let answer = answer(&service, &caller, &path, &headers, find).await;
            answer.unwrap_or_else(|error| failed(&error))
        },
    )
}

async fn answer(
    service: &Service,
    caller: &Caller,
    path: &str,
    headers: &HeaderMap,
    find: Find,
) -> Result<Response> {
    let (name, key) = path.split_once('/').unwrap_or((path, ""));
    let Ok(export) = service.shared.exports.find(name) else { return Ok(not_found()) };
    // Only who begins anew, at a document, makes the file be looked at again.
    let dataset = match key.ends_with(tree::METADATA) {
        true => export.describe().await?,
        false => export.stack().source.describe().await?,
    };
    let Some(place) = find(&dataset, key) else { return Ok(not_found()) };
    let tag = format!("\"{}-{}\"", dataset.id, dataset.generation.0);
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let said = async |value: Value| {
        let text = value.to_string();
        let size_bytes = text.len() as u64;
        let urgency = Urgency::of(Priority::INTERACTIVE);
        let mut memory = service.shared.gate.enter(caller.client, urgency, size_bytes, size_bytes);
        memory.admitted().await;
        (tagged("application/json", &tag), Body::from(memory.hold(text))).into_response()
    };
    Ok(match place {
        Place::Root => (tagged("application/json", &tag), export.zarr_root(&dataset)?).into_response(),
        Place::Group => said(metadata::group(&array::Attributes::new())).await,
        Place::Array { number, level } => said(metadata::array(&dataset, number, level)?).await,
        Place::Image { number } => said(ome::group(&dataset, number)?).await,
        Place::Chunk { number, level, at } => {
            let stack = export.stack();
            match chunk::fetch(&service.shared.gate, caller.client, &stack, &dataset, number, level, &at)
                .await?
            {
                Some(bytes) => (tagged("application/octet-stream", &tag), Body::from(bytes)).into_response(),
                None => not_found(),
            }
        }
    })
}

/// A copy may be kept, but its tag is to be shown again: files change.
fn tagged(media_type: &'static str, tag: &str) -> [(header::HeaderName, String); 3] {
    [
        (header::CONTENT_TYPE, media_type.to_owned()),
        (header::CACHE_CONTROL, "private, no-cache".to_owned()),
        (header::ETAG, tag.to_owned()),
    ]
}

/// A key that is not there. Zarr clients take a chunk that is not there for fill values, so nothing else answers this.
fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "not found\n").into_response()
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
    fn a_token_is_shown_as_bearer() {
        let shown = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(text));
            bearer(&headers).to_owned()
        };
        assert_eq!((shown("Bearer abc"), shown("bearer  abc ")), ("abc".into(), "abc".into()));
        assert_eq!((shown("Basic abc"), shown("abc"), bearer(&HeaderMap::new())), ("".into(), "".into(), ""));
    }

    #[test]
    fn no_failure_looks_like_a_missing_chunk() {
        for kind in ErrorKind::ALL {
            assert_ne!(failed(&Error::new(kind, "")).status(), StatusCode::NOT_FOUND, "{kind:?}");
        }
    }
}
