//! Intersections of rays with slices. Of each ray only the nearest slice that has a value there matters,
//! because slices are opaque.
//!
//! A ray meets a plane in one place, so sixteen rays look up their values together, slice by slice; nothing is marched.

use glam::{DVec3, Vec4};

use crate::Slice;
use crate::blocks::voxel::Voxel;
use crate::cpu::caster::Caster;
use crate::cpu::packet_size::Lanes;
use crate::cpu::palette::Palette;
use crate::cpu::rays::{Rays, Region};
use crate::cpu::samples::shading::Shading;
use crate::isosurface::hunt::Hit;
use crate::scene::truth::Shown;
use crate::simd::{LANES, Simd, Step};

/// The nearest slice of each ray.
pub(crate) type Sheets = [Option<Hit>; LANES];

/// Slices of a picture, and their palette.
#[derive(Debug)]
pub(crate) struct Slices {
    slices: Vec<Slice>,
    palette: Palette,
    /// Nothing else is drawn.
    pub(crate) are_alone: bool,
}

impl Slices {
    pub(crate) fn new(slices: &[Slice], palette: Palette, are_alone: bool) -> Self {
        Self { slices: slices.to_vec(), palette, are_alone }
    }
}

/// Values found at sixteen places in the volume.
pub(crate) struct Finds {
    /// Place in the table; NaN where nothing is.
    pub(crate) places: [f32; LANES],
    /// Slope of the value, per axis x, y, z; see [`crate::cpu::samples::sample::Found`].
    pub(crate) slopes: [[f32; LANES]; 3],
    /// Label nearest to the place, per lane.
    pub(crate) labels: [u32; LANES],
}

impl Finds {
    pub(crate) const NONE: Self =
        Self { places: [f32::NAN; LANES], slopes: [[0.0; LANES]; 3], labels: [0; LANES] };
}

/// Intersections of sixteen rays with one slice.
struct Meeting {
    /// In steps of the ray.
    steps: Lanes,
    /// In volume space.
    at: [DVec3; LANES],
    /// One bit per ray that meets it, before any other slice.
    rays: u32,
}

impl Meeting {
    fn has(&self, lane: usize) -> bool {
        self.rays >> lane & 1 != 0
    }

    fn new(rays: &Rays, slice: Slice, sheets: &Sheets) -> Self {
        let axis = slice.axis.index();
        let mut meeting = Self { steps: [0.0; LANES], at: [DVec3::ZERO; LANES], rays: 0 };
        for (lane, sheet) in sheets.iter().enumerate() {
            if rays.step[axis][lane] == 0.0 {
                continue;
            }
            let steps = (slice.at - rays.origin[axis][lane]) * rays.inverse[axis][lane];
            let is_first = sheet.is_none_or(|sheet| steps < sheet.at);
            if rays.reach[0][lane] < rays.reach[1][lane] && rays.owns(lane, steps) && is_first {
                meeting.rays |= 1 << lane;
                meeting.steps[lane] = steps;
                meeting.at[lane] = rays.at(lane, steps);
                meeting.at[lane][axis] = slice.at;
            }
        }
        meeting
    }
}

/// Looks for the slices of sixteen rays.
pub(crate) struct Cut<'a, 'b, T> {
    pub(crate) caster: &'a Caster<'b, T>,
    pub(crate) slices: &'a Slices,
    pub(crate) rays: &'a Rays,
    pub(crate) shading: &'a Shading<'a, T>,
    pub(crate) shown: &'a mut Shown,
}

impl<S: Simd, T: Voxel> Step<S> for Cut<'_, '_, T> {
    type Output = Sheets;

    #[inline(always)]
    fn run(self, simd: S) -> Sheets {
        let Self { caster, slices, rays, shading, shown } = self;
        let mut sheets = [None; LANES];
        for &slice in &slices.slices {
            let meeting = Meeting::new(rays, slice, &sheets);
            let mut finds = Finds::NONE;
            let count = |region: &Region, rays: u32| {
                if slices.are_alone {
                    shown.count(region.rank, region.is_lacking, u64::from(rays.count_ones()));
                }
            };
            if shading.nearest {
                caster.find_labels(&meeting.at, meeting.rays, shading, &mut finds, count);
            } else {
                caster.find_at(simd, &meeting.at, meeting.rays, shading, &mut finds, count);
            }
            let mut found = 0;
            for lane in 0..LANES {
                found |= u32::from(meeting.has(lane) && !finds.places[lane].is_nan()) << lane;
            }
            let dyes = caster.dye.map(|dye| dye.colours(&meeting.at, found));
            for lane in (0..LANES).filter(|lane| found >> lane & 1 != 0) {
                let own = hit(caster, slices, shading, rays, &meeting, &finds, lane);
                sheets[lane] = match &dyes {
                    None => Some(own),
                    Some([r, g, b, is_there]) if is_there[lane] > 0.0 => {
                        Some(Hit { colour: Vec4::new(r[lane], g[lane], b[lane], 1.0), ..own })
                    }
                    Some(_) => sheets[lane],
                };
            }
        }
        sheets
    }
}

impl<T: Voxel> Caster<'_, T> {
    /// Finds the labels nearest to places, for the `wanted` rays; `found` hears of the regions that they lie in.
    #[inline(never)]
    pub(crate) fn find_labels(
        &self,
        at: &[DVec3; LANES],
        wanted: u32,
        shading: &Shading<'_, T>,
        finds: &mut Finds,
        mut found: impl FnMut(&Region, u32),
    ) {
        for (lane, &at) in at.iter().enumerate().filter(|(lane, _)| wanted >> lane & 1 != 0) {
            let region = self.region(at);
            found(&region, 1 << lane);
            let Some(slot) = region.slot else { continue };
            let block = self.blocks.resident(slot);
            let local = self.scene.view.levels[block.rank].local(block.at, at);
            let label = block.interpolate(local, true, shading.missing);
            if !shading.missing.is_missing(label) {
                finds.places[lane] = shading.table.scale.place(label.to_f64());
                finds.labels[lane] = label.label();
            }
        }
    }
}

/// The colours of slices alone.
pub(crate) fn colours_of(sheets: &Sheets) -> [Vec4; LANES] {
    sheets.map(|sheet| sheet.map_or(Vec4::ZERO, |hit| hit.colour))
}

/// Returns the hit of one ray on a slice.
#[expect(clippy::cast_possible_truncation, reason = "cosines are f32")]
fn hit<T: Voxel>(
    caster: &Caster<'_, T>,
    slices: &Slices,
    shading: &Shading<'_, T>,
    rays: &Rays,
    meeting: &Meeting,
    finds: &Finds,
    lane: usize,
) -> Hit {
    let slope = DVec3::from_array([0, 1, 2].map(|axis| f64::from(finds.slopes[axis][lane])));
    let place = finds.places[lane];
    Hit {
        at: meeting.steps[lane],
        stored: shading.table.scale.stored(place),
        colour: if shading.nearest {
            slices.palette.of_label(finds.labels[lane], place)
        } else {
            slices.palette.of_place(place)
        },
        cosine: caster.surfaces.lamp.cosine(slope, caster.direction_of(rays, lane)) as f32,
        is_foreign: false,
    }
}
