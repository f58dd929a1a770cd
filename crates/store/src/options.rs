//! Options of opening, and the progress of long work.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use array::{LongWork, Meaning};

use crate::{SIDE_CACHE_BYTES, Scratch, SideCache};

/// Progress of a long task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongTaskProgress {
    /// Description of the task, for people: `indexing brain.nii.gz`.
    pub what: String,
    /// Bytes done.
    pub done_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

/// Callback for progress, called from any thread.
pub type OnProgress = Arc<dyn Fn(LongTaskProgress) + Send + Sync>;

/// Options of opening.
#[derive(Clone, Default)]
pub struct OpenOptions {
    /// Directory for things worth keeping between runs (gzip restart points, made levels); `None` keeps
    /// them in memory only.
    pub side_dir: Option<PathBuf>,
    /// Exported folder: files that others name (links and virtual data sets of HDF5) must lie in it or below; `None` for the folder of the
    /// file that is opened.
    pub folder: Option<PathBuf>,
    /// Callback for the progress of long work.
    pub on_progress: Option<OnProgress>,
    /// Budget of the working memory of reads; shared with everything that is opened with a clone of it.
    pub scratch: Scratch,
    /// Progress of long work, for viewers: keep a clone to read it.
    pub work: LongWork,
    /// Meaning of arrays that a person chose; `None` leaves it to formats and names.
    pub meaning: Option<Meaning>,
}

impl OpenOptions {
    /// The side cache in [`side_dir`](Self::side_dir), of the usual size.
    pub(crate) fn side_cache(&self) -> Option<SideCache> {
        self.side_dir.as_ref().map(|dir| SideCache::new(dir, SIDE_CACHE_BYTES))
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOptions").field("side_dir", &self.side_dir).finish_non_exhaustive()
    }
}
