//! Search for the servers of each data set: every server is asked for its list, and data sets of the same name must be
//! identical.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use array::{Dataset, DatasetId, Error, ErrorKind, Generation, Priority, Result, Source, Urgency};
use futures::future::join_all;
use wire::ops::ListEntry;

use crate::dial::Dialer;
use crate::remote::RemoteSource;
use crate::requests::List;

/// Maximum number of data sets in one catalogue.
pub const MAX_DATASETS: usize = 1024;
/// Timeout for the list of one server's data sets.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for the description of one data set.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(30);

/// A server that may have some of the data sets.
pub struct CatalogueHost {
    /// Address of the server, for display.
    pub name: String,
    /// Dialer of the server.
    pub dialer: Dialer,
}

/// A data set, and the servers that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDataset {
    /// Name of the data set.
    pub name: String,
    /// Numbers of the servers, at least one.
    pub hosts: Vec<usize>,
}

/// Lists the data sets of all servers by name; only the one called `dataset` unless that is empty.
///
/// # Errors
/// The error of a server that does not answer, because its data sets are not known then. `NotFound` if there is no data
/// set, `TooLarge` for more than [`MAX_DATASETS`].
pub async fn find(hosts: &[CatalogueHost], dataset: &str) -> Result<Vec<FoundDataset>> {
    let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let answers = join_all(hosts.iter().map(list)).await;
    for (number, answer) in answers.into_iter().enumerate() {
        for entry in answer? {
            if dataset.is_empty() || entry.name == dataset {
                found.entry(entry.name).or_default().push(number);
            }
        }
    }
    if found.is_empty() {
        let names: Vec<&str> = hosts.iter().map(|h| h.name.as_str()).collect();
        let wanted =
            if dataset.is_empty() { "a data set".into() } else { format!("the data set `{dataset}`") };
        return Err(Error::not_found(format!(
            "expected {wanted} on one of the servers {names:?}, found none"
        )));
    }
    if found.len() > MAX_DATASETS {
        let count = found.len();
        return Err(Error::too_large(format!("expected at most {MAX_DATASETS} data sets, found {count}")));
    }
    Ok(found.into_iter().map(|(name, hosts)| FoundDataset { name, hosts }).collect())
}

async fn list(host: &CatalogueHost) -> Result<Vec<ListEntry>> {
    let asked = host.dialer.ask(List, Urgency::of(Priority::INTERACTIVE));
    let late = || Err(Error::new(ErrorKind::TimedOut, "it did not answer"));
    let answer = tokio::time::timeout(LIST_TIMEOUT, asked).await.unwrap_or_else(|_| late());
    answer.map_err(|e| unknown(e, host))
}

fn unknown(error: Error, host: &CatalogueHost) -> Error {
    let what = "its data sets are not known; remove it from the URL to continue without it";
    error.context(format!("server {}: {what}", host.name))
}

/// Returns whether every server has one data set and all of these are the same: they are then replicas, whatever their
/// names are. Servers that cannot be reached are ignored where they list the data set under the same name; a server
/// that lists another name may have a part of the data.
///
/// # Errors
/// The error of describing a data set of another name.
pub async fn is_one(hosts: &[CatalogueHost], found: &[FoundDataset]) -> Result<bool> {
    let each = |host: usize| found.iter().filter(|f| f.hosts.contains(&host)).count() == 1;
    if !(0..hosts.len()).all(each) {
        return Ok(false);
    }
    let only = hosts.iter().map(async |host| identity(host, "").await.map_err(|e| unknown(e, host)));
    let mut identities = Vec::with_capacity(hosts.len());
    for answer in join_all(only).await {
        match answer {
            Ok(identity) => identities.push(identity),
            Err(error) if found.len() > 1 => return Err(error),
            Err(_) => {}
        }
    }
    Ok(identities.windows(2).all(|pair| pair[0] == pair[1]))
}

/// Checks that all servers of a data set describe the same identity and generation. Servers that cannot be reached are
/// skipped; they are compared when they can be reached.
///
/// # Errors
/// `Invalid`, naming two servers that differ.
pub async fn same_everywhere(hosts: &[CatalogueHost], found: &FoundDataset) -> Result<()> {
    if found.hosts.len() < 2 {
        return Ok(());
    }
    let asked = found.hosts.iter().map(|&number| async move {
        let identity = identity(&hosts[number], &found.name).await;
        identity.ok().map(|identity| (identity, &hosts[number].name))
    });
    let mut answers = join_all(asked).await.into_iter().flatten();
    let Some((expected, first)) = answers.next() else { return Ok(()) };
    match answers.find(|(identity, _)| *identity != expected) {
        None => Ok(()),
        Some(((id, generation), other)) => Err(Error::invalid(format!(
            "expected the same data set `{name}` on {first} and {other}, found {expected_id} generation \
             {expected_generation} and {id} generation {}: other data, or a copy with another time of modification \
             (`cp -p` and `rsync -t` keep it)",
            generation.0,
            name = found.name,
            expected_id = expected.0,
            expected_generation = expected.1.0,
        ))),
    }
}

async fn identity(host: &CatalogueHost, dataset: &str) -> Result<(DatasetId, Generation)> {
    let described = described(&RemoteSource::new(host.dialer.clone(), dataset.to_owned())).await?;
    Ok((described.id, described.generation))
}

/// Describes a data set within a time limit, so that one server that stalls does not delay all others.
///
/// # Errors
/// `TimedOut`, or the error of describing.
pub(super) async fn described(source: &dyn Source) -> Result<Arc<Dataset>> {
    let late = || {
        let secs = DESCRIBE_TIMEOUT.as_secs();
        Error::new(ErrorKind::TimedOut, format!("expected its description within {secs} s, found none"))
    };
    tokio::time::timeout(DESCRIBE_TIMEOUT, source.describe()).await.unwrap_or_else(|_| Err(late()))
}
