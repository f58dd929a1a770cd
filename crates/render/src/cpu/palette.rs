//! Palette: colors of values without opacity, used for extreme values along rays and on slices.

use glam::Vec4;

use crate::TransferFunction;
use crate::cpu::entry_scale::EntryScale;
use crate::device::PreparedPalette;
use crate::scene::color_map::OwnColors;
use crate::scene::transfer::interpolate;

/// Colors of values and labels, without opacity.
#[derive(Debug)]
pub(crate) struct Palette {
    colors: Vec<[f32; 3]>,
    entry_scale: EntryScale,
    /// Share of the color map of an entry of the transfer function's table = the first + the second * entry.
    map: [f64; 2],
    own: Option<OwnColors>,
}

impl Palette {
    pub(crate) fn new(transfer: &TransferFunction) -> Self {
        let colors = transfer.colors();
        let own = OwnColors::new(&transfer.color_map, &colors);
        let entry_scale = EntryScale::new(transfer);
        let [low, high] = transfer.range.map(|end| transfer.range_scale().position(end));
        let [position, per_entry] = entry_scale.positions();
        let map = [(position - low) / (high - low), per_entry / (high - low)];
        Self { colors, entry_scale, map, own }
    }

    /// Returns the color at a place in the transfer function's table.
    pub(crate) fn of_place(&self, place: f32) -> Vec4 {
        self.of_entry(self.entry_scale.entry(place))
    }

    /// Returns the color at an entry of the transfer function's table.
    pub(crate) fn of_entry(&self, entry: f32) -> Vec4 {
        let [first, per_entry] = self.map;
        self.opaque(interpolate(&self.colors, first + f64::from(entry) * per_entry))
    }

    /// Returns the color of a label at a place in that table: if the map is categorical, that of its number.
    pub(crate) fn of_label(&self, label: u32, place: f32) -> Vec4 {
        self.own.as_ref().map_or_else(|| self.of_place(place), |own| self.opaque(own.of(label)))
    }

    /// Returns the palette for a caster on another device.
    pub(crate) fn prepared(&self) -> PreparedPalette {
        let map = self.map.map(|part| part * (self.colors.len() - 1) as f64);
        PreparedPalette { colors: self.colors.clone(), map }
    }

    fn opaque(&self, [r, g, b]: [f32; 3]) -> Vec4 {
        Vec4::new(r, g, b, 1.0)
    }
}
