//! The inner loop: samples along sixteen rays through one block, front to back.
//!
//! The rays are neighbours and step together: sample numbers are common, each ray draws those of its own that lie in
//! the block. One instance per element type, way of sampling and set of instructions; which one is chosen once per
//! tile and block. Positions are `f32` in the block's own voxels, so they stay exact to 1/4096 of a voxel in
//! blocks of any usual size.

#![expect(unsafe_code, reason = "tables are read at places that were clamped before")]

use crate::corners::Grid;
use crate::light::{Light, Metric};
use crate::resident::{CELL, Resident};
use crate::simd::{LANES, Simd, Step, each_axis};
use crate::skip::{BENT, Field};
use crate::table::{ENTRIES, ERROR_PER_BEND, Entries, PARTS, TOLERANCE, Table};
use crate::voxel::{Missing, Voxel};

/// Samples between two looks at what can be skipped: fewer where they are more than a voxel apart, so that a run ends
/// at most one cell beside where it began.
const RUN: u32 = 8;
const _: () = assert!(RUN as usize <= CELL, "a run ends in a neighbouring cell");

/// What all samples of a picture share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shading<'a, T> {
    pub(crate) table: &'a Table,
    pub(crate) missing: &'a Missing<T>,
    /// Opacity at which a ray ends.
    pub(crate) opaque: f32,
    pub(crate) nearest: bool,
    /// How gradients are lit; `None` where colours stay as they are.
    pub(crate) metric: Option<Metric>,
}

/// Sixteen rays in a block's voxels: sample `i` of each at `start + i * step`, its own from `first` to `end`.
pub(crate) struct Way<S: Simd> {
    pub(crate) start: [S::F; 3],
    pub(crate) step: [S::F; 3],
    pub(crate) first: S::F,
    pub(crate) end: S::F,
    /// The largest `end`.
    pub(crate) count: u32,
    /// As [`Metric::direction`] says, and voxels of the block per voxel of level 0; used only where samples are lit.
    pub(crate) direction: [S::F; 3],
    pub(crate) scale: [f32; 3],
}

impl<S: Simd> Way<S> {
    #[inline(always)]
    fn at(&self, simd: S, number: S::F) -> [S::F; 3] {
        each_axis!(a => simd.mul_add(self.step[a], number, self.start[a]))
    }

    /// Which rays have this sample.
    #[inline(always)]
    fn has(&self, simd: S, number: S::F) -> S::M {
        simd.and(simd.ge(number, self.first), simd.lt(number, self.end))
    }
}

/// What sixteen rays have gathered so far.
#[derive(Clone, Copy)]
pub(crate) struct Gathered<S: Simd> {
    /// Premultiplied red, green, blue, and opacity.
    pub(crate) rgba: [S::F; 4],
    /// Place in the table of each ray's sample before its next one; NaN where it is missing or was skipped.
    pub(crate) before: S::F,
    /// How places change around that sample, in volume space; 0 where it is not known. Of lit samples only.
    pub(crate) slope: [S::F; 3],
}

impl<S: Simd> Gathered<S> {
    #[inline(always)]
    pub(crate) fn new(simd: S) -> Self {
        let zero = simd.splat(0.0);
        Self { rgba: [zero; 4], before: simd.splat(f32::NAN), slope: [zero; 3] }
    }

    /// Red, green, blue and opacity of each ray.
    #[inline(always)]
    pub(crate) fn store(&self, simd: S) -> [[f32; LANES]; 4] {
        let [r, g, b, a] = self.rgba;
        [simd.store(r), simd.store(g), simd.store(b), simd.store(a)]
    }

    /// The rays of which `passed` is 1 come through what is not there.
    #[inline(always)]
    pub(crate) fn forget(&mut self, simd: S, passed: [f32; LANES]) {
        let passed = simd.ge(simd.load(&passed), simd.splat(1.0));
        self.before = simd.select(passed, simd.splat(f32::NAN), self.before);
        self.slope = each_axis!(a => simd.select(passed, simd.splat(0.0), self.slope[a]));
    }

    /// Puts the table's entries at `places` behind what was gathered, for the rays in `seen`.
    #[inline(always)]
    fn add(&mut self, simd: S, entries: &Entries, places: S::F, seen: S::M, light: Option<Light<S>>) {
        let last = simd.splat((ENTRIES - 1) as f32);
        let near = simd.add(simd.min(simd.max(places, simd.splat(0.0)), last), simd.splat(0.5));
        let at = simd.store_u(simd.truncate(near));
        // SAFETY: `at` lies between 0 and `ENTRIES - 1`; NaN became 0.
        let mut entry = unsafe { simd.entries(entries.packed.as_ptr(), &at) };
        if let Some(Light { scattered, mirrored }) = light {
            let opacity = entry[3];
            let white = simd.mul(mirrored, opacity);
            let lit = each_axis!(c => simd.min(simd.mul_add(entry[c], scattered, white), opacity));
            entry = [lit[0], lit[1], lit[2], opacity];
        }
        let unit = simd.splat(entries.unit);
        let through = simd.mul(simd.sub(simd.splat(1.0), self.rgba[3]), unit);
        let weight = simd.select(seen, through, simd.splat(0.0));
        self.blend(simd, &entry, weight);
    }

    #[inline(always)]
    fn blend(&mut self, simd: S, colour: &[S::F; 4], weight: S::F) {
        let sum = &self.rgba;
        self.rgba = [
            simd.mul_add(colour[0], weight, sum[0]),
            simd.mul_add(colour[1], weight, sum[1]),
            simd.mul_add(colour[2], weight, sum[2]),
            simd.mul_add(colour[3], weight, sum[3]),
        ];
    }
}

/// How samples are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sampling {
    /// Trilinear.
    Linear,
    /// Trilinear among the voxels that are present, their weights scaled up to one; nothing where less than half
    /// of the weight is present.
    LinearPresent,
    /// The nearest voxel: labels are not interpolated. Each sample stands for itself alone.
    Nearest,
}

/// What is found at a sample: its place in the table, NaN where nothing is present, and how places change around it,
/// in volume space.
#[derive(Clone, Copy)]
pub(crate) struct Found<S: Simd> {
    pub(crate) place: S::F,
    pub(crate) slope: [S::F; 3],
}

/// Draws sixteen rays through one block behind what they have gathered.
#[inline(always)]
pub(crate) fn march<S: Simd, T: Voxel>(
    simd: S,
    block: &Resident<T>,
    field: &Field,
    way: &Way<S>,
    shading: &Shading<'_, T>,
    gathered: &mut Gathered<S>,
) {
    // Two instances of the loop: samples that are not lit do not pay for those that are.
    if shading.metric.is_some() && !shading.nearest {
        simd.call(LitMarch { block, field, way, shading, gathered });
    } else {
        march_as::<S, T, false>(simd, block, field, way, shading, gathered);
    }
}

/// A march with light.
struct LitMarch<'a, 'b, S: Simd, T> {
    block: &'a Resident<T>,
    field: &'a Field,
    way: &'a Way<S>,
    shading: &'a Shading<'b, T>,
    gathered: &'a mut Gathered<S>,
}

impl<S: Simd, T: Voxel> Step<S> for LitMarch<'_, '_, S, T> {
    type Output = ();

    #[inline(always)]
    fn run(self, simd: S) {
        let Self { block, field, way, shading, gathered } = self;
        march_as::<S, T, true>(simd, block, field, way, shading, gathered);
    }
}

#[inline(always)]
fn march_as<S: Simd, T: Voxel, const LIT: bool>(
    simd: S,
    block: &Resident<T>,
    field: &Field,
    way: &Way<S>,
    shading: &Shading<'_, T>,
    gathered: &mut Gathered<S>,
) {
    let sampling = match (shading.nearest, block.has_missing) {
        (true, _) => Sampling::Nearest,
        (false, true) => Sampling::LinearPresent,
        (false, false) => Sampling::Linear,
    };
    let grid = Grid::new(block);
    let walk = CellWalk::new(simd, block, way);
    let opaque = simd.splat(shading.opaque);
    let mut state = *gathered;
    // Rays that are elsewhere keep what they know.
    let mine = simd.lt(way.first, way.end);
    let mut is_fresh = false;
    let mut i = 0;
    while i < way.count {
        let number = simd.splat(i as f32);
        let live = simd.and(simd.lt(number, way.end), simd.lt(state.rgba[3], opaque));
        if simd.bits(live) == 0 {
            break;
        }
        let look = match field {
            Field::Full { bent } => Look::Draw { bent: *bent },
            Field::Hidden { .. } => Look::Skip(way.count - i),
            Field::Cells(cells) => walk.look(simd, cells, &way.at(simd, number), live),
        };
        let bent = match look {
            Look::Draw { bent } => bent,
            Look::Skip(samples) => {
                let end = simd.splat((i + samples.min(way.count - i)) as f32);
                land::<S, T, LIT>(simd, &grid, way, [number, end], sampling, shading, &mut state);
                i = i.saturating_add(samples);
                is_fresh = sampling != Sampling::Nearest;
                // Those that have begun know of no sample before their next one.
                let begun = simd.and(mine, simd.lt(way.first, end));
                state.before = simd.select(begun, simd.splat(f32::NAN), state.before);
                if LIT {
                    state.slope = each_axis!(a => simd.select(begun, simd.splat(0.0), state.slope[a]));
                }
                continue;
            }
        };
        // The way into a block comes from another one, where opacity may bend.
        let bent = bent || simd.bits(simd.and(mine, simd.ge(way.first, number))) != 0;
        let end = way.count.min(i + walk.run);
        if is_fresh {
            look_back::<S, T, LIT>(simd, &grid, way, number, sampling, shading, &mut state);
        }
        run::<S, T, LIT>(simd, &grid, way, [i, end], bent, sampling, shading, &mut state);
        is_fresh = false;
        i = end;
    }
    *gathered = state;
}

/// Draws the ways that lead from what is in sight to the first of the hidden samples from `from` to `end`: what lies
/// between may be seen.
#[inline(always)]
fn land<S: Simd, T: Voxel, const LIT: bool>(
    simd: S,
    grid: &Grid<'_, T>,
    way: &Way<S>,
    [from, end]: [S::F; 2],
    sampling: Sampling,
    shading: &Shading<'_, T>,
    state: &mut Gathered<S>,
) {
    let numbers = simd.max(way.first, from);
    let is_known = simd.eq(state.before, state.before);
    let goes_on = simd.lt(state.rgba[3], simd.splat(shading.opaque));
    let own = simd.and(simd.lt(numbers, simd.min(way.end, end)), simd.and(is_known, goes_on));
    if simd.bits(own) == 0 {
        return;
    }
    let found = find::<S, T, LIT>(simd, grid, &way.at(simd, numbers), &way.scale, sampling, shading);
    let seen = simd.and(own, simd.eq(found.place, found.place));
    let light = light::<S, T, LIT>(simd, way, &found, shading, state);
    add_way(simd, shading.table, state.before, found.place, seen, true, light, state);
}

/// Finds the place of the sample before `number` for rays that have leapt over it.
#[inline(always)]
fn look_back<S: Simd, T: Voxel, const LIT: bool>(
    simd: S,
    grid: &Grid<'_, T>,
    way: &Way<S>,
    number: S::F,
    sampling: Sampling,
    shading: &Shading<'_, T>,
    state: &mut Gathered<S>,
) {
    let before = simd.sub(number, simd.splat(1.0));
    let is_known = simd.eq(state.before, state.before);
    let found = find::<S, T, LIT>(simd, grid, &way.at(simd, before), &way.scale, sampling, shading);
    let place = simd.select(is_known, state.before, found.place);
    let has = way.has(simd, before);
    state.before = simd.select(has, place, state.before);
    if LIT {
        state.slope = each_axis!(a => {
            let slope = simd.select(is_known, state.slope[a], found.slope[a]);
            simd.select(has, slope, state.slope[a])
        });
    }
}

/// Light on the way from the sample before to this one, of what changes over both.
#[inline(always)]
fn light<S: Simd, T: Voxel, const LIT: bool>(
    simd: S,
    way: &Way<S>,
    found: &Found<S>,
    shading: &Shading<'_, T>,
    state: &Gathered<S>,
) -> Option<Light<S>> {
    let metric = shading.metric.as_ref().filter(|_| LIT)?;
    let slope = each_axis!(a => simd.add(found.slope[a], state.slope[a]));
    Some(metric.light(simd, &slope, &way.direction))
}

/// What lies at positions in a block with so many voxels per voxel of level 0. Slopes are 0 where samples are not lit,
/// or nothing is present.
#[inline(always)]
fn find<S: Simd, T: Voxel, const LIT: bool>(
    simd: S,
    grid: &Grid<'_, T>,
    at: &[S::F; 3],
    scale: &[f32; 3],
    sampling: Sampling,
    shading: &Shading<'_, T>,
) -> Found<S> {
    let zero = simd.splat(0.0);
    if !LIT {
        return Found { place: place(simd, grid, at, sampling, shading), slope: [zero; 3] };
    }
    let corners = grid.around(simd, at);
    let table = &shading.table.scale;
    let (place, slope) = if sampling == Sampling::Linear {
        grid.linear_sloped(simd, &corners, table)
    } else {
        let (place, present) = grid.linear_present(simd, &corners, table, shading.missing);
        let slope = grid.slopes_present(simd, &corners, table, shading.missing, place);
        (simd.select(present, place, simd.splat(f32::NAN)), slope)
    };
    let gain = table.gain_of_loaded::<T>();
    let is_there = simd.eq(place, place);
    let slope = each_axis!(a => simd.select(is_there, simd.mul(slope[a], simd.splat(gain * scale[a])), zero));
    Found { place, slope }
}

/// Places in the table at positions in a block; NaN where nothing is present.
#[inline(always)]
fn place<S: Simd, T: Voxel>(
    simd: S,
    grid: &Grid<'_, T>,
    at: &[S::F; 3],
    sampling: Sampling,
    shading: &Shading<'_, T>,
) -> S::F {
    let corners = grid.around(simd, at);
    if sampling == Sampling::Linear {
        return grid.linear(simd, &corners, &shading.table.scale);
    }
    let (place, present) = grid.linear_present(simd, &corners, &shading.table.scale, shading.missing);
    simd.select(present, place, simd.splat(f32::NAN))
}

/// Samples at positions in any block of a volume whose values are interpolated, which has so many voxels per voxel of
/// level 0.
pub(crate) struct SampleBlock<'a, 'b, S: Simd, T> {
    pub(crate) block: &'a Resident<T>,
    pub(crate) at: [S::F; 3],
    pub(crate) scale: [f32; 3],
    pub(crate) shading: &'a Shading<'b, T>,
}

impl<S: Simd, T: Voxel> Step<S> for SampleBlock<'_, '_, S, T> {
    type Output = Found<S>;

    #[inline(always)]
    fn run(self, simd: S) -> Found<S> {
        let Self { block, at, scale, shading } = self;
        let sampling = if block.has_missing { Sampling::LinearPresent } else { Sampling::Linear };
        // Slopes also where nobody asks for them: a second instance would cost more than they do.
        find::<S, T, true>(simd, &Grid::new(block), &at, &scale, sampling, shading)
    }
}

/// Draws samples in sight. `bent`: the way between two samples is cut up where opacity bends in between.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "inlined: the inner loop's own variables")]
fn run<S: Simd, T: Voxel, const LIT: bool>(
    simd: S,
    grid: &Grid<'_, T>,
    way: &Way<S>,
    [from, end]: [u32; 2],
    bent: bool,
    sampling: Sampling,
    shading: &Shading<'_, T>,
    state: &mut Gathered<S>,
) {
    let opaque = simd.splat(shading.opaque);
    for number in from..end {
        let number = simd.splat(number as f32);
        let at = way.at(simd, number);
        let own = way.has(simd, number);
        let seen = simd.and(own, simd.lt(state.rgba[3], opaque));
        if sampling == Sampling::Nearest {
            add_labels(simd, &grid.nearest(simd, &at), seen, shading, state);
            continue;
        }
        let found = find::<S, T, LIT>(simd, grid, &at, &way.scale, sampling, shading);
        let place = found.place;
        let seen = simd.and(seen, simd.eq(place, place));
        let is_known = simd.eq(state.before, state.before);
        let before = simd.select(is_known, state.before, place);
        let light = light::<S, T, LIT>(simd, way, &found, shading, state);
        add_way(simd, shading.table, before, place, seen, bent, light, state);
        state.before = simd.select(own, place, state.before);
        if LIT {
            state.slope = each_axis!(a => simd.select(own, found.slope[a], state.slope[a]));
        }
    }
}

/// Adds the way from the value at `before` to that at `place`: its middle or, where opacity bends in between, as many
/// parts as that asks for.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "inlined: the inner loop's own variables")]
fn add_way<S: Simd>(
    simd: S,
    table: &Table,
    before: S::F,
    place: S::F,
    seen: S::M,
    bent: bool,
    light: Option<Light<S>>,
    state: &mut Gathered<S>,
) {
    let size = if bent { size_of_parts(simd, table, before, place, seen) } else { 0 };
    let parts = PARTS[size];
    let step = simd.mul(simd.sub(place, before), simd.splat(1.0 / parts as f32));
    let mut part = 0.5;
    while part < parts as f32 {
        let middle = simd.mul_add(step, simd.splat(part), before);
        state.add(simd, &table.parts[size], middle, seen, light);
        part += 1.0;
    }
}

/// Which of [`PARTS`] the ways of some ray need.
#[inline(always)]
fn size_of_parts<S: Simd>(simd: S, table: &Table, before: S::F, place: S::F, seen: S::M) -> usize {
    let (low, high) = (simd.min(before, place), simd.max(before, place));
    // The entry above the higher one: a bend there is felt below it.
    let bends = simd.sub(bend(simd, table, simd.add(high, simd.splat(1.0))), bend(simd, table, low));
    let length = simd.sub(high, low);
    let error = simd.mul(simd.mul(bends, length), simd.splat(ERROR_PER_BEND));
    // Cutting into n parts divides the error by n twice.
    let [few, many] = [PARTS[0], PARTS[1]].map(|parts| TOLERANCE * (parts * parts) as f32);
    if simd.bits(simd.and(seen, simd.ge(error, simd.splat(many)))) != 0 {
        return 2;
    }
    usize::from(simd.bits(simd.and(seen, simd.ge(error, simd.splat(few)))) != 0)
}

/// How much opacity bends below places in the table.
#[inline(always)]
fn bend<S: Simd>(simd: S, table: &Table, place: S::F) -> S::F {
    let last = simd.splat((ENTRIES - 1) as f32);
    let at = simd.store_u(simd.truncate(simd.min(simd.max(place, simd.splat(0.0)), last)));
    // SAFETY: `at` lies between 0 and `ENTRIES - 1`; NaN became 0.
    unsafe { simd.numbers(table.bends.as_ptr(), &at) }
}

/// Adds labels by their own colours.
#[inline(always)]
fn add_labels<S: Simd, T: Voxel>(
    simd: S,
    labels: &[T; LANES],
    seen: S::M,
    shading: &Shading<'_, T>,
    state: &mut Gathered<S>,
) {
    let mut colours = [[0.0; LANES]; 4];
    for (lane, &label) in labels.iter().enumerate() {
        if shading.missing.is_missing(label) {
            continue;
        }
        let place = shading.table.scale.place(label.to_f64());
        let entry = shading.table.label_entry(place, label.label()).to_array();
        for (colour, entry) in colours.iter_mut().zip(entry) {
            colour[lane] = entry;
        }
    }
    let colours =
        [simd.load(&colours[0]), simd.load(&colours[1]), simd.load(&colours[2]), simd.load(&colours[3])];
    let through = simd.sub(simd.splat(1.0), state.rgba[3]);
    state.blend(simd, &colours, simd.select(seen, through, simd.splat(0.0)));
}

/// What lies ahead.
enum Look {
    /// Nothing to be seen for so many samples.
    Skip(u32),
    /// Something; in some cell its opacity bends.
    Draw { bent: bool },
}

/// Steps of sixteen rays through the cells of a block.
struct CellWalk<S: Simd> {
    /// Per axis x, y, z.
    cells: [f32; 3],
    strides: [u32; 2],
    forward: [S::M; 3],
    samples_per_voxel: [S::F; 3],
    /// Samples between two looks.
    run: u32,
}

impl<S: Simd> CellWalk<S> {
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 8")]
    fn new<T>(simd: S, block: &Resident<T>, way: &Way<S>) -> Self {
        // A ray that stands still along an axis never leaves through it: a large number, not infinity,
        // which would make 0 * infinity of it.
        const NEVER: f32 = 1e30;
        const STILL: f32 = 1e-20;
        let [nz, ny, nx] = block.layout.cells;
        let samples_per_voxel = each_axis!(a => {
            let step = way.step[a];
            let moves = simd.or(simd.ge(step, simd.splat(STILL)), simd.ge(simd.splat(-STILL), step));
            simd.select(moves, simd.div(simd.splat(1.0), step), simd.splat(NEVER))
        });
        let mut fewest = simd.splat(RUN as f32);
        for samples in &samples_per_voxel {
            let apart = simd.max(*samples, simd.sub(simd.splat(0.0), *samples));
            fewest = simd.min(simd.mul(apart, simd.splat(CELL as f32)), fewest);
        }
        Self {
            run: (simd.least(fewest) as u32).max(1),
            cells: [nx as f32, ny as f32, nz as f32],
            strides: [ny * nx, nx].map(|stride| u32::try_from(stride).unwrap_or(u32::MAX)),
            forward: each_axis!(a => simd.ge(samples_per_voxel[a], simd.splat(0.0))),
            samples_per_voxel,
        }
    }

    /// Looks at the cells that the `live` rays are in.
    #[inline(always)]
    fn look(&self, simd: S, cells: &[u8], at: &[S::F; 3], live: S::M) -> Look {
        const PER_VOXEL: f32 = 1.0 / CELL as f32;
        let zero = simd.splat(0.0);
        let cell = each_axis!(a => {
            let place = simd.mul(at[a], simd.splat(PER_VOXEL));
            simd.truncate(simd.min(simd.max(place, zero), simd.splat(self.cells[a] - 1.0)))
        });
        let plane = simd.mul_u(cell[2], simd.splat_u(self.strides[0]));
        let row = simd.mul_u(cell[1], simd.splat_u(self.strides[1]));
        let index = simd.store_u(simd.add_u(simd.add_u(plane, row), cell[0]));
        let mut rays = simd.bits(live);
        let (mut is_visible, mut bent) = (false, 0);
        let mut reach = [1.0f32; LANES];
        while rays != 0 {
            let lane = rays.trailing_zeros() as usize;
            rays &= rays - 1;
            let here = cells[index[lane] as usize];
            is_visible |= here & !BENT == 0;
            bent |= here;
            reach[lane] = f32::from(here & !BENT);
        }
        if is_visible {
            return Look::Draw { bent: bent & BENT != 0 };
        }
        Look::Skip(self.samples_to_exit(simd, at, cell, simd.load(&reach), live))
    }

    /// How many samples all `live` rays have in the boxes of cells nearer than `reach` around theirs. At least one.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, which is meant")]
    fn samples_to_exit(&self, simd: S, at: &[S::F; 3], cell: [S::U; 3], reach: S::F, live: S::M) -> u32 {
        const FAR: f32 = 1e9;
        let (side, one) = (simd.splat(CELL as f32), simd.splat(1.0));
        let mut samples = simd.splat(FAR);
        for axis in 0..3 {
            let cell = simd.to_float(cell[axis]);
            let low = simd.sub(cell, simd.sub(reach, one));
            let high = simd.add(cell, reach);
            // Beyond the outermost cells there is only the end of the block.
            let low = simd.select(simd.ge(simd.splat(0.0), low), simd.splat(-FAR), simd.mul(low, side));
            let is_last = simd.ge(high, simd.splat(self.cells[axis]));
            let high = simd.select(is_last, simd.splat(FAR), simd.mul(high, side));
            let wall = simd.select(self.forward[axis], high, low);
            let ahead = simd.mul(simd.sub(wall, at[axis]), self.samples_per_voxel[axis]);
            samples = simd.min(ahead, samples);
        }
        let least = simd.least(simd.select(live, samples, simd.splat(FAR)));
        (least as u32).saturating_add(1).min(1 << 30)
    }
}
