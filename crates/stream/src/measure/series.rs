//! Values over the time axis at a point of world space.

use array::{AxisRange, Error, Result, Scalar, Selection};
use render::volume_of_world;
use serde::Serialize;

use super::element::{ElementNumbers, axis_text, channel_name, coordinate};
use super::gather::read_selection;
use super::line::{MeasuredArray, MeasuredValues, channels_of, of_channel, voxel_inside};
use super::subject::Subject;

/// Most steps of a series: more than a screen is wide. Of a longer axis every n-th step is read.
pub const MAX_STEPS: u64 = 4096;
/// Steps that one read covers, between reports of progress.
const STEPS_AT_ONCE: u64 = 64;

/// Values over time at a place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeSeries {
    /// Stored array that the values are of.
    #[serde(flatten)]
    pub of: MeasuredArray,
    /// Number of the time axis.
    pub time_axis: usize,
    /// Units of the coordinates of time.
    pub time_units: String,
    /// Index per axis of the first value; on the axis of channels it is 0.
    pub index: Vec<u64>,
    /// Distance of steps: 1 unless the axis has more than [`MAX_STEPS`].
    pub step: u64,
    /// Index of each value on the time axis.
    pub time: Vec<u64>,
    /// Coordinate of each; `None` if the file has none.
    pub coordinate: Vec<Option<Scalar>>,
    /// Date of each, where there are dates.
    pub text: Vec<Option<String>>,
    /// Values: one list, or one for each channel that is drawn as a color.
    pub channels: Vec<MeasuredValues>,
}

/// Reads the values over time at a point; `on_read` gets the number of steps read and of all steps.
///
/// # Errors
/// `Invalid` for a point outside of the array or an array without a time axis; the errors of the source.
///
/// # Cancel safety
/// Dropping the future stops reading.
pub(crate) async fn series(
    subject: &Subject,
    at: [f64; 3],
    mut on_read: impl FnMut(u64, u64) + Send,
) -> Result<TimeSeries> {
    let drawn = &subject.drawn;
    let info = drawn.info()?;
    let time_axis = info.time_axis();
    let axis = time_axis.ok_or_else(|| {
        Error::invalid(format!("array `{}` has no time axis; choose an array that has one", info.name))
    })?;
    let volume = &subject.volume;
    let place = voxel_inside(volume, volume_of_world(volume, at)).and_then(|voxel| subject.stored(voxel));
    let mut index = place.ok_or_else(|| Error::invalid("expected a point inside of the array"))?.index;
    index[axis] = 0;
    let size = info.shape()[axis];
    let step = size.div_ceil(MAX_STEPS).max(1);
    let count = size.div_ceil(step);
    let channels = channels_of(drawn);
    let total = count * channels.len() as u64;
    let mut measured = Vec::with_capacity(channels.len());
    for (number, &channel) in (0..).zip(&channels) {
        let before: u64 = number * count;
        let own = of_channel(drawn, std::slice::from_ref(&index), channel).pop().unwrap_or_default();
        let mut numbers = ElementNumbers::default();
        let mut done = 0;
        while done < count {
            let some = STEPS_AT_ONCE.min(count - done);
            let range = |(number, &start): (usize, &u64)| {
                if number == axis {
                    AxisRange { start: done * step, count: some, step }
                } else {
                    AxisRange { start, count: 1, step: 1 }
                }
            };
            let selection = Selection::new(own.iter().enumerate().map(range))?;
            numbers.add(info, &read_selection(drawn, selection).await?)?;
            done += some;
            on_read(before + done, total);
        }
        let name = channel.and_then(|channel| channel_name(info, channel));
        let all = vec![true; numbers.stored.len()];
        measured.push(MeasuredValues::new(channel, name, &numbers, all.iter()));
    }
    let time: Vec<u64> = (0..count).map(|at| at * step).collect();
    let own = &info.axes[axis];
    Ok(TimeSeries {
        of: MeasuredArray::of(subject)?,
        time_axis: axis,
        time_units: own.units.clone(),
        step,
        coordinate: time.iter().map(|&at| coordinate(own, at)).collect(),
        text: time.iter().map(|&at| axis_text(&drawn.places.dataset, info, own, at)).collect(),
        index,
        time,
        channels: measured,
    })
}
