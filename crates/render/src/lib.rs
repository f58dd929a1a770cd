//! How data becomes an image: the CPU ray caster over resident blocks.
//!
//! The stage between caches and people. Blocks arrive in any order at any level; every frame is complete,
//! because the finest resident ancestor stands in where a block is missing. This crate fetches nothing and
//! knows of no network: [`demand`] says which blocks a picture wants, somebody brings them to
//! [`BlockPool::insert`], and [`cast`] draws what is there and says what it drew.
//!
//! Read [`VolumeView`] first (an array seen as a volume), then [`Scene`] (everything one picture needs).
//!
//! ```text
//!   array::ArrayInfo -> VolumeView --+--> demand -> blocks wanted, in order -> (a source, elsewhere)
//!                                    |                                              |
//!   Camera, TransferFunction --> Scene --> cast <-- Snapshot <-- BlockPool <-- Block -+
//!                                           |
//!                                         Frame: Image and Truth
//! ```
//!
//! A caster on another device takes [`device::prepare`] in the place of [`cast`]; several casters that share a volume take
//! [`cast_part`]; [`cast_slabs`] casts pictures that can be looked at from elsewhere too.
//!
//! Order of axes: shapes are `[z, y, x]`, positions `(x, y, z)` as in [`array::Affine`]. Colours are
//! sRGB-encoded and composited premultiplied.

mod anchor;
mod annotate;
mod apron;
mod blocks;
mod camera;
mod cast;
mod caster;
mod cell;
mod colour;
mod corners;
mod crossed;
mod cut;
mod demand;
pub mod device;
mod extreme;
mod fade;
mod first;
mod frustum;
mod gathered;
mod hunt;
mod image;
mod image_size;
mod journey;
mod kernel;
mod leap;
mod light;
mod meet;
mod mesh;
mod over;
mod pace;
mod packet;
mod palette;
mod part;
mod pieces;
mod pool;
mod raster;
mod rays;
mod rect;
pub mod reference;
mod remembered;
mod resident;
mod sample;
mod scene;
mod shading;
mod share;
mod sides;
mod sieve;
mod simd;
mod skip;
mod slabs;
mod slice;
pub mod stereo;
mod surface;
mod survey;
mod table;
mod thin;
mod tint;
mod transfer;
mod truth;
mod volume;
mod voxel;
mod wires;
mod work;

pub use annotate::{Key, Notes, Span, annotate};
pub use camera::{Bounds, Camera, Projection};
pub use cast::{Cancel, Frame, cast, cast_part, cast_with};
pub use colour::{colour_map_names, colour_map_table, is_categorical, label_colour, signed_label_color};
pub use demand::{Demand, Demanded, Limit, demand, demand_of};
pub use first::first_camera;
pub use image::{Background, Image};
pub use image_size::ImageSize;
pub use journey::{Way, predicted, through, turn};
pub use mesh::{Mesh, Mesher};
pub use over::over;
pub use part::{Drawn, Part, Piece, Tally};
pub use pool::{BlockPool, Inserted, Snapshot};
pub use rect::Rect;
pub use scene::{Mode, Quality, Scene};
pub use share::Share;
pub use simd::Instructions;
pub use slabs::{Cutting, Slab, SlabRequest, Slabs, best_axis, cast_slabs, cast_with_slabs};
pub use slice::{Portion, Slice, SpaceAxis};
pub use surface::Isosurface;
pub use tint::Tint;
pub use transfer::{OpacityPoint, TransferFunction};
pub use truth::Truth;
pub use volume::{ViewLevel, VolumeView};
pub use wires::{MAX_BOXES, WireBox, WireBoxes};
pub use work::{WorkPoint, work};
