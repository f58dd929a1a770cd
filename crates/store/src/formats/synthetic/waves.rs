//! Two bodies that spiral into each other, and the waves that they emit: a smooth moving picture of any size.
//!
//! Not a physical simulation, but of its form: a quadrupole pattern rotated by the orbital phase at the retarded time, whose
//! frequency and amplitude grow as the time to coalescence shrinks (powers 5/8 and 1/4). The orbit lies in the plane z = 0. Lengths
//! are in half the longest side of the volume, the speed of waves is 1 per unit of time, and the orbit starts at time 1 before
//! coalescence.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{ScalarField, VoxelRow};

/// Orbital phase at the start, radians: about five crests fit between center and edge.
const PHASE: f32 = 26.0;
/// Time before coalescence of the last step.
const LAST: f32 = 0.08;
/// Distance of the bodies at the start.
const SEPARATION: f32 = 0.30;
/// Radius of each body.
const RADIUS: f32 = 0.09;
/// Entries of the table over the distance from the center, which reaches the corner of a cube.
const ENTRIES: usize = 4096;
const REACH: f32 = 1.75;
/// Voxels computed together: their intermediate values stay in the nearest cache.
const LANES: usize = 64;

/// The field over a box.
pub(super) struct WavesField {
    half: [f32; 3],
    per_voxel: f32,
    steps: u64,
    /// Time of the last read with its values; most reads follow others of the same time.
    last: Mutex<Option<(f64, Arc<WaveStep>)>>,
}

/// Values that all voxels of one time step share.
struct WaveStep {
    /// Amplitude times cosine and sine of twice the phase, over squared distance, by distance.
    pattern: Vec<[f32; 2]>,
    /// One body; the other lies opposite.
    body: [f32; 2],
}

impl WavesField {
    /// Over `[nz, ny, nx]` voxels and `steps` times.
    #[expect(clippy::cast_precision_loss, reason = "axes are at most 2^20 long")]
    pub(super) fn new(shape: [u64; 3], steps: u64) -> Self {
        let longest = shape.into_iter().max().unwrap_or(1) as f32;
        Self {
            half: shape.map(|n| (n as f32 - 1.0) / 2.0),
            per_voxel: 2.0 / longest,
            steps,
            last: Mutex::new(None),
        }
    }

    /// Time before coalescence of time step `t`.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "at most 2^24 steps")]
    fn time_left(&self, t: f64) -> f32 {
        // A single picture shows the orbit half-way.
        let share = if self.steps > 1 { t as f32 / (self.steps - 1) as f32 } else { 0.5 };
        1.0 - share * (1.0 - LAST)
    }

    fn moment(&self, t: f64) -> Arc<WaveStep> {
        let mut last = self.last.lock();
        match &*last {
            Some((at, moment)) if at.to_bits() == t.to_bits() => Arc::clone(moment),
            _ => {
                let moment = Arc::new(self.compute_moment(t));
                *last = Some((t, Arc::clone(&moment)));
                moment
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "few entries")]
    fn compute_moment(&self, t: f64) -> WaveStep {
        let left = self.time_left(t);
        let pattern = (0..=ENTRIES)
            .map(|i| {
                let r = i as f32 * (REACH / ENTRIES as f32);
                let emitted = left + r;
                let phase = -2.0 * PHASE * emitted.powf(0.625);
                // Falls with distance, vanishes at the center (r^2 of it is in the voxel's own factor).
                let amplitude = emitted.powf(-0.25) / ((r * r + 0.03) * (0.9 + r));
                [amplitude * phase.cos(), amplitude * phase.sin()]
            })
            .collect();
        let phase = -PHASE * left.powf(0.625);
        let radius = SEPARATION / 2.0 * left.powf(0.25);
        WaveStep { pattern, body: [radius * phase.cos(), radius * phase.sin()] }
    }
}

/// A few voxels along x; lengths in half the longest side.
#[derive(Clone, Copy)]
struct VoxelLine {
    z: f32,
    y: f32,
    /// Index of the first voxel, counted from the center.
    x: f32,
    /// Distance between voxels as indices.
    step: f32,
    per_voxel: f32,
}

impl VoxelLine {
    /// Position of voxel `i`. Indices are exact in single precision, so a voxel's position does not
    /// depend on where the row began.
    #[expect(clippy::cast_precision_loss, reason = "fewer than 64")]
    fn x(self, i: usize) -> f32 {
        (self.x + i as f32 * self.step) * self.per_voxel
    }
}

impl WaveStep {
    /// The values of up to [`LANES`] voxels.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small numbers, never negative"
    )]
    fn fill(&self, line: VoxelLine, values: &mut [f32]) {
        let VoxelLine { z, y, .. } = line;
        let mut place = [0f32; LANES];
        let outer = z * z + y * y;
        for (i, place) in place.iter_mut().enumerate() {
            let x = line.x(i);
            *place = ((x * x + outer).sqrt() * (ENTRIES as f32 / REACH)).min((ENTRIES - 1) as f32);
        }
        let mut pattern = [[0f32; 2]; LANES];
        for (pattern, place) in pattern.iter_mut().zip(place) {
            let entry = place as usize;
            let rest = place - entry as f32;
            let ([c0, s0], [c1, s1]) = (self.pattern[entry], self.pattern[entry + 1]);
            *pattern = [c0 + rest * (c1 - c0), s0 + rest * (s1 - s0)];
        }
        let [body_x, body_y] = self.body;
        let near = |x: f32, y: f32| (1.0 - (x * x + y * y + z * z) * (1.0 / (RADIUS * RADIUS))).max(0.0);
        for (i, (value, [c, s])) in values.iter_mut().zip(pattern).enumerate() {
            let x = line.x(i);
            // Positive crests only, squared: two clear arms that fade smoothly.
            let wave = ((x * x - y * y) * c + 2.0 * x * y * s).max(0.0);
            let bodies = near(x - body_x, y - body_y) + near(x + body_x, y + body_y);
            *value = (wave * wave * 0.8 + bodies * bodies).min(1.0);
        }
    }
}

impl ScalarField for WavesField {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "values of single precision"
    )]
    fn fill(&self, row: &VoxelRow, values: &mut [f32]) {
        let moment = self.moment(row.t);
        let [half_z, half_y, half_x] = self.half;
        let step = row.step as f32;
        let line = VoxelLine {
            z: (row.z as f32 - half_z) * self.per_voxel,
            y: (row.y as f32 - half_y) * self.per_voxel,
            x: row.x as f32 - half_x,
            step,
            per_voxel: self.per_voxel,
        };
        for (chunk, values) in values.chunks_mut(LANES).enumerate() {
            moment.fill(VoxelLine { x: line.x + (chunk * LANES) as f32 * step, ..line }, values);
        }
    }
}
