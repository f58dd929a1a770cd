//! Rendering of volumes: the CPU ray caster over resident blocks.
//!
//! This crate draws from the blocks that caches deliver. Blocks arrive in any order at any level; every frame
//! is complete, because a missing block is replaced by its finest resident ancestor. This crate fetches
//! nothing and does no network access: [`demand`] returns the blocks that a picture wants, the caller loads
//! them and passes them to [`BlockPool::insert`], and [`cast`] draws what is resident and reports what it
//! drew.
//!
//! Read [`VolumeView`] first (an array seen as a volume), then [`Scene`] (the complete description of one
//! picture).
//!
//! ```text
//!   array::ArrayInfo -> VolumeView --+--> demand -> blocks wanted, in order -> (a source, elsewhere)
//!                                    |                                              |
//!   Camera, TransferFunction --> Scene --> cast <-- Snapshot <-- BlockPool <-- Block -+
//!                                           |
//!                                  RenderedImage: Image and Fidelity
//! ```
//!
//! Modules, each above those that it uses:
//!
//! ```text
//!   slabs                     device            slabs of a scene; a picture as plain numbers for another device
//!     |                         |
//!   cpu::cast                   |               tiles of a picture, on all threads
//!     |                         |
//!   cpu::caster                 |               features of one picture, in the order in which rays meet them
//!     |                         |
//!   isosurface   cpu::slices   cpu::extreme     features: each is prepared once and traced packet by packet
//!   cpu::box_lines   geometry   cpu::color_by   cpu::layers
//!     |
//!   cpu::context                                what all rays share: steps, tables, visible cells
//!   cpu::packet   cpu::samples                  sixteen rays; samples in a block, accumulated color
//!   cpu::empty_space   cpu::table               cells to skip; the transfer function as a table
//!     |
//!   blocks                                      pool, ghost voxels, snapshots
//!     |
//!   scene   image   simd                        description of a picture; pixels; vector instructions
//! ```
//!
//! Further modules: [`Mesher`] (isosurfaces as triangles), [`stereo`] (pairs of pictures), [`pick()`] (the place that
//! a pixel shows), [`mod@reference`]
//! (a slow caster that tests compare with).
//!
//! A caster on another device uses [`device::prepare`] instead of [`cast`]; several casters that share a
//! volume use [`cast_part`]; [`cast_slabs`] casts pictures that can be viewed from other cameras too.
//!
//! Order of axes: shapes are `[z, y, x]`, positions `(x, y, z)` as in [`array::Affine`]. Colors are
//! sRGB-encoded and composited premultiplied.

mod blocks;
mod cpu;
pub mod device;
mod geometry;
mod image;
mod isosurface;
mod mesh;
mod pick;
pub mod reference;
mod scene;
mod simd;
mod slabs;
pub mod stereo;

pub use blocks::pool::{BlockPool, Inserted};
pub use blocks::snapshot::Snapshot;
pub use cpu::cancel::Cancel;
pub use cpu::cast::{DrawnRows, ROW_UNIT, RenderedImage, cast, cast_part, cast_rows, cast_with};
pub use cpu::image_part::{DrawnPart, ImagePart, PartialImage, SampleTally};
pub use cpu::work::{WorkPoint, work};
pub use geometry::{
    GeometryCut, GeometryFaces, GeometryLayer, GeometryShape, MAX_GEOMETRY_LAYERS, SceneGeometry,
};
pub use image::annotate::{AxisNote, AxisQuantity, LegendKey, LinePlot, Notes, annotate, annotate_rows};
pub use image::image_size::ImageSize;
pub use image::over::over;
pub use image::png_rows::{PngText, TakeRows, png_in_rows};
pub use image::rect::Rect;
pub use image::{Background, Image};
pub use mesh::{Mesh, Mesher};
pub use pick::{
    DrawnValue, Pick, PickTarget, camera_around, pick, volume_of_world, voxel_of_world, world_of_voxel,
};
pub use scene::Scene;
pub use scene::camera::{Bounds, Camera};
pub use scene::camera_path::{CameraPath, predicted, through, turn};
pub use scene::color_by::ColorByArray;
pub use scene::color_map::{
    color_map_names, color_map_table, is_categorical, label_color, signed_label_color,
};
pub use scene::demand::{Demand, Demanded, LevelLimit, demand, demand_of};
pub use scene::fidelity::Fidelity;
pub use scene::first_camera::first_camera;
pub use scene::layer::ArrayLayer;
pub use scene::light::LightShares;
pub use scene::quality::Quality;
pub use scene::slice::{ObliquePlane, Portion, Slice};
pub use scene::sub_volume::SubVolume;
pub use scene::surface::Isosurface;
pub use scene::transfer::{OpacityPoint, TransferFunction};
pub use scene::volume::{ViewLevel, VolumeView};
pub use scene::wires::{MAX_BOXES, WireBox, WireBoxes};
pub use simd::Instructions;
pub use slabs::axis::best_axis;
pub use slabs::gather::cast_slabs;
pub use slabs::{Cutting, Slab, SlabRequest, Slabs};
