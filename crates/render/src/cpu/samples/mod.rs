//! Samples along rays: where they lie, how they are interpolated and shaded, and how they add up.

pub(crate) mod corners;
pub(crate) mod fade;
pub(crate) mod gathered;
pub(crate) mod lookup;
pub(crate) mod sample;
pub(crate) mod shading;
pub(crate) mod thin;
