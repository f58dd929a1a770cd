//! Computed fields of any shape: `synthetic:NAME?shape=Z,Y,X&dtype=u8&steps=T&spacing=Z,Y,X&origin=Z,Y,X`.
//!
//! Values are functions of position and time, computed per row when read; coarse levels are the same functions evaluated at the
//! centers of the coarse voxels (so their origin is *sampled*, not *mean*). Integers span their whole range, floats run from 0 to 1.

mod cubic;
mod linear;
mod location;
mod noise;
mod quantize;
mod waves;

use std::sync::Arc;

use array::{
    Affine, ArrayInfo, Axis, AxisKind, Coordinates, Dataset, DatasetId, Error, Generation, Level,
    LevelOrigin, MAX_LEVELS, Region, Result, Selection, choose_blocks,
};

use crate::io::portions::{PORTION_BYTES, Portions};
use crate::{Access, CancelFlag, Format, formats::common::describe};
use location::SyntheticLocation;

/// Prefix of every synthetic location.
pub(crate) const SCHEME: &str = "synthetic:";
/// Longest axis of the coarsest level of a synthetic array, voxels.
const COARSEST: u64 = 64;

/// A row of voxels along x. Positions are level-0 voxel indices; a coarse voxel's center lies between them.
#[derive(Clone, Copy, Debug)]
struct VoxelRow {
    t: f64,
    z: f64,
    y: f64,
    /// First voxel.
    x: f64,
    /// Distance between voxels.
    step: f64,
}

/// A function of position and time with values from 0 to 1.
trait ScalarField: Send + Sync {
    /// Writes the values of `row`.
    fn fill(&self, row: &VoxelRow, values: &mut [f32]);
}

/// One array that is computed.
pub(crate) struct Synthetic {
    field: Box<dyn ScalarField>,
    dataset: Arc<Dataset>,
}

impl Synthetic {
    /// Parses a location and describes its array.
    ///
    /// # Errors
    /// `Invalid`, `NotFound`, with the expected form of the location.
    pub(crate) fn open(location: &str) -> Result<Self> {
        let location = SyntheticLocation::parse(location)?;
        let field: Box<dyn ScalarField> = match location.name.as_str() {
            "linear" => Box::new(linear::LinearField::new(location.shape)),
            "cubic" => Box::new(cubic::CubicField::new(location.shape)),
            "waves" => Box::new(waves::WavesField::new(location.shape, location.steps.unwrap_or(1))),
            "noise" => Box::new(noise::NoiseField),
            other => {
                return Err(Error::not_found(format!(
                    "expected one of the fields linear, cubic, waves, noise, found `{other}`"
                )));
            }
        };
        let dataset = Dataset {
            id: DatasetId::of(["synthetic", &location.canonical()]),
            generation: Generation(0),
            name: location.name.clone(),
            format: "synthetic".into(),
            arrays: vec![array(&location)],
            attributes: array::Attributes::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
            groups: Vec::new(),
        };
        dataset.check()?;
        Ok(Self { field, dataset: Arc::new(dataset) })
    }

    /// Computes a small box of `array`, C order, as stored.
    fn compute(&self, array: &ArrayInfo, factor: &[f64], selection: &Selection) -> Vec<u8> {
        let ranges = selection.ranges();
        let (outer, x) = ranges.split_at(ranges.len() - 1);
        let position = |axis: usize, index: u64| center(factor[axis], index);
        let x_axis = ranges.len() - 1;
        let mut values = vec![0f32; usize::try_from(x[0].count).unwrap_or(0)];
        let item = array.dtype.size_bytes();
        let rows = outer.iter().map(|r| r.count).product::<u64>();
        let mut bytes = Vec::with_capacity(usize::try_from(rows).unwrap_or(0) * values.len() * item);
        for row in 0..rows {
            let mut at = [0.0; 3];
            let mut rest = row;
            for (axis, range) in outer.iter().enumerate().rev() {
                at[axis + 3 - outer.len()] = position(axis, range.index(rest % range.count));
                rest /= range.count;
            }
            let [t, z, y] = at;
            let start = position(x_axis, x[0].start);
            #[expect(clippy::cast_precision_loss, reason = "a step across an axis is far below 2^53")]
            let step = x[0].step as f64 * factor[x_axis];
            self.field.fill(&VoxelRow { t, z, y, x: start, step }, &mut values);
            quantize::append(&values, array.dtype, &mut bytes);
        }
        bytes
    }
}

/// The center of voxel `index` of a level with this factor, as level-0 index.
#[expect(clippy::cast_precision_loss, reason = "indices beyond 2^53 do not occur")]
fn center(factor: f64, index: u64) -> f64 {
    factor * index as f64 + (factor - 1.0) / 2.0
}

impl Format for Synthetic {
    fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.dataset)
    }

    fn access(&self, _array: u32) -> Access {
        Access::Computed
    }

    fn read(
        &self,
        array: u32,
        level: u8,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        let array = self.dataset.array(array)?;
        let factor = &array.level(level)?.factor;
        if selection.is_empty() {
            return Ok(());
        }
        for portion in Portions::new(selection, into, PORTION_BYTES) {
            cancel.check()?;
            let (selection, mut region) = portion?;
            region.write_all(&self.compute(array, factor, &selection))?;
        }
        Ok(())
    }
}

fn array(location: &SyntheticLocation) -> ArrayInfo {
    use AxisKind::{Time, X, Y, Z};
    let mut axes = Vec::new();
    let mut shape = Vec::new();
    if let Some(steps) = location.steps {
        axes.push(Axis::new("t", Time));
        shape.push(steps);
    }
    for (place, (name, kind)) in [("z", Z), ("y", Y), ("x", X)].into_iter().enumerate() {
        let coordinates =
            Coordinates::Regular { origin: location.origin[place], step: location.spacing[place] };
        axes.push(Axis { coordinates, ..Axis::new(name, kind) });
        shape.push(location.shape[place]);
    }
    let mut array = describe::array(&location.name, location.dtype, axes, &shape, None);
    let finest = array.levels[0].clone();
    while array.levels.len() < MAX_LEVELS {
        let last = &array.levels[array.levels.len() - 1];
        let spatial = last.shape.len() - 3;
        if last.shape[spatial..].iter().all(|&n| n <= COARSEST) {
            break;
        }
        let next = halved(&array, last, &finest, spatial);
        array.levels.push(next);
    }
    array
}

/// The next coarser level: every axis of space longer than one voxel is halved, rounding up.
fn halved(array: &ArrayInfo, last: &Level, finest: &Level, spatial: usize) -> Level {
    let mut next = last.clone();
    for axis in spatial..last.shape.len() {
        if last.shape[axis] > 1 {
            next.shape[axis] = last.shape[axis].div_ceil(2);
            next.factor[axis] = last.factor[axis] * 2.0;
        }
    }
    let kinds: Vec<AxisKind> = array.axes.iter().map(|a| a.kind).collect();
    let scale = [2, 1, 0].map(|axis| next.factor[spatial + axis]);
    let world_from_voxel: Affine = finest.world_from_voxel.coarsened(scale, scale.map(|f| (f - 1.0) / 2.0));
    Level {
        block: choose_blocks(&next.shape, &kinds, array.dtype, None),
        origin: LevelOrigin::Sampled,
        world_from_voxel,
        ..next
    }
}

#[cfg(test)]
mod tests;
