//! The array of a view as it is drawn, and the map from its voxels to stored elements.

use std::sync::Arc;

use array::{ArrayInfo, Dataset, Result};
use render::VolumeView;
use view::View;

use super::request::ViewChoice;
use crate::loading::regrid::{StoredChannels, StoredPlace, StoredPlaces};
use crate::viewer::check::check;
use crate::viewer::scene::volume_of;
use crate::viewer::shared::SharedState;

/// Array that a request is about.
pub(crate) struct Subject {
    /// Description of what is drawn.
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) view: View,
    /// Volume that the view shows.
    pub(crate) volume: Arc<VolumeView>,
    pub(crate) drawn: DrawnVoxels,
}

/// Voxels of a drawn array, and the stored elements behind them.
#[derive(Clone)]
pub(crate) struct DrawnVoxels {
    pub(crate) places: StoredPlaces,
    /// Number of the drawn array.
    array: u32,
}

impl Subject {
    /// Finds the array of a view.
    ///
    /// # Errors
    /// `Invalid` and others for a view that does not fit the data set; `Stale` while the data are being described again.
    pub(crate) fn of(shared: &SharedState, choice: &ViewChoice) -> Result<Self> {
        let dataset = shared.dataset();
        let view = shared.view_of(choice.participant).merged(&choice.view)?;
        check(&view, &dataset)?;
        let places = shared.stored_places()?;
        let volume = volume_of(&view, &dataset)?;
        let array = volume.key(0, [0; 3]).array;
        Ok(Self { dataset, view, volume, drawn: DrawnVoxels { places, array } })
    }

    /// Returns the stored element of a voxel `[z, y, x]` of level 0; `None` outside of all cells of a curvilinear grid.
    pub(crate) fn stored(&self, voxel: [u64; 3]) -> Option<StoredPlace> {
        self.drawn.stored(&self.volume, voxel)
    }

    /// Returns the voxels of another array whose volume is given.
    pub(crate) fn voxels_of(&self, volume: &VolumeView) -> DrawnVoxels {
        DrawnVoxels { places: self.drawn.places.clone(), array: volume.key(0, [0; 3]).array }
    }
}

impl DrawnVoxels {
    /// Returns the stored element of a voxel `[z, y, x]` of level 0 of the volume.
    pub(crate) fn stored(&self, volume: &VolumeView, voxel: [u64; 3]) -> Option<StoredPlace> {
        self.places.stored(self.array, &volume.index_of(voxel))
    }

    /// Returns the description of the stored array.
    ///
    /// # Errors
    /// None: the array was looked up before.
    pub(crate) fn info(&self) -> Result<&ArrayInfo> {
        self.places.dataset.array(self.stored_array())
    }

    /// Returns the number of the stored array.
    pub(crate) fn stored_array(&self) -> u32 {
        self.places.stored_array(self.array)
    }

    /// Returns the axes of the stored array that are drawn as z, y and x.
    pub(crate) fn stored_axes(&self, volume: &VolumeView) -> [Option<usize>; 3] {
        volume.array_axes().map(|axis| axis.map(|axis| self.places.stored_axis(self.array, axis)))
    }

    /// Returns the stored axes of latitude and longitude, if cells are looked up by both together.
    pub(crate) fn joint_axes(&self) -> Option<[usize; 2]> {
        self.places.joint_axes(self.array)
    }

    /// Returns the channels that are drawn as one color.
    pub(crate) fn channels(&self) -> Option<StoredChannels> {
        self.places.channels(self.array)
    }

    /// Returns the indices of all stored elements of one voxel: one for each channel that is drawn.
    pub(crate) fn elements(&self, place: &StoredPlace) -> Vec<Vec<u64>> {
        let Some(StoredChannels { axis, used }) = self.channels() else { return vec![place.index.clone()] };
        let of = |&channel: &u64| {
            let mut index = place.index.clone();
            index[axis] = channel;
            index
        };
        used.iter().map(of).collect()
    }
}
