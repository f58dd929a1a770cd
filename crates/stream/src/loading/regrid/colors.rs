//! Color images as arrays of packed colors.
//!
//! An image whose channels have colors (red, green and blue; OME-Zarr channels with colors and windows), or
//! labels with colors in the file, get a second array of packed colors ([`Meaning::Colors`]) without the
//! channel axis. Channels are added as OME-Zarr viewers do: each value becomes a fraction of its channel's
//! window, which multiplies the channel's color.

use std::collections::HashMap;

use array::{
    ArrayInfo, Attribute, AxisKind, DType, Dataset, Decoding, Element, ElementType, Error, Level, Meaning,
    Result, Scalar, choose_blocks, decode, elements, with_element,
};
use serde_json::Value;
use view::COLOR_END;

use super::gather::{self, BlockCopy, block_copies};

/// Result whose error is the reason why colors of the file cannot be drawn.
type ResultOrReason<T> = std::result::Result<T, String>;

/// Most channels that are added: the first active ones.
const MAX_CHANNELS: usize = 16;
/// Largest of red, green and blue that is still transparent in a volume, for the noise of dark surroundings.
const DARK: u8 = 24;
/// Divisor that decodes a packed color (strength, red, green and blue, a byte each) to the strength, with the
/// color as fraction.
const STRENGTH: f64 = (1 << 24) as f64;

/// Recipe of an array of packed colors.
pub(super) struct PackedColors {
    /// Number of the source array.
    pub(super) source: u32,
    color_source: ColorSource,
}

enum ColorSource {
    /// Channels along an axis of the source, or its only channel if it has no such axis. `used` has the
    /// indices of the channels in ascending order, followed by that of alpha if alpha is the strength.
    Channels { axis: Option<usize>, used: Vec<u32>, channels: Vec<ColorChannel>, strength: Strength },
    /// Red, green, blue and alpha by label; other labels have the colors of the `labels` map.
    Labels(HashMap<i128, [u8; 4]>),
}

/// Strength of a pixel, which determines its opacity.
#[derive(Clone, Copy)]
enum Strength {
    /// Value of the last channel, which is the opacity in the file.
    Alpha,
    /// Full strength: pixels of a flat image are opaque.
    Full,
    /// Largest of red, green and blue, so that dark surroundings in a volume are transparent.
    Brightness,
}

impl Strength {
    /// Returns the strength of an array without alpha.
    fn of(array: &ArrayInfo) -> Self {
        // In a stack of few layers, too, opaque darkness would hide everything behind it.
        if view::thick_sides(array) < 3 { Self::Full } else { Self::Brightness }
    }
}

/// One channel: adds nothing at `start` and `color` at `end` to red, green and blue.
struct ColorChannel {
    index: u32,
    name: String,
    start: f64,
    end: f64,
    color: [f32; 3],
}

impl ColorChannel {
    /// Returns the fraction of the full color for a value, from 0 to 1; 0 where the value is missing. A
    /// window of one value is a step.
    fn share(&self, value: f64) -> f64 {
        let share = (value - self.start) / (self.end - self.start);
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }
}

impl PackedColors {
    /// Returns the description of the color array for array `number` and its recipe; `None` if the file has
    /// no colors for it.
    ///
    /// # Errors
    /// Reason why the colors of the file cannot be drawn.
    pub(super) fn of(dataset: &Dataset, number: u32) -> ResultOrReason<Option<(ArrayInfo, Self)>> {
        let Ok(array) = dataset.array(number) else { return Ok(None) };
        let name = format!("{}{COLOR_END}", array.name);
        if array.shape().contains(&0) || dataset.arrays.iter().any(|other| other.name == name) {
            return Ok(None);
        }
        let source = match array.meaning {
            Meaning::Labels => labels(array)?,
            Meaning::Intensity => channels(array)?,
            Meaning::Text | Meaning::Colors => None,
        };
        let Some((color_source, note)) = source else { return Ok(None) };
        let info = packed(array, name, &color_source, note)?;
        Ok(Some((info, Self { source: number, color_source })))
    }

    /// Returns the axis of the channels in the source and the indices of those that are used; `None` without such an axis.
    pub(super) fn channels(&self) -> Option<(usize, &[u32])> {
        match &self.color_source {
            ColorSource::Channels { axis, used, .. } => axis.map(|axis| (axis, used.as_slice())),
            ColorSource::Labels(_) => None,
        }
    }

    /// Lists the copies from source blocks that make up the block with these indices.
    ///
    /// # Errors
    /// `TooLarge` for a block beyond what memory can address.
    pub(super) fn block_copies(&self, level: &Level, start: &[u64], shape: &[u64]) -> Result<Vec<BlockCopy>> {
        let (mut start, mut indices) = (start.to_vec(), vec![None; level.shape.len()]);
        if let ColorSource::Channels { axis: Some(axis), used, .. } = &self.color_source {
            start.insert(*axis, 0);
            indices[*axis] = Some(used.as_slice());
        }
        block_copies(level, [&start, &self.in_source(shape)], &indices, None)
    }

    /// Returns the number of source elements in a block of this shape.
    ///
    /// # Errors
    /// `TooLarge` for a block beyond what memory can address.
    pub(super) fn source_elements(&self, shape: &[u64]) -> Result<usize> {
        gather::count_of(&self.in_source(shape))
    }

    /// Returns the shape of a block with the channels that are used.
    fn in_source(&self, shape: &[u64]) -> Vec<u64> {
        let mut shape = shape.to_vec();
        if let ColorSource::Channels { axis: Some(axis), used, .. } = &self.color_source {
            shape.insert(*axis, used.len() as u64);
        }
        shape
    }

    /// Packs the elements of a block, stored as in the source's `array`; `shape` is that of the resulting
    /// block.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are no elements of the array.
    pub(super) fn pack(&self, stored: &[u8], array: &ArrayInfo, shape: &[u64]) -> Result<Vec<u8>> {
        match &self.color_source {
            ColorSource::Channels { axis, used, channels, strength } => {
                let values = decoded(stored, array)?;
                let within = gather::count_of(&shape[axis.unwrap_or(0)..])?;
                let pixels = ChannelValues { values: &values, count: used.len(), within };
                Ok(pixels.packed(channels, *strength))
            }
            ColorSource::Labels(colors) => {
                let count = stored.len() / array.dtype.size_bytes();
                let label = |i| array.decoding.meant(array.dtype).scalar_at(stored, i);
                (0..count).try_fold(Vec::with_capacity(count * 4), |mut packed, i| {
                    let label = label(i).ok_or_else(|| Error::corrupt("a block ends within an element"))?;
                    let color =
                        if array.decoding.is_missing(label) { [0; 4] } else { label_color(label, colors) };
                    packed.extend_from_slice(&u32::from_be_bytes(color).to_le_bytes());
                    Ok(packed)
                })
            }
        }
    }
}

/// Strength, red, green and blue of a label; zero for background, which is label 0 without a color in the
/// file.
fn label_color(label: Scalar, colors: &HashMap<i128, [u8; 4]>) -> [u8; 4] {
    let (number, own): (i128, _) = match label {
        Scalar::Signed(value) => (value.into(), render::signed_label_color(value)),
        Scalar::Unsigned(value) => (value.into(), render::label_color(value)),
        Scalar::Float(_) => return [0; 4],
    };
    match (colors.get(&number), own) {
        (Some(&[r, g, b, a]), _) => [a, r, g, b],
        (None, _) if number == 0 => [0; 4],
        (None, [r, g, b]) => [u8::MAX, r, g, b],
    }
}

/// Decoded values, NaN where they are missing.
fn decoded(stored: &[u8], array: &ArrayInfo) -> Result<Vec<f64>> {
    let decoded = decode(stored, array.dtype, &array.decoding)?;
    let dtype = array.decoding.output;
    Ok(
        with_element!(dtype.element(), T => elements::<T>(&decoded, dtype.order()).map(Element::to_f64).collect()),
    )
}

/// Decoded values in the order (before, channel, within), with `count` channels of `within` elements each.
struct ChannelValues<'a> {
    values: &'a [f64],
    count: usize,
    within: usize,
}

impl ChannelValues<'_> {
    /// Adds the channels of each pixel and packs the sums.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 255")]
    fn packed(&self, channels: &[ColorChannel], strength: Strength) -> Vec<u8> {
        let Self { values, count, within } = *self;
        let pixels = values.len() / count.max(1);
        let mut packed = Vec::with_capacity(pixels * 4);
        for pixel in 0..pixels {
            let first = pixel / within * within * count + pixel % within;
            let mut sum = [0.0f32; 3];
            let mut is_missing = true;
            for (place, channel) in channels.iter().enumerate() {
                let value = values[first + place * within];
                is_missing &= value.is_nan();
                let share = channel.share(value) as f32;
                sum.iter_mut().zip(channel.color).for_each(|(sum, part)| *sum += share * part);
            }
            let [r, g, b] = sum.map(|part| part.min(255.0).round() as u8);
            let strength = match strength {
                Strength::Alpha => {
                    (255.0 * channels[0].share(values[first + (count - 1) * within])).round() as u8
                }
                Strength::Full => u8::MAX,
                Strength::Brightness => Some(r.max(g).max(b)).filter(|bright| *bright >= DARK).unwrap_or(0),
            };
            let color = if is_missing { [0; 4] } else { [strength, r, g, b] };
            packed.extend_from_slice(&u32::from_be_bytes(color).to_le_bytes());
        }
        packed
    }
}

/// Returns the channels of an array with their colors, and a note for users.
fn channels(array: &ArrayInfo) -> ResultOrReason<Option<(ColorSource, String)>> {
    let axis = array.axes.iter().position(|axis| axis.kind == AxisKind::Channel);
    let omero = match array.attributes.get("omero") {
        Some(Attribute::Json(omero)) => omero,
        Some(_) => return Ok(None),
        None => return Ok(axis.and_then(|axis| primaries(array, axis))),
    };
    let listed = omero.get("channels").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if !listed.iter().any(|channel| channel.get("color").is_some()) {
        return Ok(axis.and_then(|axis| primaries(array, axis)));
    }
    // Spelled as in OME-Zarr metadata.
    let is_gray = omero.pointer("/rdefs/model").and_then(Value::as_str) == Some("greyscale");
    of_omero(array, axis, listed, is_gray).map(Some)
}

/// Returns the channels that OME-Zarr metadata list.
fn of_omero(
    array: &ArrayInfo,
    axis: Option<usize>,
    listed: &[Value],
    is_gray: bool,
) -> ResultOrReason<(ColorSource, String)> {
    let count = match axis {
        Some(axis) => array.shape()[axis],
        None if listed.len() == 1 => 1,
        None => return Err(format!("no axis has the {} channels of `omero`", listed.len())),
    };
    if axis.is_some_and(|axis| array.levels.iter().any(|level| level.shape[axis] != count)) {
        return Err("levels have different numbers of channels".to_owned());
    }
    let is_active = |channel: &Value| channel.get("active").and_then(Value::as_bool) != Some(false);
    let numbered = (0..u32::try_from(count).unwrap_or(u32::MAX)).zip(listed);
    let active: Vec<(u32, &Value)> = numbered.filter(|(_, channel)| is_active(channel)).collect();
    let used = active.iter().take(MAX_CHANNELS);
    let channels: Vec<ColorChannel> = used
        .map(|&(index, channel)| omero_channel(index, channel, is_gray, array.dtype))
        .collect::<ResultOrReason<_>>()?;
    let said: Vec<String> =
        channels.iter().map(|c| format!("{} ({} to {})", c.name, c.start, c.end)).collect();
    let said = said.join(", ");
    let note = match (channels.len(), active.len()) {
        (0, _) => return Err("no channel is active".to_owned()),
        (1, _) => format!("drawn in the color of its channel: {said}"),
        (used, all) if used < all => {
            format!("the first {used} of {all} active channels are added, each in its color: {said}")
        }
        _ => format!("channels are added, each in its color: {said}"),
    };
    let used = channels.iter().map(|channel| channel.index).collect();
    Ok((ColorSource::Channels { axis, used, channels, strength: Strength::of(array) }, note))
}

/// Returns red, green and blue, perhaps with alpha, for an array that looks like such an image.
fn primaries(array: &ArrayInfo, axis: usize) -> Option<(ColorSource, String)> {
    let count = array.shape()[axis];
    let names = ["red", "green", "blue", "alpha"];
    let is_named = matches!(array.attributes.get("channels"), Some(Attribute::Texts(found)) if names.starts_with(
        &found.iter().map(String::as_str).collect::<Vec<_>>()
    ));
    let is_image = array.dtype.element() == ElementType::U8 && axis + 1 == array.axes.len();
    let is_whole = array.levels.iter().all(|level| level.shape[axis] == count);
    if !matches!(count, 3 | 4) || !(is_named || is_image) || !is_whole {
        return None;
    }
    let [start, end] = [0.0, full(array.dtype)?].map(|stored| array.decoding.decode(Scalar::Float(stored)));
    if !start.is_finite() || !end.is_finite() || start >= end {
        return None;
    }
    let primary = |(index, name): (u32, &str)| {
        let color = [0, 1, 2].map(|part| if part == index { 255.0 } else { 0.0 });
        ColorChannel { index, name: name.to_owned(), start, end, color }
    };
    let channels = (0..).zip(&names[..3]).map(|(index, name)| primary((index, *name))).collect();
    let note = "channels are red, green and blue".to_owned();
    let strength = if count == 4 { Strength::Alpha } else { Strength::of(array) };
    let used = if count == 4 { vec![0, 1, 2, 3] } else { vec![0, 1, 2] };
    Some((ColorSource::Channels { axis: Some(axis), used, channels, strength }, note))
}

/// Returns the stored value of full brightness, if metadata do not tell; `None` for types that images do not
/// have.
#[expect(clippy::cast_precision_loss, reason = "the largest of a type, to the precision of a picture")]
fn full(dtype: DType) -> Option<f64> {
    let element = dtype.element();
    if element.is_float() {
        return Some(1.0);
    }
    let (low, high) = element.limits();
    (low == 0).then_some(high as f64)
}

/// Parses a channel of OME-Zarr metadata. Bytes without a window use their whole range. A window may end
/// below its start.
fn omero_channel(index: u32, channel: &Value, is_gray: bool, dtype: DType) -> ResultOrReason<ColorChannel> {
    let label = channel.get("label").and_then(Value::as_str).filter(|label| !label.is_empty());
    let name = label.map_or_else(|| format!("channel {index}"), str::to_owned);
    let color = channel.get("color").and_then(Value::as_str).and_then(hexadecimal);
    let color = color.ok_or_else(|| format!("the color of {name} is not six hexadecimal digits"))?;
    let bound = |own: &str, widest: &str| {
        let window = channel.get("window")?;
        window.get(own).and_then(number).or_else(|| window.get(widest).and_then(number))
    };
    let (start, end) = match (bound("start", "min"), bound("end", "max")) {
        (Some(start), Some(end)) => (start, end),
        _ if dtype.element() == ElementType::U8 => (0.0, 255.0),
        _ => return Err(format!("{name} has no window")),
    };
    let is_inverted = channel.get("inverted").and_then(Value::as_bool) == Some(true);
    let (start, end) = if is_inverted { (end, start) } else { (start, end) };
    let color = if is_gray { [255.0; 3] } else { color.map(f32::from) };
    Ok(ColorChannel { index, name, start, end, color })
}

/// Parses a finite number, which may be written as text.
fn number(value: &Value) -> Option<f64> {
    let number: Option<f64> = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|number| number.is_finite())
}

/// Parses six hexadecimal digits, with or without `#`, as red, green and blue; two more, for opacity, are
/// ignored.
fn hexadecimal(text: &str) -> Option<[u8; 3]> {
    let digits = text.strip_prefix('#').unwrap_or(text);
    if !matches!(digits.len(), 6 | 8) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let [_, r, g, b] = u32::from_str_radix(digits.get(..6)?, 16).ok()?.to_be_bytes();
    Some([r, g, b])
}

/// Returns the colors that the file gives to labels, and a note for users; `None` if there are none.
fn labels(array: &ArrayInfo) -> ResultOrReason<Option<(ColorSource, String)>> {
    let Some(Attribute::Json(about)) = array.attributes.get("image-label") else { return Ok(None) };
    let listed = about.get("colors").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if listed.is_empty() {
        return Ok(None);
    }
    let color = |entry: &Value| -> Option<(i128, [u8; 4])> {
        let label = entry.get("label-value")?;
        let label = label.as_i64().map(i128::from).or_else(|| label.as_u64().map(i128::from))?;
        let part = |i: usize| entry.get("rgba")?.get(i)?.as_u64().and_then(|part| u8::try_from(part).ok());
        Some((label, [part(0)?, part(1)?, part(2)?, part(3).unwrap_or(u8::MAX)]))
    };
    let colors: HashMap<i128, [u8; 4]> = listed.iter().filter_map(color).collect();
    if colors.is_empty() {
        return Err("none of `image-label` is an integer with red, green and blue from 0 to 255".to_owned());
    }
    if array.dtype.element().is_float() {
        return Err("labels with colors are integers, these are not".to_owned());
    }
    Ok(Some((ColorSource::Labels(colors), "labels in the colors that the file gives them".to_owned())))
}

/// Returns the description of the array of packed colors.
fn packed(
    array: &ArrayInfo,
    name: String,
    color_source: &ColorSource,
    note: String,
) -> ResultOrReason<ArrayInfo> {
    let dtype = DType::new(ElementType::U32, array::ByteOrder::Little);
    let mut info = ArrayInfo {
        name,
        dtype,
        units: String::new(),
        decoding: Decoding { scale: 1.0 / STRENGTH, ..Decoding::identity(dtype) },
        meaning: Meaning::Colors,
        storage: array::Storage::default(),
        ..array.clone()
    };
    if let ColorSource::Channels { axis: Some(axis), .. } = color_source {
        info.axes.remove(*axis);
        for level in &mut info.levels {
            level.shape.remove(*axis);
            level.factor.remove(*axis);
        }
    }
    let kinds: Vec<AxisKind> = info.axes.iter().map(|axis| axis.kind).collect();
    for level in &mut info.levels {
        level.block = choose_blocks(&level.shape, &kinds, dtype, None);
        level.chunk = None;
    }
    for name in ["omero", "channels", "image-label"] {
        info.attributes.remove(name);
    }
    info.notes.push(note);
    info.check().map_err(|e| e.message().to_owned())?;
    Ok(info)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use array::conformance::{MemorySource, one_array};
    use array::{Priority, ReadRequest, Selection, Source, Target};
    use bytes::Bytes;
    use serde_json::json;

    use super::super::Regridded;
    use super::*;

    /// Makes a data set with an array over these axes, stored in these blocks.
    fn image(dtype: &str, kinds: &[AxisKind], shape: &[u64], block: &[u64]) -> Dataset {
        let mut dataset = one_array(dtype.parse().unwrap(), shape, block);
        for (axis, &kind) in dataset.arrays[0].axes.iter_mut().zip(kinds) {
            axis.kind = kind;
        }
        dataset.arrays[0].name = "image".into();
        dataset
    }

    /// Returns strength, red, green and blue of all voxels of the color array; `None` if there is none.
    async fn colors(dataset: Dataset, bytes: Vec<u8>) -> Option<(ArrayInfo, Vec<[u8; 4]>)> {
        let source = Arc::new(MemorySource::new(dataset, vec![vec![Bytes::from(bytes)]]).unwrap());
        let drawn = Regridded::open(source).await.unwrap();
        let described = drawn.describe().await.unwrap();
        let info = described.arrays.get(1)?.clone();
        assert_eq!((info.name.as_str(), info.meaning), ("image (color)", Meaning::Colors));
        let (target, into) = Target::new(info.shape(), 4).unwrap();
        let selection = Selection::all(info.shape());
        drawn
            .read(ReadRequest { array: 1, level: 0, selection, priority: Priority::NORMAL }, into)
            .await
            .unwrap();
        let bytes = target.into_vec().unwrap();
        let packed = bytes.chunks_exact(4).map(|raw| [raw[3], raw[2], raw[1], raw[0]]).collect();
        Some((info, packed))
    }

    #[tokio::test]
    async fn red_green_blue_last_in_any_blocks_are_one_color_each() {
        use AxisKind::{Channel, X, Y};
        let bytes: Vec<u8> = (0..4 * 5 * 3).map(|i| i * 4).collect();
        for block in [[4, 5, 3], [3, 2, 1], [1, 5, 2]] {
            let dataset = image("|u1", &[Y, X, Channel], &[4, 5, 3], &block);
            let (info, packed) = colors(dataset, bytes.clone()).await.unwrap();
            assert_eq!(info.shape(), [4, 5]);
            let expected: Vec<[u8; 4]> = bytes.chunks(3).map(|c| [255, c[0], c[1], c[2]]).collect();
            assert_eq!(packed, expected, "{block:?}");
        }
    }

    #[tokio::test]
    async fn alpha_is_the_strength() {
        use AxisKind::{Channel, X, Y};
        let dataset = image("|u1", &[Y, X, Channel], &[1, 3, 4], &[1, 3, 4]);
        let (_, packed) = colors(dataset, vec![200, 100, 0, 255, 0, 0, 0, 255, 9, 8, 7, 0]).await.unwrap();
        assert_eq!(packed, [[255, 200, 100, 0], [255, 0, 0, 0], [0, 9, 8, 7]]);
    }

    #[tokio::test]
    async fn dark_voxels_of_a_volume_are_transparent() {
        use AxisKind::{Channel, X, Y, Z};
        let dataset = image("|u1", &[Z, Y, X, Channel], &[20, 20, 20, 3], &[20, 20, 20, 3]);
        let (_, packed) = colors(dataset, [[9, 8, 7], [90, 80, 7]].concat().repeat(4000)).await.unwrap();
        assert_eq!(packed[..2], [[0, 9, 8, 7], [90, 90, 80, 7]]);
    }

    #[tokio::test]
    async fn dark_voxels_of_a_stack_of_few_layers_are_transparent() {
        use AxisKind::{Channel, X, Y, Z};
        let mut dataset = image("<u2", &[Channel, Z, Y, X], &[2, 3, 2, 64], &[1, 3, 2, 64]);
        let channel = |color: &str| json!({"color": color, "window": {"start": 0, "end": 1000}});
        let omero = json!({"channels": [channel("00FF00"), channel("FF00FF")]});
        dataset.arrays[0].attributes.insert("omero".into(), Attribute::Json(omero));
        let values = (0..2 * 3 * 2 * 64u32).map(|i| if i % 64 == 5 { 1000u16 } else { 10 });
        let (_, packed) = colors(dataset, values.flat_map(u16::to_le_bytes).collect()).await.unwrap();
        assert_eq!((packed[0][0], packed[5]), (0, [255; 4]), "background, and both channels added");
    }

    #[tokio::test]
    async fn bytes_that_are_scaled_have_the_colors_of_bytes() {
        use AxisKind::{Channel, X, Y};
        let mut dataset = image("|u1", &[Y, X, Channel], &[1, 1, 3], &[1, 1, 3]);
        let output = "<f8".parse().unwrap();
        dataset.arrays[0].decoding = Decoding {
            scale: 1.0 / 255.0,
            offset: 2.0,
            output,
            ..Decoding::identity(dataset.arrays[0].dtype)
        };
        let (_, packed) = colors(dataset, vec![200, 100, 0]).await.unwrap();
        assert_eq!(packed, [[255, 200, 100, 0]]);
    }

    #[tokio::test]
    async fn channels_of_ome_are_added_over_their_windows() {
        use AxisKind::{Channel, X, Y};
        let mut dataset = image("<u2", &[Channel, Y, X], &[3, 1, 4], &[1, 1, 3]);
        let channel = |color: &str, start: u32, end: u32| json!({"color": color, "window": {"start": start, "end": end}});
        let mut off = channel("FFFFFF", 0, 1);
        off["active"] = json!(false);
        let omero = json!({"channels": [channel("0000FF", 0, 1000), off, channel("#ff8000", 100, 300)]});
        dataset.arrays[0].attributes.insert("omero".into(), Attribute::Json(omero));
        let values: [u16; 12] = [0, 500, 1000, 9000, 1, 1, 1, 1, 100, 200, 9000, 0];
        let (info, packed) =
            colors(dataset, values.iter().flat_map(|v| v.to_le_bytes()).collect()).await.unwrap();
        assert_eq!(packed, [[255, 0, 0, 0], [255, 128, 64, 128], [255, 255, 128, 255], [255, 0, 0, 255]]);
        assert!(info.notes.iter().any(|note| note.contains("channel 2 (100 to 300)")), "{:?}", info.notes);
        assert!(!info.attributes.contains_key("omero"));
    }

    #[tokio::test]
    async fn labels_have_the_colors_of_the_file_or_default_colors() {
        use AxisKind::{X, Y};
        let mut dataset = image("<i8", &[Y, X], &[1, 5], &[1, 5]);
        dataset.arrays[0].meaning = Meaning::Labels;
        let about = json!({"colors": [{"label-value": 3, "rgba": [1, 2, 3, 128]}, {"label-value": 1i64 << 60, "rgba": [9, 8, 7]}]});
        dataset.arrays[0].attributes.insert("image-label".into(), Attribute::Json(about));
        let labels = [0i64, 3, 1 << 60, (1 << 60) + 1, -1];
        let (_, packed) =
            colors(dataset, labels.iter().flat_map(|v| v.to_le_bytes()).collect()).await.unwrap();
        let own = |label: i64| {
            let [r, g, b] = render::signed_label_color(label);
            [255, r, g, b]
        };
        assert_eq!(packed, [[0; 4], [128, 1, 2, 3], [255, 9, 8, 7], own(labels[3]), own(-1)]);
    }

    #[tokio::test]
    async fn channels_without_colors_are_left_alone() {
        use AxisKind::{Channel, X, Y};
        let wide = image("<u2", &[Y, X, Channel], &[4, 5, 3], &[4, 5, 3]);
        assert!(colors(wide, vec![0; 120]).await.is_none());
        let mut bad = image("|u1", &[Channel, Y, X], &[2, 4, 5], &[2, 4, 5]);
        let omero = json!({"channels": [{"color": "00FF0"}, {"color": 7}]});
        bad.arrays[0].attributes.insert("omero".into(), Attribute::Json(omero));
        assert!(colors(bad, vec![0; 40]).await.is_none());
    }

    /// Returns the colors of a 16-bit image with these channels: one row, with `values` by channel.
    async fn omero(omero: Value, axis: bool, values: &[u16]) -> Option<(ArrayInfo, Vec<[u8; 4]>)> {
        use AxisKind::{Channel, X, Y};
        let count = if axis { omero["channels"].as_array().unwrap().len() as u64 } else { 1 };
        let shape = [count, 1, values.len() as u64 / count];
        let start = usize::from(!axis);
        let mut dataset = image("<u2", &[Channel, Y, X][start..], &shape[start..], &shape[start..]);
        dataset.arrays[0].attributes.insert("omero".into(), Attribute::Json(omero));
        colors(dataset, values.iter().flat_map(|v| v.to_le_bytes()).collect()).await
    }

    #[tokio::test]
    async fn one_channel_is_drawn_in_its_color() {
        let green = || json!({"color": "00FF00", "window": {"start": 0, "end": 1000}});
        let off = || json!({"color": "FF0000", "active": false});
        let values = [9u16, 9, 500, 1000, 7, 7];
        let (info, packed) =
            omero(json!({"channels": [off(), green(), off()]}), true, &values).await.unwrap();
        assert_eq!(packed, [[255, 0, 128, 0], [255, 0, 255, 0]]);
        assert!(info.notes.iter().any(|n| n.contains("channel 1 (0 to 1000)")), "{:?}", info.notes);
        for axis in [true, false] {
            let (info, packed) = omero(json!({"channels": [green()]}), axis, &[0, 500]).await.unwrap();
            assert_eq!((info.shape(), &packed[..]), (&[1, 2][..], &[[255, 0, 0, 0], [255, 0, 128, 0]][..]));
        }
        let gray = json!({"channels": [green()], "rdefs": {"model": "greyscale"}});
        assert_eq!(omero(gray, true, &[1000]).await.unwrap().1, [[255; 4]]);
    }

    #[tokio::test]
    async fn windows_may_be_written_in_many_ways() {
        for (window, expected) in [
            (json!({"start": 3000, "end": 1000}), [255, 128, 0]),
            (json!({"min": 1000, "max": 3000}), [0, 128, 255]),
            (json!({"start": "1000", "end": " 3e3", "min": 0, "max": 65535}), [0, 128, 255]),
            (json!({"start": 2000, "end": 2000}), [0, 0, 255]),
        ] {
            let channel = json!({"color": "#FF000080", "window": window});
            let (_, packed) = omero(json!({"channels": [channel]}), true, &[1000, 2000, 3000]).await.unwrap();
            assert_eq!(packed, expected.map(|red| [255, red, 0, 0]), "{window}");
        }
    }

    #[tokio::test]
    async fn only_the_first_active_channels_are_added() {
        let mut channels = vec![json!({"color": "000001", "window": {"start": 0, "end": 1}}); 18];
        channels[2]["active"] = json!(false);
        let (info, packed) = omero(json!({"channels": channels}), true, &[1; 18]).await.unwrap();
        assert_eq!(packed, [[255, 0, 0, 16]]);
        assert!(info.notes.iter().any(|n| n.contains("first 16 of 17")), "{:?}", info.notes);
    }

    #[test]
    fn colors_that_cannot_be_drawn_are_explained() {
        use AxisKind::{Channel, X, Y};
        let red = || json!({"color": "FF0000", "window": {"start": 0, "end": 1}});
        for (channels, kinds, why) in [
            (json!([{"color": "F00"}, red()]), [Channel, Y, X], "color of channel 0"),
            (json!([red(), {"color": "00FF00", "label": "DAPI"}]), [Channel, Y, X], "DAPI has no window"),
            (json!([{"color": "FF0000", "active": false}]), [Channel, Y, X], "no channel is active"),
            (json!([red(), red()]), [AxisKind::Z, Y, X], "no axis has the 2 channels"),
        ] {
            let mut dataset = image("<u2", &kinds, &[2, 4, 5], &[2, 4, 5]);
            let omero = json!({"channels": channels});
            dataset.arrays[0].attributes.insert("omero".into(), Attribute::Json(omero));
            let said = PackedColors::of(&dataset, 0).err().unwrap();
            assert!(said.contains(why), "{said}");
        }
    }
}
