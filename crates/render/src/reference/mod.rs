//! Slow caster in double precision: the reference for the pictures of [`cast`](crate::cast).
//!
//! A second, independent implementation of a picture's definition: no blocks, no table of limited resolution,
//! no skipping, no early ray termination, no packets. Samples lie at multiples of the step from the eye,
//! trilinear between the eight nearest voxels (the outermost ones repeated); the value is linear from each
//! sample to the next, and that interval is composited in many parts, color and opacity from the transfer
//! function, opacity corrected for the length of a part, premultiplied, front to back. For tests and
//! benchmarks: it takes minutes where the caster takes milliseconds.

mod dimming;
mod layers;
mod surfaces;

use glam::{DAffine3, DVec3, DVec4};
use view::{Mode, Projection, RangeScale};

use crate::scene::light::{SOFT_SLOPE, SOFT_SQUARED};
use crate::{Image, Scene};

/// Voxels of level 0.
pub trait ReferenceVoxels: Sync {
    /// Shape `[z, y, x]`.
    fn shape(&self) -> [u64; 3];
    /// Returns the decoded value of the voxel `[x, y, z]`, which lies in the shape.
    fn value(&self, voxel: [u64; 3]) -> f64;
}

/// Draws all pixels of a scene's picture, in the colors of its own values. The scene's quality is ignored
/// except for the step.
pub fn cast(scene: &Scene, voxels: &impl ReferenceVoxels) -> Image {
    cast_colored_by(scene, voxels, None)
}

/// Draws all pixels of a scene's picture. If the scene takes its colors from another array, they are those of
/// `color_by`, an array of intensities.
pub fn cast_colored_by(
    scene: &Scene,
    voxels: &impl ReferenceVoxels,
    color_by: Option<&dyn ReferenceVoxels>,
) -> Image {
    let (width, height) = (scene.size.width, scene.size.height);
    let caster = ReferenceCaster { color_by, ..ReferenceCaster::new(scene, voxels) };
    let rgba = (0..height).flat_map(|row| (0..width).map(move |column| [column, row]));
    Image { size: scene.size, rgba: rgba.map(|pixel| caster.pixel(pixel)).collect() }
}

/// Draws all pixels of a scene's picture with its layers, in their order; outlines are drawn as areas.
pub fn cast_layered(scene: &Scene, voxels: &impl ReferenceVoxels, layers: &[&dyn ReferenceVoxels]) -> Image {
    let (width, height) = (scene.size.width, scene.size.height);
    let caster = ReferenceCaster { layers, ..ReferenceCaster::new(scene, voxels) };
    let rgba = (0..height).flat_map(|row| (0..width).map(move |column| [column, row]));
    Image { size: scene.size, rgba: rgba.map(|pixel| caster.pixel(pixel)).collect() }
}

/// Draws the given pixels `[column, row]`, on all threads: premultiplied RGBA.
pub fn cast_pixels(scene: &Scene, voxels: &impl ReferenceVoxels, pixels: &[[u32; 2]]) -> Vec<[f32; 4]> {
    use rayon::prelude::*;
    let caster = ReferenceCaster::new(scene, voxels);
    pixels.par_iter().map(|&pixel| caster.pixel(pixel)).collect()
}

/// Returns the opacity of all that the ray of a pixel `[column, row]` meets nearer than a distance from where it begins,
/// world units. Extreme values, which have no depth, do not count.
pub fn opacity_before(
    scene: &Scene,
    voxels: &impl ReferenceVoxels,
    pixel: [u32; 2],
    distance_world: f64,
) -> f64 {
    let caster = ReferenceCaster::new(scene, voxels);
    let ray = caster.ray_of(pixel);
    ray.front_to(distance_world / caster.step_world).w
}

/// Data that all rays share.
struct ReferenceCaster<'a, V> {
    scene: &'a Scene,
    voxels: &'a V,
    /// Array that gives the colors, if it is another one.
    color_by: Option<&'a dyn ReferenceVoxels>,
    /// Voxels of the scene's layers.
    layers: &'a [&'a dyn ReferenceVoxels],
    classes: Classes,
    dimming: dimming::ReferenceDimming,
    step_world: f64,
    volume_from_world: DAffine3,
}

/// Hit of a ray: position along the ray with the value there, and the color.
type PlacedColor = ((f64, f64), DVec4);

impl<'a, V: ReferenceVoxels> ReferenceCaster<'a, V> {
    fn new(scene: &'a Scene, voxels: &'a V) -> Self {
        let density = if matches!(scene.mode, Mode::Maximum | Mode::Minimum) { 2.0 } else { 1.0 };
        let step_world = scene.view.spacing_world(0) * scene.quality.step / density;
        let volume_from_world = scene.view.world_from_volume.inverse();
        let classes = Classes::new(scene);
        let (eye, target) = (DVec3::from(scene.camera.eye), DVec3::from(scene.camera.target));
        let dimming = dimming::ReferenceDimming::new(scene, voxels, |at| match scene.camera.projection {
            Projection::Perspective { .. } => at.distance(eye),
            Projection::Orthographic { .. } => (at - eye).dot((target - eye).normalize()),
        });
        Self { scene, voxels, color_by: None, layers: &[], classes, dimming, step_world, volume_from_world }
    }

    fn pixel(&self, pixel: [u32; 2]) -> [f32; 4] {
        self.ray_of(pixel).color().as_vec4().to_array()
    }

    fn ray_of(&self, [column, row]: [u32; 2]) -> ReferenceRay<'_, 'a, V> {
        let [width, height] = [self.scene.size.width, self.scene.size.height].map(f64::from);
        let across = (2.0 * (f64::from(column) + 0.5) / width - 1.0) * width / height;
        let upward = 1.0 - 2.0 * (f64::from(row) + 0.5) / height;
        let (origin, direction) = self.ray(across, upward);
        ReferenceRay { caster: self, origin, step: direction * self.step_world }
    }

    fn ray(&self, across: f64, upward: f64) -> (DVec3, DVec3) {
        let camera = &self.scene.camera;
        let (eye, target) = (DVec3::from(camera.eye), DVec3::from(camera.target));
        let forward = (target - eye).normalize();
        let right = forward.cross(camera.up.into()).normalize();
        let aside = right * across + right.cross(forward) * upward;
        match camera.projection {
            Projection::Perspective { fov_y_rad } => {
                let origin = eye + right * camera.aside;
                let window = eye + (forward + aside * (fov_y_rad / 2.0).tan()) * eye.distance(target);
                (origin, (window - origin).normalize())
            }
            Projection::Orthographic { height_world } => (eye + aside * height_world / 2.0, forward),
        }
    }

    /// Returns the additions to a squared gradient of values and to its squared part along a ray that soften the light.
    fn soft_light(&self) -> [f64; 2] {
        let [low, high] = self.scene.transfer.domain();
        let slope = SOFT_SLOPE * (high - low) / self.scene.view.spacing_world(0);
        [slope * slope, slope * slope * f64::from(SOFT_SQUARED)]
    }

    /// Returns the value at a position in voxels of level 0.
    fn trilinear(&self, place: DVec3) -> f64 {
        trilinear(self.voxels, place)
    }

    /// Returns a premultiplied color at a position, in the colors of the other array if there is one.
    fn recolored(&self, color: DVec4, place: DVec3) -> DVec4 {
        let color_by = self.color_by.zip(self.scene.color_by.as_ref());
        color_by.map_or(color, |(voxels, color_by)| {
            let [r, g, b] = color_by.transfer().color_at(trilinear(voxels, place)).map(f64::from);
            DVec4::new(r, g, b, 1.0) * color.w
        })
    }
}

/// Interpolates between the eight voxels around a position in voxels of level 0; outside, the outermost ones
/// are repeated.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the shape")]
fn trilinear<V: ReferenceVoxels + ?Sized>(voxels: &V, place: DVec3) -> f64 {
    let [z, y, x] = voxels.shape().map(|n| n as f64 - 1.0);
    let last = DVec3::new(x, y, z);
    let place = place.clamp(DVec3::ZERO, last);
    let cell = place.floor();
    let share = place - cell;
    let (mut sum, mut range) = (0.0, [f64::INFINITY, f64::NEG_INFINITY]);
    for corner in 0..8u32 {
        let up = DVec3::from_array([0, 1, 2].map(|axis| f64::from(corner >> axis & 1)));
        let weight = DVec3::select(up.cmpgt(DVec3::ZERO), share, 1.0 - share);
        let voxel = (cell + up).min(last).to_array().map(|v| v as u64);
        let value = voxels.value(voxel);
        sum += weight.x * weight.y * weight.z * value;
        range = [range[0].min(value), range[1].max(value)];
    }
    // Rounding must not move a value interpolated between equal voxels to another side of their value.
    if range[0] <= range[1] { sum.max(range[0]).min(range[1]) } else { sum }
}

/// Casts one ray: sample `i` at `origin + i * step`, in world space.
struct ReferenceRay<'a, 'b, V> {
    caster: &'a ReferenceCaster<'b, V>,
    origin: DVec3,
    step: DVec3,
}

impl<V: ReferenceVoxels> ReferenceRay<'_, '_, V> {
    fn color(&self) -> DVec4 {
        let scene = self.caster.scene;
        let values = || self.samples().filter(|&i| self.is_drawn(i)).map(|i| self.value_at(i));
        let extreme = match scene.mode {
            Mode::Maximum => values().reduce(f64::max),
            Mode::Minimum => values().reduce(f64::min),
            Mode::Composite | Mode::Surfaces => None,
        };
        let has_depth = extreme.is_none() || !scene.surfaces.is_empty() || !scene.slices.is_empty();
        let color = if has_depth { self.front_to_back() } else { DVec4::ZERO };
        // It has no depth, and is behind everything else.
        extreme.map_or(color, |value| {
            let [r, g, b] = scene.transfer.color_at(value).map(f64::from);
            color + DVec4::new(r, g, b, 1.0) * (1.0 - color.w)
        })
    }

    fn front_to_back(&self) -> DVec4 {
        self.front_to(f64::INFINITY)
    }

    /// Composites what lies before a position along the ray, in samples.
    fn front_to(&self, limit: f64) -> DVec4 {
        let draws_volume = self.caster.scene.mode == Mode::Composite;
        let (sheets, mut color) = (self.sheets(), DVec4::ZERO);
        for end in self.samples().take_while(|end| end - 1.0 < limit) {
            let (start, end) = (end - 1.0, end.min(limit));
            let sheets = || sheets.iter().filter(|sheet| (start..end).contains(&sheet.0.0));
            if !self.is_drawn(start) && !self.is_drawn(end) && sheets().next().is_none() {
                continue;
            }
            let mut from = (start, self.value_at(start));
            let surfaces = surfaces::hits(self, start, end);
            let mut hits: Vec<PlacedColor> = surfaces
                .iter()
                .map(|hit| (hit.at, self.lit(self.recolored(hit.color(), hit.at.0), hit.at.0)))
                .chain(sheets().copied())
                .collect();
            hits.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
            for (at, hit) in hits.into_iter().filter(|hit| self.is_drawn(hit.0.0)) {
                if draws_volume {
                    color = self.stretch(color, from, at);
                }
                color += hit * (1.0 - color.w);
                from = at;
            }
            // A step belongs to the sample at its end.
            if draws_volume && self.is_drawn(end) {
                color = self.stretch(color, from, (end, self.value_at(end)));
            }
        }
        color
    }

    /// Returns whole samples from before the volume to behind it; parallel rays may begin behind the eye.
    fn samples(&self) -> impl Iterator<Item = f64> + use<V> {
        let bounds = self.caster.scene.view.bounds();
        let length = self.step.length();
        let middle = (DVec3::from(bounds.center()) - self.origin).dot(self.step) / (length * length);
        let (mut at, end) = (middle - bounds.radius() / length, middle + bounds.radius() / length);
        at = at.floor() - 2.0;
        std::iter::from_fn(move || {
            at += 1.0;
            (at <= end + 2.0).then_some(at)
        })
    }

    fn place(&self, i: f64) -> DVec3 {
        self.caster.volume_from_world.transform_point3(self.origin + self.step * i)
    }

    fn value_at(&self, i: f64) -> f64 {
        self.caster.trilinear(self.place(i))
    }

    fn is_drawn(&self, i: f64) -> bool {
        let scene = self.caster.scene;
        let [z, y, x] = self.caster.voxels.shape().map(|n| n as f64);
        let (world, p) = (self.origin + self.step * i, self.place(i));
        let behind_eye = i < 0.0 && matches!(scene.camera.projection, Projection::Perspective { .. });
        let inside = p.cmpge(DVec3::splat(-0.5)).all() && p.cmplt(DVec3::new(x, y, z) - 0.5).all();
        let clipped = scene
            .clip
            .is_some_and(|c| world.cmplt(DVec3::from(c.min)).any() || world.cmpge(DVec3::from(c.max)).any());
        !behind_eye && inside && !clipped
    }

    /// Returns the hits of the ray on slices.
    fn sheets(&self) -> Vec<PlacedColor> {
        let slices = self.caster.scene.slices.iter().map(|slice| {
            let (normal, offset) = slice.plane();
            let (first, second) = (normal.dot(self.place(0.0)), normal.dot(self.place(1.0)));
            let at = (offset - first) / (second - first);
            if !slice.nearest {
                return (at, self.value_at(at));
            }
            let [z, y, x] = self.caster.voxels.shape().map(|n| n as f64);
            let voxel = (self.place(at) + 0.5).floor().clamp(DVec3::ZERO, DVec3::new(x, y, z) - 1.0);
            (at, self.caster.trilinear(voxel))
        });
        let colored = slices.filter(|(at, _)| at.is_finite()).map(|at| {
            let [r, g, b] = self.caster.scene.transfer.color_at(at.1).map(f64::from);
            let own = self.recolored(DVec4::new(r, g, b, 1.0), at.0);
            (at, self.caster.under_layers(own, self.place(at.0)))
        });
        colored.collect()
    }

    /// Interval in which the value is linear, between two positions along the ray with their values.
    fn stretch(&self, mut color: DVec4, from: (f64, f64), to: (f64, f64)) -> DVec4 {
        let length = to.0 - from.0;
        for part in 0..PARTS {
            let share = (f64::from(part) + 0.5) / f64::from(PARTS);
            if !self.caster.layers.is_empty() {
                let part_world = length / f64::from(PARTS) * self.caster.step_world;
                let own = self.caster.layers_in_volume(self.place(from.0 + length * share), part_world);
                color += own * (1.0 - color.w);
            }
            let entry = self.caster.classes.of(from.1 + (to.1 - from.1) * share);
            if entry.w == 0.0 {
                continue;
            }
            let opacity = if length == 1.0 { entry.w } else { 1.0 - (1.0 - entry.w).powf(length) };
            let mut entry = self.recolored(entry * (opacity / entry.w), from.0 + length * share);
            if self.caster.scene.is_lit {
                entry = self.softly_lit(entry, from.0 + length * share);
            }
            color += entry * (1.0 - color.w);
        }
        color
    }

    fn recolored(&self, color: DVec4, i: f64) -> DVec4 {
        self.caster.recolored(color, self.place(i))
    }

    fn lit(&self, color: DVec4, i: f64) -> DVec4 {
        let dimmed = self.caster.dimming.cue_at(i * self.caster.step_world);
        surfaces::lit(self.caster, color, self.place(i), self.step, [0.0; 2], dimmed)
    }

    /// Light of the volume, softer where gradients are weak.
    fn softly_lit(&self, color: DVec4, i: f64) -> DVec4 {
        let place = self.place(i);
        let dimmed = self.caster.dimming.at(place, i * self.caster.step_world);
        surfaces::lit(self.caster, color, place, self.step, self.caster.soft_light(), dimmed)
    }
}

/// Parts of the interval between two samples.
const PARTS: u32 = 64;

/// Premultiplied colors of parts by value, eight times as fine as the caster's own table.
struct Classes {
    scale: RangeScale,
    low: f64,
    per_position: f64,
    entries: Vec<DVec4>,
}

impl Classes {
    const ENTRIES: usize = 1 << 14;

    fn new(scene: &Scene) -> Self {
        let transfer = &scene.transfer;
        let ([low, high], scale) = (transfer.domain(), transfer.range_scale());
        let per_position = (Self::ENTRIES - 1) as f64 / (high - low);
        let entry = |i: usize| {
            let value = scale.value(low + i as f64 / per_position);
            let thickness = scene.quality.step / f64::from(PARTS);
            let opacity = 1.0 - (1.0 - transfer.opacity_at(value)).powf(thickness);
            let [r, g, b] = transfer.color_at(value).map(f64::from);
            DVec4::new(r, g, b, 1.0) * opacity
        };
        Self { scale, low, per_position, entries: (0..Self::ENTRIES).map(entry).collect() }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    fn of(&self, value: f64) -> DVec4 {
        let position = self.scale.position(value);
        if position == f64::NEG_INFINITY {
            return DVec4::ZERO;
        }
        let place = ((position - self.low) * self.per_position).clamp(0.0, (Self::ENTRIES - 1) as f64);
        self.entries[place.round() as usize]
    }
}
