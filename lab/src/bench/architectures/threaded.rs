//! Threaded: each operation has a task and a connection of its own, made for it. As many at a time as a server takes connections; each
//! pays for connecting.

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::architecture::{AnswersFuture, Architecture, CONNECTIONS, ConnectionSource, KeptConnection};

pub(super) struct Threaded;

impl Architecture for Threaded {
    fn name(&self) -> &'static str {
        "threaded"
    }

    fn kept_connections(&self) -> usize {
        0
    }

    fn most_under_way(&self) -> usize {
        CONNECTIONS
    }

    /// TCP, TLS and the handshake each take one before the operation does.
    fn round_trips(&self) -> u32 {
        4
    }

    fn run<'a>(
        &'a self,
        site: &'a dyn ConnectionSource,
        _: &'a [KeptConnection],
        asks: &'a [Bytes],
    ) -> AnswersFuture<'a> {
        let reads = stream::iter(asks).map(move |ask| async move { site.connect().await?.read(ask).await });
        Box::pin(reads.buffered(CONNECTIONS).try_collect())
    }
}
