//! Even longitude-latitude grid that replaces a curvilinear one, and the source cell of each of its pixels.
//!
//! Each source cell is a quadrilateral whose corners lie midway between neighboring cell centers. A pixel
//! takes the value of the cell that contains its center. Longitudes are compared modulo 360 degrees, so cells
//! across the date line need no special case; a cell that spans more than a quarter of the globe (one that
//! contains a pole) is left out.

/// Most cells of a curvilinear grid that is drawn at its true coordinates: a global grid of a twelfth of a
/// degree has 13 million.
pub(super) const MAX_CELLS: u64 = 16 << 20;
/// Most pixels of the even grid per cell of the source.
const MAX_PIXELS_PER_CELL: f64 = 4.0;
/// Largest share of cells without a pixel; beyond it the finest grid is used.
const MAX_HIDDEN_SHARE: f64 = 0.05;
/// Largest share of cells left out for spanning too much of the globe: real grids have a few that contain a
/// pole.
const MAX_LEFT_OUT_SHARE: f64 = 0.02;
/// Pixels that the even grid of a small source may always have.
const SMALL_GRID: f64 = 65_536.0;
/// Largest distance from the center of a cell to a corner, in degrees of longitude.
const MAX_REACH_DEGREES: f64 = 90.0;
/// Factor by which cells are enlarged, so that rounding leaves no pixel between two cells.
const CELL_ENLARGEMENT: f64 = 1.0 + 1e-6;
/// Most pixel tests per pixel or cell of the grid, beyond which the cells overlap too much for a grid.
const MAX_VISITS_PER_CELL: usize = 64;
/// Marks pixels in no cell.
pub(super) const NO_CELL: u32 = u32::MAX;
/// Sectors of the circle of longitudes, used to find the widest gap.
const SECTORS: usize = 3600;

/// Longitudes and latitudes of cell centers, degrees, shape `[rows, columns]`; NaN where a cell has no
/// coordinates.
pub(super) struct CellCenters {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) longitudes: Vec<f64>,
    pub(super) latitudes: Vec<f64>,
}

/// Even grid of longitudes and latitudes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LatLonGrid {
    /// Pixels along latitude, southernmost first.
    pub(super) rows: usize,
    /// Pixels along longitude.
    pub(super) columns: usize,
    /// Latitude and longitude of the center of the first pixel, degrees.
    pub(super) origin: [f64; 2],
    /// Spacing of pixels along latitude and longitude, degrees.
    pub(super) step: [f64; 2],
    /// Mean side of a source cell, degrees.
    pub(super) cell_side: f64,
    /// Share of the source's cells without a pixel.
    pub(super) hidden: f64,
    /// Source cell of each pixel, `row * columns + column` of the source, or [`NO_CELL`].
    pub(super) cells: Vec<u32>,
}

/// Corners of a cell, as longitude and latitude relative to its center, in order around it.
type CornerOffsets = [[f64; 2]; 4];

impl LatLonGrid {
    /// Finds the cell of every pixel. Takes seconds for the largest grids: call it where threads may block.
    ///
    /// # Errors
    /// Reason why there is no such grid, as the end of a sentence.
    pub(super) fn of(centers: &CellCenters) -> Result<Self, &'static str> {
        if centers.rows < 2 || centers.columns < 2 {
            return Err("its grid of places has one row or column");
        }
        if (centers.rows * centers.columns) as u64 > MAX_CELLS {
            return Err("its grid of places has too many cells");
        }
        let lat_lon_grid = Self::with_pixels(centers, 1.0)?;
        if centers.left_out() > MAX_LEFT_OUT_SHARE {
            return Err("many of its cells reach far around a pole");
        }
        if lat_lon_grid.hidden <= MAX_HIDDEN_SHARE {
            Ok(lat_lon_grid)
        } else {
            Self::with_pixels(centers, MAX_PIXELS_PER_CELL)
        }
    }

    /// Creates a grid with about this number of pixels per cell.
    #[expect(clippy::cast_precision_loss, reason = "at most 2^24 cells")]
    fn with_pixels(centers: &CellCenters, per_cell: f64) -> Result<Self, &'static str> {
        let (mut lat_lon_grid, cells) = Self::around(centers, per_cell)?;
        lat_lon_grid.cells = vec![NO_CELL; lat_lon_grid.rows * lat_lon_grid.columns];
        let mut visits = MAX_VISITS_PER_CELL * lat_lon_grid.cells.len().max(centers.longitudes.len());
        for (number, corners) in centers.all() {
            lat_lon_grid.draw(centers, number, &corners, &mut visits).ok_or("its cells overlap")?;
        }
        lat_lon_grid.hidden = 1.0 - count_seen(&lat_lon_grid.cells, centers.longitudes.len()) as f64 / cells;
        Ok(lat_lon_grid)
    }

    /// Creates an empty grid around all cells; returns the number of cells with coordinates too.
    fn around(centers: &CellCenters, per_cell: f64) -> Result<(Self, f64), &'static str> {
        let (mut cells, mut area, mut widths, mut heights) = (0.0, 0.0, 0.0, 0.0);
        let (mut south, mut north) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut sectors = vec![false; SECTORS];
        for (number, corners) in centers.all() {
            let latitude = centers.latitudes[number];
            cells += 1.0;
            area += area_of(&corners);
            widths += extent(&corners, 0).1 - extent(&corners, 0).0;
            heights += extent(&corners, 1).1 - extent(&corners, 1).0;
            for corner in corners {
                south = south.min(latitude + corner[1]);
                north = north.max(latitude + corner[1]);
            }
            sectors[sector(centers.longitudes[number])] = true;
        }
        let (south, north) = (south.max(-90.0), north.min(90.0));
        if !(area > 0.0 && widths > 0.0 && heights > 0.0 && south < north) {
            return Err("its latitudes and longitudes are those of no grid");
        }
        let west = first_longitude(&sectors, centers);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (number, corners) in centers.all() {
            let center = (centers.longitudes[number] - west).rem_euclid(360.0);
            for corner in corners {
                low = low.min(center + corner[0]);
                high = high.max(center + corner[0]);
            }
        }
        // Cells at the ends of a global grid extend across the cut: their other part is at the other end.
        let (low, high) = if high - low >= 360.0 { (0.0, 360.0) } else { (low, high) };
        let cell_side = (area / cells).sqrt();
        let (width, height) = (high - low, north - south);
        let most = SMALL_GRID.max(MAX_PIXELS_PER_CELL * cells);
        // Pixels have the mean area and the mean aspect ratio of cells.
        let longer = (widths / heights).sqrt();
        let side = (cell_side / per_cell.sqrt()).max((width * height / most).sqrt());
        let pixels = |length: f64, side: f64| ((length / side - 1e-6).ceil().max(1.0)).min(most);
        let (columns, rows) = (pixels(width, side * longer), pixels(height, side / longer));
        if columns * rows > 2.0 * most {
            return Err("its cells are too narrow");
        }
        let step = [height / rows, width / columns];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above")]
        let (rows, columns) = (rows as usize, columns as usize);
        let origin = [south + 0.5 * step[0], west + low + 0.5 * step[1]];
        let lat_lon_grid = Self { rows, columns, origin, step, cell_side, hidden: 0.0, cells: Vec::new() };
        Ok((lat_lon_grid, cells))
    }

    /// Assigns the pixels whose centers lie in a cell to it, unless they have a cell already. Returns `None`
    /// when the allowed tests are used up.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the grid")]
    #[expect(clippy::cast_precision_loss, reason = "pixels below 2^32")]
    fn draw(
        &mut self,
        centers: &CellCenters,
        number: usize,
        corners: &CornerOffsets,
        visits: &mut usize,
    ) -> Option<()> {
        let corners = corners.map(|corner| corner.map(|v| v * CELL_ENLARGEMENT));
        let ((west, east), (south, north)) = (extent(&corners, 0), extent(&corners, 1));
        let latitude = centers.latitudes[number];
        let row = |at: f64| (latitude + at - self.origin[0]) / self.step[0];
        let first_row = row(south).ceil().max(0.0) as usize;
        let last_row = row(north).floor().min(self.rows as f64 - 1.0);
        let center = (centers.longitudes[number] - self.origin[1]).rem_euclid(360.0);
        // A cell at one end of a global grid may extend into the other end.
        for turn in [-360.0, 0.0, 360.0] {
            let column = |at: f64| (center + turn + at) / self.step[1];
            let first_column = column(west).ceil().max(0.0) as usize;
            let last_column = column(east).floor().min(self.columns as f64 - 1.0);
            for row in (first_row..).take_while(|&row| row as f64 <= last_row) {
                for column in (first_column..).take_while(|&column| column as f64 <= last_column) {
                    *visits = visits.checked_sub(1)?;
                    let pixel = &mut self.cells[row * self.columns + column];
                    let x = column as f64 * self.step[1] - center - turn;
                    let y = self.origin[0] + row as f64 * self.step[0] - latitude;
                    if *pixel == NO_CELL && is_inside(&corners, [x, y]) {
                        *pixel = u32::try_from(number).unwrap_or(NO_CELL);
                    }
                }
            }
        }
        Some(())
    }
}

fn is_place(longitude: f64, latitude: f64) -> bool {
    longitude.is_finite() && (-90.5..=90.5).contains(&latitude)
}

impl CellCenters {
    /// Returns whether the first rows lie farther north than the last ones.
    pub(super) fn run_southward(&self) -> bool {
        let half = self.rows / 2 * self.columns;
        let mean = |latitudes: &[f64]| {
            let known: Vec<f64> =
                latitudes.iter().copied().filter(|latitude| latitude.abs() <= 90.5).collect();
            #[expect(clippy::cast_precision_loss, reason = "at most 2^24 cells")]
            let count = known.len() as f64;
            known.iter().sum::<f64>() / count
        };
        let end = self.latitudes.len().saturating_sub(half);
        half > 0 && mean(&self.latitudes[..half]) > mean(&self.latitudes[end..])
    }

    /// Iterates over all cells with coordinates, with their corners.
    fn all(&self) -> impl Iterator<Item = (usize, CornerOffsets)> {
        let cells = (0..self.rows).flat_map(|row| (0..self.columns).map(move |column| (row, column)));
        cells.filter_map(|(row, column)| {
            self.corners(row, column).map(|corners| (row * self.columns + column, corners))
        })
    }

    /// Share of the cells with coordinates that are not among [`all`](Self::all).
    #[expect(clippy::cast_precision_loss, reason = "at most 2^24 cells")]
    fn left_out(&self) -> f64 {
        let places = self.longitudes.iter().zip(&self.latitudes);
        let placed = places.filter(|(longitude, latitude)| is_place(**longitude, **latitude)).count();
        1.0 - self.all().count() as f64 / placed.max(1) as f64
    }

    /// Returns a cell's corners, each the mean of the four centers around it; `None` if the cell or its
    /// neighbors have no coordinates, or if it spans too much of the globe.
    fn corners(&self, row: usize, column: usize) -> Option<CornerOffsets> {
        let place = |row: usize, column: usize| {
            let at = row * self.columns + column;
            let (longitude, latitude) = (self.longitudes[at], self.latitudes[at]);
            is_place(longitude, latitude).then_some([longitude, latitude])
        };
        let center = place(row, column)?;
        // Offset from the center to a neighbor's; at the border, the mirrored offset of the opposite
        // neighbor.
        let seen = |down: isize, right: isize| {
            let row = row.checked_add_signed(down).filter(|&row| row < self.rows)?;
            let column = column.checked_add_signed(right).filter(|&column| column < self.columns)?;
            let there = place(row, column)?;
            let longitude = (there[0] - center[0] + 180.0).rem_euclid(360.0) - 180.0;
            Some([longitude, there[1] - center[1]])
        };
        let way = |down: isize, right: isize| {
            seen(down, right).or_else(|| seen(-down, -right).map(|way| way.map(|v| -v)))
        };
        let (vertical, horizontal) = ([way(-1, 0)?, way(1, 0)?], [way(0, -1)?, way(0, 1)?]);
        let corner = |down: usize, right: usize| {
            let signed = |side: usize| if side == 0 { -1 } else { 1 };
            let (v, h) = (vertical[down], horizontal[right]);
            let diagonal = seen(signed(down), signed(right)).unwrap_or([v[0] + h[0], v[1] + h[1]]);
            [0, 1].map(|axis| 0.25 * (v[axis] + h[axis] + diagonal[axis]))
        };
        let corners = [corner(0, 0), corner(0, 1), corner(1, 1), corner(1, 0)];
        corners.iter().all(|corner| corner[0].abs() <= MAX_REACH_DEGREES).then_some(corners)
    }
}

/// Counts the cells that have a pixel.
fn count_seen(pixels: &[u32], cells: usize) -> usize {
    let mut is_seen = vec![false; cells];
    pixels.iter().for_each(|&cell| is_seen.get_mut(cell as usize).into_iter().for_each(|seen| *seen = true));
    is_seen.iter().filter(|seen| **seen).count()
}

/// Returns the lowest and the highest of the corners along longitude (0) or latitude (1).
fn extent(corners: &CornerOffsets, axis: usize) -> (f64, f64) {
    let values = corners.iter().map(|corner| corner[axis]);
    (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
}

/// Returns the area of a polygon, square degrees.
fn area_of(corners: &CornerOffsets) -> f64 {
    let next = corners.iter().cycle().skip(1);
    let twice: f64 = corners.iter().zip(next).map(|(a, b)| a[0] * b[1] - a[1] * b[0]).sum();
    0.5 * twice.abs()
}

/// Returns true if a polygon contains a point: a ray from it crosses an odd number of edges.
fn is_inside(corners: &CornerOffsets, point: [f64; 2]) -> bool {
    let next = corners.iter().cycle().skip(1);
    let crosses = |(a, b): (&[f64; 2], &[f64; 2])| {
        (a[1] > point[1]) != (b[1] > point[1])
            && point[0] < a[0] + (point[1] - a[1]) / (b[1] - a[1]) * (b[0] - a[0])
    };
    corners.iter().zip(next).filter(|&pair| crosses(pair)).count() % 2 == 1
}

/// Returns the sector of a longitude.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below the number of sectors")]
fn sector(longitude: f64) -> usize {
    ((longitude.rem_euclid(360.0) / 360.0 * SECTORS as f64) as usize).min(SECTORS - 1)
}

/// Returns the longitude at which the grid begins, as near to the source's own as possible: after the widest
/// gap between cells, or, for a global grid, at -180 or 0 degrees as in the source.
#[expect(clippy::cast_precision_loss, reason = "few sectors")]
fn first_longitude(sectors: &[bool], centers: &CellCenters) -> f64 {
    let (mut longest, mut end) = (0, 0);
    let mut run = 0;
    for at in 0..2 * SECTORS {
        run = if sectors[at % SECTORS] { 0 } else { run + 1 };
        if run > longest && run <= SECTORS {
            (longest, end) = (run, (at + 1) % SECTORS);
        }
    }
    let finite = || centers.longitudes.iter().copied().filter(|v| v.is_finite());
    let is_signed = finite().any(|longitude| (-180.0..0.0).contains(&longitude));
    // Cells of a few degrees leave sectors between their centers empty.
    let is_around = longest * 8 < SECTORS;
    if is_around {
        return if is_signed { -180.0 } else { 0.0 };
    }
    let start = end as f64 / SECTORS as f64 * 360.0;
    if is_signed && start >= 180.0 { start - 360.0 } else { start }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "tests have small numbers")]
mod tests {
    use super::*;

    fn centers(rows: usize, columns: usize, place: impl Fn(f64, f64) -> [f64; 2]) -> CellCenters {
        let all = (0..rows * columns).map(|n| place((n / columns) as f64, (n % columns) as f64));
        let (longitudes, latitudes) = all.map(|[x, y]| (x, y)).unzip();
        CellCenters { rows, columns, longitudes, latitudes }
    }

    /// Source row and column at a longitude and latitude.
    fn at(
        lat_lon_grid: &LatLonGrid,
        columns: usize,
        longitude: f64,
        latitude: f64,
    ) -> Option<(usize, usize)> {
        let column = (longitude - lat_lon_grid.origin[1] + 0.5 * lat_lon_grid.step[1]).rem_euclid(360.0)
            / lat_lon_grid.step[1];
        let row = (latitude - lat_lon_grid.origin[0]) / lat_lon_grid.step[0] + 0.5;
        let column = Some(column as usize).filter(|&c| c < lat_lon_grid.columns)?;
        let row = Some(row).filter(|&r| r >= 0.0 && r < lat_lon_grid.rows as f64)? as usize;
        let cell = lat_lon_grid.cells[row * lat_lon_grid.columns + column];
        (cell != NO_CELL).then(|| (cell as usize / columns, cell as usize % columns))
    }

    #[test]
    fn a_grid_that_is_even_already_stays_as_it_is() {
        let even = centers(20, 30, |row, column| [100.0 + column, -10.0 + row]);
        let lat_lon_grid = LatLonGrid::of(&even).unwrap();
        assert_eq!((lat_lon_grid.rows, lat_lon_grid.columns), (20, 30));
        assert!(
            (lat_lon_grid.origin[0] + 10.0).abs() < 1e-9 && (lat_lon_grid.origin[1] - 100.0).abs() < 1e-9,
            "{lat_lon_grid:?}"
        );
        assert!(lat_lon_grid.cells.iter().enumerate().all(|(pixel, &cell)| cell as usize == pixel));
    }

    #[test]
    fn pixels_of_a_rotated_grid_take_the_nearest_cell() {
        let (sine, cosine) = 0.5f64.sin_cos();
        let place = |row: f64, column: f64| {
            let (x, y) = (column - 30.0, row - 20.0);
            [cosine * x - sine * y + 10.0, sine * x + cosine * y + 40.0]
        };
        let rotated = centers(41, 61, place);
        let lat_lon_grid = LatLonGrid::of(&rotated).unwrap();
        let mut seen = 0;
        for row in 0..lat_lon_grid.rows {
            for column in 0..lat_lon_grid.columns {
                let x = lat_lon_grid.origin[1] + column as f64 * lat_lon_grid.step[1] - 10.0;
                let y = lat_lon_grid.origin[0] + row as f64 * lat_lon_grid.step[0] - 40.0;
                let (u, v) = (cosine * x + sine * y + 30.0, cosine * y - sine * x + 20.0);
                let cell = lat_lon_grid.cells[row * lat_lon_grid.columns + column];
                let is_near_border = |p: f64| (p - p.floor() - 0.5).abs() < 1e-3;
                if is_near_border(u) || is_near_border(v) {
                    continue;
                }
                let (u, v) = (u.round(), v.round());
                let is_there = (0.0..=60.0).contains(&u) && (0.0..=40.0).contains(&v);
                assert_eq!(cell, if is_there { (v * 61.0 + u) as u32 } else { NO_CELL }, "{u} {v}");
                seen += usize::from(is_there);
            }
        }
        assert!(seen > 2000, "{seen}");
    }

    #[test]
    fn cells_across_the_date_line_are_like_any_other() {
        let wrapped = |longitude: f64| (longitude + 180.0).rem_euclid(360.0) - 180.0;
        let pacific = centers(20, 40, |row, column| [wrapped(160.0 + column), -10.0 + row]);
        let lat_lon_grid = LatLonGrid::of(&pacific).unwrap();
        assert_eq!((lat_lon_grid.rows, lat_lon_grid.columns), (20, 40));
        assert!(lat_lon_grid.cells.iter().enumerate().all(|(pixel, &cell)| cell as usize == pixel));
        assert_eq!(at(&lat_lon_grid, 40, -175.0, 0.0), Some((10, 25)));
    }

    #[test]
    fn a_grid_around_the_globe_begins_where_its_longitudes_do() {
        for first in [-180.0, 0.0, 73.0] {
            let wrap = |v: f64| {
                if first < 0.0 { (v + 180.0).rem_euclid(360.0) - 180.0 } else { v.rem_euclid(360.0) }
            };
            let around =
                centers(17, 72, |row, column| [wrap(first + 2.5 + 5.0 * column), -80.0 + 10.0 * row]);
            let lat_lon_grid = LatLonGrid::of(&around).unwrap();
            let west = lat_lon_grid.origin[1] - 0.5 * lat_lon_grid.step[1];
            assert!((west - first.min(0.0)).abs() < 1e-9, "{first}: {west}");
            assert!((lat_lon_grid.step[1] * lat_lon_grid.columns as f64 - 360.0).abs() < 1e-9);
            assert!(lat_lon_grid.cells.iter().all(|&cell| cell != NO_CELL), "no seam");
            for (longitude, column) in [(1.0, 0.0), (101.0, 100.0), (359.0, 355.0)] {
                let expected = ((column - first).rem_euclid(360.0) / 5.0) as usize;
                assert_eq!(
                    at(&lat_lon_grid, 72, wrap(longitude), 1.0).unwrap().1,
                    expected,
                    "{first}: {longitude}"
                );
            }
        }
    }

    #[test]
    fn a_cell_that_contains_a_pole_is_left_out_and_the_others_are_drawn() {
        // A grid whose middle is the north pole: columns and rows are meters on the ground.
        let polar = centers(31, 31, |row, column| {
            let (x, y) = (column - 15.0, row - 15.0);
            [y.atan2(x).to_degrees(), 90.0 - x.hypot(y)]
        });
        let lat_lon_grid = LatLonGrid::of(&polar).unwrap();
        assert!(lat_lon_grid.cells.iter().all(|&cell| cell != 15 * 31 + 15), "the pole itself");
        let column = |longitude: f64| at(&lat_lon_grid, 31, longitude, 80.0).map(|(_, column)| column);
        assert!(matches!(column(0.0), Some(24..=26)), "{:?}", column(0.0));
        assert!(matches!(column(180.0), Some(4..=6)), "{:?}", column(180.0));
        let far = lat_lon_grid.cells.iter().enumerate().filter(|&(pixel, &cell)| {
            let latitude =
                lat_lon_grid.origin[0] + (pixel / lat_lon_grid.columns) as f64 * lat_lon_grid.step[0];
            cell != NO_CELL && (latitude - polar.latitudes[cell as usize]).abs() > 1.5
        });
        assert_eq!(far.count(), 0, "no cell is drawn far from its place");
    }

    #[test]
    fn a_coarse_grid_around_a_pole_would_lose_values_and_is_refused() {
        // Every hundredth cell of an ocean model: two lie beside the pole.
        const NORTH: [[f64; 9]; 4] = [
            [83.1, 82.3, 7.5, 263.9, 263.1, 262.3, 187.5, 83.9, 83.1],
            [51.1, 63.0, 89.4, 63.2, 51.1, 63.0, 89.4, 63.2, 51.1],
            [82.9, 123.1, 172.8, 222.6, 262.9, 303.1, 352.8, 42.6, 82.9],
            [33.4, 40.4, 46.9, 40.5, 33.4, 40.4, 46.9, 40.5, 33.4],
        ];
        let coarse = centers(5, 9, |row, column| match row as usize {
            row @ (0 | 1) => [NORTH[2 * row][column as usize], NORTH[2 * row + 1][column as usize]],
            _ => [82.9 + 45.0 * column, 0.8 - 39.2 * (row - 2.0)],
        });
        assert_eq!(LatLonGrid::of(&coarse).unwrap_err(), "many of its cells reach far around a pole");
    }

    #[test]
    fn a_grid_of_cells_of_many_sizes_is_made_finer() {
        // Mercator: rows are ever narrower toward the pole.
        let narrowing = centers(60, 60, |row, column| [3.0 * column, 85.0 * (row / 60.0).sqrt()]);
        let (coarse, fine) =
            (LatLonGrid::with_pixels(&narrowing, 1.0).unwrap(), LatLonGrid::of(&narrowing).unwrap());
        assert!(
            coarse.hidden > MAX_HIDDEN_SHARE && fine.hidden < coarse.hidden,
            "{} {}",
            coarse.hidden,
            fine.hidden
        );
        assert!(fine.cells.len() > 2 * coarse.cells.len() && fine.cells.len() < 5 * 3600);
    }

    #[test]
    fn cells_without_coordinates_leave_holes() {
        let mut partly = centers(10, 10, |row, column| [column, row]);
        partly.longitudes[44] = f64::NAN;
        partly.latitudes[0] = 1e30;
        let lat_lon_grid = LatLonGrid::of(&partly).unwrap();
        assert_eq!(lat_lon_grid.cells.iter().filter(|&&cell| cell == NO_CELL).count(), 2);
    }

    #[test]
    fn hostile_coordinates_of_a_grid_are_refused_with_a_reason() {
        type Place = fn(f64, f64) -> [f64; 2];
        let places: [(Place, &str); 6] = [
            (|_, _| [f64::NAN; 2], "no grid"),
            (|_, _| [3.0, 4.0], "no grid"),
            (|_, _| [f64::INFINITY, 0.0], "no grid"),
            (|row, column| [column * 1e300, row * 1e300], "no grid"),
            (|row, _| [row, row], "no grid"),
            (|row, column| [column * 120.0, row * 1e-3], "no grid"),
        ];
        for (place, reason) in places {
            match LatLonGrid::of(&centers(8, 9, place)) {
                Err(error) => assert!(error.contains(reason), "{error}"),
                Ok(lat_lon_grid) => assert!(lat_lon_grid.rows * lat_lon_grid.columns <= 1 << 20),
            }
        }
        assert!(LatLonGrid::of(&centers(1, 9, |row, column| [column, row])).is_err());
        // Numbers without an order still give a picture, of bounded size.
        let noise = centers(50, 60, |row, column| {
            [(row * 7919.0 + column * 104_729.0) % 360.0, (column * 31.0 + row * 17.0) % 90.0]
        });
        if let Ok(lat_lon_grid) = LatLonGrid::of(&noise) {
            assert!(lat_lon_grid.cells.len() < 1 << 20);
        }
    }
}
