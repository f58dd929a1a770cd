//! Folders of this user: where running servers leave their note, where the identity and made levels are kept.
//!
//! Looked up once at the start and passed on as a value, so that tests can use folders of their own.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use array::{Error, ErrorKind, Result};

/// Where this user's things are.
#[derive(Clone, Debug)]
pub struct Places {
    /// Notes of running servers; gone after a reboot where the system has such a place.
    pub runtime: PathBuf,
    /// The server's certificate and key.
    pub identity: PathBuf,
    /// Levels made on demand, and indexes; may be deleted at any time.
    pub cache: PathBuf,
    /// What is remembered of network paths.
    pub state: PathBuf,
}

impl Places {
    /// From `XDG_RUNTIME_DIR`, `XDG_CACHE_HOME`, `XDG_CONFIG_HOME`, `XDG_STATE_HOME`, or their defaults below the home folder;
    /// `CORRIDOR_CACHE_DIR` names another folder for made levels (a scratch disk).
    ///
    /// # Errors
    /// `NotFound` when there is no home folder.
    pub fn of_user() -> Result<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let home = || {
            variable("HOME").ok_or_else(|| {
                Error::not_found(
                    "expected the environment variable HOME (or XDG_CACHE_HOME, XDG_CONFIG_HOME and XDG_STATE_HOME)",
                )
            })
        };
        let cache = match variable("XDG_CACHE_HOME") {
            Some(dir) => dir,
            None => home()?.join(".cache"),
        };
        let config = match variable("XDG_CONFIG_HOME") {
            Some(dir) => dir,
            None => home()?.join(".config"),
        };
        let runtime = match variable("XDG_RUNTIME_DIR").filter(|d| d.is_dir()) {
            Some(dir) => dir.join("corridor"),
            None => cache.join("corridor").join("run"),
        };
        let state = match variable("XDG_STATE_HOME") {
            Some(dir) => dir,
            None => home()?.join(".local").join("state"),
        };
        Ok(Self {
            runtime,
            state: state.join("corridor"),
            identity: config.join("corridor"),
            cache: variable("CORRIDOR_CACHE_DIR").unwrap_or_else(|| cache.join("corridor").join("levels")),
        })
    }

    /// Where this user's `corridor.toml` would be.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.identity.join("corridor.toml")
    }

    /// Everything below one folder, as tests want it.
    #[must_use]
    pub fn below(folder: &Path) -> Self {
        Self {
            runtime: folder.join("run"),
            identity: folder.join("identity"),
            cache: folder.join("levels"),
            state: folder.join("state"),
        }
    }
}

/// Makes `folder` readable by this user alone.
///
/// # Errors
/// `Io`, `Denied`.
pub(crate) fn private_folder(folder: &Path) -> Result<()> {
    let at = |e: std::io::Error| Error::from(e).context(format!("folder `{}`", folder.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(at)
}

/// Writes a file that only this user can read, all or nothing.
///
/// # Errors
/// `Io`, `Denied`.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let at = |e: std::io::Error| Error::from(e).context(format!("file `{}`", path.display()));
    let beside = path.with_extension(format!("tmp{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file: File =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        // An older file of this name keeps its mode when opened; make sure.
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(at)
}

/// Reads a small private file; refuses one that others may read or write.
///
/// # Errors
/// `NotFound`; `Denied` when its mode is too open; `Io`.
pub(crate) fn read_private(path: &Path, max_bytes: u64) -> Result<String> {
    let at = |e: std::io::Error| Error::from(e).context(format!("file `{}`", path.display()));
    let about = fs::metadata(path).map_err(at)?;
    if about.permissions().mode() & 0o077 != 0 {
        return Err(Error::new(
            ErrorKind::Denied,
            format!(
                "expected mode 0600, found {:o}: `{}`",
                about.permissions().mode() & 0o777,
                path.display()
            ),
        ));
    }
    if about.len() > max_bytes {
        return Err(Error::corrupt(format!(
            "expected at most {max_bytes} bytes, found {}: `{}`",
            about.len(),
            path.display()
        )));
    }
    fs::read_to_string(path).map_err(at)
}
