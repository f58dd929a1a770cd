//! Outputs of pictures: numbered files, or a film.

use std::path::{Path, PathBuf};

use array::{Error, ErrorKind, Result};
use render::{Background, Image, ImageSize, PngText};
use rustix::fs::{Access, access};
use stream::{Av1, FilmQuality, H264, check_film};

use crate::output::AtomicOutput;
use crate::output::mp4::{DecoderSetup, Mp4, VideoCodec};
use crate::output::webm::WebM;

/// Options of a film.
#[derive(Clone, Copy, Debug)]
pub struct FilmOptions {
    /// Frame rate, in pictures per second.
    pub pictures_per_sec: f64,
    /// Quality of the encoding; only for films.
    pub quality: FilmQuality,
    /// Codec of the film.
    pub codec: VideoCodec,
}

impl Default for FilmOptions {
    /// 25 pictures per second, H.264.
    fn default() -> Self {
        Self { pictures_per_sec: 25.0, quality: FilmQuality::default(), codec: VideoCodec::default() }
    }
}

/// Kind of file to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PictureFileKind {
    /// 8 bits, over the view's background.
    Png,
    /// Floats without background, linear light.
    Exr,
    /// A film.
    Mp4,
    /// A film of AV1.
    WebM,
}

impl PictureFileKind {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match extension.as_str() {
            "png" => Ok(Self::Png),
            "exr" => Ok(Self::Exr),
            "mp4" => Ok(Self::Mp4),
            "webm" => Ok(Self::WebM),
            _ => Err(Error::invalid(format!(
                "expected an output that ends in .png or .exr (pictures), or .mp4 or .webm (films), found `{}`",
                path.display()
            ))),
        }
    }

    pub(super) fn is_film(self) -> bool {
        matches!(self, Self::Mp4 | Self::WebM)
    }

    /// Encodes one picture.
    fn encode(self, image: &Image, background: Background, texts: &[PngText]) -> Result<Vec<u8>> {
        match self {
            Self::Exr => image.to_exr(),
            _ => image.to_png_with(background, texts),
        }
    }
}

/// Returns whether an output of this name is a film.
///
/// # Errors
/// `Invalid` for names of unsupported kinds, with the supported ones.
pub fn is_film(path: &Path) -> Result<bool> {
    PictureFileKind::of(path).map(PictureFileKind::is_film)
}

/// Checks that an output can be written, before any data are requested: its extension, its folder, and the pictures'
/// size and rate for a film.
///
/// # Errors
/// `Invalid`, `NotFound` and `Denied`, with valid forms.
pub fn check_output(path: &Path, size: ImageSize, film: &FilmOptions) -> Result<()> {
    let kind = PictureFileKind::of(path)?;
    if kind.is_film() {
        check_film(size, film.pictures_per_sec)?;
    }
    check_codec(kind, film.codec)?;
    check_folder(path)
}

/// Returns the codec of films of this name, unless another one is requested.
#[must_use]
pub fn default_codec(path: &Path) -> VideoCodec {
    match PictureFileKind::of(path) {
        Ok(PictureFileKind::WebM) => VideoCodec::Av1,
        _ => VideoCodec::default(),
    }
}

/// Checks that a file can have a codec.
fn check_codec(kind: PictureFileKind, codec: VideoCodec) -> Result<()> {
    if kind == PictureFileKind::WebM && codec != VideoCodec::Av1 {
        return Err(Error::invalid("WebM films are AV1; add `--codec av1`, or name the film .mp4"));
    }
    Ok(())
}

/// Checks that a file can be created in the folder of the output.
pub(super) fn check_folder(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Error::invalid(format!(
            "expected a file to write, found a folder of this name; choose another name: `{}`",
            path.display()
        )));
    }
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        return Err(Error::invalid(format!(
            "expected a file to write, found a pipe, socket or device of this name; choose another name: `{}`",
            path.display()
        )));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(Error::not_found(format!(
            "expected an output in an existing folder, found no folder `{}`; create it first, or choose another: `{}`",
            folder.display(),
            path.display()
        )));
    }
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|e| {
        let what = format!(
            "expected an output in a folder that may be written to, found `{}` ({e}); choose another: `{}`",
            folder.display(),
            path.display()
        );
        Error::new(ErrorKind::Denied, what)
    })
}

/// Output of pictures.
pub(super) enum PictureSink {
    Files { output: PathBuf, kind: PictureFileKind, is_transparent: bool },
    H264 { file: Box<Mp4>, encoder: Box<H264> },
    Av1 { file: Box<Mp4>, encoder: Box<Av1> },
    WebM { file: Box<WebM>, encoder: Box<Av1> },
}

impl PictureSink {
    pub(super) fn open(
        output: &Path,
        kind: PictureFileKind,
        size: ImageSize,
        film: &FilmOptions,
        is_transparent: bool,
    ) -> Result<Self> {
        if !kind.is_film() {
            return Ok(Self::Files { output: output.to_owned(), kind, is_transparent });
        }
        let FilmOptions { pictures_per_sec: rate, quality, codec } = *film;
        check_codec(kind, codec)?;
        if kind == PictureFileKind::WebM {
            let encoder = Box::new(Av1::new(size, rate, quality)?);
            let file = WebM::create(output, (size.width, size.height), rate, &encoder.configuration())?;
            return Ok(Self::WebM { file: Box::new(file), encoder });
        }
        let create = || Mp4::create(output, (size.width, size.height), rate, codec).map(Box::new);
        match codec {
            VideoCodec::H264 => {
                let encoder = Box::new(H264::new(size, rate, quality)?);
                Ok(Self::H264 { file: create()?, encoder })
            }
            VideoCodec::Av1 => {
                let encoder = Box::new(Av1::new(size, rate, quality)?);
                Ok(Self::Av1 { file: create()?, encoder })
            }
        }
    }

    /// Writes the next picture; `texts` are those of a PNG file.
    pub(super) fn take(
        &mut self,
        number: u32,
        image: &Image,
        background: [u8; 3],
        texts: &[PngText],
    ) -> Result<()> {
        match self {
            Self::Files { output, kind, is_transparent } => {
                let background = match is_transparent {
                    true => Background::Transparent,
                    false => Background::Color(background.map(|c| f32::from(c) / 255.0)),
                };
                write(&numbered_or_as_is(output, number), &kind.encode(image, background, texts)?)
            }
            Self::H264 { file, encoder } => file.add(&encoder.encode(image, background)?),
            Self::Av1 { file, encoder } => {
                encoder.encode(image, background)?.iter().try_for_each(|sample| file.add(sample))
            }
            Self::WebM { file, encoder } => {
                encoder.encode(image, background)?.iter().try_for_each(|sample| file.add(sample))
            }
        }
    }

    pub(super) fn finish(self) -> Result<()> {
        match self {
            Self::Files { .. } => Ok(()),
            Self::H264 { file, encoder } => file.finish(encoder.sets().map(DecoderSetup::H264)),
            Self::WebM { mut file, mut encoder } => {
                encoder.finish()?.iter().try_for_each(|sample| file.add(sample))?;
                file.finish()
            }
            Self::Av1 { mut file, mut encoder } => {
                encoder.finish()?.iter().try_for_each(|sample| file.add(sample))?;
                file.finish(Some(DecoderSetup::Av1(&encoder.configuration())))
            }
        }
    }
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let draft = AtomicOutput::beside(path)?;
    std::fs::write(&draft.path, bytes).map_err(|e| draft.failed(e))?;
    draft.keep()
}

/// Checks that `count` files get different names, unless they are one film. `such_as` is an example of a name for the
/// error.
pub(super) fn check_numbered(path: &Path, count: u32, such_as: &str) -> Result<()> {
    if count <= 1 || is_film(path).unwrap_or(false) || numbered(path, 0).is_some() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "expected an output with a placeholder for its number, such as {such_as} for {count} pictures, found `{}`",
        path.display()
    )))
}

/// Returns the name with a number, if it has a placeholder.
pub(super) fn numbered_or_as_is(path: &Path, number: u32) -> PathBuf {
    numbered(path, number).unwrap_or_else(|| path.to_owned())
}

/// Returns the name with a number instead of `%d` or `%04d`; `None` if it has no such placeholder.
fn numbered(path: &Path, number: u32) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let (before, rest) = name.split_once('%')?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (width, after) = (rest[..digits].trim_start_matches('0'), rest[digits..].strip_prefix('d')?);
    let width = if width.is_empty() { 0 } else { width.parse::<usize>().ok().filter(|&w| w <= 20)? };
    Some(path.with_file_name(format!("{before}{number:0width$}{after}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_outputs_say_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let checked = |name: &str, width, rate| {
            let film = FilmOptions { pictures_per_sec: rate, ..FilmOptions::default() };
            let result = check_output(&folder.path().join(name), ImageSize { width, height: 48 }, &film);
            result.map_or_else(|e| (Some(e.kind()), e.to_string()), |()| (None, String::new()))
        };
        std::fs::create_dir(folder.path().join("there.png")).unwrap();
        for (name, width, rate, kind, says) in [
            ("x.gif", 64, 25.0, ErrorKind::Invalid, ".mp4 or .webm (films)"),
            ("x.WebM", 64, 25.0, ErrorKind::Invalid, "add `--codec av1`"),
            ("x.mp4", 63, 25.0, ErrorKind::Invalid, "even sizes"),
            ("x.mp4", 64, 0.0, ErrorKind::Invalid, "pictures a second"),
            ("there.png", 64, 25.0, ErrorKind::Invalid, "choose another name"),
            ("no/x.png", 64, 25.0, ErrorKind::NotFound, "create it first"),
        ] {
            let (found, text) = checked(name, width, rate);
            assert!(found == Some(kind) && text.contains(says), "{name}: {found:?} {text}");
        }
        for (name, width) in [("x.png", 63), ("x-%04d.exr", 63), ("x.Mp4", 64)] {
            assert_eq!(checked(name, width, 25.0).0, None, "{name}");
        }
        check_folder(Path::new("here.png")).unwrap();
    }

    #[test]
    fn placeholders_are_replaced_by_numbers() {
        let name = |text: &str| numbered(Path::new(text), 7).map(|path| path.to_string_lossy().into_owned());
        assert_eq!(name("a/b-%04d.png").unwrap(), "a/b-0007.png");
        assert_eq!(name("%d.exr").unwrap(), "7.exr");
        for none in ["b.png", "50%.png", "%x.png", "%04.png", "a%99999999999999999999d.png"] {
            assert!(name(none).is_none(), "{none}");
        }
    }
}
