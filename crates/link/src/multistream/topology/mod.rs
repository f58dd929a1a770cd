//! Topology of this host: the cores that are close to each network card, for the placement of senders. Read
//! through hwloc (feature `hwloc`); without that feature nothing is placed.

#[cfg(feature = "hwloc")]
mod hwloc;

use std::collections::BTreeSet;
use std::net::IpAddr;

/// Processing units by their system numbers.
pub type Units = BTreeSet<usize>;

/// A network card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Addresses of this host on the card.
    pub addresses: Vec<IpAddr>,
    /// Processing units in the same part of the machine.
    pub near: Units,
}

/// Cores and network cards of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Processing units of each core.
    pub cores: Vec<Units>,
    /// Cards whose location is known.
    pub cards: Vec<Card>,
}

impl Topology {
    /// Reads the topology of this host; `None` where it is not known, or where this program was built without
    /// hwloc.
    #[must_use]
    pub fn detect() -> Option<Self> {
        #[cfg(feature = "hwloc")]
        return hwloc::detect();
        #[cfg(not(feature = "hwloc"))]
        None
    }

    /// Indices of the cores close to the card with this address. Empty where all cores are equally close or
    /// the card is unknown: the system's own placement is then better.
    #[must_use]
    pub fn beside(&self, address: IpAddr) -> Vec<usize> {
        let has =
            |card: &&Card| card.addresses.iter().any(|own| own.to_canonical() == address.to_canonical());
        let Some(card) = self.cards.iter().find(has) else { return Vec::new() };
        let is_near = |core: &Units| !core.is_empty() && core.is_subset(&card.near);
        let near: Vec<usize> = (0..self.cores.len()).filter(|core| is_near(&self.cores[*core])).collect();
        if near.len() == self.cores.len() { Vec::new() } else { near }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_beside_the_card_is_named_where_there_are_others() {
        let address: IpAddr = "10.1.0.1".parse().unwrap();
        let card = |near: &[usize]| Card { addresses: vec![address], near: near.iter().copied().collect() };
        let cores = vec![Units::from([0, 4]), Units::from([1, 5]), Units::from([2, 6]), Units::from([3, 7])];
        let beside = |near: &[usize], address: IpAddr| {
            Topology { cores: cores.clone(), cards: vec![card(near)] }.beside(address)
        };
        assert_eq!(beside(&[2, 3, 6, 7], address), [2, 3]);
        assert_eq!(beside(&[2, 3, 6, 7], "::ffff:10.1.0.1".parse().unwrap()), [2, 3]);
        assert_eq!(beside(&[2, 3, 6, 7], "10.1.0.2".parse().unwrap()), [0; 0], "another card");
        assert_eq!(beside(&[2, 3, 6], address), [2], "half of a core is not beside it");
        assert_eq!(beside(&[0, 1, 2, 3, 4, 5, 6, 7], address), [0; 0], "all are as near");
        assert_eq!(beside(&[], address), [0; 0], "nothing is known");
    }
}
