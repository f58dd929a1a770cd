//! Grids of an adaptive mesh as boxes in a picture, in a color for each level.
//!
//! Their positions are an array of the data set, which is read once; the last one is cached.

use std::sync::{Arc, Mutex, PoisonError};

use array::{
    ArrayInfo, AxisRange, Dataset, DatasetId, Generation, GridBox, Priority, ReadRequest, Result, Selection,
    Source, Target,
};
use render::{Bounds, MAX_BOXES, WireBox, WireBoxes};
use view::View;

/// Colors of levels, the coarsest first, repeated after the last. They are distinct for most color-blind
/// viewers too.
const COLORS: [[u8; 3]; 8] = [
    [190, 190, 190],
    [86, 180, 233],
    [230, 159, 0],
    [0, 158, 115],
    [240, 228, 66],
    [204, 121, 167],
    [213, 94, 0],
    [0, 114, 178],
];

/// Returns the color of a level of an array with `levels` levels.
#[must_use]
pub fn grid_color(level: usize, levels: usize) -> [u8; 3] {
    COLORS[levels.saturating_sub(level + 1) % COLORS.len()]
}

/// Boxes to draw in a picture.
#[derive(Debug, Default)]
pub(crate) struct GridBoxes {
    pub(crate) wires: WireBoxes,
    /// Note for users about boxes that are not drawn.
    pub(crate) omitted: Option<String>,
}

/// Data set, generation and array number of a table of grids.
type GridTableKey = (DatasetId, Generation, u32);

/// Cache of the boxes of the table of grids that was read last.
#[derive(Debug, Default)]
pub(crate) struct GridBoxCache(Mutex<Option<(GridTableKey, Arc<GridBoxes>)>>);

impl GridBoxCache {
    /// Returns the boxes that a view shows; none if it requests none or if its array is no field of a mesh.
    ///
    /// # Errors
    /// Those of reading, the first time; later calls return no boxes.
    ///
    /// # Cancel safety
    /// Safe: the next call reads again.
    pub(crate) async fn of(
        &self,
        view: &View,
        source: &dyn Source,
        dataset: &Dataset,
    ) -> Result<Arc<GridBoxes>> {
        let field = if view.grids { dataset.find(&view.array).ok() } else { None };
        let Some((field, number, table)) = field
            .and_then(|(_, field)| dataset.grids_of(field).map(|(number, table)| (field, number, table)))
        else {
            return Ok(Arc::default());
        };
        let key = (dataset.id, dataset.generation, number);
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, boxes)) = known.filter(|(known, _)| *known == key) {
            return Ok(boxes);
        }
        let read = read(source, number, table).await;
        let boxes = read.as_ref().map_or_else(
            |_| Arc::default(),
            |grids| Arc::new(boxes(grids, table.shape()[0], field.levels.len())),
        );
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((key, Arc::clone(&boxes)));
        read.map(|_| boxes).map_err(|e| e.context("read the positions of the mesh's grids"))
    }
}

/// Most rows of a table that are examined: more grids than a mesh may have.
const MAX_ROWS: u64 = 1 << 20;

/// Reads the rows of a table that are drawn: the coarsest levels that fit as a whole, and evenly spaced rows
/// of the next one, since neighbors in a table are neighbors in space.
async fn read(source: &dyn Source, number: u32, table: &ArrayInfo) -> Result<Vec<GridBox>> {
    let (all, most) = (table.shape()[0], MAX_BOXES as u64);
    if all <= most {
        return rows(source, number, table, AxisRange::contiguous(0, all)).await;
    }
    let all = all.min(MAX_ROWS);
    let one = AxisRange::contiguous(0, 1);
    let levels = elements(source, number, table, [AxisRange::contiguous(0, all), one]).await?;
    let levels: Vec<f64> = array::with_element!(table.dtype.element(), T => {
        array::elements::<T>(&levels, table.dtype.order()).map(array::Element::to_f64).collect()
    });
    let last = levels.get(MAX_BOXES).copied().unwrap_or_default();
    let is_of_last = |level: &f64| level.total_cmp(&last).is_eq();
    let first = levels.iter().position(is_of_last).map_or(most, |first| (first as u64).min(most));
    let count = levels.iter().filter(|level| is_of_last(level)).count() as u64;
    let mut boxes = rows(source, number, table, AxisRange::contiguous(0, first)).await?;
    if first < most {
        let step = count.div_ceil(most - first).max(1);
        let some =
            AxisRange { start: first, count: count.div_ceil(step).min((all - first).div_ceil(step)), step };
        boxes.extend(rows(source, number, table, some).await?);
    }
    Ok(boxes)
}

async fn rows(source: &dyn Source, number: u32, table: &ArrayInfo, rows: AxisRange) -> Result<Vec<GridBox>> {
    let columns = AxisRange::contiguous(0, array::GRID_COLUMNS as u64);
    GridBox::from_rows(&elements(source, number, table, [rows, columns]).await?, table)
}

async fn elements(
    source: &dyn Source,
    number: u32,
    table: &ArrayInfo,
    ranges: [AxisRange; 2],
) -> Result<Vec<u8>> {
    let selection = Selection::new(ranges)?;
    let (target, region) = Target::new(&selection.shape(), table.dtype.size_bytes())?;
    let request = ReadRequest { array: number, level: 0, selection, priority: Priority::INTERACTIVE };
    source.read(request, region).await?;
    target.into_vec()
}

/// Returns boxes of grids, of which there are `all` in total.
fn boxes(grids: &[GridBox], all: u64, levels: usize) -> GridBoxes {
    let wire = |grid: &GridBox| WireBox {
        bounds: Bounds { min: grid.lower, max: grid.upper },
        color: grid_color(grid.level.into(), levels),
    };
    let drawn = grids.len() as u64;
    let finest = grids.iter().map(|grid| grid.level).min().unwrap_or(0);
    let omitted = (drawn < all)
        .then(|| format!("{drawn} of {all} grids are drawn as lines, of level {finest} and coarser."));
    GridBoxes { wires: grids.iter().map(wire).collect(), omitted }
}

#[cfg(test)]
mod tests {
    use array::conformance::{MemorySource, one_array};
    use array::{Attribute, GRIDS_ATTRIBUTE};

    use super::*;

    /// Makes a field of one level and a table of this number of grids.
    fn mesh(grids: usize) -> (Dataset, Vec<Vec<bytes::Bytes>>) {
        let mut dataset = one_array("<f8".parse().unwrap(), &[4; 3], &[4; 3]);
        let name = dataset.arrays[0].name.clone();
        dataset.arrays[0].attributes.insert(GRIDS_ATTRIBUTE.into(), Attribute::Text("amr/grids".into()));
        let mut table = one_array("<f8".parse().unwrap(), &[grids as u64, 7], &[64, 7]).arrays.remove(0);
        table.name = "amr/grids".into();
        dataset.arrays.push(table);
        assert_ne!(name, "amr/grids");
        let row =
            |grid: usize| [0.0, grid as f64, 0.0, 0.0, grid as f64 + 0.5, 1.0, 2.0].map(f64::to_le_bytes);
        let rows: Vec<u8> = (0..grids).flat_map(row).flatten().collect();
        let field: Vec<u8> = [0.5f64; 64].map(f64::to_le_bytes).concat();
        (dataset, vec![vec![field.into()], vec![rows.into()]])
    }

    #[tokio::test]
    async fn the_coarsest_boxes_of_a_mesh_are_drawn_and_a_note_counts_the_others() {
        // More grids of one level than the limit: every second one is drawn.
        for (count, drawn) in [(3, 3), (MAX_BOXES + 5, MAX_BOXES / 2 + 3)] {
            let step = count.div_ceil(MAX_BOXES) as f64;
            let (dataset, elements) = mesh(count);
            let source = MemorySource::new(dataset.clone(), elements).unwrap();
            let view = View { grids: true, array: dataset.arrays[0].name.clone(), ..View::default() };
            let grids = GridBoxCache::default();
            let boxes = grids.of(&view, &source, &dataset).await.unwrap();
            assert_eq!((boxes.wires.len(), boxes.omitted.is_some()), (drawn, drawn < count));
            assert_eq!(
                (boxes.wires[2].bounds.min, boxes.wires[2].bounds.max),
                ([2.0 * step, 0.0, 0.0], [2.0 * step + 0.5, 1.0, 2.0])
            );
            let again = grids.of(&view, &source, &dataset).await.unwrap();
            assert!(Arc::ptr_eq(&boxes, &again), "read once");
            let plain = View { grids: false, ..view };
            assert!(grids.of(&plain, &source, &dataset).await.unwrap().wires.is_empty());
        }
    }

    #[tokio::test]
    async fn coarse_levels_are_drawn_whole_and_evenly_chosen_boxes_of_the_next_one() {
        // 96 boxes of level 2, 20,000 of level 1, 50 of level 0.
        let levels = [(2.0, 96), (1.0, 20_000), (0.0, 50)];
        let rows: Vec<f64> = levels
            .iter()
            .flat_map(|&(level, count)| {
                (0..count).flat_map(move |n| [level, f64::from(n), 0.0, 0.0, f64::from(n) + 1.0, 1.0, 1.0])
            })
            .collect();
        let mut dataset = one_array("<f8".parse().unwrap(), &[20_146, 7], &[256, 7]);
        dataset.arrays[0].name = "amr/grids".into();
        let bytes: Vec<u8> = rows.iter().flat_map(|value| value.to_le_bytes()).collect();
        let blocks: Vec<bytes::Bytes> = vec![bytes.into()];
        let source = MemorySource::new(dataset.clone(), vec![blocks]).unwrap();
        let drawn = read(&source, 0, &dataset.arrays[0]).await.unwrap();
        let of = |level: u8| drawn.iter().filter(move |grid| grid.level == level).map(|grid| grid.lower[0]);
        assert_eq!((of(2).count(), of(1).count(), of(0).count()), (96, 4_000, 0));
        assert!(of(1).zip(0..4_000).all(|(at, n)| at == f64::from(5 * n)), "every fifth");
        let boxes = boxes(&drawn, 20_146, 3);
        assert_eq!(
            boxes.omitted.as_deref(),
            Some("4096 of 20146 grids are drawn as lines, of level 1 and coarser.")
        );
    }
}
