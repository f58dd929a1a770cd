//! The asking side of the operations that answer with one item.

use std::sync::Arc;

use array::{Dataset, Result};
use bytes::Bytes;
use wire::ops::{self, Describe, ListEntry, Stats, StatsRequest};

use crate::dial::Ask;

/// What data sets there are.
#[derive(Clone, Copy, Debug)]
pub struct List;

impl Ask for List {
    type Answer = Vec<ListEntry>;
    const NAME: &'static str = ops::LIST;

    fn parameters(&self) -> Bytes {
        Bytes::new()
    }

    fn answer(&self, item: link::Item) -> Result<Vec<ListEntry>> {
        ListEntry::decode_all(&item.body)
    }
}

impl Ask for Describe {
    type Answer = Arc<Dataset>;
    const NAME: &'static str = ops::DESCRIBE;

    fn parameters(&self) -> Bytes {
        self.encode()
    }

    fn answer(&self, item: link::Item) -> Result<Arc<Dataset>> {
        // A description may be longer than a body may: then it comes as bulk.
        let text = if item.body.is_empty() { &item.bulk } else { &item.body };
        ops::decode_dataset(text).map(Arc::new)
    }
}

impl Ask for StatsRequest {
    type Answer = Stats;
    const NAME: &'static str = ops::STATS;

    fn parameters(&self) -> Bytes {
        self.encode()
    }

    fn answer(&self, item: link::Item) -> Result<Stats> {
        Stats::decode(&item.body)
    }
}
