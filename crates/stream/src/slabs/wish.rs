//! Slabs beside pictures, whatever their cameras are.

use render::{Camera, Cutting, SlabRequest, SpaceAxis, VolumeView, best_axis};

/// What slabs are wanted beside each picture of a film.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlabWish {
    /// Across the axis that the camera sees most nearly from the front, instead of parallel to the image.
    pub is_across_axis: bool,
    /// Into how many slabs, 1 to [`render::Slabs::MAX_COUNT`].
    pub count: u32,
    /// Pixels of the picture along a side of each texel, 1 to 8.
    pub reduction: u32,
}

impl SlabWish {
    /// How many slabs there are where nobody says otherwise: what was found to be worth most for its bytes.
    pub const COUNT: u32 = 32;

    /// For one picture, after one of slabs across `before`.
    pub(crate) fn request(
        &self,
        view: &VolumeView,
        camera: Camera,
        before: Option<SpaceAxis>,
    ) -> SlabRequest {
        let cutting = match self.is_across_axis {
            true => Cutting::Axis(best_axis(view, &camera, before)),
            false => Cutting::Planes,
        };
        SlabRequest { cutting, reduction: self.reduction, ..SlabRequest::planes(camera, self.count) }
    }
}
