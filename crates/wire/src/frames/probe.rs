//! Packet trains that measure a path: the format of their packets and of the operation
//! [`PROBE`](crate::ops::PROBE).
//!
//! The packets are sent between the ports of a QUIC connection and contain no data. Their first two bits are
//! zero, which no packet of QUIC begins with (RFC 9000, section 17, as long as RFC 9287 is not agreed on).
//! Expected trains are announced on the connection; all others are dropped. Outside this module: the times of trains,
//! and the evaluation of their arrivals.

use array::{Error, Result};
use bytes::Bytes;

use crate::frames::codec::{ByteReader, ByteWriter};

/// First byte of every packet of a train.
pub const KIND: u8 = 0x0C;
/// Size of a packet's header, bytes; the rest of the packet is zero.
pub const HEADER_BYTES: usize = 19;
/// Most packets of one train.
pub const MAX_PACKETS: u16 = 513;
/// Fewest packets of one train: the time between them is measured.
pub const MIN_PACKETS: u16 = 2;

/// Returns whether a datagram belongs to the QUIC stack; packets of trains never do.
#[must_use]
pub fn is_quic(datagram: &[u8]) -> bool {
    datagram.first().is_none_or(|first| first & 0xC0 != 0)
}

/// Packet of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePacket {
    /// Number of the train, random and announced before.
    pub train: u64,
    /// Position in the train, from 0.
    pub number: u16,
    /// Send time by the sender's clock, microseconds since 1970.
    pub sent_micros: u64,
}

impl ProbePacket {
    /// Encodes the header.
    #[must_use]
    pub fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[0] = KIND;
        header[1..9].copy_from_slice(&self.train.to_le_bytes());
        header[9..11].copy_from_slice(&self.number.to_le_bytes());
        header[11..].copy_from_slice(&self.sent_micros.to_le_bytes());
        header
    }

    /// Decodes a datagram; `None` where it is no packet of a train.
    #[must_use]
    pub fn read(datagram: &[u8]) -> Option<Self> {
        let (&kind, rest) = datagram.split_first()?;
        let (train, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (sent, _) = rest.split_first_chunk()?;
        let number = u16::from_le_bytes(*number);
        let packet =
            Self { train: u64::from_le_bytes(*train), number, sent_micros: u64::from_le_bytes(*sent) };
        (kind == KIND && number < MAX_PACKETS).then_some(packet)
    }
}

/// Direction of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeDirection {
    /// From the server to the client.
    Down,
    /// From the client to the server, which reports the arrivals.
    Up,
}

/// Parameters of a probe: a train is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Direction of the train.
    pub direction: ProbeDirection,
    /// Random number by which its packets are recognized.
    pub train: u64,
    /// Number of packets, [`MIN_PACKETS`] to [`MAX_PACKETS`].
    pub packets: u16,
}

impl Probe {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = ByteWriter::new();
        out.u8(u8::from(self.direction == ProbeDirection::Up)).u64(self.train).u16(self.packets);
        out.finish()
    }

    /// Decodes parameters.
    ///
    /// # Errors
    /// `Corrupt` for invalid parameters.
    pub fn decode(bytes: Bytes) -> Result<Self> {
        let mut fields = ByteReader::new(bytes);
        let direction = match fields.u8("direction")? {
            0 => ProbeDirection::Down,
            1 => ProbeDirection::Up,
            other => return Err(Error::corrupt(format!("expected direction 0 or 1, found {other}"))),
        };
        let (train, packets) = (fields.u64("train")?, fields.u16("packets")?);
        if !(MIN_PACKETS..=MAX_PACKETS).contains(&packets) {
            return Err(Error::corrupt(format!(
                "expected {MIN_PACKETS} to {MAX_PACKETS} packets, found {packets}"
            )));
        }
        Ok(Self { direction, train, packets })
    }
}

/// Arrival of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeArrival {
    /// Position in the train.
    pub number: u16,
    /// Size of the packet, UDP payload in bytes.
    pub size_bytes: u16,
    /// Send time by the sender's clock, microseconds since 1970.
    pub sent_micros: u64,
    /// Read time by the receiver's clock; packets that were read together have the same.
    pub received_micros: u64,
}

/// Body of the answer: the number of packets sent for a train down, the arrivals for a train up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeResult {
    /// Packets that the answering side sent.
    pub sent: u16,
    /// Packets that arrived, in order.
    pub arrivals: Vec<ProbeArrival>,
}

impl ProbeResult {
    /// Encodes the body.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = ByteWriter::new();
        out.u16(self.sent).varint(self.arrivals.len() as u64);
        for arrival in &self.arrivals {
            out.u16(arrival.number).u16(arrival.size_bytes);
            out.u64(arrival.sent_micros).u64(arrival.received_micros);
        }
        out.finish()
    }

    /// Decodes a body.
    ///
    /// # Errors
    /// `Corrupt` for an invalid body.
    pub fn decode(bytes: Bytes) -> Result<Self> {
        let mut fields = ByteReader::new(bytes);
        let (sent, count) = (fields.u16("sent")?, fields.varint_usize("arrivals")?);
        if sent > MAX_PACKETS || count > usize::from(MAX_PACKETS) {
            return Err(Error::corrupt(format!(
                "expected at most {MAX_PACKETS} packets, found {sent} sent and {count} arrived"
            )));
        }
        let mut arrivals = Vec::with_capacity(count);
        for _ in 0..count {
            arrivals.push(ProbeArrival {
                number: fields.u16("number")?,
                size_bytes: fields.u16("size")?,
                sent_micros: fields.u64("sent at")?,
                received_micros: fields.u64("received at")?,
            });
        }
        Ok(Self { sent, arrivals })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_what_was_written_and_never_quic() {
        let packet =
            ProbePacket { train: u64::MAX - 3, number: MAX_PACKETS - 1, sent_micros: 1_795_000_000_000_000 };
        let mut datagram = packet.header().to_vec();
        datagram.resize(1200, 0);
        assert_eq!(ProbePacket::read(&datagram), Some(packet));
        assert!(!is_quic(&datagram));
        assert_eq!(ProbePacket::read(&datagram[..HEADER_BYTES - 1]), None);
        let beyond = ProbePacket { number: MAX_PACKETS, ..packet };
        assert_eq!(ProbePacket::read(&beyond.header()), None);
        for quic in [0x40_u8, 0x7F, 0xC3, 0xFF] {
            datagram[0] = quic;
            assert!(is_quic(&datagram) && ProbePacket::read(&datagram).is_none(), "{quic}");
        }
    }

    #[test]
    fn too_many_packets_are_turned_down() {
        let probe = Probe { direction: ProbeDirection::Up, train: 7, packets: MAX_PACKETS };
        assert_eq!(Probe::decode(probe.encode()).unwrap(), probe);
        for packets in [0, 1, MAX_PACKETS + 1, u16::MAX] {
            assert!(Probe::decode(Probe { packets, ..probe }.encode()).is_err(), "{packets}");
        }
        let arrival = ProbeArrival { number: 1, size_bytes: 1200, sent_micros: 5, received_micros: 9 };
        let of = |count: usize| ProbeResult { sent: 0, arrivals: vec![arrival; count] };
        let most = usize::from(MAX_PACKETS);
        assert_eq!(ProbeResult::decode(of(most).encode()).unwrap(), of(most));
        assert!(ProbeResult::decode(of(most + 1).encode()).is_err());
    }
}
