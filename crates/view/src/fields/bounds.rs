//! Bounds of numbers in a view.

/// Largest coordinate in world space: products of larger ones overflow single precision.
pub(crate) const MAX_WORLD: f64 = 1e15;
/// Smallest vertical opening angle of a camera, radians.
pub(crate) const MIN_FOV_RAD: f64 = 1e-6;
/// Largest vertical opening angle of a camera, radians.
pub(crate) const MAX_FOV_RAD: f64 = std::f64::consts::PI - 1e-3;
/// Maximum distance of the eyes of a stereo pair, as a fraction of their distance to the camera's target.
pub const MAX_PARALLAX: f64 = 0.5;
