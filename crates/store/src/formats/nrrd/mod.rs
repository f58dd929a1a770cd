//! NRRD files: a text header, and data after it, in a separate file or in several: raw, compressed by gzip or bzip2, or written as
//! text.
//!
//! NRRD names the fastest axis first; descriptions here name it last, so `sizes: nx ny nz` is shape `[nz, ny, nx]`. World space is
//! RAS: directions in LPS or LAS are converted. The reference is pynrrd, and the definition of the format
//! (<https://teem.sourceforge.net/nrrd/format.html>) if pynrrd refuses a file.

mod data;
mod header;
mod space;
mod text;

use std::sync::Arc;

use array::{Attribute, Axis, AxisKind, Coordinates, DType, LeftOut, Result};

use self::header::{AxisFields, NrrdHeader, NrrdType};
use crate::formats::common::flat::FlatArray;
use crate::formats::common::flat_file::{FlatFile, FlatFileArray, HeaderInfo};
use crate::{FileBytes, OpenOptions, formats::common::describe};

/// Longest NRRD header, bytes.
const MAX_NRRD_HEADER_BYTES: usize = 1 << 20;

/// Whether these are the first bytes of an NRRD file.
pub(crate) fn recognizes(head: &[u8]) -> bool {
    head.starts_with(b"NRRD0")
}

/// Opens a file by its header, attached or detached.
///
/// # Errors
/// `Corrupt`, `Unsupported`, with the expected and the found field of the header.
pub(crate) fn open(file: Arc<FileBytes>, options: &OpenOptions) -> Result<FlatFile> {
    let head = file.head(MAX_NRRD_HEADER_BYTES)?;
    let header = NrrdHeader::parse(&head)?;
    let mut about = HeaderInfo { format: "NRRD", ..HeaderInfo::default() };
    let NrrdType::Numbers(dtype) = header.stored else {
        let what = "blocks of bytes (type `block`), of which the header says no more than their size";
        about.left_out.push(LeftOut { name: "image".into(), what: what.into(), value: None });
        return FlatFile::new(&[&file], about, Vec::new());
    };
    let shape: Vec<u64> = header.sizes.iter().rev().copied().collect();
    // Also that the sizes are possible.
    let size_bytes = FlatArray::c_order(0, dtype.size_bytes(), &shape)?.end();
    let found = data::find(&file, &header, dtype, size_bytes, options)?;
    let layout = FlatArray::c_order(found.offset, dtype.size_bytes(), &shape)?;
    let info = describe_array(&header, dtype, &shape);
    about.identity = found.identity;
    FlatFile::new(
        &[&file],
        about,
        vec![FlatFileArray { info, layout, store: found.store, access: found.access }],
    )
}

fn describe_array(header: &NrrdHeader, dtype: DType, shape: &[u64]) -> array::ArrayInfo {
    let kinds = axis_kinds(header);
    let axes: Vec<Axis> =
        (0..header.sizes.len()).rev().map(|number| axis(header, number, kinds[number])).collect();
    let world = space::world(header, &kinds, &axes);
    let mut info = describe::array("image", dtype, axes, shape, None);
    info.units.clone_from(&header.sample_units);
    info.levels[0].world_from_voxel = world.world_from_voxel;
    info.world_units = world.units;
    info.notes = world.notes;
    info.attributes =
        header.attributes.iter().map(|(k, v)| (k.clone(), Attribute::Text(v.clone()))).collect();
    if space::is_anatomical(&header.space) {
        info.set_anatomical();
    }
    if let Some(names) = header.axes.iter().zip(&header.sizes).find_map(|(axis, &size)| channels(axis, size))
    {
        info.attributes.insert("channels".into(), names);
    }
    info
}

/// Names of the samples of an axis whose kind defines them.
fn channels(axis: &AxisFields, size: u64) -> Option<Attribute> {
    let texts = |names: &[&str]| Attribute::Texts(names.iter().map(|&name| name.to_owned()).collect());
    match (axis.kind.as_str(), size) {
        ("rgb-color", 3) | ("rgba-color", 4) => Some(describe::color_names(size)),
        ("hsv-color", 3) => Some(texts(&["hue", "saturation", "value"])),
        ("complex", 2) => Some(texts(&["real", "imag"])),
        _ => None,
    }
}

fn axis(header: &NrrdHeader, number: usize, kind: AxisKind) -> Axis {
    let (described, size) = (&header.axes[number], header.sizes[number]);
    let name = match described.label.as_str() {
        "" => default_name(kind, header.sizes.len() - 1 - number),
        label => label.to_owned(),
    };
    let by_direction = || described.direction.as_deref().map(space::length);
    let step = space::known_step(described, size).or_else(by_direction);
    let step = step.filter(|s| s.is_finite() && *s != 0.0);
    let origin = space::first(described, size);
    let coordinates = step.map_or(Coordinates::Index, |step| Coordinates::Regular { origin, step });
    let space_unit = if kind.is_spatial() { header.space_units.first().cloned() } else { None };
    let units =
        if described.units.is_empty() { space_unit.unwrap_or_default() } else { described.units.clone() };
    Axis { name, kind, units, coordinates }
}

fn default_name(kind: AxisKind, position: usize) -> String {
    match kind {
        AxisKind::Time => "t".into(),
        AxisKind::Z => "z".into(),
        AxisKind::Y => "y".into(),
        AxisKind::X => "x".into(),
        AxisKind::Channel => "c".into(),
        AxisKind::Other => format!("dim{position}"),
    }
}

/// Kinds of the axes, in the order of the file: by direction in space, else by the kind of the axis, else by its position. If some axes
/// have directions, an axis without one is not spatial.
fn axis_kinds(header: &NrrdHeader) -> Vec<AxisKind> {
    let is_oriented = header.axes.iter().any(|a| a.direction.is_some());
    let mut space = [AxisKind::X, AxisKind::Y, AxisKind::Z, AxisKind::Time].into_iter();
    let mut kind = |axis: &AxisFields| match (axis.kind.as_str(), &axis.direction) {
        ("time", _) => AxisKind::Time,
        (_, Some(direction)) if is_in_space(direction) => {
            space.next().filter(|kind| kind.is_spatial()).unwrap_or(AxisKind::Other)
        }
        (_, Some(_)) if space::has_time(&header.space) => AxisKind::Time,
        (_, Some(_)) => AxisKind::Other,
        ("" | "???" | "none" | "domain" | "space", None) if is_oriented => AxisKind::Other,
        ("" | "???" | "none" | "domain" | "space", None) => space.next().unwrap_or(AxisKind::Other),
        _ => AxisKind::Channel,
    };
    let mut kinds: Vec<AxisKind> = header.axes.iter().map(&mut kind).collect();
    for number in 1..kinds.len() {
        if kinds[..number].contains(&kinds[number]) {
            kinds[number] = AxisKind::Other;
        }
    }
    kinds
}

/// Whether a direction leads along the first three axes of space more than along those behind them.
fn is_in_space(direction: &[f64]) -> bool {
    let (space, rest) = direction.split_at(direction.len().min(3));
    space::length(space) >= space::length(rest)
}

#[cfg(test)]
mod tests;
