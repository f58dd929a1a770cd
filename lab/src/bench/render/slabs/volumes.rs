//! Whole volumes in memory, each with its default transfer function.

use std::path::Path;
use std::sync::Arc;

use array::{Error, Priority, Result, Source, Urgency, want};
use client::directories::UserDirectories;
use client::url::Location;
use futures::StreamExt;
use node::assemble::{Context, assemble};
use node::memory::MemoryBudget;
use render::{BlockPool, ImageSize, Inserted, OpacityPoint, TransferFunction, VolumeView};
use stream::{DrawDevice, DrawResources, StillRequest, render_still};
use view::View;

use super::super::super::options::Options;
use super::super::scenes::FUNCTIONS;
use super::super::volume::BenchVolume;

/// Memory for reading files and for blocks, bytes.
const MEMORY_BYTES: u64 = 2 << 30;
/// Voxels a side of the computed volume.
const SIDE: u64 = 256;
const QUICK_SIDE: u64 = 96;

/// A volume of which every block of the finest level is in memory.
pub(super) struct Loaded {
    pub(super) name: String,
    pub(super) view: Arc<VolumeView>,
    pub(super) pool: BlockPool,
    /// The default transfer function.
    pub(super) first_look: TransferFunction,
}

/// Loads the given files, or the computed volume.
pub(super) async fn load(options: &Options, folder: &Path) -> Result<Vec<Loaded>> {
    let mut loaded = Vec::new();
    for file in &options.files {
        loaded.push(real(file, folder).await?);
    }
    if loaded.is_empty() {
        let volume = BenchVolume::new(if options.is_quick { QUICK_SIDE } else { SIDE }, false)?;
        let (view, pool, first_look) = (Arc::clone(&volume.view), volume.pool()?, FUNCTIONS[1].transfer());
        loaded.push(Loaded { name: format!("computed, {}^3", volume.side), view, pool, first_look });
    }
    Ok(loaded)
}

async fn real(file: &Path, folder: &Path) -> Result<Loaded> {
    let location: Location = file.to_string_lossy().parse()?;
    let context = Context::new(UserDirectories::below(folder), MemoryBudget::viewing(MEMORY_BYTES), None);
    let stack = assemble(&location, &context).await?;
    let dataset = stack.source.describe().await?;
    let (array, info, position) = View::first_of(&dataset)?.place_in(&dataset)?;
    let view = Arc::new(VolumeView::new(&dataset, array, &position)?);
    let shape: Vec<String> = view.levels[0].shape.iter().map(ToString::to_string).collect();
    let name = format!("{} ({}, {})", dataset.name, shape.join(" x "), info.dtype);
    let first_look = first_look(&stack.source).await?;
    let pool = whole(&stack.source, &view).await?;
    Ok(Loaded { name, view, pool, first_look })
}

/// Every block of the finest level.
async fn whole(source: &Arc<dyn Source>, view: &Arc<VolumeView>) -> Result<BlockPool> {
    let [nz, ny, nx] = view.levels[0].grid;
    let places = (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [z, y, x])));
    let (wants, _handles): (Vec<_>, Vec<_>) =
        places.map(|at| want(view.key(0, at), Urgency::of(Priority::NORMAL))).unzip();
    let limit_bytes = usize::try_from(MEMORY_BYTES).unwrap_or(usize::MAX);
    let pool = BlockPool::new(Arc::clone(view), limit_bytes);
    let mut blocks = source.blocks(wants);
    while let Some(completion) = blocks.next().await {
        let placed = pool.insert(&*completion.result?)?;
        if !matches!(placed, Inserted::Placed | Inserted::NotCovered) {
            return Err(Error::internal(format!(
                "expected a volume of at most {limit_bytes} bytes: {placed:?}"
            )));
        }
    }
    Ok(pool)
}

async fn first_look(source: &Arc<dyn Source>) -> Result<TransferFunction> {
    let resources = DrawResources::open(DrawDevice::Cpu, MEMORY_BYTES / 4).await?;
    let size = ImageSize { width: 64, height: 64 };
    let request = StillRequest { view: None, choice: None, size, resources };
    let still = render_still(Arc::clone(source), request, |_, _| {}).await?;
    let chosen = still.view.transfer;
    let chosen = chosen.ok_or_else(|| Error::internal("expected a picture to have a transfer function"))?;
    let point = |&[value, opacity]: &[f64; 2]| OpacityPoint { value, opacity };
    let opacity = chosen.opacity.iter().map(point).collect();
    Ok(TransferFunction {
        color_map: chosen.map,
        reversed: chosen.reversed,
        scale: chosen.scale,
        range: chosen.range,
        opacity,
    })
}
