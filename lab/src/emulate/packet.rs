//! Packets as a TUN device with offload reads and writes them: a virtio header, then IP; TCP in super-packets of up to
//! 64 KB, whose segments are lost or delayed one by one.
//!
//! A super-packet is kept whole. Segments of it that arrive together leave together, under a new header, as a network
//! card presents them. Layout: virtio 1.2 section 5.1.6.1 (the first 10 bytes), RFC 791, RFC 9293. Packets come from
//! the kernel of this machine, but their lengths are checked.

use std::io::IoSlice;
use std::ops::Range;

/// Size of the virtio header.
pub(super) const VIRTIO_BYTES: usize = 10;
/// Size of the largest packet of a device.
pub(super) const MAX_PACKET_BYTES: usize = VIRTIO_BYTES + 65_535;
const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
/// Virtio and both headers with all options.
const MAX_HEADER_BYTES: usize = VIRTIO_BYTES + 60 + 60;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_ECN: u8 = 0x80;
const PROTOCOL_TCP: u8 = 6;
const FIN_AND_PUSH: u8 = 0x01 | 0x08;
const CWR: u8 = 0x80;

/// One packet of a device, of one or more segments.
#[derive(Debug)]
pub(super) struct DevicePacket {
    bytes: Vec<u8>,
    /// Bytes of the headers of IP and TCP together, where there are segments.
    header_bytes: usize,
    /// Payload per segment; 0 for a packet of one segment.
    segment_bytes: usize,
    segments: usize,
}

impl DevicePacket {
    /// Parses a packet of a device; `None` if it is not IPv4 or is inconsistent.
    pub(super) fn parse(bytes: Vec<u8>) -> Option<Self> {
        let ip = bytes.get(VIRTIO_BYTES..)?;
        let header = usize::from(*ip.first()? & 0x0F) * 4;
        if ip[0] >> 4 != 4 || header < IP_BYTES || ip.len() < header {
            return None;
        }
        match bytes[1] & !GSO_ECN {
            GSO_NONE => Some(Self { bytes, header_bytes: 0, segment_bytes: 0, segments: 1 }),
            GSO_TCP4 => {
                let tcp = ip.get(header..).filter(|tcp| tcp.len() >= TCP_BYTES && ip[9] == PROTOCOL_TCP)?;
                let header_bytes = header + usize::from(tcp[12] >> 4) * 4;
                let segment_bytes = usize::from(u16::from_le_bytes([bytes[4], bytes[5]]));
                let payload = ip.len().checked_sub(header_bytes)?;
                if header_bytes < header + TCP_BYTES || segment_bytes == 0 {
                    return None;
                }
                let segments = payload.div_ceil(segment_bytes).max(1);
                Some(Self { bytes, header_bytes, segment_bytes, segments })
            }
            _ => None,
        }
    }

    /// Returns the number of packets on the link.
    pub(super) fn segments(&self) -> usize {
        self.segments
    }

    /// Returns the IP bytes of a segment.
    pub(super) fn bytes_of(&self, segment: usize) -> usize {
        if self.segments == 1 {
            return self.bytes.len() - VIRTIO_BYTES;
        }
        self.header_bytes + self.payload(segment..segment + 1).len()
    }

    /// Returns the last byte of the destination address.
    pub(super) fn destination_host(&self) -> u8 {
        self.bytes[VIRTIO_BYTES + 19]
    }

    /// Returns its size in memory, bytes.
    pub(super) fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the range of the payload of some segments in the packet.
    fn payload(&self, segments: Range<usize>) -> Range<usize> {
        let begin = VIRTIO_BYTES + self.header_bytes;
        let at = |segment: usize| (begin + segment * self.segment_bytes).min(self.bytes.len());
        at(segments.start)..at(segments.end)
    }

    /// Passes some successive segments, as one packet, to `write`.
    pub(super) fn emit<T>(&self, segments: Range<usize>, write: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        if segments.len() == self.segments {
            return write(&[IoSlice::new(&self.bytes)]);
        }
        let mut header = [0; MAX_HEADER_BYTES];
        let header = &mut header[..VIRTIO_BYTES + self.header_bytes];
        header.copy_from_slice(&self.bytes[..VIRTIO_BYTES + self.header_bytes]);
        let payload = &self.bytes[self.payload(segments.clone())];
        self.rewrite(header, &segments, payload.len());
        write(&[IoSlice::new(header), IoSlice::new(payload)])
    }

    /// Changes the header of the whole packet to that of some segments.
    fn rewrite(&self, header: &mut [u8], segments: &Range<usize>, payload_bytes: usize) {
        let (virtio, ip) = header.split_at_mut(VIRTIO_BYTES);
        if payload_bytes <= self.segment_bytes {
            virtio[1] = GSO_NONE;
            virtio[4..6].fill(0);
        }
        let ip_header = usize::from(ip[0] & 0x0F) * 4;
        let total = u16::try_from(ip.len() + payload_bytes).unwrap_or(u16::MAX);
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        let skipped = u16::try_from(segments.start).unwrap_or(u16::MAX);
        let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(skipped);
        ip[4..6].copy_from_slice(&id.to_be_bytes());
        let (ip, tcp) = ip.split_at_mut(ip_header);
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        let skipped = u32::try_from(segments.start * self.segment_bytes).unwrap_or(u32::MAX);
        tcp[4..8].copy_from_slice(&sequence.wrapping_add(skipped).to_be_bytes());
        if segments.end < self.segments {
            tcp[13] &= !FIN_AND_PUSH;
        }
        if segments.start > 0 {
            tcp[13] &= !CWR;
        }
        virtio[0] |= NEEDS_CHECKSUM;
        let tcp_bytes = u16::try_from(tcp.len() + payload_bytes).unwrap_or(u16::MAX);
        tcp[16..18].copy_from_slice(&pseudo_header_sum(ip, tcp_bytes).to_be_bytes());
        ip[10..12].fill(0);
        let sum = !sum(ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Returns the value that a device expects in the TCP checksum field before it completes it: the sum of the pseudo header.
fn pseudo_header_sum(ip: &[u8], tcp_bytes: u16) -> u16 {
    let mut pseudo = [0; 12];
    pseudo[..8].copy_from_slice(&ip[12..20]);
    pseudo[9] = PROTOCOL_TCP;
    pseudo[10..].copy_from_slice(&tcp_bytes.to_be_bytes());
    sum(&pseudo)
}

/// Returns the sum of the Internet checksum (RFC 1071), not complemented. The length of `bytes` is even.
fn sum(bytes: &[u8]) -> u16 {
    let total: u32 =
        bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (total & 0xFFFF) + (total >> 16);
    #[expect(clippy::cast_possible_truncation, reason = "carried over twice, it has 16 bits")]
    let folded = ((folded & 0xFFFF) + (folded >> 16)) as u16;
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: usize = 1448;
    const SEQUENCE: u32 = u32::MAX - 2000;

    /// A TCP super-packet with `payload` bytes and a timestamp option, FIN, PSH, CWR and ACK set.
    fn super_packet(payload: usize) -> Vec<u8> {
        let mut ip = vec![0; 20 + 32];
        let total = u16::try_from(ip.len() + payload).expect("fits");
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        ip[4..6].copy_from_slice(&65_535u16.to_be_bytes());
        (ip[8], ip[9]) = (64, PROTOCOL_TCP);
        ip[12..20].copy_from_slice(&[10, 77, 0, 1, 10, 77, 0, 2]);
        ip[24..28].copy_from_slice(&SEQUENCE.to_be_bytes());
        ip[32] = 8 << 4;
        ip[33] = CWR | 0x10 | FIN_AND_PUSH;
        let mut bytes = vec![NEEDS_CHECKSUM, GSO_TCP4, 52, 0];
        bytes.extend(u16::try_from(MSS).expect("fits").to_le_bytes());
        bytes.extend([20, 0, 16, 0]);
        bytes.extend(ip);
        bytes.extend((0..payload).map(|i| u8::try_from(i % 251).expect("fits")));
        bytes
    }

    fn emitted(packet: &DevicePacket, segments: Range<usize>) -> Vec<u8> {
        packet.emit(segments, |parts| parts.iter().flat_map(|part| part.iter().copied()).collect())
    }

    #[test]
    fn a_packet_without_segments_passes_unchanged() {
        let mut bytes = super_packet(100);
        bytes[1] = GSO_NONE;
        let packet = DevicePacket::parse(bytes.clone()).unwrap();
        assert_eq!((packet.segments(), packet.bytes_of(0)), (1, 152));
        assert_eq!(emitted(&packet, 0..1), bytes);
        assert_eq!(packet.destination_host(), 2);
    }

    #[test]
    fn all_segments_together_are_the_packet_itself() {
        let bytes = super_packet(10_000);
        let packet = DevicePacket::parse(bytes.clone()).unwrap();
        assert_eq!(packet.segments(), 7);
        assert_eq!(packet.bytes_of(0), 52 + MSS);
        assert_eq!(packet.bytes_of(6), 52 + 10_000 - 6 * MSS);
        assert_eq!(emitted(&packet, 0..7), bytes);
    }

    #[test]
    fn segments_have_consecutive_headers() {
        let whole = super_packet(10_000);
        let packet = DevicePacket::parse(whole.clone()).unwrap();
        let mut payload = Vec::new();
        for segments in [0..1, 1..4, 4..7] {
            let part = emitted(&packet, segments.clone());
            let again = DevicePacket::parse(part.clone()).expect("a packet as well");
            let ip = &part[VIRTIO_BYTES..];
            assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), ip.len());
            assert_eq!(sum(&ip[..20]), 0xFFFF, "the checksum of IP");
            let sequence = u32::from_be_bytes([ip[24], ip[25], ip[26], ip[27]]);
            assert_eq!(sequence, SEQUENCE.wrapping_add(u32::try_from(payload.len()).unwrap()));
            let id = u16::from_be_bytes([ip[4], ip[5]]);
            assert_eq!(id, 65_535u16.wrapping_add(u16::try_from(segments.start).unwrap()));
            assert_eq!(ip[33] & FIN_AND_PUSH != 0, segments.end == 7, "ends with the last");
            assert_eq!(ip[33] & CWR != 0, segments.start == 0);
            assert_eq!(again.segments(), segments.len());
            payload.extend_from_slice(&ip[52..]);
        }
        assert_eq!(payload, whole[VIRTIO_BYTES + 52..]);
    }

    #[test]
    fn inconsistent_packets_are_rejected() {
        assert!(DevicePacket::parse(vec![]).is_none());
        assert!(DevicePacket::parse(vec![0; VIRTIO_BYTES]).is_none());
        let broken = |change: fn(&mut Vec<u8>)| {
            let mut bytes = super_packet(3000);
            change(&mut bytes);
            DevicePacket::parse(bytes)
        };
        assert!(broken(|b| b[VIRTIO_BYTES] = 0x65).is_none(), "IPv6");
        assert!(broken(|b| b[VIRTIO_BYTES] = 0x44).is_none(), "a short IP header");
        assert!(broken(|b| b[VIRTIO_BYTES + 32] = 0x40).is_none(), "a short TCP header");
        assert!(broken(|b| b[4..6].fill(0)).is_none(), "segments of nothing");
        assert!(broken(|b| b[1] = 4).is_none(), "an offload that was not agreed");
        assert!(broken(|b| b.truncate(VIRTIO_BYTES + 30)).is_none(), "cut off");
    }

    #[test]
    fn truncated_packets_cause_no_panic() {
        let whole = super_packet(5000);
        for end in 0..200 {
            if let Some(packet) = DevicePacket::parse(whole[..end].to_vec()) {
                for segment in 0..packet.segments() {
                    assert!(packet.bytes_of(segment) <= end);
                    emitted(&packet, segment..segment + 1);
                }
            }
        }
    }
}
