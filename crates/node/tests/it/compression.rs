//! Compression on the way: the same bytes arrive, fewer of them travel, and the client's choice holds.

use std::sync::Arc;
use std::time::Duration;

use node::array::conformance::check_source;
use node::array::{Selection, Source};
use node::dial::{Compression, Dialer, Protocol, Reach, Server};
use node::get::{GetRequest, get};
use node::pick::Pick;
use node::remote::RemoteSource;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::common::{Served, local, read};

const WAVES: &str = "synthetic:waves?shape=64,128,160&dtype=f32";
const NOISE: &str = "synthetic:noise?shape=64,128,160&dtype=f32";
const SHAPE: [u64; 3] = [64, 128, 160];
const DATA_BYTES: u64 = 64 * 128 * 160 * 4;

fn source(served: &Served, port: u16, compression: Compression) -> RemoteSource {
    let reach = Reach { protocol: Protocol::Tcp, choice: None, compression };
    let server = Server { port, ..Server::of(served.url(), 16 << 20).expect("a URL") };
    RemoteSource::new(Dialer::new(server.by(reach)), String::new())
}

async fn everything(source: &RemoteSource) -> Vec<u8> {
    let source: Arc<dyn Source> = Arc::new(source.clone());
    read(&source, 0, Selection::all(&SHAPE)).await.expect("all elements")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_for_is_done_and_the_bytes_are_the_same() {
    let served = Served::start(&[WAVES]).await;
    let expect =
        read(&local(served.folder.path(), WAVES).await.source, 0, Selection::all(&SHAPE)).await.unwrap();
    for (compression, most) in [(Compression::None, 1.0), (Compression::Lz4, 0.8), (Compression::Zstd, 0.7)] {
        let there = source(&served, served.url().port, compression);
        assert!(everything(&there).await == expect, "{compression:?}: wrong bytes");
        let carried = there.carried();
        assert_eq!(carried.data_bytes, DATA_BYTES);
        let share = carried.carried_bytes as f64 / carried.data_bytes as f64;
        assert!(share <= most, "{compression:?}: {share} of the bytes travelled");
        assert!(compression != Compression::None || share == 1.0, "{share}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_compressed_keeps_every_promise_of_a_source() {
    let served = Served::start(&["synthetic:waves?shape=70,90,110&dtype=u16"]).await;
    check_source(Arc::new(source(&served, served.url().port, Compression::Zstd))).await;
}

/// A chunk is many rows of the result, which travel as one piece.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_chunks_are_compressed_together_and_land_where_they_belong() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("waves.zarr");
    let request = GetRequest {
        picks: vec![Pick::parse("").unwrap()],
        level: 0,
        is_decoded: false,
        output: output.clone(),
        memory_bytes: 1 << 20,
    };
    let here = local(folder.path(), "synthetic:waves?shape=64,300,400&dtype=f32").await;
    get(Arc::clone(&here.source), &request, &|_| ()).await.unwrap();
    let served = Served::start(&[output.to_str().unwrap()]).await;
    let there = source(&served, served.url().port, Compression::Zstd);
    let remote: Arc<dyn Source> = Arc::new(there.clone());
    for text in ["", "3:60, 7:290, 11:", "::2, ::3, 5::2"] {
        let selection = Selection::parse(text, &[64, 300, 400]).unwrap();
        let expect = read(&here.source, 0, selection.clone()).await.unwrap();
        assert!(read(&remote, 0, selection).await.unwrap() == expect, "{text}: wrong bytes");
    }
    let carried = there.carried();
    assert!(carried.carried_bytes * 10 < carried.data_bytes * 8, "{carried:?}");
}

/// Lets so many bytes per second of the server's through, behind a buffer as small as one may ask for.
async fn slow(from: &Served, bytes_per_sec: u64, tasks: &mut JoinSet<()>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (port, server) = (listener.local_addr().expect("bound").port(), from.url().port);
    tasks.spawn(async move {
        let (near, _) = listener.accept().await.expect("a client");
        let far = TcpStream::connect(("127.0.0.1", server)).await.expect("the server");
        let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
        tokio::join!(pass(near_read, far_write, u64::MAX), pass(far_read, near_write, bytes_per_sec));
    });
    port
}

async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, bytes_per_sec: u64) {
    let mut buffer = vec![0; 32 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await
        && to.write_all(&buffer[..count]).await.is_ok()
    {
        let pause = Duration::from_nanos(count as u64 * 1_000_000_000 / bytes_per_sec);
        if pause > Duration::from_micros(100) {
            tokio::time::sleep(pause).await;
        }
    }
}

/// Several MiB wait in the buffers of loopback before anything is felt of the relay; then all is compressed.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_link_is_noticed_and_data_that_cannot_be_compressed_go_as_they_are() {
    let mut tasks = JoinSet::new();
    for (location, least, most) in [(WAVES, 0.0, 0.9), (NOISE, 1.0, 1.0)] {
        let served = Served::start(&[location]).await;
        let expect = read(&local(served.folder.path(), location).await.source, 0, Selection::all(&SHAPE))
            .await
            .unwrap();
        let there = source(&served, slow(&served, 12 << 20, &mut tasks).await, Compression::Auto);
        for _ in 0..4 {
            assert!(everything(&there).await == expect, "{location}: wrong bytes");
        }
        let carried = there.carried();
        let share = carried.carried_bytes as f64 / carried.data_bytes as f64;
        assert!((least..=most).contains(&share), "{location}: {carried:?}");
    }
}
