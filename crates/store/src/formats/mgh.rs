//! FreeSurfer's volumes and surfaces: `.mgh`, and `.mgz`, which is the same file compressed by gzip. Always big-endian.
//!
//! The fastest axis is named first; descriptions here name it last, which is nibabel's data transposed. World space is RAS, in
//! millimeters, as nibabel computes it from the header. Data after the voxels (repetition times, tags of the scanner) are not read.

use std::sync::Arc;

use array::{Affine, Axis, AxisKind, ByteOrder, Coordinates, DType, ElementType, Error, Result};

use crate::formats::common::flat::FlatArray;
use crate::formats::common::flat_file::{self, FileCompression, FlatFile, FlatFileArray, HeaderInfo};
use crate::{FileBytes, OpenOptions, formats::common::describe, io::gzip};

/// Bytes of the used part of the MGH header, and of the whole header.
const MGH_HEADER_BYTES: usize = 90;
const DATA_OFFSET: u64 = 284;
/// Compressed bytes in which the MGH header must lie.
const PACKED_HEAD_BYTES: usize = 64 << 10;

/// FreeSurfer's default directions for a header without any: coronal slices.
const CORONAL: [[f32; 3]; 3] = [[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]];

/// Opens a file.
///
/// # Errors
/// `Corrupt`, `Unsupported`, with the expected and the found field of the header.
pub(crate) fn open(file: Arc<FileBytes>, options: &OpenOptions) -> Result<FlatFile> {
    let head = file.head(PACKED_HEAD_BYTES)?;
    let is_packed = gzip::recognizes(&head);
    let head = if is_packed { gzip::peek(&head, MGH_HEADER_BYTES) } else { head };
    let mut header = MghHeader::parse(&head)?;
    let warnings = header.repair_space();
    let is_oriented = header.has_space && warnings.is_empty();
    let shape: Vec<u64> = header.sizes.iter().rev().copied().collect();
    let layout = FlatArray::c_order(DATA_OFFSET, header.dtype.size_bytes(), &shape)?;
    let packing = if is_packed { FileCompression::Gzip { start: 0 } } else { FileCompression::Plain };
    let (store, access) = flat_file::store(&file, packing, &layout, options)?;
    let axes = header.axes();
    let mut info = describe::array("image", header.dtype, axes, &shape, None);
    info.levels[0].world_from_voxel = Affine(header.world_from_voxel());
    info.world_units = "mm".into();
    if is_oriented {
        info.set_anatomical();
    }
    let about = HeaderInfo { format: "MGH", warnings, ..HeaderInfo::default() };
    FlatFile::new(&[&file], about, vec![FlatFileArray { info, layout, store, access }])
}

/// A header that was understood. Axes in the file's order, fastest first.
#[derive(Debug)]
struct MghHeader {
    dtype: DType,
    /// Three, or four where there are several frames.
    sizes: Vec<u64>,
    /// Distance between voxels along each axis.
    steps: [f32; 3],
    /// Direction of each axis.
    directions: [[f32; 3]; 3],
    /// World position of the center of the volume.
    middle: [f32; 3],
    /// Whether the file gives the directions.
    has_space: bool,
}

impl MghHeader {
    fn parse(head: &[u8]) -> Result<Self> {
        let found = |at| i32_at(head, at);
        let short =
            || Error::corrupt(format!("expected a header of {MGH_HEADER_BYTES} bytes, found {}", head.len()));
        if head.len() < MGH_HEADER_BYTES {
            return Err(short());
        }
        let version = found(0).ok_or_else(short)?;
        if version != 1 {
            return Err(Error::corrupt(format!("expected an MGH header of version 1, found {version}")));
        }
        let sizes: Option<Vec<u64>> = [4, 8, 12, 16]
            .map(|at| found(at).and_then(|n| u64::try_from(n).ok()).filter(|&n| n > 0))
            .into_iter()
            .collect();
        let mut sizes =
            sizes.ok_or_else(|| Error::corrupt("expected sizes of at least 1 in an MGH header"))?;
        // One frame is no axis.
        sizes.truncate(if sizes[3] == 1 { 3 } else { 4 });
        let element = match found(20).ok_or_else(short)? {
            0 => ElementType::U8,
            1 => ElementType::I32,
            3 => ElementType::F32,
            4 => ElementType::I16,
            10 => ElementType::U16,
            other => {
                return Err(Error::unsupported(format!(
                    "expected an MGH type of bytes, integers or floats (0, 1, 3, 4 or 10), found {other}"
                )));
            }
        };
        let float = |at: usize| f32::from_bits(i32_at(head, at).unwrap_or(0).cast_unsigned());
        let three = |at: usize| [float(at), float(at + 4), float(at + 8)];
        let has_space = head[28..30] != [0, 0];
        let mut header = Self {
            dtype: DType::new(element, ByteOrder::Big),
            sizes,
            steps: [1.0; 3],
            directions: CORONAL,
            middle: [0.0; 3],
            has_space,
        };
        if has_space {
            header.steps = three(30);
            header.directions = [three(42), three(54), three(66)];
            header.middle = three(78);
        }
        let [a, b, c] = header.directions;
        if [header.steps, header.middle, a, b, c].iter().flatten().all(|v| v.is_finite()) {
            return Ok(header);
        }
        Err(Error::corrupt("expected finite numbers for the space of an MGH header"))
    }

    fn axes(&self) -> Vec<Axis> {
        const NAMES: [(&str, AxisKind); 4] =
            [("x", AxisKind::X), ("y", AxisKind::Y), ("z", AxisKind::Z), ("t", AxisKind::Time)];
        let axis = |number: usize| {
            let (name, kind) = NAMES[number];
            let mut axis = Axis::new(name, kind);
            if let Some(&step) = self.steps.get(number).filter(|&&step| step > 0.0) {
                axis.units = "mm".into();
                axis.coordinates = Coordinates::Regular { origin: 0.0, step: f64::from(step) };
            }
            axis
        };
        (0..self.sizes.len()).rev().map(axis).collect()
    }

    /// Replaces a degenerate world space of the file by FreeSurfer's default, with a warning.
    fn repair_space(&mut self) -> Vec<String> {
        if describe::is_drawable(&self.world_from_voxel(), [self.sizes[0], self.sizes[1], self.sizes[2]]) {
            return Vec::new();
        }
        (self.steps, self.directions) = ([1.0; 3], CORONAL);
        vec!["the directions of the axes lay voxels over each other and are passed over".to_owned()]
    }

    /// Map with steps along the directions and the center of the volume at its position.
    #[expect(clippy::cast_precision_loss, reason = "sizes of 31 bits")]
    fn world_from_voxel(&self) -> [[f64; 4]; 3] {
        [0, 1, 2].map(|row| {
            // Multiplied in single precision, as nibabel does.
            let along = [0, 1, 2].map(|axis| f64::from(self.directions[axis][row] * self.steps[axis]));
            let half: f64 =
                along.iter().zip(&self.sizes).map(|(step, &n)| step * n as f64).sum::<f64>() / 2.0;
            [along[0], along[1], along[2], f64::from(self.middle[row]) - half]
        })
    }
}

fn i32_at(head: &[u8], at: usize) -> Option<i32> {
    let bytes = head.get(at..at + 4)?;
    Some(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[cfg(test)]
mod tests {
    use array::{ErrorKind, Selection, Target};
    use proptest::prelude::*;

    use super::*;
    use crate::{CancelFlag, Format};

    fn header(sizes: [i32; 4], kind: i32) -> Vec<u8> {
        let mut bytes = vec![0; 284];
        let words = [1, sizes[0], sizes[1], sizes[2], sizes[3], kind];
        for (place, word) in words.into_iter().enumerate() {
            bytes[4 * place..][..4].copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    fn open_bytes(name: &str, bytes: &[u8]) -> Result<FlatFile> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        open(FileBytes::open(&path).unwrap(), &OpenOptions::default())
    }

    #[test]
    fn packed_and_plain_files_say_the_same() {
        let mut plain = header([2, 3, 4, 1], 4);
        plain[29] = 1;
        let floats = [2.0f32, 3.0, 4.0, -1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0, 10.0, 20.0, 30.0];
        for (place, value) in floats.into_iter().enumerate() {
            plain[30 + 4 * place..][..4].copy_from_slice(&value.to_be_bytes());
        }
        let data: Vec<u8> = (0..48).collect();
        plain.extend(&data);
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut packer, &plain).unwrap();
        for file in
            [open_bytes("a.mgh", &plain).unwrap(), open_bytes("a.mgz", &packer.finish().unwrap()).unwrap()]
        {
            let dataset = file.dataset();
            let info = &dataset.arrays[0];
            assert_eq!((info.shape(), info.dtype.to_string().as_str()), (&[4, 3, 2][..], ">i2"));
            let map = info.levels[0].world_from_voxel.0;
            assert_eq!(map, [[-2.0, 0.0, 0.0, 12.0], [0.0, 0.0, 4.0, 12.0], [0.0, -3.0, 0.0, 34.5]]);
            let (target, region) = Target::new(&[4, 3, 2], 2).unwrap();
            file.read(0, 0, &Selection::all(&[4, 3, 2]), region, &CancelFlag::default()).unwrap();
            assert_eq!(target.into_vec().unwrap(), data);
        }
    }

    #[test]
    fn directions_of_zero_are_passed_over() {
        let mut bytes = header([2, 3, 4, 1], 0);
        bytes[29] = 1;
        bytes.extend([0; 24]);
        let file = open_bytes("a.mgh", &bytes).unwrap();
        let dataset = file.dataset();
        let map = dataset.arrays[0].levels[0].world_from_voxel.0;
        assert_eq!(map, [[-1.0, 0.0, 0.0, 1.0], [0.0, 0.0, -1.0, 2.0], [0.0, 1.0, 0.0, -1.5]]);
        assert!(dataset.warnings[0].contains("directions"), "{:?}", dataset.warnings);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (bytes, kind, words) in [
            (header([2, 2, 2, 1], 2), ErrorKind::Unsupported, "found 2"),
            (header([2, 0, 2, 1], 0), ErrorKind::Corrupt, "at least 1"),
            (header([2, 2, -2, 1], 0), ErrorKind::Corrupt, "at least 1"),
            (header([9, 9, 9, 9], 0), ErrorKind::Corrupt, "cut short"),
            (header([i32::MAX; 4], 3), ErrorKind::Corrupt, "2^63"),
            (vec![0; 284], ErrorKind::Corrupt, "version 1"),
            (vec![0; 20], ErrorKind::Corrupt, "90 bytes"),
        ] {
            let error = open_bytes("a.mgh", &bytes).map(drop).unwrap_err();
            assert_eq!(error.kind(), kind, "{words}: {error}");
            assert!(error.to_string().contains(words), "{words}: {error}");
        }
    }

    proptest! {
        #[test]
        fn mutated_headers_never_panic(changes in prop::collection::vec((0usize..90, any::<u8>()), 0..20), size in 0usize..300) {
            let mut bytes = header([2, 3, 4, 1], 4);
            changes.into_iter().for_each(|(at, byte)| bytes[at] = byte);
            if let Ok(header) = MghHeader::parse(&bytes[..size.min(284)]) {
                prop_assert!(header.world_from_voxel().iter().flatten().all(|v| !v.is_nan()));
            }
        }
    }
}
