//! The exact form: what each texel differs by from the one on its left, deflated as browsers can undo it (RFC 1951).

use std::io::{Read, Write};

use array::{Error, Result};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use render::{Rect, Slab};

/// Effort: more gains a few per cent, for several times the time.
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
    let encoded = encoded.map_err(|e| Error::internal(format!("expected to deflate a slab: {e}")))?;
    Ok([encoded, Vec::new()])
}

pub(super) fn decoded(rect: Rect, [texels, _]: [&[u8]; 2]) -> Result<Slab> {
    let expected = rect.pixels() * TEXEL;
    let mut rgba = Vec::new();
    // One more than there should be, to see whether there is more.
    let mut inflated = DeflateDecoder::new(texels).take(expected as u64 + 1);
    inflated.read_to_end(&mut rgba).map_err(|e| Error::corrupt(format!("expected a deflated slab: {e}")))?;
    if rgba.len() != expected {
        let found = rgba.len();
        return Err(Error::corrupt(format!("expected a slab of {expected} bytes, found {found} or more")));
    }
    for row in rgba.chunks_exact_mut(rect.width as usize * TEXEL) {
        for at in TEXEL..row.len() {
            row[at] = row[at].wrapping_add(row[at - TEXEL]);
        }
    }
    Ok(Slab { rect, rgba })
}
