//! Text as pixels, in an embedded sans-serif font: DejaVu Sans, Latin, Greek and a few signs of units.

use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};
use glam::DVec2;

/// See `assets/README.md` for the origin of the font, and its license.
const FACE: &[u8] = include_bytes!("../../../assets/DejaVuSans-subset.ttf");
/// Longest text that is drawn, letters.
const MAX_LETTERS: usize = 120;

/// Part of a text that lies at its position, horizontally; vertically it is the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextPlace {
    Left,
    Middle,
    Right,
}

/// Text renderer for letters of one size.
pub(crate) struct TextWriter {
    /// `None` if the font could not be read; no text is drawn then.
    face: Option<FontRef<'static>>,
    scale: PxScale,
}

impl TextWriter {
    /// `letters`: height of a line, pixels.
    pub(crate) fn new(letters: f32) -> Self {
        Self { face: FontRef::try_from_slice(FACE).ok(), scale: PxScale::from(letters) }
    }

    /// Height of a line, pixels.
    pub(crate) fn letters(&self) -> f32 {
        self.scale.y
    }

    /// Width of a text, pixels.
    pub(crate) fn width(&self, text: &str) -> f64 {
        let Some(face) = &self.face else { return 0.0 };
        let face = face.as_scaled(self.scale);
        shown(text).map(|letter| f64::from(face.h_advance(face.glyph_id(letter)))).sum()
    }

    /// Returns the pixels of a text: column, row and coverage.
    #[expect(clippy::cast_possible_truncation, reason = "pixels")]
    pub(crate) fn pixels(&self, text: &str, at: DVec2, place: TextPlace) -> Vec<(i64, i64, f32)> {
        let Some(face) = &self.face else { return Vec::new() };
        if !at.is_finite() || at.abs().max_element() > 1e6 {
            return Vec::new();
        }
        let scaled = face.as_scaled(self.scale);
        let left = match place {
            TextPlace::Left => at.x,
            TextPlace::Middle => at.x - self.width(text) / 2.0,
            TextPlace::Right => at.x - self.width(text),
        };
        let baseline = at.y as f32 + (scaled.ascent() + scaled.descent()) / 2.0;
        let mut pen = left as f32;
        let mut pixels = Vec::new();
        for letter in shown(text) {
            let id = scaled.glyph_id(letter);
            let glyph = id.with_scale_and_position(self.scale, point(pen, baseline));
            pen += scaled.h_advance(id);
            let Some(outline) = face.outline_glyph(glyph) else { continue };
            let corner = outline.px_bounds().min;
            outline.draw(|x, y, coverage| {
                if coverage > 0.0 {
                    let (x, y) = (corner.x as i64 + i64::from(x), corner.y as i64 + i64::from(y));
                    pixels.push((x, y, coverage.min(1.0)));
                }
            });
        }
        pixels
    }
}

/// Returns the largest coverage within `radius` of each pixel near some pixels: a rim around text.
pub(super) fn spread(pixels: &[(i64, i64, f32)], radius: i64) -> Vec<(i64, i64, f32)> {
    let ends = |of: fn(&(i64, i64, f32)) -> i64| {
        let numbers = pixels.iter().map(of);
        Some((numbers.clone().min()? - radius, numbers.max()? + radius))
    };
    let (Some((left, right)), Some((top, bottom))) = (ends(|pixel| pixel.0), ends(|pixel| pixel.1)) else {
        return Vec::new();
    };
    let [width, height] =
        [right - left, bottom - top].map(|most| usize::try_from(most + 1).unwrap_or_default());
    let at = |x: i64, y: i64| {
        let [column, row] = [x - left, y - top].map(|n| usize::try_from(n).unwrap_or_default());
        row * width + column
    };
    let mut own = vec![0.0f32; width * height];
    for &(x, y, coverage) in pixels {
        let most = &mut own[at(x, y)];
        *most = most.max(coverage);
    }
    let mut wide = own.clone();
    let half_widths: Vec<i64> = (-radius..=radius)
        .map(|down| (0..=radius).rev().find(|right| down * down + right * right <= radius * radius))
        .map(Option::unwrap_or_default)
        .collect();
    for &(x, y, coverage) in pixels {
        // Pixels around a covered one are covered by its neighbors if these are.
        let is_inner = coverage >= 1.0
            && [(-1, 0), (1, 0), (0, -1), (0, 1)]
                .iter()
                .all(|(right, down)| own[at(x + right, y + down)] >= 1.0);
        if is_inner {
            continue;
        }
        for (down, &half) in (-radius..=radius).zip(&half_widths) {
            for most in &mut wide[at(x - half, y + down)..=at(x + half, y + down)] {
                *most = most.max(coverage);
            }
        }
    }
    let rows = wide.chunks_exact(width.max(1)).zip(top..);
    rows.flat_map(|(row, y)| row.iter().zip(left..).map(move |(&coverage, x)| (x, y, coverage)))
        .filter(|pixel| pixel.2 > 0.0)
        .collect()
}

fn shown(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().filter(|letter| !letter.is_control()).take(MAX_LETTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lie_where_they_are_placed() {
        let writer = TextWriter::new(20.0);
        let width = writer.width("Temperature [K]");
        assert!(width > 100.0 && width < 250.0, "{width}");
        let columns = |place| {
            let pixels = writer.pixels("Temperature [K]", DVec2::new(500.0, 100.0), place);
            let rows = pixels.iter().map(|p| p.1);
            assert!(rows.clone().min().unwrap() > 80 && rows.max().unwrap() < 120);
            (pixels.iter().map(|p| p.0).min().unwrap(), pixels.iter().map(|p| p.0).max().unwrap())
        };
        assert!(columns(TextPlace::Left).0 >= 499);
        assert!(columns(TextPlace::Right).1 <= 501);
        let (low, high) = columns(TextPlace::Middle);
        assert!((low + high - 1000).abs() < 8);
    }

    #[test]
    fn signs_of_units_are_known_and_others_do_no_harm() {
        let writer = TextWriter::new(20.0);
        let face = writer.face.as_ref().unwrap();
        for sign in "µ°²³·–−Åαλσ₂⁻¹".chars() {
            assert_ne!(face.glyph_id(sign).0, 0, "{sign}");
        }
        assert!(!writer.pixels("汉\n\u{0}x", DVec2::new(5.0, 5.0), TextPlace::Left).is_empty());
        assert!(writer.pixels("x", DVec2::new(f64::NAN, 5.0), TextPlace::Left).is_empty());
        assert!(writer.width(&"m".repeat(10_000)) < 10_000.0, "long texts are cut");
    }
}
