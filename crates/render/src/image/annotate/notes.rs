//! Notes that are written into a picture.

use super::axis::AxisNote;
use super::keys::LegendKey;
use crate::scene::camera::{Bounds, Camera};
use crate::scene::transfer::TransferFunction;

/// Facts about a picture that are written into it.
#[derive(Clone, Debug)]
pub struct Notes {
    /// Camera that the picture was taken from.
    pub camera: Camera,
    /// The box around the voxels, world space.
    pub bounds: Bounds,
    /// Axes x, y, z of the box.
    pub axes: [AxisNote; 3],
    /// Units of world space; empty if unknown.
    pub world_units: String,
    /// True if x and y are degrees of longitude and latitude, to scale.
    pub is_map: bool,
    /// True if x leads to a person's right, y to the front and z upward.
    pub is_anatomical: bool,
    /// Name and units of the values, written over the legend.
    pub values: String,
    /// Text in the upper left corner, such as a time; may be empty.
    pub title: String,
    /// Meanings of colors that are not on a scale, such as those of isosurfaces.
    pub keys: Vec<LegendKey>,
    /// Colors of the values; no legend if `None`, nor for labels.
    pub transfer: Option<TransferFunction>,
    /// True if the picture lies over a dark background.
    pub is_dark: bool,
}
