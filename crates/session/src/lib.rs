//! How people share a picture: the view each of them has, who may change what, and in which order
//! changes count.
//!
//! This crate is pure: it never draws, never waits and never sees a socket. A stage above hands it what
//! participants say and sends on what comes out. Read [`View`] first (the one description of a picture,
//! the same in a link, in a session and on the command line), then [`Room`].

mod colour;
mod first;
mod message;
mod room;
mod slice;
mod surface;
mod transfer;
mod values;
mod view;

pub use colour::ColourBy;
pub use first::COLOR_END;
pub use message::{
    Codec, DrawnArray, FrameInfo, Item, Join, Limit, MAX_NAME_BYTES, MAX_NOTE_BYTES, MAX_PICTURE_PIXELS,
    MAX_PICTURE_SIDE, MIN_PICTURE_SIDE, Note, ParticipantInfo, PictureSize, Severity, State, Truth,
    ViewChange,
};
pub use room::{Event, MAX_PARTICIPANTS, ParticipantId, Role, Room};
pub use slice::{MAX_SLICES, Slice, SpaceAxis};
pub use surface::{MAX_SURFACES, Mode, Surface};
pub use transfer::{MAX_OPACITY_POINTS, Transfer};
pub use values::{DrawnRange, Values};
pub use view::{
    Camera, MAX_PARALLAX, MAX_VIEW_BYTES, Projection, SCHEMA, View, shows_all_layers, thick_sides,
};
