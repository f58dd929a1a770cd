//! Parameters and answers of every operation: a value that can be decoded is the same after encoding.

use array::Result;
use bytes::Bytes;
use session::{Item, JoinParams, ParticipantNote};
use wire::compression::{Compressed, CompressionMethod};
use wire::frames::probe::{Probe, ProbePacket, ProbeResult, is_quic};
use wire::ops::{
    BlockBody, DescribeParameters, GeometryBody, GeometryParameters, ListEntry, ReadBlockParameters,
    ReadParameters, ReadPiece, StatsAnswer, StatsParameters, decode_json, encode_json,
};

/// Decodes parameters or the body of an item; the first byte selects the type.
pub fn decode(bytes: &[u8]) {
    let Some((&which, body)) = bytes.split_first() else { return };
    let body = Bytes::copy_from_slice(body);
    match which {
        0 => check_round_trip(body, DescribeParameters::decode, |v| Ok(v.encode())),
        1 => check_round_trip(body, ReadParameters::decode, |v| Ok(v.encode())),
        2 => check_round_trip(body, ReadPiece::decode, |v| Ok(v.encode())),
        3 => check_round_trip(body, ReadBlockParameters::decode, |v| Ok(v.encode())),
        4 => check_round_trip(body, BlockBody::decode_with, |(v, how)| Ok(v.encode_with(*how))),
        5 => check_round_trip(body, StatsParameters::decode, |v| Ok(v.encode())),
        6 => check_round_trip(body, |b| ListEntry::decode_all(&b), |v| ListEntry::encode_all(v)),
        7 => check_round_trip(body, |b| StatsAnswer::decode(&b), StatsAnswer::encode),
        8 => check_round_trip(body, |b| JoinParams::parse(&b), encode_json),
        9 => check_round_trip(body, |b| decode_json::<Item>(&b, "an item"), encode_json),
        10 => check_round_trip(body, |b| ParticipantNote::parse(&b), encode_json),
        11 => check_restored(&body),
        12 => check_round_trip(body, Probe::decode, |v| Ok(v.encode())),
        13 => check_round_trip(body, ProbeResult::decode, |v| Ok(v.encode())),
        14 => check_probe(&body),
        15 => check_round_trip(body, GeometryParameters::decode, |v| Ok(v.encode())),
        16 => check_round_trip(body, GeometryBody::decode, |v| Ok(v.encode())),
        _ => {}
    }
}

/// Checks that a probe is no datagram of QUIC, and that its header is encoded as it was.
fn check_probe(datagram: &[u8]) {
    let Some(packet) = ProbePacket::read(datagram) else { return };
    assert!(!is_quic(datagram));
    assert!(datagram.starts_with(&packet.header()));
}

/// Restores a block from its body (with a byte for its length) and its bulk: the size is as announced, and compressing and
/// restoring again gives the same.
fn check_restored(bytes: &[u8]) {
    let Some((&head, rest)) = bytes.split_first() else { return };
    let Some((head, carried)) = rest.split_at_checked(usize::from(head)) else { return };
    let Ok((_, Some(how))) = BlockBody::decode_with(Bytes::copy_from_slice(head)) else { return };
    let Compressed { algorithm, width, plain_bytes } = how;
    let Ok(plain) = how.restore(carried) else { return };
    assert_eq!(plain.len(), plain_bytes as usize);
    if let Some((how, again)) = (CompressionMethod { algorithm, level: 1, width }).compress(&plain) {
        assert_eq!(how.restore(&again).expect("what was compressed is restored"), plain);
    }
}

/// Checks that decoding, encoding and decoding again gives the same value.
pub(crate) fn check_round_trip<T>(
    bytes: Bytes,
    decode: impl Fn(Bytes) -> Result<T>,
    encode: impl Fn(&T) -> Result<Bytes>,
) {
    let Ok(value) = decode(bytes) else { return };
    let written = encode(&value).expect("what was read can be written");
    let again = decode(written.clone()).expect("what was written can be read");
    assert_eq!(encode(&again).expect("and written again"), written, "reading changed the value");
}
