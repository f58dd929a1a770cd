//! Buffers that a picture binds besides the atlases and their cells. They grow as needed and never shrink.

use array::Result;

use crate::gpu::Gpu;

/// Buffers of a picture, in binding order; the cells of the atlases are bound among them.
#[derive(Debug)]
pub(crate) struct Buffers {
    pub(crate) picture: GrowableBuffer,
    pub(crate) blocks: GrowableBuffer,
    pub(crate) places: GrowableBuffer,
    pub(crate) table: GrowableBuffer,
    pub(crate) marks: GrowableBuffer,
    /// State of the rays between dispatches.
    pub(crate) rays: GrowableBuffer,
    pub(crate) counts: GrowableBuffer,
    /// Accumulated colors and opacities of rays, RGBA.
    pub(crate) colors: GrowableBuffer,
}

impl Buffers {
    /// Creates small buffers.
    ///
    /// # Errors
    /// Those of [`Gpu::buffer`].
    pub(crate) fn new(gpu: &Gpu) -> Result<Self> {
        let storage = |label| GrowableBuffer::new(gpu, label, wgpu::BufferUsages::STORAGE);
        Ok(Self {
            picture: GrowableBuffer::new(gpu, "picture", wgpu::BufferUsages::UNIFORM)?,
            blocks: storage("blocks")?,
            places: storage("places")?,
            table: storage("table")?,
            marks: storage("marks")?,
            rays: storage("rays")?,
            counts: storage("counts")?,
            colors: storage("colors")?,
        })
    }

    /// Returns the buffers in binding order.
    pub(crate) fn bound<'a>(&'a self, cells: &'a wgpu::Buffer) -> [&'a wgpu::Buffer; 9] {
        [
            &self.picture.buffer,
            &self.blocks.buffer,
            &self.places.buffer,
            cells,
            &self.table.buffer,
            &self.marks.buffer,
            &self.rays.buffer,
            &self.counts.buffer,
            &self.colors.buffer,
        ]
    }
}

/// Buffer that is replaced by a larger one if it is too small.
#[derive(Debug)]
pub(crate) struct GrowableBuffer {
    label: &'static str,
    pub(crate) buffer: wgpu::Buffer,
}

impl GrowableBuffer {
    fn new(gpu: &Gpu, label: &'static str, usage: wgpu::BufferUsages) -> Result<Self> {
        let usage = usage | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        Ok(Self { label, buffer: gpu.buffer(label, 16, usage)? })
    }

    /// Writes from the beginning.
    ///
    /// # Errors
    /// Those of [`Gpu::buffer`].
    pub(crate) fn fill(&mut self, gpu: &Gpu, bytes: &[u8]) -> Result<()> {
        self.make_room(gpu, bytes.len() as u64)?;
        gpu.queue.write_buffer(&self.buffer, 0, bytes);
        Ok(())
    }

    /// Ensures a size; the content is lost if the buffer is replaced.
    ///
    /// # Errors
    /// Those of [`Gpu::buffer`].
    pub(crate) fn make_room(&mut self, gpu: &Gpu, bytes: u64) -> Result<()> {
        if self.buffer.size() < bytes {
            self.buffer = gpu.buffer(self.label, bytes, self.buffer.usage())?;
        }
        Ok(())
    }
}
