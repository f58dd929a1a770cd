//! Annotations of an exported picture: the volume's box with the ranges of its axes, a scale bar, a legend of
//! colors, and a time.
//!
//! Edges that lie behind the volume are drawn behind what the picture shows, the others in front of it; this
//! is exact for a convex box around the whole volume. Pictures in a viewer are not annotated: the page around
//! them shows this.

mod edges;
mod keys;
mod text;

use array::Result;
use glam::DVec2;

use crate::image::Image;
use crate::image::raster::line;
use crate::scene::camera::{Bounds, Camera, Lens};
use crate::scene::color_map::{COLORS, color_map_table, is_categorical};
use crate::scene::transfer::TransferFunction;
pub use keys::LegendKey;
use text::{TextPlace, TextWriter};

/// Facts about a picture that are written into it.
#[derive(Clone, Debug)]
pub struct Notes {
    /// Camera that the picture was taken from.
    pub camera: Camera,
    /// The box around the voxels, world space.
    pub bounds: Bounds,
    /// Names of the axes x, y, z.
    pub axes: [String; 3],
    /// Units of world space; empty if unknown.
    pub world_units: String,
    /// Ranges of the axes x, y, z that are not drawn to scale; `None` for an axis that spans the range of the
    /// box.
    pub spans: [Option<Span>; 3],
    /// Name and units of the values, written over the legend.
    pub values: String,
    /// Text in the upper left corner, such as a time; may be empty.
    pub title: String,
    /// Meanings of colors that are not on a scale, such as those of isosurfaces.
    pub keys: Vec<LegendKey>,
    /// Colors of the values; no legend if `None`, nor for labels.
    pub transfer: Option<TransferFunction>,
    /// True if the picture lies over a dark background.
    pub is_dark: bool,
}

/// Range of an axis that is not drawn to scale, from the low end of the picture's box to the high one.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Coordinate of the voxel at the low end, which is the last voxel of an axis that is drawn downward.
    pub from: f64,
    /// Coordinate of the voxel at the high end.
    pub to: f64,
    /// Units; empty if unknown.
    pub units: String,
}

/// Opacity of lines; text is opaque.
const LINE_OPACITY: f32 = 0.6;
/// Rows of the image for each row of text.
const ROWS_PER_LINE: u32 = 45;
/// Smallest and largest letters, pixels.
const LETTERS: (f32, f32) = (11.0, 40.0);
/// Largest share of the image's width that a scale bar may take.
const SCALE_SHARE: f64 = 0.2;
/// Height of the legend's colors, as a share of the image's.
const LEGEND_SHARE: f64 = 0.4;

/// Writes the notes into a picture.
///
/// # Errors
/// `Invalid` for an invalid camera.
pub fn annotate(image: &mut Image, notes: &Notes) -> Result<()> {
    let lens = Lens::new(&notes.camera, image.size)?;
    let ink = if notes.is_dark { [0.85; 3] } else { [0.1; 3] };
    let letters = (image.size.height as f32 / ROWS_PER_LINE as f32).clamp(LETTERS.0, LETTERS.1);
    let mut pen = Pen { writer: TextWriter::new(letters), image, ink, taken: Vec::new() };
    let edges = draw_all_but_labels(&mut pen, &lens, notes);
    // Last, because it yields to all other text.
    edges::label(&mut pen, &lens, notes, &edges);
    edges::ticks(&mut pen, &lens, notes, &edges);
    Ok(())
}

fn draw_all_but_labels(pen: &mut Pen<'_>, lens: &Lens, notes: &Notes) -> edges::Edges {
    let edges = edges::draw(pen, lens, notes);
    // No scale bar if a side is not to scale.
    if notes.spans.iter().all(Option::is_none) {
        draw_scale(pen, notes);
    }
    if let Some(legend) = Legend::of(pen, notes) {
        legend.draw(pen, notes);
    }
    keys::draw(pen, notes);
    edges
}

/// Draws onto an image.
struct Pen<'a> {
    image: &'a mut Image,
    writer: TextWriter,
    ink: [f32; 3],
    /// Areas of the image that contain text.
    taken: Vec<Area>,
}

/// Area of the image, pixels: its upper left and its lower right corner.
#[derive(Clone, Copy, Debug)]
struct Area {
    from: DVec2,
    to: DVec2,
}

impl Area {
    fn meets(&self, other: &Self) -> bool {
        self.from.cmplt(other.to).all() && other.from.cmplt(self.to).all()
    }
}

/// Layer of a drawing: before or behind the content of the picture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Before,
    Behind,
}

impl Pen<'_> {
    fn size(&self) -> (i64, i64) {
        (i64::from(self.image.size.width), i64::from(self.image.size.height))
    }

    /// Blends a color into a pixel, if the pixel exists.
    fn dot(&mut self, x: i64, y: i64, color: [f32; 3], opacity: f32, depth: Depth) {
        let (width, height) = self.size();
        if !(0..width).contains(&x) || !(0..height).contains(&y) {
            return;
        }
        let Ok(at) = usize::try_from(y * width + x) else { return };
        let Some(pixel) = self.image.rgba.get_mut(at) else { return };
        let [r, g, b] = color.map(|c| c * opacity);
        let dot = [r, g, b, opacity];
        let (front, back) = if depth == Depth::Before { (dot, *pixel) } else { (*pixel, dot) };
        *pixel = std::array::from_fn(|c| front[c] + back[c] * (1.0 - front[3]));
    }

    /// A line one pixel wide with soft edges.
    fn line(&mut self, a: DVec2, b: DVec2, depth: Depth) {
        let ink = self.ink;
        let size = self.image.size;
        line(a, b, size, |x, y, covered, _| self.dot(x, y, ink, covered * LINE_OPACITY, depth));
    }

    /// Draws a row of text; `place` selects the part of the text that lies at `at`. The text is moved into
    /// the image if it fits.
    fn write(&mut self, text: &str, at: DVec2, place: TextPlace) {
        let ink = self.ink;
        let (at, area) = self.room(text, at, place);
        self.taken.push(area);
        for (x, y, coverage) in self.writer.pixels(text, at, place) {
            self.dot(x, y, ink, coverage, Depth::Before);
        }
    }

    /// Returns the position of a row of text after it is moved into the image, and the area that it covers.
    fn room(&self, text: &str, mut at: DVec2, place: TextPlace) -> (DVec2, Area) {
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

/// Draws a scale bar of a round length, true to scale at the target of the camera.
fn draw_scale(pen: &mut Pen<'_>, notes: &Notes) {
    let (width, height) = pen.size();
    let world_per_pixel = notes.camera.height_at_target() / height as f64;
    let length = round_below(world_per_pixel * width as f64 * SCALE_SHARE);
    let margin = f64::from(pen.writer.letters()) * 1.5;
    let left = DVec2::new(margin, height as f64 - margin);
    let right = left + DVec2::new(length / world_per_pixel, 0.0);
    let tick = DVec2::new(0.0, margin / 4.0);
    pen.taken.push(Area { from: left - tick, to: right + tick });
    for (a, b) in [(left, right), (left - tick, left + tick), (right - tick, right + tick)] {
        pen.line(a, b, Depth::Before);
        pen.line(a, b, Depth::Before);
    }
    let label = format!("{} {}", number_text(length), notes.world_units);
    pen.write(label.trim_end(), (left + right) / 2.0 - DVec2::new(0.0, margin * 0.6), TextPlace::Middle);
}

/// Returns the largest of 1, 2 and 5 times a power of ten that is no more than this.
fn round_below(length: f64) -> f64 {
    let power = 10f64.powf(length.log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|n| n * power).find(|&round| round <= length).unwrap_or(power)
}

/// Returns round values strictly between two, in either order: about `count`, which counts as 12 at most, up
/// to two and a half times as many; none if there is room for fewer than two.
fn round_values([from, to]: [f64; 2], count: f64) -> Vec<f64> {
    const MOST: f64 = 12.0;
    let (low, high) = (from.min(to), from.max(to));
    let step = round_below((high - low) / count.min(MOST));
    let is_sound = count >= 2.0 && step > 0.0 && step.is_finite() && high + step > high;
    if !is_sound {
        return Vec::new();
    }
    let first = (low / step).floor();
    // By multiplication: sums of a rounded step would drift.
    let values = (0..32u32).map(|number| (first + f64::from(number)) * step);
    let room = step * 0.2;
    values.filter(|&value| value > low + room && value < high - room).collect()
}

/// The color map from the top down, with values at its ends and round ones between.
struct Legend<'a> {
    transfer: &'a TransferFunction,
    colors: [[u8; 3]; COLORS],
    /// Share of the height from below, and the value there.
    labels: Vec<(f64, String)>,
    /// Upper left corner and height of the colors, pixels.
    left: f64,
    top: f64,
    rows: f64,
}

impl<'a> Legend<'a> {
    /// No legend for labels, which have no order.
    fn of(pen: &Pen<'_>, notes: &'a Notes) -> Option<Self> {
        let transfer = notes.transfer.as_ref().filter(|t| !is_categorical(&t.color_map))?;
        let colors = color_map_table(&transfer.color_map)?;
        let (width, height) = pen.size();
        let letters = f64::from(pen.writer.letters());
        let [low, high] = transfer.range;
        let rows = height as f64 * LEGEND_SHARE;
        // Round values too near the ends are left out in favor of the values at the ends.
        let near = 2.0 * letters / rows;
        let round = round_values([low, high], rows / (3.0 * letters));
        let between = round.into_iter().map(|value| ((value - low) / (high - low), number_text(value)));
        let ends = [(1.0, number_text(high)), (0.0, number_text(low))];
        let labels: Vec<(f64, String)> =
            between.filter(|(share, _)| (near..1.0 - near).contains(share)).chain(ends).collect();
        let widest = labels.iter().map(|(_, text)| pen.writer.width(text)).fold(0.0, f64::max);
        let left = width as f64 - 3.0 * letters - widest;
        Some(Self { transfer, colors, labels, left, top: (height as f64 - rows) / 2.0, rows })
    }

    fn draw(&self, pen: &mut Pen<'_>, notes: &Notes) {
        let letters = f64::from(pen.writer.letters());
        let Self { left, top, rows, .. } = *self;
        #[expect(clippy::cast_possible_truncation, reason = "within the image")]
        let (first, count, columns) = ((left as i64, top as i64), rows as i64, letters as i64);
        let (width, _) = pen.size();
        pen.taken.push(Area { from: DVec2::new(left, top), to: DVec2::new(width as f64, top + rows) });
        for row in 0..count {
            let share = 1.0 - row as f64 / (count - 1).max(1) as f64;
            let share = if self.transfer.reversed { 1.0 - share } else { share };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
            let color = self.colors[((share * (COLORS - 1) as f64).round() as usize).min(COLORS - 1)];
            let color = color.map(|c| f32::from(c) / 255.0);
            for column in 0..columns {
                pen.dot(first.0 + column, first.1 + row, color, 1.0, Depth::Before);
            }
        }
        for (share, text) in &self.labels {
            let at = DVec2::new(left + letters, top + rows * (1.0 - share));
            pen.line(at, at + DVec2::new(letters * 0.3, 0.0), Depth::Before);
            pen.write(text, at + DVec2::new(letters * 0.5, 0.0), TextPlace::Left);
        }
        let title = DVec2::new(width as f64 - 1.5 * letters, top - 1.5 * letters);
        pen.write(&notes.values, title, TextPlace::Right);
    }
}

/// Formats with four significant digits, without trailing zeros.
fn number_text(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let power = value.abs().log10().floor();
    if !(-4.0..6.0).contains(&power) {
        let text = format!("{value:.3e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", without_zeros(digits));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 7")]
    let decimals = (3.0 - power).max(0.0) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ImageSize;

    const SIZE: ImageSize = ImageSize { width: 320, height: 240 };

    fn notes(camera: Camera) -> Notes {
        Notes {
            camera,
            bounds: bounds(),
            axes: ["x", "y", "z"].map(str::to_owned),
            world_units: "mm".into(),
            spans: [const { None }; 3],
            values: "rho [kg/m³]".into(),
            title: String::new(),
            keys: Vec::new(),
            transfer: Some(TransferFunction::ramp(0.0, 2.5, 0.5)),
            is_dark: true,
        }
    }

    fn bounds() -> Bounds {
        Bounds { min: [0.0; 3], max: [100.0, 60.0, 40.0] }
    }

    fn annotated(mut image: Image, camera: Camera) -> Image {
        annotate(&mut image, &notes(camera)).unwrap();
        image
    }

    fn filled(pixel: [f32; 4]) -> Image {
        Image { size: SIZE, rgba: vec![pixel; 320 * 240] }
    }

    #[test]
    fn edges_lie_before_and_behind_what_is_shown() {
        let camera = Camera::framing(&bounds(), [-0.45, 0.8, -0.4]);
        let changed = |image: Image| {
            let before = image.clone();
            let after = annotated(image, camera);
            before.rgba.iter().zip(&after.rgba).filter(|(a, b)| a != b).count()
        };
        let (clear, opaque) = (changed(filled([0.0; 4])), changed(filled([0.2, 0.2, 0.2, 1.0])));
        assert!(opaque > 500 && clear > opaque + 100, "three edges are hidden: {clear}, {opaque}");
    }

    #[test]
    fn the_legend_has_the_colors_of_the_map() {
        let image = annotated(filled([0.0; 4]), Camera::framing(&bounds(), [0.0, 1.0, 0.0]));
        let table = color_map_table("viridis").unwrap();
        for color in [table[0], table[255]] {
            let color = color.map(|c| f32::from(c) / 255.0);
            let found = image.rgba.iter().filter(|pixel| pixel[3] == 1.0 && pixel[..3] == color).count();
            assert!(found >= 5, "{color:?}: {found}");
        }
    }

    /// Returns the areas of the axes' labels, and those of everything else that is written.
    fn labels(size: ImageSize, notes: &Notes) -> (Vec<Area>, Vec<Area>) {
        let rgba = vec![[0.0; 4]; (size.width * size.height) as usize];
        let mut image = Image { size, rgba };
        let lens = Lens::new(&notes.camera, size).unwrap();
        let mut pen =
            Pen { writer: TextWriter::new(LETTERS.0), image: &mut image, ink: [1.0; 3], taken: Vec::new() };
        let edges = draw_all_but_labels(&mut pen, &lens, notes);
        let others = pen.taken.clone();
        edges::label(&mut pen, &lens, notes, &edges);
        (pen.taken.split_off(others.len()), others)
    }

    #[test]
    fn labels_of_axes_meet_neither_each_other_nor_anything_else() {
        let directions =
            [[-0.45, 0.8, -0.4], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.1, -0.05], [1.0, 1.0, 1.0]];
        let keys = vec![LegendKey::of_value([9; 3], 0.25, "kg"); 4];
        for direction in directions {
            let near = Camera::framing(&bounds(), direction);
            for camera in [near, near.orthographic(), near.zoom(0.4), near.zoom(1.4)] {
                for size in
                    [SIZE, ImageSize { width: 160, height: 200 }, ImageSize { width: 640, height: 480 }]
                {
                    let notes = Notes { title: "2001-02-03".into(), keys: keys.clone(), ..notes(camera) };
                    let (own, others) = labels(size, &notes);
                    for (number, label) in own.iter().enumerate() {
                        let mut all = others.iter().chain(&own[number + 1..]);
                        assert!(!all.any(|other| other.meets(label)), "{camera:?} {size:?}: {label:?}");
                    }
                    let is_usual = camera == near && size.width == 640;
                    assert!(!is_usual || own.len() >= 2, "{direction:?}: {own:?}");
                }
            }
        }
        let usual = Camera::framing(&bounds(), directions[0]);
        assert_eq!(labels(ImageSize { width: 640, height: 480 }, &notes(usual)).0.len(), 3);
    }

    #[test]
    fn every_pixel_stays_a_color_from_wherever_it_is_seen() {
        let inside = Camera {
            eye: [50.0, 30.0, 20.0],
            target: [50.0, 31.0, 20.0],
            ..Camera::framing(&bounds(), [0.0, 1.0, 0.0])
        };
        let far = Camera::framing(&bounds(), [0.0, 0.0, -1.0]).zoom(1e-6);
        let near = Camera::framing(&bounds(), [1.0, 1.0, 1.0]).zoom(1e6);
        for camera in [inside, far, near, inside.orthographic(), far.orthographic(), near.orthographic()] {
            let image = annotated(filled([0.1, 0.1, 0.1, 0.5]), camera);
            let is_color =
                |pixel: &[f32; 4]| pixel.iter().all(|c| (0.0..=1.0001).contains(c)) && pixel[3] >= 0.5;
            assert!(image.rgba.iter().all(is_color), "{camera:?}");
        }
    }

    #[test]
    fn keys_have_their_colors_one_below_the_other_and_end_above_the_scale_bar() {
        let camera = Camera::framing(&bounds(), [0.0, 1.0, 0.0]);
        let colors: Vec<[u8; 3]> = (0..40).map(|n| [250, 5 * n, 40]).collect();
        let keys = colors.iter().map(|&color| LegendKey::of_value(color, 0.25, "kg")).collect();
        let mut image = filled([0.0; 4]);
        let notes = Notes { title: "2001-02-03".into(), keys, transfer: None, ..notes(camera) };
        annotate(&mut image, &notes).unwrap();
        let rows: Vec<Option<usize>> = colors
            .iter()
            .map(|color| {
                let is_it = |pixel: &[f32; 4]| {
                    pixel[3] == 1.0
                        && pixel[..3].iter().zip(color).all(|(p, c)| (p * 255.0 - f32::from(*c)).abs() < 0.01)
                };
                image.rgba.iter().position(is_it).map(|at| at / SIZE.width as usize)
            })
            .collect();
        let shown: Vec<usize> = rows.iter().copied().map_while(|row| row).collect();
        assert!(shown.len() > 5 && shown.is_sorted_by(|a, b| a + 10 < *b), "{rows:?}");
        assert!(rows[shown.len()..].iter().all(Option::is_none) && shown.len() < 20, "{rows:?}");
        assert_eq!(LegendKey::of_value([0; 3], 1e-7, "").text, "1e-7");
    }

    #[test]
    fn marks_lie_at_round_values_between_the_ends() {
        assert_eq!(round_values([-24.0, 24.0], 5.0), [-20.0, -15.0, -10.0, -5.0, 0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(
            round_values([90.0, -90.0], 4.0),
            [-80.0, -60.0, -40.0, -20.0, 0.0, 20.0, 40.0, 60.0, 80.0]
        );
        assert_eq!(round_values([0.0, 1.0], 1.0), [0.0; 0], "no room");
        for bad in [[0.0, 0.0], [f64::NAN, 1.0], [1e300, 1e300 * (1.0 + 1e-16)], [0.0, f64::INFINITY]] {
            assert!(round_values(bad, 5.0).is_empty(), "{bad:?}");
        }
    }

    #[test]
    fn numbers_are_short_and_lengths_round() {
        let texts = [0.0, 1.0, -2.5, 0.1, 1234.5678, 123_456.0, 1e-7, 6.022e23].map(number_text);
        assert_eq!(texts, ["0", "1", "-2.5", "0.1", "1235", "123456", "1e-7", "6.022e23"]);
        let rounds = [1.0, 1.9, 2.0, 4.99, 73.0, 0.03].map(round_below);
        for (found, expected) in rounds.into_iter().zip([1.0, 1.0, 2.0, 2.0, 50.0, 0.02]) {
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        }
    }
}
