//! Hostile peers, with a wrong identity, invalid messages or no messages: a clear error, and a working
//! server.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test stops at the first surprise"
)]

use std::time::Duration;

use bytes::Bytes;
use corridor_link as link;
use link::{Identity, ServerConnection, Trust, carrier::tcp, carrier::tls, carrier::ws};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use wire::{
    ClientConfig, Deframed, Deframer, Error, ErrorKind, Frame, Hello, ItemHead, OpId, Priority, ServerConfig,
    Urgency, Welcome, limits,
};

/// Creates a plain server on a port, with its side of the first connection.
async fn accept_one() -> (TcpStream, ServerConnection, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (accepted, peer) = listener.accept().await.unwrap();
    let (connection, driver) =
        link::serve(tcp::over(accepted, peer.to_string()), ServerConfig::default()).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(driver);
    (stream, connection, tasks)
}

async fn last_frame(stream: &mut TcpStream) -> Frame {
    let (mut deframer, mut last, mut all) = (Deframer::new(), None, Vec::new());
    stream.read_to_end(&mut all).await.unwrap();
    let mut rest = &all[..];
    while let Some(cut) = deframer.cut(&mut rest, limits::MAX_FRAME_BYTES).unwrap() {
        let Deframed::Frame(frame) = cut else { panic!("expected whole frames, found bulk") };
        last = Some(Frame::decode(frame).unwrap());
    }
    last.expect("a frame before the end")
}

fn hello() -> Vec<u8> {
    let hello = Frame::Hello(Hello {
        lowest_version: 1,
        highest_version: 1,
        capabilities: vec![],
        token: String::new(),
        credit_bytes: 0,
        program: "test".into(),
    });
    hello.encode().into_stream_parts().collect::<Vec<_>>().concat()
}

/// Checks the error that both sides see when a client sends these bytes.
async fn check(bytes: &[u8], kind: ErrorKind, said: &str) {
    let (mut stream, connection, mut tasks) = accept_one().await;
    stream.write_all(bytes).await.unwrap();
    let error = loop {
        match connection.hello().await {
            Ok(_) => connection.accept(),
            Err(error) => break error,
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(said), "{error}");
    match last_frame(&mut stream).await {
        Frame::Close { error } => assert!(error.to_string().contains(said), "{error}"),
        other => panic!("{other:?}"),
    }
    tasks.join_next().await.unwrap().unwrap();
    assert!(connection.next().await.is_none());
}

#[tokio::test]
async fn an_invalid_message_is_answered_with_the_reason() {
    let noise: Vec<u8> =
        (0..10_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8 | 0x40).collect();
    check(&noise, ErrorKind::TooLarge, "expected a frame of at most 8192 bytes").await;
    check(b"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n", ErrorKind::TooLarge, "expected a frame of at most")
        .await;
    check(&[5, 0, 0, 0, 0x07, 1, 2, 3, 4], ErrorKind::Corrupt, "nonce").await;
    check(&[5, 0, 0, 0, 0x04, 1, 2, 3, 4], ErrorKind::Corrupt, "expected hello, found Cancel").await;
    let too_long = (limits::MAX_FRAME_BYTES as u32 + 1).to_le_bytes();
    check(&[&hello()[..], &too_long].concat(), ErrorKind::TooLarge, "expected a frame of at most 1114112")
        .await;
    check(&[&hello()[..], &hello()].concat(), ErrorKind::Corrupt, "expected a frame of a client").await;
}

#[tokio::test]
async fn a_client_that_breaks_off_within_a_frame_is_unreachable() {
    let (mut stream, connection, mut tasks) = accept_one().await;
    stream.write_all(&hello()[..9]).await.unwrap();
    drop(stream);
    assert_eq!(connection.hello().await.unwrap_err().kind(), ErrorKind::Unreachable);
    tasks.join_next().await.unwrap().unwrap();
}

/// Long frames before the handshake are not even read, and requests only after it.
#[tokio::test]
async fn nothing_is_read_before_authentication() {
    let (mut stream, connection, _tasks) = accept_one().await;
    let request = Frame::Request(wire::OperationRequest {
        op: OpId(1),
        name: "list".into(),
        priority: Priority::NORMAL,
        deadline_ms: 0,
        parameters: vec![0; 1 << 20].into(),
    });
    stream.write_all(&hello()).await.unwrap();
    let flood = request.encode().into_stream_parts().collect::<Vec<_>>().concat();
    let mut sent = 0;
    while let Ok(written) = tokio::time::timeout(Duration::from_millis(200), stream.write(&flood)).await {
        sent += written.unwrap();
        assert!(sent < 64 << 20, "the server reads what it must not");
    }
    connection.hello().await.unwrap();
    connection.refuse(Error::new(ErrorKind::Denied, "expected a token"));
    assert!(connection.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_closed_after_the_handshake_timeout() {
    let (silent, theirs) = link::carrier::local::pair();
    let (connection, driver) = link::serve(theirs, ServerConfig::default()).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(driver);
    let before = tokio::time::Instant::now();
    assert_eq!(connection.hello().await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(before.elapsed().as_secs(), limits::HANDSHAKE_TIMEOUT.as_secs());
    // The client does not read the last messages either; the driver still ends.
    tasks.join_next().await.unwrap().unwrap();
    drop(silent);
}

/// A client whose application takes nothing for a while does not read, so its silence timer must not run.
#[tokio::test(start_paused = true)]
async fn an_application_that_lags_does_not_take_the_other_side_for_dead() {
    const ITEMS: usize = link::MAX_WAITING_REPLIES + link::OWN_REPLIES + 100;
    let (ours, theirs) = link::carrier::local::pair();
    let (client, driver) = link::connect(ours, ClientConfig::default()).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(driver);
    let (connection, driver) = link::serve(theirs, ServerConfig::default()).unwrap();
    tasks.spawn(driver);
    tasks.spawn(async move {
        connection.hello().await.unwrap();
        connection.accept();
        let operation = connection.next().await.unwrap();
        for _ in 0..ITEMS {
            operation.item(Bytes::new(), Bytes::new()).await.unwrap();
        }
        operation.done();
        while connection.next().await.is_some() {}
    });
    client.welcomed().await.unwrap();
    let mut answer = client.try_request("many", Bytes::new(), Urgency::of(Priority::NORMAL)).unwrap();
    tokio::time::sleep(10 * limits::DEAD_AFTER).await;
    let mut found = 0;
    while let Some(item) = answer.next_item().await {
        item.unwrap();
        found += 1;
    }
    assert_eq!(found, ITEMS);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_falls_silent_is_unreachable() {
    let (ours, theirs) = link::carrier::local::pair();
    let (client, driver) = link::connect(ours, ClientConfig::default()).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(driver);
    let (connection, mut server) = link::serve(theirs, ServerConfig::default()).unwrap();
    tokio::select! {
        () = &mut server => panic!("it ended"),
        done = async {
            connection.hello().await.unwrap();
            connection.accept();
            client.welcomed().await
        } => assert!(done.is_ok()),
    }
    // From here on the server is not driven, but its end of the carrier stays open.
    let mut stream = client.request("list", Bytes::new(), Urgency::of(Priority::NORMAL)).await.unwrap();
    let before = tokio::time::Instant::now();
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.retry()), (ErrorKind::Unreachable, wire::Retry::MayHelp));
    assert_eq!(before.elapsed().as_secs(), limits::DEAD_AFTER.as_secs());
    drop(server);
}

#[tokio::test]
async fn another_program_at_the_port_is_told_of() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.2p1\r\n").await.unwrap();
        drop(stream.read_to_end(&mut Vec::new()).await);
    });
    let pinned = Trust::Fingerprint(Identity::self_signed(&["localhost".into()]).unwrap().fingerprint());
    let error = tcp::connect("localhost", port, &pinned).await.unwrap_err();
    assert!(error.to_string().contains("found another program"), "{error}");
    assert_ne!(error.retry(), wire::Retry::MayHelp);
}

#[tokio::test]
async fn a_wrong_certificate_is_denied_with_both_fingerprints() {
    let [ours, other] =
        [(); 2].map(|()| Identity::self_signed(&["localhost".into(), "127.0.0.1".into()]).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = ours.server_config(&[tls::ALPN_WIRE, tls::ALPN_HTTP]).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            assert!(tls::accept(stream, config.clone()).await.is_err(), "the client went on");
        }
    });
    let pinned = Trust::Fingerprint(other.fingerprint());
    for error in [
        tcp::connect("localhost", port, &pinned).await.unwrap_err(),
        ws::connect("127.0.0.1", port, &pinned).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        let said = format!("to have the fingerprint {}, found {}", other.fingerprint(), ours.fingerprint());
        assert!(error.to_string().contains(&said), "{error}");
    }
    let error = tcp::connect("localhost", port, &Trust::System).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("a certificate that this machine trusts"), "{error}");
}

#[tokio::test]
async fn an_identity_survives_being_kept() {
    let made = Identity::self_signed(&["localhost".into()]).unwrap();
    let kept = Identity::from_pem(made.certificate_pem(), made.key_pem()).unwrap();
    assert_eq!(made.fingerprint(), kept.fingerprint());
    let text = made.fingerprint().to_string();
    assert_eq!(text.parse::<link::Fingerprint>().unwrap(), made.fingerprint());
    for wrong in ["", "sha256:", &text[1..], &text[..70], &format!("{}zz", &text[..69])] {
        assert_eq!(wrong.parse::<link::Fingerprint>().unwrap_err().kind(), ErrorKind::Invalid, "{wrong}");
    }
    let other = Identity::self_signed(&["localhost".into()]).unwrap();
    let error = Identity::from_pem(made.certificate_pem(), other.key_pem()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(Identity::from_pem("", made.key_pem()).is_err());
    assert!(Identity::from_pem(made.certificate_pem(), "").is_err());
}

#[tokio::test]
async fn a_port_without_a_listener_is_unreachable() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let error = tcp::connect("127.0.0.1", port, &Trust::Plain).await.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (ErrorKind::Unreachable, wire::Retry::MayHelp));
    assert!(error.to_string().starts_with(&format!("connecting to 127.0.0.1:{port}: ")), "{error}");
}

/// Returns the error of an operation that allows this much bulk in its answer, when a server sends these
/// items.
async fn answered_by(items: &[ItemHead], most_bulk_bytes: u64) -> Error {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    let (client, driver) = link::connect(tcp::over(stream, "test"), ClientConfig::default()).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(driver);
    let asked = client.request("list", Bytes::new(), Urgency::of(Priority::NORMAL)).await.unwrap();
    let welcome = Frame::Welcome(Welcome {
        version: 1,
        capabilities: vec![],
        program: "test".into(),
        most_operations: 16,
    });
    let frames = std::iter::once(welcome).chain(items.iter().cloned().map(Frame::Item));
    for frame in frames {
        let bytes = frame.encode().into_stream_parts().collect::<Vec<_>>().concat();
        server.write_all(&bytes).await.unwrap();
    }
    asked.with_bulk_up_to(most_bulk_bytes).only_item().await.unwrap_err()
}

#[tokio::test]
async fn a_server_cannot_make_a_client_keep_more_than_it_wants() {
    let item = |item, bulk_bytes| ItemHead {
        op: OpId(1),
        item,
        body: Bytes::from_static(b"body"),
        bulk_bytes,
        bulk_crc32c: 0,
    };
    let bulk = answered_by(&[item(0, 100)], 0).await;
    assert_eq!(bulk.kind(), ErrorKind::TooLarge, "none was wanted: {bulk}");
    let several = answered_by(&[item(0, 1 << 20), item(1, 1 << 20), item(2, 1)], 2 << 20).await;
    assert_eq!(several.kind(), ErrorKind::TooLarge, "each would be small enough: {several}");
    let second = answered_by(&[item(0, 0), item(1, 0)], 0).await;
    assert_eq!(second.kind(), ErrorKind::Corrupt, "{second}");
}

#[tokio::test(start_paused = true)]
async fn an_unauthenticated_client_cannot_make_a_server_buffer_a_large_message() {
    let (mut ours, theirs) = tokio::io::duplex(1 << 20);
    let link = ws::accepted(theirs, "test").await;
    let (_connection, driver) = link::serve(link, ServerConfig::default()).unwrap();
    let before = tokio::time::Instant::now();
    // A binary message of 1 MiB, masked by zeros, of which a part arrives.
    let head = [&[0x82, 0xff][..], &(1_u64 << 20).to_be_bytes(), &[0; 4]].concat();
    ours.write_all(&[head, vec![0; 2 * limits::MAX_FIRST_FRAME_BYTES]].concat()).await.unwrap();
    driver.await;
    assert_eq!(before.elapsed(), Duration::ZERO, "it is not waited for");
}
