//! Color and opacity that sixteen rays accumulate, and the contribution of the interval between two samples.

#![expect(unsafe_code, reason = "tables are read at places that were clamped before")]

use glam::Vec4;

use crate::cpu::color_by::StepColors;
use crate::cpu::samples::sample::PacketSamples;
use crate::cpu::table::{ENTRIES, ERROR_PER_BEND, PARTS, TOLERANCE, TableEntries, TransferTable};
use crate::scene::light::{Light, Metric};
use crate::simd::{LANES, Simd, SimdStep, each_axis};

/// Color and opacity that sixteen rays have accumulated so far, and the last sample of each.
#[derive(Clone, Copy)]
pub(crate) struct Accumulated<S: Simd> {
    /// Premultiplied red, green, blue, and opacity.
    pub(crate) rgba: [S::F; 4],
    /// Place in the table of each ray's previous sample; NaN if it is missing or was skipped.
    pub(crate) before: S::F,
    /// Slopes of places around that sample, in volume space; 0 if not known. Only for lit samples.
    pub(crate) slope: [S::F; 3],
}

/// Intervals from the previous samples to the next ones.
#[derive(Clone, Copy)]
pub(crate) struct Leg<'a, S: Simd> {
    /// Place in the table of the previous sample.
    pub(crate) from: S::F,
    /// Place in the table of the sample.
    pub(crate) to: S::F,
    /// Rays that have such an interval.
    pub(crate) seen: S::M,
    /// True if it is cut into parts where opacity is nonlinear.
    pub(crate) bent: bool,
    /// Colors other than the table's.
    pub(crate) step_colors: Option<&'a StepColors<'a, S>>,
    pub(crate) light: Option<Light<S>>,
}

impl<S: Simd> Accumulated<S> {
    #[inline(always)]
    pub(crate) fn new(simd: S) -> Self {
        let zero = simd.splat(0.0);
        Self { rgba: [zero; 4], before: simd.splat(f32::NAN), slope: [zero; 3] }
    }

    /// Starts rays behind these colors.
    #[inline(always)]
    pub(crate) fn begin(&mut self, simd: S, colors: &[Vec4; LANES]) {
        self.rgba = std::array::from_fn(|part| simd.load(&colors.map(|color| color[part])));
    }

    /// Returns red, green, blue and opacity of each ray.
    #[inline(always)]
    pub(crate) fn store(&self, simd: S) -> [[f32; LANES]; 4] {
        let [r, g, b, a] = self.rgba;
        [simd.store(r), simd.store(g), simd.store(b), simd.store(a)]
    }

    /// Returns one bit per ray whose previous sample is known.
    #[inline(always)]
    pub(crate) fn known(&self, simd: S) -> u32 {
        simd.bits(simd.eq(self.before, self.before))
    }

    /// Resets the previous samples of the rays of which `passed` is 1: they went on without taking samples.
    #[inline(always)]
    pub(crate) fn forget(&mut self, simd: S, passed: [f32; LANES]) {
        self.forget_where(simd, simd.ge(simd.load(&passed), simd.splat(1.0)));
    }

    /// Resets the previous samples of these rays.
    #[inline(always)]
    pub(crate) fn forget_where(&mut self, simd: S, passed: S::M) {
        self.before = simd.select(passed, simd.splat(f32::NAN), self.before);
        self.slope = each_axis!(a => simd.select(passed, simd.splat(0.0), self.slope[a]));
    }

    /// Records the samples that these rays have come to.
    #[inline(always)]
    pub(crate) fn remember(&mut self, simd: S, own: S::M, found: &PacketSamples<S>) {
        self.before = simd.select(own, found.place, self.before);
        self.slope = each_axis!(a => simd.select(own, found.slope[a], self.slope[a]));
    }

    /// Returns the light of the interval from the previous sample to this one, from the mean of both.
    #[inline(always)]
    pub(crate) fn light(
        &self,
        simd: S,
        metric: &Metric,
        found: &PacketSamples<S>,
        direction: &[S::F; 3],
    ) -> Light<S> {
        let slope = each_axis!(a => simd.add(found.slope[a], self.slope[a]));
        metric.light(simd, &slope, direction)
    }

    /// Adds an interval: its middle or, where opacity is nonlinear, as many parts as required.
    #[inline(always)]
    pub(crate) fn add_leg(&mut self, simd: S, table: &TransferTable, leg: &Leg<'_, S>) {
        let Leg { from, to, seen, bent, step_colors, light } = *leg;
        let mut size = if bent { size_of_parts(simd, table, from, to, seen) } else { 0 };
        if step_colors.is_some() {
            size = size.max(size_of_recolored_parts(simd, table, from, to, seen));
        }
        if size == 0 {
            let middle = simd.mul_add(simd.sub(to, from), simd.splat(0.5), from);
            self.add(simd, &table.parts[0], middle, seen, with_share(step_colors, 0.5), light);
            return;
        }
        let parts = PARTS[size];
        let step = simd.mul(simd.sub(to, from), simd.splat(1.0 / parts as f32));
        let mut part = 0.5;
        while part < parts as f32 {
            let middle = simd.mul_add(step, simd.splat(part), from);
            let step_colors = with_share(step_colors, part / parts as f32);
            self.add(simd, &table.parts[size], middle, seen, step_colors, light);
            part += 1.0;
        }
    }

    /// Composites the table's entries at `places` behind the accumulated colors, for the rays in `seen`;
    /// where they are `recolored`, in other colors, those at a share of the interval.
    #[inline(always)]
    pub(crate) fn add(
        &mut self,
        simd: S,
        entries: &TableEntries,
        places: S::F,
        seen: S::M,
        step_colors: Option<(&StepColors<'_, S>, f32)>,
        light: Option<Light<S>>,
    ) {
        let mut entry = entries.at(simd, places);
        if let Some((step_colors, share)) = step_colors {
            entry = step_colors.colors(simd, &entry, seen, share);
        }
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
    pub(crate) fn blend(&mut self, simd: S, color: &[S::F; 4], weight: S::F) {
        let sum = &self.rgba;
        self.rgba = [
            simd.mul_add(color[0], weight, sum[0]),
            simd.mul_add(color[1], weight, sum[1]),
            simd.mul_add(color[2], weight, sum[2]),
            simd.mul_add(color[3], weight, sum[3]),
        ];
    }
}

#[inline(always)]
fn with_share<'a, S: Simd>(
    step_colors: Option<&'a StepColors<'a, S>>,
    share: f32,
) -> Option<(&'a StepColors<'a, S>, f32)> {
    match step_colors {
        Some(step_colors) => Some((step_colors, share)),
        None => None,
    }
}

/// [`Accumulated::add_leg`] as a function of its own, for rare intervals: into a block, out of a visible
/// region, and at missing voxels.
pub(crate) struct Add<'a, S: Simd> {
    pub(crate) accumulated: Accumulated<S>,
    pub(crate) table: &'a TransferTable,
    /// Lighting of the interval, with the rays' directions.
    pub(crate) metric: Option<&'a Metric>,
    pub(crate) direction: [S::F; 3],
    /// Factor of the light.
    pub(crate) dimmed: Option<S::F>,
    pub(crate) found: PacketSamples<S>,
    pub(crate) seen: S::M,
    pub(crate) bent: bool,
    pub(crate) step_colors: Option<&'a StepColors<'a, S>>,
}

impl<S: Simd> SimdStep<S> for Add<'_, S> {
    type Output = Accumulated<S>;

    #[inline(always)]
    fn run(self, simd: S) -> Accumulated<S> {
        let Self { mut accumulated, table, metric, direction, dimmed, found, seen, bent, step_colors } = self;
        let (to, before) = (found.place, accumulated.before);
        let from = simd.select(simd.eq(before, before), before, to);
        let seen = simd.and(seen, simd.eq(to, to));
        let light = match metric {
            Some(metric) => Some(accumulated.light(simd, metric, &found, &direction).dimmed(simd, dimmed)),
            None => None,
        };
        accumulated.add_leg(simd, table, &Leg { from, to, seen, bent, step_colors, light });
        accumulated
    }
}

/// Returns the index in [`PARTS`] that the intervals of all rays require.
#[inline(always)]
pub(crate) fn size_of_parts<S: Simd>(
    simd: S,
    table: &TransferTable,
    before: S::F,
    place: S::F,
    seen: S::M,
) -> usize {
    let scale = &table.entry_scale;
    let (before, place) = (scale.entries(simd, before), scale.entries(simd, place));
    let (low, high) = (simd.min(before, place), simd.max(before, place));
    let length = simd.sub(high, low);
    if simd.bits(simd.and(seen, simd.ge(length, simd.splat(table.longest_even)))) == 0 {
        return 0;
    }
    // The entry above the higher one: a bend there affects intervals below it.
    let bends = simd.sub(bend(simd, table, simd.add(high, simd.splat(1.0))), bend(simd, table, low));
    let error = simd.mul(simd.mul(bends, length), simd.splat(ERROR_PER_BEND));
    // Cutting into n parts divides the error by n squared.
    let [few, many] = [PARTS[0], PARTS[1]].map(|parts| TOLERANCE * (parts * parts) as f32);
    if simd.bits(simd.and(seen, simd.ge(error, simd.splat(many)))) != 0 {
        return 2;
    }
    usize::from(simd.bits(simd.and(seen, simd.ge(error, simd.splat(few)))) != 0)
}

/// Opacity of a step from which on it is cut into 4 or 16 parts if another array gives the colors, whatever
/// these are: the first of them hide the last. A step of opacity `a` over which color changes by `d` would
/// have an error of `a * a * d / 12` in one part.
const RECOLORED_PARTS: [f32; 2] = [0.25, 0.75];

/// Returns the index in [`PARTS`] that intervals require for the order of the colors on them.
#[inline(always)]
pub(crate) fn size_of_recolored_parts<S: Simd>(
    simd: S,
    table: &TransferTable,
    from: S::F,
    to: S::F,
    seen: S::M,
) -> usize {
    let [few, many] = RECOLORED_PARTS;
    let (entries, unit) = (&table.parts[0], simd.splat(table.parts[0].unit));
    let opacity = simd.mul(simd.max(entries.at(simd, from)[3], entries.at(simd, to)[3]), unit);
    if simd.bits(simd.and(seen, simd.ge(opacity, simd.splat(many)))) != 0 {
        return 2;
    }
    usize::from(simd.bits(simd.and(seen, simd.ge(opacity, simd.splat(few)))) != 0)
}

/// Returns the accumulated bend of opacity below entries of the table.
#[inline(always)]
fn bend<S: Simd>(simd: S, table: &TransferTable, place: S::F) -> S::F {
    let last = simd.splat((ENTRIES - 1) as f32);
    let at = simd.store_u(simd.truncate(simd.min(simd.max(place, simd.splat(0.0)), last)));
    // SAFETY: `at` lies between 0 and `ENTRIES - 1`; NaN became 0.
    unsafe { simd.numbers(table.bends.as_ptr(), &at) }
}
