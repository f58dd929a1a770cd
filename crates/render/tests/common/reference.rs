//! A slow caster in double precision: no blocks, no table, no skipping, no early end.
//!
//! The same definition of a picture, written a second time: samples at multiples of the step from the eye,
//! trilinear between the eight nearest voxels (the outermost ones repeated), colour and opacity straight from
//! the transfer function, opacity corrected for the length of the step, premultiplied, front to back.

use corridor_render::{Image, Projection, Scene};
use glam::{DVec3, DVec4};

use super::Synthetic;

pub(crate) fn cast(synthetic: &Synthetic, scene: &Scene) -> Image {
    let step_world = scene.view.spacing_world(0) * scene.quality.step;
    let (width, height) = (scene.size.width, scene.size.height);
    let mut rgba = Vec::new();
    for row in 0..height {
        for column in 0..width {
            let across = (2.0 * (f64::from(column) + 0.5) / f64::from(width) - 1.0) * f64::from(width)
                / f64::from(height);
            let upward = 1.0 - 2.0 * (f64::from(row) + 0.5) / f64::from(height);
            let (origin, direction) = ray(scene, across, upward);
            rgba.push(trace(synthetic, scene, origin, direction * step_world).as_vec4().to_array());
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

fn trace(synthetic: &Synthetic, scene: &Scene, origin: DVec3, step: DVec3) -> DVec4 {
    let map = scene.view.world_from_volume.inverse();
    let [z, y, x] = synthetic.shape.map(|n| n as f64);
    let size = DVec3::new(x, y, z);
    let mut colour = DVec4::ZERO;
    // Far enough for every scene here; parallel rays begin behind the eye.
    for i in -4000..4000 {
        let world = origin + step * f64::from(i);
        let p = map.transform_point3(world);
        let behind_eye = i < 0 && matches!(scene.camera.projection, Projection::Perspective { .. });
        let inside = p.cmpge(DVec3::splat(-0.5)).all() && p.cmplt(size - 0.5).all();
        let clipped = scene
            .clip
            .is_some_and(|c| world.cmplt(DVec3::from(c.min)).any() || world.cmpge(DVec3::from(c.max)).any());
        if behind_eye || !inside || clipped {
            continue;
        }
        let value = trilinear(synthetic, p.clamp(DVec3::ZERO, size - 1.0));
        let opacity = 1.0 - (1.0 - scene.transfer.opacity_at(value)).powf(scene.quality.step);
        let [r, g, b] = scene.transfer.colour_at(value).map(f64::from);
        colour += DVec4::new(r, g, b, 1.0) * opacity * (1.0 - colour.w);
    }
    colour
}

fn trilinear(synthetic: &Synthetic, p: DVec3) -> f64 {
    let cell = p.floor();
    let share = p - cell;
    let [z, y, x] = synthetic.shape.map(|n| n as f64 - 1.0);
    (0..8u32)
        .map(|corner| {
            let up = DVec3::from_array([0, 1, 2].map(|axis| f64::from(corner >> axis & 1)));
            let weight = DVec3::select(up.cmpgt(DVec3::ZERO), share, 1.0 - share);
            let value = synthetic.value(0, (cell + up).min(DVec3::new(x, y, z)));
            weight.x * weight.y * weight.z * value
        })
        .sum()
}
