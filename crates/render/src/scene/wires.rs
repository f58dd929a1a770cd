//! Boxes drawn as lines in the volume.

use std::sync::Arc;

use crate::Bounds;

/// Most boxes of a scene.
pub const MAX_BOXES: usize = 4_096;

/// Box that is drawn as lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WireBox {
    /// Position and size, world space.
    pub bounds: Bounds,
    /// sRGB.
    pub color: [u8; 3],
}

/// Boxes, at most [`MAX_BOXES`], drawn in order.
pub type WireBoxes = Arc<[WireBox]>;
