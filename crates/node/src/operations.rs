//! The operations of a data server; `examples/operations` adds three.

use server::ops::{
    DescribeHandler, GeometryHandler, ListHandler, OperationRegistry, PathHandler, ProbeHandler,
    ReadBlockHandler, ReadHandler, StatsHandler,
};
use server::peers::PeersHandler;

/// Returns the registry of the operations that every data server answers.
#[must_use]
pub fn of_data_server() -> OperationRegistry {
    let mut registry = OperationRegistry::default();
    registry.add(ListHandler);
    registry.add(DescribeHandler);
    registry.add(ReadHandler);
    registry.add(ReadBlockHandler);
    registry.add(StatsHandler);
    registry.add(GeometryHandler);
    registry.add(PeersHandler);
    registry.add(PathHandler);
    registry.add(ProbeHandler);
    registry
}
