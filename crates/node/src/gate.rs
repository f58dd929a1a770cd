//! Who may use memory for answers next: fair between clients first, by priority within one client second.
//!
//! An operation enters the gate with the bytes it is about to prepare and holds them until they are queued for
//! sending. While there is not enough room, the client that holds least goes first, with its most urgent
//! operation. No client holds more than a [quarter](SHARES), so that one which takes nothing stalls only itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{Priority, Urgency};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A client holds at most one of this many shares of the gate, or a single operation.
const SHARES: u64 = 4;

/// Names a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

#[derive(Default)]
struct Client {
    held_bytes: u64,
    waiting: Vec<Waiting>,
}

impl Client {
    /// The place in `waiting` of what goes first: the highest priority, then the longest wait.
    fn most_urgent(&self) -> Option<usize> {
        let waiting = self.waiting.iter().enumerate();
        waiting.max_by_key(|(_, w)| (w.priority, std::cmp::Reverse(w.ticket))).map(|(at, _)| at)
    }
}

struct Waiting {
    ticket: u64,
    priority: Priority,
    bytes: u64,
    admit: oneshot::Sender<()>,
}

struct State {
    free_bytes: u64,
    most_per_client: u64,
    next_ticket: u64,
    clients: BTreeMap<ClientId, Client>,
}

/// Hands out a fixed number of bytes.
#[derive(Clone)]
pub struct Gate {
    capacity_bytes: u64,
    state: Arc<Mutex<State>>,
}

impl Gate {
    /// A gate for `capacity_bytes` at a time.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        let state = State {
            free_bytes: capacity_bytes,
            most_per_client: capacity_bytes / SHARES,
            next_ticket: 0,
            clients: BTreeMap::new(),
        };
        Self { capacity_bytes, state: Arc::new(Mutex::new(state)) }
    }

    /// All it has to give, bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Asks for `bytes`; more than the gate has counts as all it has.
    #[must_use]
    pub fn enter(&self, client: ClientId, urgency: Urgency, bytes: u64) -> Entry {
        let bytes = bytes.min(self.capacity_bytes);
        let (admit, admitted) = oneshot::channel();
        let mut state = self.state.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        let waiting = Waiting { ticket, priority: urgency.priority, bytes, admit };
        state.clients.entry(client).or_default().waiting.push(waiting);
        state.admit_all();
        drop(state);
        Entry { place: Place { gate: self.clone(), client, ticket, bytes }, admitted }
    }
}

impl State {
    /// Lets in whoever is next, while there is room.
    fn admit_all(&mut self) {
        let most = self.most_per_client;
        loop {
            let in_turn = self.clients.values_mut().filter_map(|client| {
                let at = client.most_urgent()?;
                let held = client.held_bytes;
                (held == 0 || held + client.waiting[at].bytes <= most).then_some((held, at, client))
            });
            let Some((_, at, client)) = in_turn.min_by_key(|(held, ..)| *held) else { return };
            if client.waiting[at].bytes > self.free_bytes {
                return;
            }
            let next = client.waiting.swap_remove(at);
            client.held_bytes += next.bytes;
            self.free_bytes -= next.bytes;
            // Whoever gave up in between gives the bytes back when its entry is dropped.
            next.admit.send(()).unwrap_or_default();
        }
    }

    fn leave(&mut self, place: &Place) {
        if let Some(client) = self.clients.get_mut(&place.client) {
            match client.waiting.iter().position(|w| w.ticket == place.ticket) {
                Some(at) => drop(client.waiting.swap_remove(at)),
                None => {
                    client.held_bytes -= place.bytes;
                    self.free_bytes += place.bytes;
                }
            }
            if client.held_bytes == 0 && client.waiting.is_empty() {
                self.clients.remove(&place.client);
            }
        }
        self.admit_all();
    }
}

/// Somebody's place before or behind the gate.
struct Place {
    gate: Gate,
    client: ClientId,
    ticket: u64,
    bytes: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gate.state.lock().leave(self);
    }
}

/// Waits before the gate, then holds its bytes until dropped.
pub struct Entry {
    place: Place,
    admitted: oneshot::Receiver<()>,
}

impl Entry {
    /// It matters more or less now.
    pub fn adjust(&self, urgency: Urgency) {
        let mut state = self.place.gate.state.lock();
        if let Some(client) = state.clients.get_mut(&self.place.client)
            && let Some(waiting) = client.waiting.iter_mut().find(|w| w.ticket == self.place.ticket)
        {
            waiting.priority = urgency.priority;
        }
    }

    /// Waits to be let in.
    ///
    /// # Cancel safety
    /// Safe: dropping the entry leaves the queue.
    pub async fn admitted(&mut self) {
        // The sender is dropped only after it has sent, or with the gate's client, which this entry keeps.
        drop((&mut self.admitted).await);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn is_in(entry: &mut Entry) -> bool {
        entry.admitted().now_or_never().is_some()
    }

    fn tier(tier: u8) -> Urgency {
        Urgency::of(Priority { tier, weight: 0.0 })
    }

    #[test]
    fn the_most_urgent_of_a_client_goes_first_and_may_change_its_mind() {
        let gate = Gate::new(10);
        let first = gate.enter(ClientId(1), tier(0), 10);
        let (mut low, mut high) =
            (gate.enter(ClientId(1), tier(1), 10), gate.enter(ClientId(1), tier(2), 10));
        low.adjust(tier(3));
        drop(first);
        assert!(is_in(&mut low) && !is_in(&mut high));
        drop(low);
        assert!(is_in(&mut high));
    }

    #[test]
    fn a_client_that_holds_less_goes_before_an_urgent_one_that_holds_more() {
        let gate = Gate::new(40);
        let _held: Vec<Entry> = (0..4).map(|n| gate.enter(ClientId(n), tier(4), 9)).collect();
        let full = gate.enter(ClientId(9), tier(4), 4);
        let mut greedy = gate.enter(ClientId(3), tier(4), 1);
        let mut modest = gate.enter(ClientId(5), tier(0), 4);
        assert!(!is_in(&mut greedy) && !is_in(&mut modest));
        drop(full);
        assert!(is_in(&mut modest) && !is_in(&mut greedy));
    }

    #[test]
    fn one_client_cannot_hold_it_all() {
        let gate = Gate::new(40);
        let mut mine: Vec<Entry> = (0..8).map(|_| gate.enter(ClientId(1), tier(4), 5)).collect();
        assert_eq!(mine.iter_mut().filter_map(|e| e.admitted().now_or_never()).count(), 2);
        let mut other = gate.enter(ClientId(2), tier(0), 5);
        assert!(is_in(&mut other));
    }

    #[test]
    fn who_gives_up_leaves_no_trace_and_giants_fit_alone() {
        let gate = Gate::new(10);
        let first = gate.enter(ClientId(1), tier(1), u64::MAX);
        drop(gate.enter(ClientId(2), tier(1), 3));
        drop(first);
        let state = gate.state.lock();
        assert_eq!((state.free_bytes, state.clients.len()), (10, 0));
    }
}
