//! Blocks on the device: atlases of voxels, and the cells by which rays skip hidden regions.
//!
//! Memory is bounded, and at most [`UPLOAD_BYTES_PER_PASS`] are uploaded before a dispatch.

use array::{Error, Result};
use render::device::{Prepared, PreparedBlock, Sides, VisibleCells};

use crate::atlas::{Atlas, AtlasLimits, AtlasSet, CELL_LISTS, Growth, PageLocation, SlotSize, slot_count};
use crate::gpu::Gpu;
use crate::picture::BlockEntry;

/// Bytes of voxels uploaded before a dispatch, and so for a picture that does not wait: about 4 ms on a PCI
/// Express 4 bus. A larger block is uploaded alone.
pub const UPLOAD_BYTES_PER_PASS: u64 = 64 << 20;
/// Most atlases; with [`MAX_ATLAS_BYTES`] each they exceed the memory of any device. Devices that bind fewer
/// textures have fewer.
const MAX_ATLASES: u32 = 32;

/// Blocks on the device.
#[derive(Debug)]
pub(crate) struct Store {
    atlas_set: AtlasSet,
    /// Textures by atlas number.
    textures: Vec<Texture>,
    cells: wgpu::Buffer,
    /// Limit of all atlases together, bytes.
    limit_bytes: u64,
    /// Limits for the current picture, reduced when the device refuses memory.
    limits: AtlasLimits,
}

#[derive(Debug)]
struct Texture {
    texture: wgpu::Texture,
    view: wgpu::TextureView,
    /// First word of its cells.
    first_cell: u64,
}

/// Amount of data that was uploaded for one dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uploaded {
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
}

impl Store {
    /// # Errors
    /// `TooLarge` if the device has no memory at all.
    pub(crate) fn new(gpu: &Gpu, limit_bytes: u64) -> Result<Self> {
        Ok(Self {
            atlas_set: AtlasSet::default(),
            textures: Vec::new(),
            cells: gpu.buffer("cells", CELLS.size, CELLS.usage)?,
            limit_bytes,
            limits: AtlasLimits {
                limit_bytes,
                max_atlases: gpu.limits.max_sampled_textures_per_shader_stage.min(MAX_ATLASES) as usize,
                max_side: gpu.limits.max_texture_dimension_3d,
                max_cell_bytes: gpu.limits.max_storage_buffer_binding_size,
            },
        })
    }

    pub(crate) fn atlas_set(&mut self) -> &mut AtlasSet {
        &mut self.atlas_set
    }

    pub(crate) fn set_limit(&mut self, limit_bytes: u64) {
        self.limit_bytes = limit_bytes;
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.atlas_set.bytes()
    }

    pub(crate) fn cells(&self) -> &wgpu::Buffer {
        &self.cells
    }

    /// Returns the texture views with voxels of this size, in the order that [`Store::locate`] uses.
    pub(crate) fn views(&self, voxel_bytes: u32) -> Vec<&wgpu::TextureView> {
        let own = self.textures.iter().zip(self.atlas_set.atlases());
        own.filter(|(_, atlas)| atlas.size.voxel_bytes == voxel_bytes)
            .map(|(texture, _)| &texture.view)
            .collect()
    }

    /// Ensures that blocks of these sizes have an atlas, each within its share of the memory; called at the
    /// start of a picture.
    ///
    /// # Errors
    /// `TooLarge` if a single block exceeds the memory or the largest texture.
    pub(crate) fn reserve(&mut self, gpu: &Gpu, sizes: &[SlotSize]) -> Result<()> {
        self.limits.limit_bytes = self.limit_bytes;
        for size in sizes {
            if self.atlas_set.bytes_of(size) == 0 && !self.grow(gpu, size, sizes) {
                return Err(Error::too_large(format!(
                    "expected memory on the graphics processor for a block of {} bytes, voxels {:?}, found room for {} \
                     bytes, {} voxels a side",
                    size.bytes(),
                    size.extent,
                    self.limits.limit_bytes / sizes.len() as u64,
                    self.limits.max_side,
                )));
            }
        }
        Ok(())
    }

    /// Returns true if the device refused memory in this picture.
    pub(crate) fn was_refused(&self) -> bool {
        self.limits.limit_bytes < self.limit_bytes
    }

    /// Drops all atlases; returns false if there are none.
    ///
    /// # Errors
    /// Those of [`Store::new`]; `Io` when the device failed.
    pub(crate) fn clear(&mut self, gpu: &Gpu) -> Result<bool> {
        let had_some = !self.textures.is_empty();
        self.textures.clear();
        self.atlas_set = AtlasSet::default();
        self.cells = gpu.buffer("cells", CELLS.size, CELLS.usage)?;
        gpu.settle()?;
        Ok(had_some)
    }

    /// Adds an atlas, dropping unused ones; returns false if that is not possible.
    fn grow(&mut self, gpu: &Gpu, size: &SlotSize, used: &[SlotSize]) -> bool {
        let mut most_bytes = u64::MAX;
        let has_grown = loop {
            match self.atlas_set.growth(size, used, &self.limits, most_bytes) {
                Growth::Full => break false,
                Growth::Drop(number) => self.remove(number),
                Growth::Add(slots) if self.add(gpu, size, slots) => break true,
                // The device refused: drop unused atlases, or try half the size.
                Growth::Add(slots) => match self.atlas_set.unused(used) {
                    Some(number) => self.remove(number),
                    None => most_bytes = size.bytes() * slot_count(slots) / 2,
                },
            }
        };
        if most_bytes < u64::MAX {
            self.limits.limit_bytes = self.atlas_set.bytes();
        }
        has_grown
    }

    fn remove(&mut self, number: usize) {
        self.atlas_set.remove_atlas(number);
        drop(self.textures.remove(number));
    }

    /// Adds an atlas and enlarges the buffer of cells, which have to be uploaded again; returns false if the
    /// device has not enough memory.
    fn add(&mut self, gpu: &Gpu, size: &SlotSize, slots: [u32; 3]) -> bool {
        self.atlas_set.add(*size, slots);
        let words: u64 = self.atlas_set.atlases().iter().map(Atlas::all_cell_words).sum();
        let cells = wgpu::BufferDescriptor { size: 4 * words.max(1), ..CELLS };
        let Some((texture, cells)) =
            gpu.with_spare(|| (texture(gpu, size, slots), gpu.device.create_buffer(&cells)))
        else {
            self.atlas_set.remove_atlas(self.textures.len());
            return false;
        };
        let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
        self.textures.push(Texture { texture, view, first_cell: 0 });
        self.cells = cells;
        let mut words = 0;
        for (texture, atlas) in self.textures.iter_mut().zip(self.atlas_set.atlases()) {
            texture.first_cell = words;
            words += atlas.all_cell_words();
        }
        self.atlas_set.forget_cells();
        true
    }

    /// Uploads blocks in this order, until the upload limit is reached or memory is full. `may_evict`: blocks
    /// that the last dispatch did not see are evicted.
    pub(crate) fn upload<'a>(
        &mut self,
        gpu: &Gpu,
        prepared: &Prepared,
        blocks: impl Iterator<Item = (&'a PreparedBlock, SlotSize)>,
        (used, may_evict): (&[SlotSize], bool),
        uploaded: &mut Uploaded,
    ) {
        // Several at once, because each search examines all blocks.
        const EVICTED_AT_ONCE: usize = 64;
        let mut full: Vec<SlotSize> = Vec::new();
        for (block, size) in blocks {
            if full.contains(&size) || self.atlas_set.find(block).is_some() {
                continue;
            }
            let bytes = block.extent.iter().product::<usize>() as u64 * u64::from(size.voxel_bytes);
            if uploaded.blocks > 0 && uploaded.bytes + bytes > UPLOAD_BYTES_PER_PASS {
                break;
            }
            let mut at = self.atlas_set.place(&size, block);
            if at.is_none()
                && (self.grow(gpu, &size, used)
                    || may_evict && self.atlas_set.evict(&size, EVICTED_AT_ONCE) > 0)
            {
                at = self.atlas_set.place(&size, block);
            }
            let Some(at) = at else {
                full.push(size);
                continue;
            };
            self.write(gpu, prepared, block, at);
            uploaded.blocks += 1;
            uploaded.bytes += bytes;
        }
    }

    fn write(&self, gpu: &Gpu, prepared: &Prepared, block: &PreparedBlock, at: PageLocation) {
        let atlas = &self.atlas_set.atlases()[at.atlas];
        let [x, y, z] = atlas.texel(at.slot);
        let side = |n: usize| u32::try_from(n).expect("a block in a slot");
        let [depth, height, width] = block.extent.map(side);
        let bytes_per_row = side(block.pitch) * atlas.size.voxel_bytes;
        gpu.queue.write_texture(
            wgpu::TexelCopyTextureInfo {
                texture: &self.textures[at.atlas].texture,
                mip_level: 0,
                origin: wgpu::Origin3d { x, y, z },
                aspect: wgpu::TextureAspect::All,
            },
            &prepared.voxels(block),
            wgpu::TexelCopyBufferLayout {
                offset: 0,
                bytes_per_row: Some(bytes_per_row),
                rows_per_image: Some(height),
            },
            wgpu::Extent3d { width, height, depth_or_array_layers: depth },
        );
    }

    /// Writes the location of a block into its entry, and uploads its cells if they are those of another
    /// table.
    pub(crate) fn locate(
        &mut self,
        gpu: &Gpu,
        prepared: &Prepared,
        block: &PreparedBlock,
        entry: &mut BlockEntry,
    ) {
        let Some(at) = self.atlas_set.find(block) else { return };
        let atlas = &self.atlas_set.atlases()[at.atlas];
        let own = |other: &&Atlas| other.size.voxel_bytes == atlas.size.voxel_bytes;
        let number = self.atlas_set.atlases()[..at.atlas].iter().filter(own).count();
        let first = self.textures[at.atlas].first_cell
            + u64::from(at.slot) * CELL_LISTS as u64 * atlas.size.cell_words();
        entry.atlas = u32::try_from(number).expect("few atlases");
        entry.texel = atlas.texel(at.slot);
        entry.field = u32::try_from(first).expect("what a binding holds");
        entry.sides = entry.field + u32::try_from(atlas.size.cell_words()).expect("what a binding holds");
        if cells_of(block).iter().all(Option::is_none) || !self.atlas_set.lacks_cells(at, &prepared.cells_id)
        {
            return;
        }
        for (cells, first) in cells_of(block).into_iter().zip([entry.field, entry.sides]) {
            let Some(cells) = cells else { continue };
            let mut bytes = cells.to_vec();
            bytes.resize(cells.len().next_multiple_of(4), 0);
            gpu.queue.write_buffer(&self.cells, 4 * u64::from(first), &bytes);
        }
    }
}

/// Returns the two lists of bytes for a block's cells: visibility or heights, and sides of surfaces; `None`
/// for a list that is not needed.
fn cells_of(block: &PreparedBlock) -> [Option<&[u8]>; CELL_LISTS] {
    let field = match block.field.as_deref() {
        Some(VisibleCells::Cells(cells)) => Some(cells.as_slice()),
        _ => block.peaks.as_ref().map(|peaks| peaks.cells.as_slice()),
    };
    let sides = match &block.sides {
        Some(Sides::Cells(sides)) => Some(sides.as_slice()),
        _ => None,
    };
    [field, sides]
}

/// Smallest buffer of cells.
const CELLS: wgpu::BufferDescriptor<'static> = wgpu::BufferDescriptor {
    label: Some("cells"),
    size: 4,
    usage: wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_DST),
    mapped_at_creation: false,
};

/// Creates the texture of an atlas.
fn texture(gpu: &Gpu, size: &SlotSize, slots: [u32; 3]) -> wgpu::Texture {
    let side = |axis: usize| slots[axis] * size.extent[axis];
    let format = match size.voxel_bytes {
        1 => wgpu::TextureFormat::R8Uint,
        2 => wgpu::TextureFormat::R16Uint,
        _ => wgpu::TextureFormat::R32Uint,
    };
    gpu.device.create_texture(&wgpu::TextureDescriptor {
        label: Some("atlas"),
        size: wgpu::Extent3d { width: side(2), height: side(1), depth_or_array_layers: side(0) },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D3,
        format,
        usage: wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST,
        view_formats: &[],
    })
}
