//! Requests of browsers: the page, its security headers, and refused origins.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::Served;

async fn answer(served: &Served, request: &str) -> String {
    let mut stream = TcpStream::connect(served.url().authority()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut bytes = Vec::new();
    let end = tokio::time::timeout(std::time::Duration::from_secs(20), stream.read_to_end(&mut bytes)).await;
    assert!(end.is_ok(), "the server must close the connection as requested");
    text.push_str(&String::from_utf8_lossy(&bytes));
    text
}

fn get(path: &str, host: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n")
}

const UPGRADE: &str =
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_security_headers() {
    let served = Served::start(&["synthetic:waves?shape=8,8,8"]).await;
    let host = served.url().authority();
    let page = answer(&served, &get("/", &host, "")).await;
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    for header in [
        "content-security-policy: default-src 'none'",
        "cross-origin-opener-policy: same-origin",
        "cross-origin-embedder-policy: require-corp",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
    ] {
        assert!(page.contains(header), "expected `{header}` in {page}");
    }
    assert!(page.contains("corridor view"), "the page of a data server names `corridor view`: {page}");
    assert!(answer(&served, &get("/index.html", &host, "")).await.starts_with("HTTP/1.1 404"));
    assert!(answer(&served, &get("/healthz", &host, "")).await.ends_with("ok\n"));
    let maps = answer(&served, &get("/colormaps.json", &host, "")).await;
    assert!(maps.contains("\"viridis\":\""));
    assert!(answer(&served, &get("/../Cargo.toml", &host, "")).await.starts_with("HTTP/1.1 404"));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_host_names_and_origins_are_refused() {
    let served = Served::start(&["synthetic:waves?shape=8,8,8"]).await;
    let host = served.url().authority();
    let refused = |text: &str| text.starts_with("HTTP/1.1 403");
    assert!(refused(&answer(&served, &get("/", "evil.example", "")).await));
    assert!(refused(&answer(&served, &get("/wire", "evil.example", UPGRADE)).await));
    let foreign = format!("{UPGRADE}Origin: http://evil.example\r\n");
    assert!(refused(&answer(&served, &get("/wire", &host, &foreign)).await));
    let own = format!("{UPGRADE}Origin: http://{host}\r\n").replace("Connection: close", "");
    let request = format!("GET /wire HTTP/1.1\r\nHost: {host}\r\n{own}Connection: Upgrade\r\n\r\n");
    let mut stream = TcpStream::connect(&host).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 101");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wire_without_encryption_is_refused() {
    let served = Served::start(&["synthetic:waves?shape=8,8,8"]).await;
    let url = served.url();
    let link = link::carrier::tcp::connect(&url.host, url.port, &link::Trust::Plain).await.unwrap();
    let config = wire::ClientConfig { token: url.token.clone().unwrap(), ..wire::ClientConfig::default() };
    let (client, driver) = link::connect(link, config).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(driver);
    assert!(client.welcomed().await.is_err());
}
