//! Refusals of requests, readable for people and programs.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::http::assets;

/// Reason of refusing a request without a known peer, which only a defect of the server can cause.
pub(crate) const UNKNOWN_PEER: &str = "the peer of the connection is unknown";

/// Returns the message about a token that was sent unencrypted.
pub(crate) fn exposed(how: &str) -> String {
    format!(
        "this request carried its token over the network unencrypted, where others can read it: {how}, and start the server again \
         with another token"
    )
}

/// Returns whether a browser asks for a page.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accepts.is_some_and(|accept| accept.contains("text/html"))
}

/// Refuses with plain text.
pub(crate) fn refused(why: &str) -> Response {
    (StatusCode::FORBIDDEN, format!("refused: {why}\n")).into_response()
}

/// Refuses with a page for browsers, or with plain text for programs.
pub(crate) fn refused_for(why: &str, is_for_people: bool) -> Response {
    if !is_for_people {
        return refused(why);
    }
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'",
        ),
    ];
    (StatusCode::FORBIDDEN, headers, assets::refusal(why)).into_response()
}
