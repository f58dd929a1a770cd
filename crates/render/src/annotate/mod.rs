//! What is written into an exported picture: the volume's box with what it spans, a scale bar, a legend of colours, and a time.
//!
//! Edges that lie behind the volume are drawn behind what the picture shows, the others in front of it, which is exact for a convex
//! box around all there is. Pictures in a viewer are left alone; it has a page around them.

mod keys;
mod text;

use array::Result;
use glam::{DVec2, DVec3};

use crate::camera::{Bounds, Camera, Lens};
use crate::colour::{COLOURS, colour_map_table, is_categorical};
use crate::image::Image;
use crate::raster::line;
use crate::scene::ImageSize;
use crate::transfer::TransferFunction;
pub use keys::Key;
use text::{Place, Writer};

/// What is known of a picture.
#[derive(Clone, Debug)]
pub struct Notes {
    /// Where it was taken from.
    pub camera: Camera,
    /// The box around the voxels, world space.
    pub bounds: Bounds,
    /// Names of the axes x, y, z.
    pub axes: [String; 3],
    /// Units of world space; empty where unknown.
    pub world_units: String,
    /// What the axes x, y, z span where that is not what the box spans: they are not drawn to scale.
    pub spans: [Option<Span>; 3],
    /// What the values are, over the legend: name and units.
    pub values: String,
    /// In the upper left corner, such as a time; may be empty.
    pub title: String,
    /// What colours mean that are no scale, such as those of isosurfaces.
    pub keys: Vec<Key>,
    /// Their colours; no legend where `None`, nor for labels.
    pub transfer: Option<TransferFunction>,
    /// Whether the picture lies over something dark.
    pub is_dark: bool,
}

/// What an axis that is not drawn to scale spans, from the first voxel to the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Coordinate of the first voxel.
    pub from: f64,
    /// Coordinate of the last voxel.
    pub to: f64,
    /// Empty where unknown.
    pub units: String,
}

/// Opacity of lines; text is opaque.
const LINE_OPACITY: f32 = 0.6;
/// Rows of the image for each row of text.
const ROWS_PER_LINE: u32 = 45;
/// Smallest and largest letters, pixels.
const LETTERS: (f32, f32) = (11.0, 40.0);
/// How much of the image's width a scale bar may take.
const SCALE_SHARE: f64 = 0.2;
/// Height of the legend's colours, as a share of the image's.
const LEGEND_SHARE: f64 = 0.4;
/// What lies nearer to the eye than this share of the way to the target is not drawn.
const NEAR_SHARE: f64 = 1e-3;

/// Writes the notes into a picture.
///
/// # Errors
/// `Invalid` for a camera that is none.
pub fn annotate(image: &mut Image, notes: &Notes) -> Result<()> {
    let lens = Lens::new(&notes.camera, image.size)?;
    let ink = if notes.is_dark { [0.85; 3] } else { [0.1; 3] };
    let letters = (image.size.height as f32 / ROWS_PER_LINE as f32).clamp(LETTERS.0, LETTERS.1);
    let mut pen = Pen { writer: Writer::new(letters), image, ink };
    let legend = Legend::of(&pen, notes);
    draw_box(&mut pen, &lens, notes, legend.as_ref());
    // Where a side is not to scale, no length is.
    if notes.spans.iter().all(Option::is_none) {
        draw_scale(&mut pen, notes);
    }
    if let Some(legend) = legend {
        legend.draw(&mut pen, notes);
    }
    keys::draw(&mut pen, notes);
    Ok(())
}

/// Draws onto an image.
struct Pen<'a> {
    image: &'a mut Image,
    writer: Writer,
    ink: [f32; 3],
}

/// Whether something lies before or behind what the picture shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Before,
    Behind,
}

impl Pen<'_> {
    fn size(&self) -> (i64, i64) {
        (i64::from(self.image.size.width), i64::from(self.image.size.height))
    }

    /// Puts a colour onto a pixel, if there is such a pixel.
    fn dot(&mut self, x: i64, y: i64, colour: [f32; 3], opacity: f32, depth: Depth) {
        let (width, height) = self.size();
        if !(0..width).contains(&x) || !(0..height).contains(&y) {
            return;
        }
        let Ok(at) = usize::try_from(y * width + x) else { return };
        let Some(pixel) = self.image.rgba.get_mut(at) else { return };
        let [r, g, b] = colour.map(|c| c * opacity);
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

    /// A row of text; `place` says which part of it lies at `at`. It is moved into the image where it fits.
    fn write(&mut self, text: &str, mut at: DVec2, place: Place) {
        let ink = self.ink;
        let (long, (width, height)) = (self.writer.width(text), self.size());
        let before = match place {
            Place::Left => 0.0,
            Place::Middle => long / 2.0,
            Place::Right => long,
        };
        let edge = f64::from(self.writer.letters()) / 2.0;
        at.x = (at.x - before).min(width as f64 - edge - long).max(edge) + before;
        at.y = at.y.min(height as f64 - edge).max(edge);
        for (x, y, coverage) in self.writer.pixels(text, at, place) {
            self.dot(x, y, ink, coverage, Depth::Before);
        }
    }
}

/// Corner `number` of a box: bit 0 is x, bit 1 y, bit 2 z.
fn corner(bounds: &Bounds, number: usize) -> DVec3 {
    DVec3::from(std::array::from_fn(|axis| {
        if number >> axis & 1 == 0 { bounds.min[axis] } else { bounds.max[axis] }
    }))
}

fn draw_box(pen: &mut Pen<'_>, lens: &Lens, notes: &Notes, legend: Option<&Legend<'_>>) {
    let bounds = &notes.bounds;
    let size = pen.image.size;
    let centre = place(lens, size, bounds.centre().into());
    for axis in 0..3 {
        let mut middles = Vec::with_capacity(4);
        for number in (0..8usize).filter(|number| number >> axis & 1 == 0) {
            let (low, high) = (corner(bounds, number), corner(bounds, number | 1 << axis));
            let depth = if faces_at(number, axis).any(|face| is_seen(lens, bounds, face)) {
                Depth::Before
            } else {
                Depth::Behind
            };
            let near = NEAR_SHARE * (DVec3::from(notes.camera.target) - lens.eye).length();
            let Some(ends) = beyond(lens, low, high, near) else { continue };
            let ends = ends.map(|point| place(lens, size, point));
            pen.line(ends[0], ends[1], depth);
            // Of an axis that is looked along nothing can be said at its edges.
            if ends[0].distance(ends[1]) >= 2.0 * f64::from(pen.writer.letters()) {
                middles.push((ends[0] + ends[1]) / 2.0);
            }
        }
        let (ends, units) = match &notes.spans[axis] {
            Some(span) => ([span.from, span.to], &span.units),
            None => ([bounds.min[axis], bounds.max[axis]], &notes.world_units),
        };
        let [from, to] = ends.map(number_text);
        let label = format!("{}  {from} – {to} {units}", notes.axes[axis]);
        write_beside(pen, label.trim_end(), &middles, centre, legend);
    }
}

/// Labels an axis beside the edge whose middle lies farthest out, so that nothing is behind the text; beside another one where
/// the legend would be.
fn write_beside(
    pen: &mut Pen<'_>,
    label: &str,
    middles: &[DVec2],
    centre: DVec2,
    legend: Option<&Legend<'_>>,
) {
    let letters = f64::from(pen.writer.letters());
    let beside = |middle: &DVec2| {
        let outward = (middle - centre).normalize_or_zero();
        let (place, far) = match outward.x {
            x if x > 0.5 => (Place::Left, 0.8),
            x if x < -0.5 => (Place::Right, 0.8),
            _ => (Place::Middle, 1.3),
        };
        let mut at = middle + outward * letters * far;
        let most_right = legend.map_or(f64::INFINITY, |legend| legend.most_right(pen, label, at.y, place));
        let is_free = at.x <= most_right;
        at.x = at.x.min(most_right);
        (is_free, middle.distance_squared(centre), at, place)
    };
    let places = middles.iter().map(beside);
    let best = places.max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    if let Some((_, _, at, place)) = best {
        pen.write(label, at, place);
    }
}

/// Where a point lies in an image, pixels from its upper left corner.
fn place(lens: &Lens, size: ImageSize, point: DVec3) -> DVec2 {
    let to = point - lens.eye;
    let depth = if lens.perspective { to.dot(lens.forward) } else { 1.0 };
    let across = (to.dot(lens.right) / depth - lens.middle) / lens.half[0];
    let upward = to.dot(lens.up) / depth / lens.half[1];
    DVec2::new((across + 1.0) / 2.0 * f64::from(size.width), (1.0 - upward) / 2.0 * f64::from(size.height))
}

/// The part of a line that lies `near` before the eye and farther; all of it where rays are parallel.
fn beyond(lens: &Lens, a: DVec3, b: DVec3, near: f64) -> Option<[DVec3; 2]> {
    let depth = |point: DVec3| (point - lens.eye).dot(lens.forward) - near;
    let (from, to) = (depth(a), depth(b));
    if !lens.perspective || (from > 0.0 && to > 0.0) {
        return Some([a, b]);
    }
    if from <= 0.0 && to <= 0.0 {
        return None;
    }
    let crossing = a.lerp(b, from / (from - to));
    Some(if from > 0.0 { [a, crossing] } else { [crossing, b] })
}

/// The two faces at an edge along `axis` that begins at a corner: axis of the face, and whether it is the high one.
fn faces_at(number: usize, axis: usize) -> impl Iterator<Item = (usize, bool)> {
    (0..3).filter(move |&other| other != axis).map(move |other| (other, number >> other & 1 == 1))
}

/// Whether the outside of a face is turned to the eye.
fn is_seen(lens: &Lens, bounds: &Bounds, (axis, is_high): (usize, bool)) -> bool {
    let (eye, forward) = (lens.eye.to_array()[axis], lens.forward.to_array()[axis]);
    match (lens.perspective, is_high) {
        (true, true) => eye > bounds.max[axis],
        (true, false) => eye < bounds.min[axis],
        (false, true) => forward < 0.0,
        (false, false) => forward > 0.0,
    }
}

/// A bar of a round length, true to scale at what the camera looks at.
fn draw_scale(pen: &mut Pen<'_>, notes: &Notes) {
    let (width, height) = pen.size();
    let world_per_pixel = notes.camera.height_at_target() / height as f64;
    let length = round_below(world_per_pixel * width as f64 * SCALE_SHARE);
    let margin = f64::from(pen.writer.letters()) * 1.5;
    let left = DVec2::new(margin, height as f64 - margin);
    let right = left + DVec2::new(length / world_per_pixel, 0.0);
    let tick = DVec2::new(0.0, margin / 4.0);
    for (a, b) in [(left, right), (left - tick, left + tick), (right - tick, right + tick)] {
        pen.line(a, b, Depth::Before);
        pen.line(a, b, Depth::Before);
    }
    let label = format!("{} {}", number_text(length), notes.world_units);
    pen.write(label.trim_end(), (left + right) / 2.0 - DVec2::new(0.0, margin * 0.6), Place::Middle);
}

/// The largest of 1, 2 and 5 times a power of ten that is no more than this.
fn round_below(length: f64) -> f64 {
    let power = 10f64.powf(length.log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|n| n * power).find(|&round| round <= length).unwrap_or(power)
}

/// The colour map from the top down, with values at its ends and in the middle.
struct Legend<'a> {
    transfer: &'a TransferFunction,
    colours: [[u8; 3]; COLOURS],
    /// Share of the height from below, and the value there.
    labels: [(f64, String); 3],
    /// Upper left corner and height of the colours, pixels.
    left: f64,
    top: f64,
    rows: f64,
}

impl<'a> Legend<'a> {
    /// None for labels, which have no order.
    fn of(pen: &Pen<'_>, notes: &'a Notes) -> Option<Self> {
        let transfer = notes.transfer.as_ref().filter(|t| !is_categorical(&t.colour_map))?;
        let colours = colour_map_table(&transfer.colour_map)?;
        let (width, height) = pen.size();
        let letters = f64::from(pen.writer.letters());
        let [low, high] = transfer.range;
        let value = |share: f64| {
            let value = low + (high - low) * share;
            // What is left of subtracting.
            if value.abs() < 1e-9 * (high - low).abs() { 0.0 } else { value }
        };
        let labels = [1.0, 0.5, 0.0].map(|share| (share, number_text(value(share))));
        let widest = labels.iter().map(|(_, text)| pen.writer.width(text)).fold(0.0, f64::max);
        let rows = height as f64 * LEGEND_SHARE;
        let left = width as f64 - 3.0 * letters - widest;
        Some(Self { transfer, colours, labels, left, top: (height as f64 - rows) / 2.0, rows })
    }

    /// How far right a row of text may lie beside it.
    fn most_right(&self, pen: &Pen<'_>, text: &str, y: f64, place: Place) -> f64 {
        let letters = f64::from(pen.writer.letters());
        // With its title above, and half a row below.
        if y < self.top - 2.5 * letters || y > self.top + self.rows + letters {
            return f64::INFINITY;
        }
        let width = pen.writer.width(text);
        let behind = match place {
            Place::Left => width,
            Place::Middle => width / 2.0,
            Place::Right => 0.0,
        };
        self.left - letters - behind
    }

    fn draw(&self, pen: &mut Pen<'_>, notes: &Notes) {
        let letters = f64::from(pen.writer.letters());
        let Self { left, top, rows, .. } = *self;
        #[expect(clippy::cast_possible_truncation, reason = "within the image")]
        let (first, count, columns) = ((left as i64, top as i64), rows as i64, letters as i64);
        for row in 0..count {
            let share = 1.0 - row as f64 / (count - 1).max(1) as f64;
            let share = if self.transfer.reversed { 1.0 - share } else { share };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
            let colour = self.colours[((share * (COLOURS - 1) as f64).round() as usize).min(COLOURS - 1)];
            let colour = colour.map(|c| f32::from(c) / 255.0);
            for column in 0..columns {
                pen.dot(first.0 + column, first.1 + row, colour, 1.0, Depth::Before);
            }
        }
        for (share, text) in &self.labels {
            pen.write(text, DVec2::new(left + letters * 1.5, top + rows * (1.0 - share)), Place::Left);
        }
        let (width, _) = pen.size();
        let title = DVec2::new(width as f64 - 1.5 * letters, top - 1.5 * letters);
        pen.write(&notes.values, title, Place::Right);
    }
}

/// Four digits that count, and no zeros behind them.
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
    fn the_legend_has_the_colours_of_the_map() {
        let image = annotated(filled([0.0; 4]), Camera::framing(&bounds(), [0.0, 1.0, 0.0]));
        let table = colour_map_table("viridis").unwrap();
        for colour in [table[0], table[255]] {
            let colour = colour.map(|c| f32::from(c) / 255.0);
            let found = image.rgba.iter().filter(|pixel| pixel[3] == 1.0 && pixel[..3] == colour).count();
            assert!(found >= 5, "{colour:?}: {found}");
        }
    }

    #[test]
    fn every_pixel_stays_a_colour_from_wherever_it_is_seen() {
        let inside = Camera {
            eye: [50.0, 30.0, 20.0],
            target: [50.0, 31.0, 20.0],
            ..Camera::framing(&bounds(), [0.0, 1.0, 0.0])
        };
        let far = Camera::framing(&bounds(), [0.0, 0.0, -1.0]).zoom(1e-6);
        let near = Camera::framing(&bounds(), [1.0, 1.0, 1.0]).zoom(1e6);
        for camera in [inside, far, near, inside.orthographic(), far.orthographic(), near.orthographic()] {
            let image = annotated(filled([0.1, 0.1, 0.1, 0.5]), camera);
            let is_colour =
                |pixel: &[f32; 4]| pixel.iter().all(|c| (0.0..=1.0001).contains(c)) && pixel[3] >= 0.5;
            assert!(image.rgba.iter().all(is_colour), "{camera:?}");
        }
    }

    #[test]
    fn keys_have_their_colours_one_below_the_other_and_end_above_the_scale_bar() {
        let camera = Camera::framing(&bounds(), [0.0, 1.0, 0.0]);
        let colours: Vec<[u8; 3]> = (0..40).map(|n| [250, 5 * n, 40]).collect();
        let keys = colours.iter().map(|&colour| Key::of_value(colour, 0.25, "kg")).collect();
        let mut image = filled([0.0; 4]);
        let notes = Notes { title: "2001-02-03".into(), keys, transfer: None, ..notes(camera) };
        annotate(&mut image, &notes).unwrap();
        let rows: Vec<Option<usize>> = colours
            .iter()
            .map(|colour| {
                let is_it = |pixel: &[f32; 4]| {
                    pixel[3] == 1.0
                        && pixel[..3]
                            .iter()
                            .zip(colour)
                            .all(|(p, c)| (p * 255.0 - f32::from(*c)).abs() < 0.01)
                };
                image.rgba.iter().position(is_it).map(|at| at / SIZE.width as usize)
            })
            .collect();
        let shown: Vec<usize> = rows.iter().copied().map_while(|row| row).collect();
        assert!(shown.len() > 5 && shown.is_sorted_by(|a, b| a + 10 < *b), "{rows:?}");
        assert!(rows[shown.len()..].iter().all(Option::is_none) && shown.len() < 20, "{rows:?}");
        assert_eq!(Key::of_value([0; 3], 1e-7, "").text, "1e-7");
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
