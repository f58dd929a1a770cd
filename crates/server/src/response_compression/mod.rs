//! Compression of the responses to one client: the speed of the link is measured, and data are compressed if they then
//! arrive sooner. The decision is made by [`control::compression`]; this module adds clock, threads and the data.
//!
//! A small sample, taken in memory, shows whether data can be compressed. Incompressible data are sent without
//! measurements, in pieces as large as the link takes. Small responses are neither measured nor compressed.

mod samples;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use array::{DatasetId, Packing, Priority, Result};
use bytes::Bytes;
use control::compression::{
    FASTEST_BYTES_PER_SEC, Goodput, SampleSchedule, Sampled, choose, is_compressible,
};
use link::Flow;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use wire::Hello;
use wire::compression::{Algorithm, COMPRESS, Compressed, CompressionMethod, DEFLATE, LZ4, ZSTD};

/// Minimum number of bulk bytes that are measured or compressed.
pub(crate) const MIN_COMPRESSED_BYTES: usize = 16 << 10;
/// Number of bytes per decision while the speed of the link is not known.
const UNKNOWN_PART_BYTES: usize = 64 << 10;
/// Number of bytes per decision if the speed of the link is known: enough to compress well.
const PART_BYTES: usize = 1 << 20;
/// Maximum number of arrays of which samples are kept.
const MAX_ARRAYS: usize = 256;
/// Interval at which the round-trip time of the path is read.
const ROUND_TRIP_INTERVAL: Duration = Duration::from_millis(100);
/// Compression level if the client requires compression.
const DEFAULT_LEVEL: u8 = 3;

/// Array of which a sample is taken; the sample applies to all data of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArrayKey {
    pub(crate) dataset: DatasetId,
    pub(crate) array: u32,
    /// Size of an element, in bytes.
    pub(crate) item_bytes: usize,
}

impl ArrayKey {
    fn width(self) -> u8 {
        u8::try_from(self.item_bytes).unwrap_or(1)
    }
}

/// Compression that a client can decompress.
#[derive(Debug, PartialEq)]
struct AcceptedCompression {
    /// Algorithms that may be used, the fastest first.
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

    fn is_empty(&self) -> bool {
        self.algorithms.is_empty()
    }
}

/// Compression methods that were tried with the data of one array.
#[derive(Default)]
struct SampledMethods {
    sampling: SampleSchedule,
    methods: Vec<(CompressionMethod, Sampled)>,
    /// By name: the positions in `methods` change with each sample.
    current: Option<CompressionMethod>,
}

struct CompressionState {
    goodput: Goodput,
    tried: BTreeMap<ArrayKey, SampledMethods>,
    /// Number of queued bytes that could have been compressed.
    open_bytes: u64,
    round_trip: Duration,
    round_trip_at: Option<Instant>,
}

/// Compression of the responses to one client.
pub(crate) struct ResponseCompression {
    accepted: AcceptedCompression,
    begun: Instant,
    state: Mutex<CompressionState>,
    left: Notify,
    flow: Option<Arc<dyn Flow>>,
}

impl ResponseCompression {
    /// Creates the state for a client that sent this hello message, over a link with a remembered speed, if any, and
    /// statistics, if any.
    pub(crate) fn new(hello: &Hello, known_bytes_per_sec: Option<f64>, flow: Option<Arc<dyn Flow>>) -> Self {
        let accepted = AcceptedCompression::by(hello);
        let state = CompressionState {
            goodput: known_bytes_per_sec.map(Goodput::knowing).unwrap_or_default(),
            tried: BTreeMap::new(),
            open_bytes: 0,
            round_trip: Duration::ZERO,
            round_trip_at: None,
        };
        Self { accepted, begun: Instant::now(), state: Mutex::new(state), left: Notify::new(), flow }
    }

    /// Returns true while data may be compressed, which needs memory for a second copy.
    pub(crate) fn may_compress(&self) -> bool {
        !self.accepted.is_empty() && (self.accepted.always || self.link().is_some())
    }

    /// Returns whether the client can decompress any stored form of chunks.
    pub(crate) fn accepts_stored_chunks(&self) -> bool {
        [Packing::Zlib, Packing::Gzip, Packing::Zstd].into_iter().any(|packing| self.accepts(packing))
    }

    /// Returns whether the client can decompress a stored chunk of this form.
    pub(crate) fn accepts(&self, packing: Packing) -> bool {
        match packing {
            Packing::Zlib | Packing::Gzip => self.accepted.deflate,
            Packing::Zstd => self.accepted.algorithms.contains(&Algorithm::Zstd),
        }
    }

    /// Returns the rate of a link for which compression may pay, in bytes per second; `None` while it is not known.
    fn link(&self) -> Option<f64> {
        self.state.lock().goodput.bytes_per_sec().filter(|known| *known < FASTEST_BYTES_PER_SEC)
    }

    /// Returns the number of bytes per decision, which is the size of an item; `most` if there is no decision to make.
    pub(crate) fn part_bytes(&self, kind: ArrayKey, most: usize) -> usize {
        if self.accepted.is_empty() || self.is_incompressible(kind) {
            return most;
        }
        let unknown = self.is_measured() && self.state.lock().goodput.bytes_per_sec().is_none();
        if unknown { UNKNOWN_PART_BYTES } else { PART_BYTES }
    }

    /// Returns whether samples showed that data of this array are incompressible, whatever the link.
    fn is_incompressible(&self, kind: ArrayKey) -> bool {
        self.is_measured()
            && self.state.lock().tried.get(&kind).is_some_and(SampledMethods::is_incompressible)
    }

    fn is_measured(&self) -> bool {
        !self.accepted.is_empty() && !self.accepted.always
    }

    /// Samples data that are about to be sent, if a sample of their array is due.
    ///
    /// # Errors
    /// The error of the storage threads if they do not accept the work.
    ///
    /// # Cancel safety
    /// Safe: a sample may be lost.
    pub(crate) async fn sample(&self, kind: ArrayKey, data: &Bytes, priority: Priority) -> Result<()> {
        if !self.is_measured() || data.len() < MIN_COMPRESSED_BYTES {
            return Ok(());
        }
        if !self.tried(kind, |tried| tried.sampling.pass(data.len() as u64)) {
            return Ok(());
        }
        // Any method may help over a link of unknown speed.
        let link_bytes_per_sec = self.state.lock().goodput.bytes_per_sec().unwrap_or_default();
        let (data, algorithms) = (data.clone(), self.accepted.algorithms.clone());
        let try_all = move |_: &store::CancelFlag| {
            let sample = samples::stretches(&data, kind.item_bytes);
            Ok(samples::try_all(&sample, kind.width(), &algorithms, link_bytes_per_sec))
        };
        let found = store::on_pool(priority, try_all).await?;
        self.tried(kind, |tried| tried.add_sample(found));
        Ok(())
    }

    /// Waits while the queue of compressible data is full, because the best method will be known better soon. Data that
    /// are sent wake one waiting caller, which wakes the next if there is room: a thousand waiting callers cost no more
    /// than one.
    pub(crate) async fn room(&self, kind: ArrayKey) {
        let mut has_waited = false;
        while self.is_measured() && !self.is_incompressible(kind) {
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
        if state.round_trip_at.is_none_or(|at| now - at >= ROUND_TRIP_INTERVAL) {
            let rtt = self.flow.as_ref().and_then(|flow| flow.statistics().rtt);
            state.round_trip = rtt.unwrap_or_default();
            state.round_trip_at = Some(now);
        }
        state.goodput.has_room(state.open_bytes, state.round_trip)
    }

    /// Returns the same bytes, wrapped so that the time at which they leave is measured.
    pub(crate) fn measured(self: &Arc<Self>, kind: ArrayKey, bytes: Bytes) -> Bytes {
        if !self.is_measured() || bytes.len() < MIN_COMPRESSED_BYTES {
            return bytes;
        }
        let open_bytes = if self.is_incompressible(kind) { 0 } else { bytes.len() as u64 };
        let mut state = self.state.lock();
        state.goodput.queue(bytes.len() as u64);
        state.open_bytes += open_bytes;
        drop(state);
        Bytes::from_owner(MeasuredBytes { bytes, open_bytes, compression: Arc::clone(self) })
    }

    /// Returns the best method to compress these data, if any pays.
    pub(crate) fn best_method(&self, kind: ArrayKey, data: &Bytes) -> Option<CompressionMethod> {
        if self.accepted.is_empty() || data.len() < MIN_COMPRESSED_BYTES {
            return None;
        }
        if self.accepted.always {
            let forced =
                |&algorithm| CompressionMethod { algorithm, level: DEFAULT_LEVEL, width: kind.width() };
            return self.accepted.algorithms.last().map(forced);
        }
        let link_bytes_per_sec = self.link()?;
        self.tried(kind, |tried| tried.choose(link_bytes_per_sec))
    }

    /// Compresses on the storage threads; `None` if the result is not smaller. The time it takes affects the next
    /// decision.
    ///
    /// # Errors
    /// The error of the storage threads if they do not accept the work.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws the work.
    pub(crate) async fn compress(
        &self,
        kind: ArrayKey,
        method: CompressionMethod,
        data: Bytes,
        priority: Priority,
    ) -> Result<Option<(Compressed, Vec<u8>)>> {
        let data_bytes = data.len();
        let compress = move |_: &store::CancelFlag| {
            let start = Instant::now();
            Ok((method.compress(&data), start.elapsed()))
        };
        let (done, took) = store::on_pool(priority, compress).await?;
        let carried_bytes = done.as_ref().map_or(data_bytes, |(_, carried)| carried.len());
        self.tried(kind, |tried| tried.learn(method, data_bytes, carried_bytes, took));
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
    /// Returns whether a sample was taken and no method made it clearly smaller.
    fn is_incompressible(&self) -> bool {
        let sampled: Vec<Sampled> = self.methods.iter().map(|(_, sampled)| *sampled).collect();
        !sampled.is_empty() && !is_compressible(&sampled)
    }

    /// Adds a sample, with the same weight as all former ones.
    fn add_sample(&mut self, found: Vec<(CompressionMethod, Sampled)>) {
        let known = std::mem::take(&mut self.methods);
        let before = |method: CompressionMethod| {
            known.iter().find(|(known, _)| *known == method).map(|(_, sampled)| *sampled)
        };
        let joined = found
            .into_iter()
            .map(|(method, found)| (method, before(method).map_or(found, |known| known.towards(found, 0.5))));
        self.methods = joined.collect();
    }

    fn choose(&mut self, link_bytes_per_sec: f64) -> Option<CompressionMethod> {
        let sampled: Vec<Sampled> = self.methods.iter().map(|(_, sampled)| *sampled).collect();
        let current = self.methods.iter().position(|(method, _)| Some(*method) == self.current);
        let chosen = choose(link_bytes_per_sec, &sampled, current).and_then(|place| self.methods.get(place));
        let method = chosen.map(|(method, _)| *method);
        if self.current != method {
            tracing::info!(link_bytes_per_sec, ?chosen, "compression of responses changed");
            self.current = method;
        }
        method
    }

    /// Updates the estimate from the compression of a piece: the new result has a weight of one quarter, the former
    /// estimate the rest. The estimates of the other methods are scaled by the same change.
    fn learn(&mut self, method: CompressionMethod, data_bytes: usize, carried_bytes: usize, took: Duration) {
        let Some(before) =
            self.methods.iter().find(|(known, _)| *known == method).map(|(_, sampled)| *sampled)
        else {
            return;
        };
        let found = samples::sampled(data_bytes, carried_bytes, took, before.restore_bytes_per_sec);
        let after = before.towards(found, 0.25);
        self.methods.iter_mut().for_each(|(_, sampled)| *sampled = sampled.along_with(before, after));
    }
}

/// Bytes in flight. Dropped when they are passed to the kernel, or withdrawn.
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

    /// Returns noise, which is incompressible.
    fn noise(bytes: usize) -> Bytes {
        let mut state = 1_u64;
        let next = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            state.to_le_bytes()[7]
        };
        std::iter::repeat_with(next).take(bytes).collect()
    }

    #[tokio::test]
    async fn incompressible_data_do_not_wait_and_are_sent_in_large_pieces() {
        const MOST: usize = 4 << 20;
        let compression = Arc::new(ResponseCompression::new(&hello(), None, None));
        assert_eq!(compression.part_bytes(kind(), MOST), UNKNOWN_PART_BYTES, "nothing is known yet");
        compression.sample(kind(), &noise(1 << 20), Priority::NORMAL).await.unwrap();
        assert_eq!(compression.part_bytes(kind(), MOST), MOST);
        let mut queued = Vec::new();
        for _ in 0..100 {
            assert!(compression.room(kind()).now_or_never().is_some(), "after {} pieces", queued.len());
            queued.push(compression.measured(kind(), Bytes::from(vec![0; 64 << 10])));
        }
        // Compressible data are not delayed by them.
        let other = ArrayKey { array: 1, ..kind() };
        compression.sample(other, &Bytes::from(vec![0; 1 << 20]), Priority::NORMAL).await.unwrap();
        assert_eq!(compression.part_bytes(other, MOST), UNKNOWN_PART_BYTES);
        assert!(compression.room(other).now_or_never().is_some());
    }

    #[tokio::test]
    async fn waiting_callers_are_woken_although_others_have_given_up() {
        let compression = Arc::new(ResponseCompression::new(&hello(), None, None));
        let mut queued = Vec::new();
        while compression.room(kind()).now_or_never().is_some() {
            queued.push(compression.measured(kind(), Bytes::from(vec![0; 64 << 10])));
        }
        assert!(queued.len() > 4, "{}", queued.len());
        let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(compression.room(kind()))).collect();
        assert!(waiting.iter_mut().all(|room| room.now_or_never().is_none()));
        // Some data are sent, and the callers that this wakes are dropped before they are polled.
        drop(queued.split_off(queued.len() / 2));
        drop(waiting.drain(..50));
        drop(queued);
        let all = tokio::time::timeout(Duration::from_secs(10), join_all(waiting)).await;
        assert_eq!(all.map(|all| all.len()).ok(), Some(50));
    }
}
