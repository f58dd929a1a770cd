//! Painter of pictures: the caster for the CPU, or the one on a graphics processor where there is one that
//! can draw the scene.
//!
//! Chooses by what was asked for and by what the scene needs; draws nothing itself. A graphics processor that fails is not
//! asked again: from then on the CPU draws, and one line in the log says why.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use array::{Error, ErrorKind, Result};
use gpu::{Accept, GpuCaster, MissingBlocks};
use render::{Cancel, RenderedImage, Scene, Snapshot};

use crate::tasks::blocking;

/// Device on which pictures are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DrawDevice {
    /// On a graphics processor where there is one, never one in software; what it cannot draw the CPU draws.
    #[default]
    Auto,
    /// On the CPU.
    Cpu,
    /// On a graphics processor, also one in software; what it cannot draw is an error. One that fails is replaced by the CPU.
    Gpu,
}

/// Resources of a session for drawing: memory and a painter.
#[derive(Clone, Debug)]
pub struct DrawResources {
    /// For blocks that are ready to be drawn and blocks on their way, bytes.
    pub(crate) memory_bytes: u64,
    pub(crate) painter: Arc<Painter>,
}

impl DrawResources {
    /// Opens a graphics processor where that is asked for. It may hold as much as `memory_bytes` in its own memory; one in
    /// software gets half of the memory here. Takes some 100 ms where there is one.
    ///
    /// # Errors
    /// With [`DrawDevice::Gpu`] where there is none, or none that will do.
    ///
    /// # Cancel safety
    /// Safe: what was opened is closed.
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
            is_demanded: device == DrawDevice::Gpu,
            has_failed: AtomicBool::new(false),
            reason: Mutex::new(reason),
        };
        Ok(Self { memory_bytes, painter: Arc::new(painter) })
    }

    /// Returns the painter.
    #[must_use]
    pub fn painter(&self) -> &Arc<Painter> {
        &self.painter
    }
}

/// All on the CPU.
impl From<u64> for DrawResources {
    fn from(memory_bytes: u64) -> Self {
        Self { memory_bytes, painter: Arc::default() }
    }
}

/// Draws each picture by the caster for the CPU or by the one on a graphics processor.
#[derive(Debug, Default)]
pub struct Painter {
    opened: Option<GpuCaster>,
    is_demanded: bool,
    has_failed: AtomicBool,
    /// Why the CPU draws, where a graphics processor was to.
    reason: Mutex<Option<String>>,
}

impl Painter {
    /// Why the CPU drew the last picture although a graphics processor was to, or why there is none.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_reason(&self, reason: Option<String>) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// There is a graphics processor, whether it draws or not.
    #[must_use]
    pub fn has_gpu(&self) -> bool {
        self.opened.is_some()
    }

    /// True while a graphics processor draws what it can.
    #[must_use]
    pub fn is_gpu(&self) -> bool {
        self.opened.is_some() && !self.has_failed.load(Ordering::Relaxed)
    }

    /// Gives the graphics processor back, if there is one: from then on the CPU draws, as where one fails.
    pub fn close(&self) {
        self.opened.iter().for_each(GpuCaster::close);
    }

    /// Draws; blocks the thread. `missing_blocks`: what a graphics processor does where it has not all blocks yet.
    ///
    /// # Errors
    /// Those of [`render::cast`]; with [`DrawDevice::Gpu`] also for what the graphics processor cannot draw.
    pub(crate) fn cast(
        &self,
        scene: &Scene,
        blocks: &Snapshot,
        missing_blocks: MissingBlocks,
        cancel: &Cancel,
    ) -> Result<RenderedImage> {
        let Some(caster) = self.opened.as_ref().filter(|_| self.is_gpu()) else {
            return render::cast(scene, blocks, cancel);
        };
        match caster.cast(scene, blocks, missing_blocks, cancel) {
            Ok((frame, _)) => {
                self.set_reason(None);
                Ok(frame)
            }
            Err(error) => self.instead(error, scene, blocks, cancel),
        }
    }

    /// Handles an error of the graphics processor: draws the picture on the CPU, or returns the error.
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

/// Its name.
impl fmt::Display for Painter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.opened.as_ref().filter(|_| self.is_gpu()) {
            Some(caster) if caster.is_software() => write!(f, "{}, in software", caster.name()),
            Some(caster) => f.write_str(caster.name()),
            None => f.write_str("CPU"),
        }
    }
}
