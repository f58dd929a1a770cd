//! Bounds of numbers in a view.

/// Largest coordinate in world space: products of larger ones overflow single precision.
pub(crate) const MAX_WORLD: f64 = 1e15;
/// Smallest vertical opening angle of a camera, radians.
pub(crate) const MIN_FOV_RAD: f64 = 1e-6;
/// Largest vertical opening angle of a camera, radians.
pub(crate) const MAX_FOV_RAD: f64 = std::f64::consts::PI - 1e-3;
/// Maximum distance of the eyes of a stereo pair, as a fraction of their distance to the camera's target.
pub const MAX_PARALLAX: f64 = 0.5;
/// Maximum number of layers of a view: each array layer needs a part of the memory for blocks.
pub const MAX_LAYERS: usize = 8;
/// Smallest width of points and lines of geometry, pixels.
pub(crate) const MIN_LAYER_SIZE_PIXELS: f64 = 0.5;
/// Largest width of points and lines of geometry, pixels: larger ones hide all else.
pub(crate) const MAX_LAYER_SIZE_PIXELS: f64 = 64.0;
