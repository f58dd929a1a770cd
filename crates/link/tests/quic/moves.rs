//! A client whose address changes under it, in the midst of a transfer, goes on.

use super::*;

/// Packets of the server until the client moves, and those that are lost after that: more than the server keeps on its way, so
/// that it sends nothing more before somebody tells it the new address.
const UNTIL_MOVE: u64 = 1_500;
const STAYS_FOR: u64 = 4_000;

/// A path to `server`; each time so many packets have come from there, the client has the next of `addresses`, and what comes
/// for the last one is lost. Gives the path's address.
async fn moving(server: SocketAddr, addresses: &'static [&str], tasks: &mut JoinSet<()>) -> SocketAddr {
    let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut far = UdpSocket::bind((addresses[0], 0)).await.unwrap();
    let address = near.local_addr().unwrap();
    tasks.spawn(async move {
        let (mut out, mut back) = (vec![0; DATAGRAM_BYTES], vec![0; DATAGRAM_BYTES]);
        let (mut client, mut number, mut moved) = (None, 0, 0);
        // Kept open, so that nobody says that it is gone.
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
        // To another host's address, to another port of it, and twice more.
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
        // Nobody is sent a train because somebody else says that it is there.
        assert_eq!(flow.peer(), first);
        let refused = flow.prober().unwrap().send(1, 17).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
    });
}
