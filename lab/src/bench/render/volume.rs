//! The volume that all contestants draw: ripples in a ball with a notch, computed, as bytes or `f32`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use array::{
    Affine, ArrayInfo, Axis, AxisKind, Block, BlockKey, Content, DType, Dataset, DatasetId, Decoding, Error,
    Generation, Level, LevelOrigin, Meaning, Result, choose_blocks,
};
use bytes::Bytes;
use rayon::prelude::*;
use render::reference::ReferenceVoxels;
use render::{BlockPool, Inserted, VolumeView};

/// Ghost voxels and cells cost a pool less than this share of the voxels.
const OVERHEAD: f64 = 0.5;
/// Counterpart of [`OVERHEAD`] for blocks that are small for the sake of a skewed volume.
const SKEWED_OVERHEAD: f64 = 4.0;

/// Blocks along a side of a skewed volume.
const SKEWED_BLOCKS: u64 = 8;

/// Volume to draw. Values are 0 to 255; voxel centers lie at whole numbers of world space.
pub(super) struct BenchVolume {
    pub(super) side: u64,
    /// Whole numbers in a byte each, or `f32` in the host's order.
    pub(super) is_float: bool,
    pub(super) view: Arc<VolumeView>,
    dataset: Dataset,
    bytes: Vec<u8>,
    overhead: f64,
}

impl BenchVolume {
    pub(super) fn new(side: u64, is_float: bool) -> Result<Self> {
        let dataset = dataset(side, is_float)?;
        Self::of(side, is_float, dataset, slab)
    }

    /// Bytes of which nearly all that is not 0 lies in one corner.
    pub(super) fn skewed(side: u64) -> Result<Self> {
        let mut dataset = dataset(side, false)?;
        // Small ones: what is in a corner would be in one block of the usual size, and work is measured by blocks.
        for level in dataset.arrays.iter_mut().flat_map(|array| &mut array.levels) {
            level.block = vec![side.div_ceil(SKEWED_BLOCKS); 3];
        }
        Ok(Self { overhead: SKEWED_OVERHEAD, ..Self::of(side, false, dataset, skewed_slab)? })
    }

    fn of(
        side: u64,
        is_float: bool,
        dataset: Dataset,
        slab: fn(f64, &[f64], bool) -> Vec<u8>,
    ) -> Result<Self> {
        let view = Arc::new(VolumeView::new(&dataset, 0, &[])?);
        let places: Vec<f64> = (0..side).map(|i| (i as f64 + 0.5) * 2.0 / side as f64 - 1.0).collect();
        let slabs: Vec<Vec<u8>> = places.par_iter().map(|&z| slab(z, &places, is_float)).collect();
        Ok(Self { side, is_float, view, dataset, bytes: slabs.concat(), overhead: OVERHEAD })
    }

    /// Name in reports.
    pub(super) fn dtype(&self) -> &'static str {
        if self.is_float { "f32" } else { "u8" }
    }

    /// Name of its type in numpy.
    pub(super) fn numpy_dtype(&self) -> &'static str {
        if self.is_float { "float32" } else { "uint8" }
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Writes all of it, `[z, y, x]`, without a header.
    pub(super) fn write(&self, file: &Path) -> Result<()> {
        Ok(std::fs::write(file, &self.bytes)?)
    }

    /// Makes a pool that holds all of it.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few gigabytes")]
    pub(super) fn pool(&self) -> Result<BlockPool> {
        let limit_bytes = (self.bytes.len() as f64 * (1.0 + self.overhead)) as usize;
        let pool = BlockPool::new(Arc::clone(&self.view), limit_bytes);
        for index in 0..self.level()?.block_count() {
            if pool.insert(&self.block(index)?)? != Inserted::Placed {
                return Err(Error::internal(format!("block {index} does not fit {limit_bytes} bytes")));
            }
        }
        Ok(pool)
    }

    fn level(&self) -> Result<&Level> {
        self.dataset.array(0)?.levels.first().ok_or_else(|| Error::internal("an array without levels"))
    }

    #[expect(clippy::cast_possible_truncation, reason = "the volume is in memory")]
    fn block(&self, index: u64) -> Result<Block> {
        let selection = self.level()?.block_selection(index)?;
        let [z, y, x] = [0, 1, 2].map(|axis| selection.ranges()[axis]);
        let voxel_bytes = self.voxel_bytes();
        let mut bytes = Vec::with_capacity((z.count * y.count * x.count) as usize * voxel_bytes);
        for z in z.start..z.start + z.count {
            for y in y.start..y.start + y.count {
                let start = ((z * self.side + y) * self.side + x.start) as usize * voxel_bytes;
                bytes.extend_from_slice(&self.bytes[start..start + x.count as usize * voxel_bytes]);
            }
        }
        let Dataset { id: dataset, generation, .. } = self.dataset;
        let key = BlockKey { dataset, generation, array: 0, level: 0, index };
        Ok(Block { key, content: Content::Data { bytes: Bytes::from(bytes), range: None } })
    }

    fn voxel_bytes(&self) -> usize {
        if self.is_float { size_of::<f32>() } else { 1 }
    }
}

impl ReferenceVoxels for BenchVolume {
    fn shape(&self) -> [u64; 3] {
        [self.side; 3]
    }

    #[expect(clippy::cast_possible_truncation, reason = "the volume is in memory")]
    fn value(&self, [x, y, z]: [u64; 3]) -> f64 {
        let at = ((z * self.side + y) * self.side + x) as usize * self.voxel_bytes();
        match self.bytes[at..at + self.voxel_bytes()] {
            [byte] => f64::from(byte),
            [a, b, c, d] => f64::from(f32::from_ne_bytes([a, b, c, d])),
            _ => f64::NAN,
        }
    }
}

/// All voxels of one `z`, `[y, x]`; places run from -1 to 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "values are 0 to 255")]
fn slab(z: f64, places: &[f64], is_float: bool) -> Vec<u8> {
    let waves: Vec<f64> = places.iter().map(|x| 3.0 * (4.0 * x).sin()).collect();
    let mut bytes = Vec::new();
    for &y in places {
        let across = (3.0 * y).cos();
        for (&x, wave) in places.iter().zip(&waves) {
            let square = x * x + y * y + z * z;
            let ripples = 0.5 + 0.5 * (14.0 * square.sqrt() + wave * across + 2.0 * z).sin();
            let notch = if x > 0.25 && z > 0.25 && y < 0.0 { 0.0 } else { 1.0 };
            let value = 255.0 * (1.0 - square).max(0.0).sqrt() * (0.35 + 0.65 * ripples) * notch;
            if is_float {
                bytes.extend((value as f32).to_ne_bytes());
            } else {
                bytes.push(value as u8);
            }
        }
    }
    bytes
}

/// All voxels of one `z` of a ball in one corner, in bytes; shape and places as in [`slab`].
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "values are 0 to 255")]
fn skewed_slab(z: f64, places: &[f64], _is_float: bool) -> Vec<u8> {
    /// Its middle and its radius, where the volume runs from -1 to 1.
    const MIDDLE: f64 = -0.55;
    const RADIUS: f64 = 0.4;
    let square = |at: f64| (at - MIDDLE).powi(2);
    let value = |y: f64, x: f64| 255.0 * (1.0 - (square(x) + square(y) + square(z)).sqrt() / RADIUS).max(0.0);
    places.iter().flat_map(|&y| places.iter().map(move |&x| value(y, x) as u8)).collect()
}

fn dataset(side: u64, is_float: bool) -> Result<Dataset> {
    let dtype: DType = if is_float { "float32" } else { "uint8" }.parse()?;
    let kinds = [AxisKind::Z, AxisKind::Y, AxisKind::X];
    let level = Level {
        shape: vec![side; 3],
        block: choose_blocks(&[side; 3], &kinds, dtype, None),
        chunk: None,
        origin: LevelOrigin::Stored,
        factor: vec![1.0; 3],
        world_from_voxel: Affine::IDENTITY,
    };
    let array = ArrayInfo {
        name: "ripples".into(),
        dtype,
        axes: ["z", "y", "x"].into_iter().zip(kinds).map(|(name, kind)| Axis::new(name, kind)).collect(),
        units: String::new(),
        attributes: BTreeMap::new(),
        decoding: Decoding::identity(dtype),
        meaning: Meaning::Intensity,
        levels: vec![level],
        world_units: String::new(),
        notes: Vec::new(),
        storage: array::Storage::default(),
    };
    Ok(Dataset {
        id: DatasetId::of(["ripples"]),
        generation: Generation(0),
        name: "ripples".into(),
        format: "computed".into(),
        arrays: vec![array],
        attributes: BTreeMap::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        groups: Vec::new(),
    })
}
