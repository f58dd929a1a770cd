//! Bulk: operations are gathered, asked all at once, and all answered before the next are asked. One round trip for as many
//! as are gathered; in between the link is idle, and the first answer waits for the last question.

use bytes::Bytes;

use super::architecture::{AnswersFuture, Architecture, ConnectionSource, KeptConnection, answer, only};

/// Operations that are gathered: as many as a server accepts from one client at a time.
pub(super) const GATHERED: usize = 4096;

pub(super) struct BulkRequests;

impl Architecture for BulkRequests {
    fn name(&self) -> &'static str {
        "bulk"
    }

    fn kept_connections(&self) -> usize {
        1
    }

    fn most_under_way(&self) -> usize {
        GATHERED
    }

    fn run<'a>(
        &'a self,
        _: &'a dyn ConnectionSource,
        kept: &'a [KeptConnection],
        asks: &'a [Bytes],
    ) -> AnswersFuture<'a> {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(asks.len());
            for part in asks.chunks(GATHERED) {
                let mut asked = Vec::with_capacity(part.len());
                for ask in part {
                    asked.push(only(kept)?.ask(ask).await?);
                }
                for operation in asked {
                    answers.push(answer(operation).await?);
                }
            }
            Ok(answers)
        })
    }
}
