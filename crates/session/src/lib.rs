//! Shared viewing: the view of each participant, the rights to change it, and the order of changes.
//!
//! This crate is pure: no drawing, no waiting, no sockets. A stage above passes in what participants send and
//! delivers what comes out. Read [`Room`] first; views are those of the crate `view`.

mod message;
mod participant;
mod room;
mod values;

pub use message::{
    DrawnArray, FidelityBadge, FidelityLimit, FidelityState, FrameInfo, Item, JoinParams, MAX_NAME_BYTES,
    MAX_NOTE_BYTES, MAX_PICTURE_PIXELS, MAX_PICTURE_SIDE, MIN_PICTURE_SIDE, ParticipantInfo, ParticipantNote,
    PictureCodec, PictureSize, Severity, ViewChange,
};
pub use participant::{ParticipantId, Role};
pub use room::{MAX_PARTICIPANTS, Room, RoomEvent};
pub use values::{DrawnRange, ValueSummary};
