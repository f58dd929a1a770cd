//! The servers of one data set: which of them are there, and that they all speak of the same data.
//!
//! Identity, generation and block grids must be equal: a server that describes anything else is left out, and asked
//! again from time to time. Nothing is ever put together from two states of the data: blocks carry their identity, and
//! after a read the server must still describe what it described before.
//!
//! The group says what the data are: what it knows counts until nobody is left who has it, and one that had it says that
//! it has something else now. Then every server is asked anew. What a server is remembered to have said counts only
//! while it answers: one that is away has no say.

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

/// How long a server named earlier may take longer to describe its data than one named later.
const PATIENCE: Duration = Duration::from_secs(1);

/// A source that may remember what it was told, and can be asked again.
pub trait ReplicaSource: Source {
    /// The description as it is now: asked for, whatever was known, and remembered from now on.
    fn describe_again(&self) -> BoxFuture<'static, Result<Arc<Dataset>>>;
}

/// One server as a source.
#[derive(Clone)]
pub struct ReplicaServer {
    /// Its name for people; the same whenever the group is made, since homes are computed from it.
    pub name: String,
    /// How it is asked.
    pub source: Arc<dyn ReplicaSource>,
}

struct GroupMember {
    server: ReplicaServer,
    is_looked_after: AtomicBool,
}

/// State of one server so far.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerState {
    /// Its name.
    pub name: String,
    /// Why it is not asked now; `None` when it is.
    pub away: Option<Error>,
    /// Bytes it has delivered.
    pub delivered_bytes: u64,
    /// As measured.
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
    members: Vec<GroupMember>,
    pub(super) queue: Arc<WorkQueue>,
    known: Mutex<Option<KnownDataset>>,
    describing: tokio::sync::Mutex<()>,
    /// Those who look after servers that are away; they end with this value.
    watchers: Mutex<JoinSet<()>>,
}

impl ServerGroup {
    pub(super) fn new(servers: Vec<ReplicaServer>) -> Result<Arc<Self>> {
        let count = servers.len();
        if count == 0 || count > MAX_SERVERS {
            return Err(Error::invalid(format!("expected 1 to {MAX_SERVERS} servers, found {count}")));
        }
        let member = |server| GroupMember { server, is_looked_after: AtomicBool::new(false) };
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
                    // Where nobody answers as it should, the error says so of each.
                    if chosen.is_some() {
                        self.tell(member, &error);
                    }
                    self.queue.with(|scheduler| scheduler.still_away(member, error.clone()));
                    failures.push((member, error));
                }
                // It may yet answer.
                None => {}
            }
        }
        let Some(chosen) = chosen else { return Err(self.refusal(&failures)) };
        *self.known.lock() = Some(KnownDataset { dataset: Arc::clone(&chosen), by });
        for member in 0..self.members.len() {
            if self.is_away(member) {
                self.look_after(member);
            }
        }
        Ok(chosen)
    }

    /// Asks all what they have now. Those that have other data than before are left out; where nobody is left, what was
    /// known is forgotten.
    pub(super) async fn ask_again(&self) {
        let Some(known) = self.known() else { return };
        for (member, answer) in self.describe_all().await.into_iter().enumerate() {
            if let Some(Ok(found)) = answer
                && let Err(error) = same_data(Some(&known), &found)
                && !self.is_away(member)
                && self.queue.with(|scheduler| scheduler.left(member, error))
            {
                self.look_after(member);
            }
        }
        if (0..self.members.len()).all(|member| self.is_away(member)) {
            self.is_over(&known, &[]);
        }
    }

    fn known(&self) -> Option<Arc<Dataset>> {
        self.known.lock().as_ref().map(|known| Arc::clone(&known.dataset))
    }

    /// Asks all at once. The first in the order they were named counts; not for longer than [`PATIENCE`] after
    /// another has answered.
    async fn describe_all(&self) -> Vec<Option<Result<Arc<Dataset>>>> {
        let mut asked: FuturesUnordered<_> = (0..self.members.len())
            .map(|member| {
                let answer = self.source(member).describe_again();
                async move { (member, answer.await) }
            })
            .collect();
        let mut answers: Vec<Option<Result<Arc<Dataset>>>> = vec![None; self.members.len()];
        let mut patience = None;
        loop {
            let end = async {
                match patience {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some((member, answer)) = asked.next(), if !asked.is_empty() => {
                    if answer.is_ok() && patience.is_none() {
                        patience = Some(tokio::time::Instant::now() + PATIENCE);
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

    /// Checks that a server still describes the same data as `known`.
    pub(super) async fn check_same(&self, member: usize, known: &Dataset) -> Result<()> {
        let found = self.source(member).describe().await?;
        same_data(Some(known), &found)
    }

    /// Checks that a server that was looked at describes the known data, and adds it to the servers that do.
    fn joins(&self, member: usize, found: &Dataset) -> Result<()> {
        let mut known = self.known.lock();
        // Nothing is known: whoever needs it asks all.
        let Some(known) = known.as_mut() else { return Ok(()) };
        same_data(Some(&known.dataset), found)?;
        known.by = known.by.with(member);
        Ok(())
    }

    /// Tells people once that a server is not used.
    fn tell(&self, member: usize, error: &Error) {
        tracing::warn!(server = self.members[member].server.name, %error, "a server is not used for now");
    }

    /// Looks after a server that is not there, until it is.
    pub(super) fn look_after(&self, member: usize) {
        if self.members[member].is_looked_after.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut watchers = self.watchers.lock();
        while watchers.try_join_next().is_some() {}
        watchers.spawn(look_after(self.me.clone(), member));
    }

    /// Why nobody could answer who was asked for data in the state `of`: stale, where that state is over.
    pub(super) fn nobody(&self, of: &Dataset, failures: &[(usize, Error)]) -> Error {
        let (is_over, refusal) = (self.is_over(of, failures), self.refusal(failures));
        if !is_over || is_stale(&refusal) {
            return refusal;
        }
        Error::new(ErrorKind::Stale, refusal.message().to_owned()).with_retry(Retry::MayHelp)
    }

    /// Whether the state `of` is over: something else is known by now, or one of those who described it says so. Then
    /// what is known is forgotten, and the next description begins anew.
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

    /// Whether a server is away because it has other data.
    fn is_stale(&self, member: usize) -> bool {
        let is_so = |health: &ServerHealth| matches!(health, ServerHealth::Away { why, .. } if is_stale(why));
        self.queue.with(|scheduler| is_so(scheduler.health(member)))
    }

    /// Error that says what is wrong with every server; where all failed with the same error, that error.
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
                None => write!(text, "{separator}`{}`: not asked", state.name),
            }
            // Writing to a string cannot fail.
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
    Error::new(ErrorKind::TimedOut, "it has not answered for long")
}

/// Looks at a server again and again, until it is there. Holds the group only in between.
async fn look_after(group: Weak<ServerGroup>, member: usize) {
    loop {
        let Some(here) = group.upgrade() else { return };
        let pause = here.queue.with(|scheduler| scheduler.pause(member));
        drop(here);
        sleep(pause).await;
        let Some(here) = group.upgrade() else { return };
        let source = Arc::clone(here.source(member));
        drop(here);
        let looked = look(source).await;
        let Some(here) = group.upgrade() else { return };
        match looked.and_then(|found| here.joins(member, &found)) {
            Ok(()) => {
                // First: whoever finds it gone from now on has to look after it again.
                here.members[member].is_looked_after.store(false, Ordering::Relaxed);
                here.queue.with(|scheduler| scheduler.returned(member));
                tracing::info!(server = here.members[member].server.name, "a server is used (again)");
                return;
            }
            Err(error) => here.queue.with(|scheduler| scheduler.still_away(member, error)),
        }
    }
}

/// Asks a server for its description, and checks that it also delivers one element.
async fn look(source: Arc<dyn ReplicaSource>) -> Result<Arc<Dataset>> {
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

/// Checks that a description is of the `known` data, with the same types, levels and blocks. Accepts any description
/// while nothing is known.
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
        "expected the same levels and blocks as on the other servers, found others: another version of the program",
    ))
}
