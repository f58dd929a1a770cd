//! Reads over each protocol and with each congestion controller return the same data.

use std::sync::Arc;
use std::time::Duration;

use array::conformance::check_source;
use array::{BlockKey, Content, ErrorKind, Priority, Selection, Source, Urgency, want};
use client::dial::{Compression, ConnectOptions, Dialer, Endpoint, Streams};
use client::remote::RemoteSource;
use futures::StreamExt;
use link::Protocol;
use node::node::ServerOptions;
use plan::Carrying;
use tokio::time::Instant;

use crate::common::{Served, local, read};

const WAVES: &str = "synthetic:waves?shape=70,90,110&dtype=u16";

fn source(served: &Served, protocol: Protocol, choice: Option<&str>) -> RemoteSource {
    let reach = ConnectOptions {
        protocol,
        choice: choice.map(|text| text.parse().unwrap()),
        ..ConnectOptions::default()
    };
    let server = Endpoint::of(served.url(), 16 << 20).unwrap().by(reach);
    RemoteSource::new(Dialer::new(server), String::new())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_over_quic_conforms() {
    let served = Served::start(&[WAVES]).await;
    check_source(Arc::new(source(&served, Protocol::Quic, None))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_over_datagrams_conforms() {
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
async fn a_source_over_several_tcp_streams_conforms() {
    let served = Served::start(&[WAVES]).await;
    let source = || {
        let reach = ConnectOptions { streams: Streams::Of(4), ..ConnectOptions::default() };
        let server = Endpoint::of(served.url(), 16 << 20).expect("a server").by(reach);
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
fn number_of_streams_is_checked() {
    assert_eq!("auto".parse::<Streams>().unwrap(), Streams::Auto);
    assert_eq!("16".parse::<Streams>().unwrap(), Streams::Of(16));
    for text in ["0", "17", "-1", "", "many"] {
        assert!(text.parse::<Streams>().unwrap_err().to_string().contains("1 to 16"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_controller_delivers_the_same_bytes() {
    let served = Served::start(&[WAVES]).await;
    let here = local(served.folder.path(), WAVES).await;
    let expect = read(&here.source, 0, Selection::all(&[70, 90, 110])).await.unwrap();
    for choice in ["auto", "polite", "rate=800Mb/s", "cubic", "reno", "bbr", "vegas"] {
        let there: Arc<dyn Source> = Arc::new(source(&served, Protocol::Auto, Some(choice)));
        assert_eq!(read(&there, 0, Selection::all(&[70, 90, 110])).await.unwrap(), expect, "{choice}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_controllers_are_refused_with_the_reason() {
    let served = Served::start(&[WAVES]).await;
    let udt = source(&served, Protocol::Quic, Some("udt")).describe().await.unwrap_err();
    assert_eq!(udt.kind(), ErrorKind::Unsupported);
    assert!(udt.to_string().contains("measured by the receiver"), "{udt}");
    let by_tcp = source(&served, Protocol::Tcp, Some("cubic")).describe().await.unwrap_err();
    assert_eq!(by_tcp.kind(), ErrorKind::Unsupported);
    assert!(by_tcp.to_string().contains("`quic`"), "{by_tcp}");
}

/// Reads 4 MB over TCP, uncompressed, with `streams` streams; returns the duration.
async fn read_duration(served: &Served, choice: Option<&str>, streams: u32) -> Duration {
    let reach = ConnectOptions {
        protocol: Protocol::Tcp,
        choice: choice.map(|text| text.parse().expect("a controller")),
        streams: Streams::Of(streams),
        compression: Compression::None,
        ..ConnectOptions::default()
    };
    let server = Endpoint::of(served.url(), 16 << 20).expect("a server").by(reach);
    let there: Arc<dyn Source> = Arc::new(RemoteSource::new(Dialer::new(server), String::new()));
    there.describe().await.expect("a description");
    let began = Instant::now();
    read(&there, 0, Selection::all(&[128, 128, 128])).await.expect("the data");
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn tcp_rates_of_client_and_server_are_respected() {
    const VOLUME: &str = "synthetic:waves?shape=128,128,128&dtype=u16";
    // The kernel does not pace the first packets of a connection, which are large here, and it catches up after delays.
    const LEAST: Duration = Duration::from_millis(800);
    let served = Served::start(&[VOLUME]).await;
    let asked = read_duration(&served, Some("rate=2MB/s"), 1).await;
    assert!(asked > LEAST, "{asked:?}");
    let most = |options: &mut ServerOptions| options.most_bytes_per_sec = Some(2e6);
    let holding = Served::with_options(&[VOLUME], most).await.unwrap();
    for choice in [None, Some("rate=1GB/s")] {
        let allowed = read_duration(&holding, choice, 1).await;
        assert!(allowed > LEAST, "{choice:?}: {allowed:?}");
    }
}

/// Tests a change of protocol during a read, and during requests of blocks: all data arrive, and few bytes twice.
#[tokio::test(flavor = "multi_thread")]
async fn running_operations_move_to_the_connection_of_another_protocol() {
    const BYTES: u64 = 64 * 256 * 512;
    let location = "synthetic:noise?shape=64,256,512&dtype=u8";
    let served =
        Served::with_options(&[location], |options| options.most_bytes_per_sec = Some(8e6)).await.unwrap();
    let here = local(served.folder.path(), location).await;
    let all = Selection::all(&[64, 256, 512]);
    let expect = read(&here.source, 0, all.clone()).await.unwrap();
    let reach = ConnectOptions { compression: Compression::None, ..ConnectOptions::default() };
    let dialer = Dialer::new(Endpoint::of(served.url(), 64 << 20).unwrap().by(reach));
    let there = RemoteSource::new(dialer.clone(), String::new());
    assert!(!dialer.carry_by(Carrying::Quic).await.unwrap(), "there is no connection yet");
    let dataset = there.describe().await.unwrap();
    for to in [Carrying::Quic, Carrying::Tcp] {
        let before = there.carried();
        let reading = async {
            let source: Arc<dyn Source> = Arc::new(there.clone());
            read(&source, 0, all.clone()).await.unwrap()
        };
        let changing = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            assert!(dialer.carry_by(to).await.unwrap());
        };
        let (found, ()) = tokio::join!(reading, changing);
        assert!(found == expect, "{to:?}: wrong bytes");
        let came = there.carried().data_bytes - before.data_bytes;
        assert!((BYTES..=2 * BYTES).contains(&came), "{to:?}: {came} bytes came for {BYTES}");
    }
    let key =
        |index| BlockKey { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0, index };
    let count = dataset.array(0).unwrap().level(0).unwrap().block_count();
    let urgency = Urgency::of(Priority::NORMAL);
    let (wants, handles): (Vec<_>, Vec<_>) = (0..count).map(|index| want(key(index), urgency)).unzip();
    let blocks = async {
        let mut bytes = 0;
        let mut completions = there.blocks(wants);
        while let Some(done) = completions.next().await {
            match &done.result.unwrap().content {
                Content::Data { bytes: block, .. } => bytes += block.len() as u64,
                Content::NotCovered => panic!("expected all blocks to be covered"),
            }
        }
        bytes
    };
    let changing = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert!(dialer.carry_by(Carrying::Quic).await.unwrap());
    };
    let (bytes, ()) = tokio::join!(blocks, changing);
    assert_eq!(bytes, BYTES);
    drop(handles);
}
