//! A data set, ready to be asked: by whoever serves it, shows it or writes it to files.

use std::sync::Arc;

use array::{Dataset, Error, LongWork, Result, Source, Urgency};
use cache::Cached;
use client::remote::{Carried, RemoteSource};
use client::remote_call::{DynamicCall, DynamicResponse};
use client::requests::RemoteOperation;
use client::servers::ServerState;
use client::upstream::{Upstream, another_may_answer, ask_one};
use export::statistics;
use wire::ops::{Stats, StatsRequest};

/// A data set, ready to be asked.
#[derive(Clone)]
pub struct Stack {
    /// Its name for people and in URLs.
    pub name: String,
    /// Source that answers reads and describes the data.
    pub source: Arc<dyn Source>,
    /// The cache in it, for its counters.
    pub cached: Cached,
    /// How far long work behind the source is, for viewers; nothing where another process does it.
    pub work: LongWork,
    /// Name of the array that the location ended with, where only the other side can know; else empty.
    pub array: String,
    /// Origin of the data: read in this process, or received from servers.
    pub upstream: Upstream,
}

impl Stack {
    /// Statistics of decoded values, gathered in `memory_bytes` of memory where they are computed here.
    ///
    /// # Errors
    /// The source's; `Invalid` for a place that is none.
    pub async fn stats(&self, request: &StatsRequest, urgency: Urgency, memory_bytes: u64) -> Result<Stats> {
        let (remotes, place) = self.upstream.computing(&request.place).await?;
        match ask_one(&remotes, &StatsRequest { place, ..request.clone() }, urgency).await {
            Some(answer) => answer,
            None => statistics::gather(&self.source, request, urgency, memory_bytes).await,
        }
    }

    /// Asks a server that has the data for something else than reading; another one where one cannot answer now.
    ///
    /// # Errors
    /// The operation's, or why there is no connection; `Unsupported` for data that are read here, or of which several
    /// servers have a part each.
    ///
    /// # Cancel safety
    /// Dropping it cancels the operation.
    pub async fn ask<A: RemoteOperation + Clone>(&self, ask: A, urgency: Urgency) -> Result<A::Response> {
        ask_one(&self.upstream.whole(), &ask, urgency)
            .await
            .unwrap_or_else(|| Err(self.nobody_computes(ask.name())))
    }

    /// Asks whoever has the elements that an operation names.
    ///
    /// # Errors
    /// As [`ask`](Self::ask); `Stale` when the data are others now.
    ///
    /// # Cancel safety
    /// Dropping it cancels the operation.
    pub async fn call(&self, mut called: DynamicCall, urgency: Urgency) -> Result<DynamicResponse> {
        let (remotes, there) = self.upstream.computing(&called.request.of.place()).await?;
        called.request.of = called.request.of.at(there);
        ask_one(&remotes, &called, urgency).await.unwrap_or_else(|| Err(self.nobody_computes(called.name())))
    }

    fn nobody_computes(&self, operation: &str) -> Error {
        Error::unsupported(format!(
            "expected data that one server has as a whole for the operation `{operation}`; those of `{}` are read here",
            self.name
        ))
    }

    /// The description as it is now: asked anew where a server has all of the data, else the one that is known.
    ///
    /// # Errors
    /// Those of describing.
    pub async fn described_now(&self) -> Result<Arc<Dataset>> {
        let mut last = None;
        for remote in self.upstream.whole() {
            match remote.described_now().await {
                Err(error) if another_may_answer(&error) => last = Some(error),
                answer => return answer,
            }
        }
        match last {
            Some(error) => Err(error),
            None => self.source.describe().await,
        }
    }

    /// State of each of several servers so far, with the name of its data set if each has its own. Empty where data
    /// are read here.
    #[must_use]
    pub fn servers(&self) -> Vec<(Option<String>, ServerState)> {
        self.upstream.states()
    }

    /// Bytes of data received over the network, and the bytes that carried them; `None` where data are read here.
    #[must_use]
    pub fn carried(&self) -> Option<Carried> {
        self.upstream.readers().map(RemoteSource::carried).reduce(|a, b| Carried {
            data_bytes: a.data_bytes + b.data_bytes,
            carried_bytes: a.carried_bytes + b.carried_bytes,
        })
    }
}
