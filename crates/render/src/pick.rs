//! The place that a position in a picture shows: one ray, followed in double precision over the resident blocks.
//!
//! The ray meets what [`cast`](crate::cast) draws, by the same definitions of values, opacity and clipping, but without its
//! tables and packets, so that the place is exact where a picture may round. It reads nothing: the value at the place is
//! that of the blocks which the picture was drawn from, and the caller reads the voxel itself.

use std::ops::Range;

use array::{Error, Result};
use glam::DVec3;
use view::{Mode, Projection};

use crate::blocks::BlockTable;
use crate::blocks::snapshot::each_blocks;
use crate::blocks::voxel::Voxel;
use crate::cpu::layers::LayerLookup;
use crate::cpu::layers::prepare::LayerInput;
use crate::scene::camera::Lens;
use crate::scene::volume::xyz;
use crate::simd::LANES;
use crate::{Camera, Isosurface, Scene, Snapshot, VolumeView};

/// Opacity in front of a place, with its own, from which on it hides what is behind.
const OPAQUE: f64 = 0.5;
/// Samples of a ray per voxel of the finest level drawn; isosurfaces are searched between neighbors.
const SAMPLES_PER_VOXEL: f64 = 4.0;
/// Distance of the first and the last sample from the borders of the volume, as a share of that between two samples.
const INNER_SHARE: f64 = 1e-6;
/// Parts of the stretch between two samples, in which opacity is composited.
const PARTS: u32 = 4;
/// Most samples of a ray, so that a ray takes milliseconds: four for each voxel along the longest ray through
/// 4,096 voxels a side.
const MAX_SAMPLES: f64 = 32_768.0;
/// Halvings that find the place of an isosurface between two samples.
const HALVINGS: u32 = 40;

/// Thing that a ray meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickTarget {
    /// The volume as the transfer function shows it.
    Volume,
    /// The largest or smallest value along the ray.
    Extreme,
    /// The isosurface with this number in [`Scene::surfaces`].
    Surface(usize),
    /// The slice with this number in [`Scene::slices`].
    Slice(usize),
    /// An array of one layer, such as an image or a map.
    Layer,
}

/// Place that a position in a picture shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pick {
    /// Thing that is there.
    pub target: PickTarget,
    /// Place in world space.
    pub world: [f64; 3],
    /// Voxel of level 0 that contains the place, `[z, y, x]`.
    pub voxel: [u64; 3],
    /// Value that is drawn there; `None` if no block is resident there, or the value is missing.
    pub drawn: Option<DrawnValue>,
}

/// Value that is drawn at a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnValue {
    /// Number of the level of the block that is drawn.
    pub level: u8,
    /// Decoded value, interpolated except for labels.
    pub value: f64,
}

/// Returns what a position in a picture shows, in pixels from the picture's upper left corner, so that the first pixel's
/// middle is at 0.5, 0.5: the first point at which half of the light is hidden, else the point that contributes most;
/// `None` if nothing is there. An array of one layer is met wherever the ray passes through it, visible or not.
///
/// # Errors
/// `Invalid` for an invalid scene or a position that is no number.
pub fn pick(scene: &Scene, snapshot: &Snapshot, position: [f64; 2]) -> Result<Option<Pick>> {
    scene.check()?;
    let ray = PickRay::new(scene, position)?;
    let wanted = scene.view.level_index_of(scene.finest_level)?;
    let layer_scenes = scene.layer_scenes();
    let layers = LayerInput { scenes: &layer_scenes, blocks: &snapshot.layers };
    each_blocks!(&snapshot.blocks, blocks => RayMarch { ray: &ray, blocks, wanted, layers }.pick())
}

/// Returns the position of a voxel `[z, y, x]` of level 0 in world space.
#[must_use]
pub fn world_of_voxel(view: &VolumeView, voxel: [u64; 3]) -> [f64; 3] {
    view.world_from_volume.transform_point3(xyz(voxel)).into()
}

/// Returns the voxel `[z, y, x]` of level 0 that contains a point of world space; the nearest one outside.
#[must_use]
pub fn voxel_of_world(view: &VolumeView, world: [f64; 3]) -> [u64; 3] {
    voxel_at(view, volume_of_world(view, world).into())
}

/// Returns the position `(x, y, z)` of a point of world space in voxels of level 0, with centers at whole numbers.
#[must_use]
pub fn volume_of_world(view: &VolumeView, world: [f64; 3]) -> [f64; 3] {
    view.world_from_volume.inverse().transform_point3(world.into()).into()
}

/// Returns a camera for a square picture of a few pixels around a position in a scene's picture, each as large as those
/// of the scene.
///
/// # Errors
/// `Invalid` for an invalid camera or a position that is no number.
pub fn camera_around(scene: &Scene, position: [f64; 2], pixels: u32) -> Result<Camera> {
    /// Least field of view: twice what cameras must have.
    const LEAST_RAD: f64 = 2e-6;
    let ray = PickRay::new(scene, position)?;
    let camera = &scene.camera;
    let share = f64::from(pixels) / f64::from(scene.size.height);
    let distance = DVec3::from(camera.eye).distance(camera.target.into());
    let projection = match camera.projection {
        Projection::Perspective { fov_y_rad } => {
            let tangent = (fov_y_rad / 2.0).tan() * share;
            Projection::Perspective { fov_y_rad: (2.0 * tangent.atan()).max(LEAST_RAD) }
        }
        Projection::Orthographic { height_world } => {
            Projection::Orthographic { height_world: height_world * share }
        }
    };
    let target = ray.origin + ray.direction * distance;
    Ok(Camera { eye: ray.origin.into(), target: target.into(), up: camera.up, projection, aside: 0.0 })
}

impl VolumeView {
    /// Returns the index per axis of the array at level 0 of a voxel `[z, y, x]`.
    #[must_use]
    pub fn index_of(&self, voxel: [u64; 3]) -> Vec<u64> {
        let mut index = self.position.clone();
        for (axis, at) in self.axes.iter().zip(voxel) {
            if let Some(axis) = *axis {
                index[axis] = at;
            }
        }
        index
    }

    /// Returns the array's axes that are z, y and x.
    #[must_use]
    pub fn array_axes(&self) -> [Option<usize>; 3] {
        self.axes
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the shape")]
fn voxel_at(view: &VolumeView, volume: DVec3) -> [u64; 3] {
    let last = xyz(view.levels[0].shape) - 1.0;
    let [x, y, z] = (volume + 0.5).floor().clamp(DVec3::ZERO, last.max(DVec3::ZERO)).to_array();
    [z as u64, y as u64, x as u64]
}

/// Ray of a scene: `origin + t * direction`, with `t` in world units.
struct PickRay<'a> {
    scene: &'a Scene,
    origin: DVec3,
    direction: DVec3,
    /// This place in voxels of level 0.
    volume_origin: DVec3,
    volume_direction: DVec3,
    /// Part of the ray inside of the volume and the clipping box, in front of the eye.
    span: Option<Range<f64>>,
}

impl<'a> PickRay<'a> {
    fn new(scene: &'a Scene, [column, row]: [f64; 2]) -> Result<Self> {
        if !(column.is_finite() && row.is_finite()) {
            return Err(Error::invalid(format!("expected a position in pixels, found {column}, {row}")));
        }
        let lens = Lens::new(&scene.camera, scene.size)?;
        let across = (2.0 * column / f64::from(scene.size.width) - 1.0) * lens.half[0] + lens.middle;
        let upward = (1.0 - 2.0 * row / f64::from(scene.size.height)) * lens.half[1];
        let aside = lens.right * across + lens.up * upward;
        let (origin, direction) = if lens.perspective {
            (lens.eye, (lens.forward + aside).normalize())
        } else {
            (lens.eye + aside, lens.forward)
        };
        let volume_from_world = scene.view.world_from_volume.inverse();
        let mut ray = Self {
            scene,
            origin,
            direction,
            volume_origin: volume_from_world.transform_point3(origin),
            volume_direction: volume_from_world.transform_vector3(direction),
            span: None,
        };
        ray.span = ray.drawn_span(lens.perspective);
        Ok(ray)
    }

    fn drawn_span(&self, is_perspective: bool) -> Option<Range<f64>> {
        let (low, high) = self.scene.view.volume_box();
        let nearest = if is_perspective { 0.0 } else { f64::NEG_INFINITY };
        let mut span = nearest..f64::INFINITY;
        narrow(&mut span, self.volume_origin, self.volume_direction, low, high);
        if let Some(clip) = &self.scene.clip {
            narrow(&mut span, self.origin, self.direction, clip.min.into(), clip.max.into());
        }
        (span.start < span.end && span.start.is_finite() && span.end.is_finite()).then_some(span)
    }

    fn volume(&self, t: f64) -> DVec3 {
        self.volume_origin + self.volume_direction * t
    }

    /// Returns where the ray passes through the plane across an axis (0 x, 1 y, 2 z) at a position in voxels.
    fn crossing(&self, axis: usize, at: f64) -> Option<f64> {
        self.meeting(DVec3::AXES[axis], at)
    }

    /// Returns where the ray passes through the plane of the points `p` of volume space with `normal . p = offset`.
    fn meeting(&self, normal: DVec3, offset: f64) -> Option<f64> {
        let t = (offset - normal.dot(self.volume_origin)) / normal.dot(self.volume_direction);
        t.is_finite().then_some(t)
    }
}

/// Cuts off the parts of a span along a ray that lie outside a box.
fn narrow(span: &mut Range<f64>, origin: DVec3, direction: DVec3, low: DVec3, high: DVec3) {
    for axis in 0..3 {
        if direction[axis] == 0.0 {
            if !(low[axis]..high[axis]).contains(&origin[axis]) {
                span.end = f64::NEG_INFINITY;
            }
            continue;
        }
        let ends = [low, high].map(|side| (side[axis] - origin[axis]) / direction[axis]);
        span.start = span.start.max(ends[0].min(ends[1]));
        span.end = span.end.min(ends[0].max(ends[1]));
    }
}

/// Sheet that a ray meets: its position along the ray, its opacity, and what it is.
#[derive(Clone, Copy)]
struct SheetHit {
    at: f64,
    opacity: f64,
    target: PickTarget,
}

/// Light that still passes, and the place that contributed most so far.
struct Composited {
    passing: f64,
    most: f64,
    best: Option<(f64, PickTarget)>,
}

impl Composited {
    /// Adds something of this opacity; returns true if it hides what is behind it.
    fn add(&mut self, opacity: f64) -> (f64, bool) {
        let contribution = self.passing * opacity;
        self.passing -= contribution;
        (contribution, self.passing <= 1.0 - OPAQUE)
    }

    fn offer(&mut self, contribution: f64, at: f64, target: PickTarget) {
        if contribution > self.most {
            (self.most, self.best) = (contribution, Some((at, target)));
        }
    }
}

/// Ray that is followed over the blocks of a snapshot.
struct RayMarch<'a, T> {
    ray: &'a PickRay<'a>,
    blocks: &'a BlockTable<T>,
    /// Index of the finest level to use.
    wanted: usize,
    layers: LayerInput<'a>,
}

impl<T: Voxel> RayMarch<'_, T> {
    fn pick(&self) -> Result<Option<Pick>> {
        let Some(span) = self.ray.span.clone() else { return Ok(None) };
        let view = &self.ray.scene.view;
        if let Some(axis) = layer_axis(view) {
            let at = self.ray.crossing(axis, 0.0).filter(|at| span.contains(at));
            return Ok(at.map(|at| self.found(at, PickTarget::Layer)));
        }
        Ok(self.first(&span)?.map(|(at, target)| self.found(at, target)))
    }

    fn found(&self, at: f64, target: PickTarget) -> Pick {
        let view = &self.ray.scene.view;
        let volume = self.ray.volume(at);
        Pick {
            target,
            world: view.world_from_volume.transform_point3(volume).into(),
            voxel: voxel_at(view, volume),
            drawn: self
                .drawn(at)
                .map(|(level_index, value)| DrawnValue { level: view.levels[level_index].number, value }),
        }
    }

    /// Returns the decoded value at a position along the ray, with the index of its level; `None` where it is missing.
    fn drawn(&self, at: f64) -> Option<(usize, f64)> {
        let (level_index, block, local) = self.blocks.finest_from(self.wanted, self.ray.volume(at))?;
        let missing = &self.blocks.missing;
        let stored = if self.blocks.view.meaning.is_continuous() {
            block.value_at(local, missing)?
        } else {
            let nearest = block.interpolate(local, true, missing);
            (!missing.is_missing(nearest)).then(|| nearest.to_f64())?
        };
        let decoding = &self.blocks.view.decoding;
        let value = stored * decoding.scale + decoding.offset;
        value.is_finite().then_some((level_index, value))
    }

    fn value(&self, at: f64) -> Option<f64> {
        self.drawn(at).map(|(_, value)| value)
    }

    /// Returns the place that the ray shows, and what is there.
    fn first(&self, span: &Range<f64>) -> Result<Option<(f64, PickTarget)>> {
        let scene = self.ray.scene;
        let is_extreme = matches!(scene.mode, Mode::Maximum | Mode::Minimum);
        let step = scene.view.step_world(self.wanted, 1.0 / SAMPLES_PER_VOXEL);
        let count = ((span.end - span.start) / step).ceil().clamp(1.0, MAX_SAMPLES);
        let place = |number: f64| span.start + (span.end - span.start) * (number / count);
        // Rounding must not place the ends outside of the volume.
        let margin = INNER_SHARE * (span.end - span.start) / count;
        let value = |at: f64| self.value(at.clamp(span.start + margin, span.end - margin));
        let layers = match scene.mode {
            Mode::Surfaces => Vec::new(),
            _ => self.layers.lookups(scene, (span.end - span.start) / count / f64::from(PARTS))?,
        };
        let mut light = Composited { passing: 1.0, most: 0.0, best: None };
        let slices = self.slices(span);
        let mut extreme: Option<(f64, f64)> = None;
        let mut start = (span.start, value(span.start));
        let mut number = 0.0;
        while number < count {
            number += 1.0;
            let end = (place(number), value(place(number)));
            if let Some(hit) = self.stretch(&mut light, start, end, (&slices, &layers)) {
                return Ok(Some(hit));
            }
            // Between the borders, as samples of pictures are.
            let middle = f64::midpoint(start.0, end.0);
            if is_extreme && let Some(value) = self.value(middle) {
                let is_beyond = |known: f64| match scene.mode {
                    Mode::Minimum => value < known,
                    _ => value > known,
                };
                if extreme.is_none_or(|(_, known)| is_beyond(known)) {
                    extreme = Some((middle, value));
                }
            }
            start = end;
        }
        // Opaque, behind everything else.
        if let Some((at, _)) = extreme {
            light.offer(light.passing, at, PickTarget::Extreme);
        }
        Ok(light.best)
    }

    /// Returns the slices that the ray passes through where they have values, in order.
    fn slices(&self, span: &Range<f64>) -> Vec<SheetHit> {
        let hit = |(number, slice): (usize, &crate::Slice)| {
            let (normal, offset) = slice.plane();
            let at = self.ray.meeting(normal, offset).filter(|at| span.contains(at))?;
            self.value(at)?;
            Some(SheetHit { at, opacity: 1.0, target: PickTarget::Slice(number) })
        };
        let mut hits: Vec<SheetHit> = self.ray.scene.slices.iter().enumerate().filter_map(hit).collect();
        hits.sort_by(|a, b| a.at.total_cmp(&b.at));
        hits
    }

    /// Returns where a surface lies between two samples, if they are on different sides of it.
    fn surface(&self, surface: &Isosurface, from: (f64, f64), to: (f64, f64)) -> Option<f64> {
        let is_inside = |value: f64| value >= surface.value;
        if is_inside(from.1) == is_inside(to.1) {
            return None;
        }
        let (mut near, mut far) = (from.0, to.0);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(near, far);
            let is_near = self.value(middle).is_none_or(|value| is_inside(value) == is_inside(from.1));
            *(if is_near { &mut near } else { &mut far }) = middle;
        }
        Some(near)
    }

    /// Composites the stretch between two samples; returns the place at which it becomes opaque.
    fn stretch(
        &self,
        light: &mut Composited,
        start: (f64, Option<f64>),
        end: (f64, Option<f64>),
        (slices, layers): (&[SheetHit], &[Box<dyn LayerLookup + '_>]),
    ) -> Option<(f64, PickTarget)> {
        let scene = self.ray.scene;
        let values = start.1.zip(end.1);
        let mut sheets: Vec<SheetHit> =
            slices.iter().filter(|hit| (start.0..end.0).contains(&hit.at)).copied().collect();
        if let Some((from, to)) = values {
            sheets.extend(scene.surfaces.iter().enumerate().filter_map(|(number, surface)| {
                let at = self.surface(surface, (start.0, from), (end.0, to))?;
                let opacity = f64::from(surface.opacity);
                Some(SheetHit { at, opacity, target: PickTarget::Surface(number) })
            }));
            sheets.sort_by(|a, b| a.at.total_cmp(&b.at));
        }
        let mut sheets = sheets.into_iter().peekable();
        let mut passed = |light: &mut Composited, until: f64| {
            while let Some(sheet) = sheets.next_if(|sheet| sheet.at < until) {
                let (contribution, is_opaque) = light.add(sheet.opacity);
                light.offer(contribution, sheet.at, sheet.target);
                if is_opaque {
                    return Some((sheet.at, sheet.target));
                }
            }
            None
        };
        let volume = values.filter(|_| scene.mode == Mode::Composite);
        if volume.is_none() && layers.is_empty() {
            return passed(light, f64::INFINITY);
        }
        let length = (end.0 - start.0) / f64::from(PARTS);
        let thickness = length / scene.view.spacing_world(0);
        let (mut sum, mut most, mut best) = (0.0, 0.0, start.0);
        for part in 0..PARTS {
            let share = (f64::from(part) + 0.5) / f64::from(PARTS);
            let at = start.0 + (end.0 - start.0) * share;
            if let Some(hit) = passed(light, at) {
                return Some(hit);
            }
            let own = volume.map_or(0.0, |(from, to)| {
                let opacity = scene.transfer.opacity_at(from + (to - from) * share);
                1.0 - (1.0 - opacity).powf(thickness)
            });
            let through = layers.iter().map(|layer| 1.0 - opacity_of(&**layer, self.ray.volume(at)));
            let (contribution, is_opaque) = light.add(1.0 - (1.0 - own) * through.product::<f64>());
            if is_opaque {
                return Some((at, PickTarget::Volume));
            }
            sum += contribution;
            if contribution > most {
                (most, best) = (contribution, at);
            }
        }
        light.offer(sum, best, PickTarget::Volume);
        passed(light, f64::INFINITY)
    }
}

/// Returns the opacity of a layer around a volume position, over the length for which it was prepared.
fn opacity_of(layer: &dyn LayerLookup, at: DVec3) -> f64 {
    let [.., opacities] = layer.step_colors(&[at; LANES], 1, 0);
    opacities[0].into()
}

/// Returns the axis (0 x, 1 y, 2 z) across an array of one layer.
fn layer_axis(view: &VolumeView) -> Option<usize> {
    let thick = view.thick_axes();
    (0..3).find(|&axis| !thick[axis] && thick[(axis + 1) % 3] && thick[(axis + 2) % 3])
}
