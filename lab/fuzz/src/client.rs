//! The asking side of a connection against a peer that says anything: what the application is told stays consistent,
//! and no more arrives than it allowed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use array::{Error, Priority, Urgency};
use bytes::Bytes;
use wire::{Client, ClientConfig, ClientEvent, Frame, Machine, OpId};

use crate::script::{Step, steps};

/// Small, so that a short input can exhaust it.
const WINDOW_BYTES: u64 = 4096;
/// Operations that are under way from the start; golden vectors speak of number 7.
const FIRST_OPERATIONS: usize = 8;
/// Most operations that a script may start.
const MAX_OPERATIONS: usize = 64;

/// What the application knows of an operation.
#[derive(Default)]
struct Known {
    next_item: u32,
    /// Items under way: size of their bulk and how much of it has come.
    items: BTreeMap<u32, (u64, u64)>,
}

/// A client, the application behind it, and what it was told.
struct Guest {
    client: Client,
    now: Instant,
    is_over: bool,
    open: BTreeMap<OpId, Known>,
    allowed_bytes: u64,
    taken_bytes: u64,
    granted_bytes: u64,
}

/// Plays a server's script against a client.
pub fn play(script: &[u8]) {
    let now = Instant::now();
    let config = ClientConfig { window_bytes: WINDOW_BYTES, ..ClientConfig::default() };
    let mut guest = Guest {
        client: Client::new(config, now).expect("the configuration is legal"),
        now,
        is_over: false,
        open: BTreeMap::new(),
        allowed_bytes: WINDOW_BYTES,
        taken_bytes: 0,
        granted_bytes: 0,
    };
    (0..FIRST_OPERATIONS).for_each(|_| guest.request(0));
    for step in steps(script) {
        match step {
            Step::Frame(frame) if guest.client.wants_frames() => {
                guest.client.handle_frame(guest.now, frame).unwrap_or_default();
            }
            Step::Frame(_) => {}
            Step::Do { what, which, amount } => guest.act(what, which, amount),
        }
        guest.take_events();
    }
    guest.client.close(Error::cancelled());
    guest.take_events();
    guest.send(usize::MAX);
    assert!(guest.is_over && guest.client.is_finished(), "a closed connection ends");
    assert!(guest.open.is_empty(), "an operation was left without an end");
}

impl Guest {
    fn request(&mut self, deadline_ms: u32) {
        let deadline = (deadline_ms > 0).then(|| self.now + Duration::from_millis(u64::from(deadline_ms)));
        let urgency = Urgency { priority: Priority::NORMAL, deadline };
        if let Ok(op) = self.client.request("read", Bytes::from_static(b"parameters"), urgency) {
            self.open.insert(op, Known::default());
        }
    }

    fn act(&mut self, what: u8, which: u8, amount: u32) {
        let op = self.open.keys().nth(usize::from(which) % self.open.len().max(1)).copied();
        match (what, op) {
            (0, _) => {
                self.now += Step::duration(amount);
                self.client.handle_timeout(self.now);
            }
            (1, _) => self.send(amount as usize),
            (2, _) if self.open.len() < MAX_OPERATIONS => self.request(amount),
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
            _ => {}
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.client.poll_event() {
            assert!(!self.is_over, "an event after the end: {event:?}");
            match event {
                ClientEvent::Welcomed(_) => {}
                ClientEvent::Item { op, item, bulk_bytes, .. } => self.known(op).begin(item, bulk_bytes),
                ClientEvent::Piece { op, item, offset, bytes, complete } => {
                    self.taken_bytes += bytes.len() as u64;
                    self.known(op).take(item, offset, bytes.len() as u64, complete);
                }
                ClientEvent::Whole { op, bulk, .. } => {
                    self.taken_bytes += bulk.len() as u64;
                    let known = self.open.remove(&op).expect("an operation ends once");
                    assert!(known.items.is_empty(), "operation {op} is answered whole within an item");
                }
                ClientEvent::Done { op } => {
                    let known = self.open.remove(&op).expect("an operation ends once");
                    assert!(known.items.is_empty(), "operation {op} is done within an item");
                }
                ClientEvent::Failed { op, .. } => {
                    self.open.remove(&op).expect("an operation ends once");
                }
                ClientEvent::Closed { .. } => self.is_over = true,
            }
        }
        assert!(self.taken_bytes <= self.allowed_bytes, "more bulk than was allowed");
    }

    fn known(&mut self, op: OpId) -> &mut Known {
        self.open.get_mut(&op).expect("nothing is heard of an operation that is over")
    }

    /// The carrier takes up to `most` messages.
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

impl Known {
    fn begin(&mut self, item: u32, bulk_bytes: u64) {
        assert_eq!(item, self.next_item, "items come in order");
        self.next_item += 1;
        if bulk_bytes > 0 {
            self.items.insert(item, (bulk_bytes, 0));
        }
    }

    fn take(&mut self, item: u32, offset: u64, size_bytes: u64, complete: bool) {
        let (bulk_bytes, come_bytes) = self.items.get_mut(&item).expect("a piece of an item under way");
        assert_eq!(offset, *come_bytes, "pieces come in order");
        *come_bytes += size_bytes;
        assert!(*come_bytes <= *bulk_bytes, "more than the item has");
        assert_eq!(complete, come_bytes == bulk_bytes);
        if complete {
            self.items.remove(&item);
        }
    }
}
