//! NIfTI files, versions 1 and 2: `.nii`, `.nii.gz`, and `.hdr` with its `.img`.
//!
//! NIfTI names the fastest axis first; descriptions here name it last: shape `[t, z, y, x]`, which is nibabel's
//! data transposed. World space is NIfTI's own (RAS). Scaling is nibabel's `get_fdata`.

mod header;

use std::sync::Arc;

use array::{
    Affine, Attribute, Attributes, Axis, AxisKind, Coordinates, DType, Decoding, ElementType, Error, LeftOut,
    Meaning, Result,
};

use self::header::{Header, Stored};
use crate::flat::FlatArray;
use crate::flat_file::{self, About, FlatFile, Packing, Placed};
use crate::{FileBytes, OpenOptions, describe, gzip};

/// Bytes of the longest header.
const HEADER_BYTES: usize = 540;

/// Whether these are the first bytes of a NIfTI file, packed or not.
pub(crate) fn recognises(head: &[u8]) -> bool {
    let magic = |head: &[u8]| Header::version(head).is_some();
    magic(head) || (gzip::recognises(head) && magic(&gzip::peek(head, HEADER_BYTES)))
}

/// Opens a file.
///
/// # Errors
/// `Corrupt`: what was expected of the header and what was found.
pub(crate) fn open(file: Arc<FileBytes>, options: &OpenOptions) -> Result<FlatFile> {
    let head = unpacked_head(&file)?;
    let header = Header::parse(&head)?;
    let image = if header.is_pair { Some(image_beside(&file)?) } else { None };
    let data = image.as_ref().unwrap_or(&file);
    let mut about = About { format: "NIfTI", attributes: attributes(&header), ..About::default() };
    let mut placed = Vec::new();
    match header.stored {
        Stored::Numbers(dtype) => {
            let shape: Vec<u64> = header.sizes.iter().rev().copied().collect();
            let place = FlatArray::c_order(header.offset, dtype.size_bytes(), &shape)?;
            let packed = gzip::recognises(&data.head(2)?);
            let packing = if packed { Packing::Gzip { start: 0 } } else { Packing::Plain };
            let (store, access) = flat_file::store(data, packing, &place, options)?;
            placed.push(Placed { info: describe_array(&header, dtype, &shape), place, store, access });
        }
        Stored::Other(what) => {
            about.left_out.push(LeftOut { name: "image".into(), what: what.into(), value: None });
        }
    }
    let mut files: Vec<&FileBytes> = vec![&file];
    files.extend(image.as_deref());
    FlatFile::new(&files, about, placed)
}

fn unpacked_head(file: &FileBytes) -> Result<Vec<u8>> {
    let head = file.head(64 << 10)?;
    Ok(if gzip::recognises(&head) { gzip::peek(&head, HEADER_BYTES) } else { head })
}

/// The `.img` of a `.hdr`.
fn image_beside(header: &FileBytes) -> Result<Arc<FileBytes>> {
    let name = header.name();
    let stem = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = stem.strip_suffix(".hdr").ok_or_else(|| {
        Error::corrupt(format!("expected a header of a pair to be named `*.hdr`, found `{name}`"))
    })?;
    header.open_beside(&format!("{stem}.img")).or_else(|_| header.open_beside(&format!("{stem}.img.gz")))
}

fn describe_array(header: &Header, dtype: DType, shape: &[u64]) -> array::ArrayInfo {
    let axes = (0..header.sizes.len()).rev().map(|number| axis(header, number)).collect();
    let mut info = describe::array("image", dtype, axes, shape, None);
    info.levels[0].world_from_voxel = Affine(header.world_from_voxel());
    info.world_units = header.space_units().into();
    if let Some((scale, offset)) = header.scaling {
        // `get_fdata` computes in double precision whatever is stored.
        info.decoding =
            Decoding { scale, offset, output: DType::native(ElementType::F64), ..Decoding::identity(dtype) };
    }
    // Label images (1002, 1003) are categories.
    if matches!(header.intent_code, 1002 | 1003) {
        info.meaning = Meaning::Labels;
    }
    info
}

/// The axis of this number, counted from the fastest.
fn axis(header: &Header, number: usize) -> Axis {
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

fn attributes(header: &Header) -> Attributes {
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
    attributes
}

#[cfg(test)]
mod tests;
