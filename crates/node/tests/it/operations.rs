//! Custom operations, registered by name, that use only the public interface.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use array::{Error, ErrorKind, Priority, Result, Urgency};
use bytes::Bytes;
use client::requests::RemoteOperation;
use link::{OpEvent, OpStream};
use node::operations::of_data_server;
use server::connections::Limits;
use server::ops::{BeginOutcome, Handler, OperationCall};
use tokio::sync::Semaphore;

use crate::common::Served;

const WAVES: &str = "synthetic:waves?shape=16,16,16&dtype=u8";

/// Handler that increments a total: `+` returns the total, `=` returns nothing, `?` never completes.
struct AddHandler(Arc<Totals>);

#[derive(Default)]
struct Totals {
    begun: AtomicU64,
    stopped: AtomicU64,
}

/// Guard that counts when it is dropped.
struct DropCounter<'a>(&'a AtomicU64);

impl Drop for DropCounter<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Handler for AddHandler {
    type Work = ();

    fn name(&self) -> &'static str {
        "add"
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<()>> {
        let total = self.0.begun.fetch_add(1, Ordering::SeqCst) + 1;
        match &parameters[..] {
            b"+" => Ok(BeginOutcome::Answered(total.to_string().into())),
            b"=" => Ok(BeginOutcome::Done),
            b"?" => Ok(BeginOutcome::Work(())),
            _ => Err(Error::invalid("expected `+`, `=` or `?`")),
        }
    }

    async fn run(&self, (): (), _call: &OperationCall) -> Result<()> {
        let _counter = DropCounter(&self.0.stopped);
        std::future::pending().await
    }
}

#[derive(Clone, Copy)]
struct AddRequest(&'static str);

impl RemoteOperation for AddRequest {
    type Response = u64;

    fn name(&self) -> &str {
        "add"
    }

    fn parameters(&self) -> Result<Bytes> {
        Ok(Bytes::from_static(self.0.as_bytes()))
    }

    async fn answer(&self, replies: OpStream) -> Result<u64> {
        let item = replies.only_item().await?;
        std::str::from_utf8(&item.body)
            .ok()
            .and_then(|t| t.parse().ok())
            .ok_or_else(|| Error::corrupt("no number"))
    }
}

async fn served() -> (Served, Arc<Totals>) {
    let totals = Arc::new(Totals::default());
    let mut registry = of_data_server();
    registry.add(AddHandler(Arc::clone(&totals)));
    (Served::with(&[WAVES], registry, Limits::default()).await, totals)
}

fn normal() -> Urgency {
    Urgency::of(Priority::NORMAL)
}

async fn wait_until_equal(number: &AtomicU64, expect: u64) {
    let wait = async {
        while number.load(Ordering::SeqCst) != expect {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("the number expected");
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_begin_in_the_order_of_their_requests() {
    let (served, _) = served().await;
    let dialer = served.dialer();
    let client = dialer.client().await.unwrap();
    let asked = (0..2000)
        .map(|_| client.try_request("add", AddRequest("+").parameters().unwrap(), normal()).unwrap());
    let asked: Vec<OpStream> = asked.collect();
    for (n, replies) in asked.into_iter().enumerate() {
        assert_eq!(AddRequest("+").answer(replies).await.unwrap(), n as u64 + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_way_operations_are_executed_without_an_answer() {
    let (served, totals) = served().await;
    let dialer = served.dialer();
    for said in ["=", "+", "="].repeat(100) {
        dialer.tell(&AddRequest(said), normal()).await.unwrap();
    }
    // A one-way operation is not cancelled, although nobody waits for its answer.
    dialer.tell(&AddRequest("?"), normal()).await.unwrap();
    wait_until_equal(&totals.begun, 301).await;
    assert_eq!(dialer.ask(AddRequest("+"), normal()).await.unwrap(), 302);
    assert_eq!(totals.stopped.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_request_cancels_the_operation() {
    let (served, totals) = served().await;
    let dialer = served.dialer();
    let waiting =
        tokio::time::timeout(Duration::from_millis(200), dialer.ask(AddRequest("?"), normal())).await;
    assert!(waiting.is_err());
    wait_until_equal(&totals.stopped, 1).await;
}

/// Handler that answers all but the first of the calls that begin together; the first waits until it is released.
struct HeldHandler(Arc<Semaphore>);

impl Handler for HeldHandler {
    type Work = ();

    fn name(&self) -> &'static str {
        "held"
    }

    fn begin(&self, _parameters: Bytes) -> Result<BeginOutcome<()>> {
        Ok(BeginOutcome::Together(()))
    }

    async fn run(&self, (): (), _call: &OperationCall) -> Result<()> {
        Ok(())
    }

    fn most_together(&self) -> usize {
        256
    }

    async fn run_together(&self, works: Vec<((), OperationCall)>) {
        let mut calls = works.into_iter().map(|(_, call)| call);
        let held = calls.next();
        calls.for_each(|call| call.operation.done());
        drop(self.0.acquire().await);
        held.into_iter().for_each(|call| call.operation.done());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_that_begin_together_free_their_slots_one_by_one() {
    const MANY: usize = 3_000;
    let gate = Arc::new(Semaphore::new(0));
    let mut registry = of_data_server();
    registry.add(HeldHandler(Arc::clone(&gate)));
    let served = Served::with(&[WAVES], registry, Limits::default()).await;
    let dialer = served.dialer();
    let client = dialer.client().await.unwrap();
    let many = client.request_set();
    let mut waiting: VecDeque<Bytes> = vec![Bytes::new(); MANY].into();
    let (mut said, mut ended) = (Vec::new(), 0);
    let few_are_held = async {
        // Far more than could be answered if groups kept their slots until all of their operations end.
        while ended < MANY - MANY / 10 {
            many.request("held", &mut waiting, Urgency::of(Priority::BACKGROUND)).unwrap();
            many.next(&mut said).await;
            ended += said.drain(..).filter(|(_, what)| *what == OpEvent::Done).count();
        }
    };
    tokio::time::timeout(Duration::from_secs(30), few_are_held)
        .await
        .expect("answers of the other operations");
    gate.close();
    while many.next(&mut said).await {
        ended += said.drain(..).filter(|(_, what)| *what == OpEvent::Done).count();
    }
    assert_eq!(ended, MANY);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_answers_and_wrong_parameters_are_errors() {
    let (served, _) = served().await;
    let dialer = served.dialer();
    assert_eq!(dialer.ask(AddRequest("="), normal()).await.unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(dialer.ask(AddRequest("!"), normal()).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_for_an_unknown_operation_lists_the_operations() {
    let served = Served::start(&[WAVES]).await;
    let error = served.dialer().ask(AddRequest("+"), normal()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    for known in ["describe", "list", "read", "read_block", "stats"] {
        assert!(error.to_string().contains(known), "{error}");
    }
}
