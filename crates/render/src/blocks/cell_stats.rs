//! Statistics of the values in the cells of a block, from which cells are judged without reading voxels.

/// Variation of the stored values of a cell from voxel to voxel, in `f32`; infinite or NaN if it exceeds the
/// range of `f32`. Zero if voxels of the block are missing: the variation is not used there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ValueVariation {
    /// The greatest difference of two neighbors along x, y or z.
    pub(crate) first_difference: f32,
    /// The greatest difference between neighboring differences at a voxel, along x, y or z. Voxels before the
    /// block are not included.
    pub(crate) second_difference: f32,
}

/// Statistics of all cells of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellStats<'a> {
    /// Cells along z, y, x.
    pub(crate) shape: [usize; 3],
    /// Smallest and largest stored value, rounded outward; low > high if no value is present. C order.
    pub(crate) ranges: &'a [[f32; 2]],
    /// Variation of the values from voxel to voxel, in the order of `ranges`.
    pub(crate) variations: &'a [ValueVariation],
}
