//! Surfaces of FreeSurfer: triangles, big-endian, relative to the middle of a volume that the footer describes.

use array::{Error, Result};

use crate::Geometry;
use crate::bytes::{FileReader, NumberType};
use crate::model::check_count;
use crate::{MAX_TRIANGLES, MAX_VERTICES};

/// First bytes of a surface of triangles.
const MAGIC: [u8; 3] = [0xFF, 0xFF, 0xFE];
/// Longest comment, bytes.
const MAX_COMMENT_BYTES: usize = 4096;
/// Bytes behind the triangles that are looked at.
const MAX_FOOTER_BYTES: usize = 65_536;
/// Tag of the number that tells whether positions are in scanner space.
const USES_REAL_RAS: u32 = 2;

pub(crate) fn recognizes(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

pub(crate) fn read(bytes: &[u8]) -> Result<Geometry> {
    let mut reader = FileReader::new(bytes, true);
    if reader.take(3)? != MAGIC {
        return Err(Error::unsupported(
            "expected a surface of triangles by FreeSurfer, found other bytes; `mris_convert` makes one",
        ));
    }
    // A comment that ends with two line feeds.
    reader.line(MAX_COMMENT_BYTES)?;
    if reader.rest().first() == Some(&b'\n') {
        reader.take(1)?;
    }
    let [vertices, triangles] = [reader.u32()? as usize, reader.u32()? as usize];
    check_count(vertices, MAX_VERTICES, "vertices")?;
    check_count(triangles, MAX_TRIANGLES, "triangles")?;
    let positions = reader.numbers(NumberType::F32, vertices * 3)?;
    let mut geometry = Geometry { positions: positions.as_chunks().0.to_vec(), ..Geometry::default() };
    let corners = reader.take(triangles * 12)?.as_chunks::<4>().0;
    let corners: Vec<u32> = corners.iter().map(|word| u32::from_be_bytes(*word)).collect();
    geometry.triangles = corners.as_chunks().0.to_vec();
    let rest = reader.rest();
    match footer(&rest[..rest.len().min(MAX_FOOTER_BYTES)]) {
        Some(Footer { is_scanner: true, .. }) => {}
        Some(Footer { middle: Some([x, y, z]), .. }) => {
            geometry.transform(&[[1.0, 0.0, 0.0, x], [0.0, 1.0, 0.0, y], [0.0, 0.0, 1.0, z]]);
        }
        _ => geometry.notes.push(
            "It does not state the middle of its volume; its positions are taken as they are.".to_owned(),
        ),
    }
    geometry.finished("FreeSurfer surface")
}

/// Facts at the end of a surface.
struct Footer {
    is_scanner: bool,
    /// Middle of the volume in scanner space.
    middle: Option<[f64; 3]>,
}

fn footer(bytes: &[u8]) -> Option<Footer> {
    let mut reader = FileReader::new(bytes, true);
    let is_scanner = bytes.len() >= 8 && reader.u32().ok()? == USES_REAL_RAS && reader.u32().ok()? != 0;
    let text = String::from_utf8_lossy(bytes);
    let value = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
        line.split_once('=').map(|(_, value)| value.trim().to_owned())
    };
    let is_valid = value("valid").or_else(|| {
        // Binary numbers may stand before it on its line.
        let at = text.find("valid = ")?;
        text[at + 8..].split_whitespace().next().map(str::to_owned)
    });
    let is_valid = is_valid.is_some_and(|valid| valid.starts_with('1'));
    let middle = value("cras").filter(|_| is_valid).and_then(|value| {
        let numbers: Vec<f64> = value.split_whitespace().map_while(|word| word.parse().ok()).collect();
        <[f64; 3]>::try_from(numbers).ok().filter(|middle| middle.iter().all(|v| v.is_finite()))
    });
    Some(Footer { is_scanner, middle })
}
