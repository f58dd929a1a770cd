//! Bulk that arrives outside the frames, in any order and at any time: the application receives each byte
//! once, and in order where it asks for that.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use array::{Priority, Urgency};
use bytes::Bytes;
use corridor_wire as wire;
use proptest::prelude::*;
use wire::{
    BulkPart, Chunk, Client, ClientConfig, ClientEvent, Frame, ItemHead, Machine, MessageContent, OpId,
    Server, ServerConfig, ServerEvent, SmallAnswer, WholeItem,
};

const WINDOW_BYTES: u64 = 1 << 20;
/// Items of fewer bytes arrive in frames, whole.
const LEAST_APART_BYTES: u64 = 300;

fn byte(op: OpId, item: u32, at: usize) -> u8 {
    u8::try_from((op.0 as usize * 5 + item as usize * 11 + at * 31) % 251).unwrap()
}

/// Parts of an operation's answer that the client has reported.
#[derive(Default)]
struct Known {
    items: BTreeMap<u32, Vec<Option<u8>>>,
    under_way: Option<u32>,
    is_done: bool,
}

struct Pair {
    client: Client,
    server: Server,
    now: Instant,
    frames: VecDeque<Bytes>,
    parts: Vec<BulkPart>,
    heads: BTreeMap<OpId, ItemHead>,
    known: BTreeMap<OpId, Known>,
    any_order: Vec<OpId>,
    dice: u64,
}

impl Pair {
    #[expect(clippy::disallowed_methods, reason = "where time begins does not matter")]
    fn new(seed: u64) -> Self {
        let now = Instant::now();
        // Batches of small answers do not concern the carriers.
        let capabilities = vec!["crc32c".into()];
        let config = ClientConfig { window_bytes: WINDOW_BYTES, capabilities, ..ClientConfig::default() };
        let mut client = Client::new(config, now).unwrap();
        client.expect_parts();
        let server = Server::new(ServerConfig::default(), now).unwrap();
        let (known, heads) = (BTreeMap::new(), BTreeMap::new());
        let (frames, parts, any_order) = (VecDeque::new(), Vec::new(), Vec::new());
        let mut pair = Self { client, server, now, frames, parts, heads, known, any_order, dice: seed | 1 };
        pair.send_to_server();
        assert!(matches!(pair.server.poll_event(), Some(ServerEvent::Hello(_))));
        pair.server.accept();
        pair.send_to_client();
        while let Some(frame) = pair.frames.pop_front() {
            pair.client.handle_frame(now, frame).unwrap();
        }
        assert!(matches!(pair.client.poll_event(), Some(ClientEvent::Welcomed(_))));
        pair
    }

    fn below(&mut self, end: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        usize::try_from(self.dice >> 33).unwrap() % end.max(1)
    }

    fn ask(&mut self, any_order: bool) -> OpId {
        let op = self.client.request("x", Bytes::new(), Urgency::of(Priority::NORMAL)).unwrap();
        if any_order {
            self.client.take_in_any_order(op);
            self.any_order.push(op);
        }
        self.known.insert(op, Known::default());
        self.send_to_server();
        while self.server.poll_event().is_some() {}
        op
    }

    fn answer(&mut self, op: OpId, sizes: &[usize]) {
        for (item, &size) in (0..).zip(sizes) {
            let bulk: Bytes = (0..size).map(|at| byte(op, item, at)).collect();
            self.server.item(op, Bytes::from_static(b"body"), bulk.into()).unwrap();
        }
        self.server.done(op);
        self.send_to_client();
    }

    fn send_to_server(&mut self) {
        while let Some(message) = self.client.poll_transmit(self.now) {
            self.server.handle_frame(self.now, message.into_bytes()).unwrap();
        }
    }

    /// Sends as a carrier does that carries the bulk of large items outside the frames.
    fn send_to_client(&mut self) {
        while let Some(message) = self.server.poll_transmit(self.now) {
            match message.content() {
                Some(MessageContent::Item(head)) => {
                    self.heads.insert(head.op, head);
                    self.frames.push_back(message.into_bytes());
                }
                Some(MessageContent::Chunk(chunk))
                    if self.heads[&chunk.op].bulk_bytes >= LEAST_APART_BYTES =>
                {
                    let (mut offset, mut rest) = (chunk.offset, chunk.bytes);
                    while !rest.is_empty() {
                        let size = (1 + self.below(400)).min(rest.len());
                        let (head, bytes) = (self.heads[&chunk.op].clone(), rest.split_to(size));
                        self.parts.push(BulkPart { head, offset, bytes });
                        offset += size as u64;
                    }
                }
                _ => self.frames.push_back(message.into_bytes()),
            }
        }
    }

    /// Delivers one frame, or any of the parts.
    fn step(&mut self) {
        let count = self.parts.len();
        if count > 0 && (self.frames.is_empty() || self.below(4) > 0) {
            let at = self.below(count);
            let part = self.parts.swap_remove(at);
            if self.below(2) == 0 {
                self.client.handle_part(self.now, part).unwrap();
            } else if let Some(complete) =
                self.client.handle_apart(self.now, &part.head, part.offset, &part.bytes).unwrap()
            {
                let BulkPart { head: ItemHead { op, item, .. }, offset, bytes } = part;
                self.hear(ClientEvent::Piece { op, item, offset, bytes, complete });
            }
        } else if let Some(frame) = self.frames.pop_front() {
            self.client.handle_frame(self.now, frame).unwrap();
        }
        while let Some(event) = self.client.poll_event() {
            self.hear(event);
        }
        self.send_to_server();
        self.send_to_client();
    }

    fn hear(&mut self, event: ClientEvent) {
        let op = event.op().expect("only operations are heard of");
        let is_in_order = !self.any_order.contains(&op);
        let known = self.known.get_mut(&op).expect("nothing is heard of what is over");
        assert!(!known.is_done);
        match event {
            ClientEvent::Item { item, body, bulk_bytes, .. } => {
                assert_eq!(&body[..], b"body");
                assert!(!is_in_order || (item as usize == known.items.len() && known.under_way.is_none()));
                let before = known.items.insert(item, vec![None; usize::try_from(bulk_bytes).unwrap()]);
                assert!(before.is_none(), "item {item} is told twice");
                known.under_way = (bulk_bytes > 0).then_some(item);
            }
            ClientEvent::Piece { item, offset, bytes, complete, .. } => {
                self.client.grant(bytes.len() as u64);
                let there = known.items.get_mut(&item).expect("an item is told before its bulk");
                let offset = usize::try_from(offset).unwrap();
                assert!(!is_in_order || there.iter().position(Option::is_none) == Some(offset));
                for (place, byte) in there[offset..].iter_mut().zip(&bytes[..]) {
                    assert!(place.replace(*byte).is_none(), "a byte of item {item} came twice");
                }
                assert_eq!(complete, there.iter().all(Option::is_some), "item {item}");
                if complete {
                    known.under_way = None;
                }
            }
            ClientEvent::Done { .. } => known.is_done = true,
            other => panic!("expected an answer, found {other:?}"),
        }
    }

    fn finish(&mut self) {
        while !self.parts.is_empty() || !self.frames.is_empty() {
            self.step();
        }
    }

    fn check(&self, op: OpId, sizes: &[usize]) {
        let known = &self.known[&op];
        assert!(known.is_done && known.items.len() == sizes.len(), "operation {op}");
        for (item, &size) in (0..).zip(sizes) {
            let expected: Vec<_> = (0..size).map(|at| Some(byte(op, item, at))).collect();
            assert_eq!(known.items[&item], expected, "item {item} of {op}");
        }
    }

    /// Checks that all credit was returned except less than a credit frame is sent for.
    fn check_credit(&self) {
        let owed = WINDOW_BYTES - self.client.credit_bytes();
        assert!(owed <= WINDOW_BYTES / wire::limits::CREDIT_FRACTION, "{owed} bytes are not given back");
    }
}

proptest! {
    #[test]
    fn answers_are_whole_whatever_comes_first(
        sizes in prop::collection::vec(prop::collection::vec(0..3_000_usize, 0..9), 1..5),
        any_order in any::<[bool; 5]>(),
        seed in any::<u64>(),
    ) {
        let mut pair = Pair::new(seed);
        let mut ops = Vec::new();
        for (sizes, any_order) in sizes.iter().zip(any_order) {
            let op = pair.ask(any_order);
            pair.answer(op, sizes);
            ops.push((op, sizes));
            pair.step();
        }
        pair.finish();
        ops.iter().for_each(|(op, sizes)| pair.check(*op, sizes));
        pair.check_credit();
    }

    #[test]
    fn a_cancelled_operation_is_not_reported_and_frees_its_slot(
        sizes in prop::collection::vec(200..3_000_usize, 1..9),
        any_order in any::<bool>(),
        steps in 0..40_usize,
        lost in 0..5_usize,
        seed in any::<u64>(),
    ) {
        let mut pair = Pair::new(seed);
        let room = pair.client.room(Priority::NORMAL);
        let op = pair.ask(any_order);
        pair.answer(op, &sizes);
        (0..steps).for_each(|_| pair.step());
        if !pair.known[&op].is_done {
            pair.client.cancel(op);
            pair.known.remove(&op);
            for _ in 0..lost.min(pair.parts.len()) {
                let part = pair.parts.pop().unwrap();
                pair.client.handle_gone(part.bytes.len() as u64).unwrap();
            }
        }
        let other = pair.ask(any_order);
        pair.answer(other, &sizes);
        pair.finish();
        pair.check(other, &sizes);
        pair.check_credit();
        prop_assert_eq!(pair.client.room(Priority::NORMAL), room);
    }
}

#[test]
fn parts_that_lie_end_the_connection() {
    let head = |op, item| ItemHead { op, item, body: Bytes::new(), bulk_bytes: 1_000, bulk_crc32c: 7 };
    let part =
        |head, offset, bytes: &'static [u8]| BulkPart { head, offset, bytes: Bytes::from_static(bytes) };
    let lies: [fn(OpId) -> OpId; 2] = [|op| op, |op| OpId(op.0 + 1)];
    for (n, other_op) in lies.into_iter().enumerate() {
        for second in 0..4 {
            let mut pair = Pair::new(1);
            let op = pair.ask(true);
            pair.client.handle_part(pair.now, part(head(op, 0), 10, b"0123456789")).unwrap();
            let lie = match second {
                _ if n > 0 => part(head(other_op(op), 0), 0, b"of nobody"),
                0 => part(head(op, 0), 15, b"again"),
                1 => part(head(op, 0), 995, b"too long"),
                2 => part(ItemHead { bulk_crc32c: 8, ..head(op, 0) }, 0, b"other"),
                _ => part(ItemHead { bulk_bytes: 1 << 40, ..head(op, 1) }, 0, b"huge"),
            };
            assert!(pair.client.handle_part(pair.now, lie).is_err(), "{n} {second}");
        }
    }
    let mut pair = Pair::new(1);
    let op = pair.ask(true);
    assert!(pair.client.handle_gone(WINDOW_BYTES + 1).is_err(), "more than was allowed of {op}");
}

#[test]
fn a_wrong_checksum_fails_the_operation_and_nothing_else() {
    let mut pair = Pair::new(3);
    let op = pair.ask(true);
    let head = ItemHead { op, item: 0, body: Bytes::from_static(b"body"), bulk_bytes: 4, bulk_crc32c: 1 };
    for (offset, bytes) in [(2, "cd"), (0, "ab")] {
        let part = BulkPart { head: head.clone(), offset, bytes: Bytes::from(bytes) };
        pair.client.handle_part(pair.now, part).unwrap();
    }
    let events: Vec<_> = std::iter::from_fn(|| pair.client.poll_event()).collect();
    assert!(
        matches!(&events[..], [ClientEvent::Item { .. }, ClientEvent::Piece { complete: false, .. },
        ClientEvent::Failed { error, .. }] if error.to_string().contains("checksum")),
        "{events:?}"
    );
    let sent: Vec<_> = std::iter::from_fn(|| pair.client.poll_transmit(pair.now)).collect();
    assert!(sent.iter().any(|m| Frame::decode(m.clone().into_bytes()) == Ok(Frame::Cancel { op })));
}

#[test]
fn a_chunk_before_its_turn_waits_where_order_is_wanted() {
    let mut pair = Pair::new(1);
    let op = pair.ask(false);
    let bulk: Bytes = (0..4).map(|at| byte(op, 0, at)).collect();
    let body = Bytes::from_static(b"body");
    let head = ItemHead { op, item: 0, body, bulk_bytes: 4, bulk_crc32c: crc32c::crc32c(&bulk) };
    let chunk = |offset, bytes| Frame::Chunk(Chunk { op, item: 0, offset, bytes });
    let said = [Frame::Item(head), chunk(2, bulk.slice(2..)), chunk(0, bulk.slice(..2)), Frame::Done { op }];
    pair.frames.extend(said.map(|frame| frame.encode().into_bytes()));
    pair.finish();
    pair.check(op, &[4]);
}

#[test]
fn a_whole_answer_to_what_was_answered_in_part_ends_the_connection_and_each_operation_is_told() {
    for any_order in [false, true] {
        let mut pair = Pair::new(1);
        let op = pair.ask(any_order);
        let head = ItemHead { op, item: 0, body: Bytes::new(), bulk_bytes: 1_000, bulk_crc32c: 7 };
        let part = BulkPart { head, offset: 10, bytes: Bytes::from_static(b"0123456789") };
        pair.client.handle_part(pair.now, part).unwrap();
        let item = WholeItem { item: 0, body: Bytes::new(), bulk: Bytes::new(), bulk_crc32c: 0 };
        let whole = Frame::Answers(vec![SmallAnswer { op, item: Some(item), done: true }]);
        assert!(pair.client.handle_frame(pair.now, whole.encode().into_bytes()).is_err());
        let events: Vec<_> = std::iter::from_fn(|| pair.client.poll_event()).collect();
        assert!(
            matches!(&events[..], [.., ClientEvent::Failed { .. }, ClientEvent::Closed { .. }]),
            "{any_order} {events:?}"
        );
    }
}
