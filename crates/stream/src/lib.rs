//! Delivery of pictures to viewers: which blocks are fetched, when and at which resolution a picture is
//! drawn, how it is encoded, and what is reported about it.
//!
//! This crate is the stage between a [`Source`](array::Source) and a connection. It opens no connection and
//! knows no file format, except that it interprets the colors that OME-Zarr attributes state; `render` or `gpu` draws; `session` decides who sees which view. Read [`Session`]
//! first (participants view a data set together), then [`render_still`] and [`Film`] (finished pictures
//! without viewers). Where several ranks draw, all but rank 0 call [`run_worker`](run_worker()).
//!
//! ```text
//!   note -> Room -> ViewerState -> frame loop -> ViewPlan -> requests -> Loader -> wants -> source
//!                                   |  ^                                                     |
//!                        PictureEncoder '----------- Volume (pool of blocks) <-------- Feed -'
//!                                   |
//!   item <---------------------- ViewerOutbox
//! ```
//!
//! Every queue is bounded: wants by number and bytes, frames by what the viewer has shown, everything else by
//! replacing older entries.

mod encode;
mod film;
mod geometry;
mod loading;
mod measure;
mod painter;
mod ranks;
mod row_picture;
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
pub use geometry::GeometryFetch;
pub use loading::beside::{Beside, OtherDataset};
pub use loading::loader::{ATTEMPTS_UNTIL_FAILED, FIRST_BACKOFF, LONGEST_BACKOFF, MAX_WANTS_IN_FLIGHT};
pub use loading::regrid::Regridded;
pub use measure::element::{AxisPosition, ElementValue};
pub use measure::line::{LineProfile, MAX_LINE_SAMPLES, MeasuredArray, MeasuredValues, PointValues};
pub use measure::pick::{
    DrawnNumber, PickAnswer, PickedElement, PickedLayer, PickedPlace, PickedThing, PickedValue,
    PlaceCoordinate,
};
pub use measure::plot::{MAX_PLOT_COLUMNS, PlotColumns, PlotRange, plot_axis, read_columns};
pub use measure::region::{CellMask, MAX_SPANS, RegionBox, RegionMask, StoredRegion, WorldBoxMask};
pub use measure::request::{
    MAX_CORNERS, MAX_PICKS, MeasureRequest, PickRequest, ViewChoice, ViewMeasurement,
};
pub use measure::series::{MAX_STEPS, TimeSeries};
pub use painter::{DrawDevice, DrawResources, MIN_MEMORY_BYTES, Painter};
pub use ranks::launcher::{PixelPrecision, RankChannels, RankGroup};
pub use ranks::worker::run_worker;
pub use row_picture::{BAND_PIXELS, RowPicture};
pub use still::{Still, StillRequest, render_still};
pub use viewer::grid_boxes::grid_color;
pub use viewer::outbox::OutgoingItem;
pub use viewer::pace::{LOADING_BUDGET, MAX_FRAMES_IN_FLIGHT, MOVING_BUDGET, MOVING_HOLD, REFRESH, SETTLE};
pub use viewer::scene::camera_in;
pub use viewer::session::{Participant, Session, SessionLoad};
pub use viewer::shared::{ProgressQuery, RemovalHook};
