//! Cores and network cards of the host, read through hwloc; the system provides the addresses of the cards.

use hwlocality::Topology as Seen;
use hwlocality::object::TopologyObject;
use hwlocality::object::types::ObjectType;
use hwlocality::topology::builder::TypeFilter;

use super::{Card, Topology, Units};

/// Reads the topology; see [`Topology::detect`].
pub(super) fn detect() -> Option<Topology> {
    let seen = Seen::builder().with_io_type_filter(TypeFilter::KeepImportant).ok()?.build().ok()?;
    // hwloc can be configured to describe another machine.
    if !seen.is_this_system() {
        return None;
    }
    let addresses = if_addrs::get_if_addrs().ok()?;
    let cards = seen.os_devices().filter_map(|device| {
        let name = device.name()?.to_str().ok()?;
        let own = addresses.iter().filter(|address| address.name == name);
        let addresses: Vec<_> = own.map(|address| address.ip()).collect();
        let near = units(device.first_non_io_ancestor()?);
        (!addresses.is_empty()).then_some(Card { addresses, near })
    });
    Some(Topology { cores: cores(&seen), cards: cards.collect() })
}

fn cores(seen: &Seen) -> Vec<Units> {
    seen.objects_with_type(ObjectType::Core).map(units).collect()
}

fn units(object: &TopologyObject) -> Units {
    object.cpuset().map_or_else(Units::new, |set| set.iter_set().map(usize::from).collect())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    /// Synthetic topology of hwloc, with a card at its first object of a type.
    fn made_up(description: &str, beside: ObjectType) -> (Topology, IpAddr) {
        let seen =
            Seen::builder().from_synthetic(description).expect("a description").build().expect("a machine");
        let address: IpAddr = "10.1.0.1".parse().expect("an address");
        let near = seen.objects_with_type(beside).next().map_or_else(Units::new, units);
        (Topology { cores: cores(&seen), cards: vec![Card { addresses: vec![address], near }] }, address)
    }

    #[test]
    fn the_package_next_to_the_card_is_chosen() {
        let (machine, address) = made_up("pack:2 [numa] core:4 pu:2", ObjectType::Package);
        assert_eq!((machine.cores.len(), machine.cores[0].len()), (8, 2));
        assert_eq!(machine.beside(address), [0, 1, 2, 3]);
    }

    #[test]
    fn a_group_next_to_the_card_is_chosen_in_a_package_of_several_memory_nodes() {
        let (machine, address) = made_up("pack:1 group:4 [numa] core:2 pu:1", ObjectType::Group);
        assert_eq!((machine.cores.len(), machine.beside(address)), (8, vec![0, 1]));
    }

    #[test]
    fn in_a_machine_of_one_piece_nothing_is_placed() {
        let (machine, address) = made_up("pack:1 [numa] core:2 pu:1", ObjectType::Package);
        assert_eq!((machine.cores.len(), machine.beside(address)), (2, vec![]));
    }

    #[test]
    fn this_host_has_cores() {
        let machine = detect().expect("a machine");
        let units: Units = machine.cores.iter().flatten().copied().collect();
        assert!(!units.is_empty() && units.len() == machine.cores.iter().map(Units::len).sum::<usize>());
    }
}
