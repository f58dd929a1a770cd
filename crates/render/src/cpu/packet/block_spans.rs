//! Drawing spans of sixteen rays from one block: in one piece, or in several if its samples represent more
//! than one step or are blended with a coarser block.

use glam::{DVec3, Vec3, Vec4};

use crate::blocks::voxel::Voxel;
use crate::cpu::color_by::recolored;
use crate::cpu::context::CastContext;
use crate::cpu::empty_space::visible_cells::SamplingPlan;
use crate::cpu::packet::march::March;
use crate::cpu::packet::rays::{PacketRays, Spans};
use crate::cpu::samples::accumulated::Accumulated;
use crate::cpu::samples::dimming::MIDDLE;
use crate::cpu::samples::level_fade;
use crate::cpu::samples::shading::{BlockRays, Shading};
use crate::cpu::slab_layers::{CurrentSlab, LeaveSlab, SlabLayers};
use crate::cpu::table::TransferTable;
use crate::isosurface::cubic::gradient;
use crate::simd::{LANES, Simd, each_axis};

/// Mode in which spans of a block are drawn.
#[derive(Clone, Copy)]
enum SpanMode {
    /// Transition to a coarser block.
    Faded,
    /// Logarithm to the base of 2 of the steps that each sample represents.
    Strided(usize),
}

impl<T: Voxel> CastContext<'_, T> {
    /// Draws spans from one block, including the transition to coarser ones; returns the number of samples
    /// drawn.
    #[inline(always)]
    pub(crate) fn draw_block<S: Simd>(
        &self,
        simd: S,
        rays: &PacketRays,
        spans: &Spans,
        (slot, plan): (u32, &SamplingPlan),
        shadings: &[Shading<'_, T>],
        (accumulated, mut layers): (&mut Accumulated<S>, Option<&mut SlabLayers<'_>>),
    ) -> u64 {
        let log2 = self.strides_log2[self.blocks.resident(slot).level_index];
        let (whole, pieces);
        let pieces: &[(Spans, SpanMode)] = if log2 == 0 && !self.fades[slot as usize].any() {
            whole = [(*spans, SpanMode::Strided(0))];
            &whole
        } else {
            pieces = self.pieces(rays, spans, slot, log2);
            &pieces
        };
        let mut drawn = 0;
        for (spans, how) in pieces {
            let unknown = spans.bits() & !accumulated.known(simd);
            self.find_before(simd, rays, &spans.from, unknown, &shadings[0], accumulated);
            match *how {
                SpanMode::Faded => {
                    drawn += spans.count();
                    match layers.as_deref_mut() {
                        None => self.draw_faded(simd, rays, spans, slot, &shadings[0], accumulated),
                        Some(layers) => {
                            for (slab, part) in layers.parts(spans) {
                                self.draw_faded(simd, rays, &part, slot, &shadings[0], accumulated);
                                accumulated.rgba = simd.call(LeaveSlab {
                                    layers: &mut *layers,
                                    slab,
                                    rgba: accumulated.rgba,
                                });
                            }
                        }
                    }
                }
                SpanMode::Strided(log2) => {
                    let Some(block_rays) = self.block_rays(simd, rays, spans, slot, log2) else { continue };
                    let block = self.blocks.resident(slot);
                    let shading = &Shading { layers: self.layers_in(slot, log2), ..shadings[log2] };
                    let stride = f64::from(1u32 << log2);
                    let inside =
                        layers.as_deref_mut().map(|layers| CurrentSlab::new(layers, block_rays.base, stride));
                    drawn += simd.call(March {
                        block,
                        plan,
                        block_rays: &block_rays,
                        shading,
                        accumulated,
                        inside,
                    });
                    if log2 > 0 {
                        // The previous sample is one step away, not half a stride.
                        let known = spans.bits() & accumulated.known(simd);
                        self.find_before(simd, rays, &spans.to, known, &shadings[0], accumulated);
                    }
                }
            }
        }
        drawn
    }

    /// Draws spans in a block that begins beside a coarser one, or whose samples represent several steps.
    /// Such a sample lies in their middle, and single steps fill up to whole multiples at both ends, so that
    /// no step is left out or counted twice.
    #[inline(never)]
    fn pieces(&self, rays: &PacketRays, spans: &Spans, slot: u32, log2: usize) -> Vec<(Spans, SpanMode)> {
        let [before, within, behind] = self.split_fade(rays, spans, slot);
        let mut pieces = vec![(before, SpanMode::Faded)];
        if log2 == 0 {
            pieces.push((within, SpanMode::Strided(0)));
        } else {
            let [head, body, tail] = within.split(f64::from(1u32 << log2));
            pieces.extend([
                (head, SpanMode::Strided(0)),
                (body, SpanMode::Strided(log2)),
                (tail, SpanMode::Strided(0)),
            ]);
        }
        pieces.push((behind, SpanMode::Faded));
        pieces
    }

    /// Splits spans into three parts: the front one in the transition to coarser blocks, the one outside it,
    /// and the rear one in the transition.
    pub(crate) fn split_fade(&self, rays: &PacketRays, spans: &Spans, slot: u32) -> [Spans; 3] {
        let fade = self.fades[slot as usize];
        let block = self.blocks.resident(slot);
        let level = &self.scene.view.levels[block.level_index];
        let (mut first, mut end) = (spans.from, spans.to);
        for lane in 0..LANES {
            let (from, to) = (spans.from[lane], spans.to[lane]);
            let step = DVec3::from_array([0, 1, 2].map(|a| rays.step[a][lane])) * level.scale;
            #[expect(clippy::cast_possible_truncation, reason = "numbers of samples are whole")]
            let outside = level_fade::outside(
                fade,
                level.local(block.at, rays.at(lane, from)),
                step,
                (to - from) as i64,
            );
            (first[lane], end[lane]) = (from + outside.start as f64, from + outside.end as f64);
        }
        [
            Spans { from: spans.from, to: first },
            Spans { from: first, to: end },
            Spans { from: end, to: spans.to },
        ]
    }

    /// Returns the traversal of spans through a block whose samples represent 2^`log2` steps each; `None` if
    /// there is none.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positions are f32; saturates"
    )]
    pub(crate) fn block_rays<S: Simd>(
        &self,
        simd: S,
        rays: &PacketRays,
        spans: &Spans,
        slot: u32,
        log2: usize,
    ) -> Option<BlockRays<S>> {
        let block = self.blocks.resident(slot);
        let level = &self.scene.view.levels[block.level_index];
        let (scale, origin) = level.local_map(block.at);
        let stride = f64::from(1u32 << log2);
        let mut base = f64::INFINITY;
        for lane in 0..LANES {
            let from = if spans.from[lane] < spans.to[lane] { spans.from[lane] } else { f64::INFINITY };
            base = base.min(from);
        }
        if base == f64::INFINITY {
            return None;
        }
        let middle = base + (stride - 1.0) / 2.0;
        let (mut start, mut step) = ([[0.0; LANES]; 3], [[0.0; LANES]; 3]);
        for axis in 0..3 {
            for lane in 0..LANES {
                let volume = rays.origin[axis][lane] + rays.step[axis][lane] * middle;
                start[axis][lane] = (volume * scale[axis] + origin[axis]) as f32;
                step[axis][lane] = (rays.step[axis][lane] * scale[axis] * stride) as f32;
            }
        }
        let (mut first, mut end, mut count) = ([0.0; LANES], [0.0; LANES], 0.0f32);
        for lane in 0..LANES {
            first[lane] = ((spans.from[lane] - base) / stride) as f32;
            end[lane] = ((spans.to[lane] - base) / stride) as f32;
            let is_own = spans.from[lane] < spans.to[lane];
            count = if is_own { count.max(end[lane]) } else { count };
        }
        let mut direction = [[0.0; LANES]; 3];
        if let Some(metric) = &self.metric {
            for (direction, steps) in direction.iter_mut().zip(&rays.step) {
                for lane in 0..LANES {
                    direction[lane] = metric.direction(steps[lane] / rays.stretch[lane]);
                }
            }
        }
        Some(BlockRays {
            start: each_axis!(a => simd.load(&start[a])),
            step: each_axis!(a => simd.load(&step[a])),
            base,
            stride,
            first: simd.load(&first),
            end: simd.load(&end),
            count: count as u32,
            direction: each_axis!(a => simd.load(&direction[a])),
            scale: level.scale.as_vec3().to_array(),
            map: (scale, origin),
        })
    }

    /// Draws samples one by one, each blended between its block's value and that of a coarser one.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "colors are f32")]
    fn draw_faded<S: Simd>(
        &self,
        simd: S,
        rays: &PacketRays,
        spans: &Spans,
        slot: u32,
        shading: &Shading<'_, T>,
        accumulated: &mut Accumulated<S>,
    ) {
        let mut rgba = accumulated.store(simd);
        let mut before = simd.store(accumulated.before);
        let mut slopes = each_axis!(a => simd.store(accumulated.slope[a]));
        let layers = self.layers_in(slot, 0);
        for lane in 0..LANES {
            let mut color = Vec4::new(rgba[0][lane], rgba[1][lane], rgba[2][lane], rgba[3][lane]);
            let mut sample = spans.from[lane];
            while sample < spans.to[lane] && color.w < shading.opaque {
                let place = self.faded(rays.at(lane, sample), slot, shading.table);
                let middle = if before[lane].is_nan() { place } else { f32::midpoint(before[lane], place) };
                let at = rays.at(lane, sample - 0.5);
                let mut entry = recolored(self.color_by, shading.table.entry(middle), at);
                if let Some(metric) = &self.metric {
                    let own = self.slope_at(rays.at(lane, sample), slot, shading.table);
                    let last = Vec3::from_array([0, 1, 2].map(|axis| slopes[axis][lane]));
                    let (slope, direction) = ((own + last).as_dvec3(), self.direction_of(rays, lane));
                    let cosine = metric.cosine(&self.lamp, slope, direction);
                    let dimmed = self
                        .dimming
                        .as_ref()
                        .map_or(1.0, |d| d.at(sample - f64::from(MIDDLE), |n| rays.at(lane, n)));
                    entry = self.scene.light.dimmed(dimmed).lit(entry, cosine as f32);
                    (0..3).for_each(|axis| slopes[axis][lane] = own[axis]);
                }
                if !layers.is_empty() {
                    color += self.layers_at(&layers, at) * (1.0 - color.w);
                    entry = if layers.are_alone { Vec4::ZERO } else { entry };
                }
                color += entry * (1.0 - color.w);
                before[lane] = place;
                sample += 1.0;
            }
            (0..4).for_each(|part| rgba[part][lane] = color[part]);
        }
        accumulated.rgba =
            [simd.load(&rgba[0]), simd.load(&rgba[1]), simd.load(&rgba[2]), simd.load(&rgba[3])];
        accumulated.before = simd.load(&before);
        accumulated.slope = each_axis!(a => simd.load(&slopes[a]));
    }

    /// Returns the slopes of places in the table around a volume position in a block, in volume space, by the
    /// block's own values.
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "slopes are f32; positions saturate")]
    fn slope_at(&self, volume: DVec3, slot: u32, table: &TransferTable) -> Vec3 {
        let block = self.blocks.resident(slot);
        let level = &self.scene.view.levels[block.level_index];
        let local = level.local(block.at, volume);
        let corners = block.corners(local.floor().to_array().map(|i| i as isize));
        if block.has_missing && self.blocks.missing.any(&corners) {
            return Vec3::ZERO;
        }
        let slope = gradient(&corners.map(Voxel::to_f64), local - local.floor());
        (slope * level.scale * table.scale.gain).as_vec3()
    }
}
