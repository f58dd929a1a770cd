//! Groups of ranks that draw a film together.

use std::sync::Arc;

use array::{Error, Result, Source};
use compose::{MAX_THREADS, Method};
use tokio::task::JoinSet;

use super::RankChannels;
use crate::painter::DrawResources;
use crate::painter::MIN_MEMORY_BYTES;
use crate::run_worker;

/// Ranks that draw a film together. This process is rank 0 and owns the film, unless [`RankGroup::is_worker`]
/// returns true.
#[derive(Clone, Debug)]
pub enum RankGroup {
    /// Ranks on threads of this process, each with its part of the memory: their number including rank 0, and
    /// the compositing method.
    Threads(usize, Method),
    /// Other processes, which call [`run_worker`](crate::run_worker()).
    Processes(RankChannels),
}

/// Channels and resources of rank 0, and the tasks of the other ranks if these are threads.
pub(crate) struct LaunchedRanks {
    pub(crate) ranks: RankChannels,
    pub(crate) resources: DrawResources,
    pub(crate) workers: JoinSet<Result<()>>,
}

impl RankGroup {
    /// Returns true if another process owns the film and this one is a worker.
    #[must_use]
    pub fn is_worker(&self) -> bool {
        matches!(self, Self::Processes(ranks) if ranks.work.rank() > 0)
    }

    /// Starts the other ranks if they are threads. Call it within a tokio runtime.
    ///
    /// # Errors
    /// `Invalid` for more threads than [`MAX_THREADS`], or than the memory suffices for.
    pub(crate) fn launch(self, source: &Arc<dyn Source>, resources: DrawResources) -> Result<LaunchedRanks> {
        let mut workers = JoinSet::new();
        let (count, method) = match self {
            Self::Processes(ranks) => return Ok(LaunchedRanks { ranks, resources, workers }),
            Self::Threads(count, method) => (count, method),
        };
        let most = (resources.memory_bytes / MIN_MEMORY_BYTES).min(MAX_THREADS as u64);
        if count == 0 || count as u64 > most {
            return Err(Error::invalid(format!(
                "expected 1 to {most} ranks with this much memory, found {count}; each needs {MIN_MEMORY_BYTES} bytes"
            )));
        }
        let resources = DrawResources { memory_bytes: resources.memory_bytes / count as u64, ..resources };
        let both = compose::threads(count)?.into_iter().zip(compose::threads(count)?);
        let mut all = both.map(|(work, cancellations)| RankChannels {
            work: Arc::new(work),
            cancellations: Arc::new(cancellations),
            method,
        });
        let ranks = all.next().ok_or_else(|| Error::internal("there is no rank 0"))?;
        for worker in all {
            workers.spawn(run_worker(Arc::clone(source), resources.clone(), worker));
        }
        Ok(LaunchedRanks { ranks, resources, workers })
    }
}
