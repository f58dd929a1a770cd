//! One finished picture without anybody looking: what `corridor render` makes.

use std::sync::Arc;

use array::{Dataset, Error, Result, Source};
use gpu::Patience;
use render::{Cancel, Image, ImageSize, Quality, Scene};
use session::{ParticipantId, Transfer, Truth, View};

use crate::aim::Aim;
use crate::frame_loop::{CancelOnDrop, blocking};
use crate::host::{Host, check};
use crate::live::check_memory;
use crate::painter::Means;
use crate::picture::{
    any_transfer, camera_of, mode_of, shared_camera, slices_of, surfaces_of, transfer_of, volume_of,
};
use crate::truth::Facts;

/// Who looks, where nobody does.
pub(crate) const NOBODY: ParticipantId = ParticipantId(0);

/// What is to be drawn.
#[derive(Clone, Debug)]
pub struct StillRequest {
    /// What is seen; `None` for the first volume there is. Camera and transfer function may be left open.
    pub view: Option<View>,
    /// The name of a colour map, instead of the one in the view or the one that is chosen.
    pub colour_map: Option<String>,
    /// Pixels.
    pub size: ImageSize,
    /// What blocks may cost, and what draws.
    pub means: Means,
}

/// A finished picture.
#[derive(Clone, Debug)]
pub struct Still {
    /// Full precision; see [`Image::to_png`].
    pub image: Image,
    /// What it shows.
    pub truth: Truth,
    /// The view with everything filled in that was left open.
    pub view: View,
}

/// Draws one picture with every block it wants: the same request over the same data gives the same picture.
/// `progress` hears how many blocks are there and how many are wanted.
///
/// Call it within a tokio runtime.
///
/// # Errors
/// What does not fit in the view, and the reason why a block cannot be had.
///
/// # Cancel safety
/// Dropping it withdraws every want and stops the drawing.
pub async fn render_still(
    source: Arc<dyn Source>,
    request: StillRequest,
    mut progress: impl FnMut(u64, u64),
) -> Result<Still> {
    check_memory(request.means.memory_bytes)?;
    let dataset = source.describe().await?;
    dataset.check()?;
    let view = request.view.map_or_else(|| View::first_of(&dataset), Ok)?;
    view.check()?;
    check(&view, &dataset)?;
    let view = with_camera(view, &dataset, request.size)?;
    let host =
        Arc::new(Host::new(Arc::clone(&dataset), source, request.means, view.clone(), Arc::new(|_| None)));
    let aims = Arc::clone(&host);
    let aim = blocking(move || Aim::new(&aims, NOBODY, Arc::new(view), request.size, None)).await??;
    tokio::select! {
        () = host.feed.run() => return Err(Error::internal("the feed ended")),
        arrived = all_blocks(&host, &aim, &mut progress) => arrived?,
    }
    draw(&host, aim, request.colour_map).await
}

/// The same view with a camera; one that sees the whole volume in a picture of this size where it has none.
pub(crate) fn with_camera(mut view: View, dataset: &Dataset, size: ImageSize) -> Result<View> {
    if view.camera.is_none() {
        let camera = camera_of(&view, &*volume_of(&view, dataset)?)?;
        view.camera = Some(shared_camera(&camera.widened(size)));
    }
    Ok(view)
}

/// Waits until every block is there.
pub(crate) async fn all_blocks(host: &Host, aim: &Aim, progress: &mut impl FnMut(u64, u64)) -> Result<()> {
    let mut arrivals = aim.watching.volume.arrivals();
    let total = aim.demand.blocks.len() as u64;
    loop {
        let (lacking, trouble) = host.feed.outlook(NOBODY);
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

async fn draw(host: &Host, aim: Aim, colour_map: Option<String>) -> Result<Still> {
    let volume = Arc::clone(&aim.watching.volume);
    let transfer = chosen_transfer(&aim, colour_map);
    let scene = scene_of(&aim, &transfer)?;
    let view = View { transfer: Some(transfer), ..(*aim.view).clone() };
    let cancel = CancelOnDrop::default();
    let flag: Cancel = cancel.flag();
    let painter = Arc::clone(&host.painter);
    let drawing = move || volume.cast(&painter, &scene, Patience::Complete, &flag);
    let frame = blocking(drawing).await??;
    let mut facts = Facts::of(&aim, host.feed.outlook(NOBODY), Some(frame.truth));
    facts.is_lossless = true;
    Ok(Still { image: frame.image, truth: facts.truth(), view })
}

/// The transfer function of a view, or a sensible one for what is here, in the colours that were asked for.
pub(crate) fn chosen_transfer(aim: &Aim, colour_map: Option<String>) -> Transfer {
    let chosen =
        || aim.watching.volume.sensible_transfer().map_or_else(any_transfer, |(_, transfer)| transfer);
    let mut transfer = aim.view.transfer.clone().unwrap_or_else(chosen);
    if let Some(map) = colour_map {
        transfer.map = map;
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
        mode: mode_of(&aim.view),
        is_lit: aim.view.shading,
        size: aim.size,
        clip: aim.portion.clip,
        quality: Quality::STILL,
        finest_level: aim.demand.wanted,
    })
}
