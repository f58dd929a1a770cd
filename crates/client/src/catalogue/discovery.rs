//! Which server has which data set: each is asked for its list, and what has the same name must be the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use array::{Dataset, DatasetId, Error, ErrorKind, Generation, Priority, Result, Source, Urgency};
use futures::future::join_all;
use wire::ops::ListEntry;

use crate::dial::Dialer;
use crate::remote::RemoteSource;
use crate::requests::List;

/// Most data sets of one catalogue.
pub const MAX_DATASETS: usize = 1024;
/// How long a server may take to say what it has.
const LIST_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to describe a data set.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(30);

/// A server that may have some of the data sets.
pub struct CatalogueHost {
    /// Its address for people.
    pub name: String,
    /// Its dialer.
    pub dialer: Dialer,
}

/// A data set, and who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDataset {
    /// Name of the data set.
    pub name: String,
    /// Numbers of the servers, at least one.
    pub hosts: Vec<usize>,
}

/// The data sets of all servers by name; only the one called `dataset` unless that is empty.
///
/// # Errors
/// That of a server that does not answer: what it has is not known. `NotFound` for no data set, `TooLarge` for more
/// than [`MAX_DATASETS`].
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
    let answer = tokio::time::timeout(LIST_WITHIN, asked).await.unwrap_or_else(|_| late());
    answer.map_err(|e| unknown(e, host))
}

fn unknown(error: Error, host: &CatalogueHost) -> Error {
    let what = "what it has is not known; leave it out of the URL to go on without";
    error.context(format!("server {}: {what}", host.name))
}

/// Whether every server has one data set and all have the same: then they are replicas, whatever they call it. Of those
/// that call it the same one that cannot be asked now is not counted; any other may have a part of the data.
///
/// # Errors
/// Why a server that has a data set of another name does not say what it is.
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

/// Checks that all servers of a data set describe the same identity and generation. Servers that cannot be asked are
/// skipped here; they are compared when they can be asked.
///
/// # Errors
/// `Invalid`, naming two that differ.
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

/// The description of a data set, in time: one server that stalls must not hold up all others.
///
/// # Errors
/// `TimedOut`, or why it cannot be described.
pub(super) async fn described(source: &dyn Source) -> Result<Arc<Dataset>> {
    let late = || {
        let secs = DESCRIBED_WITHIN.as_secs();
        Error::new(ErrorKind::TimedOut, format!("expected its description within {secs} s, found none"))
    };
    tokio::time::timeout(DESCRIBED_WITHIN, source.describe()).await.unwrap_or_else(|_| Err(late()))
}
