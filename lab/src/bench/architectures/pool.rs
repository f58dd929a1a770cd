//! Pool: a fixed number of kept connections, each with one operation at a time. Round trips are shared by as many as there are
//! connections.

use std::sync::atomic::{AtomicUsize, Ordering};

use array::Result;
use bytes::Bytes;
use futures::future::{BoxFuture, try_join_all};

use super::architecture::{AnswersFuture, Architecture, CONNECTIONS, ConnectionSource, KeptConnection};

pub(super) struct ConnectionPool;

impl Architecture for ConnectionPool {
    fn name(&self) -> &'static str {
        "pool"
    }

    fn kept_connections(&self) -> usize {
        CONNECTIONS
    }

    fn most_under_way(&self) -> usize {
        CONNECTIONS
    }

    fn run<'a>(
        &'a self,
        _: &'a dyn ConnectionSource,
        kept: &'a [KeptConnection],
        asks: &'a [Bytes],
    ) -> AnswersFuture<'a> {
        Box::pin(async move {
            let next = AtomicUsize::new(0);
            let workers = kept.iter().map(|connection| work(connection, asks, &next));
            let mut answers: Vec<(usize, Bytes)> =
                try_join_all(workers).await?.into_iter().flatten().collect();
            answers.sort_unstable_by_key(|(number, _)| *number);
            Ok(answers.into_iter().map(|(_, bytes)| bytes).collect())
        })
    }
}

/// Takes the next operation while there is one; returns the answers with their numbers.
fn work<'a>(
    connection: &'a KeptConnection,
    asks: &'a [Bytes],
    next: &'a AtomicUsize,
) -> BoxFuture<'a, Result<Vec<(usize, Bytes)>>> {
    Box::pin(async move {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(ask) = asks.get(number) else { return Ok(done) };
            done.push((number, connection.read(ask).await?));
        }
    })
}
