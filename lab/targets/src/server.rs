//! Server side of a connection to a client that may send anything: its promises to the application and its bounds hold.

use std::collections::BTreeSet;
use std::time::Instant;

use array::Error;
use bytes::Bytes;
use wire::{CheckedBulk, Frame, Machine, OpId, Server, ServerConfig, ServerEvent, SmallAnswer};

use crate::script::{ScriptStep, steps};

/// Few, so that a short input can exceed them.
const MOST_OPERATIONS: u32 = 6;
/// Largest bulk of an item that the application gives.
const MAX_ITEM_BYTES: u32 = 300_000;

/// A server, its application, and what the client has been sent.
struct ScriptedServer {
    server: Server,
    now: Instant,
    is_over: bool,
    last_op: u32,
    /// Operations that were requested and are not fully answered.
    open: BTreeSet<OpId>,
    /// Operations whose end was sent.
    ended: BTreeSet<OpId>,
    credit_bytes: u64,
    sent_bytes: u64,
}

/// Plays a client's script against a server.
pub fn play(script: &[u8]) {
    let now = Instant::now();
    let config = ServerConfig { most_operations: MOST_OPERATIONS, ..ServerConfig::default() };
    let mut scripted = ScriptedServer {
        server: Server::new(config, now).expect("the configuration is legal"),
        now,
        is_over: false,
        last_op: 0,
        open: BTreeSet::new(),
        ended: BTreeSet::new(),
        credit_bytes: 0,
        sent_bytes: 0,
    };
    for step in steps(script) {
        match step {
            ScriptStep::Frame(frame) => scripted.receive(frame),
            ScriptStep::Do { what, which, amount } => scripted.instruct(what, which, amount),
        }
        scripted.take_events();
    }
    scripted.server.close(Error::cancelled());
    scripted.take_events();
    scripted.send(usize::MAX);
    assert!(scripted.is_over && scripted.server.is_finished(), "a closed connection ends");
}

impl ScriptedServer {
    fn receive(&mut self, frame: Bytes) {
        if !self.server.wants_frames() {
            self.send(usize::MAX);
        }
        if !self.server.wants_frames() {
            return;
        }
        let credit = match Frame::decode(frame.clone()) {
            Ok(Frame::Hello(hello)) if self.credit_bytes == 0 => hello.credit_bytes,
            Ok(Frame::Credit { bytes }) => bytes,
            _ => 0,
        };
        if self.server.handle_frame(self.now, frame).is_ok() {
            self.credit_bytes = self.credit_bytes.saturating_add(credit);
        }
    }

    fn instruct(&mut self, what: u8, which: u8, amount: u32) {
        let op = self.open.iter().nth(usize::from(which) % self.open.len().max(1)).copied();
        match (what, op) {
            (0, _) => {
                self.now += ScriptStep::duration(amount);
                self.server.handle_timeout(self.now);
            }
            (1, _) => self.send(amount as usize),
            (2, Some(op)) => self.item(op, amount % MAX_ITEM_BYTES),
            (3, Some(op)) => {
                self.server.done(op);
                self.open.remove(&op);
            }
            (4, Some(op)) => {
                self.server.fail(op, Error::not_found("nothing is here"));
                self.open.remove(&op);
            }
            (5, _) => self.server.handle_lost(Error::cancelled()),
            (6, Some(op)) => self.answer(op, amount % MAX_ITEM_BYTES),
            _ => {}
        }
    }

    fn item(&mut self, op: OpId, bulk_bytes: u32) {
        let has_room = self.server.room_bytes(op) > 0;
        let taken = self.server.item(op, Bytes::from_static(b"body"), bulk(bulk_bytes)).is_ok();
        assert_eq!(taken, has_room, "an item is taken where there is room");
    }

    /// Answers with the only or last item, which ends the operation.
    fn answer(&mut self, op: OpId, bulk_bytes: u32) {
        let has_room = self.server.room_bytes(op) > 0;
        let taken = self.server.answer(op, Bytes::from_static(b"body"), bulk(bulk_bytes)).is_ok();
        assert_eq!(taken, has_room, "an answer is taken where there is room");
        assert_eq!(taken, !self.server.is_open(op), "an answer that is taken is the end");
        if taken {
            self.open.remove(&op);
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.server.poll_event() {
            assert!(!self.is_over, "an event after the end: {event:?}");
            match event {
                ServerEvent::Hello(hello) if hello.token == "wrong" => {
                    self.server.refuse(Error::not_found("no such token"));
                }
                ServerEvent::Hello(_) => self.server.accept(),
                ServerEvent::Request { op, .. } => {
                    assert!(op.0 > self.last_op, "operation {op} after {}", self.last_op);
                    self.last_op = op.0;
                    assert!(self.open.insert(op) && self.open.len() <= MOST_OPERATIONS as usize);
                }
                ServerEvent::Adjust { op, .. } | ServerEvent::Note { op, .. } => {
                    assert!(self.open.contains(&op), "a message to operation {op}, which is over");
                }
                ServerEvent::Cancel { op } => assert!(self.open.remove(&op), "operation {op} ended twice"),
                ServerEvent::Closed { .. } => self.is_over = true,
            }
        }
        if self.is_over {
            self.open.clear();
        }
        assert!(
            self.open.iter().all(|&op| self.server.is_open(op)),
            "an open operation has ended in the server"
        );
    }

    /// Sends up to `most` messages.
    fn send(&mut self, most: usize) {
        for _ in 0..most {
            let Some(message) = self.server.poll_transmit(self.now) else { return };
            match Frame::decode(message.into_bytes()).expect("what a server sends can be read") {
                Frame::Chunk(chunk) => self.sent_bytes += chunk.bytes.len() as u64,
                Frame::Answers(answers) => answers.into_iter().for_each(|answer| self.count_answer(answer)),
                Frame::Done { op } | Frame::Failed { op, .. } => self.count_end(op),
                _ => {}
            }
            assert!(self.sent_bytes <= self.credit_bytes, "more bulk than the client allowed");
        }
    }

    fn count_answer(&mut self, answer: SmallAnswer) {
        let SmallAnswer { op, item, done } = answer;
        self.sent_bytes += item.map_or(0, |item| item.bulk.len() as u64);
        if done {
            self.count_end(op);
        }
    }

    fn count_end(&mut self, op: OpId) {
        assert!(self.ended.insert(op), "operation {op} ended twice");
    }
}

fn bulk(size_bytes: u32) -> CheckedBulk {
    CheckedBulk::from(Bytes::from(vec![7; size_bytes as usize]))
}
