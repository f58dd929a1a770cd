//! Legends of annotations: names and colors of labels, and of the channels of an image, as the file gives them.
//! The viewer's page reads the same attributes (`web/src/dataset/legend.ts`).

use array::{ArrayInfo, Attribute, Dataset, Meaning, Scalar};
use render::{LegendKey, signed_label_color};
use serde_json::Value;
use view::COLOR_END;

/// Maximum number of entries; more are counted.
const MAX_ENTRIES: usize = 12;
/// Longest name, letters.
const MAX_NAME: usize = 32;

/// Returns the legend of an array of labels or of packed colors; empty for others, and if the file has no names.
pub(super) fn legend(dataset: &Dataset, array: &ArrayInfo) -> Vec<LegendKey> {
    let entries = match array.meaning {
        Meaning::Labels => labels(array, false),
        Meaning::Colors => {
            let source = array.name.strip_suffix(COLOR_END).and_then(|name| dataset.find(name).ok());
            match source {
                Some((_, source)) if source.meaning == Meaning::Labels => labels(source, true),
                Some((_, source)) => channels(source),
                None => Vec::new(),
            }
        }
        Meaning::Intensity | Meaning::Text => Vec::new(),
    };
    let left = entries.len().saturating_sub(MAX_ENTRIES);
    let mut keys: Vec<LegendKey> = entries.into_iter().take(MAX_ENTRIES).collect();
    if let Some(last) = keys.last_mut().filter(|_| left > 0) {
        last.text.push_str(&format!(" and {left} more"));
    }
    keys
}

fn key(color: [u8; 3], name: &str) -> LegendKey {
    LegendKey { color, text: name.chars().take(MAX_NAME).collect() }
}

/// Labels with names: CF's flags, `image-label` of OME-Zarr, segments of 3D Slicer. With `in_own_colors` in the colors of the file, if
/// it has some.
fn labels(array: &ArrayInfo, in_own_colors: bool) -> Vec<LegendKey> {
    let color = |label: i64, own: Option<[u8; 3]>| {
        own.filter(|_| in_own_colors).unwrap_or_else(|| signed_label_color(label))
    };
    let flags = flags(array);
    if !flags.is_empty() {
        return flags.into_iter().map(|(label, name)| key(color(label, None), &name)).collect();
    }
    if let Some(Attribute::Json(about)) = array.attributes.get("image-label") {
        return image_labels(about)
            .into_iter()
            .map(|(label, name, own)| key(color(label, own), &name))
            .collect();
    }
    (0..)
        .map_while(|number| segment(array, number))
        .map(|(label, name)| key(color(label, None), &name))
        .collect()
}

fn flags(array: &ArrayInfo) -> Vec<(i64, String)> {
    let values = array.attributes.get("flag_values").and_then(Attribute::numbers).unwrap_or_default();
    let names = array.attributes.get("flag_meanings").and_then(Attribute::text).unwrap_or_default();
    let whole = |scalar: &Scalar| match *scalar {
        Scalar::Signed(value) => Some(value),
        Scalar::Unsigned(value) => i64::try_from(value).ok(),
        Scalar::Float(_) => None,
    };
    let pairs = values.iter().zip(names.split_whitespace());
    pairs.filter_map(|(value, name)| Some((whole(value)?, name.replace('_', " ")))).collect()
}

fn image_labels(about: &Value) -> Vec<(i64, String, Option<[u8; 3]>)> {
    let listed = |name: &str| about.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let label = |entry: &Value| entry.get("label-value").and_then(Value::as_i64);
    let color = |entry: &Value| {
        let part = |i: usize| entry.get("rgba")?.get(i)?.as_u64().and_then(|part| u8::try_from(part).ok());
        Some([part(0)?, part(1)?, part(2)?])
    };
    let mut found: Vec<(i64, String, Option<[u8; 3]>)> = listed("colors")
        .iter()
        .filter_map(|entry| label(entry).map(|label| (label, format!("label {label}"), color(entry))))
        .collect();
    for entry in listed("properties") {
        let Some(label) = label(entry) else { continue };
        let names = ["name", "label", "class", "type"];
        let Some(name) = names.into_iter().find_map(|name| entry.get(name).and_then(Value::as_str)) else {
            continue;
        };
        match found.iter_mut().find(|(known, ..)| *known == label) {
            Some(known) => name.clone_into(&mut known.1),
            None => found.push((label, name.to_owned(), None)),
        }
    }
    found
}

fn segment(array: &ArrayInfo, number: usize) -> Option<(i64, String)> {
    let text =
        |what: &str| array.attributes.get(&format!("Segment{number}_{what}")).and_then(Attribute::text);
    let name = text("Name")?;
    let label = text("LabelValue").and_then(|label| label.trim().parse().ok());
    Some((label.unwrap_or_else(|| i64::try_from(number).unwrap_or(i64::MAX - 1) + 1), name.to_owned()))
}

/// Active channels of OME-Zarr with their colors; red, green and blue of an ordinary picture explain nothing.
fn channels(array: &ArrayInfo) -> Vec<LegendKey> {
    let Some(Attribute::Json(omero)) = array.attributes.get("omero") else { return Vec::new() };
    let listed = omero.get("channels").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let active =
        listed.iter().enumerate().filter(|(_, c)| c.get("active").and_then(Value::as_bool) != Some(false));
    active
        .filter_map(|(number, channel)| {
            let label = channel.get("label").and_then(Value::as_str).filter(|label| !label.is_empty());
            let name = label.map_or_else(|| format!("channel {number}"), str::to_owned);
            let digits = channel.get("color").and_then(Value::as_str)?.trim_start_matches('#');
            let [_, r, g, b] = u32::from_str_radix(digits.get(..6)?, 16).ok()?.to_be_bytes();
            Some(key([r, g, b], &name))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dataset(meaning: Meaning, attributes: &[(&str, Attribute)]) -> Dataset {
        let mut dataset = array::conformance::one_array("|u1".parse().unwrap(), &[4, 4, 4], &[4, 4, 4]);
        dataset.arrays[0].meaning = meaning;
        dataset.arrays[0].attributes = attributes.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        dataset
    }

    fn texts(dataset: &Dataset, number: usize) -> Vec<(String, [u8; 3])> {
        legend(dataset, &dataset.arrays[number]).into_iter().map(|key| (key.text, key.color)).collect()
    }

    #[test]
    fn labels_and_channels_have_the_names_of_the_file() {
        let numbers =
            |numbers: &[i64]| Attribute::Numbers(numbers.iter().map(|&n| Scalar::Signed(n)).collect(), None);
        let flags = [("flag_values", numbers(&[1, 2])), ("flag_meanings", "sea_ice land".into())];
        let found = texts(&dataset(Meaning::Labels, &flags), 0);
        assert_eq!(
            found,
            [("sea ice".to_owned(), signed_label_color(1)), ("land".to_owned(), signed_label_color(2))]
        );
        assert!(texts(&dataset(Meaning::Intensity, &flags), 0).is_empty());
        let segments = [
            ("Segment0_Name", "liver".into()),
            ("Segment0_LabelValue", "7".into()),
            ("Segment1_Name", "spleen".into()),
        ];
        let found = texts(&dataset(Meaning::Labels, &segments), 0);
        assert_eq!(
            found,
            [("liver".to_owned(), signed_label_color(7)), ("spleen".to_owned(), signed_label_color(2))]
        );
        let omero = json!({"channels": [{"label": "DAPI", "color": "0000FF"}, {"color": "00FF00", "active": false}, {"color": "#FF0000"}]});
        let mut image = dataset(Meaning::Intensity, &[("omero", Attribute::Json(omero))]);
        let mut colors = image.arrays[0].clone();
        colors.name.push_str(COLOR_END);
        (colors.meaning, colors.attributes) = (Meaning::Colors, array::Attributes::default());
        image.arrays.push(colors);
        assert_eq!(
            texts(&image, 1),
            [("DAPI".to_owned(), [0, 0, 255]), ("channel 2".to_owned(), [255, 0, 0])]
        );
    }

    #[test]
    fn legends_are_short() {
        let values = Attribute::Numbers((1..=40).map(Scalar::Signed).collect(), None);
        let names = (1..=40).map(|n| format!("l{n}")).collect::<Vec<_>>().join(" ");
        let many =
            dataset(Meaning::Labels, &[("flag_values", values), ("flag_meanings", names.as_str().into())]);
        let found = texts(&many, 0);
        assert_eq!((found.len(), found[11].0.as_str()), (12, "l12 and 28 more"));
    }
}
