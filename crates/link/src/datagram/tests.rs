//! Sender and receiver over a path that loses, duplicates and reorders, in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use proptest::prelude::*;
use wire::{Chunk, ItemHead, MessageContent, OpId};

use super::sender::MAX_ANSWERED_BEFORE;
use super::*;

const TICK: Duration = Duration::from_millis(1);
const DELAY: Duration = Duration::from_millis(20);
const DATAGRAM_BYTES: usize = 600;

/// Faults of the path: each value is the N of "one datagram in N"; 0 stands for none.
#[derive(Clone, Copy, Debug)]
struct Path {
    loses: u64,
    repeats: u64,
    reorders: u64,
}

struct Pair {
    sender: DatagramSender,
    receiver: DatagramReceiver,
    path: Path,
    dice: u64,
    now: Instant,
    /// Datagrams by arrival time.
    down: BTreeMap<(Instant, u64), Bytes>,
    down_records: BTreeMap<(Instant, u64), Bytes>,
    up_records: BTreeMap<(Instant, u64), Bytes>,
    sent: u64,
    /// Received bulk, by operation.
    came: BTreeMap<u32, Vec<Option<u8>>>,
    came_bytes: u64,
    gone_bytes: u64,
    taken_bytes: u64,
}

fn byte(op: u32, at: u64) -> u8 {
    u8::try_from((u64::from(op) * 7 + at * 131) % 251).unwrap()
}

fn plain(record: &DatagramRecord) -> Bytes {
    record.encode().slice(4..)
}

impl Pair {
    #[expect(clippy::disallowed_methods, reason = "where virtual time begins does not matter")]
    fn new(path: Path, redundancy: bool, seed: u64) -> Self {
        let mut sender = DatagramSender::new();
        sender.handle_record(DatagramRecord::Want { redundancy }).unwrap();
        Self {
            sender,
            receiver: DatagramReceiver::new(redundancy, DELAY * 2),
            path,
            dice: seed | 1,
            now: Instant::now(),
            down: BTreeMap::new(),
            down_records: BTreeMap::new(),
            up_records: BTreeMap::new(),
            sent: 0,
            came: BTreeMap::new(),
            came_bytes: 0,
            gone_bytes: 0,
            taken_bytes: 0,
        }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        n > 0 && self.dice.is_multiple_of(n)
    }

    /// Queues bulk of an operation at the server.
    fn push(&mut self, op: u32, bulk_bytes: u64) {
        let bulk: Bytes = (0..bulk_bytes).map(|at| byte(op, at)).collect();
        let head = ItemHead {
            op: OpId(op),
            item: 0,
            body: Bytes::from_static(b"head"),
            bulk_bytes,
            bulk_crc32c: op,
        };
        assert!(!self.sender.take(MessageContent::Item(head)), "heads cross as frames too");
        for (n, bytes) in bulk.chunks(40_000).enumerate() {
            let bytes = Bytes::copy_from_slice(bytes);
            let chunk = Chunk { op: OpId(op), item: 0, offset: n as u64 * 40_000, bytes };
            assert!(self.sender.take(MessageContent::Chunk(chunk)));
        }
        self.taken_bytes += bulk_bytes;
        self.came.insert(op, vec![None; usize::try_from(bulk_bytes).unwrap()]);
    }

    fn withdraw(&mut self, op: u32) {
        assert!(!self.sender.take(MessageContent::Failed(OpId(op))));
    }

    /// Simulates one millisecond: a few datagrams are sent, and those that are due arrive.
    fn tick(&mut self, datagrams: usize) {
        self.now += TICK;
        let now = self.now;
        self.sender.handle_timeout(now);
        for _ in 0..datagrams {
            let Some(datagram) = self.sender.poll_datagram(now, DATAGRAM_BYTES) else { break };
            assert!(datagram.len() <= DATAGRAM_BYTES);
            self.carry(datagram);
        }
        while let Some(record) = self.sender.poll_record() {
            self.sent += 1;
            self.down_records.insert((now + DELAY, self.sent), plain(&record));
        }
        while let Some(entry) = self.down.first_entry().filter(|entry| entry.key().0 <= now) {
            self.receiver.handle_datagram(now, entry.remove());
        }
        while let Some(entry) = self.down_records.first_entry().filter(|entry| entry.key().0 <= now) {
            self.receiver.handle_record(now, DatagramRecord::decode(entry.remove()).unwrap()).unwrap();
        }
        while let Some(record) = self.receiver.poll_report(now) {
            self.sent += 1;
            self.up_records.insert((now + DELAY, self.sent), plain(&record));
        }
        while let Some(entry) = self.up_records.first_entry().filter(|entry| entry.key().0 <= now) {
            self.sender.handle_record(DatagramRecord::decode(entry.remove()).unwrap()).unwrap();
        }
        self.take();
    }

    fn carry(&mut self, datagram: Bytes) {
        let Path { loses, repeats, reorders } = self.path;
        if self.one_in(loses) {
            return;
        }
        let copies = if self.one_in(repeats) { 2 } else { 1 };
        for _ in 0..copies {
            let late = if self.one_in(reorders) { TICK * 7 } else { Duration::ZERO };
            self.sent += 1;
            self.down.insert((self.now + DELAY + late, self.sent), datagram.clone());
        }
    }

    fn take(&mut self) {
        while let Some(part) = self.receiver.poll_part() {
            let op = part.head.op.0;
            assert_eq!((&part.head.body[..], part.head.bulk_crc32c), (&b"head"[..], op));
            let came = self.came.get_mut(&op).unwrap();
            for (at, found) in (part.offset..).zip(&part.bytes[..]) {
                let place = &mut came[usize::try_from(at).unwrap()];
                assert!(place.is_none(), "byte {at} of {op} a second time");
                assert_eq!(*found, byte(op, at));
                *place = Some(*found);
            }
            self.came_bytes += part.bytes.len() as u64;
        }
        self.gone_bytes += self.receiver.poll_gone();
    }

    /// Runs until all data was received or cancelled, and the sender knows.
    fn settle(&mut self) {
        for _ in 0..60_000 {
            if self.came_bytes + self.gone_bytes == self.taken_bytes && self.sender.kept_datagrams() == 0 {
                return;
            }
            self.tick(20);
        }
        panic!(
            "{} came and {} are gone of {}, {} kept: {:?}",
            self.came_bytes,
            self.gone_bytes,
            self.taken_bytes,
            self.sender.kept_datagrams(),
            (self.sender.counts(), self.receiver.counts())
        );
    }

    fn whole(&self) -> BTreeSet<u32> {
        let whole = self.came.iter().filter(|(_, bytes)| bytes.iter().all(Option::is_some));
        whole.map(|(op, _)| *op).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn all_bytes_come_once_whatever_the_path_does(
        loses in prop::sample::select(vec![0_u64, 2, 10, 100]),
        repeats in prop::sample::select(vec![0_u64, 3, 50]),
        reorders in prop::sample::select(vec![0_u64, 2, 20]),
        redundancy in any::<bool>(),
        sizes in prop::collection::vec(16_384..150_000_u64, 1..6),
        ticks in 0..60_usize,
        seed in any::<u64>(),
    ) {
        let mut pair = Pair::new(Path { loses, repeats, reorders }, redundancy, seed);
        for (op, size) in (1..).zip(&sizes) {
            pair.push(op, *size);
            (0..ticks).for_each(|_| pair.tick(10));
        }
        pair.settle();
        prop_assert_eq!(pair.whole().len(), sizes.len());
        prop_assert_eq!(pair.gone_bytes, 0);
    }

    #[test]
    fn cancelled_data_is_accounted_for_and_not_sent_again(
        loses in prop::sample::select(vec![0_u64, 2, 10]),
        reorders in prop::sample::select(vec![0_u64, 5]),
        redundancy in any::<bool>(),
        sizes in prop::collection::vec(16_384..150_000_u64, 2..6),
        ticks in 0..80_usize,
        seed in any::<u64>(),
    ) {
        let mut pair = Pair::new(Path { loses, repeats: 30, reorders }, redundancy, seed);
        for (op, size) in (1..).zip(&sizes) {
            pair.push(op, *size);
        }
        (0..ticks).for_each(|_| pair.tick(10));
        pair.withdraw(1);
        pair.settle();
        prop_assert!((2..).take(sizes.len() - 1).all(|op| pair.whole().contains(&op)));
    }
}

#[test]
fn an_outage_is_mended_and_the_last_datagrams_are_missed_too() {
    let mut pair = Pair::new(Path { loses: 1, repeats: 0, reorders: 0 }, false, 1);
    pair.push(1, 100_000);
    (0..100).for_each(|_| pair.tick(20));
    assert_eq!(pair.came_bytes, 0);
    pair.path.loses = 0;
    pair.settle();
    let counts = pair.sender.counts();
    assert!(counts.again >= counts.datagrams, "{counts:?}");
}

#[test]
fn how_far_numbers_go_is_said_where_what_was_to_leave_next_is_withdrawn() {
    let path = Path { loses: 0, repeats: 0, reorders: 0 };
    let mut pair = Pair::new(path, false, 1);
    pair.push(1, 20_000);
    let mut left = 0;
    while pair.sender.poll_datagram(pair.now, DATAGRAM_BYTES).is_some() {
        left += 1;
    }
    pair.push(2, 20_000);
    pair.sender.handle_record(DatagramRecord::Cancel(OpId(2))).unwrap();
    let due = pair.sender.poll_timeout().expect("the client may have lost the last datagram");
    pair.sender.handle_timeout(due);
    let said: Vec<DatagramRecord> = std::iter::from_fn(|| pair.sender.poll_record()).collect();
    assert!(said.contains(&DatagramRecord::Mark(left)), "{said:?}");
}

#[test]
fn with_parity_nothing_is_asked_for_at_one_percent() {
    let mut pair = Pair::new(Path { loses: 100, repeats: 0, reorders: 0 }, true, 7);
    for op in 1..40 {
        pair.push(op, 65_536);
        (0..8).for_each(|_| pair.tick(20));
    }
    pair.settle();
    let (sent, got) = (pair.sender.counts(), pair.receiver.counts());
    assert!(got.restored > 20 && sent.again == 0, "{sent:?} {got:?}");
    assert!(sent.parity * 100 <= sent.datagrams * 15, "{sent:?}");
}

#[test]
fn a_datagram_that_is_too_long_by_now_goes_as_a_record() {
    let mut pair = Pair::new(Path { loses: 1, repeats: 0, reorders: 0 }, false, 1);
    pair.push(1, 20_000);
    (0..10).for_each(|_| pair.tick(20));
    pair.path.loses = 0;
    for _ in 0..200 {
        pair.now += TICK;
        pair.sender.handle_timeout(pair.now);
        while let Some(datagram) = pair.sender.poll_datagram(pair.now, LEAST_DATAGRAM_BYTES) {
            pair.carry(datagram);
        }
        pair.tick(0);
    }
    assert!(pair.whole().contains(&1));
}

#[test]
fn foreign_datagrams_are_counted_and_change_nothing() {
    let mut pair = Pair::new(Path { loses: 0, repeats: 0, reorders: 0 }, false, 1);
    let now = pair.now;
    let head = ItemHead { op: OpId(1), item: 0, body: Bytes::new(), bulk_bytes: 8, bulk_crc32c: 0 };
    let part = |offset, bytes: &'static [u8]| wire::BulkPart {
        head: head.clone(),
        offset,
        bytes: Bytes::from_static(bytes),
    };
    let foreign = [
        Bytes::new(),
        Bytes::from_static(&[0x40; 1_200]),
        Datagram::Bulk { number: 1 << 60, part: part(0, b"far") }.encode(),
        Datagram::Bulk { number: 0, part: part(6, b"beyond") }.encode(),
        Datagram::Bulk { number: 0, part: part(0, b"") }.encode(),
        Datagram::Parity {
            first: 0,
            datagrams: 3,
            parities: 2,
            which: 1,
            shard: Bytes::from_static(&[1; 4]),
        }
        .encode(),
    ];
    for (n, datagram) in (1..).zip(foreign) {
        pair.receiver.handle_datagram(now, datagram);
        assert_eq!((pair.receiver.counts().rejected, pair.receiver.poll_part()), (n, None));
    }
    let good = Datagram::Bulk { number: 0, part: part(0, b"12345678") }.encode();
    pair.receiver.handle_datagram(now, good.clone());
    assert!(pair.receiver.poll_part().is_some());
    pair.receiver.handle_datagram(now, good);
    assert_eq!((pair.receiver.counts().again, pair.receiver.poll_part()), (1, None), "replayed");
}

#[test]
fn the_state_of_missing_numbers_is_bounded() {
    let mut pair = Pair::new(Path { loses: 0, repeats: 0, reorders: 0 }, false, 1);
    let head = ItemHead { op: OpId(1), item: 0, body: Bytes::new(), bulk_bytes: 1 << 20, bulk_crc32c: 0 };
    for number in 0..MAX_RUNS as u64 + 10 {
        let part = wire::BulkPart { head: head.clone(), offset: number, bytes: Bytes::from_static(b"x") };
        pair.receiver.handle_datagram(pair.now, Datagram::Bulk { number: number * 2 + 1, part }.encode());
        drop(pair.receiver.poll_part());
    }
    let counts = pair.receiver.counts();
    assert_eq!((counts.datagrams, counts.rejected), (MAX_RUNS as u64, 10));
    let mut asked = |after_ms| match pair.receiver.poll_report(pair.now + Duration::from_millis(after_ms)) {
        Some(DatagramRecord::Report { missing, .. }) => missing.len(),
        _ => 0,
    };
    assert_eq!(asked(1_000), MAX_ASKED_RUNS);
    assert_eq!(
        (asked(1_005), asked(1_020)),
        (0, MAX_ASKED_RUNS),
        "a walk through that much is not for every millisecond"
    );
}

#[test]
fn a_client_that_reports_what_never_left_is_refused() {
    let mut pair = Pair::new(Path { loses: 0, repeats: 0, reorders: 0 }, false, 1);
    pair.push(1, 20_000);
    pair.tick(3);
    let runs = |runs: &[(u64, u64)]| runs.iter().map(|&(start, end)| start..end).collect();
    for (settled, missing) in [(4, runs(&[])), (0, runs(&[(2, 4)])), (u64::MAX, runs(&[]))] {
        assert!(pair.sender.handle_record(DatagramRecord::Report { settled, missing }).is_err());
    }
    pair.sender.handle_record(DatagramRecord::Report { settled: 2, missing: runs(&[(2, 3)]) }).unwrap();
    assert!(pair.sender.handle_record(DatagramRecord::Report { settled: 1, missing: vec![] }).is_err());
    assert!(pair.sender.handle_record(DatagramRecord::Mark(0)).is_err());
    assert!(pair.receiver.handle_record(pair.now, DatagramRecord::Want { redundancy: true }).is_err());
}

/// Creates a server that has sent an item of `datagrams` datagrams of the smallest size.
fn small(datagrams: usize) -> Pair {
    let mut pair = Pair::new(Path { loses: 0, repeats: 0, reorders: 0 }, false, 1);
    pair.push_small(1, datagrams as u64);
    assert_eq!(pair.leave(), datagrams);
    pair
}

impl Pair {
    /// Queues an item with one byte per datagram.
    fn push_small(&mut self, op: u32, bulk_bytes: u64) {
        let bulk_bytes = bulk_bytes.max(16 << 10);
        let head = ItemHead { op: OpId(op), item: 0, body: Bytes::new(), bulk_bytes, bulk_crc32c: 0 };
        self.sender.take(MessageContent::Item(head));
        for offset in 0..bulk_bytes {
            let bytes = Bytes::from_static(b"x");
            assert!(self.sender.take(MessageContent::Chunk(Chunk { op: OpId(op), item: 0, offset, bytes })));
        }
    }

    /// Sends everything that may be sent now; returns the number of datagrams.
    fn leave(&mut self) -> usize {
        std::iter::from_fn(|| self.sender.poll_datagram(self.now, DATAGRAM_BYTES)).count()
    }

    fn said(&mut self) -> Vec<DatagramRecord> {
        std::iter::from_fn(|| self.sender.poll_record()).collect()
    }

    fn report(&mut self, settled: u64, missing: Range<u64>) {
        let missing = vec![missing];
        self.sender.handle_record(DatagramRecord::Report { settled, missing }).unwrap();
    }
}

#[test]
fn one_report_makes_the_server_look_at_so_many_numbers_and_the_rest_is_asked_for_again() {
    let most = u64::try_from(MAX_ANSWERED).unwrap();
    let mut pair = small(MAX_ANSWERED + 10);
    let known = u64::try_from(MAX_ANSWERED_BEFORE).unwrap() + 1;
    for looked in [most, most + known, most + 2 * known] {
        pair.report(0, 0..most + 10);
        assert_eq!(pair.sender.counts().missed, looked);
    }
    assert_eq!(pair.leave(), MAX_ANSWERED, "each once, however often it is asked for before it leaves");
    pair.report(most, most..most + 10);
    assert_eq!(pair.leave(), 10);
}

#[test]
fn an_operation_that_is_withdrawn_again_and_sent_again_keeps_its_account() {
    let mut pair = Pair::new(Path { loses: 0, repeats: 0, reorders: 0 }, false, 1);
    pair.push(1, 20_000);
    let first = pair.leave() as u64;
    pair.report(0, 0..first / 2);
    pair.withdraw(1);
    let void = |said: &[DatagramRecord]| {
        said.iter().filter(|record| matches!(record, DatagramRecord::Void { .. })).count()
    };
    assert_eq!(void(&pair.said()) as u64, first / 2, "those that were asked for");
    pair.withdraw(1);
    assert_eq!((pair.said(), pair.leave()), (vec![], 0));
    // The client's record may arrive before the server has ended the operation.
    pair.push(1, 20_000);
    let second = pair.leave() as u64;
    pair.report(first, first..first + second);
    pair.withdraw(1);
    assert_eq!(void(&pair.said()) as u64, second);
    pair.report(first + second, first + second..first + second);
    assert_eq!((pair.leave(), pair.sender.kept_datagrams()), (0, 0));
}

#[test]
fn a_datagram_above_a_reduced_mtu_is_repaired_once_at_the_rate_of_consumption() {
    let mut pair = Pair::new(Path { loses: 0, repeats: 0, reorders: 0 }, false, 1);
    (1..=100).for_each(|op| pair.push(op, 20_000));
    let sent = std::iter::from_fn(|| pair.sender.poll_datagram(pair.now, DATAGRAM_BYTES).map(|d| d.len()));
    let sizes: Vec<usize> = sent.collect();
    let (all, long) = (sizes.len() as u64, sizes.iter().filter(|size| **size > LEAST_DATAGRAM_BYTES).count());
    assert!(long > 2 * MAX_WAITING_RECORDS, "{long}");
    let mut repaired = Vec::new();
    for waiting in 0..6 {
        for _ in 0..5 {
            pair.report(0, 0..all);
            while pair.sender.poll_datagram(pair.now, LEAST_DATAGRAM_BYTES).is_some() {}
        }
        let said = pair.said();
        assert!(said.len() <= MAX_WAITING_RECORDS, "{waiting}: {} wait", said.len());
        repaired.extend(said);
    }
    let is_repair = |record: &DatagramRecord| matches!(record, DatagramRecord::Repair(_));
    assert!(repaired.iter().all(is_repair) && repaired.len() == long, "{} of {long}", repaired.len());
}

#[test]
fn the_state_of_datagrams_without_bytes_is_bounded() {
    let mut pair = Pair::new(Path { loses: 0, repeats: 0, reorders: 0 }, false, 1);
    for op in 1.. {
        pair.push_small(op, 1 << 16);
        if pair.leave() == 0 {
            break;
        }
        pair.sender.handle_record(DatagramRecord::Cancel(OpId(op))).unwrap();
        assert!(pair.sender.kept_datagrams() <= MAX_KEPT_DATAGRAMS);
    }
    assert_eq!(pair.sender.kept_datagrams(), MAX_KEPT_DATAGRAMS);
    pair.report(1, 1..1);
    assert_eq!(pair.leave(), 1, "as soon as one is settled");
}

#[test]
fn a_client_that_takes_no_records_is_sent_no_more_bulk_at_last() {
    let mut pair = Pair::new(Path { loses: 0, repeats: 0, reorders: 0 }, false, 1);
    let mut next = 0;
    for op in 1..500 {
        pair.push(op, 20_000);
        let left = pair.leave() as u64;
        pair.report(next, next..next + left);
        pair.withdraw(op);
        next += left;
        pair.report(next, next..next);
    }
    let said = pair.said();
    assert!(said.len() < MAX_WAITING_RECORDS + 100, "{} wait", said.len());
    pair.push(500, 20_000);
    assert!(pair.leave() > 0, "once they are taken");
}
