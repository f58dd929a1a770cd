//! Values along a line between two points of world space: at each sample that of the voxel which contains it.

use array::{Error, Result, Scalar};
use render::{ViewLevel, VolumeView, volume_of_world};
use serde::Serialize;

use super::element::{ElementNumbers, channel_name};
use super::gather::gather;
use super::subject::{DrawnVoxels, Subject};

/// Most samples of a line: more than a screen is wide.
pub const MAX_LINE_SAMPLES: u32 = 4096;

/// Values along a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LineProfile {
    /// Stored array that the values are of.
    #[serde(flatten)]
    pub of: MeasuredArray,
    /// Distance of each sample from the first point, in units of world space.
    pub distance: Vec<f64>,
    /// Index per axis of each sample's element; `None` outside of the array. On the axis of channels it is 0.
    pub index: Vec<Option<Vec<u64>>>,
    /// Values: one list, or one for each channel that is drawn as a color.
    pub channels: Vec<MeasuredValues>,
}

/// Values at points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointValues {
    /// Stored array that the values are of.
    #[serde(flatten)]
    pub of: MeasuredArray,
    /// Index per axis of each point's element; `None` outside of the array. On the axis of channels it is 0.
    pub index: Vec<Option<Vec<u64>>>,
    /// Values: one list, or one for each channel that is drawn as a color.
    pub channels: Vec<MeasuredValues>,
}

/// Array that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredArray {
    /// Name of the stored array.
    pub array: String,
    /// Type of the stored elements.
    pub dtype: String,
    /// Units of the decoded values.
    pub units: String,
    /// Names of the axes of the stored array.
    pub axes: Vec<String>,
    /// Number of the axis of channels, if each channel is measured.
    pub channel_axis: Option<usize>,
    /// Units of world space.
    pub world_units: String,
}

/// Values of a measurement, in its order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MeasuredValues {
    /// Index on the axis of channels.
    pub channel: Option<u64>,
    /// Name of the channel.
    pub name: Option<String>,
    /// Values as stored; `None` outside of the array.
    pub stored: Vec<Option<Scalar>>,
    /// Decoded values, as of `decoded` in Python; those stored if they cannot be decoded.
    pub decoded: Vec<Option<Scalar>>,
    /// Whether pictures leave the value out.
    pub missing: Vec<bool>,
}

impl MeasuredArray {
    /// Returns the stored array of a subject.
    ///
    /// # Errors
    /// None: it was looked up before.
    pub(crate) fn of(subject: &Subject) -> Result<Self> {
        let info = subject.drawn.info()?;
        Ok(Self {
            array: info.name.clone(),
            dtype: info.dtype.to_string(),
            units: info.units.clone(),
            axes: info.axes.iter().map(|axis| axis.name.clone()).collect(),
            channel_axis: subject.drawn.channels().map(|channels| channels.axis),
            world_units: subject.dataset.array(subject.volume.key(0, [0; 3]).array)?.world_units.clone(),
        })
    }
}

impl MeasuredValues {
    /// Puts the values of elements in the order of a list of which some have none.
    pub(crate) fn new<'a>(
        channel: Option<u64>,
        name: Option<String>,
        numbers: &ElementNumbers,
        has_element: impl Iterator<Item = &'a bool>,
    ) -> Self {
        let mut values = Self { channel, name, ..Self::default() };
        let mut all = numbers.stored.iter().zip(&numbers.decoded).zip(&numbers.is_missing);
        for &has_element in has_element {
            let found = if has_element { all.next() } else { None };
            values.stored.push(found.map(|((stored, _), _)| *stored));
            values.decoded.push(found.map(|((_, decoded), _)| Scalar::Float(*decoded)));
            values.missing.push(found.is_none_or(|(_, is_missing)| *is_missing));
        }
        values
    }
}

/// Reads the values along a line; `on_read` gets the number of samples read and of all samples.
///
/// # Errors
/// `Invalid` for points that coincide in all voxels; the errors of the source.
///
/// # Cancel safety
/// Dropping the future stops reading.
pub(crate) async fn profile(
    subject: &Subject,
    from: [f64; 3],
    to: [f64; 3],
    samples: Option<u32>,
    on_read: impl FnMut(u64, u64) + Send,
) -> Result<LineProfile> {
    let volume = &subject.volume;
    let ends = [from, to].map(|point| volume_of_world(volume, point));
    let count = samples.unwrap_or_else(|| samples_between(ends)).clamp(2, MAX_LINE_SAMPLES);
    let length = (0..3).map(|axis| (to[axis] - from[axis]).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() {
        return Err(Error::invalid("expected two points at a finite distance"));
    }
    let share = |sample: u32| f64::from(sample) / f64::from(count - 1);
    let positions = (0..count).map(|sample| {
        let at = |axis: usize| ends[0][axis] + (ends[1][axis] - ends[0][axis]) * share(sample);
        [at(0), at(1), at(2)]
    });
    let (index, channels) = values_at(subject, positions, on_read).await?;
    let distance = (0..count).map(|sample| length * share(sample)).collect();
    Ok(LineProfile { of: MeasuredArray::of(subject)?, distance, index, channels })
}

/// Reads the values at points of world space; `on_read` gets the number of points read and of all points.
///
/// # Errors
/// The errors of the source.
///
/// # Cancel safety
/// Dropping the future stops reading.
pub(crate) async fn points(
    subject: &Subject,
    points: &[[f64; 3]],
    on_read: impl FnMut(u64, u64) + Send,
) -> Result<PointValues> {
    let positions = points.iter().map(|&point| volume_of_world(&subject.volume, point));
    let (index, channels) = values_at(subject, positions, on_read).await?;
    Ok(PointValues { of: MeasuredArray::of(subject)?, index, channels })
}

/// Reads the values of the voxels that contain these positions in voxels `(x, y, z)`: the index per axis of each element,
/// `None` outside of the array, and the values of each channel.
async fn values_at(
    subject: &Subject,
    positions: impl Iterator<Item = [f64; 3]>,
    mut on_read: impl FnMut(u64, u64) + Send,
) -> Result<(Vec<Option<Vec<u64>>>, Vec<MeasuredValues>)> {
    let places: Vec<_> =
        positions.map(|position| subject.stored(voxel_inside(&subject.volume, position)?)).collect();
    let has_element: Vec<bool> = places.iter().map(Option::is_some).collect();
    let index: Vec<Option<Vec<u64>>> =
        places.into_iter().map(|place| place.map(|place| place.index)).collect();
    let found: Vec<Vec<u64>> = index.iter().flatten().cloned().collect();
    let channels = channels_of(&subject.drawn);
    let total = found.len() as u64 * channels.len() as u64;
    let mut measured = Vec::with_capacity(channels.len());
    for (number, &channel) in (0..).zip(&channels) {
        let before: u64 = number * found.len() as u64;
        let indices = of_channel(&subject.drawn, &found, channel);
        let bytes = gather(&subject.drawn, &indices, |done| on_read(before + done as u64, total)).await?;
        let info = subject.drawn.info()?;
        let mut numbers = ElementNumbers::default();
        numbers.add(info, &bytes)?;
        let name = channel.and_then(|channel| channel_name(info, channel));
        measured.push(MeasuredValues::new(channel, name, &numbers, has_element.iter()));
    }
    Ok((index, measured))
}

/// Returns the channels that are measured; one entry without a number if there is no such axis.
pub(crate) fn channels_of(drawn: &DrawnVoxels) -> Vec<Option<u64>> {
    drawn.channels().map_or_else(|| vec![None], |channels| channels.used.into_iter().map(Some).collect())
}

/// Returns indices with that of a channel.
pub(crate) fn of_channel(drawn: &DrawnVoxels, indices: &[Vec<u64>], channel: Option<u64>) -> Vec<Vec<u64>> {
    let mut indices = indices.to_vec();
    if let Some((channels, channel)) = drawn.channels().zip(channel) {
        indices.iter_mut().for_each(|index| index[channels.axis] = channel);
    }
    indices
}

/// Returns the number of voxels passed along the axis on which most are passed.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn samples_between(ends: [[f64; 3]; 2]) -> u32 {
    let along = (0..3).map(|axis| (ends[1][axis] - ends[0][axis]).abs());
    let longest = along.fold(0.0, f64::max);
    (longest.round() + 1.0).clamp(2.0, f64::from(MAX_LINE_SAMPLES)) as u32
}

/// Returns the voxel `[z, y, x]` that contains a position in voxels `(x, y, z)`; `None` outside of the volume.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "compared with the shape")]
#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
pub(crate) fn voxel_inside(volume: &VolumeView, position: [f64; 3]) -> Option<[u64; 3]> {
    /// Tolerance against rounding: points on the border of the volume belong to it.
    const ALMOST_NOTHING: f64 = 1e-6;
    let ViewLevel { shape, .. } = &volume.levels[0];
    let mut voxel = [0; 3];
    for axis in 0..3 {
        let (at, count) = (position[axis] + 0.5, shape[2 - axis] as f64);
        if !(at >= -ALMOST_NOTHING && at <= count + ALMOST_NOTHING) {
            return None;
        }
        voxel[2 - axis] = at.floor().clamp(0.0, count - 1.0) as u64;
    }
    Some(voxel)
}
