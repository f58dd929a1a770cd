//! Client with a session ticket: it sends requests in its first packets and is answered at once. If the
//! server has changed meanwhile, the client detects it, and requests are repeated transparently.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use super::*;

/// Observer on the path, who records packets and decides which of them pass.
#[derive(Clone)]
struct Gate {
    /// Address that packets are sent to; only answers from there are passed on, to the client that sent last.
    server: watch::Sender<SocketAddr>,
    /// True when packets of the server get through.
    is_open: watch::Sender<bool>,
    from_client: Arc<AtomicU64>,
    from_server: Arc<AtomicU64>,
    /// Packets that clients sent while the gate was closed.
    overheard: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// Creates a path whose other end can be exchanged; returns it with its address.
async fn gate(server: SocketAddr, tasks: &mut JoinSet<()>) -> (Gate, SocketAddr) {
    let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = near.local_addr().unwrap();
    let gate = Gate {
        server: watch::channel(server).0,
        is_open: watch::channel(true).0,
        from_client: Arc::default(),
        from_server: Arc::default(),
        overheard: Arc::default(),
    };
    let seen = gate.clone();
    tasks.spawn(async move {
        let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (mut out, mut back) = (vec![0; DATAGRAM_BYTES], vec![0; DATAGRAM_BYTES]);
        let mut client = None;
        let mut is_open = seen.is_open.subscribe();
        let mut held = VecDeque::new();
        loop {
            tokio::select! {
                Ok((size, from)) = near.recv_from(&mut out) => {
                    client = Some(from);
                    seen.from_client.fetch_add(size as u64, Ordering::Relaxed);
                    if !*seen.is_open.borrow() {
                        seen.overheard.lock().unwrap().push(out[..size].to_vec());
                    }
                    let server = *seen.server.borrow();
                    far.send_to(&out[..size], server).await.unwrap();
                }
                Ok((size, from)) = far.recv_from(&mut back) => {
                    seen.from_server.fetch_add(size as u64, Ordering::Relaxed);
                    // Late packets of a closed server are not for the next client.
                    if size <= MAX_PACKET_BYTES && from == *seen.server.borrow() {
                        held.push_back(back[..size].to_vec());
                    }
                }
                changed = is_open.changed() => changed.unwrap(),
            }
            while *is_open.borrow_and_update()
                && let (Some(client), Some(packet)) = (client, held.pop_front())
            {
                near.send_to(&packet, client).await.unwrap();
            }
        }
    });
    (gate, address)
}

/// Serves all clients; counts the operations as they arrive.
fn listen(
    identity: &Identity,
    options: quic::EndpointOptions,
    tasks: &mut JoinSet<()>,
) -> (SocketAddr, watch::Receiver<u64>) {
    let listener = quic::Listener::bind("127.0.0.1:0".parse().unwrap(), identity, options).unwrap();
    let address = listener.address().unwrap();
    let (asked, asking) = watch::channel(0);
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Some(incoming) = listener.accept().await {
            let asked = asked.clone();
            connections.spawn(async move {
                let Ok(link) = incoming.establish().await else { return };
                let flow = link.flow().unwrap();
                let (connection, driver) = link::serve(link, ServerConfig::default()).unwrap();
                let mut tasks = JoinSet::new();
                tasks.spawn(driver);
                if connection.hello().await.is_err() {
                    return;
                }
                connection.accept();
                while let Some(operation) = connection.next().await {
                    // The upper half counts operations that arrived before the client was proven.
                    asked.send_modify(|asked| *asked += if flow.is_proven() { 1 } else { 1 << 32 });
                    tasks.spawn(async move {
                        let size = u64::from_le_bytes(operation.parameters()[..].try_into().unwrap());
                        for at in (0..size).step_by(1 << 20) {
                            let bulk = pattern(at, (at + (1 << 20)).min(size));
                            if operation.item(Bytes::copy_from_slice(&at.to_le_bytes()), bulk).await.is_err()
                            {
                                return;
                            }
                        }
                        operation.done();
                    });
                }
            });
        }
    });
    (address, asking)
}

/// Options of a server that accepts early data.
fn hearing(options: quic::EndpointOptions) -> quic::EndpointOptions {
    quic::EndpointOptions { start: quic::Start::AtOnce, ..options }
}

struct Near {
    client: ClientHandle,
    flow: Arc<dyn Flow>,
    tasks: JoinSet<()>,
}

async fn connect(address: SocketAddr, identity: &Identity, start: quic::Start) -> wire::Result<Near> {
    let options = quic::EndpointOptions { window_bytes: 64 << 20, start, ..quic::EndpointOptions::default() };
    let trust = Trust::Fingerprint(identity.fingerprint());
    let link = quic::connect("127.0.0.1", address.port(), &trust, &options).await?;
    let flow = link.flow().unwrap();
    let config = ClientConfig { window_bytes: options.window_bytes, ..ClientConfig::default() };
    let (client, driver) = link::connect(link, config)?;
    let mut tasks = JoinSet::new();
    tasks.spawn(driver);
    Ok(Near { client, flow, tasks })
}

fn identity() -> Identity {
    Identity::self_signed(&["localhost".into()]).unwrap()
}

const EARLY: u64 = 1 << 32;

#[test]
fn a_client_that_was_there_is_answered_before_it_has_heard_anything() {
    run(async {
        let (mut tasks, identity) = (JoinSet::new(), identity());
        let (server, mut asked) = listen(&identity, hearing(rate("rate=100Mb/s")), &mut tasks);
        let (gate, address) = gate(server, &mut tasks).await;
        let first = connect(address, &identity, quic::Start::AtOnce).await.unwrap();
        assert!(first.flow.is_proven(), "nothing is known of the server yet");
        fetch(&first.client, 2_000_000).await;
        drop(first);

        gate.is_open.send_replace(false);
        let before = (gate.from_client.load(Ordering::Relaxed), gate.from_server.load(Ordering::Relaxed));
        let again = connect(address, &identity, quic::Start::AtOnce).await.unwrap();
        assert!(!again.flow.is_proven());
        assert_eq!(again.flow.statistics().rtt, None, "a guess is not a measurement");
        let fetching = fetch(&again.client, 2_000_000);
        let watching = async {
            asked.wait_for(|asked| *asked >= EARLY).await.unwrap();
            // A token has validated the client's address, so more than three times the received bytes are
            // sent there.
            loop {
                let said = gate.from_client.load(Ordering::Relaxed) - before.0;
                let answered = gate.from_server.load(Ordering::Relaxed) - before.1;
                if answered > 10 * said {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            gate.is_open.send_replace(true);
        };
        tokio::join!(fetching, watching);
        assert!(again.flow.proven().await && again.flow.is_proven());
        assert!(again.flow.statistics().rtt.is_some());
        assert_eq!(*asked.borrow(), EARLY + 1, "asked once each");
        drop(again);

        // An attacker who overheard the first packets repeats them from another address.
        let overheard = std::mem::take(&mut *gate.overheard.lock().unwrap());
        assert!(!overheard.is_empty());
        let attacker = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        for packet in overheard {
            attacker.send_to(&packet, server).await.unwrap();
        }
        let after = connect(address, &identity, quic::Start::Proven).await.unwrap();
        fetch(&after.client, 2_000_000).await;
        assert_eq!(*asked.borrow(), EARLY + 2, "nothing is done for him");
    });
}

#[test]
fn both_sides_wait_for_the_handshake_if_one_prefers_it() {
    use quic::Start::{AtOnce, Proven};
    run(async {
        let (mut tasks, identity) = (JoinSet::new(), identity());
        for (hears, start) in [(AtOnce, Proven), (Proven, AtOnce), (Proven, Proven)] {
            let options = quic::EndpointOptions { start: hears, ..quic::EndpointOptions::default() };
            let (server, asked) = listen(&identity, options, &mut tasks);
            for _ in 0..3 {
                let near = connect(server, &identity, start).await.unwrap();
                assert!(near.flow.is_proven(), "{hears:?} {start:?}");
                fetch(&near.client, 100_000).await;
            }
            assert_eq!(*asked.borrow(), 3);
        }
    });
}

#[test]
fn early_data_rejected_by_a_restarted_server_is_sent_again() {
    run(async {
        let (mut tasks, identity) = (JoinSet::new(), identity());
        let (server, _) = listen(&identity, hearing(quic::EndpointOptions::default()), &mut tasks);
        let (gate, address) = gate(server, &mut tasks).await;
        fetch(&connect(address, &identity, quic::Start::AtOnce).await.unwrap().client, 100_000).await;

        let (server, asked) = listen(&identity, hearing(quic::EndpointOptions::default()), &mut tasks);
        gate.server.send_replace(server);
        gate.is_open.send_replace(false);
        let again = connect(address, &identity, quic::Start::AtOnce).await.unwrap();
        assert!(!again.flow.is_proven(), "it tries");
        // More data than may be sent before the end of the handshake.
        let parameters = Bytes::from(vec![0; 8]);
        let many: Vec<_> = (0..10_000)
            .map(|_| {
                again.client.try_request("bulk", parameters.clone(), Urgency::of(Priority::NORMAL)).unwrap()
            })
            .collect();
        gate.is_open.send_replace(true);
        fetch(&again.client, 3_000_000).await;
        for mut one in many {
            assert!(one.next().await.is_none(), "an answer without items");
        }
        assert!(again.flow.is_proven());
        assert_eq!(*asked.borrow(), 10_001, "each once, and none before it was proven who asks");
    });
}

#[test]
fn a_ticket_is_of_no_use_at_a_server_that_is_somebody_else() {
    run(async {
        let (mut tasks, identity, other) = (JoinSet::new(), identity(), identity());
        let (server, _) = listen(&identity, hearing(quic::EndpointOptions::default()), &mut tasks);
        let (gate, address) = gate(server, &mut tasks).await;
        fetch(&connect(address, &identity, quic::Start::AtOnce).await.unwrap().client, 100_000).await;

        let (server, asked) = listen(&other, hearing(quic::EndpointOptions::default()), &mut tasks);
        gate.server.send_replace(server);
        let near = connect(address, &identity, quic::Start::AtOnce).await.unwrap();
        let error = near.client.welcomed().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(error.to_string().contains(&other.fingerprint().to_string()), "{error}");
        assert!(!near.flow.proven().await);
        let error = connect(address, &identity, quic::Start::AtOnce).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "the next one waits for the handshake: {error}");
        assert_eq!(*asked.borrow(), 0);
        fetch(&connect(address, &other, quic::Start::AtOnce).await.unwrap().client, 100_000).await;
    });
}

#[test]
fn a_server_that_is_gone_is_noticed_and_the_next_connection_begins_as_at_first() {
    run(async {
        let (mut tasks, identity) = (JoinSet::new(), identity());
        let (server, _) = listen(&identity, hearing(quic::EndpointOptions::default()), &mut tasks);
        let (gate, address) = gate(server, &mut tasks).await;
        fetch(&connect(address, &identity, quic::Start::AtOnce).await.unwrap().client, 100_000).await;
        gate.server.send_replace("127.0.0.1:9".parse().unwrap());
        let mut near = connect(address, &identity, quic::Start::AtOnce).await.unwrap();
        let error = near.client.welcomed().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        while near.tasks.join_next().await.is_some() {}
        drop(near);
        gate.server.send_replace(server);
        let near = connect(address, &identity, quic::Start::AtOnce).await.unwrap();
        assert!(near.flow.is_proven(), "it waited for the handshake");
        fetch(&near.client, 100_000).await;
    });
}
