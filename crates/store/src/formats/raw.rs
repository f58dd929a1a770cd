//! Raw binary files, described by a small TOML file beside them.
//!
//! ```toml
//! file = "density.bin"       # beside this description or below
//! shape = [512, 512, 512]    # slowest axis first, last fastest
//! dtype = "<f4"              # or "float32", "uint8", ">i2", ...
//! # everything else may be left out:
//! offset = 0                 # bytes before the first element
//! order = "C"                # "F": the axes of this file are listed fastest first
//! name = "density"
//! units = "g/cm3"
//! scale = 1.0                # decoded = stored * scale + add
//! add = 0.0
//! fill = -999.0              # "no value here"
//! labels = false             # categories instead of intensities
//! axes = [
//!   { name = "z", kind = "z", units = "mm", spacing = 0.5, origin = 0.0 },
//!   { name = "y", kind = "y", units = "mm", spacing = 0.5 },
//!   { name = "x", kind = "x", units = "mm", spacing = 0.5 },
//! ]
//! ```

use std::sync::Arc;

use array::{
    ArrayInfo, Attribute, Axis, AxisKind, Coordinates, DType, Decoding, ElementType, Error, MAX_AXES,
    Meaning, Result, Scalar,
};
use serde::Deserialize;

use crate::formats::common::flat::FlatArray;
use crate::formats::common::flat_file::{self, FileCompression, FlatFile, FlatFileArray, HeaderInfo};
use crate::{ByteStore, FileBytes, OpenOptions, formats::common::describe};

/// Longest description of a raw file, bytes.
const MAX_DESCRIPTION_BYTES: u64 = 1 << 20;

/// Description as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDescription {
    file: String,
    shape: Vec<u64>,
    dtype: DType,
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    order: RawOrder,
    #[serde(default = "default_name")]
    name: String,
    #[serde(default)]
    units: String,
    scale: Option<f64>,
    add: Option<f64>,
    fill: Option<f64>,
    #[serde(default)]
    labels: bool,
    axes: Option<Vec<RawAxis>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum RawOrder {
    #[default]
    C,
    F,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAxis {
    name: String,
    kind: Option<AxisKind>,
    #[serde(default)]
    units: String,
    spacing: Option<f64>,
    origin: Option<f64>,
}

fn default_name() -> String {
    "data".into()
}

/// Opens a file by its description.
///
/// # Errors
/// `Invalid`, with the expected contents of the description.
pub(crate) fn open(file: Arc<FileBytes>, options: &OpenOptions) -> Result<FlatFile> {
    if file.size_bytes() > MAX_DESCRIPTION_BYTES {
        return Err(Error::invalid(format!(
            "expected a description of at most {MAX_DESCRIPTION_BYTES} bytes, found {}",
            file.size_bytes()
        )));
    }
    let text = file.head(usize::try_from(MAX_DESCRIPTION_BYTES).unwrap_or(usize::MAX))?;
    let mut description = parse(&text)?;
    if description.order == RawOrder::F {
        description.shape.reverse();
        if let Some(axes) = &mut description.axes {
            axes.reverse();
        }
    }
    let data = file.open_beside(&description.file)?;
    let layout = FlatArray::c_order(description.offset, description.dtype.size_bytes(), &description.shape)?;
    let (store, access) = flat_file::store(&data, FileCompression::Plain, &layout, options)?;
    let placed = FlatFileArray { info: info(&description), layout, store, access };
    let about = HeaderInfo { format: "raw", ..HeaderInfo::default() };
    FlatFile::new(&[&file, &data], about, vec![placed])
}

fn parse(text: &[u8]) -> Result<RawDescription> {
    let text = std::str::from_utf8(text)
        .map_err(|_| Error::invalid("expected a TOML description, found bytes that are no text"))?;
    let description: RawDescription = toml::from_str(text).map_err(|e| {
        Error::invalid(format!(
            "expected a TOML description of a raw file with file, shape and dtype: {}",
            e.message()
        ))
    })?;
    let axes = description.shape.len();
    if axes == 0 || axes > MAX_AXES {
        return Err(Error::invalid(format!("expected a shape of 1 to {MAX_AXES} axes, found {axes}")));
    }
    if let Some(found) = description.axes.as_ref().map(Vec::len).filter(|&n| n != axes) {
        return Err(Error::invalid(format!(
            "expected one entry in `axes` per axis of the shape ({axes}), found {found}"
        )));
    }
    let numbers = [description.scale, description.add].into_iter().flatten();
    let spacings = description.axes.iter().flatten().flat_map(|a| [a.spacing, a.origin]).flatten();
    let zero =
        description.axes.iter().flatten().any(|a| a.spacing == Some(0.0)) || description.scale == Some(0.0);
    if zero || !numbers.chain(spacings).all(f64::is_finite) {
        return Err(Error::invalid("expected finite numbers, and a scale and spacings other than 0"));
    }
    Ok(description)
}

fn info(description: &RawDescription) -> ArrayInfo {
    let mut axes = describe::guessed_axes(description.shape.len());
    for (axis, said) in axes.iter_mut().zip(description.axes.iter().flatten()) {
        let coordinates = match (said.spacing, said.origin) {
            (None, None) => Coordinates::Index,
            (spacing, origin) => {
                Coordinates::Regular { origin: origin.unwrap_or(0.0), step: spacing.unwrap_or(1.0) }
            }
        };
        let kind = said.kind.unwrap_or(axis.kind);
        *axis = Axis { name: said.name.clone(), kind, units: said.units.clone(), coordinates };
    }
    let mut info = describe::array(&description.name, description.dtype, axes, &description.shape, None);
    info.units.clone_from(&description.units);
    info.decoding = decoding(description);
    // Stored as other formats store it, so that copies and clients know it too.
    let element = info.dtype.element();
    let fill = info.decoding.missing.first();
    let fill = fill.map(|&fill| ("_FillValue".to_owned(), Attribute::Number(fill, Some(element))));
    info.attributes.extend(fill);
    if description.labels {
        info.meaning = Meaning::Labels;
    }
    info
}

fn decoding(description: &RawDescription) -> Decoding {
    let element = description.dtype.element();
    let mut decoding = Decoding {
        scale: description.scale.unwrap_or(1.0),
        offset: description.add.unwrap_or(0.0),
        // A value is rounded as the type rounds it.
        missing: description.fill.map(|fill| in_type(fill, element)).into_iter().collect(),
        ..Decoding::identity(description.dtype)
    };
    if !decoding.is_identity() {
        decoding.output = DType::native(element.decoded());
    }
    decoding
}

/// Converts a number to the values of an element type: rounded, or whole. A number out of range stays unchanged.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounding is meant; the rest is whole and in range"
)]
fn in_type(value: f64, element: ElementType) -> Scalar {
    use ElementType::{Bool, F32, I8, I16, I32, I64, U8, U16, U32, U64};
    let is_whole = value.fract() == 0.0;
    match element {
        F32 => Scalar::Float(f64::from(value as f32)),
        I8 | I16 | I32 | I64 if is_whole && value.abs() < 9.2e18 => Scalar::Signed(value as i64),
        Bool | U8 | U16 | U32 | U64 if is_whole && (0.0..1.8e19).contains(&value) => {
            Scalar::Unsigned(value as u64)
        }
        _ => Scalar::Float(value),
    }
}

#[cfg(test)]
mod tests {
    use array::{ErrorKind, Selection, Target};
    use proptest::prelude::*;

    use super::*;
    use crate::{CancelFlag, Format};

    const PLAIN: &str = "file = 'a.bin'\nshape = [2, 3, 4]\ndtype = 'uint8'\n";

    fn open_text(text: &str) -> Result<FlatFile> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.bin"), (0..25).collect::<Vec<u8>>()).unwrap();
        std::fs::write(dir.path().join("volume.toml"), text).unwrap();
        open(FileBytes::open(&dir.path().join("volume.toml")).unwrap(), &OpenOptions::default())
    }

    #[test]
    fn says_where_elements_lie_and_what_they_mean() {
        let axes = "axes = [{name='h', kind='z', units='mm', spacing=2.0}, {name='y'}, {name='x', units='mm', spacing=0.5, origin=-1.0}]";
        let file =
            open_text(&format!("{PLAIN}offset = 1\nscale = 2.0\nfill = 7.0\nunits = 'K'\n{axes}")).unwrap();
        let dataset = file.dataset();
        let info = &dataset.arrays[0];
        assert_eq!(
            (info.shape(), info.axes[0].name.as_str(), info.axes[1].kind),
            (&[2, 3, 4][..], "h", AxisKind::Y)
        );
        assert_eq!(info.levels[0].world_from_voxel.apply([1.0, 1.0, 1.0]), [-0.5, 1.0, 2.0]);
        assert!(info.decoding.decode(Scalar::Unsigned(7)).is_nan());
        let (target, region) = Target::new(&[1, 1, 2], 1).unwrap();
        let selection = Selection::parse("1, 2, ::3", info.shape()).unwrap();
        file.read(0, 0, &selection, region, &CancelFlag::default()).unwrap();
        assert_eq!(target.into_vec().unwrap(), [21, 24]);
    }

    #[test]
    fn speeds_and_times_are_not_on_the_scale_of_lengths() {
        let axes = "axes = [{name='v', kind='z', units='m/s', spacing=300.0}, {name='y', units='m', spacing=2.0}, {name='x', units='m', spacing=2.0}]";
        let file = open_text(&format!("{PLAIN}{axes}")).unwrap();
        let info = &file.dataset().arrays[0];
        assert_eq!(info.levels[0].world_from_voxel.spacing(), [2.0; 3]);
        assert_eq!(info.axes[0].coordinates, Coordinates::Regular { origin: 0.0, step: 300.0 });
        assert!(info.notes[0].contains("`m/s`"), "{:?}", info.notes);
    }

    #[test]
    fn column_order_lists_the_fastest_axis_first() {
        let file = open_text("file = 'a.bin'\nshape = [4, 3, 2]\ndtype = 'uint8'\norder = 'F'").unwrap();
        assert_eq!(file.dataset().arrays[0].shape(), [2, 3, 4]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases = [
            (PLAIN.replace("a.bin", "../a.bin"), ErrorKind::Denied, "same directory"),
            (PLAIN.replace("a.bin", "none"), ErrorKind::NotFound, "none"),
            (PLAIN.replace("[2, 3, 4]", "[2, 3, 5]"), ErrorKind::Corrupt, "cut short"),
            (PLAIN.replace("uint8", "complex"), ErrorKind::Invalid, "element type"),
            (format!("{PLAIN}colour = 1"), ErrorKind::Invalid, "unknown field"),
            (format!("{PLAIN}axes = []"), ErrorKind::Invalid, "one entry"),
            (format!("{PLAIN}scale = nan"), ErrorKind::Invalid, "finite"),
            ("shape = [1]".into(), ErrorKind::Invalid, "missing field"),
        ];
        for (text, kind, words) in cases {
            let Err(error) = open_text(&text) else { panic!("opened: {text}") };
            assert_eq!(error.kind(), kind, "{text}: {error}");
            assert!(error.to_string().contains(words), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn mutated_descriptions_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
            let mut text = format!("{PLAIN}axes = [{{name='z'}}, {{name='y'}}, {{name='x', spacing=1.0}}]").into_bytes();
            for (at, byte) in changes {
                let at = at.index(text.len());
                text[at] = byte;
            }
            if let Ok(description) = parse(&text) {
                prop_assert_eq!(info(&description).axes.len(), description.shape.len());
            }
        }
    }
}
