//! The memory of paths: what connections leave in it, and how it is asked for.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use array::{ErrorKind, Priority, Result, Selection, Urgency};
use bytes::Bytes;
use client::dial::{ConnectOptions, Dialer, Endpoint};
use client::paths::{PathSummary, PathTarget, Paths, ProbeMode, RecalledPath, inspect};
use client::requests::RemoteOperation;
use client::url::{Location, Url};
use link::{OpStream, Protocol};
use node::assemble::{Context, assemble};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::Instant;
use wire::frames::probe::{Probe, ProbeDirection, ProbeResult};

use crate::common::{Served, context, read};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const WAVES: &str = "synthetic:waves?shape=64,64,64&dtype=u8";

/// Waits until something is known of the path, and returns it; fails after a time that even a busy host keeps.
async fn known(paths: &Paths) -> RecalledPath {
    let asking = async {
        loop {
            if let Some(known) = paths.recall(HERE, None).await {
                return known;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asking).await.expect("something is told in time")
}

async fn look_at(target: &str, context: &Context) -> PathSummary {
    probe_or_look_at(target, context, ProbeMode::WhereUnknown).await
}

async fn probe_or_look_at(target: &str, context: &Context, probing: ProbeMode) -> PathSummary {
    inspect(&target.parse().expect("a target"), &context.inspect_settings(), probing).await.expect("a report")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_connection_leaves_what_it_saw_on_both_sides() {
    for protocol in [Protocol::Tcp, Protocol::Quic] {
        let mut of_server = None;
        let served =
            Served::changed(&[WAVES], |options| of_server = Some(options.context.paths.clone())).await;
        let (served, of_server) = (served.unwrap(), of_server.unwrap());
        let folder = tempfile::tempdir().unwrap();
        let context =
            context(folder.path()).reaching(ConnectOptions { protocol, ..ConnectOptions::default() });
        let paths = context.paths.clone();
        let stack = assemble(&Location::Remote(served.url().clone()), &context).await.unwrap();
        read(&stack.source, 0, Selection::all(&[64, 64, 64])).await.unwrap();
        drop((stack, context));
        for side in [&paths, &of_server] {
            let path = known(side).await.path;
            let now = path.recorded_at();
            let one_way = path.one_way(plan::Direction::Up);
            assert!(path.rtt.least(now).is_some_and(|rtt| rtt.value < 30.0), "{protocol}: {path:?}");
            assert!(one_way.loss(now).is_some() && one_way.mtu_bytes(now).is_some(), "{protocol}: {path:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_asks_a_server_else_connects_else_says_what_is_missing() {
    let served = Served::start(&[WAVES]).await;
    let folder = tempfile::tempdir().unwrap();
    let context = context(folder.path());
    let nothing = look_at("127.0.0.1", &context).await;
    assert!(nothing.measured_now.starts_with("nothing was measured now"), "{}", nothing.measured_now);
    assert!(nothing.text().contains("round trip  unknown"), "{}", nothing.text());
    let listener = TcpListener::bind((HERE, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connected = look_at(&format!("127.0.0.1:{port}"), &context).await;
    assert!(
        connected.measured_now.contains(&format!("connections to port {port}")),
        "{}",
        connected.measured_now
    );
    let url = served.url().to_string();
    let asked = look_at(&url, &context).await;
    assert!(asked.measured_now.contains("requests to its server"), "{}", asked.measured_now);
    let json = serde_json::to_value(&asked).unwrap();
    assert!(json["rtt"]["least_secs"]["samples"].as_u64() >= Some(3), "{json}");
    assert!(
        !json["to"]["loss"].is_null() && !json["to"]["mtu_bytes"].is_null(),
        "the connection's own: {json}"
    );
    for choice in ["protocol", "controller", "rate_bytes_per_sec", "streams", "buffer_bytes", "mtu_bytes"] {
        let advised = &json["to"]["advice"][choice];
        let is_unknown = advised["basis"].as_str().unwrap().starts_with("unknown: ");
        assert_eq!(advised["value"].is_null(), is_unknown, "{choice}: {advised}");
    }
    drop(listener);
    let refused = look_at(&format!("127.0.0.1:{port}"), &context).await;
    assert!(refused.measured_now.starts_with("nothing was measured now: "), "{}", refused.measured_now);
    for odd in ["", "a b", "host:99999", "corridor://"] {
        assert_eq!(odd.parse::<PathTarget>().unwrap_err().kind(), ErrorKind::Invalid, "{odd}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_tells_whoever_shows_the_token_of_the_path_to_him() {
    let served = Served::start(&[WAVES]).await;
    let authority = served.url().authority();
    let ask = async |more: String| {
        let mut stream = TcpStream::connect(&authority).await.unwrap();
        let request = format!("GET /path HTTP/1.1\r\nHost: {authority}\r\n{more}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    };
    assert!(ask(String::new()).await.starts_with("HTTP/1.1 401"));
    let token = served.url().token.clone().unwrap();
    let tell = async || {
        let told = ask(format!("Authorization: Bearer {token}\r\n")).await;
        let body = told.split("\r\n\r\n").nth(1).unwrap();
        (serde_json::from_str::<serde_json::Value>(body).unwrap(), told)
    };
    let (body, told) = tell().await;
    assert_eq!(body["host"], "127.0.0.1", "{told}");
    assert!(told.starts_with("HTTP/1.1 200") && told.contains("cache-control: no-store"), "{told}");
    assert!(body["to"]["advice"]["rate_bytes_per_sec"]["basis"].is_string());
    let none =
        serde_json::json!({"unknown": 0, "oversized": 0, "unauthenticated": 0, "replayed": 0, "stray": 0});
    assert_eq!(body["rejected"], none);
    // Of a connection that there never was.
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    stranger.send_to(&[0x5a; 200], &authority).await.unwrap();
    // Of a packet train that nobody waits for.
    stranger.send_to(&[0; 200], &authority).await.unwrap();
    for kind in ["unknown", "stray"] {
        while tell().await.0["rejected"][kind] != 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// A server, and its memory of paths.
async fn with_memory() -> (Served, Paths) {
    let mut of_server = None;
    let served = Served::changed(&[WAVES], |options| of_server = Some(options.context.paths.clone())).await;
    (served.unwrap(), of_server.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_sees_of_its_sending_is_asked_for_shown_and_remembered() {
    let (served, of_server) = with_memory().await;
    let target = served.url().to_string();
    let folder = tempfile::tempdir().unwrap();
    let context = context(folder.path());
    let before = look_at(&target, &context).await;
    assert!(before.measured_now.contains("has no measurements of the direction"), "{}", before.measured_now);
    // The connection above has ended, and the server has written down what it saw.
    known(&of_server).await;
    let asked = look_at(&target, &context).await;
    assert!(asked.measured_now.contains("it reported its measurements"), "{}", asked.measured_now);
    let json = serde_json::to_value(&asked).unwrap();
    assert!(json["from"]["told_age_secs"].as_f64().is_some_and(|age| age < 60.0), "{json}");
    for quantity in ["loss", "mtu_bytes"] {
        assert!(json["from"][quantity]["value"].is_number(), "only the sender knows it: {json}");
    }
    assert!(json["to"]["told_age_secs"].is_null() && json["link"]["basis"].is_string(), "{json}");
    let text = asked.text();
    assert!(
        text.contains("told        what the other host sees of it") && text.contains("link auto"),
        "{text}"
    );
    let remembered = look_at("127.0.0.1", &context).await;
    let json = serde_json::to_value(&remembered).unwrap();
    assert!(json["from"]["loss"]["value"].is_number(), "asking nobody: {json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn trains_go_both_ways_are_remembered_on_both_sides_and_end_with_the_budget() {
    let (served, of_server) = with_memory().await;
    let target = served.url().to_string();
    let folder = tempfile::tempdir().unwrap();
    let context = context(folder.path());
    let unasked = look_at(&target, &context).await.measured_now;
    assert!(!unasked.contains("trains"), "never to this machine itself: {unasked}");
    let (thin, _relay) = thin_path(served.url()).await;
    let by_quic =
        context.clone().reaching(ConnectOptions { protocol: Protocol::Quic, ..ConnectOptions::default() });
    let report = probe_or_look_at(&thin, &by_quic, ProbeMode::Always).await;
    let said = &report.measured_now;
    assert!(said.contains("; 16 packet trains (") && !said.contains("no more"), "{said}");
    let json = serde_json::to_value(report).unwrap();
    for way in ["from", "to"] {
        assert_eq!(json[way]["capacity_bytes_per_sec"]["samples"], 8, "{json}");
    }
    let of_client = of_server.recall(HERE, None).await.unwrap().path;
    let capacity = of_client.one_way(plan::Direction::Down).capacity(of_client.recorded_at());
    assert!(capacity.is_some_and(|capacity| capacity.samples == 8), "what came there: {of_client:?}");
    // Loopback is too fast for trains, and the long ones use up what may be spent.
    for _ in 0..100 {
        let said = probe_or_look_at(&target, &context, ProbeMode::Always).await.measured_now;
        if said.contains("try again in") {
            return;
        }
    }
    panic!("the budget of an hour is without end");
}

/// A path of 10 Mb/s each way to `server`; its link.
async fn thin_path(server: &Url) -> (String, JoinSet<()>) {
    let (near, far) = (UdpSocket::bind((HERE, 0)).await.unwrap(), UdpSocket::bind((HERE, 0)).await.unwrap());
    let port = near.local_addr().unwrap().port();
    far.connect(server.authority()).await.unwrap();
    let (near, far) = (Arc::new(near), Arc::new(far));
    // One connection after another.
    let client = Arc::new(Mutex::new(None));
    let mut relay = JoinSet::new();
    for is_out in [true, false] {
        let (near, far, client) = (Arc::clone(&near), Arc::clone(&far), Arc::clone(&client));
        relay.spawn(async move {
            let (mut packet, mut free_at) = (vec![0; 65_535], Instant::now());
            loop {
                let from = if is_out { &near } else { &far };
                let (size, sender) = from.recv_from(&mut packet).await.unwrap();
                free_at = free_at.max(Instant::now()) + Duration::from_secs_f64(size as f64 / 1.25e6);
                tokio::time::sleep_until(free_at).await;
                if is_out {
                    *client.lock().unwrap() = Some(sender);
                    far.send(&packet[..size]).await.unwrap();
                } else {
                    let client = client.lock().unwrap().unwrap();
                    near.send_to(&packet[..size], client).await.unwrap();
                }
            }
        });
    }
    (Url { port, ..server.clone() }.to_string(), relay)
}

/// A train, asked for by hand.
struct ProbeRequest(Bytes);

impl RemoteOperation for ProbeRequest {
    type Response = ProbeResult;

    fn name(&self) -> &str {
        wire::ops::PROBE
    }

    fn parameters(&self) -> Result<Bytes> {
        Ok(self.0.clone())
    }

    async fn answer(&self, replies: OpStream) -> Result<ProbeResult> {
        ProbeResult::decode(replies.only_item().await?.body)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trains_are_sent_beside_quic_only_and_of_bounded_length() {
    let served = Served::start(&[WAVES]).await;
    let ask = async |protocol, parameters| {
        let reach = ConnectOptions { protocol, ..ConnectOptions::default() };
        let dialer = Dialer::new(Endpoint::of(served.url(), 1 << 20).unwrap().by(reach));
        dialer.ask(ProbeRequest(parameters), Urgency::of(Priority::NORMAL)).await
    };
    let probe = Probe { direction: ProbeDirection::Down, train: 7, packets: 17 };
    let by_tcp = ask(Protocol::Tcp, probe.encode()).await.unwrap_err();
    assert_eq!(by_tcp.kind(), ErrorKind::Unsupported, "{by_tcp}");
    for odd in [Probe { packets: u16::MAX, ..probe }.encode(), Bytes::from_static(b"odd")] {
        assert_eq!(ask(Protocol::Quic, odd).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
    let sent = ask(Protocol::Quic, probe.encode()).await.unwrap();
    assert_eq!(
        sent,
        ProbeResult { sent: 17, arrivals: Vec::new() },
        "whoever does not listen hears nothing of them"
    );
}
