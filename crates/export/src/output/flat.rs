//! A flat file: a header, then the elements in C order. Slabs are written at their offset in any order.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use array::{Error, Result};

use super::AtomicOutput;

/// A flat file that is being written.
#[derive(Debug)]
pub(crate) struct FlatOutput {
    file: File,
    header_bytes: u64,
    draft: AtomicOutput,
}

impl FlatOutput {
    /// Creates the file with its final size, so that a full disk is detected at the start.
    ///
    /// # Errors
    /// `Io`, `Denied`, `TooLarge`.
    pub(crate) fn create(target: &Path, header: &[u8], data_bytes: u64) -> Result<Self> {
        Self::create_by(target, data_bytes, |path| {
            fs::write(path, header)
                .map(|()| header.len() as u64)
                .map_err(|e| Error::from(e).context(format!("write `{}`", target.display())))
        })
    }

    /// Creates a file whose beginning `make` writes; `make` returns the byte offset at which the elements begin.
    ///
    /// # Errors
    /// `Io`, `Denied`, `TooLarge`, and the errors of `make`.
    pub(crate) fn create_by(
        target: &Path,
        data_bytes: u64,
        make: impl FnOnce(&Path) -> Result<u64>,
    ) -> Result<Self> {
        let at = |e: std::io::Error| Error::from(e).context(format!("write `{}`", target.display()));
        let draft = AtomicOutput::beside(target)?;
        draft.expect_space(data_bytes)?;
        let header_bytes = make(&draft.path)?;
        let file = OpenOptions::new().write(true).open(&draft.path).map_err(at)?;
        let end = header_bytes
            .checked_add(data_bytes)
            .filter(|&n| n <= i64::MAX as u64)
            .ok_or_else(|| Error::too_large(format!("expected less than 2^63 bytes, found {data_bytes}")))?;
        // The file may have its full size already, with more behind the elements.
        if file.metadata().map_err(at)?.len() < end {
            file.set_len(end).map_err(at)?;
        }
        Ok(Self { file, header_bytes, draft })
    }

    /// Writes elements at byte `offset` of the data.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn put(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, self.header_bytes + offset).map_err(|e| self.draft.failed(e))
    }

    /// Moves the file to its final name.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn finish(self) -> Result<()> {
        self.draft.keep()
    }
}
