//! Sizes and modification times of files of chunks while a store is open. Once a file has another state than before, the whole store
//! is stale, as any other changed file is; opening it again gives it another [`identity`](super::identity).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use array::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use crate::io::byte_store::FileStamp;

/// Most files whose size and modification time are recorded while a store is open; about 5 MB.
const MAX_RECORDED_FILES: usize = 1 << 17;

/// Sizes and modification times of files as they were first found; `None` for files that did not exist.
#[derive(Debug, Default)]
pub(super) struct FileStates {
    /// Recorded states by the hash of the keys of the files.
    recorded: Mutex<HashMap<u64, Option<FileStamp>>>,
    has_changed: AtomicBool,
}

impl FileStates {
    /// Records the state of a file, or compares it with the recorded one.
    ///
    /// # Errors
    /// `Stale` if they differ, and in every later call for any file.
    pub(super) fn record(&self, key: &str, stamp: Option<FileStamp>) -> Result<()> {
        let mut recorded = self.recorded.lock();
        let hash = xxh3_64(key.as_bytes());
        match recorded.get(&hash) {
            Some(before) if *before != stamp => self.has_changed.store(true, Ordering::Relaxed),
            Some(_) => {}
            None if recorded.len() < MAX_RECORDED_FILES => drop(recorded.insert(hash, stamp)),
            None => {}
        }
        if self.has_changed.load(Ordering::Relaxed) {
            return Err(Error::new(
                ErrorKind::Stale,
                format!("chunks of the store have changed; open it again (found when `{key}` was read)"),
            ));
        }
        Ok(())
    }
}
