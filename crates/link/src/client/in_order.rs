//! Many operations whose answers come in the order in which they were asked, whatever order they end in.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use wire::{OpId, Result, Urgency};

use crate::client::request_set::{OpEvent, RequestSet};

/// [`RequestSet`] with a sequencer: news of an operation are given when all those asked before it have ended.
///
/// What comes early is held here, and its credit given back, or the first one could wait for ever: so ask no more ahead
/// than may be held.
#[derive(Debug)]
pub struct OrderedRequests {
    requests: RequestSet,
    /// Operations that were not given to their end, in the order they were asked.
    order: VecDeque<OpId>,
    early: HashMap<OpId, Vec<OpEvent>>,
    news: Vec<(OpId, OpEvent)>,
}

impl RequestSet {
    /// Answers in the order of asking.
    #[must_use]
    pub fn ordered(self) -> OrderedRequests {
        OrderedRequests { requests: self, order: VecDeque::new(), early: HashMap::new(), news: Vec::new() }
    }
}

impl OrderedRequests {
    /// See [`RequestSet::request`].
    ///
    /// # Errors
    /// As there.
    pub fn request(
        &mut self,
        name: &str,
        parameters: &mut VecDeque<Bytes>,
        urgency: Urgency,
    ) -> Result<Vec<OpId>> {
        let ops = self.requests.request(name, parameters, urgency)?;
        self.order.extend(&ops);
        Ok(ops)
    }

    /// Waits for news that are next and appends all there are to `said`. False, with nothing appended, when no operation
    /// is under way.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&mut self, said: &mut Vec<(OpId, OpEvent)>) -> bool {
        let before = said.len();
        while said.len() == before {
            if !self.requests.next(&mut self.news).await {
                return false;
            }
            for (op, what) in self.news.drain(..) {
                self.early.entry(op).or_default().push(what);
            }
            self.give(said);
        }
        true
    }

    /// Appends the news of the first operation to `said`; if it has ended, continues with the operations after it.
    fn give(&mut self, said: &mut Vec<(OpId, OpEvent)>) {
        while let Some(&op) = self.order.front() {
            said.extend(self.early.remove(&op).into_iter().flatten().map(|what| (op, what)));
            let ended = said.last().is_some_and(|(of, what)| *of == op && !matches!(what, OpEvent::Reply(_)));
            if !ended {
                return;
            }
            self.order.pop_front();
        }
    }
}
