//! Window of bytes that a client permits the server to send ahead, in virtual time: the link stays full,
//! urgent data waits briefly, and a measurement of the link on the server's side is not distorted.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "tests; where time begins does not matter"
)]

mod path;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use array::{Priority, Urgency};
use bytes::Bytes;
use control::compression::Goodput;
use corridor_wire as wire;
use path::{MS, NORMAL, ONE_WAY, Pipe, open, random_read};
use wire::ops::ReadBody;
use wire::{Client, ClientEvent, Machine, OpId, Server, ServerEvent, limits};

const URGENT: Urgency = Urgency { priority: Priority::URGENT, deadline: None };
/// Size of the bulk of an answer, and number of operations that a client keeps in flight.
const BULK_BYTES: usize = 16 << 10;
const IN_FLIGHT: usize = 20_000;
/// One gigabit per second, bytes per millisecond.
const GIGABIT: usize = 125_000;
/// Longest permitted queueing delay with a round trip of 150 ms, including the error of steps of a
/// millisecond.
const WAIT_MS: u32 = 150 / 8 + 15 + 4;

/// A client that reads much data and, at intervals, something urgent.
struct World {
    start: Instant,
    now: Instant,
    client: Client,
    server: Server,
    up: Pipe,
    down: Pipe,
    /// Bytes that the client consumes per millisecond, and the excess that it consumed in the last ones.
    takes: usize,
    ahead: usize,
    bulk: wire::CheckedBulk,
    work: VecDeque<OpId>,
    asked: u64,
    done: u64,
    urgent: Option<(OpId, Instant)>,
    /// Time from each urgent request to its answer, milliseconds.
    waits: Vec<u32>,
    goodput: Goodput,
    /// Lowest rate that the link seemed to have since the last query.
    slowest_bytes_per_sec: f64,
}

impl World {
    /// Creates a link; `buffer` is the longest queue before it.
    fn new(down_bytes_per_ms: usize, buffer: Duration, takes: usize) -> Self {
        let (start, client, server) = open(256 << 20, &[limits::BATCH]);
        Self {
            start,
            now: start,
            client,
            server,
            up: Pipe::new(start, 1_000_000, Duration::ZERO),
            down: Pipe::new(start, down_bytes_per_ms, buffer),
            takes,
            ahead: 0,
            bulk: Bytes::from(vec![7; BULK_BYTES]).into(),
            work: VecDeque::new(),
            asked: 0,
            done: 0,
            urgent: None,
            waits: Vec::new(),
            goodput: Goodput::default(),
            slowest_bytes_per_sec: f64::INFINITY,
        }
    }

    fn ask(&mut self) {
        while self.asked - self.done < IN_FLIGHT as u64 {
            self.client.request("read", random_read(self.asked), NORMAL).unwrap();
            self.asked += 1;
        }
        if self.urgent.is_none() {
            let op = self.client.request("read", random_read(0), URGENT).unwrap();
            self.urgent = Some((op, self.now));
        }
    }

    fn answer(&mut self) {
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::Request { op, urgency, .. } if urgency == URGENT => self.work.push_front(op),
                ServerEvent::Request { op, .. } => self.work.push_back(op),
                other => panic!("{other:?}"),
            }
        }
        while let Some(op) = self.work.pop_front_if(|op| self.server.room_bytes(*op) > 0) {
            self.server.item(op, ReadBody { offset_bytes: 0 }.encode(), self.bulk.clone()).unwrap();
            self.server.done(op);
            self.goodput.queue(BULK_BYTES as u64);
        }
    }

    fn take(&mut self) {
        self.ahead = self.ahead.saturating_sub(self.takes);
        if self.ahead < self.takes {
            self.ahead += self.down.empty(self.now, &mut self.client, self.takes - self.ahead);
        }
        while let Some(event) = self.client.poll_event() {
            self.client.grant(event.bulk_bytes());
            let (ClientEvent::Whole { op, .. } | ClientEvent::Done { op }) = event else {
                assert!(matches!(event, ClientEvent::Item { .. } | ClientEvent::Piece { .. }), "{event:?}");
                continue;
            };
            match self.urgent {
                Some((urgent, since)) if op == urgent => {
                    self.waits.push(self.now.duration_since(since).as_millis() as u32);
                    self.urgent = None;
                }
                _ => self.done += 1,
            }
        }
    }

    /// Lets time pass; returns the bytes per millisecond that were answered, the longest wait of an urgent
    /// request beyond the round trip, and the lowest rate that the link seemed to have.
    fn run(&mut self, time: Duration) -> (usize, u32, f64) {
        let (done, until) = (self.done, self.now + time);
        self.waits.clear();
        self.slowest_bytes_per_sec = f64::INFINITY;
        while self.now < until {
            self.now += MS;
            self.ask();
            self.up.fill(self.now, &mut self.client);
            self.up.empty(self.now, &mut self.server, usize::MAX);
            self.answer();
            let left = self.down.fill(self.now, &mut self.server);
            self.goodput.leave(self.now.duration_since(self.start), left as u64);
            let known = self.goodput.bytes_per_sec().unwrap_or(f64::INFINITY);
            self.slowest_bytes_per_sec = self.slowest_bytes_per_sec.min(known);
            self.take();
        }
        let bytes = (self.done - done) as usize * BULK_BYTES;
        let longest = self.waits.iter().max().copied().unwrap_or(u32::MAX);
        let bare = (2 * ONE_WAY).as_millis() as u32;
        (bytes / time.as_millis() as usize, longest.saturating_sub(bare), self.slowest_bytes_per_sec)
    }
}

#[test]
fn urgent_data_waits_briefly_if_the_client_is_the_bottleneck() {
    let mut world = World::new(8 * GIGABIT, Duration::ZERO, GIGABIT);
    world.run(Duration::from_secs(5));
    let (took, waited, _) = world.run(Duration::from_secs(15));
    assert!(took >= GIGABIT * 95 / 100, "{took} bytes in a millisecond");
    assert!(waited <= WAIT_MS, "{waited} ms");
}

#[test]
fn urgent_data_waits_briefly_if_the_link_has_a_deep_buffer() {
    let mut world = World::new(GIGABIT, Duration::from_secs(2), usize::MAX);
    world.run(Duration::from_secs(5));
    let (took, waited, slowest) = world.run(Duration::from_secs(15));
    assert!(took >= GIGABIT * 95 / 100, "{took} bytes in a millisecond");
    assert!(waited <= WAIT_MS, "{waited} ms");
    // A measurement of the empty path briefly interrupts the credit.
    assert!(slowest >= 0.25 * GIGABIT as f64 * 1e3, "{slowest}");
}

#[test]
fn a_server_that_measures_its_link_does_not_measure_the_window() {
    let mut world = World::new(GIGABIT, Duration::ZERO, usize::MAX);
    world.run(Duration::from_secs(2));
    let (took, waited, slowest) = world.run(Duration::from_secs(20));
    assert!(took >= GIGABIT * 95 / 100 && waited <= WAIT_MS, "{took} bytes in a millisecond, {waited} ms");
    assert!(slowest >= 0.9 * GIGABIT as f64 * 1e3, "{slowest}");
}

#[test]
fn a_link_that_becomes_faster_is_filled() {
    let mut world = World::new(GIGABIT / 10, Duration::from_millis(200), usize::MAX);
    world.run(Duration::from_secs(12));
    world.down.bytes_per_ms = GIGABIT;
    world.run(Duration::from_secs(3));
    let (took, _, _) = world.run(Duration::from_secs(5));
    assert!(took >= GIGABIT * 95 / 100, "{took} bytes in a millisecond");
}
