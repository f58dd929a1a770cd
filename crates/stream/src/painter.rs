//! Choice between the caster on the CPU and the one on a GPU.
//!
//! The choice depends on the requested device and on the scene. A GPU that fails is not used again: the CPU
//! draws from then on, and one line in the log tells why.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use array::{Error, ErrorKind, Result};
use gpu::{Accept, GpuCaster, MissingBlocks};
use render::{Cancel, DrawnRows, RenderedImage, Scene, Snapshot};

use crate::geometry::GeometryFetch;
use crate::tasks::{blocking, lower_priority};

/// Least memory of a session, bytes: a few of the largest usual blocks, loaded and in flight.
pub const MIN_MEMORY_BYTES: u64 = 8 << 20;

/// Steps of `nice` by which threads for pictures in the background stand behind those of viewers: the most that Linux has.
const BACKGROUND_NICE_STEPS: i32 = 19;

/// Device on which pictures are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DrawDevice {
    /// Hardware GPU if there is one, never a software one; the CPU draws what the GPU cannot.
    #[default]
    Auto,
    /// CPU.
    Cpu,
    /// GPU, also a software one; what it cannot draw is an error. A GPU that fails is replaced by the CPU.
    Gpu,
}

/// Resources of a session for drawing: memory and a painter.
#[derive(Clone)]
pub struct DrawResources {
    /// Memory for blocks that are loaded or in flight, bytes.
    pub(crate) memory_bytes: u64,
    pub(crate) painter: Arc<Painter>,
    /// Source of the geometry that views name; `None` if there is none.
    pub(crate) geometry: Option<GeometryFetch>,
}

impl DrawResources {
    /// Opens a GPU if requested. It may use `memory_bytes` of its own memory; a software GPU gets half of
    /// this process's memory. Takes about 100 ms if there is a GPU.
    ///
    /// # Errors
    /// `NotFound` and others with [`DrawDevice::Gpu`] if there is no suitable GPU.
    ///
    /// # Cancel safety
    /// Safe: an opened GPU is closed.
    pub async fn open(device: DrawDevice, memory_bytes: u64) -> Result<Self> {
        blocking(move || Self::new(device, memory_bytes)).await?
    }

    fn new(device: DrawDevice, memory_bytes: u64) -> Result<Self> {
        let mut reason = None;
        let opened = match device {
            DrawDevice::Cpu => None,
            DrawDevice::Auto => match GpuCaster::open(Accept::Hardware, memory_bytes) {
                Ok(caster) => Some(caster),
                Err(error) => {
                    reason = Some(error.to_string());
                    None
                }
            },
            DrawDevice::Gpu => Some(GpuCaster::open(Accept::Any, memory_bytes)?),
        };
        let shared = opened.as_ref().is_some_and(GpuCaster::is_software);
        if let Some(caster) = opened.as_ref().filter(|_| shared) {
            caster.set_limit(memory_bytes / 2);
        }
        let memory_bytes = if shared { memory_bytes / 2 } else { memory_bytes };
        let painter = Painter {
            opened,
            background: None,
            is_demanded: device == DrawDevice::Gpu,
            has_failed: AtomicBool::new(false),
            reason: Mutex::new(reason),
        };
        Ok(Self { memory_bytes, painter: Arc::new(painter), geometry: None })
    }

    /// Returns these resources with a source of the geometry that views name.
    #[must_use]
    pub fn with_geometry(self, fetch: GeometryFetch) -> Self {
        Self { geometry: Some(fetch), ..self }
    }

    /// Returns resources for pictures that nobody waits for at the screen: the CPU, on threads that take turns behind those
    /// of other pictures, and blocks that are requested after theirs.
    ///
    /// # Errors
    /// `Io` if the threads cannot be started.
    pub fn in_background(memory_bytes: u64) -> Result<Self> {
        let threads = rayon::ThreadPoolBuilder::new()
            .thread_name(|number| format!("saving-{number}"))
            .start_handler(|_| lower_priority(BACKGROUND_NICE_STEPS))
            .build()
            .map_err(|e| {
                Error::new(ErrorKind::Io, format!("threads for a picture cannot be started: {e}"))
            })?;
        let painter = Painter { background: Some(threads), ..Painter::default() };
        Ok(Self { memory_bytes, painter: Arc::new(painter), geometry: None })
    }

    /// Returns the resources of one of several pictures that are drawn at the same time. Each gets at least the memory that a
    /// picture needs, if these resources have it.
    #[must_use]
    pub fn divided(self, pictures: u64) -> Self {
        let least = MIN_MEMORY_BYTES.min(self.memory_bytes);
        Self { memory_bytes: (self.memory_bytes / pictures.max(1)).max(least), ..self }
    }

    /// Returns the painter.
    #[must_use]
    pub fn painter(&self) -> &Arc<Painter> {
        &self.painter
    }
}

impl fmt::Debug for DrawResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory_bytes, painter, geometry } = self;
        f.debug_struct("DrawResources")
            .field("memory_bytes", memory_bytes)
            .field("painter", painter)
            .field("geometry", &geometry.is_some())
            .finish()
    }
}

/// Resources of the CPU only.
impl From<u64> for DrawResources {
    fn from(memory_bytes: u64) -> Self {
        Self { memory_bytes, painter: Arc::default(), geometry: None }
    }
}

/// Draws each picture on the CPU or on a GPU.
#[derive(Debug, Default)]
pub struct Painter {
    opened: Option<GpuCaster>,
    /// Threads for pictures in the background; others are drawn by the threads that all share.
    background: Option<rayon::ThreadPool>,
    is_demanded: bool,
    has_failed: AtomicBool,
    /// Reason why the CPU draws although a GPU was requested.
    reason: Mutex<Option<String>>,
}

impl Painter {
    /// Returns the reason why the CPU drew the last picture although a GPU was requested, or why there is no
    /// GPU.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_reason(&self, reason: Option<String>) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// Returns true if a GPU is open, whether it draws or not.
    #[must_use]
    pub fn has_gpu(&self) -> bool {
        self.opened.is_some()
    }

    /// Returns true while a GPU draws what it can.
    #[must_use]
    pub fn is_gpu(&self) -> bool {
        self.opened.is_some() && !self.has_failed.load(Ordering::Relaxed)
    }

    /// Closes the GPU, if there is one: from then on the CPU draws.
    pub fn close(&self) {
        self.opened.iter().for_each(GpuCaster::close);
    }

    /// Draws a picture; blocks the thread. `missing_blocks`: behavior of a GPU that does not have all blocks
    /// yet.
    ///
    /// # Errors
    /// Those of [`render::cast`]; with [`DrawDevice::Gpu`] also for what the GPU cannot draw.
    pub(crate) fn cast(
        &self,
        scene: &Scene,
        blocks: &Snapshot,
        missing_blocks: MissingBlocks,
        cancel: &Cancel,
    ) -> Result<RenderedImage> {
        let Some(caster) = self.opened.as_ref().filter(|_| self.is_gpu()) else {
            return self.on_cpu(|| render::cast(scene, blocks, cancel));
        };
        match caster.cast(scene, blocks, missing_blocks, cancel) {
            Ok((frame, _)) => {
                self.set_reason(None);
                Ok(frame)
            }
            Err(error) => self.instead(error, scene, blocks, cancel),
        }
    }

    /// Draws rows of a picture on the CPU; blocks the thread.
    ///
    /// # Errors
    /// Those of [`render::cast_rows`]; `Unsupported` with [`DrawDevice::Gpu`].
    pub(crate) fn cast_rows(
        &self,
        scene: &Scene,
        rows: Range<u32>,
        blocks: &Snapshot,
        cancel: &Cancel,
    ) -> Result<DrawnRows> {
        if self.is_demanded {
            return Err(Error::unsupported(
                "pictures of this size are drawn on the CPU only; `--device auto` or `--device cpu` draws it",
            ));
        }
        if self.has_gpu() {
            self.set_reason(Some("pictures of this size are drawn there only".into()));
        }
        self.on_cpu(|| render::cast_rows(scene, rows, blocks, cancel))
    }

    /// Returns true if pictures are drawn in the background.
    pub(crate) fn is_background(&self) -> bool {
        self.background.is_some()
    }

    fn on_cpu<T: Send>(&self, draw: impl FnOnce() -> T + Send) -> T {
        match &self.background {
            Some(threads) => threads.install(draw),
            None => draw(),
        }
    }

    /// Handles an error of the GPU: draws the picture on the CPU, or returns the error.
    fn instead(
        &self,
        error: Error,
        scene: &Scene,
        blocks: &Snapshot,
        cancel: &Cancel,
    ) -> Result<RenderedImage> {
        match error.kind() {
            ErrorKind::Unsupported | ErrorKind::TooLarge if self.is_demanded => {
                Err(error.context("`--device auto` or `--device cpu` draws it"))
            }
            ErrorKind::Unsupported | ErrorKind::TooLarge => {
                self.set_reason(Some(error.to_string()));
                render::cast(scene, blocks, cancel)
            }
            ErrorKind::Io => {
                self.set_reason(Some(error.to_string()));
                if !self.has_failed.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "pictures are drawn on the CPU from now on");
                }
                render::cast(scene, blocks, cancel)
            }
            _ => Err(error),
        }
    }
}

/// Writes the name of the device that draws.
impl fmt::Display for Painter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.opened.as_ref().filter(|_| self.is_gpu()) {
            Some(caster) if caster.is_software() => write!(f, "{}, in software", caster.name()),
            Some(caster) => f.write_str(caster.name()),
            None => f.write_str("CPU"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_pictures_side_by_side_each_have_the_memory_that_a_picture_needs() {
        let share = |bytes: u64| DrawResources::from(bytes).divided(10).memory_bytes;
        assert_eq!(share(20 * MIN_MEMORY_BYTES), 2 * MIN_MEMORY_BYTES);
        assert_eq!(share(4 * MIN_MEMORY_BYTES), MIN_MEMORY_BYTES);
        assert_eq!(share(MIN_MEMORY_BYTES - 1), MIN_MEMORY_BYTES - 1, "too little stays too little");
    }
}
