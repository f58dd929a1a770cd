//! Annotations of an exported picture: the volume's box with axes, a scale bar, a color bar or a legend, the orientation, and a time.
//!
//! Edges that lie behind the volume are drawn behind what the picture shows, the others in front of it; this
//! is exact for a convex box around the whole volume. Pictures in a viewer are not annotated: the page draws
//! the same marks (`web/src/ui/marks`).

mod axis;
mod edges;
mod keys;
mod layout;
mod legend;
mod line_plot;
mod notes;
mod numbers;
mod orientation;
mod pen;
mod scale;
pub(crate) mod text;

use array::Result;

use crate::ImageSize;
use crate::image::Image;
use crate::scene::camera::Lens;
pub use axis::{AxisNote, AxisQuantity};
pub use keys::LegendKey;
pub use line_plot::LinePlot;
pub use notes::Notes;
use pen::Pen;

/// Writes the notes into a picture.
///
/// # Errors
/// `Invalid` for an invalid camera.
pub fn annotate(image: &mut Image, notes: &Notes) -> Result<()> {
    let size = image.size;
    annotate_rows(image, 0, size, notes)
}

/// Writes into some rows of a picture of size `whole`, from row `top` on, what [`annotate`] writes there into the whole
/// picture.
///
/// # Errors
/// `Invalid` for an invalid camera.
pub fn annotate_rows(rows: &mut Image, top: u32, whole: ImageSize, notes: &Notes) -> Result<()> {
    annotate_with(rows, top, whole, notes).map(drop)
}

/// As [`annotate_rows`]; returns the pen that wrote.
fn annotate_with<'a>(image: &'a mut Image, top: u32, whole: ImageSize, notes: &Notes) -> Result<Pen<'a>> {
    let lens = Lens::new(&notes.camera, whole)?;
    let mut pen = Pen::new(image, top, whole, notes.is_dark);
    let edges = edges::draw(&mut pen, &lens, notes);
    let outline = edges::outline(&edges);
    orientation::letters(&mut pen, &lens, notes);
    edges::axes(&mut pen, &lens, notes, &edges);
    orientation::cross(&mut pen, &lens, notes, &outline);
    keys::draw(&mut pen, notes, &outline);
    legend::draw(&mut pen, notes, &outline);
    scale::draw(&mut pen, &lens, notes, &outline);
    Ok(pen)
}

#[cfg(test)]
mod tests {
    use glam::DVec2;

    use super::pen::Area;
    use super::*;
    use crate::ImageSize;
    use crate::scene::camera::{Bounds, Camera};
    use crate::scene::color_map::color_map_table;
    use crate::scene::transfer::TransferFunction;

    const SIZE: ImageSize = ImageSize { width: 320, height: 240 };

    fn notes(camera: Camera) -> Notes {
        Notes {
            camera,
            bounds: bounds(),
            axes: [0, 1, 2].map(|axis| {
                let Bounds { min, max } = bounds();
                AxisNote::of_world(["x", "y", "z"][axis], "mm", [min[axis], max[axis]])
            }),
            world_units: "mm".into(),
            is_map: false,
            is_anatomical: false,
            values: "rho [kg/m³]".into(),
            title: String::new(),
            keys: Vec::new(),
            transfer: Some(TransferFunction::ramp(0.0, 2.5, 0.5)),
            is_dark: true,
        }
    }

    fn bounds() -> Bounds {
        Bounds { min: [0.0; 3], max: [100.0, 60.0, 40.0] }
    }

    fn annotated(mut image: Image, camera: Camera) -> Image {
        annotate(&mut image, &notes(camera)).unwrap();
        image
    }

    fn filled(pixel: [f32; 4]) -> Image {
        Image { size: SIZE, rgba: vec![pixel; 320 * 240] }
    }

    #[test]
    fn edges_lie_before_and_behind_what_is_shown() {
        let camera = Camera::framing(&bounds(), [-0.45, 0.8, -0.4]);
        let changed = |image: Image| {
            let before = image.clone();
            let after = annotated(image, camera);
            before.rgba.iter().zip(&after.rgba).filter(|(a, b)| a != b).count()
        };
        let (clear, opaque) = (changed(filled([0.0; 4])), changed(filled([0.2, 0.2, 0.2, 1.0])));
        assert!(opaque > 500 && clear > opaque + 100, "three edges are hidden: {clear}, {opaque}");
    }

    #[test]
    fn rows_get_what_the_whole_picture_has_there() {
        for (size, direction) in [
            (ImageSize { width: 321, height: 243 }, [-0.45, 0.8, -0.4]),
            (ImageSize { width: 640, height: 2200 }, [0.0, 0.0, -1.0]),
        ] {
            let camera = Camera::framing(&bounds(), direction);
            let keys = vec![LegendKey::of_value([9; 3], 0.25, "kg")];
            let notes = Notes { title: "2001-02-03".into(), keys, ..notes(camera) };
            let pixels = size.width as usize * size.height as usize;
            let mut whole = Image { size, rgba: vec![[0.1, 0.1, 0.1, 0.5]; pixels] };
            let plain = whole.clone();
            annotate(&mut whole, &notes).unwrap();
            assert!(whole != plain);
            let width = size.width as usize;
            for top in (0..size.height).step_by(32) {
                let rows = 32.min(size.height - top);
                let part = top as usize * width..(top + rows) as usize * width;
                let size_of_rows = ImageSize { height: rows, ..size };
                let mut band = Image { size: size_of_rows, rgba: plain.rgba[part.clone()].to_vec() };
                annotate_rows(&mut band, top, size, &notes).unwrap();
                assert!(band.rgba == whole.rgba[part], "{size:?}: rows from {top} on");
            }
        }
    }

    #[test]
    fn letters_and_lines_grow_with_the_picture() {
        let camera = Camera::framing(&bounds(), [0.0, 1.0, 0.0]);
        let share = |height: u32| {
            let size = ImageSize { width: height, height };
            let rgba = vec![[0.0; 4]; (height * height) as usize];
            let mut image = Image { size, rgba };
            annotate(&mut image, &notes(camera)).unwrap();
            image.rgba.iter().filter(|pixel| pixel[3] > 0.0).count() as f64 / f64::from(height * height)
        };
        let (small, large) = (share(900), share(3600));
        assert!(large > 0.6 * small, "{small} {large}");
    }

    #[test]
    fn the_legend_has_the_colors_of_the_map() {
        let image = annotated(filled([0.0; 4]), Camera::framing(&bounds(), [0.0, 1.0, 0.0]));
        let table = color_map_table("viridis").unwrap();
        for color in [table[0], table[255]] {
            let color = color.map(|c| f32::from(c) / 255.0);
            let found = image.rgba.iter().filter(|pixel| pixel[3] == 1.0 && pixel[..3] == color).count();
            assert!(found >= 5, "{color:?}: {found}");
        }
    }

    /// Returns the areas of everything that is written.
    fn areas(size: ImageSize, notes: &Notes) -> Vec<Area> {
        let rgba = vec![[0.0; 4]; (size.width * size.height) as usize];
        let mut image = Image { size, rgba };
        annotate_with(&mut image, 0, size, notes).unwrap().taken
    }

    #[test]
    fn nothing_is_written_over_anything_else() {
        let directions =
            [[-0.45, 0.8, -0.4], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.1, -0.05], [1.0, 1.0, 1.0]];
        let keys = vec![LegendKey::of_value([9; 3], 0.25, "kg"); 4];
        for direction in directions {
            let near = Camera::framing(&bounds(), direction);
            for camera in [near, near.orthographic(), near.zoom(0.4), near.zoom(1.4)] {
                for size in
                    [SIZE, ImageSize { width: 160, height: 200 }, ImageSize { width: 640, height: 480 }]
                {
                    for is_anatomical in [false, true] {
                        let notes = Notes {
                            title: "2001-02-03".into(),
                            keys: keys.clone(),
                            is_anatomical,
                            ..notes(camera)
                        };
                        let found = areas(size, &notes);
                        for (number, area) in found.iter().enumerate() {
                            let shrunk = Area { from: area.from + 0.5, to: area.to - 0.5 };
                            let mut others = found[number + 1..].iter();
                            let what = format!("{direction:?} {camera:?} {size:?}: {area:?} {found:?}");
                            assert!(!others.any(|other| other.meets(&shrunk)), "{what}");
                        }
                        let is_usual = camera == near && size.width == 640;
                        assert!(!is_usual || found.len() >= 8, "{direction:?}: {found:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_color_bar_lies_beside_the_data() {
        for (width, height) in [(640, 480), (480, 640), (800, 300)] {
            let size = ImageSize { width, height };
            let camera = Camera::framing(&bounds(), [0.0, 0.0, -1.0]).zoom(1.3);
            let lens = Lens::new(&camera, size).unwrap();
            let image = Image { size, rgba: vec![[0.0; 4]; (width * height) as usize] };
            let after = annotated(image, camera);
            let corners = [0, 1, 2, 3].map(|n| {
                let at = [0, 1]
                    .map(|axis| if n >> axis & 1 == 0 { bounds().min[axis] } else { bounds().max[axis] });
                DVec2::from(lens.pixel_of([at[0], at[1], 40.0].into()).unwrap())
            });
            let low = corners.into_iter().fold(DVec2::INFINITY, DVec2::min);
            let high = corners.into_iter().fold(DVec2::NEG_INFINITY, DVec2::max);
            // Greens of the bar's upper half.
            let table = color_map_table("viridis").unwrap();
            let greens: Vec<[f32; 3]> =
                table[190..210].iter().map(|color| color.map(|c| f32::from(c) / 255.0)).collect();
            let bar: Vec<DVec2> = (0..width * height)
                .filter(|&n| greens.iter().any(|green| after.rgba[n as usize][..3] == *green))
                .map(|n| DVec2::new(f64::from(n % width), f64::from(n / width)))
                .collect();
            assert!(!bar.is_empty(), "{size:?}");
            assert!(
                !bar.iter().any(|at| at.cmpgt(low).all() && at.cmplt(high).all()),
                "{size:?}: over the data"
            );
        }
    }

    #[test]
    fn every_pixel_stays_a_color_from_wherever_it_is_seen() {
        let inside = Camera {
            eye: [50.0, 30.0, 20.0],
            target: [50.0, 31.0, 20.0],
            ..Camera::framing(&bounds(), [0.0, 1.0, 0.0])
        };
        let far = Camera::framing(&bounds(), [0.0, 0.0, -1.0]).zoom(1e-6);
        let near = Camera::framing(&bounds(), [1.0, 1.0, 1.0]).zoom(1e6);
        for camera in [inside, far, near, inside.orthographic(), far.orthographic(), near.orthographic()] {
            let image = annotated(filled([0.1, 0.1, 0.1, 0.5]), camera);
            let is_color =
                |pixel: &[f32; 4]| pixel.iter().all(|c| (0.0..=1.0001).contains(c)) && pixel[3] >= 0.5;
            assert!(image.rgba.iter().all(is_color), "{camera:?}");
        }
    }

    #[test]
    fn keys_have_their_colors_one_below_the_other_and_end_above_the_scale_bar() {
        let camera = Camera::framing(&bounds(), [0.0, 1.0, 0.0]);
        let colors: Vec<[u8; 3]> = (0..40).map(|n| [250, 5 * n, 40]).collect();
        let keys = colors.iter().map(|&color| LegendKey::of_value(color, 0.25, "kg")).collect();
        let mut image = filled([0.0; 4]);
        let notes = Notes { title: "2001-02-03".into(), keys, transfer: None, ..notes(camera) };
        annotate(&mut image, &notes).unwrap();
        let rows: Vec<Option<usize>> = colors
            .iter()
            .map(|color| {
                let is_it = |pixel: &[f32; 4]| {
                    pixel[3] == 1.0
                        && pixel[..3].iter().zip(color).all(|(p, c)| (p * 255.0 - f32::from(*c)).abs() < 0.01)
                };
                image.rgba.iter().position(is_it).map(|at| at / SIZE.width as usize)
            })
            .collect();
        let shown: Vec<usize> = rows.iter().copied().map_while(|row| row).collect();
        assert!(shown.len() > 5 && shown.is_sorted_by(|a, b| a + 10 < *b), "{rows:?}");
        assert!(rows[shown.len()..].iter().all(Option::is_none) && shown.len() < 20, "{rows:?}");
        assert_eq!(LegendKey::of_value([0; 3], 1e-7, "").text, "1e-7");
    }
}
