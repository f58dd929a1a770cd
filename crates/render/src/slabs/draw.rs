//! Compositor of slabs: draws their planes as another camera sees them, blended with the nearest first.
//!
//! One ray for each pixel, each plane at its intersection with the ray, texels interpolated bilinearly: the
//! same as blended, textured quads on a graphics processor, in reference arithmetic. The texel of a point of
//! a plane is found where the slabs' own camera sees the point. A ray passes a slab at another angle than it
//! was cast at, so the slab's opacity is corrected for the longer or shorter path.

use array::{Error, Result};
use glam::{DVec3, Vec4};
use rayon::prelude::*;

use super::{Slab, Slabs};
use crate::scene::camera::{Lens, Ray};
use crate::{Camera, Image, ImageSize, Rect};

/// Opacity behind which nothing is visible any more in 8 bits.
const OPAQUE: f32 = 1.0 - 1.0 / 1024.0;
/// Cosine below which a ray runs along the planes and meets none.
const ALONG: f64 = 1e-6;

/// Data that all pixels share.
struct DrawStage<'a> {
    slabs: &'a Slabs,
    view: Lens,
    source: Lens,
    normal: DVec3,
    /// Non-empty slabs, and the positions of their planes.
    planes: Vec<(&'a Slab, f64)>,
}

/// Line in the coordinates of the slabs' camera: right, up and ahead of it, at the line's origin and for each
/// unit of its length.
struct SeenTexel {
    origin: DVec3,
    direction: DVec3,
}

impl Slabs {
    /// Draws the slabs as seen by `camera`.
    ///
    /// # Errors
    /// `Invalid` for an invalid camera or size; `Corrupt` for an invalid set
    /// ([`check`](Self::check)).
    pub fn draw(&self, camera: &Camera, size: ImageSize) -> Result<Image> {
        self.check()?;
        size.check()?;
        let planes = self.slabs.iter().enumerate().filter(|(_, slab)| !slab.rect.is_empty());
        let stage = DrawStage {
            slabs: self,
            view: Lens::new(camera, size)?,
            source: Lens::new(&self.camera, self.size)?,
            normal: self.normal.into(),
            planes: planes.map(|(number, slab)| (slab, self.middle(number))).collect(),
        };
        let row =
            |row: u32| -> Vec<[f32; 4]> { (0..size.width).map(|column| stage.pixel(column, row)).collect() };
        let rows: Vec<_> = (0..size.height).into_par_iter().map(row).collect();
        Ok(Image { size, rgba: rows.concat() })
    }

    /// Checks a set from an untrusted source.
    ///
    /// # Errors
    /// `Corrupt`, with a message that names the cause.
    pub fn check(&self) -> Result<()> {
        let corrupt = |e: Error| Error::corrupt(format!("slabs: {e}"));
        self.size.check().map_err(corrupt)?;
        super::check_camera(&self.camera).map_err(corrupt)?;
        if !(0.0..=1.0).contains(&self.guard) {
            return Err(Error::corrupt(format!("expected a guard from 0 to 1, found {}", self.guard)));
        }
        let length = DVec3::from(self.normal).length();
        let ascend =
            self.borders.iter().all(|border| border.is_finite()) && self.borders.is_sorted_by(|a, b| a < b);
        // NaN fails this comparison.
        let is_unit = (length - 1.0).abs() <= 1e-6;
        if !is_unit || !ascend {
            return Err(Error::corrupt(format!(
                "expected slabs between ascending borders across a normal of length 1, found {:?} across {length}",
                self.borders
            )));
        }
        if !(1..=Self::MAX_COUNT as usize).contains(&self.slabs.len())
            || self.borders.len() != self.slabs.len() + 1
        {
            return Err(Error::corrupt(format!(
                "expected 1 to {} slabs and one border more, found {} and {}",
                Self::MAX_COUNT,
                self.slabs.len(),
                self.borders.len()
            )));
        }
        for slab in &self.slabs {
            if !slab.rect.is_within(self.size) || slab.rgba.len() != slab.rect.pixels() * 4 {
                return Err(Error::corrupt(format!(
                    "expected a slab within {:?} with 4 bytes a texel, found {:?} with {} bytes",
                    self.size,
                    slab.rect,
                    slab.rgba.len()
                )));
            }
        }
        Ok(())
    }
}

impl DrawStage<'_> {
    fn pixel(&self, column: u32, row: u32) -> [f32; 4] {
        let ray = self.view.ray(column, row);
        let along = self.normal.dot(ray.direction);
        if along.abs() < ALONG {
            return [0.0; 4];
        }
        let seen = self.seen(&ray);
        let start = self.normal.dot(ray.origin);
        let mut color = Vec4::ZERO;
        let count = self.planes.len();
        for number in 0..count {
            let (slab, middle) = self.planes[if along > 0.0 { number } else { count - 1 - number }];
            let distance = (middle - start) / along;
            if self.view.perspective && distance <= 0.0 {
                continue;
            }
            let Some(at) = self.texel_at(&seen, distance) else { continue };
            let texel = interpolated(slab, at);
            if texel.w <= 0.0 {
                continue;
            }
            let texel = lengthened(texel, self.cast_along(&ray, distance) / along.abs());
            color += texel * (1.0 - color.w);
            if color.w >= OPAQUE {
                break;
            }
        }
        color.to_array()
    }

    fn seen(&self, ray: &Ray) -> SeenTexel {
        let Lens { eye, right, up, forward, .. } = self.source;
        let of = |v: DVec3| DVec3::new(v.dot(right), v.dot(up), v.dot(forward));
        SeenTexel { origin: of(ray.origin - eye), direction: of(ray.direction) }
    }

    /// Returns column and row, from the image's corner, at which the slabs' camera sees a point of a line.
    fn texel_at(&self, seen: &SeenTexel, distance: f64) -> Option<[f64; 2]> {
        let at = seen.origin + seen.direction * distance;
        let spread = if self.source.perspective { at.z } else { 1.0 };
        if spread <= 0.0 {
            return None;
        }
        let ImageSize { width, height } = self.slabs.size;
        let column = (at.x / (spread * self.source.half[0]) + 1.0) / 2.0 * f64::from(width);
        let row = (1.0 - at.y / (spread * self.source.half[1])) / 2.0 * f64::from(height);
        Some([column, row])
    }

    /// Returns the cosine between the normal and the slab camera's ray through a point of a line.
    fn cast_along(&self, ray: &Ray, distance: f64) -> f64 {
        if !self.source.perspective {
            return self.normal.dot(self.source.forward).abs();
        }
        let to = ray.origin + ray.direction * distance - self.source.eye;
        self.normal.dot(to).abs() / to.length().max(f64::MIN_POSITIVE)
    }
}

/// Corrects a texel's color and opacity for a path `times` as long.
#[expect(clippy::cast_possible_truncation, reason = "colors are f32")]
fn lengthened(texel: Vec4, times: f64) -> Vec4 {
    let through = (1.0 - texel.w).max(0.0);
    texel * ((1.0 - through.powf(times as f32)) / texel.w)
}

/// Interpolates a slab's color between four texels; transparent beyond its edges.
#[expect(clippy::cast_possible_truncation, reason = "within a texel of the rectangle; places are f32")]
fn interpolated(slab: &Slab, [column, row]: [f64; 2]) -> Vec4 {
    let Rect { left, top, width, height } = slab.rect;
    let (x, y) = (column - 0.5 - f64::from(left), row - 0.5 - f64::from(top));
    if !(x > -1.0 && y > -1.0 && x < f64::from(width) && y < f64::from(height)) {
        return Vec4::ZERO;
    }
    let (x0, y0) = (x.floor() as i64, y.floor() as i64);
    let (fx, fy) = ((x - x.floor()) as f32, (y - y.floor()) as f32);
    let texel = |x: i64, y: i64| {
        let is_inside = x >= 0 && y >= 0 && x < i64::from(width) && y < i64::from(height);
        #[expect(clippy::cast_sign_loss, reason = "just looked at")]
        let texel = || {
            let at = 4 * (y as usize * width as usize + x as usize);
            let [r, g, b, a] = [0, 1, 2, 3].map(|part| f32::from(slab.rgba[at + part]) / 255.0);
            let roots = Vec4::new(r, g, b, a);
            roots * roots
        };
        if is_inside { texel() } else { Vec4::ZERO }
    };
    let above = texel(x0, y0).lerp(texel(x0 + 1, y0), fx);
    let below = texel(x0, y0 + 1).lerp(texel(x0 + 1, y0 + 1), fx);
    above.lerp(below, fy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_texels_colors_are_mixed_and_beyond_the_edge_is_nothing() {
        let rect = Rect { left: 10, top: 20, width: 2, height: 1 };
        let slab = Slab { rect, rgba: vec![255, 0, 0, 255, 0, 0, 255, 255] };
        assert_eq!(interpolated(&slab, [10.5, 20.5]), Vec4::new(1.0, 0.0, 0.0, 1.0));
        assert_eq!(interpolated(&slab, [11.0, 20.5]), Vec4::new(0.5, 0.0, 0.5, 1.0));
        assert_eq!(interpolated(&slab, [11.5, 20.0]), Vec4::new(0.0, 0.0, 0.5, 0.5));
        for beyond in [[9.4, 20.5], [12.6, 20.5], [11.0, 19.4], [f64::NAN, 20.5], [1e300, 20.5]] {
            assert_eq!(interpolated(&slab, beyond), Vec4::ZERO, "{beyond:?}");
        }
    }

    #[test]
    fn twice_the_way_is_twice_the_matter() {
        let once = Vec4::new(0.1, 0.2, 0.0, 0.2);
        let twice = lengthened(once, 2.0);
        assert!((twice.w - 0.36).abs() < 1e-6 && (twice.y / twice.w - 1.0).abs() < 1e-6, "{twice}");
        assert_eq!(lengthened(Vec4::ONE, 1.5), Vec4::ONE);
    }
}
