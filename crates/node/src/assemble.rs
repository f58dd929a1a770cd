//! The stack, in one readable place: from where data are to where they are wanted.
//!
//! ```text
//!   path, synthetic:   store::open (format, levels, side cache)  --+
//!                                                                  +-->  cache::Cached  -->  whoever asks
//!   corridor://        dial -> RemoteSource                      --+
//! ```

use std::sync::Arc;

use array::{Error, LongWork, Result, Source, Urgency};
use cache::Cached;
use wire::ops::{Stats, StatsRequest};

use crate::dial::{Dialer, Server};
use crate::memory::Budget;
use crate::places::Places;
use crate::remote::RemoteSource;
use crate::runtime;
use crate::statistics;
use crate::url::Location;

/// What a stack is built with.
#[derive(Clone)]
pub struct Context {
    /// This user's folders.
    pub places: Places,
    /// The process's memory.
    pub budget: Budget,
    /// Told of long work, such as indexing a compressed file.
    pub on_progress: Option<store::OnProgress>,
    /// The memory that reading files works in, one for all data sets.
    scratch: store::Scratch,
}

impl Context {
    /// For stacks that share `budget`.
    #[must_use]
    pub fn new(places: Places, budget: Budget, on_progress: Option<store::OnProgress>) -> Self {
        Self { places, budget, on_progress, scratch: store::Scratch::new(budget.scratch) }
    }

    /// The same for one of `count` data sets that share the memory.
    #[must_use]
    pub fn share_of(&self, count: usize) -> Self {
        Self { budget: self.budget.share_of(count), ..self.clone() }
    }
}

/// A data set, ready to be asked.
#[derive(Clone)]
pub struct Stack {
    /// Its name for people and in URLs.
    pub name: String,
    /// What to ask.
    pub source: Arc<dyn Source>,
    /// The cache in it, for its counters.
    pub cached: Cached,
    /// How far long work behind the source is, for viewers; nothing where another process does it.
    pub work: LongWork,
    /// Who computes statistics: the other side where there is one.
    remote: Option<RemoteSource>,
}

/// Builds the stack for a location. Reads headers only.
///
/// # Errors
/// Those of the store, or of connecting.
pub async fn assemble(location: &Location, context: &Context) -> Result<Stack> {
    let work = LongWork::default();
    let (name, inner, remote) = match location {
        Location::Path(path) => {
            let text = path.to_str().ok_or_else(|| {
                Error::unsupported(format!("expected a path in UTF-8, found `{}`", path.display()))
            })?;
            let name = path.file_name().map_or_else(|| "data".into(), |n| n.to_string_lossy().into_owned());
            (name, open(text, context, &work).await?, None)
        }
        Location::Synthetic(text) => (synthetic_name(text), open(text, context, &work).await?, None),
        Location::Remote(url) => {
            let url = runtime::complete(&context.places.runtime, url.clone());
            let dialer = Dialer::new(Server::of(&url, context.budget.receive)?);
            let remote = RemoteSource::new(dialer, url.dataset.clone());
            let name = match url.dataset.as_str() {
                "" => remote.describe().await?.name.clone(),
                name => name.to_owned(),
            };
            (name, Arc::new(remote.clone()) as Arc<dyn Source>, Some(remote))
        }
    };
    let cached = Cached::new(inner, context.budget.cache);
    Ok(Stack { name, source: Arc::new(cached.clone()), cached, work, remote })
}

/// Files are opened on a thread for blocking work: a header may lie on a slow disk.
async fn open(location: &str, context: &Context, work: &LongWork) -> Result<Arc<dyn Source>> {
    let options = store::OpenOptions {
        side_dir: Some(context.places.cache.clone()),
        on_progress: context.on_progress.clone(),
        scratch: context.scratch.clone(),
        work: work.clone(),
    };
    let location = location.to_owned();
    tokio::task::spawn_blocking(move || store::open(&location, &options))
        .await
        .map_err(|e| Error::internal(format!("opening ended early: {e}")))?
}

/// `synthetic:waves?shape=...` is called `waves`.
fn synthetic_name(text: &str) -> String {
    let rest = text.strip_prefix("synthetic:").unwrap_or(text);
    rest.split('?').next().unwrap_or(rest).to_owned()
}

impl Stack {
    /// Statistics of decoded values, gathered in `memory_bytes` of memory where they are computed here.
    ///
    /// # Errors
    /// The source's; `Invalid` for a place that is none.
    pub async fn stats(&self, request: &StatsRequest, urgency: Urgency, memory_bytes: u64) -> Result<Stats> {
        match &self.remote {
            Some(remote) => remote.stats(request, urgency).await,
            None => statistics::gather(&self.source, request, urgency, memory_bytes).await,
        }
    }
}
