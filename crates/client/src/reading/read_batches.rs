//! Sorting of the reads of one call: reads that complete at once, small ones that share a request, and large ones with
//! a request each.

use array::{Dataset, Error, ReadEnds, ReadRequest, Region, Result};
use futures::stream::{self, StreamExt};

/// Maximum size of a result that shares a request with others, in bytes.
const MAX_SMALL_BYTES: usize = 64 << 10;

/// A read with its number in its call.
pub(crate) type NumberedRead = (usize, ReadRequest, Region);

/// Results of reads, each with its number in its call.
pub(crate) type NumberedResults = Vec<(usize, Result<()>)>;

/// Reads of one data set.
#[derive(Default)]
pub(crate) struct ReadBatches {
    /// Reads that complete at once: they are empty or not valid.
    pub(crate) ended: NumberedResults,
    pub(crate) small: Vec<NumberedRead>,
    pub(crate) large: Vec<NumberedRead>,
}

impl ReadBatches {
    pub(crate) fn of(dataset: &Dataset, reads: Vec<(ReadRequest, Region)>) -> Self {
        // Most reads of a large call are small: they are moved once.
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

/// Returns the results of `count` reads that all fail with `error`.
pub fn all_fail(count: usize, error: Error) -> ReadEnds {
    stream::iter((0..count).map(move |number| (number, Err(error.clone())))).boxed()
}
