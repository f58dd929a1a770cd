//! Task of the cache: owns the table, carries out its actions, and passes events to it.
//!
//! It awaits five things: the inbox, changes of wants, answers of the inner source, its description, and, while blocks wait for room, a
//! timer. The table alone decides about blocks.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use array::{
    BlockKey, Completion, Completions, Dataset, Error, Result, Source, Urgency, Want, WantHandle, want,
};
use futures::future::{AbortHandle, Abortable, Aborted, BoxFuture, FutureExt, OptionFuture};
use futures::stream::{FuturesUnordered, SelectAll, Stream, StreamExt};
use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc};

use crate::events::CacheEvent;
use crate::inbox::{CacheCall, CacheInbox, CachedBlock, InboxMail, counted};
use crate::table::{Action, BlockEvent, CacheCounters, CacheTable, FetchTicket, HeldMemory, WaiterId};

/// Interval at which the task checks whether held blocks were dropped, while others wait for their memory.
const RECHECK_EVERY: Duration = Duration::from_millis(20);

pub(crate) struct CacheTask {
    inner: Arc<dyn Source>,
    inbox: Arc<CacheInbox>,
    counters: Arc<Mutex<CacheCounters>>,
    events: broadcast::Sender<CacheEvent>,
    table: CacheTable<CachedBlock>,
    dataset: Option<Arc<Dataset>>,
    describing: Option<BoxFuture<'static, Result<Arc<Dataset>>>>,
    /// Calls with keys of another data set or generation than the known description.
    undescribed: Vec<CacheCall>,
    waiters: HashMap<WaiterId, Waiter>,
    next_waiter: u64,
    watches: FuturesUnordered<Abortable<BoxFuture<'static, WantChange>>>,
    requests: HashMap<FetchTicket, WantHandle>,
    fetches: SelectAll<Fetch>,
    /// Requests of the table that were not sent yet; they are sent together.
    outgoing: Vec<(Want, FetchTicket)>,
}

struct Waiter {
    answers: mpsc::Sender<Completion>,
    watch: AbortHandle,
}

/// Want that changed, or whose caller has dropped the stream of answers.
struct WantChange {
    waiter: WaiterId,
    want: Want,
    seen: u64,
    is_listening: bool,
}

impl CacheTask {
    pub(crate) fn new(
        inner: Arc<dyn Source>,
        capacity_bytes: u64,
        held_memory: HeldMemory,
        inbox: Arc<CacheInbox>,
        counters: Arc<Mutex<CacheCounters>>,
        events: broadcast::Sender<CacheEvent>,
    ) -> Self {
        Self {
            inner,
            inbox,
            counters,
            events,
            table: CacheTable::new(capacity_bytes, held_memory),
            dataset: None,
            describing: None,
            undescribed: Vec::new(),
            waiters: HashMap::new(),
            next_waiter: 0,
            watches: FuturesUnordered::new(),
            requests: HashMap::new(),
            fetches: SelectAll::new(),
            outgoing: Vec::new(),
        }
    }

    /// Runs until it is dropped with the last owner of the cache.
    pub(crate) async fn run(mut self) {
        let mut recheck = tokio::time::interval(RECHECK_EVERY);
        recheck.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let inbox = Arc::clone(&self.inbox);
        loop {
            let is_starving = self.table.starving().is_some();
            tokio::select! {
                () = inbox.arrived() => self.sort(inbox.take()),
                Some(change) = self.watches.next(), if !self.watches.is_empty() => self.changed(change),
                Some((key, ticket, result)) = self.fetches.next(), if !self.fetches.is_empty() => {
                    self.fetched(key, ticket, result);
                }
                Some(described) = OptionFuture::from(self.describing.as_mut()) => self.described(&described),
                _ = recheck.tick(), if is_starving => self.recheck(),
            }
            self.send_out();
            *self.counters.lock() = self.table.counters();
        }
    }

    fn sort(&mut self, mail: InboxMail) {
        for (key, ticket) in mail.freed {
            self.step(key, BlockEvent::Released { ticket });
        }
        for call in mail.calls {
            self.called(call);
        }
        for peek in mail.peeks {
            let blocks = peek.keys.iter().map(|key| self.table.peek(key));
            let blocks = blocks.map(|b| b.filter(|b| b.bytes().is_some()).cloned()).collect();
            // The caller may have dropped its read.
            drop(peek.reply.send(blocks));
        }
    }

    /// Starts the wants of a call; requests the description first if it is not known.
    fn called(&mut self, call: CacheCall) {
        let is_described = |d: &Dataset, key: BlockKey| (d.id, d.generation) == (key.dataset, key.generation);
        match self.dataset.clone() {
            Some(d) if call.wants.iter().all(|w| is_described(&d, w.key())) => self.start(call, &d),
            _ => {
                self.undescribed.push(call);
                let inner = &self.inner;
                self.describing.get_or_insert_with(|| inner.describe());
            }
        }
    }

    fn described(&mut self, described: &Result<Arc<Dataset>>) {
        self.describing = None;
        let calls = std::mem::take(&mut self.undescribed);
        match described {
            Ok(dataset) => {
                self.dataset = Some(Arc::clone(dataset));
                calls.into_iter().for_each(|call| self.start(call, dataset));
            }
            Err(error) => {
                for call in calls {
                    call.wants.iter().for_each(|w| self.refuse(&call, w.key(), error.clone()));
                }
            }
        }
    }

    fn start(&mut self, mut call: CacheCall, dataset: &Dataset) {
        for want in std::mem::take(&mut call.wants) {
            match dataset.block(want.key()) {
                Err(error) => self.refuse(&call, want.key(), error),
                Ok(block) => self.wanted(want, block.size_bytes, &call),
            }
        }
    }

    /// Answers a want that never reached the table.
    fn refuse(&self, call: &CacheCall, key: BlockKey, error: Error) {
        self.inbox.settled(1);
        // The channel has room for every answer, so this fails only if the caller is gone.
        drop(call.answers.try_send(Completion { key, result: Err(error) }));
    }

    fn wanted(&mut self, want: Want, bound_bytes: u64, call: &CacheCall) {
        let waiter = WaiterId(self.next_waiter);
        self.next_waiter += 1;
        let (key, urgency) = (want.key(), want.urgency());
        let watch = self.watch(waiter, want, 0, call.answers.clone());
        self.waiters.insert(waiter, Waiter { answers: call.answers.clone(), watch });
        self.step(key, BlockEvent::Wanted { waiter, urgency, bound_bytes });
    }

    fn watch(
        &self,
        waiter: WaiterId,
        want: Want,
        seen: u64,
        answers: mpsc::Sender<Completion>,
    ) -> AbortHandle {
        let change = async move {
            let (seen, is_listening) = tokio::select! {
                seen = want.changed(seen) => (seen, true),
                () = answers.closed() => (seen, false),
            };
            WantChange { waiter, want, seen, is_listening }
        };
        let (handle, registration) = AbortHandle::new_pair();
        self.watches.push(Abortable::new(change.boxed(), registration));
        handle
    }

    fn changed(&mut self, change: Result<WantChange, Aborted>) {
        // Settled wants are no longer watched.
        let Ok(WantChange { waiter, want, seen, is_listening }) = change else { return };
        let key = want.key();
        let Some(Waiter { answers, .. }) = self.waiters.get(&waiter) else { return };
        if want.is_cancelled() || !is_listening {
            self.settle(waiter);
            self.step(key, BlockEvent::Withdrawn { waiter });
            return;
        }
        let urgency = want.urgency();
        let watch = self.watch(waiter, want, seen, answers.clone());
        if let Some(entry) = self.waiters.get_mut(&waiter) {
            entry.watch = watch;
        }
        self.step(key, BlockEvent::Adjusted { waiter, urgency });
    }

    fn fetched(&mut self, key: BlockKey, ticket: FetchTicket, result: Result<CachedBlock>) {
        self.requests.remove(&ticket);
        let event = match result {
            Ok(block) => {
                let size_bytes = block.size_bytes() as u64;
                BlockEvent::Arrived { ticket, value: counted(&block, ticket, &self.inbox), size_bytes }
            }
            Err(error) => BlockEvent::Failed { ticket, error },
        };
        self.step(key, event);
    }

    fn recheck(&mut self) {
        if let Some(key) = self.table.starving() {
            self.step(key, BlockEvent::Rechecked);
        }
    }

    fn step(&mut self, key: BlockKey, event: BlockEvent<CachedBlock>) {
        for action in self.table.step(key, event) {
            if let Some(event) = CacheEvent::of(&action) {
                // There may be no subscriber.
                drop(self.events.send(event));
            }
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: Action<CachedBlock>) {
        match action {
            Action::Request { key, ticket, urgency } => self.request(key, ticket, urgency),
            Action::Adjust { ticket, urgency } => {
                if let Some(handle) = self.requests.get(&ticket) {
                    handle.adjust(urgency);
                }
            }
            Action::Cancel { ticket } => {
                self.requests.remove(&ticket);
                self.outgoing.retain(|(_, t)| *t != ticket);
            }
            Action::Answer { waiter, key, value } => self.answer(waiter, key, Ok(value)),
            Action::Fail { waiter, key, error } => self.answer(waiter, key, Err(error)),
            Action::Evict { key, ticket, value } => {
                // Bytes report by themselves when the last holder drops them.
                if value.bytes().is_none() {
                    self.step(key, BlockEvent::Released { ticket });
                }
            }
        }
    }

    fn request(&mut self, key: BlockKey, ticket: FetchTicket, urgency: Urgency) {
        let (want, handle) = want(key, urgency);
        self.requests.insert(ticket, handle);
        self.outgoing.push((want, ticket));
    }

    fn answer(&mut self, waiter: WaiterId, key: BlockKey, result: Result<CachedBlock>) {
        if let Some(answers) = self.settle(waiter) {
            // The channel has room for every answer, so this fails only if the caller is gone.
            drop(answers.try_send(Completion { key, result }));
        }
    }

    /// Removes a waiter and its watch; returns the channel of its call.
    fn settle(&mut self, waiter: WaiterId) -> Option<mpsc::Sender<Completion>> {
        let Waiter { answers, watch } = self.waiters.remove(&waiter)?;
        watch.abort();
        self.inbox.settled(1);
        Some(answers)
    }

    fn send_out(&mut self) {
        if self.outgoing.is_empty() {
            return;
        }
        let (wants, tickets): (Vec<_>, Vec<_>) = self.outgoing.drain(..).unzip();
        let tickets = wants.iter().map(Want::key).zip(tickets).collect();
        self.fetches.push(Fetch { answers: self.inner.blocks(wants), tickets });
    }
}

/// Answers of one call to the inner source, with the tickets of its requests.
struct Fetch {
    answers: Completions,
    tickets: HashMap<BlockKey, FetchTicket>,
}

impl Stream for Fetch {
    type Item = (BlockKey, FetchTicket, Result<CachedBlock>);

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match std::task::ready!(self.answers.poll_next_unpin(cx)) {
                Some(Completion { key, result }) => {
                    if let Some(ticket) = self.tickets.remove(&key) {
                        return Poll::Ready(Some((key, ticket, result)));
                    }
                }
                // The table ignores the answer to a cancelled request; every other request must have one.
                None => {
                    let Some((&key, &ticket)) = self.tickets.iter().next() else {
                        return Poll::Ready(None);
                    };
                    self.tickets.remove(&key);
                    self.answers = futures::stream::empty().boxed();
                    let error = Error::internal("a source ended its stream without answering every want");
                    return Poll::Ready(Some((key, ticket, Err(error))));
                }
            }
        }
    }
}
