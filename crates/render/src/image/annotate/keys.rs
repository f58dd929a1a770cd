//! Title and color keys in a picture's upper left corner. The title is on a line of its own. Below it, each
//! color that is not on a scale has a row with a square of the color and a text.

use glam::DVec2;

use super::layout::{Corner, Outline};
use super::notes::Notes;
use super::numbers::number_text;
use super::pen::{Depth, Pen};
use super::text::TextPlace;

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

/// Draws the title and the entries beside the data if there is room; rows that do not fit are left out.
#[expect(clippy::cast_precision_loss, reason = "sizes of pictures, few rows")]
pub(super) fn draw(pen: &mut Pen<'_>, notes: &Notes, outline: &Outline) {
    let letters = f64::from(pen.writer.letters());
    let (_, height) = pen.size();
    let corner = Corner { right: false, bottom: false };
    if !notes.title.is_empty() {
        let size = DVec2::new(pen.writer.width(&notes.title), letters);
        let place = pen.corner_or_over(corner, size, outline);
        // A title that is too long is cut by the image.
        let at = place.map_or(DVec2::splat(letters), |area| area.from) + DVec2::new(0.0, letters / 2.0);
        pen.write(&notes.title, at, TextPlace::Left);
    }
    // The scale bar is below.
    let room = (height as f64 - 6.0 * letters) / (SPACING * letters);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rows of an image")]
    let shown = &notes.keys[..notes.keys.len().min(room.max(0.0) as usize)];
    let widest = shown.iter().map(|key| pen.writer.width(&key.text)).fold(0.0, f64::max);
    let size = DVec2::new(widest + 1.5 * letters, SPACING * letters * shown.len() as f64);
    let Some(area) = pen.corner_or_over(corner, size, outline).filter(|_| !shown.is_empty()) else { return };
    pen.taken.push(area);
    for (row, key) in shown.iter().enumerate() {
        let at = area.from + DVec2::new(0.0, SPACING * letters * (row as f64 + 0.5));
        square(pen, at, letters, key.color);
        pen.write_at(&key.text, at + DVec2::new(1.5 * letters, 0.0), TextPlace::Left);
    }
}

/// Draws a square with a row of text beside its middle.
#[expect(clippy::cast_possible_truncation, reason = "within the image")]
fn square(pen: &mut Pen<'_>, at: DVec2, side: f64, color: [u8; 3]) {
    let color = color.map(|c| f32::from(c) / 255.0);
    let (left, top, side) = (at.x as i64, (at.y - side / 2.0) as i64, side as i64);
    for y in top..top + side {
        for x in left..left + side {
            pen.dot(x, y, color, 1.0, Depth::Before);
        }
    }
}
