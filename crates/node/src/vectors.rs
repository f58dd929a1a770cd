//! Tests that the golden vectors in `lab/vectors/node.txt` agree with the messages between nodes other than those of
//! the standard operations. The TypeScript tests read the vectors of messages that the viewer handles.
//!
//! `CORRIDOR_BLESS=1 cargo test -p corridor-node --lib vectors` writes the file again; a changed file means that nodes
//! of different versions no longer understand each other.

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

use crate::describe;
use crate::handlers::servers;

const HEADER: &str = "\
# Golden vectors of messages between nodes other than those in wire.txt (docs/wire.md). One per line: name, bytes in
# hexadecimal and meaning in JSON, separated by single spaces; the JSON is the rest of the line. Lines that begin with # are
# comments. JSON on the wire is compared as a value, all other bytes exactly.
#
# params.*, body.*  parameters of a request, body of an item. `called` stands for all operations that are called by name.
# packet.*          header of a datagram outside of QUIC, on the same port; the rest of the datagram is zero.
# line.*            line of text on the channel of ssh before the first frame, with its end of line.
# broken.*          invalid data of the kind in the name; they must be refused, and the meaning gives the reason.
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

fn operand() -> Operand {
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
    let report = Some(ErrorReport::from(&error));
    [
        ("line.greeting", Greeting { program: program(), array: "rho".into(), direct: None, error: None }),
        (
            "line.greeting.direct",
            Greeting { program: program(), array: String::new(), direct: Some(direct), error: None },
        ),
        (
            "line.greeting.error",
            Greeting { program: program(), array: String::new(), direct: None, error: report },
        ),
    ]
}

/// Returns the vectors of packet trains, and of a server's report about the path on which it sends.
fn path_vectors() -> Result<Vec<(&'static str, Bytes, Option<Value>)>> {
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
    let achieved = json!({"protocol": "tcp", "controller": "cubic", "streams": 1, "bytes_per_sec": rate});
    let report = json!({"capacity_bytes_per_sec": null, "loss": loss, "reordering": null, "mtu_bytes": null, "achieved": [achieved]});
    Ok(vec![
        (
            "params.probe.down",
            probe(ProbeDirection::Down, 17).encode(),
            Some(probe_meaning(&probe(ProbeDirection::Down, 17))),
        ),
        (
            "params.probe.up",
            probe(ProbeDirection::Up, 513).encode(),
            Some(probe_meaning(&probe(ProbeDirection::Up, 513))),
        ),
        (
            "body.probe.sent",
            ProbeResult { sent: 17, arrivals: Vec::new() }.encode(),
            Some(json!({"sent": 17, "arrivals": []})),
        ),
        ("body.probe.arrived", arrived.encode(), Some(result_meaning(&arrived))),
        ("packet.train", Bytes::copy_from_slice(&packet.header()), Some(packet_meaning(packet))),
        ("body.path", encode_json(&json!({"to": report}))?, Some(report)),
    ])
}

fn probe_meaning(Probe { direction, train, packets }: &Probe) -> Value {
    json!({"way": if *direction == ProbeDirection::Up { "up" } else { "down" }, "train": train, "packets": packets})
}

fn result_meaning(probed: &ProbeResult) -> Value {
    let arrivals = probed.arrivals.iter().map(|arrival| {
        json!({"number": arrival.number, "size": arrival.size_bytes,
               "sent_micros": arrival.sent_micros, "received_micros": arrival.received_micros})
    });
    json!({"sent": probed.sent, "arrivals": arrivals.collect::<Vec<_>>()})
}

fn packet_meaning(ProbePacket { train, number, sent_micros }: ProbePacket) -> Value {
    json!({"train": train, "number": number, "sent_micros": sent_micros})
}

/// Returns the name, bytes and meaning of each vector; without a meaning, the bytes are the JSON of the meaning.
fn vectors() -> Result<Vec<(&'static str, Bytes, Option<Value>)>> {
    let call = |selected: bool, with: Value| {
        let of = if selected { operand() } else { Operand { selection: None, ..operand() } };
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
        ("params.called", call(true, json!({"q": [5, 50.5]}))?, None),
        ("params.called.all", call(false, json!({}))?, None),
        (
            "body.called.progress",
            encode_json(&ItemBody::<()>::Progress(CallProgress { done: 3, total: 8 }))?,
            None,
        ),
        ("body.called.elements", encode_json(&ItemBody::<()>::Elements(elements))?, None),
        ("body.called.piece", ReadBody { offset_bytes: 4096 }.encode(), Some(json!({"offset_bytes": 4096}))),
        ("body.called.result", encode_json(&ItemBody::Result(json!({"values": [1.5, null]})))?, None),
    ];
    all.extend(path_vectors()?);
    for (name, request) in [
        ("line.wish", OpenRequest { path: "/data/run.h5".into(), direct: true }),
        ("line.wish.home", OpenRequest { path: "/~/über uns/run.h5".into(), direct: false }),
    ] {
        all.push((
            name,
            request.line()?.into(),
            Some(json!({"path": request.path, "direct": request.direct})),
        ));
    }
    for (name, greeting) in greetings() {
        let meaning = serde_json::to_value(&greeting).map_err(|e| Error::internal(e.to_string()))?;
        all.push((name, greeting.line()?.into(), Some(meaning)));
    }
    for (name, text, why) in [
        ("broken.params.called", r#"{"of": {}, "with": {}}"#, "an operand without a data set"),
        ("broken.params.called", r#"{"with": {}}"#, "no operand"),
        ("broken.body.called", r#"{"result": 1, "progress": null}"#, "two kinds of content in one body"),
        ("broken.body.called", "[]", "not an object"),
        ("broken.body.peers", r#"{"peers": "corridor://a/"}"#, "a string instead of a list"),
        ("broken.params.probe", "\u{2}odd way and no more", "neither up nor down"),
        ("broken.params.probe", "\u{1}trainnum\u{1}\0", "one packet"),
        ("broken.body.probe", "\0\0\u{7f}", "more arrivals than there are bytes"),
        ("broken.body.path", "{\"to\": {\"loss\": 0.5}}", "a number instead of an estimate"),
        ("broken.line.wish", "/data/run.h5\n", "not JSON"),
        ("broken.line.greeting", "corridor-stdio {\"array\": \"rho\"}\n", "no program"),
    ] {
        all.push((name, text.as_bytes().into(), Some(json!({"why": why}))));
    }
    Ok(all)
}

fn file_text() -> Result<String> {
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
fn the_file_agrees_with_the_encoders() {
    let expected = file_text().unwrap();
    if std::env::var_os("CORRIDOR_BLESS").is_some() {
        std::fs::write(path(), &expected).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path()).unwrap(), expected);
}

#[test]
fn the_decoders_agree_with_the_file() {
    let mut kinds = BTreeSet::new();
    for line in std::fs::read_to_string(path()).unwrap().lines().filter(|line| !line.starts_with('#')) {
        let mut parts = line.splitn(3, ' ');
        let (name, bytes, expected) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let expected: Value = serde_json::from_str(expected).unwrap();
        let (is_broken, kind) = match name.strip_prefix("broken.") {
            Some(kind) => (true, kind),
            None => (false, name),
        };
        let read = decoded(kind, unhex(bytes));
        match is_broken {
            true => assert!(read.is_err(), "{name} {expected}"),
            false => assert_eq!(read.unwrap(), expected, "{name}"),
        }
        kinds.insert(kind.split('.').take(2).collect::<Vec<_>>().join("."));
    }
    let all = ["body.called", "body.path", "body.peers", "body.probe", "body.servers", "line.greeting"];
    let all = all.into_iter().chain(["line.wish", "packet.train"]);
    let all = all.chain(["params.called", "params.peers", "params.probe"]).map(str::to_owned);
    assert_eq!(kinds, all.collect());
}

/// Decodes the bytes as the receiver does, and returns their meaning as JSON.
fn decoded(name: &str, bytes: Bytes) -> Result<Value> {
    let to_json = |value: std::result::Result<Value, serde_json::Error>| {
        value.map_err(|e| Error::internal(e.to_string()))
    };
    match name.split('.').collect::<Vec<_>>()[..] {
        ["params", "peers", ..] => Ok(json!({"name": DescribeParameters::decode(bytes)?.name})),
        ["body", "peers", ..] => to_json(serde_json::to_value(decode_json::<DatasetPeers>(&bytes, "peers")?)),
        ["body", "servers", ..] => decode_json(&bytes, "servers"),
        ["params", "called", ..] => to_json(serde_json::to_value(CallRequest::<Value>::parse(&bytes)?)),
        ["body", "called", "piece"] => Ok(json!({"offset_bytes": ReadBody::decode(bytes)?.offset_bytes})),
        ["body", "called", ..] => {
            to_json(serde_json::to_value(decode_json::<ItemBody<Value>>(&bytes, "an answer")?))
        }
        ["params", "probe", ..] => Ok(probe_meaning(&Probe::decode(bytes)?)),
        ["body", "probe", ..] => Ok(result_meaning(&ProbeResult::decode(bytes)?)),
        ["packet", "train"] => {
            let none = || Error::corrupt("expected a packet of a train");
            ProbePacket::read(&bytes).map(packet_meaning).ok_or_else(none)
        }
        ["body", "path"] => to_json(serde_json::to_value(paths::read_told(&bytes)?)),
        ["line", "wish", ..] => to_json(serde_json::to_value(OpenRequest::read(&bytes)?)),
        ["line", "greeting", ..] => {
            let greeting = Greeting::read(&bytes).ok_or_else(|| Error::corrupt("expected a greeting"))??;
            to_json(serde_json::to_value(greeting))
        }
        _ => Err(Error::internal(format!("`{name}` is not known"))),
    }
}
