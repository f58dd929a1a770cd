//! Values of coordinate variables, read once while describing.

use std::collections::HashMap;

use array::{Coordinates, Result, Selection, Target};

use super::netcdf::NetcdfDimension;
use super::walk::FileTree;
use super::{Hdf5, Hdf5Array, describe};
use crate::{CancelFlag, formats::common::cf};

/// Most coordinate values that the description of an HDF5 file holds; further dimensions have names only.
const MAX_COORDINATE_SAMPLES: usize = 4 << 20;

/// Coordinate variables of a file, each read at most once.
pub(super) struct CoordinateReader<'a> {
    hdf5: &'a Hdf5,
    tree: &'a FileTree,
    is_netcdf: bool,
    read: HashMap<usize, cf::Coordinate>,
    samples_left: usize,
}

impl<'a> CoordinateReader<'a> {
    pub(super) fn new(hdf5: &'a Hdf5, tree: &'a FileTree, is_netcdf: bool) -> Self {
        Self { hdf5, tree, is_netcdf, read: HashMap::new(), samples_left: MAX_COORDINATE_SAMPLES }
    }

    /// Returns the dimensions with the values of their coordinate variables.
    pub(super) fn dimensions(&mut self, found: Vec<Option<NetcdfDimension>>) -> Vec<cf::Dimension> {
        let named = |(axis, dimension): (usize, Option<NetcdfDimension>)| match dimension {
            Some(NetcdfDimension { name, coordinate }) => {
                cf::Dimension { name, coordinate: coordinate.and_then(|number| self.coordinate(number)) }
            }
            None => cf::Dimension { name: format!("dim{axis}"), coordinate: None },
        };
        found.into_iter().enumerate().map(named).collect()
    }

    fn coordinate(&mut self, number: usize) -> Option<cf::Coordinate> {
        if !self.read.contains_key(&number) {
            let variable = self.tree.variables.get(number)?;
            let values = describe::cf_values(&variable.attributes);
            // A coordinate that cannot be read leaves its axis without coordinates; the file stays readable.
            let samples = self.samples(number).unwrap_or_default();
            self.read.insert(number, cf::Coordinate { values, samples });
        }
        let mut coordinate = self.read.get(&number)?.clone();
        match self.samples_left.checked_sub(coordinate.samples.len()) {
            Some(left) => self.samples_left = left,
            None => coordinate.samples.clear(),
        }
        Some(coordinate)
    }

    fn samples(&self, number: usize) -> Result<Vec<f64>> {
        let Some((variable, (dtype, shape))) =
            self.tree.variables.get(number).and_then(|v| describe::number_array(v).map(|found| (v, found)))
        else {
            return Ok(Vec::new());
        };
        if shape.len() != 1 || shape[0] > Coordinates::MAX_EXPLICIT as u64 {
            return Ok(Vec::new());
        }
        // Nothing else has this number, so its chunks are not mistaken for another's.
        let as_array = u32::MAX - u32::try_from(number).unwrap_or(u32::MAX / 4);
        let stored = Hdf5Array::of(variable, as_array, shape.to_vec(), dtype.size_bytes());
        let (target, region) = Target::new(shape, dtype.size_bytes())?;
        self.hdf5.read_stored(&stored, &Selection::all(shape), region, &CancelFlag::default())?;
        let values = describe::cf_values(&variable.attributes);
        Ok(cf::decoded(&target.into_vec()?, dtype, &values, describe::default_fill(variable, self.is_netcdf)))
    }
}
