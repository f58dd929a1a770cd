//! A slow caster in double precision: no blocks, no table, no skipping, no early end.
//!
//! The same definition of a picture, written a second time: samples at multiples of the step from the eye,
//! trilinear between the eight nearest voxels (the outermost ones repeated); from each sample to the next the value
//! runs evenly, and that way is composited in many parts, colour and opacity from the transfer
//! function, opacity corrected for the length of a part, premultiplied, front to back.

use corridor_render::{Image, Mode, Projection, Scene};
use glam::{DVec3, DVec4};

use super::Synthetic;
#[path = "surfaces.rs"]
mod surfaces;

pub(crate) fn cast(synthetic: &Synthetic, scene: &Scene) -> Image {
    let density = if matches!(scene.mode, Mode::Maximum | Mode::Minimum) { 2.0 } else { 1.0 };
    let step_world = scene.view.spacing_world(0) * scene.quality.step / density;
    let (width, height) = (scene.size.width, scene.size.height);
    let classes = Classes::new(scene);
    let mut rgba = Vec::new();
    for row in 0..height {
        for column in 0..width {
            let across = (2.0 * (f64::from(column) + 0.5) / f64::from(width) - 1.0) * f64::from(width)
                / f64::from(height);
            let upward = 1.0 - 2.0 * (f64::from(row) + 0.5) / f64::from(height);
            let (origin, direction) = ray(scene, across, upward);
            rgba.push(trace(synthetic, scene, &classes, origin, direction * step_world).as_vec4().to_array());
        }
    }
    Image { size: scene.size, rgba }
}

fn ray(scene: &Scene, across: f64, upward: f64) -> (DVec3, DVec3) {
    let (eye, target) = (DVec3::from(scene.camera.eye), DVec3::from(scene.camera.target));
    let forward = (target - eye).normalize();
    let right = forward.cross(scene.camera.up.into()).normalize();
    let aside = right * across + right.cross(forward) * upward;
    match scene.camera.projection {
        Projection::Perspective { fov_y_rad } => {
            (eye, (forward + aside * (fov_y_rad / 2.0).tan()).normalize())
        }
        Projection::Orthographic { height_world } => (eye + aside * height_world / 2.0, forward),
    }
}

/// Where along the ray with its value, and in which colour.
type Hit = ((f64, f64), DVec4);

fn trace(synthetic: &Synthetic, scene: &Scene, classes: &Classes, origin: DVec3, step: DVec3) -> DVec4 {
    let map = scene.view.world_from_volume.inverse();
    let [z, y, x] = synthetic.shape.map(|n| n as f64);
    let size = DVec3::new(x, y, z);
    let mut colour = DVec4::ZERO;
    let is_drawn = |i: f64| {
        let world = origin + step * i;
        let p = map.transform_point3(world);
        let behind_eye = i < 0.0 && matches!(scene.camera.projection, Projection::Perspective { .. });
        let inside = p.cmpge(DVec3::splat(-0.5)).all() && p.cmplt(size - 0.5).all();
        let clipped = scene
            .clip
            .is_some_and(|c| world.cmplt(DVec3::from(c.min)).any() || world.cmpge(DVec3::from(c.max)).any());
        !behind_eye && inside && !clipped
    };
    let place = |i: f64| map.transform_point3(origin + step * i);
    let value_at = |i: f64| trilinear(synthetic, place(i).clamp(DVec3::ZERO, size - 1.0));
    let light = |colour: DVec4, i: f64| {
        if scene.is_lit && colour.w > 0.0 {
            surfaces::lit(synthetic, scene, colour, place(i), step)
        } else {
            colour
        }
    };
    // Far enough for every scene here; parallel rays begin behind the eye.
    const STEPS: std::ops::Range<i32> = -4000..4000;
    let values = || STEPS.map(f64::from).filter(|&i| is_drawn(i)).map(value_at);
    let extreme = match scene.mode {
        Mode::Maximum => values().reduce(f64::max),
        Mode::Minimum => values().reduce(f64::min),
        Mode::Composite | Mode::Surfaces => None,
    };
    let sheets: Vec<Hit> = scene
        .slices
        .iter()
        .map(|slice| {
            let axis = slice.axis.index();
            let at = (slice.at - place(0.0)[axis]) / (place(1.0)[axis] - place(0.0)[axis]);
            let value = value_at(at);
            ((at, value), scene.transfer.colour_at(value))
        })
        .filter(|((at, _), _)| at.is_finite())
        .map(|(at, [r, g, b])| (at, DVec4::new(r.into(), g.into(), b.into(), 1.0)))
        .collect();
    let has_depth = extreme.is_none() || !scene.surfaces.is_empty() || !scene.slices.is_empty();
    for i in STEPS.filter(|_| has_depth) {
        let (start, end) = (f64::from(i) - 1.0, f64::from(i));
        let has_sheet = sheets.iter().any(|sheet| (start..end).contains(&sheet.0.0));
        if !is_drawn(start) && !is_drawn(end) && !has_sheet {
            continue;
        }
        let mut from = (start, value_at(start));
        let surfaces = surfaces::hits(scene, &value_at, start, end);
        let mut hits: Vec<Hit> = surfaces
            .iter()
            .map(|hit| (hit.at, surfaces::lit(synthetic, scene, hit.colour(), place(hit.at.0), step)))
            .chain(sheets.iter().filter(|sheet| (start..end).contains(&sheet.0.0)).copied())
            .collect();
        hits.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
        for (at, hit) in hits.into_iter().filter(|hit| is_drawn(hit.0.0)) {
            if scene.mode == Mode::Composite {
                colour = stretch(classes, &light, colour, from, at);
            }
            colour += hit * (1.0 - colour.w);
            from = at;
        }
        // A step belongs to the sample at its end.
        if scene.mode == Mode::Composite && is_drawn(end) {
            colour = stretch(classes, &light, colour, from, (end, value_at(end)));
        }
    }
    // It has no depth, and stands behind all else.
    extreme.map_or(colour, |value| {
        let [r, g, b] = scene.transfer.colour_at(value).map(f64::from);
        colour + DVec4::new(r, g, b, 1.0) * (1.0 - colour.w)
    })
}

/// A way on which the value runs evenly, between two places along the ray with their values.
fn stretch(
    classes: &Classes,
    light: &impl Fn(DVec4, f64) -> DVec4,
    mut colour: DVec4,
    from: (f64, f64),
    to: (f64, f64),
) -> DVec4 {
    let length = to.0 - from.0;
    for part in 0..PARTS {
        let share = (f64::from(part) + 0.5) / f64::from(PARTS);
        let entry = classes.of(from.1 + (to.1 - from.1) * share);
        let opacity = 1.0 - (1.0 - entry.w).powf(length);
        let entry = if entry.w > 0.0 { entry * (opacity / entry.w) } else { entry };
        colour += light(entry, from.0 + length * share) * (1.0 - colour.w);
    }
    colour
}

/// Parts of the way between two samples.
const PARTS: u32 = 64;

/// The premultiplied colours of parts by value, eight times as fine as the caster's own table.
struct Classes {
    low: f64,
    per_value: f64,
    entries: Vec<DVec4>,
}

impl Classes {
    const ENTRIES: usize = 1 << 14;

    fn new(scene: &Scene) -> Self {
        let transfer = &scene.transfer;
        let values = || transfer.opacity.iter().map(|p| p.value).chain(transfer.range);
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(-f64::INFINITY, f64::max));
        let per_value = (Self::ENTRIES - 1) as f64 / (high - low);
        let entry = |i: usize| {
            let value = low + i as f64 / per_value;
            let thickness = scene.quality.step / f64::from(PARTS);
            let opacity = 1.0 - (1.0 - transfer.opacity_at(value)).powf(thickness);
            let [r, g, b] = transfer.colour_at(value).map(f64::from);
            DVec4::new(r, g, b, 1.0) * opacity
        };
        Self { low, per_value, entries: (0..Self::ENTRIES).map(entry).collect() }
    }

    #[expect(clippy::allow_attributes, reason = "some tests expect it for all of the crate")]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    fn of(&self, value: f64) -> DVec4 {
        let place = ((value - self.low) * self.per_value).clamp(0.0, (Self::ENTRIES - 1) as f64);
        self.entries[place.round() as usize]
    }
}

pub(crate) fn trilinear(synthetic: &Synthetic, p: DVec3) -> f64 {
    let cell = p.floor();
    let share = p - cell;
    let [z, y, x] = synthetic.shape.map(|n| n as f64 - 1.0);
    (0..8u32)
        .map(|corner| {
            let up = DVec3::from_array([0, 1, 2].map(|axis| f64::from(corner >> axis & 1)));
            let weight = DVec3::select(up.cmpgt(DVec3::ZERO), share, 1.0 - share);
            let value = synthetic.kept(0, (cell + up).min(DVec3::new(x, y, z)));
            weight.x * weight.y * weight.z * value
        })
        .sum()
}
