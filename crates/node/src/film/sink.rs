//! Where pictures go: numbered files, or a film.

use std::path::{Path, PathBuf};

use array::{Error, Result};
use render::{Background, Image, ImageSize};
use stream::H264;

use crate::output::Draft;
use crate::output::mp4::Mp4;

/// What kind of file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// 8 bits over the view's background.
    Png,
    /// Floats without background, linear light.
    Exr,
    /// A film, H.264.
    Mp4,
}

impl Kind {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match extension.as_str() {
            "png" => Ok(Self::Png),
            "exr" => Ok(Self::Exr),
            "mp4" => Ok(Self::Mp4),
            _ => Err(Error::invalid(format!(
                "expected an output that ends in .png, .exr or .mp4, found `{}`",
                path.display()
            ))),
        }
    }

    /// Of one picture.
    fn encode(self, image: &Image, background: [u8; 3]) -> Result<Vec<u8>> {
        match self {
            Self::Exr => image.to_exr(),
            _ => image.to_png(Background::Colour(background.map(|c| f32::from(c) / 255.0))),
        }
    }
}

/// Whether an output of this name can be written.
///
/// # Errors
/// `Invalid`, listing what works.
pub fn check_output(path: &Path) -> Result<()> {
    Kind::of(path).map(drop)
}

/// Where pictures go.
pub(super) enum Sink {
    Files { output: PathBuf, kind: Kind },
    Film { file: Box<Mp4>, encoder: Box<H264> },
}

impl Sink {
    pub(super) fn open(
        output: &Path,
        kind: Kind,
        count: u32,
        size: ImageSize,
        pictures_per_sec: f64,
    ) -> Result<Self> {
        if kind == Kind::Mp4 {
            let encoder = H264::new(size, pictures_per_sec)?;
            let file = Mp4::create(output, (size.width, size.height), pictures_per_sec)?;
            return Ok(Self::Film { file: Box::new(file), encoder: Box::new(encoder) });
        }
        check_numbered(output, count, "`x-%04d.png`, or a film, `x.mp4`,")?;
        Ok(Self::Files { output: output.to_owned(), kind })
    }

    pub(super) fn take(&mut self, number: u32, image: &Image, background: [u8; 3]) -> Result<()> {
        match self {
            Self::Files { output, kind } => {
                write(&numbered_or_as_is(output, number), &kind.encode(image, background)?)
            }
            Self::Film { file, encoder } => file.add(&encoder.encode(image, background)?),
        }
    }

    pub(super) fn finish(self) -> Result<()> {
        match self {
            Self::Files { .. } => Ok(()),
            Self::Film { file, encoder } => file.finish(encoder.sets()),
        }
    }
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let draft = Draft::beside(path)?;
    std::fs::write(&draft.path, bytes).map_err(|e| draft.failed(e))?;
    draft.keep()
}

/// That names of so many files can be told apart; `such_as` is what works.
pub(super) fn check_numbered(path: &Path, count: u32, such_as: &str) -> Result<()> {
    if count <= 1 || numbered(path, 0).is_some() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "expected an output with a place for its number, such as {such_as} for {count} pictures, found `{}`",
        path.display()
    )))
}

/// A name with its number, where it has a place for one.
pub(super) fn numbered_or_as_is(path: &Path, number: u32) -> PathBuf {
    numbered(path, number).unwrap_or_else(|| path.to_owned())
}

/// A name with its number in the place of `%d` or `%04d`; `None` where it has no such place.
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
    fn numbers_stand_where_the_name_says() {
        let name = |text: &str| numbered(Path::new(text), 7).map(|path| path.to_string_lossy().into_owned());
        assert_eq!(name("a/b-%04d.png").unwrap(), "a/b-0007.png");
        assert_eq!(name("%d.exr").unwrap(), "7.exr");
        for none in ["b.png", "50%.png", "%x.png", "%04.png", "a%99999999999999999999d.png"] {
            assert!(name(none).is_none(), "{none}");
        }
    }
}
