//! Antialiased lines one pixel wide: the pixels that they cover, with their coverage (Wu 1991).

use std::ops::Range;

use glam::DVec2;

use crate::ImageSize;

/// Calls `dot` for the pixels of a line from `a` to `b` (columns and rows, whole at a pixel's middle) that
/// may lie in an image of `size`: column, row, coverage, and the share of the distance from `a` to `b`.
/// Pixels just beside the image are included.
pub(crate) fn line(a: DVec2, b: DVec2, size: ImageSize, dot: impl FnMut(i64, i64, f32, f64)) {
    line_in_rows(a, b, size, 0..i64::from(size.height), dot);
}

/// Calls `dot` as [`line`] does, at least for the pixels in `rows`.
#[expect(clippy::cast_possible_truncation, reason = "within the image")]
pub(crate) fn line_in_rows(
    a: DVec2,
    b: DVec2,
    size: ImageSize,
    rows: Range<i64>,
    mut dot: impl FnMut(i64, i64, f32, f64),
) {
    let Some((from, to)) = within(a, b, DVec2::new(size.width.into(), size.height.into())) else { return };
    let along = b - a;
    let is_steep = along.y.abs() > along.x.abs();
    let main = |v: DVec2| if is_steep { v.y } else { v.x };
    // Rounding may give any position for ends that are very far away.
    let farthest = main(DVec2::new(size.width.into(), size.height.into())) + MARGIN;
    let (low, high) = places_in_rows(a, along, is_steep, &rows);
    let first = main(from).min(main(to)).max(-MARGIN).max(low).floor() as i64;
    let last = main(from).max(main(to)).min(farthest).min(high).ceil() as i64;
    let shares =
        [from, to].map(|end| if main(along) == 0.0 { 0.0 } else { (main(end) - main(a)) / main(along) });
    let (least, most) = (shares[0].min(shares[1]), shares[0].max(shares[1]));
    for place in first..=last {
        let share = if main(along) == 0.0 { 0.0 } else { (place as f64 - main(a)) / main(along) };
        let share = share.clamp(least, most);
        let at = a + along * share;
        let across = if is_steep { at.x } else { at.y };
        let low = across.floor();
        let high_share = (across - low) as f32;
        for (offset, covered) in [(0, 1.0 - high_share), (1, high_share)] {
            let beside = (low as i64).saturating_add(offset);
            let (x, y) = if is_steep { (beside, place) } else { (place, beside) };
            dot(x, y, covered, share);
        }
    }
}

/// Returns the range of columns, or of rows of a steep line, at which a line crosses some rows.
fn places_in_rows(a: DVec2, along: DVec2, is_steep: bool, rows: &Range<i64>) -> (f64, f64) {
    let (top, bottom) = (rows.start as f64 - MARGIN, rows.end as f64 + MARGIN);
    if is_steep {
        return (top, bottom);
    }
    if along.y == 0.0 {
        return if (top..=bottom).contains(&a.y) {
            (f64::NEG_INFINITY, f64::INFINITY)
        } else {
            (f64::INFINITY, f64::NEG_INFINITY)
        };
    }
    let column = |row: f64| a.x + (row - a.y) * (along.x / along.y);
    let (one, other) = (column(top), column(bottom));
    // Rounding may give anything for ends that are very far away.
    if one.is_nan() || other.is_nan() {
        return (f64::NEG_INFINITY, f64::INFINITY);
    }
    (one.min(other), one.max(other))
}

/// Margin around the image within which lines are drawn, pixels.
const MARGIN: f64 = 2.0;

/// Clips a line to an image and a margin, so that the work is bounded (Liang and Barsky 1984).
fn within(a: DVec2, b: DVec2, size: DVec2) -> Option<(DVec2, DVec2)> {
    let along = b - a;
    let (mut enters, mut leaves) = (0.0f64, 1.0f64);
    for (from, step, most) in [(a.x, along.x, size.x), (a.y, along.y, size.y)] {
        if step == 0.0 {
            if !(-MARGIN..=most + MARGIN).contains(&from) {
                return None;
            }
            continue;
        }
        let (one, other) = ((-MARGIN - from) / step, (most + MARGIN - from) / step);
        (enters, leaves) = (enters.max(one.min(other)), leaves.min(one.max(other)));
    }
    let is_seen = enters < leaves && a.is_finite() && b.is_finite();
    is_seen.then(|| (a + along * enters, a + along * leaves))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_to_places_very_far_away_end() {
        let size = ImageSize { width: 40, height: 30 };
        for far in [1e15, 1e18, 1e100, 1e300, f64::MAX, f64::INFINITY, f64::NAN] {
            for (a, b) in [
                ([-far, 3.0], [far * 0.7, 9.0]),
                ([-far, -far], [far * 0.7, far * 0.3]),
                ([1.0, 2.0], [far, -far]),
            ] {
                let mut dots = 0;
                line(DVec2::from(a), DVec2::from(b), size, |_, _, _, share| {
                    assert!((0.0..=1.0).contains(&share), "{far}: {share}");
                    dots += 1;
                });
                assert!(dots <= 2 * 46, "{far}: {dots}");
            }
        }
    }

    #[test]
    fn a_line_covers_one_pixel_s_worth_at_each_step() {
        let size = ImageSize { width: 40, height: 30 };
        for (a, b) in [([3.0, 4.25], [20.0, 10.5]), ([8.5, 25.0], [6.0, 2.0]), ([-1e6, -1e6], [1e6, 1e6])] {
            let mut columns = std::collections::BTreeMap::<i64, f32>::new();
            let is_steep = f64::abs(b[1] - a[1]) > f64::abs(b[0] - a[0]);
            line(DVec2::from(a), DVec2::from(b), size, |x, y, covered, share| {
                *columns.entry(if is_steep { y } else { x }).or_default() += covered;
                let at = DVec2::from(a).lerp(b.into(), share);
                assert!(at.distance(DVec2::new(x as f64, y as f64)) < 1.5, "{at} {x} {y}");
            });
            assert!((10..60).contains(&columns.len()), "bounded by the image: {}", columns.len());
            assert!(columns.values().all(|covered| (covered - 1.0).abs() < 1e-5), "{columns:?}");
        }
    }
}
