//! Gate that grants memory for answers: fair between clients first, by priority within one client second.
//!
//! An operation enters the gate with the bytes it is about to prepare. They stay counted until they left for the peer
//! ([`Entry::hold`]) or were given up. How much a client may hold follows what is free, as switches share their
//! memory between ports: as much as remains free afterwards. A lone client gets half; N that take nothing leave
//! one part in N + 1 free; and each may hold [`OWN_BYTES`] whatever the others do. So who takes nothing stalls only
//! itself. Among those who wait, the client that holds least goes first, with its most urgent operation.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use array::{Priority, Urgency};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Bytes that every client may hold whatever the others hold: one block of the largest size that we choose. The
/// gate's capacity can be exceeded by this for each client that is let in, and by no more.
pub const OWN_BYTES: u64 = array::MAX_BLOCK_BYTES;
/// Nobody has to be given more at once than one of this many shares, or giants could wait for ever.
const SHARES: u64 = 8;

/// Names a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// Smaller is sooner: the highest priority, then the longest wait. The ticket is unique.
type Rank = (Reverse<Priority>, u64);

#[derive(Default)]
struct Client {
    held_bytes: u64,
    waiting: BTreeMap<Rank, Waiting>,
}

struct Waiting {
    least_bytes: u64,
    most_bytes: u64,
    admit: oneshot::Sender<u64>,
}

#[derive(Default)]
struct State {
    capacity_bytes: u64,
    held_bytes: u64,
    next_ticket: u64,
    clients: BTreeMap<ClientId, Client>,
    /// Clients with somebody waiting, by what they hold.
    in_turn: BTreeSet<(u64, ClientId)>,
    /// Clients looked at so far: what the work of the gate is measured in.
    #[cfg(test)]
    steps: u64,
}

/// Hands out a number of bytes.
#[derive(Clone)]
pub struct Gate {
    capacity_bytes: u64,
    state: Arc<Mutex<State>>,
}

impl Gate {
    /// A gate for `capacity_bytes` at a time.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        let state = State { capacity_bytes, ..State::default() };
        Self { capacity_bytes, state: Arc::new(Mutex::new(state)) }
    }

    /// All it has to give, bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Memory that a client that holds nothing gets without waiting for others, bytes.
    #[must_use]
    pub fn own_bytes(&self) -> u64 {
        own_bytes(self.capacity_bytes)
    }

    /// Asks for `most_bytes`, or as much of it as there is when that is at least `least_bytes`. More than an eighth of
    /// the gate need not be given at once, whatever `least_bytes` says.
    #[must_use]
    pub fn enter(&self, client: ClientId, urgency: Urgency, least_bytes: u64, most_bytes: u64) -> Entry {
        let least_bytes = least_bytes.min(self.capacity_bytes / SHARES);
        let (admit, admitted) = oneshot::channel();
        let mut state = self.state.lock();
        let rank = (Reverse(urgency.priority), state.next_ticket);
        state.next_ticket += 1;
        state.change(client, |c| c.waiting.insert(rank, Waiting { least_bytes, most_bytes, admit }));
        state.admit_all();
        drop(state);
        Entry { gate: self.clone(), client, rank, granted: None, admitted }
    }
}

fn own_bytes(capacity_bytes: u64) -> u64 {
    OWN_BYTES.min(capacity_bytes / SHARES)
}

impl State {
    /// The only way to touch a client: keeps `in_turn` right, and forgets who neither holds nor waits.
    fn change<T>(&mut self, id: ClientId, f: impl FnOnce(&mut Client) -> T) -> T {
        let client = self.clients.entry(id).or_default();
        self.in_turn.remove(&(client.held_bytes, id));
        let held_before = client.held_bytes;
        let out = f(client);
        self.held_bytes = self.held_bytes - held_before + client.held_bytes;
        if !client.waiting.is_empty() {
            self.in_turn.insert((client.held_bytes, id));
        } else if client.held_bytes == 0 {
            self.clients.remove(&id);
        }
        out
    }

    /// Bytes that a client may still get when it holds `held_bytes`.
    fn allowed_bytes(&self, held_bytes: u64) -> u64 {
        let free = self.capacity_bytes.saturating_sub(self.held_bytes);
        let shared = free.saturating_sub(held_bytes) / 2;
        shared.max(own_bytes(self.capacity_bytes).saturating_sub(held_bytes))
    }

    /// Lets in whoever is next, while there is room.
    fn admit_all(&mut self) {
        while let Some((id, bytes)) = self.next() {
            let admitted = self.change(id, |client| {
                client.held_bytes += bytes;
                client.waiting.pop_first()
            });
            // Whoever gives up in between gives the bytes back when its entry is dropped.
            if let Some((_, waiting)) = admitted {
                waiting.admit.send(bytes).unwrap_or_default();
            }
        }
    }

    /// Returns the client whose operation is admitted next, and how many bytes it gets. A client whose next operation
    /// needs more than it is allowed lets others pass.
    fn next(&mut self) -> Option<(ClientId, u64)> {
        for &(held_bytes, id) in &self.in_turn {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            let (_, waiting) = self.clients.get(&id)?.waiting.first_key_value()?;
            let allowed = self.allowed_bytes(held_bytes);
            if waiting.least_bytes <= allowed {
                return Some((id, waiting.most_bytes.min(allowed)));
            }
        }
        None
    }
}

/// Waits before the gate, then holds its bytes until dropped.
pub struct Entry {
    gate: Gate,
    client: ClientId,
    rank: Rank,
    granted: Option<u64>,
    admitted: oneshot::Receiver<u64>,
}

impl Entry {
    /// It matters more or less now.
    pub fn adjust(&mut self, urgency: Urgency) {
        let mut state = self.gate.state.lock();
        let rank = (Reverse(urgency.priority), self.rank.1);
        state.change(self.client, |client| {
            if let Some(waiting) = client.waiting.remove(&self.rank) {
                client.waiting.insert(rank, waiting);
                self.rank = rank;
            }
        });
        state.admit_all();
    }

    /// Waits to be let in; gives the bytes it has got.
    ///
    /// # Cancel safety
    /// Safe: dropping the entry leaves the queue.
    pub async fn admitted(&mut self) -> u64 {
        if self.granted.is_none() {
            // The sender is dropped only after it has sent, or with the gate, which this entry keeps.
            self.granted = (&mut self.admitted).await.ok();
        }
        self.granted.unwrap_or_default()
    }

    /// Gives `bytes` on; the entry is held until the last part of them was dropped, which for bytes of an answer
    /// means: sent, or not wanted any more.
    pub fn hold(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Self::hold_part(&Arc::new(self), bytes)
    }

    /// As [`hold`](Self::hold), for one of several parts: the entry is held until all of them are gone.
    pub fn hold_part(this: &Arc<Self>, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(Held { bytes, _entry: Arc::clone(this) })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        state.change(self.client, |client| {
            if client.waiting.remove(&self.rank).is_none() {
                let granted = self.granted.or_else(|| self.admitted.try_recv().ok());
                client.held_bytes -= granted.unwrap_or_default();
            }
        });
        state.admit_all();
    }
}

struct Held<B> {
    bytes: B,
    _entry: Arc<Entry>,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Held<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn got(entry: &mut Entry) -> Option<u64> {
        entry.admitted().now_or_never()
    }

    fn tier(tier: u8) -> Urgency {
        Urgency::of(Priority { tier, weight: 0.0 })
    }

    fn enter(gate: &Gate, client: u64, bytes: u64) -> Entry {
        gate.enter(ClientId(client), tier(2), bytes, bytes)
    }

    #[test]
    fn the_most_urgent_of_a_client_goes_first_and_may_change_its_mind() {
        let gate = Gate::new(80);
        let full = gate.enter(ClientId(1), tier(0), 10, 40);
        let (mut low, mut high) =
            (gate.enter(ClientId(1), tier(1), 10, 40), gate.enter(ClientId(1), tier(2), 10, 40));
        low.adjust(tier(3));
        drop(full);
        assert_eq!((got(&mut low), got(&mut high)), (Some(40), None));
        drop(low);
        assert_eq!(got(&mut high), Some(40));
    }

    #[test]
    fn a_client_that_holds_less_goes_before_an_urgent_one_that_holds_more() {
        let gate = Gate::new(80);
        let mut holding: Vec<Entry> = (0..3).map(|n| gate.enter(ClientId(n), tier(4), 1, 80)).collect();
        let sizes: Vec<_> = holding.iter_mut().filter_map(got).collect();
        assert_eq!(sizes, [40, 20, 10], "each gets half of what is free");
        let mut greedy = gate.enter(ClientId(2), tier(4), 10, 10);
        let mut modest = gate.enter(ClientId(5), tier(0), 10, 10);
        assert_eq!((got(&mut greedy), got(&mut modest)), (None, Some(10)), "its own is there at once");
        drop(holding.remove(0));
        assert_eq!(got(&mut greedy), Some(10));
    }

    #[test]
    fn clients_that_take_nothing_stall_only_themselves() {
        let gate = Gate::new(1 << 30);
        // As many as may be let in, each with more operations than it can be given.
        let idle: Vec<Entry> = (0..256u64 * 40).map(|n| enter(&gate, n / 40, 1 << 20)).collect();
        let held = gate.state.lock().held_bytes;
        assert!(held <= (1 << 30) + 256 * OWN_BYTES, "{held}");
        for client in 1000..1010 {
            assert_eq!(got(&mut enter(&gate, client, 1 << 20)), Some(1 << 20), "who comes last is served");
        }
        drop(idle);
        let mut whole = gate.enter(ClientId(9), tier(2), 1 << 20, 1 << 29);
        assert_eq!(got(&mut whole), Some(1 << 29), "and when they left, half is there for one");
    }

    #[test]
    fn a_giant_passes_beside_clients_that_take_nothing_and_does_not_stop_small_ones() {
        let gate = Gate::new(80);
        let idle: Vec<Entry> = (0..80).map(|n| enter(&gate, n % 4, 1)).collect();
        let mut giant = enter(&gate, 9, u64::MAX);
        assert_eq!(got(&mut giant), Some(10), "it counts as its own share");
        let mut second = enter(&gate, 9, u64::MAX);
        assert_eq!((got(&mut second), got(&mut enter(&gate, 10, 1))), (None, Some(1)));
        drop(idle);
        assert!(got(&mut second).is_some());
    }

    #[test]
    fn bytes_stay_counted_until_the_last_of_them_left() {
        let gate = Gate::new(80);
        let mut entry = enter(&gate, 1, 8);
        assert_eq!(got(&mut entry), Some(8));
        let mut bytes = entry.hold(vec![7; 8]);
        let part = bytes.split_to(3);
        drop(bytes);
        assert_eq!((&part[..], gate.state.lock().held_bytes), (&[7; 3][..], 8));
        drop(part);
        assert_eq!(gate.state.lock().held_bytes, 0);
    }

    #[test]
    fn who_gives_up_leaves_no_trace() {
        let gate = Gate::new(80);
        let first = enter(&gate, 1, 10);
        drop((enter(&gate, 2, 3), enter(&gate, 1, 60)));
        drop(first);
        let state = gate.state.lock();
        assert_eq!((state.held_bytes, state.clients.len(), state.in_turn.len()), (0, 0, 0));
    }

    #[test]
    fn ten_thousand_that_leave_at_once_cost_a_few_steps_each() {
        const MANY: u64 = 10_000;
        for forwards in [true, false] {
            let gate = Gate::new(80);
            let _full = enter(&gate, 1, 40);
            let mut waiting: Vec<Entry> = (0..MANY).map(|n| enter(&gate, n % 4, 10)).collect();
            if !forwards {
                waiting.reverse();
            }
            waiting.into_iter().for_each(drop);
            let steps = gate.state.lock().steps;
            assert!(steps <= 12 * MANY, "found {steps} steps");
        }
    }
}
