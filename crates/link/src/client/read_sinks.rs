//! Many operations whose answers are delivered as they arrive, for callers that read thousands of small
//! things at a time. They are requested as there is room; one lock and one wake-up serve all operations that
//! have ended, and only the sink of each is kept.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use wire::{Result, Urgency};

use crate::client::read_sink::ReadSink;
use crate::client::{AnswerConsumer, ClientHandle, ClientSide};

/// Operations requested under one lock; other callers then get their turn.
const ASKED_AT_ONCE: usize = 1_024;

/// Divisor: before more operations of a group are requested, this fraction of those in flight must have
/// ended.
const ENDED_FRACTION: usize = 16;
/// Operations of a group that may be in flight, however much bulk they are expected to answer with.
const LEAST_IN_FLIGHT: usize = 64;

/// Operation to be requested, with the sink of its answer.
pub struct SinkRequest {
    /// Parameters, encoded as the operation defines.
    pub parameters: Bytes,
    /// Urgency of the operation.
    pub urgency: Urgency,
    /// Bulk that the operation is expected to answer with, bytes; requests ahead are limited by the window.
    pub expected_bytes: u64,
    /// Sink of the answer.
    pub sink: Box<dyn ReadSink>,
}

impl fmt::Debug for SinkRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SinkRequest({} bytes of parameters)", self.parameters.len())
    }
}

/// Operations of a group that have ended and were not reported yet.
#[derive(Default)]
pub(crate) struct EndedRequests {
    ended: Vec<(usize, Result<()>)>,
    pub(crate) in_flight: usize,
    /// Bulk expected of the operations in flight, bytes.
    pub(crate) expected_bytes: u64,
    waker: Option<Waker>,
}

impl EndedRequests {
    /// Counts an operation that begins.
    pub(crate) fn begin(&mut self, expected_bytes: u64) {
        self.in_flight += 1;
        self.expected_bytes = self.expected_bytes.saturating_add(expected_bytes);
    }

    /// Adds an operation that has ended.
    pub(crate) fn add(&mut self, number: usize, expected_bytes: u64, end: Result<()>) {
        self.ended.push((number, end));
        self.in_flight -= 1;
        self.expected_bytes = self.expected_bytes.saturating_sub(expected_bytes);
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

impl ClientSide {
    pub(crate) fn open_group(&mut self) -> u64 {
        self.last_set += 1;
        self.groups.insert(self.last_set, EndedRequests::default());
        self.last_set
    }

    /// Starts operations, as many as there is room for and as are expected to answer with two windows of
    /// bulk; `next` is the number of the first in its group. While many operations of a group are in flight,
    /// it waits until some have ended, so that the next ones travel together. An operation that cannot be
    /// started is reported as ended.
    pub(crate) fn request_grouped(
        &mut self,
        group: u64,
        next: &mut usize,
        name: &str,
        requests: &mut VecDeque<SinkRequest>,
    ) {
        let Self { machine, consumers, groups, ended, .. } = self;
        let (Some(ends), Some(first)) = (groups.get_mut(&group), requests.front()) else { return };
        let most_bytes = machine.window_bytes().saturating_mul(2);
        let is_full = |ends: &EndedRequests, parts: usize| {
            let is_ahead = ends.expected_bytes + most_bytes / parts as u64 > most_bytes;
            ends.in_flight >= LEAST_IN_FLIGHT && is_ahead
        };
        let has_room = machine.room(first.urgency.priority) >= ends.in_flight / ENDED_FRACTION;
        if ended.is_none() && (!has_room || is_full(ends, ENDED_FRACTION)) {
            return;
        }
        while let Some(SinkRequest { urgency, .. }) = requests.front() {
            let must_wait = is_full(ends, usize::MAX) || machine.room(urgency.priority) == 0;
            if must_wait && ended.is_none() {
                return;
            }
            let Some(SinkRequest { parameters, urgency, sink, expected_bytes }) = requests.pop_front() else {
                return;
            };
            let requested = machine.request(name, parameters, urgency);
            let number = *next;
            *next += 1;
            ends.begin(expected_bytes);
            match requested {
                Ok(op) => {
                    if sink.takes_any_order() {
                        machine.take_in_any_order(op);
                    }
                    consumers.insert(op, AnswerConsumer::InGroup { group, number, expected_bytes, sink });
                }
                Err(error) => {
                    drop(sink);
                    ends.add(number, expected_bytes, Err(error));
                }
            }
        }
    }

    pub(crate) fn ends(&mut self, group: u64) -> Option<&mut EndedRequests> {
        self.groups.get_mut(&group)
    }

    pub(crate) fn close_group(&mut self, group: u64) {
        if self.groups.remove(&group).is_some_and(|ends| ends.in_flight > 0) {
            self.cancel_all(
                |consumer| matches!(consumer, AnswerConsumer::InGroup { group: of, .. } if *of == group),
            );
        }
    }
}

impl ClientHandle {
    /// Runs one operation for each of `requests`, as soon as there is room for it. The stream yields the
    /// result of each as it ends, with its number in the order of `requests`; the result of one that cannot
    /// be started is the reason. Dropping the stream cancels the operations in flight; no sink is called
    /// afterwards.
    pub fn receive_many<A>(
        &self,
        name: &'static str,
        requests: A,
    ) -> impl Stream<Item = (usize, Result<()>)> + use<A>
    where
        A: Iterator<Item = SinkRequest>,
    {
        let id = self.shared().with(ClientSide::open_group);
        let group = RequestGroup { id, client: self.clone() };
        let requests = GroupRequests { group, name, requests, ready: VecDeque::new(), next: 0 };
        let ends =
            stream::unfold(
                requests,
                |mut requests| async move { Some((requests.next_ends().await?, requests)) },
            );
        ends.flat_map(stream::iter)
    }
}

/// Group of operations; dropping it cancels those in flight.
struct RequestGroup {
    id: u64,
    client: ClientHandle,
}

impl Drop for RequestGroup {
    fn drop(&mut self) {
        self.client.shared().change(|side| side.close_group(self.id));
    }
}

struct GroupRequests<A> {
    group: RequestGroup,
    name: &'static str,
    requests: A,
    /// Operations that are requested next.
    ready: VecDeque<SinkRequest>,
    /// Number of the first of `ready`.
    next: usize,
}

impl<A: Iterator<Item = SinkRequest>> GroupRequests<A> {
    /// Results of operations that have ended; `None` when all were returned.
    async fn next_ends(&mut self) -> Option<Vec<(usize, Result<()>)>> {
        loop {
            self.ask();
            let ended = self.ended().await;
            if !ended.is_empty() {
                return Some(ended);
            }
            // No operation of the group is in flight, so it waits for room that others leave.
            let priority = self.ready.front()?.urgency.priority;
            self.group.client.room(priority).await;
        }
    }

    /// Requests as many operations as there is room for.
    fn ask(&mut self) {
        let Self { group, name, requests, ready, next } = self;
        loop {
            if ready.is_empty() {
                ready.extend(requests.by_ref().take(ASKED_AT_ONCE));
            }
            if ready.is_empty() {
                return;
            }
            group.client.shared().change(|side| side.request_grouped(group.id, next, name, ready));
            if !ready.is_empty() {
                return;
            }
        }
    }

    /// Waits until some operations have ended; empty when none is in flight.
    async fn ended(&mut self) -> Vec<(usize, Result<()>)> {
        let RequestGroup { id, client } = &self.group;
        poll_fn(|cx| {
            client.shared().with(|side| {
                let Some(ends) = side.ends(*id) else { return Poll::Ready(Vec::new()) };
                if ends.ended.is_empty() && ends.in_flight > 0 {
                    ends.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Poll::Ready(std::mem::take(&mut ends.ended))
            })
        })
        .await
    }
}
