//! Client and server with several streams, through a relay that can pause or cut each of them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use wire::{ClientConfig, Error, ErrorKind, Priority, Result, Retry, ServerConfig, Urgency};

use super::ticket::TICKET_BYTES;
use super::{AcceptedSession, MAX_STREAMS, Rails, StreamRegistry, connect};
use crate::carrier::tls::{self, ALPN_HTTP, ALPN_JOIN, ALPN_WIRE, SERVED};
use crate::multistream::topology::{Card, Topology, Units};
use crate::{ClientHandle, Flow, Identity, Link, Operation, ReadSink, TcpMonitor, Trust, carrier::tcp};

/// Bulk of an item.
const ITEM_BYTES: u64 = 1 << 20;
const SOON: Duration = Duration::from_secs(20);

fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

fn pattern(start: u64, bytes: u64) -> Bytes {
    (start..start + bytes).map(byte).collect()
}

/// Answers `bulk` with the requested number of bytes, in items whose bodies contain their offset.
async fn answer(operation: &Operation) -> Result<()> {
    let asked = operation.parameters().first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let all = asked.ok_or_else(|| Error::invalid("expected a size"))?;
    let mut start = 0;
    while start < all {
        let bytes = ITEM_BYTES.min(all - start);
        operation.item(Bytes::copy_from_slice(&start.to_le_bytes()), pattern(start, bytes)).await?;
        start += bytes;
    }
    Ok(())
}

/// Serves a link until it ends, and records its flow.
async fn serve(link: Link, flows: Arc<Mutex<Vec<Arc<dyn Flow>>>>) -> Result<()> {
    flows.lock().expect("no panic").extend(link.flow());
    let (connection, driver) = crate::serve(link, ServerConfig::default())?;
    let mut tasks = JoinSet::new();
    tasks.spawn(driver);
    connection.hello().await?;
    connection.accept();
    while let Some(operation) = connection.next().await {
        tasks.spawn(async move {
            match answer(&operation).await {
                Ok(()) => operation.done(),
                Err(error) => operation.fail(error),
            }
        });
    }
    Ok(())
}

struct Server {
    address: SocketAddr,
    trust: Trust,
    registry: StreamRegistry,
    flows: Arc<Mutex<Vec<Arc<dyn Flow>>>>,
    /// Result of each further stream.
    ends: Arc<Mutex<Vec<Result<()>>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start(protocols: &[&[u8]]) -> Self {
        Self::with(protocols, StreamRegistry::default()).await
    }

    async fn with(protocols: &[&[u8]], registry: StreamRegistry) -> Self {
        let identity = Identity::self_signed(&["localhost".into()]).expect("an identity");
        let config = identity.server_config(protocols).expect("an identity");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (flows, ends) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<Mutex<Vec<_>>>::default());
        let mut tasks = JoinSet::new();
        let (counter, noted, told) = (registry.clone(), Arc::clone(&flows), Arc::clone(&ends));
        tasks.spawn(async move {
            let mut sessions = JoinSet::new();
            while let Ok((stream, peer)) = listener.accept().await {
                let (config, registry) = (Arc::clone(&config), counter.clone());
                let (flows, ends) = (Arc::clone(&noted), Arc::clone(&told));
                sessions.spawn(async move {
                    let watch = TcpMonitor::on(&stream);
                    tcp::prepare(&stream)?;
                    let session = tls::accept(stream, config).await?;
                    match registry.accept(session, watch, peer.to_string()).await? {
                        AcceptedSession::Link(link) => serve(link, flows).await,
                        AcceptedSession::Stream(stream) => {
                            let end = stream.run().await;
                            ends.lock().expect("no panic").push(end);
                            Ok(())
                        }
                        AcceptedSession::Other(_) => Err(Error::invalid("expected the wire")),
                    }
                });
            }
        });
        Self {
            address,
            trust: Trust::Fingerprint(identity.fingerprint()),
            registry,
            flows,
            ends,
            _tasks: tasks,
        }
    }

    fn flow(&self) -> Arc<dyn Flow> {
        self.flows.lock().expect("no panic").first().cloned().expect("a link with a flow")
    }
}

/// Treatment of the bytes from the server by a relay.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Open,
    Held,
    Cut,
}

/// Relay between a client and a server: connections in the order of their arrival.
struct Relay {
    address: SocketAddr,
    ways: Arc<Mutex<Vec<watch::Sender<Way>>>>,
    _tasks: JoinSet<()>,
}

impl Relay {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let ways = Arc::<Mutex<Vec<watch::Sender<Way>>>>::default();
        let mut tasks = JoinSet::new();
        let noted = Arc::clone(&ways);
        tasks.spawn(async move {
            let mut pumps = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(server).await.expect("the server");
                let (told, way) = watch::channel(Way::Open);
                noted.lock().expect("no panic").push(told);
                pumps.spawn(pump(near, far, way));
            }
        });
        Self { address, ways, _tasks: tasks }
    }

    fn set(&self, number: usize, way: Way) {
        self.ways.lock().expect("no panic")[number].send_replace(way);
    }
}

async fn pump(near: TcpStream, far: TcpStream, mut way: watch::Receiver<Way>) {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (near.into_split(), far.into_split());
    let mut held = way.clone();
    let back = async {
        let mut buffer = vec![0; 64 << 10];
        loop {
            if way.wait_for(|way| *way != Way::Held).await.map_or(true, |way| *way == Way::Cut) {
                return;
            }
            tokio::select! {
                _ = way.changed() => {}
                read = from_server.read(&mut buffer) => {
                    let Ok(bytes @ 1..) = read else { return };
                    if to_client.write_all(&buffer[..bytes]).await.is_err() {
                        return;
                    }
                }
            }
        }
    };
    // A paused connection is not closed either.
    let forth = async {
        drop(tokio::io::copy(&mut from_client, &mut to_server).await);
        drop(held.wait_for(|way| *way != Way::Held).await);
    };
    tokio::select! {
        () = back => {}
        () = forth => {}
    }
}

struct Client {
    handle: ClientHandle,
    flow: Arc<dyn Flow>,
    _tasks: JoinSet<()>,
}

impl Client {
    async fn connect(address: SocketAddr, trust: &Trust, streams: u32) -> Self {
        Self::connect_by(address, trust, streams, Rails::default()).await
    }

    async fn connect_by(address: SocketAddr, trust: &Trust, streams: u32, rails: Rails) -> Self {
        let link = connect("127.0.0.1", address.port(), trust, streams, rails).await.expect("a link");
        let flow = link.flow().expect("a flow");
        let (handle, driver) = crate::connect(link, ClientConfig::default()).expect("a client");
        let mut tasks = JoinSet::new();
        tasks.spawn(driver);
        handle.welcomed().await.expect("a welcome");
        Self { handle, flow, _tasks: tasks }
    }

    async fn receive(&self, bytes: u64, any_order: bool) -> Result<usize> {
        let came = Arc::<Mutex<Came>>::default();
        let receiver = Puts { came: Arc::clone(&came), starts: Vec::new(), bytes, any_order };
        let urgency = Urgency::of(Priority::NORMAL);
        let parameters = Bytes::copy_from_slice(&bytes.to_le_bytes());
        self.handle.receive("bulk", parameters, urgency, Box::new(receiver)).await?.await?;
        let early = came.lock().expect("no panic").early;
        Ok(early)
    }

    /// Requests bytes by a stream of replies, whose order is checked.
    async fn fetch(&self, bytes: u64, priority: Priority) -> Result<()> {
        let parameters = Bytes::copy_from_slice(&bytes.to_le_bytes());
        let mut replies = self.handle.request("bulk", parameters, Urgency::of(priority)).await?;
        let mut end = 0;
        while let Some(item) = replies.next_item().await {
            let bulk = item?.bulk;
            assert_eq!(bulk, pattern(end, bulk.len() as u64), "at {end}");
            end += bulk.len() as u64;
        }
        assert_eq!(end, bytes);
        Ok(())
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, waiting).await.unwrap_or_else(|_| panic!("expected {what}"));
}

async fn joined(server: &Server, client: &Client, streams: u32) {
    until("all streams", || {
        (client.flow.statistics().streams, server.flow().statistics().streams) == (streams, streams)
    })
    .await;
}

#[derive(Default)]
struct Came {
    bytes: Vec<bool>,
    end: usize,
    early: usize,
}

/// Checks that each byte arrives once, with the right value.
struct Puts {
    came: Arc<Mutex<Came>>,
    starts: Vec<Option<u64>>,
    bytes: u64,
    any_order: bool,
}

impl ReadSink for Puts {
    fn item(&mut self, item: u32, body: Bytes, _: u64) -> Result<()> {
        let start = body.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        self.starts.resize(self.starts.len().max(item as usize + 1), None);
        assert!(self.starts[item as usize].replace(start.expect("where it begins")).is_none());
        Ok(())
    }

    fn piece(&mut self, item: u32, offset: u64, bytes: &[u8], _: bool) -> Result<()> {
        let at = self.starts[item as usize].expect("its item is told before") + offset;
        assert!(bytes.iter().zip(at..).all(|(found, at)| *found == byte(at)), "at {at}");
        let mut came = self.came.lock().expect("no panic");
        came.bytes.resize(usize::try_from(self.bytes).expect("a size"), false);
        let at = usize::try_from(at).expect("a place");
        came.early += usize::from(at > came.end);
        came.end = came.end.max(at + bytes.len());
        for is_there in &mut came.bytes[at..at + bytes.len()] {
            assert!(!std::mem::replace(is_there, true), "a byte came twice");
        }
        Ok(())
    }

    fn takes_any_order(&self) -> bool {
        self.any_order
    }

    fn finish(&mut self) -> Result<()> {
        let missing = self.came.lock().expect("no panic").bytes.iter().filter(|is_there| !**is_there).count();
        if missing == 0 { Ok(()) } else { Err(Error::corrupt(format!("{missing} bytes are missing"))) }
    }
}

#[tokio::test]
async fn every_byte_comes_once_by_any_number_of_streams() {
    for streams in [1, 2, 4, MAX_STREAMS] {
        let server = Server::start(&SERVED).await;
        let client = Client::connect(server.address, &server.trust, streams).await;
        // Part of the data arrives while the streams join.
        client.receive(3 * ITEM_BYTES + 5, true).await.unwrap();
        joined(&server, &client, streams).await;
        let before = client.flow.statistics().received_bytes;
        let early = client.receive(24 * ITEM_BYTES + 77, true).await.unwrap();
        assert_eq!(early > 0, streams > 1, "{streams} streams: {early} pieces came early");
        client.receive(5 * ITEM_BYTES, false).await.unwrap();
        for bytes in [0, 10, 16_383, 16_384, 40_000, 3 * ITEM_BYTES + 1] {
            client.fetch(bytes, Priority::NORMAL).await.unwrap();
        }
        tokio::try_join!(client.receive(4 * ITEM_BYTES, true), client.receive(4 * ITEM_BYTES, false))
            .unwrap();
        let all = client.flow.statistics().received_bytes - before;
        assert!(all > 40 * ITEM_BYTES, "all streams are counted: {all}");
    }
}

#[tokio::test]
async fn a_rate_that_was_asked_for_is_that_of_all_streams_together() {
    let server = Server::start(&SERVED).await;
    let client = Client::connect(server.address, &server.trust, 4).await;
    server.flow().control("rate=40MB/s".parse().unwrap()).unwrap();
    // They join when the server has answered, and each carries a part of the data then.
    client.receive(ITEM_BYTES, true).await.unwrap();
    joined(&server, &client, 4).await;
    client.receive(24 * ITEM_BYTES, true).await.unwrap();
    let seen = server.flow().statistics();
    assert!(seen.rate_bytes_per_sec <= Some(40e6) && seen.streams == 4, "{seen:?}");
}

#[tokio::test]
async fn a_stream_that_is_cut_ends_the_link_and_another_one_may_do() {
    for number in [0, 1, 3] {
        let server = Server::start(&SERVED).await;
        let relay = Relay::to(server.address).await;
        let client = Client::connect(relay.address, &server.trust, 4).await;
        joined(&server, &client, 4).await;
        let flow = client.flow.clone();
        let cutting = async {
            until("some bytes", || flow.statistics().received_bytes > 2 * ITEM_BYTES).await;
            relay.set(number, Way::Cut);
        };
        let (ended, ()) = tokio::join!(client.receive(300 * ITEM_BYTES, true), cutting);
        let error = ended.unwrap_err();
        assert_eq!((error.kind(), error.retry()), (ErrorKind::Unreachable, Retry::MayHelp), "{error}");
        assert!(client.handle.ended().is_some(), "the whole link is over");
        let again = Client::connect(relay.address, &server.trust, 4).await;
        again.receive(3 * ITEM_BYTES, true).await.unwrap();
    }
}

#[tokio::test]
async fn a_stream_that_stands_still_holds_up_nothing_urgent() {
    let server = Server::start(&SERVED).await;
    let relay = Relay::to(server.address).await;
    let client = Client::connect(relay.address, &server.trust, 3).await;
    joined(&server, &client, 3).await;
    (1..3).for_each(|number| relay.set(number, Way::Held));
    let bulk = client.receive(40 * ITEM_BYTES, true);
    tokio::pin!(bulk);
    let urgent = async {
        for bytes in [10, 12_000, 16_000] {
            client.fetch(bytes, Priority::URGENT).await.unwrap();
        }
    };
    tokio::select! {
        _ = &mut bulk => panic!("what went by the streams that stand still cannot have come"),
        done = tokio::time::timeout(SOON, urgent) => done.expect("urgent answers come"),
    }
    (1..3).for_each(|number| relay.set(number, Way::Open));
    tokio::time::timeout(SOON, bulk).await.expect("the rest comes").unwrap();
}

/// Opens a stream that joins with `ticket`; returns the server's answer, `None` when it is rejected.
async fn knock(server: &Server, ticket: &[u8]) -> Option<u8> {
    let stream = TcpStream::connect(server.address).await.expect("the server");
    let mut session =
        tls::connect(stream, "127.0.0.1", &[ALPN_JOIN], &server.trust).await.expect("a session");
    session.write_all(ticket).await.expect("the ticket leaves");
    session.flush().await.expect("the ticket leaves");
    session.read_u8().await.ok()
}

#[tokio::test]
async fn only_the_other_end_of_the_first_stream_can_join_it_and_only_so_often() {
    let server = Server::start(&SERVED).await;
    assert_eq!(knock(&server, &[7; TICKET_BYTES]).await, None, "of no link");
    let client = Client::connect(server.address, &server.trust, 2).await;
    joined(&server, &client, 2).await;
    let tickets = server.registry.tickets();
    assert_eq!(tickets.len(), 1);
    let mut forged = tickets[0].clone();
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(knock(&server, &forged).await, None, "the right name and another secret");
    // Further streams are accepted up to the limit.
    for _ in 2..MAX_STREAMS {
        assert_eq!(knock(&server, &tickets[0]).await, Some(super::TAKEN));
    }
    assert_eq!(knock(&server, &tickets[0]).await, None, "one too many");
    drop(client);
    until("the link's place to be given back", || server.registry.tickets().is_empty()).await;
    assert_eq!(knock(&server, &tickets[0]).await, None, "of a link that is over");
    until("its streams to end", || server.ends.lock().unwrap().len() == MAX_STREAMS as usize - 1).await;
}

#[tokio::test]
async fn no_stream_joins_an_unauthenticated_connection() {
    let identity = Identity::self_signed(&["localhost".into()]).unwrap();
    let config = identity.server_config(&SERVED).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (registry, trust) = (StreamRegistry::default(), Trust::Fingerprint(identity.fingerprint()));
    let accepting = async {
        let (stream, _) = listener.accept().await.unwrap();
        let session = tls::accept(stream, config).await.unwrap();
        registry.accept(session, None, "client".into()).await.unwrap()
    };
    let (ours, arrived) = tokio::join!(connect("127.0.0.1", port, &trust, 4, Rails::default()), accepting);
    let AcceptedSession::Link(theirs) = arrived else { panic!("expected a link") };
    let mut tasks = JoinSet::new();
    let (client, driver) = crate::connect(ours.unwrap(), ClientConfig::default()).unwrap();
    tasks.spawn(driver);
    let (connection, driver) = crate::serve(theirs, ServerConfig::default()).unwrap();
    tasks.spawn(driver);
    connection.hello().await.unwrap();
    assert!(registry.tickets().is_empty());
    connection.refuse(Error::new(ErrorKind::Denied, "expected another token"));
    assert_eq!(client.welcomed().await.unwrap_err().kind(), ErrorKind::Denied);
    assert!(registry.tickets().is_empty());
}

#[tokio::test]
async fn peers_that_know_one_stream_work_with_one() {
    let old_server = Server::start(&[ALPN_WIRE, ALPN_HTTP]).await;
    let client = Client::connect(old_server.address, &old_server.trust, 4).await;
    client.receive(3 * ITEM_BYTES, true).await.unwrap();
    assert_eq!(client.flow.statistics().streams, 1);

    let server = Server::start(&SERVED).await;
    let link = tcp::connect("127.0.0.1", server.address.port(), &server.trust).await.unwrap();
    let mut tasks = JoinSet::new();
    let (old_client, driver) = crate::connect(link, ClientConfig::default()).unwrap();
    tasks.spawn(driver);
    let mut replies = old_client
        .request("bulk", Bytes::copy_from_slice(&70_000_u64.to_le_bytes()), Urgency::of(Priority::NORMAL))
        .await
        .unwrap();
    assert_eq!(replies.next_item().await.unwrap().unwrap().bulk, pattern(0, 70_000));
    assert_eq!(server.flow().statistics().streams, 1);
    assert!(server.registry.tickets().is_empty(), "nothing can join it");
}

#[tokio::test]
async fn the_number_of_streams_has_bounds() {
    for streams in [0, MAX_STREAMS + 1] {
        let error = connect("127.0.0.1", 1, &Trust::Plain, streams, Rails::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

#[tokio::test]
async fn further_streams_go_by_their_rails_and_what_leads_nowhere_is_done_without() {
    let server = Server::start(&SERVED).await;
    // The rails are relays, which count their connections.
    let (one, other) = (Relay::to(server.address).await, Relay::to(server.address).await);
    let text = format!("{},127.0.0.1@{},127.0.0.1:1", one.address, other.address);
    let client = Client::connect_by(server.address, &server.trust, 1, text.parse().unwrap()).await;
    joined(&server, &client, 3).await;
    let come = |relay: &Relay| relay.ways.lock().unwrap().len();
    assert_eq!((come(&one), come(&other)), (1, 1));
    client.receive(24 * ITEM_BYTES, true).await.unwrap();
    // One of the paths is paused, and the others carry its share.
    one.set(0, Way::Held);
    let urgent = client.fetch(16_000, Priority::URGENT);
    tokio::time::timeout(SOON, urgent).await.expect("urgent answers come").unwrap();
    one.set(0, Way::Open);
    client.receive(24 * ITEM_BYTES, true).await.unwrap();
    other.set(0, Way::Cut);
    until("the link to end", || client.handle.ended().is_some()).await;
}

#[tokio::test]
async fn a_sender_beside_its_card_brings_the_same_bytes() {
    let card = Card { addresses: vec![[127, 0, 0, 1].into()], near: Units::from([0]) };
    let topology = Topology { cores: vec![Units::from([0]), Units::from([1])], cards: vec![card] };
    let server = Server::with(&SERVED, StreamRegistry::on(topology)).await;
    let client = Client::connect(server.address, &server.trust, 3).await;
    joined(&server, &client, 3).await;
    assert_eq!(
        server.registry.pinned_senders().taken(),
        1,
        "one on the core beside the card, one wherever it may"
    );
    client.receive(24 * ITEM_BYTES + 3, true).await.unwrap();
    drop(client);
    until("the core to be given back", || server.registry.pinned_senders().taken() == 0).await;
}

#[tokio::test]
async fn a_stream_that_nobody_reads_ends_with_its_link() {
    let server = Server::start(&SERVED).await;
    let relay = Relay::to(server.address).await;
    let client = Client::connect(relay.address, &server.trust, 2).await;
    joined(&server, &client, 2).await;
    relay.set(1, Way::Held);
    let bytes = Bytes::copy_from_slice(&(64_u64 << 20).to_le_bytes());
    let _asked = client.handle.request("bulk", bytes, Urgency::of(Priority::NORMAL)).await.unwrap();
    // Data of the stream waits in the sockets, until they are full.
    let sent = || server.flow().statistics().sent_bytes;
    let mut before = 0;
    while before == 0 || sent() > before {
        before = sent();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(server.ends.lock().unwrap().is_empty());
    relay.set(0, Way::Cut);
    until("the end of the stream", || !server.ends.lock().unwrap().is_empty()).await;
}
