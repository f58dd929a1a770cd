//! Layers on planes: slices, and images of one layer.

use glam::{DVec3, Vec4};

use crate::Slice;
use crate::blocks::voxel::Voxel;
use crate::cpu::context::CastContext;
use crate::cpu::layers::PlaneFrame;
use crate::cpu::packet::rays::PacketRays;
use crate::cpu::packet::size::LaneValues;
use crate::simd::LANES;

impl<T: Voxel> CastContext<'_, T> {
    /// Covers the colors of the `wanted` positions on a plane with those of the layers.
    #[inline(never)]
    pub(crate) fn cover_plane(
        &self,
        slice: &Slice,
        at: &[DVec3; LANES],
        wanted: u32,
        colors: &mut [Vec4; LANES],
    ) {
        let Ok(frame) = PlaneFrame::of(slice, &self.scene.view) else { return };
        let pixel_world = self.pixels_world(at);
        for layer in &self.layers {
            let own = layer.plane_colors(at, wanted, &frame, &pixel_world);
            for lane in (0..LANES).filter(|lane| wanted >> lane & 1 != 0) {
                let own = Vec4::from_array(own.map(|part| part[lane]));
                colors[lane] = own + colors[lane] * (1.0 - own.w);
            }
        }
    }

    /// Returns the size of a pixel at volume positions, world units.
    fn pixels_world(&self, at: &[DVec3; LANES]) -> LaneValues {
        let height = 2.0 * self.lens.half[1] / f64::from(self.scene.size.height);
        at.map(|at| {
            if !self.lens.perspective {
                return height;
            }
            let world = self.scene.view.world_from_volume.transform_point3(at);
            height * (world - self.lens.eye).dot(self.lens.forward).max(0.0)
        })
    }

    /// Returns the axis (0 x, 1 y, 2 z) across an array of one layer.
    pub(crate) fn flat_axis(&self) -> Option<usize> {
        let thick = self.scene.view.thick_axes();
        (0..3).find(|&axis| !thick[axis] && thick[(axis + 1) % 3] && thick[(axis + 2) % 3])
    }

    /// Covers the colors of rays with the layers where they pass through an array of one layer.
    #[inline(never)]
    pub(crate) fn cover_image(&self, rays: &PacketRays, colors: &mut [Vec4; LANES]) {
        // Slices are covered themselves.
        let is_image = self.scene.mode != view::Mode::Surfaces && self.scene.slices.is_empty();
        let Some(axis) = self.flat_axis().filter(|_| is_image && !self.layers.is_empty()) else { return };
        let (mut at, mut wanted) = ([DVec3::ZERO; LANES], 0);
        for (lane, at) in at.iter_mut().enumerate() {
            let [from, to] = [rays.reach[0][lane], rays.reach[1][lane]];
            let steps = -rays.origin[axis][lane] * rays.inverse[axis][lane];
            if from < to && (from..=to).contains(&steps) {
                *at = rays.at(lane, steps);
                wanted |= 1 << lane;
            }
        }
        if wanted != 0 {
            let plane =
                Slice::across([view::SpaceAxis::X, view::SpaceAxis::Y, view::SpaceAxis::Z][axis], 0.0);
            self.cover_plane(&plane, &at, wanted, colors);
        }
    }
}
