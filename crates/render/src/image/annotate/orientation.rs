//! Orientation: letters of a person's sides at the borders, or a small cross of the world's axes in a corner.

use glam::{DVec2, DVec3};

use super::axis::AxisQuantity;
use super::layout::{Corner, Outline};
use super::notes::Notes;
use super::pen::{Depth, Pen};
use super::text::TextPlace;
use crate::scene::camera::Lens;

/// Letters of the directions of a person, towards -x and +x, and so on.
const LETTERS: [[&str; 2]; 3] = [["L", "R"], ["P", "A"], ["I", "S"]];
/// Smallest component of a direction that has a letter.
const LEAST: f64 = 0.35;
/// Most letters of one direction.
const MOST_LETTERS: usize = 2;
/// Length of an arm, heights of letters.
const ARM: f64 = 1.8;
/// Arms shorter than this share point along the line of sight and have no name.
const SHORTEST: f64 = 0.25;
/// Colors of the axes, distinct on light and dark grounds.
const COLORS: [[u8; 3]; 3] = [[213, 94, 0], [43, 147, 72], [58, 134, 224]];

/// Letters of a direction in anatomical space, the largest part first.
pub(super) fn letters_of(direction: DVec3) -> String {
    let mut parts: Vec<(f64, usize)> = direction.to_array().into_iter().zip(0..).collect();
    parts.retain(|(part, _)| part.abs() >= LEAST);
    parts.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    parts.iter().take(MOST_LETTERS).map(|&(part, axis)| LETTERS[axis][usize::from(part > 0.0)]).collect()
}

/// Writes the letters of a person's sides; before other text, which yields.
#[expect(clippy::cast_precision_loss, reason = "sizes of pictures")]
pub(super) fn letters(pen: &mut Pen<'_>, lens: &Lens, notes: &Notes) {
    if !notes.is_anatomical {
        return;
    }
    let (width, height) = pen.size();
    let (width, height, edge) = (width as f64, height as f64, f64::from(pen.writer.letters()));
    for (direction, at) in [
        (-lens.right, DVec2::new(edge, height / 2.0)),
        (lens.right, DVec2::new(width - edge, height / 2.0)),
        (lens.up, DVec2::new(width / 2.0, edge)),
        (-lens.up, DVec2::new(width / 2.0, height - edge)),
    ] {
        pen.write(&letters_of(direction), at, TextPlace::Middle);
    }
}

/// Draws the cross, except for a person, whose letters say more.
pub(super) fn cross(pen: &mut Pen<'_>, lens: &Lens, notes: &Notes, outline: &Outline) {
    if notes.is_anatomical {
        return;
    }
    let letters = f64::from(pen.writer.letters());
    let side = DVec2::splat(2.0 * (ARM + 1.1) * letters);
    let Some(area) = pen.corner_or_over(Corner { right: true, bottom: true }, side, outline) else { return };
    let center = (area.from + area.to) / 2.0;
    pen.taken.push(area);
    let mut arms = [0, 1, 2].map(|axis| {
        let along = DVec3::AXES[axis];
        (axis, DVec2::new(lens.right.dot(along), -lens.up.dot(along)), lens.forward.dot(along))
    });
    // The nearest arm is drawn last.
    arms.sort_by(|a, b| b.2.total_cmp(&a.2));
    for (axis, direction, _) in arms {
        let tip = center + direction * ARM * letters;
        let color = COLORS[axis].map(|c| f32::from(c) / 255.0);
        for _ in 0..2 {
            pen.colored_line(center, tip, color, Depth::Before);
        }
        if direction.length() < SHORTEST {
            continue;
        }
        pen.write_at(
            &arm_name(notes, axis),
            center + direction.normalize() * (ARM * direction.length() + 0.7) * letters,
            TextPlace::Middle,
        );
    }
}

fn arm_name(notes: &Notes, axis: usize) -> String {
    match notes.axes[axis].quantity {
        AxisQuantity::Longitude => "E".into(),
        AxisQuantity::Latitude => "N".into(),
        _ if notes.axes[axis].name.chars().count() <= 2 => notes.axes[axis].name.clone(),
        _ => ["x", "y", "z"][axis].into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_have_the_letters_of_a_person() {
        assert_eq!(letters_of(DVec3::X), "R");
        assert_eq!(letters_of(DVec3::new(-0.6, -0.8, 0.1)), "PL");
        assert_eq!(letters_of(DVec3::new(0.0, 0.2, -0.98)), "I");
    }
}
