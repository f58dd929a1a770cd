//! Coordinate arrays by the CF conventions: bounds, and two-dimensional latitudes and longitudes.

use std::collections::HashMap;

use array::{
    ArrayInfo, AxisKind, Dataset, Error, Priority, ReadRequest, Result, Selection, Source, Target,
    kind_of_degrees,
};

use super::lat_lon_grid::MAX_CELLS;

/// Arrays by name.
pub(super) struct ArrayNames<'a> {
    dataset: &'a Dataset,
    numbers: HashMap<&'a str, u32>,
}

impl<'a> ArrayNames<'a> {
    pub(super) fn of(dataset: &'a Dataset) -> Self {
        let numbers =
            (0..).zip(&dataset.arrays).map(|(number, array)| (array.name.trim_matches('/'), number));
        Self { dataset, numbers: numbers.collect() }
    }

    /// Finds the array that `from` refers to by name: in its own group, or in the nearest enclosing one.
    fn find(&self, from: &ArrayInfo, name: &str) -> Option<(u32, &'a ArrayInfo)> {
        let name = name.trim_matches('/');
        let mut group = from.name.trim_matches('/');
        loop {
            group = group.rsplit_once('/').map_or("", |(group, _)| group);
            let path = if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") };
            if let Some(&number) = self.numbers.get(path.as_str()) {
                return Some((number, self.dataset.array(number).ok()?));
            }
            if group.is_empty() {
                return None;
            }
        }
    }

    /// Returns the array `[samples, 2]` of cell bounds along an axis, if the axis's coordinate variable names
    /// one.
    pub(super) fn bounds(&self, array: &ArrayInfo, axis: usize) -> Option<u32> {
        let (_, variable) = self.find(array, &array.axes[axis].name)?;
        let samples = *array.shape().get(axis)?;
        let bounds = variable.attributes.get("bounds").and_then(|value| value.text())?;
        let (number, bounds) = self.find(variable, bounds.trim())?;
        (variable.shape() == [samples] && bounds.shape() == [samples, 2]).then_some(number)
    }

    /// Returns the arrays of latitude and longitude over two axes of an array that have no coordinates of
    /// their own, which are axes without units or numbered by a coordinate variable.
    pub(super) fn curvilinear(&self, array: &ArrayInfo) -> Option<Curvilinear> {
        let find = |kind| array.axes.iter().position(|axis| axis.kind == kind);
        let axes = [find(AxisKind::Y)?, find(AxisKind::X)?];
        if !axes.iter().all(|&axis| matches!(array.axes[axis].units.trim(), "" | "1")) {
            return None;
        }
        let named = array.attributes.get("coordinates").and_then(|value| value.text())?;
        let (mut latitude, mut longitude) = (None, None);
        for name in named.split_whitespace() {
            let Some((number, place)) = self.find(array, name) else { continue };
            let is_over_both = place.axes.len() == 2
                && axes.iter().zip(&place.axes).all(|(&axis, own)| array.axes[axis].name == own.name)
                && axes.iter().zip(place.shape()).all(|(&axis, &count)| array.shape()[axis] == count);
            match kind_of(place) {
                Some(AxisKind::Y) if is_over_both => latitude = latitude.or(Some(number)),
                Some(AxisKind::X) if is_over_both => longitude = longitude.or(Some(number)),
                _ => {}
            }
        }
        Some(Curvilinear { axes, latitude: latitude?, longitude: longitude? })
    }
}

/// Coordinate arrays of a curvilinear grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Curvilinear {
    /// Axes of rows and columns of the array.
    pub(super) axes: [usize; 2],
    /// Number of the array of latitudes.
    pub(super) latitude: u32,
    /// Number of the array of longitudes.
    pub(super) longitude: u32,
}

/// Returns `Y` for latitudes and `X` for longitudes in degrees; `None` for other units, such as radians, which are not converted.
fn kind_of(array: &ArrayInfo) -> Option<AxisKind> {
    let units = array.units.trim().to_ascii_lowercase();
    if !(units.is_empty() || units.starts_with("deg")) {
        return None;
    }
    match array.attributes.get("standard_name").and_then(|value| value.text()).map(str::trim) {
        Some("latitude") => Some(AxisKind::Y),
        Some("longitude") => Some(AxisKind::X),
        _ => kind_of_degrees(array.units.trim()),
    }
}

/// Reads all decoded values of a small array in C order; NaN where they are missing.
///
/// # Errors
/// `TooLarge` beyond [`MAX_CELLS`] elements; those of reading and decoding.
pub(super) async fn values(source: &dyn Source, dataset: &Dataset, number: u32) -> Result<Vec<f64>> {
    let array = dataset.array(number)?;
    let selection = Selection::all(array.shape());
    if selection.len().is_none_or(|count| count > 2 * MAX_CELLS) {
        return Err(Error::too_large(format!("`{}` has more than {} elements", array.name, 2 * MAX_CELLS)));
    }
    let (target, into) = Target::new(array.shape(), array.dtype.size_bytes())?;
    let request = ReadRequest { array: number, level: 0, selection, priority: Priority::INTERACTIVE };
    source.read(request, into).await?;
    let stored = target.into_vec()?;
    let decoding = &array.decoding;
    let dtype = decoding.meant(array.dtype);
    let count = stored.len() / dtype.size_bytes();
    // As in pictures, values that only the netCDF library masks are missing too.
    Ok((0..count)
        .map(|at| dtype.scalar_at(&stored, at).map_or(f64::NAN, |value| decoding.decode(value)))
        .collect())
}
