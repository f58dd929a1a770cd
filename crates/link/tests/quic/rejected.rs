//! Packets that a server's port rejects are counted, and the connections that they were addressed to continue.

use std::sync::atomic::AtomicU64;

use quic::Rejected;

use super::*;

/// Datagram larger than a server accepts, and than a jumbo frame of Ethernet.
const OVERSIZED_BYTES: usize = 9_500;
/// Packets of the client that are not attacked: those of the handshake have keys that are soon discarded.
const LEFT_ALONE: u64 = 20;
/// Connection ID, bytes after the first byte of a packet.
const NAME: std::ops::Range<usize> = 1..9;

/// Counts of packets that an attacker on the path sent.
#[derive(Default)]
struct Sent {
    each: AtomicU64,
}

/// Creates a path on which an attacker repeats each packet of the client, also with a flipped bit and with
/// another connection ID, and sends oversized datagrams and packets of unexpected trains.
async fn attacked(server: SocketAddr, sent: Arc<Sent>, tasks: &mut JoinSet<()>) -> SocketAddr {
    let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = near.local_addr().unwrap();
    tasks.spawn(async move {
        let (mut out, mut back) = (vec![0; DATAGRAM_BYTES], vec![0; DATAGRAM_BYTES]);
        let (mut client, mut number) = (None, 0);
        loop {
            tokio::select! {
                Ok((size, from)) = near.recv_from(&mut out) => {
                    client = Some(from);
                    number += 1;
                    let packet = &out[..size];
                    far.send_to(packet, server).await.unwrap();
                    let is_short = packet[0] & 0x80 == 0;
                    if number <= LEFT_ALONE || !is_short {
                        continue;
                    }
                    let mut forged = packet.to_vec();
                    *forged.last_mut().unwrap() ^= 1;
                    let mut strange = packet.to_vec();
                    strange[NAME].iter_mut().for_each(|byte| *byte ^= 0x5a);
                    for packet in [packet.to_vec(), forged, strange, vec![0x40; OVERSIZED_BYTES], vec![0; 100]] {
                        far.send_to(&packet, server).await.unwrap();
                    }
                    sent.each.fetch_add(1, Ordering::Relaxed);
                }
                Ok(size) = far.recv(&mut back) => {
                    if let Some(client) = client.filter(|_| size <= MAX_PACKET_BYTES) {
                        near.send_to(&back[..size], client).await.unwrap();
                    }
                }
            }
        }
    });
    address
}

#[test]
fn replayed_forged_strange_and_oversized_packets_are_counted_and_the_connection_goes_on() {
    run(async {
        let identity = Identity::self_signed(&["localhost".into()]).unwrap();
        let options = rate("rate=200Mb/s");
        let listener = quic::Listener::bind("127.0.0.1:0".parse().unwrap(), &identity, options).unwrap();
        let (mut tasks, sent, rejecting) = (JoinSet::new(), Arc::<Sent>::default(), listener.rejecting());
        let address = listener.address().unwrap();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Some(incoming) = listener.accept().await {
                connections.spawn(async move { answer(incoming.establish().await.unwrap()).await });
            }
        });
        let attacked = attacked(address, Arc::clone(&sent), &mut tasks).await;
        for (address, is_attacked) in [(address, false), (attacked, true)] {
            let options =
                quic::EndpointOptions { window_bytes: 64 << 20, ..quic::EndpointOptions::default() };
            let trust = Trust::Fingerprint(identity.fingerprint());
            let link = quic::connect("127.0.0.1", address.port(), &trust, &options).await.unwrap();
            let config = ClientConfig { window_bytes: options.window_bytes, ..ClientConfig::default() };
            let (client, driver) = link::connect(link, config).unwrap();
            tasks.spawn(driver);
            fetch(&client, 8_000_000).await;
            let found = rejecting.so_far();
            if !is_attacked {
                assert_eq!(found, Rejected::default(), "nothing was wrong with it");
                continue;
            }
            let each = sent.each.load(Ordering::Relaxed);
            let Rejected { unknown, oversized, unauthenticated, replayed, stray } = found;
            assert!(each > 50, "the attacker had something to do: {each}");
            for (what, count) in [
                ("unknown", unknown),
                ("oversized", oversized),
                ("unauthenticated", unauthenticated),
                ("replayed", replayed),
                ("stray", stray),
            ] {
                // The socket of a busy host may have lost some of them.
                assert!(count > each / 2 && count <= each, "{what}: {count} of {each}, {found:?}");
            }
        }
    });
}
