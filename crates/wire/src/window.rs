//! How many bulk bytes a client lets the server send ahead: twice what arrives in one round trip, within what the
//! application has reserved. The same idea as dynamic right-sizing of TCP's receive buffers (Fisk and Feng, 2001).
//!
//! No clock is needed: a ping is sent, and what arrives until its pong came in one round trip. A window that is the
//! bottleneck therefore doubles with each round trip; one that is not stays. It never shrinks: its memory is reserved.

use crate::limits::{CREDIT_FRACTION, FIRST_WINDOW_BYTES};

/// Tells these pings from those that ask whether the peer lives.
const NONCE_BIT: u64 = 1 << 63;

#[derive(Debug)]
pub(crate) struct Window {
    size_bytes: u64,
    most_bytes: u64,
    /// Since the last round began, or ended if none is under way.
    arrived_bytes: u64,
    rounds: u64,
    round: Round,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Round {
    Idle,
    PingDue,
    UnderWay,
}

impl Window {
    pub(crate) fn new(most_bytes: u64) -> Self {
        let size_bytes = most_bytes.min(FIRST_WINDOW_BYTES);
        Self { size_bytes, most_bytes, arrived_bytes: 0, rounds: 0, round: Round::Idle }
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub(crate) fn handle_arrived(&mut self, bulk_bytes: u64) {
        self.arrived_bytes += bulk_bytes;
        let busy = self.arrived_bytes >= self.size_bytes / CREDIT_FRACTION;
        if self.round == Round::Idle && busy && self.size_bytes < self.most_bytes {
            self.round = Round::PingDue;
        }
    }

    /// The nonce of a ping that begins a round.
    pub(crate) fn poll_ping(&mut self) -> Option<u64> {
        if self.round != Round::PingDue {
            return None;
        }
        self.round = Round::UnderWay;
        self.arrived_bytes = 0;
        self.rounds += 1;
        Some(self.rounds | NONCE_BIT)
    }

    /// A round trip has passed if the pong is ours: by how much the window has grown, bytes.
    pub(crate) fn handle_pong(&mut self, nonce: u64) -> u64 {
        if self.round != Round::UnderWay || nonce != self.rounds | NONCE_BIT {
            return 0;
        }
        self.round = Round::Idle;
        let before = self.size_bytes;
        let product_bytes = std::mem::take(&mut self.arrived_bytes);
        self.size_bytes = product_bytes.saturating_mul(2).clamp(before, self.most_bytes);
        self.size_bytes - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets `bytes` arrive in each round trip that asks.
    fn round(window: &mut Window, bytes: u64) -> u64 {
        window.handle_arrived(bytes);
        let Some(nonce) = window.poll_ping() else { return 0 };
        window.handle_arrived(bytes);
        window.handle_pong(nonce)
    }

    #[test]
    fn doubles_while_it_is_the_bottleneck_up_to_what_is_reserved() {
        let mut window = Window::new(30 << 20);
        let mut sizes = vec![window.size_bytes() >> 20];
        for _ in 0..5 {
            let full = window.size_bytes();
            round(&mut window, full);
            sizes.push(window.size_bytes() >> 20);
        }
        assert_eq!(sizes, [4, 8, 16, 30, 30, 30]);
        window.handle_arrived(1 << 40);
        assert_eq!(window.poll_ping(), None, "nothing is left to be learnt");
    }

    #[test]
    fn stays_where_the_path_is_the_bottleneck() {
        let mut window = Window::new(1 << 30);
        for _ in 0..10 {
            round(&mut window, 3 << 20);
        }
        assert_eq!(window.size_bytes(), 6 << 20, "two bandwidth-delay products");
        assert_eq!(round(&mut window, 1000), 0, "a quiet connection is not measured");
        assert_eq!(window.handle_pong(7), 0, "a pong of another ping");
    }

    #[test]
    fn a_small_reservation_is_the_window() {
        assert_eq!(Window::new(1000).size_bytes(), 1000);
    }
}
