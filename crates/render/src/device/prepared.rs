//! Plain values of a prepared picture that the caster of this crate makes too: the format of voxels, surfaces, palette, and the
//! heights of blocks.

/// How voxels lie in the bytes of [`Prepared::voxels`](super::Prepared::voxels).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoxelFormat {
    /// Whole numbers of 8 bits.
    U8,
    /// Whole numbers of 16 bits.
    U16,
    /// Signed whole numbers of 16 bits.
    I16,
    /// Floats of 32 bits.
    F32,
    /// Floats of 32 bits made from 64: 0 is the block's lowest value, 1 its highest, [`ABSENT`] what is missing. So a
    /// value is off by at most 2^-25 of what values of its block span.
    Relative,
}

/// Value of a missing voxel in [`VoxelFormat::Relative`].
pub const ABSENT: f32 = 2.0;

impl VoxelFormat {
    /// Size of a voxel.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::F32 | Self::Relative => 4,
        }
    }
}

/// Range that the voxels of a block are relative to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relative {
    /// The stored value of 0.
    pub low: f64,
    /// How much more that of 1 is; not 0.
    pub span: f64,
}

impl Relative {
    /// The value that a stored one is told by, beyond 0 and 1 where it lies beyond the block's.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what it is for")]
    pub fn of(&self, stored: f64) -> f32 {
        ((stored - self.low) / self.span) as f32
    }
}

/// How high the cells of a block reach: see `extreme.rs`.
#[derive(Clone, Debug, PartialEq)]
pub struct Peaks {
    /// The highest of all; [`NOTHING`](super::NOTHING) where nothing is present.
    pub highest: f32,
    /// Height by cell, C order: 0 where nothing is present, else 1 and how many [`PEAK_STEP`](super::PEAK_STEP)s it reaches, rounded up.
    pub cells: Vec<u8>,
}

/// An isosurface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PreparedSurface {
    /// Stored value.
    pub stored: f64,
    /// The least `f32` that is not below it: values of 32 bits lie on the same side of both.
    pub least: f32,
    /// Its place in the table.
    pub place: f32,
    /// Premultiplied, before it is lit.
    pub color: [f32; 4],
}

/// Colors where opacity plays no part: see `palette.rs`.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedPalette {
    /// Evenly spaced, in between they are linear.
    pub colors: Vec<[f32; 3]>,
    /// Number of a place in the table among them = the first + the second * place, before it is cut off.
    pub map: [f64; 2],
}
