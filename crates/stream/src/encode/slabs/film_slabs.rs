//! Slabs beside pictures, whatever their cameras are.

use render::{Camera, SlabRequest, VolumeView, best_axis};
use view::SpaceAxis;

/// Slabs that are wanted beside each picture of a film.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilmSlabs {
    /// Across the axis that the camera sees most nearly from the front, instead of parallel to the image.
    pub is_across_axis: bool,
    /// Into how many slabs, 1 to [`render::Slabs::MAX_COUNT`].
    pub count: u32,
    /// Pixels of the picture along a side of each texel, 1 to 8; `None` for as many as were found to be worth most.
    pub reduction: Option<u32>,
}

impl FilmSlabs {
    /// How many slabs there are where nobody says otherwise: what was found to be worth most for its bytes.
    pub const COUNT: u32 = 32;

    /// For one picture, after one of slabs across `before`.
    pub(crate) fn request(
        &self,
        view: &VolumeView,
        camera: Camera,
        before: Option<SpaceAxis>,
    ) -> SlabRequest {
        let usual = match self.is_across_axis {
            true => SlabRequest::axis(camera, best_axis(view, &camera, before), self.count),
            false => SlabRequest::planes(camera, self.count),
        };
        SlabRequest { reduction: self.reduction.unwrap_or(usual.reduction), ..usual }
    }
}
