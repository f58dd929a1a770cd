//! Statistics of the values in the cells of a block: all that is known of them without their voxels.

/// How the stored values of a cell run from voxel to voxel, in `f32`; infinite or NaN where that is beyond it. Zero where voxels of the
/// block are missing: nothing is asked there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ValueVariation {
    /// The greatest difference of two neighbors along x, y or z.
    pub(crate) first_difference: f32,
    /// The greatest difference of neighboring differences at a voxel, along x, y or z. Voxels before the block are not asked.
    pub(crate) second_difference: f32,
}

/// Statistics of all cells of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellStats<'a> {
    /// Cells along z, y, x.
    pub(crate) shape: [usize; 3],
    /// Smallest and largest stored value, rounded outward; low > high where nothing is present. C order.
    pub(crate) ranges: &'a [[f32; 2]],
    /// How values run in between. As `ranges`.
    pub(crate) variations: &'a [ValueVariation],
}
