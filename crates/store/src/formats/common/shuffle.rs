//! Inverse of the shuffle filters: bytes or bits of elements that are stored apart.

/// Elements whose bits are put apart together.
const GROUP: usize = 8;

/// Undoes the byte shuffle: the first bytes of all elements, then the second ones and so on; a rest is copied unchanged.
pub(crate) fn unshuffle(bytes: &[u8], item_bytes: usize, out: &mut [u8]) {
    let count = bytes.len().checked_div(item_bytes).unwrap_or(0);
    if item_bytes <= 1 || count <= 1 {
        out.copy_from_slice(bytes);
        return;
    }
    match item_bytes {
        2 => unshuffle_items::<2>(bytes, out),
        4 => unshuffle_items::<4>(bytes, out),
        8 => unshuffle_items::<8>(bytes, out),
        _ => {
            for (plane, values) in bytes.chunks_exact(count).take(item_bytes).enumerate() {
                for (item, &value) in values.iter().enumerate() {
                    out[item * item_bytes + plane] = value;
                }
            }
        }
    }
    let rest = count * item_bytes;
    out[rest..].copy_from_slice(&bytes[rest..]);
}

fn unshuffle_items<const N: usize>(bytes: &[u8], out: &mut [u8]) {
    let count = bytes.len() / N;
    let planes: [&[u8]; N] = std::array::from_fn(|plane| &bytes[plane * count..(plane + 1) * count]);
    for (item, place) in out.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        *place = std::array::from_fn(|plane| planes[plane][item]);
    }
}

/// Bit-shuffled: the lowest bits of the first bytes of all elements, then the next bits, ... Elements beyond the last whole
/// eight, and a rest, stay as they are.
pub(crate) fn unshuffle_bits(bytes: &[u8], item_bytes: usize, out: &mut [u8]) {
    let count = bytes.len().checked_div(item_bytes).unwrap_or(0) / GROUP * GROUP;
    let groups = count / GROUP;
    // One row for each bit of an element, a bit for each element.
    let (rows, rest) = bytes.split_at(count * item_bytes);
    for byte in 0..if groups == 0 { 0 } else { item_bytes } {
        for group in 0..groups {
            let bits = std::array::from_fn(|bit| rows[(byte * GROUP + bit) * groups + group]);
            for (item, value) in transposed(bits).into_iter().enumerate() {
                out[(group * GROUP + item) * item_bytes + byte] = value;
            }
        }
    }
    out[count * item_bytes..].copy_from_slice(rest);
}

/// Bit k of byte j becomes bit j of byte k.
fn transposed(bytes: [u8; 8]) -> [u8; 8] {
    let mut x = u64::from_le_bytes(bytes);
    for (distance, mask) in
        [(7, 0x00aa_00aa_00aa_00aa_u64), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
    {
        let swapped = (x ^ (x >> distance)) & mask;
        x ^= swapped ^ (swapped << distance);
    }
    x.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unshuffle_puts_bytes_together() {
        let unshuffled = |bytes: &[u8], item| {
            let mut out = vec![0; bytes.len()];
            unshuffle(bytes, item, &mut out);
            out
        };
        assert_eq!(unshuffled(&[1, 3, 5, 2, 4, 6, 9], 2), [1, 2, 3, 4, 5, 6, 9]);
        assert_eq!(unshuffled(&[1, 4, 2, 5, 3, 6], 3), [1, 2, 3, 4, 5, 6]);
        assert_eq!(unshuffled(&[7, 8], 1), [7, 8]);
        assert_eq!(unshuffled(&[7, 8], 0), [7, 8]);
    }

    #[test]
    fn unshuffle_bits_puts_bits_together() {
        // Sixteen elements of three bytes and a rest, shuffled bit by bit.
        let items: Vec<u8> = (0..50u8).map(|n| n.wrapping_mul(37).wrapping_add(11)).collect();
        let (count, item) = (16, 3);
        let mut packed = vec![0; count * item];
        for row in 0..item * 8 {
            for element in 0..count {
                let bit = items[element * item + row / 8] >> (row % 8) & 1;
                packed[row * count / 8 + element / 8] |= bit << (element % 8);
            }
        }
        packed.extend(&items[count * item..]);
        let mut out = vec![0; packed.len()];
        unshuffle_bits(&packed, item, &mut out);
        assert_eq!(out, items);
        unshuffle_bits(&items[..5], 3, &mut out[..5]);
        assert_eq!(out[..5], items[..5]);
    }
}
