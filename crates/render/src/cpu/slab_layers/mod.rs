//! Color and opacity that sixteen rays accumulate in each slab.
//!
//! A ray carries the color that it has accumulated in its current slab. At the border it adds this color to
//! the slab, behind what the slab already has, so that it may do so in several parts. The opacity of all
//! slabs together determines how much the ray sees of what follows; when this is nothing, the ray goes on for
//! a few slabs, and ends.

mod borders;

use crate::cpu::packet::rays::{PacketRays, Spans};
use crate::cpu::packet::size::PACKET_SIDE;
use crate::image::rect::Rect;
use crate::simd::{LANES, Simd, SimdStep};

pub(crate) use borders::SlabBorders;
use borders::SlabPath;

/// Red, green, blue and opacity of sixteen rays.
type Rgba = [[f32; LANES]; 4];

/// Color and opacity that sixteen rays have accumulated, by slab.
pub(crate) struct SlabLayers<'a> {
    borders: &'a SlabBorders,
    path: SlabPath<'a>,
    /// Color and opacity by slab.
    rgba: Vec<Rgba>,
    /// One bit for each slab that is not empty.
    touched: u64,
    /// Opacity of all slabs together.
    total: [f32; LANES],
    /// The slab in which a ray became opaque.
    hidden_from: [Option<usize>; LANES],
    /// 1 for rays that have ended, else 0.
    ended: [f32; LANES],
}

impl<'a> SlabLayers<'a> {
    pub(crate) fn new(borders: &'a SlabBorders) -> Self {
        Self {
            borders,
            path: borders.start(),
            rgba: vec![[[0.0; LANES]; 4]; borders.count()],
            touched: 0,
            total: [0.0; LANES],
            hidden_from: [None; LANES],
            ended: [0.0; LANES],
        }
    }

    /// Resets for other rays.
    #[inline(always)]
    pub(crate) fn begin(&mut self, rays: &PacketRays) {
        self.path = self.borders.path(rays);
        self.total = [0.0; LANES];
        self.hidden_from = [None; LANES];
        self.ended = [0.0; LANES];
    }

    /// Splits spans into parts that lie in one slab each.
    #[inline(never)]
    pub(crate) fn parts(&self, spans: &Spans) -> Vec<(usize, Spans)> {
        let path = self.path.of_march(0.0, 1.0);
        let (mut first, mut end) = (f64::INFINITY, f64::NEG_INFINITY);
        for lane in (0..LANES).filter(|&lane| spans.from[lane] < spans.to[lane]) {
            first = first.min(spans.from[lane]);
            end = end.max(spans.to[lane]);
        }
        let mut parts = Vec::new();
        while first < end {
            let slab = path.slab(first);
            let next = path.next(first, slab).min(end);
            let (from, to) =
                (spans.from.map(|v| v.clamp(first, next)), spans.to.map(|v| v.clamp(first, next)));
            parts.push((slab, Spans { from, to }));
            first = next;
        }
        parts
    }

    /// Ends rays that have drawn the required slabs behind opaque content, on leaving a slab.
    #[inline(never)]
    fn end(&mut self, slab: usize) {
        for lane in 0..LANES {
            if self.total[lane] >= self.borders.opaque {
                let from = *self.hidden_from[lane].get_or_insert(slab);
                let is_over = slab.abs_diff(from) >= self.borders.behind as usize;
                self.ended[lane] = if is_over { 1.0 } else { self.ended[lane] };
            }
        }
    }

    /// Returns the slabs that are not empty, the nearest first; none are left afterwards.
    fn touched(&mut self) -> impl Iterator<Item = usize> + use<> {
        let (mut bits, is_reversed) = (std::mem::take(&mut self.touched), self.path.is_reversed());
        std::iter::from_fn(move || {
            (bits != 0).then(|| {
                let slab = if is_reversed { bits.ilog2() } else { bits.trailing_zeros() };
                bits &= !(1 << slab);
                slab as usize
            })
        })
    }
}

/// Writes the colors that the rays at `corner` of a tile, `size` of them, have accumulated into its tile, in
/// 8 bits, and resets them. The rounding error of one slab is passed on to the next one behind: many faint
/// slabs would otherwise vanish, and the sum is that of the picture.
pub(crate) struct DepositLayers<'a, 'b> {
    pub(crate) layers: &'a mut SlabLayers<'b>,
    pub(crate) tile: &'a mut SlabTile,
    pub(crate) corner: [u32; 2],
    pub(crate) size: [u32; 2],
}

/// Lower bound of the share that is seen of the next slab, used when a rounding error is passed on to that
/// slab.
const LEAST_SEEN: f32 = 0.25;
/// Upper bound of the rounding error.
const MOST_LOST: f32 = 1.0 / 255.0;

impl<S: Simd> SimdStep<S> for DepositLayers<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self, simd: S) {
        let Self { layers, tile, corner, size } = self;
        let (zero, one, half) = (simd.splat(0.0), simd.splat(1.0), simd.splat(0.5));
        let (full, unit) = (simd.splat(255.0), simd.splat(1.0 / 255.0));
        let mut left = [zero; 4];
        for slab in layers.touched() {
            let rgba = std::mem::replace(&mut layers.rgba[slab], [[0.0; LANES]; 4]);
            let seen = simd.max(simd.sub(one, simd.load(&rgba[3])), simd.splat(LEAST_SEEN));
            let by_seen = simd.div(one, seen);
            let mut texels = simd.splat_u(0);
            for part in 0..4 {
                let exact = simd.add(simd.load(&rgba[part]), left[part]);
                let root = simd.sqrt(simd.min(simd.max(exact, zero), one));
                let byte = simd.truncate(simd.mul_add(root, full, half));
                let told = simd.mul(simd.to_float(byte), unit);
                let lost = simd.mul(simd.sub(exact, simd.mul(told, told)), by_seen);
                left[part] = simd.min(simd.max(lost, simd.splat(-MOST_LOST)), simd.splat(MOST_LOST));
                texels = simd.add_u(texels, simd.mul_u(byte, simd.splat_u(1 << (8 * part))));
            }
            tile.put(slab, corner, size, &simd.store_u(texels));
        }
    }
}

/// Stores the accumulated colors of rays in a slab; returns what they carry on: nothing, or opacity if they
/// have ended.
pub(crate) struct LeaveSlab<'a, 'b, S: Simd> {
    pub(crate) layers: &'a mut SlabLayers<'b>,
    pub(crate) slab: usize,
    pub(crate) rgba: [S::F; 4],
}

impl<S: Simd> SimdStep<S> for LeaveSlab<'_, '_, S> {
    type Output = [S::F; 4];

    #[inline(always)]
    fn run(self, simd: S) -> Self::Output {
        let Self { layers, slab, rgba } = self;
        let zero = simd.splat(0.0);
        let goes_on = simd.lt(simd.load(&layers.ended), simd.splat(0.5));
        let alpha = simd.select(goes_on, rgba[3], zero);
        if simd.bits(simd.lt(zero, alpha)) != 0 {
            let one = simd.splat(1.0);
            let sum = &mut layers.rgba[slab];
            let through = simd.select(goes_on, simd.sub(one, simd.load(&sum[3])), zero);
            for part in 0..4 {
                sum[part] = simd.store(simd.mul_add(rgba[part], through, simd.load(&sum[part])));
            }
            let total = simd.load(&layers.total);
            let total = simd.mul_add(alpha, simd.sub(one, total), total);
            layers.total = simd.store(total);
            layers.touched |= 1 << slab;
        }
        let total = simd.load(&layers.total);
        if simd.bits(simd.ge(total, simd.splat(layers.borders.opaque))) != 0 {
            layers.end(slab);
        }
        [zero, zero, zero, simd.load(&layers.ended)]
    }
}

/// Sixteen rays in a march through a block.
pub(crate) struct CurrentSlab<'a, 'b> {
    layers: &'a mut SlabLayers<'b>,
    path: SlabPath<'b>,
    slab: usize,
    /// Number of the march's first sample in another slab.
    pub(crate) next: u32,
}

impl<'a, 'b> CurrentSlab<'a, 'b> {
    /// Enters a march whose sample `i` represents the `stride` steps from `base + i * stride` on.
    #[inline(always)]
    pub(crate) fn new(layers: &'a mut SlabLayers<'b>, base: f64, stride: f64) -> Self {
        let path = layers.path.of_march(base, stride);
        let mut inside = Self { layers, path, slab: 0, next: 0 };
        inside.come_to(0);
        inside
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    fn come_to(&mut self, sample: u32) {
        self.slab = self.path.slab(f64::from(sample));
        self.next = self.path.next(f64::from(sample), self.slab) as u32;
    }

    /// Leaves the slab, at a sample of another one or at the end; returns what rays carry on.
    #[inline(always)]
    pub(crate) fn leave<S: Simd>(&mut self, simd: S, sample: u32, rgba: [S::F; 4]) -> [S::F; 4] {
        let rgba = simd.call(LeaveSlab { layers: &mut *self.layers, slab: self.slab, rgba });
        self.come_to(sample);
        rgba
    }
}

/// Images of slabs in one tile.
pub(crate) struct SlabTile {
    /// Rectangle of the tile.
    pub(crate) rect: Rect,
    /// RGBA of 8 bits by slab, row by row; empty if nothing was written.
    pub(crate) rgba: Vec<Vec<u8>>,
}

impl SlabTile {
    pub(crate) fn new(rect: Rect, count: usize) -> Self {
        Self { rect, rgba: vec![Vec::new(); count] }
    }

    /// Packs texels of sixteen rays: red, green, blue, opacity, the first lowest.
    fn put(&mut self, slab: usize, [left, top]: [u32; 2], [width, height]: [u32; 2], texels: &[u32; LANES]) {
        if texels.iter().all(|&texel| texel == 0) {
            return;
        }
        let pixels = &mut self.rgba[slab];
        if pixels.is_empty() {
            pixels.resize(self.rect.pixels() * 4, 0);
        }
        let side = PACKET_SIDE as usize;
        for row in 0..height as usize {
            let start = 4 * ((top as usize + row) * self.rect.width as usize + left as usize);
            let own = &texels[row * side..row * side + width as usize];
            for (to, texel) in pixels[start..].chunks_exact_mut(4).zip(own) {
                to.copy_from_slice(&texel.to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Instructions, SimdJob};

    /// Leaves opacity after opacity in slab after slab, for all rays alike; tells what ray 3 has in each, and whether it goes on.
    struct Through<'a> {
        layers: SlabLayers<'a>,
        opacities: &'a [(usize, f32)],
    }

    impl SimdJob for Through<'_> {
        type Output = Vec<(f32, bool)>;

        #[inline(always)]
        fn run<S: Simd>(mut self, simd: S) -> Self::Output {
            let mut told = Vec::new();
            let mut ended = simd.splat(0.0);
            for &(slab, opacity) in self.opacities {
                let alpha = simd.max(simd.splat(opacity), ended);
                let rgba = [alpha, alpha, alpha, alpha];
                ended = simd.call(LeaveSlab { layers: &mut self.layers, slab, rgba })[3];
                told.push((self.layers.rgba[slab][3][3], simd.store(ended)[3] < 0.5));
            }
            told
        }
    }

    fn through(behind: u32, opacities: &[(usize, f32)]) -> Vec<(f32, bool)> {
        let borders = (0..9).map(f64::from).collect();
        let borders = SlabBorders::new(&glam::DAffine3::IDENTITY, glam::DVec3::Z, borders, behind, 0.99);
        Instructions::Scalar.run(Through { layers: SlabLayers::new(&borders), opacities })
    }

    #[test]
    fn slabs_are_listed_from_the_eye_in_both_directions() {
        let borders = SlabBorders::new(
            &glam::DAffine3::IDENTITY,
            glam::DVec3::Z,
            (0..9).map(f64::from).collect(),
            8,
            0.99,
        );
        for (stride, expected) in [(1.0, [1, 3, 5]), (-1.0, [5, 3, 1])] {
            let mut layers = SlabLayers::new(&borders);
            layers.path.per_sample = stride;
            layers.touched = 0b10_1010;
            assert_eq!(layers.touched().collect::<Vec<_>>(), expected);
            assert_eq!(layers.touched().next(), None, "none are left");
        }
    }

    #[test]
    fn what_is_left_in_parts_is_as_opaque_as_both_behind_one_another() {
        let told = through(8, &[(2, 0.5), (2, 0.5), (3, 0.25)]);
        assert_eq!(told, [(0.5, true), (0.75, true), (0.25, true)]);
    }

    #[test]
    fn a_ray_goes_on_for_some_slabs_behind_what_hides_them_and_no_further() {
        let opacities = [(1, 1.0), (2, 0.5), (3, 0.5), (4, 0.5)];
        let told = through(2, &opacities);
        assert_eq!(told, [(1.0, true), (0.5, true), (0.5, false), (0.0, false)]);
        assert_eq!(through(0, &opacities)[1], (0.0, false));
    }
}
