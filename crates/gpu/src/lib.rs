//! How data becomes an image on a graphics processor: the same ray caster as `render`'s, as a compute shader.
//!
//! `render` decides what a picture is ([`render::device::prepare`]): levels, steps, tables, what can be skipped. This crate
//! keeps blocks in 3-D textures (`atlas.rs`, `store.rs`), tells the shader where they are (`picture.rs`), and marches
//! (`shader/*.wgsl`, driven by `caster.rs`; files are named as those of `render` with the same method). It never decides what
//! is wanted, and fetches nothing. What 32 bits cannot tell, labels wider than 16 bits among it, is left to the caster for the
//! CPU.
//!
//! Read [`GpuCaster`] first, then `shader/cast.wgsl`.

mod atlas;
mod buffers;
mod caster;
mod gpu;
mod picture;
mod shader;
mod store;

#[cfg(test)]
extern crate render as corridor_render;

#[cfg(test)]
#[path = "../../render/tests/common/mod.rs"]
mod common;

pub use atlas::{FIRST_ATLAS_BYTES, MAX_ATLAS_BYTES};
pub use caster::{CastStats, GpuCaster, MissingBlocks};
pub use gpu::Accept;
pub use store::UPLOAD_BYTES_PER_PASS;
