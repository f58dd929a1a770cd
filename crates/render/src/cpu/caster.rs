//! Caster of one picture: the drawing features, each prepared for what all rays share.

use array::Result;

use crate::blocks::BlockTable;
use crate::blocks::voxel::Voxel;
use crate::cpu::box_lines::fragments_of_boxes;
use crate::cpu::color_by::ColorLookup;
use crate::cpu::context::CastContext;
use crate::cpu::empty_space::depth_bounds::DepthBounds;
use crate::cpu::extreme::Extreme;
use crate::cpu::fragments::Fragments;
use crate::cpu::layers::prepare::LayerInput;
use crate::cpu::packet::size::PACKET_SIDE;
use crate::cpu::slab_layers::SlabBorders;
use crate::cpu::slices::Slices;
use crate::isosurface::prepare::Isosurfaces;
use crate::scene::camera::Lens;
use crate::scene::fidelity::ShownSamples;
use crate::simd::Instructions;
use crate::{ImagePart, Rect, Scene};

/// Pixels along a side of a tile.
pub(crate) const TILE: u32 = 32;

/// Everything that is drawn along the rays of one picture.
pub(crate) struct Caster<'a, T> {
    pub(crate) context: CastContext<'a, T>,
    pub(crate) surfaces: Isosurfaces,
    pub(crate) slices: Option<Slices>,
    /// Boxes as lines and geometry, if any are in the picture.
    pub(crate) fragments: Option<Fragments>,
    /// Data for a picture of extreme values; `None` for other pictures.
    pub(crate) extreme: Option<Extreme>,
    /// Depths between which rays can see something; `None` if they are not known.
    pub(crate) depth_bounds: Option<DepthBounds>,
    /// Slab borders, at which rays hand over the color that they accumulated; `None` unless slabs are cast.
    pub(crate) slab_borders: Option<SlabBorders>,
}

impl<'a, T: Voxel> Caster<'a, T> {
    /// # Errors
    /// The errors of [`CastContext::new`] and [`CastContext::add_layers`].
    pub(crate) fn new(
        scene: &'a Scene,
        part: &ImagePart,
        blocks: &'a BlockTable<T>,
        color_by: Option<&'a dyn ColorLookup>,
        layers: LayerInput<'a>,
        instructions: Instructions,
    ) -> Result<Self> {
        let mut context = CastContext::new(scene, part, blocks, color_by, instructions)?;
        context.add_layers(layers, part)?;
        let (surfaces, slices) = (Isosurfaces::prepare(&context), Slices::prepare(scene));
        let has_solids = slices.is_some() || !surfaces.is_empty();
        Ok(Self {
            fragments: fragments_of(scene, &context.lens, &part.rect),
            extreme: Extreme::new(scene, blocks, &context.tables.by_stride[0]),
            depth_bounds: DepthBounds::new(&context, has_solids),
            slab_borders: None,
            surfaces,
            slices,
            context,
        })
    }

    /// Splits the colors of rays into slabs. All rays have whole steps then, also in thin volumes.
    pub(crate) fn cut_at(&mut self, borders: SlabBorders) {
        self.context.is_thin = false;
        self.slab_borders = Some(borders);
    }

    /// Returns 1 if some value of a layer was not yet loaded, which counts as a missing sample.
    pub(crate) fn lacking_in_layers(&self) -> u64 {
        u64::from(self.context.layers.iter().any(|layer| layer.is_lacking()))
    }

    /// True if anything without the volume can lie on the ray.
    pub(crate) fn has_solids(&self) -> bool {
        self.slices.is_some() || !self.surfaces.is_empty()
    }

    /// Returns the counts to report for a picture. If depth bounds leave nothing of any ray, but rays meet
    /// the volume, one sample of the wanted level is counted, so that the shown level is reported.
    pub(crate) fn reported(&self, mut shown: ShownSamples) -> ShownSamples {
        if self.depth_bounds.is_some()
            && shown.is_nothing()
            && self.tiles().iter().any(|tile| self.is_met(tile))
        {
            shown.count(Some(self.context.wanted_level_index), false, 1);
        }
        shown
    }

    pub(crate) fn tiles(&self) -> Vec<Rect> {
        let Rect { left, top, width, height } = self.context.part.rect;
        let (right, bottom) = (left + width, top + height);
        let starts = |from: u32, to: u32| (from..to).step_by(TILE as usize);
        let tile =
            |top, left| Rect { left, top, width: TILE.min(right - left), height: TILE.min(bottom - top) };
        starts(top, bottom).flat_map(|top| starts(left, right).map(move |left| tile(top, left))).collect()
    }

    /// True if a ray of a tile has samples.
    fn is_met(&self, tile: &Rect) -> bool {
        let mut corners = (0..tile.height)
            .step_by(PACKET_SIDE as usize)
            .flat_map(|top| (0..tile.width).step_by(PACKET_SIDE as usize).map(move |left| [left, top]));
        corners.any(|[left, top]| {
            let size = [PACKET_SIDE.min(tile.width - left), PACKET_SIDE.min(tile.height - top)];
            let rays = self.context.rays([tile.left + left, tile.top + top], size);
            rays.next.iter().zip(&rays.end).any(|(next, end)| next < end)
        })
    }
}

/// Returns the fragments of all that is not part of the volume, in the rows of `rect`.
pub(crate) fn fragments_of(scene: &Scene, lens: &Lens, rect: &Rect) -> Option<Fragments> {
    let rows = rect.top..rect.top + rect.height;
    let mut fragments = crate::geometry::fragments_of_geometry(scene, lens, &rows);
    fragments.append(&mut fragments_of_boxes(scene, lens, &rows));
    Fragments::new(fragments, scene.size, rows)
}
