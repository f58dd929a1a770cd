//! An open data set with its cache, used for serving, viewing and export.

use std::sync::Arc;

use array::{Dataset, Error, LongWork, Result, Source, Urgency};
use cache::Cached;
use client::remote::{Carried, RemoteSource};
use client::remote_call::{DynamicCall, DynamicResponse};
use client::requests::RemoteOperation;
use client::servers::ServerState;
use client::upstream::{Upstream, another_may_answer, ask_one};
use export::statistics;
use wire::ops::{StatsAnswer, StatsParameters};

use crate::geometry_origin::GeometryOrigin;

/// An open data set with its cache.
#[derive(Clone)]
pub struct Stack {
    /// Name for display and in URLs.
    pub name: String,
    /// Source that answers reads and describes the data.
    pub source: Arc<dyn Source>,
    /// The cache in it, for its counters.
    pub cached: Cached,
    /// Progress of long work behind the source, for viewers; empty if another process does the work.
    pub work: LongWork,
    /// Name of the array at the end of the location, if only the other side can determine it; otherwise empty.
    pub array: String,
    /// Origin of the data: read in this process, or received from servers.
    pub upstream: Upstream,
    /// Place where the geometry beside the data is found.
    pub geometry: GeometryOrigin,
}

impl Stack {
    /// Returns statistics of decoded values, computed within `memory_bytes` of memory if they are computed here.
    ///
    /// # Errors
    /// The errors of the source; `Invalid` for a place that does not exist.
    pub async fn stats(
        &self,
        request: &StatsParameters,
        urgency: Urgency,
        memory_bytes: u64,
    ) -> Result<StatsAnswer> {
        let (remotes, place) = self.upstream.computing(&request.place).await?;
        match ask_one(&remotes, &StatsParameters { place, ..request.clone() }, urgency).await {
            Some(answer) => answer,
            None => statistics::gather(&self.source, request, urgency, memory_bytes).await,
        }
    }

    /// Sends a request that is not a read to a server that has the data, and to the next one if it cannot answer now.
    ///
    /// # Errors
    /// The operation's error, or the reason that there is no connection; `Unsupported` for data that are read here, or
    /// of which several servers have a part each.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the operation.
    pub async fn ask<A: RemoteOperation + Clone>(&self, ask: A, urgency: Urgency) -> Result<A::Response> {
        ask_one(&self.upstream.whole(), &ask, urgency)
            .await
            .unwrap_or_else(|| Err(self.nobody_computes(ask.name())))
    }

    /// Calls an operation on a server that has its elements.
    ///
    /// # Errors
    /// As [`ask`](Self::ask); `Stale` if the data have changed.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the operation.
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

    /// Returns the current description: requested again if a server has all of the data, otherwise the known one.
    ///
    /// # Errors
    /// The errors of describing.
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

    /// Returns the state of each of several servers, with the name of its data set if each has its own. Empty if data
    /// are read here.
    #[must_use]
    pub fn servers(&self) -> Vec<(Option<String>, ServerState)> {
        self.upstream.states()
    }

    /// Returns the number of bytes of data received over the network, and of the bytes transferred for them; `None` if
    /// data are read here.
    #[must_use]
    pub fn carried(&self) -> Option<Carried> {
        self.upstream.readers().map(RemoteSource::carried).reduce(|a, b| Carried {
            data_bytes: a.data_bytes + b.data_bytes,
            carried_bytes: a.carried_bytes + b.carried_bytes,
        })
    }
}
