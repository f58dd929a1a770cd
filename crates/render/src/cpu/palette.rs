//! Palette: colors of values without opacity, used for extreme values along rays and on slices.

use glam::Vec4;

use crate::TransferFunction;
use crate::cpu::table::ENTRIES;
use crate::device::PreparedPalette;
use crate::scene::color_map::OwnColors;
use crate::scene::transfer::interpolate;

/// Colors of values and labels, without opacity.
#[derive(Debug)]
pub(crate) struct Palette {
    colors: Vec<[f32; 3]>,
    range: [f64; 2],
    domain: [f64; 2],
    own: Option<OwnColors>,
}

impl Palette {
    pub(crate) fn new(transfer: &TransferFunction) -> Self {
        let colors = transfer.colors();
        let own = OwnColors::new(&transfer.color_map, &colors);
        Self { colors, range: transfer.range, domain: transfer.domain(), own }
    }

    /// Returns the color at a place in the transfer function's table.
    pub(crate) fn of_place(&self, place: f32) -> Vec4 {
        let [low, high] = self.domain;
        let share = f64::from(place) / (ENTRIES - 1) as f64;
        self.opaque(interpolate(&self.colors, self.range, low + share * (high - low)))
    }

    /// Returns the color of a label at a place in that table: if the map is categorical, that of its number.
    pub(crate) fn of_label(&self, label: u32, place: f32) -> Vec4 {
        self.own.as_ref().map_or_else(|| self.of_place(place), |own| self.opaque(own.of(label)))
    }

    /// Returns the palette for a caster on another device.
    pub(crate) fn prepared(&self) -> PreparedPalette {
        let ([low, high], [first, last]) = (self.domain, self.range);
        let per_value = (self.colors.len() - 1) as f64 / (last - first);
        let per_place = per_value * (high - low) / (ENTRIES - 1) as f64;
        PreparedPalette { colors: self.colors.clone(), map: [(low - first) * per_value, per_place] }
    }

    fn opaque(&self, [r, g, b]: [f32; 3]) -> Vec4 {
        Vec4::new(r, g, b, 1.0)
    }
}
