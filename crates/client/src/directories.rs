//! Directories of this user: for the records of running servers, the server's identity, and generated levels.
//!
//! Determined once at the start and passed on as a value, so that tests can use directories of their own.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use array::{Error, ErrorKind, Result};

/// Directories of this user.
#[derive(Clone, Debug)]
pub struct UserDirectories {
    /// Records of running servers; deleted at a reboot where the system has such a directory.
    pub runtime: PathBuf,
    /// The server's certificate and key.
    pub identity: PathBuf,
    /// Levels made on demand, and indexes; may be deleted at any time.
    pub cache: PathBuf,
    /// Database of network paths.
    pub state: PathBuf,
}

impl UserDirectories {
    /// Determines the directories from `XDG_RUNTIME_DIR`, `XDG_CACHE_HOME`, `XDG_CONFIG_HOME`, `XDG_STATE_HOME`, or
    /// their defaults below the home directory. `CORRIDOR_CACHE_DIR` sets another directory for generated levels (such
    /// as a scratch disk). Without a home directory, as is usual for services and containers, they are below a private
    /// directory in the directory for temporary files.
    ///
    /// # Errors
    /// `Denied` if another user owns that directory.
    pub fn of_user() -> Result<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let named = ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"].map(variable);
        let home = match variable("HOME") {
            Some(home) => home,
            None if named.iter().all(Option::is_some) => PathBuf::new(),
            None => without_home(&std::env::temp_dir())?,
        };
        let [cache, config, state] = named;
        let cache = cache.unwrap_or_else(|| home.join(".cache"));
        let config = config.unwrap_or_else(|| home.join(".config"));
        let state = state.unwrap_or_else(|| home.join(".local").join("state"));
        let runtime = match variable("XDG_RUNTIME_DIR").filter(|d| d.is_dir()) {
            Some(dir) => dir.join("corridor"),
            None => cache.join("corridor").join("run"),
        };
        Ok(Self {
            runtime,
            state: state.join("corridor"),
            identity: config.join("corridor"),
            cache: variable("CORRIDOR_CACHE_DIR").unwrap_or_else(|| cache.join("corridor").join("levels")),
        })
    }

    /// Returns the path of this user's `corridor.toml`; the file may not exist.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.identity.join("corridor.toml")
    }

    /// Returns directories below one folder, for tests.
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

/// Returns a directory in `temporary` that replaces the home directory of a user who has none: no other user may have
/// created it, or have access to it.
fn without_home(temporary: &Path) -> Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let folder = temporary.join(format!("corridor-{user}"));
    let at = |e: std::io::Error| Error::from(e).context(format!("folder `{}`", folder.display()));
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(at(e)),
        _ => {}
    }
    let about = fs::symlink_metadata(&folder).map_err(at)?;
    if !about.is_dir() || about.uid() != user || about.permissions().mode() & 0o077 != 0 {
        let what = format!(
            "expected a folder of this user alone, found another one: `{}`; set HOME, or remove that folder",
            folder.display()
        );
        return Err(Error::new(ErrorKind::Denied, what));
    }
    Ok(folder)
}

/// Creates `folder`, accessible only to this user, with its parents; does nothing if it exists.
///
/// # Errors
/// `Io`, `Denied`.
pub fn private_folder(folder: &Path) -> Result<()> {
    let at = |e: std::io::Error| Error::from(e).context(format!("folder `{}`", folder.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(at)
}

/// Writes a file that only this user can read, atomically.
///
/// # Errors
/// `Io`, `Denied`.
pub fn write_private(path: &Path, text: &str) -> Result<()> {
    let at = |e: std::io::Error| Error::from(e).context(format!("file `{}`", path.display()));
    let beside = path.with_extension(format!("tmp{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file: File =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        // An existing file of this name keeps its mode when it is opened.
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
/// `NotFound`; `Denied` if its mode allows access to others; `Io`.
pub fn read_private(path: &Path, max_bytes: u64) -> Result<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_home_directory_gets_a_private_folder() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = without_home(temporary.path()).unwrap();
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(without_home(temporary.path()).unwrap(), folder, "the existing folder is used");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(without_home(temporary.path()).unwrap_err().kind(), ErrorKind::Denied);
        fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink("/tmp", &folder).unwrap();
        assert_eq!(without_home(temporary.path()).unwrap_err().kind(), ErrorKind::Denied, "a link");
    }
}
