//! Exact form of slabs: differences of each texel from the one on its left, deflated (RFC 1951, which
//! browsers decode).

use std::io::{Read, Write};

use array::{Error, Result};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use render::{Rect, Slab};

use super::failed;

/// Deflate level: higher ones save a few per cent for several times the time.
const LEVEL: u32 = 3;
const TEXEL: usize = 4;

pub(super) fn encoded(slab: &Slab) -> Result<[Vec<u8>; 2]> {
    let mut differences = slab.rgba.clone();
    for row in differences.chunks_exact_mut(slab.rect.width as usize * TEXEL) {
        for at in (TEXEL..row.len()).rev() {
            row[at] = row[at].wrapping_sub(row[at - TEXEL]);
        }
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
    let encoded = encoder.write_all(&differences).and_then(|()| encoder.finish());
    let encoded = encoded.map_err(|e| Error::internal(format!("cannot deflate a slab: {e}")))?;
    Ok([encoded, Vec::new()])
}

pub(super) fn decoded(rect: Rect, texels: impl Read) -> Result<Slab> {
    let mut rgba = vec![0; rect.pixels() * TEXEL];
    let mut inflated = DeflateDecoder::new(texels);
    inflated.read_exact(&mut rgba).map_err(|e| failed("a deflated slab", e))?;
    if inflated.read(&mut [0]).map_err(|e| failed("a deflated slab", e))? > 0 {
        return Err(Error::corrupt(format!("expected a slab of {} bytes, found more", rgba.len())));
    }
    for row in rgba.chunks_exact_mut(rect.width as usize * TEXEL) {
        for at in TEXEL..row.len() {
            row[at] = row[at].wrapping_add(row[at - TEXEL]);
        }
    }
    Ok(Slab { rect, rgba })
}
