//! Order of the axes of a chunk: the shape in the file, and the copy of elements to C order.

/// Returns the sizes of axes in the order of the file.
pub(super) fn permuted(shape: &[u64], order: Option<&[usize]>) -> Vec<u64> {
    order.map_or_else(|| shape.to_vec(), |order| order.iter().map(|&axis| shape[axis]).collect())
}

/// Copies elements whose axes have another order in the file to C order.
pub(super) fn in_c_order(bytes: &[u8], shape: &[u64], order: &[usize], item_bytes: usize) -> Vec<u8> {
    let sizes: Vec<usize> = shape.iter().map(|&n| usize::try_from(n).unwrap_or(usize::MAX)).collect();
    // Bytes from one element to the next along each axis of the array, in the file.
    let (mut strides, mut stride) = (vec![0; sizes.len()], item_bytes);
    for &axis in order.iter().rev() {
        strides[axis] = stride;
        stride *= sizes[axis];
    }
    let Some((&row, outer)) = sizes.split_last() else { return bytes.to_vec() };
    let push = match item_bytes {
        1 => push_row::<1>,
        2 => push_row::<2>,
        4 => push_row::<4>,
        8 => push_row::<8>,
        _ => push_items,
    };
    let (mut out, mut at, mut from) = (Vec::with_capacity(bytes.len()), vec![0; outer.len()], 0);
    while out.len() < bytes.len() {
        push(&mut out, &bytes[from..], StridedRow { stride: strides[outer.len()], count: row, item_bytes });
        for axis in (0..outer.len()).rev() {
            at[axis] += 1;
            from += strides[axis];
            if at[axis] < sizes[axis] {
                break;
            }
            from -= strides[axis] * sizes[axis];
            at[axis] = 0;
        }
    }
    out
}

/// Row of elements: distance from one to the next in bytes, their number, and the bytes of each.
#[derive(Clone, Copy)]
struct StridedRow {
    stride: usize,
    count: usize,
    item_bytes: usize,
}

/// Appends a row of elements of `N` bytes, which is quicker than [`push_items`].
fn push_row<const N: usize>(out: &mut Vec<u8>, bytes: &[u8], row: StridedRow) {
    for item in 0..row.count {
        let found = bytes.get(item * row.stride..).and_then(|rest| rest.first_chunk::<N>());
        out.extend_from_slice(found.unwrap_or(&[0; N]));
    }
}

fn push_items(out: &mut Vec<u8>, bytes: &[u8], row: StridedRow) {
    for item in 0..row.count {
        let start = item * row.stride;
        out.extend_from_slice(&bytes[start..start + row.item_bytes]);
    }
}
