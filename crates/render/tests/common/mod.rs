//! Synthetic volumes for the picture tests: an analytic field, stored in blocks of any type at any levels.

#![allow(clippy::allow_attributes, dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{
    Affine, ArrayInfo, Axis, AxisKind, Block, ByteOrder, Content, DType, Dataset, DatasetId, Decoding,
    ElementType, Generation, Level, LevelOrigin, Meaning,
};
use bytes::Bytes;
use corridor_render::{
    BlockPool, Bounds, Camera, Cancel, Image, ImageSize, Inserted, LightShares, OpacityPoint, Quality,
    RenderedImage, Scene, TransferFunction, VolumeView, cast,
};
use glam::DVec3;
use view::Mode;

/// A decoded value at a position in voxels of level 0.
pub(crate) type Field = fn(DVec3) -> f64;

pub(crate) fn linear(p: DVec3) -> f64 {
    20.0 + 1.5 * p.x + 0.9 * p.y + 0.7 * p.z
}

pub(crate) fn cubic(p: DVec3) -> f64 {
    let q = (p - 24.0) / 24.0;
    110.0 + 40.0 * (q.x * q.x * q.y - q.z * q.z * q.z + q.x * q.y * q.z + 0.5 * q.y)
}

/// A volume to be made.
#[derive(Clone)]
pub(crate) struct Synthetic {
    pub(crate) shape: [u64; 3],
    pub(crate) block: [u64; 3],
    pub(crate) levels: u32,
    pub(crate) map: Affine,
    pub(crate) dtype: DType,
    pub(crate) decoding: Decoding,
    pub(crate) meaning: Meaning,
    pub(crate) field: Field,
}

impl Synthetic {
    pub(crate) fn new(shape: [u64; 3], block: [u64; 3], field: Field) -> Self {
        let dtype = DType::native(ElementType::F32);
        Self {
            shape,
            block,
            levels: 1,
            map: Affine::IDENTITY,
            dtype,
            decoding: Decoding::identity(dtype),
            meaning: Meaning::Intensity,
            field,
        }
    }

    pub(crate) fn typed(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self.decoding.output = dtype;
        self
    }

    pub(crate) fn dataset(&self) -> Dataset {
        let axes = [("z", AxisKind::Z), ("y", AxisKind::Y), ("x", AxisKind::X)]
            .map(|(n, k)| Axis::new(n, k))
            .to_vec();
        let levels = (0..self.levels)
            .map(|l| {
                let factor = f64::from(1 << l);
                Level {
                    shape: self.shape.map(|n| n.div_ceil(1 << l)).to_vec(),
                    block: self.block.to_vec(),
                    chunk: None,
                    origin: if l == 0 { LevelOrigin::Stored } else { LevelOrigin::Mean },
                    factor: vec![factor; 3],
                    world_from_voxel: self.map.coarsened([factor; 3], [(factor - 1.0) / 2.0; 3]),
                }
            })
            .collect();
        let info = ArrayInfo {
            name: "field".into(),
            dtype: self.dtype,
            axes,
            units: String::new(),
            attributes: BTreeMap::new(),
            decoding: self.decoding.clone(),
            meaning: self.meaning,
            levels,
            world_units: String::new(),
            notes: Vec::new(),
            storage: array::Storage::default(),
        };
        Dataset {
            id: DatasetId(1),
            generation: Generation(0),
            name: "synthetic".into(),
            format: "synthetic".into(),
            arrays: vec![info],
            attributes: BTreeMap::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
            groups: Vec::new(),
        }
    }

    pub(crate) fn view(&self) -> Arc<VolumeView> {
        Arc::new(VolumeView::new(&self.dataset(), 0, &[]).unwrap())
    }

    /// The decoded value of a voxel `(x, y, z)` of a level.
    pub(crate) fn value(&self, level: u32, voxel: DVec3) -> f64 {
        let factor = f64::from(1 << level);
        (self.field)(voxel * factor + (factor - 1.0) / 2.0)
    }

    /// Returns the decoded value of a voxel as its type stores it; for types that need no decoding.
    pub(crate) fn kept(&self, level: u32, voxel: DVec3) -> f64 {
        let value = self.value(level, voxel);
        match self.dtype.element() {
            ElementType::F64 => value,
            ElementType::F32 => f64::from(value as f32),
            _ => value.round(),
        }
    }

    /// One block as a source would give it.
    pub(crate) fn block(&self, level: u32, index: u64) -> Block {
        let dataset = self.dataset();
        let selection = dataset.arrays[0].levels[level as usize].block_selection(index).unwrap();
        let ranges = selection.ranges();
        let mut bytes = Vec::new();
        for z in ranges[0].start..ranges[0].start + ranges[0].count {
            for y in ranges[1].start..ranges[1].start + ranges[1].count {
                for x in ranges[2].start..ranges[2].start + ranges[2].count {
                    let value = self.value(level, DVec3::new(x as f64, y as f64, z as f64));
                    push(&mut bytes, self.dtype, (value - self.decoding.offset) / self.decoding.scale);
                }
            }
        }
        let key = array::BlockKey {
            dataset: dataset.id,
            generation: dataset.generation,
            array: 0,
            level: u8::try_from(level).unwrap(),
            index,
        };
        Block { key, content: Content::Data { bytes: Bytes::from(bytes), range: None } }
    }

    pub(crate) fn blocks(&self, level: u32) -> Vec<Block> {
        let count = self.dataset().arrays[0].levels[level as usize].block_count();
        (0..count).map(|i| self.block(level, i)).collect()
    }

    /// A pool that holds all of level 0.
    pub(crate) fn full_pool(&self) -> BlockPool {
        pool_of(self, self.blocks(0))
    }

    /// Seen from the usual direction, all values shown as a haze from blue to yellow.
    pub(crate) fn scene(&self) -> Scene {
        let view = self.view();
        let camera = Camera::framing(&view.bounds(), Camera::DEFAULT_DIRECTION);
        Scene {
            camera,
            transfer: TransferFunction::ramp(0.0, 200.0, 0.08),
            surfaces: Vec::new(),
            slices: Vec::new(),
            wires: Default::default(),
            geometry: Default::default(),
            mode: Mode::Composite,
            color_by: None,
            layers: Vec::new(),
            is_lit: false,
            light: LightShares::default(),
            size: ImageSize { width: 96, height: 80 },
            clip: None,
            quality: Quality::STILL,
            finest_level: 0,
            view,
        }
    }
}

/// A pool with room for everything that holds these blocks.
pub(crate) fn pool_of(synthetic: &Synthetic, blocks: impl IntoIterator<Item = Block>) -> BlockPool {
    let pool = BlockPool::new(synthetic.view(), 1 << 30);
    for block in blocks {
        assert_eq!(pool.insert(&block).unwrap(), Inserted::Placed);
    }
    pool
}

pub(crate) fn draw(scene: &Scene, pool: &BlockPool) -> RenderedImage {
    cast(scene, &pool.snapshot(), &Cancel::new()).unwrap()
}

/// Largest difference of any component of any pixel, in 255ths.
pub(crate) fn difference(a: &Image, b: &Image) -> f64 {
    assert_eq!(a.size, b.size);
    let components = a.rgba.as_flattened().iter().zip(b.rgba.as_flattened());
    components.map(|(a, b)| f64::from((a - b).abs()) * 255.0).fold(0.0, f64::max)
}

/// Root of the mean square of all differences, 255ths.
pub(crate) fn rms(a: &Image, b: &Image) -> f64 {
    let pairs = a.rgba.as_flattened().iter().zip(b.rgba.as_flattened());
    let sum: f64 = pairs.map(|(a, b)| (f64::from(a - b) * 255.0).powi(2)).sum();
    (sum / (4 * a.rgba.len()) as f64).sqrt()
}

/// Share of pixels in which anything is seen.
pub(crate) fn covered(image: &Image) -> f64 {
    image.rgba.iter().filter(|p| p[3] > 0.01).count() as f64 / image.rgba.len() as f64
}

pub(crate) fn points(list: &[(f64, f64)]) -> Vec<OpacityPoint> {
    list.iter().map(|&(value, opacity)| OpacityPoint { value, opacity }).collect()
}

/// World box around a box of voxel positions.
pub(crate) fn voxel_box(view: &VolumeView, low: [f64; 3], high: [f64; 3]) -> Bounds {
    let world = [low, high].map(|p| view.world_from_volume.transform_point3(p.into()));
    Bounds { min: world[0].min(world[1]).into(), max: world[0].max(world[1]).into() }
}

fn push(bytes: &mut Vec<u8>, dtype: DType, value: f64) {
    macro_rules! put {
        ($value:expr) => {
            match dtype.order() {
                ByteOrder::Little => bytes.extend($value.to_le_bytes()),
                ByteOrder::Big => bytes.extend($value.to_be_bytes()),
            }
        };
    }
    match dtype.element() {
        ElementType::Bool => put!((value != 0.0) as u8),
        ElementType::U8 => put!(value.round() as u8),
        ElementType::U16 => put!(value.round() as u16),
        ElementType::U32 => put!(value.round() as u32),
        ElementType::U64 => put!(value.round() as u64),
        ElementType::I8 => put!(value.round() as i8),
        ElementType::I16 => put!(value.round() as i16),
        ElementType::I32 => put!(value.round() as i32),
        ElementType::I64 => put!(value.round() as i64),
        ElementType::F16 => put!(half::f16::from_f64(value)),
        ElementType::F32 => put!(value as f32),
        ElementType::F64 => put!(value),
    }
}
