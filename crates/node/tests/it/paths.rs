//! Database of network paths: measurements by connections, and reports about them.

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

/// Waits until there are measurements of the path, and returns them; the timeout is long enough for busy hosts.
async fn wait_for_path(paths: &Paths) -> RecalledPath {
    let asking = async {
        loop {
            if let Some(known) = paths.recall(HERE, None).await {
                return known;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asking).await.expect("measurements in time")
}

async fn inspect_path(target: &str, context: &Context) -> PathSummary {
    inspect_with_probes(target, context, ProbeMode::WhereUnknown).await
}

async fn inspect_with_probes(target: &str, context: &Context, probing: ProbeMode) -> PathSummary {
    inspect(&target.parse().expect("a target"), &context.inspect_settings(), probing).await.expect("a report")
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_record_measurements_on_both_sides() {
    for protocol in [Protocol::Tcp, Protocol::Quic] {
        let mut of_server = None;
        let served =
            Served::with_options(&[WAVES], |options| of_server = Some(options.context.paths.clone())).await;
        let (served, of_server) = (served.unwrap(), of_server.unwrap());
        let folder = tempfile::tempdir().unwrap();
        let context =
            context(folder.path()).reaching(ConnectOptions { protocol, ..ConnectOptions::default() });
        let paths = context.paths.clone();
        let stack = assemble(&Location::Remote(served.url().clone()), &context).await.unwrap();
        read(&stack.source, 0, Selection::all(&[64, 64, 64])).await.unwrap();
        drop((stack, context));
        for side in [&paths, &of_server] {
            let path = wait_for_path(side).await.path;
            let now = path.recorded_at();
            let one_way = path.one_way(plan::Direction::Up);
            assert!(path.rtt.least(now).is_some_and(|rtt| rtt.value < 30.0), "{protocol}: {path:?}");
            assert!(one_way.loss(now).is_some() && one_way.mtu_bytes(now).is_some(), "{protocol}: {path:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_measures_by_requests_or_connections_and_says_what_is_missing() {
    let served = Served::start(&[WAVES]).await;
    let folder = tempfile::tempdir().unwrap();
    let context = context(folder.path());
    let nothing = inspect_path("127.0.0.1", &context).await;
    assert!(nothing.measured_now.starts_with("nothing was measured now"), "{}", nothing.measured_now);
    assert!(nothing.text().contains("round trip  unknown"), "{}", nothing.text());
    let listener = TcpListener::bind((HERE, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connected = inspect_path(&format!("127.0.0.1:{port}"), &context).await;
    assert!(
        connected.measured_now.contains(&format!("connections to port {port}")),
        "{}",
        connected.measured_now
    );
    let url = served.url().to_string();
    let asked = inspect_path(&url, &context).await;
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
    let refused = inspect_path(&format!("127.0.0.1:{port}"), &context).await;
    assert!(refused.measured_now.starts_with("nothing was measured now: "), "{}", refused.measured_now);
    for odd in ["", "a b", "host:99999", "corridor://"] {
        assert_eq!(odd.parse::<PathTarget>().unwrap_err().kind(), ErrorKind::Invalid, "{odd}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_reports_the_path_to_clients_with_a_token() {
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
    // A packet of an unknown connection.
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    stranger.send_to(&[0x5a; 200], &authority).await.unwrap();
    // A packet of a train that nobody expects.
    stranger.send_to(&[0; 200], &authority).await.unwrap();
    for kind in ["unknown", "stray"] {
        while tell().await.0["rejected"][kind] != 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Starts a server; returns also its database of paths.
async fn serve_with_paths() -> (Served, Paths) {
    let mut of_server = None;
    let served =
        Served::with_options(&[WAVES], |options| of_server = Some(options.context.paths.clone())).await;
    (served.unwrap(), of_server.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn measurements_by_the_server_are_requested_shown_and_recorded() {
    let (served, of_server) = serve_with_paths().await;
    let target = served.url().to_string();
    let folder = tempfile::tempdir().unwrap();
    let context = context(folder.path());
    let before = inspect_path(&target, &context).await;
    assert!(before.measured_now.contains("has no measurements of the direction"), "{}", before.measured_now);
    // The connection above has ended, and the server has recorded its measurements.
    wait_for_path(&of_server).await;
    let asked = inspect_path(&target, &context).await;
    assert!(asked.measured_now.contains("it reported its measurements"), "{}", asked.measured_now);
    let json = serde_json::to_value(&asked).unwrap();
    assert!(json["from"]["told_age_secs"].as_f64().is_some_and(|age| age < 60.0), "{json}");
    for quantity in ["loss", "mtu_bytes"] {
        assert!(json["from"][quantity]["value"].is_number(), "only the sender knows it: {json}");
    }
    assert!(json["to"]["told_age_secs"].is_null() && json["link"]["basis"].is_string(), "{json}");
    let text = asked.text();
    assert!(text.contains("reported    by the other host") && text.contains("link auto"), "{text}");
    let remembered = inspect_path("127.0.0.1", &context).await;
    let json = serde_json::to_value(&remembered).unwrap();
    assert!(json["from"]["loss"]["value"].is_number(), "without a request: {json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn packet_trains_measure_both_directions_within_a_budget() {
    let (served, of_server) = serve_with_paths().await;
    let target = served.url().to_string();
    let folder = tempfile::tempdir().unwrap();
    let context = context(folder.path());
    let unasked = inspect_path(&target, &context).await.measured_now;
    assert!(!unasked.contains("trains"), "no trains by default to this host itself: {unasked}");
    let (thin, _relay) = slow_path(served.url()).await;
    let by_quic =
        context.clone().reaching(ConnectOptions { protocol: Protocol::Quic, ..ConnectOptions::default() });
    let report = inspect_with_probes(&thin, &by_quic, ProbeMode::Always).await;
    let said = &report.measured_now;
    assert!(said.contains("; 16 packet trains (") && !said.contains("no more"), "{said}");
    let json = serde_json::to_value(report).unwrap();
    for way in ["from", "to"] {
        assert_eq!(json[way]["capacity_bytes_per_sec"]["samples"], 8, "{json}");
    }
    let of_client = of_server.recall(HERE, None).await.unwrap().path;
    let capacity = of_client.one_way(plan::Direction::Down).capacity(of_client.recorded_at());
    assert!(capacity.is_some_and(|capacity| capacity.samples == 8), "measured by the server: {of_client:?}");
    // Loopback is too fast for short trains; long ones use up the budget.
    for _ in 0..100 {
        let said = inspect_with_probes(&target, &context, ProbeMode::Always).await.measured_now;
        if said.contains("try again in") {
            return;
        }
    }
    panic!("the hourly budget does not end");
}

/// Starts a relay of 10 Mb/s in each direction to `server`; returns the URL through it.
async fn slow_path(server: &Url) -> (String, JoinSet<()>) {
    let (near, far) = (UdpSocket::bind((HERE, 0)).await.unwrap(), UdpSocket::bind((HERE, 0)).await.unwrap());
    let port = near.local_addr().unwrap().port();
    far.connect(server.authority()).await.unwrap();
    let (near, far) = (Arc::new(near), Arc::new(far));
    // Only one connection at a time uses the relay.
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

/// Request for a packet train.
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
async fn packet_trains_need_quic_and_have_a_maximum_length() {
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
        "a client that does not listen receives none of the packets"
    );
}
