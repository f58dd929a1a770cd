//! Empty-space skipping: regions that the transfer function hides are not sampled.

pub(crate) mod depth_bounds;
pub(crate) mod sampling_rate;
pub(crate) mod skip_ahead;
pub(crate) mod visible_cells;
