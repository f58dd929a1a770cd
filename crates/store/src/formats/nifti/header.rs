//! Binary header of NIfTI-1, NIfTI-2 and Analyze 7.5, in either byte order.
//!
//! Unusual headers are read as nibabel reads them: world space, scaling, repairs of sizes of voxels.

use array::{ByteOrder, DType, ElementType, Error, Result};

use super::world::{self, WorldOrigin};
use crate::formats::common::describe;

/// Type of the voxels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NiftiType {
    Numbers(DType),
    /// Colors of 3 or 4 bytes: red, green, blue, and with four also opacity.
    Colors(u64),
    /// Pairs of floats of this type: real and imaginary part.
    Complex(DType),
    /// Type that cannot be served as an array of numbers, with the reason.
    Other(&'static str),
}

/// A header that was understood. Axes in the file's order, fastest first.
#[derive(Clone, Debug)]
pub(super) struct NiftiHeader {
    pub(super) stored: NiftiType,
    pub(super) sizes: Vec<u64>,
    /// Distance between voxels along each axis.
    pub(super) steps: Vec<f64>,
    /// Offset of the first voxel, bytes.
    pub(super) offset: u64,
    pub(super) scaling: NiftiScaling,
    units: u8,
    pub(super) time_offset: f64,
    pub(super) intent_code: i64,
    /// Axes of frequency, phase and slice encoding, counted from 1; 0 if not set.
    pub(super) encoded: [u8; 3],
    pub(super) display_range: (f64, f64),
    pub(super) description: String,
    pub(super) aux_file: String,
    pub(super) intent_name: String,
    /// x, y, z of the world for voxel x, y, z.
    pub(super) world_from_voxel: [[f64; 4]; 3],
    /// Whether the header says how the voxels lie in the person, instead of only their sizes.
    pub(super) is_oriented: bool,
    /// Parts of the header that were ignored, and why.
    pub(super) warnings: Vec<String>,
    /// The voxels lie in a file of their own.
    pub(super) is_pair: bool,
    pub(super) version: NiftiVersion,
}

/// Scaling of stored values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NiftiScaling {
    None,
    By {
        slope: f64,
        intercept: f64,
    },
    /// A slope that means something beside an intercept that is no number.
    Broken,
}

/// Versions of the header. Their fields differ in position and width, a few of them in meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NiftiVersion {
    /// Analyze 7.5: as NIfTI-1 was laid over it, without magic and orientation.
    Analyze,
    One,
    Two,
}

/// Fields of a header, read by their offsets. Methods that take two offsets take the one of version 1 (`One`)
/// first.
struct NiftiFields<'a> {
    head: &'a [u8],
    version: NiftiVersion,
    order: ByteOrder,
}

impl NiftiFields<'_> {
    fn number(&self, element: ElementType, at: usize) -> f64 {
        let size = element.size_bytes();
        let raw = self.head.get(at..at + size).unwrap_or_default();
        DType::new(element, self.order).scalar_at(raw, 0).map_or(0.0, array::Scalar::as_f64)
    }

    /// A float: single precision in version 1, double in version 2.
    fn float(&self, one: usize, two: usize) -> f64 {
        match self.version {
            NiftiVersion::Analyze | NiftiVersion::One => self.number(ElementType::F32, one),
            NiftiVersion::Two => self.number(ElementType::F64, two),
        }
    }

    /// Entry `i` of a list of floats.
    fn float_of(&self, one: usize, two: usize, i: usize) -> f64 {
        self.float(one + 4 * i, two + 8 * i)
    }

    /// A code: 16 bits in version 1, 32 in version 2.
    #[expect(clippy::cast_possible_truncation, reason = "at most 32 bits")]
    fn code(&self, one: usize, two: usize) -> i64 {
        match self.version {
            NiftiVersion::Analyze | NiftiVersion::One => self.number(ElementType::I16, one) as i64,
            NiftiVersion::Two => self.number(ElementType::I32, two) as i64,
        }
    }

    /// The type of voxels: 16 bits in every version.
    #[expect(clippy::cast_possible_truncation, reason = "16 bits")]
    fn datatype(&self) -> i64 {
        self.number(ElementType::I16, if self.version == NiftiVersion::Two { 12 } else { 70 }) as i64
    }

    #[expect(clippy::cast_possible_truncation, reason = "saturates; sizes are checked by the caller")]
    fn size(&self, i: usize) -> i64 {
        match self.version {
            NiftiVersion::Analyze | NiftiVersion::One => self.number(ElementType::I16, 40 + 2 * i) as i64,
            NiftiVersion::Two => self.number(ElementType::I64, 16 + 8 * i) as i64,
        }
    }

    fn text(&self, one: usize, two: usize, length: usize) -> String {
        let at = if self.version == NiftiVersion::Two { two } else { one };
        let raw = self.head.get(at..at + length).unwrap_or_default();
        let end = raw.iter().position(|&b| b == 0).unwrap_or(raw.len());
        String::from_utf8_lossy(&raw[..end]).trim().to_owned()
    }
}

impl NiftiHeader {
    /// The version and byte order of the NIfTI header at the start of `head`.
    pub(super) fn version(head: &[u8]) -> Option<(NiftiVersion, ByteOrder)> {
        if let Some(b"n+2\0" | b"ni2\0") = head.get(4..8) {
            return order_by_size(head, 540).map(|order| (NiftiVersion::Two, order));
        }
        let magic = head.get(344..348)?;
        // Programs leave the size of the header out, but not the magic.
        let order = order_by_size(head, 348).or_else(|| order_by_dimensions(head));
        order.filter(|_| magic == b"n+1\0" || magic == b"ni1\0").map(|order| (NiftiVersion::One, order))
    }

    /// Returns the byte order of an Analyze header at the start of `head`: it has no signature except its size, so the name of the file must
    /// indicate it.
    fn analyze(head: &[u8]) -> Option<(NiftiVersion, ByteOrder)> {
        order_by_size(head, 348).map(|order| (NiftiVersion::Analyze, order))
    }

    /// Reads the header at the start of `head`. `may_be_analyze`: the name of the file is that of a header.
    pub(super) fn parse(head: &[u8], may_be_analyze: bool) -> Result<Self> {
        let found = Self::version(head).or_else(|| Self::analyze(head).filter(|_| may_be_analyze));
        let Some((version, order)) = found else {
            return Err(Error::corrupt(
                "expected a NIfTI header of 348 or 540 bytes with the magic `n+1`, `ni1`, `n+2` or `ni2`, or in `NAME.hdr` one of Analyze",
            ));
        };
        let length = if version == NiftiVersion::Two { 540 } else { 348 };
        if head.len() < length {
            return Err(Error::corrupt(format!("expected a header of {length} bytes, found {}", head.len())));
        }
        let f = NiftiFields { head, version, order };
        let sizes = sizes(&f)?;
        let is_pair = match version {
            NiftiVersion::Analyze => true,
            NiftiVersion::One => head[345] == b'i',
            NiftiVersion::Two => head[5] == b'i',
        };
        let mut warnings = Vec::new();
        let offset = offset(&f, is_pair, &mut warnings)?;
        let place = HeaderTransforms::read(&f, &sizes);
        let is_nifti = version != NiftiVersion::Analyze;
        let world_from_voxel = place.world_from_voxel(&mut warnings);
        Ok(Self {
            stored: stored(f.datatype(), order)?,
            steps: (0..sizes.len()).map(|i| f.float_of(76, 104, i + 1)).collect(),
            offset,
            scaling: if is_nifti { scaling(&f) } else { analyze_scaling(&f) },
            units: if is_nifti { byte_of(&f, 123, 500) } else { 0 },
            time_offset: Some(f.float(136, 216)).filter(|v| is_nifti && v.is_finite()).unwrap_or(0.0),
            intent_code: if is_nifti { f.code(68, 504) } else { 0 },
            encoded: [0, 2, 4].map(|bit| if is_nifti { byte_of(&f, 39, 524) >> bit & 3 } else { 0 }),
            display_range: (f.float(128, 200), f.float(124, 192)),
            description: f.text(148, 240, 80),
            aux_file: f.text(228, 320, 24),
            intent_name: if is_nifti { f.text(328, 508, 16) } else { String::new() },
            is_oriented: place.is_oriented(&world_from_voxel),
            world_from_voxel,
            warnings,
            sizes,
            is_pair,
            version,
        })
    }

    pub(super) fn space_units(&self) -> &'static str {
        match self.units & 7 {
            1 => "m",
            2 => "mm",
            3 => "um",
            _ => "",
        }
    }

    pub(super) fn time_units(&self) -> &'static str {
        match self.units & 0x38 {
            8 => "s",
            16 => "ms",
            24 => "us",
            32 => "Hz",
            40 => "ppm",
            48 => "rad/s",
            _ => "",
        }
    }
}

/// World space as the header gives it.
struct HeaderTransforms {
    /// Sizes of voxels along x, y, z, and 1 or -1 in front: the handedness of the quaternion form.
    steps: [f64; 4],
    /// Elements along x, y, z.
    sizes: [u64; 3],
    quaternion: Option<([f64; 3], [f64; 3])>,
    rows: Option<[[f64; 4]; 3]>,
    origin: WorldOrigin,
}

impl HeaderTransforms {
    fn read(f: &NiftiFields<'_>, sizes: &[u64]) -> Self {
        let is_nifti = f.version != NiftiVersion::Analyze;
        // Undefined codes count as none.
        let is_known = |code: i64| is_nifti && (1..=5).contains(&code);
        // Beyond the dimensions there are, sizes of voxels mean nothing.
        let step = |i: usize| if i <= sizes.len() { f.float_of(76, 104, i) } else { 1.0 };
        let by_origin = [0, 1, 2].map(|i| f.number(ElementType::I16, 253 + 2 * i));
        Self {
            steps: [0, 1, 2, 3].map(step),
            sizes: [0, 1, 2].map(|i| sizes.get(i).copied().unwrap_or(1)),
            quaternion: is_known(f.code(252, 344)).then(|| {
                ([0, 1, 2].map(|i| f.float_of(256, 352, i)), [0, 1, 2].map(|i| f.float_of(268, 376, i)))
            }),
            rows: is_known(f.code(254, 348))
                .then(|| [0, 1, 2].map(|row| [0, 1, 2, 3].map(|i| f.float_of(280, 400, 4 * row + i)))),
            origin: if is_nifti { WorldOrigin::Middle } else { WorldOrigin::Voxel(by_origin) },
        }
    }

    /// Whether this map is that of a form in the header.
    fn is_oriented(&self, map: &[[f64; 4]; 3]) -> bool {
        self.rows.as_ref() == Some(map)
            || self.quaternion.is_some() && self.by_quaternion().as_ref() == Some(map)
    }

    fn by_quaternion(&self) -> Option<[[f64; 4]; 3]> {
        let steps = world::repaired([self.steps[1], self.steps[2], self.steps[3]]);
        let (vector, origin) = self.quaternion?;
        let handedness = if self.steps[0] < 0.0 { -1.0 } else { 1.0 };
        world::by_quaternion(vector, origin, steps, handedness)
    }

    /// The affine map that nibabel takes: the sform, else the qform, else sizes of voxels about the middle, x to the left. A form that
    /// nothing can be drawn by is passed over, which nibabel takes as it is.
    fn world_from_voxel(&self, warnings: &mut Vec<String>) -> [[f64; 4]; 3] {
        if let Some(rows) = self.rows {
            if describe::is_drawable(&rows, self.sizes) {
                return rows;
            }
            let is_known = rows.iter().flatten().all(|v| v.is_finite());
            let why =
                if is_known { "lays voxels over each other" } else { "has entries that are no numbers" };
            warnings.push(format!("the sform {why} and is passed over"));
        }
        if self.quaternion.is_some() {
            if let Some(map) = self.by_quaternion() {
                return map;
            }
            warnings.push("the qform's quaternion is none of a rotation and is passed over".into());
        }
        let steps = world::repaired([self.steps[1], self.steps[2], self.steps[3]]);
        world::by_steps(steps, self.sizes, self.origin)
    }
}

fn order_by_size(head: &[u8], bytes: u32) -> Option<ByteOrder> {
    match head.get(..4)? {
        s if s == bytes.to_le_bytes() => Some(ByteOrder::Little),
        s if s == bytes.to_be_bytes() => Some(ByteOrder::Big),
        _ => None,
    }
}

/// Finds the byte order by the number of dimensions, which is small in one order only.
fn order_by_dimensions(head: &[u8]) -> Option<ByteOrder> {
    match *head.get(40..42)? {
        [1..=7, 0] => Some(ByteOrder::Little),
        [0, 1..=7] => Some(ByteOrder::Big),
        _ => None,
    }
}

fn sizes(f: &NiftiFields<'_>) -> Result<Vec<u64>> {
    let count = f.size(0);
    let Some(count) = usize::try_from(count).ok().filter(|n| (1..=7).contains(n)) else {
        return Err(Error::corrupt(format!("expected 1 to 7 dimensions, found {count}")));
    };
    let sizes: Vec<i64> = (1..=count).map(|i| f.size(i)).collect();
    let of_surface = if f.version == NiftiVersion::One { surface(f, &sizes)? } else { None };
    sizes
        .iter()
        .enumerate()
        .map(|(i, &size)| match of_surface {
            Some(vertices) if i < 3 => Ok(if i == 0 { vertices } else { 1 }),
            _ => u64::try_from(size)
                .map_err(|_| Error::corrupt(format!("expected a size of at least 0, found {size}"))),
        })
        .collect()
}

/// Number of vertices of a surface, which FreeSurfer writes as one long row: beyond 16 bits, the length is in another field, or three
/// sizes together are that of its finest sphere.
#[expect(clippy::cast_possible_truncation, reason = "32 bits")]
fn surface(f: &NiftiFields<'_>, sizes: &[i64]) -> Result<Option<u64>> {
    match sizes {
        [-1, 1, 1, ..] => {
            let length = f.number(ElementType::I32, 144) as i64;
            u64::try_from(length).ok().filter(|&n| n > 0).map(Some).ok_or_else(|| {
                Error::corrupt(format!(
                    "expected the length of a row in the field `glmin` where the first size is -1, found {length}"
                ))
            })
        }
        [27307, 1, 6, ..] => Ok(Some(163_842)),
        _ => Ok(None),
    }
}

fn stored(code: i64, order: ByteOrder) -> Result<NiftiType> {
    use ElementType::{F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    let element = match code {
        2 => U8,
        4 => I16,
        8 => I32,
        16 => F32,
        64 => F64,
        256 => I8,
        512 => U16,
        768 => U32,
        1024 => I64,
        1280 => U64,
        32 => return Ok(NiftiType::Complex(DType::new(F32, order))),
        1792 => return Ok(NiftiType::Complex(DType::new(F64, order))),
        128 => return Ok(NiftiType::Colors(3)),
        2304 => return Ok(NiftiType::Colors(4)),
        1 => {
            return Ok(NiftiType::Other(
                "single bits (datatype 1), whose order within bytes no standard says",
            ));
        }
        1536 => {
            return Ok(NiftiType::Other(
                "floats of 128 bits (datatype 1536), whose layout depends on the machine that wrote them",
            ));
        }
        2048 => {
            return Ok(NiftiType::Other(
                "complex numbers of 256 bits (datatype 2048), whose layout depends on the machine that wrote them",
            ));
        }
        _ => return Err(Error::corrupt(format!("expected a NIfTI datatype, found {code}"))),
    };
    Ok(NiftiType::Numbers(DType::new(element, order)))
}

/// Version 1 writes the offset as a float.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a whole number in range"
)]
fn offset(f: &NiftiFields<'_>, is_pair: bool, warnings: &mut Vec<String>) -> Result<u64> {
    let offset = match f.version {
        NiftiVersion::Analyze | NiftiVersion::One => f.number(ElementType::F32, 108),
        NiftiVersion::Two => f.number(ElementType::I64, 168),
    };
    let least = match (is_pair, f.version) {
        (true, _) => 0.0,
        (false, NiftiVersion::Analyze | NiftiVersion::One) => 352.0,
        (false, NiftiVersion::Two) => 544.0,
    };
    // Zero in a single file is an old habit for "right after the header", which programs read in several ways.
    let is_habit = offset == 0.0 && !is_pair;
    if is_habit {
        warnings.push(format!(
            "the header names byte 0, which is its own, as the place of the voxels: they are read from byte {least} on, right behind it"
        ));
    }
    let offset = if is_habit { least } else { offset };
    if offset >= least && offset.fract() == 0.0 && offset < 9e15 {
        return Ok(offset as u64);
    }
    Err(Error::corrupt(format!("expected a whole data offset from {least} on, found {offset}")))
}

/// A slope of zero or one that is no number means no scaling, as nibabel reads it.
fn scaling(f: &NiftiFields<'_>) -> NiftiScaling {
    let (slope, intercept) = (f.float(112, 176), f.float(116, 184));
    if slope == 0.0 || !slope.is_finite() {
        return NiftiScaling::None;
    }
    if intercept.is_finite() { NiftiScaling::of(slope, intercept) } else { NiftiScaling::Broken }
}

/// Scaling that SPM wrote into Analyze headers; else that of the ranges of stored and of scaled values, if both are present.
fn analyze_scaling(f: &NiftiFields<'_>) -> NiftiScaling {
    let (slope, intercept) = (f.float(112, 176), f.float(116, 184));
    if slope != 0.0 && slope.is_finite() {
        return NiftiScaling::of(slope, if intercept.is_finite() { intercept } else { 0.0 });
    }
    let (high, low) = (f.float(124, 192), f.float(128, 200));
    let (stored_high, stored_low) = (f.number(ElementType::I32, 140), f.number(ElementType::I32, 144));
    let (meant, stored) = (high - low, stored_high - stored_low);
    if meant == 0.0 || stored == 0.0 || !meant.is_finite() {
        return NiftiScaling::None;
    }
    NiftiScaling::of(meant / stored, low - meant / stored * stored_low)
}

impl NiftiScaling {
    fn of(slope: f64, intercept: f64) -> Self {
        #[expect(clippy::float_cmp, reason = "exactly 1 and 0 mean absent")]
        let neutral = slope == 1.0 && intercept == 0.0;
        if neutral { Self::None } else { Self::By { slope, intercept } }
    }
}

/// One byte of flags; 32 bits in version 2.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "one byte of flags")]
fn byte_of(f: &NiftiFields<'_>, one: usize, two: usize) -> u8 {
    match f.version {
        NiftiVersion::Analyze | NiftiVersion::One => f.head[one],
        NiftiVersion::Two if two == 524 => f.head[two],
        NiftiVersion::Two => f.number(ElementType::I32, two) as u8,
    }
}
