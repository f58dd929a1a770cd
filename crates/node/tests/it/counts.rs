//! Cost of a first picture, and of reads, in counts: wants, bytes, calls, copies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use array::{
    BlockKey, Completions, Dataset, Priority, ReadRequest, Region, Result, Selection, Source, Target,
    Urgency, Want, want,
};
use client::dial::{Compression, ConnectOptions, Dialer, Endpoint};
use client::remote::RemoteSource;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use link::Protocol;
use render::ImageSize;
use stream::{StillRequest, render_still};

use crate::common::{Served, read};

#[derive(Default)]
struct SourceCalls {
    describes: AtomicU64,
    calls: AtomicU64,
    wants: AtomicU64,
    reads: AtomicU64,
    bytes: AtomicU64,
}

struct CallCountingSource {
    inner: Arc<dyn Source>,
    counts: Arc<SourceCalls>,
}

impl Source for CallCountingSource {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        self.counts.describes.fetch_add(1, Ordering::Relaxed);
        self.inner.describe()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let counts = Arc::clone(&self.counts);
        counts.calls.fetch_add(1, Ordering::Relaxed);
        counts.wants.fetch_add(wants.len() as u64, Ordering::Relaxed);
        let answers = self.inner.blocks(wants);
        answers
            .inspect(move |c| {
                let size = c.result.as_ref().map_or(0, |b| b.size_bytes() as u64);
                counts.bytes.fetch_add(size, Ordering::Relaxed);
            })
            .boxed()
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.read(request, into).boxed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_of_one_gigabyte_fetches_little_more_than_it_shows() {
    let served = Served::start(&["synthetic:waves?shape=1024,1024,1024&dtype=u8"]).await;
    let counts = Arc::new(SourceCalls::default());
    let remote = Arc::new(RemoteSource::new(served.dialer(), String::new()));
    let source = Arc::new(CallCountingSource { inner: remote, counts: Arc::clone(&counts) });
    let size = ImageSize { width: 256, height: 200 };
    let request = StillRequest { view: None, choice: None, size, resources: (64 << 20).into() };
    let still = render_still(source, request, |_, _| ()).await.unwrap();
    let count = |c: &AtomicU64| c.load(Ordering::Relaxed);
    assert!(still.fidelity.level_wanted > 0, "a small picture needs no full resolution");
    // Each block of the picture is requested once, in a few pipelined calls, and nothing else is requested.
    assert_eq!(count(&counts.wants), still.fidelity.blocks_total);
    assert_eq!(count(&counts.reads), 0);
    assert_eq!(count(&counts.describes), 1);
    assert!(count(&counts.calls) <= 4, "found {} calls", count(&counts.calls));
    assert!(count(&counts.bytes) <= 64 << 20, "found {} bytes", count(&counts.bytes));
}

/// Tests that bulk bytes are copied once, from the decrypted record to their target, also for targets with gaps and for
/// blocks. (Answers of at most 16 KiB are first collected with others.)
#[tokio::test(flavor = "multi_thread")]
async fn bulk_is_copied_once_after_decryption() {
    let served = Served::start(&["synthetic:waves?shape=160,160,160&dtype=u16"]).await;
    for protocol in [Protocol::Tcp, Protocol::Quic] {
        // On a busy host loopback looks like a slow link, for which `auto` compresses.
        let reach = ConnectOptions { protocol, compression: Compression::None, ..ConnectOptions::default() };
        let server = Endpoint::of(served.url(), 16 << 20).unwrap().by(reach);
        count_copies(&Dialer::new(server)).await;
    }
}

async fn count_copies(dialer: &Dialer) {
    let source: Arc<dyn Source> = Arc::new(RemoteSource::new(dialer.clone(), String::new()));
    let dataset = source.describe().await.unwrap();
    let counts = dialer.client().await.unwrap();
    let mut bulk_bytes = 0;
    for selection in [Selection::all(&[160; 3]), Selection::parse("::3, 5:160:7, 1:", &[160; 3]).unwrap()] {
        let bytes = read(&source, 0, selection.clone()).await.unwrap();
        // Two adjacent columns, neither of which is contiguous.
        let shape = selection.shape();
        let (target, region) = Target::new(&shape, 2).unwrap();
        let half = shape[2] / 2;
        let (left, right) = region.split(2, usize::try_from(half).unwrap());
        let part = |start: u64, count: u64| {
            let mut ranges = selection.ranges().to_vec();
            ranges[2].start += start * ranges[2].step;
            ranges[2].count = count;
            let selection = Selection::new(ranges).unwrap();
            ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL }
        };
        source.read(part(0, half), left).await.unwrap();
        source.read(part(half, shape[2] - half), right).await.unwrap();
        assert_eq!(target.into_vec().unwrap(), bytes);
        bulk_bytes += 2 * bytes.len() as u64;
    }
    let counted = counts.counts();
    assert_eq!((counted.bulk_bytes, counted.copied_bytes), (bulk_bytes, bulk_bytes));
    let index = 0;
    let key = BlockKey { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0, index };
    let (want, _handle) = want(key, Urgency::of(Priority::NORMAL));
    let answer = source.blocks(vec![want]).next().await.unwrap();
    bulk_bytes += answer.result.unwrap().size_bytes() as u64;
    let counted = counts.counts();
    assert_eq!((counted.bulk_bytes, counted.copied_bytes), (bulk_bytes, bulk_bytes));
}
