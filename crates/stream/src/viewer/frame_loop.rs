//! Frame loop of one participant: draws the requested view at the resolution that blocks and time allow.
//!
//! It asks `pace.rs` when to draw, `view_plan.rs` for the blocks of a view, and draws on blocking threads.
//! Errors become messages to the participant; the loop continues.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use array::{Error, ErrorKind, LevelOrigin, LongTask, Result};
use bytes::Bytes;
use gpu::MissingBlocks;
use render::{Cancel, Scene};
use session::{
    DrawnRange, FidelityBadge, FidelityLimit, FidelityState, FrameInfo, Item, ParticipantId, PictureCodec,
    PictureSize, Severity,
};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use view::{ColorBy, Transfer, View};

use crate::encode::{Jpeg, PictureEncoder, Png};
use crate::geometry::{ArrivingGeometry, GeometryNow, ViewGeometry, any_arrives};
use crate::loading::loader::FailedBlocks;
use crate::loading::volume::Volume;
use crate::ranks::launcher::{BlockStatus, Launcher, RankPicture, scene_for};
use crate::tasks::{CancelOnDrop, blocking, sleep_until};
use crate::viewer::chosen::{ChosenValue, chosen_layers};
use crate::viewer::fidelity::PictureFacts;
use crate::viewer::grid_boxes::GridBoxes;
use crate::viewer::pace::{FramePacer, FramePlan, PaceDecision, PaceInput};
use crate::viewer::prefetch::{PREFETCH_DELAY, Prefetch};
use crate::viewer::scene::{image_size, shared_camera};
use crate::viewer::shared::SharedState;
use crate::viewer::view_plan::ViewPlan;
use crate::viewer::viewer_state::{ViewerRequest, ViewerState};

/// Shortest time between two items that only report changed facts.
const FIDELITY_REFRESH: Duration = Duration::from_millis(200);
/// Interval at which a waiting participant is told the progress of long work.
const WORK_REFRESH: Duration = Duration::from_millis(500);

/// Draws for `who` until they leave.
pub(crate) async fn run(shared: Arc<SharedState>, who: ParticipantId, viewer: Arc<ViewerState>) {
    let guard = LoopGuard { shared: Arc::clone(&shared), who, viewer: Arc::clone(&viewer) };
    let frames = FrameLoop {
        shared,
        who,
        viewer,
        pacer: FramePacer::default(),
        encoders: None,
        view_plan: None,
        boxes: Arc::default(),
        geometry: ViewGeometry::default(),
        arriving: Vec::new(),
        said: Vec::new(),
        refused: None,
        chosen: None,
        chosen_range: None,
        chosen_layers: BTreeMap::new(),
        turn: None,
        shown: None,
        sent_fidelity: None,
        sent_values: None,
        rank_status: None,
        frames: 0,
        before: None,
        planned_at: Instant::now(),
        prefetch: None,
    };
    frames.run().await;
    drop(guard);
}

/// Tells the participant that nothing more follows when the loop ends, even by a panic.
struct LoopGuard {
    shared: Arc<SharedState>,
    who: ParticipantId,
    viewer: Arc<ViewerState>,
}

impl Drop for LoopGuard {
    fn drop(&mut self) {
        // The loop of a participant's newer connection continues to fetch.
        if self.shared.is_newest(self.who, &self.viewer) {
            forget(&self.shared, self.who);
        }
        self.viewer.outbox.close();
    }
}

/// Encoders of one participant; they move to the drawing thread and back.
struct Encoders {
    jpeg: Jpeg,
    png: Png,
}

struct FrameLoop {
    shared: Arc<SharedState>,
    who: ParticipantId,
    viewer: Arc<ViewerState>,
    pacer: FramePacer,
    encoders: Option<Encoders>,
    view_plan: Option<ViewPlan>,
    /// Grids that the view shows as lines.
    boxes: Arc<GridBoxes>,
    /// Geometry layers of the view that are there.
    geometry: ViewGeometry,
    /// Geometry of the view that is still coming; without those who wait for it, it is not fetched.
    arriving: Vec<ArrivingGeometry>,
    /// Messages about its geometry that the participant has got for this view.
    said: Vec<String>,
    /// Number and size of a view that failed; it is not tried again.
    refused: Option<(u64, PictureSize)>,
    chosen: Option<ChosenValue<Transfer>>,
    /// Range of the colors by another array.
    chosen_range: Option<ChosenValue<[f64; 2]>>,
    /// Transfer functions of layers, by the names of their arrays.
    chosen_layers: BTreeMap<String, ChosenValue<Transfer>>,
    /// Permit to draw.
    turn: Option<OwnedSemaphorePermit>,
    /// Fidelity of the last picture of this view plan.
    shown: Option<render::Fidelity>,
    /// Fidelity badge that was sent last, and when.
    sent_fidelity: Option<(FidelityBadge, Instant)>,
    /// Basis of the value statistics that were sent last.
    sent_values: Option<SentValues>,
    /// Block status that other ranks reported last for this view plan, and when.
    rank_status: Option<(BlockStatus, Instant)>,
    frames: u64,
    /// Last view before this view plan that had another camera or another time.
    before: Option<Arc<View>>,
    planned_at: Instant,
    /// Prefetch of the blocks that may be wanted next.
    prefetch: Option<Prefetch>,
}

impl FrameLoop {
    async fn run(mut self) {
        let mut budget_changes = self.shared.volumes.budget_changes();
        loop {
            if let Some(at) = self.pacer.resumes_at() {
                sleep_until(Some(at)).await;
            }
            let Some(request) = self.viewer.request() else { return };
            // A participant that claims to have shown frames that were never sent does not get more of them.
            if request.shown <= self.frames {
                self.pacer.shown(request.shown);
            }
            if self.refused == Some((request.seq, request.size)) {
                self.viewer.wake.notified().await;
                continue;
            }
            let budget_has_changed = budget_changes.has_changed().unwrap_or(false);
            budget_changes.mark_unchanged();
            if let Err(error) = self.step(&request, budget_has_changed, &mut budget_changes).await {
                self.refuse(&request, &error);
            }
        }
    }

    /// Does the next thing that is due, or waits for an event.
    async fn step(
        &mut self,
        request: &ViewerRequest,
        budget_has_changed: bool,
        budget_changes: &mut tokio::sync::watch::Receiver<usize>,
    ) -> Result<()> {
        self.update_view_plan(request, budget_has_changed).await?;
        self.update_boxes(request).await;
        self.update_geometry(request);
        let Some(view_plan) = &self.view_plan else { return Ok(()) };
        let mut arrivals = view_plan.subscription.volume.arrivals();
        arrivals.mark_unchanged();
        self.query_ranks().await?;
        let Some(view_plan) = &self.view_plan else { return Ok(()) };
        let mut facts = PictureFacts::of(view_plan, self.block_status(view_plan), self.shown);
        facts.arriving_layers = self.arriving.len();
        let is_waiting = !facts.is_settled();
        if is_waiting {
            facts.levels_made = (self.shared.work)(LongTask::Levels { array: view_plan.array() });
            facts.indexed = (self.shared.work)(LongTask::Indexing);
        }
        if let Some(fields) = self.omitted(request, &facts)? {
            if !self.shared.fill_in(self.who, request.seq, &fields)? {
                self.viewer.wake.notified().await;
            }
            return Ok(());
        }
        let now = Instant::now();
        let facts_are_complete = facts.blocks_present == facts.blocks_total;
        let input = input(request, &facts, self.geometry.count(), self.shared.feed.time_placing());
        let mut until = match self.pacer.decide(&input, now) {
            PaceDecision::Draw(plan) => {
                let Some(turn) = self.turn.take() else {
                    // The request may change while we wait: what is drawn is decided after the permit was
                    // granted.
                    self.turn = Arc::clone(&self.shared.draws).acquire_owned().await.ok();
                    return Ok(());
                };
                return self.draw(request, plan, input, facts, turn).await;
            }
            PaceDecision::WaitUntil(at) => Some(at),
            PaceDecision::Idle => None,
        };
        self.turn = None;
        self.send_values(request, facts.is_settled());
        let fidelity_at = self.send_fidelity(&input, facts, now);
        let prefetch_at = self.start_prefetch(facts_are_complete, now);
        let work_at = is_waiting.then(|| now + WORK_REFRESH);
        let poll_at =
            self.rank_status.as_ref().and_then(|(block_status, at)| Some(*at + block_status.poll_after()?));
        until = [until, fidelity_at, prefetch_at, work_at, poll_at].into_iter().flatten().min();
        tokio::select! {
            () = self.viewer.wake.notified() => {}
            _ = arrivals.changed() => {}
            () = any_arrives(self.arriving.clone()) => {}
            _ = budget_changes.changed() => budget_changes.mark_changed(),
            () = sleep_until(until) => {}
        }
        Ok(())
    }

    /// Plans the requested view, unless the current plan serves it.
    async fn update_view_plan(&mut self, request: &ViewerRequest, budget_has_changed: bool) -> Result<()> {
        let size = image_size(request.size);
        if let Some(view_plan) = &mut self.view_plan
            && view_plan.serves(&self.shared.dataset(), &request.view, size)
            && !budget_has_changed
            && !self
                .shared
                .launcher
                .as_ref()
                .is_some_and(|launcher| launcher.is_uneven(self.who, request.seq))
        {
            view_plan.view = Arc::clone(&request.view);
            return Ok(());
        }
        self.prefetch = None;
        let old = self.view_plan.take();
        if let Some(old) = &old
            && (&old.view.camera, old.view.time) != (&request.view.camera, request.view.time)
        {
            self.before = Some(Arc::clone(&old.view));
        }
        let (shared, who, view, old) = (
            Arc::clone(&self.shared),
            self.who,
            Arc::clone(&request.view),
            old.map(|view_plan| view_plan.subscription),
        );
        let seq = request.seq;
        let planning = move || match &shared.launcher {
            Some(launcher) => launcher.plan_view(&shared, (who, None), (seq, view), size, old),
            None => ViewPlan::new(&shared.volumes, &shared.feed, shared.dataset(), who, view, size, old),
        };
        self.view_plan = Some(blocking(planning).await??);
        self.planned_at = Instant::now();
        self.shown = None;
        self.rank_status = None;
        Ok(())
    }

    /// Starts a prefetch once everything has been loaded for a while; returns the time to check again.
    /// Several ranks do not prefetch.
    fn start_prefetch(&mut self, is_complete: bool, now: Instant) -> Option<Instant> {
        let view_plan = self.view_plan.as_ref()?;
        if !is_complete || self.prefetch.is_some() || self.shared.launcher.is_some() {
            return None;
        }
        let due = self.planned_at + PREFETCH_DELAY;
        if now < due {
            return Some(due);
        }
        let dataset = Arc::clone(&view_plan.dataset);
        self.prefetch =
            Some(Prefetch::begin(self.shared.source(), dataset, view_plan, self.before.as_deref()));
        None
    }

    /// Loads the grids of the requested view into `self.boxes`; tells the participant once about omitted
    /// ones.
    async fn update_boxes(&mut self, request: &ViewerRequest) {
        let say = |severity, text| self.viewer.outbox.push(Item::Message { severity, text }, Bytes::new());
        match self.shared.boxes(&request.view).await {
            Ok(boxes) => {
                let is_new = !boxes.wires.is_empty() && !Arc::ptr_eq(&boxes, &self.boxes);
                if let Some(omitted) = boxes.omitted.as_ref().filter(|_| is_new) {
                    say(Severity::Info, omitted.clone());
                }
                self.boxes = boxes;
            }
            Err(error) => say(Severity::Warning, format!("Grids cannot be drawn: {error}.")),
        }
    }

    /// Takes what is there of the geometry of the requested view into `self.geometry`, and begins to fetch the rest; tells the
    /// participant once about layers that cannot be drawn.
    fn update_geometry(&mut self, request: &ViewerRequest) {
        let GeometryNow { geometry, errors, arriving } = self.shared.geometry.now(&request.view);
        let mut says: Vec<String> =
            errors.iter().map(|error| format!("A layer cannot be drawn: {error}.")).collect();
        (self.geometry, self.arriving) = (geometry, arriving);
        if self.shared.launcher.is_some() && !(self.geometry.is_empty() && self.arriving.is_empty()) {
            (self.geometry, self.arriving) = (ViewGeometry::default(), Vec::new());
            says.push(
                "Geometry is not drawn by several ranks: start the viewing node without `--ranks`."
                    .to_owned(),
            );
        }
        for text in says.iter().filter(|text| !self.said.contains(text)) {
            let item = Item::Message { severity: Severity::Warning, text: text.clone() };
            self.viewer.outbox.push(item, Bytes::new());
        }
        self.said = says;
    }

    /// Asks other ranks, if there are any, for their missing blocks; skips this while nothing is likely to
    /// have changed.
    async fn query_ranks(&mut self) -> Result<()> {
        let Some(launcher) = self.shared.launcher.clone() else { return Ok(()) };
        let is_fresh = |(block_status, at): &(BlockStatus, Instant)| {
            block_status.poll_after().is_none_or(|after| *at + after > Instant::now())
        };
        if self.rank_status.as_ref().is_some_and(is_fresh) {
            return Ok(());
        }
        let (shared, who) = (Arc::clone(&self.shared), self.who);
        let block_status = blocking(move || launcher.block_status(&shared, who)).await??;
        self.rank_status = Some((block_status, Instant::now()));
        Ok(())
    }

    /// Returns the number of missing blocks of a view plan at all ranks, and the failures among them.
    fn block_status(&self, view_plan: &ViewPlan) -> (u64, FailedBlocks) {
        match &self.rank_status {
            Some((block_status, _)) => block_status.within(view_plan.blocks_total()),
            None => self.shared.feed.block_status(self.who),
        }
    }

    /// Returns values of the camera, the shading, the transfer function and the colors that the view omits, or better ones
    /// than those that were chosen for it; `None` if there are none.
    fn omitted(
        &mut self,
        request: &ViewerRequest,
        facts: &PictureFacts,
    ) -> Result<Option<serde_json::Map<String, serde_json::Value>>> {
        let Some(view_plan) = &self.view_plan else { return Ok(None) };
        if request.view.camera.is_none() {
            return field("camera", &shared_camera(&view_plan.camera)).map(Some);
        }
        let (now, is_settled) = (request.view.transfer.as_ref(), facts.is_settled());
        let sensible = || view_plan.subscription.volume.sensible_transfer();
        let mut fields = serde_json::Map::new();
        if let Some(better) = ChosenValue::better(self.chosen.as_ref(), now, sensible, is_settled) {
            if now != Some(&better.value) {
                fields.extend(field("transfer", &better.value)?);
            }
            self.chosen = Some(better);
        }
        // Together with the transfer function, which needs values: so viewers are told once.
        if request.view.shading.is_none() && (now.is_some() || fields.contains_key("transfer")) {
            fields.extend(field("shading", &view_plan.is_shaded(&request.view)?)?);
        }
        if let Some((by, color_by)) =
            request.view.color_by.as_ref().zip(view_plan.subscription.color_by.as_ref())
        {
            let mut filled = by.clone();
            let range =
                || color_by.volume.sensible_transfer().map(|(voxels, sensible)| (voxels, sensible.range));
            let known = self.chosen_range.as_ref();
            if let Some(better) = ChosenValue::better(known, by.range.as_ref(), range, is_settled) {
                filled.range = Some(better.value);
                self.chosen_range = Some(better);
            }
            if filled.map.is_none() {
                filled.map = color_by.volume.sensible_transfer().map(|(_, sensible)| sensible.map);
            }
            if filled != *by {
                fields.extend(field("color_by", &filled)?);
            }
        }
        if let Some(layers) = chosen_layers(&mut self.chosen_layers, &request.view, view_plan, is_settled) {
            fields.extend(field("layers", &layers)?);
        }
        Ok((!fields.is_empty()).then_some(fields))
    }

    /// Draws, encodes and sends one picture. A picture of a view at rest is cancelled when a newer view
    /// arrives.
    async fn draw(
        &mut self,
        request: &ViewerRequest,
        plan: FramePlan,
        input: PaceInput,
        facts: PictureFacts,
        turn: OwnedSemaphorePermit,
    ) -> Result<()> {
        let Some(view_plan) = &self.view_plan else { return Ok(()) };
        let mut scene = Scene { wires: Arc::clone(&self.boxes.wires), ..scene_for(view_plan, &plan)? };
        let (geometry, dataset, array) =
            (self.geometry.clone(), Arc::clone(&view_plan.dataset), view_plan.array());
        let mut encoders = match self.encoders.take() {
            Some(encoders) => encoders,
            None => Encoders { jpeg: Jpeg::new()?, png: Png },
        };
        let began = Instant::now();
        let cancel = CancelOnDrop::default();
        let flag = cancel.flag();
        let (background, parallax) = (request.view.background, request.view.stereo);
        let painter = Arc::clone(&self.shared.painter);
        // Pictures of a moving view are soon replaced; those of a view at rest must be complete.
        let missing_blocks = if plan.is_moving { MissingBlocks::StandIns } else { MissingBlocks::Complete };
        let drawable = view_plan.subscription.drawable();
        let (launcher, who, view) = (self.shared.launcher.clone(), self.who, Arc::clone(&request.view));
        let pending = PendingDrawing {
            viewer: Arc::clone(&self.viewer),
            launcher: self.shared.launcher.clone(),
            who,
            seq: request.seq,
        };
        let job = blocking(move || {
            match geometry.for_scene(&scene, &dataset, array) {
                Ok(geometry) => scene.geometry = geometry,
                Err(error) => return (encoders, Err(error)),
            }
            let drawn = match launcher {
                Some(launcher) => launcher.draw(who, &drawable, &RankPicture { scene, view, plan }, &flag),
                None => drawable.cast(&painter, &scene, parallax, missing_blocks, &flag).and_then(|frame| {
                    let encoder: &mut dyn PictureEncoder = match plan.codec {
                        PictureCodec::Jpeg => &mut encoders.jpeg,
                        PictureCodec::Png => &mut encoders.png,
                    };
                    Ok((encoder.encode(&frame.image, background)?, frame.fidelity))
                }),
            };
            (encoders, drawn)
        });
        let (encoders, drawn) = unless_replaced(job, &pending, plan, &cancel.flag()).await?;
        drop(turn);
        self.encoders = Some(encoders);
        match drawn {
            Ok((bytes, fidelity)) => self.send(bytes, &fidelity, plan, input, facts, began),
            Err(error) if error.kind() == ErrorKind::Cancelled => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn send(
        &mut self,
        bytes: Bytes,
        drawn: &render::Fidelity,
        plan: FramePlan,
        input: PaceInput,
        mut facts: PictureFacts,
        began: Instant,
    ) {
        let now = Instant::now();
        self.frames += 1;
        self.shown = Some(*drawn);
        if let Some(view_plan) = &self.view_plan {
            facts = facts.showing(view_plan, self.shown);
        }
        facts.is_moving = plan.is_moving;
        let window = input.size;
        let is_window = (plan.width, plan.height) == (window.width(), window.height()) && window.is_whole();
        facts.is_lossless = plan.codec == PictureCodec::Png && is_window;
        facts.is_enlarged = !window.is_whole();
        let fidelity = facts.fidelity();
        let info = FrameInfo {
            id: self.frames,
            seq: input.seq,
            width: plan.width,
            height: plan.height,
            codec: plan.codec,
            fidelity: fidelity.clone(),
        };
        self.sent_fidelity = Some((fidelity, now));
        if plan.codec == PictureCodec::Png {
            self.viewer.change(|w| w.wants_still = false);
        }
        self.pacer.sent(self.frames, plan, input, began, now);
        self.viewer.outbox.push(Item::Frame(info), bytes);
    }

    /// Sends a fidelity badge that changed without a picture; returns the time to check again if it is too
    /// early.
    fn send_fidelity(&mut self, input: &PaceInput, mut facts: PictureFacts, now: Instant) -> Option<Instant> {
        facts.is_moving = input.is_moving(now);
        facts.is_lossless = self.pacer.is_exact(input) && input.size.is_whole();
        facts.is_enlarged = !input.size.is_whole();
        let fidelity = facts.fidelity();
        if let Some((sent, at)) = &self.sent_fidelity {
            if *sent == fidelity {
                return None;
            }
            let due = *at + FIDELITY_REFRESH;
            if due > now && sent.state == fidelity.state {
                return Some(due);
            }
        }
        self.sent_fidelity = Some((fidelity.clone(), now));
        self.viewer.outbox.push(Item::Fidelity { fidelity }, Bytes::new());
        None
    }

    /// Sends statistics of the values shown: once blocks are loaded, and again when the values change or many
    /// more blocks have arrived.
    fn send_values(&mut self, request: &ViewerRequest, is_settled: bool) {
        let Some(view_plan) = &self.view_plan else { return };
        let volume = &view_plan.subscription.volume;
        let known = SentValues {
            of: Arc::downgrade(volume),
            drawn: DrawnRange::of(&request.view),
            voxels: volume.voxels_seen(),
        };
        if self.sent_values.as_ref().is_some_and(|sent| !known.adds_to(sent, is_settled)) {
            return;
        }
        let Some(values) = volume.values(known.drawn) else { return };
        self.sent_values = Some(known);
        let (array, time, at) = (request.view.array.clone(), request.view.time, request.view.at.clone());
        self.viewer.outbox.push(Item::Values { array, time, at, values }, Bytes::new());
    }

    /// Reports the error of a view; it is not drawn until the request or the size changes.
    fn refuse(&mut self, request: &ViewerRequest, error: &Error) {
        self.refused = Some((request.seq, request.size));
        self.view_plan = None;
        self.arriving = Vec::new();
        self.prefetch = None;
        self.turn = None;
        forget(&self.shared, self.who);
        let item = Item::Message { severity: Severity::Error, text: error.to_string() };
        self.viewer.outbox.push(item, Bytes::new());
        let mut fidelity = self.sent_fidelity.take().map_or_else(nothing_shown, |(fidelity, _)| fidelity);
        fidelity.state = FidelityState::Failed;
        fidelity.exact = false;
        fidelity.text = format!("Cannot be drawn: {error}.");
        self.viewer.outbox.push(Item::Fidelity { fidelity }, Bytes::new());
    }
}

/// Returns the badge before the first picture.
fn nothing_shown() -> FidelityBadge {
    FidelityBadge {
        level_shown: None,
        level_wanted: 0,
        origin: LevelOrigin::Stored,
        limit: FidelityLimit::Finest,
        blocks_present: 0,
        blocks_total: 0,
        state: FidelityState::Loading,
        exact: false,
        levels_made: None,
        resampled: false,
        text: String::new(),
    }
}

/// Basis of value statistics: the volume, how values are drawn, and the number of voxels of level 0 counted.
struct SentValues {
    of: Weak<Volume>,
    drawn: DrawnRange,
    voxels: f64,
}

impl SentValues {
    /// Returns true if statistics on this basis are worth sending after those on `sent`: for other values or
    /// another range, from twice as many voxels, or the final ones.
    fn adds_to(&self, sent: &Self, is_settled: bool) -> bool {
        !self.of.ptr_eq(&sent.of)
            || self.drawn != sent.drawn
            || self.voxels >= 2.0 * sent.voxels && self.voxels > 0.0
            || is_settled && self.voxels > sent.voxels
    }
}

/// Drawing that a participant waits for, with the number of the view.
struct PendingDrawing {
    viewer: Arc<ViewerState>,
    launcher: Option<Arc<Launcher>>,
    who: ParticipantId,
    seq: u64,
}

/// Waits for a drawing; cancels it if it shows a view at rest that has been replaced.
async fn unless_replaced<T>(
    job: impl Future<Output = Result<T>>,
    pending: &PendingDrawing,
    plan: FramePlan,
    cancel: &Cancel,
) -> Result<T> {
    let PendingDrawing { viewer, launcher, who, seq } = pending;
    tokio::pin!(job);
    loop {
        tokio::select! {
            done = &mut job => return done,
            () = viewer.wake.notified(), if !plan.is_moving && !cancel.is_cancelled() => {
                if viewer.request().is_none_or(|w| w.seq != *seq) {
                    cancel.cancel();
                    launcher.as_ref().map_or(Ok(()), |launcher| launcher.withdraw(*who))?;
                }
            }
        }
    }
}

/// Stops fetching for a participant, here and at other ranks.
fn forget(shared: &SharedState, who: ParticipantId) {
    shared.feed.forget(who);
    if let Some(launcher) = &shared.launcher {
        launcher.forget(who);
    }
}

fn input(
    request: &ViewerRequest,
    facts: &PictureFacts,
    geometry_present: usize,
    placing: Duration,
) -> PaceInput {
    let has_range = |by: &ColorBy| by.range.is_some() || facts.is_settled();
    let has_colors = request.view.transfer.is_some() && request.view.color_by.as_ref().is_none_or(has_range);
    PaceInput {
        seq: request.seq,
        changed_at: request.changed_at,
        says_moving: request.says_moving,
        size: request.size,
        is_drawable: facts.blocks_total == 0 || (has_colors && facts.blocks_present > 0),
        blocks_present: facts.blocks_present,
        geometry_present,
        placing,
        is_settled: facts.is_settled(),
        wants_still: request.wants_still,
    }
}

/// Returns one field of a view as JSON.
fn field<T: serde::Serialize>(name: &str, value: &T) -> Result<serde_json::Map<String, serde_json::Value>> {
    let value =
        serde_json::to_value(value).map_err(|e| Error::internal(format!("cannot serialize a view: {e}")))?;
    Ok(serde_json::Map::from_iter([(name.to_owned(), value)]))
}

#[cfg(test)]
mod tests {
    use array::conformance::{MemorySource, one_array};
    use array::{Completions, Dataset, ReadRequest, Region, Source, Want};
    use futures::StreamExt;
    use futures::future::BoxFuture;
    use serde_json::json;
    use session::{JoinParams, Role};
    use tokio::task::JoinSet;

    use super::*;
    use crate::loading::feed::MAX_PLACED_AT_ONCE;
    use crate::viewer::shared::DRAWS_AT_ONCE;

    /// Receives the next frame and acknowledges it at once.
    async fn frame(shared: &SharedState, who: ParticipantId, viewer: &ViewerState) -> FrameInfo {
        loop {
            if let Item::Frame(info) = viewer.outbox.next().await.unwrap().item {
                shared.note(who, json!({"kind": "shown", "frame": info.id}).to_string().as_bytes());
                return info;
            }
        }
    }

    /// Adds a participant with a small window, whose frames are drawn until the tasks are dropped.
    fn joined(shared: &Arc<SharedState>) -> (ParticipantId, Arc<ViewerState>, JoinSet<()>) {
        let join = JoinParams {
            session: String::new(),
            name: "Ada".into(),
            width: 64,
            height: 64,
            resume: String::new(),
        };
        let (who, viewer) = shared.join(&join, Role::Own, String::new(), 0).unwrap();
        let mut tasks = JoinSet::new();
        let fed = Arc::clone(shared);
        tasks.spawn(async move { fed.feed.run().await });
        tasks.spawn(run(Arc::clone(shared), who, Arc::clone(&viewer)));
        (who, viewer, tasks)
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_loop_that_waited_for_its_turn_draws_the_newest_view() {
        let dataset = one_array("|u1".parse().unwrap(), &[32; 3], &[16; 3]);
        let elements = (0..32 * 32 * 32).map(|i: u32| i.to_le_bytes()[1]).collect::<Vec<u8>>();
        let source = Arc::new(MemorySource::new(dataset.clone(), vec![vec![elements.into()]]).unwrap());
        let view = View::first_of(&dataset).unwrap();
        let shared = Arc::new(SharedState::new(
            Arc::new(dataset),
            source,
            (64 << 20).into(),
            view,
            Arc::new(|_| None),
        ));
        let (who, viewer, _tasks) = joined(&shared);
        while !frame(&shared, who, &viewer).await.fidelity.exact {}

        let others = shared.draws.acquire_many(u32::try_from(DRAWS_AT_ONCE).unwrap()).await.unwrap();
        for seq in [100, 101, 102] {
            let note =
                json!({"kind": "view", "seq": seq, "moving": true, "view": {"background": [seq, 0, 0]}});
            shared.note(who, note.to_string().as_bytes());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        drop(others);
        assert_eq!(frame(&shared, who, &viewer).await.seq, 102);
        while !frame(&shared, who, &viewer).await.fidelity.exact {}
        assert_eq!(shared.draws.available_permits(), DRAWS_AT_ONCE, "a resting frame loop holds no permit");
    }

    #[tokio::test]
    async fn a_picture_is_drawn_before_its_geometry_arrives_and_again_with_it() {
        let dataset = one_array("|u1".parse().unwrap(), &[32; 3], &[16; 3]);
        let elements = (0..32 * 32 * 32).map(|i: u32| i.to_le_bytes()[1]).collect::<Vec<u8>>();
        let source = MemorySource::new(dataset.clone(), vec![vec![elements.into()]]).unwrap();
        let view = json!({"array": dataset.arrays[0].name, "layers": [{"geometry": "a.csv"}]});
        let (gate, is_open) = tokio::sync::watch::channel(false);
        let fetch: crate::GeometryFetch = Arc::new(move |_| {
            let mut is_open = is_open.clone();
            Box::pin(async move {
                is_open.wait_for(|is_open| *is_open).await.map_err(|_| Error::cancelled())?;
                Ok(Bytes::from_static(b"x,y,z\n16,16,16\n"))
            })
        });
        let shared = SharedState::new(
            Arc::new(dataset),
            Arc::new(source),
            crate::DrawResources::from(64u64 << 20).with_geometry(fetch),
            View::parse(&view.to_string()).unwrap(),
            Arc::new(|_| None),
        );
        let shared = Arc::new(shared);
        let (who, viewer, _tasks) = joined(&shared);
        let mut before = frame(&shared, who, &viewer).await;
        while before.codec != PictureCodec::Png {
            before = frame(&shared, who, &viewer).await;
        }
        assert!(before.fidelity.text.contains("a layer of geometry is still being fetched"), "{before:?}");
        assert_eq!((before.fidelity.state, before.fidelity.exact), (FidelityState::Loading, false));
        gate.send_replace(true);
        let mut after = frame(&shared, who, &viewer).await;
        while !after.fidelity.exact {
            after = frame(&shared, who, &viewer).await;
        }
        assert!(after.id > before.id && !after.fidelity.text.contains("geometry"), "{after:?}");
    }

    /// Source that delivers one block every millisecond.
    struct Trickle(MemorySource);

    impl Source for Trickle {
        fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
            self.0.describe()
        }

        fn blocks(&self, wants: Vec<Want>) -> Completions {
            let one = |completion| async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                completion
            };
            self.0.blocks(wants).then(one).boxed()
        }

        fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
            self.0.read(request, into)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_moving_view_gets_a_frame_before_many_blocks_are_placed() {
        /// Milliseconds between changes of the view, equal to the number of blocks that arrive meanwhile.
        const CHANGE_MILLIS: u64 = 16;
        const MOST_BETWEEN_FRAMES: u64 = CHANGE_MILLIS + 2 * MAX_PLACED_AT_ONCE as u64;
        let dataset = one_array("|u1".parse().unwrap(), &[64; 3], &[8; 3]);
        let elements = (0..64 * 64 * 64).map(|i: u32| i.to_le_bytes()[1]).collect::<Vec<u8>>();
        let source = Trickle(MemorySource::new(dataset.clone(), vec![vec![elements.into()]]).unwrap());
        let view = View::first_of(&dataset).unwrap();
        let shared = SharedState::new(
            Arc::new(dataset),
            Arc::new(source),
            (64 << 20).into(),
            view,
            Arc::new(|_| None),
        );
        let shared = Arc::new(shared);
        let (who, viewer, mut tasks) = joined(&shared);
        let moving = Arc::clone(&shared);
        tasks.spawn(async move {
            for seq in 1000.. {
                let note =
                    json!({"kind": "view", "seq": seq, "moving": true, "view": {"background": [seq % 256, 0, 0]}});
                moving.note(who, note.to_string().as_bytes());
                tokio::time::sleep(Duration::from_millis(CHANGE_MILLIS)).await;
            }
        });
        let (mut frames, mut present) = (0, 0);
        loop {
            let fidelity = frame(&shared, who, &viewer).await.fidelity;
            assert!(fidelity.blocks_present <= present + MOST_BETWEEN_FRAMES, "{present}, then {fidelity:?}");
            present = fidelity.blocks_present;
            frames += 1;
            if present == fidelity.blocks_total {
                break;
            }
        }
        assert_eq!(present, 512);
        assert!(frames >= 512 / MOST_BETWEEN_FRAMES, "{frames}");
    }
}
