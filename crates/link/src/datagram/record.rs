//! Records: control messages about datagrams, in both directions. They are sent reliably and in order, each
//! preceded by its length, `u32`.
//!
//! ```text
//! from the server   0x01 mark · next varint           all numbers below it have left
//!                   0x02 void · number varint · bytes varint      was withdrawn and will not be sent again
//!                   0x03 gone · bytes varint          of bulk that was cancelled before it had a number
//!                   0x04 repair · a datagram of bulk  that is too long for the path now
//! from the client   0x11 want · redundancy u8
//!                   0x13 cancel · op u32           this operation was withdrawn
//!                   0x12 report · settled varint · count varint · runs: since the last one varint, length varint
//! ```

use std::ops::Range;

use bytes::Bytes;
use wire::{ByteReader, ByteWriter, Error, OpId, Result};

/// Most runs of missing numbers in one report; the next report requests the rest.
pub const MAX_ASKED_RUNS: usize = 1_024;

mod kind {
    pub(super) const MARK: u8 = 0x01;
    pub(super) const VOID: u8 = 0x02;
    pub(super) const GONE: u8 = 0x03;
    pub(super) const REPAIR: u8 = 0x04;
    pub(super) const WANT: u8 = 0x11;
    pub(super) const REPORT: u8 = 0x12;
    pub(super) const CANCEL: u8 = 0x13;
}

/// Control message about datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatagramRecord {
    /// All numbers below this one were sent.
    Mark(u64),
    /// Number whose bulk was cancelled.
    Void {
        /// Number of the datagram.
        number: u64,
        /// Size of its bulk, bytes.
        bytes: u64,
    },
    /// Bytes of bulk that were cancelled before they had a number.
    Gone(u64),
    /// Missing bulk datagram that has become too long for the path.
    Repair(Bytes),
    /// Request of the client for bulk in datagrams.
    Want {
        /// Send parity.
        redundancy: bool,
    },
    /// Withdrawal of an operation, also after the server has ended it.
    Cancel(OpId),
    /// Report of the numbers that have arrived and of those that have not.
    Report {
        /// Numbers below this one are settled: they are not requested any more.
        settled: u64,
        /// Numbers that are missing and requested now, in ascending order.
        missing: Vec<Range<u64>>,
    },
}

impl DatagramRecord {
    /// Encodes the record, with its length in front.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut w = ByteWriter::new();
        match self {
            Self::Mark(next) => {
                w.u8(kind::MARK).varint(*next);
            }
            Self::Void { number, bytes } => {
                w.u8(kind::VOID).varint(*number).varint(*bytes);
            }
            Self::Gone(bytes) => {
                w.u8(kind::GONE).varint(*bytes);
            }
            Self::Repair(datagram) => {
                w.u8(kind::REPAIR).raw(datagram);
            }
            Self::Want { redundancy } => {
                w.u8(kind::WANT).u8(u8::from(*redundancy));
            }
            Self::Cancel(op) => {
                w.u8(kind::CANCEL).u32(op.0);
            }
            Self::Report { settled, missing } => {
                w.u8(kind::REPORT).varint(*settled).varint(missing.len() as u64);
                missing.iter().fold(*settled, |last, run| {
                    w.varint(run.start - last).varint(run.end - run.start);
                    run.end
                });
            }
        }
        let record = w.finish();
        let mut framed = ByteWriter::new();
        framed.bytes(&record);
        framed.finish()
    }

    /// Decodes a record, without its length.
    ///
    /// # Errors
    /// `Corrupt` for an invalid record.
    pub fn decode(record: Bytes) -> Result<Self> {
        let mut r = ByteReader::new(record);
        Ok(match r.u8("kind of record")? {
            kind::MARK => Self::Mark(r.varint("next")?),
            kind::VOID => Self::Void { number: r.varint("number")?, bytes: r.varint("bytes")? },
            kind::GONE => Self::Gone(r.varint("bytes")?),
            kind::REPAIR => Self::Repair(r.rest()),
            kind::WANT => Self::Want { redundancy: r.u8("redundancy")? != 0 },
            kind::CANCEL => Self::Cancel(OpId(r.u32("op")?)),
            kind::REPORT => {
                let settled = r.varint("settled")?;
                let count = r.varint_usize("count")?;
                if count > MAX_ASKED_RUNS {
                    return Err(Error::corrupt(format!(
                        "expected at most {MAX_ASKED_RUNS} runs of missing numbers, found {count}"
                    )));
                }
                let mut last = settled;
                let run = |_| run(&mut r, &mut last);
                Self::Report { settled, missing: (0..count).map(run).collect::<Result<_>>()? }
            }
            other => return Err(Error::corrupt(format!("expected a known record, found {other:#04x}"))),
        })
    }
}

fn run(r: &mut ByteReader, last: &mut u64) -> Result<Range<u64>> {
    let too_large = || Error::corrupt("expected numbers below 2^64, found larger ones");
    let start = last.checked_add(r.varint("run")?).ok_or_else(too_large)?;
    let end = start.checked_add(r.varint("length")?).ok_or_else(too_large)?;
    *last = end;
    Ok(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_what_the_document_says() {
        let hex = |record: &DatagramRecord| {
            record.encode().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
        };
        let all = [
            (DatagramRecord::Mark(300), "0300000001ac02"),
            (DatagramRecord::Void { number: 7, bytes: 1_400 }, "040000000207f80a"),
            (DatagramRecord::Gone(5), "020000000305"),
            (DatagramRecord::Repair(Bytes::from_static(b"\x01\x02")), "03000000040102"),
            (DatagramRecord::Want { redundancy: true }, "020000001101"),
            (DatagramRecord::Cancel(OpId(258)), "050000001302010000"),
            (DatagramRecord::Report { settled: 3, missing: vec![3..4, 10..12] }, "07000000120302000106 02"),
        ];
        for (record, expected) in all {
            assert_eq!(hex(&record), expected.replace(' ', ""), "{record:?}");
            assert_eq!(DatagramRecord::decode(record.encode().slice(4..)).unwrap(), record);
        }
    }

    #[test]
    fn an_invalid_record_is_corrupt() {
        let mut many = ByteWriter::new();
        many.u8(0x12).varint(0).varint(1_025);
        let mut beyond = ByteWriter::new();
        beyond.u8(0x12).varint(5).varint(1).varint(u64::MAX).varint(1);
        for bytes in [&b""[..], &[0x80], &[0x12, 1], &many.finish(), &beyond.finish()] {
            assert!(DatagramRecord::decode(Bytes::copy_from_slice(bytes)).is_err(), "{bytes:?}");
        }
    }
}
