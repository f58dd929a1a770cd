//! Operations `pick` and `measure`: values of what the pictures of a viewing node show.

use std::sync::Arc;

use array::Result;
use bytes::Bytes;
use export::bounded_scan::Scan;
use export::region_statistics::{self, MAX_REGION_MEMORY_BYTES, RegionFilter, RegionStatistics};
use serde::Serialize;
use server::ops::{BeginOutcome, Handler, OperationCall};
use stream::{
    MeasureRequest, MeasuredArray, PickRequest, PlotRange, RegionBox, RegionMask, Session, StoredRegion,
    ViewMeasurement,
};
use wire::ops::{self, BlockPlace, encode_json};

/// Memory of one `pick` for blocks that no picture has loaded: those along one ray through a volume of 2,048 voxels a side.
const MAX_PICK_BYTES: u64 = 64 << 20;
/// Memory of a `measure` of values: boxes in flight, and the values of one answer.
const MAX_VALUES_BYTES: u64 = 4 << 20;

/// Answers `pick`: what positions in a picture show.
pub(crate) struct PickHandler {
    session: Arc<Session>,
}

impl PickHandler {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self { session }
    }
}

impl Handler for PickHandler {
    type Work = PickRequest;

    fn name(&self) -> &'static str {
        ops::PICK
    }

    fn is_forwarded(&self) -> bool {
        false
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<PickRequest>> {
        PickRequest::parse(&parameters).map(BeginOutcome::Work)
    }

    async fn run(&self, request: PickRequest, call: &OperationCall) -> Result<()> {
        let mut memory = call.enter(MAX_PICK_BYTES).await;
        let memory_bytes = usize::try_from(memory.admitted().await).unwrap_or(usize::MAX);
        let answer = self.session.pick(&request, memory_bytes).await?;
        call.operation.item(encode_json(&answer)?, Bytes::new()).await
    }
}

/// Answers `measure`: values along a line, over time or of a whole line, statistics of a region.
pub(crate) struct MeasureHandler {
    session: Arc<Session>,
}

impl MeasureHandler {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self { session }
    }
}

/// Statistics of a region, with the elements that they are of.
#[derive(Serialize)]
struct RegionAnswer {
    #[serde(flatten)]
    of: MeasuredArray,
    /// Index of the first element and after the last, per axis.
    selection: Vec<[u64; 2]>,
    /// Elements of the selection that count: `all`, `cells` (see `spans`) or `box` (in world space).
    mask: &'static str,
    /// Axes of the cells and their rows: `[index, first, after the last]`.
    spans: Option<SpanList>,
    /// Statistics: one entry, or one for each channel.
    channels: Vec<ChannelStatistics>,
}

/// Rows of the cells of a region.
#[derive(Serialize)]
struct SpanList {
    axes: [usize; 2],
    rows: Vec<[u64; 3]>,
}

/// Statistics of one channel.
#[derive(Serialize)]
struct ChannelStatistics {
    channel: Option<u64>,
    name: Option<String>,
    #[serde(flatten)]
    statistics: RegionStatistics,
}

impl Handler for MeasureHandler {
    type Work = MeasureRequest;

    fn name(&self) -> &'static str {
        ops::MEASURE
    }

    fn is_forwarded(&self) -> bool {
        false
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<MeasureRequest>> {
        MeasureRequest::parse(&parameters).map(BeginOutcome::Work)
    }

    async fn run(&self, request: MeasureRequest, call: &OperationCall) -> Result<()> {
        let MeasureRequest { view, measurement } = request;
        let on_read = |done, total| call.progress(done, total);
        match measurement {
            ViewMeasurement::Profile { from, to, samples } => {
                let _memory = call.enter(MAX_VALUES_BYTES).await;
                call.result(&self.session.profile(&view, [from, to], samples, on_read).await?).await
            }
            ViewMeasurement::Points { points } => {
                let _memory = call.enter(MAX_VALUES_BYTES).await;
                call.result(&self.session.points(&view, &points, on_read).await?).await
            }
            ViewMeasurement::Series { at } => {
                let _memory = call.enter(MAX_VALUES_BYTES).await;
                call.result(&self.session.series(&view, at, on_read).await?).await
            }
            ViewMeasurement::Plot { from, count, columns } => {
                let _memory = call.enter(MAX_VALUES_BYTES).await;
                let range = PlotRange { from, count, columns };
                call.result(&self.session.plot(&view, range, on_read).await?).await
            }
            region => {
                let region = self.session.region(&view, region).await?;
                call.result(&measure_region(call, region).await?).await
            }
        }
    }
}

/// Computes the statistics of a region, channel after channel.
async fn measure_region(call: &OperationCall, region: StoredRegion) -> Result<RegionAnswer> {
    let StoredRegion { of, source, dataset, array, boxes, mask } = region;
    let mut memory = call.enter(MAX_REGION_MEMORY_BYTES).await;
    let memory_bytes = memory.admitted().await;
    let place = BlockPlace { dataset: dataset.id, generation: dataset.generation, array, level: 0 };
    let elements = |own: &RegionBox| own.selection.len().unwrap_or(u64::MAX);
    let total = boxes.iter().map(elements).fold(0u64, u64::saturating_add);
    let (mut channels, mut before) = (Vec::with_capacity(boxes.len()), 0u64);
    let first = boxes.first().map(|own| own.selection.clone());
    for own in boxes {
        let mask = mask.clone();
        let keeps: RegionFilter = match mask {
            RegionMask::All => None,
            mask => Some(Arc::new(move |index: &[u64]| mask.contains(index))),
        };
        let count = elements(&own);
        let priority = call.operation.urgency().priority;
        let scan =
            Scan::new(Arc::clone(&source), Arc::clone(&dataset), &place, Some(own.selection), priority)?;
        let on_part = |done: u64| call.progress(before.saturating_add(done), total);
        let statistics = region_statistics::gather(&scan, keeps, memory_bytes, on_part).await?;
        before = before.saturating_add(count);
        channels.push(ChannelStatistics { channel: own.channel, name: own.name, statistics });
    }
    let ranges = first.iter().flat_map(|selection| selection.ranges());
    Ok(RegionAnswer {
        selection: ranges.map(|range| [range.start, range.start + range.count]).collect(),
        mask: match mask {
            RegionMask::All => "all",
            RegionMask::Cells(_) => "cells",
            RegionMask::Inside(_) => "box",
        },
        spans: mask.spans().map(|(axes, rows)| SpanList { axes, rows }),
        of,
        channels,
    })
}
