//! Pieces of images: cutting, compositing, and messages.

use array::{Error, Result};
use render::{PartialImage, Rect, over};

/// Bytes before the pixels of a message: the rectangle, and whether there are heights.
pub(crate) const HEAD_BYTES: usize = 5 * size_of::<u32>();

/// Returns the part of a piece that lies in a rectangle.
pub(crate) fn cut(piece: &PartialImage, rect: &Rect) -> PartialImage {
    let rect = piece.rect.intersection(rect);
    if rect == piece.rect {
        return piece.clone();
    }
    let width = rect.width as usize;
    let rows = (rect.top..rect.top + rect.height).map(|row| piece.rect.index(rect.left, row));
    let mut part = PartialImage { rect, rgba: Vec::with_capacity(rect.pixels()), heights: Vec::new() };
    for start in rows {
        part.rgba.extend(&piece.rgba[start..start + width]);
        if !piece.heights.is_empty() {
            part.heights.extend(&piece.heights[start..start + width]);
        }
    }
    part
}

/// Composites pieces, nearest first.
pub(crate) fn stack(pieces: Vec<PartialImage>) -> PartialImage {
    let rect = pieces.iter().fold(Rect::default(), |rect, piece| rect.union(&piece.rect));
    let has_heights = pieces.iter().any(|piece| !piece.heights.is_empty());
    let mut pieces = pieces.into_iter().filter(|piece| !piece.rect.is_empty()).peekable();
    // Pieces mostly cover the same rectangle, and then the nearest one is reused.
    let first = pieces.next_if(|piece| piece.rect == rect && piece.heights.is_empty() != has_heights);
    let mut all = first.unwrap_or_else(|| PartialImage::transparent(rect, has_heights));
    pieces.for_each(|piece| put_behind(&mut all, &piece));
    all
}

/// Composites a piece behind another one that covers it, and has heights if the piece has any.
fn put_behind(front: &mut PartialImage, behind: &PartialImage) {
    let width = behind.rect.width as usize;
    for (number, row) in (behind.rect.top..behind.rect.top + behind.rect.height).enumerate() {
        let start = front.rect.index(behind.rect.left, row);
        let own = number * width..(number + 1) * width;
        over(&mut front.rgba[start..start + width], &behind.rgba[own.clone()]);
        if !behind.heights.is_empty() {
            highest(&mut front.heights[start..start + width], &behind.heights[own]);
        }
    }
}

/// Combines heights of extreme values: the larger one counts, at any depth.
fn highest(heights: &mut [f32], others: &[f32]) {
    for (height, other) in heights.iter_mut().zip(others) {
        *height = height.max(*other);
    }
}

/// Serializes a piece in native byte order: ranks are processes of one program on machines of one kind.
pub(crate) fn to_message(piece: &PartialImage) -> Vec<u8> {
    let Rect { left, top, width, height } = piece.rect;
    let head = [left, top, width, height, u32::from(!piece.heights.is_empty())];
    let mut message = Vec::with_capacity(HEAD_BYTES + piece.rgba.len() * 16 + piece.heights.len() * 4);
    message.extend_from_slice(bytemuck::cast_slice(&head));
    message.extend_from_slice(bytemuck::cast_slice(&piece.rgba));
    message.extend_from_slice(bytemuck::cast_slice(&piece.heights));
    message
}

/// Parses a message with a piece of `region`.
///
/// # Errors
/// `Corrupt` for an invalid message, or a piece of another part of the image.
pub(crate) fn from_message(message: &[u8], region: &Rect) -> Result<PartialImage> {
    let (head, pixels) = message
        .split_first_chunk::<HEAD_BYTES>()
        .ok_or_else(|| Error::corrupt(format!("invalid piece of an image in {} bytes", message.len())))?;
    let word =
        |i: usize| u32::from_ne_bytes([head[4 * i], head[4 * i + 1], head[4 * i + 2], head[4 * i + 3]]);
    let rect = Rect { left: word(0), top: word(1), width: word(2), height: word(3) };
    let is_inside = |from: u32, length: u32, low: u32, most: u32| {
        from >= low && from.checked_add(length).is_some_and(|end| end <= low + most)
    };
    let lies_there = rect.is_empty()
        || is_inside(rect.left, rect.width, region.left, region.width)
            && is_inside(rect.top, rect.height, region.top, region.height);
    // A rectangle within the region bounds the number of pixels.
    let count = if lies_there { rect.pixels() } else { 0 };
    let (colors, heights) =
        (count * size_of::<[f32; 4]>(), if word(4) == 0 { 0 } else { count * size_of::<f32>() });
    if !lies_there || pixels.len() != colors + heights {
        return Err(Error::corrupt(format!(
            "expected a piece within {region:?}, found {rect:?} in {} bytes; do all ranks run the same program?",
            message.len()
        )));
    }
    let rect = if rect.is_empty() { Rect::default() } else { rect };
    let (colors, heights) = pixels.split_at(colors);
    let mut piece = PartialImage {
        rect,
        rgba: vec![[0.0; 4]; rect.pixels()],
        heights: vec![0.0; heights.len() / size_of::<f32>()],
    };
    bytemuck::cast_slice_mut(&mut piece.rgba).copy_from_slice(colors);
    bytemuck::cast_slice_mut(&mut piece.heights).copy_from_slice(heights);
    Ok(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(rect: Rect, has_heights: bool) -> PartialImage {
        let mut piece = PartialImage::transparent(rect, has_heights);
        for (i, pixel) in (0u16..).zip(&mut piece.rgba) {
            *pixel = [0.1, 0.2, 0.3, 0.4].map(|v| v * f32::from(i % 7) / 6.0);
        }
        for (i, height) in (0u16..).zip(&mut piece.heights) {
            *height = f32::from(i);
        }
        piece
    }

    #[test]
    fn messages_hold_pieces_and_nothing_else() {
        let region = Rect { left: 4, top: 8, width: 8, height: 4 };
        for has_heights in [false, true] {
            for rect in [region, Rect { left: 5, top: 9, width: 3, height: 2 }, Rect::default()] {
                let sent = piece(rect, has_heights);
                let message = to_message(&sent);
                assert_eq!(from_message(&message, &region).unwrap(), sent);
                assert!(from_message(&message[..message.len() - 1], &region).is_err());
            }
        }
        let elsewhere = to_message(&piece(Rect { left: 3, top: 9, width: 3, height: 2 }, false));
        assert!(from_message(&elsewhere, &region).is_err());
        let huge: Vec<u8> = [u32::MAX; 5].iter().flat_map(|v| v.to_ne_bytes()).collect();
        assert!(from_message(&huge, &region).is_err());
    }

    /// Ranks of one program send heights all or none; what comes by messages may say otherwise.
    #[test]
    fn a_piece_without_heights_may_stand_before_one_that_has_some() {
        let region = Rect { left: 4, top: 8, width: 8, height: 4 };
        let received = |has_heights| from_message(&to_message(&piece(region, has_heights)), &region).unwrap();
        for order in [[false, true], [true, false], [false, false]] {
            let all = stack(order.map(received).into());
            let mut colors = piece(region, false).rgba;
            over(&mut colors, &piece(region, false).rgba);
            assert_eq!(all.rgba, colors, "{order:?}");
            let heights = if order.contains(&true) { piece(region, true).heights } else { Vec::new() };
            assert_eq!(all.heights, heights, "{order:?}");
        }
    }

    #[test]
    fn what_is_cut_out_is_what_lies_there() {
        let whole = piece(Rect { left: 2, top: 3, width: 9, height: 7 }, true);
        let part = cut(&whole, &Rect { left: 0, top: 5, width: 6, height: 2 });
        assert_eq!(part.rect, Rect { left: 2, top: 5, width: 4, height: 2 });
        for row in 5..7 {
            for column in 2..6 {
                let (own, theirs) = (part.rect.index(column, row), whole.rect.index(column, row));
                assert_eq!((part.rgba[own], part.heights[own]), (whole.rgba[theirs], whole.heights[theirs]));
            }
        }
    }
}
