//! Annotations of an exported picture: the volume's box with axes, a scale bar, a color bar or a legend, the orientation, and a time.
//!
//! Edges that lie behind the volume are drawn behind what the picture shows, the others in front of it; this
//! is exact for a convex box around the whole volume. Pictures in a viewer are not annotated: the page draws
//! the same marks (`web/src/ui/marks`).

mod axis;
mod edges;
mod keys;
mod layout;
mod legend;
mod line_plot;
mod orientation;
mod scale;
mod text;

use std::collections::BTreeMap;

use array::Result;
use glam::DVec2;

use crate::image::Image;
use crate::image::raster::line;
use crate::scene::camera::{Bounds, Camera, Lens};
use crate::scene::transfer::TransferFunction;
pub use axis::{AxisNote, AxisQuantity};
pub use keys::LegendKey;
pub use line_plot::LinePlot;
use text::{TextPlace, TextWriter};

/// Facts about a picture that are written into it.
#[derive(Clone, Debug)]
pub struct Notes {
    /// Camera that the picture was taken from.
    pub camera: Camera,
    /// The box around the voxels, world space.
    pub bounds: Bounds,
    /// Axes x, y, z of the box.
    pub axes: [AxisNote; 3],
    /// Units of world space; empty if unknown.
    pub world_units: String,
    /// True if x and y are degrees of longitude and latitude, to scale.
    pub is_map: bool,
    /// True if x leads to a person's right, y to the front and z upward.
    pub is_anatomical: bool,
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

/// Opacity of lines; text is opaque.
const LINE_OPACITY: f32 = 0.6;
/// Rows of the image for each row of text.
const ROWS_PER_LINE: u32 = 45;
/// Smallest and largest letters, pixels.
const LETTERS: (f32, f32) = (11.0, 40.0);
/// Opacity of the rim around text.
const RIM_OPACITY: f32 = 0.6;
/// Opacity of the ground behind what lies over data.
const PLATE_OPACITY: f32 = 0.6;

/// Writes the notes into a picture.
///
/// # Errors
/// `Invalid` for an invalid camera.
pub fn annotate(image: &mut Image, notes: &Notes) -> Result<()> {
    annotate_with(image, notes).map(drop)
}

/// As [`annotate`]; returns the pen that wrote.
fn annotate_with<'a>(image: &'a mut Image, notes: &Notes) -> Result<Pen<'a>> {
    let lens = Lens::new(&notes.camera, image.size)?;
    let ink = if notes.is_dark { [0.85; 3] } else { [0.1; 3] };
    let letters = (image.size.height as f32 / ROWS_PER_LINE as f32).clamp(LETTERS.0, LETTERS.1);
    let mut pen = Pen { writer: TextWriter::new(letters), image, ink, taken: Vec::new() };
    let edges = edges::draw(&mut pen, &lens, notes);
    let outline = edges::outline(&edges);
    orientation::letters(&mut pen, &lens, notes);
    edges::axes(&mut pen, &lens, notes, &edges);
    orientation::cross(&mut pen, &lens, notes, &outline);
    keys::draw(&mut pen, notes, &outline);
    legend::draw(&mut pen, notes, &outline);
    scale::draw(&mut pen, &lens, notes, &outline);
    Ok(pen)
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

    fn colored_line(&mut self, a: DVec2, b: DVec2, color: [f32; 3], depth: Depth) {
        let size = self.image.size;
        line(a, b, size, |x, y, covered, _| self.dot(x, y, color, covered, depth));
    }

    /// Draws a row of text; `place` selects the part of the text that lies at `at`. The text is moved into
    /// the image if it fits.
    fn write(&mut self, text: &str, at: DVec2, place: TextPlace) {
        let (at, area) = self.room(text, at, place);
        self.taken.push(area);
        self.write_at(text, at, place);
    }

    /// Draws a row of text with a rim, which makes it legible over data of any color.
    fn write_at(&mut self, text: &str, at: DVec2, place: TextPlace) {
        let (ink, rim) = (self.ink, self.rim());
        let pixels = self.writer.pixels(text, at, place);
        #[expect(clippy::cast_possible_truncation, reason = "a few pixels")]
        let radius = (self.writer.letters() / 9.0).ceil() as i64;
        let mut around: BTreeMap<(i64, i64), f32> = BTreeMap::new();
        for &(x, y, coverage) in &pixels {
            for down in -radius..=radius {
                for right in -radius..=radius {
                    if down * down + right * right <= radius * radius {
                        let most = around.entry((x + right, y + down)).or_default();
                        *most = most.max(coverage);
                    }
                }
            }
        }
        for ((x, y), coverage) in around {
            self.dot(x, y, rim, coverage * RIM_OPACITY, Depth::Before);
        }
        for (x, y, coverage) in pixels {
            self.dot(x, y, ink, coverage, Depth::Before);
        }
    }

    /// Color of rims and grounds: that of the background, about.
    fn rim(&self) -> [f32; 3] {
        if self.ink[0] > 0.5 { [0.0; 3] } else { [1.0; 3] }
    }

    /// Draws a half-transparent ground, for marks over data.
    #[expect(clippy::cast_possible_truncation, reason = "within the image")]
    fn plate(&mut self, area: &Area) {
        let rim = self.rim();
        let letters = f64::from(self.writer.letters()) / 2.0;
        let (from, to) = (area.from - letters, area.to + letters);
        for y in from.y as i64..to.y as i64 {
            for x in from.x as i64..to.x as i64 {
                self.dot(x, y, rim, PLATE_OPACITY, Depth::Before);
            }
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

/// Returns the largest of 1, 2 and 5 times a power of ten that is no more than this.
fn round_below(length: f64) -> f64 {
    let power = 10f64.powf(length.log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|n| n * power).find(|&round| round <= length).unwrap_or(power)
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
    use crate::scene::color_map::color_map_table;

    const SIZE: ImageSize = ImageSize { width: 320, height: 240 };

    fn notes(camera: Camera) -> Notes {
        Notes {
            camera,
            bounds: bounds(),
            axes: [0, 1, 2].map(|axis| {
                let Bounds { min, max } = bounds();
                AxisNote::of_world(["x", "y", "z"][axis], "mm", [min[axis], max[axis]])
            }),
            world_units: "mm".into(),
            is_map: false,
            is_anatomical: false,
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

    /// Returns the areas of everything that is written.
    fn areas(size: ImageSize, notes: &Notes) -> Vec<Area> {
        let rgba = vec![[0.0; 4]; (size.width * size.height) as usize];
        let mut image = Image { size, rgba };
        annotate_with(&mut image, notes).unwrap().taken
    }

    #[test]
    fn nothing_is_written_over_anything_else() {
        let directions =
            [[-0.45, 0.8, -0.4], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.1, -0.05], [1.0, 1.0, 1.0]];
        let keys = vec![LegendKey::of_value([9; 3], 0.25, "kg"); 4];
        for direction in directions {
            let near = Camera::framing(&bounds(), direction);
            for camera in [near, near.orthographic(), near.zoom(0.4), near.zoom(1.4)] {
                for size in
                    [SIZE, ImageSize { width: 160, height: 200 }, ImageSize { width: 640, height: 480 }]
                {
                    for is_anatomical in [false, true] {
                        let notes = Notes {
                            title: "2001-02-03".into(),
                            keys: keys.clone(),
                            is_anatomical,
                            ..notes(camera)
                        };
                        let found = areas(size, &notes);
                        for (number, area) in found.iter().enumerate() {
                            let shrunk = Area { from: area.from + 0.5, to: area.to - 0.5 };
                            let mut others = found[number + 1..].iter();
                            let what = format!("{direction:?} {camera:?} {size:?}: {area:?} {found:?}");
                            assert!(!others.any(|other| other.meets(&shrunk)), "{what}");
                        }
                        let is_usual = camera == near && size.width == 640;
                        assert!(!is_usual || found.len() >= 8, "{direction:?}: {found:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_color_bar_lies_beside_the_data() {
        for (width, height) in [(640, 480), (480, 640), (800, 300)] {
            let size = ImageSize { width, height };
            let camera = Camera::framing(&bounds(), [0.0, 0.0, -1.0]).zoom(1.3);
            let lens = Lens::new(&camera, size).unwrap();
            let image = Image { size, rgba: vec![[0.0; 4]; (width * height) as usize] };
            let after = annotated(image, camera);
            let corners = [0, 1, 2, 3].map(|n| {
                let at = [0, 1]
                    .map(|axis| if n >> axis & 1 == 0 { bounds().min[axis] } else { bounds().max[axis] });
                DVec2::from(lens.pixel_of([at[0], at[1], 40.0].into()).unwrap())
            });
            let low = corners.into_iter().fold(DVec2::INFINITY, DVec2::min);
            let high = corners.into_iter().fold(DVec2::NEG_INFINITY, DVec2::max);
            // Greens of the bar's upper half.
            let table = color_map_table("viridis").unwrap();
            let greens: Vec<[f32; 3]> =
                table[190..210].iter().map(|color| color.map(|c| f32::from(c) / 255.0)).collect();
            let bar: Vec<DVec2> = (0..width * height)
                .filter(|&n| greens.iter().any(|green| after.rgba[n as usize][..3] == *green))
                .map(|n| DVec2::new(f64::from(n % width), f64::from(n / width)))
                .collect();
            assert!(!bar.is_empty(), "{size:?}");
            assert!(
                !bar.iter().any(|at| at.cmpgt(low).all() && at.cmplt(high).all()),
                "{size:?}: over the data"
            );
        }
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
    fn numbers_are_short_and_lengths_round() {
        let texts = [0.0, 1.0, -2.5, 0.1, 1234.5678, 123_456.0, 1e-7, 6.022e23].map(number_text);
        assert_eq!(texts, ["0", "1", "-2.5", "0.1", "1235", "123456", "1e-7", "6.022e23"]);
        let rounds = [1.0, 1.9, 2.0, 4.99, 73.0, 0.03].map(round_below);
        for (found, expected) in rounds.into_iter().zip([1.0, 1.0, 2.0, 2.0, 50.0, 0.02]) {
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        }
    }
}
