//! Stereo pairs: one picture of two eyes side by side, the left eye's on the left.
//!
//! Both eyes look in the same direction through one window at the distance of the camera's target: their
//! frusta are off-axis, not toed in, so that there is no vertical parallax (keystone distortion). Points at
//! the window have zero parallax. A point at distance `z`, with the window at distance `d`, lies `e / z - e /
//! d` (tangents) further right for the left eye than for the right one, where `e` is the distance of the
//! eyes: positive (crossed) for points nearer than the window.

use array::{Error, Result};
use view::{MAX_PARALLAX, Projection};

use crate::image::annotate::{Notes, annotate_rows};
use crate::{Camera, DrawnRows, Fidelity, Image, ImageSize, RenderedImage, Scene};

/// Returns the size of each eye's picture in a picture of `size`: half of the columns. If the number of
/// columns is odd, the last one stays empty.
#[must_use]
pub fn size_of_eye(size: ImageSize) -> ImageSize {
    ImageSize { width: size.width / 2, ..size }
}

/// Returns the cameras of the left and the right eye; `parallax` is their distance as a share of that to the
/// target.
///
/// # Errors
/// `Invalid` for parallel rays, which have no eye, an invalid camera, and a share that is not above
/// 0 and up to [`MAX_PARALLAX`].
pub fn eyes(camera: &Camera, parallax: f64) -> Result<[Camera; 2]> {
    camera.check()?;
    if !(parallax > 0.0 && parallax <= MAX_PARALLAX) {
        return Err(Error::invalid(format!(
            "expected eyes apart by more than 0 and up to {MAX_PARALLAX} of the distance to what they look at, found {parallax}"
        )));
    }
    if matches!(camera.projection, Projection::Orthographic { .. }) {
        return Err(Error::invalid(
            "expected a perspective camera for a stereo pair, found an orthographic one: parallel rays look the same to both eyes",
        ));
    }
    let [from, to] = [camera.eye, camera.target].map(glam::DVec3::from);
    let half = from.distance(to) * parallax / 2.0;
    Ok([-half, half].map(|aside| Camera { aside, ..*camera }))
}

/// Returns the scenes of the left and the right eye, each for half of the picture.
///
/// # Errors
/// The errors of [`eyes`]; `Invalid` for a picture of less than two columns.
pub fn scenes(scene: &Scene, parallax: f64) -> Result<[Scene; 2]> {
    let size = size_of_eye(scene.size);
    if size.width == 0 {
        return Err(Error::invalid(format!(
            "expected at least two columns for a stereo pair, found {}",
            scene.size.width
        )));
    }
    Ok(eyes(&scene.camera, parallax)?.map(|camera| Scene { camera, size, ..scene.clone() }))
}

/// Joins the pictures of both eyes into one of `size`.
///
/// # Errors
/// `Internal` for pictures whose size is not that of [`size_of_eye`].
pub fn beside([left, right]: [RenderedImage; 2], size: ImageSize) -> Result<RenderedImage> {
    let fidelity = both(&left.fidelity, &right.fidelity);
    Ok(RenderedImage { image: joined(&[left.image, right.image], size)?, fidelity })
}

/// Writes notes into both eyes' halves of a picture, as [`annotate`] does into one; their camera is midway
/// between the eyes.
///
/// # Errors
/// The errors of [`scenes`].
pub fn annotate_pair(image: &mut Image, notes: &Notes, parallax: f64) -> Result<()> {
    let size = image.size;
    annotate_pair_rows(image, 0, size, notes, parallax)
}

/// Writes into some rows of a picture of size `whole`, from row `top` on, what [`annotate_pair`] writes there into the
/// whole picture.
///
/// # Errors
/// The errors of [`scenes`].
pub fn annotate_pair_rows(
    rows: &mut Image,
    top: u32,
    whole: ImageSize,
    notes: &Notes,
    parallax: f64,
) -> Result<()> {
    let cameras = eyes(&notes.camera, parallax)?;
    let size = size_of_eye(rows.size);
    let mut halves = [0, size.width].map(|left| half(rows, left, size));
    for (half, camera) in halves.iter_mut().zip(cameras) {
        annotate_rows(half, top, size_of_eye(whole), &Notes { camera, ..notes.clone() })?;
    }
    *rows = joined(&halves, rows.size)?;
    Ok(())
}

/// Joins the same rows of both eyes' pictures into rows of one picture with `width` columns.
///
/// # Errors
/// `Internal` for rows whose size is not that of [`size_of_eye`].
pub fn beside_rows([left, right]: [DrawnRows; 2], width: u32) -> Result<DrawnRows> {
    let size = ImageSize { width, height: left.image.size.height };
    let mut tally = left.tally;
    tally.add(&right.tally);
    Ok(DrawnRows { image: joined(&[left.image, right.image], size)?, tally })
}

/// Returns the columns of an image from `left` on.
fn half(image: &Image, left: u32, size: ImageSize) -> Image {
    let rows = image.rgba.chunks_exact(image.size.width.max(1) as usize);
    let (from, to) = (left as usize, (left + size.width) as usize);
    Image { size, rgba: rows.flat_map(|row| &row[from..to]).copied().collect() }
}

fn joined([left, right]: &[Image; 2], size: ImageSize) -> Result<Image> {
    let width = size.width as usize / 2;
    let own = size_of_eye(size);
    if left.size != own || right.size != own {
        return Err(Error::internal(format!(
            "expected two pictures of {own:?}, found {:?} and {:?}",
            left.size, right.size
        )));
    }
    let mut rgba = vec![[0.0; 4]; size.width as usize * size.height as usize];
    for (number, row) in rgba.chunks_exact_mut(size.width.max(1) as usize).enumerate() {
        let from = number * width..(number + 1) * width;
        row[..width].copy_from_slice(&left.rgba[from.clone()]);
        row[width..2 * width].copy_from_slice(&right.rgba[from]);
    }
    Ok(Image { size, rgba })
}

/// Joins the reports of both pictures.
fn both(left: &Fidelity, right: &Fidelity) -> Fidelity {
    let mean = |of: fn(&Fidelity) -> f64| f64::midpoint(of(left), of(right));
    let shown = |of: fn(&Fidelity) -> Option<u8>| [of(left), of(right)].into_iter().flatten();
    Fidelity {
        wanted_level: left.wanted_level,
        finest_shown: shown(|fidelity| fidelity.finest_shown).min(),
        coarsest_shown: shown(|fidelity| fidelity.coarsest_shown).max(),
        share_at_wanted: mean(|fidelity| fidelity.share_at_wanted),
        share_uncovered: mean(|fidelity| fidelity.share_uncovered),
        share_lacking: mean(|fidelity| fidelity.share_lacking),
    }
}

#[cfg(test)]
mod tests {
    use glam::DVec3;

    use super::*;
    use crate::Bounds;
    use crate::scene::camera::Lens;

    const SIZE: ImageSize = ImageSize { width: 300, height: 200 };

    fn camera() -> Camera {
        Camera::framing(&Bounds { min: [0.0; 3], max: [4.0, 3.0, 2.0] }, Camera::DEFAULT_DIRECTION)
    }

    #[test]
    fn disparity_is_nothing_at_the_target_and_crossed_before_it() {
        let (camera, parallax) = (camera(), 1.0 / 20.0);
        let lenses = eyes(&camera, parallax).unwrap().map(|eye| Lens::new(&eye, SIZE).unwrap());
        let one = Lens::new(&camera, SIZE).unwrap();
        let distance = DVec3::from(camera.eye).distance(camera.target.into());
        for (depth_share, beside) in
            [(1.0, [0.0, 0.0]), (1.0, [0.3, -0.2]), (0.5, [0.1, 0.3]), (2.0, [-0.4, 0.1])]
        {
            let depth = distance * depth_share;
            let point = one.eye + one.forward * depth + one.right * beside[0] + one.up * beside[1];
            let [left, right] = lenses.map(|lens| lens.pixel_of(point).unwrap());
            let eyes_apart = parallax * distance;
            let columns_per_tangent = f64::from(SIZE.width) / 2.0 / one.half[0];
            let expected = (eyes_apart / depth - eyes_apart / distance) * columns_per_tangent;
            assert!(
                (left[0] - right[0] - expected).abs() < 1e-6,
                "{depth_share}: {left:?} {right:?}, {expected}"
            );
            assert!((left[1] - right[1]).abs() < 1e-9, "no keystone");
            assert_eq!(expected > 1.0, depth_share < 1.0, "nearer is crossed, and by what can be seen");
        }
    }

    #[test]
    fn rays_of_an_eye_lead_to_what_it_sees_there() {
        for eye in eyes(&camera(), 0.2).unwrap() {
            let lens = Lens::new(&eye, SIZE).unwrap();
            assert!(lens.eye.distance(eye.origin().into()) < 1e-12);
            let ray = lens.ray(20, 170);
            let [column, row] = lens.pixel_of(ray.origin + ray.direction * 3.0).unwrap();
            assert!((column - 20.5).abs() < 1e-6 && (row - 170.5).abs() < 1e-6, "{column} {row}");
        }
    }

    #[test]
    fn what_has_no_two_eyes_is_refused() {
        let error = eyes(&camera().orthographic(), 1.0 / 30.0).unwrap_err().to_string();
        assert!(error.contains("perspective"), "{error}");
        for bad in [0.0, -0.1, 0.6, f64::NAN] {
            assert!(eyes(&camera(), bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn halves_lie_side_by_side_and_an_odd_column_is_empty() {
        let odd = ImageSize { width: 5, height: 2 };
        let image = |value: f32| Image { size: size_of_eye(odd), rgba: vec![[value; 4]; 4] };
        let pair = joined(&[image(0.25), image(0.75)], odd).unwrap();
        let row: Vec<f32> = pair.rgba[5..].iter().map(|pixel| pixel[0]).collect();
        assert_eq!(row, [0.25, 0.25, 0.75, 0.75, 0.0]);
        assert_eq!(half(&pair, 2, size_of_eye(odd)), image(0.75));
    }
}
