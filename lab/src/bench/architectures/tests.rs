//! Costs of each way, counted: messages, writes, and round trips in virtual time on a link that only delays.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use array::{DatasetId, Generation};
use futures::channel::mpsc;
use futures::{Sink, Stream};
use link::{Carrier, Link, Received};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};
use wire::ops::ReadBody;
use wire::{ClientConfig, Message, ServerConfig};

use super::architecture::CONNECTIONS;
use super::*;

const ROUND_TRIP: Duration = Duration::from_millis(150);
/// Messages on their way at most; more than any test sends.
const ON_THE_WAY: usize = 1 << 20;
const PLACE: BlockPlace = BlockPlace { dataset: DatasetId(1), generation: Generation(1), array: 0, level: 0 };

/// Connections, messages, writes and bytes of all clients.
#[derive(Default)]
struct LinkCounts {
    connections: AtomicU64,
    messages: AtomicU64,
    /// Number of writes to the link.
    writes: AtomicU64,
    bytes: AtomicU64,
}

/// One end of a link of [`ROUND_TRIP`] without a limit to its rate.
struct Delayed {
    sender: mpsc::Sender<(Instant, Bytes)>,
    receiver: mpsc::Receiver<(Instant, Bytes)>,
    arriving: Option<(Pin<Box<Sleep>>, Bytes)>,
    counts: Option<Arc<LinkCounts>>,
}

impl Carrier for Delayed {
    fn poll_send(&mut self, cx: &mut Context<'_>, outgoing: &mut VecDeque<Message>) -> Poll<Result<()>> {
        if let Some(counts) = &self.counts {
            counts.writes.fetch_add(u64::from(!outgoing.is_empty()), Ordering::Relaxed);
        }
        while !outgoing.is_empty() {
            ready!(self.sender.poll_ready(cx)).map_err(|e| Error::internal(e.to_string()))?;
            let Some(message) = outgoing.pop_front() else { break };
            let bytes = message.into_bytes();
            if let Some(counts) = &self.counts {
                counts.messages.fetch_add(1, Ordering::Relaxed);
                counts.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
            let at = Instant::now() + ROUND_TRIP / 2;
            self.sender.start_send((at, bytes)).map_err(|e| Error::internal(e.to_string()))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        _: usize,
        take: &mut dyn FnMut(Received<'_>),
    ) -> Poll<Result<bool>> {
        if self.arriving.is_none() {
            let Some((at, bytes)) = ready!(Pin::new(&mut self.receiver).poll_next(cx)) else {
                return Poll::Ready(Ok(false));
            };
            self.arriving = Some((Box::pin(tokio::time::sleep_until(at)), bytes));
        }
        if let Some((due, _)) = &mut self.arriving {
            ready!(due.as_mut().poll(cx));
        }
        let arrived = self.arriving.take();
        let any = arrived.is_some();
        arrived.into_iter().for_each(|(_, bytes)| take(Received::Message(bytes)));
        Poll::Ready(Ok(any))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.sender).poll_close(cx).map_err(|e| Error::internal(e.to_string()))
    }
}

/// A server at the end of such a link for each connection; answers `read` at once.
struct Far {
    counts: Arc<LinkCounts>,
    field: Arc<Field>,
}

impl ConnectionSource for Far {
    fn connect(&self) -> BoxFuture<'_, Result<KeptConnection>> {
        Box::pin(async {
            self.counts.connections.fetch_add(1, Ordering::Relaxed);
            let (to_server, from_client) = mpsc::channel(ON_THE_WAY);
            let (to_client, from_server) = mpsc::channel(ON_THE_WAY);
            let end = |sender, receiver, counts| {
                Link::new(Delayed { sender, receiver, arriving: None, counts }, "far")
            };
            let near = end(to_server, from_server, Some(Arc::clone(&self.counts)));
            let mut tasks = JoinSet::new();
            tasks.spawn(serve(end(to_client, from_client, None), Arc::clone(&self.field)));
            let (handle, driver) = link::connect(near, ClientConfig::default())?;
            tasks.spawn(driver);
            handle.welcomed().await?;
            Ok(KeptConnection { handle, _kept: Box::new(tasks) })
        })
    }
}

async fn serve(link: Link, field: Arc<Field>) {
    let (connection, driver) = link::serve(link, ServerConfig::default()).expect("a legal configuration");
    let mut driving = JoinSet::new();
    driving.spawn(driver);
    if connection.hello().await.is_ok() {
        connection.accept();
    }
    while let Some(operation) = connection.next().await {
        let read = ReadParameters::decode(operation.parameters()).expect("parameters of a read");
        let bulk = Bytes::from(field.expected(&read.selection));
        operation.item(ReadBody { offset_bytes: 0 }.encode(), bulk).await.expect("room for an answer");
        operation.done();
    }
}

/// Costs of `operations` reads by an architecture: messages and writes without those of connecting, bytes, round trips.
struct Did {
    connections: u64,
    messages: u64,
    writes: u64,
    bytes: u64,
    round_trips: f64,
}

async fn doing(way: &dyn Architecture, operations: usize) -> Did {
    let field = Arc::new(Field::unwritten([4, 50, 50, 4096]));
    let quiz = Quiz::new(&field, PLACE, operations);
    let far = Far { counts: Arc::default(), field };
    let mut kept = Vec::new();
    for _ in 0..way.kept_connections() {
        kept.push(far.connect().await.expect("a connection"));
    }
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    let before = [&far.counts.messages, &far.counts.writes, &far.counts.bytes].map(count);
    let start = Instant::now();
    let answers = way.run(&far, &kept, &quiz.asks).await.expect("answers");
    let round_trips = start.elapsed().as_secs_f64() / ROUND_TRIP.as_secs_f64();
    quiz.check(&answers).expect("the bytes of the array");
    Did {
        connections: count(&far.counts.connections),
        messages: count(&far.counts.messages) - before[0],
        writes: count(&far.counts.writes) - before[1],
        bytes: count(&far.counts.bytes) - before[2],
        round_trips,
    }
}

fn near(found: f64, expected: f64) -> bool {
    // Timers are good to a millisecond.
    (found - expected).abs() <= 0.02 * expected
}

#[tokio::test(start_paused = true)]
async fn synchronous_pays_a_round_trip_for_each() {
    let did = doing(&synchronous::Synchronous, 20).await;
    assert_eq!((did.connections, did.writes), (1, 20));
    assert!(near(did.round_trips, 20.0), "{}", did.round_trips);
}

#[tokio::test(start_paused = true)]
async fn bulk_pays_a_round_trip_for_as_many_as_are_gathered() {
    let did = doing(&bulk::BulkRequests, 2 * bulk::GATHERED).await;
    assert_eq!(did.connections, 1);
    assert!(near(did.round_trips, 2.0), "{}", did.round_trips);
    assert!(did.writes < 300, "{} writes for {} operations", did.writes, 2 * bulk::GATHERED);
}

#[tokio::test(start_paused = true)]
async fn threaded_connects_for_each() {
    let did = doing(&threaded::Threaded, 3 * CONNECTIONS).await;
    assert_eq!(did.connections, 3 * CONNECTIONS as u64);
    // One to be welcomed, one for the answer, for as many at a time as there may be.
    assert!(near(did.round_trips, 6.0), "{}", did.round_trips);
}

#[tokio::test(start_paused = true)]
async fn a_pool_shares_round_trips_between_its_connections() {
    let did = doing(&pool::ConnectionPool, 3 * CONNECTIONS).await;
    assert_eq!((did.connections, did.writes), (CONNECTIONS as u64, 3 * CONNECTIONS as u64));
    assert!(near(did.round_trips, 3.0), "{}", did.round_trips);
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_waits_for_one_round_trip_and_sends_each_by_itself() {
    let did = doing(&pipeline::PlainPipeline, 10_000).await;
    assert_eq!(did.connections, 1);
    assert!(near(did.round_trips, 1.0), "{}", did.round_trips);
    assert!(did.writes >= 10_000, "{} writes", did.writes);
}

#[tokio::test(start_paused = true)]
async fn bulk_inside_pipeline_waits_for_one_round_trip_and_sends_together() {
    let did = doing(&bulk_in_pipeline::BulkInPipeline, 10_000).await;
    assert_eq!(did.connections, 1);
    assert!(near(did.round_trips, 1.0), "{}", did.round_trips);
    assert!(did.writes <= 10_000 / 50, "{} writes", did.writes);
    // Each has parameters of its own: an array and where in it, told once for those that are alike.
    let each = did.bytes as f64 / 10_000.0;
    assert!(
        each <= 20.0 && did.messages <= 200,
        "{} messages, {each} bytes for each operation",
        did.messages
    );
}

#[test]
fn what_waits_for_long_round_trips_does_a_sample() {
    let at = |way: &dyn Architecture, millis: u64| {
        operations(way.most_under_way(), Duration::from_millis(millis) * way.round_trips(), false)
    };
    assert_eq!(at(&synchronous::Synchronous, 150), 13);
    assert_eq!(at(&threaded::Threaded, 150), 3 * CONNECTIONS);
    assert_eq!(at(&pool::ConnectionPool, 150), 13 * CONNECTIONS);
    assert_eq!(at(&bulk::BulkRequests, 150), 13 * bulk::GATHERED);
    assert_eq!(at(&pipeline::PlainPipeline, 150), MANY);
    assert_eq!(at(&bulk_in_pipeline::BulkInPipeline, 150), MANY);
}
