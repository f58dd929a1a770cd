//! Drawing of sessions and films by several ranks, as seen from rank 0.
//!
//! Rank 0 owns sessions, viewers and pacing. It broadcasts one [`RankOrder`] after another, and all ranks
//! take part in what each order requires. This gives one order of pictures, and no rank waits in an exchange
//! that others have left. The other ranks call [`run_worker`](crate::run_worker()).
//!
//! ```text
//!   rank 0    view -> fit, cut -> PlanView --> ReportBlocks -> Draw ----> join strips -> viewer
//!                                  | share        ^ missing     | cast, composite ^
//!   others                         '-> wants -> blocks -------->'---- encode -----'
//! ```
//!
//! [Films](crate::Film) are drawn in the same way, without viewers: rank 0 waits until no rank lacks blocks,
//! and receives pixels ([`PixelPrecision`]) instead of strips. The film's two participants alternate.
//!
//! Cancellations of pictures use a second channel beside the orders: a rank that receives one casts no more
//! but continues the exchange, so that the picture ends at all ranks, only sooner.

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

/// Interval at which rank 0 asks the others for missing blocks, while there are some in flight.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of the same question while all missing blocks have failed: these are retried at long intervals.
pub(crate) const FAILED_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Work of the busiest rank over that of the average rank up to which shares are kept: new shares make ranks
/// fetch other blocks.
const MAX_IMBALANCE: f64 = 1.2;
/// Pictures with the same shares, however uneven: estimating the work takes about as long as a picture of a
/// moving view.
const MIN_PICTURES_BETWEEN_CUTS: u64 = 3;

/// Channels between the ranks of a session or a film.
#[derive(Clone)]
pub struct RankChannels {
    /// Channel for all work that the ranks do together.
    pub work: Arc<dyn Communicator>,
    /// Channel for cancellations of pictures between the same ranks; its messages can overtake those of `work`.
    pub cancellations: Arc<dyn Communicator>,
    /// Compositing method; the same at all ranks.
    pub method: Method,
}

impl RankChannels {
    /// Returns the compositing schedule.
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

/// Rank 0's handle for the other ranks.
pub(crate) struct Launcher {
    ranks: RankChannels,
    schedule: Schedule,
    state: Mutex<OrderState>,
    /// Participant and number of the picture that is being drawn.
    drawing: Mutex<Option<(ParticipantId, u64)>>,
    /// Participants who left and whose removal was not sent to the other ranks yet.
    departed: Mutex<Vec<ParticipantId>>,
}

/// State that is kept between orders; only the holder of its lock sends orders.
#[derive(Default)]
struct OrderState {
    /// Number of pictures so far.
    pictures: u64,
    participants: BTreeMap<ParticipantId, ParticipantShares>,
}

/// Shares of the ranks in a participant's pictures.
#[derive(Clone)]
struct ParticipantShares {
    /// View for which the shares were last used, its volume, and the state of the data.
    last_view: Arc<View>,
    volume: Arc<VolumeView>,
    data: (DatasetId, Generation),
    tree: KdTree,
    balance: Balance,
    record: ShareRecord,
    /// Work of this rank for each block of the last picture, in samples drawn.
    block_work: Vec<(BlockKey, f64)>,
    /// Number of blocks that this rank needs.
    wanted: u64,
}

/// Performance of shares since the volume was divided.
#[derive(Clone, Copy)]
struct ShareRecord {
    /// Work of the busiest rank for the last picture over that of the average rank.
    imbalance: f64,
    /// Number of pictures since the division, and number of the view it was made for.
    pictures: u64,
    seq: u64,
}

impl ShareRecord {
    fn new(seq: u64) -> Self {
        Self { imbalance: 1.0, pictures: 0, seq }
    }

    /// Returns true if the volume should be divided anew for a view.
    fn is_uneven(&self, seq: u64) -> bool {
        self.imbalance > MAX_IMBALANCE && self.seq != seq && self.pictures >= MIN_PICTURES_BETWEEN_CUTS
    }

    /// Records the work of each rank for a picture.
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
            return Err(Error::invalid(format!("rank {rank} cannot lead a session; call it at rank 0")));
        }
        let schedule = ranks.schedule()?;
        let (state, drawing, departed) = (Mutex::default(), Mutex::default(), Mutex::default());
        Ok(Self { ranks, schedule, state, drawing, departed })
    }

    /// Plans a view for `who`, and makes every rank fetch its share of the missing blocks. Shares are kept,
    /// also between time steps, unless they were uneven: then the volume is divided anew, by the work of the
    /// last picture. A new participant starts with the shares of `like`. Blocks the thread.
    ///
    /// # Errors
    /// Those of [`ViewPlan::prepare`], [`fit`] and the communicator.
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

    /// Divides the volume for a view of another time step, of which no block is loaded yet, by the blocks of
    /// the `old` time step. Returns `None` for a view of the same time step.
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
        // Colors by another array do not change the work.
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

    /// Returns the limit of demands: the memory of all ranks.
    pub(crate) fn demand_limit(&self) -> DemandLimit {
        DemandLimit::Memory { hosts: self.ranks.work.size() }
    }

    /// Returns true if the volume should be divided anew for a view other than the one it was divided for.
    pub(crate) fn is_uneven(&self, who: ParticipantId, seq: u64) -> bool {
        // While orders are being sent the answer is about to change.
        let Ok(state) = self.state.try_lock() else { return false };
        state.participants.get(&who).is_some_and(|shares| shares.record.is_uneven(seq))
    }

    /// Returns the number of blocks that `who` lacks at all ranks together, and the failures among them;
    /// blocks that two ranks lack count twice. Blocks the thread.
    ///
    /// # Errors
    /// Reason why another rank cannot draw the view; those of the communicator.
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

    /// Draws a picture of the planned view of `who`, encoded by all ranks. Blocks the thread.
    ///
    /// # Errors
    /// Most severe error of all ranks; `Cancelled` for a picture that was [withdrawn](Self::withdraw).
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
                "grids as lines and stereo pairs need a single rank",
            ));
        }
        let mut state = self.state()?;
        let number = state.pictures + 1;
        // A picture that is cancelled at once needs a number too: other ranks must not apply its cancellation
        // to the next one.
        state.pictures = number;
        *self.drawing() = Some((who, number));
        // The flag is set before `drawing` is read, so that no cancellation is missed.
        let drawn = if cancel.is_cancelled() {
            Err(Error::new(ErrorKind::Cancelled, "the picture was cancelled"))
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
        let shares = state
            .participants
            .get_mut(&who)
            .ok_or_else(|| Error::internal("the participant has no shares to draw"))?;
        self.send_order(&RankOrder::Draw { who, number, view: (**view).clone(), plan: *plan })?;
        let ranks = &*self.ranks.work;
        let schedule = by_strips(&self.schedule);
        let drawn = drawable.draw_together(ranks, scene, &shares.tree, &schedule, cancel);
        let own = drawn.and_then(|part| {
            let strip = strip_of(&part, plan, view.background)?;
            Ok((strip, part))
        });
        // The other ranks send their results even if this rank failed.
        let theirs: Vec<Strip> = (1..ranks.size())
            .map(|rank| Strip::from_message(&ranks.receive(rank)?))
            .collect::<Result<_>>()?;
        let (own, part) = own?;
        let strips: Vec<Strip> = std::iter::once(own).chain(theirs).collect();
        shares.record.add(strips.iter().map(|strip| strip.work));
        shares.block_work = part.work;
        Ok((joined(plan.codec, scene.size, strips)?, part.tally.fidelity(scene)?))
    }

    /// Draws a finished picture of the planned view of `who`, for which each rank [has](Self::block_status)
    /// all its blocks. Blocks the thread.
    ///
    /// # Errors
    /// Most severe error of all ranks.
    pub(crate) fn finish(
        &self,
        who: ParticipantId,
        drawable: &Drawable,
        (scene, view): (&Scene, &View),
        pixels: PixelPrecision,
        cancel: &Cancel,
    ) -> Result<RenderedImage> {
        let mut state = self.state()?;
        let shares = state
            .participants
            .get_mut(&who)
            .ok_or_else(|| Error::internal("the participant has no shares to draw"))?;
        let mut assembly = PictureAssembly::new(scene, view, pixels)?;
        self.send_order(&RankOrder::Finish { who, view: view.clone(), pixels })?;
        let ranks = &*self.ranks.work;
        let own = PictureParts::drawn(ranks, drawable, (scene, view), &shares.tree, &self.schedule, cancel);
        // The other ranks send their results even if this rank failed.
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

    /// Cancels the picture that is being drawn for `who`, whose flag must be set already. Does not wait long,
    /// since the other ranks always receive on this channel.
    ///
    /// # Errors
    /// Those of the communicator.
    pub(crate) fn withdraw(&self, who: ParticipantId) -> Result<()> {
        let drawing = *self.drawing();
        match drawing {
            Some((whose, number)) if whose == who => {
                broadcast(&*self.ranks.cancellations, number.to_le_bytes().to_vec()).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Removes a participant. The other ranks are told at once, or before the next order if one is being
    /// sent.
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

    /// Locks the state for sending orders.
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

    /// Returns the work of the busiest rank for a participant's last picture over that of the average rank.
    #[cfg(test)]
    pub(crate) fn imbalance_of(&self, who: ParticipantId) -> Option<f64> {
        self.state.lock().expect("whole").participants.get(&who).map(|shares| shares.record.imbalance)
    }

    /// Returns the shares of a participant.
    #[cfg(test)]
    pub(crate) fn tree_of(&self, who: ParticipantId) -> Option<KdTree> {
        self.state.lock().expect("whole").participants.get(&who).map(|shares| shares.tree.clone())
    }
}

/// Ends the other ranks.
impl Drop for Launcher {
    fn drop(&mut self) {
        let ended = self.send_order(&RankOrder::End).and(broadcast(&*self.ranks.cancellations, Vec::new()));
        if let Err(error) = ended {
            tracing::debug!(%error, "other ranks had ended before");
        }
    }
}

/// Changes a schedule so that each rank ends with whole rows, as encoders need them.
pub(crate) fn by_strips(schedule: &Schedule) -> Schedule {
    schedule.clone().by_rows(STRIP_UNIT)
}

/// Returns the scene of a view plan, with the size and the quality of a frame plan.
///
/// # Errors
/// `Invalid` for an invalid transfer function.
pub(crate) fn scene_for(view_plan: &ViewPlan, plan: &FramePlan) -> Result<Scene> {
    let size = ImageSize { width: plan.width, height: plan.height };
    let scene = Scene { size, ..view_plan.scene(&view_plan.view)? };
    let quality = if plan.is_moving { moving(&scene)? } else { Quality::STILL };
    Ok(Scene { quality, ..scene })
}

/// Returns the quality for a moving scene, by the size of a pixel at the camera's target.
fn moving(scene: &Scene) -> Result<Quality> {
    let pixel_world = scene.camera.height_at_target() / f64::from(scene.size.height.max(1));
    let step_world = scene.view.step_world(scene.view.level_index_of(scene.finest_level)?, 1.0);
    Ok(Quality::moving(pixel_world / step_world))
}

/// Encodes this rank's rows of a picture.
pub(crate) fn strip_of(part: &compose::Composed, plan: &FramePlan, background: [u8; 3]) -> Result<Strip> {
    let mut strip = Strip::encoded(plan.codec, &part.image(), part.region.top, background)?;
    strip.work = part.work.iter().map(|(_, work)| work).sum();
    Ok(strip)
}

impl BlockStatus {
    /// Converts to the numbers of a single host with `total` blocks; blocks that several ranks need are
    /// scaled down. Some blocks count as loaded as soon as any is, all of them only when every block is, and
    /// blocks in flight somewhere never count as failed.
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

    /// Returns the time after which to ask again; `None` when no block is missing.
    pub(crate) fn poll_after(&self) -> Option<Duration> {
        match (self.lacking, self.failed) {
            (0, _) => None,
            (lacking, failed) if failed >= lacking => Some(FAILED_POLL_INTERVAL),
            _ => Some(POLL_INTERVAL),
        }
    }

    /// Combines the status of all ranks at rank 0.
    pub(crate) fn combined(self, ranks: &dyn Communicator) -> Result<Self> {
        let all = reduce(ranks, self.to_message()?, |a, b| {
            Self::from_message(&a)?.and(Self::from_message(&b)?).to_message()
        })?;
        Self::from_message(&all)
    }
}

#[cfg(test)]
mod tests;
