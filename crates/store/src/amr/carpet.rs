//! Files of Carpet (Cactus): each component of a level is an array whose attributes say where it lies.
//!
//! A field is spread over several files, one for each process that wrote. Values lie at vertices; components overlap by
//! their ghost zones, where they agree. Of a field's past time levels only the newest is shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{ArrayInfo, Attribute, Attributes, Error, Result, Scalar};

use super::Field;
use super::composite::{Place, can_be};
use super::grids::{Centring, Grids, Told};
use crate::Format;

/// Attributes that every component has.
const LEVEL: &str = "level";
const ORIGIN: &str = "origin";
const DELTA: &str = "delta";
const NAME: &str = "name";
const STEP: &str = "timestep";
/// Attributes of a whole field.
const OF_FIELD: [&str; 2] = ["time", STEP];

/// The components of one field.
#[derive(Default)]
struct Components {
    told: Vec<Told>,
    places: Vec<Place>,
    first: Option<ArrayInfo>,
}

/// The fields of a file that is all of its mesh; none where it is of another kind.
///
/// # Errors
/// As [`fields`]; `Unsupported` for one file of several.
pub(super) fn fields_of_one(file: &Arc<dyn Format>) -> Result<Vec<Field>> {
    let fields = fields(std::slice::from_ref(file))?;
    if !fields.is_empty() && file.dataset().name.contains(".file_") {
        return Err(Error::unsupported(
            "expected all files of the mesh, found one of several: open their folder",
        ));
    }
    Ok(fields)
}

/// The fields of a mesh that lies in these files.
///
/// # Errors
/// `Corrupt` where components are no mesh.
pub(super) fn fields(files: &[Arc<dyn Format>]) -> Result<Vec<Field>> {
    let mut found: BTreeMap<(String, u64), Components> = BTreeMap::new();
    for (number, file) in files.iter().enumerate() {
        let dataset = file.dataset();
        for (array, info) in (0u32..).zip(&dataset.arrays) {
            let Some((name, step, told)) = component(info) else { continue };
            let components = found.entry((name, step)).or_default();
            components.told.push(told);
            components.places.push(Place { file: number, array, entry: None });
            components.first.get_or_insert_with(|| info.clone());
        }
    }
    let has_steps = |name: &str| found.keys().filter(|(other, _)| other == name).count() > 1;
    let named = |(name, step): &(String, u64)| match has_steps(name) {
        true => format!("{name} it={step}"),
        false => name.clone(),
    };
    let names: Vec<String> = found.keys().map(named).collect();
    let fields = names.into_iter().zip(found.into_values());
    fields.filter_map(|(name, components)| components.into_field(name).transpose()).collect()
}

impl Components {
    fn into_field(self, name: String) -> Result<Option<Field>> {
        let Some(info) = self.first else { return Ok(None) };
        let grids = Grids::new(&self.told, Centring::Vertices, info.dtype.size_bytes());
        let of_field = |(name, _): &(&String, &Attribute)| OF_FIELD.contains(&name.as_str());
        let attributes =
            info.attributes.iter().filter(of_field).map(|(name, value)| (name.clone(), value.clone()));
        Ok(Some(Field {
            grids: Arc::new(grids.map_err(|e| e.context(format!("field `{name}`")))?),
            name,
            dtype: info.dtype,
            units: info.units,
            attributes: attributes.collect(),
            places: self.places,
        }))
    }
}

/// What an array is a component of, at which step, and where it lies; `None` where it is none.
fn component(info: &ArrayInfo) -> Option<(String, u64, Told)> {
    let of = |name: &str| info.attributes.get(name);
    let (Some(Attribute::Text(name)), Some(_)) = (of(NAME), of(LEVEL)) else { return None };
    let &[z, y, x] = info.shape() else { return None };
    let is_past = info.name.contains(" tl=") && !info.name.contains(" tl=0 ");
    if is_past || !can_be(info.dtype) {
        return None;
    }
    let told = Told {
        lower: zyx(&info.attributes, ORIGIN)?,
        spacing: zyx(&info.attributes, DELTA)?,
        count: [z, y, x],
    };
    let step = match of(STEP) {
        Some(Attribute::Number(Scalar::Signed(step))) => u64::try_from(*step).ok()?,
        Some(Attribute::Number(Scalar::Unsigned(step))) => *step,
        _ => 0,
    };
    Some((name.clone(), step, told))
}

/// Three numbers that are given as x, y, z.
fn zyx(attributes: &Attributes, name: &str) -> Option<[f64; 3]> {
    match attributes.get(name)? {
        Attribute::Numbers(numbers) => match numbers[..] {
            [x, y, z] => Some([z, y, x].map(Scalar::as_f64)),
            _ => None,
        },
        _ => None,
    }
}
