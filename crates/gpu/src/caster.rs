//! GPU caster: a picture as a series of dispatches.
//!
//! A ray that reaches a block whose voxels are not on the device waits and requests it; after each dispatch
//! the requested blocks are uploaded, nearest first, and the rays continue. So a picture uploads only what it
//! shows, and does not depend on the content of the atlases (paging by rays as in Crassin and others,
//! "GigaVoxels", 2009, and Hadwiger and others, "Interactive Volume Exploration of Petascale Microscopy Data
//! Streams", 2012). A picture that must not wait draws coarser blocks instead, which its fidelity reports.

use std::collections::HashMap;

use array::{Error, ErrorKind, Result};
use bytemuck::Zeroable;
use parking_lot::Mutex;
use render::device::{Prepared, prepare};
use render::{Cancel, Image, RenderedImage, Scene, Snapshot};

use crate::atlas::{SlotSize, slot_sizes};
use crate::buffers::Buffers;
use crate::gpu::{Accept, Gpu};
use crate::picture::{GpuPicture, MAX_LEVELS};
use crate::shader::{FIRST_ATLAS, Variant, WORKGROUP_SIDE};
use crate::store::{Store, Uploaded};

/// Most rays of one dispatch, if the device can bind as many.
const MAX_RAYS: u64 = 1 << 21;
/// Bytes of a ray between dispatches (the shader's `Ray`), and of its color.
const RAY_BYTES: u64 = 80;
const COLOR_BYTES: u64 = 16;
/// Fewest rows that are drawn together when memory is so short that more rows would wait for one another's
/// blocks forever.
const FEWEST_ROWS: u32 = WORKGROUP_SIDE;
/// Most dispatches for one band of rows; more indicate an error.
const MAX_PASSES: u32 = 1 << 16;
/// Words of the counters of a dispatch: unfinished rays, rays that moved, and two for each level, for
/// uncovered and for lacking samples.
const COUNT_WORDS: usize = 2 + 2 * (MAX_LEVELS + 2);

/// Bits of the shader's marks.
const SEEN: u32 = 1;
const LACKED: u32 = 2;
const SOON: u32 = 4;

/// Behavior if voxels are not on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingBlocks {
    /// Wait for them: the picture equals that of the CPU caster.
    Complete,
    /// Draw coarser ones in this picture; the missing ones are uploaded for the next picture.
    StandIns,
}

/// Work and memory of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CastStats {
    /// Number of dispatches.
    pub passes: u64,
    /// Number of blocks uploaded.
    pub blocks: u64,
    /// Bytes of their voxels.
    pub bytes: u64,
    /// Most bytes uploaded before one dispatch.
    pub most_bytes_per_pass: u64,
    /// Memory of all atlases, whether their slots are in use or not, bytes.
    pub atlas_bytes: u64,
    /// Blocks that the picture lacked and replaced by coarser ones.
    pub lacking_blocks: u64,
}

/// Ray caster on a GPU; draws one picture at a time.
#[derive(Debug)]
pub struct GpuCaster {
    gpu: Gpu,
    state: Mutex<CasterState>,
    /// Most dispatches for one band of rows.
    max_passes: u32,
}

#[derive(Debug)]
struct CasterState {
    store: Store,
    pipelines: HashMap<Variant, CastPipeline>,
    buffers: Buffers,
}

#[derive(Debug)]
struct CastPipeline {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

/// Results of one dispatch.
struct PassResult {
    unfinished: u32,
    moved: u32,
    marks: Vec<u32>,
    counts: Vec<u32>,
}

impl GpuCaster {
    /// Opens the best acceptable GPU, for atlases of `atlas_bytes` together.
    ///
    /// # Errors
    /// `NotFound` if there is none; `Unsupported` if it lacks required features, `TooLarge` if its memory is
    /// full.
    pub fn open(accept: Accept, atlas_bytes: u64) -> Result<Self> {
        let gpu = Gpu::open(accept)?;
        let state = CasterState {
            store: Store::new(&gpu, atlas_bytes)?,
            pipelines: HashMap::new(),
            buffers: Buffers::new(&gpu)?,
        };
        Ok(Self { gpu, state: Mutex::new(state), max_passes: MAX_PASSES })
    }

    /// Sets the limit of all atlases together, bytes; existing ones stay.
    pub fn set_limit(&self, atlas_bytes: u64) {
        self.state.lock().store.set_limit(atlas_bytes);
    }

    /// Closes the device: later pictures are errors, as after the loss of a device.
    pub fn close(&self) {
        self.gpu.device.destroy();
    }

    /// Returns the name of the device and its graphics API.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.gpu.name
    }

    /// Returns true for a software implementation.
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.gpu.is_software
    }

    /// Draws a scene from `blocks`, which belong to the scene's view; blocks the thread.
    ///
    /// # Errors
    /// `Invalid` for an invalid scene; `Unsupported` and `TooLarge` for one that only the CPU caster can
    /// draw, perhaps because others use the device's memory; `Cancelled` when the flag was set; `Io` when the
    /// device failed, after which it cannot be used.
    pub fn cast(
        &self,
        scene: &Scene,
        blocks: &Snapshot,
        missing_blocks: MissingBlocks,
        cancel: &Cancel,
    ) -> Result<(RenderedImage, CastStats)> {
        let prepared = prepare(scene, blocks)?;
        let state = &mut *self.state.lock();
        self.gpu.check()?;
        let drawn = self.draw(state, &prepared, missing_blocks, cancel);
        let Err(error) = &drawn else { return drawn };
        let is_full = error.kind() == ErrorKind::TooLarge
            && (state.store.was_refused() || self.gpu.with_spare(|| ()).is_none());
        // Others use the memory beside the atlases, or the atlases have other slot sizes: they are rebuilt,
        // with some memory to spare.
        if is_full && state.store.clear(&self.gpu)? {
            return self.draw(state, &prepared, missing_blocks, cancel);
        }
        drawn
    }

    fn draw(
        &self,
        state: &mut CasterState,
        prepared: &Prepared,
        missing_blocks: MissingBlocks,
        cancel: &Cancel,
    ) -> Result<(RenderedImage, CastStats)> {
        let picture = GpuPicture::new(prepared)?;
        let (sizes, size_of_level) = slot_sizes(prepared);
        state.store.reserve(&self.gpu, &sizes)?;
        let mut drawing = PictureDrawing {
            gpu: &self.gpu,
            state,
            prepared,
            picture,
            sizes,
            size_of_level,
            missing_blocks,
            max_passes: self.max_passes,
            shown: vec![0; MAX_LEVELS + 2],
            stats: CastStats::default(),
        };
        drawing.begin()?;
        let size = prepared.size;
        let mut image = Image { size, rgba: vec![[0.0; 4]; size.width as usize * size.height as usize] };
        let rows = rows_at_once(&self.gpu.limits, size.width);
        for first in (0..size.height).step_by(rows as usize) {
            drawing.draw(&mut image, first, rows.min(size.height - first), cancel)?;
        }
        let fidelity = drawing.fidelity();
        let mut stats = drawing.stats;
        stats.atlas_bytes = drawing.state.store.bytes();
        Ok((RenderedImage { image, fidelity }, stats))
    }
}

/// Returns the number of rows whose ray states are bound together.
fn rows_at_once(limits: &wgpu::Limits, width: u32) -> u32 {
    let most = MAX_RAYS.min(limits.max_storage_buffer_binding_size / RAY_BYTES);
    u32::try_from(most / u64::from(width)).unwrap_or(u32::MAX).max(1)
}

/// Picture that is being drawn.
struct PictureDrawing<'a> {
    gpu: &'a Gpu,
    state: &'a mut CasterState,
    prepared: &'a Prepared,
    picture: GpuPicture,
    sizes: Vec<SlotSize>,
    size_of_level: Vec<usize>,
    missing_blocks: MissingBlocks,
    max_passes: u32,
    /// Samples by level, then uncovered and lacking samples.
    shown: Vec<u64>,
    stats: CastStats,
}

impl PictureDrawing<'_> {
    /// Uploads what is the same for all dispatches.
    fn begin(&mut self) -> Result<()> {
        let (gpu, buffers) = (self.gpu, &mut self.state.buffers);
        let mut table = self.prepared.table_words().to_vec();
        table.extend(&self.picture.words);
        buffers.table.fill(gpu, bytemuck::cast_slice(&table))?;
        buffers.places.fill(gpu, bytemuck::cast_slice(&self.picture.places))?;
        buffers.marks.fill(gpu, &vec![0; 4 * self.picture.blocks.len().max(1)])
    }

    /// Draws rows of the image; halves them if they wait for one another's blocks forever.
    fn draw(&mut self, image: &mut Image, first_row: u32, row_count: u32, cancel: &Cancel) -> Result<()> {
        self.picture.head.first_row = first_row;
        self.picture.head.row_count = row_count;
        self.picture.head.is_first_pass = 1;
        self.picture.head.stands_in = u32::from(self.missing_blocks == MissingBlocks::StandIns);
        let Some(counts) = self.passes(cancel)? else {
            if row_count <= FEWEST_ROWS {
                return Err(Error::too_large(format!(
                    "expected room on the graphics processor for the blocks of {row_count} rows of the picture, found \
                     atlases of {} bytes",
                    self.state.store.bytes()
                )));
            }
            let half = (row_count / 2).next_multiple_of(WORKGROUP_SIDE);
            self.draw(image, first_row, half, cancel)?;
            return self.draw(image, first_row + half, row_count - half, cancel);
        };
        for (sum, count) in self.shown.iter_mut().zip(counts[2..].chunks_exact(2)) {
            *sum += u64::from(count[0]) | u64::from(count[1]) << 32;
        }
        self.fetch(image, first_row, row_count)
    }

    /// Dispatches until all rays have ended; returns their counts, or `None` if no ray can continue.
    fn passes(&mut self, cancel: &Cancel) -> Result<Option<Vec<u32>>> {
        self.state.buffers.counts.fill(self.gpu, &vec![0; 4 * COUNT_WORDS])?;
        for _ in 0..self.max_passes {
            if cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            let result = self.pass()?;
            self.mark_seen(&result);
            let uploaded = self.upload(&result, result.unfinished > 0);
            if result.unfinished == 0 {
                let is_lacking = |mark: &&u32| **mark & LACKED != 0;
                self.stats.lacking_blocks += result.marks.iter().filter(is_lacking).count() as u64;
                return Ok(Some(result.counts));
            }
            if result.moved == 0 && uploaded.blocks == 0 {
                return Ok(None);
            }
            self.picture.head.is_first_pass = 0;
        }
        Err(Error::too_large(format!(
            "expected rows of the picture to end within {} dispatches on the graphics processor, found that some go on",
            self.max_passes
        )))
    }

    /// Runs one dispatch.
    fn pass(&mut self) -> Result<PassResult> {
        let (gpu, prepared) = (self.gpu, self.prepared);
        for (block, entry) in prepared.blocks.iter().zip(&mut self.picture.blocks) {
            entry.atlas = crate::picture::NO_ATLAS;
            self.state.store.locate(gpu, prepared, block, entry);
        }
        self.state.store.atlas_set().tick();
        self.stats.passes += 1;
        let blocks = &self.picture.blocks;
        let buffers = &mut self.state.buffers;
        let none = [crate::picture::BlockEntry::zeroed()];
        buffers.blocks.fill(gpu, bytemuck::cast_slice(if blocks.is_empty() { &none } else { blocks }))?;
        buffers.picture.fill(gpu, &self.picture.uniform())?;
        let ray_count = u64::from(self.prepared.size.width) * u64::from(self.picture.head.row_count);
        buffers.rays.make_room(gpu, ray_count * RAY_BYTES)?;
        buffers.colors.make_room(gpu, ray_count * COLOR_BYTES)?;
        buffers.counts.fill(gpu, &[0; 8])?;
        self.dispatch();
        let mark_bytes = 4 * self.picture.blocks.len().max(1) as u64;
        let buffers = &self.state.buffers;
        let sources = [(&buffers.marks.buffer, mark_bytes), (&buffers.counts.buffer, 4 * COUNT_WORDS as u64)];
        let read = gpu.read(&sources)?;
        let [marks, counts] = [0, 1].map(|i| bytemuck::pod_collect_to_vec::<u8, u32>(&read[i]));
        gpu.queue.write_buffer(&buffers.marks.buffer, 0, &vec![0; read[0].len()]);
        Ok(PassResult { unfinished: counts[0], moved: counts[1], marks, counts })
    }

    fn dispatch(&mut self) {
        let voxel_bytes = u32::try_from(self.prepared.format.bytes()).expect("at most 4");
        let CasterState { store, pipelines, buffers } = &mut *self.state;
        let views = store.views(voxel_bytes);
        let variant = Variant::of(self.prepared, views.len());
        let pipeline = pipelines.entry(variant).or_insert_with(|| CastPipeline::new(self.gpu, &variant));
        let own = buffers.bound(store.cells());
        let numbered = (0u32..).zip(own.into_iter().map(wgpu::Buffer::as_entire_binding));
        let atlases = (FIRST_ATLAS..).zip(views.into_iter().map(wgpu::BindingResource::TextureView));
        let entries: Vec<_> = numbered
            .chain(atlases)
            .map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource })
            .collect();
        let bindings = self.gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.layout,
            entries: &entries,
        });
        let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline.pipeline);
        pass.set_bind_group(0, &bindings, &[]);
        let groups = |n: u32| n.div_ceil(WORKGROUP_SIDE);
        pass.dispatch_workgroups(groups(self.prepared.size.width), groups(self.picture.head.row_count), 1);
        drop(pass);
        self.gpu.queue.submit([encoder.finish()]);
    }

    /// Marks the blocks that were seen, which are evicted last.
    fn mark_seen(&mut self, result: &PassResult) {
        let seen = self.prepared.blocks.iter().zip(&result.marks).filter(|(_, mark)| **mark & SEEN != 0);
        for (block, _) in seen {
            let atlas_set = self.state.store.atlas_set();
            if let Some(at) = atlas_set.find(block) {
                atlas_set.mark_seen(at);
            }
        }
    }

    /// Uploads the blocks that rays requested: coarse before fine, then nearest first. Blocks that rays will
    /// need soon do not evict others.
    fn upload(&mut self, result: &PassResult, rays_wait: bool) -> Uploaded {
        let prepared = self.prepared;
        let mut uploaded = Uploaded::default();
        for (bit, may_evict) in [(LACKED, true), (SOON, false)] {
            if bit == SOON && !rays_wait {
                break;
            }
            let mut requested: Vec<usize> =
                (0..prepared.blocks.len()).filter(|&i| result.marks[i] & bit != 0).collect();
            let coarse_first = |i: usize| match self.missing_blocks {
                MissingBlocks::Complete => 0,
                MissingBlocks::StandIns => usize::MAX - prepared.blocks[i].level_index,
            };
            let distances = &self.picture.distances;
            requested.sort_by(|&a, &b| {
                coarse_first(a).cmp(&coarse_first(b)).then(distances[a].total_cmp(&distances[b]))
            });
            let sized: Vec<_> = requested
                .into_iter()
                .map(|i| &prepared.blocks[i])
                .map(|b| (b, self.size_of(b.level_index)))
                .collect();
            self.state.store.upload(
                self.gpu,
                prepared,
                sized.into_iter(),
                (&self.sizes, may_evict),
                &mut uploaded,
            );
        }
        self.stats.blocks += uploaded.blocks;
        self.stats.bytes += uploaded.bytes;
        self.stats.most_bytes_per_pass = self.stats.most_bytes_per_pass.max(uploaded.bytes);
        uploaded
    }

    fn size_of(&self, level_index: usize) -> SlotSize {
        let level = self.prepared.levels.iter().position(|level| level.level_index == level_index);
        self.sizes[self.size_of_level[level.expect("a level that is drawn")]]
    }

    /// Reads the accumulated colors of rays.
    fn fetch(&self, image: &mut Image, first_row: u32, row_count: u32) -> Result<()> {
        let width = image.size.width as usize;
        let (start, count) = (first_row as usize * width, row_count as usize * width);
        let read = self.gpu.read(&[(&self.state.buffers.colors.buffer, count as u64 * COLOR_BYTES)])?;
        bytemuck::cast_slice_mut(&mut image.rgba[start..start + count]).copy_from_slice(&read[0]);
        Ok(())
    }

    fn fidelity(&self) -> render::Fidelity {
        let mut by_level = vec![0; self.prepared.view.levels.len()];
        for (level, &samples) in self.prepared.levels.iter().zip(&self.shown) {
            by_level[level.level_index] = samples;
        }
        self.prepared.fidelity(&by_level, self.shown[MAX_LEVELS], self.shown[MAX_LEVELS + 1])
    }
}

impl CastPipeline {
    fn new(gpu: &Gpu, variant: &Variant) -> Self {
        let source = wgpu::ShaderSource::Wgsl(variant.source().into());
        let module =
            gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some("cast"), source });
        let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some("cast"),
            layout: None,
            module: &module,
            entry_point: Some("cast_rays"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let layout = pipeline.get_bind_group_layout(0);
        Self { pipeline, layout }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use render::ImageSize;

    use super::*;
    use crate::common::{Synthetic, linear};

    fn opened(atlas_bytes: u64) -> Option<GpuCaster> {
        let caster = GpuCaster::open(Accept::Any, atlas_bytes);
        if caster.is_err() {
            assert!(std::env::var_os("CORRIDOR_TEST_GPU").is_none(), "CORRIDOR_TEST_GPU is set");
            eprintln!("skipped: no graphics processor");
        }
        caster.ok()
    }

    fn draw(caster: &GpuCaster) -> Result<(RenderedImage, CastStats)> {
        draw_of(caster, ImageSize { width: 60, height: 50 })
    }

    fn draw_of(caster: &GpuCaster, size: ImageSize) -> Result<(RenderedImage, CastStats)> {
        let synthetic = Synthetic::new([24; 3], [16; 3], linear);
        let (scene, pool) = (Scene { size, ..synthetic.scene() }, synthetic.full_pool());
        caster.cast(&scene, &pool.snapshot(), MissingBlocks::Complete, &Cancel::new())
    }

    #[test]
    fn a_lost_device_is_an_error_from_then_on() {
        let Some(caster) = opened(1 << 20) else { return };
        draw(&caster).expect("a picture");
        caster.close();
        for _ in 0..2 {
            let error = draw(&caster).expect_err("the device is lost");
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            assert!(error.to_string().contains(caster.name()), "{error}");
        }
    }

    #[test]
    fn a_picture_that_does_not_end_is_left_to_the_cpu() {
        let Some(mut caster) = opened(1 << 20) else { return };
        // The first dispatch finds no block on the device.
        caster.max_passes = 1;
        let error = draw(&caster).expect_err("a picture that goes on");
        assert!(error.kind() == ErrorKind::TooLarge && error.to_string().contains("1 dispatches"), "{error}");
        caster.max_passes = MAX_PASSES;
        draw(&caster).expect("a picture");
    }
    /// In a process of its own, which may have so little address space that software Vulkan refuses memory as a device does
    /// that is full.
    #[test]
    fn a_full_device_is_left_to_the_cpu_until_there_is_room_again() {
        const OWN: &str = "caster::tests::a_full_device_is_left_to_the_cpu_until_there_is_room_again";
        const CHILD: &str = "CORRIDOR_TEST_IN_CHILD";
        const HOG_BYTES: u64 = 64 << 20;
        let Some(caster) = opened(1 << 20).filter(GpuCaster::is_software) else { return };
        if std::env::var_os(CHILD).is_none() {
            let script = format!("ulimit -v $((12 << 20)) && exec \"$0\" --exact {OWN} --nocapture");
            let own = std::env::current_exe().expect("a test's program");
            let child = Command::new("sh").arg("-c").arg(script).arg(own).env(CHILD, "1").status();
            assert!(child.is_ok_and(|status| status.success()));
            return;
        }
        draw(&caster).expect("a picture");
        let hog = |_| caster.gpu.buffer("hogs", HOG_BYTES, wgpu::BufferUsages::COPY_DST).ok();
        let mut hogs: Vec<_> = (0..1000).map_while(hog).collect();
        assert!(hogs.len() < 1000, "the device is never full");
        // For the program itself.
        hogs.pop();
        draw(&caster).expect("a picture for which everything is there");
        let large = ImageSize { width: 2000, height: 1000 };
        for _ in 0..2 {
            let error = draw_of(&caster, large).expect_err("rays have no room");
            assert!(error.kind() == ErrorKind::TooLarge && error.to_string().contains("found"), "{error}");
        }
        drop(hogs);
        caster.gpu.settle().expect("a device that works");
        draw_of(&caster, large).expect("a picture");
    }
}
