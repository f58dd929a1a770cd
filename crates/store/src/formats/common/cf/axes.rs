//! Kinds of axes, positions of their samples, and the resulting map to world space.

use array::{Affine, Axis, AxisKind, Coordinates, DType, ElementType, kind_of_degrees};

use super::{CfAttributes, text};

/// One dimension of a variable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dimension {
    /// Name of the dimension.
    pub(crate) name: String,
    /// The variable of the same name, if there is one.
    pub(crate) coordinate: Option<Coordinate>,
}

/// A coordinate variable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Coordinate {
    /// Attributes of the variable.
    pub(crate) values: CfAttributes,
    /// Decoded values, one per index; empty for too many values and for values that are not numbers.
    pub(crate) samples: Vec<f64>,
}

/// Samples this close to even spacing, as a share of it, count as regular: single-precision coordinates
/// of fine grids stray so far.
const REGULAR_WITHIN: f64 = 1e-3;

/// The axes of a variable. Each kind of space and time is given once; axes of which nothing is known become
/// the kinds that are left, last axis first. `dtype` and `shape` are those of the variable.
pub(super) fn axes(dimensions: &[Dimension], dtype: DType, shape: &[u64]) -> Vec<Axis> {
    let has_colors = has_colors(dimensions, dtype, shape);
    let mut kinds: Vec<Option<AxisKind>> = Vec::new();
    for (place, dimension) in dimensions.iter().enumerate() {
        let is_of_colors = has_colors && place + 1 == dimensions.len();
        let known = known_kind(dimension).or(is_of_colors.then_some(AxisKind::Channel));
        let taken = |kind: AxisKind| kind != AxisKind::Other && kinds.contains(&Some(kind));
        kinds.push(known.map(|kind| if taken(kind) { AxisKind::Other } else { kind }));
    }
    for place in (0..kinds.len()).rev() {
        if kinds[place].is_none() {
            let free =
                [AxisKind::X, AxisKind::Y, AxisKind::Z].into_iter().find(|&k| !kinds.contains(&Some(k)));
            kinds[place] = free.or(Some(AxisKind::Other));
        }
    }
    let axis = |(dimension, kind): (&Dimension, Option<AxisKind>)| Axis {
        units: dimension
            .coordinate
            .as_ref()
            .and_then(|c| text(&c.values, "units"))
            .unwrap_or_default()
            .to_owned(),
        coordinates: dimension.coordinate.as_ref().map_or(Coordinates::Index, |c| coordinates(&c.samples)),
        ..Axis::new(dimension.name.clone(), kind.unwrap_or(AxisKind::Other))
    };
    dimensions.iter().zip(kinds).map(axis).collect()
}

/// Whether the last axis holds colors by its name, if nothing else states its kind: three or four bytes.
fn has_colors(dimensions: &[Dimension], dtype: DType, shape: &[u64]) -> bool {
    let name = dimensions.last().map(|dimension| dimension.name.to_ascii_lowercase()).unwrap_or_default();
    dtype.element() == ElementType::U8
        && shape.len() > 2
        && matches!(shape.last(), Some(3 | 4))
        && matches!(
            name.as_str(),
            "c" | "s"
                | "rgb"
                | "rgba"
                | "sample"
                | "samples"
                | "color"
                | "colors"
                | "colour"
                | "colours"
                | "channels"
                | "bands"
        )
}

/// Finds the kind by the rules of CF: the attribute `axis`, the standard name, the units, the attribute
/// `positive`, then the name itself.
fn known_kind(dimension: &Dimension) -> Option<AxisKind> {
    let said = dimension.coordinate.as_ref().and_then(|coordinate| {
        let value = |name| text(&coordinate.values, name).unwrap_or_default();
        by_axis(value("axis"))
            .or_else(|| by_standard_name(value("standard_name")))
            .or_else(|| by_units(value("units")))
            .or_else(|| (!value("positive").is_empty()).then_some(AxisKind::Z))
    });
    said.or_else(|| by_name(&dimension.name.to_ascii_lowercase()))
}

fn by_axis(axis: &str) -> Option<AxisKind> {
    match axis {
        "X" | "x" => Some(AxisKind::X),
        "Y" | "y" => Some(AxisKind::Y),
        "Z" | "z" => Some(AxisKind::Z),
        "T" | "t" => Some(AxisKind::Time),
        _ => None,
    }
}

fn by_standard_name(name: &str) -> Option<AxisKind> {
    match name {
        "time" | "forecast_reference_time" => Some(AxisKind::Time),
        "longitude" | "grid_longitude" | "projection_x_coordinate" => Some(AxisKind::X),
        "latitude" | "grid_latitude" | "projection_y_coordinate" => Some(AxisKind::Y),
        "height" | "altitude" | "model_level_number" => Some(AxisKind::Z),
        downward if is_downward(downward) => Some(AxisKind::Z),
        "realization" => Some(AxisKind::Other),
        other if other.starts_with("atmosphere_") || other.starts_with("ocean_") => Some(AxisKind::Z),
        _ => None,
    }
}

fn by_units(units: &str) -> Option<AxisKind> {
    if let Some(kind) = kind_of_degrees(units) {
        return Some(kind);
    }
    if units.to_ascii_lowercase().contains(" since ") {
        return Some(AxisKind::Time);
    }
    is_pressure(units).then_some(AxisKind::Z)
}

fn is_pressure(units: &str) -> bool {
    matches!(
        units.to_ascii_lowercase().as_str(),
        "pa" | "hpa" | "mb" | "mbar" | "millibar" | "millibars" | "bar" | "dbar" | "decibar" | "pascal"
    )
}

fn by_name(name: &str) -> Option<AxisKind> {
    let kind = match name {
        "t" | "time" | "times" | "month" | "year" | "day" | "step" => AxisKind::Time,
        "x" | "i" | "ni" | "nx" | "lon" | "longitude" | "nlon" | "xc" | "rlon" | "west_east" => AxisKind::X,
        "y" | "j" | "nj" | "ny" | "lat" | "latitude" | "nlat" | "yc" | "rlat" | "south_north" => AxisKind::Y,
        "z" | "k" | "nz" | "lev" | "level" | "levels" | "height" | "altitude" => AxisKind::Z,
        depth if is_depth(depth) => AxisKind::Z,
        "channel" | "band" | "component" => AxisKind::Channel,
        "bnds" | "bounds" | "nv" | "nbnd" | "nbnds" | "vertices" | "member" | "ens" | "ensemble" => {
            AxisKind::Other
        }
        _ => return None,
    };
    Some(kind)
}

/// Whether there is a coordinate for every sample: none is missing, outside its valid range, NaN or infinite.
fn are_known(samples: &[f64]) -> bool {
    samples.iter().all(|v| v.is_finite())
}

impl Dimension {
    /// Returns the dimension for an axis of `count` samples. Coordinates that are not known for every sample are dropped, with a
    /// note for people.
    pub(super) fn of_length(&self, count: u64, notes: &mut Vec<String>) -> Self {
        let mut dimension = self.clone();
        if let Some(Coordinate { samples, .. }) = &mut dimension.coordinate
            && !samples.is_empty()
            && (samples.len() as u64 != count || !are_known(samples))
        {
            samples.clear();
            notes.push(format!(
                "coordinates of axis `{}` are missing in places: it is shown by index",
                self.name
            ));
        }
        dimension
    }
}

/// Regular where the samples are evenly spaced.
#[expect(clippy::cast_precision_loss, reason = "at most 65,536 samples")]
fn coordinates(samples: &[f64]) -> Coordinates {
    let are_known = are_known(samples);
    let ([first, .., last], true) = (samples, are_known) else {
        let is_one = samples.len() == 1 && are_known;
        return if is_one { Coordinates::Explicit(samples.to_vec()) } else { Coordinates::Index };
    };
    let step = (last - first) / (samples.len() - 1) as f64;
    let strays = |(i, v): (usize, &f64)| (v - (first + i as f64 * step)).abs() > REGULAR_WITHIN * step.abs();
    if step == 0.0 || samples.iter().enumerate().any(strays) {
        Coordinates::Explicit(samples.to_vec())
    } else {
        Coordinates::Regular { origin: *first, step }
    }
}

/// World space, with notes for the user.
pub(super) struct CfWorldSpace {
    pub(super) world_from_voxel: Affine,
    pub(super) units: String,
    pub(super) notes: Vec<String>,
}

/// Returns the axis-aligned map of a variable. Axes in the units of the horizontal ones keep them. A vertical axis in other units
/// (meters over degrees, pressure) or one that is not evenly spaced has steps of one horizontal cell, upward, because no other
/// scale can be viewed. A horizontal axis that cannot be to scale has steps of 1 in the direction of its coordinates. Renderers
/// place uneven axes themselves.
pub(super) fn world(dimensions: &[Dimension], axes: &[Axis]) -> CfWorldSpace {
    let find = |kind| axes.iter().position(|a| a.kind == kind);
    let (x, y, z) = (find(AxisKind::X), find(AxisKind::Y), find(AxisKind::Z));
    let mut world =
        CfWorldSpace { world_from_voxel: Affine::IDENTITY, units: String::new(), notes: Vec::new() };
    let unit = |place: Option<usize>| place.map(|p| base_unit(&axes[p].units));
    let horizontal = unit(x).or_else(|| unit(y)).filter(|u| !u.is_empty());
    let (mut spacing, mut origin) = ([1.0; 3], [0.0; 3]);
    for (place, axis) in [(0, x), (1, y), (2, z)] {
        let Some(number) = axis else { continue };
        let axis = &axes[number];
        match axis.coordinates {
            Coordinates::Regular { origin: first, step } if Some(base_unit(&axis.units)) == horizontal => {
                // The height in the world of a depth is minus the depth.
                let sign = if place == 2 && points_down(&dimensions[number]) { -1.0 } else { 1.0 };
                // No -0.
                (spacing[place], origin[place]) = (sign * step, sign * first + 0.0);
            }
            Coordinates::Index => {}
            _ if place == 2 => {
                spacing[2] = cell(&spacing) * upwards(&dimensions[number]);
                world.notes.push(if is_uneven(axis) {
                    format!("axis `{}` is uneven: pictures show it on an even grid", axis.name)
                } else {
                    format!("axis `{}` is drawn with steps of one horizontal cell, not to scale", axis.name)
                });
            }
            Coordinates::Explicit(ref samples) if Some(base_unit(&axis.units)) == horizontal => {
                let even = even(samples);
                (spacing[place], origin[place]) = even.unwrap_or((1.0, 0.0));
                let name = &axis.name;
                match even {
                    Some(_) => {
                        world
                            .notes
                            .push(format!("axis `{name}` is uneven: pictures show it on an even grid"));
                    }
                    None if is_uneven(axis) => {
                        let why = "its coordinates do not all rise or all fall";
                        world.notes.push(format!("axis `{name}` is drawn by index: {why}"));
                    }
                    None => {}
                }
            }
            _ => {
                spacing[place] = direction(&axis.coordinates);
                let why = match &horizontal {
                    _ if axis.units.is_empty() => "it has no units".to_owned(),
                    Some(others) => format!("it is in `{}`, another axis in `{others}`", axis.units),
                    None => "another axis has no units".to_owned(),
                };
                world.notes.push(format!("axis `{}` is drawn by index: {why}", axis.name));
            }
        }
    }
    world.units = horizontal.unwrap_or_default();
    world.world_from_voxel = Affine::from_spacing(spacing, origin);
    world
}

/// Whether the samples of an axis have several positions that are not evenly spaced.
fn is_uneven(axis: &Axis) -> bool {
    matches!(&axis.coordinates, Coordinates::Explicit(samples) if samples.len() > 1)
}

/// Step and origin of even samples between the ends of the given ones; `None` if they are not monotonic.
#[expect(clippy::cast_precision_loss, reason = "at most 65,536 samples")]
fn even(samples: &[f64]) -> Option<(f64, f64)> {
    let [first, .., last] = *samples else { return None };
    let goes_up = last > first;
    let is_ordered =
        samples.windows(2).all(|pair| if goes_up { pair[1] > pair[0] } else { pair[1] < pair[0] });
    is_ordered.then(|| ((last - first) / (samples.len() - 1) as f64, first))
}

/// Returns 1 if coordinates rise with the index or are not monotonic, -1 if they fall.
fn direction(coordinates: &Coordinates) -> f64 {
    let falls = match coordinates {
        Coordinates::Regular { step, .. } => *step < 0.0,
        Coordinates::Explicit(samples) => even(samples).is_some_and(|(step, _)| step < 0.0),
        Coordinates::Index => false,
    };
    if falls { -1.0 } else { 1.0 }
}

/// Geometric mean of the horizontal steps.
fn cell(spacing: &[f64; 3]) -> f64 {
    (spacing[0] * spacing[1]).abs().sqrt()
}

/// 1 when the index grows upwards, else -1.
fn upwards(dimension: &Dimension) -> f64 {
    let Some(Coordinate { samples, .. }) = &dimension.coordinate else { return 1.0 };
    let grows = matches!(samples[..], [first, .., last] if last > first);
    if grows == points_down(dimension) { -1.0 } else { 1.0 }
}

/// Whether coordinates of a vertical axis grow downward: by `positive`, else the standard name, the units, or the name.
fn points_down(dimension: &Dimension) -> bool {
    let Some(Coordinate { values, samples }) = &dimension.coordinate else { return false };
    let value = |name| text(values, name).unwrap_or_default();
    let standard_name = value("standard_name");
    match value("positive").to_ascii_lowercase().as_str() {
        "down" => true,
        "up" => false,
        _ if is_downward(standard_name) || is_pressure(value("units")) => true,
        _ if by_standard_name(standard_name) == Some(AxisKind::Z) => false,
        // Depths below zero are heights.
        _ => is_depth(&dimension.name.to_ascii_lowercase()) && samples.iter().any(|&sample| sample > 0.0),
    }
}

/// Standard names of quantities that grow downward.
fn is_downward(standard_name: &str) -> bool {
    matches!(
        standard_name,
        "depth"
            | "depth_below_geoid"
            | "depth_below_sea_floor"
            | "air_pressure"
            | "sea_water_pressure"
            | "atmosphere_sigma_coordinate"
            | "atmosphere_hybrid_sigma_pressure_coordinate"
    )
}

/// Names of axes of depth and pressure, those of NEMO's staggered grids too.
fn is_depth(name: &str) -> bool {
    matches!(name, "depth" | "deptht" | "depthu" | "depthv" | "depthw" | "plev" | "pressure")
}

/// `degrees_east` and `degrees_north` are both degrees.
fn base_unit(units: &str) -> String {
    if kind_of_degrees(units).is_some() { "degrees".into() } else { units.into() }
}
