//! Tests that the golden vectors in `lab/vectors/node.txt` agree with this crate: messages between nodes beyond the
//! standard operations. The TypeScript tests read the same file, as far as the page handles them.
//!
//! `CORRIDOR_BLESS=1 cargo test -p corridor-node --lib vectors` writes the file again; a change of it changes the
//! messages between nodes of different versions.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use array::{AxisRange, DatasetId, Error, ErrorKind, Generation, Result, Retry, Selection};
use bytes::Bytes;
use client::paths;
use client::peers::DatasetPeers;
use client::remote_call::{CallProgress, CallRequest, ItemBody, Operand, ResultArray};
use client::servers::ServerState;
use client::ssh::greeting::{DirectAddress, ErrorReport, Greeting, OpenRequest};
use serde_json::{Value, json};
use wire::frames::probe::{Probe, ProbeArrival, ProbeDirection, ProbePacket, ProbeResult};
use wire::ops::{BlockPlace, DescribeParameters, ReadBody, decode_json, encode_json};

use crate::{describe, servers};

const HEADER: &str = "\
# Golden vectors of what nodes say to each other beyond the operations in wire.txt (docs/wire.md). One per line: name, bytes
# in hexadecimal, meaning in JSON, separated by one space; the JSON is the rest of the line. Lines beginning with # are
# comments. JSON on the wire is compared as a value, all else byte by byte.
#
# params.*, body.*  parameters of a request, body of an item. `called` stands for every operation that is called by name.
# packet.*          the beginning of a datagram beside QUIC's; the rest of it is zero.
# line.*            a line before the wire begins, on the channel of ssh, with its end.
# broken.*          named as what it is taken for; it must be turned down, and the meaning says why.
";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("room in memory");
        text
    })
}

fn unhex(text: &str) -> Bytes {
    let digits =
        |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("digits");
    text.as_bytes().chunks(2).map(digits).collect()
}

fn of() -> Operand {
    let dataset = DatasetId(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    let place = BlockPlace { dataset, generation: Generation(3), array: 1, level: 2 };
    let ranges = vec![AxisRange { start: 1, count: 10, step: 3 }, AxisRange::contiguous(0, 1 << 40)];
    Operand::new(place, Some(Selection::new(ranges).expect("a selection")))
}

fn peers() -> DatasetPeers {
    let peers = ["corridor://b.example:26774/run.h5#token=t&fp=sha256:00", "corridor://c.example:9/run.h5"];
    DatasetPeers {
        peers: peers.map(str::to_owned).to_vec(),
        chain: vec!["a/1/127.0.0.1:9/00".into(), "b".into()],
    }
}

fn states() -> Vec<(Option<String>, ServerState)> {
    let away = Error::new(ErrorKind::Unreachable, "the connection broke").context("server b.example:9");
    let state = |name: &str, away, delivered_bytes, rate_bytes_per_sec| ServerState {
        name: name.to_owned(),
        away,
        delivered_bytes,
        rate_bytes_per_sec,
    };
    vec![
        (None, state("corridor://a.example:9/run.h5", None, 5_000_000_000, Some(12_500_000.0))),
        (Some("run.h5".into()), state("corridor://b.example:9/run.h5", Some(away), 0, None)),
    ]
}

fn greetings() -> [(&'static str, Greeting); 3] {
    let program = || "corridor 0.1.0".to_owned();
    let direct = DirectAddress {
        address: "192.0.2.7:41234".parse().expect("an address"),
        token: "secret".into(),
        fingerprint: "sha256:00".into(),
    };
    let error = Error::not_found("no such file").context("open `/data/x`").with_retry(Retry::Never);
    let told = Some(ErrorReport::from(&error));
    [
        ("line.greeting", Greeting { program: program(), array: "rho".into(), direct: None, error: None }),
        (
            "line.greeting.direct",
            Greeting { program: program(), array: String::new(), direct: Some(direct), error: None },
        ),
        (
            "line.greeting.error",
            Greeting { program: program(), array: String::new(), direct: None, error: told },
        ),
    ]
}

/// Returns vectors of packet trains, and of a server's report on its sending.
fn of_paths() -> Result<Vec<(&'static str, Bytes, Option<Value>)>> {
    let probe = |direction, packets| Probe { direction, train: 0x0102_0304_0506, packets };
    let arrival = |number| ProbeArrival {
        number,
        size_bytes: 1200,
        sent_micros: 1_700_000_000_000_000,
        received_micros: 77,
    };
    let arrived = ProbeResult { sent: 0, arrivals: vec![arrival(0), arrival(2)] };
    let packet = ProbePacket { train: 0x0102_0304_0506, number: 512, sent_micros: 1_700_000_000_000_000 };
    let loss = json!({"value": 0.001, "low": 0.0005, "high": 0.002, "confidence": 0.5, "samples": 2, "age_secs": 3.5});
    let rate =
        json!({"value": 2e7, "low": 1e7, "high": 3e7, "confidence": 0.5, "samples": 2, "age_secs": 3.5});
    let way = json!({"protocol": "tcp", "controller": "cubic", "streams": 1, "bytes_per_sec": rate});
    let seen = json!({"capacity_bytes_per_sec": null, "loss": loss, "reordering": null, "mtu_bytes": null, "achieved": [way]});
    Ok(vec![
        (
            "params.probe.down",
            probe(ProbeDirection::Down, 17).encode(),
            Some(of_probe(&probe(ProbeDirection::Down, 17))),
        ),
        (
            "params.probe.up",
            probe(ProbeDirection::Up, 513).encode(),
            Some(of_probe(&probe(ProbeDirection::Up, 513))),
        ),
        (
            "body.probe.sent",
            ProbeResult { sent: 17, arrivals: Vec::new() }.encode(),
            Some(json!({"sent": 17, "arrivals": []})),
        ),
        ("body.probe.arrived", arrived.encode(), Some(of_probed(&arrived))),
        ("packet.train", Bytes::copy_from_slice(&packet.header()), Some(of_packet(packet))),
        ("body.path", encode_json(&json!({"to": seen}))?, Some(seen)),
    ])
}

fn of_probe(Probe { direction, train, packets }: &Probe) -> Value {
    json!({"way": if *direction == ProbeDirection::Up { "up" } else { "down" }, "train": train, "packets": packets})
}

fn of_probed(probed: &ProbeResult) -> Value {
    let arrivals = probed.arrivals.iter().map(|arrival| {
        json!({"number": arrival.number, "size": arrival.size_bytes,
               "sent_micros": arrival.sent_micros, "received_micros": arrival.received_micros})
    });
    json!({"sent": probed.sent, "arrivals": arrivals.collect::<Vec<_>>()})
}

fn of_packet(ProbePacket { train, number, sent_micros }: ProbePacket) -> Value {
    json!({"train": train, "number": number, "sent_micros": sent_micros})
}

/// Returns name, bytes and meaning, if that is not the JSON that they are.
fn vectors() -> Result<Vec<(&'static str, Bytes, Option<Value>)>> {
    let asked = |selected: bool, with: Value| {
        let of = if selected { of() } else { Operand { selection: None, ..of() } };
        CallRequest { of, with }.encode()
    };
    let elements = ResultArray { dtype: "<f4".parse()?, shape: vec![10, 1 << 40] };
    let mut all = vec![
        (
            "params.peers",
            DescribeParameters { name: "run.h5".into() }.encode(),
            Some(json!({"name": "run.h5"})),
        ),
        ("body.peers", encode_json(&peers())?, None),
        ("body.peers.none", encode_json(&DatasetPeers::default())?, None),
        ("body.servers", servers::body(&describe::servers(&states()))?, None),
        ("body.servers.none", servers::body(&describe::servers(&[]))?, None),
        ("params.called", asked(true, json!({"q": [5, 50.5]}))?, None),
        ("params.called.all", asked(false, json!({}))?, None),
        (
            "body.called.progress",
            encode_json(&ItemBody::<()>::Progress(CallProgress { done: 3, total: 8 }))?,
            None,
        ),
        ("body.called.elements", encode_json(&ItemBody::<()>::Elements(elements))?, None),
        ("body.called.piece", ReadBody { offset_bytes: 4096 }.encode(), Some(json!({"offset_bytes": 4096}))),
        ("body.called.result", encode_json(&ItemBody::Result(json!({"values": [1.5, null]})))?, None),
    ];
    all.extend(of_paths()?);
    for (name, wish) in [
        ("line.wish", OpenRequest { path: "/data/run.h5".into(), direct: true }),
        ("line.wish.home", OpenRequest { path: "/~/über uns/run.h5".into(), direct: false }),
    ] {
        all.push((name, wish.line()?.into(), Some(json!({"path": wish.path, "direct": wish.direct}))));
    }
    for (name, greeting) in greetings() {
        let meaning = serde_json::to_value(&greeting).map_err(|e| Error::internal(e.to_string()))?;
        all.push((name, greeting.line()?.into(), Some(meaning)));
    }
    for (name, text, why) in [
        ("broken.params.called", r#"{"of": {}, "with": {}}"#, "of no data set"),
        ("broken.params.called", r#"{"with": {}}"#, "of nothing"),
        ("broken.body.called", r#"{"result": 1, "progress": null}"#, "two things in one body"),
        ("broken.body.called", "[]", "no object"),
        ("broken.body.peers", r#"{"peers": "corridor://a/"}"#, "one text in place of a list"),
        ("broken.params.probe", "\u{2}odd way and no more", "neither up nor down"),
        ("broken.params.probe", "\u{1}trainnum\u{1}\0", "one packet"),
        ("broken.body.probe", "\0\0\u{7f}", "more arrivals than there are bytes"),
        ("broken.body.path", "{\"to\": {\"loss\": 0.5}}", "a number in place of an estimate"),
        ("broken.line.wish", "/data/run.h5\n", "no JSON"),
        ("broken.line.greeting", "corridor-stdio {\"array\": \"rho\"}\n", "no program"),
    ] {
        all.push((name, text.as_bytes().into(), Some(json!({"why": why}))));
    }
    Ok(all)
}

fn file() -> Result<String> {
    let mut text = HEADER.to_owned();
    for (name, bytes, meaning) in vectors()? {
        let meaning = match meaning {
            Some(meaning) => meaning,
            None => decode_json(&bytes, "JSON")?,
        };
        writeln!(text, "{name} {} {meaning}", hex(&bytes)).map_err(|e| Error::internal(e.to_string()))?;
    }
    Ok(text)
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../lab/vectors/node.txt")
}

#[test]
fn the_file_is_what_this_crate_says() {
    let expected = file().unwrap();
    if std::env::var_os("CORRIDOR_BLESS").is_some() {
        std::fs::write(path(), &expected).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path()).unwrap(), expected);
}

#[test]
fn reading_the_file_gives_its_meaning() {
    let mut kinds = BTreeSet::new();
    for line in std::fs::read_to_string(path()).unwrap().lines().filter(|line| !line.starts_with('#')) {
        let mut parts = line.splitn(3, ' ');
        let (name, bytes, said) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let said: Value = serde_json::from_str(said).unwrap();
        let (is_broken, kind) = match name.strip_prefix("broken.") {
            Some(kind) => (true, kind),
            None => (false, name),
        };
        let read = meaning(kind, unhex(bytes));
        match is_broken {
            true => assert!(read.is_err(), "{name} {said}"),
            false => assert_eq!(read.unwrap(), said, "{name}"),
        }
        kinds.insert(kind.split('.').take(2).collect::<Vec<_>>().join("."));
    }
    let all = ["body.called", "body.path", "body.peers", "body.probe", "body.servers", "line.greeting"];
    let all = all.into_iter().chain(["line.wish", "packet.train"]);
    let all = all.chain(["params.called", "params.peers", "params.probe"]).map(str::to_owned);
    assert_eq!(kinds, all.collect());
}

/// Decodes the bytes as the reading side does, and returns their meaning as JSON.
fn meaning(name: &str, bytes: Bytes) -> Result<Value> {
    let again = |value: std::result::Result<Value, serde_json::Error>| {
        value.map_err(|e| Error::internal(e.to_string()))
    };
    match name.split('.').collect::<Vec<_>>()[..] {
        ["params", "peers", ..] => Ok(json!({"name": DescribeParameters::decode(bytes)?.name})),
        ["body", "peers", ..] => again(serde_json::to_value(decode_json::<DatasetPeers>(&bytes, "peers")?)),
        ["body", "servers", ..] => decode_json(&bytes, "servers"),
        ["params", "called", ..] => again(serde_json::to_value(CallRequest::<Value>::parse(&bytes)?)),
        ["body", "called", "piece"] => Ok(json!({"offset_bytes": ReadBody::decode(bytes)?.offset_bytes})),
        ["body", "called", ..] => {
            again(serde_json::to_value(decode_json::<ItemBody<Value>>(&bytes, "an answer")?))
        }
        ["params", "probe", ..] => Ok(of_probe(&Probe::decode(bytes)?)),
        ["body", "probe", ..] => Ok(of_probed(&ProbeResult::decode(bytes)?)),
        ["packet", "train"] => {
            let none = || Error::corrupt("expected a packet of a train");
            ProbePacket::read(&bytes).map(of_packet).ok_or_else(none)
        }
        ["body", "path"] => again(serde_json::to_value(paths::read_told(&bytes)?)),
        ["line", "wish", ..] => again(serde_json::to_value(OpenRequest::read(&bytes)?)),
        ["line", "greeting", ..] => {
            let greeting = Greeting::read(&bytes).ok_or_else(|| Error::corrupt("expected a greeting"))??;
            again(serde_json::to_value(greeting))
        }
        _ => Err(Error::internal(format!("`{name}` is not known"))),
    }
}
