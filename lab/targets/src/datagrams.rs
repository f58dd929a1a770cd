//! Both state machines of the link `lossy` with a peer that may send anything: they deliver bulk once, keep bounded amounts,
//! and whatever can be decoded can be encoded.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use link::datagram::{
    Datagram, DatagramReceiver, DatagramRecord, DatagramSender, LEAST_DATAGRAM_BYTES, MAX_RUNS,
};
use wire::{Chunk, ItemHead, MessageContent, OpId};

/// Bytes of the item that the sender has from the start.
const ITEM_BYTES: u64 = 20_000;

/// Plays a script of pieces: for each a byte for its kind and the time before it, a byte for its length, and its bytes.
pub fn play(script: &[u8]) {
    let mut now = Instant::now();
    let round_trip = Duration::from_millis(20);
    let mut receivers = [false, true].map(|redundancy| DatagramReceiver::new(redundancy, round_trip));
    let mut sender = sender();
    let mut delivered = [BTreeSet::new(), BTreeSet::new()];
    let mut rest = script;
    while let [what, length, more @ ..] = rest {
        let (piece, after) = more.split_at(usize::from(*length).min(more.len()));
        rest = after;
        now += Duration::from_millis(u64::from(*what >> 2));
        let piece = Bytes::copy_from_slice(piece);
        check_encoding(&piece);
        for (receiver, delivered) in receivers.iter_mut().zip(&mut delivered) {
            receive(receiver, now, *what, &piece);
            take(receiver, delivered, &piece);
            drop(receiver.poll_report(now));
        }
        if let Ok(record) = DatagramRecord::decode(piece) {
            // It may be refused.
            sender.handle_record(record).unwrap_or_default();
        }
        sender.handle_timeout(now);
        for _ in 0..4 {
            let size = sender.poll_datagram(now, LEAST_DATAGRAM_BYTES).map_or(0, |datagram| datagram.len());
            assert!(size <= LEAST_DATAGRAM_BYTES, "a datagram of {size} bytes");
        }
        while sender.poll_record().is_some() {}
        assert!(sender.kept_datagrams() as u64 <= ITEM_BYTES, "more is kept than was given");
    }
}

/// A sender with the bulk of one item.
fn sender() -> DatagramSender {
    let mut sender = DatagramSender::new();
    let op = OpId(7);
    let head = ItemHead { op, item: 0, body: Bytes::new(), bulk_bytes: ITEM_BYTES, bulk_crc32c: 0 };
    let bytes = Bytes::from(vec![0; usize::try_from(ITEM_BYTES).unwrap_or_default()]);
    sender.take(MessageContent::Item(head));
    assert!(
        sender.take(MessageContent::Chunk(Chunk { op, item: 0, offset: 0, bytes })),
        "it is large enough"
    );
    sender
}

fn receive(receiver: &mut DatagramReceiver, now: Instant, what: u8, piece: &Bytes) {
    if what.is_multiple_of(2) {
        receiver.handle_datagram(now, piece.clone());
    } else if let Ok(record) = DatagramRecord::decode(piece.clone()) {
        // It may be refused.
        receiver.handle_record(now, record).unwrap_or_default();
    }
}

/// Takes the parts that a piece completes. A datagram with bulk of its own, not parity, delivers its number once.
fn take(receiver: &mut DatagramReceiver, delivered: &mut BTreeSet<u64>, piece: &Bytes) {
    let number = match Datagram::decode(piece.clone()) {
        Ok(Datagram::Bulk { number, .. }) => Some(number),
        _ => None,
    };
    let mut parts = 0;
    while let Some(part) = receiver.poll_part() {
        assert!(!part.bytes.is_empty(), "bulk without bytes");
        parts += 1;
    }
    if let Some(number) = number.filter(|_| parts == 1) {
        assert!(
            delivered.insert(number) && delivered.len() <= 2 * MAX_RUNS,
            "number {number} is delivered twice"
        );
    }
    receiver.poll_gone();
}

/// Checks that a piece that can be decoded is the same after encoding.
fn check_encoding(piece: &Bytes) {
    if let Ok(packet) = Datagram::decode(piece.clone()) {
        assert_eq!(Datagram::decode(packet.encode()).as_ref(), Ok(&packet), "reading changed the datagram");
    }
    if let Ok(record) = DatagramRecord::decode(piece.clone()) {
        assert_eq!(
            DatagramRecord::decode(record.encode().slice(4..)).as_ref(),
            Ok(&record),
            "reading changed the record"
        );
    }
}
