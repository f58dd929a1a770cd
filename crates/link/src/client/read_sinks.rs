//! Many operations whose answers are taken where they arrive: for whoever reads thousands of small things at a time. They
//! are asked as there is room; one lock and one wake-up serve all that have ended, and nothing is kept of one but its
//! receiver.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use wire::{Result, Urgency};

use crate::client::read_sink::ReadSink;
use crate::client::{AnswerConsumer, ClientHandle, ClientSide};

/// Asked under one lock; then others get their turn.
const ASKED_AT_ONCE: usize = 1_024;

/// Divisor: before more operations of a group are asked, this part of those under way must have ended.
const ENDED_FRACTION: usize = 16;
/// So many of a group may be under way however much bulk they are expected to answer with.
const LEAST_UNDER_WAY: usize = 64;

/// One operation to be asked.
pub struct SinkRequest {
    /// Encoded as the operation says.
    pub parameters: Bytes,
    /// How much it matters.
    pub urgency: Urgency,
    /// The bulk that it is expected to answer with: no more is asked ahead than the window is good for.
    pub expected_bytes: u64,
    /// Receiver of its answer.
    pub sink: Box<dyn ReadSink>,
}

impl fmt::Debug for SinkRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SinkRequest({} bytes of parameters)", self.parameters.len())
    }
}

/// How those have ended whose asker has not heard it yet.
#[derive(Default)]
pub(crate) struct EndedRequests {
    ended: Vec<(usize, Result<()>)>,
    pub(crate) under_way: usize,
    /// Bulk expected of those under way.
    pub(crate) expected_bytes: u64,
    waker: Option<Waker>,
}

impl EndedRequests {
    /// One that is under way.
    pub(crate) fn begin(&mut self, expected_bytes: u64) {
        self.under_way += 1;
        self.expected_bytes = self.expected_bytes.saturating_add(expected_bytes);
    }

    /// One has ended.
    pub(crate) fn add(&mut self, number: usize, expected_bytes: u64, end: Result<()>) {
        self.ended.push((number, end));
        self.under_way -= 1;
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

    /// Starts operations, as many as there is room for and as are good for two windows of bulk; `next` is the number of
    /// the first in its group. While many of a group are under way it waits until some have ended, so that those that
    /// follow them travel together. One that cannot be asked has ended.
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
            ends.under_way >= LEAST_UNDER_WAY && is_ahead
        };
        let has_room = machine.room(first.urgency.priority) >= ends.under_way / ENDED_FRACTION;
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
        if self.groups.remove(&group).is_some_and(|ends| ends.under_way > 0) {
            self.cancel_all(
                |consumer| matches!(consumer, AnswerConsumer::InGroup { group: of, .. } if *of == group),
            );
        }
    }
}

impl ClientHandle {
    /// Runs one operation for each of `requests`, as soon as there is room for it. Gives the end of each as it comes, with its
    /// number in the order of `requests`; one that cannot be asked ends with the reason. Dropping the stream cancels what is
    /// under way; no receiver is called after that.
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

/// Operations that are under way; those are withdrawn when it is dropped.
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
    /// Those that are asked next.
    ready: VecDeque<SinkRequest>,
    /// Number of the first of them.
    next: usize,
}

impl<A: Iterator<Item = SinkRequest>> GroupRequests<A> {
    /// Some ends; `None` when all have been given.
    async fn next_ends(&mut self) -> Option<Vec<(usize, Result<()>)>> {
        loop {
            self.ask();
            let ended = self.ended().await;
            if !ended.is_empty() {
                return Some(ended);
            }
            // None is under way. Without an end of its own to wait for, it waits for room that others leave.
            let priority = self.ready.front()?.urgency.priority;
            self.group.client.room(priority).await;
        }
    }

    /// Asks what there is room for.
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

    /// Waits until some have ended; none when none is under way.
    async fn ended(&mut self) -> Vec<(usize, Result<()>)> {
        let RequestGroup { id, client } = &self.group;
        poll_fn(|cx| {
            client.shared().with(|side| {
                let Some(ends) = side.ends(*id) else { return Poll::Ready(Vec::new()) };
                if ends.ended.is_empty() && ends.under_way > 0 {
                    ends.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Poll::Ready(std::mem::take(&mut ends.ended))
            })
        })
        .await
    }
}
