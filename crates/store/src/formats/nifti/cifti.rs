//! CIFTI-2: a NIfTI-2 file whose first four sizes are 1, whose other sizes are those of a matrix, and whose extension describes in
//! XML the axes of the matrix. The matrix is served, as nibabel's `dataobj`; of the XML only names of axes and series are read.

use array::{Axis, AxisKind, Coordinates, Result};

use super::header::{NiftiHeader, NiftiVersion};
use super::unpacked_beginning;
use crate::FileBytes;

/// Codes of NIfTI-2 that mean CIFTI-2.
const INTENTS: std::ops::Range<i64> = 3000..3100;
/// The extension that holds the XML.
const EXTENSION: u32 = 32;
/// Most bytes of NIfTI extensions that are read. The XML of a whole brain has about 1.5 MiB.
const MAX_EXTENSION_BYTES: u64 = 32 << 20;

/// The matrix of a CIFTI-2 file. Axes in the file's order, fastest first.
pub(super) struct CiftiMatrix {
    maps: Vec<MatrixIndicesMap>,
    pub(super) is_labels: bool,
}

/// Description of an axis in the XML.
#[derive(Clone, Debug, Default, PartialEq)]
struct MatrixIndicesMap {
    name: String,
    series: Option<(f64, f64, String)>,
}

impl CiftiMatrix {
    /// The matrix, if it is such a file; the header's sizes are then those of the matrix.
    pub(super) fn of(header: &mut NiftiHeader, file: &FileBytes) -> Result<Option<Self>> {
        let is_cifti = header.version == NiftiVersion::Two
            && INTENTS.contains(&header.intent_code)
            && header.sizes.len() > 4
            && header.sizes[..4] == [1; 4];
        if !is_cifti {
            return Ok(None);
        }
        header.sizes.drain(..4);
        header.steps.drain(..4);
        let xml = extension(file, header.offset)?.unwrap_or_default();
        let maps = (0..header.sizes.len()).map(|place| map(&xml, place)).collect();
        let is_labels = xml.contains("CIFTI_INDEX_TYPE_LABELS");
        Ok(Some(Self { maps, is_labels }))
    }

    /// Slowest first. The last two are a picture's.
    pub(super) fn axes(&self) -> Vec<Axis> {
        const KINDS: [AxisKind; 3] = [AxisKind::X, AxisKind::Y, AxisKind::Z];
        let axis = |(number, map): (usize, &MatrixIndicesMap)| {
            let kind = KINDS.get(number).copied().unwrap_or(AxisKind::Other);
            let mut axis = Axis::new(self.name(number), kind);
            if let Some((origin, step, units)) = &map.series {
                axis.coordinates = Coordinates::Regular { origin: *origin, step: *step };
                axis.units.clone_from(units);
            }
            axis
        };
        let mut axes: Vec<Axis> = self.maps.iter().enumerate().map(axis).collect();
        axes.reverse();
        axes
    }

    /// Name from the XML, or from the position; with a number if an axis before has the same name.
    fn name(&self, number: usize) -> String {
        let name = &self.maps[number].name;
        match name.as_str() {
            "" => format!("dim{}", self.maps.len() - 1 - number),
            name if self.maps[..number].iter().any(|map| map.name == name) => format!("{name}_{number}"),
            name => name.to_owned(),
        }
    }
}

/// XML after the header, as far as it is text.
fn extension(file: &FileBytes, end: u64) -> Result<Option<String>> {
    const HEADER: usize = 540;
    let bytes = unpacked_beginning(file, end.min(MAX_EXTENSION_BYTES))?;
    // A byte that states whether there are extensions, and three more.
    if bytes.get(HEADER).is_none_or(|&has| has == 0) {
        return Ok(None);
    }
    let mut at = HEADER + 4;
    while let Some(&[a, b, c, d, e, f, g, h]) = bytes.get(at..at + 8) {
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        let code = u32::from_le_bytes([e, f, g, h]);
        let inside = bytes.get(at + 8..at.saturating_add(length)).unwrap_or_default();
        if code == EXTENSION {
            return Ok(Some(String::from_utf8_lossy(inside).into_owned()));
        }
        if length < 8 {
            break;
        }
        at = at.saturating_add(length);
    }
    Ok(None)
}

/// The map that applies to this axis of the matrix.
fn map(xml: &str, place: usize) -> MatrixIndicesMap {
    let tags = xml.split("<MatrixIndicesMap").skip(1).filter_map(|rest| rest.split('>').next());
    for tag in tags {
        let applies = attribute(tag, "AppliesToMatrixDimension").unwrap_or_default();
        if !applies.split(',').any(|n| n.trim().parse() == Ok(place)) {
            continue;
        }
        let kind = attribute(tag, "IndicesMapToDataType").unwrap_or_default();
        let kind = kind.strip_prefix("CIFTI_INDEX_TYPE_").unwrap_or(kind).to_ascii_lowercase();
        return MatrixIndicesMap { series: series(tag).filter(|_| kind == "series"), name: kind };
    }
    MatrixIndicesMap::default()
}

fn series(tag: &str) -> Option<(f64, f64, String)> {
    let number = |name| attribute(tag, name)?.trim().parse::<f64>().ok().filter(|v| v.is_finite());
    let scale = 10f64.powf(number("SeriesExponent").unwrap_or(0.0));
    let (start, step) = (number("SeriesStart")? * scale, number("SeriesStep")? * scale);
    let units = match attribute(tag, "SeriesUnit")? {
        "SECOND" => "s",
        "HERTZ" => "Hz",
        "METER" => "m",
        "RADIAN" => "rad",
        _ => "",
    };
    (step != 0.0 && step.is_finite() && start.is_finite()).then(|| (start, step, units.to_owned()))
}

/// The value of an attribute of a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!("{name}="))?;
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    rest[1..].split(quote).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = r#"<CIFTI Version="2"><Matrix>
        <MatrixIndicesMap AppliesToMatrixDimension="0" IndicesMapToDataType="CIFTI_INDEX_TYPE_SERIES" NumberOfSeriesPoints="2"
            SeriesExponent="-3" SeriesStart="0" SeriesStep="720" SeriesUnit="SECOND"/>
        <MatrixIndicesMap AppliesToMatrixDimension="1" IndicesMapToDataType='CIFTI_INDEX_TYPE_BRAIN_MODELS'><BrainModel/>"#;

    #[test]
    fn axes_have_the_names_and_series_of_the_xml() {
        let maps = vec![map(XML, 0), map(XML, 1), map(XML, 2)];
        assert_eq!(
            maps[0],
            MatrixIndicesMap { name: "series".into(), series: Some((0.0, 0.72, "s".into())) }
        );
        assert_eq!(maps[1], MatrixIndicesMap { name: "brain_models".into(), series: None });
        assert_eq!(maps[2], MatrixIndicesMap::default());
        let axes = CiftiMatrix { maps, is_labels: false }.axes();
        assert_eq!(
            axes.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(),
            ["dim0", "brain_models", "series"]
        );
        let both = XML.replace("\"0\"", "\"0,1\"");
        let maps = vec![map(&both, 0), map(&both, 1)];
        assert_eq!(CiftiMatrix { maps, is_labels: false }.axes()[0].name, "series_1");
    }
}
