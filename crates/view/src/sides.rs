//! Sides of the volume that an array is drawn as.

use array::ArrayInfo;

use crate::transfer::Looks;

/// Returns how many sides of the volume that an array is drawn as are longer than one voxel: 0 to 3. Spatial
/// axes are z, y and x, or the last three if an array has none of these. Returns 0 for an array without
/// elements.
#[must_use]
pub fn thick_sides(array: &ArrayInfo) -> usize {
    if array.shape().contains(&0) {
        return 0;
    }
    sides(array).filter(|&side| side > 1).count()
}

/// Returns true if the default picture of an array hides none of its layers, because they are few.
#[must_use]
pub fn shows_all_layers(array: &ArrayInfo) -> bool {
    let mut voxels = [1; 3];
    voxels.iter_mut().zip(sides(array)).for_each(|(voxel, side)| *voxel = side);
    Looks::of(voxels) != Looks::Volume
}

/// Returns the sides, in voxels, of the volume that an array is drawn as.
pub(crate) fn sides(array: &ArrayInfo) -> impl Iterator<Item = u64> {
    let shape = array.shape();
    let space: Vec<usize> = array.spatial_axes().into_iter().flatten().collect();
    let space = if space.is_empty() { (shape.len().saturating_sub(3)..shape.len()).collect() } else { space };
    space.into_iter().map(|axis| shape[axis])
}
