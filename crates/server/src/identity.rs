//! Identity of this server: a certificate and its key, created once per user and kept, so that its fingerprint stays
//! the same.

use std::path::{Path, PathBuf};

use array::{Error, ErrorKind, Result};
use client::directories::{private_folder, read_private, write_private};
use link::Identity;

/// Maximum size of a certificate or key file, in bytes; certificates with a chain have a few KiB.
const MAX_PEM_BYTES: u64 = 256 << 10;
/// First line of the key in a file that contains both certificate and key.
const KEY_HEADER: &str = "-----BEGIN PRIVATE KEY-----";

/// Choice of the identity of a server.
#[derive(Clone, Debug, Default)]
pub enum IdentityChoice {
    /// The user's own certificate, generated if there is none.
    #[default]
    Own,
    /// A certificate and key from files.
    Files {
        /// Certificate and its chain, PEM.
        certificate: PathBuf,
        /// Private key, PEM.
        key: PathBuf,
    },
}

/// Loads the identity, or generates one and keeps it in `folder` (mode 0600).
///
/// # Errors
/// `NotFound`, `Corrupt`, `Io`; `Denied` if others may read the key file.
pub fn load(choice: &IdentityChoice, folder: &Path, machine: &str) -> Result<Identity> {
    match choice {
        IdentityChoice::Own => own(folder, machine),
        IdentityChoice::Files { certificate, key } => {
            Identity::from_pem(&read_pem(certificate)?, &read_pem(key)?)
                .map_err(|e| e.context(format!("certificate `{}`", certificate.display())))
        }
    }
}

fn read_pem(path: &Path) -> Result<String> {
    let at = |e: std::io::Error| Error::from(e).context(format!("file `{}`", path.display()));
    let size = std::fs::metadata(path).map_err(at)?.len();
    if size > MAX_PEM_BYTES {
        return Err(Error::corrupt(format!("expected PEM, found {size} bytes: `{}`", path.display())));
    }
    std::fs::read_to_string(path).map_err(at)
}

fn own(folder: &Path, machine: &str) -> Result<Identity> {
    let path = folder.join("identity.pem");
    match read_private(&path, MAX_PEM_BYTES) {
        Ok(text) => {
            let key_start = text.find(KEY_HEADER).ok_or_else(|| {
                Error::corrupt(format!(
                    "expected a certificate and its key, found no key: `{}`",
                    path.display()
                ))
            })?;
            let (certificate, key) = text.split_at(key_start);
            Identity::from_pem(certificate, key).map_err(|e| e.context(format!("file `{}`", path.display())))
        }
        Err(e) if e.kind() == ErrorKind::NotFound || !folder.is_dir() => {
            let hosts = ["localhost", "127.0.0.1", "::1", machine].map(str::to_owned);
            let identity = Identity::self_signed(&hosts)?;
            let text = format!("{}{}", identity.certificate_pem(), identity.key_pem());
            if let Err(error) = private_folder(folder).and_then(|()| write_private(&path, &text)) {
                tracing::warn!(
                    "the certificate cannot be stored, so the fingerprint changes with the next start: {error}"
                );
            }
            Ok(identity)
        }
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_that_cannot_be_stored_is_generated_nevertheless() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        // No folder can be made below a file; root may write anywhere else.
        assert!(own(&folder.path().join("none"), "m").is_ok());
        let made = load(&IdentityChoice::Own, &file.join("below"), "m");
        assert!(made.is_ok(), "{made:?}");
    }

    #[test]
    fn an_identity_is_generated_once_and_stored() {
        let folder = tempfile::tempdir().unwrap();
        let first = load(&IdentityChoice::Own, folder.path(), "m").unwrap();
        let again = load(&IdentityChoice::Own, folder.path(), "m").unwrap();
        assert_eq!(first.fingerprint().to_string(), again.fingerprint().to_string());
    }
}
