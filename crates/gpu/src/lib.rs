//! Rendering on a GPU: the ray caster of `render` as a compute shader.
//!
//! `render` defines the picture ([`render::device::prepare`]): levels, steps, tables, skipped regions. This
//! crate keeps blocks in 3-D textures (`atlas.rs`, `store.rs`), passes their locations to the shader
//! (`picture.rs`), and casts (`shader/*.wgsl`, driven by `caster.rs`). It never decides what is wanted, and
//! fetches nothing. What 32-bit floats cannot represent, such as labels wider than 16 bits, is left to the
//! CPU caster.
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
