//! Parameters and answers of every operation: what can be read can be written and is read again as the same.

use array::Result;
use bytes::Bytes;
use session::{Item, Join, Note};
use wire::compression::{Compressed, Way};
use wire::frames::probe::{Packet, Probe, Probed, is_quic};
use wire::ops::{
    BlockBody, Describe, ListEntry, Piece, Read, ReadBlock, Stats, StatsRequest, decode_json, encode_json,
};

/// Reads `bytes` without the first one, which names the type, as parameters or as the body of an item.
pub fn decode(bytes: &[u8]) {
    let Some((&which, body)) = bytes.split_first() else { return };
    let body = Bytes::copy_from_slice(body);
    match which {
        0 => settles(body, Describe::decode, |v| Ok(v.encode())),
        1 => settles(body, Read::decode, |v| Ok(v.encode())),
        2 => settles(body, Piece::decode, |v| Ok(v.encode())),
        3 => settles(body, ReadBlock::decode, |v| Ok(v.encode())),
        4 => settles(body, BlockBody::decode_with, |(v, how)| Ok(v.encode_with(*how))),
        5 => settles(body, StatsRequest::decode, |v| Ok(v.encode())),
        6 => settles(body, |b| ListEntry::decode_all(&b), |v| ListEntry::encode_all(v)),
        7 => settles(body, |b| Stats::decode(&b), Stats::encode),
        8 => settles(body, |b| Join::parse(&b), encode_json),
        9 => settles(body, |b| decode_json::<Item>(&b, "an item"), encode_json),
        10 => settles(body, |b| Note::parse(&b), encode_json),
        11 => restores(&body),
        12 => settles(body, Probe::decode, |v| Ok(v.encode())),
        13 => settles(body, Probed::decode, |v| Ok(v.encode())),
        14 => packet(&body),
        _ => {}
    }
}

/// A datagram that is a probe is none of QUIC's, and says what was written.
fn packet(datagram: &[u8]) {
    let Some(packet) = Packet::read(datagram) else { return };
    assert!(!is_quic(datagram));
    assert!(datagram.starts_with(&packet.header()));
}

/// The body of a block, its length in front, then its bulk: what is restored has the size that was said, and is restored
/// from what it is compressed to.
fn restores(bytes: &[u8]) {
    let Some((&head, rest)) = bytes.split_first() else { return };
    let Some((head, carried)) = rest.split_at_checked(usize::from(head)) else { return };
    let Ok((_, Some(how))) = BlockBody::decode_with(Bytes::copy_from_slice(head)) else { return };
    let Compressed { algorithm, width, plain_bytes } = how;
    let Ok(plain) = how.restore(carried) else { return };
    assert_eq!(plain.len(), plain_bytes as usize);
    if let Some((how, again)) = (Way { algorithm, level: 1, width }).compress(&plain) {
        assert_eq!(how.restore(&again).expect("what was compressed is restored"), plain);
    }
}

/// Decoding, encoding and decoding again gives the same bytes.
pub(crate) fn settles<T>(
    bytes: Bytes,
    decode: impl Fn(Bytes) -> Result<T>,
    encode: impl Fn(&T) -> Result<Bytes>,
) {
    let Ok(value) = decode(bytes) else { return };
    let written = encode(&value).expect("what was read can be written");
    let again = decode(written.clone()).expect("what was written can be read");
    assert_eq!(encode(&again).expect("and written again"), written, "reading changed the value");
}
