//! Sides of the isovalues on which the cells of a block lie, and how far the nearest cell is that lies on both sides of one.
//!
//! A side is counted: how many isovalues lie at or below a value. Neighboring cells share the voxels between them, so that
//! all around a cell, as far as it is told, values are on its own side; not so in blocks with missing voxels, where no side
//! is told.

use std::sync::{Arc, OnceLock};

use crate::blocks::memo::Memo;
use crate::blocks::resident::Resident;
use crate::blocks::voxel::{MissingValues, Voxel};
use crate::cpu::empty_space::visible_cells::distances;
use crate::isosurface::active_cells::{ActiveCells, FindActiveCells};
use crate::isosurface::hits::Surfaces;
use crate::simd::{Instructions, READ_AHEAD};

/// Factor of the distance in a byte of [`CellSides::Cells`]. The byte is the distance to the nearest cell to be
/// looked into, times this factor, plus the side. Distances are in cells, as
/// [`VisibleCells::Cells`](crate::cpu::empty_space::visible_cells::VisibleCells) counts them; 0 for such cells themselves.
pub(crate) const SIDES: u8 = 32;
/// The side that is not known. More than there are isovalues.
pub(crate) const UNKNOWN: u8 = SIDES - 1;
const _: () = assert!(crate::Isosurface::MAX_COUNT < UNKNOWN as usize, "a side in five bits");

/// Farthest distance that is told.
const FARTHEST: u8 = u8::MAX / SIDES;

/// CellSides of the isovalues on which the cells of a block lie.
#[derive(Debug)]
pub(crate) enum CellSides {
    /// All of the block lies on one side, or [`UNKNOWN`].
    Even(u8),
    /// It does not.
    Cells(SidesByCell),
}

/// The sides of the cells of a block.
#[derive(Debug)]
pub(crate) struct SidesByCell {
    /// Distance times [`SIDES`] and side by cell. C order; [`READ_AHEAD`] bytes follow.
    pub(crate) around: Vec<u8>,
    /// Found when the first ray asks: none may come.
    active: OnceLock<ActiveCells>,
}

/// The sides of a block of the isovalues, stored, that were last asked for.
pub(crate) type LastSides = Memo<Arc<[f64]>, CellSides, 1>;

/// Side on which some values lie.
pub(crate) enum ValueSide {
    /// No value is there.
    Absent,
    One(u8),
    /// A surface may lie between them.
    Several,
}

impl ValueSide {
    /// Returns the side of all values from the lowest to the highest; `below` counts the isovalues at or
    /// below a value.
    pub(crate) fn of([low, high]: [f32; 2], below: impl Fn(f64) -> u8) -> Self {
        if low > high {
            return Self::Absent;
        }
        let [lowest, highest] = [low, high].map(|value| below(f64::from(value)));
        if lowest == highest { Self::One(lowest) } else { Self::Several }
    }
}

impl CellSides {
    pub(crate) fn new<T>(block: &Resident<T>, surfaces: &Surfaces) -> Self {
        let side = |&range: &[f32; 2]| match ValueSide::of(range, |value| surfaces.side_of(value)) {
            ValueSide::Several => None,
            ValueSide::One(side) if !block.has_missing => Some(side),
            ValueSide::Absent | ValueSide::One(_) => Some(UNKNOWN),
        };
        let sides: Vec<Option<u8>> = block.cells.iter().map(side).collect();
        if let Some(first) = sides[0]
            && sides.iter().all(|&side| side == Some(first))
        {
            return Self::Even(first);
        }
        let mixed: Vec<bool> = sides.iter().map(Option::is_none).collect();
        let mut around = distances(&mixed, block.layout.cells);
        for (cell, side) in around.iter_mut().zip(sides) {
            *cell = (*cell).min(FARTHEST) * SIDES + side.unwrap_or(UNKNOWN);
        }
        around.resize(around.len() + READ_AHEAD, 0);
        Self::Cells(SidesByCell { around, active: OnceLock::new() })
    }
}

impl SidesByCell {
    /// Which cells of eight voxels lie on several sides, of the block and the isovalues that this was made of.
    pub(crate) fn active<T: Voxel>(
        &self,
        block: &Resident<T>,
        missing: &MissingValues<T>,
        surfaces: &Surfaces,
    ) -> &ActiveCells {
        let find = || {
            let isovalues = &surfaces.isovalues();
            Instructions::best().run(FindActiveCells { block, missing, isovalues })
        };
        self.active.get_or_init(find)
    }
}
