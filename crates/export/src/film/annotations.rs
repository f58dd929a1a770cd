//! Annotations of pictures: names, times, scales and legends, with the names of the data set.

use array::{ArrayInfo, Attribute, AxisKind, Coordinates, Dataset, Result};
use render::{ImageSize, LegendKey, Notes, TransferFunction, VolumeView};
use stream::{camera_in, grid_color};
use view::{Mode, ValueScale, View};

use super::axis_notes::{axis_notes, calendar_of, is_map};
use super::legend::legend;

/// Returns the annotations for the picture of a finished view.
pub(crate) fn annotations(view: &View, size: ImageSize, dataset: &Dataset) -> Result<Notes> {
    let (number, array, position) = view.place_in(dataset)?;
    let own = values_of(array);
    let colored = |map: &str, range| TransferFunction {
        color_map: map.to_owned(),
        reversed: false,
        scale: ValueScale::Linear,
        range,
        opacity: Vec::new(),
    };
    // In pictures of surfaces and slices alone, only slices have the colors of the transfer function.
    let has_colors = view.mode != Mode::Surfaces || view.slices.iter().any(|slice| !slice.hidden);
    let transfer = view.transfer.as_ref().filter(|_| has_colors);
    let transfer = transfer.map(|transfer| TransferFunction {
        reversed: transfer.reversed,
        scale: transfer.scale,
        ..colored(&transfer.map, transfer.range)
    });
    let colors = view.color_by.as_ref().zip(view.colors_in(dataset)?).and_then(|(by, (_, array, at))| {
        let places = other_positions(dataset, array, &at);
        let values = [values_of(array)].into_iter().chain(places).collect::<Vec<_>>().join(", ");
        Some((values, colored(by.map.as_deref()?, by.range?)))
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
    let bounds = VolumeView::new(dataset, number, &position)?.bounds();
    let axes = axis_notes(dataset, array, &bounds);
    let named = if view.color_by.is_none() && has_colors { legend(dataset, array) } else { Vec::new() };
    let others = other_positions(dataset, array, &position);
    Ok(Notes {
        camera: camera_in(view, dataset, size)?,
        is_map: is_map(&axes),
        is_anatomical: array.is_anatomical(),
        bounds,
        axes,
        world_units: shown_units(&array.world_units).to_owned(),
        values,
        title: [what, when].into_iter().flatten().chain(others).collect::<Vec<_>>().join("   "),
        keys: named.into_iter().chain(surfaces).chain(levels.map(color_of)).collect(),
        transfer,
        is_dark: brightness < 3 * 128,
    })
}

/// Describes an array's values: the long name of the file if it has one, and units.
pub(super) fn values_of(array: &ArrayInfo) -> String {
    let units = match shown_units(&array.units) {
        "" => String::new(),
        units => format!(" [{units}]"),
    };
    let title = array.attributes.get("long_name").and_then(Attribute::text).filter(|name| !name.is_empty());
    format!("{}{units}", title.unwrap_or(&array.name))
}

/// Describes the position on each axis of more than one element that is neither space nor time: the name of a channel, a coordinate, or
/// the index.
pub(super) fn other_positions(dataset: &Dataset, array: &ArrayInfo, position: &[u64]) -> Vec<String> {
    let axes = array.axes.iter().zip(array.shape()).zip(position);
    let has_space = array.axes.iter().any(|axis| axis.kind.is_spatial());
    let drawn_from = if has_space { array.axes.len() } else { array.axes.len().saturating_sub(3) };
    let others = axes.enumerate().filter(|(number, ((axis, count), _))| {
        **count > 1 && axis.kind != AxisKind::Time && !axis.kind.is_spatial() && *number < drawn_from
    });
    others
        .map(|(_, ((axis, _), &at))| {
            let names = match array.attributes.get("channels") {
                Some(Attribute::Texts(names)) if axis.kind == AxisKind::Channel => names.as_slice(),
                _ => &[],
            };
            let channel = usize::try_from(at).ok().and_then(|at| names.get(at));
            if let Some(channel) = channel {
                return format!("{} {channel}", axis.name);
            }
            if matches!(axis.coordinates, Coordinates::Index) {
                return format!("{} {at}", axis.name);
            }
            let value = axis.coordinates.at(at);
            let step = least_step(&axis.coordinates);
            let date = array::time::date(value, step, &axis.units, &calendar_of(dataset, array, axis));
            let text = date.unwrap_or_else(|| number_with_units(value, step, shown_units(&axis.units)));
            format!("{} {text}", axis.name)
        })
        .collect()
}

/// Returns units for display; empty for CF's `1`, the unit of plain numbers.
pub(super) fn shown_units(units: &str) -> &str {
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
    let step = least_step(&axis.coordinates);
    let date = array::time::date(value, step, &axis.units, &calendar_of(dataset, array, axis));
    Some(date.unwrap_or_else(|| number_with_units(value, step, &axis.units)))
}

/// Formats a coordinate with its units; coordinates are `step` apart (0 if not known), and neighbors get different texts.
fn number_with_units(value: f64, step: f64, units: &str) -> String {
    /// Size from which on numbers are not written out.
    const MOST: f64 = 1e15;
    /// Digits of a step that are shown.
    const DIGITS: f64 = 2.0;
    let decimals = DIGITS - step.log10().floor();
    if !(step > 0.0 && value.abs() < MOST && decimals <= 9.0) {
        return LegendKey::of_value([0; 3], value, units).text;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 9")]
    let text = format!("{value:.*}", decimals.max(0.0) as usize);
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short} {units}").trim_end().to_owned()
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
        assert_eq!(found.values, "heat [K], c 2001-02-04");
    }

    #[test]
    fn plain_numbers_have_no_units_in_a_picture() {
        let mut dataset = mesh();
        dataset.arrays[0].units = "1".into();
        let name = dataset.arrays[0].name.clone();
        assert_eq!(values_of(&dataset.arrays[0]), name);
    }
}
