//! Outputs of Enzo: a text file, `NAME.hierarchy`, lists all grids, and HDF5 files have a group for each.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use array::{ArrayInfo, Attribute, Attributes, Dataset, Error, Result};

use super::composite::GridLocation;
use super::grids::{Centering, GridDescription, MAX_GRIDS, MeshGrids};
use super::{Amr, MAX_MESH_FILES, MeshField, MeshStep};
use crate::{ByteStore, FileBytes, Format, OpenOptions, formats::hdf5};

/// Ending of the name of the hierarchy file.
pub(super) const ENDING: &str = ".hierarchy";
/// Longest hierarchy file of Enzo that is read, bytes: about 1,000 for each grid.
const MAX_HIERARCHY_BYTES: usize = 64 << 20;

/// Whether a file begins as such a text does.
pub(crate) fn recognizes(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&head[..head.len().min(256)]);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let begins =
        |line: Option<&str>, key: &str| line.is_some_and(|line| split(line).is_some_and(|(k, _)| k == key));
    begins(lines.next(), "Grid") && begins(lines.next(), "GridRank")
}

/// Opens the mesh of a hierarchy file; the data files lie in its folder.
///
/// # Errors
/// `Corrupt` if the text is no list of grids, or the grids form no mesh; errors of opening the files.
pub(crate) fn open(index: Arc<FileBytes>, options: &OpenOptions) -> Result<Amr> {
    if index.size_bytes() > MAX_HIERARCHY_BYTES as u64 {
        return Err(Error::too_large(format!(
            "expected a list of grids of at most {MAX_HIERARCHY_BYTES} bytes"
        )));
    }
    let text = String::from_utf8_lossy(&index.head(MAX_HIERARCHY_BYTES)?).into_owned();
    let grids = parse(&text)?;
    let described: Vec<GridDescription> = grids.iter().map(|grid| grid.described).collect();
    let placed = Arc::new(MeshGrids::new(&described, Centering::Cells, size_of::<f64>())?);
    let mut files: Vec<(&str, Arc<dyn Format>)> = Vec::new();
    let mut file_of = Vec::with_capacity(grids.len());
    for grid in &grids {
        let number = match files.iter().position(|(name, _)| *name == grid.file) {
            Some(number) => number,
            None if files.len() >= MAX_MESH_FILES => {
                return Err(Error::too_large(format!(
                    "expected at most {MAX_MESH_FILES} files of a mesh, found more"
                )));
            }
            None => {
                let file = index.open_beside(&grid.file).and_then(|file| hdf5::open(file, options));
                files.push((&grid.file, Arc::new(file.map_err(|e| e.context(grid.file.clone()))?)));
                files.len() - 1
            }
        };
        file_of.push(number);
    }
    let files: Vec<Arc<dyn Format>> = files.into_iter().map(|(_, file)| file).collect();
    let fields = fields(&grids, &placed, &files, &file_of);
    if fields.is_empty() {
        return Err(Error::corrupt("expected fields of which every grid has values, found none"));
    }
    let name = index.name();
    let mut amr = Amr::of_files(name.trim_end_matches(ENDING), "Enzo", files, fields);
    amr.set_index(index);
    Ok(amr)
}

/// Grid as the hierarchy file describes it.
#[derive(Debug)]
struct EnzoGrid {
    number: u64,
    described: GridDescription,
    file: String,
}

/// The grids of a text: lines `KEY = VALUES`, those of a grid after its `Grid = NUMBER`.
fn parse(text: &str) -> Result<Vec<EnzoGrid>> {
    let mut grids = Vec::new();
    let mut current: BTreeMap<&str, &str> = BTreeMap::new();
    for (key, value) in text.lines().filter_map(split).chain(std::iter::once(("Grid", ""))) {
        if key == "Grid" && !current.is_empty() {
            if grids.len() >= MAX_GRIDS {
                return Err(Error::too_large(format!("expected at most {MAX_GRIDS} grids, found more")));
            }
            grids.push(grid(&current)?);
            current.clear();
        }
        current.insert(key, value);
    }
    Ok(grids)
}

fn split(line: &str) -> Option<(&str, &str)> {
    line.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
}

fn grid(values: &BTreeMap<&str, &str>) -> Result<EnzoGrid> {
    let text = |key: &str| {
        let missing = || {
            Error::corrupt(format!("expected `{key}` of every grid, found {:?} without", values.get("Grid")))
        };
        values.get(key).copied().ok_or_else(missing)
    };
    let start: [u64; 3] = zyx(text("GridStartIndex")?)?;
    let end: [u64; 3] = zyx(text("GridEndIndex")?)?;
    let (lower, upper): ([f64; 3], [f64; 3]) = (zyx(text("GridLeftEdge")?)?, zyx(text("GridRightEdge")?)?);
    let mut count = [0; 3];
    let mut spacing = [0.0; 3];
    for axis in 0..3 {
        let cells = end[axis].checked_sub(start[axis]).and_then(|n| n.checked_add(1));
        count[axis] = cells.ok_or_else(|| Error::corrupt("expected grids that end after they start"))?;
        #[expect(clippy::cast_precision_loss, reason = "cells of a grid")]
        let cells = count[axis] as f64;
        spacing[axis] = (upper[axis] - lower[axis]) / cells;
    }
    let number = text("Grid")?;
    let number =
        number.parse().map_err(|_| Error::corrupt(format!("expected a grid's number, found `{number}`")))?;
    // Written with the path that it had on the machine that wrote it.
    let file =
        Path::new(text("BaryonFileName")?).file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(EnzoGrid { number, described: GridDescription { lower, spacing, count }, file })
}

/// Three numbers that are given as x, y, z; meshes of fewer axes give fewer.
fn zyx<T: std::str::FromStr + Copy>(text: &str) -> Result<[T; 3]> {
    let numbers: Vec<T> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    match numbers[..] {
        [x, y, z] => Ok([z, y, x]),
        _ => Err(Error::unsupported(format!("expected a mesh of three axes, found `{text}`"))),
    }
}

/// The fields of which every grid has values.
fn fields(
    grids: &[EnzoGrid],
    placed: &Arc<MeshGrids>,
    files: &[Arc<dyn Format>],
    file_of: &[usize],
) -> Vec<MeshField> {
    let datasets: Vec<_> = files.iter().map(|file| file.dataset()).collect();
    let by_name = |dataset: &'_ Arc<Dataset>| -> HashMap<String, u32> {
        (0u32..).zip(&dataset.arrays).map(|(number, info)| (info.name.clone(), number)).collect()
    };
    let numbers: Vec<_> = datasets.iter().map(by_name).collect();
    let of_grid = |grid: usize, name: &str| -> Option<(GridLocation, &ArrayInfo)> {
        let file = file_of[grid];
        let array = *numbers[file].get(&format!("{}{name}", group(&grids[grid])))?;
        Some((GridLocation { file, array, entry: None }, &datasets[file].arrays[array as usize]))
    };
    let Some(first) = grids.first() else { return Vec::new() };
    let of_first = datasets[file_of[0]].arrays.iter();
    let mut fields = Vec::new();
    for (name, info) in of_first.filter_map(|info| Some((info.name.strip_prefix(&group(first))?, info))) {
        let place = |grid: usize| {
            let (place, found) = of_grid(grid, name)?;
            (found.shape() == grids[grid].described.count && found.dtype == info.dtype).then_some(place)
        };
        let locations = (0..grids.len()).map(place).collect::<Option<Vec<_>>>();
        let Some(locations) = locations else { continue };
        let units = match info.attributes.get("Units") {
            Some(Attribute::Text(units)) if units != "none" => units.clone(),
            _ => info.units.clone(),
        };
        let steps = vec![MeshStep { grids: Arc::clone(placed), locations }];
        let (name, dtype, attributes) = (name.into(), info.dtype, Attributes::new());
        fields.push(MeshField { name, dtype, units, attributes, time: None, steps });
    }
    fields
}

/// The group of a grid's arrays.
fn group(grid: &EnzoGrid) -> String {
    format!("Grid{:08}/", grid.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\nGrid = 1\nGridRank          = 3\nGridStartIndex    = 3 3 3\nGridEndIndex      = 18 10 6\n\
        GridLeftEdge      = 0 0 0\nGridRightEdge     = 1 0.5 0.25\nBaryonFileName = /away/DD0010/run.cpu0000\n\
        Pointer: Grid[1]->NextGridThisLevel = 0\n";

    #[test]
    fn grids_are_told_in_text() {
        assert!(recognizes(TEXT.as_bytes()) && !recognizes(b"GridRank = 3\n"));
        let described = GridDescription { lower: [0.0; 3], spacing: [0.0625; 3], count: [4, 8, 16] };
        let found = parse(TEXT).unwrap();
        assert_eq!((found[0].number, found[0].file.as_str()), (1, "run.cpu0000"));
        assert_eq!(
            (found[0].described.count, found[0].described.spacing),
            (described.count, described.spacing)
        );
    }

    #[test]
    fn bad_texts_are_told_of() {
        let error =
            |from: &str, to: &str| parse(&TEXT.replace(from, to)).map(|_| ()).unwrap_err().to_string();
        assert!(error("GridEndIndex", "GridEnd").contains("`GridEndIndex`"));
        assert!(error("18 10 6", "18 10").contains("three axes"));
        assert!(error("18 10 6", "2 10 6 ").contains("end after"));
        assert!(error("Grid = 1", "Grid = one").contains("number"));
    }
}
