//! Many clients, and clients that do not read their answers: others are still served.

use std::time::Duration;

use array::{ErrorKind, Priority, Selection, Urgency};
use server::connections::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use wire::ClientConfig;
use wire::ops::{self, BlockPlace, ReadParameters, StatsParameters};

use crate::common::{Served, read};

const CUBE: &str = "synthetic:noise?shape=512,512,512&dtype=f32";
/// Timeout of these tests, long enough for busy machines.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns limits that a test can reach.
fn small_limits() -> Limits {
    Limits { most_visitors: 8, most_members: 8, ..Limits::default() }
}

async fn connect(served: &Served) -> TcpStream {
    TcpStream::connect(served.url().authority()).await.unwrap()
}

/// Requests pages as fast as the server reads, and reads no answers.
async fn connect_without_reading(served: &Served) -> TcpStream {
    let mut stream = connect(served).await;
    let request = format!("GET /colormaps.json HTTP/1.1\r\nHost: {}\r\n\r\n", served.url().authority());
    drop(
        tokio::time::timeout(Duration::from_millis(5), stream.write_all(request.repeat(1000).as_bytes()))
            .await,
    );
    stream
}

async fn still_answers(served: &Served) {
    let answer = async {
        let stack = served.stack().await;
        read(&stack.source, 0, Selection::parse("0:2, 0:2, 0:2", &[512; 3]).unwrap()).await.unwrap()
    };
    assert_eq!(tokio::time::timeout(TIMEOUT, answer).await.expect("an answer").len(), 32);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_visitors_on_all_connections_do_not_lock_out_clients() {
    let served = Served::with_limits(&[CUBE], small_limits()).await;
    let mut crowd = Vec::new();
    for _ in 0..20 {
        crowd.push(connect_without_reading(&served).await);
        crowd.push(connect(&served).await);
        let mut slow = connect(&served).await;
        slow.write_all(b"GET / HT").await.unwrap();
        crowd.push(slow);
        let mut half_open = connect(&served).await;
        half_open.write_all(b"\x16\x03\x01\x02").await.unwrap();
        crowd.push(half_open);
    }
    still_answers(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_with_unread_answers_are_closed_in_time() {
    let visit_within = Duration::from_millis(300);
    let served = Served::with_limits(&[CUBE], Limits { visit_within, ..Limits::default() }).await;
    let mut stream = connect_without_reading(&served).await;
    tokio::time::sleep(visit_within * 3).await;
    // Less than the timeout for the head of another request.
    let end = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut Vec::new())).await;
    assert!(end.is_ok(), "the server must have hung up");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_do_not_read_their_answers_are_disconnected_in_time() {
    let write_timeout = Duration::from_millis(300);
    let served = Served::with_limits(&[CUBE], Limits { write_timeout, ..small_limits() }).await;
    let url = served.url();
    let token = url.token.clone().unwrap();
    let request = format!(
        "GET /zarr/noise/noise/c/0/0/0 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n",
        url.authority()
    );
    let mut crowd = Vec::new();
    // Members use all connections, with longer answers than buffers hold.
    for _ in 0..8 {
        let mut stream = connect(&served).await;
        stream.write_all(request.repeat(60).as_bytes()).await.unwrap();
        crowd.push(stream);
    }
    for mut stream in crowd {
        tokio::time::sleep(write_timeout * 2).await;
        let end = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut Vec::new())).await;
        assert!(end.is_ok(), "the server must have hung up");
    }
    still_answers(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_of_a_request_has_a_timeout() {
    let first_bytes_within = Duration::from_millis(200);
    let served = Served::with_limits(&[CUBE], Limits { first_bytes_within, ..Limits::default() }).await;
    for begun in [&b""[..], b"G", b"GET / HTTP/1.1\r\nHos", b"\x16\x03\x01\x02\x00"] {
        let mut stream = connect(&served).await;
        stream.write_all(begun).await.unwrap();
        let end = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut Vec::new())).await;
        assert!(end.is_ok(), "the server must hang up after `{}`", String::from_utf8_lossy(begun));
    }
}

/// Connects a client over a WebSocket, as browsers do.
async fn over_websocket(served: &Served, tasks: &mut JoinSet<()>) -> link::ClientHandle {
    let url = served.url();
    let link = link::carrier::ws::connect(&url.host, url.port, &link::Trust::Plain).await.unwrap();
    let config = ClientConfig { token: url.token.clone().unwrap(), ..ClientConfig::default() };
    let (client, driver) = link::connect(link, config).unwrap();
    tasks.spawn(driver);
    client.welcomed().await.unwrap();
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_with_a_token_stay_connected_until_the_node_stops() {
    let mut served = Served::with_limits(&[CUBE], small_limits()).await;
    let mut tasks = JoinSet::new();
    let client = over_websocket(&served, &mut tasks).await;
    let mut crowd = Vec::new();
    for _ in 0..30 {
        crowd.push(connect(&served).await);
    }
    still_answers(&served).await;
    client.call(ops::LIST, bytes::Bytes::new(), Urgency::of(Priority::NORMAL)).await.unwrap();
    served.task.shutdown().await;
    let ended = tokio::time::timeout(Duration::from_secs(5), tasks.join_next()).await;
    assert!(ended.is_ok(), "a stopped node closes its connections");
    assert!(client.ended().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_for_too_many_members_names_the_limit() {
    let limits = Limits { most_members: 2, ..Limits::default() };
    let served = Served::with_limits(&[CUBE], limits).await;
    let mut tasks = JoinSet::new();
    let _first = over_websocket(&served, &mut tasks).await;
    let second = over_websocket(&served, &mut tasks).await;
    let try_to_connect = async || served.stack_of(served.url().clone()).await.map(drop);
    let error = try_to_connect().await.unwrap_err();
    assert!(error.to_string().contains("at most 2 connections"), "{error}");
    drop(second);
    tokio::time::timeout(TIMEOUT, async {
        while try_to_connect().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("a closed connection makes room for another one");
}

/// Connects a client over TLS with a window of `window_bytes` for what the server may send.
async fn over_tls(served: &Served, window_bytes: u64, tasks: &mut JoinSet<()>) -> link::ClientHandle {
    let url = served.url();
    let trust = link::Trust::Fingerprint(url.fingerprint.as_deref().unwrap().parse().unwrap());
    let link = link::carrier::tcp::connect(&url.host, url.port, &trust).await.unwrap();
    let token = url.token.clone().unwrap();
    let (client, driver) =
        link::connect(link, ClientConfig { token, window_bytes, ..ClientConfig::default() }).unwrap();
    tasks.spawn(driver);
    client
}

async fn place(served: &Served) -> BlockPlace {
    let dataset = served.stack().await.source.describe().await.unwrap();
    BlockPlace { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0 }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_for_long_parameters_is_limited() {
    let served = Served::start(&[CUBE]).await;
    let mut tasks = JoinSet::new();
    let client = over_tls(&served, 0, &mut tasks).await;
    let read = ReadParameters { place: place(&served).await, selection: Selection::all(&[512; 3]) }.encode();
    let padded = [&read[..], &vec![0; (1 << 20) - read.len()]].concat();
    let mut answers = Vec::new();
    for _ in 0..6 {
        let urgency = Urgency::of(Priority::NORMAL);
        answers.push(client.request(ops::READ, padded.clone().into(), urgency).await.unwrap());
    }
    // Four fit; the others are refused, together or one by one.
    for refused in &mut answers[4..] {
        let answer = tokio::time::timeout(TIMEOUT, refused.next_item()).await;
        let error = answer.expect("an answer").unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_do_not_use_up_the_memory_for_others() {
    let served = Served::start(&[CUBE]).await;
    let place = place(&served).await;
    let everything = ReadParameters { place, selection: Selection::all(&[512; 3]) }.encode();
    let urgency = Urgency::of(Priority::NORMAL);
    let (mut tasks, mut greedy, mut answers) = (JoinSet::new(), Vec::new(), Vec::new());
    for n in 0..8 {
        // Half of the clients give no credit, the others do not read what arrives.
        let window_bytes = if n % 2 == 0 { 0 } else { 8 << 20 };
        let client = over_tls(&served, window_bytes, &mut tasks).await;
        for _ in 0..8 {
            answers.push(client.request(ops::READ, everything.clone(), urgency).await.unwrap());
        }
        greedy.push(client);
    }
    // Until the clients occupy all memory that they can get.
    tokio::time::sleep(Duration::from_secs(2)).await;
    still_answers(&served).await;
    let request =
        StatsParameters { place, selection: Some(Selection::parse("0:64", &[512; 3]).unwrap()), bins: 8 };
    let stats = async { served.dialer().ask(request, urgency).await.unwrap() };
    let stats = tokio::time::timeout(TIMEOUT, stats).await.expect("statistics");
    assert_eq!(stats.count, 64 * 512 * 512);
}
