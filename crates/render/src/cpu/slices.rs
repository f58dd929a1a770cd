//! Intersections of rays with slices. Only the nearest slice that has a value matters for each ray, because
//! slices are opaque.
//!
//! A ray meets a plane in one point, so sixteen rays look up their values together, slice by slice, without
//! marching.

use glam::{DVec3, Vec4};

use crate::blocks::voxel::Voxel;
use crate::cpu::context::CastContext;
use crate::cpu::packet::rays::{PacketRays, UniformRegion};
use crate::cpu::packet::size::LaneValues;
use crate::cpu::palette::Palette;
use crate::cpu::samples::lookup::PlaceValues;
use crate::cpu::samples::shading::Shading;
use crate::isosurface::hits::Hit;
use crate::scene::fidelity::ShownSamples;
use crate::scene::volume::xyz;
use crate::simd::{LANES, Simd, SimdStep};
use crate::{ObliquePlane, Scene, Slice};

/// Nearest slice of each ray.
pub(crate) type SliceHits = [Option<Hit>; LANES];

/// Slices of a picture, and their palette.
#[derive(Debug)]
pub(crate) struct Slices {
    slices: Vec<Slice>,
    palette: Palette,
    /// True if nothing else is drawn.
    pub(crate) are_alone: bool,
}

impl Slices {
    /// `None` for a scene without slices.
    pub(crate) fn prepare(scene: &Scene) -> Option<Self> {
        let are_alone = scene.portion().slices.is_some();
        let all = || Self { slices: scene.slices.clone(), palette: Palette::new(&scene.transfer), are_alone };
        (!scene.slices.is_empty()).then(all)
    }
}

/// Intersections of sixteen rays with one slice.
struct PlaneHits {
    /// Distances in steps of the ray.
    steps: LaneValues,
    /// Points of the plane in volume space.
    points: [DVec3; LANES],
    /// Positions at which values are looked up: the points, or centers of voxels.
    at: [DVec3; LANES],
    /// One bit per ray that meets it, before any other slice.
    rays: u32,
}

impl PlaneHits {
    fn has(&self, lane: usize) -> bool {
        self.rays >> lane & 1 != 0
    }

    fn new(rays: &PacketRays, slice: Slice, last: DVec3, slice_hits: &SliceHits) -> Self {
        let axis = slice.axis.index();
        let nowhere = [DVec3::ZERO; LANES];
        let mut plane_hits = Self { steps: [0.0; LANES], points: nowhere, at: nowhere, rays: 0 };
        for (lane, slice_hit) in slice_hits.iter().enumerate() {
            let Some(steps) = steps_to(rays, lane, &slice) else { continue };
            let is_first = slice_hit.is_none_or(|slice_hit| steps < slice_hit.at);
            if rays.reach[0][lane] < rays.reach[1][lane] && rays.owns(lane, steps) && is_first {
                plane_hits.rays |= 1 << lane;
                plane_hits.steps[lane] = steps;
                let mut point = rays.at(lane, steps);
                if slice.oblique.is_none() {
                    point[axis] = slice.at;
                }
                plane_hits.points[lane] = point;
                plane_hits.at[lane] = slice.looked_up_at(point, last);
            }
        }
        plane_hits
    }
}

/// Returns the distance of a slice along a ray, in its steps; `None` if they are parallel.
#[inline(always)]
fn steps_to(rays: &PacketRays, lane: usize, slice: &Slice) -> Option<f64> {
    if let Some(ObliquePlane { normal, offset }) = slice.oblique {
        let dot = |parts: &[LaneValues; 3]| (0..3).map(|a| normal[a] * parts[a][lane]).sum::<f64>();
        let closing = dot(&rays.step);
        return (closing != 0.0).then(|| (offset - dot(&rays.origin)) / closing);
    }
    let axis = slice.axis.index();
    let is_parallel = rays.step[axis][lane] == 0.0;
    (!is_parallel).then(|| (slice.at - rays.origin[axis][lane]) * rays.inverse[axis][lane])
}

/// Finds the slices of sixteen rays.
pub(crate) struct IntersectSlices<'a, 'b, T> {
    pub(crate) context: &'a CastContext<'b, T>,
    pub(crate) slices: &'a Slices,
    pub(crate) rays: &'a PacketRays,
    pub(crate) shading: &'a Shading<'a, T>,
    pub(crate) shown: &'a mut ShownSamples,
}

impl<S: Simd, T: Voxel> SimdStep<S> for IntersectSlices<'_, '_, T> {
    type Output = SliceHits;

    #[inline(always)]
    fn run(self, simd: S) -> SliceHits {
        let Self { context, slices, rays, shading, shown } = self;
        let mut slice_hits = [None; LANES];
        let last = xyz(context.scene.view.levels[0].shape) - 1.0;
        for &slice in &slices.slices {
            let plane_hits = PlaneHits::new(rays, slice, last, &slice_hits);
            let mut values = PlaceValues::NONE;
            let count = |region: &UniformRegion, rays: u32| {
                if slices.are_alone {
                    shown.count(region.level_index, region.is_lacking, u64::from(rays.count_ones()));
                }
            };
            if shading.nearest {
                context.find_labels(&plane_hits.at, plane_hits.rays, shading, &mut values, count);
            } else {
                context.find_at(simd, &plane_hits.at, plane_hits.rays, shading, &mut values, count);
            }
            let mut found = 0;
            for lane in 0..LANES {
                found |= u32::from(plane_hits.has(lane) && !values.places[lane].is_nan()) << lane;
            }
            let colors = context.color_by.map(|color_by| color_by.colors_at(&plane_hits.at, found));
            let (mut met, mut own_colors) = (0, [Vec4::ZERO; LANES]);
            for lane in (0..LANES).filter(|lane| found >> lane & 1 != 0) {
                let own = hit(context, slices, shading, rays, &plane_hits, &values, lane);
                let own = match &colors {
                    None => own,
                    Some([r, g, b, is_there]) if is_there[lane] > 0.0 => {
                        Hit { color: Vec4::new(r[lane], g[lane], b[lane], 1.0), ..own }
                    }
                    Some(_) => continue,
                };
                (slice_hits[lane], own_colors[lane]) = (Some(own), own.color);
                met |= 1 << lane;
            }
            if !context.layers.is_empty() {
                context.cover_plane(&slice, &plane_hits.points, met, &mut own_colors);
                for (lane, hit) in slice_hits.iter_mut().enumerate().filter(|(lane, _)| met >> lane & 1 != 0)
                {
                    *hit = hit.map(|hit| Hit { color: own_colors[lane], ..hit });
                }
            }
        }
        slice_hits
    }
}

/// Returns the colors of slices alone.
pub(crate) fn colors_of(slice_hits: &SliceHits) -> [Vec4; LANES] {
    slice_hits.map(|slice_hit| slice_hit.map_or(Vec4::ZERO, |hit| hit.color))
}

/// Returns the hit of one ray on a slice.
#[expect(clippy::cast_possible_truncation, reason = "cosines are f32")]
fn hit<T: Voxel>(
    context: &CastContext<'_, T>,
    slices: &Slices,
    shading: &Shading<'_, T>,
    rays: &PacketRays,
    plane_hits: &PlaneHits,
    values: &PlaceValues,
    lane: usize,
) -> Hit {
    let slope = DVec3::from_array([0, 1, 2].map(|axis| f64::from(values.slopes[axis][lane])));
    let place = values.places[lane];
    Hit {
        at: plane_hits.steps[lane],
        stored: shading.table.scale.stored(place),
        color: if shading.nearest {
            slices.palette.of_label(values.labels[lane], place)
        } else {
            slices.palette.of_place(place)
        },
        cosine: context.lamp.cosine(slope, context.direction_of(rays, lane)) as f32,
        is_foreign: false,
    }
}
