//! Plot of the values of an array with one long axis: a line, or its extremes where several values share a column of pixels, with ticks.

use std::ops::Range;

use glam::DVec2;

use super::axis::{AxisNote, AxisQuantity};
use super::pen::{Depth, Pen};
use super::text::TextPlace;
use crate::ImageSize;
use crate::image::Image;
use crate::image::raster::line_in_rows;

/// Color of the line over a dark and over a light background.
const LINE_COLORS: [[f32; 3]; 2] = [[0.56, 0.83, 1.0], [0.0, 0.32, 0.55]];
/// Opacity of grid lines.
const GRID_OPACITY: f32 = 0.18;
/// Share of the range of values that stays free above and below the line.
const MARGIN: f64 = 0.05;
/// Letters of the widest text beside the upright axis.
const SIDE_LETTERS: f64 = 6.0;

/// Values along an axis, to draw as a plot.
#[derive(Clone, Debug)]
pub struct LinePlot {
    /// Axis from the left of the plot to its right.
    pub axis: AxisNote,
    /// Text above the plot.
    pub title: String,
    /// Share of the axis and extremes of the values of each column, in order; `None` where there is no value.
    pub columns: Vec<(f64, Option<[f64; 2]>)>,
    /// True if the picture lies over a dark background.
    pub is_dark: bool,
}

impl LinePlot {
    /// Draws the plot, without a background.
    #[must_use]
    pub fn draw(&self, size: ImageSize) -> Image {
        self.draw_rows(size, 0..size.height)
    }

    /// Draws some rows of the plot in a picture of size `whole`, without a background: those that [`draw`](Self::draw)
    /// draws there.
    #[must_use]
    pub fn draw_rows(&self, whole: ImageSize, rows: Range<u32>) -> Image {
        let size = ImageSize { width: whole.width, height: rows.end.saturating_sub(rows.start) };
        let pixels = size.width as usize * size.height as usize;
        let mut image = Image { size, rgba: vec![[0.0; 4]; pixels] };
        let mut pen = Pen::new(&mut image, rows.start, whole, self.is_dark);
        let size = whole;
        let letters = pen.writer.letters();
        let frame = PlotFrame::of(size, f64::from(letters));
        let values = self.value_axis();
        frame.draw_grid(&mut pen, &self.axis, values.as_ref());
        if let Some(values) = values {
            self.draw_line(&mut pen, &frame, [values.samples[0][1], values.samples[1][1]]);
        }
        pen.write(&self.title, frame.at([0.0, 1.0]) - DVec2::new(0.0, f64::from(letters)), TextPlace::Left);
        image
    }

    /// Returns the upright axis; `None` without any value.
    fn value_axis(&self) -> Option<AxisNote> {
        let values = self.columns.iter().filter_map(|(_, extremes)| *extremes);
        let (low, high) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), [a, b]| (low.min(a), high.max(b)));
        if low > high {
            return None;
        }
        // Equal values lie in the middle.
        let margin = if high > low { MARGIN * (high - low) } else { (high.abs() * MARGIN).max(0.5) };
        Some(AxisNote {
            name: String::new(),
            units: String::new(),
            quantity: AxisQuantity::Number,
            samples: vec![[0.0, low - margin], [1.0, high + margin]],
            is_to_scale: false,
        })
    }

    fn draw_line(&self, pen: &mut Pen<'_>, frame: &PlotFrame, [low, high]: [f64; 2]) {
        let color = LINE_COLORS[usize::from(!self.is_dark)];
        let mut last: Option<DVec2> = None;
        for &(share, extremes) in &self.columns {
            let Some(extremes) = extremes else {
                last = None;
                continue;
            };
            let [lower, upper] = extremes.map(|value| frame.at([share, (value - low) / (high - low)]));
            // Also a value between two gaps is seen.
            let from = last.unwrap_or(lower - DVec2::new(1.0, 0.0));
            pen.colored_line(from, lower, color, Depth::Before);
            if lower != upper {
                pen.colored_line(lower, upper, color, Depth::Before);
            }
            last = Some(upper);
        }
    }
}

/// Rectangle of the plot in the image, pixels.
struct PlotFrame {
    from: DVec2,
    to: DVec2,
    letters: f64,
}

impl PlotFrame {
    fn of(size: ImageSize, letters: f64) -> Self {
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let from = DVec2::new((letters * SIDE_LETTERS).min(width / 3.0), (2.5 * letters).min(height / 4.0));
        let to =
            DVec2::new(width - (2.0 * letters).min(width / 8.0), height - (3.5 * letters).min(height / 3.0));
        Self { from, to, letters }
    }

    /// Returns the pixel at shares of the axes; the second one points upward.
    fn at(&self, [right, up]: [f64; 2]) -> DVec2 {
        let size = self.to - self.from;
        DVec2::new(self.from.x + right * size.x, self.to.y - up * size.y)
    }

    fn draw_grid(&self, pen: &mut Pen<'_>, along: &AxisNote, values: Option<&AxisNote>) {
        let size = self.to - self.from;
        let grid = |pen: &mut Pen<'_>, a: DVec2, b: DVec2| {
            let (ink, whole, rows) = (pen.ink, pen.whole, pen.rows());
            line_in_rows(a, b, whole, rows, |x, y, covered, _| {
                pen.dot(x, y, ink, covered * GRID_OPACITY, Depth::Before);
            });
        };
        for (share, text) in along.ticks([0.0, 1.0], size.x / (8.0 * self.letters)) {
            grid(pen, self.at([share, 0.0]), self.at([share, 1.0]));
            pen.write(&text, self.at([share, 0.0]) + DVec2::new(0.0, self.letters), TextPlace::Middle);
        }
        for (share, text) in
            values.iter().flat_map(|axis| axis.ticks([0.0, 1.0], size.y / (3.0 * self.letters)))
        {
            grid(pen, self.at([0.0, share]), self.at([1.0, share]));
            pen.write(&text, self.at([0.0, share]) - DVec2::new(self.letters / 2.0, 0.0), TextPlace::Right);
        }
        pen.line(self.at([0.0, 0.0]), self.at([1.0, 0.0]), Depth::Before);
        pen.line(self.at([0.0, 0.0]), self.at([0.0, 1.0]), Depth::Before);
        let below = DVec2::new(0.0, 2.4 * self.letters);
        pen.write(&along.title(), self.at([0.5, 0.0]) + below, TextPlace::Middle);
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels of small pictures")]
mod tests {
    use super::*;

    const SIZE: ImageSize = ImageSize { width: 320, height: 200 };

    fn drawn(columns: Vec<(f64, Option<[f64; 2]>)>) -> Image {
        let axis = AxisNote::of_world("time", "s", [0.0, 10.0]);
        LinePlot { axis, title: "level [m]".into(), columns, is_dark: true }.draw(SIZE)
    }

    /// Returns the rows of a column of the image that have the color of the line.
    fn lit(image: &Image, column: usize) -> Vec<usize> {
        let is_line = |row: &usize| {
            let [r, _, b, alpha] = image.rgba[row * SIZE.width as usize + column];
            alpha > 0.5 && b - r > 0.2 * alpha
        };
        (0..SIZE.height as usize).filter(is_line).collect()
    }

    #[test]
    fn the_line_lies_at_its_values_and_has_gaps() {
        let values = |share: f64| (share, (!(0.4..0.6).contains(&share)).then_some([share, share]));
        let image = drawn((0..=100).map(|n| values(f64::from(n) / 100.0)).collect());
        let frame = PlotFrame::of(SIZE, 11.0);
        let column = |share: f64| frame.at([share, 0.0]).x.round() as usize;
        let middle = |rows: Vec<usize>| rows.iter().sum::<usize>() as f64 / rows.len() as f64;
        let [left, right] = [0.2, 0.8].map(|share| middle(lit(&image, column(share))));
        let [low, high] = [0.2, 0.8].map(|value| frame.at([0.0, (value + MARGIN) / (1.0 + 2.0 * MARGIN)]).y);
        assert!((left - low).abs() < 2.0 && (right - high).abs() < 2.0, "{left} {low} {right} {high}");
        assert!(lit(&image, column(0.5)).is_empty(), "there is no value");
    }

    #[test]
    fn extremes_of_shared_columns_are_upright_lines() {
        let image = drawn(vec![(0.0, Some([0.0, 1.0])), (0.5, Some([0.0, 1.0])), (1.0, Some([0.0, 1.0]))]);
        let frame = PlotFrame::of(SIZE, 11.0);
        let height = (frame.to.y - frame.from.y) / (1.0 + 2.0 * MARGIN);
        let rows = lit(&image, frame.at([0.5, 0.0]).x.round() as usize).len() as f64;
        assert!((rows - height).abs() < 4.0, "{rows} of {height}");
    }

    #[test]
    fn rows_are_those_of_the_whole_plot() {
        let axis = AxisNote::of_world("time", "s", [0.0, 10.0]);
        let columns = (0..=50).map(|n| f64::from(n) / 50.0);
        let columns = columns.map(|share| (share, Some([share * share, share])));
        let plot = LinePlot { axis, title: "level [m]".into(), columns: columns.collect(), is_dark: true };
        let whole = plot.draw(SIZE);
        for step in [7, 64] {
            let rows = (0..SIZE.height).step_by(step as usize).map(|top| top..SIZE.height.min(top + step));
            let parts: Vec<[f32; 4]> = rows.flat_map(|rows| plot.draw_rows(SIZE, rows).rgba).collect();
            assert_eq!(parts, whole.rgba);
        }
    }

    #[test]
    fn plots_without_values_and_tiny_pictures_are_drawn() {
        assert!(drawn(vec![(0.0, None), (1.0, None)]).rgba.iter().any(|pixel| pixel[3] > 0.0));
        let axis = AxisNote::of_world("x", "", [5.0, 5.0]);
        let plot =
            LinePlot { axis, title: String::new(), columns: vec![(0.0, Some([3.0, 3.0]))], is_dark: false };
        let image = plot.draw(ImageSize { width: 16, height: 16 });
        assert!(image.rgba.iter().flatten().all(|value| value.is_finite()));
    }
}
