//! Many reads of one call over a catalogue: each data set gets one request for all reads that lie in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{Error, ReadEnds, ReadRequest, Region, Result, Source};
use futures::FutureExt;
use futures::stream::{self, StreamExt};

use super::{ArraySegment, Catalogue, MAX_SEGMENTS_IN_FLIGHT};
use crate::reading::read_batches::{NumberedResults, all_fail};

/// Number of results for which one check shows that their data set has not changed.
const RESULTS_PER_CHECK: usize = 256;

/// Reads of segments in one data set, with the numbers of the caller's reads that they belong to.
struct SegmentReads {
    part: Arc<ArraySegment>,
    numbers: Vec<usize>,
    reads: Vec<(ReadRequest, Region)>,
}

/// Reads of which some segments have not completed.
struct PendingReads {
    /// Number of segments of each read that have not completed.
    left: Vec<usize>,
    failed: BTreeMap<usize, Error>,
}

impl PendingReads {
    /// Records that a segment has completed; returns the result of its read after the last one.
    fn ended(&mut self, number: usize, end: Result<()>) -> Option<(usize, Result<()>)> {
        if let Err(error) = end {
            self.failed.entry(number).or_insert(error);
        }
        let left = self.left.get_mut(number)?;
        *left -= 1;
        (*left == 0).then(|| (number, self.failed.remove(&number).map_or(Ok(()), Err)))
    }
}

impl Catalogue {
    /// Reads each request from the data sets that contain it.
    ///
    /// # Cancel safety
    /// Dropping the stream withdraws the reads that have not completed.
    pub(super) async fn read_each(self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        let joined = match self.joined().await {
            Ok(joined) => joined,
            Err(error) => return all_fail(reads.len(), error),
        };
        let mut there: BTreeMap<usize, SegmentReads> = BTreeMap::new();
        let mut unfinished = PendingReads { left: vec![0; reads.len()], failed: BTreeMap::new() };
        let mut ended = Vec::new();
        // Times with another reference date are read one by one: they are few.
        let mut shifted = Vec::new();
        for (number, (request, into)) in reads.into_iter().enumerate() {
            if let Err(error) = request.check(&joined.dataset, &into) {
                ended.push((number, Err(error)));
            } else if request.selection.is_empty() {
                ended.push((number, Ok(())));
            } else {
                for (part, selection, region) in joined.segments_of(request.array, &request.selection, into) {
                    let request = ReadRequest { array: part.array, selection, ..request.clone() };
                    if part.shift.is_some() {
                        unfinished.left[number] += 1;
                        shifted.push((number, part.clone(), request, region));
                        continue;
                    }
                    let new = || SegmentReads {
                        part: Arc::new(part.clone()),
                        numbers: Vec::new(),
                        reads: Vec::new(),
                    };
                    let there = there.entry(part.entry).or_insert_with(new);
                    there.numbers.push(number);
                    there.reads.push((request, region));
                    unfinished.left[number] += 1;
                }
            }
        }
        let this = self.clone();
        let each = stream::iter(there.into_values()).map(move |there| this.clone().read_there(there));
        let alone = stream::iter(shifted).map(move |(number, part, request, region)| {
            let this = self.clone();
            async move { (number, this.read_segment(&part, request, region).await) }
        });
        let alone = alone.buffer_unordered(MAX_SEGMENTS_IN_FLIGHT);
        let segments = stream::select(each.flatten_unordered(MAX_SEGMENTS_IN_FLIGHT), alone);
        let whole = segments.filter_map(move |(n, end)| std::future::ready(unfinished.ended(n, end)));
        stream::iter(ended).chain(whole).boxed()
    }

    /// Reads from one data set, and checks before and afterwards that it is in the state that was joined.
    fn read_there(self, SegmentReads { part, numbers, reads }: SegmentReads) -> ReadEnds {
        let count = reads.len();
        let this = self.clone();
        let begun = async move {
            if let Err(error) = this.unchanged(&part).await {
                return all_fail(count, error);
            }
            let source = &this.0.entries[part.entry].source;
            let ended = source.read_many(reads).ready_chunks(RESULTS_PER_CHECK);
            let checked = ended.then(move |ended| {
                let (this, part) = (this.clone(), Arc::clone(&part));
                async move { this.checked(&part, ended).await }
            });
            checked.flat_map(stream::iter).boxed()
        };
        begun.flatten_stream().map(move |(n, end)| (numbers[n], end)).boxed()
    }

    /// Returns results of reads of one data set after one check that the data set has not changed.
    async fn checked(&self, part: &ArraySegment, ended: NumberedResults) -> NumberedResults {
        let check = self.unchanged(part).await;
        let of_dataset = |(n, end): (usize, Result<()>)| {
            (n, end.map_err(|error| self.note_staleness(part, error)).and_then(|()| check.clone()))
        };
        ended.into_iter().map(of_dataset).collect()
    }
}
