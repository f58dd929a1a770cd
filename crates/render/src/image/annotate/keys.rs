//! Title and color keys in a picture's upper left corner. The title is on a line of its own. Below it, each
//! color that is not on a scale has a row with a square of the color and a text.

use glam::DVec2;

use super::text::TextPlace;
use super::{Area, Depth, Notes, Pen, number_text};

/// Entry of the color key: a color and its meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct LegendKey {
    /// sRGB.
    pub color: [u8; 3],
    /// A few words.
    pub text: String,
}

impl LegendKey {
    /// Creates the key of a value, with units that may be empty.
    #[must_use]
    pub fn of_value(color: [u8; 3], value: f64, units: &str) -> Self {
        Self { color, text: format!("{} {units}", number_text(value)).trim_end().to_owned() }
    }
}

/// Distance of rows, in heights of letters.
const SPACING: f64 = 1.5;

/// Draws the entries; rows that do not fit are left out.
pub(super) fn draw(pen: &mut Pen<'_>, notes: &Notes) {
    let letters = f64::from(pen.writer.letters());
    let (_, height) = pen.size();
    let mut at = DVec2::new(1.5 * letters, 1.5 * letters);
    // The scale bar is below.
    let lowest = height as f64 - 4.5 * letters;
    if !notes.title.is_empty() {
        pen.write(&notes.title, at, TextPlace::Left);
        at.y += SPACING * letters;
    }
    for key in &notes.keys {
        if at.y > lowest {
            return;
        }
        square(pen, at, letters, key.color);
        pen.write(&key.text, at + DVec2::new(1.5 * letters, 0.0), TextPlace::Left);
        at.y += SPACING * letters;
    }
}

/// Draws a square with a row of text beside its middle.
#[expect(clippy::cast_possible_truncation, reason = "within the image")]
fn square(pen: &mut Pen<'_>, at: DVec2, side: f64, color: [u8; 3]) {
    let color = color.map(|c| f32::from(c) / 255.0);
    let corner = DVec2::new(at.x, at.y - side / 2.0);
    pen.taken.push(Area { from: corner, to: corner + DVec2::splat(side) });
    let (left, top, side) = (at.x as i64, (at.y - side / 2.0) as i64, side as i64);
    for y in top..top + side {
        for x in left..left + side {
            pen.dot(x, y, color, 1.0, Depth::Before);
        }
    }
}
