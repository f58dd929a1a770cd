//! Even axis that replaces an uneven one, and the source index of each of its voxels.

/// Most voxels of an even axis per sample of the uneven one, for axes with many samples.
pub(super) const MAX_REFINEMENT: u64 = 4;
/// Voxels that an even axis may always have: a few layers whose thicknesses differ by a factor of a thousand
/// all stay visible.
pub(super) const SMALL_AXIS: u64 = 4096;
/// Largest coordinate, and inverse of the shortest cell, of an axis drawn at its true coordinates: the limit
/// of cameras.
const MAX_COORDINATE: f64 = 1e15;
/// Largest gap or overlap of neighboring bounds, as a fraction of the shorter cell, that counts as
/// contiguous.
const CONTIGUOUS_WITHIN: f64 = 1e-3;
/// Tolerance against rounding, in voxels: an almost even axis gets no extra voxel.
const ALMOST_NOTHING: f64 = 1e-6;
/// Largest fraction of a cell: keeps a position inside its cell when it is rounded.
const BELOW_ONE: f64 = 1.0 - 1e-9;

/// Voxel `i` of a level along one axis covers the indices of level 0 from `shift + (i - 0.5) * scale` to
/// `shift + (i + 0.5) * scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Coarsening {
    /// Samples of the level along the axis.
    pub(super) count: u64,
    /// Indices of level 0 per voxel.
    pub(super) scale: f64,
    /// Index of level 0 at the center of voxel 0.
    pub(super) shift: f64,
}

impl Coarsening {
    /// Returns the voxel that contains a position, in indices of level 0; the nearest one outside.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the count")]
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    pub(super) fn voxel(&self, position: f64) -> u32 {
        let voxel = ((position - self.shift) / self.scale + 0.5).floor();
        voxel.clamp(0.0, self.count.saturating_sub(1).min(u32::MAX.into()) as f64) as u32
    }
}

/// Evenly spaced voxels that cover the cells of an uneven axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EvenAxis {
    /// Borders of the uneven cells, one more than cells, in index order, rising or falling.
    borders: Vec<f64>,
    /// Number of voxels.
    pub(super) count: u64,
    /// Coordinate of the center of voxel 0.
    pub(super) origin: f64,
    /// Spacing of voxels; negative where coordinates fall.
    pub(super) step: f64,
}

impl EvenAxis {
    /// Creates an axis for these coordinates, one per sample, and the bounds of the cells if known (both of
    /// each cell, in either order). Bounds that leave gaps, overlap or do not contain their samples are
    /// ignored.
    ///
    /// # Errors
    /// Reason why the coordinates have no even axis, as the end of a sentence.
    #[expect(clippy::cast_precision_loss, reason = "at most 65,536 samples")]
    pub(super) fn new(samples: &[f64], bounds: Option<&[[f64; 2]]>) -> Result<Self, &'static str> {
        if !samples.iter().all(|v| v.is_finite()) {
            return Err("some of its coordinates are not finite");
        }
        let (&[first, .., last], true) = (samples, samples.len() > 1) else {
            return Err("it has one coordinate");
        };
        let direction = if last > first { 1.0 } else { -1.0 };
        if !samples.windows(2).all(|pair| (pair[1] - pair[0]) * direction > 0.0) {
            return Err("its coordinates do not all rise or all fall");
        }
        let borders =
            bounds.and_then(|b| of_bounds(samples, b, direction)).unwrap_or_else(|| midway(samples));
        let widths = borders.windows(2).map(|pair| (pair[1] - pair[0]) * direction);
        let smallest = widths.fold(f64::INFINITY, f64::min);
        let (start, end) = (borders[0], borders[samples.len()]);
        if !(start.abs() < MAX_COORDINATE && end.abs() < MAX_COORDINATE) {
            return Err("its coordinates are too large");
        }
        if smallest.is_nan() || smallest <= 1.0 / MAX_COORDINATE {
            return Err("some of its coordinates are too close together");
        }
        let extent = (end - start).abs();
        let most = SMALL_AXIS.max((samples.len() as u64).saturating_mul(MAX_REFINEMENT)) as f64;
        let count = (extent / smallest - ALMOST_NOTHING).ceil().clamp(samples.len() as f64, most);
        let step = extent / count * direction;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        Ok(Self { borders, count: count as u64, origin: start + 0.5 * step, step })
    }

    /// Converts a position on the even axis, in voxels, to one on the uneven axis, in indices with cell `i`
    /// from `i - 0.5` to `i + 0.5`; clamps to the outermost cells.
    #[expect(clippy::cast_precision_loss, reason = "at most 65,536 samples")]
    pub(super) fn source_position(&self, voxel: f64) -> f64 {
        let direction = self.step.signum();
        let at = (self.origin + voxel * self.step) * direction;
        let inner = &self.borders[1..self.borders.len() - 1];
        let cell = inner.partition_point(|&border| border * direction <= at);
        let (low, high) = (self.borders[cell] * direction, self.borders[cell + 1] * direction);
        let part = ((at - low) / (high - low)).clamp(0.0, BELOW_ONE);
        cell as f64 - 0.5 + part
    }

    /// Returns the source index of each voxel of a level of the even axis, `factor` times as coarse as its
    /// level 0.
    #[expect(clippy::cast_precision_loss, reason = "at most 2^18 voxels")]
    pub(super) fn indices(&self, factor: f64, coarsening: Coarsening) -> Vec<u32> {
        let last = (self.count - 1) as f64;
        let center = |voxel: u64| (voxel as f64 * factor + 0.5 * (factor - 1.0)).min(last);
        let voxels = 0..coarse_count(self.count, factor);
        voxels.map(|voxel| coarsening.voxel(self.source_position(center(voxel)))).collect()
    }

    /// Returns the number of cells that contain no voxel center of level 0 and are not drawn.
    pub(super) fn hidden(&self) -> usize {
        let all = Coarsening { count: self.borders.len() as u64 - 1, scale: 1.0, shift: 0.0 };
        let mut seen = self.indices(1.0, all);
        seen.dedup();
        self.borders.len() - 1 - seen.len()
    }
}

/// Returns the number of voxels of a level along an axis, at least one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the count")]
#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
pub(super) fn coarse_count(count: u64, factor: f64) -> u64 {
    if factor <= 1.0 { count } else { ((count as f64 / factor).ceil() as u64).max(1) }
}

/// Returns borders midway between samples; the outermost cells are symmetric.
fn midway(samples: &[f64]) -> Vec<f64> {
    let n = samples.len();
    let mut borders = Vec::with_capacity(n + 1);
    borders.push(samples[0] - 0.5 * (samples[1] - samples[0]));
    borders.extend(samples.windows(2).map(|pair| 0.5 * pair[0] + 0.5 * pair[1]));
    borders.push(samples[n - 1] + 0.5 * (samples[n - 1] - samples[n - 2]));
    borders
}

/// Returns borders from the bounds of each cell; `None` if these are no contiguous cells around the samples.
fn of_bounds(samples: &[f64], bounds: &[[f64; 2]], direction: f64) -> Option<Vec<f64>> {
    if bounds.len() != samples.len() || !bounds.iter().flatten().all(|v| v.is_finite()) {
        return None;
    }
    // Multiplied by the direction, cells rise with the index.
    let cells: Vec<[f64; 2]> = bounds
        .iter()
        .map(|&[a, b]| [a * direction, b * direction])
        .map(|[a, b]| [a.min(b), a.max(b)])
        .collect();
    let holds = |(cell, &sample): (&[f64; 2], &f64)| {
        cell[0] < cell[1] && cell[0] <= sample * direction && sample * direction <= cell[1]
    };
    let meets = |pair: &[[f64; 2]]| {
        let shorter = (pair[0][1] - pair[0][0]).min(pair[1][1] - pair[1][0]);
        (pair[0][1] - pair[1][0]).abs() <= CONTIGUOUS_WITHIN * shorter
    };
    if !(cells.iter().zip(samples).all(holds) && cells.windows(2).all(meets)) {
        return None;
    }
    let first = cells.first()?[0];
    Some(std::iter::once(first).chain(cells.iter().map(|cell| cell[1])).map(|b| b * direction).collect())
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "tests have small numbers")]
mod tests {
    use array::mix64;

    use super::*;

    /// Returns a pseudorandom number from 0 to 1.
    fn random(seed: &mut u64) -> f64 {
        *seed += 1;
        (mix64(*seed) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn uneven(seed: &mut u64) -> Vec<f64> {
        let (count, stretch) = (2 + (random(seed) * 60.0) as usize, 1.0 + 40.0 * random(seed));
        let mut at = (random(seed) - 0.5) * 1000.0;
        let sign = if random(seed) < 0.5 { 1.0 } else { -1.0 };
        (0..count)
            .map(|_| {
                at += 0.1 + stretch * random(seed).powi(3);
                at * sign
            })
            .collect()
    }

    /// Finds the cell of level 0 that contains a coordinate by a linear search.
    fn cell_of(samples: &[f64], at: f64) -> usize {
        let last = samples.len() - 1;
        let middle = |a: usize, b: usize| 0.5 * (samples[a] + samples[b]);
        let holds = |&cell: &usize| {
            let low = if cell == 0 { f64::NEG_INFINITY } else { middle(cell - 1, cell) };
            let high = if cell == last { f64::INFINITY } else { middle(cell, cell + 1) };
            if samples[last] > samples[0] {
                (cell == 0 || low <= at) && at < high
            } else {
                let (low, high) = (
                    if cell == 0 { f64::INFINITY } else { low },
                    if cell == last { f64::NEG_INFINITY } else { high },
                );
                at <= low && at > high
            }
        };
        (0..samples.len()).find(holds).unwrap()
    }

    #[test]
    fn every_voxel_takes_the_cell_that_contains_its_center() {
        let mut seed = 7;
        for _ in 0..300 {
            let samples = uneven(&mut seed);
            let axis = EvenAxis::new(&samples, None).unwrap();
            let n = samples.len() as u64;
            assert!(axis.count >= n && axis.count <= SMALL_AXIS, "{}", axis.count);
            for level in 0..3u32 {
                let factor = f64::from(1 << level);
                let coarsening =
                    Coarsening { count: n.div_ceil(1 << level), scale: factor, shift: 0.5 * (factor - 1.0) };
                let indices = axis.indices(factor, coarsening);
                assert_eq!(indices.len() as u64, axis.count.div_ceil(1 << level));
                for (voxel, &index) in indices.iter().enumerate() {
                    let center = (voxel as f64 * factor + 0.5 * (factor - 1.0)).min((axis.count - 1) as f64);
                    let at = axis.origin + center * axis.step;
                    assert_eq!(
                        index as usize,
                        cell_of(&samples, at) >> level,
                        "{samples:?} at {at}, level {level}"
                    );
                }
            }
        }
    }

    #[test]
    fn samples_of_a_coarse_level_stand_for_the_cells_around_them() {
        let samples: Vec<f64> = (0..40).map(|i| f64::from(i * i)).collect();
        let axis = EvenAxis::new(&samples, None).unwrap();
        // Every fourth sample from number 1 on.
        let indices = axis.indices(4.0, Coarsening { count: 10, scale: 4.0, shift: 1.0 });
        let center = |voxel: usize| axis.origin + (voxel as f64 * 4.0 + 1.5) * axis.step;
        for (voxel, &index) in indices.iter().enumerate() {
            let cell = cell_of(&samples, center(voxel).min(1500.0));
            assert!((i64::from(index) * 4 + 1 - cell as i64).abs() <= 2, "{voxel}: {index} for {cell}");
        }
    }

    #[test]
    fn every_cell_is_drawn_where_the_axis_may_be_fine_enough() {
        let pressures =
            [1000.0, 925.0, 850.0, 700.0, 500.0, 300.0, 200.0, 100.0, 50.0, 20.0, 10.0, 5.0, 2.0, 1.0];
        let axis = EvenAxis::new(&pressures, None).unwrap();
        assert_eq!((axis.hidden(), axis.count), (0, 1037));
        assert!(axis.step < 0.0 && axis.origin < 1037.5);
        let steep: Vec<f64> = (0..20).map(|i| 2f64.powi(i)).collect();
        let axis = EvenAxis::new(&steep, None).unwrap();
        assert_eq!(axis.count, SMALL_AXIS);
        assert!(axis.hidden() > 3 && axis.hidden() < 10, "{}", axis.hidden());
        let many: Vec<f64> = (0..5000).map(|i| 1.01f64.powi(i / 10) * f64::from(i + 1)).collect();
        assert_eq!(EvenAxis::new(&many, None).unwrap().count, 5000 * MAX_REFINEMENT);
    }

    #[test]
    fn bounds_are_the_borders_where_they_are_cells() {
        let (samples, bounds) = ([0.0, 10.0, 30.0], [[0.0, 5.0], [5.0, 15.0], [40.0, 15.0]]);
        let axis = EvenAxis::new(&samples, Some(&bounds)).unwrap();
        assert_eq!(axis.borders, [0.0, 5.0, 15.0, 40.0]);
        assert_eq!((axis.count, axis.origin, axis.step), (8, 2.5, 5.0));
        assert_eq!(
            axis.indices(1.0, Coarsening { count: 3, scale: 1.0, shift: 0.0 }),
            [0, 1, 1, 2, 2, 2, 2, 2]
        );
        let falling = samples.map(|v| -v);
        let axis = EvenAxis::new(&falling, Some(&bounds.map(|cell| cell.map(|v| -v)))).unwrap();
        assert_eq!(axis.borders, [0.0, -5.0, -15.0, -40.0]);
        for bad in [
            [[0.0, 5.0], [6.0, 15.0], [15.0, 40.0]],
            [[0.0, 5.0], [5.0, 5.0], [5.0, 40.0]],
            [[f64::NAN; 2]; 3],
        ] {
            assert_eq!(
                EvenAxis::new(&samples, Some(&bad)).unwrap().borders,
                [-5.0, 5.0, 20.0, 40.0],
                "{bad:?}"
            );
        }
    }

    #[test]
    fn hostile_coordinates_are_refused_with_a_reason() {
        for (bad, reason) in [
            (&[][..], "one coordinate"),
            (&[4.0], "one coordinate"),
            (&[0.0, f64::NAN, 2.0], "not finite"),
            (&[0.0, 1.0, f64::INFINITY], "not finite"),
            (&[0.0, 2.0, 1.0, 3.0], "rise"),
            (&[0.0, 1.0, 1.0], "rise"),
            (&[5.0, 5.0, 5.0], "rise"),
            (&[-1.7e308, 0.0, 1.7e308], "too large"),
            (&[f64::MIN, f64::MAX], "too large"),
            (&[0.0, 5e-324, 1.0], "too close"),
        ] {
            let error = EvenAxis::new(bad, None).unwrap_err();
            assert!(error.contains(reason), "{bad:?}: {error}");
        }
    }
}
