//! NRRD files: a text header, and raw or gzip data behind it or in a file of its own.
//!
//! NRRD names the fastest axis first; descriptions here name it last, so `sizes: nx ny nz` is shape
//! `[nz, ny, nx]`. World space is RAS: directions in LPS or LAS are turned.

mod header;
mod space;

use std::sync::Arc;

use array::{Attribute, Axis, AxisKind, Coordinates, Error, Result};

use self::header::{Encoding, Header, Skip};
use crate::flat::FlatArray;
use crate::flat_file::{self, About, FlatFile, Packing, Placed};
use crate::{ByteStore, FileBytes, OpenOptions, describe};

/// Longest header, bytes.
const MAX_HEADER_BYTES: usize = 1 << 20;

/// Whether these are the first bytes of an NRRD file.
pub(crate) fn recognises(head: &[u8]) -> bool {
    head.starts_with(b"NRRD0")
}

/// Opens a file by its header, attached or detached.
///
/// # Errors
/// `Corrupt`, `Unsupported`: what was expected of the header and what was found.
pub(crate) fn open(file: Arc<FileBytes>, options: &OpenOptions) -> Result<FlatFile> {
    let head = file.head(MAX_HEADER_BYTES)?;
    let header = Header::parse(&head)?;
    let detached = header.data_file.as_deref().map(|name| file.open_beside(name)).transpose()?;
    let (data, after_header) = match &detached {
        Some(data) => (data, 0),
        None => (&file, header.end as u64),
    };
    let start = skip_lines(data, after_header, header.skip.lines)?;
    let (packing, offset) = place(&header, data, start)?;
    let shape: Vec<u64> = header.sizes.iter().rev().copied().collect();
    let place = FlatArray::c_order(offset, header.dtype.size_bytes(), &shape)?;
    let (store, access) = flat_file::store(data, packing, &place, options)?;
    let placed = Placed { info: describe_array(&header, &shape), place, store, access };
    let about = About { format: "NRRD", ..About::default() };
    let mut files: Vec<&FileBytes> = vec![&file];
    files.extend(detached.as_deref());
    FlatFile::new(&files, about, vec![placed])
}

/// Where the elements begin: bytes are skipped before plain data, but within unpacked data.
fn place(header: &Header, data: &FileBytes, start: u64) -> Result<(Packing, u64)> {
    match (header.encoding, header.skip) {
        (Encoding::Raw, Skip { bytes: Some(bytes), .. }) => Ok((Packing::Plain, start.saturating_add(bytes))),
        (Encoding::Gzip, Skip { bytes: Some(bytes), .. }) => Ok((Packing::Gzip { start }, bytes)),
        (Encoding::Raw, Skip { bytes: None, .. }) => {
            let size = header.size_bytes()?;
            let from_end = data.size_bytes().checked_sub(size).ok_or_else(|| {
                Error::corrupt(format!(
                    "expected at least {size} bytes of data, found a file of {}",
                    data.size_bytes()
                ))
            })?;
            Ok((Packing::Plain, from_end))
        }
        (Encoding::Gzip, Skip { bytes: None, .. }) => {
            Err(Error::unsupported("expected `byte skip: -1` only with raw encoding, found it with gzip"))
        }
    }
}

/// The byte after `lines` line ends.
fn skip_lines(data: &FileBytes, start: u64, lines: u64) -> Result<u64> {
    if lines == 0 {
        return Ok(start);
    }
    let head = data.head(MAX_HEADER_BYTES)?;
    let from = usize::try_from(start).unwrap_or(usize::MAX);
    let ends = head.iter().enumerate().skip(from).filter(|(_, b)| **b == b'\n').map(|(i, _)| i as u64 + 1);
    let wanted = usize::try_from(lines - 1).unwrap_or(usize::MAX);
    ends.into_iter().nth(wanted).ok_or_else(|| {
        Error::corrupt(format!(
            "expected {lines} lines to skip in the first {MAX_HEADER_BYTES} bytes, found fewer"
        ))
    })
}

fn describe_array(header: &Header, shape: &[u64]) -> array::ArrayInfo {
    let kinds = axis_kinds(header);
    let axes = (0..header.sizes.len()).rev().map(|number| axis(header, number, kinds[number])).collect();
    let mut info = describe::array("image", header.dtype, axes, shape, None);
    info.units.clone_from(&header.sample_units);
    info.levels[0].world_from_voxel = space::world_from_voxel(header, &kinds);
    let from_axes =
        header.axes.iter().zip(&kinds).find(|(_, k)| k.is_spatial()).map(|(a, _)| a.units.clone());
    info.world_units = header.space_units.first().cloned().or(from_axes).unwrap_or_default();
    info.attributes =
        header.attributes.iter().map(|(k, v)| (k.clone(), Attribute::Text(v.clone()))).collect();
    info
}

fn axis(header: &Header, number: usize, kind: AxisKind) -> Axis {
    let described = &header.axes[number];
    let name = match described.label.as_str() {
        "" => default_name(kind, header.sizes.len() - 1 - number),
        label => label.to_owned(),
    };
    let step = described.spacing.or_else(|| described.direction.as_deref().map(space::length));
    let step = step.filter(|s| s.is_finite() && *s != 0.0);
    let coordinates = step.map_or(Coordinates::Index, |step| Coordinates::Regular {
        origin: described.min.filter(|m| m.is_finite()).unwrap_or(0.0),
        step,
    });
    let space_unit = if kind.is_spatial() { header.space_units.first().cloned() } else { None };
    let units =
        if described.units.is_empty() { space_unit.unwrap_or_default() } else { described.units.clone() };
    Axis { name, kind, units, coordinates }
}

fn default_name(kind: AxisKind, place: usize) -> String {
    match kind {
        AxisKind::Time => "t".into(),
        AxisKind::Z => "z".into(),
        AxisKind::Y => "y".into(),
        AxisKind::X => "x".into(),
        AxisKind::Channel => "c".into(),
        AxisKind::Other => format!("dim{place}"),
    }
}

/// What each axis means, in the file's order: by its kind, else by having a direction in space, else by
/// its place.
fn axis_kinds(header: &Header) -> Vec<AxisKind> {
    let oriented = header.axes.iter().any(|a| a.direction.is_some());
    let mut space = [AxisKind::X, AxisKind::Y, AxisKind::Z, AxisKind::Time].into_iter();
    let mut kind = |axis: &header::AxisFields| match axis.kind.as_str() {
        "time" => AxisKind::Time,
        "" | "???" | "none" if oriented && axis.direction.is_none() => AxisKind::Other,
        "" | "???" | "none" | "domain" | "space" => space.next().unwrap_or(AxisKind::Other),
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

#[cfg(test)]
mod tests;
