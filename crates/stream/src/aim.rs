//! Aiming: from a view to the blocks that its picture wants, within one participant's share of memory.

use std::sync::Arc;

use array::{Dataset, Result};
use render::{Camera, Demand, ImageSize, Portion, stereo};
use session::{ParticipantId, View};

use crate::host::Host;
use crate::picture::{camera_of, portion_of, size_of_eye, volume_of};
use crate::volume::Watching;

/// A view made ready for drawing.
pub(crate) struct Aim {
    /// What the data were when it was aimed at them.
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) view: Arc<View>,
    pub(crate) size: ImageSize,
    /// What this participant may spend, bytes.
    pub(crate) share_bytes: usize,
    pub(crate) watching: Watching,
    pub(crate) demand: Arc<Demand>,
    pub(crate) camera: Camera,
    pub(crate) portion: Portion,
}

/// How far a look at a view reaches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reach {
    /// To what the memory of so many hosts like this one takes.
    Memory { hosts: usize },
    /// To all that is seen of a level: somebody else saw to the memory.
    Level(u8),
}

impl Aim {
    /// Aims `who` at `view` and wishes for what is lacking; `old` is what they looked at so far. Blocks the thread.
    ///
    /// # Errors
    /// When the view does not fit the data set.
    pub(crate) fn new(
        host: &Host,
        who: ParticipantId,
        view: Arc<View>,
        size: ImageSize,
        old: Option<Watching>,
    ) -> Result<Self> {
        let aim = Self::look(host, who, view, size, old, Reach::Memory { hosts: 1 })?;
        aim.wish(host, who);
        Ok(aim)
    }

    /// The same as far as `reach` says; wishes for nothing yet.
    ///
    /// # Errors
    /// As [`Aim::new`].
    pub(crate) fn look(
        host: &Host,
        who: ParticipantId,
        view: Arc<View>,
        size: ImageSize,
        old: Option<Watching>,
        reach: Reach,
    ) -> Result<Self> {
        let dataset = host.dataset();
        let volume = volume_of(&view, &dataset)?;
        let camera = camera_of(&view, &volume)?;
        let portion = portion_of(&view, &volume);
        let watching = match old {
            Some(same) if *same.volume.view == *volume => same,
            // The old guard is dropped after the new one is there: others see no change in between.
            _other => host.volumes.look(who, &dataset, Arc::clone(&volume))?,
        };
        let share_bytes = host.volumes.share_out();
        let (level, most_bytes) = match reach {
            Reach::Memory { hosts } => (view.level, share_bytes.saturating_mul(hosts)),
            Reach::Level(level) => (Some(level), usize::MAX),
        };
        let seen = size_of_eye(&view, size);
        let demand = match view.stereo {
            None => render::demand(&volume, &camera, seen, &portion, level, most_bytes)?,
            Some(parallax) => {
                let eyes = stereo::eyes(&camera, parallax)?;
                render::demand_of(&volume, &eyes, seen, &portion, level, most_bytes)?
            }
        };
        Ok(Self { dataset, view, size, share_bytes, watching, demand: Arc::new(demand), camera, portion })
    }

    /// Wishes for what is lacking of what it demands. Blocks the thread.
    pub(crate) fn wish(&self, host: &Host, who: ParticipantId) {
        host.feed.wish(who, || self.watching.want(&self.demand));
    }

    /// Number of the array in the description.
    pub(crate) fn array(&self) -> u32 {
        self.watching.volume.view.key(0, [0; 3]).array
    }

    /// True when this is still the right aim for another view and size: the same blocks from the same place.
    pub(crate) fn serves(&self, host: &Host, view: &View, size: ImageSize) -> bool {
        let old = &*self.view;
        self.size == size
            && Arc::ptr_eq(&self.dataset, &host.dataset())
            && (&old.array, old.time, &old.at, old.level) == (&view.array, view.time, &view.at, view.level)
            && (&old.camera, old.stereo) == (&view.camera, view.stereo)
            && self.portion == portion_of(view, &self.watching.volume.view)
    }
}
