//! Checks that the golden vectors in `lab/vectors/wire.txt` agree with this crate, byte for byte. The
//! TypeScript tests read the same file.
//!
//! `CORRIDOR_BLESS=1 cargo test -p corridor-wire --test vectors` writes the file again; a change of it is a
//! change of the wire format.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fmt::Write as _;
use std::path::PathBuf;

use array::{
    AxisRange, BlockKey, DatasetId, Error, ErrorKind, Generation, LevelOrigin, Priority, Retry, Scalar,
    Selection, ValueRange,
};
use bytes::Bytes;
use corridor_wire as wire;
use serde_json::{Value, json};
use session::{
    FidelityBadge, FidelityLimit, FidelityState, FrameInfo, Item, JoinParams, ParticipantId, ParticipantInfo,
    ParticipantNote, PictureCodec, PointerInfo, PointerPlace, Role, Severity, SharedEdit, ViewChange,
};
use view::View;
use wire::compression::{Algorithm, Compressed};
use wire::ops::{
    BlockBody, BlockPlace, DescribeParameters, ListEntry, ReadBlockParameters, ReadBody, ReadParameters,
    ReadPiece, Rows, StatsAnswer, StatsHistogram, StatsParameters, decode_json, encode_json,
};
use wire::{
    BulkPart, Chunk, ChunkHead, Deframed, Frame, Hello, ItemHead, OpId, OperationRequest, RequestBatch,
    SmallAnswer, Welcome, WholeItem,
};

const HEADER: &str = "\
# Golden vectors of the wire, version 1 (docs/wire.md). One per line: name, bytes in hexadecimal, meaning in JSON,
# separated by one space; the JSON is the rest of the line. No bytes at all are written as -. Lines beginning with #
# are comments.
#
# frame.*   a frame without its length in front. `kind` names it; the other fields are those of docs/wire.md.
#           Encoding the meaning gives these bytes; decoding these bytes gives the meaning.
# lenient.* a frame that decodes to the meaning, but is not what encoding gives (fields of a later version at the end).
# broken.*  a frame that must be turned down; the meaning says why.
# stream.*  several frames as a byte stream, each with its length in front; the meaning lists the frames in hexadecimal.
# params.*, body.*, note.*  parameters of a request, body of an item, body of a note. Those that are JSON on the wire
#           are compared as JSON values, not byte by byte.
# part.*    some bulk with what its item's head says, a frame without its length in front, for links of several streams.
# crc32c.*  the meaning is the CRC-32C of the bytes.
#
# In the meaning, bytes are hexadecimal strings, a data set is its 32 hexadecimal digits, retry is true or false, and
# a number beyond 2^53 is a decimal string.
";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn unhex(text: &str) -> Bytes {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn of_u64(value: u64) -> Value {
    if value <= 1 << 53 { json!(value) } else { json!(value.to_string()) }
}

fn of_error(error: &Error) -> Value {
    json!({"kind": error.kind().code(), "retry": error.retry() == Retry::MayHelp,
           "message": error.message(), "context": error.places()})
}

fn of_priority(priority: Priority) -> Value {
    json!({"tier": priority.tier, "weight": priority.weight})
}

/// Meaning of a frame, independent of its encoding.
fn meaning(frame: &Frame) -> Value {
    match frame {
        Frame::Hello(h) => json!({"kind": "hello", "lowest_version": h.lowest_version,
            "highest_version": h.highest_version, "capabilities": h.capabilities, "token": h.token,
            "credit": of_u64(h.credit_bytes), "program": h.program}),
        Frame::Request(r) => json!({"kind": "request", "op": r.op.0, "name": r.name,
            "priority": of_priority(r.priority), "deadline_ms": r.deadline_ms, "parameters": hex(&r.parameters)}),
        Frame::Requests(r) => json!({"kind": "requests", "first": r.first.0, "name": *r.name,
            "priority": of_priority(r.priority), "deadline_ms": r.deadline_ms,
            "parameters": r.parameters.iter().map(|p| hex(p)).collect::<Vec<_>>()}),
        Frame::Answers(answers) => {
            json!({"kind": "answers", "answers": answers.iter().map(of_answer).collect::<Vec<_>>()})
        }
        Frame::Adjust { op, priority, deadline_ms } => json!({"kind": "adjust", "op": op.0,
            "priority": of_priority(*priority), "deadline_ms": deadline_ms}),
        Frame::Cancel { op } => json!({"kind": "cancel", "op": op.0}),
        Frame::Credit { bytes } => json!({"kind": "credit", "bytes": of_u64(*bytes)}),
        Frame::Note { op, body } => json!({"kind": "note", "op": op.0, "body": hex(body)}),
        Frame::Ping { nonce } => json!({"kind": "ping", "nonce": of_u64(*nonce)}),
        Frame::Pong { nonce } => json!({"kind": "pong", "nonce": of_u64(*nonce)}),
        Frame::Close { error } => json!({"kind": "close", "error": of_error(error)}),
        Frame::Welcome(w) => json!({"kind": "welcome", "version": w.version, "capabilities": w.capabilities,
            "program": w.program, "most_operations": w.most_operations}),
        Frame::Refused { error } => json!({"kind": "refused", "error": of_error(error)}),
        Frame::Item(i) => json!({"kind": "item", "op": i.op.0, "item": i.item, "body": hex(&i.body),
            "bulk_bytes": of_u64(i.bulk_bytes), "bulk_crc32c": i.bulk_crc32c}),
        Frame::Chunk(c) => json!({"kind": "chunk", "op": c.op.0, "item": c.item, "offset": of_u64(c.offset),
            "bytes": hex(&c.bytes)}),
        Frame::Done { op } => json!({"kind": "done", "op": op.0}),
        Frame::Failed { op, error } => json!({"kind": "failed", "op": op.0, "error": of_error(error)}),
    }
}

fn of_answer(answer: &SmallAnswer) -> Value {
    let item = answer.item.as_ref().map(
        |i| json!({"item": i.item, "body": hex(&i.body), "bulk": hex(&i.bulk), "bulk_crc32c": i.bulk_crc32c}),
    );
    json!({"op": answer.op.0, "item": item, "done": answer.done})
}

/// Random single rows, rows at a constant stride, and parameters of other lengths.
fn batches() -> Vec<(&'static str, Frame)> {
    let read = |starts: [u64; 2]| {
        let ranges = starts.iter().zip([1, 4096]).map(|(&start, count)| AxisRange::contiguous(start, count));
        ReadParameters { place: place(), selection: Selection::new(ranges).unwrap() }.encode()
    };
    let requests = |name: &str, priority, deadline_ms, parameters| {
        Frame::Requests(RequestBatch {
            first: OpId(300),
            name: name.into(),
            priority,
            deadline_ms,
            parameters,
        })
    };
    let random = [[7, 4096], [70_000, 8192], [13, 1 << 30]].map(read).to_vec();
    let stride = (0..6).map(|row| read([row * 3, 0])).chain([read([1, 1])]).collect();
    let mixed = ["", "abc", "abd", "a-long-name-of-a-data-set-and-nothing-else"];
    let mixed = mixed.iter().map(|text| Bytes::from_static(text.as_bytes())).collect();
    let item = |item, body: &'static [u8], bulk: &'static [u8]| {
        let (body, bulk, bulk_crc32c) = (Bytes::from_static(body), bulk.into(), crc32c::crc32c(bulk));
        Some(WholeItem { item, body, bulk, bulk_crc32c })
    };
    let answers = vec![
        SmallAnswer { op: OpId(1), item: item(0, b"body", b"123456789"), done: true },
        SmallAnswer { op: OpId(2), item: item(0, b"", b""), done: false },
        SmallAnswer { op: OpId(2), item: item(1, b"", b"bulk"), done: false },
        SmallAnswer { op: OpId(u32::MAX), item: None, done: true },
    ];
    vec![
        ("frame.requests", requests("read", Priority::NORMAL, 0, random)),
        ("frame.requests.stride", requests("read", Priority { tier: 1, weight: -2.25 }, 40, stride)),
        ("frame.requests.mixed", requests("describe", Priority::BACKGROUND, 0, mixed)),
        ("frame.requests.one", requests("list", Priority::BACKGROUND, 0, vec![Bytes::new()])),
        ("frame.answers", Frame::Answers(answers)),
        ("frame.answers.done", Frame::Answers(vec![SmallAnswer { op: OpId(7), item: None, done: true }])),
    ]
}

fn frames() -> Vec<(&'static str, Frame)> {
    let op = OpId(7);
    let priority = Priority { tier: 3, weight: 0.5 };
    let names = |list: &[&str]| list.iter().map(|s| (*s).to_string()).collect::<Vec<_>>();
    let error = Error::new(ErrorKind::Stale, "generation 3 was asked for, 4 is there").context("read");
    let denied = Error::new(ErrorKind::Denied, "expected another token");
    let busy = Error::new(ErrorKind::Busy, "später").context("innen").context("außen");
    vec![
        (
            "frame.hello",
            Frame::Hello(Hello {
                lowest_version: 1,
                highest_version: 1,
                capabilities: names(&["crc32c", "batch"]),
                token: "secret".into(),
                credit_bytes: 8 << 20,
                program: "corridor-web 0.1.0".into(),
            }),
        ),
        (
            "frame.hello.bare",
            Frame::Hello(Hello {
                lowest_version: 1,
                highest_version: 9,
                capabilities: vec![],
                token: String::new(),
                credit_bytes: u64::MAX,
                program: String::new(),
            }),
        ),
        (
            "frame.request",
            Frame::Request(OperationRequest {
                op,
                name: "describe".into(),
                priority,
                deadline_ms: 1500,
                parameters: DescribeParameters { name: "tooth.nhdr".into() }.encode(),
            }),
        ),
        (
            "frame.request.bare",
            Frame::Request(OperationRequest {
                op: OpId(u32::MAX),
                name: "list".into(),
                priority: Priority::BACKGROUND,
                deadline_ms: 0,
                parameters: Bytes::new(),
            }),
        ),
        (
            "frame.adjust",
            Frame::Adjust { op, priority: Priority { tier: 1, weight: -2.25 }, deadline_ms: 40 },
        ),
        ("frame.cancel", Frame::Cancel { op }),
        ("frame.credit", Frame::Credit { bytes: 3_000_000 }),
        ("frame.note", Frame::Note { op, body: Bytes::from_static(br#"{"kind":"still"}"#) }),
        ("frame.ping", Frame::Ping { nonce: 0x0102_0304_0506_0708 }),
        ("frame.pong", Frame::Pong { nonce: u64::MAX }),
        ("frame.close", Frame::Close { error: busy }),
        (
            "frame.welcome",
            Frame::Welcome(Welcome {
                version: 1,
                capabilities: names(&["crc32c", "x-later"]),
                program: "corridor 0.1.0".into(),
                most_operations: 65_536,
            }),
        ),
        ("frame.refused", Frame::Refused { error: denied }),
        (
            "frame.item",
            Frame::Item(ItemHead {
                op,
                item: 2,
                body: ReadBody { offset_bytes: 4096 }.encode(),
                bulk_bytes: 9,
                bulk_crc32c: crc32c::crc32c(b"123456789"),
            }),
        ),
        (
            "frame.item.without_bulk",
            Frame::Item(ItemHead {
                op,
                item: 0,
                body: Bytes::from_static(b"[]"),
                bulk_bytes: 0,
                bulk_crc32c: 0,
            }),
        ),
        ("frame.chunk", Frame::Chunk(Chunk { op, item: 2, offset: 4, bytes: Bytes::from_static(b"56789") })),
        ("frame.done", Frame::Done { op }),
        ("frame.failed", Frame::Failed { op, error }),
    ]
}

fn broken() -> Vec<(&'static str, &'static str, &'static str)> {
    vec![
        ("broken.empty", "", "a frame has a kind"),
        ("broken.kind", "7f00000000", "an unknown kind"),
        ("broken.cancel.short", "04070000", "the operation number is cut short"),
        ("broken.hello.magic", "0144434f52010001000000000000000000000000000000", "the magic is reversed"),
        ("broken.note.long", "0607000000ffffffff00", "the body is said to be 4 GiB"),
        ("broken.request.utf8", "02070000000200fffe0200000000000000000000000000", "the name is not UTF-8"),
        ("broken.requests.none", "09010001000000", "a batch has at least one operation"),
        ("broken.requests.many", "0901000000812000000000", "4097 operations in a batch"),
        ("broken.requests.run", "090100000002010000", "a run of none"),
        ("broken.requests.place", "0901000000050201ff070800", "a progression outside the parameters"),
        ("broken.requests.large", "09010000000102ffff7f00", "2 MiB of parameters"),
        ("broken.requests.patch", "090100000001020123ff0000", "a patch beyond the parameters"),
        ("broken.requests.numbers", "09ffffffff0f0000000204000000", "an operation number beyond 2^32"),
        ("broken.varint", "09ffffffffffffffffff7f", "a number beyond 64 bits"),
        ("broken.answers.none", "8700", "a batch has at least one answer"),
        ("broken.answers.bulk", "87010700808080010000000000", "2 MiB of bulk in a batch"),
        ("broken.answers.short", "870107000500000000aabb", "the bulk is cut short"),
        ("broken.chunk.empty", "8407000000020000000400000000000000", "a chunk has at least one byte"),
    ]
}

fn key() -> BlockKey {
    let dataset = DatasetId(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    BlockKey { dataset, generation: Generation(3), array: 1, level: 2, index: 77 }
}

fn place() -> BlockPlace {
    let BlockKey { dataset, generation, array, level, .. } = key();
    BlockPlace { dataset, generation, array, level }
}

fn of_place() -> Value {
    json!({"dataset": key().dataset.to_string(), "generation": 3, "array": 1, "level": 2})
}

fn with(mut base: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("an object was meant") };
    base.as_object_mut().unwrap().extend(more);
    base
}

fn selection() -> Selection {
    Selection::new(vec![AxisRange { start: 1, count: 10, step: 3 }, AxisRange::contiguous(0, 1 << 40)])
        .unwrap()
}

fn binary_bodies() -> Vec<(&'static str, Bytes, Value)> {
    let ranges = json!([{"start": 1, "count": 10, "step": 3}, {"start": 0, "count": 1u64 << 40, "step": 1}]);
    let range = |min, max| BlockBody::Data { range: Some(ValueRange { min, max }) }.encode();
    let stats = |bins, selection| StatsParameters { place: place(), bins, selection }.encode();
    vec![
        ("params.list", Bytes::new(), json!({})),
        (
            "params.describe",
            DescribeParameters { name: "tooth.nhdr".into() }.encode(),
            json!({"name": "tooth.nhdr"}),
        ),
        ("params.describe.only", DescribeParameters::default().encode(), json!({"name": ""})),
        (
            "params.read",
            ReadParameters { place: place(), selection: selection() }.encode(),
            with(of_place(), json!({"ranges": ranges})),
        ),
        (
            "params.read_block",
            ReadBlockParameters { key: key() }.encode(),
            with(of_place(), json!({"index": 77})),
        ),
        (
            "params.stats",
            stats(256, Some(selection())),
            with(of_place(), json!({"bins": 256, "ranges": ranges})),
        ),
        ("params.stats.all", stats(0, None), with(of_place(), json!({"bins": 0, "ranges": []}))),
        ("body.read", ReadBody { offset_bytes: 4096 }.encode(), json!({"offset_bytes": 4096})),
        (
            "body.read.compressed",
            piece(),
            with(of_compressed(), json!({"offset_bytes": 4096, "rows": [[2, 1000], [3, 50]]})),
        ),
        (
            "body.read_block.compressed",
            BlockBody::Data { range: None }.encode_with(Some(compressed())),
            with(of_compressed(), json!({"content": 1})),
        ),
        ("body.read_block.not_covered", BlockBody::NotCovered.encode(), json!({"content": 0})),
        ("body.read_block.no_range", BlockBody::Data { range: None }.encode(), json!({"content": 1})),
        (
            "body.read_block.unsigned",
            range(Scalar::Unsigned(0), Scalar::Unsigned(255)),
            json!({"content": 2, "min": 0, "max": 255}),
        ),
        (
            "body.read_block.signed",
            range(Scalar::Signed(-5), Scalar::Signed(i64::MAX)),
            json!({"content": 2, "min": -5, "max": i64::MAX.to_string()}),
        ),
        (
            "body.read_block.float",
            range(Scalar::Float(-0.5), Scalar::Float(f64::INFINITY)),
            json!({"content": 2, "min": -0.5, "max": "Infinity"}),
        ),
    ]
}

fn compressed() -> Compressed {
    Compressed { algorithm: Algorithm::Zstd, width: 4, plain_bytes: 240 }
}

fn of_compressed() -> Value {
    json!({"compression": 2, "width": 4, "plain_bytes": 240})
}

fn piece() -> Bytes {
    ReadPiece::Compressed(Rows { offset_bytes: 4096, axes: vec![(2, 1000), (3, 50)] }, compressed()).encode()
}

fn fidelity() -> FidelityBadge {
    FidelityBadge {
        level_shown: Some(1),
        level_wanted: 0,
        origin: LevelOrigin::Mean,
        limit: FidelityLimit::Screen,
        blocks_present: 3,
        blocks_total: 8,
        state: FidelityState::Loading,
        exact: false,
        levels_made: None,
        resampled: false,
        text: "3 of 8 blocks are here; the rest is on its way".into(),
    }
}

fn json_bodies() -> Vec<(&'static str, Bytes)> {
    let entry = ListEntry { name: "tooth.nhdr".into(), format: "NRRD".into(), arrays: 1 };
    let stats = StatsAnswer {
        count: 7,
        missing: 1,
        min: Some(Scalar::Float(-1.5)),
        max: Some(Scalar::Float(f64::INFINITY)),
        mean: Some(Scalar::Float(0.25)),
        histogram: StatsHistogram { low: -1.5, high: 2.5, counts: vec![3, 4] },
    };
    let ada = ParticipantInfo {
        id: ParticipantId(1),
        name: "Ada".into(),
        role: Role::Own,
        color: String::new(),
        follows: None,
        presents: false,
        away: false,
    };
    let fidelity = fidelity();
    let view = View { array: "rho".into(), ..View::default() };
    let join = JoinParams {
        session: "main".into(),
        name: "Ada".into(),
        width: 1024,
        height: 800,
        resume: String::new(),
    };
    let item = |item: Item| encode_json(&item).unwrap();
    let note = |note: ParticipantNote| encode_json(&note).unwrap();
    let Value::Object(later) = json!({"time": 3}) else { unreachable!() };
    let pointed = PointerPlace::World([1.0, 2.5, -3.0]);
    let pointer = PointerInfo { id: ParticipantId(2), at: pointed, laser: true };
    vec![
        ("params.join", encode_json(&join).unwrap()),
        ("body.list", ListEntry::encode_all(&[entry]).unwrap()),
        ("body.stats", stats.encode().unwrap()),
        (
            "body.join.joined",
            item(Item::Joined {
                you: ParticipantId(1),
                role: Role::Own,
                dataset: "tooth.nhdr".into(),
                view: view.clone(),
                seq: 0,
                resume: String::new(),
                edits: 0,
            }),
        ),
        ("body.join.participants", item(Item::Participants { list: vec![ada] })),
        ("body.join.view", item(Item::View { seq: 4, view })),
        (
            "body.join.frame",
            item(Item::Frame(FrameInfo {
                id: 9,
                seq: 4,
                width: 1024,
                height: 800,
                codec: PictureCodec::Jpeg,
                fidelity: fidelity.clone(),
            })),
        ),
        ("body.join.truth", item(Item::Fidelity { fidelity })),
        (
            "body.join.message",
            item(Item::Message { severity: Severity::Warning, text: "the last 3 slices are missing".into() }),
        ),
        ("body.join.changed", item(Item::Changed)),
        ("body.join.shared", item(Item::Shared { rev: 7, heard: 2 })),
        ("body.join.pointers", item(Item::Pointers { list: vec![pointer] })),
        (
            "body.join.following",
            item(Item::Following { leader: Some(ParticipantId(2)), text: String::new() }),
        ),
        ("body.join.history", item(Item::History { undo: 3, redo: 1 })),
        (
            "note.join.view",
            note(ParticipantNote::View(ViewChange { seq: 5, view: later, moving: true, automatic: false })),
        ),
        ("note.join.resize", note(ParticipantNote::Resize { width: 640, height: 480 })),
        ("note.join.shown", note(ParticipantNote::Shown { frame: 9 })),
        ("note.join.still", note(ParticipantNote::Still)),
        ("note.join.rename", note(ParticipantNote::Rename { name: "Ada".into() })),
        ("note.join.follow", note(ParticipantNote::Follow { leader: Some(ParticipantId(2)) })),
        ("note.join.present", note(ParticipantNote::Present { presenter: None })),
        ("note.join.pointer", note(ParticipantNote::Pointer { at: Some(pointed), laser: true })),
        (
            "note.join.edit",
            note(ParticipantNote::Edit { seq: 3, edit: SharedEdit::Say { text: "look".into() } }),
        ),
    ]
}

fn streams() -> (Vec<u8>, Value) {
    let chosen: Vec<Frame> = frames()
        .into_iter()
        .filter(|(n, _)| n.ends_with("cancel") || n.ends_with("chunk"))
        .map(|f| f.1)
        .collect();
    let stream = chosen.iter().flat_map(|f| f.encode().into_stream_parts()).flatten().collect();
    (stream, chosen.iter().map(|f| json!(hex(&f.encode().into_bytes()))).collect())
}

/// Bulk outside the frames, with and without a body.
fn parts() -> Vec<(&'static str, BulkPart)> {
    let head = |body: &'static [u8], bulk_bytes| ItemHead {
        op: OpId(7),
        item: 2,
        body: Bytes::from_static(body),
        bulk_bytes,
        bulk_crc32c: 0xE306_9283,
    };
    vec![
        ("part.body", BulkPart { head: head(b"\0\x10\0\0\0\0\0\0", 9), offset: 4, bytes: "56789".into() }),
        ("part.bare", BulkPart { head: head(b"", 64 << 20), offset: (64 << 20) - 1, bytes: "9".into() }),
    ]
}

fn meaning_of_part(part: &BulkPart) -> Value {
    let ItemHead { op, item, body, bulk_bytes, bulk_crc32c } = &part.head;
    json!({"op": op.0, "item": item, "offset": of_u64(part.offset), "bulk_bytes": of_u64(*bulk_bytes),
        "bulk_crc32c": bulk_crc32c, "body": hex(body), "bytes": hex(&part.bytes)})
}

/// Decodes a frame of bulk outside the frames.
fn decode_part(frame: &[u8]) -> BulkPart {
    let stream = [&u32::try_from(frame.len()).unwrap().to_le_bytes()[..], frame].concat();
    match wire::Deframer::new().cut(&mut &stream[..], 1024) {
        Ok(Some(Deframed::Apart { head, offset, bytes })) => {
            BulkPart { head, offset, bytes: Bytes::copy_from_slice(bytes) }
        }
        other => panic!("expected bulk apart, found {other:?}"),
    }
}

/// Generates the whole file with this crate.
fn file() -> String {
    let mut text = HEADER.to_owned();
    let mut line = |name: &str, bytes: &[u8], meaning: Value| {
        writeln!(text, "{name} {} {meaning}", if bytes.is_empty() { "-".into() } else { hex(bytes) })
            .unwrap();
    };
    for (name, frame) in frames().into_iter().chain(batches()) {
        line(name, &frame.encode().into_bytes(), meaning(&frame));
    }
    let later = [&Frame::Cancel { op: OpId(7) }.encode().into_bytes()[..], b"later"].concat();
    line("lenient.cancel.longer", &later, meaning(&Frame::Cancel { op: OpId(7) }));
    for (name, bytes, why) in broken() {
        line(name, &unhex(bytes), json!({"why": why}));
    }
    let (bytes, meaning) = streams();
    line("stream.two", &bytes, meaning);
    for (name, bytes, meaning) in binary_bodies() {
        line(name, &bytes, meaning);
    }
    for (name, bytes) in json_bodies() {
        line(name, &bytes, serde_json::from_slice(&bytes).unwrap());
    }
    for (name, part) in parts() {
        line(name, &part.clone().encode().into_bytes(), meaning_of_part(&part));
    }
    line("crc32c.empty", b"", json!(0));
    line("crc32c.digits", b"123456789", json!(0xE306_9283_u32));
    text
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../lab/vectors/wire.txt")
}

#[test]
fn the_file_is_what_this_crate_encodes() {
    if std::env::var_os("CORRIDOR_BLESS").is_some() {
        std::fs::write(path(), file()).unwrap();
    }
    let found = std::fs::read_to_string(path()).unwrap();
    for (found, expected) in found.lines().zip(file().lines()) {
        assert_eq!(split(found), split(expected));
    }
    assert_eq!(found.lines().count(), file().lines().count());
}

/// Splits a line into the name and the bytes as text, and the meaning as a value.
fn split(line: &str) -> (&str, Value) {
    let at = if line.starts_with('#') { None } else { line.match_indices(' ').nth(1).map(|(at, _)| at) };
    at.map_or((line, Value::Null), |at| (&line[..at], serde_json::from_str(&line[at..]).unwrap()))
}

#[test]
fn decoding_the_file_gives_its_meaning() {
    let mut kinds = std::collections::BTreeSet::new();
    for line in std::fs::read_to_string(path()).unwrap().lines().filter(|l| !l.starts_with('#')) {
        let mut parts = line.splitn(3, ' ');
        let (name, bytes, said) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let bytes = if bytes == "-" { Bytes::new() } else { unhex(bytes) };
        let said: Value = serde_json::from_str(said).unwrap();
        match name.split('.').next().unwrap() {
            "frame" | "lenient" => {
                kinds.insert(said["kind"].as_str().unwrap().to_owned());
                assert_eq!(meaning(&Frame::decode(bytes).unwrap()), said, "{name}");
            }
            "broken" => assert_eq!(Frame::decode(bytes).unwrap_err().kind(), ErrorKind::Corrupt, "{name}"),
            "crc32c" => assert_eq!(json!(crc32c::crc32c(&bytes)), said, "{name}"),
            "stream" => check_stream(&bytes, &said),
            "part" => {
                let part = decode_part(&bytes);
                assert_eq!((meaning_of_part(&part), part.encode().into_bytes()), (said, bytes), "{name}");
            }
            _ => check_body(name, bytes, &said),
        }
    }
    assert_eq!(kinds.len(), 17, "a kind of frame is missing: {kinds:?}");
}

fn check_stream(bytes: &[u8], said: &Value) {
    let mut deframer = wire::Deframer::new();
    let mut found = Vec::new();
    let mut rest = bytes;
    while let Some(cut) = deframer.cut(&mut rest, 1024).unwrap() {
        found.push(match cut {
            Deframed::Frame(frame) => frame,
            Deframed::Bulk { head: ChunkHead { op, item, offset }, bytes } => {
                let bytes = Bytes::copy_from_slice(bytes);
                Frame::Chunk(Chunk { op, item, offset, bytes }).encode().into_bytes()
            }
            Deframed::Apart { .. } => panic!("expected whole frames and chunks"),
        });
    }
    assert_eq!(Value::from_iter(found.iter().map(|f| hex(f))), *said);
    assert!(deframer.is_empty());
}

/// Decodes with the type that the name states, and encodes again.
fn check_body(name: &str, bytes: Bytes, said: &Value) {
    let again = match name.split('.').take(2).collect::<Vec<_>>()[..] {
        ["params", "list"] => bytes.clone(),
        ["params", "describe"] => DescribeParameters::decode(bytes.clone()).unwrap().encode(),
        ["params", "read"] => ReadParameters::decode(bytes.clone()).unwrap().encode(),
        ["params", "read_block"] => ReadBlockParameters::decode(bytes.clone()).unwrap().encode(),
        ["params", "stats"] => StatsParameters::decode(bytes.clone()).unwrap().encode(),
        ["params", "join"] => encode_json(&JoinParams::parse(&bytes).unwrap()).unwrap(),
        ["body", "read"] => ReadPiece::decode(bytes.clone()).unwrap().encode(),
        ["body", "read_block"] => {
            let (body, compressed) = BlockBody::decode_with(bytes.clone()).unwrap();
            body.encode_with(compressed)
        }
        ["body", "list"] => ListEntry::encode_all(&ListEntry::decode_all(&bytes).unwrap()).unwrap(),
        ["body", "stats"] => StatsAnswer::decode(&bytes).unwrap().encode().unwrap(),
        ["body", "join"] => encode_json(&decode_json::<Item>(&bytes, "an item").unwrap()).unwrap(),
        ["note", "join"] => encode_json(&ParticipantNote::parse(&bytes).unwrap()).unwrap(),
        _ => panic!("`{name}` is not known"),
    };
    assert_eq!(again, bytes, "{name}");
    if let Ok(value) = serde_json::from_slice::<Value>(&bytes) {
        assert_eq!(value, *said, "{name}");
    }
}
