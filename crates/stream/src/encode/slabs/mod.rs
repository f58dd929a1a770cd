//! File format of slabs: their planes, and their images in the smaller of two forms.
//!
//! All numbers are little-endian. Header: `CSLB`; version (1), form (0 exact, 1 JPEG), cutting (0 planes, 1
//! to 3 across x, y, z) and projection (0 perspective, 1 orthographic), a byte each; count, width and height
//! of the camera's image in texels (`u32`); eye, target, up, field of view in radians or height in world
//! units, guard, normal and borders of slabs (`f64`). Then, for each slab, nearest first: its rectangle
//! (left, top, width, height) and the bytes of its two parts (`u32`). Then the parts, slab by slab: in the
//! exact form the texels and an empty part, in the JPEG form color and opacity.
//!
//! Both forms are tried: JPEG halves smooth volumes and enlarges those with edges.

mod exact;
mod film_slabs;
mod lossy;

use std::io::{self, ErrorKind, Read, Take};

use array::{Error, Result};
use bytes::Bytes;
use render::{Camera, Cutting, ImageSize, Rect, Slab, Slabs};
use view::{Projection, SpaceAxis};

pub use film_slabs::FilmSlabs;

const MAGIC: &[u8; 4] = b"CSLB";
const VERSION: u8 = 1;

/// Encoding of the images of slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlabForm {
    /// Lossless: differences of each texel from the one on its left, deflated.
    Exact,
    /// Two JPEG images of quality 95: colors at full resolution, and opacity.
    Jpeg,
}

/// Encodes slabs in the smaller form; returns the form and the bytes.
///
/// # Errors
/// `Corrupt` for invalid slabs ([`Slabs::check`]); `Internal` when an encoder fails.
pub fn encode_slabs(slabs: &Slabs) -> Result<(SlabForm, Bytes)> {
    let exact = encode_slabs_as(slabs, SlabForm::Exact)?;
    let jpeg = encode_slabs_as(slabs, SlabForm::Jpeg)?;
    Ok(if jpeg.len() < exact.len() { (SlabForm::Jpeg, jpeg) } else { (SlabForm::Exact, exact) })
}

/// Encodes slabs in one form.
///
/// # Errors
/// Those of [`encode_slabs`].
pub fn encode_slabs_as(slabs: &Slabs, form: SlabForm) -> Result<Bytes> {
    slabs.check()?;
    let mut jpeg = match form {
        SlabForm::Exact => None,
        SlabForm::Jpeg => Some(lossy::SlabCompressors::new()?),
    };
    let mut bytes = head(slabs, form);
    let mut parts = Vec::new();
    for slab in &slabs.slabs {
        let own = match &mut jpeg {
            _ if slab.rect.is_empty() => Default::default(),
            None => exact::encoded(slab)?,
            Some(jpeg) => jpeg.encoded(slab)?,
        };
        let Rect { left, top, width, height } = slab.rect;
        let too_large = |_| Error::internal("the image of a slab exceeds 4 GiB");
        for number in [left, top, width, height] {
            bytes.extend(number.to_le_bytes());
        }
        for part in own {
            bytes.extend(u32::try_from(part.len()).map_err(too_large)?.to_le_bytes());
            parts.extend(part);
        }
    }
    bytes.extend(parts);
    Ok(bytes.into())
}

fn head(slabs: &Slabs, form: SlabForm) -> Vec<u8> {
    let cutting = match slabs.cutting {
        Cutting::Planes => 0,
        Cutting::Axis(SpaceAxis::X) => 1,
        Cutting::Axis(SpaceAxis::Y) => 2,
        Cutting::Axis(SpaceAxis::Z) => 3,
    };
    let Camera { eye, target, up, projection, .. } = slabs.camera;
    let (projection, span) = match projection {
        Projection::Perspective { fov_y_rad } => (0, fov_y_rad),
        Projection::Orthographic { height_world } => (1, height_world),
    };
    let form = match form {
        SlabForm::Exact => 0,
        SlabForm::Jpeg => 1,
    };
    let mut bytes = [MAGIC.as_slice(), &[VERSION, form, cutting, projection]].concat();
    #[expect(clippy::cast_possible_truncation, reason = "at most `Slabs::MAX_COUNT`")]
    let count = slabs.slabs.len() as u32;
    for number in [count, slabs.size.width, slabs.size.height] {
        bytes.extend(number.to_le_bytes());
    }
    let numbers = eye.into_iter().chain(target).chain(up).chain([span, slabs.guard]).chain(slabs.normal);
    for number in numbers.chain(slabs.borders.iter().copied()) {
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

/// Decodes the output of [`encode_slabs`].
///
/// # Errors
/// Those of [`decode_slabs_from`].
pub fn decode_slabs(bytes: &[u8]) -> Result<Slabs> {
    decode_slabs_from(bytes)
}

/// Decodes the output of [`encode_slabs`] from a reader. Takes memory for the texels, at most
/// [`Slabs::MAX_TEXELS`], and for one slab at a time its JPEG and a byte per texel, whatever the input says.
///
/// # Errors
/// `Corrupt` for invalid input; `Unsupported` for another version; `Io`.
pub fn decode_slabs_from(bytes: impl Read) -> Result<Slabs> {
    let mut reader = SlabReader(bytes);
    let (form, mut slabs, count) = reader.head()?;
    let table = (0..count).map(|_| {
        Ok(([reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?], [reader.u32()?, reader.u32()?]))
    });
    let table: Vec<([u32; 4], [u32; 2])> = table.collect::<Result<_>>()?;
    for ([left, top, width, height], lengths) in table {
        let rect = Rect { left, top, width, height };
        if !rect.is_within(slabs.size) {
            return Err(Error::corrupt(format!("expected a slab within {:?}, found {rect:?}", slabs.size)));
        }
        let mut slab = reader.part(lengths[0], |texels| match form {
            _ if rect.is_empty() => Ok(Slab::default()),
            SlabForm::Exact => exact::decoded(rect, texels),
            SlabForm::Jpeg => lossy::colors(rect, texels),
        })?;
        reader.part(lengths[1], |texels| match form {
            SlabForm::Jpeg if !rect.is_empty() => lossy::opacity(&mut slab, texels),
            SlabForm::Exact | SlabForm::Jpeg => Ok(()),
        })?;
        slabs.slabs.push(slab);
    }
    slabs.check()?;
    Ok(slabs)
}

/// Returns `Corrupt` for invalid or truncated input, else `Io`.
fn failed(what: &str, e: io::Error) -> Error {
    match e.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            Error::corrupt(format!("cannot read {what}: {e}"))
        }
        _ => e.into(),
    }
}

/// Reader of the part of the input that has not been decoded yet.
struct SlabReader<R>(R);

impl<R: Read> SlabReader<R> {
    /// Decodes the next `length` bytes with `decode`; skips those that it leaves unread.
    fn part<T>(&mut self, length: u32, decode: impl FnOnce(&mut Take<&mut R>) -> Result<T>) -> Result<T> {
        let mut part = self.0.by_ref().take(length.into());
        let decoded = decode(&mut part)?;
        io::copy(&mut part, &mut io::sink())?;
        match part.limit() {
            0 => Ok(decoded),
            left => Err(Error::corrupt(format!("slabs end {left} bytes too early"))),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).map_err(|e| failed("slabs", e))?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn f64(&mut self) -> Result<f64> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    fn point(&mut self) -> Result<[f64; 3]> {
        Ok([self.f64()?, self.f64()?, self.f64()?])
    }

    /// Reads the header; returns the form, a set without slabs, and the number of slabs that follow.
    fn head(&mut self) -> Result<(SlabForm, Slabs, u32)> {
        let magic: [u8; 4] = self.array()?;
        let [version, form, cutting, projection] = self.array()?;
        if magic != *MAGIC {
            return Err(Error::corrupt(format!("expected slabs, which begin with `CSLB`, found {magic:?}")));
        }
        if version != VERSION {
            return Err(Error::unsupported(format!("expected slabs of version {VERSION}, found {version}")));
        }
        let unknown = |what: &str, code: u8| Error::corrupt(format!("unknown {what} of slabs: {code}"));
        let form = match form {
            0 => SlabForm::Exact,
            1 => SlabForm::Jpeg,
            _ => return Err(unknown("form", form)),
        };
        let cutting = match cutting {
            0 => Cutting::Planes,
            1 => Cutting::Axis(SpaceAxis::X),
            2 => Cutting::Axis(SpaceAxis::Y),
            3 => Cutting::Axis(SpaceAxis::Z),
            _ => return Err(unknown("cutting", cutting)),
        };
        let count = self.u32()?;
        let size = ImageSize { width: self.u32()?, height: self.u32()? };
        let [eye, target, up] = [self.point()?, self.point()?, self.point()?];
        let [span, guard] = [self.f64()?, self.f64()?];
        let projection = match projection {
            0 => Projection::Perspective { fov_y_rad: span },
            1 => Projection::Orthographic { height_world: span },
            _ => return Err(unknown("projection", projection)),
        };
        let camera = Camera { eye, target, up, projection, aside: 0.0 };
        size.check().map_err(|e| Error::corrupt(format!("slabs: {e}")))?;
        let texels = u64::from(size.width) * u64::from(size.height) * u64::from(count);
        if !(1..=Slabs::MAX_COUNT).contains(&count) || texels > Slabs::MAX_TEXELS {
            return Err(Error::corrupt(format!("invalid number of slabs: {count} of {size:?}")));
        }
        let normal = self.point()?;
        let borders = (0..=count).map(|_| self.f64()).collect::<Result<_>>()?;
        Ok((form, Slabs { cutting, camera, size, guard, normal, borders, slabs: Vec::new() }, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: [u32; 2] = [60, 40];
    /// Size at which headers do not matter.
    const LARGE: [u32; 2] = [600, 400];

    /// Makes slabs with a smooth or a noisy picture, and an empty slab.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes")]
    fn slabs(is_smooth: bool, [width, height]: [u32; 2]) -> Slabs {
        let rect = Rect { left: 3, top: 5, width, height };
        let texel = |i: usize| {
            let (x, y) = (i % width as usize, i / width as usize);
            let wave =
                ((x as f64 / 9.0).sin() * (y as f64 / 7.3 + x as f64 / 31.0).cos() * 90.0 + 100.0) as u8;
            let noise = (i.wrapping_mul(2_654_435_761) >> 7) as u8;
            let alpha = if is_smooth { wave } else { 255 * (noise >> 7) };
            [alpha / 2, alpha / 3, alpha, alpha]
        };
        let picture = Slab { rect, rgba: (0..rect.pixels()).flat_map(texel).collect() };
        Slabs {
            cutting: Cutting::Axis(SpaceAxis::Y),
            camera: Camera {
                eye: [1.0, 2.0, 3.0],
                target: [0.0; 3],
                up: [0.0, 0.0, 1.0],
                projection: Projection::Orthographic { height_world: 7.5 },
                aside: 0.0,
            },
            size: ImageSize { width: width + 40, height: height + 40 },
            guard: 0.05,
            normal: [0.0, 1.0, 0.0],
            borders: vec![-2.5, -2.0, 0.25, 1.0],
            slabs: vec![picture.clone(), Slab::default(), picture],
        }
    }

    #[test]
    fn the_exact_form_restores_every_texel_and_jpeg_approximately() {
        let slabs = slabs(true, SMALL);
        assert_eq!(decode_slabs(&encode_slabs_as(&slabs, SlabForm::Exact).unwrap()).unwrap(), slabs);
        let near = decode_slabs(&encode_slabs_as(&slabs, SlabForm::Jpeg).unwrap()).unwrap();
        let pairs = near.slabs[0].rgba.iter().zip(&slabs.slabs[0].rgba);
        assert!(pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap() <= 8);
        assert_eq!(Slabs { slabs: slabs.slabs.clone(), ..near }, slabs);
    }

    #[test]
    fn the_smaller_form_is_chosen() {
        for is_smooth in [true, false] {
            let (form, bytes) = encode_slabs(&slabs(is_smooth, LARGE)).unwrap();
            let sizes = [SlabForm::Exact, SlabForm::Jpeg]
                .map(|form| encode_slabs_as(&slabs(is_smooth, LARGE), form).unwrap().len());
            assert_eq!(bytes.len(), sizes[0].min(sizes[1]));
            assert_eq!(form == SlabForm::Jpeg, sizes[1] < sizes[0]);
            assert_eq!(form == SlabForm::Jpeg, is_smooth, "{sizes:?}");
        }
    }

    #[test]
    fn invalid_slabs_are_refused() {
        for form in [SlabForm::Exact, SlabForm::Jpeg] {
            let whole = encode_slabs_as(&slabs(true, SMALL), form).unwrap().to_vec();
            for length in (0..whole.len()).step_by(7) {
                assert!(decode_slabs(&whole[..length]).is_err(), "{length} of {} bytes", whole.len());
            }
            // A changed byte, above all in the header and the table, gives an error or valid slabs, never a panic.
            for at in (0..whole.len().min(260)).chain((260..whole.len()).step_by(11)) {
                for value in [0, 1, 0x7F, 0x80, 0xFF] {
                    let mut bytes = whole.clone();
                    bytes[at] = value;
                    if let Ok(slabs) = decode_slabs(&bytes) {
                        slabs.check().unwrap();
                    }
                }
            }
        }
        let whole = encode_slabs_as(&slabs(true, SMALL), SlabForm::Exact).unwrap().to_vec();
        let mut newer = whole.clone();
        newer[4] = 9;
        assert_eq!(decode_slabs(&newer).unwrap_err().kind(), array::ErrorKind::Unsupported);
    }

    #[test]
    fn a_slab_of_more_texels_than_its_rectangle_has_is_refused() {
        let mut whole = encode_slabs_as(&slabs(true, SMALL), SlabForm::Exact).unwrap().to_vec();
        // The height of the first slab, behind the head and four borders.
        let height = &mut whole[NORMAL + 24 + 4 * 8 + 12..][..4];
        assert_eq!(height, SMALL[1].to_le_bytes());
        height.copy_from_slice(&(SMALL[1] - 1).to_le_bytes());
        let error = decode_slabs(&whole).unwrap_err();
        assert!(
            error.kind() == array::ErrorKind::Corrupt && error.to_string().contains("found more"),
            "{error}"
        );
    }

    /// Offset at which the numbers of a head begin: after eight bytes and three integers.
    const NUMBERS: usize = 8 + 3 * 4;

    /// Offset of the normal: after eye, target, up, span and guard.
    const NORMAL: usize = NUMBERS + 11 * 8;

    #[test]
    fn non_finite_numbers_and_empty_sets_are_refused() {
        let whole = encode_slabs_as(&slabs(true, SMALL), SlabForm::Exact).unwrap().to_vec();
        for at in (NUMBERS..NORMAL + 24 + 4 * 8).step_by(8) {
            for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -f64::MAX] {
                let mut bytes = whole.clone();
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                let kind = decode_slabs(&bytes).map(drop).map_err(|e| e.kind());
                assert!(
                    value.is_finite() || kind == Err(array::ErrorKind::Corrupt),
                    "{at} {value}: {kind:?}"
                );
            }
        }
        let mut none = whole[..NORMAL + 24 + 8].to_vec();
        none[8..12].fill(0);
        assert_eq!(decode_slabs(&none).unwrap_err().kind(), array::ErrorKind::Corrupt);
        let empty = Slabs { slabs: Vec::new(), borders: vec![0.0], ..slabs(true, SMALL) };
        assert_eq!(empty.check().unwrap_err().kind(), array::ErrorKind::Corrupt);
    }
}
