//! Authorization of reading: a client must present a token. Pages of other sites may read only if the server was
//! configured with these sites, and only with the token for Zarr: a page with the token for everything would have all
//! rights.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Caller;
use crate::connection::Service;
use crate::http::refusal::{UNKNOWN_PEER, exposed, refused};
use crate::metrics;
use crate::public_address::{RequestPeer, ServerNames};
use crate::token::{Right, ZarrReaders};

/// URL path of the report on the network path to the client; not part of Zarr.
pub(super) const PATH: &str = "/path";
/// URL path of the counters for Prometheus; not part of Zarr either.
pub(super) const METRICS: &str = "/metrics";
/// Time for which a browser may cache the result of a preflight request, in seconds.
const PREFLIGHT_SECS: &str = "86400";

/// State from which the guard decides who may read.
#[derive(Clone)]
pub(super) struct GuardState {
    pub(super) service: Arc<Service>,
    pub(super) names: Arc<ServerNames>,
}

/// Passes requests of clients with the required rights.
pub(super) async fn guard(State(state): State<GuardState>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let Some(&from) = request.extensions().get::<RequestPeer>() else { return refused(UNKNOWN_PEER) };
    let host = match state.names.host(headers) {
        Ok(host) => host,
        Err(why) => return refused(&why),
    };
    if headers.contains_key(header::AUTHORIZATION) && state.names.came_unencrypted(headers, from) {
        return refused(&exposed("use https for the proxy"));
    }
    let is_page_of_another_site =
        state.names.check_origin(headers, &host, from).is_err() || is_of_another_site(headers);
    let page = allowed_page(headers, state.service.admission.readers()).filter(|_| is_page_of_another_site);
    if is_page_of_another_site && page.is_none() {
        return refused(
            "pages of this site may not read; `corridor serve --cors ORIGIN` allows it, with a token of their own",
        );
    }
    if request.method() == Method::OPTIONS {
        return with_cors(StatusCode::NO_CONTENT.into_response(), page);
    }
    let is_reader = match state.service.admission.right(bearer(headers)) {
        Err(error) => {
            metrics::add(&state.service.shared.metrics.denied, 1);
            let ask = [(header::WWW_AUTHENTICATE, "Bearer")];
            let how =
                "the token that `corridor serve` printed is sent in the header `Authorization: Bearer TOKEN`";
            let answer = (StatusCode::UNAUTHORIZED, ask, format!("{error}\n{how}\n")).into_response();
            return with_cors(answer, page);
        }
        Ok(Right::Everything) if page.is_some() => {
            return with_cors(refused("pages of other sites read with the token for Zarr only"), page);
        }
        Ok(Right::ReadZarr) if [PATH, METRICS].contains(&request.uri().path()) => {
            return with_cors(refused("this token allows reading Zarr only"), page);
        }
        Ok(Right::Guest(_)) => {
            return with_cors(refused("the link of a guest allows taking part in the session only"), page);
        }
        Ok(right) => right == Right::ReadZarr,
    };
    if let Some(caller) = request.extensions().get::<Caller>()
        && let Err(error) = if is_reader { caller.slot.admit_reader() } else { caller.slot.admit() }
    {
        // Too many members: the request is answered, within the time limit of visitors.
        tracing::debug!(%error, "a Zarr client stays a visitor");
    }
    with_cors(next.run(request).await, page)
}

/// Returns whether a request comes from the page of another site, by the header `Sec-Fetch-Site`. Browsers send it with
/// every request, also with one for an image, which has no `Origin`.
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    site.is_some_and(|site| site != b"same-origin" && site != b"none")
}

/// Returns the value of `Access-Control-Allow-Origin` for a page of another site that may read; `None` if it may not.
fn allowed_page(headers: &HeaderMap, readers: Option<&ZarrReaders>) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?.to_str().ok()?;
    HeaderValue::from_str(readers?.page(origin)?).ok()
}

/// Returns the token in the header `Authorization`; empty if there is none.
pub(crate) fn bearer(headers: &HeaderMap) -> &str {
    let value = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()).unwrap_or_default();
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => "",
    }
}

fn with_cors(mut response: Response, page: Option<HeaderValue>) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
    let Some(page) = page else { return response };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, page);
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, OPTIONS"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, if-none-match, if-range, range"),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, "accept-ranges, content-range, etag"),
        (header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECS),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_as_bearer() {
        let sent = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(text));
            bearer(&headers).to_owned()
        };
        assert_eq!((sent("Bearer abc"), sent("bearer  abc ")), ("abc".into(), "abc".into()));
        assert_eq!((sent("Basic abc"), sent("abc"), bearer(&HeaderMap::new())), ("".into(), "".into(), ""));
    }
}
