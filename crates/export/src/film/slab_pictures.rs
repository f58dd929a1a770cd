//! Slabs from a file as other cameras see them: pictures without the data, nor a way to them.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use array::{Error, Result};
use render::{Camera, ImageSize, Slabs};
use stream::decode_slabs_from;
use view::View;

use super::sink::{PictureFileKind, PictureSink, check_numbered, check_place};
use super::{FilmOptions, JOURNEY_PICTURES, Journey, MAX_PICTURES, PICTURES_SUCH_AS, check_several};

/// Ending of files of slabs.
const EXTENSION: &str = "slabs";
/// Largest file of slabs, bytes: as many texels as a set may have, which hardly ever grow when they are deflated, and the rest.
const MAX_FILE_BYTES: u64 = Slabs::MAX_TEXELS * 4 + (64 << 20);

/// From where slabs are looked at.
#[derive(Clone, Debug, Default)]
pub struct SlabPictureRequest {
    /// A view as JSON: its camera and background are taken.
    pub view: Option<String>,
    /// A camera as JSON, instead of the view's; by default that of the picture that the slabs are beside.
    pub camera: Option<String>,
    /// How the camera travels from the first picture to the last one.
    pub journey: Option<Journey>,
    /// How many pictures; by default 1, or 100 of a journey.
    pub pictures: Option<u32>,
    /// How a film is written.
    pub track: FilmOptions,
}

/// Whether a location is a file of slabs on this machine, by its name.
#[must_use]
pub fn is_slabs(location: &str) -> bool {
    has_ending(Path::new(location)) && Path::new(location).is_file()
}

/// Whether slabs can be written to a file of this name, in the folder that it names.
///
/// # Errors
/// `Invalid`, `NotFound` and `Denied`, saying what works.
pub fn check_slabs_output(path: &Path) -> Result<()> {
    if has_ending(path) {
        return check_place(path);
    }
    let what = format!("expected a file for slabs that ends in .{EXTENSION}, found `{}`", path.display());
    Err(Error::invalid(what))
}

fn has_ending(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(EXTENSION))
}

/// Reads a file of slabs.
///
/// # Errors
/// `Io`; `TooLarge`, `Corrupt` and `Unsupported` for what is none.
pub fn read_slabs(path: &Path) -> Result<Slabs> {
    let named = |e: Error| e.context(format!("`{}`", path.display()));
    let file = File::open(path).map_err(|e| named(e.into()))?;
    let size = file.metadata().map_err(|e| named(e.into()))?.len();
    if size > MAX_FILE_BYTES {
        let what = format!("expected slabs in at most {MAX_FILE_BYTES} bytes, found {size}");
        return Err(named(Error::too_large(what)));
    }
    decode_slabs_from(BufReader::new(file)).map_err(named)
}

/// Draws slabs into files as [`draw`](super::draw) draws data; says how many pictures that were. Blocks the thread.
///
/// # Errors
/// `Invalid` for what cannot be asked for, `Io`. Pictures that were finished before stay.
pub fn draw_slabs(
    slabs: &Slabs,
    request: &SlabPictureRequest,
    size: ImageSize,
    output: &Path,
    mut progress: impl FnMut(u64, u64),
) -> Result<u32> {
    let kind = PictureFileKind::of(output)?;
    let view = request.view.as_deref().map_or_else(|| Ok(View::default()), View::parse)?;
    let cameras = cameras(slabs, request, &view)?;
    let count = u32::try_from(cameras.len()).unwrap_or(u32::MAX);
    if kind.is_film() {
        check_several(count, request.pictures, "let")?;
    }
    check_numbered(output, count, PICTURES_SUCH_AS)?;
    let mut sink = PictureSink::open(output, kind, size, &request.track)?;
    for (number, camera) in (0..count).zip(&cameras) {
        progress(number.into(), count.into());
        sink.take(number, &slabs.draw(camera, size)?, view.background)?;
    }
    sink.finish()?;
    Ok(count)
}

/// One for each picture.
fn cameras(slabs: &Slabs, request: &SlabPictureRequest, view: &View) -> Result<Vec<Camera>> {
    let read = |text: &str| {
        serde_json::from_str::<Camera>(text).map_err(|e| {
            Error::invalid(format!(
                "expected a camera in JSON, as names of sides mean nothing without the data, found `{text}`: {e}"
            ))
        })
    };
    let of_view = || view.camera.as_ref().map(|camera| read(&serde_json::json!(camera).to_string()));
    let first = match &request.camera {
        Some(text) => read(text)?,
        None => of_view().transpose()?.unwrap_or_else(|| slabs.of_picture()),
    };
    let count = request.pictures.unwrap_or(if request.journey.is_some() { JOURNEY_PICTURES } else { 1 });
    if count == 0 || count > MAX_PICTURES {
        return Err(Error::invalid(format!("expected 1 to {MAX_PICTURES} pictures, found {count}")));
    }
    match &request.journey {
        Some(journey) => journey.cameras(&first, count),
        None => Ok(vec![first; count as usize]),
    }
}
