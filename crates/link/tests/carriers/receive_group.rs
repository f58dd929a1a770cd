//! Connections that share a receive rate, over real sockets: their total of bytes in flight, by counts.

use link::ReceiveGroup;
use tokio::time::Instant;

use super::*;

/// Receive rate, bytes per second.
const RATE: f64 = 4_194_304.0;
/// Bytes of bulk that all connections together transfer.
const TOTAL: u64 = 2 << 20;
/// Time for which missed turns are made up, seconds.
const BURST_SECS: f64 = 0.008;

async fn flood(operation: Arc<Operation>) {
    while operation.item(Bytes::new(), Bytes::from(vec![1; 1 << 20])).await.is_ok() {}
}

/// Creates a connection of `group` whose server always has more to send.
async fn flooded(group: &ReceiveGroup, kind: Kind, tasks: &mut JoinSet<()>) -> ClientHandle {
    let (ours, theirs) = links(kind).await;
    let (client, driver) = link::connect_among(group, ours, ClientConfig::default()).unwrap();
    tasks.spawn(driver);
    let (connection, driver) = link::serve(theirs, ServerConfig::default()).unwrap();
    tasks.spawn(driver);
    tasks.spawn(answer_all(connection, flood));
    client
}

#[tokio::test]
async fn connections_that_share_a_rate_never_hold_more_than_that_together() {
    let (began, group, mut tasks) = (Instant::now(), ReceiveGroup::new(RATE), JoinSet::new());
    let (mut clients, mut streams) = (Vec::new(), Vec::new());
    for kind in [Kind::Tls, Kind::Quic, Kind::Plain, Kind::WebSocket] {
        let client = flooded(&group, kind, &mut tasks).await;
        streams.push(client.request("all", Bytes::new(), Urgency::of(Priority::NORMAL)).await.unwrap());
        clients.push(client);
    }
    assert_eq!(group.connections(), 4);
    let at_first = group.most_held_bytes();
    let (mut taken, mut most) = (0, at_first);
    while taken < TOTAL {
        for stream in &mut streams {
            if let Reply::Piece { bytes, .. } = stream.next().await.unwrap().unwrap() {
                taken += bytes.len() as u64;
            }
            let arrived: u64 = clients.iter().map(|client| client.counts().bulk_bytes).sum();
            most = most.max(group.most_held_bytes());
            assert!(arrived - taken <= most, "{} of {most} bytes", arrived - taken);
            let by_rate = RATE * (began.elapsed().as_secs_f64() + BURST_SECS);
            assert!(
                arrived as f64 <= at_first as f64 + by_rate,
                "{arrived} bytes, {by_rate} of them in turns"
            );
        }
    }
    drop((clients, streams));
    while group.connections() > 0 {
        tasks.join_next().await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_its_turn_is_woken_when_it_comes() {
    let (group, mut tasks) = (ReceiveGroup::new(RATE), JoinSet::new());
    let began = Instant::now();
    let client = flooded(&group, Kind::Local, &mut tasks).await;
    let mut stream = client.request("all", Bytes::new(), Urgency::of(Priority::NORMAL)).await.unwrap();
    let mut taken = 0;
    while taken < 4 << 22 {
        if let Reply::Piece { bytes, .. } = stream.next().await.unwrap().unwrap() {
            taken += bytes.len() as u64;
        }
    }
    // In virtual time no task is woken late.
    let secs = began.elapsed().as_secs_f64();
    assert!((3.9..4.2).contains(&secs), "{secs}");
}
