//! Shuffle: the bytes of elements sorted by their position in the element, all first ones, then all second
//! ones, and so on. Values that change slowly have upper bytes that hardly change, which compress well side
//! by side. An incomplete element at the end is left unchanged.

/// Elements handled at a time, so that input and output stay in the first-level cache.
const TILE: usize = 512;

/// Shuffles the bytes of elements.
pub(super) fn sort(plain: &[u8], width: usize) -> Vec<u8> {
    match width {
        2 => sort_elements::<2>(plain),
        4 => sort_elements::<4>(plain),
        8 => sort_elements::<8>(plain),
        _ => transpose(plain, width, plain.len() / width),
    }
}

/// Reverses [`sort`].
pub(super) fn unsort(sorted: &[u8], width: usize) -> Vec<u8> {
    match width {
        2 => unsort_elements::<2>(sorted),
        4 => unsort_elements::<4>(sorted),
        8 => unsort_elements::<8>(sorted),
        _ => transpose(sorted, sorted.len() / width, width),
    }
}

/// Transposes a table of `rows` rows; an incomplete row is left unchanged.
fn transpose(from: &[u8], columns: usize, rows: usize) -> Vec<u8> {
    let mut to = from.to_vec();
    for row in 0..rows {
        for column in 0..columns {
            to[column * rows + row] = from[row * columns + column];
        }
    }
    to
}

fn sort_elements<const WIDTH: usize>(plain: &[u8]) -> Vec<u8> {
    let (elements, rest) = plain.as_chunks::<WIDTH>();
    let count = elements.len();
    let mut sorted = vec![0; plain.len()];
    for (tile, elements) in elements.chunks(TILE).enumerate() {
        for place in 0..WIDTH {
            let start = place * count + tile * TILE;
            let to = &mut sorted[start..start + elements.len()];
            to.iter_mut().zip(elements).for_each(|(to, element)| *to = element[place]);
        }
    }
    sorted[count * WIDTH..].copy_from_slice(rest);
    sorted
}

fn unsort_elements<const WIDTH: usize>(sorted: &[u8]) -> Vec<u8> {
    let mut plain = vec![0; sorted.len()];
    let (elements, rest) = plain.as_chunks_mut::<WIDTH>();
    let count = elements.len();
    for (tile, elements) in elements.chunks_mut(TILE).enumerate() {
        let from: [&[u8]; WIDTH] =
            std::array::from_fn(|place| &sorted[place * count + tile * TILE..][..elements.len()]);
        for (at, element) in elements.iter_mut().enumerate() {
            *element = std::array::from_fn(|place| from[place][at]);
        }
    }
    rest.copy_from_slice(&sorted[count * WIDTH..]);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_by_place_and_back() {
        assert_eq!(sort(b"aAbBcC!", 2), b"abcABC!");
        assert_eq!(sort(b"123123123", 3), b"111222333");
        let bytes: Vec<u8> = (0..40_007_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
        for width in 2..=16 {
            assert_eq!(sort(&bytes, width), transpose(&bytes, width, bytes.len() / width), "{width}");
            assert_eq!(unsort(&sort(&bytes, width), width), bytes, "{width}");
        }
    }
}
