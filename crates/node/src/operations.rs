//! The operations of a data server; `examples/operations` adds three.

use server::ops::{Describe, ListHandler, Read, ReadBlock, Registry, StatsHandler, ProbeHandler, PathHandler};
use server::peers::PeersHandler;

/// Registry of the operations that every data server answers.
#[must_use]
pub fn of_data_server() -> Registry {
    let mut registry = Registry::default();
    registry.add(ListHandler);
    registry.add(Describe);
    registry.add(Read);
    registry.add(ReadBlock);
    registry.add(StatsHandler);
    registry.add(PeersHandler);
    registry.add(PathHandler);
    registry.add(ProbeHandler);
    registry
}
