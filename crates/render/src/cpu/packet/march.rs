//! Inner loop: samples along sixteen rays through one block, front to back.
//!
//! The rays are neighbors and step together: sample numbers are common, each ray draws those of its own that
//! lie in the block. Positions are `f32` in the block's own voxels, so they stay exact to 1/4096 of a voxel
//! in blocks of any usual size.
//!
//! One instance per element type and set of instructions, chosen once per tile and block. Runs of unlit
//! samples between present voxels are drawn in the march itself; every other case is a function of its own
//! ([`SimdStep`]), which keeps registers free in that loop and the compile time short.

use std::cell::Cell;

use crate::blocks::resident::Resident;
use crate::blocks::voxel::Voxel;
use crate::cpu::color_by::ColorBlock;
use crate::cpu::empty_space::sampling_rate::{BENT, DOUBLE, SamplingRates};
use crate::cpu::empty_space::skip_ahead::{CellLookup, LookAhead, RUN};
use crate::cpu::empty_space::visible_cells::{SamplingPlan, VisibleCells};
use crate::cpu::layers::NearBlocks;
use crate::cpu::layers::add::AddLayers;
use crate::cpu::samples::accumulated::{Accumulated, Add, Leg};
use crate::cpu::samples::corners::VoxelGrid;
use crate::cpu::samples::dimming::BlockDimming;
use crate::cpu::samples::sample::{PacketSamples, TakeSamples};
use crate::cpu::samples::shading::{BlockRays, Shading};
use crate::cpu::slab_layers::CurrentSlab;
use crate::simd::{LANES, Simd, SimdStep, each_axis};

/// Result of the last test for skipping: the rate at which `rays` go on, up to the sample `until`. Borders of
/// slabs end runs of samples earlier.
struct Looked {
    rate: u8,
    rays: u32,
    until: u32,
}

/// Smallest number of samples of a run for which several steps are taken at once.
const HALF_RUN: u32 = RUN / 2;

/// Method of sampling.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SamplingKind {
    /// Trilinear, all voxels present.
    Linear,
    /// Trilinear, all voxels present, lit by the gradient.
    Lit,
    /// Trilinear among the present voxels, their weights scaled up to one; missing if less than half of the
    /// weight is present.
    Present,
    /// Trilinear, with or without missing voxels, lit or not, in the colors of another array or under layers.
    Recolored,
    /// The nearest voxel: labels are not interpolated. Each sample is drawn without its neighbors.
    Nearest,
}

impl SamplingKind {
    fn of<T>(shading: &Shading<'_, T>, has_missing: bool) -> Self {
        match (shading.nearest, has_missing, &shading.metric) {
            (true, _, _) => Self::Nearest,
            _ if shading.color_by.is_some() || !shading.layers.is_empty() => Self::Recolored,
            (_, true, _) => Self::Present,
            (_, _, Some(_)) => Self::Lit,
            _ => Self::Linear,
        }
    }
}

/// Draws sixteen rays through one block behind what they have accumulated.
pub(crate) struct March<'a, 'b, S: Simd, T> {
    pub(crate) block: &'a Resident<T>,
    pub(crate) plan: &'a SamplingPlan,
    pub(crate) block_rays: &'a BlockRays<S>,
    pub(crate) shading: &'a Shading<'a, T>,
    pub(crate) accumulated: &'a mut Accumulated<S>,
    /// Traversal of the slabs by the rays; `None` unless slabs are cast.
    pub(crate) inside: Option<CurrentSlab<'a, 'b>>,
}

impl<S: Simd, T: Voxel> SimdStep<S> for March<'_, '_, S, T> {
    /// Number of samples drawn: those of the runs of samples of each ray in which something was visible.
    type Output = u64;

    #[inline(always)]
    fn run(self, simd: S) -> u64 {
        let Self { block, plan, block_rays, shading, accumulated, mut inside } = self;
        let grid = VoxelGrid::new(block);
        let sampling = SamplingKind::of(shading, grid.has_missing);
        let (near, near_layers, lookups) = (Cell::new(None), NearBlocks::default(), Cell::new(None));
        let near_layers = &near_layers;
        let dimming = match shading.dimming {
            Some(dimming) => Some(BlockDimming::new(dimming, block_rays, &lookups)),
            None => None,
        };
        let samples = BlockSamples { grid, block_rays, shading, sampling, dimming, near: &near, near_layers };
        let lookup = CellLookup::new(simd, block, block_rays);
        let opaque = simd.splat(shading.opaque);
        // A local copy, so that it stays in registers.
        let mut state = *accumulated;
        // Rays that are elsewhere keep their state.
        let mine = simd.lt(block_rays.first, block_rays.end);
        let [begun, left] = block_rays.common(simd, mine);
        let (own_rays, mut drawn) = (simd.bits(mine), 0);
        let mut is_fresh = false;
        let mut i = 0;
        // The first sample in another slab.
        let mut cut = inside.as_ref().map_or(u32::MAX, |inside| inside.next);
        let mut looked = Looked { rate: BENT, rays: 0, until: 0 };
        while i < block_rays.count {
            if let Some(inside) = &mut inside
                && i >= cut
            {
                state.rgba = inside.leave(simd, i, state.rgba);
                cut = inside.next;
            }
            let number = simd.splat(i as f32);
            let live = simd.and(simd.lt(number, block_rays.end), simd.lt(state.rgba[3], opaque));
            if simd.bits(live) == 0 {
                if cut >= block_rays.count {
                    break;
                }
                // The slab is opaque here; the next one is not.
                i = cut;
                is_fresh = sampling != SamplingKind::Nearest;
                state.forget_where(simd, simd.and(mine, simd.lt(block_rays.first, simd.splat(i as f32))));
                continue;
            }
            let rays = simd.bits(live);
            if i >= looked.until || rays & !looked.rays != 0 {
                let look = match (&*plan.field, &plan.rates) {
                    (VisibleCells::Hidden { .. }, _) => LookAhead::Skip(block_rays.count - i),
                    (_, SamplingRates::Even(rate)) => LookAhead::Draw { rate: *rate },
                    (_, SamplingRates::Cells(cells)) => {
                        lookup.look(simd, cells, &block_rays.at(simd, number), live)
                    }
                };
                match look {
                    LookAhead::Draw { rate } => looked = Looked { rate, rays, until: i + lookup.run },
                    LookAhead::Skip(count) => {
                        let end = simd.splat((i + count.min(block_rays.count - i)) as f32);
                        state = samples.land(simd, [number, end], state);
                        i = i.saturating_add(count);
                        is_fresh = sampling != SamplingKind::Nearest;
                        // Rays that have begun have no sample before their next one.
                        state.forget_where(simd, simd.and(mine, simd.lt(block_rays.first, end)));
                        continue;
                    }
                }
            }
            let mut end = block_rays.count.min(looked.until).min(cut);
            // The interval into a block begins in another one, where opacity may be nonlinear; from then on
            // several steps may be taken at once, until a ray leaves.
            let enters = i <= begun;
            let rate = if enters { BENT } else { looked.rate };
            if enters {
                end = end.min(begun + 1);
            } else if rate >= DOUBLE && i < left {
                end = end.min(left);
            }
            let is_even = rate >= DOUBLE && sampling == SamplingKind::Linear;
            let is_long = is_even && end - i == RUN;
            let is_short = is_even && !is_long && end - i >= HALF_RUN;
            if is_short {
                end = i + HALF_RUN;
            }
            if is_fresh {
                state = samples.look_back(simd, number, state);
            }
            let opacity = state.rgba[3];
            let run = SampleRun { samples, numbers: [i, end], bent: rate == BENT, state };
            state = match sampling {
                SamplingKind::Linear if is_short && run.is_whole(simd) => run.stride::<2, 2>(simd),
                SamplingKind::Linear if is_long && run.is_whole(simd) => match rate {
                    DOUBLE => run.stride::<4, 2>(simd),
                    _ => run.stride::<2, 4>(simd),
                },
                SamplingKind::Linear => run.draw::<false>(simd),
                SamplingKind::Lit => simd.call(Lit(run)),
                SamplingKind::Present | SamplingKind::Recolored => simd.call(Present(run)),
                SamplingKind::Nearest => simd.call(Labels(run)),
            };
            is_fresh = false;
            let seen = simd.bits(simd.lt(opacity, state.rgba[3]));
            drawn += u64::from((seen & own_rays).count_ones() * (end - i));
            i = end;
        }
        if let Some(inside) = &mut inside {
            state.rgba = inside.leave(simd, block_rays.count, state.rgba);
        }
        *accumulated = state;
        drawn
    }
}

/// Positions of the samples of sixteen rays in a block, and the method of sampling.
#[derive(Clone, Copy)]
struct BlockSamples<'a, S: Simd, T> {
    grid: VoxelGrid<'a, T>,
    block_rays: &'a BlockRays<S>,
    shading: &'a Shading<'a, T>,
    sampling: SamplingKind,
    dimming: Option<BlockDimming<'a, S>>,
    /// Block of the last color lookup, if another array gives the colors.
    near: &'a Cell<Option<ColorBlock>>,
    /// Blocks of the last lookups in layers.
    near_layers: &'a NearBlocks,
}

impl<S: Simd, T: Voxel> BlockSamples<'_, S, T> {
    /// Takes samples by trilinear interpolation among present voxels, without slopes.
    #[inline(always)]
    fn linear(&self, simd: S, at: &[S::F; 3]) -> PacketSamples<S> {
        let corners = self.grid.around(simd, at);
        PacketSamples::unsloped(simd, self.grid.linear(simd, &corners, &self.shading.table.scale))
    }

    /// Takes samples of any kind.
    #[inline(always)]
    fn find(&self, simd: S, at: &[S::F; 3]) -> PacketSamples<S> {
        if self.sampling == SamplingKind::Linear {
            return self.linear(simd, at);
        }
        let Self { grid, block_rays, shading, .. } = *self;
        simd.call(TakeSamples { grid, at: *at, scale: block_rays.scale, shading })
    }

    /// Returns the factor of the light at the sample of this number; `None` if it is 1.
    #[inline(always)]
    fn dimmed_at(&self, simd: S, number: u32) -> Option<S::F> {
        match &self.dimming {
            Some(dimming) => Some(dimming.at(simd, number, self.block_rays)),
            None => None,
        }
    }

    /// Adds the intervals from the previous samples to the given ones.
    #[inline(always)]
    fn add(
        &self,
        simd: S,
        (number, dimmed): (S::F, Option<S::F>),
        found: PacketSamples<S>,
        seen: S::M,
        bent: bool,
        accumulated: Accumulated<S>,
    ) -> Accumulated<S> {
        let Shading { table, color_by, .. } = *self.shading;
        let (metric, direction) = (self.shading.metric.as_ref(), self.block_rays.direction);
        #[expect(clippy::manual_map, reason = "a closure around vectors may not be inlined")]
        let step_colors = match color_by {
            Some(color_by) => Some(self.block_rays.step_colors(simd, number, color_by, self.near)),
            None => None,
        };
        let step_colors = step_colors.as_ref();
        simd.call(Add { accumulated, table, metric, direction, dimmed, found, seen, bent, step_colors })
    }

    /// Adds the layers in the middle of the intervals from the previous samples to the given ones.
    #[inline(always)]
    fn add_layers(&self, simd: S, number: S::F, seen: S::M, accumulated: Accumulated<S>) -> Accumulated<S> {
        let (layers, near, map) = (self.shading.layers, self.near_layers, self.block_rays.map);
        let at = self.block_rays.at(simd, simd.sub(number, simd.splat(0.5)));
        simd.call(AddLayers { layers, near, at, map, seen, accumulated })
    }

    /// Draws the intervals from the last visible samples to the first of the hidden samples from `from` to
    /// `end`: the values in between may be visible.
    #[inline(always)]
    fn land(&self, simd: S, [from, end]: [S::F; 2], mut state: Accumulated<S>) -> Accumulated<S> {
        let Self { block_rays, shading, .. } = *self;
        let numbers = simd.max(block_rays.first, from);
        let is_known = simd.eq(state.before, state.before);
        let goes_on = simd.lt(state.rgba[3], simd.splat(shading.opaque));
        let own = simd.and(simd.lt(numbers, simd.min(block_rays.end, end)), simd.and(is_known, goes_on));
        if simd.bits(own) == 0 {
            return state;
        }
        let found = self.find(simd, &block_rays.at(simd, numbers));
        if self.sampling != SamplingKind::Linear {
            let dimmed = match &self.dimming {
                Some(dimming) => Some(dimming.at_own(simd, numbers, &block_rays)),
                None => None,
            };
            return self.add(simd, (numbers, dimmed), found, own, true, state);
        }
        let leg = Leg {
            from: state.before,
            to: found.place,
            seen: own,
            bent: true,
            step_colors: None,
            light: None,
        };
        state.add_leg(simd, shading.table, &leg);
        state
    }

    /// Finds the place of the sample before `number` for rays that have skipped it.
    #[inline(always)]
    fn look_back(&self, simd: S, number: S::F, mut state: Accumulated<S>) -> Accumulated<S> {
        let before = simd.sub(number, simd.splat(1.0));
        let found = self.find(simd, &self.block_rays.at(simd, before));
        let is_known = simd.eq(state.before, state.before);
        let place = simd.select(is_known, state.before, found.place);
        let slope = each_axis!(a => simd.select(is_known, state.slope[a], found.slope[a]));
        state.remember(simd, self.block_rays.has(simd, before), &PacketSamples { place, slope });
        state
    }
}

/// Run of visible samples of sixteen rays.
#[derive(Clone, Copy)]
struct SampleRun<'a, S: Simd, T> {
    samples: BlockSamples<'a, S, T>,
    /// Numbers of the first sample, and of the first one behind the run.
    numbers: [u32; 2],
    /// True if intervals between samples are cut into parts because opacity is nonlinear.
    bent: bool,
    state: Accumulated<S>,
}

impl<S: Simd, T: Voxel> SampleRun<'_, S, T> {
    /// Draws samples between present voxels.
    #[inline(always)]
    fn draw<const LIT: bool>(self, simd: S) -> Accumulated<S> {
        let Self { samples, numbers: [from, end], bent, mut state } = self;
        let BlockSamples { grid, block_rays, shading, .. } = samples;
        let opaque = simd.splat(shading.opaque);
        for whole in from..end {
            let number = simd.splat(whole as f32);
            let at = block_rays.at(simd, number);
            let own = block_rays.has(simd, number);
            let seen = simd.and(own, simd.lt(state.rgba[3], opaque));
            let found = if LIT {
                PacketSamples::sloped(simd, &grid, &at, &block_rays.scale, shading)
            } else {
                samples.linear(simd, &at)
            };
            let before = simd.select(simd.eq(state.before, state.before), state.before, found.place);
            let light = match &shading.metric {
                Some(metric) if LIT => {
                    let light = state.light(simd, metric, &found, &block_rays.direction);
                    Some(light.dimmed(simd, samples.dimmed_at(simd, whole)))
                }
                _ => None,
            };
            state.add_leg(
                simd,
                shading.table,
                &Leg { from: before, to: found.place, seen, bent, step_colors: None, light },
            );
            if LIT {
                state.remember(simd, own, &found);
            } else {
                state.before = simd.select(own, found.place, state.before);
            }
        }
        state
    }
}

impl<S: Simd, T: Voxel> SampleRun<'_, S, T> {
    /// True if each ray has all of its samples or none, and the one before them is known.
    #[inline(always)]
    fn is_whole(&self, simd: S) -> bool {
        let Self { samples: BlockSamples { block_rays, .. }, numbers, state, .. } = self;
        let (from, end) = (simd.splat(numbers[0] as f32), simd.splat(numbers[1] as f32));
        let all = simd.and(simd.ge(from, block_rays.first), simd.ge(block_rays.end, end));
        let none = simd.or(simd.ge(block_rays.first, end), simd.ge(from, block_rays.end));
        let known = simd.and(all, simd.eq(state.before, state.before));
        simd.bits(simd.or(known, none)) == (1 << LANES) - 1
    }

    /// Draws samples in `LEGS` intervals of `SPACING` steps each, unlit and where opacity is linear. The mean
    /// of the values over an interval is that of the cubic through the surrounding samples: the middle of its
    /// ends, less a 24th of the second differences at both.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "2 or 4")]
    fn stride<const LEGS: usize, const SPACING: u32>(self, simd: S) -> Accumulated<S> {
        let Self { samples, numbers: [from, _], mut state, .. } = self;
        let BlockSamples { block_rays, shading, .. } = samples;
        let entries = &shading.table.longer[usize::from(SPACING == 4)];
        let own = block_rays.has(simd, simd.splat(from as f32));
        let mut places = [state.before; 5];
        for leg in 0..LEGS {
            let number = from + (leg as u32 + 1) * SPACING - 1;
            places[leg + 1] = samples.linear(simd, &block_rays.at(simd, simd.splat(number as f32))).place;
        }
        let mut turns = [simd.splat(0.0); 5];
        for at in 1..LEGS {
            let rise = simd.sub(places[at + 1], places[at]);
            turns[at] = simd.sub(rise, simd.sub(places[at], places[at - 1]));
        }
        (turns[0], turns[LEGS]) = (turns[1], turns[LEGS - 1]);
        let opaque = simd.splat(shading.opaque);
        for leg in 0..LEGS {
            let middle = simd.mul(simd.add(places[leg], places[leg + 1]), simd.splat(0.5));
            let turn = simd.add(turns[leg], turns[leg + 1]);
            let mean = simd.mul_add(turn, simd.splat(-1.0 / 24.0), middle);
            let seen = simd.and(own, simd.lt(state.rgba[3], opaque));
            state.add(simd, entries, mean, seen, None, None);
        }
        state.before = simd.select(own, places[LEGS], state.before);
        state
    }
}

/// Draws lit samples.
struct Lit<'a, S: Simd, T>(SampleRun<'a, S, T>);

impl<S: Simd, T: Voxel> SimdStep<S> for Lit<'_, S, T> {
    type Output = Accumulated<S>;

    #[inline(always)]
    fn run(self, simd: S) -> Accumulated<S> {
        self.0.draw::<true>(simd)
    }
}

/// Draws samples among voxels of which some are missing, in the colors of another array, or under layers; lit
/// or not.
struct Present<'a, S: Simd, T>(SampleRun<'a, S, T>);

impl<S: Simd, T: Voxel> SimdStep<S> for Present<'_, S, T> {
    type Output = Accumulated<S>;

    #[inline(always)]
    fn run(self, simd: S) -> Accumulated<S> {
        let SampleRun { samples, numbers: [from, end], bent, mut state } = self.0;
        let block_rays = samples.block_rays;
        let opaque = simd.splat(samples.shading.opaque);
        for whole in from..end {
            let number = simd.splat(whole as f32);
            let own = block_rays.has(simd, number);
            let seen = simd.and(own, simd.lt(state.rgba[3], opaque));
            let layers = &samples.shading.layers;
            if !layers.is_empty() {
                state = samples.add_layers(simd, number, seen, state);
                if layers.are_alone {
                    continue;
                }
            }
            let found = samples.find(simd, &block_rays.at(simd, number));
            let dimmed = samples.dimmed_at(simd, whole);
            state = samples.add(simd, (number, dimmed), found, seen, bent, state);
            state.remember(simd, own, &found);
        }
        state
    }
}

/// Draws labels, by their own colors.
struct Labels<'a, S: Simd, T>(SampleRun<'a, S, T>);

impl<S: Simd, T: Voxel> SimdStep<S> for Labels<'_, S, T> {
    type Output = Accumulated<S>;

    #[inline(always)]
    fn run(self, simd: S) -> Accumulated<S> {
        let SampleRun { samples, numbers: [from, end], mut state, .. } = self.0;
        let BlockSamples { grid, block_rays, shading, .. } = samples;
        let opaque = simd.splat(shading.opaque);
        for number in from..end {
            let number = simd.splat(number as f32);
            let seen = simd.and(block_rays.has(simd, number), simd.lt(state.rgba[3], opaque));
            if !shading.layers.is_empty() {
                state = samples.add_layers(simd, number, seen, state);
            }
            let labels = grid.nearest(simd, &block_rays.at(simd, number));
            let [r, g, b, a] = label_colors(&labels, shading);
            let mut colors = [simd.load(&r), simd.load(&g), simd.load(&b), simd.load(&a)];
            if let Some(color_by) = shading.color_by {
                colors = block_rays
                    .step_colors(simd, number, color_by, samples.near)
                    .colors(simd, &colors, seen, 1.0);
            }
            let through = simd.sub(simd.splat(1.0), state.rgba[3]);
            state.blend(simd, &colors, simd.select(seen, through, simd.splat(0.0)));
        }
        state
    }
}

/// Returns red, green, blue and opacity of labels.
#[inline(never)]
fn label_colors<T: Voxel>(labels: &[T; LANES], shading: &Shading<'_, T>) -> [[f32; LANES]; 4] {
    let mut colors = [[0.0; LANES]; 4];
    for (lane, &label) in labels.iter().enumerate() {
        if shading.missing.is_missing(label) {
            continue;
        }
        let place = shading.table.scale.place(label.to_f64());
        let entry = shading.table.label_entry(place, label.label()).to_array();
        for (color, entry) in colors.iter_mut().zip(entry) {
            color[lane] = entry;
        }
    }
    colors
}
