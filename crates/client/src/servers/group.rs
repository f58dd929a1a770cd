//! The servers of one data set: which of them are available, and the check that they have the same data.
//!
//! Identity, generation and block grids must be equal: a server with another description is not used, and checked again
//! periodically. A result never mixes two states of the data: blocks carry their identity, and after a read the server
//! must still give the same description as before.
//!
//! The group keeps the description until no server with it is left, and one of these servers gives another description.
//! Then every server is asked again. The last description of a server counts only while the server answers.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use array::{
    ArrayInfo, AxisRange, Dataset, Error, ErrorKind, Priority, ReadRequest, Result, Retry, Selection, Source,
    Target,
};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep};

use super::scheduler::{MAX_SERVERS, ServerHealth, ServerSet};
use super::work_queue::WorkQueue;

/// Delay for which the description of a server named earlier is preferred to that of a server named later.
const PREFERENCE_DELAY: Duration = Duration::from_secs(1);

/// A source that may store its description, and can request it again.
pub trait ReplicaSource: Source {
    /// Requests the current description, whatever is stored, and stores it.
    fn describe_again(&self) -> BoxFuture<'static, Result<Arc<Dataset>>>;
}

/// One server as a source.
#[derive(Clone)]
pub struct ReplicaServer {
    /// Name for display; it must not change when the group is created again, because homes are computed from it.
    pub name: String,
    /// Source of the server's data.
    pub source: Arc<dyn ReplicaSource>,
}

struct ServerGroupMember {
    server: ReplicaServer,
    is_monitored: AtomicBool,
}

/// Statistics and availability of one server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerState {
    /// Name of the server.
    pub name: String,
    /// Reason that it is not used now; `None` if it is used.
    pub away: Option<Error>,
    /// Number of bytes it has delivered.
    pub delivered_bytes: u64,
    /// Measured rate, in bytes per second.
    pub rate_bytes_per_sec: Option<f64>,
}

/// Description of the data, and the servers that gave it.
struct KnownDataset {
    dataset: Arc<Dataset>,
    /// Servers that have given this description.
    by: ServerSet,
}

pub(super) struct ServerGroup {
    me: Weak<Self>,
    members: Vec<ServerGroupMember>,
    pub(super) queue: Arc<WorkQueue>,
    known: Mutex<Option<KnownDataset>>,
    describing: tokio::sync::Mutex<()>,
    /// Tasks that check servers that are not available; they end with this value.
    watchers: Mutex<JoinSet<()>>,
}

impl ServerGroup {
    pub(super) fn new(servers: Vec<ReplicaServer>) -> Result<Arc<Self>> {
        let count = servers.len();
        if count == 0 || count > MAX_SERVERS {
            return Err(Error::invalid(format!("expected 1 to {MAX_SERVERS} servers, found {count}")));
        }
        let member = |server| ServerGroupMember { server, is_monitored: AtomicBool::new(false) };
        Ok(Arc::new_cyclic(|me| Self {
            me: me.clone(),
            members: servers.into_iter().map(member).collect(),
            queue: Arc::new(WorkQueue::new(count)),
            known: Mutex::default(),
            describing: tokio::sync::Mutex::default(),
            watchers: Mutex::default(),
        }))
    }

    pub(super) fn all(&self) -> ServerSet {
        ServerSet::all(self.members.len())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|m| m.server.name.as_str())
    }

    pub(super) fn source(&self, member: usize) -> &Arc<dyn ReplicaSource> {
        &self.members[member].server.source
    }

    pub(super) fn states(&self) -> Vec<ServerState> {
        let state = |(n, name): (usize, &str)| {
            self.queue.with(|scheduler| ServerState {
                name: name.to_owned(),
                away: match scheduler.health(n) {
                    ServerHealth::Ready => None,
                    ServerHealth::Silent => Some(silent()),
                    ServerHealth::Away { why, .. } => Some(why.clone()),
                },
                delivered_bytes: scheduler.delivered_bytes(n),
                rate_bytes_per_sec: scheduler.rate_bytes_per_sec(n),
            })
        };
        self.names().enumerate().map(state).collect()
    }

    pub(super) fn is_away(&self, member: usize) -> bool {
        self.queue.with(|scheduler| *scheduler.health(member) != ServerHealth::Ready)
    }

    /// Returns the description that all servers share; asks all of them if none is known.
    pub(super) async fn dataset(&self) -> Result<Arc<Dataset>> {
        if let Some(known) = self.known() {
            return Ok(known);
        }
        let _only_one_asks = self.describing.lock().await;
        if let Some(known) = self.known() {
            return Ok(known);
        }
        let answers = self.describe_all().await;
        let chosen = answers.iter().flatten().find_map(|answer| answer.as_ref().ok()).cloned();
        let (mut failures, mut by) = (Vec::new(), ServerSet::NONE);
        for (member, answer) in answers.into_iter().enumerate() {
            let same = answer.map(|a| a.and_then(|found| same_data(chosen.as_deref(), &found)));
            match same {
                Some(Ok(())) => {
                    by = by.with(member);
                    self.queue.with(|scheduler| scheduler.returned(member));
                }
                Some(Err(error)) => {
                    // If no server gave a usable description, the error contains the reason of each.
                    if chosen.is_some() {
                        self.log_exclusion(member, &error);
                    }
                    self.queue.with(|scheduler| scheduler.still_away(member, error.clone()));
                    failures.push((member, error));
                }
                // Its response may still arrive.
                None => {}
            }
        }
        let Some(chosen) = chosen else { return Err(self.refusal(&failures)) };
        *self.known.lock() = Some(KnownDataset { dataset: Arc::clone(&chosen), by });
        for member in 0..self.members.len() {
            if self.is_away(member) {
                self.monitor(member);
            }
        }
        Ok(chosen)
    }

    /// Requests the current description of every server. Servers with other data than before are not used; if no server
    /// is left, the stored description is dropped.
    pub(super) async fn ask_again(&self) {
        let Some(known) = self.known() else { return };
        for (member, answer) in self.describe_all().await.into_iter().enumerate() {
            if let Some(Ok(found)) = answer
                && let Err(error) = same_data(Some(&known), &found)
                && !self.is_away(member)
                && self.queue.with(|scheduler| scheduler.mark_unavailable(member, error))
            {
                self.monitor(member);
            }
        }
        if (0..self.members.len()).all(|member| self.is_away(member)) {
            self.is_over(&known, &[]);
        }
    }

    fn known(&self) -> Option<Arc<Dataset>> {
        self.known.lock().as_ref().map(|known| Arc::clone(&known.dataset))
    }

    /// Asks all servers at once. The first in the order in which they were named is used; the others are not waited for
    /// longer than [`PREFERENCE_DELAY`] after one has answered.
    async fn describe_all(&self) -> Vec<Option<Result<Arc<Dataset>>>> {
        let mut asked: FuturesUnordered<_> = (0..self.members.len())
            .map(|member| {
                let answer = self.source(member).describe_again();
                async move { (member, answer.await) }
            })
            .collect();
        let mut answers: Vec<Option<Result<Arc<Dataset>>>> = vec![None; self.members.len()];
        let mut preference_end = None;
        loop {
            let end = async {
                match preference_end {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some((member, answer)) = asked.next(), if !asked.is_empty() => {
                    if answer.is_ok() && preference_end.is_none() {
                        preference_end = Some(tokio::time::Instant::now() + PREFERENCE_DELAY);
                    }
                    answers[member] = Some(answer);
                }
                () = end => return answers,
            }
            if asked.is_empty() {
                return answers;
            }
        }
    }

    /// Checks that a server still has the same data as `known`.
    pub(super) async fn check_same(&self, member: usize, known: &Dataset) -> Result<()> {
        let found = self.source(member).describe().await?;
        same_data(Some(known), &found)
    }

    /// Checks that the description `found` of a server matches the stored one, and adds the server to those that gave
    /// it.
    fn joins(&self, member: usize, found: &Dataset) -> Result<()> {
        let mut known = self.known.lock();
        // Without a stored description, the next caller asks all servers.
        let Some(known) = known.as_mut() else { return Ok(()) };
        same_data(Some(&known.dataset), found)?;
        known.by = known.by.with(member);
        Ok(())
    }

    /// Logs once that a server is not used.
    fn log_exclusion(&self, member: usize, error: &Error) {
        tracing::warn!(server = self.members[member].server.name, %error, "a server is not used for now");
    }

    /// Starts checking a server that is not available, until it is.
    pub(super) fn monitor(&self, member: usize) {
        if self.members[member].is_monitored.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut watchers = self.watchers.lock();
        while watchers.try_join_next().is_some() {}
        watchers.spawn(monitor(self.me.clone(), member));
    }

    /// Returns the error if no server answered for data in the state `of`: `Stale` if that state has ended.
    pub(super) fn no_answer(&self, of: &Dataset, failures: &[(usize, Error)]) -> Error {
        let (is_over, refusal) = (self.is_over(of, failures), self.refusal(failures));
        if !is_over || is_stale(&refusal) {
            return refusal;
        }
        Error::new(ErrorKind::Stale, refusal.message().to_owned()).with_retry(Retry::MayHelp)
    }

    /// Returns whether the state `of` has ended: another description is stored, or a server that gave this one reports
    /// another state. The stored description is then dropped.
    fn is_over(&self, of: &Dataset, failures: &[(usize, Error)]) -> bool {
        let mut known = self.known.lock();
        let is_same =
            |now: &&KnownDataset| (now.dataset.id, now.dataset.generation) == (of.id, of.generation);
        let Some(now) = known.as_ref().filter(is_same) else { return true };
        let failed = |member| failures.iter().any(|(n, error)| *n == member && is_stale(error));
        let is_over = (0..self.members.len()).any(|n| now.by.has(n) && (failed(n) || self.is_stale(n)));
        if is_over {
            *known = None;
        }
        is_over
    }

    /// Returns whether a server is not available because it has other data.
    fn is_stale(&self, member: usize) -> bool {
        let is_so = |health: &ServerHealth| matches!(health, ServerHealth::Away { why, .. } if is_stale(why));
        self.queue.with(|scheduler| is_so(scheduler.health(member)))
    }

    /// Returns an error with the reason of every server; if all failed with the same error, that error.
    fn refusal(&self, failures: &[(usize, Error)]) -> Error {
        if let [(_, first), others @ ..] = failures
            && failures.len() == self.members.len()
            && others.iter().all(|(_, e)| e == first)
        {
            return first.clone();
        }
        let mut text = String::from("expected one of these servers to answer, found none: ");
        for (n, state) in self.states().into_iter().enumerate() {
            let failure = failures.iter().rev().find(|(member, _)| *member == n).map(|(_, e)| e.clone());
            let separator = if n > 0 { "; " } else { "" };
            match failure.or(state.away) {
                Some(why) => write!(text, "{separator}`{}`: {why}", state.name),
                None => write!(text, "{separator}`{}`: no request was sent", state.name),
            }
            // Writing to a string does not fail.
            .unwrap_or_default();
        }
        let last = failures.last().map_or(ErrorKind::Unreachable, |(_, e)| e.kind());
        let is_final = !failures.is_empty() && failures.iter().all(|(_, e)| e.retry() == Retry::Never);
        Error::new(last, text).with_retry(if is_final { Retry::Never } else { Retry::MayHelp })
    }
}

fn is_stale(error: &Error) -> bool {
    error.kind() == ErrorKind::Stale
}

fn silent() -> Error {
    Error::new(ErrorKind::TimedOut, "it has not answered for a long time")
}

/// Checks a server periodically until it is available. Holds a strong reference to the group only during a check.
async fn monitor(group: Weak<ServerGroup>, member: usize) {
    loop {
        let Some(here) = group.upgrade() else { return };
        let pause = here.queue.with(|scheduler| scheduler.pause(member));
        drop(here);
        sleep(pause).await;
        let Some(here) = group.upgrade() else { return };
        let source = Arc::clone(here.source(member));
        drop(here);
        let probed = probe(source).await;
        let Some(here) = group.upgrade() else { return };
        match probed.and_then(|found| here.joins(member, &found)) {
            Ok(()) => {
                // First, so that a failure from now on starts checking it again.
                here.members[member].is_monitored.store(false, Ordering::Relaxed);
                here.queue.with(|scheduler| scheduler.returned(member));
                tracing::info!(server = here.members[member].server.name, "a server is available and used");
                return;
            }
            Err(error) => here.queue.with(|scheduler| scheduler.still_away(member, error)),
        }
    }
}

/// Requests the description of a server, and checks that the server also delivers one element.
async fn probe(source: Arc<dyn ReplicaSource>) -> Result<Arc<Dataset>> {
    let found = source.describe_again().await?;
    let Some((request, item_bytes)) = found.arrays.iter().enumerate().find_map(one_element) else {
        return Ok(found);
    };
    let (_target, region) = Target::new(&request.selection.shape(), item_bytes)?;
    source.read(request, region).await?;
    source.describe().await
}

fn one_element((number, array): (usize, &ArrayInfo)) -> Option<(ReadRequest, usize)> {
    if array.shape().contains(&0) {
        return None;
    }
    let ranges = array.shape().iter().map(|_| AxisRange::contiguous(0, 1));
    let (array_number, selection) = (u32::try_from(number).ok()?, Selection::new(ranges).ok()?);
    let request = ReadRequest { array: array_number, level: 0, selection, priority: Priority::NORMAL };
    Some((request, array.dtype.size_bytes()))
}

/// Checks that a description matches `known` in data, types, levels and blocks. Accepts any description if nothing is
/// known.
fn same_data(known: Option<&Dataset>, found: &Dataset) -> Result<()> {
    let Some(known) = known else { return Ok(()) };
    if (known.id, known.generation) != (found.id, found.generation) {
        return Err(Error::new(
            ErrorKind::Stale,
            format!(
                "expected data set {} generation {} as on the other servers, found {} generation {}: other data, or \
                 another state of them",
                known.id, known.generation.0, found.id, found.generation.0
            ),
        ));
    }
    let of_array = |a: &ArrayInfo| {
        let levels = a.levels.iter().map(|l| (l.shape.clone(), l.block.clone())).collect::<Vec<_>>();
        (a.dtype, levels)
    };
    if known.arrays.iter().map(of_array).eq(found.arrays.iter().map(of_array)) {
        return Ok(());
    }
    Err(Error::unsupported(
        "expected the same levels and blocks as on the other servers, found others; use the same version of the program on all",
    ))
}
