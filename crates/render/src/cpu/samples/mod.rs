//! Samples along rays: positions, interpolation, shading and accumulation.

pub(crate) mod accumulated;
pub(crate) mod corners;
pub(crate) mod dimming;
pub(crate) mod level_fade;
pub(crate) mod lookup;
pub(crate) mod opacity_correction;
pub(crate) mod sample;
pub(crate) mod shading;
