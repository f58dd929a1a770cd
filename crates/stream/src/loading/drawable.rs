//! Input of pictures: the blocks of a volume, those of the volume that gives its colors if that is another
//! one, and those of layers.

use std::ops::Range;
use std::sync::{Arc, RwLockReadGuard};

use array::{Error, ErrorKind, Result};
use compose::{Balance, Communicator, Composed, KdTree, Schedule};
use gpu::MissingBlocks;
use render::{Cancel, Demand, DrawnRows, Pick, RenderedImage, Scene, SlabRequest, Slabs, Snapshot, stereo};

use crate::loading::volume::Volume;
use crate::painter::Painter;

/// Blocks of a picture that is being drawn; they count against their pools' limits until this is dropped.
pub(crate) struct PictureBlocks<'a> {
    // Declared before the locks, so that blocks are released first: a thread that waits for a lock needs their memory.
    blocks: Snapshot,
    _picture_guards: Vec<RwLockReadGuard<'a, ()>>,
}

/// Volumes that a picture is drawn from: the one shown, the one that gives the colors if that is another one,
/// and those of layers.
#[derive(Clone)]
pub(crate) struct Drawable {
    pub(crate) volume: Arc<Volume>,
    color_by: Option<Arc<Volume>>,
    layers: Vec<Arc<Volume>>,
}

impl Drawable {
    pub(crate) fn new(volume: Arc<Volume>, color_by: Option<Arc<Volume>>, layers: Vec<Arc<Volume>>) -> Self {
        Self { volume, color_by, layers }
    }

    /// Draws a picture, or both pictures of a stereo pair one after the other. Blocks the thread.
    ///
    /// # Errors
    /// Those of [`Painter::cast`] and [`stereo::scenes`].
    pub(crate) fn cast(
        &self,
        painter: &Painter,
        scene: &Scene,
        parallax: Option<f64>,
        missing_blocks: MissingBlocks,
        cancel: &Cancel,
    ) -> Result<RenderedImage> {
        let picture = self.picture();
        let cast = |scene: &Scene| painter.cast(scene, &picture.blocks, missing_blocks, cancel);
        let Some(parallax) = parallax else { return cast(scene) };
        let [left, right] = stereo::scenes(scene, parallax)?;
        stereo::beside([cast(&left)?, cast(&right)?], scene.size)
    }

    /// Draws rows of a picture, or of both pictures of a stereo pair, on the CPU. Blocks the thread.
    ///
    /// # Errors
    /// Those of [`render::cast_rows`] and [`stereo::scenes`].
    pub(crate) fn cast_rows(
        &self,
        painter: &Painter,
        scene: &Scene,
        parallax: Option<f64>,
        rows: Range<u32>,
        cancel: &Cancel,
    ) -> Result<DrawnRows> {
        let picture = self.picture();
        let cast = |scene: &Scene| painter.cast_rows(scene, rows.clone(), &picture.blocks, cancel);
        let Some(parallax) = parallax else { return cast(scene) };
        let [left, right] = stereo::scenes(scene, parallax)?;
        stereo::beside_rows([cast(&left)?, cast(&right)?], scene.size.width)
    }

    /// Casts slabs. Blocks the thread.
    ///
    /// # Errors
    /// Those of [`render::cast_slabs`].
    pub(crate) fn cast_slabs(&self, scene: &Scene, request: &SlabRequest, cancel: &Cancel) -> Result<Slabs> {
        render::cast_slabs(scene, request, &self.picture().blocks, cancel).map(|(slabs, _)| slabs)
    }

    /// Returns what a position in a picture shows; `None` if nothing is there. Blocks the thread.
    ///
    /// # Errors
    /// Those of [`render::pick()`]; `Busy` if no block is loaded.
    pub(crate) fn pick(&self, scene: &Scene, position: [f64; 2]) -> Result<Option<Pick>> {
        let picture = self.picture();
        if picture.blocks.finest_level(scene).is_none() {
            let what = "nothing of this view is loaded yet; try again when its picture appears";
            return Err(Error::new(ErrorKind::Busy, what));
        }
        render::pick(scene, &picture.blocks, position)
    }

    /// Draws a picture together with other ranks. Blocks the thread.
    ///
    /// # Errors
    /// Those of [`compose::draw_by`].
    pub(crate) fn draw_together(
        &self,
        ranks: &dyn Communicator,
        scene: &Scene,
        tree: &KdTree,
        schedule: &Schedule,
        cancel: &Cancel,
    ) -> Result<Composed> {
        compose::draw_by(ranks, scene, tree, schedule, &self.picture().blocks, cancel)
    }

    /// Divides the volume among ranks, based on the loaded blocks. Blocks the thread.
    ///
    /// # Errors
    /// Those of [`Balance::cut`].
    pub(crate) fn cut(
        &self,
        balance: &mut Balance,
        scene: &Scene,
        demand: &Demand,
        ranks: usize,
    ) -> Result<KdTree> {
        balance.cut(scene, &self.picture().blocks, demand, ranks)
    }

    /// Takes the loaded blocks for a picture; later arrivals are used by the next picture.
    pub(crate) fn picture(&self) -> PictureBlocks<'_> {
        let mut all = vec![&self.volume];
        all.extend(self.color_by.iter().chain(&self.layers));
        // Locks are taken in the same order everywhere, which prevents deadlocks.
        all.sort_by_key(|volume| Arc::as_ptr(volume));
        // Two layers may show the same volume.
        all.dedup_by_key(|volume| Arc::as_ptr(volume));
        let guards = all.into_iter().map(|volume| volume.begin_picture()).collect();
        let blocks = match &self.color_by {
            None => self.volume.snapshot(),
            Some(color_by) => self.volume.snapshot().colored_by(&color_by.snapshot()),
        };
        let layers: Vec<Snapshot> = self.layers.iter().map(|layer| layer.snapshot()).collect();
        let blocks = blocks.with_layers(&layers);
        PictureBlocks { blocks, _picture_guards: guards }
    }
}
