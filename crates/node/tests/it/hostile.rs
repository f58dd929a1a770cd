//! Bad input to a running server: a clear error each time, and correct answers afterwards.

use std::sync::Arc;
use std::time::Duration;

use array::{AxisRange, ErrorKind, Priority, Selection, Source, Target, Urgency};
use client::remote::RemoteSource;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire::ops::{self, BlockPlace, ReadParameters};

use crate::common::{Served, local, read};

const HUGE: &str = "synthetic:linear?shape=1048576,1048576,1048576&dtype=u8";

async fn still_answers(served: &Served) {
    let stack = served.stack().await;
    let shape = stack.source.describe().await.unwrap().arrays[0].shape().to_vec();
    let selection = Selection::new(shape.iter().map(|_| AxisRange::contiguous(0, 2))).unwrap();
    assert_eq!(read(&stack.source, 0, selection).await.unwrap().len() % 8, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_or_fingerprint_is_denied() {
    let served = Served::start(&[HUGE]).await;
    for token in [None, Some("wrong".to_owned()), Some("x".repeat(512))] {
        let url = client::url::Url { token, ..served.url().clone() };
        let source = RemoteSource::new(
            client::dial::Dialer::new(client::dial::Endpoint::of(&url, 1 << 20).unwrap()),
            String::new(),
        );
        let error = source.describe().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(error.to_string().contains("token"), "{error}");
    }
    let fingerprint = Some(format!("sha256:{}", "0".repeat(64)));
    let url = client::url::Url { fingerprint, ..served.url().clone() };
    let error = served.stack_of(url).await.err().map(|e| e.kind());
    let described = match error {
        Some(kind) => kind,
        None => {
            let url = client::url::Url {
                fingerprint: Some(format!("sha256:{}", "0".repeat(64))),
                ..served.url().clone()
            };
            let stack = served.stack_of(url).await.unwrap();
            stack.source.describe().await.unwrap_err().kind()
        }
    };
    assert_eq!(described, ErrorKind::Denied);
    still_answers(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_bytes_close_the_connection() {
    let served = Served::start(&[HUGE]).await;
    let address = served.url().authority();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for first in [None, Some(&[0x16u8, 0x03, 0x01][..]), Some(b"GET / HTTP/1.1\r\n"), Some(&[64, 0, 0, 0, 1])]
    {
        let mut bytes = first.unwrap_or_default().to_vec();
        bytes.extend((0..10_000).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        }));
        let mut stream = TcpStream::connect(&address).await.unwrap();
        // The server may hang up in the middle.
        drop(stream.write_all(&bytes).await);
        drop(stream.shutdown().await);
        let mut answer = Vec::new();
        let end = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
        assert!(end.is_ok(), "the server must hang up");
        assert!(answer.len() < 10_000, "found an answer of {} bytes", answer.len());
    }
    still_answers(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_peers_do_not_lock_out_others() {
    let served = Served::start(&[HUGE]).await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(served.url().authority()).await.unwrap());
    }
    still_answers(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_two_to_the_sixty_elements_needs_little_memory() {
    let served = Served::start(&[HUGE]).await;
    let stack = served.stack().await;
    let dataset = stack.source.describe().await.unwrap();
    // Our own client refuses first: it has no memory for the answer.
    assert_eq!(Target::new(dataset.arrays[0].shape(), 1).unwrap_err().kind(), ErrorKind::TooLarge);
    // A client that sends the request anyway receives pieces as long as it reads them.
    let dialer = served.dialer();
    let client = dialer.client().await.unwrap();
    let place = BlockPlace { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0 };
    let all = ReadParameters { place, selection: Selection::all(dataset.arrays[0].shape()) };
    let mut answer = client.request(ops::READ, all.encode(), Urgency::of(Priority::NORMAL)).await.unwrap();
    for _ in 0..4 {
        let item = answer.next_item().await.unwrap().unwrap();
        assert!(item.bulk.len() <= 4 << 20);
    }
    drop(answer);
    still_answers(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_disconnect_during_a_read_do_no_harm() {
    let served = Served::start(&["synthetic:noise?shape=512,512,512&dtype=f32"]).await;
    for wait_ms in [5, 30, 100] {
        let source: Arc<dyn Source> = Arc::new(RemoteSource::new(served.dialer(), String::new()));
        let reading = async { read(&source, 0, Selection::all(&[512, 512, 512])).await };
        drop(tokio::time::timeout(Duration::from_millis(wait_ms), reading).await);
        drop(source);
    }
    still_answers(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_parameters_are_refused_and_the_connection_stays_open() {
    let served = Served::start(&[HUGE]).await;
    let dialer = served.dialer();
    let client = dialer.client().await.unwrap();
    let urgency = Urgency::of(Priority::NORMAL);
    for (name, parameters) in [
        ("read", &b"short"[..]),
        ("read_block", &[0xff; 40]),
        ("stats", &[0; 3]),
        ("describe", &[9, 0, b'x']),
        ("no_such_thing", &[]),
        ("", &[]),
    ] {
        let error = client.call(name, bytes::Bytes::copy_from_slice(parameters), urgency).await.unwrap_err();
        assert!(
            [ErrorKind::Corrupt, ErrorKind::Invalid, ErrorKind::Stale, ErrorKind::Unsupported]
                .contains(&error.kind()),
            "{name}: {error}"
        );
    }
    assert!(client.ended().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunk_larger_than_the_memory_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("huge.zarr");
    std::fs::create_dir(&store).unwrap();
    let metadata = r#"{"zarr_format": 2, "shape": [8192, 8192], "chunks": [8192, 8192], "dtype": "<f8",
        "compressor": {"id": "gzip", "level": 1}, "fill_value": 0, "order": "C", "filters": null}"#;
    std::fs::write(store.join(".zarray"), metadata).unwrap();
    std::fs::write(store.join("0.0"), [0; 64]).unwrap();
    let stack = local(folder.path(), store.to_str().unwrap()).await;
    let few = Selection::parse("0, 0:4", &[8192, 8192]).unwrap();
    let error = read(&stack.source, 0, few).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    for part in ["one of 536870912 bytes", "`--memory`"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}
