//! Random histories of the table, compared with a model of what the README promises.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Weak};

use array::{DatasetId, Generation};
use proptest::prelude::*;

use super::*;

type Value = Arc<u64>;

fn key(index: u64) -> BlockKey {
    BlockKey { dataset: DatasetId(1), generation: Generation(0), array: 0, level: 0, index }
}

fn bound_bytes(key: BlockKey) -> u64 {
    1000 + 300 * (key.index % 4)
}

#[derive(Clone, Debug)]
enum Op {
    Want { block: u64, tier: u8 },
    Adjust { nth: usize, tier: u8 },
    Withdraw { nth: usize },
    Arrive { nth: usize, is_small: bool },
    Fail { nth: usize },
    Drop { nth: usize },
    Free { nth: usize },
    Recheck,
}

fn any_op() -> impl Strategy<Value = Op> {
    let nth = 0usize..64;
    prop_oneof![
        6 => (0u64..12, 0u8..5).prop_map(|(block, tier)| Op::Want { block, tier }),
        2 => (nth.clone(), 0u8..5).prop_map(|(nth, tier)| Op::Adjust { nth, tier }),
        2 => nth.clone().prop_map(|nth| Op::Withdraw { nth }),
        5 => (nth.clone(), any::<bool>()).prop_map(|(nth, is_small)| Op::Arrive { nth, is_small }),
        1 => nth.clone().prop_map(|nth| Op::Fail { nth }),
        4 => nth.clone().prop_map(|nth| Op::Drop { nth }),
        4 => nth.prop_map(|nth| Op::Free { nth }),
        1 => Just(Op::Recheck),
    ]
}

/// Reference model of a table: its state as seen from outside, and the checks of each of its actions.
struct Model {
    table: CacheTable<Value>,
    /// Waiters not yet answered: the block that they want, and its tier.
    waiting: BTreeMap<WaiterId, (BlockKey, u8)>,
    answered: HashSet<WaiterId>,
    /// Requests under way.
    requests: BTreeMap<FetchTicket, BlockKey>,
    /// Blocks in the cache, least recently used first, with size.
    cached: Vec<(BlockKey, u64, Weak<u64>)>,
    /// Evicted, not yet reported free.
    evicted: Vec<(BlockKey, FetchTicket, u64, Weak<u64>)>,
    /// Order in which blocks entered the queue.
    queue_order: HashMap<BlockKey, u64>,
    /// Values that waiters received and still hold.
    held: Vec<Value>,
    next: u64,
}

impl Model {
    fn new(capacity_bytes: u64) -> Self {
        Self {
            table: CacheTable::new(capacity_bytes, HeldMemory::CountedHere),
            waiting: BTreeMap::new(),
            answered: HashSet::new(),
            requests: BTreeMap::new(),
            cached: Vec::new(),
            evicted: Vec::new(),
            queue_order: HashMap::new(),
            held: Vec::new(),
            next: 0,
        }
    }

    fn tier(&self, key: BlockKey) -> Option<u8> {
        self.waiting.values().filter(|(k, _)| *k == key).map(|(_, tier)| *tier).max()
    }

    fn queued(&self) -> Vec<BlockKey> {
        let requested: HashSet<_> = self.requests.values().collect();
        let mut queued: Vec<_> = self.waiting.values().map(|(k, _)| *k).collect();
        queued.retain(|k| !requested.contains(k));
        queued.sort_by_key(|k| (std::cmp::Reverse(self.tier(*k)), self.queue_order.get(k).copied()));
        queued.dedup();
        queued
    }

    fn used_bytes(&self) -> u64 {
        let cached: u64 = self.cached.iter().map(|(_, size, _)| size).sum();
        let requested: u64 = self.requests.values().map(|k| bound_bytes(*k) + ENTRY_BYTES).sum();
        let evicted: u64 = self.evicted.iter().map(|(_, _, size, _)| size).sum();
        cached + requested + evicted
    }

    fn step(&mut self, key: BlockKey, event: BlockEvent<Value>) {
        for action in self.table.step(key, event) {
            self.expect(action);
        }
        let counters = self.table.counters();
        assert_eq!(counters.used_bytes(), self.used_bytes(), "accounting");
        assert!(self.used_bytes() <= counters.capacity_bytes, "the hard limit");
        let queued = self.queued();
        assert_eq!(counters.queued, queued.len() as u64, "queue");
        if let Some(head) = queued.first() {
            assert_eq!(self.table.starving(), Some(*head), "head of the queue");
            let free = counters.capacity_bytes - self.used_bytes();
            assert!(bound_bytes(*head) + ENTRY_BYTES > free, "the head of the queue fits");
            self.expect_room_is_being_made(bound_bytes(*head) + ENTRY_BYTES - free);
        }
    }

    /// Checks that blocks without other holders were evicted if their memory is needed.
    fn expect_room_is_being_made(&self, missing_bytes: u64) {
        let released_soon: u64 =
            self.evicted.iter().filter(|(.., value)| value.strong_count() == 0).map(|e| e.2).sum();
        let idle = self.cached.iter().any(|(_, _, value)| value.strong_count() == 1);
        assert!(!idle || released_soon >= missing_bytes, "idle blocks stay while the queue waits");
    }

    fn expect(&mut self, action: Action<Value>) {
        match action {
            Action::Request { key, ticket, urgency } => {
                assert_eq!(self.queued().first(), Some(&key), "the most urgent first");
                assert_eq!(Some(urgency.priority.tier), self.tier(key));
                assert!(self.requests.values().all(|k| *k != key), "single flight");
                self.requests.insert(ticket, key);
            }
            Action::Adjust { ticket, urgency } => {
                assert_eq!(Some(urgency.priority.tier), self.tier(self.requests[&ticket]));
            }
            Action::Cancel { ticket } => {
                let key = self.requests.remove(&ticket).expect("a request under way");
                assert_eq!(self.tier(key), None, "somebody still waits");
            }
            Action::Answer { waiter, key, value } => {
                self.settle(waiter, key);
                self.held.push(value);
            }
            Action::Fail { waiter, key, .. } => self.settle(waiter, key),
            Action::Evict { key, ticket, value } => self.expect_evict(key, ticket, &value),
        }
    }

    fn settle(&mut self, waiter: WaiterId, key: BlockKey) {
        assert_eq!(self.waiting.remove(&waiter).map(|(k, _)| k), Some(key), "answered without being asked");
        assert!(self.answered.insert(waiter), "answered twice");
    }

    /// Checks that the victim is the least recently used block, and a held one only if no other is left.
    fn expect_evict(&mut self, key: BlockKey, ticket: FetchTicket, value: &Value) {
        let is_idle = |weak: &Weak<u64>, own: usize| weak.strong_count() == own;
        let at = self.cached.iter().position(|(k, ..)| *k == key).expect("a cached block");
        let victim_is_idle = is_idle(&Arc::downgrade(value), 1);
        let better = self.cached[..at].iter().find(|(_, _, v)| !victim_is_idle || is_idle(v, 1));
        let held_before_idle =
            !victim_is_idle && self.cached.iter().any(|(k, _, v)| *k != key && is_idle(v, 1));
        // Victims are chosen before the first of them is handed over: those evicted in the same step
        // have left `cached` already, so what remains must be younger or held.
        assert!(better.is_none(), "an older block stays: {better:?}");
        assert!(!held_before_idle, "an idle block stays while a held one goes");
        let (_, size, weak) = self.cached.remove(at);
        self.evicted.push((key, ticket, size, weak));
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Want { block, tier } => self.want(key(block), tier),
            Op::Adjust { nth, tier } => {
                let Some(waiter) = pick(self.waiting.keys(), nth) else { return };
                let key = self.waiting[&waiter].0;
                self.waiting.insert(waiter, (key, tier));
                self.step(key, BlockEvent::Adjusted { waiter, urgency: urgency(tier) });
            }
            Op::Withdraw { nth } => {
                let Some(waiter) = pick(self.waiting.keys(), nth) else { return };
                let Some((key, _)) = self.waiting.remove(&waiter) else { return };
                self.step(key, BlockEvent::Withdrawn { waiter });
            }
            Op::Arrive { nth, is_small } => {
                let Some(ticket) = pick(self.requests.keys(), nth) else { return };
                self.arrive(ticket, is_small);
            }
            Op::Fail { nth } => {
                let Some(ticket) = pick(self.requests.keys(), nth) else { return };
                let Some(key) = self.requests.remove(&ticket) else { return };
                self.step(key, BlockEvent::Failed { ticket, error: Error::corrupt("scripted") });
                assert_eq!(self.tier(key), None, "a waiter was not told of the failure");
            }
            Op::Drop { nth } => {
                if !self.held.is_empty() {
                    self.held.swap_remove(nth % self.held.len());
                }
            }
            Op::Free { nth } => {
                let free = self.evicted.iter().filter(|(.., value)| value.strong_count() == 0);
                let Some(ticket) = pick(free.map(|(_, ticket, ..)| ticket), nth) else { return };
                let at = self.evicted.iter().position(|e| e.1 == ticket).unwrap();
                let (key, ..) = self.evicted.remove(at);
                self.step(key, BlockEvent::Released { ticket });
            }
            Op::Recheck => {
                if let Some(key) = self.table.starving() {
                    self.step(key, BlockEvent::Rechecked);
                }
            }
        }
    }

    fn want(&mut self, key: BlockKey, tier: u8) {
        self.next += 1;
        let waiter = WaiterId(self.next);
        // An evicted block that still has a holder is revived.
        if let Some(at) = self.evicted.iter().rposition(|e| e.0 == key && e.3.strong_count() > 0) {
            let is_newest = self.evicted.iter().rposition(|e| e.0 == key) == Some(at);
            if is_newest && self.tier(key).is_none() {
                let (_, _, size, weak) = self.evicted.remove(at);
                self.cached.push((key, size, weak));
            }
        }
        let cached = self.cached.iter().position(|(k, ..)| *k == key);
        if let Some(at) = cached {
            let used = self.cached.remove(at);
            self.cached.push(used);
        }
        if self.tier(key).is_none() {
            self.queue_order.insert(key, self.next);
        }
        self.waiting.insert(waiter, (key, tier));
        let event = BlockEvent::Wanted { waiter, urgency: urgency(tier), bound_bytes: bound_bytes(key) };
        self.step(key, event);
        assert_eq!(cached.is_some(), self.answered.contains(&waiter), "a cached block is a hit");
    }

    fn arrive(&mut self, ticket: FetchTicket, is_small: bool) {
        let Some(key) = self.requests.remove(&ticket) else { return };
        let size_bytes = if is_small { bound_bytes(key) / 2 } else { bound_bytes(key) };
        let value = Arc::new(ticket.0);
        self.cached.push((key, size_bytes + ENTRY_BYTES, Arc::downgrade(&value)));
        self.step(key, BlockEvent::Arrived { ticket, value, size_bytes });
        assert_eq!(self.tier(key), None, "a waiter did not get the block");
    }

    /// Answers all requests and drops all holders; checks that no waiter is left.
    fn drain(&mut self) {
        for _ in 0..200 {
            self.held.clear();
            self.apply(Op::Recheck);
            self.apply(Op::Arrive { nth: 0, is_small: false });
            self.apply(Op::Free { nth: 0 });
        }
        assert!(self.waiting.is_empty(), "{:?} wait without end", self.waiting);
        assert!(self.requests.is_empty());
    }
}

fn pick<'a, T: Copy + 'a>(mut all: impl Iterator<Item = &'a T> + Clone, nth: usize) -> Option<T> {
    let count = all.clone().count();
    (count > 0).then(|| all.nth(nth % count).copied()).flatten()
}

fn urgency(tier: u8) -> Urgency {
    Urgency::of(Priority { tier, weight: 0.0 })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn agrees_with_the_model(capacity in 1500u64..9000, ops in prop::collection::vec(any_op(), 1..200)) {
        let mut model = Model::new(capacity.max(1900 + ENTRY_BYTES));
        ops.into_iter().for_each(|op| model.apply(op));
        model.drain();
    }
}

#[test]
fn a_block_larger_than_the_cache_is_refused() {
    let mut table: CacheTable<Value> = CacheTable::new(1000, HeldMemory::CountedHere);
    let event = BlockEvent::Wanted { waiter: WaiterId(1), urgency: urgency(2), bound_bytes: 1000 };
    let actions = table.step(key(0), event);
    let [Action::Fail { error, .. }] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(table.counters().used_bytes(), 0);
}

#[test]
fn a_full_queue_refuses_the_least_urgent() {
    let mut table: CacheTable<Value> = CacheTable::new(1000, HeldMemory::CountedHere);
    let mut refused = Vec::new();
    // The first is under way, MAX_QUEUED wait, two are too many; block 7 matters least, then 8.
    for index in 0..MAX_QUEUED as u64 + 3 {
        let tier = match index {
            7 => 0,
            8 => 1,
            _ => 2,
        };
        let event = BlockEvent::Wanted { waiter: WaiterId(index), urgency: urgency(tier), bound_bytes: 600 };
        for action in table.step(key(index), event) {
            if let Action::Fail { key, error, .. } = action {
                assert_eq!(error.kind(), ErrorKind::Busy);
                refused.push(key.index);
            }
        }
    }
    assert_eq!(refused, [7, 8]);
}

#[test]
fn a_block_larger_than_promised_is_an_error() {
    let mut table: CacheTable<Value> = CacheTable::new(10_000, HeldMemory::CountedHere);
    let event = BlockEvent::Wanted { waiter: WaiterId(1), urgency: urgency(2), bound_bytes: 100 };
    let actions = table.step(key(0), event);
    let [Action::Request { ticket, .. }] = actions[..] else { panic!("{actions:?}") };
    let actions = table.step(key(0), BlockEvent::Arrived { ticket, value: Arc::new(0), size_bytes: 101 });
    assert!(matches!(&actions[..], [Action::Fail { .. }]), "{actions:?}");
    assert_eq!(table.counters().used_bytes(), 0);
}

#[test]
fn answers_to_withdrawn_requests_change_nothing() {
    let mut table: CacheTable<Value> = CacheTable::new(10_000, HeldMemory::CountedHere);
    let want =
        |waiter| BlockEvent::Wanted { waiter: WaiterId(waiter), urgency: urgency(2), bound_bytes: 100 };
    let first = table.step(key(0), want(1));
    let [Action::Request { ticket: old, .. }] = first[..] else { panic!("{first:?}") };
    assert_eq!(
        table.step(key(0), BlockEvent::Withdrawn { waiter: WaiterId(1) }),
        [Action::Cancel { ticket: old }]
    );
    let second = table.step(key(0), want(2));
    let [Action::Request { ticket: new, .. }] = second[..] else { panic!("{second:?}") };
    assert!(table.step(key(0), BlockEvent::Failed { ticket: old, error: Error::cancelled() }).is_empty());
    assert!(
        table.step(key(0), BlockEvent::Arrived { ticket: old, value: Arc::new(0), size_bytes: 1 }).is_empty()
    );
    let answer = table.step(key(0), BlockEvent::Arrived { ticket: new, value: Arc::new(0), size_bytes: 1 });
    assert!(matches!(&answer[..], [Action::Answer { .. }]), "{answer:?}");
}

#[test]
fn blocks_that_their_holders_count_make_room_at_once() {
    let held = Arc::new(0);
    let want =
        |waiter| BlockEvent::Wanted { waiter: WaiterId(waiter), urgency: urgency(2), bound_bytes: 600 };
    for held_memory in [HeldMemory::CountedHere, HeldMemory::CountedByHolders] {
        let mut table: CacheTable<Value> = CacheTable::new(1000, held_memory);
        let first = table.step(key(0), want(1));
        let [Action::Request { ticket, .. }] = first[..] else { panic!("{first:?}") };
        table.step(key(0), BlockEvent::Arrived { ticket, value: Arc::clone(&held), size_bytes: 600 });
        let second = table.step(key(1), want(2));
        let is_requested = second.iter().any(|action| matches!(action, Action::Request { .. }));
        assert_eq!(is_requested, held_memory == HeldMemory::CountedByHolders, "{second:?}");
        assert!(table.counters().used_bytes() <= 1000);
        // The holder drops the first block: in one case this makes room, in the other it has no effect.
        table.step(key(0), BlockEvent::Released { ticket });
        assert_eq!((table.counters().requested, table.counters().releasing_bytes), (1, 0));
    }
}
