//! Plots of arrays with one long axis, which replace their pictures.

use array::{ArrayInfo, Coordinates, Dataset, Result, Scalar, Source};
use render::{AxisNote, AxisQuantity, LinePlot};
use stream::{MAX_PLOT_COLUMNS, PlotColumns, PlotRange, read_columns};
use view::{View, thick_sides};

use super::annotations::{other_positions, values_of};
use super::axis_notes::quantity_of;

/// Reads the values of the array of a view, as they are in the file, for a picture of `width` pixels; `None` for arrays that are no
/// lines.
///
/// # Errors
/// Those of the source.
pub(crate) async fn line_plot(source: &dyn Source, view: &View, width: u32) -> Result<Option<LinePlot>> {
    let dataset = source.describe().await?;
    // Arrays that are only drawn, such as images in their colors, are no lines.
    let Ok((number, array, position)) = view.place_in(&dataset) else { return Ok(None) };
    if thick_sides(array) != 1 {
        return Ok(None);
    }
    let range = PlotRange { from: 0, count: None, columns: width.min(MAX_PLOT_COLUMNS) };
    let columns = read_columns(source, &dataset, number, &position, range, |_, _| ()).await?;
    let brightness: u32 = view.background.iter().map(|&c| u32::from(c)).sum();
    let places = other_positions(&dataset, array, &position);
    let title = [values_of(array)].into_iter().chain(places).collect::<Vec<_>>().join(", ");
    let (axis, columns) = scaled(&dataset, array, &columns);
    Ok(Some(LinePlot { axis, title, columns, is_dark: brightness < 3 * 128 }))
}

/// Columns of a plot: the share of the axis, and the extremes.
type PlacedColumns = Vec<(f64, Option<[f64; 2]>)>;

/// Returns the axis, and the columns at their places on it: coordinates where these rise or fall all along, otherwise indices.
#[expect(clippy::cast_precision_loss, reason = "indices")]
fn scaled(dataset: &Dataset, array: &ArrayInfo, read: &PlotColumns) -> (AxisNote, PlacedColumns) {
    let axis = &array.axes[read.axis_number];
    let last = read.size.saturating_sub(1);
    let middle = |column: usize| {
        let first = column as u64 * read.per_column;
        (first + (first + read.per_column - 1).min(last)) / 2
    };
    let has_coordinates =
        axis.coordinates != Coordinates::Index && is_monotonic(&axis.coordinates, read.size);
    let place = |index: u64| if has_coordinates { axis.coordinates.at(index) } else { index as f64 };
    let ends = [place(0), place(last)];
    let (quantity, units) = match has_coordinates {
        true => quantity_of(dataset, array, axis),
        false => (AxisQuantity::Index, String::new()),
    };
    let note = AxisNote {
        name: axis.name.clone(),
        units,
        quantity,
        samples: vec![[0.0, ends[0]], [1.0, ends[1]]],
        is_to_scale: true,
    };
    let number = |value: Option<Scalar>| value.map(Scalar::as_f64);
    let extremes = read.low.iter().zip(&read.high).map(|(&low, &high)| Some([number(low)?, number(high)?]));
    let share = |column: usize| (place(middle(column)) - ends[0]) / (ends[1] - ends[0]);
    (note, extremes.enumerate().map(|(column, extremes)| (share(column), extremes)).collect())
}

fn is_monotonic(coordinates: &Coordinates, size: u64) -> bool {
    let rises = coordinates.at(size.saturating_sub(1)) > coordinates.at(0);
    let is_step = |index: u64| {
        let step = coordinates.at(index + 1) - coordinates.at(index);
        if rises { step > 0.0 } else { step < 0.0 }
    };
    match coordinates {
        Coordinates::Explicit(_) => (0..size.saturating_sub(1)).all(is_step),
        _ => size > 1 && is_step(0),
    }
}
