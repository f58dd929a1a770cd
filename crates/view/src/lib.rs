//! View of an array: what a picture shows, and how.
//!
//! A [`View`] is the only description of a picture, the same in a link, in a session, on the command line and
//! in Python. This crate is pure: it checks views, merges changes into them, and chooses defaults from the
//! description of a data set and a sample of its values. It reads no data and never draws.

mod camera;
mod choice;
mod color;
mod color_by;
mod fields;
mod first;
mod kind;
mod layer;
mod layout;
mod preset;
mod scale;
mod sides;
mod similar;
mod slice;
mod surface;
mod transfer;
mod view;
mod written;

pub use camera::{Projection, ViewCamera};
pub use choice::TransferChoice;
pub use color_by::ColorBy;
pub use fields::bounds::{MAX_LAYERS, MAX_PARALLAX};
pub use fields::field::{
    ChoiceName, FieldChoice, FieldControl, FieldKeyword, FieldMember, FieldOption, FieldRecord, FieldType,
    FieldUnion, NumberRange, OptionForm, ViewField,
};
pub use fields::schema::json_schema;
pub use fields::validate::SCHEMA;
pub use fields::{FIELDS, find_field, find_keyword};
pub use first::COLOR_END;
pub use kind::{DataHints, DataKind};
pub use layer::{LayerFaces, LayerLabels, PlacedLayer, ViewLayer};
pub use layout::{MAX_GRID_SIDE, ViewCell, ViewGrid, ViewLayout};
pub use preset::{PRESETS, Preset, PresetRange, background_border, find_preset};
pub use scale::{RangeScale, SYMLOG_SHARE, ValueScale};
pub use sides::{shows_all_layers, thick_sides};
pub use similar::similar;
pub use slice::{MAX_SLICES, SpaceAxis, ViewSlice};
pub use surface::{MAX_SURFACES, Mode, Surface};
pub use transfer::{MAX_OPACITY_POINTS, Transfer};
pub use view::{MAX_VIEW_BYTES, View};
pub use written::{ViewRequest, share, side, side_of_person};
