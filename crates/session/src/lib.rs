//! How people share a picture: the view each of them has, who may change what, and in which order
//! changes count.
//!
//! This crate is pure: it never draws, never waits and never sees a socket. A stage above hands it what
//! participants say and sends on what comes out. Read [`Room`] first; views are those of the crate `view`.

mod message;
mod room;
mod values;

pub use message::{
    DrawnArray, FidelityBadge, FidelityLimit, FidelityState, FrameInfo, Item, JoinParams, MAX_NAME_BYTES,
    MAX_NOTE_BYTES, MAX_PICTURE_PIXELS, MAX_PICTURE_SIDE, MIN_PICTURE_SIDE, ParticipantInfo, ParticipantNote,
    PictureCodec, PictureSize, Severity, ViewChange,
};
pub use room::{MAX_PARTICIPANTS, ParticipantId, Role, Room, RoomEvent};
pub use values::{DrawnRange, ValueSummary};
