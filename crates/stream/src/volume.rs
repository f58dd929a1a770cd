//! One volume that somebody looks at: its pool of blocks, shared by all who look at it.
//!
//! All pools of a session together keep to one budget: it is divided evenly among those who look, and a pool
//! may hold the shares of its own watchers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use array::{Block, BlockKey, Dataset, Error, ErrorKind, Result};
use render::{BlockPool, Cancel, Demand, Frame, Inserted, Scene, VolumeView};
use session::{ParticipantId, Transfer};
use tokio::sync::watch;

use crate::loader::Wish;
use crate::overview::Overview;

/// A volume and what is there of it.
pub(crate) struct Volume {
    pub(crate) view: Arc<VolumeView>,
    /// Largest block per level number, as stored, bytes.
    block_bytes: Vec<u64>,
    pool: RwLock<BlockPool>,
    overview: Mutex<Overview>,
    demands: Mutex<Demands>,
    /// Counts arrivals.
    arrivals: watch::Sender<u64>,
}

/// What is wanted by whom; `None` before they know it themselves.
#[derive(Default)]
struct Demands {
    by: BTreeMap<ParticipantId, Option<Arc<Demand>>>,
    /// The pool has not been told yet.
    is_new: bool,
}

impl Volume {
    fn new(view: Arc<VolumeView>, dataset: &Dataset) -> Result<Self> {
        let info = dataset.array(view.key(0, [0; 3]).array)?;
        let bytes =
            |block: &[u64]| block.iter().fold(info.dtype.size_bytes() as u64, |n, &b| n.saturating_mul(b));
        Ok(Self {
            block_bytes: info.levels.iter().map(|l| bytes(&l.block)).collect(),
            pool: RwLock::new(BlockPool::new(Arc::clone(&view), 0)),
            overview: Mutex::new(Overview::new()?),
            demands: Mutex::default(),
            arrivals: watch::Sender::new(0),
            view,
        })
    }

    /// Rises whenever blocks arrived or could not.
    pub(crate) fn arrivals(&self) -> watch::Receiver<u64> {
        self.arrivals.subscribe()
    }

    /// Wakes all who look: something about the blocks changed.
    pub(crate) fn announce(&self) {
        self.arrivals.send_modify(|n| *n += 1);
    }

    /// Draws; blocks the thread.
    ///
    /// # Errors
    /// Those of [`render::cast`].
    pub(crate) fn cast(&self, scene: &Scene, cancel: &Cancel) -> Result<Frame> {
        render::cast(scene, &self.pool.read().unwrap_or_else(PoisonError::into_inner), cancel)
    }

    /// Takes a block over, where it is part of this volume; blocks the thread.
    ///
    /// # Errors
    /// `Corrupt` for a block that is not as described, `Busy` when there is no room.
    pub(crate) fn insert(&self, block: &Block) -> Result<()> {
        let mut pool = self.pool.write().unwrap_or_else(PoisonError::into_inner);
        self.mark(&mut pool);
        match pool.insert(block)? {
            Inserted::Foreign => return Ok(()),
            Inserted::NoRoom => {
                return Err(Error::new(ErrorKind::Busy, "no room in memory for another block"));
            }
            Inserted::Placed | Inserted::Present | Inserted::NotCovered => {}
        }
        drop(pool);
        self.overview().add(block, &self.view)
    }

    /// Tells the pool what matters, if that changed.
    fn mark(&self, pool: &mut BlockPool) {
        let mut demands = self.demands();
        if std::mem::take(&mut demands.is_new) {
            pool.mark(demands.by.values().flatten().map(Arc::as_ref));
        }
    }

    /// True for blocks of this volume.
    pub(crate) fn holds(&self, key: &BlockKey) -> bool {
        self.view.locate(key).is_some()
    }

    /// A first transfer function, once any block is here, and on how many voxels of level 0 it rests.
    pub(crate) fn sensible_transfer(&self) -> Option<(f64, Transfer)> {
        let overview = self.overview();
        overview.transfer(&self.view).map(|t| (overview.voxels_seen(), t))
    }

    /// What the pool lacks of a demand.
    fn wishes(&self, demand: &Demand) -> Vec<Wish> {
        let pool = self.pool.read().unwrap_or_else(PoisonError::into_inner);
        let size = |key: &BlockKey| self.block_bytes.get(usize::from(key.level)).copied().unwrap_or(0);
        demand
            .missing(&pool)
            .map(|d| Wish { key: d.key, priority: d.priority, size_bytes: size(&d.key) })
            .collect()
    }

    fn set_limit(&self, limit_bytes: usize) {
        if self.memory().1 != limit_bytes {
            let mut pool = self.pool.write().unwrap_or_else(PoisonError::into_inner);
            self.mark(&mut pool);
            pool.set_limit(limit_bytes);
        }
    }

    /// Bytes held and allowed.
    pub(crate) fn memory(&self) -> (usize, usize) {
        let pool = self.pool.read().unwrap_or_else(PoisonError::into_inner);
        (pool.used_bytes(), pool.limit_bytes())
    }

    fn watchers(&self) -> usize {
        self.demands().by.len()
    }

    fn demands(&self) -> MutexGuard<'_, Demands> {
        self.demands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn overview(&self) -> MutexGuard<'_, Overview> {
        self.overview.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The volumes that somebody looks at, under one budget.
pub(crate) struct Volumes {
    dataset: Arc<Dataset>,
    memory_bytes: usize,
    alive: Mutex<Vec<Weak<Volume>>>,
    /// How many look: whoever looks recomputes their demand when it changes.
    watchers: watch::Sender<usize>,
}

impl Volumes {
    pub(crate) fn new(dataset: Arc<Dataset>, memory_bytes: usize) -> Self {
        Self { dataset, memory_bytes, alive: Mutex::default(), watchers: watch::Sender::new(0) }
    }

    /// `who` looks at a volume from now on, until the guard is dropped; to be followed by
    /// [`share_out`](Self::share_out).
    ///
    /// # Errors
    /// `NotFound` for a volume of another data set.
    pub(crate) fn look(self: &Arc<Self>, who: ParticipantId, view: Arc<VolumeView>) -> Result<Watching> {
        let volume = {
            let mut alive = self.alive();
            alive.retain(|v| v.strong_count() > 0);
            let known = alive.iter().filter_map(Weak::upgrade).find(|v| *v.view == *view);
            let volume = match known {
                Some(volume) => volume,
                None => {
                    let volume = Arc::new(Volume::new(view, &self.dataset)?);
                    alive.push(Arc::downgrade(&volume));
                    volume
                }
            };
            volume.demands().by.insert(who, None);
            volume
        };
        Ok(Watching { who, volume, volumes: Arc::clone(self) })
    }

    /// Those that hold a block with this key.
    pub(crate) fn with_block(&self, key: &BlockKey) -> Vec<Arc<Volume>> {
        self.all().into_iter().filter(|v| v.holds(key)).collect()
    }

    /// Every volume that somebody looks at.
    pub(crate) fn all(&self) -> Vec<Arc<Volume>> {
        self.alive().iter().filter_map(Weak::upgrade).collect()
    }

    /// Changes with the number of those who look.
    pub(crate) fn shares(&self) -> watch::Receiver<usize> {
        self.watchers.subscribe()
    }

    /// Gives every pool the shares of its watchers, those that must shrink first; gives the share of one, bytes.
    /// Blocks the thread.
    pub(crate) fn share_out(&self) -> usize {
        let volumes = self.all();
        let watchers = volumes.iter().map(|v| v.watchers()).sum::<usize>();
        let share = self.memory_bytes / watchers.max(1);
        let mut limits: Vec<(usize, &Arc<Volume>)> =
            volumes.iter().map(|v| (v.watchers() * share, v)).collect();
        limits.sort_by_key(|(limit, v)| *limit > v.memory().1);
        for (limit, volume) in limits {
            volume.set_limit(limit);
        }
        // Told only now: whoever hears of it finds the new limits in force.
        self.watchers.send_if_modified(|n| std::mem::replace(n, watchers) != watchers);
        share
    }

    fn alive(&self) -> MutexGuard<'_, Vec<Weak<Volume>>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody looks at a volume; dropping it looks away.
pub(crate) struct Watching {
    who: ParticipantId,
    pub(crate) volume: Arc<Volume>,
    volumes: Arc<Volumes>,
}

impl Watching {
    /// What this one wants from now on; gives what is lacking. Blocks the thread.
    pub(crate) fn want(&self, demand: &Arc<Demand>) -> Vec<Wish> {
        {
            let mut demands = self.volume.demands();
            demands.by.insert(self.who, Some(Arc::clone(demand)));
            demands.is_new = true;
        }
        self.volume.wishes(demand)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        {
            let mut demands = self.volume.demands();
            demands.by.remove(&self.who);
            demands.is_new = true;
        }
        let watchers = self.volumes.all().iter().map(|v| v.watchers()).sum::<usize>();
        self.volumes.watchers.send_if_modified(|n| std::mem::replace(n, watchers) != watchers);
    }
}
