//! Color bar: the colors of a color map with ticks at round values, beside the data if there is room. Upright at the right, or level
//! above or below.

use glam::DVec2;

use super::axis::AxisNote;
use super::layout::{Corner, Outline};
use super::notes::Notes;
use super::numbers::number_text;
use super::pen::{Area, Depth, Pen};
use super::text::TextPlace;
use crate::scene::color_map::{COLORS, color_map_table, is_categorical};
use crate::scene::transfer::TransferFunction;

/// Largest length of the bar, as shares of the picture's height and width.
const UPRIGHT_SHARE: f64 = 0.4;
const LEVEL_SHARE: f64 = 0.45;
/// Distance of ticks, heights of letters.
const APART: f64 = 2.5;
const APART_ACROSS: f64 = 5.0;

struct Bar<'a> {
    transfer: &'a TransferFunction,
    colors: [[u8; 3]; COLORS],
    is_upright: bool,
    /// Length of the colors.
    long: f64,
    /// Share of the length from the low end, and text.
    ticks: Vec<(f64, String)>,
    /// Room that text takes beside the colors.
    widest: f64,
    size: DVec2,
}

/// Draws the bar; there is none for labels and packed colors, which have no order.
pub(super) fn draw(pen: &mut Pen<'_>, notes: &Notes, outline: &Outline) {
    let corner = |right, bottom| Corner { right, bottom };
    let tries = [
        (true, corner(true, false), true),
        (false, corner(true, true), true),
        (false, corner(true, false), true),
        (true, corner(false, false), true),
        (true, corner(true, false), false),
        (false, corner(true, false), false),
    ];
    for (is_upright, corner, is_beside) in tries {
        let Some(bar) = Bar::new(pen, notes, is_upright) else { return };
        if let Some(area) = pen.corner(corner, bar.size, is_beside.then_some(outline)) {
            if !is_beside {
                pen.plate(&area);
            }
            bar.draw(pen, notes, &area);
            pen.taken.push(area);
            return;
        }
    }
}

impl<'a> Bar<'a> {
    fn new(pen: &Pen<'_>, notes: &'a Notes, is_upright: bool) -> Option<Self> {
        let transfer = notes.transfer.as_ref().filter(|t| !is_categorical(&t.color_map))?;
        let colors = color_map_table(&transfer.color_map)?;
        let (width, height) = pen.size();
        let letters = f64::from(pen.writer.letters());
        let [low, high] = transfer.range;
        #[expect(clippy::cast_precision_loss, reason = "sizes of pictures")]
        let (side, share, apart) = if is_upright {
            (height as f64, UPRIGHT_SHARE, APART)
        } else {
            (width as f64, LEVEL_SHARE, APART_ACROSS)
        };
        let long = (side * share).min(25.0 * letters);
        let (count, scale) = (long / (apart * letters), transfer.range_scale());
        let mut ticks = if transfer.scale.is_linear() {
            AxisNote::of_world("", "", [low, high]).ticks([0.0, 1.0], count)
        } else {
            scale.powers(count).into_iter().map(|value| (scale.share(value), number_text(value))).collect()
        };
        if ticks.len() < 2 {
            ticks = vec![(0.0, number_text(low)), (1.0, number_text(high))];
        }
        let widest = ticks.iter().map(|(_, text)| pen.writer.width(text)).fold(0.0, f64::max);
        let title = pen.writer.width(&notes.values);
        let size = if is_upright {
            DVec2::new((1.6 * letters + widest).max(title), long + 2.5 * letters)
        } else {
            DVec2::new((long + widest).max(title), 4.0 * letters)
        };
        Some(Self { transfer, colors, is_upright, long, ticks, widest, size })
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "within the image")]
    fn draw(&self, pen: &mut Pen<'_>, notes: &Notes, area: &Area) {
        let letters = f64::from(pen.writer.letters());
        // Upper left corner of the colors, their columns and rows.
        let (corner, columns, rows) = if self.is_upright {
            let left = area.to.x - 1.6 * letters - self.widest;
            (DVec2::new(left, area.from.y + 2.0 * letters), letters as i64, self.long as i64)
        } else {
            let left = (area.from.x + area.to.x - self.long) / 2.0;
            (DVec2::new(left, area.from.y + 1.4 * letters), self.long as i64, letters as i64)
        };
        let (left, top) = (corner.x as i64, corner.y as i64);
        for row in pen.rows_of(top..top + rows).map(|row| row - top) {
            for column in 0..columns {
                let share = if self.is_upright {
                    1.0 - row as f64 / (rows - 1).max(1) as f64
                } else {
                    column as f64 / (columns - 1).max(1) as f64
                };
                pen.dot(left + column, top + row, self.color_at(share), 1.0, Depth::Before);
            }
        }
        for (share, text) in &self.ticks {
            if self.is_upright {
                let at = corner + DVec2::new(letters, self.long * (1.0 - share));
                pen.line(at, at + DVec2::new(letters * 0.3, 0.0), Depth::Before);
                pen.write_at(text, at + DVec2::new(letters * 0.5, 0.0), TextPlace::Left);
            } else {
                let at = corner + DVec2::new(self.long * share, letters);
                pen.line(at, at + DVec2::new(0.0, letters * 0.3), Depth::Before);
                pen.write_at(text, at + DVec2::new(0.0, letters), TextPlace::Middle);
            }
        }
        let (at, place) = if self.is_upright {
            (DVec2::new(area.to.x, area.from.y + 0.6 * letters), TextPlace::Right)
        } else {
            (DVec2::new((area.from.x + area.to.x) / 2.0, area.from.y + 0.6 * letters), TextPlace::Middle)
        };
        pen.write_at(&notes.values, at, place);
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "0 to 255"
    )]
    fn color_at(&self, share: f64) -> [f32; 3] {
        let share = if self.transfer.reversed { 1.0 - share } else { share };
        self.colors[((share * (COLORS - 1) as f64).round() as usize).min(COLORS - 1)]
            .map(|c| f32::from(c) / 255.0)
    }
}
