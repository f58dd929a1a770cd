//! Edges of the volume's box, and labels of the axes beside them.

use glam::{DVec2, DVec3};

use super::text::TextPlace;
use super::{Depth, Notes, Pen, number_text, round_values};
use crate::ImageSize;
use crate::scene::camera::{Bounds, Lens};

/// Share of the distance to the target; lines nearer to the eye than this are not drawn.
const NEAR_SHARE: f64 = 1e-3;
/// Positions along an edge where its label is tried, in this order, as shares of the edge.
const SHARES: [f64; 5] = [0.5, 0.35, 0.65, 0.2, 0.8];
/// Distances from the edge at which a label is tried, as factors of the usual distance.
const FACTORS: [f64; 3] = [1.0, 2.2, 3.4];
/// Margin that is left free around a label, heights of letters.
const GAP: f64 = 0.2;

/// Visible edge.
pub(super) struct Edge {
    /// Ends of the visible part, in the image.
    ends: [DVec2; 2],
    /// Ends of the whole edge, world space.
    whole: [DVec3; 2],
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
    let size = pen.image.size;
    std::array::from_fn(|axis| {
        let mut seen = Vec::with_capacity(4);
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
            seen.push(Edge { ends, whole: [low, high] });
        }
        seen
    })
}

/// Labels each axis beside an edge where nothing is written yet and no line of another axis passes; an axis
/// without such a place gets no label.
pub(super) fn label(pen: &mut Pen<'_>, lens: &Lens, notes: &Notes, edges: &Edges) {
    let center = place(lens, pen.image.size, notes.bounds.center().into());
    for axis in 0..3 {
        let ([from, to], units) = spanned(notes, axis);
        let [low, high] = [from.min(to), from.max(to)].map(number_text);
        let label = format!("{}  {low} – {high} {units}", notes.axes[axis]);
        let label = label.trim_end();
        if let Some((at, place)) = free_place(pen, label, edges, axis, center) {
            pen.write(label, at, place);
        }
    }
}

/// Values at the low and the high end of the box along an axis, and their units.
fn spanned(notes: &Notes, axis: usize) -> ([f64; 2], &str) {
    match &notes.spans[axis] {
        Some(span) => ([span.from, span.to], &span.units),
        None => ([notes.bounds.min[axis], notes.bounds.max[axis]], &notes.world_units),
    }
}

/// Draws ticks at round coordinates along the outermost edge of each axis, with their numbers where there is
/// room.
pub(super) fn ticks(pen: &mut Pen<'_>, lens: &Lens, notes: &Notes, edges: &Edges) {
    /// Smallest distance of ticks, heights of letters.
    const APART: f64 = 5.0;
    let (letters, size) = (f64::from(pen.writer.letters()), pen.image.size);
    let center = place(lens, size, notes.bounds.center().into());
    for (axis, edges_along) in edges.iter().enumerate() {
        let out = |edge: &&Edge| ((edge.ends[0] + edge.ends[1]) / 2.0).distance_squared(center);
        let Some(edge) = edges_along.iter().max_by(|a, b| out(a).total_cmp(&out(b))) else { continue };
        let ([from, to], _) = spanned(notes, axis);
        let count = edge.ends[0].distance(edge.ends[1]) / (APART * letters);
        let outward = ((edge.ends[0] + edge.ends[1]) / 2.0 - center).normalize_or_zero();
        for value in round_values([from, to], count) {
            let point = edge.whole[0].lerp(edge.whole[1], (value - from) / (to - from));
            if lens.depth_of(point).is_none() {
                continue;
            }
            let at = place(lens, size, point);
            pen.line(at, at + outward * letters * 0.4, Depth::Before);
            let text = number_text(value);
            let (beside, far) = match outward.x {
                x if x > 0.5 => (TextPlace::Left, 0.6),
                x if x < -0.5 => (TextPlace::Right, 0.6),
                _ => (TextPlace::Middle, 1.1),
            };
            let to = at + outward * letters * far;
            if is_free(pen, &text, to, beside, edges) {
                pen.write(&text, to, beside);
            }
        }
    }
}

/// Places the label beside the edge whose middle lies farthest out, so that nothing is behind the text, if
/// there is room; else beside another edge.
fn free_place(
    pen: &Pen<'_>,
    label: &str,
    edges: &Edges,
    axis: usize,
    center: DVec2,
) -> Option<(DVec2, TextPlace)> {
    let letters = f64::from(pen.writer.letters());
    // An axis along the line of sight gets no label.
    let is_long = |ends: &&[DVec2; 2]| ends[0].distance(ends[1]) >= 2.0 * letters;
    let mut own: Vec<&[DVec2; 2]> = edges[axis].iter().map(|edge| &edge.ends).filter(is_long).collect();
    let out = |ends: &[DVec2; 2]| ((ends[0] + ends[1]) / 2.0).distance_squared(center);
    own.sort_by(|a, b| out(b).total_cmp(&out(a)));
    let tries = own.iter().flat_map(|ends| FACTORS.map(|factor| (*ends, factor)));
    let tries = tries.flat_map(|(ends, factor)| SHARES.map(|share| (ends, factor, share)));
    let places = tries.map(|(ends, factor, share)| {
        let outward = ((ends[0] + ends[1]) / 2.0 - center).normalize_or_zero();
        let (place, far) = match outward.x {
            x if x > 0.5 => (TextPlace::Left, 0.8),
            x if x < -0.5 => (TextPlace::Right, 0.8),
            _ => (TextPlace::Middle, 1.3),
        };
        (ends[0].lerp(ends[1], share) + outward * letters * far * factor, place)
    });
    places.into_iter().find(|&(at, place)| is_free(pen, label, at, place, edges))
}

/// Returns whether a label's area is free of text and no edge crosses it.
fn is_free(pen: &Pen<'_>, label: &str, at: DVec2, place: TextPlace, edges: &Edges) -> bool {
    let (_, mut area) = pen.room(label, at, place);
    let gap = DVec2::splat(GAP * f64::from(pen.writer.letters()));
    (area.from, area.to) = (area.from - gap, area.to + gap);
    let crossed = edges.iter().flatten().any(|&Edge { ends: [a, b], .. }| passes(a, b, area.from, area.to));
    !crossed && !pen.taken.iter().any(|taken| taken.meets(&area))
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
