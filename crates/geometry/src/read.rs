//! Choice of the reader by name and first bytes.

use array::{Error, Result};

use crate::formats::{freesurfer, geojson, gifti, glb, ply, shapefile, stl, table, vtp};
use crate::{Geometry, MAX_FILE_BYTES};

/// Extensions of files that [`read`] understands.
pub const EXTENSIONS: [&str; 9] = ["ply", "stl", "vtp", "glb", "gii", "csv", "tsv", "geojson", "shp"];
/// Last parts of the names of FreeSurfer's surfaces, which have no extension of their own: `lh.pial`.
const FREESURFER: [&str; 7] = ["white", "pial", "inflated", "sphere", "orig", "smoothwm", "midthickness"];

/// Returns whether a file of this name may be a geometry.
#[must_use]
pub fn is_geometry_name(name: &str) -> bool {
    let extension = extension_of(name);
    EXTENSIONS.contains(&&*extension) || is_freesurfer_name(name)
}

fn is_freesurfer_name(name: &str) -> bool {
    let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_side = file.starts_with("lh.") || file.starts_with("rh.");
    is_side && FREESURFER.iter().any(|kind| file[3..].starts_with(kind))
}

fn extension_of(name: &str) -> String {
    let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
    file.rsplit_once('.').map_or_else(String::new, |(_, extension)| extension.to_ascii_lowercase())
}

/// Reads the bytes of a file of this name.
///
/// # Errors
/// `Unsupported` for other files and for features of these formats that are not read, `Corrupt` for damaged ones,
/// `TooLarge` beyond the limits, `Invalid` for files without a vertex.
pub fn read(name: &str, bytes: &[u8]) -> Result<Geometry> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::too_large(format!(
            "expected a geometry of at most {MAX_FILE_BYTES} bytes, found {}",
            bytes.len()
        )));
    }
    let geometry = match &*extension_of(name) {
        _ if freesurfer::recognizes(bytes) => freesurfer::read(bytes),
        "ply" => ply::read(bytes),
        "stl" => stl::read(bytes),
        "vtp" => vtp::read(bytes),
        "glb" => glb::read(bytes),
        "gii" => gifti::read(bytes),
        "csv" => table::read(bytes, b','),
        "tsv" => table::read(bytes, b'\t'),
        "geojson" | "json" => geojson::read(bytes),
        "shp" => shapefile::read(bytes),
        _ if is_freesurfer_name(name) => freesurfer::read(bytes),
        _ => Err(Error::unsupported(format!(
            "expected a geometry that ends in .{}, or a surface of FreeSurfer such as `lh.pial`, found `{name}`",
            EXTENSIONS.join(", .")
        ))),
    };
    geometry.map_err(|error| error.context(format!("read the geometry `{name}`")))
}
