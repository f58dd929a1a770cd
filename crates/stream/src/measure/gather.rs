//! Elements of a list of indices, read in few boxes. Neighbors in the list are usually neighbors in the array.

use std::time::Duration;

use array::{AxisRange, Error, ErrorKind, Priority, ReadRequest, Result, Selection, Source, Target};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::subject::DrawnVoxels;

/// Most elements of a box: as many as a stored chunk usually has, so that few are read in vain.
const MAX_BOX_ELEMENTS: u64 = 1 << 16;
/// Boxes that are read at the same time, at most 2 MiB of memory together.
const BOXES_IN_FLIGHT: usize = 4;
/// Longest time for one element that somebody waits for: beyond it, they get the value that is drawn.
const ELEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Box of an array that is read for some of the indices of a list.
struct IndexBox {
    low: Vec<u64>,
    high: Vec<u64>,
    /// Number of indices.
    count: usize,
}

impl IndexBox {
    fn around(index: &[u64]) -> Self {
        Self { low: index.to_vec(), high: index.to_vec(), count: 1 }
    }

    /// Extends the box by an index; false, and unchanged, if it would be too large.
    fn extend(&mut self, index: &[u64]) -> bool {
        let low: Vec<u64> = self.low.iter().zip(index).map(|(a, b)| *a.min(b)).collect();
        let high: Vec<u64> = self.high.iter().zip(index).map(|(a, b)| *a.max(b)).collect();
        let elements = low.iter().zip(&high).fold(1u64, |n, (low, high)| n.saturating_mul(high - low + 1));
        if elements > MAX_BOX_ELEMENTS {
            return false;
        }
        (self.low, self.high) = (low, high);
        self.count += 1;
        true
    }

    fn selection(&self) -> Result<Selection> {
        let range = |(&low, &high): (&u64, &u64)| AxisRange { start: low, count: high - low + 1, step: 1 };
        Selection::new(self.low.iter().zip(&self.high).map(range))
    }

    /// Returns the number of an index in the box, in C order.
    fn place_of(&self, index: &[u64]) -> u64 {
        let sides = self.low.iter().zip(&self.high);
        sides.zip(index).fold(0, |n, ((low, high), at)| n * (high - low + 1) + (at - low))
    }
}

/// Reads the elements at these indices of the stored array, in the order of the list, as stored. Calls `on_read` with
/// the number of elements read so far.
///
/// # Errors
/// Those of the source.
///
/// # Cancel safety
/// Dropping the future stops reading.
pub(crate) async fn gather(
    drawn: &DrawnVoxels,
    indices: &[Vec<u64>],
    mut on_read: impl FnMut(usize) + Send,
) -> Result<Vec<u8>> {
    let mut boxes: Vec<IndexBox> = Vec::new();
    for index in indices {
        if !boxes.last_mut().is_some_and(|last| last.extend(index)) {
            boxes.push(IndexBox::around(index));
        }
    }
    let item_bytes = drawn.info()?.dtype.size_bytes();
    let mut bytes = Vec::with_capacity(indices.len() * item_bytes);
    let mut left = indices.iter();
    let read = |own: IndexBox| async move {
        let elements = read_selection(drawn, own.selection()?).await?;
        Ok::<_, Error>((own, elements))
    };
    let mut parts = std::pin::pin!(stream::iter(boxes).map(read).buffered(BOXES_IN_FLIGHT));
    let mut done = 0;
    while let Some((own, elements)) = parts.try_next().await? {
        for index in left.by_ref().take(own.count) {
            let at = usize::try_from(own.place_of(index)).unwrap_or(usize::MAX).saturating_mul(item_bytes);
            let element = elements.get(at..at.saturating_add(item_bytes));
            bytes.extend_from_slice(element.ok_or_else(|| Error::internal("a box lacks an element"))?);
        }
        done += own.count;
        on_read(done);
    }
    Ok(bytes)
}

/// Reads a selection of the stored array, as stored.
///
/// # Errors
/// Those of the source.
pub(crate) async fn read_selection(drawn: &DrawnVoxels, selection: Selection) -> Result<Vec<u8>> {
    let array = drawn.stored_array();
    let (target, region) = Target::new(&selection.shape(), drawn.info()?.dtype.size_bytes())?;
    let request = ReadRequest { array, level: 0, selection, priority: Priority::INTERACTIVE };
    drawn.places.source.read(request, region).await?;
    target.into_vec()
}

/// Reads one element of an array of the source, as stored, within a bounded time.
///
/// # Errors
/// `TimedOut`; those of the source.
pub(crate) async fn read_element(
    source: &dyn Source,
    array: u32,
    item_bytes: usize,
    index: &[u64],
) -> Result<Vec<u8>> {
    let selection = Selection::of_box(index, &vec![1; index.len()]);
    let (target, region) = Target::new(&selection.shape(), item_bytes)?;
    let request = ReadRequest { array, level: 0, selection, priority: Priority::INTERACTIVE };
    let read = tokio::time::timeout(ELEMENT_TIMEOUT, source.read(request, region)).await;
    read.map_err(|_elapsed| {
        let secs = ELEMENT_TIMEOUT.as_secs();
        Error::new(ErrorKind::TimedOut, format!("the value did not arrive within {secs} s"))
    })??;
    target.into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagonal_line_is_read_in_boxes_of_bounded_size() {
        let mut own = IndexBox::around(&[7, 0, 0, 9]);
        let mut length = 1;
        while own.extend(&[7, length, length, 9 - length.min(9)]) {
            length += 1;
        }
        assert_eq!((length, own.count), (80, 80));
        assert_eq!(own.selection().unwrap().shape(), [1, 80, 80, 10]);
        assert_eq!(own.place_of(&[7, 2, 3, 1]), (2 * 80 + 3) * 10 + 1);
    }
}
