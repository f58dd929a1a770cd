//! Block-structured adaptive meshes (AMR): grids of many resolutions as arrays with sparse levels.
//!
//! A layer over other formats: it finds in their descriptions which stored arrays are grids of one mesh, and gives each
//! field as one array over the whole domain. Its levels are those of the mesh; a block that no grid of its level meets
//! is not covered, its ancestor stands in.
//!
//! ```text
//! flash     one array holds a field of all grids          carpet    attributes of each array say where it lies
//! enzo      a text file says where grids lie              grids     where they lie, as levels of one domain
//! composite reading a level from its grids, and from coarser ones between them
//! table     where grids lie, as an array beside the fields
//! ```

mod carpet;
mod composite;
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

use self::composite::{Place, Reader};
use self::grids::Grids;
use self::table::Table;
use crate::{Access, Cancel, FileBytes, Format, OpenOptions, describe, hdf5};

pub(crate) use self::enzo::{open as open_enzo, recognises as is_enzo};

/// Most files of one mesh.
const MAX_FILES: usize = 1_024;
/// Most entries of a folder that are looked at.
const MAX_LISTED: usize = 65_536;

/// One field of a mesh.
struct Field {
    name: String,
    dtype: DType,
    units: String,
    attributes: Attributes,
    grids: Arc<Grids>,
    /// By the grid's number.
    places: Vec<Place>,
}

impl Field {
    fn describe(&self) -> ArrayInfo {
        let axes = ["z", "y", "x"].iter().zip([AxisKind::Z, AxisKind::Y, AxisKind::X]).enumerate();
        let axes: Vec<Axis> = axes
            .map(|(number, (name, kind))| {
                let (step, origin) = self.grids.along(0, number);
                let coordinates = Coordinates::Regular { origin, step };
                Axis { coordinates, ..Axis::new(*name, kind) }
            })
            .collect();
        let level = |tier: usize| Level {
            factor: self.grids.factor(tier).to_vec(),
            ..describe::level_zero(
                self.dtype,
                &axes,
                &self.grids.tiers[tier].shape,
                None,
                self.grids.world_from_voxel(tier),
            )
        };
        let levels = (0..self.grids.tiers.len()).map(level).collect();
        let mut info = describe::array(&self.name, self.dtype, axes, &self.grids.tiers[0].shape, None);
        info.levels = levels;
        info.units.clone_from(&self.units);
        info.attributes.clone_from(&self.attributes);
        let (grids, levels) = (self.places.len(), self.grids.tiers.len());
        info.notes.push(match levels {
            1 => format!("{grids} grids"),
            _ => format!(
                "{grids} grids on {levels} levels; where a level has none, values are interpolated from the next coarser one"
            ),
        });
        if self.grids.left_out > 0 {
            info.notes.push(format!("{} finer levels are too large to be described", self.grids.left_out));
        }
        info
    }
}

/// A mesh, and the arrays of the file that holds it, if it is one.
pub(crate) struct Amr {
    dataset: Arc<Dataset>,
    files: Vec<Arc<dyn Format>>,
    fields: Vec<Field>,
    /// Arrays after them.
    tables: Vec<Table>,
    /// Says where grids lie; must stay as it was.
    index: Option<Arc<FileBytes>>,
    /// Whether arrays after these are those of the only file.
    shows_stored: bool,
}

impl Amr {
    /// A mesh that lies in several files.
    fn of_files(name: &str, format: &str, files: Vec<Arc<dyn Format>>, mut fields: Vec<Field>) -> Self {
        let tables = Table::of_fields(&mut fields);
        let stored: Vec<_> = files.iter().map(|file| file.dataset()).collect();
        let ids = stored.iter().map(|dataset| dataset.id.0.to_le_bytes());
        let dataset = Dataset {
            id: DatasetId::of(ids),
            generation: array::Generation(0),
            name: name.into(),
            format: format.into(),
            arrays: fields.iter().map(Field::describe).chain(tables.iter().map(Table::describe)).collect(),
            attributes: Attributes::new(),
            left_out: Vec::new(),
            warnings: stored.iter().flat_map(|dataset| dataset.warnings.clone()).collect(),
        };
        Self { dataset: Arc::new(dataset), files, fields, tables, index: None, shows_stored: false }
    }

    /// The fields of a mesh in front of the arrays of the file in which they are stored.
    fn before_stored(file: Arc<dyn Format>, mut fields: Vec<Field>, warning: Option<String>) -> Self {
        fields.iter_mut().for_each(|field| field.name = format!("amr/{}", field.name));
        let tables = Table::of_fields(&mut fields);
        let mut dataset = Dataset::clone(&file.dataset());
        dataset
            .arrays
            .splice(0..0, fields.iter().map(Field::describe).chain(tables.iter().map(Table::describe)));
        dataset.warnings.extend(warning);
        Self {
            dataset: Arc::new(dataset),
            files: vec![file],
            fields,
            tables,
            index: None,
            shows_stored: true,
        }
    }

    /// Says which file tells where grids lie.
    fn is_told_by(&mut self, index: Arc<FileBytes>) {
        let dataset = Arc::make_mut(&mut self.dataset);
        let identity = index.identity().into_iter().chain([dataset.id.0.to_le_bytes().to_vec()]);
        dataset.id = DatasetId::of(identity);
        self.index = Some(index);
    }

    fn table(&self, array: u32) -> Option<&Table> {
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

impl Format for Amr {
    fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.dataset)
    }

    fn access(&self, array: u32) -> Access {
        self.stored(array).map_or(Access::Flat, |(file, array)| file.access(array))
    }

    fn covers(&self, array: u32, level: u8, selection: &Selection) -> bool {
        let Some(field) = self.fields.get(array as usize) else { return true };
        let tiers = &field.grids.tiers;
        let is_coarsest = usize::from(level) + 1 >= tiers.len();
        is_coarsest || tiers[usize::from(level)].grids.iter().any(|grid| grid.meets(selection))
    }

    fn read(
        &self,
        array: u32,
        level: u8,
        selection: &Selection,
        into: Region,
        cancel: &Cancel,
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
        let Field { grids, places, dtype, .. } = field;
        let reader = Reader { files: &self.files, grids, places, dtype: *dtype, cancel };
        reader
            .read(usize::from(level), selection, into)
            .map_err(|e| e.context(format!("read field `{}`", field.name)))
    }

    fn packed(
        &self,
        array: u32,
        level: u8,
        selection: &Selection,
        cancel: &Cancel,
    ) -> Result<Option<PackedChunk>> {
        match self.stored(array) {
            Ok((file, stored)) => file.packed(stored, level, selection, cancel),
            Err(_) => Ok(None),
        }
    }
}

/// The file, with the fields of the mesh that it holds in front of its arrays. What looks like a mesh and is none stays as
/// it is stored, with a warning.
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
    let files: Vec<_> = names.iter().filter(is_hdf5).take(MAX_FILES + 1).collect();
    if files.len() > MAX_FILES {
        return Err(Error::too_large(format!(
            "expected at most {MAX_FILES} files of a mesh in a folder, found more"
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

#[cfg(test)]
mod tests;
