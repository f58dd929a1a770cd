//! Ray caster for the CPU: sixteen rays at a time, from block to block.

pub(crate) mod box_lines;
pub(crate) mod cancel;
pub(crate) mod cast;
pub(crate) mod caster;
pub(crate) mod color_by;
pub(crate) mod context;
pub(crate) mod empty_space;
pub(crate) mod entry_scale;
pub(crate) mod extreme;
pub(crate) mod fragments;
pub(crate) mod image_part;
pub(crate) mod layers;
pub(crate) mod packet;
pub(crate) mod palette;
pub(crate) mod samples;
pub(crate) mod slab_layers;
pub(crate) mod slices;
pub(crate) mod table;
pub(crate) mod work;
