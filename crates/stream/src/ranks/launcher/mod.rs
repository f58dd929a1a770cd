//! Ranks that draw the pictures of a session, or of a film, together, view after view.
//!
//! Rank 0 has the people: sessions, viewers, pace. It tells all others one [`RankOrder`] after another, by one small broadcast
//! each, and all take part in what follows from it; so there is one order of pictures, and nobody waits in an exchange that
//! others have left. The others [`run_worker`](crate::run_worker()).
//!
//! ```text
//!   rank 0    view -> fit, cut -> Look ------> Outlook ------> Draw ----> join strips -> viewer
//!                                  | share        ^ lacking     | cast, exchange  ^
//!   others                         '-> wants -> blocks -------->'---- encode -----'
//! ```
//!
//! [Films](crate::Film) are drawn so too, with nobody looking: rank 0 waits until no rank lacks anything, and is given pixels
//! ([`PixelPrecision`]) instead of strips. Who looks are their two places, by turns.
//!
//! That a picture is not wanted any more is said beside the orders, by a lane of its own: whoever hears it casts nothing more
//! but goes on exchanging, so that the picture ends everywhere, only sooner.

mod fit;
mod order;
mod picture_parts;
mod rank_group;
mod share;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use array::{BlockKey, DatasetId, Error, ErrorKind, Generation, Result};
use bytes::Bytes;
use compose::{Balance, Communicator, KdTree, Method, Schedule, broadcast, reduce};
use render::{Cancel, ImageSize, Quality, RenderedImage, Scene, VolumeView};
use session::ParticipantId;
use view::View;

use crate::loading::drawable::Drawable;
use crate::loading::feed::StaleHint;
use crate::loading::loader::FailedBlocks;
use crate::loading::volume::VolumeSubscription;
use crate::ranks::strips::{STRIP_UNIT, Strip, joined};
use crate::viewer::pace::FramePlan;
use crate::viewer::shared::SharedState;
use crate::viewer::view_plan::{DemandLimit, ViewPlan};

pub(crate) use fit::fit;
pub(crate) use order::{BlockStatus, RankOrder, ViewAssignment};
use picture_parts::PictureAssembly;
pub(crate) use picture_parts::PictureParts;
pub use picture_parts::PixelPrecision;
pub(crate) use rank_group::LaunchedRanks;
pub use rank_group::RankGroup;
pub(crate) use share::{ShareDemand, coarsest_demand};

/// How often rank 0 asks the others how many blocks they lack, while they lack some.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of these questions while no lacking block is under way: failed ones are tried again from time to
/// time.
pub(crate) const FAILED_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The busiest rank's work over the average rank's up to which shares stay as they are: each change has blocks fetched anew.
const MAX_IMBALANCE: f64 = 1.2;
/// Pictures by the same shares, however uneven: guessing anew takes about as long as one in motion.
const MIN_PICTURES_BETWEEN_CUTS: u64 = 3;

/// How the ranks of a session or a film reach one another.
#[derive(Clone)]
pub struct RankChannels {
    /// Channel for all work that the ranks do together.
    pub work: Arc<dyn Communicator>,
    /// Second channel between the same ranks; its messages can overtake those of `work`.
    pub news: Arc<dyn Communicator>,
    /// How they put pictures together; the same at all of them.
    pub method: Method,
}

impl RankChannels {
    /// Returns the schedule of messages by which the ranks put pictures together.
    ///
    /// # Errors
    /// Those of [`Schedule::new`].
    pub(crate) fn schedule(&self) -> Result<Schedule> {
        Schedule::new(self.method, self.work.size())
    }
}

impl fmt::Debug for RankChannels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}, {:?}", self.work.rank(), self.work.size(), self.method)
    }
}

/// Rank 0's hold on the others.
pub(crate) struct Launcher {
    ranks: RankChannels,
    schedule: Schedule,
    state: Mutex<OrderState>,
    /// The picture that is being drawn.
    drawing: Mutex<Option<(ParticipantId, u64)>>,
    /// Participants who left and whom the other ranks have not been told to forget yet.
    departed: Mutex<Vec<ParticipantId>>,
}

/// State that is kept from order to order; only the holder of its lock gives orders.
#[derive(Default)]
struct OrderState {
    /// Pictures so far.
    pictures: u64,
    participants: BTreeMap<ParticipantId, ParticipantShares>,
}

/// Shares of the ranks in a participant's pictures.
#[derive(Clone)]
struct ParticipantShares {
    /// View for which the shares were last used; then the volume in it and the state of the data.
    last_view: Arc<View>,
    volume: Arc<VolumeView>,
    data: (DatasetId, Generation),
    tree: KdTree,
    balance: Balance,
    record: ShareRecord,
    /// Work of this rank for each block of the last picture, in samples drawn.
    block_work: Vec<(BlockKey, f64)>,
    /// Blocks that this rank needs.
    wanted: u64,
}

/// How shares have done since they were cut.
#[derive(Clone, Copy)]
struct ShareRecord {
    /// The busiest rank's work for the last picture over the average rank's.
    imbalance: f64,
    /// Pictures since, and the number of the view they were cut for.
    pictures: u64,
    seq: u64,
}

impl ShareRecord {
    fn new(seq: u64) -> Self {
        Self { imbalance: 1.0, pictures: 0, seq }
    }

    /// Whether shares should be cut anew for a view.
    fn is_uneven(&self, seq: u64) -> bool {
        self.imbalance > MAX_IMBALANCE && self.seq != seq && self.pictures >= MIN_PICTURES_BETWEEN_CUTS
    }

    /// Another picture, that took ranks so much work each.
    fn add(&mut self, works: impl IntoIterator<Item = f64>) {
        let (most, sum, count) = works.into_iter().fold((0.0, 0.0, 0.0), |(most, sum, count), work| {
            (f64::max(most, work), sum + work, count + 1.0)
        });
        self.pictures += 1;
        self.imbalance = if sum > 0.0 { most * count / sum } else { 1.0 };
    }
}

/// Picture to draw for a participant.
pub(crate) struct RankPicture {
    pub(crate) scene: Scene,
    pub(crate) view: Arc<View>,
    pub(crate) plan: FramePlan,
}

impl Launcher {
    /// # Errors
    /// `Invalid` for a rank other than 0.
    pub(crate) fn new(ranks: RankChannels) -> Result<Self> {
        if ranks.work.rank() != 0 {
            let rank = ranks.work.rank();
            return Err(Error::invalid(format!("expected rank 0 to have the session, found rank {rank}")));
        }
        let schedule = ranks.schedule()?;
        let (state, drawing, departed) = (Mutex::default(), Mutex::default(), Mutex::default());
        Ok(Self { ranks, schedule, state, drawing, departed })
    }

    /// Aims `who` at a view, and has every rank fetch its share of what is lacking. Shares stay as they are, from time step to time step
    /// too, unless they were uneven: then they are cut anew, by what the last picture took. Who has none yet begins with those of
    /// `like`. Blocks the thread.
    ///
    /// # Errors
    /// Those of [`ViewPlan::prepare`] and [`fit`], and of the communicator.
    pub(crate) fn plan_view(
        &self,
        shared: &SharedState,
        (who, like): (ParticipantId, Option<ParticipantId>),
        (seq, view): (u64, Arc<View>),
        size: ImageSize,
        mut old: Option<VolumeSubscription>,
    ) -> Result<ViewPlan> {
        let (ranks, data) = (self.ranks.work.size(), shared.data());
        let mut state = self.state()?;
        let known = state.participants.remove(&who).or_else(|| state.participants.get(&like?).cloned());
        let known = known.filter(|shares| shares.data == data && shares.last_view.array == view.array);
        let (tree, mut balance, record) = match known {
            None => (None, Balance::new(), ShareRecord::new(seq)),
            Some(shares) if !shares.record.is_uneven(seq) => {
                (Some(shares.tree), shares.balance, shares.record)
            }
            Some(mut shares) => {
                self.send_order(&RankOrder::ReportWork { who })?;
                shares.balance.gather_work(&*self.ranks.work, &shares.volume, &shares.block_work)?;
                let tree = self.cut_before(shared, &mut shares, &view, size, &mut old)?;
                (tree, shares.balance, ShareRecord::new(seq))
            }
        };
        let mut view_plan =
            ViewPlan::prepare(&shared.volumes, shared.dataset(), who, view, size, old, self.demand_limit())?;
        let tree = fit(&mut view_plan, ranks, &mut balance, tree)?;
        let (own, color_by) = view_plan.level_choices();
        let assignment = ViewAssignment {
            view: (*view_plan.view).clone(),
            size: [size.width, size.height],
            own,
            color_by,
            tree: tree.to_bytes(),
            data,
        };
        self.send_order(&RankOrder::PlanView { who, assignment })?;
        let share = ShareDemand::first(&view_plan, &tree)?;
        let (last_view, volume) =
            (Arc::clone(&view_plan.view), Arc::clone(&view_plan.subscription.volume.view));
        let (block_work, wanted) = (Vec::new(), share.blocks());
        share.request_blocks(shared, who, &view_plan);
        state.participants.insert(
            who,
            ParticipantShares { last_view, volume, data, tree, balance, record, block_work, wanted },
        );
        Ok(view_plan)
    }

    /// Shares for a view of another time step, of which nothing is here yet that would say where work is: cut by what is here of the
    /// `old` one. `None` for a view of the same.
    fn cut_before(
        &self,
        shared: &SharedState,
        shares: &mut ParticipantShares,
        view: &View,
        size: ImageSize,
        old: &mut Option<VolumeSubscription>,
    ) -> Result<Option<KdTree>> {
        let last_view = &shares.last_view;
        if (view.time, &view.at) == (last_view.time, &last_view.at) {
            return Ok(None);
        }
        let Some(subscription) = old.take() else { return Ok(None) };
        // Whose colors they are says nothing of work.
        let before = View { time: last_view.time, at: last_view.at.clone(), color_by: None, ..view.clone() };
        let before = Arc::new(before);
        let mut view_plan = ViewPlan::prepare(
            &shared.volumes,
            shared.dataset(),
            subscription.who(),
            before,
            size,
            Some(subscription),
            self.demand_limit(),
        )?;
        let tree = fit(&mut view_plan, self.ranks.work.size(), &mut shares.balance, None)?;
        *old = Some(view_plan.subscription);
        Ok(Some(tree))
    }

    /// All ranks' memory.
    pub(crate) fn demand_limit(&self) -> DemandLimit {
        DemandLimit::Memory { hosts: self.ranks.work.size() }
    }

    /// Whether the shares of a participant should be cut anew for a view, which is not the one they were cut for.
    pub(crate) fn is_uneven(&self, who: ParticipantId, seq: u64) -> bool {
        // Whoever is busy with orders will know better in a moment.
        let Ok(state) = self.state.try_lock() else { return false };
        state.participants.get(&who).is_some_and(|shares| shares.record.is_uneven(seq))
    }

    /// How many blocks `who` lacks at all ranks together, one that two lack twice, and what is wrong with some. Blocks the thread.
    ///
    /// # Errors
    /// Why another rank cannot draw the view; those of the communicator.
    pub(crate) fn block_status(&self, shared: &SharedState, who: ParticipantId) -> Result<BlockStatus> {
        let state = self.state()?;
        let wanted = state.participants.get(&who).map_or(0, |shares| shares.wanted);
        self.send_order(&RankOrder::ReportBlocks { who })?;
        let all = BlockStatus::of(wanted, shared.feed.block_status(who), None).combined(&*self.ranks.work)?;
        if let Some(refused) = all.refused {
            return Err(refused);
        }
        if all.is_stale {
            shared.feed.report_stale(StaleHint { data: shared.data(), is_certain: true });
        }
        Ok(all)
    }

    /// Draws a picture of what `who` is aimed at, encoded by all ranks. Blocks the thread.
    ///
    /// # Errors
    /// The worst of all ranks'; `Cancelled` for a picture that was [withdrawn](Self::withdraw).
    pub(crate) fn draw(
        &self,
        who: ParticipantId,
        drawable: &Drawable,
        picture: &RankPicture,
        cancel: &Cancel,
    ) -> Result<(Bytes, render::Fidelity)> {
        if picture.view.grids || picture.view.stereo.is_some() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "expected neither grids as lines nor a picture for each eye by several ranks: one process draws them",
            ));
        }
        let mut state = self.state()?;
        let number = state.pictures + 1;
        // Also of one that is withdrawn at once: others may hear of that, and must not take the next one for it.
        state.pictures = number;
        *self.drawing() = Some((who, number));
        // Whoever withdraws it says so before looking whether it is drawn.
        let drawn = if cancel.is_cancelled() {
            Err(Error::new(ErrorKind::Cancelled, "the picture was withdrawn"))
        } else {
            self.picture(&mut state, who, drawable, picture, cancel)
        };
        *self.drawing() = None;
        drawn
    }

    fn picture(
        &self,
        state: &mut OrderState,
        who: ParticipantId,
        drawable: &Drawable,
        RankPicture { scene, view, plan }: &RankPicture,
        cancel: &Cancel,
    ) -> Result<(Bytes, render::Fidelity)> {
        let number = state.pictures;
        let shares =
            state.participants.get_mut(&who).ok_or_else(|| Error::internal("expected shares to draw"))?;
        self.send_order(&RankOrder::Draw { who, number, view: (**view).clone(), plan: *plan })?;
        let ranks = &*self.ranks.work;
        let schedule = by_strips(&self.schedule);
        let drawn = drawable.draw_together(ranks, scene, &shares.tree, &schedule, cancel);
        let own = drawn.and_then(|part| {
            let strip = strip_of(&part, plan, view.background)?;
            Ok((strip, part))
        });
        // The others send what they have, whatever became of this rank's part.
        let theirs: Vec<Strip> = (1..ranks.size())
            .map(|rank| Strip::from_message(&ranks.receive(rank)?))
            .collect::<Result<_>>()?;
        let (own, part) = own?;
        let strips: Vec<Strip> = std::iter::once(own).chain(theirs).collect();
        shares.record.add(strips.iter().map(|strip| strip.work));
        shares.block_work = part.work;
        Ok((joined(plan.codec, scene.size, strips)?, part.tally.fidelity(scene)?))
    }

    /// Draws a finished picture of what `who` is aimed at, of which each rank [has](Self::block_status) all that it needs. Blocks the thread.
    ///
    /// # Errors
    /// The worst of all ranks'.
    pub(crate) fn finish(
        &self,
        who: ParticipantId,
        drawable: &Drawable,
        (scene, view): (&Scene, &View),
        pixels: PixelPrecision,
        cancel: &Cancel,
    ) -> Result<RenderedImage> {
        let mut state = self.state()?;
        let shares =
            state.participants.get_mut(&who).ok_or_else(|| Error::internal("expected shares to draw"))?;
        let mut assembly = PictureAssembly::new(scene, view, pixels)?;
        self.send_order(&RankOrder::Finish { who, view: view.clone(), pixels })?;
        let ranks = &*self.ranks.work;
        let own = PictureParts::drawn(ranks, drawable, (scene, view), &shares.tree, &self.schedule, cancel);
        // The others send what they have, whatever became of this rank's part.
        let mut works = (1..ranks.size())
            .map(|rank| assembly.insert(&ranks.receive(rank)?))
            .collect::<Result<Vec<f64>>>()?;
        let own = own?;
        works.push(assembly.insert(&own.to_message(pixels, view.background))?);
        shares.record.add(works);
        let frame = assembly.finished(&own)?;
        shares.block_work = own.block_work;
        Ok(frame)
    }

    /// Nobody wants the picture that is drawn for `who` any more; its flag was set before. Waits for nobody for long: the others
    /// listen all the time.
    ///
    /// # Errors
    /// Those of the communicator.
    pub(crate) fn withdraw(&self, who: ParticipantId) -> Result<()> {
        let drawing = *self.drawing();
        match drawing {
            Some((whose, number)) if whose == who => {
                broadcast(&*self.ranks.news, number.to_le_bytes().to_vec()).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// `who` looks away. The others hear it at once, or with the next order where one is under way.
    pub(crate) fn forget(&self, who: ParticipantId) {
        self.departed.lock().unwrap_or_else(PoisonError::into_inner).push(who);
        if let Ok(mut state) = self.state.try_lock()
            && let Err(error) = self.forget_departed(&mut state)
        {
            tracing::warn!(%error, "other ranks were not told who left");
        }
    }

    fn forget_departed(&self, state: &mut OrderState) -> Result<()> {
        let departed = std::mem::take(&mut *self.departed.lock().unwrap_or_else(PoisonError::into_inner));
        departed.into_iter().try_for_each(|who| {
            state.participants.remove(&who);
            self.send_order(&RankOrder::Forget { who })
        })
    }

    /// The right to give orders.
    fn state(&self) -> Result<MutexGuard<'_, OrderState>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.forget_departed(&mut state)?;
        Ok(state)
    }

    fn drawing(&self) -> MutexGuard<'_, Option<(ParticipantId, u64)>> {
        self.drawing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_order(&self, order: &RankOrder) -> Result<()> {
        broadcast(&*self.ranks.work, order.to_message()?).map(drop)
    }

    /// The busiest rank's work for a participant's last picture over the average rank's.
    #[cfg(test)]
    pub(crate) fn imbalance_of(&self, who: ParticipantId) -> Option<f64> {
        self.state.lock().expect("whole").participants.get(&who).map(|shares| shares.record.imbalance)
    }

    /// The shares of a participant.
    #[cfg(test)]
    pub(crate) fn tree_of(&self, who: ParticipantId) -> Option<KdTree> {
        self.state.lock().expect("whole").participants.get(&who).map(|shares| shares.tree.clone())
    }
}

/// The others go home.
impl Drop for Launcher {
    fn drop(&mut self) {
        let ended = self.send_order(&RankOrder::End).and(broadcast(&*self.ranks.news, Vec::new()));
        if let Err(error) = ended {
            tracing::debug!(%error, "other ranks had ended before");
        }
    }
}

/// Changes a schedule so that each rank ends with whole rows, as encoders need them.
pub(crate) fn by_strips(schedule: &Schedule) -> Schedule {
    schedule.clone().by_rows(STRIP_UNIT)
}

/// Returns the scene of an aim, with the size and the quality of a plan.
///
/// # Errors
/// `Invalid` for a transfer function that is none.
pub(crate) fn scene_for(view_plan: &ViewPlan, plan: &FramePlan) -> Result<Scene> {
    let size = ImageSize { width: plan.width, height: plan.height };
    let scene = Scene { size, ..view_plan.scene(&view_plan.view)? };
    let quality = if plan.is_moving { moving(&scene)? } else { Quality::STILL };
    Ok(Scene { quality, ..scene })
}

/// The quality of a scene that moves, by what its pixels span where the camera looks at.
fn moving(scene: &Scene) -> Result<Quality> {
    let pixel_world = scene.camera.height_at_target() / f64::from(scene.size.height.max(1));
    let step_world = scene.view.step_world(scene.view.level_index_of(scene.finest_level)?, 1.0);
    Ok(Quality::moving(pixel_world / step_world))
}

/// This rank's rows of a picture, encoded.
pub(crate) fn strip_of(part: &compose::Composed, plan: &FramePlan, background: [u8; 3]) -> Result<Strip> {
    let mut strip = Strip::encoded(plan.codec, &part.image(), part.region.top, background)?;
    strip.work = part.work.iter().map(|(_, work)| work).sum();
    Ok(strip)
}

impl BlockStatus {
    /// As one host knows it of itself, of `total` blocks: those that several ranks need are counted in proportion. Something is
    /// there as soon as any block is, all once every block is, and what is under way somewhere is never taken for failed.
    pub(crate) fn within(&self, total: u64) -> (u64, FailedBlocks) {
        let shown = |count: u64| {
            let exact = u128::from(count) * u128::from(total);
            u64::try_from(exact.div_ceil(u128::from(self.wanted.max(1)))).unwrap_or(total).min(total)
        };
        let is_any_there = self.lacking < self.wanted;
        let most_lacking = if total > 1 { total - u64::from(is_any_there) } else { total };
        let lacking = shown(self.lacking).min(most_lacking);
        let is_under_way = self.lacking > self.failed;
        let most_failed = lacking.saturating_sub(u64::from(is_under_way));
        let failed_blocks = FailedBlocks {
            failed: shown(self.failed).min(most_failed),
            given_up: shown(self.given_up).min(most_failed),
            retrying: shown(self.retrying).min(lacking),
            reason: self.reason.clone(),
        };
        (lacking, failed_blocks)
    }

    /// When to ask again; `None` when nothing is lacking.
    pub(crate) fn poll_after(&self) -> Option<Duration> {
        match (self.lacking, self.failed) {
            (0, _) => None,
            (lacking, failed) if failed >= lacking => Some(FAILED_POLL_INTERVAL),
            _ => Some(POLL_INTERVAL),
        }
    }

    /// Returns the combined outlook of all ranks at rank 0.
    pub(crate) fn combined(self, ranks: &dyn Communicator) -> Result<Self> {
        let all = reduce(ranks, self.to_message()?, |a, b| {
            Self::from_message(&a)?.and(Self::from_message(&b)?).to_message()
        })?;
        Self::from_message(&all)
    }
}

#[cfg(test)]
mod tests;
