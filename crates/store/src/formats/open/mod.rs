//! Opens the data set at a location: tests the first bytes of a file, then its name.
//!
//! A location is a path or `synthetic:NAME?...`. The formats are listed in `formats::registry`.

use std::path::Path;
use std::sync::Arc;

use array::{Error, Result, Source};

use crate::formats::common::labels::FormatWithMeaning;
use crate::formats::registry::{DIRECTORY_FORMATS, FILE_FORMATS, HEAD_BYTES, format_of_head, format_of_name};
use crate::formats::synthetic::{self, Synthetic};
use crate::{FileBytes, Format, FormatSource, Levels, OpenOptions};

/// Opens a location as a source with the levels that it lacks.
///
/// # Errors
/// `NotFound`, `Unsupported` if no format recognizes it (listing the supported ones), `Corrupt` if a header is wrong.
pub fn open(location: &str, options: &OpenOptions) -> Result<Arc<dyn Source>> {
    let format = FormatSource::new(open_format(location, options)?);
    Ok(Arc::new(Levels::new(format, options)))
}

/// Opens a location as it is stored, without making a source of it.
///
/// # Errors
/// Errors of [`open`].
pub fn open_format(location: &str, options: &OpenOptions) -> Result<Arc<dyn Format>> {
    let format = open_unchecked(location, options).map_err(|e| e.context(format!("open `{location}`")))?;
    format.dataset().check()?;
    Ok(FormatWithMeaning::over(format, options.meaning))
}

fn open_unchecked(location: &str, options: &OpenOptions) -> Result<Arc<dyn Format>> {
    if location.starts_with(synthetic::SCHEME) {
        return Ok(Arc::new(Synthetic::open(location)?));
    }
    let path = Path::new(location);
    if path.is_dir() {
        return open_directory(path, options);
    }
    let file = FileBytes::open(path)?;
    let head = file.head(HEAD_BYTES)?;
    if head.is_empty() {
        return Err(Error::unsupported("expected data, found an empty file"));
    }
    match format_of_head(&head).or_else(|| format_of_name(path)) {
        Some(format) => (format.open)(file, options).map_err(|e| e.context(format.name)),
        None => Err(Error::unsupported(format!(
            "expected {}, the folder of a Zarr store or of a mesh, or for numbers without a header a description of \
             them, `NAME.toml` (docs/raw.md); found a file that begins with {:02x?}",
            FILE_FORMATS.iter().flat_map(|format| format.listed).copied().collect::<Vec<_>>().join(", "),
            &head[..head.len().min(8)]
        ))),
    }
}

fn open_directory(path: &Path, options: &OpenOptions) -> Result<Arc<dyn Format>> {
    for format in DIRECTORY_FORMATS {
        if let Some(opened) = (format.open)(path, options)? {
            return Ok(opened);
        }
    }
    Err(Error::unsupported(format!(
        "expected a file, a Zarr store (a directory with `zarr.json`, `.zgroup` or `.zarray`) or the folder of a mesh (with \
         `NAME.hierarchy` of Enzo, or `*.h5` of Carpet), found another directory; for the data sets in it run `corridor serve {}`, \
         then `corridor view` with a link that it prints",
        path.display()
    )))
}

#[cfg(test)]
mod tests;
