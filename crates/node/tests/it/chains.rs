//! Operations called through servers that serve another server's data, and requests to busy servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use array::conformance::fetch;
use array::{ArrayInfo, BlockKey, Error, ErrorKind, Priority, Result, Selection, Urgency};
use bytes::Bytes;
use client::remote_call::{CallRequest, DynamicCall, Operand, OperationParameters, ResultArray};
use client::requests::RemoteOperation;
use client::url::Url;
use export::bounded_scan::ScanPart;
use link::OpStream;
use node::operations::of_data_server;
use serde::{Deserialize, Serialize};
use server::connections::Limits;
use server::ops::{BeginOutcome, Handler, OperationCall};
use server::stack::Stack;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use wire::ops::{BlockPlace, DESCRIBE, ReadBody};

use crate::common::{Served, read};

/// 4 MB.
const WAVES: &str = "synthetic:waves?shape=200,100,100&dtype=u16";

fn normal() -> Urgency {
    Urgency::of(Priority::NORMAL)
}

/// Operation that sums elements and returns an array with the numbers below `first`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sum {
    first: u64,
}

impl OperationParameters for Sum {
    const NAME: &'static str = "sum";
    type Result = f64;

    fn most_bytes(&self) -> u64 {
        1 << 20
    }
}

/// Handler of `sum` that counts its calls.
struct SumHandler(Arc<AtomicU64>);

impl Handler for SumHandler {
    type Work = CallRequest<Sum>;

    fn name(&self) -> &'static str {
        Sum::NAME
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<Self::Work>> {
        CallRequest::parse(&parameters).map(BeginOutcome::Work)
    }

    async fn run(&self, asked: Self::Work, call: &OperationCall) -> Result<()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let scan = call.scan(&asked.of).await?;
        let mut memory = call.enter(8 << 20).await;
        let part_bytes = memory.admitted().await / 8;
        let sum = |total: &mut f64, part: &ScanPart, array: &ArrayInfo| {
            *total += part.values(array)?.iter().sum::<f64>();
            Ok(())
        };
        let total = scan.fold(part_bytes, &[], 0.0, sum, |_| ()).await?;
        call.elements(ResultArray { dtype: "<f8".parse()?, shape: vec![asked.with.first] }).await?;
        let elements: Vec<u8> = (0..asked.with.first).flat_map(|n| (n as f64).to_le_bytes()).collect();
        call.piece(0, elements.into()).await?;
        call.result(&total).await
    }
}

/// Starts a server of one location, with the operation `sum` if there is a counter for its calls.
async fn serve(location: &str, counted: Option<&Arc<AtomicU64>>) -> Served {
    let mut registry = of_data_server();
    if let Some(count) = counted {
        registry.add(SumHandler(Arc::clone(count)));
    }
    Served::with(&[location], registry, Limits::default()).await
}

/// Starts a relay to a server that counts the bytes in both directions.
async fn counting_relay(to: &Url) -> (Url, Arc<AtomicU64>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = to.authority().parse().unwrap();
    let url = Url { port: listener.local_addr().unwrap().port(), ..to.clone() };
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut passing = JoinSet::new();
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(address).await.unwrap();
            let (near_in, near_out) = near.into_split();
            let (far_in, far_out) = far.into_split();
            passing.spawn(copy(near_in, far_out, Arc::clone(&counted)));
            passing.spawn(copy(far_in, near_out, Arc::clone(&counted)));
        }
    });
    (url, count, tasks)
}

async fn copy(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    count: Arc<AtomicU64>,
) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut piece = vec![0; 64 << 10];
    while let Ok(size @ 1..) = from.read(&mut piece).await {
        count.fetch_add(size as u64, Ordering::SeqCst);
        if to.write_all(&piece[..size]).await.is_err() {
            return;
        }
    }
}

async fn of(stack: &Stack) -> Operand {
    let dataset = stack.source.describe().await.unwrap();
    let place = BlockPlace { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0 };
    Operand::new(place, None)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_computed_on_the_server_with_the_data() {
    let (there, here) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let origin = serve(WAVES, Some(&there)).await;
    let local = origin.stack().await;
    let question = |of| CallRequest { of, with: Sum { first: 10_000 } };
    let expected = local.ask(question(of(&local).await), normal()).await.unwrap();
    assert_eq!(expected.elements.as_ref().map(|(_, bytes)| bytes.len()), Some(80_000));
    // The server in the middle knows the operation, or does not.
    for counted in [Some(&here), None] {
        let (url, bytes, _relay) = counting_relay(origin.url()).await;
        let middle = serve(&url.to_string(), counted).await;
        let last = serve(&middle.url().to_string(), None).await;
        let stack = last.stack().await;
        let asked = question(of(&stack).await);
        let before = bytes.load(Ordering::SeqCst);
        assert_eq!(stack.ask(asked, normal()).await.unwrap(), expected);
        let passed = bytes.load(Ordering::SeqCst) - before;
        assert!(
            (80_000..160_000).contains(&passed),
            "{passed} bytes between the servers: the answer, not the data"
        );
    }
    assert_eq!((there.load(Ordering::SeqCst), here.load(Ordering::SeqCst)), (3, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_the_server_of_the_data_lacks_is_computed_by_the_server_before_it() {
    let here = Arc::new(AtomicU64::new(0));
    let origin = serve(WAVES, None).await;
    let middle = serve(&origin.url().to_string(), Some(&here)).await;
    let stack = middle.stack().await;
    let asked = CallRequest { of: of(&stack).await, with: Sum { first: 3 } };
    let found = stack.ask(asked, normal()).await.unwrap();
    let all = read(&origin.stack().await.source, 0, Selection::all(&[200, 100, 100])).await.unwrap();
    let sum: f64 = all.chunks_exact(2).map(|v| f64::from(u16::from_le_bytes([v[0], v[1]]))).sum();
    assert_eq!((found.result, here.load(Ordering::SeqCst)), (sum, 1));
    let asked = CallRequest { of: of(&stack).await, with: Unknown {} };
    let error = stack.ask(asked, normal()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("\"sum\""), "the error lists the operations: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_over_a_catalogue_goes_to_the_server_that_has_the_array() {
    let there = Arc::new(AtomicU64::new(0));
    let origin = serve(WAVES, Some(&there)).await;
    let other = serve("synthetic:noise?shape=5,6,7&dtype=u8", None).await;
    let of_all = |served: &Served| Url { dataset: String::new(), ..served.url().clone() };
    let url = Url::joined([of_all(&origin), of_all(&other)]).unwrap();
    let local = origin.stack().await;
    let asked = CallRequest { of: of(&local).await, with: Sum { first: 2 } };
    let expected = local.ask(asked, normal()).await.unwrap().result;
    // Called by a client of the catalogue, and by a server that serves it again.
    let opened = origin.stack_of(url.clone()).await.unwrap();
    let middle = serve(&url.to_string(), None).await;
    for stack in [opened, middle.stack().await] {
        let array = stack.source.describe().await.unwrap().find("waves/waves").unwrap().0;
        let of = Operand { array, ..of(&stack).await };
        let called = DynamicCall::new("sum", of, "{\"first\": 2}", 1 << 20).unwrap();
        let found = stack.call(called, normal()).await.unwrap();
        assert_eq!(found.result, expected);
    }
    assert_eq!(there.load(Ordering::SeqCst), 3);
}

/// Handler that reports changed data and counts its calls.
struct StaleHandler(Arc<AtomicU64>);

impl Handler for StaleHandler {
    type Work = ();

    fn name(&self) -> &'static str {
        Sum::NAME
    }

    fn begin(&self, _parameters: Bytes) -> Result<BeginOutcome<()>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(Error::new(ErrorKind::Stale, "the data have changed"))
    }

    async fn run(&self, (): (), _call: &OperationCall) -> Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_whose_data_have_changed_is_skipped() {
    let (computed, changed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut registry = of_data_server();
    registry.add(StaleHandler(Arc::clone(&changed)));
    let other = Served::with(&[WAVES], registry, Limits::default()).await;
    let origin = serve(WAVES, Some(&computed)).await;
    for order in [[&other, &origin], [&origin, &other]] {
        let url = Url::joined(order.map(|served| served.url().clone())).unwrap();
        let middle = serve(&url.to_string(), None).await;
        let stack = middle.stack().await;
        let asked = CallRequest { of: of(&stack).await, with: Sum { first: 2 } };
        assert!(stack.ask(asked, normal()).await.is_ok());
    }
    assert_eq!(computed.load(Ordering::SeqCst), 2);
    assert!(changed.load(Ordering::SeqCst) > 0, "one of the two was asked first");
}

#[derive(Clone, Serialize)]
struct Unknown {}

impl OperationParameters for Unknown {
    const NAME: &'static str = "unknown";
    type Result = f64;
}

/// Handler that reports `Busy` for its first `left` calls, and then answers with zeros.
struct BusyHandler {
    name: &'static str,
    left: Arc<AtomicU64>,
    asked: Arc<AtomicU64>,
}

impl Handler for BusyHandler {
    type Work = ();

    fn name(&self) -> &'static str {
        self.name
    }

    fn begin(&self, _parameters: Bytes) -> Result<BeginOutcome<()>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let less = |left: u64| left.checked_sub(1);
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) {
            Ok(_) => Err(Error::new(ErrorKind::Busy, "too many")),
            Err(_) => Ok(BeginOutcome::Work(())),
        }
    }

    async fn run(&self, (): (), call: &OperationCall) -> Result<()> {
        call.operation.item(ReadBody { offset_bytes: 0 }.encode(), vec![0; 16].into()).await
    }
}

/// Request to a [`BusyHandler`].
struct BusyRequest(&'static str);

impl RemoteOperation for BusyRequest {
    type Response = usize;

    fn name(&self) -> &str {
        self.0
    }

    fn parameters(&self) -> Result<Bytes> {
        Ok(Bytes::new())
    }

    async fn answer(&self, replies: OpStream) -> Result<usize> {
        Ok(replies.only_item().await?.bulk.len())
    }
}

async fn busy(name: &'static str, times: u64) -> (Served, Arc<AtomicU64>) {
    let asked = Arc::new(AtomicU64::new(0));
    let mut registry = of_data_server();
    registry.add(BusyHandler { name, left: Arc::new(AtomicU64::new(times)), asked: Arc::clone(&asked) });
    (Served::with(&[WAVES], registry, Limits::default()).await, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_a_busy_server_are_repeated() {
    let (served, asked) = busy("some", 3).await;
    assert_eq!(served.dialer().ask(BusyRequest("some"), normal()).await.unwrap(), 16);
    assert_eq!(asked.load(Ordering::SeqCst), 4);
    let (served, asked) = busy("read", 2).await;
    let selection = Selection::parse("0, 0, :8", &[200, 100, 100]).unwrap();
    assert_eq!(read(&served.stack().await.source, 0, selection).await.unwrap(), [0; 16]);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    // The answer is not valid for a block, and is refused when it arrives.
    let (served, asked) = busy("read_block", 2).await;
    let stack = served.stack().await;
    let Operand { dataset, generation, .. } = of(&stack).await;
    let key = BlockKey { dataset, generation, array: 0, level: 0, index: 0 };
    let found = fetch(&*stack.source, &[key]).await.remove(&key).unwrap();
    assert_eq!(found.result.unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_request_to_a_busy_server_is_not_repeated() {
    let (served, asked) = busy(DESCRIBE, u64::MAX).await;
    let dialer = served.dialer();
    let waiting = std::time::Duration::from_millis(200);
    assert!(tokio::time::timeout(waiting, dialer.ask(BusyRequest(DESCRIBE), normal())).await.is_err());
    let then = asked.load(Ordering::SeqCst);
    assert!(then > 1, "it was asked {then} times");
    tokio::time::sleep(waiting * 3).await;
    assert_eq!(asked.load(Ordering::SeqCst), then);
}
