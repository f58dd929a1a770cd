//! Statistics of a selection, computed part by part in bounded memory.

use std::sync::Arc;

use array::values::stats::Accumulator;
use array::{ArrayInfo, Result, Scalar, Source, Urgency};
use wire::ops::{StatsAnswer, StatsHistogram, StatsParameters};

use crate::bounded_scan::{MAX_PART_BYTES, PARTS_IN_MEMORY, Scan, ScanPart};

/// Memory beyond which the computation does not become faster, in bytes.
pub const MAX_MEMORY_BYTES: u64 = PARTS_IN_MEMORY * MAX_PART_BYTES;

/// Computes the statistics of the elements that `request` names, in `memory_bytes` of memory.
///
/// # Errors
/// `Invalid` for a selection or level that does not exist; the errors of the source.
///
/// # Cancel safety
/// Dropping the future stops reading.
pub async fn gather(
    source: &Arc<dyn Source>,
    request: &StatsParameters,
    urgency: Urgency,
    memory_bytes: u64,
) -> Result<StatsAnswer> {
    let dataset = source.describe().await?;
    let StatsParameters { place, bins, selection } = request;
    let scan = Scan::new(Arc::clone(source), dataset, place, selection.clone(), urgency.priority)?;
    let add = |total: &mut Accumulator, part: &ScanPart, array: &ArrayInfo| {
        total.add(&part.bytes, array.dtype, &array.decoding)
    };
    let total = Accumulator::new(usize::from(*bins))?;
    let total = scan.fold(memory_bytes / PARTS_IN_MEMORY, &[], total, add, |_| ()).await?;
    Ok(answer(&total))
}

fn answer(total: &Accumulator) -> StatsAnswer {
    let found = total.stats();
    let histogram = found.histogram.map_or_else(StatsHistogram::default, |h| StatsHistogram {
        low: h.low,
        high: h.high,
        counts: h.counts,
    });
    StatsAnswer {
        count: found.count,
        missing: found.missing,
        min: found.min.map(Scalar::Float),
        max: found.max.map(Scalar::Float),
        mean: found.mean.map(Scalar::Float),
        histogram,
    }
}
