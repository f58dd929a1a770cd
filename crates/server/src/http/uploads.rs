//! Files that people drop on the viewer's page: received into a temporary folder of the node, from this machine only, and removed when the
//! node ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use array::{Error, ErrorKind, Result};
use axum::body::Body;
use axum::extract::{Path as UrlPath, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use client::directories::private_folder;
use client::random::random_bytes;
use client::running_servers::machine_name;
use futures::StreamExt;
use tokio::io::AsyncWriteExt;

use super::refusal::refused;
use crate::http::HttpSite;
use crate::public_address::RequestPeer;
use crate::token::{Admission, Right};
use crate::zarr::{Caller, bearer};

/// Maximum number of bytes of all uploaded files together.
pub const MAX_UPLOADED_BYTES: u64 = 8 << 30;
/// Maximum number of uploaded files: those of some data sets with headers of their own.
pub const MAX_UPLOADED_FILES: u64 = 1024;
/// Maximum length of a file's name, bytes; that of most file systems.
const MAX_NAME_BYTES: usize = 255;

/// Folder for uploaded files, and what is in it.
pub struct Uploads {
    folder: PathBuf,
    admission: Admission,
    used_bytes: AtomicU64,
    files: AtomicU64,
}

impl Uploads {
    /// Prepares a folder below `parent`, which is created with the first file, and removes those that ended processes have left there.
    /// Clients of `admission` with all rights may upload.
    ///
    /// # Errors
    /// `Io` if the system has no source of randomness.
    pub fn below(parent: &Path, admission: Admission) -> Result<Self> {
        let machine = machine();
        for left in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = left.file_name().to_string_lossy().into_owned();
            // Other machines may share the folder.
            let own = name.split_once('@').filter(|(_, other)| *other == machine).map(|(process, _)| process);
            let pid = own.and_then(|own| own.split('-').next()?.parse::<u32>().ok());
            let has_ended = pid.is_some_and(|pid| {
                Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{pid}")).exists()
            });
            if has_ended {
                // A folder that cannot be removed is tried again at the next start.
                drop(fs::remove_dir_all(left.path()));
            }
        }
        let own: [u8; 8] = random_bytes()?;
        let folder =
            parent.join(format!("{}-{:016x}@{machine}", std::process::id(), u64::from_le_bytes(own)));
        Ok(Self { folder, admission, used_bytes: AtomicU64::new(0), files: AtomicU64::new(0) })
    }

    /// Returns whether a path is that of an uploaded file.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        path.starts_with(&self.folder)
    }

    /// Returns the path of a new file. Files of one batch lie in one folder, so that a header finds its data.
    fn path(&self, batch: &str, name: &str) -> Result<PathBuf> {
        let is_plain = |text: &str| {
            !text.is_empty()
                && text.len() <= MAX_NAME_BYTES
                && !text.starts_with('.')
                && !text.contains(['/', '\0'])
        };
        if !is_plain(name) || !is_plain(batch) || !batch.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(Error::invalid("expected the name of a file without a path; rename the file"));
        }
        Ok(self.folder.join(batch).join(name))
    }

    /// Reserves room for a file.
    fn reserve(&self, bytes: u64) -> Result<()> {
        let add = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= MAX_UPLOADED_BYTES);
        let count = |files: u64| Some(files + 1).filter(|&sum| sum <= MAX_UPLOADED_FILES);
        let too_large = || {
            Error::too_large(format!(
                "dropped files may have {} GiB together, and be {MAX_UPLOADED_FILES} at most; open larger ones by their path",
                MAX_UPLOADED_BYTES >> 30
            ))
        };
        self.files.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).map_err(|_| too_large())?;
        if self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            self.files.fetch_sub(1, Ordering::Relaxed);
            return Err(too_large());
        }
        Ok(())
    }

    fn release(&self, bytes: u64) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.files.fetch_sub(1, Ordering::Relaxed);
    }

    /// Receives a file of `bytes`.
    async fn receive(&self, path: &Path, bytes: u64, body: Body) -> Result<()> {
        self.reserve(bytes)?;
        let mut reservation = Reservation { uploads: self, path, bytes, is_created: false, is_kept: false };
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        tokio::task::spawn_blocking(move || private_folder(&folder))
            .await
            .map_err(|e| Error::internal(format!("the task that makes a folder ended early: {e}")))??;
        let mut file = tokio::fs::OpenOptions::new().write(true).create_new(true).open(path).await?;
        reservation.is_created = true;
        let (mut pieces, mut arrived) = (body.into_data_stream(), 0u64);
        while let Some(piece) = pieces.next().await {
            let piece =
                piece.map_err(|e| Error::new(ErrorKind::Unreachable, format!("the upload broke: {e}")))?;
            arrived += piece.len() as u64;
            if arrived > bytes {
                return Err(Error::invalid("the file is longer than announced; drop it again"));
            }
            file.write_all(&piece).await?;
        }
        file.flush().await?;
        if arrived != bytes {
            return Err(Error::new(ErrorKind::Unreachable, "the upload broke; drop the file again"));
        }
        reservation.keep();
        Ok(())
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        // What cannot be removed now is removed at the next start.
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// Room for a file that is being received; given back with the file if it does not arrive.
struct Reservation<'a> {
    uploads: &'a Uploads,
    path: &'a Path,
    bytes: u64,
    /// Another file of this name is not touched.
    is_created: bool,
    is_kept: bool,
}

impl Reservation<'_> {
    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            if self.is_created {
                // What cannot be removed now is removed with the folder.
                drop(fs::remove_file(self.path));
            }
            self.uploads.release(self.bytes);
        }
    }
}

/// Returns the name of this machine and of its numbers of processes, which containers have of their own.
fn machine() -> String {
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits: String = space.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("{}-{digits}", machine_name())
}

/// Answers `PUT /upload/BATCH/NAME` with the path of the file, as text.
pub(super) async fn upload(
    State(site): State<HttpSite>,
    UrlPath((batch, name)): UrlPath<(String, String)>,
    request: Request,
) -> Response {
    let headers = request.headers();
    let Some(uploads) = site.uploads.as_ref().map(Arc::clone).filter(|_| is_of_this_machine(&request)) else {
        return refused(
            "files can be dropped only where the viewer runs on this machine; open data by path or URL",
        );
    };
    if !matches!(uploads.admission.right(bearer(headers)), Ok(Right::Everything)) {
        return refused("only owners of the session may drop files");
    }
    let Some(bytes) = length(headers) else {
        return (StatusCode::LENGTH_REQUIRED, "expected the header Content-Length\n").into_response();
    };
    // An upload may take longer than a visit. Without a place it has the time of one.
    if let Some(caller) = request.extensions().get::<Caller>()
        && let Err(error) = caller.slot.admit()
    {
        tracing::debug!(%error, "a client that uploads stays a visitor");
    }
    let path = match uploads.path(&batch, &name) {
        Ok(path) => path,
        Err(error) => return failed(&error),
    };
    match uploads.receive(&path, bytes, request.into_body()).await {
        Ok(()) => path.to_string_lossy().into_owned().into_response(),
        Err(error) => failed(&error),
    }
}

/// Returns whether a request comes from this machine, and by no proxy on it.
fn is_of_this_machine(request: &Request) -> bool {
    let proxied = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];
    if proxied.iter().any(|name| request.headers().contains_key(*name)) {
        return false;
    }
    request.extensions().get::<RequestPeer>().is_some_and(|peer| peer.address.to_canonical().is_loopback())
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn failed(error: &Error) -> Response {
    let status = match error.kind() {
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, format!("{error}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_are_received_within_the_limits_and_removed_at_the_end() {
        let parent = tempfile::tempdir().unwrap();
        let [left, others] =
            [machine(), "another-1".into()].map(|at| parent.path().join(format!("4294967294-0@{at}")));
        for folder in [&left, &others] {
            fs::create_dir_all(folder).unwrap();
        }
        let uploads = Uploads::below(parent.path(), Admission::Everybody).unwrap();
        assert!(!left.exists() && others.exists(), "of a process that has ended, and of another machine");
        for (batch, name) in [("a", "../b"), ("a", ""), ("a", ".b"), ("..", "b"), ("a/b", "c"), ("a-b", "c")]
        {
            assert_eq!(uploads.path(batch, name).unwrap_err().kind(), ErrorKind::Invalid, "{batch} {name}");
        }
        let path = uploads.path("a1", "data set.nhdr").unwrap();
        uploads.receive(&path, 4, Body::from("1234")).await.unwrap();
        assert!(fs::read(&path).unwrap() == b"1234" && uploads.has(&path));
        let short = uploads.path("a1", "short.raw").unwrap();
        for (bytes, body) in [(5, "1234"), (3, "1234")] {
            assert!(uploads.receive(&short, bytes, Body::from(body)).await.is_err());
            assert!(!short.exists() && uploads.used_bytes.load(Ordering::Relaxed) == 4);
        }
        let kind = uploads.receive(&short, MAX_UPLOADED_BYTES, Body::from("")).await.unwrap_err().kind();
        assert_eq!(kind, ErrorKind::TooLarge);
        assert_eq!(uploads.receive(&path, 1, Body::from("5")).await.unwrap_err().kind(), ErrorKind::Io);
        assert!(fs::read(&path).unwrap() == b"1234" && uploads.used_bytes.load(Ordering::Relaxed) == 4);
        let folder = uploads.folder.clone();
        drop(uploads);
        assert!(!folder.exists());
    }
}
