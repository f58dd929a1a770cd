//! Sides of the isovalues of a picture on which the values of a block lie: cells that lie on one side contain
//! no surface and are skipped.
//!
//! A *side* is the number of surfaces with no higher value. There is no surface between values on the same
//! side.

use super::PreparedSurface;
use crate::isosurface::cell_sides::ValueSide;

/// The side where no value is present.
pub const NO_SIDE: u8 = u8::MAX;
/// Cells of [`Sides::Cells`] with values of several sides, so that a surface may lie in the cell.
pub const SEVERAL_SIDES: u8 = u8::MAX - 1;

/// Sides of a block's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sides {
    /// All values lie on this side; [`NO_SIDE`] if no value is present.
    One(u8),
    /// Side by cell, C order, [`NO_SIDE`] or [`SEVERAL_SIDES`].
    Cells(Vec<u8>),
}

impl Sides {
    /// Finds the sides of a block's cells from their lowest and highest stored values.
    pub(super) fn new(cells: &[[f32; 2]], surfaces: &[PreparedSurface]) -> Self {
        let cells: Vec<u8> = cells.iter().map(|&range| side_of(range, surfaces)).collect();
        let mut present = cells.iter().copied().filter(|&side| side != NO_SIDE);
        let first = present.next().unwrap_or(NO_SIDE);
        if first != SEVERAL_SIDES && present.all(|side| side == first) {
            Self::One(first)
        } else {
            Self::Cells(cells)
        }
    }
}

/// Returns the side of all values from the lowest to the highest.
fn side_of(range: [f32; 2], surfaces: &[PreparedSurface]) -> u8 {
    let below = |value: f64| surfaces.partition_point(|surface| surface.stored <= value);
    match ValueSide::of(range, |value| u8::try_from(below(value)).unwrap_or(SEVERAL_SIDES)) {
        ValueSide::Absent => NO_SIDE,
        ValueSide::One(side) => side,
        ValueSide::Several => SEVERAL_SIDES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_between_two_surfaces_have_one_side() {
        let surface = |stored| PreparedSurface { stored, least: 0.0, place: 0.0, color: [0.0; 4] };
        let surfaces = [10.0, 20.0, 20.0].map(surface);
        let absent = [f32::INFINITY, f32::NEG_INFINITY];
        for (range, expected) in [
            ([-5.0, 9.9], 0),
            ([10.0, 19.9], 1),
            ([20.0, 99.0], 3),
            ([9.0, 10.0], SEVERAL_SIDES),
            ([19.0, 20.0], SEVERAL_SIDES),
            (absent, NO_SIDE),
        ] {
            assert_eq!(side_of(range, &surfaces), expected, "{range:?}");
        }
        let sides = |cells: &[[f32; 2]]| Sides::new(cells, &surfaces);
        assert_eq!(sides(&[[11.0, 12.0], absent, [10.0, 19.0]]), Sides::One(1));
        assert_eq!(sides(&[absent; 2]), Sides::One(NO_SIDE));
        assert_eq!(sides(&[[11.0, 12.0], absent, [25.0, 26.0]]), Sides::Cells(vec![1, NO_SIDE, 3]));
        assert_eq!(sides(&[[11.0, 22.0]]), Sides::Cells(vec![SEVERAL_SIDES]));
    }
}
