//! TLS of the stack on a server, with counters of packets that its keys reject and of packets that were
//! decrypted before. The stack's own session and keys do the work; their results are passed on unchanged.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use quinn::ConnectionId;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::crypto::{
    CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{Side, TransportError};

use super::rejected::RejectionCounters;

/// TLS configuration of a server whose sessions count packets that fail authentication and replayed packets.
pub(super) struct CountingCrypto {
    inner: Arc<QuicServerConfig>,
    rejections: Arc<RejectionCounters>,
}

impl CountingCrypto {
    pub(super) fn new(inner: QuicServerConfig, rejections: Arc<RejectionCounters>) -> Self {
        Self { inner: Arc::new(inner), rejections }
    }
}

impl ServerConfig for CountingCrypto {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        let keys = self.inner.initial_keys(version, dst_cid)?;
        Ok(PacketNumberSpace::new(&self.rejections).watch_all(keys))
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        let inner = Arc::clone(&self.inner).start_session(version, params);
        let rejections = Arc::clone(&self.rejections);
        let data = PacketNumberSpace::new(&rejections);
        Box::new(CountingSession { inner, rejections, data, has_handshake_keys: false })
    }
}

struct CountingSession {
    inner: Box<dyn Session>,
    rejections: Arc<RejectionCounters>,
    /// Packet numbers of application data. 0-RTT and 1-RTT packets share one number space, whatever keys they are
    /// under.
    data: PacketNumberSpace,
    has_handshake_keys: bool,
}

impl Session for CountingSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        PacketNumberSpace::new(&self.rejections).watch_all(self.inner.initial_keys(dst_cid, side))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let (header, packet) = self.inner.early_crypto()?;
        Some((header, self.data.watch(packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    /// The first keys are those of the handshake, the later ones those of application data.
    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(buf)?;
        let is_data = std::mem::replace(&mut self.has_handshake_keys, true);
        let numbers = if is_data { self.data.clone() } else { PacketNumberSpace::new(&self.rejections) };
        Some(numbers.watch_all(keys))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let KeyPair { local, remote } = self.inner.next_1rtt_keys()?;
        Some(KeyPair { local, remote: self.data.watch(remote) })
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

/// Packet number space.
#[derive(Clone)]
struct PacketNumberSpace {
    opened: Arc<Mutex<OpenedPackets>>,
    rejections: Arc<RejectionCounters>,
}

impl PacketNumberSpace {
    fn new(rejections: &Arc<RejectionCounters>) -> Self {
        Self { opened: Arc::default(), rejections: Arc::clone(rejections) }
    }

    /// Wraps a key to count the packets that it decrypts.
    fn watch(&self, inner: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
        Box::new(CountingKey { inner, numbers: self.clone() })
    }

    /// Wraps the key of the receiving direction; the other key is passed on unchanged.
    fn watch_all(&self, keys: Keys) -> Keys {
        let KeyPair { local, remote } = keys.packet;
        Keys { header: keys.header, packet: KeyPair { local, remote: self.watch(remote) } }
    }
}

/// Numbers of decrypted packets, as far back as the stack tracks them.
#[derive(Debug, Default)]
struct OpenedPackets {
    /// Number after the highest decrypted one.
    next: u64,
    /// Decrypted numbers below the highest one, as bits; the lowest bit is the nearest number.
    below: u128,
}

impl OpenedPackets {
    /// Records a packet; false when it was decrypted before, or is too old to be known.
    fn is_first(&mut self, number: u64) -> bool {
        if let Some(beyond) = number.checked_sub(self.next) {
            let beyond = u32::try_from(beyond).unwrap_or(u32::MAX);
            self.below = (self.below << 1 | 1).checked_shl(beyond).unwrap_or(0);
            self.next = number + 1;
            return true;
        }
        let Some(back) = (self.next - 1 - number).checked_sub(1) else { return false };
        let bit = u32::try_from(back).ok().and_then(|back| 1_u128.checked_shl(back));
        let is_first = bit.is_some_and(|bit| self.below & bit == 0);
        self.below |= bit.unwrap_or(0);
        is_first
    }
}

struct CountingKey {
    inner: Box<dyn PacketKey>,
    numbers: PacketNumberSpace,
}

impl PacketKey for CountingKey {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        self.inner.encrypt(packet, buf, header_len);
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let opened = self.inner.decrypt(packet, header, payload);
        if opened.is_err() {
            self.numbers.rejections.note_unauthenticated();
        } else if !self.numbers.opened.lock().unwrap_or_else(PoisonError::into_inner).is_first(packet) {
            self.numbers.rejections.note_replayed();
        }
        opened
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_opened_once_in_whatever_order_they_come() {
        let mut opened = OpenedPackets::default();
        for number in [0, 5, 3, 4, 200, 199, 73] {
            assert!(opened.is_first(number), "{number}");
            assert!(!opened.is_first(number), "{number} again");
        }
        assert!(opened.is_first(72) && !opened.is_first(71), "too late to be told");
        assert!(opened.is_first(1 << 61) && !opened.is_first(200));
        assert!(opened.is_first((1 << 61) - 128) && !opened.is_first((1 << 61) - 129));
    }
}
