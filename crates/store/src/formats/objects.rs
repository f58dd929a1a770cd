//! Arrays that another part of the process holds, such as objects of Python: described in JSON, read by a callback.
//!
//! Nothing is copied but the blocks that are read. Axes, units and decoding follow from dimensions, coordinates and attributes by the
//! same conventions (CF) as in NetCDF and Zarr.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{
    Affine, Attribute, Attributes, Coordinates, DType, Dataset, DatasetId, ElementType, Error, Generation,
    LeftOut, Region, Result, Scalar, Selection, Source,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::formats::common::labels::FormatWithMeaning;
use crate::formats::common::{cf, describe};
use crate::{Access, CancelFlag, Format, FormatSource, Levels, OpenOptions};

/// Most arrays of one description; more are listed as left out.
const MAX_OBJECTS: usize = 4096;

/// Reads elements of the objects that a description lists.
pub trait ObjectReader: Send + Sync + 'static {
    /// Reads a selection of the array with this number, as stored, into `into`, whose shape is the selection's. Blocking, on a
    /// storage thread.
    ///
    /// # Errors
    /// The error of the object; `Cancelled`.
    fn read(&self, array: u32, selection: &Selection, into: Region, cancel: &CancelFlag) -> Result<()>;
}

/// Description of objects as a data set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectsDescription {
    /// Name of the data set for people.
    pub name: String,
    /// Kind of the objects for people, such as `numpy`.
    pub format: String,
    /// Text that no other data have: made levels are known by it.
    pub identity: String,
    /// Attributes of the whole.
    #[serde(default)]
    attributes: Map<String, Value>,
    /// Arrays, by number.
    arrays: Vec<ObjectArray>,
    /// Coordinates by the names of dimensions.
    #[serde(default)]
    coordinates: BTreeMap<String, ObjectCoordinate>,
    /// Objects that cannot be read as arrays, each with the reason.
    #[serde(default)]
    left_out: BTreeMap<String, String>,
}

/// Description of one array.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectArray {
    name: String,
    dtype: DType,
    /// Elements per axis, last fastest.
    shape: Vec<u64>,
    /// Names of the axes; none: guessed from their number.
    #[serde(default)]
    dims: Option<Vec<String>>,
    #[serde(default)]
    attributes: Map<String, Value>,
    /// Elements per axis that are computed or decoded together; none: each element costs the same.
    #[serde(default)]
    chunk: Option<Vec<u64>>,
    /// Map to world space, if the axes do not give it, and the units of that space.
    #[serde(default)]
    world: Option<(Affine, String)>,
}

/// Coordinate of a dimension.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectCoordinate {
    #[serde(default)]
    attributes: Map<String, Value>,
    /// Decoded values, one for each index.
    #[serde(default)]
    samples: Vec<f64>,
}

/// Opens objects as a source with coarser levels, which are made on demand and not kept on disk.
///
/// # Errors
/// `Invalid` or `TooLarge` for a description beyond the limits of data sets.
pub fn open_objects(
    description: &ObjectsDescription,
    reader: Arc<dyn ObjectReader>,
    options: &OpenOptions,
) -> Result<Arc<dyn Source>> {
    let format = Objects::new(description, reader)?;
    format.dataset.check()?;
    let format = FormatWithMeaning::over(Arc::new(format), options.meaning);
    Ok(Arc::new(Levels::new(FormatSource::new(format), options)))
}

/// Objects as a format.
struct Objects {
    dataset: Arc<Dataset>,
    access: Vec<Access>,
    /// Number of the object behind each array of the description.
    numbers: Vec<u32>,
    reader: Arc<dyn ObjectReader>,
}

impl Objects {
    fn new(description: &ObjectsDescription, reader: Arc<dyn ObjectReader>) -> Result<Self> {
        let mut dataset = Dataset {
            id: DatasetId::of([b"objects".as_slice(), description.identity.as_bytes()]),
            generation: Generation(0),
            name: description.name.clone(),
            format: description.format.clone(),
            arrays: Vec::new(),
            attributes: attributes(&description.attributes),
            left_out: Vec::new(),
            warnings: Vec::new(),
            groups: Vec::new(),
        };
        let mut left_out = description.left_out.clone();
        let (mut access, mut numbers) = (Vec::new(), Vec::new());
        for (number, array) in (0u32..).zip(&description.arrays) {
            let described = if dataset.arrays.len() < MAX_OBJECTS {
                array.info(&description.coordinates)
            } else {
                Err(Error::too_large(format!("only the first {MAX_OBJECTS} arrays are shown")))
            };
            match described {
                Ok(info) => {
                    dataset.arrays.push(info);
                    access.push(if array.chunk.is_some() { Access::Chunked } else { Access::Flat });
                    numbers.push(number);
                }
                Err(error) => drop(left_out.insert(array.name.clone(), error.message().to_owned())),
            }
        }
        dataset.left_out =
            left_out.into_iter().map(|(name, what)| LeftOut { name, what, value: None }).collect();
        Ok(Self { dataset: Arc::new(dataset), access, numbers, reader })
    }
}

impl ObjectArray {
    /// Describes the array as a level of full resolution.
    fn info(&self, coordinates: &BTreeMap<String, ObjectCoordinate>) -> Result<array::ArrayInfo> {
        if self.chunk.as_ref().is_some_and(|c| c.len() != self.shape.len() || c.contains(&0)) {
            return Err(Error::invalid("expected a chunk with one size above 0 for each axis"));
        }
        let axes = describe::guessed_axes_of(self.dtype, &self.shape);
        let mut info = describe::array(&self.name, self.dtype, axes, &self.shape, self.chunk.clone());
        info.attributes = attributes(&self.attributes);
        let values: cf::CfAttributes = info
            .attributes
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), cf_value(value)?)))
            .collect();
        match &self.dims {
            Some(dims) if dims.len() != self.shape.len() => {
                let (expected, found) = (self.shape.len(), dims.len());
                return Err(Error::invalid(format!("expected {expected} names of axes, found {found}")));
            }
            Some(dims) => {
                let attributes = std::mem::take(&mut info.attributes);
                let dimensions: Vec<_> = dims.iter().map(|name| dimension(name, coordinates)).collect();
                cf::complete(&mut info, &values, &dimensions, cf::DefaultFill::Ordinary);
                info.attributes = attributes;
            }
            None => info.units = cf::text(&values, "units").unwrap_or_default().to_owned(),
        }
        if let Some((world_from_voxel, units)) = &self.world {
            info.world_units.clone_from(units);
            info.levels.iter_mut().for_each(|level| level.world_from_voxel = *world_from_voxel);
        }
        info.check()?;
        Ok(info)
    }
}

fn dimension(name: &str, coordinates: &BTreeMap<String, ObjectCoordinate>) -> cf::Dimension {
    let coordinate = coordinates.get(name).map(|coordinate| {
        let values = attributes(&coordinate.attributes);
        let values = values.iter().filter_map(|(name, value)| Some((name.clone(), cf_value(value)?)));
        let is_held = coordinate.samples.len() <= Coordinates::MAX_EXPLICIT;
        let samples = if is_held { coordinate.samples.clone() } else { Vec::new() };
        cf::Coordinate { values: values.collect(), samples }
    });
    cf::Dimension { name: name.to_owned(), coordinate }
}

/// Converts attributes; those beyond the limits are left out.
fn attributes(values: &Map<String, Value>) -> Attributes {
    let known = values
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), Attribute::from_json(value.clone()).ok()?)));
    known.collect()
}

/// Converts an attribute; `None` for values that CF does not define.
fn cf_value(value: &Attribute) -> Option<cf::CfValue> {
    let of_type = |numbers: &[Scalar]| match numbers {
        [Scalar::Float(_), ..] => ElementType::F64,
        _ if numbers.iter().any(|n| matches!(n, Scalar::Unsigned(_))) => ElementType::U64,
        _ => ElementType::I64,
    };
    match value {
        Attribute::Text(text) => Some(cf::CfValue::Text(text.clone())),
        Attribute::Texts(texts) => Some(cf::CfValue::Texts(texts.clone())),
        Attribute::Number(number, _) => Some(cf::CfValue::Numbers(of_type(&[*number]), vec![*number])),
        Attribute::Numbers(list, _) => Some(cf::CfValue::Numbers(of_type(list), list.clone())),
        Attribute::Json(_) => None,
    }
}

impl Format for Objects {
    fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.dataset)
    }

    fn access(&self, array: u32) -> Access {
        self.access.get(array as usize).copied().unwrap_or(Access::Chunked)
    }

    fn waits_for_others(&self) -> bool {
        true
    }

    fn read(
        &self,
        array: u32,
        level: u8,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        let number = self.numbers.get(array as usize).filter(|_| level == 0).ok_or_else(|| {
            let known = self.numbers.len();
            Error::invalid(format!(
                "expected level 0 of one of {known} arrays, found level {level} of {array}"
            ))
        })?;
        cancel.check()?;
        self.reader.read(*number, selection, into, cancel)
    }
}

#[cfg(test)]
mod tests {
    use array::{AxisKind, ReadRequest, Target};
    use futures::executor::block_on;

    use super::*;

    /// Elements whose value is their position in C order of a shape [2, 3, 4], bytes.
    struct Counting;

    impl ObjectReader for Counting {
        fn read(&self, array: u32, selection: &Selection, mut into: Region, _: &CancelFlag) -> Result<()> {
            assert_eq!(array, 1);
            let mut bytes = Vec::new();
            let at = |axis: usize| {
                let range = selection.ranges()[axis];
                (0..range.count).map(move |i| range.start + i * range.step)
            };
            for z in at(0) {
                for y in at(1) {
                    bytes.extend(at(2).map(|x| u8::try_from(z * 12 + y * 4 + x).unwrap()));
                }
            }
            into.write_all(&bytes)
        }
    }

    const TEXT: &str = r#"{"name": "o", "format": "numpy", "identity": "1",
        "arrays": [{"name": "bad", "dtype": "|u1", "shape": [2], "dims": ["a", "b"]},
                   {"name": "v", "dtype": "|u1", "shape": [2, 3, 4], "dims": ["height", "lat", "lon"], "attributes": {"units": "K"}}],
        "coordinates": {"lat": {"attributes": {"units": "degrees_north"}, "samples": [50, 51, 52]}}}"#;

    #[test]
    fn names_units_and_coordinates_are_kept_and_a_bad_array_is_left_out() {
        let description: ObjectsDescription = serde_json::from_str(TEXT).unwrap();
        let source = open_objects(&description, Arc::new(Counting), &OpenOptions::default()).unwrap();
        let dataset = block_on(source.describe()).unwrap();
        assert_eq!((dataset.left_out.len(), dataset.arrays.len()), (1, 1));
        let info = &dataset.arrays[0];
        assert_eq!((info.units.as_str(), info.axes[1].kind), ("K", AxisKind::Y));
        assert_eq!(info.axes[1].coordinates, Coordinates::Regular { origin: 50.0, step: 1.0 });
        let selection = Selection::parse("1, ::2, 3", info.shape()).unwrap();
        let (target, region) = Target::new(&selection.shape(), 1).unwrap();
        let request = ReadRequest { array: 0, level: 0, selection, priority: array::Priority::NORMAL };
        block_on(source.read(request, region)).unwrap();
        assert_eq!(target.into_vec().unwrap(), [15, 23]);
    }
}
