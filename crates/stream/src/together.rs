//! One finished picture by several ranks: what `corridor render` makes under `mpirun`, or with `--ranks`.
//!
//! Each rank fetches the blocks of its share and no others, and finishes its part of the image. Rank 0 looks at the
//! coarsest level first, and from that says what is drawn, who draws what, and by which transfer function.

use std::sync::Arc;

use array::{Error, Result, Source};
use compose::{Balance, Communicator, Composed, MAX_THREADS, Method, Schedule, Tree, broadcast};
use futures::future::try_join_all;
use render::{Cancel, Demand, Image, ImageSize, Rect, Scene};
use serde::{Deserialize, Serialize};
use session::{ParticipantId, Transfer, Truth, View};

use crate::StillRequest;
use crate::aim::{Aim, Reach};
use crate::crew::fit;
use crate::film::{all_blocks, chosen_transfer, scene_of, with_camera};
use crate::frame_loop::{CancelOnDrop, blocking};
use crate::host::{Host, check};
use crate::live::{MIN_MEMORY_BYTES, check_memory};
use crate::painter::Means;

use crate::truth::Facts;

/// Who looks, where nobody does.
const NOBODY: ParticipantId = ParticipantId(0);
/// Bytes before the pixels of a part of an image: its rectangle.
const HEAD_BYTES: usize = 4 * size_of::<u32>();

/// A finished picture, put together of all ranks' parts.
#[derive(Clone, Debug)]
pub struct Finished {
    /// 8-bit RGB over the view's background, row by row; see [`render::png_of_rgb8`].
    pub rgb: Vec<u8>,
    /// What it shows.
    pub truth: Truth,
}

/// What rank 0 says before a picture.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    wanted: u8,
    transfer: Transfer,
    tree: Vec<u8>,
}

/// Draws one picture by `count` ranks in this process, each with its part of the memory. The picture is that of
/// [`render_still`](crate::render_still) but for rounding.
///
/// # Errors
/// Those of [`render_together`]; `Invalid` for more ranks than [`MAX_THREADS`], or than have enough memory.
///
/// # Cancel safety
/// As [`render_still`](crate::render_still).
pub async fn render_by_threads(
    source: Arc<dyn Source>,
    request: StillRequest,
    count: usize,
    method: Method,
    mut progress: impl FnMut(u64, u64),
) -> Result<Finished> {
    let most = (request.means.memory_bytes / MIN_MEMORY_BYTES).min(MAX_THREADS as u64);
    if count == 0 || count as u64 > most {
        return Err(Error::invalid(format!(
            "expected 1 to {most} ranks with this much memory, found {count}: each needs {MIN_MEMORY_BYTES} bytes"
        )));
    }
    let mut heard: Vec<Box<dyn FnMut(u64, u64) + '_>> = vec![Box::new(&mut progress)];
    heard.resize_with(count, || Box::new(|_, _| {}));
    let drawing = compose::threads(count)?.into_iter().zip(heard).map(|(rank, progress)| {
        let means =
            Means { memory_bytes: request.means.memory_bytes / count as u64, ..request.means.clone() };
        let request = StillRequest { means, ..request.clone() };
        render_together(Arc::clone(&source), request, Arc::new(rank), method, progress)
    });
    let mut finished = try_join_all(drawing).await?.into_iter().flatten();
    finished.next().ok_or_else(|| Error::internal("no rank has the picture"))
}

/// Draws one picture with other ranks, which make the same call for the same data and view; only rank 0 gets it.
/// `progress` hears how many blocks of this rank's are there and how many are wanted.
///
/// Call it within a tokio runtime.
///
/// # Errors
/// What does not fit in the view, the reason why a block cannot be had, and those of the communicator.
///
/// # Cancel safety
/// Dropping it withdraws every want and stops the drawing; other ranks then wait in vain until they hear that this one
/// is gone.
pub async fn render_together(
    source: Arc<dyn Source>,
    request: StillRequest,
    ranks: Arc<dyn Communicator>,
    method: Method,
    mut progress: impl FnMut(u64, u64),
) -> Result<Option<Finished>> {
    check_memory(request.means.memory_bytes)?;
    let dataset = source.describe().await?;
    dataset.check()?;
    let view = request.view.map_or_else(|| View::first_of(&dataset), Ok)?;
    view.check()?;
    if view.stereo.is_some() {
        return Err(Error::unsupported(
            "expected one camera for a picture by several ranks, found a stereo pair",
        ));
    }
    if view.grids {
        return Err(Error::unsupported("expected no grids as lines in a picture by several ranks"));
    }
    check(&view, &dataset)?;
    let view = with_camera(view, &dataset, request.size)?;
    let host = Host::new(Arc::clone(&dataset), source, request.means, view.clone(), Arc::new(|_| None));
    let crew = Crew { host: Arc::new(host), ranks, method };
    tokio::select! {
        () = crew.host.feed.run() => Err(Error::internal("the feed ended")),
        finished = crew.picture(view, request.size, request.colour_map, &mut progress) => finished,
    }
}

/// One rank at work.
struct Crew {
    host: Arc<Host>,
    ranks: Arc<dyn Communicator>,
    method: Method,
}

impl Crew {
    async fn picture(
        &self,
        view: View,
        size: ImageSize,
        colour_map: Option<String>,
        progress: &mut impl FnMut(u64, u64),
    ) -> Result<Option<Finished>> {
        let (host, view) = (Arc::clone(&self.host), Arc::new(view));
        let reach = Reach::Memory { hosts: self.ranks.size() };
        let mut aim = blocking(move || Aim::look(&host, NOBODY, view, size, None, reach)).await??;
        let mut plan = Vec::new();
        if self.ranks.rank() == 0 {
            (aim, plan) = self.plan(aim, colour_map).await?;
        }
        let ranks = Arc::clone(&self.ranks);
        let plan = blocking(move || broadcast(&*ranks, plan)).await??;
        let plan: Plan = serde_json::from_slice(&plan)
            .map_err(|e| Error::corrupt(format!("expected a plan for a picture: {e}")))?;
        let tree = Tree::from_bytes(&plan.tree, self.ranks.size())?;
        let whole = self.demand(&aim, Some(plan.wanted), usize::MAX).await?;
        aim.demand = Arc::new(whole.clone());
        let scene = scene_of(&aim, &plan.transfer)?;
        let own = tree.share(self.ranks.rank()).demand(&scene, &whole);
        let aim = self.fetch(aim, own, progress).await?;
        let composed = self.draw(&aim, &scene, tree).await?;
        let tally = composed.tally.clone();
        let Some(rgb) = self.delivered(&aim, composed).await? else { return Ok(None) };
        // All blocks of all ranks were there.
        let mut aim = aim;
        aim.demand = Arc::new(whole);
        let mut facts = Facts::of(&aim, (0, crate::loader::Trouble::default()), Some(tally.truth(&scene)?));
        facts.is_lossless = true;
        Ok(Some(Finished { rgb, truth: facts.truth() }))
    }

    /// Rank 0: chooses the level, the transfer function, and who draws what.
    async fn plan(&self, mut aim: Aim, colour_map: Option<String>) -> Result<(Aim, Vec<u8>)> {
        let wanted = Arc::clone(&aim.demand);
        let volume = Arc::clone(&aim.watching.volume);
        let rank = |key: &array::BlockKey| volume.view.rank_of(key.level).unwrap_or(0);
        let coarsest = wanted.blocks.iter().map(|block| rank(&block.key)).max();
        let is_first = |block: &&render::Demanded| Some(rank(&block.key)) == coarsest;
        let first =
            Demand { blocks: wanted.blocks.iter().filter(is_first).copied().collect(), ..(*wanted).clone() };
        aim.demand = Arc::new(first);
        aim.wish(&self.host, NOBODY);
        all_blocks(&self.host, &aim, &mut |_, _| {}).await?;
        let transfer = chosen_transfer(&aim.view, &volume, colour_map.as_deref());
        let ranks = self.ranks.size();
        aim.demand = wanted;
        let mut view = (*aim.view).clone();
        view.transfer = Some(transfer.clone());
        aim.view = Arc::new(view);
        let (aim, tree) = blocking(move || {
            let tree = fit(&mut aim, ranks, &mut Balance::new(), None)?;
            Ok::<_, Error>((aim, tree))
        })
        .await??;
        let plan = Plan { wanted: aim.demand.wanted, transfer, tree: tree.to_bytes() };
        let plan = serde_json::to_vec(&plan).map_err(|e| Error::internal(format!("a plan in JSON: {e}")))?;
        Ok((aim, plan))
    }

    /// What the whole picture wants.
    async fn demand(&self, aim: &Aim, level: Option<u8>, max_bytes: usize) -> Result<Demand> {
        let (view, camera, size, portion) =
            (Arc::clone(&aim.watching.volume.view), aim.camera, aim.size, aim.portion.clone());
        blocking(move || render::demand(&view, &camera, size, &portion, level, max_bytes)).await?
    }

    /// Waits until the blocks of a demand are there.
    async fn fetch(&self, mut aim: Aim, demand: Demand, progress: &mut impl FnMut(u64, u64)) -> Result<Aim> {
        aim.demand = Arc::new(demand);
        let host = Arc::clone(&self.host);
        let aim = blocking(move || {
            aim.wish(&host, NOBODY);
            aim
        })
        .await?;
        all_blocks(&self.host, &aim, progress).await?;
        Ok(aim)
    }

    async fn draw(&self, aim: &Aim, scene: &Scene, tree: Tree) -> Result<Composed> {
        let (volume, ranks) = (Arc::clone(&aim.watching.volume), Arc::clone(&self.ranks));
        let (scene, schedule) = (scene.clone(), Schedule::new(self.method, self.ranks.size())?);
        let cancel = CancelOnDrop::default();
        let flag: Cancel = cancel.flag();
        blocking(move || volume.draw_together(&*ranks, &scene, &tree, &schedule, &flag)).await?
    }

    /// Gives what is finished here to rank 0, from where it is shown.
    async fn delivered(&self, aim: &Aim, part: Composed) -> Result<Option<Vec<u8>>> {
        let background = aim.view.background.map(|c| f32::from(c) / 255.0);
        let (ranks, size) = (Arc::clone(&self.ranks), aim.size);
        blocking(move || {
            let own = part.image().to_rgb8(background);
            if ranks.rank() > 0 {
                let Rect { left, top, width, height } = part.region;
                let head = [left, top, width, height].into_iter().flat_map(u32::to_le_bytes);
                ranks.send(0, head.chain(own).collect())?;
                return Ok(None);
            }
            let one = Image { size: ImageSize { width: 1, height: 1 }, rgba: vec![[0.0; 4]] };
            let mut rgb = one.to_rgb8(background).repeat(Rect::whole(size).pixels());
            put(&mut rgb, size, &part.region, &own)?;
            for rank in 1..ranks.size() {
                let message = ranks.receive(rank)?;
                let (head, pixels) = message
                    .split_first_chunk::<HEAD_BYTES>()
                    .ok_or_else(|| Error::corrupt("expected a part of an image"))?;
                let word = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| head[4 * i + byte]));
                let rect = Rect { left: word(0), top: word(1), width: word(2), height: word(3) };
                put(&mut rgb, size, &rect, pixels)?;
            }
            Ok(Some(rgb))
        })
        .await?
    }
}

/// Puts pixels into an image, three bytes each.
fn put(rgb: &mut [u8], size: ImageSize, rect: &Rect, pixels: &[u8]) -> Result<()> {
    let whole = Rect::whole(size);
    if !rect.is_within(size) || pixels.len() != rect.pixels() * 3 {
        return Err(Error::corrupt(format!("expected a part of an image of {size:?}, found {rect:?}")));
    }
    let width = rect.width as usize * 3;
    for (row, pixels) in (rect.top..).zip(pixels.chunks_exact(width.max(1))) {
        let start = whole.index(rect.left, row) * 3;
        rgb[start..start + width].copy_from_slice(pixels);
    }
    Ok(())
}
