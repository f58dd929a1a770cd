//! Block-structured adaptive meshes (AMR): grids of many resolutions as arrays with sparse levels.
//!
//! A layer over other formats: it finds in their descriptions the stored arrays that are grids of one mesh, and serves each field
//! as one array over the whole domain. Its levels are those of the mesh; a block that no grid of its level intersects is not
//! covered, and its ancestor is used instead.
//!
//! ```text
//! flash     one array holds a field of all grids          carpet    attributes of each array state its position
//! enzo      a text file lists the grids                   grids     positions of grids, as levels of one domain
//! composite reading a level from its grids, and from coarser ones between them
//! corners   preview level: the corners of blocks alone
//! table     positions of the grids, as an array beside the fields
//! ```

mod carpet;
mod composite;
mod corners;
mod enzo;
mod flash;
mod grids;
mod table;

use std::path::Path;
use std::sync::Arc;

use array::{
    ArrayInfo, Attributes, Axis, AxisKind, Coordinates, DType, Dataset, DatasetId, Error, Level, PackedChunk,
    Region, Result, Selection,
};

use self::composite::{CompositeReader, GridLocation, is_interpolated};
use self::corners::CornerLattice;
use self::grids::MeshGrids;
use self::table::GridTable;
use crate::{Access, CancelFlag, FileBytes, Format, OpenOptions, formats::common::describe, formats::hdf5};

pub(crate) use self::enzo::{open as open_enzo, recognizes as is_enzo};

/// Most files of one adaptive mesh.
const MAX_MESH_FILES: usize = 1_024;
/// Most entries of a folder in which files of a mesh are searched.
const MAX_LISTED: usize = 65_536;

/// One field of a mesh.
struct MeshField {
    name: String,
    dtype: DType,
    units: String,
    attributes: Attributes,
    /// The axis of its times; `None` where it has but one, and no such axis.
    time: Option<Axis>,
    /// Time by time, one at least; levels are the same at all.
    steps: Vec<MeshStep>,
}

/// A field at one time.
struct MeshStep {
    grids: Arc<MeshGrids>,
    /// Locations by the number of the grid.
    locations: Vec<GridLocation>,
}

impl MeshField {
    /// The first one's grids: levels, and where they lie.
    fn grids(&self) -> &MeshGrids {
        &self.steps[0].grids
    }

    /// Lattice of the preview level of the corners of blocks, after the levels of the mesh; `None` if it would save nothing.
    fn corners(&self, files: &[Arc<dyn Format>]) -> Option<CornerLattice> {
        let MeshStep { grids, locations } = &self.steps[0];
        // Of a chunk, a corner costs as much as all of it.
        let is_flat = |place: &GridLocation| {
            files.get(place.file).is_some_and(|file| file.access(place.array) == Access::Flat)
        };
        CornerLattice::of(grids).filter(|_| locations.iter().all(is_flat))
    }

    fn describe(&self, corners: Option<&CornerLattice>) -> ArrayInfo {
        let grids = self.grids();
        let axes = ["z", "y", "x"].iter().zip([AxisKind::Z, AxisKind::Y, AxisKind::X]).enumerate();
        let axes: Vec<Axis> = axes
            .map(|(number, (name, kind))| {
                let (step, origin) = grids.along(0, number);
                let coordinates = Coordinates::Regular { origin, step };
                Axis { coordinates, ..Axis::new(*name, kind) }
            })
            .collect();
        let level = |tier: usize| Level {
            factor: grids.factor(tier).to_vec(),
            ..describe::level_zero(
                self.dtype,
                &axes,
                &grids.tiers[tier].shape,
                None,
                grids.world_from_voxel(tier),
            )
        };
        let of_mesh = (0..grids.tiers.len()).map(level);
        let levels = of_mesh.chain(corners.map(|corners| corners.level(grids, self.dtype, &axes)));
        let mut info = describe::array(&self.name, self.dtype, axes.clone(), &grids.tiers[0].shape, None);
        info.levels = levels.collect();
        info.units.clone_from(&self.units);
        info.attributes.clone_from(&self.attributes);
        info.notes = self.notes(corners.is_some());
        if let Some(time) = &self.time {
            info.axes.insert(0, time.clone());
            for level in &mut info.levels {
                level.shape.insert(0, self.steps.len() as u64);
                level.block.insert(0, 1);
                level.factor.insert(0, 1.0);
            }
        }
        info
    }

    fn notes(&self, has_corners: bool) -> Vec<String> {
        let (grids, levels) = (self.grids(), self.grids().tiers.len());
        let counts = self.steps.iter().map(|step| step.locations.len());
        let count = match (counts.clone().min(), counts.max()) {
            (Some(least), Some(most)) if least < most => format!("{least} to {most} grids"),
            (_, most) => format!("{} grids", most.unwrap_or(0)),
        };
        let between = match is_interpolated(self.dtype) {
            true => "interpolated from the next coarser one",
            false => "those of the nearest sample of the next coarser one",
        };
        let mut notes = vec![match levels {
            1 => count,
            _ => format!("{count} on {levels} levels; where a level has none, values are {between}"),
        }];
        if grids.left_out > 0 {
            notes.push(format!("{} finer levels are too large to be described", grids.left_out));
        }
        if has_corners {
            notes.push(
                "level of corners: the outermost samples of each block alone, for a first look; where blocks meet, those of the first"
                    .into(),
            );
        }
        notes
    }
}

/// A mesh, and the arrays of the file that holds it, if it is one.
pub(crate) struct Amr {
    dataset: Arc<Dataset>,
    files: Vec<Arc<dyn Format>>,
    fields: Vec<MeshField>,
    /// Lattices of corners, in the order of `fields`.
    corners: Vec<Option<CornerLattice>>,
    /// Arrays after them.
    tables: Vec<GridTable>,
    /// File that lists the grids; it must stay unchanged.
    index: Option<Arc<FileBytes>>,
    /// Whether arrays after these are those of the only file.
    shows_stored: bool,
}

impl Amr {
    /// A mesh that lies in several files.
    fn of_files(name: &str, format: &str, files: Vec<Arc<dyn Format>>, mut fields: Vec<MeshField>) -> Self {
        let tables = GridTable::of_fields(&mut fields);
        let stored: Vec<_> = files.iter().map(|file| file.dataset()).collect();
        let ids = stored.iter().map(|dataset| dataset.id.0.to_le_bytes());
        let corners: Vec<_> = fields.iter().map(|field| field.corners(&files)).collect();
        let dataset = Dataset {
            id: DatasetId::of(ids),
            generation: array::Generation(0),
            name: name.into(),
            format: format.into(),
            arrays: described(&fields, &corners, &tables),
            attributes: Attributes::new(),
            left_out: Vec::new(),
            warnings: stored.iter().flat_map(|dataset| dataset.warnings.clone()).collect(),
            groups: Vec::new(),
        };
        Self { dataset: Arc::new(dataset), files, fields, corners, tables, index: None, shows_stored: false }
    }

    /// The fields of a mesh in front of the arrays of the file in which they are stored.
    fn before_stored(file: Arc<dyn Format>, mut fields: Vec<MeshField>, warning: Option<String>) -> Self {
        fields.iter_mut().for_each(|field| field.name = format!("amr/{}", field.name));
        let tables = GridTable::of_fields(&mut fields);
        let mut dataset = Dataset::clone(&file.dataset());
        let files = vec![file];
        let corners: Vec<_> = fields.iter().map(|field| field.corners(&files)).collect();
        dataset.arrays.splice(0..0, described(&fields, &corners, &tables));
        dataset.warnings.extend(warning);
        Self { dataset: Arc::new(dataset), files, fields, corners, tables, index: None, shows_stored: true }
    }

    /// Sets the file that lists the grids.
    fn set_index(&mut self, index: Arc<FileBytes>) {
        let dataset = Arc::make_mut(&mut self.dataset);
        let identity = index.identity().into_iter().chain([dataset.id.0.to_le_bytes().to_vec()]);
        dataset.id = DatasetId::of(identity);
        self.index = Some(index);
    }

    fn table(&self, array: u32) -> Option<&GridTable> {
        self.tables.get((array as usize).checked_sub(self.fields.len())?)
    }

    fn stored(&self, array: u32) -> Result<(&Arc<dyn Format>, u32)> {
        let own = u32::try_from(self.fields.len() + self.tables.len()).unwrap_or(u32::MAX);
        match (self.shows_stored, array.checked_sub(own), self.files.first()) {
            (true, Some(stored), Some(file)) => Ok((file, stored)),
            _ => Err(Error::not_found(format!(
                "expected an array below {}, found {array}",
                self.dataset.arrays.len()
            ))),
        }
    }
}

fn described(
    fields: &[MeshField],
    corners: &[Option<CornerLattice>],
    tables: &[GridTable],
) -> Vec<ArrayInfo> {
    let fields = fields.iter().zip(corners).map(|(field, corners)| field.describe(corners.as_ref()));
    fields.chain(tables.iter().map(GridTable::describe)).collect()
}

/// A selection of a field at its times: the elements in space of each, and where they go.
fn by_time(
    field: &MeshField,
    selection: &Selection,
    into: Region,
) -> Result<Vec<(usize, Selection, Region)>> {
    let Some((times, space)) = selection.ranges().split_first().filter(|_| field.time.is_some()) else {
        return Ok(vec![(0, selection.clone(), into)]);
    };
    let space = Selection::new(space.iter().copied())?;
    let mut rest = Some(into);
    let mut parts = Vec::new();
    for index in 0..times.count {
        let Some(into) = rest.take() else { break };
        let (first, others) = into.split(0, 1);
        let step = usize::try_from(times.index(index)).map_err(|_| Error::internal("a time beyond all"))?;
        parts.push((step, space.clone(), first.without_outer_axis()));
        rest = Some(others);
    }
    Ok(parts)
}

impl Format for Amr {
    fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.dataset)
    }

    fn access(&self, array: u32) -> Access {
        self.stored(array).map_or(Access::Flat, |(file, array)| file.access(array))
    }

    fn covers(&self, array: u32, level: u8, selection: &Selection) -> bool {
        let Some(field) = self.fields.get(array as usize) else { return true };
        if usize::from(level) + 1 >= field.grids().tiers.len() {
            return true;
        }
        let (steps, space) = match (&field.time, selection.ranges()) {
            (Some(_), [times, space @ ..]) => {
                let within = |step: usize| times.within(step as u64, step as u64 + 1).1 > 0;
                ((0..field.steps.len()).filter(|&step| within(step)).collect(), space)
            }
            (_, space) => (vec![0], space),
        };
        let meets = |step: usize| {
            field.steps[step].grids.tiers[usize::from(level)].grids.iter().any(|grid| grid.meets(space))
        };
        steps.into_iter().any(meets)
    }

    fn read(
        &self,
        array: u32,
        level: u8,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        if let Some(table) = self.table(array) {
            return table.read(selection, into);
        }
        let Some(field) = self.fields.get(array as usize) else {
            let (file, stored) = self.stored(array)?;
            return file.read(stored, level, selection, into, cancel);
        };
        if let Some(index) = &self.index {
            index.check_unchanged()?;
        }
        let corners = self.corners.get(array as usize).and_then(Option::as_ref);
        let read = |step: usize, selection: &Selection, into: Region| {
            let MeshStep { grids, locations } =
                field.steps.get(step).ok_or_else(|| Error::internal("a time beyond all"))?;
            let reader = CompositeReader { files: &self.files, grids, locations, dtype: field.dtype, cancel };
            match corners.filter(|_| usize::from(level) == grids.tiers.len()) {
                Some(corners) => corners.read(&reader, selection, into),
                None => reader.read(usize::from(level), selection, into),
            }
        };
        by_time(field, selection, into)?
            .into_iter()
            .try_for_each(|(step, selection, into)| read(step, &selection, into))
            .map_err(|e| e.context(format!("read field `{}`", field.name)))
    }

    fn packed(
        &self,
        array: u32,
        level: u8,
        selection: &Selection,
        cancel: &CancelFlag,
    ) -> Result<Option<PackedChunk>> {
        match self.stored(array) {
            Ok((file, stored)) => file.packed(stored, level, selection, cancel),
            Err(_) => Ok(None),
        }
    }
}

/// Returns the file with the fields of its mesh in front of its arrays. A file that looks like a mesh and is none stays unchanged,
/// with a warning.
pub(crate) fn over(file: Arc<dyn Format>) -> Arc<dyn Format> {
    let found = flash::fields(&*file).and_then(|fields| match fields.is_empty() {
        true => carpet::fields_of_one(&file),
        false => Ok(fields),
    });
    match found {
        Ok(fields) if fields.is_empty() => file,
        Ok(fields) => Arc::new(Amr::before_stored(file, fields, None)),
        Err(error) => {
            let warning = format!("not shown as a mesh: {}", error.message());
            Arc::new(Amr::before_stored(file, Vec::new(), Some(warning)))
        }
    }
}

/// The mesh whose files lie in a directory; `None` where there is none.
///
/// # Errors
/// `Corrupt` where its files contradict each other; those of opening them.
pub(crate) fn open_directory(path: &Path, options: &OpenOptions) -> Result<Option<Amr>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)?.take(MAX_LISTED) {
        names.extend(entry?.file_name().into_string());
    }
    names.sort_unstable();
    if let Some(index) = names.iter().find(|name| name.ends_with(enzo::ENDING)) {
        return enzo::open(FileBytes::open(&path.join(index))?, options).map(Some);
    }
    let is_hdf5 = |name: &&String| [".h5", ".hdf5"].iter().any(|ending| name.ends_with(ending));
    let files: Vec<_> = names.iter().filter(is_hdf5).take(MAX_MESH_FILES + 1).collect();
    if files.len() > MAX_MESH_FILES {
        return Err(Error::too_large(format!(
            "expected at most {MAX_MESH_FILES} files of a mesh in a folder, found more"
        )));
    }
    let open = |name: &&String| {
        let file = hdf5::open(FileBytes::open(&path.join(name))?, options)
            .map_err(|e| e.context((*name).clone()))?;
        Ok(Arc::new(file) as Arc<dyn Format>)
    };
    let files = files.iter().map(open).collect::<Result<Vec<_>>>()?;
    let fields = carpet::fields(&files)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok((!fields.is_empty()).then(|| Amr::of_files(&name, "Carpet HDF5", files, fields)))
}

/// Whether the files of a directory seem to be those of one mesh: by the hierarchy file of Enzo, or by the first HDF5 file, since the
/// other ones of Carpet are like it.
///
/// # Errors
/// `Io`, `Denied`.
pub(crate) fn recognizes_directory(path: &Path, options: &OpenOptions) -> Result<bool> {
    let mut first: Option<String> = None;
    for entry in std::fs::read_dir(path)?.take(MAX_LISTED) {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        if name.ends_with(enzo::ENDING) {
            return Ok(true);
        }
        let is_hdf5 = [".h5", ".hdf5"].iter().any(|ending| name.ends_with(ending));
        if is_hdf5 && first.as_ref().is_none_or(|first| name < *first) {
            first = Some(name);
        }
    }
    let Some(first) = first else { return Ok(false) };
    // A file that cannot be opened is no part of a mesh; opening it reports the reason.
    let file = FileBytes::open(&path.join(first)).and_then(|file| hdf5::open(file, options));
    let Ok(file) = file else { return Ok(false) };
    Ok(carpet::fields(&[Arc::new(file) as Arc<dyn Format>]).is_ok_and(|fields| !fields.is_empty()))
}

#[cfg(test)]
mod tests;
