//! Skipping what the transfer function hides: per cell of a block, how far the nearest visible cell is.

use crate::resident::Resident;
use crate::table::Table;

/// What of a block can be seen, in cells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// Nothing.
    Hidden,
    /// Perhaps everything: no cell is worth skipping.
    Full,
    /// Per cell the distance to the nearest visible one: the larger of the steps along z, y, x; 0 for visible
    /// cells. C order.
    Distances(Vec<u8>),
}

impl Field {
    pub(crate) fn new<T>(block: &Resident<T>, table: &Table) -> Self {
        let visible: Vec<bool> = block.cells.iter().map(|&range| table.may_show(range)).collect();
        if !visible.contains(&true) {
            return Self::Hidden;
        }
        if !visible.contains(&false) {
            return Self::Full;
        }
        Self::Distances(distances(&visible, block.layout.cells))
    }
}

/// Chessboard distances by one sweep forward and one backward over half of the neighbours each.
fn distances(visible: &[bool], [nz, ny, nx]: [usize; 3]) -> Vec<u8> {
    // A border of far cells spares the questions at the edges.
    let (py, px) = (ny + 2, nx + 2);
    let index = |z: usize, y: usize, x: usize| ((z + 1) * py + y + 1) * px + x + 1;
    let mut padded = vec![u8::MAX; (nz + 2) * py * px];
    for z in 0..nz {
        for y in 0..ny {
            for x in 0..nx {
                if visible[(z * ny + y) * nx + x] {
                    padded[index(z, y, x)] = 0;
                }
            }
        }
    }
    let plane = py * px;
    let before: Vec<usize> = (0..13).map(|i| (i / 9) * plane + (i / 3 % 3) * px + i % 3).collect();
    let centre = plane + px + 1;
    let mut relax = |at: usize, backward: bool| {
        for offset in &before {
            let other = if backward { at + centre - offset } else { at - centre + offset };
            padded[at] = padded[at].min(padded[other].saturating_add(1));
        }
    };
    let cells = || (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| (z, y, x))));
    for (z, y, x) in cells() {
        relax(index(z, y, x), false);
    }
    for (z, y, x) in cells() {
        relax(index(nz - 1 - z, ny - 1 - y, nx - 1 - x), true);
    }
    cells().map(|(z, y, x)| padded[index(z, y, x)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_equal_a_search_over_all_cells() {
        let shape = [5, 7, 6];
        let [nz, ny, nx] = shape;
        let mut visible = vec![false; nz * ny * nx];
        for i in [3, 77, 200] {
            visible[i] = true;
        }
        let place = |i: usize| [i / (ny * nx), i / nx % ny, i % nx];
        let found = distances(&visible, shape);
        for (i, &distance) in found.iter().enumerate() {
            let apart = |j: usize| (0..3).map(|a| place(i)[a].abs_diff(place(j)[a])).max().unwrap();
            let expected = [3, 77, 200].map(apart).into_iter().min().unwrap();
            assert_eq!(usize::from(distance), expected, "cell {:?}", place(i));
        }
    }
}
