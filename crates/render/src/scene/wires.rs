//! Boxes drawn as lines where they lie in the volume.

use std::sync::Arc;

use crate::Bounds;

/// Most boxes of a scene.
pub const MAX_BOXES: usize = 4_096;

/// A box that is drawn as lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WireBox {
    /// Position and size, world space.
    pub bounds: Bounds,
    /// sRGB.
    pub color: [u8; 3],
}

/// Boxes, at most [`MAX_BOXES`]; the last are drawn last.
pub type WireBoxes = Arc<[WireBox]>;
