//! Topology of this host: which cores lie near which network card, as far as senders need it to choose their cores. Read
//! through hwloc (feature `hwloc`); without that feature nothing is known, and nothing is placed.

#[cfg(feature = "hwloc")]
mod hwloc;

use std::collections::BTreeSet;
use std::net::IpAddr;

/// Processing units by the numbers that the system gives them.
pub type Units = BTreeSet<usize>;

/// A network card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// This host's addresses there.
    pub addresses: Vec<IpAddr>,
    /// Processing units in the same part of the machine.
    pub near: Units,
}

/// Cores and cards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The units of each core.
    pub cores: Vec<Units>,
    /// Cards whose place is known.
    pub cards: Vec<Card>,
}

impl Topology {
    /// This host's; none where it is not known, or this program was built without hwloc.
    #[must_use]
    pub fn of_host() -> Option<Self> {
        #[cfg(feature = "hwloc")]
        return hwloc::of_host();
        #[cfg(not(feature = "hwloc"))]
        None
    }

    /// The cores beside the card of this address, by their number, where there are others farther away: where the machine is of
    /// one piece, or nothing is known of the card, the system does better by itself.
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
