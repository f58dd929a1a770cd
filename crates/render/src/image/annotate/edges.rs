//! Edges of the volume's box, and the axes along some of them: ticks at round coordinates, names and units.
//!
//! Axes lie along edges of the box's outline, below and at the left where possible, with the text outside, so that it does not cover
//! data. Pictures taken straight at a side have them below and at the left; if the box is larger than the picture, at its borders.

use glam::{DVec2, DVec3};

use super::layout::Outline;
use super::notes::Notes;
use super::pen::{Area, Depth, Pen};
use super::text::TextPlace;
use crate::ImageSize;
use crate::scene::camera::{Bounds, Lens};

/// Share of the distance to the target; lines nearer to the eye than this are not drawn.
const NEAR_SHARE: f64 = 1e-3;
/// Shortest edge with an axis, and distances of ticks across and upward, heights of letters.
const SHORTEST: f64 = 5.0;
const APART: f64 = 5.0;
const APART_UP: f64 = 3.5;
/// Cosine of the angle between directions that count as the same.
const STRAIGHT: f64 = 0.9998;
/// Margin that is left free around a label, heights of letters.
const GAP: f64 = 0.2;

/// Visible edge.
pub(super) struct Edge {
    /// Ends of the visible part, in the image.
    ends: [DVec2; 2],
    /// Ends of the whole edge, world space.
    whole: [DVec3; 2],
    /// True if one of its two faces is turned to the eye.
    is_outline: bool,
}

/// Visible edges along each axis.
pub(super) type Edges = [Vec<Edge>; 3];

/// Corner `number` of a box: bit 0 is x, bit 1 y, bit 2 z.
fn corner(bounds: &Bounds, number: usize) -> DVec3 {
    DVec3::from(std::array::from_fn(|axis| {
        if number >> axis & 1 == 0 { bounds.min[axis] } else { bounds.max[axis] }
    }))
}

/// Draws the edges.
pub(super) fn draw(pen: &mut Pen<'_>, lens: &Lens, notes: &Notes) -> Edges {
    let bounds = &notes.bounds;
    let size = pen.whole;
    std::array::from_fn(|axis| {
        let mut seen = Vec::with_capacity(4);
        for number in (0..8usize).filter(|number| number >> axis & 1 == 0) {
            let (low, high) = (corner(bounds, number), corner(bounds, number | 1 << axis));
            let faces = faces_at(number, axis).filter(|&face| is_seen(lens, bounds, face)).count();
            let depth = if faces > 0 { Depth::Before } else { Depth::Behind };
            let near = NEAR_SHARE * (DVec3::from(notes.camera.target) - lens.eye).length();
            let Some(ends) = beyond(lens, low, high, near) else { continue };
            let ends = ends.map(|point| place(lens, size, point));
            pen.line(ends[0], ends[1], depth);
            seen.push(Edge { ends, whole: [low, high], is_outline: faces == 1 });
        }
        seen
    })
}

/// Returns the outline of the box in the image; that of the visible edges if the eye is inside or close.
pub(super) fn outline(edges: &Edges) -> Outline {
    Outline::of(edges.iter().flatten().flat_map(|edge| edge.ends).collect())
}

/// True if the camera looks straight along an axis, with another one along the image's sides.
fn is_head_on(lens: &Lens) -> bool {
    [lens.forward, lens.right].iter().all(|v| v.abs().max_element() > STRAIGHT)
}

/// Draws the axes.
pub(super) fn axes(pen: &mut Pen<'_>, lens: &Lens, notes: &Notes, edges: &Edges) {
    let letters = f64::from(pen.writer.letters());
    let center = place(lens, pen.whole, notes.bounds.center().into());
    let is_straight = is_head_on(lens);
    for (axis, along) in edges.iter().enumerate() {
        if notes.axes[axis].samples.len() < 2 {
            continue;
        }
        let is_long =
            |edge: &&Edge| edge.is_outline && edge.ends[0].distance(edge.ends[1]) >= SHORTEST * letters;
        // The lowest edge; of equally low ones the leftmost.
        let rank = |edge: &&Edge| {
            let middle = (edge.ends[0] + edge.ends[1]) / 2.0;
            middle.y - middle.x / 2.0
        };
        let chosen = along.iter().filter(is_long).max_by(|a, b| rank(a).total_cmp(&rank(b)));
        let Some(edge) = chosen else { continue };
        let drawing = AxisDrawing { lens, notes, edges, axis, edge };
        if is_straight { drawing.straight(pen) } else { drawing.slanted(pen, center) }
    }
}

/// An axis that is drawn along an edge.
struct AxisDrawing<'a> {
    lens: &'a Lens,
    notes: &'a Notes,
    edges: &'a Edges,
    axis: usize,
    edge: &'a Edge,
}

impl AxisDrawing<'_> {
    /// Position in the image at a share of the edge; `None` behind the eye.
    fn at(&self, size: ImageSize, share: f64) -> Option<DVec2> {
        let point = self.edge.whole[0].lerp(self.edge.whole[1], share);
        self.lens.depth_of(point)?;
        Some(place(self.lens, size, point))
    }

    /// An axis of a picture taken in any direction: its text lies outside of the box.
    fn slanted(&self, pen: &mut Pen<'_>, center: DVec2) {
        let (letters, size) = (f64::from(pen.writer.letters()), pen.whole);
        let [a, b] = self.edge.ends;
        let middle = (a + b) / 2.0;
        let across = (b - a).perp().normalize_or_zero();
        let outward = if across.dot(middle - center) < 0.0 { -across } else { across };
        let beside = match outward.x {
            x if x > 0.4 => TextPlace::Left,
            x if x < -0.4 => TextPlace::Right,
            _ => TextPlace::Middle,
        };
        let far = if beside == TextPlace::Middle { 1.2 } else { 0.7 };
        let mut widest: f64 = 0.0;
        let count = a.distance(b) / (APART * letters);
        for (share, text) in self.notes.axes[self.axis].ticks([0.0, 1.0], count) {
            let Some(at) = self.at(size, share) else { continue };
            pen.line(at, at + outward * letters * 0.4, Depth::Before);
            let to = at + outward * letters * far;
            if self.has_room(pen, &text, to, beside) {
                pen.write(&text, to, beside);
                widest = widest.max(pen.writer.width(&text));
            }
        }
        let title = self.notes.axes[self.axis].title();
        let far = if beside == TextPlace::Middle { 2.5 * letters } else { 1.4 * letters + widest };
        // Beside the numbers at the middle, else farther along the edge.
        for share in [0.5, 0.35, 0.65, 0.2, 0.8] {
            let to = a.lerp(b, share) + outward * far;
            if !title.is_empty() && self.has_room(pen, &title, to, beside) {
                pen.write(&title, to, beside);
                return;
            }
        }
    }

    /// An axis of a picture taken straight at a side: below, or at the left.
    #[expect(clippy::cast_precision_loss, reason = "sizes of pictures")]
    fn straight(&self, pen: &mut Pen<'_>) {
        let (letters, size) = (f64::from(pen.writer.letters()), pen.whole);
        let (width, height) = pen.size();
        let [a, b] = self.edge.ends;
        let is_across = (b - a).abs().x >= (b - a).abs().y;
        let main = |v: DVec2| if is_across { v.x } else { v.y };
        let most = if is_across { width as f64 } else { height as f64 };
        let share = |at: f64| ((at - main(a)) / (main(b) - main(a))).clamp(0.0, 1.0);
        let mut seen = [share(0.0), share(most)];
        seen.sort_by(f64::total_cmp);
        let long = (seen[1] - seen[0]) * (main(b) - main(a)).abs();
        let note = &self.notes.axes[self.axis];
        let usual = note.ticks(seen, long / (letters * if is_across { APART } else { APART_UP }));
        let widest = |ticks: &[(f64, String)]| {
            ticks.iter().map(|(_, text)| pen.writer.width(text)).fold(0.0, f64::max)
        };
        // Wide texts, such as dates, need fewer ticks.
        let wide = widest(&usual) + 1.5 * letters;
        let ticks = if is_across && wide > APART * letters { note.ticks(seen, long / wide) } else { usual };
        let title = note.title();
        let below = if title.is_empty() { 1.7 } else { 2.9 };
        // The line of the axis, with room for its text in the image.
        let line = if is_across {
            a.y.min(height as f64 - below * letters)
        } else {
            a.x.max(widest(&ticks) + 1.1 * letters)
        };
        let on = |v: DVec2| if is_across { DVec2::new(v.x, line) } else { DVec2::new(line, v.y) };
        let is_moved = on(a).distance(a) > 0.5;
        if is_moved {
            pen.line(on(a), on(b), Depth::Before);
        }
        let outward = if is_across { DVec2::Y } else { DVec2::NEG_X };
        let (beside, far) = if is_across { (TextPlace::Middle, 1.1) } else { (TextPlace::Right, 0.6) };
        for (share, text) in ticks {
            let Some(at) = self.at(size, share).map(on) else { continue };
            if main(at) < 0.0 || main(at) > most {
                continue;
            }
            pen.line(at, at + outward * letters * 0.4, Depth::Before);
            let to = at + outward * letters * far;
            let (_, area) = pen.room(&text, to, beside);
            if pen.is_free(&area) {
                pen.write(&text, to, beside);
            }
        }
        let middle = on((a + b) / 2.0);
        let to = if is_across {
            DVec2::new(middle.x.clamp(0.0, most), line + 2.3 * letters)
        } else {
            DVec2::new(line, a.y.min(b.y).max(letters) - 0.9 * letters)
        };
        let (_, area) = pen.room(&title, to, TextPlace::Middle);
        if !title.is_empty() && pen.is_free(&area) {
            pen.write(&title, to, TextPlace::Middle);
        }
    }

    /// Returns whether a label's area is free of text and no edge crosses it.
    fn has_room(&self, pen: &Pen<'_>, label: &str, at: DVec2, place: TextPlace) -> bool {
        let (_, Area { from, to }) = pen.room(label, at, place);
        let gap = DVec2::splat(GAP * f64::from(pen.writer.letters()));
        let area = Area { from: from - gap, to: to + gap };
        let crossed =
            self.edges.iter().flatten().any(|edge| passes(edge.ends[0], edge.ends[1], area.from, area.to));
        !crossed && pen.is_free(&area)
    }
}

/// Returns whether a line passes a rectangle (Liang and Barsky 1984).
fn passes(a: DVec2, b: DVec2, from: DVec2, to: DVec2) -> bool {
    let along = b - a;
    let (mut enters, mut leaves) = (0f64, 1f64);
    for axis in 0..2 {
        let (start, step) = (a[axis], along[axis]);
        if step == 0.0 {
            if start < from[axis] || start > to[axis] {
                return false;
            }
            continue;
        }
        let ends = [(from[axis] - start) / step, (to[axis] - start) / step];
        enters = enters.max(ends[0].min(ends[1]));
        leaves = leaves.min(ends[0].max(ends[1]));
    }
    enters <= leaves
}

/// Returns the position of a point in an image, pixels from its upper left corner.
fn place(lens: &Lens, size: ImageSize, point: DVec3) -> DVec2 {
    let to = point - lens.eye;
    let depth = if lens.perspective { to.dot(lens.forward) } else { 1.0 };
    let across = (to.dot(lens.right) / depth - lens.middle) / lens.half[0];
    let upward = to.dot(lens.up) / depth / lens.half[1];
    DVec2::new((across + 1.0) / 2.0 * f64::from(size.width), (1.0 - upward) / 2.0 * f64::from(size.height))
}

/// Returns the part of a line at least `near` in front of the eye; all of it if rays are parallel.
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

/// Returns the two faces at an edge along `axis` that begins at a corner: axis of the face, and whether it is
/// the high one.
fn faces_at(number: usize, axis: usize) -> impl Iterator<Item = (usize, bool)> {
    (0..3).filter(move |&other| other != axis).map(move |other| (other, number >> other & 1 == 1))
}

/// Returns whether the outside of a face is turned to the eye.
fn is_seen(lens: &Lens, bounds: &Bounds, (axis, is_high): (usize, bool)) -> bool {
    let (eye, forward) = (lens.eye.to_array()[axis], lens.forward.to_array()[axis]);
    match (lens.perspective, is_high) {
        (true, true) => eye > bounds.max[axis],
        (true, false) => eye < bounds.min[axis],
        (false, true) => forward < 0.0,
        (false, false) => forward > 0.0,
    }
}
