//! Encoding of datagrams.
//!
//! ```text
//! bulk     0x01 u8 · number varint · op u32 · item varint · bulk length varint · CRC-32C of the bulk u32
//!          · offset varint · body short · bytes
//! parity   0x02 u8 · first number varint · datagrams u8 · parities u8 · which u8 · bytes
//! ```

use bytes::Bytes;
use wire::limits::{MAX_ITEM_BULK_BYTES, MAX_PART_BODY_BYTES};
use wire::{BulkPart, ByteReader, ByteWriter, Error, ItemHead, OpId, Result};

use super::redundancy::GROUP;

/// Limit of numbers, exclusive, so that no sum overflows.
const MAX_NUMBER: u64 = 1 << 56;

const BULK: u8 = 0x01;
const PARITY: u8 = 0x02;

/// Datagram of bulk or parity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datagram {
    /// Part of an item's bulk.
    Bulk {
        /// Number in the order of first transmission.
        number: u64,
        /// Bulk with its item and offset.
        part: BulkPart,
    },
    /// Parity of consecutive datagrams.
    Parity {
        /// Number of the first datagram.
        first: u64,
        /// Number of datagrams, 1 to [`GROUP`].
        datagrams: u8,
        /// Number of parity datagrams of the group, at least 1.
        parities: u8,
        /// Index of this parity datagram.
        which: u8,
        /// Parity bytes; all parities of a group are equally long.
        shard: Bytes,
    },
}

/// Header of a parity datagram, bytes at most.
pub(super) const PARITY_HEAD_BYTES: usize = 1 + 10 + 3;

/// Writes the header of a bulk datagram: all fields before the bytes.
pub(super) fn bulk_head(number: u64, head: &ItemHead, offset: u64) -> ByteWriter {
    let mut w = ByteWriter::new();
    w.u8(BULK).varint(number).u32(head.op.0).varint(head.item.into()).varint(head.bulk_bytes);
    w.u32(head.bulk_crc32c).varint(offset).short(&head.body);
    w
}

impl Datagram {
    /// Encodes the datagram.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        match self {
            Self::Bulk { number, part: BulkPart { head, offset, bytes } } => {
                let mut w = bulk_head(*number, head, *offset);
                w.raw(bytes);
                w.finish()
            }
            Self::Parity { first, datagrams, parities, which, shard } => {
                let mut w = ByteWriter::new();
                w.u8(PARITY).varint(*first).u8(*datagrams).u8(*parities).u8(*which).raw(shard);
                w.finish()
            }
        }
    }

    /// Decodes a datagram. Bulk and body share its memory.
    ///
    /// # Errors
    /// `Corrupt` for an invalid datagram.
    pub fn decode(datagram: Bytes) -> Result<Self> {
        let mut r = ByteReader::new(datagram);
        match r.u8("kind of datagram")? {
            BULK => Self::decode_bulk(r),
            PARITY => Self::decode_parity(r),
            other => Err(Error::corrupt(format!("expected a known kind of datagram, found {other:#04x}"))),
        }
    }

    fn decode_bulk(mut r: ByteReader) -> Result<Self> {
        let number = number(&mut r)?;
        let (op, item) = (OpId(r.u32("op")?), r.varint_u32("item")?);
        let (bulk_bytes, bulk_crc32c) = (r.varint("bulk length")?, r.u32("checksum")?);
        let offset = r.varint("offset")?;
        let body = r.short("body", MAX_PART_BODY_BYTES)?;
        let bytes = r.rest();
        let end = offset.saturating_add(bytes.len() as u64);
        if bytes.is_empty() || end > bulk_bytes || bulk_bytes > MAX_ITEM_BULK_BYTES {
            return Err(Error::corrupt(format!(
                "expected bulk within at most {MAX_ITEM_BULK_BYTES} bytes, found {} at {offset} of {bulk_bytes}",
                bytes.len()
            )));
        }
        let head = ItemHead { op, item, body, bulk_bytes, bulk_crc32c };
        Ok(Self::Bulk { number, part: BulkPart { head, offset, bytes } })
    }

    fn decode_parity(mut r: ByteReader) -> Result<Self> {
        let first = number(&mut r)?;
        let (datagrams, parities) = (r.u8("datagrams")?, r.u8("parities")?);
        let which = r.u8("which parity")?;
        let shard = r.rest();
        if datagrams == 0 || usize::from(datagrams) > GROUP || which >= parities || shard.is_empty() {
            return Err(Error::corrupt(format!(
                "expected parity of 1 to {GROUP} datagrams, found number {which} of {parities} of {datagrams}, {} bytes",
                shard.len()
            )));
        }
        Ok(Self::Parity { first, datagrams, parities, which, shard })
    }
}

fn number(r: &mut ByteReader) -> Result<u64> {
    let number = r.varint("number")?;
    if number < MAX_NUMBER {
        return Ok(number);
    }
    Err(Error::corrupt(format!("expected a number below {MAX_NUMBER}, found {number}")))
}
