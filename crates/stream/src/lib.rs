//! How pictures reach a viewer: which blocks are fetched, when and how sharply a picture is drawn, how it is
//! encoded, and what is said about it.
//!
//! The stage between a [`Source`](array::Source) and a connection. It opens no connection and knows no format;
//! `render` draws, or `gpu`; `session` decides who sees what. Read [`Session`] first (people look at a data set
//! together), then [`render_still`] and [`Film`] (finished pictures, nobody looking). Where several ranks draw, those but the first
//! [`follow`](follow()).
//!
//! ```text
//!   note -> Room -> Seat -> frame loop -> Aim -> wishes -> Loader -> wants -> source
//!                              |  ^                                            |
//!                           Encoder '------- Volume (pool of blocks) <-- Feed -'
//!                              |
//!   item <------------------ Outbox
//! ```
//!
//! Every queue is bounded: wants by number and bytes, frames by what the viewer has shown, everything else by
//! "newest wins".

mod aim;
mod crew;
mod encode;
mod feed;
mod film;
mod follow;
mod foresight;
mod frame_loop;
mod grids;
mod host;
mod live;
mod loader;
mod outbox;
mod overview;
mod pace;
mod painter;
mod picture;
mod regrid;
mod seat;
mod slabs;
mod still;
mod strips;
mod subject;
mod tasks;
mod truth;
mod video;
mod volume;

pub use compose;
pub use crew::{Company, Pixels, Ranks};
pub use encode::{Encoder, JPEG_QUALITY, Jpeg, Png};
pub use film::{ColourRange, Film, FilmRequest};
pub use follow::follow;
pub use grids::grid_colour;
pub use host::Work;
pub use live::{Load, MIN_MEMORY_BYTES, Participant, Session};
pub use loader::{ATTEMPTS_UNTIL_FAILED, FIRST_BACKOFF, LONGEST_BACKOFF, MAX_WANTS_UNDER_WAY};
pub use outbox::Outgoing;
pub use pace::{LOADING_BUDGET, MAX_FRAMES_IN_FLIGHT, MOVING_BUDGET, MOVING_HOLD, REFRESH, SETTLE};
pub use painter::{Device, Means, Painter};
pub use picture::camera_in;
pub use regrid::Regridded;
pub use slabs::{SlabForm, SlabWish, decode_slabs, decode_slabs_from, encode_slabs, encode_slabs_as};
pub use still::{Still, StillRequest, render_still};
pub use video::{Av1, H264, ParameterSets, Quality, Sample, check_film};
