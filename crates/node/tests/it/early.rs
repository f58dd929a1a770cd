//! Requests before the end of the handshake (0-RTT), which may be replayed packets: the server only executes operations
//! that read, until the client is authenticated.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use array::{ErrorKind, Priority, Result, Urgency};
use bytes::Bytes;
use link::{ClientHandle, Trust, quic};
use node::operations::of_data_server;
use server::connections::Limits;
use server::ops::{BeginOutcome, Handler, OperationCall};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::JoinSet;
use wire::ClientConfig;

use crate::common::Served;

const WAVES: &str = "synthetic:waves?shape=16,16,16&dtype=u8";
const DATAGRAM_BYTES: usize = 65_535;

/// Handler that counts its calls.
struct CountingHandler {
    name: &'static str,
    only_reads: bool,
    begun: Arc<AtomicU64>,
}

impl Handler for CountingHandler {
    type Work = ();

    fn name(&self) -> &'static str {
        self.name
    }

    fn begin(&self, _: Bytes) -> Result<BeginOutcome<()>> {
        let count = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(BeginOutcome::Answered(count.to_string().into()))
    }

    fn only_reads(&self) -> bool {
        self.only_reads
    }

    async fn run(&self, (): (), _: &OperationCall) -> Result<()> {
        Ok(())
    }
}

/// Starts a relay to `server` that holds back packets from the server while it is closed.
async fn gated_relay(
    server: SocketAddr,
    is_open: watch::Receiver<bool>,
    tasks: &mut JoinSet<()>,
) -> SocketAddr {
    let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = near.local_addr().unwrap();
    tasks.spawn(async move {
        let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (mut out, mut back) = (vec![0; DATAGRAM_BYTES], vec![0; DATAGRAM_BYTES]);
        let mut client = None;
        let mut is_open = is_open;
        loop {
            let opened = *is_open.borrow_and_update();
            tokio::select! {
                Ok((size, from)) = near.recv_from(&mut out) => {
                    client = Some(from);
                    far.send_to(&out[..size], server).await.unwrap();
                }
                Ok(size) = far.recv(&mut back), if opened => {
                    near.send_to(&back[..size], client.unwrap()).await.unwrap();
                }
                changed = is_open.changed() => changed.unwrap(),
            }
        }
    });
    address
}

async fn connect(address: SocketAddr, served: &Served, tasks: &mut JoinSet<()>) -> (bool, ClientHandle) {
    let url = served.url();
    let trust = Trust::Fingerprint(url.fingerprint.as_deref().unwrap().parse().unwrap());
    let options = quic::EndpointOptions {
        window_bytes: 8 << 20,
        start: quic::Start::AtOnce,
        ..quic::EndpointOptions::default()
    };
    let link = quic::connect("127.0.0.1", address.port(), &trust, &options).await.unwrap();
    let is_proven = link.flow().unwrap().is_proven();
    let config = ClientConfig { token: url.token.clone().unwrap(), ..ClientConfig::default() };
    let (client, driver) = link::connect(link, config).unwrap();
    tasks.spawn(driver);
    (is_proven, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_that_do_more_than_read_wait_for_the_end_of_the_handshake() {
    let (look, act) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let mut registry = of_data_server();
    registry.add(CountingHandler { name: "look", only_reads: true, begun: Arc::clone(&look) });
    registry.add(CountingHandler { name: "act", only_reads: false, begun: Arc::clone(&act) });
    let served = Served::with(&[WAVES], registry, Limits::default()).await;
    let (opening, is_open) = watch::channel(true);
    let mut tasks = JoinSet::new();
    let address = gated_relay(served.url().authority().parse().unwrap(), is_open, &mut tasks).await;
    let ask = |client: ClientHandle, name: &'static str| async move {
        client.call(name, Bytes::new(), Urgency::of(Priority::NORMAL)).await.unwrap().body
    };
    let (is_proven, first) = connect(address, &served, &mut tasks).await;
    assert!(is_proven && ask(first.clone(), "look").await == "1" && ask(first, "act").await == "1");

    opening.send_replace(false);
    let (is_proven, again) = connect(address, &served, &mut tasks).await;
    assert!(!is_proven);
    let urgency = Urgency::of(Priority::NORMAL);
    let acting = again.request("act", Bytes::new(), urgency).await.unwrap();
    let looking = again.request("look", Bytes::new(), urgency).await.unwrap();
    while look.load(Ordering::SeqCst) == 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(act.load(Ordering::SeqCst), 1, "it was requested first, and waits");
    opening.send_replace(true);
    assert_eq!(
        (looking.only_item().await.unwrap().body, acting.only_item().await.unwrap().body),
        ("2".into(), "2".into())
    );
    drop(tasks);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_count_as_members_only_after_the_handshake() {
    let look = Arc::<AtomicU64>::default();
    let mut registry = of_data_server();
    registry.add(CountingHandler { name: "look", only_reads: true, begun: Arc::clone(&look) });
    let served = Served::with(&[WAVES], registry, Limits { most_members: 1, ..Limits::default() }).await;
    let (opening, is_open) = watch::channel(true);
    let mut tasks = JoinSet::new();
    let server = served.url().authority().parse().unwrap();
    let address = gated_relay(server, is_open, &mut tasks).await;
    let urgency = Urgency::of(Priority::NORMAL);
    let (_, first) = connect(address, &served, &mut tasks).await;
    first.call("look", Bytes::new(), urgency).await.unwrap();
    drop(first);
    // There is room for another member once the server has noticed that the first one left.
    let member = loop {
        let (_, member) = connect(server, &served, &mut tasks).await;
        if member.welcomed().await.is_ok() {
            break member;
        }
    };

    opening.send_replace(false);
    let (is_proven, again) = connect(address, &served, &mut tasks).await;
    assert!(!is_proven);
    let looking = again.request("look", Bytes::new(), urgency).await.unwrap();
    while look.load(Ordering::SeqCst) == 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(again.ended().is_none());
    opening.send_replace(true);
    assert_eq!(again.closed().await.kind(), ErrorKind::Busy);
    drop(looking);
    assert_eq!(member.call("look", Bytes::new(), urgency).await.unwrap().body, "3");
}
