//! Values along the only long axis of an array, for a plot: each one, or the least and the largest of many for each column of pixels.

use array::{
    ArrayInfo, AxisRange, Dataset, Error, Priority, ReadRequest, Result, Scalar, Selection, Source, Target,
};
use serde::Serialize;

use super::element::{ElementNumbers, axis_text, coordinate};
use super::subject::Subject;

/// Most columns of a plot: a little more than a 4K screen is wide.
pub const MAX_PLOT_COLUMNS: u32 = 4096;
/// Elements of one read, between reports of progress.
const ELEMENTS_AT_ONCE: u64 = 1 << 16;

/// Part of an array along one axis that is plotted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlotRange {
    /// First index.
    pub from: u64,
    /// Number of indices; the rest of the axis if `None`.
    pub count: Option<u64>,
    /// Most columns of the answer, 1 to [`MAX_PLOT_COLUMNS`].
    pub columns: u32,
}

/// Values of an array along one axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlotColumns {
    /// Name of the array.
    pub array: String,
    /// Stored type of its elements.
    pub dtype: String,
    /// Units of the decoded values.
    pub units: String,
    /// Name of the axis.
    pub axis: String,
    /// Units of its coordinates.
    pub axis_units: String,
    /// Number of the axis.
    pub axis_number: usize,
    /// Index per axis of the first value.
    pub index: Vec<u64>,
    /// Number of elements along the axis.
    pub size: u64,
    /// Number of indices that the columns cover.
    pub count: u64,
    /// Number of indices of each column; the last one may have fewer.
    pub per_column: u64,
    /// Coordinate of the first index of each column; `None` if the file has none.
    pub coordinate: Vec<Option<Scalar>>,
    /// Date of it, where there are dates.
    pub text: Vec<Option<String>>,
    /// Least decoded value of each column; `None` if all are missing.
    pub low: Vec<Option<Scalar>>,
    /// Largest decoded value of each column.
    pub high: Vec<Option<Scalar>>,
    /// Number of missing elements of each column.
    pub missing: Vec<u64>,
    /// Values as stored, if each column has one; otherwise empty.
    pub stored: Vec<Scalar>,
}

/// Returns the axis along which an array is plotted: the only long one of those that it is drawn along.
///
/// # Errors
/// `Unsupported` for an array that is no line.
pub fn plot_axis(info: &ArrayInfo) -> Result<usize> {
    let shape = info.shape();
    let space: Vec<usize> = info.spatial_axes().into_iter().flatten().collect();
    let drawn = if space.is_empty() { (shape.len().saturating_sub(3)..shape.len()).collect() } else { space };
    let long: Vec<usize> = drawn.into_iter().filter(|&axis| shape[axis] > 1).collect();
    match long[..] {
        [axis] => Ok(axis),
        _ => Err(Error::unsupported(format!(
            "expected an array with one axis of several elements to plot, found shape {shape:?} of `{}`; show it as an image or a \
             volume",
            info.name
        ))),
    }
}

/// Reads the values of the array of a subject; `on_read` gets the number of elements read and of all elements.
///
/// # Errors
/// Those of [`read_columns`].
///
/// # Cancel safety
/// Dropping the future stops reading.
pub(crate) async fn plot(
    subject: &Subject,
    range: PlotRange,
    on_read: impl FnMut(u64, u64) + Send,
) -> Result<PlotColumns> {
    let drawn = &subject.drawn;
    let first = subject.stored([0; 3]).ok_or_else(|| Error::invalid("expected an array with elements"))?;
    let (source, dataset) = (&*drawn.places.source, &drawn.places.dataset);
    read_columns(source, dataset, drawn.stored_array(), &first.index, range, on_read).await
}

/// Reads the values of an array along its long axis, at `index` on the other axes; `on_read` gets the number of elements read and of
/// all elements.
///
/// # Errors
/// `Invalid` for a part outside of the axis, `Unsupported` for an array that is no line; the errors of the source.
///
/// # Cancel safety
/// Dropping the future stops reading.
pub async fn read_columns(
    source: &dyn Source,
    dataset: &Dataset,
    array: u32,
    index: &[u64],
    range: PlotRange,
    mut on_read: impl FnMut(u64, u64) + Send,
) -> Result<PlotColumns> {
    let info = dataset.array(array)?;
    let axis = plot_axis(info)?;
    let size = info.shape()[axis];
    let count = range.count.unwrap_or(size.saturating_sub(range.from));
    if count == 0 || range.from.checked_add(count).is_none_or(|end| end > size) {
        return Err(Error::invalid(format!(
            "expected a part of axis `{}`, which has {size} elements, found {count} from {}",
            info.axes[axis].name, range.from
        )));
    }
    let per_column = count.div_ceil(range.columns.clamp(1, MAX_PLOT_COLUMNS).into());
    let columns = usize::try_from(count.div_ceil(per_column)).unwrap_or_default();
    let mut extremes = vec![Extremes::default(); columns];
    let mut stored = Vec::new();
    let mut done = 0;
    while done < count {
        let some = ELEMENTS_AT_ONCE.min(count - done);
        let part = |(number, &start): (usize, &u64)| match number == axis {
            true => AxisRange { start: range.from + done, count: some, step: 1 },
            false => AxisRange { start, count: 1, step: 1 },
        };
        let selection = Selection::new(index.iter().enumerate().map(part))?;
        let mut numbers = ElementNumbers::default();
        numbers.add(info, &read(source, array, info, selection).await?)?;
        for (at, (&value, &is_missing)) in (done..).zip(numbers.decoded.iter().zip(&numbers.is_missing)) {
            let column = usize::try_from(at / per_column).unwrap_or(usize::MAX);
            if let Some(extremes) = extremes.get_mut(column) {
                extremes.add((!is_missing).then_some(value));
            }
        }
        if per_column == 1 {
            stored.append(&mut numbers.stored);
        }
        done += some;
        on_read(done, count);
    }
    let own = &info.axes[axis];
    let firsts = (0..columns as u64).map(|column| range.from + column * per_column);
    let mut index = index.to_vec();
    index[axis] = range.from;
    let number = |value: Option<f64>| value.map(Scalar::Float);
    Ok(PlotColumns {
        array: info.name.clone(),
        dtype: info.dtype.to_string(),
        units: info.units.clone(),
        axis: own.name.clone(),
        axis_units: own.units.clone(),
        axis_number: axis,
        index,
        size,
        count,
        per_column,
        coordinate: firsts.clone().map(|at| coordinate(own, at)).collect(),
        text: firsts.map(|at| axis_text(dataset, info, own, at)).collect(),
        low: extremes.iter().map(|column| number(column.low)).collect(),
        high: extremes.iter().map(|column| number(column.high)).collect(),
        missing: extremes.iter().map(|column| column.missing).collect(),
        stored,
    })
}

/// Reads a selection of an array, as stored.
async fn read(source: &dyn Source, array: u32, info: &ArrayInfo, selection: Selection) -> Result<Vec<u8>> {
    let (target, region) = Target::new(&selection.shape(), info.dtype.size_bytes())?;
    source.read(ReadRequest { array, level: 0, selection, priority: Priority::INTERACTIVE }, region).await?;
    target.into_vec()
}

/// Least and largest value of a column.
#[derive(Clone, Debug, Default, PartialEq)]
struct Extremes {
    low: Option<f64>,
    high: Option<f64>,
    missing: u64,
}

impl Extremes {
    /// Adds an element; `None` for a missing one.
    fn add(&mut self, value: Option<f64>) {
        let Some(value) = value else {
            self.missing += 1;
            return;
        };
        self.low = Some(self.low.map_or(value, |low| low.min(value)));
        self.high = Some(self.high.map_or(value, |high| high.max(value)));
    }
}

#[cfg(test)]
mod tests {
    use array::conformance::MemorySource;

    use super::*;

    async fn columns(shape: &[u64], range: PlotRange) -> Result<PlotColumns> {
        let source = MemorySource::counting("<u4", shape, shape);
        let dataset = source.dataset();
        let index = vec![0; shape.len()];
        let mut last = (0, 0);
        let read =
            read_columns(&source, &dataset, 0, &index, range, |done, total| last = (done, total)).await?;
        assert_eq!(last, (read.count, read.count), "progress reaches the end");
        Ok(read)
    }

    #[tokio::test]
    async fn short_lines_are_read_value_by_value() {
        let range = PlotRange { from: 2, count: Some(4), columns: 100 };
        let read = columns(&[9], range).await.unwrap();
        assert_eq!((read.per_column, read.size, &read.index[..]), (1, 9, &[2][..]));
        let values: Vec<f64> = read.low.iter().map(|low| low.unwrap().as_f64()).collect();
        assert_eq!(values, [2.0, 3.0, 4.0, 5.0]);
        assert_eq!((&read.low, read.stored.len()), (&read.high, 4));
    }

    #[tokio::test]
    async fn long_lines_keep_the_extremes_of_each_column() {
        let size = 3 * ELEMENTS_AT_ONCE + 7;
        let read = columns(&[size], PlotRange { from: 0, count: None, columns: 64 }).await.unwrap();
        assert_eq!((read.count, read.per_column), (size, size.div_ceil(64)));
        assert!(read.stored.is_empty());
        for (column, (low, high)) in (0..).zip(read.low.iter().zip(&read.high)) {
            let first: u64 = column * read.per_column;
            let last = (first + read.per_column).min(size) - 1;
            assert_eq!([low.unwrap().as_f64(), high.unwrap().as_f64()], [first as f64, last as f64]);
        }
    }

    #[tokio::test]
    async fn what_is_no_line_or_lies_outside_is_refused() {
        let all = PlotRange { from: 0, count: None, columns: 10 };
        assert!(columns(&[4, 5], all).await.unwrap_err().to_string().contains("one axis"));
        for (from, count) in [(9, None), (3, Some(7)), (0, Some(0)), (u64::MAX, Some(2))] {
            let error = columns(&[9], PlotRange { from, count, columns: 10 }).await.unwrap_err().to_string();
            assert!(error.contains("which has 9 elements"), "{error}");
        }
        assert_eq!(columns(&[1, 1, 6], all).await.unwrap().axis_number, 2);
    }

    #[test]
    fn missing_elements_are_counted_and_no_extremes() {
        let mut column = Extremes::default();
        for value in [None, Some(3.0), Some(-1.0), None] {
            column.add(value);
        }
        assert_eq!(column, Extremes { low: Some(-1.0), high: Some(3.0), missing: 2 });
    }
}
