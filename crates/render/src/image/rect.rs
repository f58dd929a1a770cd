//! Rectangles of pixels: parts of an image, and the division of images among ranks.

use crate::ImageSize;
use crate::cpu::packet::size::PACKET_SIDE;

/// Columns `left..left + width` and rows `top..top + height` of an image; row 0 is at the top.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rect {
    /// First column.
    pub left: u32,
    /// First row.
    pub top: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// Borders of parts lie at multiples of this many pixels where parts are larger: rays are cast in groups of so many
/// columns and rows.
const ALIGNED: u32 = PACKET_SIDE;

impl Rect {
    /// Returns the rectangle of a whole image.
    #[must_use]
    pub fn whole(size: ImageSize) -> Self {
        Self { left: 0, top: 0, width: size.width, height: size.height }
    }

    /// Size of [`Rect::to_bytes`].
    pub const BYTES: usize = 4 * size_of::<u32>();

    /// Returns the bytes for other processes: left, top, width, height, little-endian.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let Self { left, top, width, height } = self;
        let mut bytes = [0; Self::BYTES];
        for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip([left, top, width, height]) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    /// Reads the bytes that [`Rect::to_bytes`] wrote. Other bytes give an arbitrary rectangle.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[4 * i + byte]));
        Self { left: word(0), top: word(1), width: word(2), height: word(3) }
    }

    /// Returns the number of pixels.
    #[must_use]
    pub fn pixels(&self) -> usize {
        self.width as usize * self.height as usize
    }

    /// True if it has no pixel.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// True if it lies within an image.
    #[must_use]
    pub fn is_within(&self, size: ImageSize) -> bool {
        let [right, bottom] =
            [(self.left, self.width), (self.top, self.height)].map(|(a, b)| u64::from(a) + u64::from(b));
        right <= u64::from(size.width) && bottom <= u64::from(size.height)
    }

    /// Returns the rectangle that both have in common; empty if there is none.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (left, top) = (self.left.max(other.left), self.top.max(other.top));
        let end = |first: u32, count: u32| first.saturating_add(count);
        let right = end(self.left, self.width).min(end(other.left, other.width));
        let bottom = end(self.top, self.height).min(end(other.top, other.height));
        let common =
            Self { left, top, width: right.saturating_sub(left), height: bottom.saturating_sub(top) };
        if common.is_empty() { Self::default() } else { common }
    }

    /// Returns the smallest rectangle that contains both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if self.is_empty() || other.is_empty() {
            return if self.is_empty() { *other } else { *self };
        }
        let (left, top) = (self.left.min(other.left), self.top.min(other.top));
        let right = (self.left + self.width).max(other.left + other.width);
        let bottom = (self.top + self.height).max(other.top + other.height);
        Self { left, top, width: right - left, height: bottom - top }
    }

    /// Returns one of `count` parts of about the same size, next to one another along the longer side. The
    /// parts are disjoint and cover the rectangle.
    #[must_use]
    pub fn part(&self, index: usize, count: usize) -> Self {
        let is_wide = self.width >= self.height;
        let length = if is_wide { self.width } else { self.height };
        let start = |index: usize| border(length, index, count);
        let (from, to) = (start(index), start(index + 1));
        let part = if is_wide {
            Self { left: self.left + from, width: to - from, ..*self }
        } else {
            Self { top: self.top + from, height: to - from, ..*self }
        };
        if part.is_empty() { Self::default() } else { part }
    }

    /// Returns one of `count` parts of about as many rows, one below the other, as [`Rect::part`]; borders
    /// lie at multiples of `unit` rows from the top, so that parts of few rows are empty.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "at most the rows")]
    pub fn rows(&self, index: usize, count: usize, unit: u32) -> Self {
        let units = u64::from(self.height.div_ceil(unit));
        let start = |index: usize| self.height.min((units * index as u64 / count as u64) as u32 * unit);
        let (from, to) = (start(index), start(index + 1));
        let part = Self { top: self.top + from, height: to - from, ..*self };
        if part.is_empty() { Self::default() } else { part }
    }

    /// Returns the index of a pixel of the image in this rectangle, row by row.
    #[must_use]
    pub fn index(&self, column: u32, row: u32) -> usize {
        (row - self.top) as usize * self.width as usize + (column - self.left) as usize
    }
}

/// Returns the position at which part `index` of `count` parts of a length begins.
#[expect(clippy::cast_possible_truncation, reason = "at most the length")]
fn border(length: u32, index: usize, count: usize) -> u32 {
    let exact = (u64::from(length) * index as u64 / count as u64) as u32;
    let is_long = u64::from(length) >= u64::from(ALIGNED) * count as u64;
    if index < count && is_long { exact / ALIGNED * ALIGNED } else { exact }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_disjoint_and_all() {
        for (width, height) in [(1024, 800), (7, 3), (3, 1), (64, 1000), (0, 0)] {
            let whole = Rect { left: 5, top: 9, width, height };
            for count in 1..=17 {
                let parts: Vec<Rect> = (0..count).map(|i| whole.part(i, count)).collect();
                assert_eq!(parts.iter().map(Rect::pixels).sum::<usize>(), whole.pixels());
                for (i, part) in parts.iter().enumerate() {
                    assert_eq!(part.intersection(&whole), *part);
                    assert!(parts[..i].iter().all(|other| part.intersection(other).is_empty()));
                }
            }
        }
    }

    #[test]
    fn rectangles_of_any_bytes_have_an_intersection() {
        let (far, image) =
            (Rect::from_bytes(&[0xFF; Rect::BYTES]), Rect { left: 2, top: 3, width: 9, height: 8 });
        assert!(image.intersection(&far).is_empty());
        let wide = Rect { left: 4, top: 4, width: u32::MAX, height: u32::MAX };
        assert_eq!(image.intersection(&wide), Rect { left: 4, top: 4, width: 7, height: 7 });
    }

    #[test]
    fn rows_are_disjoint_and_all_and_begin_at_units() {
        for (width, height) in [(64, 800), (7, 3), (3, 17), (5, 1000), (0, 0)] {
            let whole = Rect { left: 5, top: 32, width, height };
            for count in 1..=17 {
                let parts: Vec<Rect> = (0..count).map(|i| whole.rows(i, count, 16)).collect();
                assert_eq!(parts.iter().map(Rect::pixels).sum::<usize>(), whole.pixels());
                assert!(parts.iter().all(|part| part.top.is_multiple_of(16)), "{parts:?}");
                let seen: Vec<&Rect> = parts.iter().filter(|part| !part.is_empty()).collect();
                assert!(seen.windows(2).all(|two| two[0].top + two[0].height == two[1].top), "{parts:?}");
            }
        }
    }

    #[test]
    fn unions_hold_both_and_nothing_is_no_place() {
        let a = Rect { left: 2, top: 3, width: 4, height: 1 };
        let b = Rect { left: 10, top: 0, width: 1, height: 2 };
        assert_eq!(a.union(&b), Rect { left: 2, top: 0, width: 9, height: 4 });
        assert_eq!((a.union(&Rect::default()), a.intersection(&b)), (a, Rect::default()));
    }
}
