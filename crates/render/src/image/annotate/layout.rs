//! Places for annotations: near a corner, where nothing is written and, if there is room, no data lie.

use glam::DVec2;

use super::pen::{Area, Pen};

/// Outline of the data in a picture: a convex polygon.
pub(super) struct Outline(Vec<DVec2>);

impl Outline {
    /// The convex hull of points (Andrew 1979).
    pub(super) fn of(mut points: Vec<DVec2>) -> Self {
        points.retain(|point| point.is_finite());
        points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
        let half = |points: &mut dyn Iterator<Item = &DVec2>| {
            let mut chain: Vec<DVec2> = Vec::new();
            for &point in points {
                while let [.., before, last] = chain[..]
                    && (last - before).perp_dot(point - before) <= 0.0
                {
                    chain.pop();
                }
                chain.push(point);
            }
            chain.pop();
            chain
        };
        let mut hull = half(&mut points.iter());
        hull.extend(half(&mut points.iter().rev()));
        Self(hull)
    }

    /// Returns whether an area and the data have common points (separating axes).
    pub(super) fn touches(&self, area: &Area) -> bool {
        let Area { from, to } = *area;
        let corners = [from, DVec2::new(to.x, from.y), to, DVec2::new(from.x, to.y)];
        if self.0.len() < 3 {
            return false;
        }
        let next = self.0.iter().cycle().skip(1);
        let mut axes = self.0.iter().zip(next).map(|(a, b)| (*b - *a).perp()).chain([DVec2::X, DVec2::Y]);
        let span = |points: &[DVec2], axis: DVec2| {
            let along = points.iter().map(|point| point.dot(axis));
            (along.clone().fold(f64::INFINITY, f64::min), along.fold(f64::NEG_INFINITY, f64::max))
        };
        axes.all(|axis| {
            let ((low, high), (first, last)) = (span(&self.0, axis), span(&corners, axis));
            low < last && first < high
        })
    }
}

/// Corner of a picture: right instead of left, bottom instead of top.
#[derive(Clone, Copy, Debug)]
pub(super) struct Corner {
    pub(super) right: bool,
    pub(super) bottom: bool,
}

impl Pen<'_> {
    /// Returns whether nothing is written in an area.
    pub(super) fn is_free(&self, area: &Area) -> bool {
        !self.taken.iter().any(|taken| taken.meets(area))
    }

    /// Returns a free place of a size, as near to a corner as possible, beside the data if `outline` is given; `None` if there is none.
    #[expect(clippy::cast_precision_loss, reason = "sizes of pictures")]
    pub(super) fn corner(&self, corner: Corner, size: DVec2, outline: Option<&Outline>) -> Option<Area> {
        /// Most places along a side that are tried.
        const MOST: u32 = 80;
        let (width, height) = self.size();
        let edge = f64::from(self.writer.letters());
        let room = DVec2::new(width as f64, height as f64) - 2.0 * edge - size;
        if room.cmplt(DVec2::ZERO).any() {
            return None;
        }
        let step = edge.max(room.max_element() / f64::from(MOST));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most MOST")]
        let [columns, rows] = [(room.x / step) as u32, (room.y / step) as u32];
        (0..=columns + rows)
            .flat_map(|sum| (sum.saturating_sub(columns)..=sum.min(rows)).map(move |row| (sum - row, row)))
            .map(|(column, row)| {
                let away = DVec2::new(f64::from(column), f64::from(row)) * step;
                let from = DVec2::new(
                    if corner.right { edge + room.x - away.x } else { edge + away.x },
                    if corner.bottom { edge + room.y - away.y } else { edge + away.y },
                );
                Area { from, to: from + size }
            })
            .find(|area| self.is_free(area) && !outline.is_some_and(|outline| outline.touches(area)))
    }

    /// Returns a place beside the data, or one over them, or `None`.
    pub(super) fn corner_or_over(&self, corner: Corner, size: DVec2, outline: &Outline) -> Option<Area> {
        self.corner(corner, size, Some(outline)).or_else(|| self.corner(corner, size, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_touch_the_data_where_they_have_common_points() {
        let points = [[30.0, 20.0], [70.0, 20.0], [70.0, 40.0], [30.0, 40.0], [50.0, 30.0]];
        let outline = Outline::of(points.map(DVec2::from).to_vec());
        let area = |from: [f64; 2], to: [f64; 2]| Area { from: from.into(), to: to.into() };
        assert_eq!(outline.0.len(), 4);
        assert!(outline.touches(&area([60.0, 30.0], [90.0, 90.0])));
        assert!(outline.touches(&area([40.0, 25.0], [41.0, 26.0])));
        assert!(!outline.touches(&area([0.0, 0.0], [29.0, 90.0])));
        let slanted = Outline::of([[0.0, 0.0], [100.0, 100.0], [0.0, 100.0]].map(DVec2::from).to_vec());
        assert!(!slanted.touches(&area([60.0, 0.0], [100.0, 50.0])), "beside the slope");
        assert!(!Outline::of(Vec::new()).touches(&area([0.0, 0.0], [9.0, 9.0])));
    }
}
