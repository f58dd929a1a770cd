//! Operations that the application has not taken yet: the most urgent first, then in order of arrival.
//! Operations that arrived together stay together, so that thousands cost little more than one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use wire::{OpId, Priority};

use crate::server::waiting_limit::Load;

/// Most operations of one group: a single one is found and removed in few steps.
const MAX_GROUP: usize = 256;

/// Sort key, smaller is sooner: priority, the group's first operation when the group began, and whether that
/// operation was moved.
type UrgencyRank = (Reverse<Priority>, OpId, bool);

/// Operation that waits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WaitingOperation {
    pub(crate) op: OpId,
    pub(crate) name: Arc<str>,
    pub(crate) parameters: Bytes,
}

/// Operations of one name and one priority, with ascending numbers.
struct OperationGroup {
    name: Arc<str>,
    members: VecDeque<(OpId, Bytes)>,
}

#[derive(Default)]
pub(crate) struct OperationQueue {
    groups: BTreeMap<UrgencyRank, OperationGroup>,
    /// Group that began with an operation; it holds the operations up to the beginning of the next group.
    beginnings: BTreeMap<OpId, UrgencyRank>,
    /// Operations whose priority has changed; each is a group of its own.
    moved: HashMap<OpId, UrgencyRank>,
    count: usize,
    parameter_bytes: usize,
}

impl OperationQueue {
    /// Number of waiting operations.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Load that these operations put on the limit of waiting operations.
    pub(crate) fn load(&self) -> Load {
        Load { operations: self.len(), parameter_bytes: self.parameter_bytes }
    }

    /// Parameters of all waiting operations, bytes.
    pub(crate) fn parameter_bytes(&self) -> usize {
        self.parameter_bytes
    }

    /// Adds an operation with a larger number than all before.
    pub(crate) fn push(&mut self, priority: Priority, waiting: WaitingOperation) {
        let WaitingOperation { op, name, parameters } = waiting;
        self.count += 1;
        self.parameter_bytes += parameters.len();
        if let Some((_, rank)) = self.beginnings.last_key_value()
            && rank.0 == Reverse(priority)
            && let Some(group) = self.groups.get_mut(rank)
            && group.name == name
            && group.members.len() < MAX_GROUP
        {
            return group.members.push_back((op, parameters));
        }
        let rank = (Reverse(priority), op, false);
        self.beginnings.insert(op, rank);
        self.groups.insert(rank, OperationGroup { name, members: VecDeque::from([(op, parameters)]) });
    }

    /// Takes the most urgent operation, if it is of this tier or above, and the following ones of the same
    /// priority and name, at most as many as `most` returns for that name.
    pub(crate) fn take(&mut self, least_tier: u8, most: impl Fn(&str) -> usize) -> Vec<WaitingOperation> {
        let mut taken: Vec<WaitingOperation> = Vec::new();
        let mut left = 1;
        let mut priority = None;
        while let Some(mut first) = self.groups.first_entry() {
            let &rank = first.key();
            let group = first.get_mut();
            let joins = match (taken.first(), priority) {
                (Some(before), Some(same)) => rank.0 == same && group.name == before.name && left > 0,
                _ => rank.0.0.tier >= least_tier,
            };
            if !joins {
                break;
            }
            if taken.is_empty() {
                priority = Some(rank.0);
                left = most(&group.name).max(1);
            }
            let now = left.min(group.members.len());
            left -= now;
            let members = group.members.drain(..now);
            let name = &group.name;
            taken.extend(members.map(|(op, parameters)| WaitingOperation {
                op,
                name: Arc::clone(name),
                parameters,
            }));
            if group.members.is_empty() {
                first.remove();
                self.forget(rank);
            }
        }
        self.count -= taken.len();
        self.parameter_bytes -= taken.iter().map(|waiting| waiting.parameters.len()).sum::<usize>();
        taken
    }

    /// Removes an operation; `None` when it does not wait here.
    pub(crate) fn remove(&mut self, op: OpId) -> Option<WaitingOperation> {
        let began = || self.beginnings.range(..=op).next_back().map(|(_, rank)| *rank);
        let rank = self.moved.get(&op).copied().or_else(began)?;
        let group = self.groups.get_mut(&rank)?;
        let place = group.members.binary_search_by_key(&op, |(op, _)| *op).ok()?;
        let (_, parameters) = group.members.remove(place)?;
        let name = Arc::clone(&group.name);
        if group.members.is_empty() {
            self.groups.remove(&rank);
            self.forget(rank);
        }
        self.count -= 1;
        self.parameter_bytes -= parameters.len();
        Some(WaitingOperation { op, name, parameters })
    }

    /// Moves an operation to another priority; false when it does not wait here.
    pub(crate) fn adjust(&mut self, op: OpId, priority: Priority) -> bool {
        let Some(WaitingOperation { name, parameters, .. }) = self.remove(op) else { return false };
        let rank = (Reverse(priority), op, true);
        self.count += 1;
        self.parameter_bytes += parameters.len();
        self.moved.insert(op, rank);
        self.groups.insert(rank, OperationGroup { name, members: VecDeque::from([(op, parameters)]) });
        true
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Removes the index entry of an empty group.
    fn forget(&mut self, (_, op, is_moved): UrgencyRank) {
        let list = if is_moved { self.moved.remove(&op) } else { self.beginnings.remove(&op) };
        debug_assert!(list.is_some(), "each group is listed once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut OperationQueue, ops: impl IntoIterator<Item = u32>, name: &str, tier: u8) {
        for op in ops {
            let waiting =
                WaitingOperation { op: OpId(op), name: name.into(), parameters: Bytes::from_static(b"12") };
            queue.push(Priority { tier, weight: 0.0 }, waiting);
        }
    }

    fn take(queue: &mut OperationQueue, least_tier: u8, most: usize) -> Vec<u32> {
        queue.take(least_tier, |_| most).iter().map(|waiting| waiting.op.0).collect()
    }

    #[test]
    fn the_most_urgent_come_first_and_those_alike_together() {
        let mut queue = OperationQueue::default();
        push(&mut queue, 1..=4, "a", 2);
        push(&mut queue, [5], "a", 3);
        push(&mut queue, [6], "b", 2);
        push(&mut queue, 7..=8, "a", 2);
        assert_eq!((queue.len(), queue.parameter_bytes()), (8, 16));
        assert_eq!(take(&mut queue, 4, 9), [0; 0], "nothing is so urgent");
        assert_eq!(take(&mut queue, 0, 9), [5]);
        assert_eq!(take(&mut queue, 0, 3), [1, 2, 3]);
        assert_eq!(take(&mut queue, 0, 9), [4], "another name follows");
        assert_eq!(take(&mut queue, 0, 9), [6]);
        assert_eq!(take(&mut queue, 0, 9), [7, 8]);
        assert_eq!((take(&mut queue, 0, 9), queue.parameter_bytes()), (vec![], 0));
        assert!(queue.beginnings.is_empty() && queue.groups.is_empty());
    }

    #[test]
    fn one_is_found_among_many_taken_out_or_moved() {
        let mut queue = OperationQueue::default();
        push(&mut queue, 1..=1_000, "a", 2);
        assert!(queue.groups.len() <= 4, "they cost little more than one");
        assert!(queue.adjust(OpId(500), Priority::URGENT));
        assert!(queue.adjust(OpId(500), Priority { tier: 3, weight: 1.0 }));
        assert!(queue.adjust(OpId(700), Priority::BACKGROUND));
        assert!(queue.remove(OpId(501)).is_some() && queue.remove(OpId(501)).is_none());
        assert!(queue.adjust(OpId(1), Priority { tier: 2, weight: 0.0 }), "to where it was");
        assert!(queue.remove(OpId(1)).is_some());
        assert_eq!(take(&mut queue, 0, 9), [500]);
        let rest = take(&mut queue, 0, 1_000);
        assert_eq!(rest, (2..=1_000).filter(|op| ![500, 501, 700].contains(op)).collect::<Vec<_>>());
        assert!(!queue.adjust(OpId(2), Priority::URGENT), "it was taken");
        assert_eq!(take(&mut queue, 0, 9), [700]);
        assert_eq!((queue.len(), queue.parameter_bytes()), (0, 0));
        assert_eq!((queue.beginnings.len(), queue.moved.len()), (0, 0));
    }
}
