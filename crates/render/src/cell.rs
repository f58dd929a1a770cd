//! Values along a ray within one cell of eight voxels: exactly a cubic, and where it crosses values.
//!
//! What is interpolated trilinearly changes along a straight line as a polynomial of third degree. Its turning points
//! are the roots of a quadratic and cut the line into pieces on which it rises or falls only; on such a piece a value
//! is crossed where its ends lie on different sides, and once (after Marmitt and others, "Fast and accurate
//! ray-voxel intersection techniques for iso-surface ray tracing", 2004). A side is `value >= isovalue`, asked the
//! same way everywhere, so that whoever carries a side from cell to cell cannot lose a crossing between two.

use glam::DVec3;

/// Eight values; bits of their number: 1 x, 2 y, 4 z.
pub(crate) type Corners = [f64; 8];

/// `c[0] + c[1] s + c[2] s^2 + c[3] s^3`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cubic([f64; 4]);

impl Cubic {
    /// The values at `start + s * step`, in shares of the cell along x, y, z.
    pub(crate) fn new(corners: &Corners, start: DVec3, step: DVec3) -> Self {
        let edge = |i: usize| {
            let rise = corners[i + 1] - corners[i];
            [corners[i] + rise * start.x, rise * step.x]
        };
        let face = |i: usize| {
            let ([a0, a1], [b0, b1]) = (edge(i), edge(i + 2));
            let rise = [b0 - a0, b1 - a1];
            [a0 + rise[0] * start.y, a1 + rise[1] * start.y + rise[0] * step.y, rise[1] * step.y]
        };
        let ([a0, a1, a2], [b0, b1, b2]) = (face(0), face(4));
        let rise = [b0 - a0, b1 - a1, b2 - a2];
        Self([
            a0 + rise[0] * start.z,
            a1 + rise[1] * start.z + rise[0] * step.z,
            a2 + rise[2] * start.z + rise[1] * step.z,
            rise[2] * step.z,
        ])
    }

    pub(crate) fn at(&self, s: f64) -> f64 {
        let [a, b, c, d] = self.0;
        ((d * s + c) * s + b) * s + a
    }

    /// 0, the turning points before `length`, `length`; and how many these are. They never decrease.
    pub(crate) fn pieces(&self, length: f64) -> ([f64; 4], usize) {
        let [_, b, c, d] = self.0;
        let (mut ends, mut count) = ([0.0; 4], 1);
        let root = (c * c - 3.0 * b * d).sqrt();
        // Both roots without cancellation; NaN and infinities are no turning points.
        let far = -(c + root.copysign(c));
        let (one, other) = (far / (3.0 * d), b / far);
        for turn in [one.min(other), one.max(other)] {
            if turn > ends[count - 1] && turn < length {
                ends[count] = turn;
                count += 1;
            }
        }
        ends[count] = length;
        (ends, count + 1)
    }

    /// Where `value` is crossed between `low` and `high`, whose values lie on different sides of it.
    pub(crate) fn crossing(&self, value: f64, mut low: f64, mut high: f64) -> f64 {
        let [_, b, c, d] = self.0;
        let side = self.at(low) >= value;
        let mut s = f64::midpoint(low, high);
        for _ in 0..MOST_STEPS {
            let rest = self.at(s) - value;
            *(if (rest >= 0.0) == side { &mut low } else { &mut high }) = s;
            // Newton's step while it stays between both, else the middle.
            let newton = s - rest / ((3.0 * d * s + 2.0 * c) * s + b);
            let next = if newton > low && newton < high { newton } else { f64::midpoint(low, high) };
            if (next - s).abs() <= PRECISION {
                return next;
            }
            s = next;
        }
        s
    }
}

/// Halving alone is done after so many steps.
const MOST_STEPS: u32 = 60;
/// How near the next guess ends the search: steps of the ray.
const PRECISION: f64 = 1e-12;

/// The gradient of what is interpolated between the corners, at shares of the cell; per voxel along x, y, z.
pub(crate) fn gradient(corners: &Corners, share: DVec3) -> DVec3 {
    let mix = |a: f64, b: f64, t: f64| a + (b - a) * t;
    let rise = |i: usize, bit: usize| corners[i | bit] - corners[i];
    let DVec3 { x, y, z } = share;
    DVec3::new(
        mix(mix(rise(0, 1), rise(2, 1), y), mix(rise(4, 1), rise(6, 1), y), z),
        mix(mix(rise(0, 2), rise(1, 2), x), mix(rise(4, 2), rise(5, 2), x), z),
        mix(mix(rise(0, 4), rise(1, 4), x), mix(rise(2, 4), rise(3, 4), x), y),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trilinear(corners: &Corners, p: DVec3) -> f64 {
        let weight = |i: usize| {
            [p.x, p.y, p.z]
                .iter()
                .enumerate()
                .map(|(a, &u)| if i >> a & 1 == 1 { u } else { 1.0 - u })
                .product::<f64>()
        };
        corners.iter().enumerate().map(|(i, v)| v * weight(i)).sum()
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
            let cubic = Cubic::new(&corners, from, to - from);
            let at = |s: f64| trilinear(&corners, from + (to - from) * s);
            let (ends, count) = cubic.pieces(1.0);
            prop_assert!(ends[..count].is_sorted());
            let found: Vec<f64> = ends[..count].windows(2)
                .filter(|e| (cubic.at(e[0]) >= value) != (cubic.at(e[1]) >= value))
                .map(|e| cubic.crossing(value, e[0], e[1]))
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
        let cubic = Cubic::new(&rising, DVec3::ZERO, DVec3::new(0.5, 0.5, 0.5));
        assert_eq!(cubic.pieces(2.0), ([0.0, 2.0, 0.0, 0.0], 2));
        assert!((cubic.crossing(0.25, 0.0, 2.0) - 0.5).abs() < 1e-12);
        assert_eq!(Cubic::new(&[7.0; 8], DVec3::ZERO, DVec3::ONE).pieces(1.0).1, 2);
        let huge = [f64::MAX, -f64::MAX, f64::MAX, 1.0, 0.0, -f64::MAX, f64::MAX, -1.0];
        let (ends, count) = Cubic::new(&huge, DVec3::ZERO, DVec3::ONE).pieces(1.0);
        assert!(ends[..count].is_sorted());
    }
}
