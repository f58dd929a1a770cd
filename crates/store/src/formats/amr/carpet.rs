//! Files of Carpet (Cactus): each component of a level is an array whose attributes state its position and its time.
//!
//! A field is spread over several files, one for each process that wrote. Components overlap by their ghost zones
//! (`cctk_nghostzones`, except at the faces of the domain, `cctk_bbox`), whose values may be older than the rest: there the values
//! of the component that owns the samples are used. Values are at vertices or at cell centers; the finer levels of cell centers
//! are shifted by a fraction of a cell (`ioffset` of `ioffsetdenom`). Several iterations are an axis of time. Of the past time
//! levels of a field only the newest is served.
//!
//! The attributes are defined by Carpet's `CarpetIOHDF5` (Schnetter, Hawley & Hawke, Class. Quantum Grav. 21, 2004).

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{ArrayInfo, Attribute, Attributes, Axis, AxisKind, Coordinates, Error, Result, Scalar};

use super::composite::GridLocation;
use super::grids::{Centering, GridDescription, MeshGrids};
use super::{MeshField, MeshStep};
use crate::Format;

/// Attributes that every component has.
const LEVEL: &str = "level";
const NAME: &str = "name";
/// World position of a component's first sample, and its sample spacing; some files have neither.
const ORIGIN: &str = "origin";
const DELTA: &str = "delta";
/// Position of a component on the lattice of the finest level: `IORIGIN * STRIDE + OFFSET`; samples are
/// `STRIDE` apart.
const IORIGIN: &str = "iorigin";
const OFFSET: &str = "ioffset";
const STRIDE: &str = "ioffsetdenom";
const GHOSTS: &str = "cctk_nghostzones";
/// For each face, lower and upper in turn, whether it is the domain's.
const FACES: &str = "cctk_bbox";
const STEP: &str = "timestep";
const TIME: &str = "time";
/// Attributes of a whole field.
const OF_FIELD: [&str; 2] = [TIME, STEP];
/// Widest ghost zone of a Carpet component, cells.
const MAX_GHOSTS: u64 = 64;

/// The components of one field at one time.
#[derive(Default)]
struct FieldComponents {
    described: Vec<GridDescription>,
    ghosts: Vec<[[u64; 2]; 3]>,
    locations: Vec<GridLocation>,
    first: Option<ArrayInfo>,
}

/// A component of a field.
struct CarpetComponent {
    field: String,
    step: u64,
    described: GridDescription,
    ghosts: [[u64; 2]; 3],
}

/// The fields of a file that is all of its mesh; none where it is of another kind.
///
/// # Errors
/// Errors of [`fields`]; `Unsupported` for one file of several.
pub(super) fn fields_of_one(file: &Arc<dyn Format>) -> Result<Vec<MeshField>> {
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
pub(super) fn fields(files: &[Arc<dyn Format>]) -> Result<Vec<MeshField>> {
    let mut found: BTreeMap<String, BTreeMap<u64, FieldComponents>> = BTreeMap::new();
    for (number, file) in files.iter().enumerate() {
        let dataset = file.dataset();
        for (array, info) in (0u32..).zip(&dataset.arrays) {
            let Some(CarpetComponent { field, step, described, ghosts }) = component(info) else { continue };
            let components = found.entry(field).or_default().entry(step).or_default();
            components.described.push(described);
            components.ghosts.push(ghosts);
            components.locations.push(GridLocation { file: number, array, entry: None });
            components.first.get_or_insert_with(|| info.clone());
        }
    }
    let mut fields = Vec::new();
    for (name, steps) in found {
        let steps: Vec<(u64, FieldComponents)> = steps.into_iter().collect();
        match field(&name, &steps) {
            Ok(field) => fields.push(field),
            // Components that are no field over all times may be one at each time.
            Err(_) if steps.len() > 1 => {
                for step in &steps {
                    fields.push(field(&format!("{name} it={}", step.0), std::slice::from_ref(step))?);
                }
            }
            Err(error) => return Err(error.context(format!("field `{name}`"))),
        }
    }
    Ok(fields)
}

/// A field from its components at each of its iterations.
fn field(name: &str, steps: &[(u64, FieldComponents)]) -> Result<MeshField> {
    let infos: Vec<&ArrayInfo> =
        steps.iter().filter_map(|(_, components)| components.first.as_ref()).collect();
    let Some(info) = infos.first() else { return Err(Error::internal("a field without components")) };
    if infos.iter().any(|other| other.dtype != info.dtype) {
        return Err(Error::corrupt("expected one type of values at all times"));
    }
    let grids = grids(steps, info.dtype.size_bytes())?;
    let time = (steps.len() > 1).then(|| time(steps, &infos)).transpose()?;
    let is_of_field = |(name, _): &(&String, &Attribute)| time.is_none() && OF_FIELD.contains(&name.as_str());
    let attributes = info.attributes.iter().filter(is_of_field);
    Ok(MeshField {
        name: name.into(),
        dtype: info.dtype,
        units: info.units.clone(),
        attributes: attributes.map(|(name, value)| (name.clone(), value.clone())).collect(),
        time,
        steps: steps
            .iter()
            .zip(grids)
            .map(|((_, components), grids)| MeshStep {
                grids: Arc::new(grids),
                locations: components.locations.clone(),
            })
            .collect(),
    })
}

/// Builds the lattices of the components of each time: vertices if levels share them, else cells.
fn grids(steps: &[(u64, FieldComponents)], item_bytes: usize) -> Result<Vec<MeshGrids>> {
    let vertices: Vec<&[GridDescription]> =
        steps.iter().map(|(_, components)| components.described.as_slice()).collect();
    let mut grids = MeshGrids::at_times(&vertices, Centering::Vertices, item_bytes).or_else(|error| {
        let around = |described: &GridDescription| GridDescription {
            lower: [0, 1, 2].map(|axis| described.lower[axis] - described.spacing[axis] / 2.0),
            ..*described
        };
        let cells: Vec<Vec<GridDescription>> =
            vertices.iter().map(|described| described.iter().map(around).collect()).collect();
        let cells: Vec<&[GridDescription]> = cells.iter().map(Vec::as_slice).collect();
        MeshGrids::at_times(&cells, Centering::Cells, item_bytes).map_err(|_| error)
    })?;
    for (grids, (_, components)) in grids.iter_mut().zip(steps) {
        grids.exclude_ghosts(&components.ghosts);
    }
    Ok(grids)
}

/// Returns the axis of times; of iterations if times are missing or do not ascend.
fn time(steps: &[(u64, FieldComponents)], infos: &[&ArrayInfo]) -> Result<Axis> {
    if steps.len() > Coordinates::MAX_EXPLICIT {
        return Err(Error::too_large(format!("expected at most {} iterations", Coordinates::MAX_EXPLICIT)));
    }
    let described = infos.iter().map(|info| match info.attributes.get(TIME) {
        Some(Attribute::Number(time, _)) => Some(time.as_f64()).filter(|time| time.is_finite()),
        _ => None,
    });
    let times = described.collect::<Option<Vec<f64>>>().filter(|times| times.is_sorted_by(|a, b| a < b));
    #[expect(clippy::cast_precision_loss, reason = "numbers of iterations")]
    let (name, at) = match times {
        Some(times) => (TIME, times),
        None => ("iteration", steps.iter().map(|(step, _)| *step as f64).collect()),
    };
    Ok(Axis { coordinates: Coordinates::Explicit(at), ..Axis::new(name, AxisKind::Time) })
}

/// Returns the field and the step of which an array is a component, its position and its ghost zones; `None`
/// where it is no component, or one of a past time level.
fn component(info: &ArrayInfo) -> Option<CarpetComponent> {
    let of = |name: &str| info.attributes.get(name);
    let (Some(Attribute::Text(name)), Some(_)) = (of(NAME), of(LEVEL)) else { return None };
    let &[z, y, x] = info.shape() else { return None };
    let is_past = info.name.contains(" tl=") && !info.name.contains(" tl=0 ");
    if is_past {
        return None;
    }
    let (lower, spacing) = in_world(&info.attributes).or_else(|| on_lattice(&info.attributes))?;
    let step = match of(STEP) {
        Some(Attribute::Number(Scalar::Signed(step), _)) => u64::try_from(*step).ok()?,
        Some(Attribute::Number(Scalar::Unsigned(step), _)) => *step,
        _ => 0,
    };
    let described = GridDescription { lower, spacing, count: [z, y, x] };
    Some(CarpetComponent { field: name.clone(), step, described, ghosts: ghosts(&info.attributes) })
}

/// First sample and distance of samples, z, y, x, in world units.
fn in_world(attributes: &Attributes) -> Option<([f64; 3], [f64; 3])> {
    Some((zyx(attributes, ORIGIN)?, zyx(attributes, DELTA)?))
}

/// First sample and distance of samples, z, y, x, in samples of the finest lattice.
fn on_lattice(attributes: &Attributes) -> Option<([f64; 3], [f64; 3])> {
    let (origin, stride) = (zyx(attributes, IORIGIN)?, zyx(attributes, STRIDE)?);
    let offset = zyx(attributes, OFFSET).unwrap_or_default();
    Some(([0, 1, 2].map(|axis| origin[axis] * stride[axis] + offset[axis]), stride))
}

/// Samples at the lower and upper end of each axis, z, y, x, that are other components' too.
fn ghosts(attributes: &Attributes) -> [[u64; 2]; 3] {
    let Some(widths) = zyx(attributes, GHOSTS) else { return [[0; 2]; 3] };
    let is_domain = |axis: usize, end: usize| {
        let Some(Attribute::Numbers(faces, _)) = attributes.get(FACES) else { return false };
        // Faces are listed as x, y, z.
        faces.get(2 * (2 - axis) + end).is_some_and(|face| face.as_f64() != 0.0)
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    let width = |axis: usize| match widths[axis] {
        width if (1.0..=MAX_GHOSTS as f64).contains(&width) => width as u64,
        _ => 0,
    };
    [0, 1, 2].map(|axis| [0, 1].map(|end| if is_domain(axis, end) { 0 } else { width(axis) }))
}

/// Three numbers that are given as x, y, z.
fn zyx(attributes: &Attributes, name: &str) -> Option<[f64; 3]> {
    match attributes.get(name)? {
        Attribute::Numbers(numbers, _) => match numbers[..] {
            [x, y, z] => Some([z, y, x].map(Scalar::as_f64)),
            _ => None,
        },
        _ => None,
    }
}
