//! Reads as Python asks for them, and how they are carried out.

use std::sync::Arc;

use futures::stream::StreamExt;
use node::array::{
    AxisRange, Dataset, Priority, ReadRequest, Region, Result, Selection, Source, Target, decode,
};
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
}

/// How elements are read, and given to Python.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) is_decoded: bool,
    pub(crate) tier: u8,
}

impl Reader {
    /// Reads; elements in C order and the host's byte order, decoded if that is asked.
    pub(crate) async fn read(self, wanted: Wanted) -> Result<Vec<u8>> {
        let (request, region, target) = self.request(wanted)?;
        let array = request.array;
        self.source.read(request, region).await?;
        self.finish(array, target)
    }

    /// The same for many, which share their costs; in the order of `wanted`. The first error ends all.
    pub(crate) async fn read_many(self, wanted: Vec<Wanted>) -> Result<Vec<Vec<u8>>> {
        let (mut reads, mut targets) = (Vec::with_capacity(wanted.len()), Vec::with_capacity(wanted.len()));
        for wanted in wanted {
            let (request, region, target) = self.request(wanted)?;
            targets.push((request.array, target));
            reads.push((request, region));
        }
        let mut ends = self.source.read_many(reads);
        while let Some((_, end)) = ends.next().await {
            end?;
        }
        targets.into_iter().map(|(array, target)| self.finish(array, target)).collect()
    }

    fn request(&self, Wanted(number, level, ranges): Wanted) -> Result<(ReadRequest, Region, Target)> {
        let array = self.dataset.array(number)?;
        let ranges = ranges.into_iter().map(|(start, count, step)| AxisRange { start, count, step });
        let selection = Selection::new(ranges.collect())?;
        selection.check(&array.level(level)?.shape)?;
        let (target, region) = Target::new(&selection.shape(), array.dtype.size_bytes())?;
        let priority = Priority { tier: self.tier, weight: 0.0 };
        Ok((ReadRequest { array: number, level, selection, priority }, region, target))
    }

    fn finish(&self, array: u32, target: Target) -> Result<Vec<u8>> {
        let array = self.dataset.array(array)?;
        let mut bytes = target.into_vec()?;
        if self.is_decoded {
            return decode(&bytes, array.dtype, &array.decoding);
        }
        array.dtype.to_native(&mut bytes);
        Ok(bytes)
    }
}
