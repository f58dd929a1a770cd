//! On which side of the isovalues the cells of a block lie, and how far the nearest cell is that lies on both sides of one.
//!
//! A side is counted: how many isovalues lie at or below a value. Neighbouring cells share the voxels between them, so that
//! all around a cell, as far as it is told, values are on its own side; not so in blocks with missing voxels, where no side
//! is told.

use crate::hunt::Surfaces;
use crate::resident::Resident;
use crate::simd::READ_AHEAD;
use crate::skip::distances;

/// Of a byte of [`Sides::Cells`] what is above the side: the distance to the nearest cell to be looked into, in cells as
/// [`Field::Cells`](crate::skip::Field) counts them; 0 for such cells themselves.
pub(crate) const SIDES: u8 = 32;
/// The side that is not known. More than there are isovalues.
pub(crate) const UNKNOWN: u8 = SIDES - 1;
const _: () = assert!(crate::Isosurface::MAX_COUNT < UNKNOWN as usize, "a side in five bits");

/// Farthest distance that is told.
const FARTHEST: u8 = u8::MAX / SIDES;

/// See the module.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sides {
    /// All of the block lies on one side, or [`UNKNOWN`].
    Even(u8),
    /// Distance times [`SIDES`] and side by cell. C order; [`READ_AHEAD`] bytes follow.
    Cells(Vec<u8>),
}

/// On which side some values lie.
pub(crate) enum Side {
    /// No value is there.
    Absent,
    One(u8),
    /// A surface may lie between them.
    Several,
}

impl Side {
    /// Of all values from the lowest to the highest, where `below` counts the isovalues at or below one.
    pub(crate) fn of([low, high]: [f32; 2], below: impl Fn(f64) -> u8) -> Self {
        if low > high {
            return Self::Absent;
        }
        let [lowest, highest] = [low, high].map(|value| below(f64::from(value)));
        if lowest == highest { Self::One(lowest) } else { Self::Several }
    }
}

impl Sides {
    /// Of no block.
    pub(crate) const NONE: Self = Self::Even(UNKNOWN);

    pub(crate) fn new<T>(block: &Resident<T>, surfaces: &Surfaces) -> Self {
        let side = |&range: &[f32; 2]| match Side::of(range, |value| surfaces.side_of(value)) {
            Side::Several => None,
            Side::One(side) if !block.has_missing => Some(side),
            Side::Absent | Side::One(_) => Some(UNKNOWN),
        };
        let sides: Vec<Option<u8>> = block.cells.iter().map(side).collect();
        if let Some(first) = sides[0]
            && sides.iter().all(|&side| side == Some(first))
        {
            return Self::Even(first);
        }
        let mixed: Vec<bool> = sides.iter().map(Option::is_none).collect();
        let mut cells = distances(&mixed, block.layout.cells);
        for (cell, side) in cells.iter_mut().zip(sides) {
            *cell = (*cell).min(FARTHEST) * SIDES + side.unwrap_or(UNKNOWN);
        }
        cells.resize(cells.len() + READ_AHEAD, 0);
        Self::Cells(cells)
    }
}
