//! The inner loop: samples along one ray through one block, front to back.
//!
//! One instance per element type and way of sampling; which one is chosen once per block. Positions are `f32`
//! in the block's own voxels, so they stay exact to 1/4096 of a voxel in blocks of any usual size.

use glam::{BVec3A, Vec3A, Vec4};

use crate::resident::{CELL, Resident};
use crate::skip::Field;
use crate::table::{ROUND, Table};
use crate::voxel::{Missing, Voxel};

/// Samples of one ray that lie in one block: sample `i` at `start + i * step`, in the block's voxels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) start: Vec3A,
    pub(crate) step: Vec3A,
    pub(crate) count: u32,
}

/// What all samples of a picture share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shading<'a, T> {
    pub(crate) table: &'a Table,
    pub(crate) missing: &'a Missing<T>,
    /// Opacity at which a ray ends.
    pub(crate) opaque: f32,
    pub(crate) nearest: bool,
    origin: f32,
    gain: f32,
}

impl<'a, T: Voxel> Shading<'a, T> {
    #[expect(clippy::cast_possible_truncation, reason = "places in the table are f32")]
    pub(crate) fn new(table: &'a Table, missing: &'a Missing<T>, termination: f32, nearest: bool) -> Self {
        let opaque = 1.0 - termination;
        Self { table, missing, opaque, nearest, origin: table.origin as f32, gain: table.gain as f32 }
    }

    /// What is interpolated: the stored value, or where `f32` cannot hold it, its place in the table.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "clamped; places in the table are f32")]
    fn load(&self, value: T) -> f32 {
        if T::WIDE {
            const FAR: f64 = 1e30;
            ((value.to_f64() - self.table.origin) * self.table.gain).clamp(-FAR, FAR) as f32
        } else {
            value.to_f32()
        }
    }

    /// The places in the table of what was interpolated between loaded values.
    #[inline(always)]
    fn places(&self, interpolated: Vec4) -> Vec4 {
        if T::WIDE { interpolated } else { (interpolated - self.origin) * self.gain }
    }
}

/// Draws a segment over (behind) what `colour` has gathered so far; premultiplied.
pub(crate) fn march<T: Voxel>(
    block: &Resident<T>,
    field: &Field,
    segment: &Segment,
    shading: &Shading<'_, T>,
    colour: &mut Vec4,
) {
    if *field == Field::Hidden || colour.w >= shading.opaque {
        return;
    }
    if shading.nearest {
        march_as::<T, Nearest>(block, field, segment, shading, colour);
    } else if block.has_missing {
        march_as::<T, LinearPresent>(block, field, segment, shading, colour);
    } else {
        march_as::<T, Linear>(block, field, segment, shading, colour);
    }
}

fn march_as<T: Voxel, S: Sampling<T>>(
    block: &Resident<T>,
    field: &Field,
    segment: &Segment,
    shading: &Shading<'_, T>,
    colour: &mut Vec4,
) {
    let distances = match field {
        Field::Hidden => return,
        Field::Full => return run::<T, S>(block, segment, 0, segment.count, shading, colour),
        Field::Distances(distances) => distances,
    };
    let walk = CellWalk::new(block, segment);
    let mut i = 0;
    while i < segment.count && colour.w < shading.opaque {
        let at = segment.start + segment.step * i as f32;
        let cell = walk.cell(at);
        let distance = distances[walk.index(cell)];
        let end = segment.count.min(i + walk.samples_to_exit(at, cell, distance));
        if distance == 0 {
            run::<T, S>(block, segment, i, end, shading, colour);
        }
        i = end;
    }
}

/// Samples `from` to `end` of a segment, four at a time.
#[inline(always)]
fn run<T: Voxel, S: Sampling<T>>(
    block: &Resident<T>,
    segment: &Segment,
    from: u32,
    end: u32,
    shading: &Shading<'_, T>,
    colour: &mut Vec4,
) {
    const AHEAD: Vec4 = Vec4::new(0.0, 1.0, 2.0, 3.0);
    let last = last_position(block);
    let mut gathered = *colour;
    let mut i = from;
    while i < end {
        let numbers = AHEAD + i as f32;
        let along = |start: f32, step: f32, last: f32| {
            (numbers * step + start).max(Vec4::ZERO).min(Vec4::splat(last))
        };
        let at = Four {
            x: along(segment.start.x, segment.step.x, last.x),
            y: along(segment.start.y, segment.step.y, last.y),
            z: along(segment.start.z, segment.step.z, last.z),
        };
        let samples = S::four(block, &at, shading);
        // Samples beyond the end were taken at legal places and are dropped here.
        for sample in &samples[..4.min(end - i) as usize] {
            gathered += *sample * (1.0 - gathered.w);
            if gathered.w >= shading.opaque {
                *colour = gathered;
                return;
            }
        }
        i += 4;
    }
    *colour = gathered;
}

/// The greatest position whose upper neighbours are still in the apron.
fn last_position<T>(block: &Resident<T>) -> Vec3A {
    let [z, y, x] = block.layout.shape.map(|n| (n as f32).next_down());
    Vec3A::new(x, y, z)
}

/// Steps of a ray through the cells of a block.
struct CellWalk {
    cells: Vec3A,
    strides: [usize; 2],
    forward: BVec3A,
    samples_per_voxel: Vec3A,
}

impl CellWalk {
    fn new<T>(block: &Resident<T>, segment: &Segment) -> Self {
        let [nz, ny, nx] = block.layout.cells;
        // A ray that stands still along an axis never leaves through it: a large number, not infinity,
        // which would make 0 * infinity of it.
        const NEVER: Vec3A = Vec3A::splat(1e30);
        let still = segment.step.abs().cmplt(Vec3A::splat(1e-20));
        Self {
            cells: Vec3A::new(nx as f32, ny as f32, nz as f32),
            strides: [ny * nx, nx],
            forward: segment.step.cmpge(Vec3A::ZERO) | still,
            samples_per_voxel: Vec3A::select(still, NEVER, segment.step.recip()),
        }
    }

    /// The cell `(x, y, z)` that holds a position; whole numbers.
    #[inline]
    fn cell(&self, at: Vec3A) -> Vec3A {
        const PER_VOXEL: f32 = 1.0 / CELL as f32;
        (at * PER_VOXEL).floor().max(Vec3A::ZERO).min(self.cells - 1.0)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole numbers from `cell`")]
    fn index(&self, cell: Vec3A) -> usize {
        cell.z as i32 as usize * self.strides[0]
            + cell.y as i32 as usize * self.strides[1]
            + cell.x as i32 as usize
    }

    /// How many samples from `at` on lie in the box of equal cells around `cell`: that cell alone, or all
    /// nearer than `distance`. At least one.
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, which is meant")]
    fn samples_to_exit(&self, at: Vec3A, cell: Vec3A, distance: u8) -> u32 {
        let reach = f32::from(distance.max(1));
        let (low, high) = (cell - (reach - 1.0), cell + reach);
        // Beyond the outermost cells there is only the end of the segment.
        let low = Vec3A::select(low.cmple(Vec3A::ZERO), Vec3A::splat(-1e9), low * CELL as f32);
        let high = Vec3A::select(high.cmpge(self.cells), Vec3A::splat(1e9), high * CELL as f32);
        let wall = Vec3A::select(self.forward, high, low);
        let samples = ((wall - at) * self.samples_per_voxel).min_element();
        (samples as u32).saturating_add(1).min(1 << 30)
    }
}

/// Four positions in a block, one per lane.
struct Four {
    x: Vec4,
    y: Vec4,
    z: Vec4,
}

/// A way of getting the colours of four samples; `at` lies within the block.
trait Sampling<T> {
    fn four(block: &Resident<T>, at: &Four, shading: &Shading<'_, T>) -> [Vec4; 4];
}

/// Per lane, the index of the voxel at the whole numbers in the low bits of these floats. In 32 bits, so that
/// sums of a few cannot overflow a `usize`; legal places do not wrap, and an illegal one would fail the check
/// of the voxel's slice.
#[inline(always)]
fn indices<T>(block: &Resident<T>, rounded: &Four) -> [u32; 4] {
    const MASK: u32 = 0x003F_FFFF;
    let [sz, sy] = block.layout.strides_zy();
    let index =
        |x: f32, y: f32, z: f32| (z.to_bits() & MASK) * sz + (y.to_bits() & MASK) * sy + (x.to_bits() & MASK);
    let Four { x, y, z } = rounded;
    [index(x.x, y.x, z.x), index(x.y, y.y, z.y), index(x.z, y.z, z.z), index(x.w, y.w, z.w)]
}

/// Index of the first of the eight neighbours, and the shares of the upper ones.
#[inline(always)]
fn split<T>(block: &Resident<T>, at: &Four) -> ([u32; 4], Four) {
    // Rounding down by half; a whole number may also become the cell below with a share of 1, the same place.
    let down = |v: Vec4| (v - 0.5) + ROUND;
    let rounded = Four { x: down(at.x), y: down(at.y), z: down(at.z) };
    let share =
        Four { x: at.x - (rounded.x - ROUND), y: at.y - (rounded.y - ROUND), z: at.z - (rounded.z - ROUND) };
    (indices(block, &rounded), share)
}

/// Two neighbours along x.
#[inline(always)]
fn pair<T: Copy>(data: &[T], index: u32) -> [T; 2] {
    let index = index as usize;
    // The upper one first: its check covers the other.
    let upper = data[index + 1];
    [data[index], upper]
}

/// Trilinear.
struct Linear;

impl<T: Voxel> Sampling<T> for Linear {
    #[inline(always)]
    fn four(block: &Resident<T>, at: &Four, shading: &Shading<'_, T>) -> [Vec4; 4] {
        let (bases, share) = split(block, at);
        let [sz, sy] = block.layout.strides_zy();
        let along_x = |offset: u32| {
            let lane = |i: usize| pair(&block.data, bases[i].wrapping_add(offset)).map(|v| shading.load(v));
            let [[a0, b0], [a1, b1], [a2, b2], [a3, b3]] = [lane(0), lane(1), lane(2), lane(3)];
            let (a, b) = (Vec4::new(a0, a1, a2, a3), Vec4::new(b0, b1, b2, b3));
            a + (b - a) * share.x
        };
        let along_y = |offset: u32| {
            let (a, b) = (along_x(offset), along_x(offset.wrapping_add(sy)));
            a + (b - a) * share.y
        };
        let (near, far) = (along_y(0), along_y(sz));
        shading.table.entries(shading.places(near + (far - near) * share.z))
    }
}

/// Trilinear among the voxels that are present, their weights scaled up to one; nothing where less than half
/// of the weight is present.
struct LinearPresent;

impl<T: Voxel> Sampling<T> for LinearPresent {
    #[inline]
    fn four(block: &Resident<T>, at: &Four, shading: &Shading<'_, T>) -> [Vec4; 4] {
        let (bases, share) = split(block, at);
        let [sz, sy] = block.layout.strides_zy();
        let (mut sums, mut weights) = ([0.0f32; 4], [0.0f32; 4]);
        for lane in 0..4 {
            for corner in 0..8usize {
                let row = [0, sy, sz, sz + sy][corner / 2];
                let value = pair(&block.data, bases[lane] + row)[corner % 2];
                if shading.missing.is_missing(value) {
                    continue;
                }
                let along = |bit: usize, share: f32| if corner & bit == 0 { 1.0 - share } else { share };
                let weight = along(1, share.x[lane]) * along(2, share.y[lane]) * along(4, share.z[lane]);
                sums[lane] += shading.load(value) * weight;
                weights[lane] += weight;
            }
        }
        let (sums, weights) = (Vec4::from(sums), Vec4::from(weights));
        let present = Vec4::select(weights.cmpge(Vec4::splat(0.5)), Vec4::ONE, Vec4::ZERO).to_array();
        let entries = shading.table.entries(shading.places(sums / weights));
        [0, 1, 2, 3].map(|lane| entries[lane] * present[lane])
    }
}

/// The nearest voxel: labels are not interpolated.
struct Nearest;

impl<T: Voxel> Sampling<T> for Nearest {
    #[inline]
    fn four(block: &Resident<T>, at: &Four, shading: &Shading<'_, T>) -> [Vec4; 4] {
        let rounded = Four { x: at.x + ROUND, y: at.y + ROUND, z: at.z + ROUND };
        indices(block, &rounded).map(|index| {
            let value = block.data[index as usize];
            if block.has_missing && shading.missing.is_missing(value) {
                return Vec4::ZERO;
            }
            let place = shading.places(Vec4::splat(shading.load(value))).x;
            shading.table.label_entry(place, value.label())
        })
    }
}
