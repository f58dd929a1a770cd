//! Statistics of a selection, gathered slab by slab with bounded memory.

use std::sync::Arc;

use array::stats::Accumulator;
use array::{Error, ReadRequest, Result, Scalar, Selection, Source, Target, Urgency};
use futures::stream::{self, StreamExt, TryStreamExt};
use wire::ops::{Histogram, Stats, StatsRequest};

use crate::slabs::slabs;

/// Slabs being read.
const SLABS_UNDER_WAY: usize = 2;
/// Slabs in memory: those, and one that is being counted.
const SLABS_IN_MEMORY: u64 = 3;
/// More memory than this makes it no faster, bytes.
pub(crate) const MOST_BYTES: u64 = SLABS_IN_MEMORY * (8 << 20);

/// Reads what `request` names and counts it, in `memory_bytes` of memory.
///
/// # Errors
/// `Invalid` for a selection or level that is none; the source's.
///
/// # Cancel safety
/// Dropping it stops reading.
pub(crate) async fn gather(
    source: &Arc<dyn Source>,
    request: &StatsRequest,
    urgency: Urgency,
    memory_bytes: u64,
) -> Result<Stats> {
    let dataset = source.describe().await?;
    let array = dataset.array(request.place.array)?;
    let level = array.level(request.place.level)?;
    let selection = request.selection.clone().unwrap_or_else(|| Selection::all(&level.shape));
    selection.check(&level.shape)?;
    let mut total = Accumulator::new(usize::from(request.bins))?;
    let item_bytes = array.dtype.size_bytes();
    let slabs = slabs(&selection, item_bytes, level.grain(), memory_bytes / SLABS_IN_MEMORY);
    let mut read = stream::iter(slabs)
        .map(|slab| {
            let request = ReadRequest {
                array: request.place.array,
                level: request.place.level,
                selection: slab.selection,
                priority: urgency.priority,
            };
            async move {
                let (target, region) = Target::new(&request.selection.shape(), item_bytes)?;
                source.read(request, region).await?;
                target.into_vec()
            }
        })
        .buffered(SLABS_UNDER_WAY);
    while let Some(bytes) = read.try_next().await? {
        let (dtype, decoding) = (array.dtype, array.decoding.clone());
        let count = move || {
            total.add(&bytes, dtype, &decoding)?;
            Ok::<_, Error>(total)
        };
        total = tokio::task::spawn_blocking(count)
            .await
            .map_err(|e| Error::internal(format!("counting ended early: {e}")))??;
    }
    Ok(answer(&total))
}

fn answer(total: &Accumulator) -> Stats {
    let found = total.stats();
    let histogram = found.histogram.map_or_else(Histogram::default, |h| Histogram {
        low: h.low,
        high: h.high,
        counts: h.counts,
    });
    Stats {
        count: found.count,
        missing: found.missing,
        min: found.min.map(Scalar::Float),
        max: found.max.map(Scalar::Float),
        mean: found.mean.map(Scalar::Float),
        histogram,
    }
}
