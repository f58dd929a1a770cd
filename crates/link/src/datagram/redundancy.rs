//! Parity of datagrams by a Reed-Solomon code: a group of datagrams can be restored from any of its datagrams
//! and parities that are as many as its datagrams.
//!
//! A *shard* is a datagram after its length (`u16`), padded with zeros to the longest of its group. A group
//! is the next [`GROUP`] numbers, or fewer when there is nothing more to send; a short group waits a little
//! for more datagrams, because small groups need relatively more parity.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};

use super::Datagram;

/// Most datagrams of one group.
pub const GROUP: usize = 128;
/// Smallest group that ends as soon as nothing more is to be sent.
pub(super) const LEAST_GROUP: usize = 32;
/// Most incomplete groups whose parity is kept; the oldest is given up beyond that.
const MAX_GROUPS: usize = 8;
/// Most datagrams kept for groups whose parity has not arrived.
const KEPT: u64 = 4 * GROUP as u64;
/// Size of the length in front of a datagram in its shard, bytes.
pub(super) const LENGTH_BYTES: usize = 2;

/// Number of parities of a group. At 1 % loss, at most one group in ten thousand cannot be restored; a full
/// group has 8 % more bytes.
#[must_use]
pub fn parities(datagrams: usize) -> usize {
    2 + datagrams.div_ceil(16)
}

fn shard(datagram: &[u8], shard_bytes: usize) -> BytesMut {
    let mut shard = BytesMut::with_capacity(shard_bytes);
    shard.put_u16_le(u16::try_from(datagram.len()).unwrap_or(u16::MAX));
    shard.put_slice(datagram);
    shard.resize(shard_bytes, 0);
    shard
}

/// Extracts the datagram from a shard.
fn datagram(shard: Vec<u8>) -> Option<Bytes> {
    let length = usize::from(u16::from_le_bytes(*shard.first_chunk()?));
    let end = length.checked_add(LENGTH_BYTES).filter(|end| *end <= shard.len())?;
    Some(Bytes::from(shard).slice(LENGTH_BYTES..end))
}

/// Current group of the sender.
#[derive(Debug, Default)]
pub(super) struct ParityEncoder {
    first: u64,
    group: Vec<Bytes>,
}

impl ParityEncoder {
    /// Number of datagrams in the current group.
    pub(super) fn len(&self) -> usize {
        self.group.len()
    }

    /// Adds a datagram with the next number.
    pub(super) fn add(&mut self, number: u64, datagram: Bytes) {
        if self.group.is_empty() {
            self.first = number;
        }
        self.group.push(datagram);
    }

    /// Ends the group and returns its parities.
    pub(super) fn end(&mut self) -> Vec<Bytes> {
        let group = std::mem::take(&mut self.group);
        let longest = group.iter().map(Bytes::len).max().unwrap_or_default();
        // The code requires shards of even length.
        let shard_bytes = (longest + LENGTH_BYTES).next_multiple_of(2);
        let shards = group.iter().map(|datagram| shard(datagram, shard_bytes));
        let (count, more) = (group.len(), parities(group.len()));
        // Empty groups have no parity.
        let parity = reed_solomon_simd::encode(count, more, shards).unwrap_or_default();
        let small = |n: usize| u8::try_from(n).unwrap_or(u8::MAX);
        let packets = parity.into_iter().enumerate().map(|(which, shard)| Datagram::Parity {
            first: self.first,
            datagrams: small(count),
            parities: small(more),
            which: small(which),
            shard: shard.into(),
        });
        packets.map(|packet| packet.encode()).collect()
    }
}

/// Recent groups of the receiver: their datagrams and their parity.
#[derive(Debug, Default)]
pub(super) struct ParityDecoder {
    /// Datagrams by number, as received.
    datagrams: BTreeMap<u64, Bytes>,
    /// Groups by their first number.
    groups: BTreeMap<u64, ParityGroup>,
    /// Number after the highest that arrived.
    next: u64,
}

#[derive(Debug)]
struct ParityGroup {
    datagrams: usize,
    parities: usize,
    shards: BTreeMap<usize, Bytes>,
    /// The group was decoded, successfully or not; later parity is ignored.
    is_spent: bool,
}

impl ParityGroup {
    fn shard_bytes(&self) -> usize {
        self.shards.first_key_value().map_or(0, |(_, shard)| shard.len())
    }
}

impl ParityDecoder {
    /// Adds a datagram; returns the datagrams of its group that can be restored now.
    pub(super) fn add(&mut self, number: u64, datagram: Bytes) -> Vec<Bytes> {
        self.next = self.next.max(number + 1);
        let kept_from = self.next.saturating_sub(KEPT);
        if number < kept_from {
            return Vec::new();
        }
        self.datagrams.insert(number, datagram);
        while self.datagrams.first_key_value().is_some_and(|(first, _)| *first < kept_from) {
            self.datagrams.pop_first();
        }
        let group = self.groups.range(..=number).next_back();
        let first = group.filter(|(first, group)| number - **first < group.datagrams as u64);
        first.map(|(first, _)| *first).map_or_else(Vec::new, |first| self.restore(first))
    }

    /// Adds a parity; returns the datagrams that can be restored now.
    pub(super) fn add_parity(
        &mut self,
        first: u64,
        (datagrams, parities): (u8, u8),
        which: u8,
        shard: Bytes,
    ) -> Vec<Bytes> {
        let (datagrams, parities) = (usize::from(datagrams), usize::from(parities));
        let new = || ParityGroup { datagrams, parities, shards: BTreeMap::new(), is_spent: false };
        let group = self.groups.entry(first).or_insert_with(new);
        let is_alike = group.shards.is_empty() || group.shard_bytes() == shard.len();
        if is_alike && !group.is_spent && (group.datagrams, group.parities) == (datagrams, parities) {
            group.shards.insert(usize::from(which), shard);
        }
        while self.groups.len() > MAX_GROUPS {
            self.groups.pop_first();
        }
        self.restore(first)
    }

    /// Restores the missing datagrams of a group once enough datagrams and parities have arrived; returns
    /// them.
    fn restore(&mut self, first: u64) -> Vec<Bytes> {
        let Some(group) = self.groups.get(&first) else { return Vec::new() };
        let end = first + group.datagrams as u64;
        let here: Vec<(usize, &Bytes)> = self
            .datagrams
            .range(first..end)
            .filter_map(|(number, datagram)| Some((usize::try_from(number - first).ok()?, datagram)))
            .collect();
        let missing = group.datagrams - here.len();
        if missing == 0 || missing > group.shards.len() {
            return Vec::new();
        }
        let shard_bytes = group.shard_bytes();
        let shards = here
            .iter()
            .filter(|(_, datagram)| datagram.len() + LENGTH_BYTES <= shard_bytes)
            .map(|(at, datagram)| (*at, shard(datagram, shard_bytes)));
        let parity = group.shards.iter().map(|(which, shard)| (*which, shard));
        // Datagrams that cannot be restored are requested again.
        let made = reed_solomon_simd::decode(group.datagrams, group.parities, shards, parity);
        if let Some(group) = self.groups.get_mut(&first) {
            (group.shards, group.is_spent) = (BTreeMap::new(), true);
        }
        let made = made.unwrap_or_default().into_iter();
        let made: Vec<(u64, Bytes)> =
            made.filter_map(|(at, shard)| Some((first + at as u64, datagram(shard)?))).collect();
        self.datagrams.extend(made.iter().cloned());
        while self.datagrams.len() as u64 > KEPT {
            self.datagrams.pop_first();
        }
        made.into_iter().map(|(_, datagram)| datagram).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagrams(count: usize) -> Vec<Bytes> {
        let byte = |n: usize| u8::try_from(n % 251).unwrap();
        (0..count).map(|n| (0..1_000 + n % 7).map(|at| byte(n * 31 + at)).collect()).collect()
    }

    fn parity_of(all: &[Bytes]) -> Vec<Datagram> {
        let mut encoder = ParityEncoder::default();
        all.iter().zip(100..).for_each(|(datagram, number)| encoder.add(number, datagram.clone()));
        let parity = encoder.end();
        assert_eq!((parity.len(), encoder.len()), (parities(all.len()), 0));
        parity.into_iter().map(|packet| Datagram::decode(packet).unwrap()).collect()
    }

    fn add_parity(decoder: &mut ParityDecoder, packet: Datagram) -> Vec<Bytes> {
        let Datagram::Parity { first, datagrams, parities, which, shard } = packet else {
            unreachable!("parity")
        };
        decoder.add_parity(first, (datagrams, parities), which, shard)
    }

    #[test]
    fn as_many_are_made_again_as_there_is_parity() {
        for count in [1, 2, 5, 47, GROUP] {
            let all = datagrams(count);
            let parity = parity_of(&all);
            let lost = parity.len().min(count);
            let mut decoder = ParityDecoder::default();
            for (datagram, number) in all.iter().zip(100..).skip(lost) {
                assert!(decoder.add(number, datagram.clone()).is_empty());
            }
            let mut made = Vec::new();
            parity.into_iter().for_each(|packet| made.extend(add_parity(&mut decoder, packet)));
            assert_eq!(made, all[..lost], "{count}");
        }
    }

    #[test]
    fn one_that_comes_late_can_be_what_was_needed() {
        let all = datagrams(40);
        let mut parity = parity_of(&all);
        parity.truncate(2);
        let mut decoder = ParityDecoder::default();
        for (datagram, number) in all.iter().zip(100..).skip(3) {
            decoder.add(number, datagram.clone());
        }
        for packet in parity {
            assert!(add_parity(&mut decoder, packet).is_empty(), "three are missing");
        }
        assert_eq!(decoder.add(101, all[1].clone()), [all[0].clone(), all[2].clone()]);
    }

    #[test]
    fn the_state_is_bounded_and_forged_parity_is_useless() {
        let all = datagrams(40);
        let mut decoder = ParityDecoder::default();
        for number in 0..10_000 {
            decoder.add(number * 3, all[0].clone());
            decoder.add_parity(number * 3, (3, 2), 0, Bytes::from_static(&[0xff; 64]));
            decoder.add_parity(number * 3, (2, 2), 1, Bytes::from_static(&[0xff; 66]));
        }
        assert!(decoder.groups.len() <= MAX_GROUPS && decoder.datagrams.len() as u64 <= KEPT);
    }

    #[test]
    fn parity_that_was_used_in_vain_is_not_tried_again() {
        let all = datagrams(40);
        let mut decoder = ParityDecoder::default();
        for (datagram, number) in all.iter().zip(100..).skip(1) {
            decoder.add(number, datagram.clone());
        }
        // Not a parity of these datagrams: the restored one has an impossible length.
        let lie = Bytes::from(vec![0xff; 1_050]);
        for which in [0, 0, 1] {
            assert!(decoder.add_parity(100, (40, 5), which, lie.clone()).is_empty());
            assert!(decoder.groups[&100].is_spent && decoder.groups[&100].shards.is_empty());
        }
    }

    #[test]
    fn recovery_from_parity_alone_is_bounded() {
        let alone = parity_of(&datagrams(1)).swap_remove(0);
        let Datagram::Parity { shard, .. } = alone else { unreachable!("parity") };
        let mut decoder = ParityDecoder::default();
        for number in 0..2 * KEPT {
            assert_eq!(decoder.add_parity(number, (1, 3), 0, shard.clone()).len(), 1);
        }
        assert_eq!(decoder.datagrams.len() as u64, KEPT);
    }
}
