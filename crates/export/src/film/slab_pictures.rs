//! Pictures of slabs from a file by other cameras: without the data, and without a connection.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use array::{Error, Result};
use render::{Camera, ImageSize, Slabs};
use stream::decode_slabs_from;
use view::View;

use super::sink::{PictureFileKind, PictureSink, check_folder, check_numbered};
use super::{FilmOptions, JOURNEY_PICTURES, Journey, MAX_PICTURES, PICTURES_SUCH_AS, check_several};

/// Extension of files of slabs.
const EXTENSION: &str = "slabs";
/// Maximum size of a file of slabs, in bytes: for the maximum number of texels, which rarely grow when deflated, and
/// the header.
const MAX_FILE_BYTES: u64 = Slabs::MAX_TEXELS * 4 + (64 << 20);

/// Request for pictures of slabs.
#[derive(Clone, Debug, Default)]
pub struct SlabPictureRequest {
    /// View as JSON, of which camera and background are used.
    pub view: Option<String>,
    /// Camera as JSON, instead of the view's; by default that of the picture that the slabs belong to.
    pub camera: Option<String>,
    /// Motion of the camera from the first picture to the last one.
    pub journey: Option<Journey>,
    /// Number of pictures; by default 1, or 100 for a journey.
    pub pictures: Option<u32>,
    /// Options of a film.
    pub film: FilmOptions,
}

/// Returns whether a location is a file of slabs on this machine, by its name.
#[must_use]
pub fn is_slabs(location: &str) -> bool {
    has_ending(Path::new(location)) && Path::new(location).is_file()
}

/// Checks that slabs can be written to a file of this name, in its folder.
///
/// # Errors
/// `Invalid`, `NotFound` and `Denied`, with valid forms.
pub fn check_slabs_output(path: &Path) -> Result<()> {
    if has_ending(path) {
        return check_folder(path);
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
/// `Io`; `TooLarge`, `Corrupt` and `Unsupported` for other files.
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

/// Draws slabs into files as [`draw`](super::draw) draws data; returns the number of pictures. Blocks the thread.
///
/// # Errors
/// `Invalid` for an invalid request, `Io`. Pictures that were finished before are kept.
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
        check_several(count, request.pictures, "move")?;
    }
    check_numbered(output, count, PICTURES_SUCH_AS)?;
    let mut sink = PictureSink::open(output, kind, size, &request.film, false)?;
    for (number, camera) in (0..count).zip(&cameras) {
        progress(number.into(), count.into());
        sink.take(number, &slabs.draw(camera, size)?, view.background, &[])?;
    }
    sink.finish()?;
    Ok(count)
}

/// Returns one camera for each picture.
fn cameras(slabs: &Slabs, request: &SlabPictureRequest, view: &View) -> Result<Vec<Camera>> {
    let read = |text: &str| {
        serde_json::from_str::<Camera>(text).map_err(|e| {
            Error::invalid(format!(
                "expected a camera in JSON (names of sides need the data, which slabs lack), found `{text}`: {e}"
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
