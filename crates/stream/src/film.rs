//! Pictures of one view after another without anybody looking: stills and films.
//!
//! While one picture is drawn the blocks of the next one come, so that a film of N pictures takes about as long as the slower of
//! fetching and drawing N times, and the other once. Two places take turns, as two participants who look in turn.

use std::sync::Arc;

use array::{Dataset, Error, Result, Source};
use gpu::Patience;
use render::{Cancel, Cutting, ImageSize, Quality, Scene, SlabRequest};
use session::{ParticipantId, Transfer, View};
use tokio::task::JoinSet;

use crate::aim::Aim;
use crate::frame_loop::{CancelOnDrop, blocking};
use crate::host::{Host, check};
use crate::live::check_memory;
use crate::painter::Means;
use crate::picture::{
    any_transfer, camera_in, camera_of, mode_of, shared_camera, slices_of, surfaces_of, transfer_of,
    volume_of,
};
use crate::slabs::SlabWish;
use crate::still::Still;
use crate::truth::Facts;
use crate::volume::{Volume, Watching};

/// What is to be drawn.
#[derive(Clone, Debug)]
pub struct FilmRequest {
    /// One view for each picture. Camera and transfer function may be left open; a transfer function is then chosen for the
    /// first picture and kept.
    pub views: Vec<View>,
    /// The name of a colour map, instead of those in the views or the one that is chosen.
    pub colour_map: Option<String>,
    /// Pixels.
    pub size: ImageSize,
    /// What blocks may cost, and what draws.
    pub means: Means,
    /// Slabs beside each picture: not of stereo pairs, nor beside isosurfaces, slices and extreme values.
    pub slabs: Option<SlabWish>,
}

/// A picture whose blocks come.
struct Coming {
    /// Reaches beyond the picture where slabs do.
    aim: Aim,
    /// What the picture shows.
    view: View,
    slabs: Option<SlabRequest>,
}

/// Pictures under way. Dropping it withdraws every want and stops the drawing.
pub struct Film {
    host: Arc<Host>,
    views: std::vec::IntoIter<View>,
    colour_map: Option<String>,
    size: ImageSize,
    /// The transfer function that was chosen for the first picture.
    chosen: Option<Transfer>,
    coming: Option<Coming>,
    slabs: Option<SlabWish>,
    /// The other place, which looks at the last picture, or for now at the first one.
    other: Option<(ParticipantId, Watching)>,
    /// Moves blocks.
    _feeding: JoinSet<()>,
}

impl Film {
    /// Makes everything ready and asks for the first picture's blocks.
    ///
    /// Call it within a tokio runtime.
    ///
    /// # Errors
    /// What does not fit in a view.
    pub async fn open(source: Arc<dyn Source>, request: FilmRequest) -> Result<Self> {
        let dataset = source.describe().await?;
        Self::of(source, dataset, request).await
    }

    /// The same of data that were described.
    pub(crate) async fn of(
        source: Arc<dyn Source>,
        dataset: Arc<Dataset>,
        request: FilmRequest,
    ) -> Result<Self> {
        let FilmRequest { views, colour_map, size, means, slabs } = request;
        check_memory(means.memory_bytes)?;
        dataset.check()?;
        for view in &views {
            view.check()?;
            check(view, &dataset)?;
            if slabs.is_some() && view.stereo.is_some() {
                return Err(Error::unsupported(
                    "expected slabs beside a picture for one eye, found a stereo pair",
                ));
            }
        }
        let is_film = views.len() > 1;
        let views: Vec<View> =
            views.into_iter().map(|view| with_camera(view, &dataset, size)).collect::<Result<_>>()?;
        let mut views = views.into_iter();
        let first = views.next().ok_or_else(|| Error::invalid("expected a view to draw, found none"))?;
        let host =
            Arc::new(Host::new(Arc::clone(&dataset), source, means, first.clone(), Arc::new(|_| None)));
        let mut feeding = JoinSet::new();
        let fed = Arc::clone(&host);
        feeding.spawn(async move { fed.feed.run().await });
        // The second place is there from the start, so that all pictures have the same share of the memory.
        let other = is_film
            .then(|| {
                let volume = volume_of(&first, &dataset)?;
                let place = ParticipantId(1);
                Ok::<_, Error>((place, host.volumes.look(place, &dataset, volume)?))
            })
            .transpose()?;
        let mut film = Self {
            host,
            views,
            colour_map,
            size,
            chosen: None,
            coming: None,
            slabs,
            other,
            _feeding: feeding,
        };
        film.coming = Some(film.aimed(ParticipantId(0), first, None, None).await?);
        Ok(film)
    }

    /// The next picture, with every block it wants: the same request over the same data gives the same pictures. `None`
    /// after the last one. `progress` hears how many of its blocks are there and how many are wanted.
    ///
    /// # Errors
    /// The reason why a block cannot be had.
    ///
    /// # Cancel safety
    /// A picture that is not waited for is lost; the film ends there.
    pub async fn next(&mut self, mut progress: impl FnMut(u64, u64)) -> Result<Option<Still>> {
        let Some(now) = self.coming.take() else { return Ok(None) };
        all_blocks(&self.host, &now.aim, &mut progress).await?;
        if let Some(view) = self.views.next() {
            let (place, watching) =
                self.other.take().ok_or_else(|| Error::internal("expected a second place in a film"))?;
            let cutting = now.slabs.map(|slabs| slabs.cutting);
            self.coming = Some(self.aimed(place, view, Some(watching), cutting).await?);
        }
        let still = self.draw(&now).await?;
        self.other = Some((now.aim.watching.who(), now.aim.watching));
        Ok(Some(still))
    }

    /// Aims a place at a view and the slabs beside it, which follow others cut along `before`, and wishes for their blocks.
    async fn aimed(
        &self,
        place: ParticipantId,
        view: View,
        old: Option<Watching>,
        before: Option<Cutting>,
    ) -> Result<Coming> {
        let Some(wish) = self.slabs else {
            let aim = aimed(&self.host, place, view.clone(), self.size, old).await?;
            return Ok(Coming { aim, view, slabs: None });
        };
        let volume = volume_of(&view, &self.host.dataset())?;
        let before = match before {
            Some(Cutting::Axis(axis)) => Some(axis),
            Some(Cutting::Planes) | None => None,
        };
        let request = wish.request(&volume, camera_of(&view, &volume)?, before);
        request.check(self.size)?;
        let (camera, size) = request.reach(self.size);
        let wider = View { camera: Some(shared_camera(&camera)), ..view.clone() };
        let aim = aimed(&self.host, place, wider, size, old).await?;
        Ok(Coming { aim, view, slabs: Some(request) })
    }

    async fn draw(&mut self, Coming { aim, view, slabs }: &Coming) -> Result<Still> {
        let volume = Arc::clone(&aim.watching.volume);
        let mut view = view.clone();
        // What was chosen for the first picture holds for those that leave it open.
        view.transfer = view.transfer.or_else(|| self.chosen.clone());
        let transfer = chosen_transfer(&view, &volume, self.colour_map.as_deref());
        self.chosen.get_or_insert_with(|| transfer.clone());
        let boxes = self.host.boxes(&view).await?;
        let (camera, size) = (camera_of(&view, &volume.view)?, self.size);
        let scene = Scene { wires: Arc::clone(&boxes.wires), camera, size, ..scene_of(aim, &transfer)? };
        view.transfer = Some(transfer);
        let cancel = CancelOnDrop::default();
        let flag: Cancel = cancel.flag();
        let painter = Arc::clone(&self.host.painter);
        let parallax = view.stereo;
        let slabs = *slabs;
        let drawing = move || {
            let frame = volume.cast(&painter, &scene, parallax, Patience::Complete, &flag)?;
            let slabs = slabs.map(|request| volume.cast_slabs(&scene, &request, &flag)).transpose()?;
            Ok::<_, Error>((frame, slabs))
        };
        let (frame, slabs) = blocking(drawing).await??;
        let outlook = self.host.feed.outlook(aim.watching.who());
        let mut facts = Facts::of(aim, outlook, Some(frame.truth));
        facts.is_lossless = true;
        let mut truth = facts.truth();
        if let Some(lacks) = &boxes.lacks {
            truth.text = format!("{} {lacks}", truth.text);
        }
        Ok(Still { image: frame.image, truth, view, slabs })
    }
}

/// Aims a place at a view, and wishes for its blocks.
async fn aimed(
    host: &Arc<Host>,
    place: ParticipantId,
    view: View,
    size: ImageSize,
    old: Option<Watching>,
) -> Result<Aim> {
    let host = Arc::clone(host);
    blocking(move || Aim::new(&host, place, Arc::new(view), size, old)).await?
}

/// The same view with a camera; one that sees the whole volume in a picture of this size where it has none.
pub(crate) fn with_camera(mut view: View, dataset: &Dataset, size: ImageSize) -> Result<View> {
    if view.camera.is_none() {
        view.camera = Some(shared_camera(&camera_in(&view, dataset, size)?));
    }
    Ok(view)
}

/// Waits until every block is there.
pub(crate) async fn all_blocks(host: &Host, aim: &Aim, progress: &mut impl FnMut(u64, u64)) -> Result<()> {
    let mut arrivals = aim.watching.volume.arrivals();
    let total = aim.demand.blocks.len() as u64;
    loop {
        let (lacking, trouble) = host.feed.outlook(aim.watching.who());
        progress(total - lacking.min(total), total);
        if lacking == 0 {
            return Ok(());
        }
        if trouble.failed > 0 {
            let reason = trouble.reason.unwrap_or_else(|| Error::internal("a block failed without a reason"));
            return Err(reason.context(format!("{} of {total} blocks cannot be had", trouble.failed)));
        }
        if arrivals.changed().await.is_err() {
            return Err(Error::internal("the volume went away"));
        }
    }
}

/// The transfer function of a view, or a sensible one for what is here, in the colours that were asked for.
pub(crate) fn chosen_transfer(view: &View, volume: &Volume, colour_map: Option<&str>) -> Transfer {
    let sensible = || volume.sensible_transfer().map_or_else(any_transfer, |(_, transfer)| transfer);
    let mut transfer = view.transfer.clone().unwrap_or_else(sensible);
    if let Some(map) = colour_map {
        map.clone_into(&mut transfer.map);
    }
    transfer
}

/// What is drawn for an aim with a transfer function.
pub(crate) fn scene_of(aim: &Aim, transfer: &Transfer) -> Result<Scene> {
    Ok(Scene {
        view: Arc::clone(&aim.watching.volume.view),
        camera: aim.camera,
        transfer: transfer_of(transfer)?,
        surfaces: surfaces_of(&aim.view),
        slices: slices_of(&aim.view),
        wires: Arc::default(),
        mode: mode_of(&aim.view),
        is_lit: aim.view.shading,
        size: aim.size,
        clip: aim.portion.clip,
        quality: Quality::STILL,
        finest_level: aim.demand.wanted,
    })
}
