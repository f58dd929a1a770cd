//! Options of the slabs that are made with each picture of a film.

use render::{Camera, SlabRequest, VolumeView, best_axis};
use view::SpaceAxis;

/// Slabs to make with each picture of a film.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilmSlabs {
    /// Cut across the volume axis that is nearest to the viewing direction, instead of parallel to the image.
    pub is_across_axis: bool,
    /// Number of slabs, 1 to [`render::Slabs::MAX_COUNT`].
    pub count: u32,
    /// Pixels of the picture per side of a texel, 1 to 8; `None` for the default.
    pub reduction: Option<u32>,
}

impl FilmSlabs {
    /// Default number of slabs: the best quality per byte in measurements.
    pub const COUNT: u32 = 32;

    /// Returns the request for one picture, whose predecessor's slabs were cut across `before`.
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
