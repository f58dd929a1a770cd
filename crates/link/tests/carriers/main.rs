//! Suite that every carrier passes: the protocol does not depend on the carrier.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test stops at the first surprise"
)]

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use corridor_link as link;
use link::{
    ClientHandle, Link, Operation, OperationChange, Reply, ServerConnection, Trust, carrier::tcp,
    carrier::tls, carrier::ws, quic,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use wire::{ClientConfig, Error, ErrorKind, Priority, Retry, ServerConfig, Urgency, limits};

mod many;
mod receive_group;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Local,
    Plain,
    Tls,
    WebSocket,
    SecureWebSocket,
    Quic,
}

const ALL: [Kind; 6] =
    [Kind::Local, Kind::Plain, Kind::Tls, Kind::WebSocket, Kind::SecureWebSocket, Kind::Quic];

/// Creates both ends of a link over UDP.
async fn quic_links() -> (Link, Link) {
    let identity = link::Identity::self_signed(&["localhost".into()]).unwrap();
    let options = quic::EndpointOptions { window_bytes: 32 << 20, ..quic::EndpointOptions::default() };
    let listener = quic::Listener::bind("127.0.0.1:0".parse().unwrap(), &identity, options).unwrap();
    let port = listener.address().unwrap().port();
    let trust = Trust::Fingerprint(identity.fingerprint());
    let connect = async { quic::connect("127.0.0.1", port, &trust, &options).await.unwrap() };
    let accept = async { listener.accept().await.unwrap().establish().await.unwrap() };
    tokio::join!(connect, accept)
}

/// Creates both ends of a carrier of this kind, over real sockets where it has them.
async fn links(kind: Kind) -> (Link, Link) {
    if matches!(kind, Kind::Local) {
        return link::carrier::local::pair();
    }
    if matches!(kind, Kind::Quic) {
        return quic_links().await;
    }
    let identity = link::Identity::self_signed(&["localhost".into()]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let pinned = Trust::Fingerprint(identity.fingerprint());
    let accept = async {
        let (stream, _) = listener.accept().await.unwrap();
        tcp::prepare(&stream).unwrap();
        let config = identity.server_config(&[tls::ALPN_WIRE, tls::ALPN_HTTP]).unwrap();
        match kind {
            Kind::Local | Kind::Quic | Kind::Plain => tcp::over(stream, "client"),
            Kind::Tls => {
                let session = tls::accept(stream, config).await.unwrap();
                assert_eq!(session.get_ref().1.alpn_protocol(), Some(tls::ALPN_WIRE));
                tcp::over(session, "client")
            }
            Kind::WebSocket => {
                let socket = tokio_tungstenite::accept_async_with_config(stream, Some(ws::config()));
                ws::over(socket.await.unwrap(), "client")
            }
            Kind::SecureWebSocket => {
                let session = tls::accept(stream, config).await.unwrap();
                assert_ne!(session.get_ref().1.alpn_protocol(), Some(tls::ALPN_WIRE));
                let socket = tokio_tungstenite::accept_async_with_config(session, Some(ws::config()));
                ws::over(socket.await.unwrap(), "client")
            }
        }
    };
    let connect = async {
        match kind {
            Kind::Local | Kind::Quic | Kind::Plain => tcp::connect("127.0.0.1", port, &Trust::Plain).await,
            Kind::Tls => tcp::connect("localhost", port, &pinned).await,
            Kind::WebSocket => ws::connect("127.0.0.1", port, &Trust::Plain).await,
            Kind::SecureWebSocket => ws::connect("127.0.0.1", port, &pinned).await,
        }
        .unwrap()
    };
    tokio::join!(connect, accept)
}

/// Client, and the tasks of both sides. The server answers with `answer`.
struct Pair {
    client: ClientHandle,
    tasks: JoinSet<()>,
    server: tokio::task::AbortHandle,
}

async fn pair<F, Fut>(kind: Kind, config: ClientConfig, answer: F) -> Pair
where
    F: Fn(Arc<Operation>) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    pair_of(kind, config, ServerConfig::default(), answer).await
}

async fn pair_of<F, Fut>(kind: Kind, config: ClientConfig, server: ServerConfig, answer: F) -> Pair
where
    F: Fn(Arc<Operation>) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let (ours, theirs) = links(kind).await;
    let mut tasks = JoinSet::new();
    let (client, driver) = link::connect(ours, config).unwrap();
    tasks.spawn(driver);
    let (connection, driver) = link::serve(theirs, server).unwrap();
    let server = tasks.spawn(driver);
    tasks.spawn(answer_all(connection, answer));
    Pair { client, tasks, server }
}

/// Creates a connected client and server without answers; both are driven while the last value is kept.
async fn connected() -> (ClientHandle, ServerConnection, JoinSet<()>) {
    let (ours, theirs) = links(Kind::Local).await;
    let mut driven = JoinSet::new();
    let (client, driver) = link::connect(ours, ClientConfig::default()).expect("a client");
    driven.spawn(driver);
    let (connection, driver) = link::serve(theirs, ServerConfig::default()).expect("a server");
    driven.spawn(driver);
    (client, connection, driven)
}

async fn answer_all<F, Fut>(connection: ServerConnection, answer: F)
where
    F: Fn(Arc<Operation>) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let Ok(hello) = connection.hello().await else { return };
    if hello.token == "wrong" {
        return connection.refuse(Error::new(ErrorKind::Denied, "expected another token"));
    }
    connection.accept();
    let mut running = JoinSet::new();
    while let Some(operation) = connection.next().await {
        running.spawn(answer(Arc::new(operation)));
    }
}

/// Answers `echo` with the parameters as body and bulk, `bulk` with that many bytes of `pattern`, `forever`
/// with items until cancelled, and `converse` with an item for each note.
async fn answer(operation: Arc<Operation>) {
    let sent = match operation.name() {
        "echo" => operation.item(operation.parameters(), operation.parameters()).await,
        "bulk" => bulk(&operation).await,
        "forever" => forever(&operation).await,
        "converse" => converse(&operation).await,
        other => Err(Error::unsupported(format!("expected a known operation, found `{other}`"))),
    };
    match sent {
        Ok(()) => operation.done(),
        Err(error) => operation.fail(error),
    }
}

async fn bulk(operation: &Operation) -> wire::Result<()> {
    let total = u64::from_le_bytes(operation.parameters()[..].try_into().unwrap());
    let (mut at, mut size) = (0, 1);
    while at < total {
        let end = (at + size).min(total);
        operation.item(Bytes::from(at.to_le_bytes().to_vec()), pattern(at, end)).await?;
        (at, size) = (end, (size * 3).min(20 << 20));
    }
    Ok(())
}

async fn forever(operation: &Operation) -> wire::Result<()> {
    loop {
        operation.item(Bytes::new(), pattern(0, 100_000)).await?;
    }
}

async fn converse(operation: &Operation) -> wire::Result<()> {
    loop {
        match operation.changed().await {
            OperationChange::Note(body) => operation.item(body, Bytes::new()).await?,
            OperationChange::Adjusted(urgency) => {
                operation.item(Bytes::from(vec![urgency.priority.tier]), Bytes::new()).await?;
            }
            OperationChange::Cancelled => return Err(Error::cancelled()),
        }
    }
}

const PERIOD: usize = 1_000_003;

/// Returns bytes `at..end` of an endless text whose period is a prime, so that a shifted piece is detected.
fn pattern(at: u64, end: u64) -> Bytes {
    static TEXT: std::sync::OnceLock<Bytes> = std::sync::OnceLock::new();
    let text = TEXT.get_or_init(|| (0..22 << 20).map(|i| (((i % PERIOD) * 131) >> 3) as u8).collect());
    let start = usize::try_from(at).unwrap() % PERIOD;
    text.slice(start..start + usize::try_from(end - at).unwrap())
}

fn normal() -> Urgency {
    Urgency::of(Priority::NORMAL)
}

fn size(bytes: u64) -> Bytes {
    Bytes::from(bytes.to_le_bytes().to_vec())
}

/// Runs a test on each carrier, with a limit, on two threads as a node would.
fn on_all(test: impl AsyncFn(Kind)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for kind in ALL {
        let done =
            runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), test(kind)).await });
        assert!(done.is_ok(), "{kind:?} took too long");
    }
}

#[test]
fn many_operations_answer_at_once() {
    on_all(|kind| async move {
        let pair = pair(kind, ClientConfig::default(), answer).await;
        assert_eq!(pair.client.welcomed().await.unwrap().version, 1);
        let calls = (0..500_u32).map(|i| {
            let text = Bytes::from(vec![i as u8; i as usize * 7]);
            let client = pair.client.clone();
            async move { (text.clone(), client.call("echo", text, normal()).await) }
        });
        for (text, found) in futures::future::join_all(calls).await {
            let found = found.unwrap();
            assert_eq!((&found.body, &found.bulk), (&text, &text), "{kind:?}");
        }
        let error = pair.client.call("unknown", Bytes::new(), normal()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    });
}

#[test]
fn a_hundred_megabytes_arrive_exactly() {
    const TOTAL: u64 = 100_000_000;
    on_all(|kind| async move {
        let pair = pair(kind, ClientConfig::default(), answer).await;
        let mut stream = pair.client.request("bulk", size(TOTAL), normal()).await.unwrap();
        let (mut received, mut start) = (0, 0);
        while let Some(reply) = stream.next().await {
            match reply.unwrap() {
                Reply::Item { body, .. } => start = u64::from_le_bytes(body[..].try_into().unwrap()),
                Reply::Piece { offset, bytes, .. } => {
                    let at = start + offset;
                    assert!(bytes == pattern(at, at + bytes.len() as u64), "{kind:?}: wrong bytes at {at}");
                    received += bytes.len() as u64;
                }
            }
        }
        assert_eq!(received, TOTAL, "{kind:?}");
        let mut stream = pair.client.request("bulk", size(30_000_000), normal()).await.unwrap();
        let mut whole = Vec::new();
        while let Some(item) = stream.next_item().await {
            whole.extend_from_slice(&item.unwrap().bulk);
        }
        assert_eq!(whole.len(), 30_000_000);
        assert!(whole[..20_000_000] == pattern(0, 20_000_000)[..], "{kind:?}");
    });
}

#[test]
fn a_dropped_stream_stops_the_server() {
    on_all(|kind| async move {
        let (stopped, mut is_stopped) = tokio::sync::mpsc::channel(1);
        let pair = pair(kind, ClientConfig::default(), move |operation: Arc<Operation>| {
            let stopped = stopped.clone();
            async move {
                let endless = operation.name() == "forever";
                answer(operation).await;
                if endless {
                    stopped.send(()).await.unwrap();
                }
            }
        })
        .await;
        let mut stream = pair.client.request("forever", Bytes::new(), normal()).await.unwrap();
        for _ in 0..30 {
            stream.next().await.unwrap().unwrap();
        }
        drop(stream);
        is_stopped.recv().await.unwrap();
        // The credit of discarded bulk was returned: far more than the window can be transferred.
        for _ in 0..3 {
            let item = pair.client.call("bulk", size(1), normal()).await.unwrap();
            assert_eq!(item.bulk, pattern(0, 1), "{kind:?}");
            let mut stream = pair.client.request("bulk", size(9 << 20), normal()).await.unwrap();
            while let Some(reply) = stream.next().await {
                reply.unwrap();
            }
        }
    });
}

#[test]
fn notes_and_adjustments_reach_a_running_operation() {
    on_all(|kind| async move {
        let pair = pair(kind, ClientConfig::default(), answer).await;
        let mut stream = pair.client.request("converse", Bytes::new(), normal()).await.unwrap();
        for i in 0..100_u8 {
            stream.note(Bytes::from(vec![i, 1])).unwrap();
        }
        for i in 0..100_u8 {
            assert_eq!(stream.next_item().await.unwrap().unwrap().body, vec![i, 1], "{kind:?}");
        }
        stream.adjust(Urgency::of(Priority::URGENT));
        assert_eq!(stream.next_item().await.unwrap().unwrap().body, vec![4]);
    });
}

#[test]
fn a_server_killed_in_the_middle_is_unreachable_and_a_retry_may_help() {
    on_all(|kind| async move {
        let mut pair = pair(kind, ClientConfig::default(), answer).await;
        let mut stream = pair.client.request("forever", Bytes::new(), normal()).await.unwrap();
        let mut waiting = pair.client.request("converse", Bytes::new(), normal()).await.unwrap();
        stream.next().await.unwrap().unwrap();
        pair.server.abort();
        let error = loop {
            match stream.next().await.expect("an error before the end") {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(
            (error.kind(), error.retry()),
            (ErrorKind::Unreachable, Retry::MayHelp),
            "{kind:?}: {error}"
        );
        assert!(stream.next().await.is_none());
        assert_eq!(waiting.next().await.unwrap().unwrap_err().kind(), ErrorKind::Unreachable);
        assert_eq!(pair.client.closed().await.kind(), ErrorKind::Unreachable);
        let error = pair.client.request("echo", Bytes::new(), normal()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        drop((stream, waiting, pair.client));
        while pair.tasks.join_next().await.is_some() {}
    });
}

#[test]
fn a_slow_reader_does_not_grow_the_server() {
    const WINDOW: u64 = 1 << 20;
    on_all(|kind| async move {
        let taken = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&taken);
        let config = ClientConfig { window_bytes: WINDOW, ..ClientConfig::default() };
        let pair = pair(kind, config, move |operation: Arc<Operation>| {
            let taken = Arc::clone(&counter);
            async move {
                if operation.name() != "forever" {
                    return answer(operation).await;
                }
                while operation.item(Bytes::new(), pattern(0, 300_000)).await.is_ok() {
                    taken.fetch_add(300_000, Ordering::Relaxed);
                }
            }
        })
        .await;
        let stream = pair.client.request("forever", Bytes::new(), normal()).await.unwrap();
        let tier = usize::from(Priority::NORMAL.tier);
        let queue = (limits::QUEUE_BYTES + tier * limits::QUEUE_BYTES_PER_TIER) as u64;
        let taken = || taken.load(Ordering::Relaxed);
        // Fills the queue however slow this machine is (the test as a whole has a limit), and then stops.
        while taken() < queue {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        let taken = taken();
        assert!(taken <= queue + WINDOW + 600_000, "{kind:?}: {taken} bytes were taken");
        // Operations without bulk are still answered.
        let more = pair.client.call("unknown", Bytes::new(), normal());
        assert!(tokio::time::timeout(Duration::from_secs(5), more).await.is_ok(), "{kind:?}");
        drop(stream);
        assert!(pair.client.call("echo", size(7), normal()).await.is_ok(), "{kind:?}");
    });
}

#[tokio::test]
async fn a_waiting_sender_is_woken_by_room_urgency_and_the_end() {
    let config = ClientConfig { window_bytes: 0, ..ClientConfig::default() };
    let (sender, mut operations) = tokio::sync::mpsc::channel(8);
    let pair = pair(Kind::Local, config, move |operation| {
        let sender = sender.clone();
        async move { drop(sender.send(operation).await) }
    })
    .await;
    let background = Urgency::of(Priority::BACKGROUND);
    let (mut asked, mut answering) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        asked.push(pair.client.request("wait", Bytes::new(), background).await.unwrap());
        answering.push(operations.recv().await.unwrap());
    }
    // Without credit it is not sent, and fills the queue.
    answering[0].item(Bytes::new(), pattern(0, limits::QUEUE_BYTES as u64)).await.unwrap();
    let mut rooms: Vec<_> = answering[1..].iter().map(|operation| Box::pin(operation.room())).collect();
    for room in &mut rooms {
        assert!(futures::poll!(room).is_pending());
    }
    asked[1].adjust(Urgency::of(Priority::INTERACTIVE));
    rooms.remove(0).await;
    drop(asked.remove(2));
    rooms.remove(0).await;
    assert!(futures::poll!(&mut rooms[0]).is_pending());
    answering[0].fail(Error::cancelled());
    rooms.remove(0).await;
}

/// Records the sizes of writes.
struct Writes {
    inner: tokio::io::DuplexStream,
    count: Arc<AtomicUsize>,
}

impl AsyncRead for Writes {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, into)
    }
}

impl AsyncWrite for Writes {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.count.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Operations that the application has not taken yet wait in order of urgency, follow adjustments, and can be withdrawn.
#[tokio::test]
async fn operations_are_taken_in_order_of_urgency() {
    let (client, connection, _driven) = connected().await;
    connection.hello().await.unwrap();
    connection.accept();
    let ask = |name, priority| client.try_request(name, Bytes::new(), Urgency::of(priority)).unwrap();
    let raised = ask("raised", Priority::BACKGROUND);
    let withdrawn = ask("withdrawn", Priority::NORMAL);
    let _asked = ["first", "second"].map(|name| ask(name, Priority::NORMAL));
    raised.adjust(Urgency::of(Priority::INTERACTIVE));
    drop(withdrawn);
    // Answered last, so that all of the above has arrived.
    let _last = ask("urgent", Priority::URGENT);
    let mut names = vec![connection.next_of(Priority::URGENT.tier).await.unwrap().name().to_owned()];
    for _ in 0..3 {
        names.push(connection.next().await.unwrap().name().to_owned());
    }
    assert_eq!(names, ["urgent", "raised", "first", "second"]);
    assert!(futures::poll!(Box::pin(connection.next())).is_pending());
}

/// A thousand small operations are taken in sixteen steps and answered in as many; operations that differ
/// begin a step of their own.
#[tokio::test]
async fn operations_that_are_ready_together_are_taken_and_answered_together() {
    let (client, connection, _driven) = connected().await;
    connection.hello().await.unwrap();
    connection.accept();
    let ask = |name, n: u32| {
        let parameters = Bytes::copy_from_slice(&n.to_le_bytes());
        client.try_request(name, parameters, Urgency::of(Priority::NORMAL)).unwrap()
    };
    let mut asked: Vec<_> = (0..1_000).map(|n| ask("small", n)).collect();
    let other = ask("other", 0);
    let _last = client.try_request("urgent", Bytes::new(), Urgency::of(Priority::URGENT)).unwrap();
    let most = |name: &str| if name == "small" { 64 } else { 1 };
    assert_eq!(connection.next_together(Priority::URGENT.tier, most).await.unwrap().len(), 1);
    drop(asked.swap_remove(500));
    // Answered later than the withdrawal, so that it has arrived.
    let marker = client.try_request("urgent", Bytes::new(), Urgency::of(Priority::URGENT)).unwrap();
    let first = connection.next_together(Priority::URGENT.tier, most).await.unwrap();
    assert_eq!(first[0].name(), "urgent");
    drop((first, marker));
    let mut steps = Vec::new();
    while steps.iter().sum::<usize>() < 999 {
        let taken = connection.next_together(0, most).await.unwrap();
        steps.push(taken.len());
        let echoed = taken.into_iter().map(|o| (o.parameters(), o)).map(|(said, o)| (o, said.clone(), said));
        Operation::answer_all(echoed).await;
    }
    assert_eq!(steps, [vec![64; 15], vec![39]].concat());
    assert_eq!(connection.next_together(0, most).await.unwrap()[0].name(), "other");
    for (n, stream) in asked.into_iter().enumerate() {
        let n = if n == 500 { 999 } else { u32::try_from(n).unwrap() };
        let item = stream.only_item().await.unwrap();
        assert_eq!((&item.body[..], &item.bulk[..]), (&n.to_le_bytes()[..], &n.to_le_bytes()[..]));
    }
    assert_eq!(other.only_item().await.unwrap_err().kind(), ErrorKind::Internal, "it was dropped unanswered");
}

#[test]
fn a_wrong_token_is_refused_with_the_reason() {
    on_all(|kind| async move {
        let config = ClientConfig { token: "wrong".into(), ..ClientConfig::default() };
        let pair = pair(kind, config, answer).await;
        let error = pair.client.welcomed().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{kind:?}");
        assert_eq!(error.to_string(), "refused by the server: expected another token");
    });
}

#[test]
fn a_client_without_a_common_version_is_told_which_there_are() {
    on_all(|kind| async move {
        let config = ClientConfig { versions: 7..=9, ..ClientConfig::default() };
        let pair = pair(kind, config, answer).await;
        let error = pair.client.welcomed().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{kind:?}");
        assert!(error.to_string().contains("1 to 1 here and 7 to 9 at the client"), "{error}");
    });
}

#[test]
fn the_last_handle_closes_the_connection() {
    on_all(|kind| async move {
        let mut pair = pair(kind, ClientConfig::default(), answer).await;
        pair.client.welcomed().await.unwrap();
        drop(pair.client);
        while let Some(ended) = pair.tasks.join_next().await {
            ended.unwrap();
        }
        assert!(pair.server.is_finished(), "{kind:?}");
    });
}

#[tokio::test]
async fn operations_that_wait_are_bounded_over_all_clients_and_each_has_some_places() {
    const SHARED: u64 = 1000;
    const ASKED: usize = 4000;
    let limit = link::WaitingLimit::new(SHARED);
    let mut tasks = JoinSet::new();
    let (mut clients, mut asked, mut connections) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        let (ours, theirs) = link::carrier::local::pair();
        let (client, driver) = link::connect(ours, ClientConfig::default()).unwrap();
        tasks.spawn(driver);
        let (connection, driver) = link::serve_among(theirs, ServerConfig::default(), limit.clone()).unwrap();
        tasks.spawn(driver);
        connection.hello().await.unwrap();
        connection.accept();
        client.welcomed().await.unwrap();
        let all: Vec<_> =
            (0..ASKED).map(|_| client.try_request("wait", Bytes::new(), normal()).unwrap()).collect();
        asked.push(all);
        clients.push(client);
        connections.push(connection);
    }
    // Refused operations are reported; the rest is never taken and never answered.
    let refused = ASKED * 5 - usize::try_from(SHARED).unwrap() - 5 * link::OWN_WAITING_OPERATIONS;
    let mut busy = 0;
    let mut answers: futures::stream::SelectAll<_> = asked.into_iter().flatten().collect();
    while busy < refused {
        let answer =
            tokio::time::timeout(Duration::from_secs(60), futures::StreamExt::next(&mut answers)).await;
        assert_eq!(answer.expect("more refusals").unwrap().unwrap_err().kind(), ErrorKind::Busy);
        busy += 1;
    }
    assert_eq!(limit.used(), SHARED, "no more than there are places for, and no less");
    // A new connection still has room of its own, and is served.
    let (ours, theirs) = link::carrier::local::pair();
    let (client, driver) = link::connect(ours, ClientConfig::default()).unwrap();
    tasks.spawn(driver);
    let (connection, driver) = link::serve_among(theirs, ServerConfig::default(), limit.clone()).unwrap();
    tasks.spawn(driver);
    tasks.spawn(answer_all(connection, answer));
    let last = client.call("echo", Bytes::from("here"), normal()).await.unwrap();
    assert_eq!(last.body, "here");
    drop((answers, connections));
    while limit.used() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
