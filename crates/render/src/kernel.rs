//! The inner loop: samples along one ray through one block, front to back.
//!
//! One instance per element type and way of sampling; which one is chosen once per block. Positions are `f32`
//! in the block's own voxels, so they stay exact to 1/4096 of a voxel in blocks of any usual size.

use glam::{BVec3A, Vec3A, Vec4};

use crate::resident::{CELL, Resident};
use crate::skip::Field;
use crate::table::Table;
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

    /// The place in the table of something interpolated between loaded values.
    #[inline(always)]
    fn place(&self, interpolated: f32) -> f32 {
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
    if *field == Field::Hidden {
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

/// Samples `from` to `end` of a segment.
#[inline(always)]
fn run<T: Voxel, S: Sampling<T>>(
    block: &Resident<T>,
    segment: &Segment,
    from: u32,
    end: u32,
    shading: &Shading<'_, T>,
    colour: &mut Vec4,
) {
    let last = last_position(block);
    let mut gathered = *colour;
    for i in from..end {
        let at = (segment.start + segment.step * i as f32).max(Vec3A::ZERO).min(last);
        let sample = S::sample(block, at, shading);
        gathered += sample * (1.0 - gathered.w);
        if gathered.w >= shading.opaque {
            break;
        }
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

/// A way of getting one sample's colour; `at` lies within the block.
trait Sampling<T> {
    fn sample(block: &Resident<T>, at: Vec3A, shading: &Shading<'_, T>) -> Vec4;
}

/// Adding this to a small float leaves its nearest whole number in the low bits.
const ROUND: f32 = 12_582_912.0;
const ROUND_MASK: u32 = 0x003F_FFFF;

/// Index of the first of the eight neighbours and the shares `(x, y, z)` of the upper ones.
#[inline(always)]
fn split<T>(block: &Resident<T>, at: Vec3A) -> (usize, Vec3A) {
    // Rounding down by half; a whole number may also become the cell below with a share of 1, the same place.
    let rounded = (at - 0.5) + ROUND;
    (index_of(block, rounded), at - (rounded - ROUND))
}

#[inline(always)]
fn index_of<T>(block: &Resident<T>, rounded: Vec3A) -> usize {
    let whole = |v: f32| (v.to_bits() & ROUND_MASK) as usize;
    let [sz, sy, _] = block.layout.strides;
    whole(rounded.z) * sz + whole(rounded.y) * sy + whole(rounded.x)
}

/// The eight neighbours: z outermost, x innermost.
#[inline(always)]
fn corners<T: Copy>(block: &Resident<T>, base: usize) -> [[T; 2]; 4] {
    // Pairs along x, so that four checks cover eight voxels.
    let pair = |index: usize| {
        let pair = &block.data[index..][..2];
        [pair[0], pair[1]]
    };
    let [sz, sy, _] = block.layout.strides;
    [pair(base), pair(base + sy), pair(base + sz), pair(base + sz + sy)]
}

/// Trilinear.
struct Linear;

impl<T: Voxel> Sampling<T> for Linear {
    #[inline(always)]
    fn sample(block: &Resident<T>, at: Vec3A, shading: &Shading<'_, T>) -> Vec4 {
        let (base, share) = split(block, at);
        let [c00, c01, c10, c11] = corners(block, base);
        let along_x = |[a, b]: [T; 2]| {
            let (a, b) = (shading.load(a), shading.load(b));
            a + (b - a) * share.x
        };
        let rows = [along_x(c00), along_x(c01), along_x(c10), along_x(c11)];
        let (near, far) = (rows[0] + (rows[1] - rows[0]) * share.y, rows[2] + (rows[3] - rows[2]) * share.y);
        shading.table.entry(shading.place(near + (far - near) * share.z))
    }
}

/// Trilinear among the voxels that are present, their weights scaled up to one; nothing where less than half
/// of the weight is present.
struct LinearPresent;

impl<T: Voxel> Sampling<T> for LinearPresent {
    #[inline]
    fn sample(block: &Resident<T>, at: Vec3A, shading: &Shading<'_, T>) -> Vec4 {
        let (base, share) = split(block, at);
        let (mut sum, mut weight) = (0.0, 0.0);
        for (i, value) in corners(block, base).as_flattened().iter().enumerate() {
            if shading.missing.is_missing(*value) {
                continue;
            }
            let along = |bit: usize, share: f32| if i & bit == 0 { 1.0 - share } else { share };
            let w = along(1, share.x) * along(2, share.y) * along(4, share.z);
            sum += shading.load(*value) * w;
            weight += w;
        }
        if weight < 0.5 { Vec4::ZERO } else { shading.table.entry(shading.place(sum / weight)) }
    }
}

/// The nearest voxel: labels are not interpolated.
struct Nearest;

impl<T: Voxel> Sampling<T> for Nearest {
    #[inline]
    fn sample(block: &Resident<T>, at: Vec3A, shading: &Shading<'_, T>) -> Vec4 {
        let value = block.data[index_of(block, at + ROUND)];
        if block.has_missing && shading.missing.is_missing(value) {
            return Vec4::ZERO;
        }
        shading.table.label_entry(shading.place(shading.load(value)), value.label())
    }
}
