//! Origin of the data of a stack: read here, from servers that have all of them, or from servers that each have some
//! data sets. A server that has the data can also run operations on them.

use std::sync::Arc;

use array::{Dataset, DatasetId, Error, ErrorKind, Generation, Result, Retry, Source, Urgency};
use futures::FutureExt;
use futures::stream::{self, StreamExt};
use wire::ops::BlockPlace;

use crate::catalogue::{self, Catalogue, CatalogueHost, FoundDataset};
use crate::peers::{self, CHAIN_TIMEOUT};
use crate::remote::RemoteSource;
use crate::requests::RemoteOperation;
use crate::servers::{ReplicaSource, ServerState, Servers};
use crate::url::Url;

/// Number of data sets of a catalogue that are checked for changes concurrently.
const MAX_CONCURRENT_CHECKS: usize = 64;

/// Origin of the data.
#[derive(Clone)]
pub enum Upstream {
    /// The data are read here.
    Here,
    /// All of these servers have all data.
    Replicated(Arc<ReplicatedUpstream>),
    /// Each of these servers has some data sets.
    Catalogue(Arc<CatalogueUpstream>),
}

/// Servers that have all of the data.
pub struct ReplicatedUpstream {
    /// Source of each server.
    pub remotes: Vec<RemoteSource>,
    /// The servers as one source, if there are several.
    pub servers: Option<Servers>,
    /// Other servers that the first one named; `None` if it was not asked.
    pub told: Option<NamedPeers>,
}

/// A server, and the other servers that it named.
pub struct NamedPeers {
    /// The server.
    pub by: Url,
    /// Servers that it named.
    pub others: Vec<Url>,
}

/// Servers that each have some data sets.
pub struct CatalogueUpstream {
    /// All data sets as one source.
    pub catalogue: Catalogue,
    /// Servers of each data set, in the order of the catalogue.
    pub entries: Vec<DatasetServers>,
    /// The servers that were asked.
    pub hosts: Vec<CatalogueHost>,
    /// Name of the data set that was requested; any if it is empty.
    pub dataset: String,
    /// Data sets that the servers listed.
    pub found: Vec<FoundDataset>,
}

/// The servers of one data set.
pub struct DatasetServers {
    /// Name of the data set.
    pub name: String,
    /// The servers as one source.
    pub servers: Servers,
    /// Source of each server.
    pub remotes: Vec<RemoteSource>,
}

impl Upstream {
    /// Creates the upstream of one server that is not asked for others.
    pub fn only(remote: RemoteSource) -> Self {
        Self::Replicated(Arc::new(ReplicatedUpstream { remotes: vec![remote], servers: None, told: None }))
    }

    /// Returns every source: each data set of each server.
    pub fn readers(&self) -> impl Iterator<Item = &RemoteSource> {
        let (whole, parts) = match self {
            Self::Here => (&[][..], &[][..]),
            Self::Replicated(whole) => (whole.remotes.as_slice(), &[][..]),
            Self::Catalogue(parts) => (&[][..], parts.entries.as_slice()),
        };
        whole.iter().chain(parts.iter().flat_map(|having| &having.remotes))
    }

    /// Returns the servers that can run operations on an array, and the array's place on them. Servers that did not
    /// answer recently come last. Empty if the array is read here, or lies in segments on several servers.
    ///
    /// # Errors
    /// The errors of describing; `Stale` for a place of other data.
    pub async fn computing(&self, place: &BlockPlace) -> Result<(Vec<&RemoteSource>, BlockPlace)> {
        match self {
            Self::Here | Self::Replicated(..) => Ok((self.whole(), *place)),
            Self::Catalogue(parts) => Ok(match parts.catalogue.place_there(place).await? {
                Some((entry, there)) => {
                    let DatasetServers { remotes, servers, .. } = &parts.entries[entry];
                    (in_turn(remotes, Some(servers)), there)
                }
                None => (Vec::new(), *place),
            }),
        }
    }

    /// Returns the servers that have all data; those that did not answer recently come last.
    pub fn whole(&self) -> Vec<&RemoteSource> {
        match self {
            Self::Replicated(whole) => in_turn(&whole.remotes, whole.servers.as_ref()),
            Self::Here | Self::Catalogue(_) => Vec::new(),
        }
    }

    /// Returns whether the servers have other data now, or name other peers, than at the last request; false if that
    /// cannot be determined.
    pub async fn has_changed(&self) -> bool {
        match self {
            Self::Here => false,
            Self::Replicated(whole) => whole.names_other_peers().await || whole.has_other_data().await,
            Self::Catalogue(parts) => {
                let found = catalogue::find(&parts.hosts, &parts.dataset).await;
                found.is_ok_and(|found| found != parts.found) || parts.have_other_data().await
            }
        }
    }

    /// Returns the state of each of several servers, with the name of its data set if each has its own.
    pub fn states(&self) -> Vec<(Option<String>, ServerState)> {
        match self {
            Self::Here => Vec::new(),
            Self::Replicated(whole) => {
                let now = |servers| states_now(servers, &whole.remotes);
                whole.servers.iter().flat_map(now).map(|state| (None, state)).collect()
            }
            Self::Catalogue(parts) => {
                let of = |having: &DatasetServers| {
                    let named = |state| (Some(having.name.clone()), state);
                    states_now(&having.servers, &having.remotes).map(named).collect::<Vec<_>>()
                };
                parts.entries.iter().flat_map(of).collect()
            }
        }
    }
}

impl ReplicatedUpstream {
    /// Returns whether the first server names other peers than before.
    async fn names_other_peers(&self) -> bool {
        let (Some(first), Some(NamedPeers { by, others })) = (self.remotes.first(), &self.told) else {
            return false;
        };
        let found = peers::of(first, CHAIN_TIMEOUT).await;
        found.is_ok_and(|found| found.others(by) != *others)
    }

    async fn has_other_data(&self) -> bool {
        match (&self.servers, &self.remotes[..]) {
            (Some(servers), _) => have_other_data(servers).await,
            (None, [only]) => {
                let (before, now) = (only.describe().await, only.describe_again().await);
                before.is_ok_and(|before| now.is_ok_and(|now| identity(&before) != identity(&now)))
            }
            (None, _) => false,
        }
    }
}

impl CatalogueUpstream {
    async fn have_other_data(&self) -> bool {
        let each = self.entries.iter().map(|having| have_other_data(&having.servers).boxed());
        stream::iter(each.collect::<Vec<_>>())
            .buffer_unordered(MAX_CONCURRENT_CHECKS)
            .any(std::future::ready)
            .await
    }
}

/// Returns whether servers of one data set have another one now.
async fn have_other_data(servers: &Servers) -> bool {
    let Ok(before) = servers.describe().await else { return false };
    servers.ask_again().await;
    servers.describe().await.is_ok_and(|now| identity(&before) != identity(&now))
}

fn identity(dataset: &Dataset) -> (DatasetId, Generation) {
    (dataset.id, dataset.generation)
}

/// Returns the servers in the order in which they are to be asked.
fn in_turn<'a>(remotes: &'a [RemoteSource], servers: Option<&Servers>) -> Vec<&'a RemoteSource> {
    let is_away = |member: usize| servers.is_some_and(|servers| servers.is_away(member));
    let mut turns: Vec<(bool, &RemoteSource)> =
        remotes.iter().enumerate().map(|(member, remote)| (is_away(member), remote)).collect();
    turns.sort_by_key(|(is_away, _)| *is_away);
    turns.into_iter().map(|(_, remote)| remote).collect()
}

/// Returns the states of servers, updated for connections that have ended since the last request.
fn states_now<'a>(
    servers: &Servers,
    remotes: &'a [RemoteSource],
) -> impl Iterator<Item = ServerState> + use<'a> {
    let now = |(state, remote): (ServerState, &RemoteSource)| {
        let away = state.away.or_else(|| remote.dialer().lost());
        ServerState { away, ..state }
    };
    servers.states().into_iter().zip(remotes).map(now)
}

/// Returns whether another server of the same data may answer a request that failed: the server is busy or not
/// available, or has other data now.
pub fn another_may_answer(error: &Error) -> bool {
    error.retry() == Retry::MayHelp || error.kind() == ErrorKind::Stale
}

/// Sends the request to one of `remotes`, and to the next one if it cannot answer now. `None` if there are none.
///
/// # Errors
/// The operation's error, or the reason that there is no connection.
///
/// # Cancel safety
/// Dropping the future cancels the operation.
pub async fn ask_one<A: RemoteOperation + Clone>(
    remotes: &[&RemoteSource],
    ask: &A,
    urgency: Urgency,
) -> Option<Result<A::Response>> {
    let mut last = None;
    for remote in remotes {
        match remote.ask(ask.clone(), urgency).await {
            Err(error) if another_may_answer(&error) => last = Some(Err(error)),
            answer => return Some(answer),
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use array::conformance::MemorySource;
    use array::{Completions, ReadRequest, Region, Want};
    use futures::future::{BoxFuture, ready};

    use super::*;
    use crate::dial::{self, Dialer};
    use crate::servers::{ReplicaServer, SharingRule};

    /// A server that does not answer.
    struct UnreachableServer;

    fn unreachable() -> Error {
        Error::new(ErrorKind::Unreachable, "it does not answer")
    }

    impl Source for UnreachableServer {
        fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
            ready(Err(unreachable())).boxed()
        }

        fn blocks(&self, _: Vec<Want>) -> Completions {
            stream::empty().boxed()
        }

        fn read(&self, _: ReadRequest, _: Region) -> BoxFuture<'static, Result<()>> {
            ready(Err(unreachable())).boxed()
        }
    }

    impl ReplicaSource for UnreachableServer {
        fn describe_again(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
            self.describe()
        }
    }

    impl ReplicaSource for MemorySource {
        fn describe_again(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
            self.describe()
        }
    }

    #[tokio::test]
    async fn servers_that_did_not_answer_are_asked_last() {
        let url = "corridor://127.0.0.1:1#token=t".parse().unwrap();
        let dialer = Dialer::new(dial::Endpoint::of(&url, 1 << 20).unwrap());
        let remotes = ["absent", "present"].map(|name| RemoteSource::new(dialer.clone(), name.into()));
        let here = MemorySource::counting("u1", &[4], &[4]);
        let named = |name: &str, source| ReplicaServer { name: name.into(), source };
        let of_both = vec![
            named("absent", Arc::new(UnreachableServer) as Arc<dyn ReplicaSource>),
            named("present", Arc::new(here)),
        ];
        let servers = Servers::new(of_both, SharingRule::Spread).unwrap();
        servers.describe().await.unwrap();
        let whole = ReplicatedUpstream { remotes: remotes.into(), servers: Some(servers), told: None };
        let upstream = Upstream::Replicated(Arc::new(whole));
        let names: Vec<&str> = upstream.whole().into_iter().map(RemoteSource::name).collect();
        assert_eq!(names, ["present", "absent"]);
    }
}
