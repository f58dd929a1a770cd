//! GPU device: selection, capabilities and errors.

use std::sync::Arc;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use parking_lot::Mutex;

/// Longest wait for one dispatch: drivers give up long before.
const DISPATCH_TIMEOUT: Duration = Duration::from_secs(60);
/// Device memory that atlases leave free, bytes: for rays and colors of the largest dispatch (192 MiB), and
/// for all small buffers.
const SPARE_BYTES: u64 = 256 << 20;

/// Acceptable kinds of GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Hardware only: software is slower than the CPU caster.
    Hardware,
    /// Hardware, or software if there is none.
    Any,
}

/// Open device.
#[derive(Debug)]
pub(crate) struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) limits: wgpu::Limits,
    pub(crate) name: String,
    pub(crate) is_software: bool,
    first_error: Arc<Mutex<Option<String>>>,
}

impl Gpu {
    /// Opens the best acceptable GPU.
    ///
    /// # Errors
    /// `NotFound` if there is none, with the names of rejected ones; `Unsupported` if it lacks required
    /// features.
    pub(crate) fn open(accept: Accept) -> Result<Self> {
        if accept == Accept::Hardware && !may_have_hardware() {
            return Err(none(&[]));
        }
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
        descriptor.flags = wgpu::InstanceFlags::empty();
        let instance = wgpu::Instance::new(descriptor);
        let mut adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
        adapters.sort_by_key(|adapter| rank(adapter.get_info().device_type));
        let will_do = |a: &wgpu::Adapter| accept == Accept::Any || !is_software(a.get_info().device_type);
        let names: Vec<String> = adapters.iter().map(|a| format!("`{}`", a.get_info().name)).collect();
        let adapter = adapters.into_iter().find(will_do).ok_or_else(|| none(&names))?;
        Self::of(&adapter)
    }

    fn of(adapter: &wgpu::Adapter) -> Result<Self> {
        let info = adapter.get_info();
        let most = adapter.limits();
        let limits = wgpu::Limits {
            max_texture_dimension_3d: most.max_texture_dimension_3d,
            max_buffer_size: most.max_buffer_size,
            max_storage_buffer_binding_size: most.max_storage_buffer_binding_size,
            max_sampled_textures_per_shader_stage: most.max_sampled_textures_per_shader_stage,
            ..wgpu::Limits::default()
        };
        let descriptor = wgpu::DeviceDescriptor { required_limits: limits.clone(), ..Default::default() };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))
            .map_err(|error| Error::unsupported(format!("`{}` cannot be used: {error}", info.name)))?;
        let first_error = Arc::new(Mutex::new(None));
        let own_error = Arc::clone(&first_error);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            own_error.lock().get_or_insert_with(|| error.to_string());
        }));
        let own_error = Arc::clone(&first_error);
        device.set_device_lost_callback(move |reason, text| {
            own_error.lock().get_or_insert_with(|| format!("the device is lost ({reason:?}): {text}"));
        });
        let name = format!("{} ({:?})", info.name, info.backend);
        Ok(Self { device, queue, limits, name, is_software: is_software(info.device_type), first_error })
    }

    /// Fails if the device has reported an error; it cannot be used any more then.
    ///
    /// # Errors
    /// `Io` with the driver's message.
    pub(crate) fn check(&self) -> Result<()> {
        let first_error = self.first_error.lock();
        first_error.as_ref().map_or(Ok(()), |text| Err(self.failed(text)))
    }

    /// Returns the result of `create`; `None` if the device has no memory for it.
    fn within_memory<T>(&self, create: impl FnOnce() -> T) -> Option<T> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let created = create();
        pollster::block_on(scope.pop()).is_none().then_some(created)
    }

    /// Returns the result of `create`; `None` if the device has no memory for it and [`SPARE_BYTES`] more.
    pub(crate) fn with_spare<T>(&self, create: impl FnOnce() -> T) -> Option<T> {
        let spare = wgpu::BufferDescriptor {
            label: Some("spare"),
            size: SPARE_BYTES.min(self.limits.max_buffer_size),
            usage: wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        };
        self.within_memory(|| {
            let created = create();
            drop(self.device.create_buffer(&spare));
            created
        })
    }

    /// Creates a buffer.
    ///
    /// # Errors
    /// `TooLarge` if the device has no memory for it.
    pub(crate) fn buffer(&self, label: &str, size: u64, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer> {
        let descriptor =
            wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false };
        self.within_memory(|| self.device.create_buffer(&descriptor)).ok_or_else(|| {
            Error::too_large(format!(
                "expected {size} bytes for {label} in the memory of the graphics processor `{}`, found it full",
                self.name
            ))
        })
    }

    /// Waits until all submitted work is done, so that dropped resources are freed.
    ///
    /// # Errors
    /// Those of [`Gpu::check`].
    pub(crate) fn settle(&self) -> Result<()> {
        let submission = self.queue.submit([]);
        self.wait(submission)
    }

    fn wait(&self, submission: wgpu::SubmissionIndex) -> Result<()> {
        let wait =
            wgpu::PollType::Wait { submission_index: Some(submission), timeout: Some(DISPATCH_TIMEOUT) };
        self.device.poll(wait).map_err(|error| self.failed(&error.to_string()))?;
        self.check()
    }

    fn failed(&self, text: &str) -> Error {
        Error::new(ErrorKind::Io, format!("the graphics processor `{}` failed: {text}", self.name))
    }

    /// Reads the first bytes of buffers, once all submitted work is done. Waits for it.
    ///
    /// # Errors
    /// Those of [`Gpu::check`] and [`Gpu::buffer`].
    pub(crate) fn read(&self, buffers: &[(&wgpu::Buffer, u64)]) -> Result<Vec<Vec<u8>>> {
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ;
        let copy = |&(buffer, size): &(&wgpu::Buffer, u64)| {
            let copy = self.buffer("what comes back", size, usage)?;
            encoder.copy_buffer_to_buffer(buffer, 0, &copy, 0, size);
            Ok(copy)
        };
        let copies: Vec<wgpu::Buffer> = buffers.iter().map(copy).collect::<Result<_>>()?;
        let submission = self.queue.submit([encoder.finish()]);
        // Mapping errors are detected below.
        copies.iter().for_each(|copy| copy.map_async(wgpu::MapMode::Read, .., |_| {}));
        self.wait(submission)?;
        let bytes = |copy: &wgpu::Buffer| {
            let view = copy.get_mapped_range(..).map_err(|error| self.failed(&error.to_string()))?;
            Ok(view.to_vec())
        };
        copies.iter().map(bytes).collect()
    }
}

/// Returns false if the system has no device files of a GPU driver: loading all drivers just to find software
/// takes time.
fn may_have_hardware() -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    // Direct rendering; NVIDIA's own driver; Windows Subsystem for Linux.
    ["/dev/dri", "/dev/nvidiactl", "/dev/dxg"].iter().any(|path| std::path::Path::new(path).exists())
}

fn is_software(kind: wgpu::DeviceType) -> bool {
    !matches!(
        kind,
        wgpu::DeviceType::DiscreteGpu | wgpu::DeviceType::IntegratedGpu | wgpu::DeviceType::VirtualGpu
    )
}

/// Rank of device types, best first.
fn rank(kind: wgpu::DeviceType) -> u8 {
    match kind {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::VirtualGpu => 1,
        wgpu::DeviceType::IntegratedGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

fn none(names: &[String]) -> Error {
    let found = if names.is_empty() {
        "none (is a driver for Vulkan, Metal or DirectX 12 installed?)".to_owned()
    } else {
        format!("software only: {}", names.join(", "))
    };
    Error::not_found(format!("expected a graphics processor, found {found}"))
}
