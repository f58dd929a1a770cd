//! Scale bar: a round length in the world, true at the depth of the camera's target, with the prefix that fits. A map of degrees has
//! lengths at one latitude only, that of its center.

use glam::DVec2;

use super::layout::{Corner, Outline};
use super::notes::Notes;
use super::numbers::{number_text, round_below};
use super::pen::{Depth, Pen};
use super::text::TextPlace;
use crate::scene::camera::Lens;

/// Largest share of the image's width that a scale bar may take.
const SCALE_SHARE: f64 = 0.2;
/// Kilometers of a degree of latitude.
const DEGREE_KM: f64 = 111.195;
/// Latitude beyond which a map's scale changes too much within a bar.
const MAX_LATITUDE: f64 = 75.0;
/// Longest bar on a map, kilometers: a quarter around the Earth.
const MAX_KM: f64 = 10_000.0;

/// Draws the bar if a length is true in the picture.
#[expect(clippy::cast_precision_loss, reason = "sizes of pictures")]
pub(super) fn draw(pen: &mut Pen<'_>, lens: &Lens, notes: &Notes, outline: &Outline) {
    let (width, height) = pen.size();
    let world_per_pixel = notes.camera.height_at_target() / height as f64;
    let most = width as f64 * SCALE_SHARE;
    let Some((pixels, label)) = bar(notes, lens, world_per_pixel, most) else { return };
    let letters = f64::from(pen.writer.letters());
    let size = DVec2::new(pixels.max(pen.writer.width(&label)), 1.8 * letters);
    let Some(area) = pen.corner_or_over(Corner { right: false, bottom: true }, size, outline) else { return };
    let middle = (area.from.x + area.to.x) / 2.0;
    let left = DVec2::new(middle - pixels / 2.0, area.to.y - 0.3 * letters);
    let right = left + DVec2::new(pixels, 0.0);
    let tick = DVec2::new(0.0, 0.35 * letters);
    for (a, b) in [(left, right), (left - tick, left + tick), (right - tick, right + tick)] {
        pen.line(a, b, Depth::Before);
        pen.line(a, b, Depth::Before);
    }
    pen.write_at(&label, DVec2::new(middle, area.from.y + 0.5 * letters), TextPlace::Middle);
    pen.taken.push(area);
}

/// Length of the bar in pixels, at most `most`, and its text.
fn bar(notes: &Notes, lens: &Lens, world_per_pixel: f64, most: f64) -> Option<(f64, String)> {
    if notes.is_map {
        let latitude = notes.camera.target[1];
        let is_straight = lens.right.x.abs() > 0.9998 && lens.up.y.abs() > 0.9998;
        if !is_straight || latitude.abs() > MAX_LATITUDE {
            return None;
        }
        let km_per_pixel = world_per_pixel * DEGREE_KM * latitude.to_radians().cos();
        let length = round_below(km_per_pixel * most);
        let side = if latitude.round() == 0.0 {
            ""
        } else if latitude > 0.0 {
            "N"
        } else {
            "S"
        };
        let text = format!("{} at {:.0}°{side}", length_text(length, "km"), latitude.abs());
        return (length > 0.0 && length <= MAX_KM).then(|| (length / km_per_pixel, text));
    }
    let is_shown = |axis: usize| {
        let sight = lens.forward.to_array()[axis].abs();
        notes.axes[axis].samples.len() > 1 && sight < 0.9998
    };
    let is_true = (0..3).filter(|&axis| is_shown(axis)).all(|axis| notes.axes[axis].is_to_scale);
    let length = round_below(world_per_pixel * most);
    (is_true && length > 0.0 && length.is_finite())
        .then(|| (length / world_per_pixel, length_text(length, &notes.world_units)))
}

/// Text of a length: 0.002 `mm` is `2 µm`; unknown units stay. From 10 cm on lengths are in centimeters, from 1 m in meters.
fn length_text(length: f64, units: &str) -> String {
    const PREFIXES: [(f64, f64, &str); 6] = [
        (1e3, 1e3, "km"),
        (1.0, 1.0, "m"),
        (0.1, 1e-2, "cm"),
        (1e-3, 1e-3, "mm"),
        (1e-6, 1e-6, "µm"),
        (0.0, 1e-9, "nm"),
    ];
    let meters = meters_of(units).map(|meters| meters * length).filter(|m| (1e-11..1e9).contains(m));
    let Some(meters) = meters else {
        return format!("{} {units}", number_text(length)).trim_end().to_owned();
    };
    let prefix = PREFIXES.into_iter().find(|(least, ..)| meters >= least * (1.0 - 1e-9));
    let (_, unit, name) = prefix.unwrap_or(PREFIXES[5]);
    format!("{} {name}", number_text(meters / unit))
}

/// Meters of a unit of length, by its names in files.
fn meters_of(units: &str) -> Option<f64> {
    let units = units.trim();
    // Words have a plural, symbols do not: `ms` are milliseconds.
    let word = units.strip_suffix('s').unwrap_or(units);
    Some(match (units, word) {
        ("Å", _) | (_, "angstrom" | "Angstrom") => 1e-10,
        ("nm", _) | (_, "nanometer" | "nanometre") => 1e-9,
        ("um" | "µm" | "μm", _) | (_, "micron" | "micrometer" | "micrometre") => 1e-6,
        ("mm", _) | (_, "millimeter" | "millimetre") => 1e-3,
        ("cm", _) | (_, "centimeter" | "centimetre") => 1e-2,
        ("m", _) | (_, "meter" | "metre") => 1.0,
        ("km", _) | (_, "kilometer" | "kilometre") => 1e3,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_the_prefix_that_fits() {
        for (length, units, text) in [
            (0.002, "mm", "2 µm"),
            (50.0, "micrometer", "50 µm"),
            (1000.0, "um", "1 mm"),
            (50.0, "mm", "50 mm"),
            (200.0, "mm", "20 cm"),
            (5000.0, "m", "5 km"),
            (1e-9, "m", "1 nm"),
            (2e21, "m", "2e21 m"),
            (5.0, "Mpc", "5 Mpc"),
            (5.0, "", "5"),
            (2.0, "meters", "2 m"),
            (50.0, "microns", "50 µm"),
            (5.0, "ms", "5 ms"),
            (5000.0, "mms", "5000 mms"),
        ] {
            assert_eq!(length_text(length, units), text, "{length} {units}");
        }
    }
}
