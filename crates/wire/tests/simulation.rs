//! A client and a server over a simulated link, in virtual time, from a seed: random rate and delay, bytes
//! cut anywhere, random operations that are adjusted, cancelled, too late or failing, and an application that
//! consumes its bytes at random times. After each step the invariants of the protocol are compared with a
//! naive model.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test stops at the first surprise"
)]

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use array::{Error, ErrorKind, Priority, Urgency};
use bytes::Bytes;
use corridor_wire as wire;
use wire::{
    Chunk, ChunkHead, Client, ClientConfig, ClientEvent, Deframed, Deframer, Frame, Machine, Message, OpId,
    Server, ServerConfig, ServerEvent, limits,
};

const SEEDS: u64 = 200;
const TICK: Duration = Duration::from_millis(1);
const MOST_TICKS: usize = 120_000;
const MAX_BULK: u64 = 400_000;

/// The generator xorshift64*: sufficient for a test, and the same on every platform.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        (0..4).for_each(|_| {
            dice.roll();
        });
        dice
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn urgency(&mut self, now: Instant) -> Urgency {
        let priority = Priority { tier: self.below(5) as u8, weight: self.below(3) as f32 };
        let deadline = self.one_in(8).then(|| now + Duration::from_millis(self.below(2000)));
        Urgency { priority, deadline }
    }
}

/// One direction of a link: bytes leave at a rate and arrive after a delay, cut anywhere.
struct Pipe {
    bytes_per_tick: usize,
    delay: Duration,
    backlog: VecDeque<Bytes>,
    backlog_bytes: usize,
    flying: VecDeque<(Instant, Bytes)>,
    deframer: Deframer,
}

impl Pipe {
    const BUFFER_BYTES: usize = 64 << 10;

    fn new(dice: &mut Dice) -> Self {
        Self {
            bytes_per_tick: 1000 + dice.below(100_000) as usize,
            delay: Duration::from_millis(dice.below(100)),
            backlog: VecDeque::new(),
            backlog_bytes: 0,
            flying: VecDeque::new(),
            deframer: Deframer::new(),
        }
    }

    fn takes(&self) -> bool {
        self.backlog_bytes < Self::BUFFER_BYTES
    }

    fn put(&mut self, message: Message) {
        for part in message.into_stream_parts() {
            self.backlog_bytes += part.len();
            self.backlog.push_back(part);
        }
    }

    fn tick(&mut self, now: Instant, dice: &mut Dice) {
        let mut left = self.bytes_per_tick;
        while left > 0
            && let Some(mut part) = self.backlog.pop_front()
        {
            let most = part.len().min(left);
            let size = if dice.one_in(3) { most } else { dice.below(most as u64 + 1) as usize };
            let cut = part.split_to(size);
            left -= size.max(1);
            self.backlog_bytes -= size;
            if !part.is_empty() {
                self.backlog.push_front(part);
            }
            self.flying.push_back((now + self.delay, cut));
        }
    }

    /// Takes the next data that has arrived: a whole frame, or the available part of a chunk as a chunk of
    /// its own.
    fn take(&mut self, now: Instant, limit_bytes: usize) -> Option<Bytes> {
        loop {
            let (at, mut bytes) = self.flying.pop_front_if(|(at, _)| *at <= now)?;
            let mut rest = &bytes[..];
            let cut = self.deframer.cut(&mut rest, limit_bytes).unwrap().map(|cut| match cut {
                Deframed::Frame(frame) => frame,
                Deframed::Bulk { head: ChunkHead { op, item, offset }, bytes } => {
                    let bytes = Bytes::copy_from_slice(bytes);
                    Frame::Chunk(Chunk { op, item, offset, bytes }).encode().into_bytes()
                }
                Deframed::Apart { .. } => panic!("nobody sends bulk apart here"),
            });
            let left = rest.len();
            if left > 0 {
                self.flying.push_front((at, bytes.split_off(bytes.len() - left)));
            }
            if cut.is_some() {
                return cut;
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.backlog.is_empty() && self.flying.is_empty() && self.deframer.is_empty()
    }
}

/// Answer of an operation, computed from its parameters on both sides.
struct Plan {
    items: Vec<(Bytes, Bytes)>,
    fails: bool,
}

impl Plan {
    fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let items = (0..dice.below(5)).map(|_| {
            let body = vec![dice.roll() as u8; dice.below(2000) as usize];
            let size = if dice.one_in(4) { 0 } else { dice.below(MAX_BULK) };
            let (start, step) = (dice.roll(), dice.below(7) + 1);
            let bulk: Vec<u8> = (0..size).map(|i| (start + i * step) as u8).collect();
            (body.into(), bulk.into())
        });
        Self { items: items.collect(), fails: dice.one_in(10) }
    }
}

#[derive(Debug, PartialEq)]
enum End {
    Done,
    Failed(ErrorKind),
    Withdrawn,
}

/// Items and end of an operation, as the client has received them.
struct Asked {
    plan: Plan,
    items: Vec<(Bytes, Vec<u8>)>,
    end: Option<End>,
}

/// Work that remains to the server for an operation, and the part of it that is queued.
struct Job {
    plan: Plan,
    next: usize,
    priority: Priority,
    /// Bulk bytes queued and not sent.
    queued: usize,
}

struct World {
    now: Instant,
    dice: Dice,
    client: Client,
    server: Server,
    up: Pipe,
    down: Pipe,
    asked: BTreeMap<OpId, Asked>,
    jobs: BTreeMap<OpId, Job>,
    to_ask: usize,
    /// Pieces that the application has not consumed yet.
    untaken: VecDeque<u64>,
    /// Bulk bytes that the server may send, by the frames that reached it.
    credit: u64,
    /// Bulk bytes that are in flight or not consumed: never above the largest window.
    sent_to_taken: u64,
    /// Largest window so far: bytes that it permitted may arrive after the window has shrunk.
    widest: u64,
}

impl World {
    #[expect(clippy::disallowed_methods, reason = "where virtual time begins does not matter")]
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let now = Instant::now();
        let window_bytes = [50_000, 300_000, 64 << 20][dice.below(3) as usize];
        // One in four peers is an older version that cannot read batches.
        let capabilities = |dice: &mut Dice| {
            let batch = (!dice.one_in(4)).then(|| limits::BATCH.to_owned());
            ["crc32c".to_owned()].into_iter().chain(batch).collect::<Vec<_>>()
        };
        let config =
            ClientConfig { window_bytes, capabilities: capabilities(&mut dice), ..ClientConfig::default() };
        let most_operations = if dice.one_in(4) { 3 } else { limits::MAX_OPERATIONS };
        Self {
            now,
            client: Client::new(config, now).unwrap(),
            server: Server::new(
                ServerConfig {
                    most_operations,
                    capabilities: capabilities(&mut dice),
                    ..ServerConfig::default()
                },
                now,
            )
            .unwrap(),
            up: Pipe::new(&mut dice),
            down: Pipe::new(&mut dice),
            asked: BTreeMap::new(),
            jobs: BTreeMap::new(),
            to_ask: 5 + dice.below(30) as usize,
            untaken: VecDeque::new(),
            credit: 0,
            sent_to_taken: 0,
            widest: 0,
            dice,
        }
    }

    fn run(mut self) {
        for _ in 0..MOST_TICKS {
            self.now += TICK;
            self.act();
            self.answer();
            self.send();
            self.receive();
            if self.to_ask == 0 && self.asked.values().all(|a| a.end.is_some()) && self.is_quiet() {
                return self.check_end();
            }
        }
        panic!("{} operations have not ended", self.asked.values().filter(|a| a.end.is_none()).count());
    }

    fn is_quiet(&self) -> bool {
        self.up.is_empty() && self.down.is_empty() && self.untaken.is_empty() && self.jobs.is_empty()
    }

    /// Lets the client's application do one random action.
    fn act(&mut self) {
        if self.to_ask > 0 && self.dice.one_in(10) && self.client.has_room() {
            let seed = self.dice.roll();
            let urgency = self.dice.urgency(self.now);
            let parameters = Bytes::from(seed.to_le_bytes().to_vec());
            let op = self.client.request("plan", parameters, urgency).unwrap();
            self.asked.insert(op, Asked { plan: Plan::of(seed), items: Vec::new(), end: None });
            self.to_ask -= 1;
        }
        let running: Vec<OpId> =
            self.asked.iter().filter(|(_, a)| a.end.is_none()).map(|(op, _)| *op).collect();
        if !running.is_empty() && self.dice.one_in(20) {
            let op = running[self.dice.below(running.len() as u64) as usize];
            match self.dice.below(4) {
                0 => {
                    self.client.cancel(op);
                    self.asked.get_mut(&op).unwrap().end = Some(End::Withdrawn);
                }
                1 => self.client.note(op, Bytes::from_static(b"psst")).unwrap(),
                _ => {
                    let urgency = self.dice.urgency(self.now);
                    self.client.adjust(op, urgency);
                }
            }
        }
        while !self.untaken.is_empty() && !self.dice.one_in(3) {
            let bytes = self.untaken.pop_front().unwrap();
            self.sent_to_taken -= bytes;
            self.client.grant(bytes);
        }
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        self.hear_client();
        self.hear_server();
    }

    /// Lets the server's application work on its jobs.
    fn answer(&mut self) {
        let ops: Vec<OpId> = self.jobs.keys().copied().collect();
        for op in ops {
            let job = self.jobs.get_mut(&op).unwrap();
            if self.dice.one_in(2) || !self.server.is_open(op) {
                continue;
            }
            let Some((body, bulk)) = job.plan.items.get(job.next) else {
                if job.plan.fails {
                    self.server.fail(op, Error::new(ErrorKind::NotFound, "as planned"));
                    self.jobs.remove(&op);
                } else {
                    self.server.done(op);
                }
                continue;
            };
            if self.server.room_bytes(op) == 0 {
                let busy = self.server.item(op, body.clone(), bulk.clone().into()).unwrap_err();
                assert_eq!(busy.kind(), ErrorKind::Busy);
                continue;
            }
            let is_only = job.next == 0 && job.plan.items.len() == 1 && !job.plan.fails;
            if is_only && self.dice.one_in(2) {
                self.server.answer(op, body.clone(), bulk.clone().into()).unwrap();
            } else {
                self.server.item(op, body.clone(), bulk.clone().into()).unwrap();
            }
            job.queued += bulk.len();
            job.next += 1;
        }
        let queued: usize = self.jobs.values().map(|j| j.queued).sum();
        let tiers = usize::from(limits::HIGHEST_TIER) * limits::QUEUE_BYTES_PER_TIER;
        assert!(queued <= limits::QUEUE_BYTES + tiers + 2 * MAX_BULK as usize, "{queued} bytes are queued");
    }

    fn send(&mut self) {
        while self.up.takes()
            && let Some(message) = self.client.poll_transmit(self.now)
        {
            self.up.put(message);
        }
        while self.down.takes()
            && let Some(message) = self.server.poll_transmit(self.now)
        {
            self.check_sent(&message);
            self.down.put(message);
        }
        self.up.tick(self.now, &mut self.dice);
        self.down.tick(self.now, &mut self.dice);
    }

    /// Checks that the most urgent operation is sent first, within the credit.
    fn check_sent(&mut self, message: &Message) {
        match Frame::decode(message.clone().into_bytes()).unwrap() {
            Frame::Chunk(chunk) => self.check_bulk(chunk.op, chunk.bytes.len()),
            Frame::Done { op } => self.check_done(op),
            Frame::Answers(answers) => answers.iter().for_each(|answer| {
                if let Some(item) = &answer.item {
                    self.check_bulk(answer.op, item.bulk.len());
                }
                if answer.done {
                    self.check_done(answer.op);
                }
            }),
            _ => {}
        }
    }

    fn check_bulk(&mut self, op: OpId, size: usize) {
        self.credit = self.credit.checked_sub(size as u64).expect("no more than credit allows");
        self.sent_to_taken += size as u64;
        self.widest = self.widest.max(self.client.window_bytes());
        assert!(self.sent_to_taken <= self.widest, "the window is exceeded");
        let best = self.jobs.values().filter(|j| j.queued > 0).map(|j| j.priority).max();
        let job = self.jobs.get_mut(&op).expect("an operation in flight");
        assert!(size == 0 || Some(job.priority) == best, "something more urgent was queued");
        job.queued -= size;
    }

    fn check_done(&mut self, op: OpId) {
        let job = self.jobs.remove(&op).expect("an operation in flight");
        assert_eq!(job.queued, 0, "done before its last bytes");
    }

    fn receive(&mut self) {
        while self.server.wants_frames()
            && let Some(frame) = self.up.take(self.now, self.server.frame_limit_bytes())
        {
            match Frame::decode(frame.clone()).unwrap() {
                Frame::Hello(hello) => self.credit += hello.credit_bytes,
                Frame::Credit { bytes } => self.credit += bytes,
                _ => {}
            }
            self.server.handle_frame(self.now, frame).unwrap();
            self.hear_server();
        }
        while self.client.wants_frames()
            && let Some(frame) = self.down.take(self.now, self.client.frame_limit_bytes())
        {
            // Bulk that is discarded because its operation was cancelled never waits for the application.
            let bulk = match Frame::decode(frame.clone()).unwrap() {
                Frame::Chunk(chunk) => chunk.bytes.len() as u64,
                Frame::Answers(answers) => {
                    answers.iter().filter_map(|a| a.item.as_ref()).map(|i| i.bulk.len() as u64).sum()
                }
                _ => 0,
            };
            let before: u64 = self.untaken.iter().sum();
            self.client.handle_frame(self.now, frame).unwrap();
            self.hear_client();
            self.sent_to_taken -= bulk - (self.untaken.iter().sum::<u64>() - before);
        }
    }

    fn hear_server(&mut self) {
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::Hello(_) => self.server.accept(),
                ServerEvent::Request { op, parameters, urgency, .. } => {
                    let plan = Plan::of(u64::from_le_bytes(parameters[..].try_into().unwrap()));
                    let job = Job { plan, next: 0, priority: urgency.priority, queued: 0 };
                    assert!(self.jobs.insert(op, job).is_none(), "asked twice");
                }
                ServerEvent::Adjust { op, .. } | ServerEvent::Note { op, .. } => {
                    assert!(self.server.is_open(op))
                }
                ServerEvent::Cancel { op } => {
                    assert!(self.server.item(op, Bytes::new(), Bytes::new().into()).is_err());
                }
                ServerEvent::Closed { error } => panic!("the server closed: {error}"),
            }
        }
        // The model follows the state of the server, including operations that the application has finished
        // with.
        let server = &self.server;
        self.jobs.retain(|op, _| server.urgency(*op).is_some());
        for (op, job) in &mut self.jobs {
            job.priority = server.urgency(*op).unwrap().priority;
        }
    }

    fn hear_client(&mut self) {
        while let Some(event) = self.client.poll_event() {
            let op = event.op();
            let asked = op.and_then(|op| self.asked.get_mut(&op));
            assert!(asked.as_ref().is_none_or(|a| a.end.is_none()), "news of an operation that has ended");
            match (event, asked) {
                (ClientEvent::Item { item, body, bulk_bytes, .. }, Some(asked)) => {
                    assert_eq!(item as usize, asked.items.len());
                    assert_eq!(bulk_bytes as usize, asked.plan.items[asked.items.len()].1.len());
                    asked.items.push((body, Vec::new()));
                }
                (ClientEvent::Piece { item, offset, bytes, complete, .. }, Some(asked)) => {
                    let bulk = &mut asked.items[item as usize].1;
                    assert_eq!(offset as usize, bulk.len());
                    bulk.extend_from_slice(&bytes);
                    assert_eq!(complete, bulk.len() == asked.plan.items[item as usize].1.len());
                    self.untaken.push_back(bytes.len() as u64);
                }
                (ClientEvent::Whole { body, bulk, .. }, Some(asked)) => {
                    assert!(asked.items.is_empty(), "a whole answer is the only item");
                    self.untaken.extend((!bulk.is_empty()).then_some(bulk.len() as u64));
                    asked.items.push((body, bulk.to_vec()));
                    asked.end = Some(End::Done);
                }
                (ClientEvent::Done { .. }, Some(asked)) => asked.end = Some(End::Done),
                (ClientEvent::Failed { error, .. }, Some(asked)) => {
                    asked.end = Some(End::Failed(error.kind()))
                }
                (ClientEvent::Welcomed(welcome), _) => assert_eq!(welcome.version, limits::HIGHEST_VERSION),
                (other, _) => panic!("{other:?}"),
            }
        }
    }

    fn check_end(mut self) {
        // The last credit may still be in flight.
        for _ in 0..200 {
            self.now += TICK;
            self.send();
            self.receive();
        }
        for (op, asked) in &self.asked {
            let whole = asked.items.len() == asked.plan.items.len();
            for ((body, bulk), planned) in asked.items.iter().zip(&asked.plan.items) {
                assert_eq!(*body, planned.0, "body of {op}");
                assert!(planned.1.starts_with(bulk), "bytes of {op}");
            }
            match asked.end.as_ref().unwrap() {
                End::Done => {
                    assert!(whole && !asked.plan.fails, "operation {op} is done, but not complete");
                    assert!(asked.items.iter().zip(&asked.plan.items).all(|(a, b)| a.1 == b.1));
                }
                End::Failed(ErrorKind::NotFound) => assert!(asked.plan.fails),
                End::Failed(kind) => {
                    assert!(matches!(kind, ErrorKind::TimedOut | ErrorKind::Busy), "{kind:?}")
                }
                End::Withdrawn => {}
            }
        }
        assert_eq!(self.sent_to_taken, 0);
        assert_eq!(self.credit, self.client.credit_bytes(), "both sides count credit alike");
        let window = self.client.window_bytes();
        let least = window - window / limits::CREDIT_FRACTION;
        assert!(self.credit >= least, "credit was lost: {} of {window} are left", self.credit);
    }
}

#[test]
fn every_operation_ends_once_with_its_bytes_whatever_happens_on_the_way() {
    let chosen = std::env::var("CORRIDOR_SEED").ok().map(|seed| seed.parse().unwrap());
    for seed in chosen.map_or(0..SEEDS, |seed| seed..seed + 1) {
        let result = std::panic::catch_unwind(|| World::new(seed).run());
        assert!(result.is_ok(), "failed for the seed {seed}; CORRIDOR_SEED={seed} runs it alone");
    }
}
