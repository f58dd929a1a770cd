//! Block table: the blocks that are cached, requested or wanted; pure.
//!
//! [`CacheTable::step`] is the only mutation. It takes an event and returns actions, in order, which the owner of the table carries out.
//! See the folder's README for the states and the invariants. Not here: contents, tasks, clocks.

use std::collections::{BTreeMap, HashMap};

use array::{BlockKey, Error, ErrorKind, Priority, Urgency};

/// Most blocks that wait for memory in a cache; beyond this number the least urgent is refused.
pub const MAX_QUEUED: usize = 65_536;

/// Memory cost of a cache entry in addition to the bytes of its block.
pub const ENTRY_BYTES: u64 = 256;

/// Value with shared ownership, like an `Arc`: the table is one of its holders.
pub trait SharedValue: Clone {
    /// Reference that does not keep the value alive.
    type Ghost;
    /// Returns whether there is a holder besides the table.
    fn is_held(&self) -> bool;
    /// Returns a reference that does not keep the value alive.
    fn ghost(&self) -> Self::Ghost;
    /// Returns the value if it is still alive.
    fn revive(ghost: &Self::Ghost) -> Option<Self>;
}

impl<T> SharedValue for std::sync::Arc<T> {
    type Ghost = std::sync::Weak<T>;

    fn is_held(&self) -> bool {
        Self::strong_count(self) > 1
    }

    fn ghost(&self) -> Self::Ghost {
        Self::downgrade(self)
    }

    fn revive(ghost: &Self::Ghost) -> Option<Self> {
        ghost.upgrade()
    }
}

/// Number of one want of one caller; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaiterId(pub u64);

/// Number of one request to the inner source, and of the memory of its block; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FetchTicket(pub u64);

/// Event of one block; input of [`CacheTable::step`].
#[derive(Clone, Debug)]
pub enum BlockEvent<V> {
    /// A caller wants the block.
    Wanted {
        /// Waiter that the event concerns.
        waiter: WaiterId,
        /// Urgency of the want.
        urgency: Urgency,
        /// Largest possible size of the block.
        bound_bytes: u64,
    },
    /// A waiter changed the urgency of its want.
    Adjusted {
        /// Waiter that the event concerns.
        waiter: WaiterId,
        /// New urgency.
        urgency: Urgency,
    },
    /// A waiter cancelled its want.
    Withdrawn {
        /// Waiter that the event concerns.
        waiter: WaiterId,
    },
    /// The inner source delivered the block.
    Arrived {
        /// Request that is answered.
        ticket: FetchTicket,
        /// Block that arrived.
        value: V,
        /// Size of the block.
        size_bytes: u64,
    },
    /// The inner source returned an error.
    Failed {
        /// Request that is answered.
        ticket: FetchTicket,
        /// Error of the request.
        error: Error,
    },
    /// The memory of an evicted block is free.
    Released {
        /// Ticket of the request that delivered the block.
        ticket: FetchTicket,
    },
    /// Time has passed while the block was the head of the queue ([`CacheTable::starving`]): holders may have dropped other blocks.
    Rechecked,
}

/// Action that the owner of the table must carry out; output of [`CacheTable::step`].
#[derive(Clone, Debug, PartialEq)]
pub enum Action<V> {
    /// Request a block from the inner source.
    Request {
        /// Block that is requested.
        key: BlockKey,
        /// Number of the request.
        ticket: FetchTicket,
        /// Urgency of the request.
        urgency: Urgency,
    },
    /// Change the urgency of a request under way.
    Adjust {
        /// Number of the request.
        ticket: FetchTicket,
        /// New urgency.
        urgency: Urgency,
    },
    /// Cancel a request under way.
    Cancel {
        /// Number of the request.
        ticket: FetchTicket,
    },
    /// Deliver a block to a waiter.
    Answer {
        /// Waiter that receives the result.
        waiter: WaiterId,
        /// Key of the block.
        key: BlockKey,
        /// Block for the waiter.
        value: V,
    },
    /// Deliver an error to a waiter.
    Fail {
        /// Waiter that receives the result.
        waiter: WaiterId,
        /// Key of the block.
        key: BlockKey,
        /// Error of the request.
        error: Error,
    },
    /// Drop this block, and report when its memory is free ([`BlockEvent::Released`]).
    Evict {
        /// Key of the block.
        key: BlockKey,
        /// Number of its request.
        ticket: FetchTicket,
        /// Reference of the table to the block.
        value: V,
    },
}

/// Bytes held in each state, and counts of events so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Hard limit.
    pub capacity_bytes: u64,
    /// Bytes in CACHED blocks.
    pub cached_bytes: u64,
    /// Bytes reserved for REQUESTED blocks.
    pub requested_bytes: u64,
    /// Bytes in RELEASING blocks.
    pub releasing_bytes: u64,
    /// Number of CACHED blocks.
    pub cached: u64,
    /// Number of REQUESTED blocks.
    pub requested: u64,
    /// Number of blocks that wait for memory.
    pub queued: u64,
    /// Wants answered from the cache.
    pub hits: u64,
    /// Wants whose block was queued or requested already.
    pub joined: u64,
    /// Wants that were the first for their block.
    pub misses: u64,
    /// Requests to the inner source.
    pub requests: u64,
    /// Number of requests cancelled because no caller waited any more.
    pub cancelled: u64,
    /// Requests that ended in an error.
    pub failed: u64,
    /// Wants refused because the block was too large or the queue full.
    pub refused: u64,
    /// Blocks evicted.
    pub evicted: u64,
    /// Bytes received from the inner source.
    pub arrived_bytes: u64,
}

impl CacheCounters {
    /// Returns the bytes that count against the limit.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.cached_bytes + self.requested_bytes + self.releasing_bytes
    }
}

/// Rank in the queue for memory: the most urgent, then the first arrived. The last entry is the head.
type RoomRank = (Priority, std::cmp::Reverse<u64>);

enum BlockStage<V: SharedValue> {
    Queued { bound_bytes: u64, rank: RoomRank },
    Requested { ticket: FetchTicket, reserved_bytes: u64 },
    Cached { ticket: FetchTicket, value: V, size_bytes: u64, used_at: u64 },
    Releasing { ticket: FetchTicket, ghost: V::Ghost },
}

struct CacheEntry<V: SharedValue> {
    stage: BlockStage<V>,
    waiters: BTreeMap<WaiterId, Urgency>,
}

/// Budget that counts the memory of evicted blocks that still have a holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeldMemory {
    /// The capacity of the table: new blocks wait until the holders have dropped the old ones.
    #[default]
    CountedHere,
    /// A budget of the holders, such as that for answers to clients: a holder that keeps its blocks delays no other one.
    CountedByHolders,
}

/// Memory of an evicted block that is not free yet.
struct Releasing {
    size_bytes: u64,
    /// Whether the block was held when it was evicted, so that its memory may be freed late.
    was_held: bool,
}

/// Block table; see the README of this folder.
pub struct CacheTable<V: SharedValue> {
    entries: HashMap<BlockKey, CacheEntry<V>>,
    queue: BTreeMap<RoomRank, BlockKey>,
    /// CACHED blocks by last use, oldest first.
    order: BTreeMap<u64, BlockKey>,
    releasing: HashMap<FetchTicket, Releasing>,
    /// Releasing bytes of blocks that had another holder at eviction.
    held_bytes: u64,
    held_memory: HeldMemory,
    counters: CacheCounters,
    /// Counts uses, tickets and arrivals in the queue.
    clock: u64,
    actions: Vec<Action<V>>,
}

impl<V: SharedValue> CacheTable<V> {
    /// Creates an empty table with a hard limit.
    #[must_use]
    pub fn new(capacity_bytes: u64, held_memory: HeldMemory) -> Self {
        Self {
            entries: HashMap::new(),
            queue: BTreeMap::new(),
            order: BTreeMap::new(),
            releasing: HashMap::new(),
            held_bytes: 0,
            held_memory,
            counters: CacheCounters { capacity_bytes, ..CacheCounters::default() },
            clock: 0,
            actions: Vec::new(),
        }
    }

    /// Returns the bytes held in each state and the counts of events so far.
    #[must_use]
    pub fn counters(&self) -> CacheCounters {
        CacheCounters { queued: self.queue.len() as u64, ..self.counters }
    }

    /// Returns the block if it is CACHED; counts as neither hit nor use.
    #[must_use]
    pub fn peek(&self, key: &BlockKey) -> Option<&V> {
        match &self.entries.get(key)?.stage {
            BlockStage::Cached { value, .. } => Some(value),
            _ => None,
        }
    }

    /// Returns the head of the queue for memory, if there is one. Dropping a block makes no event, so while there is a head, the owner of the
    /// table sends [`BlockEvent::Rechecked`] at intervals.
    #[must_use]
    pub fn starving(&self) -> Option<BlockKey> {
        self.queue.last_key_value().map(|(_, key)| *key)
    }

    /// Changes the state of a block by an event; returns the actions to carry out, in this order.
    ///
    /// Events for requests and waiters that no longer exist are ignored.
    pub fn step(&mut self, key: BlockKey, event: BlockEvent<V>) -> Vec<Action<V>> {
        match event {
            BlockEvent::Wanted { waiter, urgency, bound_bytes } => {
                self.wanted(key, waiter, urgency, bound_bytes)
            }
            BlockEvent::Adjusted { waiter, urgency } => self.adjusted(key, waiter, urgency),
            BlockEvent::Withdrawn { waiter } => self.withdrawn(key, waiter),
            BlockEvent::Arrived { ticket, value, size_bytes } => self.arrived(key, ticket, value, size_bytes),
            BlockEvent::Failed { ticket, error } => self.failed(key, ticket, &error),
            BlockEvent::Released { ticket } => self.released(key, ticket),
            BlockEvent::Rechecked => self.wait_no_longer(),
        }
        self.fill();
        std::mem::take(&mut self.actions)
    }

    /// Marks all evicted blocks whose memory is not free yet as held, even without a known holder: their bytes may wait in a send queue. They
    /// no longer count as memory that becomes free soon; if their holders count them, they no longer count at all.
    fn wait_no_longer(&mut self) {
        if self.held_memory == HeldMemory::CountedByHolders && !self.releasing.is_empty() {
            self.releasing.clear();
            self.entries.retain(|_, entry| !matches!(entry.stage, BlockStage::Releasing { .. }));
            (self.counters.releasing_bytes, self.held_bytes) = (0, 0);
            return;
        }
        self.releasing.values_mut().for_each(|r| r.was_held = true);
        self.held_bytes = self.counters.releasing_bytes;
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn wanted(&mut self, key: BlockKey, waiter: WaiterId, urgency: Urgency, bound_bytes: u64) {
        self.revive(key);
        let now = self.tick();
        match self.entries.get_mut(&key).map(|e| (&mut e.stage, &mut e.waiters)) {
            Some((BlockStage::Cached { value, used_at, .. }, _)) => {
                self.order.remove(used_at);
                self.order.insert(now, key);
                *used_at = now;
                self.counters.hits += 1;
                self.actions.push(Action::Answer { waiter, key, value: value.clone() });
            }
            Some((BlockStage::Queued { .. } | BlockStage::Requested { .. }, waiters)) => {
                let before = merged(waiters);
                waiters.insert(waiter, urgency);
                self.counters.joined += 1;
                self.reprioritize(key, before);
            }
            Some((BlockStage::Releasing { .. }, _)) | None => {
                self.enqueue(key, waiter, urgency, bound_bytes.saturating_add(ENTRY_BYTES));
            }
        }
    }

    /// Takes back an evicted block that still has a holder, so that it is not requested again.
    fn revive(&mut self, key: BlockKey) {
        let now = self.tick();
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let BlockStage::Releasing { ticket, ghost } = &entry.stage else { return };
        let (ticket, Some(value)) = (*ticket, V::revive(ghost)) else { return };
        let Some(Releasing { size_bytes, was_held }) = self.releasing.remove(&ticket) else { return };
        entry.stage = BlockStage::Cached { ticket, value, size_bytes, used_at: now };
        self.order.insert(now, key);
        self.counters.releasing_bytes -= size_bytes;
        self.held_bytes -= if was_held { size_bytes } else { 0 };
        self.counters.cached_bytes += size_bytes;
        self.counters.cached += 1;
    }

    fn enqueue(&mut self, key: BlockKey, waiter: WaiterId, urgency: Urgency, bound_bytes: u64) {
        self.counters.misses += 1;
        let capacity_bytes = self.counters.capacity_bytes;
        if bound_bytes > capacity_bytes {
            self.counters.refused += 1;
            let error = Error::too_large(format!(
                "expected a block that fits a cache of {capacity_bytes} bytes, found one of {bound_bytes}"
            ));
            self.actions.push(Action::Fail { waiter, key, error });
            return;
        }
        let rank = (urgency.priority, std::cmp::Reverse(self.clock));
        self.queue.insert(rank, key);
        let waiters = BTreeMap::from([(waiter, urgency)]);
        self.entries.insert(key, CacheEntry { stage: BlockStage::Queued { bound_bytes, rank }, waiters });
    }

    fn adjusted(&mut self, key: BlockKey, waiter: WaiterId, urgency: Urgency) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let before = merged(&entry.waiters);
        if let Some(mine) = entry.waiters.get_mut(&waiter) {
            *mine = urgency;
            self.reprioritize(key, before);
        }
    }

    fn withdrawn(&mut self, key: BlockKey, waiter: WaiterId) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let before = merged(&entry.waiters);
        if entry.waiters.remove(&waiter).is_none() {
            return;
        }
        if !entry.waiters.is_empty() {
            self.reprioritize(key, before);
            return;
        }
        if let Some((ticket, _)) = self.forget(key) {
            self.counters.cancelled += 1;
            self.actions.push(Action::Cancel { ticket });
        }
    }

    /// Makes a queued or requested block EMPTY; returns its request and waiters if it was requested.
    fn forget(&mut self, key: BlockKey) -> Option<(FetchTicket, BTreeMap<WaiterId, Urgency>)> {
        let entry = self.entries.remove(&key)?;
        match entry.stage {
            BlockStage::Requested { ticket, reserved_bytes } => {
                self.counters.requested_bytes -= reserved_bytes;
                self.counters.requested -= 1;
                Some((ticket, entry.waiters))
            }
            BlockStage::Queued { rank, .. } => {
                self.queue.remove(&rank);
                None
            }
            BlockStage::Cached { .. } | BlockStage::Releasing { .. } => {
                unreachable!("these blocks have no waiters")
            }
        }
    }

    /// Applies the combined urgency of the waiters if it has changed.
    fn reprioritize(&mut self, key: BlockKey, before: Option<Urgency>) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let Some(urgency) = merged(&entry.waiters).filter(|now| Some(*now) != before) else { return };
        match &mut entry.stage {
            BlockStage::Queued { rank, .. } => {
                self.queue.remove(rank);
                rank.0 = urgency.priority;
                self.queue.insert(*rank, key);
            }
            BlockStage::Requested { ticket, .. } => {
                self.actions.push(Action::Adjust { ticket: *ticket, urgency });
            }
            BlockStage::Cached { .. } | BlockStage::Releasing { .. } => {}
        }
    }

    /// Returns the bytes reserved for this request while it is under way.
    fn reserved_for(&self, key: BlockKey, request: FetchTicket) -> Option<u64> {
        match self.entries.get(&key)?.stage {
            BlockStage::Requested { ticket, reserved_bytes } if ticket == request => Some(reserved_bytes),
            _ => None,
        }
    }

    fn arrived(&mut self, key: BlockKey, ticket: FetchTicket, value: V, size_bytes: u64) {
        let size_bytes = size_bytes.saturating_add(ENTRY_BYTES);
        let Some(reserved_bytes) = self.reserved_for(key, ticket) else { return };
        if size_bytes > reserved_bytes {
            let error = Error::corrupt(format!(
                "expected a block of at most {reserved_bytes} bytes, found {size_bytes}"
            ));
            self.failed(key, ticket, &error);
            return;
        }
        let Some((_, waiters)) = self.forget(key) else { return };
        for waiter in waiters.into_keys() {
            self.actions.push(Action::Answer { waiter, key, value: value.clone() });
        }
        let used_at = self.tick();
        self.order.insert(used_at, key);
        self.counters.cached_bytes += size_bytes;
        self.counters.cached += 1;
        self.counters.arrived_bytes += size_bytes - ENTRY_BYTES;
        let stage = BlockStage::Cached { ticket, value, size_bytes, used_at };
        self.entries.insert(key, CacheEntry { stage, waiters: BTreeMap::new() });
    }

    fn failed(&mut self, key: BlockKey, ticket: FetchTicket, error: &Error) {
        if self.reserved_for(key, ticket).is_none() {
            return;
        }
        let Some((_, waiters)) = self.forget(key) else { return };
        self.counters.failed += 1;
        for waiter in waiters.into_keys() {
            self.actions.push(Action::Fail { waiter, key, error: error.clone() });
        }
    }

    fn released(&mut self, key: BlockKey, ticket: FetchTicket) {
        let Some(Releasing { size_bytes, was_held }) = self.releasing.remove(&ticket) else { return };
        self.counters.releasing_bytes -= size_bytes;
        self.held_bytes -= if was_held { size_bytes } else { 0 };
        let stage = self.entries.get(&key).map(|e| &e.stage);
        if matches!(stage, Some(BlockStage::Releasing { ticket: t, .. }) if *t == ticket) {
            self.entries.remove(&key);
        }
    }

    /// Requests the queued blocks that fit, evicts blocks for the head of the queue, and keeps the queue bounded.
    fn fill(&mut self) {
        while let Some((&rank, &key)) = self.queue.last_key_value() {
            let Some(CacheEntry { stage: BlockStage::Queued { bound_bytes, .. }, waiters }) =
                self.entries.get(&key)
            else {
                unreachable!("the queue holds queued blocks");
            };
            let (bound_bytes, urgency) = (*bound_bytes, merged(waiters));
            let free_bytes = self.counters.capacity_bytes - self.counters.used_bytes();
            if bound_bytes > free_bytes {
                self.make_room(bound_bytes - free_bytes);
                if bound_bytes > self.counters.capacity_bytes - self.counters.used_bytes() {
                    break;
                }
            }
            self.queue.remove(&rank);
            let ticket = FetchTicket(self.tick());
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.stage = BlockStage::Requested { ticket, reserved_bytes: bound_bytes };
            }
            self.counters.requested_bytes += bound_bytes;
            self.counters.requested += 1;
            self.counters.requests += 1;
            let urgency = urgency.unwrap_or(Urgency::of(Priority::BACKGROUND));
            self.actions.push(Action::Request { key, ticket, urgency });
        }
        while self.queue.len() > MAX_QUEUED {
            self.refuse_least_urgent();
        }
    }

    fn refuse_least_urgent(&mut self) {
        let Some((_, key)) = self.queue.pop_first() else { return };
        let Some(entry) = self.entries.remove(&key) else { return };
        for waiter in entry.waiters.into_keys() {
            self.counters.refused += 1;
            let error = Error::new(
                ErrorKind::Busy,
                format!("expected at most {MAX_QUEUED} blocks waiting for room in the cache, found more"),
            );
            self.actions.push(Action::Fail { waiter, key, error });
        }
    }

    /// Evicts blocks until `missing_bytes` are free or will be: first blocks without other holders.
    fn make_room(&mut self, missing_bytes: u64) {
        let soon_bytes = self.counters.releasing_bytes - self.held_bytes;
        let missing_bytes = self.evict(missing_bytes.saturating_sub(soon_bytes), |value| !value.is_held());
        self.evict(missing_bytes.saturating_sub(self.held_bytes), |_| true);
    }

    /// Evicts the least recently used blocks that satisfy `may_evict`; returns the bytes that are still missing.
    fn evict(&mut self, mut missing_bytes: u64, may_evict: impl Fn(&V) -> bool) -> u64 {
        let mut victims = Vec::new();
        for (&used_at, key) in &self.order {
            if missing_bytes == 0 {
                break;
            }
            let stage = self.entries.get(key).map(|e| &e.stage);
            let Some(BlockStage::Cached { value, size_bytes, .. }) = stage else { continue };
            if may_evict(value) {
                missing_bytes = missing_bytes.saturating_sub(*size_bytes);
                victims.push(used_at);
            }
        }
        for used_at in victims {
            self.release(used_at);
        }
        missing_bytes
    }

    /// Changes a block from CACHED to RELEASING, or to EMPTY if its holders count it.
    fn release(&mut self, used_at: u64) {
        let Some(key) = self.order.remove(&used_at) else { return };
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let BlockStage::Cached { ticket, value, size_bytes, .. } = &entry.stage else { return };
        // Before the clone below, which would count as a holder.
        let was_held = value.is_held();
        let (ticket, value, size_bytes) = (*ticket, value.clone(), *size_bytes);
        self.counters.cached_bytes -= size_bytes;
        self.counters.cached -= 1;
        self.counters.evicted += 1;
        if was_held && self.held_memory == HeldMemory::CountedByHolders {
            self.entries.remove(&key);
        } else {
            entry.stage = BlockStage::Releasing { ticket, ghost: value.ghost() };
            self.releasing.insert(ticket, Releasing { size_bytes, was_held });
            self.counters.releasing_bytes += size_bytes;
            self.held_bytes += if was_held { size_bytes } else { 0 };
        }
        self.actions.push(Action::Evict { key, ticket, value });
    }
}

/// Combined urgency of all waiters: the highest priority; the latest deadline if all have one.
fn merged(waiters: &BTreeMap<WaiterId, Urgency>) -> Option<Urgency> {
    waiters.values().copied().reduce(|a, b| Urgency {
        priority: a.priority.max(b.priority),
        deadline: a.deadline.zip(b.deadline).map(|(a, b)| a.max(b)),
    })
}

#[cfg(test)]
mod tests;
