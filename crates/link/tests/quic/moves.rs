//! Client whose address changes during a transfer, which continues.

use super::*;

/// Packets of the server until the client moves, and packets that are lost after that: more than the server
/// keeps in flight, so that it sends nothing until it learns the new address.
const UNTIL_MOVE: u64 = 1_500;
const STAYS_FOR: u64 = 4_000;

/// Creates a path to `server`; after each such number of packets from there, the client gets the next of
/// `addresses`, and packets to the last one are lost. Returns the path's address.
async fn moving(server: SocketAddr, addresses: &'static [&str], tasks: &mut JoinSet<()>) -> SocketAddr {
    let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut far = UdpSocket::bind((addresses[0], 0)).await.unwrap();
    let address = near.local_addr().unwrap();
    tasks.spawn(async move {
        let (mut out, mut back) = (vec![0; DATAGRAM_BYTES], vec![0; DATAGRAM_BYTES]);
        let (mut client, mut number, mut moved) = (None, 0, 0);
        // Kept open, so that no error reports the closed port.
        let mut left = Vec::new();
        loop {
            tokio::select! {
                Ok((size, from)) = near.recv_from(&mut out) => {
                    client = Some(from);
                    far.send_to(&out[..size], server).await.unwrap();
                }
                Ok(size) = far.recv(&mut back) => {
                    number += 1;
                    if let Some(client) = client.filter(|_| size <= MAX_PACKET_BYTES) {
                        near.send_to(&back[..size], client).await.unwrap();
                    }
                    if number == UNTIL_MOVE + moved * STAYS_FOR && usize::try_from(moved).unwrap() + 1 < addresses.len() {
                        moved += 1;
                        let next = UdpSocket::bind((addresses[usize::try_from(moved).unwrap()], 0)).await.unwrap();
                        left.push(std::mem::replace(&mut far, next));
                    }
                }
            }
        }
    });
    address
}

#[test]
fn a_client_that_moves_gets_every_byte() {
    run(async {
        let identity = Identity::self_signed(&["localhost".into()]).unwrap();
        let listener = quic::Listener::bind("127.0.0.1:0".parse().unwrap(), &identity, rate("auto")).unwrap();
        let mut tasks = JoinSet::new();
        let address = listener.address().unwrap();
        let (tell, told) = tokio::sync::oneshot::channel();
        tasks.spawn(async move {
            let link = listener.accept().await.unwrap().establish().await.unwrap();
            tell.send(link.flow().unwrap()).ok().unwrap();
            answer(link).await;
        });
        // Moves to another address, to another port of it, and twice more.
        let addresses = &["127.0.0.1", "127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.1"];
        let path = moving(address, addresses, &mut tasks).await;
        let options = quic::EndpointOptions { window_bytes: 64 << 20, ..quic::EndpointOptions::default() };
        let trust = Trust::Fingerprint(identity.fingerprint());
        let link = quic::connect("127.0.0.1", path.port(), &trust, &options).await.unwrap();
        let config = ClientConfig { window_bytes: options.window_bytes, ..ClientConfig::default() };
        let (client, driver) = link::connect(link, config).unwrap();
        tasks.spawn(driver);
        let flow = told.await.unwrap();
        let first = flow.peer();
        fetch(&client, 40_000_000).await;
        // No train is sent to an address that the peer only claims.
        assert_eq!(flow.peer(), first);
        let refused = flow.prober().unwrap().send(1, 17).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
    });
}
