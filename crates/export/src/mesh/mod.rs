//! `get --iso`: an isosurface as a file of triangles. The array is read part by part; the mesh is in memory as a whole.

mod formats;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::{ArrayInfo, Error, Priority, Result, Selection, Source};
use render::{Mesh, Mesher};
use wire::ops::BlockPlace;

use crate::bounded_scan::{PARTS_IN_MEMORY, Scan, ScanPart};
use crate::output::AtomicOutput;
use crate::selection_text::ArraySelection;
use formats::MeshKind;

/// Divisor of the memory whose result is available for reading; the mesh takes the rest.
const PARTS_SHARE: u64 = 4;

/// Request for an isosurface.
#[derive(Clone, Debug)]
pub struct MeshRequest {
    /// The volume, or a part of it.
    pub selection: ArraySelection,
    /// Level to read from; 0 is full resolution.
    pub level: u8,
    /// Decoded isovalue.
    pub value: f64,
    /// Output file; ends in `.ply`, `.glb` or `.vtp`.
    pub output: PathBuf,
    /// Maximum memory for parts and mesh together, in bytes.
    pub memory_bytes: u64,
}

/// Report of the mesh that was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeshReport {
    /// Number of vertices.
    pub vertices: usize,
    /// Number of triangles.
    pub triangles: usize,
    /// Minimum and maximum of the values that were read; `None` if all are missing.
    pub range: Option<(f64, f64)>,
}

/// Writes the surface; calls `on_progress` with the completed and total numbers of voxels.
///
/// # Errors
/// The errors of the source; `Invalid` for an unknown extension, or if the selection is not a volume; `TooLarge` if the
/// mesh does not fit in the memory; `Io`.
///
/// # Cancel safety
/// Dropping the future leaves no file.
pub async fn export(
    source: Arc<dyn Source>,
    request: &MeshRequest,
    mut on_progress: impl FnMut(u64, u64) + Send,
) -> Result<MeshReport> {
    let kind = MeshKind::of(&request.output)?;
    let dataset = source.describe().await?;
    let (number, array, resolved) = request.selection.resolve(&dataset, request.level)?;
    let axes = space_of(array, &resolved.selection)?;
    let mesher = mesher(array, request, &resolved.selection, axes)?;
    let place = BlockPlace {
        dataset: dataset.id,
        generation: dataset.generation,
        array: number,
        level: request.level,
    };
    let overlap: Vec<bool> = (0..array.axes.len()).map(|axis| axes.contains(&axis)).collect();
    let scan = Scan::new(source, Arc::clone(&dataset), &place, Some(resolved.selection), Priority::NORMAL)?;
    let total = scan.elements();
    let part_bytes = request.memory_bytes / PARTS_SHARE / PARTS_IN_MEMORY;
    let add =
        move |(mesher, range): &mut (Mesher, Option<(f64, f64)>), part: &ScanPart, array: &ArrayInfo| {
            let shape = part.selection.shape();
            let shape = axes.map(|axis| usize::try_from(shape[axis]).unwrap_or(usize::MAX));
            let values = part.values(array)?;
            *range = values.iter().fold(*range, |range, &value| widened(range, value));
            mesher.add(axes.map(|axis| part.start[axis]), shape, &values)
        };
    let begun = (mesher, None);
    let (mesher, range) =
        scan.fold(part_bytes, &overlap, begun, add, |done| on_progress(done.min(total), total)).await?;
    let output = request.output.clone();
    let written = tokio::task::spawn_blocking(move || write(&mesher.finish(), kind, &output)).await;
    let (vertices, triangles) =
        written.map_err(|e| Error::internal(format!("the writer of the mesh panicked: {e}")))??;
    Ok(MeshReport { vertices, triangles, range })
}

/// Extends a range of values by a value, unless that is missing.
fn widened(range: Option<(f64, f64)>, value: f64) -> Option<(f64, f64)> {
    if value.is_nan() {
        return range;
    }
    Some(range.map_or((value, value), |(least, greatest)| (least.min(value), greatest.max(value))))
}

/// Returns the axes z, y, x of the selection: those of space, or the last three if there are none; all others must have
/// one element.
fn space_of(array: &ArrayInfo, selection: &Selection) -> Result<[usize; 3]> {
    let shape = selection.shape();
    let not_a_volume = || {
        Error::invalid(format!(
            "an isosurface needs a volume (three axes of space, one element on all others), found shape {shape:?} of `{}`",
            array.name
        ))
    };
    let [z, y, x] = match array.spatial_axes() {
        [Some(z), Some(y), Some(x)] => [z, y, x],
        [None, None, None] if shape.len() >= 3 => [shape.len() - 3, shape.len() - 2, shape.len() - 1],
        _ => return Err(not_a_volume()),
    };
    let is_single = |axis: usize| [z, y, x].contains(&axis) || shape[axis] == 1;
    if !(0..shape.len()).all(is_single) || [z, y, x].iter().any(|&axis| shape[axis] < 2) {
        return Err(not_a_volume());
    }
    Ok([z, y, x])
}

fn mesher(
    array: &ArrayInfo,
    request: &MeshRequest,
    selection: &Selection,
    axes: [usize; 3],
) -> Result<Mesher> {
    let ranges = axes.map(|axis| selection.ranges()[axis]);
    let [z, y, x] = ranges;
    let level = array.level(request.level)?;
    // Voxel i of the selection is voxel `start + i * step` of the level.
    let steps = [x, y, z].map(|r| r.step as f64);
    let map = level.world_from_voxel.coarsened(steps, [x, y, z].map(|r| r.start as f64));
    let rest = request.memory_bytes - request.memory_bytes / PARTS_SHARE;
    let max_bytes = usize::try_from(rest).unwrap_or(usize::MAX);
    Mesher::new(request.value, ranges.map(|r| r.count), map, max_bytes)
}

/// Writes the file; returns the numbers of vertices and triangles.
fn write(mesh: &Mesh, kind: MeshKind, output: &Path) -> Result<(usize, usize)> {
    let draft = AtomicOutput::beside(output)?;
    let written = std::fs::File::create(&draft.path).map_err(Error::from).and_then(|file| {
        let mut to = std::io::BufWriter::new(file);
        kind.write(mesh, &mut to)?;
        std::io::Write::flush(&mut to).map_err(Error::from)
    });
    written.map_err(|e| draft.failed(e))?;
    draft.keep()?;
    Ok((mesh.positions.len(), mesh.triangles.len()))
}
