//! Axes of the box around a volume, for annotations: coordinates of the array, positions in the world, or indices.
//! The viewer's page follows the same rules (`web/src/ui/marks/volume.ts`).

use array::time::calendar::TimeUnits;
use array::{ArrayInfo, Attribute, Axis, AxisKind, Coordinates, Dataset, kind_of_degrees};
use render::{AxisNote, AxisQuantity, Bounds};

use super::annotations::shown_units;

/// Share of a length within which directions and steps count as equal.
const ALIKE: f64 = 1e-6;
const KINDS: [AxisKind; 3] = [AxisKind::X, AxisKind::Y, AxisKind::Z];
const NAMES: [&str; 3] = ["x", "y", "z"];

/// Returns the axes x, y, z of the box.
pub(super) fn axis_notes(dataset: &Dataset, array: &ArrayInfo, bounds: &Bounds) -> [AxisNote; 3] {
    [0, 1, 2].map(|world| axis_note(dataset, array, bounds, world))
}

/// True if x and y are longitude and latitude, to scale.
pub(super) fn is_map(axes: &[AxisNote; 3]) -> bool {
    let [x, y, _] = axes;
    x.quantity == AxisQuantity::Longitude
        && y.quantity == AxisQuantity::Latitude
        && x.is_to_scale
        && y.is_to_scale
}

/// Calendar of an axis: that of the array with its coordinates, if there is one.
pub(super) fn calendar_of(dataset: &Dataset, array: &ArrayInfo, axis: &Axis) -> String {
    let calendar = |array: &ArrayInfo| match array.attributes.get("calendar") {
        Some(Attribute::Text(name)) => Some(name.clone()),
        _ => None,
    };
    let own = dataset.find(&axis.name).ok().and_then(|(_, of_axis)| calendar(of_axis));
    own.or_else(|| calendar(array)).unwrap_or_else(|| "standard".to_owned())
}

/// The axis of voxels that leads along an axis of the world.
struct VoxelAxis<'a> {
    axis: Option<&'a Axis>,
    name: &'a str,
    count: u64,
    /// Position of voxel 0 along the axis of the world, and the step to the next one.
    origin: f64,
    step: f64,
}

/// Returns the axis of voxels parallel to an axis of the world; `None` for an oblique volume.
fn voxel_axis(array: &ArrayInfo, world: usize) -> Option<VoxelAxis<'_>> {
    let has_space = array.axes.iter().any(|axis| axis.kind.is_spatial());
    let map = array.levels.first()?.world_from_voxel.0;
    let place = if has_space {
        let length = |column: usize| map.iter().map(|row| row[column].powi(2)).sum::<f64>().sqrt();
        (0..3).find(|&column| (map[world][column].abs() - length(column)).abs() <= ALIKE * length(column))?
    } else {
        world
    };
    let number = if has_space {
        array.axes.iter().position(|axis| axis.kind == KINDS[place])
    } else {
        array.axes.len().checked_sub(place + 1)
    };
    let axis = number.map(|number| &array.axes[number]);
    let name = axis.map_or("", |axis| axis.name.as_str());
    Some(VoxelAxis {
        axis,
        name: if name.is_empty() { NAMES[place] } else { name },
        count: number.map_or(1, |number| array.shape()[number]),
        origin: if has_space { map[world][3] } else { 0.0 },
        step: if has_space { map[world][place] } else { 1.0 },
    })
}

#[expect(clippy::cast_precision_loss, reason = "indices of voxels")]
fn axis_note(dataset: &Dataset, array: &ArrayInfo, bounds: &Bounds, world: usize) -> AxisNote {
    let ends = [bounds.min[world], bounds.max[world]];
    let in_world = |name: &str| AxisNote::of_world(name, shown_units(&array.world_units), ends);
    let Some(found) = voxel_axis(array, world) else { return in_world(NAMES[world]) };
    if found.count < 2 {
        // A single layer is not worth an axis.
        return AxisNote { samples: Vec::new(), ..in_world(found.name) };
    }
    let last = (found.count - 1) as f64;
    let share = |index: f64| (found.origin + index * found.step - ends[0]) / (ends[1] - ends[0]);
    let placed = |samples: Vec<(f64, f64)>| {
        let mut placed: Vec<[f64; 2]> =
            samples.into_iter().map(|(index, value)| [share(index), value]).collect();
        placed.sort_by(|a, b| a[0].total_cmp(&b[0]));
        placed
    };
    let has_coordinates = array
        .axes
        .iter()
        .any(|axis| axis.kind.is_spatial() && matches!(axis.coordinates, Coordinates::Regular { .. }));
    let by_index = |is_to_scale: bool| AxisNote {
        quantity: AxisQuantity::Index,
        units: String::new(),
        samples: placed(vec![(0.0, 0.0), (last, last)]),
        is_to_scale,
        ..in_world(found.name)
    };
    #[expect(clippy::float_cmp, reason = "the identity map")]
    let is_plain = found.step == 1.0 && found.origin == 0.0;
    let Some(axis) = found.axis.filter(|axis| axis.coordinates != Coordinates::Index) else {
        let is_index = array.world_units.is_empty() || is_plain || has_coordinates;
        return if is_index { by_index(!has_coordinates) } else { in_world(found.name) };
    };
    let (quantity, units) = quantity_of(dataset, array, axis);
    let shown = |samples, is_to_scale| AxisNote {
        quantity: quantity.clone(),
        units: units.clone(),
        samples: placed(samples),
        is_to_scale,
        ..in_world(found.name)
    };
    match &axis.coordinates {
        Coordinates::Regular { origin, step } => {
            let is_same = (found.step.abs() - step.abs()).abs() <= 1e3 * ALIKE * step.abs();
            // A file gives the step of a volume that lies elsewhere in the world: the world has the positions.
            let is_elsewhere = *origin == 0.0 && is_same && !(found.origin == 0.0 && found.step > 0.0);
            if is_elsewhere && quantity == AxisQuantity::Number && !is_downward(array, found.step, *step) {
                let own = if array.world_units.is_empty() {
                    shown_units(&axis.units)
                } else {
                    shown_units(&array.world_units)
                };
                return AxisNote::of_world(found.name, own, ends);
            }
            let is_to_scale = is_same && base_units(&axis.units) == base_units(&array.world_units);
            shown(vec![(0.0, *origin), (last, origin + last * step)], is_to_scale)
        }
        Coordinates::Explicit(values) => {
            let rises = values.windows(2).all(|pair| pair[1] > pair[0]);
            let falls = values.windows(2).all(|pair| pair[1] < pair[0]);
            if values.len() as u64 != found.count
                || !(rises || falls)
                || !values.iter().all(|v| v.is_finite())
            {
                return by_index(false);
            }
            shown(values.iter().enumerate().map(|(index, &value)| (index as f64, value)).collect(), false)
        }
        Coordinates::Index => by_index(false),
    }
}

/// Whether coordinates that rise are drawn downward: depths keep their own numbers, and images have rows that run downward.
fn is_downward(array: &ArrayInfo, drawn: f64, step: f64) -> bool {
    !array.is_anatomical() && drawn * step < 0.0
}

/// Kind of the coordinates of an axis, and their units for display.
pub(super) fn quantity_of(dataset: &Dataset, array: &ArrayInfo, axis: &Axis) -> (AxisQuantity, String) {
    let is_degrees = axis.units.trim().eq_ignore_ascii_case("degrees");
    let named = |names: [&str; 2]| is_degrees && names.contains(&axis.name.to_ascii_lowercase().as_str());
    match kind_of_degrees(&axis.units) {
        Some(AxisKind::Y) => return (AxisQuantity::Latitude, String::new()),
        Some(_) => return (AxisQuantity::Longitude, String::new()),
        None if named(["lat", "latitude"]) => return (AxisQuantity::Latitude, String::new()),
        None if named(["lon", "longitude"]) => return (AxisQuantity::Longitude, String::new()),
        None => {}
    }
    match TimeUnits::parse(&axis.units, &calendar_of(dataset, array, axis)) {
        Ok(units) => (AxisQuantity::Time(units), String::new()),
        Err(_) => (AxisQuantity::Number, shown_units(&axis.units).to_owned()),
    }
}

/// `degrees_east` and `degrees_north` are both degrees.
fn base_units(units: &str) -> &str {
    if kind_of_degrees(units).is_some() { "degrees" } else { shown_units(units) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(array: &ArrayInfo) -> Bounds {
        let [x, y] = [0, 1].map(|axis| {
            let map = array.levels[0].world_from_voxel.0[axis];
            let last = [2.0, 4.0][axis];
            let (a, b) = (map[3] - 0.5 * map[axis], map[3] + (last + 0.5) * map[axis]);
            [a.min(b), a.max(b)]
        });
        Bounds { min: [x[0], y[0], -0.5], max: [x[1], y[1], 0.5] }
    }

    fn plane() -> Dataset {
        let mut dataset = array::conformance::one_array("<f4".parse().unwrap(), &[5, 3], &[5, 3]);
        let plane = &mut dataset.arrays[0];
        (plane.axes[0].kind, plane.axes[1].kind) = (AxisKind::Y, AxisKind::X);
        dataset
    }

    fn note(dataset: &Dataset, world: usize) -> AxisNote {
        let array = &dataset.arrays[0];
        axis_note(dataset, array, &bounds(array), world)
    }

    /// Coordinates at the low and the high end of the box.
    fn ends(dataset: &Dataset, world: usize) -> Vec<f64> {
        note(dataset, world).samples.iter().map(|sample| sample[1]).collect()
    }

    #[test]
    fn coordinates_follow_the_direction_in_which_an_axis_is_drawn() {
        let mut dataset = plane();
        dataset.arrays[0].axes[0].units = "m".into();
        dataset.arrays[0].axes[0].coordinates = Coordinates::Regular { origin: 10.0, step: 25.0 };
        for (step, expected) in [(25.0, [10.0, 110.0]), (-25.0, [110.0, 10.0])] {
            dataset.arrays[0].levels[0].world_from_voxel =
                array::Affine::from_spacing([1.0, step, 1.0], [0.0; 3]);
            assert_eq!(ends(&dataset, 1), expected, "{step}");
        }
        assert_eq!(note(&dataset, 0).quantity, AxisQuantity::Index);
        // Longitudes that cross the meridian, which are not sorted, are shown by index; sorted ones lie where they are.
        let lon = |samples: [f64; 3]| {
            let mut dataset = plane();
            dataset.arrays[0].axes[1].units = "degrees_east".into();
            dataset.arrays[0].axes[1].coordinates = Coordinates::Explicit(samples.to_vec());
            (note(&dataset, 0).quantity, ends(&dataset, 0))
        };
        assert_eq!(lon([0.0, 170.0, -10.0]), (AxisQuantity::Index, vec![0.0, 2.0]));
        assert_eq!(lon([0.0, 1.0, 100.0]), (AxisQuantity::Longitude, vec![0.0, 1.0, 100.0]));
    }

    #[test]
    fn a_volume_that_lies_elsewhere_has_its_positions_in_the_world() {
        let mut dataset = plane();
        let array = &mut dataset.arrays[0];
        array.world_units = "mm".into();
        array.set_anatomical();
        for axis in &mut array.axes {
            axis.units = "mm".into();
            axis.coordinates = Coordinates::Regular { origin: 0.0, step: 2.0 };
        }
        array.levels[0].world_from_voxel = array::Affine::from_spacing([2.0, -2.0, 2.0], [-40.0, 7.0, 0.0]);
        assert_eq!(ends(&dataset, 0), [-41.0, -35.0]);
        assert_eq!(ends(&dataset, 1), [-2.0, 8.0]);
        assert!(note(&dataset, 1).is_to_scale);
    }
}
