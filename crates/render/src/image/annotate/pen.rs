//! Lines, text and grounds in a picture.

use std::ops::Range;

use glam::DVec2;

use super::text::{TextPlace, TextWriter, spread};
use crate::ImageSize;
use crate::image::Image;
use crate::image::raster::line_in_rows;

/// Rows of the image for each row of text.
const ROWS_PER_LINE: u32 = 45;
/// Smallest and largest letters, pixels.
const LETTERS: (f32, f32) = (11.0, 400.0);
/// Opacity of lines; text is opaque.
const LINE_OPACITY: f32 = 0.6;
/// Size of letters for each pixel that a line is wide.
const LETTERS_PER_WIDTH: f32 = 40.0;
/// Widest rim around text, pixels.
const MAX_RIM: f32 = 16.0;
/// Opacity of the rim around text.
const RIM_OPACITY: f32 = 0.6;
/// Opacity of the ground behind what lies over data.
const PLATE_OPACITY: f32 = 0.6;

/// Draws onto the rows of an image.
pub(super) struct Pen<'a> {
    pub(super) image: &'a mut Image,
    /// First row.
    pub(super) top: i64,
    /// Size of the whole image.
    pub(super) whole: ImageSize,
    pub(super) writer: TextWriter,
    pub(super) ink: [f32; 3],
    /// Areas of the image that contain text.
    pub(super) taken: Vec<Area>,
}

/// Area of the image, pixels: its upper left and its lower right corner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) from: DVec2,
    pub(super) to: DVec2,
}

impl Area {
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.from.cmplt(other.to).all() && other.from.cmplt(self.to).all()
    }
}

/// Layer of a drawing: before or behind the content of the picture.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Before,
    Behind,
}

impl<'a> Pen<'a> {
    /// Returns a pen for some rows of a picture of size `whole`, from row `top` on.
    pub(super) fn new(image: &'a mut Image, top: u32, whole: ImageSize, is_dark: bool) -> Self {
        let ink = if is_dark { [0.85; 3] } else { [0.1; 3] };
        let letters = (whole.height as f32 / ROWS_PER_LINE as f32).clamp(LETTERS.0, LETTERS.1);
        Pen { image, top: i64::from(top), whole, writer: TextWriter::new(letters), ink, taken: Vec::new() }
    }
}

impl Pen<'_> {
    pub(super) fn size(&self) -> (i64, i64) {
        (i64::from(self.whole.width), i64::from(self.whole.height))
    }

    /// Returns the rows that are drawn on.
    pub(super) fn rows(&self) -> Range<i64> {
        self.top..self.top + i64::from(self.image.size.height)
    }

    /// Returns those of some rows that are drawn on.
    pub(super) fn rows_of(&self, rows: Range<i64>) -> Range<i64> {
        let own = self.rows();
        rows.start.max(own.start)..rows.end.min(own.end)
    }

    /// Blends a color into a pixel, if the pixel exists.
    pub(super) fn dot(&mut self, x: i64, y: i64, color: [f32; 3], opacity: f32, depth: Depth) {
        let (width, _) = self.size();
        if !(0..width).contains(&x) || !self.rows().contains(&y) {
            return;
        }
        let Ok(at) = usize::try_from((y - self.top) * width + x) else { return };
        let Some(pixel) = self.image.rgba.get_mut(at) else { return };
        let [r, g, b] = color.map(|c| c * opacity);
        let dot = [r, g, b, opacity];
        let (front, back) = if depth == Depth::Before { (dot, *pixel) } else { (*pixel, dot) };
        *pixel = std::array::from_fn(|c| front[c] + back[c] * (1.0 - front[3]));
    }

    /// A line with soft edges: one pixel wide, wider in large pictures.
    pub(super) fn line(&mut self, a: DVec2, b: DVec2, depth: Depth) {
        self.wide_line(a, b, self.ink, LINE_OPACITY, depth);
    }

    pub(super) fn colored_line(&mut self, a: DVec2, b: DVec2, color: [f32; 3], depth: Depth) {
        self.wide_line(a, b, color, 1.0, depth);
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few pixels")]
    pub(super) fn wide_line(&mut self, a: DVec2, b: DVec2, color: [f32; 3], opacity: f32, depth: Depth) {
        let (size, rows) = (self.whole, self.rows());
        let width = (self.writer.letters() / LETTERS_PER_WIDTH).round().max(1.0) as u32;
        let is_steep = (b - a).y.abs() > (b - a).x.abs();
        let across = if is_steep { DVec2::X } else { DVec2::Y };
        for number in 0..width {
            let aside = across * (f64::from(number) - f64::from(width - 1) / 2.0);
            line_in_rows(a + aside, b + aside, size, rows.clone(), |x, y, covered, _| {
                self.dot(x, y, color, covered * opacity, depth);
            });
        }
    }

    /// Draws a row of text; `place` selects the part of the text that lies at `at`. The text is moved into
    /// the image if it fits.
    pub(super) fn write(&mut self, text: &str, at: DVec2, place: TextPlace) {
        let (at, area) = self.room(text, at, place);
        self.taken.push(area);
        self.write_at(text, at, place);
    }

    /// Draws a row of text with a rim, which makes it legible over data of any color.
    pub(super) fn write_at(&mut self, text: &str, at: DVec2, place: TextPlace) {
        #[expect(clippy::cast_possible_truncation, reason = "a few pixels")]
        let radius = (self.writer.letters() / 9.0).ceil().min(MAX_RIM) as i64;
        let (rows, far) = (self.rows(), 2.0 * f64::from(self.writer.letters()));
        if at.y + far < rows.start as f64 || at.y - far > rows.end as f64 {
            return;
        }
        let (ink, rim) = (self.ink, self.rim());
        let mut pixels = self.writer.pixels(text, at, place);
        pixels.retain(|&(_, y, _)| (rows.start - radius..rows.end + radius).contains(&y));
        for (x, y, coverage) in spread(&pixels, radius) {
            self.dot(x, y, rim, coverage * RIM_OPACITY, Depth::Before);
        }
        for (x, y, coverage) in pixels {
            self.dot(x, y, ink, coverage, Depth::Before);
        }
    }

    /// Color of rims and grounds: that of the background, about.
    pub(super) fn rim(&self) -> [f32; 3] {
        if self.ink[0] > 0.5 { [0.0; 3] } else { [1.0; 3] }
    }

    /// Draws a half-transparent ground, for marks over data.
    #[expect(clippy::cast_possible_truncation, reason = "within the image")]
    pub(super) fn plate(&mut self, area: &Area) {
        let rim = self.rim();
        let letters = f64::from(self.writer.letters()) / 2.0;
        let (from, to) = (area.from - letters, area.to + letters);
        for y in self.rows_of(from.y as i64..to.y as i64) {
            for x in from.x as i64..to.x as i64 {
                self.dot(x, y, rim, PLATE_OPACITY, Depth::Before);
            }
        }
    }

    /// Returns the position of a row of text after it is moved into the image, and the area that it covers.
    pub(super) fn room(&self, text: &str, mut at: DVec2, place: TextPlace) -> (DVec2, Area) {
        let (long, (width, height)) = (self.writer.width(text), self.size());
        let before = match place {
            TextPlace::Left => 0.0,
            TextPlace::Middle => long / 2.0,
            TextPlace::Right => long,
        };
        let letters = f64::from(self.writer.letters());
        let edge = letters / 2.0;
        at.x = (at.x - before).min(width as f64 - edge - long).max(edge) + before;
        at.y = at.y.min(height as f64 - edge).max(edge);
        let from = at - DVec2::new(before, letters / 2.0);
        (at, Area { from, to: from + DVec2::new(long, letters) })
    }
}
