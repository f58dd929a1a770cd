//! Shared viewing: the view of each participant, the rights to change it, the order of changes, and what participants
//! share besides: chat, notes, bookmarks and pointers.
//!
//! This crate is pure: no drawing, no waiting, no sockets. A stage above passes in what participants send and
//! delivers what comes out. Read [`Room`] first; views are those of the crate `view`.

mod following;
mod message;
mod participant;
mod removal;
mod room;
mod sharing;
mod together;
mod values;

pub use message::{
    DrawnArray, FidelityBadge, FidelityLimit, FidelityState, FrameInfo, Item, JoinParams, MAX_NAME_BYTES,
    MAX_NOTE_BYTES, MAX_PICTURE_PIXELS, MAX_PICTURE_SIDE, MIN_PICTURE_SIDE, ParticipantInfo, ParticipantNote,
    PictureCodec, PictureSize, Severity, ViewChange,
};
pub use participant::{ParticipantId, Role};
pub use removal::RemovedMember;
pub use room::{DueUpdate, MAX_AWAY, MAX_PARTICIPANTS, Room, RoomEntry, RoomEvent};
pub use together::content::{
    Bookmark, ChangeAuthor, ChatLine, MAX_BOOKMARKS, MAX_CHAT_LINES, MAX_PINNED_NOTES, PinnedNote,
    SharedChange, SharedContent,
};
pub use together::edit::{
    MAX_BOOKMARK_NAME_BYTES, MAX_CHAT_LINE_BYTES, MAX_PINNED_TEXT_BYTES, MAX_SAVED_VIEW_BYTES,
    MAX_THUMBNAIL_BYTES, SharedEdit, SharedId,
};
pub use together::log::SharedUpdate;
pub use together::pointer::{PointerInfo, PointerPlace};
pub use together::receiver::ContentReceiver;
pub use values::{DrawnRange, ValueSummary};
