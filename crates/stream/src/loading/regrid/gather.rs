//! Copies of elements from source blocks to a block of an even grid. Values are moved, never computed.

use std::collections::BTreeMap;

use array::{ByteOrder, DType, Element, ElementType, Error, Level, Result, Scalar, elements, with_element};

use super::lat_lon_grid::NO_CELL;

/// Source indices along one axis of an even level; `None` if they are equal.
pub(super) type AxisIndices<'a> = Option<&'a [u32]>;

/// Source cells of the pixels of one level of an even longitude-latitude grid.
pub(super) struct GridPixels<'a> {
    /// Axes of latitude and longitude.
    pub(super) axes: [usize; 2],
    /// Pixels along longitude.
    pub(super) columns: usize,
    /// Cells of the source's level along its second axis.
    pub(super) source_columns: u32,
    /// Source cell of each pixel, `row * source_columns + column` of the source's level, or [`NO_CELL`].
    pub(super) cells: &'a [u32],
}

/// Elements to copy along one axis, or along two that are looked up together: offsets in the new block and in
/// the source block, in elements. Blocks have at most 64 MiB.
type CopySteps = Vec<(u32, u32)>;

/// Elements to copy before the shape of the source block is known: offset in the new block, and indices in
/// the source block on each axis.
type SourceOffsets = Vec<(u32, [u32; 2])>;

/// Copies along one axis (given twice) or two, by position of the source block along them.
struct AxisCopies {
    axes: [usize; 2],
    parts: Vec<([u64; 2], SourceOffsets)>,
}

/// Elements that a block copies from one source block.
pub(super) struct BlockCopy {
    /// Index of the source block.
    pub(super) index: u64,
    steps: Vec<CopySteps>,
    /// Number of elements of the source block.
    source_elements: usize,
}

/// Lists the copies from the blocks of `source` for the block of `shape` that begins at `start`; `indices`
/// per axis of the level.
///
/// # Errors
/// `TooLarge` for a block beyond what memory can address.
pub(super) fn block_copies(
    source: &Level,
    [start, shape]: [&[u64]; 2],
    indices: &[AxisIndices<'_>],
    pixels: Option<&GridPixels<'_>>,
) -> Result<Vec<BlockCopy>> {
    let strides = strides(shape)?;
    let is_alone = |axis: &usize| pixels.is_none_or(|pixels| !pixels.axes.contains(axis));
    let mut axis_copies: Vec<AxisCopies> = (0..shape.len())
        .filter(is_alone)
        .map(|axis| along(source.block[axis], axis, start[axis], shape[axis], indices[axis], strides[axis]))
        .collect();
    axis_copies.extend(pixels.map(|pixels| over(&source.block, pixels, start, shape, &strides)));
    let count = axis_copies.iter().map(|factor| factor.parts.len()).product::<usize>();
    (0..count).map(|number| block_copy(source, &axis_copies, number)).collect()
}

/// Combines one part of each axis into the copies from one source block.
fn block_copy(source: &Level, axis_copies: &[AxisCopies], mut number: usize) -> Result<BlockCopy> {
    let mut place = vec![0; source.shape.len()];
    let mut parts = Vec::with_capacity(axis_copies.len());
    for AxisCopies { axes, parts: all } in axis_copies {
        let (at, places) = &all[number % all.len()];
        number /= all.len();
        axes.iter().zip(at).for_each(|(&axis, &at)| place[axis] = at);
        parts.push((axes, places));
    }
    let index = source.block_index(&place);
    let block = source.block_selection(index)?.shape();
    let strides = strides(&block)?;
    let flat = |(axes, places): (&[usize; 2], &SourceOffsets)| -> CopySteps {
        let strides = axes.map(|axis| strides[axis]);
        places.iter().map(|&(to, from)| (to, from[0] * strides[0] + from[1] * strides[1])).collect()
    };
    let mut steps: Vec<CopySteps> = parts.into_iter().map(flat).collect();
    // The longest loop is innermost.
    steps.sort_by_key(Vec::len);
    Ok(BlockCopy { index, steps, source_elements: count_of(&block)? })
}

/// Returns the copies along one axis.
fn along(
    block: u64,
    axis: usize,
    start: u64,
    count: u64,
    indices: AxisIndices<'_>,
    stride: u32,
) -> AxisCopies {
    let mut parts = BlockCopies::default();
    for (place, index) in (0..).zip(start..start + count) {
        let own = usize::try_from(index).ok();
        let source = match indices {
            None => index,
            Some(indices) => own.and_then(|own| indices.get(own)).map_or(0, |&index| index.into()),
        };
        parts.add([source / block; 2], (place * stride, [within(source, block), 0]));
    }
    AxisCopies { axes: [axis; 2], parts: parts.all }
}

/// Returns the copies along latitude and longitude together.
fn over(block: &[u64], pixels: &GridPixels<'_>, start: &[u64], shape: &[u64], strides: &[u32]) -> AxisCopies {
    let [y, x] = pixels.axes;
    let mut parts = BlockCopies::default();
    for (to_row, row) in (0..).zip(start[y]..start[y] + shape[y]) {
        let first = usize::try_from(row).unwrap_or(usize::MAX).saturating_mul(pixels.columns);
        for (to_column, column) in (0..).zip(start[x]..start[x] + shape[x]) {
            let at = first.saturating_add(usize::try_from(column).unwrap_or(usize::MAX));
            let cell = pixels.cells.get(at).copied().unwrap_or(NO_CELL);
            if cell == NO_CELL {
                continue;
            }
            let source = [cell / pixels.source_columns, cell % pixels.source_columns].map(u64::from);
            let place = [source[0] / block[y], source[1] / block[x]];
            let from = [within(source[0], block[y]), within(source[1], block[x])];
            parts.add(place, (to_row * strides[y] + to_column * strides[x], from));
        }
    }
    AxisCopies { axes: pixels.axes, parts: parts.all }
}

/// Returns the offset of an index in its block.
fn within(index: u64, block: u64) -> u32 {
    u32::try_from(index % block).unwrap_or(u32::MAX)
}

/// Elements to copy by position of the source block. Consecutive elements are mostly of the same block.
#[derive(Default)]
struct BlockCopies {
    all: Vec<([u64; 2], SourceOffsets)>,
    numbers: BTreeMap<[u64; 2], usize>,
    last: usize,
}

impl BlockCopies {
    fn add(&mut self, block: [u64; 2], place: (u32, [u32; 2])) {
        if self.all.get(self.last).is_none_or(|(last, _)| *last != block) {
            self.last = *self.numbers.entry(block).or_insert_with(|| {
                self.all.push((block, Vec::new()));
                self.all.len() - 1
            });
        }
        self.all[self.last].1.push(place);
    }
}

impl BlockCopy {
    /// Copies from source block `from` to the new block `to`, both C order with elements of `item_bytes`.
    ///
    /// # Errors
    /// `Corrupt` for a block of another size than its level implies.
    pub(super) fn copy(&self, from: &[u8], to: &mut [u8], item_bytes: usize) -> Result<()> {
        let expected = self.source_elements * item_bytes;
        if from.len() != expected {
            return Err(Error::corrupt(format!(
                "expected a block of {expected} bytes, found {}",
                from.len()
            )));
        }
        match item_bytes {
            1 => copy::<1>(&self.steps, from, to, [0, 0]),
            2 => copy::<2>(&self.steps, from, to, [0, 0]),
            4 => copy::<4>(&self.steps, from, to, [0, 0]),
            _ => copy::<8>(&self.steps, from, to, [0, 0]),
        }
        Ok(())
    }
}

/// Copies along the remaining axes; `at`: offsets in `to` and `from`, in elements.
fn copy<const SIZE: usize>(steps: &[CopySteps], from: &[u8], to: &mut [u8], at: [usize; 2]) {
    let Some((first, rest)) = steps.split_first() else { return };
    for &(there, here) in first {
        let [there, here] = [at[0] + there as usize, at[1] + here as usize];
        if rest.is_empty() {
            to[there * SIZE..][..SIZE].copy_from_slice(&from[here * SIZE..][..SIZE]);
        } else {
            copy::<SIZE>(rest, from, to, [there, here]);
        }
    }
}

/// C-order strides, in elements.
fn strides(shape: &[u64]) -> Result<Vec<u32>> {
    let too_large = |_| Error::too_large(format!("a block of shape {shape:?} has more than 2^32 elements"));
    // Parts of the shape have fewer elements than the whole.
    u32::try_from(count_of(shape)?).map_err(too_large)?;
    (0..shape.len()).map(|axis| u32::try_from(count_of(&shape[axis + 1..])?).map_err(too_large)).collect()
}

/// # Errors
/// `TooLarge` beyond what memory can address.
pub(super) fn count_of(shape: &[u64]) -> Result<usize> {
    let count = shape.iter().try_fold(1u64, |n, &count| n.checked_mul(count));
    let count = count.and_then(|n| usize::try_from(n).ok());
    count.ok_or_else(|| {
        Error::too_large(format!("a block of shape {shape:?} is more than this machine can hold"))
    })
}

/// Representation of elements outside all cells.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MissingElement {
    /// One such element, as stored.
    pub(super) element: Vec<u8>,
    /// Wider type, if every value of the source's type may be valid: values are converted to it.
    pub(super) wider: Option<WiderInteger>,
}

/// Conversion of integers to a wider type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WiderInteger {
    /// Source type, with its actual sign.
    pub(super) from: DType,
    /// Signed integer type of twice the size, little-endian.
    pub(super) to: DType,
}

impl WiderInteger {
    /// Returns the type twice as wide as an integer type (or booleans); `None` for 64 bits.
    pub(super) fn of(from: DType) -> Option<Self> {
        let element = match from.element() {
            ElementType::Bool | ElementType::U8 | ElementType::I8 => ElementType::I16,
            ElementType::U16 | ElementType::I16 => ElementType::I32,
            ElementType::U32 | ElementType::I32 => ElementType::I64,
            _ => return None,
        };
        Some(Self { from, to: DType::new(element, ByteOrder::Little) })
    }

    /// Converts the elements of `block`.
    pub(super) fn convert(self, block: &[u8]) -> Vec<u8> {
        fn each<T: Element>(block: &[u8], wider: WiderInteger) -> Vec<u8> {
            let size = wider.to.size_bytes();
            let mut out = Vec::with_capacity(block.len() * 2);
            for value in elements::<T>(block, wider.from.order()) {
                let value = match value.to_scalar() {
                    Scalar::Unsigned(value) => i64::try_from(value).unwrap_or(i64::MAX),
                    Scalar::Signed(value) => value,
                    Scalar::Float(_) => 0,
                };
                let raw = value.to_le_bytes();
                out.extend_from_slice(&raw[..size]);
            }
            out
        }
        with_element!(self.from.element(), T => each::<T>(block, self))
    }
}
