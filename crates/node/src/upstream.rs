//! Where the data of a stack come from: read here, from servers that have all of them, or from servers that each have
//! some data sets. Whoever has the data can compute over them, too.

use std::sync::Arc;

use array::{Error, ErrorKind, Result, Retry, Urgency};
use wire::ops::BlockPlace;

use crate::asks::Ask;
use crate::catalogue::Catalogue;
use crate::remote::RemoteSource;
use crate::servers::{ServerState, Servers};

/// Where the data come from.
#[derive(Clone)]
pub(crate) enum Upstream {
    /// They are read here.
    Here,
    /// These servers have all of them. Where there are several, what is known of them.
    Whole(Vec<RemoteSource>, Option<Servers>),
    /// Each of these servers has some data sets.
    Parts(Arc<Parts>),
}

/// Servers that each have some data sets.
pub(crate) struct Parts {
    pub(crate) catalogue: Catalogue,
    /// Who has which data set, in the order of the catalogue.
    pub(crate) entries: Vec<Having>,
}

/// The servers of one data set.
pub(crate) struct Having {
    pub(crate) name: String,
    pub(crate) servers: Servers,
    pub(crate) remotes: Vec<RemoteSource>,
}

impl Upstream {
    /// Everything that is read from: each data set of each server.
    pub(crate) fn readers(&self) -> impl Iterator<Item = &RemoteSource> {
        let (whole, parts) = match self {
            Self::Here => (&[][..], &[][..]),
            Self::Whole(remotes, _) => (remotes.as_slice(), &[][..]),
            Self::Parts(parts) => (&[][..], parts.entries.as_slice()),
        };
        whole.iter().chain(parts.iter().flat_map(|having| &having.remotes))
    }

    /// Who can compute over an array, and where the array is there. Nobody where it is read here, or lies in stretches on
    /// several servers.
    ///
    /// # Errors
    /// Those of describing; `Stale` for a place of other data.
    pub(crate) async fn computing(&self, place: &BlockPlace) -> Result<(&[RemoteSource], BlockPlace)> {
        match self {
            Self::Here => Ok((&[], *place)),
            Self::Whole(remotes, _) => Ok((remotes, *place)),
            Self::Parts(parts) => Ok(match parts.catalogue.place_there(place).await? {
                Some((entry, there)) => (&parts.entries[entry].remotes, there),
                None => (&[], *place),
            }),
        }
    }

    /// What became of each of several servers so far, with the data set that it has where each has its own.
    pub(crate) fn states(&self) -> Vec<(Option<String>, ServerState)> {
        match self {
            Self::Here | Self::Whole(_, None) => Vec::new(),
            Self::Whole(_, Some(servers)) => {
                servers.states().into_iter().map(|state| (None, state)).collect()
            }
            Self::Parts(parts) => {
                let of = |having: &Having| {
                    let named = |state| (Some(having.name.clone()), state);
                    having.servers.states().into_iter().map(named).collect::<Vec<_>>()
                };
                parts.entries.iter().flat_map(of).collect()
            }
        }
    }
}

/// Whether another server of the same data may answer what this one could not: it is busy or gone, or has other data now.
pub(crate) fn another_may_answer(error: &Error) -> bool {
    error.retry() == Retry::MayHelp || error.kind() == ErrorKind::Stale
}

/// Asks one of `remotes`; another one where it cannot answer now. `None` where there are none.
///
/// # Errors
/// The operation's, or why there is no connection.
///
/// # Cancel safety
/// Dropping it cancels the operation.
pub(crate) async fn ask_one<A: Ask + Clone>(
    remotes: &[RemoteSource],
    ask: &A,
    urgency: Urgency,
) -> Option<Result<A::Answer>> {
    let mut last = None;
    for remote in remotes {
        match remote.ask(ask.clone(), urgency).await {
            Err(error) if another_may_answer(&error) => last = Some(Err(error)),
            answer => return Some(answer),
        }
    }
    last
}
