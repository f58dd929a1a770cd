//! What a first picture costs, counted: wants, bytes, round trips.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use node::array::{Completions, Dataset, ReadRequest, Region, Result, Source, Want};
use node::remote::RemoteSource;
use node::render::ImageSize;
use node::stream::{StillRequest, render_still};

use crate::common::Served;

#[derive(Default)]
struct Counts {
    describes: AtomicU64,
    calls: AtomicU64,
    wants: AtomicU64,
    reads: AtomicU64,
    bytes: AtomicU64,
}

struct Counted {
    inner: Arc<dyn Source>,
    counts: Arc<Counts>,
}

impl Source for Counted {
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
    let counts = Arc::new(Counts::default());
    let remote = Arc::new(RemoteSource::new(served.dialer(), String::new()));
    let source = Arc::new(Counted { inner: remote, counts: Arc::clone(&counts) });
    let size = ImageSize { width: 256, height: 200 };
    let request = StillRequest { view: None, colour_map: None, size, memory_bytes: 64 << 20 };
    let still = render_still(source, request, |_, _| ()).await.unwrap();
    let count = |c: &AtomicU64| c.load(Ordering::Relaxed);
    assert!(still.truth.level_wanted > 0, "a small picture needs no full resolution");
    // Each block of the picture is asked for once, in a few pipelined calls, and nothing else is.
    assert_eq!(count(&counts.wants), still.truth.blocks_total);
    assert_eq!(count(&counts.reads), 0);
    assert_eq!(count(&counts.describes), 1);
    assert!(count(&counts.calls) <= 4, "found {} calls", count(&counts.calls));
    assert!(count(&counts.bytes) <= 64 << 20, "found {} bytes", count(&counts.bytes));
}
