//! The binary header of NIfTI-1 and NIfTI-2, in either byte order.

use array::{ByteOrder, DType, ElementType, Error, Result};

/// What the voxels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    Numbers(DType),
    /// Something that is no array of numbers.
    Other(&'static str),
}

/// A header that was understood. Axes in the file's order, fastest first.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) stored: Stored,
    pub(super) sizes: Vec<u64>,
    /// Distance between voxels along each axis.
    pub(super) steps: Vec<f64>,
    /// Handedness of the voxels' own axes in the quaternion form: 1 or -1.
    handedness: f64,
    /// Of the first voxel, bytes.
    pub(super) offset: u64,
    /// Slope and intercept, where there are any.
    pub(super) scaling: Option<(f64, f64)>,
    units: u8,
    pub(super) time_offset: f64,
    pub(super) intent_code: i64,
    pub(super) display_range: (f64, f64),
    pub(super) description: String,
    pub(super) aux_file: String,
    pub(super) intent_name: String,
    quaternion: Option<([f64; 3], [f64; 3])>,
    rows: Option<[[f64; 4]; 3]>,
    /// The voxels lie in a file of their own.
    pub(super) is_pair: bool,
}

/// The two layouts. Their fields differ in place and width, not in meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// Where fields lie; `One` on the left.
struct Fields<'a> {
    head: &'a [u8],
    version: Version,
    order: ByteOrder,
}

impl Fields<'_> {
    fn number(&self, element: ElementType, at: usize) -> f64 {
        let size = element.size_bytes();
        let raw = self.head.get(at..at + size).unwrap_or_default();
        DType::new(element, self.order).scalar_at(raw, 0).map_or(0.0, array::Scalar::as_f64)
    }

    /// A float: single precision in version 1, double in version 2.
    fn float(&self, one: usize, two: usize) -> f64 {
        match self.version {
            Version::One => self.number(ElementType::F32, one),
            Version::Two => self.number(ElementType::F64, two),
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
            Version::One => self.number(ElementType::I16, one) as i64,
            Version::Two => self.number(ElementType::I32, two) as i64,
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "saturates; sizes are checked by the caller")]
    fn size(&self, i: usize) -> i64 {
        match self.version {
            Version::One => self.number(ElementType::I16, 40 + 2 * i) as i64,
            Version::Two => self.number(ElementType::I64, 16 + 8 * i) as i64,
        }
    }

    fn text(&self, one: usize, two: usize, length: usize) -> String {
        let at = if self.version == Version::One { one } else { two };
        let raw = self.head.get(at..at + length).unwrap_or_default();
        let end = raw.iter().position(|&b| b == 0).unwrap_or(raw.len());
        String::from_utf8_lossy(&raw[..end]).trim().to_owned()
    }
}

impl Header {
    /// The version and byte order of the header at the start of `head`.
    pub(super) fn version(head: &[u8]) -> Option<(Version, ByteOrder)> {
        let size = head.get(..4)?;
        let order = |bytes: u32| match size {
            s if s == bytes.to_le_bytes() => Some(ByteOrder::Little),
            s if s == bytes.to_be_bytes() => Some(ByteOrder::Big),
            _ => None,
        };
        if let Some(order) = order(348) {
            let magic = head.get(344..348)?;
            return (magic == b"n+1\0" || magic == b"ni1\0").then_some((Version::One, order));
        }
        let magic = head.get(4..8)?;
        order(540).filter(|_| magic == b"n+2\0" || magic == b"ni2\0").map(|order| (Version::Two, order))
    }

    /// Reads the header at the start of `head`.
    pub(super) fn parse(head: &[u8]) -> Result<Self> {
        let Some((version, order)) = Self::version(head) else {
            return Err(Error::corrupt(
                "expected a NIfTI header of 348 or 540 bytes with the magic `n+1`, `ni1`, `n+2` or `ni2`",
            ));
        };
        let length = if version == Version::One { 348 } else { 540 };
        if head.len() < length {
            return Err(Error::corrupt(format!("expected a header of {length} bytes, found {}", head.len())));
        }
        let f = Fields { head, version, order };
        let sizes = sizes(&f)?;
        let is_pair = head[if version == Version::One { 345 } else { 5 }] == b'i';
        Ok(Self {
            stored: stored(f.code(70, 12), order)?,
            steps: (0..sizes.len()).map(|i| f.float_of(76, 104, i + 1)).collect(),
            handedness: if f.float(76, 104) < 0.0 { -1.0 } else { 1.0 },
            offset: offset(&f, is_pair)?,
            scaling: scaling(f.float(112, 176), f.float(116, 184)),
            units: unit_bits(&f),
            time_offset: Some(f.float(136, 216)).filter(|v| v.is_finite()).unwrap_or(0.0),
            intent_code: f.code(68, 504),
            display_range: (f.float(128, 200), f.float(124, 192)),
            description: f.text(148, 240, 80),
            aux_file: f.text(228, 320, 24),
            intent_name: f.text(328, 508, 16),
            quaternion: (f.code(252, 344) > 0).then(|| {
                ([0, 1, 2].map(|i| f.float_of(256, 352, i)), [0, 1, 2].map(|i| f.float_of(268, 376, i)))
            }),
            rows: (f.code(254, 348) > 0)
                .then(|| [0, 1, 2].map(|row| [0, 1, 2, 3].map(|i| f.float_of(280, 400, 4 * row + i)))),
            sizes,
            is_pair,
        })
    }

    /// The affine map of the standard: the sform, else the qform, else the steps alone.
    pub(super) fn world_from_voxel(&self) -> [[f64; 4]; 3] {
        let step = |i: usize| self.steps.get(i).map_or(1.0, |s| s.abs()).max(f64::MIN_POSITIVE);
        let by_steps = [[step(0), 0.0, 0.0, 0.0], [0.0, step(1), 0.0, 0.0], [0.0, 0.0, step(2), 0.0]];
        let finite = |m: &[[f64; 4]; 3]| m.iter().flatten().all(|v| v.is_finite());
        let rotated = || {
            let ([b, c, d], origin) = self.quaternion?;
            let a = (1.0 - b * b - c * c - d * d).max(0.0).sqrt();
            let rotation = [
                [a * a + b * b - c * c - d * d, 2.0 * (b * c - a * d), 2.0 * (b * d + a * c)],
                [2.0 * (b * c + a * d), a * a + c * c - b * b - d * d, 2.0 * (c * d - a * b)],
                [2.0 * (b * d - a * c), 2.0 * (c * d + a * b), a * a + d * d - b * b - c * c],
            ];
            let row = |i: usize| {
                let [x, y, z] = rotation[i];
                [x * step(0), y * step(1), z * step(2) * self.handedness, origin[i]]
            };
            Some([row(0), row(1), row(2)])
        };
        self.rows.filter(finite).or_else(|| rotated().filter(finite)).unwrap_or(by_steps)
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

fn sizes(f: &Fields<'_>) -> Result<Vec<u64>> {
    let count = f.size(0);
    let Some(count) = usize::try_from(count).ok().filter(|n| (1..=7).contains(n)) else {
        return Err(Error::corrupt(format!("expected 1 to 7 dimensions, found {count}")));
    };
    (1..=count)
        .map(|i| {
            let size = f.size(i);
            u64::try_from(size)
                .map_err(|_| Error::corrupt(format!("expected a size of at least 0, found {size}")))
        })
        .collect()
}

fn stored(code: i64, order: ByteOrder) -> Result<Stored> {
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
        1 => return Ok(Stored::Other("bits (datatype 1), which are not supported")),
        32 | 1792 | 2048 => return Ok(Stored::Other("complex numbers, which are not supported")),
        128 | 2304 => return Ok(Stored::Other("RGB colours, which are not supported")),
        1536 => return Ok(Stored::Other("floats of 128 bits, which are not supported")),
        _ => return Err(Error::corrupt(format!("expected a NIfTI datatype, found {code}"))),
    };
    Ok(Stored::Numbers(DType::new(element, order)))
}

/// Version 1 writes the offset as a float.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a whole number in range"
)]
fn offset(f: &Fields<'_>, is_pair: bool) -> Result<u64> {
    let offset = match f.version {
        Version::One => f.number(ElementType::F32, 108),
        Version::Two => f.number(ElementType::I64, 168),
    };
    let least = match (is_pair, f.version) {
        (true, _) => 0.0,
        (false, Version::One) => 352.0,
        (false, Version::Two) => 544.0,
    };
    // Zero in a single file is an old habit for "right after the header".
    let offset = if offset == 0.0 { least } else { offset };
    if offset >= least && offset.fract() == 0.0 && offset < 9e15 {
        return Ok(offset as u64);
    }
    Err(Error::corrupt(format!("expected a whole data offset from {least} on, found {offset}")))
}

/// A slope of zero or one that is no number means no scaling, as nibabel reads it.
fn scaling(slope: f64, intercept: f64) -> Option<(f64, f64)> {
    #[expect(clippy::float_cmp, reason = "exactly 1 and 0 mean absent")]
    let neutral = slope == 1.0 && intercept == 0.0;
    (slope != 0.0 && slope.is_finite() && intercept.is_finite() && !neutral).then_some((slope, intercept))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "one byte of flags")]
fn unit_bits(f: &Fields<'_>) -> u8 {
    match f.version {
        Version::One => f.head[123],
        Version::Two => f.number(ElementType::I32, 500) as u8,
    }
}
