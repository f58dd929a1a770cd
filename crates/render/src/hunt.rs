//! The hunt for surfaces along one ray: region by region, cell by cell, front to back.
//!
//! Between the centres of eight voxels the surface is that of their trilinear interpolant, exactly (`cell.rs`); beyond
//! the volume's outermost centres values stay what they are there. Each ray carries its last value along: where the
//! next cell begins on the other side of an isovalue, the surface is right there. So nothing is lost to rounding
//! between cells or blocks, and where a fine block ends beside a coarse one the step between their values is part of
//! the surface: no cracks. Cells with a missing voxel hold no surface, and no value is carried over them.
//!
//! Cells of `CELL` voxels a side whose value range meets no isovalue are passed as a whole.

use glam::{DVec3, Vec4};

use crate::cast::Caster;
use crate::cell::{Corners, Cubic, gradient};
use crate::device::PreparedSurface;
use crate::light::{Lamp, lit};
use crate::rays::Region;
use crate::resident::{CELL, Resident};
use crate::voxel::{Scale, Voxel, above};
use crate::{Isosurface, VolumeView};

/// The surfaces of a picture, in stored values.
#[derive(Debug)]
pub(crate) struct Surfaces {
    /// By increasing stored value.
    sorted: Vec<Surface>,
    pub(crate) lamp: Lamp,
}

#[derive(Clone, Copy, Debug)]
struct Surface {
    stored: f64,
    /// Premultiplied.
    colour: Vec4,
}

/// A place at which a ray meets a surface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    /// In steps of the ray.
    pub(crate) at: f64,
    /// What is crossed, stored; NaN at the edge of a box, where it was not looked up.
    pub(crate) stored: f64,
    /// Lit, premultiplied.
    pub(crate) colour: Vec4,
    /// Between the gradient there and the ray; see [`Lamp::cosine`].
    pub(crate) cosine: f32,
    /// Another caster draws it; here it only says where the step begins that it lies in.
    pub(crate) is_foreign: bool,
}

impl Hit {
    /// Where a ray meets an edge of a box, which is not lit.
    pub(crate) fn of_edge(at: f64, colour: Vec4) -> Self {
        Self { at, stored: f64::NAN, colour, cosine: 1.0, is_foreign: false }
    }

    pub(crate) fn is_edge(&self) -> bool {
        self.stored.is_nan()
    }
}

/// A ray in volume space: `origin + t * step`, its direction in world space of unit length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) origin: DVec3,
    pub(crate) step: DVec3,
    pub(crate) direction: DVec3,
}

/// A [`Line`] in a block's voxels.
struct Local {
    origin: DVec3,
    step: DVec3,
    /// Voxels of the block per voxel of level 0.
    scale: DVec3,
}

/// How far the hunt along one ray is.
#[derive(Debug)]
pub(crate) struct Hunt {
    line: Line,
    /// Up to where it has looked, in steps.
    at: f64,
    end: f64,
    /// The value there; `None` where it begins and behind missing values.
    last: Option<f64>,
    /// Found and not given yet, the nearest last.
    found: Vec<Hit>,
    /// What is found before this is another's, and what is found from `until` on.
    from: f64,
    until: f64,
}

/// How the found belongs to whom.
enum Whose {
    Own,
    /// Another caster's, in the step that ends at the first sample here.
    Foreign,
    None,
}

/// Regions are asked for so far ahead, so that a ray on a wall is in the region it enters; steps.
const AHEAD: f64 = 1e-7;

impl Surfaces {
    pub(crate) fn new(surfaces: &[Isosurface], view: &VolumeView, lamp: Lamp) -> Self {
        let surface = |s: &Isosurface| Surface {
            stored: (s.value - view.decoding.offset) / view.decoding.scale,
            colour: Vec4::new(s.colour[0], s.colour[1], s.colour[2], 1.0) * s.opacity,
        };
        let mut sorted: Vec<Surface> = surfaces.iter().map(surface).collect();
        sorted.sort_by(|a, b| a.stored.total_cmp(&b.stored));
        Self { sorted, lamp }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// As a caster on another device takes them.
    pub(crate) fn prepared(&self, scale: &Scale) -> Vec<PreparedSurface> {
        let one = |&Surface { stored, colour }: &Surface| PreparedSurface {
            stored,
            least: above(stored),
            place: scale.place(stored),
            colour: colour.to_array(),
        };
        self.sorted.iter().map(one).collect()
    }

    /// The surfaces that have values between two others on both their sides.
    fn between(&self, low: f64, high: f64) -> &[Surface] {
        let first = self.sorted.partition_point(|s| s.stored <= low);
        let end = self.sorted.partition_point(|s| s.stored <= high);
        self.sorted.get(first..end).unwrap_or_default()
    }
}

impl Hunt {
    /// A hunt from `at` to `end`, in steps.
    pub(crate) fn new(line: Line, at: f64, end: f64) -> Self {
        let (from, until) = (f64::NEG_INFINITY, f64::INFINITY);
        Self { line, at, end, last: None, found: Vec::new(), from, until }
    }

    /// The same for what lies from `from` to before `until`. `at` and `end` lie so far before and behind that all is
    /// found as it is without these borders.
    pub(crate) fn of_share(line: Line, [at, end]: [f64; 2], [from, until]: [f64; 2]) -> Self {
        Self { from, until, ..Self::new(line, at, end) }
    }

    /// What is found next, without taking it.
    pub(crate) fn peek<T: Voxel>(&mut self, caster: &Caster<'_, T>, near: &mut Vec<Region>) -> Option<Hit> {
        loop {
            let hit = self.next(caster, near)?;
            match self.whose(hit.at) {
                Whose::Own => return Some(hit),
                Whose::Foreign => return Some(Hit { is_foreign: true, ..hit }),
                Whose::None => _ = self.found.pop(),
            }
        }
    }

    fn whose(&self, at: f64) -> Whose {
        match at {
            at if self.from <= at && at < self.until => Whose::Own,
            at if at < self.from && at >= self.from.ceil() - 1.0 => Whose::Foreign,
            _ => Whose::None,
        }
    }

    /// What is found next, whosever it is.
    fn next<T: Voxel>(&mut self, caster: &Caster<'_, T>, near: &mut Vec<Region>) -> Option<Hit> {
        while self.found.is_empty() && self.at < self.end {
            let ahead = self.at + AHEAD.max(self.at.abs() * f64::EPSILON * 4.0);
            let region = region_at(caster, near, self.line.origin + self.line.step * ahead);
            let exit = self.exit(region).max(ahead).min(self.end);
            match region.slot {
                Some(slot) => self.search(caster, caster.blocks.resident(slot), exit),
                None => (self.at, self.last) = (exit, None),
            }
        }
        self.found.last().copied()
    }

    /// Takes what [`Hunt::peek`] found.
    pub(crate) fn take(&mut self) -> Option<Hit> {
        self.found.pop()
    }

    /// Where the ray leaves a region.
    fn exit(&self, region: &Region) -> f64 {
        let Line { origin, step, .. } = self.line;
        let wall = DVec3::select(step.cmpge(DVec3::ZERO), region.high, region.low);
        let exits = DVec3::select(step.cmpeq(DVec3::ZERO), DVec3::INFINITY, (wall - origin) / step);
        exits.min_element()
    }

    /// Looks through a block up to `exit`, until something is found.
    fn search<T: Voxel>(&mut self, caster: &Caster<'_, T>, block: &Resident<T>, exit: f64) {
        let level = &caster.scene.view.levels[block.rank];
        let (scale, shift) = level.local_map(block.at);
        let local = Local { origin: self.line.origin * scale + shift, step: self.line.step * scale, scale };
        let [nz, ny, nx] = block.layout.cells.map(usize::cast_signed);
        let mut large = Walk::new(&local, self.at, CELL.cast_signed(), [[0; 3], [nx - 1, ny - 1, nz - 1]]);
        while self.at < exit && self.found.is_empty() {
            let [x, y, z] = large.at.map(isize::cast_unsigned);
            let [low, high] =
                block.cells[(z * block.layout.cells[1] + y) * block.layout.cells[2] + x].map(f64::from);
            let end = large.exit().min(exit);
            if self.may_meet(caster, low, high) {
                self.search_cell(caster, block, &local, &large, end);
                if self.at < end {
                    return;
                }
            } else {
                // Any value of the range: all lie on the same side.
                self.last = (low <= high && !block.has_missing).then_some(low);
                self.at = self.at.max(end);
            }
            if !large.step() {
                self.at = self.at.max(exit);
            }
        }
    }

    /// True where values between two, and the last one, may lie on both sides of a surface.
    fn may_meet<T: Voxel>(&self, caster: &Caster<'_, T>, low: f64, high: f64) -> bool {
        let last = self.last.unwrap_or(low);
        low <= high && !caster.surfaces.between(low.min(last), high.max(last)).is_empty()
    }

    /// Looks through the voxels of a large cell up to `end`, until something is found.
    fn search_cell<T: Voxel>(
        &mut self,
        caster: &Caster<'_, T>,
        block: &Resident<T>,
        local: &Local,
        large: &Walk,
        end: f64,
    ) {
        let mut walk = Walk::new(local, self.at, 1, large_voxels(block, large.at));
        while self.at < end && self.found.is_empty() {
            let exit = walk.exit().min(end);
            let corners = block.corners(walk.at);
            if block.has_missing && corners.iter().any(|&v| caster.blocks.missing.is_missing(v)) {
                (self.at, self.last) = (self.at.max(exit), None);
            } else {
                let corners = corners.map(Voxel::to_f64);
                let (low, high) =
                    corners.iter().fold((f64::MAX, f64::MIN), |(a, b), &v| (a.min(v), b.max(v)));
                if self.may_meet(caster, low, high) {
                    self.meet(caster, local, &corners, walk.at, exit);
                } else {
                    self.last = Some(low);
                }
                self.at = self.at.max(exit);
            }
            if !walk.step() {
                self.at = self.at.max(end);
            }
        }
    }

    /// Notes all crossings in one cell between here and `exit`.
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "colours are f32")]
    fn meet<T: Voxel>(
        &mut self,
        caster: &Caster<'_, T>,
        local: &Local,
        corners: &Corners,
        cell: [isize; 3],
        exit: f64,
    ) {
        let length = (exit - self.at).max(0.0);
        let cell = DVec3::from_array(cell.map(|i| i as f64));
        let cubic = Cubic::new(corners, local.origin + local.step * self.at - cell, local.step);
        let (ends, count) = cubic.pieces(length);
        let values = ends.map(|s| cubic.at(s));
        let last = self.last.unwrap_or(values[0]);
        let all = [last].into_iter().chain(values[..count].iter().copied());
        let (low, high) = all.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
        for surface in caster.surfaces.between(low, high) {
            let side = |v: f64| v >= surface.stored;
            let mut note = |s: f64| {
                let share = local.origin + local.step * (self.at + s) - cell;
                let gradient = gradient(corners, share.clamp(DVec3::ZERO, DVec3::ONE)) * local.scale;
                let cosine = caster.surfaces.lamp.cosine(gradient, self.line.direction) as f32;
                let colour = lit(surface.colour, cosine);
                let (at, stored) = (self.at + s, surface.stored);
                self.found.push(Hit { at, stored, colour, cosine, is_foreign: false });
            };
            if side(last) != side(values[0]) {
                note(0.0);
            }
            for i in 1..count {
                if side(values[i - 1]) != side(values[i]) {
                    note(cubic.crossing(surface.stored, ends[i - 1], ends[i]));
                }
            }
        }
        // Stable: surfaces of one value keep their order.
        self.found.sort_by(|a, b| b.at.total_cmp(&a.at));
        self.last = Some(values[count - 1]);
    }
}

/// The region that holds a place, of those that were met before, or a new one.
fn region_at<'a, T: Voxel>(caster: &Caster<'_, T>, near: &'a mut Vec<Region>, at: DVec3) -> &'a Region {
    let holds = |r: &Region| at.cmpge(r.low).all() && at.cmplt(r.high).all();
    let index = near.iter().rposition(holds).unwrap_or_else(|| {
        near.truncate(MOST_NEAR - 1);
        near.push(caster.region(at));
        near.len() - 1
    });
    &near[index]
}

/// Regions that rays of one packet remember.
const MOST_NEAR: usize = 64;

/// The voxels of a large cell, lowest and highest `(x, y, z)`; those outermost in a block that samples beyond its
/// voxels belong to are one farther out.
fn large_voxels<T>(block: &Resident<T>, large: [isize; 3]) -> [[isize; 3]; 2] {
    let side = CELL.cast_signed();
    let axis = |a: usize| {
        let (n, cells) = (block.layout.shape[2 - a].cast_signed(), block.layout.cells[2 - a].cast_signed());
        let low = if large[a] == 0 { -1 } else { large[a] * side };
        let high = if large[a] == cells - 1 { n } else { large[a] * side + side - 1 };
        (low, high)
    };
    let [x, y, z] = [axis(0), axis(1), axis(2)];
    [[x.0, y.0, z.0], [x.1, y.1, z.1]]
}

/// Steps through cubes of one size along a ray.
struct Walk {
    /// The cube it is in.
    at: [isize; 3],
    origin: DVec3,
    inverse: DVec3,
    side: f64,
    /// The lowest and the highest cube; these go on for ever outwards.
    bounds: [[isize; 3]; 2],
}

impl Walk {
    #[expect(clippy::cast_possible_truncation, reason = "clamped to the bounds")]
    fn new(local: &Local, at: f64, side: isize, bounds: [[isize; 3]; 2]) -> Self {
        let cube = (local.origin + local.step * at) / side as f64;
        let place = |a: usize| (cube[a].floor() as isize).clamp(bounds[0][a], bounds[1][a]);
        let at = [place(0), place(1), place(2)];
        Self { at, origin: local.origin, inverse: local.step.recip(), side: side as f64, bounds }
    }

    /// Where the ray leaves the cube through the walls of an axis, in steps.
    fn exit_along(&self, axis: usize) -> f64 {
        let forward = self.inverse[axis] > 0.0;
        let outermost = self.bounds[usize::from(forward)][axis];
        if self.at[axis] == outermost || self.inverse[axis].is_infinite() {
            return f64::INFINITY;
        }
        let wall = (self.at[axis] + isize::from(forward)) as f64 * self.side;
        (wall - self.origin[axis]) * self.inverse[axis]
    }

    /// Where the ray leaves the cube, in steps.
    fn exit(&self) -> f64 {
        self.exit_along(0).min(self.exit_along(1)).min(self.exit_along(2))
    }

    /// Goes to the next cube; false where there is none.
    fn step(&mut self) -> bool {
        let exits = [0, 1, 2].map(|a| self.exit_along(a));
        let mut axis = usize::from(exits[1] < exits[0]);
        axis = if exits[2] < exits[axis] { 2 } else { axis };
        self.at[axis] += if self.inverse[axis] > 0.0 { 1 } else { -1 };
        exits[axis] < f64::INFINITY
    }
}
