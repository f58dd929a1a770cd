//! Bulk inside pipeline, what this system does: the stages of a pipeline, and whatever operations are ready together leave together,
//! are answered together and are taken together. None waits for others to become ready.

use std::collections::VecDeque;

use array::{Error, Priority, Result, Urgency};
use bytes::Bytes;
use link::{Item, OpEvent, Reply};
use wire::{OpId, ops};

use super::architecture::{AnswersFuture, Architecture, ConnectionSource, KeptConnection, UNDER_WAY, only};

pub(super) const NAME: &str = "bulk inside pipeline";
/// More are asked when this part of those under way has ended.
const ENDED_FRACTION: usize = 16;

pub(super) struct BulkInPipeline;

impl Architecture for BulkInPipeline {
    fn name(&self) -> &'static str {
        NAME
    }

    fn kept_connections(&self) -> usize {
        1
    }

    fn most_under_way(&self) -> usize {
        UNDER_WAY
    }

    fn run<'a>(
        &'a self,
        _: &'a dyn ConnectionSource,
        kept: &'a [KeptConnection],
        asks: &'a [Bytes],
    ) -> AnswersFuture<'a> {
        Box::pin(async move { pipeline(only(kept)?, asks).await })
    }
}

async fn pipeline(connection: &KeptConnection, asks: &[Bytes]) -> Result<Vec<Bytes>> {
    let many = connection.handle.request_set();
    let mut waiting: VecDeque<Bytes> = asks.iter().cloned().collect();
    let mut answers = vec![Bytes::new(); asks.len()];
    // In the order of asking, which is that of the numbers.
    let mut asked: Vec<OpId> = Vec::with_capacity(asks.len());
    let (mut said, mut ended) = (Vec::new(), 0);
    let mut ended_when_asked = 0;
    loop {
        let (under_way, left) = (asked.len() - ended, ended - ended_when_asked);
        if left >= under_way / ENDED_FRACTION {
            asked.extend(many.request(ops::READ, &mut waiting, Urgency::of(Priority::NORMAL))?);
            ended_when_asked = ended;
        }
        if !many.next(&mut said).await {
            if waiting.is_empty() {
                return Ok(answers);
            }
            many.room(Priority::NORMAL).await;
        }
        for (op, what) in said.drain(..) {
            let place = asked.binary_search(&op).map_err(|_| Error::internal("an answer to nothing"))?;
            match what {
                OpEvent::Whole(Item { bulk, .. }) => answers[place] = bulk,
                OpEvent::Reply(Reply::Piece { bytes, .. }) => {
                    answers[place] = bytes;
                    continue;
                }
                OpEvent::Reply(Reply::Item { .. }) => continue,
                OpEvent::Done => {}
                OpEvent::Failed(error) => return Err(error),
            }
            ended += 1;
        }
    }
}
