//! Default array of a data set.
//!
//! Arrays are ranked in this order. Last come coordinates, bounds, cell measures and tables of a mesh: arrays
//! that others name as such, by the CF and UGRID conventions, or that declare it themselves. Then values
//! before labels; fields of an adaptive mesh before the arrays that they are made of; tables of a few columns
//! after others; volumes before planes; fractional values before whole numbers; more dimensions first, not
//! counting channels; the largest; a color image before its source array, whose other ranks it shares; the
//! first in the file.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use array::{ArrayInfo, Attribute, Axis, AxisKind, Dataset, Error, GRIDS_ATTRIBUTE, Meaning, Result};

use crate::sides::{sides, thick_sides};

/// Shortest side of a volume; a shorter one is taken for the columns of a table.
const LEAST_SIDE: u64 = 5;

/// Maximum number of arrays that an error message names.
const MOST_NAMED: usize = 8;

/// Attributes that name coordinates, bounds of cells and their measures (CF conventions, sections 5 and 7), or the table of grids.
const NAMING: [&str; 8] = [
    "coordinates",
    "bounds",
    "climatology",
    "cell_measures",
    "formula_terms",
    "grid_mapping",
    "ancillary_variables",
    GRIDS_ATTRIBUTE,
];
/// Suffixes of attributes by which a mesh names its tables (UGRID).
const MESH_ENDS: [&str; 2] = ["_connectivity", "_coordinates"];
/// Suffixes of the names of coordinates, bounds and tables of a mesh.
const OWN_ENDS: [&str; 9] =
    ["_bnds", "_bounds", "_bnd", "_vertices", "_connectivity", "_nodes", "_links", "_vert", "vertex_of_cell"];

/// Suffix of the name of a color image, after the name of its source array.
pub const COLOR_END: &str = " (color)";

/// Returns the default array: one with two or three dimensions, or a line, which is shown as a plot, if there are only lines.
///
/// # Errors
/// `Unsupported`, listing the arrays, if none has an axis of several elements to draw.
pub(crate) fn first_array(dataset: &Dataset) -> Result<&ArrayInfo> {
    let named = named_by_others(dataset);
    let by_name: HashMap<&str, &ArrayInfo> =
        dataset.arrays.iter().map(|array| (array.name.as_str(), array)).collect();
    // Source array of a color image.
    let source = |array: &ArrayInfo| match array.meaning {
        Meaning::Colors => by_name.get(array.name.strip_suffix(COLOR_END)?).copied(),
        _ => None,
    };
    let with_sides = |least: usize| {
        let is_drawn =
            move |array: &&ArrayInfo| array.meaning != Meaning::Text && thick_sides(array) >= least;
        dataset.arrays.iter().filter(is_drawn)
    };
    let rank_of = |array: &&ArrayInfo| {
        (preference(source(array).unwrap_or(array), &named), array.meaning != Meaning::Colors)
    };
    let first = with_sides(2).min_by_key(rank_of).or_else(|| with_sides(1).min_by_key(rank_of));
    first.ok_or_else(|| nothing_to_draw(dataset))
}

/// Returns the error that no array of a data set can be drawn.
fn nothing_to_draw(dataset: &Dataset) -> Error {
    let found: Vec<String> = dataset.arrays.iter().take(MOST_NAMED).map(with_axes).collect();
    let left_out = dataset.left_out.iter().take(MOST_NAMED);
    let left_out: Vec<String> =
        left_out.map(|left| format!("; `{}` is left out: {}", left.name, left.what)).collect();
    let is_empty = |array: &ArrayInfo| array.shape().contains(&0);
    let (expected, hint) = if dataset.arrays.is_empty() {
        ("an array", "")
    } else if dataset.arrays.iter().all(is_empty) {
        ("an array with elements", "")
    } else {
        (
            "an array of numbers with several elements along an axis of space (z, y, x), or along any where it has none of these",
            "; values are read with `corridor get`",
        )
    };
    let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
    Error::unsupported(format!(
        "expected {expected} to draw, found {found} in `{}`{hint}{}",
        dataset.name,
        left_out.concat()
    ))
}

/// Describes an array: its name, and the name, length and kind of each axis.
fn with_axes(array: &ArrayInfo) -> String {
    let axis = |(axis, count): (&Axis, &u64)| {
        let kind = format!("{:?}", axis.kind).to_lowercase();
        if axis.name == kind { format!("{kind} {count}") } else { format!("{} {count} ({kind})", axis.name) }
    };
    let axes: Vec<String> = array.axes.iter().zip(array.shape()).map(axis).collect();
    format!("`{}` [{}]", array.name, axes.join(", "))
}

/// Sort key of arrays: the lowest is the default, the first of equal ones.
type ArrayPreference = (bool, bool, bool, bool, bool, bool, Reverse<usize>, Reverse<u64>);

fn preference(array: &ArrayInfo, named: &BTreeSet<String>) -> ArrayPreference {
    let is_table = sides(array).any(|side| (2..LEAST_SIDE).contains(&side));
    let count = array.shape().iter().fold(1u64, |n, &side| n.saturating_mul(side));
    let with_sides = array.axes.iter().zip(array.shape());
    let dimensions = with_sides.filter(|(axis, side)| **side > 1 && axis.kind != AxisKind::Channel).count();
    (
        is_about_others(array, named),
        array.meaning == Meaning::Labels || array.name.split('/').any(|part| part == "labels"),
        !array.attributes.contains_key(GRIDS_ATTRIBUTE),
        is_table,
        thick_sides(array) < 3,
        !array.decoding.output.element().is_float(),
        Reverse(dimensions),
        Reverse(count),
    )
}

fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

/// Returns true for coordinates, bounds, measures and tables of a mesh.
fn is_about_others(array: &ArrayInfo, named: &BTreeSet<String>) -> bool {
    let own = last_part(&array.name);
    let lower = own.to_ascii_lowercase();
    let is_place = |name: &str| {
        array.attributes.get(name).and_then(Attribute::text).is_some_and(|v| {
            matches!(
                v,
                "latitude" | "longitude" | "degrees_north" | "degrees_east" | "degree_north" | "degree_east"
            )
        })
    };
    named.contains(own)
        || array.axes.iter().any(|axis| axis.name == own)
        || array.attributes.contains_key("cf_role")
        || is_place("standard_name")
        || is_place("units")
        || OWN_ENDS.iter().any(|end| lower.ends_with(end))
}

/// Returns the names of the arrays that others name as their coordinates, bounds or measures.
fn named_by_others(dataset: &Dataset) -> BTreeSet<String> {
    let is_naming = |name: &str| NAMING.contains(&name) || MESH_ENDS.iter().any(|end| name.ends_with(end));
    let attributes = dataset.arrays.iter().flat_map(|array| &array.attributes).chain(&dataset.attributes);
    let texts = attributes.filter(|(name, _)| is_naming(name)).filter_map(|(_, value)| value.text());
    texts.flat_map(str::split_whitespace).map(|name| last_part(name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use array::AxisKind::{Channel, Other, Time, X, Y, Z};

    use super::*;
    use crate::view::tests::data;

    fn first(data: &Dataset) -> &str {
        &first_array(data).unwrap().name
    }

    fn say(data: &mut Dataset, array: usize, name: &str, text: &str) {
        data.arrays[array].attributes.insert(name.into(), Attribute::Text(text.into()));
    }

    #[test]
    fn tables_and_bounds_of_cells_are_shown_last() {
        let mut dataset = data(&[
            ("corners", &[(Other, 64), (Other, 3), (Other, 2)]),
            ("lon_bounds", &[(Other, 30), (Other, 40), (Other, 8)]),
            ("lon", &[(X, 40)]),
            ("nav_lat", &[(Y, 30), (X, 40)]),
            ("sst", &[(Y, 30), (X, 40)]),
        ]);
        say(&mut dataset, 2, "bounds", "lon_bounds");
        say(&mut dataset, 4, "coordinates", "time nav_lat");
        assert_eq!(first(&dataset), "sst");
        let table = data(&[("corners", &[(Z, 64), (Y, 3), (X, 2)]), ("line", &[(X, 9)])]);
        assert_eq!(first(&table), "corners");
    }

    #[test]
    fn what_describes_a_mesh_or_measures_cells_is_not_shown_first() {
        let mut dataset = data(&[
            ("mesh_face_nodes", &[(Other, 900), (Other, 6)]),
            ("edges", &[(Other, 900), (Other, 7)]),
            ("areacella", &[(Y, 300), (X, 400)]),
            ("lat2d", &[(Y, 300), (X, 400)]),
            ("node_x", &[(Y, 300), (X, 400)]),
            ("time_bnds", &[(Time, 900), (Other, 8)]),
            ("mesh", &[]),
            ("tas", &[(Time, 2), (Y, 30), (X, 40)]),
        ]);
        say(&mut dataset, 6, "cf_role", "mesh_topology");
        say(&mut dataset, 6, "edge_node_connectivity", "edges");
        say(&mut dataset, 6, "node_coordinates", "node_x node_y");
        say(&mut dataset, 3, "standard_name", "latitude");
        say(&mut dataset, 7, "cell_measures", "area: areacella");
        assert_eq!(first(&dataset), "tas");
    }

    #[test]
    fn fractional_values_of_most_dimensions_and_images_come_before_masks_and_labels() {
        let mut dataset = data(&[
            ("labels/cells/0", &[(Z, 40), (Y, 60), (X, 60)]),
            ("segmentation", &[(Z, 40), (Y, 60), (X, 60)]),
            ("0", &[(Z, 40), (Y, 60), (X, 60)]),
        ]);
        dataset.arrays[1].meaning = Meaning::Labels;
        assert_eq!(first(&dataset), "0");
        let mut dataset = data(&[
            ("mask", &[(Z, 10), (Y, 30), (X, 40)]),
            ("small", &[(Z, 10), (Y, 20), (X, 40)]),
            ("t", &[(Z, 10), (Y, 30), (X, 40)]),
            ("u", &[(Time, 4), (Z, 10), (Y, 30), (X, 40)]),
            ("v", &[(Time, 4), (Z, 10), (Y, 30), (X, 40)]),
        ]);
        for array in &mut dataset.arrays[1..] {
            array.decoding.output = "<f4".parse().unwrap();
        }
        assert_eq!(first(&dataset), "u");
        dataset.arrays.truncate(3);
        assert_eq!(first(&dataset), "t");
        let dataset =
            data(&[("c", &[(Channel, 3), (Z, 10), (Y, 30), (X, 40)]), ("plane", &[(Y, 3000), (X, 4000)])]);
        assert_eq!(first(&dataset), "c");
    }

    #[test]
    fn an_image_in_its_colors_comes_before_its_channels_but_not_before_larger_data() {
        let mut dataset = data(&[
            ("thumb", &[(Y, 32), (X, 32), (Channel, 3)]),
            ("data", &[(Y, 256), (X, 256)]),
            ("thumb (color)", &[(Y, 32), (X, 32)]),
        ]);
        dataset.arrays[2].meaning = Meaning::Colors;
        assert_eq!(first(&dataset), "data");
        dataset.arrays.remove(1);
        assert_eq!(first(&dataset), "thumb (color)");
        let mut dataset = data(&[
            ("seg", &[(Y, 32), (X, 32)]),
            ("0", &[(Y, 16), (X, 16)]),
            ("seg (color)", &[(Y, 32), (X, 32)]),
        ]);
        (dataset.arrays[0].meaning, dataset.arrays[2].meaning) = (Meaning::Labels, Meaning::Colors);
        assert_eq!(first(&dataset), "0");
        dataset.arrays.remove(1);
        assert_eq!(first(&dataset), "seg (color)");
    }

    #[test]
    fn fields_of_a_mesh_come_before_the_blocks_that_they_are_made_of() {
        let mut dataset = data(&[
            ("dens", &[(Time, 73), (Z, 8), (Y, 8), (X, 8)]),
            ("amr/dens", &[(Y, 64), (X, 64)]),
            ("amr/grids", &[(Other, 73), (Other, 7)]),
        ]);
        dataset.arrays[0].decoding.output = "<f4".parse().unwrap();
        say(&mut dataset, 1, GRIDS_ATTRIBUTE, "amr/grids");
        assert_eq!(first(&dataset), "amr/dens");
    }

    #[test]
    fn a_plane_is_shown_where_there_is_no_volume_and_a_line_where_there_is_neither() {
        let lines = data(&[("time", &[(Time, 9)]), ("empty", &[(Y, 0), (X, 9)]), ("level", &[(Time, 9)])]);
        assert_eq!(first(&lines), "level", "coordinates come last");
        let sections = data(&[("t", &[(Time, 20), (Y, 30)]), ("cov", &[(X, 9), (Other, 9)])]);
        assert_eq!(first(&sections), "t", "along y, at a time");
        let plane = data(&[("line", &[(X, 900)]), ("plane", &[(Z, 1), (Y, 3), (X, 9)])]);
        assert_eq!(first(&plane), "plane");
        assert_eq!(first(&data(&[("plane", &[(Z, 1), (Y, 3), (X, 9)])])), "plane");
    }

    #[test]
    fn what_cannot_be_drawn_is_said_with_its_reason() {
        let said = |dataset: &Dataset| first_array(dataset).unwrap_err().to_string();
        let single = said(&data(&[("t", &[(Time, 20), (Y, 1)]), ("one", &[(X, 1)])]));
        assert!(single.contains("several elements along an axis of space (z, y, x)"), "{single}");
        assert!(single.contains("found `t` [time 20, y 1], `one` [x 1] in `d`"), "{single}");
        assert!(single.contains("corridor get"), "{single}");
        let empty = said(&data(&[("t", &[(Y, 0), (X, 30)])]));
        assert!(empty.contains("with elements to draw, found `t` [y 0, x 30] in `d`"), "{empty}");
        assert!(!empty.contains("corridor get"), "{empty}");
        let mut none = data(&[]);
        none.left_out.push(array::LeftOut {
            name: "image".into(),
            what: "its intercept is no number".into(),
            value: None,
        });
        let none = said(&none);
        assert!(
            none.ends_with("found none in `d`; `image` is left out: its intercept is no number"),
            "{none}"
        );
    }
}
