//! Isosurfaces of a picture in stored values, and the hits of rays on them.

use std::sync::Arc;

use glam::Vec4;

use crate::blocks::voxel::{PlaceScale, Voxel, above};
use crate::{Isosurface, VolumeView};

/// Surfaces of a picture, in stored values.
#[derive(Debug)]
pub(crate) struct Surfaces {
    /// By increasing stored value.
    pub(crate) sorted: Vec<StoredSurface>,
    /// Comparison of voxels that `f32` cannot represent with the first of them.
    pub(super) scale: PlaceScale,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredSurface {
    pub(crate) stored: f64,
    /// Premultiplied.
    pub(crate) color: Vec4,
}

/// Hit of a ray on a surface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    /// Position in steps of the ray.
    pub(crate) at: f64,
    /// Stored value that is crossed; NaN at an edge of a box, where no value was looked up.
    pub(crate) stored: f64,
    /// Lit, premultiplied.
    pub(crate) color: Vec4,
    /// Cosine between the gradient there and the ray; see [`Lamp::cosine`](crate::scene::light::Lamp::cosine).
    pub(crate) cosine: f32,
    /// True if another caster draws it; here it only determines the beginning of its step.
    pub(crate) is_foreign: bool,
}

impl Hit {
    pub(crate) const NONE: Self =
        Self { at: f64::INFINITY, stored: f64::NAN, color: Vec4::ZERO, cosine: 1.0, is_foreign: false };

    /// Creates the hit of a ray on an edge of a box, which is not lit.
    pub(crate) fn of_edge(at: f64, color: Vec4) -> Self {
        Self { at, color, ..Self::NONE }
    }

    pub(crate) fn is_edge(&self) -> bool {
        self.stored.is_nan()
    }
}

impl Surfaces {
    pub(crate) fn new(surfaces: &[Isosurface], view: &VolumeView) -> Self {
        let surface = |s: &Isosurface| StoredSurface {
            stored: (s.value - view.decoding.offset) / view.decoding.scale,
            color: Vec4::new(s.color[0], s.color[1], s.color[2], 1.0) * s.opacity,
        };
        let mut sorted: Vec<StoredSurface> = surfaces.iter().map(surface).collect();
        sorted.sort_by(|a, b| a.stored.total_cmp(&b.stored));
        let scale = PlaceScale::new(sorted.first().map_or(0.0, |first| first.stored), 1.0);
        Self { sorted, scale }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Returns the isovalues, ascending.
    pub(crate) fn isovalues(&self) -> Arc<[f64]> {
        self.sorted.iter().map(|surface| surface.stored).collect()
    }

    /// Returns the number of isovalues at or below a stored value.
    #[expect(clippy::cast_possible_truncation, reason = "at most MAX_COUNT")]
    pub(crate) fn side_of(&self, stored: f64) -> u8 {
        self.sorted.partition_point(|s| s.stored <= stored) as u8
    }

    /// Returns the isovalues in the form in which voxels of a type are loaded, so that comparisons give the
    /// same result except for rounding to the isovalue itself.
    pub(super) fn marks<T: Voxel>(&self) -> ([f32; Isosurface::MAX_COUNT], usize) {
        let mut marks = [0.0; Isosurface::MAX_COUNT];
        for (mark, surface) in marks.iter_mut().zip(&self.sorted) {
            *mark = if T::WIDE { self.scale.place(surface.stored) } else { above(surface.stored) };
        }
        (marks, self.sorted.len())
    }
}
