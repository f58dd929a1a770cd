//! Reads from several servers: split into parts that servers with room take, each written to its region.

use std::sync::Arc;

use array::{Dataset, Loan, ReadRequest, Region, Result, Source, Target};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Duration, sleep};

use super::first_answer::{Candidates, ItemUrgency, WorkItem, first_answer};
use super::group::ServerGroup;
use super::scheduler::WorkRequest;
use super::unassigned_parts::UnassignedParts;
use super::work_queue::{NoServer, WorkPermit};

/// Interval for checking whether a writer that is no longer needed has released its region.
const RELEASE_CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// Reads `request` from any server of the data.
///
/// # Cancel safety
/// Dropping the future withdraws every part.
pub(super) async fn read(group: Arc<ServerGroup>, request: ReadRequest, into: Region) -> Result<()> {
    let dataset = group.dataset().await?;
    read_of(group, dataset, request, into).await
}

/// Reads as [`read`] does, from data in the state that `dataset` describes.
///
/// # Cancel safety
/// As [`read`].
pub(super) async fn read_of(
    group: Arc<ServerGroup>,
    dataset: Arc<Dataset>,
    request: ReadRequest,
    into: Region,
) -> Result<()> {
    let array = request.check(&dataset, &into)?;
    if request.selection.is_empty() {
        return Ok(());
    }
    let grain = array.level(request.level)?.grain().map(<[u64]>::to_vec);
    let mut rest = UnassignedParts::new(&request.selection, array.dtype.size_bytes(), grain, into);
    let mut parts: FuturesUnordered<BoxFuture<'_, Result<()>>> = FuturesUnordered::new();
    let mut turn = None;
    loop {
        if turn.is_none() && !rest.is_empty() {
            turn = Some(group.queue.ask(WorkRequest {
                priority: request.priority,
                bytes: rest.bytes(),
                is_one_piece: false,
                may: group.all(),
                is_second: false,
            }));
        }
        let Some(waiting) = &mut turn else {
            match parts.next().await {
                Some(part) => part?,
                None => return Ok(()),
            }
            continue;
        };
        tokio::select! {
            biased;
            Some(part) = parts.next(), if !parts.is_empty() => part?,
            granted = waiting.granted() => {
                turn = None;
                let Ok(mut permit) = granted else {
                    let NoServer = NoServer;
                    return Err(group.no_answer(&dataset, &[]));
                };
                let Some((selection, region)) = rest.take(permit.bytes()) else { continue };
                permit.resize(region.size_bytes() as u64);
                let request = ReadRequest { selection, ..request };
                parts.push(Box::pin(part(&group, &dataset, request, region, permit)));
            }
        }
    }
}

/// Delivery of a part.
enum PartDelivery {
    InPlace,
    /// In separate memory, because another server was writing to the region.
    Apart(Vec<u8>),
}

async fn part(
    group: &ServerGroup,
    dataset: &Arc<Dataset>,
    request: ReadRequest,
    region: Region,
    permit: WorkPermit,
) -> Result<()> {
    let (shape, item_bytes) = (request.selection.shape(), region.item_bytes());
    let piece = WorkItem {
        asked: ItemUrgency::Fixed(request.priority),
        bytes: permit.bytes(),
        candidates: Candidates::any(group.all()),
        first: Some(permit),
    };
    let mut place = PartTarget::of(region);
    let delivery = first_answer(group, dataset, piece, |member, _| {
        let (source, request) = (Arc::clone(group.source(member)), request.clone());
        let (place, shape) = (place.lend(), shape.clone());
        Box::pin(async move {
            let delivery = match place {
                Some(region) => {
                    source.read(request, region).await?;
                    PartDelivery::InPlace
                }
                None => {
                    let (target, region) = Target::new(&shape, item_bytes)?;
                    source.read(request, region).await?;
                    PartDelivery::Apart(target.into_vec()?)
                }
            };
            group.check_same(member, dataset).await?;
            Ok(delivery)
        })
    })
    .await?;
    match delivery {
        PartDelivery::InPlace => Ok(()),
        PartDelivery::Apart(bytes) => {
            place.take_back().await.map_or(Ok(()), |mut region| region.write_all(&bytes))
        }
    }
}

/// The region of a part in the result: one writer at a time.
pub(super) struct PartTarget(Option<TargetState>);

enum TargetState {
    Free(Region),
    Lent(Loan),
}

impl PartTarget {
    pub(super) fn of(region: Region) -> Self {
        Self(Some(TargetState::Free(region)))
    }

    /// Returns the region, unless a server may still write there.
    pub(super) fn lend(&mut self) -> Option<Region> {
        match self.0.take()? {
            TargetState::Free(region) => {
                let (loan, lent) = region.lend();
                self.0 = Some(TargetState::Lent(loan));
                Some(lent)
            }
            TargetState::Lent(loan) => match loan.try_end() {
                Ok(region) => {
                    self.0 = Some(TargetState::Free(region));
                    self.lend()
                }
                Err(loan) => {
                    self.0 = Some(TargetState::Lent(loan));
                    None
                }
            },
        }
    }

    /// Returns the region after all writers have ended: their requests were withdrawn, and end soon.
    pub(super) async fn take_back(self) -> Option<Region> {
        let mut loan = match self.0? {
            TargetState::Free(region) => return Some(region),
            TargetState::Lent(loan) => loan,
        };
        loop {
            match loan.try_end() {
                Ok(region) => return Some(region),
                Err(still_lent) => loan = still_lent,
            }
            sleep(RELEASE_CHECK_INTERVAL).await;
        }
    }
}
