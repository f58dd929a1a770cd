//! Descriptions of raw files, by which `corridor serve` reads them.

use std::path::Path;

use array::Result;

/// Writes the description `NAME.toml` of the file `NAME.bin` in a folder; returns its path.
pub(super) fn describe(folder: &Path, name: &str, shape: &[u64], dtype: &str) -> Result<String> {
    let description = folder.join(format!("{name}.toml"));
    let text = format!("file = \"{name}.bin\"\nshape = {shape:?}\ndtype = \"{dtype}\"\n");
    std::fs::write(&description, text)?;
    Ok(description.to_string_lossy().into_owned())
}
