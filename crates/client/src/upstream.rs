//! Origin of the data of a stack: read here, from servers that have all of them, or from servers that each have some
//! data sets. A server that has the data can also compute over them.

use std::sync::Arc;

use array::{Dataset, DatasetId, Error, ErrorKind, Generation, Result, Retry, Source, Urgency};
use futures::FutureExt;
use futures::stream::{self, StreamExt};
use wire::ops::BlockPlace;

use crate::catalogue::{self, Catalogue, CatalogueHost, FoundDataset};
use crate::peers::{self, CHAIN_WITHIN};
use crate::remote::RemoteSource;
use crate::requests::RemoteOperation;
use crate::servers::{ReplicaSource, ServerState, Servers};
use crate::url::Url;

/// Data sets of a catalogue that are asked for at a time, whether they are others now.
const ASKED_AT_ONCE: usize = 64;

/// Origin of the data.
#[derive(Clone)]
pub enum Upstream {
    /// They are read here.
    Here,
    /// These servers have all of them.
    Replicated(Arc<ReplicatedUpstream>),
    /// Each of these servers has some data sets.
    Catalogue(Arc<CatalogueUpstream>),
}

/// Servers that have all of the data.
pub struct ReplicatedUpstream {
    /// The data as each of them has them.
    pub remotes: Vec<RemoteSource>,
    /// These servers as one source, where there are several.
    pub servers: Option<Servers>,
    /// Other servers that the first one named; `None` where it was not asked.
    pub told: Option<NamedPeers>,
}

/// A server, and the others that it has told of.
pub struct NamedPeers {
    /// The server.
    pub by: Url,
    /// Servers that it named.
    pub others: Vec<Url>,
}

/// Servers that each have some data sets.
pub struct CatalogueUpstream {
    /// All data sets as one.
    pub catalogue: Catalogue,
    /// Servers of each data set, in the order of the catalogue.
    pub entries: Vec<DatasetServers>,
    /// The servers that were asked.
    pub hosts: Vec<CatalogueHost>,
    /// Data set that they were asked for; any where it is empty.
    pub dataset: String,
    /// Data sets that they had.
    pub found: Vec<FoundDataset>,
}

/// The servers of one data set.
pub struct DatasetServers {
    /// Its name.
    pub name: String,
    /// The servers as one source.
    pub servers: Servers,
    /// The data set as each of them has it.
    pub remotes: Vec<RemoteSource>,
}

impl Upstream {
    /// One server that is not asked for others.
    pub fn only(remote: RemoteSource) -> Self {
        Self::Replicated(Arc::new(ReplicatedUpstream { remotes: vec![remote], servers: None, told: None }))
    }

    /// Everything that is read from: each data set of each server.
    pub fn readers(&self) -> impl Iterator<Item = &RemoteSource> {
        let (whole, parts) = match self {
            Self::Here => (&[][..], &[][..]),
            Self::Replicated(whole) => (whole.remotes.as_slice(), &[][..]),
            Self::Catalogue(parts) => (&[][..], parts.entries.as_slice()),
        };
        whole.iter().chain(parts.iter().flat_map(|having| &having.remotes))
    }

    /// Returns the servers that can compute over an array, and the array's place on them. Servers that did not answer
    /// lately come last. None where the array is read here, or lies in stretches on several servers.
    ///
    /// # Errors
    /// Those of describing; `Stale` for a place of other data.
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

    /// The servers that have all of the data; those last that did not answer lately.
    pub fn whole(&self) -> Vec<&RemoteSource> {
        match self {
            Self::Replicated(whole) => in_turn(&whole.remotes, whole.servers.as_ref()),
            Self::Here | Self::Catalogue(_) => Vec::new(),
        }
    }

    /// Whether the servers have other data now, or name other peers, than when they were asked last; false while that
    /// cannot be known.
    pub async fn has_changed(&self) -> bool {
        match self {
            Self::Here => false,
            Self::Replicated(whole) => whole.tells_of_others().await || whole.has_other_data().await,
            Self::Catalogue(parts) => {
                let found = catalogue::find(&parts.hosts, &parts.dataset).await;
                found.is_ok_and(|found| found != parts.found) || parts.have_other_data().await
            }
        }
    }

    /// State of each of several servers so far, with the name of its data set where each has its own.
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
    /// Whether the first server names other peers than before.
    async fn tells_of_others(&self) -> bool {
        let (Some(first), Some(NamedPeers { by, others })) = (self.remotes.first(), &self.told) else {
            return false;
        };
        let found = peers::of(first, CHAIN_WITHIN).await;
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
        stream::iter(each.collect::<Vec<_>>()).buffer_unordered(ASKED_AT_ONCE).any(std::future::ready).await
    }
}

/// Whether servers of one data set have another one now.
async fn have_other_data(servers: &Servers) -> bool {
    let Ok(before) = servers.describe().await else { return false };
    servers.ask_again().await;
    servers.describe().await.is_ok_and(|now| identity(&before) != identity(&now))
}

fn identity(dataset: &Dataset) -> (DatasetId, Generation) {
    (dataset.id, dataset.generation)
}

/// Servers in the order in which they are to be asked.
fn in_turn<'a>(remotes: &'a [RemoteSource], servers: Option<&Servers>) -> Vec<&'a RemoteSource> {
    let is_away = |member: usize| servers.is_some_and(|servers| servers.is_away(member));
    let mut turns: Vec<(bool, &RemoteSource)> =
        remotes.iter().enumerate().map(|(member, remote)| (is_away(member), remote)).collect();
    turns.sort_by_key(|(is_away, _)| *is_away);
    turns.into_iter().map(|(_, remote)| remote).collect()
}

/// The states of servers, of which nothing has been asked perhaps since the connection to one ended.
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

/// Whether another server of the same data may answer what this one could not: it is busy or gone, or has other data now.
pub fn another_may_answer(error: &Error) -> bool {
    error.retry() == Retry::MayHelp || error.kind() == ErrorKind::Stale
}

/// Asks one of `remotes`; another one where it cannot answer now. `None` where there are none.
///
/// # Errors
/// The operation's, or why there is no connection.
///
/// # Cancel safety
/// Dropping it cancels the operation.
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
    struct Gone;

    fn unreachable() -> Error {
        Error::new(ErrorKind::Unreachable, "it is gone")
    }

    impl Source for Gone {
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

    impl ReplicaSource for Gone {
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
    async fn servers_that_are_known_to_be_gone_are_asked_last() {
        let url = "corridor://127.0.0.1:1#token=t".parse().unwrap();
        let dialer = Dialer::new(dial::Endpoint::of(&url, 1 << 20).unwrap());
        let remotes = ["gone", "there"].map(|name| RemoteSource::new(dialer.clone(), name.into()));
        let here = MemorySource::counting("u1", &[4], &[4]);
        let named = |name: &str, source| ReplicaServer { name: name.into(), source };
        let of_both =
            vec![named("gone", Arc::new(Gone) as Arc<dyn ReplicaSource>), named("there", Arc::new(here))];
        let servers = Servers::new(of_both, SharingRule::Spread).unwrap();
        servers.describe().await.unwrap();
        let whole = ReplicatedUpstream { remotes: remotes.into(), servers: Some(servers), told: None };
        let upstream = Upstream::Replicated(Arc::new(whole));
        let names: Vec<&str> = upstream.whole().into_iter().map(RemoteSource::name).collect();
        assert_eq!(names, ["there", "gone"]);
    }
}
