//! Annotations of pictures: names, times, scales and legends, with the names of the data set.

use array::{ArrayInfo, Attribute, Axis, AxisKind, Coordinates, Dataset, Result};
use render::{ImageSize, LegendKey, Notes, Span, TransferFunction, VolumeView};
use stream::{camera_in, grid_color};
use view::{Mode, View};

/// Returns the annotations for the picture of a finished view.
pub(super) fn annotations(view: &View, size: ImageSize, dataset: &Dataset) -> Result<Notes> {
    let (number, array, position) = view.place_in(dataset)?;
    let name = |kind: AxisKind, other: &str| {
        let own = array.axes.iter().find(|axis| axis.kind == kind).map(|axis| axis.name.as_str());
        own.filter(|name| !name.is_empty()).unwrap_or(other).to_owned()
    };
    let own = values_of(array, &position);
    let legend = |map: &str, range| TransferFunction {
        color_map: map.to_owned(),
        reversed: false,
        range,
        opacity: Vec::new(),
    };
    // In pictures of surfaces and slices alone, only slices have the colors of the transfer function.
    let has_colors = view.mode != Mode::Surfaces || !view.slices.is_empty();
    let transfer = view.transfer.as_ref().filter(|_| has_colors);
    let transfer = transfer.map(|transfer| legend(&transfer.map, transfer.range));
    let colors = view.color_by.as_ref().zip(view.colors_in(dataset)?).and_then(|(by, (_, array, at))| {
        Some((values_of(array, &at), legend(by.map.as_deref()?, by.range?)))
    });
    let color_of = |level: usize| LegendKey {
        color: grid_color(level, array.levels.len()),
        text: format!("grids of level {level}"),
    };
    let surfaces: Vec<LegendKey> = view
        .surfaces
        .iter()
        .map(|s| LegendKey::of_value(s.color, s.value, shown_units(&array.units)))
        .collect();
    let has_grids = view.grids && dataset.grids_of(array).is_some();
    let levels = (0..if has_grids { array.levels.len() } else { 0 }).rev();
    let when = time_text(dataset, array, view.time);
    let (what, values, transfer, surfaces) = match colors {
        // Names the array and the values of its surfaces, which have no colors of their own.
        Some((values, legend)) => {
            let at: Vec<String> =
                view.surfaces.iter().map(|s| LegendKey::of_value(s.color, s.value, "").text).collect();
            let shown = if at.is_empty() { own } else { format!("{own} = {}", at.join(", ")) };
            (Some(format!("{shown}, colored by {values}")), values, Some(legend), Vec::new())
        }
        // The legend names the array, if there is one.
        None => (transfer.is_none().then(|| own.clone()), own, transfer, surfaces),
    };
    let brightness: u32 = view.background.iter().map(|&c| u32::from(c)).sum();
    Ok(Notes {
        camera: camera_in(view, dataset, size)?,
        bounds: VolumeView::new(dataset, number, &position)?.bounds(),
        axes: [name(AxisKind::X, "x"), name(AxisKind::Y, "y"), name(AxisKind::Z, "z")],
        world_units: shown_units(&array.world_units).to_owned(),
        spans: [AxisKind::X, AxisKind::Y, AxisKind::Z].map(|kind| span(array, kind)),
        values,
        title: [what, when].into_iter().flatten().collect::<Vec<_>>().join("   "),
        keys: surfaces.into_iter().chain(levels.map(color_of)).collect(),
        transfer,
        is_dark: brightness < 3 * 128,
    })
}

/// Describes an array's values at a position: name and units, and the index on each axis of more than one element that
/// is neither space nor time.
fn values_of(array: &ArrayInfo, position: &[u64]) -> String {
    let units = match shown_units(&array.units) {
        "" => String::new(),
        units => format!(" [{units}]"),
    };
    let axes = array.axes.iter().zip(array.shape()).zip(position);
    let others = axes
        .filter(|((axis, count), _)| **count > 1 && axis.kind != AxisKind::Time && !axis.kind.is_spatial());
    let places = others.map(|((axis, _), at)| format!(", {} {at}", axis.name));
    format!("{}{units}{}", array.name, places.collect::<String>())
}

/// Returns units for display; empty for CF's `1`, the unit of plain numbers.
fn shown_units(units: &str) -> &str {
    if units.trim() == "1" { "" } else { units }
}

/// Formats the time of a step; `None` for an array without time.
fn time_text(dataset: &Dataset, array: &ArrayInfo, step: u64) -> Option<String> {
    let axis = &array.axes[array.time_axis()?];
    let count = array.shape()[array.time_axis()?];
    if matches!(axis.coordinates, Coordinates::Index) {
        return Some(format!("step {step} of 0 to {}", count.saturating_sub(1)));
    }
    let value = axis.coordinates.at(step);
    let calendar = |array: &ArrayInfo| match array.attributes.get("calendar") {
        Some(Attribute::Text(name)) => Some(name.clone()),
        _ => None,
    };
    let own =
        dataset.find(&axis.name).ok().and_then(|(_, of_axis)| calendar(of_axis)).or_else(|| calendar(array));
    let step = least_step(&axis.coordinates);
    let date = array::time::date(value, step, &axis.units, own.as_deref().unwrap_or("standard"));
    Some(date.unwrap_or_else(|| LegendKey::of_value([0; 3], value, &axis.units).text))
}

/// Returns the minimum distance of consecutive samples; 0 if it is not known.
fn least_step(coordinates: &Coordinates) -> f64 {
    match coordinates {
        Coordinates::Index => 0.0,
        Coordinates::Regular { step, .. } => step.abs(),
        Coordinates::Explicit(samples) => {
            let steps = samples.windows(2).map(|pair| (pair[1] - pair[0]).abs());
            steps.filter(|&step| step > 0.0 && step.is_finite()).reduce(f64::min).unwrap_or(0.0)
        }
    }
}

/// Returns the range of an axis that the picture does not show to scale: by its coordinates, or by index if it has none
/// beside other axes that have some, or if the picture does not follow them.
#[expect(clippy::cast_precision_loss, reason = "a length in voxels")]
fn span(array: &ArrayInfo, kind: AxisKind) -> Option<Span> {
    let (number, axis) = array.axes.iter().enumerate().find(|(_, axis)| axis.kind == kind)?;
    let last = array.shape()[number].saturating_sub(1) as f64;
    let world = array.level(0).ok()?.world_from_voxel;
    let place = [AxisKind::X, AxisKind::Y, AxisKind::Z].iter().position(|&one| one == kind)?;
    let drawn =
        |index: f64| world.apply(std::array::from_fn(|n| if n == place { index } else { 0.0 }))[place];
    let along = |from: f64, to: f64, units: &str| {
        let (from, to) = if drawn(last) < drawn(0.0) { (to, from) } else { (from, to) };
        Span { from, to, units: units.to_owned() }
    };
    let (from, to) = match &axis.coordinates {
        Coordinates::Regular { origin, step } => (*origin, origin + last * step),
        Coordinates::Explicit(samples) if samples.len() == 1 => (samples[0], samples[0]),
        // The picture follows uneven axes on an even grid, so they are regular here.
        Coordinates::Explicit(_) => return Some(along(0.0, last, "(index)")),
        Coordinates::Index => {
            let is_index = |other: &Axis| other.coordinates == Coordinates::Index;
            let has_others = array.axes.iter().any(|other| other.kind.is_spatial() && !is_index(other));
            return has_others.then(|| along(0.0, last, ""));
        }
    };
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * (to - from).abs();
    let is_even = matches!(axis.coordinates, Coordinates::Regular { .. });
    let is_in_place = is_even && near(drawn(0.0), from) && near(drawn(last), to);
    // A volume that is rotated or shifted in the world is to scale if its steps have their declared lengths: the box
    // shows its position.
    let length = (0..3).map(|row| world.0[row][place].powi(2)).sum::<f64>().sqrt();
    let is_elsewhere = matches!(axis.coordinates, Coordinates::Regular { origin, .. } if origin == 0.0);
    // Depths are labeled as depths, though the world has their heights.
    let is_depth = kind == AxisKind::Z && near(drawn(0.0), -from) && near(drawn(last), -to);
    let is_to_scale = is_in_place || is_elsewhere && !is_depth && near(length * last, (to - from).abs());
    // An end at -0.005 of 5000 is rounded to 0.
    let grain = 10f64.powf((to - from).abs().log10().floor() - 3.0);
    let rounded = |end: f64| if grain.is_normal() { (end / grain).round() * grain + 0.0 } else { end };
    (!is_to_scale).then(|| along(rounded(from), rounded(to), shown_units(&axis.units)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A field of a mesh at six times.
    fn mesh() -> Dataset {
        let mut dataset = array::conformance::one_array("<f8".parse().unwrap(), &[6, 8, 8, 8], &[1, 8, 8, 8]);
        let field = &mut dataset.arrays[0];
        field.axes[0].kind = AxisKind::Time;
        field.axes[0].coordinates = Coordinates::Regular { origin: 12.0, step: 6.0 };
        field.axes[0].units = "hours since 2001-02-03".into();
        field.units = "kg".into();
        field.attributes.insert(array::GRIDS_ATTRIBUTE.into(), Attribute::Text("amr/grids".into()));
        let mut table =
            array::conformance::one_array("<f8".parse().unwrap(), &[3, 7], &[3, 7]).arrays.remove(0);
        table.name = "amr/grids".into();
        dataset.arrays.push(table);
        dataset
    }

    #[test]
    fn notes_name_the_time_surfaces_and_grids() {
        let mut dataset = mesh();
        let surface = |value| json!({"value": value, "color": [1, 2, 3], "opacity": 1.0});
        let view = json!({"array": dataset.arrays[0].name, "time": 3, "mode": "surfaces", "grids": true,
            "surfaces": [surface(0.5), surface(-2e-7)]});
        let view = View::parse(&view.to_string()).unwrap();
        let size = ImageSize { width: 90, height: 70 };
        let of = |dataset: &Dataset| annotations(&view, size, dataset).unwrap();
        let found = of(&dataset);
        let texts: Vec<&str> = found.keys.iter().map(|key| key.text.as_str()).collect();
        assert_eq!(texts, ["0.5 kg", "-2e-7 kg", "grids of level 0"]);
        assert_eq!(found.keys[0].color, [1, 2, 3]);
        assert!(found.title.ends_with("[kg]   2001-02-04 06:00"), "{}", found.title);
        dataset.arrays[0].axes[0].units = "minutes since 2001-02-03".into();
        assert!(of(&dataset).title.ends_with("2001-02-03 00:30"));
        for (units, expected) in [
            ("seconds since 2001-02-03", "2001-02-03 00:00:30"),
            ("milliseconds since 2001-02-03", "2001-02-03 00:00:00.030"),
        ] {
            dataset.arrays[0].axes[0].units = units.into();
            assert!(of(&dataset).title.ends_with(expected), "{}", of(&dataset).title);
        }
        let uneven = Coordinates::Explicit(vec![0.0, 60.0, 60.0, 70.0, 90.0, 7200.0]);
        assert_eq!(least_step(&uneven), 10.0);
        dataset.arrays[0].axes[0].units = "hours since 2001-02-03".into();
        dataset.arrays[0].attributes.insert("calendar".into(), Attribute::Text("360_day".into()));
        assert!(of(&dataset).title.ends_with("2001-02-04 06:00"));
        dataset.arrays[0].attributes.insert("calendar".into(), Attribute::Text("lunar".into()));
        assert!(of(&dataset).title.ends_with("30 hours since 2001-02-03"));
        dataset.arrays[0].axes[0].coordinates = Coordinates::Index;
        assert!(of(&dataset).title.ends_with("step 3 of 0 to 5"));
    }

    #[test]
    fn notes_name_the_array_that_gives_the_colors() {
        let mut dataset = mesh();
        let mut heat = dataset.arrays[0].clone();
        (heat.name, heat.units) = ("heat".into(), "K".into());
        dataset.arrays.push(heat);
        let size = ImageSize { width: 90, height: 70 };
        let by = json!({"array": "heat", "range": [3.0, 9.0], "map": "magma"});
        let surface = json!({"value": 0.5, "color": [1, 2, 3], "opacity": 1.0});
        let view = json!({"array": dataset.arrays[0].name, "surfaces": [surface], "mode": "surfaces", "color_by": by});
        let found = annotations(&View::parse(&view.to_string()).unwrap(), size, &dataset).unwrap();
        let legend = found.transfer.unwrap();
        assert_eq!(
            (found.values.as_str(), legend.color_map.as_str(), legend.range),
            ("heat [K]", "magma", [3.0, 9.0])
        );
        let name = &dataset.arrays[0].name;
        let title = format!("{name} [kg] = 0.5, colored by heat [K]   ");
        assert!(found.title.starts_with(&title), "{}", found.title);
        assert!(found.keys.is_empty(), "surfaces have no colors of their own");
        dataset.arrays[2].axes[0].kind = AxisKind::Channel;
        dataset.arrays[2].axes[0].name = "c".into();
        let at = json!({"array": "heat", "at": {"c": 2}, "range": [3.0, 9.0], "map": "magma"});
        let view = json!({"array": dataset.arrays[0].name, "color_by": at});
        let found = annotations(&View::parse(&view.to_string()).unwrap(), size, &dataset).unwrap();
        assert_eq!(found.values, "heat [K], c 2");
    }

    #[test]
    fn axes_are_labeled_in_the_direction_in_which_they_are_drawn() {
        let mut dataset = array::conformance::one_array("<f4".parse().unwrap(), &[5, 3], &[5, 3]);
        let plane = &mut dataset.arrays[0];
        (plane.axes[0].kind, plane.axes[1].kind) = (AxisKind::Y, AxisKind::X);
        plane.axes[0].units = "m".into();
        plane.axes[0].coordinates = Coordinates::Regular { origin: 0.0, step: 25.0 };
        let span_of = |plane: &ArrayInfo, kind| span(plane, kind).map(|s| (s.from, s.to, s.units));
        let drawn = |plane: &mut ArrayInfo, step: f64| {
            plane.levels[0].world_from_voxel = array::Affine::from_spacing([1.0, step, 1.0], [0.0; 3]);
        };
        drawn(plane, 1.0);
        assert_eq!(span_of(plane, AxisKind::Y), Some((0.0, 100.0, "m".to_owned())));
        // Downwards: the first sample is at the upper end of the box.
        drawn(plane, -1.0);
        assert_eq!(span_of(plane, AxisKind::Y), Some((100.0, 0.0, "m".to_owned())));
        // Longitudes that cross the meridian, which are not sorted, and uneven ones that are drawn evenly.
        for samples in [[0.0, 170.0, -10.0], [0.0, 1.0, 100.0]] {
            plane.axes[1].coordinates = Coordinates::Explicit(samples.to_vec());
            assert_eq!(span_of(plane, AxisKind::X), Some((0.0, 2.0, "(index)".to_owned())));
        }
        plane.axes[1].coordinates = Coordinates::Index;
        assert_eq!(span_of(plane, AxisKind::X), Some((0.0, 2.0, String::new())));
        // A section whose depths are in the units of the world.
        plane.axes[0].kind = AxisKind::Z;
        plane.levels[0].world_from_voxel = array::Affine::from_spacing([1.0, 1.0, -25.0], [0.0; 3]);
        assert_eq!(span_of(plane, AxisKind::Z), Some((100.0, 0.0, "m".to_owned())));
        plane.levels[0].world_from_voxel = array::Affine::from_spacing([1.0, 1.0, 25.0], [0.0; 3]);
        assert_eq!(span_of(plane, AxisKind::Z), None, "heights are to scale");
    }

    #[test]
    fn plain_numbers_have_no_units_in_a_picture() {
        let mut dataset = mesh();
        dataset.arrays[0].units = "1".into();
        let name = dataset.arrays[0].name.clone();
        assert_eq!(values_of(&dataset.arrays[0], &[0; 4]), name);
    }
}
