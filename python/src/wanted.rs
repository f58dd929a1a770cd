//! One read as Python asks for it, and how it is carried out.

use std::sync::Arc;

use node::array::{AxisRange, Dataset, Priority, ReadRequest, Result, Selection, Source, Target, decode};
use node::ops::BlockPlace;
use pyo3::prelude::*;

/// What to read: number of the array, level, `(start, count, step)` per axis.
#[derive(Clone, Debug, FromPyObject)]
pub(crate) struct Wanted(u32, u8, Vec<(u64, u64, u64)>);

impl Wanted {
    /// The same as operations are asked.
    pub(crate) fn place(self, dataset: &Dataset) -> Result<(BlockPlace, Selection)> {
        let Self(array, level, ranges) = self;
        let ranges = ranges.into_iter().map(|(start, count, step)| AxisRange { start, count, step });
        let place = BlockPlace { dataset: dataset.id, generation: dataset.generation, array, level };
        Ok((place, Selection::new(ranges.collect())?))
    }

    /// Reads; elements in C order and the host's byte order, decoded if that is asked.
    pub(crate) async fn read(
        self,
        source: Arc<dyn Source>,
        dataset: Arc<Dataset>,
        is_decoded: bool,
        tier: u8,
    ) -> Result<Vec<u8>> {
        let Self(number, level, ranges) = self;
        let array = dataset.array(number)?;
        let ranges = ranges.into_iter().map(|(start, count, step)| AxisRange { start, count, step });
        let selection = Selection::new(ranges.collect())?;
        selection.check(&array.level(level)?.shape)?;
        let (target, region) = Target::new(&selection.shape(), array.dtype.size_bytes())?;
        let priority = Priority { tier, weight: 0.0 };
        source.read(ReadRequest { array: number, level, selection, priority }, region).await?;
        let mut bytes = target.into_vec()?;
        if is_decoded {
            return decode(&bytes, array.dtype, &array.decoding);
        }
        array.dtype.to_native(&mut bytes);
        Ok(bytes)
    }
}
