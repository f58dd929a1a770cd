//! Arrays of categories instead of quantities: their coarser levels are modes, and their values are not interpolated.
//!
//! A format states it if it can: the intent of NIfTI, `image-label` of OME-Zarr, `flag_values` of CF, the kinds of axes of
//! CIFTI. Otherwise the name decides, for integers over at least two axes of space without scaling and without units: one of the
//! usual words for segmentations ([`WORDS`]). Values are not examined. A test image, a phantom or a thresholded scan has few
//! values and sharp borders as a segmentation has, and the values of a segmentation of neurons are many: a rule by values would
//! fail for both, would have to decompress files before they are described, and servers of the same file could disagree. The
//! choice of a person overrides all of these ([`crate::OpenOptions::meaning`]).

use std::sync::Arc;

use array::{
    ArrayInfo, Attribute, Dataset, DatasetId, ElementType, Meaning, PackedChunk, Priority, Region, Result,
    Scalar, Selection,
};
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::io::window::FlatSource;
use crate::{Access, CancelFlag, Format};

/// Words of the names of arrays of categories. Not `mask`: the mean of a mask is the share that it covers.
const WORDS: &[&str] = &[
    "annotation",
    "annotations",
    "aparc",
    "aseg",
    "dseg",
    "instances",
    "label",
    "labelmap",
    "labelmaps",
    "labels",
    "masks",
    "parc",
    "parcellation",
    "seg",
    "segmentation",
    "segmentations",
    "segs",
    "superpixels",
    "supervoxels",
    "wmparc",
];

/// Format with the meaning of its arrays set by a person or by their names.
pub(crate) struct FormatWithMeaning {
    inner: Arc<dyn Format>,
    chosen: Option<Meaning>,
    /// Last description of the format, and the one that was made of it.
    last: Mutex<(Arc<Dataset>, Arc<Dataset>)>,
}

impl FormatWithMeaning {
    /// Wraps a format; returns `inner` itself if no array changes its meaning.
    pub(crate) fn over(inner: Arc<dyn Format>, chosen: Option<Meaning>) -> Arc<dyn Format> {
        let stored = inner.dataset();
        let meant = with_meanings(&stored, chosen);
        if chosen.is_none() && Arc::ptr_eq(&stored, &meant) {
            return inner;
        }
        Arc::new(Self { inner, chosen, last: Mutex::new((stored, meant)) })
    }
}

/// The description with other meanings; the same where none changes.
fn with_meanings(stored: &Arc<Dataset>, chosen: Option<Meaning>) -> Arc<Dataset> {
    let mut dataset = Dataset::clone(stored);
    let (mut has_changed, mut is_otherwise) = (false, false);
    for (array, now) in stored.arrays.iter().zip(&mut dataset.arrays) {
        let by_itself = if is_named_as_labels(stored, array) { Meaning::Labels } else { array.meaning };
        // Strings are bytes along an axis; the choice of a person does not change that.
        let is_asked = array.axes.len() > 1 && array.meaning != Meaning::Text;
        now.meaning = chosen.filter(|_| is_asked).unwrap_or(by_itself);
        is_otherwise |= now.meaning != by_itself;
        has_changed |= now.meaning != array.meaning || is_otherwise;
    }
    if !has_changed {
        return Arc::clone(stored);
    }
    if let (Some(chosen), true) = (chosen, is_otherwise) {
        // Its levels differ from those of the same file without a choice.
        let chosen: &[u8] = if chosen == Meaning::Labels { b"labels" } else { b"intensity" };
        dataset.id = DatasetId::of([&dataset.id.0.to_le_bytes()[..], chosen]);
    }
    Arc::new(dataset)
}

/// The rule by names; see the module's text.
fn is_named_as_labels(dataset: &Dataset, array: &ArrayInfo) -> bool {
    use ElementType::{Bool, F16, F32, F64};
    let is_whole = !matches!(array.dtype.element(), Bool | F16 | F32 | F64);
    let is_scaled = array.decoding.scale.to_bits() != 1f64.to_bits() || array.decoding.offset != 0.0;
    let in_space = array.axes.iter().zip(array.shape()).filter(|(axis, n)| axis.kind.is_spatial() && **n > 1);
    let has_colors = array.attributes.contains_key("channels");
    // A quantity to which the file gives another meaning.
    let is_other = matches!(array.attributes.get("intent_code").or_else(|| dataset.attributes.get("intent_code")),
        Some(Attribute::Number(Scalar::Signed(code), _)) if *code != 0);
    if !is_whole || is_scaled || !array.units.is_empty() || in_space.count() < 2 || has_colors || is_other {
        return false;
    }
    let own = array.name.rsplit('/').next().unwrap_or_default();
    // Formats of one image call it so; the file's name is then its name, unless it may speak of other arrays in the file.
    let has_labels = || dataset.arrays.iter().any(|array| array.meaning == Meaning::Labels);
    let is_named_by_file = matches!(own, "" | "image" | "data") && !has_labels();
    let name = if is_named_by_file { dataset.name.as_str() } else { own };
    words(name).any(|word| WORDS.contains(&word.as_str()))
}

/// Words of a name: cut where neither letters nor digits stand, and where a small letter is followed by a large one; without
/// the digits that number them. `seg3D` (a program's name) is one word, and not `seg`.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (was_small && c.is_uppercase()) {
            words.push(String::new());
        }
        was_small = c.is_lowercase();
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words.into_iter().map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned())
}

#[deny(clippy::missing_trait_methods, reason = "every method of the format must be forwarded")]
impl Format for FormatWithMeaning {
    fn dataset(&self) -> Arc<Dataset> {
        let stored = self.inner.dataset();
        let mut last = self.last.lock();
        if !Arc::ptr_eq(&last.0, &stored) {
            *last = (Arc::clone(&stored), with_meanings(&stored, self.chosen));
        }
        Arc::clone(&last.1)
    }

    fn access(&self, array: u32) -> Access {
        self.inner.access(array)
    }

    fn covers(&self, array: u32, level: u8, selection: &Selection) -> bool {
        self.inner.covers(array, level, selection)
    }

    fn waits_for_others(&self) -> bool {
        self.inner.waits_for_others()
    }

    fn prepare(&self, array: u32, priority: Priority) -> Option<BoxFuture<'static, Result<()>>> {
        self.inner.prepare(array, priority)
    }

    fn flat(&self, array: u32, level: u8) -> Option<FlatSource> {
        self.inner.flat(array, level)
    }

    fn packed(
        &self,
        array: u32,
        level: u8,
        selection: &Selection,
        cancel: &CancelFlag,
    ) -> Result<Option<PackedChunk>> {
        self.inner.packed(array, level, selection, cancel)
    }

    fn read(
        &self,
        array: u32,
        level: u8,
        selection: &Selection,
        into: Region,
        cancel: &CancelFlag,
    ) -> Result<()> {
        self.inner.read(array, level, selection, into, cancel)
    }
}

#[cfg(test)]
mod tests {
    use array::{LevelOrigin, Source};

    use super::*;
    use crate::{OpenOptions, open, open_format};

    /// Opens a NumPy file of 2 x 70 x 80 elements of this type under this name.
    fn opened(name: &str, kind: &str, meaning: Option<Meaning>) -> (Meaning, DatasetId, LevelOrigin) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (2, 70, 80)}}\n");
        let size: usize = kind[2..].parse().unwrap();
        let mut bytes = b"\x93NUMPY\x01\0".to_vec();
        bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len() + 11_200 * size, 0);
        std::fs::write(&path, bytes).unwrap();
        let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(9);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        let options = OpenOptions { meaning, ..OpenOptions::default() };
        let source = open(&path.to_string_lossy(), &options).unwrap();
        let dataset = futures::executor::block_on(source.describe()).unwrap();
        let by_format = open_format(&path.to_string_lossy(), &options).unwrap().dataset();
        assert_eq!(by_format.arrays[0].meaning, dataset.arrays[0].meaning);
        (dataset.arrays[0].meaning, dataset.id, dataset.arrays[0].levels[1].origin)
    }

    #[test]
    fn whole_numbers_named_as_segmentations_have_modes_for_levels() {
        for name in [
            "labels_u16.npy",
            "case7-seg.npy",
            "sub-01_dseg.npy",
            "aparc+aseg.npy",
            "LabelMap2.npy",
            "brainSeg.npy",
            "seg01.npy",
            "a.labels.npy",
        ] {
            for kind in ["|u1", "<u2", ">i4", "<u8"] {
                let (meaning, _, origin) = opened(name, kind, None);
                assert_eq!((meaning, origin), (Meaning::Labels, LevelOrigin::Mode), "{name} {kind}");
            }
            for kind in ["<f4", "|b1"] {
                assert_eq!(opened(name, kind, None).0, Meaning::Intensity, "{name} {kind}");
            }
        }
        for name in [
            "ct.npy",
            "mask01.npy",
            "segment.npy",
            "labelled-water.npy",
            "segway.npy",
            "unlabel.npy",
            "seg3D_MR.npy",
        ] {
            assert_eq!(opened(name, "|u1", None).0, Meaning::Intensity, "{name}");
        }
    }

    fn dataset(name: &str, arrays: Vec<ArrayInfo>) -> Arc<Dataset> {
        Arc::new(Dataset {
            id: DatasetId(1),
            generation: array::Generation(0),
            name: name.into(),
            format: "Zarr".into(),
            arrays,
            attributes: array::Attributes::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
            groups: Vec::new(),
        })
    }

    #[test]
    fn texts_stay_texts_whatever_a_person_says() {
        let stored =
            dataset("stations.nc", vec![crate::formats::common::text::array("names", &[3, 8], &[], None)]);
        assert!(Arc::ptr_eq(&with_meanings(&stored, Some(Meaning::Labels)), &stored));
    }

    #[test]
    fn an_image_beside_labels_is_not_named_by_its_file() {
        let image = |name: &str| {
            let dtype = array::DType::native(ElementType::U8);
            crate::formats::common::describe::array(
                name,
                dtype,
                crate::formats::common::describe::guessed_axes(3),
                &[4, 5, 6],
                None,
            )
        };
        let cells = ArrayInfo { meaning: Meaning::Labels, ..image("labels/cells") };
        let both = with_meanings(&dataset("labels.zarr", vec![image("image"), cells]), None);
        assert_eq!(both.arrays[0].meaning, Meaning::Intensity);
        let alone = with_meanings(&dataset("labels.zarr", vec![image("image")]), None);
        assert_eq!(alone.arrays[0].meaning, Meaning::Labels);
    }

    #[test]
    fn a_person_decides() {
        let (meaning, id, origin) = opened("ct.npy", "<i2", Some(Meaning::Labels));
        assert_eq!((meaning, origin), (Meaning::Labels, LevelOrigin::Mode));
        assert_ne!(id, opened("ct.npy", "<i2", None).1, "its levels are others");
        assert_eq!(id, opened("ct.npy", "<i2", Some(Meaning::Labels)).1);
        let by_name = opened("labels.npy", "|u1", None).1;
        assert_eq!(by_name, opened("labels.npy", "|u1", Some(Meaning::Labels)).1, "it is what the name says");
        assert_ne!(by_name, opened("labels.npy", "|u1", Some(Meaning::Intensity)).1, "its levels are others");
        let (meaning, _, origin) = opened("labels.npy", "|u1", Some(Meaning::Intensity));
        assert_eq!((meaning, origin), (Meaning::Intensity, LevelOrigin::Mean));
    }
}
