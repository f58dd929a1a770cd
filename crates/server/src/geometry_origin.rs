//! Files of geometry beside a data set: read from its folder here, or fetched from the server that has the data.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use array::{Error, ErrorKind, Priority, Result, Source, Urgency};
use bytes::Bytes;
use client::upstream::{Upstream, ask_one};
use geometry::{MAX_FILE_BYTES, is_geometry_name};
use wire::ops::{BlockPlace, GeometryBody, GeometryParameters, MAX_GEOMETRY_PIECE_BYTES};

/// Place where the geometry beside a data set is found.
#[derive(Clone)]
pub struct GeometryOrigin {
    /// Folder of the file with the data, if that is on this machine.
    pub folder: Option<PathBuf>,
    /// Servers that the data come from.
    pub upstream: Upstream,
    /// Source of the data, as the servers know them.
    pub source: Arc<dyn Source>,
}

impl GeometryOrigin {
    /// Returns a file of geometry by its path in the folder of the data.
    ///
    /// # Errors
    /// `NotFound` and others if there is no such file, `Denied` for a path that leads out of the folder, `TooLarge` beyond
    /// [`MAX_FILE_BYTES`], `Stale` if the file changes meanwhile.
    ///
    /// # Cancel safety
    /// Safe: nothing is kept.
    pub async fn fetch(&self, name: &str) -> Result<Bytes> {
        let place = self.place().await?;
        let (remotes, place) = self.upstream.computing(&place).await?;
        let mut bytes = Vec::new();
        let mut known = None;
        loop {
            let offset_bytes = bytes.len() as u64;
            let asked = GeometryParameters { place, name: name.to_owned(), offset_bytes };
            let (body, piece) = match &self.folder {
                Some(folder) => read_beside(folder.clone(), name.to_owned(), offset_bytes).await?,
                None => match ask_one(&remotes, &asked, Urgency::of(Priority::INTERACTIVE)).await {
                    Some(answer) => answer?,
                    None => {
                        return Err(Error::not_found(format!(
                            "expected data in a folder with the geometry `{name}`, found data without a folder"
                        )));
                    }
                },
            };
            if body.size_bytes > MAX_FILE_BYTES {
                return Err(too_large(body.size_bytes));
            }
            if *known.get_or_insert(body) != body {
                return Err(Error::new(
                    ErrorKind::Stale,
                    format!("the geometry `{name}` changed while it was read"),
                ));
            }
            bytes.extend_from_slice(&piece);
            if bytes.len() as u64 >= body.size_bytes {
                bytes.truncate(usize::try_from(body.size_bytes).unwrap_or(usize::MAX));
                return Ok(bytes.into());
            }
            if piece.is_empty() {
                return Err(Error::corrupt(format!(
                    "expected more bytes of the geometry `{name}`, found none"
                )));
            }
        }
    }

    /// Returns the place of the first array, which names the data set.
    async fn place(&self) -> Result<BlockPlace> {
        let dataset = self.source.describe().await?;
        Ok(BlockPlace { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0 })
    }
}

/// Reads a piece of a file of geometry in a folder.
///
/// # Errors
/// `Denied` for a path that leads out of the folder and for other files than geometry, `NotFound`, `TooLarge`, `Io`.
///
/// # Cancel safety
/// Safe.
pub async fn read_beside(folder: PathBuf, name: String, offset_bytes: u64) -> Result<(GeometryBody, Bytes)> {
    let read = move || {
        let path = path_beside(&folder, &name)?;
        read_piece(&path, offset_bytes).map_err(|error| error.context(format!("read the geometry `{name}`")))
    };
    tokio::task::spawn_blocking(read)
        .await
        .map_err(|e| Error::internal(format!("reading a geometry ended: {e}")))?
}

/// Returns the path of a file of geometry in a folder, links followed.
fn path_beside(folder: &Path, name: &str) -> Result<PathBuf> {
    let relative = Path::new(name);
    let is_shown = |path: &Path| {
        path.components()
            .all(|part| matches!(part, Component::Normal(name) if !name.to_string_lossy().starts_with('.')))
    };
    let is_plain = is_shown(relative);
    if !is_plain || name.is_empty() || !is_geometry_name(name) {
        return Err(Error::new(
            ErrorKind::Denied,
            format!(
                "expected a file of geometry in the folder of the data, such as `lung.ply`, found `{name}`"
            ),
        ));
    }
    let root = folder.canonicalize().map_err(|e| io_error(name, &e))?;
    let path = root.join(relative).canonicalize().map_err(|e| io_error(name, &e))?;
    let is_in_folder = path.strip_prefix(&root).is_ok_and(is_shown);
    if !is_in_folder || !path.is_file() {
        return Err(Error::new(ErrorKind::Denied, format!("`{name}` is no file in the folder of the data")));
    }
    Ok(path)
}

/// Reads a piece of a file.
///
/// # Errors
/// `TooLarge` for a file beyond [`MAX_FILE_BYTES`], `NotFound`, `Io`.
pub fn read_piece(path: &Path, offset_bytes: u64) -> Result<(GeometryBody, Bytes)> {
    let failed = |e: std::io::Error| io_error(&path.display().to_string(), &e);
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let size_bytes = metadata.len();
    if size_bytes > MAX_FILE_BYTES {
        return Err(too_large(size_bytes));
    }
    let modified =
        metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let stamp = modified.as_secs().wrapping_mul(1_000_000_000).wrapping_add(modified.subsec_nanos().into());
    file.seek(SeekFrom::Start(offset_bytes.min(size_bytes))).map_err(failed)?;
    let mut piece = Vec::new();
    file.take(MAX_GEOMETRY_PIECE_BYTES as u64).read_to_end(&mut piece).map_err(failed)?;
    Ok((GeometryBody { size_bytes, stamp }, piece.into()))
}

fn io_error(name: &str, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => Error::not_found(format!("there is no file `{name}`")),
        _ => Error::new(ErrorKind::Io, format!("`{name}` cannot be read: {error}")),
    }
}

fn too_large(size_bytes: u64) -> Error {
    Error::too_large(format!("expected a geometry of at most {MAX_FILE_BYTES} bytes, found {size_bytes}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_geometry_in_the_folder_is_read_piece_by_piece() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("data");
        std::fs::create_dir_all(folder.join("meshes")).unwrap();
        let long = vec![7u8; MAX_GEOMETRY_PIECE_BYTES + 10];
        std::fs::write(folder.join("meshes/a.ply"), &long).unwrap();
        std::fs::write(folder.join("secret.txt"), "x").unwrap();
        std::fs::write(parent.path().join("b.ply"), "x").unwrap();
        std::os::unix::fs::symlink(parent.path().join("b.ply"), folder.join("link.ply")).unwrap();
        let read = |name: &str, offset| read_beside(folder.clone(), name.to_owned(), offset);
        let (body, piece) = read("meshes/a.ply", 0).await.unwrap();
        assert_eq!((body.size_bytes, piece.len()), (long.len() as u64, MAX_GEOMETRY_PIECE_BYTES));
        assert_eq!(read("meshes/a.ply", piece.len() as u64).await.unwrap(), (body, vec![7u8; 10].into()));
        assert_eq!(read("none.ply", 0).await.unwrap_err().kind(), ErrorKind::NotFound);
        let absolute = parent.path().join("b.ply").display().to_string();
        for name in ["../b.ply", "secret.txt", "link.ply", "meshes", "", "./meshes/a.ply", &absolute] {
            let error = read(name, 0).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Denied, "{name}: {error}");
        }
    }
}
