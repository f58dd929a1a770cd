//! Properties of the encoding, and of the state machines with peers that break the rules.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests; where time begins does not matter"
)]

use std::time::{Duration, Instant};

use array::{
    AxisRange, BlockKey, DatasetId, Error, ErrorKind, Generation, Priority, Retry, Scalar, Selection, Urgency,
};
use bytes::Bytes;
use corridor_wire as wire;
use proptest::collection::vec;
use proptest::prelude::*;
use session::{JoinParams, ParticipantNote};
use wire::ops::{
    BlockBody, BlockPlace, DescribeParameters, GeometryBody, GeometryParameters, ListEntry,
    ReadBlockParameters, ReadBody, ReadParameters, ReadPiece, StatsAnswer, StatsParameters,
};
use wire::{
    BulkPart, Chunk, ChunkHead, Client, ClientConfig, ClientEvent, Deframed, Deframer, Frame, Hello,
    ItemHead, Machine, OpId, OperationRequest, RequestBatch, Server, ServerConfig, ServerEvent, SmallAnswer,
    Welcome, WholeItem, limits,
};

fn error() -> impl Strategy<Value = Error> {
    (1..=13_u16, any::<bool>(), ".{0,40}", vec(".{0,20}", 0..5)).prop_map(|(kind, retry, message, places)| {
        let retry = if retry { Retry::MayHelp } else { Retry::Never };
        let error = Error::new(ErrorKind::from_code(kind), message).with_retry(retry);
        places.into_iter().fold(error, Error::context)
    })
}

fn bytes(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..most).prop_map(Bytes::from)
}

fn op() -> impl Strategy<Value = OpId> {
    any::<u32>().prop_map(OpId)
}

fn priority() -> impl Strategy<Value = Priority> {
    (any::<u8>(), -1e9..1e9_f32).prop_map(|(tier, weight)| Priority { tier, weight })
}

fn names() -> impl Strategy<Value = Vec<String>> {
    vec("[a-z0-9-]{0,64}", 0..5)
}

fn hello() -> impl Strategy<Value = Frame> {
    (any::<[u16; 2]>(), names(), ".{0,100}", any::<u64>(), "[a-z ]{0,64}").prop_map(
        |([lowest_version, highest_version], capabilities, token, credit_bytes, program)| {
            Frame::Hello(Hello {
                lowest_version,
                highest_version,
                capabilities,
                token,
                credit_bytes,
                program,
            })
        },
    )
}

fn welcome() -> impl Strategy<Value = Frame> {
    (any::<u16>(), names(), "[a-z ]{0,64}", any::<u32>()).prop_map(
        |(version, capabilities, program, most_operations)| {
            Frame::Welcome(Welcome { version, capabilities, program, most_operations })
        },
    )
}

fn item() -> impl Strategy<Value = Frame> {
    (op(), any::<u32>(), bytes(100), any::<u64>(), any::<u32>()).prop_map(
        |(op, item, body, bulk_bytes, bulk_crc32c)| {
            Frame::Item(ItemHead { op, item, body, bulk_bytes, bulk_crc32c })
        },
    )
}

fn request() -> impl Strategy<Value = Frame> {
    (op(), "[a-z_]{0,64}", priority(), any::<u32>(), bytes(100)).prop_map(
        |(op, name, priority, deadline_ms, parameters)| {
            Frame::Request(OperationRequest { op, name, priority, deadline_ms, parameters })
        },
    )
}

fn chunk() -> impl Strategy<Value = Frame> {
    (op(), any::<u32>(), any::<u64>(), vec(any::<u8>(), 1..300))
        .prop_map(|(op, item, offset, bytes)| Frame::Chunk(Chunk { op, item, offset, bytes: bytes.into() }))
}

/// Parameters as applications make them: equal, similar, at a constant stride, and arbitrary.
fn alike() -> impl Strategy<Value = Vec<Bytes>> {
    let stride = (vec(any::<u8>(), 8..60), 0..52_usize, any::<u64>(), 1..20_usize).prop_map(
        |(first, at, step, count)| {
            let at = at.min(first.len() - 8);
            let grow = |last: &Vec<u8>| {
                let mut next = last.clone();
                let number = u64::from_le_bytes(last[at..at + 8].try_into().unwrap()).wrapping_add(step);
                next[at..at + 8].copy_from_slice(&number.to_le_bytes());
                Some(next)
            };
            std::iter::successors(Some(first), grow).take(count).map(Bytes::from).collect()
        },
    );
    let few = vec(prop_oneof![Just(0_u8), 0..3_u8], 0..40).prop_map(Bytes::from);
    let runs = prop_oneof![stride, vec(bytes(80), 1..5), vec(few, 1..9)];
    vec(runs, 1..5).prop_map(|runs: Vec<Vec<Bytes>>| runs.concat())
}

fn requests() -> impl Strategy<Value = Frame> {
    (0..u32::MAX - 1000, "[a-z_]{0,64}", priority(), any::<u32>(), alike()).prop_map(
        |(first, name, priority, deadline_ms, parameters)| {
            let (first, name) = (OpId(first), name.into());
            Frame::Requests(RequestBatch { first, name, priority, deadline_ms, parameters })
        },
    )
}

fn answers() -> impl Strategy<Value = Frame> {
    let item = (any::<u32>(), bytes(40), bytes(3000), any::<u32>()).prop_map(|(item, body, bulk, crc)| {
        let bulk_crc32c = if bulk.is_empty() { 0 } else { crc };
        WholeItem { item, body, bulk, bulk_crc32c }
    });
    let answer = (op(), proptest::option::of(item), any::<bool>());
    vec(answer.prop_map(|(op, item, done)| SmallAnswer { op, item, done }), 1..20).prop_map(Frame::Answers)
}

fn frame() -> impl Strategy<Value = Frame> {
    prop_oneof![
        requests(),
        answers(),
        hello(),
        welcome(),
        item(),
        request(),
        chunk(),
        (op(), priority(), any::<u32>()).prop_map(|(op, priority, deadline_ms)| Frame::Adjust {
            op,
            priority,
            deadline_ms
        }),
        op().prop_map(|op| Frame::Cancel { op }),
        any::<u64>().prop_map(|bytes| Frame::Credit { bytes }),
        (op(), bytes(100)).prop_map(|(op, body)| Frame::Note { op, body }),
        any::<u64>().prop_map(|nonce| Frame::Ping { nonce }),
        any::<u64>().prop_map(|nonce| Frame::Pong { nonce }),
        error().prop_map(|error| Frame::Close { error }),
        error().prop_map(|error| Frame::Refused { error }),
        op().prop_map(|op| Frame::Done { op }),
        (op(), error()).prop_map(|(op, error)| Frame::Failed { op, error }),
    ]
}

fn place() -> impl Strategy<Value = BlockPlace> {
    (any::<u128>(), any::<u32>(), any::<u32>(), any::<u8>()).prop_map(
        |(dataset, generation, array, level)| BlockPlace {
            dataset: DatasetId(dataset),
            generation: Generation(generation),
            array,
            level,
        },
    )
}

fn selection() -> impl Strategy<Value = Selection> {
    let range = (0..1_u64 << 40, 0..1_u64 << 10, 1..1_u64 << 10);
    vec(range.prop_map(|(start, count, step)| AxisRange { start, count, step }), 1..=16)
        .prop_map(|ranges| Selection::new(ranges).unwrap())
}

fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        any::<u64>().prop_map(Scalar::Unsigned),
        any::<i64>().prop_map(Scalar::Signed),
        (-1e300..1e300_f64).prop_map(Scalar::Float),
    ]
}

/// Runs every decoder of bytes that a peer sends.
fn decode_all(bytes: &Bytes) {
    survives(Frame::decode(bytes.clone()));
    survives(DescribeParameters::decode(bytes.clone()));
    survives(ReadParameters::decode(bytes.clone()));
    survives(ReadPiece::decode(bytes.clone()));
    survives(BlockBody::decode_with(bytes.clone()));
    survives(ReadBlockParameters::decode(bytes.clone()));
    survives(BlockBody::decode(bytes.clone()));
    survives(StatsParameters::decode(bytes.clone()));
    survives(GeometryParameters::decode(bytes.clone()));
    survives(GeometryBody::decode(bytes.clone()));
    survives(StatsAnswer::decode(bytes));
    survives(ListEntry::decode_all(bytes));
    survives(wire::ops::decode_dataset(bytes));
    survives(JoinParams::parse(bytes));
    survives(ParticipantNote::parse(bytes));
}

#[test]
fn a_description_takes_a_bounded_amount_of_memory() {
    use wire::ops::{MAX_DESCRIPTION_BYTES, MAX_DESCRIPTION_VALUES, decode_dataset};
    // Two bytes of text may be a value of 48 bytes in memory.
    let values = format!("[{}1]", "1,".repeat(MAX_DESCRIPTION_VALUES + 1));
    let long = format!("[\"{}\"]", "x".repeat(MAX_DESCRIPTION_BYTES));
    for text in [values, long] {
        assert_eq!(decode_dataset(text.as_bytes()).unwrap_err().kind(), ErrorKind::TooLarge);
    }
}

/// Checks that an error can be displayed and sent. These tests look for panics.
fn survives<T>(result: wire::Result<T>) {
    if let Err(error) = result {
        assert!(!error.message().is_empty());
    }
}

fn op_of(frame: &Frame) -> Option<OpId> {
    match frame {
        Frame::Request(OperationRequest { op, .. })
        | Frame::Item(ItemHead { op, .. })
        | Frame::Chunk(Chunk { op, .. })
        | Frame::Adjust { op, .. }
        | Frame::Cancel { op }
        | Frame::Note { op, .. }
        | Frame::Done { op }
        | Frame::Failed { op, .. } => Some(*op),
        _ => None,
    }
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(frame in frame()) {
        let message = frame.encode();
        prop_assert_eq!(message.size_bytes(), message.clone().into_bytes().len());
        prop_assert_eq!(message.op(), op_of(&frame));
        prop_assert_eq!(Frame::decode(message.into_bytes()).unwrap(), frame);
    }

    #[test]
    fn later_fields_are_ignored(frame in frame(), more in vec(any::<u8>(), 0..20)) {
        if !matches!(frame, Frame::Chunk(_)) {
            let longer = [&frame.encode().into_bytes()[..], &more].concat();
            prop_assert_eq!(Frame::decode(longer.into()).unwrap(), frame);
        }
    }

    #[test]
    fn a_frame_padded_beyond_what_later_versions_may_add_is_refused(frame in frame()) {
        if !matches!(frame, Frame::Chunk(_)) {
            let padding = vec![0; limits::MAX_ADDED_BYTES + 1];
            let longer = [&frame.encode().into_bytes()[..], &padding].concat();
            prop_assert_eq!(Frame::decode(longer.into()).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }

    #[test]
    fn frames_cut_short_or_changed_do_no_harm(
        frame in frame(), keep in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), flip in 1..=255_u8,
    ) {
        let whole = frame.encode().into_bytes();
        decode_all(&whole.slice(..keep.index(whole.len())));
        let mut changed = whole.to_vec();
        let at = at.index(changed.len());
        changed[at] ^= flip;
        decode_all(&changed.into());
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in bytes(400)) {
        decode_all(&bytes);
    }

    #[test]
    fn parameters_and_bodies_come_back(
        place in place(), selection in selection(), index in any::<u64>(), bins in 0..=wire::ops::MAX_BINS,
        range in (scalar(), scalar()), name in ".{0,50}",
    ) {
        let read = ReadParameters { place, selection: selection.clone() };
        prop_assert_eq!(ReadParameters::decode(read.encode()).unwrap(), read);
        let BlockPlace { dataset, generation, array, level } = place;
        let block = ReadBlockParameters { key: BlockKey { dataset, generation, array, level, index } };
        prop_assert_eq!(ReadBlockParameters::decode(block.encode()).unwrap(), block);
        for selection in [None, Some(selection)] {
            let stats = StatsParameters { place, bins, selection };
            prop_assert_eq!(StatsParameters::decode(stats.encode()).unwrap(), stats);
        }
        let body = BlockBody::Data { range: Some(array::ValueRange { min: range.0, max: range.1 }) };
        prop_assert_eq!(BlockBody::decode(body.encode()).unwrap(), body);
        let body = ReadBody { offset_bytes: index };
        prop_assert_eq!(ReadBody::decode(body.encode()).unwrap(), body);
        prop_assert_eq!(ReadPiece::decode(body.encode()).unwrap(), ReadPiece::Plain(body));
        let geometry = GeometryParameters { place, name: name.clone(), offset_bytes: index };
        prop_assert_eq!(GeometryParameters::decode(geometry.encode()).unwrap(), geometry);
        let body = GeometryBody { size_bytes: index, stamp: index ^ 7 };
        prop_assert_eq!(GeometryBody::decode(body.encode()).unwrap(), body);
        let describe = DescribeParameters { name };
        prop_assert_eq!(DescribeParameters::decode(describe.encode()).unwrap(), describe);
    }

    #[test]
    fn a_stream_may_be_cut_anywhere(frames in vec(frame(), 0..8), cuts in vec(1..50_usize, 1..20)) {
        let stream: Vec<u8> = frames.iter().flat_map(|f| f.encode().into_stream_parts()).flatten().collect();
        let mut deframer = Deframer::new();
        let (mut rest, mut cuts, mut found) = (&stream[..], cuts.iter().cycle(), Vec::new());
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            rest = more;
            let mut piece = piece;
            while let Some(cut) = deframer.cut(&mut piece, limits::MAX_FRAME_BYTES).unwrap() {
                match (cut, found.last_mut()) {
                    (Deframed::Frame(frame), _) => found.push(Frame::decode(frame).unwrap()),
                    // Joins the parts of a chunk again: the test never has two chunks of one item in a row.
                    (Deframed::Bulk { head, bytes }, Some(Frame::Chunk(last)))
                        if (head.op, head.item) == (last.op, last.item)
                            && head.offset == last.offset.saturating_add(last.bytes.len() as u64) =>
                    {
                        last.bytes = [&last.bytes[..], bytes].concat().into();
                    }
                    (Deframed::Bulk { head: ChunkHead { op, item, offset }, bytes }, _) => {
                        let bytes = Bytes::copy_from_slice(bytes);
                        found.push(Frame::Chunk(Chunk { op, item, offset, bytes }));
                    }
                    (Deframed::Apart { .. }, _) => prop_assert!(false, "nobody sent bulk apart"),
                }
            }
        }
        prop_assert_eq!(found, frames);
        prop_assert!(deframer.is_empty());
    }

    /// Bulk outside the frames may be cut anywhere: each byte arrives once, with the head of its item.
    #[test]
    fn bulk_apart_may_be_cut_anywhere(
        sizes in vec((0..90_usize, 1..300_usize), 1..6),
        cuts in vec(1..50_usize, 1..20),
    ) {
        let parts: Vec<BulkPart> = (0_u32..).zip(&sizes).map(|(item, (body, bytes))| BulkPart {
            head: ItemHead {
                op: OpId(item + 9),
                item,
                body: vec![7; *body].into(),
                bulk_bytes: *bytes as u64 + 5,
                bulk_crc32c: item,
            },
            offset: 5,
            bytes: vec![u8::try_from(item).unwrap(); *bytes].into(),
        }).collect();
        let messages = parts.iter().map(|part| part.clone().encode());
        let stream: Vec<u8> = messages.flat_map(wire::Message::into_stream_parts).flatten().collect();
        let mut deframer = Deframer::new();
        let (mut rest, mut cuts, mut found) = (&stream[..], cuts.iter().cycle(), Vec::<BulkPart>::new());
        while !rest.is_empty() {
            let (mut piece, more) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            rest = more;
            while let Some(cut) = deframer.cut(&mut piece, limits::MAX_FRAME_BYTES).unwrap() {
                let Deframed::Apart { head, offset, bytes } = cut else { panic!("expected bulk apart, found {cut:?}") };
                match found.last_mut().filter(|last| last.head == head) {
                    Some(last) => {
                        prop_assert_eq!(offset, last.offset + last.bytes.len() as u64);
                        last.bytes = [&last.bytes[..], bytes].concat().into();
                    }
                    None => found.push(BulkPart { head, offset, bytes: Bytes::copy_from_slice(bytes) }),
                }
            }
        }
        prop_assert_eq!(found, parts);
        prop_assert!(deframer.is_empty());
    }

    /// Invalid bulk outside the frames is rejected, for arbitrary bytes.
    #[test]
    fn bulk_apart_is_checked(bytes in vec(any::<u8>(), 0..400), body in 0_u8..200) {
        let mut frame = vec![0x88];
        frame.extend(&bytes);
        if let Some(body_bytes) = frame.get_mut(29) {
            *body_bytes = body;
        }
        let stream = [&u32::try_from(frame.len()).unwrap().to_le_bytes()[..], &frame].concat();
        match Deframer::new().cut(&mut &stream[..], limits::MAX_FRAME_BYTES) {
            Ok(Some(Deframed::Apart { head, offset, bytes })) => {
                prop_assert!(offset + bytes.len() as u64 <= head.bulk_bytes && !bytes.is_empty());
                prop_assert!(head.body.len() <= limits::MAX_PART_BODY_BYTES);
            }
            Ok(other) => prop_assert!(false, "{other:?}"),
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Corrupt),
        }
    }

    /// Arbitrary frames in arbitrary order cause no panic: the connection continues, or closes and reports
    /// that once.
    #[test]
    fn machines_survive_any_frames(frames in vec(frame(), 0..40), ops in 0..5_u32) {
        let now = Instant::now();
        let mut server = Server::new(ServerConfig::default(), now).unwrap();
        let mut client = Client::new(ClientConfig::default(), now).unwrap();
        for frame in [&Frame::Hello(Hello { lowest_version: 1, highest_version: 1, capabilities: vec![],
            token: String::new(), credit_bytes: 1, program: String::new() })].into_iter().chain(&frames) {
            drop(server.handle_frame(now, frame.encode().into_bytes()));
            server.accept();
        }
        for _ in 0..ops {
            client.request("list", Bytes::new(), Urgency::of(Priority::NORMAL)).unwrap();
        }
        let welcome = Frame::Welcome(Welcome { version: 1, capabilities: vec![], program: String::new(),
            most_operations: 9 });
        for frame in [&welcome].into_iter().chain(&frames) {
            drop(client.handle_frame(now, frame.encode().into_bytes()));
        }
        let closed = std::iter::from_fn(|| client.poll_event()).filter(|e| matches!(e, ClientEvent::Closed { .. }));
        prop_assert_eq!(closed.count() == 1, !client.wants_frames());
        let closed = std::iter::from_fn(|| server.poll_event()).filter(|e| matches!(e, ServerEvent::Closed { .. }));
        prop_assert_eq!(closed.count() == 1, !server.wants_frames());
    }
}

/// A client and a server after their handshake.
fn open() -> (Instant, Client, Server) {
    let now = Instant::now();
    let mut client = Client::new(ClientConfig::default(), now).unwrap();
    let mut server = Server::new(ServerConfig::default(), now).unwrap();
    up(now, &mut client, &mut server);
    assert!(matches!(server.poll_event(), Some(ServerEvent::Hello(_))));
    server.accept();
    down(now, &mut server, &mut client);
    assert!(matches!(client.poll_event(), Some(ClientEvent::Welcomed(_))));
    (now, client, server)
}

fn up(now: Instant, client: &mut Client, server: &mut Server) {
    while let Some(message) = client.poll_transmit(now) {
        server.handle_frame(now, message.into_bytes()).unwrap();
    }
}

fn down(now: Instant, server: &mut Server, client: &mut Client) {
    while let Some(message) = server.poll_transmit(now) {
        client.handle_frame(now, message.into_bytes()).unwrap();
    }
}

fn ask(now: Instant, client: &mut Client, server: &mut Server, urgency: Urgency) -> OpId {
    let op = client.request("read", Bytes::new(), urgency).unwrap();
    up(now, client, server);
    assert!(matches!(server.poll_event(), Some(ServerEvent::Request { .. })));
    op
}

#[test]
fn a_flipped_bit_fails_its_operation_and_no_other() {
    let (now, mut client, mut server) = open();
    let [bad, good] = [0, 1].map(|_| ask(now, &mut client, &mut server, Urgency::of(Priority::NORMAL)));
    for op in [bad, good] {
        server.item(op, Bytes::new(), Bytes::from(vec![7; 600_000]).into()).unwrap();
        server.done(op);
    }
    while let Some(message) = server.poll_transmit(now) {
        let mut frame = Frame::decode(message.into_bytes()).unwrap();
        if let Frame::Chunk(Chunk { op, offset: 262_144, bytes, .. }) = &mut frame
            && *op == bad
        {
            let mut changed = bytes.to_vec();
            changed[1000] ^= 16;
            *bytes = changed.into();
        }
        client.handle_frame(now, frame.encode().into_bytes()).unwrap();
    }
    let events: Vec<ClientEvent> = std::iter::from_fn(|| client.poll_event()).collect();
    let failed = events.iter().find_map(|e| match e {
        ClientEvent::Failed { op, error } => Some((*op, error.kind(), error.retry())),
        _ => None,
    });
    assert_eq!(failed, Some((bad, ErrorKind::Corrupt, Retry::MayHelp)));
    assert!(events.contains(&ClientEvent::Done { op: good }));
    assert!(!events.contains(&ClientEvent::Done { op: bad }));
}

#[test]
fn something_urgent_overtakes_a_full_queue_after_one_chunk_at_most() {
    let (now, mut client, mut server) = open();
    client.grant(1 << 40);
    up(now, &mut client, &mut server);
    let slow = ask(now, &mut client, &mut server, Urgency::of(Priority::BACKGROUND));
    while server.room_bytes(slow) > 0 {
        server.item(slow, Bytes::new(), Bytes::from(vec![0; 3 << 20]).into()).unwrap();
    }
    let first: Vec<_> = (0..4).map_while(|_| server.poll_transmit(now)).collect();
    assert_eq!(first.len(), 4);
    let urgent = ask(now, &mut client, &mut server, Urgency::of(Priority::URGENT));
    server.item(urgent, Bytes::new(), Bytes::from(vec![1; 100_000]).into()).unwrap();
    server.done(urgent);
    let mut next = (0..3).map(|_| Frame::decode(server.poll_transmit(now).unwrap().into_bytes()).unwrap());
    assert!(matches!(next.next(), Some(Frame::Item(head)) if head.op == urgent));
    assert!(matches!(next.next(), Some(Frame::Chunk(chunk)) if chunk.bytes.len() == 100_000));
    assert_eq!(next.next(), Some(Frame::Done { op: urgent }));
}

#[test]
fn versions_meet_at_the_highest_common_one_or_say_that_there_is_none() {
    let now = Instant::now();
    let ranges = || (1..5_u16).flat_map(|low| (low..5).map(move |high| low..=high));
    for (ours, theirs) in ranges().flat_map(|a| ranges().map(move |b| (a.clone(), b))) {
        let mut client =
            Client::new(ClientConfig { versions: ours.clone(), ..ClientConfig::default() }, now).unwrap();
        let config = ServerConfig { versions: theirs.clone(), ..ServerConfig::default() };
        let mut server = Server::new(config, now).unwrap();
        up(now, &mut client, &mut server);
        server.accept();
        down(now, &mut server, &mut client);
        let common = ours.clone().rev().find(|v| theirs.contains(v));
        match (client.poll_event().unwrap(), common) {
            (ClientEvent::Welcomed(welcome), Some(version)) => assert_eq!(welcome.version, version),
            (ClientEvent::Closed { error }, None) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                let said = format!("{} to {} here", theirs.start(), theirs.end());
                assert!(error.to_string().contains(&said), "{error}");
            }
            other => panic!("{ours:?} and {theirs:?}: {other:?}"),
        }
    }
}

#[test]
fn rules_that_are_broken_end_the_connection_with_a_reason() {
    let chunk = |op, offset| Frame::Chunk(Chunk { op, item: 0, offset, bytes: vec![0; 10].into() });
    let head = |op, item, bulk_bytes| {
        Frame::Item(ItemHead { op, item, body: Bytes::new(), bulk_bytes, bulk_crc32c: 0 })
    };
    let op = OpId(1);
    let cases: Vec<(Vec<Frame>, &str)> = vec![
        (vec![Frame::Done { op: OpId(9) }], "not in flight"),
        (vec![head(op, 1, 0)], "expected item 0"),
        (vec![head(op, 0, limits::MAX_ITEM_BULK_BYTES + 1)], "bulk bytes"),
        (vec![chunk(op, 0)], "not in flight"),
        (vec![head(op, 0, 100), chunk(op, 5)], "expected a chunk at 0"),
        (vec![head(op, 0, 5), chunk(op, 0)], "expected a chunk at 0 of 5"),
        (vec![head(op, 0, 100), Frame::Done { op }], "within an item"),
        (vec![Frame::Credit { bytes: 1 }], "expected a frame of a server"),
    ];
    for (frames, said) in cases {
        let (now, mut client, mut server) = open();
        ask(now, &mut client, &mut server, Urgency::of(Priority::NORMAL));
        let last = frames.iter().map(|f| client.handle_frame(now, f.encode().into_bytes())).last().unwrap();
        assert!(last.unwrap_err().to_string().contains(said), "{said}");
        let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
        let [.., ClientEvent::Failed { error, .. }, ClientEvent::Closed { .. }] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(error.retry(), Retry::MayHelp);
        let close = Frame::decode(client.poll_transmit(now).unwrap().into_bytes()).unwrap();
        assert!(matches!(close, Frame::Close { error } if error.to_string().contains(said)));
        assert!(client.is_finished());
    }
}

#[test]
fn more_than_credit_ends_the_connection() {
    let now = Instant::now();
    let mut client = Client::new(ClientConfig { window_bytes: 5, ..ClientConfig::default() }, now).unwrap();
    let welcome = Welcome { version: 1, capabilities: vec![], program: String::new(), most_operations: 1 };
    client.handle_frame(now, Frame::Welcome(welcome).encode().into_bytes()).unwrap();
    let op = client.request("read", Bytes::new(), Urgency::of(Priority::NORMAL)).unwrap();
    assert!(!client.has_room(), "the server takes one operation at a time");
    let head = ItemHead { op, item: 0, body: Bytes::new(), bulk_bytes: 6, bulk_crc32c: 0 };
    client.handle_frame(now, Frame::Item(head).encode().into_bytes()).unwrap();
    let chunk = Chunk { op, item: 0, offset: 0, bytes: vec![0; 6].into() };
    let error = client.handle_frame(now, Frame::Chunk(chunk).encode().into_bytes()).unwrap_err();
    assert!(error.to_string().contains("5 bulk bytes of credit"), "{error}");
}

#[test]
fn credit_does_not_wait_behind_requests() {
    let (now, mut client, mut server) = open();
    let op = ask(now, &mut client, &mut server, Urgency::of(Priority::NORMAL));
    server.item(op, Bytes::new(), Bytes::from(vec![0; 1 << 20]).into()).unwrap();
    down(now, &mut server, &mut client);
    for _ in 0..100 {
        client.request("read", Bytes::new(), Urgency::of(Priority::NORMAL)).unwrap();
    }
    client.grant(1 << 20);
    let first = Frame::decode(client.poll_transmit(now).unwrap().into_bytes()).unwrap();
    assert!(matches!(first, Frame::Credit { .. }), "{first:?}");
}

#[test]
fn an_operation_number_is_never_used_again() {
    let (now, mut client, mut server) = open();
    let op = ask(now, &mut client, &mut server, Urgency::of(Priority::NORMAL));
    server.done(op);
    down(now, &mut server, &mut client);
    let again = OperationRequest {
        op,
        name: "read".into(),
        priority: Priority::NORMAL,
        deadline_ms: 0,
        parameters: Bytes::new(),
    };
    let error = server.handle_frame(now, Frame::Request(again).encode().into_bytes()).unwrap_err();
    assert!(error.to_string().contains("above 1"), "{error}");
}

#[test]
fn a_deadline_ends_the_operation_on_both_sides() {
    let (now, mut client, mut server) = open();
    let deadline = Some(now + Duration::from_millis(50));
    let op = ask(now, &mut client, &mut server, Urgency { priority: Priority::NORMAL, deadline });
    assert_eq!(server.poll_timeout(), deadline);
    let late = now + Duration::from_millis(51);
    server.handle_timeout(late);
    assert_eq!(server.poll_event(), Some(ServerEvent::Cancel { op }));
    client.handle_timeout(late);
    assert!(
        matches!(client.poll_event(), Some(ClientEvent::Failed { error, .. }) if error.kind() == ErrorKind::TimedOut)
    );
    // Frames that arrive after the close change nothing.
    up(late, &mut client, &mut server);
    down(late, &mut server, &mut client);
    assert_eq!((client.poll_event(), server.poll_event()), (None, None));
    assert!(client.has_room());
}

#[test]
fn silence_is_asked_about_and_then_believed() {
    let (now, mut client, mut server) = open();
    let asked = now + limits::PING_AFTER;
    assert_eq!(client.poll_timeout(), Some(asked));
    client.handle_timeout(asked);
    let ping = client.poll_transmit(asked).unwrap();
    server.handle_frame(asked, ping.into_bytes()).unwrap();
    let pong = Frame::decode(server.poll_transmit(asked).unwrap().into_bytes()).unwrap();
    assert_eq!(pong, Frame::Pong { nonce: 1 });
    client.handle_timeout(now + limits::DEAD_AFTER);
    let Some(ClientEvent::Closed { error }) = client.poll_event() else { panic!("still open") };
    assert_eq!((error.kind(), error.retry()), (ErrorKind::Unreachable, Retry::MayHelp));
    server.handle_timeout(now + limits::DEAD_AFTER);
    assert_eq!(server.poll_event(), None, "the server has heard a ping later");
}

#[test]
fn silence_in_the_midst_of_a_transfer_is_asked_about_soon_and_often() {
    let (mut now, mut client, mut server) = open();
    let op = ask(now, &mut client, &mut server, Urgency::of(Priority::NORMAL));
    server.answer(op, Bytes::new(), Bytes::from(vec![7; 3 * limits::MAX_CHUNK_BYTES]).into()).unwrap();
    for _ in 0..2 {
        let frame = server.poll_transmit(now).unwrap();
        client.handle_frame(now, frame.into_bytes()).unwrap();
    }
    for nonce in 1..=4 {
        now += limits::PING_AFTER_IN_TRANSFER;
        assert_eq!(client.poll_timeout(), Some(now));
        client.handle_timeout(now);
        let (mut stream_bytes, mut last) = (0, None);
        while let Some(message) = client.poll_transmit(now) {
            let parts: Vec<Bytes> = message.into_stream_parts().collect();
            stream_bytes += parts.iter().map(Bytes::len).sum::<usize>();
            last = parts.last().cloned();
        }
        assert!(stream_bytes >= 1_200, "as much as a packet, found {stream_bytes} bytes");
        let ping = Frame::Ping { nonce }.encode().into_stream_parts().last();
        assert_eq!(last, ping);
    }
    down(now, &mut server, &mut client);
    assert_eq!(client.poll_timeout(), Some(now + limits::PING_AFTER), "all has come");
}

#[test]
fn a_silent_client_is_disconnected() {
    let now = Instant::now();
    let mut server = Server::new(ServerConfig::default(), now).unwrap();
    assert_eq!(server.poll_timeout(), Some(now + limits::HANDSHAKE_TIMEOUT));
    assert_eq!(server.frame_limit_bytes(), limits::MAX_FIRST_FRAME_BYTES);
    server.handle_timeout(now + limits::HANDSHAKE_TIMEOUT);
    assert!(
        matches!(server.poll_event(), Some(ServerEvent::Closed { error }) if error.kind() == ErrorKind::TimedOut)
    );
    assert!(matches!(
        Frame::decode(server.poll_transmit(now).unwrap().into_bytes()).unwrap(),
        Frame::Close { .. }
    ));
    assert!(server.is_finished());
}
