//! How answers leave for one client: how fast the link takes them is measured, and they are compressed where that brings
//! them sooner. What is decided, and from what, is [`control::compression`]'s business; here are clock, threads and the
//! data.
//!
//! A small sample, taken in memory, tells what can be compressed at all. What cannot goes as if nobody measured: in large
//! pieces, as much as the carrier takes. Answers too small to tell anything pass by.

mod samples;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use array::{DatasetId, Packing, Priority, Result};
use bytes::Bytes;
use control::compression::{FASTEST_BYTES_PER_SEC, Goodput, Sampled, Sampling, choose, is_compressible};
use link::Flow;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use wire::Hello;
use wire::compression::{Algorithm, COMPRESS, Compressed, DEFLATE, LZ4, Way, ZSTD};

/// Bulk of fewer bytes is neither measured nor compressed.
pub(crate) const LEAST_BYTES: usize = 16 << 10;
/// Data that are decided about together while nothing is known of the link.
const UNKNOWN_PART_BYTES: usize = 64 << 10;
/// Data that are decided about together once the link is known: enough to compress well.
const PART_BYTES: usize = 1 << 20;
/// Arrays of which samples are remembered.
const MAX_ARRAYS: usize = 256;
/// How often the path's round trip is asked for.
const ROUND_TRIP_EVERY: Duration = Duration::from_millis(100);
/// Compression level where the client wants compression whatever it brings.
const DEFAULT_LEVEL: u8 = 3;

/// Which data: what is known of a sample holds for the same array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArrayKey {
    pub(crate) dataset: DatasetId,
    pub(crate) array: u32,
    /// Bytes of an element.
    pub(crate) item_bytes: usize,
}

impl ArrayKey {
    fn width(self) -> u8 {
        u8::try_from(self.item_bytes).unwrap_or(1)
    }
}

/// Compression that a client said it can restore.
#[derive(Debug, PartialEq)]
struct AcceptedCompression {
    /// By which data may be compressed here, the fastest first.
    algorithms: Vec<Algorithm>,
    deflate: bool,
    always: bool,
}

impl AcceptedCompression {
    fn by(hello: &Hello) -> Self {
        let says = |name: &str| hello.capabilities.iter().any(|c| c == name);
        let known = [(LZ4, Algorithm::Lz4), (ZSTD, Algorithm::Zstd)];
        let algorithms = known.into_iter().filter(|(name, _)| says(name)).map(|(_, algorithm)| algorithm);
        Self { algorithms: algorithms.collect(), deflate: says(DEFLATE), always: says(COMPRESS) }
    }

    fn is_nothing(&self) -> bool {
        self.algorithms.is_empty()
    }
}

/// Ways of compression that were tried with the data of one array.
#[derive(Default)]
struct SampledMethods {
    sampling: Sampling,
    ways: Vec<(Way, Sampled)>,
    /// By name: the places in `ways` are others after each sample.
    current: Option<Way>,
}

struct CompressionState {
    goodput: Goodput,
    tried: BTreeMap<ArrayKey, SampledMethods>,
    /// Queued bytes of compressible data, which were queued without compression.
    open_bytes: u64,
    round_trip: Duration,
    round_trip_at: Option<Instant>,
}

/// One client's.
pub(crate) struct ResponseCompression {
    wanted: AcceptedCompression,
    begun: Instant,
    state: Mutex<CompressionState>,
    left: Notify,
    flow: Option<Arc<dyn Flow>>,
}

impl ResponseCompression {
    /// For a client that said this, over a link of which a speed may be remembered, and which may tell of itself.
    pub(crate) fn new(hello: &Hello, known_bytes_per_sec: Option<f64>, flow: Option<Arc<dyn Flow>>) -> Self {
        let wanted = AcceptedCompression::by(hello);
        let state = CompressionState {
            goodput: known_bytes_per_sec.map(Goodput::knowing).unwrap_or_default(),
            tried: BTreeMap::new(),
            open_bytes: 0,
            round_trip: Duration::ZERO,
            round_trip_at: None,
        };
        Self { wanted, begun: Instant::now(), state: Mutex::new(state), left: Notify::new(), flow }
    }

    /// True while data may be compressed, which takes memory besides them.
    pub(crate) fn may_compress(&self) -> bool {
        !self.wanted.is_nothing() && (self.wanted.always || self.link().is_some())
    }

    /// Whether the client can undo anything that chunks are packed by.
    pub(crate) fn may_pass(&self) -> bool {
        [Packing::Zlib, Packing::Gzip, Packing::Zstd].into_iter().any(|packing| self.passes(packing))
    }

    /// Whether the client can undo what packed a stored chunk.
    pub(crate) fn passes(&self, packing: Packing) -> bool {
        match packing {
            Packing::Zlib | Packing::Gzip => self.wanted.deflate,
            Packing::Zstd => self.wanted.algorithms.contains(&Algorithm::Zstd),
        }
    }

    /// Bytes per second of a link that is worth compressing for; none while it is not known.
    fn link(&self) -> Option<f64> {
        self.state.lock().goodput.bytes_per_sec().filter(|known| *known < FASTEST_BYTES_PER_SEC)
    }

    /// Data that are decided about together: an item. `most` where there is nothing to be decided.
    pub(crate) fn part_bytes(&self, kind: ArrayKey, most: usize) -> usize {
        if self.wanted.is_nothing() || self.is_plain(kind) {
            return most;
        }
        let unknown = self.is_measured() && self.state.lock().goodput.bytes_per_sec().is_none();
        if unknown { UNKNOWN_PART_BYTES } else { PART_BYTES }
    }

    /// Whether data of this array were seen to be incompressible: nothing about them depends on the link.
    fn is_plain(&self, kind: ArrayKey) -> bool {
        self.is_measured() && self.state.lock().tried.get(&kind).is_some_and(SampledMethods::is_plain)
    }

    fn is_measured(&self) -> bool {
        !self.wanted.is_nothing() && !self.wanted.always
    }

    /// Samples data that are about to be sent, whenever a sample of their array is due.
    ///
    /// # Errors
    /// When no thread takes the work.
    ///
    /// # Cancel safety
    /// Safe: a sample may be lost.
    pub(crate) async fn look(&self, kind: ArrayKey, data: &Bytes, priority: Priority) -> Result<()> {
        if !self.is_measured() || data.len() < LEAST_BYTES {
            return Ok(());
        }
        if !self.tried(kind, |tried| tried.sampling.pass(data.len() as u64)) {
            return Ok(());
        }
        // Every way may help over a link that nothing is known of.
        let link_bytes_per_sec = self.state.lock().goodput.bytes_per_sec().unwrap_or_default();
        let (data, algorithms) = (data.clone(), self.wanted.algorithms.clone());
        let try_all = move |_: &store::Cancel| {
            let sample = samples::stretches(&data, kind.item_bytes);
            Ok(samples::try_all(&sample, kind.width(), &algorithms, link_bytes_per_sec))
        };
        let found = store::on_pool(priority, try_all).await?;
        self.tried(kind, |tried| tried.see(found));
        Ok(())
    }

    /// Waits while the queue of compressible data is full, because how to send them will be known better soon. Data that leave
    /// wake one waiting caller, which wakes the next if there is room: a thousand waiting cost no more than one.
    ///
    /// # Cancel safety
    /// Safe: nothing is held.
    pub(crate) async fn room(&self, kind: ArrayKey) {
        let mut has_waited = false;
        while self.is_measured() && !self.is_plain(kind) {
            let left = self.left.notified();
            if self.has_room() {
                break;
            }
            left.await;
            has_waited = true;
        }
        if has_waited {
            self.left.notify_one();
        }
    }

    fn has_room(&self) -> bool {
        let now = Instant::now();
        let mut state = self.state.lock();
        if state.round_trip_at.is_none_or(|at| now - at >= ROUND_TRIP_EVERY) {
            let told = self.flow.as_ref().and_then(|flow| flow.statistics().rtt);
            state.round_trip = told.unwrap_or_default();
            state.round_trip_at = Some(now);
        }
        state.goodput.has_room(state.open_bytes, state.round_trip)
    }

    /// Returns the same bytes, wrapped so that the time at which they leave is measured.
    pub(crate) fn measured(self: &Arc<Self>, kind: ArrayKey, bytes: Bytes) -> Bytes {
        if !self.is_measured() || bytes.len() < LEAST_BYTES {
            return bytes;
        }
        let open_bytes = if self.is_plain(kind) { 0 } else { bytes.len() as u64 };
        let mut state = self.state.lock();
        state.goodput.queue(bytes.len() as u64);
        state.open_bytes += open_bytes;
        drop(state);
        Bytes::from_owner(MeasuredBytes { bytes, open_bytes, compression: Arc::clone(self) })
    }

    /// How to compress these data, if it is worth it.
    pub(crate) fn way(&self, kind: ArrayKey, data: &Bytes) -> Option<Way> {
        if self.wanted.is_nothing() || data.len() < LEAST_BYTES {
            return None;
        }
        if self.wanted.always {
            let forced = |&algorithm| Way { algorithm, level: DEFAULT_LEVEL, width: kind.width() };
            return self.wanted.algorithms.last().map(forced);
        }
        let link_bytes_per_sec = self.link()?;
        self.tried(kind, |tried| tried.choose(link_bytes_per_sec))
    }

    /// Compresses on the storage threads; `None` where nothing is won. What it took counts for the next choice.
    ///
    /// # Errors
    /// When no thread takes the work.
    ///
    /// # Cancel safety
    /// Dropping it withdraws the work.
    pub(crate) async fn compress(
        &self,
        kind: ArrayKey,
        way: Way,
        data: Bytes,
        priority: Priority,
    ) -> Result<Option<(Compressed, Vec<u8>)>> {
        let data_bytes = data.len();
        let compress = move |_: &store::Cancel| {
            let start = Instant::now();
            Ok((way.compress(&data), start.elapsed()))
        };
        let (done, took) = store::on_pool(priority, compress).await?;
        let carried_bytes = done.as_ref().map_or(data_bytes, |(_, carried)| carried.len());
        self.tried(kind, |tried| tried.learn(way, data_bytes, carried_bytes, took));
        Ok(done)
    }

    fn tried<T>(&self, kind: ArrayKey, f: impl FnOnce(&mut SampledMethods) -> T) -> T {
        let mut state = self.state.lock();
        if state.tried.len() >= MAX_ARRAYS && !state.tried.contains_key(&kind) {
            state.tried.pop_first();
        }
        f(state.tried.entry(kind).or_default())
    }
}

impl SampledMethods {
    /// Whether a sample was taken and no way made it clearly smaller.
    fn is_plain(&self) -> bool {
        let sampled: Vec<Sampled> = self.ways.iter().map(|(_, sampled)| *sampled).collect();
        !sampled.is_empty() && !is_compressible(&sampled)
    }

    /// A sample counts as much as all that was known.
    fn see(&mut self, found: Vec<(Way, Sampled)>) {
        let known = std::mem::take(&mut self.ways);
        let before = |way: Way| known.iter().find(|(known, _)| *known == way).map(|(_, sampled)| *sampled);
        let joined = found
            .into_iter()
            .map(|(way, found)| (way, before(way).map_or(found, |known| known.towards(found, 0.5))));
        self.ways = joined.collect();
    }

    fn choose(&mut self, link_bytes_per_sec: f64) -> Option<Way> {
        let sampled: Vec<Sampled> = self.ways.iter().map(|(_, sampled)| *sampled).collect();
        let current = self.ways.iter().position(|(way, _)| Some(*way) == self.current);
        let chosen = choose(link_bytes_per_sec, &sampled, current).and_then(|place| self.ways.get(place));
        let way = chosen.map(|(way, _)| *way);
        if self.current != way {
            tracing::info!(link_bytes_per_sec, ?chosen, "compression on the way");
            self.current = way;
        }
        way
    }

    /// Learns from the compression of a piece: the new result has a weight of one quarter, what was known the rest.
    /// The results of the other ways are corrected by the same change.
    fn learn(&mut self, way: Way, data_bytes: usize, carried_bytes: usize, took: Duration) {
        let Some(before) = self.ways.iter().find(|(known, _)| *known == way).map(|(_, sampled)| *sampled)
        else {
            return;
        };
        let found = samples::sampled(data_bytes, carried_bytes, took, before.restore_bytes_per_sec);
        let after = before.towards(found, 0.25);
        self.ways.iter_mut().for_each(|(_, sampled)| *sampled = sampled.along_with(before, after));
    }
}

/// Bytes under way. Dropped when they have left for the kernel, or are not wanted any more.
struct MeasuredBytes {
    bytes: Bytes,
    /// Number of them that could have been compressed.
    open_bytes: u64,
    compression: Arc<ResponseCompression>,
}

impl AsRef<[u8]> for MeasuredBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for MeasuredBytes {
    fn drop(&mut self) {
        let ResponseCompression { begun, state, left, .. } = &*self.compression;
        let mut state = state.lock();
        state.goodput.leave(begun.elapsed(), self.bytes.len() as u64);
        state.open_bytes -= self.open_bytes;
        drop(state);
        left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::join_all;

    use super::*;

    fn hello() -> Hello {
        Hello {
            lowest_version: 1,
            highest_version: 1,
            capabilities: vec![LZ4.into(), ZSTD.into()],
            token: String::new(),
            credit_bytes: 1 << 20,
            program: "a test".into(),
        }
    }

    fn kind() -> ArrayKey {
        ArrayKey { dataset: DatasetId(7), array: 0, item_bytes: 1 }
    }

    /// Noise, of which nothing is made smaller.
    fn noise(bytes: usize) -> Bytes {
        let mut state = 1_u64;
        let next = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            state.to_le_bytes()[7]
        };
        std::iter::repeat_with(next).take(bytes).collect()
    }

    #[tokio::test]
    async fn what_cannot_be_compressed_is_never_held_up_and_goes_in_large_pieces() {
        const MOST: usize = 4 << 20;
        let compression = Arc::new(ResponseCompression::new(&hello(), None, None));
        assert_eq!(compression.part_bytes(kind(), MOST), UNKNOWN_PART_BYTES, "nothing is known yet");
        compression.look(kind(), &noise(1 << 20), Priority::NORMAL).await.unwrap();
        assert_eq!(compression.part_bytes(kind(), MOST), MOST);
        let mut queued = Vec::new();
        for _ in 0..100 {
            assert!(compression.room(kind()).now_or_never().is_some(), "after {} pieces", queued.len());
            queued.push(compression.measured(kind(), Bytes::from(vec![0; 64 << 10])));
        }
        // What may be compressed has room of its own beside it.
        let other = ArrayKey { array: 1, ..kind() };
        compression.look(other, &Bytes::from(vec![0; 1 << 20]), Priority::NORMAL).await.unwrap();
        assert_eq!(compression.part_bytes(other, MOST), UNKNOWN_PART_BYTES);
        assert!(compression.room(other).now_or_never().is_some());
    }

    #[tokio::test]
    async fn who_waits_for_room_is_not_forgotten_whoever_gives_up_meanwhile() {
        let compression = Arc::new(ResponseCompression::new(&hello(), None, None));
        let mut queued = Vec::new();
        while compression.room(kind()).now_or_never().is_some() {
            queued.push(compression.measured(kind(), Bytes::from(vec![0; 64 << 10])));
        }
        assert!(queued.len() > 4, "{}", queued.len());
        let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(compression.room(kind()))).collect();
        assert!(waiting.iter_mut().all(|room| room.now_or_never().is_none()));
        // Some leave, and those that are woken first are dropped before they look.
        drop(queued.split_off(queued.len() / 2));
        drop(waiting.drain(..50));
        drop(queued);
        let all = tokio::time::timeout(Duration::from_secs(10), join_all(waiting)).await;
        assert_eq!(all.map(|all| all.len()).ok(), Some(50));
    }
}
