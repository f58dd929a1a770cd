//! Running session: participants view one data set together, each with their own view.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use array::{Dataset, Error, Result, Source};
use session::{JoinParams, ParticipantId, Role};
use tokio::task::JoinSet;
use view::View;

use crate::loading::feed::StaleHint;
use crate::loading::regrid::Regridded;
use crate::painter::{DrawResources, MIN_MEMORY_BYTES};
use crate::ranks::launcher::{Launcher, RankChannels};
use crate::viewer::frame_loop;
use crate::viewer::outbox::OutgoingItem;
use crate::viewer::shared::{ProgressQuery, RemovalHook, SharedState, with_shared_camera};
use crate::viewer::viewer_state::ViewerState;

/// One data set, its blocks, and its participants. Each block is fetched once for all of them, and all pools
/// of blocks share one memory budget. If the data change, participants continue with the new data, as
/// `source` then describes them.
///
/// Dropping it ends the session for everybody.
pub struct Session {
    shared: Arc<SharedState>,
    /// Tasks: the feed, the handling of changed data, and one frame loop per participant.
    tasks: Mutex<JoinSet<()>>,
}

impl Session {
    /// Starts a session on the data that `source` describes, with these resources (a number means bytes,
    /// drawn on the CPU). `first_view` is shown first (`None`: the default array). `work` returns the
    /// progress of long work behind the source.
    ///
    /// Call it within a tokio runtime.
    ///
    /// # Errors
    /// `TooLarge` below [`MIN_MEMORY_BYTES`], `Unsupported` if there is nothing to draw, and those of an
    /// invalid `first_view`.
    pub fn begin(
        dataset: Arc<Dataset>,
        source: Arc<dyn Source>,
        resources: impl Into<DrawResources>,
        first_view: Option<View>,
        work: ProgressQuery,
    ) -> Result<Self> {
        Self::start(dataset, source, resources.into(), first_view, work, None)
    }

    /// Starts a session as rank 0 of several, which draw every picture together: the others call
    /// [`run_worker`](crate::run_worker()). Each has its own memory; all draw on the CPU. Dropping the
    /// session ends the other ranks.
    ///
    /// # Errors
    /// Those of [`Session::begin`]; `Invalid` for a rank other than 0.
    pub fn begin_with_ranks(
        dataset: Arc<Dataset>,
        source: Arc<dyn Source>,
        resources: impl Into<DrawResources>,
        first_view: Option<View>,
        work: ProgressQuery,
        ranks: RankChannels,
    ) -> Result<Self> {
        Self::start(dataset, source, resources.into(), first_view, work, Some(Launcher::new(ranks)?))
    }

    fn start(
        dataset: Arc<Dataset>,
        source: Arc<dyn Source>,
        resources: DrawResources,
        first_view: Option<View>,
        work: ProgressQuery,
        launcher: Option<Launcher>,
    ) -> Result<Self> {
        check_memory(resources.memory_bytes)?;
        let view = first_view.map_or_else(|| View::first_of(&dataset), Ok)?;
        view.check()?;
        let view = with_shared_camera(view, &dataset)?;
        let shared =
            Arc::new(SharedState::new(dataset, source, resources, view, work).with_launcher(launcher));
        let mut tasks = JoinSet::new();
        let fed = Arc::clone(&shared);
        tasks.spawn(async move { fed.feed.run().await });
        let followed = Arc::clone(&shared);
        tasks.spawn(async move { followed.follow_changes().await });
        let rejoined = Arc::clone(&shared);
        tasks.spawn(async move { rejoined.expire_participants().await });
        Ok(Self { shared, tasks: Mutex::new(tasks) })
    }

    /// Sets the source that knows which arrays are drawn on other axes than those of the data; participants
    /// are told.
    #[must_use]
    pub fn telling_axes(self, source: Regridded) -> Self {
        // A second call has no effect: there is one source.
        _ = self.shared.regridded.set(source);
        self
    }

    /// Adds a participant, until the returned value is dropped.
    ///
    /// # Errors
    /// `Busy` when the session is full.
    pub fn join(&self, join: &JoinParams, role: Role) -> Result<Participant> {
        self.join_with_secret(join, role, String::new(), 0)
    }

    /// Adds a participant, or lets one continue whose secret `join` has. For a minute after a new one's connection
    /// breaks, `secret` lets them continue; it must be hard to guess. `connection` is the number of the connection, by
    /// which the pictures of a page belong together, or 0.
    ///
    /// # Errors
    /// `Busy` when the session is full.
    pub fn join_with_secret(
        &self,
        join: &JoinParams,
        role: Role,
        secret: String,
        connection: u64,
    ) -> Result<Participant> {
        let (who, viewer) = self.shared.join(join, role, secret, connection)?;
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(frame_loop::run(Arc::clone(&self.shared), who, Arc::clone(&viewer)));
        Ok(Participant { who, shared: Arc::clone(&self.shared), viewer })
    }

    /// Sets how the access of participants is withdrawn whom an owner removes.
    #[must_use]
    pub fn withdrawing(self, withdraw: RemovalHook) -> Self {
        // A second call has no effect: there is one rule of access.
        _ = self.shared.on_removed.set(withdraw);
        self
    }

    /// Runs a task that ends with the session.
    pub fn run_beside(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
    }

    /// Describes the data again, because they may have changed, and shows the new data to all participants if
    /// they have.
    pub fn describe_again(&self) {
        self.shared.feed.report_stale(StaleHint { data: self.shared.data(), is_certain: false });
    }

    /// Returns the state that all parts of the session share.
    pub(crate) fn shared(&self) -> &Arc<SharedState> {
        &self.shared
    }

    /// Returns the launcher of the other ranks.
    #[cfg(test)]
    pub(crate) fn launcher(&self) -> Option<Arc<Launcher>> {
        self.shared.launcher.clone()
    }

    /// Returns the current memory use and work of the session.
    #[must_use]
    pub fn load(&self) -> SessionLoad {
        let volumes = self.shared.volumes.all();
        let (wants_in_flight, bytes_in_flight) = self.shared.feed.in_flight();
        let pools: Vec<(usize, usize)> = volumes.iter().map(|v| v.memory()).collect();
        SessionLoad {
            pool_bytes: pools.iter().map(|p| p.0).sum(),
            pool_limit_bytes: pools.iter().map(|p| p.1).sum(),
            wants_in_flight,
            bytes_in_flight,
        }
    }
}

/// # Errors
/// `TooLarge` if the memory does not suffice for single blocks.
pub(crate) fn check_memory(memory_bytes: u64) -> Result<()> {
    if memory_bytes >= MIN_MEMORY_BYTES {
        return Ok(());
    }
    Err(Error::too_large(format!(
        "pictures need at least {MIN_MEMORY_BYTES} bytes of memory, found {memory_bytes}"
    )))
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("dataset", &self.shared.dataset().name)
            .field("load", &self.load())
            .finish()
    }
}

/// Memory use and pending work of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLoad {
    /// Memory of loaded blocks, bytes.
    pub pool_bytes: usize,
    /// Limit of the memory of loaded blocks, bytes.
    pub pool_limit_bytes: usize,
    /// Blocks requested and not yet placed.
    pub wants_in_flight: usize,
    /// Most bytes that those blocks may have.
    pub bytes_in_flight: u64,
}

/// Participant of a session, as its connection sees it. Dropping it leaves the session.
pub struct Participant {
    who: ParticipantId,
    shared: Arc<SharedState>,
    viewer: Arc<ViewerState>,
}

impl Participant {
    /// Returns the participant's number.
    #[must_use]
    pub fn id(&self) -> ParticipantId {
        self.who
    }

    /// Handles a note, as JSON text. Never fails: errors are reported to the participant.
    pub fn note(&self, text: &[u8]) {
        self.shared.note(self.who, text);
    }

    /// Returns the next item to send; `None` when the session has ended. Only one task may call it at a time.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&self) -> Option<OutgoingItem> {
        loop {
            tokio::select! {
                biased;
                item = self.viewer.outbox.next() => return item,
                due = self.viewer.due.next() => {
                    if let Some(item) = self.shared.update(self.who, due) {
                        return Some(item);
                    }
                }
            }
        }
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.shared.disconnect(self.who, &self.viewer);
    }
}

impl fmt::Debug for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Participant").field("id", &self.who).finish()
    }
}
