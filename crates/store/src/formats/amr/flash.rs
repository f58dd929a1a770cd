//! Files of FLASH: each field is one array of all blocks, and further arrays hold the positions of the blocks.
//!
//! Blocks of all levels are in the file; coarser ones hold means of finer ones.

use std::sync::Arc;

use array::{
    ArrayInfo, Attributes, Dataset, Element, Error, Result, Selection, Target, elements, with_element,
};

use super::composite::{GridLocation, is_interpolated};
use super::grids::{Centering, GridDescription, MAX_GRIDS, MeshGrids};
use super::{MeshField, MeshStep};
use crate::{CancelFlag, Format};

/// Lower and upper corner of each block: x, y, z.
const BOXES: &str = "bounding box";
/// Data set that every FLASH file has besides the fields.
const LEVELS: &str = "refine level";

/// The fields of a file; none where it is of another kind.
///
/// # Errors
/// `Corrupt` where its blocks are no mesh, `TooLarge` where there are too many.
pub(super) fn fields(file: &dyn Format) -> Result<Vec<MeshField>> {
    let dataset = file.dataset();
    let (Ok((boxes, info)), Ok(_)) = (dataset.find(BOXES), dataset.find(LEVELS)) else {
        return Ok(Vec::new());
    };
    let &[blocks, 3, 2] = info.shape() else { return Ok(Vec::new()) };
    if blocks > MAX_GRIDS as u64 {
        return Err(Error::too_large(format!("expected at most {MAX_GRIDS} blocks, found {blocks}")));
    }
    let Some(cells) = cells(&dataset, blocks) else { return Ok(Vec::new()) };
    let corners = read(file, boxes, info)?;
    let described: Vec<GridDescription> =
        corners.chunks_exact(6).map(|block| described(block, cells)).collect();
    let grids = Arc::new(MeshGrids::new(&described, Centering::Cells, size_of::<f64>())?);
    let locations =
        |array| (0..blocks).map(|block| GridLocation { file: 0, array, entry: Some(block) }).collect();
    let field = |(array, info): (u32, &ArrayInfo)| MeshField {
        name: info.name.clone(),
        dtype: info.dtype,
        units: info.units.clone(),
        attributes: Attributes::new(),
        time: None,
        steps: vec![MeshStep { grids: Arc::clone(&grids), locations: locations(array) }],
    };
    let is_field = |info: &ArrayInfo| {
        let [b, z, y, x] = *info.shape() else { return false };
        b == blocks && [z, y, x] == cells
    };
    let arrays = (0u32..).zip(&dataset.arrays).filter(|(_, info)| is_field(info));
    Ok(arrays.map(field).collect())
}

/// Cells of each block, z, y, x: the least along each axis, as fields on faces have one more. Integers of some shape may be
/// anything; they are asked where there is nothing else.
fn cells(dataset: &Dataset, blocks: u64) -> Option<[u64; 3]> {
    let of = |array: &ArrayInfo| match *array.shape() {
        [b, z, y, x] if b == blocks && [z, y, x].iter().all(|&n| n > 0) => Some([z, y, x]),
        _ => None,
    };
    let has_floats = dataset.arrays.iter().any(|info| of(info).is_some() && is_interpolated(info.dtype));
    let asked = dataset.arrays.iter().filter(|info| !has_floats || is_interpolated(info.dtype));
    asked.filter_map(of).reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1]), a[2].min(b[2])])
}

/// Reads all values of a small array.
fn read(file: &dyn Format, array: u32, info: &ArrayInfo) -> Result<Vec<f64>> {
    let (target, region) = Target::new(info.shape(), info.dtype.size_bytes())?;
    file.read(array, 0, &Selection::all(info.shape()), region, &CancelFlag::default())?;
    let bytes = target.into_vec()?;
    Ok(with_element!(info.dtype.element(), T => {
        elements::<T>(&bytes, info.dtype.order()).map(Element::to_f64).collect()
    }))
}

/// A block from its corners: lower x, upper x, lower y, ...
#[expect(clippy::cast_precision_loss, reason = "cells of a block")]
fn described(corners: &[f64], cells: [u64; 3]) -> GridDescription {
    let along = |axis: usize| {
        let (lower, upper) = (corners[2 * (2 - axis)], corners[2 * (2 - axis) + 1]);
        (lower, (upper - lower) / cells[axis] as f64)
    };
    // A flat mesh has no extent along the axes that it lacks.
    let spacing = [0, 1, 2].map(|axis| match along(axis).1 {
        size if size == 0.0 && cells[axis] == 1 => 1.0,
        size => size,
    });
    GridDescription { lower: [0, 1, 2].map(|axis| along(axis).0), spacing, count: cells }
}
