//! Cost of many operations on the wire: frames, bytes, and round trips in virtual time.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    reason = "tests; where time begins does not matter"
)]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use array::{AxisRange, Priority, Urgency};
use bytes::Bytes;
use corridor_wire as wire;
use wire::ops::ReadBody;
use wire::{ClientEvent, Frame, Machine, Message, ServerEvent, limits};

mod path;

use path::{MS, NORMAL, PREFIX_BYTES, Pipe, open, random_read, read};

/// Collects everything that a side has to send, and counts the frames and bytes of its stream.
fn drain(now: Instant, side: &mut impl Machine) -> (Vec<Message>, usize) {
    let messages: Vec<Message> = std::iter::from_fn(|| side.poll_transmit(now)).collect();
    let bytes = messages.iter().map(|m| m.size_bytes() + PREFIX_BYTES).sum();
    (messages, bytes)
}

#[test]
fn ten_thousand_random_reads_are_three_frames_of_eight_bytes_each() {
    const MANY: usize = 10_000;
    let (now, mut client, mut server) = open(1 << 30, &[limits::BATCH]);
    let asked: Vec<Bytes> = (0..MANY as u64).map(random_read).collect();
    for parameters in &asked {
        client.request("read", parameters.clone(), NORMAL).unwrap();
    }
    let (messages, bytes) = drain(now, &mut client);
    assert_eq!(messages.len(), MANY.div_ceil(limits::MAX_BATCH_OPERATIONS));
    assert!(bytes <= 8 * MANY, "{bytes} bytes");
    let mut found = Vec::new();
    for message in messages {
        server.handle_frame(now, message.into_bytes()).unwrap();
        while let Some(event) = server.poll_event() {
            let ServerEvent::Request { op, name, parameters, urgency } = event else { panic!("{event:?}") };
            assert_eq!((op.0 as usize, &*name, urgency), (found.len() + 1, "read", NORMAL));
            found.push(parameters);
        }
    }
    assert_eq!(found, asked);
}

#[test]
fn a_typical_read_takes_64_bytes_and_one_of_any_number_of_runs_no_more() {
    let (now, mut client, _) = open(1 << 30, &[limits::BATCH]);
    // u[0:10, ::2, 3:500, 100:900]: 10 x 250 x 497 runs.
    let range = |start, count, step| AxisRange { start, count, step };
    let parameters = read(vec![range(0, 10, 1), range(0, 250, 2), range(3, 497, 1), range(100, 800, 1)]);
    client.request("read", parameters, NORMAL).unwrap();
    let (messages, bytes) = drain(now, &mut client);
    assert_eq!(messages.len(), 1);
    assert!(bytes <= 64, "{bytes} bytes");
}

#[test]
fn rows_at_a_constant_stride_are_one_description() {
    let (now, mut client, _) = open(1 << 30, &[limits::BATCH]);
    for row in 0..4096 {
        let parameters = read(vec![AxisRange::contiguous(row * 3, 1), AxisRange::contiguous(0, 4096)]);
        client.request("read", parameters, NORMAL).unwrap();
    }
    let (messages, bytes) = drain(now, &mut client);
    assert_eq!(messages.len(), 1);
    assert!(bytes <= 80, "{bytes} bytes for 4096 operations");
}

#[test]
fn operations_that_cannot_be_batched_stay_separate_and_in_order() {
    let (now, mut client, _) = open(1 << 30, &[limits::BATCH]);
    let urgent = Urgency::of(Priority::URGENT);
    let asked = [("read", NORMAL), ("read", NORMAL), ("stats", NORMAL), ("stats", urgent), ("stats", urgent)];
    let ops = asked.map(|(name, urgency)| client.request(name, Bytes::new(), urgency).unwrap());
    client.cancel(ops[1]);
    let (messages, _) = drain(now, &mut client);
    let frames: Vec<Frame> = messages.into_iter().map(|m| Frame::decode(m.into_bytes()).unwrap()).collect();
    let sizes = frames.iter().map(|frame| match frame {
        Frame::Requests(requests) => requests.parameters.len(),
        other => panic!("{other:?}"),
    });
    let (first, last) = frames.split_at(3);
    assert_eq!(last, [Frame::Cancel { op: ops[1] }]);
    assert_eq!(sizes.take(first.len()).collect::<Vec<_>>(), [2, 1, 2]);
}

/// Answers `count` operations of a client with these capabilities; returns the frames, and the bytes beyond
/// the bulk.
fn answer(count: u32, capabilities: &[&str]) -> (usize, usize) {
    let (now, mut client, mut server) = open(1 << 30, capabilities);
    for n in 0..u64::from(count) {
        client.request("read", random_read(n), NORMAL).unwrap();
    }
    for message in drain(now, &mut client).0 {
        server.handle_frame(now, message.into_bytes()).unwrap();
    }
    let bulk = Bytes::from(vec![7; 4096]);
    while let Some(event) = server.poll_event() {
        let ServerEvent::Request { op, .. } = event else { panic!("{event:?}") };
        server.item(op, ReadBody { offset_bytes: 0 }.encode(), bulk.clone().into()).unwrap();
        server.done(op);
    }
    let (messages, bytes) = drain(now, &mut server);
    let frames = messages.len();
    for message in messages {
        client.handle_frame(now, message.into_bytes()).unwrap();
    }
    let mut done = 0;
    while let Some(event) = client.poll_event() {
        done += u32::from(matches!(event, ClientEvent::Done { .. } | ClientEvent::Whole { .. }));
        assert!(!matches!(event, ClientEvent::Failed { .. }), "{event:?}");
    }
    assert_eq!(done, count);
    (frames, bytes - count as usize * bulk.len())
}

#[test]
fn small_answers_share_frames_and_cost_tens_of_bytes() {
    const MANY: u32 = 1000;
    let (frames, overhead) = answer(MANY, &[limits::BATCH]);
    let together = limits::MAX_ANSWERS_BYTES / (4096 + 8);
    assert_eq!(frames, (MANY as usize).div_ceil(together));
    assert!(overhead <= 20 * MANY as usize, "{overhead} bytes");
    // An older client gets each item, chunk and end in a frame of its own.
    assert_eq!(answer(MANY, &[]).0, 3 * MANY as usize);
}

const BYTES_PER_MS: usize = 125_000;

/// Returns the milliseconds until `count` reads of `size_bytes` are answered over 1 Gb/s with a round trip of
/// 150 ms; the first `warm` of them are not counted.
fn millis(count: u64, warm: u64, size_bytes: usize) -> u32 {
    let (start, mut client, mut server) = open(256 << 20, &[limits::BATCH]);
    let pipe = || Pipe::new(start, BYTES_PER_MS, Duration::ZERO);
    let (mut up, mut down) = (pipe(), pipe());
    let bulk: wire::CheckedBulk = Bytes::from(vec![7; size_bytes]).into();
    let (mut asked, mut done, mut now, mut began) = (0, 0, start, start);
    let mut work = VecDeque::new();
    while done < count {
        now += MS;
        while asked < count && client.has_room() {
            client.request("read", random_read(asked), NORMAL).unwrap();
            asked += 1;
        }
        up.fill(now, &mut client);
        up.empty(now, &mut server, usize::MAX);
        while let Some(event) = server.poll_event() {
            let ServerEvent::Request { op, .. } = event else { panic!("{event:?}") };
            work.push_back(op);
        }
        while let Some(op) = work.pop_front_if(|op| server.room_bytes(*op) > 0) {
            server.answer(op, ReadBody { offset_bytes: 0 }.encode(), bulk.clone()).unwrap();
        }
        down.fill(now, &mut server);
        down.empty(now, &mut client, usize::MAX);
        while let Some(event) = client.poll_event() {
            client.grant(event.bulk_bytes());
            if matches!(event, ClientEvent::Done { .. } | ClientEvent::Whole { .. }) {
                done += 1;
                began = if done == warm { now } else { began };
            }
        }
    }
    now.duration_since(began).as_millis() as u32
}

#[test]
fn a_gigabit_at_150_ms_is_full_however_a_read_is_split() {
    for (count, size_bytes) in [(100_000, 4096), (400, 1 << 20), (10, 40 << 20)] {
        let warm = count / 4;
        let bytes = (count - warm) * size_bytes as u64;
        let ideal = (bytes / BYTES_PER_MS as u64) as u32;
        let took = millis(count, warm, size_bytes);
        assert!(took * 95 <= ideal * 100, "{count} reads of {size_bytes}: {took} ms, {ideal} are ideal");
    }
}
