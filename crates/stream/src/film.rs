//! Finished pictures of a sequence of views: stills and films.
//!
//! The blocks of the next picture are fetched while one is drawn, so that a film of N pictures takes about N
//! times the slower of fetching and drawing, plus once the faster. Two participants, each with its own share
//! of the memory, alternate. If several ranks draw, rank 0 owns the film: it plans and draws through its
//! [launcher](crate::ranks::launcher) and receives whole pictures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use array::{Dataset, Error, Result, Source};
use gpu::MissingBlocks;
use render::{Cancel, Cutting, Fidelity, ImageSize, Scene, SlabRequest};
use session::{DrawnRange, FidelityBadge, ParticipantId, ValueSummary};
use tokio::task::JoinSet;
use view::{ColorBy, LayerLabels, Transfer, TransferChoice, View, ViewLayer};

use crate::encode::slabs::FilmSlabs;
use crate::loading::volume::{Volume, VolumeSubscription};
use crate::painter::DrawResources;
use crate::ranks::launcher::{LaunchedRanks, Launcher, PixelPrecision, RankGroup, coarsest_demand};
use crate::row_picture::RowPicture;
use crate::still::Still;
use crate::tasks::{CancelOnDrop, blocking};
use crate::viewer::check::check;
use crate::viewer::chosen::sensible_layer_transfer;
use crate::viewer::fidelity::PictureFacts;
use crate::viewer::grid_boxes::GridBoxes;
use crate::viewer::scene::{any_transfer, camera_in, camera_of, shared_camera, volume_of};
use crate::viewer::session::check_memory;
use crate::viewer::shared::SharedState;
use crate::viewer::view_plan::{DemandLimit, ViewPlan};

/// Range of values that colors are mapped to where a view has no transfer function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ColorRange {
    /// Range without a few outliers and values that look like padding.
    #[default]
    Usual,
    /// Range from the lowest value to the highest.
    Full,
    /// Given range of decoded values.
    Of([f64; 2]),
}

/// Description of a film to draw.
#[derive(Clone, Debug)]
pub struct FilmRequest {
    /// Views, one for each picture. Camera and transfer function may be omitted; a transfer function is then
    /// chosen for the first picture and kept.
    pub views: Vec<View>,
    /// Choice of a transfer function by name or by some of its members, which replace those of the views and the
    /// default.
    pub choice: Option<TransferChoice>,
    /// Range of values that colors are mapped to.
    pub range: ColorRange,
    /// Size of the pictures, pixels.
    pub size: ImageSize,
    /// Memory for blocks, and the painter.
    pub resources: DrawResources,
    /// Slabs to make with each picture: not with stereo pairs, isosurfaces, slices, extreme values or several
    /// ranks.
    pub slabs: Option<FilmSlabs>,
    /// Ranks that draw, on the CPU; the pictures differ from those of one rank only by rounding. `resources`
    /// are then those of this rank, or those of all threads together.
    pub rank_group: Option<RankGroup>,
    /// Pixel format in which the ranks send finished pictures to rank 0.
    pub pixels: PixelPrecision,
}

/// Interval at which other ranks are asked whether they have all blocks of the next picture.
const RANK_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Participants that alternate; one of them keeps the blocks of the previous picture.
const FIRST: ParticipantId = ParticipantId(0);
const SECOND: ParticipantId = ParticipantId(1);

fn other_participant(participant: ParticipantId) -> ParticipantId {
    if participant == FIRST { SECOND } else { FIRST }
}

/// Values for which colors are chosen once in a film: an array, and the indices on its axes that are neither space nor time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FilmValues {
    array: String,
    at: BTreeMap<String, u64>,
}

impl FilmValues {
    /// Returns the values that a view shows.
    fn of_view(view: &View) -> Self {
        Self { array: view.array.clone(), at: view.at.clone() }
    }

    /// Returns the values that give a view its colors.
    fn of_colors(by: &ColorBy) -> Self {
        Self { array: by.array.clone(), at: by.at.clone() }
    }

    /// Returns the values of a layer, whose indices are those of the view where it has none.
    fn of_layer(layer: &ViewLayer, view: &View, dataset: &Dataset) -> Self {
        let array = layer.array.clone().unwrap_or_default();
        let axes = dataset.find(&array).map(|(_, info)| &info.axes[..]).unwrap_or_default();
        let shared = view.at.iter().filter(|(name, _)| axes.iter().any(|axis| axis.name == **name));
        let at = shared.chain(&layer.at).map(|(name, index)| (name.clone(), *index)).collect();
        Self { array, at }
    }
}

/// Picture whose blocks are being fetched.
struct PendingPicture {
    /// View plan, which covers more than the picture where its slabs do.
    view_plan: ViewPlan,
    /// View that the picture shows.
    view: View,
    slabs: Option<SlabRequest>,
}

/// Film that is being drawn. Dropping it cancels all wants and the current drawing.
pub struct Film {
    shared: Arc<SharedState>,
    views: std::vec::IntoIter<View>,
    choice: Option<TransferChoice>,
    range: ColorRange,
    size: ImageSize,
    pixels: PixelPrecision,
    /// Number of pictures planned so far.
    planned_pictures: u64,
    /// Transfer functions that were chosen for the first picture of each array.
    chosen: BTreeMap<FilmValues, Transfer>,
    /// Colors by another array that were chosen for the first picture with them.
    chosen_colors: BTreeMap<FilmValues, ColorBy>,
    /// Transfer functions that were chosen for layers.
    chosen_layers: BTreeMap<(FilmValues, Option<LayerLabels>), Transfer>,
    pending: Option<PendingPicture>,
    slabs: Option<FilmSlabs>,
    /// Participant of the next picture, which still holds the blocks of the previous one.
    next_participant: Option<(ParticipantId, VolumeSubscription)>,
    /// Task that fetches blocks.
    _feed_task: JoinSet<()>,
    /// Other ranks, if they are threads of this process.
    _workers: JoinSet<Result<()>>,
}

impl Film {
    /// Opens a film and requests the blocks of the first picture.
    ///
    /// Call it within a tokio runtime.
    ///
    /// # Errors
    /// `Invalid` and others for a view that does not fit the data set.
    pub async fn open(source: Arc<dyn Source>, request: FilmRequest) -> Result<Self> {
        let dataset = source.describe().await?;
        Self::of(source, dataset, request).await
    }

    /// Opens a film as [`open`](Self::open) does, for data that are already described by `dataset`.
    pub(crate) async fn of(
        source: Arc<dyn Source>,
        dataset: Arc<Dataset>,
        request: FilmRequest,
    ) -> Result<Self> {
        let FilmRequest { views, choice, range, size, resources, slabs, rank_group, pixels } = request;
        check_memory(resources.memory_bytes)?;
        dataset.check()?;
        for view in &views {
            view.check()?;
            check(view, &dataset)?;
            check_ranks(view, rank_group.as_ref(), slabs.as_ref())?;
        }
        let is_film = views.len() > 1;
        let views: Vec<View> =
            views.into_iter().map(|view| with_camera(view, &dataset, size)).collect::<Result<_>>()?;
        let mut views = views.into_iter();
        let first = views.next().ok_or_else(|| Error::invalid("there is no view to draw"))?;
        let (launcher, resources, workers) = match rank_group {
            None => (None, resources, JoinSet::new()),
            Some(rank_group) => {
                let LaunchedRanks { ranks, resources, workers } = rank_group.launch(&source, resources)?;
                (Some(Launcher::new(ranks)?), resources, workers)
            }
        };
        let shared =
            SharedState::new(Arc::clone(&dataset), source, resources, first.clone(), Arc::new(|_| None));
        let shared = Arc::new(shared.with_launcher(launcher));
        let mut feed_task = JoinSet::new();
        let fed = Arc::clone(&shared);
        feed_task.spawn(async move { fed.feed.run().await });
        // The second participant exists from the start, so that all pictures have the same share of the
        // memory.
        let next_participant = is_film
            .then(|| {
                let volume = volume_of(&first, &dataset)?;
                Ok::<_, Error>((SECOND, shared.volumes.subscribe(SECOND, &dataset, volume)?))
            })
            .transpose()?;
        let mut film = Self {
            shared,
            views,
            choice,
            range,
            size,
            pixels,
            planned_pictures: 0,
            chosen: BTreeMap::new(),
            chosen_colors: BTreeMap::new(),
            chosen_layers: BTreeMap::new(),
            pending: None,
            slabs,
            next_participant,
            _feed_task: feed_task,
            _workers: workers,
        };
        let subscription = film.load_coarsest(&first).await?;
        film.pending = Some(film.plan_picture(FIRST, first, subscription, None).await?);
        Ok(film)
    }

    /// Waits at rank 0 for the coarsest level before the volume is divided, if several ranks draw. By this
    /// level rank 0 estimates the work and chooses a transfer function.
    async fn load_coarsest(&mut self, first: &View) -> Result<Option<VolumeSubscription>> {
        let Some(launcher) = self.shared.launcher.clone() else { return Ok(None) };
        let (shared, view, size) = (Arc::clone(&self.shared), Arc::new(first.clone()), self.size);
        let planning = move || {
            let mut view_plan = ViewPlan::prepare(
                &shared.volumes,
                shared.dataset(),
                FIRST,
                view,
                size,
                None,
                launcher.demand_limit(),
            )?;
            let (own, color_by) = coarsest_demand(&view_plan);
            view_plan.demand = Arc::new(own);
            if let Some((color_by, demand)) = view_plan.color_by.as_mut().zip(color_by) {
                color_by.demand = Arc::new(demand);
            }
            view_plan.request_blocks(&shared.feed, FIRST);
            Ok::<_, Error>(view_plan)
        };
        let view_plan = blocking(planning).await??;
        all_blocks(&self.shared, None, &view_plan, &mut |_, _| {}).await?;
        self.filled(first, &view_plan)?;
        Ok(Some(view_plan.subscription))
    }

    /// Draws the next picture with all its blocks: equal requests over equal data give equal pictures.
    /// Returns `None` after the last picture. Calls `progress` with the numbers of blocks that are loaded and
    /// wanted.
    ///
    /// # Errors
    /// Error of a block that cannot be loaded; those of drawing.
    ///
    /// # Cancel safety
    /// Dropping the future loses the picture and ends the film.
    pub async fn next(&mut self, mut progress: impl FnMut(u64, u64)) -> Result<Option<Still>> {
        let Some(now) = self.pending.take() else { return Ok(None) };
        all_blocks(&self.shared, self.shared.launcher.as_ref(), &now.view_plan, &mut progress).await?;
        if let Some(view) = self.views.next() {
            let (participant, subscription) = self
                .next_participant
                .take()
                .ok_or_else(|| Error::internal("a film lacks its second participant"))?;
            let cutting = now.slabs.map(|slabs| slabs.cutting);
            self.pending = Some(self.plan_picture(participant, view, Some(subscription), cutting).await?);
        }
        let still = self.draw(&now).await?;
        self.next_participant = Some((now.view_plan.subscription.who(), now.view_plan.subscription));
        Ok(Some(still))
    }

    /// Loads the blocks of the next picture, which is then drawn in rows, on the CPU; its size may exceed that of pictures
    /// that are held as a whole. Ends the film. Returns `None` if it has ended.
    ///
    /// # Errors
    /// Error of a block that cannot be loaded; `Unsupported` for several ranks and for slabs.
    ///
    /// # Cancel safety
    /// Dropping the future ends the film.
    pub async fn next_in_rows(&mut self, mut progress: impl FnMut(u64, u64)) -> Result<Option<RowPicture>> {
        if self.shared.launcher.is_some() || self.slabs.is_some() {
            return Err(Error::unsupported("a picture in rows is drawn by one rank, without slabs"));
        }
        let Some(PendingPicture { view_plan, view, .. }) = self.pending.take() else { return Ok(None) };
        self.views = Vec::new().into_iter();
        all_blocks(&self.shared, None, &view_plan, &mut progress).await?;
        let view = self.filled(&view, &view_plan)?;
        let (scene, boxes) = self.scene(&view, &view_plan).await?;
        Ok(Some(RowPicture::new(Arc::clone(&self.shared), view_plan, view, scene, boxes)))
    }

    /// Plans a picture and its slabs for a participant, and requests their blocks. The previous picture's
    /// slabs were cut along `before`.
    async fn plan_picture(
        &mut self,
        participant: ParticipantId,
        view: View,
        old: Option<VolumeSubscription>,
        before: Option<Cutting>,
    ) -> Result<PendingPicture> {
        self.planned_pictures += 1;
        let Some(film_slabs) = self.slabs else {
            let view_plan = self.plan_view(participant, view.clone(), self.size, old).await?;
            return Ok(PendingPicture { view_plan, view, slabs: None });
        };
        let volume = volume_of(&view, &self.shared.dataset())?;
        let before = match before {
            Some(Cutting::Axis(axis)) => Some(axis),
            Some(Cutting::Planes) | None => None,
        };
        let request = film_slabs.request(&volume, camera_of(&view, &volume)?, before);
        request.check(self.size)?;
        let (camera, size) = request.reach(self.size);
        let wider = View { camera: Some(shared_camera(&camera)), ..view.clone() };
        let view_plan = self.plan_view(participant, wider, size, old).await?;
        Ok(PendingPicture { view_plan, view, slabs: Some(request) })
    }

    /// Plans a view for a participant, and requests its blocks.
    async fn plan_view(
        &self,
        participant: ParticipantId,
        mut view: View,
        size: ImageSize,
        old: Option<VolumeSubscription>,
    ) -> Result<ViewPlan> {
        // With several ranks it is used to estimate the work.
        let chosen = self.chosen.get(&FilmValues::of_view(&view));
        view.transfer = view.transfer.or_else(|| chosen.cloned());
        let (shared, number) = (Arc::clone(&self.shared), self.planned_pictures);
        let planning = move || match &shared.launcher {
            Some(launcher) => {
                let participants = (participant, Some(other_participant(participant)));
                launcher.plan_view(&shared, participants, (number, Arc::new(view)), size, old)
            }
            None => {
                let limit = DemandLimit::Memory { hosts: 1 };
                let (volumes, dataset) = (&shared.volumes, shared.dataset());
                let mut view_plan =
                    ViewPlan::prepare(volumes, dataset, participant, Arc::new(view), size, old, limit)?;
                if shared.painter.is_background() {
                    view_plan.lower_priorities();
                }
                view_plan.request_blocks(&shared.feed, participant);
                Ok(view_plan)
            }
        };
        blocking(planning).await?
    }

    /// Returns the view with its missing transfer function and colors set to those chosen for the first
    /// picture of the same values.
    fn filled(&mut self, view: &View, view_plan: &ViewPlan) -> Result<View> {
        let mut view = view.clone();
        // With colors by another array, the requested color map applies to that array.
        let color_by_map =
            self.choice.as_ref().and_then(TransferChoice::map).filter(|_| view.color_by.is_some());
        let choice = self.choice.as_ref().filter(|_| color_by_map.is_none());
        let values = FilmValues::of_view(&view);
        let transfer = match (&view.transfer, self.chosen.get(&values)) {
            // Already chosen for an earlier picture.
            (None, Some(chosen)) => chosen.clone(),
            _ => chosen_transfer(&view, &view_plan.subscription.volume, choice, self.range)?,
        };
        // Colors chosen from a picture without any value would not fit the next ones.
        if view_plan.subscription.volume.voxels_seen() > 0.0 {
            self.chosen.entry(values).or_insert_with(|| transfer.clone());
        }
        view.transfer = Some(transfer);
        view.shading = Some(view_plan.is_shaded(&view)?);
        if let Some((by, color_by)) = view.color_by.as_mut().zip(view_plan.subscription.color_by.as_ref()) {
            let values = FilmValues::of_colors(by);
            if let Some(chosen) = self.chosen_colors.get(&values) {
                by.range = by.range.or(chosen.range);
                by.map = by.map.take().or_else(|| chosen.map.clone());
            }
            *by = chosen_colors(by, &color_by.volume, color_by_map);
            self.chosen_colors.entry(values).or_insert_with(|| by.clone());
        }
        for (layer, subscription) in view_plan.layers.iter().zip(&view_plan.subscription.layers) {
            let own = &view.layers[layer.layer];
            let values = FilmValues::of_layer(own, &view, &view_plan.dataset);
            let chosen = self.chosen_layers.entry((values, own.labels));
            let own = &mut view.layers[layer.layer];
            if own.transfer.is_none() && (subscription.volume.voxels_seen() > 0.0) {
                let transfer = chosen.or_insert_with(|| chosen_layer_transfer(&subscription.volume));
                own.transfer = Some(transfer.clone());
            }
        }
        Ok(view)
    }

    /// Returns the scene of a filled view, with its grids and its geometry. Geometry that cannot be drawn is an error.
    async fn scene(&self, view: &View, view_plan: &ViewPlan) -> Result<(Scene, Arc<GridBoxes>)> {
        let boxes = self.shared.boxes(view).await?;
        let (camera, size) = (camera_of(view, &view_plan.subscription.volume.view)?, self.size);
        let mut scene = Scene { wires: Arc::clone(&boxes.wires), camera, size, ..view_plan.scene(view)? };
        let (geometry, errors) = self.shared.geometry.of(view).await;
        if let Some(error) = errors.into_iter().next() {
            return Err(error);
        }
        scene.geometry = geometry.for_scene(&scene, &view_plan.dataset, view_plan.array())?;
        Ok((scene, boxes))
    }

    async fn draw(&mut self, PendingPicture { view_plan, view, slabs }: &PendingPicture) -> Result<Still> {
        let drawable = view_plan.subscription.drawable();
        let view = self.filled(view, view_plan)?;
        let (scene, boxes) = self.scene(&view, view_plan).await?;
        let cancel = CancelOnDrop::default();
        let flag: Cancel = cancel.flag();
        let (painter, launcher) = (Arc::clone(&self.shared.painter), self.shared.launcher.clone());
        let (participant, pixels, slabs, shown) =
            (view_plan.subscription.who(), self.pixels, *slabs, view.clone());
        let drawing = move || {
            let frame = match launcher {
                Some(launcher) => launcher.finish(participant, &drawable, (&scene, &shown), pixels, &flag)?,
                None => drawable.cast(&painter, &scene, shown.stereo, MissingBlocks::Complete, &flag)?,
            };
            let slabs = slabs.map(|request| drawable.cast_slabs(&scene, &request, &flag)).transpose()?;
            Ok::<_, Error>((frame, slabs))
        };
        let (frame, slabs) = blocking(drawing).await??;
        let (fidelity, values) = drawn_facts(&self.shared, view_plan, &view, frame.fidelity, &boxes);
        Ok(Still { image: frame.image, fidelity, view, slabs, values })
    }
}

/// Returns the badge of a finished picture, and statistics of the values that it shows.
pub(crate) fn drawn_facts(
    shared: &SharedState,
    view_plan: &ViewPlan,
    view: &View,
    drawn: Fidelity,
    boxes: &GridBoxes,
) -> (FidelityBadge, Option<ValueSummary>) {
    let block_status = shared.feed.block_status(view_plan.subscription.who());
    let mut facts = PictureFacts::of(view_plan, block_status, Some(drawn));
    facts.is_lossless = true;
    let mut fidelity = facts.fidelity();
    if let Some(omitted) = &boxes.omitted {
        fidelity.text = format!("{} {omitted}", fidelity.text);
    }
    let values = view_plan.subscription.volume.values(DrawnRange::of(view));
    if let Some(note) = values.as_ref().and_then(|values| values.note.as_ref()) {
        fidelity.text = format!("{} {}", fidelity.text, capitalized(note));
    }
    (fidelity, values)
}

/// Returns text with its first letter in upper case.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Checks that the ranks of a film can draw a view, and that slabs can be made of it if requested.
fn check_ranks(view: &View, rank_group: Option<&RankGroup>, slabs: Option<&FilmSlabs>) -> Result<()> {
    if slabs.is_some() && view.stereo.is_some() {
        return Err(Error::unsupported("slabs cannot be made of a stereo pair; drop `slabs` or `stereo`"));
    }
    if rank_group.is_some() && slabs.is_some() {
        return Err(Error::unsupported(
            "several ranks cannot cast slabs: render them with one process, without `--ranks` or `mpirun`",
        ));
    }
    if rank_group.is_some() && view.layers.iter().any(ViewLayer::is_shown) {
        return Err(Error::unsupported(
            "several ranks cannot draw layers: render them with one process, without `--ranks` or `mpirun`",
        ));
    }
    if rank_group.is_some() && view.grids {
        return Err(Error::unsupported(
            "several ranks cannot draw grids as lines: render them with one process, without `--ranks` or `mpirun`",
        ));
    }
    Ok(())
}

/// Adds a camera that shows the whole volume to a view that has none.
fn with_camera(mut view: View, dataset: &Dataset, size: ImageSize) -> Result<View> {
    if view.camera.is_none() {
        view.camera = Some(shared_camera(&camera_in(&view, dataset, size)?));
    }
    Ok(view)
}

/// Waits until all blocks are loaded: at all ranks of a `launcher`, else in this process.
async fn all_blocks(
    shared: &Arc<SharedState>,
    launcher: Option<&Arc<Launcher>>,
    view_plan: &ViewPlan,
    progress: &mut impl FnMut(u64, u64),
) -> Result<()> {
    let mut arrivals = view_plan.subscription.volume.arrivals();
    let (who, total) = (view_plan.subscription.who(), view_plan.blocks_total());
    loop {
        let (lacking, failed_blocks) = match launcher {
            None => shared.feed.block_status(who),
            Some(launcher) => {
                let (launcher, shared) = (Arc::clone(launcher), Arc::clone(shared));
                blocking(move || launcher.block_status(&shared, who)).await??.within(total)
            }
        };
        progress(total - lacking.min(total), total);
        if lacking == 0 {
            return Ok(());
        }
        if failed_blocks.failed > 0 {
            let reason =
                failed_blocks.reason.unwrap_or_else(|| Error::internal("a block failed without a reason"));
            return Err(
                reason.context(format!("{} of {total} blocks cannot be loaded", failed_blocks.failed))
            );
        }
        if launcher.is_some() {
            tokio::time::sleep(RANK_POLL_INTERVAL).await;
        } else if arrivals.changed().await.is_err() {
            return Err(Error::internal("the volume was dropped while its blocks were awaited"));
        }
    }
}

/// Returns the transfer function of a view, or a default for the loaded blocks, with what was chosen.
fn chosen_transfer(
    view: &View,
    volume: &Volume,
    choice: Option<&TransferChoice>,
    range: ColorRange,
) -> Result<Transfer> {
    let sensible = || volume.sensible_transfer().map(|(_, transfer)| transfer);
    let chosen = || match range {
        ColorRange::Usual => sensible(),
        ColorRange::Full => volume.full_transfer(),
        ColorRange::Of(range) => sensible().map(|transfer| transfer.spread_over(range)),
    };
    let transfer = view.transfer.clone().or_else(chosen).unwrap_or_else(any_transfer);
    let Some(choice) = choice else { return Ok(transfer) };
    let transfer = volume.chosen_transfer(choice, transfer)?;
    Ok(match (choice, range) {
        // A preset has a range of its own.
        (TransferChoice::Preset(_), ColorRange::Of(range)) => transfer.spread_over(range),
        _ => transfer,
    })
}

/// Returns the transfer function for a layer without one.
fn chosen_layer_transfer(volume: &Volume) -> Transfer {
    let sensible = volume.sensible_transfer().map_or_else(any_transfer, |(_, transfer)| transfer);
    sensible_layer_transfer(sensible, volume.view.meaning)
}

/// Fills in range and color map of colors by another array where they are omitted.
fn chosen_colors(by: &ColorBy, color_by: &Volume, color_map: Option<&str>) -> ColorBy {
    let sensible = color_by.sensible_transfer().map_or_else(any_transfer, |(_, transfer)| transfer);
    let map = color_map.map(str::to_owned).or_else(|| by.map.clone());
    ColorBy { range: by.range.or(Some(sensible.range)), map: map.or(Some(sensible.map)), ..by.clone() }
}
