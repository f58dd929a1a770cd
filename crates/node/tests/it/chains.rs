//! Operations called through a server of another server's data, and servers that are too busy.

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

/// The sum of some elements, and their first ones as an array.
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

/// Counts how often it was computed here.
struct Summing(Arc<AtomicU64>);

impl Handler for Summing {
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

/// A server of one location; with the operation, or without.
async fn serve(location: &str, counted: Option<&Arc<AtomicU64>>) -> Served {
    let mut registry = of_data_server();
    if let Some(count) = counted {
        registry.add(Summing(Arc::clone(count)));
    }
    Served::with(&[location], registry, Limits::default()).await
}

/// Passes connections on to a server, and counts the bytes of both directions.
async fn counting(to: &Url) -> (Url, Arc<AtomicU64>, JoinSet<()>) {
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
            passing.spawn(pass(near_in, far_out, Arc::clone(&counted)));
            passing.spawn(pass(far_in, near_out, Arc::clone(&counted)));
        }
    });
    (url, count, tasks)
}

async fn pass(
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
async fn a_called_operation_is_computed_where_the_data_are() {
    let (there, here) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let origin = serve(WAVES, Some(&there)).await;
    let local = origin.stack().await;
    let question = |of| CallRequest { of, with: Sum { first: 10_000 } };
    let expected = local.ask(question(of(&local).await), normal()).await.unwrap();
    assert_eq!(expected.elements.as_ref().map(|(_, bytes)| bytes.len()), Some(80_000));
    // One in the middle that knows the operation, and one that does not.
    for counted in [Some(&here), None] {
        let (url, bytes, _relay) = counting(origin.url()).await;
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
async fn what_the_server_of_the_data_does_not_know_is_computed_on_the_way() {
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
    assert!(error.to_string().contains("\"sum\""), "what there is, is said: {error}");
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
    // By whoever opened the catalogue, and by a server that serves it again.
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

/// Counts how often it said that the data are others now.
struct Changed(Arc<AtomicU64>);

impl Handler for Changed {
    type Work = ();

    fn name(&self) -> &'static str {
        Sum::NAME
    }

    fn begin(&self, _parameters: Bytes) -> Result<BeginOutcome<()>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(Error::new(ErrorKind::Stale, "the data are others now"))
    }

    async fn run(&self, (): (), _call: &OperationCall) -> Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_servers_one_that_has_other_data_now_is_passed_over() {
    let (computed, changed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut registry = of_data_server();
    registry.add(Changed(Arc::clone(&changed)));
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

/// Says that it is busy so many times, then answers a read with zeros.
struct Busy {
    name: &'static str,
    left: Arc<AtomicU64>,
    asked: Arc<AtomicU64>,
}

impl Handler for Busy {
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

/// Asks a [`Busy`] operation that answers with something.
struct Anything(&'static str);

impl RemoteOperation for Anything {
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
    registry.add(Busy { name, left: Arc::new(AtomicU64::new(times)), asked: Arc::clone(&asked) });
    (Served::with(&[WAVES], registry, Limits::default()).await, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_busy_is_asked_again() {
    let (served, asked) = busy("some", 3).await;
    assert_eq!(served.dialer().ask(Anything("some"), normal()).await.unwrap(), 16);
    assert_eq!(asked.load(Ordering::SeqCst), 4);
    let (served, asked) = busy("read", 2).await;
    let selection = Selection::parse("0, 0, :8", &[200, 100, 100]).unwrap();
    assert_eq!(read(&served.stack().await.source, 0, selection).await.unwrap(), [0; 16]);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    // A block's answer looks otherwise: it is refused, once it comes.
    let (served, asked) = busy("read_block", 2).await;
    let stack = served.stack().await;
    let Operand { dataset, generation, .. } = of(&stack).await;
    let key = BlockKey { dataset, generation, array: 0, level: 0, index: 0 };
    let found = fetch(&*stack.source, &[key]).await.remove(&key).unwrap();
    assert_eq!(found.result.unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stops_waiting_for_a_busy_server_asks_no_more() {
    let (served, asked) = busy(DESCRIBE, u64::MAX).await;
    let dialer = served.dialer();
    let waiting = std::time::Duration::from_millis(200);
    assert!(tokio::time::timeout(waiting, dialer.ask(Anything(DESCRIBE), normal())).await.is_err());
    let then = asked.load(Ordering::SeqCst);
    assert!(then > 1, "it was asked {then} times");
    tokio::time::sleep(waiting * 3).await;
    assert_eq!(asked.load(Ordering::SeqCst), then);
}
