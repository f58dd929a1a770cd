//! Plain values of a prepared picture that the caster of this crate computes too: the format of voxels,
//! surfaces, palette, and the heights of blocks.

/// Format of voxels in the bytes of [`Prepared::voxels`](super::Prepared::voxels).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoxelFormat {
    /// Unsigned integers of 8 bits.
    U8,
    /// Unsigned integers of 16 bits.
    U16,
    /// Signed integers of 16 bits.
    I16,
    /// Floats of 32 bits.
    F32,
    /// Floats of 32 bits converted from 64: 0 is the block's lowest value and 1 its highest or, if its values begin
    /// near zero, 0 is zero and the largest magnitude is 1; [`ABSENT`] is a missing voxel. The error is at most
    /// 2^-24 of the range of the block's values.
    Relative,
}

/// Value of a missing voxel in [`VoxelFormat::Relative`].
pub const ABSENT: f32 = 2.0;

impl VoxelFormat {
    /// Returns the size of a voxel, bytes.
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
    /// Stored value of 0.
    pub low: f64,
    /// Difference between the stored values of 1 and 0; not 0.
    pub span: f64,
}

impl Relative {
    /// Returns the relative value of a stored one; outside of -1 to 1 if it lies outside the block's range.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what it is for")]
    pub fn of(&self, stored: f64) -> f32 {
        ((stored - self.low) / self.span) as f32
    }
}

/// Heights of the cells of a block: see `extreme.rs`.
#[derive(Clone, Debug, PartialEq)]
pub struct Peaks {
    /// Largest height of the block; [`NOTHING`](super::NOTHING) if no value is present.
    pub highest: f32,
    /// Height by cell, C order: 0 if no value is present, else 1 plus the number of
    /// [`PEAK_STEP`](super::PEAK_STEP)s, rounded up.
    pub cells: Vec<u8>,
}

/// An isosurface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PreparedSurface {
    /// Stored value.
    pub stored: f64,
    /// Smallest `f32` that is not below it: values of 32 bits lie on the same side of both.
    pub least: f32,
    /// Its place in the table.
    pub place: f32,
    /// Color, premultiplied, before lighting.
    pub color: [f32; 4],
}

/// Palette of colors without opacity: see `palette.rs`.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedPalette {
    /// Evenly spaced colors, interpolated linearly.
    pub colors: Vec<[f32; 3]>,
    /// Index of an entry of the table among the colors = the first + the second * entry, before clamping.
    pub map: [f64; 2],
}
