//! Ranks other than 0 of a session or a film: they execute the orders of rank 0; see
//! [`launcher`](crate::ranks::launcher).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use array::{BlockKey, Error, ErrorKind, Result, Source};
use compose::{Communicator, KdTree, Schedule, broadcast, send_work};
use render::{Cancel, ImageSize};
use session::ParticipantId;
use tokio::task::JoinSet;
use view::View;

use crate::painter::DrawResources;
use crate::ranks::launcher::{
    BlockStatus, PictureParts, PixelPrecision, RankChannels, RankOrder, ShareDemand, ViewAssignment,
    by_strips, scene_for, strip_of,
};
use crate::ranks::strips::Strip;
use crate::tasks::blocking;
use crate::viewer::pace::FramePlan;
use crate::viewer::session::check_memory;
use crate::viewer::shared::{DESCRIBE_ATTEMPTS, DESCRIBE_PAUSE, SharedState};
use crate::viewer::view_plan::{DemandLimit, ViewPlan};

/// Fetches and draws this rank's share of every picture of the session or film that rank 0 owns, until that
/// ends. All ranks read the same data, each with its own resources; all draw on the CPU.
///
/// Call it within a tokio runtime.
///
/// # Errors
/// `TooLarge` below [`MIN_MEMORY_BYTES`](crate::MIN_MEMORY_BYTES), `Invalid` at rank 0, those of the first
/// view, and those of the communicator: another rank is gone or sent an invalid message.
///
/// # Cancel safety
/// Dropping the future cancels all wants; the other ranks wait until they notice that this rank is gone.
pub async fn run_worker(
    source: Arc<dyn Source>,
    resources: impl Into<DrawResources>,
    ranks: RankChannels,
) -> Result<()> {
    let resources = resources.into();
    check_memory(resources.memory_bytes)?;
    if ranks.work.rank() == 0 {
        return Err(Error::invalid("rank 0 leads the session and cannot be a worker"));
    }
    let dataset = source.describe().await?;
    dataset.check()?;
    let shared = SharedState::new(dataset, source, resources, View::default(), Arc::new(|_| None));
    let withdrawn = Arc::new(WithdrawnPictures::default());
    let mut listener = JoinSet::new();
    let (cancellations, pictures) = (Arc::clone(&ranks.cancellations), Arc::clone(&withdrawn));
    listener.spawn_blocking(move || pictures.listen(&*cancellations));
    let schedule = ranks.schedule()?;
    let worker = Worker { shared: Arc::new(shared), ranks, schedule, views: Arc::default(), withdrawn };
    tokio::select! {
        () = worker.shared.feed.run() => Err(Error::internal("the feed ended")),
        ended = worker.run() => ended,
    }
}

/// Rank that executes orders.
struct Worker {
    shared: Arc<SharedState>,
    ranks: RankChannels,
    schedule: Schedule,
    views: Arc<Mutex<WorkerViews>>,
    withdrawn: Arc<WithdrawnPictures>,
}

/// Planned view by participant, or the reason why it cannot be drawn.
type WorkerViews = BTreeMap<ParticipantId, Result<WorkerView>>;

/// View of one participant at this rank.
struct WorkerView {
    view_plan: ViewPlan,
    tree: KdTree,
    /// Number of blocks of its share.
    wanted: u64,
    /// Work of this rank for each block of the last picture, in samples drawn.
    block_work: Vec<(BlockKey, f64)>,
}

impl Worker {
    async fn run(&self) -> Result<()> {
        loop {
            let ranks = Arc::clone(&self.ranks.work);
            let message = blocking(move || broadcast(&*ranks, Vec::new())).await??;
            match RankOrder::from_message(&message)? {
                RankOrder::PlanView { who, assignment } => self.plan_view(who, assignment).await?,
                RankOrder::ReportWork { who } => self.report_work(who).await?,
                RankOrder::ReportBlocks { who } => self.report_blocks(who).await?,
                RankOrder::Draw { who, number, view, plan } => self.draw(who, number, view, plan).await?,
                RankOrder::Finish { who, view, pixels } => self.finish(who, view, pixels).await?,
                RankOrder::Forget { who } => {
                    self.shared.feed.forget(who);
                    self.views().remove(&who);
                }
                RankOrder::End => return Ok(()),
            }
        }
    }

    fn views(&self) -> std::sync::MutexGuard<'_, WorkerViews> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans the view of `assignment` for `who`. Rank 0 learns of an error when it asks for the block status,
    /// as it does before every picture of the view.
    async fn plan_view(&self, who: ParticipantId, assignment: ViewAssignment) -> Result<()> {
        // A network file system may show changes to this host a little later.
        for attempt in 0..DESCRIBE_ATTEMPTS {
            if self.shared.data() == assignment.data {
                break;
            }
            if attempt > 0 {
                tokio::time::sleep(DESCRIBE_PAUSE).await;
            }
            self.shared.describe_now().await;
        }
        let (shared, rank, ranks) =
            (Arc::clone(&self.shared), self.ranks.work.rank(), self.ranks.work.size());
        let old = self.views().remove(&who).and_then(Result::ok);
        let worker_view =
            blocking(move || WorkerView::plan(&shared, who, assignment, [rank, ranks], old)).await?;
        if worker_view.is_err() {
            self.shared.feed.forget(who);
        }
        self.views().insert(who, worker_view);
        Ok(())
    }

    async fn report_work(&self, who: ParticipantId) -> Result<()> {
        let block_work = match self.views().get_mut(&who) {
            Some(Ok(worker_view)) => std::mem::take(&mut worker_view.block_work),
            _ => Vec::new(),
        };
        let ranks = Arc::clone(&self.ranks.work);
        blocking(move || send_work(&*ranks, &block_work)).await?
    }

    async fn report_blocks(&self, who: ParticipantId) -> Result<()> {
        let (wanted, refused) = match self.views().get(&who) {
            Some(Ok(worker_view)) => (worker_view.wanted, None),
            Some(Err(error)) => (0, Some(error.clone().context(format!("rank {}", self.ranks.work.rank())))),
            None => (0, Some(Error::internal("no view was planned for the participant"))),
        };
        let own = BlockStatus::of(wanted, self.shared.feed.block_status(who), refused);
        let ranks = Arc::clone(&self.ranks.work);
        blocking(move || own.combined(&*ranks).map(drop)).await?
    }

    async fn draw(&self, who: ParticipantId, number: u64, view: View, plan: FramePlan) -> Result<()> {
        let cancel = self.withdrawn.begin(number);
        let schedule = by_strips(&self.schedule);
        let drawn = self.send_result(who, move |worker_view, ranks| {
            Ok(worker_view.drawn(ranks, view, plan, &schedule, &cancel)?.to_message())
        });
        let drawn = drawn.await;
        self.withdrawn.end();
        drawn
    }

    async fn finish(&self, who: ParticipantId, view: View, pixels: PixelPrecision) -> Result<()> {
        let schedule = self.schedule.clone();
        self.send_result(who, move |worker_view, ranks| worker_view.finished(ranks, view, pixels, &schedule))
            .await
    }

    /// Makes the result of this rank for a participant, and sends it to rank 0.
    async fn send_result(
        &self,
        who: ParticipantId,
        make: impl FnOnce(&mut WorkerView, &dyn Communicator) -> Result<Vec<u8>> + Send + 'static,
    ) -> Result<()> {
        let (views, ranks) = (Arc::clone(&self.views), Arc::clone(&self.ranks.work));
        blocking(move || {
            let mut views = views.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(Ok(worker_view)) = views.get_mut(&who) else {
                return Err(Error::internal("the planned view of the participant cannot be drawn"));
            };
            ranks.send(0, make(worker_view, &*ranks)?)
        })
        .await?
    }
}

impl WorkerView {
    fn plan(
        shared: &SharedState,
        who: ParticipantId,
        assignment: ViewAssignment,
        [rank, ranks]: [usize; 2],
        old: Option<Self>,
    ) -> Result<Self> {
        let found = shared.data();
        if found != assignment.data {
            return Err(Error::new(
                ErrorKind::Stale,
                format!("expected the data that rank 0 sees ({:?}), found {found:?}", assignment.data),
            ));
        }
        let [width, height] = assignment.size;
        let size = ImageSize { width, height };
        let demand_limit = DemandLimit::Given { own: assignment.own, color_by: assignment.color_by };
        let old = old.map(|old| old.view_plan.subscription);
        let view_plan = ViewPlan::prepare(
            &shared.volumes,
            shared.dataset(),
            who,
            Arc::new(assignment.view),
            size,
            old,
            demand_limit,
        )?;
        let tree = KdTree::from_bytes(&assignment.tree, ranks)?;
        let share = ShareDemand::of(&view_plan, &tree, rank)?;
        let wanted = share.blocks();
        share.request_blocks(shared, who, &view_plan);
        Ok(Self { view_plan, tree, wanted, block_work: Vec::new() })
    }

    /// Returns this rank's rows of a picture; an empty strip if it failed, which rank 0 knows already.
    fn drawn(
        &mut self,
        ranks: &dyn Communicator,
        view: View,
        plan: FramePlan,
        schedule: &Schedule,
        cancel: &Cancel,
    ) -> Result<Strip> {
        self.view_plan.view = Arc::new(view);
        let scene = scene_for(&self.view_plan, &plan)?;
        let drawable = self.view_plan.subscription.drawable();
        match drawable.draw_together(ranks, &scene, &self.tree, schedule, cancel) {
            Ok(part) => {
                let strip = strip_of(&part, &plan, self.view_plan.view.background)?;
                self.block_work = part.work;
                Ok(strip)
            }
            Err(error) => unless_alone(error).map(|()| Strip::nothing()),
        }
    }

    /// Returns this rank's parts of a finished picture; an empty message if it failed, which rank 0 knows
    /// already.
    fn finished(
        &mut self,
        ranks: &dyn Communicator,
        view: View,
        pixels: PixelPrecision,
        schedule: &Schedule,
    ) -> Result<Vec<u8>> {
        let scene = self.view_plan.scene(&view)?;
        let drawable = self.view_plan.subscription.drawable();
        match PictureParts::drawn(ranks, &drawable, (&scene, &view), &self.tree, schedule, &Cancel::new()) {
            Ok(parts) => {
                let message = parts.to_message(pixels, view.background);
                self.block_work = parts.block_work;
                Ok(message)
            }
            Err(error) => unless_alone(error).map(|()| Vec::new()),
        }
    }
}

/// Ignores errors that all ranks have exchanged, which rank 0 knows; returns those of the exchange itself.
fn unless_alone(error: Error) -> Result<()> {
    match error.kind() {
        ErrorKind::Unreachable | ErrorKind::Corrupt => Err(error),
        _ => Ok(()),
    }
}

/// Pictures that were cancelled.
#[derive(Default)]
struct WithdrawnPictures(Mutex<PictureNumbers>);

#[derive(Default)]
struct PictureNumbers {
    /// Newest cancelled picture.
    newest: u64,
    /// Picture that is being drawn.
    current: Option<(u64, Cancel)>,
}

impl WithdrawnPictures {
    /// Receives cancellations until rank 0 ends or is gone.
    fn listen(&self, cancellations: &dyn Communicator) {
        while let Ok(message) = broadcast(cancellations, Vec::new()) {
            let Ok(number) = message.as_slice().try_into().map(u64::from_le_bytes) else { return };
            let mut pictures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            pictures.newest = pictures.newest.max(number);
            if let Some((current, cancel)) = &pictures.current
                && *current <= number
            {
                cancel.cancel();
            }
        }
    }

    /// Returns the cancel flag of a new picture.
    fn begin(&self, number: u64) -> Cancel {
        let cancel = Cancel::new();
        let mut pictures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if number <= pictures.newest {
            cancel.cancel();
        }
        pictures.current = Some((number, cancel.clone()));
        cancel
    }

    fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).current = None;
    }
}
