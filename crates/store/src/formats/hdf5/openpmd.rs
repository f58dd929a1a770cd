//! Axes of openPMD meshes: labels, spacing, offset and units are attributes of the mesh.
//!
//! Only the positions of samples are read; values stay as stored.

use array::{Axis, AxisKind, Coordinates};

use super::library::AttributeValue;
use super::netcdf::{numbers, text};
use super::walk::AttributeValues;

/// Units of coordinates after multiplication by `gridUnitSI`.
pub(super) const UNITS: &str = "m";

/// Axes of a mesh component: `mesh` are the attributes of the mesh, `component` those of the component,
/// which are the same for a scalar mesh. `None` when this is no mesh of that many axes.
pub(super) fn axes(mesh: &AttributeValues, component: &AttributeValues, count: usize) -> Option<Vec<Axis>> {
    let AttributeValue::Texts(texts) = mesh.get("axisLabels")? else { return None };
    let spacing = numbers(mesh, "gridSpacing");
    let offset = numbers(mesh, "gridGlobalOffset");
    let position = numbers(component, "position");
    if count == 0 || texts.len() != count || spacing.len() != count {
        return None;
    }
    let unit = numbers(mesh, "gridUnitSI").first().copied().unwrap_or(1.0);
    // Fortran order lists the fastest axis first; storage is always C order.
    let reversed = text(mesh, "dataOrder") == Some("F");
    let axis = |number: usize| {
        let listed = if reversed { count - 1 - number } else { number };
        let at = |list: &[f64]| list.get(listed).copied().unwrap_or(0.0);
        let step = at(&spacing) * unit;
        let coordinates = if step.is_finite() && step != 0.0 {
            Coordinates::Regular { origin: at(&offset) * unit + at(&position) * step, step }
        } else {
            Coordinates::Index
        };
        let name = &texts[listed];
        Axis { name: name.clone(), kind: kind(name), units: UNITS.into(), coordinates }
    };
    Some((0..count).map(axis).collect())
}

fn kind(label: &str) -> AxisKind {
    match label {
        "x" | "r" => AxisKind::X,
        "y" => AxisKind::Y,
        "z" => AxisKind::Z,
        "t" => AxisKind::Time,
        _ => AxisKind::Other,
    }
}
