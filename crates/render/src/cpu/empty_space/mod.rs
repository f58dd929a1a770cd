//! Skipping what the transfer function hides.

pub(crate) mod depth_bounds;
pub(crate) mod sampling_rate;
pub(crate) mod skip_ahead;
pub(crate) mod visible_cells;
