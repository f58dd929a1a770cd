//! Client side of a connection to a server that may send anything: the events that the application gets are consistent,
//! and no more bulk arrives than it allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use array::{Error, Priority, Urgency};
use bytes::Bytes;
use wire::{BulkPart, Client, ClientConfig, ClientEvent, Frame, Machine, OpId};

use crate::frames::part_of;
use crate::script::{ScriptStep, steps};

/// Small, so that a short input can exhaust it.
const WINDOW_BYTES: u64 = 4096;
/// Operations requested at the start; golden vectors name number 7.
const FIRST_OPERATIONS: usize = 8;
/// Most operations that a script may start.
const MAX_OPERATIONS: usize = 64;

/// Events of an operation that the application has received.
#[derive(Default)]
struct ReceivedOperation {
    in_any_order: bool,
    /// Items that have begun.
    begun: BTreeSet<u32>,
    /// Items whose bulk is incomplete.
    items: BTreeMap<u32, IncompleteBulk>,
}

/// Bulk of an item of which some is missing.
#[derive(Default)]
struct IncompleteBulk {
    bulk_bytes: u64,
    received_bytes: u64,
    /// End of each piece that has arrived, by its start.
    pieces: BTreeMap<u64, u64>,
}

/// A client, its application, and the events that it has received.
struct ScriptedClient {
    client: Client,
    now: Instant,
    is_over: bool,
    /// A frame has arrived.
    has_received: bool,
    /// Bulk apart from the frames arrives in datagrams, not in streams.
    by_datagrams: bool,
    open: BTreeMap<OpId, ReceivedOperation>,
    allowed_bytes: u64,
    taken_bytes: u64,
    granted_bytes: u64,
}

/// Plays a server's script against a client.
pub fn play(script: &[u8]) {
    let now = Instant::now();
    let config = ClientConfig { window_bytes: WINDOW_BYTES, ..ClientConfig::default() };
    let mut scripted = ScriptedClient {
        client: Client::new(config, now).expect("the configuration is legal"),
        now,
        is_over: false,
        has_received: false,
        by_datagrams: false,
        open: BTreeMap::new(),
        allowed_bytes: WINDOW_BYTES,
        taken_bytes: 0,
        granted_bytes: 0,
    };
    (0..FIRST_OPERATIONS).for_each(|_| scripted.request(0, false));
    for step in steps(script) {
        match step {
            ScriptStep::Frame(frame) if scripted.client.wants_frames() => scripted.receive(frame),
            ScriptStep::Frame(_) => {}
            ScriptStep::Do { what, which, amount } => scripted.instruct(what, which, amount),
        }
        scripted.take_events();
    }
    scripted.client.close(Error::cancelled());
    scripted.take_events();
    scripted.send(usize::MAX);
    assert!(scripted.is_over && scripted.client.is_finished(), "a closed connection ends");
    assert!(scripted.open.is_empty(), "an operation was left without an end");
}

impl ScriptedClient {
    fn receive(&mut self, frame: Bytes) {
        self.has_received = true;
        match part_of(&frame) {
            Some(part) => self.receive_part(part),
            None => self.client.handle_frame(self.now, frame).unwrap_or_default(),
        }
    }

    fn receive_part(&mut self, part: BulkPart) {
        if self.by_datagrams {
            return self.client.handle_part(self.now, part).unwrap_or_default();
        }
        let BulkPart { head, offset, bytes } = part;
        let placed = self.client.handle_apart(self.now, &head, offset, &bytes).unwrap_or_default();
        if let Some(complete) = placed {
            self.take(head.op, head.item, offset, bytes.len() as u64, complete);
        }
    }

    /// Expects bulk apart from the frames; operations whose bits are set take their items in any order.
    fn expect_parts(&mut self, by_datagrams: bool, in_any_order: u32) {
        self.by_datagrams = by_datagrams;
        self.client.expect_parts();
        for (bit, (&op, operation)) in (0..u32::BITS).zip(&mut self.open) {
            if (in_any_order >> bit) & 1 == 1 {
                self.client.take_in_any_order(op);
                operation.in_any_order = true;
            }
        }
    }

    fn request(&mut self, deadline_ms: u32, in_any_order: bool) {
        let deadline = (deadline_ms > 0).then(|| self.now + Duration::from_millis(u64::from(deadline_ms)));
        let urgency = Urgency { priority: Priority::NORMAL, deadline };
        if let Ok(op) = self.client.request("read", Bytes::from_static(b"parameters"), urgency) {
            if in_any_order {
                self.client.take_in_any_order(op);
            }
            self.open.insert(op, ReceivedOperation { in_any_order, ..ReceivedOperation::default() });
        }
    }

    fn instruct(&mut self, what: u8, which: u8, amount: u32) {
        let op = self.open.keys().nth(usize::from(which) % self.open.len().max(1)).copied();
        match (what, op) {
            (0, _) => {
                self.now += ScriptStep::duration(amount);
                self.client.handle_timeout(self.now);
            }
            (1, _) => self.send(amount as usize),
            (2, _) if self.open.len() < MAX_OPERATIONS => self.request(amount, false),
            (3, Some(op)) => {
                self.client.cancel(op);
                self.open.remove(&op);
            }
            (4, Some(op)) => {
                let weight = f32::from_bits(amount);
                self.client.adjust(op, Urgency::of(Priority { tier: which, weight }));
            }
            (5, Some(op)) => self.client.note(op, Bytes::from_static(b"note")).unwrap_or_default(),
            (6, _) => {
                let bytes = u64::from(amount).min(self.taken_bytes - self.granted_bytes);
                self.client.grant(bytes);
                self.granted_bytes += bytes;
            }
            (7, _) => self.client.handle_lost(Error::cancelled()),
            (8, _) if !self.has_received => self.expect_parts(which % 2 == 1, amount),
            (9, _) if self.open.len() < MAX_OPERATIONS => self.request(amount, true),
            (10, _) => self.client.handle_gone(u64::from(amount)).unwrap_or_default(),
            _ => {}
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.client.poll_event() {
            assert!(!self.is_over, "an event after the end: {event:?}");
            match event {
                ClientEvent::Welcomed(_) => {}
                ClientEvent::Item { op, item, bulk_bytes, .. } => self.operation(op).begin(item, bulk_bytes),
                ClientEvent::Piece { op, item, offset, bytes, complete } => {
                    self.take(op, item, offset, bytes.len() as u64, complete);
                }
                ClientEvent::Whole { op, bulk, .. } => {
                    self.taken_bytes += bulk.len() as u64;
                    let operation = self.open.remove(&op).expect("an operation ends once");
                    assert!(operation.items.is_empty(), "operation {op} is answered whole within an item");
                }
                ClientEvent::Done { op } => {
                    let operation = self.open.remove(&op).expect("an operation ends once");
                    assert!(operation.items.is_empty(), "operation {op} is done within an item");
                }
                ClientEvent::Failed { op, .. } => {
                    self.open.remove(&op).expect("an operation ends once");
                }
                ClientEvent::Closed { .. } => self.is_over = true,
            }
        }
        assert!(self.taken_bytes <= self.allowed_bytes, "more bulk than was allowed");
    }

    fn take(&mut self, op: OpId, item: u32, offset: u64, size_bytes: u64, complete: bool) {
        self.taken_bytes += size_bytes;
        self.operation(op).take(item, offset, size_bytes, complete);
    }

    fn operation(&mut self, op: OpId) -> &mut ReceivedOperation {
        self.open.get_mut(&op).expect("an operation that has ended has no more events")
    }

    /// Sends up to `most` messages.
    fn send(&mut self, most: usize) {
        for _ in 0..most {
            let Some(message) = self.client.poll_transmit(self.now) else { return };
            if let Frame::Credit { bytes } =
                Frame::decode(message.into_bytes()).expect("what a client sends can be read")
            {
                self.allowed_bytes += bytes;
            }
        }
    }
}

impl ReceivedOperation {
    fn begin(&mut self, item: u32, bulk_bytes: u64) {
        assert!(self.in_any_order || item as usize == self.begun.len(), "items begin in order");
        assert!(self.begun.insert(item), "item {item} begins twice");
        if bulk_bytes > 0 {
            self.items.insert(item, IncompleteBulk { bulk_bytes, ..IncompleteBulk::default() });
        }
    }

    fn take(&mut self, item: u32, offset: u64, size_bytes: u64, complete: bool) {
        let bulk = self.items.get_mut(&item).expect("a piece belongs to an item that is incomplete");
        assert!(self.in_any_order || offset == bulk.received_bytes, "pieces arrive in order");
        bulk.take(offset, size_bytes);
        assert_eq!(complete, bulk.received_bytes == bulk.bulk_bytes);
        if complete {
            self.items.remove(&item);
        }
    }
}

impl IncompleteBulk {
    fn take(&mut self, offset: u64, size_bytes: u64) {
        let before = self.pieces.range(..=offset).next_back().map_or(0, |(_, &end)| end);
        let after = self.pieces.range(offset..).next().map_or(self.bulk_bytes, |(&start, _)| start);
        let is_missing = before <= offset && offset + size_bytes <= after;
        assert!(size_bytes > 0 && is_missing, "bulk arrives twice, or beyond the end of its item");
        self.pieces.insert(offset, offset + size_bytes);
        self.received_bytes += size_bytes;
    }
}
