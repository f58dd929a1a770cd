//! How pictures reach a viewer: which blocks are fetched, when and how sharply a picture is drawn, how it is
//! encoded, and what is said about it.
//!
//! The stage between a [`Source`](array::Source) and a connection. It opens no connection and knows no format;
//! `render` draws, or `gpu`; `session` decides who sees what. Read [`Session`] first (people look at a data set
//! together), then [`render_still`] and [`Film`] (finished pictures, nobody looking). Where several ranks draw, those but the first
//! [`run_worker`](run_worker()).
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

mod encode;
mod film;
mod loading;
mod painter;
mod ranks;
mod still;
mod tasks;
mod viewer;

pub use compose;
pub use encode::slabs::{
    FilmSlabs, SlabForm, decode_slabs, decode_slabs_from, encode_slabs, encode_slabs_as,
};
pub use encode::video::{Av1, FilmQuality, H264, ParameterSets, VideoSample, check_film};
pub use encode::{JPEG_QUALITY, Jpeg, PictureEncoder, Png};
pub use film::{ColorRange, Film, FilmRequest};
pub use loading::loader::{ATTEMPTS_UNTIL_FAILED, FIRST_BACKOFF, LONGEST_BACKOFF, MAX_WANTS_IN_FLIGHT};
pub use loading::regrid::Regridded;
pub use painter::{DrawDevice, DrawResources, Painter};
pub use ranks::launcher::{PixelPrecision, RankChannels, RankGroup};
pub use ranks::worker::run_worker;
pub use still::{Still, StillRequest, render_still};
pub use viewer::grid_boxes::grid_color;
pub use viewer::outbox::OutgoingItem;
pub use viewer::pace::{LOADING_BUDGET, MAX_FRAMES_IN_FLIGHT, MOVING_BUDGET, MOVING_HOLD, REFRESH, SETTLE};
pub use viewer::scene::camera_in;
pub use viewer::session::{MIN_MEMORY_BYTES, Participant, Session, SessionLoad};
pub use viewer::shared::WorkProgress;
