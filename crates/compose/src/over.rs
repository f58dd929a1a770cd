//! The operator `over` on rows of pixels: what lies in front stays, what lies behind is seen through it.

use glam::Vec4;

/// Puts pixels behind others: `front + behind * (1 - opacity of front)` takes the place of `front`. Premultiplied RGBA,
/// so the operator is associative, and pieces may be joined in any grouping that keeps their order. Pixels without
/// a partner stay.
pub fn over(front: &mut [[f32; 4]], behind: &[[f32; 4]]) {
    for (front, behind) in front.iter_mut().zip(behind) {
        let near = Vec4::from(*front);
        *front = (near + Vec4::from(*behind) * (1.0 - near.w)).to_array();
    }
}

/// The same for heights of extreme values: the larger one counts, wherever it lies.
pub(crate) fn highest(heights: &mut [f32], others: &[f32]) {
    for (height, other) in heights.iter_mut().zip(others) {
        *height = height.max(*other);
    }
}
