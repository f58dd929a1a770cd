//! The operations of a data server; `examples/operations` adds three.

use server::ops::{Describe, List, Read, ReadBlock, Registry, Stats, TakePart, TellPath};
use server::peers::TellPeers;

/// Registry of the operations that every data server answers.
#[must_use]
pub fn of_data_server() -> Registry {
    let mut registry = Registry::default();
    registry.add(List);
    registry.add(Describe);
    registry.add(Read);
    registry.add(ReadBlock);
    registry.add(Stats);
    registry.add(TellPeers);
    registry.add(TellPath);
    registry.add(TakePart);
    registry
}
