//! STL: triangles without shared vertices, in text or binary. Equal corners become one vertex.

use std::collections::HashMap;

use array::{Error, Result};

use crate::bytes::{FileReader, NumberType};
use crate::model::{check_count, excerpt};
use crate::{Geometry, MAX_TRIANGLES};

/// Bytes before the number of triangles of a binary file.
const HEADER_BYTES: usize = 80;
/// Bytes of a line of text that are looked at.
const MAX_LINE_BYTES: usize = 4_096;
/// Bytes of a triangle: normal, three corners, two bytes of color.
const TRIANGLE_BYTES: usize = 50;

pub(crate) fn read(bytes: &[u8]) -> Result<Geometry> {
    let mut builder = Builder::default();
    if is_binary(bytes) {
        builder.read_binary(bytes)?;
    } else {
        builder.read_text(bytes)?;
    }
    let mut geometry = builder.geometry;
    let header = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]);
    if header.contains("SPACE=LPS") {
        geometry.flip_lps();
    }
    geometry.finished("STL")
}

/// Returns whether the size is that of a binary file; text may begin in the same way.
fn is_binary(bytes: &[u8]) -> bool {
    let count = bytes
        .get(HEADER_BYTES..HEADER_BYTES + 4)
        .and_then(|word| word.try_into().ok())
        .map(u32::from_le_bytes);
    let size = count.map(|count| HEADER_BYTES as u64 + 4 + u64::from(count) * TRIANGLE_BYTES as u64);
    size == Some(bytes.len() as u64) || size.is_some() && !bytes.starts_with(b"solid")
}

#[derive(Default)]
struct Builder {
    geometry: Geometry,
    known: HashMap<[u64; 3], u32>,
}

impl Builder {
    fn read_binary(&mut self, bytes: &[u8]) -> Result<()> {
        let mut reader = FileReader::new(bytes, false);
        reader.take(HEADER_BYTES)?;
        let count = reader.u32()? as usize;
        check_count(count, MAX_TRIANGLES, "triangles")?;
        for _ in 0..count {
            let numbers =
                FileReader::new(reader.take(TRIANGLE_BYTES)?, false).numbers(NumberType::F32, 12)?;
            let [_normal, corners @ ..] = numbers.as_chunks::<3>().0 else { continue };
            self.add(corners)?;
        }
        Ok(())
    }

    fn read_text(&mut self, bytes: &[u8]) -> Result<()> {
        if !bytes.trim_ascii_start().starts_with(b"solid") {
            return Err(Error::corrupt("expected an STL file in text or binary, found neither"));
        }
        let mut corners = Vec::new();
        for line in bytes.split(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(&line[..line.len().min(MAX_LINE_BYTES)]);
            let mut words = line.split_whitespace();
            match words.next() {
                Some("vertex") => {
                    let numbers: Vec<f64> = words.map_while(|word| word.parse().ok()).collect();
                    let Ok(corner) = <[f64; 3]>::try_from(numbers) else {
                        return Err(Error::corrupt(format!(
                            "expected `vertex` and three numbers, found `{}`",
                            excerpt(line.trim())
                        )));
                    };
                    // Of more, the last three are taken.
                    if corners.len() == 3 {
                        corners.remove(0);
                    }
                    corners.push(corner);
                }
                Some("endfacet") => {
                    self.add(&corners)?;
                    corners.clear();
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a triangle of at most three corners.
    fn add(&mut self, corners: &[[f64; 3]]) -> Result<()> {
        let mut indices = Vec::with_capacity(3);
        for corner in corners {
            // 0 and -0 are the same place.
            let key = corner.map(|v| (v + 0.0).to_bits());
            let index = match self.known.get(&key) {
                Some(&index) => index,
                None => self.geometry.add_vertex(*corner)?,
            };
            self.known.insert(key, index);
            indices.push(index);
        }
        self.geometry.add_polygon(&indices)
    }
}
