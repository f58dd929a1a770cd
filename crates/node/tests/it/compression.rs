//! Compression on the network: the data are unchanged, fewer bytes are sent, and the client's choice is respected.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use array::conformance::check_source;
use array::{AxisRange, Selection, Source};
use client::dial::{Compression, ConnectOptions, Dialer, Endpoint};
use client::remote::RemoteSource;
use export::get::{GetRequest, get};
use export::selection_text::ArraySelection;
use link::Protocol;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use wire::compression::{Algorithm, CompressionMethod};

use crate::common::{Served, local, read};

const WAVES: &str = "synthetic:waves?shape=64,128,160&dtype=f32";
const SHAPE: [u64; 3] = [64, 128, 160];
const DATA_BYTES: u64 = 64 * 128 * 160 * 4;
/// Size of the receive buffer of a slow relay, for data not yet forwarded, in bytes.
const RELAY_BUFFER_BYTES: u32 = 64 << 10;

fn source(served: &Served, port: u16, compression: Compression) -> RemoteSource {
    let reach = ConnectOptions { protocol: Protocol::Tcp, compression, ..ConnectOptions::default() };
    let server = Endpoint { port, ..Endpoint::of(served.url(), 16 << 20).expect("a URL") };
    RemoteSource::new(Dialer::new(server.by(reach)), String::new())
}

async fn everything(source: &RemoteSource) -> Vec<u8> {
    let source: Arc<dyn Source> = Arc::new(source.clone());
    read(&source, 0, Selection::all(&SHAPE)).await.expect("all elements")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chosen_compression_is_used_and_does_not_change_the_data() {
    let served = Served::start(&[WAVES]).await;
    let expect =
        read(&local(served.folder.path(), WAVES).await.source, 0, Selection::all(&SHAPE)).await.unwrap();
    for (compression, most) in [(Compression::None, 1.0), (Compression::Lz4, 0.8), (Compression::Zstd, 0.7)] {
        let there = source(&served, served.url().port, compression);
        assert!(everything(&there).await == expect, "{compression:?}: wrong bytes");
        let carried = there.carried();
        assert_eq!(carried.data_bytes, DATA_BYTES);
        let share = carried.carried_bytes as f64 / carried.data_bytes as f64;
        assert!(share <= most, "{compression:?}: {share} of the bytes were sent");
        assert!(compression != Compression::None || share == 1.0, "{share}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_source_conforms() {
    let served = Served::start(&["synthetic:waves?shape=70,90,110&dtype=u16"]).await;
    check_source(Arc::new(source(&served, served.url().port, Compression::Zstd))).await;
}

/// Tests chunks that are many rows of the result, which are sent as one piece.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_chunks_are_compressed_together() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("waves.zarr");
    let request = GetRequest {
        selections: vec![ArraySelection::parse("").unwrap()],
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

/// Writes a Zarr v3 store of 4 x 4 x 4 chunks of 32^3 `f32`, compressed by `algorithm`; the last chunks extend beyond
/// the array. Returns the elements, and the number of stored bytes of the chunks that lie completely within the array.
fn packed_store(folder: &Path, algorithm: Algorithm, codec: &str) -> (Vec<u8>, u64) {
    const SIDE: usize = 120;
    let value = |at: [usize; 3]| ((at[0] + 2 * at[1]) as f32 * 0.01 + (at[2] % 7) as f32).to_le_bytes();
    let mut whole_bytes = 0;
    std::fs::create_dir_all(folder).unwrap();
    for chunk in (0..64).map(|n| [n / 16, n / 4 % 4, n % 4]) {
        let places = (0..32 * 32 * 32).map(|n| [n / 1024, n / 32 % 32, n % 32]);
        let bytes: Vec<u8> =
            places.flat_map(|at| value(std::array::from_fn(|a| chunk[a] * 32 + at[a]))).collect();
        let (_, packed) = CompressionMethod { algorithm, level: 1, width: 1 }.compress(&bytes).unwrap();
        whole_bytes += if chunk.iter().all(|&c| c < 3) { packed.len() as u64 } else { 0 };
        let file = folder.join(format!("c/{}/{}/{}", chunk[0], chunk[1], chunk[2]));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, packed).unwrap();
    }
    let document = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [{SIDE}, {SIDE}, {SIDE}], "data_type": "float32",
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [32, 32, 32]}}}},
        "chunk_key_encoding": {{"name": "default"}}, "fill_value": 0.0,
        "codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}, {codec}]}}"#
    );
    std::fs::write(folder.join("zarr.json"), document).unwrap();
    let all = (0..SIDE.pow(3)).map(|n| [n / SIDE / SIDE, n / SIDE % SIDE, n % SIDE]);
    (all.flat_map(value).collect(), whole_bytes)
}

/// Tests that whole chunks are sent as they are stored, byte by byte: the server does not decompress them.
#[tokio::test(flavor = "multi_thread")]
async fn stored_compressed_chunks_are_sent_unchanged() {
    const ZSTD: &str = r#"{"name": "zstd", "configuration": {"level": 1, "checksum": false}}"#;
    const GZIP: &str = r#"{"name": "gzip", "configuration": {"level": 1}}"#;
    let folder = tempfile::tempdir().unwrap();
    for (algorithm, codec) in [(Algorithm::Zstd, ZSTD), (Algorithm::Gzip, GZIP)] {
        let store = folder.path().join(format!("{algorithm:?}.zarr"));
        let (expect, whole_bytes) = packed_store(&store, algorithm, codec);
        let served = Served::start(&[store.to_str().unwrap()]).await;
        for (text, passes) in
            [("0:96, 0:96, 0:96", true), ("", true), ("1:97, 0:96, 0:96", true), ("::2", false)]
        {
            let there = source(&served, served.url().port, Compression::Auto);
            let remote: Arc<dyn Source> = Arc::new(there.clone());
            let selection = Selection::parse(text, &[120; 3]).unwrap();
            let bytes = read(&remote, 0, selection.clone()).await.unwrap();
            assert!(bytes == selected(&expect, &selection), "{algorithm:?} {text}: wrong bytes");
            let carried = there.carried();
            if text.starts_with("0:96") {
                assert_eq!((carried.data_bytes, carried.carried_bytes), (96 * 96 * 96 * 4, whole_bytes));
            }
            // Other data are sent uncompressed, unless this host is so busy that its link looks slow.
            let is_less = carried.carried_bytes < carried.data_bytes;
            assert!(is_less || !passes, "{algorithm:?} {text}: {carried:?}");
        }
        let plain = source(&served, served.url().port, Compression::None);
        let remote: Arc<dyn Source> = Arc::new(plain.clone());
        assert!(read(&remote, 0, Selection::all(&[120; 3])).await.unwrap() == expect);
        assert_eq!(plain.carried().carried_bytes, expect.len() as u64);
    }
}

/// Tests chunks of HDF5 compressed by deflate, with and without shuffle. The stored sizes are those that h5py reports.
#[tokio::test(flavor = "multi_thread")]
async fn chunks_of_hdf5_are_sent_unchanged() {
    let Some(root) = std::env::var_os("CORRIDOR_TEST_DATA") else {
        println!("skipped: CORRIDOR_TEST_DATA names no directory of test data");
        return;
    };
    let cases = [
        ("climate/nc4uvt.nc", "T", 262_491),
        ("climate/nemo_monthly/nemo_1m_20150101-20150201_grid-T.nc", "tos", 228_813),
    ];
    for (file, name, stored_bytes) in cases {
        let path = Path::new(&root).join(file);
        let path = path.to_str().expect("UTF-8");
        let served = Served::start(&[path]).await;
        let here = local(served.folder.path(), path).await.source;
        let dataset = here.describe().await.unwrap();
        let (number, array) = dataset.find(name).unwrap();
        let all = Selection::all(array.shape());
        let there = source(&served, served.url().port, Compression::Auto);
        let remote: Arc<dyn Source> = Arc::new(there.clone());
        let expect = read(&here, number, all.clone()).await.unwrap();
        assert!(read(&remote, number, all).await.unwrap() == expect, "{file} {name}: wrong bytes");
        let carried = there.carried();
        assert_eq!(
            (carried.data_bytes, carried.carried_bytes),
            (expect.len() as u64, stored_bytes),
            "{name}"
        );
    }
}

/// Returns the bytes of a selection of 120^3 elements of four bytes.
fn selected(all: &[u8], selection: &Selection) -> Vec<u8> {
    let [z, y, x] = selection.ranges() else { panic!("three axes") };
    let indices = |range: &AxisRange| (0..range.count).map(|n| range.index(n)).collect::<Vec<_>>();
    let xs = indices(x);
    let mut bytes = Vec::new();
    for z in indices(z) {
        for y in indices(y) {
            let places = xs.iter().map(|x| usize::try_from((z * 120 + y) * 120 + x).expect("small") * 4);
            places.for_each(|at| bytes.extend_from_slice(&all[at..at + 4]));
        }
    }
    bytes
}

/// Starts a relay that forwards at most `bytes_per_sec` from the server. Its buffer is small, because a buffer of the
/// default size may hold all data of the test.
async fn slow_relay(from: &Served, bytes_per_sec: u64, tasks: &mut JoinSet<()>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (port, server) = (listener.local_addr().expect("bound").port(), from.url().port);
    tasks.spawn(async move {
        let (near, _) = listener.accept().await.expect("a client");
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(RELAY_BUFFER_BYTES).expect("a small buffer");
        let far = socket.connect(([127, 0, 0, 1], server).into()).await.expect("the server");
        let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
        tokio::join!(copy(near_read, far_write, u64::MAX), copy(far_read, near_write, bytes_per_sec));
    });
    port
}

async fn copy(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, bytes_per_sec: u64) {
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

/// Writes a file of incompressible data; returns the path of its description.
fn noise(folder: &Path) -> String {
    let mut state = 1_u64;
    let bytes: Vec<u8> = (0..DATA_BYTES)
        .map(|_| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            state.to_le_bytes()[7]
        })
        .collect();
    std::fs::write(folder.join("noise.bin"), bytes).expect("a file");
    let description = folder.join("noise.toml");
    std::fs::write(&description, format!("file = 'noise.bin'\nshape = {SHAPE:?}\ndtype = 'f4'\n"))
        .expect("a file");
    description.to_string_lossy().into_owned()
}

/// Tests the choice of compression. The buffers of loopback hide the slow relay at first; later all data are
/// compressed.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_link_is_detected_and_incompressible_data_are_sent_uncompressed() {
    let mut tasks = JoinSet::new();
    let folder = tempfile::tempdir().unwrap();
    let noise = noise(folder.path());
    for (location, least, most) in [(WAVES, 0.0, 0.9), (noise.as_str(), 1.0, 1.0)] {
        let served = Served::start(&[location]).await;
        let expect = read(&local(served.folder.path(), location).await.source, 0, Selection::all(&SHAPE))
            .await
            .unwrap();
        let there = source(&served, slow_relay(&served, 12 << 20, &mut tasks).await, Compression::Auto);
        for _ in 0..4 {
            assert!(everything(&there).await == expect, "{location}: wrong bytes");
        }
        let carried = there.carried();
        let share = carried.carried_bytes as f64 / carried.data_bytes as f64;
        assert!((least..=most).contains(&share), "{location}: {carried:?}");
    }
}
