//! Many reads of one call, sorted by what becomes of them: those that end at once, small ones that are asked together, large
//! ones that go by themselves.

use array::{Dataset, Error, ReadEnds, ReadRequest, Region, Result};
use futures::stream::{self, StreamExt};

/// Results of at most so many bytes come together with others.
const MAX_SMALL_BYTES: usize = 64 << 10;

/// A read with its number in its call.
pub(crate) type NumberedRead = (usize, ReadRequest, Region);

/// Reads of one data set.
#[derive(Default)]
pub(crate) struct ReadBatches {
    /// Nothing is to be read, or it cannot be.
    pub(crate) ended: Vec<(usize, Result<()>)>,
    pub(crate) small: Vec<NumberedRead>,
    pub(crate) large: Vec<NumberedRead>,
}

impl ReadBatches {
    pub(crate) fn of(dataset: &Dataset, reads: Vec<(ReadRequest, Region)>) -> Self {
        // Where there are many, most are small: they are moved once.
        let mut sorted = Self { small: Vec::with_capacity(reads.len()), ..Self::default() };
        for (number, (request, into)) in reads.into_iter().enumerate() {
            match request.check(dataset, &into) {
                Ok(_) if request.selection.is_empty() => sorted.ended.push((number, Ok(()))),
                Ok(_) if into.size_bytes() <= MAX_SMALL_BYTES => sorted.small.push((number, request, into)),
                Ok(_) => sorted.large.push((number, request, into)),
                Err(error) => sorted.ended.push((number, Err(error))),
            }
        }
        sorted
    }
}

/// So many reads that all end with an error.
pub fn all_fail(count: usize, error: Error) -> ReadEnds {
    stream::iter((0..count).map(move |number| (number, Err(error.clone())))).boxed()
}
