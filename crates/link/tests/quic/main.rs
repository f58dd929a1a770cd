//! QUIC beyond the common suite of carriers: packets on a path that loses, duplicates, reorders and forges.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod early;
mod lossy;
mod moves;
mod rejected;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use corridor_link as link;
use link::{Choice, ClientHandle, Driver, Flow, Identity, Link, Reply, Trust, quic};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::JoinSet;
use wire::{ClientConfig, ErrorKind, Priority, ServerConfig, Urgency};

/// Largest datagram, bytes.
const DATAGRAM_BYTES: usize = 65_535;

/// Largest packet of the path, as on Ethernet, UDP payload in bytes.
const MAX_PACKET_BYTES: usize = 1_472;

/// Treatment of the packets from the server by a path, by the packet's number.
type Mischief = fn(u64) -> What;

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Pass,
    Drop,
    Twice,
    /// After the next packet.
    Late,
    /// With one bit flipped, and once more unchanged.
    Forged,
}

/// Creates a path to `server`, on which packets from there take `delay`; returns its address. Client and
/// server see each other through it only.
async fn path(
    server: SocketAddr,
    mischief: Mischief,
    delay: Duration,
    tasks: &mut JoinSet<()>,
) -> SocketAddr {
    let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = near.local_addr().unwrap();
    tasks.spawn(async move {
        let (mut out, mut back) = (vec![0; DATAGRAM_BYTES], vec![0; DATAGRAM_BYTES]);
        let (mut client, mut number, mut late) = (None, 0, VecDeque::new());
        let mut under_way: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
        loop {
            let next = under_way.front().map_or_else(|| now() + Duration::from_secs(1), |(at, _)| *at);
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {
                    let Some(client) = client else { continue };
                    while under_way.front().is_some_and(|(at, _)| *at <= now()) {
                        let (_, packet) = under_way.pop_front().unwrap();
                        near.send_to(&packet, client).await.unwrap();
                    }
                }
                Ok((size, from)) = near.recv_from(&mut out) => {
                    client = Some(from);
                    far.send_to(&out[..size], server).await.unwrap();
                }
                Ok(size) = far.recv(&mut back) => {
                    if size > MAX_PACKET_BYTES {
                        continue;
                    }
                    number += 1;
                    let packet = back[..size].to_vec();
                    let sent = match mischief(number) {
                        What::Pass => vec![packet],
                        What::Drop => vec![],
                        What::Twice => vec![packet.clone(), packet],
                        What::Late => {
                            late.push_back(packet);
                            vec![]
                        }
                        What::Forged => {
                            let mut forged = packet.clone();
                            *forged.last_mut().unwrap() ^= 1;
                            vec![forged, packet, vec![0x40; 9_000], vec![0xff; 3]]
                        }
                    };
                    let overtaken = if sent.is_empty() { None } else { late.pop_front() };
                    let arrives = now() + delay;
                    under_way.extend(sent.into_iter().chain(overtaken).map(|packet| (arrives, packet)));
                }
            }
        }
    });
    address
}

#[expect(clippy::disallowed_methods, reason = "a path takes time")]
fn now() -> Instant {
    Instant::now()
}

struct Pair {
    client: ClientHandle,
    /// Flow of the server.
    flow: Arc<dyn Flow>,
    ours: Arc<dyn Flow>,
    /// The client reads while this is true.
    reads: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

/// Creates a client and a server that answers `bulk` with that many bytes, with a path between them.
async fn pair(mischief: Mischief, server: quic::EndpointOptions) -> Pair {
    pair_far(mischief, server, Duration::ZERO).await
}

/// Creates a pair whose packets from the server take `delay`.
async fn pair_far(mischief: Mischief, server: quic::EndpointOptions, delay: Duration) -> Pair {
    let client = quic::EndpointOptions { window_bytes: 64 << 20, ..quic::EndpointOptions::default() };
    pair_of(mischief, server, client, delay).await
}

/// Creates a pair whose client connects with `options`.
async fn pair_of(
    mischief: Mischief,
    server: quic::EndpointOptions,
    options: quic::EndpointOptions,
    delay: Duration,
) -> Pair {
    let identity = Identity::self_signed(&["localhost".into()]).unwrap();
    let listener = quic::Listener::bind("127.0.0.1:0".parse().unwrap(), &identity, server).unwrap();
    let mut tasks = JoinSet::new();
    let address = path(listener.address().unwrap(), mischief, delay, &mut tasks).await;
    let trust = Trust::Fingerprint(identity.fingerprint());
    let connect = async { quic::connect("127.0.0.1", address.port(), &trust, &options).await.unwrap() };
    let accept = async { listener.accept().await.unwrap().establish().await.unwrap() };
    let (near, far) = tokio::join!(connect, accept);
    let (ours, flow) = (near.flow().unwrap(), far.flow().unwrap());
    tasks.spawn(async move { answer(far).await });
    let config = ClientConfig { window_bytes: options.window_bytes, ..ClientConfig::default() };
    let (client, driver) = link::connect(near, config).unwrap();
    let (reads, reading) = watch::channel(true);
    tasks.spawn(drive_while(reading, driver));
    client.welcomed().await.unwrap();
    Pair { client, flow, ours, reads, tasks }
}

async fn drive_while(mut reading: watch::Receiver<bool>, mut driver: Driver) {
    loop {
        if !*reading.borrow_and_update() {
            reading.changed().await.unwrap();
            continue;
        }
        tokio::select! {
            () = &mut driver => return,
            changed = reading.changed() => changed.unwrap(),
        }
    }
}

async fn answer(link: Link) {
    let (connection, driver) = link::serve(link, ServerConfig::default()).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(driver);
    connection.hello().await.unwrap();
    connection.accept();
    while let Some(operation) = connection.next().await {
        tasks.spawn(async move {
            let size = u64::from_le_bytes(operation.parameters()[..].try_into().unwrap());
            for at in (0..size).step_by(1 << 20) {
                let bulk = pattern(at, (at + (1 << 20)).min(size));
                operation.item(Bytes::copy_from_slice(&at.to_le_bytes()), bulk).await.unwrap();
            }
            operation.done();
        });
    }
}

/// Returns bytes `at..end` of an endless text.
fn pattern(at: u64, end: u64) -> Bytes {
    (at..end).map(|i| u8::try_from((i % 1_000_003) * 131 % 251).unwrap()).collect()
}

/// Requests `bytes` and compares every one.
async fn fetch(client: &ClientHandle, bytes: u64) {
    let parameters = Bytes::copy_from_slice(&bytes.to_le_bytes());
    let mut replies = client.request("bulk", parameters, Urgency::of(Priority::NORMAL)).await.unwrap();
    let (mut start, mut received) = (0, 0);
    while let Some(reply) = replies.next().await {
        match reply.unwrap() {
            Reply::Item { body, .. } => start = u64::from_le_bytes(body[..].try_into().unwrap()),
            Reply::Piece { offset, bytes, .. } => {
                let at = start + offset;
                assert!(bytes == pattern(at, at + bytes.len() as u64), "wrong bytes at {at}");
                received += bytes.len() as u64;
            }
        }
    }
    assert_eq!(received, bytes);
}

fn rate(text: &str) -> quic::EndpointOptions {
    quic::EndpointOptions { choice: text.parse().unwrap(), ..quic::EndpointOptions::default() }
}

/// Runs on two threads as a node would, with a limit.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let done = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), test).await });
    assert!(done.is_ok(), "took too long");
}

#[test]
fn every_byte_arrives_whatever_the_path_does() {
    let mischiefs: [(&str, Mischief); 4] = [
        ("loss", |n| if n > 20 && n % 50 == 0 { What::Drop } else { What::Pass }),
        ("replay", |n| if n % 3 == 0 { What::Twice } else { What::Pass }),
        ("reordering", |n| if n > 20 && n % 10 == 0 { What::Late } else { What::Pass }),
        ("forgery, oversize", |n| if n % 7 == 0 { What::Forged } else { What::Pass }),
    ];
    for (name, mischief) in mischiefs {
        run(async move {
            let pair = pair(mischief, rate("rate=200Mb/s")).await;
            fetch(&pair.client, 8_000_000).await;
            let (server, client) = (pair.flow.statistics(), pair.ours.statistics());
            assert!(server.sent_bytes > 8_000_000, "{name}: {server:?}");
            match name {
                "loss" => assert!(server.lost_bytes > 100 * 1200, "{name}: {server:?}"),
                // Duplicated and forged packets arrived and had no effect.
                "replay" => assert!(client.received_bytes > 10_000_000, "{name}: {client:?}"),
                "forgery, oversize" => assert!(client.received_bytes > 9_000_000, "{name}: {client:?}"),
                _ => {}
            }
            drop(pair.tasks);
        });
    }
}

#[test]
fn a_client_that_reads_late_beside_a_burst_of_losses_keeps_its_connection() {
    run(async {
        static BURST: AtomicBool = AtomicBool::new(false);
        let burst: Mischief =
            |n| if n % 2 == 0 && BURST.load(Ordering::Relaxed) { What::Drop } else { What::Pass };
        let pair = pair_far(burst, rate("rate=200Mb/s"), Duration::from_millis(400)).await;
        // Until the window is as large as the path: 10 MB, some 7,000 packets.
        fetch(&pair.client, 30_000_000).await;
        let before = pair.flow.statistics();
        tokio::join!(fetch(&pair.client, 20_000_000), async {
            // After the server has received the request.
            while pair.flow.statistics().sent_bytes < before.sent_bytes + 20_000 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            pair.reads.send(false).unwrap();
            BURST.store(true, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            BURST.store(false, Ordering::Relaxed);
            pair.reads.send(true).unwrap();
        });
        let after = pair.flow.statistics();
        assert!(after.lost_packets > before.lost_packets + 3_000, "{before:?} {after:?}");
    });
}

#[test]
fn small_operations_are_answered_beside_a_large_one_on_a_path_that_loses() {
    run(async {
        let loses: Mischief = |n| if n > 20 && n % 20 == 0 { What::Drop } else { What::Pass };
        let pair = pair(loses, rate("rate=50Mb/s")).await;
        let client = pair.client.clone();
        tokio::join!(fetch(&client, 6_000_000), async {
            for _ in 0..30 {
                fetch(&client, 20_000).await;
            }
        });
    });
}

#[test]
fn the_rate_holds_on_the_wire() {
    // If QUIC's stack stopped asking before each packet, these bytes would leave at once. A slow machine takes longer,
    // which is not wrong here.
    const BYTES: u64 = 4_000_000;
    run(async {
        let pair = pair(|_| What::Pass, rate("rate=80Mb/s")).await;
        let start = now();
        fetch(&pair.client, BYTES).await;
        let secs = start.elapsed().as_secs_f64();
        assert!(secs > 0.9 * BYTES as f64 / 10e6, "{BYTES} bytes at 10 MB/s left within {secs} s");
        let sent = pair.flow.statistics();
        // A millisecond's worth each: 10 kB, with a packet more or less.
        assert!(sent.batches > BYTES / 12_000, "{sent:?}");
    });
}

#[test]
fn the_operators_limit_and_the_clients_choice_hold() {
    const BYTES: u64 = 2_000_000;
    run(async {
        let server =
            quic::EndpointOptions { most_bytes_per_sec: Some(5e6), ..quic::EndpointOptions::default() };
        let pair = pair(|_| What::Pass, server).await;
        pair.flow.control("rate=1Gb/s".parse::<Choice>().unwrap()).unwrap();
        assert_eq!(pair.flow.statistics().rate_bytes_per_sec, Some(5e6));
        let start = now();
        fetch(&pair.client, BYTES).await;
        assert!(start.elapsed().as_secs_f64() > 0.9 * BYTES as f64 / 5e6);
        let error = pair.flow.control("udt".parse().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("measured by the receiver"), "{error}");
    });
}

#[test]
fn a_server_with_another_certificate_is_denied() {
    run(async {
        let other = Identity::self_signed(&["localhost".into()]).unwrap();
        let identity = Identity::self_signed(&["localhost".into()]).unwrap();
        let listener =
            quic::Listener::bind("127.0.0.1:0".parse().unwrap(), &identity, quic::EndpointOptions::default())
                .unwrap();
        let port = listener.address().unwrap().port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Some(incoming) = listener.accept().await {
                assert!(incoming.establish().await.is_err());
            }
        });
        let trust = Trust::Fingerprint(other.fingerprint());
        let error =
            quic::connect("127.0.0.1", port, &trust, &quic::EndpointOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(error.to_string().contains(&identity.fingerprint().to_string()), "{error}");
    });
}

/// Returns the error of the server when a client opens streams that begin with these bytes.
async fn refused(streams: &[&[u8]]) -> String {
    let identity = Identity::self_signed(&["localhost".into()]).unwrap();
    let listener =
        quic::Listener::bind("127.0.0.1:0".parse().unwrap(), &identity, quic::EndpointOptions::default())
            .unwrap();
    let mut tls = link::carrier::tls::client_config(&Trust::Fingerprint(identity.fingerprint())).unwrap();
    tls.alpn_protocols = vec![link::carrier::tls::ALPN_WIRE.to_vec()];
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
    let stranger = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let connecting = stranger
        .connect_with(quinn::ClientConfig::new(Arc::new(crypto)), listener.address().unwrap(), "localhost")
        .unwrap();
    let accept = async { listener.accept().await.unwrap().establish().await.unwrap() };
    let (near, far) = tokio::join!(connecting, accept);
    let near = near.unwrap();
    let mut open = Vec::new();
    for begun in streams {
        let mut stream = near.open_uni().await.unwrap();
        stream.write_all(begun).await.unwrap();
        if begun.len() < 5 {
            stream.finish().unwrap();
        }
        open.push(stream);
    }
    let (connection, driver) = link::serve(far, ServerConfig::default()).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(driver);
    connection.hello().await.unwrap_err().to_string()
}

#[test]
fn streams_without_a_valid_segment_end_the_connection_with_the_reason() {
    run(async {
        for (streams, reason) in [
            // A client has one lane; each segment of a lane arrives once; a stream begins with a segment
            // head.
            (&[&[1, 0, 0, 0, 0, 9][..]][..], "found one of lane 1"),
            (&[&[0, 0, 0, 0, 0, 9], &[0, 0, 0, 0, 0, 9]], "segment 0 again"),
            (&[&[0, 5, 0, 0, 0, 9], &[0, 5, 0, 0, 0, 9]], "segment 5 again"),
            (&[&[0, 0, 0]], "found the end of the stream"),
        ] {
            let error = refused(streams).await;
            assert!(error.contains(reason), "{reason}: {error}");
        }
    });
}
