//! Test volume with levels, whose blocks can be held back, and a test participant.

#![allow(clippy::allow_attributes, dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use array::conformance::{MemorySource, one_array};
use array::{
    BlockKey, Completion, Completions, Dataset, Error, Level, LevelOrigin, Priority, ReadRequest, Region,
    Result, Source, Urgency, Want, want,
};
use bytes::Bytes;
use corridor_stream::{Participant, Session};
use futures::StreamExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use session::{FrameInfo, Item};
use tokio::sync::watch;
use view::View;

/// Timeout of waits, on the paused clock.
const PATIENCE: Duration = Duration::from_secs(120);

type Gate = Arc<dyn Fn(&BlockKey) -> bool + Send + Sync>;

/// Volume with a ball, brighter inside, in `times` sizes; levels are halved down to one block.
pub(crate) struct Pyramid(Arc<Inner>);

struct Inner {
    memory: MemorySource,
    gate: watch::Sender<Gate>,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    asked: Vec<(BlockKey, Priority)>,
    waiting: Vec<std::sync::Weak<Want>>,
    bytes_now: u64,
    most_bytes: u64,
}

impl Pyramid {
    pub(crate) fn new(side: u64, block: u64, times: u64) -> Self {
        Self::of_generation(0, side, block, times)
    }

    pub(crate) fn of_generation(generation: u32, side: u64, block: u64, times: u64) -> Self {
        let mut dataset =
            one_array("|u1".parse().unwrap(), &[times, side, side, side], &[1, block, block, block]);
        dataset.generation = array::Generation(generation);
        let finest = dataset.arrays[0].levels[0].clone();
        let mut elements = vec![ball(side, times)];
        let mut n = side;
        let mut scale = 1.0;
        while n > block {
            n /= 2;
            scale *= 2.0;
            let shift = [(scale - 1.0) / 2.0; 3];
            dataset.arrays[0].levels.push(Level {
                shape: vec![times, n, n, n],
                block: vec![1, block, block, block],
                chunk: None,
                origin: LevelOrigin::Mean,
                factor: vec![1.0, scale, scale, scale],
                world_from_voxel: finest.world_from_voxel.coarsened([scale; 3], shift),
            });
            elements.push(ball(n, times));
        }
        Self::of(dataset, vec![elements])
    }

    /// Adds a second array `heat`, in blocks of half the size, whose values grow with x and time.
    pub(crate) fn with_heat(side: u64, block: u64, times: u64) -> Self {
        let mut dataset = (*Self::new(side, block, times).dataset()).clone();
        let balls = dataset.arrays[0].levels.iter().map(|level| ball(level.shape[1], times)).collect();
        let mut heat = dataset.arrays[0].clone();
        heat.name = "heat".into();
        heat.dtype = "<f4".parse().unwrap();
        heat.decoding.output = heat.dtype;
        let mut elements = Vec::new();
        for level in &mut heat.levels {
            level.block = vec![1, block / 2, block / 2, block / 2];
            elements.push(gradient(&level.shape));
        }
        dataset.arrays.push(heat);
        Self::of(dataset, vec![balls, elements])
    }

    fn of(dataset: Dataset, elements: Vec<Vec<Bytes>>) -> Self {
        let memory = MemorySource::new(dataset, elements).unwrap();
        let open: Gate = Arc::new(|_| true);
        Self(Arc::new(Inner { memory, gate: watch::Sender::new(open), log: Mutex::default() }))
    }

    pub(crate) fn source(&self) -> Arc<dyn Source> {
        Arc::new(Gated(Arc::clone(&self.0)))
    }

    pub(crate) fn dataset(&self) -> Arc<Dataset> {
        self.0.memory.dataset()
    }

    pub(crate) fn coarsest(&self) -> u8 {
        u8::try_from(self.dataset().arrays[0].levels.len() - 1).unwrap()
    }

    /// Returns the block in the middle of level 0 at time 0.
    pub(crate) fn finest_key(&self) -> BlockKey {
        let grid = self.dataset().arrays[0].levels[0].grid();
        let middle =
            self.dataset().arrays[0].levels[0].block_index(&[0, grid[1] / 2, grid[2] / 2, grid[3] / 2]);
        self.0.memory.key(middle)
    }

    pub(crate) fn time_of(&self, key: &BlockKey) -> u64 {
        let array = &self.dataset().arrays[key.array as usize];
        array.levels[usize::from(key.level)].grid_position(key.index).unwrap()[0]
    }

    /// Answers blocks that satisfy `gate`; all others wait.
    pub(crate) fn let_through(&self, gate: impl Fn(&BlockKey) -> bool + Send + Sync + 'static) {
        self.0.gate.send_replace(Arc::new(gate));
    }

    pub(crate) fn fail(&self, key: BlockKey, error: &Error, times: usize) {
        for _ in 0..times {
            self.0.memory.fail_once(key, error.clone());
        }
    }

    /// Returns the requested blocks, without prefetched ones.
    pub(crate) fn asked(&self) -> Vec<BlockKey> {
        self.asked_by(|priority| priority.tier > Priority::PREFETCH.tier)
    }

    /// Returns the prefetched blocks.
    pub(crate) fn asked_ahead(&self) -> Vec<BlockKey> {
        self.asked_by(|priority| priority.tier == Priority::PREFETCH.tier)
    }

    fn asked_by(&self, is_so: impl Fn(Priority) -> bool) -> Vec<BlockKey> {
        let log = self.0.log.lock().unwrap();
        log.asked.iter().filter(|(_, priority)| is_so(*priority)).map(|(key, _)| *key).collect()
    }

    /// Returns the requested blocks that are neither answered nor cancelled.
    pub(crate) fn waiting(&self) -> Vec<BlockKey> {
        self.urgencies().into_keys().collect()
    }

    pub(crate) fn urgencies(&self) -> BTreeMap<BlockKey, Priority> {
        let log = self.0.log.lock().unwrap();
        let alive = log.waiting.iter().filter_map(std::sync::Weak::upgrade);
        alive.filter(|w| !w.is_cancelled()).map(|w| (w.key(), w.urgency().priority)).collect()
    }

    pub(crate) fn most_bytes_at_once(&self) -> u64 {
        self.0.log.lock().unwrap().most_bytes
    }
}

/// Returns the elements of one level at all times.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small"
)]
fn ball(n: u64, times: u64) -> Bytes {
    let at = |i: u64| (i as f64 + 0.5) / n as f64 - 0.5;
    let mut bytes = Vec::new();
    for t in 0..times {
        let radius = 0.45 - 0.1 * t as f64;
        for z in 0..n {
            for y in 0..n {
                let row = at(z).powi(2) + at(y).powi(2);
                bytes.extend((0..n).map(|x| {
                    let depth = radius - (row + at(x).powi(2)).sqrt();
                    (depth * 500.0).clamp(0.0, 255.0) as u8
                }));
            }
        }
    }
    bytes.into()
}

/// Returns values from 0 to 100 along x, 50 more at each time.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small")]
fn gradient(shape: &[u64]) -> Bytes {
    let [times, n, _, _] = shape else { panic!("{shape:?}") };
    let value = |t: u64, x: u64| (100.0 * (x as f64 + 0.5) / *n as f64 + 50.0 * t as f64) as f32;
    let rows = (0..*times).flat_map(|t| (0..n * n).flat_map(move |_| (0..*n).map(move |x| value(t, x))));
    rows.flat_map(f32::to_le_bytes).collect::<Vec<u8>>().into()
}

/// Source that can be replaced by another one, like a file that is rewritten.
#[derive(Clone)]
pub(crate) struct Changing {
    described: Arc<Mutex<Arc<dyn Source>>>,
    data: Arc<Mutex<Arc<dyn Source>>>,
}

impl Changing {
    pub(crate) fn new(first: Arc<dyn Source>) -> Self {
        Self { described: Arc::new(Mutex::new(Arc::clone(&first))), data: Arc::new(Mutex::new(first)) }
    }

    pub(crate) fn become_source(&self, next: Arc<dyn Source>) {
        *self.described.lock().unwrap() = Arc::clone(&next);
        self.change_unseen(next);
    }

    /// Replaces the data, but not the description.
    pub(crate) fn change_unseen(&self, next: Arc<dyn Source>) {
        *self.data.lock().unwrap() = next;
    }

    fn now(&self) -> Arc<dyn Source> {
        Arc::clone(&self.data.lock().unwrap())
    }
}

impl Source for Changing {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        self.described.lock().unwrap().describe()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        self.now().blocks(wants)
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        self.now().read(request, into)
    }
}

struct Gated(Arc<Inner>);

impl Gated {
    async fn one(inner: Arc<Inner>, want: Arc<Want>) -> Option<Completion> {
        let mut gate = inner.gate.subscribe();
        let key = want.key();
        let opened = async {
            while !(Arc::clone(&*gate.borrow_and_update()))(&key) {
                gate.changed().await.unwrap();
            }
        };
        tokio::select! {
            () = want.cancelled() => return None,
            () = opened => {}
        }
        let (inner_want, _handle) = self::want(key, Urgency::of(Priority::NORMAL));
        inner.memory.blocks(vec![inner_want]).next().await
    }
}

impl Source for Gated {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        self.0.memory.describe()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let wants: Vec<Arc<Want>> = wants.into_iter().map(Arc::new).collect();
        {
            let log = &mut *self.0.log.lock().unwrap();
            log.asked.extend(wants.iter().map(|w| (w.key(), w.urgency().priority)));
            log.waiting.retain(|w| w.strong_count() > 0);
            log.waiting.extend(wants.iter().map(Arc::downgrade));
            let dataset = self.0.memory.dataset();
            let alive = log.waiting.iter().filter_map(std::sync::Weak::upgrade).filter(|w| !w.is_cancelled());
            // A participant with a view of other data may request a level that does not exist.
            let size = |w: Arc<Want>| {
                let info = &dataset.arrays[w.key().array as usize];
                let level = info.levels.get(usize::from(w.key().level));
                level.map_or(0, |l| l.block.iter().product::<u64>() * info.dtype.size_bytes() as u64)
            };
            log.bytes_now = alive.map(size).sum();
            log.most_bytes = log.most_bytes.max(log.bytes_now);
        }
        let inner = Arc::clone(&self.0);
        let each = wants.into_iter().map(move |w| Self::one(Arc::clone(&inner), w));
        each.collect::<futures::stream::FuturesUnordered<_>>().filter_map(std::future::ready).boxed()
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        self.0.memory.read(request, into)
    }
}

/// Test participant: receives items and acknowledges frames.
pub(crate) struct Viewer {
    participant: Participant,
    /// Received items, without frames.
    pub(crate) items: Vec<Item>,
    pub(crate) view: View,
    pub(crate) frames: usize,
    /// Bytes of the last frame.
    pub(crate) bulk: Vec<u8>,
    pub(crate) acknowledges: bool,
    seq: u64,
}

impl Viewer {
    pub(crate) fn new(participant: Participant) -> Self {
        Self {
            participant,
            items: Vec::new(),
            view: View::default(),
            frames: 0,
            bulk: Vec::new(),
            acknowledges: true,
            // Higher than the numbers that the node assigns, so that tests recognize their own changes in frames.
            seq: 99,
        }
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn say(&self, note: &[u8]) {
        self.participant.note(note);
    }

    pub(crate) fn change(&mut self, view: &Value, moving: bool) {
        self.seq += 1;
        let note = json!({"kind": "view", "seq": self.seq, "view": view, "moving": moving});
        self.say(note.to_string().as_bytes());
    }

    pub(crate) fn show(&self, frame: u64) {
        self.say(json!({"kind": "shown", "frame": frame}).to_string().as_bytes());
    }

    /// Takes one item.
    async fn take(&mut self) -> Item {
        let next = tokio::time::timeout(PATIENCE, self.participant.next()).await;
        let out = next
            .unwrap_or_else(|_| panic!("no item arrived after {} frames and {:#?}", self.frames, self.items))
            .expect("open");
        match &out.item {
            Item::Frame(info) => {
                self.frames += 1;
                self.bulk = out.bulk.to_vec();
                if self.acknowledges {
                    self.show(info.id);
                }
            }
            other => {
                if let Item::Joined { view, .. } | Item::View { view, .. } = other {
                    self.view = view.clone();
                }
                self.items.push(other.clone());
            }
        }
        out.item
    }

    /// Changes the view twenty times and checks that the session keeps to its limit; returns the largest sum of
    /// that limit and the bytes in flight.
    pub(crate) async fn most_bytes_of(&mut self, session: &Session) -> u64 {
        let mut worst = 0;
        for time in 0..20 {
            self.change(&json!({"background": [time, 0, 0]}), true);
            self.frame(|_| true).await;
            let load = session.load();
            assert!(load.pool_bytes <= load.pool_limit_bytes);
            worst = worst.max(load.pool_limit_bytes as u64 + load.bytes_in_flight);
        }
        worst
    }

    /// Returns the next frame that satisfies `is_it`.
    pub(crate) async fn frame(&mut self, is_it: impl Fn(&FrameInfo) -> bool) -> FrameInfo {
        loop {
            if let Item::Frame(info) = self.take().await
                && is_it(&info)
            {
                return info;
            }
        }
    }

    pub(crate) async fn message(&mut self) -> String {
        loop {
            if let Item::Message { text, .. } = self.take().await {
                return text;
            }
        }
    }

    /// Receives items for a while.
    pub(crate) async fn take_for(&mut self, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while tokio::time::timeout_at(end, self.take()).await.is_ok() {}
    }

    /// Returns the number of frames that arrive in ten seconds.
    pub(crate) async fn silence(&mut self) -> usize {
        let before = self.frames;
        self.take_for(Duration::from_secs(10)).await;
        self.frames - before
    }
}
