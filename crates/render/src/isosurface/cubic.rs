//! Values along a ray within one cell of eight voxels: an exact cubic, and its crossings of values.
//!
//! The trilinear interpolant along a straight line is a polynomial of third degree. Its extrema are the roots
//! of a quadratic and cut the line into monotone pieces; such a piece crosses a value exactly once if its
//! ends lie on different sides (after Marmitt and others, "Fast and accurate ray-voxel intersection
//! techniques for iso-surface ray tracing", 2004). A side is `value >= isovalue`, tested the same way
//! everywhere, so that a side carried from cell to cell cannot lose a crossing between two cells.

use glam::DVec3;

use crate::cpu::packet::size::LaneValues;
use crate::simd::LANES;

/// Eight values; bits of their number: 1 x, 2 y, 4 z.
pub(crate) type CellCorners = [f64; 8];

/// `c[0] + c[1] s + c[2] s^2 + c[3] s^3`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RayCubic([f64; 4]);

impl RayCubic {
    /// Returns the values at `start + s * step`, in fractions of the cell along x, y, z.
    #[inline(always)]
    pub(crate) fn new(corners: &CellCorners, start: DVec3, step: DVec3) -> Self {
        let [a, b, c, d] = [
            edge(corners, 0, start, step),
            edge(corners, 2, start, step),
            edge(corners, 4, start, step),
            edge(corners, 6, start, step),
        ];
        let ([a0, a1, a2], [b0, b1, b2]) = (face(a, b, start, step), face(c, d, start, step));
        let rise = [b0 - a0, b1 - a1, b2 - a2];
        Self([
            a0 + rise[0] * start.z,
            a1 + rise[1] * start.z + rise[0] * step.z,
            a2 + rise[2] * start.z + rise[1] * step.z,
            rise[2] * step.z,
        ])
    }

    #[inline(always)]
    pub(crate) fn at(&self, s: f64) -> f64 {
        let [a, b, c, d] = self.0;
        ((d * s + c) * s + b) * s + a
    }

    /// Returns 0, the extrema before `length`, and `length`, in ascending order; a missing extremum repeats
    /// the previous entry.
    #[inline(always)]
    pub(crate) fn pieces(&self, length: f64) -> [f64; 4] {
        let [_, b, c, d] = self.0;
        let root = (c * c - 3.0 * b * d).sqrt();
        // Both roots without cancellation; NaN and infinities are no extrema.
        let far = -(c + root.copysign(c));
        let (one, other) = (far / (3.0 * d), b / far);
        let is_first = one < other || other.is_nan();
        let (near, far) = if is_first { (one, other) } else { (other, one) };
        let first = if near > 0.0 && near < length { near } else { 0.0 };
        let second = if far > first && far < length { far } else { first };
        [0.0, first, second, length]
    }
}

/// Returns the value along an edge in x, and its slope.
#[inline(always)]
fn edge(corners: &CellCorners, i: usize, start: DVec3, step: DVec3) -> [f64; 2] {
    let rise = corners[i + 1] - corners[i];
    [corners[i] + rise * start.x, rise * step.x]
}

/// Returns the coefficients of the values between two edges in a face across z.
#[inline(always)]
fn face([a0, a1]: [f64; 2], [b0, b1]: [f64; 2], start: DVec3, step: DVec3) -> [f64; 3] {
    let rise = [b0 - a0, b1 - a1];
    [a0 + rise[0] * start.y, a1 + rise[1] * start.y + rise[0] * step.y, rise[1] * step.y]
}

/// One [`RayCubic`] for each of sixteen rays.
#[derive(Clone, Debug)]
pub(crate) struct Cubics([LaneValues; 4]);

impl Cubics {
    pub(crate) const ZERO: Self = Self([[0.0; LANES]; 4]);

    #[inline(always)]
    pub(crate) fn set(&mut self, lane: usize, cubic: RayCubic) {
        for (all, own) in self.0.iter_mut().zip(cubic.0) {
            all[lane] = own;
        }
    }

    #[inline(always)]
    pub(crate) fn of(&self, lane: usize) -> RayCubic {
        let [a, b, c, d] = &self.0;
        RayCubic([a[lane], b[lane], c[lane], d[lane]])
    }

    /// Returns, for each lane, the position between `low` and `high` where the cubic crosses `values`. The
    /// cubic's values at `low` and `high` must lie on different sides of the value; otherwise the result is
    /// any position between them.
    #[inline(always)]
    pub(crate) fn crossing(
        &self,
        values: &LaneValues,
        mut low: LaneValues,
        mut high: LaneValues,
    ) -> LaneValues {
        let (mut at, mut side) = ([0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            let cubic = self.of(lane);
            let (first, last) = (cubic.at(low[lane]), cubic.at(high[lane]));
            let value = values[lane];
            side[lane] = if first >= value { 1.0 } else { 0.0 };
            let straight = low[lane] + (high[lane] - low[lane]) * (value - first) / (last - first);
            let is_inside = straight > low[lane] && straight < high[lane];
            at[lane] = if is_inside { straight } else { 0.5 * (low[lane] + high[lane]) };
        }
        let mut moved = [f64::INFINITY; LANES];
        for _ in 0..MOST_STEPS {
            let mut goes_on = false;
            for lane in 0..LANES {
                let [_, b, c, d] = self.of(lane).0;
                let s = at[lane];
                let rest = self.of(lane).at(s) - values[lane];
                let is_before = if rest >= 0.0 { side[lane] == 1.0 } else { side[lane] == 0.0 };
                low[lane] = if is_before { s } else { low[lane] };
                high[lane] = if is_before { high[lane] } else { s };
                // Newton's step if it stays between both, else the middle.
                let newton = s - rest / ((3.0 * d * s + 2.0 * c) * s + b);
                let middle = 0.5 * (low[lane] + high[lane]);
                let next = if newton >= low[lane] && newton <= high[lane] { newton } else { middle };
                // Lanes that have converged wait for the others.
                at[lane] = if moved[lane] <= PRECISION { s } else { next };
                moved[lane] = (at[lane] - s).abs();
                goes_on |= moved[lane] > PRECISION;
            }
            if !goes_on {
                break;
            }
        }
        at
    }
}

/// Number of steps after which only bisection is used.
const MOST_STEPS: u32 = 60;
/// Distance to the next estimate that ends the search: steps of the ray.
const PRECISION: f64 = 1e-12;

/// Returns the gradient of the trilinear interpolant of the corners, at fractions of the cell; per voxel
/// along x, y, z.
#[inline(always)]
pub(crate) fn gradient(corners: &CellCorners, share: DVec3) -> DVec3 {
    let [c0, c1, c2, c3, c4, c5, c6, c7] = *corners;
    let DVec3 { x, y, z } = share;
    DVec3::new(
        mix(mix(c1 - c0, c3 - c2, y), mix(c5 - c4, c7 - c6, y), z),
        mix(mix(c2 - c0, c3 - c1, x), mix(c6 - c4, c7 - c5, x), z),
        mix(mix(c4 - c0, c5 - c1, x), mix(c6 - c2, c7 - c3, x), y),
    )
}

#[inline(always)]
fn mix(a: f64, b: f64, share: f64) -> f64 {
    a + (b - a) * share
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trilinear(corners: &CellCorners, p: DVec3) -> f64 {
        let weight = |i: usize| {
            [p.x, p.y, p.z]
                .iter()
                .enumerate()
                .map(|(a, &u)| if i >> a & 1 == 1 { u } else { 1.0 - u })
                .product::<f64>()
        };
        corners.iter().enumerate().map(|(i, v)| v * weight(i)).sum()
    }

    /// In each lane, beside others that need more steps.
    fn crossing(cubic: &RayCubic, value: f64, low: f64, high: f64) -> f64 {
        let mut cubics = Cubics::ZERO;
        (0..LANES).step_by(2).for_each(|lane| cubics.set(lane, *cubic));
        (1..LANES).step_by(2).for_each(|lane| cubics.set(lane, RayCubic([value - 1e-9, 0.0, 0.0, 1.0])));
        let found = cubics.crossing(&[value; LANES], [low; LANES], [high; LANES]);
        assert!(found.iter().step_by(2).all(|&at| at.to_bits() == found[0].to_bits()));
        found[0]
    }

    fn point() -> impl Strategy<Value = DVec3> {
        [0.0..1.0f64, 0.0..1.0f64, 0.0..1.0f64].prop_map(|[x, y, z]| DVec3::new(x, y, z))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Every crossing there is, as a search in 4000 parts finds them, and each at its place to a billionth of a voxel.
        #[test]
        fn crossings_are_those_of_the_trilinear_interpolant(
            corners in prop::array::uniform8(-10.0..10.0f64),
            (from, to) in (point(), point()),
            value in -9.0..9.0f64,
        ) {
            const PARTS: u32 = 4000;
            let cubic = RayCubic::new(&corners, from, to - from);
            let at = |s: f64| trilinear(&corners, from + (to - from) * s);
            let ends = cubic.pieces(1.0);
            prop_assert!(ends.is_sorted());
            let found: Vec<f64> = ends.windows(2)
                .filter(|e| (cubic.at(e[0]) >= value) != (cubic.at(e[1]) >= value))
                .map(|e| crossing(&cubic, value, e[0], e[1]))
                .collect();
            for &s in &found {
                prop_assert!((at(s) - value).abs() < 1e-9, "{} at {s}", at(s));
            }
            let part = |i: u32| f64::from(i) / f64::from(PARTS);
            let changes = (0..PARTS).filter(|&i| (at(part(i)) >= value) != (at(part(i + 1)) >= value));
            for i in changes {
                let inside = |s: &&f64| **s >= part(i) - 1e-9 && **s <= part(i + 1) + 1e-9;
                prop_assert_eq!(found.iter().filter(inside).count(), 1, "between {} and {}", part(i), part(i + 1));
            }
        }

        #[test]
        fn gradients_are_those_of_small_differences(corners in prop::array::uniform8(-10.0..10.0f64), at in point()) {
            const NEAR: f64 = 1e-5;
            let found = gradient(&corners, at);
            for axis in 0..3 {
                let mut step = DVec3::ZERO;
                step[axis] = NEAR;
                let expected = (trilinear(&corners, at + step) - trilinear(&corners, at - step)) / (2.0 * NEAR);
                prop_assert!((found[axis] - expected).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn a_straight_line_and_a_flat_cell_have_no_turning_points() {
        let rising = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
        let cubic = RayCubic::new(&rising, DVec3::ZERO, DVec3::new(0.5, 0.5, 0.5));
        assert_eq!(cubic.pieces(2.0), [0.0, 0.0, 0.0, 2.0]);
        assert!((crossing(&cubic, 0.25, 0.0, 2.0) - 0.5).abs() < 1e-12);
        assert_eq!(RayCubic::new(&[7.0; 8], DVec3::ZERO, DVec3::ONE).pieces(1.0), [0.0, 0.0, 0.0, 1.0]);
        let huge = [f64::MAX, -f64::MAX, f64::MAX, 1.0, 0.0, -f64::MAX, f64::MAX, -1.0];
        assert!(RayCubic::new(&huge, DVec3::ZERO, DVec3::ONE).pieces(1.0).is_sorted());
    }
}
