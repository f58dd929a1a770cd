//! Volumes that participants view: each has one pool of blocks, shared by its subscribers.
//!
//! All pools of a session share one memory budget: it is divided evenly among the subscribers, and a pool may
//! hold the shares of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, Weak};

use array::{Block, BlockKey, Dataset, Error, ErrorKind, Result};
use render::{BlockPool, Demand, Demanded, Inserted, Snapshot, VolumeView};
use session::{DrawnRange, ParticipantId, ValueSummary};
use tokio::sync::watch;
use view::{Transfer, TransferChoice};

use crate::loading::drawable::Drawable;
use crate::loading::loader::BlockRequest;
use crate::loading::overview::Overview;

/// Volume and its loaded blocks.
pub(crate) struct Volume {
    pub(crate) view: Arc<VolumeView>,
    /// Largest block per level number, as stored, bytes.
    block_bytes: Vec<u64>,
    pool: BlockPool,
    /// Read-locked while a picture is drawn; write-locked only to wait for memory that pictures hold.
    pictures: RwLock<()>,
    overview: Mutex<Overview>,
    demands: Mutex<ParticipantDemands>,
    /// Counter of arrivals.
    arrivals: watch::Sender<u64>,
}

/// Demand of each participant; `None` while it is unknown.
#[derive(Default)]
struct ParticipantDemands {
    by: BTreeMap<ParticipantId, Option<Arc<Demand>>>,
    /// The pool has not received the demands yet.
    is_new: bool,
}

impl Volume {
    fn new(view: Arc<VolumeView>, dataset: &Dataset) -> Result<Self> {
        let info = dataset.array(view.key(0, [0; 3]).array)?;
        let bytes =
            |block: &[u64]| block.iter().fold(info.dtype.size_bytes() as u64, |n, &b| n.saturating_mul(b));
        Ok(Self {
            block_bytes: info.levels.iter().map(|l| bytes(&l.block)).collect(),
            pool: BlockPool::new(Arc::clone(&view), 0),
            pictures: RwLock::default(),
            overview: Mutex::new(Overview::new()?),
            demands: Mutex::default(),
            arrivals: watch::Sender::new(0),
            view,
        })
    }

    /// Creates a volume that belongs to no session, with a limit of its memory.
    ///
    /// # Errors
    /// `NotFound` for a volume of another data set.
    pub(crate) fn alone(view: Arc<VolumeView>, dataset: &Dataset, limit_bytes: usize) -> Result<Self> {
        let volume = Self::new(view, dataset)?;
        volume.set_limit(limit_bytes);
        Ok(volume)
    }

    /// Returns the finest level that a participant's picture shows in the end, or that of any participant's.
    pub(crate) fn wanted_level(&self, who: Option<ParticipantId>) -> Option<u8> {
        let demands = self.demands();
        let own = who.and_then(|who| demands.by.get(&who)?.as_ref());
        let wanted = |demand: &Arc<Demand>| demand.wanted;
        own.map(wanted).or_else(|| demands.by.values().flatten().map(wanted).min())
    }

    /// Returns a counter that rises whenever blocks have arrived or failed.
    pub(crate) fn arrivals(&self) -> watch::Receiver<u64> {
        self.arrivals.subscribe()
    }

    /// Wakes all subscribers because blocks have changed.
    pub(crate) fn announce(&self) {
        self.arrivals.send_modify(|n| *n += 1);
    }

    /// Marks a picture as being drawn until the guard is dropped.
    pub(crate) fn begin_picture(&self) -> RwLockReadGuard<'_, ()> {
        self.pictures.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a snapshot of the loaded blocks.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.pool.snapshot()
    }

    /// Waits for the pictures that are being drawn, then runs `f` before the next one begins.
    fn between_pictures<T>(&self, f: impl FnOnce() -> T) -> T {
        let _none = self.pictures.write().unwrap_or_else(PoisonError::into_inner);
        f()
    }

    /// Inserts blocks that belong to this volume; false for those that need memory for themselves or their
    /// ghost voxels that a picture still holds. Blocks the thread briefly.
    ///
    /// # Errors
    /// `Corrupt` for a block that is not as described.
    pub(crate) fn insert_all_now(&self, blocks: &[&Block]) -> Vec<Result<bool>> {
        if blocks.is_empty() {
            return Vec::new();
        }
        self.mark();
        let inserted = self.pool.insert_all(blocks);
        let are_refreshed = self.pool.refresh();
        let outcome = |(block, inserted): (&&Block, Result<Inserted>)| match inserted? {
            Inserted::NoRoom => Ok(false),
            Inserted::Foreign => Ok(true),
            Inserted::Placed | Inserted::Present | Inserted::NotCovered => {
                self.overview().add(block, &self.view)?;
                Ok(are_refreshed)
            }
        };
        blocks.iter().zip(inserted).map(outcome).collect()
    }

    /// Inserts a block that belongs to this volume; waits for pictures that hold the memory for it.
    ///
    /// # Errors
    /// `Corrupt` for a block that is not as described, `Busy` when there is no room.
    pub(crate) fn insert(&self, block: &Block) -> Result<()> {
        if self.insert_now(block)? || self.between_pictures(|| self.insert_now(block))? {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Busy, "no room in memory for another block"))
    }

    fn insert_now(&self, block: &Block) -> Result<bool> {
        self.insert_all_now(&[block]).pop().unwrap_or(Ok(true))
    }

    /// Passes changed demands to the pool.
    fn mark(&self) {
        let mut demands = self.demands();
        if std::mem::take(&mut demands.is_new) {
            self.pool.mark(demands.by.values().flatten().map(Arc::as_ref));
        }
    }

    /// Returns true for blocks of this volume.
    pub(crate) fn holds(&self, key: &BlockKey) -> bool {
        self.view.locate(key).is_some()
    }

    /// Returns a default transfer function once a block has arrived, and the number of voxels of level 0 it
    /// is based on.
    pub(crate) fn sensible_transfer(&self) -> Option<(f64, Transfer)> {
        let mut overview = self.overview();
        overview.transfer(&self.view).map(|t| (overview.voxels_seen(), t))
    }

    /// Returns a transfer function over all values, including outliers; `None` before the first block.
    pub(crate) fn full_transfer(&self) -> Option<Transfer> {
        self.overview().transfer_over_all(&self.view)
    }

    /// Completes a choice of a transfer function for the values of the blocks that have arrived.
    ///
    /// # Errors
    /// Those of [`TransferChoice::complete`].
    pub(crate) fn chosen_transfer(&self, choice: &TransferChoice, base: Transfer) -> Result<Transfer> {
        self.overview().chosen(choice, base, &self.view)
    }

    /// Returns statistics of the values, with their shares outside a color range; `None` before the first
    /// block.
    pub(crate) fn values(&self, drawn: DrawnRange) -> Option<ValueSummary> {
        self.overview().values(&self.view, drawn)
    }

    /// Returns the number of voxels of level 0 that the statistics are based on.
    pub(crate) fn voxels_seen(&self) -> f64 {
        self.overview().voxels_seen()
    }

    /// Returns requests for the blocks of a demand that the pool lacks.
    fn missing_requests(&self, demand: &Demand) -> Vec<BlockRequest> {
        let size = |key: &BlockKey| self.block_bytes.get(usize::from(key.level)).copied().unwrap_or(0);
        let request =
            |d: &Demanded| BlockRequest { key: d.key, priority: d.priority, size_bytes: size(&d.key) };
        demand.missing(&self.pool).into_iter().map(request).collect()
    }

    fn set_limit(&self, limit_bytes: usize) {
        if self.memory().1 == limit_bytes {
            return;
        }
        self.mark();
        self.pool.set_limit(limit_bytes);
        if self.memory().0 > limit_bytes {
            self.between_pictures(|| ());
        }
    }

    /// Returns the bytes used and their limit.
    pub(crate) fn memory(&self) -> (usize, usize) {
        (self.pool.used_bytes(), self.pool.limit_bytes())
    }

    fn subscribers(&self) -> usize {
        self.demands().by.len()
    }

    fn demands(&self) -> MutexGuard<'_, ParticipantDemands> {
        self.demands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn overview(&self) -> MutexGuard<'_, Overview> {
        self.overview.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Volumes with subscribers, under one memory budget.
pub(crate) struct Volumes {
    memory_bytes: usize,
    alive: Mutex<Vec<Weak<Volume>>>,
    /// Locked while the budget is divided, so that an older division does not replace a newer one.
    dividing: Mutex<()>,
    /// Number of subscribers; they recompute their demand when it changes.
    subscribers: watch::Sender<usize>,
}

impl Volumes {
    pub(crate) fn new(memory_bytes: usize) -> Self {
        Self {
            memory_bytes,
            alive: Mutex::default(),
            dividing: Mutex::default(),
            subscribers: watch::Sender::new(0),
        }
    }

    /// Subscribes `who` to a volume of a data set until the guard is dropped; call
    /// [`divide_memory`](Self::divide_memory) afterwards.
    ///
    /// # Errors
    /// `NotFound` for a volume of another data set.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        who: ParticipantId,
        dataset: &Dataset,
        view: Arc<VolumeView>,
    ) -> Result<VolumeSubscription> {
        let volume = {
            let mut alive = self.alive();
            alive.retain(|v| v.strong_count() > 0);
            let known = alive.iter().filter_map(Weak::upgrade).find(|v| *v.view == *view);
            let volume = match known {
                Some(volume) => volume,
                None => {
                    let volume = Arc::new(Volume::new(view, dataset)?);
                    alive.push(Arc::downgrade(&volume));
                    volume
                }
            };
            volume.demands().by.insert(who, None);
            volume
        };
        Ok(VolumeSubscription { who, volume, color_by: None, layers: Vec::new(), volumes: Arc::clone(self) })
    }

    /// Returns the volumes that contain a block.
    pub(crate) fn with_block(&self, key: &BlockKey) -> Vec<Arc<Volume>> {
        self.all().into_iter().filter(|v| v.holds(key)).collect()
    }

    /// Returns all volumes with subscribers.
    pub(crate) fn all(&self) -> Vec<Arc<Volume>> {
        self.alive().iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the volume of a view, if somebody looks at it.
    pub(crate) fn find(&self, view: &VolumeView) -> Option<Arc<Volume>> {
        self.all().into_iter().find(|volume| *volume.view == *view)
    }

    /// Returns a receiver that is notified when the number of subscribers changes.
    pub(crate) fn budget_changes(&self) -> watch::Receiver<usize> {
        self.subscribers.subscribe()
    }

    /// Sets the limit of every pool to its subscribers' shares, shrinking pools first; returns the share of
    /// one, bytes. Blocks the thread.
    pub(crate) fn divide_memory(&self) -> usize {
        let _one_after_the_other = self.dividing.lock().unwrap_or_else(PoisonError::into_inner);
        let volumes = self.all();
        let subscribers = volumes.iter().map(|v| v.subscribers()).sum::<usize>();
        let share = self.memory_bytes / subscribers.max(1);
        let mut limits: Vec<(usize, &Arc<Volume>)> =
            volumes.iter().map(|v| (v.subscribers() * share, v)).collect();
        limits.sort_by_key(|(limit, v)| *limit > v.memory().1);
        for (limit, volume) in limits {
            volume.set_limit(limit);
        }
        // Notified last, so that receivers find the new limits in force.
        self.subscribers.send_if_modified(|n| std::mem::replace(n, subscribers) != subscribers);
        share
    }

    fn alive(&self) -> MutexGuard<'_, Vec<Weak<Volume>>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Subscription of a participant to a volume; dropping it ends it.
pub(crate) struct VolumeSubscription {
    who: ParticipantId,
    pub(crate) volume: Arc<Volume>,
    /// Subscription to the volume that gives the colors, if that is another one.
    pub(crate) color_by: Option<Box<Self>>,
    /// Subscriptions to the volumes of layers, in their order.
    pub(crate) layers: Vec<Self>,
    volumes: Arc<Volumes>,
}

impl VolumeSubscription {
    /// Returns the participant.
    pub(crate) fn who(&self) -> ParticipantId {
        self.who
    }

    /// Splits off the subscriptions to the volume that gives the colors and to those of layers.
    pub(crate) fn split(mut self) -> impl Iterator<Item = Self> {
        let color_by = self.color_by.take().map(|color_by| *color_by);
        let layers = std::mem::take(&mut self.layers);
        std::iter::once(self).chain(color_by).chain(layers)
    }

    /// Returns the volumes that pictures are drawn from.
    pub(crate) fn drawable(&self) -> Drawable {
        Drawable::new(
            Arc::clone(&self.volume),
            self.color_by.as_ref().map(|color_by| Arc::clone(&color_by.volume)),
            self.layers.iter().map(|layer| Arc::clone(&layer.volume)).collect(),
        )
    }

    /// Sets the demands of this participant, also for the volume that gives the colors and for those of layers;
    /// returns requests for the missing blocks. Blocks the thread.
    pub(crate) fn set_demands(
        &self,
        demand: &Arc<Demand>,
        color_by_demand: Option<&Arc<Demand>>,
        layer_demands: &[Arc<Demand>],
    ) -> Vec<BlockRequest> {
        let mut lacking = self.set_demand(demand);
        if let Some((color_by, demand)) = self.color_by.as_ref().zip(color_by_demand) {
            lacking.extend(color_by.set_demand(demand));
        }
        for (layer, demand) in self.layers.iter().zip(layer_demands) {
            lacking.extend(layer.set_demand(demand));
        }
        lacking
    }

    /// Sets the demand of this participant; returns requests for the missing blocks. Blocks the thread.
    pub(crate) fn set_demand(&self, demand: &Arc<Demand>) -> Vec<BlockRequest> {
        {
            let mut demands = self.volume.demands();
            demands.by.insert(self.who, Some(Arc::clone(demand)));
            demands.is_new = true;
        }
        self.volume.missing_requests(demand)
    }
}

impl Drop for VolumeSubscription {
    fn drop(&mut self) {
        {
            let mut demands = self.volume.demands();
            demands.by.remove(&self.who);
            demands.is_new = true;
        }
        let subscribers = self.volumes.all().iter().map(|v| v.subscribers()).sum::<usize>();
        self.volumes.subscribers.send_if_modified(|n| std::mem::replace(n, subscribers) != subscribers);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use array::conformance::one_array;
    use array::{BlockKey, Content};

    use super::*;

    /// Eight blocks of 16^3 bytes.
    fn volume(limit_bytes: usize) -> Arc<Volume> {
        let dataset = one_array("|u1".parse().unwrap(), &[32; 3], &[16; 3]);
        let view = Arc::new(VolumeView::new(&dataset, 0, &[]).unwrap());
        let volume = Arc::new(Volume::new(view, &dataset).unwrap());
        volume.set_limit(limit_bytes);
        volume
    }

    fn block(volume: &Volume, index: u64) -> Block {
        let key = BlockKey { index, ..volume.view.key(0, [0; 3]) };
        Block { key, content: Content::Data { bytes: vec![7; 16 * 16 * 16].into(), range: None } }
    }

    /// Does `work` on another thread; the receiver gets a message when it is finished.
    fn beside(work: impl FnOnce() + Send + 'static) -> std::sync::mpsc::Receiver<()> {
        let (done, is_done) = channel();
        let both = move || {
            work();
            done.send(()).unwrap();
        };
        std::thread::Builder::new().name("beside".into()).spawn(both).unwrap();
        is_done
    }

    const LONG: Duration = Duration::from_secs(20);

    fn alone(volume: &Arc<Volume>) -> Drawable {
        Drawable::new(Arc::clone(volume), None, Vec::new())
    }

    #[test]
    fn placing_blocks_does_not_wait_for_a_picture() {
        let volume = volume(1 << 20);
        volume.insert(&block(&volume, 0)).unwrap();
        let drawable = alone(&volume);
        let picture = drawable.picture();
        let shared = Arc::clone(&volume);
        let arrives = beside(move || {
            shared.insert(&block(&shared, 1)).unwrap();
            drop(alone(&shared).picture());
        });
        arrives.recv_timeout(LONG).expect("a block is placed and a second picture begun meanwhile");
        drop(picture);
        assert!(volume.holds(&block(&volume, 1).key));
    }

    #[test]
    fn shrinking_waits_for_memory_that_a_picture_holds() {
        let one = {
            let roomy = volume(1 << 20);
            roomy.insert(&block(&roomy, 0)).unwrap();
            roomy.memory().0
        };
        let volume = volume(2 * one);
        (0..2).for_each(|i| volume.insert(&block(&volume, i)).unwrap());
        let drawable = alone(&volume);
        let picture = drawable.picture();
        let shared = Arc::clone(&volume);
        let shrinks = beside(move || shared.set_limit(one));
        assert!(
            shrinks.recv_timeout(Duration::from_millis(50)).is_err(),
            "the picture still holds two blocks"
        );
        drop(picture);
        shrinks.recv_timeout(LONG).expect("the picture was dropped");
        assert!(volume.memory().0 <= one);
    }

    #[test]
    fn shares_follow_one_another() {
        let dataset = one_array("|u1".parse().unwrap(), &[3, 32, 32, 32], &[1, 16, 16, 16]);
        let view = |t| Arc::new(VolumeView::new(&dataset, 0, &[t, 0, 0, 0]).unwrap());
        let four_bytes = {
            let roomy = volume(1 << 20);
            (0..4).for_each(|i| roomy.insert(&block(&roomy, i)).unwrap());
            roomy.memory().0
        };
        let volumes = Arc::new(Volumes::new(four_bytes));
        let subscribe = |who, t| volumes.subscribe(ParticipantId(who), &dataset, view(t)).unwrap();
        let divide_memory = || {
            let volumes = Arc::clone(&volumes);
            beside(move || {
                volumes.divide_memory();
            })
        };
        let ada = subscribe(1, 0);
        volumes.divide_memory();
        (0..4).for_each(|i| ada.volume.insert(&block(&ada.volume, i)).unwrap());
        let drawable = ada.drawable();
        let picture = drawable.picture();
        let bob = subscribe(2, 1);
        let older = divide_memory();
        assert!(
            older.recv_timeout(Duration::from_millis(50)).is_err(),
            "the picture still holds more than half of the memory"
        );
        // The first volume keeps its half, the second one's becomes a quarter.
        let (_cleo, dan) = (subscribe(3, 0), subscribe(4, 2));
        let newer = divide_memory();
        let _waits = newer.recv_timeout(Duration::from_millis(50));
        drop(picture);
        [older, newer].iter().for_each(|done| _ = done.recv_timeout(LONG));
        let limits = [&ada, &bob, &dan].map(|w| w.volume.memory().1);
        assert_eq!(limits, [2, 1, 1].map(|n| n * (four_bytes / 4)));
    }
}
