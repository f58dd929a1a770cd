//! Texts beside their vertices, in front of a dark border so that they can be read on all colors.

use std::collections::BTreeMap;

use glam::DVec2;

use crate::cpu::fragments::Fragment;
use crate::geometry::GeometryPicture;
use crate::geometry::project::ProjectedLayer;
use crate::geometry::scan::holds;
use crate::image::annotate::text::{TextPlace, TextWriter};

/// Most fragments of the texts of a layer; later texts are left out.
const MAX_TEXT_FRAGMENTS: usize = 1 << 20;
/// Height of letters as a share of the image's, and its limits in pixels.
const LETTERS_SHARE: f32 = 1.0 / 45.0;
const LETTERS_PIXELS: [f32; 2] = [11.0, 36.0];
/// Opacity of the border.
const BORDER: f32 = 0.6;

/// Returns the fragments of the texts of a layer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bytes of colors, pixels of the image"
)]
pub(crate) fn fragments_of_texts(layer: &ProjectedLayer<'_>, picture: &GeometryPicture<'_>) -> Vec<Fragment> {
    let texts = &layer.layer.shape.geometry().texts;
    if texts.is_empty() {
        return Vec::new();
    }
    let [least, most] = LETTERS_PIXELS;
    let writer = TextWriter::new((picture.size.height as f32 * LETTERS_SHARE).clamp(least, most));
    let size = picture.size;
    let mut fragments = Vec::new();
    for text in texts {
        if fragments.len() > MAX_TEXT_FRAGMENTS {
            break;
        }
        let (vertex, world) = (layer.vertices[text.vertex as usize], layer.layer.shape.position(text.vertex));
        let is_hidden = vertex.depth <= layer.near
            || layer.cut.is_some_and(|cut| !cut.is_near(world))
            || picture.clip.is_some_and(|clip| !holds(&clip, world));
        let at = DVec2::new(vertex.at[0] + layer.radius + 3.0, vertex.at[1]);
        let is_inside = at.x > -1e4
            && at.y > -1e4
            && at.x < f64::from(size.width)
            && at.y < f64::from(size.height) + 50.0;
        if is_hidden || !is_inside {
            continue;
        }
        let depth = if layer.cut.is_some() { -1e30 } else { vertex.depth as f32 };
        // Coverage of the letters and of the border around them.
        let mut covered = BTreeMap::<(i64, i64), [f32; 2]>::new();
        for (column, row, own) in writer.pixels(&text.text, at, TextPlace::Left) {
            for (x, y) in (-1..=1).flat_map(|x| (-1..=1).map(move |y| (x, y))) {
                let border = &mut covered.entry((row + y, column + x)).or_default()[1];
                *border = border.max(own);
            }
            let letter = &mut covered.entry((row, column)).or_default()[0];
            *letter = letter.max(own);
        }
        for ((row, column), [letter, border]) in covered {
            let (Ok(column), Ok(row)) = (u32::try_from(column), u32::try_from(row)) else { continue };
            if column >= size.width || row >= size.height {
                continue;
            }
            let pixel = row * size.width + column;
            let opacity = layer.layer.opacity;
            for (color, share) in [(layer.color(text.vertex), letter), ([0; 3], border * BORDER)] {
                let alpha = (share * opacity * 255.0).round() as u8;
                if alpha > 0 {
                    fragments.push(Fragment { pixel, depth, color, alpha });
                }
            }
        }
    }
    fragments
}
