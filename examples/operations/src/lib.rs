//! Three operations beside those that every server has: both sides of each, on the public interface of `node` alone.
//! Not part of Corridor: an example to begin with.

mod isosurface_cells;
mod one_or_many;
mod percentile;
mod resample;

use server::ops::Registry;

pub use isosurface_cells::{CellCounts, IsosurfaceCells};
pub use one_or_many::OneOrMany;
pub use percentile::{Percentile, Percentiles};
pub use resample::{Method, Resample, Resampled};

/// Adds the three.
pub fn add_to(registry: &mut Registry) {
    registry.add(percentile::Answering);
    registry.add(isosurface_cells::Answering);
    registry.add(resample::Answering);
}
