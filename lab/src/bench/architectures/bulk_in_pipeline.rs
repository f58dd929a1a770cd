//! Bulk inside pipeline, what this system does: the stages of a pipeline, and whatever operations are ready together leave together.
//! None waits for others to become ready.

use bytes::Bytes;

use super::pipeline::{Sending, stages};
use super::{Answers, Architecture, Connection, Site, UNDER_WAY, only};

pub(super) const NAME: &str = "bulk inside pipeline";

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

    fn run<'a>(&'a self, _: &'a dyn Site, kept: &'a [Connection], asks: &'a [Bytes]) -> Answers<'a> {
        Box::pin(async move { stages(only(kept)?, asks, Sending::Together).await })
    }
}
