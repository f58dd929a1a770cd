//! Shapefiles (`.shp`): points, lines and the outlines of polygons. Attributes in the `.dbf` are not read.

use array::{Error, Result};

use crate::bytes::{FileReader, NumberType};
use crate::model::check_count;
use crate::{Geometry, GeometrySpace, MAX_TRIANGLES, MAX_VERTICES};

const FILE_CODE: u32 = 9994;
/// Bytes of the header that follow its length.
const HEADER_REST_BYTES: usize = 72;

pub(crate) fn read(bytes: &[u8]) -> Result<Geometry> {
    let mut reader = FileReader::new(bytes, true);
    if reader.u32()? != FILE_CODE {
        return Err(Error::corrupt("expected a shapefile, found other bytes"));
    }
    reader.take(24 + HEADER_REST_BYTES)?;
    let mut geometry = Geometry { is_flat: true, ..Geometry::default() };
    let mut left_out = 0u64;
    while reader.left() >= 8 {
        reader.u32()?;
        let words = reader.u32()? as usize;
        let content = reader.take(words.saturating_mul(2))?;
        if !add(&mut FileReader::new(content, false), &mut geometry)? {
            left_out += 1;
        }
    }
    if left_out > 0 {
        geometry.notes.push(format!("{left_out} of its shapes are of kinds that are not drawn."));
    }
    // Beyond these limits coordinates are projected, and need the world of an array in the same projection.
    let is_degrees = geometry.positions.iter().all(|p| p[0].abs() <= 360.5 && p[1].abs() <= 90.5);
    geometry.space = if is_degrees { GeometrySpace::Geographic } else { GeometrySpace::World };
    geometry.finished("shapefile")
}

/// Adds one shape; false if its kind is not drawn.
fn add(reader: &mut FileReader<'_>, geometry: &mut Geometry) -> Result<bool> {
    let kind = reader.u32()?;
    let has_z = (10..20).contains(&kind);
    geometry.is_flat &= !has_z;
    match kind % 10 {
        0 => {}
        1 if kind < 30 => {
            let [x, y] = pair(reader)?;
            let z = if has_z { reader.number(NumberType::F64)? } else { 0.0 };
            let vertex = geometry.add_vertex([x, y, z])?;
            geometry.points.push(vertex);
        }
        8 => {
            reader.take(32)?;
            let count = reader.u32()? as usize;
            let first = geometry.positions.len();
            add_vertices(reader, count, has_z, geometry)?;
            geometry.points.extend(indices(first, geometry.positions.len()));
        }
        3 | 5 => {
            reader.take(32)?;
            let [parts, count] = [reader.u32()? as usize, reader.u32()? as usize];
            check_count(parts, MAX_TRIANGLES, "parts of a shape")?;
            let starts = reader.numbers(NumberType::U32, parts)?;
            let first = geometry.positions.len();
            add_vertices(reader, count, has_z, geometry)?;
            let ends = starts.iter().skip(1).copied().chain([count as f64]);
            for (&from, to) in starts.iter().zip(ends) {
                if from > to || to > count as f64 {
                    return Err(Error::corrupt("expected increasing parts of a shape"));
                }
                let [from, to] = [from, to].map(|at| crate::bytes::index(at).map(|at| first + at as usize));
                geometry.add_line(indices(from?, to?))?;
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn indices(from: usize, to: usize) -> impl ExactSizeIterator<Item = u32> + Clone {
    (from..to).map(|at| u32::try_from(at).unwrap_or(u32::MAX))
}

fn pair(reader: &mut FileReader<'_>) -> Result<[f64; 2]> {
    Ok([reader.number(NumberType::F64)?, reader.number(NumberType::F64)?])
}

fn add_vertices(
    reader: &mut FileReader<'_>,
    count: usize,
    has_z: bool,
    geometry: &mut Geometry,
) -> Result<()> {
    check_count(geometry.positions.len() + count, MAX_VERTICES, "vertices")?;
    let flat = reader.numbers(NumberType::F64, count.saturating_mul(2))?;
    let heights = if has_z {
        reader.take(16)?;
        reader.numbers(NumberType::F64, count)?
    } else {
        Vec::new()
    };
    for (at, [x, y]) in flat.as_chunks().0.iter().enumerate() {
        geometry.add_vertex([*x, *y, heights.get(at).copied().unwrap_or(0.0)])?;
    }
    Ok(())
}
