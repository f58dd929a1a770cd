//! The same data by another protocol, with the controllers that were asked for.

use std::sync::Arc;
use std::time::Duration;

use node::array::conformance::check_source;
use node::array::{ErrorKind, Selection, Source};
use node::dial::{Compression, Dialer, Protocol, Reach, Server, Streams};
use node::node::Options;
use node::remote::RemoteSource;
use tokio::time::Instant;

use crate::common::{Served, local, read};

const WAVES: &str = "synthetic:waves?shape=70,90,110&dtype=u16";

fn source(served: &Served, protocol: Protocol, choice: Option<&str>) -> RemoteSource {
    let reach = Reach { protocol, choice: choice.map(|text| text.parse().unwrap()), ..Reach::default() };
    let server = Server::of(served.url(), 16 << 20).unwrap().by(reach);
    RemoteSource::new(Dialer::new(server), String::new())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_by_quic_keeps_every_promise_of_a_source() {
    let served = Served::start(&[WAVES]).await;
    check_source(Arc::new(source(&served, Protocol::Quic, None))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_by_datagrams_keeps_every_promise_of_a_source() {
    let served = Served::start(&[WAVES]).await;
    for protocol in [Protocol::Lossy, Protocol::LossyRedundant] {
        check_source(Arc::new(source(&served, protocol, None))).await;
        let there: Arc<dyn Source> = Arc::new(source(&served, protocol, Some("rate=800Mb/s")));
        let here = local(served.folder.path(), WAVES).await;
        let all = Selection::all(&[70, 90, 110]);
        let expect = read(&here.source, 0, all.clone()).await.unwrap();
        assert_eq!(read(&there, 0, all).await.unwrap(), expect, "{protocol}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_by_several_streams_keeps_every_promise_of_a_source() {
    let served = Served::start(&[WAVES]).await;
    let source = || {
        let reach = Reach { streams: Streams::Of(4), ..Reach::default() };
        let server = Server::of(served.url(), 16 << 20).expect("a server").by(reach);
        Arc::new(RemoteSource::new(Dialer::new(server), String::new()))
    };
    check_source(source()).await;
    let there: Arc<dyn Source> = source();
    let here = local(served.folder.path(), WAVES).await;
    let all = Selection::all(&[70, 90, 110]);
    let expect = read(&here.source, 0, all.clone()).await.unwrap();
    for _ in 0..5 {
        assert_eq!(read(&there, 0, all.clone()).await.unwrap(), expect);
    }
}

#[test]
fn streams_are_a_number_within_bounds() {
    assert_eq!("auto".parse::<Streams>().unwrap(), Streams::Auto);
    assert_eq!("16".parse::<Streams>().unwrap(), Streams::Of(16));
    for text in ["0", "17", "-1", "", "many"] {
        assert!(text.parse::<Streams>().unwrap_err().to_string().contains("1 to 16"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_controller_brings_the_same_bytes() {
    let served = Served::start(&[WAVES]).await;
    let here = local(served.folder.path(), WAVES).await;
    let expect = read(&here.source, 0, Selection::all(&[70, 90, 110])).await.unwrap();
    for choice in ["auto", "polite", "rate=800Mb/s", "cubic", "reno", "bbr", "vegas"] {
        let there: Arc<dyn Source> = Arc::new(source(&served, Protocol::Auto, Some(choice)));
        assert_eq!(read(&there, 0, Selection::all(&[70, 90, 110])).await.unwrap(), expect, "{choice}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_that_cannot_run_are_refused_with_the_reason() {
    let served = Served::start(&[WAVES]).await;
    let udt = source(&served, Protocol::Quic, Some("udt")).describe().await.unwrap_err();
    assert_eq!(udt.kind(), ErrorKind::Unsupported);
    assert!(udt.to_string().contains("measured by the receiver"), "{udt}");
    let by_tcp = source(&served, Protocol::Tcp, Some("cubic")).describe().await.unwrap_err();
    assert_eq!(by_tcp.kind(), ErrorKind::Unsupported);
    assert!(by_tcp.to_string().contains("`quic`"), "{by_tcp}");
}

/// 4 MB by TCP, not compressed, in so many streams; how long they took.
async fn taken(served: &Served, choice: Option<&str>, streams: u32) -> Duration {
    let reach = Reach {
        protocol: Protocol::Tcp,
        choice: choice.map(|text| text.parse().expect("a controller")),
        streams: Streams::Of(streams),
        compression: Compression::None,
        ..Reach::default()
    };
    let server = Server::of(served.url(), 16 << 20).expect("a server").by(reach);
    let there: Arc<dyn Source> = Arc::new(RemoteSource::new(Dialer::new(server), String::new()));
    there.describe().await.expect("a description");
    let began = Instant::now();
    read(&there, 0, Selection::all(&[128, 128, 128])).await.expect("the data");
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn by_tcp_nobody_is_sent_faster_than_he_asked_for_or_the_server_allows() {
    const VOLUME: &str = "synthetic:waves?shape=128,128,128&dtype=u16";
    // A kernel does not pace the first packets of a connection, which are large here; and it catches up on what was late.
    const LEAST: Duration = Duration::from_millis(800);
    let served = Served::start(&[VOLUME]).await;
    let asked = taken(&served, Some("rate=2MB/s"), 1).await;
    assert!(asked > LEAST, "{asked:?}");
    let most = |options: &mut Options| options.most_bytes_per_sec = Some(2e6);
    let holding = Served::changed(&[VOLUME], most).await.unwrap();
    for choice in [None, Some("rate=1GB/s")] {
        let allowed = taken(&holding, choice, 1).await;
        assert!(allowed > LEAST, "{choice:?}: {allowed:?}");
    }
}
