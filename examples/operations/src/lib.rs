//! Example of three custom operations, client and server side, that use only Corridor's public interface. Copy it as a
//! start for other operations.

mod isosurface_cells;
mod one_or_many;
mod percentile;
mod resample;

use server::ops::OperationRegistry;

pub use isosurface_cells::{CellCounts, IsosurfaceCells};
pub use one_or_many::OneOrMany;
pub use percentile::{Percentile, Percentiles};
pub use resample::{Method, Resample, Resampled};

/// Registers the three operations.
pub fn add_to(registry: &mut OperationRegistry) {
    registry.add(percentile::PercentileHandler);
    registry.add(isosurface_cells::IsosurfaceCellsHandler);
    registry.add(resample::ResampleHandler);
}
