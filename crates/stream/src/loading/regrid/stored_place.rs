//! The stored elements behind a voxel of a drawn array: the reverse of what is drawn on even grids and as packed colors.

use std::sync::Arc;

use array::{Dataset, Source};

use super::coordinates::{ArrayNames, Curvilinear};
use super::lat_lon_grid::NO_CELL;
use super::plan::{RegridBlockOrigin, RegridPlan};
use super::{RegridState, Regridded};
use crate::loading::vectors::VectorLengths;

/// Map from drawn voxels to stored elements, for one description of the data.
#[derive(Clone)]
pub(crate) struct StoredPlaces {
    /// Source of the stored elements.
    pub(crate) source: Arc<dyn Source>,
    /// Description of the stored arrays.
    pub(crate) dataset: Arc<Dataset>,
    /// Plan by which arrays are drawn; `None` if all are drawn as they are stored.
    plan: Option<Arc<RegridPlan>>,
}

/// Stored elements that one drawn voxel shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredPlace {
    /// Number of the stored array.
    pub(crate) array: u32,
    /// Index per axis of level 0; 0 on the axis of channels.
    pub(crate) index: Vec<u64>,
}

/// Channels of a stored array that are drawn as one color.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredChannels {
    /// Axis of the channels.
    pub(crate) axis: usize,
    /// Indices of the channels that are drawn.
    pub(crate) used: Vec<u64>,
}

impl Regridded {
    /// Returns the map to the stored elements for the newest description.
    pub(crate) fn stored_places(&self) -> StoredPlaces {
        let RegridState { source, .. } = &*self.inner;
        let plan = self.inner.plan();
        let source: Arc<dyn Source> = Arc::<VectorLengths>::clone(source);
        StoredPlaces { source, dataset: Arc::clone(&plan.source), plan: Some(plan) }
    }
}

impl StoredPlaces {
    /// Returns the map of a source whose arrays are drawn as they are stored.
    pub(crate) fn as_drawn(source: Arc<dyn Source>, dataset: Arc<Dataset>) -> Self {
        Self { source, dataset, plan: None }
    }

    /// Returns true if this is the map for a description by which data are drawn.
    pub(crate) fn fits(&self, drawn: &Dataset) -> bool {
        let own = self.plan.as_ref().map_or(&self.dataset, |plan| &plan.dataset);
        (own.id, own.generation) == (drawn.id, drawn.generation)
    }

    /// Returns the stored array behind a drawn one.
    pub(crate) fn stored_array(&self, drawn: u32) -> u32 {
        match self.plan.as_ref().map(|plan| plan.block_origin(drawn)) {
            Some(RegridBlockOrigin::PackedColors(colors)) => colors.source,
            _ => drawn,
        }
    }

    /// Returns the channels of the stored array that a drawn array of colors shows; `None` for every other array.
    pub(crate) fn channels(&self, drawn: u32) -> Option<StoredChannels> {
        let plan = self.plan.as_ref()?;
        let RegridBlockOrigin::PackedColors(colors) = plan.block_origin(drawn) else { return None };
        let (axis, used) = colors.channels()?;
        Some(StoredChannels { axis, used: used.iter().map(|&index| index.into()).collect() })
    }

    /// Returns the axis of the stored array that an axis of the drawn one shows.
    pub(crate) fn stored_axis(&self, drawn: u32, axis: usize) -> usize {
        match self.channels(drawn) {
            Some(channels) if axis >= channels.axis => axis + 1,
            _ => axis,
        }
    }

    /// Returns the stored element of a voxel with an index per axis of level 0 of a drawn array; `None` outside of all
    /// cells of a curvilinear grid.
    pub(crate) fn stored(&self, drawn: u32, index: &[u64]) -> Option<StoredPlace> {
        let mut index = index.to_vec();
        match self.plan.as_ref().map(|plan| plan.block_origin(drawn)) {
            Some(RegridBlockOrigin::Even(grid)) => {
                let level = grid.levels.first()?;
                for (index, map) in index.iter_mut().zip(level.indices()) {
                    if let Some(map) = map {
                        *index = (*map.get(usize::try_from(*index).ok()?)?).into();
                    }
                }
                if let Some(pixels) = level.pixels() {
                    let [row, column] = pixels.axes.map(|axis| usize::try_from(index[axis]));
                    let pixel = row.ok()?.checked_mul(pixels.columns)?.checked_add(column.ok()?)?;
                    let cell = *pixels.cells.get(pixel)?;
                    if cell == NO_CELL {
                        return None;
                    }
                    let place = [cell / pixels.source_columns, cell % pixels.source_columns];
                    pixels.axes.iter().zip(place).for_each(|(&axis, at)| index[axis] = at.into());
                }
            }
            Some(RegridBlockOrigin::PackedColors(_)) => {
                if let Some(channels) = self.channels(drawn) {
                    index.insert(channels.axis, 0);
                }
            }
            Some(RegridBlockOrigin::AsIs) | None => {}
        }
        Some(StoredPlace { array: self.stored_array(drawn), index })
    }

    /// Returns the drawn axes of latitude and longitude whose cells are looked up together, if the array lies on a
    /// curvilinear grid.
    pub(crate) fn joint_axes(&self, drawn: u32) -> Option<[usize; 2]> {
        let plan = self.plan.as_ref()?;
        let RegridBlockOrigin::Even(grid) = plan.block_origin(drawn) else { return None };
        Some(grid.levels.first()?.pixels()?.axes)
    }

    /// Returns the arrays of latitude and longitude over two axes of a stored array, if it has them: their axes, then
    /// their numbers.
    pub(crate) fn latitude_longitude(&self, stored: u32) -> Option<([usize; 2], [u32; 2])> {
        let names = ArrayNames::of(&self.dataset);
        let Curvilinear { axes, latitude, longitude } =
            names.curvilinear(self.dataset.array(stored).ok()?)?;
        Some((axes, [latitude, longitude]))
    }
}
