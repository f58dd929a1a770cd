//! Responses to browsers: the viewer's page, color maps, a health check, counters, and the upgrade to the wire
//! protocol's WebSocket. Data sets are served by [`zarr`](crate::zarr), which has its own guard.
//!
//! The page and its files are public; data require the hello message of the wire protocol with its token. `Host` is
//! checked for every request, and `Origin` for requests that lead to data, so that another site's page (or another name
//! for this address) has no access: see [`public_address`](crate::public_address). Refusals are readable: a browser
//! gets a page.

pub mod assets;
pub mod colormaps;
pub(crate) mod refusal;
pub mod uploads;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post, put};
use hyper::upgrade::OnUpgrade;
use tokio::sync::mpsc;

use crate::http::refusal::{UNKNOWN_PEER, exposed, refused, refused_for, wants_page};
use crate::public_address::{RequestPeer, ServerNames};

/// Channel by which a request for a WebSocket passes its connection to the task that runs the connection, so that no
/// other task has to run it. An extension of each request.
#[derive(Clone)]
pub(crate) struct UpgradeSender(pub(crate) mpsc::Sender<OnUpgrade>);

/// State of the site.
#[derive(Clone)]
pub struct HttpSite {
    /// Names of the server, by which requests are checked.
    pub names: Arc<ServerNames>,
    /// Color maps as JSON.
    pub colormaps: Arc<str>,
    /// Whether pictures are rendered here, which the viewer's page needs.
    pub draws: bool,
    /// Folder for files that are dropped on the page, if that is allowed.
    pub uploads: Option<Arc<uploads::Uploads>>,
}

/// Creates the router of the site.
pub fn router(site: HttpSite) -> Router {
    let names = Arc::clone(&site.names);
    let public = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/colormaps.json", get(colormaps))
        .fallback(page)
        .with_state(site.clone());
    // Requests that lead to data, and the check for access: only from this server's own page.
    let own_page = Router::new()
        .route("/wire", get(socket))
        .route("/reach", post(|| async { "ok\n" }))
        .route("/upload/{batch}/{name}", put(uploads::upload))
        .layer(middleware::from_fn_with_state(Arc::clone(&names), only_our_page))
        .with_state(site);
    public.merge(own_page).layer(middleware::from_fn_with_state(names, guard))
}

/// Redirects plain HTTP from other hosts to the encrypted site. A request with a token is refused instead: others on
/// the network could read the token.
pub fn redirect_router(names: Arc<ServerNames>) -> Router {
    Router::new().fallback(move |request: Request| async move {
        let (headers, uri) = (request.headers(), request.uri());
        let is_for_people = wants_page(headers);
        let host = match names.host(headers) {
            Ok(host) => host,
            Err(why) => return refused_for(&why, is_for_people),
        };
        if headers.contains_key(header::AUTHORIZATION)
            || uri.query().is_some_and(|query| query.contains("token="))
        {
            return refused_for(&exposed(&format!("use `https://{host}`")), is_for_people);
        }
        Redirect::permanent(&format!("https://{host}{}", uri.path())).into_response()
    })
}

async fn guard(State(names): State<Arc<ServerNames>>, request: Request, next: Next) -> Response {
    let host = match names.host(request.headers()) {
        Ok(host) => host,
        Err(why) => return refused_for(&why, wants_page(request.headers())),
    };
    let mut response = next.run(request).await;
    secure(response.headers_mut(), &names.sockets(&host));
    response
}

async fn only_our_page(State(names): State<Arc<ServerNames>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let Some(&from) = request.extensions().get::<RequestPeer>() else { return refused(UNKNOWN_PEER) };
    let checked = names.host(headers).and_then(|host| names.check_origin(headers, &host, from));
    if let Err(why) = checked {
        return refused(&why);
    }
    if names.came_unencrypted(headers, from) {
        return refused(
            "the proxy reports that it received this request unencrypted over the network, where others can read the token: use https \
             for the proxy",
        );
    }
    next.run(request).await
}

/// Adds security headers. `sockets` were checked, so they are safe inside a policy.
fn secure(headers: &mut HeaderMap, sockets: &str) {
    let policy = format!(
        "default-src 'none'; script-src 'self'; worker-src 'self' blob:; style-src 'self' 'unsafe-inline'; \
         img-src 'self' blob: data:; font-src 'self'; connect-src 'self'{sockets}; \
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

async fn page(State(site): State<HttpSite>, request: Request) -> Response {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return (StatusCode::METHOD_NOT_ALLOWED, "expected GET\n").into_response();
    }
    let found =
        if site.draws { assets::find(request.uri().path()) } else { assets::data_only(request.uri().path()) };
    let Some(asset) = found else {
        return absent(request.uri(), wants_page(request.headers()));
    };
    let caching = if asset.is_immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = [(header::CONTENT_TYPE, asset.media_type), (header::CACHE_CONTROL, caching)];
    (headers, Body::from(asset.bytes.into_owned())).into_response()
}

/// Responds to an unknown path. The response mentions a proxy that adds a prefix to paths, if that may be the reason.
fn absent(uri: &Uri, is_for_people: bool) -> Response {
    if !is_for_people {
        return (StatusCode::NOT_FOUND, "not found\n").into_response();
    }
    let why = format!(
        "there is no page `{}`; if a proxy in front of this server adds a path, start it with `--public-url https://HOST/PATH/`, or have \
         the proxy remove the path (nginx: a slash at the end of `proxy_pass`)",
        uri.path()
    );
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (StatusCode::NOT_FOUND, headers, assets::refusal(&why)).into_response()
}

async fn colormaps(State(site): State<HttpSite>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")];
    (headers, site.colormaps.to_string()).into_response()
}

/// Accepts a WebSocket; the connection handles its messages.
async fn socket(mut request: Request) -> Response {
    let answer = match link::carrier::ws::answer::<_, Body>(&request) {
        Ok(answer) => answer,
        Err(error) => {
            let how = "a proxy in front of the server has to pass on the headers Upgrade and Connection (nginx: `proxy_http_version 1.1; \
                       proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection \"upgrade\";`)";
            let upgrade = [(header::UPGRADE, "websocket")];
            return (StatusCode::UPGRADE_REQUIRED, upgrade, format!("{error}; {how}\n")).into_response();
        }
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let handover = request.extensions().get::<UpgradeSender>();
    match handover.map(|handover| handover.0.try_send(upgrade)) {
        Some(Ok(())) => answer,
        _ => (StatusCode::SERVICE_UNAVAILABLE, "this connection cannot become a WebSocket\n").into_response(),
    }
}
