//! Sides of the isovalues on which the cells of a block lie, and the distance to the nearest cell that lies
//! on both sides of an isovalue.
//!
//! A side is a count: the number of isovalues at or below a value. Neighboring cells share the voxels between
//! them, so that all values within the stored distance of a cell are on the cell's side; this does not hold
//! in blocks with missing voxels, where no side is stored.

use std::sync::{Arc, OnceLock};

use crate::blocks::memo::Memo;
use crate::blocks::resident::Resident;
use crate::blocks::voxel::{MissingValues, Voxel};
use crate::cpu::empty_space::visible_cells::distances;
use crate::isosurface::active_cells::{ActiveCells, FindActiveCells};
use crate::isosurface::hits::Surfaces;
use crate::simd::{Instructions, READ_AHEAD};

/// Factor of the distance in a byte of [`CellSides::Cells`]. The byte is the distance to the nearest active
/// cell, times this factor, plus the side. Distances are in cells, as in
/// [`VisibleCells::Cells`](crate::cpu::empty_space::visible_cells::VisibleCells); 0 for active cells
/// themselves.
pub(crate) const SIDES: u8 = 32;
/// Unknown side; larger than the number of isovalues.
pub(crate) const UNKNOWN: u8 = SIDES - 1;
const _: () = assert!(crate::Isosurface::MAX_COUNT < UNKNOWN as usize, "a side in five bits");

/// Farthest distance that is stored.
const FARTHEST: u8 = u8::MAX / SIDES;

/// Sides of the isovalues on which the cells of a block lie.
#[derive(Debug)]
pub(crate) enum CellSides {
    /// All of the block lies on one side, or [`UNKNOWN`].
    Even(u8),
    /// The cells lie on different sides.
    Cells(SidesByCell),
}

/// Sides of the cells of a block.
#[derive(Debug)]
pub(crate) struct SidesByCell {
    /// Distance times [`SIDES`] and side by cell. C order; [`READ_AHEAD`] bytes follow.
    pub(crate) around: Vec<u8>,
    /// Active cells, computed when the first ray needs them.
    active: OnceLock<ActiveCells>,
}

/// Sides of a block for the isovalues, stored, that were requested last.
pub(crate) type LastSides = Memo<Arc<[f64]>, CellSides, 1>;

/// Side of a range of values.
pub(crate) enum ValueSide {
    /// No value is present.
    Absent,
    One(u8),
    /// Several sides: a surface may lie between the values.
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
    /// Returns the active cells of the block for the isovalues that this was computed from.
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
