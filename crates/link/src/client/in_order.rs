//! Many operations whose answers are delivered in the order of the requests, whatever order they end in.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use wire::{OpId, Result, Urgency};

use crate::client::request_set::{OpEvent, RequestSet};

/// [`RequestSet`] with a sequencer: events of an operation are delivered once all operations requested before
/// it have ended.
///
/// Events that arrive early are held here, and their credit is returned, because the first operation could
/// otherwise wait for ever. Callers therefore request no more ahead than they allow to be held.
#[derive(Debug)]
pub struct OrderedRequests {
    requests: RequestSet,
    /// Operations that have not been delivered to their end, in the order of the requests.
    order: VecDeque<OpId>,
    early: HashMap<OpId, Vec<OpEvent>>,
    ready: Vec<(OpId, OpEvent)>,
}

impl RequestSet {
    /// Delivers the answers in the order of the requests.
    #[must_use]
    pub fn ordered(self) -> OrderedRequests {
        OrderedRequests { requests: self, order: VecDeque::new(), early: HashMap::new(), ready: Vec::new() }
    }
}

impl OrderedRequests {
    /// Starts operations; see [`RequestSet::request`].
    ///
    /// # Errors
    /// The errors of [`RequestSet::request`].
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

    /// Waits for the next events and appends all available ones to `events`. Returns false, with nothing
    /// appended, when no operation is in flight.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&mut self, events: &mut Vec<(OpId, OpEvent)>) -> bool {
        let before = events.len();
        while events.len() == before {
            if !self.requests.next(&mut self.ready).await {
                return false;
            }
            for (op, what) in self.ready.drain(..) {
                self.early.entry(op).or_default().push(what);
            }
            self.give(events);
        }
        true
    }

    /// Appends the events of the first operation to `events`; if it has ended, continues with the operations
    /// after it.
    fn give(&mut self, events: &mut Vec<(OpId, OpEvent)>) {
        while let Some(&op) = self.order.front() {
            events.extend(self.early.remove(&op).into_iter().flatten().map(|what| (op, what)));
            let ended =
                events.last().is_some_and(|(of, what)| *of == op && !matches!(what, OpEvent::Reply(_)));
            if !ended {
                return;
            }
            self.order.pop_front();
        }
    }
}
