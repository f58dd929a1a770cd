//! NetCDF-3 files: classic, 64-bit offset, and 64-bit data (CDF-1, CDF-2, CDF-5).
//!
//! Variables are contiguous; those with the record dimension are interleaved, one record after the other. `cf` interprets the
//! attributes, as for NetCDF-4.

mod header;

use std::sync::Arc;

use array::{ArrayInfo, Group, LeftOut, Region, Result, Selection, Target};

use self::header::{NcType, NetcdfHeader, NetcdfVariable};
use crate::formats::common::cf::{self, Coordinate, DefaultFill, Dimension};
use crate::formats::common::flat::FlatArray;
use crate::formats::common::flat_file::{FlatFile, FlatFileArray, HeaderInfo};
use crate::{
    Access, ByteStore, CancelFlag, FileBytes, OpenOptions, formats::common::describe, formats::common::text,
};

/// Whether these are the first bytes of a NetCDF-3 file.
pub(crate) fn recognizes(head: &[u8]) -> bool {
    matches!(head, [b'C', b'D', b'F', 1 | 2 | 5, ..])
}

/// Opens a file.
///
/// # Errors
/// `Corrupt`, with the expected and the found field of the header.
pub(crate) fn open(file: Arc<FileBytes>, _options: &OpenOptions) -> Result<FlatFile> {
    let header = NetcdfHeader::read(&file)?;
    let opened = OpenedNetcdf { text_dimensions: header.text_dimensions(), header, file };
    let mut about = HeaderInfo {
        format: "NetCDF-3",
        attributes: cf::attributes(&opened.header.attributes),
        groups: vec![opened.group()],
        ..HeaderInfo::default()
    };
    let mut placed = Vec::new();
    for variable in &opened.header.variables {
        match opened.describe(variable) {
            Ok(array) => placed.push(array),
            Err(left_out) => about.left_out.push(left_out),
        }
    }
    FlatFile::new(&[&opened.file], about, placed)
}

struct OpenedNetcdf {
    file: Arc<FileBytes>,
    header: NetcdfHeader,
    /// Per dimension: whether texts lie along it.
    text_dimensions: Vec<bool>,
}

impl OpenedNetcdf {
    /// Returns a variable with its layout; a variable beyond the end of the file is left out.
    fn describe(&self, variable: &NetcdfVariable) -> std::result::Result<FlatFileArray, LeftOut> {
        let placed = || -> Result<FlatFileArray> {
            let layout = self.flat(variable)?;
            layout.check_within(self.file.size_bytes())?;
            let info = match variable.element {
                NcType::Number(_) => self.info(variable),
                NcType::Text => self.text_info(variable),
            };
            info.check()?;
            let store = Arc::clone(&self.file) as Arc<dyn ByteStore>;
            Ok(FlatFileArray { info, layout, store, access: Access::Flat })
        };
        placed().map_err(|e| LeftOut { name: variable.name.clone(), what: e.to_string(), value: None })
    }

    fn flat(&self, variable: &NetcdfVariable) -> Result<FlatArray> {
        let shape = self.shape(variable);
        let item_bytes = variable.element.size_bytes();
        if self.header.is_record(variable) {
            FlatArray::records(variable.begin, item_bytes, &shape, self.header.record_bytes)
        } else {
            FlatArray::c_order(variable.begin, item_bytes, &shape)
        }
    }

    fn info(&self, variable: &NetcdfVariable) -> ArrayInfo {
        let dimensions: Vec<Dimension> =
            variable.dimensions.iter().map(|&number| self.dimension(number)).collect();
        let dtype = variable.element.dtype();
        let axes = describe::guessed_axes(dimensions.len());
        let mut info = describe::array(&variable.name, dtype, axes, &self.header.shape(variable), None);
        cf::complete(&mut info, &variable.attributes, &dimensions, DefaultFill::Missing);
        if self.header.is_record(variable) {
            info.storage.unlimited = vec![0];
        }
        info
    }

    /// Elements per axis as described: texts of one byte each have an axis for it.
    fn shape(&self, variable: &NetcdfVariable) -> Vec<u64> {
        let mut shape = self.header.shape(variable);
        if matches!(variable.element, NcType::Text) && !self.has_text_dimension(variable) {
            shape.push(1);
        }
        shape
    }

    fn has_text_dimension(&self, variable: &NetcdfVariable) -> bool {
        variable.dimensions.last().is_some_and(|&last| self.text_dimensions[last])
    }

    /// Characters: texts along the last dimension where that is one of texts, else texts of one byte each.
    fn text_info(&self, variable: &NetcdfVariable) -> ArrayInfo {
        let name = |&number: &usize| self.header.dimensions[number].name.clone();
        let names: Vec<String> = variable.dimensions.iter().map(name).collect();
        let mut info = text::array(&variable.name, &self.shape(variable), &names, None);
        info.attributes = cf::attributes(&variable.attributes);
        info.storage.text =
            Some(if self.has_text_dimension(variable) { "characters" } else { "fixed" }.into());
        if self.header.is_record(variable) {
            info.storage.unlimited = vec![0];
        }
        info
    }

    /// The file as its only group.
    fn group(&self) -> Group {
        let dimensions = self.header.dimensions.iter();
        let unlimited = dimensions.filter(|d| d.is_of_records()).map(|d| d.name.clone()).collect();
        Group { unlimited, ..Group::default() }
    }

    fn dimension(&self, number: usize) -> Dimension {
        let name = self.header.dimensions[number].name.clone();
        let own = |v: &&NetcdfVariable| v.name == name && v.dimensions == [number];
        let coordinate = self.header.variables.iter().find(own).map(|variable| Coordinate {
            values: variable.attributes.clone(),
            samples: self.samples(variable).unwrap_or_default(),
        });
        Dimension { name, coordinate }
    }

    /// The decoded values of a coordinate variable that a description may carry.
    fn samples(&self, variable: &NetcdfVariable) -> Option<Vec<f64>> {
        let NcType::Number(_) = variable.element else { return None };
        let count = self.header.shape(variable).first().copied()?;
        usize::try_from(count).ok().filter(|&n| n <= array::Coordinates::MAX_EXPLICIT)?;
        let bytes = self.read(variable).ok()?;
        Some(cf::decoded(&bytes, variable.element.dtype(), &variable.attributes, DefaultFill::Missing))
    }

    /// The whole of a small variable.
    fn read(&self, variable: &NetcdfVariable) -> Result<Vec<u8>> {
        let layout = self.flat(variable)?;
        layout.check_within(self.file.size_bytes())?;
        let shape = self.header.shape(variable);
        let (target, region): (Target, Region) = Target::new(&shape, variable.element.size_bytes())?;
        layout.read(self.file.as_ref(), &Selection::all(&shape), region, &CancelFlag::default())?;
        target.into_vec()
    }
}

#[cfg(test)]
mod tests;
