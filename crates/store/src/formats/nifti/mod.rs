//! NIfTI files, versions 1 and 2, and their predecessor Analyze 7.5: `.nii`, and `.hdr` with its `.img`, each also compressed
//! (`.gz`). CIFTI-2 files are NIfTI-2 files of matrices.
//!
//! NIfTI names the fastest axis first; descriptions here name it last: shape `[t, z, y, x]`, which is nibabel's data transposed.
//! World space is NIfTI's own (RAS), as nibabel computes it from the header. Scaling is nibabel's `get_fdata`. Colors have their
//! components along one more axis, the last; complex numbers are two arrays, `image.r` and `image.i`.

mod cifti;
mod header;
mod world;

use std::sync::Arc;

use array::{
    Affine, ArrayInfo, Attribute, Attributes, Axis, AxisKind, Coordinates, DType, Decoding, ElementType,
    Error, LeftOut, Meaning, Result,
};

use self::cifti::CiftiMatrix;
use self::header::{NiftiHeader, NiftiScaling, NiftiType, NiftiVersion};
use crate::formats::common::flat::FlatArray;
use crate::formats::common::flat_file::{self, FileCompression, FlatFile, FlatFileArray, HeaderInfo};
use crate::{FileBytes, OpenOptions, formats::common::describe, io::gzip};

/// Bytes of the longest NIfTI header.
const NIFTI_HEADER_BYTES: usize = 540;
/// Compressed bytes in which the NIfTI header must lie.
const PACKED_HEAD_BYTES: usize = 64 << 10;
/// Endings of the names of the header and of the image of a pair.
const HEADER_ENDINGS: [&str; 2] = [".hdr", ".hdr.gz"];
const IMAGE_ENDINGS: [&str; 2] = [".img", ".img.gz"];

/// Whether these are the first bytes of a NIfTI file, packed or not.
pub(crate) fn recognizes(head: &[u8]) -> bool {
    let magic = |head: &[u8]| NiftiHeader::version(head).is_some();
    magic(head) || (gzip::recognizes(head) && magic(&gzip::peek(head, NIFTI_HEADER_BYTES)))
}

/// Opens a file, or both of a pair by either name.
///
/// # Errors
/// `Corrupt`, with the expected and the found field of the header.
pub(crate) fn open(file: Arc<FileBytes>, options: &OpenOptions) -> Result<FlatFile> {
    let is_image = stem(&file.name(), IMAGE_ENDINGS).is_some();
    let header_file =
        if is_image { beside(&file, IMAGE_ENDINGS, HEADER_ENDINGS)? } else { Arc::clone(&file) };
    let head = unpacked_head(&header_file)?;
    let is_header = stem(&header_file.name(), HEADER_ENDINGS).is_some();
    let mut header = NiftiHeader::parse(&head, is_header)?;
    let data = match (is_image, header.is_pair) {
        (true, _) => Arc::clone(&file),
        (false, true) => beside(&file, HEADER_ENDINGS, IMAGE_ENDINGS)?,
        (false, false) => Arc::clone(&file),
    };
    let matrix = CiftiMatrix::of(&mut header, &header_file)?;
    let mut about = HeaderInfo {
        format: if header.version == NiftiVersion::Analyze { "Analyze" } else { "NIfTI" },
        attributes: attributes(&header),
        warnings: std::mem::take(&mut header.warnings),
        ..HeaderInfo::default()
    };
    let mut placed = Vec::new();
    match contents(&header, matrix.as_ref()) {
        Ok(contents) => {
            for (info, layout) in contents? {
                let (store, access) = flat_file::store(&data, packing(&data)?, &layout, options)?;
                placed.push(FlatFileArray { info, layout, store, access });
            }
        }
        Err(what) => about.left_out.push(LeftOut { name: "image".into(), what: what.into(), value: None }),
    }
    // All parts of an image have one store, so that it is unpacked once.
    let shared = placed.first().map(|first| Arc::clone(&first.store));
    for part in &mut placed {
        part.store = shared.as_ref().map_or_else(|| Arc::clone(&part.store), Arc::clone);
    }
    let mut files: Vec<&FileBytes> = vec![&file];
    files.extend([&header_file, &data].into_iter().find(|other| !Arc::ptr_eq(other, &file)).map(|f| &**f));
    if header.version == NiftiVersion::Analyze
        && beside(&header_file, HEADER_ENDINGS, [".mat", ".MAT"]).is_ok()
    {
        about.warnings.push(
            "the matrix in the `.mat` file beside the header is not read: world space is that of the header alone"
                .into(),
        );
    }
    FlatFile::new(&files, about, placed)
}

fn packing(data: &FileBytes) -> Result<FileCompression> {
    Ok(if gzip::recognizes(&data.head(2)?) {
        FileCompression::Gzip { start: 0 }
    } else {
        FileCompression::Plain
    })
}

fn unpacked_head(file: &FileBytes) -> Result<Vec<u8>> {
    let head = file.head(PACKED_HEAD_BYTES)?;
    Ok(if gzip::recognizes(&head) { gzip::peek(&head, NIFTI_HEADER_BYTES) } else { head })
}

/// Reads at most the first `limit` bytes, and decompresses them if the file is compressed.
fn unpacked_beginning(file: &FileBytes, limit: u64) -> Result<Vec<u8>> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let head = file.head(limit)?;
    Ok(if gzip::recognizes(&head) { gzip::peek(&head, limit) } else { head })
}

/// A name without one of these endings, in either case of letters.
fn stem<'a>(name: &'a str, endings: [&str; 2]) -> Option<&'a str> {
    let at = endings.into_iter().find_map(|ending| {
        name.len()
            .checked_sub(ending.len())
            .filter(|&at| name.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(ending)))
    })?;
    name.get(..at)
}

/// Returns the path of the other file of a pair.
fn beside(file: &FileBytes, own: [&str; 2], others: [&str; 2]) -> Result<Arc<FileBytes>> {
    let name = file.name();
    let Some(stem) = stem(&name, own) else {
        return Err(Error::corrupt(format!(
            "expected a header of a pair to be named `*.hdr`, found `{name}`"
        )));
    };
    let names = others.into_iter().flat_map(|ending| [ending.to_owned(), ending.to_ascii_uppercase()]);
    let found = names.map(|ending| file.open_beside(&format!("{stem}{ending}"))).find_map(Result::ok);
    found.ok_or_else(|| {
        Error::corrupt(format!("expected `{stem}{}` beside `{name}`, its other half, found none", others[0]))
    })
}

/// Arrays with their layouts; else the reason why there are none.
type Contents = std::result::Result<Result<Vec<(ArrayInfo, FlatArray)>>, &'static str>;

fn contents(header: &NiftiHeader, matrix: Option<&CiftiMatrix>) -> Contents {
    if header.scaling == NiftiScaling::Broken {
        return Err("a scale with an intercept that is no number: what its values mean is not known");
    }
    let mut shape: Vec<u64> = header.sizes.iter().rev().copied().collect();
    let one = |dtype: DType, shape: &[u64]| {
        let layout = FlatArray::c_order(header.offset, dtype.size_bytes(), shape)?;
        Ok(vec![(describe_array("image", header, dtype, shape, matrix), layout)])
    };
    match header.stored {
        NiftiType::Numbers(dtype) => Ok(one(dtype, &shape)),
        NiftiType::Colors(parts) => {
            shape.push(parts);
            Ok(one(DType::native(ElementType::U8), &shape))
        }
        NiftiType::Complex(part) => Ok(complex(header, part, &shape, matrix)),
        NiftiType::Other(what) => Err(what),
    }
}

/// Real and imaginary parts as arrays of their own.
fn complex(
    header: &NiftiHeader,
    part: DType,
    shape: &[u64],
    matrix: Option<&CiftiMatrix>,
) -> Result<Vec<(ArrayInfo, FlatArray)>> {
    let pairs = FlatArray::c_order(header.offset, 2 * part.size_bytes(), shape)?;
    let arrays = ["image.r", "image.i"].into_iter().zip(pairs.members(2));
    Ok(arrays.map(|(name, layout)| (describe_array(name, header, part, shape, matrix), layout)).collect())
}

fn describe_array(
    name: &str,
    header: &NiftiHeader,
    dtype: DType,
    shape: &[u64],
    matrix: Option<&CiftiMatrix>,
) -> ArrayInfo {
    let mut axes: Vec<Axis> = match matrix {
        Some(matrix) => matrix.axes(),
        None => (0..header.sizes.len()).rev().map(|number| axis(header, number)).collect(),
    };
    if let NiftiType::Colors(_) = header.stored {
        axes.push(Axis::new("colour", AxisKind::Channel));
    }
    let mut info = describe::array(name, dtype, axes, shape, None);
    info.levels[0].world_from_voxel = Affine::IDENTITY;
    if matrix.is_none() {
        info.levels[0].world_from_voxel = Affine(header.world_from_voxel);
        info.world_units = header.space_units().into();
        if header.is_oriented {
            info.set_anatomical();
        }
    }
    if let (NiftiScaling::By { slope, intercept }, false) =
        (header.scaling, matches!(header.stored, NiftiType::Colors(_)))
    {
        // `get_fdata` computes in double precision for every stored type.
        info.decoding = Decoding {
            scale: slope,
            offset: intercept,
            output: DType::native(ElementType::F64),
            ..Decoding::identity(dtype)
        };
    }
    if let NiftiType::Colors(parts) = header.stored {
        info.attributes.insert("channels".into(), describe::color_names(parts));
    }
    // Label images (1002, 1003) are categories.
    if matches!(header.intent_code, 1002 | 1003) || matrix.is_some_and(|m| m.is_labels) {
        info.meaning = Meaning::Labels;
    }
    info
}

/// The axis of this number, counted from the fastest.
fn axis(header: &NiftiHeader, number: usize) -> Axis {
    const NAMES: [(&str, AxisKind); 4] =
        [("x", AxisKind::X), ("y", AxisKind::Y), ("z", AxisKind::Z), ("t", AxisKind::Time)];
    let (name, kind) = match NAMES.get(number) {
        Some(&(name, kind)) => (name.to_owned(), kind),
        // The fifth axis holds the components of vectors.
        None if number == 4 => ("c".to_owned(), AxisKind::Channel),
        None => (format!("dim{}", header.sizes.len() - 1 - number), AxisKind::Other),
    };
    let step = header.steps[number].abs();
    let coordinates = if number < 4 && step.is_finite() && step > 0.0 {
        let origin = if kind == AxisKind::Time { header.time_offset } else { 0.0 };
        Coordinates::Regular { origin, step }
    } else {
        Coordinates::Index
    };
    let units = match number {
        0..=2 => header.space_units(),
        3 => header.time_units(),
        _ => "",
    };
    Axis { units: units.into(), coordinates, ..Axis::new(name, kind) }
}

fn attributes(header: &NiftiHeader) -> Attributes {
    let texts = [
        ("description", &header.description),
        ("intent", &header.intent_name),
        ("aux_file", &header.aux_file),
    ];
    let mut attributes: Attributes = texts
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| (name.to_owned(), Attribute::Text(text.clone())))
        .collect();
    let (low, high) = header.display_range;
    if high > low {
        let numbers = vec![array::Scalar::Float(low), array::Scalar::Float(high)];
        attributes.insert("display_range".into(), Attribute::Numbers(numbers, Some(ElementType::F32)));
    }
    if header.intent_code != 0 {
        attributes
            .insert("intent_code".into(), Attribute::Number(array::Scalar::Signed(header.intent_code), None));
    }
    for (name, number) in ["frequency_axis", "phase_axis", "slice_axis"].into_iter().zip(header.encoded) {
        if let Some(axis) = usize::from(number).checked_sub(1).and_then(|i| ["x", "y", "z"].get(i)) {
            attributes.insert(name.into(), Attribute::Text((*axis).into()));
        }
    }
    attributes
}

#[cfg(test)]
mod tests;
