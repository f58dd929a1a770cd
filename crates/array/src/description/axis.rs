//! Axes: names, kinds, units and positions of the samples along them.

use serde::{Deserialize, Serialize};

use crate::values::float::{json, json_list, same_floats};

/// Role of an axis; decides which axes are drawn as space and which as time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisKind {
    /// Time, or steps of it; may grow.
    Time,
    /// The slowest spatial axis (height, depth, level).
    Z,
    /// The middle spatial axis (latitude, rows).
    Y,
    /// The fastest spatial axis (longitude, columns).
    X,
    /// Components or channels.
    Channel,
    /// Another axis (ensemble member, band).
    Other,
}

impl AxisKind {
    /// True for z, y and x.
    #[must_use]
    pub fn is_spatial(self) -> bool {
        matches!(self, Self::Z | Self::Y | Self::X)
    }
}

/// Which axis units of degrees of latitude (`degrees_north`) or longitude (`degrees_east`) belong to: `Y` or `X`; `None` for
/// other units.
#[must_use]
pub fn kind_of_degrees(units: &str) -> Option<AxisKind> {
    let lower = units.to_ascii_lowercase();
    let side = lower.strip_prefix("degrees").or_else(|| lower.strip_prefix("degree"))?;
    match side.trim_matches(['_', ' ']) {
        "east" | "e" => Some(AxisKind::X),
        "north" | "n" => Some(AxisKind::Y),
        _ => None,
    }
}

/// Positions of the samples of level 0 along one axis, in the axis's units. Floats compare by
/// [`same_float`](crate::same_float).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coordinates {
    /// Unknown: the index is the coordinate.
    Index,
    /// Sample `i` lies at `origin + i * step`.
    Regular {
        /// Coordinate of sample 0.
        #[serde(with = "json")]
        origin: f64,
        /// Distance between samples; may be negative, never zero.
        #[serde(with = "json")]
        step: f64,
    },
    /// One coordinate per sample, in order of the index.
    Explicit(#[serde(with = "json_list")] Vec<f64>),
}

impl PartialEq for Coordinates {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Index, Self::Index) => true,
            (&Self::Regular { origin, step }, &Self::Regular { origin: first, step: by }) => {
                same_floats(&[origin, step], &[first, by])
            }
            (Self::Explicit(a), Self::Explicit(b)) => same_floats(a, b),
            _ => false,
        }
    }
}

impl Eq for Coordinates {}

impl Coordinates {
    /// Most explicit coordinates a description carries; longer axes are described as `Index`
    /// and read as an array of their own.
    pub const MAX_EXPLICIT: usize = 65_536;

    /// The coordinate of sample `index` of level 0.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "indices beyond 2^53 do not occur in files")]
    pub fn at(&self, index: u64) -> f64 {
        match self {
            Self::Index => index as f64,
            Self::Regular { origin, step } => origin + index as f64 * step,
            Self::Explicit(values) => {
                usize::try_from(index).ok().and_then(|i| values.get(i).copied()).unwrap_or(f64::NAN)
            }
        }
    }
}

/// One axis of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The file's name for it, or `dim0`, `dim1`, ...
    pub name: String,
    /// Role of the axis: time, space, channel or other.
    pub kind: AxisKind,
    /// Units as the file writes them (`mm`, `degrees_north`, `hours since 1900-01-01`); empty if unknown.
    pub units: String,
    /// Positions of the samples along the axis.
    pub coordinates: Coordinates,
}

impl Axis {
    /// An axis of which only name and kind are known.
    pub fn new(name: impl Into<String>, kind: AxisKind) -> Self {
        Self { name: name.into(), kind, units: String::new(), coordinates: Coordinates::Index }
    }
}
