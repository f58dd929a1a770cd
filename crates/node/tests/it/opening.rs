//! Opening further data sets from the page: rooms, places, uploads, and who may.

use std::path::Path;
use std::sync::Arc;

use array::{ErrorKind, Priority, Result, Urgency};
use link::{ClientHandle, Trust};
use node::node::ServerOptions;
use serde_json::{Value, json};
use server::guests::{Guest, GuestRole, Guests};
use server::token::{Admission, Token};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use wire::{ClientConfig, ops};

use crate::common::options;

/// Viewing node of a synthetic field, with a page at `authority`.
struct Viewing {
    authority: String,
    token: String,
    tasks: JoinSet<()>,
}

impl Viewing {
    async fn start(options: &ServerOptions) -> Self {
        let viewer = node::view::start(options, None, stream::DrawDevice::Cpu, None).await.unwrap();
        let (authority, token) = (viewer.address.to_string(), viewer.token().unwrap_or_default().to_owned());
        let mut tasks = JoinSet::new();
        tasks.spawn(viewer.run());
        Self { authority, token, tasks }
    }

    async fn client(&mut self, token: &str) -> ClientHandle {
        let (host, port) = self.authority.split_once(':').unwrap();
        let link = link::carrier::ws::connect(host, port.parse().unwrap(), &Trust::Plain).await.unwrap();
        let config = ClientConfig { token: token.to_owned(), ..ClientConfig::default() };
        let (client, driver) = link::connect(link, config).unwrap();
        self.tasks.spawn(driver);
        client
    }

    async fn http(&self, request: String) -> String {
        let mut stream = TcpStream::connect(&self.authority).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    async fn get(&self, path: &str) -> String {
        self.http(format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.authority))
            .await
    }

    async fn put(&self, path: &str, token: &str, body: &str) -> String {
        let (host, length) = (&self.authority, body.len());
        self.http(format!(
            "PUT {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n\
             {body}"
        ))
        .await
    }
}

async fn ask(client: &ClientHandle, name: &str, parameters: Value) -> Result<Value> {
    let urgency = Urgency::of(Priority::INTERACTIVE);
    let answer = client.request(name, ops::encode_json(&parameters)?, urgency).await?;
    ops::decode_json(&answer.only_item().await?.body, "an answer")
}

fn viewing(folder: &Path) -> ServerOptions {
    options(folder, &["synthetic:waves?shape=16,16,16"])
}

#[tokio::test(flavor = "multi_thread")]
async fn another_data_set_gets_a_room_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut viewing = Viewing::start(&viewing(folder.path())).await;
    let client = viewing.client(&viewing.token.clone()).await;
    let open = async |location: &str| ask(&client, ops::OPEN, json!({"location": location})).await;
    let room = open("synthetic:noise?shape=8,8,8").await.unwrap();
    assert_eq!(room, json!({"path": "room/1/", "name": "noise"}));
    assert_eq!(open("synthetic:noise?shape=8,8,8").await.unwrap(), room, "the same room");
    let page = viewing.get("/room/1/").await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("Corridor"), "{page}");
    assert!(viewing.get("/room/1").await.contains("location: 1/"));
    assert!(viewing.get("/room/7/").await.contains("not open any more"));
    let places = ask(&client, ops::PLACES, json!({})).await.unwrap();
    let entries = places["entries"].as_array().unwrap();
    assert!(entries.iter().any(|place| place["location"] == "room/1/" && place["kind"] == "open"));
    assert!(places["may_open_files"] == true && places["max_upload_bytes"].as_u64() > Some(0));
    let error = open("/absent/data.nrrd").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_and_people_elsewhere_open_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let guest = Guest { token: Token::chosen("guest").unwrap(), role: GuestRole::Steer };
    let mut options = viewing(folder.path());
    options.admission =
        Admission::TokenAndGuests(Token::chosen("own").unwrap(), Arc::new(Guests::new(vec![guest])));
    let mut node = Viewing::start(&options).await;
    let client = node.client("guest").await;
    for (name, parameters) in
        [(ops::OPEN, json!({"location": "synthetic:waves"})), (ops::PLACES, json!({"place": "/"}))]
    {
        assert_eq!(ask(&client, name, parameters).await.unwrap_err().kind(), ErrorKind::Denied, "{name}");
    }
    assert!(node.put("/upload/a/b.npy", "guest", "1").await.starts_with("HTTP/1.1 403"));
    // Without a token the node is not this person's alone.
    options.admission = Admission::Everybody;
    let mut node = Viewing::start(&options).await;
    let client = node.client("").await;
    for (name, parameters) in
        [(ops::OPEN, json!({"location": "/etc/passwd"})), (ops::PLACES, json!({"place": "/"}))]
    {
        assert_eq!(ask(&client, name, parameters).await.unwrap_err().kind(), ErrorKind::Denied, "{name}");
    }
    assert!(node.put("/upload/a/b.npy", "", "1").await.starts_with("HTTP/1.1 403"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_file_is_opened_from_its_copy() {
    let folder = tempfile::tempdir().unwrap();
    let mut viewing = Viewing::start(&viewing(folder.path())).await;
    let text =
        format!("NRRD0004\ntype: uchar\ndimension: 3\nsizes: 4 4 4\nencoding: raw\n\n{}", "abcd".repeat(16));
    let token = viewing.token.clone();
    let answer = viewing.put("/upload/b1/some%20data.nrrd", &token, &text).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let path = answer.rsplit("\r\n\r\n").next().unwrap().to_owned();
    assert!(path.ends_with("/b1/some data.nrrd") && Path::new(&path).exists(), "{path}");
    let client = viewing.client(&token).await;
    let room = ask(&client, ops::OPEN, json!({"location": path})).await.unwrap();
    assert_eq!(room["name"], "some data.nrrd");
    assert!(viewing.put("/upload/b1/some%20data.nrrd", &token, &text).await.starts_with("HTTP/1.1 500"));
    assert!(viewing.put("/upload/b1/..%2Fx", &token, "1").await.starts_with("HTTP/1.1 400"));
}
