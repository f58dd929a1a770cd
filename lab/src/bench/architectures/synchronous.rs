//! Synchronous: one operation at a time, each waits for the answer to the one before. A round trip for each.

use bytes::Bytes;

use super::architecture::{AnswersFuture, Architecture, ConnectionSource, KeptConnection, only};

pub(super) struct Synchronous;

impl Architecture for Synchronous {
    fn name(&self) -> &'static str {
        "synchronous"
    }

    fn kept_connections(&self) -> usize {
        1
    }

    fn most_under_way(&self) -> usize {
        1
    }

    fn run<'a>(
        &'a self,
        _: &'a dyn ConnectionSource,
        kept: &'a [KeptConnection],
        asks: &'a [Bytes],
    ) -> AnswersFuture<'a> {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(asks.len());
            for ask in asks {
                answers.push(only(kept)?.read(ask).await?);
            }
            Ok(answers)
        })
    }
}
