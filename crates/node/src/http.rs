//! What a browser gets: the viewer's page, colour maps, a health check, and the way to the wire's WebSocket. Beside
//! these, data sets as [`zarr`](crate::zarr), with a guard of their own.
//!
//! The page and its files are public; everything that shows data goes through the wire's hello with its token. Host
//! and Origin are checked, so that a foreign page (or a foreign name for this address) reaches nothing.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use hyper::upgrade::OnUpgrade;
use tokio::sync::mpsc;

use crate::assets;

/// Where a request for a WebSocket leaves its connection: in the hands of the task that runs the connection, so that
/// no other task has to. An extension of each request.
#[derive(Clone)]
pub(crate) struct Handover(pub(crate) mpsc::Sender<OnUpgrade>);

/// Whether the connection is encrypted: decides which Origin is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Plain, on loopback only.
    Http,
    /// TLS.
    Https,
}

/// What the site knows.
#[derive(Clone)]
pub(crate) struct Site {
    /// Names this server answers to besides addresses and `localhost`.
    pub(crate) names: Arc<[String]>,
    /// Colour tables as JSON.
    pub(crate) colormaps: Arc<str>,
    /// Pictures are drawn here, so the viewer's page is of use.
    pub(crate) draws: bool,
}

/// The site for one kind of connection.
pub(crate) fn router(site: Site, scheme: Scheme) -> Router {
    let names = Arc::clone(&site.names);
    Router::new()
        .route("/wire", get(socket))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/colormaps.json", get(colormaps))
        .fallback(page)
        .with_state(site)
        .layer(middleware::from_fn(move |request: Request, next: Next| {
            guard(Arc::clone(&names), scheme, request, next)
        }))
}

/// Sends plain requests to the encrypted site: what a port beyond loopback answers to plain HTTP.
pub(crate) fn redirect_router(names: Arc<[String]>) -> Router {
    Router::new().fallback(move |headers: HeaderMap, uri: Uri| async move {
        let Ok(host) = checked_host(&headers, &names) else { return refused("unknown Host") };
        Redirect::permanent(&format!("https://{host}{}", uri.path())).into_response()
    })
}

async fn guard(names: Arc<[String]>, scheme: Scheme, request: Request, next: Next) -> Response {
    let host = match checked_host(request.headers(), &names) {
        Ok(host) => host,
        Err(why) => return refused(why),
    };
    if let Err(why) = check_origin(request.headers(), &host, scheme) {
        return refused(why);
    }
    let mut response = next.run(request).await;
    secure(response.headers_mut(), &host);
    response
}

pub(crate) fn refused(why: &str) -> Response {
    (StatusCode::FORBIDDEN, format!("refused: {why}\n")).into_response()
}

/// The Host header, if it is an address, `localhost` or one of our names. A name of somebody else that resolves to
/// this machine (DNS rebinding) is none of these.
pub(crate) fn checked_host(headers: &HeaderMap, names: &[String]) -> Result<String, &'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err("expected one Host header") };
    let host = host.to_str().map_err(|_| "the Host header is not text")?;
    let (name, port) = split_port(host).ok_or("the Host header is malformed")?;
    let is_port = port.is_empty() || port.parse::<u16>().is_ok();
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let is_ours = bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|n| n.eq_ignore_ascii_case(name));
    if is_ours && is_port { Ok(host.to_owned()) } else { Err("the Host header is not a name of this server") }
}

fn split_port(host: &str) -> Option<(&str, &str)> {
    if let Some(end) = host.strip_prefix('[').and_then(|rest| rest.find(']')) {
        let (name, rest) = host.split_at(end + 2);
        return Some((name, if rest.is_empty() { "" } else { rest.strip_prefix(':')? }));
    }
    Some(host.split_once(':').unwrap_or((host, "")))
}

/// A browser names the page that asks; only our own may.
pub(crate) fn check_origin(headers: &HeaderMap, host: &str, scheme: Scheme) -> Result<(), &'static str> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let own = match scheme {
        Scheme::Http => format!("http://{host}"),
        Scheme::Https => format!("https://{host}"),
    };
    if origin.as_bytes().eq_ignore_ascii_case(own.as_bytes()) {
        Ok(())
    } else {
        Err("the Origin is another site")
    }
}

/// `host` was checked, so it is safe inside a policy.
fn secure(headers: &mut HeaderMap, host: &str) {
    let policy = format!(
        "default-src 'none'; script-src 'self'; worker-src 'self' blob:; style-src 'self' 'unsafe-inline'; \
         img-src 'self' blob: data:; font-src 'self'; connect-src 'self' ws://{host} wss://{host}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    let fixed = [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-embedder-policy", "require-corp"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

async fn page(State(site): State<Site>, request: Request) -> Response {
    if request.method() != axum::http::Method::GET && request.method() != axum::http::Method::HEAD {
        return (StatusCode::METHOD_NOT_ALLOWED, "expected GET\n").into_response();
    }
    let found =
        if site.draws { assets::find(request.uri().path()) } else { assets::data_only(request.uri().path()) };
    let Some(asset) = found else {
        return (StatusCode::NOT_FOUND, "not found\n").into_response();
    };
    let keep = if asset.is_immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = [(header::CONTENT_TYPE, asset.media_type), (header::CACHE_CONTROL, keep)];
    (headers, Body::from(asset.bytes.into_owned())).into_response()
}

async fn colormaps(State(site): State<Site>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")];
    (headers, site.colormaps.to_string()).into_response()
}

/// Agrees to a WebSocket; what comes over it is the connection's business.
async fn socket(mut request: Request) -> Response {
    let answer = match link::ws::answer::<_, Body>(&request) {
        Ok(answer) => answer,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let handover = request.extensions().get::<Handover>();
    match handover.map(|handover| handover.0.try_send(upgrade)) {
        Some(Ok(())) => answer,
        _ => (StatusCode::SERVICE_UNAVAILABLE, "this connection gives no WebSocket\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(k, v)| ((*k).parse().unwrap(), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn only_addresses_localhost_and_own_names_are_hosts() {
        let names = ["data.example.org".to_owned()];
        for host in ["127.0.0.1:80", "localhost", "[::1]:9", "10.0.0.7", "DATA.example.org:443"] {
            assert!(checked_host(&headers(&[("host", host)]), &names).is_ok(), "{host}");
        }
        for host in ["evil.org", "localhost.evil.org", "localhost:x", "[::1", "a'b", "127.0.0.1:80:90"] {
            assert!(checked_host(&headers(&[("host", host)]), &names).is_err(), "{host}");
        }
        assert!(checked_host(&headers(&[]), &names).is_err());
    }

    #[test]
    fn only_our_own_page_may_ask() {
        let check = |origin, scheme| check_origin(&headers(&[("origin", origin)]), "127.0.0.1:80", scheme);
        assert!(check("http://127.0.0.1:80", Scheme::Http).is_ok());
        assert!(check("https://127.0.0.1:80", Scheme::Https).is_ok());
        assert!(check("http://127.0.0.1:80", Scheme::Https).is_err());
        assert!(check("http://evil.org", Scheme::Http).is_err());
        assert!(check("null", Scheme::Http).is_err());
        assert!(check_origin(&headers(&[]), "127.0.0.1:80", Scheme::Http).is_ok());
    }
}
